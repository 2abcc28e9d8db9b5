# SPDX-License-Identifier: GPL-2.0-or-later
"""Merges of a block map and of FAST, counted and nothing else. For `./rsd bench laws`.

Written from Lee et al., "A log buffer-based flash translation layer using fully-associative sector
translation" (ACM TECS 2007), and for the block map from REDO section 3 (a data block, and a
replacement block while it is overwritten). Pages of a block are programmed in order: a page that is
skipped is filled, with the newest copy if there is one. A drive here was filled in sequence before,
so that every logical block has all of its pages. Only whole pages are written, one at a time.
"""

from collections import Counter, deque
from collections.abc import Sequence


class BlockMap:
    """Every logical block has a data block and, while it is overwritten, a replacement block."""

    def __init__(self, pages: int, replacements: Sequence[int]) -> None:
        """`replacements`: for each die, blocks beyond those that its data blocks take."""
        self.pages, self.dies, self.replacements = pages, len(replacements), replacements
        # logical block: pages in its replacement, and whether copies lie before a host's page
        self.begun: dict[int, tuple[int, bool]] = {}
        self.count: Counter[str] = Counter()

    def write(self, lpn: int) -> None:
        """Into the replacement block, at the page's own place."""
        block, offset = divmod(lpn, self.pages)
        if block in self.begun and offset < self.begun[block][0]:
            self._merge(block)
        if block not in self.begun:
            same_die = [other for other in self.begun if other % self.dies == block % self.dies]
            if len(same_die) == self.replacements[block % self.dies]:
                self._merge(same_die[0])
            self.begun[block] = (0, False)
        filled, gaps = self.begun[block]
        self.count["copies"] += offset - filled
        self.begun[block] = (offset + 1, gaps or offset > filled)
        if offset + 1 == self.pages:
            self._merge(block)

    def _merge(self, block: int) -> None:
        filled, gaps = self.begun.pop(block)
        left = self.pages - filled
        self.count["copies"] += left
        self.count["full" if gaps else "partial" if left else "switch"] += 1
        self.count["erases"] += 1


class Fast:
    """Data blocks, one sequential log block and `logs` random ones."""

    def __init__(self, pages: int, logs: int) -> None:
        self.pages, self.logs = pages, logs
        self.sequential: tuple[int, int] | None = None  # logical block and pages written
        self.random: deque[list[int]] = deque()  # logical pages in the order of their programs
        self.newest: dict[int, tuple[int, int]] = {}  # page: where in the random log it is
        self.serial = 0  # of the first of the random log blocks
        self.count: Counter[str] = Counter()

    def write(self, lpn: int) -> None:
        """A page at the beginning of a block opens the sequential log block."""
        block, offset = divmod(lpn, self.pages)
        if self.sequential and self.sequential[0] == block:
            filled = self.sequential[1]
            if offset == filled:
                self.newest.pop(lpn, None)
                self.sequential = (block, filled + 1)
                if filled + 1 == self.pages:
                    self._end_sequential()
                return
            self._end_sequential()
        if offset == 0:
            if self.sequential:
                self._end_sequential()
            self.newest.pop(lpn, None)
            self.sequential = (block, 1)
            if self.pages == 1:
                self._end_sequential()
            return
        if not self.random or len(self.random[-1]) == self.pages:
            if len(self.random) == self.logs:
                self._reclaim()
            self.random.append([])
        log = self.random[-1]
        self.newest[lpn] = (self.serial + len(self.random) - 1, len(log))
        log.append(lpn)

    def _end_sequential(self) -> None:
        """The sequential log block becomes the data block, after the rest was copied to it."""
        assert self.sequential
        block, filled = self.sequential
        self.sequential = None
        self.count["switch" if filled == self.pages else "partial"] += 1
        self._becomes_data(block, self.pages - filled)

    def _becomes_data(self, block: int, copies: int) -> None:
        self.count["copies"] += copies
        self.count["erases"] += 1
        for lpn in range(block * self.pages, (block + 1) * self.pages):
            self.newest.pop(lpn, None)

    def _reclaim(self) -> None:
        """Every logical block that the oldest random log block has a newest page of is merged."""
        oldest = self.random[0]
        for at, lpn in enumerate(oldest):
            if self.newest.get(lpn) == (self.serial, at):
                block = lpn // self.pages
                if self.sequential and self.sequential[0] == block:
                    self.sequential = None
                    self.count["erases"] += 1
                self.count["full"] += 1
                self._becomes_data(block, self.pages)
        self.random.popleft()
        self.serial += 1
        self.count["erases"] += 1
