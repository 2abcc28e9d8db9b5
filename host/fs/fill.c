// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks of a hybrid volume that were read from the slow device come to flash in the background.
 * Only blocks that were read at random do, since a disk is good at reading in order. The page cache
 * has the blocks; a large folio there was read in order.
 */
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <linux/writeback.h>

#include "rfsm.h"
#include "flush.h"
#include "wake.h"
#include "reserve.h"
#include "append.h"
#include "bypass.h"
#include "tree/tree.h"

#define FILLS		256	/* blocks that wait; others are left at home */
#define FILL_AFTER	(HZ / 50)

/* These are the last blocks that were read. A reader does not wait for anything here. */
struct rfsm_fills {
	struct rfs_sb_info *sbi;
	struct delayed_work work;
	spinlock_t lock;	/* of what follows */
	u32 first, n;
	struct { u64 block; u32 ino; } at[FILLS];
};

void rfsm_fill_soon(struct rfs_sb_info *sbi, struct inode *inode, u64 block)
{
	struct rfsm_fills *f = sbi->fills;
	unsigned long flags;
	u32 i;

	if (!f || READ_ONCE(sbi->fs->read_only))
		return;
	spin_lock_irqsave(&f->lock, flags);
	if (f->n < FILLS) {
		i = (f->first + f->n++) % FILLS;
		f->at[i].ino = inode->i_ino;
		f->at[i].block = block;
	}
	spin_unlock_irqrestore(&f->lock, flags);
	queue_delayed_work(system_freezable_wq, &f->work, FILL_AFTER);
}

static bool rfsm_fill_next(struct rfsm_fills *f, u32 *ino, u64 *block)
{
	bool any;

	spin_lock_irq(&f->lock);
	any = f->n;
	if (any) {
		*ino = f->at[f->first].ino;
		*block = f->at[f->first].block;
		f->first = (f->first + 1) % FILLS;
		f->n--;
	}
	spin_unlock_irq(&f->lock);
	return any;
}

/*
 * Says whether a block is still at home alone, and all of it is valid. Behind the valid bytes the
 * page cache has zeroes, and both copies have to be equal.
 */
static int rfsm_fill_look(struct rfs_fs *fs, u32 ino, u64 block)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_ptr ptr;
	int ret = rfs_map_get(fs, ino, block, &ptr);

	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	/* Pieces lie over the page, and are newer than it is. */
	if (ptr.kind != RFS_PTR_ELSEWHERE || di->diff ||
	    rfs_ptr_len(&ptr) < RFS_BLOCK_BYTES)
		return -ENOENT;
	return 0;
}

/* Sends a locked folio whose content is that of the slow device. True says that it is in flight. */
static bool rfsm_fill_send(struct rfs_sb_info *sbi, struct inode *inode,
			   struct folio *folio)
{
	u64 block = folio->index;
	int ret;

	rfsm_query(sbi, ret, rfsm_fill_look(sbi->fs, inode->i_ino, block));
	/*
	 * The block may have gone home with bytes of an atomic write that is not durable. After a
	 * power cut, the check-point may lead to the older block at home. Then the page of this
	 * fill counts, and it must not do so without the other pages of that write.
	 */
	if (!ret)
		ret = rfsm_settle(inode);
	/* A fill does not wait for room. */
	if (!ret)
		ret = rfsm_reserve(sbi, inode, folio, block, 1, 1,
				   RFSM_NOT_YET);
	if (ret)
		return false;
	inode_attach_wb(inode, folio);	/* as if it had been dirtied */
	folio_start_writeback(folio);
	folio_unlock(folio);
	rfsm_append_fill(sbi, inode, block, folio);
	return true;
}

/*
 * Says whether a locked folio has the content that was read, and nothing that is newer. A folio in
 * which the file ends is left out. A truncate may be about to cut the block there. A page of the
 * whole block that is sent after the truncate's record would make the file longer again in a
 * recovery.
 */
static bool rfsm_fill_may(const struct inode *inode, struct folio *folio)
{
	return folio->mapping == inode->i_mapping && !folio_test_large(folio) &&
	       folio_pos(folio) + PAGE_SIZE <= i_size_read(inode) &&
	       !folio_test_private(folio) && !folio_test_dirty(folio) &&
	       !folio_test_writeback(folio) && folio_test_uptodate(folio);
}

static void rfsm_fill_one(struct rfs_sb_info *sbi, u32 ino, u64 block)
{
	struct inode *inode = ilookup(sbi->sb, ino);
	struct folio *folio;

	if (!inode)
		return;
	folio = filemap_get_folio(inode->i_mapping, block);
	if (!IS_ERR(folio)) {
		if (folio_trylock(folio) &&
		    !(rfsm_fill_may(inode, folio) &&
		      rfsm_fill_send(sbi, inode, folio)))
			folio_unlock(folio);
		folio_put(folio);
	}
	iput(inode);
}

static void rfsm_fill_work(struct work_struct *work)
{
	struct rfsm_fills *f = container_of(to_delayed_work(work),
					    struct rfsm_fills, work);
	struct super_block *sb = f->sbi->sb;
	u64 block;
	u32 ino;

	if (!sb_start_intwrite_trylock(sb))
		return;		/* frozen */
	if (down_read_trylock(&sb->s_umount)) {
		while (sb->s_root && !f->sbi->fs->read_only &&
		       rfsm_fill_next(f, &ino, &block))
			rfsm_fill_one(f->sbi, ino, block);
		up_read(&sb->s_umount);
	}
	sb_end_intwrite(sb);
}

int rfsm_fill_init(struct rfs_sb_info *sbi)
{
	struct rfsm_fills *f;

	/*
	 * Without page metadata appends go one after the other, so a fill would keep other writes
	 * waiting.
	 */
	if (!sbi->slow || !sbi->fs->geo.oob_bytes)
		return 0;
	f = kzalloc(sizeof(*f), GFP_KERNEL);
	if (!f)
		return -ENOMEM;
	f->sbi = sbi;
	spin_lock_init(&f->lock);
	INIT_DELAYED_WORK(&f->work, rfsm_fill_work);
	sbi->fills = f;
	return 0;
}

void rfsm_fill_exit(struct rfs_sb_info *sbi)
{
	if (!sbi->fills)
		return;
	cancel_delayed_work_sync(&sbi->fills->work);
	kfree(sbi->fills);
	sbi->fills = NULL;
}
