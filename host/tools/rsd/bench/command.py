# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of `./rsd bench`."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from rsd import artifacts, packages
from rsd.artifacts import REPOSITORY
from rsd.bench import (
    core,
    crash_bugs,
    crash_speed,
    device,
    gc_cost,
    guest,
    guest_cost,
    host_cost,
    laws,
    linear,
    packing,
    page,
    presets,
    rfs,
    rfs_atomic,
    rfs_clean,
    rfs_compact,
    rfs_cpu,
    rfs_direct,
    rfs_fill,
    rfs_hybrid,
    rfs_large,
    rfs_latency,
    rfs_order,
    rfs_runs,
    rfs_sim,
    rfs_vcpus,
    rfs_ways,
    rfs_zones,
    sim,
    steady,
    write_amp,
    zrwa,
)
from rsd.bench.base import Bench, Context, Row
from rsd.cache import Cache
from rsd.errors import RsdError, naming
from rsd.guest_run import add_install_argument
from rsd.progress import Progress

DEFAULT_OUT = REPOSITORY / "build" / "bench" / "latest"
PLAIN_WIDTH = 200
ALL = "all"

BENCHES = {
    "latency": Bench("one operation at queue depth 1, against its closed form", device.latency),
    "bandwidth": Bench("saturated sequential bandwidth, 128 geometries", device.bandwidth),
    "risa": Bench("preset risa's IOPS, device alone", device.risa),
    "risa-guest": Bench("preset risa's IOPS in the guest", guest.risa_guest),
    "presets": Bench("the presets of drives, against published figures", presets.presets),
    "rfs": Bench("RFS in the guest: bandwidth, fsync, reads, mounting", rfs.rfs),
    "rfs-direct": Bench(
        "direct reads and overwrites of RFS, 64 at a time, beside the bare drive",
        rfs_direct.rfs_direct,
    ),
    "rfs-clean": Bench("RFS overwritten at random while it cleans", rfs_clean.rfs_clean),
    "rfs-order": Bench(
        "RFS written and read in order, beside the closed form", rfs_order.rfs_order
    ),
    "rfs-runs": Bench(
        "RFS: how many blocks of a file lie in a row, before cleaning and after", rfs_runs.rfs_runs
    ),
    "rfs-ways": Bench("RFS on zones of one way each, beside zones of all ways", rfs_ways.rfs_ways),
    "rfs-zones": Bench(
        "RFS on 262,144 zones: CPU time beside that on few, memory", rfs_zones.rfs_zones
    ),
    "rfs-large": Bench(
        "RFS on 16 TB, and many files on 1 TB, in the guest; 6 GB of disk", rfs_large.rfs_large
    ),
    "rfs-latency": Bench("waits for RFS while others make it work", rfs_latency.rfs_latency),
    "rfs-atomic": Bench(
        "databases without journals of their own, as RFS writes atomically", rfs_atomic.rfs_atomic
    ),
    "zrwa": Bench("random write areas: programs saved, latency", zrwa.zrwa),
    "rfs-sim": Bench("RFS's cleaning beside sfssim, on the same writes", rfs_sim.rfs_sim),
    "rfs-sim-8g": Bench("the same on 8 GiB: more than an hour", rfs_sim.rfs_sim_8g),
    "rfs-vcpus": Bench(
        "four writers and four readers of RFS, two vCPUs by one", rfs_vcpus.rfs_vcpus
    ),
    "rfs-compact": Bench(
        "small writes as pieces of blocks, and what the option costs the others",
        rfs_compact.rfs_compact,
    ),
    "rfs-hybrid": Bench(
        "a hybrid volume of RFS beside its disk or flash alone, and dm-cache", rfs_hybrid.rfs_hybrid
    ),
    "rfs-fill": Bench("a disk filled through a flash of a hundredth of it", rfs_fill.rfs_fill),
    "rfs-cpu": Bench("guest instructions of operations, beside ext4 and F2FS", rfs_cpu.rfs_cpu),
    "mapping": Bench("size of the mapping table", device.mapping),
    "core": Bench("speed and memory of the core alone", core.core),
    "sim": Bench("speed and memory of rsdsim under garbage collection", sim.simulator),
    "packing": Bench("pages of postmark's files, by how they share them", packing.packing),
    "linear": Bench("host work of the core for ten times the requests", linear.linear),
    "write-amp": Bench("write amplification of page-ftl against formulas", write_amp.write_amp),
    "steady": Bench("what rsdsim calls steady, against runs ten times as long", steady.steady),
    "host-cost": Bench("host CPU time of an I/O, against stock hw/nvme", host_cost.host_cost),
    "guest-cost": Bench("host CPU time of an I/O in virtual time", guest_cost.guest_cost),
    "gc-cost": Bench("host CPU time of a page operation under collection", gc_cost.gc_cost),
    "crash-bugs": Bench(
        "published bugs of ext4, F2FS and btrfs: how soon ./rsd crash finds them",
        crash_bugs.crash_bugs,
    ),
    "crash-speed": Bench(
        "states a second that ./rsd crash explores and mounts on ext4 and F2FS",
        crash_speed.crash_speed,
    ),
    "laws": Bench("laws that any SSD model must obey, held against rsdsim", laws.laws),
    "guest-speed": Bench("what the guest speed costs and gives", guest.guest_speed),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    parser.add_argument(
        "name",
        nargs="*",
        metavar="NAME",
        help=f"What to measure: all, which takes hours, or any of {', '.join(BENCHES)}."
        " Without a name, they are listed.",
    )
    parser.add_argument(
        "--list", action="store_true", help="Print what each measures, and run nothing."
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=DEFAULT_OUT,
        metavar="DIR",
        help="Write bench.json there (default: build/bench/latest).",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="Keep the result of each in docs/results, and show it in the documents.",
    )
    add_install_argument(parser)
    laws.add_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure and print. 1 if a figure is not what it must be, 0 otherwise."""
    if arguments.list or not arguments.name:
        for name, bench in BENCHES.items():
            print(f"{name:12} {bench.summary}")
        print(f"{ALL:12} all of these, in hours")
        return 0
    for name in arguments.name:
        if name not in BENCHES and name != ALL:
            raise RsdError(
                f"unknown bench {name!r}: there is {', '.join(BENCHES)}", "./rsd bench --list"
            )
    if arguments.name == ["laws"]:
        # It needs no QEMU, and has a table of its own.
        return laws.main(arguments)
    chosen = [name for name in BENCHES if name in arguments.name or ALL in arguments.name]
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RsdError(
            f"--out {arguments.out}: {error.strerror}", "name another directory"
        ) from error
    progress = Progress()
    packages.ensure(progress, install=not arguments.no_install)
    cache = Cache()
    context = Context(artifacts.ensure(cache, progress), cache, progress)
    rows: dict[str, list[Row]] = {}
    path = arguments.out / "bench.json"
    try:
        for name in chosen:
            with progress.step(f"bench {name}"):
                rows[name] = BENCHES[name].run(context)
    finally:
        # Also if one has failed, or was interrupted, hours after the first.
        if rows:
            _print(rows)
            with naming(path):
                path.write_text(json.dumps(_content(rows, context), indent=2) + "\n")
    progress.say(f"figures: {path}")
    if arguments.record:
        for name, found in rows.items():
            kept = page.record(REPOSITORY, name, found, context.built.hashes)
            progress.say(f"recorded: {kept}")
    return int(any(row.passed is False for found in rows.values() for row in found))


def _content(rows: dict[str, list[Row]], context: Context) -> dict[str, Any]:
    return {
        "schema": 1,
        "rows": [{"bench": name, **asdict(row)} for name, found in rows.items() for row in found],
        "hashes": dict(context.built.hashes),
    }


def _print(rows: dict[str, list[Row]]) -> None:
    tty = sys.stdout.isatty()
    console = Console() if tty else Console(width=PLAIN_WIDTH)
    table = Table(box=box.SIMPLE_HEAD if tty else box.ASCII2, pad_edge=False)
    for title in ("figure", "must be", "measured", ""):
        table.add_column(title)
    notes = []
    for found in rows.values():
        for row in found:
            table.add_row(row.what, row.must, row.measured, _verdict(row))
            if row.why:
                notes.append(f"{row.what}: {row.why}")
        table.add_section()
    console.print(table)
    for note in notes:
        console.print(note, markup=False, highlight=False)


def _verdict(row: Row) -> str:
    if row.passed is None:
        return ""
    return "[green]pass[/]" if row.passed else "[bold red]FAIL[/]"
