/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These are inodes, nodes, the maps that lead to them, and the blocks of files and directories. */
#ifndef RFS_TREE_H
#define RFS_TREE_H

#include "buffer/buffer.h"

/*
 * Makes all blocks dirty that lead to a dirty block, as the check-point would. Then fs->dirty.count
 * is the number of blocks that a check-point writes, except for tables and summaries.
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

/* This tells a node from others. */
struct rfs_node_id {
	u8 type;
	u8 level;		/* is compared if it is an index node */
	u32 ino, gen;
	u32 place;		/* see RFS_NODE_KEY() */
	bool leaf;		/* of a file, level 1: it may be runs */
};

/* Returns the TIMB word of a block of the node map. */
static inline u64 rfs_nmap_word(const struct rfs_fs *fs, u32 block)
{
	return rfs_timb(fs, fs->imap_blocks + block);
}

int rfs_nmap_get(struct rfs_fs *fs, u32 block, bool create,
		 struct rfs_buf **out);

/* Numbers in a block of the node map are so far apart. */
static inline u32 rfs_nmap_step(const struct rfs_fs *fs, u32 block)
{
	return block < fs->nmap_leaves ? 1 : RFS_LEAF_WORDS;
}

/*
 * Finds the address of a node. *addr is 0 if it was never written, or is runs. *used says that the
 * number is in use.
 */
int rfs_node_where(struct rfs_fs *fs, u32 number, u64 *addr, bool *used);

/*
 * Finds the entry of the node map for a leaf that is runs, or NULL if it is not. The number has to
 * be in use.
 */
int rfs_node_runs(struct rfs_fs *fs, u32 number, struct rfs_buf **map,
		  struct rfs_runs **runs);

/* runs.c: makes a clean leaf of runs. */
int rfs_runs_unfold(struct rfs_fs *fs, const struct rfs_node_id *id, u32 number,
		    const struct rfs_runs *runs, struct rfs_buf **out);
/*
 * Makes runs of a leaf, all blocks of which have one time from then on. False says that it cannot
 * be runs.
 */
bool rfs_runs_make(struct rfs_fs *fs, struct rfs_buf *leaf,
		   struct rfs_runs *runs);

/* Says whether this is a leaf that has a place for runs. */
bool rfs_node_may_fold(const struct rfs_fs *fs, const struct rfs_buf *buf);

/*
 * Returns 1 if a dirty leaf can be runs: it is runs then, and clean. Else it returns 0, and the
 * leaf is written.
 */
int rfs_node_fold(struct rfs_fs *fs, struct rfs_buf *buf);

/* Makes a new node, which is dirty. *number is 0 after an error. */
int rfs_node_new(struct rfs_fs *fs, const struct rfs_node_id *id, u32 *number,
		 struct rfs_buf **out);

/* Finds a node. -EUCLEAN says that the number is not in use, or is another node's. */
int rfs_node_get(struct rfs_fs *fs, const struct rfs_node_id *id, u32 number,
		 struct rfs_buf **out);
int rfs_node_free(struct rfs_fs *fs, u32 number);

/*
 * For cp.c, finds the block of the map that has the node's word, and enters the address at which it
 * was written.
 */
int rfs_node_map(struct rfs_fs *fs, u32 number, struct rfs_buf **map);
int rfs_node_moved(struct rfs_fs *fs, u32 number, u64 addr);

/*
 * These are for repair.c and rescan.c, which count live blocks: a node is referenced or not, is
 * found at addr or as runs, or is given up.
 */
void rfs_node_reference(struct rfs_fs *fs, u32 number, bool referenced);
int rfs_node_adopt(struct rfs_fs *fs, u32 number, u64 addr);
int rfs_node_adopt_runs(struct rfs_fs *fs, u32 number,
			const struct rfs_runs *runs);
int rfs_node_forget(struct rfs_fs *fs, u32 number);

/* Returns how many pointers or numbers an inode has, by its kind and height. */
u32 rfs_root_slots(const struct rfs_dinode *di);

/* Says whether a pointer is of a kind that every volume has. */
static inline bool rfs_ptr_ok(const struct rfs_ptr *ptr)
{
	return ptr->kind == RFS_PTR_BLOCK ? rfs_addr(ptr->addr) :
	       !ptr->addr && ptr->kind <= RFS_PTR_PIECE;
}

/* Says whether a pointer is of a kind that this volume can have. */
static inline bool rfs_ptr_known(const struct rfs_fs *fs,
				 const struct rfs_ptr *ptr)
{
	if (rfs_ptr_ok(ptr))
		return true;
	return fs->home && rfs_ptr_has_home(ptr) && rfs_ptr_home(ptr) &&
	       (ptr->kind == RFS_PTR_ELSEWHERE || rfs_ptr_flash(ptr));
}

/* Finds a block of an inode that is no file. *out is NULL if there is none. */
int rfs_block_get(struct rfs_fs *fs, u32 ino, u8 type, u32 block,
		  struct rfs_buf **out);
int rfs_block_new(struct rfs_fs *fs, u32 ino, u8 type, u8 level, u32 block,
		  struct rfs_buf **out);
int rfs_map_get(struct rfs_fs *fs, u32 ino, u64 block, struct rfs_ptr *out);
/* Sets the pointers of n blocks that follow each other to ptr[0] and on. */
int rfs_map_set(struct rfs_fs *fs, u32 ino, u64 block, u32 n,
		const struct rfs_ptr *ptr);
/* Does the same for an inode that rfs_iget() found in this operation. */
int rfs_map_set_of(struct rfs_fs *fs, struct rfs_dinode *di,
		   struct rfs_buf *ibuf, u64 block, u32 n,
		   const struct rfs_ptr *ptr);

/*
 * Finds the first block in from..to - 1 that is data or, without for_data, a hole. *out is `to` if
 * there is none. -EAGAIN says that the caller should go on at *out, so that others get their turn.
 */
int rfs_map_seek(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool for_data,
		 u64 *out);

/* Removes the blocks from..to - 1. With keep they become preallocated holes. */
int rfs_map_prune(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool keep);

#define RFS_PRUNE_NODES	64	/* index nodes that are looked at in one hold */

/*
 * Frees some blocks of a file that nobody can look at any more. -EAGAIN says that there are more,
 * and -EINPROGRESS is as for rfs_buf_read(). Nothing is logged.
 */
int rfs_map_empty(struct rfs_fs *fs, u32 ino);

/*
 * Finds the block *at from which on the file has no more than RFS_PRUNE_NODES leaves among from..to
 * - 1. These are in memory then. *at is `from` if the file has no more in all.
 */
int rfs_map_last_part(struct rfs_fs *fs, u32 ino, u64 from, u64 to, u64 *at);

/* Preallocates the holes among from..to - 1. */
int rfs_map_preallocate(struct rfs_fs *fs, u32 ino, u64 from, u64 to);

/*
 * Notes that a block of a file has a piece. If the block has nothing else, room is reserved for it
 * from now on.
 */
int rfs_map_piece(struct rfs_fs *fs, struct rfs_dinode *di,
		  struct rfs_buf *ibuf, u64 block);

struct rfs_extent {
	u64 block, addr;	/* the first; addr: 0 if it is kept for them */
	u64 n;			/* blocks; 0: there is none */
	bool slow;		/* the slow device alone has them, at addr */
	bool pieces;		/* all that there is of them is in the diff node */
};

#define RFS_EXTENT_MAX	65536	/* blocks */

/* Says how many nodes have to be made for from..to - 1. */
int rfs_map_needs(struct rfs_fs *fs, u32 ino, u64 from, u64 to, u64 *nodes);

/*
 * Finds the first run of blocks that are in a row, or preallocated, in *from..to - 1. -EAGAIN says
 * that there is none so far, and that the caller should go on at *from, so that others get their
 * turn.
 */
int rfs_map_extent(struct rfs_fs *fs, u32 ino, u64 *from, u64 to,
		   struct rfs_extent *out);

/* These pointers lie one after the other, and are of blocks that follow each other. */
struct rfs_ptrs {
	struct rfs_ptr *at;	/* the first; NULL: none, and no create */
	struct rfs_buf *buf;	/* that has them */
	u32 n;
};

/*
 * Finds the pointers from a file's block on. The caller still has to ask rfs_ptr_known() of each.
 */
int rfs_map_ptrs(struct rfs_fs *fs, u32 ino, u64 block, bool create,
		 struct rfs_ptrs *out);
/* Does the same for an inode that rfs_iget() found in this operation, and creates none. */
int rfs_map_ptrs_of(struct rfs_fs *fs, struct rfs_dinode *di,
		    struct rfs_buf *ibuf, u64 block, struct rfs_ptrs *out);

/* Finds a file's pointer to a block. It is NULL if there is none, and create is not set. */
int rfs_map_slot(struct rfs_fs *fs, u32 ino, u64 block, bool create,
		 struct rfs_ptr **slot, struct rfs_buf **buf);

/*
 * Returns the blocks that stat(2) reports. The diff node does not count: a program that writes
 * nothing would see it come when its small writes leave the page cache, and go when a page has
 * taken their place.
 */
static inline u64 rfs_blocks_told(const struct rfs_dinode *di)
{
	return le64_to_cpu(di->blocks) - !!di->diff;
}

/* Adds so many blocks to an inode and its owners. */
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
 * proof.c: checks whether the volume is as the proof says. That is done outside the kernel, if
 * somebody wants to be told: rfs_broken() is called with what is not so.
 */
enum rfs_proof {
	RFS_AT_OPERATION,	/* one has ended, before another is admitted */
	RFS_AT_ADMISSION,	/* it is admitted */
	RFS_AT_SENDING,		/* one that takes no block, while pages are reserved */
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
/* What was admitted adds so many blocks of metadata. The zones for these have to be there, too. */
void rfs_prove_asked(struct rfs_fs *fs, u32 meta);
#endif

#endif
