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
            "planes of a die; they divide its blocks and do no more yet")         \
    RSD_NUM(blocks, "blocks", 128, 1, 1048576, 1, "blocks",                  \
            "flash blocks of a way that the host sees; spares come on top")  \
    RSD_NUM(pages, "pages", 128, 1, 65536, 1, "pages",                       \
            "pages of a flash block")                                        \
    RSD_SIZE(page_size, "page-size", 4096, 4096, 4096, 1, "bytes",           \
             "data bytes of a page, equal to the logical block")             \
    RSD_NUM(spare_blocks, "spare-blocks", 4, 0, 65536, 1, "blocks",          \
            "spare flash blocks of a way, for bad blocks and erasure ahead") \
    RSD_NUM(bad_ppm, "bad-blocks-ppm", 0, 0, 500000, 1, "ppm",               \
            "factory bad blocks in a million, placed by seed")               \
    RSD_NUM(seed, "seed", 1, 0, UINT64_MAX, 1, "",                           \
            "seed of everything random in the drive")                        \
    RSD_ENUM(segment, "segment", RSD_SEGMENT_ALL, rsd_segment_names, 1,      \
             "flash blocks of a zone: all = one of every channel and way, "  \
             "way = one of every channel of one way (RISA 4.5)")             \
    RSD_NUM(oob, "oob", 0, 0, 128, 0, "bytes",                               \
            "page metadata the host sees after creation or format: "         \
            "0, 16, 64 or 128")                                              \
    RSD_NUM(t_cmd_ns, "t-cmd", 2500, 0, 1000000000, 0, "ns",                 \
            "channel time of a command and its address cycles")              \
    RSD_NUM(t_xfer_ns, "t-xfer", 30833, 0, 1000000000, 0, "ns",              \
            "channel time of a page with its OOB")                           \
    RSD_NUM(t_read_ns, "t-read", 60000, 0, 1000000000, 0, "ns",              \
            "array read, tR")                                                \
    RSD_NUM(t_prog_ns, "t-prog", 444278, 0, 10000000000, 0, "ns",            \
            "page program, tPROG")                                           \
    RSD_NUM(t_erase_ns, "t-erase", 3500000, 0, 100000000000, 0, "ns",        \
            "block erase, tBERS")                                            \
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
    RSD_NUM(endurance, "endurance", 3000, 1, 10000000, 0, "erases",          \
            "rated program/erase cycles, for the wear that SMART reports")   \
    RSD_SIZE(zd_ext, "zd-ext", 0, 0, 16320, 1, "bytes",                      \
             "zone descriptor extension, a multiple of 64")

typedef enum RsdSegment { RSD_SEGMENT_ALL, RSD_SEGMENT_WAY } RsdSegment;
typedef enum RsdQueue { RSD_QUEUE_WAY, RSD_QUEUE_GLOBAL } RsdQueue;
typedef enum RsdReset { RSD_RESET_MARK, RSD_RESET_ERASE } RsdReset;
typedef enum RsdFinish { RSD_FINISH_MARK, RSD_FINISH_PAD } RsdFinish;

/* NULL-terminated, indexed by the enumerations above */
extern const char *const rsd_segment_names[];
extern const char *const rsd_queue_names[];
extern const char *const rsd_reset_names[];
extern const char *const rsd_finish_names[];

#endif
