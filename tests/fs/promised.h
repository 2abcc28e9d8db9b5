/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The core as the module uses it: pages are promised room, and sent later; who lacks
 * room waits for a thread that cleans, and meanwhile pages are sent.
 */
#ifndef PROMISED_H
#define PROMISED_H

#include "volume/volume.h"

/*
 * From now on, on a volume that was mounted; `pick` draws a number below n. The thread
 * mostly waits until what was promised is sent, before it makes room; or it never does.
 */
void promised_begin(struct rfs_fs *fs, u32 (*pick)(u32 n), bool thread_waits);
void promised_end(void);	/* what was not sent is forgotten */

/* A block of a file is to be written; at most so many wait. 0 or -errno */
int promised_page(u32 ino, u64 block, u32 most);
void promised_drop(u32 ino, u64 from);	/* those of a file from there on */
bool promised_already(u32 ino, u64 block);
u32 promised_pages(void);	/* that wait */
int promised_send_all(void);
void promised_yield(void *dev);	/* of struct rfs_dev_ops: while it cleans, others go on */
int promised_failed(void);	/* sending while the thread cleaned; 0: nothing has */

/* What is to be done before an operation that said `ret` is asked again; 0: nothing */
bool promised_again(int *ret);

/* An operation, until it has what it waits for; its result is ret. */
#define promised_do(ret, op)						\
	do {								\
		(ret) = (op);						\
	} while (promised_again(&(ret)))

#endif
