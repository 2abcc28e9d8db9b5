# SPDX-License-Identifier: GPL-2.0-or-later
"""A page map alone: what is copied, without time. For `./rsd bench laws`.

Written from the literature (Desnoyers, SYSTOR 2012; Van Houdt, SIGMETRICS 2013 and Performance
Evaluation 2014), not from the core. A drive is a number of dies that share nothing but the host's
pages, which go to them in turn. A die has blocks; one is filled by the host, and, with copies of
their own, another one by collection. When fewer than `reserve` blocks of a die are free, the block
with the fewest valid pages (greedy) or the one that was filled first (fifo) is emptied and erased.
That goes on while the host writes: PACE copies for each of its pages, and more if there is no block
for its next one. So a hot page may become invalid before its turn to be copied comes. PACE is the
one number of the model that no paper gives: from 1 to 8 it moves amplification by 5%.

The model is not valid for many small dies. Its dies take turns even when one of them is full, and
PACE does not follow the load. Uniform writes to 32 dies of 68 blocks of 32 pages, at 10%: a die has
200 spare pages, and its valid pages vary by 30 (standard deviation). The model has 6.60 there. The
drive has 7.61 with seldom requests, 7.00 at depth 8 and 6.07 at depth 64. law_many_dies.py is for
these.
"""

import random
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate

SHARED, OWN = "shared", "own"
PACE = {SHARED: 3, OWN: 1}


@dataclass(frozen=True)
class Geometry:
    """`blocks` a die, free and open ones included; `user` logical pages of the drive."""

    blocks: int
    pages: int
    user: int
    dies: int = 1


class _Die:
    """The blocks of a die; what each holds is a set of logical pages."""

    def __init__(self, drive: "PageMap") -> None:
        geometry = drive.geometry
        self.drive = drive
        self.pages = geometry.pages
        self.free = list(range(geometry.blocks))
        self.content: list[set[int]] = [set() for _ in range(geometry.blocks)]
        self.filled = [0] * geometry.blocks
        self.full: set[int] = set()
        self.order: deque[int] = deque()
        # full blocks by their valid pages
        self.level: list[set[int]] = [set() for _ in range(geometry.pages + 1)]
        self.host = self.copies = -1
        self.victim = -1
        self.left: list[int] = []  # pages of the victim that were valid when it was chosen

    def forget(self, lpn: int, block: int) -> None:
        """The page is not valid there any more."""
        content = self.content[block]
        content.discard(lpn)
        if block in self.full:
            self.level[len(content) + 1].discard(block)
            self.level[len(content)].add(block)

    def _put(self, lpn: int, block: int) -> int:
        """Programs the page; gives the frontier, which is another one if the block is full."""
        if block < 0 or self.filled[block] == self.pages:
            if block >= 0:
                self.full.add(block)
                self.order.append(block)
                self.level[len(self.content[block])].add(block)
            block = self.free.pop()
            self.filled[block] = 0
        old = self.drive.where[lpn]
        if old is not None:
            old[0].forget(lpn, old[1])
        self.content[block].add(lpn)
        self.filled[block] += 1
        self.drive.where[lpn] = (self, block)
        return block

    def write(self, lpn: int) -> None:
        """A page of the host, and what is to be collected for it."""
        self.host = self._put(lpn, self.host)
        copies = 0
        while self.victim >= 0 or len(self.free) < self.drive.reserve:
            if self.victim < 0:
                self._choose()
            while self.left:
                if copies >= PACE[self.drive.frontiers] and self._host_has_room():
                    return
                copies += self._copy(self.left.pop())
            self.free.append(self.victim)
            self.victim = -1

    def _host_has_room(self) -> bool:
        """For its next page, and then for what is left of the victim."""
        if self.filled[self.host] < self.pages:
            return len(self.free) >= 1
        fits = self.drive.frontiers == SHARED and len(self.left) < self.pages
        return len(self.free) >= (1 if fits else 2)

    def _choose(self) -> None:
        if self.drive.policy == "fifo":
            self.victim = self.order.popleft()
        else:
            self.victim = min(next(level for level in self.level if level))
            self.order.remove(self.victim)
        self.full.discard(self.victim)
        self.level[len(self.content[self.victim])].discard(self.victim)
        self.left = sorted(self.content[self.victim])

    def _copy(self, lpn: int) -> int:
        """Moves a page of the victim, if it is still valid; gives the pages moved."""
        if lpn not in self.content[self.victim]:
            return 0
        self.drive.copied += 1
        if self.drive.frontiers == OWN:
            self.copies = self._put(lpn, self.copies)
        else:
            self.host = self._put(lpn, self.host)
        return 1


class PageMap:
    """The drive. `copied` and `written` count pages."""

    def __init__(
        self,
        geometry: Geometry,
        *,
        policy: str = "greedy",
        frontiers: str = OWN,
        reserve: int = 2,
    ) -> None:
        self.geometry, self.policy, self.frontiers = geometry, policy, frontiers
        self.reserve = reserve
        self.where: list[tuple[_Die, int] | None] = [None] * geometry.user
        self.dies = [_Die(self) for _ in range(geometry.dies)]
        self.written = self.copied = 0

    def write(self, lpn: int) -> None:
        """One page of the host."""
        self.dies[self.written % len(self.dies)].write(lpn)
        self.written += 1

    def trim(self, lpn: int) -> None:
        """It has no content any more."""
        old = self.where[lpn]
        if old is not None:
            old[0].forget(lpn, old[1])
            self.where[lpn] = None

    def amplification(self, work: Iterable[int]) -> float:
        """Of these writes."""
        written, copied = self.written, self.copied
        for lpn in work:
            self.write(lpn)
        return 1 + (self.copied - copied) / (self.written - written)


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
    for lpn in range(user):
        drive.write(lpn)
    drive.amplification(draw() for _ in range(int(before * user)))
    return drive.amplification(draw() for _ in range(int(measured * user)))
