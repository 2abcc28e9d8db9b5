"""The guest's root: trixie's tools as one EROFS image, and images from elsewhere.

An imported image (QEMU, kernel, root, init, tools and firmware, from `./rsd image export` on
another machine) replaces the built one until `./rsd image reset`.
"""

import io
import json
import re
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rsd import buildroot, debian
from rsd.cache import Cache, hash_file, hash_inputs
from rsd.errors import RsdError, StepFailed
from rsd.exchange import NVDIMM_ALIGN
from rsd.progress import Progress
from rsd.untar import extract

PACKAGES = (
    "acl attr bonnie++ btrfs-progs dbench e2fsprogs f2fs-tools fio fsmark jq kmod libnvme1t64 "
    "liburing2 mariadb-server-core nilfs-tools nvme-cli postmark procps python3-minimal sqlite3 "
    "strace stress-ng sysbench util-linux xfsprogs zbd-utils"
).split()

# Where the kernel finds the root: NVDIMMs have no dependable numbers, partitions have ids.
DISK_SIGNATURE = 0x72736431
PARTITION_START = 1 << 20
ROOT = f"PARTUUID={DISK_SIGNATURE:08x}-01"

IMAGE_UUID = "7273642d-6e76-6d65-8000-000000000001"

UNKNOWN_PACKAGE = re.compile(r"^E: Unable to locate package (\S+)$", re.M)

_MAKE = f"""
mkfs.erofs --quiet --tar=f -T{buildroot.SOURCE_DATE_EPOCH} --all-time -U{IMAGE_UUID} \
    /out/filesystem /out/root.tar
"""


# What would differ from one bootstrap to the next: nvme-cli makes up a host's identity, and
# apt owns its directories only where its user could reach the archive.
HOST_ID = "7273642d-6e76-6d65-8000-000000000002"
SAME_EVERYWHERE: tuple[tuple[str, str | None], ...] = (
    ("./etc/nvme/hostid", f"{HOST_ID}\n"),
    ("./etc/nvme/hostnqn", f"nqn.2014-08.org.nvmexpress:uuid:{HOST_ID}\n"),
    ("./var/cache/apt/archives/partial", None),
    ("./var/lib/apt/lists/partial", None),
)


def make_same(archive: Path) -> None:
    """Append to the archive of a root what is to be the same in each; the last entry counts."""
    with tarfile.open(archive, "a") as tar:
        for name, content in SAME_EVERYWHERE:
            member = tarfile.TarInfo(name)
            member.mtime = buildroot.SOURCE_DATE_EPOCH
            if content is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o700
                tar.addfile(member)
            else:
                member.mode, member.size = 0o644, len(content)
                tar.addfile(member, io.BytesIO(content.encode()))


def ensure_root(cache: Cache, progress: Progress, more: Sequence[str] = ()) -> Path:
    """A directory with `root.erofs` and `manifest.json`, of PACKAGES and `more`."""
    index = debian.release(cache, progress).index
    packages = [*PACKAGES, *more]
    key = hash_inputs(index, packages, _MAKE, SAME_EVERYWHERE)

    def build(partial: Path) -> None:
        image = partial / "root.erofs"
        archive = partial / "root.tar"
        with progress.step(
            f"guest root: {', '.join(['trixie and its benchmarks', *more])}"
        ) as step:
            log = cache.log("root")
            # mmdebstrap's user namespace must be able to write beside the archive.
            partial.chmod(0o777)
            try:
                buildroot.bootstrap(packages, archive, step=step, log=log)
            except StepFailed as failure:
                unknown = UNKNOWN_PACKAGE.search(log.read_text())
                if unknown is None or unknown[1] not in more:
                    raise
                raise RsdError(
                    f"--packages {unknown[1]}: Debian {debian.SUITE} has no package of this name",
                    f"https://packages.debian.org/{debian.SUITE}/ has their names",
                ) from failure
            partial.chmod(0o755)
            make_same(archive)
        root = buildroot.ensure(cache, progress)
        with progress.step("guest root: EROFS image") as step:
            root.run(
                _MAKE,
                binds={"/out": partial},
                step=step,
                log=cache.log("erofs"),
                hint="see the log; 2 GB of free disk are needed",
            )
        write_partitioned(partial / "filesystem", image)
        (partial / "filesystem").unlink()
        with tarfile.open(archive) as tar:
            status = tar.extractfile("./var/lib/dpkg/status")
            assert status is not None
            (partial / "packages").write_bytes(status.read())
        archive.unlink()
        manifest = {
            "root_sha256": hash_file(image),
            "packages": buildroot.package_identity(partial / "packages"),
        }
        (partial / "manifest.json").write_text(json.dumps(manifest, indent=2))

    return cache.entry("root", key, build)


def write_partitioned(filesystem: Path, image: Path) -> None:
    """Write a disk whose first (and only) partition is `filesystem`."""
    sectors = filesystem.stat().st_size // 512
    table = bytearray(512)
    struct.pack_into("<I", table, 440, DISK_SIGNATURE)
    # No cylinders and heads: status, start, type (Linux), end, first sector, sectors.
    struct.pack_into("<B3sB3sII", table, 446, 0, b"", 0x83, b"", PARTITION_START // 512, sectors)
    table[510:] = b"\x55\xaa"
    with filesystem.open("rb") as source, image.open("xb") as target:
        target.write(table)
        target.seek(PARTITION_START)
        shutil.copyfileobj(source, target, 1 << 20)
        target.truncate(-(-target.tell() // NVDIMM_ALIGN) * NVDIMM_ALIGN)


def imported(cache: Cache) -> Path | None:
    """The imported image in use, if there is one."""
    pointer = cache.root / "imported"
    if not pointer.exists():
        return None
    path = cache.find("image", pointer.read_text().strip())
    if path is None:
        raise RsdError("the imported image is no longer in the cache", "./rsd image reset")
    return path


# 2: firmware and init are in it; 3: the module; 4: the program that stops a guest to be saved;
# 5: QEMU, with a hash of this repository's part of its sources
FORMAT = 5

HOW = "./rsd image export FILE makes one"
# Its name in an image
QEMU = "qemu/qemu-system-x86_64"


def export(
    target: Path, parts: Mapping[str, Path], trees: Mapping[str, Path], flavour: str, sources: str
) -> None:
    """Write an image that `import_` takes: files and directories by their name in it.

    `sources` is qemu.sources() of the repository that its QEMU was built from.
    """
    files = dict(parts)
    for name, tree in trees.items():
        below = sorted(path for path in tree.rglob("*") if path.is_file())
        files |= {f"{name}/{path.relative_to(tree)}": path for path in below}
    manifest = {
        "format": FORMAT,
        "kernel": flavour,
        "qemu_sources": sources,
        "sha256": {name: hash_file(path) for name, path in files.items()},
    }
    unfinished = target.with_name(f"{target.name}.part")
    try:
        with tarfile.open(unfinished, "w") as tar:
            description = unfinished.with_name(f"{target.name}.manifest")
            description.write_text(json.dumps(manifest, indent=2))
            tar.add(description, "manifest.json")
            description.unlink()
            for name, path in files.items():
                tar.add(path, name)
        unfinished.rename(target)
    finally:
        unfinished.unlink(missing_ok=True)


def import_(cache: Cache, archive: Path) -> str:
    """Take an exported image into use. Gives its name. Refuses one that is damaged."""
    if not archive.is_file():
        raise RsdError(f"image {archive}: no such file", HOW)
    key = hash_file(archive)[:20]

    def build(partial: Path) -> None:
        try:
            with tarfile.open(archive) as tar:
                if left_out := extract(tar, partial):
                    raise tarfile.TarError(f"{left_out[0]!r} leads outside")
            manifest = json.loads((partial / "manifest.json").read_text())
            expected = manifest["sha256"]
        except tarfile.ReadError as error:
            raise RsdError(
                f"image {archive}: not an exported image, or not all of it", HOW
            ) from error
        except (tarfile.TarError, ValueError, KeyError, FileNotFoundError) as error:
            raise RsdError(f"image {archive}: not an exported image ({error})", HOW) from error
        if manifest.get("format") != FORMAT:
            raise RsdError(
                f"image {archive}: format {manifest.get('format')}, {FORMAT} is known",
                "export it again with this version",
            )
        for name, digest in expected.items():
            path = partial / name
            if not path.is_file() or hash_file(path) != digest:
                raise RsdError(f"image {archive}: {name} is damaged", "export it again")
        _check_starts(archive, partial / QEMU)
        (partial / "tools").mkdir(exist_ok=True)

    cache.entry("image", key, build)
    (cache.root / "imported").write_text(key)
    return key


def _check_starts(archive: Path, program: Path) -> None:
    """Its QEMU was built elsewhere: libraries may be missing here."""
    program.chmod(0o755)
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RsdError(
            f"image {archive}: its QEMU does not start here: {done.stderr.strip()}",
            "install the library (Debian: libglib2.0-0, libpixman-1-0, libfdt1, libslirp0), or "
            "export on an older system",
        )


def reset(cache: Cache) -> None:
    """Go back to the image that is built here."""
    (cache.root / "imported").unlink(missing_ok=True)
    shutil.rmtree(cache.root / "image", ignore_errors=True)
