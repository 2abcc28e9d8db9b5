# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest ends without warning: what it was promised is there in the next one."""

import os
import re
import signal
from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script

from rsd.machine import Outcome, QemuFailed

pytestmark = pytest.mark.guest

# No unmount, no sync: the kernel resets the machine, which QEMU then ends.
CUT = "echo b > /proc/sysrq-trigger; sleep 100"
STEPS = 150


def promised(output: str) -> int:
    """The last step of `promise` that has promised something."""
    return int(re.findall(r"^promised (\d+)\r?\n", output, re.M)[-1])


@pytest.mark.parametrize("vcpus", [1, 2, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.parametrize("times", [2, pytest.param(40, marks=pytest.mark.long)])
def test_reset_machine(run: Run, volume: Volume, tmp_path: Path, times: int, vcpus: int) -> None:
    """Each guest checks what the one before has promised, and writes until its own end."""
    media = tmp_path / "media"
    options = {
        "system": volume.system,
        "namespace": {**volume.namespace, **SMALL},
        "media": media,
        "vcpus": vcpus,
    }
    body = f"start\n/in/promise /mnt run 0 {STEPS} seed=0\n{CUT}"
    output = run(script(volume, body), outcome=Outcome.LOST, **options).output
    for number in range(1, times + 1):
        # What was not promised may be gone: the next workload begins with empty directories.
        body = f"""
            {volume.check} || test $? -le 1
            start
            /in/promise /mnt check {promised(output)} seed={number - 1}
            again
            /in/promise /mnt check {promised(output)} seed={number - 1}
            rm -rf /mnt/d?
            /in/promise /mnt run 0 {STEPS} seed={number}
            {CUT}
        """
        result = run(script(volume, body, make=False), outcome=Outcome.LOST, **options)
        output = result.output


def test_killed_qemu(run: Run, volume: Volume, tmp_path: Path) -> None:
    """Wherever in its work: the check holds for each point."""
    media = tmp_path / "media"
    options = {"system": volume.system, "namespace": volume.namespace, "media": media}
    seen = bytearray()

    def kill(data: bytes) -> None:
        seen.extend(data)
        if seen.count(b"\npromised") > 100:
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit() and f"media={media}".encode() in _command(entry):
                    os.kill(int(entry.name), signal.SIGKILL)

    with pytest.raises(QemuFailed):
        run(script(volume, "start\n/in/promise /mnt run 0 100000"), on_output=kill, **options)
    body = f"start\n/in/promise /mnt check {promised(seen.decode())}\nend"
    run(script(volume, body, make=False), **options)


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
