# SPDX-License-Identifier: GPL-2.0-or-later
"""RISA (RFS on RSD, on an FPGA card): tables 2 and 4, figures 7 to 14.

Its drive for all but Hadoop was 2 GB, 8 channels of 4 ways, its FTL page-level with 5%; ext4
discarded, the host had 512 MB (4.1, 4.3). What table 4 gives is a write amplification of the file
system and one of the FTL; their product is what the flash programs for what the application wrote.
So flash programs of the same work are compared, in parts of RISA's. Figures 7 to 11 are bars
without numbers: what the text says of them is compared, orders and the few numbers it has. Table
4's TPC-C is missing: no generator of it is in Debian.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rsd.bench.base import Context
from rsd.bench.copies import copies_by_geometry
from rsd.cluster.unit import Unit
from rsd.compare.benchmarks import BENCHMARKS, QUERIES
from rsd.compare.cells import MIB
from rsd.paper import databases, rounds
from rsd.paper.claim import Claim, Limit
from rsd.paper.entry import Entry, Paper, Scale
from rsd.paper.maps import map_sizes
from rsd.paper.rounds import Rounds

EXT4, F2FS, RISA = "ext4 on page FTL", "F2FS on page FTL", "RISA"
SYSTEMS = {EXT4: "ext4-page", F2FS: "f2fs-2013-page", RISA: "rfs+rsd"}


@dataclass(frozen=True)
class Row:
    """A row of table 4, and what stands for it: `of` has names of compare's benchmarks."""

    title: str
    of: tuple[str, ...]
    ext4_ftl: float
    f2fs: float
    f2fs_ftl: float
    risa: float

    @property
    def paper(self) -> dict[str, float]:
        """Pages that the flash programs for each that the application writes."""
        return {EXT4: self.ext4_ftl, F2FS: self.f2fs * self.f2fs_ftl, RISA: self.risa}


BUFFERED, SYNC = (
    {size: f"risa-iozone-{size}-{how}" for size in ("4k", "64k", "1m", "16m")}
    for how in ("buffered", "sync")
)
TIOBENCH = {threads: f"risa-tiobench-{threads}" for threads in (1, 8, 48)}
# Figure 11 in the order of table 4
HADOOP = {"DFSIO": "risa-dfsio", "TeraSort": "risa-terasort", "WordCount": "risa-wordcount"}
TABLE4 = (
    Row("FIO (SW)", ("risa-fio-seqwrite",), 1.00, 1.01, 1.00, 1.01),
    Row("FIO (RW)", ("risa-fio-randwrite",), 1.24, 1.43, 2.80, 1.38),
    Row("Tiobench, 1 thread", (TIOBENCH[1],), 1.04, 1.03, 1.02, 1.02),
    Row("Tiobench, 48 threads", (TIOBENCH[48],), 1.15, 1.04, 1.02, 1.02),
    Row("Iozone", (*BUFFERED.values(), *SYNC.values()), 1.14, 1.05, 1.09, 1.09),
    Row("Non-Trans", ("risa-queries",), 1.97, 1.58, 2.90, 1.59),
    Row("OLTP", ("risa-mariadb",), 1.45, 1.23, 1.78, 1.24),
    *(Row(title, (name,), 1.0, 1.0, 1.0, 1.0) for title, name in HADOOP.items()),
)
WRITES = tuple(name for row in TABLE4 for name in row.of)
READS = {"FIO (SR)": "risa-fio-seqread", "FIO (RR)": "risa-fio-randread"}
# In place of compare's, which are on a small table
DATABASES = {one.name: one for one in databases.BENCHMARKS}
# The text of 4.3.1: what RISA writes at random, in parts of ext4; a block's latency in us by the
# number of threads
RANDOM_WRITES = 1.07
LATENCY = {1: 41.0, 48: 98.0}
# The text of 4.5
TIMB_A_CHECKPOINT = 2.6
# Figure 13 has bars without numbers; the text says "a very small proportion".
MAP_SHARE = 0.002
# A drive of 2 GiB is written an eighth as often as REDO's of 512 MiB: once, by each of 60 cells.
SHARE_OF_ROUNDS = 0.125
WITHOUT_F2FS = (
    "RFS's code without a kernel, on 8 GiB of flash, under sfssim's OLTP; the lines of F2FS are"
    " not measured"
)

FILES = "files that stay"

Found = Mapping[tuple[str, str], Rounds]


def _plans(scale: Scale, names: Iterable[str], stacks: Iterable[str]) -> list[rounds.Plan]:
    wanted = set(names)
    reads = [one for one in BENCHMARKS if one.name in wanted & {*READS.values()}]
    writes = [
        one for one in BENCHMARKS if one.name in wanted - DATABASES.keys() and one not in reads
    ]
    queries = [one for name, one in DATABASES.items() if name in wanted]
    smaller = Scale(scale.capacities * SHARE_OF_ROUNDS, scale.live)
    stacks = [*stacks]
    return [
        # Who reads leaves the drive as it was.
        *rounds.plans(stacks, reads, smaller, rounds.Loaded(FILES, rounds=1)),
        *rounds.plans(stacks, writes, smaller, rounds.Loaded(FILES)),
        *rounds.plans(stacks, queries, smaller, databases.LOADED),
    ]


def _entry(
    name: str,
    shows: str,
    claims: Callable[[Found], list[Claim | Limit]],
    names: Iterable[str],
    systems: Iterable[str] = tuple(SYSTEMS),
) -> Entry:
    """A figure that is of these benchmarks on these systems."""
    stacks = [SYSTEMS[system] for system in systems]

    def run(context: Context, scale: Scale) -> list[Claim | Limit]:
        return claims(rounds.measure(_plans(scale, names, stacks), context))

    def units(context: Context, scale: Scale) -> list[Unit]:
        return [rounds.unit(plan, context) for plan in _plans(scale, names, stacks)]

    return Entry(name, shows, run, units=units)


def table2(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Bytes of the mapping tables."""
    kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
    paper = {
        "2 GB": {"block": 16 * kib, "fast": 121 * kib, "page": 2 * mib, "rsd": 16 * kib},
        "512 GB": {"block": 4 * mib, "fast": 32 * mib, "page": 512 * mib, "rsd": 4 * mib},
        "1 TB": {"block": 8 * mib, "fast": 62 * mib, "page": gib, "rsd": 8 * mib},
    }
    return map_sizes(context, paper)


def _all(
    found: Found, names: Sequence[str], of: Callable[[Rounds], float]
) -> tuple[dict[str, float], str]:
    """By system the sum over benchmarks, of those that had room for them; and what to say of it."""
    cells = {system: [found[name, stack] for name in names] for system, stack in SYSTEMS.items()}
    values = {
        system: sum(map(of, ours))
        for system, ours in cells.items()
        if not any(cell.no_space for cell in ours)
    }
    return values, _notes(cell for ours in cells.values() for cell in ours)


def _throughput(cell: Rounds) -> float:
    """MiB/s, as fio has it: its process takes until the next quarter of a second of its life.

    Tiobench writes half as much at random as in order, wordcount's result has a sixteenth of its
    input; else all phases are of the same size.
    """
    phases = cell.benchmark.phases
    share = {"random": 0.5, "result": 1 / 16}
    names = {phase: f"{phase}.bandwidth" if len(phases) > 1 else "bandwidth" for phase in phases}
    done = math.fsum(share.get(phase, 1) for phase in phases)
    took = math.fsum(share.get(phase, 1) / cell.mean.own[name] for phase, name in names.items())
    return done / took * 1e6 / MIB


def _seconds(cell: Rounds) -> float:
    """The time of a benchmark of fio, without what its processes wait beside their work."""
    return cell.benchmark.work / _throughput(cell)


def _claim(
    found: Found,
    what: str,
    unit: str,
    names: Sequence[str],
    of: Callable[[Rounds], float],
    paper: Mapping[str, float],
    reference: str | None = RISA,
    ranks: bool = False,
) -> Claim:
    """The systems against each other."""
    values, note = _all(found, names, of)
    here = {system: value for system, value in values.items() if system in paper}
    beside = {system: value for system, value in values.items() if system not in paper}
    return Claim(what, unit, paper, here, reference, beside, note, ranks)


SAME = dict.fromkeys(SYSTEMS, 1.0)
# What the text says without numbers: F2FS is the worst, its work is collected twice.
RISA_EXT4_F2FS = {RISA: 3.0, EXT4: 2.0, F2FS: 1.0}
RISA_F2FS_EXT4 = {RISA: 3.0, F2FS: 2.0, EXT4: 1.0}


def _table4(found: Found) -> list[Claim | Limit]:
    return [
        _claim(
            found,
            f"programs, {row.title}",
            "pages",
            row.of,
            lambda cell: cell.mean.written + cell.mean.copied,
            row.paper,
        )
        for row in TABLE4
    ]


def _figure12(found: Found) -> list[Claim | Limit]:
    """Erasures: the paper prints bars. The numbers are table 4's, which they have to follow."""
    return [
        _claim(
            found,
            f"erasures, {row.title}",
            "blocks",
            row.of,
            lambda cell: cell.mean.taken,
            row.paper,
            ranks=len(set(row.paper.values())) > 1,
        )
        for row in TABLE4
    ]


def _figure7(found: Found) -> list[Claim | Limit]:
    """The text: all three read, and write in order, as fast as the drive; RISA leads at random."""

    def throughput(
        title: str,
        name: str,
        paper: Mapping[str, float],
        reference: str = RISA,
        ranks: bool = False,
    ) -> Claim:
        what = f"throughput, {title}"
        return _claim(found, what, "MiB/s", [name], _throughput, paper, reference, ranks)

    random = "risa-fio-randwrite"
    return [
        *(throughput(title, name, SAME) for title, name in READS.items()),
        throughput("FIO (SW)", "risa-fio-seqwrite", SAME),
        throughput("FIO (RW)", random, {EXT4: 1.0, RISA: RANDOM_WRITES}, EXT4),
        throughput("FIO (RW), the order", random, RISA_EXT4_F2FS, ranks=True),
    ]


def _figure8(found: Found) -> list[Claim | Limit]:
    """The text: RISA and F2FS gain by threads, ext4 suffers; a block of 4 KiB takes longer."""
    claims: list[Claim | Limit] = [
        _claim(
            found,
            "throughput, Tiobench, 48 threads",
            "MiB/s",
            [TIOBENCH[48]],
            _throughput,
            {RISA: 2.0, F2FS: 2.0, EXT4: 1.0},
            ranks=True,
        )
    ]
    for system in (RISA, F2FS):
        cells = {f"{n} threads": found[name, SYSTEMS[system]] for n, name in TIOBENCH.items()}
        rank = {name: float(at) for at, name in enumerate(cells)}
        values = {name: _throughput(cell) for name, cell in cells.items() if not cell.no_space}
        what = f"throughput of {system} by threads"
        claims.append(Claim(what, "MiB/s", rank, values, note=_notes(cells.values()), ranks=True))
    cells = {f"{n} threads": found[TIOBENCH[n], SYSTEMS[RISA]] for n in LATENCY}
    claims.append(
        Claim(
            "latency of a write of 4 KiB, RISA, by threads",
            "us",
            dict(zip(cells, LATENCY.values(), strict=True)),
            {name: _latency(cell) for name, cell in cells.items() if not cell.no_space},
            next(iter(cells)),
            note=_notes(cells.values()),
        )
    )
    return claims


def _notes(cells: Iterable[Rounds]) -> str:
    return "; ".join(filter(None, dict.fromkeys(cell.note for cell in cells)))


def _latency(cell: Rounds) -> float:
    """The mean of both phases: all blocks are written in order, and half as many at random."""
    in_order, random = (cell.mean.own[f"{phase}.latency.mean"] for phase in cell.benchmark.phases)
    return (2 * in_order + random) / 3


def _figure9(found: Found) -> list[Claim | Limit]:
    """The text: at all sizes RISA is the best, and F2FS better than ext4."""
    return [
        _claim(
            found,
            f"throughput, Iozone, {how}, requests of {size}",
            "MiB/s",
            [name],
            _throughput,
            RISA_F2FS_EXT4,
            ranks=True,
        )
        for how, names in (("O_SYNC", SYNC), ("buffered", BUFFERED))
        for size, name in names.items()
    ]


def _figure10(found: Found) -> list[Claim | Limit]:
    """The text: a query that only reads is as fast on all; else RISA leads, and F2FS is last."""

    def rate(query: str) -> Callable[[Rounds], float]:
        return lambda cell: cell.mean.own[f"{query}.rate"]

    claims: list[Claim | Limit] = [
        _claim(
            found,
            f"queries a second, {query}",
            "queries/s",
            ["risa-queries"],
            rate(query),
            SAME if query == "select" else RISA_EXT4_F2FS,
            ranks=query != "select",
        )
        for query in QUERIES
    ]
    what = "transactions a second, OLTP"
    of = ["risa-mariadb"]
    claims.append(
        _claim(found, what, "transactions/s", of, rate("oltp"), RISA_EXT4_F2FS, ranks=True)
    )
    return claims


def _figure11(found: Found) -> list[Claim | Limit]:
    """The text: the flash collects nothing, and all three are as fast."""
    return [
        _claim(found, f"run time, {title}", "s", [name], _seconds, SAME)
        for title, name in HADOOP.items()
    ]


def _figure13(found: Found) -> list[Claim | Limit]:
    """What the inode map costs, of all pages read or programmed."""
    claims: list[Claim | Limit] = []
    cells = {name: found[name, SYSTEMS[RISA]] for name in WRITES}
    for name, cell in cells.items():
        if cell.no_space:
            raise AssertionError(cell.note)
        mean = cell.mean
        # A block that is moved is read and written.
        for text, blocks in (("TIMB blocks", mean.timb), ("its cleaning", 2 * mean.moved_map)):
            claims.append(
                Limit(
                    f"inode map, {name}: {text}, share of all I/O",
                    "",
                    MAP_SHARE,
                    blocks / mean.pages,
                    f"all writes of the inode map: {mean.inode_map / mean.pages:.3%}",
                )
            )
    timb = sum(cell.mean.timb for cell in cells.values())
    checkpoints = sum(cell.mean.checkpoints for cell in cells.values())
    what = "TIMB blocks a check-point"
    claims.append(Claim(what, "blocks", {RISA: TIMB_A_CHECKPOINT}, {RISA: timb / checkpoints}))
    return claims


def figure14(context: Context, scale: Scale) -> list[Claim | Limit]:
    """RISA's lines. The text: more channels and ways, more copies; fewer in zones of one way."""
    found = copies_by_geometry(context)
    names = {geometry: "{} x {}".format(*geometry) for geometry in found}
    whole = {names[geometry]: 1 + one.whole.a_write for geometry, one in found.items()}
    rank = {name: float(at) for at, name in enumerate(whole)}
    small = {"segments of one way": 1.0, "segments of all ways": 2.0}
    return [
        Claim(
            "write amplification, OLTP, by channels x ways",
            "blocks",
            rank,
            whole,
            ranks=True,
            note=WITHOUT_F2FS,
        ),
        # "Does not significantly increase up to 8 channels and 8 ways", and "jumps" beyond 16 x 8.
        _between("little growth", whole, {"4 x 2": 1.0, "8 x 8": 1.0}, ranks=False),
        _between("the jump", whole, {"16 x 8": 1.0, "16 x 16": 2.0}, ranks=True),
        *(
            Claim(
                f"write amplification, OLTP, {names[geometry]}",
                "blocks",
                small,
                dict(zip(small, (1 + one.striped.a_write, whole[names[geometry]]), strict=True)),
                ranks=True,
            )
            for geometry, one in found.items()
        ),
    ]


def _between(
    title: str, values: Mapping[str, float], paper: Mapping[str, float], *, ranks: bool
) -> Claim:
    what = f"write amplification, OLTP, {title}"
    here = {name: values[name] for name in paper}
    return Claim(what, "blocks", paper, here, None if ranks else min(paper), ranks=ranks)


PAPER = Paper(
    "risa",
    "RISA: Reduced I/O System Architecture (the project has its text without a title page)",
    (
        Entry("table2", "sizes of the mapping tables", table2),
        _entry("table4", "write amplification of three systems", _table4, WRITES),
        _entry("figure7", "fio's throughput", _figure7, (*READS.values(), *WRITES[:2])),
        _entry("figure8", "tiobench's throughput and latency", _figure8, TIOBENCH.values()),
        _entry(
            "figure9",
            "iozone's throughput by request size",
            _figure9,
            (*BUFFERED.values(), *SYNC.values()),
        ),
        _entry(
            "figure10",
            "queries and transactions a second",
            _figure10,
            ("risa-queries", "risa-mariadb"),
        ),
        _entry("figure11", "run times of Hadoop's applications", _figure11, HADOOP.values()),
        _entry("figure12", "erasures, in parts of ext4's", _figure12, WRITES),
        _entry("figure13", "what the inode map costs", _figure13, WRITES, (RISA,)),
        Entry("figure14", "write amplification by the size of a segment", figure14),
    ),
)
