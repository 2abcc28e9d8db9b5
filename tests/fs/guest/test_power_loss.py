# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest ends without warning: what it was promised is there in the next one."""

import os
import random
import re
import signal
import time
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


class Killer:
    """Ends the QEMU of a media file at a random moment after its guest has said `word` so often."""

    def __init__(self, media: Path, word: bytes, times: int, delay_s: float) -> None:
        self._media, self._word, self._times, self._delay_s = media, word, times, delay_s
        self.seen = bytearray()

    def __call__(self, data: bytes) -> None:
        self.seen.extend(data)
        if self.seen.count(self._word) < self._times:
            return
        time.sleep(self._delay_s)
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and f"media={self._media}".encode() in _command(entry):
                os.kill(int(entry.name), signal.SIGKILL)


@pytest.mark.parametrize("times", [3, pytest.param(200, marks=pytest.mark.long)])
def test_killed_qemu(run: Run, volume: Volume, tmp_path: Path, times: int) -> None:
    """Each guest checks what the one before has promised, and writes until QEMU is killed: after up
    to 400 promises, or, in each fifth guest, while it recovers.
    """
    media = tmp_path / "media"
    options = {
        "system": volume.system,
        "namespace": {**volume.namespace, **SMALL},
        "media": media,
    }
    chance = random.Random(times)
    kept, seed, recoveries = -1, 0, 0
    body = "start\n/in/promise /mnt run 0 100000 seed=0"
    for number in range(1, times + 1):
        recovers = number % 5 == 3
        if recovers:
            # Nothing else is promised: the next guest asks for the same.
            check = f"/in/promise /mnt check {kept} seed={seed}"
            body = f"echo recovers\nstart\nwhile true; do {check}; done"
            killer = Killer(media, b"recovers", 1, chance.random() / 2)
        else:
            killer = Killer(media, b"\npromised", chance.randint(1, 400), chance.random() / 50)
        with pytest.raises(QemuFailed):
            run(script(volume, body, make=number == 1), on_output=killer, **options)
        if recovers:
            recoveries += 1
        else:
            kept = promised(killer.seen.decode())
            seed = number - 1
        print(f"{number}: killed {'within a recovery' if recovers else f'after promise {kept}'}")
        body = f"""
            {volume.check} || test $? -le 1
            start
            /in/promise /mnt check {kept} seed={seed}
            again
            /in/promise /mnt check {kept} seed={seed}
            rm -rf /mnt/d?
            /in/promise /mnt run 0 100000 seed={number}
        """
    body = f"start\n/in/promise /mnt check {kept} seed={seed}\nend"
    run(script(volume, body, make=False), **options)
    print(f"{times} of {times} killed, {recoveries} of them within a recovery: nothing was lost")


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
