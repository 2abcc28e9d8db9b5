// SPDX-License-Identifier: GPL-2.0-or-later
/* linux DIR [TEST...]: what Linux has beyond POSIX: allocation, extents, handles. See checks.h. */
#define _GNU_SOURCE
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "checks.h"

#define MIB (1 << 20)

static unsigned long available(void)
{
	struct statvfs st;

	OK(statvfs(".", &st));
	return st.f_bavail;
}

TEST(preallocation)
{
	int fd = make("f", "begin");
	unsigned long before;
	blkcnt_t blocks;

	sync();
	before = available();
	OK(fallocate(fd, 0, 0, 4 * MIB));
	CHECK(of("f").st_size == 4 * MIB && of("f").st_blocks >= 4 * MIB / 512);
	CHECK(all(fd, 0, 1, 'b') && all(fd, 5, 4 * MIB - 5, 0));
	CHECK(before - available() >= 1000);
	blocks = of("f").st_blocks;
	before = available();
	fill(fd, MIB, 64 * PAGE, 'w');
	OK(fsync(fd));
	CHECK(of("f").st_blocks <= blocks + 64 && before - available() < 32);
	CHECK(all(fd, MIB - PAGE, PAGE, 0) && all(fd, MIB, 64 * PAGE, 'w'));
	CHECK(all(fd, MIB + 64 * PAGE, PAGE, 0));
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	CHECK(all(fd, MIB - PAGE, PAGE, 0) && all(fd, MIB, 64 * PAGE, 'w'));
	/* behind the end, which stays */
	OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 4 * MIB, MIB));
	CHECK(of("f").st_size == 4 * MIB && of("f").st_blocks >= 5 * MIB / 512);
	blocks = of("f").st_blocks;
	OK(ftruncate(fd, 5 * MIB));
	CHECK(of("f").st_blocks == blocks && all(fd, 4 * MIB, MIB, 0));
	/* zeroing keeps the room, punching and truncating give it back */
	if (fallocate(fd, FALLOC_FL_ZERO_RANGE, MIB - 100, MIB) == 0) {
		CHECK(all(fd, MIB - 100, MIB, 0) && of("f").st_size == 5 * MIB);
		CHECK(of("f").st_blocks + 64 >= blocks);
	}
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * MIB, 2 * MIB));
	CHECK(of("f").st_blocks <= 3 * MIB / 512 + 256);
	OK(ftruncate(fd, MIB));
	OK(fsync(fd));
	CHECK(of("f").st_blocks <= MIB / 512 + 256);
	OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, MIB, MIB));
	CHECK(of("f").st_blocks >= 2 * MIB / 512);
	OK(ftruncate(fd, MIB));
	CHECK(of("f").st_blocks <= MIB / 512 + 256);
	/* a part of a hole takes no block: it is zero, and keeps what is dirty beside it */
	OK(ftruncate(fd, 0));
	OK(ftruncate(fd, MIB));
	fill(fd, 9 * PAGE, PAGE, 'w');
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * PAGE + 100, 100));
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 9 * PAGE + 100,
		     5 * PAGE));
	OK(fsync(fd));
	CHECK(of("f").st_blocks <= 2 * PAGE / 512);
	CHECK(all(fd, 9 * PAGE, 100, 'w') && all(fd, 9 * PAGE + 100, PAGE - 100, 0));
	close(fd);
	OK(unlink("f"));
}

static unsigned long holes_of(int fd)
{
	return lseek(fd, 0, SEEK_HOLE);
}

TEST(ranges_that_move)
{
	struct rlimit limit = { MIB, RLIM_INFINITY }, old;
	int fd = make("f", "");
	unsigned int i;
	char *map;

	for (i = 0; i < 40; i++)
		fill(fd, i * PAGE, PAGE, 'A' + i);
	OK(ftruncate(fd, 40 * PAGE - 100));
	if (fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 2 * PAGE, 3 * PAGE)) {
		CHECK(errno == EOPNOTSUPP);
		goto out;
	}
	CHECK(of("f").st_size == 37 * PAGE - 100 && of("f").st_blocks <= 40 * PAGE / 512);
	CHECK(all(fd, PAGE, PAGE, 'B') && all(fd, 2 * PAGE, PAGE, 'F'));
	CHECK(all(fd, 36 * PAGE, PAGE - 100, 'A' + 39));
	/* what a mapping has is what the file has */
	map = mmap(NULL, 41 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && map[2 * PAGE] == 'F');
	map[3 * PAGE] = 'm';
	OK(fallocate(fd, FALLOC_FL_INSERT_RANGE, PAGE, 4 * PAGE));
	CHECK(of("f").st_size == 41 * PAGE - 100 && holes_of(fd) == PAGE);
	CHECK(!map[PAGE] && map[5 * PAGE] == 'B' && map[7 * PAGE] == 'm');
	CHECK(map[40 * PAGE] == 'A' + 39 && !map[41 * PAGE - 100]);
	map[PAGE] = 'n';
	OK(munmap(map, 41 * PAGE));
	OK(fsync(fd));
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	CHECK(all(fd, PAGE + 1, 4 * PAGE - 1, 0) && all(fd, 7 * PAGE + 1, PAGE - 1, 'G'));
	/* all of it moves, and back */
	OK(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, 600 * PAGE));
	CHECK(all(fd, 0, 600 * PAGE, 0) && all(fd, 600 * PAGE, PAGE, 'A'));
	OK(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 600 * PAGE));
	CHECK(all(fd, 0, PAGE, 'A') && of("f").st_size == 41 * PAGE - 100);
	FAILS(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 100, PAGE), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, PAGE, 100), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 41 * PAGE), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 40 * PAGE, PAGE), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_INSERT_RANGE, 100, PAGE), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, 100), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_INSERT_RANGE, 41 * PAGE, PAGE), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, INT64_MAX & -PAGE), EFBIG);
	signal(SIGXFSZ, SIG_IGN);
	OK(getrlimit(RLIMIT_FSIZE, &old));
	limit.rlim_max = old.rlim_max;
	OK(setrlimit(RLIMIT_FSIZE, &limit));
	FAILS(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, MIB), EFBIG);
	OK(setrlimit(RLIMIT_FSIZE, &old));
	CHECK(all(fd, 0, PAGE, 'A') && of("f").st_size == 41 * PAGE - 100);
out:
	close(fd);
	OK(unlink("f"));
}

/* Says whether block `at` on is what was block `was` on, up to the last of 40. */
static int blocks_are(int fd, int at, int was)
{
	for (; was < 40; at++, was++)
		if (!all(fd, at * PAGE, PAGE, 'A' + was))
			return 0;
	return 1;
}

/* Whenever an insert is killed, all that the file had is there, before one block and behind it. */
TEST(insert_that_is_killed)
{
	int fd, delay, gap, i, grown = 0;
	pid_t child;

	for (delay = 0; delay < 3000; delay += 60) {
		fd = make("f", "");
		for (i = 0; i < 40; i++)
			fill(fd, i * PAGE, PAGE, 'A' + i);
		OK(fsync(fd));
		child = fork();
		CHECK(child >= 0);
		if (!child)
			_exit(!!fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, PAGE));
		usleep(delay);
		OK(kill(child, SIGKILL));
		CHECK(waitpid(child, NULL, 0) == child);
		OK(fsync(fd));
		OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
		if (of("f").st_size == 40 * PAGE) {
			CHECK(blocks_are(fd, 0, 0));
		} else {
			CHECK(of("f").st_size == 41 * PAGE);
			grown++;
			for (gap = 0; gap < 40 && all(fd, gap * PAGE, PAGE, 'A' + gap); gap++)
				;
			CHECK(blocks_are(fd, gap + 1, gap));
		}
		close(fd);
		OK(unlink("f"));
	}
	printf("insert_that_is_killed: %d of 50 files have grown\n", grown);
}

TEST(allocation_errors)
{
	struct rlimit limit = { MIB, RLIM_INFINITY }, old;
	int fd = make("f", "x"), other;
	unsigned long before;

	FAILS(fallocate(fd, 0, 0, 0), EINVAL);
	FAILS(fallocate(fd, 0, -1, 10), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, PAGE), EOPNOTSUPP);
	other = open("f", O_RDONLY);
	FAILS(fallocate(other, 0, 0, PAGE), EBADF);
	close(other);
	before = available();
	FAILS(fallocate(fd, 0, 0, (off_t)1 << 40), ENOSPC);
	OK(ftruncate(fd, 0));
	sync();
	CHECK(available() + 64 >= before);
	signal(SIGXFSZ, SIG_IGN);
	OK(getrlimit(RLIMIT_FSIZE, &old));
	limit.rlim_max = old.rlim_max;
	OK(setrlimit(RLIMIT_FSIZE, &limit));
	FAILS(fallocate(fd, 0, 0, MIB + 1), EFBIG);
	OK(fallocate(fd, 0, 0, MIB));
	OK(setrlimit(RLIMIT_FSIZE, &old));
	close(fd);
}

#define EXTENTS 16

static unsigned int extents(int fd, struct fiemap_extent *out)
{
	union {
		struct fiemap map;
		char bytes[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)];
	} all = { .map = { .fm_length = FIEMAP_MAX_OFFSET, .fm_flags = FIEMAP_FLAG_SYNC,
			   .fm_extent_count = EXTENTS } };

	OK(ioctl(fd, FS_IOC_FIEMAP, &all.map));
	memcpy(out, all.map.fm_extents, all.map.fm_mapped_extents * sizeof(*out));
	return all.map.fm_mapped_extents;
}

/* Bytes of a range that extents with, or without, a flag cover */
static unsigned long covered(int fd, off_t from, off_t to, unsigned int flag, bool with)
{
	struct fiemap_extent e[EXTENTS];
	unsigned int n = extents(fd, e), i;
	unsigned long bytes = 0;

	for (i = 0; i < n; i++) {
		off_t begin = e[i].fe_logical, end = begin + e[i].fe_length;

		begin = begin > from ? begin : from;
		end = end < to ? end : to;
		if (begin < end && !(e[i].fe_flags & flag) == !with)
			bytes += end - begin;
	}
	return bytes;
}

TEST(fiemap)
{
	struct fiemap_extent e[EXTENTS];
	unsigned int n;
	int fd = make("f", "");

	CHECK(extents(fd, e) == 0);
	fill(fd, 10 * PAGE, 20 * PAGE, 'x');
	fill(fd, 1000 * PAGE, 5 * PAGE, 'y');
	n = extents(fd, e);
	CHECK(n >= 2 && e[0].fe_logical == 10 * PAGE && e[0].fe_physical);
	CHECK(e[n - 1].fe_logical + e[n - 1].fe_length == 1005 * PAGE);
	CHECK(e[n - 1].fe_flags & FIEMAP_EXTENT_LAST && !(e[0].fe_flags & FIEMAP_EXTENT_LAST));
	CHECK(covered(fd, 0, 10 * PAGE, 0, false) == 0);
	CHECK(covered(fd, 10 * PAGE, 30 * PAGE, 0, false) == 20 * PAGE);
	CHECK(covered(fd, 30 * PAGE, 1000 * PAGE, 0, false) == 0);
	OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 2000 * PAGE, 300 * PAGE));
	CHECK(covered(fd, 2000 * PAGE, 2300 * PAGE, FIEMAP_EXTENT_UNWRITTEN, true) == 300 * PAGE);
	CHECK(covered(fd, 0, 2000 * PAGE, FIEMAP_EXTENT_UNWRITTEN, true) == 0);
	/* what is reserved reads as a hole */
	CHECK(lseek(fd, 0, SEEK_DATA) == 10 * PAGE);
	CHECK(lseek(fd, 10 * PAGE, SEEK_HOLE) == 30 * PAGE);
	OK(ftruncate(fd, 2300 * PAGE));
	fill(fd, 2100 * PAGE, PAGE, 'z');
	CHECK(covered(fd, 2000 * PAGE, 2300 * PAGE, FIEMAP_EXTENT_UNWRITTEN, true) >= 200 * PAGE);
	CHECK(covered(fd, 2100 * PAGE, 2101 * PAGE, FIEMAP_EXTENT_UNWRITTEN, false) == PAGE);
	close(fd);
}

struct handle {
	struct file_handle head;
	unsigned char bytes[MAX_HANDLE_SZ];
};

static int handle_of(const char *path, struct handle *out)
{
	int mount;

	out->head.handle_bytes = MAX_HANDLE_SZ;
	return name_to_handle_at(AT_FDCWD, path, &out->head, &mount, 0);
}

/* Nothing of it is in memory. */
static void forget(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	sync();
	CHECK(write(fd, "3", 1) == 1);
	close(fd);
}

TEST(handles)
{
	struct handle file, dir, gone;
	char path[64], name[8192], here[4096];
	int mount = open(".", O_RDONLY), fd;
	ssize_t n;

	OK(mkdir("d", 0755));
	OK(mkdir("d/e", 0755));
	close(make("d/e/f", "content"));
	close(make("gone", "x"));
	OK(handle_of("d/e/f", &file));
	OK(handle_of("d/e", &dir));
	OK(handle_of("gone", &gone));
	fd = open_by_handle_at(mount, &file.head, O_RDONLY);
	CHECK(fd >= 0 && all(fd, 0, 1, 'c'));
	close(fd);
	OK(rename("d/e/f", "moved"));
	OK(rename("d/e", "d/renamed"));
	forget();
	fd = open_by_handle_at(mount, &file.head, O_RDWR);
	CHECK(fd >= 0 && all(fd, 0, 1, 'c'));
	close(fd);
	/* a directory without a name in memory: its parents are found */
	fd = open_by_handle_at(mount, &dir.head, O_RDONLY);
	CHECK(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	CHECK(n > 0);
	name[n > 0 ? n : 0] = 0;
	CHECK(getcwd(here, sizeof(here)));
	CHECK(!strncmp(name, here, strlen(here)) && !strcmp(name + strlen(here), "/d/renamed"));
	close(fd);
	OK(unlink("gone"));
	FAILS(open_by_handle_at(mount, &gone.head, O_RDONLY), ESTALE);
	/* its inode may be another's by now */
	for (n = 0; n < 50; n++) {
		snprintf(path, sizeof(path), "new-%zd", n);
		touch(path);
	}
	FAILS(open_by_handle_at(mount, &gone.head, O_RDONLY), ESTALE);
	forget();
	FAILS(open_by_handle_at(mount, &gone.head, O_RDONLY), ESTALE);
	memset(gone.head.f_handle, 0xff, gone.head.handle_bytes);
	FAILS(open_by_handle_at(mount, &gone.head, O_RDONLY), ESTALE);
	touch("still");
	close(mount);
}

/* As long as it is open, what has no name can be opened by its handle. */
TEST(handles_without_a_name)
{
	int mount = open(".", O_RDONLY), fd = make("f", "content"), other;
	struct handle handle;

	OK(handle_of("f", &handle));
	OK(unlink("f"));
	forget();
	other = open_by_handle_at(mount, &handle.head, O_RDWR);
	CHECK(other >= 0);
	CHECK(pwrite(other, "C", 1, 0) == 1);
	close(fd);
	CHECK(all(other, 0, 1, 'C') && all(other, 1, 1, 'o'));
	close(other);
	FAILS(open_by_handle_at(mount, &handle.head, O_RDONLY), ESTALE);
	close(mount);
}

/* Whoever guesses a number by which a file is just being made does not take it away. */
TEST(handles_of_the_unborn)
{
	struct handle guess;
	int mount = open(".", O_RDONLY), go[2], round;
	char path[64], name[32], word;
	uint32_t ino;
	pid_t child;

	OK(pipe(go));
	child = fork();
	if (!child) {
		close(go[1]);
		while (read(go[0], &guess, sizeof(guess)) == sizeof(guess))
			for (word = 0; word < 3; word++)
				open_by_handle_at(mount, &guess.head, O_RDONLY);
		_exit(0);
	}
	close(go[0]);
	for (round = 0; round < 20; round++) {
		int fd;

		snprintf(name, sizeof(name), "before-%d", round);
		touch(name);
		OK(handle_of(name, &guess));
		memcpy(&ino, guess.head.f_handle, sizeof(ino));
		ino++;
		memcpy(guess.head.f_handle, &ino, sizeof(ino));
		forget();	/* who makes it waits for the drive, and others get on */
		CHECK(write(go[1], &guess, sizeof(guess)) == sizeof(guess));
		fd = open(".", O_TMPFILE | O_RDWR, 0644);
		if (!has(fd))
			break;
		CHECK(write(fd, "born", 4) == 4);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		snprintf(name, sizeof(name), "born-%d", round);
		OK(linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW));
		close(fd);
		CHECK(content_is(name, "born"));
	}
	close(go[1]);
	CHECK(waitpid(child, NULL, 0) == child);
	close(mount);
}
