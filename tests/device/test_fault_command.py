# SPDX-License-Identifier: GPL-2.0-or-later
"""Zones and blocks that fail on command."""

from __future__ import annotations

from pathlib import Path

import pytest
from drive import Drive, OpenDrive
from nvme import Command, Request, Status
from test_conventional import CONVENTIONAL
from test_power import rewind
from zns import Action, Zs, blocks_of, pattern

FAULT = 0xC4
READ_ONLY, OFFLINE, UNREADABLE = range(3)


def fail(d: Drive, what: int, lba: int, n: int = 0) -> Request:
    return d.controller.admin.run(
        Command(FAULT, nsid=1, cdw10=what, cdw12=lba & 0xFFFFFFFF, cdw13=lba >> 32, cdw14=n)
    )


def test_zones_fail(drive: OpenDrive) -> None:
    with drive() as d:
        d.ns.write(d.ns.start(1), blocks_of(range(3))).expect()
        d.ns.write(d.ns.start(2), blocks_of(range(3))).expect()
        fail(d, READ_ONLY, d.ns.start(1)).expect()
        fail(d, OFFLINE, d.ns.start(3) - 1).expect()
        assert d.ns.states()[:4] == [Zs.EMPTY, Zs.READ_ONLY, Zs.OFFLINE, Zs.EMPTY]
        assert d.ns.read(d.ns.start(1), 3)[0] == blocks_of(range(3))
        assert d.ns.get(d.ns.start(2))[0].status == Status.ZONE_OFFLINE
        d.ns.write(d.ns.start(1) + 3, pattern(1)).expect(Status.ZONE_READ_ONLY)
        fail(d, READ_ONLY, d.ns.start(2)).expect(Status.INVALID_FIELD)
        fail(d, UNREADABLE, d.ns.start(2), 1).expect(Status.INVALID_FIELD)
        fail(d, OFFLINE, d.ns.start(1)).expect()
        assert d.ns.states()[1] == Zs.OFFLINE


def test_blocks_cannot_be_read(drive: OpenDrive) -> None:
    """Those alone, also when the drive is opened again, until the zone is reset."""
    with drive() as d:
        d.ns.write(0, blocks_of(range(8))).expect()
        fail(d, UNREADABLE, 3, 2).expect()
        d.qemu.quit()
    with drive() as d:
        for page in range(8):
            expected = Status.UNRECOVERED_READ if page in (3, 4) else Status.SUCCESS
            assert d.ns.get(page)[0].status == expected, page
        assert d.ns.read(5, 3)[0] == blocks_of(range(5, 8))
        d.ns.write(8, pattern(8)).expect()
        d.ns.send(Action.RESET, 0).expect()
        d.ns.write(0, blocks_of(range(8))).expect()
        assert d.ns.read(0, 8)[0] == blocks_of(range(8))


def test_all_blocks_or_none(drive: OpenDrive) -> None:
    with drive() as d:
        d.ns.write(0, blocks_of(range(8))).expect()
        fail(d, UNREADABLE, 5, 4).expect(Status.INVALID_FIELD)
        assert d.ns.read(0, 8)[0] == blocks_of(range(8))
        fail(d, UNREADABLE, 5, 3).expect()
        assert d.ns.get(7)[0].status == Status.UNRECOVERED_READ


def test_a_rewind_undoes_it(drive: OpenDrive, tmp_path: Path) -> None:
    with drive(op_log=str(tmp_path / "log")) as d:
        d.ns.write(0, blocks_of(range(4))).expect()
        fail(d, UNREADABLE, 2, 1).expect()
        assert d.ns.get(2)[0].status == Status.UNRECOVERED_READ
        rewind(d, 3, "")
        assert d.ns.read(0, 3)[0] == blocks_of(range(3))


@pytest.mark.parametrize(
    ("what", "lba", "n", "status"),
    [
        (UNREADABLE, 3, 1, Status.INVALID_FIELD),
        (UNREADABLE, 0, 0, Status.INVALID_FIELD),
        (UNREADABLE, 1, 3, Status.INVALID_FIELD),
        (UNREADABLE, 1 << 40, 1, Status.LBA_RANGE),
        (OFFLINE, 1 << 40, 0, Status.LBA_RANGE),
        (3, 0, 1, Status.INVALID_FIELD),
    ],
)
def test_refusals(drive: OpenDrive, what: int, lba: int, n: int, status: Status) -> None:
    with drive() as d:
        d.ns.write(0, blocks_of(range(3))).expect()
        fail(d, what, lba, n).expect(status)


def test_no_zones(drive: OpenDrive) -> None:
    with drive(**CONVENTIONAL) as d:
        fail(d, OFFLINE, 0).expect(Status.INVALID_OPCODE)
