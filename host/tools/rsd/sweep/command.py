# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of `./rsd sweep`."""

import argparse
import concurrent.futures
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from rsd import sim
from rsd.artifacts import OUTPUTS
from rsd.cache import Cache
from rsd.cluster import cell as cluster
from rsd.cluster.snakemake import Workflow
from rsd.errors import RsdError, StepFailed, naming
from rsd.progress import Progress, Step
from rsd.steps import run_logged, stop_all
from rsd.sweep import grid, table
from rsd.sweep.grid import Cell
from rsd.sweep.store import Store

DEFAULT_STORE = OUTPUTS / "sweep"
# Of rsdsim, enough for 64 GiB; for larger drives there is Snakemake's --set-resources.
MEMORY_MIB = 2048


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `sweep`."""
    assert grid.__doc__ is not None and parser.epilog is not None
    parser.epilog = f"{grid.__doc__}\n{parser.epilog}"
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="The file that describes the sweep, in TOML or JSON. Its fields are explained below.",
    )
    parser.add_argument(
        "--store",
        type=Path,
        metavar="DIR",
        help="Keep finished cells there, and write results.csv and results.txt"
        " (default: build/sweep/ and FILE's name).",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="Run N cells at once (default: one for each processor).",
    )
    parser.add_argument(
        "--plot",
        metavar="FIGURE",
        help="Draw a column of results.csv, such as write_amplification.total, in results.svg: over"
        " the last axis, with a line for each combination of the others.",
    )
    parser.add_argument("--list", action="store_true", help="Print the cells, and run nothing.")
    parser.add_argument(
        "--snakemake",
        type=Path,
        metavar="DIR",
        help="Run nothing. Write a Snakemake workflow there, for a cluster. --store DIR then"
        " prints the table of its results.",
    )


def main(arguments: argparse.Namespace) -> int:
    """Run what is missing, print and write the table. 1 if a cell failed."""
    if arguments.jobs is not None and arguments.jobs < 1:
        raise RsdError(f"--jobs {arguments.jobs}: allowed is 1 or more")
    cache, progress = Cache(), Progress()
    simulator = sim.ensure(cache, progress)
    cells = grid.read(arguments.file, simulator.identity)
    if arguments.list:
        for cell in cells:
            print(cell.key, " ".join(cell.arguments))
        return 0
    if arguments.snakemake is not None:
        store = Store(arguments.snakemake, "--snakemake")
        _workflow(store.directory, arguments.file, cells, simulator.path)
        progress.say(f"{len(cells)} cells in {store.directory / 'Snakefile'}")
        return 0
    store = Store(arguments.store or DEFAULT_STORE / arguments.file.stem)
    missing = [cell for cell in cells if store.load(cell.key) is None]
    jobs = arguments.jobs or len(os.sched_getaffinity(0))
    failures = _run(missing, store, simulator.path, jobs, cache, progress)
    rows = [(cell, result) for cell in cells if (result := store.load(cell.key)) is not None]
    if rows:
        text = table.as_text(rows)
        sys.stdout.write(text)
        with naming(store.directory):
            (store.directory / "results.csv").write_text(table.as_csv(rows))
            (store.directory / "results.txt").write_text(text)
        progress.say(f"results: {store.directory / 'results.csv'}")
        if arguments.plot is not None:
            # Only who asks for a plot waits for matplotlib.
            from rsd.sweep import plot

            plot.save(rows, arguments.plot, store.directory / "results.svg")
            progress.say(f"plot: {store.directory / 'results.svg'}")
    for failure in failures:
        progress.say(f"FAILED: {failure}")
    return int(bool(failures))


def _workflow(directory: Path, sweep: Path, cells: Sequence[Cell], simulator: Path) -> None:
    """The cells with a copy of the simulator, which is all that a cell needs."""
    own = directory.absolute() / simulator.name
    partial = own.with_suffix(".part")
    with naming(directory):
        shutil.copy2(simulator, partial)
        partial.rename(own)
        words = ["sweep", str(sweep.absolute())]
        Workflow(
            cells=[
                cluster.Cell(
                    cell.key,
                    " ".join(f"{name}={value}" for name, value in cell.axes.items()),
                    [*cell.arguments, "--json", "--output"],
                )
                for cell in cells
            ],
            program=own,
            memory_mib=MEMORY_MIB,
            suffix=".json",
            made_by=["./rsd", *words, "--snakemake", str(directory.absolute())],
            afterwards=["./rsd", *words, "--store", str(directory.absolute())],
        ).write(directory)


def _run(
    cells: Sequence[Cell], store: Store, program: Path, jobs: int, cache: Cache, progress: Progress
) -> list[str]:
    """What went wrong, a message for each cell that failed."""
    failures: list[str] = []
    if not cells:
        return failures
    with (
        progress.step(f"{len(cells)} cells, {jobs} at once") as step,
        concurrent.futures.ThreadPoolExecutor(jobs) as pool,
    ):
        running = {pool.submit(_run_cell, cell, store, program, step, cache) for cell in cells}
        try:
            for number, done in enumerate(concurrent.futures.as_completed(running), 1):
                try:
                    done.result()
                except RsdError as failure:
                    failures.append(str(failure))
                step.detail(f"{number} of {len(cells)} done, {len(failures)} failed")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop_all()
            raise
    return sorted(failures)


def _run_cell(cell: Cell, store: Store, program: Path, step: Step, cache: Cache) -> None:
    final = store.path(cell.key)
    partial = final.with_suffix(f".{os.getpid()}.partial")
    log = final.with_suffix(".log")
    try:
        run_logged(
            [program, *cell.arguments, "--json", "--output", partial], step=step, log=log, hint=""
        )
        partial.rename(final)
        log.unlink()
    except StepFailed as failure:
        # What rsdsim says last is its reason.
        reason = log.read_text().splitlines()[-1]
        raise RsdError(f"./rsd sim {shlex.join(cell.arguments)}: {reason}") from failure
    finally:
        partial.unlink(missing_ok=True)
