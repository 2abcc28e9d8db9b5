# SPDX-License-Identifier: GPL-2.0-or-later
"""What happened before a power cut: marks and system calls, NVMe commands, NAND operations.

All have the time of one clock: in virtual time the guest's TSC counts the drive's nanoseconds.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rsd.crash.campaign import Campaign
from rsd.crash.record import CALLS
from rsd.crash.states import Flying, Operation, State

LINE = re.compile(r"^ *(.+)-(\d+) +\[\d+\] \S+ +(\d+): (\w+): (.*)$", re.M)
COMMAND = re.compile(r"nsid=(\d+),.* cmd=\(nvme_cmd_(\w+) ?([^)]*)\)")
BLOCKS = re.compile(r"slba=(\d+), len=(\d+)")
CALL = re.compile(r"NR (\d+) \(([0-9a-f]+)")
OUTCOMES = {"a": "absent", "t": "torn", "c": "complete"}
COMMANDS = {2: "zeroes are written", 3: "zone reset", 4: "zone finish", 5: "trim"}


@dataclass(frozen=True)
class Event:
    """One line of a timeline."""

    time_ns: int
    who: str
    what: str


def events(campaign: Campaign) -> list[Event]:
    """All of a run's work, in their order."""
    trace = (campaign.directory / "trace").read_text(errors="replace")
    found = [*_traced(trace), *map(_operation, campaign.operations[1:])]
    return sorted(found, key=lambda event: event.time_ns)


def before(campaign: Campaign, state: State, all_events: Sequence[Event], most: int) -> list[str]:
    """The last lines before the power cut of a state, and what was in flight then."""
    following = campaign.operations[state.op + 1 :]
    # A cut after an operation happens just before the next one is done.
    end = following[0].time_ns if following else math.inf
    all_events = [event for event in all_events if event.time_ns < end]
    lines = [f"{'ns':>15}  {'who':16}  what"]
    lines += [f"{e.time_ns:15,}  {e.who:16}  {e.what}" for e in all_events[-most:]]
    lines.append(f"{'':15}  power cut after operation {state.op}")
    flying = campaign.operations[state.op].flying
    letters = state.outcomes.ljust(len(flying), "a")
    for one, letter in zip(flying, letters, strict=False):
        lines.append(f"{'':15}  {'in flight':16}  {_flying(one)}: {OUTCOMES[letter]}")
    return lines


def calls(campaign: Campaign) -> list[str]:
    """What the work did since it had made everything durable: operations and calls of sequences.

    Of a script, system calls that change files; one that makes a file counts with what fills it.
    """
    work = campaign.settings.work
    if not work.script:
        every = [one for each in work.works for one in (*each.operations, each.call)]
        return [" ".join(map(str, one)) for one in every]
    trace = (campaign.directory / "trace").read_text(errors="replace")
    found = [
        event.what.split("(")[0]
        for event in _traced(trace)
        if event.who.split("-")[0] not in ("mark", *OURS) and not event.what.startswith("NVMe")
    ]
    last = max((at for at, what in enumerate(found) if what == "sync"), default=-1)
    # The end of the tracing is a write, too.
    return found[last + 1 : -1]


# What `durable` runs: its system calls are not the work's.
OURS = ("durable", "rsdctl")


def _flying(one: Flying) -> str:
    where = f"block {one.block}" + (f", page {one.page}" if one.kind == "program" else "")
    since = "waits in the write buffer" if one.waiting else f"since {one.since_ns:,} ns"
    kept = ", protected" if one.protected else ""
    return f"{one.kind} of {where}, {since}{kept}"


def _operation(one: Operation) -> Event:
    if one.kind == "command":
        what = f"{COMMANDS.get(one.block, 'format')}, LBA {one.lba}"
    elif one.kind == "cut":
        what = "power cut"
    else:
        what = f"{one.kind} of block {one.block}" + (
            f", page {one.page}" if one.kind == "program" else ""
        )
    return Event(one.time_ns, "drive", f"operation {one.number}: {what}")


def _traced(trace: str) -> Iterator[Event]:
    """Of the kernel's trace. A mark is written with a system call, which is not the work's."""
    held: Event | None = None
    for name, pid, time, kind, rest in LINE.findall(trace):
        marked = kind == "tracing_mark_write"
        if held and not marked:
            yield held
        held = None
        who = f"{name}-{pid}"
        if marked:
            yield Event(int(time), "mark", rest)
        elif kind == "sys_enter" and (call := CALL.search(rest)):
            number = int(call[1])
            argument = f"({int(call[2], 16)})" if number in _BY_FILE else ""
            held = Event(int(time), who, f"{CALLS.get(number, number)}{argument}")
        elif kind == "nvme_setup_cmd" and (command := COMMAND.search(rest)):
            yield Event(int(time), who, _command(*command.groups()))
    if held:
        yield held


def _command(namespace: str, name: str, rest: str) -> str:
    blocks = BLOCKS.search(rest)
    if name == "write" and blocks and "ctrl=0x4" in rest:
        name = "write (FUA)"
    where = f", LBA {blocks[1]}, {int(blocks[2]) + 1} blocks" if blocks else ""
    which = f", namespace {namespace}" if namespace != "1" else ""
    return f"NVMe {name.replace('_', ' ')}{where}{which}"


# Calls whose first argument is a file descriptor
_BY_FILE = {
    number
    for number, name in CALLS.items()
    if name in ("write", "pwrite64", "writev", "pwritev", "fsync", "fdatasync", "ftruncate")
    or name in ("fchmod", "fsetxattr", "fallocate", "syncfs", "sync_file_range")
}
