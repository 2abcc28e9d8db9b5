# SPDX-License-Identifier: GPL-2.0-or-later
"""From the files a cell left behind to records.

A record is (system, workload, metric, value, unit, clock). `clock` says what the value
depends on: "virtual" the guest's clock, "count" nothing but what happened, "wall" the host.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rsd.compare.cells import Cell, Tool, Traits
from rsd.errors import RsdError

BLOCK_BYTES = 4096
LOG_MAGIC = b"RRSD-LOG"

# fio's names of the percentiles that become records.
PERCENTILES = {"p50": "50.000000", "p99": "99.000000", "p99.9": "99.900000"}


@dataclass(frozen=True)
class Record:
    """One figure."""

    system: str
    workload: str
    metric: str
    value: int | float
    unit: str
    clock: str

    def to_json(self) -> dict[str, Any]:
        """As results.json has it."""
        return asdict(self)


@dataclass(frozen=True)
class Figure:
    """A record without the names of its system and workload."""

    metric: str
    value: int | float
    unit: str
    clock: str


class BadOutput(RsdError):
    """A tool's output is not what it has to be."""


def cell_figures(cell: Cell, traits: Traits, directory: Path) -> list[Figure]:
    """Everything a finished cell gave. Raises BadOutput when something is missing or wrong."""
    if cell.family.tool is Tool.NVME:
        return list(admin_figures(directory, traits))
    figures = list(load_figures(cell, read_json(directory / "main.json")))
    if traits.ours:
        before = counters(read_json(directory / "before.json"))
        after = counters(read_json(directory / "after.json"))
        figures += counter_figures(before, after)
    return figures


def read_json(path: Path) -> Any:
    """A tool's JSON. fio may print warnings before it."""
    try:
        text = path.read_text()
        return json.loads(text[text.index("{") :])
    except (OSError, ValueError) as error:
        raise BadOutput(f"{path.name}: not JSON ({error})") from error


def load_figures(cell: Cell, output: Any) -> Iterator[Figure]:
    """Throughput and latency from fio's or zappend's JSON; ns are made microseconds.

    A workload of both directions has each metric twice, as read.iops and write.iops.
    """
    try:
        (job,) = output["jobs"]
        done = sum(job[direction]["total_ios"] for direction in cell.directions)
    except (KeyError, TypeError, ValueError) as error:
        raise BadOutput(f"{cell.name}: unexpected JSON ({error!r})") from error
    errors = job.get("error", 0) or job.get("total_err", 0)
    if errors or done != cell.ios:
        raise BadOutput(f"{cell.name}: {done} of {cell.ios} I/Os done, error {errors}")
    for direction in cell.directions:
        side = job[direction]
        prefix = f"{direction}." if len(cell.directions) > 1 else ""
        yield Figure(f"{prefix}iops", round(side["iops"], 3), "1/s", "virtual")
        bandwidth = round(side["iops"] * cell.block / 1e6, 3)
        yield Figure(f"{prefix}bandwidth", bandwidth, "MB/s", "virtual")
        yield Figure(f"{prefix}ios", side["total_ios"], "commands", "count")
        latency = side["clat_ns"]
        longest = latency["max"]
        yield _microseconds(f"{prefix}latency.mean", latency["mean"])
        for name, key in PERCENTILES.items():
            # fio gives the middle of a bucket, which may lie above every latency there was
            value = min(latency["percentile"][key], longest)
            yield _microseconds(f"{prefix}latency.{name}", value)
        yield _microseconds(f"{prefix}latency.max", longest)


def _microseconds(metric: str, ns: float) -> Figure:
    return Figure(metric, round(ns / 1000, 3), "us", "virtual")


def counters(output: Any) -> dict[str, int]:
    """The values of `rsdctl show --json`."""
    try:
        return {name: int(item["value"]) for name, item in output["counters"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise BadOutput(f"rsdctl: unexpected JSON ({error!r})") from error


def counter_figures(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[Figure]:
    """What the drive did between two readings of its counters."""

    def spent(name: str) -> int:
        return after[name] - before[name]

    def by_cause(kind: str) -> int:
        causes = ("host", "clean", "merge", "wear", "map", "pad")
        return sum(spent(f"{kind}_{cause}") for cause in causes)

    programs = by_cause("prog")
    yield Figure("nand.reads", by_cause("read"), "pages", "count")
    yield Figure("nand.programs", programs, "pages", "count")
    yield Figure("nand.erases", by_cause("erase"), "blocks", "count")
    yield Figure("nand.erases_on_demand", spent("erase_on_demand"), "blocks", "count")
    written = spent("host_write_pages")
    if written:
        yield Figure("write_amplification", round(programs / written, 6), "", "count")
    operations = by_cause("read") + programs + by_cause("erase")
    if operations:
        wait = spent("queue_wait_ns") / operations / 1000
        yield Figure("nand.queue_wait.mean", round(wait, 3), "us", "virtual")
    yield Figure("map_bytes", after["map_bytes"], "bytes", "count")


def admin_figures(directory: Path, traits: Traits) -> Iterator[Figure]:
    """Key figures of identify, zone report and logs, each checked against the others."""

    def count(metric: str, value: int, unit: str = "") -> Figure:
        return Figure(metric, value, unit, "count")

    controller = read_json(directory / "id-ctrl.json")
    namespace = read_json(directory / "id-ns.json")
    smart = read_json(directory / "smart.json")
    try:
        blocks = namespace["nsze"]
        lba_format = namespace["lbafs"][namespace["flbas"] & 0xF]
        _check(1 << lba_format["ds"] == BLOCK_BYTES, "id-ns: the logical block is not 4 KiB")
        _check(bool(controller["sn"].strip()), "id-ctrl: no serial number")
        yield count("max_transfer", BLOCK_BYTES << controller["mdts"], "bytes")
        yield count("capacity", blocks * BLOCK_BYTES, "bytes")
        yield count("metadata", lba_format["ms"], "bytes")
        if traits.zoned:
            yield from _zone_figures(directory, namespace, count)
        yield count("smart.host_writes", int(smart["host_write_commands"]), "commands")
        yield count("smart.percentage_used", int(smart["percent_used"]), "%")
        yield count("smart.available_spare", int(smart["avail_spare"]), "%")
        yield count("smart.media_errors", int(smart["media_errors"]), "events")
    except (KeyError, IndexError, TypeError) as error:
        raise BadOutput(f"nvme-cli: unexpected JSON ({error!r})") from error
    if traits.ours:
        log = (directory / "counters.bin").read_bytes()
        _check(len(log) == 4096 and log[:8] == LOG_MAGIC, "get-log 0xca: not the drive's page")
        (used,) = struct.unpack_from("<H", log, 10)
        yield count("log.counters", used, "counters")


def _zone_figures(directory: Path, namespace: Any, count: Any) -> Iterator[Figure]:
    zoned = read_json(directory / "zns-id-ns.json")
    report = read_json(directory / "zones.json")
    size = zoned["lbafe"][namespace["flbas"] & 0xF]["zsze"]
    zones = report["zone_list"]
    _check(report["nr_zones"] == len(zones), "zns report-zones: nr_zones is not what it lists")
    _check(size * len(zones) == namespace["nsze"], "zns report-zones: zones do not make nsze")
    starts = [zone["slba"] for zone in zones]
    _check(starts == [index * size for index in range(len(zones))], "zns report-zones: gaps")
    yield count("zones", len(zones), "zones")
    yield count("zone_size", size * BLOCK_BYTES, "bytes")
    yield count("zone_capacity", zones[0]["cap"] * BLOCK_BYTES, "bytes")
    yield count("max_active_zones", (zoned["mar"] + 1) & 0xFFFFFFFF, "zones, 0 = all")
    yield count("max_open_zones", (zoned["mor"] + 1) & 0xFFFFFFFF, "zones, 0 = all")
    full = sum(_full(zone["state"]) for zone in zones)
    yield count("zones_full", full, "zones")


def _full(state: Any) -> bool:
    """nvme-cli gives a zone's state by name or by number."""
    return state in ("FULL", 0xE)


def _check(true: bool, message: str) -> None:
    if not true:
        raise BadOutput(message)
