# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: a volume is mounted at /mnt by the system call: mount(8) takes longer to start."""

import ctypes
import os
import signal

LIBC = ctypes.CDLL(None, use_errno=True)
SAID = "/tmp/said"
# Of what a program says, the end
SAID_BYTES = 2000


def call(*words: object, limit_s: float = 0) -> None:
    """Run a program; what it says is shown if it fails. It is killed after `limit_s`, 0: never."""
    command = [str(word) for word in words]
    said = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=said, setpgroup=0)
    signal.signal(signal.SIGALRM, _time_is_up)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except TimeoutError:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise SystemExit(f"{command}: did not end within {limit_s} s\n{_said()}") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if status:
        raise SystemExit(f"{command}: status {status}\n{_said()}")


def _time_is_up(number: int, frame: object) -> None:
    raise TimeoutError


def _said() -> str:
    with open(SAID, errors="replace") as stream:
        return stream.read()[-SAID_BYTES:]


def mount(device: str, kind: str, options: str) -> None:
    if LIBC.mount(device.encode(), b"/mnt", kind.encode(), 0, options.encode()):
        raise SystemExit(f"mount: {os.strerror(ctypes.get_errno())}")


def umount() -> None:
    if LIBC.umount2(b"/mnt", 0):
        raise SystemExit(f"umount: {os.strerror(ctypes.get_errno())}")
