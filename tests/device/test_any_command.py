# SPDX-License-Identifier: GPL-2.0-or-later
"""Admin, I/O and vendor commands with any content: QEMU goes on, and so does the drive.

Most commands are nearly right: an opcode that exists, a namespace that exists, addresses within
the drive, and one field or two of anything. Where data comes from and goes to is memory, nothing,
or the controller's own registers. Nobody waits for a command. After each burst the controller is
reset, the namespace formatted, and then a block that is written can be read.
"""

from __future__ import annotations

import os
import random
import struct
import time
from pathlib import Path

import pytest
from drive import Drive, OpenDrive
from nvme import BAR0_ADDRESS, PAGE, UNMAPPED_ADDRESS, Admin, Command, Io, QueuePair
from qtest import NoTimer
from zns import Action, pattern

BURST = 60
COMMANDS = 1_200
MANY = 100_000  # of each kind of drive, with --long
HOUR = 3600
BUFFER_PAGES = 64
LBAS, ZONE = 96, 16  # of the drive with zones; the others have some more

POWER, OPLOG, FAULT = 0xC1, 0xC2, 0xC4
POWER_MAGIC = 0x72776F70
# What Admin and Io of nvme.py do not have
OTHER_ADMIN = [0x0D, 0x10, 0x11, 0x14, 0x15, 0x18, 0x19, 0x1A, 0x1C, 0x1D, 0x1E, 0x7C, 0x81, 0x84]
OTHER_IO = [0x04, 0x0D, 0x0E, 0x11, 0x12, 0x15, 0x18]
ADMIN = [*Admin, POWER, OPLOG, FAULT, *OTHER_ADMIN]
IO = [*Io, *Io, *OTHER_IO, Io.WRITE, Io.WRITE, Io.READ, Io.ZONE_APPEND, Io.ZONE_APPEND]

KINDS: dict[str, dict[str, str | int]] = {
    "zones": {"oob": 16},
    "zrwa": {"zrwa": 2, "zrwa_size": "16k", "write_buffer": "64k", "oob": 16},
    "page": {"ftl": "page", "blocks": 16, "spare_blocks": 8},
    "fast": {
        "ftl": "fast",
        "blocks": 16,
        "spare_blocks": 8,
        "log_blocks": 20,
        "over_provision": 60,
    },
    "buffer": {"ftl": "page", "blocks": 16, "spare_blocks": 8, "write_buffer": "64k"},
    "logged": {"oob": 16},
}


class Burst:
    """Random commands to one drive."""

    def __init__(self, drive: Drive, rng: random.Random) -> None:
        self._drive, self._random = drive, rng
        self._buffer = drive.controller.memory.alloc(BUFFER_PAGES * PAGE)
        self._list = drive.controller.memory.alloc(PAGE)

    def _number(self) -> int:
        """Small, near a power of two, or anything."""
        kind = self._random.randrange(8)
        if kind < 4:
            return self._random.randrange(10)
        if kind < 6:
            return max(0, (1 << self._random.randrange(32)) - self._random.randrange(3))
        return self._random.getrandbits(32)

    def _address(self) -> int:
        kind = self._random.randrange(16)
        page = self._buffer + self._random.randrange(BUFFER_PAGES) * PAGE
        if kind < 11:
            return page
        if kind < 13:
            return page + self._random.randrange(PAGE)
        if kind == 13:
            return BAR0_ADDRESS + self._random.randrange(0x1100)
        return self._random.choice([0, UNMAPPED_ADDRESS, self._random.getrandbits(64)])

    def _fill(self) -> None:
        """A page of the buffer: addresses, descriptors, small numbers, or noise."""
        kind = self._random.randrange(4)
        if kind == 0:
            data = struct.pack("<512Q", *(self._address() for _ in range(512)))
        elif kind == 1:
            rows = [
                struct.pack(
                    "<QIHBB",
                    self._address(),
                    self._number(),
                    0,
                    0,
                    self._random.choice(
                        [0, 0, 0x10, 0x20, 0x30, 0x40, self._random.randrange(256)]
                    ),
                )
                for _ in range(256)
            ]
            data = b"".join(rows)
        elif kind == 2:
            data = struct.pack("<1024I", *(self._number() for _ in range(1024)))
        else:
            data = self._random.randbytes(PAGE)
        page = self._buffer + self._random.randrange(BUFFER_PAGES) * PAGE
        self._drive.qemu.write(page, data)

    def _power(self, command: Command) -> None:
        """Data that has the magic word"""
        data = struct.pack("<QQII", self._number(), self._number(), 0, POWER_MAGIC)
        self._drive.qemu.write(self._buffer, data)
        command.prp1 = self._buffer

    def _right(self, queue: QueuePair) -> Command:
        """A command as a driver sends it, to an address that may not be the right one"""
        page = self._buffer + self._random.randrange(BUFFER_PAGES - 8) * PAGE
        if queue.qid == 0:
            opcode = self._random.choice(ADMIN)
            command = Command(opcode, 1, cdw10=self._random.randrange(8))
            if opcode in (Admin.GET_LOG, Admin.IDENTIFY):
                command.cdw10 = self._random.randrange(256) | 0xFF << 16
        else:
            opcode = self._random.choice(IO)
            command = Command(opcode, 1, cdw10=self._random.randrange(LBAS))
            command.cdw12 = self._random.randrange(8)
            if opcode in (Io.ZONE_APPEND, Io.ZONE_SEND, Io.ZONE_RECV):
                command.cdw10 &= ~(ZONE - 1)
            if opcode in (Io.ZONE_SEND, Io.ZONE_RECV):
                command.cdw12 = 0x3FF
                command.cdw13 = self._random.choice([*Action, 0, 0])
        command.prp1, command.prp2, command.mptr = page, page + PAGE, page + 8 * PAGE
        if command.cdw12 & 7 > 1:  # more than two pages: a list of them
            addresses = [page + PAGE * number for number in range(1, 9)]
            self._drive.qemu.write(self._list, struct.pack("<8Q", *addresses))
            command.prp2 = self._list
        return command

    def _spoil(self, command: Command) -> None:
        """One thing or more is not as a driver sends it."""
        for _ in range(self._random.choice([1, 1, 2, 4])):
            match self._random.randrange(8):
                case 0:
                    command.opcode = self._random.randrange(256)
                case 1:
                    command.flags = self._random.choice([0x40, 0x80, self._random.randrange(256)])
                case 2:
                    command.nsid = self._random.choice([0, 2, 0xFFFFFFFF, self._number()])
                case 3:
                    field = self._random.choice(["prp1", "prp2", "mptr"])
                    setattr(command, field, self._address())
                case _:
                    setattr(command, f"cdw{self._random.randrange(10, 16)}", self._number())

    def _command(self, queue: QueuePair) -> Command:
        command = self._right(queue)
        if command.opcode == POWER and self._random.random() < 0.3:
            self._power(command)
        if self._random.random() < 0.5:
            self._spoil(command)
        return command

    def run(self, commands: int) -> None:
        d = self._drive
        queues = [d.controller.admin, d.ns.queue]
        for cid in range(commands):
            if self._random.random() < 0.3:
                self._fill()
            queue = queues[self._random.random() < 0.7]
            d.qemu.write(queue.sq + 64 * queue.tail, self._command(queue).pack(cid))
            queue.tail = (queue.tail + 1) % queue.depth
            if self._random.random() < 0.6:
                d.controller.write_doorbell(2 * queue.qid, queue.tail)
            if self._random.random() < 0.5:
                self._pass()
        for queue in queues:
            d.controller.write_doorbell(2 * queue.qid, queue.tail)
        for _ in range(self._random.choice([0, 20])):
            self._pass()

    def _pass(self) -> None:
        """To the next timer, or a short time"""
        try:
            self._drive.qemu.step(self._random.choice([None, 1000, 1_000_000]))
        except NoTimer:
            return


def still_works(d: Drive, tag: int, *, zoned: bool) -> bool:
    """After a reset; false if the drive says itself that it is worn out by what was done to it."""
    d.reset_controller()
    d.controller.admin.run(Command(Admin.FORMAT, 1)).expect()
    d.reset_controller()
    at = 0
    if zoned:
        states = [zone for zone in d.ns.report() if zone.state == 1]
        if not states:
            return False
        at = states[0].start
    write = d.ns.write(at, pattern(tag))
    write.expect()
    assert d.ns.read(at, 1)[0] == pattern(tag)
    return True


def any_commands(drive: OpenDrive, directory: Path, kind: str, commands: int, seed: int) -> int:
    """How many were sent: a drive may be worn out before."""
    props = dict(KINDS[kind])
    zoned = "ftl" not in props
    if kind == "logged":
        props["op_log"] = str(directory / "log")
    with drive(**props) as d:
        rng = random.Random(f"{kind} {seed}")
        for number in range(commands // BURST):
            Burst(d, rng).run(BURST)
            if not still_works(d, number + 1, zoned=zoned):
                break
        # a burst writes more than the one block above
        assert d.log()["host_write_cmds"] > 2 * (number + 1)
    return (number + 1) * BURST


@pytest.mark.parametrize("kind", KINDS)
def test_any_commands(drive: OpenDrive, tmp_path: Path, kind: str) -> None:
    any_commands(drive, tmp_path, kind, COMMANDS, 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("kind", KINDS)
def test_many_commands(drive: OpenDrive, tmp_path: Path, kind: str, seed: int) -> None:
    any_commands(drive, tmp_path, kind, MANY // 10, seed)


@pytest.mark.long
def test_commands_for_an_hour(drive: OpenDrive, media: Path, tmp_path: Path) -> None:
    """Each kind of drive in turn, for RSD_FUZZ_S seconds, if it is set; with --sanitized, QEMU
    checks the memory that it uses.
    """
    seconds = int(os.environ.get("RSD_FUZZ_S", HOUR))
    end = time.monotonic() + seconds
    sent, seed = dict.fromkeys(KINDS, 0), 1000
    while time.monotonic() < end:
        for kind in KINDS:
            media.unlink(missing_ok=True)
            (tmp_path / "log").unlink(missing_ok=True)
            sent[kind] += any_commands(drive, tmp_path, kind, COMMANDS, seed)
        seed += 1
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sent.items())
    print(f"any commands, {seconds} s: {sum(sent.values()):,} ({kinds}), nothing found")
