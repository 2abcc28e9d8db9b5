# SPDX-License-Identifier: GPL-2.0-or-later
"""What was acknowledged survives a clean exit and SIGKILL of QEMU."""

from __future__ import annotations

import pytest
from drive import NAMESPACE_PATH, Drive, OpenDrive
from nvme import Command, Io, Request
from zns import ZA_EXTENSION_VALID, Action, Zs, blocks_of, pattern

ends = pytest.mark.parametrize("end", ["quit", "kill"])


def finish(d: Drive, end: str) -> None:
    if end == "quit":
        d.qemu.quit()
    else:
        d.qemu.kill()


@ends
def test_data_metadata_and_zones(drive: OpenDrive, end: str) -> None:
    with drive(blocks=9, oob=64, zd_ext=64) as d:
        d.ns.write(d.ns.start(0), blocks_of(range(16)), pattern(1, 16 * 64)).expect()
        d.ns.write(d.ns.start(1), blocks_of(range(5)), pattern(2, 5 * 64)).expect()
        d.ns.send(Action.OPEN, 2).expect()
        d.ns.write(d.ns.start(2), blocks_of(range(3)), pattern(3, 3 * 64)).expect()
        d.ns.send(Action.OPEN, 3).expect()
        d.ns.set_extension(4, pattern(4, 64)).expect()
        d.ns.write(d.ns.start(5), pattern(5), pattern(5, 64)).expect()
        d.ns.send(Action.FINISH, 5).expect()
        d.ns.write(d.ns.start(6), pattern(6), pattern(6, 64)).expect()
        d.ns.send(Action.RESET, 6).expect()
        d.ns.write(d.ns.start(7), pattern(7), pattern(7, 64)).expect()
        d.qemu.qom_set(NAMESPACE_PATH, "zone-read-only", 7)
        d.qemu.qom_set(NAMESPACE_PATH, "zone-offline", 8)
        finish(d, end)
    with drive(blocks=9, oob=64, zd_ext=64) as d:
        zones = d.ns.report(extended=True)
        assert [(zone.state, zone.wp) for zone in zones] == [
            (Zs.FULL, None),
            (Zs.CLOSED, 5),
            (Zs.CLOSED, 3),
            (Zs.EMPTY, 0),  # it was open, and nothing was written
            (Zs.CLOSED, 0),  # its extension is valid
            (Zs.FULL, None),
            (Zs.EMPTY, 0),
            (Zs.READ_ONLY, None),
            (Zs.OFFLINE, None),
        ]
        assert [bool(zone.attributes & ZA_EXTENSION_VALID) for zone in zones] == [
            index == 4 for index in range(9)
        ]
        assert zones[4].extension == pattern(4, 64)
        assert d.ns.read(d.ns.start(0), 16) == (blocks_of(range(16)), pattern(1, 16 * 64))
        assert d.ns.read(d.ns.start(1), 5) == (blocks_of(range(5)), pattern(2, 5 * 64))
        assert d.ns.read(d.ns.start(2), 3) == (blocks_of(range(3)), pattern(3, 3 * 64))
        assert d.ns.read(d.ns.start(5), 2) == (pattern(5) + bytes(4096), pattern(5, 64) + bytes(64))
        assert d.ns.read(d.ns.start(6)) == (bytes(4096), bytes(64))
        assert d.ns.read(d.ns.start(7)) == (pattern(7), pattern(7, 64))
        # Closed zones go on at their write pointers, empty ones from their start.
        d.ns.write(d.ns.start(1) + 5, pattern(15), pattern(15, 64)).expect()
        d.ns.write(d.ns.start(3), pattern(16), pattern(16, 64)).expect()
        d.ns.write(d.ns.start(6), pattern(17), pattern(17, 64)).expect()
        assert d.ns.read(d.ns.start(6)) == (pattern(17), pattern(17, 64))


@ends
@pytest.mark.parametrize("reset", ["mark", "erase"])
def test_counters_and_wear(drive: OpenDrive, end: str, reset: str) -> None:
    kept = [
        *["host_write_cmds", "host_write_pages", "host_read_pages", "zone_resets"],
        *["zone_finishes", "prog_host", "read_host", "erase_host", "erase_on_demand"],
        *["wear_min", "wear_max", "wear_sum", "flush_cmds", "blocks_used", "blocks_erased"],
        *["blocks_dirty", "unwritten_reads"],
    ]
    with drive(reset=reset, blocks=2, spare_blocks=0) as d:
        for _ in range(3):
            d.ns.write(0, blocks_of(range(16))).expect()
            d.ns.read(0, 3)
            d.ns.send(Action.RESET, 0).expect()
        d.ns.write(16, blocks_of(range(2))).expect()
        d.ns.send(Action.FINISH, 1).expect()
        d.ns.flush().expect()
        before = d.log()
        assert before["wear_sum"] > 0
        finish(d, end)
    with drive(reset=reset, blocks=2, spare_blocks=0) as d:
        after = d.log()
        assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


@ends
def test_read_of_a_reset_zone_stays_empty(drive: OpenDrive, end: str) -> None:
    """reset=mark leaves the pages in the file; they must not come back."""
    with drive(reset="mark") as d:
        d.ns.write(0, blocks_of(range(16))).expect()
        d.ns.send(Action.RESET, 0).expect()
        finish(d, end)
    with drive() as d:
        assert d.ns.zone(0).state == Zs.EMPTY
        assert d.ns.read(0, 16)[0] == bytes(16 * 4096)


def test_timing_and_policy_may_change(drive: OpenDrive) -> None:
    with drive(oob=16) as d:
        d.ns.write(0, pattern(1), pattern(2, 16)).expect()
        d.qemu.quit()
    with drive(
        t_cmd=1,
        t_xfer=1,
        t_read=1,
        t_prog=1,
        t_erase=1,
        queue="global",
        reset="erase",
        finish="pad",
        idle_erase=5,
        wl_threshold=7,
        endurance=9,
    ) as d:
        assert d.ns.read(0) == (pattern(1), pattern(2, 16))
        assert d.ns.write(1, pattern(3), pattern(4, 16)).expect().latency_ns == 3


def mixed_writes(d: Drive) -> list[tuple[int, int, Request]]:
    """Writes of 1 to 5 blocks over three zones, interleaved: (LBA, blocks, request)."""
    places = {zone: d.ns.start(zone) for zone in range(3)}
    commands: list[Command] = []
    extents: list[tuple[int, int]] = []
    for index in range(30):
        zone, blocks = index % 3, 1 + index % 5
        lba = places[zone]
        places[zone] += blocks
        transfer = d.ns.transfer(blocks)
        transfer.fill(
            blocks_of(range(lba, lba + blocks)),
            b"".join(pattern(lba + i, 16) for i in range(blocks)),
        )
        commands.append(d.ns.io(Io.WRITE, lba, blocks, transfer))
        extents.append((lba, blocks))
    requests = d.ns.queue.submit_all(commands)
    return [(lba, n, request) for (lba, n), request in zip(extents, requests, strict=True)]


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
@pytest.mark.parametrize("geometry", [(1, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("before", ["new", "used"])
def test_kill_with_writes_in_flight(
    drive: OpenDrive, steps: int, geometry: tuple[int, int], before: str
) -> None:
    """On a used drive, the first writes of each zone wait for an erase."""
    channels, ways = geometry
    props = {"channels": channels, "ways": ways, "pages": 64, "blocks": 4, "oob": 16}
    with drive(spare_blocks=0, **props) as d:
        if before == "used":
            for zone in range(4):
                d.ns.queue.run(d.ns.io(Io.WRITE_ZEROES, d.ns.start(zone), 64)).expect()
            d.ns.send_all(Action.RESET).expect()
        writes = mixed_writes(d)
        d.controller.step(steps)
        acknowledged = [(lba, blocks) for lba, blocks, request in writes if request.done]
        d.qemu.kill()
    with drive(spare_blocks=0, **props) as d:
        for lba, blocks in acknowledged:
            data, oob = d.ns.read(lba, blocks)
            assert data == blocks_of(range(lba, lba + blocks))
            assert oob == b"".join(pattern(lba + i, 16) for i in range(blocks))
        for zone in range(3):
            descriptor = d.ns.zone(zone)
            assert descriptor.wp is not None
            start = d.ns.start(zone)
            end = max(
                (
                    lba + blocks - start
                    for lba, blocks in acknowledged
                    if start <= lba < start + d.ns.zone_size
                ),
                default=0,
            )
            assert descriptor.wp >= end
            assert descriptor.state == (Zs.CLOSED if descriptor.wp else Zs.EMPTY)
            # A page below the write pointer was written whole or is a filler of zeroes.
            for lba in range(start, start + descriptor.wp):
                page = d.ns.read(lba)
                assert page in ((pattern(lba), pattern(lba, 16)), (bytes(4096), bytes(16)))
            d.ns.write(start + descriptor.wp, pattern(7), bytes(16)).expect()
        assert d.log()["prog_host"] >= sum(blocks for _, blocks in acknowledged)


@pytest.mark.parametrize("steps", [0, 1, 4, 9])
@pytest.mark.parametrize("action", [Action.RESET, Action.FINISH], ids=lambda a: a.name.lower())
def test_kill_during_a_zone_command(drive: OpenDrive, action: Action, steps: int) -> None:
    """The zone comes back as before the command or as after it."""
    props = {"reset": "erase", "finish": "pad"}
    with drive(**props) as d:
        d.ns.write(0, blocks_of(range(6))).expect()
        request = d.ns.queue.submit(d.ns.send_command(action, 0))
        d.controller.step(steps)
        d.qemu.kill()
    with drive(**props) as d:
        zone = d.ns.zone(0)
        if action == Action.RESET:
            assert zone.state in (Zs.EMPTY, Zs.CLOSED)
            assert zone.state == Zs.EMPTY or not request.done
            expected = bytes(6 * 4096) if zone.state == Zs.EMPTY else blocks_of(range(6))
        else:
            assert zone.state in (Zs.FULL, Zs.CLOSED)
            assert zone.state == Zs.FULL or not request.done
            expected = blocks_of(range(6))
        assert d.ns.read(0, 6)[0] == expected
        d.ns.send(Action.RESET, 0).expect()
        d.ns.write(0, blocks_of(range(16))).expect()
        assert d.ns.read(0, 16)[0] == blocks_of(range(16))


def test_many_kills(drive: OpenDrive) -> None:
    """A drive that is killed over and over keeps what it acknowledged."""
    props = {"pages": 32, "oob": 16}
    expected: dict[int, int] = {}
    for round_ in range(12):
        with drive(**props) as d:
            for lba, tag in expected.items():
                assert d.ns.read(lba) == (pattern(tag), pattern(tag, 16))
            zone = d.ns.zone(round_ % 2)
            assert zone.wp is not None
            writes = []
            for lba in range(zone.start + zone.wp, zone.start + zone.wp + 7):
                transfer = d.ns.transfer(1)
                transfer.fill(pattern(lba + 1000), pattern(lba + 1000, 16))
                writes.append((lba, d.ns.queue.submit(d.ns.io(Io.WRITE, lba, 1, transfer))))
            d.controller.step(round_)
            expected |= {lba: lba + 1000 for lba, request in writes if request.done}
            d.qemu.kill()
    assert len(expected) > 10


def test_kills_during_background_work(drive: OpenDrive) -> None:
    """Idle erasure and wear levelling are cut off at any moment; cold data stays."""
    props = {
        "channels": 1,
        "ways": 2,
        "blocks": 4,
        "spare_blocks": 2,
        "pages": 4,
        "oob": 16,
        "idle_erase": 1_000,
        "wl_threshold": 2,
    }
    cold = blocks_of(range(8)), pattern(1, 8 * 16)
    moves = 0
    for round_ in range(25):
        with drive(**props) as d:
            if round_ == 0:
                d.ns.write(d.ns.start(3), *cold).expect()
            assert d.ns.read(d.ns.start(3), 8) == cold
            assert d.ns.zone(3).state == Zs.FULL
            for index in range(3):
                d.ns.send(Action.RESET, 0).expect()
                d.ns.write(0, blocks_of(range(round_, round_ + 8)), bytes(128)).expect()
                d.controller.step(round_ * 3 + index)
            moves = d.log()["wear_moves"]
            d.qemu.kill()
    assert moves > 0
