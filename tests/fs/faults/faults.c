// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RFS over a drive whose flash fails by rule, against a model of what its files hold.
 *
 *	faults RULES MEDIA [copes=0|1] [operations=N] [seed=N]
 *
 * Files are created, written, overwritten, read, synced, deleted at random until the flash
 * has done so many operations. RULES is a file of hw/rsd-nvme/core/api/scenario.h; MEDIA is
 * made, and removed.
 *
 * copes=1: the drive, or RFS, copes with these faults. No operation may fail, all that is
 * read must be right, also after a mount, and fsck must find nothing.
 * copes=0: they destroy what the drive holds. An operation may fail, but nothing that is
 * read may be wrong, and a block may be unreadable only if a fault has destroyed it, or
 * metadata. A volume that only reads from then on, or has no room, is made anew.
 *
 * Exit status: 0; 1: one of these does not hold; 2: wrong arguments.
 */
#include <stdarg.h>
#include <string.h>

#include "nand.h"
#include "option.h"
#include "tree/tree.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"
#include "tools/tools.h"

#define FILES		300
#define BLOCKS		64	/* of a file, at most */
#define WRITE_MOST	16	/* blocks of a write */
#define REFUSED_MOST	100	/* operations in a row that fail: the volume is of no more use */

#define NEVER	0		/* stamp of a block that was not written */
#define UNSURE	(~0U)		/* of one of which a write failed */

struct file {
	u32 ino;		/* 0: there is none */
	u32 stamp[BLOCKS];
};

static const struct rfs_id id = { .uuid = "faults", .runs = true };
static struct rfs_fs *fs;
static struct file file[FILES];
static u64 draws, stamps;
static bool copes;
static u32 refused;		/* operations in a row */
static u64 failed, unreadable, volumes, reads;

static u32 pick(u32 n)
{
	draws = draws * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(draws >> 33) % n;
}

__attribute__((noreturn, format(printf, 1, 2)))
static void wrong(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("after %llu operations and %llu faults: ",
	       (unsigned long long)nand_operations(), (unsigned long long)nand_faults());
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	exit(1);
}

/* A block that no other one is like */
static void content(u64 *words, u32 nr, u32 block, u32 stamp)
{
	u64 word = ((u64)nr << 40 | (u64)block << 32 | stamp) * 0x9e3779b97f4a7c15ULL;
	u32 i;

	for (i = 0; i < RFS_BLOCK_BYTES / sizeof(*words); i++)
		words[i] = word + i;
}

/*
 * A zone that has a block in use that cannot be read is not freed ("Cleaning" in
 * host/fs/doc/design.md): where many have one, there may be no room.
 */
static bool room_may_lack(void)
{
	return nand_destroyed_zones() >= nand_geo.zones / 4;
}

/* Did the operation succeed? One that may fail is counted. */
static bool did(int ret, const char *what, u32 nr)
{
	if (!ret) {
		refused = 0;
		return true;
	}
	if (copes || ret == -ENOMEM || (ret == -ENOSPC && !room_may_lack()))
		wrong("%s of file %u fails: %d", what, nr, ret);
	failed++;
	refused++;
	return false;
}

static void name_of(u32 nr, char *name)
{
	sprintf(name, "file-%u", nr);
}

static void create(u32 nr)
{
	struct rfs_new how = { .mode = S_IFREG | 0600 };
	char name[32];

	name_of(nr, name);
	memset(&file[nr], 0, sizeof(file[nr]));
	if (!did(rfs_create(fs, RFS_ROOT_INO, name, &how, &file[nr].ino), "creation", nr))
		file[nr].ino = 0;
}

static void drop(u32 nr)
{
	char name[32];
	u32 ino;

	name_of(nr, name);
	if (!did(rfs_unlink(fs, RFS_ROOT_INO, name, &ino), "deletion", nr))
		return;
	did(rfs_free_orphan(fs, ino), "freeing", nr);
	file[nr].ino = 0;
}

static void write_some(u32 nr)
{
	static u64 words[WRITE_MOST][RFS_BLOCK_BYTES / sizeof(u64)];
	u32 n = 1 + pick(WRITE_MOST), first = pick(BLOCKS - n + 1), i;
	const void *data[WRITE_MOST];
	u32 stamp = ++stamps;
	bool done;

	for (i = 0; i < n; i++) {
		content(words[i], nr, first + i, stamp);
		data[i] = words[i];
	}
	done = did(rfs_write(fs, file[nr].ino, first, n, data, RFS_BLOCK_BYTES), "a write", nr);
	for (i = 0; i < n; i++)
		file[nr].stamp[first + i] = done ? stamp : UNSURE;
}

/* A fault must have destroyed the block, or metadata that may lead to it. */
static void check_unreadable(u32 nr, u32 block)
{
	struct rfs_ptr ptr;
	int ret = rfs_map_get(fs, file[nr].ino, block, &ptr);

	unreadable++;
	if (!ret && nand_destroyed(rfs_addr(ptr.addr)))
		return;
	if (nand_destroyed_metadata())
		return;
	wrong("block %u of file %u cannot be read, though nothing has destroyed it", block, nr);
}

static void read_one(u32 nr, u32 block)
{
	static u64 found[RFS_BLOCK_BYTES / sizeof(u64)], right[RFS_BLOCK_BYTES / sizeof(u64)];
	u32 stamp = file[nr].stamp[block];
	int ret = rfs_read(fs, file[nr].ino, block, found);

	reads++;
	if (ret) {
		if (copes)
			wrong("block %u of file %u cannot be read: %d", block, nr, ret);
		check_unreadable(nr, block);
		return;
	}
	if (stamp == UNSURE)
		return;
	content(right, nr, block, stamp);
	if (stamp == NEVER)
		memset(right, 0, sizeof(right));
	if (memcmp(found, right, sizeof(found)))
		wrong("block %u of file %u has not what was written to it", block, nr);
}

static void read_all(void)
{
	u32 nr, block;

	for (nr = 0; nr < FILES; nr++)
		for (block = 0; file[nr].ino && block < BLOCKS; block++)
			read_one(nr, block);
}

static bool begin(bool new)
{
	int ret = new ? rfs_mkfs(&nand_ops, NULL, &nand_geo, &id, "faults") : 0;

	if (!ret)
		ret = rfs_mount(&nand_ops, NULL, &nand_geo, false, 0, &fs);
	if (ret)
		fs = NULL;
	return did(ret, new ? "a new volume instead" : "the mount", 0);
}

/* From now on the volume is what its check-points and its log say. */
static void mount_again(void)
{
	bool clean = pick(2);
	int ret = clean ? rfs_unmount(fs) : rfs_log_sync(fs);

	if (!clean)
		rfs_unmount_nosync(fs);
	fs = NULL;
	if (!did(ret, "the unmount", 0) || !begin(false))
		wrong("the volume is gone");
	read_all();
}

static void step(void)
{
	u32 nr = pick(FILES);

	if (!file[nr].ino) {
		create(nr);
		return;
	}
	switch (pick(100)) {
	case 0:
		drop(nr);
		break;
	case 1:
		did(rfs_fsync(fs, file[nr].ino), "fsync", nr);
		break;
	case 2:
		if (!pick(20))
			did(rfs_checkpoint(fs, 0), "a check-point", 0);
		break;
	case 3:
		/* silent faults in the log would be seen by nobody but the next mount */
		if (copes && !pick(40))
			mount_again();
		break;
	case 4 ... 30:
		read_one(nr, pick(BLOCKS));
		break;
	default:
		write_some(nr);
	}
}

static void say(void *arg, const char *text)
{
	(void)arg;
	printf("fsck: %s\n", text);
}

static void check(void)
{
	struct rfs_report report = { .say = say, .read_data = true };

	read_all();
	if (copes && (!did(rfs_checkpoint(fs, 0), "the last check-point", 0) ||
		      !did(rfs_check(fs, &report), "fsck", 0) || report.faults))
		wrong("the volume is damaged");
}

int main(int argc, char **argv)
{
	struct option opt[] = {
		{ "operations", 100000, 1, 1ULL << 40, "of the flash" },
		{ "seed", 1, 0, 1ULL << 40, "of what is done" },
		{ "copes", 1, 0, 1, "1: nobody may notice; 0: what is destroyed may be lost" },
		{ 0 }
	};
	u64 most;

	if (argc < 3) {
		options_print("usage: faults RULES MEDIA [NAME=N]...", opt);
		return 2;
	}
	options(argc, argv, 3, "usage: faults RULES MEDIA [NAME=N]...", opt);
	most = opt[0].value;
	draws = opt[1].value * 77777 + 1;
	copes = opt[2].value;
	nand_begin(argv[2], argv[1]);
	while (nand_operations() < most) {
		if (!fs) {
			memset(file, 0, sizeof(file));
			volumes++;
			if (!begin(true)) {	/* what it wrote may have been destroyed */
				if (refused > REFUSED_MOST)
					wrong("no volume can be made any more");
				continue;
			}
		}
		step();
		if (fs->read_only || refused > REFUSED_MOST) {
			if (copes)
				wrong("the volume only reads from now on");
			read_all();
			rfs_unmount_nosync(fs);
			fs = NULL;
			refused = 0;
		}
	}
	if (fs)
		check();
	printf("%llu operations, %llu faults, %llu volumes, %llu blocks read, %llu of them destroyed, %llu other operations failed\n",
	       (unsigned long long)nand_operations(), (unsigned long long)nand_faults(),
	       (unsigned long long)volumes, (unsigned long long)reads,
	       (unsigned long long)unreadable, (unsigned long long)failed);
	if (fs)
		rfs_unmount_nosync(fs);
	nand_end();
	return 0;
}
