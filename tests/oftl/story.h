/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls on a few objects, as a seed gives them, and what may be left of them after a
 * power cut: each write as a whole or not at all, and what was flushed.
 *
 * What a write has put there tells it from all others. So the writes that are there are
 * found, the latest first: one is if all its bytes that no later one has covered are its
 * own. In the end nothing else may be in the object.
 */
#ifndef STORY_H
#define STORY_H

#include "plat/rfs_plat.h"
#include "backend.h"

#define STORY_OBJECTS	4
#define STORY_EVENTS	4096
#define NEVER		(~0ULL)

enum event_type { CREATE, DELETE, USER, WRITE };

/* Times are what now() says: the drive's operations so far, or the steps */
struct event {
	enum event_type type;
	u32 object;
	u32 life;		/* number of its CREATE */
	u32 len;
	u64 off;
	u64 begun;
	u64 promised;		/* when it was flushed; NEVER: it was not */
};

struct story {
	struct oftl *dev;	/* NULL: the events alone */
	u64 (*now)(void *arg);
	void *arg;
	u64 most;		/* bytes of a write */
	bool flushes;		/* false: they are promised all the same */
	bool rounds;		/* a power cut may leave zeroes up to the end of a block */
	u64 random;
	struct event event[STORY_EVENTS];	/* from 1 on */
	u32 events;
	u32 life[STORY_OBJECTS];	/* event that made it; 0: there is none */
};

/* dev, now, arg, most, flushes and rounds are the caller's */
void story_begin(struct story *s, u64 seed);

/* true: it was a flush. Ends the program with a message if a call fails */
bool story_step(struct story *s);

/*
 * What a power cut has left: all that was promised by a time, and what had begun by
 * another. NULL if it may be so, else what is wrong
 */
const char *story_check(const struct story *s, struct oftl *dev, u64 promised,
			u64 begun);

/* Ends the program with a message unless the call went well */
void must(const char *what, int ret);

#endif
