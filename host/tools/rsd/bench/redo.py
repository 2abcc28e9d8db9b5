# SPDX-License-Identifier: GPL-2.0-or-later
"""REDO's five benchmarks on aged drives of its size: what several benches measure.

They are cells of `./rsd compare --full`; what finished is kept in the cache, as there.

A drive has some blocks erased and ready when a benchmark begins, fewer when it ends; in a run as
short as these they would hide most of a difference. So what is counted is the erasures and those
blocks: the blocks that the benchmark took into use, each of which costs an erasure in the long run.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rsd.bench.base import Context
from rsd.compare.benchmarks import BENCHMARKS
from rsd.compare.figures import counters, read_json
from rsd.compare.kept import RAW
from rsd.compare.run import run_all
from rsd.compare.stack_figures import CAUSES
from rsd.compare.stack_run import StackPlan, run_stack
from rsd.errors import RsdError

NAMES = ("redo-tiobench-8", "redo-sysbench", "redo-iozone", "redo-bonnie", "redo-postmark")


@dataclass(frozen=True)
class Cell:
    """A benchmark on a stack: blocks taken into use, pages programmed, virtual seconds.

    `written` are the pages that the host wrote, `copied` those that the drive did of its own,
    `pages` all that were read or programmed. `inode_map` and `timb` are RFS's writes of these,
    `moved_map` those of both that its cleaning caused.
    """

    taken: int
    written: int
    copied: int
    seconds: float
    pages: int = 0
    inode_map: int = 0
    timb: int = 0
    moved_map: int = 0


def measure(context: Context, stacks: Sequence[str]) -> dict[tuple[str, str], Cell]:
    """By benchmark and stack, a guest each. Raises RsdError for one that fails."""
    benchmarks = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    with context.cache.scratch("redo") as raw:
        plans = [
            StackPlan(stack, 1, benchmarks[name], raw / stack, keep=True)
            for name in NAMES
            for stack in stacks
        ]
        runs = run_all(
            [
                functools.partial(run_stack, plan, context.built, context.cache, context.progress)
                for plan in plans
            ]
        )
        found = {}
        for plan, run in zip(plans, runs, strict=True):
            name = plan.benchmark.name
            if name in run.failures:
                raise RsdError(f"{plan.title}: {run.failures[name]}")
            figures = {figure.metric: figure.value for figure in run.figures[name]}
            if "run_time" not in figures:
                raise RsdError(f"{plan.title}: the file system ran out of space")
            written = int(figures["nand.programs.host"])
            found[name, plan.system] = Cell(
                taken=blocks_taken(plan.directory / name / RAW),
                written=written,
                copied=int(figures["nand.programs"]) - written,
                seconds=figures["run_time"],
                pages=int(figures["nand.reads"] + figures["nand.programs"]),
                inode_map=int(figures.get("rfs.written_inode_map", 0)),
                timb=int(figures.get("rfs.written_timb", 0)),
                moved_map=int(figures.get("rfs.copied_inode_map", 0)),
            )
    return found


def blocks_taken(directory: Path) -> int:
    """Blocks that were taken into use between two readings of the counters."""
    before, after = (
        counters(read_json(directory / when / "counters.json")) for when in ("before", "after")
    )
    erased = sum(after[f"erase_{cause}"] - before[f"erase_{cause}"] for cause in CAUSES)
    return erased + before["blocks_erased"] - after["blocks_erased"]
