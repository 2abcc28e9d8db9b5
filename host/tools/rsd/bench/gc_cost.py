# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host pays for a NAND page operation when page-ftl collects garbage in QEMU.

Zone appends to our own drive are the mark. In real time, on TCG, as host-cost.
"""

import statistics
from dataclasses import dataclass

from rsd.bench.base import Context, Row
from rsd.bench.cpu_meter import MARK, Meter, Reading
from rsd.bench.guest import BLOCK, CHAR, finished
from rsd.compare.figures import counters, read_json
from rsd.errors import RsdError
from rsd.machine import GuestJob, run_guest

RUNS = 3
LIMIT = 1.2
IDLE_S = 5
DEPTH = 32
APPENDS, OVERWRITES = 20_000, 40_000
# Overwrites until collection goes on steadily: the drive's 5% of spare flash, six times
WARM = 150_000
PAGE_OPERATIONS = [
    f"{what}_{cause}"
    for what in ("read", "prog")
    for cause in ("host", "clean", "merge", "wear", "map", "pad")
]


@dataclass(frozen=True)
class _Cost:
    """CPU microseconds a NAND page operation, and how many of these an I/O took."""

    page_us: float
    pages_an_io: float


def _random_writes(ios: int) -> str:
    words = f"fio --name=gc --filename={BLOCK} --rw=randwrite --bs=4k --iodepth={DEPTH}"
    words += f" --io_size={4096 * ios} --ioengine=io_uring --direct=1 --thread --norandommap"
    return f"{words} --random_generator=tausworthe64 --eta=never --output=/out/fio.txt || exit\n"


_FILL = f"dd if=/dev/zero of={BLOCK} bs=1M oflag=direct 2>/out/dd.txt\n"
WORK = {
    "rsd": (
        f"blkzone reset {BLOCK} || exit\n",
        f"zappend --qd {DEPTH} --ios {APPENDS} --output /out/zappend.json {CHAR} || exit\n",
        APPENDS,
    ),
    "page-ftl": (_FILL + _random_writes(WARM), _random_writes(OVERWRITES), OVERWRITES),
}


def _measure(context: Context, system: str) -> _Cost:
    before, work, ios = WORK[system]
    script = before + f"{MARK}sleep {IDLE_S}\n{MARK}"
    script += f"rsdctl show --json {CHAR} > /out/before.json || exit\n"
    script += f"{MARK}{work}{MARK}"
    script += f"rsdctl show --json {CHAR} > /out/after.json || exit\n"
    meter = Meter()
    with context.cache.scratch("out") as out:
        job = GuestJob(
            system=system,
            script=script,
            out_dir=out,
            deterministic=False,
            namespace={"oob": "0"},
        )
        result = finished(
            run_guest(job, context.built, cache=context.cache, on_output=meter.feed),
            f"gc-cost, {system}",
        )
        first, last = (
            counters(read_json(result.out_dir / f"{when}.json")) for when in ("before", "after")
        )
    pages = sum(last[name] - first[name] for name in PAGE_OPERATIONS)
    if system == "page-ftl" and last["prog_clean"] == first["prog_clean"]:
        raise RsdError("gc-cost: page-ftl has copied nothing, so there was no collection")
    spans = [
        Reading(b.cpu_s - a.cpu_s, b.wall_s - a.wall_s)
        for a, b in zip(meter.readings[::2], meter.readings[1::2], strict=True)
    ]
    idle, busy = spans
    cpu_s = busy.cpu_s - idle.cpu_s / idle.wall_s * busy.wall_s
    return _Cost(cpu_s / pages * 1e6, pages / ios)


def gc_cost(context: Context) -> list[Row]:
    """The cost of both, in interleaved guests."""
    costs: dict[str, list[_Cost]] = {system: [] for system in WORK}
    with context.progress.step(f"host cost under collection, {RUNS} runs") as step:
        for number in range(RUNS):
            for system, found in costs.items():
                step.detail(f"{system}, run {number + 1}")
                found.append(_measure(context, system))
    median = {
        system: statistics.median(cost.page_us for cost in found) for system, found in costs.items()
    }
    ratio = median["page-ftl"] / median["rsd"]
    shown = ", ".join(
        f"{system} {median[system]:.2f} us at {found[0].pages_an_io:.2f} page operations an I/O"
        for system, found in costs.items()
    )
    return [
        Row(
            "host CPU time of a NAND page operation, page-ftl under collection against appends",
            f"at most {LIMIT}",
            f"{ratio:.3f}: {shown}",
            ratio,
            "",
            "wall",
            ratio <= LIMIT,
        )
    ]
