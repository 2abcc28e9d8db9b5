# SPDX-License-Identifier: GPL-2.0-or-later
"""Is what rsdsim calls steady? Random settings, each against a run ten times as long.

Small drives of all translation layers that collect or merge, under random work. A run becomes
steady, and then goes on for as many requests as that took; a second one is the same, and goes on
for ten times as many. Of both, the write amplification after the preconditioning is compared.

Static wear levelling begins when erase counts differ by wl-threshold, which may be long after the
amplification has become steady, and costs programs from then on. Where rsdsim says that it is still
to come, a setting is not counted among those called steady; how far off it is then has a row. So
that these are tried as well, all settings are run a second time without levelling.

Not among the settings: zones, which copy nothing by themselves; gc-frontiers=shared and
gc-unit=all; write buffers; planes and pages of more than 4 KiB; an open loop; drives of more than
48 MiB.
"""

import json
import os
import random
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd import sim
from rsd.bench.base import Context, Row
from rsd.errors import RsdError

SETTINGS = 200
SEED = 1
LONGER = 10
NEAR = 0.02
FAR = 0.05
MUST_BE_NEAR = 0.95
# Pages of flash: so few that runs are long beside what there is to fill, and all take minutes.
FEWEST, MOST = 4096, 12288


@dataclass(frozen=True)
class Trial:
    """What became of one setting."""

    arguments: tuple[str, ...]
    steady: bool
    levelling_ahead: bool
    capacities: int
    short: float
    long: float

    @property
    def off(self) -> float:
        """How far the short run's figure is from that of the long one, a part of it."""
        return abs(self.short / self.long - 1)


def settings(count: int, seed: int = SEED) -> list[tuple[str, ...]]:
    """Options of rsdsim, always the same."""
    numbers = random.Random(seed)
    return [_setting(numbers) for _ in range(count)]


def _setting(numbers: random.Random) -> tuple[str, ...]:
    pages = 0
    while not FEWEST <= pages <= MOST:
        shape = {
            "channels": numbers.choice((1, 2, 4, 8)),
            "ways": numbers.choice((1, 2, 4)),
            "blocks": numbers.choice((32, 48, 64, 96)),
            "pages": numbers.choice((32, 64, 128)),
        }
        pages = shape["channels"] * shape["ways"] * shape["blocks"] * shape["pages"]
    ftl = numbers.choices(("page", "dftl", "block", "fast"), (7, 1, 1, 1))[0]
    # Drives as small as these have no room for map pages with less.
    least = 28 if ftl == "dftl" else 7
    spare = [percent for percent in (7, 10, 15, 20, 28, 40, 60, 100, 150) if percent >= least]
    drive: dict[str, int | str] = {
        **shape,
        "ftl": ftl,
        "over-provision": numbers.choice(spare),
        "gc-policy": numbers.choice(("greedy", "greedy", "cost-benefit", "fifo")),
        "map-cache": numbers.choice((2048, 8192, 32768)),
    }
    words = [word for name, value in drive.items() for word in ("--set", f"{name}={value}")]
    patterns = (
        "uniform",
        f"zipf={numbers.uniform(0.2, 1.3):.2f}",
        f"hotcold={numbers.randint(50, 99)}/{numbers.randint(1, 50)}",
        numbers.choice(("sequential", "hotcold=90/10", "hotcold=80/20", "zipf=0.99")),
    )
    words += ["--pattern", numbers.choice(patterns)]
    # One page at a time makes a block map copy a block each time, a hundred times the work.
    sizes = ("16K", "64K") if ftl == "block" else ("4K", "4K", "4K", "8K", "16K", "64K")
    words += ["--size", numbers.choice(sizes)]
    words += ["--reads", str(numbers.choice((0, 0, 0, 20, 50)))]
    words += ["--trims", str(numbers.choice((0, 0, 0, 1, 5, 20)))]
    words += ["--depth", str(numbers.choice((1, 8, 32, 128)))]
    return (*words, "--seed", str(numbers.randrange(1, 1_000_000)))


def attempt(program: Path, arguments: tuple[str, ...]) -> Trial:
    """The short and the long run of one setting."""
    start = _run(program, arguments, 0)["precondition"]
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    blocks = int(options["--size"].removesuffix("K")) // 4
    writes = 1 - (int(options["--reads"]) + int(options["--trims"])) / 100
    requests = round(start["written_blocks"] / blocks / writes)
    short, long = (_run(program, arguments, requests * times) for times in (1, LONGER))
    return Trial(
        arguments,
        start["steady"],
        start.get("levelling") == "ahead",
        start["capacities"],
        *(float(run["results"]["write_amplification"]["total"]) for run in (short, long)),
    )


def _run(program: Path, arguments: tuple[str, ...], requests: int) -> Any:
    command = [program, *arguments, "--precondition", "steady", "--requests", str(requests)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RsdError(f"./rsd sim {shlex.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def rows(trials: list[Trial], unlevelled: list[Trial]) -> list[Row]:
    """The figures of some trials, and of the same settings without static wear levelling."""
    ahead = [trial for trial in trials if trial.levelling_ahead]
    furthest = max((trial.off for trial in ahead), default=0.0)
    levelling = Row(
        "called steady but for wear levelling",
        "",
        f"{len(ahead)}, at most {furthest:.1%} off",
        len(ahead),
        "settings",
        "virtual",
        None,
    )
    called, *judged = _judged("", trials)
    return [called, levelling, *judged, *_judged("wl-threshold=0: ", unlevelled)]


def _judged(which: str, trials: list[Trial]) -> list[Row]:
    """How many are called steady, and how near these are to the longer runs."""
    steady = [trial for trial in trials if trial.steady and not trial.levelling_ahead]
    near = sum(trial.off <= NEAR for trial in steady)
    far = sum(trial.off > FAR for trial in steady)
    worst = max(steady, key=lambda trial: trial.off)
    lengths = sorted(trial.capacities for trial in steady)
    share = near / len(steady)
    return [
        Row(
            f"{which}settings called steady, of {len(trials)}",
            "",
            f"{len(steady)}, after {lengths[0]} to {lengths[-1]} capacities, "
            f"half of them after {lengths[len(lengths) // 2]} or less",
            len(steady),
            "settings",
            "virtual",
            None,
        ),
        Row(
            f"{which}of those, within {NEAR:.0%} of a run {LONGER} times as long",
            f"{MUST_BE_NEAR:.0%}",
            f"{share:.1%} ({near} of {len(steady)})",
            share,
            "",
            "virtual",
            share >= MUST_BE_NEAR,
        ),
        Row(
            f"{which}of those, more than {FAR:.0%} off",
            "0",
            f"{far}; the worst is {worst.off:.1%} off: {shlex.join(worst.arguments)}",
            far,
            "settings",
            "virtual",
            far == 0,
        ),
    ]


def steady(context: Context) -> list[Row]:
    """All of them, on all cores."""
    program = sim.ensure(context.cache, context.progress).path
    chosen = settings(SETTINGS)
    chosen += [("--set", "wl-threshold=0", *arguments) for arguments in chosen]
    with (
        context.progress.step(f"steady: {SETTINGS} settings, with and without wear levelling"),
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        trials = list(pool.map(lambda one: attempt(program, one), chosen))
    return rows(trials[:SETTINGS], trials[SETTINGS:])
