# SPDX-License-Identifier: GPL-2.0-or-later
"""A page map with time: where the host's pages go, and when a die collects. For `./rsd bench laws`.

Written from the literature (Desnoyers, SYSTOR 2012; Van Houdt, SIGMETRICS 2013 and Performance
Evaluation 2014) and from hw/rsd-nvme/README.md. No number in it is chosen by the drive's figures.

Each die fills one block with the host's pages and, with copies of their own, one with copies. The
host's pages go to the dies in turn. A die without room for one is passed over if no more dies than
an eighth, or than one of fewer than sixteen, are without. Otherwise the host waits, unless none of
those without room empties a victim. A die begins a block for the host only if that leaves, beyond
what its victim still needs, a block's worth of free pages for the next victim; with copies among
the host's pages it gives the host a page only if so many are left. When a die has fewer than
`reserve` free blocks, it empties the one with the fewest valid pages, of several the one that has
had so few for the longest time (greedy), or the one that was filled first (fifo). It does so only
if a block has an invalid page.

A die does one operation after the other, in the order in which they came: the host's pages, and the
copies of its victim, of which eight are in flight. Each copy is a read, then a program. A page that
the host wrote anew before it was read is not copied.

A page stays valid until the program that replaces it is done. With many requests in flight it is
this that makes skewed writes cost more copies: the hottest pages have several programs queued, so
that blocks look fuller than they will be when the programs are done, and another victim is chosen.

Dies do not wait for a channel here: it must be far from saturated.
"""

import heapq
import random
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate

from law_dies import Flash

SHARED, OWN = "shared", "own"
IN_FLIGHT = 8  # copies of a die
NONE = -1
HOST, READ, PROGRAM, ERASE = range(4)


@dataclass(frozen=True)
class Geometry:
    """`blocks` a die, free and open ones included; `user` logical pages of the drive."""

    blocks: int
    pages: int
    user: int
    dies: int = 1


class _Die:
    """Its blocks, its queue, and the victim that it empties. Numbers are of the whole drive."""

    def __init__(self, drive: "PageMap", number: int) -> None:
        geometry = drive.geometry
        self.drive = drive
        self.pages = geometry.pages
        self.free = deque(range(number * geometry.blocks, (number + 1) * geometry.blocks))
        # full blocks in the order in which they were filled, and by their valid pages, in the order
        # in which they came to have so many
        self.full: dict[int, None] = {}
        self.level: list[dict[int, None]] = [{} for _ in range(self.pages + 1)]
        # the next page of the blocks that are filled; at the start of a block there is none
        self.host = self.copies = 0
        self.victim = NONE
        self.left: deque[int] = deque()  # pages of the victim that were not looked at yet
        self.owed = 0  # pages of the victim that need a place
        self.copying = 0
        self.erasing = False
        self.queue: deque[tuple[int, int]] = deque()
        self.busy = False

    def has_room(self) -> bool:
        """For a page of the host."""
        free = len(self.free) * self.pages - self.owed
        if self.drive.frontiers == SHARED:
            return free + -self.host % self.pages > self.pages
        return bool(self.host % self.pages) or free + -self.copies % self.pages >= 2 * self.pages

    def write(self, lpn: int) -> None:
        """A page of the host: it has its place at once, and is programmed in its turn."""
        self._enqueue(HOST, self._put(lpn, copy=False))
        self.collect()

    def _put(self, lpn: int, copy: bool) -> int:
        """Gives the page its place."""
        copy = copy and self.drive.frontiers == OWN
        page = self.copies if copy else self.host
        if page % self.pages == 0:
            page = self.free.popleft() * self.pages
        if copy:
            self.copies = page + 1
        else:
            self.host = page + 1
        self.drive.put(lpn, page)
        return page

    def invalidated(self, block: int) -> None:
        """A page of it is not valid any more."""
        valid = self.drive.valid[block]
        if block in self.full:
            del self.level[valid + 1][block]
            self.level[valid][block] = None
            self.collect()
        elif block == self.victim:
            self._advance()

    def programmed(self, page: int) -> None:
        """What it replaces is invalid now, and its block may be full."""
        block = page // self.pages
        if (page + 1) % self.pages == 0:
            self.full[block] = None
            self.level[self.drive.valid[block]][block] = None
            self.collect()
        self.drive.programmed(page)

    def collect(self) -> None:
        """Chooses a victim, if it is time."""
        if self.victim != NONE or len(self.free) >= self.drive.reserve:
            return
        if not any(self.level[: self.pages]):
            return
        if self.drive.policy == "fifo":
            block = next(iter(self.full))
        else:
            block = next(iter(next(blocks for blocks in self.level if blocks)))
        del self.full[block]
        del self.level[self.drive.valid[block]][block]
        self.victim = block
        self.left = deque(range(block * self.pages, (block + 1) * self.pages))
        self.owed = sum(map(self.drive.is_current, self.left))
        self._advance()

    def _advance(self) -> None:
        """Begins as many copies as may be in flight; erases the victim when nothing is valid."""
        if self.erasing:
            return
        while self.left and self.copying < IN_FLIGHT and self.drive.valid[self.victim]:
            page = self.left.popleft()
            if self.drive.is_current(page):
                self.copying += 1
                self._enqueue(READ, page)
        if not self.drive.valid[self.victim]:
            self.erasing = True
            self._enqueue(ERASE, NONE)

    def _enqueue(self, kind: int, page: int) -> None:
        self.queue.append((kind, page))
        if not self.busy:
            self._begin()

    def _begin(self) -> None:
        kind, page = self.queue.popleft()
        self.busy = True
        self.drive.begin(self, kind, page)

    def end(self, kind: int, page: int) -> None:
        """An operation has ended."""
        self.busy = False
        if kind == HOST:
            self.programmed(page)
        elif kind == READ and self.drive.is_current(page):
            self.drive.copied += 1
            self.queue.append((PROGRAM, self._put(self.drive.lpn[page], copy=True)))
        elif kind == READ:
            self.copying -= 1
            self._advance()
        elif kind == PROGRAM:
            self.copying -= 1
            self.programmed(page)
        else:
            self.free.append(self.victim)
            self.victim = NONE
            self.erasing = False
            self.collect()
        if self.queue and not self.busy:
            self._begin()


class PageMap:
    """The drive, and a host that keeps `depth` pages in flight. `written` and `copied` count pages.

    A die with fewer free blocks than `reserve` collects.
    """

    def __init__(
        self,
        geometry: Geometry,
        depth: int = 1,
        *,
        policy: str = "greedy",
        frontiers: str = OWN,
        reserve: int = 2,
    ) -> None:
        self.geometry, self.depth = geometry, depth
        self.policy, self.frontiers, self.reserve = policy, frontiers, reserve
        blocks = geometry.dies * geometry.blocks
        self.where = [NONE] * geometry.user  # the newest page of flash that has it
        self.lpn = [NONE] * (blocks * geometry.pages)
        self.replaces = [NONE] * (blocks * geometry.pages)
        self.valid = [0] * blocks
        self.dies = [_Die(self, number) for number in range(geometry.dies)]
        self.turn = 0
        self.written = self.copied = self.in_flight = 0
        flash = Flash()
        send = flash.t_cmd + flash.t_xfer
        self.time = (send + flash.t_prog, send + flash.t_read, send + flash.t_prog)
        self.time += (flash.t_cmd + flash.t_erase,)
        self.now = self.begun = 0
        self.events: list[tuple[int, int, _Die, int, int]] = []

    def put(self, lpn: int, page: int) -> None:
        """The page of flash is where it is from now on, and is still to be programmed."""
        old = self.where[lpn]
        if old != NONE and (die := self._die_of(old)).victim == old // self.geometry.pages:
            die.owed -= 1
        self.where[lpn] = page
        self.lpn[page] = lpn
        self.replaces[page] = old
        self.valid[page // self.geometry.pages] += 1

    def programmed(self, page: int) -> None:
        """What it replaces is not valid any more."""
        old = self.replaces[page]
        if old != NONE:
            block = old // self.geometry.pages
            self.valid[block] -= 1
            self._die_of(old).invalidated(block)

    def is_current(self, page: int) -> bool:
        """Has the host not written its content anew?"""
        return self.where[self.lpn[page]] == page

    def _die_of(self, page: int) -> _Die:
        return self.dies[page // self.geometry.pages // self.geometry.blocks]

    def begin(self, die: _Die, kind: int, page: int) -> None:
        """The die is busy with the operation from now on."""
        self.begun += 1
        heapq.heappush(self.events, (self.now + self.time[kind], self.begun, die, kind, page))

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
        if not self.dies[self.turn % len(self.dies)].has_room() and self._is_short():
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

    def _is_short(self) -> bool:
        """Whether the host waits for dies that are without room."""
        full = [die for die in self.dies if not die.has_room()]
        return len(full) > max(1, len(self.dies) // 8) and any(die.victim != NONE for die in full)

    def _step(self) -> None:
        self.now, _, die, kind, page = heapq.heappop(self.events)
        self.in_flight -= kind == HOST
        die.end(kind, page)


def uniform(user: int, rng: random.Random) -> Callable[[], int]:
    """Any page."""
    return lambda: int(rng.random() * user)


def zipf(user: int, theta: float, rng: random.Random) -> Callable[[], int]:
    """Rank r by r ** -theta; ranks are scattered over the space."""
    shares = list(accumulate(rank**-theta for rank in range(1, user + 1)))
    place = list(range(user))
    rng.shuffle(place)
    return lambda: place[min(bisect_left(shares, rng.random() * shares[-1]), user - 1)]


def hot_cold(user: int, accesses: float, space: float, rng: random.Random) -> Callable[[], int]:
    """Percent of the accesses to the first percent of the space, the rest to the rest."""
    hot = max(1, int(user * space / 100))

    def draw() -> int:
        if rng.random() * 100 < accesses:
            return int(rng.random() * hot)
        return hot + int(rng.random() * (user - hot))

    return draw


def steady(drive: PageMap, draw: Callable[[], int], before: float, measured: float) -> float:
    """Amplification, after a sequential fill and so many capacities, over so many capacities."""
    user = drive.geometry.user
    drive.amplification(range(user))
    drive.amplification(draw() for _ in range(int(before * user)))
    return drive.amplification(draw() for _ in range(int(measured * user)))
