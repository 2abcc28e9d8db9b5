// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

#define BLOCK 4096u

struct rsdview {
	RsdDrive *drive;
	RsdGeometry geo;
	uint64_t now;		/* ns: the view has a clock of its own */
};

struct rsdview *rsdview_open(const char *media, const char *log,
			     char err[RSD_ERR_LEN])
{
	struct rsdview *view = calloc(1, sizeof(*view));

	if (!view) {
		snprintf(err, RSD_ERR_LEN, "no memory");
		return NULL;
	}
	view->drive = rsd_open_view(media, log, err);
	if (!view->drive) {
		free(view);
		return NULL;
	}
	rsd_geometry(view->drive, 0, &view->geo);
	return view;
}

void rsdview_close(struct rsdview *view)
{
	if (view)
		rsd_close(view->drive);
	free(view);
}

const RsdDrive *rsdview_drive(const struct rsdview *view)
{
	return view->drive;
}

const RsdGeometry *rsdview_geometry(const struct rsdview *view)
{
	return &view->geo;
}

uint32_t rsdview_oob(const struct rsdview *view)
{
	return rsd_oob(view->drive, 0);
}

uint64_t rsdview_ops(const struct rsdview *view)
{
	RsdOplogInfo info;

	rsd_oplog_info(view->drive, &info);
	return info.ops;
}

int rsdview_state(struct rsdview *view, uint64_t op, const char *outcomes,
		  char err[RSD_ERR_LEN])
{
	RsdOutcomes parsed;

	if (!rsd_outcomes_parse(outcomes, &parsed)) {
		snprintf(err, RSD_ERR_LEN,
			 "outcomes are a number, the seed, or letters a, t, c");
		return -1;
	}
	return rsd_rewind(view->drive, op, &parsed, err) ? 0 : -1;
}

void rsdview_zone(const struct rsdview *view, uint32_t zone, RsdZone *info)
{
	rsd_zone_get(view->drive, zone, info);
}

/* Waits for a command that was submitted. Returns its status as an errno. */
static int finish(struct rsdview *view, RsdCmd *cmd)
{
	RsdCmd *done = NULL;
	uint64_t when;
	RsdStatus status;

	while (done != cmd && rsd_next_event(view->drive, &when)) {
		if (when > view->now)
			view->now = when;
		done = rsd_advance(view->drive, view->now);
	}
	status = done ? done->status : RSD_E_MEDIA;
	return status == RSD_OK ? 0 : status == RSD_E_MEDIA ? -EIO : -EINVAL;
}

static int start(struct rsdview *view, RsdCmd *cmd)
{
	RsdStatus status = rsd_submit(view->drive, cmd, view->now);

	return status == RSD_OK ? 0 : status == RSD_E_NOMEM ? -ENOMEM
							    : -EINVAL;
}

static int transfer(struct rsdview *view, uint32_t ns, RsdOp op, uint64_t lba,
		    uint32_t n, void *data, void *oob)
{
	RsdCmd *cmd = rsd_cmd_new(view->drive, ns, op, lba, n);
	size_t bytes = (size_t)n * BLOCK;
	size_t meta = (size_t)n * rsd_oob(view->drive, ns);
	int ret;

	if (!cmd)
		return -ENOMEM;
	if (op == RSD_WRITE) {
		memcpy(cmd->data, data, bytes);
		if (meta && oob)
			memcpy(cmd->oob, oob, meta);
		else if (meta)
			memset(cmd->oob, 0, meta);
	}
	ret = start(view, cmd);
	if (!ret)
		ret = finish(view, cmd);
	if (!ret && op == RSD_READ) {
		memcpy(data, cmd->data, bytes);
		if (meta && oob)
			memcpy(oob, cmd->oob, meta);
	}
	rsd_cmd_free(view->drive, cmd);
	return ret;
}

int rsdview_read(struct rsdview *view, uint64_t lba, uint32_t n, void *data,
		 void *oob)
{
	return transfer(view, 0, RSD_READ, lba, n, data, oob);
}

int rsdview_read_of(struct rsdview *view, uint32_t ns, uint64_t lba, uint32_t n,
		    void *data, void *oob)
{
	return transfer(view, ns, RSD_READ, lba, n, data, oob);
}

int rsdview_write(struct rsdview *view, uint64_t lba, uint32_t n,
		  const void *data, const void *oob)
{
	return transfer(view, 0, RSD_WRITE, lba, n, (void *)data, (void *)oob);
}

static int command(struct rsdview *view, RsdOp op, uint64_t lba)
{
	RsdCmd *cmd = rsd_cmd_new(view->drive, 0, op, lba, 0);
	int ret;

	if (!cmd)
		return -ENOMEM;
	ret = start(view, cmd);
	if (!ret)
		ret = finish(view, cmd);
	rsd_cmd_free(view->drive, cmd);
	return ret;
}

int rsdview_reset(struct rsdview *view, uint32_t zone)
{
	return command(view, RSD_ZONE_RESET, zone * view->geo.zone_size);
}

int rsdview_flush(struct rsdview *view)
{
	return command(view, RSD_FLUSH, 0);
}
