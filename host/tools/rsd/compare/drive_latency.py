# SPDX-License-Identifier: GPL-2.0-or-later
"""How long the drive took for a benchmark's commands, from its own trace of the whole guest.

All benchmarks have these, also those that measure no latency of their own.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rsd.compare.drive_trace import WRITE_ZEROES, commands_between

NAME = "drive.json"
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}

_KINDS = {"read": "host_read_cmds", "write": "host_write_cmds"}


def write(trace: Path, directory: Path) -> None:
    """Summarize the commands between two readings of the counters into the file NAME.

    `directory` has before/counters.json and after/counters.json. Raises BadOutput if the trace
    is not whole or does not have as many commands as were counted.
    """
    summary = {}
    for kind, counter in _KINDS.items():
        commands = commands_between(trace, directory, counter)
        summary[kind] = _summary([one.ns for one in commands if one.operation != WRITE_ZEROES])
    (directory / NAME).write_text(json.dumps(summary, indent=2) + "\n")


def _summary(values: Sequence[int]) -> dict[str, Any]:
    """Number, and microseconds: nearest-rank percentiles."""
    if not values:
        return {"commands": 0}
    ordered = sorted(values)
    ranks = {name: math.ceil(share * len(ordered)) - 1 for name, share in PERCENTILES.items()}
    return {
        "commands": len(ordered),
        "mean": round(sum(ordered) / len(ordered) / 1e3, 3),
        **{name: ordered[rank] / 1e3 for name, rank in ranks.items()},
        "max": ordered[-1] / 1e3,
    }
