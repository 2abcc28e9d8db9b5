// SPDX-License-Identifier: GPL-2.0-or-later
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "checkpoint/checkpoint.h"
#include "home/home.h"
#include "ops/ops.h"
#include "tools/flashless.h"

const char *program = "fsck.rfs";

static const char usage[] =
"usage: fsck.rfs [-n] [-p|-a|-y] [-v] [-C FD] [--rescan] [--slow DEV] DEVICE\n"
"       fsck.rfs [-n|-y] [-v] --replica --slow DEV DEVICE\n"
"\n"
"Check an RFS that is not mounted. What a power cut left is first recovered, in\n"
"memory, or on the device with -p, -a or -y. A repair is made in memory first, and\n"
"on the device only if the volume is without a fault then.\n"
"\n"
"  -n          Change nothing. This is the default.\n"
"  -p, -a      Recover, and repair what takes nothing away, which is counts.\n"
"  -y          Repair all. Names, blocks and inodes that cannot be are left out, and\n"
"              inodes without a name go to lost+found.\n"
"  -v          Say what was looked at.\n"
"  -C FD       Say how far the check is: on the terminal if FD is 0, or else by lines\n"
"              to this file descriptor, as fsck(8) reads them. A line has the pass,\n"
"              the blocks done, of how many, and the device. Pass 1 is the rescan,\n"
"              and pass 2 the check.\n"
"  --rescan    Do without check-points and inode map, and find all by page metadata.\n"
"              With -y the volume gets a new check-point.\n"
"  --slow DEV  This is the slow device of a hybrid volume.\n"
"  --replica   Flash is lost: say which files the slow device has, and what of the\n"
"              others is lost. With -y the volume is made anew on DEVICE, which is an\n"
"              empty drive like the one that was lost.\n"
"\n"
"example: fsck.rfs --rescan -y /dev/nvme0n1\n"
"The exit status is 0 if there is no fault, 1 if the volume was recovered or repaired\n"
"and no fault is left, 4 if there are faults, 8 if the device or the volume cannot be\n"
"read, and 16 if the arguments are wrong.\n";

#define FSCK_MENDED	1
#define FSCK_FAULTS	4
#define FSCK_ERROR	8
#define FSCK_USAGE	16

#define LINES	100	/* of faults */
#define U(x)	((unsigned long long)(x))

struct options {
	bool write;		/* on the device */
	bool all;		/* also what takes something away */
	bool verbose, rescan, replica;
	int progress;		/* file descriptor, 0: the terminal; NOBODY */
	const char *slow;
};

#define NOBODY	(-1)		/* asks how far it is */

enum pass { RESCAN = 1, CHECK };

struct teller {
	u32 lines;		/* of faults, so far */
	enum pass pass;
	int progress;
	const char *path;
};

static void say(void *arg, const char *text)
{
	struct teller *t = arg;

	if (++t->lines <= LINES)
		printf("%s\n", text);
	else if (t->lines == LINES + 1)
		printf("and more\n");
}

static void tell_progress(void *arg, u64 done, u64 all)
{
	const struct teller *t = arg;

	if (t->progress) {
		dprintf(t->progress, "%d %llu %llu %s\n", t->pass, U(done),
			U(all), t->path);
		return;
	}
	printf("\r%s: %s %.1f%%%s", t->path,
	       t->pass == RESCAN ? "rescan" : "check", 100. * done / all,
	       done == all ? "\n" : "");
	fflush(stdout);
}

/* Returns a report that prints the faults of a pass, and its progress. */
static struct rfs_report told(struct teller *t, enum pass pass)
{
	t->pass = pass;
	return (struct rfs_report) {
		.say = say,
		.progress = t->progress == NOBODY ? NULL : tell_progress,
		.arg = t,
		.read_data = pass == CHECK,
	};
}

static void tell(const struct rfs_fs *fs, const struct rfs_report *report)
{
	const struct rfs_recovered *r = &fs->recovered;

	printf("%llu files, %llu directories, %llu blocks; %llu of %llu blocks in use\n",
	       U(report->files), U(report->dirs), U(report->blocks),
	       U(fs->live), U(fs->user_blocks));
	if (fs->home)
		printf("slow device: %llu blocks of files, %llu of %llu in use\n",
		       U(report->homes), U(fs->home->count[RFS_SLOW_ALONE] +
					   fs->home->count[RFS_SLOW_BOTH]),
		       U(fs->home->blocks));
	printf("recovery: %llu pages read, %llu records, %llu pages applied, %llu dropped, %llu unreadable, %llu transactions incomplete, %llu orphans\n",
	       U(r->pages_read), U(r->records), U(r->pages_applied),
	       U(r->pages_dropped), U(r->pages_bad), U(r->txns_dropped),
	       U(r->orphans));
}

static bool recovered(const struct rfs_fs *fs)
{
	return fs->recovered.pages_window || fs->recovered.pages_bad ||
	       fs->recovered.orphans;
}

/* Returns the exit status for an error of the core, and prints the error. */
static int failed(const struct rfs_device *device, const char *what, int ret)
{
	if (!rfs_slow_short(device, ret))
		complain("%s: %s%s", device->path, what, rfs_error(ret));
	return ret == -EUCLEAN ? FSCK_FAULTS : FSCK_ERROR;
}

static int look_at(const struct rfs_device *device, const struct options *o,
		   bool *was_cut)
{
	struct teller teller = { .progress = o->progress, .path = device->path };
	struct rfs_report report = told(&teller, CHECK);
	struct rfs_device over;
	struct rfs_fs *fs;
	int ret;

	ret = rfs_overlay_open(device, &over);
	if (ret)
		return failed(device, "", ret);
	/*
	 * A mount for writing makes a check-point, so the recovered state is
	 * checked too.
	 */
	ret = rfs_mount(over.ops, over.dev, &over.geo, false, 0, &fs);
	if (!ret) {
		*was_cut = recovered(fs);
		ret = rfs_check(fs, &report);
		if (o->verbose && !ret)
			tell(fs, &report);
		if (fs->recovered.log_gap)
			printf("log: %llu blocks after a gap; they were not acknowledged, or the medium has failed\n",
			       U(fs->recovered.log_gap));
		rfs_unmount_nosync(fs);
	}
	rfs_device_close(&over);
	/* --rescan refuses hybrid volumes. */
	if ((ret == -EUCLEAN || ret == -EINVAL) && !device->geo.slow)
		printf("%s: fsck.rfs --rescan can do without check-points and inode map\n",
		       device->path);
	if (ret)
		return failed(device, "", ret);
	if (report.faults)
		printf("%s: %llu faults\n", device->path, U(report.faults));
	return report.faults ? FSCK_FAULTS : 0;
}

/*
 * Returns 0 if the repair is done and there is no fault. *losses counts repairs
 * that take something away.
 */
static int repair(const struct rfs_device *device, bool silent, u64 *losses)
{
	struct rfs_report report = { 0 }, after = { .read_data = true };
	struct teller teller = { 0 };
	struct rfs_fs *fs;
	int ret;

	report.say = silent ? NULL : say;
	report.arg = &teller;
	ret = rfs_mount(device->ops, device->dev, &device->geo, false, 0, &fs);
	if (ret)
		return ret;
	ret = rfs_repair(fs, &report);
	if (!ret)
		ret = rfs_checkpoint(fs, 0);
	if (!ret)
		ret = rfs_check(fs, &after);
	*losses = report.losses;
	if (ret || after.faults) {
		rfs_unmount_nosync(fs);
		return ret ? ret : -EUCLEAN;
	}
	return rfs_unmount(fs);
}

/* Repairs in memory first: a repair that does not end well changes nothing. */
static int mend(const struct rfs_device *device, const struct options *o)
{
	struct rfs_device over;
	u64 losses;
	int ret = rfs_overlay_open(device, &over);

	if (!ret) {
		ret = repair(&over, true, &losses);
		rfs_device_close(&over);
	}
	if (ret) {
		complain("%s: it cannot be repaired so that no fault is left; nothing was changed",
			 device->path);
		return FSCK_FAULTS;
	}
	if (losses && !o->all) {
		complain("%s: %llu repairs take something away: -y makes them; nothing was changed",
			 device->path, U(losses));
		return FSCK_FAULTS;
	}
	printf("%s: repair\n", device->path);
	ret = repair(device, false, &losses);
	if (ret)
		return failed(device, "repair: ", ret);
	printf("%s: repaired\n", device->path);
	return FSCK_MENDED;
}

static int recover(const struct rfs_device *device)
{
	struct rfs_fs *fs;
	int ret = rfs_mount(device->ops, device->dev, &device->geo, false, 0,
			    &fs);

	if (!ret)
		ret = rfs_unmount(fs);
	if (!ret) {
		printf("%s: recovered\n", device->path);
		return FSCK_MENDED;
	}
	complain("%s: recovery: %s", device->path, rfs_error(ret));
	return FSCK_ERROR;
}

static void tell_rescue(const struct rfs_rescue *r, const struct rfs_fs *fs)
{
	printf("rescan: %llu pages of the volume, %llu inodes; %llu records and %llu pages since the check-point\n",
	       U(r->pages), U(fs->inodes), U(fs->recovered.records),
	       U(fs->recovered.pages_applied));
	if (r->super_lost)
		printf("rescan: the superblock is lost, and with it the label; the volume is taken to be as big as the device\n");
	if (r->older)
		printf("rescan: the last check-point was not written to its end: what is there is the one before and what was made durable since\n");
	if (r->bad_meta)
		printf("rescan: %llu blocks of metadata cannot be used\n",
		       U(r->bad_meta));
	if (r->forgotten)
		printf("rescan: %llu inodes without a name were deleted\n",
		       U(r->forgotten));
	if (r->doubtful)
		printf("rescan: of %llu inodes without a name it cannot be known whether they were deleted, since directories are damaged: lost+found has them\n",
		       U(r->doubtful));
	if (r->inodes_made)
		printf("rescan: blocks of the node map are lost: %llu leaves of the index were made of the metadata of pages, files that were told: %llu. Blocks of these files may be missing (they read as zeroes), or older, or such as were punched or cut off; %llu of the files lost a block or do not have as many as they had\n",
		       U(r->leaves_made), U(r->inodes_made), U(r->unlike));
	if (fs->recovered.records_failed)
		printf("rescan: %llu records of the log do not fit what is there\n",
		       U(fs->recovered.records_failed));
}

static void tell_made(void *teller, u32 ino)
{
	(void)teller;
	printf("rescan: inode %u: its blocks are those of pages' metadata, or of an older leaf\n",
	       ino);
}

/* Rescans a volume. -EUCLEAN says that faults are left. */
static int rescan_on(const struct rfs_device *device, bool silent, int progress)
{
	struct teller teller = { .progress = progress, .path = device->path };
	struct rfs_report report = told(&teller, RESCAN);
	struct rfs_rescue rescue;
	struct rfs_fs *fs;
	int ret;

	if (silent)
		report.say = NULL;
	else
		report.made = tell_made;
	ret = rfs_rescan(device->ops, device->dev, &device->geo, &report,
			 &rescue, &fs);
	if (ret)
		return ret;
	if (!silent)
		tell_rescue(&rescue, fs);
	report = told(&teller, CHECK);
	if (silent)
		report.say = NULL;
	ret = rfs_check(fs, &report);
	if (ret) {
		rfs_unmount_nosync(fs);
		return ret;
	}
	ret = rfs_unmount(fs);
	return !ret && report.faults ? -EUCLEAN : ret;
}

static int rebuild(const struct rfs_device *device, const struct options *o)
{
	struct rfs_device over;
	int ret = rfs_overlay_open(device, &over);

	if (!ret) {
		ret = rescan_on(&over, false, o->progress);
		rfs_device_close(&over);
	}
	if (ret == -EOPNOTSUPP) {
		complain("%s: rescan: a hybrid volume, whose files are on a slow device, too, or one of another format: --rescan cannot find its files; nothing was changed. Run fsck.rfs --slow DEV without it, or read what is left with dump.rfs",
			 device->path);
		return FSCK_ERROR;
	}
	if (ret && ret != -EUCLEAN)
		return failed(device, "rescan: ", ret);
	if (!o->all) {
		printf("%s: nothing was changed; -y makes it so\n",
		       device->path);
		return FSCK_FAULTS;
	}
	/* A part that cannot be read is no reason to leave the rest. */
	ret = rescan_on(device, true, o->progress);
	if (ret)
		return failed(device, "rescan: ", ret);
	printf("%s: rebuilt\n", device->path);
	return FSCK_MENDED;
}

static void say_loss(void *arg, const struct rfs_loss *loss)
{
	const struct options *o = arg;

	if (o->verbose)
		printf("inode %u: ", loss->ino);
	if (loss->unreadable)
		printf("%s: cannot be read\n", loss->path);
	else
		printf("%s: bytes %llu to %llu are lost\n", loss->path,
		       U(loss->from), U(loss->to - 1));
}

/*
 * Says that the volume was newer than its replica: later changes are lost, and
 * their names are not known.
 */
static void tell_later(const struct rfs_losses *losses)
{
	if (losses->later)
		printf("the volume was newer: check-point %llu was begun after this replica; what was changed since is lost, too\n",
		       U(losses->later));
	if (losses->begun)
		printf("a later replica, of check-point %llu, was begun and did not end\n",
		       U(losses->begun));
}

/*
 * Prints the losses of a volume without its flash. *lost says whether there are
 * any.
 */
static int tell_losses(struct rfs_flashless *f, struct options *o, bool *lost)
{
	struct rfs_losses losses = { .say = say_loss, .arg = o };
	time_t made = rfs_flashless_time(f) / 1000000000;
	struct rfs_fs *fs;
	char text[40] = "";
	struct tm tm;
	int ret = rfs_mount(&rfs_flashless_ops, f, rfs_flashless_geometry(f), true,
			    0, &fs);

	if (ret)
		return ret;
	if (gmtime_r(&made, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	ret = rfs_flashless_losses(fs, &losses);
	if (!ret)
		printf("replica of check-point %llu, of %s: %llu files are whole, %llu have lost %llu blocks, %llu files and directories cannot be read\n",
		       U(rfs_flashless_seq(f)), text, U(losses.whole),
		       U(losses.damaged), U(losses.blocks), U(losses.unreadable));
	if (!ret)
		tell_later(&losses);
	*lost = losses.damaged || losses.unreadable;
	rfs_unmount_nosync(fs);
	return ret;
}

/*
 * Leaves out, in memory, the parts that flash alone had. *last: see
 * rfs_overlay_write().
 */
static int leave_out(const struct rfs_device *over, const u8 *there, u64 *last)
{
	struct rfs_report report = { .there = there }, after = { .read_data = true };
	int ret = rfs_flashless_leave_out(over->ops, over->dev, &over->geo, &report,
					  &after, last);

	return !ret && after.faults ? -EUCLEAN : ret;
}

/* Says whether a drive is empty, and as large as the one that is gone. */
static bool may_replace(const struct rfs_device *device,
			const struct rfs_geometry *geo)
{
	struct rfs_dev_zone zone;
	u32 nr;

	if (device->geo.zones < geo->zones ||
	    device->geo.zone_blocks != geo->zone_blocks ||
	    device->geo.oob_bytes < RFS_OOB_BYTES) {
		complain("%s: %u zones of %u blocks, %u bytes of page metadata; the drive that is lost had %u of %u, and %u",
			 device->path, device->geo.zones, device->geo.zone_blocks,
			 device->geo.oob_bytes, geo->zones, geo->zone_blocks,
			 geo->oob_bytes);
		return false;
	}
	for (nr = 0; nr < geo->zones; nr++) {
		if (device->ops->report(device->dev, nr, &zone) ||
		    zone.cond != RFS_DEV_OK || !zone.wp)
			continue;
		complain("%s: it has data; reset all of its zones if you do not need it (blkzone reset)",
			 device->path);
		return false;
	}
	return true;
}

static int make_anew(const struct rfs_device *device, struct rfs_flashless *f)
{
	struct rfs_device below = { .ops = &rfs_flashless_ops, .dev = f,
				    .geo = *rfs_flashless_geometry(f),
				    .path = device->path }, over;
	u64 last;
	int ret;

	if (!may_replace(device, &below.geo))
		return FSCK_ERROR;
	ret = rfs_overlay_open(&below, &over);
	if (ret)
		return failed(device, "replica: ", ret);
	ret = leave_out(&over, rfs_flashless_there(f), &last);
	if (!ret)
		ret = rfs_overlay_write(&over, device, last);
	rfs_device_close(&over);
	if (ret)
		return failed(device, "replica: ", ret);
	printf("%s: made anew\n", device->path);
	return FSCK_MENDED;
}

static int restore(const struct rfs_device *device, struct options *o)
{
	struct rfs_flashless *f;
	bool lost = false;
	int ret = rfs_flashless_open(device->geo.slow, &f);

	if (ret == -ENODEV || ret == -ENOENT) {
		complain("--slow %s: %s", o->slow, ret == -ENODEV ?
			 "no slow device of an RFS" :
			 "it has no replica of the metadata; mkfs.rfs --replica makes volumes that have one");
		return FSCK_ERROR;
	}
	if (ret) {
		complain("--slow %s: replica: %s", o->slow, rfs_error(ret));
		return ret == -EUCLEAN ? FSCK_FAULTS : FSCK_ERROR;
	}
	ret = tell_losses(f, o, &lost);
	if (ret)
		ret = failed(device, "replica: ", ret);
	else if (o->all)
		ret = make_anew(device, f);
	else
		ret = lost ? FSCK_FAULTS : 0;
	rfs_flashless_close(f);
	return ret;
}

/*
 * Returns the descriptor of --progress. NOBODY says that it is none: a number
 * that is free could become the device's.
 */
static int progress_to(const char *text)
{
	char *end;
	long fd = strtol(text, &end, 10);
	int how = -1;

	if (end != text && !*end && fd >= 0 && fd <= INT_MAX)
		how = fcntl(fd ? fd : STDOUT_FILENO, F_GETFL);
	if (how >= 0 && (how & O_ACCMODE) != O_RDONLY)
		return fd;
	complain("-C %s: must be 0, for the terminal, or the number of a file descriptor that is open for writing, such as 2",
		 text);
	return NOBODY;
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{ "rescan", no_argument, NULL, 'R' },
		{ "slow", required_argument, NULL, 'S' },
		{ "replica", no_argument, NULL, 'M' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "npayvhfC:TV", names, NULL)) != -1) {
		switch (c) {
		case 'n':
			o->write = false;
			o->all = false;
			break;
		case 'y':
			o->all = true;
			/* fall through */
		case 'p':
		case 'a':
			o->write = true;
			break;
		case 'v':
		case 'V':
			o->verbose = true;
			break;
		case 'R':
			o->rescan = true;
			break;
		case 'S':
			o->slow = optarg;
			break;
		case 'M':
			o->replica = true;
			break;
		case 'C':
			o->progress = progress_to(optarg);
			if (o->progress == NOBODY)
				return false;
			break;
		case 'f':	/* it always checks */
		case 'T':
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			return false;
		}
	}
	if (o->replica && (!o->slow || o->rescan)) {
		complain("--replica: it is on the slow device: give --slow DEV, and leave --rescan out");
		return false;
	}
	return argc - optind == 1;
}

int main(int argc, char **argv)
{
	struct options o = { .progress = NOBODY };
	struct rfs_device device;
	bool was_cut = false;
	int ret;

	if (!parse(argc, argv, &o)) {
		fputs(usage, stderr);
		return FSCK_USAGE;
	}
	/* A repair goes on if nobody reads its progress any more. */
	if (o.progress != NOBODY)
		signal(SIGPIPE, SIG_IGN);
	if (rfs_device_open(argv[optind], o.write, &device))
		return FSCK_ERROR;
	if (o.slow && rfs_slow_open(o.slow, o.write, &device)) {
		rfs_device_close(&device);
		return FSCK_ERROR;
	}
	device.slow.will_repair = true;
	if (device.busy)
		printf("%s: it is mounted or otherwise in use: what is written meanwhile may look like a fault\n",
		       device.path);
	if (o.replica) {
		ret = restore(&device, &o);
	} else if (o.rescan) {
		ret = rebuild(&device, &o);
	} else {
		ret = look_at(&device, &o, &was_cut);
		if (ret == FSCK_FAULTS && o.write)
			ret = mend(&device, &o);
		else if (!ret && was_cut && o.write)
			ret = recover(&device);
		else if (!ret && was_cut)
			printf("%s: to be recovered at the next mount\n",
			       device.path);
	}
	rfs_device_close(&device);
	return ret;
}
