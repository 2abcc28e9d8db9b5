# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a benchmark on an aged file system, one guest each, and keeps what finished.

Both the aged volume and a benchmark's raw output are entries of the cache, under a key made of
everything that decides them: QEMU, kernel, root, tools, the drive's options, the script, and with
RFS its module and tools, which no other guest has. So an interrupted `--full` goes on where it was,
and a change anywhere measures again what it touches.
"""

import contextlib
import dataclasses
import functools
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rsd.artifacts import Artifacts
from rsd.cache import Cache, hash_inputs, hash_tree
from rsd.cluster.unit import Unit
from rsd.compare import drive_latency, kept, stack_script, steadiness
from rsd.compare.benchmarks import Benchmark
from rsd.compare.cells import MIB, Level
from rsd.compare.figures import BadOutput, Figure
from rsd.compare.run import Run, guest_failure
from rsd.compare.stack_figures import stack_figures
from rsd.compare.stacks import STACKS, Scale, Stack
from rsd.errors import RsdError, words
from rsd.machine import GUEST_SPEED_SHIFT, GuestJob, GuestResult, Outcome, run_guest
from rsd.progress import Progress
from rsd.written import copy_media, shrink_media

# Of the guest's clock and of ours; a file system that hangs must not hold up the others.
VIRTUAL_LIMIT_S = 3000
WALL_LIMIT_S = 3600

# That a file system has no room for a benchmark is a result of it, and kept as others are. A file
# of this name has what the guest said.
NO_SPACE = "no-space"
OUT_OF_SPACE = re.compile(r"No space left on device|disk is full|errno = 28\b|Errcode: 28\b")

# Whether the volume was steady when its aging ended (steadiness.py), in the directory of an aged
# volume and in that of each benchmark on it
AGED = "aged.json"
# The kind of the cache's entries that are aged volumes
AGED_VOLUME = "aged"

# What is measured in the quick and the default comparison is measured twice, to show that the
# runs are identical; the rest of the full one once.
REPETITIONS = {Level.QUICK: 2, Level.DEFAULT: 2, Level.FULL: 1}


class _OutOfSpace(Exception):
    """The file system has no room for what it is to hold."""


@dataclass(frozen=True)
class StackPlan:
    """One benchmark on one stack, once. `keep`: its result is left in, or taken from, the cache.

    `cold`: the benchmark's guest boots, and does not go on from the saved one.
    """

    system: str
    number: int
    benchmark: Benchmark
    directory: Path
    keep: bool
    cold: bool = False

    @property
    def cells(self) -> tuple[Benchmark, ...]:
        """What the run has figures of."""
        return (self.benchmark,)

    @property
    def title(self) -> str:
        """For progress lines."""
        cold = ", cold" if self.cold else ""
        return f"{self.system}, {self.benchmark.name}, run {self.number}{cold}"


def stack_plans(
    chosen: Sequence[tuple[str, Benchmark]], raw: Path, *, keep: bool, cold: bool = False
) -> list[StackPlan]:
    """The guests to start. Neighbours differ in their stack, so that each ages its own first.

    `cold`: on drives of ours there is a second run, and it boots.
    """

    def boots(system: str) -> bool:
        return cold and STACKS[system].ours

    def rounds(system: str, benchmark: Benchmark) -> int:
        usual = REPETITIONS[max(STACKS[system].level, benchmark.level)]
        return 2 if boots(system) else usual

    return [
        StackPlan(
            system,
            number,
            benchmark,
            raw / f"{system}.{number}",
            keep,
            boots(system) and number > 1,
        )
        for number in range(1, max(REPETITIONS.values()) + 1)
        for system, benchmark in chosen
        if number <= rounds(system, benchmark)
    ]


def agings(
    plans: Sequence[StackPlan], built: Artifacts, cache: Cache, progress: Progress
) -> list[Callable[[], None]]:
    """Each ages a volume that these plans need. Done before them, so that no two plans of one
    volume come at the same time, of which one could only wait for the other's aging.

    What fails is left to the plan that needs the volume, which fails by it, too.
    """
    needed = {
        (plan.system, plan.benchmark.scale)
        for plan in plans
        if not (plan.keep and cache.find("cell", cell_key(plan, built)))
    }

    def age(system: str, scale: Scale) -> None:
        with contextlib.suppress(RsdError, OSError, subprocess.CalledProcessError):
            aged_volume(system, scale, built, cache, progress)

    return [
        functools.partial(age, system, scale)
        for system, scale in sorted(needed, key=lambda volume: (volume[0], volume[1].name))
    ]


def run_stack(plan: StackPlan, built: Artifacts, cache: Cache, progress: Progress) -> Run:
    """Age the volume if there is none, measure the benchmark. A failure is in the run."""
    run = Run(plan)
    name = plan.benchmark.name
    raw = plan.directory / name
    try:
        work = unit(plan, built, cache, progress)
        if plan.keep:
            shutil.copytree(work.run(cache), raw, dirs_exist_ok=True)
        else:
            raw.mkdir(parents=True, exist_ok=True)
            work.build(raw)
        if (raw / NO_SPACE).exists():
            raise _OutOfSpace
        result, _ = kept.read(raw)
        run.results.append(result)
        run.wall_s[name] = result.wall_s
        if aged := steadiness.read(raw / AGED):
            run.aged[plan.benchmark.scale.name] = aged
        run.figures[name] = stack_figures(STACKS[plan.system], plan.benchmark, raw / kept.RAW)
    except _OutOfSpace:
        run.figures[name] = [Figure("no_space", 1, "", "count")]
        progress.say(f"{plan.title}: the file system ran out of space")
    except (RsdError, OSError, subprocess.CalledProcessError) as error:
        run.failures[name] = words(error)
        progress.say(f"FAILED: {plan.title}: {words(error)}")
    return run


def unit(plan: StackPlan, built: Artifacts, cache: Cache, progress: Progress) -> Unit:
    """Its entry has the raw output of the plan's guest. Or NO_SPACE, also of the aging."""

    def build(target: Path) -> None:
        aged = aged_volume(plan.system, plan.benchmark.scale, built, cache, progress)
        if (aged / NO_SPACE).exists():
            shutil.copy2(aged / NO_SPACE, target / NO_SPACE)
        else:
            _measure(plan, aged / "media", target, built, cache, progress)
            if (aged / AGED).exists():
                shutil.copy2(aged / AGED, target / AGED)

    return Unit(plan.title, "cell", cell_key(plan, built), build)


def volume_key(system: str, scale: Scale, built: Artifacts) -> str:
    """Everything that decides an aged volume."""
    stack = STACKS[system]
    return hash_inputs(
        built.deciding(rfs=stack.rfs),
        dataclasses.asdict(stack.system),
        stack.properties(scale),
        stack.raw_bytes(scale),
        scale.memory_mib,
        GUEST_SPEED_SHIFT,
        stack_script.age(stack, scale),
    )


def cell_key(plan: StackPlan, built: Artifacts) -> str:
    """Everything that decides the result of a plan."""
    script = stack_script.measure(STACKS[plan.system], plan.benchmark)
    inputs = [hash_tree(plan.benchmark.inputs)] if plan.benchmark.inputs else []
    return hash_inputs(
        volume_key(plan.system, plan.benchmark.scale, built),
        script,
        plan.number,
        plan.cold,
        kept.FORMAT,
        *inputs,
    )


def aged_volume(
    system: str, scale: Scale, built: Artifacts, cache: Cache, progress: Progress
) -> Path:
    """A directory of the cache with `media`: the stack's drive, aged. Or with NO_SPACE."""
    stack = STACKS[system]
    script = stack_script.age(stack, scale)

    def build(partial: Path) -> None:
        media = partial / "media"
        with progress.step(f"{system}: aging {scale.name}'s drive"):
            if not stack.ours:
                with media.open("xb") as stream:
                    stream.truncate(stack.raw_bytes(scale))
            result = run_guest(
                stack_job(stack, scale, script, media, partial / kept.RAW), built, cache=cache
            )
            if ran_out_of_space(result, partial):
                media.unlink()
                return
            if why := guest_failure(result):
                raise RsdError(f"{system}: aging: {why}")
            shrink_media(media)
            if stack.ours:
                readings = partial / kept.RAW / Path(stack_script.READINGS).name
                verdict = steadiness.of_volume(readings, scale.raw_mib * MIB)
                (partial / AGED).write_text(json.dumps(verdict.to_json()) + "\n")
            kept.write(result, partial, system=system, scale=scale.name)

    return cache.entry(AGED_VOLUME, volume_key(system, scale, built), build)


def ran_out_of_space(result: GuestResult, directory: Path) -> bool:
    """Whether that is how the script ended; then `directory` says so in NO_SPACE."""
    found = result.outcome is Outcome.EXITED and result.status == stack_script.FAILED
    if found and (found := bool(OUT_OF_SPACE.search(result.output))):
        (directory / NO_SPACE).write_text(result.output)
    return found


def stack_job(
    stack: Stack, scale: Scale, script: str, media: Path, out: Path, trace: Path | None = None
) -> GuestJob:
    """A guest that runs `script` with the stack's drive, whose data is in `media`."""
    return GuestJob(
        system=stack.drive,
        script=script,
        media=media,
        rfs=stack.rfs,
        out_dir=out,
        memory_mib=scale.memory_mib,
        namespace=stack.properties(scale) | ({"trace": str(trace)} if trace else {}),
        virtual_limit_s=VIRTUAL_LIMIT_S,
        wall_limit_s=WALL_LIMIT_S,
        waits=not stack.ours,
    )


def _measure(
    plan: StackPlan,
    aged: Path,
    target: Path,
    built: Artifacts,
    cache: Cache,
    progress: Progress,
) -> None:
    stack = STACKS[plan.system]
    script = stack_script.measure(stack, plan.benchmark)
    with progress.step(plan.title), cache.scratch("stack") as scratch:
        media = scratch / "media"
        copy_media(aged, media)
        trace = scratch / "trace" if stack.ours else None
        job = stack_job(stack, plan.benchmark.scale, script, media, target / kept.RAW, trace)
        job = dataclasses.replace(job, cold=plan.cold, inputs=plan.benchmark.inputs)
        result = run_guest(job, built, cache=cache)
        if ran_out_of_space(result, target):
            return
        if why := guest_failure(result):
            raise BadOutput(why)
        if trace:
            drive_latency.write(trace, target / kept.RAW)
    (target / "script").write_text(script)
    kept.write(result, target, system=plan.system, benchmark=plan.benchmark.name)
