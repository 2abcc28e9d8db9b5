# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws: the time of one operation, to the nanosecond."""

from collections.abc import Iterator

from rsd.bench.laws.base import Point, Simulator, book, point

BOOK = book("time of one operation")
TIME = "hw/rsd-nvme/README.md, Time"
PROPERTIES = "hw/rsd-nvme/README.md, Properties"
CMD, XFER, READ, PROG, ERASE = 2_500, 30_833, 60_000, 444_278, 3_500_000
READS = "--precondition fill --reads 100 --depth 1 --requests 2000"
WRITES = "--depth 1 --requests 2000 --pattern sequential"
SMALL = {"channels": 2, "ways": 2, "blocks": 32, "pages": 32, "over_provision": 28}


@BOOK.law("read", "A read of a page takes tCMD + tR + tX.", TIME)
def _read(sim: Simulator) -> Iterator[Point]:
    for ftl in ("rsd", "page", "block", "fast"):
        got = sim.run(READS, ftl=ftl, **SMALL)
        for what in ("min", "mean", "max"):
            yield point(CMD + READ + XFER, got.ns("read", what), got)


@BOOK.law("write", "A write of a page takes tCMD + tX + tPROG.", TIME)
def _write(sim: Simulator) -> Iterator[Point]:
    for ftl in ("rsd", "page", "block", "fast"):
        got = sim.run(WRITES, ftl=ftl, channels=2, ways=2, blocks=64, pages=32, over_provision=28)
        for what in ("min", "mean", "max"):
            yield point(CMD + XFER + PROG, got.ns("write", what), got)


@BOOK.law("append", "An append takes as long as a write, and t-fw-append for t-fw-write.", TIME)
def _append(sim: Simulator) -> Iterator[Point]:
    for append, firmware in (("", 1_000), ("--append", 7_000)):
        got = sim.run(f"{WRITES} {append}", t_fw_write=1_000, t_fw_append=7_000)
        yield point(firmware + CMD + XFER + PROG, got.ns("write"), got)


@BOOK.law(
    "erase-first",
    "A write that is first in a block that still has to be erased takes tCMD + tBERS more.",
    TIME,
)
def _erase_first(sim: Simulator) -> Iterator[Point]:
    got = sim.run(
        "--precondition fill --pattern sequential --depth 1 --requests 1000",
        channels=1,
        ways=1,
        blocks=8,
        pages=32,
        spare_blocks=0,
        idle_erase=0,
    )
    yield point(CMD + ERASE + CMD + XFER + PROG, got.ns("write", "max"), got)
    yield point(CMD + XFER + PROG, got.ns("write", "min"), got)


@BOOK.law("reset-mark", "A zone reset with reset=mark takes no time.", TIME)
def _reset_mark(sim: Simulator) -> Iterator[Point]:
    got = sim.run("--precondition fill --pattern sequential --depth 1 --requests 1000", **SMALL)
    yield point(0, got.ns("zone reset", "max"), got)


@BOOK.law(
    "reset-erase",
    "A zone reset with reset=erase takes tCMD for each of a channel's ways, and tBERS once.",
    TIME,
)
def _reset_erase(sim: Simulator) -> Iterator[Point]:
    for channels, ways in ((1, 1), (2, 3), (4, 8)):
        got = sim.run(
            "--precondition fill --pattern sequential --depth 1 --requests 1000",
            channels=channels,
            ways=ways,
            blocks=8,
            pages=8,
            reset="erase",
            idle_erase=0,
        )
        yield point(ways * CMD + ERASE, got.ns("zone reset", "mean"), got)


@BOOK.law("unwritten", "A read of what was never written takes no time: no array is asked.", TIME)
def _unwritten(sim: Simulator) -> Iterator[Point]:
    for ftl in ("page", "block", "fast"):
        got = sim.run("--reads 100 --requests 500", ftl=ftl)
        yield point(0, got.ns("read", "max"), got)
        yield point(0, got.count("nand_reads"), got)


@BOOK.law("flush", "A flush with plp=on takes no time.", TIME)
def _flush(sim: Simulator) -> Iterator[Point]:
    work = [("write", 0, 4), ("sync", 0, 0), ("write", 4, 4), ("sync", 0, 0)]
    got = sim.run(f"{sim.iolog(work)} --depth 1", ftl="page")
    yield point(2, got.requests("flush"), got)
    yield point(0, got.ns("flush", "max"), got)


@BOOK.law(
    "page-types",
    "The pages of a word line take turns: LSB, CSB, MSB, TSB, each with its own tR and tPROG.",
    PROPERTIES,
)
def _page_types(sim: Simulator) -> Iterator[Point]:
    reads, programs = (50_000, 70_000, 90_000, 120_000), (400_000, 700_000, 1_900_000, 2_500_000)
    times = dict(
        t_read=reads[0],
        t_read_csb=reads[1],
        t_read_msb=reads[2],
        t_read_tsb=reads[3],
        t_prog=programs[0],
        t_prog_csb=programs[1],
        t_prog_msb=programs[2],
        t_prog_tsb=programs[3],
    )
    kinds = {"slc": (0,), "mlc": (0, 2), "tlc": (0, 1, 2), "qlc": (0, 1, 2, 3)}
    for cell, types in kinds.items():
        drive = dict(channels=1, ways=1, blocks=32, pages=12, cell=cell, ftl="page", **times)
        # the first 12 pages are those of one block
        writes = sim.run(f"{sim.trace((0, n, 1, 'write') for n in range(12))} --depth 1", **drive)
        reads_back = [(0, n, 1, "write") for n in range(12)] + [
            (0, n, 1, "read") for n in range(12)
        ]
        both = sim.run(f"{sim.trace(reads_back)} --depth 1", **drive)
        share = len(types)
        yield point(
            CMD + XFER + sum(programs[t] for t in types) / share, writes.ns("write"), writes
        )
        yield point(CMD + XFER + max(programs[t] for t in types), writes.ns("write", "max"), writes)
        yield point(CMD + XFER + sum(reads[t] for t in types) / share, both.ns("read"), both)
        yield point(CMD + XFER + min(reads[t] for t in types), both.ns("read", "min"), both)


@BOOK.law(
    "large-page",
    "A read of all of a page of 8 or 16 KiB takes tCMD + tR + tX for each 4 KiB; of 4 KiB, one tX.",
    PROPERTIES,
)
def _large_page(sim: Simulator) -> Iterator[Point]:
    for size in (8192, 16384):
        for part in (4096, size):
            got = sim.run(f"{READS} --size {part}", page_size=size, **SMALL, ftl="page")
            yield point(CMD + READ + part // 4096 * XFER, got.ns("read", "min"), got)


@BOOK.law(
    "one-shot",
    "A word line of several planes is programmed at once: tCMD a NAND page, tX a block, one tPROG.",
    PROPERTIES,
)
def _one_shot(sim: Simulator) -> Iterator[Point]:
    for planes, size, cell, types in (
        (2, 16384, "tlc", 3),
        (1, 16384, "qlc", 4),
        (4, 4096, "mlc", 2),
    ):
        blocks = planes * size // 4096 * types
        got = sim.run(
            f"--depth 1 --requests 200 --pattern sequential --size {blocks * 4096}",
            channels=1,
            ways=1,
            blocks=16,
            pages=types * 16,
            planes=planes,
            page_size=size,
            cell=cell,
            one_shot="on",
            write_buffer=4 * blocks * 4096,
        )
        yield point(planes * types * CMD + blocks * XFER + PROG, got.ns("write"), got)


@BOOK.law(
    "several-ways",
    "Pages of W ways of a channel, asked for at once: reads take tCMD + tR + W tX, writes "
    "W (tCMD + tX) + tPROG.",
    "pipelining on one bus: the arrays work at once, the bus carries a page at a time",
)
def _several_ways(sim: Simulator) -> Iterator[Point]:
    for ways in (2, 3, 4):
        drive = dict(channels=1, ways=ways, blocks=32, pages=32, over_provision=28)
        size = ways * 4096
        got = sim.run(f"{WRITES} --size {size} --requests 80", **drive)
        yield point(ways * (CMD + XFER) + PROG, got.ns("write", "mean"), got)
        got = sim.run(f"{READS} --pattern sequential --size {size}", ftl="page", **drive)
        yield point(CMD + READ + ways * XFER, got.ns("read", "min"), got)


@BOOK.law("several-channels", "Pages of different channels do not wait for each other.", TIME)
def _several_channels(sim: Simulator) -> Iterator[Point]:
    for channels in (2, 4, 8):
        drive = dict(channels=channels, ways=1, blocks=16, pages=32)
        got = sim.run(f"{WRITES} --size {channels * 4096} --requests 300", **drive)
        yield point(CMD + XFER + PROG, got.ns("write"), got)


@BOOK.law("status", "Reading the status adds t-status to a program and to an erase.", PROPERTIES)
def _status(sim: Simulator) -> Iterator[Point]:
    got = sim.run(WRITES, t_status=4_000)
    yield point(CMD + XFER + PROG + 4_000, got.ns("write"), got)
    got = sim.run(
        "--precondition fill --pattern sequential --depth 1 --requests 1000",
        channels=1,
        ways=1,
        blocks=8,
        pages=8,
        reset="erase",
        idle_erase=0,
        t_status=4_000,
    )
    yield point(CMD + ERASE + 4_000, got.ns("zone reset"), got)


@BOOK.law(
    "firmware",
    "A command takes its firmware time, and t-fw-page for each 4 KiB, before it goes to the flash.",
    PROPERTIES,
)
def _firmware(sim: Simulator) -> Iterator[Point]:
    drive = dict(
        channels=4,
        ways=1,
        blocks=32,
        pages=32,
        over_provision=28,
        t_fw_read=3_000,
        t_fw_write=5_000,
        t_fw_page=700,
    )
    for blocks in (1, 4):
        size = f"--size {blocks * 4096}"
        got = sim.run(f"{WRITES} {size} --requests 500", **drive)
        yield point(5_000 + 700 * blocks + CMD + XFER + PROG, got.ns("write"), got)
        got = sim.run(f"{READS} {size}", ftl="page", **drive)
        yield point(3_000 + 700 * blocks + CMD + READ + XFER, got.ns("read", "min"), got)


@BOOK.law(
    "link",
    "The host's link adds t-link for each 4 KiB, once, to a read and to a write.",
    PROPERTIES,
)
def _link(sim: Simulator) -> Iterator[Point]:
    got = sim.run(READS, t_link=1_500)
    yield point(1_500 + CMD + READ + XFER, got.ns("read"), got)
    got = sim.run(WRITES, t_link=1_500)
    yield point(1_500 + CMD + XFER + PROG, got.ns("write"), got)


@BOOK.law(
    "latency-only",
    "t-lat-read, t-lat-write and t-lat-zone add to a command, and nothing else.",
    PROPERTIES,
)
def _latency_only(sim: Simulator) -> Iterator[Point]:
    lat = dict(t_lat_read=6_000, t_lat_write=4_000, t_lat_zone=9_000)
    got = sim.run(READS, **lat)
    yield point(6_000 + CMD + READ + XFER, got.ns("read"), got)
    got = sim.run(
        "--precondition fill --pattern sequential --depth 1 --requests 1000", **SMALL, **lat
    )
    yield point(4_000 + CMD + XFER + PROG, got.ns("write", "min"), got)
    yield point(9_000, got.ns("zone reset", "max"), got)


@BOOK.law(
    "retries",
    "A page of a block erased E of its rated R times is read floor(read-retries E / R) times more, "
    "which takes tCMD + tR + tX each.",
    PROPERTIES,
)
def _retries(sim: Simulator) -> Iterator[Point]:
    # One die, no spare block: every block is erased once by a round.
    drive = dict(channels=1, ways=1, blocks=4, pages=8, spare_blocks=0, idle_erase=0)
    for retries, endurance in ((6, 6), (4, 2), (3, 4)):
        got = sim.run(
            "--precondition 1 --pattern sequential --reads 100 --depth 1 --requests 100",
            read_retries=retries,
            endurance=endurance,
            **drive,
        )
        yield point(1, got.after("wear_min") * got.after("wear_max"), got)
        more = retries // endurance
        yield point((1 + more) * (CMD + READ + XFER), got.ns("read"), got)
        yield point(100 * more, got.count("read_retries"), got)
