# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws: what must make no difference at all, or a known one."""

import json
import random
from collections.abc import Iterator
from typing import Any

from rsd.bench.laws.base import (
    Point,
    Setting,
    Simulator,
    book,
    models,
    point,
)
from rsd.bench.laws.conservation import SMALL, WORKS

models()

BOOK = book("symmetry")
DETERMINISM = "determinism: same command, same bytes (README.md)"
SAME = "one drive, said in two ways"


def same(one: str, other: str, *names: str) -> float:
    """1 if two outputs are equal, but for the settings and the work that are said."""
    return float(_without(json.loads(one), names) == _without(json.loads(other), names))


def _without(content: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        content.get("settings", {}).pop(name, None)
        content["results"]["counters"].pop(name, None)
        content.get("work", {}).pop(name, None)
    return content


def _equal(
    sim: Simulator,
    first: tuple[str, dict[str, Setting]],
    second: tuple[str, dict[str, Setting]],
    *ignored: str,
) -> Point:
    """A point that is 1 if the two runs print the same."""
    one, other = sim.output(first[0], **first[1]), sim.output(second[0], **second[1])
    commands = (sim.command(first[0], **first[1]), sim.command(second[0], **second[1]))
    return Point(1, same(one, other, *ignored), commands)


@BOOK.law("rerun", "The same command prints the same bytes.", DETERMINISM)
def _rerun(sim: Simulator) -> Iterator[Point]:
    for work, drive in WORKS:
        one, other = sim.output(work, **(SMALL | drive)), sim.output(work, **(SMALL | drive))
        yield Point(1, float(one == other), (sim.command(work, **(SMALL | drive)),))


@BOOK.law("order-of-settings", "The order of --set changes nothing.", DETERMINISM)
def _order(sim: Simulator) -> Iterator[Point]:
    for work, drive in WORKS:
        settings = SMALL | drive
        backwards = dict(reversed(settings.items()))
        yield _equal(sim, (work, settings), (work, backwards))


@BOOK.law("units", "A size in bytes, K or M is the same size.", SAME)
def _units(sim: Simulator) -> Iterator[Point]:
    work = "--requests 3000 --precondition fill"
    settings = SMALL | {"ftl": "page", "ack": "buffer"}
    yield _equal(
        sim,
        (f"{work} --size 16K", settings | {"write_buffer": "1M"}),
        (f"{work} --size 16384", settings | {"write_buffer": 1 << 20}),
    )


@BOOK.law(
    "preset-is-values", "Preset risa is its values; redo is risa of 2 x 2 dies.", "README, Presets"
)
def _preset(sim: Simulator) -> Iterator[Point]:
    work = "--requests 3000 --precondition fill --reads 30"
    yield _equal(sim, (f"{work} --preset risa", {}), (f"{work} --preset custom", {}))
    geometry: dict[str, Setting] = {"channels": 2, "ways": 2, "blocks": 256}
    yield _equal(sim, (f"{work} --preset redo", {}), (f"{work} --preset risa", geometry))


@BOOK.law(
    "generator-seeds",
    "Another seed of the generator moves amplification by little.",
    "law of large numbers",
    0.015,
)
def _seeds(sim: Simulator) -> Iterator[Point]:
    for pattern in ("uniform", "zipf=0.99", "hotcold=90/10"):
        runs = [
            sim.run(
                f"--pattern {pattern} --precondition 4 --requests 60000 --seed {seed}",
                **(SMALL | {"ftl": "page", "blocks": 128, "over_provision": 15}),
            )
            for seed in (1, 2, 3, 4)
        ]
        mean = sum(got.amplification for got in runs) / len(runs)
        for got in runs:
            yield point(mean, got.amplification, got)


@BOOK.law("drive-seeds", "The drive's seed changes nothing where nothing is random.", SAME)
def _drive_seeds(sim: Simulator) -> Iterator[Point]:
    work = "--requests 5000 --precondition 1 --reads 30"
    for ftl in ("rsd", "page"):
        drive = SMALL | {"ftl": ftl, "over_provision": 20}
        yield _equal(sim, (work, drive), (work, drive | {"seed": 99}), "seed")


@BOOK.law(
    "scale-of-time",
    "All times twice as long: every latency and the whole are twice as long, to the nanosecond.",
    "no time is built in",
)
def _scale(sim: Simulator) -> Iterator[Point]:
    times = {
        "t_cmd": 2_000,
        "t_xfer": 30_000,
        "t_read": 60_000,
        "t_prog": 440_000,
        "t_erase": 3_500_000,
        "t_suspend": 5_000,
        "idle_erase": 2_000_000,
        "t_fw_read": 1_000,
        "t_fw_write": 2_000,
        "t_link": 1_000,
    }
    for suspend in ("off", "on"):
        for ftl in ("rsd", "page", "dftl", "fast"):
            drive = SMALL | {"ftl": ftl, "over_provision": 30, "suspend": suspend}
            work = "--precondition 1 --reads 40 --requests 5000 --depth 8"
            one = sim.run(work, **(drive | times))
            two = sim.run(work, **(drive | {name: 2 * ns for name, ns in times.items()}))
            yield point(round(one.seconds * 2e9), round(two.seconds * 1e9), one, two)
            for kind in ("read", "write"):
                yield point(2 * one.ns(kind, "max"), two.ns(kind, "max"), one, two)


@BOOK.law(
    "replay",
    "A recorded run, replayed, has every completion time, status and counter again.",
    DETERMINISM,
)
def _replay(sim: Simulator) -> Iterator[Point]:
    for work, drive in WORKS:
        path = sim.path("rsdtrace")
        path.unlink(missing_ok=True)
        sim.run(f"{work} --record {path}", **(SMALL | drive))
        # it fails, which is a violation, if one differs
        sim.output(f"--replay {path} --check")
        yield Point(1, 1, (sim.command(f"{work} --record {path}", **(SMALL | drive)),))


@BOOK.law(
    "trace-is-work",
    "A recorded trace as input of a new drive takes the same time and does the same.",
    SAME,
)
def _trace(sim: Simulator) -> Iterator[Point]:
    for ftl in ("rsd", "page", "block"):
        path = sim.path("rsdtrace")
        path.unlink(missing_ok=True)
        drive = SMALL | {"ftl": ftl, "over_provision": 20}
        one = sim.run(f"--requests 1000 --rate 500 --reads 20 --record {path}", **drive)
        two = sim.run(f"--trace {path}", **drive)
        for counter in ("nand_programs", "nand_reads", "die_busy_ns", "wear_sum"):
            yield point(one.after(counter), two.after(counter), one, two)


@BOOK.law(
    "precondition-is-work",
    "A fill by --precondition does what the same sequential writes do.",
    SAME,
)
def _fill(sim: Simulator) -> Iterator[Point]:
    for ftl in ("rsd", "page", "fast"):
        drive = SMALL | {"ftl": ftl, "over_provision": 20}
        filled = sim.run("--precondition fill --requests 0", **drive)
        pages = int(filled.content["precondition"]["filled_blocks"])
        written = sim.run(f"--pattern sequential --requests {pages} --depth 1", **drive)
        for counter in ("prog_host", "host_write_pages", "blocks_erased", "wear_sum"):
            yield point(filled.after(counter), written.after(counter), filled, written)


@BOOK.law(
    "media-or-memory",
    "A drive in a file is the drive in memory.",
    SAME,
)
def _media(sim: Simulator) -> Iterator[Point]:
    for ftl in ("rsd", "page"):
        path = sim.path("rsd")
        path.unlink(missing_ok=True)
        drive = SMALL | {"ftl": ftl, "over_provision": 20}
        sim.run(f"--age {path} --precondition fill", **drive)
        work = "--reads 100 --requests 3000 --depth 8"
        aged = sim.run(f"--media {path} {work}")
        memory = sim.run(f"--precondition fill {work}", **drive)
        path.unlink()
        yield point(memory.seconds, aged.seconds, memory, aged)
        yield point(memory.ns("read"), aged.ns("read"), memory, aged)


@BOOK.law(
    "address-shift",
    "Random writes to a third of the space take the same time wherever it lies.",
    "no place of the address space is another",
    0.02,
)
def _shift(sim: Simulator) -> Iterator[Point]:
    drive = SMALL | {
        "ftl": "page",
        "over_provision": 20,
        "blocks": 64,
        "wl_threshold": 0,
    }
    # a part begins and ends with a block of every die
    rng = random.Random(1)
    work = [rng.randrange(1024) for _ in range(40_000)]
    runs = [
        sim.run(
            f"{sim.trace((0, at + offset, 1, 'write') for at in work)} "
            "--precondition fill --depth 8",
            **drive,
        )
        for offset in (0, 1024, 2048)
    ]
    for got in runs[1:]:
        yield point(runs[0].seconds, got.seconds, runs[0], got)
