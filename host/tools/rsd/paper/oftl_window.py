# SPDX-License-Identifier: GPL-2.0-or-later
"""OFTL's figure 9: what extending the updating window does to the latency of I/Os.

In RFS a check-point extends the window. The window is a sixteenth of the drive: at 256 MiB the 4096
pages that the paper's has. The workloads write their 21,000 writes, each durable when it returns,
once on such a drive, and once on one that is four times as large, where no check-point comes. TPC-C
writes its table anew. An I/O meets an extension if the two overlap in time, as its trace event has
it, whether the I/O waits for it or not.
"""

import array
import dataclasses
import functools
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rsd.bench.base import Context
from rsd.cache import hash_file, hash_inputs
from rsd.cluster.unit import Unit
from rsd.compare import kept, stack_script
from rsd.compare.cells import Level
from rsd.compare.run import guest_failure
from rsd.compare.stack_run import stack_job
from rsd.compare.stacks import SMALL, FileSystem, Scale, Stack
from rsd.errors import RsdError
from rsd.machine import run_guest
from rsd.paper import oftl_work
from rsd.paper.claim import Claim, Limit
from rsd.parallel import run_all

TIMER = Path(__file__).with_name("latency.py")
EXTENDED, NEVER = "with extensions", "without"
WIDER = dataclasses.replace(SMALL, blocks=4 * SMALL.blocks, raw_mib=4 * SMALL.raw_mib)
DRIVES = {EXTENDED: SMALL, NEVER: WIDER}
# Of the paper's I/Os, those that met an extension; and of these, those that took 400 us or more,
# which is twice of where the line of all I/Os rises
MET_PERCENT = 0.04
SLOWED_PERCENT = 0.4
# What the eye sees of two lines in one plot: in parts of its height; and to the side, in ns, of a
# plot that has hundreds of microseconds
APART = 0.01
ASIDE = 1000

STACK = Stack(
    FileSystem("mkfs.rfs -q -f -c $drive", "mount -t rfs -o compact=on,commit=3600 $drive"),
    "rsd",
    Level.FULL,
    "",
)

_RUN = f"""\
trace=/sys/kernel/tracing
mountpoint -q $trace || must mount -t tracefs none $trace
must sh -c "echo mono >$trace/trace_clock"
must sh -c "echo 1 >$trace/events/rfs/rfs_checkpoint/enable"
must mkdir /vol/bench
cd /vol/bench
must python3 /in/{TIMER.name} /in/list /in/content /out/times
cat $trace/trace >/out/trace
cd /
must umount /vol
"""
_EVENT = re.compile(r" (\d+)\.(\d{6}): rfs_checkpoint: .*? ns (\d+) ")


@dataclass(frozen=True)
class Timed:
    """Latencies of I/Os, ns: all, and of them those that met an extension."""

    every: list[int]
    met: list[int]

    @property
    def slowed(self) -> int:
        """Of those that met an extension, how many took more than twice as long as the mean."""
        bound = 2 * fmean(self.every)
        return sum(ns > bound for ns in self.met)


def _unit(work: str, drive: str, scale: Scale, context: Context) -> Unit:
    title = f"latencies {drive}, {oftl_work.WORKLOADS[work].title}"
    packed = oftl_work.packed(oftl_work.writes(work))
    script = stack_script.make(STACK, "") + f'mounted "{STACK.file_system.mount}"\n' + _RUN
    key = hash_inputs(
        context.built.deciding(rfs=True),
        dataclasses.asdict(STACK.system),
        STACK.properties(scale),
        script,
        packed.hex(),
        hash_file(TIMER),
        kept.FORMAT,
    )

    def build(target: Path) -> None:
        inputs = oftl_work.inputs(target, packed, TIMER)
        with context.progress.step(title), context.cache.scratch("timed") as scratch:
            job = stack_job(STACK, scale, script, scratch / "media", target / kept.RAW)
            result = run_guest(
                dataclasses.replace(job, inputs=inputs), context.built, cache=context.cache
            )
            if why := guest_failure(result):
                raise RsdError(f"{title}: {why}")

    return Unit(title, "timed", key, build)


def units(context: Context) -> list[Unit]:
    """Each workload on each drive."""
    return [
        _unit(work, drive, scale, context)
        for drive, scale in DRIVES.items()
        for work in oftl_work.WORKLOADS
    ]


def extensions(trace: str) -> list[tuple[int, int]]:
    """When check-points began and ended, ns of CLOCK_MONOTONIC."""
    found = []
    for seconds, micro, took in _EVENT.findall(trace):
        end = int(seconds) * 10**9 + int(micro) * 1000
        found.append((end - int(took), end))
    return found


def timed(times: Sequence[int], during: Sequence[tuple[int, int]]) -> Timed:
    """`times` has the begin and the end of each I/O; it meets an extension that it overlaps."""
    every, met = [], []
    for begin, end in zip(times[::2], times[1::2], strict=True):
        every.append(end - begin)
        if any(begin < over and end > from_ for from_, over in during):
            met.append(end - begin)
    return Timed(every, met)


def distance(one: Sequence[int], other: Sequence[int], aside: int = ASIDE) -> float:
    """The largest vertical distance between two cumulative distributions.

    What one line has up to `aside` before the other is none: on a virtual clock two fifths of the
    latencies lie within half a microsecond, where both lines rise so steeply.
    """
    first, second = sorted(one), sorted(other)

    def above(high: Sequence[int], low: Sequence[int]) -> float:
        return max(
            bisect_right(high, at) / len(high) - bisect_right(low, at + aside) / len(low)
            for at in high
        )

    return max(above(first, second), above(second, first), 0.0)


def _read(entry: Path) -> Timed:
    raw = entry / kept.RAW
    words = array.array("Q")
    words.frombytes((raw / "times").read_bytes())
    return timed(words, extensions((raw / "trace").read_text()))


def figure9(context: Context) -> list[Claim | Limit]:
    """How many I/Os meet an extension, and what that does to them and to all. Raises RsdError."""
    entries = run_all([functools.partial(one.run, context.cache) for one in units(context)])
    each = [_read(entry) for entry in entries]
    count = len(oftl_work.WORKLOADS)
    slowed = sum(part.slowed for part in each[:count])
    with_them, without = (
        Timed([ns for one in part for ns in one.every], [ns for one in part for ns in one.met])
        for part in (each[:count], each[count:])
    )
    if without.met or not with_them.met:
        raise RsdError("figure 9: the window was extended where it should not, or was not")
    return [
        Limit(
            "I/Os that meet an extension",
            "%",
            MET_PERCENT,
            100 * len(with_them.met) / len(with_them.every),
        ),
        Limit(
            "of the I/Os that meet an extension, those that take more than twice the mean",
            "%",
            SLOWED_PERCENT,
            100 * slowed / len(with_them.met),
        ),
        Limit(
            "distance of the distributions of latency, with extensions and without",
            "",
            APART,
            distance(with_them.every, without.every),
        ),
        Claim(
            "mean latency",
            "us",
            {"all I/Os": 1, "those that meet an extension": 1},
            {
                "all I/Os": fmean(with_them.every) / 1e3,
                "those that meet an extension": fmean(with_them.met) / 1e3,
            },
            "all I/Os",
            note="the paper gives no figure: it sees little difference",
        ),
    ]
