# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of `./rsd bench laws`."""

import argparse
import os
import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from rsd import sim
from rsd.bench.base import REPOSITORY, Context, Row
from rsd.bench.laws import page
from rsd.bench.laws.table import LAWS
from rsd.bench.laws.trial import Record, figure, random_trials, trials
from rsd.cache import Cache
from rsd.errors import RsdError
from rsd.progress import Progress

PLAIN_WIDTH = 200
# Traces that laws make: the commands that are printed name them.
TRACES = REPOSITORY / "build" / "bench" / "laws"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that only `./rsd bench laws` has."""
    group = parser.add_argument_group("of ./rsd bench laws")
    group.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="Try the laws with this in their name or subject only. Repeatable.",
    )
    group.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="Try N laws at a time (default: one for each processor).",
    )
    group.add_argument(
        "--random",
        type=int,
        default=0,
        metavar="N",
        help="Try N random settings besides, for which the laws are valid.",
    )
    group.add_argument(
        "--random-seed",
        type=int,
        default=1,
        metavar="SEED",
        help="The seed of these settings (default: 1).",
    )
    group.add_argument(
        "--commands", action="store_true", help="Print the commands of the figures shown, too."
    )


def main(arguments: argparse.Namespace) -> int:
    """Try the laws and print a table. 1 if one is violated, 0 otherwise."""
    names = [name for name in LAWS if not arguments.only or _wanted(name, arguments.only)]
    if not names and not arguments.random:
        raise RsdError(
            f"--only {' '.join(arguments.only)}: no law has that in its name or subject",
            f"there is {', '.join(LAWS)}",
        )
    if arguments.record and arguments.only:
        raise RsdError("--record is of all laws", "leave out --only")
    jobs = arguments.jobs or os.cpu_count() or 1
    if jobs < 1 or arguments.random < 0:
        raise RsdError("--jobs is 1 or more, --random 0 or more", "./rsd bench --help")
    progress = Progress()
    program = sim.ensure(Cache(), progress)
    found = _tried(names, program, jobs, progress)
    drawn: list[Record] = []
    if arguments.random:
        with progress.step("random settings") as step:
            tried = random_trials(
                arguments.random, arguments.random_seed, program.path, TRACES, jobs
            )
            for number, one in enumerate(tried, 1):
                step.detail(f"{number} of {arguments.random}")
                drawn.append(one)
    _print(found, drawn, arguments.commands)
    if arguments.record:
        progress.say(f"recorded: {page.record(REPOSITORY, found, drawn, program.identity)}")
    return int(any(not one.holds for one in [*found, *drawn]))


def laws(context: Context) -> list[Row]:
    """The laws as rows of `./rsd bench`, among other benches."""
    program = sim.ensure(context.cache, context.progress)
    found = _tried(list(LAWS), program, os.cpu_count() or 1, context.progress)
    return [
        Row(
            f"law {one.law}: {one.says}",
            one.must(),
            one.error or figure(one.got),
            one.got,
            "",
            "virtual",
            one.holds,
        )
        for one in found
    ]


def _wanted(name: str, texts: Sequence[str]) -> bool:
    return any(text in name or text in LAWS[name].subject for text in texts)


def _tried(
    names: Sequence[str], program: sim.Simulator, jobs: int, progress: Progress
) -> list[Record]:
    found = []
    with progress.step("laws") as step:
        for one in trials(names, program.path, TRACES, jobs):
            step.detail(f"{one.law}, {len(found) + 1} of {len(names)}")
            found.append(one)
    return found


def _print(found: Sequence[Record], drawn: Sequence[Record], commands: bool) -> None:
    tty = sys.stdout.isatty()
    console = Console() if tty else Console(width=PLAIN_WIDTH)
    table = Table(box=box.SIMPLE_HEAD if tty else box.ASCII2, pad_edge=False)
    for title in ("law", "source", "must be", "measured", "figures", ""):
        table.add_column(title)
    subject = ""
    for one in found:
        if one.subject != subject:
            table.add_section()
            subject = one.subject
        table.add_row(*_cells(one))
    for one in drawn:
        if not one.holds:
            table.add_row(*_cells(one))
    console.print(table)
    for one in [*found, *drawn]:
        if one.error or commands or not one.holds:
            console.print(f"{one.law}: {one.says}", markup=False, highlight=False, soft_wrap=True)
            for line in (one.error, *one.commands):
                if line:
                    console.print(f"    {line}", markup=False, highlight=False, soft_wrap=True)
    violated = [one for one in found if not one.holds]
    figures = sum(one.points for one in found)
    text = f"{len(found)} laws, {figures:,} figures: {len(violated) or 'none'} violated"
    if drawn:
        failed = sum(not one.holds for one in drawn)
        text += f"; {len(drawn)} random settings: {failed or 'none'} violated"
    console.print(text, markup=False, highlight=False)


def _cells(one: Record) -> tuple[str, ...]:
    verdict = "[green]holds[/]" if one.holds else "[bold red]VIOLATED[/]"
    got = "refused" if one.error else figure(one.got)
    return one.law, one.source.split(":")[0], one.must(), got, str(one.points), verdict
