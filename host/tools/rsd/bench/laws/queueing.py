# SPDX-License-Identifier: GPL-2.0-or-later
"""Laws: what waits, and how long."""

import random
from collections.abc import Iterator

from rsd.bench.laws.base import (
    AT_LEAST,
    AT_MOST,
    Access,
    Point,
    Simulator,
    book,
    models,
    point,
)

models()
from law_dies import PROGRAM, READ, Flash, Request, closed_loop  # noqa: E402

BOOK = book("queueing")
MD1 = "M/D/1: mean wait = rho s / (2 (1 - rho)) (Pollaczek 1930, Khinchine 1932)"
LITTLE = "Little 1961: N = X R"
UTILISATION = "utilisation law: busy time = completions x service time (Denning and Buzen 1978)"
EVENTS = "tests/model/law_dies.py: an event model of dies and buses"
CMD, XFER, TR, PROG, ERASE = 2_500, 30_833, 60_000, 444_278, 3_500_000
ALONE = CMD + TR + XFER
ONE_DIE = {"ftl": "page", "channels": 1, "ways": 1, "blocks": 64}


def waiting(load: float, service: float) -> float:
    """M/D/1: the mean time in the system, in the unit of `service`."""
    return service + load * service / (2 * (1 - load))


@BOOK.law("m-d-1-die", "Reads that come by chance to one die wait as in M/D/1.", MD1, 0.02)
def _die(sim: Simulator) -> Iterator[Point]:
    for load in (0.3, 0.6, 0.8):
        got = sim.run(
            f"--precondition fill --reads 100 --requests 400K --rate {round(load / ALONE * 1e9)}",
            **ONE_DIE,
        )
        yield point(waiting(load, ALONE), got.ns("read"), got)


@BOOK.law("m-d-1-core", "Commands that need nothing but a core wait as in M/D/1.", MD1, 0.02)
def _core(sim: Simulator) -> Iterator[Point]:
    for load in (0.2, 0.5, 0.8):
        got = sim.run(
            f"--reads 100 --requests 400K --rate {round(load / 10_000e-9)}",
            ftl="page",
            t_fw_read=10_000,
        )
        yield point(waiting(load, 10_000), got.ns("read"), got)


@BOOK.law("m-d-1-link", "Data that needs nothing but the link waits as in M/D/1.", MD1, 0.02)
def _link(sim: Simulator) -> Iterator[Point]:
    for load in (0.5, 0.8):
        got = sim.run(
            f"--reads 100 --requests 400K --rate {round(load / 4_000e-9)}",
            ftl="page",
            t_link=4_000,
        )
        yield point(waiting(load, 4_000), got.ns("read"), got)


@BOOK.law(
    "no-wait",
    "Under M/D/1 a share of 1 - rho does not wait: under a load of a half the median is the "
    "service time, as far as a histogram shows it.",
    "PASTA (Wolff 1982)",
    0.004,
)
def _no_wait(sim: Simulator) -> Iterator[Point]:
    got = sim.run("--reads 100 --requests 100K --rate 40000", ftl="page", t_fw_read=10_000)
    yield point(10_000, got.ns("read", "p50"), got)


@BOOK.law(
    "many-dies",
    "Reads that come by chance to C x 1 dies: C queues M/D/1, each with its share of the load.",
    "splitting of a Poisson process; " + MD1,
    0.02,
)
def _many_dies(sim: Simulator) -> Iterator[Point]:
    for channels in (2, 8):
        got = sim.run(
            f"--precondition fill --reads 100 --requests 400K --rate "
            f"{round(channels * 0.6 / ALONE * 1e9)}",
            ftl="page",
            channels=channels,
            ways=1,
            blocks=64,
        )
        yield point(waiting(0.6, ALONE), got.ns("read"), got)


@BOOK.law(
    "poisson",
    "Requests of an open loop come at the rate that was asked for, if the drive keeps up.",
    "README of rsdsim (--rate)",
    0.01,
)
def _poisson(sim: Simulator) -> Iterator[Point]:
    for rate in (1_000, 20_000, 100_000):
        got = sim.run(f"--precondition fill --reads 100 --requests 200K --rate {rate}", ftl="page")
        yield point(rate, got.iops, got)


@BOOK.law(
    "overload",
    "An open loop beyond saturation is served at the drive's own rate.",
    "utilisation is 1 at most",
    0.02,
)
def _overload(sim: Simulator) -> Iterator[Point]:
    got = sim.run("--precondition fill --reads 100 --requests 20000 --rate 50000", **ONE_DIE)
    yield point(1e9 / ALONE, got.iops, got)


@BOOK.law(
    "little", "Depth = throughput x mean latency, in a closed loop of any work.", LITTLE, 0.01
)
def _little(sim: Simulator) -> Iterator[Point]:
    for work, depth, drive in (
        ("--reads 100", 7, {"ftl": "page"}),
        ("--reads 50", 32, {"ftl": "page"}),
        ("--reads 30 --trims 5", 16, {"ftl": "page", "blocks": 32}),
        ("--reads 40", 32, {"reset": "erase"}),
        ("--reads 20 --size 16K", 8, {"ftl": "dftl", "blocks": 32}),
        ("", 64, {"write_buffer": "2M", "ack": "buffer"}),
    ):
        got = sim.run(
            f"--precondition fill {work} --requests 60000 --depth {depth}",
            channels=4,
            ways=2,
            over_provision=28,
            **drive,
        )
        yield point(depth, got.iops * got.mean_ns() / 1e9, got)


@BOOK.law(
    "little-open", "The same of an open loop: what is in the drive is rate x latency.", LITTLE, 0.02
)
def _little_open(sim: Simulator) -> Iterator[Point]:
    got = sim.run(
        f"--precondition fill --reads 100 --requests 300K --rate {round(0.5 / ALONE * 1e9)}",
        **ONE_DIE,
    )
    waits = got.count("queue_wait_ns") / got.seconds / 1e9
    busy = got.count("die_busy_ns") / got.seconds / 1e9
    yield point(got.iops * got.ns("read") / 1e9, waits + busy, got)


@BOOK.law("one-at-a-time", "At depth 1 requests a second are 1 / mean latency.", LITTLE, 1e-6)
def _one_at_a_time(sim: Simulator) -> Iterator[Point]:
    for ftl in ("rsd", "page", "block", "fast", "dftl"):
        got = sim.run(
            "--precondition fill --reads 50 --requests 3000 --depth 1",
            ftl=ftl,
            channels=2,
            ways=2,
            blocks=64,
            pages=32,
            over_provision=28,
        )
        yield point(1e9 / got.mean_ns(), got.iops, got)


@BOOK.law(
    "die-utilisation",
    "Dies are busy for the sum of their operations' times, if no bus is shared.",
    UTILISATION,
)
def _die_utilisation(sim: Simulator) -> Iterator[Point]:
    for ftl in ("page", "rsd", "block", "fast"):
        got = sim.run(
            "--precondition 1 --reads 30 --requests 20000 --depth 16",
            ftl=ftl,
            channels=4,
            ways=1,
            blocks=64,
            pages=32,
            over_provision=20,
            wl_threshold=0,
        )
        erases = sum(got.count(f"erase_{c}") for c in CAUSES)
        # what is in flight at the end of preconditioning is counted whole when it ends
        total = (
            got.count("nand_reads") * ALONE
            + got.count("nand_programs") * (CMD + XFER + PROG)
            + erases * (CMD + ERASE)
        )
        yield Point(total, got.count("die_busy_ns"), (got.command,))


CAUSES = ("host", "clean", "merge", "wear", "map", "pad")


@BOOK.law(
    "bus-utilisation",
    "Buses are busy for tCMD an operation and tX a page.",
    UTILISATION,
)
def _bus_utilisation(sim: Simulator) -> Iterator[Point]:
    for ftl in ("page", "rsd", "block", "fast"):
        got = sim.run(
            "--precondition 1 --reads 30 --requests 20000 --depth 16",
            ftl=ftl,
            channels=2,
            ways=4,
            blocks=64,
            pages=32,
            over_provision=20,
            wl_threshold=0,
        )
        erases = sum(got.count(f"erase_{c}") for c in CAUSES)
        pages = got.count("nand_reads", "nand_programs")
        yield point(pages * (CMD + XFER) + erases * CMD, got.count("bus_busy_ns"), got)


@BOOK.law(
    "busy-bound",
    "No die and no bus is busy for more than the time that passes.",
    "utilisation is 1 at most",
    0.005,
    AT_MOST,
)
def _busy_bound(sim: Simulator) -> Iterator[Point]:
    for ftl in ("page", "rsd", "dftl"):
        got = sim.run(
            "--precondition 1 --reads 30 --requests 30000 --depth 256",
            ftl=ftl,
            channels=2,
            ways=3,
            blocks=64,
            over_provision=20,
        )
        yield point(6, got.count("die_busy_ns") / got.seconds / 1e9, got)
        yield point(2, got.count("bus_busy_ns") / got.seconds / 1e9, got)


def _accesses(rng: random.Random, lpns: int, share: int, count: int) -> list[Access]:
    return [
        (0, rng.randrange(lpns), 1, "read" if rng.random() * 100 < share else "write")
        for _ in range(count)
    ]


CELLS = ((1, 1, 4), (1, 4, 2), (1, 4, 8), (2, 2, 6), (4, 1, 16), (4, 4, 4), (4, 4, 32), (8, 4, 64))


@BOOK.law(
    "event-reads",
    "Random reads take as long as in the event model, at any depth and geometry.",
    EVENTS,
    1e-6,
)
def _event_reads(sim: Simulator) -> Iterator[Point]:
    for channels, ways, depth in CELLS:
        flash = Flash(channels, ways)
        rng = random.Random(channels * 100 + ways * 10 + depth)
        lpns = flash.dies * 16 * 32
        work = _accesses(rng, lpns, 100, 4000)
        got = sim.run(
            f"{sim.trace(work)} --precondition fill --depth {depth}",
            ftl="page",
            channels=channels,
            ways=ways,
            blocks=32,
            pages=32,
            over_provision=28,
        )
        # a fill in sequence puts neighbours on neighbouring dies
        requests = [Request(((block % flash.dies, READ),)) for _, block, _, _ in work]
        outcome = closed_loop(flash, requests, depth)
        yield point(outcome.mean, got.ns("read"), got)
        yield point(outcome.elapsed / 1e9, got.seconds, got)


@BOOK.law(
    "event-writes",
    "Writes to a new drive take as long as in the event model, page after page on the next die.",
    EVENTS,
    1e-6,
)
def _event_writes(sim: Simulator) -> Iterator[Point]:
    for channels, ways, depth in CELLS:
        flash = Flash(channels, ways)
        rng = random.Random(channels * 100 + ways * 10 + depth)
        work = _accesses(rng, 256, 0, min(2000, flash.dies * 32 * 30))
        got = sim.run(
            f"{sim.trace(work)} --depth {depth}",
            ftl="page",
            channels=channels,
            ways=ways,
            blocks=64,
            pages=64,
        )
        requests = [Request(((n % flash.dies, PROGRAM),)) for n in range(len(work))]
        outcome = closed_loop(flash, requests, depth)
        yield point(outcome.mean, got.ns("write"), got)
        yield point(outcome.elapsed / 1e9, got.seconds, got)


@BOOK.law(
    "event-mixed",
    "Reads and writes together take as long as in the event model.",
    EVENTS,
    0.01,
)
def _event_mixed(sim: Simulator) -> Iterator[Point]:
    for channels, ways, depth in CELLS:
        flash = Flash(channels, ways)
        rng = random.Random(channels * 100 + ways * 10 + depth)
        lpns = flash.dies * 16 * 64
        work = _accesses(rng, lpns, 60, 4000)
        got = sim.run(
            f"{sim.trace(work)} --precondition fill --depth {depth}",
            ftl="page",
            channels=channels,
            ways=ways,
            blocks=64,
            pages=64,
            over_provision=200,
            idle_erase=0,
        )
        # the drive's capacity decides at which die the first write comes
        user = int(got.content["precondition"]["filled_blocks"])
        where = [n % flash.dies for n in range(user)]
        following = user
        requests = []
        for _, block, _, kind in work:
            block %= user
            if kind == "write":
                where[block] = following % flash.dies
                following += 1
            requests.append(Request(((where[block], READ if kind == "read" else PROGRAM),)))
        outcome = closed_loop(flash, requests, depth)
        for kind in ("read", "write"):
            expected = outcome.mean_of([access[3] == kind for access in work])
            yield point(expected, got.ns(kind), got)


@BOOK.law(
    "global-queue",
    "One queue for the drive is never faster than one a way, and at depth 1 as fast.",
    "RISA figure 6",
    0.0,
    AT_LEAST,
)
def _global_queue(sim: Simulator) -> Iterator[Point]:
    for depth in (1, 4, 32):
        work = f"--precondition fill --reads 100 --requests 5000 --depth {depth}"
        slow = sim.run(work, ftl="page", queue="global")
        fast = sim.run(work, ftl="page", queue="way")
        yield point(slow.iops, fast.iops, slow, fast)
