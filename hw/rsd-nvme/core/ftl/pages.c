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

/* Of a block's programmed pages */
static bool scan_block(Ns *ns, uint32_t block,
                       void (*found)(Ns *, uint32_t block, uint32_t page,
                                     const RsdSpare *spare),
                       char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ns->drive;
    uint64_t rec = drive->media.rec[block];

    if (rsd_rec_flags(rec) & (RSD_BLOCK_BAD | RSD_BLOCK_DIRTY)) {
        return true;
    }
    for (uint32_t page = 0; page < rsd_rec_next(rec); page++) {
        const RsdSpare *spare = rsd_page_spare(&drive->media, block, page);

        if (!spare) {
            continue;           /* filler, or torn */
        }
        if (!spare->kind && spare->lpn >= ns->geo.lbas) {
            rsd_set_error(err, "the media file is corrupt: page %u of block "
                          "%u is said to hold LBA %llu of %llu; restore it "
                          "from a copy, or remove it", page, block,
                          (unsigned long long)spare->lpn,
                          (unsigned long long)ns->geo.lbas);
            return false;
        }
        if (spare->seq >= drive->seq) {
            drive->seq = spare->seq + 1;
        }
        found(ns, block, page, spare);
    }
    return true;
}

bool rsd_scan_pages(Ns *ns, void (*found)(Ns *, uint32_t block, uint32_t page,
                                          const RsdSpare *spare),
                    char err[RSD_ERR_LEN])
{
    const RsdDrive *drive = ns->drive;

    for (uint32_t die = 0; drive->media.data && die < drive->dies; die++) {
        for (uint32_t b = ns->first; b < ns->end; b++) {
            if (!scan_block(ns, die * drive->die_blocks + b, found, err)) {
                return false;
            }
        }
    }
    return true;
}
