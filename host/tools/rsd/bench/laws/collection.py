# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws: write amplification of a page map, against theory and a model of its own."""

import math
import random
from collections.abc import Callable, Iterator

from rsd.bench.amplification import first_in_first_out, greedy
from rsd.bench.laws.base import (
    AT_LEAST,
    AT_MOST,
    Point,
    Result,
    Setting,
    Simulator,
    book,
    models,
    point,
)
from rsd.bench.laws.formulas import Class, fifo_classes, trimmed

models()
from law_page_map import (  # noqa: E402
    OWN,
    SHARED,
    Geometry,
    PageMap,
    hot_cold,
    steady,
    uniform,
    zipf,
)

BOOK = book("write amplification")
GREEDY = "Van Houdt, SIGMETRICS 2013; Desnoyers, SYSTOR 2012 (rsd.bench.amplification.greedy)"
FIFO = "Menon and Stockmeyer 1998; Desnoyers, SYSTOR 2012 (Lambert W)"
CLASSES = "Desnoyers, SYSTOR 2012; Van Houdt 2014 (rsd.bench.laws.formulas.fifo_classes)"
MODEL = "tests/model/law_page_map.py: a page map of dies that take time"
# One die, one frontier for host and copies: what theory has. Open and kept free: two blocks.
THEORY: dict[str, Setting] = {
    "ftl": "page",
    "channels": 1,
    "ways": 1,
    "blocks": 1024,
    "pages": 32,
    "gc_frontiers": "shared",
    "gc_trigger": 0,
    "idle_erase": 0,
    "wl_threshold": 0,
}
# Four dies that share the host's pages.
DIES: dict[str, Setting] = {
    "ftl": "page",
    "channels": 2,
    "ways": 2,
    "blocks": 256,
    "pages": 32,
    "over_provision": 10,
    "idle_erase": 0,
    "wl_threshold": 0,
}
# Rounds of sequential writes until nothing of random ones is left.
ROUNDS = 10
PERCENTS = (7, 10, 20, 28)


def flash_pages(got: Result) -> int:
    """Of the good blocks, spares included."""
    settings = got.content["settings"]
    return (got.after("blocks_total") - got.after("blocks_bad")) * int(settings["pages"])


def user_pages(got: Result) -> int:
    """Pages that the host sees."""
    return got.after("capacity_bytes") // 4096


def net(got: Result, kept: int = 2) -> float:
    """Over-provisioning without the blocks that are open or kept free, as a share."""
    pages = int(got.content["settings"]["pages"])
    return (flash_pages(got) - kept * pages) / user_pages(got) - 1


def overwritten(sim: Simulator, work: str, **settings: Setting) -> Result:
    """Filled, overwritten six times, and then four times measured."""
    user = user_pages(sim.run("--requests 0", **settings))
    return sim.run(f"{work} --precondition 6 --requests {4 * user}", **settings)


@BOOK.law(
    "greedy-uniform",
    "Uniform writes, greedy choice, one frontier: the mean field of Van Houdt, limit of d-choices.",
    GREEDY,
    0.02,
)
def _greedy(sim: Simulator) -> Iterator[Point]:
    for percent in PERCENTS:
        got = overwritten(sim, "--depth 1", over_provision=percent, **THEORY)
        yield point(greedy(net(got), 32), got.amplification, got)


@BOOK.law(
    "greedy-small-blocks",
    "The same with few pages a block, where blocks are emptier by chance.",
    GREEDY,
    0.02,
)
def _greedy_small(sim: Simulator) -> Iterator[Point]:
    for pages in (4, 8, 16):
        got = overwritten(sim, "--depth 1", over_provision=15, **(THEORY | {"pages": pages}))
        yield point(greedy(net(got), pages), got.amplification, got)


@BOOK.law(
    "fifo-uniform",
    "Uniform writes, FIFO choice, one frontier: a / (a + W(-a exp(-a))).",
    FIFO,
    0.02,
)
def _fifo(sim: Simulator) -> Iterator[Point]:
    for percent in PERCENTS:
        got = overwritten(sim, "--depth 1", gc_policy="fifo", over_provision=percent, **THEORY)
        yield point(first_in_first_out(net(got)), got.amplification, got)


@BOOK.law(
    "cost-benefit-uniform",
    "Uniform writes: cost-benefit choice is between greedy and FIFO.",
    "greedy is optimal for uniform writes (Desnoyers 2012); FIFO takes no notice of validity",
    0.02,
    AT_MOST,
)
def _cost_benefit(sim: Simulator) -> Iterator[Point]:
    for percent in (10, 28):
        got = overwritten(
            sim, "--depth 1", gc_policy="cost-benefit", over_provision=percent, **THEORY
        )
        yield point(first_in_first_out(net(got)), got.amplification, got)
        yield point(got.amplification, greedy(net(got), 32), got)


@BOOK.law(
    "fifo-hot-cold",
    "Hot and cold pages, FIFO choice, one frontier: the fixed point of two classes.",
    CLASSES,
    0.02,
)
def _fifo_hot_cold(sim: Simulator) -> Iterator[Point]:
    for accesses, space in ((80, 20), (90, 10), (50, 10), (95, 5)):
        got = overwritten(
            sim,
            f"--depth 1 --pattern hotcold={accesses}/{space}",
            gc_policy="fifo",
            over_provision=20,
            **THEORY,
        )
        hot = Class(accesses / 100, space / 100)
        cold = Class(1 - accesses / 100, 1 - space / 100)
        yield point(fifo_classes(net(got), (hot, cold)), got.amplification, got)


@BOOK.law(
    "fifo-worse-with-skew",
    "FIFO choice with one frontier: the more skew, the more copies.",
    CLASSES,
    0.0,
    AT_LEAST,
)
def _fifo_skew(sim: Simulator) -> Iterator[Point]:
    before = None
    for accesses, space in ((50, 50), (70, 30), (80, 20), (90, 10)):
        got = overwritten(
            sim,
            f"--depth 1 --pattern hotcold={accesses}/{space}",
            gc_policy="fifo",
            over_provision=20,
            **THEORY,
        )
        if before:
            yield point(before.amplification, got.amplification, before, got)
        before = got


Draw = Callable[[int, random.Random], Callable[[], int]]
WORK: dict[str, Draw] = {
    "uniform": uniform,
    "zipf=0.5": lambda user, rng: zipf(user, 0.5, rng),
    "zipf=0.99": lambda user, rng: zipf(user, 0.99, rng),
    "zipf=1.2": lambda user, rng: zipf(user, 1.2, rng),
    "hotcold=80/20": lambda user, rng: hot_cold(user, 80, 20, rng),
    "hotcold=90/10": lambda user, rng: hot_cold(user, 90, 10, rng),
}


# What the model is compared with: fewer blocks, since it takes seconds for each.
MODELLED = DIES | {"blocks": 64}
# 32 dies of few spare pages: so few that it matters how many of a die's pages happen to be valid.
MANY = DIES | {"channels": 8, "ways": 4, "blocks": 64, "pages": 16, "over_provision": 15}


def _model(got: Result, depth: int, frontiers: str = OWN, policy: str = "greedy") -> PageMap:
    """Of the drive of that result."""
    settings = got.content["settings"]
    dies = int(settings["channels"]) * int(settings["ways"])
    blocks = got.after("blocks_total") // dies
    geometry = Geometry(blocks, int(settings["pages"]), user_pages(got), dies)
    reserve = max(2, math.ceil(blocks * int(settings["gc-trigger"]) / 100))
    return PageMap(geometry, depth, policy=policy, frontiers=frontiers, reserve=reserve)


def _beside(sim: Simulator, pattern: str, frontiers: str, policy: str) -> Point:
    got = overwritten(
        sim, f"--depth 8 --pattern {pattern}", gc_frontiers=frontiers, gc_policy=policy, **MODELLED
    )
    model = _model(got, 8, frontiers, policy)
    draw = WORK[pattern](user_pages(got), random.Random(pattern))
    return point(steady(model, draw, 6, 4), got.amplification, got)


@BOOK.law(
    "one-frontier",
    "Copies among the host's pages (gc-frontiers=shared): as much as in the model, skewed or not.",
    MODEL,
    0.02,
)
def _one_frontier(sim: Simulator) -> Iterator[Point]:
    for pattern in WORK:
        yield _beside(sim, pattern, SHARED, "greedy")


@BOOK.law(
    "two-frontiers",
    "Copies apart from the host's pages (gc-frontiers=own): as much as in the model.",
    MODEL + "; Van Houdt 2014",
    0.02,
)
def _two_frontiers(sim: Simulator) -> Iterator[Point]:
    for pattern in WORK:
        yield _beside(sim, pattern, OWN, "greedy")


@BOOK.law(
    "two-frontiers-fifo",
    "The same with FIFO choice.",
    MODEL + "; Van Houdt 2014",
    0.02,
)
def _two_frontiers_fifo(sim: Simulator) -> Iterator[Point]:
    for pattern in ("uniform", "hotcold=80/20"):
        yield _beside(sim, pattern, OWN, "fifo")
        yield _beside(sim, pattern, SHARED, "fifo")


def small_dies(sim: Simulator, pattern: str, depth: int, drive: dict[str, Setting]) -> Point:
    """Of many dies with few spare pages, the second half of what is written."""
    user = user_pages(sim.run("--requests 0", **drive))
    work = f"--depth {depth} --pattern {pattern} --precondition fill"
    value, got = _second_half(sim, work, 5 * user, **drive)
    draw = WORK[pattern](user, random.Random(depth))
    return point(steady(_model(got, depth), draw, 5, 5), value, got)


@BOOK.law(
    "many-small-dies",
    "Uniform writes to 32 dies of few spare pages, from one in flight to two a die: what a die "
    "copies, and which dies are passed over, is as in the model.",
    MODEL,
    0.02,
)
def _many_dies(sim: Simulator) -> Iterator[Point]:
    for depth in (1, 8, 64):
        yield small_dies(sim, "uniform", depth, MANY)
    yield small_dies(sim, "uniform", 8, MANY | {"pages": 32, "over_provision": 10})


@BOOK.law(
    "many-small-dies-skewed",
    "The same of skewed writes: pages in flight are valid where they were before.",
    MODEL,
    0.02,
)
def _many_dies_skewed(sim: Simulator) -> Iterator[Point]:
    for pattern in ("zipf=0.99", "zipf=1.2", "hotcold=90/10"):
        for depth in (8, 64):
            yield small_dies(sim, pattern, depth, MANY)
    yield small_dies(sim, "zipf=0.99", 64, MANY | {"pages": 32, "over_provision": 10})


@BOOK.law(
    "skew-is-bounded",
    "Page map of its defaults, 10%: zipf 0.99 costs less than 1.1 times what uniform writes cost.",
    "copies apart are colder: Stoica and Ailamaki, VLDB 2013; Van Houdt 2014",
    0.0,
    AT_MOST,
)
def _skew_bounded(sim: Simulator) -> Iterator[Point]:
    drive = DIES | {"pages": 64}
    plain = overwritten(sim, "--depth 8 --pattern uniform", **drive)
    skewed = overwritten(sim, "--depth 8 --pattern zipf=0.99", **drive)
    yield point(1.1 * plain.amplification, skewed.amplification, skewed, plain)


@BOOK.law(
    "skew-helps",
    "Page map of its defaults, 10%: zipf 1.2 costs less than 0.9 times what uniform writes cost.",
    "copies apart are colder: Stoica and Ailamaki, VLDB 2013; Van Houdt 2014",
    0.0,
    AT_MOST,
)
def _skew_helps(sim: Simulator) -> Iterator[Point]:
    drive = DIES | {"pages": 64}
    plain = overwritten(sim, "--depth 8 --pattern uniform", **drive)
    skewed = overwritten(sim, "--depth 8 --pattern zipf=1.2", **drive)
    yield point(0.9 * plain.amplification, skewed.amplification, skewed, plain)


@BOOK.law(
    "apart-or-not-uniform",
    "Uniform writes: the model has no use for copies apart, but for the block that they keep open.",
    "pages are all alike (Desnoyers 2012)",
    0.04,
)
def _apart_uniform(sim: Simulator) -> Iterator[Point]:
    drive = THEORY | {"over_provision": 20}
    shared = overwritten(sim, "--depth 1", **drive)
    own = overwritten(sim, "--depth 1", **(drive | {"gc_frontiers": "own"}))
    yield point(shared.amplification, own.amplification, shared, own)


@BOOK.law(
    "over-provision",
    "over-provision is (flash - user) / user, the spare blocks being flash.",
    "SNIA dictionary, over-provisioning",
    0.002,
)
def _over_provision(sim: Simulator) -> Iterator[Point]:
    for percent in (5, 10, 28, 100):
        for spare in (0, 4, 16):
            got = sim.run(
                "--requests 0", ftl="page", over_provision=percent, spare_blocks=spare, blocks=128
            )
            yield point(1 + percent / 100, flash_pages(got) / user_pages(got), got)


@BOOK.law(
    "spares-are-flash",
    "Drives of as many blocks in all and one over-provision have one amplification, however many "
    "of the blocks are called spare.",
    "SNIA dictionary, over-provisioning",
    0.02,
)
def _spares(sim: Simulator) -> Iterator[Point]:
    found = [
        overwritten(sim, "--depth 8", **(DIES | {"blocks": 264 - spare, "spare_blocks": spare}))
        for spare in (2, 8, 24)
    ]
    for got in found[1:]:
        yield point(found[0].amplification, got.amplification, found[0], got)


@BOOK.law(
    "sequential",
    "Writes in sequence, over and over, are not copied.",
    "blocks are empty when their turn comes",
    0.005,
)
def _sequential(sim: Simulator) -> Iterator[Point]:
    for policy in ("greedy", "fifo", "cost-benefit"):
        got = sim.run(
            "--pattern sequential --precondition 2 --requests 60000", gc_policy=policy, **DIES
        )
        yield point(1, got.amplification, got)


@BOOK.law(
    "sequential-after-random",
    "After random writes, rounds of writes in sequence come to cost nothing.",
    "all that lies in a block becomes invalid together",
    0.01,
)
def _sequential_after(sim: Simulator) -> Iterator[Point]:
    user = user_pages(sim.run("--requests 0", **DIES))
    rng = random.Random(1)
    actions = [("write", rng.randrange(user), 1) for _ in range(3 * user)]
    actions += [("write", lpn, 1) for _ in range(ROUNDS) for lpn in range(user)]
    before = sim.run(f"{sim.iolog(actions)} --precondition fill --depth 8", **DIES)
    actions += [("write", lpn, 1) for lpn in range(user)]
    after = sim.run(f"{sim.iolog(actions)} --precondition fill --depth 8", **DIES)
    copies = after.count("prog_clean") - before.count("prog_clean")
    yield point(1, 1 + copies / user, before, after)


@BOOK.law(
    "first-pass",
    "A new drive that is written for the first time copies nothing.",
    "there is free flash",
)
def _first_pass(sim: Simulator) -> Iterator[Point]:
    for pattern in ("sequential", "uniform", "zipf=0.99"):
        got = sim.run(f"--pattern {pattern} --requests 10000", **DIES)
        yield point(0, got.count("prog_clean"), got)


def _second_half(
    sim: Simulator, work: str, requests: int, **drive: Setting
) -> tuple[float, Result]:
    """Amplification of the second half of 2 x requests: of two runs one is the other's start."""
    half = sim.run(f"{work} --requests {requests}", **drive)
    whole = sim.run(f"{work} --requests {2 * requests}", **drive)
    written = whole.count("host_write_pages") - half.count("host_write_pages")
    copied = whole.count("prog_clean") - half.count("prog_clean")
    return 1 + copies_share(copied, written), whole


def copies_share(copied: int, written: int) -> float:
    """Copies a page written."""
    return copied / written


@BOOK.law(
    "trims",
    "Uniform writes and trims: as with over-provisioning of (1 + OP) / (1 - q) - 1, q being trims.",
    "Frankie, Hughes and Kreutz-Delgado, ACMSE 2012 (rsd.bench.laws.formulas.trimmed)",
    0.02,
)
def _trims(sim: Simulator) -> Iterator[Point]:
    for percent in (5, 20, 40):
        drive = THEORY | {"over_provision": 10}
        value, got = _second_half(
            sim, f"--depth 1 --precondition fill --trims {percent}", 300_000, **drive
        )
        yield point(greedy(trimmed(net(got), percent / 100), 32), value, got)


@BOOK.law(
    "trim-all",
    "What is trimmed before it is written again is not copied.",
    "a page without content is not valid",
)
def _trim_all(sim: Simulator) -> Iterator[Point]:
    user = user_pages(sim.run("--requests 0", **DIES))
    actions: list[tuple[str, int, int]] = []
    for _ in range(3):
        actions += [("trim", 0, user)]
        actions += [("write", lpn, 1) for lpn in range(user)]
    got = sim.run(f"{sim.iolog(actions)} --precondition fill --depth 8", **DIES)
    yield point(0, got.count("prog_clean"), got)


@BOOK.law(
    "reads-copy-nothing",
    "Reads among the writes change no amplification.",
    "reads change no page",
    0.02,
)
def _reads(sim: Simulator) -> Iterator[Point]:
    plain = overwritten(sim, "--depth 8", **DIES)
    user = user_pages(plain)
    mixed = sim.run(f"--reads 60 --depth 8 --precondition 6 --requests {10 * user}", **DIES)
    yield point(plain.amplification, mixed.amplification, plain, mixed)


@BOOK.law(
    "time-copies-nothing",
    "How long operations take, and how many are in flight (two a die or more), changes no "
    "amplification.",
    "a page map's choice knows no time",
    0.015,
)
def _time(sim: Simulator) -> Iterator[Point]:
    plain = overwritten(sim, "--depth 8", **DIES)
    for depth, times in ((8, {"t_prog": 50_000}), (8, {"t_erase": 100_000}), (16, {}), (64, {})):
        got = overwritten(sim, f"--depth {depth}", **DIES, **times)
        yield point(plain.amplification, got.amplification, plain, got)


@BOOK.law(
    "dies-are-alike",
    "Uniform writes: a drive of D dies has the amplification of one die of the same net "
    "over-provisioning.",
    "dies share nothing but the host's pages, which come to them by chance",
    0.02,
)
def _dies(sim: Simulator) -> Iterator[Point]:
    # the capacity is a whole number of MiB: with these blocks it is the same a die
    drive = DIES | {"blocks": 252, "spare_blocks": 4}
    one = overwritten(sim, "--depth 2", **(drive | {"channels": 1, "ways": 1}))
    for channels, ways in ((2, 1), (2, 2), (4, 2)):
        dies = channels * ways
        got = overwritten(
            sim, f"--depth {2 * dies}", **(drive | {"channels": channels, "ways": ways})
        )
        yield point(one.amplification, got.amplification, one, got)


@BOOK.law(
    "whole-blocks",
    "Writes of whole blocks of one frontier's, at their own places, are hardly copied.",
    "a block becomes invalid as a whole, but for what the fill has shifted",
    0.05,
    AT_MOST,
)
def _whole_blocks(sim: Simulator) -> Iterator[Point]:
    small = overwritten(sim, "--depth 1", over_provision=20, **THEORY)
    user = user_pages(small)
    whole = sim.run(
        f"--depth 1 --size 128K --precondition 6 --requests {4 * user // 32}",
        over_provision=20,
        **THEORY,
    )
    yield point(1.0 + 0.05 * (small.amplification - 1), whole.amplification, whole)


@BOOK.law(
    "steady-is-steady",
    "What --precondition steady calls steady stays so: ten times the work has the amplification.",
    "SNIA PTS 2.0.2, 2.1.24: steady state",
    0.03,
)
def _steady(sim: Simulator) -> Iterator[Point]:
    for pattern, percent, policy, trims in (
        ("uniform", 10, "greedy", 0),
        ("uniform", 120, "greedy", 0),
        ("zipf=0.99", 10, "greedy", 0),
        ("hotcold=90/1", 28, "fifo", 0),
        ("hotcold=99/1", 28, "greedy", 0),
        ("uniform", 10, "greedy", 20),
    ):
        drive: dict[str, Setting] = {
            "ftl": "page",
            "channels": 2,
            "ways": 2,
            "blocks": 64,
            "pages": 32,
            "over_provision": percent,
            "gc_policy": policy,
        }
        user = user_pages(sim.run("--requests 0", **drive))
        work = f"--pattern {pattern} --trims {trims} --precondition steady"
        short = sim.run(f"{work} --requests {4 * user}", **drive)
        if not short.content["precondition"]["steady"]:
            continue  # it says that it is not
        long = sim.run(f"{work} --requests {40 * user}", **drive)
        yield point(long.amplification, short.amplification, short, long)


@BOOK.law(
    "steady-from-below",
    "hotcold=99/1 rests at 1.0 for long: what is called steady is what 150 capacities lead to.",
    "SNIA PTS 2.0.2, 2.1.24: steady state",
    0.03,
)
def _steady_from_below(sim: Simulator) -> Iterator[Point]:
    drive = DIES | {"pages": 16, "over_provision": 28}
    user = user_pages(sim.run("--requests 0", **drive))
    work = f"--pattern hotcold=99/1 --requests {10 * user} --precondition"
    short = sim.run(f"{work} steady", **drive)
    long = sim.run(f"{work} 150", **drive)
    if short.content["precondition"]["steady"]:
        yield point(long.amplification, short.amplification, short, long)
    else:
        yield point(1, 1, short)


@BOOK.law(
    "parts-and-sum",
    "The amplification that is printed is the sum of its causes: programs a page written.",
    "README of rsdsim, Output",
    1e-5,
)
def _parts(sim: Simulator) -> Iterator[Point]:
    for ftl in ("page", "dftl", "block", "fast", "rsd"):
        got = sim.run(
            "--precondition 1 --requests 3000 --reads 20",
            ftl=ftl,
            channels=2,
            ways=2,
            blocks=64,
            pages=16,
            over_provision=20,
        )
        stated = got.results["write_amplification"]
        parts = sum(stated[cause] for cause in ("host", "clean", "merge", "wear", "map", "pad"))
        yield point(got.amplification, float(stated["total"]), got)
        yield point(got.amplification, float(parts), got)
