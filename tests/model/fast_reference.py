# SPDX-License-Identifier: GPL-2.0-or-later
"""What FAST does to its flash, command by command.

Written from the rules of the paper (Lee et al. 2007, as SFS section 4.4 uses it) with those that
in-order programming adds (the description at the head of fast-ftl.c), on block_reference.Flash:
the newest page is searched for, not mapped. There are no groups of dies here, which decide where
a block is and not whether there is one.
"""

from block_reference import Flash, Unit


class FastDrive:
    """Data blocks, a sequential log block, random ones."""

    def __init__(self, flash: Flash, logs: int) -> None:
        self.flash, self.logs = flash, logs
        self.data: dict[int, Unit] = {}
        self.sequential: tuple[int, Unit] | None = None
        self.random: list[Unit] = []

    def _becomes_data(self, block: int, unit: Unit) -> None:
        if block in self.data:
            self.flash.erase(self.data[block], "merge")
        self.data[block] = unit

    def merge_sequential(self) -> None:
        """Switch, or partial if something is left to be copied."""
        assert self.sequential
        block, unit = self.sequential
        copies = self.flash.fill(unit, block, self.flash.length(block))
        self.flash.count["merge_partial" if copies else "merge_switch"] += 1
        self.sequential = None
        self._becomes_data(block, unit)

    def merge_full(self, block: int) -> None:
        """All of a logical block in a new one."""
        unit = self.flash.take()
        self.flash.fill(unit, block, self.flash.length(block))
        self.flash.count["merge_full"] += 1
        if self.sequential and self.sequential[0] == block:
            self.flash.erase(self.sequential[1], "merge")
            self.sequential = None
        self._becomes_data(block, unit)

    def reclaim(self) -> None:
        """The oldest block of the random log is emptied and erased."""
        victim = self.random[0]
        for page in victim.pages:
            lba = page.lba
            assert lba is not None
            # a copy made for this victim has the same version: it is as good
            if self.flash.content.get(lba) == page.version and not any(
                copy.version == page.version and copy.lba == lba
                for unit in self.flash.units
                if unit is not victim
                for copy in unit.pages
            ):
                self.merge_full(lba // self.flash.span)
        self.random.remove(victim)
        self.flash.erase(victim, "merge")

    def write(self, lba: int, tag: int) -> None:
        """One page."""
        block, offset = divmod(lba, self.flash.span)
        if self.sequential and self.sequential[0] == block:
            unit = self.sequential[1]
            if offset == len(unit.pages):
                self.flash.program(unit, lba, tag)
                if len(unit.pages) == self.flash.span:
                    self.merge_sequential()
                return
            self.merge_sequential()
        if block not in self.data and offset == 0:
            self.data[block] = self.flash.take()
        if block in self.data and offset == len(self.data[block].pages):
            self.flash.program(self.data[block], lba, tag)
        elif offset == 0:
            if self.sequential:
                self.merge_sequential()
            self.sequential = (block, self.flash.take())
            self.flash.program(self.sequential[1], lba, tag)
            if self.flash.span == 1:
                self.merge_sequential()
        else:
            if not self.random or len(self.random[-1].pages) == self.flash.span:
                if len(self.random) == self.logs:
                    self.reclaim()
                    self.write(lba, tag)  # its place may be another one now
                    return
                self.random.append(self.flash.take())
            self.flash.program(self.random[-1], lba, tag)

    def trim(self, lba: int) -> None:
        """One page; with the last one of a logical block go its blocks, but for random ones."""
        self.flash.content.pop(lba, None)
        block = lba // self.flash.span
        if not self.flash.length(block):
            if self.sequential and self.sequential[0] == block:
                self.flash.erase(self.sequential[1], "host")
                self.sequential = None
            if block in self.data:
                self.flash.erase(self.data.pop(block), "host")
