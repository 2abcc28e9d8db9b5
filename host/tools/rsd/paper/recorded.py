# SPDX-License-Identifier: GPL-2.0-or-later
"""Work on a file system in a guest, recorded at the drive and replayed on other drives (SFS 4.4).

A volume is filled to a share of what its file system offers: a file that stays, as SFS's dummy
blocks, and one that is overwritten. The overwriting, the same blocks in the same order for each
file system, goes on for 20/32 of the flash before it counts and 8/32 while it does: 20 and 8 GB on
SFS's 32. Both parts are recorded by the drive. rsdsim then replays them on SFS's simulated flash
(512 KB blocks of 4 KB pages, 10% beyond what the host sees), the second counts.

From RFS, which writes zones, a zone's reset comes to a drive without zones as a trim.
"""

import dataclasses
import functools
import json
import math
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd import sim
from rsd.bench.base import Context
from rsd.cache import hash_file, hash_inputs
from rsd.cluster.unit import Unit
from rsd.compare import kept, stack_script
from rsd.compare.benchmarks import Benchmark, Output
from rsd.compare.cells import MIB, Level
from rsd.compare.run import guest_failure
from rsd.compare.stack_figures import run_seconds
from rsd.compare.stack_run import NO_SPACE, ran_out_of_space, stack_job
from rsd.compare.stacks import EXT4_NODISCARD, REDO, RFS, RFS_ONE_GROUP, FileSystem, Stack
from rsd.errors import RsdError
from rsd.machine import run_guest
from rsd.paper.rounds import blocks_taken
from rsd.parallel import run_all

BLOCK = 4096
# Blocks of all the flash
FLASH = REDO.raw_mib * MIB // BLOCK
# SFS does not say how large its workloads' files are: as in its cleaning experiments (sfs.py)
HOT = 12
# Of the flash: written before it counts, and while it does
AGE, MEASURE = 20 / 32, 8 / 32
# Of the volume, what may be dirty in the page cache (sfs.py)
DIRTY = 0.00125

# 512 MiB beyond 10%, which is RSD's capacity, too
_FLASH = {"blocks": "278", "over-provision": "10"}
FTLS = ("page", "fast")
WORKS = ("zipf", "uniform", "oltp")
REWRITE = Path(__file__).with_name("rewrite.py")


def _btrfs(options: str) -> FileSystem:
    return FileSystem(
        "mkfs.btrfs -q -f -d single -m single $drive",
        f"mount -t btrfs -o ssd,nodiscard{options} $drive",
    )


def _page(file_system: FileSystem) -> Stack:
    return Stack(file_system, "page-ftl", Level.FULL, "", namespace=_FLASH)


SYSTEMS = {
    "SFS": Stack(RFS, "rsd", Level.FULL, ""),
    "LFS-CB": Stack(RFS_ONE_GROUP, "rsd", Level.FULL, ""),
    "ext4": _page(EXT4_NODISCARD),
    "btrfs-nodatacow": _page(_btrfs(",nodatacow")),
    "btrfs": _page(_btrfs("")),
}


@dataclass(frozen=True)
class Replayed:
    """What a drive did in the part that counts: pages it programmed a page written, blocks taken
    into use."""

    amplification: float
    taken: int


@dataclass(frozen=True)
class Recorded:
    """A workload on a file system. `seconds` are the guest's; `drives` by FTL.

    `no_space`: the file system had no room for it.
    """

    seconds: float
    drives: dict[str, Replayed]
    no_space: bool = False


@dataclass(frozen=True)
class Plan:
    """What is run: a workload on a file system."""

    system: str
    work: str
    fill: int

    @property
    def title(self) -> str:
        """For progress lines."""
        return f"{self.system}, {self.work}, {self.fill}% full"


def hot_blocks() -> int:
    """Blocks of the file that is overwritten, as sfssim rounds them."""
    return math.ceil(FLASH * HOT / 100)


def plans(systems: Iterable[str], works: Iterable[str], fill: int) -> list[Plan]:
    """Each workload on each system, on a volume filled to `fill` percent."""
    return [Plan(system, work, fill) for work in works for system in systems]


def measure(todo: Sequence[Plan], context: Context) -> dict[tuple[str, str], Recorded]:
    """By workload and system, as many at once as there are cores. Raises RsdError."""
    # Both are built before anything that would build them twice at once.
    sim.ensure(context.cache, context.progress)
    sim.ensure_sfssim(context.cache, context.progress)
    found = run_all([functools.partial(_measure, plan, context) for plan in todo])
    return {(plan.work, plan.system): recorded for plan, recorded in zip(todo, found, strict=True)}


def _measure(plan: Plan, context: Context) -> Recorded:
    recorded = unit(plan, context).run(context.cache)
    if (recorded / NO_SPACE).exists():
        return Recorded(0, {}, no_space=True)
    drives = {ftl: _replay(recorded, ftl, plan, context) for ftl in FTLS}
    return Recorded(run_seconds(recorded / "2"), drives)


def unit(plan: Plan, context: Context) -> Unit:
    """Its entry has both parts: guests' output, and traces. Or NO_SPACE."""
    cache, built, stack = context.cache, context.built, SYSTEMS[plan.system]
    aging = int(FLASH * AGE)
    writes = aging + int(FLASH * MEASURE)
    rewrite = "python3 /in/rewrite.py /vol/hot /in/list"
    limit = f"echo {int(REDO.raw_mib * MIB * DIRTY)} >/proc/sys/vm/dirty_bytes\n"
    fill = (
        limit
        + "offered=$(df -k --output=avail /vol | tail -1)\n"
        + f"cold=$((offered * 1024 * {plan.fill} / 100 - {hot_blocks() * BLOCK}))\n"
        + f"must dd if=/dev/zero of=/vol/cold bs={MIB} count=$cold iflag=count_bytes\n"
        + f"must dd if=/dev/zero of=/vol/hot bs={BLOCK} count={hot_blocks()}\n"
        + f"sync\nmust {rewrite} 0 {aging}\n"
    )
    work = Benchmark(
        name=plan.work,
        title=plan.title,
        scale=REDO,
        level=Level.FULL,
        output=Output.DESCRIBED,
        run=f"{rewrite} {aging} {writes}",
        work=writes - aging,
        unit="writes",
        live_mib=0,
    )
    scripts = (stack_script.make(stack, fill), stack_script.measure(stack, work, limit))
    program = sim.ensure_sfssim(cache, context.progress)
    key = hash_inputs(
        built.deciding(rfs=stack.rfs),
        dataclasses.asdict(stack.system),
        stack.properties(REDO),
        scripts,
        plan.work,
        program.parent.name,
        [hash_file(path) for path in (Path(__file__), REWRITE)],
        kept.FORMAT,
    )

    def build(target: Path) -> None:
        inputs = target / "in"
        inputs.mkdir()
        workload(program, plan.work, inputs / "list", writes)
        (inputs / REWRITE.name).write_bytes(REWRITE.read_bytes())
        with context.progress.step(plan.title), cache.scratch("recorded") as scratch:
            for part, script in enumerate(scripts, 1):
                raw = target / str(part)
                trace = target / f"trace{part}"
                job = stack_job(stack, REDO, script, scratch / "media", raw, trace)
                result = run_guest(dataclasses.replace(job, inputs=inputs), built, cache=cache)
                if ran_out_of_space(result, target):
                    return
                if why := guest_failure(result):
                    raise RsdError(f"{plan.title}, part {part}: {why}")

    return Unit(plan.title, "recorded", key, build)


def workload(program: Path, work: str, target: Path, writes: int) -> None:
    """The blocks of sfssim's workload, in a file as rewrite.py wants it. Raises RsdError."""
    # The simulator's volume is the flash; without a page cache its trace is the work itself.
    segments, blocks = 1024, FLASH // 1024
    words = [f"segments={segments}", f"blocks={blocks}", "fill=85", f"set={HOT}", "cache=0"]
    words += [f"work={work}", "theta=0.99", "seed=1", f"age={AGE}", f"writes={MEASURE}"]
    done = subprocess.run(
        [program, *words, f"trace={target}"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RsdError(f"sfssim {' '.join(words)}: {done.stderr.strip()}")
    if (size := target.stat().st_size) < writes * 4:
        raise RsdError(f"sfssim {' '.join(words)}: {size // 4} writes, {writes} are needed")


def _replay(recorded: Path, ftl: str, plan: Plan, context: Context) -> Replayed:
    """What a new drive did in the second of both parts; in, or from, the cache."""
    program = sim.ensure(context.cache, context.progress)
    key = hash_inputs(program.identity, recorded.name, ftl, hash_file(Path(__file__)))

    def build(target: Path) -> None:
        with context.progress.step(f"{plan.title}, replayed on {ftl}"):
            _simulate(program.path, recorded, ftl, target)

    return _replayed(context.cache.entry("replayed", key, build))


def _replayed(directory: Path) -> Replayed:
    """What _simulate() left there says."""
    results: dict[str, Any] = json.loads((directory / "2.json").read_text())["results"]
    when = [
        {name: int(one[which]) for name, one in results["counters"].items()}
        for which in ("before", "after")
    ]
    return Replayed(float(results["write_amplification"]["total"]), blocks_taken(*when))


def _simulate(program: Path, recorded: Path, ftl: str, target: Path) -> None:
    """Both parts, one after the other on a drive; a JSON of each."""
    settings = {**_FLASH, "ftl": ftl}
    drive = ["--preset=redo", *(f"--set={name}={value}" for name, value in settings.items())]
    media = target / "media"
    parts = [[*drive, f"--age={media}", "--precondition=none"], [f"--media={media}"]]
    for part, options in enumerate(parts, 1):
        words = [*options, f"--trace={recorded}/trace{part}", "--json"]
        words += [f"--output={target}/{part}.json"]
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RsdError(f"rsdsim {' '.join(words)}: {done.stderr.strip()}")
    media.unlink()
