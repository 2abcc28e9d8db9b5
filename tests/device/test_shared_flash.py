# SPDX-License-Identifier: GPL-2.0-or-later
"""A zoned and a conventional namespace on one drive's flash."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from drive import LOG_ID, SMALL, decode_log
from nvme import Admin, Command, Controller, Io, Request, Status
from qtest import Qemu, start_error
from test_conventional import STEP, STEP_NS
from zns import BLOCK, Action, Namespace, Zs, pattern

# 24 blocks a die, of which 16 are for the conventional namespace
SETTINGS = SMALL | {"blocks": 24, "pages": 8, "conv-blocks": 16}
ONCS_DSM = 0x04


def shared_args(media: Path, *conventional: str, **more: str | int) -> list[str]:
    settings = "".join(f",{name}={value}" for name, value in (SETTINGS | more).items())
    args = ["-device", "nvme,id=nvme0,serial=test,inline-queues=on,dbcs=off"]
    args += ["-device", f"rsd-ns,bus=nvme0,id=zones,media={media}{settings}"]
    for properties in conventional:
        args += ["-device", f"rsd-ns-conv,bus=nvme0,{properties}"]
    return args


@dataclass
class Shared:
    qemu: Qemu
    controller: Controller
    zones: Namespace
    blocks: Namespace

    def log(self) -> dict[str, int]:
        return decode_log(self.controller.get_log(LOG_ID, 4096, nsid=self.blocks.nsid))[0]


@contextmanager
def shared(qemu: str, media: Path, **more: str | int) -> Iterator[Shared]:
    with Qemu(qemu, shared_args(media, "flash=zones", **more)) as machine:
        controller = Controller(machine)
        queue = controller.create_queue()
        yield Shared(machine, controller, Namespace(queue), Namespace(queue, 2, zoned=False))


def test_both_keep_their_data(qemu: str, media: Path) -> None:
    with shared(qemu, media) as s:
        assert (s.zones.zones, s.zones.zone_size) == (8, 32)
        for index in range(40):
            s.zones.append(s.zones.start(index % 8), pattern(1000 + index)).expect()
            s.blocks.write(index * 7 % 40, pattern(2000 + index)).expect()
        check(s)
        s.zones.send(Action.RESET, 3).expect()
        s.blocks.deallocate((7, 1)).expect()
        assert s.blocks.read(7)[0] == bytes(BLOCK)
        assert s.zones.read(s.zones.start(4))[0] == pattern(1004)
        s.qemu.kill()
    with shared(qemu, media) as s:
        assert s.zones.zone(3).state == Zs.EMPTY
        assert s.zones.zone(4).wp == 5
        assert s.blocks.read(7)[0] == bytes(BLOCK)
        s.blocks.write(7, pattern(2001)).expect()
        for index in range(5):
            s.zones.append(s.zones.start(3), pattern(1003 + 8 * index)).expect()
        check(s)


def check(s: Shared) -> None:
    for index in range(40):
        zone, place = index % 8, index // 8
        assert s.zones.read(s.zones.start(zone) + place)[0] == pattern(1000 + index)
        assert s.blocks.read(index * 7 % 40)[0] == pattern(2000 + index)


def test_they_share_the_dies(qemu: str, media: Path) -> None:
    """A program of one waits for one of the other on its die."""
    with shared(qemu, media) as s:
        transfer = s.zones.transfer(4)
        transfer.fill(b"".join(pattern(n) for n in range(4)))
        append = s.zones.io(Io.ZONE_APPEND, 0, 4, transfer)
        write = s.blocks.io(Io.WRITE, 0, 4, transfer)
        alone = s.zones.queue.run(append).expect().latency_ns
        together: list[Request] = s.zones.queue.submit_all([append, write])
        s.controller.wait(*together)
        assert together[0].expect().latency_ns == alone
        assert together[1].expect().latency_ns >= 2 * alone - SETTINGS["t-cmd"] - 2 * 2_000
        log = s.log()
        assert log["prog_host"] == 12
        assert log["host_write_cmds"] == 3


def test_what_is_promised(qemu: str, media: Path) -> None:
    """The zones take deallocation as advice, for the other namespace's sake."""
    with shared(qemu, media) as s:
        (oncs,) = struct.unpack_from("<H", s.controller.identify(0x01), 520)
        assert oncs & ONCS_DSM
        s.zones.write(0, pattern(1)).expect()
        s.zones.deallocate((0, 1)).expect()
        s.zones.deallocate((s.zones.size, 1)).expect(Status.LBA_RANGE)
        assert s.zones.read(0)[0] == pattern(1)
        assert s.log()["trim_cmds"] == 0


def test_formats_are_their_own(qemu: str, media: Path) -> None:
    with shared(qemu, media) as s:
        s.zones.write(0, pattern(1)).expect()
        s.blocks.write(0, pattern(2)).expect()
        s.controller.format(1, nsid=2).expect()
        s.blocks.refresh()
        assert (s.zones.oob, s.blocks.oob) == (0, 16)
        assert s.blocks.read(0) == (bytes(BLOCK), bytes(16))
        assert s.zones.read(0)[0] == pattern(1)
        s.blocks.write(0, pattern(3), bytes(range(16))).expect()
        s.controller.format(3, nsid=1).expect()
        s.zones.refresh()
        assert (s.zones.oob, s.blocks.oob) == (128, 16)
        assert s.zones.zone(0).state == Zs.EMPTY
        s.qemu.kill()
    with shared(qemu, media) as s:
        assert (s.zones.oob, s.blocks.oob) == (128, 16)
        assert s.blocks.read(0) == (pattern(3), bytes(range(16)))


def test_zones_go_on_during_a_large_format(qemu: str, media: Path) -> None:
    """Of the other namespace: also one that is in flight when the format ends."""
    large: dict[str, str | int] = {"blocks": 516, "conv-blocks": 508, "pages": 128}
    with shared(qemu, media, **large, **{"t-fw-write": STEP_NS}) as s:
        assert 3 * STEP < s.blocks.size < 4 * STEP
        s.zones.write(0, pattern(1)).expect()
        s.blocks.write(s.blocks.size - 1, pattern(2)).expect()
        request = s.controller.admin.submit(Command(Admin.FORMAT, 2, cdw10=1))
        s.controller.advance(STEP_NS // 2)
        assert s.zones.read(0)[0] == pattern(1)
        assert not request.done
        s.controller.advance(request.submitted_ns + 4 * STEP_NS - 1000 - s.qemu.clock_ns)
        # the core is the trim's until its last step is done
        read = s.zones.queue.submit(s.zones.io(Io.READ, 0, 1, s.zones.transfer(1)))
        s.controller.wait(request)
        request.expect()
        assert not read.done
        s.controller.wait(read)
        read.expect()
        s.blocks.refresh()
        assert (s.zones.oob, s.blocks.oob) == (0, 16)
        assert s.blocks.read(s.blocks.size - 1) == (bytes(BLOCK), bytes(16))
        s.controller.format(1, nsid=0xFFFFFFFF).expect()
        log = s.log()
        assert (log["formats"], log["trim_cmds"]) == (3, 2)
        assert s.zones.zone(0).state == Zs.EMPTY


def test_flush_of_all(qemu: str, media: Path) -> None:
    with shared(qemu, media) as s:
        s.zones.queue.run(Command(Io.FLUSH, 0xFFFFFFFF)).expect()
        assert s.log()["flush_cmds"] == 2


def test_smart_counts_once(qemu: str, media: Path) -> None:
    with shared(qemu, media) as s:
        s.zones.write(0, pattern(1)).expect()
        s.blocks.write(0, pattern(1)).expect()
        s.blocks.read(0)
        smart = s.controller.get_log(0x02, 512)
        assert struct.unpack_from("<Q8xQ", smart, 64) == (1, 2)


def test_without_the_other_device(qemu: str, media: Path) -> None:
    """The conventional part is there, and nobody sees it."""
    with Qemu(qemu, shared_args(media)) as machine:
        controller = Controller(machine)
        Namespace(controller.create_queue()).write(0, pattern(1)).expect()
    with shared(qemu, media) as s:
        assert s.zones.read(0)[0] == pattern(1)
        assert s.blocks.read(0)[0] == bytes(BLOCK)


@pytest.mark.parametrize(
    ("conventional", "words"),
    [
        (["nsid=2"], ["flash", "rsd-ns"]),
        (["flash=other"], ["other", "not found"]),
        (["flash=nvme0"], ["flash", "nvme0"]),
        (["flash=zones", "flash=zones"], ["already"]),
        (["flash=zones,zoned=on"], ["rsd-ns-conv", "zoned"]),
        (["flash=zones,ms=8"], ["rsd-ns-conv", "ms"]),
    ],
)
def test_refused(qemu: str, media: Path, conventional: list[str], words: list[str]) -> None:
    message = start_error(qemu, shared_args(media, *conventional))
    for word in words:
        assert word in message, message


def test_refused_without_its_part(qemu: str, media: Path) -> None:
    args = [
        arg.replace("conv-blocks=16", "conv-blocks=0") for arg in shared_args(media, "flash=zones")
    ]
    assert "conv-blocks" in start_error(qemu, args)
