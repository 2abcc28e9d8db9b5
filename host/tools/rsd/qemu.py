"""QEMU: Debian's 10.0 source, our patches and our device, built in one warm tree.

The finished binary is an entry keyed by everything it is made of. On the way there is one
build tree for a source version, kept between builds: patches and device are brought into
it by content (rsync -c), so that only the files that changed are compiled again.
"""

import bz2
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rsd import debian
from rsd.cache import Cache, hash_file, hash_inputs, hash_tree, remove_tree
from rsd.errors import RsdError
from rsd.progress import Progress, Step
from rsd.steps import run_logged

# Without what only makes attacks harder: see qemu-patches/README.md. Variables are still set to
# zero, so that a read of one that was forgotten is the same anywhere.
CONFIGURE = (
    "--target-list=x86_64-softmmu --without-default-devices --with-devices-x86_64=rsd "
    "--without-default-features --enable-tcg --enable-kvm --enable-slirp "
    "--disable-stack-protector --extra-cflags=-fzero-call-used-regs=skip "
    "--enable-fdt=system --disable-docs --disable-install-blobs --disable-download "
    "--disable-werror --disable-debug-info"
).split()

# For tests: ends at memory that is not its own, and at undefined behaviour.
SANITIZED = [*CONFIGURE, "--enable-asan", "--enable-ubsan"]

BINARY = "qemu-system-x86_64"


def ensure(
    cache: Cache, progress: Progress, repository: Path, configure: Sequence[str] = CONFIGURE
) -> Path:
    """A directory with the QEMU binary and `manifest.json`, for this repository's sources."""
    device = repository / "hw" / "rsd-nvme"
    inputs = {**_series(cache, progress, repository, configure), "device": _device_hash(device)}

    def build(partial: Path) -> None:
        with cache.lock("qemu-tree"):
            tree = _patched_tree(cache, progress, repository, inputs)
            with progress.step("QEMU: build") as step:
                _compile(cache, step, tree, BINARY, configure)
            shutil.copy2(tree / "build" / BINARY, partial / BINARY)
        manifest = {"qemu_sha256": hash_file(partial / BINARY), **inputs}
        (partial / "manifest.json").write_text(json.dumps(manifest, indent=2))

    return cache.entry("qemu", hash_inputs(inputs), build)


def sources(repository: Path) -> str:
    """A hash of what this repository puts into QEMU: patches, device, options of its build."""
    device = _device_hash(repository / "hw" / "rsd-nvme")
    return hash_inputs([hash_file(path) for path in _patches(repository)], CONFIGURE, device)


def qtest(cache: Cache, progress: Progress, repository: Path, name: str) -> Path:
    """A test program of QEMU's own tests/qtest, as our series has it."""
    inputs = _series(cache, progress, repository, CONFIGURE)

    def build(partial: Path) -> None:
        with cache.lock("qemu-tree"):
            device = _device_hash(repository / "hw" / "rsd-nvme")
            tree = _patched_tree(cache, progress, repository, {**inputs, "device": device})
            with progress.step(f"QEMU: {name}") as step:
                _compile(cache, step, tree, f"tests/qtest/{name}", CONFIGURE)
            shutil.copy2(tree / "build/tests/qtest" / name, partial / name)

    return cache.entry("qtest", hash_inputs(inputs, name), build) / name


def _series(
    cache: Cache, progress: Progress, repository: Path, configure: Sequence[str]
) -> dict[str, object]:
    """What QEMU is built from, without our device."""
    return {
        "debian_version": debian.release(cache, progress).qemu_version,
        "patches": hash_inputs([hash_file(path) for path in _patches(repository)]),
        "configure": configure,
        "compiler": _first_line(["gcc", "--version"]),
    }


def _patches(repository: Path) -> list[Path]:
    return sorted((repository / "qemu-patches").glob("*.patch"))


def _patched_tree(
    cache: Cache, progress: Progress, repository: Path, inputs: dict[str, object]
) -> Path:
    """The warm tree with this repository's sources. Call it with the lock of the tree."""
    tree = build_tree(cache, inputs)
    version = str(inputs["debian_version"])
    _sync_patches(cache, progress, tree, version, _patches(repository), inputs["patches"])
    _sync_device(tree, repository / "hw" / "rsd-nvme", inputs["device"])
    return tree


def build_tree(cache: Cache, inputs: dict[str, object]) -> Path:
    """The warm tree: `src/` (patched source) and `build/`."""
    fixed = hash_inputs(inputs["debian_version"], inputs["configure"], inputs["compiler"])
    return cache.work(f"qemu-{fixed}")


def pristine_source(cache: Cache, progress: Progress, version: str) -> Path:
    """QEMU's source as its authors released it, from Debian's verified orig tarball."""

    def build(partial: Path) -> None:
        log = cache.log("qemu-source")
        with progress.step("QEMU: source") as step:
            debian.download_source(cache, step, "qemu", version, partial)
            (archive,) = partial.glob("qemu_*.orig.tar.xz")
            source = partial / "src"
            source.mkdir()
            run_logged(
                ["tar", "-x", "--strip-components=1", "-f", archive, "-C", source],
                step=step,
                log=log,
                hint="check free space: 1 GB is needed",
            )
        # Debian's tarball lacks these images; the build insists on unpacking them, and
        # nothing here uses them.
        firmware = source / "pc-bios"
        for name in re.findall(r"edk2-[\w-]+\.fd", (firmware / "meson.build").read_text()):
            image = firmware / f"{name}.bz2"
            if not image.exists():
                image.write_bytes(bz2.compress(b""))
        for file in partial.glob("qemu_*"):
            file.unlink()

    return cache.entry("qemu-source", hash_inputs(version), build) / "src"


def _sync_patches(
    cache: Cache,
    progress: Progress,
    tree: Path,
    version: str,
    patches: list[Path],
    patches_key: object,
) -> None:
    """Bring the tree's source to: pristine + patches, touching only what differs."""
    source = tree / "src"
    log = cache.log("qemu-patches")
    mark = tree / "patched-with"
    pristine = pristine_source(cache, progress, version)
    if not mark.exists() or mark.read_text() != str(patches_key):
        with progress.step("QEMU: patches") as step:
            mark.unlink(missing_ok=True)
            stage = tree / "stage"
            remove_tree(stage)
            # Hard links: patch replaces the files it changes.
            run_logged(["cp", "-al", pristine, stage], step=step, log=log, hint="free space?")
            for path in patches:
                run_logged(
                    ["patch", "-p1", "--forward", "--batch", "-d", stage, "-i", path],
                    step=step,
                    log=log,
                    hint=f"{path.name} does not apply to QEMU {version}: refresh the series",
                    append=True,
                )
            # subprojects/ is where the build unpacks things of its own.
            run_logged(
                [
                    *("rsync", "-rlpc", "--delete"),
                    *("--exclude=/hw/rsd-nvme", "--exclude=/subprojects"),
                    *(f"{stage}/", f"{source}/"),
                ],
                step=step,
                log=log,
                hint="check free space: 1 GB is needed",
                append=True,
            )
            run_logged(
                ["rsync", "-rlpc", f"{stage}/subprojects", f"{source}/"],
                step=step,
                log=log,
                hint="check free space",
                append=True,
            )
            remove_tree(stage)
            mark.write_text(str(patches_key))


def _sync_device(tree: Path, device: Path, device_key: object) -> None:
    """Bring our device into the tree's source. `device_key` is what it hashes to."""
    copy = tree / "src/hw/rsd-nvme"
    before = set(copy.rglob("*.c"))
    subprocess.run(["rsync", "-rlpc", "--delete", f"{device}/", f"{copy}/"], check=True)
    if set(copy.rglob("*.c")) != before:
        (copy / "meson.build").touch()  # ninja then has its file looked for again
    if _device_hash(copy) != device_key:
        raise RsdError("hw/rsd-nvme changed while it was copied", "start again")


def _device_hash(device: Path) -> str:
    """The device's identity. Documentation is not compiled."""
    return hash_tree(device, skip_suffixes=(".md",))


def _compile(cache: Cache, step: Step, tree: Path, target: str, configure: Sequence[str]) -> None:
    """Make ninja's `target`, the build directory first if need be."""
    build = tree / "build"
    build.mkdir(exist_ok=True)
    log = cache.log("qemu-build")
    # The build keeps using the Python it was configured with, which `clean` may remove.
    python = build / "pyvenv/bin/python3"
    usable = python.exists() and _succeeds([str(python), "-c", "import mesonbuild"])
    if not (usable and (build / "build.ninja").exists()):
        remove_tree(build)
        build.mkdir()
        run_logged(
            [tree / "src/configure", f"--python={sys.executable}", *configure],
            step=step,
            log=log,
            cwd=build,
            hint="see the log's last lines for what configure misses",
        )
    run_logged(
        ["ninja", "-C", build, f"-j{len(os.sched_getaffinity(0))}", target],
        step=step,
        log=log,
        append=True,
        hint="the first 'error:' in the log is the one to look at",
    )


def _first_line(command: list[str]) -> str:
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise RsdError(f"{' '.join(command)}: {error}", "./rsd setup") from error
    return text.splitlines()[0]


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
