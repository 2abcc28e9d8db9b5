# SPDX-License-Identifier: GPL-2.0-or-later
"""Which cells and benchmarks on which systems: a level, and names given on the command line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rsd.compare.benchmarks import BENCHMARKS, Benchmark
from rsd.compare.cells import ALL_CELLS, FAMILIES, SYSTEMS, Cell, Level, applies
from rsd.compare.stacks import STACKS
from rsd.errors import RsdError, nearest

GROUPS = ("small", "redo", "risa")
LIST = "./rsd compare --list"


@dataclass(frozen=True)
class Selection:
    """`cells` on the bare `drives`, and pairs of stack and benchmark, in the tables' order."""

    drives: tuple[str, ...]
    cells: tuple[Cell, ...]
    benchmarks: tuple[tuple[str, Benchmark], ...]


def select(
    level: Level, systems: Iterable[str], workloads: Iterable[str], own: Sequence[Benchmark] = ()
) -> Selection:
    """What a level measures. What is named exactly is measured whatever its level is.

    `own` are benchmarks from elsewhere: without `workloads` they alone are measured. Raises
    RsdError for a name that does not exist, and when nothing is left.
    """
    systems, workloads = list(systems), list(workloads)
    all_benchmarks = (*BENCHMARKS, *own)
    if own:
        workloads += [benchmark.name for benchmark in own]
    for name in systems:
        if name not in SYSTEMS and name not in STACKS:
            known = (*SYSTEMS, *STACKS)
            raise RsdError(
                f"unknown system {name!r}: compare has {', '.join(known)}",
                _hint("--system", nearest(name, known)),
            )
    for name in workloads:
        if not any(_names(name, thing) for thing in (*ALL_CELLS, *all_benchmarks)):
            families = ", ".join((*(family.name for family in FAMILIES), *GROUPS))
            close = nearest(name, (thing.name for thing in (*ALL_CELLS, *all_benchmarks)))
            raise RsdError(
                f"unknown workload {name!r}: there is {families}, and their cells",
                _hint("--workload", close),
            )
    cells = tuple(cell for cell in ALL_CELLS if _wanted(cell, level, workloads))
    drives = tuple(
        name
        for name in SYSTEMS
        if (name in systems if systems else SYSTEMS[name].level <= level)
        and any(applies(cell, name) for cell in cells)
    )
    benchmarks = tuple(
        (name, benchmark)
        for benchmark in all_benchmarks
        if _wanted(benchmark, level, workloads)
        for name, stack in STACKS.items()
        if (name in systems if systems else stack.level <= level)
        and benchmark.scale in stack.scales
    )
    if not drives and not benchmarks:
        what = ", ".join(dict.fromkeys(workloads)) or "a workload"
        where = ", ".join(systems) or "any system of this level"
        if level < Level.FULL:
            # Raises what is below if there is nothing of them at any level.
            select(Level.FULL, systems, workloads, own)
            raise RsdError(
                f"nothing to measure: {what} on {where} is of a higher level",
                f"--full, or a whole name from {LIST}",
            )
        raise RsdError(
            f"nothing to measure: {what} does not run on {where}",
            f"{LIST}, which shows the systems of each workload",
        )
    return Selection(drives, cells if drives else (), benchmarks)


def _hint(option: str, close: str) -> str:
    return f"{option} {close}; {LIST}" if close else LIST


def _names(name: str, thing: Cell | Benchmark) -> bool:
    return thing.name == name or thing.name.startswith(f"{name}-")


def _wanted(thing: Cell | Benchmark, level: Level, names: list[str]) -> bool:
    """Named in full, or of the level and named by a family or not excluded by other names."""
    if thing.name in names:
        return True
    return thing.level <= level and (not names or any(_names(name, thing) for name in names))
