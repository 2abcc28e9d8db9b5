# SPDX-License-Identifier: GPL-2.0-or-later
"""OFTL (FAST 2013): tables 2 and 3, figures 7 to 9.

OFTL replays what the workloads wrote and closed: each closing is an fsync. What the flash is
written is counted in the drive, and is divided by what was asked.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rsd.bench.base import Context
from rsd.compare import kept
from rsd.compare.figures import counters, read_json
from rsd.compare.stack_figures import CAUSES, run_seconds
from rsd.paper import oftl_metadata, oftl_pages, oftl_window, oftl_work
from rsd.paper.claim import Claim, Limit
from rsd.paper.entry import Entry, Paper, Scale
from rsd.paper.oftl_cell import BESIDE, MODES, OFSS, SYSTEMS, Plan, unit
from rsd.paper.oftl_work import PAGE, WORKLOADS
from rsd.parallel import run_all

# Beside the systems: what any system would have to write, of the bytes alone
LEAST = "whole pages of each flush"

# Table 3, by workload and mode: Ext3, Ext2, Btrfs, OFSS
COUNTS = {
    "iphoto": {"sync": (2.7519, 5.2292, 8.9320, 1.2304), "async": (0.2024, 0.1206, 0.2602, 0.1428)},
    "ipages": {"sync": (2.3711, 2.7763, 6.1918, 1.7143), "async": (0.0267, 0.0182, 0.0313, 0.0097)},
    "lasr-1": {"sync": (3.7777, 1.8656, 6.1207, 1.2081), "async": (0.1127, 0.0617, 0.1992, 0.0636)},
    "lasr-2": {"sync": (3.7964, 1.7143, 7.2232, 2.1302), "async": (0.2147, 0.1892, 0.5822, 0.1719)},
    "lasr-3": {
        "sync": (11.5083, 2.4258, 6.0922, 1.3935),
        "async": (0.1602, 0.1184, 0.2823, 0.1345),
    },
    "tpc-c": {"sync": (3.3749, 3.8604, 6.5125, 1.0696), "async": (0.0666, 0.0321, 0.0336, 0.0352)},
}
SIZES = {
    "iphoto": {"sync": (3.5354, 2.4030, 5.6071, 1.1786), "async": (1.8725, 0.9163, 1.0595, 0.8916)},
    "ipages": {
        "sync": (9.8083, 5.3058, 23.1998, 3.5739),
        "async": (2.0491, 1.0137, 1.0914, 0.9758),
    },
    "lasr-1": {
        "sync": (19.2951, 6.3874, 33.3570, 4.0123),
        "async": (2.5593, 1.1445, 2.0008, 0.9779),
    },
    "lasr-2": {
        "sync": (13.5078, 4.2734, 32.9221, 4.4045),
        "async": (3.2976, 1.5034, 3.0874, 1.1021),
    },
    "lasr-3": {
        "sync": (53.7069, 9.4100, 44.7353, 5.2492),
        "async": (4.7793, 2.0676, 3.4276, 1.2647),
    },
    "tpc-c": {"sync": (4.9863, 2.3813, 10.1339, 1.0461), "async": (1.8068, 0.7050, 0.8980, 0.6822)},
}
SECONDS = {
    "iphoto": {
        "sync": (487.744, 325.571, 770.942, 64.146),
        "async": (257.356, 126.185, 144.671, 33.264),
    },
    "ipages": {"sync": (37.174, 20.538, 87.451, 6.837), "async": (7.764, 3.833, 4.107, 0.732)},
    "lasr-1": {"sync": (16.959, 5.633, 29.246, 2.884), "async": (2.245, 1.044, 1.744, 0.928)},
    "lasr-2": {"sync": (60.167, 19.202, 145.612, 13.332), "async": (14.784, 6.761, 13.739, 4.065)},
    "lasr-3": {"sync": (27.083, 4.768, 2.263, 2.095), "async": (2.413, 1.044, 1.715, 0.835)},
    "tpc-c": {"sync": (22.532, 10.800, 45.711, 2.588), "async": (8.196, 3.201, 4.044, 1.380)},
}


@dataclass(frozen=True)
class Cell:
    """A workload on a system: what the drive was written, in parts of what was asked; the time."""

    count: float
    size: float
    seconds: float


def plans() -> list[Plan]:
    """Each workload on each system, in both modes."""
    return [
        Plan(system, work, mode)
        for work in WORKLOADS
        for mode in MODES
        for system in (*SYSTEMS, *BESIDE)
    ]


def _read(plan: Plan, entry: Path) -> Cell:
    raw = entry / kept.RAW
    before, after = (
        counters(read_json(raw / when / "counters.json")) for when in ("before", "after")
    )
    work = oftl_work.writes(plan.work)
    pages = sum(after[f"prog_{cause}"] - before[f"prog_{cause}"] for cause in CAUSES)
    commands = after["host_write_cmds"] - before["host_write_cmds"]
    asked = sum(one.length for one in work)
    return Cell(commands / len(work), pages * PAGE / asked, run_seconds(raw))


def measure(context: Context) -> dict[Plan, Cell]:
    """All of table 3, as many guests at once as there are cores. Raises RsdError."""
    todo = plans()
    found = run_all([functools.partial(unit(plan, context).run, context.cache) for plan in todo])
    return {plan: _read(plan, entry) for plan, entry in zip(todo, found, strict=True)}


def table2(context: Context, scale: Scale) -> list[Claim | Limit]:
    """What the generators make of each workload, beside what the traces were like."""
    ours = {name: oftl_work.statistics(oftl_work.writes(name)) for name in WORKLOADS}

    def claim(
        what: str, unit: str, theirs: Callable[[oftl_work.Workload], float], attribute: str
    ) -> Claim:
        return Claim(
            what,
            unit,
            {work.title: theirs(work) for work in WORKLOADS.values()},
            {work.title: getattr(ours[name], attribute) for name, work in WORKLOADS.items()},
        )

    return [
        claim("bytes a write", "bytes", lambda work: work.mean, "mean"),
        claim("writes a flush", "", lambda work: work.burst, "burst"),
        claim("writes that are not of whole pages", "%", lambda work: work.unaligned, "unaligned"),
    ]


def _claim(
    found: Mapping[Plan, Cell],
    what: str,
    unit: str,
    mode: str,
    works: Sequence[str],
    paper: Mapping[str, Mapping[str, Sequence[float]]],
    of: Callable[[Cell], float],
    reference: str | None = None,
    least: float | None = None,
) -> Claim:
    """The mean over workloads, of each system."""

    def mean(system: str) -> float:
        return fmean(of(found[Plan(system, work, mode)]) for work in works)

    theirs = zip(*(paper[work][mode] for work in works), strict=True)
    return Claim(
        f"{what}, {mode.upper()}",
        unit,
        dict(zip(SYSTEMS, map(fmean, theirs), strict=True)),
        {system: mean(system) for system in SYSTEMS},
        reference,
        {system: mean(system) for system in BESIDE} | ({} if least is None else {LEAST: least}),
    )


def table3(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Writes and bytes by what was asked, and the time."""
    found = measure(context)
    claims: list[Claim | Limit] = []
    chosen = {work.title: [name] for name, work in WORKLOADS.items()}
    for mode in MODES:
        for title, works in (chosen | {"mean of all": [*WORKLOADS]}).items():
            claim = functools.partial(_claim, found, mode=mode, works=works)
            least = fmean(
                oftl_work.least(oftl_work.writes(name), every_write=mode == "sync")
                for name in works
            )
            claims += [
                claim(
                    f"bytes by bytes asked, {title}",
                    "",
                    paper=SIZES,
                    of=lambda one: one.size,
                    least=least,
                ),
                claim(
                    f"writes by writes asked, {title}", "", paper=COUNTS, of=lambda one: one.count
                ),
            ]
        for title, works in chosen.items():
            claims.append(
                _claim(
                    found,
                    f"time, {title}",
                    "s",
                    mode,
                    works,
                    SECONDS,
                    lambda one: one.seconds,
                    reference=OFSS,
                )
            )
    return claims


PAPER = Paper(
    "oftl",
    "Y. Lu, J. Shu, W. Zheng: Extending the Lifetime of Flash-based Storage through Reducing Write "
    "Amplification from File Systems. USENIX FAST 2013",
    (
        Entry("table2", "six workloads: sizes, alignment, flushes", table2),
        Entry(
            "table3",
            "bytes written by bytes asked, SYNC and ASYNC",
            table3,
            units=lambda context, scale: [unit(plan, context) for plan in plans()],
        ),
        Entry(
            "figure7",
            "write amplification of metadata",
            lambda context, scale: oftl_metadata.figure7(context),
            units=lambda context, scale: oftl_metadata.units(context),
        ),
        Entry(
            "figure8",
            "write amplification by the size of a page",
            lambda context, scale: oftl_pages.figure8(context),
            units=lambda context, scale: oftl_pages.units(context),
        ),
        Entry(
            "figure9",
            "latency of I/Os beside the updating window's extensions",
            lambda context, scale: oftl_window.figure9(context),
            units=lambda context, scale: oftl_window.units(context),
        ),
    ),
)
