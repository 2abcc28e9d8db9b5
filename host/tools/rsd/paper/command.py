# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of `./rsd paper`."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from rsd import artifacts
from rsd.artifacts import OUTPUTS, REPOSITORY
from rsd.bench.base import Context
from rsd.cache import Cache
from rsd.cluster import options
from rsd.errors import RsdError, naming
from rsd.guest_run import add_install_argument
from rsd.paper import hfm, oftl, redo, risa, sfs
from rsd.paper.claim import Claim, Limit, Verdict
from rsd.paper.cost import cpu_minutes
from rsd.paper.entry import DEFAULT, Entry, Paper, Scale
from rsd.paper.record import ONE_RUN, Run, newest, number, order, record
from rsd.progress import Progress

PAPERS = {paper.name: paper for paper in (redo.PAPER, risa.PAPER, sfs.PAPER, oftl.PAPER, hfm.PAPER)}
DEFAULT_OUT = OUTPUTS / "paper"
PLAIN_WIDTH = 170
COLOURS = {Verdict.REPRODUCED: "green", Verdict.DIRECTION: "yellow", Verdict.NOT: "bold red"}
LIVE = (20, 90)
# Beside figures: all that a run has of them
ALL = "all"

Found = dict[str, list[Claim | Limit]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `paper`."""
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"The paper: {', '.join(PAPERS)}.")
    parser.add_argument(
        "figure",
        nargs="*",
        metavar="FIGURE",
        help="Measure these of its tables and figures only, such as table1 (default: all that can"
        " be measured).",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="Print every table and figure of the papers, and what each needs. Run nothing.",
    )
    parser.add_argument(
        "--capacities",
        type=float,
        default=DEFAULT.capacities,
        metavar="N",
        help="Write REDO's drive full N times before a benchmark counts, and RISA's an eighth as"
        f" often in all (default: {DEFAULT.capacities:g}).",
    )
    parser.add_argument(
        "--live",
        type=int,
        default=DEFAULT.live,
        metavar="PERCENT",
        help=f"Let PERCENT of the flash hold data meanwhile, {LIVE[0]} to {LIVE[1]}"
        f" (default: {DEFAULT.live}).",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="Keep the figures in docs/results, and show them in docs/papers.md. Figures that are"
        " not measured now stay there as they were recorded last.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=DEFAULT_OUT,
        metavar="DIR",
        help="Write NAME.json and NAME.html there (default: build/paper).",
    )
    add_install_argument(parser)
    options.add_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure and print. 0 if every row ran, whatever its verdict."""
    if arguments.list:
        _print_list(arguments.name)
        return 0
    if arguments.name is None:
        raise RsdError(f"NAME is missing: there is {', '.join(PAPERS)}", "./rsd paper --list")
    paper = _paper(arguments.name)
    entries = _chosen(paper, arguments.figure)
    scale = _scale(arguments)
    options.check(arguments)
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RsdError(
            f"--out {arguments.out}: {error.strerror}", "name another directory"
        ) from error
    progress = Progress()
    cache = Cache()
    artifacts.install_packages(cache, progress, install=not arguments.no_install)
    context = Context(artifacts.ensure(cache, progress), cache, progress)
    words = _words(paper, [entry.name for entry in entries], scale)
    units = {unit.key: unit for entry in entries for unit in entry.units(context, scale)}
    if options.handle(arguments, words, [*units.values()], context.built, cache, progress):
        return 0
    found: Found = {}
    for entry in entries:
        assert entry.run is not None
        with progress.step(f"{paper.name}, {entry.name}"):
            found[entry.name] = entry.run(context, scale)
    print_table(found)
    data, page = arguments.out / f"{paper.name}.json", arguments.out / f"{paper.name}.html"
    with naming(arguments.out):
        content = _content(paper, scale, found, context)
        data.write_text(json.dumps(content, indent=2) + "\n")
        from rsd.paper.page import write  # matplotlib takes a second to load

        write(paper, found, page)
    progress.say(f"figures: {data}; page: {page}")
    if arguments.record:
        cost = _cost(entries, context, scale)
        progress.say(f"recorded: {record(REPOSITORY, {**content, 'cpu_minutes': cost})}")
    return 0


def _paper(name: str) -> Paper:
    if name not in PAPERS:
        raise RsdError(
            f"unknown paper {name!r}: there is {', '.join(PAPERS)}", "./rsd paper --list"
        )
    return PAPERS[name]


def _chosen(paper: Paper, names: list[str]) -> list[Entry]:
    """What is named, or all that can be measured. Raises RsdError for what cannot be."""
    by_name = {entry.name: entry for entry in paper.entries}
    help_ = f"./rsd paper --list {paper.name}"
    for name in names:
        if name not in by_name:
            raise RsdError(f"{paper.name} has no {name!r}: there is {', '.join(by_name)}", help_)
        if by_name[name].run is None:
            raise RsdError(
                f"{paper.name} {name} cannot be measured: {by_name[name].missing}", help_
            )
    return [e for e in paper.entries if e.run is not None and (not names or e.name in names)]


def _scale(arguments: argparse.Namespace) -> Scale:
    if not 0 < arguments.capacities <= 1000:
        raise RsdError(f"--capacities {arguments.capacities:g}: allowed is more than 0, to 1000")
    if not LIVE[0] <= arguments.live <= LIVE[1]:
        raise RsdError(f"--live {arguments.live}: allowed is {LIVE[0]} to {LIVE[1]}")
    return Scale(arguments.capacities, arguments.live)


def _cost(entries: list[Entry], context: Context, scale: Scale) -> dict[str, float]:
    """CPU minutes by figure, of those that have guests; and of all of them, as ALL."""
    units = {entry.name: [*entry.units(context, scale)] for entry in entries}
    together = [unit for some in units.values() for unit in some]
    return {
        name: round(cpu_minutes(some, context.cache), 1)
        for name, some in {**units, ALL: together}.items()
        if some
    }


def _print_list(name: str | None) -> None:
    for paper in PAPERS.values() if name is None else (_paper(name),):
        print(f"{paper.name}: {paper.reference}")
        runs = newest(REPOSITORY, paper.name)
        for entry in paper.entries:
            state = "" if entry.run else f"; not measured: {entry.missing}"
            print(f"  {entry.name:9} {entry.shows}{state}{_recorded_cost(entry.name, runs)}")


def _recorded_cost(figure: str, runs: list[Run]) -> str:
    """What its guests took when it was recorded last."""
    for run in runs:
        if figure in run["figures"] and figure in (cost := run.get("cpu_minutes", {})):
            return f"; {cost[figure]:.1f} CPU minutes on {run['date']}"
    return ""


def print_table(found: Found) -> None:
    """A row a claim, with the paper's values and ours."""
    tty = sys.stdout.isatty()
    console = Console() if tty else Console(width=PLAIN_WIDTH)
    table = Table(box=box.SIMPLE_HEAD if tty else box.ASCII2, pad_edge=False)
    for title in ("figure", "what", "the paper", "here", "beside", "verdict"):
        table.add_column(title)
    notes = []
    for name, claims in found.items():
        for claim in claims:
            verdict = f"[{COLOURS[claim.verdict]}]{claim.verdict.value}[/]"
            table.add_row(name, claim.what, *_cells(claim), verdict)
            if claim.note:
                notes.append(f"{name}, {claim.what}: {claim.note}")
        table.add_section()
    console.print(table)
    for note in notes:
        console.print(note, markup=False, highlight=False)


def _cells(claim: Claim | Limit) -> tuple[str, str, str]:
    """The paper's values, ours, those beside; in brackets in parts of the reference's."""
    if isinstance(claim, Limit):
        return f"under {claim.limit:g}", f"{claim.measured:.3g}", ""
    base = claim.measured.get(claim.reference or "")

    def ours(values: Any) -> str:
        return "\n".join(
            f"{system}: {number(value)}" + (f" ({value / base:.2f})" if base else "")
            for system, value in values.items()
        )

    if claim.ranks:
        return order(dict(claim.paper)), ours(claim.measured), ours(claim.beside)
    parts = claim.parts(claim.paper)
    paper = "\n".join(
        f"{system}: {number(value)}" + (f" ({parts[system]:.2f})" if claim.reference else "")
        for system, value in claim.paper.items()
    )
    return paper, ours(claim.measured), ours(claim.beside)


def _words(paper: Paper, figures: list[str], scale: Scale) -> list[str]:
    """What measures the same again, after ./rsd."""
    words = ["paper", paper.name]
    if figures != [entry.name for entry in paper.entries if entry.run]:
        words += figures
    if scale.capacities != DEFAULT.capacities:
        words += ["--capacities", f"{scale.capacities:g}"]
    if scale.live != DEFAULT.live:
        words += ["--live", str(scale.live)]
    return words


def _content(paper: Paper, scale: Scale, found: Found, context: Context) -> dict[str, Any]:
    return {
        "schema": ONE_RUN,
        "paper": paper.name,
        "command": " ".join(["./rsd", *_words(paper, list(found), scale)]),
        "scale": asdict(scale),
        "figures": {
            name: [{**asdict(claim), "verdict": claim.verdict.value} for claim in claims]
            for name, claims in found.items()
        },
        "hashes": dict(context.built.hashes),
    }
