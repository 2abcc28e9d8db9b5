# SPDX-License-Identifier: GPL-2.0-or-later
"""Write amplification of page-ftl in rsdsim, against formulas, and in RISA's configuration."""

import json
import shlex
import subprocess
from dataclasses import dataclass
from typing import Any

from rsd import sim
from rsd.bench.amplification import first_in_first_out, greedy
from rsd.bench.base import Context, Row, near
from rsd.errors import RsdError

OVER_PROVISIONS = (5, 10, 20, 28)
TOLERANCE = 0.02
BLOCKS = 4096
PAGES = 64
# One die and one frontier, which collects when the last free block but one is opened. What is
# open and what is kept free are the two spare blocks, so that over-provision is the net one.
ONE_FRONTIER = (
    *("--set", "ftl=page"),
    *("--set", "channels=1", "--set", "ways=1", "--set", f"blocks={BLOCKS}"),
    *("--set", "spare-blocks=2", "--set", f"pages={PAGES}", "--set", "frontiers=1"),
    *("--set", "gc-trigger=0", "--set", "idle-erase=0", "--set", "wl-threshold=0"),
)
RISA = ("--preset", "risa", "--set", "ftl=page", "--set", "gc-unit=all")
# Filled, overwritten so many times, then measured over four times the capacity.
OVERWRITES = 8
UNIFORM = ("--pattern", "uniform", "--precondition", str(OVERWRITES))


@dataclass(frozen=True)
class Case:
    """One run of rsdsim. `policy` is one of greedy and fifo, or RISA for its configuration."""

    policy: str
    percent: int
    arguments: tuple[str, ...]

    @property
    def expected(self) -> float | None:
        """What the formula gives, where there is one."""
        if self.policy == "greedy":
            return greedy(self.percent / 100, PAGES)
        return first_in_first_out(self.percent / 100) if self.policy == "fifo" else None


def _case(policy: str, percent: int) -> Case:
    over_provision = ("--set", f"over-provision={percent}")
    if policy == "RISA":
        drive = (*RISA, *over_provision, "--depth", "64", "--requests", "2M")
    else:
        drive = (*ONE_FRONTIER, "--set", f"gc-policy={policy}", *over_provision)
        drive += ("--depth", "1", "--requests", str(4 * BLOCKS * PAGES))
    return Case(policy, percent, (*drive, *UNIFORM))


CASES = tuple(
    _case(policy, percent) for policy in ("greedy", "fifo", "RISA") for percent in OVER_PROVISIONS
)


def write_amp(context: Context) -> list[Row]:
    """Greedy and FIFO choice with one frontier, then RISA's drive."""
    program = sim.ensure(context.cache, context.progress)
    rows = []
    for case in CASES:
        with context.progress.step(f"write-amp: {case.policy}, {case.percent}%"):
            command = [str(program.path), *case.arguments, "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RsdError(f"./rsd sim {shlex.join(case.arguments)}: {done.stderr.strip()}")
            result: Any = json.loads(done.stdout)
        measured = float(result["results"]["write_amplification"]["total"])
        rows.append(_row(case.policy, case.percent, measured, case.expected))
    return rows


def _row(policy: str, percent: int, measured: float, expected: float | None) -> Row:
    if expected is None:
        what = f"page-ftl, preset risa, greedy, 32 frontiers, 32 victims at 1% free, OP {percent}%"
        must, figure = "", f"{measured:.3f}"
    else:
        what = f"page-ftl, {policy}, one frontier, {BLOCKS:,} blocks of {PAGES}, net OP {percent}%"
        must = f"{expected:.3f} +- {TOLERANCE:.0%}"
        figure = f"{measured:.3f} ({measured / expected - 1:+.2%})"
    passed = None if expected is None else near(measured, expected, TOLERANCE)
    return Row(what, must, figure, measured, "", "virtual", passed)
