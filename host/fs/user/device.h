/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tools work on: a zoned block device or an image file. */
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

/* "PROGRAM: message" on stderr, or what a library makes of it */
extern const char *program;
void complain(const char *format, ...);

/*
 * Open for reading, or for writing too: then nobody else may have it mounted.
 * -1 after a complaint.
 */
int rfs_device_open(const char *path, bool writing, struct rfs_device *out);
void rfs_device_close(struct rfs_device *device);

/*
 * slow.c: a slow device beside it, a block device or a file, or "none": it is gone. *out
 * must not move then. -1 after a complaint.
 */
int rfs_slow_open(const char *path, bool writing, struct rfs_device *out);
/* Is that the error, that the slow device is too short? Says so */
bool rfs_slow_short(const struct rfs_device *device, int error);

/* zns.c, image.c: 1 if the path is something else, -1 after a complaint */
int rfs_zns_open(const char *path, bool writing, struct rfs_device *out);
int rfs_image_open(const char *path, bool writing, struct rfs_device *out);
/* A new image with empty zones; -1 after a complaint */
int rfs_image_create(const char *path, const struct rfs_geometry *geo, u32 cap);

/*
 * A device on top of another, which keeps in memory what is written. out's
 * close does not close the other. -ENOMEM.
 */
int rfs_overlay_open(const struct rfs_device *below, struct rfs_device *out);

/*
 * What the overlay of a hybrid volume shows, to another drive, of which all zones are empty,
 * and to the slow device below; the two blocks from `last` on are written last there, one
 * after the other, when all the rest is durable. The volume in the overlay may have made one
 * replica only, or what the medium's leads to would be written over before.
 */
int rfs_overlay_write(const struct rfs_device *over, const struct rfs_device *to,
		      u64 last);

/* What an error of the core means; for messages */
const char *rfs_error(int error);

#endif
