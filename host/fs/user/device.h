/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tools work on this: a zoned block device or an image file. */
#ifndef RFS_DEVICE_H
#define RFS_DEVICE_H

#include "volume/device.h"

struct rfs_device {
	const struct rfs_dev_ops *ops;
	void *dev;
	struct rfs_geometry geo;
	u32 ways;		/* zones that make full bandwidth; 0: nobody says */
	const char *path;
	bool busy;		/* opened for reading; somebody else has it, too */
	void (*close)(void *dev);
	struct rfs_slow_dev slow;	/* geo.slow is it, if there is one */
	void (*close_slow)(void *dev);	/* NULL: there is none to close */
};

/* Prints "PROGRAM: message" on stderr. A library does something else. */
extern const char *program;
void complain(const char *format, ...);

/*
 * Opens a device for reading, or for writing, too: then nobody else may have it mounted. Returns -1
 * after a complaint.
 */
int rfs_device_open(const char *path, bool writing, struct rfs_device *out);
void rfs_device_close(struct rfs_device *device);

/*
 * Opens a slow device beside it (slow.c), a block device or a file; "none" says that it is gone.
 * *out must not move then. Returns -1 after a complaint.
 */
int rfs_slow_open(const char *path, bool writing, struct rfs_device *out);
/* Says whether the error is that the slow device is too short, and complains then. */
bool rfs_slow_short(const struct rfs_device *device, int error);

/*
 * These are in zns.c and image.c. They return 1 if the path is something else, and -1 after a
 * complaint.
 */
int rfs_zns_open(const char *path, bool writing, struct rfs_device *out);
int rfs_image_open(const char *path, bool writing, struct rfs_device *out);
/* Creates an image with empty zones. Returns -1 after a complaint. */
int rfs_image_create(const char *path, const struct rfs_geometry *geo, u32 cap);

/*
 * Opens a device on top of another, which keeps writes in memory. Closing it does not close the
 * other. -ENOMEM is an error.
 */
int rfs_overlay_open(const struct rfs_device *below, struct rfs_device *out);

/*
 * Writes the volume that the overlay of a hybrid volume shows to another drive, of which all zones
 * are empty, and to the slow device below. The two blocks from `last` on are written last there,
 * one after the other, when all the rest is durable. The volume in the overlay may have made only
 * one replica. A second one would overwrite the replica on the medium.
 */
int rfs_overlay_write(const struct rfs_device *over, const struct rfs_device *to,
		      u64 last);

/* Returns a description of an error of the core, for messages. */
const char *rfs_error(int error);

#endif
