# SPDX-License-Identifier: GPL-2.0-or-later
"""How long the drive took for a benchmark's commands, from its own trace of the whole guest.

All benchmarks have these, also those that measure no latency of their own. Which commands are the
benchmark's is known from the drive's counters, which the guest reads before and after: counters
and trace have the same commands in the same order.
"""

import json
import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rsd.compare.figures import BadOutput, counters, read_json

NAME = "drive.json"
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}

# hw/rsd-nvme/core/api/trace.h
_HEADER = struct.Struct("<8sII")
_RECORD = struct.Struct("<QQQIIHHBBBBII")
_MAGIC = (b"RSDTRACE", 1)
_SUBMIT, _DONE, _COUNTER = 1, 2, 3
_WRITE_ZEROES = 2
# What a counter counts: the trace's operations, those that transfer data first
_COUNTED = {"host_read_cmds": (0,), "host_write_cmds": (1, _WRITE_ZEROES)}
_KINDS = {"read": "host_read_cmds", "write": "host_write_cmds"}


def write(trace: Path, directory: Path) -> None:
    """Summarize the commands between two readings of the counters into the file NAME.

    `directory` has before/counters.json and after/counters.json. Raises BadOutput if the trace
    is not whole or does not have as many commands as were counted.
    """
    found, final = _commands(trace)
    before, after = (
        counters(read_json(directory / when / "counters.json")) for when in ("before", "after")
    )
    summary = {}
    for kind, counter in _KINDS.items():
        commands = found[counter]
        first = final[counter] - len(commands)
        begin, end = before[counter] - first, after[counter] - first
        if not 0 <= begin <= end <= len(commands):
            raise BadOutput(f"{trace.name}: {len(commands)} {kind}s are not those of the counters")
        summary[kind] = _summary(
            [ns for operation, ns in commands[begin:end] if operation != _WRITE_ZEROES]
        )
    (directory / NAME).write_text(json.dumps(summary, indent=2) + "\n")


def _commands(trace: Path) -> tuple[dict[str, list[tuple[int, int]]], dict[str, int]]:
    """Operation and ns of the commands of each counter, as they were done; what it ended at."""
    content = trace.read_bytes()
    if len(content) < _HEADER.size or _HEADER.unpack_from(content)[:2] != _MAGIC:
        raise BadOutput(f"{trace.name}: not a trace")
    start: int = _HEADER.unpack_from(content)[2]
    counter_of = {op: name for name, operations in _COUNTED.items() for op in operations}
    names = list(_COUNTED)
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in _COUNTED}
    final: dict[str, int] = {}
    pending: dict[int, tuple[int, int]] = {}
    whole = len(content) - (len(content) - start) % _RECORD.size
    for time, order, value, _, _, _, _, kind, op, status, *_ in _RECORD.iter_unpack(
        memoryview(content)[start:whole]
    ):
        if kind == _SUBMIT:
            pending[order] = (op, time)
        elif kind == _DONE:
            operation, begun = pending.pop(order)
            # one that is refused is not counted
            if operation in counter_of and (status == 0 or time > begun):
                found[counter_of[operation]].append((operation, time - begun))
        elif kind == _COUNTER and order < len(names):
            final[names[order]] = value
    if final.keys() != _COUNTED.keys():
        raise BadOutput(f"{trace.name}: it does not end with the counters")
    return found, final


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
