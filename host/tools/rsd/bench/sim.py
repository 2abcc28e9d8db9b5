# SPDX-License-Identifier: GPL-2.0-or-later
"""rsdsim under garbage collection: speed and memory, by what it says of itself."""

import json
import shlex
import subprocess
from collections.abc import Sequence
from typing import Any

from rsd import sim
from rsd.bench.base import Context, Row
from rsd.errors import RsdError

MUST_PAGE_OPERATIONS = 2_000_000
MUST_REQUESTS = 350_000
PAGES_64_GIB = 64 << 18

# 64 GiB of flash; the whole once, then a tenth of it at random, and it is under GC.
LARGE = (
    *("--set", "channels=8", "--set", "ways=4", "--set", "blocks=4096", "--set", "pages=128"),
    *("--set", "ftl=page", "--pattern", "uniform"),
)
UNDER_GC = ("--precondition", "0.1", "--requests", "2M", "--depth", "64")
# 8 channels x 4 chips x 2 dies x 2 planes, 4 GiB of flash; page-ftl knows no planes, so each
# plane is a way. MQSim's defaults are 7% of over-provisioning and an occupancy of 75%: what
# is left is 43% of what is filled.
PLANES = (
    *("--set", "channels=8", "--set", "ways=16", "--set", "blocks=64"),
    *("--set", "ftl=page", "--pattern", "uniform", "--size", "8K"),
    *("--requests", "350000", "--depth", "16"),
)
OCCUPIED_75 = ("--set", "over-provision=43", "--precondition", "fill")
OCCUPIED_100 = ("--set", "over-provision=7", "--precondition", "1")
PAGE_OPERATIONS = tuple(
    f"{kind}_{cause}"
    for kind in ("read", "prog")
    for cause in ("host", "clean", "merge", "wear", "map", "pad")
)


def simulator(context: Context) -> list[Row]:
    """Figures of the issue: operations a CPU second under GC, requests, bytes a page."""
    program = sim.ensure(context.cache, context.progress)

    def run(*arguments: str) -> Any:
        done = subprocess.run(
            [program.path, *arguments, "--json", "--host-time"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RsdError(f"./rsd sim {shlex.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    with context.progress.step("sim: 64 GiB under garbage collection"):
        large = run(*LARGE, *UNDER_GC)
    with context.progress.step("sim: 8 KiB requests"):
        planes = run(*PLANES, *OCCUPIED_75)
        tight = run(*PLANES, *OCCUPIED_100)
    with context.progress.step("sim: memory"):
        fresh = run(*LARGE, "--requests", "0")
        full = run(*LARGE, "--requests", "0", "--precondition", "fill")
    return [_speed(large), _requests(planes), _steady(tight), *_memory(fresh, full)]


def _difference(result: Any, names: Sequence[str]) -> int:
    counters = result["results"]["counters"]
    return sum(counters[name]["after"] - counters[name]["before"] for name in names)


def _speed(large: Any) -> Row:
    rate = _difference(large, PAGE_OPERATIONS) / large["host"]["run_cpu_s"]
    amplification = large["results"]["write_amplification"]["total"]
    return Row(
        "rsdsim, page-ftl of 64 GiB under GC, uniform 4 KiB writes",
        f"{MUST_PAGE_OPERATIONS:,} page operations a CPU second, aiming at 5,000,000",
        f"{rate:,.0f} page reads and programs a CPU second (write amplification "
        f"{amplification:.2f})",
        rate,
        "1/s",
        "wall",
        rate >= MUST_PAGE_OPERATIONS,
    )


def _requests(planes: Any) -> Row:
    """The time has the preconditioning in it, the requests are those after it alone."""
    host, requests = planes["host"], planes["results"]["requests"]
    seconds = host["precondition_cpu_s"] + host["run_cpu_s"]
    rate = requests / seconds
    return Row(
        "rsdsim, page-ftl, 8 x 4 x 2 x 2, 8 KiB writes at 75% occupancy, filling included",
        f"{MUST_REQUESTS:,} requests a CPU second",
        f"{rate:,.0f} requests a CPU second ({requests:,} in {seconds:.2f} s)",
        rate,
        "1/s",
        "wall",
        rate >= MUST_REQUESTS,
    )


def _steady(tight: Any) -> Row:
    rate = tight["host"]["requests_per_cpu_s"]
    amplification = tight["results"]["write_amplification"]["total"]
    return Row(
        "rsdsim, the same at 100% occupancy, once overwritten, without preconditioning",
        "",
        f"{rate:,.0f} requests a CPU second (write amplification {amplification:.2f})",
        rate,
        "1/s",
        "wall",
        None,
    )


def _memory(fresh: Any, full: Any) -> list[Row]:
    start = fresh["host"]["peak_kib"] << 10
    growth = (full["host"]["peak_kib"] << 10) - start
    a_page = growth / full["precondition"]["filled_blocks"]
    return [
        Row(
            "rsdsim, page-ftl of 64 GiB, memory of a new drive",
            "maps are allocated lazily",
            f"{start / (1 << 20):.1f} MiB ({start / PAGES_64_GIB:.2f} bytes a page)",
            start,
            "bytes",
            "wall",
            None,
        ),
        Row(
            "rsdsim, page-ftl of 64 GiB, memory a written page",
            "stated",
            f"{a_page:.2f} bytes",
            a_page,
            "bytes",
            "wall",
            None,
        ),
    ]
