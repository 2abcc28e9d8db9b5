# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: a volume is mounted at /mnt by the system call: mount(8) takes longer to start."""

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
SAID = "/tmp/said"


def call(*words: object) -> None:
    """Run a program; what it says is shown if it fails."""
    command = [str(word) for word in words]
    said = [
        (os.POSIX_SPAWN_OPEN, 1, SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=said)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        with open(SAID) as stream:
            raise SystemExit(f"{command}: status {status}\n{stream.read()}")


def mount(device: str, kind: str, options: str) -> None:
    if LIBC.mount(device.encode(), b"/mnt", kind.encode(), 0, options.encode()):
        raise SystemExit(f"mount: {os.strerror(ctypes.get_errno())}")


def umount() -> None:
    if LIBC.umount2(b"/mnt", 0):
        raise SystemExit(f"umount: {os.strerror(ctypes.get_errno())}")
