# SPDX-License-Identifier: GPL-2.0-or-later
"""REDO's table 1: block erasures of five benchmarks on the drives REDO compares itself with.

The paper gives no sizes, and fills its drive far more often than this does; so the direction is
what is compared: who erases more on a page-level FTL, ext4 or F2FS. It does not say how ext4 was
mounted either: both are measured, with discard, and without it, which is the default. Nor does it
say where the page-level FTL copies to, or its over-provisioning: ours copies to blocks of its own,
and has 5%, spare blocks included.

Where the direction is not the paper's, DEVIATIONS has it on record with its cause. What is measured
must have that direction, and that cause; anything else fails, also if it is the paper's direction.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from rsd.bench.base import Context, Row
from rsd.bench.redo import Cell, measure

STACKS = ("f2fs-block", "f2fs-page", "ext4-page-nodiscard", "ext4-page")
MOUNTED = {"ext4-page-nodiscard": "without discard", "ext4-page": "with discard"}


@dataclass(frozen=True)
class Paper:
    """A row of the table: erasures."""

    benchmark: str
    f2fs_block: int
    ext4_page: int
    f2fs_page: int

    @property
    def ext4_above(self) -> bool:
        """The direction, on page-ftl."""
        return self.ext4_page > self.f2fs_page


TABLE1 = (
    Paper("redo-tiobench-8", 115_168, 478_561, 40_861),
    Paper("redo-sysbench", 7_085, 27_742, 5_318),
    Paper("redo-iozone", 18_325, 9_686, 10_602),
    Paper("redo-bonnie", 1_237_200, 4_275, 6_662),
    Paper("redo-postmark", 2_011_481, 16_342, 46_426),
)


class Cause(enum.Enum):
    """Why a direction is not the paper's. The figures are ext4's and F2FS's, in pages."""

    # Without discard all that the aging ever wrote is valid to the drive.
    COPIES = "what the file systems write has the paper's direction, what the drive copies has not"
    WRITES = "the file systems write as much more or less, at this size"

    def holds(self, ext4: Cell, f2fs: Cell) -> bool:
        """Whether the figures show it."""
        above = ext4.taken > f2fs.taken
        if self is Cause.WRITES:
            return above == (ext4.written > f2fs.written)
        return above != (ext4.written > f2fs.written) and above == (ext4.copied > f2fs.copied)


# By benchmark and stack. The direction on record is the one that is not the paper's.
DEVIATIONS = {
    ("redo-sysbench", "ext4-page"): Cause.WRITES,
    ("redo-iozone", "ext4-page-nodiscard"): Cause.COPIES,
    ("redo-iozone", "ext4-page"): Cause.COPIES,
    ("redo-bonnie", "ext4-page-nodiscard"): Cause.COPIES,
    ("redo-postmark", "ext4-page-nodiscard"): Cause.WRITES,
}


def redo_table1(context: Context) -> list[Row]:
    """The five benchmarks on each of STACKS, a guest each."""
    cells = measure(context, STACKS)
    return [
        row
        for paper in TABLE1
        for row in rows(paper, {stack: cells[paper.benchmark, stack] for stack in STACKS})
    ]


def rows(paper: Paper, cells: Mapping[str, Cell]) -> list[Row]:
    """A row of the table for each way to mount ext4."""
    return [_row(paper, stack, cells) for stack in MOUNTED]


def _row(paper: Paper, stack: str, cells: Mapping[str, Cell]) -> Row:
    ext4, f2fs = cells[stack], cells["f2fs-page"]
    cause = DEVIATIONS.get((paper.benchmark, stack))
    recorded = paper.ext4_above if cause is None else not paper.ext4_above
    holds = ext4.taken > f2fs.taken if recorded else ext4.taken < f2fs.taken
    holds = holds and (cause is None or cause.holds(ext4, f2fs))
    passed = None if holds and cause else holds
    note = (
        f"{'as' if holds else 'NOT as'} on record, {'above' if recorded else 'below'}"
        f"{f' because {cause.value}' if cause else ''}; pages written {ext4.written:,} and "
        f"{f2fs.written:,}, copied {ext4.copied:,} and {f2fs.copied:,}"
    )
    return Row(
        f"erasures, {paper.benchmark}: ext4 {MOUNTED[stack]}, F2FS (F2FS on block-ftl)",
        f"ext4 {'above' if paper.ext4_above else 'below'}: {paper.ext4_page:,}, "
        f"{paper.f2fs_page:,} ({paper.f2fs_block:,})",
        f"{ext4.taken:,}, {f2fs.taken:,} ({cells['f2fs-block'].taken:,})",
        ext4.taken / f2fs.taken,
        "",
        "count",
        passed,
        "" if passed else note,
    )
