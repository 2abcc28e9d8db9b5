# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host pays for a guest in virtual time: processor time, thread switches and system calls
a request, where the time goes, and how long the shortest run takes.

A guest reads 4 KiB at random, once a few times and once many times; what lies between the two
is the cost of the requests alone. QEMU does the work in one thread, so its processor time is
also the wall time that a request takes on a core that has nothing else to do.
"""

import functools
import subprocess
import time
from collections import Counter
from dataclasses import dataclass

from rsd.bench.base import REPOSITORY, Context, Row
from rsd.bench.guest import BLOCK, finished, fio, job_of
from rsd.bench.guest_profile import QEMU, TRANSLATED, shares, system_calls
from rsd.machine import GuestJob, run_guest

FEW, MANY = 5_000, 45_000
AREA_MIB = 64
LIMIT_US = 70.0
LIMIT_SWITCHES = 0.1
# One is the read of the drive's file. The main loop makes some now and then, for no request.
LIMIT_CALLS = 1.05
LIMIT_SHARE = 50.0
LIMIT_SHORTEST_S = 1.5

# What limits the share, by queue depth
WHY_SHARE = {
    32: "a guest that has always something to do is interrupted amid its code by each timer of the"
    " drive, and what follows is translated unless that happened at the same instruction before",
}

# strace makes each system call some twenty times as long.
TRACED_FEW, TRACED_MANY = 1_000, 5_000

# Of the shortest run, the fastest is what the host needs when it has nothing else to do.
SHORTEST_RUNS = 5

# How many of QEMU's functions are named
SHOWN = 3


@dataclass(frozen=True)
class _Run:
    cpu_s: float
    switches: int
    virtual_s: float


def guest_cost(context: Context) -> list[Row]:
    """Random reads of a page-mapped drive of preset risa at queue depths 1 and 32."""
    rows = []
    for depth in (1, 32):
        with context.progress.step(f"guest cost, queue depth {depth}"):
            few, many = (_run(context, depth, ios) for ios in (FEW, MANY))
        ios = MANY - FEW
        cost_us = (many.cpu_s - few.cpu_s) / ios * 1e6
        switches = (many.switches - few.switches) / ios
        pace = (many.virtual_s - few.virtual_s) / (many.cpu_s - few.cpu_s)
        rows += [
            Row(
                f"host CPU time of a 4 KiB random read in virtual time, queue depth {depth}",
                f"at most {LIMIT_US:.0f} us",
                f"{cost_us:.1f} us: {1e6 / cost_us:,.0f} requests and"
                f" {pace:.2f} virtual seconds a CPU second",
                cost_us,
                "us",
                "wall",
                cost_us <= LIMIT_US,
            ),
            Row(
                f"thread switches of QEMU a request, queue depth {depth}",
                f"under {LIMIT_SWITCHES}",
                f"{switches:z.3f}",
                switches,
                "",
                "count",
                switches < LIMIT_SWITCHES,
            ),
            _calls_row(context, depth),
            _share_row(context, depth),
        ]
    return [*rows, _shortest_row(context)]


def _calls_row(context: Context, depth: int) -> Row:
    with context.progress.step(f"guest cost, queue depth {depth}, system calls"):
        few, many = (
            system_calls(context, functools.partial(_run, depth=depth, ios=ios))
            for ios in (TRACED_FEW, TRACED_MANY)
        )
    calls = (many - few) / (TRACED_MANY - TRACED_FEW)
    return Row(
        f"system calls of QEMU a request, queue depth {depth}",
        f"at most {LIMIT_CALLS}",
        f"{calls:.3f}",
        calls,
        "",
        "count",
        calls <= LIMIT_CALLS,
    )


def _share_row(context: Context, depth: int) -> Row:
    """Of perf's samples. The rest is named by place, and QEMU's by its most frequent functions."""
    with context.progress.step(f"guest cost, queue depth {depth}, profile"):
        few, many = (
            shares(context, functools.partial(_run, depth=depth, ios=ios)) for ios in (FEW, MANY)
        )
    many.subtract(few)
    total = sum(many.values())
    places: Counter[str] = Counter()
    for (place, _), samples in many.items():
        places[place] += samples
    share = 100 * places.pop(TRANSLATED) / total
    own = [(name, samples) for (place, name), samples in many.most_common() if place == QEMU]
    rest = ", ".join(f"{place} {100 * samples / total:.0f}%" for place, samples in places.items())
    most = ", ".join(f"{name} {100 * samples / total:.0f}%" for name, samples in own[:SHOWN])
    passed = share >= LIMIT_SHARE
    return Row(
        f"share of translated guest code in QEMU's time, queue depth {depth}",
        f"at least {LIMIT_SHARE:.0f}%",
        f"{share:.0f}%; {rest}; of QEMU {most}",
        share,
        "%",
        "wall",
        passed,
        "" if passed else WHY_SHARE.get(depth, ""),
    )


def _shortest_row(context: Context) -> Row:
    """`./rsd run -- true`, from the start of Python to its end."""
    taken = []
    with context.progress.step("guest cost, ./rsd run -- true"):
        for _ in range(SHORTEST_RUNS):
            started = time.monotonic()
            subprocess.run([REPOSITORY / "rsd", "run", "--", "true"], check=True)
            taken.append(time.monotonic() - started)
    return Row(
        "./rsd run -- true, fastest of five",
        f"at most {LIMIT_SHORTEST_S} s",
        f"{min(taken):.2f} s",
        min(taken),
        "s",
        "wall",
        min(taken) <= LIMIT_SHORTEST_S,
    )


def _run(context: Context, depth: int, ios: int) -> _Run:
    script = f"dd if=/dev/zero of={BLOCK} bs=1M count={AREA_MIB} oflag=direct 2>&1 || exit\n"
    script += fio("read", "randread", ios, depth, AREA_MIB)
    with context.cache.scratch("out") as out:
        job = GuestJob(
            system="rsd", script=script, out_dir=out, namespace={"ftl": "page", "oob": "0"}
        )
        result = finished(run_guest(job, context.built, cache=context.cache), "guest-cost")
        virtual_s = job_of(result, "read")["read"]["runtime"] / 1e3
    return _Run(result.qemu_cpu_s, result.qemu_switches, virtual_s)
