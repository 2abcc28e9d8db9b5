# SPDX-License-Identifier: GPL-2.0-or-later
"""RISA (RFS on RSD, on an FPGA card): tables 2 and 4, figures 7 to 14.

Its drive for all but Hadoop was 2 GB, 8 channels of 4 ways, its FTL page-level with 5%; ext4
discarded, the host had 512 MB (4.1, 4.3). What table 4 gives is a write amplification of the file
system and one of the FTL; their product is what the flash programs for what the application wrote.
So flash programs of the same work are compared, in parts of RISA's.
"""

from collections.abc import Mapping

from rsd.bench.base import Context
from rsd.cluster.unit import Unit
from rsd.compare.benchmarks import BENCHMARKS
from rsd.paper import rounds
from rsd.paper.claim import Claim, Limit
from rsd.paper.entry import Entry, Paper, Scale
from rsd.paper.maps import map_sizes
from rsd.paper.rounds import Rounds

EXT4, F2FS, RISA = "ext4 on page FTL", "F2FS on page FTL", "RISA"
SYSTEMS = {EXT4: "ext4-page", F2FS: "f2fs-2013-page", RISA: "rfs+rsd"}
# Table 4: of ext4's FTL, of F2FS, of its FTL, of RISA
TABLE4 = {
    "risa-fio-seqwrite": ("FIO (SW)", 1.00, 1.01, 1.00, 1.01),
    "risa-fio-randwrite": ("FIO (RW)", 1.24, 1.43, 2.80, 1.38),
    "risa-tiobench-1": ("Tiobench, 1 thread", 1.04, 1.03, 1.02, 1.02),
    "risa-tiobench-48": ("Tiobench, 48 threads", 1.15, 1.04, 1.02, 1.02),
    "risa-mariadb": ("OLTP", 1.45, 1.23, 1.78, 1.24),
}
# Figure 13 has bars without numbers; the text says "a very small proportion".
MAP_SHARE = 0.002
# A drive of 2 GiB is written a quarter as often as REDO's of 512 MiB, in the same time.
SHARE_OF_ROUNDS = 0.25

Found = Mapping[tuple[str, str], Rounds]


def _plans(scale: Scale, stacks: Mapping[str, str]) -> list[rounds.Plan]:
    chosen = [one for one in BENCHMARKS if one.name in TABLE4]
    smaller = Scale(scale.capacities * SHARE_OF_ROUNDS, scale.live)
    return rounds.plans(stacks.values(), chosen, smaller)


def _units(context: Context, scale: Scale) -> list[Unit]:
    return [rounds.unit(plan, context) for plan in _plans(scale, SYSTEMS)]


def _map_units(context: Context, scale: Scale) -> list[Unit]:
    return [rounds.unit(plan, context) for plan in _plans(scale, {RISA: SYSTEMS[RISA]})]


def _measured(context: Context, scale: Scale, stacks: Mapping[str, str]) -> Found:
    return rounds.measure(_plans(scale, stacks), context)


def table2(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Bytes of the mapping tables."""
    kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
    paper = {
        "2 GB": {"block": 16 * kib, "fast": 121 * kib, "page": 2 * mib, "rsd": 16 * kib},
        "512 GB": {"block": 4 * mib, "fast": 32 * mib, "page": 512 * mib, "rsd": 4 * mib},
        "1 TB": {"block": 8 * mib, "fast": 62 * mib, "page": gib, "rsd": 8 * mib},
    }
    return map_sizes(context, paper)


def table4(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Programs of the same work, on three systems."""
    return _compared(_measured(context, scale, SYSTEMS), "programs", "pages")


def figure12(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Erasures: the paper prints bars. The numbers are table 4's, which they have to follow."""
    return _compared(_measured(context, scale, SYSTEMS), "erasures", "blocks")


def _compared(found: Found, what: str, unit: str) -> list[Claim | Limit]:
    claims: list[Claim | Limit] = []
    for name, (title, ext4, f2fs, ftl, risa) in TABLE4.items():
        cells = {system: found[name, stack] for system, stack in SYSTEMS.items()}
        values = {
            system: cell.last.taken if what == "erasures" else cell.last.written + cell.last.copied
            for system, cell in cells.items()
            if not cell.no_space
        }
        claims.append(
            Claim(
                f"{what}, {title}",
                unit,
                {EXT4: ext4, F2FS: f2fs * ftl, RISA: risa},
                values,
                RISA,
                ranks=what == "erasures",
                note="; ".join(filter(None, (cell.note for cell in cells.values()))),
            )
        )
    return claims


def figure13(context: Context, scale: Scale) -> list[Claim | Limit]:
    """What the inode map costs, of all pages read or programmed."""
    found = _measured(context, scale, {RISA: SYSTEMS[RISA]})
    claims: list[Claim | Limit] = []
    for name, (title, *_) in TABLE4.items():
        cell = found[name, SYSTEMS[RISA]]
        if cell.no_space:
            raise AssertionError(cell.note)
        last = cell.last
        # A block that is moved is read and written.
        for text, blocks in (("TIMB blocks", last.timb), ("its cleaning", 2 * last.moved_map)):
            claims.append(
                Limit(
                    f"inode map, {title}: {text}, share of all I/O",
                    "",
                    MAP_SHARE,
                    blocks / last.pages,
                    f"all writes of the inode map: {last.inode_map / last.pages:.3%}",
                )
            )
    return claims


_TIMES = "the paper prints bars without numbers; table4 has the same benchmarks' programs"
_HADOOP = "needs Hadoop's I/O pattern as a benchmark of compare"

PAPER = Paper(
    "risa",
    "RISA: Reduced I/O System Architecture (the project has its text without a title page)",
    (
        Entry("table2", "sizes of the mapping tables", table2),
        Entry("table4", "write amplification of three systems", table4, units=_units),
        Entry("figure7", "fio's throughput", missing=_TIMES),
        Entry("figure8", "tiobench's throughput and latency", missing=_TIMES),
        Entry("figure9", "iozone's throughput by request size", missing=_TIMES),
        Entry("figure10", "transactions a second", missing=_TIMES),
        Entry("figure11", "run times of Hadoop's applications", missing=_HADOOP),
        Entry("figure12", "erasures, in parts of ext4's", figure12, units=_units),
        Entry("figure13", "what the inode map costs", figure13, units=_map_units),
        Entry(
            "figure14",
            "write amplification by the size of a segment",
            missing="needs table4's OLTP at six geometries; RFS writes one zone a group",
        ),
    ),
)
