# SPDX-License-Identifier: GPL-2.0-or-later
"""Where collection copies to, and what that costs: ftl=page in rsdsim against a page map without
time, on one die, for uniform and skewed writes.

Requests come so seldom that a collection has ended before the next one, or one after the other.
Then each waits behind the eight copies in flight, which are reads or programs in turn: four copies
a request.
"""

import json
import random
import subprocess
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest

from programs import made
from rsd.cache import Cache

BLOCKS, SPARE, PAGES, PERCENT = 120, 4, 32, 10
USER = (BLOCKS + SPARE) * PAGES * 100 // (100 + PERCENT) // 256 * 256
CAPACITIES = 30
DRIVE = (
    *("--set", "ftl=page", "--set", "channels=1", "--set", "ways=1", "--set", f"blocks={BLOCKS}"),
    *("--set", f"spare-blocks={SPARE}", "--set", f"pages={PAGES}", "--set", "wl-threshold=0"),
    *("--set", f"over-provision={PERCENT}", "--set", "idle-erase=0"),
    *("--precondition", "fill", "--requests", str(CAPACITIES * USER)),
)
LOADS = {"seldom": ("--rate", "0.1"), "busy": ("--depth", "1")}
COPIES = {"seldom": 1_000_000, "busy": 4}  # a request
Draw = Callable[[], int]
Measured = Callable[[str, str, str], float]


class PageMap:
    """Greedy: of the blocks with fewest valid pages that in which a page died longest ago."""

    def __init__(self, load: str, *, own: bool) -> None:
        self.own, self.copies, self.programs = own, COPIES[load], 0
        self.where = [-1] * USER
        # what is valid in a block, in the order of its pages
        self.content: list[dict[int, None]] = [{} for _ in range(BLOCKS + SPARE)]
        self.free = list(range(BLOCKS + SPARE))
        # full blocks by valid pages, in the order in which they came to have so many
        self.full: list[dict[int, None]] = [{} for _ in range(PAGES + 1)]
        self.is_full = [False] * (BLOCKS + SPARE)
        self.open = {"host": (-1, PAGES), "copies": (-1, PAGES)}  # block, pages filled
        self.victim = -1

    def _forget(self, page: int) -> None:
        block = self.where[page]
        if block >= 0:
            valid = len(self.content[block])
            del self.content[block][page]
            if self.is_full[block]:
                del self.full[valid][block]
                self.full[valid - 1][block] = None

    def _put(self, page: int, what: str) -> None:
        block, filled = self.open[what if self.own else "host"]
        if filled == PAGES:
            block, filled = self.free.pop(0), 0
        self._forget(page)
        self.where[page] = block
        self.content[block][page] = None
        self.open[what if self.own else "host"] = block, filled + 1
        self.programs += 1
        if filled + 1 == PAGES:
            self.is_full[block] = True
            self.full[len(self.content[block])][block] = None

    def _collect(self, copies: int) -> None:
        """As long as fewer than two blocks are free, victims are emptied, the last one wholly."""
        while copies and (self.victim >= 0 or len(self.free) < 2):
            if self.victim < 0:
                blocks = next(blocks for blocks in self.full if blocks)
                self.victim = next(iter(blocks))
                del blocks[self.victim]
                self.is_full[self.victim] = False
            content = self.content[self.victim]
            if content:
                self._put(next(iter(content)), "copies")
                copies -= 1
            if not content:
                self.free.append(self.victim)
                self.victim = -1

    def _has_room(self) -> bool:
        """For the host, whose pages leave a block's worth for the next victim."""
        free = len(self.free) * PAGES - (len(self.content[self.victim]) if self.victim >= 0 else 0)
        if not self.own:
            return free + PAGES - self.open["host"][1] > PAGES
        left = PAGES - self.open["copies"][1]
        return self.open["host"][1] < PAGES or free + left >= 2 * PAGES

    def write(self, page: int) -> None:
        """A page of the host."""
        while not self._has_room():
            self._collect(1)
        self._put(page, "host")
        self._collect(self.copies)

    def amplification(self, draw: Draw) -> float:
        """From the sequentially filled drive on."""
        for page in range(USER):
            self.write(page)
        before = self.programs
        for _ in range(CAPACITIES * USER):
            self.write(draw())
        return (self.programs - before) / (CAPACITIES * USER)


def zipf(theta: float) -> Draw:
    """Rank r by r ** -theta, ranks in any order."""
    rng = random.Random(3)
    shares = list(accumulate(rank**-theta for rank in range(1, USER + 1)))
    place = rng.sample(range(USER), USER)
    return lambda: place[min(bisect_left(shares, rng.random() * shares[-1]), USER - 1)]


def hot_cold() -> Draw:
    """90% to the first 10%."""
    rng = random.Random(4)
    hot = USER // 10
    return lambda: rng.randrange(hot) if rng.random() < 0.9 else rng.randrange(hot, USER)


def uniform() -> Draw:
    """Any page."""
    rng = random.Random(5)
    return lambda: rng.randrange(USER)


PATTERNS: dict[str, Callable[[], Draw]] = {
    "uniform": uniform,
    "zipf=0.99": lambda: zipf(0.99),
    "zipf=1.2": lambda: zipf(1.2),
    "hotcold=90/10": hot_cold,
}


@pytest.fixture(scope="module")
def measured(rsd_cache: Cache) -> Measured:
    """The drive's write amplification by load, gc-frontiers and pattern."""
    sources = ["host/tools/rsdsim/*", "hw/rsd-nvme/core/**/*.[ch]"]
    program = made(rsd_cache, "rsdsim-fast", sources, ["host/tools/rsdsim"]) / "rsdsim"
    found: dict[tuple[str, str, str], float] = {}

    def run(load: str, frontiers: str, pattern: str) -> float:
        if (load, frontiers, pattern) not in found:
            command: list[str | Path] = [program, *DRIVE, *LOADS[load], "--json"]
            command += ["--pattern", pattern]
            command += ["--set", f"gc-frontiers={frontiers}"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            result = json.loads(done.stdout)
            assert result["drive"]["capacity_bytes"] == USER * 4096
            amplification = result["results"]["write_amplification"]["total"]
            found[load, frontiers, pattern] = amplification
        return found[load, frontiers, pattern]

    return run


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("frontiers", ["own", "shared"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_drive_equals_page_map(measured: Measured, load: str, frontiers: str, pattern: str) -> None:
    """Within 2%."""
    model = PageMap(load, own=frontiers == "own").amplification(PATTERNS[pattern]())
    assert measured(load, frontiers, pattern) == pytest.approx(model, rel=0.02)


@pytest.mark.parametrize("load", LOADS)
def test_skew_is_the_right_way_round(measured: Measured, load: str) -> None:
    """Kept apart, copies are cold: skew costs little and then gains; mixed, it costs."""
    own = {pattern: measured(load, "own", pattern) for pattern in PATTERNS}
    assert own["zipf=0.99"] < 1.1 * own["uniform"]
    assert own["zipf=1.2"] < 0.9 * own["uniform"]
    assert measured(load, "shared", "zipf=0.99") > 1.2 * measured(load, "shared", "uniform")
