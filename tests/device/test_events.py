# SPDX-License-Identifier: GPL-2.0-or-later
"""Asynchronous events and the Changed Zone List."""

from __future__ import annotations

import struct

import pytest
from drive import NAMESPACE_PATH, Drive, OpenDrive
from nvme import Admin, Command, Io, Request, Status
from qtest import QemuError
from zns import Action, Zs, pattern

CHANGED_ZONES = 0xBF
ZONE_DESCRIPTOR_CHANGED = 1 << 27
# type notice, information Zone Descriptor Changed, log page 0xBF
NOTICE = CHANGED_ZONES << 16 | 0xEF << 8 | 2


def changed_zones(d: Drive, *, rae: bool = False) -> list[int]:
    """Start LBAs of the zones in the log page."""
    page = d.controller.get_log(CHANGED_ZONES, 4096, nsid=1, rae=rae)
    (count,) = struct.unpack_from("<H", page)
    assert count <= 511
    listed = struct.unpack_from(f"<{count}Q", page, 8)
    assert not any(page[8 + 8 * count :])
    return list(listed)


def enable_notices(d: Drive, mask: int = ZONE_DESCRIPTOR_CHANGED) -> None:
    d.controller.admin.run(Command(Admin.SET_FEATURES, cdw10=0x0B, cdw11=mask)).expect()


def ask(d: Drive) -> Request:
    """An Asynchronous Event Request."""
    request = d.controller.admin.submit(Command(Admin.ASYNC_EVENT))
    d.controller.poll()
    return request


def degrade(d: Drive, zone: int, how: str = "read-only") -> None:
    d.qemu.qom_set(NAMESPACE_PATH, f"zone-{how}", zone)
    d.controller.poll()


def test_notices_are_offered(drive: OpenDrive) -> None:
    with drive() as d:
        (oaes,) = struct.unpack_from("<I", d.controller.identify(0x01), 92)
        assert oaes & ZONE_DESCRIPTOR_CHANGED


def test_list_is_empty_at_first(drive: OpenDrive) -> None:
    with drive() as d:
        assert changed_zones(d) == []


@pytest.mark.parametrize("how", ["read-only", "offline"])
def test_notice_and_list(drive: OpenDrive, how: str) -> None:
    with drive() as d:
        enable_notices(d)
        event = ask(d)
        assert not event.done
        d.ns.write(d.ns.start(4), pattern(1)).expect()
        degrade(d, 4, how)
        d.controller.wait(event)
        assert event.expect().result == 1 << 32 | NOTICE, "dword 1 has the NSID"
        assert changed_zones(d) == [d.ns.start(4)]
        assert changed_zones(d) == [], "cleared by reading"
        assert d.ns.zone(4).state == (Zs.READ_ONLY if how == "read-only" else Zs.OFFLINE)


def test_retained_event(drive: OpenDrive) -> None:
    """With RAE the list stays and no new notice comes before it is read without."""
    with drive() as d:
        enable_notices(d)
        events = [ask(d), ask(d)]  # which of them is answered first is not defined
        degrade(d, 1)
        assert [event.done for event in events].count(True) == 1
        assert changed_zones(d, rae=True) == [d.ns.start(1)]
        degrade(d, 3)
        assert [event.done for event in events].count(True) == 1
        assert changed_zones(d, rae=True) == [d.ns.start(1), d.ns.start(3)]
        assert changed_zones(d) == [d.ns.start(1), d.ns.start(3)]
        degrade(d, 5)
        d.controller.wait(*events)
        for event in events:
            assert event.expect().result & 0xFFFFFFFF == NOTICE
        assert changed_zones(d) == [d.ns.start(5)]


def test_event_before_the_request(drive: OpenDrive) -> None:
    with drive() as d:
        enable_notices(d)
        degrade(d, 2)
        event = ask(d)
        d.controller.wait(event)
        assert event.expect().result & 0xFFFFFFFF == NOTICE


def test_no_notice_unless_asked_for(drive: OpenDrive) -> None:
    with drive() as d:
        enable_notices(d, 0)
        event = ask(d)
        degrade(d, 2)
        d.controller.advance(1_000_000)
        assert not event.done


def test_a_zone_is_listed_once(drive: OpenDrive) -> None:
    with drive() as d:
        degrade(d, 2)
        degrade(d, 2, "offline")
        assert changed_zones(d) == [d.ns.start(2)]


def test_changes_by_the_host_are_no_events(drive: OpenDrive) -> None:
    with drive(zoned_max_open=1) as d:
        enable_notices(d)
        event = ask(d)
        for zone in range(3):
            d.ns.write(d.ns.start(zone), pattern(1)).expect()
        d.ns.send_all(Action.FINISH).expect()
        d.ns.send_all(Action.RESET).expect()
        assert not event.done
        assert changed_zones(d) == []


def test_more_zones_than_the_list_holds(drive: OpenDrive) -> None:
    with drive(channels=1, ways=1, blocks=600, pages=1) as d:
        for zone in range(512):
            degrade(d, zone)
        page = d.controller.get_log(CHANGED_ZONES, 4096, nsid=1)
        assert struct.unpack_from("<H", page) == (0xFFFF,)
        assert not any(page[8:]), "no identifiers if there are too many"
        assert changed_zones(d) == []


def test_degrade_while_writing(drive: OpenDrive) -> None:
    """Writes in flight end, in success or with the zone's new state; nothing hangs."""
    with drive() as d:
        requests = []
        for index in range(8):
            transfer = d.ns.transfer(1)
            transfer.fill(pattern(index))
            requests.append(d.ns.queue.submit(d.ns.io(Io.WRITE, index, 1, transfer)))
        d.qemu.step()
        degrade(d, 0)
        d.controller.wait(*requests)
        assert d.ns.zone(0).state == Zs.READ_ONLY
        for index, request in enumerate(requests):
            if request.status == Status.SUCCESS:
                assert d.ns.read(index)[0] == pattern(index)
            else:
                request.expect(Status.ZONE_READ_ONLY)


def test_bad_zone_number(drive: OpenDrive) -> None:
    with drive() as d, pytest.raises(QemuError, match=r"zone-offline.*6.*0 to 5"):
        d.qemu.qom_set(NAMESPACE_PATH, "zone-offline", 6)


def test_too_many_event_requests(drive: OpenDrive) -> None:
    with drive(controller="aerl=1") as d:
        first, second = ask(d), ask(d)
        d.controller.admin.run(Command(Admin.ASYNC_EVENT)).expect(Status.AER_LIMIT_EXCEEDED)
        assert not first.done
        assert not second.done


def test_abort_of_an_event_request(drive: OpenDrive) -> None:
    with drive() as d:
        event = ask(d)
        abort = d.controller.admin.run(Command(Admin.ABORT, cdw10=event.cid << 16)).expect()
        assert abort.result & 1 == 0
        d.controller.wait(event)
        event.expect(Status.ABORTED)


def test_controller_reset_forgets_the_requests(drive: OpenDrive) -> None:
    with drive() as d:
        enable_notices(d)
        ask(d)
        d.reset_controller()
        degrade(d, 1)
        enable_notices(d)
        event = ask(d)
        degrade(d, 2)
        d.controller.poll()
        d.controller.wait(event)
        assert d.ns.start(2) in changed_zones(d)
