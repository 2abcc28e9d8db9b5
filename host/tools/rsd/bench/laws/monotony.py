# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws: what more of something must not make worse."""

from collections.abc import Callable, Iterator, Sequence

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

BOOK = book("monotony")
MORE = "a resource more is never a loss, but for the order of events"
DIES: dict[str, Setting] = {"channels": 2, "ways": 2, "blocks": 64, "pages": 32}
PAGE = DIES | {"ftl": "page", "over_provision": 20}


def _rising(
    sim: Simulator,
    work: str,
    name: str,
    values: Sequence[Setting],
    figure: Callable[[Result], float],
    drive: dict[str, Setting],
) -> Iterator[Point]:
    """The figure at each value, beside that at the one before."""
    found = [sim.run(work, **(drive | {name: value})) for value in values]
    for less, more in zip(found, found[1:], strict=False):
        yield point(figure(less), figure(more), less, more)


@BOOK.law(
    "more-over-provision",
    "More over-provisioning, less amplification.",
    "Desnoyers 2012",
    0.0,
    AT_MOST,
)
def _over_provision(sim: Simulator) -> Iterator[Point]:
    for ftl in ("page", "dftl"):
        for pattern in ("uniform", "zipf=0.99"):
            yield from _rising(
                sim,
                f"--pattern {pattern} --precondition 5 --requests 40000",
                "over_provision",
                (7, 12, 20, 35, 60, 100),
                lambda got: got.amplification,
                DIES | {"ftl": ftl},
            )


@BOOK.law("more-channels", "More channels, more requests a second.", MORE, 0.0, AT_LEAST)
def _channels(sim: Simulator) -> Iterator[Point]:
    for work in ("--reads 100", "--reads 50"):
        yield from _rising(
            sim,
            f"{work} --precondition fill --requests 20000 --depth 32",
            "channels",
            (1, 2, 3, 4, 8),
            lambda got: got.iops,
            PAGE,
        )


@BOOK.law("more-ways", "More ways, more requests a second.", MORE, 0.01, AT_LEAST)
def _ways(sim: Simulator) -> Iterator[Point]:
    for work in ("--reads 100", "--reads 50"):
        yield from _rising(
            sim,
            f"{work} --precondition fill --requests 20000 --depth 32",
            "ways",
            (1, 2, 3, 4, 8),
            lambda got: got.iops,
            PAGE,
        )


@BOOK.law("more-depth", "More requests in flight, more requests a second.", MORE, 0.01, AT_LEAST)
def _depth(sim: Simulator) -> Iterator[Point]:
    for drive in (PAGE, DIES):
        found = [
            sim.run(f"--precondition fill --reads 70 --requests 20000 --depth {depth}", **drive)
            for depth in (1, 2, 4, 16, 64)
        ]
        for less, more in zip(found, found[1:], strict=False):
            yield point(less.iops, more.iops, less, more)


@BOOK.law(
    "longer-times",
    "A longer time of any operation, no more requests a second.",
    MORE,
    0.005,
    AT_MOST,
)
def _times(sim: Simulator) -> Iterator[Point]:
    work = "--precondition 1 --reads 40 --requests 15000 --depth 8"
    for name, values in (
        ("t_read", (20_000, 60_000, 200_000)),
        ("t_prog", (100_000, 444_278, 900_000)),
        ("t_erase", (1_000_000, 3_500_000, 20_000_000)),
        ("t_xfer", (5_000, 30_833, 100_000)),
        ("t_cmd", (100, 2_500, 20_000)),
        ("t_fw_page", (0, 10_000, 100_000)),
        ("t_link", (0, 10_000, 200_000)),
    ):
        yield from _rising(sim, work, name, values, lambda got: got.iops, PAGE)


@BOOK.law("more-load", "An open loop of a higher rate waits longer.", "M/G/1", 0.0, AT_LEAST)
def _load(sim: Simulator) -> Iterator[Point]:
    found = [
        sim.run(f"--precondition fill --reads 100 --requests 40000 --rate {rate}", **PAGE)
        for rate in (5_000, 10_000, 20_000, 30_000)
    ]
    for less, more in zip(found, found[1:], strict=False):
        yield point(less.ns("read"), more.ns("read"), less, more)


@BOOK.law("more-cores", "More cores, more requests a second.", MORE, 0.001, AT_LEAST)
def _cores(sim: Simulator) -> Iterator[Point]:
    yield from _rising(
        sim,
        "--precondition fill --reads 100 --requests 20000 --depth 64",
        "cores",
        (1, 2, 4, 8),
        lambda got: got.iops,
        PAGE | {"t_fw_read": 50_000},
    )


@BOOK.law(
    "more-cache",
    "A larger cache of the map has more hits.",
    "inclusion of LRU's stack (Mattson 1970), which a segmented LRU has to a per cent",
    0.01,
    AT_LEAST,
)
def _cache(sim: Simulator) -> Iterator[Point]:
    for pattern in ("uniform", "zipf=0.99"):
        yield from _rising(
            sim,
            f"--pattern {pattern} --precondition fill --reads 50 --requests 20000",
            "map_cache",
            (1024, 4096, 16384, 65536),
            lambda got: got.count("map_hits"),
            PAGE | {"ftl": "dftl", "over_provision": 50},
        )


@BOOK.law(
    "more-cache-less-map",
    "A larger cache of the map, fewer map pages programmed.",
    MORE,
    0.02,
    AT_MOST,
)
def _cache_map(sim: Simulator) -> Iterator[Point]:
    yield from _rising(
        sim,
        "--pattern zipf=0.99 --precondition fill --requests 20000",
        "map_cache",
        (1024, 4096, 16384, 65536),
        lambda got: got.count("prog_map"),
        PAGE | {"ftl": "dftl", "over_provision": 50},
    )


@BOOK.law(
    "more-logs",
    "FAST with more log blocks has fewer full merges.",
    "Lee et al. 2007, figure 8",
    0.02,
    AT_MOST,
)
def _logs(sim: Simulator) -> Iterator[Point]:
    for pattern in ("uniform", "zipf=0.99"):
        yield from _rising(
            sim,
            f"--pattern {pattern} --precondition fill --requests 8000",
            "log_blocks",
            (2, 5, 10, 20),
            lambda got: got.count("merge_full"),
            DIES | {"ftl": "fast", "pages": 16, "over_provision": 40},
        )


@BOOK.law("more-reads-suspend", "Suspension makes reads among writes faster.", MORE, 0.0, AT_MOST)
def _suspend(sim: Simulator) -> Iterator[Point]:
    for drive in (PAGE, DIES):
        yield from _rising(
            sim,
            "--precondition fill --reads 70 --requests 20000 --depth 16",
            "suspend",
            ("off", "on"),
            lambda got: got.ns("read"),
            drive,
        )


@BOOK.law(
    "cache-gains", "The second register makes no saturated drive slower.", MORE, 0.01, AT_LEAST
)
def _second_register(sim: Simulator) -> Iterator[Point]:
    for work in ("--reads 100", "--reads 0", "--reads 50"):
        yield from _rising(
            sim,
            f"{work} --pattern sequential --precondition fill --requests 10000 --depth 64",
            "cache",
            ("off", "on"),
            lambda got: got.iops,
            PAGE,
        )


@BOOK.law("more-buffer", "A larger buffer makes no burst slower.", MORE, 0.0, AT_MOST)
def _buffer(sim: Simulator) -> Iterator[Point]:
    yield from _rising(
        sim,
        "--pattern uniform --requests 3000 --depth 4",
        "write_buffer",
        ("64K", "256K", "1M", "4M"),
        lambda got: got.ns("write"),
        PAGE | {"ack": "buffer"},
    )


@BOOK.law("more-retries", "More retries of worn blocks, slower reads.", MORE, 0.0, AT_LEAST)
def _retries(sim: Simulator) -> Iterator[Point]:
    yield from _rising(
        sim,
        "--precondition 3 --reads 100 --requests 5000 --depth 4",
        "read_retries",
        (0, 2, 5, 10),
        lambda got: got.ns("read"),
        PAGE | {"endurance": 10},
    )


@BOOK.law("more-trims", "More trims, less amplification.", "Frankie et al. 2012", 0.0, AT_MOST)
def _trims(sim: Simulator) -> Iterator[Point]:
    found = [
        sim.run(f"--trims {percent} --precondition fill --requests 100000", **PAGE)
        for percent in (0, 5, 15, 30, 50)
    ]
    for less, more in zip(found, found[1:], strict=False):
        yield point(less.amplification, more.amplification, less, more)


@BOOK.law(
    "greedy-beats-fifo",
    "Uniform writes: greedy copies no more than FIFO.",
    "Desnoyers 2012",
    0.0,
    AT_MOST,
)
def _greedy(sim: Simulator) -> Iterator[Point]:
    for percent in (7, 15, 30):
        yield from _rising(
            sim,
            "--precondition 4 --requests 40000",
            "gc_policy",
            ("fifo", "greedy"),
            lambda got: got.amplification,
            PAGE | {"over_provision": percent},
        )


@BOOK.law(
    "page-beats-block",
    "Random writes: a page map erases less than FAST, FAST less than a block map.",
    "Lee et al. 2007; DFTL, figure 7",
    0.0,
    AT_MOST,
)
def _maps(sim: Simulator) -> Iterator[Point]:
    for pattern in ("uniform", "zipf=0.99"):
        yield from _rising(
            sim,
            f"--pattern {pattern} --precondition fill --requests 6000",
            "ftl",
            ("block", "fast", "page"),
            lambda got: sum(got.count(f"erase_{c}") for c in ("host", "clean", "merge")),
            DIES | {"pages": 16, "over_provision": 20, "log_blocks": 10},
        )
