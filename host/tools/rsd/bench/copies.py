# SPDX-License-Identifier: GPL-2.0-or-later
"""What RFS's cleaning copies at the geometries of RISA's figure 14.

It is RFS's code without a kernel (tests/fs/copies.c): its writes take no time, and drives can be as
large as the figure needs.
"""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rsd.bench.base import REPOSITORY, Context
from rsd.steps import run_logged

# Channels and ways
Geometry = tuple[int, int]
GEOMETRIES: tuple[Geometry, ...] = ((4, 2), (4, 4), (8, 4), (8, 8), (16, 8), (16, 16))


@dataclass(frozen=True)
class Run:
    """A volume under OLTP: blocks written and copied, and its zones."""

    written: int
    copied: int
    zones: int
    zone_blocks: int
    open_zones: float

    @property
    def a_write(self) -> float:
        """Blocks copied a block written."""
        return self.copied / self.written


@dataclass(frozen=True)
class Copies:
    """Of one geometry. `whole`: a zone has a block of every way; `striped`: of one way."""

    whole: Run
    striped: Run


def copies_by_geometry(context: Context) -> dict[Geometry, Copies]:
    """Each geometry, with zones of both kinds."""
    with tempfile.TemporaryDirectory(prefix="rsd-bench-") as directory:
        program = Path(directory) / "copies"
        with context.progress.step("RFS without a kernel: build") as step:
            run_logged(
                ["make", "-C", REPOSITORY / "tests" / "fs", f"BUILD={directory}", program],
                step=step,
                log=context.cache.log("bench-copies"),
                hint="the first 'error:' in the log is the one to look at",
            )
        with context.progress.step("RFS without a kernel: RISA's figure 14"):
            return {
                geometry: Copies(
                    *(_run(program, *geometry, striped=striped) for striped in (False, True))
                )
                for geometry in GEOMETRIES
            }


def _run(program: Path, channels: int, ways: int, *, striped: bool) -> Run:
    words = [f"channels={channels}", f"ways={ways}", f"striped={int(striped)}"]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    return Run(**json.loads(done.stdout))
