# SPDX-License-Identifier: GPL-2.0-or-later
"""What a block-mapped drive does to its flash, command by command: no time, no dies, no maps.

Written from the rules (REDO section 3; the description at the head of block-ftl.c), and shaped
differently from the core on purpose. Flash is a set of lists of pages; a page carries its LBA and
a version. Where an LBA's content is, is found by looking through all of the flash for its highest
version: there is no map that could be wrong. Nothing is in flight: a command is done before the
next one begins, and a block that was erased is free at once. If several pages are
programmed at once, a grain, those of one that is not complete are in the write buffer, uncounted.
"""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Page:
    """A programmed page; filler has lba None."""

    lba: int | None
    version: int = 0
    tag: int = 0
    cause: str = "pad"


@dataclass(eq=False)
class Unit:
    """What is erased at once: a flash block, or one of every die."""

    pages: list[Page] = field(default_factory=list)


class Flash:
    """All units in use, and what happened to them."""

    def __init__(self, span: int, lanes: int, lbas: int, grain: int = 1) -> None:
        self.span, self.lanes, self.lbas, self.grain = span, lanes, lbas, grain
        self.units: list[Unit] = []
        self.count: Counter[str] = Counter()
        self.version = 0
        self.content: dict[int, int] = {}  # LBAs that have any: the version that was written last

    def take(self) -> Unit:
        """A unit that is erased."""
        self.units.append(Unit())
        return self.units[-1]

    def erase(self, unit: Unit, cause: str) -> None:
        """Every lane that has a page is erased."""
        self.units.remove(unit)
        self.count[f"erase_{cause}"] += min(self.lanes, len(unit.pages) // self.grain)

    def append(self, unit: Unit, page: Page) -> None:
        """The unit's next page; its grain is programmed when it is complete."""
        unit.pages.append(page)
        if len(unit.pages) % self.grain == 0:
            for done in unit.pages[-self.grain :]:
                self.count[f"prog_{done.cause}"] += 1

    def newest(self, lba: int) -> tuple[Unit, Page]:
        """The page of an LBA that has content."""
        found = [
            (page.version, unit, page)
            for unit in self.units
            for page in unit.pages
            if page.lba == lba
        ]
        version, unit, page = max(found, key=lambda entry: entry[0])
        assert version == self.content[lba], f"LBA {lba}: its content was lost"
        return unit, page

    def program(self, unit: Unit, lba: int, tag: int) -> None:
        """A page of the host."""
        assert len(unit.pages) < self.span
        self.version += 1
        self.content[lba] = self.version
        self.append(unit, Page(lba, self.version, tag, "host"))

    def fill(self, unit: Unit, block: int, end: int) -> int:
        """Copies, or pads, up to a page of a logical block. Pages copied."""
        copies = 0
        while len(unit.pages) < end:
            lba = block * self.span + len(unit.pages)
            if lba in self.content:
                page = self.newest(lba)[1]
                self.append(unit, Page(lba, page.version, page.tag, "merge"))
                copies += 1
            else:
                self.append(unit, Page(None))
        self.count["read_merge"] += copies
        return copies

    def length(self, block: int) -> int:
        """Pages of a logical block up to the last that has content."""
        first = block * self.span
        return max(
            (n + 1 for n in range(self.span) if first + n in self.content),
            default=0,
        )

    def read(self, lba: int) -> int:
        """Its tag, 0 if it has no content."""
        if lba not in self.content:
            self.count["unwritten_reads"] += 1
            return 0
        self.count["read_host"] += 1
        return self.newest(lba)[1].tag


class BlockDrive:
    """A data block, and a replacement block while it is overwritten.

    Without `replacements` that is as long as a command is.
    """

    def __init__(self, flash: Flash, groups: int, units: int, replacements: bool = True) -> None:
        self.flash, self.groups, self.replacements = flash, groups, replacements
        self.free = [units] * groups
        self.home: dict[int, Unit] = {}
        # Opened first comes first. Value: the unit, and whether copies lie before a host's page
        self.replacement: dict[int, tuple[Unit, bool]] = {}

    def _take(self, block: int) -> Unit:
        group = block % self.groups
        if not self.free[group]:
            self.merge(next(b for b in self.replacement if b % self.groups == group))
        self.free[group] -= 1
        return self.flash.take()

    def _erase(self, block: int, unit: Unit, cause: str) -> None:
        self.flash.erase(unit, cause)
        self.free[block % self.groups] += 1

    def merge(self, block: int) -> None:
        """The replacement block gets the rest and becomes the data block."""
        unit, gaps = self.replacement.pop(block)
        copies = self.flash.fill(unit, block, self.flash.length(block))
        kind = "full" if gaps else "partial" if copies else "switch"
        self.flash.count[f"merge_{kind}"] += 1
        self._erase(block, self.home[block], "merge")
        self.home[block] = unit

    def write(self, lba: int, tag: int) -> None:
        """One page."""
        block, offset = divmod(lba, self.flash.span)
        if block in self.replacement and offset < len(self.replacement[block][0].pages):
            self.merge(block)
        if block not in self.home:
            self.home[block] = self._take(block)
        elif block not in self.replacement and offset < len(self.home[block].pages):
            self.replacement[block] = (self._take(block), False)
        if block in self.replacement:
            unit, gaps = self.replacement[block]
            gaps |= self.flash.fill(unit, block, offset) > 0
            self.replacement[block] = (unit, gaps)
        else:
            unit = self.home[block]
            self.flash.fill(unit, block, offset)
        self.flash.program(unit, lba, tag)
        if block in self.replacement and len(unit.pages) == self.flash.span:
            self.merge(block)

    def end_write(self, lba: int) -> None:
        """A command has written its last page of this logical block."""
        block = lba // self.flash.span
        if not self.replacements and block in self.replacement:
            self.merge(block)

    def trim(self, lba: int) -> None:
        """One page; with the last one of a logical block go its blocks."""
        self.flash.content.pop(lba, None)
        block = lba // self.flash.span
        if not self.flash.length(block):
            if block in self.replacement:
                self._erase(block, self.replacement.pop(block)[0], "host")
            if block in self.home:
                self._erase(block, self.home.pop(block), "host")
