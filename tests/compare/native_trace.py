# SPDX-License-Identifier: GPL-2.0-or-later
"""Native traces made by hand."""

import struct
from collections.abc import Sequence
from pathlib import Path

READ, WRITE, WRITE_ZEROES, FLUSH = 0, 1, 2, 5
REFUSED = 1

_RECORD = struct.Struct("<QQQIIHHBBBBII")
_SUBMIT, _DONE, _COUNTER, _END = 1, 2, 3, 4


def write_trace(
    path: Path, commands: Sequence[tuple[int, int, int]], final: Sequence[int] = ()
) -> None:
    """Commands (operation, ns, status), one after the other, and the first counters at the end."""
    header = struct.pack("<8sIIIIQ24sQ", b"RSDTRACE", 1, 96, _RECORD.size, 0, 0, b"", 0)
    content = header + bytes(96 - len(header))
    now = 0

    def add(time: int, order: int, value: int, kind: int, operation: int, status: int) -> bytes:
        return _RECORD.pack(time, order, value, 1, 0, 1, 0, kind, operation, status, 0, 0, 0)

    for order, (operation, ns, status) in enumerate(commands):
        content += add(now, order, 0, _SUBMIT, operation, 0)
        now += ns
        content += add(now, order, 0, _DONE, 0, status)
    for number, value in enumerate(final):
        content += add(now, number, value, _COUNTER, 0, 0)
    path.write_bytes(content + add(now, 0, 0, _END, 0, 0))
