# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures that take a guest: preset risa in it, and how fast the guest should be."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rsd.bench.base import Context, Row, near
from rsd.compare.figures import read_json
from rsd.errors import RsdError
from rsd.machine import GUEST_SPEED_SHIFT, GuestJob, GuestResult, Outcome, run_guest

BLOCK, CHAR = "/dev/nvme0n1", "/dev/ng0n1"
RISA_READ_IOPS, RISA_WRITE_IOPS = 240_000, 67_000

SPEED_SHIFTS = (0, -1, -2, -3)


def finished(result: GuestResult, what: str) -> GuestResult:
    if result.outcome is Outcome.EXITED and result.status == 0:
        return result
    text = result.output if result.outcome is Outcome.EXITED else result.console
    tail = "".join(f"  | {line}\n" for line in text.splitlines()[-15:])
    raise RsdError(f"{what}: {result.outcome.value}, status {result.status}\n{tail}".rstrip())


def fio(name: str, rw: str, ios: int, depth: int, size_mib: int, *more: str) -> str:
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


def job_of(result: GuestResult, name: str) -> Any:
    return read_json(result.out_dir / f"{name}.json")["jobs"][0]


def risa_guest(context: Context) -> list[Row]:
    """Appends and reads of 4 KiB at queue depth 256, by zappend in a deterministic guest."""
    base = f"zappend --qd 256 --oob --output /out/{{}}.json {{}} {CHAR}\n"
    script = (
        base.format("append", "--ios 12000")
        + base.format("read", "--op read --ios 12000")
        + fio("randread", "randread", 12000, 256, 32, "--zonemode=zbd")
    )
    with context.progress.step("preset risa in the guest"), context.cache.scratch("out") as out:
        job = GuestJob(system="rsd", script=script, out_dir=out)
        result = finished(run_guest(job, context.built, cache=context.cache), "risa-guest")
        figures = {
            "append, zappend": (job_of(result, "append")["write"]["iops"], RISA_WRITE_IOPS, True),
            "read in order, zappend": (
                job_of(result, "read")["read"]["iops"],
                RISA_READ_IOPS,
                True,
            ),
            "random read, fio": (job_of(result, "randread")["read"]["iops"], RISA_READ_IOPS, False),
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
    load = fio("randread", "randread", 20_000, 256, 64, "--zonemode=zbd", "--norandommap")
    script = (
        f"dd if=/dev/zero of={BLOCK} bs=1M count=64 oflag=direct conv=notrunc 2>&1 || exit\n"
        f"{load} || exit\ncat /proc/uptime >/out/uptime\n"
    )
    with context.cache.scratch("out") as out:
        job = GuestJob(
            system="rsd", script=script, out_dir=out, guest_speed=shift, namespace=timing
        )
        result = finished(run_guest(job, context.built, cache=context.cache), "guest-speed")
        side = job_of(result, "randread")["read"]
        up_s, idle_s = map(float, (out / "uptime").read_text().split())
    return _Speed(side["iops"], up_s - idle_s, result.qemu_cpu_s)
