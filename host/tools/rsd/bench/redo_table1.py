# SPDX-License-Identifier: GPL-2.0-or-later
"""REDO's table 1: block erasures of five benchmarks on the drives REDO compares itself with.

The paper gives no sizes, and fills its drive far more often than this does; so the direction is
what is compared: who erases more on a page-level FTL, ext4 or F2FS. ext4 is mounted as it is by
default, without discard, of which the paper says nothing; its erasures with discard are reported
beside. What finished is kept in the cache, as with `./rsd compare --full`, whose cells these are.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from rsd.bench.base import Context, Row
from rsd.compare.benchmarks import BENCHMARKS
from rsd.compare.run import run_all
from rsd.compare.stack_run import StackPlan, run_stack
from rsd.errors import RsdError

STACKS = ("f2fs-block", "ext4-page-nodiscard", "f2fs-page", "ext4-page")


@dataclass(frozen=True)
class Paper:
    """A row of the table: erasures on the first three of STACKS."""

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
    erases: dict[tuple[str, str], float] = {}
    for plan, run in zip(plans, runs, strict=True):
        if why := run.failures.get(plan.benchmark.name):
            raise RsdError(f"redo-table1: {plan.title}: {why}")
        (erases[plan.benchmark.name, plan.system],) = (
            figure.value
            for figure in run.figures[plan.benchmark.name]
            if figure.metric == "nand.erases"
        )
    return [
        row(paper, {stack: int(erases[paper.benchmark, stack]) for stack in STACKS})
        for paper in TABLE1
    ]


def row(paper: Paper, erases: Mapping[str, int]) -> Row:
    """A row of the table. `erases` are by stack."""
    block, ext4, f2fs, discarding = (erases[stack] for stack in STACKS)
    direction = "above" if paper.ext4_above else "below"
    return Row(
        f"erasures of {paper.benchmark}, ext4 and F2FS on page-ftl",
        f"ext4 {direction} F2FS ({paper.ext4_page:,} and {paper.f2fs_page:,}; "
        f"on block-ftl {paper.f2fs_block:,})",
        f"{ext4:,} and {f2fs:,}; on block-ftl {block:,}; ext4 with discard {discarding:,}",
        ext4 / f2fs if f2fs else 0.0,
        "",
        "count",
        (ext4 > f2fs) if paper.ext4_above else (ext4 < f2fs),
    )
