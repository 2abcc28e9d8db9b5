/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects on a volume of RFS: table 1 of the OFTL paper. An object has a number, bytes
 * and attributes; there are no names and no directories. liboftl(3) describes each call.
 *
 * Functions return 0 or more, or -1 with errno set, and oftl_message() says why.
 */
#ifndef OFTL_H
#define OFTL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OFTL_WRITE_MAX	((size_t)1 << 20)	/* bytes of one owrite() */
#define OFTL_OBJECT_MAX	((uint64_t)252 << 44)	/* bytes of an object */
#define OFTL_USER_MAX	256			/* bytes of the user's attribute */

struct oftl;	/* a volume that this process owns: devid in the paper */

/* Attributes that osetattr() changes */
#define OATTR_SIZE	0x1
#define OATTR_MTIME	0x2
#define OATTR_USER	0x4

/**
 * struct oattr - attributes of an object
 * @set: for osetattr(): OATTR_SIZE, OATTR_MTIME, OATTR_USER; ogetattr() sets all three
 * @user_len: bytes of @user, 0 to OFTL_USER_MAX
 * @size: bytes, up to the last one that was written
 * @used: bytes of the volume that it takes, index and attributes included, in blocks
 * @mtime: when its content changed last, in ns since 1970
 * @ctime: when its content or attributes changed last, in ns since 1970
 * @btime: when it was created, in ns since 1970
 * @user: bytes that mean something to the program alone
 */
struct oattr {
	uint32_t set;
	uint32_t user_len;
	uint64_t size;
	uint64_t used;
	int64_t mtime;
	int64_t ctime;
	int64_t btime;
	uint8_t user[OFTL_USER_MAX];
};

/*
 * The volume in an image file, on a zoned drive, or mounted at a directory. NULL with
 * errno set; EBUSY: another process owns it.
 */
struct oftl *oftl_open(const char *path);
int oftl_close(struct oftl *dev);	/* what was done is durable then */

/* Why the last call of this thread that failed did so; stays until the next fails */
const char *oftl_message(void);

/* Bytes that were read, fewer where the object ends; what was never written is 0 */
ssize_t oread(struct oftl *dev, uint64_t oid, uint64_t offset, size_t len,
	      void *buf);

/* All of it is there after a power cut, or none */
int owrite(struct oftl *dev, uint64_t oid, uint64_t offset, size_t len,
	   const void *buf);

/* What was done to this object, its creation or deletion included, is durable */
int oflush(struct oftl *dev, uint64_t oid);

int ocreate(struct oftl *dev, uint64_t oid);
int odelete(struct oftl *dev, uint64_t oid);
int ogetattr(struct oftl *dev, uint64_t oid, struct oattr *buf);
int osetattr(struct oftl *dev, uint64_t oid, const struct oattr *buf);

/*
 * The objects one after the other, in no order: *cursor is 0 at first. 1: *oid is one;
 * 0: there are no more
 */
int oftl_next(struct oftl *dev, uint64_t *cursor, uint64_t *oid);

#ifdef __cplusplus
}
#endif

#endif
