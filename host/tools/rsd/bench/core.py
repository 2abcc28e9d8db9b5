# SPDX-License-Identifier: GPL-2.0-or-later
"""The drive's core without QEMU: its own benchmark program, built from this repository."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from rsd.bench.base import REPOSITORY, Context, Row
from rsd.steps import run_logged

MUST_PAGES_PER_S = 2_000_000
MUST_RSS_BYTES = 256 << 20
SECONDS = "2"
TERABYTE = ("--channels", "8", "--ways", "4", "--blocks", "65536", "--pages", "128")


def core(context: Context) -> list[Row]:
    """Speed, by the CPU time that the program had, and memory."""
    with tempfile.TemporaryDirectory(prefix="rsd-bench-") as directory:
        program = Path(directory) / "bench_core"
        with context.progress.step("core: build") as step:
            run_logged(
                ["make", "-C", REPOSITORY / "tests" / "unit", f"BUILD={directory}", program],
                step=step,
                log=context.cache.log("bench-core"),
                hint="the first 'error:' in the log is the one to look at",
            )
        with context.progress.step("core: run"):
            speed = _run(program, "--seconds", SECONDS)
            large = _run(program, "--seconds", "0.2", *TERABYTE)
    rows = []
    for kind in ("write", "read"):
        pages = speed[kind]["pages_per_cpu_s"]
        rows.append(
            Row(
                f"core alone, sequential {kind}s, timing on, no payload",
                f"{MUST_PAGES_PER_S:,} pages a CPU second or more, aiming at 5,000,000",
                f"{pages:,.0f} pages a CPU second",
                pages,
                "1/s",
                "wall",
                pages >= MUST_PAGES_PER_S,
            )
        )
    rss = large["fresh_rss_kib"] << 10
    rows.append(
        Row(
            "core alone, memory of a fresh 1 TB drive",
            "under 256 MB",
            f"{rss / (1 << 20):.1f} MB",
            rss,
            "bytes",
            "wall",
            rss < MUST_RSS_BYTES,
        )
    )
    return rows


def _run(program: Path, *arguments: str) -> Any:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
