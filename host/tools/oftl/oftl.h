/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * These are objects on a volume of RFS: table 1 of the OFTL paper. An object
 * has a number, bytes and attributes; there are no names and no directories.
 * liboftl(3) describes each call.
 *
 * Functions return 0 or more, or -1 with errno set, and oftl_message() gives
 * the reason.
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

/* These are attributes that osetattr() changes. */
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
 * Opens the volume in an image file, on a zoned drive, or mounted at a
 * directory. Returns NULL with errno set; EBUSY says that another process owns
 * it.
 */
struct oftl *oftl_open(const char *path);
int oftl_close(struct oftl *dev);	/* what was done is durable then */

/*
 * Returns the reason of the last error of this thread. It stays until the next
 * error.
 */
const char *oftl_message(void);

/*
 * Returns the number of bytes that were read, fewer where the object ends.
 * Bytes that were never written are 0.
 */
ssize_t oread(struct oftl *dev, uint64_t oid, uint64_t offset, size_t len,
	      void *buf);

/* Writes bytes. After a power cut all of them are there, or none. */
int owrite(struct oftl *dev, uint64_t oid, uint64_t offset, size_t len,
	   const void *buf);

/*
 * Makes all changes of this object durable, its creation or deletion included.
 */
int oflush(struct oftl *dev, uint64_t oid);

int ocreate(struct oftl *dev, uint64_t oid);
int odelete(struct oftl *dev, uint64_t oid);
int ogetattr(struct oftl *dev, uint64_t oid, struct oattr *buf);
int osetattr(struct oftl *dev, uint64_t oid, const struct oattr *buf);

/*
 * Finds the objects one after the other, in no order: *cursor is 0 at first. 1
 * says that *oid is one, and 0 that there are no more.
 */
int oftl_next(struct oftl *dev, uint64_t *cursor, uint64_t *oid);

#ifdef __cplusplus
}
#endif

#endif
