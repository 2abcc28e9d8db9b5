# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the cells in guests: one guest a system and repetition."""

import dataclasses
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rsd.artifacts import Artifacts
from rsd.cache import Cache, hash_inputs
from rsd.compare import kept
from rsd.compare.aged import aged_drive, verdict
from rsd.compare.benchmarks import Benchmark
from rsd.compare.cells import SYSTEMS, Cell, applies, drive_properties
from rsd.compare.figures import BadOutput, Figure, cell_figures
from rsd.compare.script import guest_script
from rsd.compare.steadiness import Verdict
from rsd.errors import RsdError, words
from rsd.machine import GUEST_SPEED_SHIFT, GuestJob, GuestResult, Outcome, run_guest
from rsd.progress import Progress, Step
from rsd.systems import get_drive
from rsd.written import copy_media

# Ours twice, to show that the runs are identical; QEMU's own more often, to show its spread.
REPETITIONS_OURS = 2
REPETITIONS_STOCK = 3

CONSOLE_TAIL_LINES = 20


@dataclass(frozen=True)
class Plan:
    """The cells of a drive, once. `directory` gets their raw output.

    `keep`: what a guest gave is left in, or taken from, the cache. `cold`: the guests boot, and do
    not go on from the saved one.
    """

    system: str
    number: int
    cells: tuple[Cell, ...]
    directory: Path
    keep: bool = False
    cold: bool = False

    @property
    def title(self) -> str:
        """For progress lines."""
        return f"{self.system}, run {self.number}{', cold' if self.cold else ''}"


class AnyPlan(Protocol):
    """What all plans have: of drives (Plan) and of file systems on them (StackPlan)."""

    @property
    def system(self) -> str: ...

    @property
    def number(self) -> int: ...

    @property
    def cells(self) -> Sequence[Cell | Benchmark]: ...

    @property
    def directory(self) -> Path: ...


@dataclass
class Run:
    """What a plan gave: figures and wall seconds by cell, and why cells failed.

    `results` has one guest for each set of drive properties that the cells ask for. `aged` says of
    aged drives and volumes whether they were steady, by scale; "" is the scale of bare drives.
    """

    plan: AnyPlan
    results: list[GuestResult] = field(default_factory=list)
    figures: dict[str, list[Figure]] = field(default_factory=dict)
    wall_s: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    aged: dict[str, Verdict] = field(default_factory=dict)


def plans(
    systems: Sequence[str],
    cells: Sequence[Cell],
    raw: Path,
    *,
    keep: bool = False,
    cold: bool = False,
) -> list[Plan]:
    """The guests to start, the repetitions of a system apart from each other.

    `cold`: the second run of ours boots.
    """
    rounds: dict[str, int] = {
        name: REPETITIONS_OURS if SYSTEMS[name].ours else REPETITIONS_STOCK for name in systems
    }
    chosen = {name: tuple(c for c in cells if applies(c, name)) for name in systems}
    boots = {name: cold and SYSTEMS[name].ours for name in systems}
    return [
        Plan(name, number, chosen[name], raw / f"{name}.{number}", keep, boots[name] and number > 1)
        for number in range(1, max(rounds.values(), default=0) + 1)
        for name in systems
        if number <= rounds[name] and chosen[name]
    ]


def run_plan(plan: Plan, built: Artifacts, cache: Cache, progress: Progress) -> Run:
    """The cells of one system once, from start to end. A failure is in the run."""
    plan.directory.mkdir(parents=True, exist_ok=True)
    run = Run(plan)
    why = ""
    with progress.step(plan.title) as step:
        watch = _Watch(plan, step, progress)
        for properties, cells in _by_guest(plan):
            try:
                result = _guest(plan, properties, cells, watch, built, cache, progress)
            except (RsdError, OSError, subprocess.CalledProcessError) as error:
                why = words(error)
                break
            run.results.append(result)
            if why := guest_failure(result):
                break
    if why:
        progress.say(f"FAILED: {plan.title}: {why}")
    elif SYSTEMS[plan.system].aged:
        run.aged[""] = verdict(plan.system, cache, progress)
    run.wall_s = watch.wall_s
    for cell in plan.cells:
        directory = plan.directory / cell.name
        try:
            if why and cell.name not in watch.status:
                raise BadOutput(why.splitlines()[0])
            if watch.status.get(cell.name) != "0":
                raise BadOutput(_first_error(directory, watch.status.get(cell.name)))
            run.figures[cell.name] = cell_figures(cell, SYSTEMS[plan.system], directory)
        except BadOutput as error:
            run.failures[cell.name] = str(error)
    return run


def _guest(
    plan: Plan,
    properties: dict[str, str],
    cells: Sequence[Cell],
    watch: "_Watch",
    built: Artifacts,
    cache: Cache,
    progress: Progress,
) -> GuestResult:
    """Some cells in one guest, or what the cache has of it. Raises RsdError and the like."""
    script = guest_script(plan.system, cells)
    traits = SYSTEMS[plan.system]
    aged = aged_drive(plan.system, cache, progress) if traits.aged else None
    key = hash_inputs(
        built.deciding(rfs=False),
        dataclasses.asdict(get_drive(plan.system)),
        properties,
        aged.parent.name if aged else "",
        GUEST_SPEED_SHIFT,
        script,
        plan.number,
        plan.cold,
    )
    if plan.keep and (entry := cache.find("cell", key)):
        result, more = kept.read(entry)
        shutil.copytree(result.out_dir, plan.directory, dirs_exist_ok=True)
        watch.restore(more["wall_s_of"])
        return result
    with cache.scratch("drive") as scratch:
        media = None
        if aged:
            media = scratch / "media"
            copy_media(aged, media)
        job = GuestJob(
            system=plan.system,
            script=script,
            media=media,
            rfs=False,
            out_dir=plan.directory,
            cold=plan.cold,
            namespace=properties,
            # QEMU's own drives work in host time. If the guest's clock skipped idle time as it
            # does with ours, it would run ahead of them: seconds pass, and commands time out,
            # while the host writes a block.
            waits=not traits.ours,
        )
        result = run_guest(job, built, cache=cache, on_output=watch.feed)
    names = [cell.name for cell in cells]
    good = not guest_failure(result) and all(watch.status.get(name) == "0" for name in names)

    def keep(partial: Path) -> None:
        for name in (*names, "versions"):
            copy = shutil.copytree if name in names else shutil.copy2
            copy(plan.directory / name, partial / kept.RAW / name)
        kept.write(result, partial, wall_s_of={name: watch.wall_s[name] for name in names})

    if plan.keep and good:
        cache.entry("cell", key, keep)
    return result


def _by_guest(plan: Plan) -> Iterator[tuple[dict[str, str], list[Cell]]]:
    """The cells by the drive that they need, in the table's order.

    On a drive without zones nothing takes an aged one back to where it was: each has a new one.
    """
    if SYSTEMS[plan.system].aged:
        yield from (({}, [cell]) for cell in plan.cells)
        return
    properties = [drive_properties(cell, plan.system) for cell in plan.cells]
    done: list[dict[str, str]] = []
    for wanted in properties:
        if wanted not in done:
            done.append(wanted)
            pairs = zip(plan.cells, properties, strict=True)
            yield wanted, [cell for cell, own in pairs if own == wanted]


class _Watch:
    """Follows the script's @begin and @end lines: progress, wall times, exit statuses."""

    def __init__(self, plan: Plan, step: Step, progress: Progress) -> None:
        self.wall_s: dict[str, float] = {}
        self.status: dict[str, str] = {}
        self._plan = plan
        self._step = step
        self._progress = progress
        self._partial = b""
        self._begun = time.monotonic()

    def restore(self, wall_s: Mapping[str, float]) -> None:
        """Cells that went well in an earlier run."""
        self.wall_s.update(wall_s)
        self.status.update(dict.fromkeys(wall_s, "0"))

    def feed(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            match line.decode(errors="replace").split():
                case ["@begin", name]:
                    self._begun = time.monotonic()
                    done = f"{len(self.status) + 1} of {len(self._plan.cells)}"
                    self._step.detail(f"{name} ({done})")
                case ["@end", name, status]:
                    self.status[name] = status
                    self.wall_s[name] = time.monotonic() - self._begun
                    self._report(name)

    def _report(self, name: str) -> None:
        """On a terminal, the live display is enough."""
        if self._progress.live is None:
            done = f"{len(self.status)}/{len(self._plan.cells)}"
            seconds = self.wall_s[name]
            self._progress.say(f"{self._plan.title}: {name} ({done}) {seconds:.1f} s")


def guest_failure(result: GuestResult) -> str:
    """Why a guest's script did not end well, with the end of what it said; "" if it did."""
    if result.outcome is Outcome.EXITED and result.status == 0:
        return ""
    if result.outcome is Outcome.EXITED:
        text, how = result.output, f"the guest's script ended with status {result.status}"
    else:
        text, how = result.console, result.outcome.value
    tail = "".join(f"  | {line}\n" for line in text.splitlines()[-CONSOLE_TAIL_LINES:])
    return f"{how}\n{tail}".rstrip()


def _first_error(directory: Path, status: str | None) -> str:
    path = directory / "errors"
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    text = next((line for line in lines if line.strip()), "no message")
    return f"status {status}: {text}"


@dataclass(frozen=True)
class _Whole:
    """All plans of one system and number."""

    system: str
    number: int
    cells: tuple[Cell | Benchmark, ...]
    directory: Path


def merged(runs: Sequence[Run]) -> list[Run]:
    """The runs of one system and number as one: file systems have a guest a benchmark."""
    found: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        found.setdefault((run.plan.system, run.plan.number), []).append(run)
    wholes = []
    for (system, number), group in found.items():
        cells = tuple(cell for run in group for cell in run.plan.cells)
        whole = Run(_Whole(system, number, cells, group[0].plan.directory))
        for run in group:
            whole.results += run.results
            whole.figures |= run.figures
            whole.wall_s |= run.wall_s
            whole.failures |= run.failures
            whole.aged |= run.aged
        wholes.append(whole)
    return wholes


def differing(runs: Sequence[Run]) -> list[str]:
    """What is not the same in all runs of one system: "workload metric: values".

    Cells that only one of two runs was to measure are left out.
    """
    first = _values(runs[0])
    planned = {cell.name for cell in runs[0].plan.cells}
    found = []
    for other in runs[1:]:
        values = _values(other)
        both = planned & {cell.name for cell in other.plan.cells}
        for key in sorted(first.keys() | values.keys()):
            if key[0] in both and first.get(key) != values.get(key):
                found.append(f"{' '.join(key)}: {first.get(key)}, {values.get(key)}")
    return found


def _values(run: Run) -> Mapping[tuple[str, str], int | float]:
    return {
        (name, figure.metric): figure.value
        for name, figures in run.figures.items()
        for figure in figures
        if figure.clock != "wall"
    }
