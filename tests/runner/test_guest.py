# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests, from ./rsd's side: how runs end, what goes in and comes out, and determinism."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rsd import exchange, machine
from rsd.artifacts import REPOSITORY, Artifacts
from rsd.cache import Cache
from rsd.errors import RsdError
from rsd.guest_run import STATUS
from rsd.machine import GuestJob, GuestResult, Outcome, QemuFailed

pytestmark = pytest.mark.guest

Run = Callable[..., GuestResult]

# For what hangs only: a slow machine under load must never reach it.
PATIENCE_S = 900


@pytest.fixture
def run(built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> Run:
    """run(script, system=..., ...): a guest without a drive, in real time, unless told."""

    def start(script: str, **options: object) -> GuestResult:
        settings = {
            "system": "none",
            "deterministic": False,
            "out_dir": tmp_path / "out",
            "wall_limit_s": PATIENCE_S,
            **options,
        }
        job = GuestJob(script=script, **settings)  # type: ignore[arg-type]
        return machine.run_guest(job, built, cache=rsd_cache)

    return start


def heed_interrupts() -> None:
    """What a shell starts in the background, and its children, ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def rsd(*arguments: str, cwd: Path = REPOSITORY, **options: object) -> subprocess.Popen[str]:
    """Start the command line itself. `options` are Popen's."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        [sys.executable, "-m", "rsd", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "host/tools")},
        preexec_fn=heed_interrupts,
        **{**pipes, **options},  # type: ignore[call-overload]
    )


def qemus_of(pid: int) -> list[int]:
    """QEMU processes whose command line names a scratch directory of process `pid`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            # What starts QEMU has its words, too: it is not yet tied to the runner.
            program = command.split(b"\0", 1)[0]
            if b"qemu-system" in program and f"/run.{pid}.".encode() in command:
                found.append(int(entry.name))
    return found


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@pytest.mark.parametrize("status", [0, 7, 255])
def test_the_commands_status_is_ours(built: Artifacts, status: int) -> None:
    process = rsd("run", "--system", "none", "--no-icount", "--", "sh", "-c", f"exit {status}")
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status


def test_standard_output_is_the_commands_alone(built: Artifacts) -> None:
    script = "echo one; printf 'two\\n' >&2; dmesg -n 7; echo loud >/dev/kmsg"
    process = rsd("run", "--system", "none", "--no-icount", "--", "sh", "-c", script)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert output == "one\ntwo\n"


def test_inputs_and_results(run: Run, tmp_path: Path) -> None:
    inputs = tmp_path / "in"
    (inputs / "deep").mkdir(parents=True)
    (inputs / "deep" / "data").write_bytes(bytes(range(256)) * 1000)
    (inputs / "tool").write_text("#!/bin/sh\necho ran\n")
    (inputs / "tool").chmod(0o755)
    result = run(
        "cp -r /in/deep /out/ && /in/tool >/out/said && ln -s said /out/link", inputs=inputs
    )
    assert (result.outcome, result.status) == (Outcome.EXITED, 0)
    out = result.out_dir
    assert (out / "deep" / "data").read_bytes() == bytes(range(256)) * 1000
    assert (out / "said").read_text() == "ran\n"
    assert (out / "link").readlink() == Path("said")


def test_inputs_from_memory(run: Run) -> None:
    result = run("cat /in/a /in/b", inputs={"a": "text ", "b": b"bytes"})
    assert result.output == "text bytes"


@pytest.mark.parametrize("system", ["stock", "stock-zns", "rsd", "rsd-redo"])
def test_each_system_shows_its_drive(run: Run, system: str) -> None:
    result = run("nvme list -o json; cat /sys/block/nvme0n1/queue/zoned", system=system)
    assert result.status == 0, result.output + result.console
    assert "/dev/nvme0n1" in result.output or "nvme0n1" in result.output
    zoned = "none" if system == "stock" else "host-managed"
    assert result.output.splitlines()[-1] == zoned


def test_a_property_that_is_set_is_the_drives(built: Artifacts) -> None:
    """On 2 ways instead of 4, a zone has half the blocks; the system's own values stay."""
    script = "cd /sys/block/nvme0n1; cat queue/chunk_sectors metadata_bytes"
    process = rsd(
        *("run", "--no-icount", "--set", "ways=1", "--set", "ways=2", "--memory", "64"),
        *("--", "sh", "-c", script),
    )
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert output.split() == [str(8 << 11), "64"]
    process = rsd("run", "--no-icount", "--set", "ways=65", "--", "true")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "'ways' is 65, must be from 1 to 64" in errors
    process = rsd("run", "--no-icount", "--set", "t_read=25us", "--", "true")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "try: --set t-read" in errors


def test_a_file_of_the_host_that_a_command_names_is_noted(built: Artifacts, tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[job]\n")
    process = rsd("run", "--system", "none", "--", "fio", "job.fio", cwd=tmp_path)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "note: job.fio is a file of this machine, which the guest does not see" in errors


def test_media_is_kept_if_it_is_named(run: Run, tmp_path: Path) -> None:
    media = tmp_path / "drive.raw"
    write = "printf kept | dd of=/dev/nvme0n1 bs=4096 conv=sync oflag=direct"
    assert run(write, system="stock", media=media).status == 0
    read = "head -c 4 /dev/nvme0n1"
    assert run(read, system="stock", media=media).output == "kept"
    assert run(read, system="stock").output == "\0\0\0\0"


def test_a_panic_is_told(built: Artifacts) -> None:
    script = "echo c >/proc/sysrq-trigger"
    process = rsd("run", "--system", "none", "--no-icount", "--", "sh", "-c", script)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == STATUS[Outcome.PANIC]
    assert "guest panic" in errors and "as the command asked" in errors
    assert "sysrq triggered crash" in errors
    assert "Call Trace" not in errors


def test_a_virtual_time_out_is_told(run: Run) -> None:
    result = run("trap '' TERM; echo begun; sleep 1000", deterministic=True, virtual_limit_s=3)
    assert result.outcome is Outcome.VIRTUAL_TIMEOUT
    assert result.output == "begun\n"
    assert result.virtual_s is not None and result.virtual_s < 30


def test_results_survive_a_virtual_time_out(run: Run) -> None:
    result = run("echo half >/out/half; sleep 1000", deterministic=True, virtual_limit_s=2)
    assert result.outcome is Outcome.VIRTUAL_TIMEOUT
    assert (result.out_dir / "half").read_text() == "half\n"


def test_a_hang_is_told(run: Run) -> None:
    # A write to a frozen file system waits in the kernel, where no signal reaches it.
    script = """
        truncate -s 64M /tmp/disk && mkfs.ext4 -q /tmp/disk && mount /tmp/disk /mnt &&
        fsfreeze -f /mnt && exec touch /mnt/file
    """
    result = run(script, deterministic=True, virtual_limit_s=2)
    assert result.outcome is Outcome.HANG, result.output


def test_a_guest_that_switches_itself_off_is_told(run: Run) -> None:
    assert run("echo o >/proc/sysrq-trigger; sleep 100").outcome is Outcome.LOST


def test_a_wall_time_out_is_told_and_leaves_no_qemu(built: Artifacts) -> None:
    process = rsd(
        *("run", "--system", "none", "--no-icount", "--wall-limit", "2"),
        *("--", "sleep", "1000"),
    )
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == STATUS[Outcome.WALL_TIMEOUT]
    assert "wall time-out" in errors
    assert qemus_of(process.pid) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_runner_is_the_end_of_qemu(built: Artifacts, number: int) -> None:
    process = rsd("run", "--system", "none", "--no-icount", "--", "sleep", "1000")
    try:
        wait_for(lambda: qemus_of(process.pid), "QEMU did not start")
        process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
        wait_for(lambda: not qemus_of(process.pid), "QEMU is still there")
    finally:
        process.kill()


def test_qemus_refusal_is_shown(run: Run) -> None:
    with pytest.raises(QemuFailed, match="no-such-device"):
        run("true", extra_qemu_args=("-device", "no-such-device"))


def test_too_much_in_out_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "RESULT_BYTES", 128 << 20)
    with pytest.raises(RsdError, match="/out are larger than 128 MiB"):
        run("head -c 130M /dev/zero >/out/x")


def test_holes_in_out_take_no_time(run: Run) -> None:
    result = run("echo data >/out/x && truncate -s 1T /out/x")
    assert result.outcome is Outcome.EXITED
    made = (result.out_dir / "x").stat()
    assert made.st_size == 1 << 40 and made.st_blocks < 100


def test_deterministic_runs_are_identical(run: Run) -> None:
    script = "date +%s.%N; cat /proc/uptime /proc/interrupts; dmesg; head -c 16 /dev/urandom | od"
    first = run(script, deterministic=True)
    second = run(script, deterministic=True)
    assert first.outcome is Outcome.EXITED
    # zip first: the first line that differs says more than the last.
    for one, other in zip(first.output.splitlines(), second.output.splitlines(), strict=False):
        assert one == other
    assert first.output == second.output
    assert first.console == second.console
    assert (
        "2026"
        in subprocess.run(
            ["date", "-u", "-d", f"@{first.output.splitlines()[0]}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )


def test_the_shell_works_on_a_terminal(built: Artifacts, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    process = rsd(
        *("shell", "--system", "none", "--out", str(tmp_path)), stdin=follower, stdout=follower
    )
    os.close(follower)
    try:
        screen = read_until(leader, b"# ")
        assert b"Ctrl-A X" in screen
        # Ctrl-C ends what runs in the guest, not the guest.
        os.write(leader, b"sh -c 'echo be''gun; exec sleep 10000'\n")
        read_until(leader, b"begun")
        os.write(leader, b"\x03")
        read_until(leader, b"# ")
        os.write(leader, b"tty; echo left >/out/file; exit\n")
        read_until(leader, b"/dev/ttyS0")
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()
        os.close(leader)
    assert (tmp_path / "file").read_text() == "left\n"


def test_a_shell_ends_at_its_virtual_limit(built: Artifacts, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    process = rsd(
        *("shell", "--system", "none", "--virtual-limit", "12", "--out", str(tmp_path)),
        stdin=follower,
        stdout=follower,
    )
    os.close(follower)
    try:
        read_until(leader, b"# ")
        os.write(leader, b"echo kept >/out/file; sleep 10000\n")
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()
        os.close(leader)
    assert process.returncode == STATUS[Outcome.VIRTUAL_TIMEOUT]
    assert "--virtual-limit" in errors
    assert (tmp_path / "file").read_text() == "kept\n"


def test_the_shell_wants_a_terminal() -> None:
    process = rsd("shell", stdin=subprocess.DEVNULL)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "./rsd run" in errors


def read_until(stream: int, text: bytes) -> bytes:
    """What arrives on `stream` until `text` shows."""
    deadline = time.monotonic() + PATIENCE_S
    seen = b""
    while text not in seen:
        left = deadline - time.monotonic()
        assert left > 0, seen.decode(errors="replace")
        if select.select([stream], [], [], left)[0]:
            seen += os.read(stream, 65536)
    return seen
