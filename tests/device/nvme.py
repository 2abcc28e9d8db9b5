# SPDX-License-Identifier: GPL-2.0-or-later
"""An NVMe host over qtest: PCI set-up, queue pairs, commands in flight, virtual latencies.

Completion queues are polled by phase bit; no interrupt is used.  All structures are those of the
NVM Express Base 1.4 and Zoned Namespace 1.1 specifications.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum

from qtest import NoTimer, Qemu

PAGE = 4096
WALL_LIMIT_S = 600.0
DNR = 0x4000

# Guest memory handed out for queues and buffers; the rest of the 512 MiB is left alone.
MEMORY_START = 16 << 20
MEMORY_END = 500 << 20
BAR0_ADDRESS = 0xE0000000
BAR0_SIZE = 0x10000  # at least that of the device
# An address without memory or device behind it, for commands that must fail to map.
UNMAPPED_ADDRESS = 0x7_0000_0000_0000


class Admin(IntEnum):
    DELETE_SQ = 0x00
    CREATE_SQ = 0x01
    GET_LOG = 0x02
    DELETE_CQ = 0x04
    CREATE_CQ = 0x05
    IDENTIFY = 0x06
    ABORT = 0x08
    SET_FEATURES = 0x09
    GET_FEATURES = 0x0A
    ASYNC_EVENT = 0x0C
    FORMAT = 0x80


class Io(IntEnum):
    FLUSH = 0x00
    WRITE = 0x01
    READ = 0x02
    COMPARE = 0x05
    WRITE_ZEROES = 0x08
    DSM = 0x09
    VERIFY = 0x0C
    COPY = 0x19
    ZONE_SEND = 0x79
    ZONE_RECV = 0x7A
    ZONE_APPEND = 0x7D


class Status(IntEnum):
    """Status code type and code, as in bits 11:1 of the completion's last word."""

    SUCCESS = 0x000
    INVALID_OPCODE = 0x001
    INVALID_FIELD = 0x002
    DATA_TRANSFER_ERROR = 0x004
    INTERNAL_ERROR = 0x006
    ABORTED = 0x007
    ABORTED_SQ_DELETED = 0x008
    INVALID_NAMESPACE = 0x00B
    COMMAND_SEQUENCE_ERROR = 0x00C
    INVALID_PRP_OFFSET = 0x013
    LBA_RANGE = 0x080
    CAPACITY_EXCEEDED = 0x081
    NS_NOT_READY = 0x082
    FORMAT_IN_PROGRESS = 0x084
    INVALID_CQID = 0x100
    INVALID_QID = 0x101
    AER_LIMIT_EXCEEDED = 0x105
    INVALID_LOG_PAGE = 0x109
    INVALID_FORMAT = 0x10A
    ZONE_INVALID_OP = 0x1B6
    ZRWA_UNAVAILABLE = 0x1B7
    ZONE_BOUNDARY = 0x1B8
    ZONE_FULL = 0x1B9
    ZONE_READ_ONLY = 0x1BA
    ZONE_OFFLINE = 0x1BB
    ZONE_INVALID_WRITE = 0x1BC
    ZONE_TOO_MANY_ACTIVE = 0x1BD
    ZONE_TOO_MANY_OPEN = 0x1BE
    ZONE_INVALID_TRANSITION = 0x1BF
    WRITE_FAULT = 0x280
    UNRECOVERED_READ = 0x281


def status_name(code: int) -> str:
    try:
        return Status(code).name
    except ValueError:
        return hex(code)


@dataclass
class Command:
    """A submission queue entry without its command identifier."""

    opcode: int
    nsid: int = 0
    prp1: int = 0
    prp2: int = 0
    mptr: int = 0
    cdw10: int = 0
    cdw11: int = 0
    cdw12: int = 0
    cdw13: int = 0
    cdw14: int = 0
    cdw15: int = 0
    flags: int = 0

    def pack(self, cid: int) -> bytes:
        return struct.pack(
            "<BBHIQQQQIIIIII",
            self.opcode,
            self.flags,
            cid,
            self.nsid,
            0,
            self.mptr,
            self.prp1,
            self.prp2,
            self.cdw10,
            self.cdw11,
            self.cdw12,
            self.cdw13,
            self.cdw14,
            self.cdw15,
        )


@dataclass
class Request:
    """A submitted command.  The fields after done are valid once done is set."""

    command: Command
    cid: int
    submitted_ns: int
    done: bool = False
    completed_ns: int = 0
    raw_status: int = 0  # with DNR and More
    result: int = 0  # dwords 0 and 1 of the completion

    @property
    def status(self) -> int:
        return self.raw_status & 0x7FF

    @property
    def latency_ns(self) -> int:
        assert self.done
        return self.completed_ns - self.submitted_ns

    def expect(self, status: int = Status.SUCCESS) -> Request:
        """Asserts completion with exactly this status."""
        assert self.done
        assert self.status == status, (
            f"opcode {self.command.opcode:#x}: {status_name(self.status)},"
            f" not {status_name(status)}"
        )
        return self


class Memory:
    """Page-wise allocation of guest memory."""

    def __init__(self, qemu: Qemu) -> None:
        self._qemu = qemu
        self._next = MEMORY_START
        self._free: dict[int, list[int]] = {}

    def alloc(self, size: int) -> int:
        """Address of zeroed pages that hold size bytes."""
        pages = max(1, -(-size // PAGE))
        free = self._free.get(pages)
        if free:
            addr = free.pop()
        else:
            addr = self._next
            self._next += pages * PAGE
            if self._next > MEMORY_END:
                raise MemoryError("the test used up its guest memory")
        self._qemu.fill(addr, pages * PAGE, 0)
        return addr

    def free(self, addr: int, size: int) -> None:
        self._free.setdefault(max(1, -(-size // PAGE)), []).append(addr)

    @contextmanager
    def buffer(self, size: int, data: bytes | None = None) -> Iterator[int]:
        """A buffer of size bytes, with data copied in, for the time of the block."""
        addr = self.alloc(size)
        if data is not None:
            self._qemu.write(addr, data)
        try:
            yield addr
        finally:
            self.free(addr, size)


@dataclass
class QueuePair:
    """Submission and completion queue of the same identifier."""

    controller: Controller
    qid: int
    depth: int
    cq_depth: int
    sq: int
    cq: int
    tail: int = 0
    head: int = 0
    phase: int = 1
    next_cid: int = 0
    in_flight: dict[int, Request] = field(default_factory=dict)

    def submit(self, command: Command) -> Request:
        """Writes the command and rings the doorbell."""
        (request,) = self.submit_all([command])
        return request

    def submit_all(self, commands: Iterable[Command]) -> list[Request]:
        """Several commands with one doorbell write."""
        requests = []
        for command in commands:
            assert len(self.in_flight) < self.depth - 1, f"queue {self.qid} is full"
            while self.next_cid in self.in_flight:
                self.next_cid = (self.next_cid + 1) & 0x7FFF
            request = Request(command, self.next_cid, self.controller.qemu.clock_ns)
            self.next_cid = (self.next_cid + 1) & 0x7FFF
            self.controller.qemu.write(self.sq + 64 * self.tail, command.pack(request.cid))
            self.in_flight[request.cid] = request
            self.tail = (self.tail + 1) % self.depth
            requests.append(request)
        self.controller.write_doorbell(2 * self.qid, self.tail)
        return requests

    def poll(self) -> bool:
        """Takes completions off the queue; whether there were any."""
        qemu = self.controller.qemu
        found = False
        while self.in_flight:
            count = min(8 if found else 1, self.cq_depth - self.head)
            entries = qemu.read(self.cq + 16 * self.head, 16 * count)
            taken = 0
            for low, high, _sqid, cid, status in struct.iter_unpack("<IIIHH", entries):
                if status & 1 != self.phase:
                    break
                request = self.in_flight.pop(cid)
                request.done = True
                request.completed_ns = qemu.clock_ns
                request.raw_status = status >> 1
                request.result = low | high << 32
                taken += 1
            if not taken:
                break
            found = True
            self.head = (self.head + taken) % self.cq_depth
            if self.head == 0:
                self.phase ^= 1
        if found:
            self.controller.write_doorbell(2 * self.qid + 1, self.head)
        return found

    def run(self, command: Command) -> Request:
        """Submits a command and steps the clock until it completes."""
        request = self.submit(command)
        self.controller.wait(request)
        return request


class Controller:
    """An NVMe controller: the index-th PCI function of class 01:08:02."""

    def __init__(self, qemu: Qemu, index: int = 0, memory: Memory | None = None) -> None:
        """memory is that of another controller of the same machine, if there is one."""
        self.qemu = qemu
        self.memory = memory or Memory(qemu)
        self.queues: dict[int, QueuePair] = {}
        self.bar = BAR0_ADDRESS + index * BAR0_SIZE
        self._map_bar(index)
        self.doorbell_stride = 4 << (qemu.readq(self.bar) >> 32 & 0xF)
        self.enable()

    # PCI

    def _config(self, devfn: int, offset: int) -> None:
        self.qemu.outl(0xCF8, 1 << 31 | devfn << 8 | offset)

    def _map_bar(self, index: int) -> None:
        found = []
        for device in range(32):
            self._config(device << 3, 0x08)
            if self.qemu.inl(0xCFC) >> 8 == 0x010802:
                found.append(device << 3)
        assert index < len(found), f"{len(found)} NVMe controllers on the PCI bus"
        devfn = found[index]
        for offset, value in ((0x10, self.bar), (0x14, 0), (0x04, 0x6)):
            self._config(devfn, offset)
            self.qemu.outl(0xCFC, value)

    # Controller registers

    def csts(self) -> int:
        return self.qemu.readl(self.bar + 0x1C)

    def write_cc(self, value: int) -> None:
        self.qemu.writel(self.bar + 0x14, value)

    def write_doorbell(self, index: int, value: int) -> None:
        self.qemu.writel(self.bar + 0x1000 + index * self.doorbell_stride, value)

    def enable(self, admin_depth: int = 64) -> None:
        """Starts the controller with all I/O command sets and an admin queue."""
        admin = self._queue_pair(0, admin_depth, admin_depth)
        self.qemu.writel(self.bar + 0x24, (admin_depth - 1) << 16 | (admin_depth - 1))
        self.qemu.writeq(self.bar + 0x28, admin.sq)
        self.qemu.writeq(self.bar + 0x30, admin.cq)
        # IOCQES 16 bytes, IOSQES 64 bytes, CSS = all supported, 4 KiB pages, EN
        self.write_cc(4 << 20 | 6 << 16 | 6 << 4 | 1)
        assert self.csts() & 3 == 1, f"controller not ready, CSTS {self.csts():#x}"
        self.queues = {0: admin}

    def disable(self) -> None:
        """Controller reset: everything in flight is forgotten."""
        self.write_cc(4 << 20 | 6 << 16 | 6 << 4)
        assert self.csts() & 1 == 0
        self.queues = {}

    def shutdown(self) -> None:
        """A normal shutdown notification, of a drive without a volatile write cache."""
        self.notify_shutdown()
        assert self.shutdown_status() == 2, f"shutdown not complete, CSTS {self.csts():#x}"

    def notify_shutdown(self) -> None:
        """CC.SHN = normal."""
        self.write_cc(4 << 20 | 6 << 16 | 6 << 4 | 1 << 14 | 1)

    def shutdown_status(self) -> int:
        """CSTS.SHST: 0 none, 1 occurring, 2 complete."""
        return self.csts() >> 2 & 3

    # Queues

    def _queue_pair(self, qid: int, depth: int, cq_depth: int) -> QueuePair:
        sq, cq = self.memory.alloc(depth * 64), self.memory.alloc(cq_depth * 16)
        return QueuePair(self, qid, depth, cq_depth, sq, cq)

    @property
    def admin(self) -> QueuePair:
        return self.queues[0]

    def create_queue(
        self, qid: int = 1, depth: int = 1024, cq_depth: int | None = None
    ) -> QueuePair:
        """An I/O queue pair; depth - 1 commands can be in flight.

        cq_depth is that of the completion queue, if it is to be another one.
        """
        pair = self._queue_pair(qid, depth, cq_depth or depth)
        sq_size, cq_size = (size - 1 << 16 | qid for size in (pair.depth, pair.cq_depth))
        self.admin.run(Command(Admin.CREATE_CQ, prp1=pair.cq, cdw10=cq_size, cdw11=1)).expect()
        self.admin.run(
            Command(Admin.CREATE_SQ, prp1=pair.sq, cdw10=sq_size, cdw11=qid << 16 | 1)
        ).expect()
        self.queues[qid] = pair
        return pair

    def delete_queue(self, qid: int) -> None:
        """Deletes the submission queue, collects what it completed, deletes the other."""
        self.admin.run(Command(Admin.DELETE_SQ, cdw10=qid)).expect()
        self.queues[qid].poll()
        self.admin.run(Command(Admin.DELETE_CQ, cdw10=qid)).expect()
        del self.queues[qid]

    # Time

    def poll(self) -> bool:
        """Takes completions off all queues; whether there were any."""
        found = False
        for queue in self.queues.values():
            found |= queue.poll()
        return found

    def wait(self, *requests: Request) -> None:
        """Steps the clock from timer to timer until all the requests are done."""
        end = time.monotonic() + WALL_LIMIT_S
        while not all(request.done for request in requests):
            if self.poll():
                continue
            assert time.monotonic() < end, (
                f"{sum(not request.done for request in requests)} commands hang at virtual time"
                f" {self.qemu.clock_ns} ns"
            )
            try:
                self.qemu.step()
            except NoTimer:
                time.sleep(0.0002)  # a stock namespace completes in host time

    def step(self, count: int = 1) -> None:
        """Steps to the next timer so many times, or until there is none, and polls each time."""
        for _ in range(count):
            try:
                self.qemu.step()
            except NoTimer:
                break
            self.poll()

    def advance(self, ns: int) -> None:
        """Lets ns pass and takes the completions of that time (stamped with its end)."""
        self.qemu.step(ns)
        self.poll()

    # Admin commands

    def identify(self, cns: int, nsid: int = 0, csi: int = 0) -> bytes:
        with self.memory.buffer(PAGE) as buffer:
            self.admin.run(
                Command(Admin.IDENTIFY, nsid, prp1=buffer, cdw10=cns, cdw11=csi << 24)
            ).expect()
            return self.qemu.read(buffer, PAGE)

    def get_log(
        self,
        lid: int,
        size: int,
        *,
        nsid: int = 0xFFFFFFFF,
        offset: int = 0,
        rae: bool = False,
        specific: int = 0,
    ) -> bytes:
        """A log page; size in bytes, a multiple of 4, at most two pages."""
        with self.memory.buffer(size) as buffer:
            request = self.get_log_command(
                buffer, lid, size, nsid=nsid, offset=offset, rae=rae, specific=specific
            )
            self.admin.run(request).expect()
            return self.qemu.read(buffer, size)

    @staticmethod
    def get_log_command(
        buffer: int,
        lid: int,
        size: int,
        *,
        nsid: int = 0xFFFFFFFF,
        offset: int = 0,
        rae: bool = False,
        specific: int = 0,
    ) -> Command:
        dwords = size // 4 - 1
        return Command(
            Admin.GET_LOG,
            nsid,
            prp1=buffer,
            prp2=buffer + PAGE if size > PAGE else 0,
            cdw10=(dwords & 0xFFFF) << 16 | rae << 15 | lid,
            cdw11=specific << 16 | dwords >> 16,
            cdw12=offset & 0xFFFFFFFF,
            cdw13=offset >> 32,
        )

    def format(self, lbaf: int, nsid: int = 1) -> Request:
        """Format NVM with separate metadata and no protection information."""
        return self.admin.run(Command(Admin.FORMAT, nsid, cdw10=lbaf))
