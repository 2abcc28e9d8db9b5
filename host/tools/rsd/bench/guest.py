# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures that take a guest: what the host pays for an I/O, and how fast the guest should be."""

import os
import shlex
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd.bench.base import Context, Row, near
from rsd.compare.figures import read_json
from rsd.errors import RsdError
from rsd.machine import GUEST_SPEED_SHIFT, GuestJob, GuestResult, Outcome, run_guest

BLOCK, CHAR = "/dev/nvme0n1", "/dev/ng0n1"
SEED = (
    'perl -e \'open my $f, ">", "/dev/random" or die;'
    ' my $seed = pack("ii a256", 2048, 256, "rsd" x 86);'
    " ioctl $f, 0x40085203, $seed or die' || exit\n"
)

RISA_READ_IOPS, RISA_WRITE_IOPS = 240_000, 67_000

HOST_COST_RUNS = 7
HOST_COST_LIMIT = 1.05
HOST_COST_READS, HOST_COST_WRITES = 40_000, 10_000

SPEED_SHIFTS = (0, -1, -2, -3)


def _finished(result: GuestResult, what: str) -> GuestResult:
    if result.outcome is Outcome.EXITED and result.status == 0:
        return result
    text = result.output if result.outcome is Outcome.EXITED else result.console
    tail = "".join(f"  | {line}\n" for line in text.splitlines()[-15:])
    raise RsdError(f"{what}: {result.outcome.value}, status {result.status}\n{tail}".rstrip())


def _fio(name: str, rw: str, ios: int, depth: int, size_mib: int, *more: str) -> str:
    words = ["fio", f"--name={name}", f"--filename={BLOCK}", f"--rw={rw}", "--bs=4k"]
    words += [f"--iodepth={depth}", f"--size={size_mib}M", f"--number_ios={ios}"]
    words += [
        f"--io_size={ios * 4096}",
        "--ioengine=io_uring",
        "--direct=1",
        "--thread",
        "--eta=never",
    ]
    words += ["--output-format=json", f"--output=/out/{name}.json", *more]
    return shlex.join(words)


def _job(result: GuestResult, name: str) -> Any:
    return read_json(result.out_dir / f"{name}.json")["jobs"][0]


def risa_guest(context: Context) -> list[Row]:
    """Appends and reads of 4 KiB at queue depth 256, by zappend in a deterministic guest."""
    base = f"zappend --qd 256 --oob --output /out/{{}}.json {{}} {CHAR}\n"
    script = (
        SEED
        + base.format("append", "--ios 12000")
        + base.format("read", "--op read --ios 12000")
        + _fio("randread", "randread", 12000, 256, 32, "--zonemode=zbd")
    )
    with context.progress.step("preset risa in the guest"), context.cache.scratch("out") as out:
        job = GuestJob(system="rsd", script=script, out_dir=out)
        result = _finished(run_guest(job, context.built, cache=context.cache), "risa-guest")
        figures = {
            "append, zappend": (_job(result, "append")["write"]["iops"], RISA_WRITE_IOPS, True),
            "read in order, zappend": (_job(result, "read")["read"]["iops"], RISA_READ_IOPS, True),
            "random read, fio": (_job(result, "randread")["read"]["iops"], RISA_READ_IOPS, False),
        }
    return [
        Row(
            f"preset risa, 4 KiB {name}, queue depth 256, in the guest",
            f"{must:,} IOPS, within 2%" if required else "informative",
            f"{iops:,.0f} IOPS ({100 * (iops / must - 1):+.2f}%)",
            iops,
            "IOPS",
            "virtual",
            near(iops, must, 0.02) if required else None,
        )
        for name, (iops, must, required) in figures.items()
    ]


class _CpuMeter:
    """Reads QEMU's CPU time whenever the script prints @mark NAME.

    The script is idle for a moment around each mark, so the reading may be late without
    being wrong.
    """

    def __init__(self) -> None:
        self.readings: list[float] = []
        self._partial = b""

    def feed(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        self.readings += [_cpu_s(_qemu_pid()) for line in lines if line.startswith(b"@mark")]


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


@dataclass(frozen=True)
class _Cost:
    """CPU seconds of QEMU for a number of I/Os, the same with one I/O subtracted."""

    reads: float
    writes: float


def _host_cost_once(context: Context, system: str, namespace: Mapping[str, str]) -> _Cost:
    mark = "sleep 0.3; echo @mark; sleep 0.3\n"
    loads = (
        ("randread", HOST_COST_READS, 32),
        ("write", HOST_COST_WRITES, 1),
    )
    script = (
        "zoned=$(cat /sys/block/nvme0n1/queue/zoned)\n"
        f'[ "$zoned" = none ] || blkzone reset {BLOCK} || exit\n'
        f"dd if=/dev/zero of={BLOCK} bs=1M count=64 oflag=direct conv=notrunc 2>&1 || exit\n"
    )
    for rw, ios, depth in loads:
        for count in (1, ios):
            if rw == "write":
                script += f'[ "$zoned" = none ] || blkzone reset {BLOCK} || exit\n'
            load = _fio(f"{rw}-{count}", rw, count, depth, 64)
            script += f"sleep 1\n{mark}{load} || exit\n{mark}"
    meter = _CpuMeter()
    with context.cache.scratch("out") as out:
        job = GuestJob(
            system=system,
            script=script,
            out_dir=out,
            deterministic=False,
            namespace=namespace,
        )
        result = run_guest(job, context.built, cache=context.cache, on_output=meter.feed)
        _finished(result, f"host-cost, {system}")
        for rw, ios, _ in loads:
            side = _job(result, f"{rw}-{ios}")["read" if "read" in rw else "write"]
            assert side["total_ios"] == ios, f"{system}: {side['total_ios']} of {ios} I/Os"
    pairs = zip(meter.readings[::2], meter.readings[1::2], strict=True)
    one_read, reads, one_write, writes = (after - before for before, after in pairs)
    return _Cost(reads=reads - one_read, writes=writes - one_write)


def host_cost(context: Context) -> list[Row]:
    """QEMU's CPU time for the same work on our drive and on stock hw/nvme, interleaved.

    Without icount, on TCG. Both drives have no page metadata, so that the guest kernel does
    the same; ours is zoned, and its writes go through the kernel's zone handling.
    """
    costs: dict[str, list[_Cost]] = {"stock": [], "rsd": []}
    with context.progress.step(f"host cost, {HOST_COST_RUNS} runs") as step:
        for number in range(HOST_COST_RUNS):
            for system, namespace in (("stock", {}), ("rsd", {"oob": "0"})):
                step.detail(f"{system}, run {number + 1}")
                costs[system].append(_host_cost_once(context, system, namespace))
    rows = []
    for title, kind, ios in (
        ("random read, queue depth 32", "reads", HOST_COST_READS),
        ("sequential write, queue depth 1", "writes", HOST_COST_WRITES),
    ):
        median = {
            system: statistics.median(getattr(cost, kind) for cost in found) / ios * 1e6
            for system, found in costs.items()
        }
        spread = {
            system: [getattr(cost, kind) / ios * 1e6 for cost in found]
            for system, found in costs.items()
        }
        ratio = median["rsd"] / median["stock"]
        shown = ", ".join(
            f"{system} {median[system]:.2f} us ({min(all_):.2f} to {max(all_):.2f})"
            for system, all_ in spread.items()
        )
        rows.append(
            Row(
                f"host CPU time of a 4 KiB {title}, against stock",
                f"at most {HOST_COST_LIMIT}",
                f"{ratio:.3f}: {shown}",
                ratio,
                "",
                "wall",
                ratio <= HOST_COST_LIMIT,
            )
        )
    return rows


def guest_speed(context: Context) -> list[Row]:
    """The table by which the default guest speed was chosen.

    On a drive without latency, an I/O costs the guest nothing but its own instructions.
    """
    instant = {name: "0" for name in ("t-cmd", "t-xfer", "t-read", "t-prog", "t-erase")}
    rows = []
    for shift in SPEED_SHIFTS:
        with context.progress.step(f"guest speed, shift {shift}"):
            bare = _speed_run(context, shift, instant)
            real = _speed_run(context, shift, {})
        cost_us = 1e6 / bare.iops
        mark = ", the default" if shift == GUEST_SPEED_SHIFT else ""
        rows.append(
            Row(
                f"guest of {2**-shift} instructions a ns (shift {shift}{mark})",
                "informative",
                f"{cost_us:.2f} us an I/O of its own; risa reads at {real.iops:,.0f} IOPS; "
                f"{bare.cpu_s / bare.virtual_s:.1f} CPU s a busy virtual second",
                cost_us,
                "us",
                "virtual",
                None,
            )
        )
    return rows


@dataclass(frozen=True)
class _Speed:
    iops: float
    virtual_s: float
    cpu_s: float


def _speed_run(context: Context, shift: int, timing: Mapping[str, str]) -> _Speed:
    """Random reads at queue depth 256. Busy time and CPU time are the whole guest's."""
    load = _fio("randread", "randread", 20_000, 256, 64, "--zonemode=zbd", "--norandommap")
    script = (
        f"{SEED}dd if=/dev/zero of={BLOCK} bs=1M count=64 oflag=direct conv=notrunc 2>&1 || exit\n"
        f"{load} || exit\ncat /proc/uptime >/out/uptime\n"
    )
    with context.cache.scratch("out") as out:
        job = GuestJob(
            system="rsd", script=script, out_dir=out, guest_speed=shift, namespace=timing
        )
        result = _finished(run_guest(job, context.built, cache=context.cache), "guest-speed")
        side = _job(result, "randread")["read"]
        up_s, idle_s = map(float, (out / "uptime").read_text().split())
    return _Speed(side["iops"], up_s - idle_s, result.qemu_cpu_s)
