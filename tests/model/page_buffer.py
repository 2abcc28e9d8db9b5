# SPDX-License-Identifier: GPL-2.0-or-later
"""The write buffer of a drive with a page map, in the reference model.

The rules are those of core/buffer/buffer.c's header, as far as they are about page maps, and those
of the README about flush and FUA. It is brute force: one line of what comes, a list of units that
are begun, and the programs of units that are full, each with what waits for it.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from die import Operation

if TYPE_CHECKING:
    from page_reference import Config, FlashBlock, Page
    from reference import Command


@dataclass(eq=False)
class Entry:
    """Pages of a block that come, of one cause; or a flush, which has none."""

    pages: "list[Page]"
    cause: str = "host"
    command: "Command | None" = None
    last: bool = False  # of the command's pages
    taken: int = 0
    behind_filler: bool = False  # a flush that filled up units, and has come once more
    programs: set[Operation] = field(default_factory=set)  # that a flush waits for


@dataclass(eq=False)
class Unit:
    """What is programmed at once, as far as it is taken."""

    block: "FlashBlock"
    first: int  # its first page in the block
    pages: "list[Page]" = field(default_factory=list)
    causes: list[str] = field(default_factory=list)
    waiting: "list[Command]" = field(default_factory=list)  # once for each of their pages


class Owner(Protocol):
    """Who has the buffer."""

    counters: Counter[str]

    def program_unit(self, unit: Unit) -> Operation:
        """The unit is full: its program is queued."""

    def fill_up(self, block: "FlashBlock") -> None:
        """Filler comes for the rest of the unit that is begun in a block."""

    def buffered(self, entry: Entry) -> None:
        """All of it is taken."""

    def part_done(self, cmd: "Command") -> None:
        """A command waits for one thing less."""


class PageBuffer:
    """Takes pages in the order in which they come, over all blocks."""

    def __init__(self, owner: Owner, cfg: "Config", unit: int, dies: int) -> None:
        self.owner, self.unit = owner, unit
        self.protected = cfg.get("plp", "on") == "on"
        self.write_through = cfg.get("ack", "program") == "program"
        self.room = max(int(cfg.get("write-buffer", 0)) // 4096, unit * dies)
        self.line: deque[Entry] = deque()
        self.begun: list[Unit] = []
        self.full: dict[Operation, Unit] = {}  # by their programs, the oldest first
        self.flushes: list[Entry] = []
        self.taking = False

    def busy(self) -> bool:
        """Whether something goes on by itself."""
        return bool(self.line or self.full)

    def come(self, entry: Entry) -> None:
        """Something comes. What answers to what is taken is taken in its turn."""
        self.line.append(entry)
        self.take()

    def take(self) -> None:
        """Takes what there is room for."""
        if self.taking:
            return
        self.taking = True
        while self.line and self._take(self.line[0]):
            entry = self.line.popleft()
            if entry.pages:
                if entry.last and entry.command and self._awaits_program(entry.command):
                    self._secure_command(entry.command)
                self.owner.buffered(entry)
            else:
                self._begin_flush(entry)
        self.taking = False

    def _awaits_program(self, cmd: "Command") -> bool:
        return self.write_through or (cmd.fua and not self.protected)

    def _take(self, entry: Entry) -> bool:
        """False: the room is not enough for a unit that would be full."""
        for page in entry.pages[entry.taken :]:
            first = page.index // self.unit * self.unit
            fills = page.index + 1 == first + self.unit
            if fills and self.room < self.unit:
                return False
            entry.taken += 1
            page.taken = True
            unit = self._unit_of(page.block, first)
            unit.pages.append(page)
            unit.causes.append(entry.cause)
            if entry.command and self._awaits_program(entry.command):
                entry.command.waits_for += 1
                unit.waiting.append(entry.command)
            if fills:
                self.begun.remove(unit)
                self.room -= self.unit
                self.full[self.owner.program_unit(unit)] = unit
        return True

    def _unit_of(self, block: "FlashBlock", first: int) -> Unit:
        for unit in self.begun:
            if unit.block is block and unit.first == first:
                return unit
        self.begun.append(Unit(block, first))
        return self.begun[-1]

    def _secure(self, unit: Unit) -> bool:
        """Whether a begun unit is safe. If not, it is filled up, and safe when it is programmed."""
        if self.protected:
            return True
        if len(unit.block.given) < unit.first + self.unit:
            self.owner.fill_up(unit.block)
        return False

    def _secure_command(self, cmd: "Command") -> None:
        """All of a command is taken: it does not wait for begun units that are safe."""
        for unit in list(self.begun):
            if cmd in unit.waiting and self._secure(unit):
                for _ in range(unit.waiting.count(cmd)):
                    unit.waiting.remove(cmd)
                    self.owner.part_done(cmd)

    def _begin_flush(self, entry: Entry) -> None:
        """What came before it is taken. Units without a page of the host need not be safe."""
        assert entry.command
        if not entry.behind_filler:
            for unit in list(self.begun):
                if "host" in unit.causes and not self._secure(unit):
                    entry.behind_filler = True
            if entry.behind_filler:
                self.line.append(entry)
                return
        entry.programs = set(self.full)
        self.flushes.append(entry)
        self._end_flushes()

    def _end_flushes(self) -> None:
        for entry in list(self.flushes):
            if not entry.programs & self.full.keys():
                self.flushes.remove(entry)
                assert entry.command
                self.owner.part_done(entry.command)

    def programmed(self, program: Operation) -> None:
        """A unit has left."""
        unit = self.full.pop(program)
        for cause in unit.causes:
            self.owner.counters[f"prog_{cause}"] += 1
        for cmd in unit.waiting:
            self.owner.part_done(cmd)
        self.room += self.unit
        self._end_flushes()
        self.take()
