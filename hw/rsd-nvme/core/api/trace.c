/*
 * Native traces: writing and reading them. The format is described in trace.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "trace.h"

#define MAX_SETTINGS 65536u     /* bytes; more is not ours */
#define HASH_PAGE 4096u
#define BUFFER 65536u

typedef unsigned long long ull;

typedef struct Header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;      /* this, settings and padding: the records */
    uint32_t record_bytes;
    uint32_t settings_bytes;
    uint64_t media_hash;
    uint8_t reserved[24];
    uint64_t check;             /* of the bytes before it, and the settings */
} Header;

_Static_assert(sizeof(Header) == 64, "the header is 64 bytes");
_Static_assert(offsetof(Header, version) == 8, "version");
_Static_assert(offsetof(Header, settings_bytes) == 20, "settings_bytes");
_Static_assert(offsetof(Header, media_hash) == 24, "media_hash");
_Static_assert(offsetof(Header, check) == 56, "check");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the file's integers are used where they are");

struct RsdTrace {
    char *path;
    int fd;
    int error;                  /* errno of the first failure */
    off_t end;                  /* after the last whole record */
};

struct RsdTraceReader {
    char *path;
    FILE *file;
    uint64_t number;            /* of the record read last */
    uint64_t records;           /* whole ones in the file */
    uint64_t submitted;         /* commands so far */
    uint64_t last_submit;       /* ns */
    unsigned torn;
    bool ended;
};

/*
 * Hashing. Multiply and fold: any change of a bit changes the result; nothing
 * here is meant to withstand somebody who wants two files of one hash.
 */

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)(a ^ 0x9e3779b97f4a7c15u) *
                                (b ^ 0xd6e8feb86659fd93u);

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_bytes(const void *buf, size_t len, uint64_t hash)
{
    const uint8_t *p = buf;
    uint64_t word;

    for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        hash = mix(hash, word) + word;
    }
    word = 0;
    if (len) {
        memcpy(&word, p, len);
    }
    return mix(hash, word) + len;
}

static bool all_zero(const uint8_t *page)
{
    return !page[0] && !memcmp(page, page + 1, HASH_PAGE - 1);
}

/* Returns a sum over pages that are not zero, so holes do not matter. */
bool rsd_trace_hash_media(const char *path, uint64_t *hash,
                          char err[RSD_ERR_LEN])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *buf = malloc(BUFFER);
    uint64_t sum = 0, off = 0;
    struct stat st;

    if (fd < 0 || !buf || fstat(fd, &st) < 0) {
        rsd_set_error(err, "%s: cannot read it for its hash: %s", path,
                      strerror(errno));
        goto fail;
    }
    while (off < (uint64_t)st.st_size) {
        off_t data = lseek(fd, off, SEEK_DATA);
        ssize_t n;

        if (data < 0 && errno == ENXIO) {
            break;              /* a hole up to the end */
        }
        if (data > 0) {         /* else: a file system that cannot tell */
            off = (uint64_t)data / HASH_PAGE * HASH_PAGE;
        }
        n = pread(fd, buf, BUFFER, off);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            rsd_set_error(err, "%s: cannot read byte %llu for its hash: %s",
                          path, (ull)off, n ? strerror(errno) : "it shrinks");
            goto fail;
        }
        memset(buf + n, 0, BUFFER - n);
        for (size_t at = 0; at < (size_t)n; at += HASH_PAGE) {
            if (!all_zero(buf + at)) {
                sum += hash_bytes(buf + at, HASH_PAGE, off + at);
            }
        }
        off += rsd_div_round_up(n, HASH_PAGE) * HASH_PAGE;
    }
    *hash = mix(sum, st.st_size);
    free(buf);
    close(fd);
    return true;
fail:
    free(buf);
    if (fd >= 0) {
        close(fd);
    }
    return false;
}

static uint32_t record_check(const RsdTraceRecord *record)
{
    uint64_t hash = hash_bytes(record, offsetof(RsdTraceRecord, check), 0);

    return hash ^ hash >> 32;
}

/*
 * Operations
 */

static const char *const op_names[] = {
    [RSD_TRACE_READ] = "read",
    [RSD_TRACE_WRITE] = "write",
    [RSD_TRACE_WRITE_ZEROES] = "write zeroes",
    [RSD_TRACE_ZONE_RESET] = "zone reset",
    [RSD_TRACE_ZONE_FINISH] = "zone finish",
    [RSD_TRACE_FLUSH] = "flush",
    [RSD_TRACE_TRIM] = "trim",
    [RSD_TRACE_FORMAT] = "format",
    [RSD_TRACE_ZRWA_OPEN] = "open of a random write area",
    [RSD_TRACE_ZRWA_COMMIT] = "commit of a random write area",
};

#define NUM_OPS (sizeof(op_names) / sizeof(op_names[0]))

const char *rsd_trace_op_name(unsigned op)
{
    return op < NUM_OPS ? op_names[op] : "unknown";
}

RsdTraceOp rsd_trace_op(RsdOp op)
{
    switch (op) {
    case RSD_READ:
        return RSD_TRACE_READ;
    case RSD_WRITE:
        return RSD_TRACE_WRITE;
    case RSD_WRITE_ZEROES:
        return RSD_TRACE_WRITE_ZEROES;
    case RSD_ZONE_RESET:
        return RSD_TRACE_ZONE_RESET;
    case RSD_ZONE_FINISH:
        return RSD_TRACE_ZONE_FINISH;
    case RSD_FLUSH:
        return RSD_TRACE_FLUSH;
    case RSD_TRIM:
        return RSD_TRACE_TRIM;
    case RSD_ZRWA_OPEN:
        return RSD_TRACE_ZRWA_OPEN;
    case RSD_ZRWA_COMMIT:
        return RSD_TRACE_ZRWA_COMMIT;
    }
    abort();
}

/*
 * Settings as text
 */

static size_t print_settings(const RsdConfig *cfg, char *buf, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < rsd_num_props; i++) {
        const RsdProp *prop = &rsd_props[i];
        uint64_t value = *(const uint64_t *)((const char *)cfg + prop->offset);

        if (prop->kind == RSD_PROP_ENUM) {
            len += snprintf(buf + len, size - len, "%s=%s\n", prop->name,
                            prop->names[value]);
        } else {
            len += snprintf(buf + len, size - len, "%s=%llu\n", prop->name,
                            (ull)value);
        }
        assert(len < size);
    }
    return len;
}

static bool parse_value(const RsdProp *prop, const char *text,
                        uint64_t *value)
{
    uint64_t number = 0;

    if (prop->kind == RSD_PROP_ENUM) {
        for (uint64_t i = 0; prop->names[i]; i++) {
            if (!strcmp(prop->names[i], text)) {
                *value = i;
                return true;
            }
        }
        return false;
    }
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9' ||
            __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *p - '0', &number)) {
            return false;
        }
    }
    *value = number;
    return *text;
}

/* Parses the settings, and changes the text. */
static bool parse_settings(const char *path, char *text, RsdConfig *cfg,
                           char *err)
{
    char reason[RSD_ERR_LEN], *rest = NULL;

    rsd_preset_find("custom")->apply(cfg);
    for (char *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, '=');
        const RsdProp *prop;

        if (value) {
            *value++ = 0;
        }
        prop = value ? rsd_prop_find(line) : NULL;
        if (!prop || !parse_value(prop, value, rsd_prop_value(cfg, prop))) {
            rsd_set_error(err, "%s: its header has the setting %.60s%s%.60s, "
                          "which this program does not know: use the program "
                          "that recorded it, or a newer one", path, line,
                          value ? "=" : "", value ? value : "");
            return false;
        }
    }
    if (!rsd_config_check(cfg, reason)) {
        rsd_set_error(err, "%s: its header has settings that do not fit: "
                      "%.300s", path, reason);
        return false;
    }
    return true;
}

static uint64_t header_check(const Header *h, const char *settings)
{
    return hash_bytes(settings, h->settings_bytes,
                      hash_bytes(h, offsetof(Header, check), 0));
}

/*
 * Writing
 */

static bool write_whole(RsdTrace *trace, const void *buf, size_t len)
{
    const char *p = buf;
    size_t done = 0;

    while (done < len) {
        ssize_t n = pwrite(trace->fd, p + done, len - done,
                           trace->end + done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            trace->error = n ? errno : EIO;
            /* If it fails, a reader takes the rest for a torn record. */
            while (ftruncate(trace->fd, trace->end) < 0 && errno == EINTR) {
                continue;
            }
            return false;
        }
        done += n;
    }
    trace->end += len;
    return true;
}

static void free_trace(RsdTrace *trace)
{
    if (trace->fd >= 0) {
        close(trace->fd);
    }
    free(trace->path);
    free(trace);
}

RsdTrace *rsd_trace_open(const char *path, const RsdConfig *cfg,
                         uint64_t media_hash, char err[RSD_ERR_LEN])
{
    RsdTrace *trace = calloc(1, sizeof(*trace));
    char *buf = calloc(1, MAX_SETTINGS);
    Header h = {
        .magic = RSD_TRACE_MAGIC,
        .version = RSD_TRACE_VERSION,
        .record_bytes = sizeof(RsdTraceRecord),
        .media_hash = media_hash,
    };

    if (trace) {
        trace->path = strdup(path);
    }
    if (!trace || !trace->path || !buf) {
        rsd_set_error(err, "%s: no memory for a trace", path);
        if (trace) {
            free(trace->path);
        }
        free(trace);
        free(buf);
        return NULL;
    }
    h.settings_bytes = print_settings(cfg, buf + sizeof(h),
                                      MAX_SETTINGS - sizeof(h));
    h.header_bytes = rsd_div_round_up(sizeof(h) + h.settings_bytes,
                                      sizeof(RsdTraceRecord)) *
                     sizeof(RsdTraceRecord);
    h.check = header_check(&h, buf + sizeof(h));
    memcpy(buf, &h, sizeof(h));
    trace->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (trace->fd < 0) {
        rsd_set_error(err, "%s: cannot create the trace: %s%s", path,
                      strerror(errno), errno == EEXIST ?
                      "; give another name, or remove it first" : "");
        free_trace(trace);
        trace = NULL;
    } else if (!write_whole(trace, buf, h.header_bytes)) {
        rsd_set_error(err, "%s: cannot write the trace: %s", path,
                      strerror(trace->error));
        unlink(path);
        free_trace(trace);
        trace = NULL;
    }
    free(buf);
    return trace;
}

bool rsd_trace_add(RsdTrace *trace, const RsdTraceRecord *record)
{
    RsdTraceRecord whole = *record;

    if (trace->error) {
        return false;
    }
    whole.reserved = 0;
    whole.reserved2 = 0;
    whole.check = record_check(&whole);
    return write_whole(trace, &whole, sizeof(whole));
}

bool rsd_trace_close(RsdTrace *trace, uint64_t now,
                     const RsdCounters *counters, char err[RSD_ERR_LEN])
{
    RsdTraceRecord end = { .time = now, .kind = RSD_TRACE_END };
    bool ok;

    for (size_t i = 0; counters && i < RSD_NUM_COUNTERS; i++) {
        RsdTraceRecord record = {
            .time = now,
            .order = i,
            .lba = ((const uint64_t *)counters)[i],
            .kind = RSD_TRACE_COUNTER,
        };

        rsd_trace_add(trace, &record);
    }
    if (counters) {
        rsd_trace_add(trace, &end);
    }
    ok = !trace->error;
    if (!ok) {
        rsd_set_error(err, "%s: the trace ends early, after %llu bytes: %s",
                      trace->path, (ull)trace->end, strerror(trace->error));
    }
    free_trace(trace);
    return ok;
}

/*
 * Reading
 */

/*
 * Returns the settings as a string, which the caller frees, or NULL and err on
 * failure.
 */
static char *read_header(RsdTraceReader *reader, Header *h, char *err)
{
    char *settings;

    if (fread(h, sizeof(*h), 1, reader->file) != 1 ||
        memcmp(h->magic, RSD_TRACE_MAGIC, sizeof(h->magic))) {
        rsd_set_error(err, "%s is not a native trace (it does not begin with "
                      RSD_TRACE_MAGIC "): name its format if it has another",
                      reader->path);
        return NULL;
    }
    if (h->version != RSD_TRACE_VERSION ||
        h->record_bytes != sizeof(RsdTraceRecord)) {
        rsd_set_error(err, "%s has format version %u, this program knows "
                      "version %u: use the program that recorded it, or a "
                      "newer one", reader->path, h->version,
                      RSD_TRACE_VERSION);
        return NULL;
    }
    if (h->settings_bytes > MAX_SETTINGS ||
        h->header_bytes < sizeof(*h) + h->settings_bytes ||
        h->header_bytes > 2 * MAX_SETTINGS) {
        rsd_set_error(err, "%s has a corrupt header (%u bytes, %u of "
                      "settings): restore it from a copy", reader->path,
                      h->header_bytes, h->settings_bytes);
        return NULL;
    }
    settings = calloc(1, h->settings_bytes + 1);
    if (!settings) {
        rsd_set_error(err, "%s: no memory for its header", reader->path);
        return NULL;
    }
    if (fread(settings, 1, h->settings_bytes, reader->file) !=
            h->settings_bytes ||
        fseeko(reader->file, h->header_bytes, SEEK_SET) < 0 ||
        h->check != header_check(h, settings)) {
        rsd_set_error(err, "%s has a corrupt or truncated header: restore it "
                      "from a copy", reader->path);
        free(settings);
        return NULL;
    }
    return settings;
}

RsdTraceReader *rsd_trace_read(const char *path, RsdConfig *cfg,
                               uint64_t *media_hash, char err[RSD_ERR_LEN])
{
    RsdTraceReader *reader = calloc(1, sizeof(*reader));
    char *settings = NULL;
    struct stat st;
    Header h;
    bool ok;

    if (reader) {
        reader->path = strdup(path);
    }
    if (!reader || !reader->path) {
        rsd_set_error(err, "%s: no memory to read it", path);
        free(reader);
        return NULL;
    }
    reader->file = fopen(path, "rbe");
    if (!reader->file || fstat(fileno(reader->file), &st) < 0) {
        rsd_set_error(err, "%s: cannot open it: %s", path, strerror(errno));
        rsd_trace_read_close(reader);
        return NULL;
    }
    if (S_ISDIR(st.st_mode)) {
        rsd_set_error(err, "%s: is a directory: name the trace in it", path);
        rsd_trace_read_close(reader);
        return NULL;
    }
    settings = read_header(reader, &h, err);
    ok = settings && parse_settings(path, settings, cfg, err);
    free(settings);
    if (!ok) {
        rsd_trace_read_close(reader);
        return NULL;
    }
    *media_hash = h.media_hash;
    if (st.st_size > h.header_bytes) {
        reader->records = (st.st_size - h.header_bytes) /
                          sizeof(RsdTraceRecord);
        reader->torn = (st.st_size - h.header_bytes) % sizeof(RsdTraceRecord);
    }
    return reader;
}

static int bad_record(const RsdTraceReader *reader, char *err,
                      const char *what, uint64_t value, const char *allowed)
{
    rsd_set_error(err, "%s: record %llu: %s is %llu, allowed is %s: the trace "
                  "is corrupt; restore it from a copy", reader->path,
                  (ull)reader->number, what, (ull)value, allowed);
    return -1;
}

/*
 * Checks the rules that hold for any drive. Addresses are for a caller that
 * knows the drive.
 */
static int check_record(RsdTraceReader *reader, const RsdTraceRecord *r,
                        char *err)
{
    if (r->check != record_check(r)) {
        rsd_set_error(err, "%s: record %llu has checksum %08x, computed %08x: "
                      "the trace is corrupt; restore it from a copy",
                      reader->path, (ull)reader->number, r->check,
                      record_check(r));
        return -1;
    }
    if (reader->ended) {
        return bad_record(reader, err, "kind", r->kind,
                          "nothing after the end");
    }
    switch (r->kind) {
    case RSD_TRACE_SUBMIT:
        if (r->op >= NUM_OPS) {
            return bad_record(reader, err, "operation", r->op, "0 to 9");
        }
        if (r->order != reader->submitted) {
            return bad_record(reader, err, "order of a submission", r->order,
                              "one more than the last one's");
        }
        if (r->time < reader->last_submit) {
            return bad_record(reader, err, "time", r->time,
                              "the last submission's or later");
        }
        reader->submitted++;
        reader->last_submit = r->time;
        return 1;
    case RSD_TRACE_DONE:
        if (r->order >= reader->submitted) {
            return bad_record(reader, err, "order of a completion", r->order,
                              "that of a command submitted before");
        }
        return 1;
    case RSD_TRACE_COUNTER:
        return 1;
    case RSD_TRACE_END:
        reader->ended = true;
        return 1;
    }
    return bad_record(reader, err, "kind", r->kind, "1 to 4");
}

int rsd_trace_next(RsdTraceReader *reader, RsdTraceRecord *record,
                   char err[RSD_ERR_LEN])
{
    if (reader->number == reader->records) {
        return 0;
    }
    reader->number++;
    if (fread(record, sizeof(*record), 1, reader->file) != 1) {
        rsd_set_error(err, "%s: record %llu: cannot be read: %s", reader->path,
                      (ull)reader->number, strerror(errno));
        return -1;
    }
    return check_record(reader, record, err);
}

uint64_t rsd_trace_number(const RsdTraceReader *reader)
{
    return reader->number;
}

uint64_t rsd_trace_records(const RsdTraceReader *reader)
{
    return reader->records;
}

unsigned rsd_trace_torn(const RsdTraceReader *reader)
{
    return reader->torn;
}

void rsd_trace_read_close(RsdTraceReader *reader)
{
    if (reader->file) {
        fclose(reader->file);
    }
    free(reader->path);
    free(reader);
}
