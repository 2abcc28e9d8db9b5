# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's own record and replay with our drive: the replay follows the log, to the same bytes.

A plain second run gives the same bytes, too. What is shown here is that nothing in the drive or in
our clock breaks the log: a replay whose events do not come where the log has them ends in an error.
"""

import re
import subprocess
from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY, Artifacts

pytestmark = pytest.mark.guest

WORK = """
fio --name=w --filename=/dev/nvme0n1 --direct=1 --rw=randrw --size=8m --number_ios=200 \
    --ioengine=io_uring --iodepth=8 --minimal
cat /proc/uptime /proc/interrupts
"""


def run(directory: Path, mode: str, log: Path) -> tuple[bytes, bytes]:
    """One run of the line that ./rsd run --print-command has: its console and its output."""
    words = ["run", "--system", "page-ftl", "--print-command", directory, "--", "sh", "-c", WORK]
    line = subprocess.run(
        [REPOSITORY / "rsd", *words], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    line, changed = re.subn(r"(-icount \S+)", rf"\1,rr={mode},rrfile={log}", line)
    assert changed == 1
    line = line.replace("-serial mon:stdio", f"-serial file:{directory}/console")
    subprocess.run(["sh", "-c", line], check=True, timeout=300)
    return (directory / "console").read_bytes(), (directory / "output").read_bytes()


def test_record_and_replay(built: Artifacts, tmp_path: Path) -> None:
    recorded = run(tmp_path / "1", "record", tmp_path / "log")
    assert b"fio-" in recorded[1] and b"nvme0q1" in recorded[1]
    assert (tmp_path / "log").stat().st_size > 10_000
    assert run(tmp_path / "2", "replay", tmp_path / "log") == recorded
    media = [tmp_path / number / "media" for number in ("1", "2")]
    subprocess.run(["cmp", *media], check=True)
