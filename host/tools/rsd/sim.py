# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd sim`: rsdsim, built if it is missing."""

import itertools
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rsd import systems
from rsd.artifacts import REPOSITORY
from rsd.cache import DOCUMENTS, Cache, hash_inputs, hash_tree
from rsd.errors import RsdError
from rsd.progress import Progress
from rsd.steps import run_logged

SOURCES = ("host/tools/rsdsim", "host/tools/common", "hw/rsd-nvme/core")
SFSSIM_SOURCES = ("host/tools/sfssim", "host/tools/rsdsim", "host/fs/core")
HFMSIM_SOURCES = ("host/tools/hfmsim", *SFSSIM_SOURCES, "hw/rsd-nvme/core")


@dataclass(frozen=True)
class Simulator:
    """The program, and a name for its sources and compiler: they decide what it prints."""

    path: Path
    identity: str


def ensure(cache: Cache, progress: Progress) -> Simulator:
    """Build rsdsim with the host's compiler, or find it built of the same sources."""
    return ensure_program(cache, progress, "rsdsim", SOURCES)


def ensure_sfssim(cache: Cache, progress: Progress) -> Path:
    """SFS's experiments with RFS's policy: the program."""
    return ensure_program(cache, progress, "sfssim", SFSSIM_SOURCES).path


def ensure_hfmsim(cache: Cache, progress: Progress) -> Path:
    """HFM's data sections, with a disk behind them: the program."""
    return ensure_program(cache, progress, "hfmsim", HFMSIM_SOURCES).path


def ensure_program(
    cache: Cache, progress: Progress, name: str, sources: tuple[str, ...]
) -> Simulator:
    """The same for host/tools/`name`, which is made of the folders `sources`."""
    for program, package in (("cc", "gcc and libc6-dev"), ("make", "make")):
        if shutil.which(program) is None:
            raise RsdError(f"{program} is missing, to build {name}", f"apt-get install {package}")
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True)
    identity = hash_inputs(
        compiler.stdout, [(folder, hash_tree(REPOSITORY / folder, DOCUMENTS)) for folder in sources]
    )

    def build(partial: Path) -> None:
        with progress.step(name) as step:
            run_logged(
                ["make", "-j2", "-C", REPOSITORY / "host/tools" / name, f"BUILD={partial}"],
                step=step,
                log=cache.log(name),
                hint="the first 'error:' in the log is the one to look at",
            )

    return Simulator(cache.entry(name, identity, build) / name, identity)


def _refuse_system(arguments: list[str]) -> None:
    """rsdsim has no systems: what the other commands call one is a few properties for it."""
    for word, following in itertools.pairwise([*arguments, ""]):
        option, _, value = word.partition("=")
        if option != "--system":
            continue
        system = systems.SYSTEMS.get(value or following)
        properties = system.namespace.items() if system and system.driver == "rsd-ns" else ()
        hint = " ".join(
            f"--preset {given}" if name == "preset" else f"--set {name}={given}"
            for name, given in properties
            if name != "media"
        )
        raise RsdError(
            "sim: there is no option --system", hint or "--set, with the properties of a system"
        )


def main(arguments: list[str]) -> int:
    """Run rsdsim with these arguments; gives its exit status."""
    _refuse_system(arguments)
    simulator = ensure(Cache(), Progress())
    # Our own output, if any, comes first.
    sys.stdout.flush()
    return subprocess.run([simulator.path, *arguments], check=False).returncode
