# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws at random settings: a family draws a setting within its validity, and gives its figures."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rsd.bench.amplification import first_in_first_out, greedy
from rsd.bench.laws.bandwidth import limit
from rsd.bench.laws.base import (
    AT_LEAST,
    EQUAL,
    Access,
    Point,
    Setting,
    Simulator,
    models,
    point,
)
from rsd.bench.laws.collection import net, overwritten
from rsd.bench.laws.conservation import invariants
from rsd.bench.laws.equality import lookups, merges

models()
from law_dies import PROGRAM, READ, Flash, Request, closed_loop  # noqa: E402

__all__ = ["FAMILIES", "Family"]


@dataclass(frozen=True)
class Family:
    """A law, and how a setting of it is drawn."""

    name: str
    says: str
    source: str
    relation: str
    tolerance: float
    draw: Callable[[Simulator, random.Random], Iterator[Point]]


def times(rng: random.Random) -> dict[str, int]:
    """Of the flash: any that a die of 2010 to 2030 may have."""
    return {
        "t_cmd": rng.randint(100, 5_000),
        "t_xfer": rng.randint(1_000, 60_000),
        "t_read": rng.randint(5_000, 150_000),
        "t_prog": rng.randint(50_000, 3_000_000),
        "t_erase": rng.randint(500_000, 20_000_000),
    }


def geometry(rng: random.Random) -> dict[str, Setting]:
    """Some thousand pages at least, so that a conventional namespace has its MiB."""
    return {
        "channels": rng.randint(1, 4),
        "ways": rng.randint(1, 4),
        "blocks": rng.randint(40, 80),
        "pages": rng.choice((16, 24, 32, 64)),
    }


def any_drive(rng: random.Random) -> dict[str, Setting]:
    """Every translation layer with options that it has."""
    ftl = rng.choice(("rsd", "page", "dftl", "block", "fast"))
    drive: dict[str, Setting] = geometry(rng) | times(rng) | {"ftl": ftl}
    drive["suspend"] = rng.choice(("off", "on"))
    drive["cache"] = rng.choice(("off", "on"))
    drive["wl_threshold"] = rng.choice((0, 4, 32))
    drive["idle_erase"] = rng.choice((0, 100_000, 2_000_000))
    drive["spare_blocks"] = rng.randint(4, 10)
    if ftl == "rsd":
        drive["reset"] = rng.choice(("mark", "erase"))
        drive["segment"] = rng.choice(("all", "way"))
    else:
        drive["over_provision"] = rng.randint(15, 60)
    if ftl in ("page", "dftl"):
        drive["gc_policy"] = rng.choice(("greedy", "cost-benefit", "fifo"))
        drive["gc_unit"] = rng.choice(("block", "all"))
    if ftl == "dftl":
        drive["map_cache"] = rng.choice((1024, 4096, 65536))
    if ftl in ("block", "fast"):
        drive["stripe"] = rng.choice(("block", "all"))
    if ftl == "fast":
        drive["log_blocks"] = rng.randint(3, 12)
    return drive


def any_work(rng: random.Random, zoned: bool) -> str:
    """A mixture that makes the drive collect, but not for long."""
    pattern = rng.choice(("uniform", "sequential", "zipf=0.99", "hotcold=90/10"))
    size = rng.choice(("4K", "4K", "8K", "16K"))
    trims = 0 if zoned else rng.choice((0, 0, 10))
    return (
        f"--pattern {pattern} --size {size} --reads {rng.randint(0, 70)} --trims {trims} "
        f"--depth {rng.choice((1, 3, 16, 64))} --precondition {rng.choice(('fill', '0.5'))} "
        f"--requests 2000 --seed {rng.randint(1, 1 << 30)}"
    )


def _any(sim: Simulator, rng: random.Random) -> tuple[str, dict[str, Setting]]:
    drive = any_drive(rng)
    return any_work(rng, drive["ftl"] == "rsd"), drive


def _conserve(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    """Every invariant is a point: 1 if it holds."""
    work, drive = _any(sim, rng)
    got = sim.run(work, **drive)
    for one, found in invariants(got):
        holds = found.error(one.relation) <= one.tolerance + 1e-9
        yield Point(1, float(holds), (f"{one.name}: {got.command}",))


def _rerun(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    work, drive = _any(sim, rng)
    order = list(drive.items())
    rng.shuffle(order)
    one, other = sim.output(work, **drive), sim.output(work, **dict(order))
    yield Point(1, float(one == other), (sim.command(work, **drive),))


def _scale(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    work, drive = _any(sim, rng)
    drive["t_suspend"] = rng.randint(1_000, 10_000)
    factor = rng.randint(2, 5)
    names = [name for name in drive if name.startswith("t_")] + ["idle_erase"]
    slow = drive | {name: factor * int(drive[name]) for name in names}
    one, two = sim.run(work, **drive), sim.run(work, **slow)
    yield point(round(factor * one.seconds * 1e9), round(two.seconds * 1e9), one, two)


def _little(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    """All requests are in the drive from begin to end, but for the last ones.

    Not on zones: before a reset the generator waits for the writes to that zone.
    """
    drive = any_drive(rng)
    while drive["ftl"] == "rsd":
        drive = any_drive(rng)
    work = any_work(rng, False)
    got = sim.run(work, **drive)
    if not got.seconds:
        return
    depth = int(work.split("--depth ")[1].split()[0])
    inside = got.iops * got.mean_ns() / 1e9
    # as the last ones end, fewer are in flight: no more than depth slowest ones
    slowest = max(float(one["latency_ns"]["max"]) for one in got.results["operations"].values())
    missing = depth * slowest / (got.seconds * 1e9) if depth > 1 else 0
    yield Point(
        1, float(depth * (1 - 1e-6) - missing <= inside <= depth * (1 + 1e-6)), (got.command,)
    )


def _latency(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    drive = geometry(rng) | times(rng)
    firmware = {
        "t_fw_read": rng.randint(0, 10_000),
        "t_fw_write": rng.randint(0, 10_000),
        "t_fw_page": rng.randint(0, 2_000),
        "t_lat_read": rng.randint(0, 20_000),
        "t_lat_write": rng.randint(0, 20_000),
        "t_link": rng.randint(0, 5_000),
        "cores": rng.randint(1, 4),
    }
    before = firmware["t_fw_page"] + firmware["t_link"]
    bus = int(drive["t_cmd"]) + int(drive["t_xfer"])
    ftl = rng.choice(("rsd", "page"))
    got = sim.run("--depth 1 --requests 300 --pattern sequential", **drive, **firmware, ftl=ftl)
    write = before + firmware["t_fw_write"] + firmware["t_lat_write"] + bus + int(drive["t_prog"])
    yield point(write, got.ns("write", "min"), got)
    yield point(write, got.ns("write", "max"), got)
    got = sim.run(
        "--depth 1 --requests 300 --reads 100 --precondition fill", **drive, **firmware, ftl=ftl
    )
    read = before + firmware["t_fw_read"] + firmware["t_lat_read"] + bus + int(drive["t_read"])
    yield point(read, got.ns("read", "min"), got)
    yield point(read, got.ns("read", "max"), got)


def _bandwidth(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    drive = geometry(rng) | times(rng) | {"pages": 256, "blocks": 4}
    channels, ways = int(drive["channels"]), int(drive["ways"])
    dies = channels * ways
    got = sim.run(f"--pattern sequential --requests {256 * dies} --depth {8 * dies}", **drive)
    bus = int(drive["t_cmd"]) + int(drive["t_xfer"])
    yield point(limit(channels, ways, bus, bus + int(drive["t_prog"])), got.iops, got)


def _flash(drive: dict[str, Setting]) -> Flash:
    names = ("channels", "ways", "t_cmd", "t_xfer", "t_read", "t_prog", "t_erase")
    return Flash(**{name: int(drive[name]) for name in names})


def _events_reads(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    drive = geometry(rng) | times(rng)
    flash = _flash(drive)
    pages = flash.dies * 20 * 16
    work: list[Access] = [(0, rng.randrange(pages), 1, "read") for _ in range(800)]
    depth = rng.randint(1, 4 * flash.dies)
    got = sim.run(f"{sim.trace(work)} --precondition fill --depth {depth}", **drive, ftl="page")
    requests = [Request(((block % flash.dies, READ),)) for _, block, _, _ in work]
    outcome = closed_loop(flash, requests, depth)
    yield point(outcome.mean, got.ns("read"), got)
    yield point(outcome.elapsed / 1e9, got.seconds, got)


def _events_writes(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    drive = geometry(rng) | times(rng)
    flash = _flash(drive)
    work: list[Access] = [(0, rng.randrange(200), 1, "write") for _ in range(300)]
    depth = rng.randint(1, 4 * flash.dies)
    got = sim.run(f"{sim.trace(work)} --depth {depth}", **drive, ftl="page")
    requests = [Request(((n % flash.dies, PROGRAM),)) for n in range(len(work))]
    outcome = closed_loop(flash, requests, depth)
    yield point(outcome.mean, got.ns("write"), got)
    yield point(outcome.elapsed / 1e9, got.seconds, got)


def _theory(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    """One die and one frontier of enough blocks, and not too little to collect from."""
    pages = rng.choice((8, 16, 32))
    policy = rng.choice(("greedy", "fifo"))
    got = overwritten(
        sim,
        "--depth 1",
        ftl="page",
        channels=1,
        ways=1,
        blocks=rng.randint(500, 800),
        pages=pages,
        over_provision=rng.randint(10, 60),
        gc_policy=policy,
        gc_frontiers="shared",
        gc_trigger=0,
        idle_erase=0,
        wl_threshold=0,
        seed=rng.randint(1, 1 << 30),
        spare_blocks=rng.randint(2, 8),
    )
    formula = greedy(net(got), pages) if policy == "greedy" else first_in_first_out(net(got))
    yield point(formula, got.amplification, got)


def _lru(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    yield lookups(sim, rng, 8 * rng.randint(128, 2048))


def _merges(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    drive: dict[str, Setting] = {
        "channels": rng.randint(1, 3),
        "ways": rng.randint(1, 3),
        "blocks": rng.randint(40, 60),
        "pages": rng.choice((8, 12, 16)),
        "over_provision": rng.randint(20, 40),
        "log_blocks": rng.randint(3, 12),
        "spare_blocks": rng.randint(2, 6),
    }
    yield from merges(sim, rng, rng.choice(("block", "fast")), drive)


def _over_provision(sim: Simulator, rng: random.Random) -> Iterator[Point]:
    work = "--precondition 2 --requests 15000"
    drive: dict[str, Setting] = geometry(rng) | {
        "ftl": "page",
        "blocks": rng.randint(60, 90),
        "gc_policy": rng.choice(("greedy", "fifo", "cost-benefit")),
    }
    less = rng.randint(12, 40)
    small = sim.run(work, **drive, over_provision=less)
    large = sim.run(work, **drive, over_provision=less + rng.randint(8, 40))
    yield point(large.amplification, small.amplification, small, large)


FAMILIES = (
    Family(
        "random-conservation",
        "Everything that is counted adds up (each law of conservation is a figure).",
        "rsd.bench.laws.conservation",
        EQUAL,
        0.0,
        _conserve,
    ),
    Family(
        "random-latency",
        "One operation takes its closed form.",
        "hw/rsd-nvme/README.md, Time",
        EQUAL,
        0.0,
        _latency,
    ),
    Family(
        "random-bandwidth",
        "A saturated drive writes at its closed form.",
        "hw/rsd-nvme/README.md, Time",
        EQUAL,
        0.03,
        _bandwidth,
    ),
    Family(
        "random-event-reads",
        "Reads take as long as in the event model of dies and buses.",
        "tests/model/law_dies.py",
        EQUAL,
        0.01,
        _events_reads,
    ),
    Family(
        "random-event-writes",
        "Writes take as long as in the event model of dies and buses.",
        "tests/model/law_dies.py",
        EQUAL,
        0.01,
        _events_writes,
    ),
    Family(
        "random-amplification",
        "Uniform writes, one frontier: greedy and FIFO choice are what theory says.",
        "rsd.bench.amplification",
        EQUAL,
        0.025,
        _theory,
    ),
    Family(
        "random-lru",
        "dftl's hits are those of a segmented LRU.",
        "tests/model/law_cached_map.py",
        EQUAL,
        0.0,
        _lru,
    ),
    Family(
        "random-merges",
        "Merges of FAST and of the block map are those of the model.",
        "tests/model/law_merges.py",
        EQUAL,
        0.0,
        _merges,
    ),
    Family(
        "random-rerun",
        "The same command prints the same bytes, in any order of --set.",
        "README.md",
        EQUAL,
        0.0,
        _rerun,
    ),
    Family(
        "random-scale",
        "All times so many times as long: the whole is as many times as long, to the nanosecond.",
        "no time is built in",
        EQUAL,
        0.0,
        _scale,
    ),
    Family(
        "random-little",
        "Depth = throughput x latency in a closed loop.",
        "Little 1961",
        EQUAL,
        0.0,
        _little,
    ),
    Family(
        "random-over-provision",
        "Less over-provisioning, no less amplification.",
        "Desnoyers 2012",
        AT_LEAST,
        0.0,
        _over_provision,
    ),
)
