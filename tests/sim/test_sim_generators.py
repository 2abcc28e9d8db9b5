# SPDX-License-Identifier: GPL-2.0-or-later
"""Generated work has the distribution it is named after, and is the same everywhere."""

import math
from collections import Counter
from pathlib import Path

import pytest
from simulator import READ, RESET, SMALL, SUBMIT, TRIM, WRITE, Record, Simulator

# 512 pages in zones of 32, full: reads go anywhere
FULL = (*SMALL, "--precondition", "fill")


def work(sim: Simulator, *arguments: str) -> list[Record]:
    """The submissions after the drive was filled."""
    found = [record for record in sim.trace(*arguments) if record.kind == SUBMIT]
    return found[16:] if "fill" in arguments else found


def chi_square(counts: list[int], probabilities: list[float]) -> float:
    """In standard deviations of what chance makes of it, about."""
    total = sum(counts)
    value = sum(
        (count - total * p) ** 2 / (total * p)
        for count, p in zip(counts, probabilities, strict=True)
    )
    freedom = len(counts) - 1
    return (value - freedom) / math.sqrt(2 * freedom)


def zones(found: list[Record]) -> list[int]:
    counts = Counter(record.lba // 32 for record in found)
    return [counts[zone] for zone in range(16)]


READS = ("--reads", "100", "--requests", "20000")


def test_uniform(sim: Simulator) -> None:
    found = work(sim, *FULL, *READS)
    assert abs(chi_square(zones(found), [1 / 16] * 16)) < 4
    pages = Counter(record.lba for record in found)
    assert abs(chi_square([pages[page] for page in range(512)], [1 / 512] * 512)) < 4


@pytest.mark.parametrize("theta", [0, 0.5, 0.99, 1, 1.2, 2.5])
def test_zipf(sim: Simulator, theta: float) -> None:
    counts = sorted(zones(work(sim, *FULL, *READS, "--pattern", f"zipf={theta}")), reverse=True)
    weights = [k**-theta for k in range(1, 17)]
    expected = [weight / sum(weights) for weight in weights]
    if theta:
        assert abs(chi_square(counts, expected)) < 4
    else:
        # in the order of rank, sorting would show
        assert max(counts) - min(counts) < 250


@pytest.mark.parametrize(("accesses", "space", "hot"), [(90, 25, 4), (80, 50, 8), (50, 6.25, 1)])
def test_hot_and_cold(sim: Simulator, accesses: float, space: float, hot: int) -> None:
    counts = zones(work(sim, *FULL, *READS, "--pattern", f"hotcold={accesses}/{space}"))
    share = accesses / 100
    expected = [share / hot] * hot + [(1 - share) / (16 - hot)] * (16 - hot)
    assert abs(chi_square(counts, expected)) < 4


def test_sequential(sim: Simulator) -> None:
    """Zone after zone, each reset before it is written again."""
    found = work(sim, *SMALL, "--pattern", "sequential", "--size", "12K", "--requests", "400")
    written = 0
    for record in found:
        zone, offset = divmod(record.lba, 32)
        if record.op == RESET:
            assert (written // 32 >= 16, offset) == (True, 0)
            assert zone == written // 32 % 16
        else:
            assert record.op == WRITE
            assert record.lba == written % 512
            assert record.nlb == min(3, 32 - offset)
            written += record.nlb
    assert written > 512


def test_writes_to_zones_are_in_order(sim: Simulator) -> None:
    """The drive would refuse others. Every block of every zone is written."""
    found = work(sim, *SMALL, "--requests", "5000", "--size", "20K")
    assert {record.op for record in found} == {WRITE, RESET}
    assert len({record.lba for record in found if record.op == RESET}) == 16


def test_appends(sim: Simulator) -> None:
    """The same places as of writes, marked, and taking the firmware its own time."""
    slow = (*SMALL, "--set", "t-fw-append=7000", "--set", "t-fw-write=1000", "--depth", "1")
    writes, appends = work(sim, *slow), work(sim, *slow, "--append")
    assert [r.lba for r in writes] == [r.lba for r in appends]
    assert {r.flags for r in writes} == {0}
    assert {r.flags for r in appends if r.op == WRITE} == {2}
    assert appends[1].time - writes[1].time == 6000
    assert sim.json("--replay", "recorded", "--check")["completions_different"] == 0


def test_mix(sim: Simulator) -> None:
    found = work(sim, *FULL, "--reads", "30", "--requests", "20000")
    counts = Counter(record.op for record in found)
    assert abs(counts[READ] / 20000 - 0.3) < 0.015
    assert TRIM not in counts


def test_poisson(sim: Simulator) -> None:
    """Mean and standard deviation of the gaps are those of an exponential distribution."""
    found = work(sim, *SMALL, "--rate", "1000", "--requests", "20000")
    times = [record.time for record in found]
    gaps = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert abs(mean / 1e6 - 1) < 0.03
    assert abs(deviation / mean - 1) < 0.05


def test_seeds(sim: Simulator) -> None:
    first = work(sim, *SMALL)
    assert work(sim, *SMALL) == first
    assert work(sim, *SMALL, "--seed", "2") != first


# fmt: off
ZIPF_LBAS = [
    31, 28, 12, 77, 21, 399, 176, 19, 360, 26, 212, 421,
    420, 354, 28, 17, 448, 58, 303, 3, 380, 4, 12, 291,
]
POISSON_NS = [0, 740379, 1670314, 1853077, 4010044, 4141417, 5392379, 6275707]
# fmt: on


def test_the_same_on_every_machine(sim: Simulator, tmp_path: Path) -> None:
    """Numbers that were found on another one: a digit of a logarithm would change them."""
    arguments = (*FULL, "--reads", "100", "--requests", "24", "--pattern", "zipf=0.99")
    found = work(sim, *arguments, "--rate", "1000")
    assert [record.lba for record in found] == ZIPF_LBAS
    assert [record.time - found[0].time for record in found[:8]] == POISSON_NS
