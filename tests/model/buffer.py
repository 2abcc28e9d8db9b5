# SPDX-License-Identifier: GPL-2.0-or-later
"""The write buffer of the reference model. The rules are those of core/buffer.c's header."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from die import Tags

if TYPE_CHECKING:
    from reference import Command, Zone


@dataclass(eq=False)
class Slot:
    """A logical block on its way to the flash."""

    offset: int  # in the zone
    tags: Tags
    cause: str
    command: "Command"


@dataclass(eq=False)
class Entry:
    """A command whose slots are not all taken yet, or a flush, which has none."""

    command: "Command"
    zone: "Zone | None"
    slots: deque[Slot] = field(default_factory=deque)


class Buffer:
    """Takes slots in order, gathers them in units, and queues units that are full."""

    def __init__(
        self,
        unit: int,
        capacity: int,
        lane_of: Callable[[int], int],
        program: Callable[["Zone", int, list[Slot]], None],
        taken: Callable[["Entry"], None],
    ) -> None:
        self.unit, self.free = unit, capacity
        self.lane_of, self.program, self.taken = lane_of, program, taken
        self.line: deque[Entry] = deque()
        self.begun: dict[tuple[int, int], list[Slot]] = {}  # by zone and lane

    def write(self, entry: Entry) -> None:
        """A command's slots; it is told when all are taken."""
        self.line.append(entry)
        self.work()

    def work(self) -> None:
        """Takes what can be taken."""
        while self.line:
            entry = self.line[0]
            zone = entry.zone
            while entry.slots:
                assert zone
                slot = entry.slots[0]
                lane = self.lane_of(slot.offset)
                part = self.begun.setdefault((zone.number, lane), [])
                full = len(part) + 1 == self.unit
                if full and self.free < self.unit:
                    return
                part.append(entry.slots.popleft())
                zone.taken = slot.offset + 1
                if full:
                    self.free -= self.unit
                    del self.begun[zone.number, lane]
                    self.program(zone, lane, part)
            self.line.popleft()
            self.taken(entry)

    def programmed(self) -> None:
        """A unit has left."""
        self.free += self.unit
        self.work()

    def drop(self, zone: "Zone") -> list[Entry]:
        """Forgets a zone's slots that are in no full unit; those that still waited."""
        for key in [key for key in self.begun if key[0] == zone.number]:
            del self.begun[key]
        dropped = [entry for entry in self.line if entry.zone is zone]
        self.line = deque(entry for entry in self.line if entry.zone is not zone)
        return dropped
