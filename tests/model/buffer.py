# SPDX-License-Identifier: GPL-2.0-or-later
"""The write buffer of the reference model. The rules are those of core/buffer/buffer.c's header."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from die import BLANK, Tags

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


@dataclass(eq=False)
class Area:
    """A random write area, whose rules are those of core/ftl/zone/zrwa.c's header."""

    start: int  # in the zone
    pages: dict[int, Tags] = field(default_factory=dict)  # by offset in the zone
    end: int = 0  # behind the last page that came
    open: bool = True  # the zone has it


@dataclass(eq=False)
class AreaEntry(Entry):
    """A command to a random write area that is not all taken yet."""

    area: Area = field(default_factory=lambda: Area(0))
    writes: deque[tuple[int, Tags]] = field(default_factory=deque)
    owed: int = 0  # pages to commit before it goes on


class Buffer:
    """Takes slots in order, gathers them in units, and queues units that are full."""

    def __init__(
        self,
        unit: int,
        capacity: int,
        lane_of: Callable[[int], int],
        program: Callable[["Zone", int, list[Slot]], None],
        taken: Callable[["Entry"], None],
        area_size: int,
        area_flush: int,
        count: Callable[[str], None],
    ) -> None:
        self.unit, self.free = unit, capacity
        self.area_size, self.area_flush, self.count = area_size, area_flush, count
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
            if isinstance(entry, AreaEntry):
                if not self._take_area(entry):
                    return
            else:
                while entry.slots:
                    assert entry.zone
                    if not self._take(entry.zone, entry.slots[0]):
                        return
                    entry.slots.popleft()
            self.line.popleft()
            self.taken(entry)

    def _take(self, zone: "Zone", slot: Slot) -> bool:
        """A slot that may complete a unit, unless there is no room for that."""
        lane = self.lane_of(slot.offset)
        part = self.begun.setdefault((zone.number, lane), [])
        full = len(part) + 1 == self.unit
        if full and self.free < self.unit:
            return False
        part.append(slot)
        zone.taken = slot.offset + 1
        if full:
            self.free -= self.unit
            del self.begun[zone.number, lane]
            self.program(zone, lane, part)
        return True

    def _take_area(self, entry: AreaEntry) -> bool:
        """Pages go to the area, which is made to move on for them; False: there is no room."""
        area, zone = entry.area, entry.zone
        assert zone
        while entry.owed or entry.writes:
            if entry.owed:
                slot = self.committed(area, entry.command)
                if not self._take(zone, slot):
                    return False
                zone.accepted[slot.offset] = slot.tags, slot.cause
                area.pages.pop(area.start, None)
                area.start += 1
                entry.owed -= 1
                by_write = entry.command.op not in ("commit", "finish")
                self.count("zrwa_implicit" if by_write else "zrwa_explicit")
            elif entry.writes[0][0] >= area.start + self.area_size:
                entry.owed = self.area_flush
            else:
                offset, tags = entry.writes.popleft()
                if offset in area.pages:
                    self.count("zrwa_overwrites")
                area.pages[offset] = tags
        return True

    def committed(self, area: Area, command: "Command") -> Slot:
        """The area's first page on its way to the flash; filler if nobody wrote it."""
        tags = area.pages.get(area.start)
        return Slot(area.start, tags or BLANK, "host" if tags else "pad", command)

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
