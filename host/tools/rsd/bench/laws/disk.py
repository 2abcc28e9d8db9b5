# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws: a rotating disk, by the closed forms of its times."""

from collections.abc import Iterator

from rsd.bench.laws.base import AT_LEAST, Point, Result, Setting, Simulator, book, point

BOOK = book("a rotating disk")
RULES = "hw/rsd-nvme/README.md, A rotating disk"
TEXTBOOK = "Ruemmler and Wilkes 1994, An introduction to disk drive modeling"
TURN = 60_000_000_000 // 7_200
SEEK_MIN, SEEK_AVG, SEEK_MAX, SWITCH = 800_000, 8_500_000, 15_900_000, 800_000
SLOTS, HEADS = 200, 2
# One zone of tracks, of 100,000 cylinders; neither cache
BARE: dict[str, Setting] = {
    "ftl": "disk",
    "channels": 1,
    "ways": 1,
    "blocks": 100_000,
    "pages": HEADS * SLOTS,
    "disk_zones": 1,
    "disk_outer_slots": SLOTS,
    "disk_inner_slots": SLOTS,
    "disk_segments": 0,
    "disk_write_cache": 0,
}
CACHES: dict[str, Setting] = {"disk_segments": 4, "disk_write_cache": 1 << 20}


def _busy(got: Result) -> int:
    """ns of the arm."""
    return got.count("disk_seek_ns", "disk_rotate_ns", "disk_transfer_ns")


@BOOK.law(
    "disk-random",
    "A random read or write at depth 1 takes the average seek, half a turn and a slot.",
    TEXTBOOK,
    0.01,
)
def _random(sim: Simulator) -> Iterator[Point]:
    for average in (SEEK_AVG, 6_000_000):
        for reads, kind in ((100, "read"), (0, "write")):
            work = f"--depth 1 --requests 40000 --reads {reads}"
            got = sim.run(work, disk_seek_avg=average, **BARE)
            yield point(average + TURN / 2 + TURN / SLOTS, got.ns(kind), got)


@BOOK.law(
    "disk-rotation", "Random requests at depth 1 wait half a turn on average.", TEXTBOOK, 0.02
)
def _rotation(sim: Simulator) -> Iterator[Point]:
    for rpm in (5_400, 7_200, 15_000):
        got = sim.run("--depth 1 --requests 20000 --reads 100", disk_rpm=rpm, **BARE)
        yield point(30_000_000_000 / rpm, got.count("disk_rotate_ns") / 20_000, got)


@BOOK.law(
    "disk-sequential",
    "Requests in sequence go at the rate of a cylinder's tracks and what their skews take.",
    RULES,
    0.005,
)
def _sequential(sim: Simulator) -> Iterator[Point]:
    for switch, step in ((SWITCH, SEEK_MIN), (2_000_000, 300_000)):
        skews = (switch * SLOTS // TURN + 1) + (max(step, switch) * SLOTS // TURN + 1)
        cylinder = (HEADS * SLOTS + skews) * TURN / SLOTS
        for reads in (100, 0):
            drive = BARE | CACHES | {"disk_head_switch": switch, "disk_seek_min": step}
            work = f"--pattern sequential --size 64K --depth 2 --requests 20000 --reads {reads}"
            got = sim.run(work, **drive)
            yield point(HEADS * SLOTS * 4096 * 1e9 / cylinder, got.bytes_per_s, got)


@BOOK.law(
    "disk-missed",
    "Writes in sequence at depth 1, without a write cache, come too late by a link's time, and "
    "take a turn and a slot each.",
    TEXTBOOK,
    0.01,
)
def _missed(sim: Simulator) -> Iterator[Point]:
    got = sim.run("--pattern sequential --depth 1 --requests 2000", t_link=10_000, **BARE)
    yield point(TURN + TURN / SLOTS, got.ns("write", "p50"), got)


@BOOK.law(
    "disk-time",
    "At depth 1 the time is that of the arm: seeks, rotation and transfer, and nothing else.",
    RULES,
)
def _time(sim: Simulator) -> Iterator[Point]:
    for work in ("--reads 100", "--reads 50", "--pattern sequential --size 32K"):
        got = sim.run(f"{work} --depth 1 --requests 2000", **BARE)
        yield point(_busy(got), round(got.seconds * 1e9), got)


@BOOK.law(
    "disk-conservation",
    "Each block that was read has passed under a head, or was in the cache.",
    RULES,
)
def _conservation(sim: Simulator) -> Iterator[Point]:
    for depth in (1, 32):
        work = f"--reads 50 --size 16K --pattern hotcold=90/1 --depth {depth} --requests 3000"
        got = sim.run(work, **BARE | CACHES | {"blocks": 200})
        passed = got.count("disk_read_pages", "disk_cache_hits")
        yield point(got.count("host_read_pages"), passed, got)


@BOOK.law(
    "disk-queue",
    "A deeper queue is served faster: by a quarter at depth 4, twice as fast at 32, at least.",
    "Worthington, Ganger and Patt 1994, Scheduling algorithms for modern disk drives",
    relation=AT_LEAST,
)
def _queue(sim: Simulator) -> Iterator[Point]:
    one = sim.run("--reads 100 --requests 4000 --depth 1", **BARE)
    for depth, times in ((4, 1.25), (32, 2.0)):
        got = sim.run(f"--reads 100 --requests 4000 --depth {depth}", **BARE)
        yield point(times * one.iops, got.iops, one, got)
