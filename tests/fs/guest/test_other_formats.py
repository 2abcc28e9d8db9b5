# SPDX-License-Identifier: GPL-2.0-or-later
"""Volumes of other versions, by changing the superblock in the media file."""

import os
import struct
from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script
from test_damage import metadata

pytestmark = pytest.mark.guest

# struct rfs_head and struct rfs_super (host/fs/doc/format.md)
BLOCK, CRC_AT, TYPE_AT, SUPER = 4096, 4, 12, 10
VERSION, COMPAT, RO_COMPAT, INCOMPAT = 64, 68, 72, 76


def crc32c(data: bytes) -> int:
    """RFC 3720's."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def change_supers(media: Path, at: int, value: int) -> None:
    """Set a word of every superblock; their checksums are right again."""
    changed = 0
    with media.open("r+b") as stream:
        for place in metadata(media):
            block = bytearray(os.pread(stream.fileno(), BLOCK, place))
            if block[TYPE_AT] != SUPER:
                continue
            struct.pack_into("<I", block, at, value)
            struct.pack_into("<I", block, CRC_AT, crc32c(bytes(block[:CRC_AT] + block[8:])))
            os.pwrite(stream.fileno(), block, place)
            changed += 1
    assert changed >= 2


def test_other_versions(run: Run, volume: Volume, tmp_path: Path) -> None:
    """What may be mounted is, and nothing is written of what may only be read or not at all."""
    media = tmp_path / "media"
    options = {
        "system": volume.system,
        "namespace": {**volume.namespace, **SMALL},
        "media": media,
    }
    run(script(volume, "start; echo old >/mnt/file; mkdir /mnt/d; end"), **options)
    refused = """
        fails 32 mount -t rfs $drive /mnt
        fails 32 mount -t rfs -o ro $drive /mnt
        fails 8 fsck.rfs $drive
        fails 1 dump.rfs $drive
        fails 1 mkfs.rfs $drive
        dmesg | grep 'rfs: nvme0n1: made by'
    """
    for at, value, told in (
        (VERSION, 1, "format 1, which this one does not read (it reads 2)"),
        (VERSION, 3, "format 3 (known: 2)"),
        (INCOMPAT, 0x80000000, "incompat 0x80000000"),
    ):
        kept = media.read_bytes()
        change_supers(media, at, value)
        result = run(script(volume, refused, make=False), **options)
        assert told in result.output
        media.write_bytes(kept)
    change_supers(media, COMPAT, 0x4)
    change_supers(media, RO_COMPAT, 0x10)
    result = run(
        script(
            volume,
            """
            # mount(8) tries again for reading
            mount -t rfs $drive /mnt
            grep ' /mnt rfs ro' /proc/mounts
            test $(cat /mnt/file) = old
            fails 1 touch /mnt/new
            fails 32 mount -o remount,rw /mnt
            umount /mnt
            start -o ro
            test $(cat /mnt/file) = old
            umount /mnt
            dmesg | grep 'rfs: nvme0n1: made by'
            """,
            make=False,
        ),
        **options,
    )
    assert "ro_compat 0x10" in result.output
    change_supers(media, RO_COMPAT, 0)
    run(
        script(volume, "start; test $(cat /mnt/file) = old; touch /mnt/new; end", make=False),
        **options,
    )
