/*
 * The media file: a sparse file, mapped and shared with the host's page cache.
 *
 *     header          one page, below; its last third changes, see there
 *     block records   8 bytes a flash block: erases, next page, flags
 *     segment map     4 bytes a flash block of the zones
 *     trim bits       a bit an LBA of a conventional namespace: it is trimmed,
 *                     or, with ftl=disk, written and not trimmed
 *     zone records    8 bytes a zone: what the NVMe side wants kept
 *     zone extensions zd-ext bytes a zone
 *     unit records    16 bytes a unit that the write buffer may keep
 *     area records    8 bytes a page that random write areas may keep
 *     counters        sums since creation, in the order of the log page
 *     blocks          of each: its pages, then 128 bytes of OOB a page
 *     units           the write buffer's: of each slot its data, then its OOB
 *     area pages      of random write areas: data, then OOB
 *
 * Each part begins at a multiple of 4096. Integers are little-endian. Parts
 * before the blocks are allocated on the host's disk at creation, a block, or
 * the part of it that comes next, before it is programmed (rsd_media_reserve,
 * rsd_media_reserve_slots), and given back when it is
 * erased, a unit before it is first needed (rsd_media_reserve_places), all area
 * pages at creation: a store into the mapping never meets a full disk.
 *
 * Killing the process loses nothing that was stored: stores into the mapping,
 * and the data of pages, which goes by pwrite(), are in the page cache, in
 * program order. What remains is to order stores so
 * that every prefix of them is a valid file; nand.c and segment.c say how they
 * do. A power cut of the host machine may lose anything since the last
 * rsd_media_sync(), in any order: opening then finds a consistent drive, an
 * inconsistency that it reports, or pages of zeroes. With host-sync it finds
 * the drive of that sync: see sync.c.
 *
 * The counters follow the log page's table: new ones are to be added at its
 * end, where a file made before has zeroes.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "media.h"

#define MAGIC "RSDMEDIA"
#define VERSION 5u
#define ALIGN 4096u

#define SLOT_BYTES (RSD_PAGE_SIZE + RSD_OOB_SIZE)
#define BEGUN_UNITS 4u          /* a die has at most, but for zones */

/* States of a place for a unit of the write buffer: */
enum {
    PLACE_BARE,                 /* free, without host space */
    PLACE_FREE,
    PLACE_USED,
};

typedef unsigned long long ull;

/* Settings that are part of a file's identity, in the header's order */
#define GEOMETRY(X)                                                       \
    X(channels) X(ways) X(planes) X(blocks) X(pages) X(page_size)         \
    X(spare_blocks) X(bad_ppm) X(seed) X(ftl) X(conv_blocks)              \
    X(over_provision) X(segment) X(zd_ext) X(cell) X(one_shot) X(stripe) \
    X(write_buffer) X(plp) X(zrwa) X(zrwa_size) X(zrwa_flush)

struct RsdMediaHeader {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t compat;            /* features an older program may ignore */
    uint64_t incompat;          /* features it must refuse */
#define FIELD(field) uint64_t field;
    GEOMETRY(FIELD)
#undef FIELD
    uint64_t rec_off;
    uint64_t map_off;
    uint64_t trim_off;
    uint64_t zone_off;
    uint64_t ext_off;
    uint64_t unit_rec_off;
    uint64_t zrwa_rec_off;
    uint64_t counter_off;
    uint64_t data_off;
    uint64_t stride;            /* bytes of a block with its OOB */
    uint64_t unit_off;
    uint64_t unit_bytes;        /* of a unit of the buffer, with OOB */
    uint64_t zrwa_off;
    uint64_t file_bytes;
    uint32_t places;            /* for units of the write buffer */
    uint32_t crc;               /* CRC32C of all before it */
    /* of the operation log that knows all that happened; 0: there is none */
    uint64_t log_id;
    uint64_t sync_id;           /* see sync.c */
    uint8_t reserved2[1704];
    uint64_t oob[RSD_MAX_NAMESPACES];   /* changed by format */
    uint8_t reserved3[2032];
};

#define AT(field, offset) \
    _Static_assert(offsetof(RsdMediaHeader, field) == offset, #field)
AT(magic, 0);
AT(version, 8);
AT(header_bytes, 12);
AT(compat, 16);
AT(incompat, 24);
AT(channels, 32);
AT(ways, 40);
AT(planes, 48);
AT(blocks, 56);
AT(pages, 64);
AT(page_size, 72);
AT(spare_blocks, 80);
AT(bad_ppm, 88);
AT(seed, 96);
AT(ftl, 104);
AT(conv_blocks, 112);
AT(over_provision, 120);
AT(segment, 128);
AT(zd_ext, 136);
AT(cell, 144);
AT(one_shot, 152);
AT(stripe, 160);
AT(write_buffer, 168);
AT(plp, 176);
AT(zrwa, 184);
AT(zrwa_size, 192);
AT(zrwa_flush, 200);
AT(rec_off, 208);
AT(map_off, 216);
AT(trim_off, 224);
AT(zone_off, 232);
AT(ext_off, 240);
AT(unit_rec_off, 248);
AT(zrwa_rec_off, 256);
AT(counter_off, 264);
AT(data_off, 272);
AT(stride, 280);
AT(unit_off, 288);
AT(unit_bytes, 296);
AT(zrwa_off, 304);
AT(file_bytes, 312);
AT(places, 320);
AT(crc, 324);
AT(log_id, 328);
AT(sync_id, 336);
AT(oob, 2048);
_Static_assert(sizeof(RsdMediaHeader) == ALIGN, "the header is a page");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the file's integers are used where they are");

static uint32_t crc32c(const void *buf, size_t len)
{
    const uint8_t *p = buf;
    uint32_t crc = ~0u;

    while (len--) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
        }
    }
    return ~crc;
}

/* Where the part behind one of so many bytes begins */
static uint64_t after(uint64_t off, uint64_t bytes)
{
    return off + rsd_div_round_up(bytes, ALIGN) * ALIGN;
}

/*
 * How many units may have to survive at once: those that fill the buffer, and
 * begun ones, of which a zone has one and a die a few; under a block map, each
 * block one.
 */
static uint32_t count_places(const RsdConfig *cfg, uint64_t zones)
{
    uint64_t full = rsd_buffer_slots(cfg) / rsd_unit_slots(cfg);
    uint64_t dies = cfg->channels * cfg->ways;

    if (!rsd_buffer_on(cfg)) {
        return 0;
    }
    if (rsd_ftl_is(cfg, RSD_FTL_BEGINS_EVERYWHERE)) {
        return full + dies * (cfg->blocks + cfg->spare_blocks);
    }
    if (!cfg->plp && rsd_ftl_is(cfg, RSD_FTL_PADS)) {
        return 0;               /* begun ones are filled up instead */
    }
    return full + zones + BEGUN_UNITS * dies;
}

/*
 * Pages of random write areas that may have to survive at once: one of them
 * twice, when it is written again.
 */
static uint32_t count_zrwa_places(const RsdConfig *cfg)
{
    return cfg->zrwa ? rsd_zrwa_all_slots(cfg) + 1 : 0;
}

/* The header of a file with these settings */
static void make_header(const RsdConfig *cfg, RsdMediaHeader *h)
{
    uint64_t dies = cfg->channels * cfg->ways;
    bool zoned = rsd_ftl_is(cfg, RSD_FTL_ZONED);
    uint64_t conv_blocks = zoned ? cfg->conv_blocks : cfg->blocks;
    uint64_t zones = (cfg->blocks - conv_blocks) *
                     (cfg->segment == RSD_SEGMENT_WAY ? cfg->ways : 1);
    uint64_t all_blocks = dies * (cfg->blocks + cfg->spare_blocks);

    memset(h, 0, sizeof(*h));
    memcpy(h->magic, MAGIC, sizeof(h->magic));
    h->version = VERSION;
    h->header_bytes = sizeof(*h);
#define COPY(field) h->field = cfg->field;
    GEOMETRY(COPY)
#undef COPY
    h->rec_off = sizeof(*h);
    h->map_off = after(h->rec_off, all_blocks * sizeof(uint64_t));
    h->trim_off = after(h->map_off, dies * (cfg->blocks - conv_blocks) *
                                    sizeof(uint32_t));
    /* a conventional namespace has no more LBAs than pages, spares included */
    h->zone_off = after(h->trim_off,
                        rsd_div_round_up(dies * (zoned ? conv_blocks
                                                       : cfg->blocks +
                                                         cfg->spare_blocks) *
                                         rsd_block_slots(cfg), 64) *
                        sizeof(uint64_t));
    h->ext_off = after(h->zone_off, zones * sizeof(RsdMediaZone));
    h->unit_rec_off = after(h->ext_off, zones * cfg->zd_ext);
    h->places = count_places(cfg, zones);
    h->zrwa_rec_off = after(h->unit_rec_off,
                            h->places * sizeof(RsdMediaUnit));
    h->counter_off = after(h->zrwa_rec_off,
                           count_zrwa_places(cfg) * sizeof(uint64_t));
    h->data_off = after(h->counter_off,
                        RSD_LOG_MAX_COUNTERS * sizeof(uint64_t));
    h->stride = after(0, rsd_block_slots(cfg) *
                         (RSD_PAGE_SIZE + RSD_OOB_SIZE));
    h->unit_off = h->data_off + all_blocks * h->stride;
    h->unit_bytes = after(0, rsd_unit_slots(cfg) * SLOT_BYTES);
    h->zrwa_off = h->unit_off + h->places * h->unit_bytes;
    h->file_bytes = after(h->zrwa_off,
                          (uint64_t)count_zrwa_places(cfg) * SLOT_BYTES);
    h->crc = crc32c(h, offsetof(RsdMediaHeader, crc));
    h->oob[0] = cfg->oob;
}

static const char *fs_name(int fd)
{
    static const struct {
        uint32_t magic;
        const char *name;
    } known[] = {
        { 0xef53, "ext2/3/4" }, { 0x58465342, "xfs" }, { 0x9123683e, "btrfs" },
        { 0x01021994, "tmpfs" }, { 0x6969, "nfs" }, { 0x01021997, "9p" },
        { 0x4d44, "vfat" }, { 0x65735546, "fuse" }, { 0x794c7630, "overlay" },
        { 0x2011bab0, "exfat" }, { 0x858458f6, "ramfs" },
        { 0xff534d42, "cifs" }, { 0xfe534d42, "smb2" }, { 0x2fc12fc1, "zfs" },
    };
    struct statfs st;

    if (!fstatfs(fd, &st)) {
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            if ((uint32_t)st.f_type == known[i].magic) {
                return known[i].name;
            }
        }
    }
    return "of unknown type";
}

/* fallocate() of a range, whatever signals do; 0 or -errno */
static int allocate(int fd, int mode, uint64_t off, uint64_t len)
{
    while (fallocate(fd, mode, off, len) < 0) {
        if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

static bool unsupported_fs(const char *path, int fd, int error, char *err)
{
    rsd_set_error(err, "%s: its file system (%s) cannot %s (%s): put the "
                  "media file on ext4, xfs, btrfs or tmpfs", path, fs_name(fd),
                  "allocate and free parts of a file", strerror(error));
    return false;
}

/*
 * Allocates the tables and the pages of random write areas (which a copy of a
 * file may have lost) and sees whether space can be given back, behind the
 * file's end: its content stays.
 */
static bool allocate_tables(const char *path, int fd, const RsdMediaHeader *h,
                            char *err)
{
    int ret = allocate(fd, FALLOC_FL_KEEP_SIZE, 0, h->data_off);
    uint64_t area = h->file_bytes - h->zrwa_off;

    if (!ret && area) {
        ret = allocate(fd, FALLOC_FL_KEEP_SIZE, h->zrwa_off, area);
    }
    if (ret == -ENOSPC || ret == -EDQUOT) {
        rsd_set_error(err, "%s: %s: %llu bytes are needed for the drive's "
                      "tables, and more as it is written; free some space",
                      path, strerror(-ret), (ull)(h->data_off + area));
        return false;
    }
    if (!ret) {
        ret = allocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                       h->file_bytes, ALIGN);
    }
    return ret ? unsupported_fs(path, fd, -ret, err) : true;
}

static bool write_all(int fd, const void *buf, size_t len, uint64_t off)
{
    const char *p = buf;

    while (len) {
        ssize_t n = pwrite(fd, p, len, off);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        p += n;
        off += n;
        len -= n;
    }
    return true;
}

/* Fills the new file fd. */
static bool fill_file(const char *path, int fd, const RsdConfig *cfg, char *err)
{
    uint64_t n = cfg->channels * cfg->ways * (cfg->blocks + cfg->spare_blocks);
    RsdMediaHeader header;
    uint64_t *rec;
    bool ok;

    make_header(cfg, &header);
    if (ftruncate(fd, header.file_bytes) < 0) {
        rsd_set_error(err, "%s: cannot make a sparse file of %llu bytes (%s): "
                      "choose a smaller drive, or a file system that allows "
                      "files of that size", path, (ull)header.file_bytes,
                      strerror(errno));
        return false;
    }
    if (!allocate_tables(path, fd, &header, err)) {
        return false;
    }
    if (cfg->bad_ppm) {
        rec = calloc(n, sizeof(*rec));
        if (!rec) {
            rsd_set_error(err, "%s: no memory for %llu block records",
                          path, (ull)n);
            return false;
        }
        ok = rsd_factory_place_bad(cfg, rec, err);
        if (ok && !write_all(fd, rec, n * sizeof(*rec), header.rec_off)) {
            rsd_set_error(err, "%s: cannot write the block records: %s",
                          path, strerror(errno));
            ok = false;
        }
        free(rec);
        if (!ok) {
            return false;
        }
    }
    if (!write_all(fd, &header, sizeof(header), 0)) {
        rsd_set_error(err, "%s: cannot write the header: %s",
                      path, strerror(errno));
        return false;
    }
    return true;
}

/*
 * A new file beside path; its name is the caller's to free. -1 and errno on
 * failure. (mkstemp() would not ask the umask.)
 */
static int open_temporary(const char *path, char **name)
{
    int fd = -1, error;

    for (int i = 0; i < 100; i++) {
        if (asprintf(name, "%s.new-%ld-%d", path, (long)getpid(), i) < 0) {
            errno = ENOMEM;
            return -1;
        }
        fd = open(*name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            return fd;
        }
        error = errno;
        free(*name);
        errno = error;
        if (error != EEXIST) {
            break;
        }
    }
    return fd;
}

/*
 * On btrfs, a store into a page that has been on disk before would need new
 * space, and space allocated now would not help. Others do not know the flag
 * and do not need it.
 */
static void store_in_place(int fd)
{
    int flags;

    if (!ioctl(fd, FS_IOC_GETFLAGS, &flags)) {
        flags |= FS_NOCOW_FL;
        ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
}

bool rsd_media_create(const char *path, const RsdConfig *cfg,
                      char err[RSD_ERR_LEN])
{
    char *tmp;
    bool ok;
    int fd;

    if (!rsd_config_check(cfg, err)) {
        return false;
    }
    /* made under another name, then linked: it exists whole or not at all */
    fd = open_temporary(path, &tmp);
    if (fd < 0) {
        rsd_set_error(err, "%s: cannot create a media file there: %s",
                      path, strerror(errno));
        return false;
    }
    store_in_place(fd);
    ok = fill_file(path, fd, cfg, err);
    if (ok && access(path, F_OK)) {
        rsd_sync_forget(path);  /* of another file, that is no more */
    }
    if (ok && link(tmp, path) < 0) {
        rsd_set_error(err, "%s: cannot create the media file: %s%s", path,
                      strerror(errno), errno != EEXIST ? "" :
                      access(path, F_OK) ?
                      "; it is a link to a file that is not there" :
                      "; open it as it is, or remove it first");
        ok = false;
    }
    unlink(tmp);
    close(fd);
    free(tmp);
    return ok;
}

/* Reads and checks what does not depend on the settings asked for. */
static bool read_header(const char *path, int fd, RsdMediaHeader *h, char *err)
{
    RsdMediaHeader expected;
    RsdConfig cfg;
    char reason[RSD_ERR_LEN];
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) < 0) {
        rsd_set_error(err, "%s: %s", path, strerror(errno));
        return false;
    }
    if (!S_ISREG(st.st_mode)) {
        rsd_set_error(err, "%s is not a regular file: give a file's name",
                      path);
        return false;
    }
    n = pread(fd, h, sizeof(*h), 0);
    if (n < 0) {
        rsd_set_error(err, "%s: cannot read the header: %s",
                      path, strerror(errno));
        return false;
    }
    if (n < (ssize_t)sizeof(h->magic) ||
        memcmp(h->magic, MAGIC, sizeof(h->magic))) {
        rsd_set_error(err, "%s is not an rsd media file (it does not begin "
                      "with " MAGIC "): give another name, or remove it to "
                      "have a new one made", path);
        return false;
    }
    if (n < (ssize_t)sizeof(*h)) {
        rsd_set_error(err, "%s is truncated: %llu bytes, its header alone has "
                      "%llu; restore it from a copy, or remove it", path,
                      (ull)st.st_size, (ull)sizeof(*h));
        return false;
    }
    if (h->version != VERSION) {
        rsd_set_error(err, "%s has format version %u, this program knows "
                      "version %u: use the program that made it, or a newer "
                      "one", path, h->version, VERSION);
        return false;
    }
    if (h->crc != crc32c(h, offsetof(RsdMediaHeader, crc))) {
        rsd_set_error(err, "%s has a corrupt header (checksum %08x, computed "
                      "%08x): restore it from a copy, or remove it", path,
                      h->crc, crc32c(h, offsetof(RsdMediaHeader, crc)));
        return false;
    }
    if (h->incompat) {
        rsd_set_error(err, "%s uses features 0x%llx that this program does "
                      "not know: use the program that made it, or a newer one",
                      path, (ull)h->incompat);
        return false;
    }
    /* the rest of it must be what its own settings lead to */
    rsd_preset_find("custom")->apply(&cfg);
#define COPY(field) cfg.field = h->field;
    GEOMETRY(COPY)
#undef COPY
    cfg.oob = h->oob[0];
    if (!rsd_config_check(&cfg, reason)) {
        rsd_set_error(err, "%s has a corrupt header (%.300s): restore it from "
                      "a copy, or remove it", path, reason);
        return false;
    }
    make_header(&cfg, &expected);
    expected.compat = h->compat;
    if (memcmp(h, &expected, offsetof(RsdMediaHeader, crc))) {
        rsd_set_error(err, "%s has a corrupt header (its offsets do not fit "
                      "its settings): restore it from a copy, or remove it",
                      path);
        return false;
    }
    if (h->oob[1] != 0 && h->oob[1] != 16 && h->oob[1] != RSD_SPARE_OFFSET) {
        rsd_set_error(err, "%s has a corrupt header (%llu bytes of OOB in "
                      "namespace 1): restore it from a copy, or remove it",
                      path, (ull)h->oob[1]);
        return false;
    }
    if ((uint64_t)st.st_size != h->file_bytes) {
        rsd_set_error(err, "%s is truncated or was extended: %llu bytes, its "
                      "header says %llu; restore it from a copy, or remove it",
                      path, (ull)st.st_size, (ull)h->file_bytes);
        return false;
    }
    return true;
}

bool rsd_media_info(const char *path, RsdConfig *cfg, char err[RSD_ERR_LEN])
{
    RsdMediaHeader header;
    /* not to wait for the other end, should it be a pipe */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok;

    if (fd < 0) {
        rsd_set_error(err, "%s: cannot open it: %s", path, strerror(errno));
        return false;
    }
    ok = read_header(path, fd, &header, err);
    close(fd);
    if (ok) {
        rsd_preset_find("custom")->apply(cfg);
#define COPY(field) cfg->field = header.field;
        GEOMETRY(COPY)
#undef COPY
        cfg->oob = header.oob[0];
    }
    return ok;
}

static const RsdProp *prop_at(size_t offset)
{
    for (size_t i = 0; i < rsd_num_props; i++) {
        if (rsd_props[i].offset == offset) {
            return &rsd_props[i];
        }
    }
    return NULL;
}

static void add_difference(char *list, size_t size, size_t offset,
                           uint64_t file, uint64_t asked)
{
    const RsdProp *prop = prop_at(offset);
    size_t len = strlen(list);

    if (file == asked) {
        return;
    }
    if (prop->kind == RSD_PROP_ENUM) {
        snprintf(list + len, size - len, "%s%s: the file has %s, %s was asked for",
                 len ? "; " : "", prop->name, prop->names[file],
                 prop->names[asked]);
    } else {
        snprintf(list + len, size - len,
                 "%s%s: the file has %llu, %llu was asked for",
                 len ? "; " : "", prop->name, (ull)file, (ull)asked);
    }
}

static bool same_geometry(const char *path, const RsdMediaHeader *h,
                          const RsdConfig *cfg, char *err)
{
    char list[RSD_ERR_LEN / 2 + 64] = "";

#define COMPARE(field) \
    add_difference(list, sizeof(list), offsetof(RsdConfig, field), \
                   h->field, cfg->field);
    GEOMETRY(COMPARE)
#undef COMPARE
    if (*list) {
        rsd_set_error(err, "%.100s was made with other settings, which never "
                      "change (%s): give the file's values, or leave these "
                      "settings out, or give another file", path, list);
        return false;
    }
    return true;
}

static bool lock_file(const char *path, int fd, bool view, char *err)
{
    struct flock lock = { .l_type = view ? F_RDLCK : F_WRLCK,
                          .l_whence = SEEK_SET };

    if (!fcntl(fd, F_OFD_SETLK, &lock)) {
        return true;
    }
    if (errno == EAGAIN || errno == EACCES) {
        rsd_set_error(err, "%s is in use by another process: end that one, or "
                      "give another file", path);
    } else {
        rsd_set_error(err, "%s: cannot lock it: %s", path, strerror(errno));
    }
    return false;
}

static void set_parts(RsdMedia *media, const RsdMediaHeader *h,
                      const RsdConfig *cfg)
{
    media->rec = (uint64_t *)(media->base + h->rec_off);
    media->map = (uint32_t *)(media->base + h->map_off);
    media->trim = (uint64_t *)(media->base + h->trim_off);
    media->zones = (RsdMediaZone *)(media->base + h->zone_off);
    media->ext = media->base + h->ext_off;
    media->counters = (RsdCounters *)(media->base + h->counter_off);
    media->units = h->places ? (RsdMediaUnit *)(media->base + h->unit_rec_off)
                             : NULL;
    media->places = h->places;
    media->unit_off = h->unit_off;
    media->unit_bytes = h->unit_bytes;
    media->zrwa_places = count_zrwa_places(cfg);
    media->zrwa = (uint64_t *)(media->base + h->zrwa_rec_off);
    media->zrwa_off = h->zrwa_off;
    media->table_bytes = h->data_off;
    media->data_off = h->data_off;
    media->stride = h->stride;
    media->pages = h->pages * h->planes * (h->page_size / RSD_PAGE_SIZE);
}

/* What a sync has left in FILE.sync goes to its place, see sync.c. */
static bool finish_sync(const char *path, int fd, const RsdSyncFound *found,
                        char *err)
{
    bool ok = true;

    for (uint64_t i = 0, off; ok && i < found->pages; i++) {
        const uint8_t *page = rsd_sync_page(found, i, &off);

        ok = write_all(fd, page, ALIGN, off);
    }
    if (found->buf) {
        ok = ok && write_all(fd, &found->id, sizeof(found->id),
                             offsetof(RsdMediaHeader, sync_id)) &&
             !fdatasync(fd);
    }
    if (!ok) {
        rsd_set_error(err, "%s: cannot store what %s.sync has of it: %s", path,
                      path, strerror(errno));
        return false;
    }
    rsd_sync_forget(path);
    return true;
}

bool rsd_media_open(RsdMedia *media, const char *path, RsdConfig *cfg,
                    bool view, char err[RSD_ERR_LEN])
{
    int fd = open(path, (view ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    RsdMediaHeader header;
    RsdSyncFound found;

    if (fd < 0) {
        rsd_set_error(err, "%s: cannot open it: %s", path, strerror(errno));
        return false;
    }
    if (!lock_file(path, fd, view, err) ||
        !read_header(path, fd, &header, err) ||
        !same_geometry(path, &header, cfg, err) ||
        (!view && !allocate_tables(path, fd, &header, err))) {
        close(fd);
        return false;
    }
    found = rsd_sync_find(path, header.sync_id, header.data_off, err);
    if (!found.ok || (!view && !finish_sync(path, fd, &found, err))) {
        free(found.buf);
        close(fd);
        return false;
    }
    media->base = mmap(NULL, header.file_bytes, PROT_READ | PROT_WRITE,
                       view ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED, fd, 0);
    if (media->base == MAP_FAILED) {
        rsd_set_error(err, "%s: cannot map its %llu bytes: %s", path,
                      (ull)header.file_bytes, strerror(errno));
        free(found.buf);
        close(fd);
        return false;
    }
    for (uint64_t i = 0, off; view && i < found.pages; i++) {
        const uint8_t *page = rsd_sync_page(&found, i, &off);

        memcpy(media->base + off, page, ALIGN);
    }
    free(found.buf);
    media->fd = view ? -1 : fd;
    media->locked = fd;
    media->mapped = header.file_bytes;
    media->header = (RsdMediaHeader *)media->base;
    media->sync_id = &media->header->sync_id;
    media->data = media->base + header.data_off;
    set_parts(media, &header, cfg);
    rsd_media_watch(media);
    media->place_state = calloc(1, header.places + 1);
    if (!media->place_state) {
        rsd_set_error(err, "%s: no memory for its write buffer", path);
        rsd_media_close(media);
        return false;
    }
    cfg->oob = media->header->oob[0];
    return true;
}

bool rsd_media_open_memory(RsdMedia *media, const RsdConfig *cfg,
                           char err[RSD_ERR_LEN])
{
    RsdMediaHeader header;

    make_header(cfg, &header);
    media->base = mmap(NULL, header.data_off, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (media->base == MAP_FAILED) {
        rsd_set_error(err, "no memory for the drive's tables (%llu bytes): "
                      "choose fewer blocks of more pages",
                      (ull)header.data_off);
        return false;
    }
    media->fd = -1;
    media->locked = -1;
    media->mapped = header.data_off;
    media->header = NULL;
    media->data = NULL;
    set_parts(media, &header, cfg);
    media->units = NULL;        /* nothing survives */
    media->places = 0;
    media->zrwa_places = 0;
    if (!rsd_factory_place_bad(cfg, media->rec, err)) {
        rsd_media_close(media);
        return false;
    }
    return true;
}

void rsd_media_close(RsdMedia *media)
{
    rsd_media_end_sync(media);
    rsd_media_unwatch(media);
    munmap(media->base, media->mapped);
    free(media->place_state);
    if (media->locked >= 0) {
        close(media->locked);
    }
}

static void set_place_free(RsdMedia *media, uint32_t place)
{
    media->place_state[place] = PLACE_FREE;
    if (place < media->first_free) {
        media->first_free = place;
    }
}

void rsd_media_power_on(RsdMedia *media)
{
    for (uint32_t i = 0; i < media->places; i++) {
        if (media->place_state[i] == PLACE_USED) {
            set_place_free(media, i);
        }
    }
    media->failed = false;
}

uint32_t rsd_media_get_oob(const RsdMedia *media, uint32_t ns)
{
    return media->header ? media->header->oob[ns] : 0;
}

void rsd_media_set_oob(RsdMedia *media, uint32_t ns, uint32_t oob)
{
    uint64_t value = oob;

    if (media->header) {
        rsd_media_note(media, &media->header->oob[ns], &value, sizeof(value));
        media->header->oob[ns] = oob;
    }
}

void rsd_media_save_zone(RsdMedia *media, uint32_t zone, uint8_t state,
                         uint8_t attrs)
{
    RsdMediaZone *z = &media->zones[zone];
    RsdMediaZone will = *z;

    will.state = state;
    will.attrs = attrs;
    rsd_media_note(media, z, &will, sizeof(will));
    z->state = state;
    z->attrs = attrs;
}

void rsd_media_save_ext(RsdMedia *media, uint32_t zone, const uint8_t *ext,
                        uint32_t len)
{
    static const uint8_t zeroes[16320]; /* the most that zd-ext can be */
    uint8_t *to = media->ext + (size_t)zone * len;

    if (!len) {
        return;
    }
    ext = ext ? ext : zeroes;
    rsd_media_note(media, to, ext, len);
    memcpy(to, ext, len);
}

static uint64_t digest(uint64_t id, const void *data, uint64_t bytes)
{
    const uint64_t *word = data;

    for (uint64_t i = 0; i < bytes / sizeof(*word); i++) {
        id = rsd_random(id, word[i]);
    }
    return id;
}

uint64_t rsd_media_digest(const RsdMedia *media)
{
    const RsdMediaHeader *h = media->header;
    uint64_t id = rsd_random(h->seed, h->log_id);

    id = digest(id, media->rec, h->map_off - h->rec_off);
    return digest(id, media->counters, sizeof(*media->counters));
}

uint64_t rsd_media_get_log_id(const RsdMedia *media)
{
    return media->header->log_id;
}

void rsd_media_set_log_id(RsdMedia *media, uint64_t id)
{
    __atomic_store_n(&media->header->log_id, id, __ATOMIC_SEQ_CST);
}

/* Host space for a range of the file. 0 or -errno */
static int back(const RsdMedia *media, uint64_t off, uint64_t len)
{
    return media->fd < 0 ? 0 : allocate(media->fd, FALLOC_FL_KEEP_SIZE, off,
                                        len);
}

int rsd_media_reserve_slots(RsdMedia *media, uint32_t block, uint32_t slots)
{
    uint64_t at = media->data_off + block * media->stride;
    int ret = back(media, at, (uint64_t)slots * RSD_PAGE_SIZE);

    return ret ? ret : back(media, at + (uint64_t)media->pages * RSD_PAGE_SIZE,
                            (uint64_t)slots * RSD_OOB_SIZE);
}

int rsd_media_reserve_data(RsdMedia *media, uint32_t block, uint32_t page,
                           uint32_t n)
{
    return back(media, rsd_media_page(media, block, page) - media->base,
                (uint64_t)n * RSD_PAGE_SIZE);
}

int rsd_media_reserve(RsdMedia *media, uint32_t block)
{
    return back(media, media->data_off + block * media->stride,
                media->stride);
}

static bool store_at(const RsdMedia *media, off_t at, const uint8_t *data,
                     size_t bytes)
{
    size_t done = 0;

    if (media->fd < 0) {
        memcpy(media->base + at, data, bytes);
        return true;
    }
    if (rsd_sync_has_failed(media)) {
        return false;
    }
    while (done < bytes) {
        ssize_t n = pwrite(media->fd, data + done, bytes - done, at + done);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? n : 0;
    }
    return true;
}

static bool load_at(const RsdMedia *media, off_t at, uint8_t *data,
                    size_t bytes)
{
    size_t done = 0;

    if (media->fd < 0) {
        memcpy(data, media->base + at, bytes);
        return true;
    }
    while (done < bytes) {
        ssize_t n = pread(media->fd, data + done, bytes - done, at + done);

        if (!n || (n < 0 && errno != EINTR)) {
            return false;
        }
        done += n > 0 ? n : 0;
    }
    return true;
}

bool rsd_media_store(RsdMedia *media, uint32_t block, uint32_t page,
                     const uint8_t *data)
{
    return store_at(media, rsd_media_page(media, block, page) - media->base,
                    data, RSD_PAGE_SIZE);
}

bool rsd_media_load(RsdMedia *media, uint32_t block, uint32_t page,
                    uint8_t *data)
{
    return load_at(media, rsd_media_page(media, block, page) - media->base,
                   data, RSD_PAGE_SIZE);
}

/* Tables are stored into by way of the mapping, the rest by system calls. */
bool rsd_media_get(const RsdMedia *media, uint64_t off, void *to, uint32_t len)
{
    if (off < media->table_bytes) {
        memcpy(to, media->base + off, len);
        return true;
    }
    return load_at(media, off, to, len);
}

bool rsd_media_put(const RsdMedia *media, uint64_t off, const void *from,
                   uint32_t len)
{
    if (off < media->table_bytes) {
        memcpy(media->base + off, from, len);
        return true;
    }
    return store_at(media, off, from, len);
}

/*
 * Places for units of the write buffer
 */

static off_t unit_at(const RsdMedia *media, uint32_t place)
{
    return media->unit_off + place * media->unit_bytes;
}

RsdStatus rsd_media_reserve_places(RsdMedia *media, uint64_t count)
{
    if (count > media->places || media->sync) {
        count = media->places;  /* the more, the fewer syncs: see sync.c */
    }
    for (uint32_t i = media->first_bare; media->backed < count; i++) {
        int ret;

        if (media->place_state[i] != PLACE_BARE) {
            continue;
        }
        media->first_bare = i;
        ret = back(media, unit_at(media, i), media->unit_bytes);
        if (ret) {
            return ret == -ENOSPC || ret == -EDQUOT ? RSD_E_NOSPC
                                                    : RSD_E_MEDIA;
        }
        set_place_free(media, i);
        media->backed++;
    }
    return RSD_OK;
}

uint32_t rsd_media_place(RsdMedia *media)
{
    const uint8_t *from = media->place_state + media->first_free;
    const uint8_t *found = memchr(from, PLACE_FREE,
                                  media->places - media->first_free);
    uint32_t place;

    assert(found);
    place = found - media->place_state;
    media->first_free = place;
    /* rather one that can be stored into without a sync */
    for (uint32_t i = place; media->sync && i < media->places; i++) {
        if (media->place_state[i] == PLACE_FREE &&
            !rsd_sync_is_taken(media, i)) {
            place = i;
            break;
        }
    }
    media->place_state[place] = PLACE_USED;
    media->first_free += place == media->first_free;
    return place;
}

bool rsd_media_claim_place(RsdMedia *media, uint32_t place)
{
    if (back(media, unit_at(media, place), media->unit_bytes)) {
        return false;
    }
    media->backed += media->place_state[place] == PLACE_BARE;
    media->place_state[place] = PLACE_USED;
    return true;
}

bool rsd_media_has_unit(const RsdMedia *media, uint32_t block, uint32_t page)
{
    for (uint32_t i = 0; media->units && i < media->places; i++) {
        const RsdMediaUnit *unit = &media->units[i];

        if (unit->taken && unit->block == block && unit->page == page) {
            return true;
        }
    }
    return false;
}

bool rsd_media_store_unit(RsdMedia *media, uint32_t place, uint32_t block,
                          uint32_t page, const uint8_t *payload, uint32_t from,
                          uint32_t to)
{
    RsdMediaUnit *unit = &media->units[place];
    off_t at = unit_at(media, place) + from * (off_t)SLOT_BYTES;

    if (media->journal) {
        RsdMediaUnit will = *unit;

        if (!from) {
            will.block = block;
            will.page = page;
        }
        will.taken = to;
        media->journal->before_data(media->journal_state, at,
                                    (to - from) * SLOT_BYTES);
        rsd_media_note(media, unit, &will, sizeof(will));
    }
    if (!from) {
        unit->block = block;
        unit->page = page;
    }
    if (!store_at(media, at, payload + from * (size_t)SLOT_BYTES,
                  (to - from) * (size_t)SLOT_BYTES)) {
        return false;
    }
    /* release: what is declared by it was stored before */
    __atomic_store_n(&unit->taken, to, __ATOMIC_RELEASE);
    return true;
}

bool rsd_media_load_unit(RsdMedia *media, uint32_t place, uint8_t *payload,
                         uint32_t slots)
{
    return load_at(media, unit_at(media, place), payload,
                   slots * (size_t)SLOT_BYTES);
}

void rsd_media_drop_unit(RsdMedia *media, uint32_t place)
{
    uint32_t none = 0;

    rsd_media_note(media, &media->units[place].taken, &none, sizeof(none));
    __atomic_store_n(&media->units[place].taken, 0, __ATOMIC_RELEASE);
    set_place_free(media, place);
}

/*
 * Places for pages of random write areas
 */

static off_t zrwa_at(const RsdMedia *media, uint32_t place)
{
    return media->zrwa_off + place * (off_t)SLOT_BYTES;
}

bool rsd_media_store_zrwa(RsdMedia *media, uint32_t place, uint64_t word,
                          const uint8_t *payload)
{
    if (media->journal) {
        media->journal->before_data(media->journal_state,
                                    zrwa_at(media, place), SLOT_BYTES);
        rsd_media_note(media, &media->zrwa[place], &word, sizeof(word));
    }
    if (!store_at(media, zrwa_at(media, place), payload, SLOT_BYTES)) {
        return false;
    }
    /* release: what is declared by it was stored before */
    __atomic_store_n(&media->zrwa[place], word, __ATOMIC_RELEASE);
    return true;
}

bool rsd_media_load_zrwa(RsdMedia *media, uint32_t place, uint8_t *payload)
{
    return load_at(media, zrwa_at(media, place), payload, SLOT_BYTES);
}

void rsd_media_drop_zrwa(RsdMedia *media, uint32_t place)
{
    uint64_t none = 0;

    rsd_media_note(media, &media->zrwa[place], &none, sizeof(none));
    __atomic_store_n(&media->zrwa[place], none, __ATOMIC_RELEASE);
}

void rsd_media_release(RsdMedia *media, uint32_t block)
{
    const RsdJournal *journal = media->journal;

    if (media->fd >= 0 &&
        !(journal && journal->keeps(media->journal_state, block))) {
        /* if it fails, the space is merely kept */
        allocate(media->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                 media->data_off + block * media->stride, media->stride);
    }
}
