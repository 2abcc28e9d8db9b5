# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's CPU time between marks that a guest's script prints."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from rsd.errors import RsdError

# A line of a script: the CPU time is read here
MARK = "sleep 0.3; echo @mark; sleep 0.3\n"


@dataclass(frozen=True)
class Reading:
    cpu_s: float
    wall_s: float


class Meter:
    """Reads QEMU's CPU time whenever the script prints @mark.

    The script is idle for a moment around each mark, so the reading may be late without
    being wrong.
    """

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self._partial = b""

    def feed(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            if line.startswith(b"@mark"):
                self.readings.append(Reading(_cpu_s(_qemu_pid()), time.monotonic()))


def _qemu_pid() -> int:
    """The one guest that runs: our only child of that name."""
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            if "qemu-system" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]:
                return int(pid)
    raise RsdError("bench: QEMU has ended")


def _cpu_s(pid: int) -> float:
    """User and system seconds of a process, threads that have ended included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
