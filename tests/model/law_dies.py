# SPDX-License-Identifier: GPL-2.0-or-later
"""Dies and buses alone: how long operations take that queue for them. For `./rsd bench laws`.

Written from the section "Time" of hw/rsd-nvme/README.md, not from the core. A die does one
operation at a time, in the order in which they came. A channel carries one command or one page at
a time: first commands without data, which set an array to work, and in each of these two classes
who asked first. A read needs the channel for its command, then the array, then
the channel for its page. A program needs the channel for its command and page, then the array. An
erase needs the channel for its command, then the array. Times are in ns.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

READ, PROGRAM, ERASE = "read", "program", "erase"


@dataclass(frozen=True)
class Flash:
    """Geometry and times of a drive of pages of 4 KiB and one plane."""

    channels: int = 8
    ways: int = 4
    t_cmd: int = 2_500
    t_xfer: int = 30_833
    t_read: int = 60_000
    t_prog: int = 444_278
    t_erase: int = 3_500_000

    @property
    def dies(self) -> int:
        """Die n is on channel n % channels: neighbours are on different channels."""
        return self.channels * self.ways


@dataclass(frozen=True)
class Request:
    """Operations on dies, each (die, kind), that are queued together."""

    operations: tuple[tuple[int, str], ...]


class Drive:
    """The event machine: requests in, completion times out."""

    def __init__(self, flash: Flash) -> None:
        self.flash = flash
        self.now = 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.count = 0
        self.queues: list[deque[tuple[str, Callable[[], None]]]] = [
            deque() for _ in range(flash.dies)
        ]
        self.busy = [False] * flash.dies
        # of each channel: commands without data, and what carries data
        self.bus_waits: list[tuple[deque[tuple[int, Callable[[], None]]], ...]] = [
            (deque(), deque()) for _ in range(flash.channels)
        ]
        self.bus_busy = [False] * flash.channels

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Of two events of one time the one that was told first comes first."""
        self.count += 1
        heapq.heappush(self.events, (time, self.count, action))

    def run(self) -> None:
        """Until nothing is left to be done."""
        while self.events:
            self.now, _, action = heapq.heappop(self.events)
            action()

    def enqueue(self, die: int, kind: str, done: Callable[[], None]) -> None:
        """At the end of the die's queue."""
        self.queues[die].append((kind, done))
        self._next(die)

    def _next(self, die: int) -> None:
        if self.busy[die] or not self.queues[die]:
            return
        self.busy[die] = True
        kind, done = self.queues[die].popleft()
        flash = self.flash

        def end() -> None:
            self.busy[die] = False
            done()
            self._next(die)

        def array_of_read() -> None:
            self.at(self.now + flash.t_read, lambda: self._bus(die, flash.t_xfer, True, end))

        if kind == READ:
            self._bus(die, flash.t_cmd, False, array_of_read)
        elif kind == PROGRAM:
            tenure = flash.t_cmd + flash.t_xfer
            self._bus(die, tenure, True, lambda: self.at(self.now + flash.t_prog, end))
        else:
            self._bus(die, flash.t_cmd, False, lambda: self.at(self.now + flash.t_erase, end))

    def _bus(self, die: int, tenure: int, carries_data: bool, done: Callable[[], None]) -> None:
        channel = die % self.flash.channels
        self.bus_waits[channel][carries_data].append((tenure, done))
        # at the end of this instant, when all that ask in it have asked
        self.at(self.now, lambda: self._grant(channel))

    def _grant(self, channel: int) -> None:
        commands, data = self.bus_waits[channel]
        if self.bus_busy[channel] or not (commands or data):
            return
        self.bus_busy[channel] = True
        tenure, done = (commands or data).popleft()

        def free() -> None:
            self.bus_busy[channel] = False
            done()
            self.at(self.now, lambda: self._grant(channel))

        self.at(self.now + tenure, free)


@dataclass(frozen=True)
class Outcome:
    """Latencies in ns, in the order of the requests; the time from begin to end."""

    latencies: list[int]
    elapsed: int

    @property
    def mean(self) -> float:
        """Of the latencies."""
        return sum(self.latencies) / len(self.latencies)

    def mean_of(self, chosen: Sequence[bool]) -> float:
        """Of the latencies of some requests."""
        found = [ns for ns, wanted in zip(self.latencies, chosen, strict=True) if wanted]
        return sum(found) / len(found)


def closed_loop(flash: Flash, requests: Sequence[Request], depth: int) -> Outcome:
    """So many are in flight; where one ends, the next begins."""
    drive = Drive(flash)
    latencies = [0] * len(requests)
    following = iter(range(len(requests)))
    last = 0

    def submit() -> None:
        number = next(following, None)
        if number is None:
            return
        left = len(requests[number].operations)
        begun = drive.now

        def one_is_done() -> None:
            nonlocal left, last
            left -= 1
            if left == 0:
                latencies[number] = drive.now - begun
                last = drive.now
                # the host hears of it when the buses of this instant have been given away
                drive.at(drive.now, lambda: drive.at(drive.now, submit))

        for die, kind in requests[number].operations:
            drive.enqueue(die, kind, one_is_done)

    for _ in range(depth):
        submit()
    drive.run()
    return Outcome(latencies, last)
