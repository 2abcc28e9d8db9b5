# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands beyond command-memory: they wait in their order, with their data in the guest."""

from __future__ import annotations

from drive import Drive, OpenDrive
from nvme import Admin, Command, Io, Request, Status
from zns import Action, Zs, blocks_of, pattern


def submit(d: Drive, opcode: Io, lba: int, data: bytes) -> Request:
    blocks = len(data) // 4096
    transfer = d.ns.transfer(blocks)
    transfer.fill(data)
    return d.ns.queue.submit(d.ns.io(opcode, lba, blocks, transfer))


def finish(d: Drive, requests: list[Request]) -> None:
    for request in requests:
        d.controller.wait(request)


def test_memory_of_the_host_is_bounded(drive: OpenDrive) -> None:
    """50 writes of 512 KiB, of which one fits: what they take, and that all is written."""
    with drive(ftl="page", blocks=96, pages=32, command_memory="1M") as d:
        before = d.log()["ram_bytes"]
        assert d.ns.size > 50 * 128
        requests = [submit(d, Io.WRITE, 128 * i, blocks_of(range(i, i + 128))) for i in range(50)]
        assert sum(request.done for request in requests) < 40
        assert d.log()["ram_bytes"] - before < 3 << 20
        finish(d, requests)
        for request in requests:
            request.expect()
        for i in range(50):
            assert d.ns.read(128 * i, 128)[0] == blocks_of(range(i, i + 128))


def test_zones_are_written_in_order(drive: OpenDrive) -> None:
    with drive(command_memory="8K") as d:
        data = blocks_of(range(16))
        requests = [submit(d, Io.WRITE, block, data[block * 4096 :][:4096]) for block in range(16)]
        requests += [submit(d, Io.ZONE_APPEND, d.ns.start(1), pattern(i)) for i in range(8)]
        assert not any(request.done for request in requests)
        d.controller.admin.run(Command(Admin.FORMAT, 1)).expect(Status.COMMAND_SEQUENCE_ERROR)
        finish(d, requests)
        for request in requests:
            request.expect()
        assert [request.result - d.ns.start(1) for request in requests[16:]] == list(range(8))
        assert d.ns.read(0, 16)[0] == data
        for i in range(8):
            assert d.ns.read(d.ns.start(1) + i)[0] == pattern(i)
        d.controller.admin.run(Command(Admin.FORMAT, 1)).expect()


def test_a_reset_while_writes_wait(drive: OpenDrive) -> None:
    """What waits is not at the zone's start any more."""
    with drive(command_memory="8K") as d:
        other = d.ns.start(1)
        requests = [submit(d, Io.WRITE, other + i, pattern(i)) for i in range(3)]
        late = [submit(d, Io.WRITE, i, pattern(10 + i)) for i in range(3)]
        d.ns.send(Action.RESET, 0).expect()
        finish(d, requests + late)
        for request in requests:
            request.expect()
        for request in late:
            request.expect(Status.ZONE_INVALID_WRITE)
        assert (d.ns.zone(0).state, d.ns.zone(0).wp) == (Zs.EMPTY, 0)
        d.ns.write(0, pattern(20)).expect()
        assert d.ns.read(0)[0] == pattern(20)


def test_a_queue_is_deleted_while_writes_wait(drive: OpenDrive) -> None:
    with drive(command_memory="8K") as d:
        for i in range(6):
            submit(d, Io.WRITE, i, pattern(i))
        submit(d, Io.READ, d.ns.start(2), pattern(0))
        d.controller.delete_queue(1)
        d.ns.queue = d.controller.create_queue()
        d.controller.advance(100_000_000)
        wp = d.ns.zone(0).wp
        assert wp in (1, 2), "what the drive had begun"
        d.ns.write(wp, pattern(30)).expect()
        assert d.ns.read(wp)[0] == pattern(30)
        assert d.ns.read(0)[0] == pattern(0)
