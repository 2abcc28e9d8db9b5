# SPDX-License-Identifier: GPL-2.0-or-later
"""A file system of the guest's kernel with a patch, as a module that takes its place.

The kernel has ext4, F2FS and btrfs built in. Another kernel would be another guest, to be built and
booted for each patch; a module takes seconds. There is one warm tree for a file system, so that
only what a patch changes is compiled again.
"""

import subprocess
from pathlib import Path

from rsd import buildroot, image, kernel, module
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache, hash_file, hash_inputs, hash_tree
from rsd.errors import RsdError
from rsd.progress import Progress

HERE = Path(__file__).parent
ADDED = ("Kbuild", "takeover.c", "takeover.h")
# What can be patched: it registers nothing but what takeover.c renames.
KINDS = ("ext4", "f2fs", "btrfs")

# What the build leaves in the tree, which rsync must not take for files that are too many.
_PRODUCTS = ("*.o", "*.ko", "*.mod", "*.mod.c", ".*.cmd", "modules.order", "Module.symvers")


def _build(kind: str) -> str:
    return f"""
{module.MAKE} KIND={kind} modules
strip --strip-debug -o /entry/patched.ko /module/patched.ko
"""


def ensure(cache: Cache, progress: Progress, kind: str, patch: Path) -> Path:
    """The module. RsdError if the patch does not apply to fs/KIND, or the kernel has no source."""
    if image.imported(cache):
        raise RsdError(
            f"--patch {patch}: the imported image has a kernel of its own, without its source",
            "./rsd image reset builds and uses ours",
        )
    root = buildroot.ensure(cache, progress)
    linux = kernel.ensure(cache, progress, REPOSITORY / "guest/kernel", "release")
    script = _build(kind)

    def build(partial: Path) -> None:
        name = f"patched-{kind}-{linux.name}"
        with cache.lock(name), cache.scratch("patched") as fresh:
            tree = cache.work(name)
            source = root.root / buildroot.LINUX_SOURCE[1:] / "fs" / kind
            copy = fresh / "fs" / kind
            copy.parent.mkdir()
            _rsync(source, copy)
            _apply(patch, fresh, kind)
            for added in ADDED:
                (copy / added).write_bytes((HERE / added).read_bytes())
            _rsync(copy, tree)
            with progress.step(f"{kind} with {patch}") as step:
                root.run(
                    script,
                    binds={"/out": linux, "/module": tree, "/entry": partial},
                    step=step,
                    log=cache.log(f"patched-{kind}"),
                    hint="the first 'error:' in the log is the one to look at",
                )

    added = [hash_file(HERE / name) for name in ADDED]
    key = hash_inputs(root.identity, linux.name, kind, hash_file(patch), added, script)
    return cache.entry("patched", key, build) / "patched.ko"


def _rsync(source: Path, target: Path) -> None:
    """Make the target equal, touching only what differs."""
    kept = [f"--exclude={name}" for name in _PRODUCTS]
    subprocess.run(["rsync", "-rlpc", "--delete", *kept, f"{source}/", f"{target}/"], check=True)


def _apply(patch: Path, tree: Path, kind: str) -> None:
    """Change fs/KIND below the tree. RsdError if the patch does not change it, or does more."""
    where = f"fs/{kind}"
    hint = (
        f"make it with diff -u from the files of {buildroot.LINUX_SOURCE}/{where} in the guest's"
        f" buildroot, as a/{where}/... and b/{where}/..."
    )
    before = hash_tree(tree / where)
    command = ["patch", "-p1", "--batch", "--forward", "--fuzz=0", "--no-backup-if-mismatch"]
    done = subprocess.run(
        [*command, "-d", tree, "-i", patch.resolve()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if not line.startswith("patching file")]
        lines = "".join(f"\n  | {line}" for line in said[:8])
        raise RsdError(f"{patch}: does not apply to {where} of the guest's Linux{lines}", hint)
    files = (path.relative_to(tree) for path in tree.rglob("*") if path.is_file())
    if beside := sorted(str(name) for name in files if not name.is_relative_to(where)):
        raise RsdError(f"{patch}: changes {beside[0]}, but only {where} is built with it", hint)
    if hash_tree(tree / where) == before:
        raise RsdError(f"{patch}: changes nothing in {where}", hint)
