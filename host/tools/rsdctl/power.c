// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rewinding takes the namespaces away from the kernel and brings them back:
 *
 *   1. Each block device is opened exclusively, which fails while something is
 *      mounted from it, and nobody else may have it open.
 *   2. Detach, which the kernel answers by forgetting the disk.
 *   3. Tell the drive where to; it happens when the controller is reset.
 *   4. Reset; the controller starts with the namespaces attached.
 *   5. Attach once more: it is refused, being so already, but then the kernel
 *      looks for namespaces and is done with that when the command returns.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libnvme.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "power.h"
#include "rsd-vendor.h"
#include "snapshot.h"

#define DEFAULT_NAMESPACE "/dev/nvme0n1"
#define MAX_DISKS 2		/* namespaces of a drive */
#define MAX_INSTANCES 64	/* names that a namespace may have */
#define WAIT_MS 10000		/* for a disk to come back */

static const char *const kinds[] = { "program", "erase", "command",
				       "power cut" };
static const char *const commands[] = {
	[2] = "write zeroes", [3] = "zone reset", [4] = "zone finish", [5] = "trim",
};

struct drive {
	int instance;		/* of the controller */
	int fd;			/* of the controller */
	__u32 nsid;		/* of the namespace that was named */
	__u16 cntlid;
	RsdOplogData state;
};

static int nvme_error(const char *what, int ret)
{
	if (ret < 0)
		error("%s: %s%s", what, strerror(errno),
		      errno == EACCES || errno == EPERM ? "; run as root" : "");
	else
		error("%s: %s", what, nvme_status_to_string(ret, false));
	return 1;
}

static int vendor(struct drive *drive, __u8 opcode, __u32 what, uint64_t op,
		  void *data)
{
	return nvme_admin_passthru(drive->fd, opcode, 0, 0, drive->nsid, 0, 0,
				   what, 0, op, op >> 32, 0, 0,
				   RSD_VENDOR_BYTES, data, 0, NULL, 0, NULL);
}

static int read_log(struct drive *drive, __u32 what, uint64_t op)
{
	int ret;

	memset(&drive->state, 0, sizeof(drive->state));
	ret = vendor(drive, RSD_ADMIN_OPLOG, what, op, &drive->state);
	if (ret > 0 && (ret & 0x7ff) == NVME_SC_INVALID_OPCODE) {
		error("the drive keeps no operation log: give rsd-ns the property op-log");
		return 1;
	}
	if (ret)
		return nvme_error("operation log", ret);
	if (drive->state.version != RSD_OPLOG_VERSION) {
		error("the drive's operation log has version %u, this rsdctl knows %u",
		      drive->state.version, RSD_OPLOG_VERSION);
		return 1;
	}
	return 0;
}

/* Opens the controller of a namespace's block device. */
static int open_drive(struct drive *drive, const char *device)
{
	struct nvme_id_ctrl id;
	char path[64];
	int ns, fd, ret;

	if (sscanf(device, "/dev/nvme%dn%d", &drive->instance, &ns) != 2) {
		error("%s: not the block device of a namespace, as " DEFAULT_NAMESPACE,
		      device);
		return 1;
	}
	fd = open(device, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		error("%s: %s", device, strerror(errno));
		return 1;
	}
	ret = nvme_get_nsid(fd, &drive->nsid);
	close(fd);
	if (ret)
		return nvme_error(device, ret);
	snprintf(path, sizeof(path), "/dev/nvme%d", drive->instance);
	drive->fd = open(path, O_RDWR | O_CLOEXEC);
	if (drive->fd < 0) {
		error("%s: %s", path, strerror(errno));
		return 1;
	}
	ret = nvme_identify_ctrl(drive->fd, &id);
	if (ret)
		return nvme_error(path, ret);
	drive->cntlid = id.cntlid;
	return 0;
}

/*
 * Finds the name of another process that has the device open. False says that
 * there is none.
 */
static bool find_holder(dev_t rdev, char *name, size_t size)
{
	DIR *proc = opendir("/proc"), *fds;
	struct dirent *process, *one;
	bool found = false;
	char path[600];
	struct stat st;

	while (proc && !found && (process = readdir(proc))) {
		if (process->d_name[0] < '1' || process->d_name[0] > '9' ||
		    atoi(process->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%s/fd", process->d_name);
		fds = opendir(path);
		while (fds && !found && (one = readdir(fds))) {
			snprintf(path, sizeof(path), "/proc/%s/fd/%s",
				 process->d_name, one->d_name);
			found = !stat(path, &st) && S_ISBLK(st.st_mode) &&
				st.st_rdev == rdev;
		}
		if (fds)
			closedir(fds);
		if (found)
			snprintf(name, size, "process %s", process->d_name);
	}
	if (proc)
		closedir(proc);
	return found;
}

/* Checks that nobody uses the disk of a namespace. It need not have one. */
static int check_unused(const struct drive *drive, __u32 nsid)
{
	char path[64], holder[300];
	struct stat st;
	__u32 found;
	int fd, n;

	for (n = 1; n <= MAX_INSTANCES; n++) {
		snprintf(path, sizeof(path), "/dev/nvme%dn%d", drive->instance,
			 n);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_EXCL);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0) {
			/*
			 * It may be another namespace's disk, which cannot be
			 * known.
			 */
			error("%s: %s%s", path, strerror(errno),
			      errno == EBUSY ? ": is it mounted?" : "");
			return 1;
		}
		if (nvme_get_nsid(fd, &found) || found != nsid) {
			close(fd);
			continue;
		}
		if (!fstat(fd, &st) &&
		    find_holder(st.st_rdev, holder, sizeof(holder))) {
			error("%s: %s has it open", path, holder);
			close(fd);
			return 1;
		}
		close(fd);
		return 0;
	}
	return 0;
}

static int attach(struct drive *drive, __u32 nsid, bool detach)
{
	struct nvme_ctrl_list list = { .num = 1,
				       .identifier = { drive->cntlid } };

	return nvme_admin_passthru(drive->fd, nvme_admin_ns_attach, 0, 0, nsid,
				   0, 0, detach, 0, 0, 0, 0, 0, sizeof(list),
				   &list, 0, NULL, 0, NULL);
}

/* Waits for the disk of the namespace that was named. */
static int await_disk(const char *device)
{
	int fd, ms;

	for (ms = 0; ms < WAIT_MS; ms += 10) {
		fd = open(device, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			close(fd);
			return 0;
		}
		usleep(10000);
	}
	error("%s: it did not come back after the controller's reset", device);
	return 1;
}

static int fill_power(RsdPowerData *data, const struct power_options *options)
{
	const char *outcomes = options->outcomes ? options->outcomes : "0";
	char *end;

	memset(data, 0, sizeof(*data));
	data->magic = RSD_POWER_MAGIC;
	data->op = options->op;
	if (*outcomes >= '0' && *outcomes <= '9') {
		errno = 0;
		data->seed = strtoull(outcomes, &end, 10);
		if (!*end && !errno)
			return 0;
	} else if (strspn(outcomes, "atc") == strlen(outcomes) &&
		   strlen(outcomes) < sizeof(data->outcomes)) {
		data->by_list = 1;
		memcpy(data->outcomes, outcomes, strlen(outcomes));
		return 0;
	}
	error("--outcomes %s: must be a number, the seed, or a letter for each: a = absent, t = torn, c = complete",
	      outcomes);
	return 1;
}

int power_cut(const char *device, const struct power_options *options)
{
	struct drive drive;
	RsdPowerData data;
	int ret;

	if (!device)
		device = DEFAULT_NAMESPACE;
	if (fill_power(&data, options) || open_drive(&drive, device))
		return 1;
	ret = vendor(&drive, RSD_ADMIN_POWER, RSD_POWER_CUT, 0, &data);
	if (ret)
		return nvme_error("power cut", ret);
	ret = nvme_ctrl_reset(drive.fd);
	if (ret)
		return nvme_error("controller reset", ret);
	attach(&drive, drive.nsid, false);
	return await_disk(device);
}

int power_rewind(const char *device, const struct power_options *options)
{
	RsdOplogData *state;
	struct drive drive;
	RsdPowerData data;
	int i, ret;

	if (!device)
		device = DEFAULT_NAMESPACE;
	if (fill_power(&data, options) || open_drive(&drive, device) ||
	    read_log(&drive, RSD_OPLOG_STATE, 0))
		return 1;
	state = &drive.state;
	if (options->op > state->ops) {
		error("--op %" PRIu64 ": the log has operations up to %" PRIu64,
		      options->op, (uint64_t)state->ops);
		return 1;
	}
	for (i = 0; i < MAX_DISKS; i++)
		if (state->nsid[i] && check_unused(&drive, state->nsid[i]))
			return 1;
	for (i = 0; i < MAX_DISKS; i++) {
		ret = state->nsid[i] ? attach(&drive, state->nsid[i], true) : 0;
		if (ret)
			return nvme_error("detach", ret);
	}
	ret = vendor(&drive, RSD_ADMIN_POWER, RSD_POWER_REWIND, 0, &data);
	if (ret) {
		nvme_error("rewind", ret);
		for (i = 0; i < MAX_DISKS; i++)
			if (state->nsid[i])
				attach(&drive, state->nsid[i], false);
		return 1;
	}
	ret = nvme_ctrl_reset(drive.fd);
	if (ret)
		return nvme_error("controller reset", ret);
	attach(&drive, drive.nsid, false);
	if (await_disk(device) || read_log(&drive, RSD_OPLOG_STATE, 0))
		return 1;
	if (!(state->flags & RSD_OPLOG_BRANCH) || state->at != options->op) {
		error("the drive did not rewind: see what QEMU says");
		return 1;
	}
	return 0;
}

static void print_entry(const RsdOplogEntry *e, bool json, bool first)
{
	const char *kind = e->kind < 4 ? kinds[e->kind] : "?";
	const char *command = e->what < 6 ? commands[e->what] : "format";

	if (json)
		printf("%s\n    {\"op\": %" PRIu64 ", \"time_ns\": %" PRIu64
		       ", \"kind\": \"%s\", \"%s\": %u, \"page\": %u, \"lba\": %"
		       PRIu64 ", \"protected\": %s, \"waiting\": %s}",
		       first ? "" : ",",
		       (uint64_t)e->op, (uint64_t)e->time_ns, kind,
		       e->kind == 2 ? "command" : "block", e->what, e->page,
		       (uint64_t)e->lba, e->flags & 1 ? "true" : "false",
		       e->flags & 4 ? "true" : "false");
	else if (e->kind == 3)
		printf("%8" PRIu64 " %15" PRIu64 " ns  %s\n", (uint64_t)e->op,
		       (uint64_t)e->time_ns, kind);
	else if (e->kind == 2)
		printf("%8" PRIu64 " %15" PRIu64 " ns  %s, LBA %" PRIu64 "\n",
		       (uint64_t)e->op, (uint64_t)e->time_ns, command,
		       (uint64_t)e->lba);
	else
		printf("%8" PRIu64 " %15" PRIu64
		       " ns  %s of block %u, page %u%s\n", (uint64_t)e->op,
		       (uint64_t)e->time_ns, kind, e->what, e->page,
		       e->flags & 4 ? ", waits in the write buffer" : "");
}

static void print_log(const RsdOplogData *s, bool json, bool entries)
{
	bool branch = s->flags & RSD_OPLOG_BRANCH;
	uint32_t i;

	if (json)
		printf("{\"ops\": %" PRIu64 ", \"at\": %" PRIu64
		       ", \"rewound\": %s, \"complete\": %s, \"bytes\": %" PRIu64
		       ", \"entries\": [",
		       (uint64_t)s->ops, (uint64_t)s->at,
		       branch ? "true" : "false",
		       s->flags & RSD_OPLOG_BROKEN ? "false" : "true",
		       (uint64_t)s->bytes);
	else if (!entries)
		printf("operations 0 to %" PRIu64 ", %" PRIu64 " bytes%s\n",
		       (uint64_t)s->ops, (uint64_t)s->bytes,
		       s->flags & RSD_OPLOG_BROKEN ?
		       "; the host's disk was full, no rewinding" : "");
	if (!json && !entries && branch)
		printf("rewound to %" PRIu64 "\n", (uint64_t)s->at);
	for (i = 0; entries && i < s->entries && i < RSD_OPLOG_ENTRIES; i++)
		print_entry(&s->entry[i], json, !i);
	if (json)
		printf("]}\n");
}

int power_oplog(const char *device, const struct power_options *options)
{
	bool entries = options->list || options->in_flight;
	struct drive drive;
	RsdPowerData data;
	int ret;

	if (!device)
		device = DEFAULT_NAMESPACE;
	if (open_drive(&drive, device))
		return 1;
	if (options->restart) {
		memset(&data, 0, sizeof(data));
		data.magic = RSD_POWER_MAGIC;
		ret = vendor(&drive, RSD_ADMIN_POWER, RSD_POWER_RESTART, 0,
			     &data);
		if (ret)
			return nvme_error("restart", ret);
	}
	if (read_log(&drive, options->in_flight ? RSD_OPLOG_IN_FLIGHT :
			     options->list ? RSD_OPLOG_OPS : RSD_OPLOG_STATE,
		     entries ? options->op : 0))
		return 1;
	print_log(&drive.state, options->json, entries);
	return 0;
}
