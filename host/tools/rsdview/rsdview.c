// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This shows the content of a drive's media file and operation log, without the
 * drive.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "match.h"
#include "view.h"

#define BLOCK 4096u

enum exit_code { EXIT_OK, EXIT_FAILED, EXIT_USAGE };

static const char help[] =
"usage: rsdview [--op N] [--outcomes SEED|LETTERS] [--oob] MEDIA LOG COMMAND\n"
"Shows a drive as a power cut after operation N would have left it, or as its\n"
"files have it. Neither file is changed.\n"
"\n"
"  ops              Print how many operations the log has.\n"
"  in-flight        Print what a power cut after operation N interrupts.\n"
"  zones            Print the state, attributes and written blocks of each zone.\n"
"  read LBA COUNT   Print the data of COUNT blocks, or with --oob their OOB. A block\n"
"                   that is torn is named, and zeroes come in its place.\n"
"  list             Print each operation, and what was in flight after it.\n"
"  same             Say which states a reader cannot tell apart. match.h has what it\n"
"                   is told on standard input, and what it answers.\n"
"  speed            Print how many states it shows in a second, over all operations.\n"
"\n"
"--outcomes says what became of each operation in flight: either by a letter for\n"
"each, where a is absent, t is torn and c is complete, or by a seed, which is 0 by\n"
"default. The exit status is 0 if the command succeeded, 1 if it failed, and 2 if\n"
"the usage was wrong.\n"
"Example: rsdview --op 120 --outcomes tca drive.rsd drive.log zones\n";

static const char *const kinds[] = { "program", "erase", "command", "cut" };

static void show_in_flight(const struct rsdview *view, uint64_t op)
{
	RsdLogged l;
	uint32_t i;

	for (i = 0; rsd_oplog_in_flight(rsdview_drive(view), op, i, &l); i++)
		printf("%s of block %u, page %u, since %" PRIu64 " ns%s%s\n",
		       kinds[l.kind], l.block, l.page, l.time_ns,
		       l.protected ? ", protected" :
		       l.waiting ? ", waits in the write buffer" : "",
		       l.ends ? "" : ", its end is not known");
}

/*
 * Prints "op NUMBER TIME KIND BLOCK PAGE LBA", in which a command has its
 * number as block and others have LBA 0, and "flying KIND BLOCK PAGE SINCE
 * FLAGS". Flag p says that it cannot be torn, and w that it waits in the write
 * buffer.
 */
static void show_list(const struct rsdview *view)
{
	const RsdDrive *drive = rsdview_drive(view);
	uint64_t op, ops = rsdview_ops(view);
	RsdLogged l;
	uint32_t i;

	for (op = 0; op <= ops; op++) {
		if (rsd_oplog_op(drive, op, &l))
			printf("op %" PRIu64 " %" PRIu64 " %s %u %u %" PRIu64 "\n",
			       op, l.time_ns, kinds[l.kind],
			       l.kind == RSD_LOGGED_COMMAND ? l.command : l.block,
			       l.page, l.lba);
		else
			printf("op %" PRIu64 " 0 start 0 0 0\n", op);
		for (i = 0; rsd_oplog_in_flight(drive, op, i, &l); i++)
			printf("flying %s %u %u %" PRIu64 " -%s%s\n",
			       kinds[l.kind], l.block, l.page, l.time_ns,
			       l.protected ? "p" : "", l.waiting ? "w" : "");
	}
}

static void show_zones(const struct rsdview *view)
{
	const RsdGeometry *geo = rsdview_geometry(view);
	RsdZone zone;
	uint32_t i;

	for (i = 0; i < geo->num_zones; i++) {
		rsdview_zone(view, i, &zone);
		printf("%u %u %u %" PRIu64 "\n", i, zone.state, zone.attrs,
		       zone.written);
	}
}

static int show_blocks(struct rsdview *view, uint64_t lba, uint64_t count,
		       bool want_oob)
{
	uint8_t data[BLOCK], oob[128];
	int ret;

	for (; count--; lba++) {
		ret = rsdview_read(view, lba, 1, data, oob);
		if (ret && ret != -EIO) {
			fprintf(stderr, "rsdview: LBA %" PRIu64 ": %s\n", lba,
				strerror(-ret));
			return EXIT_FAILED;
		}
		if (ret) {
			fprintf(stderr, "rsdview: LBA %" PRIu64 ": torn\n",
				lba);
			memset(data, 0, sizeof(data));
			memset(oob, 0, sizeof(oob));
		}
		if (want_oob)
			fwrite(oob, rsdview_oob(view), 1, stdout);
		else
			fwrite(data, sizeof(data), 1, stdout);
	}
	return EXIT_OK;
}

/* Shows each operation with a seed of its own, from the last to the first. */
static int show_speed(struct rsdview *view)
{
	uint64_t op, ops = rsdview_ops(view);
	char err[RSD_ERR_LEN], seed[24];
	struct timespec from, to;
	double s;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (op = ops + 1; op-- > 0;) {
		snprintf(seed, sizeof(seed), "%" PRIu64, op);
		if (rsdview_state(view, op, seed, err)) {
			fprintf(stderr, "rsdview: %s\n", err);
			return EXIT_FAILED;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	s = to.tv_sec - from.tv_sec + (to.tv_nsec - from.tv_nsec) / 1e9;
	printf("%" PRIu64 " states in %.2f s, %.0f a second\n", ops + 1, s,
	       (ops + 1) / s);
	return EXIT_OK;
}

static bool number(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

static int usage(void)
{
	fputs(help, stderr);
	return EXIT_USAGE;
}

static int run(struct rsdview *view, uint64_t op, bool want_oob, int argc,
	       char **argv)
{
	uint64_t lba, count;

	if (!strcmp(argv[0], "ops") && argc == 1)
		printf("%" PRIu64 "\n", rsdview_ops(view));
	else if (!strcmp(argv[0], "in-flight") && argc == 1)
		show_in_flight(view, op);
	else if (!strcmp(argv[0], "zones") && argc == 1)
		show_zones(view);
	else if (!strcmp(argv[0], "list") && argc == 1)
		show_list(view);
	else if (!strcmp(argv[0], "same") && argc == 1)
		return match_states(view, stdin) ? EXIT_FAILED : EXIT_OK;
	else if (!strcmp(argv[0], "speed") && argc == 1)
		return show_speed(view);
	else if (!strcmp(argv[0], "read") && argc == 3 &&
		 number(argv[1], &lba) && number(argv[2], &count))
		return show_blocks(view, lba, count, want_oob);
	else
		return usage();
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "op", required_argument, NULL, 'n' },
		{ "outcomes", required_argument, NULL, 'u' },
		{ "oob", no_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	const char *outcomes = "0";
	bool rewind = false, want_oob = false;
	char err[RSD_ERR_LEN] = "";
	struct rsdview *view;
	uint64_t op = 0;
	int opt, code;

	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return EXIT_OK;
		}
		if (opt == '?' || (opt == 'n' && !number(optarg, &op)))
			return usage();
		rewind |= opt == 'n';
		want_oob |= opt == 'b';
		if (opt == 'u')
			outcomes = optarg;
	}
	if (argc - optind < 3)
		return usage();
	view = rsdview_open(argv[optind], argv[optind + 1], err);
	if (!view || (rewind && rsdview_state(view, op, outcomes, err))) {
		fprintf(stderr, "rsdview: %s\n", err);
		rsdview_close(view);
		return EXIT_FAILED;
	}
	if (!rewind)
		op = rsdview_ops(view);
	code = run(view, op, want_oob, argc - optind - 2, argv + optind + 2);
	rsdview_close(view);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "rsdview: standard output: %s\n",
			strerror(errno));
		return EXIT_FAILED;
	}
	return code;
}
