# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd top` of a guest that runs: it sees the drive at work, and changes nothing."""

import hashlib
import threading
from pathlib import Path

import pytest

from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import GuestJob, GuestResult, Outcome
from rsd.top import command, runs
from rsd.top.view import View

pytestmark = pytest.mark.guest

SCRIPT = """
set -e
for round in 1 2 3 4 5 6; do
    zappend --reset --zones 0-2 --ios 4608 --qd 64 --blocks 2 --oob /dev/ng0n1 >>/out/append.txt
done
rsdctl show --json /dev/nvme0n1 >/out/drive.json
cat /proc/uptime >/out/uptime
"""
EVERY_S = 0.02


def run(built: Artifacts, cache: Cache, out: Path, media: Path) -> GuestResult:
    out.mkdir()
    job = GuestJob(system="rsd", script=SCRIPT, media=media, out_dir=out)
    result = machine.run_guest(job, built, cache=cache)
    assert result.outcome is Outcome.EXITED and result.status == 0, result.output
    return result


def test_a_guest_is_not_changed_by_being_looked_at(
    built: Artifacts, rsd_cache: Cache, tmp_path: Path
) -> None:
    alone = run(built, rsd_cache, tmp_path / "alone", tmp_path / "alone.rsd")
    media = tmp_path / "watched.rsd"
    shown: list[View] = []
    done = threading.Event()

    def watch() -> None:
        while not any(media.exists() and r.media.samefile(media) for r in runs.running()):
            if done.wait(EVERY_S):
                return
        following = command.views(runs.find(media))
        while not done.wait(EVERY_S) and (view := following()):
            shown.append(view)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        watched = run(built, rsd_cache, tmp_path / "watched", media)
    finally:
        done.set()
        thread.join()
    written = [int(view.tables[0].rows[1][2].replace(",", "")) for view in shown]
    assert len(set(written)) > 5, "it was seen at work"
    assert written == sorted(written)
    assert {path.name: path.read_bytes() for path in watched.out_dir.iterdir()} == {
        path.name: path.read_bytes() for path in alone.out_dir.iterdir()
    }
    assert (watched.output, watched.virtual_s) == (alone.output, alone.virtual_s)
    assert digest(media) == digest(tmp_path / "alone.rsd")


def digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
