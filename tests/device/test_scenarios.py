# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults by rule, as a host sees them; traces with faults; scenarios that are refused."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from drive import OpenDrive, device_args
from nvme import Status
from qtest import start_error
from test_conventional import CONVENTIONAL
from test_events import ask, changed_zones, enable_notices
from test_record import mixed_work
from zns import Action, Zs, blocks_of, pattern


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    return tmp_path / "rules"


def test_unreadable(drive: OpenDrive, scenario: Path) -> None:
    """It stays so without the rule, until the zone is reset."""
    scenario.write_text("read lba=3\n")
    with drive(faults=scenario) as d:
        d.ns.write(0, blocks_of(range(8))).expect()
        assert d.ns.get(3)[0].status == Status.UNRECOVERED_READ
        assert d.ns.read(4, 4)[0] == blocks_of(range(4, 8))
        assert (d.log()["fault_read"], d.log()["media_errors"]) == (1, 1)
        d.qemu.quit()
    with drive() as d:
        assert d.ns.get(3)[0].status == Status.UNRECOVERED_READ
        d.ns.send(Action.RESET, 0).expect()
        d.ns.write(0, blocks_of(range(8))).expect()
        assert d.ns.read(0, 8)[0] == blocks_of(range(8))


def test_silent(drive: OpenDrive, scenario: Path) -> None:
    """Nobody is told of what is corrupted, lost or misdirected."""
    scenario.write_text("corrupt lba=3\nlost lba=7 at=2\nmisdirect lba=5 by=4\n")
    with drive(faults=scenario, **CONVENTIONAL) as d:
        d.ns.write(9, pattern(9)).expect()
        for block in (3, 5, 7):
            d.ns.write(block, pattern(block)).expect()
        d.ns.write(7, pattern(8)).expect()
        found, wanted = d.ns.read(3, 1)[0], pattern(3)
        assert sum((a ^ b).bit_count() for a, b in zip(found, wanted, strict=True)) == 1
        assert d.ns.read(5, 1)[0] == bytes(4096)
        assert d.ns.read(9, 1)[0] == pattern(5)
        assert d.ns.read(7, 1)[0] == pattern(7)
        log = d.log()
        assert (log["fault_corrupt"], log["fault_lost"], log["fault_misdirect"]) == (1, 1, 1)
        assert log["media_errors"] == 0


def test_zones_fail(drive: OpenDrive, scenario: Path) -> None:
    """Behind the write that does it, by the controller, which says so."""
    scenario.write_text("read-only lba=16-31 at=2\noffline lba=32-47\n")
    with drive(faults=scenario) as d:
        assert d.ns.start(1) == 16
        enable_notices(d)
        event = ask(d)
        d.ns.write(16, blocks_of(range(2))).expect()
        assert not event.done
        d.ns.write(18, blocks_of(range(2, 4))).expect()
        d.controller.wait(event)
        assert changed_zones(d) == [16]
        d.ns.write(20, pattern(1)).expect(Status.ZONE_READ_ONLY)
        assert d.ns.read(16, 4)[0] == blocks_of(range(4))
        d.ns.append(32, pattern(1)).expect()
        assert d.ns.get(32)[0].status == Status.ZONE_OFFLINE
        assert d.ns.states()[:4] == [Zs.EMPTY, Zs.READ_ONLY, Zs.OFFLINE, Zs.EMPTY]
        assert (d.log()["fault_read_only"], d.log()["fault_offline"]) == (1, 1)
        d.qemu.quit()
    with drive() as d:
        assert d.ns.states()[:4] == [Zs.EMPTY, Zs.READ_ONLY, Zs.OFFLINE, Zs.EMPTY]


def test_blocks_are_retired(drive: OpenDrive, scenario: Path) -> None:
    """A program that fails costs its time again, and at the next erase a spare; no data."""
    scenario.write_text("program at=2\n")
    with drive(faults=scenario) as d:
        times = []
        for block in range(3):
            begin = d.qemu.clock_ns
            d.ns.write(block, pattern(block)).expect()
            times.append(d.qemu.clock_ns - begin)
        assert times[1] - times[0] >= 400_000
        assert abs(times[2] - times[0]) < 400_000
        for zone in range(1, 6):
            d.ns.write(d.ns.start(zone), blocks_of(range(16))).expect()
        assert d.ns.read(0, 3)[0] == blocks_of(range(3))
        assert (d.log()["fault_program"], d.log()["blocks_grown"]) == (1, 0)
        for _ in range(4):
            d.ns.send(Action.RESET, 0).expect()
            d.ns.write(0, blocks_of(range(16))).expect()
        assert (d.log()["blocks_grown"], d.log()["spares_left"]) == (1, 7)
        assert d.ns.read(0, 16)[0] == blocks_of(range(16))


@pytest.mark.parametrize("ftl", ["rsd", "page"])
def test_a_trace_replays(
    drive: OpenDrive, rsdsim: Path, media: Path, tmp_path: Path, scenario: Path, ftl: str
) -> None:
    """With the same scenario: every completion and counter, and other ones without it."""
    more = "read-only at=90\noffline at=120\n" if ftl == "rsd" else "misdirect every=17 by=3\n"
    scenario.write_text(
        "program every=60\nerase every=9\nread every=70\nlatency every=5 time=40us\n"
        "corrupt every=13\nlost every=31\n" + more
    )
    props = {"blocks": 16, "spare_blocks": 12, "over_provision": 300}
    if ftl == "page":
        props = CONVENTIONAL | {"spare_blocks": 12, "over_provision": 100}
    with drive(oob=16, **props) as d:
        d.qemu.quit()
    before = shutil.copy(media, tmp_path / "before.rsd")
    trace = tmp_path / "t.rsdtrace"
    with drive(trace=trace, faults=scenario, **props) as d:
        mixed_work(d, random.Random(11))
        d.controller.advance(1_000_000_000)
        log = d.log()
        d.qemu.quit()
    names = "program read latency corrupt lost".split()
    assert all(log[f"fault_{name}"] for name in names), log
    for options, status in (["--faults", str(scenario)], 0), ([], 1):
        copy = shutil.copy(before, tmp_path / "copy.rsd")
        done = subprocess.run(
            [rsdsim, "--replay", trace, "--media", copy, "--check", *options],
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("# none\nread evry=3\n", ":2: 'read' does not take 'evry'; it takes KEY=VALUE"),
        ("misdirect at=1\n", ":1: 'misdirect': this drive has zones alone"),
        ("read die=32\n", ":1: 'read': this drive has fewer dies"),
    ],
)
def test_refusals(qemu: str, media: Path, scenario: Path, rules: str, message: str) -> None:
    """A new drive's file does not stay."""
    scenario.write_text(rules)
    text = start_error(qemu, device_args(media, {"blocks": 6, "faults": str(scenario)}))
    assert f"faults: {scenario}{message}" in text
    assert not media.exists()
    scenario.unlink()
    text = start_error(qemu, device_args(media, {"blocks": 6, "faults": str(scenario)}))
    assert "No such file" in text
