# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host pays for a guest in virtual time: processor time and thread switches a request.

A guest reads 4 KiB at random, once a few times and once many times; what lies between the two
is the cost of the requests alone. QEMU does the work in one thread, so its processor time is
also the wall time that a request takes on a core that has nothing else to do.
"""

from dataclasses import dataclass

from rsd.bench.base import Context, Row
from rsd.bench.guest import BLOCK, finished, fio, job_of
from rsd.machine import GuestJob, run_guest

FEW, MANY = 5_000, 45_000
AREA_MIB = 64
LIMIT_US = 70.0
LIMIT_SWITCHES = 0.1


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
                f"{switches:.3f}",
                switches,
                "",
                "count",
                switches < LIMIT_SWITCHES,
            ),
        ]
    return rows


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
