/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A backend has the objects: a volume by the core of RFS, or a directory of a
 * mounted one.
 */
#ifndef OFTL_BACKEND_H
#define OFTL_BACKEND_H

#include "oftl.h"

struct rfs_device;

#define OBJECTS		".objects"	/* the directory, in the volume's root */
#define OBJECT_NAME	17		/* bytes: 16 hexadecimal digits and a zero */
#define USER_XATTR	"user.object"	/* has the user's attribute */

/*
 * These are the calls of oftl.h, one at a time, with arguments that are in
 * range. Each returns what it does there, or a negative errno.
 */
struct backend {
	int64_t (*read)(void *of, uint64_t oid, uint64_t offset, size_t len,
			void *buf);
	int (*write)(void *of, uint64_t oid, uint64_t offset, size_t len,
		     const void *buf);
	int (*flush)(void *of, uint64_t oid);
	int (*create)(void *of, uint64_t oid);
	int (*remove)(void *of, uint64_t oid);
	int (*get)(void *of, uint64_t oid, struct oattr *buf);
	int (*set)(void *of, uint64_t oid, const struct oattr *buf);
	int (*next)(void *of, uint64_t *cursor, uint64_t *oid);
	int (*close)(void *of);
};

extern const struct backend unmounted_backend, mounted_backend;

/*
 * Opens the volume on a device, which is closed with it. inject has rules that
 * a test leaves out, see RFS_INJECT_TXN. After a negative errno the device
 * stays open.
 */
int unmounted_open(const struct rfs_device *device, uint32_t inject, void **of);

/*
 * Opens a mounted volume, by its root. Returns a negative errno after a
 * complaint.
 */
int mounted_open(const char *path, void **of);

/* Does what oftl_open() does, for a device that is open already. */
struct oftl *oftl_open_device(const struct rfs_device *device, uint32_t inject);

/*
 * These are in objectname.c: they make the name of an object, and find the
 * object of a name, unless it is another file's.
 */
void object_name(uint64_t oid, char name[OBJECT_NAME]);
int object_of(const char *name, size_t len, uint64_t *oid);

#endif
