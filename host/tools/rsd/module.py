"""The kernel module of RFS, built for one flavour of the guest's kernel.

As with QEMU, there is one warm tree for a kernel, so that only what changed is compiled again.
"""

import json
import os
import subprocess
from pathlib import Path

from rsd import buildroot
from rsd import kernel as guest_kernel
from rsd.cache import Cache, hash_file, hash_inputs
from rsd.errors import RsdError
from rsd.progress import Progress

# What of host/fs the module is made of.
SOURCES = ("Makefile", "*.c", "*.h", "core/*/*.c", "core/*/*.h")

# The kernel was built in /out/build, and its makefiles name that path.
MAKE = f"make -s -j$JOBS -C {buildroot.LINUX_SOURCE} O=/out/build M=/module"

_BUILD = f"""
{MAKE} modules
version=$(cat /out/build/include/config/kernel.release)
target=/entry/lib/modules/$version
mkdir -p $target
strip --strip-debug -o $target/rfs.ko /module/rfs.ko
touch $target/modules.order $target/modules.builtin $target/modules.builtin.modinfo
depmod -b /entry $version
"""

MODULES = Path("lib/modules")


def file_in(modules: Path) -> Path:
    """The module in a guest's /lib/modules."""
    (found,) = modules.glob("*/rfs.ko")
    return found


def ensure(cache: Cache, progress: Progress, repository: Path, flavour: str) -> Path:
    """A directory with `manifest.json` and `lib/modules`, which is what the guest has there."""
    root = buildroot.ensure(cache, progress)
    kernel = guest_kernel.ensure(cache, progress, repository / "guest/kernel", flavour)
    folder = repository / "host/fs"
    sources = identity(folder)

    def build(partial: Path) -> None:
        with cache.lock(f"module-tree-{kernel.name}"):
            tree = cache.work(f"module-{kernel.name}")
            sync(folder, tree)
            if identity(tree) != sources:
                raise RsdError("host/fs changed while it was copied", "start again")
            with progress.step(f"RFS module, {flavour}") as step:
                root.run(
                    _BUILD,
                    binds={"/out": kernel, "/module": tree, "/entry": partial},
                    step=step,
                    log=cache.log(f"module-{flavour}"),
                    hint="the first 'error:' in the log is the one to look at",
                )
        digest = hash_file(file_in(partial / MODULES))
        manifest = {"sources": sources, "module_sha256": digest}
        (partial / "manifest.json").write_text(json.dumps(manifest, indent=2))

    key = hash_inputs(root.identity, kernel.name, sources, _BUILD)
    return cache.entry(f"module-{flavour}", key, build)


def identity(folder: Path) -> str:
    """A hash of the module's sources in `folder`."""
    files = sorted(path for pattern in SOURCES for path in folder.glob(pattern))
    # The module's own description of itself is written there by the build.
    ours = [path for path in files if not path.name.endswith(".mod.c")]
    return hash_inputs([(str(path.relative_to(folder)), hash_file(path)) for path in ours])


def sync(folder: Path, tree: Path) -> None:
    """Bring the module's sources into `tree`, touching only what differs."""
    patterns = [f"--include=/{name}" for name in (*SOURCES, "core/", "core/*/")]
    command = ["rsync", "-rlpc", "--delete", "--exclude=*.mod.c", *patterns, "--exclude=*"]
    subprocess.run([*command, f"{folder}{os.sep}", f"{tree}{os.sep}"], check=True)
