# SPDX-License-Identifier: GPL-2.0-or-later
"""Each preset makes a drive that works, and comes back from a SIGKILL."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from drive import Drive, device_args
from qtest import Qemu
from test_properties import CORE, help_lines
from zns import BLOCK, Action, Namespace, Zs, blocks_of

PRESETS = re.findall(r'^    \{ "([\w-]+)",$', (CORE / "api/config.c").read_text(), re.MULTILINE)
NVM_COMMAND_SET = b"\x04\x01\x00\x00\x00"


def open_preset(qemu: Qemu) -> Drive:
    """With a namespace of the kind that the preset makes."""
    d = Drive(qemu, depth=64, zoned=False)
    if NVM_COMMAND_SET not in d.controller.identify(0x03, 1):
        d.ns = Namespace(d.ns.queue)
    return d


@pytest.mark.parametrize("preset", PRESETS)
def test_preset(qemu: str, media: Path, preset: str) -> None:
    args = device_args(media, {"preset": preset})
    assert preset in help_lines(qemu)["preset"]
    with Qemu(qemu, args) as machine:
        d = open_preset(machine)
        assert d.ns.read(100)[0] == bytes(BLOCK)
        d.ns.write(0, blocks_of(range(100))).expect()
        d.ns.flush().expect()
        assert d.ns.read(0, 100)[0] == blocks_of(range(100))
        if d.ns.zoned:
            d.ns.append(d.ns.start(1), blocks_of(range(9))).expect()
            d.ns.send(Action.RESET, 1).expect()
            assert d.ns.zone(1).state == Zs.EMPTY
        else:
            d.ns.deallocate((99, 1)).expect()
            assert d.ns.read(99)[0] == bytes(BLOCK)
        log = d.log()
        assert log["host_write_pages"] == 109 if d.ns.zoned else 100
        (nsze,) = struct.unpack_from("<Q", d.controller.identify(0x00, 1))
        assert nsze * BLOCK >= log["capacity_bytes"]
        d.qemu.kill()
    with Qemu(qemu, args) as machine:
        d = open_preset(machine)
        assert d.ns.read(0, 99)[0] == blocks_of(range(99))
        if d.ns.zoned:
            assert d.ns.zone(0).wp == 100
            assert d.ns.zone(1).wp == 0
