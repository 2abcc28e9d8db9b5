# SPDX-License-Identifier: GPL-2.0-or-later
"""Random write areas of zones (ZRWA) under small writes, on the device alone.

The load is a database page store's: WRITES of 4 KiB, each anywhere in the area, which moves on by
what a commit of 16 KiB takes after each STEP of them. A zone without an area takes no write twice,
so that the same writes have to be appended there, and each costs a program.
"""

import random
from collections.abc import Iterator

from rsd.bench.base import Context, Row
from rsd.bench.device import PAGE, T_CMD, T_PROG, T_XFER, WRITE, device

AREA = 256  # blocks; 1 MiB, the default of zrwa-size
COMMIT = 4  # blocks; 16 KiB, the default of zrwa-flush
STEP = 64
WRITES = 4096
ONE_PROGRAM_NS = T_CMD + T_XFER + T_PROG

# README's example: 14 areas of 1 MiB, and 10 MiB of buffer besides
BUFFER = {"write_buffer": 24 << 20, "zrwa": 14}
ALLOCATE = 1 << 9  # Open Zone's ZRWAA, in cdw13


def load() -> Iterator[tuple[str, int]]:
    """("write", block) and ("commit", last block), seeded."""
    draw = random.Random(1)
    start = 0
    for done in range(1, WRITES + 1):
        yield "write", start + draw.randrange(AREA)
        if done % STEP == 0:
            start += COMMIT
            yield "commit", start - 1
    yield "commit", start + AREA - 1


def zrwa(context: Context) -> list[Row]:
    """Programs and latencies of the load with an area, and appended without one."""
    steps = [*load()]
    written = [block for kind, block in steps if kind == "write"]
    last = steps[-1][1]
    with context.progress.step("random write area"):
        with_area, latencies, commits = _in_area(context, steps)
    with context.progress.step("appends"):
        appended, append_ns = _appended(context, len(written))
    overwrites = len(written) - len(set(written))
    programs = with_area["prog_host"] + with_area["prog_pad"]
    must = f"{last + 1:,}: one a block of the zone; {overwrites:,} writes meet one in the area"
    return [
        Row(
            f"ZRWA, programs of {WRITES:,} writes of 4 KiB in an area of 1 MiB that moves",
            must,
            f"{programs:,} ({with_area['prog_pad']} of them filler); "
            f"{with_area['zrwa_overwrites']:,} overwrites",
            programs,
            "pages",
            "count",
            programs == last + 1 and with_area["zrwa_overwrites"] == overwrites,
        ),
        Row(
            "ZRWA, the same writes appended",
            f"{WRITES:,}: one each",
            f"{appended:,}: {appended / programs:.2f} times as many",
            appended,
            "pages",
            "count",
            appended == WRITES,
        ),
        _latency("a write to the area", 0, max(latencies)),
        _latency("a commit of 16 KiB", ONE_PROGRAM_NS, max(commits)),
        _latency("an append", ONE_PROGRAM_NS, append_ns),
    ]


def _latency(what: str, must: int, measured: int) -> Row:
    title = f"ZRWA, latency of {what}, the highest"
    return Row(
        title, f"{must:,} ns", f"{measured:,} ns", measured, "ns", "virtual", measured == must
    )


def _in_area(
    context: Context, steps: list[tuple[str, int]]
) -> tuple[dict[str, int], list[int], list[int]]:
    """Counters, and the latencies of writes and of commits but the last, which takes the rest."""
    latencies, commits = [], []
    with device(context, preset="risa", **BUFFER) as d:
        from zns import Action

        command = d.ns.send_command(Action.OPEN, 0)
        command.cdw13 |= ALLOCATE
        d.ns.queue.run(command).expect()
        page = d.ns.transfer(1)
        for kind, block in steps:
            if kind == "write":
                request = d.ns.queue.run(d.ns.io(WRITE, block, 1, page))
                latencies.append(request.expect().latency_ns)
            else:
                request = d.ns.queue.run(d.ns.send_command(Action.ZRWA_FLUSH, block))
                commits.append(request.expect().latency_ns)
        return d.log(), latencies, commits[:-1]


def _appended(context: Context, count: int) -> tuple[int, int]:
    """Programs, and the highest latency, of appends one after the other."""
    highest = 0
    with device(context, preset="risa", **BUFFER) as d:
        capacity = d.ns.zone(0).capacity
        for index in range(count):
            zone = d.ns.start(index // capacity)
            highest = max(highest, d.ns.append(zone, bytes(PAGE)).expect().latency_ns)
        return d.log()["nand_programs"], highest
