# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host pays for an I/O: QEMU's CPU time for the same work on our drive and on stock's.

In real time, on TCG. All drives have no page metadata, so that the guest kernel does the same.
An idle guest costs CPU time too, by its timer, and our drive keeps a guest waiting for its
flash: the cost of idling for as long as the work took is measured and subtracted.

That is not enough at queue depth 1. There stock answers while the guest still looks for other
work, and ours after a page program, for which the guest goes to sleep: falling asleep and
waking up are thousands of emulated instructions. So the cost of the device is measured with
flash that takes no time, and that of the drive with its own times stands beside it.

The guests do the same work in each of several rounds, and medians decide. They have been seen 20%
and 40% apart with the same programs, by what else was running, so the least is shown, too: a
neighbour on the same core, or in the same cache, makes work dearer and never cheaper. That goes for
each of the readings that a cost is made of: where idling is dear in one round, the work of that
round would seem cheap.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rsd.bench.base import Context, Row
from rsd.bench.cpu_meter import MARK, Meter, Reading
from rsd.bench.guest import BLOCK, CHAR, finished, fio, job_of
from rsd.errors import RsdError
from rsd.machine import GuestJob, run_guest

RUNS = 7
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
    drive: str = "preset"  # of DRIVES
    at_most: float | None = None  # of stock's cost; None: nothing is required

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


# Ours: properties of the namespace
DRIVES = {
    "preset": {"oob": "0"},
    "instant": {
        "oob": "0",
        **{f"t-{name}": "0" for name in ("cmd", "xfer", "read", "prog", "erase")},
    },
}

LOADS = {
    "randread": Load(
        "random read, queue depth 32",
        "stock",
        40_000,
        "read",
        _fio_load("randread", 32),
        at_most=0.9,
    ),
    "append": Load(
        "zone append, queue depth 32",
        "stock-zns",
        60_000,
        "write",
        _zappend(32),
        reset=True,
        at_most=0.8,
    ),
    "write": Load(
        "sequential write, queue depth 1, flash times of 0",
        "stock",
        10_000,
        "write",
        _fio_load("write", 1),
        reset=True,
        drive="instant",
        at_most=1.05,
    ),
    "slow-write": Load(
        "sequential write, queue depth 1, preset risa's times",
        "stock",
        10_000,
        "write",
        _fio_load("write", 1),
        reset=True,
    ),
}


@dataclass(frozen=True)
class Round:
    """What a guest took to idle, for one I/O, and for many."""

    idle: Reading
    one: Reading
    many: Reading


def least(rounds: Sequence[Round], ios: int) -> float:
    """CPU microseconds an I/O, each reading being that of the round in which it was least."""
    idle = min(r.idle.cpu_s / r.idle.wall_s for r in rounds)
    one, many = (
        min(span.cpu_s - idle * span.wall_s for span in spans)
        for spans in ([r.one for r in rounds], [r.many for r in rounds])
    )
    return (many - one) / ios * 1e6


def _measure(
    context: Context, system: str, loads: Mapping[str, Load], namespace: Mapping[str, str]
) -> dict[str, Round]:
    """The readings of each load, in one guest."""
    zoned = system != "stock"
    script = f"blkzone reset {BLOCK} || exit\n" if zoned else ""
    script += f"dd if=/dev/zero of={BLOCK} bs=1M count={AREA_MIB} oflag=direct 2>&1 || exit\n"
    script += f"{MARK}sleep {IDLE_S}\n{MARK}"
    for name, load in loads.items():
        # one I/O first: what the program costs by itself
        for label, ios in ((f"{name}-one", 1), (name, load.ios)):
            if load.reset and zoned:
                script += f"blkzone reset {BLOCK} || exit\nsleep 1\n"
            script += f"{MARK}{load.script(label, ios)} || exit\n{MARK}"
    meter = Meter()
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
    idle, *spans = (Reading(b.cpu_s - a.cpu_s, b.wall_s - a.wall_s) for a, b in pairs)
    return {
        name: Round(idle, one, many)
        for name, one, many in zip(loads, spans[::2], spans[1::2], strict=True)
    }


def host_cost(context: Context) -> list[Row]:
    """Every load on ours and on its stock counterpart, in interleaved guests."""
    guests: dict[tuple[str, str], dict[str, Load]] = {}
    for name, load in LOADS.items():
        for guest in ((load.stock, ""), ("rsd", load.drive)):
            guests.setdefault(guest, {})[name] = load
    rounds: dict[tuple[str, str], list[Round]] = {}
    with context.progress.step(f"host cost, {RUNS} runs") as step:
        for number in range(RUNS):
            for (system, drive), loads in guests.items():
                step.detail(f"{system} {drive}".rstrip() + f", run {number + 1}")
                found = _measure(context, system, loads, DRIVES.get(drive, {}))
                for name, readings in found.items():
                    rounds.setdefault((system, name), []).append(readings)
    return [
        row(load, {system: rounds[system, name] for system in (load.stock, "rsd")})
        for name, load in LOADS.items()
    ]


def row(load: Load, rounds: Mapping[str, Sequence[Round]]) -> Row:
    costs = {system: [least([r], load.ios) for r in found] for system, found in rounds.items()}
    lowest = {system: least(found, load.ios) for system, found in rounds.items()}
    medians = {system: statistics.median(values) for system, values in costs.items()}
    ratio = medians["rsd"] / medians[load.stock]
    shown = ", ".join(
        f"{system} {medians[system]:.2f} us ({min(values):.2f} to {max(values):.2f}, "
        f"least {lowest[system]:.2f})"
        for system, values in costs.items()
    )
    return Row(
        f"host CPU time of a 4 KiB {load.title}, against {load.stock}",
        "informative" if load.at_most is None else f"at most {load.at_most}",
        f"{ratio:.3f}: {shown}; of the least {lowest['rsd'] / lowest[load.stock]:.3f}",
        ratio,
        "",
        "wall",
        None if load.at_most is None else ratio <= load.at_most,
    )
