# SPDX-License-Identifier: GPL-2.0-or-later
"""What is shown of a drive: tables of words, for a terminal and for a page."""

from dataclasses import dataclass

import numpy

from rsd.top.look import Look

CAUSES = ("host", "clean", "merge", "wear", "map", "pad")
WEAR_BARS = 8
BAR = 20


@dataclass(frozen=True)
class Table:
    """A table; numbers stand at the right of their columns, all but the first one's."""

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


@dataclass(frozen=True)
class View:
    """All that is shown of a moment, since the look before if there was one."""

    title: str
    tables: list[Table]


def view(name: str, before: Look, now: Look, *, real_time: bool) -> View:
    """The same drive twice. `real_time`: its clock is ours, so that busy dies can be counted."""
    tables = [_work(before, now, real_time=real_time), _causes(before, now), _dies(before, now)]
    if now.zones:
        tables.append(Table("Zones", ("state", "zones"), _counted(now.zones)))
    tables.append(Table("Blocks of flash", ("state", "blocks"), _counted(now.blocks)))
    tables.append(_wear(now))
    return View(name, tables)


def _ratio(above: int, below: int, form: str = "{:.3f}") -> str:
    return form.format(above / below) if below else "-"


def programs(counters: dict[str, int]) -> int:
    return sum(counters[f"prog_{cause}"] for cause in CAUSES)


def _work(before: Look, now: Look, *, real_time: bool) -> Table:
    """What the host asked for, and how the flash kept up."""
    last = {name: now.counters[name] - before.counters[name] for name in now.counters}
    rows = []

    def row(title: str, *values: str) -> None:
        rows.append((title, *values))

    for title, name in (
        ("read by the host, 4 KiB", "host_read_pages"),
        ("written by the host, 4 KiB", "host_write_pages"),
        ("zones reset", "zone_resets"),
    ):
        row(title, f"{last[name]:,}", f"{now.counters[name]:,}")
    both = (last, now.counters)
    row("write amplification", *(_ratio(programs(c), c["host_write_pages"]) for c in both))

    def steps(counters: dict[str, int]) -> int:
        erases = sum(counters[f"erase_{cause}"] for cause in CAUSES)
        return counters["nand_reads"] + counters["nand_programs"] + erases

    row(
        "mean wait for a die, us",
        *(_ratio(c["queue_wait_ns"], 1000 * steps(c), "{:,.1f}") for c in both),
    )
    # Both are sums over time: their ratio is that of the means, whatever the time was.
    row(
        "operations that wait for each busy die",
        *(_ratio(c["queue_wait_ns"], c["die_busy_ns"], "{:.2f}") for c in both),
    )
    if real_time:
        busy = last["die_busy_ns"] / max(1, (now.at_s - before.at_s) * 1e9)
        row(f"busy dies, of {len(now.erases)}", f"{busy:.1f}", "")
    return Table("Work", ("", "since the last look", "in all"), rows)


def _causes(before: Look, now: Look) -> Table:
    rows = []
    for cause in CAUSES:
        names = [f"{what}_{cause}" for what in ("read", "prog", "erase")]
        if any(now.counters[name] for name in names):
            last = (f"{now.counters[name] - before.counters[name]:,}" for name in names)
            rows.append((cause, *last))
    return Table("For whom, since the last look", ("cause", "reads", "programs", "erases"), rows)


def _dies(before: Look, now: Look) -> Table:
    """Each die's work; the longest bar is that of the die that programmed most.

    A block is taken to have been full when it was erased.
    """
    erased = now.erases - before.erases
    worked = (now.programmed - before.programmed + erased * now.block_pages).sum(axis=1)
    most = max(1, int(worked.max()))
    rows = []
    for die, pages in enumerate(worked):
        figures = (pages, erased[die].sum(), now.erases[die].sum(), now.programmed[die].sum())
        rows.append(
            (
                f"ch {die % now.channels} way {die // now.channels}",
                *(f"{int(figure):,}" for figure in figures),
                "█" * round(BAR * int(pages) / most),
            )
        )
    return Table(
        "Dies: 4 KiB programmed and erases since the last look, and in all",
        ("die", "programmed", "erases", "all erases", "held", ""),
        rows,
    )


def _counted(counts: dict[str, int]) -> list[tuple[str, ...]]:
    return [(name, f"{number:,}") for name, number in sorted(counts.items()) if number]


def _wear(now: Look) -> Table:
    """How many blocks were erased how often."""
    least, most = int(now.wear.min()), int(now.wear.max())
    width = (most - least) // WEAR_BARS + 1
    counts = numpy.bincount((now.wear - least) // width)
    rows = []
    for number, count in enumerate(counts):
        low = least + number * width
        label = f"{low}" if width == 1 else f"{low} to {low + width - 1}"
        rows.append((label, f"{count:,}", "█" * round(BAR * int(count) / int(counts.max()))))
    return Table("Erases of a block", ("erases", "blocks", ""), rows)
