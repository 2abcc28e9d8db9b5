# SPDX-License-Identifier: GPL-2.0-or-later
"""REDO (RFS on RSD, in an SSD emulator of 512 MB): tables 1 and 2, figures 7 and 8.

The paper does not say its over-provisioning, its F2FS's version, whether ext4 discards, nor how
long its benchmarks ran; its erasures fill the drive 5 to 45 times. Here the page-level FTL has 5%
(RISA's, 4.1), ext4 does not discard, as by default, and F2FS is as it was in 2013. A block FTL that
copies a block for each overwrite, today's F2FS and ext4 with discard stand beside them.
"""

from collections.abc import Callable, Mapping
from statistics import geometric_mean

from rsd.bench.base import Context
from rsd.cluster.unit import Unit
from rsd.compare.benchmarks import BENCHMARKS
from rsd.paper import rounds
from rsd.paper.claim import Claim, Limit
from rsd.paper.entry import Entry, Paper, Scale
from rsd.paper.maps import map_sizes
from rsd.paper.rounds import Round, Rounds

RFS = "RFS on RSD"
F2FS_PAGE = "F2FS on page FTL"
EXT4_PAGE = "ext4 on page FTL"
F2FS_BLOCK = "F2FS on block FTL"
# The paper's systems and the stacks that stand for them
SYSTEMS = {
    F2FS_BLOCK: "f2fs-2013-block",
    EXT4_PAGE: "ext4-page-nodiscard",
    F2FS_PAGE: "f2fs-2013-page",
    RFS: "rfs+rsd",
}
BESIDE = {
    "F2FS on block FTL without replacement blocks": "f2fs-2013-block-plain",
    "today's F2FS on page FTL": "f2fs-page",
    "ext4 with discard": "ext4-page",
}

# Its first round takes more than VIRTUAL_LIMIT_S: a block is copied for each small write.
TOO_LONG = {("f2fs-2013-block-plain", "redo-postmark")}

# Table 1: erasures, in the order of SYSTEMS
TABLE1 = {
    "redo-tiobench-8": (115_168, 478_561, 40_861, 21_564),
    "redo-sysbench": (7_085, 27_742, 5_318, 3_197),
    "redo-iozone": (18_325, 9_686, 10_602, 7_900),
    "redo-bonnie": (1_237_200, 4_275, 6_662, 3_776),
    "redo-postmark": (2_011_481, 16_342, 46_426, 37_085),
}
# How much less REDO needs, on average: erasures as the introduction has them, run times of 3
ERASURES = {F2FS_PAGE: 0.36, EXT4_PAGE: 0.61, F2FS_BLOCK: 0.92}
RUN_TIMES = {F2FS_PAGE: 0.092, EXT4_PAGE: 0.401, F2FS_BLOCK: 0.501}
# Figure 7, as the text has it: fewer reads and programs
OPERATIONS = {F2FS_PAGE: 0.19, F2FS_BLOCK: 0.61}
OPERATIONS_OF = {"redo-bonnie": 0.51, "redo-iozone": 0.05}

Found = Mapping[tuple[str, str], Rounds]


def _plans(scale: Scale) -> list[rounds.Plan]:
    chosen = [one for one in BENCHMARKS if one.name in TABLE1]
    plans = rounds.plans([*SYSTEMS.values(), *BESIDE.values()], chosen, scale)
    return [plan for plan in plans if (plan.stack, plan.benchmark.name) not in TOO_LONG]


def _units(context: Context, scale: Scale) -> list[Unit]:
    return [rounds.unit(plan, context) for plan in _plans(scale)]


def _measured(context: Context, scale: Scale) -> Found:
    return rounds.measure(_plans(scale), context)


def _values(
    found: Found, name: str, systems: Mapping[str, str], of: Callable[[Round], float]
) -> dict[str, float]:
    """Of the systems that had room, and time, for the benchmark."""
    return {
        system: of(found[name, stack].last)
        for system, stack in systems.items()
        if (name, stack) in found and not found[name, stack].no_space
    }


def _note(found: Found, name: str, systems: Mapping[str, str]) -> str:
    return "; ".join(filter(None, (found[name, stack].note for stack in systems.values())))


def _means(
    what: str, less: Mapping[str, float], found: Found, of: Callable[[Round], float]
) -> list[Claim]:
    """Against each other system, the geometric mean of the five benchmarks."""
    claims = []
    for system, share in less.items():
        ratios = []
        for name in TABLE1:
            values = _values(found, name, {RFS: SYSTEMS[RFS], system: SYSTEMS[system]}, of)
            if len(values) == 2 and values[system]:
                ratios.append(values[RFS] / values[system])
        measured = {system: 1.0, RFS: geometric_mean(ratios)} if len(ratios) == len(TABLE1) else {}
        missing = "" if measured else f"{system} or {RFS} could not do all five benchmarks"
        paper = {system: 1.0, RFS: 1 - share}
        claims.append(
            Claim(f"{what}, mean against {system}", "", paper, measured, system, note=missing)
        )
    return claims


def table1(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Erasures of five benchmarks on four systems."""
    found = _measured(context, scale)
    claims: list[Claim | Limit] = [
        Claim(
            f"erasures, {name}",
            "blocks",
            dict(zip(SYSTEMS, erasures, strict=True)),
            _values(found, name, SYSTEMS, lambda one: one.taken),
            F2FS_PAGE,
            _values(found, name, BESIDE, lambda one: one.taken),
            _note(found, name, SYSTEMS),
        )
        for name, erasures in TABLE1.items()
    ]
    # The five directions between ext4 and F2FS, by themselves
    for name, (_, ext4, f2fs, _) in TABLE1.items():
        pair = {EXT4_PAGE: SYSTEMS[EXT4_PAGE], F2FS_PAGE: SYSTEMS[F2FS_PAGE]}
        claims.append(
            Claim(
                f"erasures, {name}: ext4 and F2FS",
                "blocks",
                {EXT4_PAGE: ext4, F2FS_PAGE: f2fs},
                _values(found, name, pair, lambda one: one.taken),
                F2FS_PAGE,
                note=_note(found, name, pair),
            )
        )
    return claims + _means("erasures", ERASURES, found, lambda one: one.taken)


def figure8(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Run times: the paper gives the means in its text."""
    found = _measured(context, scale)
    return list(_means("run time", RUN_TIMES, found, lambda one: one.seconds))


def figure7(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Pages read and programmed: the paper gives the means and two benchmarks in its text."""
    found = _measured(context, scale)
    claims: list[Claim | Limit] = []
    for name, share in OPERATIONS_OF.items():
        pair = {F2FS_PAGE: SYSTEMS[F2FS_PAGE], RFS: SYSTEMS[RFS]}
        claims.append(
            Claim(
                f"I/O operations, {name}",
                "pages",
                {F2FS_PAGE: 1.0, RFS: 1 - share},
                _values(found, name, pair, lambda one: one.pages),
                F2FS_PAGE,
                note=_note(found, name, pair),
            )
        )
    return claims + _means("I/O operations", OPERATIONS, found, lambda one: one.pages)


def table2(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Bytes of the mapping tables."""
    paper = {
        "512 MB": {"block": 4 << 10, "page": 512 << 10, "rsd": 4 << 10},
        "1 TB": {"block": 8 << 20, "page": 1 << 30, "rsd": 8 << 20},
    }
    return map_sizes(context, paper)


PAPER = Paper(
    "redo",
    "S. Lee, J. Kim, A. Mithal: Refactored Design of I/O Architecture for Flash Storage. "
    "IEEE Computer Architecture Letters 14(1), 2015",
    (
        Entry("table1", "block erasures of five benchmarks on four systems", table1, units=_units),
        Entry("table2", "sizes of the mapping tables", table2),
        Entry("figure7", "how many I/O operations the flash does less", figure7, units=_units),
        Entry("figure8", "run times of the five benchmarks", figure8, units=_units),
    ),
)
