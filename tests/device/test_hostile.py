# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest that means harm can do to QEMU's process: nothing."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from drive import Drive, OpenDrive
from nvme import BAR0_ADDRESS, PAGE, Admin, Command, Controller, Io, Status
from qtest import NoTimer, Qemu
from test_namespaces import shared_args
from zns import Namespace, pattern

SGL = 1 << 6


def let_it_happen(d: Drive) -> None:
    """Steps until nothing is due for a while."""
    for _ in range(4):
        try:
            d.qemu.step()
        except NoTimer:
            return


def test_format_does_not_overtake_a_read(drive: OpenDrive) -> None:
    """The read is done in the drive, but its buffers are of the old format."""
    with drive(oob=0) as d:
        queue, admin = d.ns.queue, d.controller.admin
        read = d.ns.io(Io.READ, 0, 1, d.ns.transfer(1))
        read.mptr = d.controller.memory.alloc(PAGE)
        form = Command(Admin.FORMAT, 1, cdw10=3)
        for ring, command, cid in ((queue, read, 77), (admin, form, 78)):
            d.qemu.write(ring.sq + 64 * ring.tail, command.pack(cid))
            ring.tail = (ring.tail + 1) % ring.depth
        doorbells = d.controller.bar + 0x1000
        stride = d.controller.doorbell_stride
        d.qemu.writel_together(
            (doorbells + 2 * queue.qid * stride, queue.tail),
            (doorbells, admin.tail),
        )
        let_it_happen(d)
        status = struct.unpack_from("<H", d.qemu.read(admin.cq + 16 * admin.head, 16), 14)[0] >> 1
        assert status & 0x7FF == Status.COMMAND_SEQUENCE_ERROR


@pytest.mark.parametrize("oob", [0, 128])
def test_a_read_into_the_controllers_registers(drive: OpenDrive, oob: int) -> None:
    """A list that begins below the registers and reaches into them."""
    with drive(oob=oob, pages=64) as d:
        d.ns.write(0, pattern(1) + pattern(2)).expect()
        command = d.ns.io(Io.READ, 0, 2)
        command.flags = SGL
        command.prp1, command.prp2 = BAR0_ADDRESS - PAGE, 2 * PAGE
        command.mptr = d.controller.memory.alloc(PAGE) if oob else 0
        d.ns.queue.submit(command)
        let_it_happen(d)
        assert d.controller.csts() & 1
        assert d.ns.read(0, 2)[0] == pattern(1) + pattern(2)


@pytest.mark.parametrize("oob", [0, 128])
def test_a_read_that_rings_another_controllers_doorbell(qemu: str, media: Path, oob: int) -> None:
    """The data is the other's admin tail; what waits there formats the namespace."""
    args = shared_args(media)
    args[-1] += f",oob={oob}"
    with Qemu(qemu, args) as machine:
        one = Controller(machine, 0)
        two = Controller(machine, 1, one.memory)
        space, admin = Namespace(one.create_queue()), two.admin
        form = Command(Admin.FORMAT, 1, cdw10=0 if oob else 3)
        machine.write(admin.sq + 64 * admin.tail, form.pack(78))
        tail = (admin.tail + 1) % admin.depth
        data = tail.to_bytes(4, "little").ljust(PAGE, b"\0") + pattern(2)
        metadata = bytes(range(oob)) * 2
        space.write(0, data, metadata).expect()
        read = space.io(Io.READ, 0, 2, space.transfer(2))
        read.prp1 = two.bar + 0x1000
        read.prp2 = one.memory.alloc(PAGE)
        read.mptr = one.memory.alloc(PAGE)
        machine.write(read.mptr, b"\xee" * PAGE)
        space.queue.run(read).expect()
        assert machine.read(read.prp2, PAGE) == pattern(2)
        assert machine.read(read.mptr, PAGE) == metadata.ljust(PAGE, b"\xee")
        entry = machine.read(admin.cq + 16 * admin.head, 16)
        cid, status = struct.unpack_from("<HH", entry, 12)
        assert cid == 78, "the doorbell was rung"
        assert status >> 1 & 0x7FF == Status.COMMAND_SEQUENCE_ERROR
        admin.tail, admin.head = tail, admin.head + 1
        assert space.read(0, 2)[0] == data
        machine.quit()


def test_metadata_into_the_controllers_registers(drive: OpenDrive) -> None:
    with drive(oob=128, pages=64) as d:
        blocks = 128
        command = d.ns.io(Io.READ, 0, blocks, d.ns.transfer(blocks))
        command.mptr = BAR0_ADDRESS - PAGE
        d.ns.queue.submit(command)
        let_it_happen(d)
        assert d.controller.csts() & 1
        d.ns.write(0, pattern(3)).expect()
        assert d.ns.read(0, 1)[0] == pattern(3)


def test_fdp_events_of_all_namespaces(drive: OpenDrive) -> None:
    """Set Features 1Eh with NSID FFFFFFFFh."""
    with drive() as d:
        command = Command(Admin.SET_FEATURES, 0xFFFFFFFF, cdw10=0x1E, cdw11=1)
        d.controller.admin.run(command).expect(Status.INVALID_NAMESPACE)
