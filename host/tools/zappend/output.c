// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <string.h>

#include "../common/human.h"
#include "output.h"

static uint64_t command_bytes(const struct report *rep)
{
	return (uint64_t)rep->work->nlb * rep->work->dev->block_bytes;
}

static double per_second(uint64_t amount, uint64_t ns)
{
	return ns ? amount * 1e9 / ns : 0;
}

static void json_string(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(out, "\\u%04x", *s);
		else
			fputc(*s, out);
	}
	fputc('"', out);
}

static void json_stats(FILE *out, const char *name, struct stats *st)
{
	uint64_t values[STATS_PERCENTILES];
	int i;

	fprintf(out, "        \"%s\" : {\n", name);
	fprintf(out, "          \"min\" : %" PRIu64 ",\n", st->min);
	fprintf(out, "          \"max\" : %" PRIu64 ",\n", st->max);
	fprintf(out, "          \"mean\" : %f,\n", st->mean);
	fprintf(out, "          \"stddev\" : %f,\n", stats_stddev(st));
	fprintf(out, "          \"N\" : %" PRIu64, st->n);
	if (st->samples && st->n) {
		stats_get_percentiles(st, values);
		fputs(",\n          \"percentile\" : {", out);
		for (i = 0; i < STATS_PERCENTILES; i++)
			fprintf(out, "%s\n            \"%u.%02u0000\" : %" PRIu64,
				i ? "," : "", stats_percentiles[i] / 100,
				stats_percentiles[i] % 100, values[i]);
		fputs("\n          }", out);
	}
	fputs("\n        }", out);
}

/* Writes one direction of a job; @rep is NULL for the one that was not used. */
static void json_direction(FILE *out, const char *name,
			   const struct report *rep)
{
	struct result none = { 0 };
	struct result *res = rep ? rep->res : &none;
	uint64_t bytes = rep ? res->done * command_bytes(rep) : 0;
	uint64_t bw = per_second(bytes, res->runtime_ns);

	fprintf(out, "      \"%s\" : {\n", name);
	fprintf(out, "        \"io_bytes\" : %" PRIu64 ",\n", bytes);
	fprintf(out, "        \"io_kbytes\" : %" PRIu64 ",\n", bytes / 1024);
	fprintf(out, "        \"bw_bytes\" : %" PRIu64 ",\n", bw);
	fprintf(out, "        \"bw\" : %" PRIu64 ",\n", bw / 1024);
	fprintf(out, "        \"iops\" : %f,\n",
		per_second(res->done, res->runtime_ns));
	fprintf(out, "        \"runtime\" : %" PRIu64 ",\n",
		res->runtime_ns / 1000000);
	fprintf(out, "        \"runtime_ns\" : %" PRIu64 ",\n",
		res->runtime_ns);
	fprintf(out, "        \"total_ios\" : %" PRIu64 ",\n", res->done);
	json_stats(out, "slat_ns", &res->slat);
	fputs(",\n", out);
	json_stats(out, "clat_ns", &res->clat);
	fputs(",\n", out);
	json_stats(out, "lat_ns", &res->lat);
	fputs("\n      }", out);
}

static uint64_t total_errors(const struct result *res)
{
	uint64_t n = res->kernel_errors;
	unsigned int i;

	for (i = 0; i <= NVME_STATUS_MASK; i++)
		n += res->status[i];
	return n;
}

static void json_errors(FILE *out, const struct result *res)
{
	const char *comma = "";
	unsigned int i;

	fprintf(out, "      \"total_err\" : %" PRIu64 ",\n", total_errors(res));
	fputs("      \"errors\" : {", out);
	for (i = 0; i <= NVME_STATUS_MASK; i++) {
		if (!res->status[i])
			continue;
		fprintf(out, "%s\n        \"0x%03x %s\" : %" PRIu64, comma, i,
			nvme_status_name(i), res->status[i]);
		comma = ",";
	}
	if (res->kernel_errors)
		fprintf(out, "%s\n        \"%s\" : %" PRIu64, comma,
			strerror(res->first_errno), res->kernel_errors);
	fputs("\n      },\n", out);
}

static const char *stop_name(enum stop_reason stop)
{
	return stop == STOP_DONE ? "done" :
	       stop == STOP_RUNTIME ? "runtime" :
	       stop == STOP_SIGNAL ? "signal" : "error";
}

void output_json(FILE *out, const struct report *rep)
{
	const struct work *w = rep->work;
	bool append = rep->op == ENGINE_APPEND;

	fputs("{\n  \"zappend version\" : \"zappend-" ZAPPEND_VERSION "\",\n",
	      out);
	fputs("  \"jobs\" : [\n    {\n      \"jobname\" : ", out);
	json_string(out, rep->name);
	fprintf(out, ",\n      \"error\" : %d,\n",
		rep->res->stop == STOP_ERROR);
	fputs("      \"job options\" : {\n        \"filename\" : ", out);
	json_string(out, w->dev->path);
	fprintf(out, ",\n        \"rw\" : \"%s\",\n",
		append ? "append" : "read");
	fprintf(out, "        \"bs\" : \"%" PRIu64 "\",\n", command_bytes(rep));
	fprintf(out, "        \"iodepth\" : \"%u\",\n", w->qd);
	fprintf(out, "        \"number_ios\" : \"%" PRIu64 "\",\n", w->total);
	fprintf(out, "        \"zones\" : \"%" PRIu64 "-%" PRIu64 "\",\n",
		rep->first_zone, rep->last_zone);
	fprintf(out, "        \"md_bytes_per_block\" : \"%u\",\n",
		w->oob ? w->dev->oob_bytes : 0);
	fprintf(out, "        \"reset\" : \"%d\",\n", rep->reset);
	fprintf(out, "        \"randseed\" : \"%" PRIu64 "\"\n      },\n",
		w->seed);
	fprintf(out, "      \"stopped_by\" : \"%s\",\n",
		stop_name(rep->res->stop));
	json_errors(out, rep->res);
	if (rep->verified) {
		fprintf(out, "      \"verify\" : {\n        \"blocks\" : %" PRIu64 ",\n",
			rep->verified->done * w->nlb);
		fprintf(out, "        \"bad_blocks\" : %" PRIu64 ",\n",
			rep->verified->bad_blocks);
		fprintf(out, "        \"total_err\" : %" PRIu64 "\n      },\n",
			total_errors(rep->verified));
	}
	json_direction(out, "read", append ? NULL : rep);
	fputs(",\n", out);
	json_direction(out, "write", append ? rep : NULL);
	fputs("\n    }\n  ]\n}\n", out);
}

void output_human(const struct report *rep)
{
	const struct result *res = rep->res;
	uint64_t bytes = command_bytes(rep);
	char time[24], mean[24], max[24];

	human_ns(time, sizeof(time), res->runtime_ns);
	human_ns(mean, sizeof(mean), res->lat.mean);
	human_ns(max, sizeof(max), res->lat.max);
	error("%s of %" PRIu64 " bytes%s, QD %u, zones %" PRIu64 "-%" PRIu64
	      ": %" PRIu64 " in %s, %.0f IOPS, %.1f MiB/s, latency mean %s, max %s",
	      rep->op == ENGINE_APPEND ? "append" : "read", bytes,
	      rep->work->oob ? " + metadata" : "", rep->work->qd,
	      rep->first_zone, rep->last_zone, res->done, time,
	      per_second(res->done, res->runtime_ns),
	      per_second(res->done * bytes, res->runtime_ns) / (1 << 20),
	      mean, max);
	if (res->stop != STOP_DONE)
		error("stopped by %s after %" PRIu64 " of %" PRIu64 " commands, %" PRIu64 " failed",
		      stop_name(res->stop), res->issued, rep->work->total,
		      total_errors(res));
	if (rep->verified)
		error("verified %" PRIu64 " blocks, %" PRIu64 " differ",
		      rep->verified->done * rep->work->nlb,
		      rep->verified->bad_blocks);
}
