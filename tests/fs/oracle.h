/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a volume may look like after a power cut. The oracle knows every
 * operation and when the medium held what it promised; it is told nothing by
 * the file system but what a reader sees.
 *
 * Names and attributes must be those after some number of the changes, at
 * least those promised. Content must be, for each block, a write that was not
 * removed by a change among those, no older than one that was promised, and
 * whole: where one block of a write is seen, so are its others.
 *
 * Bytes of a block that are written by themselves are checked one by one. Those
 * that went out with the rest of their block count as a write of all of it as it
 * was then; those that went into the log are there as far as the log is.
 *
 * Blocks that move within their file are written as they are: a write, too, of what the file had
 * elsewhere by then.
 *
 * Of a file of which a rescan says that it has made leaves of the metadata of pages, each
 * block is that of some write of this block, as a whole or cut, or a hole. Where it is more
 * than that, as of other files, is counted.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include "volume/volume.h"

#define NODES_MAX	4096
#define NEVER		(~0U)
#define XATTRS		2
#define MADE_MAX	256
#define OWNERS		4	/* groups that may have a limit */

struct node {			/* a file or directory that ever was */
	u32 mode;
	u32 gid;		/* attribute that changes */
	u32 nlink;
	u32 parent;		/* of a directory */
	u32 ino;		/* while it exists */
	u64 size;
	u32 changes;		/* after its last change */
	u32 xattr[XATTRS];	/* id of each extended attribute, 0: absent */
	u32 first, last;	/* events, by number */
};

struct name {
	u32 dir, child;		/* nodes */
	char name[64];
};

enum event_type { EV_WRITE, EV_MOVE, EV_BYTES, EV_SIZE, EV_PUNCH, EV_PREALLOC };

struct event {			/* change of a file's content; from 1 on */
	u32 next;		/* of the same file; 0: none */
	enum event_type type;
	u32 node;
	u64 block;		/* WRITE, MOVE, PUNCH, PREALLOC: first */
	u32 n;
	u32 len;		/* WRITE: of the last block */
	u64 size;		/* SIZE */
	u32 at, bytes;		/* BYTES: of its block, from at on; 0: none */
	bool page;		/* BYTES: with the rest of its block, not logged */
	bool keep;		/* SIZE, PUNCH: what is reserved stays so */
	u32 change;		/* changes of names and inodes before it */
	u32 promised;		/* WRITE, MOVE, BYTES: operations on the medium by then */
	u8 *moved;		/* MOVE: what its blocks have */
};

struct oracle {
	struct node node[NODES_MAX];
	u32 nodes;
	struct name *name;
	u32 names, name_room;
	struct event *event;
	u32 events, event_room;
	u64 *digest;		/* of names and attributes after each change */
	u32 *promised;		/* operations on the medium by then */
	u32 changes, change_room;
	u64 limit[OWNERS];	/* of inodes of group 1, 2, ...; 0: none */
	/* Inodes of which a rescan has made leaves of pages: what was cut may be back */
	u32 made, made_of[MADE_MAX];
	u64 unlike;		/* of them, those where it was, or something lacked */
};

struct oracle *oracle_new(void);
void oracle_free(struct oracle *o);
/* A change was made: take the digest */
void oracle_change(struct oracle *o);
struct event *oracle_event(struct oracle *o, enum event_type type, u32 node);
/* The first so many changes, and writes to node (or to all, if it is NEVER) */
void oracle_promise(struct oracle *o, u32 ops, u32 node, u32 changes);
void oracle_add_name(struct oracle *o, u32 dir, const char *name, u32 child);
struct name *oracle_find(struct oracle *o, u32 dir, const char *name);
void oracle_del_name(struct oracle *o, struct name *name);
/* What write number id has in a block */
void oracle_pattern(u32 id, u64 block, u8 *data);
/* And what EV_BYTES number id has of its block, from at on */
void oracle_bytes(u32 id, u32 at, u32 bytes, u8 *data);
/* A block of a file as it is now, after all that was done */
void oracle_block(const struct oracle *o, u32 node, u64 block, u8 *data);
/* Name of an extended attribute; the value of an id, its bytes */
extern const char *const oracle_xattr[XATTRS];
u32 oracle_value(u32 id, u8 *value);
/*
 * Compare with a volume, cut after ops operations, of which the oracle's user
 * had made changes and events by then. NULL if it may be so, else why not.
 */
const char *oracle_check(struct oracle *o, struct rfs_fs *fs, u32 ops,
			 u32 changes, u32 events);

#endif
