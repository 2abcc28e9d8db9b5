# SPDX-License-Identifier: GPL-2.0-or-later
"""Host work of the core for ten times as many requests, by a count of what it executes.

The count is of basic blocks (host/tools/rsdsim/counting), so it is the same on every machine. A
closed loop keeps its queue depth; the open loop asks for far more than the drive can do, so that
the number of commands that wait grows with the number of requests. What preconditioning took is
measured by itself and left out.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rsd.bench.base import REPOSITORY, Context, Row
from rsd.steps import run_logged

MUST_RATIO = 10.5
REQUESTS = 20_000
DRIVE = {
    "channels": "4",
    "ways": "2",
    "blocks": "64",
    "pages": "32",
    "over-provision": "40",
}
FTLS = {
    "rsd": {},
    "page": {},
    "dftl": {"map-cache": "16K"},
    "block": {},
    "fast": {},
}
LOADS = {
    "depth 32": ("--depth", "32"),
    "depth 1024": ("--depth", "1024"),
    "open loop, overloaded": ("--rate", "1000000"),
}
# Name, properties, work
WORKS: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
    ("reads and writes", {}, ("--reads", "50", "--size", "16K")),
    ("writes, buffered", {"write-buffer": "1M", "plp": "off"}, ("--size", "16K")),
    ("trims, suspend=on", {"suspend": "on"}, ("--reads", "30", "--trims", "20", "--size", "16K")),
)


@dataclass(frozen=True)
class Case:
    """A drive under a load."""

    ftl: str
    load: str
    work: str
    arguments: tuple[str, ...]


def cases() -> Iterator[Case]:
    """Every translation layer under every load; trims only where there are any."""
    for ftl, own in FTLS.items():
        for load, asked in LOADS.items():
            for work, props, what in WORKS:
                if ftl == "rsd" and "--trims" in what:
                    continue
                settings = {"ftl": ftl} | DRIVE | own | props
                chosen = [
                    part for name in settings for part in ("--set", f"{name}={settings[name]}")
                ]
                yield Case(ftl, load, work, (*chosen, *asked, *what, "--precondition", "8"))


def build(directory: Path) -> tuple[str, ...]:
    """The command that makes rsdsim-counting in a directory."""
    source = REPOSITORY / "host" / "tools" / "rsdsim"
    return ("make", "-j2", "-C", str(source), f"BUILD={directory}", "counting")


def count(program: Path, case: Case, requests: int) -> int:
    """Basic blocks of the core that so many requests take, preconditioning included."""
    with tempfile.NamedTemporaryFile(prefix="rsd-count-") as file:
        subprocess.run(
            [program, *case.arguments, "--requests", str(requests)],
            env=os.environ | {"RSDSIM_COUNT": file.name},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        return int(Path(file.name).read_text())


def ratio(program: Path, case: Case, requests: int) -> tuple[float, float]:
    """How many times the work ten times the requests take, and how much one takes then."""
    before = count(program, case, 1)
    few, many = (count(program, case, n) - before for n in (requests, 10 * requests))
    return many / few, many / 10 / requests


def linear(context: Context) -> list[Row]:
    """A row for every translation layer and load: the worst of its works."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="rsd-bench-") as directory:
        program = Path(directory) / "rsdsim-counting"
        with context.progress.step("linear: build") as step:
            run_logged(
                build(Path(directory)),
                step=step,
                log=context.cache.log("bench-linear"),
                hint="the first 'error:' in the log is the one to look at",
            )
        worst: dict[tuple[str, str], tuple[float, float, str]] = {}
        with context.progress.step("linear: run") as step:
            for case in cases():
                step.detail(f"ftl={case.ftl}, {case.load}, {case.work}")
                times, each = ratio(program, case, REQUESTS)
                key = (case.ftl, case.load)
                worst[key] = max(worst.get(key, (0.0, 0.0, "")), (times, each, case.work))
    for (ftl, load), (times, each, work) in worst.items():
        rows.append(
            Row(
                f"host work, {10 * REQUESTS:,} requests beside {REQUESTS:,}, ftl={ftl}, {load}",
                f"{MUST_RATIO} times at most",
                f"{times:.2f} times ({work}: {each:,.0f} basic blocks a request)",
                times,
                "",
                "none",
                times <= MUST_RATIO,
            )
        )
    return rows
