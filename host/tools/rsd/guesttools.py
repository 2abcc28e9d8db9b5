"""Our own programs for the guest, built in the buildroot and put into /usr/local/bin."""

import shutil
from pathlib import Path

from rsd import buildroot
from rsd.cache import DOCUMENTS, Cache, hash_file, hash_inputs, hash_tree
from rsd.progress import Progress

# Folders of host/tools with a Makefile: `make -C FOLDER BUILD=DIR` puts programs into DIR.
RFS_TOOLS = ("mkfs.rfs", "fsck.rfs", "dump.rfs")
C_TOOLS = ("zappend", "rsdctl", "savepoint", *RFS_TOOLS)

# Not for users: only guest/init runs it, in a guest that is to be saved.
SAVEPOINT = "savepoint"

# What of host/fs is in the tools of the file system.
FS_PARTS = ("core", "user")


def programs(tools: Path, *, rfs: bool) -> list[Path]:
    """What a guest gets of a directory of tools: all for users, or without RFS's."""
    hidden = (SAVEPOINT,) if rfs else (SAVEPOINT, *RFS_TOOLS)
    return sorted(path for path in tools.iterdir() if path.name not in hidden)


def ensure(cache: Cache, progress: Progress, repository: Path) -> Path:
    """A directory of programs: the C tools that exist, and guest/bin's scripts."""
    root = buildroot.ensure(cache, progress)
    tools = [name for name in C_TOOLS if (repository / "host/tools" / name / "Makefile").exists()]
    scripts = repository / "guest/bin"
    headers = sorted((repository / "hw/rsd-nvme/core/api").glob("*.h"))
    key = hash_inputs(
        root.identity,
        [(name, hash_tree(repository / "host/tools" / name, DOCUMENTS)) for name in tools],
        [(str(path.relative_to(repository)), hash_file(path)) for path in headers],
        [hash_tree(repository / "host/fs" / name) for name in FS_PARTS],
        hash_tree(repository / "host/tools/common"),
        hash_tree(scripts),
    )

    def build(partial: Path) -> None:
        programs = partial / "bin"
        programs.mkdir()
        if tools:
            with progress.step("guest tools") as step:
                root.run(
                    "".join(
                        f"make -j$JOBS -C /src/host/tools/{name} BUILD=/out/{name} all\n"
                        for name in tools
                    ),
                    binds={"/src": repository, "/out": partial},
                    step=step,
                    log=cache.log("guest-tools"),
                    hint="the first 'error:' in the log is the one to look at",
                )
        for name in tools:
            shutil.copy2(partial / name / name, programs / name)
        for script in scripts.iterdir():
            shutil.copy2(script, programs / script.name)

    return cache.entry("guest-tools", key, build) / "bin"
