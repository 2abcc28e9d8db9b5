// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This stops the machine that it runs in at one instruction: a write to QEMU's
 * device for panicked guests, pvpanic-pci, with -action panic=pause. guest/init
 * runs it where the guest is saved, and goes on when a saved guest does.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICES "/sys/bus/pci/devices"
#define VENDOR 0x1b36		/* Red Hat, as QEMU's devices have it */
#define DEVICE 0x0011		/* pvpanic-pci */
#define PANICKED 1		/* docs/specs/pvpanic.rst */
#define PAGE 4096ul

/* The first number of a file in a device's directory, or 0. */
static uint64_t number_in(const char *device, const char *name)
{
	char path[512], text[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/%s", DEVICES, device, name);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (!fgets(text, sizeof(text), file))
		text[0] = 0;
	fclose(file);
	return strtoull(text, NULL, 16);
}

static int open_in(const char *device, const char *name, int flags)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s", DEVICES, device, name);
	fd = open(path, flags);
	if (fd < 0)
		fprintf(stderr, "savepoint: %s: %s\n", path, strerror(errno));
	return fd;
}

/* Writes to the device's first register. Returns -1 if it cannot. */
static int stop(const char *device)
{
	/*
	 * This is the page that the device's registers are in. They need not
	 * begin there.
	 */
	uint64_t offset = number_in(device, "resource") % PAGE;
	uint8_t *page;
	int fd;

	fd = open_in(device, "enable", O_WRONLY);
	if (fd < 0)
		return -1;
	if (write(fd, "1", 1) != 1) {
		fprintf(stderr, "savepoint: %s: %s\n", device, strerror(errno));
		return -1;
	}
	close(fd);
	fd = open_in(device, "resource0", O_RDWR);
	if (fd < 0)
		return -1;
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		fprintf(stderr, "savepoint: %s: %s\n", device, strerror(errno));
		return -1;
	}
	/* This is a store that the compiler neither drops nor splits. */
	__atomic_store_n(&page[offset], PANICKED, __ATOMIC_SEQ_CST);
	return 0;
}

int main(void)
{
	DIR *devices = opendir(DEVICES);
	struct dirent *entry;

	while (devices && (entry = readdir(devices))) {
		if (number_in(entry->d_name, "vendor") == VENDOR &&
		    number_in(entry->d_name, "device") == DEVICE)
			return stop(entry->d_name) ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	fprintf(stderr, "savepoint: no device pvpanic-pci under %s\n", DEVICES);
	return EXIT_FAILURE;
}
