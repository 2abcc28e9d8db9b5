# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that tests are made of, and what a linter said: kept in the cache.

Each is found again by what it was made from, so that the processes of ./rsd test do not all make
it, nor the next run.
"""

import functools
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from rsd.artifacts import REPOSITORY
from rsd.cache import Cache, hash_file, hash_inputs, remove_tree

# Longer than a run of the tests takes: what one of them uses is not taken away.
KEPT_S = 2 * 24 * 3600

# Of the programs of tests/fs
FS_SOURCES = (
    "tests/fs/*.[ch]",
    "tests/fs/threads/*.[ch]",
    "tests/fs/Makefile",
    "tests/unit/*.h",
    "host/fs/*.[ch]",
    "host/fs/core/**/*",
    "host/fs/user/*",
    "hw/rsd-nvme/core/api/rsd-log.h",
)
RFS_TOOLS = ("mkfs", "fsck", "dump")
SANITIZE = "-O1 -g -Werror -fsanitize=address,undefined -fno-sanitize-recover=all"
# Of the programs of tests/oftl, and of the library
OFTL_SOURCES = (
    "tests/oftl/*.[ch]",
    "tests/oftl/Makefile",
    "tests/unit/check.h",
    "tests/fs/guest/oplog.h",
    "tests/fs/option.h",
    "hw/rsd-nvme/core/api/*.h",
    "host/tools/oftl/**/*",
    "host/fs/core/**/*",
    "host/fs/user/*",
)
# and of tests/unit
CORE_SOURCES = (
    "tests/unit/*.[ch]",
    "tests/unit/Makefile",
    "tests/model/replay.c",
    "hw/rsd-nvme/core/**/*.[ch]",
)


def hash_files(patterns: Iterable[str]) -> str:
    """Of the repository's files that the patterns name; each has to name some."""
    found: set[Path] = set()
    for pattern in patterns:
        files = {path for path in REPOSITORY.glob(pattern) if path.is_file()}
        assert files, f"no file is {pattern}"
        found |= files
    return hash_inputs([(path.relative_to(REPOSITORY), hash_file(path)) for path in sorted(found)])


def made(cache: Cache, name: str, sources: Iterable[str], *commands: Sequence[str | Path]) -> Path:
    """The directory BUILD of commands `make -C DIRECTORY ARGUMENT...`, each given from there on.

    sources: patterns of all files that the programs are made from.
    """
    key = hash_inputs(_compiler(), hash_files(sources), commands)

    def build(directory: Path) -> None:
        for folder, *arguments in commands:
            done = subprocess.run(
                ["make", "-j2", "-C", REPOSITORY / folder, f"BUILD={directory}", *arguments],
                capture_output=True,
                text=True,
                timeout=900,
            )
            assert done.returncode == 0, f"the build fails:\n{done.stdout}\n{done.stderr}"

    kind = f"test-{name}"
    with _kept(cache, kind):
        entry = cache.entry(kind, key, build)
        _mark_used(entry)
    return entry


def compiled(cache: Cache, source: Path, *flags: str | Path) -> Path:
    """A program for a guest, of one file. A guest takes longer to link a program with its
    libraries, or to unpack what a debugger wants, than many a program runs.
    """
    command = ["cc", "-O1", "-static", "-s", "-Wall", "-Wextra", "-Werror", *flags]
    text = subprocess.run([*command, "-E", source], capture_output=True, text=True, check=True)
    key = hash_inputs(_compiler(), text.stdout, command)

    def build(directory: Path) -> None:
        words = [*command, "-o", directory / source.stem, source]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{source} is not compiled:\n{done.stderr}"

    with _kept(cache, "test-compiled"):
        entry = cache.entry("test-compiled", key, build)
        _mark_used(entry)
    return entry / source.stem


@functools.cache
def _compiler() -> str:
    """Its version."""
    done = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True)
    return done.stdout


def core_programs(cache: Cache) -> Path:
    """What tests/unit/Makefile builds of the drive's core."""
    return made(cache, "unit", CORE_SOURCES, ["tests/unit"])


def fs_programs(cache: Cache) -> Path:
    """What tests/fs/Makefile builds of the core of RFS."""
    return made(cache, "fs", FS_SOURCES, ["tests/fs"])


def in_memory(otherwise: Path) -> AbstractContextManager[str]:
    """A directory in memory, if there is such a place: the kernel takes half as long for files."""
    memory = os.access("/dev/shm", os.W_OK)
    return tempfile.TemporaryDirectory(dir="/dev/shm" if memory else otherwise)


def fs_faults(cache: Cache) -> Path:
    """RFS's core over the drive's core, which fails by rule: tests/fs/faults."""
    sources = [*FS_SOURCES, "tests/fs/faults/*", "hw/rsd-nvme/core/**/*"]
    return made(cache, "fs-faults", sources, ["tests/fs/faults"])


def fs_tools(cache: Cache) -> Path:
    """mkfs.rfs, fsck.rfs and dump.rfs, with sanitizers."""
    folders = [f"host/tools/{name}.rfs" for name in RFS_TOOLS]
    sources = [*FS_SOURCES, *(f"{folder}/*" for folder in folders)]
    # the core of the file system is compiled once
    commands = [[folder, f"CFLAGS={SANITIZE}", "OBJECTS=rfs.d"] for folder in folders]
    return made(cache, "fs-tools", sources, *commands)


def oftl_programs(cache: Cache) -> Path:
    """What tests/oftl/Makefile builds of objects."""
    return made(cache, "oftl", OFTL_SOURCES, ["tests/oftl"])


def is_checked(cache: Cache, kind: str, key: str) -> bool:
    """Has mark_checked() been called of that?"""
    with _kept(cache, kind):
        entry = cache.find(kind, key)
        if entry:
            _mark_used(entry)
    return entry is not None


def mark_checked(cache: Cache, kind: str, key: str) -> None:
    """It is as it should be."""
    cache.entry(kind, key, lambda _: None)


def _kept(cache: Cache, kind: str) -> AbstractContextManager[None]:
    """While it is held, nobody else forgets entries of that kind."""
    return cache.lock(f"kept-{kind}")


def _mark_used(entry: Path) -> None:
    """And forgets those of its kind that nobody has used for long. Call it with _kept()."""
    os.utime(entry)
    for other in entry.parent.iterdir():
        if time.time() - other.stat().st_mtime > KEPT_S:
            remove_tree(other)
