# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws: what a saturated drive does a second, in closed form."""

import shlex
from collections.abc import Iterator

from rsd.bench.laws.base import (
    AT_LEAST,
    AT_MOST,
    Point,
    Result,
    Setting,
    Simulator,
    book,
    point,
)

BOOK = book("saturated throughput")
TIME = "hw/rsd-nvme/README.md, Time"
BOUND = "asymptotic bounds of operational analysis (Denning and Buzen 1978)"
CMD, XFER, READ, PROG, ERASE = 2_500, 30_833, 60_000, 444_278, 3_500_000
GEOMETRIES = ((1, 1), (1, 8), (1, 20), (2, 4), (3, 5), (8, 1), (8, 4), (16, 2))


def limit(channels: int, ways: int, bus: float, die: float) -> float:
    """Pages a second: the buses are full, or the dies are. Times in ns."""
    return channels * min(1 / bus, ways / die) * 1e9


@BOOK.law(
    "write-bandwidth",
    "Zones are written at channels x min(1/(tCMD+tX), ways/(tCMD+tX+tPROG)) pages a second.",
    TIME,
    0.01,
)
def _write(sim: Simulator) -> Iterator[Point]:
    for channels, ways in GEOMETRIES:
        dies = channels * ways
        got = sim.run(
            f"--pattern sequential --requests {256 * dies} --depth {8 * dies}",
            channels=channels,
            ways=ways,
            blocks=4,
            pages=256,
        )
        rate = limit(channels, ways, CMD + XFER, CMD + XFER + PROG)
        yield point(rate, got.iops, got)


@BOOK.law(
    "page-map-bandwidth",
    "A new page-mapped drive is written at random as fast as zones are written in sequence.",
    TIME,
    0.01,
)
def _page_map(sim: Simulator) -> Iterator[Point]:
    for channels, ways in GEOMETRIES:
        dies = channels * ways
        got = sim.run(
            f"--pattern uniform --requests {256 * dies} --depth {8 * dies}",
            ftl="page",
            channels=channels,
            ways=ways,
            blocks=8,
            pages=256,
            over_provision=28,
        )
        yield point(limit(channels, ways, CMD + XFER, CMD + XFER + PROG), got.iops, got)


@BOOK.law(
    "read-bandwidth",
    "Reads in sequence: channels x min(1/(tCMD+tX), ways/(tCMD+tR+tX)) pages a second.",
    TIME,
    0.01,
)
def _read(sim: Simulator) -> Iterator[Point]:
    for channels, ways in GEOMETRIES:
        dies = channels * ways
        got = sim.run(
            f"--precondition fill --reads 100 --pattern sequential --depth {16 * dies} "
            f"--requests {300 * dies}",
            ftl="page",
            channels=channels,
            ways=ways,
            blocks=8,
            pages=256,
            over_provision=100,
        )
        yield point(limit(channels, ways, CMD + XFER, CMD + READ + XFER), got.iops, got)


@BOOK.law(
    "overwrite-bandwidth",
    "Zones overwritten in sequence: a die's block costs P (tCMD+tX+tPROG) + tCMD + tBERS.",
    "the time of a die, summed over a block of P pages",
    0.01,
)
def _overwrite(sim: Simulator) -> Iterator[Point]:
    for pages in (16, 64):
        got = sim.run(
            "--precondition 1 --pattern sequential --size 16K --requests 16K --depth 16",
            channels=2,
            ways=2,
            blocks=32,
            pages=pages,
            spare_blocks=0,
            idle_erase=0,
            wl_threshold=0,
        )
        block = pages * (CMD + XFER + PROG) + CMD + ERASE
        yield point(4 * pages / block * 1e9, got.bytes_per_s / 4096, got)


@BOOK.law(
    "cached-programs",
    "With cache=on the next page is sent while one is programmed: max(tPROG, tCMD+tX) a page.",
    "hw/rsd-nvme/README.md, Properties (cache); ONFI page cache program",
    0.01,
)
def _cached_programs(sim: Simulator) -> Iterator[Point]:
    for prog in (20_000, 100_000, 444_278):
        got = sim.run(
            "--pattern sequential --requests 4000 --depth 32",
            channels=1,
            ways=1,
            blocks=16,
            pages=512,
            cache="on",
            t_prog=prog,
        )
        yield point(1e9 / max(prog, CMD + XFER), got.iops, got)


@BOOK.law(
    "cached-reads",
    "With cache=on the next page is read while one is sent: max(tR+tCMD, tX+tCMD) a page.",
    "hw/rsd-nvme/README.md, Properties (cache); ONFI page cache read",
    0.01,
)
def _cached_reads(sim: Simulator) -> Iterator[Point]:
    for read in (10_000, 60_000, 200_000):
        got = sim.run(
            "--precondition fill --reads 100 --pattern sequential --requests 4000 --depth 32",
            ftl="page",
            channels=1,
            ways=1,
            blocks=16,
            pages=512,
            over_provision=40,
            cache="on",
            t_read=read,
        )
        yield point(1e9 / max(CMD + read, CMD + XFER), got.iops, got)


@BOOK.law(
    "planes",
    "P planes program P pages in one tPROG: a page costs tCMD + tX + tPROG/P of a die.",
    TIME,
    0.01,
)
def _planes(sim: Simulator) -> Iterator[Point]:
    for planes in (2, 3, 4):
        got = sim.run(
            "--pattern sequential --requests 8000 --depth 128",
            channels=1,
            ways=1,
            blocks=16,
            pages=256,
            planes=planes,
        )
        yield point(limit(1, 1, CMD + XFER, CMD + XFER + PROG / planes), got.iops, got)


@BOOK.law(
    "page-size",
    "Pages of 8 or 16 KiB: one tCMD and one tPROG for 2 or 4 times the data.",
    TIME,
    0.01,
)
def _page_size(sim: Simulator) -> Iterator[Point]:
    for slots in (2, 4):
        got = sim.run(
            "--pattern sequential --requests 8000 --depth 128",
            channels=1,
            ways=2,
            blocks=16,
            pages=256,
            page_size=4096 * slots,
        )
        rate = slots * limit(1, 2, CMD + slots * XFER, CMD + slots * XFER + PROG)
        yield point(rate, got.iops, got)


@BOOK.law(
    "mean-program",
    "Page types programmed one by one: the mean of their tPROG counts.",
    TIME,
    0.01,
)
def _mean_program(sim: Simulator) -> Iterator[Point]:
    got = sim.run(
        "--pattern sequential --requests 6000 --depth 64",
        channels=1,
        ways=2,
        blocks=16,
        pages=384,
        cell="tlc",
        t_prog=500_000,
        t_prog_csb=1_000_000,
        t_prog_msb=2_400_000,
    )
    yield point(limit(1, 2, CMD + XFER, CMD + XFER + 1_300_000), got.iops, got)


@BOOK.law(
    "one-shot-bandwidth",
    "A word line of planes x types pages costs its tCMD, its tX and one tPROG.",
    TIME,
    0.01,
)
def _one_shot(sim: Simulator) -> Iterator[Point]:
    for planes, slots, cell, types in ((2, 4, "tlc", 3), (1, 2, "qlc", 4)):
        blocks = planes * slots * types
        got = sim.run(
            f"--pattern sequential --size {blocks * 4096} --requests 1200 --depth 32",
            channels=1,
            ways=2,
            blocks=16,
            pages=96 * types,
            planes=planes,
            page_size=4096 * slots,
            cell=cell,
            one_shot="on",
            write_buffer=64 * blocks * 4096,
        )
        bus = planes * types * CMD + blocks * XFER
        yield point(limit(1, 2, bus, bus + PROG), got.iops, got)


@BOOK.law(
    "firmware-bound",
    "C cores that need t a command do C/t commands a second when nothing else is in the way.",
    "hw/rsd-nvme/README.md, Properties (cores)",
    0.01,
)
def _firmware(sim: Simulator) -> Iterator[Point]:
    for cores in (1, 2, 4):
        got = sim.run(
            "--precondition fill --reads 100 --requests 20000 --depth 128",
            cores=cores,
            t_fw_read=20_000,
            t_xfer=2_000,
            t_read=20_000,
        )
        yield point(cores / 20_000e-9, got.iops, got)


@BOOK.law(
    "link-bound",
    "The host's link passes 4096/t-link bytes a second each way.",
    "hw/rsd-nvme/README.md, Properties (t-link)",
    0.01,
)
def _link(sim: Simulator) -> Iterator[Point]:
    fast = dict(t_xfer=2_000, t_cmd=100, t_read=10_000, t_prog=20_000, t_link=5_000)
    got = sim.run("--precondition fill --reads 100 --size 16K --requests 5000 --depth 64", **fast)
    yield point(4096 / 5_000e-9, got.bytes_per_s, got)
    got = sim.run("--pattern sequential --size 16K --requests 5000 --depth 64", **fast)
    yield point(4096 / 5_000e-9, got.bytes_per_s, got)


@BOOK.law(
    "two-pipes",
    "The link is a pipe each way: reads and writes together pass more than one way does.",
    "hw/rsd-nvme/README.md, Properties (t-link)",
    0.03,
)
def _two_pipes(sim: Simulator) -> Iterator[Point]:
    got = sim.run(
        "--precondition fill --reads 50 --requests 40000 --depth 256",
        ftl="page",
        over_provision=200,
        t_xfer=500,
        t_cmd=100,
        t_read=1_000,
        t_prog=2_000,
        t_erase=1_000,
        t_link=5_000,
    )
    yield point(2 / 5_000e-9, got.iops, got)


@BOOK.law("risa-reads", "Preset risa: 240,000 reads a second.", "RISA section 4.1", 0.01)
def _risa_reads(sim: Simulator) -> Iterator[Point]:
    got = sim.run(
        "--preset risa --set ftl=page --precondition fill --reads 100 --depth 1024 --requests 400K"
    )
    yield point(240_000, got.iops, got)


@BOOK.law("risa-writes", "Preset risa: 67,000 writes a second.", "RISA section 4.1", 0.01)
def _risa_writes(sim: Simulator) -> Iterator[Point]:
    got = sim.run("--preset risa --pattern sequential --depth 256")
    yield point(67_000, got.iops, got)


@BOOK.law(
    "zn540-writes",
    "Preset zn540: 32 dies program 96 KiB in 6 tCMD + 24 tX + tPROG; the buffer hides none of it.",
    "the closed form of a word line; PRESETS.md has 1,202 MB/s",
    0.01,
)
def _zn540(sim: Simulator) -> Iterator[Point]:
    got = sim.run("--preset zn540 --pattern sequential --size 128K --depth 4 --requests 40000")
    yield point(32 * 96 * 1024 / (6 * 300 + 24 * 8_092 + 2_395_000) * 1e9, got.bytes_per_s, got)


@BOOK.law(
    "one-zone",
    "With segment=way a zone is as fast as one way of each channel, and no faster.",
    "RISA section 4.5",
    0.01,
)
def _one_zone(sim: Simulator) -> Iterator[Point]:
    got = sim.run(
        "--pattern sequential --requests 2000 --depth 64",
        channels=4,
        ways=4,
        blocks=4,
        pages=512,
        segment="way",
    )
    yield point(limit(4, 1, CMD + XFER, CMD + XFER + PROG), got.iops, got)


@BOOK.law(
    "saturation-bound",
    "At depth N no drive does more than min(N / D, 1 / Dmax): D is a request's time alone.",
    BOUND,
    0.0,
    AT_MOST,
)
def _bound(sim: Simulator) -> Iterator[Point]:
    for depth in (1, 2, 4, 16, 64):
        got = sim.run(
            f"--precondition fill --reads 100 --requests 10000 --depth {depth}",
            ftl="page",
            channels=2,
            ways=4,
            blocks=32,
            over_provision=28,
        )
        alone = CMD + READ + XFER
        yield point(min(depth / alone, 2 / (CMD + XFER)) * 1e9, got.iops, got)


def _read_in_order(
    sim: Simulator, before: str, *, written: bool, **drive: Setting
) -> tuple[Result, ...]:
    """The first 32 MiB of a drive, in order, after they were written so once more, if so.

    The drive is opened anew to read them, so that no collection goes on. The last run is the read.
    """
    path = sim.path("rsd")
    path.unlink(missing_ok=True)
    file = shlex.quote(str(path))
    work = f"--media {file} --pattern sequential --size 64K --depth 8 --requests 512"
    runs = [sim.run(f"--age {file} --precondition {before}", **drive)]
    runs += [sim.run(work, **drive)] if written else []
    runs += [sim.run(f"{work} --reads 100", **drive)]
    path.unlink()
    return tuple(runs)


@BOOK.law(
    "read-of-aged",
    "A file that was written in order on an aged page-mapped drive of 32 dies, which collects "
    "meanwhile, is read in order at 7/8 of the rate of one written on a new drive, at least.",
    "hw/rsd-nvme/README.md, A conventional namespace: seven dies of eight have a page",
    0.0,
    AT_LEAST,
)
def _read_of_aged(sim: Simulator) -> Iterator[Point]:
    drive: dict[str, Setting] = {
        "ftl": "page",
        "channels": 8,
        "ways": 4,
        "blocks": 64,
        "pages": 32,
    }
    for over_provision in (7, 10, 28):
        for frontiers in ("own", "shared"):
            for unit in ("block", "all"):
                settings = drive | {
                    "over_provision": over_provision,
                    "gc_frontiers": frontiers,
                    "gc_unit": unit,
                }
                new = _read_in_order(sim, "fill", written=False, **settings)
                aged = _read_in_order(sim, "1", written=True, **settings)
                yield point(7 / 8 * new[-1].iops, aged[-1].iops, *new, *aged)
