"""Everything a guest is started with, built if it is missing."""

import concurrent.futures
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rsd import first_run, guesttools, image, module, qemu
from rsd import kernel as guest_kernel
from rsd.cache import Cache, hash_file
from rsd.errors import RsdError
from rsd.packages import ensure as ensure_packages
from rsd.progress import Progress
from rsd.steps import stop_all

_HERE = Path(__file__).resolve()
IS_CLONE = (_HERE.parents[3] / "hw/rsd-nvme").is_dir()
# A clone; or what pip installed of one (pyproject.toml): the sources of all that is built, no tests
REPOSITORY = _HERE.parents[3] if IS_CLONE else _HERE.parent / "tree"
# Where results go: of an installed program, below the current directory.
OUTPUTS = REPOSITORY / "build" if IS_CLONE else Path("build")

# Of Artifacts.hashes, those of what only a guest with RFS has
RFS_HASHES = ("rfs-tools", "module")

# Debian's packages seabios and qemu-system-data
FIRMWARE_DIRS = (Path("/usr/share/seabios"), Path("/usr/share/qemu"))
# What our machine runs before the kernel: another version takes other instructions.
FIRMWARE = ("bios-256k.bin", "kvmvapic.bin", "linuxboot_dma.bin", "pvh.bin")


def firmware_files(directories: tuple[Path, ...]) -> dict[str, Path]:
    """The firmware by name, each from the first directory that has it."""
    found = {}
    for name in FIRMWARE:
        places = [directory / name for directory in directories if (directory / name).is_file()]
        if not places:
            raise RsdError(
                f"firmware {name} is in none of {', '.join(map(str, directories))}",
                "install Debian's packages seabios and qemu-system-data",
            )
        found[name] = places[0]
    return found


def _firmware_hash(directories: tuple[Path, ...]) -> str:
    digests = (hash_file(path) for path in firmware_files(directories).values())
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


@dataclass(frozen=True)
class Artifacts:
    """Paths of the parts, and the SHA-256 of each: they decide a deterministic run's result."""

    qemu: Path
    kernel: Path
    root: Path
    init: Path
    tools: Path
    modules: Path  # the guest's /lib/modules
    firmware: tuple[Path, ...]  # where QEMU looks for it
    hashes: Mapping[str, str]

    def deciding(self, *, rfs: bool) -> dict[str, str]:
        """The hashes of what is in a guest, with RFS or without."""
        return {name: sha for name, sha in self.hashes.items() if rfs or name not in RFS_HASHES}


def ensure(
    cache: Cache, progress: Progress, *, kernel: str = "release", packages: Sequence[str] = ()
) -> Artifacts:
    """Build or find everything. An imported image takes the place of ours.

    `packages` are Debian's, which the guest has besides its own.
    """
    foreign = image.imported(cache)
    if foreign is not None and packages:
        raise RsdError(
            f"--packages {','.join(packages)}: the imported image is as it is", "./rsd image reset"
        )
    if foreign is not None:
        return _with_imported(cache, progress, foreign, kernel)
    guest = REPOSITORY / "guest"
    with progress.expect(first_run.to_come(REPOSITORY, cache)):
        built = _in_parallel(
            {
                "qemu": lambda: qemu.ensure(cache, progress, REPOSITORY),
                "kernel": lambda: _kernel(cache, progress, kernel),
                "root": lambda: image.ensure_root(cache, progress, packages),
                "tools": lambda: guesttools.ensure(cache, progress, REPOSITORY),
                "module": lambda: module.ensure(cache, progress, REPOSITORY, kernel),
            }
        )
    return Artifacts(
        qemu=built["qemu"] / qemu.BINARY,
        kernel=built["kernel"] / "vmlinux",
        root=built["root"] / "root.erofs",
        init=guest / "init",
        tools=built["tools"],
        modules=built["module"] / module.MODULES,
        firmware=FIRMWARE_DIRS,
        hashes={
            "qemu": _digest(built["qemu"], "qemu_sha256"),
            "kernel": _digest(built["kernel"], "vmlinux_sha256"),
            "root": _digest(built["root"], "root_sha256"),
            **_tools_hashes(built["tools"]),
            "module": _digest(built["module"], "module_sha256"),
            "init": hash_file(guest / "init"),
            "firmware": _firmware_hash(FIRMWARE_DIRS),
        },
    )


def install_packages(cache: Cache, progress: Progress, *, install: bool) -> None:
    """What building a guest needs of Debian's packages: nothing where one was imported whole."""
    if not ready_made(cache):
        ensure_packages(progress, install=install)


def ready_made(cache: Cache) -> bool:
    """Whether an imported image has all that a guest needs, and nothing is to be built here."""
    foreign = image.imported(cache)
    return foreign is not None and _has_our_qemu(foreign)


def _has_our_qemu(foreign: Path) -> bool:
    manifest = json.loads((foreign / "manifest.json").read_text())
    return bool(manifest["qemu_sources"] == qemu.sources(REPOSITORY))


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
    if _has_our_qemu(foreign):
        program, digest = foreign / image.QEMU, manifest["sha256"][image.QEMU]
    else:
        progress.say("its QEMU has other patches, or another drive, than this clone: building ours")
        built = qemu.ensure(cache, progress, REPOSITORY)
        program, digest = built / qemu.BINARY, _digest(built, "qemu_sha256")
    init = foreign / "init"
    firmware = (foreign / "firmware",)
    return Artifacts(
        qemu=program,
        kernel=foreign / "vmlinux",
        root=foreign / "root.erofs",
        init=init,
        tools=foreign / "tools",
        modules=foreign / "modules",
        firmware=firmware,
        hashes={
            "qemu": digest,
            "kernel": manifest["sha256"]["vmlinux"],
            "root": manifest["sha256"]["root.erofs"],
            **_tools_hashes(foreign / "tools"),
            "module": hash_file(module.file_in(foreign / "modules")),
            "init": hash_file(init),
            "firmware": _firmware_hash(firmware),
        },
    )


def _tools_hashes(tools: Path) -> dict[str, str]:
    """Of RFS's tools, of the one that stops a guest, and of the others."""
    others = guesttools.programs(tools, rfs=False)
    ours = [path for path in guesttools.programs(tools, rfs=True) if path not in others]
    return {
        "tools": _hash_files(others),
        "rfs-tools": _hash_files(ours),
        "savepoint": hash_file(tools / guesttools.SAVEPOINT),
    }


def _hash_files(files: Sequence[Path]) -> str:
    listed = "".join(f"{hash_file(path)}  {path.name}\n" for path in files)
    return hashlib.sha256(listed.encode()).hexdigest()


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
