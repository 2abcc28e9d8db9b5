# SPDX-License-Identifier: GPL-2.0-or-later
"""Queues: many commands, deletion and controller reset with I/O in flight, abort, shutdown."""

from __future__ import annotations

import pytest
from drive import SMALL, Drive, OpenDrive
from nvme import Admin, Command, Io, Request, Status
from zns import Action, Namespace, Zs, blocks_of, pattern

PROGRAM_NS = int(SMALL["t-cmd"]) + int(SMALL["t-xfer"]) + int(SMALL["t-prog"])


def submit_writes(d: Drive, namespace: Namespace, zone: int, count: int) -> list[Request]:
    """Writes of one block each, patterned by their place, all in flight."""
    commands = []
    for index in range(count):
        transfer = namespace.transfer(1)
        transfer.fill(pattern(1000 * zone + index))
        commands.append(namespace.io(Io.WRITE, namespace.start(zone) + index, 1, transfer))
    return namespace.queue.submit_all(commands)


def check_zone(d: Drive, zone: int, least: int) -> None:
    """The first blocks of the zone are those of submit_writes(); it can be written further."""
    descriptor = d.ns.zone(zone)
    wp = descriptor.capacity if descriptor.wp is None else descriptor.wp
    assert wp >= least
    start = d.ns.start(zone)
    expected = [pattern(1000 * zone + index) for index in range(wp)]
    if wp:
        assert d.ns.read(start, wp)[0] == b"".join(expected)
    if wp < descriptor.capacity:
        d.ns.write(start + wp, pattern(5)).expect()
        assert d.ns.read(start + wp)[0] == pattern(5)


def test_a_thousand_commands_in_flight(drive: OpenDrive) -> None:
    with drive(pages=256, blocks=2) as d:
        requests = submit_writes(d, d.ns, 0, 1023)
        d.controller.wait(*requests)
        for request in requests:
            request.expect()
        assert d.ns.zone(0).wp == 1023
        times = [request.completed_ns for request in requests]
        # One page a die at a time, so die n completes its pages in order, each a program apart.
        assert all(
            later - sooner == PROGRAM_NS
            for sooner, later in zip(times[:-4], times[4:], strict=True)
        )
        assert d.ns.read(900, 123)[0] == blocks_of(range(900, 1023))


def test_appends_from_several_queues_land_apart(drive: OpenDrive) -> None:
    with drive(pages=16) as d:
        spaces = [d.ns, *(d.ns.on(d.controller.create_queue(qid)) for qid in (2, 3, 4))]
        requests = []
        for index in range(64):
            space = spaces[index % 4]
            transfer = space.transfer(1)
            transfer.fill(pattern(index))
            requests.append(space.queue.submit(space.io(Io.ZONE_APPEND, 64, 1, transfer)))
        d.controller.wait(*requests)
        places = [request.expect().result for request in requests]
        assert sorted(places) == list(range(64, 128))
        for index, place in enumerate(places):
            assert d.ns.read(place)[0] == pattern(index)
        assert d.ns.zone(1).state == Zs.FULL


def test_full_completion_queue(drive: OpenDrive) -> None:
    """Completions that find no room are posted when the host makes room."""
    with drive(pages=16) as d:
        space = d.ns.on(d.controller.create_queue(2, depth=64, cq_depth=4))
        requests = submit_writes(d, space, 0, 40)
        d.qemu.step(100 * PROGRAM_NS)
        d.controller.wait(*requests)
        for request in requests:
            request.expect()
        check_zone(d, 0, 40)


@pytest.mark.parametrize("steps", [0, 1, 5, 11])
@pytest.mark.parametrize("settle", [True, False])
def test_queue_deletion_with_io_in_flight(drive: OpenDrive, steps: int, settle: bool) -> None:
    with drive(pages=16) as d:
        space = d.ns.on(d.controller.create_queue(2, depth=64))
        other = submit_writes(d, d.ns, 1, 8)
        requests = submit_writes(d, space, 0, 40)
        d.controller.step(steps)
        d.controller.delete_queue(2)
        for request in requests:
            if request.done and request.status != Status.SUCCESS:
                request.expect(Status.ABORTED_SQ_DELETED)
        acknowledged = sum(request.done and request.status == 0 for request in requests)
        assert all(request.done for request in requests)
        assert acknowledged == 0 or steps
        if settle:
            d.controller.advance(1_000_000_000)
        # Commands of another queue are not concerned.
        d.controller.wait(*other)
        for request in other:
            request.expect()
        check_zone(d, 1, 8)
        check_zone(d, 0, acknowledged)
        again = d.ns.on(d.controller.create_queue(2, depth=64))
        requests = submit_writes(d, again, 2, 40)
        d.controller.wait(*requests)
        check_zone(d, 2, 40)


@pytest.mark.parametrize("opcode", [Io.READ, Io.ZONE_APPEND, Io.ZONE_SEND], ids=lambda o: o.name)
def test_queue_deletion_with_other_commands_in_flight(drive: OpenDrive, opcode: Io) -> None:
    with drive(reset="erase", finish="pad", oob=16) as d:
        d.ns.write(0, blocks_of(range(8)), bytes(128)).expect()
        queue = d.controller.create_queue(2)
        if opcode == Io.ZONE_SEND:
            command = d.ns.send_command(Action.RESET, 0)
        else:
            command = d.ns.io(opcode, 0, 4, d.ns.transfer(4))
        queue.submit(command)
        d.controller.delete_queue(2)
        d.controller.advance(1_000_000_000)
        d.ns.write(16, pattern(1), bytes(16)).expect()
        zone = d.ns.zone(0)
        expected = {Io.READ: 8, Io.ZONE_APPEND: 12, Io.ZONE_SEND: 0}[opcode]
        assert zone.wp == expected
        d.ns.write(expected, pattern(2), bytes(16)).expect()


@pytest.mark.parametrize("action", [Action.RESET, Action.FINISH], ids=lambda a: a.name.lower())
@pytest.mark.parametrize("everything", [True, False], ids=["all", "one"])
def test_controller_reset_during_a_zone_command(
    drive: OpenDrive, action: Action, everything: bool
) -> None:
    with drive(reset="erase", finish="pad") as d:
        d.ns.write(0, blocks_of(range(8))).expect()
        d.ns.write(16, blocks_of(range(8))).expect()
        d.ns.queue.submit(d.ns.send_command(action, 0, select_all=everything))
        d.qemu.step()
        d.reset_controller(1_000_000_000)
        ns = d.ns
        for zone in (0, 1):
            descriptor = ns.zone(zone)
            if descriptor.wp is not None and descriptor.wp < descriptor.capacity:
                ns.write(ns.start(zone) + descriptor.wp, pattern(9)).expect()
            ns.send(Action.RESET, zone).expect()
            ns.write(ns.start(zone), blocks_of(range(16))).expect()
            assert ns.read(ns.start(zone), 16)[0] == blocks_of(range(16))


@pytest.mark.parametrize("steps", [0, 1, 5, 11])
@pytest.mark.parametrize("settle", [True, False])
def test_controller_reset_with_io_in_flight(drive: OpenDrive, steps: int, settle: bool) -> None:
    with drive(pages=16) as d:
        requests = submit_writes(d, d.ns, 0, 40)
        submit_writes(d, d.ns, 1, 3)
        d.ns.queue.submit(d.ns.io(Io.READ, 0, 8, d.ns.transfer(8)))
        d.controller.step(steps)
        acknowledged = sum(request.done for request in requests)
        d.reset_controller(1_000_000_000 if settle else 0)
        check_zone(d, 0, acknowledged)
        check_zone(d, 1, 0)
        requests = submit_writes(d, d.ns, 2, 40)
        d.controller.wait(*requests)
        check_zone(d, 2, 40)


def test_many_controller_resets(drive: OpenDrive) -> None:
    """Nothing piles up or is lost when resets come faster than commands complete."""
    with drive(pages=64, blocks=3) as d:
        for round_ in range(20):
            zone = d.ns.zone(0)
            assert zone.wp is not None
            commands = []
            for index in range(zone.wp, min(zone.wp + 6, zone.capacity)):
                transfer = d.ns.transfer(1)
                transfer.fill(pattern(index))
                commands.append(d.ns.io(Io.WRITE, index, 1, transfer))
            d.ns.queue.submit_all(commands)
            if round_ % 3:
                d.controller.step()
            d.reset_controller(10_000_000 if round_ % 4 == 0 else 0)
        d.controller.advance(10_000_000)
        wp = d.ns.zone(0).wp
        assert wp
        assert d.ns.read(0, wp)[0] == blocks_of(range(wp))


def test_abort(drive: OpenDrive) -> None:
    """The command completes once, normally or as aborted, and the zone stays consistent."""
    with drive(pages=16) as d:
        requests = submit_writes(d, d.ns, 0, 12)
        victim = requests[7]
        abort = d.controller.admin.run(Command(Admin.ABORT, cdw10=victim.cid << 16 | 1)).expect()
        d.controller.wait(*requests)
        for request in requests:
            if request is not victim or abort.result & 1:
                request.expect()
            else:
                request.expect(Status.ABORTED)
        d.controller.advance(1_000_000_000)
        assert not d.ns.queue.in_flight
        check_zone(d, 0, 12)


def test_abort_of_nothing(drive: OpenDrive) -> None:
    with drive() as d:
        abort = d.controller.admin.run(Command(Admin.ABORT, cdw10=99 << 16 | 1)).expect()
        assert abort.result & 1
        d.controller.admin.run(Command(Admin.ABORT, cdw10=99 << 16 | 9)).expect(
            Status.INVALID_FIELD
        )


@pytest.mark.parametrize("in_flight", [0, 20])
def test_shutdown_notification(drive: OpenDrive, in_flight: int) -> None:
    with drive(pages=16) as d:
        d.ns.send(Action.OPEN, 3).expect()
        requests = submit_writes(d, d.ns, 0, 10)
        d.controller.wait(*requests)
        submit_writes(d, d.ns, 1, in_flight)
        d.controller.shutdown()
        d.controller.advance(1_000_000_000)
        d.reset_controller()
        states = d.ns.states()
        assert states[0] == Zs.CLOSED
        assert states[3] == Zs.EMPTY
        check_zone(d, 0, 10)
        check_zone(d, 1, 0)
        d.qemu.quit()


def test_unknown_queue(drive: OpenDrive) -> None:
    with drive() as d:
        d.controller.admin.run(Command(Admin.DELETE_SQ, cdw10=7)).expect(Status.INVALID_QID)
        d.controller.admin.run(Command(Admin.DELETE_CQ, cdw10=7)).expect(Status.INVALID_CQID)


@pytest.mark.parametrize("count", [1, 40])
def test_system_reset_with_io_in_flight(drive: OpenDrive, count: int) -> None:
    """A reset of the whole machine: the drive goes on from what it holds."""
    with drive(pages=16) as d:
        submit_writes(d, d.ns, 0, count)
        d.qemu.step()
        d.qemu.qmp("system_reset")
        d.qemu.qmp("query-status")
        d.attach()
        check_zone(d, 0, 0)
        d.qemu.quit()


def test_quit_with_io_in_flight(drive: OpenDrive) -> None:
    with drive(pages=16) as d:
        submit_writes(d, d.ns, 0, 40)
        d.controller.step(4)
        d.qemu.quit()
    with drive(pages=16) as d:
        check_zone(d, 0, 4)


def test_stop_and_continue_with_io_in_flight(drive: OpenDrive) -> None:
    """Stopping the machine drains its disks; that must not wait for a stopped clock."""
    with drive(pages=16) as d:
        requests = submit_writes(d, d.ns, 0, 40)
        d.qemu.step()
        d.qemu.qmp("stop")
        assert d.qemu.qmp("query-status")["running"] is False
        d.qemu.qmp("cont")
        d.controller.wait(*requests)
        check_zone(d, 0, 40)
