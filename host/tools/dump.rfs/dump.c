// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>

#include "device.h"
#include "home/replica.h"
#include "tree/tree.h"
#include "tree/dir.h"
#include "tree/xattr.h"
#include "tree/quota.h"
#include "ops/ops.h"

const char *program = "dump.rfs";

static const char usage[] =
"usage: dump.rfs [--slow DEV] DEVICE [super | zones | recovery | quotas | inode N |\n"
"                        map N | dir N | xattr N | blocks ZONE]\n"
"\n"
"Print what an RFS has on its medium. Nothing is changed; what a power cut left\n"
"is recovered in memory. Without a second argument it prints super. A hybrid volume has its\n"
"slow device at DEV; with \"none\" flash alone is looked at.\n"
"\n"
"  super       Print the superblock, the check-point and the space.\n"
"  zones       Print the state, stream, write pointer and blocks in use of each zone.\n"
"  recovery    Print what recovery found.\n"
"  quotas      Print the usage and the limits of users and groups.\n"
"  inode N     Print inode N. The root is inode 2.\n"
"  map N       Print the blocks of inode N, and where they are.\n"
"  dir N       Print the entries of directory N.\n"
"  xattr N     Print the extended attributes of inode N.\n"
"  blocks Z    Print the page metadata of each block of zone Z.\n"
"\n"
"example: dump.rfs /dev/nvme0n1 dir 2\n"
"The exit status is 0 if it was printed, and 1 if not.\n";

#define U(x)	((unsigned long long)(x))

static const char * const types[RFS_TYPES] = {
	"?", "data", "log", "dir", "index", "inodes", "imap", "timb", "ztab",
	"cp", "super", "summary", "xattr", "quota", "nmap", "diff",
};

static void dump_slow(struct rfs_fs *fs)
{
	const struct rfs_home *home = fs->home;

	printf("slow device of %llu blocks, %llu for files",
	       U(le64_to_cpu(fs->super.slow_blocks)), U(home->blocks));
	if (home->gone)
		printf("; it is not there\n");
	else
		printf(": %llu free, %llu have what flash has, too, %llu alone\n",
		       U(home->count[RFS_SLOW_FREE] + home->count[RFS_SLOW_HELD]),
		       U(home->count[RFS_SLOW_BOTH]),
		       U(home->count[RFS_SLOW_ALONE]));
	if (home->replica && home->replica->blocks)
		printf("replica of the metadata of check-point %llu: %u of %u blocks in use\n",
		       U(home->replica->seq), home->replica->used,
		       home->replica->slots);
	else if (home->replica)
		printf("it has no replica of the metadata, for want of room\n");
	if (home->lacks)
		printf("its table of states is damaged; fsck.rfs -p --slow DEV makes it anew\n");
}

static int dump_super(struct rfs_fs *fs)
{
	const struct rfs_super *s = &fs->super;
	u32 i;

	printf("uuid ");
	for (i = 0; i < sizeof(s->uuid); i++)
		printf("%02x%s", s->uuid[i],
		       i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
	printf("\nlabel %.64s\n", s->label);
	printf("version %u, compat %#x, ro_compat %#x, incompat %#x\n",
	       le32_to_cpu(s->version), le32_to_cpu(s->compat),
	       le32_to_cpu(s->ro_compat), le32_to_cpu(s->incompat));
	printf("zones %u of %u blocks, %u can be written; page metadata %u bytes\n",
	       le32_to_cpu(s->zones), le32_to_cpu(s->zone_blocks),
	       le32_to_cpu(s->zone_cap), le32_to_cpu(s->oob_bytes));
	printf("striped over %u zones\n",
	       max(le32_to_cpu(s->ways), 1U));
	printf("reserve %u zones, dirty blocks %u at most, inodes %u at most, nodes %u\n",
	       le32_to_cpu(s->reserve_zones), le32_to_cpu(s->dirty_max),
	       le32_to_cpu(s->max_inodes), le32_to_cpu(s->max_nodes));
	printf("check-point %llu in zones %u and %u; versions from %llu, log from %llu\n",
	       U(fs->cp_seq), fs->cp_mirror[0], fs->cp_mirror[1],
	       U(fs->cp_version), U(fs->lsn));
	printf("inodes %llu; blocks in use %llu of %llu, data %llu; zones free %u\n",
	       U(fs->inodes), U(fs->live), U(fs->user_blocks),
	       U(fs->data_live), fs->free_zones);
	printf("reserved blocks %llu\n", U(fs->prealloc));
	printf("leaves that are runs %u\n", fs->runs);
	if (rfs_is_hybrid(s))
		dump_slow(fs);
	return 0;
}

static int dump_zones(struct rfs_fs *fs)
{
	static const char * const states[] = { "free", "open", "used", "cp",
					       "dead" };
	static const char * const conds[] = { "", "read-only", "offline" };
	static const char * const streams[] = { "log", "meta", "imap" };
	u32 nr;

	printf("zone state stream wp capacity live maps window condition\n");
	for (nr = 0; nr < fs->geo.zones; nr++) {
		const struct rfs_zone_info *z = &fs->zone[nr];

		printf("%u %s %s %u %u %u %u %s %s\n", nr, states[z->state],
		       z->state == RFS_Z_CP || z->state == RFS_Z_FREE ? "-" :
		       z->stream < RFS_S_DATA ? streams[z->stream] : "data",
		       z->wp, z->cap, z->live, z->maps,
		       z->window ? "yes" : "no", conds[z->cond]);
	}
	return 0;
}

static int dump_recovery(struct rfs_fs *fs)
{
	const struct rfs_recovered *r = &fs->recovered;

	printf("pages_read %llu\npages_window %llu\npages_bad %llu\n",
	       U(r->pages_read), U(r->pages_window), U(r->pages_bad));
	printf("records %llu\nlog_gap %llu\ntxns_dropped %llu\n",
	       U(r->records), U(r->log_gap), U(r->txns_dropped));
	printf("pages_dropped %llu\npages_applied %llu\norphans %llu\n",
	       U(r->pages_dropped), U(r->pages_applied), U(r->orphans));
	printf("scan_ns %llu\nlog_ns %llu\ndata_ns %llu\n", U(r->scan_ns),
	       U(r->log_ns), U(r->data_ns));
	return 0;
}

static int dump_quota(struct rfs_fs *fs, u32 type, u32 id)
{
	struct rfs_quota q;
	u64 held;
	int ret = rfs_quota_get(fs, type, id, &q, &held);

	if (!ret)
		printf("%s %u %llu %llu %llu %llu %llu %llu %llu %llu\n",
		       type == RFS_QUOTA_USER ? "user" : "group", id,
		       U(le64_to_cpu(q.blocks)), U(le64_to_cpu(q.inodes)),
		       U(le64_to_cpu(q.space_soft)),
		       U(le64_to_cpu(q.space_hard)),
		       U(le64_to_cpu(q.inodes_soft)),
		       U(le64_to_cpu(q.inodes_hard)),
		       U(le64_to_cpu(q.space_end)),
		       U(le64_to_cpu(q.inodes_end)));
	return ret;
}

static int dump_quotas(struct rfs_fs *fs)
{
	u32 type, id;
	int ret;

	printf("usage is %scounted\n", fs->counting ? "" : "not ");
	printf("type id blocks inodes bytes-soft bytes-hard inodes-soft inodes-hard bytes-grace inodes-grace\n");
	for (type = 0; type < RFS_QUOTA_TYPES; type++) {
		for (id = 0;; id++) {
			ret = rfs_quota_next(fs, type, &id);
			if (!ret)
				ret = dump_quota(fs, type, id);
			if (ret)
				break;
		}
		if (ret != -ENOENT)
			return ret;
	}
	return 0;
}

/* Prints a node that an inode leads to: its number, and its address. */
static void dump_node(struct rfs_fs *fs, const char *what, u32 number)
{
	struct rfs_runs *runs = NULL;
	struct rfs_buf *map;
	bool used;
	u64 addr;
	int ret = rfs_node_where(fs, number, &addr, &used);

	if (!ret && used)
		ret = rfs_node_runs(fs, number, &map, &runs);
	if (ret || !used)
		printf("%s node %u, which does not exist\n", what, number);
	else if (runs)
		printf("%s node %u, which is runs\n", what, number);
	else
		printf("%s node %u at %llu\n", what, number, U(addr));
}

static int dump_inode(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 i;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (ret)
		return ret;
	printf("inode %u generation %u mode %o links %u uid %u gid %u\n", ino,
	       le32_to_cpu(di->gen), le32_to_cpu(di->mode),
	       le32_to_cpu(di->nlink), le32_to_cpu(di->uid),
	       le32_to_cpu(di->gid));
	printf("size %llu blocks %llu height %u parent %u next_orphan %u\n",
	       U(le64_to_cpu(di->size)), U(le64_to_cpu(di->blocks)),
	       di->height, le32_to_cpu(di->parent),
	       le32_to_cpu(di->next_orphan));
	printf("flags %#x\n", le32_to_cpu(di->flags));
	if (di->xattr)
		dump_node(fs, "xattr", le32_to_cpu(di->xattr));
	if (di->diff)
		dump_node(fs, "diff", le32_to_cpu(di->diff));
	if (S_ISREG(le32_to_cpu(di->mode)) && !di->height) {
		printf("blocks");
		for (i = 0; i < RFS_DIRECT; i++)
			printf(" %llu", U(rfs_ptr_flash(&di->ptr[i])));
		printf("\n");
	} else {
		for (i = 0; i < rfs_root_slots(di); i++)
			if (di->node[i])
				dump_node(fs, "below", le32_to_cpu(di->node[i]));
	}
	printf("atime %llu mtime %llu ctime %llu btime %llu\n",
	       U(le64_to_cpu(di->atime)), U(le64_to_cpu(di->mtime)),
	       U(le64_to_cpu(di->ctime)), U(le64_to_cpu(di->btime)));
	return 0;
}

/* Blocks of an inode that is no file are nodes. */
static int dump_numbers(struct rfs_fs *fs, u32 ino, u64 end)
{
	struct rfs_buf *buf;
	u64 at = 0;
	int ret = 0;

	printf("block address node\n");
	for (; at < end; at++) {
		do {
			ret = rfs_map_seek(fs, ino, at, end, true, &at);
		} while (ret == -EAGAIN);
		if (!ret && at < end)
			ret = rfs_block_get(fs, ino, ino == RFS_QUOTA_INO ?
					    RFS_QUOTA : RFS_DIR, at, &buf);
		if (ret || at == end)
			return ret;
		printf("%llu %llu %llu\n", U(at), U(buf->addr), U(buf->off));
	}
	return 0;
}

/*
 * Prints where a block is: on flash, at home, or both. The address on flash is
 * 0 if it is not there.
 */
static void dump_place(const struct rfs_ptr *ptr)
{
	printf("%llu %u %u %u", U(rfs_ptr_flash(ptr)), rfs_ptr_len(ptr),
	       rfs_ptr_wcount(ptr), le32_to_cpu(ptr->time));
	if (rfs_ptr_has_home(ptr))
		printf(" %llu", U(rfs_ptr_home(ptr)));
	printf("\n");
}

static int dump_extent(struct rfs_fs *fs, u32 ino,
		       const struct rfs_extent *extent)
{
	struct rfs_ptr ptr;
	u64 i;
	int ret = 0;

	for (i = 0; !ret && i < extent->n; i++) {
		ret = rfs_map_get(fs, ino, extent->block + i, &ptr);
		if (ret)
			break;
		printf("%llu ", U(extent->block + i));
		if (ptr.kind == RFS_PTR_PREALLOC)
			printf("reserved\n");
		else if (ptr.kind == RFS_PTR_PIECE)
			printf("pieces\n");
		else
			dump_place(&ptr);
	}
	return ret;
}

static int dump_map(struct rfs_fs *fs, u32 ino)
{
	struct rfs_extent extent;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u64 at = 0;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (ret)
		return ret;
	if (!S_ISREG(le32_to_cpu(di->mode)))
		return dump_numbers(fs, ino, 1ULL << 32);
	printf("block address bytes writes seconds%s\n", fs->home ? " home" : "");
	while (!ret) {
		do {
			ret = rfs_map_extent(fs, ino, &at, RFS_FILE_BLOCKS,
					     &extent);
		} while (ret == -EAGAIN);
		if (ret || !extent.n)
			break;
		ret = dump_extent(fs, ino, &extent);
		at = extent.block + extent.n;
	}
	return ret;
}

static int dump_dir(struct rfs_fs *fs, u32 ino)
{
	struct rfs_entry entry = { 0 };
	int ret;

	while ((ret = rfs_dir_next(fs, ino, entry.pos, &entry)) == 0)
		printf("%u %u %.*s\n", entry.ino, entry.type, entry.len,
		       entry.name);
	return ret == -ENOENT ? 0 : ret;
}

/* Prints a value as text, if it can be printed, else in hexadecimal. */
static void print_value(const u8 *value, u32 len)
{
	bool text = true;
	u32 i;

	for (i = 0; i < len; i++)
		text &= value[i] >= ' ' && value[i] < 127;
	printf(text ? " \"" : " ");
	for (i = 0; i < len; i++)
		printf(text ? "%c" : "%02x", value[i]);
	printf(text ? "\"\n" : "\n");
}

static int dump_xattrs(struct rfs_fs *fs, u32 ino)
{
	const struct rfs_xattr *x;
	u32 at = 0;
	int ret;

	while ((ret = rfs_xattr_next(fs, ino, &at, &x)) == 0 && x) {
		printf("%.*s", x->len, x->name);
		print_value(x->name + x->len, le16_to_cpu(x->value_len));
	}
	return ret;
}

static int dump_blocks(struct rfs_fs *fs, u32 nr)
{
	static u8 block[RFS_BLOCK_BYTES];
	struct rfs_oob oob;
	u32 at;

	if (nr >= fs->geo.zones || !fs->geo.oob_bytes) {
		complain("zone %u: must be below %u, on a device with page metadata",
			 nr, fs->geo.zones);
		return -ERANGE;
	}
	printf("offset type inode generation key version stamp bytes transaction writes\n");
	for (at = 0; at < fs->zone[nr].wp; at++) {
		u64 addr = (u64)nr * fs->geo.zone_blocks + at;

		if (fs->ops->read(fs->dev, addr, block, &oob)) {
			printf("%u unreadable\n", at);
			continue;
		}
		if (!rfs_oob_ok(&oob, fs->volume)) {
			printf("%u none\n", at);
			continue;
		}
		printf("%u %s%s %u %u %#llx %#llx %#llx %u %u/%u %u\n", at,
		       types[oob.type],
		       oob.flags & RFS_OOB_COPY ? "(copy)" :
		       oob.flags & RFS_OOB_FILL ? "(fill)" : "",
		       le32_to_cpu(oob.ino), le32_to_cpu(oob.gen),
		       U(le64_to_cpu(oob.off)), U(le64_to_cpu(oob.version)),
		       U(le64_to_cpu(oob.stamp)), le16_to_cpu(oob.len),
		       le16_to_cpu(oob.txn_idx), le16_to_cpu(oob.txn_cnt),
		       le16_to_cpu(oob.wcount));
	}
	return 0;
}

static const struct what {
	const char *name;
	int (*dump)(struct rfs_fs *fs);
	int (*dump_nr)(struct rfs_fs *fs, u32 nr);
} whats[] = {
	{ "super", dump_super, NULL },
	{ "zones", dump_zones, NULL },
	{ "recovery", dump_recovery, NULL },
	{ "quotas", dump_quotas, NULL },
	{ "inode", NULL, dump_inode },
	{ "map", NULL, dump_map },
	{ "dir", NULL, dump_dir },
	{ "xattr", NULL, dump_xattrs },
	{ "blocks", NULL, dump_blocks },
};

/*
 * Finds the kind of object and its number. NULL says that the arguments are
 * wrong.
 */
static const struct what *parse(int argc, char **argv, u32 *nr)
{
	const char *name = argc > 2 ? argv[2] : "super";
	unsigned long value;
	char *end;
	size_t i;

	if (argc < 2 || argc > 4)
		return NULL;
	for (i = 0; i < sizeof(whats) / sizeof(*whats); i++)
		if (!strcmp(whats[i].name, name))
			break;
	if (i == sizeof(whats) / sizeof(*whats) ||
	    !whats[i].dump_nr != (argc < 4))
		return NULL;
	if (argc == 4) {
		value = strtoul(argv[3], &end, 0);
		if (end == argv[3] || *end || value > 0xffffffff)
			return NULL;
		*nr = value;
	}
	return &whats[i];
}

int main(int argc, char **argv)
{
	const struct what *what;
	struct rfs_device device;
	const char *slow = NULL;
	struct rfs_fs *fs;
	u32 nr = 0;
	int ret;

	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc > 2 && !strcmp(argv[1], "--slow")) {
		slow = argv[2];
		argv += 2;
		argc -= 2;
	}
	what = parse(argc, argv, &nr);
	if (!what) {
		fputs(usage, stderr);
		return 1;
	}
	if (rfs_device_open(argv[1], false, &device))
		return 1;
	if (slow && rfs_slow_open(slow, false, &device)) {
		rfs_device_close(&device);
		return 1;
	}
	ret = rfs_mount(device.ops, device.dev, &device.geo, true, 0, &fs);
	if (!ret) {
		ret = what->dump ? what->dump(fs) : what->dump_nr(fs, nr);
		rfs_unmount_nosync(fs);
	}
	if (ret && ret != -ERANGE && !rfs_slow_short(&device, ret))
		complain("%s: %s", device.path, ret == -ENOENT ?
			 "there is no such inode" : rfs_error(ret));
	rfs_device_close(&device);
	return ret ? 1 : 0;
}
