# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws: what is counted adds up, of any work on any drive."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rsd.bench.laws.base import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    Point,
    Result,
    Setting,
    Simulator,
    book,
    point,
)
from rsd.layers import layers

BOOK = book("conservation")
CAUSES = ("host", "clean", "merge", "wear", "map", "pad")
COUNTERS = "hw/rsd-nvme/README.md, counters"
OUTPUT = "README of rsdsim, Output"
FLASH = "a page is programmed once between two erases of its block"

SMALL: dict[str, Setting] = {"channels": 2, "ways": 2, "blocks": 32, "pages": 16}
MIXED = "--precondition 1 --reads 40 --depth 16 --requests 8000"
# With and without a buffer, trims, large pages, planes and bad blocks.
_WORKS: tuple[tuple[str, dict[str, Setting]], ...] = (
    (MIXED, {"ftl": "rsd"}),
    (MIXED, {"ftl": "rsd", "reset": "erase", "spare_blocks": 0}),
    (MIXED, {"ftl": "rsd", "segment": "way", "bad_blocks_ppm": 20_000, "spare_blocks": 8}),
    (f"{MIXED} --trims 10", {"ftl": "page", "over_provision": 20}),
    (f"{MIXED} --pattern zipf=0.99", {"ftl": "page", "over_provision": 10, "gc_policy": "fifo"}),
    (f"{MIXED} --size 16K", {"ftl": "page", "over_provision": 10, "gc_unit": "all"}),
    (f"{MIXED} --trims 5", {"ftl": "dftl", "over_provision": 30, "map_cache": 4096}),
    (MIXED, {"ftl": "block", "over_provision": 10}),
    (f"{MIXED} --pattern hotcold=90/10 --trims 5", {"ftl": "fast", "over_provision": 20}),
    (
        "--precondition 1 --reads 20 --size 64K --requests 1500",
        {"ftl": "page", "planes": 2, "page_size": 16384, "over_provision": 28},
    ),
    (
        "--precondition 1 --reads 20 --requests 6000 --pattern sequential",
        {"ftl": "page", "write_buffer": "1M", "ack": "buffer", "over_provision": 20},
    ),
)
# And every other translation layer of flash in the drive's list, so that a new one is tried.
WORKS = _WORKS + tuple(
    (MIXED if layer.zoned else f"{MIXED} --trims 5", {"ftl": layer.name, "over_provision": 40})
    for layer in layers().values()
    if not layer.rotates and layer.name not in {drive["ftl"] for _, drive in _WORKS}
)


@dataclass(frozen=True)
class Invariant:
    """Something that adds up: what it must be and what it is, of any result."""

    name: str
    says: str
    source: str
    relation: str
    tolerance: float
    figures: Callable[[Result], tuple[float, float]]


def setting(got: Result, name: str) -> int:
    """A number among the drive's settings."""
    return int(got.content["settings"][name])


def total(got: Result, what: str) -> int:
    """Pages read or programmed, or blocks erased, of all causes, since the drive was new."""
    return sum(got.after(f"{what}_{cause}") for cause in CAUSES)


def slots(got: Result) -> int:
    """Logical blocks of 4 KiB that a flash block holds."""
    return setting(got, "pages") * setting(got, "planes") * setting(got, "page-size") // 4096


def unit(got: Result) -> int:
    """Logical blocks that are programmed at once."""
    return setting(got, "planes") * setting(got, "page-size") // 4096


def buffered(got: Result) -> int:
    """Pages that may wait to be programmed: the buffer, or a begun unit of each die and cause."""
    dies = setting(got, "channels") * setting(got, "ways")
    begun = 0 if unit(got) == 1 else 4 * dies * unit(got)
    return setting(got, "write-buffer") // 4096 + begun


def operations(got: Result, what: str) -> int:
    """Requests or blocks, summed over the kinds of operation."""
    return sum(int(one[what]) for one in got.results["operations"].values())


def blocks_moved(got: Result) -> int:
    """Logical blocks that were transferred: read and written, not trimmed."""
    kinds = got.results["operations"]
    return sum(int(kinds[kind]["blocks"]) for kind in ("read", "write") if kind in kinds)


INVARIANTS = (
    Invariant(
        "host-programs",
        "What the host writes is programmed once, but for what waits in a buffer.",
        "conservation of pages",
        AT_MOST,
        0.0,
        lambda got: (
            buffered(got),
            abs(got.after("host_write_pages") - got.after("prog_host")),
        ),
    ),
    Invariant(
        "host-reads",
        "What the host reads comes from the flash, from the buffer, or was never written.",
        "conservation of pages",
        EQUAL,
        0.0,
        lambda got: (
            got.count("host_read_pages"),
            got.count("read_host", "buffer_reads", "unwritten_reads"),
        ),
    ),
    Invariant(
        "copies",
        "What is read to be moved is programmed, by collection, merges and wear levelling, but for "
        "what is on its way.",
        "conservation of pages",
        AT_MOST,
        0.0,
        lambda got: (
            buffered(got) + 16 * setting(got, "channels") * setting(got, "ways"),
            abs(
                sum(got.after(f"prog_{cause}") for cause in ("clean", "merge", "wear"))
                - sum(got.after(f"read_{cause}") for cause in ("clean", "merge", "wear"))
            ),
        ),
    ),
    Invariant(
        "nand-programs",
        "NAND pages programmed hold all pages programmed, filler included.",
        COUNTERS,
        EQUAL,
        0.0,
        lambda got: (
            total(got, "prog"),
            got.after("nand_programs") * setting(got, "page-size") // 4096,
        ),
    ),
    Invariant(
        "nand-reads",
        "As many NAND pages are read as logical pages, or fewer: a page of 16 KiB has four.",
        COUNTERS,
        AT_MOST,
        0.0,
        lambda got: (total(got, "read"), got.after("nand_reads")),
    ),
    Invariant(
        "erases",
        "Erases of all causes are the sum of the wear.",
        "an erase wears its block by one",
        EQUAL,
        0.0,
        lambda got: (got.after("wear_sum"), total(got, "erase")),
    ),
    Invariant(
        "wear-histogram",
        "The histogram of wear is of all good blocks.",
        OUTPUT,
        EQUAL,
        0.0,
        lambda got: (
            got.after("blocks_total") - got.after("blocks_bad"),
            sum(got.results["wear"]["blocks"]),
        ),
    ),
    Invariant(
        "wear-mean",
        "Mean wear is the sum over the good blocks, and least <= mean <= most.",
        OUTPUT,
        EQUAL,
        1e-5,
        lambda got: (
            # it is printed with six decimals
            round(got.after("wear_sum") / (got.after("blocks_total") - got.after("blocks_bad")), 6)
            if got.after("wear_min") <= got.results["wear"]["mean"] <= got.after("wear_max")
            else -1,
            got.results["wear"]["mean"],
        ),
    ),
    Invariant(
        "no-page-twice",
        "Programs fit in the flash and in what was erased.",
        FLASH,
        AT_MOST,
        0.0,
        lambda got: (
            slots(got)
            * (got.after("blocks_total") - got.after("blocks_bad") + total(got, "erase")),
            total(got, "prog"),
        ),
    ),
    Invariant(
        "room",
        "A drive holds its data: programs less erased blocks are not fewer than what was written "
        "and is not trimmed.",
        FLASH,
        AT_LEAST,
        0.0,
        lambda got: (
            _certainly_valid(got) - buffered(got),
            total(got, "prog") if not total(got, "erase") else slots(got) * _programmed(got),
        ),
    ),
    Invariant(
        "blocks-add-up",
        "Blocks are bad, in use, dirty or erased.",
        COUNTERS,
        EQUAL,
        0.0,
        lambda got: (
            got.after("blocks_total"),
            sum(got.after(f"blocks_{state}") for state in ("bad", "used", "dirty", "erased")),
        ),
    ),
    Invariant(
        "spares-add-up",
        "Spare blocks left are those there were, less the bad blocks, down to none in a way.",
        COUNTERS,
        AT_LEAST,
        0.0,
        lambda got: (
            got.after("spares_total") - got.after("blocks_bad"),
            got.after("spares_left"),
        ),
    ),
    Invariant(
        "erases-of-a-kind",
        "Erases on demand and erases while idle are of all erases.",
        COUNTERS,
        AT_MOST,
        0.0,
        lambda got: (
            total(got, "erase"),
            got.after("erase_on_demand") + got.after("erase_idle"),
        ),
    ),
    Invariant(
        "requests-add-up",
        "Requests are reads, writes, trims and zone resets.",
        OUTPUT,
        EQUAL,
        0.0,
        lambda got: (got.results["requests"], operations(got, "requests")),
    ),
    Invariant(
        "commands-add-up",
        "The drive counts the commands that the generator sends.",
        COUNTERS,
        EQUAL,
        0.0,
        lambda got: (
            operations(got, "requests"),
            got.count("host_read_cmds", "host_write_cmds", "trim_cmds", "zone_resets"),
        ),
    ),
    Invariant(
        "pages-add-up",
        "The drive counts the pages that the requests are of.",
        COUNTERS,
        EQUAL,
        0.0,
        lambda got: (
            operations(got, "blocks"),
            got.count("host_read_pages", "host_write_pages", "trim_pages"),
        ),
    ),
    Invariant(
        "throughput",
        "Bytes a second are bytes read and written, not trimmed or never written, by the time.",
        OUTPUT,
        EQUAL,
        1e-6,
        lambda got: (
            (blocks_moved(got) - got.count("unwritten_reads")) * 4096 / got.seconds,
            got.bytes_per_s,
        ),
    ),
    Invariant(
        "rate",
        "Requests a second are requests by the time.",
        OUTPUT,
        EQUAL,
        5e-4,  # it is printed with three decimals
        lambda got: (got.results["requests"] / got.seconds, float(got.results["iops"])),
    ),
    Invariant(
        "latencies-in-order",
        "Least <= mean <= most, and percentiles rise.",
        "definition",
        EQUAL,
        0.0,
        lambda got: (1, float(all(map(_in_order, got.results["operations"].values())))),
    ),
    Invariant(
        "map-lookups",
        "A cached map is asked once for each page that the host reads, writes or trims.",
        COUNTERS,
        EQUAL,
        0.0,
        lambda got: (
            got.count("host_read_pages", "host_write_pages")
            if got.content["settings"]["ftl"] == "dftl"
            else 0,
            got.count("map_hits", "map_misses"),
        ),
    ),
    Invariant(
        "nothing-failed",
        "On a drive that is not worn out no request fails.",
        "hw/rsd-nvme/README.md, Limits and refusals",
        EQUAL,
        0.0,
        lambda got: (0, got.results["failed"] + got.after("media_errors")),
    ),
)


def _in_order(operation: dict[str, dict[str, float]]) -> bool:
    ns = operation["latency_ns"]
    ranks = [ns[name] for name in ("p50", "p90", "p99", "p99.9", "p99.99")]
    return (
        ns["min"] <= ns["mean"] <= ns["max"] and ranks == sorted(ranks) and ranks[-1] <= ns["max"]
    )


def _certainly_valid(got: Result) -> int:
    """Pages that must be somewhere: what was filled and never trimmed; none if unknown."""
    if got.after("trim_cmds") or layers()[got.content["settings"]["ftl"]].zoned:
        return 0
    return int(got.content["precondition"]["filled_blocks"])


def _programmed(got: Result) -> int:
    """Blocks that hold something: those that are neither bad nor erased."""
    return got.after("blocks_total") - got.after("blocks_bad") - got.after("blocks_erased")


def invariants(got: Result) -> Iterator[tuple[Invariant, Point]]:
    """All of them, of one result."""
    for one in INVARIANTS:
        expected, found = one.figures(got)
        yield one, point(expected, found, got)


def _enter(one: Invariant) -> None:
    @BOOK.law(one.name, one.says, one.source, one.tolerance, one.relation)
    def _law(sim: Simulator) -> Iterator[Point]:
        for work, drive in WORKS:
            got = sim.run(work, **(SMALL | drive))
            expected, found = one.figures(got)
            yield point(expected, found, got)


for _one in INVARIANTS:
    _enter(_one)


@BOOK.law(
    "zone-capacity",
    "Zones are channels x ways x blocks x pages x planes x page size; spares come on top.",
    "hw/rsd-nvme/README.md, Properties",
)
def _zone_capacity(sim: Simulator) -> Iterator[Point]:
    for channels, ways, planes, page in ((1, 1, 1, 4096), (4, 2, 2, 16384), (8, 4, 1, 8192)):
        got = sim.run(
            "--requests 0",
            channels=channels,
            ways=ways,
            planes=planes,
            page_size=page,
            blocks=20,
            pages=24,
        )
        yield point(channels * ways * planes * page * 20 * 24, got.after("capacity_bytes"), got)
        yield point(channels * ways * 24, got.after("blocks_total"), got)


@BOOK.law(
    "map-size",
    "A segment map has 4 bytes a flash block of the zones: 4 KB at 512 MB, 8 MB at 1 TB.",
    "REDO table 2, RISA table 2",
)
def _map_size(sim: Simulator) -> Iterator[Point]:
    for channels, ways, blocks, expected in ((2, 2, 256, 4096), (8, 4, 65536, 8 << 20)):
        got = sim.run("--requests 0", channels=channels, ways=ways, blocks=blocks)
        yield point(expected, got.after("map_bytes"), got)


@BOOK.law(
    "zone-erases",
    "Overwriting zones in sequence, every block is erased once a round.",
    "a zone's blocks are erased when it is written again",
    0.02,
)
def _zone_erases(sim: Simulator) -> Iterator[Point]:
    got = sim.run("--precondition 3 --pattern sequential --requests 40000", **SMALL, idle_erase=0)
    rounds = got.after("host_write_pages") / (got.after("capacity_bytes") // 4096)
    # the first round meets new blocks, and so do the spares'
    yield point((rounds - 1) * 128 - 16, total(got, "erase"), got)


@BOOK.law(
    "collected-erases",
    "A page map erases as many blocks as it fills: P pages programmed, one erase.",
    FLASH,
    0.01,
)
def _collected_erases(sim: Simulator) -> Iterator[Point]:
    for policy in ("greedy", "fifo"):
        got = sim.run(
            "--precondition 2 --requests 60000",
            ftl="page",
            over_provision=20,
            gc_policy=policy,
            **(SMALL | {"blocks": 64}),
        )
        programs = sum(got.count(f"prog_{cause}") for cause in CAUSES)
        yield point(programs / 16, sum(got.count(f"erase_{cause}") for cause in CAUSES), got)
