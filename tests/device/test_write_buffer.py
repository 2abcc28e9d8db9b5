# SPDX-License-Identifier: GPL-2.0-or-later
"""The volatile write cache: what is promised, flush, FUA, and what a SIGKILL leaves."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from drive import SMALL, Drive, OpenDrive
from nvme import Admin, Command, Io, Request, Status
from zns import BLOCK, Action, Zs, blocks_of, pattern

# Flash pages of 16 KiB behind blocks of 4 KiB: a zone is 4 dies of 4 pages of 4 blocks.
BUFFERED: dict[str, Any] = {"page_size": 16384, "write_buffer": 1 << 20, "ack": "buffer"}
VOLATILE = BUFFERED | {"plp": "off"}
UNIT = 4
FUA = 1 << 30
WRITE_CACHE = 0x06
PROGRAM_NS = UNIT * int(SMALL["t-xfer"]) + int(SMALL["t-cmd"]) + int(SMALL["t-prog"])


def write_cache_offered(d: Drive) -> bool:
    return bool(d.controller.identify(0x01)[525] & 1)


def put(d: Drive, slba: int, blocks: int, flags: int = 0) -> Request:
    """A write of blocks patterned by their place."""
    transfer = d.ns.transfer(blocks)
    transfer.fill(blocks_of(range(slba, slba + blocks)))
    command = d.ns.io(Io.WRITE, slba, blocks, transfer)
    command.cdw12 |= flags
    return d.ns.queue.run(command).expect()


@pytest.mark.parametrize(
    ("props", "offered"),
    [
        ({}, False),
        (BUFFERED, False),
        (VOLATILE, True),
        (VOLATILE | {"ack": "program"}, False),
    ],
    ids=["none", "protected", "volatile", "programmed"],
)
def test_write_cache_is_offered_if_it_is_volatile(
    drive: OpenDrive, props: dict[str, Any], offered: bool
) -> None:
    with drive(**props) as d:
        assert write_cache_offered(d) is offered


@pytest.mark.parametrize("props", [BUFFERED, VOLATILE], ids=["protected", "volatile"])
def test_blocks_are_4_kib(drive: OpenDrive, props: dict[str, Any]) -> None:
    with drive(**props) as d:
        (nsze,) = struct.unpack_from("<Q", d.controller.identify(0x00, 1))
        assert d.ns.zone(0).capacity == 4 * 4 * UNIT
        assert nsze == 6 * d.ns.zone_size
        assert d.log()["capacity_bytes"] == 6 * 64 * BLOCK
        put(d, 0, 3)
        assert d.ns.read(1)[0] == pattern(1)
        put(d, 3, 10)
        assert d.ns.read(0, 13)[0] == blocks_of(range(13))


def test_write_is_done_when_buffered(drive: OpenDrive) -> None:
    with drive(**VOLATILE) as d:
        assert put(d, 0, UNIT).latency_ns == 0
        assert d.ns.flush().expect().latency_ns == PROGRAM_NS
        assert d.ns.flush().expect().latency_ns == 0
        assert d.log()["flush_cmds"] == 2


def test_flush_of_a_protected_buffer(drive: OpenDrive) -> None:
    with drive(**BUFFERED) as d:
        assert put(d, 0, UNIT).latency_ns == 0
        assert d.ns.flush().expect().latency_ns == 0


def test_force_unit_access(drive: OpenDrive) -> None:
    with drive(**VOLATILE) as d:
        assert put(d, 0, UNIT, FUA).latency_ns == PROGRAM_NS
        assert put(d, UNIT, UNIT).latency_ns == 0


def test_write_cache_off(drive: OpenDrive) -> None:
    """Set Features: from then on a write waits as with FUA, until it is on again."""
    with drive(**VOLATILE) as d:
        for on, latency in ((0, PROGRAM_NS), (1, 0)):
            d.controller.admin.run(
                Command(Admin.SET_FEATURES, cdw10=WRITE_CACHE, cdw11=on)
            ).expect()
            assert put(d, 0 if not on else UNIT, UNIT).latency_ns == latency


@pytest.mark.parametrize("waits", [True, False], ids=["shutdown", "and-reset"])
def test_shutdown_flushes(drive: OpenDrive, waits: bool) -> None:
    """CSTS.SHST is complete when all is programmed; a reset ends the wait, not the flush."""
    with drive(**VOLATILE) as d:
        put(d, 0, UNIT + 1)
        assert d.log()["prog_host"] == 0
        d.controller.notify_shutdown()
        assert d.controller.shutdown_status() == 1
        d.controller.advance(PROGRAM_NS - 1)
        assert d.controller.shutdown_status() == 1
        if waits:
            d.controller.advance(1)
            assert d.controller.shutdown_status() == 2
        else:
            d.reset_controller()
            assert d.controller.shutdown_status() == 0
            d.controller.advance(PROGRAM_NS)
            assert d.controller.shutdown_status() == 0
        d.qemu.kill()
    with drive(**VOLATILE) as d:
        assert d.ns.zone(0).wp == UNIT + 1
        assert d.ns.read(0, UNIT + 1)[0] == blocks_of(range(UNIT + 1))


def test_nothing_to_flush(drive: OpenDrive) -> None:
    """A cache that is not volatile: shutdown does not wait, and the host has no say."""
    with drive(**BUFFERED) as d:
        put(d, 0, UNIT)
        for on in range(2):
            command = Command(Admin.SET_FEATURES, cdw10=WRITE_CACHE, cdw11=on)
            d.controller.admin.run(command).expect(Status.INVALID_FIELD)
        get = Command(Admin.GET_FEATURES, cdw10=WRITE_CACHE)
        d.controller.admin.run(get).expect(Status.INVALID_FIELD)
        d.controller.shutdown()


def test_get_features_says_if_it_is_on(drive: OpenDrive) -> None:
    with drive(**VOLATILE) as d:
        for on in (0, 1):
            command = Command(Admin.SET_FEATURES, cdw10=WRITE_CACHE, cdw11=on)
            d.controller.admin.run(command).expect()
            get = Command(Admin.GET_FEATURES, cdw10=WRITE_CACHE)
            assert d.controller.admin.run(get).expect().result == on


def test_write_cache_off_flushes(drive: OpenDrive) -> None:
    """Set Features is done when what was in the cache is safe; so is a reset while it waits."""
    off = Command(Admin.SET_FEATURES, cdw10=WRITE_CACHE, cdw11=0)
    on = Command(Admin.SET_FEATURES, cdw10=WRITE_CACHE, cdw11=1)
    with drive(**VOLATILE) as d:
        put(d, 0, UNIT)
        assert d.controller.admin.run(off).expect().latency_ns == PROGRAM_NS
        assert d.controller.admin.run(off).expect().latency_ns == 0
        d.controller.admin.run(on).expect()
        put(d, UNIT, UNIT)
        assert not d.controller.admin.submit(off).done
        d.reset_controller()
        assert put(d, 2 * UNIT, UNIT).latency_ns > 0, "it is off"
        assert d.ns.read(0, 3 * UNIT)[0] == blocks_of(range(3 * UNIT))


def test_two_flushes_and_a_reset(drive: OpenDrive) -> None:
    """Flushes that wait when their queue or controller goes."""
    with drive(**VOLATILE) as d:
        put(d, 0, UNIT)
        for nsid in (1, 0xFFFFFFFF):
            assert not d.ns.queue.submit(Command(Io.FLUSH, nsid)).done
        d.reset_controller()
        d.controller.advance(10_000_000)
        assert d.ns.read(0, UNIT)[0] == blocks_of(range(UNIT))
        put(d, UNIT, UNIT)
        d.ns.queue.submit(Command(Io.FLUSH, 0xFFFFFFFF))
        d.controller.delete_queue(1)
        d.qemu.quit()


@pytest.mark.parametrize("ack", ["buffer", "program"])
def test_reset_refuses_writes_that_wait(drive: OpenDrive, ack: str) -> None:
    """Their data is neither in the buffer nor programmed: they are not told to be done."""
    with drive(**BUFFERED | {"write_buffer": 4 * UNIT * BLOCK, "ack": ack}) as d:
        size = d.ns.zone(0).capacity
        transfer = d.ns.transfer(size)
        transfer.fill(blocks_of(range(size)))
        write = d.ns.queue.submit(d.ns.io(Io.WRITE, 0, size, transfer))
        assert not write.done
        reset = d.ns.queue.submit(d.ns.send_command(Action.RESET, 0))
        d.controller.wait(write, reset)
        write.expect(Status.ZONE_INVALID_WRITE)
        reset.expect()
        assert d.ns.zone(0).state == Zs.EMPTY
        assert d.ns.read(0, size)[0] == bytes(size * BLOCK)
        put(d, 0, 3)
        assert d.ns.read(0, 3)[0] == blocks_of(range(3))


@pytest.mark.parametrize("blocks", [1, 3, 4, 6, 13])
def test_flushed_blocks_survive(drive: OpenDrive, blocks: int) -> None:
    with drive(**VOLATILE) as d:
        put(d, 0, blocks)
        d.ns.flush().expect()
        d.qemu.kill()
    with drive(**VOLATILE) as d:
        assert d.ns.zone(0).wp == blocks
        assert d.ns.read(0, blocks)[0] == blocks_of(range(blocks))
        put(d, blocks, 5)
        assert d.ns.read(0, blocks + 5)[0] == blocks_of(range(blocks + 5))


@pytest.mark.parametrize("blocks", [1, 4, 13])
def test_protected_blocks_survive(drive: OpenDrive, blocks: int) -> None:
    with drive(**BUFFERED) as d:
        put(d, 0, blocks)
        d.qemu.kill()
    with drive(**BUFFERED) as d:
        assert d.ns.zone(0).wp == blocks
        assert d.ns.read(0, blocks)[0] == blocks_of(range(blocks))


def test_volatile_blocks_may_be_lost(drive: OpenDrive) -> None:
    """And the zone then ends before them."""
    with drive(**VOLATILE) as d:
        put(d, 0, UNIT)
        d.ns.flush().expect()
        put(d, UNIT, 2 * UNIT)
        d.qemu.kill()
    with drive(**VOLATILE) as d:
        zone = d.ns.zone(0)
        assert zone.state == Zs.CLOSED
        assert zone.wp == UNIT, "the drive kept what was not programmed"
        put(d, UNIT, UNIT)
        assert d.ns.read(0, 2 * UNIT)[0] == blocks_of(range(2 * UNIT))
