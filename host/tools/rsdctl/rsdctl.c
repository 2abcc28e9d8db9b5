// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This shows an rsd drive's counters, its vendor log page, to people, and works
 * on its power cuts, its past and its faults.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "amplification.h"
#include "device.h"
#include "diff.h"
#include "fault.h"
#include "power.h"
#include "snapshot.h"
#include "tables.h"

enum exit_code { EXIT_OK, EXIT_FAILED, EXIT_USAGE };

/* No command prints more than this. */
static char output[256 << 10];

struct command {
	const char *name;
	int min_args, max_args;
	bool takes_json;
	int (*run)(int argc, char **argv, bool json);
	const char *help;
	const char *options;	/* of power_options, letters as long_options */
};

static void print_snapshot(const struct snapshot *s, const char *source,
			   bool json)
{
	if (json)
		snapshot_json(stdout, s);
	else
		tables_print(stdout, s, source);
}

static int run_show(int argc, char **argv, bool json)
{
	RsdLogPage page;
	struct snapshot s;
	const char *device = device_read_log(argc ? argv[0] : NULL, &page);

	if (!device || snapshot_from_page(&s, &page, device))
		return EXIT_FAILED;
	print_snapshot(&s, device, json);
	return EXIT_OK;
}

static int run_decode(int argc, char **argv, bool json)
{
	struct snapshot s;

	(void)argc;
	if (snapshot_from_file(&s, argv[0]))
		return EXIT_FAILED;
	print_snapshot(&s, argv[0], json);
	return EXIT_OK;
}

static int run_save(int argc, char **argv, bool json)
{
	RsdLogPage page;
	FILE *file;
	bool written;

	(void)json;
	/* A log of a newer version is saved too, for a newer rsdctl. */
	if (!device_read_log(argc > 1 ? argv[1] : NULL, &page))
		return EXIT_FAILED;
	file = fopen(argv[0], "wb");
	if (!file) {
		error("%s: %s", argv[0], strerror(errno));
		return EXIT_FAILED;
	}
	written = fwrite(&page, sizeof(page), 1, file) == 1;
	if (fclose(file) || !written) {
		error("%s: %s", argv[0], strerror(errno));
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static int run_diff(int argc, char **argv, bool json)
{
	struct snapshot before, after;

	(void)argc;
	if (snapshot_from_file(&before, argv[0]) ||
	    snapshot_from_file(&after, argv[1]) ||
	    diff_print(stdout, &before, &after, json))
		return EXIT_FAILED;
	return EXIT_OK;
}

static int run_counters(int argc, char **argv, bool json)
{
	(void)argc;
	(void)argv;
	(void)json;
	tables_counters(stdout);
	return EXIT_OK;
}

static struct power_options power;

static int run_oplog(int argc, char **argv, bool json)
{
	power.json = json;
	return power_oplog(argc ? argv[0] : NULL, &power);
}

static int run_rewind(int argc, char **argv, bool json)
{
	(void)json;
	if (!power.has_op) {
		error("rewind: --op N is missing");
		return EXIT_USAGE;
	}
	return power_rewind(argc ? argv[0] : NULL, &power);
}

static int run_cut(int argc, char **argv, bool json)
{
	(void)json;
	return power_cut(argc ? argv[0] : NULL, &power);
}

static int run_fail(int argc, char **argv, bool json)
{
	(void)json;
	if (!power.has_op) {
		error("fail: one of --read-only, --offline and --unreadable must say what");
		return EXIT_USAGE;
	}
	return fault(argc ? argv[0] : NULL, power.fault, power.op);
}

static struct amplification_options amplified;

static int run_amplification(int argc, char **argv, bool json)
{
	(void)argc;
	amplified.json = json;
	return amplification(argv, &amplified);
}

static const struct command commands[] = {
	{ "show", 0, 1, true, run_show,
	  "usage: rsdctl show [--json] [DEVICE]\n"
	  "Prints the counters of DEVICE, which is /dev/nvme0n1 or else /dev/nvme0 if it is\n"
	  "not named. --json prints each counter by name with its unit, and the write\n"
	  "amplification and the mean queue wait.\n"
	  "Example: rsdctl show --json /dev/nvme0n1 > before.json\n", NULL },
	{ "diff", 2, 2, true, run_diff,
	  "usage: rsdctl diff [--json] BEFORE AFTER\n"
	  "Prints what changed between two moments of one drive. BEFORE and AFTER come\n"
	  "from show --json or from save. A - is standard input.\n"
	  "Example: rsdctl diff before.json after.json\n", NULL },
	{ "save", 1, 2, false, run_save,
	  "usage: rsdctl save FILE [DEVICE]\n"
	  "Saves the log page of DEVICE as it is. It has 4096 bytes.\n"
	  "Example: rsdctl save counters.bin /dev/nvme0n1\n", NULL },
	{ "decode", 1, 1, true, run_decode,
	  "usage: rsdctl decode [--json] FILE\n"
	  "Prints a log page saved by rsdctl save or by nvme get-log. A - is standard input.\n"
	  "Example: nvme get-log /dev/nvme0n1 --log-id=0xca --log-len=4096 --raw-binary |\n"
	  "         rsdctl decode -\n", NULL },
	{ "counters", 0, 0, false, run_counters,
	  "usage: rsdctl counters\n"
	  "Prints the name, unit and meaning of each counter, in the order of the log page.\n"
	  "Example: rsdctl counters | grep wear\n", NULL },
	{ "amplification", 1, INT_MAX, true, run_amplification,
	  "usage: rsdctl amplification [--json] [--device DEVICE] [--written BYTES]\n"
	  "                            -- PROGRAM [ARGUMENTS]\n"
	  "Runs PROGRAM, syncs, and prints what it wrote, what its file system made of\n"
	  "that, and what the drive programmed. It works with any file system of DEVICE,\n"
	  "whose namespaces count together. The exit status is that of PROGRAM. --written\n"
	  "says how much PROGRAM wrote, if it did so not by write(2) but by io_uring,\n"
	  "libaio or mapped files.\n"
	  "Example: rsdctl amplification -- cp -r /usr/lib/python3.13 /mnt\n", "dw" },
	{ "oplog", 0, 1, true, run_oplog,
	  "usage: rsdctl oplog [--json] [--list N | --in-flight N | --restart] [DEVICE]\n"
	  "Prints how far the operation log of DEVICE goes. --list prints 100 operations\n"
	  "from number N on. --in-flight prints what a power cut after operation N\n"
	  "interrupts, and then the first 100 units that wait in the write buffer.\n"
	  "--restart begins the log anew with what the drive has now.\n"
	  "Example: rsdctl oplog --in-flight 120\n", "lir" },
	{ "rewind", 0, 1, false, run_rewind,
	  "usage: rsdctl rewind --op N [--outcomes SEED|LETTERS] [DEVICE]\n"
	  "Gives DEVICE the state that a power cut after operation N would have left.\n"
	  "--outcomes says what became of each operation in flight: either by a letter for\n"
	  "each, where a is absent, t is torn and c is complete, or by a seed, which is 0 by\n"
	  "default. DEVICE must not be in use. Its controller is reset.\n"
	  "Example: rsdctl rewind --op 120 --outcomes tca /dev/nvme0n1\n", "uo" },
	{ "cut", 0, 1, false, run_cut,
	  "usage: rsdctl cut [--outcomes SEED|LETTERS] [DEVICE]\n"
	  "Cuts the power of DEVICE now, and resets its controller, which brings it back.\n"
	  "--outcomes is as with rewind. What is mounted sees a drive that loses data.\n"
	  "Example: rsdctl cut --outcomes 7 /dev/nvme0n1\n", "u" },
	{ "fail", 0, 1, false, run_fail,
	  "usage: rsdctl fail (--read-only | --offline | --unreadable) BLOCK [DEVICE]\n"
	  "Makes the zone of BLOCK read-only or takes it offline, for good, or makes BLOCK,\n"
	  "which has to be written, unreadable until its zone is reset. BLOCK is a number of\n"
	  "logical blocks. This is for tests of what uses DEVICE, which may be mounted.\n"
	  "Example: rsdctl fail --unreadable 4100 /dev/nvme0n1\n", "ROU" },
	{ NULL }
};

static const char help[] =
"usage: rsdctl COMMAND [ARGUMENTS]\n"
"Shows what an rsd drive counts (vendor log page 0xCA), cuts its power, brings\n"
"back its past, and makes it fail.\n"
"\n"
"  show [--json] [DEVICE]      Print the counters of a drive.\n"
"  diff [--json] BEFORE AFTER  Print what changed between two saved moments.\n"
"  save FILE [DEVICE]          Keep the log page as it is.\n"
"  decode [--json] FILE        Print a log page kept by save or nvme get-log.\n"
"  counters                    Print the name, unit and meaning of each counter.\n"
"  amplification -- PROGRAM    Run PROGRAM, and print what each layer wrote for it.\n"
"  oplog [DEVICE]              Print how far the operation log goes.\n"
"  rewind --op N [DEVICE]      Go back to a power cut after operation N.\n"
"  cut [DEVICE]                Cut the power now.\n"
"  fail ... BLOCK [DEVICE]     Let a zone or a block fail.\n"
"\n"
"rsdctl COMMAND --help tells more. The exit status is 0 if the command succeeded, 1 if\n"
"it failed, and 2 if the usage was wrong.\n"
"Example: this shows what a workload did to the drive.\n"
"  rsdctl show --json > before.json; WORKLOAD; rsdctl show --json > after.json\n"
"  rsdctl diff before.json after.json\n";

static const struct option long_options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ "list", required_argument, NULL, 'l' },
	{ "in-flight", required_argument, NULL, 'i' },
	{ "restart", no_argument, NULL, 'r' },
	{ "op", required_argument, NULL, 'o' },
	{ "outcomes", required_argument, NULL, 'u' },
	{ "read-only", required_argument, NULL, 'R' },
	{ "offline", required_argument, NULL, 'O' },
	{ "unreadable", required_argument, NULL, 'U' },
	{ "device", required_argument, NULL, 'd' },
	{ "written", required_argument, NULL, 'w' },
	{ }
};

/* Takes an option of the command's own. Returns false after a message. */
static bool take_option(const struct command *command, int opt)
{
	char *end;

	if (!command->options || !strchr(command->options, opt))
		return false;
	if (opt == 'd') {
		amplified.device = optarg;
		return true;
	}
	if (opt == 'w') {
		errno = 0;
		amplified.written = strtoull(optarg, &end, 10);
		amplified.has_written = true;
		if (*optarg >= '0' && *optarg <= '9' && !*end && !errno)
			return true;
		error("%s: %s is not a number of bytes", command->name, optarg);
		return false;
	}
	power.list |= opt == 'l';
	power.in_flight |= opt == 'i';
	power.restart |= opt == 'r';
	if (strchr("ROU", opt) && power.has_op)
		return false;
	power.fault = opt == 'R' ? RSD_FAULT_READ_ONLY :
		      opt == 'O' ? RSD_FAULT_OFFLINE : RSD_FAULT_UNREADABLE;
	power.has_op |= strchr("oROU", opt) != NULL;
	if (opt == 'u') {
		power.outcomes = optarg;
	} else if (opt != 'r') {
		errno = 0;
		power.op = strtoull(optarg, &end, 10);
		if (*optarg < '0' || *optarg > '9' || *end || errno) {
			error("%s: %s is not the number of %s",
			      command->name, optarg,
			      strchr("ROU", opt) ? "a block" : "an operation");
			return false;
		}
	}
	return power.list + power.in_flight + power.restart < 2;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	bool json = false;
	int opt, args;

	/*
	 * With +, options behind the first argument are left to the program
	 * that it names.
	 */
	while ((opt = getopt_long(argc, argv,
				  command->run == run_amplification ? "+h" : "h",
				  long_options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(command->help, stdout);
			return EXIT_OK;
		default:
			if (take_option(command, opt))
				break;
			/* getopt has named an option that it does not know. */
			fputs(command->help, stderr);
			return EXIT_USAGE;
		}
	}
	args = argc - optind;
	if (args < command->min_args || args > command->max_args ||
	    (json && !command->takes_json)) {
		fputs(command->help, stderr);
		return EXIT_USAGE;
	}
	return command->run(args, argv + optind, json);
}

int main(int argc, char **argv)
{
	const struct command *command;
	int code;

	if (argc < 2) {
		fputs(help, stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		fputs(help, stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("rsdctl-" RSDCTL_VERSION);
		return EXIT_OK;
	}
	for (command = commands; command->name; command++)
		if (!strcmp(argv[1], command->name))
			break;
	if (!command->name) {
		error("no command %s: show, diff, save, decode, counters, amplification, oplog, rewind, cut or fail; see rsdctl --help",
		      argv[1]);
		return EXIT_USAGE;
	}
	/* All output is one write, whose error is known at the end. */
	setvbuf(stdout, output, _IOFBF, sizeof(output));
	code = run_command(command, argc - 1, argv + 1);
	if (fclose(stdout)) {
		error("standard output: %s", strerror(errno));
		return EXIT_FAILED;
	}
	return code;
}
