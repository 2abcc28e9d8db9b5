# SPDX-License-Identifier: GPL-2.0-or-later
"""Conventional namespaces: any block at any time, Dataset Management, what identify says."""

from __future__ import annotations

import random
import struct

import pytest
from drive import Drive, OpenDrive
from nvme import Admin, Command, Io, Status
from zns import BLOCK, pattern

# 4 dies of 12 + 4 blocks of 8 pages
CONVENTIONAL: dict[str, str | int] = {
    "ftl": "page",
    "blocks": 12,
    "pages": 8,
    "spare_blocks": 4,
    "over_provision": 20,
    "map_cache": 1024,  # half of the map
}
FTLS = ("page", "block", "fast", "dftl")
# 218,368 blocks: a trim of all of them has four steps of 1 ms
STEP, STEP_NS = 65536, 1_000_000
LARGE = CONVENTIONAL | {"blocks": 508, "pages": 128, "t_fw_write": STEP_NS}
ONCS_COMPARE, ONCS_DSM, ONCS_WRITE_ZEROES, ONCS_VERIFY, ONCS_COPY = 0x01, 0x04, 0x08, 0x80, 0x100
NOT_THERE = (Io.COMPARE, Io.VERIFY, Io.COPY)
EFFECTS = 0x05


def oncs(d: Drive) -> int:
    return int(struct.unpack_from("<H", d.controller.identify(0x01), 520)[0])


def effects(d: Drive, csi: int) -> list[int]:
    """The I/O commands of a command set that the effects log names."""
    buffer = d.controller.memory.alloc(4096)
    command = d.controller.get_log_command(buffer, EFFECTS, 4096)
    command.cdw14 = csi << 24
    d.controller.admin.run(command).expect()
    words = struct.unpack_from("<256I", d.qemu.read(buffer, 4096), 1024)
    return [opcode for opcode, word in enumerate(words) if word & 1]


def oob_of(d: Drive, tag: int, blocks: int = 1) -> bytes:
    return b"".join(bytes([tag & 0xFF]) * d.ns.oob for _ in range(blocks))


def test_identify(drive: OpenDrive) -> None:
    with drive(**CONVENTIONAL) as d:
        ident = d.controller.identify(0x00, 1)
        nsze, ncap, nuse, nsfeat = struct.unpack_from("<QQQB", ident)
        assert nsze == ncap == nuse
        assert 0 < nsze * 120 // 100 <= 4 * 12 * 8, "over-provisioning comes off"
        assert nsfeat & 0x10, "the granularities are valid"
        assert ident[33] == 0x9, "deallocated blocks read as zeroes, write zeroes deallocates"
        npwg, npwa, npdg, npda, nows = struct.unpack_from("<5H", ident, 64)
        assert (npwg, npwa, npdg, npda, nows) == (0, 0, 0, 0, 3)
        formats = [struct.unpack_from("<HBB", ident, 128 + 4 * n) for n in range(4)]
        assert ident[25] == 2, "three formats"
        assert [(ms, ds) for ms, ds, _ in formats] == [(0, 12), (16, 12), (64, 12), (0, 0)]
        sets = d.controller.identify(0x03, 1)
        assert b"\x04\x01\x00\x00\x00" in sets, "the NVM command set"
        assert d.log()["capacity_bytes"] == nsze * BLOCK


def test_commands_offered(drive: OpenDrive) -> None:
    with drive(**CONVENTIONAL) as d:
        mask = ONCS_COMPARE | ONCS_DSM | ONCS_WRITE_ZEROES | ONCS_VERIFY | ONCS_COPY
        assert oncs(d) & mask == ONCS_DSM | ONCS_WRITE_ZEROES
        assert effects(d, 0) == sorted([Io.FLUSH, Io.WRITE, Io.READ, Io.WRITE_ZEROES, Io.DSM])
        for opcode in NOT_THERE:
            d.ns.queue.run(d.ns.io(opcode, 0, 1)).expect(Status.INVALID_OPCODE)


def test_commands_offered_with_zones(drive: OpenDrive) -> None:
    with drive() as d:
        zone_commands = [Io.ZONE_SEND, Io.ZONE_RECV, Io.ZONE_APPEND]
        assert effects(d, 2) == sorted(
            [Io.FLUSH, Io.WRITE, Io.READ, Io.WRITE_ZEROES, *zone_commands]
        )
        for opcode in (*NOT_THERE, Io.DSM):
            d.ns.queue.run(d.ns.io(opcode, 0, 1)).expect(Status.INVALID_OPCODE)


@pytest.mark.parametrize("oob", [0, 16, 64])
@pytest.mark.parametrize("ftl", FTLS)
def test_overwrite_in_any_order(drive: OpenDrive, ftl: str, oob: int) -> None:
    """Three times the namespace's size in random places: collection or merges included."""
    generator = random.Random(7)
    content: dict[int, int] = {}
    with drive(oob=oob, **CONVENTIONAL | {"ftl": ftl}) as d:
        assert d.ns.oob == oob
        for tag in range(1, 3 * d.ns.size // 4):
            blocks = generator.randint(1, 7)
            slba = generator.randrange(d.ns.size - blocks + 1)
            data = b"".join(pattern(tag * 8 + index) for index in range(blocks))
            d.ns.write(slba, data, oob_of(d, tag, blocks)).expect()
            content |= {slba + index: tag * 8 + index for index in range(blocks)}
        log = d.log()
        assert log["prog_clean"] + log["prog_merge"] > 0, "garbage was collected"
        assert log["host_write_pages"] == log["prog_host"]
        check(d, content)
        d.qemu.kill()
    with drive(**CONVENTIONAL | {"ftl": ftl}) as d:
        check(d, content)


def check(d: Drive, content: dict[int, int]) -> None:
    for slba in range(d.ns.size):
        data, oob = d.ns.read(slba)
        tag = content.get(slba)
        assert data == (bytes(BLOCK) if tag is None else pattern(tag)), f"block {slba}"
        assert oob == (bytes(d.ns.oob) if tag is None else oob_of(d, tag // 8)), f"block {slba}"


def test_no_metadata_pointer(drive: OpenDrive) -> None:
    with drive(oob=16, **CONVENTIONAL) as d:
        transfer = d.ns.transfer(1)
        command = d.ns.io(Io.WRITE, 0, 1, transfer)
        command.mptr = 0
        d.ns.queue.run(command).expect(Status.INVALID_FIELD)


@pytest.mark.parametrize("ftl", FTLS)
def test_deallocate(drive: OpenDrive, ftl: str) -> None:
    with drive(oob=16, **CONVENTIONAL | {"ftl": ftl}) as d:
        for slba in range(12):
            d.ns.write(slba, pattern(slba + 1), oob_of(d, slba + 1)).expect()
        before = d.log()
        d.ns.deallocate((1, 3), (8, 0), (9, 2)).expect()
        log = d.log()
        assert log["trim_cmds"] - before["trim_cmds"] == 2, "an empty range is none"
        assert log["trim_pages"] - before["trim_pages"] == 5
        gone = {1, 2, 3, 9, 10}
        for slba in range(12):
            data, oob = d.ns.read(slba)
            assert data == (bytes(BLOCK) if slba in gone else pattern(slba + 1))
            assert oob == (bytes(16) if slba in gone else oob_of(d, slba + 1))
        d.qemu.kill()
    with drive(**CONVENTIONAL | {"ftl": ftl}) as d:
        assert [slba for slba in range(12) if d.ns.read(slba)[0] == bytes(BLOCK)] == sorted(gone)


def test_deallocate_beyond_the_end(drive: OpenDrive) -> None:
    """One bad range, and nothing is deallocated."""
    with drive(**CONVENTIONAL) as d:
        d.ns.write(0, pattern(1)).expect()
        for bad in ((d.ns.size, 1), (d.ns.size - 1, 2), (2**64 - 1, 2), (0, 2**32 - 1)):
            d.ns.deallocate((0, 1), bad).expect(Status.LBA_RANGE)
        assert d.log()["trim_cmds"] == 0
        assert d.ns.read(0)[0] == pattern(1)


def test_advice_without_deallocate(drive: OpenDrive) -> None:
    """Dataset Management of the other attributes alone does nothing."""
    with drive(**CONVENTIONAL) as d:
        d.ns.write(0, pattern(1)).expect()
        with d.ns.deallocate_command([(0, 1)]) as command:
            command.cdw11 = 0x3
            d.ns.queue.run(command).expect()
        assert d.ns.read(0)[0] == pattern(1)


@pytest.mark.parametrize("ftl", FTLS)
def test_write_zeroes(drive: OpenDrive, ftl: str) -> None:
    with drive(**CONVENTIONAL | {"ftl": ftl}) as d:
        for slba in range(4):
            d.ns.write(slba, pattern(slba)).expect()
        for slba, deallocate in ((1, 0), (2, 1 << 25)):
            command = d.ns.io(Io.WRITE_ZEROES, slba, 1)
            command.cdw12 |= deallocate
            d.ns.queue.run(command).expect()
        zero = [slba for slba in range(4) if d.ns.read(slba)[0] == bytes(BLOCK)]
        assert zero == [1, 2]


@pytest.mark.parametrize("ftl", FTLS)
def test_format(drive: OpenDrive, ftl: str) -> None:
    with drive(**CONVENTIONAL | {"ftl": ftl}) as d:
        d.ns.write(3, pattern(3)).expect()
        d.controller.format(3).expect(Status.INVALID_FORMAT)
        d.controller.format(2).expect()
        d.ns.refresh()
        assert d.ns.oob == 64
        assert d.ns.read(3) == (bytes(BLOCK), bytes(64))
        d.ns.write(3, pattern(4), bytes(range(64))).expect()
        d.qemu.kill()
    with drive(**CONVENTIONAL | {"ftl": ftl}) as d:
        assert d.ns.oob == 64
        assert d.ns.read(3) == (pattern(4), bytes(range(64)))


@pytest.mark.parametrize("ftl", FTLS)
def test_a_large_trim_takes_steps(drive: OpenDrive, ftl: str) -> None:
    """Reads of what is not to be trimmed go on in between, others wait."""
    with drive(**LARGE | {"ftl": ftl}) as d:
        assert 3 * STEP < d.ns.size < 4 * STEP
        # the last one in a die that erases nothing for the trim's sake
        marks = (0, STEP, 3 * STEP - 1, 3 * STEP + 128)
        for slba in marks:
            d.ns.write(slba, pattern(slba + 1)).expect()
        d.controller.advance(10**9)  # block maps fill up what comes before such blocks
        with d.ns.deallocate_command([(0, 3 * STEP)]) as command:
            trim = d.ns.queue.submit(command)
            reads = {slba: d.ns.transfer(1) for slba in marks[2:]}
            held, other = (
                d.ns.queue.submit(d.ns.io(Io.READ, slba, 1, transfer))
                for slba, transfer in reads.items()
            )
            d.controller.wait(other)
            assert not trim.done
            assert not held.done
            d.controller.wait(trim, held)
        trim.expect()
        assert trim.latency_ns == 3 * STEP_NS
        assert held.completed_ns >= trim.completed_ns
        assert [d.ns.read(slba)[0] for slba in marks[:3]] == [bytes(BLOCK)] * 3
        assert d.ns.read(marks[3])[0] == pattern(marks[3] + 1)
        log = d.log()
        assert (log["trim_cmds"], log["trim_pages"]) == (1, 3 * STEP)


def test_a_large_trim_goes_on_after_a_reset(drive: OpenDrive) -> None:
    with drive(**LARGE) as d:
        for slba in (0, 3 * STEP):
            d.ns.write(slba, pattern(slba + 1)).expect()
        with d.ns.deallocate_command([(0, d.ns.size)]) as command:
            d.ns.queue.submit(command)
            d.controller.advance(STEP_NS)
            d.reset_controller()
        transfer = d.ns.transfer(1)
        read = d.ns.queue.submit(d.ns.io(Io.READ, 3 * STEP, 1, transfer))
        d.controller.wait(read)
        read.expect()
        assert read.latency_ns >= 3 * STEP_NS
        assert transfer.read()[0] == bytes(BLOCK)


def test_a_large_format_takes_steps(drive: OpenDrive) -> None:
    with drive(**LARGE) as d:
        for slba in (0, d.ns.size - 1):
            d.ns.write(slba, pattern(slba + 1)).expect()
        d.controller.format(3).expect(Status.INVALID_FORMAT)
        request = d.controller.admin.submit(Command(Admin.FORMAT, 1, cdw10=2))
        d.controller.advance(2 * STEP_NS)
        transfer = d.ns.transfer(1)
        d.ns.queue.run(d.ns.io(Io.READ, 0, 1, transfer)).expect(Status.FORMAT_IN_PROGRESS)
        d.controller.wait(request)
        request.expect()
        assert request.latency_ns == 4 * STEP_NS
        d.ns.refresh()
        assert d.ns.oob == 64
        for slba in (0, d.ns.size - 1):
            assert d.ns.read(slba) == (bytes(BLOCK), bytes(64))
        log = d.log()
        assert (log["formats"], log["trim_cmds"]) == (1, 1)


def test_a_reset_ends_a_large_format(drive: OpenDrive) -> None:
    """The blocks are trimmed then, and the metadata is as it was; the next format is whole."""
    with drive(**LARGE) as d:
        last = d.ns.size - 1
        d.ns.write(last, pattern(1)).expect()
        d.controller.admin.submit(Command(Admin.FORMAT, 1, cdw10=2))
        d.controller.advance(2 * STEP_NS)
        d.reset_controller()
        assert d.ns.oob == 0
        transfer = d.ns.transfer(1)
        transfer.fill(pattern(2))
        write = d.ns.queue.submit(d.ns.io(Io.WRITE, last, 1, transfer))
        d.controller.wait(write)
        write.expect()
        assert write.latency_ns >= 2 * STEP_NS, "it waits for the rest of the trim"
        assert d.ns.read(last)[0] == pattern(2)
        d.controller.admin.submit(Command(Admin.FORMAT, 1, cdw10=1))
        d.controller.advance(STEP_NS)
        d.reset_controller()
        request = d.controller.admin.submit(Command(Admin.FORMAT, 1, cdw10=1))
        d.controller.wait(request)
        request.expect()
        d.ns.refresh()
        assert d.ns.read(last) == (bytes(BLOCK), bytes(16))
        assert d.log()["formats"] == 1


@pytest.mark.parametrize("what", ["queue", "controller"])
@pytest.mark.parametrize("ftl", FTLS)
def test_in_flight(drive: OpenDrive, ftl: str, what: str) -> None:
    """Writes, trims and flushes in flight while their queue or controller goes."""
    with drive(**CONVENTIONAL | {"ftl": ftl}) as d:
        queue = d.controller.create_queue(2)
        other = d.ns.on(queue)
        transfer = other.transfer(1)
        transfer.fill(pattern(5))
        for slba in range(8):
            queue.submit(other.io(Io.WRITE, slba, 1, transfer))
        with other.deallocate_command([(0, 4), (6, 1)]) as command:
            queue.submit(command)
            queue.submit(Command(Io.FLUSH, 1))
            queue.submit(Command(Io.FLUSH, 0xFFFFFFFF))
            if what == "queue":
                d.controller.delete_queue(2)
            else:
                d.reset_controller()
        d.controller.advance(10_000_000)
        d.ns.write(9, pattern(9)).expect()
        assert d.ns.read(9)[0] == pattern(9)
        assert d.ns.read(5)[0] == pattern(5), "what was in flight went on in the drive"
        assert d.ns.read(3)[0] == bytes(BLOCK), "and so did the trim behind it"


def test_abort_of_a_trim(drive: OpenDrive) -> None:
    with drive(**CONVENTIONAL) as d:
        transfer = d.ns.transfer(1)
        write = d.ns.queue.submit(d.ns.io(Io.WRITE, 0, 1, transfer))
        with d.ns.deallocate_command([(0, 1)]) as command:
            trim = d.ns.queue.submit(command)
            d.controller.poll()
            assert not trim.done, "it waits for the write"
            d.controller.admin.run(
                Command(Admin.ABORT, cdw10=trim.cid << 16 | d.ns.queue.qid)
            ).expect()
            d.controller.wait(write, trim)
        trim.expect(Status.ABORTED)
        write.expect()


def test_zone_properties_are_refused(drive: OpenDrive, qemu: str) -> None:
    """They would have no effect."""
    with (
        pytest.raises(Exception, match="zoned.max_open.*ftl=rsd"),
        drive(zoned_max_open=2, **CONVENTIONAL),
    ):
        pass


def test_smart_counts_the_host(drive: OpenDrive) -> None:
    with drive(**CONVENTIONAL) as d:
        for slba in range(10):
            d.ns.write(slba, pattern(slba)).expect()
        d.ns.read(0)
        smart = d.controller.get_log(0x02, 512)
        read, write = struct.unpack_from("<Q8xQ", smart, 64)
        assert (read, write) == (1, 10)
