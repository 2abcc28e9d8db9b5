# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host pays for an I/O: QEMU's CPU time for the same work on our drive and on stock's.

In real time, on TCG. All drives have no page metadata, so that the guest kernel does the same.
An idle guest costs CPU time too, by its timer, and our drive keeps a guest waiting for its
flash: the cost of idling for as long as the work took is measured and subtracted.
"""

import os
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rsd.bench.base import Context, Row
from rsd.bench.guest import BLOCK, CHAR, finished, fio, job_of
from rsd.errors import RsdError
from rsd.machine import GuestJob, run_guest

RUNS = 7
LIMIT = 1.05
IDLE_S = 5
# Less than the zones that the drives are filled to begin with
AREA_MIB = 64


@dataclass(frozen=True)
class Load:
    """A number of I/Os of one kind, and the stock system to compare ours with."""

    title: str
    stock: str
    ios: int
    side: str
    command: str  # of {name} and {ios}; leaves /out/{name}.json
    reset: bool = False

    def script(self, name: str, ios: int) -> str:
        """The command for so many I/Os."""
        return self.command.format(name=name, ios=ios, bytes=4096 * ios)


def _zappend(depth: int) -> str:
    return f"zappend --qd {depth} --ios {{ios}} --output /out/{{name}}.json {CHAR}"


def _fio_load(rw: str, depth: int) -> str:
    words = fio("NAME", rw, 0, depth, AREA_MIB)
    for old, new in (("NAME", "{name}"), ("_ios=0", "_ios={ios}"), ("size=0", "size={bytes}")):
        words = words.replace(old, new)
    return words


LOADS = {
    "randread": Load(
        "random read, queue depth 32", "stock", 40_000, "read", _fio_load("randread", 32)
    ),
    "append": Load(
        "zone append, queue depth 32", "stock-zns", 20_000, "write", _zappend(32), reset=True
    ),
    "write": Load(
        "sequential write, queue depth 1",
        "stock",
        10_000,
        "write",
        _fio_load("write", 1),
        reset=True,
    ),
}


@dataclass(frozen=True)
class _Reading:
    cpu_s: float
    wall_s: float


class _Meter:
    """Reads QEMU's CPU time whenever the script prints @mark.

    The script is idle for a moment around each mark, so the reading may be late without
    being wrong.
    """

    def __init__(self) -> None:
        self.readings: list[_Reading] = []
        self._partial = b""

    def feed(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            if line.startswith(b"@mark"):
                self.readings.append(_Reading(_cpu_s(_qemu_pid()), time.monotonic()))


def _qemu_pid() -> int:
    """The one guest that runs: our only child of that name."""
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            if "qemu-system" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]:
                return int(pid)
    raise RsdError("host-cost: QEMU has ended")


def _cpu_s(pid: int) -> float:
    """User and system seconds of a process, threads that have ended included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _measure(
    context: Context, system: str, loads: Mapping[str, Load], namespace: Mapping[str, str]
) -> dict[str, float]:
    """CPU microseconds an I/O of each load, in one guest."""
    mark = "sleep 0.3; echo @mark; sleep 0.3\n"
    zoned = system != "stock"
    script = f"blkzone reset {BLOCK} || exit\n" if zoned else ""
    script += f"dd if=/dev/zero of={BLOCK} bs=1M count={AREA_MIB} oflag=direct 2>&1 || exit\n"
    script += f"{mark}sleep {IDLE_S}\n{mark}"
    for name, load in loads.items():
        # one I/O first: what the program costs by itself
        for label, ios in ((f"{name}-one", 1), (name, load.ios)):
            if load.reset and zoned:
                script += f"blkzone reset {BLOCK} || exit\nsleep 1\n"
            script += f"{mark}{load.script(label, ios)} || exit\n{mark}"
    meter = _Meter()
    with context.cache.scratch("out") as out:
        job = GuestJob(
            system=system, script=script, out_dir=out, deterministic=False, namespace=namespace
        )
        result = finished(
            run_guest(job, context.built, cache=context.cache, on_output=meter.feed),
            f"host-cost, {system}",
        )
        for name, load in loads.items():
            done = job_of(result, name)[load.side]["total_ios"]
            if done != load.ios:
                raise RsdError(f"host-cost, {system}: {name} did {done} of {load.ios} I/Os")
    pairs = zip(meter.readings[::2], meter.readings[1::2], strict=True)
    spans = [_Reading(b.cpu_s - a.cpu_s, b.wall_s - a.wall_s) for a, b in pairs]
    idle = spans[0].cpu_s / spans[0].wall_s
    busy = [span.cpu_s - idle * span.wall_s for span in spans[1:]]
    return {
        name: (many - one) / load.ios * 1e6
        for (name, load), one, many in zip(loads.items(), busy[::2], busy[1::2], strict=True)
    }


def host_cost(context: Context) -> list[Row]:
    """Every load on ours and on its stock counterpart, in interleaved guests."""
    costs: dict[tuple[str, str], list[float]] = {}
    systems = {
        system: {name: load for name, load in LOADS.items() if load.stock == system}
        for system in ("stock", "stock-zns")
    }
    with context.progress.step(f"host cost, {RUNS} runs") as step:
        for number in range(RUNS):
            for system, loads in (*systems.items(), ("rsd", LOADS)):
                step.detail(f"{system}, run {number + 1}")
                namespace = {"oob": "0"} if system == "rsd" else {}
                for name, cost in _measure(context, system, loads, namespace).items():
                    costs.setdefault((system, name), []).append(cost)
    rows = []
    for name, load in LOADS.items():
        found = {system: costs[system, name] for system in (load.stock, "rsd")}
        median = {system: statistics.median(values) for system, values in found.items()}
        ratio = median["rsd"] / median[load.stock]
        shown = ", ".join(
            f"{system} {median[system]:.2f} us ({min(values):.2f} to {max(values):.2f})"
            for system, values in found.items()
        )
        rows.append(
            Row(
                f"host CPU time of a 4 KiB {load.title}, against {load.stock}",
                f"at most {LIMIT}",
                f"{ratio:.3f}: {shown}",
                ratio,
                "",
                "wall",
                ratio <= LIMIT,
            )
        )
    return rows
