/*
 * Pages of conventional namespaces: what says whose they are, those that were
 * never written, and trims.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "ftl.h"

void rsd_read_unwritten(Cmd *cmd, uint32_t index)
{
    cmd->unwritten++;
    if (cmd->pub.data) {
        memset(cmd->pub.data + (size_t)index * RSD_PAGE_SIZE, 0,
               RSD_PAGE_SIZE);
    }
    if (cmd->pub.oob) {
        memset(cmd->pub.oob + (size_t)index * cmd->oob_len, 0, cmd->oob_len);
    }
}

bool rsd_media_trimmed(const RsdMedia *media, uint64_t lba)
{
    return media->trim[lba / 64] >> lba % 64 & 1;
}

void rsd_media_set_trimmed(RsdMedia *media, uint64_t lba, bool to)
{
    uint64_t *word = &media->trim[lba / 64];
    uint64_t bit = UINT64_C(1) << lba % 64;
    uint64_t value = to ? *word | bit : *word & ~bit;

    if (value != *word) {
        rsd_media_note(media, word, &value, sizeof(value));
        /* release, as all such stores: they happen in the program's order */
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
    }
}

const RsdSpare *rsd_page_spare(const RsdMedia *media, uint32_t block,
                               uint32_t page)
{
    const RsdSpare *spare = (const RsdSpare *)
        (rsd_media_oob(media, block, page) + RSD_SPARE_OFFSET);

    return spare->magic == RSD_SPARE_MAGIC ? spare : NULL;
}

/* Is what the OOB names, if anything, within the namespace, or the map? */
static bool is_possible(const Ns *ns, uint64_t others, const RsdSpare *spare)
{
    return spare->magic != RSD_SPARE_MAGIC ||
           spare->lpn < (spare->kind ? others : ns->geo.lbas);
}

static bool refuse(const Ns *ns, const RsdSpare *spare, uint64_t block,
                   uint32_t page, char err[RSD_ERR_LEN])
{
    rsd_set_error(err, "the media file is corrupt: page %u of block %llu is "
                  "said to hold LBA %llu of %llu; restore it from a copy, or "
                  "remove it", page, (unsigned long long)block,
                  (unsigned long long)spare->lpn,
                  (unsigned long long)ns->geo.lbas);
    return false;
}

/* Of the block's pages that rsd_buffer_settle() will program */
static bool verify_buffered(const Ns *ns, uint64_t others, uint64_t block,
                            char err[RSD_ERR_LEN])
{
    const RsdDrive *drive = ns->drive;
    uint32_t page = rsd_rec_next(drive->media.rec[block]), n;

    while ((n = rsd_buffer_has(drive, block, page))) {
        for (uint32_t i = 0; drive->media.data && i < n; i++) {
            const RsdSpare *spare = (const RsdSpare *)
                (rsd_buffer_oob(drive, block, page, i) + RSD_SPARE_OFFSET);

            if (!is_possible(ns, others, spare)) {
                return refuse(ns, spare, block, page + i, err);
            }
        }
        page += drive->unit;
    }
    return true;
}

typedef void Found(Ns *, uint32_t block, uint32_t page, const RsdSpare *spare);

static void take(Ns *ns, uint32_t block, uint32_t page, const RsdSpare *spare,
                 Found *found)
{
    RsdDrive *drive = ns->drive;

    if (spare->seq >= drive->seq) {
        drive->seq = spare->seq + 1;
    }
    found(ns, block, page, spare);
}

/* Looks at each page, and, with found, takes it. */
static bool verify(Ns *ns, uint64_t others, Found *found, char err[RSD_ERR_LEN])
{
    const RsdDrive *drive = ns->drive;

    RSD_FOR_EACH_BLOCK(ns, b) {
        uint32_t next = rsd_rec_next(drive->media.rec[b]);

        if (next > drive->pages) {
            rsd_set_error(err, "the media file is corrupt: block %llu has %u "
                          "pages programmed of %u; restore it from a copy, or "
                          "remove it", (unsigned long long)b, next,
                          drive->pages);
            return false;
        }
        for (uint32_t p = 0; drive->media.data && p < next; p++) {
            const RsdSpare *spare = rsd_page_spare(&drive->media, b, p);

            if (!spare) {
                continue;       /* filler, or torn */
            }
            if (!is_possible(ns, others, spare)) {
                return refuse(ns, spare, b, p, err);
            }
            if (found) {
                take(ns, b, p, spare, found);
            }
        }
        if (!verify_buffered(ns, others, b, err)) {
            return false;
        }
    }
    return true;
}

bool rsd_scan_pages(Ns *ns, uint64_t others, Found *found,
                    char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ns->drive;
    bool once = !rsd_buffer_kept(ns);

    if (!verify(ns, others, once ? found : NULL, err)) {
        return false;
    }
    if (once) {
        return true;
    }
    rsd_buffer_settle(ns);
    RSD_FOR_EACH_BLOCK(ns, b) {
        uint32_t next = rsd_rec_next(drive->media.rec[b]);

        for (uint32_t p = 0; drive->media.data && p < next; p++) {
            const RsdSpare *spare = rsd_page_spare(&drive->media, b, p);

            if (spare) {
                take(ns, b, p, spare, found);
            }
        }
    }
    return true;
}
