# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU process driven over its qtest and QMP sockets.

Under `-accel qtest` there is no guest CPU and the virtual clock stands still until the test
steps it, so latencies can be asserted to the nanosecond.  Protocol: the comment at the top of
QEMU's system/qtest.c.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# For a QEMU that hangs only: a slow machine under load must never reach them.
START_TIMEOUT_S = 300.0
REPLY_TIMEOUT_S = 300.0
END_TIMEOUT_S = 30.0

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class QemuError(Exception):
    """QEMU ended, refused a command, or did not answer."""


class NoTimer(QemuError):
    """clock_step without an argument found no timer to step to."""


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _base_args(directory: Path) -> list[str]:
    # No CPU runs, so any file of a plausible size will do as firmware.
    bios = directory / "empty-bios.bin"
    bios.write_bytes(bytes(65536))
    return (
        "-machine q35,i8042=off,hpet=off -accel qtest -display none -nodefaults -vga none "
        f"-m 512 -qtest-log none -bios {bios} -global apic-common.vapic=off"
    ).split()


class LineSocket:
    """Lines over a stream socket, with a time limit on each."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()

    def send(self, data: bytes) -> None:
        """QemuError if the other end is gone, as in readline(): either may be first to see it."""
        try:
            self._sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise QemuError("QEMU closed the connection") from None

    def readline(self, timeout_s: float = REPLY_TIMEOUT_S) -> str:
        """The next line without its newline.  QemuError at end of file or time-out."""
        end = time.monotonic() + timeout_s
        while (newline := self._buffer.find(b"\n")) < 0:
            ready, _, _ = select.select([self._sock], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise QemuError(f"no answer within {timeout_s:g} s")
            try:
                data = self._sock.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            if not data:
                raise QemuError("QEMU closed the connection")
            self._buffer += data
        line = bytes(self._buffer[:newline])
        del self._buffer[: newline + 1]
        return line.decode().rstrip("\r")

    def close(self) -> None:
        self._sock.close()


class Qemu:
    """One QEMU process.  Use it as a context manager: the process ends with the block.

    Times are virtual nanoseconds.  A QEMU that dies with the test still running raises QemuError
    with what it wrote to standard error.
    """

    def __init__(self, binary: str, args: Sequence[str], *, prefix: Sequence[str] = ()) -> None:
        """prefix is a command to run QEMU under; it has to keep its process identifier."""
        self._dir = tempfile.TemporaryDirectory(prefix="rsd-qtest-")
        directory = Path(self._dir.name)
        self.stderr_path = directory / "stderr"
        self.clock_ns = 0
        self.events: list[dict[str, Any]] = []
        listeners = [self._listen(directory / name) for name in ("qtest", "qmp")]
        command = [
            *prefix,
            binary,
            *_base_args(directory),
            *["-qtest", f"unix:{directory}/qtest"],
            *["-chardev", f"socket,id=qmp0,path={directory}/qmp", "-mon", "qmp0,mode=control"],
            *args,
        ]
        with self.stderr_path.open("wb") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                preexec_fn=_die_with_parent,
            )
        try:
            self._qtest, self._qmp = (LineSocket(self._accept(sock)) for sock in listeners)
            self._read_qmp()  # greeting
            self.qmp("qmp_capabilities")
            self.step(1)
        except BaseException:
            self.kill()
            raise
        finally:
            for sock in listeners:
                sock.close()

    @staticmethod
    def _listen(path: Path) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(str(path))
        sock.listen(1)
        return sock

    def _accept(self, sock: socket.socket) -> socket.socket:
        end = time.monotonic() + START_TIMEOUT_S
        while not select.select([sock], [], [], 0.02)[0]:
            if self.process.poll() is not None:
                raise QemuError(f"QEMU ended at start-up:\n{self.stderr()}")
            if time.monotonic() > end:
                raise QemuError(f"QEMU did not start within {START_TIMEOUT_S:g} s")
        return sock.accept()[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        crashed = self.process.poll() not in (None, 0, -signal.SIGKILL)
        self.kill()
        if crashed and error is None:
            raise QemuError(f"QEMU died with status {self.process.returncode}:\n{self.stderr()}")

    # Life cycle

    def stderr(self) -> str:
        """What QEMU has printed so far."""
        return self.stderr_path.read_text(errors="replace")

    def kill(self) -> None:
        """SIGKILL, as a crash of QEMU; harmless if the process has ended already."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for name in ("_qtest", "_qmp"):
            if hasattr(self, name):
                getattr(self, name).close()

    def quit(self) -> None:
        """A clean exit; QemuError unless QEMU ends with status 0."""
        self.qmp("quit")
        try:
            status = self.process.wait(START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise QemuError("QEMU did not quit") from None
        self.kill()
        if status != 0:
            raise QemuError(f"QEMU ended with status {status}:\n{self.stderr()}")

    # qtest

    def command(self, *words: object) -> str:
        """Sends one qtest command; the answer after OK.  QemuError on FAIL or a dead QEMU."""
        try:
            self._qtest.send(" ".join(str(word) for word in words).encode() + b"\n")
            while (line := self._qtest.readline()).startswith("IRQ "):
                pass
        except QemuError as error:
            raise self._died(error) from None
        status, _, rest = line.partition(" ")
        if status != "OK":
            raise QemuError(f"qtest {words[0]}: {line}")
        return rest

    def writel_together(self, *writes: tuple[int, int]) -> None:
        """32-bit writes (address, value) that QEMU carries out without a pause in between."""
        lines = "".join(f"writel {addr:#x} {value:#x}\n" for addr, value in writes)
        try:
            self._qtest.send(lines.encode())
            answers = [self._qtest.readline() for _ in writes]
        except QemuError as error:
            raise self._died(error) from None
        assert answers == ["OK"] * len(writes)

    def _died(self, error: Exception) -> QemuError:
        try:
            status = self.process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return QemuError(f"QEMU does not answer: {error}\n{self.stderr()}")
        return QemuError(f"QEMU died with status {status}:\n{self.stderr()}")

    def step(self, ns: int | None = None) -> int:
        """Advances the clock by ns, or to the next timer.  The new time; NoTimer if none."""
        try:
            self.clock_ns = int(self.command("clock_step", *([] if ns is None else [ns])))
        except QemuError as error:
            if "advance" in str(error):
                raise NoTimer(str(error)) from None
            raise
        return self.clock_ns

    def readl(self, addr: int) -> int:
        return int(self.command("readl", hex(addr)), 0)

    def readq(self, addr: int) -> int:
        return int(self.command("readq", hex(addr)), 0)

    def writel(self, addr: int, value: int) -> None:
        self.command("writel", hex(addr), hex(value))

    def writeq(self, addr: int, value: int) -> None:
        self.command("writeq", hex(addr), hex(value))

    def outl(self, port: int, value: int) -> None:
        self.command("outl", hex(port), hex(value))

    def inl(self, port: int) -> int:
        return int(self.command("inl", hex(port)), 0)

    def read(self, addr: int, size: int) -> bytes:
        return base64.b64decode(self.command("b64read", hex(addr), size)) if size else b""

    def write(self, addr: int, data: bytes) -> None:
        if data:
            self.command("b64write", hex(addr), len(data), base64.b64encode(data).decode())

    def fill(self, addr: int, size: int, value: int) -> None:
        self.command("memset", hex(addr), size, value)

    # QMP

    def _read_qmp(self) -> dict[str, Any]:
        try:
            message: dict[str, Any] = json.loads(self._qmp.readline())
        except QemuError as error:
            raise self._died(error) from None
        return message

    def qmp(self, execute: str, **arguments: Any) -> Any:
        """A QMP command; QemuError with QEMU's description if it is refused."""
        message = {"execute": execute, "arguments": arguments}
        try:
            self._qmp.send(json.dumps(message).encode() + b"\n")
        except QemuError as error:
            raise self._died(error) from None
        while True:
            answer = self._read_qmp()
            if "event" in answer:
                self.events.append(answer)
            elif "error" in answer:
                raise QemuError(answer["error"]["desc"])
            else:
                return answer["return"]

    def qom_set(self, path: str, name: str, value: Any) -> None:
        self.qmp("qom-set", path=path, property=name, value=value)

    def qom_get(self, path: str, name: str) -> Any:
        return self.qmp("qom-get", path=path, property=name)


def start_error(binary: str, args: Sequence[str], *, prefix: Sequence[str] = ()) -> str:
    """Starts a QEMU that has to refuse its arguments; what it printed.

    prefix is a command to run QEMU under.  AssertionError if QEMU starts, or dies of a signal.
    """
    with tempfile.TemporaryDirectory(prefix="rsd-qtest-") as directory:
        command = [*prefix, binary, *_base_args(Path(directory)), *args]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=_die_with_parent,
            env=os.environ | {"LC_ALL": "C"},
        )
        try:
            output, _ = process.communicate(timeout=START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise AssertionError(f"QEMU started with {' '.join(args)}") from None
    assert process.returncode == 1, f"status {process.returncode} with {args}: {output}"
    return output
