// SPDX-License-Identifier: GPL-2.0-or-later
/* Shows the counters of an rsd drive: its vendor log page, for people. */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "device.h"
#include "diff.h"
#include "snapshot.h"
#include "tables.h"

enum exit_code { EXIT_OK, EXIT_FAILED, EXIT_USAGE };

/* More than any command prints */
static char output[256 << 10];

struct command {
	const char *name;
	int min_args, max_args;
	bool takes_json;
	int (*run)(int argc, char **argv, bool json);
	const char *help;
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
	/* a log of a newer version is saved too, for a newer rsdctl */
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

static const struct command commands[] = {
	{ "show", 0, 1, true, run_show,
	  "usage: rsdctl show [--json] [DEVICE]\n"
	  "Prints the counters of DEVICE, /dev/nvme0n1 or else /dev/nvme0. --json: each\n"
	  "counter by name with its unit, write amplification and mean queue wait.\n"
	  "Example: rsdctl show --json /dev/nvme0n1 > before.json\n" },
	{ "diff", 2, 2, true, run_diff,
	  "usage: rsdctl diff [--json] BEFORE AFTER\n"
	  "Prints what changed between two moments of one drive. BEFORE and AFTER come\n"
	  "from show --json or from save; - is standard input.\n"
	  "Example: rsdctl diff before.json after.json\n" },
	{ "save", 1, 2, false, run_save,
	  "usage: rsdctl save FILE [DEVICE]\n"
	  "Saves the log page of DEVICE as it is, 4096 bytes.\n"
	  "Example: rsdctl save counters.bin /dev/nvme0n1\n" },
	{ "decode", 1, 1, true, run_decode,
	  "usage: rsdctl decode [--json] FILE\n"
	  "Prints a log page saved by rsdctl save or by nvme get-log; - is standard input.\n"
	  "Example: nvme get-log /dev/nvme0n1 --log-id=0xca --log-len=4096 --raw-binary |\n"
	  "         rsdctl decode -\n" },
	{ "counters", 0, 0, false, run_counters,
	  "usage: rsdctl counters\n"
	  "Prints the name, unit and meaning of each counter, in the order of the log page.\n"
	  "Example: rsdctl counters | grep wear\n" },
	{ NULL }
};

static const char help[] =
"usage: rsdctl COMMAND [ARGUMENTS]\n"
"Shows what an rsd drive counts (vendor log page 0xCA).\n"
"\n"
"  show [--json] [DEVICE]      the counters of a drive\n"
"  diff [--json] BEFORE AFTER  what changed between two saved moments\n"
"  save FILE [DEVICE]          keep the log page as it is\n"
"  decode [--json] FILE        show a log page kept by save or nvme get-log\n"
"  counters                    name, unit and meaning of each counter\n"
"\n"
"rsdctl COMMAND --help tells more. Exit status: 0 done, 1 failed, 2 wrong\n"
"usage. Example, what one workload did to the drive:\n"
"  rsdctl show --json > before.json; WORKLOAD; rsdctl show --json > after.json\n"
"  rsdctl diff before.json after.json\n";

static const struct option long_options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ }
};

static int run_command(const struct command *command, int argc, char **argv)
{
	bool json = false;
	int opt, args;

	while ((opt = getopt_long(argc, argv, "h", long_options,
				  NULL)) != -1) {
		switch (opt) {
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(command->help, stdout);
			return EXIT_OK;
		default:
			/* getopt has named the option */
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
		error("no command %s: show, diff, save, decode or counters; see rsdctl --help",
		      argv[1]);
		return EXIT_USAGE;
	}
	/* all output is one write, whose error is known at the end */
	setvbuf(stdout, output, _IOFBF, sizeof(output));
	code = run_command(command, argc - 1, argv + 1);
	if (fclose(stdout)) {
		error("standard output: %s", strerror(errno));
		return EXIT_FAILED;
	}
	return code;
}
