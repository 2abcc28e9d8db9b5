# SPDX-License-Identifier: GPL-2.0-or-later
"""A namespace over an I/O queue: data with page metadata, zone commands, zone reports."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

from nvme import PAGE, Command, Controller, Io, QueuePair, Request

BLOCK = 4096


class Zs(IntEnum):
    """Zone states as reported."""

    EMPTY = 0x1
    IMPLICITLY_OPEN = 0x2
    EXPLICITLY_OPEN = 0x3
    CLOSED = 0x4
    READ_ONLY = 0xD
    FULL = 0xE
    OFFLINE = 0xF


class Action(IntEnum):
    """Zone Send Actions."""

    CLOSE = 0x1
    FINISH = 0x2
    OPEN = 0x3
    RESET = 0x4
    OFFLINE = 0x5
    SET_DESCRIPTOR_EXTENSION = 0x10
    ZRWA_FLUSH = 0x11


class Filter(IntEnum):
    """Zone Receive Action Specific: which zones a report lists."""

    ALL = 0
    EMPTY = 1
    IMPLICITLY_OPEN = 2
    EXPLICITLY_OPEN = 3
    CLOSED = 4
    FULL = 5
    READ_ONLY = 6
    OFFLINE = 7


INVALID_WP = 0xFFFF_FFFF_FFFF_FFFF
ZA_EXTENSION_VALID = 0x80
SELECT_ALL = 1 << 8


@dataclass(frozen=True)
class Zone:
    """One zone descriptor; wp relative to the start of the zone, None if it is not valid."""

    type: int
    state: Zs
    attributes: int
    capacity: int
    start: int
    wp: int | None
    extension: bytes


@dataclass
class Transfer:
    """Data and metadata buffers of one command in guest memory."""

    namespace: Namespace
    blocks: int
    data: int
    oob: int
    prp1: int
    prp2: int
    prp_list: int

    def read(self) -> tuple[bytes, bytes]:
        """Data and metadata."""
        qemu = self.namespace.controller.qemu
        oob_size = self.blocks * self.namespace.oob
        return qemu.read(self.data, self.blocks * BLOCK), qemu.read(self.oob, oob_size)

    def fill(self, data: bytes, oob: bytes = b"") -> None:
        assert len(data) == self.blocks * BLOCK
        assert len(oob) in (0, self.blocks * self.namespace.oob)
        self.namespace.controller.qemu.write(self.data, data)
        self.namespace.controller.qemu.write(self.oob, oob)

    def free(self) -> None:
        memory = self.namespace.controller.memory
        memory.free(self.data, self.blocks * BLOCK)
        if self.oob:
            memory.free(self.oob, self.blocks * self.namespace.oob)
        if self.prp_list:
            memory.free(self.prp_list, PAGE)


class Namespace:
    """Commands of namespace nsid on one queue.  LBAs and counts are in 4 KiB blocks."""

    def __init__(self, queue: QueuePair, nsid: int = 1, *, zoned: bool = True) -> None:
        self.queue = queue
        self.zoned = zoned
        self.zone_size = 0
        self.zones = 0
        self.controller: Controller = queue.controller
        self.nsid = nsid
        self.refresh()

    def refresh(self) -> None:
        """Reads the geometry and the current format from the identify data."""
        ident = self.controller.identify(0x00, self.nsid)
        (self.size,) = struct.unpack_from("<Q", ident)
        index = ident[26] & 0xF
        (self.oob,) = struct.unpack_from("<H", ident, 128 + 4 * index)
        if not self.zoned:
            return
        zoned = self.controller.identify(0x05, self.nsid, csi=2)
        self.zone_size, extension_units = struct.unpack_from("<QB", zoned, 2816 + 16 * index)
        self.extension_size = extension_units * 64
        self.zones = self.size // self.zone_size

    def on(self, queue: QueuePair) -> Namespace:
        """The same namespace through another queue."""
        return Namespace(queue, self.nsid, zoned=self.zoned)

    # Data

    def transfer(self, blocks: int) -> Transfer:
        """Buffers for so many blocks (at most 512: one PRP list)."""
        assert 0 < blocks <= PAGE // 8
        memory, qemu = self.controller.memory, self.controller.qemu
        data = memory.alloc(blocks * BLOCK)
        oob = memory.alloc(blocks * self.oob) if self.oob else 0
        prp2, prp_list = 0, 0
        if blocks == 2:
            prp2 = data + PAGE
        elif blocks > 2:
            prp2 = prp_list = memory.alloc(PAGE)
            entries = range(data + PAGE, data + blocks * PAGE, PAGE)
            qemu.write(prp_list, struct.pack(f"<{len(entries)}Q", *entries))
        return Transfer(self, blocks, data, oob, data, prp2, prp_list)

    def io(self, opcode: Io, slba: int, blocks: int, transfer: Transfer | None = None) -> Command:
        """A read, write, append, write zeroes (without transfer), verify ... command."""
        command = Command(
            opcode, self.nsid, cdw10=slba & 0xFFFFFFFF, cdw11=slba >> 32, cdw12=blocks - 1
        )
        if transfer:
            command.prp1, command.prp2 = transfer.prp1, transfer.prp2
            command.mptr = transfer.oob
        return command

    def _put(self, opcode: Io, slba: int, data: bytes, oob: bytes) -> Request:
        transfer = self.transfer(len(data) // BLOCK)
        transfer.fill(data, oob)
        request = self.queue.run(self.io(opcode, slba, transfer.blocks, transfer))
        transfer.free()
        return request

    def write(self, slba: int, data: bytes, oob: bytes = b"") -> Request:
        return self._put(Io.WRITE, slba, data, oob)

    def append(self, zslba: int, data: bytes, oob: bytes = b"") -> Request:
        """The result of the request is the LBA written."""
        return self._put(Io.ZONE_APPEND, zslba, data, oob)

    def get(self, slba: int, blocks: int = 1) -> tuple[Request, bytes, bytes]:
        """A read: the request, data and metadata."""
        transfer = self.transfer(blocks)
        request = self.queue.run(self.io(Io.READ, slba, blocks, transfer))
        data, oob = transfer.read()
        transfer.free()
        return request, data, oob

    def read(self, slba: int, blocks: int = 1) -> tuple[bytes, bytes]:
        """Data and metadata of a read that succeeds."""
        request, data, oob = self.get(slba, blocks)
        request.expect()
        return data, oob

    def flush(self) -> Request:
        return self.queue.run(Command(Io.FLUSH, self.nsid))

    @contextmanager
    def deallocate_command(self, ranges: Sequence[tuple[int, int]]) -> Iterator[Command]:
        """Dataset Management with Deallocate, of (first block, blocks)."""
        entries = b"".join(struct.pack("<IIQ", 0, blocks, slba) for slba, blocks in ranges)
        with self.controller.memory.buffer(len(entries), entries) as buffer:
            yield Command(Io.DSM, self.nsid, prp1=buffer, cdw10=len(ranges) - 1, cdw11=1 << 2)

    def deallocate(self, *ranges: tuple[int, int]) -> Request:
        with self.deallocate_command(ranges) as command:
            return self.queue.run(command)

    # Zones

    def start(self, zone: int) -> int:
        return zone * self.zone_size

    def send_command(
        self, action: int, slba: int = 0, *, select_all: bool = False, prp1: int = 0
    ) -> Command:
        return Command(
            Io.ZONE_SEND,
            self.nsid,
            prp1=prp1,
            cdw10=slba & 0xFFFFFFFF,
            cdw11=slba >> 32,
            cdw13=action | (SELECT_ALL if select_all else 0),
        )

    def send(self, action: int, zone: int) -> Request:
        """Zone Management Send to one zone."""
        return self.queue.run(self.send_command(action, self.start(zone)))

    def send_all(self, action: int) -> Request:
        return self.queue.run(self.send_command(action, select_all=True))

    def set_extension(self, zone: int, data: bytes) -> Request:
        """Set Zone Descriptor Extension."""
        with self.controller.memory.buffer(len(data), data) as buffer:
            return self.queue.run(
                self.send_command(Action.SET_DESCRIPTOR_EXTENSION, self.start(zone), prp1=buffer)
            )

    def receive(
        self,
        size: int,
        *,
        slba: int = 0,
        select: int = Filter.ALL,
        partial: bool = True,
        extended: bool = False,
        action: int | None = None,
    ) -> tuple[Request, bytes]:
        """Zone Management Receive of size bytes (a multiple of 4)."""
        transfer = self.transfer(max(1, -(-size // BLOCK)))
        request = self.queue.run(
            Command(
                Io.ZONE_RECV,
                self.nsid,
                prp1=transfer.prp1,
                prp2=transfer.prp2,
                cdw10=slba & 0xFFFFFFFF,
                cdw11=slba >> 32,
                cdw12=size // 4 - 1,
                cdw13=partial << 16 | select << 8 | (extended if action is None else action),
            )
        )
        data = self.controller.qemu.read(transfer.data, size)
        transfer.free()
        return request, data

    def parse_report(self, data: bytes, *, extended: bool = False) -> tuple[int, list[Zone]]:
        """The count in the header and the descriptors that fit the buffer."""
        (count,) = struct.unpack_from("<Q", data)
        entry = 64 + (self.extension_size if extended else 0)
        zones: list[Zone] = []
        for offset in range(64, len(data) - entry + 1, entry):
            if len(zones) == count:
                break
            kind, state, attributes, capacity, start, wp = struct.unpack_from(
                "<BBB5xQQQ", data, offset
            )
            zones.append(
                Zone(
                    kind & 0xF,
                    Zs(state >> 4),
                    attributes,
                    capacity,
                    start,
                    None if wp == INVALID_WP else wp - start,
                    data[offset + 64 : offset + entry],
                )
            )
        return count, zones

    def report(self, *, extended: bool = False) -> list[Zone]:
        """All zones (of a namespace whose report fits 512 blocks)."""
        size = 64 + self.zones * (64 + (self.extension_size if extended else 0))
        request, data = self.receive(size, extended=extended)
        request.expect()
        count, zones = self.parse_report(data, extended=extended)
        assert count == self.zones == len(zones)
        return zones

    def zone(self, index: int) -> Zone:
        """The descriptor of one zone."""
        request, data = self.receive(128, slba=self.start(index))
        request.expect()
        return self.parse_report(data)[1][0]

    def states(self) -> list[Zs]:
        return [zone.state for zone in self.report()]


def pattern(tag: int, size: int = BLOCK) -> bytes:
    """size bytes (a multiple of 8) that depend on tag and on the position, never zero."""
    return b"".join(
        struct.pack("<II", tag & 0xFFFFFFFF, 0x5EED0001 + index) for index in range(size // 8)
    )


def blocks_of(tags: Sequence[int]) -> bytes:
    """One patterned block for each tag."""
    return b"".join(pattern(tag) for tag in tags)
