# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives that are written before a guest starts, and what a run says of its drive."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from rsd import media_file
from rsd.artifacts import REPOSITORY, Artifacts

pytestmark = pytest.mark.guest

PATIENCE_S = 900

# 2 x 2 x 32 blocks of 32 pages: rsdsim has it in steady state within a second
SMALL = [
    word
    for name, value in {
        "channels": 2,
        "ways": 2,
        "blocks": 32,
        "pages": 32,
        "over-provision": 28,
    }.items()
    for word in ("--set", f"{name}={value}")
]


def rsd(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rsd", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "host/tools")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def counters(*options: str | Path) -> dict[str, int]:
    """Of a drive as a guest finds it."""
    done = rsd("run", *options, "--", "rsdctl", "show", "--json")
    assert done.returncode == 0, done.stderr
    return {name: one["value"] for name, one in json.loads(done.stdout)["counters"].items()}


@pytest.mark.parametrize(
    ("options", "part", "collected"),
    [
        (["--precondition", "fill"], 1.0, False),
        (["--fill", "75"], 0.75, False),
        (["--precondition", "steady", "--fill", "80"], 0.8, True),
    ],
)
def test_a_page_mapped_drive_is_written_before(
    built: Artifacts, options: list[str], part: float, collected: bool
) -> None:
    found = counters("--system", "page-ftl", *SMALL, *options)
    blocks = found["capacity_bytes"] // 4096
    used = int(blocks * part)
    if collected:
        assert found["host_write_pages"] > 10 * used and found["prog_clean"] > 0
    else:
        assert found["host_write_pages"] == used and found["prog_clean"] == 0


def test_the_part_that_is_filled_can_be_read(built: Artifacts) -> None:
    script = "fio --name=r --filename=/dev/nvme0n1 --direct=1 --rw=read --bs=4k --output=/dev/null"
    for size, unwritten in (("70%", False), ("100%", True)):
        done = rsd(
            *("run", "--system", "page-ftl", *SMALL, "--fill", "70"),
            *("--", "sh", "-c", f"{script} --size={size}; rsdctl show --json"),
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout[done.stdout.index("{") :])["counters"]
        assert (found["unwritten_reads"]["value"] > 64) == unwritten


def test_a_drive_that_was_written_is_kept_where_one_asks(built: Artifacts, tmp_path: Path) -> None:
    media = tmp_path / "drive.rsd"
    first = counters("--system", "page-ftl", *SMALL, "--fill", "50", "--media", media)
    again = counters("--media", media, "--system", "page-ftl", *SMALL)
    assert first["host_write_pages"] == again["host_write_pages"] > 0
    refused = rsd("run", "--system", "page-ftl", "--fill", "50", "--media", media, "--", "true")
    assert refused.returncode == 2
    assert f"{media} exists" in refused.stderr


@pytest.mark.parametrize(("options", "warned"), [([], True), (["--precondition", "fill"], False)])
def test_reads_of_a_new_drive_are_warned_of(
    built: Artifacts, tmp_path: Path, options: list[str], warned: bool
) -> None:
    """By the very counters that the drive shows."""
    read = "dd if=/dev/nvme0n1 of=/dev/null bs=1M count=16 iflag=direct status=none"
    media = tmp_path / "media"
    done = rsd("run", "--media", media, *options, "--", "sh", "-c", f"{read}; rsdctl show --json")
    assert done.returncode == 0
    shown = json.loads(done.stdout)["counters"]
    kept = media_file.counters(media)
    assert kept is not None
    assert kept.host_read_pages == shown["host_read_pages"]["value"] >= 4096
    assert kept.unwritten_reads == shown["unwritten_reads"]["value"]
    assert ("had never been written" in done.stderr) == warned
    assert ("--precondition fill" in done.stderr) == warned


def test_the_warning_is_of_this_run_alone(built: Artifacts, tmp_path: Path) -> None:
    media = tmp_path / "media"
    read = ("dd", "if=/dev/nvme0n1", "of=/dev/null", "bs=1M", "count=8", "iflag=direct")
    assert "never been written" in rsd("run", "--media", media, "--", *read).stderr
    assert "never been written" not in rsd("run", "--media", media, "--", "true").stderr


READS = """
dd if=/dev/zero of=/dev/nvme0n1 bs=1M count=8 oflag=direct 2>/dev/null
fio --name=r --filename=/dev/nvme0n1 --rw=randread --bs=4k --size=8m --number_ios=500 --direct=1 \
    --ioengine=io_uring --iodepth=8 --output-format=json --output=/out/fio
"""


def latencies(report: bytes) -> tuple[float, float]:
    """Of fio's reads, in ns: the mean and the 99th percentile."""
    found = json.loads(report)["jobs"][0]["read"]
    assert found["total_ios"] == 500
    return found["clat_ns"]["mean"], found["clat_ns"]["percentile"]["99.000000"]


def test_the_printed_command_runs(built: Artifacts, tmp_path: Path) -> None:
    """As it is, in another directory; the job's output and results are files then.

    Its guest boots with the drive. It measures what one does that goes on from the saved guest, to
    a hundredth: commands of 500 reads meet at other moments.
    """
    files = tmp_path / "files, with a comma"
    script = f"cat /in/said; cat /sys/block/nvme0n1/queue/chunk_sectors; {READS}"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "said").write_text("as it was given\n")
    job = ["--in", tmp_path / "in", "--set", "ways=2", "--", "sh", "-c", script]
    done = rsd("run", "--print-command", files, *job)
    assert done.returncode == 0, done.stderr
    (tmp_path / "run.sh").write_text(done.stdout)
    ran = subprocess.run(
        ["sh", tmp_path / "run.sh"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (files / "output").read_text() == "as it was given\n16384\n"
    with (files / "result").open("rb") as stream:
        assert b"outcome=exited status=0" in stream.read(4096)
        with tarfile.open(fileobj=stream) as tar:
            member = tar.extractfile("./fio")
            assert member is not None
            booted = latencies(member.read())
    assert rsd("run", "--out", tmp_path / "out", *job).returncode == 0
    assert latencies((tmp_path / "out/fio").read_bytes()) == pytest.approx(booted, rel=0.01)
    refused = rsd("run", "--print-command", files, "--", "true")
    assert refused.returncode == 2 and "it is not empty" in refused.stderr


def test_write_amplification_of_all_layers(built: Artifacts, tmp_path: Path) -> None:
    """16 MiB by write(2) on two file systems, and 1 MiB in writes that wait for the drive."""
    large = "dd if=/dev/zero of=/mnt/large bs=1M count=16 status=none"
    small = "dd if=/dev/zero of=/mnt/small bs=4k count=256 oflag=dsync status=none"
    for system, mkfs in (("rsd", "mkfs.rfs"), ("page-ftl", "mkfs.ext4 -q")):
        script = f"""
            {mkfs} /dev/nvme0n1 >/dev/null && mount /dev/nvme0n1 /mnt || exit
            rsdctl amplification --json -- {large} >/out/large
            rsdctl amplification --json -- {small} >/out/small
            rsdctl amplification --json -- fio --name=ring --filename=/mnt/ring --rw=write --bs=4k \
                --size=1m --direct=1 --ioengine=io_uring --output=/dev/null >/out/ring 2>/out/note
            rsdctl amplification --json --written 5 -- sh -c 'exit 7' >/out/given
        """
        out = tmp_path / system
        done = rsd("run", "--system", system, "--out", out, "--", "sh", "-c", script)
        assert done.returncode == 7, done.stderr
        found = json.loads((out / "large").read_text())
        assert 16 << 20 <= found["application_bytes"] < (16 << 20) + 4096
        assert 1 <= found["file_system_amplification"] < 1.1
        assert found["drive_amplification"] == 1
        total = found["drive_bytes"] / found["application_bytes"]
        assert found["amplification"] == pytest.approx(total, abs=1e-6)
        assert json.loads((out / "small").read_text())["amplification"] > found["amplification"]
        assert json.loads((out / "given").read_text())["application_bytes"] == 5
        # a part of what was written would make a ratio of thousands
        ring = json.loads((out / "ring").read_text())
        assert ring["application_bytes"] is None and ring["amplification"] is None
        assert ring["drive_amplification"] == 1
        assert "give --written BYTES" in (out / "note").read_text()
