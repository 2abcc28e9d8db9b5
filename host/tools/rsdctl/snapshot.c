// SPDX-License-Identifier: GPL-2.0-or-later
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "snapshot.h"

#define INFO(field, unit, doc) { #field, unit, doc },
const struct counter_info counter_infos[RSD_NUM_COUNTERS] = {
	RSD_COUNTERS(INFO)
};

/* JSON is a page's counters in words, which is far below this. */
#define MAX_FILE (1 << 20)

bool page_is_ours(const void *page, const char *source)
{
	const RsdLogPage *p = page;
	uint64_t magic;

	memcpy(&magic, &p->magic, sizeof(magic));
	if (le64toh(magic) == RSD_LOG_MAGIC)
		return true;
	error("%s: log page 0x%02x does not begin with the mark of an rsd drive (found 0x%016" PRIx64 "): another vendor's drive, or not this log",
	      source, RSD_LOG_ID, le64toh(magic));
	return false;
}

int snapshot_from_page(struct snapshot *s, const void *page,
		       const char *source)
{
	unsigned int version, count, i;
	RsdLogPage p;

	if (!page_is_ours(page, source))
		return -1;
	memcpy(&p, page, sizeof(p));
	version = le16toh(p.version);
	count = le16toh(p.num_counters);
	if (version > RSD_LOG_VERSION) {
		error("%s: log version %u is newer than this rsdctl, which reads version %u: use the rsdctl that came with the drive",
		      source, version, RSD_LOG_VERSION);
		return -1;
	}
	if (!version || !count || count > RSD_LOG_MAX_COUNTERS ||
	    !p.bucket_erases) {
		error("%s: corrupt log page: version %u, %u counters (1 to %u expected), histogram buckets of %u erases",
		      source, version, count, RSD_LOG_MAX_COUNTERS,
		      le32toh(p.bucket_erases));
		return -1;
	}
	if (count > RSD_NUM_COUNTERS)
		error("%s: note: the drive has %u counters, this rsdctl knows the first %zu",
		      source, count, RSD_NUM_COUNTERS);

	memset(s, 0, sizeof(*s));
	for (i = 0; i < count && i < RSD_NUM_COUNTERS; i++) {
		s->values[i] = le64toh(p.counters[i]);
		s->present[i] = true;
	}
	s->bucket_erases = le32toh(p.bucket_erases);
	for (i = 0; i < RSD_LOG_HISTOGRAM; i++)
		s->histogram[i] = le64toh(p.erase_histogram[i]);
	return 0;
}

int snapshot_from_file(struct snapshot *s, const char *path)
{
	bool standard = !strcmp(path, "-");
	FILE *file = standard ? stdin : fopen(path, "rb");
	static char text[MAX_FILE + 1];
	const char *wrong;
	size_t len, first;
	int failed;

	if (!file) {
		error("%s: %s", path, strerror(errno));
		return -1;
	}
	len = fread(text, 1, MAX_FILE, file);
	failed = ferror(file) ? errno : 0;
	if (!standard)
		fclose(file);
	if (failed) {
		error("%s: %s", path, strerror(failed));
		return -1;
	}
	text[len] = 0;
	first = strspn(text, " \t\r\n");
	if (text[first] == '{') {
		wrong = strlen(text) != len ? "it holds a zero byte" :
					      json_read_counters(s, text);
		if (!wrong)
			return 0;
		error("%s: not what rsdctl show --json prints: %s", path,
		      wrong);
		return -1;
	}
	if (len != RSD_LOG_BYTES) {
		error("%s: %zu bytes%s; the log page has %zu: nvme get-log DEVICE --log-id=0x%02x --log-len=%zu --raw-binary",
		      path, len, len == MAX_FILE ? " or more" : "",
		      RSD_LOG_BYTES, RSD_LOG_ID, RSD_LOG_BYTES);
		return -1;
	}
	return snapshot_from_page(s, text, path);
}

struct derived snapshot_derive(const RsdCounters *c)
{
	uint64_t reads = c->read_host + c->read_clean + c->read_merge +
			 c->read_wear + c->read_map + c->read_pad;
	uint64_t programs = c->prog_host + c->prog_clean + c->prog_merge +
			    c->prog_wear + c->prog_map + c->prog_pad;
	uint64_t erases = c->erase_host + c->erase_clean + c->erase_merge +
			  c->erase_wear + c->erase_map + c->erase_pad;
	uint64_t operations = reads + programs + erases;
	struct derived d = { 0 };

	if (c->host_write_pages) {
		d.has_write_amplification = true;
		d.write_amplification = (double)programs / c->host_write_pages;
	}
	if (operations) {
		d.has_mean_queue_wait = true;
		d.mean_queue_wait_ns = (double)c->queue_wait_ns / operations;
	}
	return d;
}
