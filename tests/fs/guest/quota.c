// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Quotas as quotactl(2) has them, of a volume mounted with usrquota and grpquota: usage is what
 * files have, limits hold wherever blocks and inodes are taken, grace ends.
 *
 *	quota DIR [TEST...]
 *
 * `before` and `after`, `shut_down` and `was_shut_down`, are two halves: between them the power is
 * cut, or the volume is mounted again.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>

#include "checks.h"

#define USER 1000 /* of as_user() */
#define OTHER 1234
#define KEPT 4321
#define TEAM 77

/* All that a command says, of the volume that the test works in */
static long control(int cmd, int type, uint32_t id, void *addr)
{
	int fd = open(".", O_RDONLY);
	long ret = syscall(SYS_quotactl_fd, fd, QCMD(cmd, type), id, addr);
	int error = errno;

	close(fd);
	errno = error;
	return ret;
}

static struct if_dqblk get(int type, uint32_t id)
{
	struct if_dqblk q = { 0 };

	OK(control(Q_GETQUOTA, type, id, &q));
	return q;
}

/* Limits: blocks of 4 KiB, inodes; more than there is now, but for 0: none */
static void limit(int type, uint32_t id, uint64_t blocks, uint64_t inodes)
{
	struct if_dqblk now = get(type, id), q = { .dqb_valid = QIF_LIMITS };

	if (blocks)
		q.dqb_bhardlimit = now.dqb_curspace / 1024 + blocks * 4;
	if (inodes)
		q.dqb_ihardlimit = now.dqb_curinodes + inodes;
	OK(control(Q_SETQUOTA, type, id, &q));
}

/* Blocks of the drive that a file has, in bytes */
static uint64_t space(const char *name)
{
	return of(name).st_blocks * 512ULL;
}

static void append(int fd, int blocks)
{
	fill(fd, lseek(fd, 0, SEEK_END), (size_t)blocks * PAGE, 7);
}

TEST(usage)
{
	struct if_dqblk before = get(USRQUOTA, USER), q;
	struct if_dqblk team = get(GRPQUOTA, TEAM);
	int fd = make("f", "");

	OK(fchown(fd, USER, TEAM));
	q = get(USRQUOTA, USER);
	CHECK(q.dqb_curinodes == before.dqb_curinodes + 1);
	append(fd, 50);
	/* what is not written yet counts already */
	q = get(USRQUOTA, USER);
	CHECK(q.dqb_curspace >= before.dqb_curspace + 50 * PAGE);
	CHECK(q.dqb_curspace == before.dqb_curspace + space("f"));
	OK(fsync(fd));
	q = get(USRQUOTA, USER);
	CHECK(q.dqb_curspace == before.dqb_curspace + space("f"));
	q = get(GRPQUOTA, TEAM);
	CHECK(q.dqb_curspace == team.dqb_curspace + space("f"));
	/* dirty pages go along */
	append(fd, 20);
	OK(fchown(fd, OTHER, -1));
	CHECK(get(USRQUOTA, USER).dqb_curspace == before.dqb_curspace);
	CHECK(get(USRQUOTA, OTHER).dqb_curspace == space("f"));
	OK(fsync(fd));
	CHECK(get(USRQUOTA, OTHER).dqb_curspace == space("f"));
	q = get(GRPQUOTA, TEAM);
	CHECK(q.dqb_curspace == team.dqb_curspace + space("f"));
	OK(ftruncate(fd, 3 * PAGE));
	CHECK(get(USRQUOTA, OTHER).dqb_curspace == space("f"));
	OK(unlink("f"));
	CHECK(get(USRQUOTA, OTHER).dqb_curinodes == 1); /* it is open */
	close(fd);
	CHECK(get(USRQUOTA, OTHER).dqb_curinodes == 0);
	CHECK(get(USRQUOTA, OTHER).dqb_curspace == 0);
	q = get(GRPQUOTA, TEAM);
	CHECK(q.dqb_curspace == team.dqb_curspace);
	/* the group is the directory's */
	OK(mkdir("d", 0777));
	OK(chown("d", 0, TEAM));
	OK(chmod("d", 02777));
	team = get(GRPQUOTA, TEAM);
	touch("d/f");
	CHECK(get(GRPQUOTA, TEAM).dqb_curinodes == team.dqb_curinodes + 1);
}

static int write_until(void)
{
	char data[PAGE] = { 1 };
	int fd = open("own/f", O_RDWR | O_CREAT, 0644), n = 0;

	while (n < 1000 && write(fd, data, PAGE) == PAGE)
		n++;
	return fd < 0 || errno != EDQUOT || n < 20 || n > 30;
}

static int map_too_much(void)
{
	int fd = open("own/m", O_RDWR | O_CREAT, 0644);
	char *map;

	if (fd < 0 || ftruncate(fd, 100 * PAGE))
		return 1;
	map = mmap(NULL, 100 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (int i = 0; i < 100; i++)
		map[i * PAGE] = 1;
	return 0;
}

static int allocate_too_much(void)
{
	int fd = open("own/a", O_RDWR | O_CREAT, 0644);

	return fd < 0 || fallocate(fd, 0, 0, 100 * PAGE) != -1 || errno != EDQUOT ||
	       fallocate(fd, 0, 0, PAGE);
}

/* The user may give a file to a group of his; that has no room. */
static int give_away(void)
{
	struct stat st;

	if (chown("own/a", -1, TEAM) != -1 || errno != EDQUOT)
		return 1;
	/* a change of owner takes this away, but not one that is refused */
	return stat("own/a", &st) || (st.st_mode & 07777) != 04755 ? 2 : 0;
}

/* An ACL with a user of its own (linux/posix_acl_xattr.h) */
static int set_acl(const char *path)
{
	static const struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} entry[5];
	} acl = { 2, { { 1, 7, -1 }, { 2, 5, OTHER }, { 4, 5, -1 }, { 16, 5, -1 },
		       { 32, 5, -1 } } };

	return setxattr(path, "system.posix_acl_access", &acl, sizeof(acl), 0);
}

static int own_dir(void)
{
	if (mkdir("own", 0777) || chown("own", USER, USER))
		return 1;
	touch("own/.first");
	sync(); /* a directory's own blocks may be counted late, and are never refused */
	return 0;
}

TEST(blocks)
{
	uint64_t most;
	pid_t child;
	int fd, status;

	CHECK(!own_dir());
	limit(USRQUOTA, USER, 30, 0);
	most = get(USRQUOTA, USER).dqb_bhardlimit * 1024;
	CHECK(as_user(write_until) == 0);
	CHECK(get(USRQUOTA, USER).dqb_curspace <= most);
	sync();
	CHECK(get(USRQUOTA, USER).dqb_curspace <= most);
	/* what there is can be overwritten */
	fd = open("own/f", O_RDWR);
	fill(fd, 0, 10 * PAGE, 9);
	OK(fsync(fd));
	OK(unlink("own/f"));
	close(fd);
	child = fork();
	if (!child) {
		if (setgid(USER) || setuid(USER))
			_exit(99);
		_exit(map_too_much());
	}
	waitpid(child, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	CHECK(get(USRQUOTA, USER).dqb_curspace <= most);
	OK(unlink("own/m"));
	CHECK(as_user(allocate_too_much) == 0);
	CHECK(get(USRQUOTA, USER).dqb_curspace <= most);
	/* of a group */
	limit(USRQUOTA, USER, 0, 0);
	limit(GRPQUOTA, TEAM, 0, 1);
	touch("one");
	OK(chown("one", 0, TEAM));
	OK(set_acl("own/a"));
	OK(chmod("own/a", 04755));
	child = fork();
	if (!child) {
		gid_t team = TEAM;

		if (setgroups(1, &team) || setgid(USER) || setuid(USER))
			_exit(99);
		_exit(give_away());
	}
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(of("own/a").st_gid == USER);
	/* root may */
	OK(chown("own/a", -1, TEAM));
	CHECK((of("own/a").st_mode & 07777) == 0755);
	limit(GRPQUOTA, TEAM, 0, 0);
}

static int all_kinds(void)
{
	int fd;

	if (chdir("own") || open("1", O_WRONLY | O_CREAT, 0644) < 0 || mkdir("2", 0755))
		return 1;
	errno = 0;
	fd = open("3", O_WRONLY | O_CREAT, 0644);
	if (fd >= 0 || errno != EDQUOT || access("3", F_OK) == 0)
		return 2;
	if (mkdir("3", 0755) != -1 || errno != EDQUOT)
		return 3;
	if (symlink("x", "3") != -1 || errno != EDQUOT)
		return 4;
	if (mkfifo("3", 0644) != -1 || errno != EDQUOT)
		return 5;
	fd = open(".", O_RDWR | O_TMPFILE, 0644);
	if (fd >= 0 || errno != EDQUOT)
		return 6;
	if (link("1", "3") || rename("3", "4"))
		return 7;
	if (rmdir("2") || symlink("x", "5"))
		return 8;
	return 0;
}

TEST(inodes)
{
	CHECK(!own_dir());
	limit(USRQUOTA, USER, 0, 2);
	CHECK(as_user(all_kinds) == 0);
	touch("own/roots");
	OK(chown("own/roots", USER, -1));
	limit(USRQUOTA, USER, 0, 0);
}

static int one_more(void)
{
	char data[PAGE] = { 1 };
	int fd = open("own/f", O_RDWR | O_CREAT | O_APPEND, 0644);

	if (fd < 0)
		return errno;
	if (write(fd, data, PAGE) == PAGE)
		return fsync(fd) ? 100 : 0;
	return errno;
}

static int another(void)
{
	return open("own/g", O_RDWR | O_CREAT, 0644) < 0 ? errno : 0;
}

TEST(grace)
{
	struct if_dqblk q = { .dqb_valid = QIF_LIMITS }, now;
	struct if_dqinfo old, info = { .dqi_bgrace = 2, .dqi_igrace = 3,
				       .dqi_valid = IIF_BGRACE | IIF_IGRACE };

	CHECK(!own_dir());
	OK(control(Q_GETINFO, USRQUOTA, 0, &old));
	CHECK(old.dqi_bgrace == 7 * 24 * 3600 && old.dqi_igrace == 7 * 24 * 3600);
	CHECK(old.dqi_flags & DQF_SYS_FILE);
	OK(control(Q_SETINFO, USRQUOTA, 0, &info));
	OK(control(Q_GETINFO, USRQUOTA, 0, &old));
	CHECK(old.dqi_bgrace == 2 && old.dqi_igrace == 3);
	now = get(USRQUOTA, USER);
	q.dqb_bsoftlimit = now.dqb_curspace / 1024 + 4;
	q.dqb_isoftlimit = now.dqb_curinodes + 1;
	OK(control(Q_SETQUOTA, USRQUOTA, USER, &q));
	CHECK(as_user(one_more) == 0);
	CHECK(get(USRQUOTA, USER).dqb_btime == 0);
	CHECK(as_user(one_more) == 0);
	CHECK(as_user(another) == 0);
	now = get(USRQUOTA, USER);
	CHECK(now.dqb_btime > (uint64_t)time(NULL) && now.dqb_btime <= (uint64_t)time(NULL) + 2);
	CHECK(now.dqb_itime > (uint64_t)time(NULL));
	CHECK(as_user(one_more) == 0);
	sleep(5);
	CHECK(as_user(one_more) == EDQUOT);
	OK(unlink("own/g"));
	CHECK(as_user(another) == 0);
	OK(unlink("own/f"));
	CHECK(get(USRQUOTA, USER).dqb_btime == 0);
	limit(USRQUOTA, USER, 0, 0);
	info.dqi_bgrace = info.dqi_igrace = 7 * 24 * 3600;
	OK(control(Q_SETINFO, USRQUOTA, 0, &info));
}

static int ask(void)
{
	struct if_dqblk q = { .dqb_valid = QIF_LIMITS };

	if (control(Q_GETQUOTA, USRQUOTA, USER, &q))
		return 1;
	if (control(Q_GETQUOTA, USRQUOTA, OTHER, &q) != -1 || errno != EPERM)
		return 2;
	if (control(Q_SETQUOTA, USRQUOTA, USER, &q) != -1 || errno != EPERM)
		return 3;
	return 0;
}

TEST(commands)
{
	static const uint32_t ids[] = { 5000000, 5000001, 5000100, 4000000000U };
	struct if_nextdqblk next;
	struct if_dqinfo info;
	uint32_t format = 0, id;
	struct if_dqblk q = { 0 };
	unsigned int i;

	CHECK(as_user(ask) == 0);
	OK(control(Q_GETFMT, USRQUOTA, 0, &format));
	CHECK(format == QFMT_VFS_V1);
	OK(control(Q_SYNC, USRQUOTA, 0, NULL));
	for (i = 0; i < 4; i++)
		limit(GRPQUOTA, ids[3 - i], 1, 1);
	for (i = 0, id = ids[0]; i < 4; i++) {
		OK(control(Q_GETNEXTQUOTA, GRPQUOTA, id, &next));
		CHECK(next.dqb_id == ids[i] && next.dqb_ihardlimit == 1);
		CHECK(next.dqb_bhardlimit == 4);
		id = next.dqb_id + 1;
	}
	FAILS(control(Q_GETNEXTQUOTA, GRPQUOTA, id, &next), ENOENT);
	/* another type of quota than is on */
	CHECK(control(Q_GETINFO, PRJQUOTA, 0, &info) == -1);
	/* turned off, limits are kept and not enforced */
	CHECK(!own_dir());
	limit(USRQUOTA, USER, 0, 1);
	CHECK(as_user(another) == 0);
	OK(unlink("own/g"));
	touch("own/h");
	OK(chown("own/h", USER, -1));
	CHECK(as_user(another) == EDQUOT);
	OK(control(Q_QUOTAOFF, USRQUOTA, 0, NULL));
	CHECK(as_user(another) == 0);
	OK(control(Q_QUOTAON, USRQUOTA, QFMT_VFS_V1, "ignored"));
	OK(unlink("own/g"));
	CHECK(as_user(another) == EDQUOT);
	limit(USRQUOTA, USER, 0, 0);
	q = get(USRQUOTA, USER);
	CHECK(q.dqb_bhardlimit == 0 && q.dqb_ihardlimit == 0);
}

/* What Linux answers also where nothing can be written: it does not Q_GETQUOTA. */
static struct fs_disk_quota xget(int type, uint32_t id)
{
	struct fs_disk_quota q = { 0 };

	OK(control(Q_XGETQUOTA, type, id, &q));
	return q;
}

/* As quota's tools do on XFS, and with their patch on RFS: all timers, of root */
TEST(timers)
{
	struct fs_disk_quota q = { .d_version = FS_DQUOT_VERSION, .d_flags = FS_USER_QUOTA,
				   .d_fieldmask = FS_DQ_TIMER_MASK, .d_btimer = 5, .d_itimer = 6 };
	struct if_dqinfo info;

	OK(control(Q_XSETQLIM, USRQUOTA, 0, &q));
	OK(control(Q_GETINFO, USRQUOTA, 0, &info));
	CHECK(info.dqi_bgrace == 5 && info.dqi_igrace == 6);
	q.d_rtbtimer = 7;	/* there is no realtime device */
	FAILS(control(Q_XSETQLIM, USRQUOTA, 0, &q), EINVAL);
	FAILS(control(Q_XSETQLIM, USRQUOTA, OTHER, &q), EINVAL);
	q.d_rtbtimer = 0;
	OK(control(Q_XSETQLIM, USRQUOTA, OTHER, &q));
	info.dqi_bgrace = info.dqi_igrace = 7 * 24 * 3600;
	info.dqi_valid = IIF_BGRACE | IIF_IGRACE;
	OK(control(Q_SETINFO, USRQUOTA, 0, &info));
}

/* Who changes a limit waits until it is thawed; reading goes on. */
TEST(frozen)
{
	struct if_dqblk q = { .dqb_ihardlimit = 7, .dqb_valid = QIF_ILIMITS };
	int fd = open(".", O_RDONLY), status;
	pid_t child;

	OK(ioctl(fd, FIFREEZE, 0));
	child = fork();
	if (!child)
		_exit(control(Q_SETQUOTA, USRQUOTA, OTHER, &q) != 0);
	sleep(1);
	CHECK(waitpid(child, &status, WNOHANG) == 0);
	CHECK(xget(USRQUOTA, OTHER).d_ino_hardlimit == 0);
	OK(ioctl(fd, FITHAW, 0));
	CHECK(waitpid(child, &status, 0) == child && !status);
	CHECK(get(USRQUOTA, OTHER).dqb_ihardlimit == 7);
	q.dqb_ihardlimit = 0;
	OK(control(Q_SETQUOTA, USRQUOTA, OTHER, &q));
	close(fd);
}

/* The volume is mounted where the directory above this one is. */
static int again(unsigned long flags)
{
	return mount(NULL, "..", NULL, MS_REMOUNT | flags, "usrquota,grpquota");
}

TEST(read_only)
{
	struct if_dqblk q = { .dqb_ihardlimit = 5, .dqb_valid = QIF_ILIMITS };
	struct if_dqinfo info = { .dqi_bgrace = 2, .dqi_valid = IIF_BGRACE };
	uint64_t used;
	int fd = make("f", "");

	append(fd, 20);
	OK(fchown(fd, OTHER, OTHER));
	close(fd);
	used = get(USRQUOTA, OTHER).dqb_curspace;
	CHECK(used >= 20 * PAGE);
	OK(again(MS_RDONLY));
	CHECK(xget(USRQUOTA, OTHER).d_bcount * 512 == used);
	FAILS(control(Q_SETQUOTA, USRQUOTA, OTHER, &q), EROFS);
	FAILS(control(Q_SETINFO, USRQUOTA, 0, &info), EROFS);
	OK(again(0));
	CHECK(get(USRQUOTA, OTHER).dqb_curspace == used);
	OK(control(Q_SETQUOTA, USRQUOTA, OTHER, &q));
	CHECK(get(USRQUOTA, OTHER).dqb_ihardlimit == 5);
	q.dqb_ihardlimit = 0;
	OK(control(Q_SETQUOTA, USRQUOTA, OTHER, &q));
	OK(unlink("f"));
}

/* The drive takes no writes any more. */
TEST(shut_down)
{
	struct if_dqblk q = { .dqb_ihardlimit = 5, .dqb_valid = QIF_ILIMITS };
	unsigned int how = 2; /* at once */
	int fd = open(".", O_RDONLY);

	OK(control(Q_SETQUOTA, USRQUOTA, OTHER, &q));
	OK(control(Q_SYNC, USRQUOTA, 0, NULL));
	OK(ioctl(fd, _IOR('X', 125, unsigned int), &how));
	q.dqb_ihardlimit = 6;
	FAILS(control(Q_SETQUOTA, USRQUOTA, OTHER, &q), EIO);
	CHECK(xget(USRQUOTA, OTHER).d_ino_hardlimit == 5);
	close(fd);
}

TEST(was_shut_down)
{
	CHECK(get(USRQUOTA, OTHER).dqb_ihardlimit == 5);
}

/* Limits, and two files of which one is promised, when the power is cut. */
TEST(before)
{
	int fd = make("promised", "");

	append(fd, 30);
	OK(fchown(fd, KEPT, KEPT));
	limit(USRQUOTA, KEPT, 100, 10);
	OK(fsync(fd));
	close(fd);
	fd = make("other", "");
	OK(fchown(fd, KEPT, KEPT));
	append(fd, 40);
}

TEST(after)
{
	struct if_dqblk q = get(USRQUOTA, KEPT), team = get(GRPQUOTA, KEPT);
	uint64_t bytes = space("../before/promised");

	CHECK(bytes >= 30 * PAGE);
	if (exists("../before/other"))
		bytes += space("../before/other");
	CHECK(q.dqb_curspace == bytes && team.dqb_curspace == bytes);
	CHECK(q.dqb_curinodes == 1U + exists("../before/other"));
	CHECK(q.dqb_ihardlimit == 11 && q.dqb_bhardlimit > 400);
	CHECK(team.dqb_ihardlimit == 0);
}
