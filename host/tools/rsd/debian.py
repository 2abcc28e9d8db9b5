"""Debian trixie's archive: what it holds now, and its files, verified by apt.

apt runs with directories of its own, so that neither root nor trixie on the host is
needed, and checks every file against the index that Debian's archive key signed.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rsd.cache import Cache, hash_file
from rsd.errors import RsdError
from rsd.progress import Progress, Step
from rsd.steps import run_logged

SUITE = "trixie"
MIRROR = os.environ.get("RSD_DEBIAN_MIRROR", "http://deb.debian.org/debian")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
QEMU_SERIES = "10.0."
NETWORK_HINT = "check the network, or set RSD_DEBIAN_MIRROR to a Debian mirror near you"

BINARY_SOURCE = f"deb [signed-by={KEYRING}] {MIRROR} {SUITE} main"


@dataclass(frozen=True)
class Release:
    """What the archive held when we last looked. `index` identifies the point release."""

    index: str
    qemu_version: str


def release(cache: Cache, progress: Progress, *, update: bool = False) -> Release:
    """The remembered state of the archive; asks the archive if there is none or `update`.

    Remembering it makes builds repeatable offline and in a second clone.
    """
    remembered = cache.root / "release.json"
    # It appears complete: who only reads it need not wait for others.
    if remembered.exists() and not update:
        return Release(**json.loads(remembered.read_text()))
    with cache.lock("release"):
        if remembered.exists() and not update:
            return Release(**json.loads(remembered.read_text()))
        with progress.step("Debian index") as step:
            _apt_get(cache, step, "update")
        (index,) = (cache.work("apt") / "lists").glob("*_InRelease")
        found = Release(hash_file(index), _qemu_version(cache))
        remembered.with_suffix(".new").write_text(json.dumps(asdict(found)))
        remembered.with_suffix(".new").rename(remembered)
        return found


def download_source(cache: Cache, step: Step, package: str, version: str, target: Path) -> None:
    """Download what `package`'s authors released into `target`, verified."""
    only = ("--download-only", "--tar-only")
    with cache.lock("apt"):
        _apt_get(cache, step, "source", *only, f"{package}={version}", cwd=target)


def source_versions(cache: Cache, package: str) -> list[str]:
    """The versions of a source package in the remembered index."""
    command: Sequence[str | Path] = (
        *("apt-cache", "-c", _configuration(cache)),
        *("showsrc", "--only-source", package),
    )
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = (line.split() for line in listing.splitlines())
    return [words[1] for words in lines if words[:1] == ["Version:"]]


def _configuration(cache: Cache) -> Path:
    """Write apt's private configuration; gives the file for `apt-get -c`."""
    base = cache.work("apt")
    for name in ("lists/partial", "archives/partial"):
        (base / name).mkdir(parents=True, exist_ok=True)
    (base / "sources.list").write_text(f"deb-src [signed-by={KEYRING}] {MIRROR} {SUITE} main\n")
    (base / "status").touch()
    path = base / "apt.conf"
    path.write_text(f"""\
Dir::Etc::sourcelist "{base}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "{base}";
Dir::State::lists "{base}/lists";
Dir::State::status "{base}/status";
Dir::Cache "{base}";
Acquire::Languages "none";
APT::Sandbox::User "";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
""")
    return path


def _apt_get(cache: Cache, step: Step, *words: str, cwd: Path | None = None) -> None:
    configuration = _configuration(cache)
    run_logged(
        ["apt-get", "-q", "-c", configuration, "-o", "APT::Update::Error-Mode=any", *words],
        step=step,
        log=cache.log(f"apt-{words[0]}"),
        hint=NETWORK_HINT,
        cwd=cwd,
    )


def _qemu_version(cache: Cache) -> str:
    """The newest QEMU in the index. Raises RsdError if it is of another series."""
    versions = source_versions(cache, "qemu")
    for version in versions:
        if version.split(":", 1)[-1].startswith(QEMU_SERIES):
            return version
    raise RsdError(
        f"Debian {SUITE} at {MIRROR} has QEMU {', '.join(versions) or '(none)'}: "
        f"{QEMU_SERIES}x is needed, which qemu-patches/ is made for",
        NETWORK_HINT,
    )
