# SPDX-License-Identifier: GPL-2.0-or-later
"""Conventional drives as they are after long use: rsdsim fills and overwrites them.

One capacity in sequence, then uniform random writes of 4 KiB, until the translation layer has
no free flash left but its own and collects, or merges, all the time.
"""

from pathlib import Path

from rsd import sim, written
from rsd.cache import Cache
from rsd.progress import Progress
from rsd.systems import get_drive


def sim_arguments(system: str) -> list[str]:
    """rsdsim's options for the drive that systems.py names so.

    Each write makes block and fast merge whole blocks: a part of what a page map needs (System.
    aging) overwrites each of their blocks several times. That is enough: write amplification over
    200,000 writes more is 12.37 after 2 and 12.39 after 6 capacities of page, 28.08 after 0.2 and
    28.07 after 1 of fast (preset risa); of block, over 20,000, 122.1 and 122.2 after 0.05 and 0.2,
    with the over-provisioning that was counted without spares.
    """
    aging = get_drive(system).aging
    words = ["--pattern", "uniform", "--size", "4K", "--precondition", aging]
    return [*written.arguments(system, {}), *words]


def aged_drive(system: str, cache: Cache, progress: Progress) -> Path:
    """A media file in the cache, aged. It is not to be changed."""
    program = sim.ensure(cache, progress)
    title = f"{system}: aging the drive"
    return written.make(title, sim_arguments(system), program, cache, progress)
