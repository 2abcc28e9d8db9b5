# SPDX-License-Identifier: GPL-2.0-or-later
"""The drive as a Linux guest sees it: tools, a real file system, and the next boot."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import GuestJob, GuestResult, Outcome

pytestmark = pytest.mark.guest

Run = Callable[..., GuestResult]


@pytest.fixture
def run(built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> Run:
    """run(script, system="rsd", ...): a guest in virtual time; its script must succeed."""

    def start(script: str, system: str = "rsd", **options: object) -> GuestResult:
        job = GuestJob(
            system=system,
            script="set -ex\n" + script,
            out_dir=tmp_path / "out",
            wall_limit_s=3600,
            **options,  # type: ignore[arg-type]
        )
        result = machine.run_guest(job, built, cache=rsd_cache)
        assert result.outcome is Outcome.EXITED, result.console
        assert result.status == 0, result.output
        return result

    return start


def test_appends_read_back_with_their_metadata(run: Run) -> None:
    run("zappend --reset --zones 0-2 --ios 4608 --qd 64 --blocks 2 --oob --verify /dev/ng0n1")


def test_rsdctl_shows_what_nvme_get_log_gets(run: Run) -> None:
    result = run(
        """
        zappend --zones 0-0 --ios 16 --oob /dev/ng0n1
        nvme get-log /dev/nvme0n1 --log-id=0xca --log-len=4096 --raw-binary > /out/nvme.bin
        rsdctl save /out/rsdctl.bin /dev/nvme0n1
        rsdctl decode --json /out/nvme.bin > /out/nvme.json
        """
    )
    page = (result.out_dir / "nvme.bin").read_bytes()
    assert len(page) == 4096
    assert page == (result.out_dir / "rsdctl.bin").read_bytes()
    assert '"host_write_pages"' in (result.out_dir / "nvme.json").read_text()


def test_random_write_areas_by_nvme_cli(run: Run) -> None:
    """Linux knows no ZRWA; nvme-cli does."""
    areas = {"write-buffer": "2M", "ack": "buffer", "oob": "0"}
    areas |= {"zrwa": "4", "zrwa-size": "64K", "zrwa-flush": "16K"}
    result = run(
        """
        head -c 16384 /dev/urandom > /tmp/one
        head -c 16384 /dev/urandom > /tmp/two
        nvme zns open-zone /dev/nvme0n1 --start-lba=0 --zrwaa
        for write in "4 one" "0 one" "0 two"; do
            set -- $write
            nvme write /dev/nvme0n1 --start-block=$1 --block-count=3 --data-size=16384 \
                --data=/tmp/$2
        done
        nvme zns report-zones /dev/nvme0n1 --descs=1 > /out/before
        nvme zns zrwa-flush-zone /dev/nvme0n1 --lba=3
        nvme zns report-zones /dev/nvme0n1 --descs=1 > /out/after
        nvme read /dev/nvme0n1 --start-block=0 --block-count=7 --data-size=32768 --data=/tmp/read
        cat /tmp/two /tmp/one | cmp - /tmp/read
        nvme zns id-ns /dev/nvme0n1 > /out/identify
        rsdctl show --json /dev/nvme0n1 > /out/counters
        """,
        namespace=areas,
    )
    texts = {path.name: path.read_text() for path in result.out_dir.iterdir()}
    assert "WP: 0 " in texts["before"]
    assert "WP: 0x4 " in texts["after"]
    assert re.search(r"ozcs\s*:\s*2$", texts["identify"], re.MULTILINE)
    assert json.loads(texts["counters"])["counters"]["zrwa_overwrites"]["value"] == 4


def test_format_to_each_metadata_size(run: Run) -> None:
    """And what Linux makes of the namespace then."""
    run(
        """
        for lbaf in 3 1 0 2; do
            # From 6.12.117 on, Linux looks for no partitions on a drive with zones, and nvme-cli
            # takes that for a failure of the format that it reported before.
            nvme format /dev/nvme0n1 --lbaf=$lbaf --force >said 2>&1 ||
                grep "failed to re-read partition table" said
            grep "Success formatting namespace:1" said
            sleep 1
            case $lbaf in 0) size=0 oob=;; 1) size=16 oob=--oob;; 2) size=64 oob=--oob;;
                *) size=128 oob=--oob;; esac
            nvme id-ns /dev/nvme0n1 | grep "lbaf *$lbaf : ms:$size .*in use"
            test "$(nvme zns report-zones /dev/nvme0n1 -S 1 | head -1)" = "nr_zones: 128"
            zappend --zones 5-5 --ios 64 --qd 4 $oob --verify /dev/ng0n1
        done
        """
    )


def test_a_file_system_over_two_boots(run: Run, tmp_path: Path) -> None:
    """btrfs in zoned mode, without OOB: written in one guest, read in the next."""
    media = tmp_path / "drive.rsd"
    without_oob = {"oob": "0"}
    run(
        """
        mkfs.btrfs -q -O zoned -d single -m single /dev/nvme0n1
        mount -t btrfs /dev/nvme0n1 /mnt
        dd if=/dev/urandom of=/mnt/data bs=1M count=24
        md5sum < /mnt/data > /mnt/sum
        umount /mnt
        """,
        media=media,
        namespace=without_oob,
    )
    run(
        """
        mount -t btrfs /dev/nvme0n1 /mnt
        test "$(md5sum < /mnt/data)" = "$(cat /mnt/sum)"
        umount /mnt
        """,
        media=media,
        namespace=without_oob,
    )


def test_flushes_come_with_host_sync(run: Run) -> None:
    """Linux finds a volatile write cache, and flushes it when it is asked to sync."""
    result = run(
        """
        test "$(cat /sys/block/nvme0n1/queue/write_cache)" = "write back"
        rsdctl show --json /dev/nvme0n1 > /out/before
        dd if=/dev/zero of=/dev/nvme0n1 bs=16K count=1 oflag=direct conv=notrunc,fdatasync
        rsdctl show --json /dev/nvme0n1 > /out/after
        """,
        namespace={"host-sync": "on", "oob": "0"},
    )
    before, after = (
        json.loads((result.out_dir / name).read_text())["counters"]["flush_cmds"]["value"]
        for name in ("before", "after")
    )
    assert after > before


def test_flush_is_not_needed(run: Run) -> None:
    """There is no volatile buffer, so Linux sends no flush."""
    run(
        """
        test "$(cat /sys/block/nvme0n1/queue/write_cache)" = "write through"
        test "$(cat /sys/block/nvme0n1/queue/zoned)" = host-managed
        """
    )
