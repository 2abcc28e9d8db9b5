# SPDX-License-Identifier: GPL-2.0-or-later
"""Flash that fails: the media file is damaged under a running drive.

The file is mapped by QEMU and shared, so that a record written here is what the drive sees next.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from drive import OpenDrive
from nvme import UNMAPPED_ADDRESS, Admin, Command, Controller, Io, Status
from qtest import QemuError
from zns import Action, Zs, blocks_of, pattern

BLOCK_BAD = 1 << 56
MEDIA_C = Path(__file__).resolve().parents[2] / "hw" / "rsd-nvme" / "core" / "media" / "media.c"
# Where the media file's header says where the block records are
(RECORDS_AT,) = map(int, re.findall(r"^AT\(rec_off, (\d+)\);", MEDIA_C.read_text(), re.MULTILINE))


def damage_blocks(media: Path, blocks: int) -> None:
    """Sets the bad flag in the records of the first so many blocks."""
    with media.open("r+b") as file:
        file.seek(RECORDS_AT)
        (records,) = struct.unpack("<Q", file.read(8))
        file.seek(records)
        values = struct.unpack(f"<{blocks}Q", file.read(8 * blocks))
        file.seek(records)
        file.write(struct.pack(f"<{blocks}Q", *(value | BLOCK_BAD for value in values)))


def media_errors(controller: Controller) -> int:
    (errors,) = struct.unpack_from("<Q", controller.get_log(0x02, 512), 160)
    return int(errors)


ONE_DIE = {"channels": 1, "ways": 1, "blocks": 4, "spare_blocks": 0, "pages": 4}


def test_read_of_a_broken_block(drive: OpenDrive, media: Path) -> None:
    with drive(**ONE_DIE) as d:
        d.ns.write(0, blocks_of(range(3))).expect()
        damage_blocks(media, 4)
        d.ns.get(0, 3)[0].expect(Status.UNRECOVERED_READ)
        assert d.log()["media_errors"] == 3
        assert media_errors(d.controller) == 3


@pytest.mark.parametrize(
    "opcode", [Io.WRITE, Io.ZONE_APPEND, Io.WRITE_ZEROES], ids=lambda op: op.name
)
def test_program_of_a_broken_block(drive: OpenDrive, media: Path, opcode: Io) -> None:
    with drive(**ONE_DIE) as d:
        d.ns.write(0, pattern(0)).expect()
        damage_blocks(media, 4)
        transfer = None if opcode == Io.WRITE_ZEROES else d.ns.transfer(1)
        slba = 0 if opcode == Io.ZONE_APPEND else 1
        d.ns.queue.run(d.ns.io(opcode, slba, 1, transfer)).expect(Status.WRITE_FAULT)
        assert d.log()["media_errors"] == 1


def test_erase_of_a_broken_block(drive: OpenDrive, media: Path) -> None:
    with drive(reset="erase", **ONE_DIE) as d:
        d.ns.write(0, pattern(0)).expect()
        reset = d.ns.queue.submit(d.ns.send_command(Action.RESET, 0))
        damage_blocks(media, 4)
        d.controller.wait(reset)
        reset.expect(Status.WRITE_FAULT)
        assert d.log()["media_errors"] == 1


def test_a_broken_map_is_refused(drive: OpenDrive, media: Path) -> None:
    """A zone on a bad block does not open; the message says that the file is damaged."""
    with drive(**ONE_DIE) as d:
        d.ns.write(0, pattern(0)).expect()
        d.qemu.quit()
    damage_blocks(media, 4)
    with pytest.raises(QemuError, match="corrupt"), drive(**ONE_DIE):
        pass


def test_low_spare_warning(drive: OpenDrive, media: Path) -> None:
    """A drive whose only spare block is bad says so in SMART's critical warning."""
    props = {"channels": 1, "ways": 1, "blocks": 1, "spare_blocks": 1, "bad_blocks_ppm": 500_000}
    for seed in range(40):
        media.unlink(missing_ok=True)
        try:
            with drive(seed=seed, **props) as d:
                if d.log()["blocks_bad"] == 1:
                    warning, _, spare = struct.unpack_from("<BHB", d.controller.get_log(0x02, 512))
                    assert (warning & 1, spare) == (1, 0)
                    d.ns.write(0, pattern(1)).expect()
                    return
        except QemuError as error:
            assert "bad-blocks-ppm" in str(error)
    pytest.fail("no seed of 40 made one of two blocks bad")


def test_endurance_group_says_what_smart_says(drive: OpenDrive) -> None:
    with drive(channels=1, ways=1, blocks=1, spare_blocks=0, pages=1, endurance=10) as d:
        for _ in range(5):
            d.ns.write(0, pattern(1)).expect()
            d.ns.send(Action.RESET, 0).expect()
        smart = d.controller.get_log(0x02, 512)
        group = d.controller.get_log(0x09, 512, specific=1)
        assert group[3:6] == smart[3:6], "spare, threshold, percentage used"
        assert group[5] == 40
        d.controller.admin.run(
            d.controller.get_log_command(d.controller.memory.alloc(512), 0x09, 512, specific=2)
        ).expect(Status.INVALID_FIELD)


def test_a_dead_zone_stays_dead(drive: OpenDrive) -> None:
    """Neither a reset of all, nor a format, nor a restart brings it back."""
    with drive() as d:
        d.qemu.qom_set("/machine/peripheral/ns0", "zone-offline", 1)
        d.qemu.qom_set("/machine/peripheral/ns0", "zone-read-only", 2)
        d.ns.send_all(Action.RESET).expect()
        assert d.ns.states()[:4] == [Zs.EMPTY, Zs.OFFLINE, Zs.READ_ONLY, Zs.EMPTY]
        d.controller.format(1).expect()
        assert d.ns.states()[:4] == [Zs.EMPTY, Zs.OFFLINE, Zs.READ_ONLY, Zs.EMPTY]
        d.qemu.quit()
    with drive() as d:
        assert d.ns.states()[:4] == [Zs.EMPTY, Zs.OFFLINE, Zs.READ_ONLY, Zs.EMPTY]


def test_bad_buffer_of_an_admin_command(drive: OpenDrive) -> None:
    with drive() as d:
        for command in (
            Command(Admin.IDENTIFY, 1, prp1=UNMAPPED_ADDRESS),
            d.controller.get_log_command(UNMAPPED_ADDRESS, 0xCA, 4096, nsid=1),
            d.controller.get_log_command(UNMAPPED_ADDRESS, 0xBF, 4096, nsid=1),
        ):
            d.controller.admin.run(command).expect(Status.DATA_TRANSFER_ERROR)
