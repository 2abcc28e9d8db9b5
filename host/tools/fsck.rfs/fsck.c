// SPDX-License-Identifier: GPL-2.0-or-later
#include <getopt.h>
#include <stdio.h>

#include "device.h"

const char *program = "fsck.rfs";

static const char usage[] =
"usage: fsck.rfs [-n] [-p|-a|-y] [-v] DEVICE\n"
"\n"
"Check an RFS that is not mounted. What a power cut left is first recovered, in\n"
"memory, or on the device with -p, -a or -y. Faults that are found then are\n"
"told, not repaired.\n"
"\n"
"  -n          change nothing (the default)\n"
"  -p, -a, -y  recover on the device, as mounting would\n"
"  -v          say what was looked at\n"
"\n"
"Exit status: 0 no fault, 1 recovered and no fault, 4 faults, 8 the device or\n"
"the volume cannot be read, 16 wrong arguments.\n";

#define FSCK_RECOVERED	1
#define FSCK_FAULTS	4
#define FSCK_ERROR	8
#define FSCK_USAGE	16

static void say(void *arg, const char *text)
{
	u32 *lines = arg;

	if (++*lines <= 100)
		printf("%s\n", text);
	else if (*lines == 101)
		printf("and more\n");
}

static void tell(const struct rfs_fs *fs, const struct rfs_report *report)
{
	const struct rfs_recovered *r = &fs->recovered;

	printf("%llu files, %llu directories, %llu blocks; %llu of %llu blocks in use\n",
	       (unsigned long long)report->files,
	       (unsigned long long)report->dirs,
	       (unsigned long long)report->blocks,
	       (unsigned long long)fs->live,
	       (unsigned long long)fs->user_blocks);
	printf("recovery: %llu pages read, %llu records, %llu pages applied, %llu dropped, %llu unreadable, %llu transactions incomplete, %llu orphans\n",
	       (unsigned long long)r->pages_read,
	       (unsigned long long)r->records,
	       (unsigned long long)r->pages_applied,
	       (unsigned long long)r->pages_dropped,
	       (unsigned long long)r->pages_bad,
	       (unsigned long long)r->txns_dropped,
	       (unsigned long long)r->orphans);
}

static bool recovered(const struct rfs_fs *fs)
{
	return fs->recovered.pages_window || fs->recovered.pages_bad ||
	       fs->recovered.orphans;
}

static int check(const struct rfs_device *device, bool verbose, bool *was_cut)
{
	struct rfs_report report = { .say = say, .read_data = true };
	struct rfs_device over;
	struct rfs_fs *fs;
	u32 lines = 0;
	int ret;

	report.arg = &lines;
	ret = rfs_overlay_open(device, &over);
	if (ret) {
		complain("%s: %s", device->path, rfs_error(ret));
		return FSCK_ERROR;
	}
	/* with a check-point, so that what was recovered is checked too */
	ret = rfs_mount(over.ops, over.dev, &over.geo, false, 0, &fs);
	if (!ret) {
		*was_cut = recovered(fs);
		ret = rfs_check(fs, &report);
		if (verbose && !ret)
			tell(fs, &report);
		if (fs->recovered.log_gap)
			printf("log: %llu blocks after a gap; they were not acknowledged, or the medium has failed\n",
			       (unsigned long long)fs->recovered.log_gap);
		rfs_drop(fs);
	}
	rfs_device_close(&over);
	if (ret) {
		complain("%s: %s", device->path, rfs_error(ret));
		return ret == -EUCLEAN ? FSCK_FAULTS : FSCK_ERROR;
	}
	if (report.faults)
		printf("%s: %llu faults\n", device->path,
		       (unsigned long long)report.faults);
	return report.faults ? FSCK_FAULTS : 0;
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
		return FSCK_RECOVERED;
	}
	complain("%s: recovery: %s", device->path, rfs_error(ret));
	return FSCK_ERROR;
}

int main(int argc, char **argv)
{
	bool repair = false, verbose = false, was_cut = false;
	struct rfs_device device;
	int c, ret;

	while ((c = getopt(argc, argv, "npayvhfC:TV")) != -1) {
		switch (c) {
		case 'n':
			repair = false;
			break;
		case 'p':
		case 'a':
		case 'y':
			repair = true;
			break;
		case 'v':
		case 'V':
			verbose = true;
			break;
		case 'f':	/* it always checks */
		case 'C':
		case 'T':
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return FSCK_USAGE;
		}
	}
	if (argc - optind != 1) {
		fputs(usage, stderr);
		return FSCK_USAGE;
	}
	if (rfs_device_open(argv[optind], repair, &device))
		return FSCK_ERROR;
	ret = check(&device, verbose, &was_cut);
	if (!ret && was_cut && repair)
		ret = recover(&device);
	else if (!ret && was_cut)
		printf("%s: to be recovered at the next mount\n", device.path);
	rfs_device_close(&device);
	return ret;
}
