# SPDX-License-Identifier: GPL-2.0-or-later
"""Zones behind a write buffer: no write is done before its data is kept, and none is lost."""

from pathlib import Path

import pytest
from simulator import DONE, RESET, SMALL, SUBMIT, WRITE, Simulator, records

# a zone has 32 pages
BUFFERED = (
    *SMALL,
    *("--set", "write-buffer=256K", "--set", "ack=buffer", "--precondition", "fill"),
)


@pytest.mark.parametrize("loop", [("--depth", "64"), ("--rate", "100000")])
def test_a_zone_is_reset_when_its_writes_are_done(
    sim: Simulator, tmp_path: Path, loop: tuple[str, ...]
) -> None:
    work = ("--pattern", "hotcold=90/10", "--size", "12K", "--requests", "5000")
    sim.json(*BUFFERED, *work, *loop, "--record", tmp_path / "trace")
    writes: dict[int, int] = {}
    resets = 0
    for record in records(tmp_path / "trace"):
        if record.kind == SUBMIT and record.op == WRITE:
            writes[record.order] = record.lba // 32
        elif record.kind == SUBMIT and record.op == RESET:
            assert record.lba // 32 not in writes.values()
            resets += 1
        elif record.kind == DONE:
            assert record.status == 0
            writes.pop(record.order, None)
    assert resets > 100


def test_latency_of_an_open_loop_counts_from_the_request(sim: Simulator) -> None:
    """One zone, which has to be drained again and again: what waits for that, waits."""
    work = ("--pattern", "hotcold=100/1", "--size", "16K", "--requests", "2000")
    fast = sim.json(*BUFFERED, *work, "--rate", "1000000")["results"]
    assert fast["operations"]["write"]["latency_ns"]["max"] > 0.9e9 * fast["seconds"]


@pytest.mark.parametrize("ack", ["buffer", "program"])
@pytest.mark.parametrize("plp", ["on", "off"])
@pytest.mark.parametrize("loop", [("--depth", "256"), ("--rate", "1000000")])
def test_the_flash_is_not_outrun(sim: Simulator, ack: str, plp: str, loop: tuple[str, ...]) -> None:
    """What is written is programmed, but for what the buffer still has."""
    work = ("--pattern", "hotcold=99/1", "--size", "128K", "--requests", "3000")
    settings = ("--set", f"ack={ack}", "--set", f"plp={plp}")
    result = sim.json(*BUFFERED, *settings, *work, *loop)["results"]
    assert result["failed"] == 0
    written = result["operations"]["write"]["blocks"]
    assert result["write_amplification"]["total"] * written >= written - 64
    # all dies at once
    assert result["bytes_per_s"] <= 4 * 4096 / 478e-6 * 1.01


def test_without_protection_writes_stay_in_order(sim: Simulator) -> None:
    """The preconditioning's last pages are in the buffer: the work goes on behind them."""
    work = ("--precondition", "2", "--size", "12K", "--requests", "3000")
    settings = ("--set", "plp=off", "--set", "planes=2", "--set", "page-size=16384")
    result = sim.json(*BUFFERED, *settings, *work)["results"]
    assert result["failed"] == 0


@pytest.mark.parametrize("ftl", ["rsd", "page"])
def test_measuring_begins_when_the_drive_is_at_rest(sim: Simulator, ftl: str) -> None:
    """Alone, each read takes the same time, also those right after the preconditioning."""
    settings = ("--set", "write-buffer=1M", "--set", f"ftl={ftl}")
    arguments = (*BUFFERED, *settings, "--reads", "100", "--depth", "1", "--requests", "200")
    latency = sim.json(*arguments)["results"]["operations"]["read"]["latency_ns"]
    assert latency["min"] == latency["max"] > 50_000
