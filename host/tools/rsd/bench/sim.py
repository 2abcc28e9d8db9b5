# SPDX-License-Identifier: GPL-2.0-or-later
"""rsdsim under garbage collection: speed and memory, by what it says of itself."""

import json
import resource
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rsd import sim
from rsd.bench.base import Context, Row
from rsd.errors import RsdError

# What the core did before it was made faster, on hosts like this one
FIRST = 3_600_000
FIRST_REQUESTS = 537_000
MUST_PAGE_OPERATIONS = 10 * FIRST
MUST_REQUESTS = 3 * FIRST_REQUESTS
MUST_OPEN_S = 5
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
# 16 TB that the host sees, in the geometry of tlc-2024: the layer, its settings, its memory in MiB
HUGE = (
    ("zones (ftl=rsd)", ("ftl=rsd", "blocks=2808"), 1024),
    ("a cached map (ftl=dftl)", ("ftl=dftl", "blocks=2880", "over-provision=5"), 4096),
)
HUGE_WRITES = 10_000_000
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
        mixed = run(*PLANES, *OCCUPIED_75, "--reads", "50")
        tight = run(*PLANES, *OCCUPIED_100)
    with context.progress.step("sim: memory"):
        fresh = run(*LARGE, "--requests", "0")
        full = run(*LARGE, "--requests", "0", "--precondition", "fill")
    rows = [_speed(large), _requests("writes", planes), _requests("reads and writes", mixed)]
    rows += [_steady(tight), *_memory(fresh, full)]
    for name, settings, must_mib in HUGE:
        with context.progress.step(f"sim: 16 TB, {name}"):
            rows += _huge(run, name, settings, must_mib)
    return rows


def _huge(
    run: Callable[..., Any], name: str, settings: Sequence[str], must_mib: int
) -> Iterator[Row]:
    """A drive of 16 TB without data: how long it takes to open, and writes all over it."""
    drive = ["--preset", "tlc-2024"]
    for setting in settings:
        drive += ["--set", setting]
    before = _cpu_of_children()
    run(*drive, "--requests", "0")
    opened = _cpu_of_children() - before
    yield Row(
        f"rsdsim, 16 TB, {name}: opened",
        f"{MUST_OPEN_S} s",
        f"{opened:.2f} CPU s",
        opened,
        "s",
        "wall",
        opened <= MUST_OPEN_S,
    )
    result = run(*drive, "--requests", str(HUGE_WRITES))
    host, capacity = result["host"], result["drive"]["capacity_bytes"]
    yield Row(
        f"rsdsim, 16 TB, {name}: {HUGE_WRITES:,} uniform 4 KiB writes on a new drive",
        f"{must_mib:,} MiB of memory",
        f"{host['peak_kib'] / 1024:,.0f} MiB, {host['requests_per_cpu_s']:,.0f} requests a CPU "
        f"second ({capacity / 1e12:.1f} TB)",
        host["peak_kib"] << 10,
        "bytes",
        "wall",
        host["peak_kib"] <= must_mib << 10,
    )


def _cpu_of_children() -> float:
    """User and system time of the programs that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _difference(result: Any, names: Sequence[str]) -> int:
    counters = result["results"]["counters"]
    return sum(counters[name]["after"] - counters[name]["before"] for name in names)


def _speed(large: Any) -> Row:
    rate = _difference(large, PAGE_OPERATIONS) / large["host"]["run_cpu_s"]
    amplification = large["results"]["write_amplification"]["total"]
    return Row(
        "rsdsim, page-ftl of 64 GiB under GC, uniform 4 KiB writes",
        f"{MUST_PAGE_OPERATIONS:,} page operations a CPU second: 10 times {FIRST:,}",
        f"{rate:,.0f} page reads and programs a CPU second (write amplification "
        f"{amplification:.2f})",
        rate,
        "1/s",
        "wall",
        rate >= MUST_PAGE_OPERATIONS,
    )


def _requests(kind: str, planes: Any) -> Row:
    """The time has the preconditioning in it, the requests are those after it alone."""
    host, requests = planes["host"], planes["results"]["requests"]
    seconds = host["precondition_cpu_s"] + host["run_cpu_s"]
    rate = requests / seconds
    return Row(
        f"rsdsim, page-ftl, 8 x 4 x 2 x 2, 8 KiB {kind} at 75% occupancy, filling included",
        f"{MUST_REQUESTS:,} requests a CPU second: 3 times {FIRST_REQUESTS:,}",
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
