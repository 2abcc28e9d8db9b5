# SPDX-License-Identifier: GPL-2.0-or-later
"""ftl=dftl on random commands: every hit and miss, every map page read and programmed, and all
contents equal those of the reference (cache_reference.py). The drive has flash enough: nothing is
collected, and no pages but the commands' and the map's are read or programmed."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from cache_reference import CachedMap
from one_by_one import Command, run_one_by_one

LBAS = 4096
SETTINGS = (
    "ftl=dftl channels=2 ways=2 blocks=96 spare-blocks=2 pages=128 over-provision=1000 oob=16 "
    "wl-threshold=0 idle-erase=0"
)
CACHES = (1024, 1040, 4096, 16384, LBAS * 8)
COUNTED = "map_hits map_misses read_map prog_map read_host prog_host".split()


def commands(seed: int, length: int) -> Iterator[Command]:
    """Half of them to a few places; runs that go over the end of a map page; some trims."""
    rng = random.Random(seed)
    hot = [rng.randrange(LBAS) for _ in range(12)]
    tag = 1
    for _ in range(length):
        lba = rng.choice(hot) if rng.random() < 0.5 else rng.randrange(LBAS)
        run = min(rng.choice([1, 1, 1, 2, 8, rng.randint(1, 80)]), LBAS - lba)
        op = rng.choices(["write", "read", "trim", "zeroes"], [50, 40, 7, 3])[0]
        yield op, lba, run, tag
        tag += run if op == "write" else 0


def check_caches(
    replay: Path, tmp_path: Path, cache: int, seeds: range, length: int
) -> dict[str, int]:
    """So many commands of each seed; the sums of the counters."""
    sums = dict.fromkeys(COUNTED, 0)
    for seed in seeds:
        told = [*commands(seed, length), *(("read", lba, 64, 0) for lba in range(0, LBAS, 64))]
        outcomes = run_one_by_one(
            replay, tmp_path / f"{seed}.rsd", f"{SETTINGS} map-cache={cache}", told
        )
        (tmp_path / f"{seed}.rsd").unlink()
        reference = CachedMap(cache)
        reads = []
        for op, lba, pages, tag in told:
            if op == "read":
                reads.append(reference.read(lba, pages))
            elif op == "write":
                reference.write(lba, pages, tag)
            else:
                reference.trim(lba, pages)
        found = [outcome["pages"] for outcome in outcomes if "pages" in outcome]
        assert found == [[[tag, tag] for tag in tags] for tags in reads], f"seed {seed}"
        counters = outcomes[-1]["counters"]
        counted = {name: reference.count[name] for name in COUNTED}
        assert {name: counters[name] for name in COUNTED} == counted, f"seed {seed}"
        assert counters["wear_sum"] == 0
        for name, value in counted.items():
            sums[name] += value
    return sums


@pytest.mark.parametrize("cache", CACHES)
def test_map_pages_and_contents(replay: Path, tmp_path: Path, cache: int) -> None:
    """600 commands, three times; the last cache holds all of the map."""
    sums = check_caches(replay, tmp_path, cache, range(3), 600)
    whole = cache == LBAS * 8
    assert all(value > 0 for name, value in sums.items() if not whole or "_map" not in name)
    assert (sums["read_map"] + sums["prog_map"] == 0) == whole
