/*
 * The NAND array and its rules.
 *
 * It refuses what real NAND refuses: a page is programmed once, after an
 * erase, in the order of its block, never in a bad block. Data and OOB of a
 * page are one thing: the block's record, which says how many pages are
 * programmed, is stored after both, so that a process killed at any moment
 * leaves a page programmed or not.
 *
 * Torn pages. A page whose program a power cut interrupted is programmed, but
 * neither its data nor its OOB can be read. Its block's record says that there
 * are such pages in it, and 64 bytes in place of the drive's own part of the OOB
 * that it is one. What the host writes does not come there, but in zones with
 * oob=128, where all of the OOB is the host's. A copy of a page that could not
 * be read is one that cannot be read.
 *
 * Lost pages. Of a page that became unreadable by a fault, a conventional
 * namespace still has to know whose it was, or an older one would be taken for
 * it: its data is gone, and the drive's part of the OOB stays and says so. In
 * all else it is as a torn one.
 *
 * A refusal is a bug of the layers above. Tests (RSD_ASSERT_NAND) stop there;
 * otherwise the command fails. If the host's disk fails, a page is not
 * programmed, and what was queued behind it is refused, but that is no bug.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <string.h>

#include "array.h"

#ifdef RSD_ASSERT_NAND
#define REFUSE(what, status) do { assert(!(what)); return status; } while (0)
#else
#define REFUSE(what, status) return status
#endif

#define TORN_WORDS 8u
#define TORN_SEED UINT64_C(0x746f726e70616765)

_Static_assert(TORN_WORDS * sizeof(uint64_t) == sizeof(RsdSpare),
               "the mark fills the drive's part of the OOB");

static bool is_torn(const uint8_t oob[RSD_OOB_SIZE])
{
    const uint8_t *mark = oob + RSD_SPARE_OFFSET;

    for (uint32_t i = 0; i < TORN_WORDS; i++) {
        uint64_t want = rsd_random(TORN_SEED, i);

        if (memcmp(mark + i * sizeof(want), &want, sizeof(want))) {
            return false;
        }
    }
    return true;
}

static bool is_lost(const uint8_t oob[RSD_OOB_SIZE])
{
    return rsd_spare_is_lost(oob) || is_torn(oob);
}

static void set_record(RsdMedia *media, uint32_t block, uint64_t rec)
{
    rsd_media_note(media, &media->rec[block], &rec, sizeof(rec));
    /*
     * This is a release, so that the stores before it are visible with the
     * record.
     */
    __atomic_store_n(&media->rec[block], rec, __ATOMIC_RELEASE);
}

RsdStatus rsd_nand_program(RsdMedia *media, uint32_t block, uint32_t page,
                           const uint8_t *data, const uint8_t *oob,
                           uint32_t oob_len)
{
    uint64_t rec = media->rec[block];
    uint32_t faults = media->faults.count;
    uint8_t *to;

    if (rsd_rec_flags(rec) & RSD_BLOCK_BAD) {
        REFUSE("program in a bad block", RSD_E_MEDIA);
    }
    if (media->failed && page > rsd_rec_next(rec)) {
        return RSD_E_MEDIA;
    }
    if (page >= media->pages || page != rsd_rec_next(rec)) {
        REFUSE("program of a page that is not the block's next", RSD_E_ORDER);
    }
    if (media->data) {
        static const uint8_t zeroes[RSD_PAGE_SIZE];

        rsd_media_note_page(media, block, page);
        if (!rsd_media_store(media, block, page, data ? data : zeroes)) {
            media->failed = true;
            return RSD_E_MEDIA;
        }
        to = rsd_media_oob(media, block, page);
        if (oob) {
            memcpy(to, oob, oob_len);
        } else {
            oob_len = 0;
        }
        memset(to + oob_len, 0, RSD_OOB_SIZE - oob_len);
    }
    if (media->faults.count != faults) {
        media->failed = true;
        return RSD_E_MEDIA;
    }
    set_record(media, block,
               rsd_rec(rsd_rec_erases(rec), page + 1, rsd_rec_flags(rec)));
    return RSD_OK;
}

RsdStatus rsd_nand_program_unit(RsdMedia *media, uint32_t block, uint32_t page,
                                uint32_t n, const uint8_t *slots)
{
    static const uint8_t zeroes[RSD_PAGE_SIZE + RSD_OOB_SIZE];
    uint64_t rec = media->rec[block];
    uint32_t flags = rsd_rec_flags(rec), faults = media->faults.count;

    if (flags & RSD_BLOCK_BAD) {
        REFUSE("program in a bad block", RSD_E_MEDIA);
    }
    if (media->failed && page > rsd_rec_next(rec)) {
        return RSD_E_MEDIA;
    }
    if (page + n > media->pages || page % n || page != rsd_rec_next(rec)) {
        REFUSE("program of a unit that is not the block's next", RSD_E_ORDER);
    }
    for (uint32_t i = 0; media->data && i < n; i++) {
        const uint8_t *from = slots ? slots + i * sizeof(zeroes) : zeroes;

        rsd_media_note_page(media, block, page + i);
        if (!rsd_media_store(media, block, page + i, from)) {
            media->failed = true;
            return RSD_E_MEDIA;
        }
        flags |= is_lost(from + RSD_PAGE_SIZE) ? RSD_BLOCK_TORN : 0;
        memcpy(rsd_media_oob(media, block, page + i), from + RSD_PAGE_SIZE,
               RSD_OOB_SIZE);
    }
    if (media->faults.count != faults) {
        media->failed = true;
        return RSD_E_MEDIA;
    }
    /* All of the unit becomes valid by one store. */
    set_record(media, block, rsd_rec(rsd_rec_erases(rec), page + n, flags));
    return RSD_OK;
}

RsdStatus rsd_nand_read(RsdMedia *media, uint32_t block, uint32_t page,
                        uint8_t *data, uint8_t *oob, uint32_t oob_len)
{
    uint64_t rec = media->rec[block];

    if (rsd_rec_flags(rec) & RSD_BLOCK_BAD || page >= media->pages) {
        REFUSE("read of a bad block", RSD_E_MEDIA);
    }
    if (!media->data) {
        return RSD_OK;
    }
    if (page >= rsd_rec_next(rec)) {
        if (media->failed) {
            return RSD_E_MEDIA; /* it was to be programmed */
        }
        /*
         * On an erased page, real NAND reads ones, and the drive returns
         * zeroes.
         */
        if (data) {
            memset(data, 0, RSD_PAGE_SIZE);
        }
        if (oob) {
            memset(oob, 0, oob_len);
        }
        return RSD_OK;
    }
    if (data && !rsd_media_load(media, block, page, data)) {
        return RSD_E_MEDIA;
    }
    if (oob) {
        memcpy(oob, rsd_media_oob(media, block, page), oob_len);
        if (media->faults.count &&
            rsd_media_lost(media, rsd_media_oob(media, block, page))) {
            return RSD_E_MEDIA;
        }
    }
    return rsd_nand_is_lost(media, block, page) ? RSD_E_MEDIA : RSD_OK;
}

/* Says whether there can be a torn page, or a lost one. */
static bool may_be_torn(const RsdMedia *media, uint32_t block, uint32_t page)
{
    uint64_t rec = media->rec[block];

    return rsd_rec_flags(rec) & RSD_BLOCK_TORN && media->data &&
           page < rsd_rec_next(rec);
}

bool rsd_nand_is_torn(const RsdMedia *media, uint32_t block, uint32_t page)
{
    return may_be_torn(media, block, page) &&
           is_torn(rsd_media_oob(media, block, page));
}

bool rsd_nand_is_lost(const RsdMedia *media, uint32_t block, uint32_t page)
{
    return may_be_torn(media, block, page) &&
           is_lost(rsd_media_oob(media, block, page));
}

RsdStatus rsd_nand_erase(RsdMedia *media, uint32_t block)
{
    uint64_t rec = media->rec[block];

    if (rsd_rec_flags(rec) & RSD_BLOCK_BAD) {
        REFUSE("erase of a bad block", RSD_E_MEDIA);
    }
    set_record(media, block,
               rsd_rec(rsd_rec_erases(rec) + 1, 0,
                       rsd_rec_flags(rec) & ~RSD_BLOCK_TORN));
    return RSD_OK;
}

/* Stores the mark of a torn page. */
static bool store_torn(RsdMedia *media, uint32_t block, uint32_t page)
{
    static const uint8_t zeroes[RSD_PAGE_SIZE];
    uint8_t *oob = rsd_media_oob(media, block, page);

    rsd_media_note_page(media, block, page);
    if (!rsd_media_store(media, block, page, zeroes)) {
        return false;
    }
    memset(oob, 0, RSD_SPARE_OFFSET);
    for (uint32_t i = 0; i < TORN_WORDS; i++) {
        uint64_t word = rsd_random(TORN_SEED, i);

        memcpy(oob + RSD_SPARE_OFFSET + i * sizeof(word), &word, sizeof(word));
    }
    return true;
}

RsdStatus rsd_nand_tear(RsdMedia *media, uint32_t block, uint32_t page,
                        uint32_t n)
{
    uint64_t rec = media->rec[block];

    if (rsd_rec_flags(rec) & RSD_BLOCK_BAD || page + n > media->pages ||
        page != rsd_rec_next(rec)) {
        return RSD_E_ORDER;
    }
    for (uint32_t i = 0; media->data && i < n; i++) {
        if (!store_torn(media, block, page + i)) {
            return RSD_E_MEDIA;
        }
    }
    set_record(media, block, rsd_rec(rsd_rec_erases(rec), page + n,
                                     rsd_rec_flags(rec) | RSD_BLOCK_TORN));
    return RSD_OK;
}

RsdStatus rsd_nand_spoil(RsdMedia *media, uint32_t block, uint32_t page)
{
    uint64_t rec = media->rec[block];

    if (rsd_rec_flags(rec) & RSD_BLOCK_BAD || !media->data ||
        page >= rsd_rec_next(rec)) {
        return RSD_E_ORDER;
    }
    /* This comes first, so that the page's bytes are never taken for data. */
    set_record(media, block, rsd_rec(rsd_rec_erases(rec), rsd_rec_next(rec),
                                     rsd_rec_flags(rec) | RSD_BLOCK_TORN));
    return store_torn(media, block, page) ? RSD_OK : RSD_E_MEDIA;
}

void rsd_nand_lose(RsdMedia *media, uint32_t block, uint32_t page, bool notes)
{
    static const uint8_t zeroes[RSD_PAGE_SIZE];
    RsdSpare spare;
    uint8_t *to;

    if (!media->data) {
        return;
    }
    to = rsd_media_oob(media, block, page) + RSD_SPARE_OFFSET;
    memcpy(&spare, to, sizeof(spare));
    if (!notes || spare.magic != RSD_SPARE_MAGIC) {
        rsd_nand_spoil(media, block, page);
        return;
    }
    set_record(media, block,
               rsd_rec(rsd_rec_erases(media->rec[block]),
                       rsd_rec_next(media->rec[block]),
                       rsd_rec_flags(media->rec[block]) | RSD_BLOCK_TORN));
    rsd_media_note_page(media, block, page);
    spare.lost = RSD_SPARE_LOST;
    memcpy(to, &spare, sizeof(spare));
    if (!rsd_media_store(media, block, page, zeroes)) {
        media->failed = true;
    }
}

RsdStatus rsd_nand_tear_block(RsdMedia *media, uint32_t block)
{
    /* This comes first, so that the log knows which part of it must be kept. */
    rsd_nand_mark(media, block, RSD_BLOCK_DIRTY |
                  (rsd_rec_flags(media->rec[block]) & RSD_BLOCK_WORN));
    for (uint32_t p = 0; media->data && p < rsd_rec_next(media->rec[block]);
         p++) {
        rsd_media_note_page(media, block, p);
        if (rsd_sync_has_failed(media)) {
            media->failed = true;
            return RSD_E_MEDIA;
        }
        memset(rsd_media_oob(media, block, p), 0, RSD_OOB_SIZE);
    }
    return RSD_OK;
}

void rsd_nand_mark(RsdMedia *media, uint32_t block, uint32_t flags)
{
    uint64_t rec = media->rec[block];

    flags |= rsd_rec_flags(rec) &
             (RSD_BLOCK_BAD | RSD_BLOCK_GROWN | RSD_BLOCK_TORN |
              RSD_BLOCK_WEAK);
    set_record(media, block,
               rsd_rec(rsd_rec_erases(rec), rsd_rec_next(rec), flags));
}
