/*
 * The one table of the drive's settings.
 *
 * The QEMU properties, the range checks, the presets, the media file header
 * and the documentation are all made from it, so that they cannot drift.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_PROPS_H
#define RSD_PROPS_H

/*
 * RSD_NUM(field, "name", default, min, max, geometry, "unit", "what it is")
 * RSD_SIZE: the same, and QEMU accepts the suffixes K, M, G, T.
 * RSD_ENUM(field, "name", default, RsdXxx_names, geometry, "what it is")
 *
 * The default is that of the preset "custom"; presets override some of them
 * (config.c). "geometry" is 1 if the value is part of the media file's
 * identity: a file made with another value is refused, not reinterpreted.
 */
#define RSD_PROPS(RSD_NUM, RSD_SIZE, RSD_ENUM)                               \
    RSD_NUM(channels, "channels", 8, 1, 64, 1, "",                           \
            "channels (buses) of the drive")                                 \
    RSD_NUM(ways, "ways", 4, 1, 64, 1, "",                                   \
            "ways (dies) on each channel")                                   \
    RSD_NUM(planes, "planes", 1, 1, 4, 1, "",                                \
            "planes of a die; a flash block of the drive is one block of "   \
            "each, always programmed, read and erased together")             \
    RSD_NUM(blocks, "blocks", 128, 1, 1048576, 1, "blocks",                  \
            "flash blocks of a way, without spares; zones have all of them, "\
            "of a conventional namespace over-provision says what it has")   \
    RSD_NUM(pages, "pages", 128, 1, 65536, 1, "pages",                       \
            "pages of a flash block in each plane")                          \
    RSD_SIZE(page_size, "page-size", 4096, 4096, 16384, 1, "bytes",          \
             "data bytes of a page: 4K, 8K or 16K; the logical block has 4K")\
    RSD_ENUM(cell, "cell", RSD_CELL_SLC, rsd_cell_names, 1,                  \
             "bits of a cell, 1 to 4, and so the page types of a word line: "\
             "LSB; LSB, MSB; LSB, CSB, MSB; LSB, CSB, MSB, TSB")             \
    RSD_ENUM(one_shot, "one-shot", RSD_OFF, rsd_switch_names, 1,             \
             "all pages of a word line are programmed at once, in t-prog")   \
    RSD_NUM(spare_blocks, "spare-blocks", 4, 0, 65536, 1, "blocks",          \
            "spare flash blocks of a way, for bad blocks and erasure ahead; "\
            "of a conventional namespace a part of over-provision")          \
    RSD_NUM(bad_ppm, "bad-blocks-ppm", 0, 0, 500000, 1, "ppm",               \
            "factory bad blocks in a million, placed by seed")               \
    RSD_NUM(seed, "seed", 1, 0, UINT64_MAX, 1, "",                           \
            "seed of everything random in the drive")                        \
    RSD_ENUM(ftl, "ftl", RSD_FTL_RSD, rsd_ftl_names, 1,                      \
             "what the drive does with its flash" RSD_FTLS(RSD_FTL_DOC))     \
    RSD_NUM(conv_blocks, "conv-blocks", 0, 0, 1048576, 1, "blocks",          \
            "flash blocks of each way, out of blocks, for a conventional "   \
            "namespace under ftl=page that shares the flash with the "       \
            "zones of ftl=rsd")                                              \
    RSD_NUM(over_provision, "over-provision", 5, 0, 1000, 1, "%",            \
            "good flash of a conventional namespace when new, spares "       \
            "included, beyond what the host sees, in percent of what it "    \
            "sees (5 in RISA 4.1, 10 in SFS 4.4)")                           \
    RSD_NUM(frontiers, "frontiers", 0, 0, 4096, 0, "",                       \
            "write frontiers of a page map: blocks that are filled in turn, "\
            "a page each; 0 = one a way of each channel")                    \
    RSD_ENUM(gc_frontiers, "gc-frontiers", RSD_GC_FRONTIERS_OWN,             \
             rsd_gc_frontiers_names, 0,                                      \
             "where a page map's frontiers put what garbage collection "     \
             "copies: own = in blocks of its own, shared = in those that "   \
             "the host's pages go to")                                       \
    RSD_ENUM(gc_policy, "gc-policy", RSD_GC_GREEDY, rsd_gc_policy_names, 0,  \
             "victims of a page map's garbage collection: greedy = fewest "  \
             "valid pages, cost-benefit = age * (1 - u) / 2u, fifo = filled "\
             "first")                                                        \
    RSD_ENUM(gc_unit, "gc-unit", RSD_GC_UNIT_BLOCK, rsd_gc_unit_names, 0,    \
             "what is collected at a time: block = one block a frontier, "   \
             "all = one of every channel and way (RISA 4.1)")                \
    RSD_NUM(gc_trigger, "gc-trigger", 1, 0, 50, 0, "%",                      \
            "blocks of a frontier of which fewer are free when garbage "     \
            "collection starts, in percent; two at least")                   \
    RSD_ENUM(stripe, "stripe", RSD_STRIPE_BLOCK, rsd_stripe_names, 1,        \
             "what ftl=block and ftl=fast map at a time: block = a flash "   \
             "block, consecutive ones in consecutive ways (REDO 4), all = "  \
             "a block of every channel and way, striped by pages")           \
    RSD_ENUM(replacement_blocks, "replacement-blocks", RSD_ON,               \
             rsd_switch_names, 0,                                            \
             "ftl=block keeps a replacement block for the writes after one " \
             "that overwrites; off = it is merged as soon as that write has "\
             "its pages")                                                    \
    RSD_NUM(log_blocks, "log-blocks", 3, 1, 50, 0, "%",                      \
            "log blocks of ftl=fast, in percent of the flash that the host " \
            "sees, but two at least; one of them is the sequential one")     \
    RSD_SIZE(map_cache, "map-cache", 65536, 1024, 268435456, 0, "bytes",     \
             "RAM for map entries of 8 bytes with ftl=dftl; if it has room " \
             "for all of them, the drive is that of ftl=page")               \
    RSD_ENUM(segment, "segment", RSD_SEGMENT_ALL, rsd_segment_names, 1,      \
             "flash blocks of a zone: all = one of every channel and way, "  \
             "way = one of every channel of one way (RISA 4.5)")             \
    RSD_NUM(oob, "oob", 0, 0, 128, 0, "bytes",                               \
            "page metadata the host sees after creation or format: "         \
            "0, 16, 64 or 128")                                              \
    RSD_NUM(t_cmd_ns, "t-cmd", 2500, 0, 1000000000, 0, "ns",                 \
            "channel time of a page's or a block's command and its address " \
            "cycles, of each plane")                                         \
    RSD_NUM(t_xfer_ns, "t-xfer", 30833, 0, 1000000000, 0, "ns",              \
            "channel time of 4 KiB with their OOB")                          \
    RSD_NUM(t_read_ns, "t-read", 60000, 0, 1000000000, 0, "ns",              \
            "array read, tR; of an LSB page")                                \
    RSD_NUM(t_read_csb_ns, "t-read-csb", 0, 0, 1000000000, 0, "ns",          \
            "the same of a CSB page; 0 = t-read")                            \
    RSD_NUM(t_read_msb_ns, "t-read-msb", 0, 0, 1000000000, 0, "ns",          \
            "the same of an MSB page; 0 = t-read")                           \
    RSD_NUM(t_read_tsb_ns, "t-read-tsb", 0, 0, 1000000000, 0, "ns",          \
            "the same of a TSB page; 0 = t-read")                            \
    RSD_NUM(t_prog_ns, "t-prog", 444278, 0, 10000000000, 0, "ns",            \
            "page program, tPROG; of an LSB page, or of a word line with "   \
            "one-shot")                                                      \
    RSD_NUM(t_prog_csb_ns, "t-prog-csb", 0, 0, 10000000000, 0, "ns",         \
            "the same of a CSB page; 0 = t-prog")                            \
    RSD_NUM(t_prog_msb_ns, "t-prog-msb", 0, 0, 10000000000, 0, "ns",         \
            "the same of an MSB page; 0 = t-prog")                           \
    RSD_NUM(t_prog_tsb_ns, "t-prog-tsb", 0, 0, 10000000000, 0, "ns",         \
            "the same of a TSB page; 0 = t-prog")                            \
    RSD_NUM(t_erase_ns, "t-erase", 3500000, 0, 100000000000, 0, "ns",        \
            "block erase, tBERS")                                            \
    RSD_NUM(t_status_ns, "t-status", 0, 0, 1000000000, 0, "ns",              \
            "channel time of reading the status after a program or erase")   \
    RSD_ENUM(cache, "cache", RSD_OFF, rsd_switch_names, 0,                   \
             "double register: the next page is sent while one is "          \
             "programmed, or read while one is sent; not with queue=global") \
    RSD_ENUM(suspend, "suspend", RSD_OFF, rsd_switch_names, 0,               \
             "reads go before programs and erases of other blocks, and "     \
             "suspend them; not with queue=global")                          \
    RSD_NUM(t_suspend_ns, "t-suspend", 5000, 0, 1000000000, 0, "ns",         \
            "from suspending a program or an erase to the next command")     \
    RSD_NUM(suspend_reads, "suspend-reads", 16, 1, 1000000, 0, "reads",      \
            "reads that go before a program or an erase, or suspend it, at " \
            "most")                                                          \
    RSD_SIZE(write_buffer, "write-buffer", 0, 0, 1099511627776, 1, "bytes",  \
             "write buffer, for what waits to be programmed; at least what " \
             "every way programs at once, unless that is 4 KiB: then 0 = none")\
    RSD_ENUM(ack, "ack", RSD_ACK_PROGRAM, rsd_ack_names, 0,                  \
             "with a write buffer, a write is done when: program = it is "   \
             "programmed, or, of a begun unit and with plp=on, in the "      \
             "buffer, which survives; buffer = it is in the buffer")         \
    RSD_ENUM(plp, "plp", RSD_ON, rsd_switch_names, 1,                        \
             "power-loss protection: what is in the write buffer survives; " \
             "else a flush waits until it is programmed")                    \
    RSD_NUM(zrwa, "zrwa", 0, 0, 65536, 1, "zones",                           \
            "zones that can have a random write area (ZRWA) at a time, with "\
            "a write buffer, of which the areas are a part; 0 = none")       \
    RSD_SIZE(zrwa_size, "zrwa-size", 1048576, 4096, 268431360, 1, "bytes",   \
             "size of a random write area")                                  \
    RSD_SIZE(zrwa_flush, "zrwa-flush", 16384, 4096, 268431360, 1, "bytes",   \
             "what is committed of a random write area at a time, at least") \
    RSD_NUM(cores, "cores", 1, 1, 64, 0, "",                                 \
            "processor cores of the controller, for the times t-fw-...")     \
    RSD_NUM(t_fw_read_ns, "t-fw-read", 0, 0, 1000000000, 0, "ns",            \
            "time of a core for a read command")                             \
    RSD_NUM(t_fw_write_ns, "t-fw-write", 0, 0, 1000000000, 0, "ns",          \
            "the same for a write, write zeroes, flush, or step of a trim")  \
    RSD_NUM(t_fw_append_ns, "t-fw-append", 0, 0, 1000000000, 0, "ns",        \
            "the same for a zone append")                                    \
    RSD_NUM(t_fw_zone_ns, "t-fw-zone", 0, 0, 1000000000, 0, "ns",            \
            "the same for a zone reset, finish, or a command to a random "   \
            "write area")                                                    \
    RSD_NUM(t_fw_page_ns, "t-fw-page", 0, 0, 1000000000, 0, "ns",            \
            "the same for each 4 KiB read or written, besides")              \
    RSD_NUM(t_lat_read_ns, "t-lat-read", 0, 0, 1000000000, 0, "ns",          \
            "time that a read takes besides, occupying nothing")             \
    RSD_NUM(t_lat_write_ns, "t-lat-write", 0, 0, 1000000000, 0, "ns",        \
            "the same of a write, append or write zeroes")                   \
    RSD_NUM(t_lat_zone_ns, "t-lat-zone", 0, 0, 1000000000, 0, "ns",          \
            "the same of a zone reset, finish, or a command to a random "    \
            "write area")                                                    \
    RSD_NUM(t_link_ns, "t-link", 0, 0, 1000000000, 0, "ns",                  \
            "time of 4 KiB on the host's link (PCIe), a pipe each way")      \
    RSD_ENUM(queue, "queue", RSD_QUEUE_WAY, rsd_queue_names, 0,              \
             "way = one FIFO a channel and way, global = a single FIFO for " \
             "the drive (RISA figure 6)")                                    \
    RSD_ENUM(reset, "reset", RSD_RESET_MARK, rsd_reset_names, 0,             \
             "zone reset: mark = the segment becomes invalid and is erased " \
             "later (RISA 3.2.1), erase = it completes when erased")         \
    RSD_ENUM(finish, "finish", RSD_FINISH_MARK, rsd_finish_names, 0,         \
             "zone finish: mark = the rest stays unwritten, pad = it is "    \
             "programmed")                                                   \
    RSD_NUM(idle_erase_ns, "idle-erase", 2000000, 0, 1000000000000, 0, "ns", \
            "a way idle for so long erases invalid blocks; 0 = only on "     \
            "demand")                                                        \
    RSD_NUM(wl_threshold, "wl-threshold", 32, 0, 1000000, 0, "erases",       \
            "static wear levelling starts when the erase counts within a "   \
            "way differ by more; 0 = never")                                 \
    RSD_NUM(wl_share, "wl-share", 50, 0, 100, 0, "%",                        \
            "programs of static wear levelling in a way that has other "     \
            "work, at most, in percent of its other programs meanwhile; 0 "  \
            "= idle ways alone level")                                       \
    RSD_NUM(endurance, "endurance", 3000, 1, 10000000, 0, "erases",          \
            "rated program/erase cycles")                                    \
    RSD_NUM(life_spread, "life-spread", 0, 0, 100, 0, "%",                   \
            "blocks fail for good when erased as often as endurance says, "  \
            "give or take up to so much, by seed; 0 = never")                \
    RSD_NUM(read_retries, "read-retries", 0, 0, 64, 0, "reads",              \
            "repetitions that the ECC needs to read a page of a block "      \
            "erased as often as endurance says; fewer of one less worn")     \
    RSD_SIZE(zd_ext, "zd-ext", 0, 0, 16320, 1, "bytes",                      \
             "zone descriptor extension, a multiple of 64")                  \
    RSD_NUM(disk_rpm, "disk-rpm", 7200, 60, 100000, 0, "rpm",                \
            "revolutions of a disk (ftl=disk, as all that follow)")          \
    RSD_NUM(disk_seek_min_ns, "disk-seek-min", 800000, 0, 1000000000, 0,     \
            "ns", "seek to the next cylinder")                               \
    RSD_NUM(disk_seek_avg_ns, "disk-seek-avg", 8500000, 0, 1000000000, 0,    \
            "ns", "average of the seeks between all pairs of cylinders")     \
    RSD_NUM(disk_seek_max_ns, "disk-seek-max", 15900000, 0, 1000000000, 0,   \
            "ns", "seek over all cylinders")                                 \
    RSD_NUM(disk_head_switch_ns, "disk-head-switch", 800000, 0, 1000000000,  \
            0, "ns", "from a track to that of another head")                 \
    RSD_NUM(disk_heads, "disk-heads", 2, 1, 64, 0, "",                       \
            "heads, and so tracks of a cylinder")                            \
    RSD_NUM(disk_zones, "disk-zones", 16, 1, 1024, 0, "",                    \
            "zones of as many cylinders, whose tracks have as many slots")   \
    RSD_NUM(disk_outer_slots, "disk-outer-slots", 246, 8, 65536, 0, "",      \
            "slots of 4 KiB of a track in the first zone, the outermost one")\
    RSD_NUM(disk_inner_slots, "disk-inner-slots", 118, 8, 65536, 0, "",      \
            "the same of the last one; those between go down in equal steps")\
    RSD_NUM(disk_segments, "disk-segments", 16, 0, 1024, 0, "",              \
            "ranges that the cache can have for reads; 0 = none, and the "   \
            "disk does not read ahead")                                      \
    RSD_SIZE(disk_segment_size, "disk-segment-size", 524288, 4096,           \
             1073741824, 0, "bytes",                                         \
             "size of such a range, and what is read ahead at most")         \
    RSD_SIZE(disk_write_cache, "disk-write-cache", 8388608, 0, 1073741824,   \
             0, "bytes",                                                     \
             "write cache, which a power cut empties; 0 = a write is done "  \
             "when it is on the medium")

/* These are traits of a translation layer, beyond those of the plainest one. */
enum {
    /*
     * Its namespace has zones. Without this it is conventional: any LBA can be
     * written at any time.
     */
    RSD_FTL_ZONED = 1,
    /* Units of the write buffer that are begun can be filled up, */
    RSD_FTL_PADS = 2,
    /* and each flash block may have one; else each zone, or a die a few */
    RSD_FTL_BEGINS_EVERYWHERE = 4,
    /* It is a disk: blocks of flash are only places in the file. */
    RSD_FTL_ROTATES = 8,
};

/*
 * The translation layers. Of each: its number, which is on media and never
 * changes; its name, as "ftl" and in rsd_ftl_NAME, its table (ftl/ftl.h); what
 * it is; its traits, from above. A new one is a line here and a folder of
 * ftl/. Between two of them stands what follows X: of a list, a comma.
 */
#define RSD_FTLS(X, ...)                                                 \
    X(RSD, 0, rsd, "zones (RISA 3.2)", RSD_FTL_ZONED)                    \
    __VA_ARGS__                                                          \
    X(PAGE, 1, page, "page map (RISA 4.1)", RSD_FTL_PADS)                \
    __VA_ARGS__                                                          \
    X(DFTL, 2, dftl, "page map with a cached map (RISA 4.2)",            \
      RSD_FTL_PADS)                                                      \
    __VA_ARGS__                                                          \
    X(BLOCK, 3, block, "block map (REDO 4)", RSD_FTL_BEGINS_EVERYWHERE)  \
    __VA_ARGS__                                                          \
    X(FAST, 4, fast, "FAST (SFS 4.4)", RSD_FTL_BEGINS_EVERYWHERE)        \
    __VA_ARGS__                                                          \
    X(DISK, 5, disk, "a rotating disk", RSD_FTL_ROTATES)

#define RSD_NIL
#define RSD_FTLS_LIST(X) RSD_FTLS(X, RSD_NIL, RSD_NIL)

#define RSD_FTL_DOC(NAME, number, name, doc, traits) "; " #name " = " doc
#define RSD_FTL_NUMBER(NAME, number, name, doc, traits) RSD_FTL_##NAME = number
typedef enum RsdFtl { RSD_FTLS_LIST(RSD_FTL_NUMBER) } RsdFtl;
#undef RSD_FTL_NUMBER
typedef enum RsdCell {
    RSD_CELL_SLC, RSD_CELL_MLC, RSD_CELL_TLC, RSD_CELL_QLC
} RsdCell;
typedef enum RsdSwitch { RSD_OFF, RSD_ON } RsdSwitch;
typedef enum RsdGcPolicy {
    RSD_GC_GREEDY, RSD_GC_COST_BENEFIT, RSD_GC_FIFO
} RsdGcPolicy;
typedef enum RsdGcFrontiers {
    RSD_GC_FRONTIERS_OWN, RSD_GC_FRONTIERS_SHARED
} RsdGcFrontiers;
typedef enum RsdGcUnit { RSD_GC_UNIT_BLOCK, RSD_GC_UNIT_ALL } RsdGcUnit;
typedef enum RsdAck { RSD_ACK_PROGRAM, RSD_ACK_BUFFER } RsdAck;
typedef enum RsdStripe { RSD_STRIPE_BLOCK, RSD_STRIPE_ALL } RsdStripe;
typedef enum RsdSegment { RSD_SEGMENT_ALL, RSD_SEGMENT_WAY } RsdSegment;
typedef enum RsdQueue { RSD_QUEUE_WAY, RSD_QUEUE_GLOBAL } RsdQueue;
typedef enum RsdReset { RSD_RESET_MARK, RSD_RESET_ERASE } RsdReset;
typedef enum RsdFinish { RSD_FINISH_MARK, RSD_FINISH_PAD } RsdFinish;

/* These end with NULL, and are indexed by the enumerations above. */
extern const char *const rsd_ftl_names[];
extern const char *const rsd_cell_names[];
extern const char *const rsd_switch_names[];
extern const char *const rsd_ack_names[];
extern const char *const rsd_gc_policy_names[];
extern const char *const rsd_gc_frontiers_names[];
extern const char *const rsd_gc_unit_names[];
extern const char *const rsd_stripe_names[];
extern const char *const rsd_segment_names[];
extern const char *const rsd_queue_names[];
extern const char *const rsd_reset_names[];
extern const char *const rsd_finish_names[];

#endif
