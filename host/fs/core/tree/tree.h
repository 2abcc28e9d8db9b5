/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inodes, nodes and their maps, and the blocks of files and directories. */
#ifndef RFS_TREE_H
#define RFS_TREE_H

#include "buffer/buffer.h"

/*
 * All that is above a dirty block is dirty, too, as it will be by the check-point:
 * fs->dirty.count is what that writes, but for tables and summaries.
 */
void rfs_dirty_new_parents(struct rfs_fs *fs);

static inline void rfs_dirty_parents(struct rfs_fs *fs)
{
	if (fs->dirty.seen != fs->dirty.bufs.prev)
		rfs_dirty_new_parents(fs);
}

int rfs_iget(struct rfs_fs *fs, u32 ino, struct rfs_dinode **out,
	     struct rfs_buf **buf);
int rfs_ialloc(struct rfs_fs *fs, u32 *ino);
int rfs_iset(struct rfs_fs *fs, u32 ino, struct rfs_dinode **out,
	     struct rfs_buf **buf);
int rfs_ifree(struct rfs_fs *fs, u32 ino);
int rfs_imap_get(struct rfs_fs *fs, u32 block, bool create,
		 struct rfs_buf **out);

/* What a node says that it is */
struct rfs_node_id {
	u8 type;
	u8 level;		/* is compared if it is an index node */
	u32 ino, gen;
	u32 place;		/* see RFS_NODE_KEY() */
	bool leaf;		/* of a file, level 1: it may be runs */
};

/* The TIMB word of a block of the node map */
static inline u64 rfs_nmap_word(const struct rfs_fs *fs, u32 block)
{
	return rfs_timb(fs, fs->imap_blocks + block);
}

int rfs_nmap_get(struct rfs_fs *fs, u32 block, bool create,
		 struct rfs_buf **out);

/* Numbers in a block of the node map are so far apart */
static inline u32 rfs_nmap_step(const struct rfs_fs *fs, u32 block)
{
	return block < fs->nmap_leaves ? 1 : RFS_LEAF_WORDS;
}

/*
 * Where a node is; *addr is 0 if it was never written, or is runs; *used: it has a
 * number
 */
int rfs_node_where(struct rfs_fs *fs, u32 number, u64 *addr, bool *used);

/* What the node map says of a leaf that is runs; NULL: it is not. Of a number in use */
int rfs_node_runs(struct rfs_fs *fs, u32 number, struct rfs_buf **map,
		  struct rfs_runs **runs);

/* runs.c: a clean leaf that is what the runs say */
int rfs_runs_unfold(struct rfs_fs *fs, const struct rfs_node_id *id, u32 number,
		    const struct rfs_runs *runs, struct rfs_buf **out);
/* What a leaf is as runs, all blocks of which have one time then. False: it is none */
bool rfs_runs_make(struct rfs_fs *fs, struct rfs_buf *leaf,
		   struct rfs_runs *runs);

/* Is it a leaf that has a place for runs? */
bool rfs_node_may_fold(const struct rfs_fs *fs, const struct rfs_buf *buf);

/* A dirty leaf that can be runs is: 1, and it is clean. 0: it is not, and is written */
int rfs_node_fold(struct rfs_fs *fs, struct rfs_buf *buf);

/* A new one, dirty; *number is 0 after an error */
int rfs_node_new(struct rfs_fs *fs, const struct rfs_node_id *id, u32 *number,
		 struct rfs_buf **out);

/* -EUCLEAN: the number is not in use, or it is another node's */
int rfs_node_get(struct rfs_fs *fs, const struct rfs_node_id *id, u32 number,
		 struct rfs_buf **out);
int rfs_node_free(struct rfs_fs *fs, u32 number);

/* For cp.c: the block of the map with its word; it was written to addr */
int rfs_node_map(struct rfs_fs *fs, u32 number, struct rfs_buf **map);
int rfs_node_moved(struct rfs_fs *fs, u32 number, u64 addr);

/* For repair.c, rescan.c, which count what is live: it is there; it is not */
void rfs_node_reference(struct rfs_fs *fs, u32 number, bool referenced);
int rfs_node_adopt(struct rfs_fs *fs, u32 number, u64 addr);
int rfs_node_adopt_runs(struct rfs_fs *fs, u32 number,
			const struct rfs_runs *runs);
int rfs_node_forget(struct rfs_fs *fs, u32 number);

/* How many pointers or numbers an inode has, by its kind and height */
u32 rfs_root_slots(const struct rfs_dinode *di);

/* Is it of a kind that is known? */
static inline bool rfs_ptr_ok(const struct rfs_ptr *ptr)
{
	return ptr->kind == RFS_PTR_BLOCK ? rfs_addr(ptr->addr) :
	       !ptr->addr && ptr->kind <= RFS_PTR_PIECE;
}

/* And of those that a volume can have? */
static inline bool rfs_ptr_known(const struct rfs_fs *fs,
				 const struct rfs_ptr *ptr)
{
	if (rfs_ptr_ok(ptr))
		return true;
	return fs->home && rfs_ptr_has_home(ptr) && rfs_ptr_home(ptr) &&
	       (ptr->kind == RFS_PTR_ELSEWHERE || rfs_ptr_flash(ptr));
}

/* A block of what is no file; *out is NULL if there is none */
int rfs_block_get(struct rfs_fs *fs, u32 ino, u8 type, u32 block,
		  struct rfs_buf **out);
int rfs_block_new(struct rfs_fs *fs, u32 ino, u8 type, u8 level, u32 block,
		  struct rfs_buf **out);
int rfs_map_get(struct rfs_fs *fs, u32 ino, u64 block, struct rfs_ptr *out);
/* Of n blocks that follow each other; their pointers are ptr[0] and on */
int rfs_map_set(struct rfs_fs *fs, u32 ino, u64 block, u32 n,
		const struct rfs_ptr *ptr);
/* The same of an inode that rfs_iget() found in this operation */
int rfs_map_set_of(struct rfs_fs *fs, struct rfs_dinode *di,
		   struct rfs_buf *ibuf, u64 block, u32 n,
		   const struct rfs_ptr *ptr);

/*
 * The first block in from..to - 1 that is data, or a hole; `to` if none is.
 * -EAGAIN: go on at *out, so that others get their turn.
 */
int rfs_map_seek(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool for_data,
		 u64 *out);

/* Blocks from..to - 1 are gone; keep: preallocated from then on */
int rfs_map_prune(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool keep);

#define RFS_PRUNE_NODES	64	/* index nodes that are looked at in one hold */

/*
 * Some of what a file has that nobody can look at any more: -EAGAIN: there is more,
 * -EINPROGRESS as rfs_buf_read(). Nothing is logged.
 */
int rfs_map_empty(struct rfs_fs *fs, u32 ino);

/*
 * From *at on a file has no more than RFS_PRUNE_NODES leaves among from..to - 1, which
 * are in memory then; `from` if these are all
 */
int rfs_map_last_part(struct rfs_fs *fs, u32 ino, u64 from, u64 to, u64 *at);

/* Holes among from..to - 1 are preallocated */
int rfs_map_preallocate(struct rfs_fs *fs, u32 ino, u64 from, u64 to);

/* A block of a file has a piece: if it has nothing else, room is kept for it */
int rfs_map_piece(struct rfs_fs *fs, struct rfs_dinode *di,
		  struct rfs_buf *ibuf, u64 block);

struct rfs_extent {
	u64 block, addr;	/* the first; addr: 0 if it is kept for them */
	u64 n;			/* blocks; 0: there is none */
	bool slow;		/* the slow device alone has them, at addr */
	bool pieces;		/* all that there is of them is in the diff node */
};

#define RFS_EXTENT_MAX	65536	/* blocks */

/* Nodes that are to be made for from..to - 1 */
int rfs_map_needs(struct rfs_fs *fs, u32 ino, u64 from, u64 to, u64 *nodes);

/*
 * The first run of blocks that are in a row, or preallocated, in *from..to - 1.
 * -EAGAIN: none so far, go on at *from, so that others get their turn.
 */
int rfs_map_extent(struct rfs_fs *fs, u32 ino, u64 *from, u64 to,
		   struct rfs_extent *out);

/* Pointers that lie one after the other, of blocks that follow each other */
struct rfs_ptrs {
	struct rfs_ptr *at;	/* the first; NULL: none, and no create */
	struct rfs_buf *buf;	/* that has them */
	u32 n;
};

/* Those from a file's block on. rfs_ptr_known() is still to be asked of each. */
int rfs_map_ptrs(struct rfs_fs *fs, u32 ino, u64 block, bool create,
		 struct rfs_ptrs *out);
/* The same of an inode that rfs_iget() found in this operation; none are created */
int rfs_map_ptrs_of(struct rfs_fs *fs, struct rfs_dinode *di,
		    struct rfs_buf *ibuf, u64 block, struct rfs_ptrs *out);

/* A file's pointer to a block; NULL: there is none, and no create */
int rfs_map_slot(struct rfs_fs *fs, u32 ino, u64 block, bool create,
		 struct rfs_ptr **slot, struct rfs_buf **buf);

/*
 * Blocks that stat(2) tells of: without the diff node, since a program that writes nothing
 * would see it come when its small writes leave the page cache, and go when a page has
 * taken their place.
 */
static inline u64 rfs_blocks_told(const struct rfs_dinode *di)
{
	return le64_to_cpu(di->blocks) - !!di->diff;
}

/* An inode has so many blocks more: so have its owners */
static inline int rfs_blocks_add(struct rfs_fs *fs, struct rfs_dinode *di,
				 s64 delta)
{
	di->blocks = cpu_to_le64(le64_to_cpu(di->blocks) + delta);
	if (fs->ops->blocks)
		fs->ops->blocks(fs->dev, le32_to_cpu(di->ino),
				rfs_blocks_told(di));
	return fs->counting ? fs->up->charge(fs, di, delta, 0) : 0;
}

/*
 * proof.c: is it as the proof says? Outside the kernel, if somebody wants to be
 * told: what is not is then rfs_broken()'s.
 */
enum rfs_proof {
	RFS_AT_OPERATION,	/* one has ended, before another is admitted */
	RFS_AT_ADMISSION,	/* it is admitted */
	RFS_AT_SENDING,		/* one that takes no block, while pages are promised room */
	RFS_AT_CHECKPOINT,	/* which begins */
};

#ifdef __KERNEL__
static inline void rfs_prove(struct rfs_fs *fs, enum rfs_proof at)
{
}

static inline void rfs_prove_asked(struct rfs_fs *fs, u32 meta)
{
}
#else
extern void (*rfs_broken)(const struct rfs_fs *fs, const char *what);
void rfs_prove(struct rfs_fs *fs, enum rfs_proof at);
/* What was admitted adds so many blocks of metadata: these zones are there, too. */
void rfs_prove_asked(struct rfs_fs *fs, u32 meta);
#endif

#endif
