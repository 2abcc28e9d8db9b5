# SPDX-License-Identifier: GPL-2.0-or-later
"""A drive whose zones are on one controller and whose conventional blocks on another."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from drive import SMALL
from nvme import Command, Controller, Io, Request, Status
from qtest import Qemu
from test_power import CFS, CUT, MAGIC, NS_ATTACHMENT, POWER, REWIND
from zns import BLOCK, Namespace, Zs, blocks_of, pattern

SETTINGS = SMALL | {"blocks": 24, "pages": 8, "conv-blocks": 16}


@contextmanager
def two(qemu: str, media: Path, *, log: str = "") -> Iterator[list[Controller]]:
    settings = "".join(f",{name}={value}" for name, value in SETTINGS.items())
    args = []
    for index, namespace in enumerate(
        (f"rsd-ns,id=zones,media={media}{settings}{log}", "rsd-ns-conv,flash=zones")
    ):
        args += ["-device", f"nvme,id=nvme{index},serial=c{index},inline-queues=on,dbcs=off"]
        args += ["-device", f"{namespace},bus=nvme{index}"]
    with Qemu(qemu, args) as machine:
        first = Controller(machine)
        yield [first, Controller(machine, 1, first.memory)]


def namespaces(controllers: list[Controller]) -> tuple[Namespace, Namespace]:
    zones, blocks = (controller.create_queue() for controller in controllers)
    return Namespace(zones), Namespace(blocks, zoned=False)


def power(controller: Controller, what: int) -> Request:
    """Cut, or rewind to operation 0; what was in flight is absent."""
    data = struct.pack("<QQII", 0, 0, 1, MAGIC) + b"a" * 64
    with controller.memory.buffer(4096, data.ljust(4096, b"\0")) as at:
        return controller.admin.run(Command(POWER, nsid=1, prp1=at, cdw10=what))


def submit(namespace: Namespace, opcode: Io, lba: int) -> Request:
    transfer = namespace.transfer(2)
    transfer.fill(blocks_of([7, 8]))
    return namespace.queue.submit(namespace.io(opcode, lba, 2, transfer))


@pytest.mark.parametrize("cut_by", [0, 1])
@pytest.mark.parametrize("first", [0, 1])
def test_power_cut(qemu: str, media: Path, cut_by: int, first: int) -> None:
    """Both are dead. The drive's power comes back with the first reset, each one with its own.

    A controller that was not reset posts nothing of what was in flight, however long one waits:
    its host ends these requests itself, when it resets the controller.
    """
    with two(qemu, media) as controllers:
        one, other = controllers[first], controllers[1 - first]
        for cut in range(2):
            zones, blocks = namespaces(controllers)
            written = zones.zone(0).wp or 0
            data = blocks_of(range(cut, cut + 4))
            zones.write(written, data).expect()
            blocks.write(0, data).expect()
            waiting = [
                submit(zones, Io.WRITE, written + 4),
                submit(blocks, Io.WRITE, 0),
                submit(zones, Io.READ, written),
                submit(blocks, Io.READ, 2),
            ]
            power(controllers[cut_by], CUT).expect()
            assert all(controller.csts() & CFS for controller in controllers)
            one.advance(100_000_000)

            one.disable()
            one.enable()
            assert not one.csts() & CFS
            assert other.csts() & CFS
            seen = Namespace(one.create_queue(), zoned=first == 0)
            assert seen.read(0 if first else written, 4)[0] == data
            seen.write(9 if first else written + 4, pattern(5)).expect()
            one.advance(100_000_000)
            assert not other.queues[1].poll()
            assert not any(request.done for request in waiting)

            other.disable()
            one.advance(100_000_000)
            other.enable()
            assert not any(controller.csts() & CFS for controller in controllers)
            for controller in controllers:
                if 1 in controller.queues:
                    controller.delete_queue(1)
            zones, blocks = namespaces(controllers)
            assert zones.zone(0).wp == written + 4 + (first == 0)
            assert zones.read(written, 4)[0] == data
            assert blocks.read(0, 4)[0] == data
            for controller in controllers:
                controller.delete_queue(1)


def test_a_rewind_needs_both_detached(qemu: str, media: Path, tmp_path: Path) -> None:
    with two(qemu, media, log=f",op-log={tmp_path / 'log'}") as controllers:
        zones, blocks = namespaces(controllers)
        zones.write(0, pattern(1)).expect()
        blocks.write(0, pattern(2)).expect()
        for controller in controllers:
            power(controllers[0], REWIND).expect(Status.COMMAND_SEQUENCE_ERROR)
            with controller.memory.buffer(4096, struct.pack("<HH", 1, 0).ljust(4096, b"\0")) as at:
                command = Command(NS_ATTACHMENT, nsid=1, prp1=at, cdw10=1)
                controller.admin.run(command).expect()
        power(controllers[0], REWIND).expect()
        for controller in controllers:
            controller.disable()
            controller.enable()
        zones, blocks = namespaces(controllers)
        assert zones.zone(0).state == Zs.EMPTY
        assert blocks.read(0)[0] == bytes(BLOCK)
