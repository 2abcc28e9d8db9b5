# SPDX-License-Identifier: GPL-2.0-or-later
"""Media files that cannot be used: a clear refusal, and the file is left as it was."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from drive import SMALL, Drive, OpenDrive, device_args, digest
from nvme import Controller, Status
from qtest import Qemu, start_error
from zns import BLOCK, Action, Namespace, Zs, blocks_of, pattern


def make(drive: OpenDrive, media: Path) -> str:
    """A drive of the default geometry with some data; the digest of the file."""
    with drive() as d:
        d.ns.write(0, blocks_of(range(5))).expect()
        d.qemu.quit()
    return digest(media)


def refused(
    qemu: str, media: Path, words: Sequence[str], props: dict[str, str | int] | None = None
) -> None:
    """Starting on the file fails with all the words, and the file does not change."""
    before = (digest(media), media.stat().st_mtime_ns, media.stat().st_blocks)
    message = start_error(qemu, device_args(media, SMALL | (props or {})))
    for word in (str(media), *words):
        assert word in message, message
    assert (digest(media), media.stat().st_mtime_ns, media.stat().st_blocks) == before
    assert list(media.parent.iterdir()) == [media], "something was left behind"


def test_new_file_is_sparse_and_private_to_no_one(drive: OpenDrive, media: Path) -> None:
    with drive(blocks=1024, pages=64) as d:
        status = media.stat()
        assert status.st_size > 4 * 1024 * 64 * 4096
        assert status.st_blocks * 512 < 1 << 20
        d.ns.write(0, blocks_of(range(100))).expect()
    assert media.stat().st_blocks * 512 < 4 << 20


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("channels", 4),
        ("ways", 1),
        ("planes", 2),
        ("blocks", 8),
        ("pages", 8),
        ("spare-blocks", 3),
        ("bad-blocks-ppm", 1),
        ("seed", 2),
        ("segment", "way"),
        ("zd-ext", 64),
    ],
)
def test_other_geometry(
    qemu: str, drive: OpenDrive, media: Path, name: str, value: int | str
) -> None:
    make(drive, media)
    old = {"planes": 1, "bad-blocks-ppm": 0, "seed": 1, "segment": "all", "zd-ext": 0} | SMALL
    refused(qemu, media, [name, str(value), str(old[name])], {name: value})


def test_every_difference_is_named(qemu: str, drive: OpenDrive, media: Path) -> None:
    make(drive, media)
    refused(qemu, media, ["channels", "ways", "pages"], {"channels": 4, "ways": 4, "pages": 16})


def test_in_use_by_another_qemu(qemu: str, drive: OpenDrive, media: Path) -> None:
    with drive() as d:
        d.ns.write(0, blocks_of(range(5))).expect()
        refused(qemu, media, ["in use"])
        d.ns.write(5, blocks_of(range(5, 11))).expect()
        assert d.ns.read(0, 11)[0] == blocks_of(range(11))
        d.qemu.quit()
    with drive() as d:
        assert d.ns.read(0, 11)[0] == blocks_of(range(11))


def test_used_twice_in_one_qemu(qemu: str, drive: OpenDrive, media: Path) -> None:
    make(drive, media)
    args = device_args(media, SMALL)
    second = ["-device", "nvme,id=nvme1,serial=b", "-device", f"rsd-ns,bus=nvme1,media={media}"]
    assert "in use" in start_error(qemu, [*args, *second])


def test_free_again_after_a_kill(drive: OpenDrive) -> None:
    with drive() as d:
        d.qemu.kill()
    with drive() as d:
        d.ns.write(0, pattern(1)).expect()


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 8192, -4096, -1])
def test_truncated(qemu: str, drive: OpenDrive, media: Path, size: int) -> None:
    make(drive, media)
    os.truncate(media, size if size >= 0 else media.stat().st_size + size)
    refused(qemu, media, [])


def test_truncated_file_names_the_sizes(qemu: str, drive: OpenDrive, media: Path) -> None:
    make(drive, media)
    size = media.stat().st_size
    os.truncate(media, size - 4096)
    refused(qemu, media, [str(size), str(size - 4096)])


@pytest.mark.parametrize(
    "content",
    [bytes(1 << 20), b"\x7fELF" + bytes(1 << 20), b"some text\n" * 10_000, b"RSDMEDI2" * 5000],
    ids=["zeroes", "elf", "text", "similar"],
)
def test_foreign(qemu: str, media: Path, content: bytes) -> None:
    media.write_bytes(content)
    refused(qemu, media, [])


@pytest.mark.parametrize("offset", [0, 7, 8, 12, 16, 24, *range(32, 192, 8), 191])
def test_damaged_header(qemu: str, drive: OpenDrive, media: Path, offset: int) -> None:
    make(drive, media)
    with media.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))
    refused(qemu, media, [])


def test_newer_version(qemu: str, drive: OpenDrive, media: Path) -> None:
    make(drive, media)
    with media.open("r+b") as file:
        file.seek(8)
        file.write(b"\x63")
    refused(qemu, media, ["version", "99"])


def test_damaged_oob_size(qemu: str, drive: OpenDrive, media: Path) -> None:
    """The one setting that changes after creation is outside the checksum."""
    make(drive, media)
    with media.open("r+b") as file:
        file.seek(2048)
        file.write(b"\x21")
    refused(qemu, media, ["33"])


def test_directory(qemu: str, tmp_path: Path) -> None:
    message = start_error(qemu, device_args(tmp_path, SMALL))
    assert str(tmp_path) in message
    assert list(tmp_path.iterdir()) == []


def test_missing_directory(qemu: str, tmp_path: Path) -> None:
    media = tmp_path / "none" / "drive.rsd"
    assert str(media) in start_error(qemu, device_args(media, SMALL))
    assert not media.parent.exists()


def test_too_many_active_zones_for_the_limit(qemu: str, drive: OpenDrive, media: Path) -> None:
    with drive() as d:
        for zone in range(4):
            d.ns.write(d.ns.start(zone), pattern(zone)).expect()
        d.qemu.quit()
    message = start_error(qemu, device_args(media, SMALL | {"zoned.max_active": 3}))
    assert "zoned.max_active" in message
    with drive(zoned_max_active=4) as d:
        assert d.ns.states()[:4] == [Zs.CLOSED] * 4
        for zone in range(4):
            assert d.ns.read(d.ns.start(zone))[0] == pattern(zone)


def in_small_tmpfs(directory: Path, size: int) -> list[str]:
    """A command to run QEMU under, which sees an empty file system of size bytes there."""
    mount = f'mount -t tmpfs -o size={size} none "{directory}" && exec "$@"'
    # A container may allow its root to mount, and nobody to be root in a user namespace.
    namespaces = "-m" if os.geteuid() == 0 else "-rm"
    return ["unshare", namespaces, "sh", "-c", mount, "sh"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    directory = tmp_path / "disk"
    directory.mkdir()
    probe = [*in_small_tmpfs(directory, 1 << 20), "true"]
    if (
        not shutil.which("unshare")
        or subprocess.run(probe, check=False, capture_output=True).returncode
    ):
        pytest.skip("a full host disk: mounting a small tmpfs takes root, or user namespaces")
    return directory


@pytest.mark.parametrize("firmware_ns", [0, 1000], ids=["at-once", "later"])
def test_full_host_disk(qemu: str, small_disk: Path, firmware_ns: int) -> None:
    """Writes fail cleanly, what was written stays, and erasure makes room again.

    Also if the write pointer has moved before the firmware comes to the write.
    """
    media = small_disk / "drive.rsd"
    props = SMALL | {"blocks": 64, "pages": 16, "reset": "erase", "zoned.max_active": 0}
    props |= {"t-fw-write": firmware_ns, "t-fw-append": firmware_ns}
    args = device_args(media, props)
    with Qemu(qemu, args, prefix=in_small_tmpfs(small_disk, 3 << 20)) as machine:
        d = Drive(machine)
        written: list[int] = []
        for zone in range(64):
            transfer = blocks_of(range(zone, zone + 64))
            request = d.ns.write(d.ns.start(zone), transfer)
            if request.status == Status.SUCCESS:
                written.append(zone)
            else:
                request.expect(Status.CAPACITY_EXCEEDED)
                break
        refused_zone = len(written)
        assert 3 < refused_zone < 20
        assert d.ns.zone(refused_zone).wp == 0
        assert d.ns.zone(refused_zone).state == Zs.EMPTY
        d.ns.append(d.ns.start(refused_zone), pattern(1)).expect(Status.CAPACITY_EXCEEDED)
        assert d.ns.zone(refused_zone).wp == 0
        for zone in written:
            assert d.ns.read(d.ns.start(zone), 64)[0] == blocks_of(range(zone, zone + 64))
        d.ns.send(Action.RESET, written[0]).expect()
        data = blocks_of(range(500, 564))
        d.ns.write(d.ns.start(refused_zone), data).expect()
        assert d.ns.read(d.ns.start(refused_zone), 64)[0] == data
        d.qemu.quit()


@pytest.mark.parametrize("ftl", ["page", "dftl", "block", "fast"])
def test_disk_filled_by_others(qemu: str, small_disk: Path, ftl: str) -> None:
    """A conventional drive while another one takes the space that it needs.

    Its writes end with Capacity Exceeded, and what it has stays; with space, they go on.
    """
    props: dict[str, str | int] = {"ftl": ftl, "blocks": 16, "spare-blocks": 3, "pages": 8}
    props |= {"over-provision": 30, "log-blocks": 10, "map-cache": 1024, "nsid": 1}
    filler = {"blocks": 32, "pages": 16, "reset": "erase", "zoned.max_active": 0, "nsid": 2}
    args = device_args(small_disk / "drive.rsd", SMALL | props)
    settings = "".join(f",{name}={value}" for name, value in (SMALL | filler).items())
    args += ["-device", f"rsd-ns,bus=nvme0,id=ns1,media={small_disk / 'filler.rsd'}{settings}"]
    generator = random.Random(5)
    content: dict[int, set[bytes]] = {}
    refused = 0

    def write(space: Namespace, count: int, lbas: int, tag: int) -> None:
        """So many pages at random, of the first so many blocks"""
        nonlocal refused
        for index in range(tag, tag + count):
            lba, data = generator.randrange(lbas), pattern(index)
            request = space.write(lba, data)
            if request.status == Status.SUCCESS:
                content[lba] = {data}
            else:
                request.expect(Status.CAPACITY_EXCEEDED)
                content.setdefault(lba, {bytes(BLOCK)}).add(data)
                refused += 1

    with Qemu(qemu, args, prefix=in_small_tmpfs(small_disk, 6 << 20)) as machine:
        controller = Controller(machine)
        queue = controller.create_queue()
        space, other = Namespace(queue, 1, zoned=False), Namespace(queue, 2)
        half = space.size // 2
        write(space, 2 * half, half, 1)
        assert not refused
        zones = 0
        while other.write(other.start(zones), blocks_of(range(64))).status == Status.SUCCESS:
            zones += 1
        assert 3 < zones < 30
        write(space, 2 * half, space.size, 10_000)
        assert refused
        for zone in range(zones):
            other.send(Action.RESET, zone).expect()
        for lba, allowed in content.items():
            data = space.read(lba)[0]
            assert data in allowed, f"block {lba}"
            content[lba] = {data}
        refused = 0
        write(space, 3 * half, space.size, 20_000)
        assert not refused
        for lba, allowed in content.items():
            assert space.read(lba)[0] in allowed, f"block {lba}"
        machine.quit()


def test_full_host_disk_at_creation(qemu: str, small_disk: Path) -> None:
    media = small_disk / "drive.rsd"
    props = SMALL | {"blocks": 32_768}
    message = start_error(
        qemu, device_args(media, props), prefix=in_small_tmpfs(small_disk, 256 << 10)
    )
    assert str(media) in message
    assert "No space left" in message


@pytest.mark.parametrize("preset", ["", ",preset=custom"])
def test_a_pipe_is_no_media_file(qemu: str, tmp_path: Path, preset: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    args = [
        "-device",
        "nvme,id=nvme0,serial=s",
        "-device",
        f"rsd-ns,bus=nvme0,media={pipe}{preset}",
    ]
    assert str(pipe) in start_error(qemu, args)


@pytest.mark.parametrize("ftl", ["rsd", "page"])
def test_what_the_hosts_disk_lost(drive: OpenDrive, media: Path, ftl: str) -> None:
    """The host cannot load the file any more: commands fail, SMART says so, QEMU goes on."""
    read_only = 0x08
    with drive(ftl=ftl, blocks=64, pages=16) as d:
        d.ns.write(0, blocks_of(range(8))).expect()
        assert d.controller.get_log(0x02, 512)[0] == 0
        errors = d.log()["media_errors"]
        os.truncate(media, 0)
        d.ns.write(8, pattern(8)).expect(Status.WRITE_FAULT)
        assert d.ns.get(0)[0].status == Status.UNRECOVERED_READ
        d.ns.flush().expect(Status.WRITE_FAULT)
        assert d.controller.get_log(0x02, 512)[0] & read_only
        assert d.log()["media_errors"] > errors
        d.qemu.quit()
