/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * If the flash of a hybrid volume is gone, these functions find the parts that the slow device has.
 */
#ifndef RFS_FLASHLESS_H
#define RFS_FLASHLESS_H

#include "tools/tools.h"

struct rfs_flashless;

/*
 * Opens the drive that is gone, for rfs_mount() and other readers. -ENODEV says that this is no
 * slow device of a volume, -ENOENT that it has no replica, -EUCLEAN that the replica is damaged,
 * and -EOVERFLOW that the device is shorter than it was.
 */
int rfs_flashless_open(const struct rfs_slow_dev *slow,
		       struct rfs_flashless **out);
void rfs_flashless_close(struct rfs_flashless *f);
extern const struct rfs_dev_ops rfs_flashless_ops;	/* of a struct rfs_flashless */

const struct rfs_geometry *rfs_flashless_geometry(const struct rfs_flashless *f);
u64 rfs_flashless_seq(const struct rfs_flashless *f);	/* of the check-point */
u64 rfs_flashless_time(const struct rfs_flashless *f);	/* ns since 1970, of it */
/* Returns a bit for each block of flash that the replica has, for struct rfs_report. */
const u8 *rfs_flashless_there(const struct rfs_flashless *f);

/* This is a run of bytes that only flash had, or a file or directory that cannot be read. */
struct rfs_loss {
	const char *path;
	u32 ino;
	u64 from, to;		/* bytes of the file, the last excluded */
	bool unreadable;	/* its inode or index, or some of it; from and to say nothing */
};

struct rfs_losses {
	void (*say)(void *arg, const struct rfs_loss *loss);	/* may be NULL */
	void *arg;
	u64 whole, damaged;	/* files */
	u64 blocks;		/* that are lost */
	u64 unreadable;		/* files and directories whose index or inode is */
	/*
	 * These are check-points after the replica's: the last one that was begun, and that of a
	 * replica which was begun and did not end. They are 0 if the slow device has no sign of
	 * one.
	 */
	u64 later, begun;
};

/* Finds the lost parts of the files of a volume that was mounted without its flash (losses.c). */
int rfs_flashless_losses(struct rfs_fs *fs, struct rfs_losses *out);

/*
 * Leaves out blocks that only flash had, on a drive that reads as the one that is gone
 * (user/overlay.c). The volume is repaired, with the content of the replica, as @repair reports,
 * and checked into @after, whose faults are for the caller. For *last see rfs_overlay_write().
 */
int rfs_flashless_leave_out(const struct rfs_dev_ops *ops, void *dev,
			    const struct rfs_geometry *geo,
			    struct rfs_report *repair, struct rfs_report *after,
			    u64 *last);

#endif
