// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <stdlib.h>

#include "drives.h"
#include "rsd.h"

#define PAGE		4096u
#define LARGEST		128u	/* pages of a command to the disk, as Linux has it */
#define DISK_DEPTH	32u	/* commands that a SATA disk takes (NCQ) */

struct flight {
	struct wait *waits;
	int which;
	RsdOp op;
	uint64_t page;
	uint32_t pages;
	struct flight *next;	/* to be submitted to the disk */
};

struct drives {
	struct drives_config cfg;
	struct {
		RsdDrive *core;
		uint64_t lbas;
	} drive[DRIVES];
	uint64_t now;
	struct flight *queue, **queue_end;	/* the disk's */
	uint32_t in_disk;
	uint64_t disk_waiting;
};

static void fail(const char *why)
{
	fprintf(stderr, "hfmsim: %s\n", why);
	exit(1);
}

/*
 * This is SLC flash with the times of HFM's reference 35 (Samsung K9XXG08XXM),
 * 32 dies of it, so that the dies do not limit the drive. Its one core takes a
 * time for each command, and one for each page: 540 MB/s (HFM 4.1).
 */
static void configure_flash(RsdConfig *cfg, const struct drives_config *wanted)
{
	uint64_t row = 8 * 4 * 64 * PAGE;

	rsd_preset_find("custom")->apply(cfg);
	cfg->ftl = RSD_FTL_PAGE;
	cfg->channels = 8;
	cfg->ways = 4;
	cfg->pages = 64;
	cfg->over_provision = 25;
	cfg->blocks = wanted->flash_bytes * 5 / 4 / row + 1;
	cfg->t_cmd_ns = 300;
	cfg->t_xfer_ns = 20000;
	cfg->t_read_ns = 25000;
	cfg->t_prog_ns = 200000;
	cfg->t_erase_ns = 1500000;
	cfg->write_buffer = 4 << 20;
	cfg->ack = RSD_ACK_BUFFER;
	cfg->cores = 1;
	cfg->t_fw_read_ns = wanted->command_ns;
	cfg->t_fw_write_ns = wanted->command_ns;
	cfg->t_fw_page_ns = 7585;
}

struct drives *drives_new(const struct drives_config *cfg)
{
	struct drives *d = calloc(1, sizeof(*d));
	RsdConfig config[DRIVES] = { 0 };
	char err[RSD_ERR_LEN];
	RsdGeometry geo;
	int i;

	if (!d)
		fail("there is no memory for the drives; choose a smaller section");
	d->cfg = *cfg;
	d->queue_end = &d->queue;
	configure_flash(&config[FLASH], cfg);
	rsd_preset_find("barracuda-320")->apply(&config[DISK]);
	for (i = 0; i < DRIVES; i++) {
		d->drive[i].core = rsd_open(NULL, &config[i], err);
		if (!d->drive[i].core)
			fail(err);
		rsd_geometry(d->drive[i].core, 0, &geo);
		d->drive[i].lbas = geo.lbas;
	}
	if (d->drive[FLASH].lbas * PAGE < cfg->flash_bytes)
		fail("the flash drive is smaller than the section: please report this");
	return d;
}

static void free_flight(struct flight *f)
{
	struct wait *next;

	for (; f->waits; f->waits = next) {
		next = f->waits->next;
		free(f->waits);
	}
	free(f);
}

void drives_free(struct drives *d)
{
	struct flight *f, *next;
	int i;

	for (f = d->queue; f; f = next) {
		next = f->next;
		free_flight(f);
	}
	for (i = 0; i < DRIVES; i++)
		rsd_close(d->drive[i].core);
	free(d);
}

static void submit(struct drives *d, struct flight *f)
{
	RsdDrive *drive = d->drive[f->which].core;
	RsdCmd *cmd = rsd_cmd_new(drive, 0, f->op, f->page, f->pages);
	RsdStatus status;

	if (!cmd)
		fail("there is no memory for a command");
	cmd->opaque = f;
	status = rsd_submit(drive, cmd, d->now);
	if (status != RSD_OK)
		fail(rsd_status_name(status));
}

static void feed_disk(struct drives *d)
{
	while (d->queue && d->in_disk < DISK_DEPTH) {
		struct flight *f = d->queue;

		d->queue = f->next;
		if (!d->queue)
			d->queue_end = &d->queue;
		d->in_disk++;
		submit(d, f);
	}
}

static void send(struct drives *d, int which, RsdOp op, uint64_t page,
		 uint32_t pages, struct wait *waits)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (!f)
		fail("there is no memory for a command");
	*f = (struct flight) { .waits = waits, .which = which, .op = op,
			       .page = page, .pages = pages };
	if (which == FLASH) {
		submit(d, f);
		return;
	}
	*d->queue_end = f;
	d->queue_end = &f->next;
	d->disk_waiting += op == RSD_WRITE ? pages : 0;
	feed_disk(d);
}

void drives_write(struct drives *d, int which, uint64_t page, uint32_t pages,
		  struct wait *waits)
{
	send(d, which, RSD_WRITE, page, pages, waits);
}

/*
 * Addresses at home wrap around the disk. Its commands are not larger than
 * LARGEST.
 */
static void send_for(struct drives *d, int which, RsdOp op, uint64_t page,
		     uint32_t pages, struct call *call)
{
	while (pages) {
		struct wait *wait = malloc(sizeof(*wait));
		uint64_t at = page % d->drive[which].lbas;
		uint64_t n = pages;

		if (which == DISK && n > LARGEST)
			n = LARGEST;
		if (n > d->drive[which].lbas - at)
			n = d->drive[which].lbas - at;
		if (!wait)
			fail("there is no memory for a command");
		wait->call = call;
		wait->next = NULL;
		call->left[which]++;
		send(d, which, op, at, n, wait);
		page += n;
		pages -= n;
	}
}

void drives_write_for(struct drives *d, int which, uint64_t page, uint32_t pages,
		      struct call *call)
{
	send_for(d, which, RSD_WRITE, page, pages, call);
}

void drives_read_for(struct drives *d, int which, uint64_t page, uint32_t pages,
		     struct call *call)
{
	send_for(d, which, RSD_READ, page, pages, call);
}

static void complete(struct drives *d, struct flight *f)
{
	struct wait *w;

	if (f->which == DISK) {
		d->in_disk--;
		d->disk_waiting -= f->op == RSD_WRITE ? f->pages : 0;
		feed_disk(d);
	}
	for (w = f->waits; w; w = w->next)
		d->cfg.done(d->cfg.to, w->call, f->which);
	free_flight(f);
}

bool drives_step(struct drives *d)
{
	uint64_t when, first = UINT64_MAX;
	RsdCmd *cmd;
	int i;

	for (i = 0; i < DRIVES; i++)
		if (rsd_next_event(d->drive[i].core, &when) && when < first)
			first = when;
	if (first == UINT64_MAX)
		return false;
	if (first > d->now)
		d->now = first;
	for (i = 0; i < DRIVES; i++) {
		while ((cmd = rsd_advance(d->drive[i].core, d->now))) {
			struct flight *f = cmd->opaque;

			if (cmd->status != RSD_OK)
				fail(rsd_status_name(cmd->status));
			rsd_cmd_free(d->drive[i].core, cmd);
			complete(d, f);
		}
	}
	return true;
}

uint64_t drives_now(const struct drives *d)
{
	return d->now;
}

uint64_t drives_disk_waiting(const struct drives *d)
{
	return d->disk_waiting;
}

void drives_counters(const struct drives *d, struct drives_counters *counters)
{
	RsdCounters flash, disk;

	rsd_counters(d->drive[FLASH].core, &flash);
	rsd_counters(d->drive[DISK].core, &disk);
	counters->flash_programs = flash.prog_host;
	counters->flash_copies = flash.prog_clean + flash.prog_wear;
	counters->flash_erases = flash.wear_sum;
	counters->disk_written = disk.disk_write_pages;
	counters->disk_seeks = disk.disk_seeks;
}
