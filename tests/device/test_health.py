# SPDX-License-Identifier: GPL-2.0-or-later
"""The end of a drive's life: SMART's critical warnings, the events, what is refused, what stays."""

from __future__ import annotations

import pytest
from drive import Drive, OpenDrive
from nvme import Admin, Command, Io, Request, Status
from test_conventional import FTLS
from zns import Action, Zs, pattern

# One die whose blocks live about ten erases; two of them are spare.
SHORT_LIVED: dict[str, str | int] = {
    "channels": 1,
    "ways": 1,
    "blocks": 4,
    "spare_blocks": 2,
    "pages": 2,
    "endurance": 10,
    "life_spread": 20,
}
SPARE, READ_ONLY = 0x01, 0x08
SPARE_EVENT, RELIABILITY_EVENT = 0x02_02_01, 0x02_00_01  # type SMART, page 02h


def smart(d: Drive) -> tuple[int, int]:
    """Critical warnings, available spare. Reading clears the event."""
    log = d.controller.get_log(0x02, 512)
    return log[0], log[3]


def ask(d: Drive) -> Request:
    request = d.controller.admin.submit(Command(Admin.ASYNC_EVENT))
    d.controller.poll()
    return request


def enable_events(d: Drive, warnings: int) -> None:
    d.controller.admin.run(Command(Admin.SET_FEATURES, cdw10=0x0B, cdw11=warnings)).expect()


def wear_out(d: Drive, *events: Request) -> int:
    """Writes and resets zone 0 until that is refused, or an event comes; how often it was not."""
    for cycles in range(1000):
        for request in (d.ns.write(0, pattern(cycles)), d.ns.send(Action.RESET, 0)):
            if request.status:
                request.expect(Status.WRITE_FAULT)
                return cycles
        if any(event.done for event in events):
            return cycles
    raise AssertionError("the drive does not wear out")


def test_a_new_drive_is_well(drive: OpenDrive) -> None:
    with drive(**SHORT_LIVED) as d:
        assert smart(d) == (0, 100)


def test_end_of_life(drive: OpenDrive) -> None:
    with drive(**SHORT_LIVED) as d:
        d.ns.write(d.ns.start(1), pattern(77)).expect()
        enable_events(d, SPARE | READ_ONLY)
        event = ask(d)
        cycles = wear_out(d, event)
        assert event.result == SPARE_EVENT
        assert smart(d) == (SPARE, 0)
        event = ask(d)
        cycles += wear_out(d)
        assert 6 * 8 // 4 <= cycles <= 6 * 12, "erases of six blocks, give or take"
        assert event.expect().result == RELIABILITY_EVENT
        assert smart(d) == (SPARE | READ_ONLY, 0)
        assert not ask(d).done, "both are told once"
        assert d.log()["blocks_grown"] > 2

        d.ns.write(d.ns.start(2), pattern(1)).expect(Status.WRITE_FAULT)
        d.ns.append(d.ns.start(2), pattern(1)).expect(Status.WRITE_FAULT)
        d.ns.send(Action.RESET, 1).expect(Status.WRITE_FAULT)
        d.ns.send(Action.FINISH, 1).expect(Status.WRITE_FAULT)
        d.ns.flush().expect()
        assert d.ns.read(d.ns.start(1))[0] == pattern(77), "what was acknowledged stays"
        assert d.ns.zone(2).wp == 0
        d.qemu.kill()
    with drive(**SHORT_LIVED) as d:
        enable_events(d, SPARE | READ_ONLY)
        event = ask(d)
        assert smart(d) == (SPARE | READ_ONLY, 0)
        d.ns.write(d.ns.start(2), pattern(1)).expect(Status.WRITE_FAULT)
        assert d.ns.read(d.ns.start(1))[0] == pattern(77)
        assert not event.done, "it was so before"


@pytest.mark.parametrize("aborted", [False, True], ids=["refused", "forgotten"])
def test_late_refusal_rewinds_the_zone(drive: OpenDrive, aborted: bool) -> None:
    """The last block dies after the write pointer has moved, perhaps under a forgotten write.

    The pointer is where it was: at what the zone holds.
    """
    props = SHORT_LIVED | {"t-fw-write": 1000, "endurance": 1, "blocks": 1, "spare_blocks": 0}
    with drive(**props) as d:
        d.ns.write(0, pattern(1)).expect()
        d.ns.send(Action.RESET, 0).expect()
        late = d.ns.queue.submit(d.ns.io(Io.WRITE, 0, 1, d.ns.transfer(1)))
        assert not late.done
        assert d.ns.zone(0).wp == 1
        if aborted:
            d.reset_controller()
            d.controller.advance(1000)
        else:
            d.controller.wait(late)
            late.expect(Status.WRITE_FAULT)
        assert d.ns.zone(0).wp == 0
        assert d.ns.zone(0).state == Zs.EMPTY


def test_events_are_asked_for(drive: OpenDrive) -> None:
    with drive(**SHORT_LIVED) as d:
        enable_events(d, 0)
        event = ask(d)
        wear_out(d)
        assert not event.done
        assert smart(d)[0] == SPARE | READ_ONLY


@pytest.mark.parametrize("ftl", FTLS)
def test_end_of_life_of_a_conventional_namespace(drive: OpenDrive, ftl: str) -> None:
    props = SHORT_LIVED | {"blocks": 48, "pages": 8, "over_provision": 40, "ftl": ftl}
    with drive(**props) as d:
        enable_events(d, READ_ONLY)
        event = ask(d)
        acknowledged: dict[int, int] = {}
        for turn in range(100_000):
            slba = turn * 7 % min(d.ns.size, 50)
            request = d.ns.write(slba, pattern(turn))
            if request.status:
                request.expect(Status.WRITE_FAULT)
                break
            acknowledged[slba] = turn
        else:
            raise AssertionError("the drive does not wear out")
        d.controller.wait(event)
        assert event.result == RELIABILITY_EVENT
        assert smart(d) == (SPARE | READ_ONLY, 0)
        for slba, turn in acknowledged.items():
            assert d.ns.read(slba)[0] == pattern(turn)
        d.ns.deallocate((0, 1)).expect(Status.WRITE_FAULT)
        d.qemu.kill()
    with drive(**props) as d:
        for slba, turn in acknowledged.items():
            assert d.ns.read(slba)[0] == pattern(turn)
        d.ns.write(0, pattern(1)).expect(Status.WRITE_FAULT)
