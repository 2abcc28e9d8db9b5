# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps of a first set-up and what each costs, as docs/results/setup-DATE.json has them.

By that a set-up says how far it is, and docs/first-run.md shows its table.
"""

import datetime
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rsd.cache import Cache
from rsd.errors import RsdError, naming
from rsd.progress import Progress

BEGIN, END = "<!-- table: setup -->", "<!-- end -->"

# Each step of a set-up from an empty cache, and where in the cache its result is.
STEPS = {
    "Debian index": "release.json",
    "QEMU: source": "qemu-source",
    "QEMU: patches": "qemu",
    "QEMU: build": "qemu",
    "buildroot: trixie with a compiler": "buildroot",
    "guest root: trixie and its benchmarks": "root",
    "guest root: EROFS image": "root",
    "guest kernel, release": "kernel-release",
    "guest tools": "guest-tools",
    "RFS module, release": "module-release",
}

Timings = Sequence[tuple[str, float, float]]


def newest(root: Path) -> dict[str, Any] | None:
    """The latest of the dated files, if there is one."""
    found = sorted((root / "docs" / "results").glob("setup-*.json"))
    if not found:
        return None
    content: dict[str, Any] = json.loads(found[-1].read_text())
    return content


def to_come(root: Path, cache: Cache) -> dict[str, float]:
    """Processor seconds of each step whose result is in the cache in no version at all.

    A result of an older version is brought up to date by a step that takes less, nobody knows how
    much.
    """
    recorded = newest(root)
    if recorded is None:
        return {}
    missing = {place for place in STEPS.values() if not _is_there(cache.root / place)}
    return {
        one["step"]: _cost(one) for one in recorded["steps"] if STEPS.get(one["step"]) in missing
    }


def _cost(step: dict[str, Any]) -> float:
    """Processor seconds of a recorded step, or its wall time if nothing better was kept."""
    seconds: float = step["wall_s"] if step["cpu_s"] is None else step["cpu_s"]
    return seconds


def _is_there(place: Path) -> bool:
    return place.is_file() or (place.is_dir() and any(place.iterdir()))


def record(root: Path, cache: Cache, progress: Progress, wall_s: float) -> Path:
    """Write today's file of a set-up that built everything, and the table that shows it."""
    timings = progress.timings
    if missing := set(STEPS) - {title for title, _, _ in timings}:
        raise RsdError(
            f"--record: {', '.join(sorted(missing))} had been done before",
            "RSD_CACHE=$PWD/empty ./rsd setup --record",
        )
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    content = {
        "date": date,
        "processors": len(os.sched_getaffinity(0)),
        "wall_s": round(wall_s),
        "steps": [
            {"step": title, "wall_s": round(wall, 1), "cpu_s": round(cpu, 1)}
            for title, wall, cpu in timings
            if title in STEPS
        ],
        "mib": {
            place.name: _mib(place)
            for place in sorted(cache.root.iterdir())
            if place.is_dir() and _mib(place)
        },
    }
    path = root / "docs" / "results" / f"setup-{date}.json"
    page = root / "docs" / "first-run.md"
    with naming(path):
        path.write_text(json.dumps(content, indent=1) + "\n")
    with naming(page):
        head, rest = page.read_text().split(BEGIN)
        page.write_text(f"{head}{BEGIN}\n{table(content)}{END}{rest.split(END, 1)[1]}")
    return path


def _mib(place: Path) -> int:
    """What it takes of the disk. A file of several names counts once."""
    seen = {}
    for path in place.rglob("*"):
        facts = path.lstat()
        seen[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
    return round(sum(seen.values()) / (1 << 20))


def table(content: dict[str, Any]) -> str:
    """The page's tables: time by step, disk by folder of the cache."""
    total = sum(map(_cost, content["steps"]))
    lines = [
        f"Of {content['date']}, a set-up with an empty cache on {content['processors']} processors:"
        f" {content['wall_s'] / 60:.0f} minutes. {content.get('note', '')}".rstrip(),
        "",
        "| step | seconds | processor seconds | share |",
        "| --- | --- | --- | --- |",
    ]
    for one in sorted(content["steps"], key=_cost, reverse=True):
        cpu = "" if one["cpu_s"] is None else f"{one['cpu_s']:.0f}"
        share = f"{100 * _cost(one) / total:.0f}%"
        lines.append(f"| {one['step']} | {one['wall_s']:.0f} | {cpu} | {share} |")
    if sizes := content["mib"]:
        lines += ["", f"The cache takes {sum(sizes.values()) / 1024:.1f} GiB:", ""]
        lines += ["| folder | MiB |", "| --- | --- |"]
        lines += [
            f"| `{name}` | {mib:,} |" for name, mib in sorted(sizes.items(), key=lambda i: -i[1])
        ]
    return "\n".join(lines) + "\n"
