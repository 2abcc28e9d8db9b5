// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What files of a hybrid volume have on flash: blocks are written home, and leave flash
 * where it is short of room, those of the coldest zone first. Nothing is copied for it.
 */
#include "home/home.h"
#include "tree/tree.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"

#define STOP	1	/* a check-point first: for room, or for blocks that are held */

/* A block that flash alone has */
struct rfs_leaving {
	u64 off, addr;
	u32 ino;
	u32 crc;
	const void *data;
};

/* A zone whose blocks go home */
struct rfs_homing {
	struct rfs_fs *fs;
	bool evict;		/* and leave flash */
	u32 left;		/* blocks that may still be written */
	u32 both;		/* that are on both devices now */
	u64 least;		/* room that is left to others */
	u32 n;
	struct rfs_leaving block[RFS_SUM_ENTRIES];
	const void *data[RFS_SUM_ENTRIES];
	u8 *memory;		/* of them */
};

static int rfs_leaving_cmp(const void *a, const void *b)
{
	const struct rfs_leaving *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* What cannot be read, or is not what it was, stays, and so does its zone. */
static void rfs_homing_read(struct rfs_homing *h)
{
	struct rfs_fs *fs = h->fs;
	u32 i, all = h->n, nr;

	for (i = 0, h->n = 0; i < all; i++) {
		struct rfs_leaving *b = &h->block[i];
		void *data = h->memory + (size_t)h->n * RFS_BLOCK_BYTES;

		if (!fs->ops->read(fs->dev, b->addr, data, NULL) &&
		    b->crc == ~rfs_crc(~0U, data, RFS_BLOCK_BYTES)) {
			h->data[h->n] = data;
			h->block[h->n++] = *b;
			continue;
		}
		nr = b->addr / fs->geo.zone_blocks;
		fs->zone[nr].cond = RFS_DEV_READ_ONLY;
		rfs_zone_changed(fs, nr);
	}
}

/* A block is at home now, too, or there alone. */
static int rfs_homing_enter(struct rfs_homing *h, const struct rfs_leaving *b,
			    u64 home)
{
	struct rfs_fs *fs = h->fs;
	struct rfs_ptr ptr;
	int ret = rfs_map_get(fs, b->ino, b->off, &ptr);

	if (ret || ptr.kind != RFS_PTR_BLOCK || rfs_ptr_flash(&ptr) != b->addr)
		return ret ? ret : -EUCLEAN;
	rfs_ptr_put(&ptr, b->addr, home, rfs_ptr_len(&ptr));
	fs->stats.homed++;
	h->both += !h->evict;
	return h->evict ? rfs_evict_block(fs, b->ino, b->off, &ptr) :
			  rfs_map_set(fs, b->ino, b->off, 1, &ptr);
}

/* In the order of the files, in as few rows as there is room for */
static int rfs_homing_write(struct rfs_homing *h)
{
	u32 done = 0, n, i;
	u64 home;
	int ret = 0;

	rfs_sort(h->block, h->n, sizeof(*h->block), rfs_leaving_cmp);
	rfs_homing_read(h);
	while (!ret && done < h->n) {
		n = rfs_home_alloc(h->fs, h->n - done, &home);
		if (!n) {
			ret = h->fs->home->count[RFS_SLOW_HELD] ? STOP :
								  -ENOSPC;
			break;
		}
		ret = rfs_home_write(h->fs, home, n, h->data + done);
		for (i = 0; !ret && i < n; i++)
			ret = rfs_homing_enter(h, &h->block[done + i], home + i);
		done += n;
	}
	h->left -= min(h->left, h->n);
	h->n = 0;
	return ret;
}

/* The leaf is dirty at once: as it will be when the block is home. */
static int rfs_homing_look(void *arg, const struct rfs_oob *oob, u64 addr)
{
	u32 ino = le32_to_cpu(oob->ino);
	u64 off = le64_to_cpu(oob->off);
	struct rfs_homing *h = arg;
	struct rfs_fs *fs = h->fs;
	struct rfs_leaving *b;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_ptr *at, ptr;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (!ret && di->gen != oob->gen)
		return 0;
	if (!ret)
		ret = rfs_map_slot(fs, ino, off, false, &at, &buf);
	if (ret)
		return ret == -ENOENT ? 0 : ret;	/* that is: deleted */
	if (!at || rfs_ptr_flash(at) != addr)
		return 0;
	if (at->kind == RFS_PTR_BOTH && !h->evict) {
		h->both++;
		return 0;
	}
	rfs_dirty_parents(fs);
	if (!h->left || rfs_room_beside(fs, 0, 0) < h->least)
		return STOP;
	rfs_buf_dirty(fs, buf);
	ptr = *at;
	if (ptr.kind == RFS_PTR_BOTH)
		return rfs_evict_block(fs, ino, off, &ptr);
	b = &h->block[h->n++];
	b->ino = ino;
	b->off = off;
	b->addr = addr;
	b->crc = le32_to_cpu(oob->data_crc);
	return h->n == RFS_SUM_ENTRIES || h->n == h->left ?
	       rfs_homing_write(h) : 0;
}

/*
 * Blocks of a zone go home, and leave flash if they are to. STOP: not all of them, a
 * check-point has to come before. *left: blocks that may be written, and are not.
 */
static int rfs_home_zone(struct rfs_fs *fs, u32 nr, bool evict, u32 *left)
{
	struct rfs_homing *h = rfs_alloc(sizeof(*h));
	int ret = h ? 0 : -ENOMEM, error;

	if (ret)
		return ret;
	h->memory = rfs_alloc(RFS_SUM_ENTRIES * RFS_BLOCK_BYTES);
	h->fs = fs;
	h->evict = evict;
	h->left = *left;
	h->least = rfs_room_kept(fs);
	ret = h->memory ? rfs_zone_data(fs, nr, rfs_homing_look, h) : -ENOMEM;
	if (ret >= 0 && h->n) {
		error = rfs_homing_write(h);
		ret = ret ? ret : error;
	}
	if (!ret && !evict)
		fs->home->both_in[nr] = h->both;
	*left = h->left;
	rfs_free(h->memory);
	rfs_free(h);
	return ret;
}

/* Nothing is appended to it, and it has blocks of files that can be read */
static bool rfs_zone_can_go(const struct rfs_fs *fs, u32 nr)
{
	const struct rfs_zone_info *z = &fs->zone[nr];

	return z->state == RFS_Z_USED && z->stream >= RFS_S_DATA && z->live &&
	       z->cond == RFS_DEV_OK && !z->inflight && !z->cleaning;
}

/* The zone whose blocks are written least (SFS 3.3); 0: there is none */
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

#define SPARE	16	/* once flash is full, what part of it becomes spare */

int rfs_spare(struct rfs_fs *fs, u64 data, u64 meta)
{
	u32 tries = rfs_spare_rounds_most(fs), nr, left;
	u64 more = fs->user_blocks / SPARE;
	int ret = 0;

	if (rfs_used_with(fs, data, meta) <= fs->user_blocks)
		return 0;
	while (!ret && tries-- &&
	       rfs_used_with(fs, data + more, meta) > fs->user_blocks) {
		nr = rfs_coldest_zone(fs);
		if (!nr)
			break;
		left = ~0U;
		ret = rfs_home_zone(fs, nr, true, &left);
		if (ret == STOP)
			ret = rfs_checkpoint(fs, 0);
	}
	if (!ret && rfs_used_with(fs, data, meta) > fs->user_blocks)
		ret = -ENOSPC;
	return ret;
}

int rfs_destage(struct rfs_fs *fs, u32 *most)
{
	u32 nr;
	int ret = 0;

	for (nr = RFS_CP_ZONES; !ret && *most && nr < fs->geo.zones; nr++) {
		if (!rfs_zone_can_go(fs, nr) ||
		    fs->home->both_in[nr] >= fs->zone[nr].live)
			continue;
		ret = rfs_home_zone(fs, nr, false, most);
		if (ret == STOP)
			return *most ? rfs_checkpoint(fs, 0) : 0;
	}
	return ret;
}
