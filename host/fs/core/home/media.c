// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The slow device has its superblock, the table of states, and blocks of files. A block of the
 * table is written over the copy that does not count, so that the one which belongs to the
 * check-point before stays until this check-point is there.
 */
#include "home/replica.h"

static int rfs_gone_read(void *dev, u64 block, void *data)
{
	(void)dev;
	(void)block;
	(void)data;
	return -ENXIO;
}

static int rfs_gone_write(void *dev, u64 block, u32 n, const void *const *data)
{
	(void)dev;
	(void)block;
	(void)n;
	(void)data;
	return -ENXIO;
}

static int rfs_gone_flush(void *dev)
{
	(void)dev;
	return -ENXIO;
}

const struct rfs_slow_dev rfs_slow_gone = {
	.read = rfs_gone_read,
	.write = rfs_gone_write,
	.flush = rfs_gone_flush,
};

int rfs_home_read(struct rfs_fs *fs, u64 block, void *data)
{
	struct rfs_home *home = fs->home;
	int ret;

	if (!home->gone && block - home->first >= home->blocks)
		return -EUCLEAN;
	ret = home->slow.read(home->slow.dev, block, data);
	fs->stats.slow_errors += !!ret;
	return ret;
}

int rfs_home_copy(struct rfs_fs *fs, u64 block, u32 n, const void *const *data)
{
	struct rfs_home *home = fs->home;
	int ret = home->slow.write(home->slow.dev, block, n, data);

	fs->stats.slow_errors += !!ret;
	return ret;
}

int rfs_home_write(struct rfs_fs *fs, u64 block, u32 n, const void *const *data)
{
	fs->home->loose = true;
	return rfs_home_copy(fs, block, n, data);
}

int rfs_home_send(struct rfs_fs *fs, u64 block, u32 n, const void *const *data)
{
	struct rfs_home *home = fs->home;
	u32 bad;
	int ret;

	if (!home->slow.send)
		return rfs_home_write(fs, block, n, data);
	do {
		bad = home->bad_flushes;
		ret = home->slow.send(home->slow.dev, block, n, data);
	} while (!ret && home->bad_flushes != bad);
	/* A check-point that came meanwhile has not flushed this row. */
	home->loose = true;
	fs->stats.slow_errors += !!ret;
	return ret;
}

int rfs_home_flush_all(struct rfs_fs *fs)
{
	struct rfs_home *home = fs->home;
	int ret = 0;

	if (!rfs_injects(fs, RFS_INJECT_SLOW))
		ret = home->slow.flush(home->slow.dev);
	if (ret)
		home->bad_flushes++;
	else
		home->loose = false;
	return ret;
}

int rfs_home_flush(struct rfs_fs *fs)
{
	return fs->home->loose ? rfs_home_flush_all(fs) : 0;
}

int rfs_home_alloc_tables(struct rfs_fs *fs, bool gone)
{
	struct rfs_home *home = rfs_alloc(sizeof(*home));
	u64 replica = rfs_has_replica(&fs->super) ?
		      le64_to_cpu(fs->super.replica_blocks) : 0;
	u64 blocks = le64_to_cpu(fs->super.slow_blocks) - replica;

	if (!home)
		return -ENOMEM;
	fs->home = home;
	home->slow = *fs->geo.slow;
	home->gone = gone;
	home->blocks = rfs_home_blocks(blocks);
	home->tables = rfs_home_tables(blocks);
	home->first = rfs_states_at(home->tables, 0);
	home->count[RFS_SLOW_FREE] = home->blocks;
	home->state = rfs_alloc((size_t)home->tables * (RFS_SLOW_EACH / 4));
	home->copy = rfs_alloc(home->tables);
	home->stamp = rfs_alloc((size_t)home->tables * sizeof(*home->stamp));
	home->both_in = rfs_alloc(fs->geo.zones * sizeof(*home->both_in));
	if (!home->state || !home->copy || !home->stamp || !home->both_in ||
	    rfs_bits_alloc(&home->due, home->tables) ||
	    rfs_bits_alloc(&home->held, home->tables))
		return -ENOMEM;
	if (!replica || gone)
		return 0;
	home->replica = rfs_alloc(sizeof(*home->replica));
	return home->replica ? rfs_replica_alloc(home->replica, blocks, replica,
						 rfs_places_end(fs),
						 fs->geo.zones) : -ENOMEM;
}

void rfs_home_free(struct rfs_fs *fs)
{
	if (!fs->home)
		return;
	rfs_free(fs->home->state);
	rfs_free(fs->home->copy);
	rfs_free(fs->home->stamp);
	rfs_free(fs->home->both_in);
	rfs_bits_free(&fs->home->due);
	rfs_bits_free(&fs->home->held);
	rfs_replica_free(fs->home->replica);
	rfs_free(fs->home);
	fs->home = NULL;
}

static bool rfs_slow_head_ok(const struct rfs_fs *fs, const struct rfs_head *head,
			     u8 type)
{
	return rfs_head_ok(head, fs->volume, type) &&
	       !memcmp(head->uuid, fs->super.uuid + sizeof(head->volume),
		       sizeof(head->uuid));
}

static int rfs_home_load_super(struct rfs_fs *fs, struct rfs_slow_super *super)
{
	struct rfs_home *home = fs->home;
	int ret = home->slow.read(home->slow.dev, 0, super);

	if (ret)
		return ret;
	if (!rfs_slow_head_ok(fs, &super->head, RFS_SLOW_SUPER))
		return -ENODEV;
	if (super->blocks != fs->super.slow_blocks ||
	    super->replica_blocks != fs->super.replica_blocks)
		return -EUCLEAN;
	return home->slow.blocks < le64_to_cpu(super->blocks) ? -EOVERFLOW : 0;
}

/* Says whether a copy counts beside one of check-point *best, which is 0 if there is none. */
static bool rfs_states_ok(struct rfs_fs *fs, u32 table,
			  const struct rfs_slow_states *block, u64 *best)
{
	u64 seq = le64_to_cpu(block->head.stamp);

	if (!rfs_slow_head_ok(fs, &block->head, RFS_SLOW_STATES) ||
	    le64_to_cpu(block->head.off) != table)
		return false;
	if (seq > fs->cp_seq) {
		/*
		 * The check-point of this copy did not come. The copy is overwritten before the
		 * next one.
		 */
		rfs_bits_put(&fs->home->due, table, true);
		fs->home->later = max(fs->home->later, seq);
		return false;
	}
	if (seq <= *best)
		return false;
	*best = seq;
	return true;
}

static int rfs_home_load_table(struct rfs_fs *fs, u32 table,
			       struct rfs_slow_states *block)
{
	struct rfs_home *home = fs->home;
	u64 *best = &home->stamp[table], nr = (u64)table * RFS_SLOW_EACH;
	u8 *state = home->state + nr / 4;
	u32 copy;

	for (copy = 0; copy < 2; copy++) {
		if (home->slow.read(home->slow.dev, rfs_states_at(table, copy),
				    block) ||
		    !rfs_states_ok(fs, table, block, best))
			continue;
		home->copy[table] = copy;
		memcpy(state, block->state, sizeof(block->state));
	}
	for (; nr < min(home->blocks, (table + 1ULL) * RFS_SLOW_EACH); nr++) {
		u32 is = rfs_home_state(home, nr);

		if (is == RFS_SLOW_HELD && !home->replica)
			return -EUCLEAN;
		if (is == RFS_SLOW_HELD)
			rfs_bits_put(&home->held, table, true);
		home->count[RFS_SLOW_FREE]--;
		home->count[is]++;
	}
	return 0;
}

/*
 * Returns by how much the sum of stamps is too small. If a copy is damaged the one before it
 * counts, which has a lower stamp, or none. So each damaged copy makes the sum smaller.
 */
static u32 rfs_states_lacking(const struct rfs_fs *fs)
{
	bool none = false;
	u32 i, sum = 0;

	for (i = 0; i < fs->home->tables; i++) {
		none |= !fs->home->stamp[i];
		sum += fs->home->stamp[i];
	}
	if (fs->states_sum && fs->states_sum != sum)
		return fs->states_sum - sum;
	return none;
}

/*
 * Loads the replica. A damaged one, or one that cannot be read now, counts as none, and the next is
 * made of all metadata. The medium has to say so before any block is written to which the old one
 * may lead.
 */
static int rfs_home_load_replica(struct rfs_fs *fs)
{
	struct rfs_replica *r = fs->home->replica;
	u32 nr;
	int ret = rfs_replica_load(r, &fs->home->slow, fs->volume,
				   fs->super.uuid + sizeof(fs->super.head.volume));

	if (ret == -ENOMEM)
		return ret;
	if (!ret && r->seq > fs->cp_seq)
		ret = -EUCLEAN;
	if (ret)
		rfs_replica_forget(r);
	if (ret && ret != -ENOENT)
		r->heads = RFS_HEADS_UNKNOWN;
	r->unlike = r->seq != fs->cp_seq;
	/* Zones that the check-point has freed may have been reset since. */
	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++)
		rfs_bits_put(&r->anew, nr, fs->zone[nr].state == RFS_Z_FREE);
	if (r->heads == RFS_HEADS_SAME && (!r->unlike || !r->blocks))
		rfs_home_release(fs);
	return 0;
}

int rfs_home_load(struct rfs_fs *fs, bool read_only)
{
	bool gone = fs->geo.slow == &rfs_slow_gone;
	void *block;
	u32 i;
	int ret;

	if (!rfs_is_hybrid(&fs->super))
		return fs->geo.slow ? -ENODEV : 0;
	if (!fs->geo.slow)
		return -ENOMEDIUM;
	if (gone && !read_only)
		return -ENXIO;
	ret = rfs_home_alloc_tables(fs, gone);
	if (ret || gone)
		return ret;
	block = rfs_alloc(RFS_BLOCK_BYTES);
	ret = block ? rfs_home_load_super(fs, block) : -ENOMEM;
	for (i = 0; !ret && i < fs->home->tables; i++)
		ret = rfs_home_load_table(fs, i, block);
	rfs_free(block);
	if (!ret && fs->home->replica)
		ret = rfs_home_load_replica(fs);
	if (ret)
		return ret;
	fs->home->lacks = rfs_states_lacking(fs);
	return fs->home->lacks && !read_only && !fs->geo.slow->will_repair ?
	       -EUCLEAN : 0;
}

/*
 * Says whether the medium may have a replica. If so, blocks that it leads to are held across
 * check-points.
 */
static bool rfs_home_keeps(const struct rfs_home *home)
{
	return home->replica && (home->replica->blocks ||
				 home->replica->heads != RFS_HEADS_SAME);
}

static int rfs_home_write_table(struct rfs_fs *fs, u32 table,
				struct rfs_slow_states *block)
{
	struct rfs_home *home = fs->home;
	const u8 *state = home->state + (u64)table * (RFS_SLOW_EACH / 4);
	u32 copy = !home->copy[table], i;
	const void *data = block;

	if (rfs_injects(fs, RFS_INJECT_STATES))
		copy = home->copy[table];
	memset(block, 0, sizeof(*block));
	rfs_head_init(fs, &block->head, RFS_SLOW_STATES, 0, 0, table);
	memcpy(block->state, state, sizeof(block->state));
	for (i = 0; !rfs_home_keeps(home) && i < sizeof(block->state); i++)
		block->state[i] = rfs_states_unheld(state[i]);
	rfs_head_seal(&block->head, fs->cp_seq + 1);
	return rfs_home_write(fs, rfs_states_at(table, copy), 1, &data);
}

int rfs_home_write_states(struct rfs_fs *fs)
{
	struct rfs_slow_states *block = rfs_alloc(sizeof(*block));
	u32 table;
	int ret = block ? 0 : -ENOMEM;

	rfs_bits_each(&fs->home->due, table) {
		if (ret)
			break;
		ret = rfs_home_write_table(fs, table, block);
	}
	rfs_free(block);
	return ret ? ret : rfs_home_flush(fs);
}

/*
 * The sum includes the difference that was found when it was loaded, so the next mount sees it
 * again until it is repaired.
 */
u32 rfs_home_states_sum(const struct rfs_fs *fs)
{
	const struct rfs_home *home = fs->home;
	u32 sum = home->lacks, i;

	for (i = 0; i < home->tables; i++)
		sum += rfs_bits_has(&home->due, i) ? fs->cp_seq + 1 :
						     home->stamp[i];
	return sum;
}

void rfs_home_committed(struct rfs_fs *fs)
{
	struct rfs_home *home = fs->home;
	u32 table;

	rfs_bits_each(&home->due, table) {
		if (!rfs_injects(fs, RFS_INJECT_STATES))
			home->copy[table] = !home->copy[table];
		home->stamp[table] = fs->cp_seq;
		rfs_bits_put(&home->due, table, false);
	}
	if (!rfs_home_keeps(home) || rfs_injects(fs, RFS_INJECT_KEPT))
		rfs_home_release(fs);
}
