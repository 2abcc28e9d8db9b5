# SPDX-License-Identifier: GPL-2.0-or-later
"""Media files that rsdsim has aged: QEMU goes on from where it left them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from drive import OpenDrive
from zns import BLOCK, Action, Zs, pattern

# What the file has is asked for again, since the other tests' drive is another one.
GEOMETRY = {"channels": 2, "ways": 2, "pages": 16, "blocks": 32, "spare-blocks": 4}


def age(
    rsdsim: Path, media: Path, geometry: dict[str, str | int], *arguments: str
) -> dict[str, int]:
    """Makes the file; gives the counters at its end."""
    settings = [f"--set={name}={value}" for name, value in geometry.items()]
    command: list[Any] = [rsdsim, *settings, *arguments, "--age", media, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    counters = json.loads(done.stdout)["results"]["counters"]
    return {name: counter["after"] for name, counter in counters.items()}


def same_history(log: dict[str, int], aged: dict[str, int]) -> None:
    """What was counted is still there; memory and the time of opening are QEMU's own."""
    for name in ("host_write_pages", "prog_host", "prog_clean", "erase_clean", "wear_sum"):
        assert log[name] == aged[name], name
    assert log["prog_host"] > 0


def test_zones(drive: OpenDrive, rsdsim: Path, media: Path) -> None:
    """Zones are as full as they were written, and can be read, reset and written."""
    arguments = ("--precondition", "fill", "--requests", "60", "--size", "8K")
    aged = age(rsdsim, media, GEOMETRY, *arguments)
    with drive(**GEOMETRY) as d:
        same_history(d.log(), aged)
        states = d.ns.states()
        assert len(states) == 32
        assert set(states) == {Zs.FULL, Zs.CLOSED}
        for zone in d.ns.report():
            if zone.state == Zs.CLOSED:
                assert zone.wp is not None
                assert 0 < zone.wp < zone.capacity
        assert d.ns.read(d.ns.start(0))[0] == bytes(BLOCK)
        full = states.index(Zs.FULL)
        d.ns.send(Action.RESET, full).expect()
        d.ns.write(d.ns.start(full), pattern(1)).expect()
        assert d.ns.read(d.ns.start(full))[0] == pattern(1)


def test_page_ftl(drive: OpenDrive, rsdsim: Path, media: Path) -> None:
    """A drive in its steady state: it collects from the first write on."""
    geometry = GEOMETRY | {"ftl": "page", "over-provision": 28}
    aged = age(rsdsim, media, geometry, "--precondition", "steady")
    assert aged["erase_clean"] > 0
    with drive(**geometry) as d:
        same_history(d.log(), aged)
        assert d.ns.read(d.ns.size - 1)[0] == bytes(BLOCK)
        for n in range(300):
            d.ns.write(n * 7 % d.ns.size, pattern(n)).expect()
        assert d.ns.read(299 * 7 % d.ns.size)[0] == pattern(299)
        log = d.log()
        assert log["host_write_pages"] == aged["host_write_pages"] + 300
        assert log["prog_clean"] > aged["prog_clean"]
