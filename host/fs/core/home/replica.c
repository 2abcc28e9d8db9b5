// SPDX-License-Identifier: GPL-2.0-or-later
/* This is the replica as it is on the slow device: the head, and the table of places. */
#include "home/replica.h"

#define EVERY	(30 * 1000000000ULL)	/* where the module's commit= does not say it */

u32 rfs_replica_tables(u64 blocks)
{
	return blocks < 2 ? 0 : DIV_ROUND_UP(blocks - 2, RFS_PLACES + 2ULL);
}

u32 rfs_replica_slots(u64 blocks)
{
	u64 taken = 2 + 2ULL * rfs_replica_tables(blocks);

	return blocks > taken ? blocks - taken : 0;
}

bool rfs_slow_sizes_ok(u64 slow_blocks, u64 replica)
{
	return slow_blocks <= RFS_HYBRID_BLOCKS && replica < slow_blocks &&
	       rfs_home_blocks(slow_blocks - replica) &&
	       (!replica || rfs_replica_slots(replica));
}

int rfs_replica_alloc(struct rfs_replica *r, u64 first, u64 blocks, u64 places,
		      u32 zones)
{
	r->first = first;
	r->tables = rfs_replica_tables(blocks);
	r->slots = rfs_replica_slots(blocks);
	r->places = places;
	r->unlike = true;
	r->every = EVERY;
	r->place = rfs_alloc((size_t)r->tables * RFS_PLACES * sizeof(*r->place));
	r->copy = rfs_alloc(r->tables);
	r->stamp = rfs_alloc(r->tables * sizeof(*r->stamp));
	r->slot_of = rfs_alloc((places / RFS_PLACES_EACH + 1) * sizeof(*r->slot_of));
	r->row = rfs_alloc(RFS_REPLICA_ROW * RFS_BLOCK_BYTES);
	r->block = rfs_alloc(2 * RFS_BLOCK_BYTES);
	if (!r->place || !r->copy || !r->stamp || !r->slot_of || !r->row ||
	    !r->block || rfs_bits_alloc(&r->due, r->tables) ||
	    rfs_bits_alloc(&r->kept, r->slots) ||
	    rfs_bits_alloc(&r->fresh, r->slots) ||
	    rfs_bits_alloc(&r->bad, r->slots))
		return -ENOMEM;
	return rfs_bits_alloc(&r->anew, zones);
}

void rfs_replica_free(struct rfs_replica *r)
{
	u64 i;

	if (!r)
		return;
	for (i = 0; r->slot_of && i <= r->places / RFS_PLACES_EACH; i++)
		rfs_free(r->slot_of[i]);
	rfs_free(r->slot_of);
	rfs_free(r->place);
	rfs_free(r->copy);
	rfs_free(r->stamp);
	rfs_free(r->row);
	rfs_free(r->block);
	rfs_free(r->cp);
	rfs_bits_free(&r->due);
	rfs_bits_free(&r->kept);
	rfs_bits_free(&r->fresh);
	rfs_bits_free(&r->bad);
	rfs_bits_free(&r->anew);
	rfs_free(r);
}

int rfs_replica_index(struct rfs_replica *r, u64 place, u32 slot)
{
	u32 **page = &r->slot_of[place / RFS_PLACES_EACH];

	if (!*page)
		*page = rfs_alloc(RFS_PLACES_EACH * sizeof(**page));
	if (!*page)
		return -ENOMEM;
	(*page)[place % RFS_PLACES_EACH] = slot + 1;
	return 0;
}

u32 rfs_replica_slot(const struct rfs_replica *r, u64 place)
{
	const u32 *page = place < r->places ? r->slot_of[place / RFS_PLACES_EACH] : NULL;

	return page ? page[place % RFS_PLACES_EACH] : 0;
}

const struct rfs_slot *rfs_replica_find(const struct rfs_replica *r, u64 place)
{
	u32 slot = rfs_replica_slot(r, place);

	return slot ? &r->place[slot - 1] : NULL;
}

static bool rfs_replica_head_ok(const struct rfs_head *head, u32 volume,
				const u8 *uuid, u8 type, u64 off)
{
	return rfs_head_ok(head, volume, type) &&
	       !memcmp(head->uuid, uuid, sizeof(head->uuid)) &&
	       le64_to_cpu(head->off) == off;
}

/*
 * Finds the copy of the head with the higher number. *sum becomes the sum of the table's stamps. A
 * copy that cannot be read now may be readable later, so it does not count as missing.
 */
static int rfs_replica_load_head(struct rfs_replica *r,
				 const struct rfs_slow_dev *slow, u32 volume,
				 const u8 *uuid, u64 *sum)
{
	const struct rfs_slow_replica *head = (void *)r->block;
	u32 found = 0, copy;
	int ret, error = 0;
	u64 stamp;

	r->heads = RFS_HEADS_SAME;
	for (copy = 0; copy < 2; copy++) {
		ret = slow->read(slow->dev, r->first + copy, r->block);
		error = ret ? ret : error;
		if (ret || !rfs_replica_head_ok(&head->head, volume, uuid,
						RFS_SLOW_REPLICA, copy))
			continue;
		stamp = le64_to_cpu(head->head.stamp);
		if (found && (stamp != r->seq ||
			      le32_to_cpu(head->blocks) != r->blocks))
			r->heads = RFS_HEADS_DIFFER;
		if (found++ && stamp <= r->seq)
			continue;
		r->head = copy;
		r->seq = stamp;
		r->made = le64_to_cpu(head->time);
		r->blocks = le32_to_cpu(head->blocks);
		*sum = le64_to_cpu(head->sum);
	}
	if (found == 1)
		r->heads = RFS_HEADS_DIFFER;
	return found ? 0 : error ? error : -ENOENT;
}

static void rfs_replica_load_table(struct rfs_replica *r, u32 table,
				   const struct rfs_slow_dev *slow, u32 volume,
				   const u8 *uuid)
{
	const struct rfs_slow_places *block = (void *)r->block;
	u64 stamp;
	u32 copy;

	for (copy = 0; copy < 2; copy++) {
		if (slow->read(slow->dev, rfs_places_at(r, table, copy),
			       r->block) ||
		    !rfs_replica_head_ok(&block->head, volume, uuid,
					 RFS_SLOW_PLACES, table))
			continue;
		stamp = le64_to_cpu(block->head.stamp);
		if (stamp > r->seq) {
			/*
			 * The check-point of this copy did not come. The copy must not count for
			 * the next one.
			 */
			rfs_bits_put(&r->due, table, true);
			r->later = max(r->later, stamp);
			continue;
		}
		if (stamp <= r->stamp[table])
			continue;
		r->stamp[table] = stamp;
		r->copy[table] = copy;
		memcpy(&r->place[table * RFS_PLACES], block->place,
		       sizeof(block->place));
	}
}

int rfs_replica_load(struct rfs_replica *r, const struct rfs_slow_dev *slow,
		     u32 volume, const u8 *uuid)
{
	u64 sum = 0, is = 0, place;
	u32 i;
	int ret = rfs_replica_load_head(r, slow, volume, uuid, &sum);

	for (i = 0; !ret && i < r->tables; i++) {
		rfs_replica_load_table(r, i, slow, volume, uuid);
		is += r->stamp[i];
	}
	if (!ret && !r->blocks)
		ret = -ENOENT;
	if (!ret && is != sum)
		ret = -EUCLEAN;
	for (i = 0; !ret && i < r->slots; i++) {
		place = le64_to_cpu(r->place[i].place);
		if (!place)
			continue;
		r->used++;
		if (r->places)
			ret = place < r->places && !rfs_replica_slot(r, place) ?
			      rfs_replica_index(r, place, i) : -EUCLEAN;
	}
	return ret;
}

void rfs_replica_forget(struct rfs_replica *r)
{
	u64 i;

	for (i = 0; i <= r->places / RFS_PLACES_EACH; i++) {
		rfs_free(r->slot_of[i]);
		r->slot_of[i] = NULL;
	}
	memset(r->place, 0, (size_t)r->tables * RFS_PLACES * sizeof(*r->place));
	for (i = 0; i < r->tables; i++)
		rfs_bits_put(&r->due, i, true);
	rfs_bits_each(&r->kept, i)
		rfs_bits_put(&r->kept, i, false);
	rfs_bits_each(&r->fresh, i)
		rfs_bits_put(&r->fresh, i, false);
	r->blocks = 0;
	r->used = r->bad.count;
}
