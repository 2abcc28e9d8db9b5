// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recovery goes from the check-point that was loaded to the state at the end of the updating window
 * (OFTL 4.1): first the log as a prefix, then the data pages. It changes only memory; the caller
 * makes the check-point that ends it.
 */
#include "plat/array.h"
#include "tree/tree.h"
#include "tree/diff.h"
#include "tree/quota.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"

struct window_page {
	struct rfs_oob oob;
	u64 addr;
	const struct rfs_logged *piece;	/* it is this one, and no page; else NULL */
	bool dropped;
};

struct log_page {
	u64 lsn;
	u64 addr;
};

/* Blocks of the log name the first LSNs of epochs; these are ascending. Only a rescue has them. */
struct firsts {
	u32 *lsn;	/* their low halves */
	u32 n;
};

/* This is a block of inodes, or a node. */
struct leftover {
	u8 type;
	u64 off;		/* of a node its number */
};

struct window {
	struct window_page *data;
	struct log_page *log;
	struct leftover *left;	/* by a check-point that was not finished */
	u32 datas, logs, lefts, data_room, log_room, left_room;
};

static int rfs_note_data(struct window *p, const struct rfs_oob *oob, u64 addr)
{
	void *memory = rfs_array_grown(p->data, p->datas, &p->data_room,
				       sizeof(*p->data));

	if (!memory)
		return -ENOMEM;
	p->data = memory;
	p->data[p->datas].oob = *oob;
	p->data[p->datas].piece = NULL;
	p->data[p->datas].dropped = false;
	p->data[p->datas++].addr = addr;
	return 0;
}

static int rfs_note_log(struct window *p, u64 lsn, u64 addr)
{
	void *memory = rfs_array_grown(p->log, p->logs, &p->log_room,
				       sizeof(*p->log));

	if (!memory)
		return -ENOMEM;
	p->log = memory;
	p->log[p->logs].lsn = lsn;
	p->log[p->logs++].addr = addr;
	return 0;
}

static int rfs_note_left(struct window *p, u8 type, u64 off)
{
	void *memory = rfs_array_grown(p->left, p->lefts, &p->left_room,
				       sizeof(*p->left));

	if (!memory)
		return -ENOMEM;
	p->left = memory;
	p->left[p->lefts].type = type;
	p->left[p->lefts++].off = off;
	return 0;
}

u8 rfs_stream_of(u8 type)
{
	switch (type) {
	case RFS_DATA:
		return RFS_S_DATA;
	case RFS_LOG:
		return RFS_S_LOG;
	case RFS_IMAP:
	case RFS_NMAP:
	case RFS_TIMB:
	case RFS_ZTAB:
		return RFS_S_IMAP;
	}
	return RFS_S_META;
}

/* Notes a page that is what its OOB says. Returns 1 if it is not of the window. */
static int rfs_note_page(struct rfs_fs *fs, struct window *p,
			 struct rfs_zone_info *z, const struct rfs_oob *oob,
			 u64 addr)
{
	u64 stamp = le64_to_cpu(oob->stamp);

	if (stamp < fs->cp_version)
		return 1;
	if (rfs_rescues(fs) && stamp >= RFS_VERSION_END)
		return 0;	/* no mount has made it */
	rfs_version_seen(fs, stamp);
	fs->recovered.pages_window++;
	/* Blocks that an unfinished check-point has left keep no zone. */
	if (!z->window && (oob->type == RFS_DATA || oob->type == RFS_LOG)) {
		z->window = true;
		if (z->state == RFS_Z_FREE)	/* of which group, is not known */
			z->stream = rfs_stream_of(oob->type);
	}
	if (oob->type == RFS_DATA)
		return rfs_note_data(p, oob, addr);
	if (oob->type == RFS_LOG)
		return rfs_note_log(p, le64_to_cpu(oob->off), addr);
	if (oob->type == RFS_INODES || oob->type == RFS_NMAP)
		return rfs_note_left(p, oob->type, le64_to_cpu(oob->off));
	if (rfs_is_node(oob->type))
		return rfs_note_left(p, oob->type, le64_to_cpu(oob->off) >> 32);
	return 0;
}

static bool rfs_page_data_ok(const struct rfs_oob *oob, const void *block)
{
	return le32_to_cpu(oob->data_crc) ==
	       ~rfs_crc(~0U, block, RFS_BLOCK_BYTES);
}

/* Without page metadata, this goes through the blocks that the summary at addr lists. */
static int rfs_scan_listed(struct rfs_fs *fs, struct window *p,
			   struct rfs_zone_info *z,
			   const struct rfs_summary *sum,
			   u64 addr, u32 left, void *block)
{
	u32 n = min_t(u32, le16_to_cpu(sum->head.count), RFS_SUM_ENTRIES);
	u32 i;
	int ret = 0;

	n = min(n, left);
	for (i = 0; ret >= 0 && i < n; i++) {
		const struct rfs_oob *oob = &sum->entry[i];

		fs->recovered.pages_read++;
		if (oob->type == 0 || oob->type >= RFS_TYPES ||
		    le16_to_cpu(oob->len) > RFS_BLOCK_BYTES ||
		    fs->ops->read(fs->dev, addr + 1 + i, block, NULL) ||
		    !rfs_page_data_ok(oob, block)) {
			fs->recovered.pages_bad++;
			continue;
		}
		ret = rfs_note_page(fs, p, z, oob, addr + 1 + i);
	}
	return ret < 0 ? ret : (int)n;
}

/* Reads the summaries of a zone. *end becomes the place behind its last page. */
static int rfs_scan_summaries(struct rfs_fs *fs, struct window *p, u32 nr,
			      u32 from, u8 *block, u32 *end)
{
	struct rfs_zone_info *z = &fs->zone[nr];
	u64 start = (u64)nr * fs->geo.zone_blocks;
	struct rfs_summary *sum = (struct rfs_summary *)block;
	u32 at = from, tables = from;
	int ret;

	while (at < z->wp) {
		fs->recovered.pages_read++;
		ret = fs->ops->read(fs->dev, start + at, sum, NULL);
		if (ret || !rfs_summary_ok(fs, sum, start + at)) {
			fs->recovered.pages_bad += at >= tables;
			at++;
			continue;
		}
		if (le64_to_cpu(sum->head.stamp) < fs->cp_version) {
			if (z->state == RFS_Z_FREE)
				return 0;
			at++;	/* of the check-point's tables, which follow */
			tables = at + le16_to_cpu(sum->head.count);
			*end = min(tables, z->wp);
			continue;
		}
		rfs_version_seen(fs, le64_to_cpu(sum->head.stamp));
		ret = rfs_scan_listed(fs, p, z, sum, start + at, z->wp - at - 1,
				      block + RFS_BLOCK_BYTES);
		if (ret < 0)
			return ret;
		z->summary = at + 1;
		at += 1 + ret;
		*end = at;
	}
	return 0;
}

static int rfs_scan_pages(struct rfs_fs *fs, struct window *p, u32 nr, u32 from,
			  u8 *block, u32 *end)
{
	struct rfs_zone_info *z = &fs->zone[nr];
	u64 addr = (u64)nr * fs->geo.zone_blocks + from;
	struct rfs_oob oob;
	u32 at;
	int ret;

	for (at = from; at < z->wp; at++, addr++) {
		fs->recovered.pages_read++;
		ret = fs->ops->read(fs->dev, addr, block, &oob);
		if (ret || !rfs_oob_ok(&oob, fs->volume) ||
		    !rfs_page_data_ok(&oob, block)) {
			fs->recovered.pages_bad++;
			continue;
		}
		*end = at + 1;
		ret = rfs_note_page(fs, p, z, &oob, addr);
		if (ret < 0)
			return ret;
		/* The zone was freed before the check-point and not reset after it. */
		if (ret && z->state == RFS_Z_FREE)
			return 0;
	}
	return 0;
}

/* Fault injection: only the first of the zones that a group was filling is read. */
static bool rfs_scan_left_out(const struct rfs_fs *fs,
			      const struct rfs_zone_info *z, u32 *groups)
{
	u32 group = 1U << z->stream;
	bool before = *groups & group;

	if (!rfs_injects(fs, RFS_INJECT_SCAN) || z->state != RFS_Z_OPEN ||
	    z->stream < RFS_S_DATA)
		return false;
	*groups |= group;
	return before;
}

static int rfs_scan_zones(struct rfs_fs *fs, struct window *p)
{
	u8 *block = rfs_alloc(2 * RFS_BLOCK_BYTES);
	u32 nr, end, groups = 0;
	int ret = 0;

	if (!block)
		return -ENOMEM;
	for (nr = RFS_CP_ZONES; !ret && nr < fs->geo.zones; nr++) {
		struct rfs_zone_info *z = &fs->zone[nr];

		if (z->cond == RFS_DEV_OFFLINE || z->state == RFS_Z_DEAD ||
		    rfs_scan_left_out(fs, z, &groups))
			continue;
		if (z->wp < z->cp_wp && z->live)
			ret = -EUCLEAN;	/* blocks in use are gone */
		if (!ret && z->wp <= z->cp_wp)
			continue;
		end = z->cp_wp;
		if (!ret && fs->geo.oob_bytes)
			ret = rfs_scan_pages(fs, p, nr, z->cp_wp, block, &end);
		else if (!ret)
			ret = rfs_scan_summaries(fs, p, nr, z->cp_wp, block,
						 &end);
		/*
		 * The drive does not say where the data of a read-only zone ends. The zone table
		 * must not claim more than there is: once the zone is good again, blocks that are
		 * missing below the table's write pointer count as blocks in use that are gone.
		 */
		if (z->cond == RFS_DEV_READ_ONLY)
			z->wp = end;
		if (!ret && z->state == RFS_Z_FREE && z->window) {
			z->state = RFS_Z_USED;
			z->summary = fs->geo.oob_bytes ? 0 : z->summary;
		}
	}
	rfs_free(block);
	return ret;
}

static int rfs_by_lsn(const void *a, const void *b)
{
	const struct log_page *x = a, *y = b;

	return x->lsn < y->lsn ? -1 : x->lsn > y->lsn;
}

static int rfs_by_version(const void *a, const void *b)
{
	const struct window_page *x = a, *y = b;
	u64 v = le64_to_cpu(x->oob.version), w = le64_to_cpu(y->oob.version);

	if (v != w)
		return v < w ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The end of this record may still be missing. */
struct partial {
	u8 bytes[(RFS_REC_MAX + 7) / 8 * 8];
	u32 fill;
};

/*
 * In a rescue, an inode may be taken for one in use that was freed before. A record that takes its
 * number anew says so.
 */
static int rfs_forget_older(struct rfs_fs *fs, const struct rfs_rec *rec)
{
	u32 ino = le32_to_cpu(rec->ino);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	if (rec->op == RFS_OP_RENAME && rec->flags & RFS_REC_WHITEOUT)
		ino = le64_to_cpu(rec->arg1);
	else if (rec->op != RFS_OP_CREATE)
		return 0;
	ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	return rfs_forget(fs, ino);
}

static int rfs_replay_record(struct rfs_fs *fs, const struct rfs_rec *rec)
{
	const u8 *name = (const u8 *)(rec + 1);
	u32 len1 = le16_to_cpu(rec->len1), len2 = le16_to_cpu(rec->len2);
	int ret;

	if (sizeof(*rec) + len1 + len2 > le32_to_cpu(rec->bytes) ||
	    len1 > RFS_NAME_MAX)
		return -EUCLEAN;
	rfs_version_seen(fs, le64_to_cpu(rec->version));
	ret = rfs_rescues(fs) ? rfs_forget_older(fs, rec) : 0;
	if (!ret)
		ret = rfs_apply(fs, rec, name, name + len1);
	if (rfs_rescues(fs) && ret && ret != -ENOMEM && ret != -EIO) {
		fs->recovered.records_failed++;
		return 0;
	}
	fs->recovered.records++;
	fs->recovered.last_version = le64_to_cpu(rec->version);
	/* A record was applied once, so if it cannot be applied now, that is damage. */
	return ret == 0 || ret == -ENOMEM || ret == -EIO ? ret : -EUCLEAN;
}

static int rfs_replay_bytes(struct rfs_fs *fs, struct partial *part,
			    const u8 *from, u32 bytes)
{
	struct rfs_rec *rec = (struct rfs_rec *)part->bytes;

	while (bytes) {
		u32 want = part->fill < 8 ? 8 : le32_to_cpu(rec->bytes), n;
		int ret;

		n = min(bytes, want - part->fill);
		memcpy(part->bytes + part->fill, from, n);
		part->fill += n;
		from += n;
		bytes -= n;
		if (part->fill < 8)
			continue;
		want = le32_to_cpu(rec->bytes);
		if (want < sizeof(*rec) || want > sizeof(part->bytes) ||
		    want % 8)
			return -EUCLEAN;
		if (part->fill < want)
			continue;
		ret = rfs_replay_record(fs, rec);
		if (ret)
			return ret;
		part->fill = 0;
	}
	return 0;
}

static int rfs_by_value(const void *a, const void *b)
{
	const u32 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int rfs_find_firsts(struct rfs_fs *fs, const struct window *p,
			   struct rfs_head *block, struct firsts *firsts)
{
	u32 i;

	firsts->lsn = rfs_alloc(p->logs * sizeof(*firsts->lsn));
	if (!firsts->lsn)
		return -ENOMEM;
	for (i = 0; i < p->logs; i++)
		if (!fs->ops->read(fs->dev, p->log[i].addr, block, NULL) &&
		    rfs_head_ok(block, fs->volume, RFS_LOG))
			firsts->lsn[firsts->n++] = le32_to_cpu(block->prev);
	rfs_sort(firsts->lsn, firsts->n, sizeof(*firsts->lsn), rfs_by_value);
	return 0;
}

/*
 * Before a check-point one LSN is left out if others go on while it is made durable. The
 * check-point says so. If it is lost, any block that was written when it was durable names the
 * first LSN behind the gap. Other blocks behind a gap do not count.
 */
static bool rfs_begins_epoch(const struct firsts *firsts, u64 lsn)
{
	u32 low = lsn;

	return firsts->n && bsearch(&low, firsts->lsn, firsts->n,
				    sizeof(*firsts->lsn), rfs_by_value);
}

static int rfs_replay_blocks(struct rfs_fs *fs, const struct window *p,
			     struct partial *part, struct rfs_head *block,
			     const struct firsts *firsts)
{
	u64 next = fs->lsn, lsn;
	u32 i, gap = 0;
	bool begins;
	int ret;

	for (i = 0; i < p->logs;) {
		lsn = p->log[i].lsn;
		begins = rfs_begins_epoch(firsts, lsn);
		if (lsn != next && !begins) {
			if (!rfs_rescues(fs))
				break;
			i++;
			gap++;
			continue;
		}
		/* The rest of a record that the check-point dropped does not follow. */
		if (begins)
			part->fill = 0;
		ret = fs->ops->read(fs->dev, p->log[i].addr, block, NULL);
		if (ret)
			return ret;
		if (!rfs_head_ok(block, fs->volume, RFS_LOG) ||
		    le64_to_cpu(block->off) != lsn ||
		    le16_to_cpu(block->count) > RFS_BODY_BYTES)
			return -EUCLEAN;
		ret = rfs_replay_bytes(fs, part, (u8 *)(block + 1),
				       le16_to_cpu(block->count));
		if (ret)
			return ret;
		/* An append that failed was repeated, so the same block may be there twice. */
		while (i < p->logs && p->log[i].lsn == lsn)
			i++;
		next = lsn + 1;
	}
	fs->recovered.log_gap = p->logs - i + gap;
	/* Numbers beyond the gap are not used again. */
	fs->lsn = p->logs ? max(next, min(p->log[p->logs - 1].lsn,
					  RFS_LSN_END) + 1) : next;
	return 0;
}

static int rfs_replay_log(struct rfs_fs *fs, struct window *p)
{
	struct partial *part = rfs_alloc(sizeof(*part));
	struct rfs_head *block = rfs_alloc(RFS_BLOCK_BYTES);
	struct firsts firsts = { 0 };
	int ret = -ENOMEM;

	if (part && block)
		ret = rfs_rescues(fs) && p->logs ?
		      rfs_find_firsts(fs, p, block, &firsts) : 0;
	if (!ret) {
		if (p->logs)
			rfs_sort(p->log, p->logs, sizeof(*p->log), rfs_by_lsn);
		fs->replaying = true;
		ret = rfs_replay_blocks(fs, p, part, block, &firsts);
		fs->replaying = false;
	}
	rfs_free(firsts.lsn);
	rfs_free(part);
	rfs_free(block);
	return ret;
}

/* Notes pieces. A piece is like a page of which only the bytes in the log exist. */
static int rfs_note_pieces(struct rfs_fs *fs, struct window *p)
{
	const struct rfs_logged *piece;
	struct rfs_oob oob = { 0 };
	int ret = 0;

	for (piece = fs->logged; !ret && piece; piece = piece->next) {
		u64 at = piece->off % RFS_BLOCK_BYTES;

		oob.ino = cpu_to_le32(piece->ino);
		oob.gen = cpu_to_le32(piece->gen);
		oob.off = cpu_to_le64(piece->off / RFS_BLOCK_BYTES);
		oob.version = cpu_to_le64(piece->version);
		if (rfs_injects(fs, RFS_INJECT_PIECE))
			oob.version = 0;
		oob.time = cpu_to_le64(piece->time);
		oob.len = cpu_to_le16(at + piece->len);
		oob.txn_idx = cpu_to_le16(piece->txn_idx);
		oob.txn_cnt = cpu_to_le16(piece->txn_cnt);
		ret = rfs_note_data(p, &oob, 0);
		if (!ret)
			p->data[p->datas - 1].piece = piece;
	}
	return ret;
}

static void rfs_forget_logged(struct rfs_fs *fs)
{
	while (fs->logged) {
		struct rfs_logged *piece = fs->logged;

		fs->logged = piece->next;
		rfs_free(piece);
	}
}

/*
 * An append that failed half done was repeated in another zone, so the same page may be there
 * twice. Copies are left: they carry no transaction, and the last one is applied.
 */
static void rfs_drop_twins(struct window *p)
{
	u32 i, kept = 0;

	for (i = 0; i < p->datas; i++) {
		const struct rfs_oob *oob = &p->data[i].oob;

		if (kept && !(oob->flags & RFS_OOB_COPY) && !p->data[i].piece &&
		    p->data[kept - 1].oob.version == oob->version)
			continue;
		p->data[kept++] = p->data[i];
	}
	p->datas = kept;
}

/*
 * Returns the number of pages and pieces of a transaction that begins at i and is complete, or 0.
 */
static u32 rfs_complete_from(const struct window *p, u32 i)
{
	u64 first = le64_to_cpu(p->data[i].oob.version);
	u32 n;

	for (n = 0; i + n < p->datas; n++) {
		const struct rfs_oob *oob = &p->data[i + n].oob;

		if (le64_to_cpu(oob->version) != first + n ||
		    le16_to_cpu(oob->txn_idx) != n ||
		    oob->flags & RFS_OOB_COPY)
			return 0;
		if (oob->txn_cnt)
			return le16_to_cpu(oob->txn_cnt) == n + 1 ? n + 1 : 0;
	}
	return 0;
}

/* Fault injection: a part of an incomplete transaction counts. */
static bool rfs_part_counts(const struct rfs_fs *fs,
			    const struct window_page *page)
{
	return rfs_injects(fs, RFS_INJECT_TXN) ||
	       (page->piece && rfs_injects(fs, RFS_INJECT_PARTS));
}

/* Pages and pieces are in the order of their versions, so those of a transaction are together. */
static void rfs_drop_incomplete(struct rfs_fs *fs, struct window *p)
{
	u32 i = 0, n;

	while (i < p->datas) {
		if (p->data[i].oob.flags & RFS_OOB_COPY) {
			i++;
			continue;
		}
		n = rfs_complete_from(p, i);
		if (n) {
			i += n;
			continue;
		}
		if (!rfs_part_counts(fs, &p->data[i])) {
			p->data[i].dropped = true;
			fs->recovered.txns_dropped++;
		}
		i++;
	}
}

enum fate { KEPT, PUNCHED, GONE };

static int rfs_by_ino(const void *a, const void *b)
{
	const struct rfs_tomb *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* Returns the first tombstone of an inode or one behind it. They are sorted. */
static u32 rfs_first_tomb(const struct rfs_fs *fs, u32 ino)
{
	u32 low = 0, high = fs->tombs;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (fs->tomb[mid].ino < ino)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Says what tombstones do to a page. They may cut it. */
static enum fate rfs_fate_of(const struct rfs_fs *fs, struct rfs_oob *oob)
{
	u64 block = le64_to_cpu(oob->off), version = le64_to_cpu(oob->version);
	u32 ino = le32_to_cpu(oob->ino), i;
	enum fate fate = KEPT;

	for (i = rfs_first_tomb(fs, ino); i < fs->tombs; i++) {
		const struct rfs_tomb *t = &fs->tomb[i];

		if (t->ino != ino)
			break;
		if (t->gen != le32_to_cpu(oob->gen) || version > t->version)
			continue;
		if (block >= t->from && block < t->to)
			fate = max_t(enum fate, fate, t->punch ? PUNCHED : GONE);
		if (t->cut_len && block == t->cut_block)
			oob->len = cpu_to_le16(min(le16_to_cpu(oob->len),
						   t->cut_len));
	}
	return fate;
}

/* Enters a page or a piece into the index and the diff node. */
static int rfs_place_page(struct rfs_fs *fs, struct rfs_dinode *di,
			  struct rfs_buf *ibuf, const struct window_page *page)
{
	const struct rfs_logged *piece = page->piece;
	const struct rfs_oob *oob = &page->oob;
	u32 ino = le32_to_cpu(oob->ino), end = le16_to_cpu(oob->len);
	u64 block = le64_to_cpu(oob->off), version = le64_to_cpu(oob->version);
	struct rfs_ptr ptr;
	int ret;

	if (piece) {
		u32 at = piece->off % RFS_BLOCK_BYTES;

		return end <= at ? 0 :
		       rfs_piece_apply(fs, ino, piece->off, end - at, version,
				       piece->bytes);
	}
	rfs_ptr_of(oob, page->addr, rfs_ticks(fs, le64_to_cpu(oob->time)), &ptr);
	ret = rfs_map_set(fs, ino, block, 1, &ptr);
	return ret || !di->diff ? ret :
	       rfs_diff_drop(fs, di, ibuf, block, version, true);
}

/*
 * A page that was filled counts only if the block is still at home. It may have been filled from a
 * block that bypassed flash. Only a check-point would have made that block durable, and with it the
 * file's size.
 */
static int rfs_fill_counts(struct rfs_fs *fs, const struct rfs_oob *oob,
			   enum fate *left)
{
	struct rfs_ptr ptr;
	int ret;

	if (!(oob->flags & RFS_OOB_FILL) || *left != KEPT)
		return 0;
	ret = rfs_map_get(fs, le32_to_cpu(oob->ino), le64_to_cpu(oob->off),
			  &ptr);
	if (!ret && (!rfs_ptr_has_home(&ptr) ||
		     rfs_ptr_len(&ptr) != le16_to_cpu(oob->len)))
		*left = GONE;
	return ret;
}

static int rfs_apply_page(struct rfs_fs *fs, struct window_page *page)
{
	struct rfs_oob *oob = &page->oob;
	u32 ino = le32_to_cpu(oob->ino);
	u64 block = le64_to_cpu(oob->off), end;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	enum fate left = GONE;
	int ret;

	ret = rfs_iget(fs, ino, &di, &buf);
	if (ret && ret != -ENOENT)
		return ret;
	if (!ret && di->gen == oob->gen && S_ISREG(le32_to_cpu(di->mode)))
		left = rfs_fate_of(fs, oob);
	ret = rfs_fill_counts(fs, oob, &left);
	if (ret)
		return ret;
	if (left == KEPT) {
		ret = rfs_place_page(fs, di, buf, page);
		/* The medium has lost a page that had taken the place of other pieces. */
		if (ret == -ENOSPC)
			left = GONE;
		else if (ret)
			return ret;
	}
	if (left == KEPT)
		fs->recovered.pages_applied++;
	else
		fs->recovered.pages_dropped++;
	/* A page that was punched out has made the file longer before. */
	if (left == GONE)
		return 0;
	if (oob->flags & (RFS_OOB_COPY | RFS_OOB_FILL))
		return 0;
	end = block * RFS_BLOCK_BYTES + le16_to_cpu(oob->len);
	if (end > le64_to_cpu(di->size))
		di->size = cpu_to_le64(end);
	rfs_content_times(di, oob->version, oob->time);
	if (!page->piece) {
		di->last_write = oob->time;
		di->wcount = cpu_to_le64(le64_to_cpu(di->wcount) + 1);
	}
	rfs_buf_dirty(fs, buf);
	return 0;
}

static int rfs_apply_data(struct rfs_fs *fs, struct window *p)
{
	u32 i;
	int ret = rfs_note_pieces(fs, p);

	if (!ret && p->datas)
		rfs_sort(p->data, p->datas, sizeof(*p->data), rfs_by_version);
	if (fs->tombs)
		rfs_sort(fs->tomb, fs->tombs, sizeof(*fs->tomb), rfs_by_ino);
	rfs_drop_twins(p);
	rfs_drop_incomplete(fs, p);
	for (i = 0; !ret && i < p->datas; i++)
		if (!p->data[i].dropped)
			ret = rfs_apply_page(fs, &p->data[i]);
	return ret;
}

/* Finds the block that is in use for it. *addr is 0 if there is none. */
static int rfs_leftover_at(struct rfs_fs *fs, const struct leftover *left,
			   u64 *addr)
{
	struct rfs_buf *map;
	bool used;
	int ret;

	*addr = 0;
	if (left->type == RFS_NMAP) {
		if (left->off >= fs->nmap_leaves && left->off < fs->nmap_blocks)
			*addr = rfs_nmap_word(fs, left->off) & RFS_ADDR_MASK;
		return 0;
	}
	if (left->type != RFS_INODES)
		return rfs_node_where(fs, left->off, addr, &used);
	if (left->off / RFS_MAP_ENTRIES >= fs->imap_blocks)
		return 0;
	ret = rfs_imap_get(fs, left->off / RFS_MAP_ENTRIES, false, &map);
	if (!ret && map)
		*addr = rfs_addr(map->table.word[left->off % RFS_MAP_ENTRIES]);
	return ret;
}

/*
 * A leaf that is runs has no block of its own, so the block of the node map that has it is written.
 */
static int rfs_rewrite_runs(struct rfs_fs *fs, const struct leftover *left)
{
	struct rfs_runs *runs;
	struct rfs_buf *map;
	int ret;

	if (!rfs_is_node(left->type))
		return 0;
	ret = rfs_node_runs(fs, left->off, &map, &runs);
	if (!ret && runs)
		rfs_buf_dirty(fs, map);
	return ret;
}

/*
 * Writes blocks once more that are in use. A check-point that was not finished has left newer ones:
 * blocks of inodes, nodes, and blocks of leaves in the node map. With this, the newest block of a
 * number is always the right one, on which --rescan relies.
 */
static int rfs_rewrite_leftovers(struct rfs_fs *fs, const struct window *p)
{
	struct rfs_buf *buf;
	u64 addr;
	u32 i;
	int ret;

	for (i = 0; i < p->lefts; i++) {
		ret = rfs_leftover_at(fs, &p->left[i], &addr);
		if (!ret && addr)
			ret = rfs_buf_read(fs, p->left[i].type, p->left[i].off,
					   addr, &buf);
		else if (!ret)
			ret = rfs_rewrite_runs(fs, &p->left[i]);
		if (ret == -ENOMEM)
			return ret;
		if (!ret && addr)
			rfs_buf_dirty(fs, buf);
	}
	return 0;
}

/* Returns the ns since then, and begins anew. */
static u64 rfs_lap_ns(struct rfs_fs *fs, u64 *since)
{
	u64 now = fs->ops->now(fs->dev), ns = now - *since;

	*since = now;
	return ns;
}

int rfs_recover(struct rfs_fs *fs)
{
	u64 start = fs->ops->now(fs->dev);
	struct window p = { 0 };
	int ret;

	fs->recovering = true;
	ret = rfs_scan_zones(fs, &p);
	fs->recovered.scan_ns = rfs_lap_ns(fs, &start);
	if (!ret)
		ret = rfs_replay_log(fs, &p);
	fs->recovered.log_ns = rfs_lap_ns(fs, &start);
	if (!ret)
		ret = rfs_apply_data(fs, &p);
	fs->recovered.data_ns = rfs_lap_ns(fs, &start);
	/*
	 * Otherwise this comes after the check-point, since the blocks that it makes dirty are not
	 * bounded.
	 */
	if (!ret && ((fs->read_only && !fs->ops->frees_orphans) ||
		     rfs_rescues(fs)))
		ret = rfs_free_orphans(fs);
	if (!ret)
		ret = rfs_rewrite_leftovers(fs, &p);
	fs->recovering = false;
	if (!ret && fs->counting)
		rfs_quota_recovered(fs);
	rfs_free(p.data);
	rfs_free(p.log);
	rfs_free(p.left);
	rfs_forget_logged(fs);
	rfs_free(fs->tomb);
	fs->tomb = NULL;
	fs->tombs = 0;
	fs->tomb_room = 0;
	return ret;
}
