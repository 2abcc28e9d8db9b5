// SPDX-License-Identifier: GPL-2.0-or-later
#include <assert.h>
#include <stdio.h>

#include "story.h"
#include "format/rfs_format.h"

#define PATTERN		8192
#define ROOM		(3U << 20)	/* bytes of an object at most */

static u8 pattern[PATTERN + OFTL_WRITE_MAX];
static u8 content[ROOM], covered[ROOM];

static u32 pick(struct story *s, u32 n)
{
	s->random = s->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(s->random >> 33) % n;
}

void must(const char *what, int ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, oftl_message());
	exit(2);
}

/* Where the bytes of a write are, the one at offset off first; none of them is 0 */
static const u8 *bytes_of(u32 write, u64 off)
{
	return &pattern[(write * 977ULL + off) % PATTERN];
}

/* Objects that are far apart, next to each other, the first and the last */
static u64 oid_of(u32 object)
{
	static const u64 oid[STORY_OBJECTS] = {
		0, 1, 0x123456789abcdefULL, ~0ULL
	};

	return oid[object];
}

void story_begin(struct story *s, u64 seed)
{
	u32 i;

	s->random = seed;
	s->events = 0;
	memset(s->life, 0, sizeof(s->life));
	for (i = 0; i < PATTERN; i++)
		pattern[i] = 1 + pick(s, 255);
	for (; i < sizeof(pattern); i++)
		pattern[i] = pattern[i - PATTERN];
}

static struct event *begin(struct story *s, enum event_type type, u32 object)
{
	struct event *e = &s->event[++s->events];

	assert(s->events < STORY_EVENTS);
	if (type == CREATE)
		s->life[object] = s->events;
	*e = (struct event){ .type = type, .object = object,
			     .life = s->life[object], .promised = NEVER,
			     .begun = s->now(s->arg) };
	return e;
}

static u32 length(struct story *s)
{
	static const u32 odd[] = { 1, 100, 2048, 4095, 4096, 4097, 8192 };
	u32 i = pick(s, 10);

	if (i < 7)
		return min_t(u64, odd[i], s->most);
	return i == 7 ? s->most : 1 + pick(s, s->most);
}

static void write_some(struct story *s, u32 object)
{
	struct event *e = begin(s, WRITE, object);

	e->len = length(s);
	e->off = pick(s, 2) ? pick(s, 2 * s->most) :
		 4096ULL * pick(s, s->most / 2048);
	if (s->dev)
		must("owrite", owrite(s->dev, oid_of(object), e->off, e->len,
				      bytes_of(s->events, e->off)));
}

static void set_user(struct story *s, u32 object)
{
	struct oattr attr = { .set = OATTR_USER, .user_len = 4 };

	begin(s, USER, object);
	memcpy(attr.user, &s->events, 4);
	if (s->dev)
		must("osetattr", osetattr(s->dev, oid_of(object), &attr));
}

static void create(struct story *s, u32 object)
{
	begin(s, CREATE, object);
	if (s->dev)
		must("ocreate", ocreate(s->dev, oid_of(object)));
}

static void delete(struct story *s, u32 object)
{
	begin(s, DELETE, object);
	s->life[object] = 0;
	if (s->dev)
		must("odelete", odelete(s->dev, oid_of(object)));
}

static void flush(struct story *s, u32 object)
{
	u32 i;

	if (s->dev && s->flushes)
		must("oflush", oflush(s->dev, oid_of(object)));
	for (i = 1; i <= s->events; i++)
		if (s->event[i].object == object)
			s->event[i].promised = min(s->event[i].promised,
						   s->now(s->arg));
}

bool story_step(struct story *s)
{
	u32 object = pick(s, STORY_OBJECTS), what = pick(s, 20);

	if (what < 5)
		flush(s, object);
	else if (!s->life[object])
		create(s, object);
	else if (what == 5)
		delete(s, object);
	else if (what < 8)
		set_user(s, object);
	else
		write_some(s, object);
	return what < 5;
}

/* What is looked at, and when the power was cut */
struct look {
	const struct story *s;
	u64 promised, begun;
	u64 size;		/* of the object, whose bytes are in `content` */
};

static char text[300];

static const char *fault(const char *what, u32 event)
{
	snprintf(text, sizeof(text), "%s (event %u)", what, event);
	return text;
}

/* Is all that no later write has covered its own? Then it is covered by this one, too. */
static bool is_there(const struct look *l, u32 write)
{
	const struct event *e = &l->s->event[write];
	const u8 *own = bytes_of(write, e->off);
	u32 i;

	if (e->off + e->len > l->size)
		return false;
	for (i = 0; i < e->len; i++)
		if (!covered[e->off + i] && content[e->off + i] != own[i])
			return false;
	memset(covered + e->off, 1, e->len);
	return true;
}

static bool is_covered(const struct look *l, const struct event *e)
{
	return e->off + e->len <= l->size &&
	       !memchr(covered + e->off, 0, e->len);
}

/* Could the content be what writes of one life of the object have left? */
static const char *check_content(const struct look *l, u32 life)
{
	u64 end = 0, i;
	u32 w;

	memset(covered, 0, l->size);
	for (w = l->s->events; w > life; w--) {
		const struct event *e = &l->s->event[w];

		if (e->type != WRITE || e->life != life ||
		    e->begun > l->begun || is_covered(l, e))
			continue;
		if (is_there(l, w))
			end = max(end, e->off + e->len);
		else if (e->promised <= l->promised)
			return fault("a write that was flushed is not there as a whole",
				     w);
	}
	for (i = 0; i < l->size; i++)
		if (!covered[i] && content[i])
			return fault("a part of a write is there, or of none",
				     life);
	if (l->s->rounds && l->size % RFS_BLOCK_BYTES == 0 &&
	    l->size - end < RFS_BLOCK_BYTES)
		return NULL;
	return end == l->size ? NULL : fault("it does not end where a write does",
					     life);
}

static const char *check_user(const struct look *l, u32 life,
			      const struct oattr *attr)
{
	const struct event *event = l->s->event;
	u32 i, found = 0;

	if (attr->user_len == 4)
		memcpy(&found, attr->user, 4);
	else if (attr->user_len)
		return fault("the user's attribute has another length", life);
	if (found && (found > l->s->events || event[found].type != USER ||
		      event[found].life != life))
		return fault("the user's attribute was never set so", found);
	for (i = found + 1; i <= l->s->events; i++)
		if (event[i].type == USER && event[i].life == life &&
		    event[i].promised <= l->promised)
			return fault("the user's attribute is older than was flushed",
				     i);
	return NULL;
}

/* Of its lives from one on */
static const char *check_present(const struct look *l, u32 object, u32 oldest,
				 const struct oattr *attr)
{
	const char *said = fault("it is there, and was never made", oldest);
	u32 life;

	for (life = l->s->events; life && life >= oldest; life--) {
		const struct event *e = &l->s->event[life];

		if (e->type != CREATE || e->object != object ||
		    e->begun > l->begun)
			continue;
		said = check_content(l, life);
		if (!said)
			said = check_user(l, life, attr);
		if (!said)
			return NULL;
	}
	return said;
}

/* May it be gone, of which an event was flushed? */
static bool may_lack(const struct look *l, u32 object, u32 last)
{
	const struct event *event = l->s->event;
	u32 i;

	if (!last || event[last].type == DELETE)
		return true;
	for (i = last + 1; i <= l->s->events; i++)
		if (event[i].object == object && event[i].type == DELETE &&
		    event[i].begun <= l->begun)
			return true;
	return false;
}

static const char *check_object(struct look *l, struct oftl *dev, u32 object)
{
	const struct event *event = l->s->event;
	u32 i, last = 0;	/* event of it that was flushed */
	struct oattr attr;

	for (i = 1; i <= l->s->events; i++)
		if (event[i].object == object &&
		    event[i].promised <= l->promised)
			last = i;
	if (ogetattr(dev, oid_of(object), &attr)) {
		if (errno != ENOENT)
			return fault(oftl_message(), last);
		return may_lack(l, object, last) ? NULL :
		       fault("it was flushed, and is not there", last);
	}
	l->size = attr.size;
	if (attr.size > ROOM || oread(dev, oid_of(object), 0, ROOM, content) !=
	    (ssize_t)attr.size)
		return fault(oftl_message(), last);
	return check_present(l, object, !last || event[last].type == DELETE ?
			     last : event[last].life, &attr);
}

const char *story_check(const struct story *s, struct oftl *dev, u64 promised,
			u64 begun)
{
	struct look l = { .s = s, .promised = promised, .begun = begun };
	const char *said = NULL;
	u32 object;

	for (object = 0; !said && object < STORY_OBJECTS; object++)
		said = check_object(&l, dev, object);
	return said;
}
