# SPDX-License-Identifier: GPL-2.0-or-later
"""What is called steady is: works that a shorter look took for steady, and did not stay so."""

from typing import Any

import pytest
from simulator import SMALL, Simulator

# 2 channels x 2 ways x 32 blocks x 32 pages: 4096 pages of flash
DRIVE = (
    *("--set", "channels=2", "--set", "ways=2", "--set", "blocks=32", "--set", "pages=32"),
    *("--set", "spare-blocks=2", "--set", "ftl=page", "--set", "over-provision=28"),
    *("--precondition", "steady"),
)
FLASH = 2 * 2 * (32 + 2) * 32


def amplification(result: Any) -> float:
    return float(result["results"]["write_amplification"]["total"])


@pytest.mark.parametrize(
    "work",
    [
        ("--set", "over-provision=120"),
        ("--set", "over-provision=28", "--set", "gc-policy=fifo", "--pattern", "hotcold=90/10"),
        ("--set", "blocks=64", "--pattern", "hotcold=95/10"),
        ("--set", "over-provision=10", "--trims", "20"),
        ("--set", "over-provision=28", "--pattern", "zipf=0.99", "--reads", "50", "--depth", "2"),
        ("--set", "over-provision=28", "--size", "64K", "--pattern", "sequential"),
        ("--set", "gc-policy=fifo", "--pattern", "sequential", "--trims", "20"),
    ],
    ids=["spare", "fifo", "cold", "trims", "mixed", "sequential", "sequential with trims"],
)
def test_it_stays(sim: Simulator, work: tuple[str, ...]) -> None:
    """Ten times as much work as it took has the same write amplification."""
    start = sim.json(*DRIVE, *work, "--requests", "0")["precondition"]
    assert start["steady"] is True
    assert start["capacities"] >= 10
    assert start["range"] <= 0.02
    assert abs(start["slope"]) <= 0.005
    capacity = start["filled_blocks"]
    # a round is the capacity, to a request
    assert 0 <= start["written_blocks"] - start["capacities"] * capacity < start["capacities"] * 16
    assert start["written_blocks"] > FLASH
    # of trims and reads too; of 4 KiB each but in one case
    requests = 40 * start["written_blocks"] // (16 if "64K" in work else 1) // 10
    short = sim.json(*DRIVE, *work, "--requests", str(requests // 4))
    long = sim.json(*DRIVE, *work, "--requests", str(requests))
    assert amplification(short) == pytest.approx(amplification(long), rel=0.03)


def test_spare_space_is_used_first(sim: Simulator) -> None:
    """As long as the drive has flash that was never written, nothing has to be moved."""
    result = sim.json(*DRIVE, "--set", "over-provision=300", "--requests", "20000")
    start = result["precondition"]
    assert start["steady"] is True
    # the fill and three rounds use up the flash; then come the rounds that are looked at
    assert start["capacities"] >= 3 + 10
    assert result["results"]["erases"]["clean"] > 0


@pytest.mark.parametrize(
    ("pattern", "least"), [("hotcold=95/10", 18), ("hotcold=3/50", 17), ("zipf=1.1", 15)]
)
def test_cold_space_is_turned_over(sim: Simulator, pattern: str, least: float) -> None:
    """Steady is not before the coldest place was written once on average."""
    start = sim.json(*DRIVE, "--pattern", pattern, "--requests", "0")["precondition"]
    assert start["capacities"] >= least


@pytest.mark.parametrize("pattern", ["hotcold=99.9/1", "zipf=2"])
def test_what_is_not_steady_is_said(sim: Simulator, pattern: str) -> None:
    arguments = (*DRIVE, "--pattern", pattern, "--requests", "10")
    start = sim.json(*arguments)["precondition"]
    assert start["steady"] is False
    assert start["capacities"] == 100
    done = sim.run(*arguments)
    assert b"by the pattern: not steady after 100 capacities" in done.stdout
    assert b"rsdsim: warning: --precondition steady: not steady after 100 capacities" in done.stderr


@pytest.mark.parametrize(
    ("work", "levelling"),
    [
        (("--pattern", "hotcold=100/10"), "ahead"),
        (("--pattern", "hotcold=90/10"), "ahead"),
        (("--pattern", "hotcold=90/10", "--set", "wl-threshold=8"), "runs"),
        (("--pattern", "hotcold=90/10", "--set", "wl-threshold=0"), "none"),
        (("--set", "over-provision=60"), "none"),
        (("--set", "ways=1", "--set", "pages=64", "--pattern", "hotcold=80/20"), "ahead"),
    ],
    ids=["never erased", "on its way", "running", "off", "even", "by chance"],
)
def test_levelling_is_foreseen(sim: Simulator, work: tuple[str, ...], levelling: str) -> None:
    """Amplification may be steady long before wear levelling begins: that is said."""
    arguments = (*DRIVE, *work, "--requests", "10")
    start = sim.json(*arguments)["precondition"]
    assert (start["steady"], start["levelling"]) == (True, levelling)
    done = sim.run(*arguments)
    ahead = levelling == "ahead"
    assert (b"capacities but for wear levelling" in done.stdout) == ahead
    assert (b"steady but for static wear levelling" in done.stderr) == ahead


def test_levelling_that_runs_is_in_it(sim: Simulator) -> None:
    """What is called steady with levelling in it stays so; before it began it would not."""
    work = ("--set", "wl-threshold=8", "--pattern", "hotcold=90/10")
    written = sim.json(*DRIVE, *work, "--requests", "0")["precondition"]["written_blocks"]
    short, long = (sim.json(*DRIVE, *work, "--requests", str(n * written)) for n in (1, 4))
    assert short["results"]["write_amplification"]["wear"] > 0
    assert amplification(short) == pytest.approx(amplification(long), rel=0.03)


def test_requests_as_large_as_the_drive(sim: Simulator) -> None:
    start = sim.json(*DRIVE, "--size", "8M", "--requests", "1")["precondition"]
    assert start["filled_blocks"] > 2048
    assert start["written_blocks"] >= 10 * start["filled_blocks"]


def test_work_that_writes_nothing_is_steady(sim: Simulator) -> None:
    start = sim.json(*DRIVE, "--reads", "100", "--requests", "10")["precondition"]
    assert (start["steady"], start["capacities"], start["written_blocks"]) == (True, 0, 0)


def test_a_worn_out_drive_is_not_steady(sim: Simulator) -> None:
    worn = ("--set", "endurance=10", "--set", "life-spread=10", "--set", "over-provision=40")
    start = sim.json(*DRIVE, *worn, "--requests", "0")["precondition"]
    assert start["steady"] is False
    assert start["capacities"] < 100


def test_an_overloaded_open_loop_becomes_steady(sim: Simulator) -> None:
    """Only so many requests wait while it is on its way there."""
    start = sim.json(*DRIVE, "--rate", "1e6", "--requests", "10")["precondition"]
    assert start["steady"] is True


def test_zones_are_steady(sim: Simulator) -> None:
    start = sim.json(*SMALL, "--precondition", "steady", "--pattern", "hotcold=99.9/10")
    assert start["precondition"]["steady"] is True
    assert start["precondition"]["write_amplification"] == 1
