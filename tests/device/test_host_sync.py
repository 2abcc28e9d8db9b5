# SPDX-License-Identifier: GPL-2.0-or-later
"""host-sync: what is on the host's disk.

The end of QEMU by SIGKILL leaves what a power cut of the host's machine would leave at least: the
drive of the last sync. tests/unit/test_host_sync.c cuts the power of a host.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drive import Drive, OpenDrive, device_args, digest
from nvme import Admin, Command, Io
from qtest import start_error
from zns import blocks_of, pattern

FUA = 1 << 30
WRITE_CACHE = 0x06
ON: dict[str, Any] = {"host_sync": "on"}
KINDS = pytest.mark.parametrize(
    "props", [{}, {"ftl": "page", "blocks": 12, "spare_blocks": 4, "pages": 8}], ids=["rsd", "page"]
)


def side_file(media: Path) -> Path:
    return media.with_name(media.name + ".sync")


def put(d: Drive, slba: int, flags: int = 0) -> None:
    """A write of one block patterned by its place."""
    transfer = d.ns.transfer(1)
    transfer.fill(pattern(slba))
    command = d.ns.io(Io.WRITE, slba, 1, transfer)
    command.cdw12 |= flags
    d.ns.queue.run(command).expect()


def expect_after_kill(drive: OpenDrive, props: dict[str, Any], blocks: int) -> None:
    """So many blocks are there, and none behind them."""
    with drive(**props) as d:
        assert d.ns.read(0, blocks + 1)[0] == blocks_of(range(blocks)) + bytes(4096)


@KINDS
@pytest.mark.parametrize("how", ["flush", "fua", "write-cache-off", "shutdown", "nothing"])
def test_what_is_on_the_disk(drive: OpenDrive, props: dict[str, Any], how: str) -> None:
    """A sync has all that came before it; what comes behind it is lost."""
    with drive(**props, **ON) as d:
        assert d.controller.identify(0x01)[525] & 1, "hosts would not flush"
        put(d, 0)
        if how == "write-cache-off":
            off = Command(Admin.SET_FEATURES, cdw10=WRITE_CACHE, cdw11=0)
            d.controller.admin.run(off).expect()
            put(d, 1)
            d.qemu.kill()
        else:
            put(d, 1, FUA if how == "fua" else 0)
            if how == "flush":
                assert d.ns.flush().expect().latency_ns == 0
            if how == "shutdown":
                d.controller.notify_shutdown()
                d.controller.step()
                assert d.controller.shutdown_status() == 2
            else:
                put(d, 2)
            d.qemu.kill()
    expect_after_kill(drive, props, 0 if how == "nothing" else 2)


@KINDS
def test_a_format_is_on_the_disk(drive: OpenDrive, props: dict[str, Any]) -> None:
    with drive(**props, **ON) as d:
        put(d, 0)
        d.ns.flush().expect()
        d.controller.format(0).expect()
        d.qemu.kill()
    expect_after_kill(drive, props, 0)


def test_an_end_in_order(drive: OpenDrive, media: Path) -> None:
    """Nothing is lost, and no second file is left."""
    with drive(**ON) as d:
        assert side_file(media).exists()
        put(d, 0)
        d.qemu.quit()
    assert not side_file(media).exists()
    expect_after_kill(drive, {}, 1)


def test_a_second_file_of_another_time(qemu: str, drive: OpenDrive, media: Path) -> None:
    """QEMU does not start, says why, and leaves both files as they are."""
    for _ in range(2):
        with drive(**ON) as d:
            d.ns.flush().expect()
            put(d, 0)
            d.ns.flush().expect()
            d.controller.format(0).expect()
            d.qemu.kill()
    second = side_file(media)
    kept = second.read_bytes()
    with drive(**ON) as d:
        put(d, 0)
        d.qemu.quit()
    second.write_bytes(kept)
    before = digest(media)
    error = start_error(qemu, device_args(media))
    assert "drive.rsd.sync does not belong to the" in error
    assert "remove it" in error
    assert digest(media) == before
    assert second.read_bytes() == kept


def test_not_with_a_log(qemu: str, media: Path) -> None:
    props = {"host-sync": "on", "op-log": media.with_name("drive.log")}
    error = start_error(qemu, device_args(media, props))
    assert "'host-sync' does not bring 'op-log' to the host's disk" in error
    assert not media.exists()
