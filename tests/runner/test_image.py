# SPDX-License-Identifier: GPL-2.0-or-later
"""Images that are exchanged: whole, or refused."""

import io
import struct
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from rsd import artifacts, buildroot, debian, image, qemu
from rsd.cache import Cache
from rsd.errors import RsdError, StepFailed
from rsd.progress import Progress, Step


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def qemu_that(directory: Path, does: str) -> Path:
    """A program in QEMU's place."""
    path = directory / "qemu"
    path.write_text(f"#!/bin/sh\n{does}\n")
    return path


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "zappend").write_bytes(b"tool" * 1000)
    modules = tmp_path / "modules"
    (modules / "6.12").mkdir(parents=True)
    (modules / "6.12" / "rfs.ko").write_bytes(b"module")
    for name in ("vmlinux", "root.erofs"):
        (tmp_path / name).write_bytes(name.encode() * 1000)
    target = tmp_path / "image.tar"
    parts = {name: tmp_path / name for name in ("vmlinux", "root.erofs")}
    parts[image.QEMU] = qemu_that(tmp_path, "exit 0")
    image.export(target, parts, {"tools": tools, "modules": modules}, "release", "sources")
    return target


def test_an_imported_image_is_used_until_reset(cache: Cache, exported: Path) -> None:
    assert image.imported(cache) is None
    name = image.import_(cache, exported)
    path = image.imported(cache)
    assert path is not None
    assert path.name == name
    assert (path / "vmlinux").read_bytes() == b"vmlinux" * 1000
    assert (path / "tools/zappend").read_bytes() == b"tool" * 1000
    assert (path / "modules/6.12/rfs.ko").read_bytes() == b"module"
    image.reset(cache)
    assert image.imported(cache) is None


def test_a_damaged_image_is_refused(cache: Cache, exported: Path) -> None:
    data = exported.read_bytes()
    exported.write_bytes(data.replace(b"root.erofsroot.erofs", b"root.erofsROOT.erofs", 1))
    with pytest.raises(RsdError, match=r"root\.erofs is damaged"):
        image.import_(cache, exported)
    assert image.imported(cache) is None


def test_a_truncated_image_is_refused(cache: Cache, exported: Path) -> None:
    exported.write_bytes(exported.read_bytes()[:5000])
    with pytest.raises(RsdError, match="not an exported image"):
        image.import_(cache, exported)


def test_another_archive_is_refused(cache: Cache, tmp_path: Path) -> None:
    archive = tmp_path / "other.tar"
    with tarfile.open(archive, "w"):
        pass
    with pytest.raises(RsdError, match="not an exported image"):
        image.import_(cache, archive)


def test_a_qemu_that_does_not_start_is_refused(cache: Cache, tmp_path: Path) -> None:
    program = qemu_that(tmp_path, "echo libslirp.so.0: cannot open >&2; exit 127")
    target = tmp_path / "image.tar"
    image.export(target, {image.QEMU: program}, {}, "release", "sources")
    with pytest.raises(RsdError, match=r"does not start here: libslirp\.so\.0: cannot open"):
        image.import_(cache, target)
    assert image.imported(cache) is None


def test_a_ready_made_qemu_is_of_the_same_sources(
    cache: Cache, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another drive in the clone than in the image, QEMU has to be built."""
    assert not artifacts.ready_made(cache)
    image.import_(cache, exported)
    assert not artifacts.ready_made(cache)
    monkeypatch.setattr(qemu, "sources", lambda repository: "sources")
    assert artifacts.ready_made(cache)


def test_the_root_is_a_partition(tmp_path: Path) -> None:
    filesystem = tmp_path / "filesystem"
    filesystem.write_bytes(b"F" * (3 << 20))
    disk = tmp_path / "disk"
    image.write_partitioned(filesystem, disk)
    data = disk.read_bytes()
    assert len(data) == 128 << 20
    assert data[510:512] == b"\x55\xaa"
    signature, start, sectors = struct.unpack("<I10xII", data[440:462])
    assert f"PARTUUID={signature:08x}-01" == image.ROOT
    assert data[start * 512 : (start + sectors) * 512] == b"F" * (3 << 20)


def test_what_a_bootstrap_makes_up_is_replaced(tmp_path: Path) -> None:
    archive = tmp_path / "root.tar"
    with tarfile.open(archive, "w") as tar:
        member = tarfile.TarInfo("./etc/nvme/hostid")
        member.size = 7
        tar.addfile(member, io.BytesIO(b"made up"))
    image.make_same(archive)
    with tarfile.open(archive) as tar:
        last = tar.extractfile(tar.getmember("./etc/nvme/hostid"))
        assert last and last.read().decode().strip() == image.HOST_ID
        assert tar.getmember("./var/cache/apt/archives/partial").uid == 0


def test_a_package_that_debian_does_not_have_is_named(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(packages: object, target: Path, *, step: Step, log: Path) -> None:
        log.write_text("Reading package lists...\nE: Unable to locate package nosuch\n")
        raise StepFailed(step.title, 25, log, [], "check the network")

    monkeypatch.setattr(buildroot, "bootstrap", fail)
    monkeypatch.setattr(debian, "release", lambda *_: SimpleNamespace(index="index"))
    with pytest.raises(RsdError, match="--packages nosuch: Debian trixie has no package"):
        image.ensure_root(cache, Progress(), ["nosuch"])
    with pytest.raises(StepFailed):
        image.ensure_root(cache, Progress(), ["another"])
