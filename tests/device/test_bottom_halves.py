# SPDX-License-Identifier: GPL-2.0-or-later
"""Queues processed in bottom halves, with shadow doorbells offered: how guests run in real time."""

from __future__ import annotations

import random

import pytest
from drive import OpenDrive
from nvme import Command, Io, Status
from test_conventional import CONVENTIONAL
from zns import BLOCK, Action, Zs, pattern

REAL_TIME = "inline-queues=off,dbcs=on"


def test_zones(drive: OpenDrive) -> None:
    with drive(controller=REAL_TIME, pages=16) as d:
        assert d.qemu.qom_get("/machine/peripheral/nvme0", "inline-queues") is False
        for index in range(60):
            d.ns.append(d.ns.start(index % 3), pattern(index)).expect()
        for index in range(60):
            assert d.ns.read(d.ns.start(index % 3) + index // 3)[0] == pattern(index)
        d.ns.send(Action.FINISH, 0).expect()
        d.ns.send_all(Action.RESET).expect()
        d.ns.flush().expect()
        d.ns.write(d.ns.start(1) + 1, pattern(1)).expect(Status.ZONE_INVALID_WRITE)
        assert set(d.ns.states()) == {Zs.EMPTY}


def test_blocks(drive: OpenDrive) -> None:
    generator = random.Random(11)
    content: dict[int, int] = {}
    with drive(controller=REAL_TIME, **CONVENTIONAL) as d:
        for tag in range(1, 400):
            slba = generator.randrange(d.ns.size)
            if generator.randrange(8):
                d.ns.write(slba, pattern(tag)).expect()
                content[slba] = tag
            else:
                d.ns.deallocate((slba, 1)).expect()
                content.pop(slba, None)
        for slba in range(d.ns.size):
            expected = pattern(content[slba]) if slba in content else bytes(BLOCK)
            assert d.ns.read(slba)[0] == expected


@pytest.mark.parametrize("what", ["queue", "controller"])
def test_in_flight(drive: OpenDrive, what: str) -> None:
    with drive(controller=REAL_TIME, **CONVENTIONAL) as d:
        queue = d.controller.create_queue(2)
        other = d.ns.on(queue)
        transfer = other.transfer(1)
        transfer.fill(pattern(5))
        first = [queue.submit(other.io(Io.WRITE, slba, 1, transfer)) for slba in range(8)]
        d.controller.wait(first[0])
        queue.submit_all([other.io(Io.READ, slba, 1, transfer) for slba in range(8)])
        with other.deallocate_command([(0, 4)]) as command:
            queue.submit_all([command, Command(Io.FLUSH, 1), Command(Io.FLUSH, 0xFFFFFFFF)])
            if what == "queue":
                d.controller.delete_queue(2)
            else:
                d.reset_controller()
        d.controller.advance(100_000_000)
        assert d.ns.read(7)[0] == pattern(5)
        d.ns.write(0, pattern(9)).expect()
        assert d.ns.read(0)[0] == pattern(9)
        d.qemu.quit()
