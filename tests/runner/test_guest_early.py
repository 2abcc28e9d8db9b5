# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that end early: what the guest had in /out by then is copied."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY, Artifacts
from rsd.guest_run import STATUS
from rsd.machine import Outcome

pytestmark = pytest.mark.guest

PATIENCE_S = 900

# Idle time passes at once in virtual time, so what is to take long has to be busy.
ENDLESS = "echo half >/out/half; echo begun; while :; do :; done"


def heed_interrupts() -> None:
    """What a shell starts in the background, and its children, ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "rsd", "run", "--system", "none", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "host/tools")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    )


def wait_for_begin(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE_S)[0]
    assert os.read(process.stdout.fileno(), 100) == b"begun\n"


@pytest.mark.parametrize("clock", ["--icount", "--no-icount"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_by_a_signal(built: Artifacts, tmp_path: Path, number: int, clock: str) -> None:
    process = start(clock, "--out", tmp_path, "--", "sh", "-c", ENDLESS)
    wait_for_begin(process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == STATUS[Outcome.INTERRUPTED] == 130
    assert (tmp_path / "half").read_text() == "half\n"
    assert f"what was in the guest's /out is in {tmp_path}" in errors.decode()


@pytest.mark.parametrize("clock", ["--icount", "--no-icount"])
def test_by_the_wall_limit(built: Artifacts, tmp_path: Path, clock: str) -> None:
    """Also if the guest still boots when the time is up: it ends when it gets there."""
    process = start(clock, "--wall-limit", "1", "--out", tmp_path, "--", "sh", "-c", ENDLESS)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == STATUS[Outcome.WALL_TIMEOUT]
    assert (tmp_path / "half").read_text() == "half\n"
    assert f"what was in the guest's /out is in {tmp_path}" in errors.decode()


def test_a_command_that_does_not_heed_is_killed(built: Artifacts, tmp_path: Path) -> None:
    script = f"trap '' TERM; {ENDLESS}"
    process = start("--out", tmp_path, "--", "sh", "-c", script)
    wait_for_begin(process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, (tmp_path / "half").read_text()) == (130, "half\n")


def test_a_command_that_no_signal_reaches_is_left_behind(built: Artifacts, tmp_path: Path) -> None:
    """A frozen file system holds it in the kernel."""
    script = """
        truncate -s 64M /tmp/disk && mkfs.ext4 -q /tmp/disk && mount /tmp/disk /mnt &&
        fsfreeze -f /mnt || exit
        (until grep -q "State:.D" /proc/$$/status; do sleep 0.1; done; echo begun) &
        echo half >/out/half; exec touch /mnt/file
    """
    process = start("--no-icount", "--out", tmp_path, "--", "sh", "-c", script)
    wait_for_begin(process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, (tmp_path / "half").read_text()) == (130, "half\n")


def test_a_second_signal_ends_it_at_once(built: Artifacts, tmp_path: Path) -> None:
    """Of a guest whose results take for ever."""
    script = """
        printf '#!/bin/sh\nexec sleep 100000\n' >/run/tar && chmod +x /run/tar &&
        mount --bind /run/tar /usr/bin/tar && echo begun && sleep 100000
    """
    process = start("--no-icount", "--out", tmp_path, "--", "sh", "-c", script)
    wait_for_begin(process)
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=3)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "rsd: interrupted\n" in errors.decode()


def test_output_has_no_carriage_returns(built: Artifacts) -> None:
    process = start("--", "printf", "one\\ntwo\\n")
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert output == b"one\ntwo\n"
