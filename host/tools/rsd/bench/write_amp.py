# SPDX-License-Identifier: GPL-2.0-or-later
"""Write amplification of page-ftl in rsdsim, against formulas, and in RISA's configuration."""

import json
import shlex
import subprocess
from dataclasses import dataclass, replace
from typing import Any

from rsd import sim
from rsd.bench.amplification import first_in_first_out, greedy
from rsd.bench.base import Context, Row, near
from rsd.errors import RsdError

OVER_PROVISIONS = (5, 10, 20, 28)
TOLERANCE = 0.01
BLOCKS = 4096
PAGES = 64
# One die and one frontier, for host and copies alike, which collects when the last free block but
# one is opened. What is open and what is kept free, KEPT blocks, is not in the formulas' figure.
KEPT = 2
ONE_FRONTIER = (
    *("--set", "ftl=page", "--set", "gc-frontiers=shared"),
    *("--set", "channels=1", "--set", "ways=1", "--set", f"blocks={BLOCKS}"),
    *("--set", f"spare-blocks={KEPT}", "--set", f"pages={PAGES}", "--set", "frontiers=1"),
    *("--set", "gc-trigger=0", "--set", "idle-erase=0", "--set", "wl-threshold=0"),
)
# The same blocks of 64 pages of 4 KiB, which are read and programmed four at a time. A drive of 5%
# is refused: each block may need three pages of filler.
ROWS = ("--set", "planes=2", "--set", "page-size=8K", "--set", f"pages={PAGES // 4}")
RISA = ("--preset", "risa", "--set", "ftl=page", "--set", "gc-unit=all")
# Filled, overwritten so many times, then measured over four times the capacity.
OVERWRITES = 8
UNIFORM = ("--pattern", "uniform", "--precondition", str(OVERWRITES))


@dataclass(frozen=True)
class Case:
    """One run of rsdsim. `policy` is one of greedy and fifo, or, in RISA's configuration, where
    copies go: own and shared. `flash` says what its rows are."""

    policy: str
    percent: int
    arguments: tuple[str, ...]
    flash: str = ""


def _case(policy: str, percent: int) -> Case:
    over_provision = ("--set", f"over-provision={percent}")
    if policy in ("own", "shared"):
        drive = (*RISA, "--set", f"gc-frontiers={policy}", *over_provision)
        drive += ("--depth", "64", "--requests", "2M")
    else:
        drive = (*ONE_FRONTIER, "--set", f"gc-policy={policy}", *over_provision)
        drive += ("--depth", "1", "--requests", str(4 * BLOCKS * PAGES))
    return Case(policy, percent, (*drive, *UNIFORM))


CASES = tuple(
    _case(policy, percent)
    for policy in ("greedy", "fifo", "own", "shared")
    for percent in OVER_PROVISIONS
)
CASES += tuple(
    replace(case, arguments=(*case.arguments, *ROWS), flash=", two planes of 8 KiB pages")
    for case in CASES
    if case.policy == "greedy" and case.percent > 5
)


def write_amp(context: Context) -> list[Row]:
    """Greedy and FIFO choice with one frontier, then RISA's drive, each at its real figure."""
    program = sim.ensure(context.cache, context.progress)
    rows = []
    for case in CASES:
        with context.progress.step(f"write-amp: {case.policy}, {case.percent}%"):
            command = [str(program.path), *case.arguments, "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RsdError(f"./rsd sim {shlex.join(case.arguments)}: {done.stderr.strip()}")
            result: Any = json.loads(done.stdout)
        rows.append(_row(case, result))
    return rows


def _row(case: Case, result: Any) -> Row:
    measured = float(result["results"]["write_amplification"]["total"])
    drive = result["drive"]
    over = drive["over_provision_percent"] / 100
    if case.policy in ("own", "shared"):
        what = f"page-ftl, preset risa, greedy, 32 frontiers, copies {case.policy}"
        what += f", 32 victims at 1% free, OP {over:.2%}"
        return Row(what, "", f"{measured:.3f}", measured, "", "virtual", None)
    kept = KEPT * PAGES * 4096
    net = (drive["flash_bytes"] - kept) / drive["capacity_bytes"] - 1
    expected = greedy(net, PAGES) if case.policy == "greedy" else first_in_first_out(net)
    return Row(
        f"page-ftl, {case.policy}, one frontier, {BLOCKS:,} blocks of {PAGES}{case.flash}, "
        f"OP {over:.2%}, {net:.2%} without the open block and the free one",
        f"{expected:.3f} +- {TOLERANCE:.0%}",
        f"{measured:.3f} ({measured / expected - 1:+.2%})",
        measured,
        "",
        "virtual",
        near(measured, expected, TOLERANCE),
    )
