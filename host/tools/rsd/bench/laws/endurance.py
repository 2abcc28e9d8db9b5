# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws: wear, its levelling, bad blocks, and the end of a drive's life."""

import itertools
from collections.abc import Iterator
from math import sqrt

from rsd.bench.laws.base import (
    AT_LEAST,
    AT_MOST,
    Point,
    Result,
    Setting,
    Simulator,
    book,
    point,
)
from rsd.bench.laws.conservation import total

BOOK = book("endurance")
BUDGET = "a drive's erases are its blocks times their endurance"
LEVELLING = "hw/rsd-nvme/README.md, Properties (wl-threshold)"
WORN: dict[str, Setting] = {
    "channels": 1,
    "ways": 2,
    "blocks": 64,
    "pages": 16,
    "spare_blocks": 4,
    "endurance": 50,
    "life_spread": 1,
    "wl_threshold": 0,
}
BLOCKS = 2 * (64 + 4)
# A tenth of the space gets all the writes: without levelling, the rest is never erased.
HOT_TENTH = "--pattern hotcold=100/10 --precondition fill"
HOT = f"{HOT_TENTH} --size 8K"
LEVEL: dict[str, Setting] = {
    "channels": 1,
    "ways": 2,
    "blocks": 64,
    "pages": 32,
    "spare_blocks": 4,
}
THRESHOLD = 8


def life(sim: Simulator, work: str, **settings: Setting) -> Result:
    """A run that goes on until the drive is worn out, by far."""
    return sim.run(work, **settings)


@BOOK.law(
    "life-of-zones",
    "Zones written in sequence: the drive takes blocks x endurance x pages before it is worn out.",
    BUDGET,
    0.05,
)
def _life(sim: Simulator) -> Iterator[Point]:
    for endurance in (20, 50):
        got = sim.run(
            f"--pattern sequential --requests {3 * BLOCKS * endurance * 16}",
            **(WORN | {"endurance": endurance}),
        )
        yield point(BLOCKS * endurance * 16, got.after("prog_host"), got)


@BOOK.law(
    "life-of-pages",
    "A page map under uniform writes programs 85% of blocks x endurance x pages before it is worn "
    "out, copies included.",
    BUDGET,
    0.0,
    AT_LEAST,
)
def _life_of_pages(sim: Simulator) -> Iterator[Point]:
    for percent in (20, 50):
        got = sim.run(
            f"--requests {3 * BLOCKS * 50 * 16}",
            **(
                WORN
                | {
                    "ftl": "page",
                    "over_provision": percent,
                    "pages": 16,
                    "blocks": 128,
                    "spare_blocks": 0,
                }
            ),
        )
        yield point(0.85 * 2 * 128 * 50 * 16, total(got, "prog"), got)


@BOOK.law(
    "not-before-its-time",
    "No block fails before endurance less life-spread, and none lives beyond endurance and it.",
    "hw/rsd-nvme/README.md, Properties (life-spread)",
)
def _in_time(sim: Simulator) -> Iterator[Point]:
    for spread in (5, 30):
        drive = WORN | {"endurance": 100, "life_spread": spread}
        # until just before the first may fail
        young = sim.run(
            f"--pattern sequential --requests {int(BLOCKS * (100 - spread - 2) * 16)}", **drive
        )
        yield point(0, young.after("blocks_grown") + young.results["failed"], young)
        old = sim.run(f"--pattern sequential --requests {BLOCKS * 300 * 16}", **drive)
        yield point(1, float(old.after("wear_max") <= 100 + spread), old)
        yield point(1, float(old.results["failed"] > 0), old)


@BOOK.law(
    "grown-bad",
    "A block that failed is bad, and takes a spare block.",
    "hw/rsd-nvme/README.md, counters",
)
def _grown(sim: Simulator) -> Iterator[Point]:
    drive = WORN | {"endurance": 60, "life_spread": 40, "spare_blocks": 32}
    for rounds in (38, 44, 50):
        got = sim.run(f"--pattern sequential --requests {BLOCKS * rounds * 16}", **drive)
        yield point(got.after("blocks_bad"), got.after("blocks_grown"), got)
        yield point(
            got.after("spares_total") - got.after("blocks_bad"), got.after("spares_left"), got
        )


@BOOK.law(
    "factory-bad",
    "Of so many blocks bad-blocks-ppm in a million are bad, within three standard deviations.",
    "binomial distribution",
    0.0,
    AT_MOST,
)
def _factory(sim: Simulator) -> Iterator[Point]:
    for seed in (1, 2, 3):
        for ppm in (5_000, 50_000):
            got = sim.run(
                "--requests 0",
                channels=8,
                ways=4,
                blocks=512,
                spare_blocks=128,
                bad_blocks_ppm=ppm,
                seed=seed,
            )
            blocks, share = got.after("blocks_total"), ppm / 1e6
            deviation = sqrt(blocks * share * (1 - share))
            yield point(3 * deviation, abs(got.after("blocks_bad") - blocks * share), got)


@BOOK.law(
    "even-wear",
    "Writes in sequence wear all blocks alike: the least worn block is taken, so two erases apart.",
    "least-worn allocation (README of the device)",
    0.0,
    AT_MOST,
)
def _even(sim: Simulator) -> Iterator[Point]:
    for ftl in ("rsd", "page"):
        got = sim.run(
            "--pattern sequential --size 16K --precondition 10 --requests 10000",
            **(LEVEL | {"ftl": ftl, "wl_threshold": 0}),
        )
        yield point(2, got.after("wear_max") - got.after("wear_min"), got)


@BOOK.law(
    "no-levelling",
    "Without static levelling cold blocks are not worn at all, hot ones more and more.",
    "the need for static wear levelling: Chang, SAC 2007",
    0.0,
    AT_LEAST,
)
def _none(sim: Simulator) -> Iterator[Point]:
    got = sim.run(f"{HOT} --requests 40000 --depth 8", **LEVEL, wl_threshold=0)
    yield point(40, got.after("wear_max") - got.after("wear_min"), got)


def _spread(sim: Simulator, ftl: str, *, requests: int, **drive: Setting) -> Iterator[Point]:
    for over_provision, size, depth in itertools.product((10, 20), ("8K", "128K"), (8, 256)):
        got = sim.run(
            f"{HOT_TENTH} --size {size} --requests {requests} --depth {depth}",
            **(LEVEL | drive),
            ftl=ftl,
            over_provision=over_provision,
            wl_threshold=THRESHOLD,
        )
        yield point(THRESHOLD + 2, got.after("wear_max") - got.after("wear_min"), got)


@BOOK.law(
    "static-levelling",
    "Static levelling under load keeps the erases of zones' blocks within wl-threshold + 2.",
    LEVELLING,
    0.0,
    AT_MOST,
)
def _levelling(sim: Simulator) -> Iterator[Point]:
    yield from _spread(sim, "rsd", requests=20_000)


@BOOK.law(
    "static-levelling-pages",
    "Static levelling under load keeps the erases of a page map's blocks within wl-threshold + 2.",
    LEVELLING,
    0.0,
    AT_MOST,
)
def _levelling_pages(sim: Simulator) -> Iterator[Point]:
    yield from _spread(sim, "page", requests=20_000)
    yield from _spread(sim, "dftl", requests=20_000, map_cache=4096)


@BOOK.law(
    "static-levelling-young",
    "The same where no data are cold and map pages wear blocks: dftl, uniform, a small map cache.",
    LEVELLING,
    0.0,
    AT_MOST,
)
def _levelling_young(sim: Simulator) -> Iterator[Point]:
    drive = LEVEL | {"ftl": "dftl", "map_cache": 4096, "over_provision": 40, "pages": 32}
    for blocks, threshold in itertools.product((64, 96), (16, 64)):
        got = sim.run(
            "--requests 400000 --depth 32",
            **(drive | {"blocks": blocks, "wl_threshold": threshold}),
        )
        yield point(threshold + 2, got.after("wear_max") - got.after("wear_min"), got)


@BOOK.law(
    "static-levelling-blocks",
    "The same of block maps and FAST. They level each way by itself, so the drive has one.",
    LEVELLING,
    0.0,
    AT_MOST,
)
def _levelling_blocks(sim: Simulator) -> Iterator[Point]:
    yield from _spread(sim, "fast", requests=3000, ways=1)
    yield from _spread(sim, "block", requests=3000, ways=1)


@BOOK.law(
    "levelling-share",
    "Under load wear levelling programs no more than wl-share percent of the other programs, and a "
    "block a way.",
    "hw/rsd-nvme/README.md, Properties (wl-share)",
    0.0,
    AT_MOST,
)
def _share(sim: Simulator) -> Iterator[Point]:
    for share in (2, 10, 50):
        got = sim.run(f"{HOT} --requests 60000 --depth 64", **LEVEL, wl_threshold=4, wl_share=share)
        moved = got.count("prog_wear")
        yield point(share / 100 * (total(got, "prog") - moved) + 2 * 32, moved, got)
    for ftl, share in itertools.product(("block", "fast"), (2, 10)):
        drive = LEVEL | {"ftl": ftl, "over_provision": 20, "wl_threshold": 4, "wl_share": share}
        got = sim.run(f"{HOT} --requests 3000 --depth 8", **drive)
        moved = got.count("prog_wear")
        yield point(share / 100 * (total(got, "prog") - moved) + 2 * 32, moved, got)


@BOOK.law(
    "levelled-life",
    "hotcold=100/10: with static levelling a drive lives three times as long as without.",
    "without levelling hot and spare blocks alone are worn, with it all are: Chang, SAC 2007",
    0.0,
    AT_LEAST,
)
def _levelled_life(sim: Simulator) -> Iterator[Point]:
    drive = LEVEL | {"endurance": 60, "life_spread": 5, "pages": 16}
    for depth in (8, 256):
        work = f"{HOT} --requests 100000 --depth {depth}"
        without = sim.run(work, **drive, wl_threshold=0)
        levelled = sim.run(work, **drive, wl_threshold=THRESHOLD)
        yield point(3 * without.after("prog_host"), levelled.after("prog_host"), levelled, without)


@BOOK.law(
    "levelling-costs",
    "Wear levelling moves every block once, at most, for each wl-threshold erases a block.",
    "a block that was moved is worn by the threshold before it is to be moved again",
    0.1,
    AT_MOST,
)
def _costs(sim: Simulator) -> Iterator[Point]:
    got = sim.run(f"{HOT} --requests 60000 --depth 8", **LEVEL, wl_threshold=THRESHOLD)
    # every cold block is moved once for each time that the whole drive gains THRESHOLD erases
    rounds = got.after("wear_sum") / got.after("blocks_total") / THRESHOLD
    most = (rounds + 1) * got.after("blocks_total") * 32
    yield point(most, got.after("prog_wear"), got)


@BOOK.law(
    "levelling-keeps-amplification",
    "Static levelling costs uniform writes nothing: they wear evenly by themselves.",
    "uniform writes wear uniformly",
    0.01,
)
def _uniform(sim: Simulator) -> Iterator[Point]:
    drive = LEVEL | {"ftl": "page", "over_provision": 20, "ways": 4}
    off = sim.run("--precondition 4 --requests 60000", **drive, wl_threshold=0)
    on = sim.run("--precondition 4 --requests 60000", **drive, wl_threshold=32)
    yield point(off.amplification, on.amplification, off, on)
