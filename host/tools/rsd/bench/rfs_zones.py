# SPDX-License-Identifier: GPL-2.0-or-later
"""RFS on very many zones: CPU time of what might grow with their number, and memory.

The program tests/fs/zones.c uses RFS without a kernel, on a drive in memory. It is run on a few
zones and on many, by turns, and of each figure the least counts: the host has other work.
"""

import json
import subprocess
import tempfile
from pathlib import Path

from rsd.bench.base import REPOSITORY, Context, Row
from rsd.steps import run_logged

# 64 MiB each: 16 GiB, 1 TiB and 16 TiB
FEW, SOME, MANY = 256, 16_384, 262_144
TIMES = 5
OPEN_NS = 100_000
CHECKPOINT_SHARE = 1.20
MEMORY_BYTES = 64 << 20


def rfs_zones(context: Context) -> list[Row]:
    """Rows of opening, choosing, check-points and memory."""
    with tempfile.TemporaryDirectory(prefix="rsd-bench-") as directory:
        program = Path(directory) / "zones"
        with context.progress.step("RFS without a kernel: build") as step:
            run_logged(
                ["make", "-C", REPOSITORY / "tests" / "fs", f"BUILD={directory}", program],
                step=step,
                log=context.cache.log("bench-zones"),
                hint="the first 'error:' in the log is the one to look at",
            )
        with context.progress.step(f"RFS without a kernel: {FEW:,} to {MANY:,} zones"):
            runs = [
                {zones: _run(program, f"zones={zones}") for zones in (FEW, SOME, MANY)}
                for _ in range(TIMES)
            ]
            scans = [_run(program, f"zones={MANY}", "scan=1") for _ in range(TIMES)]
    least = {
        zones: {name: min(run[zones][name] for run in runs) for name in runs[0][zones]}
        for zones in (FEW, SOME, MANY)
    }
    scan = min(run["choose_ns"] for run in scans)
    return _rows(least, scan)


def _run(program: Path, *words: str) -> dict[str, float]:
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _rows(least: dict[int, dict[str, float]], scan: float) -> list[Row]:
    few, some, many = (least[zones] for zones in (FEW, SOME, MANY))

    def row(what: str, must: str, name: str, passed: bool | None, more: str = "") -> Row:
        value = many[name]
        measured = f"{value / 1e3:,.1f} us"
        beside = f"{FEW:,}: {few[name] / 1e3:,.1f} us, {SOME:,}: {some[name] / 1e3:,.1f} us{more}"
        return Row(
            f"RFS, {MANY:,} zones: CPU time of {what}",
            must,
            f"{measured} ({beside})",
            value / 1e9,
            "s",
            "wall",
            passed,
        )

    return [
        row(
            "opening a zone",
            f"under {OPEN_NS / 1e3:.0f} us",
            "open_ns",
            many["open_ns"] < OPEN_NS,
        ),
        row(
            "a check-point after 1,024 blocks of 256 MiB were overwritten at random",
            f"at most {CHECKPOINT_SHARE - 1:.0%} more than with {FEW:,}",
            "checkpoint_ns",
            many["checkpoint_ns"] <= CHECKPOINT_SHARE * few["checkpoint_ns"],
        ),
        row(
            "choosing a victim after 100 blocks of random zones have died",
            "informative",
            "choose_ns",
            None,
            f"; a look at each zone: {scan / 1e3:,.1f} us",
        ),
        Row(
            f"RFS, {MANY:,} zones: memory of a mounted volume without its caches, at most",
            f"under {MEMORY_BYTES >> 20} MiB",
            f"{many['most_bytes'] / (1 << 20):.1f} MiB",
            many["most_bytes"],
            "bytes",
            "wall",
            many["most_bytes"] < MEMORY_BYTES,
        ),
    ]
