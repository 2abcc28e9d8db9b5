# SPDX-License-Identifier: GPL-2.0-or-later
"""What RFS's cleaning copies: at the geometries of RISA's figure 14, with and without runs.

It is RFS's code without a kernel (tests/fs/copies.c): its writes take no time, and drives can be as
large as the figure needs.
"""

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rsd.bench.base import REPOSITORY, Context
from rsd.steps import run_logged

# Channels and ways
Geometry = tuple[int, int]
GEOMETRIES: tuple[Geometry, ...] = ((4, 2), (4, 4), (8, 4), (8, 8), (16, 8), (16, 16))


@dataclass(frozen=True)
class Run:
    """A volume under OLTP, or another load: blocks written, copied, programmed, and its zones."""

    written: int
    copied: int
    programmed: int
    zones: int
    zone_blocks: int
    open_zones: float

    @property
    def a_write(self) -> float:
        """Blocks copied a block written."""
        return self.copied / self.written

    @property
    def amplification(self) -> float:
        """Blocks programmed a block written."""
        return self.programmed / self.written


@dataclass(frozen=True)
class Copies:
    """Of one geometry. `whole`: a zone has a block of every way; `striped`: of one way."""

    whole: Run
    striped: Run


def copies_by_geometry(context: Context) -> dict[Geometry, Copies]:
    """Each geometry, with zones of both kinds."""
    step = context.progress.step("RFS without a kernel: RISA's figure 14")
    with _program(context) as program, step:
        return {
            (channels, ways): Copies(
                *(
                    _run(program, channels=channels, ways=ways, striped=striped)
                    for striped in (0, 1)
                )
            )
            for channels, ways in GEOMETRIES
        }


def copies_by_seed(
    context: Context, seeds: Iterable[int], options: Mapping[str, int]
) -> dict[int, list[Run]]:
    """The same volume with runs in its index, 1, and without, 0: a run of each seed."""
    step = context.progress.step("RFS without a kernel: many seeds")
    with _program(context) as program, step:
        return {
            runs: [_run(program, **options, runs=runs, seed=seed) for seed in seeds]
            for runs in (1, 0)
        }


@contextlib.contextmanager
def _program(context: Context) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rsd-bench-") as directory:
        program = Path(directory) / "copies"
        with context.progress.step("RFS without a kernel: build") as step:
            run_logged(
                ["make", "-C", REPOSITORY / "tests" / "fs", f"BUILD={directory}", program],
                step=step,
                log=context.cache.log("bench-copies"),
                hint="the first 'error:' in the log is the one to look at",
            )
        yield program


def _run(program: Path, **options: int) -> Run:
    words = [f"{name}={value}" for name, value in options.items()]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    return Run(**json.loads(done.stdout))
