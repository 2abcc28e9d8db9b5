# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's own record and replay with our drive: the replay follows the log, to the same bytes.

The guest is that of test_undisturbed.py, with its timers, resets, power cuts and reboots. While it
is recorded, QMP commands and signals disturb it; the replay is left alone.

A plain second run gives the same bytes, too. What is shown here is that nothing in the drive or in
our clock breaks the log: a replay whose events do not come where the log has them ends in an error.
"""

import contextlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_undisturbed import IOS, OURS, ROUNDS, SOURCE, Disturber, stress

from programs import compiled
from rsd import exchange
from rsd.artifacts import REPOSITORY, Artifacts
from rsd.cache import Cache
from rsd.saved import check_sum

pytestmark = pytest.mark.guest


def run(directory: Path, system: str, ios: int, rounds: int, mode: str) -> dict[str, bytes]:
    """One run of the line that ./rsd run --print-command has: all that the guest left, by name."""
    log, inputs = directory.parent / "log", directory.parent / "in"
    script = stress(ios, rounds, rounds // 2)
    words = ["run", "--system", system, "--in", inputs, "--print-command", directory]
    words += ["--virtual-limit", "7200", "--", "sh", "-c", script]
    line = subprocess.run(
        [REPOSITORY / "rsd", *words], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    line, changed = re.subn(r"(-icount \S+)", rf"\1,rr={mode},rrfile={log}", line)
    assert changed == 1
    line = line.replace("-serial mon:stdio", f"-serial file:{directory}/console")
    line = line.replace("-no-reboot", "-action reboot=reset")
    monitor = directory / "monitor"
    # QEMU that records waits for ever in a reset of the APIC's part that helps KVM.
    line = f"{line.rstrip()} -global apic-common.vapic=off -qmp unix:{monitor},server=on,wait=off"
    disturber = Disturber(monitor, ios) if mode == "record" else None
    with disturber or contextlib.nullcontext():
        subprocess.run(["sh", "-c", line], check=True, timeout=3600)
    if disturber:
        assert disturber.commands > 20
        assert disturber.signals > 3
    found = {name: (directory / name).read_bytes() for name in ("console", "output")}
    left = exchange.read_result(directory / "result", directory / "out")
    assert left is not None and left.status == 0, found
    return found | {path.name: path.read_bytes() for path in (directory / "out").iterdir()}


def replayed(cache: Cache, tmp_path: Path, system: str, ios: int, rounds: int) -> None:
    (tmp_path / "in").mkdir()
    shutil.copy2(compiled(cache, SOURCE), tmp_path / "in")
    recorded = run(tmp_path / "1", system, ios, rounds, "record")
    last = {f"{name}.{rounds}" for name in ("one", "two", "write", "read")}
    assert last | {"counters"} <= set(recorded)
    assert b"rebooted" in recorded["output"]
    assert (tmp_path / "log").stat().st_size > 10_000
    assert run(tmp_path / "2", system, ios, rounds, "replay") == recorded
    # not by cmp, which reads the holes, too: a disk is nearly all holes
    assert check_sum(tmp_path / "1" / "media") == check_sum(tmp_path / "2" / "media")


def test_record_and_replay(built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> None:
    replayed(rsd_cache, tmp_path, "page-ftl", 200, 2)


@pytest.mark.long
@pytest.mark.parametrize("system", OURS)
def test_a_million_requests(
    built: Artifacts, rsd_cache: Cache, tmp_path: Path, system: str
) -> None:
    """Over all systems together."""
    replayed(rsd_cache, tmp_path, system, IOS, ROUNDS)
