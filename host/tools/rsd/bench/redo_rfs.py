# SPDX-License-Identifier: GPL-2.0-or-later
"""RFS on RSD in REDO's five benchmarks, against the drives REDO compares itself with.

The marks are REDO's, in the geometric mean of the five: erasures of its table 1, run times of its
figure 8. A benchmark that RFS loses, and a mark that it misses, fails unless the reason is on
record here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean

from rsd.bench.base import Context, Row
from rsd.bench.redo import NAMES, Cell, measure

OTHERS = {
    "f2fs-page": "F2FS on page-ftl",
    "ext4-page": "ext4 on page-ftl",
    "f2fs-block": "F2FS on block-ftl",
}
OURS = "rfs+rsd"
MAP_SHARE = 0.002


@dataclass(frozen=True)
class Figure:
    """What is compared. `marks` are how much less of it RFS needs, by stack, in REDO."""

    name: str
    unit: str
    clock: str
    of: Callable[[Cell], float]
    shown: str  # a format
    marks: Mapping[str, float]


FIGURES = (
    Figure(
        "erasures",
        "blocks",
        "count",
        lambda cell: cell.taken,
        ",.0f",
        {"f2fs-page": 0.36, "ext4-page": 0.61, "f2fs-block": 0.92},
    ),
    Figure(
        "run time",
        "s",
        "virtual",
        lambda cell: cell.seconds,
        ",.2f",
        {"f2fs-page": 0.09, "ext4-page": 0.40, "f2fs-block": 0.50},
    ),
)

_FREE = (
    "the page-mapped drives have most of their flash free after the aging and copy little, while "
    "RFS cleans its zones, and writes a summary for 63 pages"
)
_LEVEL = f"in REDO their collection copies on top of the file system's; here {_FREE}"

# Why RFS needs more of a figure than another, by figure and benchmark
LOSSES = {
    ("erasures", "redo-tiobench-8"): _FREE,
    ("erasures", "redo-sysbench"): _FREE,
    ("erasures", "redo-iozone"): _FREE,
    ("erasures", "redo-bonnie"): _FREE,
    ("run time", "redo-tiobench-8"): _FREE,
    ("run time", "redo-iozone"): _FREE,
    ("run time", "redo-bonnie"): _FREE,
}
# Why a mark is missed, by figure and stack
MISSES = {
    ("erasures", "f2fs-page"): _LEVEL,
    ("erasures", "ext4-page"): _LEVEL,
    (
        "erasures",
        "f2fs-block",
    ): "iozone and bonnie++ write in order, which this block-ftl merges little; in "
    "REDO bonnie++ erases 1,237,200 blocks",
    ("run time", "f2fs-page"): _LEVEL,
    ("run time", "ext4-page"): _LEVEL,
}


def redo_rfs(context: Context) -> list[Row]:
    """The five benchmarks on RFS and OTHERS, a guest each."""
    cells = measure(context, (*OTHERS, OURS))
    found = [row for figure in FIGURES for row in rows(figure, cells)]
    return found + [row for name in NAMES for row in map_rows(name, cells[name, OURS])]


def map_rows(name: str, cell: Cell) -> list[Row]:
    """RISA's figure 13: what the inode map costs. A block that is moved is read and written."""
    timb, moved, written = (
        count / cell.pages for count in (cell.timb, 2 * cell.moved_map, cell.inode_map)
    )
    return [
        Row(
            f"inode map, {name}: {what} of all I/O",
            f"under {MAP_SHARE:.1%}",
            f"{share:.3%}{note}",
            share,
            "",
            "count",
            share < MAP_SHARE,
        )
        for what, share, note in (
            ("TIMB writes", timb, f"; all writes of the inode map {written:.3%}"),
            ("its cleaning", moved, ""),
        )
    ]


def rows(figure: Figure, cells: Mapping[tuple[str, str], Cell]) -> list[Row]:
    """A row for each benchmark, then one for each mark."""
    values = {key: figure.of(cell) for key, cell in cells.items()}
    ratios = {
        (name, stack): values[name, OURS] / values[name, stack]
        for name in NAMES
        for stack in OTHERS
    }
    found = []
    for name in NAMES:
        others = (
            f"{values[name, stack]:{figure.shown}} ({ratios[name, stack] - 1:+.0%})"
            for stack in OTHERS
        )
        passed, note = _judge(
            all(ratios[name, stack] <= 1 for stack in OTHERS), LOSSES.get((figure.name, name))
        )
        found.append(
            Row(
                f"{figure.name}, {name}: RFS on RSD; {', '.join(OTHERS.values())}",
                "the least",
                f"{values[name, OURS]:{figure.shown}}; {', '.join(others)}",
                values[name, OURS],
                figure.unit,
                figure.clock,
                passed,
                note and f"{note}; pages programmed: {_pages(name, cells)}",
            )
        )
    for stack, mark in figure.marks.items():
        mean = geometric_mean(ratios[name, stack] for name in NAMES)
        passed, note = _judge(1 - mean >= mark, MISSES.get((figure.name, stack)))
        found.append(
            Row(
                f"{figure.name}, RFS on RSD against {OTHERS[stack]}, geometric mean",
                f"{-mark:+.0%} or less",
                f"{mean - 1:+.1%}",
                mean,
                "",
                figure.clock,
                passed,
                note,
            )
        )
    return found


def _judge(met: bool, reason: str | None) -> tuple[bool | None, str]:
    """A row's `passed` and `deviation`."""
    if met:
        return True, ""
    return (None, reason) if reason else (False, "")


def _pages(name: str, cells: Mapping[tuple[str, str], Cell]) -> str:
    return ", ".join(
        f"{stack} {cells[name, stack].written:,} and {cells[name, stack].copied:,} copies"
        for stack in (OURS, *OTHERS)
    )
