// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These are SFS's experiments (FAST 2012, section 4) without a drive; see -h.
 */
#include <endian.h>
#include <stdio.h>

#include "cache.h"
#include "volume.h"
#include "work.h"
#include "zipf.h"

/* These are the figures of SSD-M in SFS's table 1, in MB/s. */
#define WRITE_MBS	87.0	/* sequential */
#define READ_MBS	10.6	/* random, 4 KB */
#define BARS		20	/* of the histogram */

static const char usage[] =
	"usage: sfssim [NAME=VALUE]...\n"
	"Simulates the cleaning of a volume that is filled and then overwritten, and prints one\n"
	"JSON object. Each setting is shown with its default.\n"
	"\n"
	"  segments=1024 blocks=8192   Give the volume so many segments, and each so many blocks\n"
	"                              of 4 KiB.\n"
	"  reserve=5                   Let cleaning keep so many percent of the segments free.\n"
	"  round=0                     Clean in rounds, each of which frees so many segments.\n"
	"                              A round begins when fewer are free than reserve= less half\n"
	"                              of these. Writes and copies then count in whole rounds.\n"
	"  fill=85                     Let so many percent of the volume be in use.\n"
	"  set=20                      Write so many percent of the volume again, and the rest\n"
	"                              once only.\n"
	"  work=zipf                   Draw what is written by zipf, uniform or oltp.\n"
	"  theta=0.99                  Give the zipf distribution this exponent.\n"
	"  seed=1                      Seed the work.\n"
	"  cache=0.5                   Let so many percent of the volume be dirty in the page\n"
	"                              cache.\n"
	"  age=2 writes=2              Write so many times the volume before it counts, and while\n"
	"                              it counts.\n"
	"  groups=4                    Sort blocks into so many groups, 1 to 6.\n"
	"  quantize=balanced           Find the groups' borders by balanced, iterative,\n"
	"                              equi-width or equi-height (SFS and its names).\n"
	"  gc=cost-benefit             Choose victims by cost-benefit, cost-hotness or greedy.\n"
	"  know=past                   Estimate hotness by the past, or know the future of each\n"
	"                              block: its rate, or its next write. Hotness is then the\n"
	"                              rate, or the inverse of what is left until that write.\n"
	"  lives=0.3,1,3               Put the borders between groups at these lives left, in\n"
	"                              parts of what is written again. Without it, quantize=\n"
	"                              finds them.\n"
	"  trace=FILE                  Take what is written again from FILE, which has 32 bits,\n"
	"                              little-endian, for each block.\n";

static const char *const gcs[] = { "cost-hotness", "cost-benefit", "greedy" };
static const char *const quantizes[] = { "iterative", "equi-width",
					 "equi-height", "balanced" };
static const char *const knows[] = { "past", "rate", "next" };

struct options {
	struct volume_config volume;
	double reserve, fill, set, theta, cache, age, writes;
	const char *work, *trace, *lives;
	u64 seed;
};

static void refuse(const char *what, const char *why)
{
	fprintf(stderr, "sfssim: %s: %s; -h lists the options\n", what, why);
	exit(2);
}

static u32 one_of(const char *what, const char *value, const char *const *names,
		  u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (!strcmp(value, names[i]))
			return i;
	refuse(what, "no such value");
	return 0;
}

static double value_of(const char *what, const char *value, double low,
		       double high)
{
	char *end;
	double found = strtod(value, &end);

	if (end == value || *end || !(found >= low && found <= high))
		refuse(what, "no number, or one that is not allowed");
	return found;
}

static void set_one(struct options *o, const char *word)
{
	const char *value = strchr(word, '=');
	size_t len = value ? (size_t)(value - word) : 0;

#define IS(name) (len == strlen(name) && !strncmp(word, name, len))
	value = value ? value + 1 : word;
	if (IS("segments"))
		o->volume.segments = value_of(word, value, 16, 65536);
	else if (IS("blocks"))
		o->volume.blocks = value_of(word, value, 16, 65536);
	else if (IS("reserve"))
		o->reserve = value_of(word, value, 0.1, 50);
	else if (IS("round"))
		o->volume.round = value_of(word, value, 0, 65536);
	else if (IS("fill"))
		o->fill = value_of(word, value, 1, 99);
	else if (IS("set"))
		o->set = value_of(word, value, 1, 99);
	else if (IS("work"))
		o->work = value;
	else if (IS("trace"))
		o->trace = value;
	else if (IS("theta"))
		o->theta = value_of(word, value, 0, ZIPF_MAX_THETA);
	else if (IS("seed"))
		o->seed = value_of(word, value, 0, 0x1p53);
	else if (IS("cache"))
		o->cache = value_of(word, value, 0, 50);
	else if (IS("age"))
		o->age = value_of(word, value, 0, 1000);
	else if (IS("writes"))
		o->writes = value_of(word, value, 0.001, 1000);
	else if (IS("groups"))
		o->volume.groups = value_of(word, value, 1, RFS_GROUPS_MAX);
	else if (IS("quantize"))
		o->volume.quantize = one_of(word, value, quantizes,
					    RFS_QUANTIZES);
	else if (IS("know"))
		o->volume.know = one_of(word, value, knows, 3);
	else if (IS("lives"))
		o->lives = value;
	else if (IS("gc"))
		o->volume.gc = one_of(word, value, gcs, RFS_GCS);
	else
		refuse(word, "there is no such setting");
#undef IS
}

/*
 * Prints how many segments with some of the workload's blocks there are, by
 * utilization (figure 10).
 */
static void print_histogram(const struct volume *v, u32 first)
{
	u32 bar[BARS] = { 0 }, nr, i, n = 0;

	for (nr = 0; nr < v->cfg.segments; nr++) {
		const struct segment *s = &v->seg[nr];
		bool counts = false;

		for (i = 0; i < s->fill && s->used && !counts; i++) {
			u32 at = nr * v->cfg.blocks + i;

			counts = v->owner[at] >= first;
		}
		if (!counts || !s->live)
			continue;
		i = (u64)(s->live - 1) * BARS / v->cfg.blocks;
		bar[min(i, BARS - 1U)]++;
		n++;
	}
	printf("\"histogram\": [");
	for (i = 0; i < BARS; i++)
		printf("%s%.4f", i ? ", " : "", n ? (double)bar[i] / n : 0);
	printf("]");
}

/* Prints the result. aged is the number of writes before the count began. */
static void report(const struct options *o, const struct volume *v, u64 aged,
		   u64 written, u64 copied, u64 victims, u64 victims_live)
{
	double copies = (double)copied / written;
	u32 i;

	printf("{\"work\": \"%s\", \"theta\": %g, \"fill\": %g, \"set\": %g, ",
	       o->work, o->theta, o->fill, o->set);
	printf("\"segments\": %u, \"blocks\": %u, \"reserve\": %g, \"round\": %u, ",
	       v->cfg.segments, v->cfg.blocks, o->reserve, v->cfg.round);
	printf("\"groups\": %u, \"quantize\": \"%s\", \"gc\": \"%s\", ",
	       v->cfg.groups, quantizes[v->cfg.quantize], gcs[v->cfg.gc]);
	printf("\"know\": \"%s\", \"lives\": \"%s\", ",
	       knows[v->cfg.know], o->lives ? o->lives : "");
	printf("\"file_blocks\": [%u, %u], \"aged\": %llu, ", v->file[0].to,
	       v->file[1].to - v->file[1].from, (unsigned long long)aged);
	printf("\"seed\": %llu, \"writes\": %llu, \"copies\": %llu, ",
	       (unsigned long long)o->seed, (unsigned long long)written,
	       (unsigned long long)copied);
	printf("\"copies_a_write\": %.4f, \"write_cost\": %.4f, ", copies,
	       1 + copies * (WRITE_MBS / READ_MBS + 1));
	printf("\"victim_utilization\": %.4f, ",
	       victims ? (double)victims_live / victims / v->cfg.blocks : 0);
	printf("\"in_group\": [");
	for (i = 0; i < v->cfg.groups; i++)
		printf("%s%llu", i ? ", " : "",
		       (unsigned long long)v->in_group[i]);
	printf("], ");
	print_histogram(v, v->file[1].from);
	printf("}\n");
}

/* Begins or ends the count: now, or when the last round of cleaning began. */
static void count_from(const struct volume *v, u64 *now, u64 *copies)
{
	*now = v->cfg.round ? v->round_now : v->now;
	*copies = v->cfg.round ? v->round_copies : v->copies;
}

/* Blocks that leave the page cache go here. */
struct sink {
	struct volume *volume;
	FILE *trace;		/* NULL: none is kept */
	u32 *list;		/* or here, and the volume is not written */
	u64 n, room;
};

static void to_volume(void *to, u32 block)
{
	struct sink *s = to;
	struct volume_file *file = &s->volume->file[1];
	u32 word = htole32(block - file->from);

	/* A write error shows when the file is closed. */
	if (s->trace)
		fwrite(&word, sizeof(word), 1, s->trace);
	volume_write(s->volume, file, block);
}

static void to_list(void *to, u32 block)
{
	struct sink *s = to;

	if (s->n < s->room)
		s->list[s->n++] = block;
}

/*
 * For each write, finds when its block is written next, and for each block, how
 * often it is written in all. A block that is not written again counts as
 * written after twice the time.
 */
static bool look_ahead(const struct sink *s, u32 filled, u64 *future, u64 *rate)
{
	u64 end = filled + s->n, i;
	u64 *next = malloc(filled * sizeof(*next));

	if (!next)
		return false;
	for (i = 0; i < filled; i++)
		next[i] = 2 * end;
	for (i = end; i-- > 0;) {
		u32 block = i < filled ? i : s->list[i - filled];

		future[i] = next[block];
		next[block] = i + 1;
		rate[block]++;
	}
	free(next);
	return true;
}

/*
 * Does the same work before it is written, for policies that know the future.
 */
static bool foresee(struct options *o, u32 from, u32 to)
{
	u64 all = (u64)o->volume.segments * o->volume.blocks, *future, *rate;
	struct sink sink = { .room = all * (o->age + o->writes + o->cache / 100) +
				     2 };
	struct work *work = work_new(o->work, to - from, o->theta, o->seed);
	struct cache cache;
	bool ok;

	sink.list = calloc(sink.room, sizeof(*sink.list));
	future = calloc(to + sink.room, sizeof(*future));
	rate = calloc(all, sizeof(*rate));
	ok = work && sink.list && future && rate &&
	     cache_init(&cache, all, all * o->cache / 100, to_list, &sink);
	while (ok && sink.n < sink.room)
		cache_write(&cache, from + work_next(work));
	if (ok)
		ok = look_ahead(&sink, to, future, rate);
	o->volume.future = future;
	o->volume.rate = o->volume.know == KNOW_RATE ? rate : NULL;
	o->volume.end = to + sink.n;
	if (work)
		work_free(work);
	free(sink.list);
	return ok;
}

/*
 * Sets the remaining lives, shortest first, that part the blocks of groups,
 * without those of the coldest.
 */
static void set_borders(struct options *o, u32 blocks)
{
	const char *at = o->lives;
	u32 i = o->volume.groups - 1;
	char *end;
	double life;

	if (!at)
		return;
	o->volume.quantize = RFS_Q_BALANCED;
	o->volume.border[i] = ~0ULL;
	while (i-- > 0) {
		life = strtod(at, &end);
		if (end == at || !(life > 0) || life > 1e6 ||
		    *end != (i ? ',' : 0))
			refuse("lives", "not as many numbers as there are borders");
		o->volume.border[i] = rfs_hotness(1, max(1., life * blocks));
		at = end + 1;
	}
}

int main(int argc, char **argv)
{
	struct options o = {
		.volume = { .segments = 1024, .blocks = 8192, .groups = 4,
			    .gc = RFS_GC_COST_BENEFIT,
			    .quantize = RFS_Q_BALANCED },
		.reserve = 5, .fill = 85, .set = 20, .theta = 0.99,
		.cache = 0.5, .age = 2, .writes = 2, .work = "zipf", .seed = 1,
	};
	u64 all, i, filled, before, now, copied, copies, victims, live;
	struct volume_file *file;
	struct sink sink = { 0 };
	struct cache cache;
	struct volume *v;
	u32 from, to;
	struct work *work;
	int arg;

	for (arg = 1; arg < argc; arg++) {
		if (!strcmp(argv[arg], "-h") || !strcmp(argv[arg], "--help")) {
			fputs(usage, stdout);
			return 0;
		}
		set_one(&o, argv[arg]);
	}
	o.volume.reserve = max_t(u32, RFS_GROUPS_MAX + 2,
				 o.volume.segments * o.reserve / 100);
	if (o.volume.round / 2 + RFS_GROUPS_MAX + 2 > o.volume.reserve)
		refuse("round", "more than reserve= has");
	all = (u64)o.volume.segments * o.volume.blocks;
	if (o.set >= o.fill)
		refuse("set", "is all that is in use, or more");
	from = all * (o.fill - o.set) / 100;
	to = all * o.fill / 100;
	work = work_new(o.work, to - from, o.theta, o.seed);
	if (!work)
		refuse("work", "no such workload, or too few blocks for it");
	set_borders(&o, to - from);
	if (o.volume.know != KNOW_PAST && !foresee(&o, from, to))
		refuse("know", "there is not the memory");
	v = volume_new(&o.volume);
	sink.volume = v;
	if (!v || !cache_init(&cache, all, all * o.cache / 100, to_volume, &sink))
		refuse("segments", "there is not the memory");
	file = &v->file[1];
	v->file[0].to = from;
	file->from = from;
	file->to = to;
	for (i = 0; i < to && !v->full; i++)
		volume_write(v, &v->file[i >= from], i);
	if (o.trace) {
		sink.trace = fopen(o.trace, "wb");
		if (!sink.trace)
			refuse("trace", "cannot be written");
	}
	filled = v->now;
	before = all * o.age + v->now;
	while (v->now < before && !v->full)
		cache_write(&cache, from + work_next(work));
	count_from(v, &before, &copied);
	victims = v->cleaned;
	live = v->cleaned_live;
	memset(v->in_group, 0, sizeof(v->in_group));
	now = v->now;
	while (v->now < now + all * o.writes && !v->full)
		cache_write(&cache, from + work_next(work));
	if (v->full)
		refuse("fill", "no room is left, and nothing to clean");
	if (sink.trace && (ferror(sink.trace) | fclose(sink.trace)))
		refuse("trace", "cannot be written");
	count_from(v, &now, &copies);
	report(&o, v, before - filled, now - before, copies - copied,
	       v->cleaned - victims, v->cleaned_live - live);
	work_free(work);
	cache_free(&cache);
	volume_free(v);
	return 0;
}
