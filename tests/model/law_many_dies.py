# SPDX-License-Identifier: GPL-2.0-or-later
"""A page map of many dies, with time: where the host's pages go, and when a die collects. For
`./rsd bench laws`.

Written from the literature (Desnoyers, SYSTOR 2012; Van Houdt 2014), from hw/rsd-nvme/README.md and
from what tests/model/test_copies.py says of a drive at work, not from the core. Each die fills
one block with the host's pages and one with copies. The host's pages go to the dies in turn, and a
die without room for one is passed over: it has none when its block is full and it has only one
free block, which is for a victim. When a die has fewer than two free blocks it empties that with
the fewest valid pages; of several, the one that has had so few for the longest time. Eight copies
are in flight: each is a read, then a program, and each waits in the die's queue behind what
came before, as the host's pages do. A page that the host wrote anew before it was read is not
copied. A die collects only if a block has an invalid page.

A die has few spare pages here, so that it matters how many of its pages happen to be valid. With
one request in flight all dies are given as much, and those that have more valid pages copy more.
With many, dies that are collecting are passed over, which evens that out: less is copied.

It is valid for uniform writes. Of skewed ones it copies 8% too little at depth 64.
"""

import heapq
from collections import deque
from collections.abc import Iterable

from law_dies import Flash
from law_page_map import Geometry

IN_FLIGHT = 8  # copies of a die
RESERVE = 2
HOST, READ, PROGRAM, ERASE = range(4)


class _Die:
    """Its blocks, its queue, and the victim that it empties."""

    def __init__(self, drive: "ManyDies") -> None:
        self.drive = drive
        self.pages = drive.geometry.pages
        blocks = drive.geometry.blocks
        self.free = deque(range(blocks))
        self.content: list[set[int]] = [set() for _ in range(blocks)]
        self.filled = [0] * blocks
        # full blocks by their valid pages, in the order in which they came to have so many
        self.level: list[dict[int, None]] = [{} for _ in range(self.pages + 1)]
        self.full: set[int] = set()
        self.host = self.copies = self.victim = -1
        self.left: list[int] = []  # pages of the victim that no read was begun for
        self.copying = 0
        self.queue: deque[tuple[int, int]] = deque()
        self.busy = False

    def has_room(self) -> bool:
        """For a page of the host."""
        fits = self.host >= 0 and self.filled[self.host] < self.pages
        return fits or len(self.free) >= RESERVE

    def write(self, lpn: int) -> None:
        """A page of the host: it has its place at once, and is programmed in its turn."""
        self.host = self._put(lpn, self.host)
        self._enqueue(HOST, lpn)
        self._collect()

    def forget(self, lpn: int, block: int) -> None:
        """The page is not valid there any more."""
        content = self.content[block]
        content.discard(lpn)
        if block in self.full:
            del self.level[len(content) + 1][block]
            self.level[len(content)][block] = None

    def _put(self, lpn: int, block: int) -> int:
        if block < 0 or self.filled[block] == self.pages:
            if block >= 0:
                self.full.add(block)
                self.level[len(self.content[block])][block] = None
            block = self.free.popleft()
            self.filled[block] = 0
        old = self.drive.where[lpn]
        if old is not None:
            old[0].forget(lpn, old[1])
        self.content[block].add(lpn)
        self.filled[block] += 1
        self.drive.where[lpn] = (self, block)
        return block

    def _collect(self) -> None:
        """Chooses a victim, if it is time."""
        if self.victim >= 0 or len(self.free) >= RESERVE:
            return
        valid = next((n for n, blocks in enumerate(self.level) if blocks), self.pages)
        if valid == self.pages:
            return
        self.victim = next(iter(self.level[valid]))
        del self.level[valid][self.victim]
        self.full.discard(self.victim)
        self.left = sorted(self.content[self.victim])
        self._copy()

    def _copy(self) -> None:
        """Begins as many copies as may be in flight; erases the victim when all were made."""
        while self.left and self.copying < IN_FLIGHT:
            lpn = self.left.pop(0)
            if lpn in self.content[self.victim]:
                self.copying += 1
                self._enqueue(READ, lpn)
        if not self.left and not self.copying:
            self._enqueue(ERASE, -1)

    def _enqueue(self, kind: int, lpn: int) -> None:
        self.queue.append((kind, lpn))
        if not self.busy:
            self._begin()

    def _begin(self) -> None:
        kind, lpn = self.queue.popleft()
        self.busy = True
        self.drive.begin(self, kind, lpn)

    def end(self, kind: int, lpn: int) -> None:
        """An operation has ended."""
        self.busy = False
        if kind == READ and lpn in self.content[self.victim]:
            self.drive.copied += 1
            self.copies = self._put(lpn, self.copies)
            self.queue.append((PROGRAM, lpn))
        elif kind in (READ, PROGRAM):
            self.copying -= 1
            self._copy()
        elif kind == ERASE:
            self.free.append(self.victim)
            self.victim = -1
            self._collect()
        if self.queue and not self.busy:
            self._begin()


class ManyDies:
    """The drive, and a host that keeps `depth` pages in flight. Both counts are of pages."""

    def __init__(self, geometry: Geometry, depth: int) -> None:
        self.geometry, self.depth = geometry, depth
        self.where: list[tuple[_Die, int] | None] = [None] * geometry.user
        self.dies = [_Die(self) for _ in range(geometry.dies)]
        self.turn = 0
        self.written = self.copied = self.in_flight = 0
        flash = Flash()
        send = flash.t_cmd + flash.t_xfer
        self.time = (send + flash.t_prog, send + flash.t_read, send + flash.t_prog)
        self.time += (flash.t_cmd + flash.t_erase,)
        self.now = self.begun = 0
        self.events: list[tuple[int, int, _Die, int, int]] = []

    def begin(self, die: _Die, kind: int, lpn: int) -> None:
        """The die is busy with the operation from now on."""
        self.begun += 1
        heapq.heappush(self.events, (self.now + self.time[kind], self.begun, die, kind, lpn))

    def amplification(self, work: Iterable[int]) -> float:
        """Of these writes."""
        written, copied = self.written, self.copied
        for lpn in work:
            while not self._submit(lpn):
                self._step()
        return 1 + (self.copied - copied) / (self.written - written)

    def _submit(self, lpn: int) -> bool:
        """Gives the page to the next die that has room, if the host may have one more in flight."""
        if self.in_flight == self.depth:
            return False
        for offset in range(len(self.dies)):
            turn = (self.turn + offset) % len(self.dies)
            if self.dies[turn].has_room():
                self.turn = turn + 1
                self.in_flight += 1
                self.written += 1
                self.dies[turn].write(lpn)
                return True
        return False

    def _step(self) -> None:
        self.now, _, die, kind, lpn = heapq.heappop(self.events)
        self.in_flight -= kind == HOST
        die.end(kind, lpn)
