# SPDX-License-Identifier: GPL-2.0-or-later
"""Identify data and Format NVM to each of the four LBA formats."""

from __future__ import annotations

import struct
import uuid

import pytest
from drive import OpenDrive
from nvme import Admin, Command, Io, Status
from zns import Action, Zs, blocks_of, pattern

OOB_OF_FORMAT = [0, 16, 64, 128]


@pytest.mark.parametrize(("lbaf", "oob"), list(enumerate(OOB_OF_FORMAT)))
def test_identify(drive: OpenDrive, lbaf: int, oob: int) -> None:
    with drive(oob=oob) as d:
        ident = d.controller.identify(0x00, 1)
        nsze, ncap, nuse = struct.unpack_from("<QQQ", ident)
        assert (nsze, ncap, nuse) == (96, 96, 96)
        assert ident[25] + 1 == 4, "number of LBA formats"
        assert ident[26] == lbaf, "current format, metadata in a separate buffer"
        assert ident[27] & 2, "separate metadata is supported"
        assert not ident[27] & 1, "metadata at the end of the data is not"
        assert (ident[28], ident[29]) == (0, 0), "no protection information"
        for index, size in enumerate(OOB_OF_FORMAT):
            metadata, data_shift = struct.unpack_from("<HB", ident, 128 + 4 * index)
            assert (metadata, data_shift) == (size, 12)


def test_identify_zoned(drive: OpenDrive) -> None:
    with drive(zd_ext=192) as d:
        zoned = d.controller.identify(0x05, 1, csi=2)
        zoc, ozcs, mar, mor = struct.unpack_from("<HHII", zoned)
        assert (zoc, mar, mor) == (0, 0xFFFFFFFF, 0xFFFFFFFF)
        assert ozcs == 0, "no reads across zone boundaries, no random write area"
        for index in range(4):
            assert struct.unpack_from("<QB", zoned, 2816 + 16 * index) == (16, 3)


def test_zone_size_of_each_format_is_the_same(drive: OpenDrive) -> None:
    with drive(channels=3) as d:
        zoned = d.controller.identify(0x05, 1, csi=2)
        sizes = {struct.unpack_from("<Q", zoned, 2816 + 16 * i)[0] for i in range(4)}
        assert sizes == {32}


def test_namespace_identity(drive: OpenDrive) -> None:
    name = uuid.UUID("7c4c1d1e-5f0e-4f43-9a55-3a1d0f7e2b11")
    with drive(uuid=str(name), eui64="0x0123456789abcdef") as d:
        ident = d.controller.identify(0x00, 1)
        assert ident[120:128] == bytes.fromhex("0123456789abcdef")
        descriptors = d.controller.identify(0x03, 1)
        assert name.bytes in descriptors
        assert b"\x04\x01\x00\x00\x02" in descriptors, "command set identifier: zoned"


def test_namespace_number(drive: OpenDrive) -> None:
    with drive() as d:
        assert struct.unpack_from("<3I", d.controller.identify(0x02)) == (1, 0, 0)


@pytest.mark.parametrize("before", OOB_OF_FORMAT)
@pytest.mark.parametrize("after", OOB_OF_FORMAT)
def test_format(drive: OpenDrive, before: int, after: int) -> None:
    with drive(oob=before) as d:
        first = pattern(8, 16 * before)
        d.ns.write(0, blocks_of(range(16)), first).expect()
        d.ns.write(16, blocks_of(range(5)), first[: 5 * before]).expect()
        assert d.ns.read(0, 16) == (blocks_of(range(16)), first)
        d.ns.send(Action.OPEN, 3).expect()

        d.controller.format(OOB_OF_FORMAT.index(after)).expect()
        d.ns.refresh()
        assert d.ns.oob == after
        assert set(d.ns.states()) == {Zs.EMPTY}
        assert d.ns.read(0, 16) == (bytes(16 * 4096), bytes(16 * after))

        second = pattern(9, 16 * after)
        d.ns.append(0, blocks_of(range(50, 66)), second).expect()
        assert d.ns.read(0, 16) == (blocks_of(range(50, 66)), second)
        log = d.log()
        assert (log["formats"], log["oob_bytes"]) == (1, after)


def test_every_block_of_a_command_has_its_own_metadata(drive: OpenDrive) -> None:
    with drive(oob=64, pages=64) as d:
        for slba, blocks in ((0, 128), (128, 1), (129, 7)):
            oob = b"".join(pattern(slba + index, 64) for index in range(blocks))
            d.ns.write(slba, blocks_of(range(slba, slba + blocks)), oob).expect()
        for lba in (0, 1, 63, 127, 128, 129, 135):
            assert d.ns.read(lba) == (pattern(lba), pattern(lba, 64))
        assert d.ns.read(120, 16)[1] == b"".join(pattern(120 + index, 64) for index in range(16))


def test_format_survives_a_restart(drive: OpenDrive) -> None:
    with drive(oob=16) as d:
        d.controller.format(3).expect()
        d.ns.refresh()
        d.ns.write(0, pattern(1), pattern(2, 128)).expect()
        d.qemu.quit()
    with drive(oob=16) as d:
        assert d.ns.oob == 128, "the last format counts, not the property"
        assert d.ns.read(0) == (pattern(1), pattern(2, 128))


@pytest.mark.parametrize(
    "cdw10",
    [
        0x4,  # there is no format 4
        0xF,
        0x1 | 1 << 4,  # metadata at the end of the data
        0x1 | 1 << 5,  # protection information
        0x0 | 1 << 5,
    ],
)
def test_format_that_is_not_offered(drive: OpenDrive, cdw10: int) -> None:
    with drive(oob=16) as d:
        d.ns.write(0, pattern(1), pattern(2, 16)).expect()
        request = d.controller.admin.run(Command(Admin.FORMAT, 1, cdw10=cdw10))
        assert request.status in (Status.INVALID_FORMAT, Status.INVALID_FIELD)
        d.ns.refresh()
        assert d.ns.oob == 16
        assert d.ns.read(0) == (pattern(1), pattern(2, 16))


def test_format_of_a_missing_namespace(drive: OpenDrive) -> None:
    with drive() as d:
        d.controller.format(1, nsid=2).expect(Status.INVALID_FIELD)
        d.controller.format(1, nsid=1000).expect(Status.INVALID_NAMESPACE)


def test_format_of_all_namespaces(drive: OpenDrive) -> None:
    with drive() as d:
        d.ns.write(0, pattern(1)).expect()
        d.controller.format(2, nsid=0xFFFFFFFF).expect()
        d.ns.refresh()
        assert d.ns.oob == 64
        assert d.ns.states()[0] == Zs.EMPTY


def test_format_with_writes_in_flight(drive: OpenDrive) -> None:
    """Refused, as the drive says; the writes go on, and the format can be repeated."""
    with drive() as d:
        transfer = d.ns.transfer(8)
        transfer.fill(blocks_of(range(8)))
        write = d.ns.queue.submit(d.ns.io(Io.WRITE, 0, 8, transfer))
        d.controller.format(2).expect(Status.COMMAND_SEQUENCE_ERROR)
        d.controller.wait(write)
        write.expect()
        assert d.ns.read(0, 8)[0] == blocks_of(range(8))
        d.controller.format(2).expect()
        d.ns.refresh()
        assert d.ns.states()[0] == Zs.EMPTY
        d.ns.write(0, blocks_of(range(16)), pattern(1, 16 * 64)).expect()
        assert d.ns.read(0, 16) == (blocks_of(range(16)), pattern(1, 16 * 64))


@pytest.mark.parametrize("how", ["write", "read", "zone reset", "format"])
def test_format_after_a_reset(drive: OpenDrive, how: str) -> None:
    """What the reset has made the host forget goes on; the format waits for it.

    Another reset ends the wait, and the format.
    """
    with drive(reset="erase") as d:
        data = blocks_of(range(8))
        d.ns.write(0, data).expect()
        transfer = d.ns.transfer(8)
        transfer.fill(data)
        if how == "zone reset":
            d.ns.queue.submit(d.ns.send_command(Action.RESET, 0))
        else:
            op, lba = (Io.READ, 0) if how == "read" else (Io.WRITE, 8)
            d.ns.queue.submit(d.ns.io(op, lba, 8, transfer))
        d.reset_controller()
        request = d.controller.admin.submit(Command(Admin.FORMAT, 1, cdw10=2))
        assert not request.done
        if how == "format":
            d.reset_controller(100_000_000)
            assert not request.done
            assert d.ns.oob == 0
            assert d.ns.read(0, 8)[0] == data
            return
        d.controller.wait(request)
        request.expect()
        assert request.latency_ns > 0
        d.ns.refresh()
        assert d.ns.oob == 64
        assert d.ns.states()[0] == Zs.EMPTY
        d.ns.write(0, data, pattern(1, 8 * 64)).expect()
        assert d.ns.read(0, 8) == (data, pattern(1, 8 * 64))


def test_capacity_is_the_same_after_a_format(drive: OpenDrive) -> None:
    """With zones that are larger than what can be written in them."""
    with drive(channels=3) as d:
        sizes = struct.unpack_from("<QQQ", d.controller.identify(0x00, 1))
        assert sizes[0] > sizes[1] == sizes[2]
        d.controller.format(2).expect()
        assert struct.unpack_from("<QQQ", d.controller.identify(0x00, 1)) == sizes
