// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This mounts a volume without its check-points and its inode map, from page metadata alone. The
 * newest copy of each block of inodes is taken. Names decide which of these inodes still exist.
 * Then the log and the data pages since are applied, as after a power cut. See "Rescan" in
 * design.md.
 */
#include "space/space.h"
#include "tree/tree.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"
#include "tools/leaves.h"
#include "tools/walk.h"

/* They are adopted in this order: runs count more than a node. */
enum what {
	INODES,
	NODE,
	LEAVES,			/* of the node map */
	TIMB,			/* says which of those there are */
};

/* This is a block of inodes, a node, a block of leaves of the node map, or one of TIMB. */
struct found {
	u64 key, stamp, addr;	/* key: as in the head; of a node its number */
	enum what what;
	bool early;		/* it was written while pages were in flight */
	bool home;		/* if it is a file's, it leads to a slow device */
};

/* A check-point has written metadata up to here. */
struct cut {
	u64 stamp;		/* of the last block of it */
	u64 late;		/* of the last that was not written early; 0: none */
	u64 lsn;		/* first log block after it */
	u32 seq;
};

struct rescan {
	struct rfs_fs *fs;	/* as the device is; later, what is built */
	struct rfs_report *report;
	struct rfs_rescue *out;
	struct found *found;
	u32 n, room;
	u64 *newest;		/* stamp in each zone */
	u32 *end;		/* of each zone: after its last block that can be read */
	u8 *stream;		/* of each zone */
	u8 *there;		/* a bit each block that is what its OOB says */
	u64 pages, looked;	/* below write pointers; of them, those that were read */
	u64 last;		/* stamp of all */
	u64 seq;		/* of a check-point */
	struct cut cut[2];	/* the newest, and the one before */
	u64 written;		/* newest stamp of log or data after a durable one */
	u8 *nth;		/* a bit each block of the newest check-point */
	u64 nth_epoch;
	u32 ends;		/* those before it are what counts; 0: not known */
	u32 most;		/* of its numbers, + 1 */
	bool maps;		/* there are blocks of the inode map */
	bool hybrid;		/* and inodes that lead to a slow device */
	struct rfs_said *said;	/* what was taken of each block of leaves */
	u64 *late;		/* ascending: stamps of what is found and not early */
	u32 lates;
	u64 leaf_faults;	/* of files whose inodes are told, and of no other */
	struct rfs_leaves *lost;	/* pages are read for these; else NULL */
	u32 *made;		/* inodes of those that were made, out->inodes_made */
	u8 *block;		/* two of them */
};

#define NTH_BYTES	((RFS_NTH_MAX + 1) / 8)

/* Notes which blocks of the newest check-point are there. */
static void note_nth(struct rescan *r, const struct rfs_head *head)
{
	u32 nth = le64_to_cpu(head->addr) >> RFS_LSN_BITS & RFS_NTH_MAX;
	u64 epoch = le64_to_cpu(head->stamp) >> RFS_EPOCH_SHIFT;
	u32 seq = le32_to_cpu(head->prev);

	r->maps |= rfs_stream_of(head->type) == RFS_S_IMAP;
	if (seq < r->cut[0].seq ||
	    (seq == r->cut[0].seq && epoch < r->nth_epoch))
		return;
	if (seq > r->cut[0].seq || epoch > r->nth_epoch) {
		memset(r->nth, 0, NTH_BYTES);
		r->nth_epoch = epoch;
		r->ends = 0;
		r->most = 0;
	}
	r->nth[nth / 8] |= 1 << nth % 8;
	r->most = max(r->most, nth + 1);
	/* The zone table comes last, and is not needed here. */
	if (head->type == RFS_ZTAB)
		r->ends = r->ends ? min(r->ends, nth) : nth;
}

/*
 * Says whether the check-point is in the check-point zones, or a page was written after it was
 * durable. Others go on while blocks are written early, so a page after such a block proves
 * nothing.
 */
static bool committed(const struct rescan *r)
{
	const struct cut *cut = &r->cut[0];

	return (cut->late && r->written > cut->stamp) || r->seq >= cut->seq;
}

/* Says whether the newest check-point has all its blocks, as far as that can be known. */
static bool whole(const struct rescan *r)
{
	u32 i, end = r->maps ? r->ends : r->most;

	if (committed(r))
		return true;
	if (!r->cut[0].late)
		return false;
	for (i = 0; i < end; i++)
		if (!(r->nth[i / 8] & 1 << i % 8))
			return false;
	return end;
}

static void note_cut(struct rescan *r, const struct rfs_head *head)
{
	struct cut new = { .stamp = le64_to_cpu(head->stamp),
			   .lsn = le64_to_cpu(head->addr) &
				  ((1ULL << RFS_LSN_BITS) - 1),
			   .seq = le32_to_cpu(head->prev) };
	u32 nth = le64_to_cpu(head->addr) >> RFS_LSN_BITS;
	u64 late;

	new.late = nth & RFS_NTH_EARLY ? 0 : new.stamp;
	note_nth(r, head);
	if (new.seq > r->cut[0].seq) {
		r->cut[1] = r->cut[0];
		r->cut[0] = new;
	} else if (new.seq == r->cut[0].seq) {
		late = max(new.late, r->cut[0].late);
		if (new.stamp > r->cut[0].stamp)
			r->cut[0] = new;
		r->cut[0].late = late;
	} else if (new.seq > r->cut[1].seq ||
		   (new.seq == r->cut[1].seq &&
		    new.stamp > r->cut[1].stamp)) {
		r->cut[1] = new;
	}
}

static bool any_home(const struct rfs_ptr *ptr, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (rfs_ptr_has_home(&ptr[i]))
			return true;
	return false;
}

static enum what what_is(u8 type)
{
	if (type == RFS_NMAP)
		return LEAVES;
	if (type == RFS_TIMB)
		return TIMB;
	return rfs_is_node(type) ? NODE : INODES;
}

static int note_found(struct rescan *r, const struct rfs_head *head, u64 addr)
{
	enum what what = what_is(head->type);
	u64 off = le64_to_cpu(head->off);
	struct found *more;

	if (r->n == r->room) {
		r->room = r->room ? 2 * r->room : 256;
		more = rfs_alloc(r->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		if (r->n)
			memcpy(more, r->found, r->n * sizeof(*more));
		rfs_free(r->found);
		r->found = more;
	}
	r->found[r->n].what = what;
	r->found[r->n].key = what == NODE ? off >> 32 : off;
	r->found[r->n].stamp = le64_to_cpu(head->stamp);
	r->found[r->n].early = le64_to_cpu(head->addr) >> RFS_LSN_BITS &
			       RFS_NTH_EARLY;
	r->found[r->n].home = head->type == RFS_INDEX && head->level == 1 &&
			      any_home(((const struct rfs_node *)head)->ptr,
				       RFS_FANOUT);
	r->found[r->n++].addr = addr;
	return 0;
}

/*
 * Says whether these inodes lead to a slow device. Only inodes tell that if superblocks are lost.
 */
static bool inodes_lead_home(const struct rfs_inodes *inodes)
{
	bool home = false;
	u32 i;

	for (i = 0; i < RFS_BLOCK_INODES; i++) {
		const struct rfs_dinode *di = &inodes->inode[i];

		home |= di->ino && S_ISREG(le32_to_cpu(di->mode)) &&
			!di->height && any_home(di->ptr, RFS_DIRECT);
	}
	return home;
}

/* Notes a page with the metadata oob. Its content may be damaged. */
static int note_page(struct rescan *r, const struct rfs_oob *oob, u64 addr,
		     const void *block)
{
	u32 zone = addr / r->fs->geo.zone_blocks;
	const struct rfs_head *head = block;
	u64 stamp = le64_to_cpu(oob->stamp);

	/* A page that is left out counts here, too: the zone is not free until it is reset. */
	r->newest[zone] = max(r->newest[zone], stamp);
	r->end[zone] = max_t(u32, r->end[zone], addr % r->fs->geo.zone_blocks + 1);
	/* No mount has made this stamp, and there would be no number after it. */
	if (stamp >= RFS_VERSION_END)
		return 0;
	r->out->pages++;
	r->there[addr / 8] |= 1 << addr % 8;
	r->last = max(r->last, stamp);
	if (oob->type != RFS_SUMMARY && r->stream[zone] != RFS_S_IMAP)
		r->stream[zone] = rfs_stream_of(oob->type);
	if ((oob->type == RFS_DATA || oob->type == RFS_LOG) &&
	    !(oob->flags & RFS_OOB_NEXT))
		r->written = max(r->written, stamp);
	if ((oob->type < RFS_DIR || oob->type > RFS_ZTAB) &&
	    !rfs_is_node(oob->type) && oob->type != RFS_NMAP)
		return 0;
	if (!rfs_head_ok(head, r->fs->volume, oob->type) ||
	    le64_to_cpu(head->stamp) >= RFS_VERSION_END) {
		r->out->bad_meta++;
		return 0;
	}
	r->hybrid |= oob->type == RFS_INODES && inodes_lead_home(block);
	note_cut(r, head);
	return oob->type == RFS_INODES || rfs_is_node(oob->type) ||
	       oob->type == RFS_TIMB ||
	       (oob->type == RFS_NMAP &&
		le64_to_cpu(head->off) >= r->fs->nmap_leaves) ?
	       note_found(r, head, addr) : 0;
}

/*
 * The first pass takes all blocks of metadata, and a later one the pages of leaves that are lost.
 */
static int take_page(struct rescan *r, const struct rfs_oob *oob, u64 addr,
		     const void *block)
{
	return r->lost ? rfs_leaves_page(r->lost, oob, addr) :
			 note_page(r, oob, addr, block);
}

static int scan_zone(struct rescan *r, u32 nr)
{
	struct rfs_fs *fs = r->fs;
	u64 addr = (u64)nr * fs->geo.zone_blocks;
	struct rfs_oob oob;
	u32 at;
	int ret = 0;

	for (at = 0; !ret && at < fs->zone[nr].wp; at++, addr++) {
		if (!fs->ops->read(fs->dev, addr, r->block, &oob) &&
		    rfs_oob_ok(&oob, fs->volume))
			ret = take_page(r, &oob, addr, r->block);
		rfs_progress(r->report, ++r->looked, r->pages);
	}
	return ret;
}

/*
 * Without page metadata, this takes the blocks that a summary lists, if the summary has its own
 * address.
 */
static int scan_summaries(struct rescan *r, u32 nr)
{
	struct rfs_fs *fs = r->fs;
	struct rfs_summary *sum = (struct rfs_summary *)r->block;
	u8 *block = r->block + RFS_BLOCK_BYTES;
	u64 addr = (u64)nr * fs->geo.zone_blocks;
	u32 at, i, n;
	int ret = 0;

	for (at = 0; at < fs->zone[nr].wp; at++, addr++) {
		rfs_progress(r->report, ++r->looked, r->pages);
		if (fs->ops->read(fs->dev, addr, sum, NULL) ||
		    !rfs_summary_ok(fs, sum, addr))
			continue;
		n = min_t(u32, le16_to_cpu(sum->head.count), RFS_SUM_ENTRIES);
		n = min(n, fs->zone[nr].wp - at - 1);
		for (i = 0; !ret && i < n; i++) {
			const struct rfs_oob *oob = &sum->entry[i];

			if (!oob->type || oob->type >= RFS_TYPES ||
			    fs->ops->read(fs->dev, addr + 1 + i, block, NULL) ||
			    le32_to_cpu(oob->data_crc) !=
			    ~rfs_crc(~0U, block, RFS_BLOCK_BYTES))
				continue;
			ret = take_page(r, oob, addr + 1 + i, block);
		}
		if (ret)
			return ret;
	}
	return 0;
}

/* Numbers in the remains of check-points are not used again. */
static void scan_checkpoints(struct rescan *r, u32 nr)
{
	struct rfs_fs *fs = r->fs;
	const struct rfs_cp *cp = (const struct rfs_cp *)r->block;
	u32 at;

	for (at = 0; at < fs->zone[nr].wp; at++) {
		rfs_progress(r->report, ++r->looked, r->pages);
		if (fs->ops->read(fs->dev, (u64)nr * fs->geo.zone_blocks + at,
				  r->block, NULL) ||
		    !rfs_head_ok(&cp->head, fs->volume, RFS_CP))
			continue;
		if (le64_to_cpu(cp->head.stamp) >= RFS_VERSION_END ||
		    (!cp->head.off && le64_to_cpu(cp->seq) >= RFS_SEQ_END))
			continue;
		r->last = max(r->last, le64_to_cpu(cp->head.stamp));
		if (!cp->head.off)
			r->seq = max(r->seq, le64_to_cpu(cp->seq));
	}
}

/* These zones hold more than check-points. */
static int scan_zones(struct rescan *r)
{
	struct rfs_fs *fs = r->fs;
	u32 nr;
	int ret = 0;

	for (nr = RFS_CP_ZONES; !ret && nr < fs->geo.zones; nr++) {
		if (fs->zone[nr].cond == RFS_DEV_OFFLINE)
			continue;
		ret = fs->geo.oob_bytes ? scan_zone(r, nr) :
					  scan_summaries(r, nr);
	}
	return ret;
}

static int scan(struct rescan *r)
{
	struct rfs_fs *fs = r->fs;
	u32 nr;

	r->newest = rfs_alloc(fs->geo.zones * sizeof(*r->newest));
	r->end = rfs_alloc(fs->geo.zones * sizeof(*r->end));
	r->stream = rfs_alloc(fs->geo.zones);
	r->there = rfs_alloc((size_t)fs->geo.zones * fs->geo.zone_blocks / 8 +
			     1);
	if (!r->newest || !r->end || !r->stream || !r->there)
		return -ENOMEM;
	for (nr = 0; nr < fs->geo.zones; nr++)
		if (fs->zone[nr].cond != RFS_DEV_OFFLINE)
			r->pages += fs->zone[nr].wp;
	for (nr = 0; nr < RFS_CP_ZONES; nr++)
		if (fs->zone[nr].cond != RFS_DEV_OFFLINE)
			scan_checkpoints(r, nr);
	return scan_zones(r);
}

/* Finds the volume whose blocks are on the device. The first block that has a uuid decides. */
static int find_uuid(struct rescan *r, u8 uuid[16])
{
	const struct rfs_head *head = (const struct rfs_head *)r->block;
	struct rfs_fs *fs = r->fs;
	struct rfs_dev_zone zone;
	u32 nr, at;

	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		u64 addr = (u64)nr * fs->geo.zone_blocks;

		if (fs->ops->report(fs->dev, nr, &zone) ||
		    zone.cond == RFS_DEV_OFFLINE)
			continue;
		for (at = 0; at < zone.wp; at++) {
			struct rfs_oob oob = { .type = RFS_SUMMARY };

			if (fs->ops->read(fs->dev, addr + at, r->block,
					  fs->geo.oob_bytes ? &oob : NULL) ||
			    !rfs_head_ok(head, le32_to_cpu(head->volume),
					 oob.type))
				continue;
			/* A file may hold blocks of another volume. */
			if (fs->geo.oob_bytes ?
			    !rfs_oob_ok(&oob, le32_to_cpu(head->volume)) :
			    le64_to_cpu(head->addr) != addr + at)
				continue;
			memcpy(uuid, &head->volume, sizeof(head->volume));
			memcpy(uuid + sizeof(head->volume), head->uuid,
			       sizeof(head->uuid));
			return 0;
		}
	}
	return -EINVAL;
}

static int find_super(struct rescan *r)
{
	struct rfs_fs *fs = r->fs;
	u32 nr, cap = ~0U;
	/* find_keys() finds the keys. Files of the volume may have had pieces, and runs. */
	struct rfs_id id = { .pieces = true, .runs = true };
	int ret = rfs_super_load(fs);

	if (!ret || ret == -EOPNOTSUPP || ret == -ENOMEM)
		return ret;
	ret = find_uuid(r, id.uuid);
	if (ret)
		return ret;
	for (nr = 0; nr < fs->geo.zones; nr++) {
		struct rfs_dev_zone zone;

		ret = fs->ops->report(fs->dev, nr, &zone);
		if (ret)
			return ret;
		if (zone.cond == RFS_DEV_OK)
			cap = min(cap, zone.cap);
	}
	r->out->super_lost = true;
	memset(&fs->super, 0, sizeof(fs->super));
	fs->keyless = true;
	return rfs_super_make(fs, cap, &id, "", fs->ops->now(fs->dev));
}

/* Finds the keys of a lost superblock in any block of inodes. */
static void find_keys(struct rescan *r)
{
	const struct rfs_inodes *inodes = (struct rfs_inodes *)r->block;
	struct rfs_super *super = &r->fs->super;
	u32 i;

	for (i = 0; i < r->n; i++) {
		if (r->fs->ops->read(r->fs->dev, r->found[i].addr, r->block,
				     NULL) ||
		    !rfs_head_ok(&inodes->head, r->fs->volume, RFS_INODES))
			continue;
		memcpy(super->hash_key, inodes->hash_key,
		       sizeof(super->hash_key));
		memcpy(super->summary_key, inodes->summary_key,
		       sizeof(super->summary_key));
		return;
	}
}

static int by_key(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->stamp > y->stamp ? -1 : x->stamp < y->stamp;
}

/*
 * Says whether a node is a file's. Inodes that are no file have numbers where files have pointers.
 */
static bool is_of_file(struct rescan *r, const struct found *node)
{
	const struct rfs_head *head = (const struct rfs_head *)r->block;
	const struct rfs_inodes *inodes;
	u32 i, ino, gen;

	if (r->fs->ops->read(r->fs->dev, node->addr, r->block, NULL) ||
	    !rfs_head_ok(head, r->fs->volume, RFS_INDEX))
		return false;
	ino = le32_to_cpu(head->ino);
	gen = le32_to_cpu(head->gen);
	inodes = (const struct rfs_inodes *)r->block;
	for (i = 0; i < r->n; i++) {
		const struct rfs_dinode *di =
			&inodes->inode[ino % RFS_BLOCK_INODES];

		if (r->found[i].what != INODES ||
		    r->found[i].key != ino / RFS_BLOCK_INODES ||
		    r->fs->ops->read(r->fs->dev, r->found[i].addr, r->block,
				     NULL) ||
		    !rfs_head_ok(head, r->fs->volume, RFS_INODES))
			continue;
		if (le32_to_cpu(di->ino) == ino && le32_to_cpu(di->gen) == gen)
			return S_ISREG(le32_to_cpu(di->mode));
	}
	return false;
}

/* Refuses a hybrid volume, since the table of states would have to be made anew, too. */
static bool is_hybrid(struct rescan *r)
{
	u32 i;

	for (i = 0; i < r->n && !r->hybrid; i++)
		r->hybrid = r->found[i].home && is_of_file(r, &r->found[i]);
	return r->hybrid;
}

/* Makes a volume of which nothing is known but its zones. */
static int blank(struct rescan *r, const struct cut *cut)
{
	struct rfs_fs *old = r->fs, *fs;
	u32 nr;
	int ret;

	fs = rfs_volume_new(old->ops, old->dev, &old->geo);
	if (!fs)
		return -ENOMEM;
	fs->super = old->super;
	rfs_super_fill(fs);
	rfs_unmount_nosync(old);
	r->fs = fs;
	ret = rfs_tables_alloc(fs);
	if (ret)
		return ret;
	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		struct rfs_zone_info *z = &fs->zone[nr];

		z->state = z->wp ? RFS_Z_USED : RFS_Z_FREE;
		z->stream = r->stream[nr];
		/* The drive does not say where the zone ends: see rfs_scan_zones(). */
		if (z->cond == RFS_DEV_READ_ONLY)
			z->wp = r->end[nr];
		/* Recovery reads all pages of the other zones. */
		z->cp_wp = r->newest[nr] > cut->stamp ? 0 : z->wp;
	}
	fs->rescuing = true;
	fs->version = r->last + 1;
	fs->cp_version = cut->stamp + 1;
	fs->lsn = cut->lsn;
	/*
	 * This is as after a power cut: the rescan's own check-point follows the one that it builds
	 * on.
	 */
	fs->cp_seq = max_t(u64, r->seq, cut->seq);
	return 0;
}

/* Enters the inodes of a block that are in use into the inode map. */
static int adopt(struct rfs_fs *fs, const struct found *f, bool *good)
{
	struct rfs_buf *buf, *map;
	u32 block = f->key / RFS_MAP_ENTRIES, slot, bits = 0, n = 0;
	int ret;

	*good = false;
	if (f->key >= (u64)fs->imap_blocks * RFS_MAP_ENTRIES)
		return 0;
	ret = rfs_buf_read(fs, RFS_INODES, f->key, f->addr, &buf);
	if (ret)
		return ret == -ENOMEM ? ret : 0;
	*good = true;
	for (slot = 0; slot < RFS_BLOCK_INODES; slot++) {
		u32 ino = f->key * RFS_BLOCK_INODES + slot;

		if (le32_to_cpu(buf->inodes.inode[slot].ino) != ino || !ino)
			continue;
		bits |= 1U << slot;
		n++;
	}
	ret = rfs_imap_get(fs, block, true, &map);
	if (ret || !bits)
		return ret;
	map->table.word[f->key % RFS_MAP_ENTRIES] = rfs_word(f->addr, bits);
	rfs_buf_dirty(fs, map);
	rfs_timb_set(fs, block,
		     rfs_timb(fs, block) + ((u64)n << RFS_ADDR_BITS));
	fs->inodes += n;
	return 0;
}

/* Enters the newest node of a number into the node map, whether an inode leads to it or not. */
static int adopt_node(struct rfs_fs *fs, const struct found *f, bool *good)
{
	*good = true;
	return rfs_node_adopt(fs, f->key, f->addr);
}

/* Returns the stamp of the newest node of a number, of those that count, or 0. */
static u64 newest_node(const struct rescan *r, const struct cut *cut, u32 number)
{
	u32 low = 0, high = r->n, mid;

	while (low < high) {
		const struct found *f = &r->found[mid = (low + high) / 2];

		if (f->what < NODE || (f->what == NODE && f->key < number) ||
		    (f->what == NODE && f->key == number &&
		     f->stamp > cut->stamp))
			low = mid + 1;
		else
			high = mid;
	}
	return low < r->n && r->found[low].what == NODE &&
	       r->found[low].key == number ? r->found[low].stamp : 0;
}

/* Enters leaves that are runs into the node map, if no node was written later. */
static int adopt_leaves(struct rescan *r, const struct cut *cut,
			const struct found *f, bool *good)
{
	const struct rfs_table *table = (const struct rfs_table *)r->block;
	struct rfs_fs *fs = r->fs;
	u32 i;
	int ret = 0;

	if (f->key >= fs->nmap_blocks ||
	    fs->ops->read(fs->dev, f->addr, r->block, NULL) ||
	    !rfs_head_ok(&table->head, fs->volume, RFS_NMAP))
		return 0;
	*good = true;
	r->said[f->key - fs->nmap_leaves].addr = f->addr;
	r->said[f->key - fs->nmap_leaves].stamp = f->stamp;
	r->said[f->key - fs->nmap_leaves].seq = le32_to_cpu(table->head.prev);
	for (i = 0; !ret && i < RFS_MAP_ENTRIES; i += RFS_LEAF_WORDS) {
		u32 number = f->key * RFS_MAP_ENTRIES + i;

		if (rfs_high(table->word[i]) & RFS_NODE_RUNS &&
		    newest_node(r, cut, number) < f->stamp)
			ret = rfs_node_adopt_runs(fs, number,
						  (const struct rfs_runs *)
						  &table->word[i]);
	}
	return ret;
}

/*
 * Compares the addresses of blocks of leaves with those in TIMB. If one is elsewhere, the newest
 * block is missing. A block of the check-point that wrote this block of TIMB is the newest itself:
 * appends in flight together went elsewhere than expected, and the power was cut before TIMB was
 * written anew.
 */
static void compare_leaves(struct rescan *r, const struct found *f, bool *good)
{
	const struct rfs_table *timb = (const struct rfs_table *)r->block;
	struct rfs_fs *fs = r->fs;
	u32 i;

	if (f->key >= fs->timb_blocks ||
	    fs->ops->read(fs->dev, f->addr, r->block, NULL) ||
	    !rfs_head_ok(&timb->head, fs->volume, RFS_TIMB))
		return;
	*good = true;
	for (i = 0; i < RFS_MAP_ENTRIES; i++) {
		u64 at = f->key * RFS_MAP_ENTRIES + i;
		u64 addr = rfs_addr(timb->word[i]);

		if (at < fs->imap_blocks + fs->nmap_leaves ||
		    at >= fs->imap_blocks + fs->nmap_blocks)
			continue;
		at -= fs->imap_blocks + fs->nmap_leaves;
		r->said[at].outdated = addr && addr != r->said[at].addr &&
				       r->said[at].seq !=
				       le32_to_cpu(timb->head.prev);
	}
}

static int adopt_one(struct rescan *r, const struct cut *cut,
		     const struct found *f, bool *good)
{
	switch (f->what) {
	case NODE:
		return adopt_node(r->fs, f, good);
	case LEAVES:
		return adopt_leaves(r, cut, f, good);
	case TIMB:
		compare_leaves(r, f, good);
		return 0;
	default:
		return adopt(r->fs, f, good);
	}
}

static int adopt_all(struct rescan *r, const struct cut *cut)
{
	u32 leaves = r->fs->nmap_blocks - r->fs->nmap_leaves, i;
	bool good = false;
	int ret = 0;

	rfs_free(r->said);
	r->said = rfs_alloc((leaves + 1) * sizeof(*r->said));
	if (!r->said)
		return -ENOMEM;
	for (i = 0; !ret && i < r->n; i++) {
		if (i && r->found[i].key == r->found[i - 1].key &&
		    r->found[i].what == r->found[i - 1].what) {
			if (good)
				continue;
		} else {
			good = false;
		}
		if (r->found[i].stamp > cut->stamp)
			continue;
		ret = adopt_one(r, cut, &r->found[i], &good);
		if (!ret)
			rfs_cache_trim(r->fs, r->fs->clean_max);
	}
	return ret;
}

static int by_stamp(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Finds the stamps at which no page was in flight, up to the check-point that counts. */
static int find_late(struct rescan *r, const struct cut *cut)
{
	u32 i;

	rfs_free(r->late);
	r->lates = 0;
	r->late = rfs_alloc((r->n + 1) * sizeof(*r->late));
	if (!r->late)
		return -ENOMEM;
	for (i = 0; i < r->n; i++)
		if (!r->found[i].early && r->found[i].stamp <= cut->stamp)
			r->late[r->lates++] = r->found[i].stamp;
	rfs_sort(r->late, r->lates, sizeof(*r->late), by_stamp);
	return 0;
}

static int want_leaves(struct rfs_walk *w, struct rfs_dinode *di,
		       struct rfs_buf *buf)
{
	(void)buf;
	return rfs_leaves_want(w->leaves, di);
}

/*
 * Makes leaves that no block of the node map has any more. All pages are read once more for that.
 */
static int make_leaves(struct rescan *r, const struct cut *cut,
		       struct rfs_walk *w)
{
	struct rfs_leaves *l = w->leaves;
	int ret = find_late(r, cut);

	l->last = cut->stamp;
	l->said = r->said;
	l->there = r->there;
	l->late = r->late;
	l->lates = r->lates;
	if (!ret)
		ret = rfs_each_inode(w, want_leaves);
	if (ret || !l->n)
		return ret;
	rfs_leaves_wanted(l);
	r->lost = l;
	r->pages += r->looked;
	ret = scan_zones(r);
	r->lost = NULL;
	return ret ? ret : rfs_leaves_make(l);
}

/*
 * Says whether a complete inode has as many blocks as it says. If an inode without a name has not,
 * it was deleted since, block by block, and its block of inodes was not written again. A directory
 * has no name only after all names in it had gone.
 */
static int is_as_it_says(struct rfs_walk *w, struct rfs_dinode *di, bool *ok)
{
	u32 ino = le32_to_cpu(di->ino);
	struct rfs_entry entry;
	int ret = -ENOENT;

	/* Where leaves were made of pages, nothing else says that none is missing. */
	*ok = w->whole_blocks == le64_to_cpu(di->blocks) ||
	      (rfs_leaves_lacks(w->leaves, ino) ?
	       !rfs_leaves_made(w->leaves, ino) : di->nlink);
	if (*ok && !di->nlink && S_ISDIR(le32_to_cpu(di->mode)))
		ret = rfs_dir_next(w->fs, ino, 0, &entry);
	*ok &= ret == -ENOENT;
	return ret == -ENOMEM ? ret : 0;
}

/*
 * Judges an inode that no name led to. If all directories could be read, an inode that should have
 * a name was deleted. Otherwise it is kept if it is complete, since blocks of a deleted one may
 * belong to others by now. An inode without a name may get one from the log.
 */
static int judge(struct rfs_walk *w, struct rfs_dinode *di, struct rfs_buf *buf)
{
	u32 ino = le32_to_cpu(di->ino);
	bool keep = false;
	int ret = 0;

	if (rfs_walk_reached(w, ino))
		return 0;
	if (!di->nlink || w->dirs_bad)
		ret = rfs_walk_whole(w, di, &keep);
	if (ret)
		return ret;
	if (keep)
		ret = is_as_it_says(w, di, &keep);
	if (ret)
		return ret;
	if (!keep) {
		w->forgotten++;
		rfs_leaves_forget(w->leaves, ino);
		return rfs_ifree(w->fs, ino);
	}
	if (di->nlink) {
		w->doubtful++;
	} else {
		di->next_orphan = cpu_to_le32(w->fs->orphans);
		w->fs->orphans = ino;
		rfs_buf_dirty(w->fs, buf);
	}
	ret = rfs_walk_push(w, ino);
	return ret ? ret : rfs_walk_run(w);
}

/*
 * Frees zones in which no block was in use then: this is room, as the check-point gave it. Zones of
 * the inode map stay, since their existence says how check-points end, see whole().
 */
static void free_zones(struct rescan *r, const struct cut *cut)
{
	u32 nr;

	for (nr = RFS_CP_ZONES; nr < r->fs->geo.zones; nr++) {
		struct rfs_zone_info *z = &r->fs->zone[nr];

		if (!z->live && r->newest[nr] <= cut->stamp &&
		    r->stream[nr] != RFS_S_IMAP)
			z->state = RFS_Z_FREE;
	}
}

/* If the superblock is lost, times of blocks are counted from the creation of the root. */
static void find_created(struct rescan *r)
{
	struct rfs_dinode *root;
	struct rfs_buf *buf;

	if (r->out->super_lost && !rfs_iget(r->fs, RFS_ROOT_INO, &root, &buf))
		r->fs->super.created = root->btime;
}

/* Builds the state of a check-point, then the changes after it. */
static int build(struct rescan *r, const struct cut *cut)
{
	struct rfs_leaves leaves;
	struct rfs_walk w;
	struct rfs_dinode *root;
	struct rfs_buf *buf;
	int ret = blank(r, cut);

	if (!ret)
		ret = adopt_all(r, cut);
	if (ret)
		return ret;
	find_created(r);
	ret = rfs_walk_init(&w, r->fs, r->report);
	w.there = r->there;
	w.leaves = &leaves;
	if (!rfs_leaves_init(&leaves, r->fs) && !ret)
		ret = make_leaves(r, cut, &w);
	else
		ret = -ENOMEM;
	if (!ret)
		ret = rfs_walk_maps(&w);
	if (!ret && rfs_iget(r->fs, RFS_ROOT_INO, &root, &buf)) {
		rfs_walk_lose(&w, "the root directory is lost");
		w.dirs_bad++;
		ret = rfs_root_make(r->fs);
	}
	if (!ret)
		ret = rfs_walk_push_tops(&w);
	if (!ret)
		ret = rfs_walk_run(&w);
	if (!ret)
		ret = rfs_walk_links(&w);
	if (!ret)
		ret = rfs_each_inode(&w, judge);
	if (!ret)
		ret = rfs_walk_nodes(&w);
	r->out->forgotten = w.forgotten;
	r->out->doubtful = w.doubtful;
	r->leaf_faults = w.leaf_faults;
	rfs_leaves_found(&leaves);
	rfs_free(r->made);
	r->made = leaves.ino;
	leaves.ino = NULL;
	r->out->inodes_made = leaves.inos;
	r->out->leaves_made = leaves.made;
	r->out->unlike = leaves.unlike;
	rfs_leaves_exit(&leaves);
	rfs_walk_exit(&w);
	free_zones(r, cut);
	if (!ret)
		ret = rfs_recover(r->fs);
	r->report->faults += r->fs->recovered.records_failed;
	return ret;
}

/* Says whether the volume of this check-point is without a fault. These faults are not reported. */
static int try(struct rescan *r, const struct cut *cut, bool *good)
{
	struct rfs_report mute = { 0 }, *report = r->report;
	int ret;

	*good = false;
	if (!cut->stamp)
		return 0;
	r->report = &mute;
	ret = build(r, cut);
	r->report = report;
	*good = !ret && mute.faults == r->leaf_faults;
	return ret == -ENOMEM ? ret : 0;
}

/*
 * The newest check-point may lack blocks, if the power was cut while it was written. Then the one
 * before is whole, and its log is there.
 */
static int choose(struct rescan *r)
{
	u32 which = whole(r) ? 0 : 1, tries;
	bool good = false;
	int ret = 0;

	for (tries = 0; !ret && !good && tries < 2; tries++) {
		if (which && committed(r))
			break;
		r->out->older = which;
		ret = try(r, &r->cut[which], &good);
		which = !which;
	}
	if (ret || good)
		return ret;
	r->out->older = false;
	r->out->damaged = true;
	ret = build(r, &r->cut[0]);
	return ret ? ret : rfs_repair(r->fs, r->report);
}

/* Writes check-points and superblocks anew. Full zones are reset before. */
static int finish(struct rfs_fs *fs)
{
	u32 nr;
	int ret;

	fs->rescuing = false;
	fs->version = ((fs->version >> RFS_EPOCH_SHIFT) + 1) << RFS_EPOCH_SHIFT;
	/* Stamps tell its blocks from those that had the same numbers. */
	if (fs->lsn >= RFS_LSN_END)
		fs->lsn = 0;
	for (nr = 0; nr < RFS_CP_ZONES; nr++)
		if (fs->zone[nr].wp)
			fs->zone[nr].wp = fs->zone[nr].cap;
	rfs_resume_zones(fs);
	ret = rfs_checkpoint(fs, 0);
	if (ret)
		return ret;
	/* The third zone may hold a check-point with a higher number, which must not count. */
	for (nr = 0; nr < RFS_CP_ZONES; nr++) {
		struct rfs_zone_info *z = &fs->zone[nr];

		if (nr == fs->cp_mirror[0] || nr == fs->cp_mirror[1] ||
		    z->cond != RFS_DEV_OK)
			continue;
		ret = fs->ops->reset(fs->dev, nr);
		if (ret)
			return ret;
		z->wp = 0;
		rfs_zone_changed(fs, nr);
	}
	return 0;
}

int rfs_rescan(const struct rfs_dev_ops *ops, void *dev,
	       const struct rfs_geometry *geo, struct rfs_report *report,
	       struct rfs_rescue *out, struct rfs_fs **fs)
{
	struct rescan r = { .report = report, .out = out };
	int ret = -ENOMEM;
	u32 i;

	*fs = NULL;
	memset(out, 0, sizeof(*out));
	r.fs = rfs_volume_new(ops, dev, geo);
	r.block = rfs_alloc(2 * RFS_BLOCK_BYTES);
	r.nth = rfs_alloc(NTH_BYTES);
	if (!r.fs || !r.block || !r.nth)
		goto out;
	if (r.fs->geo.oob_bytes < RFS_OOB_BYTES)
		r.fs->geo.oob_bytes = 0;
	ret = find_super(&r);
	if (!ret && (geo->slow || rfs_is_hybrid(&r.fs->super)))
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = rfs_tables_alloc(r.fs);
	if (!ret)
		ret = scan(&r);
	if (!ret && !r.n)
		ret = -EINVAL;
	if (!ret && is_hybrid(&r))
		ret = -EOPNOTSUPP;
	if (ret)
		goto out;
	rfs_sort(r.found, r.n, sizeof(*r.found), by_key);
	if (out->super_lost)
		find_keys(&r);
	ret = choose(&r);
	for (i = 0; !ret && report->made && i < out->inodes_made; i++)
		report->made(report->arg, r.made[i]);
	if (!ret)
		ret = finish(r.fs);
out:
	if (!ret)
		*fs = r.fs;
	else if (r.fs)
		rfs_unmount_nosync(r.fs);
	rfs_free(r.found);
	rfs_free(r.newest);
	rfs_free(r.end);
	rfs_free(r.stream);
	rfs_free(r.said);
	rfs_free(r.late);
	rfs_free(r.made);
	rfs_free(r.there);
	rfs_free(r.block);
	rfs_free(r.nth);
	return ret;
}
