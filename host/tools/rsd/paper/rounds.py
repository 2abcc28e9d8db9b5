# SPDX-License-Identifier: GPL-2.0-or-later
"""A benchmark on a file system, over and over, until the drive is in a steady state.

A run as short as one benchmark is on a drive that has most of its flash ready says little of what
the drive does in the long run. So the benchmark is run in rounds on the aged volume, each in a
guest of its own that goes on with the drive as the last one left it: until the host has written
some capacities of the flash, and two rounds in a row differ by under 2% in the blocks they take
into use. The figures are the last round's; the curve of all rounds is part of the result.

On a large drive that takes too long. There what benchmarks share is made once, in a guest before
the first round (Loaded): the files that stay, or a database, which cannot be made anew in each
round, and whose queries write no drive full. The number of rounds is given, and the figures are the
means of their later half.

What counts as work for the flash are the blocks taken into use: those erased, and those by which
the stock of erased blocks shrank, each of which costs an erasure later.
"""

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    AGED_VOLUME,
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
from rsd.written import copy_media, shrink_media

# Two rounds that differ by less are called the same.
STEADY = 0.02
# A benchmark that does not settle is given up after so many times the rounds it was to have.
PATIENCE = 2
# Rounds whose number was given, and that differ by more, are noted.
VARIES = 0.10

PAGE = 4096

# The kind of the cache's entries that have what is Loaded
_LOADED = "loaded"
# Where the guest that makes what is Loaded leaves the drive's counters amid its work
_BEGUN = "begun.json"


@dataclass(frozen=True)
class Round:
    """What one round did. Pages and blocks are the flash's, bytes the host's.

    `taken`: blocks taken into use. `written`: pages that the host wrote, `copied` those that the
    drive programmed of its own. `pages`: all that were read or programmed. `inode_map`, `timb` and
    `moved_map` are RFS's: blocks of the inode map and of its list that it wrote, and those of both
    that cleaning moved; `checkpoints` are those it wrote. `all_written`: host pages since the first
    round began. `own`: the benchmark's own figures by metric, as `./rsd compare` has them.
    """

    taken: float
    written: float
    copied: float
    pages: float
    seconds: float
    all_written: int
    inode_map: float = 0
    timb: float = 0
    moved_map: float = 0
    checkpoints: float = 0
    own: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Rounds:
    """All rounds of a benchmark on a stack. `no_space`: the file system had no room for it.

    `fixed`: they did not end when two were the same, but after a number that was given.
    """

    stack: str
    benchmark: Benchmark
    rounds: tuple[Round, ...]
    no_space: bool = False
    fixed: bool = False

    @property
    def last(self) -> Round:
        """The steady state, as far as it was reached."""
        return self.rounds[-1]

    @property
    def counted(self) -> tuple[Round, ...]:
        """The later half, which is the steady state where their number was given."""
        return self.rounds[len(self.rounds) // 2 :]

    @property
    def mean(self) -> Round:
        """Of those that count: a log cleans amid some rounds, and not at all in others."""
        counted = self.counted

        def mean(values: Iterable[float]) -> float:
            return math.fsum(values) / len(counted)

        numbers = {
            field.name: mean(getattr(one, field.name) for one in counted)
            for field in dataclasses.fields(Round)
            if field.name not in ("own", "all_written")
        }
        own = {name: mean(one.own[name] for one in counted) for name in self.last.own}
        return dataclasses.replace(self.last, **numbers, own=own)

    @property
    def steady(self) -> bool:
        """Whether the last two rounds are the same."""
        return len(self.rounds) > 1 and _same(self.rounds[-2].taken, self.rounds[-1].taken)

    @property
    def curve(self) -> list[tuple[float, float]]:
        """Capacities written since the beginning, and blocks taken, of each round."""
        capacity = self.benchmark.scale.raw_mib * MIB // PAGE
        return [(one.all_written / capacity, one.taken) for one in self.rounds]

    @property
    def note(self) -> str:
        """What a reader has to know of it; "" if nothing."""
        if self.no_space:
            return f"{self.stack}: the file system ran out of space"
        if self.fixed:
            programs = [one.written + one.copied for one in self.counted]
            spread = (max(programs) - min(programs)) / max(*programs, 1)
            return f"{self.stack}: rounds vary by {spread:.0%}" if spread > VARIES else ""
        if self.steady:
            return ""
        return f"{self.stack}: not steady after {self.curve[-1][0]:.1f} capacities"


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= STEADY * max(one, other)


@dataclass(frozen=True)
class Loaded:
    """What is done before the first round, in a guest of its own, for all benchmarks that share it.

    The files that stay are made, and others by `load`, which is shell. `age` gives shell that
    writes so many bytes to them, as many as rounds of other benchmarks write. Then there are
    `rounds`, or as many as write that much, two at least. A benchmark finds the round's number in
    $round.
    """

    name: str
    load: str = ""
    age: Callable[[int], str] | None = None
    rounds: int | None = None


@dataclass(frozen=True)
class Plan:
    """What is measured: a benchmark in rounds on a stack."""

    stack: str
    benchmark: Benchmark
    scale: Scale
    loaded: Loaded | None = None

    @property
    def title(self) -> str:
        """For progress lines."""
        return f"{self.stack}, {self.benchmark.name}"


def plans(
    stacks: Iterable[str],
    benchmarks: Sequence[Benchmark],
    scale: Scale,
    loaded: Loaded | None = None,
) -> list[Plan]:
    """Each benchmark on each stack."""
    return [Plan(stack, benchmark, scale, loaded) for benchmark in benchmarks for stack in stacks]


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
    aged = volume_key(plan.stack, plan.benchmark.scale, context.built)
    loaded = [_loaded_key(plan, context)] if plan.loaded else []
    number = [plan.loaded.rounds] if plan.loaded else []
    key = hash_inputs(
        aged,
        [_script(plan, number) for number in (1, 2)],
        dataclasses.asdict(plan.scale),
        [STEADY, PATIENCE, kept.FORMAT, *(field.name for field in dataclasses.fields(Round))],
        *loaded,
        *number,
    )
    needs = [(AGED_VOLUME, aged), *((_LOADED, one) for one in loaded)]
    return Unit(plan.title, "rounds", key, functools.partial(_measure, plan, context), (*needs,))


def _read(plan: Plan, entry: Path) -> Rounds:
    """The rounds that an entry of the cache has."""
    facts = json.loads((entry / "rounds.json").read_text())
    rounds = tuple(Round(**one) for one in facts["rounds"])
    return Rounds(plan.stack, plan.benchmark, rounds, facts["no_space"], bool(plan.loaded))


def ballast(benchmark: Benchmark, live: int) -> int:
    """Bytes of further files that make `live` percent of the flash hold data at the most."""
    scale = benchmark.scale
    aged = stack_script.aged_bytes(scale)
    return max(0, scale.raw_mib * MIB * live // 100 - aged - benchmark.live_mib * MIB)


def _script(plan: Plan, number: int) -> str:
    """A round's script. The first makes room what it is to be; each removes what the last left."""
    stack = STACKS[plan.stack]
    prepare = f"rm -rf {stack_script.VOLUME}/bench\n"
    if plan.loaded:
        prepare += f"round={number}\n"
    elif number == 1:
        prepare += stack_script.ballast(ballast(plan.benchmark, plan.scale.live))
    return stack_script.measure(stack, plan.benchmark, prepare)


def _loading(plan: Plan, loaded: Loaded) -> str:
    """The script of the guest that makes what the rounds go on from."""
    amount = int(plan.scale.capacities * plan.benchmark.scale.raw_mib * MIB)
    age = loaded.age(amount) if loaded.age else ""
    return stack_script.add(
        STACKS[plan.stack],
        stack_script.ballast(ballast(plan.benchmark, plan.scale.live))
        + loaded.load
        + f"must rsdctl show --json $drive && mv /tmp/prepare /out/{_BEGUN}\n"
        + age,
    )


def _loaded_key(plan: Plan, context: Context) -> str:
    assert plan.loaded
    aged = volume_key(plan.stack, plan.benchmark.scale, context.built)
    return hash_inputs(aged, _loading(plan, plan.loaded), kept.FORMAT)


def _beginning(plan: Plan, context: Context) -> Path:
    """A directory of the cache with the drive that the first round begins with. Or NO_SPACE."""
    built, cache, progress = context.built, context.cache, context.progress
    aged = aged_volume(plan.stack, plan.benchmark.scale, built, cache, progress)
    loaded = plan.loaded
    if loaded is None or (aged / NO_SPACE).exists():
        return aged

    def build(target: Path) -> None:
        media = target / "media"
        copy_media(aged / "media", media)
        with progress.step(f"{plan.stack}: {loaded.name}"):
            job = stack_job(
                STACKS[plan.stack],
                plan.benchmark.scale,
                _loading(plan, loaded),
                media,
                target / kept.RAW,
            )
            result = run_guest(job, built, cache=cache)
        if ran_out_of_space(result, target):
            media.unlink()
            return
        if why := guest_failure(result):
            raise RsdError(f"{plan.stack}, {loaded.name}: {why}")
        shrink_media(media)
        kept.write(result, target, system=plan.stack, benchmark=loaded.name)

    return cache.entry(_LOADED, _loaded_key(plan, context), build)


def _measure(plan: Plan, context: Context, target: Path) -> None:
    built, cache, progress = context.built, context.cache, context.progress
    rounds: list[Round] = []
    no_space = False
    capacity = plan.benchmark.scale.raw_mib * MIB // PAGE
    wanted = plan.scale.capacities * capacity
    beginning = _beginning(plan, context)
    first = beginning / kept.RAW / _BEGUN if plan.loaded else _counters(target / "1", "before")
    with progress.step(plan.title) as step, cache.scratch("rounds") as scratch:
        media = scratch / "media"
        if not (no_space := (beginning / NO_SPACE).exists()):
            copy_media(beginning / "media", media)
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
            rounds.append(_round(plan, raw / kept.RAW, first))
            done = rounds[-1].all_written
            step.detail(
                f"round {number}, {done / capacity:.1f} of {plan.scale.capacities:g} capacities"
            )
            if _ended(plan, rounds, wanted):
                break
    facts = {"rounds": [dataclasses.asdict(one) for one in rounds], "no_space": no_space}
    (target / "rounds.json").write_text(json.dumps(facts, indent=1) + "\n")


def _ended(plan: Plan, rounds: Sequence[Round], wanted: float) -> bool:
    """Whether these are all. `wanted`: pages to write before a round counts."""
    done = rounds[-1].all_written
    if plan.loaded:
        # The first is never of the later half, unless it is the only one that is asked for.
        enough = done >= wanted and len(rounds) > 1
        return enough if plan.loaded.rounds is None else len(rounds) >= plan.loaded.rounds
    settled = len(rounds) > 1 and _same(rounds[-2].taken, rounds[-1].taken)
    return (done >= wanted and settled) or done >= PATIENCE * wanted


def _round(plan: Plan, raw: Path, first: Path) -> Round:
    """From what a round left behind. `first` has the drive's counters of the beginning."""
    found = [*drive_figures(raw)]
    counts = bool(STACKS[plan.stack].file_system.counters)
    if counts:
        found += file_system_figures(raw)
    figures = {figure.metric: figure.value for figure in found}
    begun, ended = (
        counters(read_json(raw / when / "counters.json")) for when in ("before", "after")
    )
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


def _counters(round_: Path, when: str) -> Path:
    return round_ / kept.RAW / when / "counters.json"


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
