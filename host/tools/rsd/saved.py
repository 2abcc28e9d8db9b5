"""The saved guest: a machine that has booted, stopped where guest/init says, and written down.

It is a directory: `ram`, the guest's memory, which later machines map copy-on-write; `state`,
that of the CPU and the devices; `console`, what the kernel said; `sums`, by which damage to them is
found. It has no drive: a machine that begins from it may have any, and the guest finds it when it
looks at its PCI bus again.
"""

import errno
import hashlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from rsd.cache import Cache
from rsd.errors import RsdError, how_it_ended, no_room
from rsd.qmp import Monitor
from rsd.systems import comma

KIND = "guest"

# One of 1 GiB takes 50 MB on disk: what its boot wrote to. Those that were used last are kept.
KEPT = 24

# The guest stops itself with a write to this device: host/tools/savepoint.
STOPPING_DEVICE = "pvpanic-pci"

# Which of Artifacts.hashes are those of what is in a saved guest
DECIDING = ("qemu", "kernel", "root", "init", "savepoint", "firmware")

# What it is made of. SUMS has a check sum of each.
FILES = ("ram", "state", "console")
SUMS = "sums"

# A guest that has not booted by then, in wall time, never will.
BOOT_LIMIT_S = 1800

# Of the console of a guest that did not boot; a panic takes 30 lines.
TAIL_LINES = 40

POLL_S = 0.02

# Memory is looked at in pieces of this size. Those of zeros do not count: a copy of the file may
# have holes there, or none.
PIECE = 1 << 16


def memory(directory: Path, mib: int, *, saving: bool) -> list[str]:
    """QEMU's options for the guest's memory: `directory`'s own, or a copy of what changes in it."""
    sharing = "share=on" if saving else "share=off,readonly=on,rom=off"
    return [
        "-object",
        f"memory-backend-file,id=ram,mem-path={comma(directory / 'ram')},size={mib}M,{sharing}",
        *("-machine", "memory-backend=ram"),
    ]


def begin_from(directory: Path, monitor: Monitor) -> None:
    """Tell a QEMU with `-incoming defer`, which may not run yet, to go on from there."""
    _set_capabilities(monitor)
    monitor.execute("migrate-incoming", {"uri": f"file:{directory / 'state'}"})


def save(command: Sequence[str], directory: Path) -> None:
    """Run QEMU until the guest stops itself, and write the machine to `directory`.

    `command` has everything but consoles and a monitor; its memory is in `directory`.
    Raises RsdError when the guest does not get that far.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs, (directory / "stderr").open("wb") as stderr:
        words = [
            *("setpriv", "--pdeathsig", "KILL", "--", *command),
            *("-device", STOPPING_DEVICE, "-action", "panic=pause"),
            # That it was stopped is nothing to later machines: they run at once.
            *("-global", "migration.store-global-state=off"),
            *("-chardev", f"file,id=console,path={comma(directory / 'console')}"),
            *("-chardev", "null,id=output", "-serial", "chardev:console"),
            *("-serial", "chardev:output", "-chardev", f"socket,id=qmp,fd={theirs.fileno()}"),
            *("-mon", "chardev=qmp,mode=control"),
        ]
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            pass_fds=(theirs.fileno(),),
            process_group=0,
        )
        try:
            monitor = Monitor(ours)
            _wait_for("STOP", process, monitor, directory)
            _set_capabilities(monitor)
            monitor.execute("migrate", {"uri": f"file:{directory / 'state'}"})
            _wait_for("MIGRATION completed", process, monitor, directory)
        finally:
            process.kill()
            process.wait()
    (directory / "stderr").unlink()
    _forget_host_time(directory / "state")
    (directory / SUMS).write_text(json.dumps({name: check_sum(directory / name) for name in FILES}))
    for name in (*FILES, SUMS):
        _write_through(directory / name)


def _forget_host_time(state: Path) -> None:
    """Begin with 0 what QEMU has counted of the host's time and cycles while the guest booted.

    Virtual time does not depend on it. A guest whose idle time passes in real time would find all
    of the boot's when it idles for the first time.
    """
    data = bytearray(state.read_bytes())
    # a name, an instance and a version; then a counter of 8 bytes, 8 unused ones, and a counter
    start = data.index(b"\x05timer") + 6 + 8
    data[start : start + 24] = bytes(24)
    state.write_bytes(data)


def check(directory: Path) -> None:
    """For a machine that began from there and failed: was what it began from damaged?

    Then it is deleted, and RsdError says so.
    """
    try:
        sums = json.loads((directory / SUMS).read_text())
        damaged = [name for name in FILES if check_sum(directory / name) != sums[name]]
    except (OSError, ValueError, KeyError) as error:
        damaged = [str(error)]
    if damaged:
        shutil.rmtree(directory, ignore_errors=True)
        raise RsdError(
            f"the saved guest {directory} was damaged, and is deleted now: {', '.join(damaged)}",
            "run the command again, which boots and saves a guest first",
        )


def check_sum(path: Path) -> str:
    """A check sum of a file, and of where in it there is something."""
    digest = hashlib.sha256(str(path.stat().st_size).encode())
    with path.open("rb") as stream:
        end = 0
        while (at := _next_data(stream.fileno(), end)) is not None:
            piece = os.pread(stream.fileno(), PIECE, at)
            if piece.strip(b"\0"):
                digest.update(at.to_bytes(8))
                digest.update(piece)
            end = at + PIECE
    return digest.hexdigest()


def _next_data(file: int, start: int) -> int | None:
    """Where the next piece begins that is no hole, from `start` on, if there is one."""
    try:
        return os.lseek(file, start, os.SEEK_DATA) // PIECE * PIECE
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise


def _write_through(path: Path) -> None:
    """A host that crashes must not leave an entry of the cache with files that are not whole."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def mark_used(cache: Cache, directory: Path) -> None:
    """Keep a saved guest; delete all but the KEPT that were used last."""
    os.utime(directory)
    for old in sorted((cache.root / KIND).iterdir(), key=_last_use)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def _last_use(directory: Path) -> float:
    try:
        return directory.stat().st_mtime
    except FileNotFoundError:
        return 0  # another process deletes old ones, too


def _set_capabilities(monitor: Monitor) -> None:
    """Both sides must say that memory in files is not in the stream."""
    names = ("x-ignore-shared", "events")
    wanted = [{"capability": name, "state": True} for name in names]
    monitor.execute("migrate-set-capabilities", {"capabilities": wanted})


def _wait_for(
    event: str, process: subprocess.Popen[bytes], monitor: Monitor, directory: Path
) -> None:
    """Wait for QEMU to report the event. Raises RsdError if it cannot any more."""
    deadline = time.monotonic() + BOOT_LIMIT_S
    reason = ""
    while not reason:
        ended = process.poll() is not None
        monitor.poll()
        if event in monitor.events:
            return
        if monitor.errors:
            reason = "; ".join(monitor.errors)
        elif "MIGRATION failed" in monitor.events:
            reason = "its state could not be written"
        elif ended:
            reason = f"QEMU {how_it_ended(process.returncode)}"
        elif time.monotonic() > deadline:
            reason = f"it was not ready after {BOOT_LIMIT_S} s of wall time"
        time.sleep(POLL_S)
    tail = [*_tail(directory / "stderr"), *_tail(directory / "console")]
    lines = "".join(f"\n  | {line}" for line in tail)
    raise RsdError(
        f"a guest could not be booted and saved: {reason}{lines}",
        no_room(directory) or "--kernel debug finds more",
    )


def _tail(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines()[-TAIL_LINES:] if path.exists() else []
