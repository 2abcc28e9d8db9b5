// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "match.h"

#define BLOCK 4096u
#define OOB_BYTES 128u
#define LETTERS 4096u

/*
 * Places, that is, blocks, have numbers from 0 on. This one stands for all
 * zones.
 */
#define ZONES UINT64_MAX
/* A block that cannot be read has this content. */
#define TORN 1u
#define REFUSED 2u

/*
 * This is an open hash table from 64 bits to numbers from 0 on, in order of
 * arrival.
 */
struct numbers {
	uint64_t *key;
	uint32_t *slot;		/* number + 1 of a key; 0: free */
	uint32_t count, slots;
};

struct state {
	uint64_t op;
	char *outcomes;
	uint64_t key;
	uint32_t *content;	/* by place: 0 not known, else number + 1 */
	uint32_t places;	/* that content has */
	uint32_t compared;	/* with so many of those that were looked at */
	bool settled;		/* looked at, or to be, or the same as another */
	uint32_t *read;		/* of one that was looked at: places */
	uint32_t reads;
	uint32_t telling;	/* of these, the one that told it from the last */
};

struct match {
	struct rsdview *view;
	struct numbers places, contents;
	struct state *state;
	uint32_t states;
	uint32_t *looked;	/* those that others can be the same as */
	uint32_t num_looked;
	const struct state *shown;
	char err[RSD_ERR_LEN];
};

static void *grown(void *old, size_t count, size_t size)
{
	void *grown = reallocarray(old, count, size);

	if (!grown) {
		fputs("rsdview: no memory\n", stderr);
		exit(1);
	}
	return grown;
}

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

static uint32_t number_of(struct numbers *n, uint64_t key)
{
	uint32_t i, at;

	if (n->count * 2 >= n->slots) {
		n->slots = n->slots ? n->slots * 2 : 1024;
		n->slot = grown(n->slot, n->slots, sizeof(*n->slot));
		n->key = grown(n->key, n->slots, sizeof(*n->key));
		memset(n->slot, 0, n->slots * sizeof(*n->slot));
		for (i = 0; i < n->count; i++) {
			at = mixed(n->key[i]) & (n->slots - 1);
			while (n->slot[at])
				at = (at + 1) & (n->slots - 1);
			n->slot[at] = i + 1;
		}
	}
	at = mixed(key) & (n->slots - 1);
	while (n->slot[at] && n->key[n->slot[at] - 1] != key)
		at = (at + 1) & (n->slots - 1);
	if (!n->slot[at]) {
		n->key[n->count++] = key;
		n->slot[at] = n->count;
	}
	return n->slot[at] - 1;
}

/*
 * Hashes a multiple of 8 bytes, in four lanes, which need not wait for each
 * other.
 */
static uint64_t hash(uint64_t seed, const void *data, size_t bytes)
{
	uint64_t lane[4] = { seed + 3, seed + 5, seed + 7, seed + 11 }, word;
	const uint8_t *from = data;
	size_t i;

	for (i = 0; i < bytes / 8; i++) {
		memcpy(&word, from + i * 8, 8);
		lane[i % 4] = (lane[i % 4] ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		lane[i % 4] ^= lane[i % 4] >> 29;
	}
	return mixed(mixed(mixed(lane[0]) + lane[1]) + mixed(lane[2]) * 3 + lane[3]);
}

static uint64_t hash_zones(const struct rsdview *view)
{
	const RsdGeometry *geo = rsdview_geometry(view);
	uint64_t all = 0, one[3];
	RsdZone zone;
	uint32_t i;

	for (i = 0; i < geo->num_zones; i++) {
		rsdview_zone(view, i, &zone);
		one[0] = zone.state;
		one[1] = zone.attrs;
		one[2] = zone.written;
		all = hash(all, one, sizeof(one));
	}
	return all;
}

static int show(struct match *m, const struct state *s)
{
	if (m->shown == s)
		return 0;
	m->shown = NULL;
	if (rsdview_state(m->view, s->op, s->outcomes, m->err)) {
		fprintf(stderr, "rsdview: operation %" PRIu64 ": %s\n", s->op, m->err);
		return -1;
	}
	m->shown = s;
	return 0;
}

static uint64_t place_key(uint32_t ns, uint64_t lba)
{
	return (uint64_t)ns << 56 | lba;
}

/*
 * Returns the content that a state has at a place, as a number that is not 0,
 * or 0 after a message.
 */
static uint32_t content(struct match *m, struct state *s, uint32_t place)
{
	uint64_t what = m->places.key[place];
	uint8_t data[BLOCK + OOB_BYTES] = { 0 };
	int ret;

	if (place >= s->places) {
		s->content = grown(s->content, m->places.count, sizeof(*s->content));
		memset(s->content + s->places, 0,
		       (m->places.count - s->places) * sizeof(*s->content));
		s->places = m->places.count;
	}
	if (s->content[place])
		return s->content[place];
	if (show(m, s))
		return 0;
	if (what == ZONES) {
		what = hash_zones(m->view);
	} else {
		ret = rsdview_read_of(m->view, what >> 56, what & (UINT64_MAX >> 8), 1,
				      data, data + BLOCK);
		if (ret == -ENOMEM) {
			fputs("rsdview: no memory\n", stderr);
			return 0;
		}
		what = !ret ? hash(0, data, sizeof(data)) : ret == -EIO ? TORN : REFUSED;
	}
	s->content[place] = number_of(&m->contents, what) + 1;
	return s->content[place];
}

/*
 * Returns 1 if a state has the contents that were read of the other, 0 if not,
 * and -1 after a message.
 */
static int is_same(struct match *m, struct state *s, struct state *other)
{
	uint32_t i, at, one;

	for (i = 0; i < other->reads; i++) {
		/*
		 * The block that told the last state from it is likely to do so
		 * again.
		 */
		at = i ? i - (i <= other->telling) : other->telling;
		one = content(m, s, other->read[at]);
		if (!one)
			return -1;
		if (one != other->content[other->read[at]]) {
			other->telling = at;
			return 0;
		}
	}
	return 1;
}

/*
 * Looks for a state with the same content that was looked at. If there is one,
 * this state is settled. Returns -1 after a message.
 */
static int settle(struct match *m, struct state *s)
{
	struct state *other;
	int ret;

	for (; s->compared < m->num_looked; s->compared++) {
		other = &m->state[m->looked[s->compared]];
		if (other->key != s->key)
			continue;
		ret = is_same(m, s, other);
		if (ret < 0)
			return -1;
		if (ret) {
			printf("same %td %u\n", s - m->state, m->looked[s->compared]);
			s->settled = true;
			return 0;
		}
	}
	return 0;
}

/*
 * Hashes the contents of a state that are likely to be read, by the reads of
 * the nearest state of its key. States with the same hash are not looked at
 * together, nor are two of a key of which none was looked at. Returns -1 after
 * a message.
 */
static int likely(struct match *m, struct state *s, uint64_t *hashed)
{
	const struct state *guide = NULL, *other;
	uint64_t far, nearest = UINT64_MAX;
	uint32_t i, one;

	*hashed = mixed(s->key);
	for (i = 0; i < m->num_looked; i++) {
		other = &m->state[m->looked[i]];
		far = other->op > s->op ? other->op - s->op : s->op - other->op;
		if (other->key == s->key && far < nearest) {
			nearest = far;
			guide = other;
		}
	}
	for (i = 0; guide && i < guide->reads; i++) {
		one = content(m, s, guide->read[i]);
		if (!one)
			return -1;
		*hashed = mixed(*hashed * 31 + one);
	}
	return 0;
}

static int next(struct match *m, uint32_t count)
{
	uint32_t i, found = 0, known = 0;
	uint32_t *first = grown(NULL, m->states, sizeof(*first));
	struct numbers seen = { 0 }, ops = { 0 };
	uint64_t hashed;

	for (i = 0; i < m->states; i++) {
		if (m->state[i].settled)
			continue;
		if (settle(m, &m->state[i]))
			return -1;
		if (m->state[i].settled)
			continue;
		if (likely(m, &m->state[i], &hashed))
			return -1;
		/*
		 * Nor are two states of one operation, which differ in little.
		 */
		if (number_of(&seen, hashed) < known ||
		    number_of(&ops, m->state[i].op) < found) {
			known = seen.count;
			continue;
		}
		known = seen.count;
		first[found++] = i;
	}
	if (count > found)
		count = found;
	/* States are taken from all over the log. */
	for (i = 0; i < count; i++) {
		hashed = (uint64_t)i * found / count;
		m->state[first[hashed]].settled = true;
		printf("look %u\n", first[hashed]);
	}
	puts(".");
	fflush(stdout);
	free(first);
	free(seen.key);
	free(seen.slot);
	free(ops.key);
	free(ops.slot);
	return 0;
}

static int add_state(struct match *m, const char *line)
{
	char outcomes[LETTERS + 1];
	struct state *s;
	uint64_t op, key;
	uint32_t id;

	if (sscanf(line, "state %" SCNu32 " %" SCNu64 " %4096s %" SCNu64, &id, &op,
		   outcomes, &key) != 4 || id != m->states)
		return -1;
	m->state = grown(m->state, m->states + 1, sizeof(*m->state));
	s = &m->state[m->states++];
	memset(s, 0, sizeof(*s));
	s->op = op;
	s->key = key;
	s->outcomes = strdup(strcmp(outcomes, "-") ? outcomes : "");
	m->shown = NULL;	/* it may have moved */
	return s->outcomes ? 0 : -1;
}

static void add_place(struct state *s, uint32_t place)
{
	s->read = grown(s->read, s->reads + 1, sizeof(*s->read));
	s->read[s->reads++] = place;
}

static int add_reads(struct match *m, const char *line)
{
	uint32_t id, ns, count, i;
	struct state *s;
	uint64_t lba;
	int used;

	if (sscanf(line, "looked %" SCNu32 "%n", &id, &used) != 1 || id >= m->states)
		return -1;
	s = &m->state[id];
	line += used;
	while (sscanf(line, "%" SCNu32 " %" SCNu64 " %" SCNu32 "%n", &ns, &lba, &count,
		      &used) == 3) {
		for (i = 0; i < count; i++)
			add_place(s, number_of(&m->places, place_key(ns, lba + i)));
		line += used;
	}
	if (!s->reads)
		return 0;
	if (rsdview_geometry(m->view)->num_zones)
		add_place(s, number_of(&m->places, ZONES));
	for (i = 0; i < s->reads; i++)
		if (!content(m, s, s->read[i]))
			return -1;
	m->looked = grown(m->looked, m->num_looked + 1, sizeof(*m->looked));
	m->looked[m->num_looked++] = id;
	return 0;
}

int match_states(struct rsdview *view, FILE *in)
{
	struct match m = { .view = view };
	char *line = NULL;
	size_t size = 0;
	uint32_t i, count;
	int ret = 0;

	/* These two numbers are not those of blocks. */
	number_of(&m.contents, TORN);
	number_of(&m.contents, REFUSED);
	while (!ret && getline(&line, &size, in) > 0) {
		if (!strncmp(line, "state ", 6))
			ret = add_state(&m, line);
		else if (!strncmp(line, "looked ", 7))
			ret = add_reads(&m, line);
		else if (sscanf(line, "next %" SCNu32, &count) == 1)
			ret = next(&m, count);
		else
			ret = -1;
	}
	if (ret)
		fprintf(stderr, "rsdview: at the line: %.100s\n", line);
	for (i = 0; i < m.states; i++) {
		free(m.state[i].outcomes);
		free(m.state[i].content);
		free(m.state[i].read);
	}
	free(m.state);
	free(m.looked);
	free(m.places.key);
	free(m.places.slot);
	free(m.contents.key);
	free(m.contents.slot);
	free(line);
	return ret;
}
