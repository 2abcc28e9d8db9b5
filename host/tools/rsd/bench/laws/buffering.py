# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws: the write buffer, suspension, and the second register of a die."""

from collections.abc import Iterator

from rsd.bench.laws.base import (
    AT_LEAST,
    AT_MOST,
    Access,
    Point,
    Simulator,
    book,
    point,
)

BOOK = book("buffer, suspension, cache operations")
TIME = "hw/rsd-nvme/README.md, Time"
PROPERTIES = "hw/rsd-nvme/README.md, Properties"
CONSERVATION = "conservation of pages: what is acknowledged is programmed or in the buffer"
CMD, XFER, READ, PROG, ERASE, SUSPEND = 2_500, 30_833, 60_000, 444_278, 3_500_000, 5_000
ALONE, PROGRAM = CMD + READ + XFER, CMD + XFER + PROG
# 4 dies of one frontier each; a buffer of 1 MiB is 256 pages.
BUFFERED = {
    "write_buffer": "1M",
    "ack": "buffer",
    "channels": 2,
    "ways": 2,
    "blocks": 32,
    "over_provision": 28,
}
RATE = 4 / PROGRAM * 1e9  # pages a second of 4 dies


@BOOK.law("burst", "A write that finds room in the buffer takes no time.", TIME)
def _burst(sim: Simulator) -> Iterator[Point]:
    for ftl in ("rsd", "page"):
        got = sim.run("--pattern sequential --requests 256 --depth 1", ftl=ftl, **BUFFERED)
        yield point(0, got.ns("write", "max"), got)


@BOOK.law(
    "burst-length",
    "What a burst hides is the buffer: N pages take as long as N less the buffer's take the flash.",
    "fluid approximation of a buffer that is drained at the flash's rate",
    0.02,
)
def _burst_length(sim: Simulator) -> Iterator[Point]:
    for pages in (2_000, 6_000):
        got = sim.run(f"--pattern sequential --requests {pages} --depth 1", ftl="page", **BUFFERED)
        yield point((pages - 256) / RATE, got.seconds, got)


@BOOK.law(
    "sustained",
    "In the long run a buffer writes as fast as the flash, no faster: ack=buffer is ack=program.",
    CONSERVATION,
    0.02,
)
def _sustained(sim: Simulator) -> Iterator[Point]:
    work = "--requests 60000 --depth 256 --precondition 2"
    drive = BUFFERED | {"ftl": "page", "pages": 64, "over_provision": 30, "write_buffer": "256K"}
    plain, buffered = sim.run(work, **(drive | {"ack": "program"})), sim.run(work, **drive)
    yield point(plain.iops, buffered.iops, plain, buffered)


@BOOK.law(
    "zones-buffered",
    "Overwriting buffered zones moves no more bytes than the dies program, and one buffer.",
    CONSERVATION,
    0.01,
    AT_MOST,
)
def _zones_buffered(sim: Simulator) -> Iterator[Point]:
    for pattern in ("uniform", "hotcold=99/1", "sequential"):
        for ack in ("buffer", "program"):
            got = sim.run(
                f"--pattern {pattern} --size 128K --depth 64 --requests 4000 --precondition fill",
                **(BUFFERED | {"write_buffer": "8M", "ack": ack}),
            )
            most = RATE * got.seconds + 2048
            yield point(most, got.count("host_write_pages"), got)


@BOOK.law(
    "nothing-lost",
    "What was written is programmed, or still in the buffer; no write is completed otherwise.",
    CONSERVATION,
    0.0,
    AT_LEAST,
)
def _nothing_lost(sim: Simulator) -> Iterator[Point]:
    for pattern in ("uniform", "hotcold=99/1", "sequential"):
        for ftl in ("rsd", "page"):
            got = sim.run(
                f"--pattern {pattern} --size 16K --depth 64 --requests 6000 --precondition fill",
                ftl=ftl,
                **BUFFERED,
            )
            # a page written again while it waits may be programmed once, by a drive that maps pages
            least = got.after("host_write_pages") - 256
            yield point(least, got.after("prog_host"), got)


@BOOK.law(
    "in-order", "No write fails with plp=off: a zone's writes stay in order.", "NVMe ZNS 1.1, 3.4.1"
)
def _in_order(sim: Simulator) -> Iterator[Point]:
    for plp in ("on", "off"):
        got = sim.run("--precondition 2 --requests 20000", plp=plp, **BUFFERED)
        yield point(0, got.results["failed"], got)


@BOOK.law(
    "buffered-amplification",
    "A buffer for what waits changes no write amplification of a page map.",
    "the order of programs is that of the writes",
    0.02,
)
def _buffered_amplification(sim: Simulator) -> Iterator[Point]:
    drive = dict(ftl="page", channels=2, ways=2, blocks=64, pages=64, over_provision=20)
    plain = sim.run("--precondition 4 --requests 60000", **drive)
    buffered = sim.run(
        "--precondition 4 --requests 60000", **drive, write_buffer="256K", ack="buffer"
    )
    yield point(plain.amplification, buffered.amplification, plain, buffered)


@BOOK.law("read-of-buffer", "What waits in the buffer is read there: no array is asked.", TIME)
def _read_of_buffer(sim: Simulator) -> Iterator[Point]:
    work: list[Access] = [(0, 0, 64, "write"), (1000, 60, 4, "read")]
    got = sim.run(sim.trace(work), ftl="page", **BUFFERED)
    yield point(4, got.count("buffer_reads"), got)
    yield point(0, got.count("nand_reads"), got)
    yield point(0, got.ns("read"), got)


def _read_meets_program(at: int) -> list[Access]:
    """A block of 8 pages is full; a page of the next is being programmed when the first is read."""
    fill: list[Access] = [(n * PROGRAM, n, 1, "write") for n in range(8)]
    begun = 8 * PROGRAM
    return [*fill, (begun, 8, 1, "write"), (begun + at, 0, 1, "read")]


ONE_DIE = {"ftl": "page", "channels": 1, "ways": 1, "blocks": 64, "pages": 8, "idle_erase": 0}


@BOOK.law(
    "suspend-read", "A read that suspends a program takes t-suspend more than alone.", PROPERTIES
)
def _suspend_read(sim: Simulator) -> Iterator[Point]:
    for t_suspend in (0, 5_000, 20_000):
        got = sim.run(
            sim.trace(_read_meets_program(100_000)), suspend="on", t_suspend=t_suspend, **ONE_DIE
        )
        yield point(t_suspend + ALONE, got.ns("read"), got)
        yield point(1, got.count("suspends"), got)


@BOOK.law(
    "suspended-program",
    "A program that was suspended ends later by t-suspend and what went before it.",
    PROPERTIES,
)
def _suspended_program(sim: Simulator) -> Iterator[Point]:
    got = sim.run(sim.trace(_read_meets_program(100_000)), suspend="on", **ONE_DIE)
    yield point(PROGRAM + SUSPEND + ALONE, got.ns("write", "max"), got)


@BOOK.law("no-suspend", "Without suspension a read waits for the rest of the program.", TIME)
def _no_suspend(sim: Simulator) -> Iterator[Point]:
    for at in (50_000, 100_000, 400_000):
        got = sim.run(sim.trace(_read_meets_program(at)), **ONE_DIE)
        yield point(PROGRAM - at + ALONE, got.ns("read"), got)
        yield point(PROGRAM, got.ns("write", "max"), got)


@BOOK.law(
    "suspend-worst",
    "One read at a time among programs: with suspension it takes no more than alone, t-suspend "
    "and a page on the bus.",
    PROPERTIES,
    0.0,
    AT_MOST,
)
def _suspend_reads(sim: Simulator) -> Iterator[Point]:
    # one program at a time, and reads far enough apart not to meet
    work: list[Access] = [(n * PROGRAM, n % 256, 1, "write") for n in range(400)]
    begun = 300 * PROGRAM
    work += [(begun + n * 3_000_000 + 77_777 * n % 400_000, n % 200, 1, "read") for n in range(8)]
    got = sim.run(sim.trace(sorted(work)), suspend="on", over_provision=50, **ONE_DIE)
    wait = CMD + XFER  # the bus may have the program's data on it
    yield point(SUSPEND + ALONE + wait, got.ns("read", "max"), got)


@BOOK.law(
    "suspend-limit",
    "No more than suspend-reads reads go before a program.",
    PROPERTIES,
    0.0,
    AT_MOST,
)
def _suspend_limit(sim: Simulator) -> Iterator[Point]:
    for most in (1, 4, 16):
        fill: list[Access] = [(n * PROGRAM, n, 1, "write") for n in range(8)]
        begun = 8 * PROGRAM
        reads: list[Access] = [(begun + 50_000, n % 8, 1, "read") for n in range(40)]
        got = sim.run(
            sim.trace([*fill, (begun, 8, 1, "write"), *reads]),
            suspend="on",
            suspend_reads=most,
            **ONE_DIE,
        )
        yield point(PROGRAM + most * (SUSPEND + ALONE), got.ns("write", "max"), got)


@BOOK.law(
    "cache-alone", "One operation at a time gains nothing by the second register.", PROPERTIES
)
def _cache_alone(sim: Simulator) -> Iterator[Point]:
    work = "--precondition fill --reads 50 --depth 1 --requests 3000"
    drive = dict(channels=2, ways=2, blocks=64, ftl="page", over_provision=100)
    plain, cached = sim.run(work, **drive), sim.run(work, **drive, cache="on")
    yield point(plain.seconds, cached.seconds, plain, cached)


@BOOK.law(
    "cached-pair",
    "Two programs of a block with cache=on: the second's page is sent while the first is "
    "programmed: tCMD + tX + 2 tPROG for both.",
    "ONFI page cache program",
)
def _cached_pair(sim: Simulator) -> Iterator[Point]:
    work: list[Access] = [(0, 0, 1, "write"), (0, 1, 1, "write")]
    got = sim.run(sim.trace(work), cache="on", **ONE_DIE)
    yield point(CMD + XFER + 2 * PROG, got.ns("write", "max"), got)
    got = sim.run(sim.trace(work), **ONE_DIE)
    yield point(2 * PROGRAM, got.ns("write", "max"), got)


@BOOK.law(
    "quiet-start",
    "Measuring begins on a quiet drive: the first reads after a fill wait for nothing.",
    "SNIA PTS 2.0.2, 3.3: the drive is prepared before the measurement",
)
def _quiet_start(sim: Simulator) -> Iterator[Point]:
    for ftl in ("rsd", "page"):
        got = sim.run(
            "--precondition fill --reads 100 --depth 1 --requests 500", ftl=ftl, **BUFFERED
        )
        yield point(ALONE, got.ns("read", "max"), got)
