# SPDX-License-Identifier: GPL-2.0-or-later
"""The vendor log page, SMART and endurance figures against what was done."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from drive import LOG_ID, SMALL, Drive, OpenDrive, decode_log, device_args
from nvme import Controller, Io, Status
from qtest import Qemu
from zns import Action, blocks_of, pattern

CMD, XFER, READ, PROG, ERASE = (
    int(SMALL[name]) for name in ("t-cmd", "t-xfer", "t-read", "t-prog", "t-erase")
)
CAUSES = ("host", "clean", "merge", "wear", "map", "pad")


def test_new_drive(drive: OpenDrive) -> None:
    with drive(oob=64, endurance=123) as d:
        log = d.log()
        static = {
            "map_bytes": 4 * 4 * 6,  # an entry of 4 bytes for each of 6 blocks on 4 dies
            "zones": 6,
            "capacity_bytes": 6 * 16 * 4096,
            "flash_bytes": 4 * 8 * 4 * 4096,  # pages of all good blocks, spares too
            "page_bytes": 4096,
            "oob_bytes": 64,
            "blocks_total": 4 * 8,
            "blocks_erased": 4 * 8,
            "spares_total": 4 * 2,
            "spares_left": 4 * 2,
            "endurance": 123,
        }
        ram = log.pop("ram_bytes")
        assert ram > 0
        assert {name: value for name, value in log.items() if value} == static


def test_every_operation_is_counted_once(drive: OpenDrive) -> None:
    with drive(finish="pad", idle_erase=1_000_000_000, oob=16, zd_ext=64) as d:
        d.ns.write(0, blocks_of(range(10)), bytes(160)).expect()
        d.ns.append(16, blocks_of(range(3)), bytes(48)).expect()
        d.ns.queue.run(d.ns.io(Io.WRITE_ZEROES, 10, 2)).expect()
        for lba in range(4):  # one by one: together they would hold dies while waiting for a bus
            d.ns.read(lba)
        d.ns.read(11, 3)  # the last two were never written
        d.ns.flush().expect()
        d.ns.send(Action.FINISH, 1).expect()
        d.ns.send(Action.RESET, 0).expect()
        d.ns.get(96, 1)[0].expect(Status.LBA_RANGE)
        d.ns.write(33, pattern(1), bytes(16)).expect(Status.ZONE_INVALID_WRITE)
        log = d.log()
        expected = {
            "host_write_cmds": 3,
            "host_write_pages": 15,
            "host_read_cmds": 5,
            "host_read_pages": 7,
            "flush_cmds": 1,
            "zone_finishes": 1,
            "zone_resets": 1,
            "prog_host": 15,
            "prog_pad": 13,
            "read_host": 5,
            "unwritten_reads": 2,
            "erase_host": 0,
            "media_errors": 0,
            "bus_busy_ns": (15 + 13 + 5) * (CMD + XFER),
            "die_busy_ns": (15 + 13) * (CMD + XFER + PROG) + 5 * (CMD + READ + XFER),
            "blocks_used": 4,  # zone 1
            "blocks_dirty": 4,  # zone 0
            "blocks_erased": 24,
        }
        assert {name: log[name] for name in expected} == expected
        for operation in ("read", "prog", "erase"):
            for cause in CAUSES:
                if f"{operation}_{cause}" not in expected:
                    assert log[f"{operation}_{cause}"] == 0

        # The four blocks of zone 0 are erased once their dies have been idle for a second.
        d.controller.advance(2_000_000_000)
        log = d.log()
        expected = {
            "erase_host": 4,
            "erase_idle": 4,
            "erase_on_demand": 0,
            "wear_sum": 4,
            "wear_min": 0,
            "wear_max": 1,
            "blocks_dirty": 0,
            "blocks_erased": 28,
        }
        assert {name: log[name] for name in expected} == expected


def test_queue_wait(drive: OpenDrive) -> None:
    with drive(channels=1, ways=1) as d:
        d.ns.write(0, pattern(1)).expect()
        assert d.log()["queue_wait_ns"] == 0
        d.ns.write(1, blocks_of([2, 3])).expect()
        program = CMD + XFER + PROG
        log = d.log()
        assert (log["queue_wait_ns"], log["queue_wait_max_ns"]) == (program, program)


def test_histogram(drive: OpenDrive) -> None:
    with drive(channels=1, ways=1, blocks=1, spare_blocks=1, pages=1, endurance=64) as d:
        for _ in range(7):
            d.ns.write(0, pattern(1)).expect()
            d.ns.send(Action.RESET, 0).expect()
        log, bucket, histogram = decode_log(d.controller.get_log(LOG_ID, 4096, nsid=1))
        assert log["erase_host"] == log["wear_sum"] == 5  # 7 programs, 2 blocks were erased
        assert (log["wear_min"], log["wear_max"]) == (2, 3)
        assert bucket > 0
        assert sum(histogram) == 2
        assert sum(index * count for index, count in enumerate(histogram)) in (5 // bucket, 5)


@pytest.mark.parametrize(
    ("props", "ways"),
    [
        ({"segment": "way"}, 4),
        ({"segment": "all"}, 1),
        ({"ftl": "page", "blocks": 96, "pages": 32}, 0),
    ],
    ids=str,
)
def test_zone_ways(drive: OpenDrive, props: dict[str, str | int], ways: int) -> None:
    """How many zones make full bandwidth; without zones, none."""
    with drive(**{"channels": 2, "ways": 4, **props}) as d:
        page = d.controller.get_log(LOG_ID, 4096, nsid=1)
        assert struct.unpack_from("<I", page, 16)[0] == ways


def test_wear_stays_level_within_a_way(drive: OpenDrive) -> None:
    """One zone is rewritten; the least-worn free block is taken each time."""
    with drive(channels=1, ways=1, blocks=3, spare_blocks=2, pages=1) as d:
        for index in range(41):
            d.ns.write(0, pattern(index)).expect()
            assert d.ns.read(0)[0] == pattern(index)
            d.ns.send(Action.RESET, 0).expect()
        log = d.log()
        assert log["wear_max"] - log["wear_min"] <= 1


def test_static_wear_levelling_keeps_the_data(drive: OpenDrive) -> None:
    with drive(
        channels=1, ways=2, blocks=3, spare_blocks=1, pages=2, wl_threshold=4, idle_erase=1000
    ) as d:
        cold = blocks_of(range(4))
        d.ns.write(d.ns.start(1), cold).expect()
        for index in range(60):
            d.ns.write(0, blocks_of(range(index, index + 4))).expect()
            d.ns.send(Action.RESET, 0).expect()
            d.controller.advance(50_000_000)
            assert d.ns.read(d.ns.start(1), 4)[0] == cold
        log = d.log()
        assert log["wear_moves"] > 0
        assert log["prog_wear"] >= 2 * log["wear_moves"]
        assert log["read_wear"] >= log["prog_wear"]
        assert log["wear_max"] - log["wear_min"] <= 4 + 2


@pytest.mark.parametrize(
    ("props", "map_bytes", "zones"),
    [
        ({"preset": "redo"}, 4 << 10, 256),  # REDO: 4 KB for 512 MB
        ({"preset": "risa"}, 16 << 10, 128),
        # 1 TB of 512 KB blocks
        (
            {"channels": 8, "ways": 8, "blocks": 32768, "pages": 128, "spare_blocks": 0},
            8 << 20,
            32768,
        ),
    ],
    ids=["redo", "risa", "1TB"],
)
def test_size_of_the_segment_map(
    qemu: str, media: Path, props: dict[str, str | int], map_bytes: int, zones: int
) -> None:
    names = {name.replace("_", "-"): value for name, value in props.items()}
    with Qemu(qemu, device_args(media, names)) as machine:
        log, _, _ = decode_log(Controller(machine).get_log(LOG_ID, 4096, nsid=1))
        assert (log["map_bytes"], log["zones"]) == (map_bytes, zones)


def test_log_page_in_parts(drive: OpenDrive) -> None:
    with drive() as d:
        whole = d.controller.get_log(LOG_ID, 4096, nsid=1)
        parts = [d.controller.get_log(LOG_ID, 512, nsid=1, offset=o) for o in range(0, 4096, 512)]
        assert b"".join(parts) == whole
        buffer = d.controller.memory.alloc(4096)
        command = d.controller.get_log_command(buffer, LOG_ID, 512, nsid=1, offset=4096)
        d.controller.admin.run(command).expect(Status.INVALID_FIELD)


@pytest.mark.parametrize("lid", [0xC5, 0xFE, 0x0E, 0x7F])
def test_unknown_log_page(drive: OpenDrive, lid: int) -> None:
    with drive() as d:
        buffer = d.controller.memory.alloc(4096)
        request = d.controller.admin.run(d.controller.get_log_command(buffer, lid, 512, nsid=1))
        assert request.status in (Status.INVALID_FIELD, Status.INVALID_LOG_PAGE)


def smart(d: Drive) -> dict[str, int]:
    page = d.controller.get_log(0x02, 512)
    names = ["warning", "temperature", "spare", "threshold", "used"]
    values = dict(zip(names, struct.unpack_from("<BHBBB", page), strict=True))
    numbers = struct.unpack_from("<20Q", page, 32)
    values |= {
        "read_units": numbers[0],
        "write_units": numbers[2],
        "reads": numbers[4],
        "writes": numbers[6],
        "media_errors": numbers[16],
    }
    return values


def test_smart_of_a_new_drive(drive: OpenDrive) -> None:
    with drive() as d:
        log = smart(d)
        assert log["warning"] == 0
        assert (log["spare"], log["used"], log["media_errors"]) == (100, 0, 0)
        assert 0 < log["threshold"] <= 100
        assert (log["reads"], log["writes"], log["read_units"], log["write_units"]) == (0, 0, 0, 0)


def test_smart_counts_host_commands(drive: OpenDrive) -> None:
    with drive(pages=64) as d:
        for index in range(3):
            d.ns.write(index * 64, blocks_of(range(64))).expect()
        for _ in range(2):
            d.ns.read(0, 128)
        log = smart(d)
        assert (log["reads"], log["writes"]) == (2, 3)
        # In thousands of 512 bytes, rounded up: 2048 and 1536 of them.
        assert (log["read_units"], log["write_units"]) == (3, 2)


@pytest.mark.parametrize(("rounds", "used"), [(1, 0), (12, 50), (24, 110), (60, 255)])
def test_smart_percentage_used(drive: OpenDrive, rounds: int, used: int) -> None:
    """Two blocks rated for 10 erasures; the first rounds need none; 255 is the most there is."""
    with drive(channels=1, ways=1, blocks=1, spare_blocks=1, pages=1, endurance=10) as d:
        for _ in range(rounds):
            d.ns.write(0, pattern(1)).expect()
            d.ns.send(Action.RESET, 0).expect()
        assert smart(d)["used"] == used


def test_smart_available_spare(drive: OpenDrive) -> None:
    with drive(blocks=16, spare_blocks=8, bad_blocks_ppm=100_000, seed=3) as d:
        log = d.log()
        assert log["blocks_total"] == 4 * 24
        assert 0 < log["blocks_bad"] < 4 * 8
        assert log["spares_left"] == log["spares_total"] - log["blocks_bad"]
        # SMART speaks of the die that has fewest
        assert smart(d)["spare"] % (100 / 8) < 1
        assert 0 < smart(d)["spare"] <= 100 * log["spares_left"] // log["spares_total"]
        # The drive has its whole capacity nevertheless.
        for zone in range(16):
            d.ns.write(d.ns.start(zone), blocks_of(range(zone, zone + 16))).expect()
        for zone in range(16):
            assert d.ns.read(d.ns.start(zone), 16)[0] == blocks_of(range(zone, zone + 16))


def test_smart_of_the_namespace_and_of_all(drive: OpenDrive) -> None:
    with drive() as d:
        d.ns.write(0, pattern(1)).expect()
        assert d.controller.get_log(0x02, 512, nsid=1) == d.controller.get_log(0x02, 512)


def test_commands_effects_log(drive: OpenDrive) -> None:
    """What the controller says it supports is what a zoned namespace needs."""
    with drive() as d:
        buffer = d.controller.memory.alloc(4096)
        command = d.controller.get_log_command(buffer, 0x05, 4096)
        command.cdw14 = 2 << 24  # zoned command set
        d.controller.admin.run(command).expect()
        effects = struct.unpack_from("<256I", d.qemu.read(buffer, 4096), 1024)
        for opcode in (Io.READ, Io.WRITE, Io.ZONE_APPEND, Io.ZONE_SEND, Io.ZONE_RECV, Io.FLUSH):
            assert effects[opcode] & 1
