# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws: drives that are one and the same in a limit, and models that are the drive's."""

import random
from collections.abc import Iterator, Sequence

from rsd.bench.laws.base import Access, Point, Result, Setting, Simulator, book, models, point

models()
from law_cached_map import SegmentedLru  # noqa: E402
from law_merges import BlockMap, Fast  # noqa: E402

BOOK = book("equality of models")
LIMIT = "two models that are one in this limit"
FAST_RULES = "tests/model/law_merges.py, of Lee et al. 2007"
ONE_DIE: dict[str, Setting] = {"channels": 1, "ways": 1, "blocks": 64, "pages": 32}
DIES: dict[str, Setting] = {"channels": 2, "ways": 2, "blocks": 64, "pages": 32}
WORK = "--precondition 2 --reads 30 --requests 10000 --depth 8"
PAGE: dict[str, Setting] = {"ftl": "page", "over_provision": 20}


def equal(one: Result, other: Result) -> Iterator[Point]:
    """Time, latencies, and what the flash did."""
    yield point(one.seconds, other.seconds, one, other)
    for kind in one.results["operations"]:
        for what in ("mean", "p99", "max"):
            yield point(one.ns(kind, what), other.ns(kind, what), one, other)
    for counter in ("nand_reads", "nand_programs", "wear_sum", "wear_max", "die_busy_ns"):
        yield point(one.after(counter), other.after(counter), one, other)


@BOOK.law(
    "whole-map-cached",
    "dftl with its whole map in RAM is the page map.",
    "DFTL, section 3",
)
def _whole_map(sim: Simulator) -> Iterator[Point]:
    for pattern in ("uniform", "zipf=0.99"):
        for percent in (10, 20):
            drive = DIES | {"over_provision": percent, "map_cache": 1 << 20}
            yield from equal(
                sim.run(f"{WORK} --pattern {pattern}", **drive, ftl="page"),
                sim.run(f"{WORK} --pattern {pattern}", **drive, ftl="dftl"),
            )


@BOOK.law("one-unit", "On one die gc-unit=all is gc-unit=block.", LIMIT)
def _one_unit(sim: Simulator) -> Iterator[Point]:
    drive = ONE_DIE | PAGE
    yield from equal(sim.run(WORK, **drive, gc_unit="block"), sim.run(WORK, **drive, gc_unit="all"))


@BOOK.law(
    "one-stripe", "On one die stripe=all is stripe=block, for a block map and for FAST.", LIMIT
)
def _one_stripe(sim: Simulator) -> Iterator[Point]:
    work = "--precondition fill --reads 30 --requests 2000 --depth 4"
    for ftl in ("block", "fast"):
        drive = ONE_DIE | {"ftl": ftl, "over_provision": 20}
        yield from equal(
            sim.run(work, **drive, stripe="block"), sim.run(work, **drive, stripe="all")
        )


@BOOK.law("default-frontiers", "frontiers=0 is one a die.", "README, Properties")
def _frontiers(sim: Simulator) -> Iterator[Point]:
    drive = DIES | PAGE
    yield from equal(sim.run(WORK, **drive, frontiers=0), sim.run(WORK, **drive, frontiers=4))


@BOOK.law("one-way", "With one way a zone of segment=way is one of segment=all.", LIMIT)
def _one_way(sim: Simulator) -> Iterator[Point]:
    drive = DIES | {"ways": 1}
    yield from equal(sim.run(WORK, **drive, segment="way"), sim.run(WORK, **drive, segment="all"))


@BOOK.law("one-queue", "With one die a queue for the drive is a queue for the way.", LIMIT)
def _one_queue(sim: Simulator) -> Iterator[Point]:
    for ftl in ("rsd", "page"):
        drive = ONE_DIE | {"ftl": ftl, "over_provision": 20}
        yield from equal(
            sim.run(WORK, **drive, queue="way"), sim.run(WORK, **drive, queue="global")
        )


@BOOK.law("alike-pages", "Page types of equal times are no types.", LIMIT)
def _alike(sim: Simulator) -> Iterator[Point]:
    for cell in ("mlc", "qlc"):
        yield from equal(
            sim.run(WORK, **DIES, **PAGE, cell="slc"), sim.run(WORK, **DIES, **PAGE, cell=cell)
        )


@BOOK.law("idle-cores", "Cores and their number do nothing when firmware takes no time.", LIMIT)
def _cores(sim: Simulator) -> Iterator[Point]:
    yield from equal(sim.run(WORK, **DIES, **PAGE, cores=1), sim.run(WORK, **DIES, **PAGE, cores=8))


@BOOK.law("suspend-nothing", "Suspension does nothing where nothing is read.", LIMIT)
def _suspend(sim: Simulator) -> Iterator[Point]:
    work = "--pattern sequential --requests 5000 --depth 8"
    for ftl in ("rsd", "page"):
        drive = DIES | {"ftl": ftl}
        yield from equal(
            sim.run(work, **drive, suspend="off"), sim.run(work, **drive, suspend="on")
        )


@BOOK.law(
    "fresh-retries", "A new drive's reads are not repeated.", "README, Properties (read-retries)"
)
def _fresh(sim: Simulator) -> Iterator[Point]:
    work = "--precondition fill --reads 100 --requests 5000"
    yield from equal(sim.run(work, **DIES, **PAGE), sim.run(work, **DIES, **PAGE, read_retries=8))


@BOOK.law("far-death", "Blocks that will fail in a far future change nothing now.", LIMIT)
def _far(sim: Simulator) -> Iterator[Point]:
    drive = DIES | PAGE | {"endurance": 1_000_000}
    yield from equal(sim.run(WORK, **drive), sim.run(WORK, **drive, life_spread=10))


@BOOK.law("append-is-write", "Appends take the time of writes where firmware takes none.", LIMIT)
def _append(sim: Simulator) -> Iterator[Point]:
    yield from equal(sim.run(WORK, **DIES), sim.run(f"{WORK} --append", **DIES))


@BOOK.law(
    "zones-are-pages",
    "A first pass in sequence: zones, a page map, and dftl with a large cache take the same time.",
    LIMIT,
)
def _zones(sim: Simulator) -> Iterator[Point]:
    work = "--pattern sequential --requests 6000 --depth 16"
    zones = sim.run(work, **DIES)
    for ftl in ("page", "dftl"):
        other = sim.run(work, **DIES, ftl=ftl, map_cache=1 << 20)
        yield point(zones.seconds, other.seconds, zones, other)
        yield point(zones.ns("write"), other.ns("write"), zones, other)


@BOOK.law(
    "segmented-lru",
    "dftl finds an entry of its map exactly when a segmented LRU of map-cache / 8 entries does.",
    "tests/model/law_cached_map.py, of Karedla et al. 1994 (DFTL's cache)",
)
def _slru(sim: Simulator) -> Iterator[Point]:
    for seed in range(10):
        yield lookups(sim, random.Random(seed), 1024 << seed % 4)


def lookups(sim: Simulator, rng: random.Random, cache: int) -> Point:
    """Hits of single pages, half of them to few places, on a new drive."""
    hot = [rng.randrange(4000) for _ in range(rng.randint(10, 400))]
    accesses: list[Access] = [
        (
            0,
            rng.choice(hot) if rng.random() < 0.5 else rng.randrange(4000),
            1,
            rng.choice(("read", "write")),
        )
        for _ in range(3000)
    ]
    got = sim.run(
        f"{sim.trace(accesses)} --depth 1",
        **DIES,
        ftl="dftl",
        map_cache=cache,
        over_provision=60,
    )
    model = SegmentedLru(cache // 8)
    for _, lpn, _, _ in accesses:
        model.use(lpn)
    return point(model.hits, got.count("map_hits"), got)


MERGES = ("merge_switch", "merge_partial", "merge_full", "prog_merge", "erase_merge")


def page_writes(rng: random.Random, pages: int, blocks: int) -> list[int]:
    """Single pages: in sequence from a block's beginning, anywhere, or in few places."""
    lpns: list[int] = []
    hot = [rng.randrange(pages * blocks) for _ in range(20)]
    while len(lpns) < 1500:
        shape = rng.random()
        block = rng.randrange(blocks)
        if shape < 0.15:
            lpns += range(block * pages, block * pages + rng.randint(1, pages))
        elif shape < 0.4:
            lpns.append(rng.choice(hot))
        else:
            lpns.append(rng.randrange(pages * blocks))
    return lpns


def merges(
    sim: Simulator, rng: random.Random, ftl: str, drive: dict[str, Setting]
) -> Iterator[Point]:
    """The drive and the model of its merges, on a drive that was filled."""
    settings = drive | {"ftl": ftl, "wl_threshold": 0}
    empty = sim.run("--requests 0", **settings)
    pages = int(drive["pages"])
    blocks = empty.after("capacity_bytes") // 4096 // pages
    lpns = page_writes(rng, pages, blocks)
    accesses: list[Access] = [(0, lpn, 1, "write") for lpn in lpns]
    # the last erases end while these are read
    accesses += [(0, n, 1, "read") for n in range(200)]
    trace = sim.trace(accesses)
    got = sim.run(f"{trace} --precondition fill --depth 1", **settings)
    model: BlockMap | Fast
    if ftl == "block":
        dies = int(drive["channels"]) * int(drive["ways"])
        a_die = empty.after("blocks_total") // dies
        model = BlockMap(pages, _left(blocks, dies, a_die))
    else:
        model = Fast(pages, max(2, blocks * int(drive["log_blocks"]) // 100) - 1)
    for lpn in lpns:
        model.write(lpn)
    for counter, name in zip(
        MERGES, ("switch", "partial", "full", "copies", "erases"), strict=True
    ):
        yield point(model.count[name], got.count(counter), got)


def _left(blocks: int, dies: int, a_die: int) -> Sequence[int]:
    return [a_die - len(range(die, blocks, dies)) for die in range(dies)]


GEOMETRIES = ((1, 1, 40, 8), (2, 2, 20, 16), (2, 1, 40, 4), (4, 2, 10, 32))


@BOOK.law(
    "block-merges",
    "The block map merges and erases what the model of it does, by kind.",
    "tests/model/law_merges.py, of REDO section 3",
)
def _block_merges(sim: Simulator) -> Iterator[Point]:
    for seed, (channels, ways, blocks, pages) in enumerate(GEOMETRIES):
        drive: dict[str, Setting] = {
            "channels": channels,
            "ways": ways,
            "blocks": blocks,
            "pages": pages,
            "over_provision": 15,
        }
        yield from merges(sim, random.Random(seed), "block", drive)


@BOOK.law("fast-merges", "FAST merges and erases what the model of it does, by kind.", FAST_RULES)
def _fast_merges(sim: Simulator) -> Iterator[Point]:
    for seed, (channels, ways, blocks, pages) in enumerate(GEOMETRIES):
        drive: dict[str, Setting] = {
            "channels": channels,
            "ways": ways,
            "blocks": blocks,
            "pages": pages,
            "over_provision": 30,
            "log_blocks": 10,
        }
        yield from merges(sim, random.Random(seed), "fast", drive)
