// SPDX-License-Identifier: GPL-2.0-or-later
/* attributes DIR [TEST...]: extended attributes, ACLs, chattr's flags. See checks.h. */
#define _GNU_SOURCE
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "checks.h"

static bool value_is(const char *path, const char *name, const char *value)
{
	char got[PAGE] = { 0 };
	ssize_t n = lgetxattr(path, name, got, sizeof(got));

	return n == (ssize_t)strlen(value) && !memcmp(got, value, n);
}

/* Is a name in the list? */
static bool listed(const char *path, const char *name)
{
	char names[PAGE];
	ssize_t bytes = llistxattr(path, names, sizeof(names)), at = 0;

	while (at < bytes && strcmp(names + at, name))
		at += strlen(names + at) + 1;
	return at < bytes;
}

TEST(values)
{
	char data[2 * PAGE], got[2 * PAGE];
	size_t bytes;

	close(make("f", "content"));
	OK(setxattr("f", "user.a", "first", 5, XATTR_CREATE));
	CHECK(value_is("f", "user.a", "first"));
	FAILS(setxattr("f", "user.a", "x", 1, XATTR_CREATE), EEXIST);
	FAILS(setxattr("f", "user.b", "x", 1, XATTR_REPLACE), ENODATA);
	OK(setxattr("f", "user.a", "second, longer", 14, XATTR_REPLACE));
	OK(setxattr("f", "user.b", "", 0, 0));
	CHECK(value_is("f", "user.a", "second, longer") && value_is("f", "user.b", ""));
	CHECK(listed("f", "user.a") && listed("f", "user.b"));
	CHECK(getxattr("f", "user.a", NULL, 0) == 14);
	FAILS(getxattr("f", "user.a", got, 13), ERANGE);
	FAILS(getxattr("f", "user.c", got, 13), ENODATA);
	CHECK(listxattr("f", NULL, 0) >= 14);
	FAILS(listxattr("f", got, 8), ERANGE);
	OK(removexattr("f", "user.a"));
	FAILS(removexattr("f", "user.a"), ENODATA);
	CHECK(!listed("f", "user.a") && listed("f", "user.b"));
	OK(removexattr("f", "user.b"));
	for (bytes = 1; bytes < 3700; bytes = bytes * 2 + 1) {
		memset(data, 'v', bytes);
		OK(setxattr("f", "user.size", data, bytes, 0));
		CHECK(getxattr("f", "user.size", got, sizeof(got)) == (ssize_t)bytes);
		CHECK(!memcmp(got, data, bytes));
	}
	FAILS(setxattr("f", "strange.name", "x", 1, 0), EOPNOTSUPP);
	FAILS(setxattr("f", "user.", "x", 1, 0), EINVAL);
	memset(got, 'n', 260);
	memcpy(got, "user.", 5);
	got[255] = 0;
	OK(removexattr("f", "user.size"));
	OK(setxattr("f", got, "longest name", 12, 0));
	CHECK(value_is("f", got, "longest name"));
	got[255] = 'n';
	got[256] = 0;
	FAILS(setxattr("f", got, "x", 1, 0), ERANGE);
	CHECK(content_is("f", "content"));
}

TEST(many_values)
{
	char name[32], value[32], data[PAGE];
	unsigned int i;
	int why;

	touch("f");
	for (i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "user.attribute-%u", i);
		snprintf(value, sizeof(value), "value %u", i * i);
		OK(setxattr("f", name, value, strlen(value), 0));
	}
	for (i = 0; i < 60; i += 2) {
		snprintf(name, sizeof(name), "user.attribute-%u", i);
		OK(removexattr("f", name));
	}
	for (i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "user.attribute-%u", i);
		snprintf(value, sizeof(value), "value %u", i * i);
		CHECK(listed("f", name) == (i % 2 == 1));
		CHECK(i % 2 == 0 || value_is("f", name, value));
	}
	/* full is said, and changes nothing */
	memset(data, 'x', sizeof(data));
	for (i = 0; setxattr("f", "user.large", data, 100 * i, 0) == 0; i++)
		;
	why = errno;
	CHECK(why == ENOSPC || why == E2BIG);
	CHECK(getxattr("f", "user.large", data, sizeof(data)) == 100 * ((ssize_t)i - 1));
	CHECK(value_is("f", "user.attribute-59", "value 3481"));
	OK(removexattr("f", "user.large"));
}

static int without_rights(void)
{
	int bad = 0;

	bad |= (setxattr("root", "user.x", "x", 1, 0) != -1 || errno != EACCES) << 0;
	bad |= (getxattr("root", "trusted.t", NULL, 0) != -1 || errno != ENODATA) << 1;
	bad |= listed("root", "trusted.t") << 2;
	bad |= (setxattr("mine", "trusted.t", "x", 1, 0) != -1 || errno != EPERM) << 3;
	bad |= (setxattr("mine", "user.x", "x", 1, 0) != 0) << 4;
	bad |= (setxattr("mine", "security.x", "x", 1, 0) != -1 || errno != EPERM) << 5;
	bad |= !listed("root", "user.u") << 6;
	return bad;
}

TEST(namespaces)
{
	close(make("root", "r"));
	close(make("mine", "m"));
	OK(chown("mine", 1000, 1000));
	OK(setxattr("root", "trusted.t", "t", 1, 0));
	OK(setxattr("root", "user.u", "u", 1, 0));
	OK(setxattr("root", "security.s", "s", 1, 0));
	CHECK(listed("root", "trusted.t") && listed("root", "security.s"));
	CHECK(as_user(without_rights) == 0);
	/* user attributes are for files and directories */
	OK(symlink("root", "s"));
	FAILS(lsetxattr("s", "user.x", "x", 1, 0), EPERM);
	OK(lsetxattr("s", "trusted.x", "link", 4, 0));
	CHECK(value_is("s", "trusted.x", "link") && !listed("root", "trusted.x"));
	OK(mkfifo("p", 0600));
	FAILS(setxattr("p", "user.x", "x", 1, 0), EPERM);
	OK(setxattr("p", "trusted.x", "fifo", 4, 0));
	OK(mkdir("d", 0755));
	OK(setxattr("d", "user.x", "dir", 3, 0));
	CHECK(value_is("d", "user.x", "dir"));
	CHECK(of("root").st_mode == (S_IFREG | 0644) && of("d").st_mode == (S_IFDIR | 0755));
}

TEST(attribute_times)
{
	struct stat before, after;

	close(make("f", "x"));
	before = of("f");
	usleep(30000);
	OK(setxattr("f", "user.x", "x", 1, 0));
	after = of("f");
	CHECK(after.st_ctim.tv_nsec != before.st_ctim.tv_nsec);
	CHECK(after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
	/* rename and link keep them; a copy by another name has none */
	OK(rename("f", "g"));
	OK(link("g", "h"));
	CHECK(value_is("g", "user.x", "x") && value_is("h", "user.x", "x"));
	OK(unlink("g"));
	OK(unlink("h"));
	touch("f");
	CHECK(!listed("f", "user.x"));
}

/* An ACL as system.posix_acl_* has it (acl(5), linux/posix_acl_xattr.h) */
struct entry {
	unsigned short tag, perm;
	unsigned int id;
};

enum { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, GROUP = 8, MASK = 16, OTHER = 32 };
#define NOBODY (~0U)
#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

static int set_acl(const char *path, const char *name, const struct entry *entry, size_t n)
{
	unsigned char value[4 + 16 * sizeof(*entry)] = { 2 };

	memcpy(value + 4, entry, n * sizeof(*entry));
	return setxattr(path, name, value, 4 + n * sizeof(*entry), 0);
}

/* Permissions of an entry, -1 if the list has none such */
static int perm_of(const char *path, const char *name, unsigned short tag, unsigned int id)
{
	unsigned char value[4 + 16 * sizeof(struct entry)];
	ssize_t bytes = getxattr(path, name, value, sizeof(value)), at;
	struct entry entry;

	for (at = 4; at + (ssize_t)sizeof(entry) <= bytes; at += sizeof(entry)) {
		memcpy(&entry, value + at, sizeof(entry));
		if (entry.tag == tag && (id == NOBODY || entry.id == id))
			return entry.perm;
	}
	return -1;
}

static int read_shared(void)
{
	int bad = 0;

	bad |= (access("shared", R_OK) != 0) << 0;
	bad |= (open("shared", O_RDONLY) < 0) << 1;
	bad |= (open("shared", O_WRONLY) != -1 || errno != EACCES) << 2;
	bad |= (open("closed", O_RDONLY) != -1 || errno != EACCES) << 3;
	return bad;
}

static const struct entry one_user[] = {
	{ USER_OBJ, 6, NOBODY }, { USER, 4, 1000 }, { GROUP_OBJ, 0, NOBODY },
	{ MASK, 4, NOBODY }, { OTHER, 0, NOBODY },
};

TEST(access_lists)
{
	struct entry plain[] = {
		{ USER_OBJ, 6, NOBODY }, { GROUP_OBJ, 4, NOBODY }, { OTHER, 4, NOBODY },
	};
	struct entry wrong[] = { { USER_OBJ, 6, NOBODY }, { OTHER, 0, NOBODY } };
	struct entry list[5];

	OK(chmod(".", 0755));
	close(make("shared", "s"));
	close(make("closed", "c"));
	OK(chmod("shared", 0600));
	OK(chmod("closed", 0600));
	CHECK(as_user(read_shared) != 0);
	OK(set_acl("shared", ACCESS, one_user, 5));
	CHECK((of("shared").st_mode & 0777) == 0640);	/* the group's bits are the mask */
	CHECK(listed("shared", ACCESS));
	CHECK(as_user(read_shared) == 0);
	/* chmod changes the mask, and so what the list grants */
	OK(chmod("shared", 0600));
	CHECK(perm_of("shared", ACCESS, MASK, NOBODY) == 0);
	CHECK(perm_of("shared", ACCESS, USER, 1000) == 4);
	CHECK(as_user(read_shared) != 0);
	OK(chmod("shared", 0640));
	CHECK(as_user(read_shared) == 0);
	/* another entry for the owner is another mode */
	memcpy(list, one_user, sizeof(list));
	list[0].perm = 7;
	list[4].perm = 1;
	OK(set_acl("shared", ACCESS, list, 5));
	CHECK((of("shared").st_mode & 0777) == 0741);
	/* one that says no more than the mode is no list */
	OK(set_acl("shared", ACCESS, plain, 3));
	CHECK((of("shared").st_mode & 0777) == 0644 && !listed("shared", ACCESS));
	OK(set_acl("closed", ACCESS, plain, 3));
	CHECK((of("closed").st_mode & 0777) == 0644 && !listed("closed", ACCESS));
	OK(set_acl("shared", ACCESS, one_user, 5));
	OK(removexattr("shared", ACCESS));
	CHECK(!listed("shared", ACCESS) && (of("shared").st_mode & 0777) == 0640);
	FAILS(set_acl("shared", ACCESS, wrong, 2), EINVAL);
	FAILS(set_acl("shared", DEFAULT, one_user, 5), EACCES);
	OK(symlink("shared", "s"));
	FAILS(lsetxattr("s", ACCESS, "\2\0\0\0", 4, 0), EOPNOTSUPP);
}

TEST(default_lists)
{
	struct entry list[] = {
		{ USER_OBJ, 7, NOBODY }, { USER, 7, 1000 }, { GROUP_OBJ, 5, NOBODY },
		{ MASK, 7, NOBODY }, { OTHER, 0, NOBODY },
	};
	int fd;

	OK(mkdir("d", 0755));
	OK(set_acl("d", DEFAULT, list, 5));
	CHECK(of("d").st_mode == (S_IFDIR | 0755) && listed("d", DEFAULT) && !listed("d", ACCESS));
	umask(077);	/* counts where there is no default list */
	fd = open("d/f", O_CREAT | O_RDWR, 0664);
	CHECK((of("d/f").st_mode & 0777) == 0660);
	CHECK(perm_of("d/f", ACCESS, USER, 1000) == 7);
	CHECK(perm_of("d/f", ACCESS, MASK, NOBODY) == 6);
	CHECK(!listed("d/f", DEFAULT));
	close(fd);
	OK(mkdir("d/sub", 0777));
	CHECK((of("d/sub").st_mode & 0777) == 0770);
	CHECK(perm_of("d/sub", DEFAULT, USER, 1000) == 7);
	CHECK(perm_of("d/sub", ACCESS, MASK, NOBODY) == 7);
	OK(mknod("d/fifo", S_IFIFO | 0666, 0));
	CHECK((of("d/fifo").st_mode & 0777) == 0660 && listed("d/fifo", ACCESS));
	OK(symlink("f", "d/s"));
	fd = open("d", O_TMPFILE | O_RDWR, 0666);
	if (has(fd)) {
		CHECK(fgetxattr(fd, ACCESS, NULL, 0) == 4 + 5 * 8);
		close(fd);
	}
	fd = open("plain", O_CREAT | O_RDWR, 0666);
	CHECK((of("plain").st_mode & 0777) == 0600 && !listed("plain", ACCESS));
	close(fd);
	umask(0);
	OK(removexattr("d", DEFAULT));
	fd = open("d/g", O_CREAT | O_RDWR, 0664);
	CHECK((of("d/g").st_mode & 0777) == 0664 && !listed("d/g", ACCESS));
	close(fd);
}

static int flags_of(const char *path)
{
	int fd = open(path, O_RDONLY), flags = -1;

	OK(ioctl(fd, FS_IOC_GETFLAGS, &flags));
	close(fd);
	return flags;
}

#define SHOWN (FS_SYNC_FL | FS_IMMUTABLE_FL | FS_APPEND_FL | FS_NODUMP_FL | FS_NOATIME_FL | \
	       FS_DIRSYNC_FL)

/* Those that the file system has for itself stay. */
static int set_flags(const char *path, int flags)
{
	int fd = open(path, O_RDONLY), old = 0, ret, why;

	ret = ioctl(fd, FS_IOC_GETFLAGS, &old);
	flags |= old & ~SHOWN;
	if (!ret)
		ret = ioctl(fd, FS_IOC_SETFLAGS, &flags);
	why = errno;
	close(fd);
	errno = why;
	return ret;
}

static int set_flags_as_user(void)
{
	int bad = 0;

	bad |= (set_flags("mine", FS_NODUMP_FL) != 0) << 0;
	bad |= (set_flags("mine", FS_IMMUTABLE_FL) != -1 || errno != EPERM) << 1;
	bad |= (set_flags("root", FS_NODUMP_FL) != -1 ||
		(errno != EACCES && errno != EPERM)) << 2;
	return bad;
}

TEST(flags)
{
	struct statx stx;
	int fd;

	OK(chmod(".", 0777));
	close(make("f", "0123"));
	close(make("mine", "m"));
	OK(chown("mine", 1000, 1000));
	close(make("root", "r"));
	CHECK((flags_of("f") & SHOWN) == 0);
	OK(set_flags("f", FS_APPEND_FL | FS_NODUMP_FL));
	CHECK((flags_of("f") & SHOWN) == (FS_APPEND_FL | FS_NODUMP_FL));
	FAILS(open("f", O_WRONLY), EPERM);
	FAILS(open("f", O_WRONLY | O_TRUNC), EPERM);
	FAILS(truncate("f", 0), EPERM);
	FAILS(unlink("f"), EPERM);
	FAILS(rename("f", "g"), EPERM);
	FAILS(link("f", "g"), EPERM);
	FAILS(chmod("f", 0600), EPERM);
	FAILS(setxattr("f", "user.x", "x", 1, 0), EPERM);
	fd = open("f", O_WRONLY | O_APPEND);
	CHECK(write(fd, "4", 1) == 1);
	close(fd);
	CHECK(content_is("f", "01234"));
	OK(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, &stx));
	CHECK(stx.stx_attributes_mask & STATX_ATTR_APPEND);
	CHECK(stx.stx_attributes & STATX_ATTR_APPEND && stx.stx_attributes & STATX_ATTR_NODUMP);
	CHECK(!(stx.stx_attributes & STATX_ATTR_IMMUTABLE));
	OK(set_flags("f", FS_IMMUTABLE_FL));
	FAILS(open("f", O_WRONLY | O_APPEND), EPERM);
	FAILS(unlink("f"), EPERM);
	FAILS(utimensat(AT_FDCWD, "f", NULL, 0), EPERM);
	CHECK(content_is("f", "01234"));
	OK(set_flags("f", 0));
	OK(truncate("f", 2));
	OK(unlink("f"));
	/* one that is not kept is refused */
	CHECK((set_flags("root", FS_SECRM_FL) == -1 && errno == EOPNOTSUPP) ||
	      flags_of("root") & FS_SECRM_FL);
	CHECK(as_user(set_flags_as_user) == 0);
	/* a directory */
	OK(mkdir("d", 0755));
	touch("d/old");
	OK(set_flags("d", FS_APPEND_FL));
	touch("d/new");
	FAILS(unlink("d/old"), EPERM);
	FAILS(rename("d/old", "d/x"), EPERM);
	OK(set_flags("d", FS_IMMUTABLE_FL));
	FAILS(open("d/newer", O_CREAT | O_RDWR, 0644), EPERM);
	CHECK(content_is("d/new", ""));
	OK(set_flags("d", FS_NODUMP_FL | FS_NOATIME_FL | FS_SYNC_FL | FS_DIRSYNC_FL));
	touch("d/heir");
	OK(mkdir("d/sub", 0755));
	CHECK((flags_of("d/heir") & SHOWN) == (FS_NODUMP_FL | FS_NOATIME_FL | FS_SYNC_FL));
	CHECK((flags_of("d/sub") & SHOWN) == (flags_of("d") & SHOWN));
	OK(rename("d/heir", "d/sub/heir"));
	OK(unlink("d/sub/heir"));
}

TEST(noatime)
{
	struct stat before;

	close(make("f", "x"));
	before = of("f");
	usleep(30000);
	OK(set_flags("f", FS_NOATIME_FL));
	CHECK(content_is("f", "x"));
	CHECK(of("f").st_atim.tv_nsec == before.st_atim.tv_nsec);
	OK(set_flags("f", 0));
	CHECK(content_is("f", "x"));	/* relatime: it is not after the mtime yet */
	CHECK(of("f").st_atim.tv_nsec != before.st_atim.tv_nsec);
}

TEST(birth)
{
	struct statx first, then;

	close(make("f", "x"));
	OK(statx(AT_FDCWD, "f", 0, STATX_BTIME, &first));
	CHECK(first.stx_mask & STATX_BTIME && first.stx_btime.tv_sec > 1700000000);
	usleep(30000);
	OK(chmod("f", 0600));
	OK(rename("f", "g"));
	OK(statx(AT_FDCWD, "g", 0, STATX_BTIME | STATX_DIOALIGN, &then));
	CHECK(!memcmp(&first.stx_btime, &then.stx_btime, sizeof(first.stx_btime)));
	CHECK(!(then.stx_mask & STATX_DIOALIGN) || then.stx_dio_offset_align <= PAGE);
}
