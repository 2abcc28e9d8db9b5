# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of the device alone: qtest moves the clock, no guest runs.

They use the NVMe host of tests/device, so that what is measured here and what is tested
there go through the same code.
"""

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rsd.bench.base import REPOSITORY, Context, Row, near

if TYPE_CHECKING:
    from drive import Drive
    from nvme import Request

# Preset risa, ns
T_CMD, T_XFER, T_READ, T_PROG, T_ERASE = 2_500, 30_833, 60_000, 444_278, 3_500_000
PAGE = 4096

RISA_READ_IOPS, RISA_WRITE_IOPS = 240_000, 67_000
RISA_CHANNELS, RISA_WAYS = 8, 4

WRITE, READ = 0x01, 0x02


@contextlib.contextmanager
def device(context: Context, **props: str | int) -> Iterator["Drive"]:
    """A fresh drive under qtest, with exactly these properties."""
    path = str(REPOSITORY / "tests" / "device")
    if path not in sys.path:
        sys.path.append(path)
    from drive import Drive, device_args
    from qtest import Qemu

    names = {name.replace("_", "-"): value for name, value in props.items()}
    with tempfile.TemporaryDirectory(prefix="rsd-bench-") as directory:
        arguments = device_args(Path(directory) / "media", names)
        with Qemu(str(context.built.qemu), arguments) as qemu:
            yield Drive(qemu, zoned=props.get("ftl", "rsd") == "rsd")


def latency(context: Context) -> list[Row]:
    """One operation at queue depth 1, to the nanosecond."""
    from_timing = {
        "read": T_CMD + T_READ + T_XFER,
        "program": T_CMD + T_XFER + T_PROG,
        "append": T_CMD + T_XFER + T_PROG,
        "reset=mark": 0,
        "first program on an unerased block": T_CMD + T_ERASE + T_CMD + T_XFER + T_PROG,
    }
    # No spare block: after a reset, the first program has to erase its own.
    one_die = {"channels": 1, "ways": 1, "blocks": 2, "spare_blocks": 0, "idle_erase": 0}
    measured = {}
    with device(context, preset="risa", **one_die) as d:
        page = b"\x5a" * PAGE
        measured["program"] = d.ns.write(0, page).expect().latency_ns
        measured["read"] = d.ns.get(0)[0].expect().latency_ns
        measured["append"] = d.ns.append(0, page).expect().latency_ns
        from zns import Action

        d.ns.write(d.ns.start(1), page).expect()
        measured["reset=mark"] = d.ns.send(Action.RESET, 0).expect().latency_ns
        measured["first program on an unerased block"] = d.ns.write(0, page).expect().latency_ns
    with device(context, preset="risa", reset="erase", **one_die) as d:
        d.ns.write(0, page).expect()
        measured["reset=erase"] = d.ns.send(Action.RESET, 0).expect().latency_ns
    from_timing["reset=erase"] = T_CMD + T_ERASE
    return [
        Row(
            f"latency, {name}",
            f"{must:,} ns",
            f"{measured[name]:,} ns",
            measured[name],
            "ns",
            "virtual",
            measured[name] == must,
        )
        for name, must in from_timing.items()
    ]


@dataclass(frozen=True)
class _Point:
    channels: int
    ways: int
    kind: str
    expected: float
    measured: float

    @property
    def error(self) -> float:
        return self.measured / self.expected - 1


def bandwidth(context: Context) -> list[Row]:
    """The whole sweep; a row for the worst point of reads and of programs."""
    points = []
    with context.progress.step("bandwidth, 1 to 16 channels, 1 to 8 ways") as step:
        for channels in range(1, 17):
            for ways in range(1, 9):
                step.detail(f"{channels} channels, {ways} ways")
                points += _sweep_point(context, channels, ways)
    rows = []
    for kind in ("program", "read"):
        worst = max((p for p in points if p.kind == kind), key=lambda p: abs(p.error))
        rows.append(
            Row(
                f"sequential {kind} bandwidth, worst of 128 geometries",
                "within 1% of the closed form",
                f"{100 * worst.error:+.3f}% ({worst.channels} channels, {worst.ways} ways: "
                f"{worst.measured / 1e6:,.1f} MB/s, not {worst.expected / 1e6:,.1f})",
                100 * worst.error,
                "%",
                "virtual",
                abs(worst.error) <= 0.01,
            )
        )
    return rows


def _sweep_point(context: Context, channels: int, ways: int) -> list[_Point]:
    rounds = 40
    slot = T_CMD + T_XFER
    found = []
    geometry = {"channels": channels, "ways": ways, "blocks": 1, "pages": rounds}
    with device(context, preset="risa", **geometry) as d:
        for kind, opcode, array in (("program", WRITE, T_PROG), ("read", READ, T_READ)):
            expected = channels * PAGE * min(1 / slot, ways / (slot + array)) * 1e9
            done = stream(d, opcode, rounds * ways, 4 * ways, channels)
            # The first and last pages of each die are not saturated.
            first, last = 8 * ways - 1, (rounds - 8) * ways - 1
            pages = (last - first) * channels
            measured = pages * PAGE / (done[last] - done[first]) * 1e9
            found.append(_Point(channels, ways, kind, expected, measured))
    return found


def stream(d: "Drive", opcode: int, commands: int, depth: int, pages: int) -> list[int]:
    """Sequential commands at a queue depth; the sorted times of their completions, ns."""
    transfers = [d.ns.transfer(pages) for _ in range(depth)]
    requests: list[Request] = []
    capacity = d.ns.zone(0).capacity // pages
    for index in range(commands):
        if index >= depth:
            d.controller.wait(requests[index - depth])
        lba = d.ns.start(index // capacity) + index % capacity * pages
        command = d.ns.io(opcode, lba, pages, transfers[index % depth])
        requests.append(d.ns.queue.submit(command))
    d.controller.wait(*requests)
    return sorted(request.expect().completed_ns for request in requests)


def risa(context: Context) -> list[Row]:
    """4 KiB commands at queue depth 256 on the preset, without a guest in the way."""
    commands, depth = 4000, 256
    rows = []
    with device(context, preset="risa") as d:
        for kind, opcode, must in (
            ("write", WRITE, RISA_WRITE_IOPS),
            ("read", READ, RISA_READ_IOPS),
        ):
            done = stream(d, opcode, commands, depth, 1)
            first, last = commands // 8, commands - commands // 8
            iops = (last - first) / (done[last] - done[first]) * 1e9
            rows.append(
                Row(
                    f"preset risa, 4 KiB {kind}s, device alone",
                    f"{must:,} IOPS, within 2%",
                    f"{iops:,.0f} IOPS ({100 * (iops / must - 1):+.2f}%)",
                    iops,
                    "IOPS",
                    "virtual",
                    near(iops, must, 0.02),
                )
            )
    return rows


# Bytes of a mapping table in RISA table 2 and REDO table 2 (512 MB): 8 channels of 4 ways, or 2
# of 2, and blocks of 512 KB. The hybrid row is rounded there: 30.8 MB is printed as 32, 61.7 as 62.
MAP_CAPACITIES: dict[str, dict[str, str | int]] = {
    "512 MB": {"preset": "redo"},
    "2 GB": {"preset": "risa"},
    "512 GB": {"preset": "risa", "blocks": 32768},
    "1 TB": {"preset": "risa", "blocks": 65536},
}
_MAPPING_PUBLISHED = {
    "rsd": ("RSD", ("4 KB", "16 KB", "4 MB", "8 MB")),
    "block": ("block-level FTL", ("4 KB", "16 KB", "4 MB", "8 MB")),
    "fast": ("hybrid FTL", ("-", "121 KB", "32 MB", "62 MB")),
    "page": ("page-level FTL", ("512 KB", "2 MB", "512 MB", "1 GB")),
}
_BLOCK_BYTES, _ENTRY, _LOG_PERCENT = 512 << 10, 4, 5


def _mapping_formula(ftl: str, capacity: int) -> int:
    """4 bytes a block, or a page, or a block and a log page of the 5% that are for logs."""
    blocks, pages = capacity // _BLOCK_BYTES, capacity // PAGE
    table = {"rsd": _ENTRY * blocks, "block": _ENTRY * blocks, "page": _ENTRY * pages}
    table["fast"] = table["block"] + table["page"] * _LOG_PERCENT // 100
    return table[ftl]


def map_bytes(context: Context, ftl: str, drive: Mapping[str, str | int]) -> tuple[int, int]:
    """Bytes of an FTL's mapping table, from the log page, and of the flash but for spares."""
    with device(context, **drive, ftl=ftl) as d:
        log = d.log()
    return log["map_bytes"], (log["blocks_total"] - log["spares_total"]) * _BLOCK_BYTES


def mapping(context: Context) -> list[Row]:
    """The size of the mapping table of each FTL, from the drive's own log page."""
    rows = []
    for ftl, (title, published) in _MAPPING_PUBLISHED.items():
        for (capacity, props), paper in zip(MAP_CAPACITIES.items(), published, strict=True):
            measured, raw = map_bytes(context, ftl, props)
            must = _mapping_formula(ftl, raw)
            rows.append(
                Row(
                    f"mapping table, {title}, {capacity} (paper: {paper})",
                    f"{must:,} bytes",
                    f"{measured:,} bytes",
                    measured,
                    "bytes",
                    "count",
                    measured == must,
                )
            )
    return rows
