// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each block of the slow device has two bits that say whether it is in use. A block that is given
 * up is held until a check-point is durable that does not lead to it: until then, a power cut may
 * lead back to the check-point before.
 */
#include "home/home.h"

u32 rfs_home_tables(u64 device_blocks)
{
	/* Each table has two copies beside its blocks. */
	return device_blocks < 2 ? 0 : DIV_ROUND_UP(device_blocks - 1,
						    RFS_SLOW_EACH + 2ULL);
}

u64 rfs_home_blocks(u64 device_blocks)
{
	u64 taken = 1 + 2ULL * rfs_home_tables(device_blocks);

	return device_blocks > taken ? device_blocks - taken : 0;
}

u32 rfs_home_state(const struct rfs_home *home, u64 nr)
{
	return home->state[nr / 4] >> nr % 4 * 2 & 3;
}

static void rfs_home_set(struct rfs_home *home, u64 nr, u32 state)
{
	u32 shift = nr % 4 * 2;

	home->count[rfs_home_state(home, nr)]--;
	home->count[state]++;
	home->state[nr / 4] = (home->state[nr / 4] & ~(3U << shift)) |
			      state << shift;
	rfs_bits_put(&home->due, nr / RFS_SLOW_EACH, true);
	if (state == RFS_SLOW_HELD)
		rfs_bits_put(&home->held, nr / RFS_SLOW_EACH, true);
}

/* Says whether none of the 32 blocks from this one on is free. Each of them has a bit then. */
static bool rfs_home_none_free(const struct rfs_home *home, u64 from)
{
	u64 states;

	static_assert(!RFS_SLOW_FREE);
	memcpy(&states, home->state + from / 4, sizeof(states));
	return !(~(states | states >> 1) & 0x5555555555555555ULL);
}

/* Returns the first free block in from..to - 1, or `to`. */
static u64 rfs_home_search(const struct rfs_home *home, u64 from, u64 to)
{
	while (from < to && rfs_home_state(home, from) != RFS_SLOW_FREE)
		from += !(from % 32) && from + 32 <= to &&
			rfs_home_none_free(home, from) ? 32 : 1;
	return from;
}

u32 rfs_home_alloc(struct rfs_fs *fs, u32 n, struct rfs_home_row *row)
{
	struct rfs_home *home = fs->home;
	u64 nr;
	u32 i;

	if (!n || !home->count[RFS_SLOW_FREE] || home->lacks)
		return 0;
	nr = rfs_home_search(home, home->cursor, home->blocks);
	if (nr == home->blocks)
		nr = rfs_home_search(home, 0, home->cursor);
	for (i = 0; i < n && nr + i < home->blocks &&
	     rfs_home_state(home, nr + i) == RFS_SLOW_FREE; i++)
		rfs_home_set(home, nr + i, RFS_SLOW_HELD);
	home->cursor = nr + i == home->blocks ? 0 : nr + i;
	row->first = home->first + nr;
	row->n = i;
	row->next = home->rows;
	home->rows = row;
	return i;
}

void rfs_home_row_over(struct rfs_fs *fs, struct rfs_home_row *row)
{
	struct rfs_home_row **at = &fs->home->rows;

	while (*at != row)
		at = &(*at)->next;
	*at = row->next;
}

void rfs_home_hold_rows(struct rfs_fs *fs)
{
	struct rfs_home *home = fs->home;
	const struct rfs_home_row *row;
	u64 nr;
	u32 i;

	for (row = home->rows; row; row = row->next)
		for (i = 0; i < row->n; i++) {
			nr = row->first - home->first + i;
			if (rfs_home_state(home, nr) == RFS_SLOW_FREE)
				rfs_home_set(home, nr, RFS_SLOW_HELD);
		}
}

void rfs_home_release(struct rfs_fs *fs)
{
	struct rfs_home *home = fs->home;
	u32 table, i;

	rfs_bits_each(&home->held, table) {
		u8 *state = home->state + (u64)table * (RFS_SLOW_EACH / 4);

		for (i = 0; i < RFS_SLOW_EACH / 4; i++)
			state[i] = rfs_states_unheld(state[i]);
		rfs_bits_put(&home->held, table, false);
	}
	home->count[RFS_SLOW_FREE] += home->count[RFS_SLOW_HELD];
	home->count[RFS_SLOW_HELD] = 0;
	rfs_home_hold_rows(fs);
}

/* The number at the mount is not known, so this may be less than the real number. */
static int rfs_home_count_flash(struct rfs_fs *fs, const struct rfs_ptr *ptr,
				int delta)
{
	u64 addr = rfs_ptr_flash(ptr);
	u32 *both = &fs->home->both_in[addr / fs->geo.zone_blocks];
	int ret = rfs_count_live(fs, addr, delta, ptr);

	if (!ret && (delta > 0 || *both))
		*both += delta;
	return ret;
}

int rfs_home_count(struct rfs_fs *fs, const struct rfs_ptr *ptr, int delta)
{
	u32 to = ptr->kind == RFS_PTR_BOTH ? RFS_SLOW_BOTH : RFS_SLOW_ALONE;
	struct rfs_home *home = fs->home;
	u64 nr = rfs_ptr_home(ptr);
	u32 is;

	if (!home)
		return -EUCLEAN;
	if (!home->gone) {
		nr -= home->first;
		if (nr >= home->blocks)
			return -EUCLEAN;
		is = rfs_home_state(home, nr);
		if (!home->lacks &&
		    (delta > 0 ? is & RFS_SLOW_ALONE : is != to))
			return -EUCLEAN;
		if (delta < 0)
			to = rfs_injects(fs, RFS_INJECT_HOME) ? RFS_SLOW_FREE :
							    RFS_SLOW_HELD;
		rfs_home_set(home, nr, to);
	}
	return ptr->kind == RFS_PTR_BOTH ? rfs_home_count_flash(fs, ptr, delta) : 0;
}

/* Each block of a file has a home, or will need one, wherever it is now. */
u64 rfs_home_left(const struct rfs_fs *fs)
{
	u64 used = fs->data_live + fs->home->count[RFS_SLOW_ALONE] +
		   fs->prealloc + fs->rsv_holes;

	return used < fs->home->blocks ? fs->home->blocks - used : 0;
}
