// SPDX-License-Identifier: GPL-2.0
/*
 * These are small writes. A block of which few bytes are new need not be a page on the drive, since
 * a record of the log can have them (doc/design.md, "Pieces of blocks").
 */
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "rfsm.h"
#include "error.h"
#include "flush.h"
#include "wake.h"
#include "blocks.h"
#include "reserve.h"
#include "append.h"

bool rfsm_log_is_enough(const struct rfs_sb_info *sbi)
{
	const struct rfs_fs *fs = sbi->fs;

	return READ_ONCE(fs->compact) && !READ_ONCE(fs->not_logged) &&
	       !READ_ONCE(fs->read_only);
}

bool rfsm_small_add(struct rfsm_batch *b, struct folio *folio, u64 block,
		    const struct rfsm_bytes *bytes, loff_t size)
{
	loff_t left = size - (loff_t)(block << PAGE_SHIFT);
	struct rfsm_small *small = &b->small[b->smalls];
	u32 to = min_t(loff_t, bytes->to, left);

	if (bytes->from >= to || to - bytes->from > RFS_SMALL_MAX)
		return false;
	small->folio = folio;
	small->block = block;
	small->from = bytes->from;
	small->bytes = to - bytes->from;
	small->len = min_t(loff_t, RFS_BLOCK_BYTES, left);
	b->smalls++;
	return true;
}

/*
 * Returns true if the block is in pieces, or is lost; then the mapping has the error. If the log
 * had no memory for it, the block has to be a page, and still has its reservation.
 */
static bool rfsm_small_piece(struct inode *inode, const struct rfsm_small *small)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	struct timespec64 mtime = inode_get_mtime(inode);
	struct folio *folio = small->folio;
	u64 off = (small->block << PAGE_SHIFT) + small->from;
	struct rfsm_miss miss = { 0 };
	bool again;
	int ret, fits;

	do {
		ret = 0;
		rfsm_lock(sbi);
		rfsm_miss_begin(sbi, &miss);
		fits = rfs_piece_fits(sbi->fs, inode->i_ino, off, small->bytes);
		again = rfsm_miss_end(sbi, &miss, fits);
		if (fits > 0) {
			ret = rfs_piece(sbi->fs, inode->i_ino, off,
					rfsm_folio_block(folio, small->block) +
					small->from, small->bytes,
					timespec64_to_ns(&mtime));
			if (ret == -ENOMEM && !sbi->fs->read_only)
				fits = ret;
			else
				rfsm_unreserve(sbi, inode, folio, small->block,
					       1);
		}
		rfsm_unlock(sbi);
		if (again)
			rfsm_miss_read(sbi, &miss);
	} while (again);
	if (ret && fits > 0)
		mapping_set_error(inode->i_mapping, rfsm_failed(sbi, ret));
	return fits > 0;
}

/* Returns the largest number of new bytes with which a block should become pieces. */
static u32 rfsm_small_most(struct inode *inode, const struct rfsm_batch *b,
			   bool alone)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	u16 bytes[RFSM_SMALLS];
	u32 most = 0, i;
	int ret;

	for (i = 0; i < b->smalls; i++)
		bytes[i] = b->small[i].bytes;
	rfsm_query(sbi, ret, rfs_piece_most(sbi->fs, inode->i_ino, bytes,
					    b->smalls, alone, &most));
	return ret ? 0 : most;
}

bool rfsm_ends_save(struct inode *inode, const struct rfsm_ends *ends,
		    bool alone)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	u32 most = 0, i;
	u16 bytes[2];
	int ret;

	if (!READ_ONCE(sbi->fs->compact))
		return false;
	for (i = 0; i < ends->n; i++)
		bytes[i] = ends->piece[i].len;
	rfsm_query(sbi, ret, rfs_piece_most(sbi->fs, inode->i_ino, bytes,
					    ends->n, alone, &most));
	for (i = 0; !ret && i < ends->n; i++)
		if (bytes[i] > most)
			return false;
	return !ret;
}

void rfsm_smalls_write(struct inode *inode, struct rfsm_batch *b, bool alone)
{
	u32 most = b->smalls ? rfsm_small_most(inode, b, alone) : 0;
	u32 i, left = 0;
	int ret;

	/* Between the first new byte and the last there may be old bytes of atomic writes. */
	ret = most ? rfsm_settle(inode) : 0;
	if (ret)
		mapping_set_error(inode->i_mapping, ret);
	for (i = 0; i < b->smalls; i++) {
		struct rfsm_small *small = &b->small[i];

		if (small->bytes <= most && rfsm_small_piece(inode, small))
			rfsm_blocks_sent(small->folio, small->block, 1);
		else
			b->small[left++] = *small;
	}
	if (left < b->smalls)
		rfsm_kick(RFS_SB(inode->i_sb));
	b->smalls = left;
}
