# SPDX-License-Identifier: GPL-2.0-or-later
"""SQLite's shell from Debian's source, with its batch-atomic interface and without.

Debian's own build leaves that interface out. The shells are linked statically and made by the
compiler of the buildroot, so that they are the same on every machine.
"""

import shutil
from pathlib import Path

from rsd import buildroot, debian
from rsd.cache import Cache, hash_inputs
from rsd.errors import RsdError
from rsd.progress import Progress
from rsd.steps import run_logged

BATCH, PLAIN = "sqlite-batch", "sqlite-plain"
_FLAGS = "-O2 -static -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DHAVE_USLEEP=1"
_SHELL = f"gcc {_FLAGS} {{}} -o /out/{{}} /out/sqlite/shell.c /out/sqlite/sqlite3.c -lm\n"
_BUILD = _SHELL.format("-DSQLITE_ENABLE_BATCH_ATOMIC_WRITE", BATCH) + _SHELL.format("", PLAIN)
_CONFIGURE = ("--disable-shared", "--disable-readline", "--disable-tcl")


def ensure(cache: Cache, progress: Progress) -> Path:
    """A directory with the two shells; the first call downloads 14 MB and compiles for minutes."""
    if not shutil.which("tclsh"):
        raise RsdError("SQLite's source is put together by tclsh", "apt-get install tcl")
    debian.release(cache, progress)
    version = debian.source_versions(cache, "sqlite3")[-1]
    root = buildroot.ensure(cache, progress)

    def build(partial: Path) -> None:
        log = cache.log("sqlite")
        with progress.step("SQLite") as step:
            debian.download_source(cache, step, "sqlite3", version, partial)
            (archive,) = partial.glob("sqlite3_*.orig.tar.xz")
            source, made = partial / "source", partial / "sqlite"
            source.mkdir()
            made.mkdir()
            hint = "see the log; 300 MB of free disk are needed"
            for command in (
                ["tar", "-x", "--strip-components=1", "-f", archive, "-C", source],
                ["env", "-C", made, source / "configure", *_CONFIGURE],
                ["make", "-C", made, "sqlite3.c", "shell.c"],
            ):
                run_logged(command, step=step, log=log, hint=hint)
            root.run(_BUILD, binds={"/out": partial}, step=step, log=log, hint=hint)
        shutil.rmtree(source)
        shutil.rmtree(made)
        for file in partial.glob("sqlite3_*"):
            file.unlink()

    return cache.entry("sqlite", hash_inputs(root.identity, version, _BUILD, _CONFIGURE), build)
