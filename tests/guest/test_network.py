# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest with the network of docs/own-qemu.md, Debian's own kernel in it: it reaches the host."""

import lzma
import re
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from programs import compiled
from rsd.artifacts import REPOSITORY, Artifacts
from rsd.cache import Cache

pytestmark = [
    pytest.mark.guest,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("apt-get") is None, reason="downloads Debian's kernel"),
]

SOURCE = Path(__file__).with_name("network.c")
PAGE = REPOSITORY / "docs/own-qemu.md"
# What else the page's own example has for a kernel of one's own
MACHINE = (
    "-L /usr/share/seabios -L /usr/share/qemu -M q35 -m 512M -nodefaults -display none -no-reboot "
    "-serial stdio -accel tcg,thread=single -cpu max"
).split()


def options() -> list[str]:
    """Those that the page names for a network card."""
    (found,) = re.findall(r"`(-netdev user,\S+ -device \S+)`", PAGE.read_text())
    return shlex.split(found)


def kernel(directory: Path) -> tuple[Path, bytes]:
    """The kernel of Debian's package for PCs, and its module of the card."""
    listed = ["apt-cache", "depends", "linux-image-amd64"]
    said = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    (package,) = re.findall(r"Depends: (linux-image-\S+-amd64)$", said, re.M)
    subprocess.run(["apt-get", "-q", "download", package], cwd=directory, check=True, timeout=600)
    (archive,) = directory.glob("*.deb")
    command = ["dpkg-deb", "--fsys-tarfile", archive]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as unpacked:
        found: dict[str, bytes] = {}
        with tarfile.open(fileobj=unpacked.stdout, mode="r|") as files:
            for one in files:
                if match := re.search(r"/(vmlinuz|e1000\.ko(?:\.xz)?)(?:-[^/]*)?$", one.name):
                    stream = files.extractfile(one)
                    assert stream
                    found[match[1]] = stream.read()
    (directory / "vmlinuz").write_bytes(found.pop("vmlinuz"))
    ((name, module),) = found.items()
    return directory / "vmlinuz", lzma.decompress(module) if name.endswith(".xz") else module


def entry(name: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    """A file of an initramfs: the kernel's Documentation/driver-api/early-userspace."""
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % number for number in numbers) + name.encode() + b"\0"
    head += b"\0" * (-len(head) % 4)
    return head + content + b"\0" * (-len(content) % 4)


def test_a_guest_reaches_the_host(built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> None:
    image, module = kernel(tmp_path)
    root = tmp_path / "root.cpio"
    root.write_bytes(
        entry("dev", 0o40755)
        + entry("dev/console", 0o20600, device=(5, 1))
        + entry("init", 0o100755, compiled(rsd_cache, SOURCE).read_bytes())
        + entry("e1000.ko", 0o100644, module)
        + entry("TRAILER!!!", 0)
    )
    network = options()
    # The host's side of the connection: what the guest writes comes back.
    network[1] += ",guestfwd=tcp:10.0.2.100:7-cmd:cat"
    command: list[str | Path] = [built.qemu]
    command += [*MACHINE, *network, "-kernel", image, "-initrd", root]
    command += ["-append", "console=ttyS0 quiet rdinit=/init"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False
    )
    assert "guest: through the network" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
