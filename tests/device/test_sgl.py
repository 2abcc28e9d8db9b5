# SPDX-License-Identifier: GPL-2.0-or-later
"""Scatter gather lists, which Linux uses for large transfers, in place of PRPs."""

from __future__ import annotations

import itertools
import struct

import pytest
from drive import Drive, OpenDrive
from nvme import PAGE, UNMAPPED_ADDRESS, Command, Io
from zns import Zs, blocks_of, pattern

DATA_SGL_LENGTH_INVALID = 0x00F
DATA_TRANSFER_ERROR = 0x004
METADATA_IS_A_BUFFER = 1 << 6  # PSDT
METADATA_IS_AN_SGL = 2 << 6
DATA_BLOCK, LAST_SEGMENT = 0x00, 0x30


def descriptor(addr: int, length: int, kind: int = DATA_BLOCK) -> bytes:
    return struct.pack("<QI3xB", addr, length, kind)


def command_with(d: Drive, opcode: Io, slba: int, blocks: int, sgl: bytes, psdt: int) -> Command:
    """A command whose data pointer is this SGL descriptor."""
    command = d.ns.io(opcode, slba, blocks)
    command.prp1, command.prp2 = struct.unpack("<QQ", sgl)
    command.flags = psdt
    return command


@pytest.mark.parametrize("oob", [0, 64])
@pytest.mark.parametrize("psdt", [METADATA_IS_A_BUFFER, METADATA_IS_AN_SGL])
def test_round_trip(drive: OpenDrive, oob: int, psdt: int) -> None:
    with drive(oob=oob) as d:
        memory = d.controller.memory
        data, metadata = memory.alloc(8 * PAGE), memory.alloc(PAGE)
        pointer = metadata
        if psdt == METADATA_IS_AN_SGL:
            pointer = memory.alloc(PAGE)
            d.qemu.write(pointer, descriptor(metadata, 8 * oob))
        d.qemu.write(data, blocks_of(range(8)))
        d.qemu.write(metadata, pattern(9, 8 * oob))
        for opcode, slba in ((Io.WRITE, 0), (Io.ZONE_APPEND, 16)):
            command = command_with(d, opcode, slba, 8, descriptor(data, 8 * PAGE), psdt)
            command.mptr = pointer if oob else 0
            d.ns.queue.run(command).expect()
            assert d.ns.read(slba, 8) == (blocks_of(range(8)), pattern(9, 8 * oob))
        d.qemu.fill(data, 8 * PAGE, 0)
        d.qemu.fill(metadata, PAGE, 0)
        command = command_with(d, Io.READ, 16, 8, descriptor(data, 8 * PAGE), psdt)
        command.mptr = pointer if oob else 0
        d.ns.queue.run(command).expect()
        assert d.qemu.read(data, 8 * PAGE) == blocks_of(range(8))
        assert d.qemu.read(metadata, 8 * oob) == pattern(9, 8 * oob)


def test_segment_of_uneven_pieces(drive: OpenDrive) -> None:
    with drive() as d:
        memory = d.controller.memory
        content = blocks_of(range(4))
        cuts = [0, 100, 5000, 12_004, len(content)]
        entries = b""
        for start, end in itertools.pairwise(cuts):
            addr = memory.alloc(end - start + 16) + 4
            d.qemu.write(addr, content[start:end])
            entries += descriptor(addr, end - start)
        listing = memory.alloc(PAGE)
        d.qemu.write(listing, entries)
        sgl = descriptor(listing, len(entries), LAST_SEGMENT)
        d.ns.queue.run(command_with(d, Io.WRITE, 0, 4, sgl, METADATA_IS_A_BUFFER)).expect()
        assert d.ns.read(0, 4)[0] == content


@pytest.mark.parametrize(
    ("sgl", "status"),
    [
        (descriptor(64 << 20, 3 * PAGE), DATA_SGL_LENGTH_INVALID),
        (descriptor(UNMAPPED_ADDRESS, 4 * PAGE), DATA_TRANSFER_ERROR),
        (descriptor(UNMAPPED_ADDRESS, 64, LAST_SEGMENT), DATA_TRANSFER_ERROR),
    ],
    ids=["short", "unmapped", "unmapped list"],
)
@pytest.mark.parametrize("opcode", [Io.WRITE, Io.ZONE_APPEND, Io.READ], ids=lambda o: o.name)
def test_bad_list(drive: OpenDrive, opcode: Io, sgl: bytes, status: int) -> None:
    with drive() as d:
        d.ns.write(0, blocks_of(range(4))).expect()
        slba = 4 if opcode == Io.WRITE else 0
        d.ns.queue.run(command_with(d, opcode, slba, 4, sgl, METADATA_IS_A_BUFFER)).expect(status)
        zone = d.ns.zone(0)
        assert (zone.state, zone.wp) == (Zs.IMPLICITLY_OPEN, 4)
        d.ns.write(4, pattern(4)).expect()
        assert d.ns.read(0, 5)[0] == blocks_of(range(5))
