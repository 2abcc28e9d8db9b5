# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits on open and active zones."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from drive import NAMESPACE_PATH, SMALL, OpenDrive, device_args
from nvme import Io, Status
from qtest import start_error
from zns import Action, Zs, pattern

LIMITS = {"zoned_max_open": 2, "zoned_max_active": 3}


def test_limits_are_identified(drive: OpenDrive) -> None:
    with drive(**LIMITS) as d:
        data = d.controller.identify(0x05, 1, csi=2)
        assert struct.unpack_from("<II", data, 4) == (2, 1)  # MAR, MOR, zeroes-based


def test_more_open_zones_than_zones(qemu: str, media: Path) -> None:
    props = SMALL | {"zoned.max_open": 7}
    message = start_error(qemu, device_args(media, props))
    assert "'zoned.max_open' is 7, must be from 0 to the number of zones, 6" in message
    assert not media.exists(), "a refused start leaves a file"


def test_no_limits(drive: OpenDrive) -> None:
    with drive() as d:
        data = d.controller.identify(0x05, 1, csi=2)
        assert struct.unpack_from("<II", data, 4) == (0xFFFFFFFF, 0xFFFFFFFF)
        for zone in range(d.ns.zones):
            d.ns.send(Action.OPEN, zone).expect()


def test_explicit_open_beyond_the_limit(drive: OpenDrive) -> None:
    with drive(**LIMITS) as d:
        d.ns.send(Action.OPEN, 0).expect()
        d.ns.send(Action.OPEN, 1).expect()
        d.ns.send(Action.OPEN, 2).expect(Status.ZONE_TOO_MANY_OPEN)
        d.ns.write(d.ns.start(2), pattern(1)).expect(Status.ZONE_TOO_MANY_OPEN)
        d.ns.append(d.ns.start(2), pattern(1)).expect(Status.ZONE_TOO_MANY_OPEN)
        assert d.ns.states()[:3] == [Zs.EXPLICITLY_OPEN, Zs.EXPLICITLY_OPEN, Zs.EMPTY]
        assert d.ns.zone(2).wp == 0


@pytest.mark.parametrize(
    "release", [Action.CLOSE, Action.FINISH, Action.RESET], ids=lambda a: a.name.lower()
)
def test_an_open_zone_is_released(drive: OpenDrive, release: Action) -> None:
    with drive(**LIMITS) as d:
        d.ns.send(Action.OPEN, 0).expect()
        d.ns.send(Action.OPEN, 1).expect()
        d.ns.send(release, 0).expect()
        d.ns.send(Action.OPEN, 2).expect()
        d.ns.send(Action.OPEN, 3).expect(
            Status.ZONE_TOO_MANY_ACTIVE if release == Action.CLOSE else Status.ZONE_TOO_MANY_OPEN
        )


def test_filling_a_zone_releases_it(drive: OpenDrive) -> None:
    with drive(**LIMITS) as d:
        d.ns.send(Action.OPEN, 0).expect()
        d.ns.send(Action.OPEN, 1).expect()
        d.ns.write(0, b"".join(pattern(i) for i in range(16))).expect()
        assert d.ns.zone(0).state == Zs.FULL
        d.ns.send(Action.OPEN, 2).expect()


def test_implicit_close_when_the_limit_is_met(drive: OpenDrive) -> None:
    with drive(**LIMITS) as d:
        for zone in range(3):
            d.ns.write(d.ns.start(zone), pattern(zone)).expect()
        assert d.ns.states()[:3] == [Zs.CLOSED, Zs.IMPLICITLY_OPEN, Zs.IMPLICITLY_OPEN]
        # The closed zone is opened again by a write, at the cost of another.
        d.ns.write(1, pattern(9)).expect()
        assert d.ns.states()[:3] == [Zs.IMPLICITLY_OPEN, Zs.CLOSED, Zs.IMPLICITLY_OPEN]
        assert d.ns.zone(0).wp == 2


def test_too_many_active(drive: OpenDrive) -> None:
    with drive(zd_ext=64, **LIMITS) as d:
        for zone in range(3):
            d.ns.write(d.ns.start(zone), pattern(zone)).expect()
            d.ns.send(Action.CLOSE, zone).expect()
        d.ns.write(d.ns.start(3), pattern(3)).expect(Status.ZONE_TOO_MANY_ACTIVE)
        d.ns.append(d.ns.start(3), pattern(3)).expect(Status.ZONE_TOO_MANY_ACTIVE)
        d.ns.queue.run(d.ns.io(Io.WRITE_ZEROES, d.ns.start(3), 1)).expect(
            Status.ZONE_TOO_MANY_ACTIVE
        )
        d.ns.send(Action.OPEN, 3).expect(Status.ZONE_TOO_MANY_ACTIVE)
        d.ns.set_extension(3, bytes(64)).expect(Status.ZONE_TOO_MANY_ACTIVE)
        assert d.ns.states() == [Zs.CLOSED] * 3 + [Zs.EMPTY] * 3
        d.ns.send(Action.FINISH, 0).expect()
        d.ns.write(d.ns.start(3), pattern(3)).expect()


def test_a_write_that_is_refused_keeps_no_resource(drive: OpenDrive) -> None:
    with drive(**LIMITS) as d:
        for zone in range(6):
            d.ns.write(d.ns.start(zone) + 1, pattern(1)).expect(Status.ZONE_INVALID_WRITE)
        assert set(d.ns.states()) == {Zs.EMPTY}
        d.ns.send(Action.OPEN, 0).expect()
        d.ns.send(Action.OPEN, 1).expect()


def test_open_all_beyond_the_limit(drive: OpenDrive) -> None:
    with drive(**LIMITS) as d:
        for zone in range(3):
            d.ns.write(d.ns.start(zone), pattern(zone)).expect()
        d.ns.send_all(Action.CLOSE).expect()
        d.ns.send_all(Action.OPEN).expect(Status.ZONE_TOO_MANY_OPEN)


def test_a_dead_zone_gives_its_resources_back(drive: OpenDrive) -> None:
    with drive(**LIMITS) as d:
        d.ns.send(Action.OPEN, 0).expect()
        d.ns.send(Action.OPEN, 1).expect()
        d.qemu.qom_set(NAMESPACE_PATH, "zone-offline", 0)
        d.qemu.qom_set(NAMESPACE_PATH, "zone-read-only", 1)
        d.ns.send(Action.OPEN, 2).expect()
        d.ns.send(Action.OPEN, 3).expect()
        d.ns.send(Action.OPEN, 4).expect(Status.ZONE_TOO_MANY_OPEN)


def test_limits_hold_over_a_restart(drive: OpenDrive) -> None:
    with drive(**LIMITS) as d:
        for zone in range(3):
            d.ns.write(d.ns.start(zone), pattern(zone)).expect()
        d.qemu.quit()
    with drive(**LIMITS) as d:
        assert d.ns.states()[:4] == [Zs.CLOSED, Zs.CLOSED, Zs.CLOSED, Zs.EMPTY]
        d.ns.write(d.ns.start(3), pattern(3)).expect(Status.ZONE_TOO_MANY_ACTIVE)
        d.ns.send(Action.RESET, 0).expect()
        d.ns.write(d.ns.start(3), pattern(3)).expect()
