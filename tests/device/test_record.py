# SPDX-License-Identifier: GPL-2.0-or-later
"""trace=FILE: a recorded trace, replayed by rsdsim, gives every completion and counter again."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from drive import Drive, OpenDrive, device_args
from nvme import Admin, Command, Io, Status
from qtest import start_error
from test_conventional import CONVENTIONAL, FTLS, LARGE, STEP, STEP_NS
from zns import Action, pattern


def replay(
    rsdsim: Path, trace: Path, media: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """On a new drive, if there is no media."""
    command = [rsdsim, "--replay", trace, *(["--media", media] if media else []), "--check"]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def replays(rsdsim: Path, trace: Path, media: Path | None = None) -> None:
    done = replay(rsdsim, trace, media)
    assert done.returncode == 0, done.stdout + done.stderr


def mixed_work(d: Drive, generator: random.Random) -> None:
    """Many commands in flight, some of which the drive refuses."""
    queue = d.ns.queue
    transfer = d.ns.transfer(4)
    transfer.fill(b"".join(pattern(n) for n in range(4)), bytes(4 * d.ns.oob))
    for _ in range(400):
        blocks = generator.randint(1, 4)
        slba = generator.randrange(d.ns.size - 4)
        choice = generator.randrange(12)
        if choice < 5:
            opcode = Io.ZONE_APPEND if d.ns.zoned else Io.WRITE
            if d.ns.zoned:
                slba -= slba % d.ns.zone_size
            queue.submit(d.ns.io(opcode, slba, blocks, transfer))
        elif choice < 9:
            queue.submit(d.ns.io(Io.READ, slba, blocks, transfer))
        elif choice == 9:
            queue.submit(Command(Io.FLUSH, 1))
        elif d.ns.zoned:
            action = generator.choice([Action.RESET, Action.FINISH])
            queue.submit(d.ns.send_command(action, slba - slba % d.ns.zone_size))
        else:
            with d.ns.deallocate_command([(slba, blocks), (0, 1)]) as command:
                queue.submit(command)
        d.controller.advance(generator.randrange(300_000))
        if len(queue.in_flight) > 900:
            d.controller.wait(*queue.in_flight.values())


@pytest.mark.parametrize("ftl", ["rsd", *FTLS])
def test_replay(drive: OpenDrive, rsdsim: Path, media: Path, tmp_path: Path, ftl: str) -> None:
    """From the middle of a drive's life, to its middle: commands are in flight at the end."""
    props: dict[str, str | int] = {"blocks": 12, "idle_erase": 1_000_000}
    if ftl != "rsd":
        props = CONVENTIONAL | {"ftl": ftl}
    generator = random.Random(3)
    trace = tmp_path / "t.rsdtrace"
    with drive(oob=16, **props) as d:
        mixed_work(d, generator)
        d.qemu.kill()
    before = tmp_path / "before.rsd"
    shutil.copy(media, before)
    with drive(trace=trace, **props) as d:
        mixed_work(d, generator)
        d.reset_controller()
        d.controller.advance(1_000_000_000)
        d.controller.format(2).expect()
        d.ns.refresh()
        mixed_work(d, generator)
        d.qemu.quit()
    replays(rsdsim, trace, shutil.copy(before, tmp_path / "copy.rsd"))
    # The trace begins with the media as it was, and with no other.
    done = replay(rsdsim, trace, media)
    assert done.returncode == 1
    assert "media" in done.stderr


def test_replay_of_a_new_drive(drive: OpenDrive, rsdsim: Path, media: Path, tmp_path: Path) -> None:
    """Without a media file rsdsim takes a new one."""
    trace = tmp_path / "t.rsdtrace"
    with drive(trace=trace) as d:
        mixed_work(d, random.Random(5))
        d.qemu.quit()
    replays(rsdsim, trace)


def test_other_times_are_noticed(
    drive: OpenDrive, rsdsim: Path, media: Path, tmp_path: Path
) -> None:
    """The check can fail: the first of two appends did not take place in the starting media."""
    trace = tmp_path / "t.rsdtrace"
    with drive(trace=trace) as d:
        d.ns.append(0, pattern(1)).expect()
        d.ns.read(0)
        d.qemu.quit()
    content = trace.read_bytes()
    changed = content.replace(b"t-read=30000\n", b"t-read=40000\n")
    assert changed != content
    trace.write_bytes(changed)
    assert replay(rsdsim, trace, media).returncode == 1


def test_killed_recorder(drive: OpenDrive, rsdsim: Path, media: Path, tmp_path: Path) -> None:
    """What was recorded up to the kill can be replayed; there are no counters to compare."""
    trace = tmp_path / "t.rsdtrace"
    with drive(trace=trace) as d:
        d.ns.append(0, pattern(1)).expect()
        d.ns.read(0)
        d.qemu.kill()
    done = subprocess.run([rsdsim, "--replay", trace], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_refused_commands(drive: OpenDrive, rsdsim: Path, tmp_path: Path) -> None:
    """A format that comes too early is in the trace, with its status."""
    trace = tmp_path / "t.rsdtrace"
    with drive(trace=trace) as d:
        transfer = d.ns.transfer(1)
        d.ns.queue.submit(d.ns.io(Io.ZONE_APPEND, 0, 1, transfer))
        d.controller.format(1).expect(Status.COMMAND_SEQUENCE_ERROR)
        d.qemu.quit()
    replays(rsdsim, trace)


def test_a_format_that_waits(drive: OpenDrive, rsdsim: Path, tmp_path: Path) -> None:
    """For a read of before a reset: it begins when that is done, at the same nanosecond."""
    trace = tmp_path / "t.rsdtrace"
    with drive(trace=trace) as d:
        d.ns.write(0, pattern(1)).expect()
        d.ns.queue.submit(d.ns.io(Io.READ, 0, 1, d.ns.transfer(1)))
        d.reset_controller()
        d.controller.format(1).expect()
        d.ns.refresh()
        d.ns.append(0, pattern(1), bytes(16)).expect()
        d.qemu.quit()
    replays(rsdsim, trace)


def test_large_trims_and_formats(drive: OpenDrive, rsdsim: Path, tmp_path: Path) -> None:
    """One that a reset leaves to itself, a format that a reset ends, and one that is whole."""
    trace = tmp_path / "t.rsdtrace"
    with drive(trace=trace, **LARGE) as d:
        d.ns.write(3 * STEP, pattern(1)).expect()
        with d.ns.deallocate_command([(0, 2 * STEP), (2 * STEP, STEP + 8)]) as command:
            d.ns.queue.submit(command)
            d.controller.advance(STEP_NS)
            d.reset_controller()
        d.ns.write(3 * STEP, pattern(2)).expect()
        d.controller.admin.submit(Command(Admin.FORMAT, 1, cdw10=2))
        d.controller.advance(2 * STEP_NS)
        d.reset_controller()
        d.controller.format(1).expect()
        d.ns.refresh()
        d.ns.write(3 * STEP, pattern(3), bytes(16)).expect()
        d.controller.admin.submit(Command(Admin.FORMAT, 1, cdw10=2))
        d.controller.advance(STEP_NS)
        d.qemu.quit()
    replays(rsdsim, trace)


def test_file_that_exists(qemu: str, media: Path, tmp_path: Path) -> None:
    trace = tmp_path / "kept"
    trace.write_text("mine")
    message = start_error(qemu, device_args(media, {"trace": str(trace)}))
    assert str(trace) in message
    assert trace.read_text() == "mine"
