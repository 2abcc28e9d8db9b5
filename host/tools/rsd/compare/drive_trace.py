# SPDX-License-Identifier: GPL-2.0-or-later
"""A benchmark's commands in the drive's trace of the whole guest.

Which are the benchmark's is known from the drive's counters, which the guest reads before and
after: counters and trace have the same commands in the same order.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

from rsd.compare.figures import BadOutput, counters, read_json

# hw/rsd-nvme/core/api/trace.h
_HEADER = struct.Struct("<8sII")
_RECORD = struct.Struct("<QQQIIHHBBBBII")
_MAGIC = (b"RSDTRACE", 1)
_SUBMIT, _DONE, _COUNTER = 1, 2, 3
WRITE_ZEROES = 2
# What a counter counts: the trace's operations, those that transfer data first
_COUNTED = {"host_read_cmds": (0,), "host_write_cmds": (1, WRITE_ZEROES)}


@dataclass(frozen=True)
class Command:
    """What the drive was asked, and how long it took."""

    operation: int
    lba: int
    blocks: int
    ns: int


def commands_between(trace: Path, directory: Path, counter: str) -> list[Command]:
    """The commands that a counter counted between two readings, in the order they were done.

    `directory` has before/counters.json and after/counters.json. Raises BadOutput if the trace
    is not whole or does not have as many commands as were counted.
    """
    found, final = _commands(trace, counter)
    begin, end = (
        counters(read_json(directory / when / "counters.json"))[counter] - final + len(found)
        for when in ("before", "after")
    )
    if not 0 <= begin <= end <= len(found):
        raise BadOutput(
            f"{trace.name}: its {len(found)} commands are not those that {counter} counted"
        )
    return found[begin:end]


def _commands(trace: Path, counter: str) -> tuple[list[Command], int]:
    """The commands that a counter counts, as they were done; what it ended at."""
    content = trace.read_bytes()
    if len(content) < _HEADER.size or _HEADER.unpack_from(content)[:2] != _MAGIC:
        raise BadOutput(f"{trace.name}: not a trace")
    start: int = _HEADER.unpack_from(content)[2]
    found: list[Command] = []
    final = -1
    pending: dict[int, tuple[int, int, int, int]] = {}
    whole = len(content) - (len(content) - start) % _RECORD.size
    for time, order, lba, blocks, _, _, _, kind, op, status, *_ in _RECORD.iter_unpack(
        memoryview(content)[start:whole]
    ):
        if kind == _SUBMIT:
            pending[order] = (op, lba, blocks, time)
        elif kind == _DONE:
            *asked, begun = pending.pop(order)
            # one that is refused is not counted
            if asked[0] in _COUNTED[counter] and (status == 0 or time > begun):
                found.append(Command(*asked, time - begun))
        elif kind == _COUNTER and order == list(_COUNTED).index(counter):
            final = lba
    if final < 0:
        raise BadOutput(f"{trace.name}: it does not end with the counters")
    return found, final
