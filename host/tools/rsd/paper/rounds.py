# SPDX-License-Identifier: GPL-2.0-or-later
"""A benchmark on a file system, over and over, until the drive is in a steady state.

A run as short as one benchmark is on a drive that has most of its flash ready says little of what
the drive does in the long run. So the benchmark is run in rounds on the aged volume, each in a
guest of its own that goes on with the drive as the last one left it: until the host has written
some capacities of the flash, and two rounds in a row differ by under 2% in the blocks they take
into use. The figures are the last round's; the curve of all rounds is part of the result.

What counts as work for the flash are the blocks taken into use: those erased, and those by which
the stock of erased blocks shrank, each of which costs an erasure later.
"""

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rsd.bench.base import Context
from rsd.cache import hash_inputs
from rsd.cluster.unit import Unit
from rsd.compare import kept, stack_script
from rsd.compare.benchmarks import Benchmark
from rsd.compare.cells import MIB
from rsd.compare.figures import counters, read_json
from rsd.compare.run import guest_failure
from rsd.compare.stack_figures import (
    CAUSES,
    benchmark_figures,
    drive_figures,
    file_system_figures,
    run_seconds,
)
from rsd.compare.stack_run import (
    NO_SPACE,
    aged_volume,
    ran_out_of_space,
    stack_job,
    volume_key,
)
from rsd.compare.stacks import STACKS
from rsd.errors import RsdError
from rsd.machine import run_guest
from rsd.paper.entry import Scale
from rsd.parallel import run_all
from rsd.written import copy_media

# Two rounds that differ by less are called the same.
STEADY = 0.02
# A benchmark that does not settle is given up after so many times the rounds it was to have.
PATIENCE = 2

PAGE = 4096


@dataclass(frozen=True)
class Round:
    """What one round did. Pages and blocks are the flash's, bytes the host's.

    `taken`: blocks taken into use. `written`: pages that the host wrote, `copied` those that the
    drive programmed of its own. `pages`: all that were read or programmed. `inode_map`, `timb` and
    `moved_map` are RFS's: blocks of the inode map and of its list that it wrote, and those of both
    that cleaning moved; `checkpoints` are those it wrote. `all_written`: host pages since the first
    round began. `own`: the benchmark's own figures by metric, as `./rsd compare` has them.
    """

    taken: int
    written: int
    copied: int
    pages: int
    seconds: float
    all_written: int
    inode_map: int = 0
    timb: int = 0
    moved_map: int = 0
    checkpoints: int = 0
    own: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Rounds:
    """All rounds of a benchmark on a stack. `no_space`: the file system had no room for it."""

    stack: str
    benchmark: Benchmark
    rounds: tuple[Round, ...]
    no_space: bool = False

    @property
    def last(self) -> Round:
        """The steady state, as far as it was reached."""
        return self.rounds[-1]

    @property
    def steady(self) -> bool:
        """Whether the last two rounds are the same."""
        return len(self.rounds) > 1 and _same(self.rounds[-2].taken, self.rounds[-1].taken)

    @property
    def curve(self) -> list[tuple[float, int]]:
        """Capacities written since the beginning, and blocks taken, of each round."""
        capacity = self.benchmark.scale.raw_mib * MIB // PAGE
        return [(one.all_written / capacity, one.taken) for one in self.rounds]

    @property
    def note(self) -> str:
        """What a reader has to know of it; "" if nothing."""
        if self.no_space:
            return f"{self.stack}: the file system ran out of space"
        if self.steady:
            return ""
        return f"{self.stack}: not steady after {self.curve[-1][0]:.1f} capacities"


def _same(one: int, other: int) -> bool:
    return abs(one - other) <= STEADY * max(one, other)


@dataclass(frozen=True)
class Plan:
    """What is measured: a benchmark in rounds on a stack."""

    stack: str
    benchmark: Benchmark
    scale: Scale

    @property
    def title(self) -> str:
        """For progress lines."""
        return f"{self.stack}, {self.benchmark.name}"


def plans(stacks: Iterable[str], benchmarks: Sequence[Benchmark], scale: Scale) -> list[Plan]:
    """Each benchmark on each stack."""
    return [Plan(stack, benchmark, scale) for benchmark in benchmarks for stack in stacks]


def measure(todo: Sequence[Plan], context: Context) -> dict[tuple[str, str], Rounds]:
    """By benchmark and stack, as many at once as there are cores. Raises RsdError."""
    units = [unit(plan, context) for plan in todo]
    found = run_all([functools.partial(one.run, context.cache) for one in units])
    return {
        (plan.benchmark.name, plan.stack): _read(plan, entry)
        for plan, entry in zip(todo, found, strict=True)
    }


def unit(plan: Plan, context: Context) -> Unit:
    """Its entry has each round's raw output, and the figures of all."""
    key = hash_inputs(
        volume_key(plan.stack, plan.benchmark.scale, context.built),
        [_script(plan, number) for number in (1, 2)],
        dataclasses.asdict(plan.scale),
        [STEADY, PATIENCE, kept.FORMAT, *(field.name for field in dataclasses.fields(Round))],
    )
    return Unit(plan.title, "rounds", key, functools.partial(_measure, plan, context))


def _read(plan: Plan, entry: Path) -> Rounds:
    """The rounds that an entry of the cache has."""
    facts = json.loads((entry / "rounds.json").read_text())
    rounds = tuple(Round(**one) for one in facts["rounds"])
    return Rounds(plan.stack, plan.benchmark, rounds, facts["no_space"])


def ballast(benchmark: Benchmark, live: int) -> int:
    """Bytes of further files that make `live` percent of the flash hold data at the most."""
    scale = benchmark.scale
    aged = stack_script.aged_bytes(scale)
    return max(0, scale.raw_mib * MIB * live // 100 - aged - benchmark.live_mib * MIB)


def _script(plan: Plan, number: int) -> str:
    """A round's script. The first makes room what it is to be; each removes what the last left."""
    stack = STACKS[plan.stack]
    prepare = f"rm -rf {stack_script.VOLUME}/bench\n"
    if number == 1:
        prepare += stack_script.ballast(ballast(plan.benchmark, plan.scale.live))
    return stack_script.measure(stack, plan.benchmark, prepare)


def _measure(plan: Plan, context: Context, target: Path) -> None:
    built, cache, progress = context.built, context.cache, context.progress
    rounds: list[Round] = []
    no_space = False
    capacity = plan.benchmark.scale.raw_mib * MIB // PAGE
    wanted = plan.scale.capacities * capacity
    aged = aged_volume(plan.stack, plan.benchmark.scale, built, cache, progress)
    with progress.step(plan.title) as step, cache.scratch("rounds") as scratch:
        media = scratch / "media"
        if not (no_space := (aged / NO_SPACE).exists()):
            copy_media(aged / "media", media)
        while not no_space:
            number = len(rounds) + 1
            raw = target / str(number)
            job = stack_job(
                STACKS[plan.stack],
                plan.benchmark.scale,
                _script(plan, number),
                media,
                raw / kept.RAW,
            )
            result = run_guest(job, built, cache=cache)
            if no_space := ran_out_of_space(result, raw):
                break
            if why := guest_failure(result):
                raise RsdError(f"{plan.title}, round {number}: {why}")
            kept.write(result, raw, system=plan.stack, benchmark=plan.benchmark.name)
            rounds.append(_round(plan, raw / kept.RAW))
            done = rounds[-1].all_written
            step.detail(
                f"round {number}, {done / capacity:.1f} of {plan.scale.capacities:g} capacities"
            )
            settled = len(rounds) > 1 and _same(rounds[-2].taken, rounds[-1].taken)
            if (done >= wanted and settled) or done >= PATIENCE * wanted:
                break
    facts = {"rounds": [dataclasses.asdict(one) for one in rounds], "no_space": no_space}
    (target / "rounds.json").write_text(json.dumps(facts, indent=1) + "\n")


def _round(plan: Plan, raw: Path) -> Round:
    """From what a round left behind."""
    found = [*drive_figures(raw)]
    counts = bool(STACKS[plan.stack].file_system.counters)
    if counts:
        found += file_system_figures(raw)
    figures = {figure.metric: figure.value for figure in found}
    begun, ended = (
        counters(read_json(raw / when / "counters.json")) for when in ("before", "after")
    )
    first = raw.parent.parent / "1" / kept.RAW / "before" / "counters.json"
    written = int(figures["nand.programs.host"])
    return Round(
        taken=blocks_taken(begun, ended),
        written=written,
        copied=int(figures["nand.programs"]) - written,
        pages=int(figures["nand.reads"] + figures["nand.programs"]),
        seconds=run_seconds(raw),
        all_written=ended["host_write_pages"] - counters(read_json(first))["host_write_pages"],
        inode_map=int(figures.get("rfs.written_inode_map", 0)),
        timb=int(figures.get("rfs.written_timb", 0)),
        moved_map=int(figures.get("rfs.copied_inode_map", 0)),
        checkpoints=_checkpoints(raw) if counts else 0,
        own={one.metric: one.value for one in benchmark_figures(plan.benchmark, raw)},
    )


def _checkpoints(raw: Path) -> int:
    """How many RFS wrote."""
    begun, ended = (
        int(dict(line.split(":", 1) for line in text.splitlines())["checkpoints"])
        for text in ((raw / when / "fs").read_text() for when in ("before", "after"))
    )
    return ended - begun


def blocks_taken(before: Mapping[str, int], after: Mapping[str, int]) -> int:
    """Blocks that were taken into use between two readings of the counters."""
    erased = sum(after[f"erase_{cause}"] - before[f"erase_{cause}"] for cause in CAUSES)
    return erased + before["blocks_erased"] - after["blocks_erased"]
