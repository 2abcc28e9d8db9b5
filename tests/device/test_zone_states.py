# SPDX-License-Identifier: GPL-2.0-or-later
"""Every zone state and every command that could leave it, by the ZNS state machine."""

from __future__ import annotations

import pytest
from drive import Drive, OpenDrive, reach, reach_all
from nvme import UNMAPPED_ADDRESS, Io, Request, Status
from zns import ZA_EXTENSION_VALID, Action, Zs, blocks_of, pattern

ZONE = 2
EXTENSION = pattern(99, 64)


WRITTEN = {
    Zs.EMPTY: 0,
    Zs.IMPLICITLY_OPEN: 1,
    Zs.EXPLICITLY_OPEN: 0,
    Zs.CLOSED: 1,
    Zs.FULL: 16,
    Zs.READ_ONLY: 1,
    Zs.OFFLINE: 0,
}
WP_VALID = {Zs.EMPTY, Zs.IMPLICITLY_OPEN, Zs.EXPLICITLY_OPEN, Zs.CLOSED}


def run(d: Drive, operation: str, state: Zs) -> Request:
    """The command that a test is about, at the write pointer where it has one."""
    start, wp = d.ns.start(ZONE), WRITTEN[state] % 16
    if operation == "write":
        return d.ns.write(start + wp, pattern(2))
    if operation == "write zeroes":
        return d.ns.queue.run(d.ns.io(Io.WRITE_ZEROES, start + wp, 1))
    if operation == "append":
        return d.ns.append(start, pattern(2))
    if operation == "fill":
        return d.ns.write(start + wp, blocks_of(range(16 - wp)))
    if operation == "read":
        return d.ns.get(start, 2)[0]
    if operation == "set extension":
        return d.ns.set_extension(ZONE, EXTENSION)
    return d.ns.send(Action[operation.upper()], ZONE)


STATES = (
    Zs.EMPTY,
    Zs.IMPLICITLY_OPEN,
    Zs.EXPLICITLY_OPEN,
    Zs.CLOSED,
    Zs.FULL,
    Zs.READ_ONLY,
    Zs.OFFLINE,
)
# An outcome is the state afterwards, or a refusal that changes nothing.
SUCCESSES = {
    "empty": Zs.EMPTY,
    "impl": Zs.IMPLICITLY_OPEN,
    "expl": Zs.EXPLICITLY_OPEN,
    "closed": Zs.CLOSED,
    "full": Zs.FULL,
    "ro": Zs.READ_ONLY,
    "off": Zs.OFFLINE,
}
REFUSALS = {
    "-": Status.ZONE_INVALID_TRANSITION,
    "!full": Status.ZONE_FULL,
    "!ro": Status.ZONE_READ_ONLY,
    "!off": Status.ZONE_OFFLINE,
}
# One column for each of STATES.
TABLE = {
    "open": "expl expl expl expl - - -",
    "close": "- closed closed closed - - -",
    "finish": "full full full full full - -",
    "reset": "empty empty empty empty empty - -",
    "offline": "- - - - - off off",
    "set extension": "closed - - - - - -",
    "write": "impl impl expl impl !full !ro !off",
    "write zeroes": "impl impl expl impl !full !ro !off",
    "append": "impl impl expl impl !full !ro !off",
    "fill": "full full full full !full !ro !off",
    "read": "empty impl expl closed full ro !off",
}


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name.lower())
@pytest.mark.parametrize("operation", TABLE)
def test_transition(drive: OpenDrive, operation: str, state: Zs) -> None:
    outcome = TABLE[operation].split()[STATES.index(state)]
    status = REFUSALS.get(outcome, Status.SUCCESS)
    after = SUCCESSES.get(outcome, state)
    with drive(zd_ext=64, finish="mark") as d:
        reach(d, state, ZONE)
        run(d, operation, state).expect(status)
        d.controller.advance(1_000_000_000)
        zone = d.ns.zone(ZONE)
        assert zone.state == after
        written = WRITTEN[state]
        if status == Status.SUCCESS and operation in ("write", "write zeroes", "append"):
            written += 1
        if status == Status.SUCCESS and operation == "reset":
            written = 0
        assert zone.wp == (written if after in WP_VALID else None)
        extension_valid = bool(zone.attributes & ZA_EXTENSION_VALID)
        assert extension_valid == (operation == "set extension" and status == Status.SUCCESS)
        states = d.ns.states()
        assert set(states[:ZONE] + states[ZONE + 1 :]) == {Zs.EMPTY}, "another zone changed"
        if WRITTEN[state] == 1 and written and after != Zs.OFFLINE:
            assert d.ns.read(d.ns.start(ZONE))[0] == pattern(1)


def test_fields_of_descriptors(drive: OpenDrive) -> None:
    with drive() as d:
        zones = d.ns.report()
        assert len(zones) == 6
        for index, zone in enumerate(zones):
            assert zone.type == 2
            assert zone.state == Zs.EMPTY
            assert zone.attributes == 0
            assert zone.capacity == 16
            assert zone.start == index * 16
            assert zone.wp == 0


def test_extension_is_dropped_by_reset(drive: OpenDrive) -> None:
    with drive(zd_ext=64) as d:
        d.ns.set_extension(ZONE, EXTENSION).expect()
        assert d.ns.report(extended=True)[ZONE].extension == EXTENSION
        d.ns.write(d.ns.start(ZONE), pattern(1)).expect()
        assert d.ns.report(extended=True)[ZONE].extension == EXTENSION
        d.ns.send(Action.RESET, ZONE).expect()
        zone = d.ns.report(extended=True)[ZONE]
        assert zone.state == Zs.EMPTY
        assert not zone.attributes & ZA_EXTENSION_VALID
        assert zone.extension == bytes(64)


def test_extension_survives_the_other_transitions(drive: OpenDrive) -> None:
    with drive(zd_ext=128) as d:
        extension = pattern(5, 128)
        d.ns.set_extension(ZONE, extension).expect()
        for action in (Action.OPEN, Action.CLOSE, Action.FINISH):
            d.ns.send(action, ZONE).expect()
            zone = d.ns.report(extended=True)[ZONE]
            assert zone.attributes & ZA_EXTENSION_VALID
            assert zone.extension == extension


def test_extension_of_a_drive_without_any(drive: OpenDrive) -> None:
    with drive() as d:
        d.ns.set_extension(ZONE, EXTENSION).expect(Status.INVALID_FIELD)
        d.ns.receive(4096, extended=True)[0].expect(Status.INVALID_FIELD)


def test_extension_with_a_bad_buffer(drive: OpenDrive) -> None:
    with drive(zd_ext=64) as d:
        command = d.ns.send_command(
            Action.SET_DESCRIPTOR_EXTENSION, d.ns.start(ZONE), prp1=UNMAPPED_ADDRESS
        )
        d.ns.queue.run(command).expect(Status.DATA_TRANSFER_ERROR)
        assert d.ns.zone(ZONE).state == Zs.EMPTY


@pytest.mark.parametrize(
    ("action", "changes"),
    [
        (Action.OPEN, {Zs.CLOSED: Zs.EXPLICITLY_OPEN}),
        (Action.CLOSE, {Zs.IMPLICITLY_OPEN: Zs.CLOSED, Zs.EXPLICITLY_OPEN: Zs.CLOSED}),
        (
            Action.FINISH,
            {
                Zs.IMPLICITLY_OPEN: Zs.FULL,
                Zs.EXPLICITLY_OPEN: Zs.FULL,
                Zs.CLOSED: Zs.FULL,
            },
        ),
        (
            Action.RESET,
            {
                Zs.IMPLICITLY_OPEN: Zs.EMPTY,
                Zs.EXPLICITLY_OPEN: Zs.EMPTY,
                Zs.CLOSED: Zs.EMPTY,
                Zs.FULL: Zs.EMPTY,
            },
        ),
        (Action.OFFLINE, {Zs.READ_ONLY: Zs.OFFLINE}),
    ],
    ids=lambda value: value.name.lower() if isinstance(value, Action) else "",
)
def test_select_all(drive: OpenDrive, action: Action, changes: dict[Zs, Zs]) -> None:
    with drive(blocks=8, zd_ext=64) as d:
        reach_all(d)
        d.ns.send_all(action).expect()
        expected = [changes.get(state, state) for state in list(Zs)]
        assert d.ns.states()[: len(expected)] == expected
        assert d.ns.states()[len(expected)] == Zs.EMPTY


def test_select_all_of_an_extension_is_refused(drive: OpenDrive) -> None:
    with drive(zd_ext=64) as d:
        d.ns.send_all(Action.SET_DESCRIPTOR_EXTENSION).expect(Status.INVALID_FIELD)


@pytest.mark.parametrize("reset", ["mark", "erase"])
def test_reset_all_with_data(drive: OpenDrive, reset: str) -> None:
    with drive(reset=reset) as d:
        for zone in range(6):
            d.ns.write(d.ns.start(zone), blocks_of(range(zone + 1))).expect()
        d.ns.send_all(Action.RESET).expect()
        assert set(d.ns.states()) == {Zs.EMPTY}
        assert d.log()["zone_resets"] == 6
        for zone in range(6):
            assert d.ns.read(d.ns.start(zone), 6)[0] == bytes(6 * 4096)
            d.ns.write(d.ns.start(zone), pattern(zone)).expect()


@pytest.mark.parametrize("finish", ["mark", "pad"])
def test_finish_all(drive: OpenDrive, finish: str) -> None:
    with drive(finish=finish) as d:
        for zone in range(3):
            d.ns.write(d.ns.start(zone), pattern(zone)).expect()
        d.ns.send_all(Action.FINISH).expect()
        assert d.ns.states() == [Zs.FULL] * 3 + [Zs.EMPTY] * 3
        assert d.log()["prog_pad"] == (45 if finish == "pad" else 0)


@pytest.mark.parametrize("action", [0x00, 0x06, 0x0F, 0x7F])
def test_unknown_action(drive: OpenDrive, action: int) -> None:
    with drive() as d:
        d.ns.send(action, 0).expect(Status.INVALID_FIELD)


@pytest.mark.parametrize("action", [a for a in Action if a != Action.ZRWA_FLUSH])
def test_action_not_at_the_start_of_a_zone(drive: OpenDrive, action: Action) -> None:
    with drive(zd_ext=64) as d:
        d.ns.write(0, pattern(1)).expect()
        d.ns.queue.run(d.ns.send_command(action, 1)).expect(Status.INVALID_FIELD)
        assert d.ns.zone(0).state == Zs.IMPLICITLY_OPEN


@pytest.mark.parametrize("action", [a for a in Action if a != Action.ZRWA_FLUSH])
def test_action_beyond_the_last_zone(drive: OpenDrive, action: Action) -> None:
    with drive(zd_ext=64) as d:
        command = d.ns.send_command(action, d.ns.size)
        d.ns.queue.run(command).expect(Status.LBA_RANGE)


def test_random_write_area_is_not_offered(drive: OpenDrive) -> None:
    with drive() as d:
        d.ns.queue.run(d.ns.send_command(Action.ZRWA_FLUSH, 0)).expect(Status.ZONE_INVALID_OP)
        command = d.ns.send_command(Action.OPEN, 0)
        command.cdw13 |= 1 << 9  # ZRWAA
        d.ns.queue.run(command).expect(Status.ZONE_INVALID_OP)


def test_resets_and_writes_in_flight_take_effect_in_order(drive: OpenDrive) -> None:
    with drive(channels=1, ways=1, pages=8) as d:
        for round_ in range(4):
            transfer = d.ns.transfer(8)
            transfer.fill(blocks_of(range(10 * round_, 10 * round_ + 8)))
            write = d.ns.queue.submit(d.ns.io(Io.WRITE, 0, 8, transfer))
            back = d.ns.transfer(8)
            read = d.ns.queue.submit(d.ns.io(Io.READ, 0, 8, back))
            d.controller.wait(write, read)
            reset = d.ns.queue.submit(d.ns.send_command(Action.RESET, 0))
            d.controller.wait(reset)
            write.expect()
            read.expect()
            reset.expect()
            assert back.read() == transfer.read()
            assert d.ns.read(0, 8)[0] == bytes(8 * 4096)


@pytest.mark.parametrize("reset", ["mark", "erase"])
def test_reset_with_writes_in_flight(drive: OpenDrive, reset: str) -> None:
    """The reset and the writes all complete, and the zone is empty and writable afterwards."""
    with drive(reset=reset) as d:
        transfers = [d.ns.transfer(2) for _ in range(4)]
        writes = [
            d.ns.queue.submit(d.ns.io(Io.WRITE, 2 * index, 2, transfer))
            for index, transfer in enumerate(transfers)
        ]
        request = d.ns.queue.submit(d.ns.send_command(Action.RESET, 0))
        d.controller.wait(*writes, request)
        request.expect()
        zone = d.ns.zone(0)
        assert (zone.state, zone.wp) == (Zs.EMPTY, 0)
        d.ns.write(0, blocks_of(range(16))).expect()
        assert d.ns.read(0, 16)[0] == blocks_of(range(16))
