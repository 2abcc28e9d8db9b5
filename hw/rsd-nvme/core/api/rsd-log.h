/*
 * The vendor log page (identifier 0xCA): layout and the one table of counters.
 *
 * Shared by the drive, rsdctl and the documentation. Little-endian.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_LOG_H
#define RSD_LOG_H

#include <stdint.h>

#define RSD_LOG_ID 0xCA
#define RSD_LOG_MAGIC 0x474f4c2d44535252ull /* "RRSD-LOG" */
#define RSD_LOG_VERSION 1
#define RSD_LOG_HISTOGRAM 64
#define RSD_LOG_MAX_COUNTERS 160

/*
 * RSD_COUNTER(field, "unit", "what it counts"), in the order of the log page.
 * Every NAND operation is counted exactly once, by its cause; reads and
 * programs in pages of 4 KiB, the logical block, whatever page-size is:
 *   host   a command of the host asked for it
 *   clean  garbage collection of a translation layer (none in an RSD)
 *   merge  block merges of a translation layer (none in an RSD)
 *   wear   static wear levelling
 *   map    the drive's own mapping pages (none in an RSD)
 *   pad    filler pages: finish=pad, and gaps closed after a power loss
 */
#define RSD_COUNTERS(RSD_COUNTER)                                            \
    RSD_COUNTER(host_read_cmds, "commands", "read commands completed")       \
    RSD_COUNTER(host_write_cmds, "commands",                                 \
                "write, append and write zeroes commands completed")         \
    RSD_COUNTER(host_read_pages, "pages", "logical blocks read by the host") \
    RSD_COUNTER(host_write_pages, "pages",                                   \
                "logical blocks written by the host")                        \
    RSD_COUNTER(flush_cmds, "commands", "flush commands completed")          \
    RSD_COUNTER(zone_resets, "zones", "zones reset")                         \
    RSD_COUNTER(zone_finishes, "zones", "zones finished by command")         \
    RSD_COUNTER(formats, "commands", "Format NVM commands completed")        \
    RSD_COUNTER(read_host, "pages", "NAND page reads, cause host")           \
    RSD_COUNTER(read_clean, "pages", "NAND page reads, cause clean")         \
    RSD_COUNTER(read_merge, "pages", "NAND page reads, cause merge")         \
    RSD_COUNTER(read_wear, "pages", "NAND page reads, cause wear")           \
    RSD_COUNTER(read_map, "pages", "NAND page reads, cause map")             \
    RSD_COUNTER(read_pad, "pages", "NAND page reads, cause pad")             \
    RSD_COUNTER(prog_host, "pages", "NAND page programs, cause host")        \
    RSD_COUNTER(prog_clean, "pages", "NAND page programs, cause clean")      \
    RSD_COUNTER(prog_merge, "pages", "NAND page programs, cause merge")      \
    RSD_COUNTER(prog_wear, "pages", "NAND page programs, cause wear")        \
    RSD_COUNTER(prog_map, "pages", "NAND page programs, cause map")          \
    RSD_COUNTER(prog_pad, "pages", "NAND page programs, cause pad")          \
    RSD_COUNTER(erase_host, "blocks", "NAND block erases, cause host")       \
    RSD_COUNTER(erase_clean, "blocks", "NAND block erases, cause clean")     \
    RSD_COUNTER(erase_merge, "blocks", "NAND block erases, cause merge")     \
    RSD_COUNTER(erase_wear, "blocks", "NAND block erases, cause wear")       \
    RSD_COUNTER(erase_map, "blocks", "NAND block erases, cause map")         \
    RSD_COUNTER(erase_pad, "blocks", "NAND block erases, cause pad")         \
    RSD_COUNTER(erase_on_demand, "blocks",                                   \
                "of all erases: a program or a reset waited for them")       \
    RSD_COUNTER(erase_idle, "blocks", "of all erases: done while idle")      \
    RSD_COUNTER(unwritten_reads, "pages",                                    \
                "logical blocks read that were never written (no NAND read)")\
    RSD_COUNTER(media_errors, "events",                                      \
                "reads and programs that failed for good")                   \
    RSD_COUNTER(queue_wait_ns, "ns",                                         \
                "sum over NAND operations of the time from entering the "    \
                "queue to the start on the die")                             \
    RSD_COUNTER(queue_wait_max_ns, "ns", "the longest of those waits")       \
    RSD_COUNTER(bus_busy_ns, "ns", "sum over channels of busy time")         \
    RSD_COUNTER(die_busy_ns, "ns", "sum over dies of busy time")             \
    RSD_COUNTER(map_bytes, "bytes", "size of the segment-map table")         \
    RSD_COUNTER(ram_bytes, "bytes",                                          \
                "other memory the core holds (queues, buffers, block state)")\
    RSD_COUNTER(zones, "zones", "zones of the drive")                        \
    RSD_COUNTER(capacity_bytes, "bytes", "bytes the host can write")         \
    RSD_COUNTER(page_bytes, "bytes", "data bytes of a page")                 \
    RSD_COUNTER(oob_bytes, "bytes", "page metadata the host sees")           \
    RSD_COUNTER(blocks_total, "blocks", "flash blocks, spares included")     \
    RSD_COUNTER(blocks_bad, "blocks", "of these, bad")                       \
    RSD_COUNTER(blocks_used, "blocks", "of these, mapped to a segment")      \
    RSD_COUNTER(blocks_dirty, "blocks", "of these, waiting for erasure")     \
    RSD_COUNTER(blocks_erased, "blocks", "of these, erased and free")        \
    RSD_COUNTER(spares_total, "blocks", "spare blocks when new")             \
    RSD_COUNTER(spares_left, "blocks",                                       \
                "spare blocks not taken by bad ones, summed over the ways")  \
    RSD_COUNTER(wear_min, "erases", "lowest erase count of a good block")    \
    RSD_COUNTER(wear_max, "erases", "highest erase count of a good block")   \
    RSD_COUNTER(wear_sum, "erases", "sum of the erase counts")               \
    RSD_COUNTER(wear_moves, "blocks", "blocks moved by wear levelling")      \
    RSD_COUNTER(endurance, "erases", "rated program/erase cycles")           \
    RSD_COUNTER(trim_cmds, "commands", "trims completed")                    \
    RSD_COUNTER(trim_pages, "pages", "logical pages in those")               \
    RSD_COUNTER(nand_reads, "pages",                                         \
                "NAND pages (of page-size, in one plane) that the array read")\
    RSD_COUNTER(nand_programs, "pages", "the same, programmed")              \
    RSD_COUNTER(read_retries, "pages",                                       \
                "the same, read again for the ECC (not in nand_reads)")      \
    RSD_COUNTER(blocks_grown, "blocks",                                      \
                "of the bad blocks, those that were good when new")          \
    RSD_COUNTER(suspends, "events", "programs and erases suspended")         \
    RSD_COUNTER(merge_switch, "merges",                                      \
                "a log or replacement block took the data block's place "    \
                "as it was")                                                 \
    RSD_COUNTER(merge_partial, "merges",                                     \
                "the same, after the rest was copied to it")                 \
    RSD_COUNTER(merge_full, "merges",                                        \
                "pages of several blocks were gathered in one")              \
    RSD_COUNTER(buffer_reads, "pages",                                       \
                "logical blocks that the host read from the write buffer "   \
                "(no NAND read)")                                            \
    RSD_COUNTER(map_hits, "entries",                                         \
                "map entries of host commands found in the cache (ftl=dftl)")\
    RSD_COUNTER(map_misses, "entries",                                       \
                "the same, not found: a map page was read, if there was one")\
    RSD_COUNTER(host_zero_pages, "pages",                                    \
                "logical blocks that write zeroes trimmed (conventional; "   \
                "in zones they are written)")                                 \
    RSD_COUNTER(zrwa_overwrites, "pages",                                    \
                "logical blocks written again in a random write area: they " \
                "cost no program")                                           \
    RSD_COUNTER(zrwa_explicit, "pages",                                      \
                "logical blocks committed by a command, or a zone finish")   \
    RSD_COUNTER(zrwa_implicit, "pages",                                      \
                "the same, by a write beyond the area")                      \
    RSD_COUNTER(flash_bytes, "bytes",                                        \
                "data bytes of the blocks that are not bad; those beyond "   \
                "capacity_bytes are over-provisioning")                      \
    RSD_COUNTER(disk_read_pages, "pages",                                    \
                "logical blocks that the host's reads waited for to pass "   \
                "under a head (ftl=disk, as all that follow)")               \
    RSD_COUNTER(disk_cache_hits, "pages",                                    \
                "the same, but found in the cache: read before or ahead, or "\
                "not yet written to the medium")                             \
    RSD_COUNTER(disk_write_pages, "pages",                                   \
                "logical blocks written to the medium")                      \
    RSD_COUNTER(disk_overwrites, "pages",                                    \
                "logical blocks written again while they were in the write " \
                "cache: only the last content goes to the medium")           \
    RSD_COUNTER(disk_seeks, "seeks",                                         \
                "movements of the arm to another cylinder, but for reading " \
                "ahead, as the times that follow")                           \
    RSD_COUNTER(disk_seek_ns, "ns", "time of seeks and head switches")       \
    RSD_COUNTER(disk_rotate_ns, "ns",                                        \
                "time of waiting for a logical block to come")               \
    RSD_COUNTER(disk_transfer_ns, "ns",                                      \
                "time of logical blocks passing under a head")               \
    RSD_COUNTER(fault_program, "faults",                                     \
                "faults injected by rules: programs that failed once, and "  \
                "left a weak block")                                         \
    RSD_COUNTER(fault_erase, "faults", "the same: erases made to fail")      \
    RSD_COUNTER(fault_read, "faults", "the same: pages made unreadable")     \
    RSD_COUNTER(fault_latency, "faults", "the same: operations that took "   \
                "longer")                                                    \
    RSD_COUNTER(fault_corrupt, "faults", "the same: logical blocks "         \
                "corrupted on their way to the flash")                       \
    RSD_COUNTER(fault_lost, "faults", "the same: writes lost")               \
    RSD_COUNTER(fault_misdirect, "faults", "the same: writes misdirected")   \
    RSD_COUNTER(fault_read_only, "faults", "the same: zones made read-only") \
    RSD_COUNTER(fault_offline, "faults", "the same: zones taken offline")

#define RSD_COUNTER_FIELD(field, unit, doc) uint64_t field;
typedef struct RsdCounters {
    RSD_COUNTERS(RSD_COUNTER_FIELD)
} RsdCounters;
#undef RSD_COUNTER_FIELD

#define RSD_NUM_COUNTERS (sizeof(RsdCounters) / sizeof(uint64_t))

/* The log page. All integers little-endian. */
typedef struct RsdLogPage {
    uint64_t magic;            /* RSD_LOG_MAGIC */
    uint16_t version;          /* RSD_LOG_VERSION */
    uint16_t num_counters;     /* counters that follow, in table order */
    uint32_t bucket_erases;    /* width of a histogram bucket, in erases */
    /* zones that make full bandwidth, see RsdGeometry; 0 = there are none */
    uint32_t zone_ways;
    uint8_t reserved[44];
    uint64_t counters[RSD_LOG_MAX_COUNTERS];
    /* blocks whose erase count / bucket_erases is the index, last = rest */
    uint64_t erase_histogram[RSD_LOG_HISTOGRAM];
    uint8_t reserved2[2240];
} RsdLogPage;

_Static_assert(sizeof(RsdLogPage) == 4096, "the log page is 4096 bytes");
_Static_assert(RSD_NUM_COUNTERS <= RSD_LOG_MAX_COUNTERS,
               "the counters fit the log page");

#endif
