# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of commands whose work more than one machine can do."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from rsd.artifacts import IS_CLONE, REPOSITORY, Artifacts
from rsd.cache import Cache
from rsd.cluster import packed
from rsd.cluster.cell import Cell
from rsd.cluster.snakemake import Workflow
from rsd.cluster.unit import Unit
from rsd.errors import RsdError
from rsd.progress import Progress

# Of a guest with the largest drive that a cell has, QEMU and the runner included
MEMORY_MIB = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a command has that makes units."""
    group = parser.add_argument_group("on more than one machine (docs/cluster.md)")
    group.add_argument(
        "--snakemake",
        type=Path,
        metavar="DIR",
        help="Measure nothing, but write a Snakemake workflow there, with a rule for each cell.",
    )
    group.add_argument(
        "--store",
        type=Path,
        metavar="DIR",
        help="Use the results that this workflow left in DIR, and measure here what is missing.",
    )
    group.add_argument(
        "--cell",
        nargs=2,
        metavar=("KEY", "FILE"),
        help="Measure this cell alone, and put its result into FILE. The workflow calls this.",
    )


def check(arguments: argparse.Namespace) -> None:
    """Refuse what has no meaning together."""
    given = [name for name in ("snakemake", "store", "cell") if getattr(arguments, name)]
    if len(given) > 1:
        raise RsdError(f"--{given[0]} and --{given[1]} exclude each other", "leave one out")


def handle(
    arguments: argparse.Namespace,
    command: Sequence[str],
    units: Sequence[Unit],
    built: Artifacts,
    cache: Cache,
    progress: Progress,
) -> bool:
    """Do what the options ask for; True if that was all there is to do.

    `command` are the words after ./rsd which make these units again. Raises RsdError.
    """
    if arguments.cell:
        key, name = arguments.cell
        _one(key, Path(name), units, built.hashes, cache)
        return True
    if arguments.snakemake:
        _write(arguments.snakemake, command, units)
        progress.say(f"{len(units)} cells in {arguments.snakemake / 'Snakefile'}")
        return True
    if arguments.store:
        _check_directory(arguments.store)
        missing = packed.take_in(arguments.store, units, built.hashes, cache)
        if missing:
            progress.say(f"{len(missing)} of {len(units)} cells have no result: measured here")
    return False


def _one(
    key: str, target: Path, units: Sequence[Unit], hashes: Mapping[str, str], cache: Cache
) -> None:
    for unit in units:
        if unit.key == key:
            packed.pack(unit, unit.run(cache), hashes, target)
            return
    shown = ", ".join(f"{name} {value[:12]}" for name, value in sorted(hashes.items()))
    raise RsdError(
        f"--cell {key}: none of this command's {len(units)} cells. Keys depend here on {shown}",
        "on each machine, the repository must be the same, and the same image be imported "
        "(./rsd image import)",
    )


def _write(directory: Path, command: Sequence[str], units: Sequence[Unit]) -> None:
    try:
        (directory / "cells").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RsdError(
            f"--snakemake {directory}: {error.strerror}", "name another directory"
        ) from error
    shown = str(directory.absolute())
    Workflow(
        cells=[Cell(unit.key, unit.title, [*command, "--cell", unit.key]) for unit in units],
        program=REPOSITORY / "rsd" if IS_CLONE else Path("rsd"),
        memory_mib=MEMORY_MIB,
        suffix=packed.SUFFIX,
        made_by=["./rsd", *command, "--snakemake", shown],
        afterwards=["./rsd", *command, "--store", shown],
    ).write(directory)


def _check_directory(directory: Path) -> None:
    if not (directory / "cells").is_dir():
        raise RsdError(
            f"--store {directory}: there is no directory cells in it",
            "name the directory that --snakemake wrote to",
        )
