# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of `./rsd compare`."""

import argparse
import functools
import itertools
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from rsd import artifacts
from rsd.artifacts import OUTPUTS, REPOSITORY, Artifacts
from rsd.cache import Cache
from rsd.cluster import options
from rsd.compare import own, record, results, table
from rsd.compare.benchmarks import BENCHMARKS
from rsd.compare.cells import ALL_CELLS, SYSTEMS, Level, applies
from rsd.compare.outlook import Outlook
from rsd.compare.run import Run, plans, run_plan
from rsd.compare.selection import select
from rsd.compare.stack_run import (
    REPETITIONS,
    StackPlan,
    agings,
    run_stack,
    stack_plans,
    unit,
)
from rsd.compare.stacks import STACKS
from rsd.errors import RsdError, naming
from rsd.guest_run import add_install_argument
from rsd.parallel import run_all
from rsd.progress import Progress

DEFAULT_OUT = OUTPUTS / "compare" / "latest"
MARK = "results.json"
CSV = "results.csv"
PLAIN_WIDTH = 150


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compare`."""
    level = parser.add_mutually_exclusive_group()
    level.add_argument(
        "--quick",
        dest="level",
        action="store_const",
        const=Level.QUICK,
        default=Level.DEFAULT,
        help="Measure less than the default, which takes about 4 minutes on 2 cores.",
    )
    level.add_argument(
        "--full",
        dest="level",
        action="store_const",
        const=Level.FULL,
        help="Measure everything, in hours. What is finished is kept, so that the command can be"
        " interrupted and started again.",
    )
    parser.add_argument(
        "--system",
        action="append",
        default=[],
        metavar="NAME",
        help="Measure this drive or file system only. Repeatable: "
        f"{', '.join((*SYSTEMS, *STACKS))}.",
    )
    parser.add_argument(
        "--workload",
        action="append",
        default=[],
        metavar="NAME",
        help="Measure this cell or benchmark only, or those whose names begin so. Repeatable.",
    )
    parser.add_argument(
        "--cold",
        action="store_true",
        help="Boot the guests of each second run, where the first goes on from the saved one. Both"
        " have to give the same bytes.",
    )
    parser.add_argument(
        "--benchmark",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="Run a benchmark of your own on the file systems (docs/comparing.md). Repeatable.",
    )
    parser.add_argument(
        "--list", action="store_true", help="Print what there is to measure, and run nothing."
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=DEFAULT_OUT,
        metavar="DIR",
        help="Write results.json, results.csv, report.html and raw/ there. An older comparison"
        " there is replaced (default: build/compare/latest).",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="Keep what the documents show in docs/results, docs/comparing.md and"
        " docs/compare.svg.",
    )
    add_install_argument(parser)
    options.add_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure, print, write. 1 if a cell failed or our runs differ, 0 otherwise."""
    own_benchmarks = [own.read(path) for path in arguments.benchmark]
    chosen = select(arguments.level, arguments.system, arguments.workload, own_benchmarks)
    if arguments.list:
        _print_list(arguments.level)
        return 0
    keep = arguments.level is Level.FULL
    options.check(arguments)
    if (arguments.snakemake or arguments.store or arguments.cell) and not keep:
        raise RsdError("--snakemake, --store and --cell are of --full", "add --full")
    progress = Progress()
    out = None if arguments.snakemake or arguments.cell else _fresh(arguments.out)
    cache = Cache()
    artifacts.install_packages(cache, progress, install=not arguments.no_install)
    built = artifacts.ensure(cache, progress)
    units = [
        unit(plan, built, cache, progress)
        for plan in stack_plans(chosen.benchmarks, Path(), keep=keep, cold=arguments.cold)
    ]
    if options.handle(arguments, _words(arguments), units, built, cache, progress):
        return 0
    assert out is not None
    started = time.monotonic()
    raw = out / "raw"
    on_stacks = stack_plans(chosen.benchmarks, raw, keep=keep, cold=arguments.cold)
    outlook = Outlook(on_stacks, built, cache) if keep else None
    todo: list[Callable[[], Run | None]] = [*agings(on_stacks, built, cache, progress)]
    todo += [
        functools.partial(run_plan, plan, built, cache, progress)
        for plan in plans(chosen.drives, chosen.cells, raw, keep=keep, cold=arguments.cold)
    ]
    todo += [
        functools.partial(_run_stack, plan, built, cache, progress, outlook) for plan in on_stacks
    ]
    if outlook:
        outlook.say(progress)
    runs = [run for run in run_all(todo) if run]
    content = results.results(runs, chosen.cells, built)
    content["configuration"]["command"] = shlex.join(["./rsd", *sys.argv[1:]])
    content["host"] = {"wall_s": round(time.monotonic() - started, 1)}
    # A file or a pipe has no width that could be too small.
    console = Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH)
    table.print_table(content, console)
    with naming(out):
        results.write(content, out / MARK)
        results.write_csv(content, out / CSV)
    from rsd.report import page  # matplotlib takes a second to load

    with naming(out), progress.step("report"):
        page.write(content, out / "report.html")
    if arguments.record:
        progress.say(f"the documents show {record.record(REPOSITORY, content)}")
    progress.say(f"figures: {out / MARK}; report: {out / 'report.html'}; raw output: {out / 'raw'}")
    return _verdict(content, progress)


def _words(arguments: argparse.Namespace) -> list[str]:
    """What chooses the same cells, after ./rsd. Bare drives are quick, and measured here."""
    words = ["compare", "--full"]
    for option in ("system", "workload"):
        words += [f"--{option}={name}" for name in getattr(arguments, option)]
    words += [f"--benchmark={path.absolute()}" for path in arguments.benchmark]
    return words + (["--cold"] if arguments.cold else [])


def _run_stack(
    plan: StackPlan, built: Artifacts, cache: Cache, progress: Progress, outlook: Outlook | None
) -> Run:
    run = run_stack(plan, built, cache, progress)
    if outlook and outlook.done(plan):
        outlook.say(progress)
    return run


def _verdict(content: dict[str, Any], progress: Progress) -> int:
    bad = False
    for failure in content["failures"]:
        bad = True
        progress.say("FAILED: {system}, run {run}, {workload}: {why}".format(**failure))
    for name, repeat in content["repeatability"].items():
        if not results.ours(name) or repeat["runs"] < 2:
            continue
        if repeat["identical"]:
            progress.say(f"{name}: {repeat['runs']} runs, every virtual and count record identical")
        else:
            bad = True
            shown = "; ".join(repeat["differences"][:5])
            progress.say(
                f"NOT REPEATABLE: {name}: {len(repeat['differences'])} records differ: {shown}"
            )
    return int(bad)


def _fresh(out: Path) -> Path:
    """An empty directory. Only what an earlier comparison left is deleted."""
    if out.exists() and any(out.iterdir()):
        if not (out / MARK).exists() and not (out / "raw").is_dir():
            raise RsdError(
                f"--out {out}: not empty, and not a comparison's", "name another directory"
            )
        shutil.rmtree(out / "raw", ignore_errors=True)
        for name in (MARK, CSV, "report.html"):
            (out / name).unlink(missing_ok=True)
    try:
        (out / "raw").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RsdError(f"--out {out}: {error.strerror}", "name another directory") from error
    return out


def _print_list(level: Level) -> None:
    print(f"{'cell':22} {'I/Os':>6}  {'level':8} on which drives")
    for family, cells in itertools.groupby(ALL_CELLS, lambda cell: cell.family):
        print(family.title)
        for cell in cells:
            mark = "*" if cell.level <= level else " "
            names = " ".join(
                name + ("*" if max(traits.level, cell.level) <= level else "")
                for name, traits in SYSTEMS.items()
                if applies(cell, name)
            )
            print(f"{cell.name:22} {cell.ios or '':>6} {mark}{cell.level.name.lower():8} {names}")
    print()
    print(f"{'benchmark':26} {'runs':>4}  {'level':8} what, on which stacks")
    for benchmark in BENCHMARKS:
        mark = "*" if benchmark.level <= level else " "
        names = " ".join(
            name + ("*" if max(stack.level, benchmark.level) <= level else "")
            for name, stack in STACKS.items()
            if benchmark.scale in stack.scales
        )
        print(
            f"{benchmark.name:26} {REPETITIONS[benchmark.level]:>4} "
            f"{mark}{benchmark.level.name.lower():8} {benchmark.title}\n{'':42} {names}"
        )
    print()
    print(f"* measured by {'./rsd compare' if level is Level.DEFAULT else 'this level'}")
