# SPDX-License-Identifier: GPL-2.0-or-later
"""What `./rsd compare` measures: the systems and the table of cells.

A cell is one workload on one system: a fixed number of I/Os, so that its length does not
depend on how fast the host is. To add a workload, add a row to FAMILIES.
"""

import enum
from dataclasses import dataclass

from rsd import systems

KIB = 1 << 10
MIB = 1 << 20


class Level(enum.IntEnum):
    """How much to measure; each level includes those before it."""

    QUICK = 0
    DEFAULT = 1
    FULL = 2


class Prepare(enum.Enum):
    """The state of the region before the cell."""

    FILLED = "written once, in order, and at rest"
    EMPTY = "reset (discarded on a drive without zones), and at rest"


class Tool(enum.Enum):
    """What generates the load."""

    FIO = "fio"
    ZAPPEND = "zappend"
    NVME = "nvme-cli"


@dataclass(frozen=True)
class Traits:
    """What the cells must know of a system. `ours`: its runs have to be identical.

    `stripe_mib` is the size of our drives' zones, one block of every die. An `aged` drive starts
    each cell full and worn in (aged.py), and the cell has the whole of it. `level` is the first
    level that measures the system.
    """

    zoned: bool
    oob: bool
    ours: bool
    stripe_mib: int = 0
    aged: bool = False
    level: Level = Level.QUICK


_AGED = Traits(zoned=False, oob=False, ours=True, aged=True, level=Level.FULL)


SYSTEMS = {
    "stock": Traits(zoned=False, oob=False, ours=False),
    "stock-zns": Traits(zoned=True, oob=False, ours=False),
    "rsd-redo": Traits(zoned=True, oob=True, ours=True, stripe_mib=2),
    "rsd": Traits(zoned=True, oob=True, ours=True, stripe_mib=16),
    **{name: _AGED for name, drive in systems.SYSTEMS.items() if drive and drive.aged},
}


@dataclass(frozen=True)
class Family:
    """Cells that differ in block size and queue depth only.

    `points` are (block bytes, queue depth, I/Os, level). `fio` are options beside the
    common ones. `zoned_only` rows make no sense on a drive without zones. `whole_drive` rows
    run on a drive of ours with fewer blocks, so that the region is all of it: on a drive with
    free blocks to spare, no write has to wait for an erasure.
    """

    name: str
    title: str
    tool: Tool
    prepare: Prepare
    points: tuple[tuple[int, int, int, Level], ...]
    fio: tuple[str, ...] = ()
    zoned_only: bool = False
    whole_drive: bool = False
    region_mib: int = 64


@dataclass(frozen=True)
class Cell:
    """One workload. `region` is the part of the drive that it touches, in bytes."""

    family: Family
    block: int
    depth: int
    ios: int
    level: Level

    @property
    def name(self) -> str:
        """The workload's name in results and on the command line."""
        if self.family.tool is Tool.NVME:
            return self.family.name
        return f"{self.family.name}-{self.block // KIB}k-qd{self.depth}"

    @property
    def region(self) -> int:
        """Bytes, from the start of the drive; whole zones of every system."""
        step = 16 * MIB
        return max(self.family.region_mib * MIB, -(-self.ios * self.block // step) * step)

    @property
    def directions(self) -> tuple[str, ...]:
        """Which of fio's directions ("read", "write") the workload has."""
        if self.family.tool is Tool.ZAPPEND:
            return ("write",)
        mode = next((o[5:] for o in self.family.fio if o.startswith("--rw=")), "")
        return {
            "read": ("read",),
            "randread": ("read",),
            "write": ("write",),
            "randwrite": ("write",),
            "randrw": ("read", "write"),
            "": (),
        }[mode]


QUICK, DEFAULT, FULL = Level.QUICK, Level.DEFAULT, Level.FULL

# I/Os are chosen so that a cell lasts about 0.1 s of virtual time or longer on the faster
# of our drives: fio's own resolution is 1 ms.
READS = (
    (4 * KIB, 1, 1200, QUICK),
    (4 * KIB, 8, 8000, DEFAULT),
    (4 * KIB, 32, 16000, QUICK),
    (4 * KIB, 128, 16000, DEFAULT),
    (16 * KIB, 1, 1000, FULL),
    (16 * KIB, 8, 4000, DEFAULT),
    (16 * KIB, 32, 4000, FULL),
    (16 * KIB, 128, 4000, FULL),
    (128 * KIB, 1, 500, FULL),
    (128 * KIB, 8, 1000, DEFAULT),
    (128 * KIB, 32, 1000, FULL),
    (128 * KIB, 128, 1000, FULL),
)
WRITES = (
    (4 * KIB, 1, 400, QUICK),
    (4 * KIB, 8, 4000, FULL),
    (4 * KIB, 32, 4000, DEFAULT),
    (4 * KIB, 128, 8000, FULL),
    (16 * KIB, 1, 300, FULL),
    (16 * KIB, 8, 1500, DEFAULT),
    (16 * KIB, 32, 2000, FULL),
    (16 * KIB, 128, 2000, FULL),
    (128 * KIB, 1, 400, FULL),
    (128 * KIB, 8, 500, QUICK),
    (128 * KIB, 32, 500, DEFAULT),
    (128 * KIB, 128, 500, FULL),
)

FAMILIES = (
    Family(
        "admin",
        "identify, zone report and log pages",
        Tool.NVME,
        Prepare.FILLED,
        ((0, 0, 0, QUICK),),
    ),
    Family("randread", "random read", Tool.FIO, Prepare.FILLED, READS, ("--rw=randread",)),
    Family(
        "read",
        "sequential read",
        Tool.FIO,
        Prepare.FILLED,
        tuple(
            (block, depth, ios, QUICK if (block, depth) == (128 * KIB, 8) else max(level, DEFAULT))
            for block, depth, ios, level in READS
            if block != 4 * KIB or depth in (1, 32)
        ),
        ("--rw=read",),
        region_mib=128,
    ),
    Family("write", "sequential write", Tool.FIO, Prepare.EMPTY, WRITES, ("--rw=write",)),
    Family(
        "randwrite",
        "random write (on zones: to the write pointers of 4 open zones)",
        Tool.FIO,
        Prepare.EMPTY,
        (
            (4 * KIB, 1, 400, FULL),
            (4 * KIB, 8, 4000, FULL),
            (4 * KIB, 32, 8000, DEFAULT),
            (16 * KIB, 32, 2000, FULL),
        ),
        ("--rw=randwrite", "--max_open_zones=4"),
        region_mib=128,
    ),
    Family(
        "mixed",
        "random read and write, 70:30",
        Tool.FIO,
        Prepare.FILLED,
        (
            (4 * KIB, 1, 1000, FULL),
            (4 * KIB, 8, 4000, DEFAULT),
            (4 * KIB, 32, 8000, QUICK),
            (4 * KIB, 128, 8000, FULL),
        ),
        ("--rw=randrw", "--rwmixread=70", "--max_open_zones=4"),
    ),
    Family(
        "rewrite",
        "sequential write of a full drive: zone reset, then first writes pay the erasure",
        Tool.FIO,
        Prepare.FILLED,
        (
            (4 * KIB, 1, 1000, FULL),
            (16 * KIB, 8, 8000, FULL),
            (128 * KIB, 1, 1000, DEFAULT),
            (128 * KIB, 8, 1000, QUICK),
        ),
        ("--rw=write",),
        zoned_only=True,
        whole_drive=True,
        region_mib=128,
    ),
    Family(
        "append",
        "zone append",
        Tool.ZAPPEND,
        Prepare.EMPTY,
        (
            (4 * KIB, 1, 400, QUICK),
            (4 * KIB, 2, 800, DEFAULT),
            (4 * KIB, 4, 1500, DEFAULT),
            (4 * KIB, 8, 3000, QUICK),
            (4 * KIB, 16, 6000, DEFAULT),
            (4 * KIB, 32, 8000, DEFAULT),
            (4 * KIB, 64, 8000, QUICK),
            (16 * KIB, 8, 2000, FULL),
            (16 * KIB, 64, 3000, DEFAULT),
            (128 * KIB, 8, 500, FULL),
        ),
        zoned_only=True,
    ),
)

ALL_CELLS = tuple(Cell(family, *point) for family in FAMILIES for point in family.points)


def applies(cell: Cell, system: str) -> bool:
    """Whether the cell makes sense on the system.

    An aged drive starts anew for each cell, which takes time: it has the default's only.
    """
    traits = SYSTEMS[system]
    if traits.aged:
        return not cell.family.zoned_only and cell.ios > 0 and cell.level <= DEFAULT
    return traits.zoned or not cell.family.zoned_only


def drive_properties(cell: Cell, system: str) -> dict[str, str]:
    """Properties of the drive that differ from the system's own."""
    traits = SYSTEMS[system]
    if not (cell.family.whole_drive and traits.ours):
        return {}
    return {"blocks": str(cell.region // MIB // traits.stripe_mib)}
