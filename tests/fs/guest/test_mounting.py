# SPDX-License-Identifier: GPL-2.0-or-later
"""Mounting, options, read-only, freezing, shutdown, a drive that goes away."""

import json
import re

import pytest
from mounted import Run, Volume, script

from rsd.artifacts import REPOSITORY

pytestmark = pytest.mark.guest


def options() -> dict[str, str]:
    """The mount options of host/fs/README.md with their defaults."""
    text = (REPOSITORY / "host/fs/README.md").read_text()
    table = text[text.index("| mount option") :].split("\n\n")[0]
    rows = [row.strip("|").split("|") for row in table.splitlines()[2:]]
    return {row[0].strip(): row[1].strip().strip("`") for row in rows}


def test_options(run: Run, volume: Volume) -> None:
    """Each documented option and value is taken and shown; others are refused."""
    taken = []
    for text in options():
        first, *values = re.findall(r"`([^`]+)`", text)
        name, _, value = first.partition("=")
        if name in ("slow", "bypass"):
            continue  # of hybrid volumes: test_hybrid.py and test_flash_lost.py
        if not value:
            taken += [name, *values]
            continue
        values = [value, *values]
        taken += [f"{name}={5 if value.isupper() else value}" for value in values]
    assert taken
    tries = "\n".join(
        f"start -o {option}; grep -F {option} /proc/mounts || test {option} = "
        f"errors=remount-ro; end"
        for option in taken
    )
    run(
        script(
            volume,
            f"""
            mkfs.rfs -q -f -c $drive    # compact=on wants it
            {tries}
            for bad in nonsense commit=0 commit=x errors=never commit=-1 groups=0 groups=7 \
                    gc=best quantize=x compact=x slow= \
                    bypass=5; do
                fails 32 start -o $bad
            done
            start
            mount -o remount,commit=11,groups=1,gc=greedy /mnt
            grep commit=11,.*,groups=1,gc=greedy, /proc/mounts
            end
            """,
        ),
        system=volume.system,
    )


def test_options_of_others(run: Run, volume: Volume) -> None:
    """Options that other file systems have are taken, or refused with their name."""
    text = (REPOSITORY / "host/fs/README.md").read_text()
    table = text[text.index("| option of other file systems") :].split("\n\n")[0]
    taken, quotas, refused = (
        re.findall(r"`([^`]+)`", row.strip("|").split("|")[0]) for row in table.splitlines()[2:]
    )
    assert len(taken) == 4
    assert quotas == ["quota", "noquota"]
    assert len(refused) == 5
    takes = "\n".join(f"start -o {name}; end" for name in taken)
    refuses = "\n".join(
        f"dmesg -C; fails 32 start -o {name} >/tmp/said 2>&1; dmesg >>/tmp/said\n"
        f"grep '{name}: ' /tmp/said"
        for name in refused
    )
    run(
        script(
            volume,
            f"""
            {takes}
            start -o quota; grep ' /mnt rfs .*,usrquota' /proc/mounts; end
            start -o usrquota,grpquota,noquota; fails 1 grep ' /mnt rfs .*quota' /proc/mounts; end
            {refuses}
            """,
        ),
        system=volume.system,
    )


def test_type_is_found(run: Run, volume: Volume) -> None:
    """mount(8) without a type, and with fstab's auto, though btrfs is in the kernel, too."""
    run(
        script(
            volume,
            """
            mount $drive /mnt
            grep " /mnt rfs" /proc/mounts
            umount /mnt
            grep btrfs /proc/filesystems
            echo "$drive /mnt auto defaults 0 0" >>/etc/fstab
            mount /mnt
            grep " /mnt rfs" /proc/mounts
            end
            """,
        ),
        system=volume.system,
    )


def test_read_only(run: Run, volume: Volume) -> None:
    """A read-only mount writes nothing, also when there is something to recover."""
    result = run(
        script(
            volume,
            """
            start
            echo kept > /mnt/file
            mount -o remount,ro /mnt
            fails 1 touch /mnt/new
            mount -o remount,rw /mnt
            touch /mnt/new
            end
            rsdctl show --json $drive > /out/before.json
            start -o ro
            test $(cat /mnt/file) = kept
            fails 1 touch /mnt/other
            fails 1 rm /mnt/file
            cd /; umount /mnt
            rsdctl show --json $drive > /out/after.json
            """,
        ),
        system=volume.system,
    )
    counters = [
        json.loads((result.out_dir / f"{name}.json").read_text())["counters"]
        for name in ("before", "after")
    ]
    assert counters[0]["host_write_pages"] == counters[1]["host_write_pages"]


def test_frozen(run: Run, volume: Volume) -> None:
    run(
        script(
            volume,
            """
            start
            echo before > /mnt/file
            fsfreeze -f /mnt
            echo after > /mnt/file & writer=$!
            sleep 1
            kill -0 $writer
            fsfreeze -u /mnt
            wait $writer
            test $(cat /mnt/file) = after
            end
            """,
        ),
        system=volume.system,
    )


SHUTDOWN = """
import fcntl, os, struct
os.chdir("/mnt")
with open("durable", "w") as stream:
    stream.write("durable")
    stream.flush()
    os.fsync(stream.fileno())
with open("lost", "w") as stream:
    stream.write("lost")
root = os.open(".", os.O_RDONLY)
# _IOR('X', 125, __u32): 2 is without writing anything
fcntl.ioctl(root, 0x8004587D, struct.pack("I", 2))
for what in (lambda: open("new", "w"), lambda: os.unlink("durable"), lambda: os.mkdir("d")):
    try:
        what()
    except OSError as error:
        print("refused", error.errno)
    else:
        raise SystemExit("a volume that is shut down takes changes")
"""


def test_shut_down(run: Run, volume: Volume) -> None:
    """The ioctl that Linux's file systems share: nothing is written from then on."""
    run(
        script(
            volume,
            f"""
            start
            python3 -c '{SHUTDOWN.replace("'", chr(34))}'
            cd /; umount /mnt
            start
            test "$(cat /mnt/durable)" = durable
            end
            """,
        ),
        system=volume.system,
    )


def test_drive_goes_away(run: Run, volume: Volume) -> None:
    """In mid-write: an error for the writer, and a clean unmount."""
    run(
        script(
            volume,
            """
            start
            head -c 1000000 /dev/zero > /mnt/file
            sync
            dd if=/dev/zero of=/mnt/more bs=64k count=4000 conv=fsync & writer=$!
            sleep 0.3
            echo 1 > /sys/class/nvme/nvme0/device/remove
            fails 1 wait $writer
            cd /; umount /mnt
            test ! -e $drive
            """,
        ),
        system=volume.system,
    )


def test_what_cannot_be_mounted(run: Run) -> None:
    """No drive with zones, no volume, another file system: mount(8)'s status, and no oops."""
    run("fails 32 mount -t rfs /dev/nvme0n1 /mnt", system="page-ftl")
    run(
        """
        fails 32 mount -t rfs /dev/nvme0n1 /mnt
        mkfs.btrfs -q -O zoned -d single -m single /dev/nvme0n1
        fails 32 mount -t rfs /dev/nvme0n1 /mnt
        btrfs check /dev/nvme0n1
        """,
        namespace={"oob": "0"},
    )
