# SPDX-License-Identifier: GPL-2.0-or-later
"""Conventional drives as they are after long use: rsdsim fills and overwrites them.

One capacity in sequence, then uniform random writes of 4 KiB until the write amplification is
steady, as with `--precondition steady`. That takes ten capacities or more. Each write makes block
and fast merge whole blocks, so that theirs take the longest.
"""

from pathlib import Path

from rsd import sim, written
from rsd.cache import Cache
from rsd.compare import steadiness
from rsd.progress import Progress


def sim_arguments(system: str) -> list[str]:
    """rsdsim's options for the drive that systems.py names so."""
    words = ["--pattern", "uniform", "--size", "4K", "--precondition", "steady"]
    return [*written.arguments(system, {}), *words]


def aged_drive(system: str, cache: Cache, progress: Progress) -> Path:
    """A media file in the cache, aged. It is not to be changed."""
    program = sim.ensure(cache, progress)
    title = f"{system}: aging the drive"
    return written.make(title, sim_arguments(system), program, cache, progress)


def verdict(system: str, cache: Cache, progress: Progress) -> steadiness.Verdict:
    """Whether the aged drive is steady."""
    return steadiness.of_drive(aged_drive(system, cache, progress).parent / written.AGING)
