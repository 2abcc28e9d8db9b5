# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands to a conventional drive's core, each done, with all it made the drive do, before the
next one."""

import json
import subprocess
from pathlib import Path
from typing import Any

Command = tuple[str, int, int, int]  # operation, LBA, pages, tag of the first page


def run_one_by_one(
    replay: Path, media: Path, settings: str, commands: list[Command]
) -> list[dict[str, Any]]:
    """What the core printed: reads in order, then the counters."""
    lines = [f"open {media} {settings}"]
    now = 0
    for number, (op, lba, pages, tag) in enumerate(commands):
        lines.append(f"sub {now} {number} {op} {lba} {pages} {tag}")
        now += 10**11  # whatever it makes the drive do is over
        lines.append(f"step {now}")
    lines += ["counters", "close"]
    done = subprocess.run(
        [replay], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
