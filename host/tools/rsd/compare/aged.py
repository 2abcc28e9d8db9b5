# SPDX-License-Identifier: GPL-2.0-or-later
"""Conventional drives as they are after long use: rsdsim fills and overwrites them.

One capacity in sequence, then uniform random writes of 4 KiB, until the translation layer has
no free flash left but its own and collects, or merges, all the time.
"""

import subprocess
from pathlib import Path

from rsd import sim
from rsd.cache import Cache, hash_inputs
from rsd.errors import RsdError
from rsd.progress import Progress
from rsd.systems import get_drive

# Capacities of random writes, by translation layer. Each write makes block and fast merge whole
# blocks: a part of what a page map needs overwrites each of their blocks several times. That is
# enough: write amplification over 200,000 writes more is 12.37 after 2 and 12.39 after 6 of page,
# 28.08 after 0.2 and 28.07 after 1 of fast (preset risa); of block, over 20,000, 122.1 and 122.2
# after 0.05 and 0.2, with the over-provisioning that was counted without spares.
AGING = {"page": "2", "dftl": "2", "block": "0.05", "fast": "0.2"}


def sim_arguments(system: str) -> list[str]:
    """rsdsim's options for the drive that systems.py names so."""
    options = dict(get_drive(system).namespace)
    del options["media"]
    words = ["--preset", options.pop("preset")]
    for name, value in options.items():
        words += ["--set", f"{name}={value}"]
    aging = AGING[options["ftl"]]
    return [*words, "--pattern", "uniform", "--size", "4K", "--precondition", aging]


def aged_drive(system: str, cache: Cache, progress: Progress) -> Path:
    """A media file in the cache, aged. It is not to be changed."""
    program = sim.ensure(cache, progress)
    arguments = sim_arguments(system)

    def build(partial: Path) -> None:
        media = partial / "media"
        with progress.step(f"{system}: aging the drive"):
            command = [str(program.path), "--age", str(media), *arguments, "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RsdError(f"{system}: aging: {done.stderr.strip()}")
            (partial / "aging.json").write_text(done.stdout)
            shrink_media(media)

    return cache.entry("aged", hash_inputs(program.identity, arguments), build) / "media"


def copy_media(source: Path, target: Path) -> None:
    """A copy that can be changed; holes stay holes."""
    subprocess.run(["cp", "--sparse=always", "--reflink=auto", source, target], check=True)


def shrink_media(media: Path) -> None:
    """Give the disk its zeroes back: aged drives have little else."""
    subprocess.run(["fallocate", "--dig-holes", media], check=True)
