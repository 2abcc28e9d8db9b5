# SPDX-License-Identifier: GPL-2.0-or-later
"""The small models that `./rsd bench laws` sets beside the drive, against what is known of them."""

import random

import pytest
from law_cached_map import SegmentedLru
from law_dies import ERASE, PROGRAM, READ, Flash, Request, closed_loop
from law_merges import BlockMap, Fast
from law_page_map import OWN, SHARED, Geometry, PageMap, hot_cold, steady, uniform, zipf

from rsd.bench.amplification import first_in_first_out, greedy

RISA = Flash()


def one(die: int, kind: str) -> Request:
    return Request(((die, kind),))


@pytest.mark.parametrize(
    ("kind", "ns"),
    [(READ, 2_500 + 60_000 + 30_833), (PROGRAM, 2_500 + 30_833 + 444_278), (ERASE, 3_502_500)],
)
def test_an_operation_alone(kind: str, ns: int) -> None:
    assert closed_loop(RISA, [one(0, kind)] * 3, 1).latencies == [ns] * 3


def test_a_channel_carries_a_page_at_a_time() -> None:
    flash = Flash(channels=1, ways=2)
    reads = closed_loop(flash, [one(0, READ), one(1, READ)], 2)
    assert reads.latencies == [93_333, 93_333 + 30_833]
    apart = closed_loop(Flash(channels=2, ways=1), [one(0, READ), one(1, READ)], 2)
    assert apart.latencies == [93_333, 93_333]


@pytest.mark.parametrize(("channels", "ways"), [(1, 1), (2, 4), (4, 16)])
def test_saturated_rate(channels: int, ways: int) -> None:
    flash = Flash(channels=channels, ways=ways)
    requests = [one(n % flash.dies, PROGRAM) for n in range(400 * flash.dies)]
    elapsed = closed_loop(flash, requests, 8 * flash.dies).elapsed
    rate = channels * min(1 / 33_333, ways / 477_611)
    assert len(requests) / elapsed == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize("policy", ["greedy", "fifo"])
@pytest.mark.parametrize("percent", [10, 28])
def test_page_map_uniform(policy: str, percent: int) -> None:
    """One frontier: of so many blocks one is open, and one is free."""
    geometry = Geometry(402, 16, 400 * 16 * 100 // (100 + percent))
    drive = PageMap(geometry, policy=policy, frontiers=SHARED)
    measured = steady(drive, uniform(geometry.user, random.Random(1)), 6, 6)
    formula = greedy(percent / 100, 16) if policy == "greedy" else first_in_first_out(percent / 100)
    assert measured == pytest.approx(formula, rel=0.02)


def test_page_map_of_dies_is_page_map_of_one() -> None:
    """Under load, which evens out how many of a die's pages are valid."""
    one_die = Geometry(130, 16, 1800)
    four = Geometry(130, 16, 7200, dies=4)
    found = [
        steady(PageMap(geometry, 2 * geometry.dies), uniform(geometry.user, random.Random(2)), 6, 6)
        for geometry in (one_die, four)
    ]
    assert found[0] == pytest.approx(found[1], rel=0.03)


def test_copies_of_their_own_help_skew_and_nothing_else() -> None:
    """Van Houdt 2014; Stoica and Ailamaki 2013: the collector's writes are colder."""
    geometry = Geometry(130, 32, 3700)
    found = {}
    for frontiers in (SHARED, OWN):
        rng = random.Random(3)
        for name, draw in (
            ("uniform", uniform(3700, rng)),
            ("zipf", zipf(3700, 0.99, rng)),
            ("hot", hot_cold(3700, 90, 10, rng)),
        ):
            found[frontiers, name] = steady(PageMap(geometry, frontiers=frontiers), draw, 8, 6)
    assert found[SHARED, "zipf"] > 1.2 * found[SHARED, "uniform"]
    assert found[OWN, "zipf"] < 1.15 * found[OWN, "uniform"]
    assert found[OWN, "hot"] < found[SHARED, "hot"]


def busy(geometry: Geometry, depth: int) -> float:
    return steady(PageMap(geometry, depth), uniform(geometry.user, random.Random(4)), 5, 5)


def test_load_evens_small_dies_out() -> None:
    """A die that has many valid pages collects more, and is passed over meanwhile."""
    small, large = Geometry(40, 16, 16 * 550, dies=16), Geometry(640, 16, 16 * 550)
    assert busy(small, 64) < 0.95 * busy(small, 1)
    assert busy(large, 64) == pytest.approx(busy(large, 1), rel=0.02)


def test_a_page_is_valid_until_it_is_replaced() -> None:
    """Two writes of one page, the second one in flight: both are valid."""
    drive = PageMap(Geometry(6, 4, 4), 2)
    drive.amplification([0, 1, 2, 3, 0])
    assert sum(drive.valid) == 5
    drive.amplification([1, 2, 3])  # by then the program of 0 is done
    assert sum(drive.valid) < 5 + 3


def test_segmented_lru() -> None:
    cache = SegmentedLru(4)
    assert [cache.use(key) for key in (1, 2, 1, 2, 3, 4)] == [
        False,
        False,
        True,
        True,
        False,
        False,
    ]
    assert not cache.use(5)  # 3 leaves, not 1 and 2, which were used twice
    assert [cache.use(key) for key in (1, 2, 4, 5)] == [True] * 4
    assert not cache.use(3)
    assert (cache.hits, cache.misses) == (6, 6)


def test_merges_by_hand() -> None:
    block = BlockMap(4, [1])
    for lpn in (0, 1, 2, 3):
        block.write(lpn)
    assert block.count == {"switch": 1, "erases": 1, "copies": 0}
    for lpn in (0, 1, 0, 2, 4):
        block.write(lpn)
    # 0 and 1, then two copies; 0, a copy, 2, and a copy: full
    assert (block.count["partial"], block.count["full"], block.count["copies"]) == (1, 1, 4)

    fast = Fast(4, 1)
    for lpn in (0, 1, 2, 3, 4, 5, 8):
        fast.write(lpn)
    assert fast.count == {"switch": 1, "partial": 1, "erases": 2, "copies": 2}
    for lpn in (13, 14, 13, 17, 18):  # the log block is full with 17: blocks 3 and 4 are merged
        fast.write(lpn)
    assert (fast.count["full"], fast.count["copies"], fast.count["erases"]) == (2, 10, 5)
