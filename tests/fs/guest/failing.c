// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * failing DRIVE DIR [OPERATION...]: operations on a volume of RFS, all or those named, each again
 * and again: the kernel's first allocation in it fails, then the second, until it makes no more
 * (/proc/self/fail-nth). It is done or there is an error; what was written before stays, and the
 * volume can be written to.
 *
 * The volume is mounted at DIR before and after. Exit status: 0, 1 something is wrong.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PAGE 4096
#define BYTES (20 * PAGE)

static const char *drive, *dir;
static int nth_fd;
static char content[BYTES], got[BYTES];
static char *aligned;

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(": %s\n", strerror(errno));
	exit(1);
}

static void must(bool ok, const char *what)
{
	if (!ok)
		die("%s", what);
}

/*
 * The nth allocation from now on fails; 0: none does any more. Returns how many more it would have
 * taken to the one that was to fail.
 */
static int fail(int nth)
{
	static bool armed;
	static int left;
	char text[16] = "";

	must(pread(nth_fd, text, sizeof(text) - 1, 0) > 0, "reading fail-nth");
	if (armed)
		left = atoi(text);
	armed = nth;
	dprintf(nth_fd, "%d", nth);
	return left;
}

static int result(int ret)
{
	return ret < 0 ? -errno : 0;
}

/* Without failures: a file with the content */
static void make(const char *name)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);

	must(fd >= 0, name);
	must(write(fd, content, BYTES) == BYTES, "writing");
	must(fsync(fd) == 0, "fsync");
	close(fd);
}

static void uncached(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	must(fd >= 0 && write(fd, "3", 1) == 1, "dropping caches");
	close(fd);
}

static bool holds(const char *name, long from, long bytes)
{
	int fd = open(name, O_RDONLY);
	bool ok = fd >= 0 && pread(fd, got, bytes, from) == bytes &&
		  !memcmp(got, content + from, bytes);

	close(fd);
	return ok;
}

static bool there(const char *name)
{
	struct stat st;

	return lstat(name, &st) == 0;
}

static void gone(const char *name)
{
	must(unlink(name) == 0 || errno == ENOENT || (errno == EISDIR && rmdir(name) == 0),
	     name);
}

/*
 * begin() without failures, then do_it() with them, which gives 0 or -errno; done() after
 * success: is it so? Names are relative to the volume.
 */
struct op {
	const char *name;
	void (*begin)(void);
	int (*do_it)(void);
	bool (*done)(void);
};

static int fd_of;

static void b_none(void)
{
}

static bool yes(void)
{
	return true;
}

static void b_new(void)
{
	gone("new");
}

static int do_create(void)
{
	int fd = open("new", O_CREAT | O_EXCL | O_WRONLY, 0600);

	return result(fd < 0 ? -1 : close(fd));
}

static int do_mkdir(void)
{
	return result(mkdir("new", 0700));
}

static int do_symlink(void)
{
	return result(symlink("kept", "new"));
}

static int do_long_symlink(void)
{
	char target[2000];

	memset(target, 'x', sizeof(target));
	target[sizeof(target) - 1] = 0;
	return result(symlink(target, "new"));
}

static int do_mknod(void)
{
	return result(mknod("new", S_IFIFO | 0600, 0));
}

static int do_link(void)
{
	return result(link("kept", "new"));
}

static bool d_new(void)
{
	return there("new");
}

static void b_make(void)
{
	gone("new");
	make("new");
}

static int do_unlink(void)
{
	return result(unlink("new"));
}

static bool d_gone(void)
{
	return !there("new");
}

static int do_rename(void)
{
	return result(rename("new", "renamed"));
}

static bool d_renamed(void)
{
	return !there("new") && holds("renamed", 0, BYTES);
}

static void b_rmdir(void)
{
	gone("new");
	must(mkdir("new", 0700) == 0, "mkdir");
}

static int do_rmdir(void)
{
	return result(rmdir("new"));
}

static void b_open(void)
{
	b_make();
	fd_of = open("new", O_RDWR);
	must(fd_of >= 0, "new");
}

static void b_cold(void)
{
	b_open();
	must(posix_fadvise(fd_of, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
}

static int do_write(void)
{
	ssize_t n = pwrite(fd_of, content, BYTES - 100, 50);

	if (n >= 0 && n < BYTES - 100)
		return -ENOMEM;	/* a part of it */
	return result(n < 0 ? -1 : 0);
}

static bool d_written(void)
{
	return pread(fd_of, got, BYTES, 0) == BYTES && !memcmp(got + 50, content, BYTES - 100);
}

static int do_fsync(void)
{
	return result(fsync(fd_of));
}

static void b_dirty(void)
{
	b_open();
	must(pwrite(fd_of, content, BYTES, BYTES) == BYTES, "writing");
}

static int do_direct(void)
{
	int fd = open("new", O_RDWR | O_DIRECT);
	int ret;

	if (fd < 0)
		return -errno;
	ret = result(pwrite(fd, aligned, BYTES, 0) == BYTES ? 0 : -1);
	if (!ret)
		ret = result(pread(fd, aligned, BYTES, 0) == BYTES ? 0 : -1);
	close(fd);
	return ret;
}

static int do_read(void)
{
	errno = ENOMEM;
	return result(pread(fd_of, got, BYTES, 0) == BYTES ? 0 : -1);
}

static bool d_read(void)
{
	return !memcmp(got, content, BYTES);
}

static int do_truncate(void)
{
	return result(ftruncate(fd_of, PAGE + 7));
}

static bool d_truncated(void)
{
	struct stat st;

	return fstat(fd_of, &st) == 0 && st.st_size == PAGE + 7;
}

static int do_punch(void)
{
	return result(fallocate(fd_of, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100,
				3 * PAGE));
}

static bool d_punched(void)
{
	return pread(fd_of, got, 1, 100) == 1 && !got[0];
}

static int do_map(void)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd_of, 0);
	int ret;

	if (at == MAP_FAILED)
		return -errno;
	at[0] = 1;	/* what fails in a fault is tried again */
	at[5 * PAGE] = 1;
	ret = result(msync(at, BYTES, MS_SYNC));
	munmap(at, BYTES);
	return ret;
}

static bool d_mapped(void)
{
	return pread(fd_of, got, 1, 5 * PAGE) == 1 && got[0] == 1;
}

static int do_seek(void)
{
	return result(lseek(fd_of, 0, SEEK_HOLE) < 0 ? -1 : 0);
}

static int do_chmod(void)
{
	return result(fchmod(fd_of, 0640));
}

static bool d_chmod(void)
{
	struct stat st;

	return fstat(fd_of, &st) == 0 && (st.st_mode & 07777) == 0640;
}

static int do_setxattr(void)
{
	return result(fsetxattr(fd_of, "user.name", content, 700, 0));
}

static bool d_setxattr(void)
{
	return fgetxattr(fd_of, "user.name", got, BYTES) == 700 && !memcmp(got, content, 700);
}

static int do_reserve(void)
{
	return result(fallocate(fd_of, FALLOC_FL_KEEP_SIZE, BYTES, BYTES));
}

static bool d_reserved(void)
{
	struct stat st;

	return fstat(fd_of, &st) == 0 && st.st_blocks * 512 >= 2 * BYTES;
}

static int do_unnamed(void)
{
	char path[64];
	int fd = open(".", O_TMPFILE | O_RDWR, 0600), ret;

	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = result(linkat(AT_FDCWD, path, AT_FDCWD, "new", AT_SYMLINK_FOLLOW));
	close(fd);
	return ret;
}

static int do_extents(void)
{
	static union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + 8 * sizeof(struct fiemap_extent)];
	} of;

	memset(&of, 0, sizeof(of));
	of.map.fm_length = BYTES;
	of.map.fm_extent_count = 8;
	return result(ioctl(fd_of, FS_IOC_FIEMAP, &of.map));
}

static int do_list(void)
{
	DIR *list = opendir(".");

	if (!list)
		return -errno;
	errno = 0;
	while (readdir(list))
		;
	closedir(list);
	return -errno;
}

static int do_stat(void)
{
	struct stat st;

	return result(stat("kept", &st));
}

static int do_statfs(void)
{
	struct statfs st;

	return result(statfs(".", &st));
}

static int do_syncfs(void)
{
	return result(syncfs(fd_of));
}

static int do_freeze(void)
{
	int fd = open(".", O_RDONLY), ret, thaw;

	if (fd < 0)
		return -errno;
	ret = result(ioctl(fd, FIFREEZE, 0));
	if (!ret) {
		thaw = result(ioctl(fd, FITHAW, 0));
		fail(0);
		if (thaw)
			must(ioctl(fd, FITHAW, 0) == 0, "thawing");
	}
	close(fd);
	return ret;
}

static int do_remount(void)
{
	int ret = result(mount(drive, dir, "rfs", MS_REMOUNT | MS_RDONLY, NULL));

	if (ret)
		return ret;
	ret = result(mount(drive, dir, "rfs", MS_REMOUNT, NULL));
	fail(0);
	if (ret)
		must(mount(drive, dir, "rfs", MS_REMOUNT, NULL) == 0, "remount");
	return ret;
}

/* Out of the volume, which is unmounted then */
static void b_unmounted(void)
{
	must(chdir("/") == 0 && umount(dir) == 0, "umount");
}

static int do_mount(void)
{
	int ret = result(mount(drive, dir, "rfs", 0, NULL));

	fail(0);
	if (ret)
		must(mount(drive, dir, "rfs", 0, NULL) == 0, "mount");
	must(chdir(dir) == 0, "chdir");
	return ret;
}

static void b_changed(void)
{
	b_make();
	must(rename("new", "renamed") == 0 && chdir("/") == 0, "renaming");
}

static int do_umount(void)
{
	int ret = result(umount(dir));

	fail(0);
	if (!ret)
		must(mount(drive, dir, "rfs", 0, NULL) == 0, "mount");
	must(chdir(dir) == 0, "chdir");
	return ret;
}

static const struct op ops[] = {
	{ "create", b_new, do_create, d_new },
	{ "mkdir", b_new, do_mkdir, d_new },
	{ "symlink", b_new, do_symlink, d_new },
	{ "long symlink", b_new, do_long_symlink, d_new },
	{ "mknod", b_new, do_mknod, d_new },
	{ "link", b_new, do_link, d_new },
	{ "unlink", b_make, do_unlink, d_gone },
	{ "rmdir", b_rmdir, do_rmdir, d_gone },
	{ "rename", b_make, do_rename, d_renamed },
	{ "write", b_open, do_write, d_written },
	{ "write, not in memory", b_cold, do_write, d_written },
	{ "fsync", b_dirty, do_fsync, yes },
	{ "direct I/O", b_open, do_direct, yes },
	{ "read", b_cold, do_read, d_read },
	{ "truncate", b_open, do_truncate, d_truncated },
	{ "punch", b_open, do_punch, d_punched },
	{ "map", b_cold, do_map, d_mapped },
	{ "seek", b_dirty, do_seek, yes },
	{ "chmod", b_open, do_chmod, d_chmod },
	{ "set attribute", b_open, do_setxattr, d_setxattr },
	{ "reserve", b_open, do_reserve, d_reserved },
	{ "unnamed, then a name", b_new, do_unnamed, d_new },
	{ "extents", b_cold, do_extents, yes },
	{ "list", uncached, do_list, yes },
	{ "stat", uncached, do_stat, yes },
	{ "statfs", b_none, do_statfs, yes },
	{ "syncfs", b_dirty, do_syncfs, yes },
	{ "freeze", b_make, do_freeze, yes },
	{ "remount", b_make, do_remount, yes },
	{ "umount", b_changed, do_umount, d_renamed },
	{ "mount", b_unmounted, do_mount, yes },
};

static void run(const struct op *op)
{
	int nth, failed = 0;

	for (nth = 1;; nth++) {
		int ret, left;

		fd_of = -1;
		op->begin();
		fail(nth);
		ret = op->do_it();
		left = fail(0);
		if (ret && ret != -ENOMEM) {
			errno = -ret;
			die("%s, allocation %d", op->name, nth);
		}
		failed += ret != 0;
		if (!ret && !op->done())
			die("%s, allocation %d: said to be done, and is not", op->name, nth);
		if (fd_of >= 0)
			close(fd_of);
		/* nothing else has suffered */
		if (!holds("kept", 0, BYTES))
			die("%s, allocation %d: what was there before", op->name, nth);
		make("probe");
		if (left)
			break;
	}
	printf("%-22s %3d allocations, %3d of them fail it\n", op->name, nth - 1, failed);
	must(failed < nth, "it never succeeds");
}

static bool chosen(const struct op *op, char **names)
{
	char **name = names;

	while (*name && strcmp(*name, op->name))
		name++;
	return *name || !*names;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 3)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	drive = argv[1];
	dir = argv[2];
	nth_fd = open("/proc/self/fail-nth", O_RDWR);
	must(nth_fd >= 0, "/proc/self/fail-nth");
	must(chdir(dir) == 0, dir);
	for (i = 0; i < BYTES; i++)
		content[i] = i % 251 + 2;
	must(posix_memalign((void **)&aligned, PAGE, BYTES) == 0, "memory");
	memcpy(aligned, content, BYTES);
	make("kept");
	for (i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		if (chosen(&ops[i], argv + 3))
			run(&ops[i]);
	return 0;
}
