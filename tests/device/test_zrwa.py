# SPDX-License-Identifier: GPL-2.0-or-later
"""Zone random write areas: what is offered, every status and transition, what a SIGKILL leaves."""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from drive import NAMESPACE_PATH, SMALL, Drive, OpenDrive, device_args
from nvme import Command, Io, Request, Status
from qtest import start_error
from test_record import replays
from zns import BLOCK, Action, Zs, blocks_of, pattern

# Zones of 16 blocks; two areas of 4, committed by 2; room for a block of each die besides.
SIZE, FLUSH, AREAS = 4, 2, 2
ZRWA: dict[str, Any] = {
    "zrwa": AREAS,
    "zrwa_size": SIZE * BLOCK,
    "zrwa_flush": FLUSH * BLOCK,
    "write_buffer": (AREAS * SIZE + 4) * BLOCK,
    "ack": "buffer",
}
ZRWA_VALID = 1 << 3
ALLOCATE = 1 << 9
FUA = 1 << 30
PROGRAM_NS = int(SMALL["t-xfer"]) + int(SMALL["t-cmd"]) + int(SMALL["t-prog"])


def open_area(d: Drive, zone: int) -> Request:
    """Open Zone with ZRWAA."""
    command = d.ns.send_command(Action.OPEN, d.ns.start(zone))
    command.cdw13 |= ALLOCATE
    return d.ns.queue.run(command)


def commit(d: Drive, last: int) -> Request:
    """An explicit flush up to and including a block."""
    return d.ns.queue.run(d.ns.send_command(Action.ZRWA_FLUSH, last))


def put(d: Drive, slba: int, *tags: int, flags: int = 0) -> Request:
    """A write of blocks with these tags."""
    transfer = d.ns.transfer(len(tags))
    transfer.fill(blocks_of(tags))
    command = d.ns.io(Io.WRITE, slba, len(tags), transfer)
    command.cdw12 |= flags
    return d.ns.queue.run(command)


def expect(d: Drive, slba: int, *tags: int) -> None:
    """The blocks from there on have these tags; 0: zeroes."""
    data = b"".join(pattern(tag) if tag else bytes(BLOCK) for tag in tags)
    assert d.ns.read(slba, len(tags))[0] == data


def has_area(d: Drive, zone: int) -> bool:
    return bool(d.ns.zone(zone).attributes & ZRWA_VALID)


@pytest.mark.parametrize("there", [True, False])
def test_identify(drive: OpenDrive, there: bool) -> None:
    with drive(**(ZRWA if there else {})) as d:
        page = d.controller.identify(0x05, 1, csi=2)
        (ozcs,) = struct.unpack_from("<H", page, 2)
        numzrwa, flush, size, capabilities = struct.unpack_from("<IHHB", page, 44)
        assert bool(ozcs & 2) is there
        assert capabilities == there  # explicit flush
        assert (numzrwa, flush, size) == ((AREAS, FLUSH, SIZE) if there else (0, 0, 0))


def test_writes_in_any_order(drive: OpenDrive) -> None:
    with drive(**ZRWA) as d:
        open_area(d, 0).expect()
        zone = d.ns.zone(0)
        assert (zone.state, zone.wp, zone.attributes) == (Zs.EXPLICITLY_OPEN, 0, ZRWA_VALID)
        put(d, 3, 1).expect()
        put(d, 0, 2, 3).expect()
        assert put(d, 1, 4).expect().latency_ns == 0
        d.ns.queue.run(d.ns.io(Io.WRITE_ZEROES, 3, 1)).expect()
        expect(d, 0, 2, 4, 0, 0, 0)
        assert d.ns.zone(0).wp == 0
        assert d.log()["nand_programs"] == 0
        assert d.log()["zrwa_overwrites"] == 2
        # One block beyond the area commits two, two beyond as many.
        put(d, 4, 5).expect()
        assert d.ns.zone(0).wp == 2
        put(d, 5, 6).expect()
        assert d.ns.zone(0).wp == 2
        put(d, 2, 7, 8, 9, 10, 11, 12, 13, 14).expect()
        assert d.ns.zone(0).wp == 6
        expect(d, 0, 2, 4, 7, 8, 9, 10, 11, 12, 13, 14, 0)
        log = d.log()
        assert (log["zrwa_implicit"], log["zrwa_explicit"]) == (6, 0)
        d.controller.advance(10_000_000)
        assert d.log()["prog_host"] == 6


def test_commit(drive: OpenDrive) -> None:
    with drive(**(ZRWA | {"ack": "program"})) as d:
        open_area(d, 1).expect()
        start = d.ns.start(1)
        assert put(d, start + 1, 1, 2).expect().latency_ns == 0
        # Two channels: both blocks at once. The first one is filler.
        assert commit(d, start + 1).expect().latency_ns == PROGRAM_NS
        assert d.ns.zone(1).wp == 2
        log = d.log()
        assert (log["prog_host"], log["prog_pad"], log["zrwa_explicit"]) == (1, 1, 2)
        expect(d, start, 0, 1, 2, 0)
        # To the end of the zone: it is full, and its area free.
        while d.ns.zone(1).state != Zs.FULL:
            commit(d, start + (d.ns.zone(1).wp or 0) + 1).expect()
        assert not has_area(d, 1)
        assert d.log()["zrwa_explicit"] == 16
        commit(d, start + 1).expect(Status.INVALID_FIELD)


def test_what_is_refused(drive: OpenDrive) -> None:
    with drive(**ZRWA) as d:
        start = d.ns.start(2)
        commit(d, start + 1).expect(Status.INVALID_FIELD)
        open_area(d, 2).expect()
        put(d, start, 1, 2, 3, 4, 5, 6).expect()
        for slba, blocks in ((1, 1), (2, 9), (9, 2)):
            put(d, start + slba, *range(1, blocks + 1)).expect(Status.ZONE_INVALID_WRITE)
        d.ns.append(start, pattern(1)).expect(Status.ZONE_INVALID_OP)
        for last, status in (
            (1, Status.ZONE_BOUNDARY),
            (2, Status.INVALID_FIELD),
            (6, Status.ZONE_BOUNDARY),
            (7, Status.ZONE_BOUNDARY),
        ):
            commit(d, start + last).expect(status)
        command = d.ns.send_command(Action.ZRWA_FLUSH, start + 3, select_all=True)
        d.ns.queue.run(command).expect(Status.INVALID_FIELD)
        assert d.ns.zone(2).wp == 2
        expect(d, start, 1, 2, 3, 4, 5, 6, 0)
        # An area cannot begin at an odd block.
        d.ns.append(d.ns.start(3), pattern(1)).expect()
        open_area(d, 3).expect(Status.ZRWA_UNAVAILABLE)


def test_end_of_a_zone(drive: OpenDrive) -> None:
    """An area does not reach beyond a zone's capacity, 12 blocks of 16."""
    with drive(pages=3, **ZRWA) as d:
        open_area(d, 0).expect()
        for last in (3, 7, 9):
            commit(d, last).expect()
        commit(d, 13).expect(Status.ZONE_BOUNDARY)
        put(d, 11, 1, 2).expect(Status.ZONE_BOUNDARY)
        put(d, 10, 1, 2).expect()
        assert d.ns.zone(0).state == Zs.EXPLICITLY_OPEN
        commit(d, 11).expect()
        assert (d.ns.zone(0).state, d.ns.zone(0).attributes) == (Zs.FULL, 0)
        put(d, 11, 1).expect(Status.ZONE_FULL)
        expect(d, 9, 0, 1, 2)


def test_no_areas(drive: OpenDrive) -> None:
    with drive() as d:
        open_area(d, 0).expect(Status.ZONE_INVALID_OP)
        commit(d, 1).expect(Status.ZONE_INVALID_OP)
        assert d.ns.zone(0).state == Zs.EMPTY


@pytest.mark.parametrize("how", ["reset", "reset all", "finish", "full", "format"])
def test_areas_are_given_back(drive: OpenDrive, how: str) -> None:
    with drive(**ZRWA) as d:
        for _ in range(3):
            for zone in range(AREAS):
                open_area(d, zone).expect()
                # Again: it keeps the one it has.
                open_area(d, zone).expect()
                put(d, d.ns.start(zone), 1, 2, 3).expect()
            open_area(d, AREAS).expect(Status.ZRWA_UNAVAILABLE)
            assert d.ns.zone(AREAS).state == Zs.EMPTY
            d.ns.write(d.ns.start(AREAS), blocks_of([1, 2])).expect()
            open_area(d, AREAS).expect(Status.ZRWA_UNAVAILABLE)
            assert d.ns.zone(AREAS).state == Zs.IMPLICITLY_OPEN
            for zone in range(AREAS):
                start = d.ns.start(zone)
                if how in ("reset", "finish"):
                    d.ns.send(Action[how.upper()], zone).expect()
                elif how == "full":
                    for last in range(3, 16, 4):
                        commit(d, start + last).expect()
                if how in ("finish", "full"):
                    assert d.ns.zone(zone).state == Zs.FULL
                    expect(d, start, 1, 2, 3, 0)
            if how == "format":
                d.controller.advance(100_000_000)
                d.controller.format(0).expect()
                d.ns.refresh()
            if how == "reset all":
                d.ns.send_all(Action.RESET).expect()
            assert not any(has_area(d, zone) for zone in range(AREAS))
            open_area(d, AREAS).expect()
            d.ns.send_all(Action.RESET).expect()
            expect(d, 0, 0, 0, 0, 0)


def test_open_zones(drive: OpenDrive) -> None:
    """A zone that is open already, and a closed one, get an area; a full one does not."""
    with drive(**ZRWA) as d:
        d.ns.write(0, blocks_of([1, 2])).expect()
        open_area(d, 0).expect()
        assert d.ns.zone(0).state == Zs.EXPLICITLY_OPEN
        start = d.ns.start(1)
        d.ns.write(start, blocks_of([3, 4])).expect()
        d.ns.send(Action.CLOSE, 1).expect()
        open_area(d, 1).expect()
        put(d, start + 3, 5).expect()
        expect(d, start, 3, 4, 0, 5)
        # Closing keeps it; a write opens the zone again.
        d.ns.send(Action.CLOSE, 1).expect()
        assert (d.ns.zone(1).state, has_area(d, 1)) == (Zs.CLOSED, True)
        put(d, start + 2, 6).expect()
        assert (d.ns.zone(1).state, has_area(d, 1)) == (Zs.IMPLICITLY_OPEN, True)
        d.ns.send(Action.CLOSE, 1).expect()
        commit(d, start + 3).expect()
        assert (d.ns.zone(1).state, d.ns.zone(1).wp) == (Zs.IMPLICITLY_OPEN, 4)
        expect(d, start, 3, 4, 6, 5)
        d.ns.send(Action.FINISH, 0).expect()
        open_area(d, 0).expect(Status.ZONE_INVALID_TRANSITION)


def submit_behind_a_refusal(d: Drive, *commands: Command) -> list[Request]:
    """Commands behind an Open Zone with ZRWAA for zone 1 that the drive refuses.

    The host may give zone 1 the area of zone 0, which is finished. But what is in that waits for
    room in the buffer: the drive still has it when it comes to the open.
    """
    for zone in (0, 3):
        open_area(d, zone).expect()
    put(d, 0, 1, 2, 3, 4).expect()
    full = d.ns.transfer(16)
    full.fill(blocks_of(range(16)))
    fill = d.ns.io(Io.WRITE, d.ns.start(2), 16, full)
    finish = d.ns.send_command(Action.FINISH, 0)
    refused = d.ns.send_command(Action.OPEN, d.ns.start(1))
    refused.cdw13 |= ALLOCATE
    requests = d.ns.queue.submit_all([fill, finish, refused, *commands])
    d.controller.wait(*requests)
    requests[0].expect()
    requests[1].expect()
    requests[2].expect(Status.ZRWA_UNAVAILABLE)
    return requests[3:]


@pytest.mark.parametrize("work", ["write", "fill", "reset", "nothing"])
@pytest.mark.parametrize("write_ns", [3_000, 400_000])
def test_what_comes_behind_a_late_refusal(drive: OpenDrive, work: str, write_ns: int) -> None:
    """The host's write pointer is the drive's again when nothing waits any more."""
    with drive(**ZRWA, t_fw_zone=7_000, t_fw_write=write_ns) as d:
        start = d.ns.start(1)
        transfer = d.ns.transfer(12)
        transfer.fill(blocks_of(range(1, 13)))
        if work != "nothing":
            d.ns.write(start, blocks_of([9, 9])).expect()
        if work == "write":
            # To a zone with an area both would have moved the write pointer, by 4. To one without,
            # the first does, by 8, and the other one does not fit.
            write, beyond = (d.ns.io(Io.WRITE, start + at, 8, transfer) for at in (2, 6))
            requests = submit_behind_a_refusal(d, write, beyond)
            requests[0].expect()
            requests[1].expect(Status.ZONE_INVALID_WRITE)
            assert (d.ns.zone(1).wp, has_area(d, 1)) == (10, False)
            expect(d, start, 9, 9, *range(1, 9), 0)
            d.ns.write(start + 10, pattern(1)).expect()
        elif work == "fill":
            parts = ((2, 6), (8, 4), (12, 4))
            writes = [d.ns.io(Io.WRITE, start + at, blocks, transfer) for at, blocks in parts]
            for request in submit_behind_a_refusal(d, *writes):
                request.expect()
            assert (d.ns.zone(1).state, has_area(d, 1)) == (Zs.FULL, False)
            expect(d, start, 9, 9, *range(1, 7), 1, 2, 3, 4, 1, 2, 3, 4)
        elif work == "reset":
            # The zone is another one by the time that the host hears of the refusal.
            reset = d.ns.send_command(Action.RESET, start)
            for request in submit_behind_a_refusal(d, reset, d.ns.io(Io.WRITE, start, 3, transfer)):
                request.expect()
            assert (d.ns.zone(1).wp, has_area(d, 1)) == (3, False)
            expect(d, start, 1, 2, 3, 0)
        else:
            submit_behind_a_refusal(d)
            assert (d.ns.zone(1).state, has_area(d, 1)) == (Zs.EMPTY, False)
        d.controller.advance(100_000_000)
        open_area(d, 4).expect()


@pytest.mark.parametrize("how", ["zone-read-only", "zone-offline"])
def test_a_zone_that_fails_gives_its_area_back(drive: OpenDrive, how: str) -> None:
    with drive(**ZRWA) as d:
        for zone in range(AREAS):
            open_area(d, zone).expect()
            put(d, d.ns.start(zone) + 1, 1, 2).expect()
        for zone in range(AREAS):
            d.qemu.qom_set(NAMESPACE_PATH, how, zone)
            assert not has_area(d, zone)
        d.controller.advance(100_000_000)
        for zone in range(AREAS, 2 * AREAS):
            open_area(d, zone).expect()
            put(d, d.ns.start(zone) + 1, 3).expect()
            expect(d, d.ns.start(zone), 0, 3, 0)
        if how == "zone-read-only":
            expect(d, 0, 0, 1, 2, 0)
        d.qemu.kill()
    with drive(**ZRWA) as d:
        if how == "zone-read-only":
            expect(d, 0, 0, 1, 2, 0)
        expect(d, d.ns.start(AREAS), 0, 3, 0)
        open_area(d, 2 * AREAS).expect(Status.ZRWA_UNAVAILABLE)


def test_zones_that_fail(drive: OpenDrive) -> None:
    """What was in the area of a zone that became read-only can be read."""
    with drive(**ZRWA) as d:
        open_area(d, 0).expect()
        put(d, 0, 1, 2, 3).expect()
        d.qemu.qom_set(NAMESPACE_PATH, "zone-read-only", 0)
        expect(d, 0, 1, 2, 3, 0)
        put(d, 3, 1).expect(Status.ZONE_READ_ONLY)
        assert commit(d, 1).status != Status.SUCCESS
        open_area(d, 1).expect()
        put(d, d.ns.start(1), 1).expect()
        d.qemu.qom_set(NAMESPACE_PATH, "zone-offline", 1)
        assert d.ns.get(d.ns.start(1))[0].status == Status.ZONE_OFFLINE


def test_reset_of_the_controller(drive: OpenDrive) -> None:
    """A zone of which only the area holds something does not become empty."""
    with drive(**ZRWA) as d:
        open_area(d, 0).expect()
        put(d, 1, 1, 2).expect()
        d.reset_controller()
        zone = d.ns.zone(0)
        assert zone.wp == 0
        assert zone.attributes == ZRWA_VALID
        expect(d, 0, 0, 1, 2, 0)
        put(d, 0, 3).expect()
        commit(d, 1).expect()
        expect(d, 0, 3, 1, 2, 0)


@pytest.mark.parametrize("end", ["kill", "quit"])
def test_areas_survive(drive: OpenDrive, end: str) -> None:
    with drive(**ZRWA) as d:
        open_area(d, 0).expect()
        open_area(d, 1).expect()
        put(d, 1, 1).expect()
        put(d, d.ns.start(1), *range(1, 8)).expect()
        getattr(d.qemu, end)()
    with drive(**ZRWA) as d:
        first, second = d.ns.report()[:2]
        assert (first.state, first.wp, first.attributes) == (Zs.CLOSED, 0, ZRWA_VALID)
        assert (second.state, second.wp, second.attributes) == (Zs.CLOSED, 4, ZRWA_VALID)
        expect(d, 0, 0, 1, 0)
        expect(d, d.ns.start(1), *range(1, 8), 0)
        open_area(d, 2).expect(Status.ZRWA_UNAVAILABLE)
        put(d, 0, 9, 8).expect()
        commit(d, 1).expect()
        expect(d, 0, 9, 8, 0)
        d.ns.send(Action.RESET, 1).expect()
        open_area(d, 2).expect()


def test_without_protection(drive: OpenDrive) -> None:
    """A flush, or FUA, saves what is in an area without committing it."""
    volatile = ZRWA | {"plp": "off"}
    with drive(**volatile) as d:
        open_area(d, 0).expect()
        open_area(d, 1).expect()
        put(d, 0, 1, 2).expect()
        d.ns.flush().expect()
        put(d, d.ns.start(1) + 3, 3, flags=FUA).expect()
        assert d.log()["nand_programs"] == 0
        put(d, 2, 4).expect()
        d.qemu.kill()
    with drive(**volatile) as d:
        expect(d, 0, 1, 2, 0, 0)
        expect(d, d.ns.start(1), 0, 0, 0, 3)
        assert d.ns.zone(0).wp == d.ns.zone(1).wp == 0
        assert has_area(d, 0)
        assert has_area(d, 1)


def test_times_of_the_controller(drive: OpenDrive) -> None:
    """Commands to an area take what zone commands take; the commands keep their order."""
    with drive(**ZRWA, t_fw_zone=7_000, t_lat_zone=500, t_fw_write=3_000) as d:
        assert open_area(d, 0).expect().latency_ns == 7_500
        transfer = d.ns.transfer(4)
        transfer.fill(blocks_of(range(1, 5)))
        write = d.ns.queue.submit(d.ns.io(Io.WRITE, 0, 4, transfer))
        flush = d.ns.queue.submit(d.ns.send_command(Action.ZRWA_FLUSH, 1))
        d.controller.wait(write, flush)
        assert write.expect().latency_ns == 3_000
        assert flush.expect().latency_ns == 10_500
        assert d.ns.zone(0).wp == 2
        expect(d, 0, *range(1, 5), 0)


def random_work(d: Drive, generator: random.Random) -> None:
    """Many commands in flight to few zones, some of which are refused."""
    queue = d.ns.queue
    transfer = d.ns.transfer(8)
    transfer.fill(blocks_of(range(8)))
    for _ in range(400):
        zone = d.ns.start(generator.randrange(3))
        choice, offset = generator.randrange(20), generator.randrange(16)
        blocks = generator.randint(1, 6)
        if choice < 9:
            queue.submit(d.ns.io(Io.WRITE, zone + offset, blocks, transfer))
        elif choice < 12:
            queue.submit(d.ns.io(Io.READ, zone + offset, min(blocks, 16 - offset), transfer))
        elif choice < 15:
            queue.submit(d.ns.send_command(Action.ZRWA_FLUSH, zone + offset))
        elif choice == 15:
            queue.submit(Command(Io.FLUSH, 1))
        elif choice < 18:
            command = d.ns.send_command(Action.OPEN, zone)
            command.cdw13 |= ALLOCATE
            queue.submit(command)
        else:
            action = generator.choice([Action.RESET, Action.RESET, Action.FINISH])
            queue.submit(d.ns.send_command(action, zone))
        d.controller.advance(generator.randrange(300_000))
        if len(queue.in_flight) > 900:
            d.controller.wait(*queue.in_flight.values())


@pytest.mark.parametrize("plp", ["on", "off"])
def test_recorded_areas(
    drive: OpenDrive,
    rsdsim: Path,  # noqa: F811
    media: Path,
    tmp_path: Path,
    plp: str,
) -> None:
    """A trace with areas, from the middle of their life, replays equal."""
    generator = random.Random(9)
    props = ZRWA | {"plp": plp, "t_fw_write": 1_000}
    with drive(**props) as d:
        random_work(d, generator)
        d.qemu.kill()
    before = tmp_path / "before.rsd"
    shutil.copy(media, before)
    trace = tmp_path / "t.rsdtrace"
    with drive(trace=trace, **props) as d:
        random_work(d, generator)
        log = d.log()
        assert min(log["zrwa_implicit"], log["zrwa_explicit"], log["zrwa_overwrites"]) > 0
        d.qemu.quit()
    replays(rsdsim, trace, before)


@pytest.mark.parametrize(
    ("props", "words"),
    [
        ({"zrwa": 1, "zrwa-size": "16K"}, ["write-buffer", "32768"]),
        ({"zrwa": 1, "write-buffer": "64K", "ftl": "page"}, ["zrwa", "ftl=rsd"]),
        ({"zrwa": 1, "write-buffer": "1M", "zrwa-size": "12K"}, ["zrwa-flush", "12288"]),
        ({"zrwa": 1, "write-buffer": "1M", "zrwa-size": "128K"}, ["zrwa-size", "65536"]),
        (
            {"zrwa": 3, "write-buffer": "1M", "zrwa-size": "16K", "zoned.max_active": 2},
            ["'zrwa' is 3", "zoned.max_active"],
        ),
        ({"zoned.zrwas": 4096}, ["zoned.zrwas", "zrwa-size"]),
        ({"zoned.zrwafg": 4096}, ["zoned.zrwafg", "zrwa-flush"]),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[0],
)
def test_settings_that_do_not_fit(
    qemu: str, media: Path, props: dict[str, str | int], words: list[str]
) -> None:
    message = start_error(qemu, device_args(media, SMALL | props))
    assert all(word in message for word in words), message
    assert not media.exists()
