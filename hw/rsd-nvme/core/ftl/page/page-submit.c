/*
 * Commands to a page map, and those that wait.
 *
 * Trim sets the page's bit in the file, which says that there is no content
 * whatever pages there are, and a program of that logical page clears it. So
 * that this cannot be a program of before the trim, a trim waits until the
 * writes that it overlaps are done; those that only the buffer has then are
 * told apart by the map.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "page-ftl.h"

static bool is_trim(const Cmd *cmd)
{
    return cmd->pub.op == RSD_TRIM || cmd->pub.op == RSD_WRITE_ZEROES;
}

/*
 * Must a command wait behind those that wait? With the whole map in RAM writes
 * and trims wait for free pages alone, one behind the other. Misses of the
 * cache are waited for side by side; then only what overlaps keeps its order,
 * and writes for which there is no free page.
 */
static bool must_wait(const PageFtl *ftl, const Cmd *cmd)
{
    if (!ftl->waits.head) {
        return false;
    }
    if (!ftl->cache && cmd->pub.op != RSD_READ) {
        return true;
    }
    return (cmd->pub.op == RSD_WRITE && ftl->no_room) ||
           rsd_waits_blocker(&ftl->waits, cmd);
}

/*
 * With a cache, what waiting commands wait for, as wait.c has it: two words,
 * the second one for writes. Bit 0: to be looked at in any case. Bit n: for n
 * entries of the cache, or, from LARGE on, for so many or more.
 */
enum { WAIT_OTHERS, WAIT_WRITES, WAIT_WORDS };

#define LARGE 48u

static uint32_t bit_of(uint32_t entries)
{
    uint32_t bit = LARGE, least = LARGE;

    if (entries < LARGE) {
        return entries;
    }
    while (bit < 63 && entries >= least + least / 2) {
        least += least / 2;
        bit++;
    }
    return bit;
}

void rsd_page_mark(PageFtl *ftl, Cmd *cmd)
{
    uint64_t mask[WAIT_WORDS] = { 0 };
    uint32_t entries;
    bool any;

    if (!cmd->waits) {
        return;
    }
    if (is_trim(cmd) && !ftl->drive->failed) {
        rsd_waits_follow_write(&ftl->waits, cmd);
    }
    entries = rsd_cache_awaits(ftl, cmd);
    any = !cmd->follows && entries != UINT32_MAX;
    if (any) {
        mask[cmd->pub.op == RSD_WRITE ? WAIT_WRITES : WAIT_OTHERS] =
            UINT64_C(1) << bit_of(entries);
    }
    rsd_waits_mark(&ftl->waits, cmd, any ? mask : NULL);
}

static void freed(Ns *ns, Cmd *cmd)
{
    rsd_page_mark(ns->state, cmd);
}

void rsd_page_waits_init(PageFtl *ftl)
{
    ftl->waits.ns = ftl->ns;
    ftl->waits.freed = freed;
    ftl->waits.width = rsd_map_is_cached(ftl->ns) ? WAIT_WORDS : 0;
    ftl->ns->waits = &ftl->waits;
}

/* All are to be looked at, but for those that others are before. */
static void mark_all(PageFtl *ftl)
{
    for (Cmd *cmd = ftl->waits.head; cmd; cmd = cmd->wait_next) {
        uint64_t mask[WAIT_WORDS] = { 0 };

        if (!rsd_waits_blocker(&ftl->waits, cmd)) {
            mask[cmd->pub.op == RSD_WRITE ? WAIT_WRITES : WAIT_OTHERS] = 1;
            rsd_waits_mark(&ftl->waits, cmd, mask);
        }
    }
}

/* The next one to look at, of Cmd.begun from that on */
static Cmd *next_waiting(PageFtl *ftl, uint64_t from)
{
    uint64_t mask = (UINT64_C(2) << bit_of(rsd_cache_grants(ftl))) - 1;
    uint64_t want[WAIT_WORDS] = { mask, ftl->no_room ? 0 : mask };

    return rsd_waits_next(&ftl->waits, from, want);
}

static void stop_waiting(PageFtl *ftl, Cmd *cmd)
{
    rsd_waits_remove(&ftl->waits, cmd);
    rsd_cmd_drop(ftl->drive, cmd);
}

static void append_waiting(PageFtl *ftl, Cmd *cmd)
{
    cmd->pending++;
    rsd_waits_add(&ftl->waits, cmd);
    if (ftl->cache) {
        rsd_page_mark(ftl, cmd);
    }
}

/* Queues a read up to page end. Its operations must be reserved. */
static void read_pages(PageFtl *ftl, Cmd *cmd, uint32_t end)
{
    uint32_t lpn = cmd->pub.lba, n;

    for (uint32_t i = cmd->progress; i < end; i += n) {
        uint32_t entry = *map_entry(ftl, lpn + i), number = entry - 1;

        n = 1;
        if (!entry) {
            rsd_read_unwritten(cmd, i);
            continue;
        }
        while (i + n < end && *map_entry(ftl, lpn + i + n) == entry + n &&
               page_of(ftl, number + n)) {
            n++;
        }
        rsd_queue_read(ftl->ns, cmd, i, block_of(ftl, number),
                       page_of(ftl, number), n);
    }
    cmd->progress = end;
}

/* The next page for the host, or RSD_NONE */
static uint32_t next_page(PageFtl *ftl)
{
    ftl->refusal = RSD_E_NOBLOCK;
    if (!rsd_page_has_room(ftl, &ftl->frontiers[ftl->turn]) &&
        rsd_page_too_few_have_room(ftl)) {
        return RSD_NONE;
    }
    for (uint32_t i = 0; i < ftl->num_frontiers; i++) {
        Frontier *f = &ftl->frontiers[ftl->turn];
        uint32_t number = rsd_page_has_room(ftl, f)
                              ? rsd_page_take_page(ftl, f, &f->host)
                              : RSD_NONE;

        if (number != RSD_NONE && f->host.page % ftl->drive->unit) {
            return number;      /* its turn until a unit is full */
        }
        if (++ftl->turn == ftl->num_frontiers) {
            ftl->turn = 0;
        }
        if (number != RSD_NONE) {
            return number;
        }
    }
    return RSD_NONE;
}

/* Queues a write up to page end. False: it must wait, see ftl->refusal. */
static bool write_pages(PageFtl *ftl, Cmd *cmd, uint32_t end)
{
    while (cmd->progress < end) {
        uint32_t number, lpn;

        /* the second ones for rsd_cache_written() */
        if (!rsd_op_reserve(ftl->drive, 2)) {
            ftl->refusal = RSD_E_NOMEM;
            return false;
        }
        ftl->refusal = rsd_buffer_reserve(ftl->drive, ftl->cache ? 2 : 1);
        if (ftl->refusal != RSD_OK) {
            return false;
        }
        number = next_page(ftl);
        if (number == RSD_NONE) {
            ftl->no_room = true;
            return false;
        }
        lpn = cmd->pub.lba + cmd->progress;
        rsd_page_map_page(ftl, lpn, number);
        ftl->in_flight++;
        rsd_queue_write(ftl->ns, cmd, cmd->progress++, block_of(ftl, number),
                        page_of(ftl, number), 1);
        if (ftl->cache) {
            rsd_cache_written(ftl, lpn);
        }
        if (!page_of(ftl, number)) {
            rsd_page_collect(ftl, frontier_of_page(ftl, number));
        }
    }
    return true;
}

static void trim_page(PageFtl *ftl, uint32_t lpn)
{
    uint32_t entry = *map_entry(ftl, lpn);

    if (!entry) {
        return;
    }
    rsd_media_set_trimmed(&ftl->drive->media, lpn, true);
    *map_entry(ftl, lpn) = 0;
    ftl->mapped[lpn / MAP_SPAN]--;
    if (ftl->cache) {
        rsd_cache_trimmed(ftl, lpn);
    }
    rsd_page_invalidate(ftl, entry - 1);
    rsd_page_collect(ftl, frontier_of_page(ftl, entry - 1));
}

/* Takes time for what has content, however much else there is. */
static void trim_pages(PageFtl *ftl, uint64_t lpn, uint64_t n)
{
    uint64_t end = lpn + n;

    while (lpn < end) {
        if (ftl->mapped[lpn / MAP_SPAN]) {
            trim_page(ftl, lpn++);
        } else {
            lpn = (lpn / MAP_SPAN + 1) * MAP_SPAN;
        }
    }
}

/* A command fails: nothing is kept for it, and nobody waits for its sake. */
static void give_up(PageFtl *ftl, Cmd *cmd)
{
    ftl->no_room = false;
    if (ftl->cache) {
        rsd_cache_give_up(ftl, cmd);
    }
    if (rsd_buffered(ftl->drive)) {
        rsd_buffer_give_up(ftl->drive, cmd);
    }
}

/*
 * Does what can be done of a command. False: it has to wait, or, if nothing is
 * in flight, to fail with ftl->refusal.
 */
static bool go_on(PageFtl *ftl, Cmd *cmd)
{
    if (ftl->drive->failed && cmd->pub.op != RSD_READ) {
        if (cmd->pub.status == RSD_OK) {
            cmd->pub.status = RSD_E_READONLY;
        }
        give_up(ftl, cmd);
        return true;
    }
    if (cmd->pub.op != RSD_READ && cmd->pub.op != RSD_WRITE) {
        if (rsd_write_in_flight(ftl->ns, cmd)) {
            ftl->refusal = RSD_E_ORDER; /* not that of another command */
            return false;
        }
        trim_pages(ftl, cmd->pub.lba, cmd->pub.nlb);
        return true;
    }
    while (cmd->progress < cmd->pub.nlb) {
        uint32_t end = cmd->pub.nlb;

        if (ftl->cache && !rsd_cache_translate(ftl, cmd, &end)) {
            return false;
        }
        if (cmd->pub.op == RSD_WRITE) {
            if (!write_pages(ftl, cmd, end)) {
                return false;
            }
            continue;
        }
        if (!rsd_op_reserve(ftl->drive, end - cmd->progress)) {
            ftl->refusal = RSD_E_NOMEM;
            return false;
        }
        read_pages(ftl, cmd, end);
    }
    return true;
}

/* One pass over the commands that wait */
static void go_on_all(PageFtl *ftl)
{
    Cmd *cmd;

    ftl->retry = false;
    ftl->no_room = false;
    while (!ftl->cache && (cmd = ftl->waits.head)) {
        if (!go_on(ftl, cmd)) {
            return;
        }
        stop_waiting(ftl, cmd);
    }
    if (ftl->drive->failed && !ftl->all_marked) {
        mark_all(ftl);          /* nobody is to wait for what will not come */
        ftl->all_marked = true;
    }
    for (uint64_t from = 0; ftl->cache && (cmd = next_waiting(ftl, from));) {
        from = cmd->begun + 1;
        if (go_on(ftl, cmd)) {
            stop_waiting(ftl, cmd);
        } else {
            rsd_page_mark(ftl, cmd);
        }
    }
}

/* Is something going on that a command may wait for? */
static bool busy(const PageFtl *ftl)
{
    return ftl->in_flight || rsd_buffer_busy(ftl->ns);
}

/* The same, or can it be made to? */
static bool something_happens(PageFtl *ftl)
{
    if (!busy(ftl) && ftl->stuck == RSD_OK) {
        rsd_page_collect_everywhere(ftl);
    }
    if (!busy(ftl) && ftl->stuck == RSD_OK && rsd_page_close_worn(ftl)) {
        rsd_page_collect_everywhere(ftl);
    }
    if (!busy(ftl)) {
        rsd_page_fill_all(ftl);
    }
    return busy(ftl);
}

/* Why a command fails: nothing is going to change */
static RsdStatus refusal(PageFtl *ftl)
{
    if (ftl->stuck != RSD_OK) {
        return ftl->stuck;
    }
    return ftl->refusal == RSD_E_NOBLOCK ? rsd_drive_no_block(ftl->drive)
                                         : ftl->refusal;
}

/* Goes on with commands that wait, if they can. */
static void resume(PageFtl *ftl)
{
    bool all = !ftl->cache;

    ftl->going = true;
    for (;;) {
        Cmd *cmd;

        go_on_all(ftl);
        if (!ftl->waits.head || something_happens(ftl)) {
            break;
        }
        if (ftl->retry) {
            continue;
        }
        if (!all) {
            mark_all(ftl);      /* each says why it cannot go on, if so */
            all = true;
            continue;
        }
        /* nothing is going to change */
        cmd = ftl->waits.head;
        if (cmd->pub.status == RSD_OK) {
            cmd->pub.status = refusal(ftl);
        }
        give_up(ftl, cmd);
        stop_waiting(ftl, cmd);
    }
    ftl->going = false;
}

void rsd_page_maybe_resume(PageFtl *ftl)
{
    if (ftl->waits.head && !ftl->going && (ftl->retry || !busy(ftl))) {
        resume(ftl);
    }
}

void rsd_page_expect(const Ns *ns, uint64_t lba)
{
    __builtin_prefetch(map_entry(ns->state, lba), 1);
}

RsdStatus rsd_page_submit(Ns *ns, Cmd *cmd)
{
    PageFtl *ftl = ns->state;

    switch (cmd->pub.op) {
    case RSD_READ:
    case RSD_WRITE:
    case RSD_TRIM:
    case RSD_WRITE_ZEROES:
        break;
    case RSD_FLUSH:
        return RSD_OK;          /* nothing is held back */
    default:
        return RSD_E_RANGE;
    }
    if (!rsd_waits_reserve(&ftl->waits)) {
        return RSD_E_NOMEM;
    }
    cmd->progress = 0;
    if (rsd_map_pages_of(ns) && !ftl->cache &&
        (cmd->pub.op == RSD_READ || cmd->pub.op == RSD_WRITE)) {
        ns->drive->count->map_hits += cmd->pub.nlb;
    }
    ftl->stuck = RSD_OK;        /* the host may have more space now */
    if (!must_wait(ftl, cmd)) {
        bool done, waits;

        ftl->going = true;
        done = go_on(ftl, cmd);
        waits = !done && (something_happens(ftl) || cmd->progress ||
                          ftl->waits.head);
        ftl->going = false;
        if (done) {
            return RSD_OK;
        }
        if (!waits) {
            give_up(ftl, cmd);
            return refusal(ftl);
        }
    }
    append_waiting(ftl, cmd);
    rsd_page_maybe_resume(ftl);          /* it may wait in vain */
    return RSD_OK;
}

void rsd_page_format(Ns *ns)
{
    PageFtl *ftl = ns->state;

    if (ftl->cache) {
        rsd_cache_format(ftl);
    }
    trim_pages(ftl, 0, ns->geo.lbas);
}
