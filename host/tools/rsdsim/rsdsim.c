// SPDX-License-Identifier: GPL-2.0-or-later
/* This runs work on a simulated drive, without a guest. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "faults.h"
#include "options.h"
#include "replay.h"
#include "report.h"
#include "timeline.h"
#include "traces.h"

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/*
 * Returns this program's peak memory. getrusage() would count the memory of the
 * program that started this one, too.
 */
static long peak_kib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "VmHWM:", 6))
			kib = atol(line + 6);
	if (file)
		fclose(file);
	return kib;
}

/*
 * Replay
 */

/* Returns the hash of a new media file with these settings. */
static uint64_t new_media_hash(const RsdConfig *cfg)
{
	const char *dir = getenv("TMPDIR");
	char *path, err[RSD_ERR_LEN];
	uint64_t hash = 0;
	bool ok;

	if (asprintf(&path, "%s/rsdsim-%ld", dir ? dir : "/tmp",
		     (long)getpid()) < 0)
		die("no memory for a file's name");
	ok = rsd_media_create(path, cfg, err);
	if (ok) {
		ok = rsd_trace_hash_media(path, &hash, err);
		unlink(path);
	}
	if (!ok)
		die("%s", err);
	free(path);
	return hash;
}

static uint64_t media_hash(const char *path, const RsdConfig *cfg)
{
	char err[RSD_ERR_LEN];
	uint64_t hash;

	if (!path)
		return new_media_hash(cfg);
	if (!rsd_trace_hash_media(path, &hash, err))
		die("%s", err);
	return hash;
}

static void check_media(const struct options *o, const RsdConfig *cfg,
			uint64_t wanted)
{
	uint64_t hash = media_hash(o->media, cfg);

	if (hash == wanted)
		return;
	if (o->media)
		die("%s: this is not the media that %s was recorded on (hash %016" PRIx64 ", the trace has %016" PRIx64 "): give a copy of the media as it was when the recording began",
		    o->media, o->replay, hash, wanted);
	die("%s was not recorded on a new drive: give a copy of its media, as it was when the recording began, by --media",
	    o->replay);
}

static int replay(const struct options *o)
{
	struct timeline *timeline = NULL;
	struct replay_result result;
	char err[RSD_ERR_LEN];
	RsdTraceReader *reader;
	RsdDrive *drive;
	RsdConfig cfg;
	uint64_t hash;
	double start;
	bool equal;

	reader = rsd_trace_read(o->replay, &cfg, &hash, err);
	if (!reader)
		die("%s", err);
	if (rsd_trace_torn(reader))
		warn("%s: its last record has %u bytes of %zu: the recorder was killed; the trace ends before it",
		     o->replay, rsd_trace_torn(reader),
		     sizeof(RsdTraceRecord));
	check_media(o, &cfg, hash);
	drive = rsd_open(o->media, &cfg, err);
	if (!drive)
		die("%s", err);
	if (o->faults)
		faults_open(drive, o->faults, o->fault_list);
	if (o->timeline)
		timeline = timeline_open(o->timeline, drive, o->from,
					 o->until);
	start = cpu_s();
	result = replay_run(reader, drive, o->media, timeline);
	if (timeline && !timeline_close(timeline, result.end_ns))
		warn("%s has nothing in it: the trace ends at %" PRIu64 " ns",
		     o->timeline, result.end_ns);
	equal = !result.different && !result.counters_different;
	printf(o->json ?
	       "{\n  \"commands\": %" PRIu64 ",\n  \"completions\": %" PRIu64 ",\n  \"completions_different\": %" PRIu64 ",\n  \"counters\": %" PRIu64 ",\n  \"counters_different\": %" PRIu64 ",\n  \"end_ns\": %" PRIu64 "" :
	       "%" PRIu64 " commands; %" PRIu64 " completions compared, %" PRIu64 " differ; %" PRIu64 " counters compared, %" PRIu64 " differ; until %" PRIu64 " ns",
	       result.commands, result.completions, result.different,
	       result.counters, result.counters_different, result.end_ns);
	if (o->host_time)
		printf(o->json ? ",\n  \"cpu_s\": %.6f" :
		       "; %.3f s of processor time", cpu_s() - start);
	puts(o->json ? "\n}" : "");
	if (!result.counters && !o->json)
		puts("The trace has no counters: its recorder was killed.");
	faults_close();
	rsd_close(drive);
	rsd_trace_read_close(reader);
	return o->check && !equal ? EXIT_FAILED : EXIT_OK;
}

/*
 * Work
 */

/* Without --preset, the geometry that --set does not name is the file's. */
static void take_geometry(struct options *o)
{
	char err[RSD_ERR_LEN];
	RsdConfig file;
	size_t i;

	if (!rsd_media_info(o->media, &file, err))
		die("%s", err);
	for (i = 0; !o->preset_given && i < rsd_num_props; i++)
		if (rsd_props[i].geometry && !o->given[i])
			*rsd_prop_value(&o->cfg, &rsd_props[i]) =
				*rsd_prop_value(&file, &rsd_props[i]);
}

/*
 * Opens the drive. It also begins the recording, with the media as they are
 * before they are opened.
 */
static RsdDrive *open_drive(struct options *o, RsdTrace **record)
{
	const char *path = o->media ? o->media : o->age;
	char err[RSD_ERR_LEN];
	uint64_t hash = 0;
	RsdDrive *drive;

	if (o->media)
		take_geometry(o);
	if (o->cfg.ftl == RSD_FTL_DISK &&
	    o->precondition.kind == PRECONDITION_STEADY)
		die_usage("--precondition steady%s: a disk (ftl=disk) has no write amplification that could become steady, and needs none; give --precondition none or fill",
			  o->precondition_given ? "" : ", which --age implies");
	if (o->age && !rsd_media_create(o->age, &o->cfg, err))
		die("%s", err);
	if (o->record)
		hash = media_hash(path, &o->cfg);
	drive = rsd_open(path, &o->cfg, err);
	if (!drive)
		die("%s", err);
	if (o->faults)
		faults_open(drive, o->faults, o->fault_list);
	*record = NULL;
	if (o->record) {
		*record = rsd_trace_open(o->record, rsd_config(drive), hash,
					 err);
		if (!*record)
			die("%s", err);
	}
	if (o->ns >= rsd_num_namespaces(drive))
		die_usage("--namespace %u: the drive has only 0; --set conv-blocks=N makes a second one",
			  o->ns);
	return drive;
}

static struct source *open_source(const struct options *o,
				  const struct sim *sim)
{
	if (!o->trace)
		return gen_open(&o->gen, sim->drive, sim->ns);
	if (o->format)
		return trace_open_text(o->trace, o->format, sim->geo.lbas,
				       o->wrap, !o->depth);
	return trace_open_native(o->trace, sim->ns, &sim->geo, o->wrap);
}

static void end_recording(struct sim *sim)
{
	char err[RSD_ERR_LEN];
	RsdCounters counters;

	if (!sim->record)
		return;
	rsd_counters(sim->drive, &counters);
	if (!rsd_trace_close(sim->record, sim->now, &counters, err))
		die("%s", err);
}

static void run(struct options *o)
{
	struct sim sim = { .ns = o->ns };
	struct report report = {
		.options = o, .sim = &sim, .precondition = &o->precondition,
	};
	struct source *source;
	uint64_t total;
	double start;

	sim.drive = open_drive(o, &sim.record);
	rsd_geometry(sim.drive, sim.ns, &sim.geo);
	start = cpu_s();
	precondition_run(&sim, &o->precondition, &o->gen);
	report.host.precondition_cpu_s = cpu_s() - start;
	report.start_ns = sim.now;
	rsd_counters(sim.drive, &report.before);
	sim_reset_stats(&sim);

	source = open_source(o, &sim);
	total = o->requests < UINT64_MAX ? o->requests : source->total;
	progress_begin("running", total);
	start = cpu_s();
	if (o->depth)
		sim_run_closed(&sim, source, o->depth, o->requests);
	else
		sim_run_open(&sim, source, UINT64_MAX, o->requests);
	report.host.run_cpu_s = cpu_s() - start;
	report.host.peak_kib = peak_kib();
	progress_clear();
	source->close(source);
	end_recording(&sim);

	report_print(&report);
	sim_reset_stats(&sim);
	faults_close();
	rsd_close(sim.drive);
}

int main(int argc, char **argv)
{
	struct options o;
	int code = EXIT_OK;

	options_parse(&o, argc, argv);
	if (o.output && !freopen(o.output, "w", stdout))
		die("--output %s: %s", o.output, strerror(errno));
	if (o.replay)
		code = replay(&o);
	else
		run(&o);
	free(o.given);
	if (fclose(stdout))
		die("%s: %s", o.output ? o.output : "standard output",
		    strerror(errno));
	return code;
}
