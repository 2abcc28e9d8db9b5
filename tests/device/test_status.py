# SPDX-License-Identifier: GPL-2.0-or-later
"""Every refusal of an I/O command: the exact status, and nothing changed by it."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from drive import Drive, OpenDrive
from nvme import DNR, PAGE, UNMAPPED_ADDRESS, Command, Io, Request, Status
from zns import Action, Zs, blocks_of, pattern

DATA_COMMANDS = [Io.WRITE, Io.ZONE_APPEND, Io.READ]
data_commands = pytest.mark.parametrize("opcode", DATA_COMMANDS, ids=lambda op: op.name.lower())


def issue(
    d: Drive,
    opcode: Io,
    slba: int,
    blocks: int = 1,
    change: Callable[[Command], None] | None = None,
) -> Request:
    """A data command with good buffers, after change(command)."""
    transfer = d.ns.transfer(blocks)
    transfer.fill(blocks_of(range(500, 500 + blocks)), bytes([7]) * (blocks * d.ns.oob))
    command = d.ns.io(opcode, slba, blocks, transfer)
    if change:
        change(command)
    request = d.ns.queue.run(command)
    transfer.free()
    return request


def check_unchanged(d: Drive, zone: int, wp: int) -> None:
    """The zone accepts a write at its old write pointer, and holds it."""
    assert d.ns.zone(zone).wp == wp
    oob = bytes([3]) * d.ns.oob
    d.ns.write(d.ns.start(zone) + wp, pattern(77), oob).expect()
    assert d.ns.read(d.ns.start(zone) + wp) == (pattern(77), oob)
    assert d.ns.zone(zone).wp == wp + 1


@data_commands
@pytest.mark.parametrize("beyond", [0, 1, 1 << 40, (1 << 64) - 96 - 1])
def test_beyond_the_last_block(drive: OpenDrive, opcode: Io, beyond: int) -> None:
    with drive() as d:
        request = issue(d, opcode, d.ns.size + beyond).expect(Status.LBA_RANGE)
        assert request.raw_status & DNR
        assert d.log()["prog_host"] == 0


@data_commands
def test_over_the_last_block(drive: OpenDrive, opcode: Io) -> None:
    with drive() as d:
        issue(d, opcode, d.ns.size - 1, 2).expect(Status.LBA_RANGE)


def test_read_over_a_zone_boundary(drive: OpenDrive) -> None:
    with drive() as d:
        issue(d, Io.READ, 15, 2).expect(Status.ZONE_BOUNDARY)
        issue(d, Io.READ, 14, 2).expect()


def test_write_over_the_zone_end(drive: OpenDrive) -> None:
    with drive() as d:
        d.ns.write(16, blocks_of(range(14))).expect()
        issue(d, Io.WRITE, 30, 3).expect(Status.ZONE_BOUNDARY)
        issue(d, Io.ZONE_APPEND, 16, 3).expect(Status.ZONE_BOUNDARY)
        d.ns.queue.run(d.ns.io(Io.WRITE_ZEROES, 30, 3)).expect(Status.ZONE_BOUNDARY)
        check_unchanged(d, 1, 14)


@pytest.mark.parametrize("offset", [0, 2, 4, 15])
def test_write_not_at_the_write_pointer(drive: OpenDrive, offset: int) -> None:
    with drive() as d:
        d.ns.write(16, blocks_of(range(3))).expect()
        issue(d, Io.WRITE, 16 + offset).expect(Status.ZONE_INVALID_WRITE)
        d.ns.queue.run(d.ns.io(Io.WRITE_ZEROES, 16 + offset, 1)).expect(Status.ZONE_INVALID_WRITE)
        assert d.ns.read(16, 3)[0] == blocks_of(range(3))
        check_unchanged(d, 1, 3)


def test_write_to_an_empty_zone_not_at_its_start(drive: OpenDrive) -> None:
    with drive() as d:
        issue(d, Io.WRITE, 17).expect(Status.ZONE_INVALID_WRITE)
        assert d.ns.zone(1).state == Zs.EMPTY
        check_unchanged(d, 1, 0)


def test_append_not_to_a_zone_start(drive: OpenDrive) -> None:
    with drive() as d:
        issue(d, Io.ZONE_APPEND, 17).expect(Status.INVALID_FIELD)
        check_unchanged(d, 1, 0)


def test_full_zone(drive: OpenDrive) -> None:
    with drive() as d:
        d.ns.write(16, blocks_of(range(16))).expect()
        issue(d, Io.WRITE, 16).expect(Status.ZONE_FULL)
        issue(d, Io.ZONE_APPEND, 16).expect(Status.ZONE_FULL)
        d.ns.queue.run(d.ns.io(Io.WRITE_ZEROES, 16, 1)).expect(Status.ZONE_FULL)
        assert d.ns.read(16, 16)[0] == blocks_of(range(16))


@data_commands
@pytest.mark.parametrize("mdts", [1, 3, 7])
def test_above_the_transfer_limit(drive: OpenDrive, opcode: Io, mdts: int) -> None:
    with drive(controller=f"mdts={mdts}", pages=64) as d:
        limit = 1 << mdts
        assert d.controller.identify(0x01)[77] == mdts
        issue(d, opcode, 0, limit + 1).expect(Status.INVALID_FIELD)
        issue(d, opcode, 0, limit).expect()


def test_above_the_append_limit(drive: OpenDrive) -> None:
    with drive(controller="zoned.zasl=1") as d:
        assert d.controller.identify(0x06, csi=2)[0] == 1
        issue(d, Io.ZONE_APPEND, 16, 3).expect(Status.INVALID_FIELD)
        issue(d, Io.ZONE_APPEND, 16, 2).expect()
        issue(d, Io.WRITE, 18, 3).expect()
        assert d.ns.zone(1).wp == 5


@data_commands
@pytest.mark.parametrize("oob", [16, 64, 128])
def test_missing_metadata_pointer(drive: OpenDrive, opcode: Io, oob: int) -> None:
    def drop_metadata(command: Command) -> None:
        command.mptr = 0

    with drive(oob=oob) as d:
        issue(d, opcode, 0, 2, drop_metadata).expect(Status.INVALID_FIELD)
        check_unchanged(d, 0, 0)


@data_commands
def test_metadata_pointer_without_metadata_is_ignored(drive: OpenDrive, opcode: Io) -> None:
    def add_metadata(command: Command) -> None:
        command.mptr = UNMAPPED_ADDRESS

    with drive() as d:
        issue(d, opcode, 0, 2, add_metadata).expect()


def first_unmapped(_d: Drive, command: Command) -> None:
    command.prp1 = UNMAPPED_ADDRESS


def second_unmapped(_d: Drive, command: Command) -> None:
    command.prp2 = UNMAPPED_ADDRESS


def second_misaligned(_d: Drive, command: Command) -> None:
    command.prp2 += 8


def metadata_unmapped(_d: Drive, command: Command) -> None:
    command.mptr = UNMAPPED_ADDRESS


def list_entry_unmapped(d: Drive, command: Command) -> None:
    d.qemu.write(command.prp2 + 8, struct.pack("<Q", UNMAPPED_ADDRESS))


def list_entry_misaligned(d: Drive, command: Command) -> None:
    d.qemu.write(command.prp2 + 8, struct.pack("<Q", d.controller.memory.alloc(PAGE) + 4))


BAD_POINTERS: list[tuple[Callable[[Drive, Command], None], int, Status]] = [
    (first_unmapped, 1, Status.DATA_TRANSFER_ERROR),
    (second_unmapped, 2, Status.DATA_TRANSFER_ERROR),
    (second_unmapped, 4, Status.DATA_TRANSFER_ERROR),
    (second_misaligned, 2, Status.INVALID_PRP_OFFSET),
    (list_entry_unmapped, 4, Status.DATA_TRANSFER_ERROR),
    (list_entry_misaligned, 4, Status.INVALID_PRP_OFFSET),
]


@data_commands
@pytest.mark.parametrize(
    ("spoil", "blocks", "status", "oob"),
    [(*case, oob) for case in BAD_POINTERS for oob in (0, 64)]
    + [(metadata_unmapped, 1, Status.DATA_TRANSFER_ERROR, 64)],
)
def test_bad_data_pointer(
    drive: OpenDrive,
    opcode: Io,
    spoil: Callable[[Drive, Command], None],
    blocks: int,
    status: Status,
    oob: int,
) -> None:
    """The write pointer stays, in what is reported and in what is accepted."""
    with drive(oob=oob) as d:
        d.ns.write(0, blocks_of(range(4)), bytes(4 * oob)).expect()
        issue(d, opcode, 0 if opcode != Io.WRITE else 4, blocks, lambda c: spoil(d, c)).expect(
            status
        )
        assert d.ns.zone(0).state == Zs.IMPLICITLY_OPEN
        assert d.ns.read(0, 4)[0] == blocks_of(range(4))
        check_unchanged(d, 0, 4)


@pytest.mark.parametrize("opcode", [Io.WRITE, Io.ZONE_APPEND])
def test_bad_data_pointer_leaves_an_empty_zone_usable(drive: OpenDrive, opcode: Io) -> None:
    """A limit of one open zone shows whether the failed write kept its resources for good."""
    with drive(zoned_max_open=1, zoned_max_active=1) as d:
        issue(d, opcode, 16, 1, lambda c: first_unmapped(d, c)).expect(Status.DATA_TRANSFER_ERROR)
        check_unchanged(d, 1, 0)
        d.ns.send(Action.RESET, 1).expect()
        d.ns.write(32, pattern(1)).expect()


def test_unaligned_first_page_of_a_transfer(drive: OpenDrive) -> None:
    """PRP1 may have an offset: one block then spans two pages."""
    with drive() as d:
        buffer = d.controller.memory.alloc(2 * PAGE)
        d.qemu.write(buffer + 512, pattern(5))
        command = d.ns.io(Io.WRITE, 0, 1)
        command.prp1, command.prp2 = buffer + 512, buffer + PAGE
        d.ns.queue.run(command).expect()
        assert d.ns.read(0)[0] == pattern(5)
        d.qemu.fill(buffer, 2 * PAGE, 0)
        command.opcode = Io.READ
        d.ns.queue.run(command).expect()
        assert d.qemu.read(buffer, 2 * PAGE) == bytes(512) + pattern(5) + bytes(PAGE - 512)


def test_scattered_pages_and_metadata(drive: OpenDrive) -> None:
    """Data goes where the PRP list says, in its order, and nowhere else."""
    with drive(oob=16, pages=8) as d:
        memory = d.controller.memory
        pages = [memory.alloc(PAGE) for _ in range(8)][::-1]
        listing, oob = memory.alloc(PAGE), memory.alloc(PAGE)
        d.qemu.write(listing, struct.pack("<7Q", *pages[1:]))
        for index, page in enumerate(pages):
            d.qemu.write(page, pattern(index))
        d.qemu.write(oob, pattern(50, 128))
        command = d.ns.io(Io.WRITE, 0, 8)
        command.prp1, command.prp2, command.mptr = pages[0], listing, oob
        d.ns.queue.run(command).expect()
        assert d.ns.read(0, 8) == (blocks_of(range(8)), pattern(50, 128))
        for page in pages:
            d.qemu.fill(page, PAGE, 0xEE)
        d.qemu.fill(oob, PAGE, 0xEE)
        command.opcode = Io.READ
        d.ns.queue.run(command).expect()
        assert [d.qemu.read(page, PAGE) for page in pages] == [pattern(i) for i in range(8)]
        assert d.qemu.read(oob, PAGE) == pattern(50, 128) + b"\xee" * (PAGE - 128)


@pytest.mark.parametrize(
    ("nsid", "status"),
    [
        (0, Status.INVALID_NAMESPACE),
        (2, Status.INVALID_FIELD),  # valid, but there is none
        (1000, Status.INVALID_NAMESPACE),
        (0xFFFFFFFF, Status.INVALID_NAMESPACE),
    ],
)
def test_namespace_identifier(drive: OpenDrive, nsid: int, status: Status) -> None:
    def set_nsid(command: Command) -> None:
        command.nsid = nsid

    with drive() as d:
        for opcode in DATA_COMMANDS:
            issue(d, opcode, 0, 1, set_nsid).expect(status)
        d.ns.queue.run(Command(Io.ZONE_SEND, nsid, cdw13=Action.OPEN)).expect(status)
        d.ns.queue.run(Command(Io.ZONE_RECV, nsid, cdw12=1023)).expect(status)


@pytest.mark.parametrize(
    ("nsid", "status"),
    [
        (1, Status.SUCCESS),
        (0xFFFFFFFF, Status.SUCCESS),
        (0, Status.INVALID_NAMESPACE),
        (2, Status.INVALID_FIELD),
        (1000, Status.INVALID_NAMESPACE),
    ],
)
def test_flush(drive: OpenDrive, nsid: int, status: Status) -> None:
    with drive() as d:
        d.ns.write(0, pattern(1)).expect()
        d.ns.queue.run(Command(Io.FLUSH, nsid)).expect(status)
        assert d.log()["flush_cmds"] == (status == Status.SUCCESS)


@pytest.mark.parametrize("opcode", [0x03, 0x04, 0x0D, 0x15, 0x55, 0x80, 0xFF])
def test_unknown_opcode(drive: OpenDrive, opcode: int) -> None:
    with drive() as d:
        d.ns.queue.run(Command(opcode, 1)).expect(Status.INVALID_OPCODE)


@pytest.mark.parametrize(
    "opcode", [Io.COMPARE, Io.VERIFY, Io.COPY, Io.DSM], ids=lambda op: op.name.lower()
)
def test_optional_command_that_is_not_offered(drive: OpenDrive, opcode: Io) -> None:
    """The controller could, the namespace does not; Identify Controller says so."""
    with drive() as d:
        d.ns.write(0, pattern(1)).expect()
        issue(d, opcode, 0).expect(Status.INVALID_OPCODE)
        (oncs,) = struct.unpack_from("<H", d.controller.identify(0x01), 520)
        # Compare, Dataset Management, Write Zeroes, Verify, Copy
        assert oncs & (1 << 0 | 1 << 2 | 1 << 3 | 1 << 7 | 1 << 8) == 1 << 3


def test_no_volatile_write_cache(drive: OpenDrive) -> None:
    with drive() as d:
        assert d.controller.identify(0x01)[525] & 1 == 0


@pytest.mark.parametrize("opcode", [0x03, 0x0E, 0x55, 0xC0, 0xC3, 0xFF])
def test_unknown_admin_opcode(drive: OpenDrive, opcode: int) -> None:
    with drive() as d:
        d.controller.admin.run(Command(opcode, 1)).expect(Status.INVALID_OPCODE)


@pytest.mark.parametrize("blocks", [1, 5, 16])
@pytest.mark.parametrize("oob", [0, 64])
def test_write_zeroes(drive: OpenDrive, blocks: int, oob: int) -> None:
    with drive(oob=oob) as d:
        d.ns.queue.run(d.ns.io(Io.WRITE_ZEROES, 0, blocks)).expect()
        assert d.ns.zone(0).wp == (None if blocks == 16 else blocks)
        assert d.ns.read(0, blocks) == (bytes(blocks * 4096), bytes(blocks * oob))
        log = d.log()
        # Zeroes are programmed like any data.
        assert (log["prog_host"], log["read_host"]) == (blocks, blocks)


@pytest.mark.parametrize("how", ["write zeroes", "padding", "format"])
def test_nothing_shows_of_a_block_s_former_life(drive: OpenDrive, how: str) -> None:
    """The one block is used again, by programs that bring no data or less metadata."""
    with drive(channels=1, ways=1, blocks=1, spare_blocks=0, pages=4, oob=128, finish="pad") as d:
        d.ns.write(0, blocks_of(range(4)), pattern(9, 4 * 128)).expect()
        if how == "format":
            d.controller.format(1).expect()
            d.ns.refresh()
            d.ns.write(0, pattern(5), pattern(6, 16)).expect()
            d.ns.send(Action.FINISH, 0).expect()
            expected = pattern(5) + bytes(3 * 4096), pattern(6, 16) + bytes(3 * 16)
        else:
            d.ns.send(Action.RESET, 0).expect()
            if how == "padding":
                d.ns.send(Action.FINISH, 0).expect()
            else:
                d.ns.queue.run(d.ns.io(Io.WRITE_ZEROES, 0, 4)).expect()
            expected = bytes(4 * 4096), bytes(4 * 128)
        assert d.ns.read(0, 4) == expected
        log = d.log()
        assert (log["erase_host"], log["read_host"]) == (1, 4), "it was programmed, and read"


def test_bad_commands_in_a_full_queue(drive: OpenDrive) -> None:
    """Good and bad commands in flight together: each gets its own answer."""
    with drive(pages=64) as d:
        transfer = d.ns.transfer(1)
        transfer.fill(pattern(3))
        commands, statuses = [], []
        for index in range(60):
            commands.append(d.ns.io(Io.WRITE, index, 1, transfer))
            statuses.append(Status.SUCCESS)
            commands.append(d.ns.io(Io.WRITE, index, 1, transfer))
            statuses.append(Status.ZONE_INVALID_WRITE)
            bad = d.ns.io(Io.WRITE, index + 1, 1, transfer)
            bad.prp1 = UNMAPPED_ADDRESS
            commands.append(bad)
            statuses.append(Status.DATA_TRANSFER_ERROR)
        requests = d.ns.queue.submit_all(commands)
        d.controller.wait(*requests)
        for request, status in zip(requests, statuses, strict=True):
            request.expect(status)
        assert d.ns.zone(0).wp == 60
        assert d.ns.read(0, 60)[0] == pattern(3) * 60
