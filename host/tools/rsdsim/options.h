/* SPDX-License-Identifier: GPL-2.0-or-later */
/* This is the command line. */
#ifndef RSDSIM_OPTIONS_H
#define RSDSIM_OPTIONS_H

#include "formats.h"
#include "gen.h"
#include "precondition.h"

struct options {
	/* drive */
	RsdConfig cfg;
	bool preset_given;
	bool *given;		/* by --set: one a property */
	bool settings_given;	/* either of them */
	const char *media;	/* --media, NULL: a drive in memory */
	const char *age;	/* --age, NULL: none */
	const char *faults;	/* NULL: no rules */
	const char *fault_list;	/* NULL: none */
	uint32_t ns;
	/* work */
	const char *trace;	/* NULL: generated */
	const struct format *format;	/* NULL: native */
	bool wrap;
	struct gen_config gen;
	uint64_t requests;	/* UINT64_MAX: all of a trace */
	bool requests_given;
	uint64_t depth;		/* 0: open loop */
	bool depth_given;
	struct precondition precondition;
	bool precondition_given;
	const char *record;	/* NULL: none */
	/* instead of all that */
	const char *replay;
	bool check;
	const char *timeline;	/* NULL: none */
	uint64_t from, until;	/* ns of the timeline */
	bool window_given;	/* either of them */
	/* output */
	const char *output;	/* NULL: standard output */
	bool json;
	bool host_time;
};

/* Fills @options, or prints help or an error and ends the program. */
void options_parse(struct options *options, int argc, char **argv);

#endif
