# SPDX-License-Identifier: GPL-2.0-or-later
"""Snakemake, in a folder of the cache: nothing but workflows needs it."""

import sys
from pathlib import Path

from rsd import pip
from rsd.cache import Cache, hash_file, hash_inputs
from rsd.progress import Progress

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
# Snakemake starts itself again for each job, on another machine, too.
LAUNCHER = """\
#!/bin/sh
here=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "$0")")" && pwd -P)
PYTHONPATH=$here/packages exec {python} -m snakemake "$@"
"""


def ensure(cache: Cache, progress: Progress) -> Path:
    """The command snakemake, with its executor for Slurm."""
    key = hash_inputs(hash_file(REQUIREMENTS), sys.executable, sys.version, LAUNCHER)

    def build(partial: Path) -> None:
        pip.install(REQUIREMENTS, partial / "packages", "Snakemake", cache, progress)
        launcher = partial / "snakemake"
        launcher.write_text(LAUNCHER.format(python=sys.executable))
        launcher.chmod(0o755)

    return cache.entry("snakemake", key, build) / "snakemake"
