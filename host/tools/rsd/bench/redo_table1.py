# SPDX-License-Identifier: GPL-2.0-or-later
"""REDO's table 1: block erasures of five benchmarks on the drives REDO compares itself with.

The paper gives no sizes, and fills its drive far more often than this does; so the direction is
what is compared: who erases more on a page-level FTL, ext4 or F2FS. It does not say how ext4 was
mounted either: both are measured, with discard, and without it, which is the default. What
finished is kept in the cache, as with `./rsd compare --full`, whose cells these are.

A drive has some blocks erased and ready when a benchmark begins, fewer when it ends; in a run as
short as these they would hide most of a difference. So what is counted is the erasures and those
blocks: the blocks that the benchmark took into use, each of which costs an erasure in the long run.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rsd.bench.base import Context, Row
from rsd.compare.benchmarks import BENCHMARKS
from rsd.compare.figures import counters, read_json
from rsd.compare.kept import RAW
from rsd.compare.run import run_all
from rsd.compare.stack_figures import CAUSES
from rsd.compare.stack_run import StackPlan, run_stack
from rsd.errors import RsdError

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


def redo_table1(context: Context) -> list[Row]:
    """The five benchmarks on each of STACKS, a guest each."""
    benchmarks = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    with context.cache.scratch("table1") as raw:
        plans = [
            StackPlan(stack, 1, benchmarks[paper.benchmark], raw / stack, keep=True)
            for paper in TABLE1
            for stack in STACKS
        ]
        runs = run_all(
            [
                functools.partial(run_stack, plan, context.built, context.cache, context.progress)
                for plan in plans
            ]
        )
        taken: dict[tuple[str, str], int] = {}
        for plan, run in zip(plans, runs, strict=True):
            name = plan.benchmark.name
            if name not in run.figures:
                raise RsdError(f"redo-table1: {plan.title}: {run.failures[name]}")
            taken[name, plan.system] = blocks_taken(plan.directory / name / RAW)
    return [
        row
        for paper in TABLE1
        for row in rows(paper, {stack: taken[paper.benchmark, stack] for stack in STACKS})
    ]


def blocks_taken(directory: Path) -> int:
    """Blocks that were taken into use between two readings of the counters."""
    before, after = (
        counters(read_json(directory / when / "counters.json")) for when in ("before", "after")
    )
    erased = sum(after[f"erase_{cause}"] - before[f"erase_{cause}"] for cause in CAUSES)
    return erased + before["blocks_erased"] - after["blocks_erased"]


def rows(paper: Paper, taken: Mapping[str, int]) -> list[Row]:
    """A row of the table for each way to mount ext4. `taken` are blocks by stack."""
    f2fs, block = taken["f2fs-page"], taken["f2fs-block"]
    found = []
    for stack, mounted in MOUNTED.items():
        ext4 = taken[stack]
        found.append(
            Row(
                f"erasures, {paper.benchmark}: ext4 {mounted}, F2FS (F2FS on block-ftl)",
                f"ext4 {'above' if paper.ext4_above else 'below'}: {paper.ext4_page:,}, "
                f"{paper.f2fs_page:,} ({paper.f2fs_block:,})",
                f"{ext4:,}, {f2fs:,} ({block:,})",
                ext4 / f2fs,
                "",
                "count",
                ext4 > f2fs if paper.ext4_above else ext4 < f2fs,
            )
        )
    return found
