"""Debian packages that the host must have, and how to get them."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rsd.errors import RsdError
from rsd.progress import Progress


@dataclass(frozen=True)
class Requirement:
    """One package: what it is for, and a probe that works on any distribution."""

    package: str
    why: str
    present: Callable[[], bool]


def _command(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


def _file(path: str) -> Callable[[], bool]:
    return lambda: Path(path).exists()


def _library(name: str) -> Callable[[], bool]:
    def present() -> bool:
        probe = ["pkg-config", "--exists", name]
        return _command("pkg-config")() and subprocess.run(probe, check=False).returncode == 0

    return present


REQUIREMENTS: Sequence[Requirement] = (
    Requirement("gcc", "to build QEMU", _command("gcc")),
    Requirement("libc6-dev", "to build QEMU", _file("/usr/include/stdio.h")),
    Requirement("make", "to build the unit tests", _command("make")),
    Requirement("ninja-build", "to build QEMU", _command("ninja")),
    Requirement("pkgconf", "to build QEMU", _command("pkg-config")),
    Requirement("flex", "to build QEMU", _command("flex")),
    Requirement("bison", "to build QEMU", _command("bison")),
    Requirement("libglib2.0-dev", "to build QEMU", _library("glib-2.0")),
    Requirement("libpixman-1-dev", "to build QEMU", _library("pixman-1")),
    Requirement("libfdt-dev", "to build QEMU", _file("/usr/include/libfdt.h")),
    Requirement("libslirp-dev", "to build QEMU", _library("slirp")),
    Requirement("zlib1g-dev", "to build QEMU", _library("zlib")),
    Requirement("patch", "to patch QEMU", _command("patch")),
    Requirement("rsync", "to update build trees", _command("rsync")),
    Requirement("xz-utils", "to unpack sources", _command("xz")),
    Requirement("bzip2", "to build QEMU", _command("bzip2")),
    Requirement("apt", "to download and verify sources", _command("apt-get")),
    Requirement(
        "debian-archive-keyring",
        "to verify downloads",
        _file("/usr/share/keyrings/debian-archive-keyring.gpg"),
    ),
    Requirement("mmdebstrap", "to make the guest's root", _command("mmdebstrap")),
    Requirement("seabios", "the guest's firmware", _file("/usr/share/seabios/bios-256k.bin")),
    Requirement("qemu-system-data", "the guest's firmware", _file("/usr/share/qemu/pvh.bin")),
    Requirement("shellcheck", "for ./rsd test", _command("shellcheck")),
    Requirement("perl", "for ./rsd test (checkpatch)", _command("perl")),
    Requirement("git", "for ./rsd test (which files to lint)", _command("git")),
    Requirement("liburing-dev", "for ./rsd test (zappend)", _file("/usr/include/liburing.h")),
    Requirement("libnvme-dev", "for ./rsd test (rsdctl)", _file("/usr/include/libnvme.h")),
)

# What only tests of --long take; they are skipped without it. It has 9 MB to download, and 43 MB on
# the disk.
LONG_TESTS: Sequence[Requirement] = (
    Requirement("coccinelle", "for ./rsd test --long (coccicheck)", _command("spatch")),
)

# Only those who are not root make the guest's root in a user namespace.
UNPRIVILEGED = Requirement("uidmap", "to make the guest's root without root", _command("newuidmap"))


def missing() -> list[Requirement]:
    """The requirements that this host does not meet."""
    needed = [*REQUIREMENTS, *([UNPRIVILEGED] if os.geteuid() != 0 else [])]
    return [requirement for requirement in needed if not requirement.present()]


def is_debian(os_release: Path = Path("/etc/os-release")) -> bool:
    """Whether this host is Debian or calls itself like it."""
    try:
        lines = os_release.read_text().splitlines()
    except OSError:
        return False
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    names = f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}".replace('"', " ").split()
    return "debian" in names


def ensure(progress: Progress, *, install: bool, long_tests: bool = False) -> None:
    """Install what is missing. With `install` off, or elsewhere than on Debian, name it.

    What only long tests take is installed if it can be, and nobody is told otherwise.
    """
    wanted = missing()
    if long_tests and install and is_debian():
        wanted += [requirement for requirement in LONG_TESTS if not requirement.present()]
    if not wanted:
        return
    listing = "\n".join(f"  {r.package:24} {r.why}" for r in wanted)
    names = [r.package for r in wanted]
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    command = [*as_root, "apt-get", "install", "--no-install-recommends", "-y", *names]
    if not is_debian():
        raise RsdError(
            f"missing on this host (Debian's package names):\n{listing}",
            "install what your distribution calls them; only on Debian is this done for you",
        )
    if not install:
        raise RsdError(f"missing packages:\n{listing}", " ".join(command))
    if as_root and shutil.which("sudo") is None:
        raise RsdError(f"missing packages, and no sudo:\n{listing}", f"as root: {command[1:]}")
    progress.say(f"installing with {' '.join([*as_root, 'apt-get'])}:\n{listing}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # Not a logged step: sudo may ask for a password on our terminal.
    for step in ([*as_root, "apt-get", "update", "-q"], command):
        status = subprocess.run(step, check=False, stdout=2, env=environment).returncode
        if status != 0:
            raise RsdError(f"{' '.join(step)}: failed with status {status}", "see its output above")
    if still := missing():
        raise RsdError(f"still missing after apt-get: {', '.join(r.package for r in still)}")
