/*
 * The plainest translation layer: a template for another one. CONTRIBUTING.md
 * says where the folder is copied to, and shows the line of RSD_FTLS
 * (api/rsd-props.h) that goes with it.
 *
 * It maps pages, in RAM. LBA n is always in die n modulo dies. Of each die one
 * block takes what the host writes and one what is copied. When few blocks are
 * free, the one with the fewest valid pages is collected: its valid pages are
 * copied, then it is erased. There is no write buffer, no wear levelling, and
 * nothing is done while idle: the callbacks for these are NULL.
 *
 * Commands go in the order in which they came (Line). One that overlaps a write
 * in flight waits for it, so the map changes when a page is programmed.
 *
 * What keeps data through a power cut:
 * - A page says in its OOB whose it is, and when it was written. Opening reads
 *   all of them: of two pages of an LBA the younger counts. A copy has the age
 *   of its original.
 * - A block is erased when none of its pages is in the map, so only after what
 *   stands for them is programmed.
 * - A trim is a bit an LBA in the file. The next write clears it once it is
 *   programmed.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "plain.h"

/* Free blocks of a die that are kept for copies; open blocks come besides. */
#define KEPT 2u
/* Blocks of a die beyond the host's pages, at least: kept, open, one to gain */
#define NEEDED (KEPT + 3)

/*
 * The simplest order of commands: one behind the other. Only the first one goes
 * on; when all of it is queued, it leaves, and the next one is the first.
 */
typedef struct Line {
    Cmd *head, *tail;
} Line;

typedef struct Filling {
    uint32_t block;             /* RSD_NONE: there is none */
    uint32_t page;              /* the next one of it */
} Filling;

typedef struct PlainDie {
    Pool pool;
    Filling host, copies;
    uint32_t victim, next;      /* being collected, RSD_NONE: nothing; page */
    uint32_t good;              /* blocks */
} PlainDie;

typedef struct Plain {
    Ns *ns;
    uint32_t *map;              /* by LBA: page's number + 1; 0: none */
    uint32_t *lbas;             /* by page's number */
    uint32_t *valid;            /* by block: pages that are in the map */
    PlainDie *dies;
    Line line;                  /* commands that wait */
} Plain;

static uint32_t number_of(const Plain *p, uint32_t block, uint32_t page)
{
    return block * p->ns->drive->pages + page;
}

static uint32_t die_of(const Plain *p, uint64_t lba)
{
    return lba % p->ns->drive->dies;
}

/* The LBA has that page from now on; 0: none. */
static void set_map(Plain *p, uint64_t lba, uint32_t entry)
{
    uint32_t pages = p->ns->drive->pages;

    if (p->map[lba]) {
        p->valid[(p->map[lba] - 1) / pages]--;
    }
    if (entry) {
        p->valid[(entry - 1) / pages]++;
        p->lbas[entry - 1] = lba;
    }
    p->map[lba] = entry;
}

/*
 * Space
 */

/* A free block, least worn first. False: there is none, or no host space. */
static bool take_block(Plain *p, uint32_t die, Filling *f)
{
    RsdDrive *drive = p->ns->drive;
    Pool *pool = &p->dies[die].pool;
    uint32_t block;

    if (!pool->len) {
        return false;
    }
    block = die * drive->die_blocks + pool->heap[0];
    if (rsd_media_reserve(&drive->media, block) < 0) {
        return false;
    }
    rsd_pool_remove(drive, pool, block);
    *f = (Filling){ block, 0 };
    return true;
}

/* Is there a page? Then its number is *number, and it is taken. */
static bool take_page(Plain *p, uint32_t die, Filling *f, uint32_t keep,
                      uint32_t *number)
{
    if (f->block == RSD_NONE &&
        (p->dies[die].pool.len <= keep || !take_block(p, die, f))) {
        return false;
    }
    *number = number_of(p, f->block, f->page);
    if (++f->page == p->ns->drive->pages) {
        f->block = RSD_NONE;
    }
    return true;
}

/* The used block with the fewest valid pages, if it gains anything */
static uint32_t choose(const Plain *p, uint32_t die)
{
    const RsdDrive *drive = p->ns->drive;
    const PlainDie *pd = &p->dies[die];
    uint32_t best = RSD_NONE, least = drive->pages;

    for (uint32_t b = p->ns->first; b < p->ns->end; b++) {
        uint32_t block = die * drive->die_blocks + b;
        uint64_t rec = drive->media.rec[block];

        /* a block in a pool has a place there; programs go on in others */
        if (drive->blocks[block].pos == RSD_NONE &&
            !(rsd_rec_flags(rec) & RSD_BLOCK_BAD) &&
            rsd_rec_next(rec) == drive->pages &&
            block != pd->host.block && block != pd->copies.block &&
            p->valid[block] < least) {
            least = p->valid[block];
            best = block;
        }
    }
    return best;
}

/* Copies the victim's next valid page, or erases it. */
static void advance(Plain *p, uint32_t die)
{
    RsdDrive *drive = p->ns->drive;
    PlainDie *pd = &p->dies[die];

    for (; pd->next < drive->pages; pd->next++) {
        uint32_t number = number_of(p, pd->victim, pd->next);

        if (p->map[p->lbas[number]] == number + 1) {
            rsd_queue_copy_read(p->ns, RSD_CAUSE_CLEAN, pd->victim, pd->next,
                                rsd_buf_new(drive));
            return;
        }
    }
    drive->blocks[pd->victim].erases++;
    rsd_queue_erase(p->ns, RSD_CAUSE_CLEAN, pd->victim);
}

static void collect(Plain *p, uint32_t die)
{
    PlainDie *pd = &p->dies[die];

    if (pd->victim != RSD_NONE || pd->pool.len > KEPT ||
        p->ns->drive->failed || !rsd_op_reserve(p->ns->drive, 1)) {
        return;
    }
    pd->victim = choose(p, die);
    pd->next = 0;
    if (pd->victim != RSD_NONE) {
        advance(p, die);
    }
}

/*
 * Commands
 */

static bool write_page(Plain *p, Cmd *cmd, uint32_t i)
{
    uint32_t die = die_of(p, cmd->pub.lba + i), number;

    if (!take_page(p, die, &p->dies[die].host, KEPT, &number)) {
        collect(p, die);
        return false;
    }
    rsd_queue_write(p->ns, cmd, i, number / p->ns->drive->pages,
                    number % p->ns->drive->pages, 1);
    return true;
}

static void read_page(Plain *p, Cmd *cmd, uint32_t i)
{
    uint32_t entry = p->map[cmd->pub.lba + i];

    if (entry) {
        rsd_queue_read(p->ns, cmd, i, (entry - 1) / p->ns->drive->pages,
                       (entry - 1) % p->ns->drive->pages, 1);
    } else {
        rsd_read_unwritten(cmd, i);
    }
}

static void trim_page(Plain *p, uint64_t lba)
{
    if (p->map[lba]) {
        rsd_media_set_trimmed(&p->ns->drive->media, lba, true);
        set_map(p, lba, 0);
    }
}

/* Does what can be done. False: the command waits. */
static bool go_on(Ns *ns, Cmd *cmd)
{
    Plain *p = ns->state;

    if (rsd_write_in_flight(ns, cmd)) {
        return false;
    }
    if (cmd->pub.op != RSD_READ && ns->drive->failed) {
        cmd->pub.status = RSD_E_READONLY;
        return true;
    }
    if (!rsd_op_reserve(ns->drive, cmd->pub.nlb + ns->drive->dies)) {
        cmd->pub.status = RSD_E_NOMEM;
        return true;
    }
    for (; cmd->progress < cmd->pub.nlb; cmd->progress++) {
        if (cmd->pub.op == RSD_READ) {
            read_page(p, cmd, cmd->progress);
        } else if (cmd->pub.op != RSD_WRITE) {
            trim_page(p, cmd->pub.lba + cmd->progress);
        } else if (!write_page(p, cmd, cmd->progress)) {
            return false;
        }
    }
    return true;
}

/* The command waits behind all others, and counts that as something pending. */
static void add_to_line(Line *line, Cmd *cmd)
{
    cmd->pending++;
    cmd->progress = 0;
    cmd->wait_next = NULL;
    if (line->head) {
        line->tail->wait_next = cmd;
    } else {
        line->head = cmd;
    }
    line->tail = cmd;
}

/* Something may have changed for the first command of the line. */
static void go_on_in_line(Plain *p)
{
    while (p->line.head && go_on(p->ns, p->line.head)) {
        Cmd *cmd = p->line.head;

        p->line.head = cmd->wait_next;
        rsd_cmd_drop(p->ns->drive, cmd);
    }
}

static RsdStatus plain_submit(Ns *ns, Cmd *cmd)
{
    Plain *p = ns->state;

    switch (cmd->pub.op) {
    case RSD_READ:
    case RSD_WRITE:
    case RSD_TRIM:
    case RSD_WRITE_ZEROES:
        add_to_line(&p->line, cmd);
        go_on_in_line(p);
        return RSD_OK;
    case RSD_FLUSH:
        return RSD_OK;          /* what is done is programmed */
    default:
        return RSD_E_RANGE;
    }
}

static void written(Plain *p, Op *op)
{
    RsdDrive *drive = p->ns->drive;
    uint64_t lba = op->cmd->pub.lba + op->index;

    if (!op->failed) {
        rsd_media_set_trimmed(&drive->media, lba, false);
        set_map(p, lba, number_of(p, op->block, op->page) + 1);
    }
    rsd_op_finish(drive, op);
}

/* What was read is to be programmed elsewhere. */
static void copy_read(Plain *p, Op *op)
{
    RsdDrive *drive = p->ns->drive;
    uint32_t die = op->die, number;
    uint8_t *buf = op->buf;
    bool failed = op->failed;

    rsd_op_finish(drive, op);
    if (failed || !take_page(p, die, &p->dies[die].copies, 0, &number)) {
        rsd_buf_free(drive, buf);       /* the victim stays as it is */
        return;
    }
    if (buf) {
        rsd_buf_spare(buf)->copy = 1;
    }
    rsd_queue_copy_write(p->ns, RSD_CAUSE_CLEAN, number / drive->pages,
                         number % drive->pages, buf, NULL, 0);
}

static void copied(Plain *p, Op *op)
{
    RsdDrive *drive = p->ns->drive;
    PlainDie *pd = &p->dies[op->die];
    uint32_t from = number_of(p, pd->victim, pd->next), die = op->die;
    uint32_t to = number_of(p, op->block, op->page);
    bool failed = op->failed;

    rsd_buf_free(drive, op->buf);
    rsd_op_finish(drive, op);
    if (failed) {
        return;
    }
    /* the host may have written or trimmed it meanwhile */
    if (p->map[p->lbas[from]] == from + 1) {
        set_map(p, p->lbas[from], to + 1);
    }
    pd->next++;
    advance(p, die);
}

static void erased(Plain *p, Op *op)
{
    RsdDrive *drive = p->ns->drive;
    PlainDie *pd = &p->dies[op->die];
    uint32_t die = op->die, block = op->block;

    rsd_op_finish(drive, op);
    drive->blocks[block].erases--;
    pd->victim = RSD_NONE;
    if (!(rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_BAD)) {
        rsd_pool_insert(drive, &pd->pool, block);
    } else if (--pd->good * drive->pages <
               p->ns->geo.lbas / drive->dies + NEEDED * drive->pages) {
        rsd_drive_wear_out(drive);
    }
    collect(p, die);
}

static void plain_op_done(Ns *ns, Op *op)
{
    Plain *p = ns->state;

    if (op->kind == OP_ERASE) {
        erased(p, op);
    } else if (op->kind == OP_PROGRAM && op->cmd) {
        written(p, op);
    } else if (op->kind == OP_PROGRAM) {
        copied(p, op);
    } else if (op->cmd) {
        rsd_op_finish(ns->drive, op);
    } else {
        copy_read(p, op);
    }
    go_on_in_line(p);
}

static void plain_format(Ns *ns)
{
    for (uint64_t lba = 0; lba < ns->geo.lbas; lba++) {
        trim_page(ns->state, lba);
    }
}

/*
 * Opening
 */

static bool plain_geometry(Ns *ns, char err[RSD_ERR_LEN])
{
    const RsdDrive *drive = ns->drive;
    uint32_t least = UINT32_MAX;
    uint64_t pages;

    if (rsd_buffer_on(&drive->cfg)) {
        rsd_set_error(err, "ftl=plain has no write buffer: leave write-buffer "
                      "out, with planes=1, page-size=4096, one-shot=off");
        return false;
    }
    for (uint32_t die = 0; die < drive->dies; die++) {
        uint32_t good = rsd_nand_good_when_new(ns, die);

        least = good < least ? good : least;
    }
    pages = (uint64_t)least * drive->pages * 100 /
            (100 + drive->cfg.over_provision);
    if (pages + NEEDED * drive->pages > (uint64_t)least * drive->pages) {
        rsd_set_error(err, "over-provision=%llu leaves less than %u blocks of "
                      "a die beyond what the host sees: raise it",
                      (unsigned long long)drive->cfg.over_provision, NEEDED);
        return false;
    }
    ns->geo.lbas = pages * drive->dies;
    ns->geo.max_oob = RSD_SPARE_OFFSET;
    ns->geo.map_bytes = sizeof(uint32_t) * ns->geo.lbas;
    return true;
}

/* A page that opening found: it is the LBA's, if it is the youngest. */
static void found(Ns *ns, uint32_t block, uint32_t page, const RsdSpare *spare)
{
    Plain *p = ns->state;
    const RsdMedia *media = &ns->drive->media;
    uint32_t number = number_of(p, block, page), entry = p->map[spare->lpn];

    if (!rsd_media_trimmed(media, spare->lpn) &&
        (!entry || rsd_page_spare(media, (entry - 1) / media->pages,
                                  (entry - 1) % media->pages)->seq <
                   spare->seq)) {
        set_map(p, spare->lpn, number + 1);
    }
}

/* Blocks that are partly programmed are filled further. */
static bool open_block(Plain *p, uint32_t die, uint32_t b)
{
    RsdDrive *drive = p->ns->drive;
    PlainDie *pd = &p->dies[die];
    uint32_t block = die * drive->die_blocks + b;
    uint64_t rec = drive->media.rec[block];
    Filling f = { block, rsd_rec_next(rec) };

    drive->blocks[block].pos = RSD_NONE;
    if (rsd_rec_flags(rec) & RSD_BLOCK_BAD) {
        return true;
    }
    pd->good++;
    if (rsd_rec_flags(rec) & RSD_BLOCK_DIRTY) {
        /* its erase was interrupted */
        rsd_nand_erase(&drive->media, block);
        drive->count->erase_clean++;
        drive->count->erase_on_demand++;
        f.page = 0;
    }
    if (!f.page) {
        drive->blocks[block].pos = 0;   /* for rsd_pool_fill() */
    } else if (f.page < drive->pages) {
        if (rsd_media_reserve(&drive->media, block) < 0) {
            return false;
        }
        if (pd->host.block == RSD_NONE) {
            pd->host = f;
        } else {
            pd->copies = f;
        }
    }
    return true;
}

static size_t flash_blocks(const RsdDrive *drive)
{
    return (size_t)drive->dies * drive->die_blocks;
}

static bool plain_open(Ns *ns, char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ns->drive;
    Plain *p = ns->state = rsd_alloc(drive, sizeof(*p));

    if (!p) {
        goto no_memory;
    }
    p->ns = ns;
    p->map = rsd_alloc(drive, ns->geo.lbas * sizeof(uint32_t));
    p->lbas = rsd_alloc(drive, flash_blocks(drive) * drive->pages *
                               sizeof(uint32_t));
    p->valid = rsd_alloc(drive, flash_blocks(drive) * sizeof(uint32_t));
    p->dies = rsd_alloc(drive, drive->dies * sizeof(PlainDie));
    if (!p->map || !p->lbas || !p->valid || !p->dies) {
        goto no_memory;
    }
    if (!rsd_scan_pages(ns, 0, found, err)) {
        return false;
    }
    for (uint32_t die = 0; die < drive->dies; die++) {
        PlainDie *pd = &p->dies[die];

        pd->host.block = pd->copies.block = pd->victim = RSD_NONE;
        if (!rsd_pool_init(ns, &pd->pool)) {
            goto no_memory;
        }
        for (uint32_t b = ns->first; b < ns->end; b++) {
            if (!open_block(p, die, b)) {
                rsd_set_error(err, "the host's disk is full: make room on it");
                return false;
            }
        }
        rsd_pool_fill(drive, &pd->pool, die);
    }
    return true;

no_memory:
    rsd_set_error(err, "no memory for the map of %llu pages",
                  (unsigned long long)ns->geo.lbas);
    return false;
}

static void plain_close(Ns *ns)
{
    RsdDrive *drive = ns->drive;
    Plain *p = ns->state;

    if (!p) {
        return;
    }
    for (uint32_t die = 0; p->dies && die < drive->dies; die++) {
        rsd_pool_fini(drive, &p->dies[die].pool);
    }
    rsd_release(drive, p->map, ns->geo.lbas * sizeof(uint32_t));
    rsd_release(drive, p->lbas, flash_blocks(drive) * drive->pages *
                                sizeof(uint32_t));
    rsd_release(drive, p->valid, flash_blocks(drive) * sizeof(uint32_t));
    rsd_release(drive, p->dies, drive->dies * sizeof(PlainDie));
    rsd_release(drive, p, sizeof(*p));
    ns->state = NULL;
}

const Personality rsd_ftl_plain = {
    .geometry = plain_geometry,
    .open = plain_open,
    .close = plain_close,
    .submit = plain_submit,
    .op_done = plain_op_done,
    .format = plain_format,
};
