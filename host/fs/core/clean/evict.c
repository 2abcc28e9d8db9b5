// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Blocks of a hybrid volume's files are written home, and leave flash where it is short of room,
 * those of the coldest zone first. Nothing is copied for it. Where others use the volume while a
 * device is waited for, they may change blocks that are on their way, and write check-points.
 */
#include "home/home.h"
#include "tree/tree.h"
#include "clean/clean.h"

/* This block is only on flash. */
struct rfs_leaving {
	u64 off, addr;
	u32 ino;
	u32 crc;
	const void *data;
};

/* The blocks of this zone go home. */
struct rfs_homing {
	struct rfs_fs *fs;
	bool evict;		/* and leave flash */
	u32 left;		/* blocks that may still be written */
	u32 both;		/* that are on both devices now */
	u64 least;		/* room that is left to others */
	u64 cp_seq;		/* when the first of them was looked at */
	u32 n;
	struct rfs_leaving block[RFS_SUM_ENTRIES];
	const void *data[RFS_SUM_ENTRIES];
	struct rfs_copy copy;	/* their content, as it is read */
};

static int rfs_leaving_cmp(const void *a, const void *b)
{
	const struct rfs_leaving *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* A block that cannot be read, or is not what it was, stays, and so does its zone. */
static int rfs_homing_read(struct rfs_homing *h)
{
	struct rfs_copy *copy = &h->copy;
	struct rfs_fs *fs = h->fs;
	u32 i, all = h->n, nr;
	int ret;

	copy->n = all;
	for (i = 0; i < all; i++) {
		copy->from[i] = h->block[i].addr;
		copy->there[i] = false;
	}
	ret = rfs_copy_read(fs, copy);
	if (ret)
		return ret;
	for (i = 0, h->n = 0; i < all; i++) {
		const struct rfs_leaving *b = &h->block[i];

		if (copy->there[i] &&
		    b->crc == ~rfs_crc(~0U, copy->block[i], RFS_BLOCK_BYTES)) {
			h->data[h->n] = copy->block[i];
			h->block[h->n++] = *b;
			continue;
		}
		nr = b->addr / fs->geo.zone_blocks;
		rfs_zone_lost(fs, nr);
	}
	return 0;
}

/* Says whether there is no room for one more leaf that is dirty. */
static bool rfs_homing_tight(struct rfs_homing *h)
{
	rfs_dirty_parents(h->fs);
	return rfs_room_beside(h->fs, 0, 0) < h->least;
}

/*
 * A block is at home now, too, or there alone. If others have changed it, what was written is of no
 * use, and its place is free after the next check-point.
 */
static int rfs_homing_enter(struct rfs_homing *h, const struct rfs_leaving *b,
			    u64 home)
{
	struct rfs_fs *fs = h->fs;
	struct rfs_ptr ptr;
	int ret;

	/* The leaf was dirty when it was looked at. After a check-point it is not. */
	if (fs->cp_seq != h->cp_seq && rfs_homing_tight(h))
		return RFS_STOP;
	ret = rfs_map_get(fs, b->ino, b->off, &ptr);
	if (ret)
		return ret == -ENOENT ? 0 : ret;	/* that is: deleted */
	if (ptr.kind != RFS_PTR_BLOCK || rfs_ptr_flash(&ptr) != b->addr)
		return 0;
	rfs_ptr_put(&ptr, b->addr, home, rfs_ptr_len(&ptr));
	fs->stats.homed++;
	h->both += !h->evict;
	return h->evict ? rfs_evict_block(fs, b->ino, b->off, &ptr) :
			  rfs_map_set(fs, b->ino, b->off, 1, &ptr);
}

/* Writes blocks in the order of the files, in as few rows as there is room for. */
static int rfs_homing_write(struct rfs_homing *h)
{
	struct rfs_home_row row;
	u32 done = 0, n, i;
	int ret;

	rfs_sort(h->block, h->n, sizeof(*h->block), rfs_leaving_cmp);
	ret = rfs_homing_read(h);
	while (!ret && done < h->n) {
		n = rfs_home_alloc(h->fs, h->n - done, &row);
		if (!n) {
			ret = h->fs->home->count[RFS_SLOW_HELD] ? RFS_STOP :
								  -ENOSPC;
			break;
		}
		ret = rfs_home_send(h->fs, row.first, n, h->data + done);
		if (!ret && h->fs->read_only)	/* since others go on */
			ret = -EROFS;
		for (i = 0; !ret && i < n; i++)
			ret = rfs_homing_enter(h, &h->block[done + i],
					       row.first + i);
		rfs_home_row_over(h->fs, &row);
		done += n;
	}
	h->left -= min(h->left, h->n);
	h->n = 0;
	return ret;
}

/* The leaf is dirty at once, as it will be when the block is home. */
static int rfs_homing_look(void *arg, const struct rfs_oob *oob, u64 addr)
{
	struct rfs_homing *h = arg;
	struct rfs_fs *fs = h->fs;
	struct rfs_leaving *b;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_ptr *at, ptr;
	int ret = rfs_clean_look_up(fs, oob, &di, &at, &buf);

	if (ret || !at || rfs_ptr_flash(at) != addr)
		return ret;
	if (at->kind == RFS_PTR_BOTH && !h->evict) {
		h->both++;
		return 0;
	}
	if (!h->left || rfs_homing_tight(h))
		return RFS_STOP;
	rfs_buf_dirty(fs, buf);
	ptr = *at;
	if (ptr.kind == RFS_PTR_BOTH)
		return rfs_evict_block(fs, le32_to_cpu(oob->ino),
				       le64_to_cpu(oob->off), &ptr);
	if (!h->n)
		h->cp_seq = fs->cp_seq;
	b = &h->block[h->n++];
	b->ino = le32_to_cpu(oob->ino);
	b->off = le64_to_cpu(oob->off);
	b->addr = addr;
	b->crc = le32_to_cpu(oob->data_crc);
	return h->n == RFS_SUM_ENTRIES || h->n == h->left ?
	       rfs_homing_write(h) : 0;
}

static struct rfs_homing *rfs_homing_new(struct rfs_fs *fs, bool evict, u32 left)
{
	struct rfs_homing *h = rfs_alloc(sizeof(*h));

	if (!h)
		return NULL;
	if (rfs_copy_alloc_blocks(&h->copy)) {
		rfs_copy_free_blocks(&h->copy);
		rfs_free(h);
		return NULL;
	}
	h->fs = fs;
	h->evict = evict;
	h->left = left;
	h->least = rfs_room_kept(fs);
	return h;
}

/* Nobody else cleans the zone, and nobody resets it. */
static void rfs_set_leaving(struct rfs_fs *fs, u32 nr, bool leaving)
{
	fs->zone[nr].cleaning = leaving;
	rfs_zone_changed(fs, nr);
}

/*
 * Blocks of a zone go home, and leave flash if they are to. RFS_STOP says that not all of them did,
 * and a check-point has to come before. *left is the blocks that may be written and are not.
 */
static int rfs_home_zone(struct rfs_fs *fs, u32 nr, bool evict, u32 *left)
{
	struct rfs_homing *h = rfs_homing_new(fs, evict, *left);
	int ret, error;

	if (!h)
		return -ENOMEM;
	rfs_set_leaving(fs, nr, true);
	ret = rfs_zone_data(fs, nr, rfs_homing_look, h);
	if (ret >= 0 && h->n) {
		error = rfs_homing_write(h);
		ret = ret ? ret : error;
	}
	/* What it still has cannot be read, so it does not go again. */
	if (!ret && evict && fs->zone[nr].live)
		rfs_zone_lost(fs, nr);
	rfs_set_leaving(fs, nr, false);
	if (!ret && !evict)
		fs->home->both_in[nr] = h->both;
	*left = h->left;
	rfs_copy_free_blocks(&h->copy);
	rfs_free(h);
	return ret;
}

/* Says whether nothing is appended to the zone, and it has blocks of files that can be read. */
static bool rfs_zone_can_go(const struct rfs_fs *fs, u32 nr)
{
	const struct rfs_zone_info *z = &fs->zone[nr];

	return z->state == RFS_Z_USED && z->stream >= RFS_S_DATA && z->live &&
	       z->cond == RFS_DEV_OK && !z->inflight && !z->cleaning;
}

/* Returns the zone whose blocks are written least (SFS 3.3), or 0 if there is none. */
static u32 rfs_coldest_zone(const struct rfs_fs *fs)
{
	u64 now = rfs_now(fs), least = ~0ULL;
	struct rfs_segment seg;
	u32 nr, best = 0;

	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		if (!rfs_zone_can_go(fs, nr))
			continue;
		rfs_segment(fs, nr, now, &seg);
		if (best && seg.hot >= least)
			continue;
		least = seg.hot;
		best = nr;
	}
	return best;
}

/* Each zone goes once, with as many check-points as its leaves need. */
static u32 rfs_spare_rounds_most(const struct rfs_fs *fs)
{
	return fs->geo.zones * (2 + fs->geo.zone_blocks / (fs->dirty_max / 2));
}

bool rfs_flash_lacks(const struct rfs_fs *fs, u64 data, u64 meta)
{
	return fs->home && rfs_used_with(fs, data, meta) > fs->user_blocks;
}

bool rfs_flash_crowded(const struct rfs_fs *fs)
{
	return rfs_flash_lacks(fs, fs->user_blocks / RFS_SPARE, 0);
}

int rfs_evict_coldest(struct rfs_fs *fs,
		      int (*checkpoint)(struct rfs_fs *fs, u32 flags))
{
	u32 nr = rfs_coldest_zone(fs), left = ~0U;
	int ret = nr ? rfs_home_zone(fs, nr, true, &left) : -ENOENT;

	return ret == RFS_STOP ? checkpoint(fs, 0) : ret;
}

int rfs_spare(struct rfs_fs *fs, u64 data, u64 meta, u64 more,
	      int (*checkpoint)(struct rfs_fs *fs, u32 flags))
{
	u32 tries = rfs_spare_rounds_most(fs);
	int ret = 0;

	if (!rfs_flash_lacks(fs, data, meta))
		return 0;
	while (!ret && tries-- && rfs_flash_lacks(fs, data + more, meta))
		ret = rfs_evict_coldest(fs, checkpoint);
	if (ret && ret != -ENOENT)
		return ret;
	return rfs_flash_lacks(fs, data, meta) ? -ENOSPC : 0;
}

int rfs_destage(struct rfs_fs *fs, u32 *most,
		int (*checkpoint)(struct rfs_fs *fs, u32 flags))
{
	u32 nr;
	int ret = 0;

	for (nr = RFS_CP_ZONES; !ret && *most && nr < fs->geo.zones; nr++) {
		if (!rfs_zone_can_go(fs, nr) ||
		    fs->home->both_in[nr] >= fs->zone[nr].live)
			continue;
		ret = rfs_home_zone(fs, nr, false, most);
		if (ret == RFS_STOP)
			return *most ? checkpoint(fs, 0) : 0;
	}
	return ret;
}
