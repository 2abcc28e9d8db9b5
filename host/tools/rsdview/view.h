/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every state that a drive had while its operation log was kept, without the
 * drive: a library. It is the drive's own core on a private mapping of the
 * media file; neither file is changed, whatever is done to the view, and both
 * are refused while a drive has them open.
 *
 *	view = rsdview_open("drive.rsd", "drive.log", err);
 *	for (op = 0; op <= rsdview_ops(view); op++)
 *		if (!rsdview_state(view, op, "7", err))
 *			... rsdview_zone(), rsdview_read() ...
 *
 * What is written to a state is there until the next rsdview_state(). Functions
 * return 0, or -1 with a message in err, or a negative errno: -EIO, what is
 * asked for is torn; -EINVAL, the drive would refuse it; -ENOMEM.
 */
#ifndef RSDVIEW_VIEW_H
#define RSDVIEW_VIEW_H

#include "rsd-power.h"

struct rsdview;

struct rsdview *rsdview_open(const char *media, const char *log,
			     char err[RSD_ERR_LEN]);
/* Closes a view. NULL is allowed. */
void rsdview_close(struct rsdview *view);

/*
 * Returns the drive of the view, whose namespace 0 it is. Its commands must not
 * be used.
 */
const RsdDrive *rsdview_drive(const struct rsdview *view);
const RsdGeometry *rsdview_geometry(const struct rsdview *view);
/* Returns the bytes of OOB for each block, in the state shown. */
uint32_t rsdview_oob(const struct rsdview *view);
uint64_t rsdview_ops(const struct rsdview *view);

/*
 * Shows the state after operation @op. @outcomes is a seed in digits, or a
 * letter for each operation in flight, see rsd_outcomes_parse(). The first
 * state shown is the one in the file.
 */
int rsdview_state(struct rsdview *view, uint64_t op, const char *outcomes,
		  char err[RSD_ERR_LEN]);

/* written is the write pointer, in blocks from the zone's start. */
void rsdview_zone(const struct rsdview *view, uint32_t zone, RsdZone *info);
/* Reads @n blocks of 4096 bytes, and their OOB; @oob may be NULL. */
int rsdview_read(struct rsdview *view, uint64_t lba, uint32_t n, void *data,
		 void *oob);
/*
 * Does the same for another namespace: 1 is a conventional one on the same
 * flash.
 */
int rsdview_read_of(struct rsdview *view, uint32_t ns, uint64_t lba, uint32_t n,
		    void *data, void *oob);
int rsdview_write(struct rsdview *view, uint64_t lba, uint32_t n,
		  const void *data, const void *oob);
int rsdview_reset(struct rsdview *view, uint32_t zone);
int rsdview_flush(struct rsdview *view);

#endif
