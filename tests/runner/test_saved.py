# SPDX-License-Identifier: GPL-2.0-or-later
"""The saved guest: what goes on from it is what booted, and it is made once, and whole."""

import dataclasses
import datetime
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rsd import machine, saved
from rsd.artifacts import REPOSITORY, Artifacts
from rsd.cache import Cache
from rsd.errors import RsdError
from rsd.machine import GuestJob, GuestResult, Outcome

PATIENCE_S = 900
BEGINNING = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).timestamp()

# All that could tell one guest from another: clocks, entropy, devices, interrupts, a drive's times.
LOOK = """
date +%s.%N; cat /proc/uptime; head -c 64 /dev/urandom | od; ls /dev
fio --name=r --filename=/dev/nvme0n1 --rw=randread --bs=4k --size=1m --number_ios=200 \
    --ioengine=io_uring --iodepth=8 --direct=1 --output-format=json
cat /proc/interrupts /proc/meminfo; dmesg; date +%s.%N
"""

# A run of a guest from the second cache, made of what the first one has
SAVE = """
import sys
from pathlib import Path
from rsd import artifacts, machine
from rsd.cache import Cache
from rsd.progress import Progress
built = artifacts.ensure(Cache(Path(sys.argv[1])), Progress())
machine.run_guest(machine.GuestJob("none", "true"), built, cache=Cache(Path(sys.argv[2])))
"""


@pytest.fixture
def own(tmp_path: Path) -> Cache:
    """A cache without a saved guest."""
    return Cache(tmp_path / "cache")


def run(job: GuestJob, built: Artifacts, cache: Cache, out: Path) -> GuestResult:
    """A run that ended by itself. What is built comes from elsewhere than its cache."""
    job = dataclasses.replace(job, out_dir=out, wall_limit_s=PATIENCE_S)
    result = machine.run_guest(job, built, cache=cache)
    assert result.outcome is Outcome.EXITED, result.console
    return result


def guests(cache: Cache) -> list[str]:
    """The saved guests in the cache."""
    kind = cache.root / saved.KIND
    return sorted(path.name for path in kind.iterdir()) if kind.is_dir() else []


@pytest.mark.guest
def test_a_saved_guest_and_one_that_booted_are_the_same(
    built: Artifacts, rsd_cache: Cache, tmp_path: Path
) -> None:
    job = GuestJob("rsd", LOOK)
    first = run(job, built, rsd_cache, tmp_path / "first")
    again = run(job, built, rsd_cache, tmp_path / "again")
    cold = run(dataclasses.replace(job, cold=True), built, rsd_cache, tmp_path / "cold")
    assert "nvme0n1" in first.output and '"total_ios" : 200' in first.output
    # its date is that of a guest that was switched on at the beginning of 2026
    date, uptime = (float(line.split()[0]) for line in first.output.splitlines()[:2])
    assert abs(date - uptime - BEGINNING) < 1
    for other in (again, cold):
        for line, its in zip(first.output.splitlines(), other.output.splitlines(), strict=False):
            assert line == its
        assert (first.output, first.console) == (other.output, other.console)
        assert first.virtual_s == other.virtual_s


@pytest.mark.guest
def test_two_boots_leave_the_same_machine(built: Artifacts, tmp_path: Path) -> None:
    places = []
    for name in ("one", "other"):
        places.append(tmp_path / name)
        places[-1].mkdir()
        machine.save_guest(GuestJob("none", ""), built, places[-1])
        assert sorted(os.listdir(places[-1])) == sorted([*saved.FILES, saved.SUMS])
    subprocess.run(["diff", "-r", *places], check=True)


@pytest.mark.guest
def test_drives_and_jobs_share_a_guest(built: Artifacts, own: Cache, tmp_path: Path) -> None:
    zone = "cat /sys/block/nvme0n1/queue/chunk_sectors"
    out = tmp_path / "out"
    assert run(GuestJob("rsd", zone), built, own, out).output == "32768\n"
    assert run(GuestJob("rsd", zone, namespace={"ways": "1"}), built, own, out).output == "8192\n"
    assert run(GuestJob("none", "ls /sys/block"), built, own, out).output.count("nvme") == 0
    # where idle time passes in real time, too
    job = GuestJob("stock", "sleep 0.1; echo slept", waits=True)
    assert run(job, built, own, out).output == "slept\n"
    assert run(GuestJob("none", "cat /in/x", inputs={"x": "in"}), built, own, out).output == "in"
    plain = run(GuestJob("none", "ls /usr/local/bin", rfs=False), built, own, out).output
    assert "rfs" not in plain and "savepoint" not in plain and "zappend" in plain
    assert len(guests(own)) == 1


@pytest.mark.guest
def test_a_save_that_is_killed_leaves_nothing(
    built: Artifacts, rsd_cache: Cache, own: Cache, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SAVE, rsd_cache.root, own.root],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "host/tools")},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + PATIENCE_S
    # its memory has been written to: the guest boots
    while not any(path.stat().st_blocks > 8192 for path in own.root.glob("tmp/guest-*/ram")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert guests(own) == []
    job = GuestJob("none", "echo made anew")
    assert run(job, built, own, tmp_path / "out").output == "made anew\n"
    assert len(guests(own)) == 1
    assert list((own.root / "tmp").iterdir()) == []


@pytest.mark.guest
def test_a_guest_that_does_not_get_there_is_told(
    built: Artifacts, own: Cache, tmp_path: Path
) -> None:
    init = tmp_path / "init"
    init.write_text("#!/bin/sh\necho nothing works >/dev/console\nexit 1\n")
    broken = dataclasses.replace(built, init=init, hashes={**built.hashes, "init": "other"})
    with pytest.raises(RsdError, match="could not be booted and saved: QEMU ended") as error:
        run(GuestJob("none", "true"), broken, own, tmp_path / "out")
    assert "nothing works" in str(error.value)
    assert guests(own) == []


def cut(path: Path) -> None:
    """As after an interrupted copy."""
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    """Its beginning is another."""
    data = bytearray(path.read_bytes())
    data[:1024] = bytes(255 - byte for byte in data[:1024])
    path.write_bytes(data)


def exchange(path: Path) -> None:
    """It is no state of a machine."""
    path.write_text("something else\n")


@pytest.mark.guest
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *[("ram", damage) for damage in (cut, Path.unlink)],
        *[("state", damage) for damage in (cut, flip, exchange, Path.unlink)],
    ],
)
def test_a_damaged_saved_guest_is_told_and_made_anew(
    built: Artifacts,
    rsd_cache: Cache,
    own: Cache,
    tmp_path: Path,
    name: str,
    damage: Callable[[Path], None],
) -> None:
    job = GuestJob("none", "true")
    run(job, built, rsd_cache, tmp_path / "out")
    directory = own.root / saved.KIND / machine.saved_key(job, built)
    whole = rsd_cache.root / saved.KIND / directory.name
    directory.parent.mkdir()
    subprocess.run(["cp", "-r", "--sparse=always", whole, directory], check=True)
    run(job, built, own, tmp_path / "out")

    damage(directory / name)
    with pytest.raises(RsdError, match=f"{directory} was damaged, and is deleted now: .*{name}"):
        run(job, built, own, tmp_path / "out")
    assert guests(own) == []


def test_a_state_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """QEMU stays then, and would wait for ever."""
    says = r"""
import json, os, re, sys
file = int(re.search(r"socket,id=qmp,fd=([0-9]+)", " ".join(sys.argv))[1])
for message in ({"event": "STOP"}, {"event": "MIGRATION", "data": {"status": "failed"}}):
    os.write(file, json.dumps(message).encode() + b"\n")
while True:
    os.read(file, 4096)
"""
    with pytest.raises(RsdError, match="its state could not be written"):
        saved.save([sys.executable, "-c", says], tmp_path)


@pytest.mark.guest
def test_a_full_disk_is_told(built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> None:
    """It has room for the beginning of a guest only."""
    script = f"""
mount -t tmpfs -o size=24m tmpfs {tmp_path}
exec {shlex.join([sys.executable, "-c", SAVE, str(rsd_cache.root), str(tmp_path)])}
"""
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "host/tools")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "a guest could not be booted and saved: QEMU was killed by SIGBUS" in done.stderr
    assert f"the disk of {tmp_path}/tmp/" in done.stderr and "is full: make room" in done.stderr


def test_what_a_boot_depends_on_tells_guests_apart() -> None:
    hashes = {name: name for name in (*saved.DECIDING, "tools", "module")}
    nowhere = Path("/nowhere")
    built = Artifacts(nowhere, nowhere, nowhere, nowhere, nowhere, nowhere, (), hashes)
    job = GuestJob("rsd", "true")
    key = machine.saved_key(job, built)
    for same in (
        {"system": "none"},
        {"script": "false"},
        {"inputs": {"a": "b"}},
        {"namespace": {"ways": "1"}},
        {"controller": {"dbcs": "on"}},
        {"rfs": False},
        {"cold": True},
        {"virtual_limit_s": 1},
        {"extra_qemu_args": ("-qmp", "null")},
    ):
        assert machine.saved_key(dataclasses.replace(job, **same), built) == key, same
    for other in (
        {"memory_mib": 512},
        {"guest_speed": 0},
        {"kernel": "debug"},
        {"machine_args": ("-cpu", "qemu64")},
    ):
        assert machine.saved_key(dataclasses.replace(job, **other), built) != key, other
    for name in hashes:
        changed = dataclasses.replace(built, hashes={**hashes, name: "another"})
        assert (machine.saved_key(job, changed) == key) == (name not in saved.DECIDING), name


def test_guests_that_nobody_uses_go(own: Cache) -> None:
    kind = own.root / saved.KIND
    for number in range(saved.KEPT):
        (kind / str(number)).mkdir(parents=True)
        os.utime(kind / str(number), (number, number))
    saved.mark_used(own, kind / "0")
    assert len(guests(own)) == saved.KEPT
    (kind / "new").mkdir()
    saved.mark_used(own, kind / "new")
    assert len(guests(own)) == saved.KEPT
    assert {"0", "new", "2"} < set(guests(own)) and "1" not in guests(own)
    # What another process has deleted meanwhile is no error.
    (kind / "gone").symlink_to(own.root / "nothing")
    saved.mark_used(own, kind / "new")
