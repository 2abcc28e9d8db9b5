// SPDX-License-Identifier: GPL-2.0-or-later
/* posix DIR [TEST...]: whether a file system does what POSIX and Linux say. See checks.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <setjmp.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "checks.h"

TEST(open_flags)
{
	int fd;

	umask(022);
	fd = open("a", O_RDWR | O_CREAT | O_EXCL, 0666);
	CHECK(fd >= 0);
	close(fd);
	CHECK((of("a").st_mode & 07777) == 0644);
	umask(0);
	FAILS(open("a", O_RDWR | O_CREAT | O_EXCL, 0666), EEXIST);
	FAILS(open("absent", O_RDONLY), ENOENT);
	FAILS(open("absent/b", O_RDWR | O_CREAT, 0644), ENOENT);
	FAILS(open("a/b", O_RDWR | O_CREAT, 0644), ENOTDIR);
	FAILS(open("a", O_RDONLY | O_DIRECTORY), ENOTDIR);
	FAILS(open(".", O_WRONLY), EISDIR);
	OK(symlink("a", "s"));
	FAILS(open("s", O_RDONLY | O_NOFOLLOW), ELOOP);
	FAILS(open("s", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
	fd = make("a", "old");
	close(fd);
	fd = open("s", O_WRONLY | O_TRUNC);
	CHECK(of("a").st_size == 0);
	close(fd);
	OK(symlink("made", "dangling"));
	FAILS(open("dangling", O_RDONLY), ENOENT);
	close(open("dangling", O_RDWR | O_CREAT, 0600));
	CHECK((of("made").st_mode & 07777) == 0600);
}

TEST(names)
{
	char name[258];
	int c;

	memset(name, 'n', sizeof(name));
	name[255] = 0;
	touch(name);
	CHECK(exists(name));
	name[254] = 'm';
	CHECK(!exists(name));
	name[255] = 'n';
	name[256] = 0;
	FAILS(open(name, O_CREAT | O_RDWR, 0644), ENAMETOOLONG);
	FAILS(mkdir(name, 0755), ENAMETOOLONG);
	FAILS(symlink("x", name), ENAMETOOLONG);
	for (c = 1; c < 256; c++) {
		snprintf(name, sizeof(name), "%c%s", c, c == '.' ? "dot" : "");
		if (c != '/')
			touch(name);
	}
	for (c = 1; c < 256; c++) {
		snprintf(name, sizeof(name), "%c%s", c, c == '.' ? "dot" : "");
		if (c != '/')
			OK(unlink(name));
	}
	FAILS(mkdir(".", 0755), EEXIST);
	FAILS(mkdir("..", 0755), EEXIST);
}

TEST(stat_fields)
{
	struct stat st, other;
	int fd;

	fd = make("f", "twelve bytes");
	OK(fstat(fd, &st));
	CHECK(S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_size == 12);
	CHECK(st.st_uid == 0 && st.st_gid == 0);
	close(fd);
	touch("g");
	other = of("g");
	CHECK(other.st_ino != st.st_ino && other.st_dev == st.st_dev);
	other = of("f");
	CHECK(other.st_ino == st.st_ino);
	fd = open("f", O_RDWR);
	fill(fd, 0, 100 * PAGE, 1);
	OK(fsync(fd));
	OK(fstat(fd, &st));
	CHECK(st.st_blocks >= 100 * 8 && st.st_blocks <= 120 * 8);
	OK(ftruncate(fd, 0));
	OK(fsync(fd));
	OK(fstat(fd, &st));
	CHECK(st.st_blocks <= 8);
	close(fd);
}

TEST(links)
{
	char got[16];
	int fd = make("a", "shared");

	OK(link("a", "b"));
	CHECK(of("a").st_nlink == 2 && of("a").st_ino == of("b").st_ino);
	FAILS(link("a", "b"), EEXIST);
	FAILS(link("absent", "c"), ENOENT);
	OK(mkdir("d", 0755));
	FAILS(link("d", "e"), EPERM);
	OK(link("a", "d/c"));
	OK(unlink("a"));
	CHECK(of("b").st_nlink == 2);
	CHECK(content_is("d/c", "shared"));
	OK(unlink("b"));
	OK(unlink("d/c"));
	/* without a name it lives as long as it is open */
	CHECK(pread(fd, got, sizeof(got), 0) == 6 && !memcmp(got, "shared", 6));
	fill(fd, 0, 10 * PAGE, 7);
	OK(fsync(fd));
	CHECK(all(fd, 0, 10 * PAGE, 7));
	close(fd);
	OK(symlink("x", "s"));
	OK(linkat(AT_FDCWD, "s", AT_FDCWD, "t", 0));
	CHECK(S_ISLNK(of("t").st_mode) && of("t").st_nlink == 2);
}

TEST(symlinks)
{
	char target[PAGE], got[PAGE + 1];
	ssize_t n;
	size_t bytes;

	for (bytes = 1; bytes < PAGE; bytes = bytes * 3 + 1) {
		memset(target, 't', bytes);
		target[bytes] = 0;
		OK(symlink(target, "s"));
		n = readlink("s", got, sizeof(got));
		CHECK(n == (ssize_t)bytes && !memcmp(got, target, bytes));
		CHECK(of("s").st_size == (off_t)bytes);
		OK(unlink("s"));
	}
	FAILS(symlink("", "s"), ENOENT);
	OK(symlink("loop2", "loop1"));
	OK(symlink("loop1", "loop2"));
	FAILS(open("loop1", O_RDONLY), ELOOP);
	FAILS(symlink("x", "loop1"), EEXIST);
	touch("f");
	FAILS(readlink("f", got, sizeof(got)), EINVAL);
	OK(mkdir("d", 0755));
	OK(symlink("../f", "d/up"));
	OK(symlink("d", "dir"));
	CHECK(access("dir/up", F_OK) == 0);
}

TEST(directories)
{
	nlink_t before = of(".").st_nlink;
	struct stat st;
	int fd;

	OK(mkdir("d", 0750));
	CHECK(S_ISDIR(of("d").st_mode) && (of("d").st_mode & 07777) == 0750);
	CHECK(of("d").st_nlink == 2 && of(".").st_nlink == before + 1);
	FAILS(mkdir("d", 0755), EEXIST);
	OK(mkdir("d/e", 0755));
	CHECK(of("d").st_nlink == 3);
	CHECK(of("d/e/..").st_ino == of("d").st_ino && of("d/.").st_ino == of("d").st_ino);
	FAILS(rmdir("d"), ENOTEMPTY);
	FAILS(rmdir("d/e/."), EINVAL);
	FAILS(unlink("d/e"), EISDIR);
	touch("d/f");
	FAILS(rmdir("d/f"), ENOTDIR);
	OK(rmdir("d/e"));
	OK(unlink("d/f"));
	CHECK(of("d").st_nlink == 2);
	/* one that is open, and the current one, can be removed */
	fd = open("d", O_RDONLY | O_DIRECTORY);
	OK(rmdir("d"));
	CHECK(of(".").st_nlink == before);
	OK(fstat(fd, &st));
	CHECK(st.st_nlink == 0);
	FAILS(openat(fd, "new", O_CREAT | O_RDWR, 0644), ENOENT);
	FAILS(mkdirat(fd, "new", 0755), ENOENT);
	close(fd);
	FAILS(rmdir("absent"), ENOENT);
	/* the set-group-id bit is passed on */
	OK(mkdir("g", 0755));
	OK(chown("g", 0, 77));
	OK(chmod("g", 02755));
	touch("g/f");
	OK(mkdir("g/d", 0755));
	CHECK(of("g/f").st_gid == 77 && of("g/d").st_gid == 77);
	CHECK(of("g/d").st_mode & 02000);
}

TEST(renames)
{
	nlink_t links;
	ino_t inode;
	int fd;

	close(make("a", "a"));
	close(make("b", "b"));
	inode = of("a").st_ino;
	fd = open("b", O_RDONLY);
	OK(rename("a", "b"));
	CHECK(!exists("a") && of("b").st_ino == inode && content_is("b", "a"));
	CHECK(all(fd, 0, 1, 'b'));
	close(fd);
	OK(link("b", "c"));
	OK(rename("b", "c"));
	CHECK(exists("b") && exists("c"));
	OK(rename("b", "b"));
	CHECK(exists("b"));
	FAILS(rename("absent", "x"), ENOENT);
	OK(mkdir("d", 0755));
	OK(mkdir("e", 0755));
	OK(mkdir("d/sub", 0755));
	FAILS(rename("b", "d"), EISDIR);
	FAILS(rename("d", "b"), ENOTDIR);
	FAILS(rename("d", "d/sub/x"), EINVAL);
	FAILS(rename("d/sub", "d"), ENOTEMPTY);
	touch("e/file");
	FAILS(rename("d", "e"), ENOTEMPTY);
	links = of(".").st_nlink;
	OK(rename("d/sub", "e/sub"));
	CHECK(of("d").st_nlink == 2 && of("e").st_nlink == 3);
	CHECK(of("e/sub/..").st_ino == of("e").st_ino);
	OK(unlink("e/file"));
	OK(rename("e/sub", "sub"));
	OK(rename("d", "e"));
	CHECK(!exists("d") && of(".").st_nlink == links);
	/* across directories, over a file */
	close(make("e/f", "one"));
	close(make("sub/f", "two"));
	OK(rename("e/f", "sub/f"));
	CHECK(content_is("sub/f", "one") && !exists("e/f"));
	FAILS(rename("sub", "sub/f/x"), ENOTDIR);
}

TEST(rename_flags)
{
	close(make("a", "a"));
	close(make("b", "b"));
	FAILS(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE), EEXIST);
	CHECK(content_is("a", "a") && content_is("b", "b"));
	OK(renameat2(AT_FDCWD, "a", AT_FDCWD, "c", RENAME_NOREPLACE));
	CHECK(content_is("c", "a") && !exists("a"));
	FAILS(renameat2(AT_FDCWD, "b", AT_FDCWD, "c", 1U << 30), EINVAL);
	OK(mkdir("d", 0755));
	OK(mkdir("d/sub", 0755));
	if (renameat2(AT_FDCWD, "b", AT_FDCWD, "d/sub", RENAME_EXCHANGE) && errno == EINVAL) {
		CHECK(content_is("b", "b") && S_ISDIR(of("d/sub").st_mode));
		return;
	}
	CHECK(content_is("d/sub", "b") && S_ISDIR(of("b").st_mode));
	CHECK(of("d").st_nlink == 2 && of("b/..").st_ino == of(".").st_ino);
	OK(renameat2(AT_FDCWD, "b", AT_FDCWD, "d/sub", RENAME_EXCHANGE));
	CHECK(of("d").st_nlink == 3 && content_is("b", "b"));
	FAILS(renameat2(AT_FDCWD, "b", AT_FDCWD, "absent", RENAME_EXCHANGE), ENOENT);
	FAILS(renameat2(AT_FDCWD, "d", AT_FDCWD, "d/sub", RENAME_EXCHANGE), EINVAL);
	FAILS(renameat2(AT_FDCWD, "b", AT_FDCWD, "c", RENAME_EXCHANGE | RENAME_NOREPLACE), EINVAL);
}

/* What overlayfs does: the old name says that something was there. */
TEST(whiteouts)
{
	struct stat st;

	close(make("a", "a"));
	close(make("b", "b"));
	OK(mkdir("d", 0755));
	if (renameat2(AT_FDCWD, "a", AT_FDCWD, "d/a", RENAME_WHITEOUT) && errno == EINVAL)
		return;
	CHECK(content_is("d/a", "a"));
	st = of("a");
	CHECK(S_ISCHR(st.st_mode) && st.st_rdev == 0 && st.st_nlink == 1 && st.st_uid == 0);
	OK(renameat2(AT_FDCWD, "b", AT_FDCWD, "d/a", RENAME_WHITEOUT));
	CHECK(content_is("d/a", "b") && S_ISCHR(of("b").st_mode) && of("b").st_ino != st.st_ino);
	FAILS(renameat2(AT_FDCWD, "d/a", AT_FDCWD, "b", RENAME_WHITEOUT | RENAME_NOREPLACE), EEXIST);
	OK(renameat2(AT_FDCWD, "d", AT_FDCWD, "e", RENAME_WHITEOUT));
	CHECK(S_ISCHR(of("d").st_mode) && content_is("e/a", "b"));
	OK(rename("e/a", "a"));
	CHECK(content_is("a", "b"));
	OK(unlink("b"));
	OK(unlink("d"));
	OK(rmdir("e"));
}

static unsigned int count(DIR *dir, unsigned char *seen, unsigned int names)
{
	struct dirent *entry;
	unsigned int found = 0, number;
	struct stat st;
	char rest;

	while ((entry = readdir(dir))) {
		if (sscanf(entry->d_name, "file-%u%c", &number, &rest) != 1 || number >= names)
			continue;
		OK(lstat(entry->d_name, &st));
		CHECK(st.st_ino == entry->d_ino);
		CHECK(entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN);
		CHECK(seen[number] == 0);
		seen[number]++;
		found++;
	}
	return found;
}

TEST(readdirs)
{
	enum { NAMES = 700 };
	unsigned char seen[NAMES] = { 0 };
	unsigned int i, left = 0;
	struct dirent *entry;
	char name[32], where[256];
	long place;
	DIR *dir;

	dir = opendir(".");
	CHECK(readdir(dir) && readdir(dir) && !readdir(dir));
	for (i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "file-%u", i);
		touch(name);
	}
	rewinddir(dir);
	CHECK(count(dir, seen, NAMES) == NAMES);
	/* a place is found again */
	rewinddir(dir);
	for (i = 0; i < NAMES / 2; i++)
		readdir(dir);
	place = telldir(dir);
	entry = readdir(dir);
	CHECK(entry);
	strcpy(where, entry->d_name);
	while (readdir(dir))
		;
	seekdir(dir, place);
	entry = readdir(dir);
	CHECK(entry && !strcmp(entry->d_name, where));
	/* what is there all the time is seen once, whatever goes meanwhile */
	memset(seen, 0, sizeof(seen));
	rewinddir(dir);
	for (i = 0; i < 100; i++) {
		entry = readdir(dir);
		if (entry && sscanf(entry->d_name, "file-%u", &left) == 1)
			seen[left]++;
	}
	for (i = 0; i < NAMES; i += 2) {
		snprintf(name, sizeof(name), "file-%u", i);
		OK(unlink(name));
	}
	while ((entry = readdir(dir)))
		if (sscanf(entry->d_name, "file-%u", &left) == 1)
			seen[left]++;
	for (i = 1; i < NAMES; i += 2)
		CHECK(seen[i] == 1);
	closedir(dir);
	for (i = 1; i < NAMES; i += 2) {
		snprintf(name, sizeof(name), "file-%u", i);
		OK(unlink(name));
	}
}

TEST(reads_and_writes)
{
	char got[3 * PAGE];
	struct iovec vectors[3] = { { "one", 3 }, { "", 0 }, { "two", 3 } };
	int fd = make("f", "0123456789");
	int append;

	CHECK(pread(fd, got, 100, 5) == 5);
	CHECK(pread(fd, got, 100, 10) == 0);
	CHECK(pread(fd, got, 100, 1000000) == 0);
	FAILS(pread(fd, got, 1, -1), EINVAL);
	FAILS(pwrite(fd, got, 1, -1), EINVAL);
	CHECK(pwrite(fd, "xy", 2, 4) == 2);
	CHECK(content_is("f", "0123xy6789"));
	/* a hole reads as zeroes */
	CHECK(pwrite(fd, "end", 3, 5 * PAGE - 1) == 3);
	CHECK(of("f").st_size == 5 * PAGE + 2);
	CHECK(all(fd, 10, 5 * PAGE - 11, 0));
	OK(ftruncate(fd, 0));
	OK(lseek(fd, 0, SEEK_SET));
	CHECK(writev(fd, vectors, 3) == 6);
	CHECK(content_is("f", "onetwo"));
	append = open("f", O_WRONLY | O_APPEND);
	CHECK(write(append, "!", 1) == 1);
	OK(lseek(append, 0, SEEK_SET));
	CHECK(write(append, "?", 1) == 1);
	CHECK(content_is("f", "onetwo!?"));
	close(append);
	FAILS(write(open("f", O_RDONLY), "x", 1), EBADF);
	FAILS(read(open("f", O_WRONLY), got, 1), EBADF);
	FAILS(read(open(".", O_RDONLY), got, 1), EISDIR);
	/* across pages */
	memset(got, 'p', sizeof(got));
	CHECK(pwrite(fd, got, sizeof(got), PAGE / 2) == sizeof(got));
	CHECK(all(fd, PAGE / 2, sizeof(got), 'p'));
	CHECK(pwrite(fd, "", 0, 1 << 20) == 0);
	CHECK(of("f").st_size == PAGE / 2 + (off_t)sizeof(got));
	close(fd);
}

TEST(truncates)
{
	int fd = make("f", "");

	fill(fd, 0, 4 * PAGE, 'x');
	OK(ftruncate(fd, PAGE + 100));
	CHECK(of("f").st_size == PAGE + 100);
	OK(ftruncate(fd, 8 * PAGE));
	CHECK(all(fd, 0, PAGE + 100, 'x'));
	CHECK(all(fd, PAGE + 100, 7 * PAGE - 100, 0));
	/* the same with what is on the medium */
	fill(fd, 0, 4 * PAGE, 'y');
	OK(fsync(fd));
	OK(ftruncate(fd, 100));
	OK(fsync(fd));
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	OK(ftruncate(fd, 4 * PAGE));
	CHECK(all(fd, 0, 100, 'y') && all(fd, 100, 4 * PAGE - 100, 0));
	OK(fsync(fd));
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	CHECK(all(fd, 0, 100, 'y') && all(fd, 100, 4 * PAGE - 100, 0));
	fill(fd, 50, 10, 'z');
	CHECK(all(fd, 0, 50, 'y') && all(fd, 50, 10, 'z') && all(fd, 60, 40, 'y'));
	CHECK(all(fd, 100, PAGE, 0));
	close(fd);
	OK(truncate("f", 3));
	CHECK(of("f").st_size == 3);
	FAILS(truncate("f", -1), EINVAL);
	FAILS(truncate(".", 0), EISDIR);
	FAILS(truncate("absent", 0), ENOENT);
	fd = open("f", O_RDONLY);
	FAILS(ftruncate(fd, 0), EINVAL);
	close(fd);
}

TEST(sparse)
{
	off_t far = (off_t)1 << 38, at;
	int fd = make("f", "begin");

	CHECK(pwrite(fd, "end", 3, far) == 3);
	CHECK(of("f").st_size == far + 3);
	CHECK(all(fd, far / 2, PAGE, 0));
	OK(fsync(fd));
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	CHECK(all(fd, far / 2, PAGE, 0) && all(fd, far, 1, 'e'));
	CHECK(of("f").st_blocks < 1000);
	/* one that reports no holes has them at the end only */
	at = lseek(fd, PAGE, SEEK_DATA);
	CHECK(at == PAGE || (at > PAGE && at <= far));
	at = lseek(fd, 0, SEEK_HOLE);
	CHECK(at == far + 3 || (at >= 5 && at <= far));
	CHECK(lseek(fd, far, SEEK_HOLE) == far + 3);
	FAILS(lseek(fd, far + 3, SEEK_DATA), ENXIO);
	FAILS(lseek(fd, far + 3, SEEK_HOLE), ENXIO);
	OK(ftruncate(fd, 5));
	CHECK(content_is("f", "begin"));
	close(fd);
}

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

static bool same(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static void pause_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

TEST(times)
{
	static const time_t seconds[] = { 0, 1, -1, -1000000, 2147483648, 4294967296, 7258118400 };
	struct timespec set[2] = { { 0, 123456789 }, { 0, 987654321 } };
	struct stat before, after;
	unsigned int i;
	int fd;

	fd = make("f", "x");
	before = of("f");
	pause_ms(30);
	CHECK(write(fd, "y", 1) == 1);
	after = of("f");
	CHECK(later(after.st_mtim, before.st_mtim) && later(after.st_ctim, before.st_ctim));
	before = after;
	pause_ms(30);
	OK(fchmod(fd, 0600));
	after = of("f");
	CHECK(same(after.st_mtim, before.st_mtim) && later(after.st_ctim, before.st_ctim));
	before = of(".");
	pause_ms(30);
	touch("g");
	after = of(".");
	CHECK(later(after.st_mtim, before.st_mtim));
	before = after;
	pause_ms(30);
	OK(rename("g", "h"));
	CHECK(later(of(".").st_mtim, before.st_mtim));
	pause_ms(30);
	before = of("h");
	OK(link("h", "i"));
	CHECK(later(of("h").st_ctim, before.st_ctim));
	for (i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		set[0].tv_sec = set[1].tv_sec = seconds[i];
		OK(utimensat(AT_FDCWD, "f", set, 0));
		after = of("f");
		if (!same(after.st_atim, set[0]) || !same(after.st_mtim, set[1])) {
			printf("%lld became %lld and %lld\n", (long long)seconds[i],
			       (long long)after.st_atim.tv_sec, (long long)after.st_mtim.tv_sec);
			CHECK(!"the time that was set");
		}
	}
	set[0].tv_nsec = UTIME_OMIT;
	set[1].tv_nsec = UTIME_NOW;
	before = of("f");
	OK(utimensat(AT_FDCWD, "f", set, 0));
	after = of("f");
	CHECK(same(after.st_atim, before.st_atim) && after.st_mtim.tv_sec > 1700000000);
	OK(symlink("f", "s"));
	set[0].tv_nsec = set[1].tv_nsec = 5;
	set[0].tv_sec = set[1].tv_sec = 99;
	OK(utimensat(AT_FDCWD, "s", set, AT_SYMLINK_NOFOLLOW));
	CHECK(of("s").st_mtim.tv_sec == 99 && of("f").st_mtim.tv_sec != 99);
	close(fd);
}

/* What stat says is what it says when the inode comes from the medium. */
static void same_later(const char *name, const char *after)
{
	struct stat before = of(name), now;
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	sync();
	CHECK(write(fd, "3", 1) == 1);
	close(fd);
	now = of(name);
	if (!same(before.st_mtim, now.st_mtim) || !same(before.st_ctim, now.st_ctim) ||
	    before.st_size != now.st_size || before.st_mode != now.st_mode ||
	    before.st_nlink != now.st_nlink || before.st_blocks != now.st_blocks) {
		printf("%s after %s: mtime %ld ns on, ctime %ld ns on, size %ld, %ld, blocks %ld, %ld\n",
		       name, after, now.st_mtim.tv_nsec - before.st_mtim.tv_nsec,
		       now.st_ctim.tv_nsec - before.st_ctim.tv_nsec, (long)before.st_size,
		       (long)now.st_size, (long)before.st_blocks, (long)now.st_blocks);
		CHECK(!"the same inode");
	}
}

TEST(times_of_changes)
{
	static const char *const changes[] = { "truncate", "ftruncate", "O_TRUNC", "write" };
	struct stat before, after;
	unsigned int i;
	int fd;

	for (i = 0; i < 4; i++) {
		fd = make("f", "content");
		before = of("f");
		pause_ms(30);
		switch (i) {
		case 0:
			OK(truncate("f", 3));
			break;
		case 1:
			OK(ftruncate(fd, 3));
			break;
		case 2:
			close(open("f", O_WRONLY | O_TRUNC));
			break;
		case 3:
			CHECK(write(fd, "more", 4) == 4);
		}
		after = of("f");
		if (!later(after.st_mtim, before.st_mtim) ||
		    !later(after.st_ctim, before.st_ctim)) {
			printf("after %s\n", changes[i]);
			CHECK(!"times of now");
		}
		same_later("f", changes[i]);
		close(fd);
	}
	before = of("f");
	pause_ms(30);
	OK(chown("f", -1, -1));
	CHECK(same(of("f").st_mtim, before.st_mtim));
	same_later("f", "chown");
	OK(chmod("f", 0600));
	same_later("f", "chmod");
	OK(link("f", "g"));
	same_later("f", "link");
	OK(unlink("g"));
	same_later("f", "unlink");
	same_later(".", "unlink");
	/* what fails changes nothing */
	before = of("f");
	after = of(".");
	pause_ms(30);
	FAILS(open("f", O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
	FAILS(link("f", "f"), EEXIST);
	FAILS(mkdir("f", 0755), EEXIST);
	FAILS(rmdir("f"), ENOTDIR);
	FAILS(rename("absent", "f"), ENOENT);
	FAILS(truncate("f", -1), EINVAL);
	CHECK(same(of("f").st_ctim, before.st_ctim) && same(of(".").st_ctim, after.st_ctim));
}

static int without_rights(void)
{
	int bad = 0;

	bad |= (open("secret", O_RDONLY) != -1 || errno != EACCES) << 0;
	bad |= (open("closed/f", O_RDONLY) != -1 || errno != EACCES) << 1;
	bad |= (open("new", O_CREAT | O_RDWR, 0644) != -1 || errno != EACCES) << 2;
	bad |= (chmod("secret", 0777) != -1 || errno != EPERM) << 3;
	bad |= (chown("mine", 0, 0) != -1 || errno != EPERM) << 4;
	bad |= (unlink("sticky/theirs") != -1 || errno != EPERM) << 5;
	bad |= (unlink("sticky/mine") != 0) << 6;
	return bad;
}

static int write_to_setuid(void)
{
	int fd = open("suid", O_WRONLY);

	return write(fd, "x", 1) != 1;
}

TEST(rights)
{
	OK(chmod(".", 0755));
	close(make("secret", "s"));
	OK(chmod("secret", 0600));
	OK(mkdir("closed", 0700));
	touch("closed/f");
	touch("mine");
	OK(chown("mine", 1000, 1000));
	CHECK(of("mine").st_uid == 1000 && of("mine").st_gid == 1000);
	OK(mkdir("sticky", 0777));
	OK(chmod("sticky", 01777));
	touch("sticky/theirs");
	touch("sticky/mine");
	OK(chown("sticky/mine", 1000, 1000));
	CHECK(as_user(without_rights) == 0);
	touch("suid");
	OK(chmod("suid", 06777));
	CHECK((of("suid").st_mode & 07777) == 06777);
	CHECK(as_user(write_to_setuid) == 0);
	CHECK((of("suid").st_mode & 07777) == 0777);
	OK(chmod("suid", 06777));
	OK(chown("suid", 5, 6));
	CHECK((of("suid").st_mode & 04000) == 0);
	OK(chown("suid", 4000000000U, 4000000001U));
	CHECK(of("suid").st_uid == 4000000000U && of("suid").st_gid == 4000000001U);
}

static sigjmp_buf fault;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(fault, 1);
}

static bool faults(volatile char *address)
{
	struct sigaction action = { .sa_handler = on_fault }, old;
	bool hit;

	sigaction(SIGBUS, &action, &old);
	hit = sigsetjmp(fault, 1);
	if (!hit)
		*address = 1;
	sigaction(SIGBUS, &old, NULL);
	return hit;
}

TEST(mappings)
{
	int fd = make("f", "");
	char *map, *private, got[16];

	fill(fd, 0, 2 * PAGE + 10, 'a');
	map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	CHECK(map[0] == 'a' && map[2 * PAGE + 9] == 'a' && map[2 * PAGE + 10] == 0);
	memcpy(map + PAGE - 2, "mmap", 4);
	CHECK(pread(fd, got, 4, PAGE - 2) == 4 && !memcmp(got, "mmap", 4));
	CHECK(pwrite(fd, "file", 4, 100) == 4 && !memcmp(map + 100, "file", 4));
	OK(msync(map, 4 * PAGE, MS_SYNC));
	/* what is behind the end is not kept */
	map[2 * PAGE + 20] = 'x';
	OK(msync(map, 4 * PAGE, MS_SYNC));
	OK(ftruncate(fd, 3 * PAGE));
	CHECK(all(fd, 2 * PAGE + 10, PAGE - 10, 0));
	CHECK(faults(map + 3 * PAGE));
	OK(ftruncate(fd, PAGE));
	CHECK(faults(map + PAGE));
	OK(ftruncate(fd, 2 * PAGE));
	CHECK(map[PAGE] == 0);
	private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	private[0] = 'P';
	CHECK(all(fd, 0, 1, 'a'));
	/* through the mapping of a hole, written back by nobody but the kernel */
	OK(ftruncate(fd, 64 * PAGE));
	OK(munmap(map, 4 * PAGE));
	map = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	CHECK(map[50 * PAGE] == 0);
	map[50 * PAGE] = 'h';
	OK(munmap(map, 64 * PAGE));
	sync();
	fd = open("f", O_RDWR);
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	CHECK(all(fd, 50 * PAGE, 1, 'h') && all(fd, 51 * PAGE, PAGE, 0));
	CHECK(!memcmp("file", (pread(fd, got, 4, 100), got), 4));
	close(fd);
	munmap(private, PAGE);
}

TEST(direct)
{
	char *data = NULL;
	int fd, buffered;

	CHECK(posix_memalign((void **)&data, PAGE, 64 * PAGE) == 0);
	fd = open("f", O_RDWR | O_CREAT | O_DIRECT, 0644);
	if (fd < 0 && errno == EINVAL)
		return;
	CHECK(fd >= 0);
	buffered = open("f", O_RDWR);
	memset(data, 'd', 64 * PAGE);
	CHECK(pwrite(fd, data, 64 * PAGE, 0) == 64 * PAGE);
	CHECK(all(buffered, 0, 64 * PAGE, 'd'));
	fill(buffered, 3 * PAGE, 2 * PAGE, 'b');
	memset(data, 0, 64 * PAGE);
	CHECK(pread(fd, data, 64 * PAGE, 0) == 64 * PAGE);
	CHECK(data[3 * PAGE] == 'b' && data[5 * PAGE - 1] == 'b' && data[5 * PAGE] == 'd');
	memset(data, 'e', PAGE);
	CHECK(pwrite(fd, data, PAGE, 4 * PAGE) == PAGE);
	CHECK(all(buffered, 3 * PAGE, PAGE, 'b') && all(buffered, 4 * PAGE, PAGE, 'e'));
	/* beyond the end, and a hole before it */
	CHECK(pwrite(fd, data, PAGE, 100 * PAGE) == PAGE);
	CHECK(of("f").st_size == 101 * PAGE);
	CHECK(pread(fd, data, 2 * PAGE, 80 * PAGE) == 2 * PAGE);
	CHECK(data[0] == 0 && data[2 * PAGE - 1] == 0);
	CHECK(pread(fd, data, 2 * PAGE, 100 * PAGE) == PAGE);
	CHECK(pread(fd, data, PAGE, 101 * PAGE) == 0);
	OK(fsync(fd));
	close(fd);
	close(buffered);
	free(data);
}

TEST(syncs)
{
	int dir = open(".", O_RDONLY), fd = make("f", "x");

	OK(fsync(fd));
	OK(fdatasync(fd));
	OK(fsync(dir));
	OK(fdatasync(dir));
	OK(syncfs(dir));
	fill(fd, 0, 20 * PAGE, 's');
	OK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
			   SYNC_FILE_RANGE_WAIT_AFTER));
	OK(fdatasync(fd));
	close(fd);
	fd = open("g", O_RDWR | O_CREAT | O_SYNC, 0644);
	CHECK(write(fd, "sync", 4) == 4);
	CHECK(content_is("g", "sync"));
	close(fd);
	close(dir);
}

TEST(allocation)
{
	int fd = make("f", "");

	fill(fd, 0, 10 * PAGE, 'f');
	OK(fsync(fd));
	if (has(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE + 100, 3 * PAGE))) {
		CHECK(all(fd, 0, PAGE + 100, 'f'));
		CHECK(all(fd, PAGE + 100, 3 * PAGE, 0));
		CHECK(all(fd, 4 * PAGE + 100, 6 * PAGE - 100, 'f'));
		OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 9 * PAGE, 9 * PAGE));
		CHECK(of("f").st_size == 10 * PAGE && all(fd, 9 * PAGE, PAGE, 0));
		OK(fsync(fd));
		OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
		CHECK(all(fd, PAGE + 100, 3 * PAGE, 0) && all(fd, 8 * PAGE, PAGE, 'f'));
	}
	if (has(fallocate(fd, FALLOC_FL_ZERO_RANGE, 100, 200)))
		CHECK(all(fd, 0, 100, 'f') && all(fd, 100, 200, 0) && all(fd, 300, 100, 'f'));
	if (has(fallocate(fd, 0, 0, 20 * PAGE))) {
		CHECK(of("f").st_size == 20 * PAGE);
		CHECK(all(fd, 10 * PAGE, 10 * PAGE, 0) && all(fd, 0, 100, 'f'));
	}
	close(fd);
}

TEST(temporary)
{
	int fd = open(".", O_TMPFILE | O_RDWR, 0640);
	char path[32];
	struct stat st;

	if (!has(fd))
		return;
	CHECK(write(fd, "tmp", 3) == 3);
	OK(fstat(fd, &st));
	CHECK(st.st_nlink == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	OK(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	CHECK(content_is("named", "tmp") && of("named").st_nlink == 1);
	OK(fsync(fd));
	close(fd);
	fd = open(".", O_TMPFILE | O_RDWR | O_EXCL, 0640);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	FAILS(linkat(AT_FDCWD, path, AT_FDCWD, "never", AT_SYMLINK_FOLLOW), ENOENT);
	close(fd);
}

TEST(special_files)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
	int fd, other;
	char got[8];

	OK(mkfifo("fifo", 0600));
	CHECK(S_ISFIFO(of("fifo").st_mode));
	fd = open("fifo", O_RDWR | O_NONBLOCK);
	CHECK(write(fd, "pipe", 4) == 4 && read(fd, got, 8) == 4);
	close(fd);
	OK(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
	CHECK(of("null").st_rdev == makedev(1, 3));
	OK(mknod("block", S_IFBLK | 0600, makedev(259, 1048575)));
	CHECK(S_ISBLK(of("block").st_mode) && of("block").st_rdev == makedev(259, 1048575));
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	OK(bind(fd, (struct sockaddr *)&address, sizeof(address)));
	OK(listen(fd, 1));
	CHECK(S_ISSOCK(of("socket").st_mode));
	other = socket(AF_UNIX, SOCK_STREAM, 0);
	OK(connect(other, (struct sockaddr *)&address, sizeof(address)));
	close(fd);
	close(other);
	OK(mknod("plain", S_IFREG | 0600, 0));
	CHECK(S_ISREG(of("plain").st_mode));
}

TEST(statfs_counts)
{
	struct statvfs before, after;
	int fd;

	sync();
	OK(statvfs(".", &before));
	CHECK(before.f_bsize == PAGE && before.f_namemax == 255);
	CHECK(before.f_bavail <= before.f_bfree && before.f_bfree <= before.f_blocks);
	fd = make("f", "");
	fill(fd, 0, 1024 * PAGE, 1);
	OK(fsync(fd));
	OK(statvfs(".", &after));
	CHECK(before.f_bavail - after.f_bavail >= 1024 && before.f_bavail - after.f_bavail < 1200);
	if (before.f_files)
		CHECK(after.f_ffree < before.f_ffree || after.f_ffree == before.f_ffree);
	close(fd);
	OK(unlink("f"));
	sync();
	OK(statvfs(".", &after));
	CHECK(after.f_bavail + 32 >= before.f_bavail);
}

TEST(locks)
{
	struct flock all_of_it = { .l_type = F_WRLCK };
	int fd = make("f", "x"), other = open("f", O_RDWR);

	OK(flock(fd, LOCK_EX | LOCK_NB));
	FAILS(flock(other, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	OK(flock(fd, LOCK_UN));
	OK(flock(other, LOCK_SH | LOCK_NB));
	OK(fcntl(fd, F_SETLK, &all_of_it));
	close(fd);
	close(other);
}

TEST(copies)
{
	int from = make("from", ""), to = make("to", "");
	off_t in = 0, out = PAGE;

	fill(from, 0, 20 * PAGE, 'c');
	CHECK(sendfile(to, from, &in, 20 * PAGE) == 20 * PAGE);
	CHECK(all(to, 0, 20 * PAGE, 'c'));
	in = 0;
	CHECK(copy_file_range(from, &in, to, &out, 5 * PAGE, 0) == 5 * PAGE);
	CHECK(all(to, 0, 20 * PAGE, 'c'));
	close(from);
	close(to);
}

TEST(programs)
{
	char command[] = "cp /bin/cat prog && chmod 755 prog && echo text >t && ./prog t >u";
	int fd;

	CHECK(system(command) == 0);
	CHECK(content_is("u", "text\n"));
	fd = open("prog", O_RDONLY);
	OK(fsync(fd));
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	close(fd);
	CHECK(system("cmp -s prog /bin/cat && ./prog u | cmp -s - t") == 0);
}
