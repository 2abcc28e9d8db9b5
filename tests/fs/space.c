// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Looks for a volume that its own files bring to a stop: "Room" in
 * host/fs/doc/design.md says that there is none. A setting is a drive of random
 * zones and limits, filled to 95 to 100% with a random mixture of files; then
 * rounds of overwriting, times, deleting, creating until there is no room,
 * check-points, mounts, power cuts. Half of the settings use the volume as the tools
 * do, half as the module does: pages are promised room and sent later.
 *
 *	space [settings=N] [seed=N] [rounds=N] [progress=N] [verbose=1] [striped=1] [most=N] [runs=0]
 *	      [cuts=N] [fails=N] [together=N] [epochs=1] [promised=1] [zones=N]
 *
 * No operation but one that asks for something new may answer ENOSPC, none may
 * fail, and the volume never ends read-only. Prints a line, and one for each
 * setting that fails; exit status 1 if one does. A zone may fail while data is copied, and
 * with together=N several before anybody is admitted again, for which nothing is reserved: a
 * setting may end there, if the volume is whole.
 */
#include <malloc.h>
#include <stdio.h>

#include "bare.h"
#include "option.h"
#include "promised.h"
#include "space/rank.h"
#include "space/space.h"
#include "tree/tree.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"
#include "tools/tools.h"

#define FILES_MAX	300000

/* Files of one shape: n blocks from `first` on, `step` apart */
struct item {
	u32 ino, dir, name;
	u32 n, written;
	u64 first, step;
	bool is_dir;
};

static struct rfs_id id = { .uuid = "space harness" };
static bool cached;		/* all metadata is kept in memory */
static struct rfs_fs *fs;
static struct item *item;
static u32 items, names, dirs[64], ndirs;
static u64 draws;
static const char *op;		/* the last operation, */
static u64 op_on[2];		/* and what it is of */
static bool verbose;
static bool late;		/* pages are promised, and sent later, as in the module */
static u32 late_most;		/* so many at a time */
static bool promised;		/* in all settings, and the thread never waits for them */
static struct rfs_dev_ops ops;
static bool striped;		/* groups are, over 2 to 9 zones */
static u32 cuts;		/* of power in a row, at most */
static u32 fails;		/* zones that fail, at most */
static u32 failing;		/* of them, those that nothing was said of yet */
static u32 together;		/* of them, in one round, at most */
static bool amid_cleaning;	/* one has failed, and that has ended cleaning */
static u64 ends;		/* settings that these, or several at once, have ended */
static u64 held;		/* blocks that users leave to zones that will fail */
static bool epochs;		/* others go on while a check-point is made durable */
static bool cut_in_epoch;	/* the power goes then */
static int epoch_error;		/* of what they did */
static u64 in_epochs;		/* operations of theirs */
static u32 most;		/* blocks of a drive, unless 30 zones have more */
static u32 few;			/* zones, or the least that mkfs takes; 0: 30 and more */
static const char *broken;	/* of the proof: what does not hold */
static char broken_at[200];	/* in which operation */

/* It is put into words only where one fails: for each operation, that took 4% of the time. */
#define OP(...)	OP_IS(__VA_ARGS__, 0, 0)
#define OP_IS(text, a, b, ...)	(op = (text), op_on[0] = (a), op_on[1] = (b))

static const char *what(void)
{
	static char text[200];

	snprintf(text, sizeof(text), op, op_on[0], op_on[1]);
	return text;
}

/* Who is admitted finds that there is room for one zone that fails: "Zones that fail" */
int __real_rfs_make_room(struct rfs_fs *of, u32 blocks, u64 data, u32 meta);
int __wrap_rfs_make_room(struct rfs_fs *of, u32 blocks, u64 data, u32 meta);

int __wrap_rfs_make_room(struct rfs_fs *of, u32 blocks, u64 data, u32 meta)
{
	int ret = __real_rfs_make_room(of, blocks, data, meta);

	if (!ret)
		drive.at_once = 0;
	return ret;
}

/* Nor is anything reserved for one that fails while data is copied. */
int __real_rfs_clean_some(struct rfs_fs *of, enum rfs_clean how);
int __wrap_rfs_clean_some(struct rfs_fs *of, enum rfs_clean how);
int __real_rfs_clean(struct rfs_fs *of, enum rfs_clean how);
int __wrap_rfs_clean(struct rfs_fs *of, enum rfs_clean how);

int __wrap_rfs_clean_some(struct rfs_fs *of, enum rfs_clean how)
{
	u32 before = drive.at_once;
	int ret = __real_rfs_clean_some(of, how);

	amid_cleaning = ret && drive.at_once > before;
	return ret;
}

int __wrap_rfs_clean(struct rfs_fs *of, enum rfs_clean how)
{
	u32 before = drive.at_once;
	int ret = __real_rfs_clean(of, how);

	amid_cleaning = ret && drive.at_once > before;
	return ret;
}

static u32 pick(u32 n)
{
	draws = draws * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(draws >> 33) % n;
}

static u32 between(u32 least, u32 most)
{
	return least + pick(most - least + 1);
}

/* A drive on which there can be a volume */
static bool drive_new(void)
{
	static const u32 oobs[] = { 64, 64, 16, 0 };
	struct rfs_layout layout;
	u32 blocks = 1 << between(5, 12);

	drive.geo.zone_blocks = blocks;
	drive.cap = blocks - (pick(3) ? 0 : pick(blocks / 4 + 1));
	drive.geo.zones = between(30, pick(4) ? 300 : 3000);
	if ((u64)drive.geo.zones * blocks > most)
		drive.geo.zones = max(30U, most / blocks);
	drive.geo.oob_bytes = oobs[pick(4)];
	drive.geo.append_max = pick(2) ? between(8, 128) : 0;
	drive.geo.max_open = pick(2) ? between(3, 12) : 0;
	drive.geo.max_active = drive.geo.max_open ?
			       drive.geo.max_open + between(1, 4) : 0;
	if (few)
		drive.geo.zones = few;
	do {
		rfs_layout(drive.geo.zones, drive.cap,
			   drive.geo.oob_bytes >= RFS_OOB_BYTES, 0, id.runs,
			   &layout);
	} while (few && drive.geo.zones < layout.make_zones && drive.geo.zones++);
	if (drive.geo.zones < layout.make_zones)
		return false;
	/* these draw nothing: seeds stay what they were */
	cached = draws >> 40 & 3;
	id.pieces = draws >> 42 & 1;
	late = promised || draws >> 46 & 1;
	id.ways = striped ? 2 + (draws >> 43 & 7) : 1;
	while (id.ways > 1) {	/* as many as mkfs takes */
		rfs_layout(drive.geo.zones, drive.cap,
			   drive.geo.oob_bytes >= RFS_OOB_BYTES, id.ways,
			   id.runs, &layout);
		if (drive.geo.zones >= layout.make_zones)
			break;
		id.ways--;
	}
	drive_begin();
	return true;
}

static void note_broken(const struct rfs_fs *at, const char *text);

/* The tournament finds what a look at each zone does. */
static void compare_victim(const struct rfs_fs *at, enum rfs_clean how, u64 now,
			   u64 ways, u32 nr)
{
	if (rfs_victim_scan(at, how, now, ways) != nr)
		note_broken(at, "another zone is the best victim");
}

/* The proof's invariant does not hold: the setting ends with that. */
static void note_broken(const struct rfs_fs *at, const char *text)
{
	if (broken)
		return;
	broken = text;
	snprintf(broken_at, sizeof(broken_at), "%s", what());
	if (verbose)
		printf("%s: %s: %u dirty, %u maps, %u zones free (%u low), %u of metadata, %llu of %llu blocks\n",
		       broken_at, text, at->dirty.count, at->maps, at->free_zones,
		       at->low_zones, at->meta_zones,
		       (unsigned long long)rfs_used(at),
		       (unsigned long long)at->user_blocks);
}

/*
 * As many zones may fail as users leave the room of, and nothing is refused: "Room". What
 * one has held that has failed the volume holds.
 */
static void hold_for_failing(void)
{
	u32 zone, left = fails;

	for (zone = RFS_CP_ZONES; zone < drive.geo.zones; zone++)
		left -= left && drive.cond[zone] != RFS_DEV_OK;
	fs->user_blocks += held;
	held = min(fs->user_blocks, (u64)left * fs->holds);
	fs->user_blocks -= held;
}

static int mount(void)
{
	struct rfs_policy policy = { .groups = between(1, 6), .gc = pick(3) };
	int ret;

	ret = rfs_mount(&ops, NULL, &drive.geo, false, 0, &fs);
	if (ret) {
		fs = NULL;
		return ret;
	}
	rfs_policy_set(fs, &policy);
	held = 0;
	hold_for_failing();
	/* Which clean blocks are in memory decides nothing but the time it takes. */
	if (cached)
		fs->clean_max = ~0U;
	if (late)
		promised_begin(fs, pick, !promised);
	return 0;
}

static void name_of(u32 nr, char *name)
{
	sprintf(name, nr % 3 ? "f%u" : "f%u-a-name-that-is-long-enough-for-more-blocks", nr);
}

static int write_block(const struct item *it, u32 i)
{
	u64 block = it->first + i * it->step;
	const void *data = common;
	u32 at, len;
	int ret;

	OP("write %llu, block %llu", it->ino, block);
	if (late && promised_already(it->ino, block))
		return 0;
	if (fs->compact && pick(2)) {
		at = pick(3000);
		len = between(1, 1000);
		promised_do(ret, rfs_write_bytes(fs, it->ino, block *
						 RFS_BLOCK_BYTES + at, common,
						 len));
		return ret;
	}
	return late ? promised_page(it->ino, block, late_most) :
		      rfs_write(fs, it->ino, block, 1, &data, RFS_BLOCK_BYTES);
}

/* What there may be no room for; 1: there is none */
static int ask(int ret)
{
	return ret == -ENOSPC ? 1 : ret;
}

static int set_attribute(u32 ino)
{
	u32 len = between(1, 3000);
	int ret;

	promised_do(ret, rfs_xattr_set(fs, ino, "user.a", common, len, 0, 0));
	return ret;
}

/* One more; 1: there is no room for it */
static int add(u32 kind)
{
	struct rfs_new how = { .mode = S_IFREG | 0600, .uid = pick(50) };
	struct item *it = &item[items];
	char name[80];
	int ret;

	if (items == FILES_MAX)
		return 1;
	memset(it, 0, sizeof(*it));
	it->dir = dirs[pick(ndirs)];
	it->name = names++;
	name_of(it->name, name);
	if (kind == 5 && ndirs < 64)
		how.mode = S_IFDIR | 0700;
	OP("create");
	promised_do(ret, rfs_create(fs, it->dir, name, &how, &it->ino));
	if (ret)
		return ask(ret);
	if (S_ISDIR(how.mode)) {
		dirs[ndirs++] = it->ino;	/* they stay */
		return 0;
	}
	items++;
	it->step = 1;
	switch (kind) {
	case 1:		/* one block */
		it->n = 1;
		break;
	case 2:		/* one block, far behind */
		it->n = 1;
		it->first = 1ULL << between(9, 38);
		break;
	case 3:		/* dense */
		it->n = between(10, 3000);
		break;
	case 4:		/* a leaf a block */
		it->n = between(2, 200);
		it->step = RFS_FANOUT;
		break;
	case 6:
		OP("set an attribute");
		ret = ask(set_attribute(it->ino));
		break;
	}
	for (; !ret && it->written < it->n; it->written += !ret)
		ret = ask(write_block(it, it->written));
	return ret;
}

static int fill(u32 mixture)
{
	u32 kind;
	int ret;

	do {
		kind = mixture < 7 && pick(8) ? mixture : pick(7);
		ret = add(kind);
	} while (!ret);
	if (ret < 0)
		return ret;
	/* what is small may still have room */
	do {
		ret = add(1);
	} while (!ret);
	return ret < 0 ? ret : 0;
}

static int drop(u32 nr)
{
	struct item *it = &item[nr];
	char name[80];
	u32 ino;
	int ret;

	name_of(it->name, name);
	OP("unlink %llu", it->ino);
	promised_do(ret, rfs_unlink(fs, it->dir, name, &ino));
	OP("free %llu", it->ino);
	promised_drop(it->ino, 0);
	if (!ret)
		promised_do(ret, rfs_free_orphan(fs, it->ino));
	*it = item[--items];
	return ret;
}

static int overwrite(void)
{
	u32 n = between(1, 2000), nr, block;
	int ret = 0;

	while (!ret && items && n--) {
		nr = pick(items);
		if (!item[nr].written)
			continue;
		block = pick(item[nr].written);
		ret = write_block(&item[nr], block);
		/* those that were promised a place have taken what there is */
		if (ret != -ENOSPC || !promised_pages())
			continue;
		ret = promised_send_all();
		if (!ret)
			ret = write_block(&item[nr], block);
	}
	return ret;
}

/* As Linux does after all files were read */
static int read_all(void)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 nr;
	int ret = 0;

	for (nr = 0; !ret && nr < items; nr++) {
		OP("times of %llu", item[nr].ino);
		ret = rfs_iget(fs, item[nr].ino, &di, &buf);
		if (!ret) {
			struct rfs_dinode times = *di;

			times.atime = cpu_to_le64(drive_ops.now(NULL));
			promised_do(ret, rfs_set_times(fs, item[nr].ino,
						       &times));
		}
	}
	return ret;
}

static int change_some(void)
{
	u32 n = between(1, 300), nr, k;
	struct rfs_dinode *di, attr;
	struct rfs_ptr ptr;
	struct rfs_buf *buf;
	struct item *it;
	int ret = 0;

	while (!ret && items && n--) {
		nr = pick(items);
		it = &item[nr];
		switch (pick(5)) {
		case 0:
			k = it->written ? pick(it->written) : 0;
			OP("truncate %llu", it->ino);
			promised_drop(it->ino, it->first + k * it->step + 1);
			promised_do(ret, rfs_truncate(fs, it->ino,
				(it->first + k * it->step) * RFS_BLOCK_BYTES +
				5, false));
			it->written = min(it->written, k + 1);
			if (ret || it->written <= k)
				break;
			/* Were all of its last block pieces, none may be left. */
			ret = rfs_map_get(fs, it->ino, it->first + k * it->step,
					  &ptr);
			if (!ret && !rfs_addr(ptr.addr))
				it->written = k;
			break;
		case 1:
			OP("punch %llu", it->ino);
			k = it->written ? pick(it->written) : 0;
			promised_drop(it->ino, it->first + k * it->step);
			promised_do(ret, rfs_punch(fs, it->ino, it->first + k *
						   it->step, ~0ULL >> 20,
						   false));
			it->written = k;
			break;
		case 2:
			OP("chmod %llu", it->ino);
			ret = rfs_iget(fs, it->ino, &di, &buf);
			if (ret)
				break;
			attr = *di;
			attr.mode ^= cpu_to_le32(0111);
			promised_do(ret, rfs_setattr(fs, it->ino, &attr, 0));
			break;
		case 3:
			OP("set an attribute");
			ret = ask(set_attribute(it->ino));
			ret = ret > 0 ? 0 : ret;
			break;
		case 4:
			OP("remove an attribute");
			promised_do(ret, rfs_xattr_set(fs, it->ino, "user.a",
						       NULL, 0, 0, 0));
			ret = ret == -ENODATA ? 0 : ret;
			break;
		}
	}
	return ret;
}

/* Appends of a check-point complete as they are sent. */
static void submit(void *dev, struct rfs_append_req *req)
{
	req->error = drive_ops.append(dev, req->zone, req->n, req->data,
				      req->oob, &req->addr);
}

static void submitted(void *dev, struct rfs_append_req *req)
{
	(void)dev;
	(void)req;
}

static int chmod_any(void)
{
	u32 ino = item[pick(items)].ino;
	struct rfs_dinode *di, attr;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (ret)
		return ret;
	attr = *di;
	attr.mode ^= cpu_to_le32(0111);
	return rfs_setattr(fs, ino, &attr, 0);
}

static int write_any(void)
{
	const struct item *it = &item[pick(items)];
	const void *data = common;
	u64 block = it->written ? it->first + it->step * pick(it->written) : 0;

	if (!it->written || (late && promised_already(it->ino, block)))
		return 0;
	return rfs_write(fs, it->ino, block, 1, &data, RFS_BLOCK_BYTES);
}

/* So much that there is room for without a check-point; (1) of "Room" holds each time. */
static void act_without_checkpoint(u32 n)
{
	bool threaded = fs->threaded;
	int ret = 0;

	fs->threaded = true;
	while (!ret && items && n-- && !rfs_make_room_to_free(fs)) {
		ret = pick(2) ? chmod_any() : write_any();
		in_epochs += fs->commit && !ret;
	}
	fs->threaded = threaded;
	if (ret != -EAGAIN && ret != -ENOSPC)
		epoch_error = ret;
}

/* A check-point is not durable yet: others go on. Then the power may go. */
static void act_in_next_epoch(void *dev)
{
	(void)dev;
	OP("the next epoch");
	act_without_checkpoint(cut_in_epoch ? 4000 : pick(100));
	if (cut_in_epoch)
		drive.power = pick(3);
}

static int checkpoint_early(void)
{
	int ret = rfs_checkpoint_early(fs);

	return epoch_error ? epoch_error : ret;
}

/* Others have completed, too */
static int checkpoint(void)
{
	int ret = promised_failed();

	if (!ret && late)
		ret = promised_send_all();
	if (!ret && epochs && pick(4))
		return checkpoint_early();
	return ret ? ret : rfs_checkpoint(fs, 0);
}

/* Power goes while a check-point is written, or some time before. */
static int power_cut(void)
{
	u32 tries, writes = 200;
	int ret;

	OP("pages");
	ret = late ? promised_send_all() : 0;
	OP("log");
	if (!ret)
		ret = rfs_log_sync(fs);
	promised_end();
	if (ret)
		return ret;
	/* a row of them: recoveries that are cut off, at the end of a check-point or before */
	if (cuts)
		writes = fs->dirty.count + 20;
	for (tries = pick(cuts ? cuts + 1 : 3); tries; tries--) {
		drive.power = 1 + (cuts ? (pick(2) ? pick(writes) :
						     writes - pick(20)) :
				   pick(fs ? fs->dirty.count + 20 : writes));
		cut_in_epoch = fs && epochs && pick(2);
		if (cut_in_epoch) {
			drive.power = ~0ULL;
			/* recovery has most to write anew */
			act_without_checkpoint(4000);
			checkpoint_early();
			cut_in_epoch = false;
			rfs_unmount_nosync(fs);
			fs = NULL;
		} else if (fs) {
			rfs_checkpoint(fs, 0);
			rfs_unmount_nosync(fs);
			fs = NULL;
		} else if (!mount()) {
			rfs_unmount_nosync(fs);
			promised_end();
			fs = NULL;
		}
	}
	drive.power = ~0ULL;
	if (fs)
		rfs_unmount_nosync(fs);
	OP("mount after a power cut");
	return mount();
}

static int round_of(u32 nr)
{
	u32 n;
	int ret;

	(void)nr;
	late_most = pick(3) ? pick(600) : pick(4096);
	if (promised)
		late_most = 4095 - late_most / 8;
	hold_for_failing();
	if (failing && !drive.fails && !pick(3)) {
		drive.fails = 1 + pick(3000);
		failing--;
		/* no append meets three of them, which is an error of the device */
		drive.more = pick(min(together, failing + 1));
		drive.apart = between(3, 300);
		failing -= drive.more;
	}
	ret = overwrite();
	if (!ret && !pick(3))
		ret = read_all();
	if (!ret && !pick(3))
		ret = change_some();
	for (n = items / 100 + 1; !ret && items && n; n--)
		ret = drop(pick(items));
	if (!ret && pick(3))
		ret = fill(pick(10));
	if (!ret)
		OP("check-point");
	if (!ret && pick(2))
		ret = pick(2) ? checkpoint() : rfs_checkpoint(fs, 0);
	if (!ret && !pick(4)) {
		OP("unmount");
		ret = checkpoint();
		promised_end();
		if (!ret)
			ret = rfs_unmount(fs);
		fs = NULL;
		if (!ret) {
			OP("mount");
			ret = mount();
		}
	}
	return ret || pick(4) ? ret : power_cut();
}

static void say(void *arg, const char *text)
{
	(void)arg;
	if (verbose)
		printf("fsck: %s\n", text);
}

static int check(void)
{
	struct rfs_report report = { .say = say };
	int ret;

	OP("the last check-point");
	ret = checkpoint();
	if (!ret && epochs)	/* with what was done meanwhile */
		ret = rfs_checkpoint(fs, 0);
	OP("fsck");
	if (!ret)
		ret = rfs_check(fs, &report);
	return !ret && report.faults ? -EUCLEAN : ret;
}

/*
 * Zones have failed for which nothing is reserved, and no zone was left for an append. What
 * was durable is there: once the zones are good again, the volume goes on.
 */
static int ended(int ret)
{
	u32 zone;

	if ((drive.at_once < 2 && !amid_cleaning) || (ret != -EIO && ret != -EROFS && ret != -ENOSPC))
		return ret;
	if (verbose)
		printf("ended at %s: %d, %u zones of %u free, %u to be free\n",
		       what(), ret, fs->free_zones, fs->geo.zones,
		       fs->set[RFS_SET_GAINED].count);
	promised_end();
	rfs_unmount_nosync(fs);
	for (zone = 0; zone < drive.geo.zones; zone++)
		drive.cond[zone] = RFS_DEV_OK;
	drive.fails = 0;
	drive.more = 0;
	OP("mount with good zones");
	ret = mount();
	ret = ret ? ret : check();
	ends += !ret;
	return ret;
}

static int setting(u32 rounds)
{
	u32 i, keep;
	int ret;

	broken = NULL;
	amid_cleaning = false;
	failing = fails;
	OP("mkfs");
	ret = rfs_mkfs(&ops, NULL, &drive.geo, &id, "space");
	OP("mount");
	if (!ret)
		ret = mount();
	ndirs = 1;
	dirs[0] = RFS_ROOT_INO;
	items = 0;
	names = 0;
	late_most = pick(64);
	OP("quotas");
	if (!ret && !pick(3))
		ret = rfs_quota_on(fs);
	/* on the smallest volumes, zones that will fail leave users no more than one zone */
	if (ret == -ENOSPC && failing && fs->user_blocks <= fs->holds)
		ret = 0;
	if (!ret)
		ret = fill(pick(10));
	/* 95 to 100% full */
	for (keep = items - items * pick(6) / 100; !ret && items > keep; )
		ret = drop(pick(items));
	for (i = 0; !ret && !fs->read_only && !broken && i < rounds; i++) {
		if (verbose)
			printf("round %u: %u files, %llu of %llu blocks, %u of %u zones free (%u low), %u dirty of %u\n",
			       i, items, (unsigned long long)fs->live,
			       (unsigned long long)fs->user_blocks,
			       fs->free_zones, fs->geo.zones, fs->low_zones,
			       fs->dirty.count, fs->dirty_max);
		ret = round_of(i);
	}
	if (!ret && fs->read_only)
		ret = -EROFS;
	if (ret && fs)
		return ended(ret);
	ret = ret ? ret : check();
	return !ret && broken ? -ENOSPC : ret;
}

int main(int argc, char **argv)
{
	struct option opt[] = {
		{ "settings", 200, 1, 1ULL << 40, "drives and mixtures" },
		{ "seed", 1, 0, 1ULL << 40, "of the first setting" },
		{ "rounds", 20, 0, 1000, "of changes in each" },
		{ "verbose", 0, 0, 1, "what each is like" },
		{ "progress", 0, 0, 1ULL << 40, "a line after so many settings" },
		{ "striped", 0, 0, 1, "1: groups stripe over 2 to 9 zones" },
		{ "cuts", 0, 0, 1000, "of power in a row, at most" },
		{ "fails", 0, 0, 1000, "zones of a drive that fail" },
		{ "together", 1, 1, 1000, "of them, in one round, at most" },
		{ "most", 150000, 0, 1 << 24, "blocks of a drive of over 30 zones" },
		{ "runs", 1, 0, 1, "1: leaves are runs where they can be" },
		{ "epochs", 0, 0, 1, "1: others go on while a check-point is made durable" },
		{ "promised", 0, 0, 1, "1: some 4,000 pages are promised at a time" },
		{ "zones", 0, 0, 3000, "of a drive, or the least that mkfs takes; 0: 30 and more" },
		{ 0 }
	};
	u64 seed, done = 0, failed = 0;
	int ret;

	options(argc, argv, 1, "usage: space [NAME=N]...", opt);
	ops = drive_ops;
	ops.yield = promised_yield;
	/* What is freed is needed again soon: page faults took a quarter of the time. */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TOP_PAD, 64 << 20);
	rfs_broken = note_broken;
	rfs_victim_found = compare_victim;
	verbose = opt[3].value;
	striped = opt[5].value;
	cuts = opt[6].value;
	fails = opt[7].value;
	together = opt[8].value;
	most = opt[9].value;
	id.runs = opt[10].value;
	epochs = opt[11].value;
	if (epochs) {
		ops.append_submit = submit;
		ops.append_wait = submitted;
		ops.frozen = act_in_next_epoch;
	}
	promised = opt[12].value;
	few = opt[13].value;
	/* until data is cleaned after it, a zone lacks that the proof has; nothing is refused */
	if (fails)
		rfs_broken = NULL;
	item = calloc(FILES_MAX, sizeof(*item));
	memset(common, 0x5a, sizeof(common));
	for (seed = opt[1].value; done < opt[0].value; seed++) {
		draws = seed * 77777 + 1;
		pick(2);
		if (!drive_new())
			continue;
		done++;
		ret = setting(opt[2].value);
		promised_end();
		if (ret)
			printf("seed %llu: %u zones of %u blocks, %u of page metadata, %u open: %s%s%s: %d%s\n",
			       (unsigned long long)seed, drive.geo.zones,
			       drive.cap, drive.geo.oob_bytes,
			       drive.geo.max_open, broken ? broken : "",
			       broken ? ", at " : "", broken ? broken_at : what(),
			       ret,
			       fs && fs->read_only ? ", read-only" : "");
		failed += !!ret;
		if (opt[4].value && !(done % opt[4].value))
			printf("%llu settings so far, %llu failed, the last with seed %llu\n",
			       (unsigned long long)done,
			       (unsigned long long)failed,
			       (unsigned long long)seed);
		fflush(stdout);
		if (fs)
			rfs_unmount_nosync(fs);
		fs = NULL;
		drive_end();
	}
	if (fails)
		printf("%llu ended where zones failed before anybody was admitted again\n",
		       (unsigned long long)ends);
	if (epochs)
		printf("%llu operations before a check-point was durable\n",
		       (unsigned long long)in_epochs);
	printf("%llu settings, %llu failed\n", (unsigned long long)done,
	       (unsigned long long)failed);
	free(item);
	return !!failed;
}
