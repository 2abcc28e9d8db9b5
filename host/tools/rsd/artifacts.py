"""Everything a guest is started with, built if it is missing."""

import concurrent.futures
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rsd import guesttools, image, qemu
from rsd import kernel as guest_kernel
from rsd.cache import Cache, hash_file, hash_tree
from rsd.errors import RsdError
from rsd.progress import Progress
from rsd.steps import stop_all

REPOSITORY = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Artifacts:
    """Paths of the parts, and the SHA-256 of each: they decide a deterministic run's result."""

    qemu: Path
    kernel: Path
    root: Path
    init: Path
    tools: Path
    hashes: Mapping[str, str]


def ensure(cache: Cache, progress: Progress, *, kernel: str = "release") -> Artifacts:
    """Build or find everything. An imported image takes the place of ours."""
    foreign = image.imported(cache)
    if foreign is not None:
        return _with_imported(cache, progress, foreign, kernel)
    guest = REPOSITORY / "guest"
    built = _in_parallel(
        {
            "qemu": lambda: qemu.ensure(cache, progress, REPOSITORY),
            "kernel": lambda: _kernel(cache, progress, kernel),
            "root": lambda: image.ensure_root(cache, progress),
            "tools": lambda: guesttools.ensure(cache, progress, REPOSITORY),
        }
    )
    return Artifacts(
        qemu=built["qemu"] / qemu.BINARY,
        kernel=built["kernel"] / "vmlinux",
        root=built["root"] / "root.erofs",
        init=guest / "init",
        tools=built["tools"],
        hashes={
            "qemu": _digest(built["qemu"], "qemu_sha256"),
            "kernel": _digest(built["kernel"], "vmlinux_sha256"),
            "root": _digest(built["root"], "root_sha256"),
            "tools": hash_tree(built["tools"]),
            "init": hash_file(guest / "init"),
        },
    )


def _kernel(cache: Cache, progress: Progress, flavour: str) -> Path:
    return guest_kernel.ensure(cache, progress, REPOSITORY / "guest/kernel", flavour)


def _with_imported(cache: Cache, progress: Progress, foreign: Path, flavour: str) -> Artifacts:
    manifest = json.loads((foreign / "manifest.json").read_text())
    if manifest["kernel"] != flavour:
        raise RsdError(
            f"the imported image has the {manifest['kernel']} kernel, not {flavour}",
            f"--kernel {manifest['kernel']}, or ./rsd image reset",
        )
    progress.say(f"using the imported image {foreign.name}")
    built = qemu.ensure(cache, progress, REPOSITORY)
    init = REPOSITORY / "guest/init"
    return Artifacts(
        qemu=built / qemu.BINARY,
        kernel=foreign / "vmlinux",
        root=foreign / "root.erofs",
        init=init,
        tools=foreign / "tools",
        hashes={
            "qemu": _digest(built, "qemu_sha256"),
            "kernel": manifest["sha256"]["vmlinux"],
            "root": manifest["sha256"]["root.erofs"],
            "tools": hash_tree(foreign / "tools"),
            "init": hash_file(init),
        },
    )


def _digest(entry: Path, name: str) -> str:
    return str(json.loads((entry / "manifest.json").read_text())[name])


def _in_parallel(jobs: Mapping[str, Callable[[], Path]]) -> dict[str, Path]:
    """Run all jobs at once; they meet at the cache's locks where one needs another's result.

    The first failure, or an interrupt, ends the others.
    """
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        futures = {name: pool.submit(job) for name, job in jobs.items()}
        try:
            for future in concurrent.futures.as_completed(futures.values()):
                future.result()
        except BaseException:
            stop_all()
            raise
        return {name: future.result() for name, future in futures.items()}
