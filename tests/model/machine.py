# SPDX-License-Identifier: GPL-2.0-or-later
"""What the reference model is driven by: events in order of time, and resources that are shared."""

import heapq
from collections import deque
from collections.abc import Callable


class Machine:
    """Events in order of time; at equal times, in the order in which they were scheduled.

    An instant has two steps, repeated until nothing is left at that instant: all events, then
    all buses that are wanted (by number) are given away. So a bus is given away only when
    everything that happens at that time was seen.
    """

    def __init__(self) -> None:
        self.now = 0
        self.wanted: dict[int, Callable[[], None]] = {}
        self._sequence = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []

    def at(self, when: int, action: Callable[[], None]) -> None:
        """Schedules an action."""
        self._sequence += 1
        heapq.heappush(self._heap, (when, self._sequence, action))

    def run(self, until: int) -> None:
        """Carries out the events up to and including a time, and moves to it."""
        while self._heap and self._heap[0][0] <= until:
            self.now = self._heap[0][0]
            while self._heap and self._heap[0][0] == self.now:
                heapq.heappop(self._heap)[2]()
            self.give_buses()
        self.now = max(self.now, until)

    def give_buses(self) -> None:
        """The second step of an instant."""
        wanted, self.wanted = self.wanted, {}
        for channel in sorted(wanted):
            wanted[channel]()


class Bus:
    """A channel: first come first served in two classes, commands without data first.

    It is given away once for each instant; tenures that take no time leave it free for the next.
    """

    def __init__(self, machine: Machine, channel: int) -> None:
        self.machine = machine
        self.channel = channel
        # (how long, what happens when it is granted), commands without data first
        self.queues: tuple[deque[tuple[int, Callable[[], None]]], ...] = (deque(), deque())
        self.free_at = 0

    def request(self, with_data: bool, tenure: int, granted: Callable[[], None]) -> None:
        """Someone wants the bus for a time."""
        self.queues[with_data].append((tenure, granted))
        self._want()

    def _want(self) -> None:
        self.machine.wanted[self.channel] = self._give

    def _give(self) -> None:
        machine = self.machine
        while any(self.queues) and self.free_at <= machine.now:
            tenure, granted = (self.queues[0] or self.queues[1]).popleft()
            self.free_at = machine.now + tenure
            granted()
        if any(self.queues):
            machine.at(self.free_at, self._want)
