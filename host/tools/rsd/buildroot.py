"""The buildroot: a trixie with a compiler, in which everything for the guest is built.

Building with the guest distribution's own compiler, at fixed paths, makes equal inputs
give equal bytes on any host.
"""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rsd import debian
from rsd.cache import Cache, hash_inputs
from rsd.progress import Progress, Step
from rsd.steps import run_logged

PACKAGES = (
    "bc bison cpio erofs-utils flex gcc kmod libc6-dev libelf-dev liburing-dev libnvme-dev "
    "libssl-dev linux-source-6.12 make perl pkgconf python3-minimal rsync sparse uuid-dev "
    "xz-utils zlib1g-dev"
).split()

# Documentation is never read here.
TRIM = [
    f"--dpkgopt=path-exclude=/usr/share/{name}/*"
    for name in ("doc", "man", "info", "locale", "lintian")
]

# 2026-01-01: the date of everything built, and of the guest's clock.
SOURCE_DATE_EPOCH = 1767225600

LINUX_SOURCE = "/usr/src/linux-source-6.12"

# In a mount and process namespace of its own: $1 is the root; then pairs of what to bind
# and where; then -- and the command.
_ENTER = """
set -e
PATH=/usr/sbin:/usr/bin:/sbin:/bin
root=$1
shift
mount --rbind /dev "$root/dev"
# Of its own: what a killed build left in it makes the next one slow (make's job server).
mount -t tmpfs tmp "$root/tmp"
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
while [ "$1" != -- ]; do
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    shift 2
done
shift
exec chroot "$root" "$@"
"""


@dataclass(frozen=True)
class Buildroot:
    """A finished buildroot. `identity` changes with any package version in it."""

    root: Path
    identity: str

    def run(
        self,
        script: str,
        *,
        binds: Mapping[str, Path],
        step: Step,
        log: Path,
        hint: str,
    ) -> None:
        """Run a shell script inside, with host directories at the paths `binds` gives.

        The environment is fixed: nothing of the host's reaches what is built.
        """
        mapping = [str(word) for inside, path in binds.items() for word in (path, inside)]
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LC_ALL": "C.UTF-8",
            "SOURCE_DATE_EPOCH": str(SOURCE_DATE_EPOCH),
            "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
            "KBUILD_BUILD_USER": "rsd",
            "KBUILD_BUILD_HOST": "rsd",
            "JOBS": str(len(os.sched_getaffinity(0))),
        }
        run_logged(
            [
                *("unshare", *([] if os.geteuid() == 0 else ["--map-root-user"])),
                *("--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"),
                *("sh", "-c", _ENTER, "enter", self.root, *mapping, "--"),
                *("env", "-i", *(f"{k}={v}" for k, v in environment.items())),
                *("sh", "-euc", script),
            ],
            step=step,
            log=log,
            hint=hint,
        )


def bootstrap(
    packages: Sequence[str],
    target: Path,
    *,
    step: Step,
    log: Path,
) -> None:
    """Write a tar of trixie with `packages`, verified by apt against the signed index."""
    # A mount namespace of its own, so that no mount stays behind when we are interrupted;
    # mmdebstrap makes one by itself for those who are not root.
    isolate = ["unshare", "--mount", "--propagation", "private"] if os.geteuid() == 0 else []
    run_logged(
        [
            *isolate,
            *("mmdebstrap", "--variant=minbase", f"--include={','.join(packages)}"),
            *(*TRIM, debian.SUITE, target, debian.BINARY_SOURCE),
        ],
        step=step,
        log=log,
        hint=debian.NETWORK_HINT,
        env={
            "SOURCE_DATE_EPOCH": str(SOURCE_DATE_EPOCH),
            # So that what an interrupted run leaves goes away with the cache entry.
            "TMPDIR": str(target.parent),
        },
    )


def ensure(cache: Cache, progress: Progress) -> Buildroot:
    """The buildroot of the remembered Debian release."""
    index = debian.release(cache, progress).index

    def build(partial: Path) -> None:
        archive = partial / "archive.tar"
        root = partial / "root"
        root.mkdir()
        with progress.step("buildroot: trixie with a compiler") as step:
            log = cache.log("buildroot")
            # mmdebstrap's user namespace must be able to write beside the archive.
            partial.chmod(0o777)
            bootstrap(PACKAGES, archive, step=step, log=log)
            partial.chmod(0o755)
            # Device nodes cannot be made without root, and owners are of no use.
            unpack = ["tar", "-x", "--no-same-owner", "--exclude=./dev/*"]
            run_logged(
                [*unpack, "-f", archive, "-C", root],
                step=step,
                log=log,
                hint="check free space",
                append=True,
            )
            archive.unlink()
            source = root / "usr/src"
            (compressed,) = source.glob("linux-source-*.tar.xz")
            run_logged(
                ["tar", "-x", "-f", compressed, "-C", source],
                step=step,
                log=log,
                hint="check free space",
                append=True,
            )
            compressed.unlink()

    root = cache.entry("buildroot", hash_inputs(index, PACKAGES, 1), build) / "root"
    return Buildroot(root, package_identity(root / "var/lib/dpkg/status"))


def package_identity(status: Path) -> str:
    """A hash of the names and versions in a dpkg status file."""
    found = re.findall(r"^Package: (\S+)$.*?^Version: (\S+)$", status.read_text(), re.M | re.S)
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()
