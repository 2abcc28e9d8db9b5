# SPDX-License-Identifier: GPL-2.0-or-later
"""The device under test: its command line and its vendor log page."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from nvme import Controller
from qtest import Qemu
from zns import Action, Namespace, Zs, blocks_of, pattern

LOG_ID = 0xCA
LOG_MAGIC = 0x474F4C2D44535252
NAMESPACE_PATH = "/machine/peripheral/ns0"

# The order of the counters in the log page, of those of its first version written down here a
# second time on purpose: a field that moves breaks every reader of the page, rsdctl among them.
FIRST_COUNTERS = [
    "host_read_cmds",
    "host_write_cmds",
    "host_read_pages",
    "host_write_pages",
    "flush_cmds",
    "zone_resets",
    "zone_finishes",
    "formats",
    "read_host",
    "read_clean",
    "read_merge",
    "read_wear",
    "read_map",
    "read_pad",
    "prog_host",
    "prog_clean",
    "prog_merge",
    "prog_wear",
    "prog_map",
    "prog_pad",
    "erase_host",
    "erase_clean",
    "erase_merge",
    "erase_wear",
    "erase_map",
    "erase_pad",
    "erase_on_demand",
    "erase_idle",
    "unwritten_reads",
    "media_errors",
    "queue_wait_ns",
    "queue_wait_max_ns",
    "bus_busy_ns",
    "die_busy_ns",
    "map_bytes",
    "ram_bytes",
    "zones",
    "capacity_bytes",
    "page_bytes",
    "oob_bytes",
    "blocks_total",
    "blocks_bad",
    "blocks_used",
    "blocks_dirty",
    "blocks_erased",
    "spares_total",
    "spares_left",
    "wear_min",
    "wear_max",
    "wear_sum",
    "wear_moves",
    "endurance",
]
HEADER = Path(__file__).resolve().parents[2] / "hw" / "rsd-nvme" / "core" / "api" / "rsd-log.h"
COUNTERS = re.findall(r"^    RSD_COUNTER\((\w+),", HEADER.read_text(), re.MULTILINE)
assert COUNTERS[: len(FIRST_COUNTERS)] == FIRST_COUNTERS, "new counters come at the end"

# A small drive whose every operation has a distinct duration: 4 dies, 6 zones of 16 pages.
SMALL: dict[str, str | int] = {
    "channels": 2,
    "ways": 2,
    "blocks": 6,
    "pages": 4,
    "spare-blocks": 2,
    "t-cmd": 100,
    "t-xfer": 2_000,
    "t-read": 30_000,
    "t-prog": 400_000,
    "t-erase": 5_000_000,
    "idle-erase": 0,
    "wl-threshold": 0,
}


def device_args(
    media: Path | str, props: dict[str, str | int] | None = None, controller: str = ""
) -> list[str]:
    """-device arguments for a drive on media; controller: more properties of the controller."""
    drive = "".join(f",{name}={value}" for name, value in (props or {}).items())
    return [
        "-device",
        "nvme,id=nvme0,serial=test,inline-queues=on,dbcs=off" + (controller and "," + controller),
        "-device",
        f"rsd-ns,bus=nvme0,id=ns0,media={media}{drive}",
    ]


class Drive:
    """A started QEMU with an enabled controller, one I/O queue and the namespace."""

    def __init__(self, qemu: Qemu, depth: int = 1024, *, zoned: bool = True) -> None:
        self.qemu = qemu
        self._depth = depth
        self._zoned = zoned
        self.attach()

    def attach(self) -> None:
        """Sets the controller up, at the start or after a reset of the machine."""
        self.controller = Controller(self.qemu)
        self.ns = Namespace(self.controller.create_queue(depth=self._depth), zoned=self._zoned)

    def reset_controller(self, pause_ns: int = 0) -> None:
        """CC.EN to 0, pause_ns, CC.EN to 1, and an I/O queue as before."""
        self.controller.disable()
        if pause_ns:
            self.controller.advance(pause_ns)
        self.controller.enable()
        self.ns = Namespace(self.controller.create_queue(depth=self._depth), zoned=self._zoned)

    def log(self) -> dict[str, int]:
        """The counters of the vendor log page."""
        return decode_log(self.controller.get_log(LOG_ID, 4096, nsid=1))[0]


# The fixture "drive": opens a drive on the test's media file, see conftest.py.
OpenDrive = Callable[..., AbstractContextManager[Drive]]


def decode_log(page: bytes) -> tuple[dict[str, int], int, tuple[int, ...]]:
    """Counters, erases a histogram bucket, histogram."""
    magic, version, count, bucket = struct.unpack_from("<QHHI", page)
    assert (magic, version) == (LOG_MAGIC, 1)
    assert count == len(COUNTERS)
    values = struct.unpack_from(f"<{count}Q", page, 64)
    assert not any(page[64 + 8 * count : 64 + 8 * 160]), "unused counters are zero"
    histogram = struct.unpack_from("<64Q", page, 64 + 8 * 160)
    return dict(zip(COUNTERS, values, strict=True)), bucket, histogram


@contextmanager
def open_drive(
    binary: str,
    media: Path,
    props: dict[str, str | int] | None = None,
    *,
    controller: str = "",
    depth: int = 1024,
) -> Iterator[Drive]:
    """Starts QEMU on a media file; QEMU is killed at the end of the block.

    props override those of SMALL.
    """
    settings = SMALL | (props or {})
    with Qemu(binary, device_args(media, settings, controller)) as qemu:
        yield Drive(qemu, depth, zoned=settings.get("ftl", "rsd") == "rsd")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reach(d: Drive, state: Zs, zone: int) -> None:
    """Brings an empty zone into a state.  Implicitly open and closed zones hold one block."""
    start = d.ns.start(zone)
    if state in (Zs.IMPLICITLY_OPEN, Zs.CLOSED):
        d.ns.write(start, pattern(1)).expect()
    if state == Zs.CLOSED:
        d.ns.send(Action.CLOSE, zone).expect()
    if state == Zs.EXPLICITLY_OPEN:
        d.ns.send(Action.OPEN, zone).expect()
    if state == Zs.FULL:
        d.ns.write(start, blocks_of(range(d.ns.zone(zone).capacity))).expect()
    if state == Zs.READ_ONLY:
        d.ns.write(start, pattern(1)).expect()
        d.qemu.qom_set(NAMESPACE_PATH, "zone-read-only", zone)
    if state == Zs.OFFLINE:
        d.qemu.qom_set(NAMESPACE_PATH, "zone-offline", zone)
    assert d.ns.zone(zone).state == state


def reach_all(d: Drive) -> None:
    """Zone n in the n-th state of the enumeration."""
    for index, state in enumerate(Zs):
        reach(d, state, index)
