# SPDX-License-Identifier: GPL-2.0-or-later
"""The test library itself: what a test sees of a QEMU that ends under it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from qtest import LineSocket, Qemu, QemuError
from test_stock import stock_args


@pytest.mark.parametrize(
    "ask",
    [
        lambda machine: machine.command("clock_step"),
        lambda machine: machine.qmp("query-status"),
        lambda machine: machine.writel_together((0, 0)),
    ],
    ids=["command", "qmp", "writel_together"],
)
def test_qemu_is_gone(qemu: str, tmp_path: Path, ask: Callable[[Qemu], object]) -> None:
    """It ended before it was asked: the first to see it is who sends."""
    with Qemu(qemu, stock_args(tmp_path / "raw")) as machine:
        machine.process.kill()
        machine.process.wait()
        with pytest.raises(QemuError, match="QEMU died with status -9"):
            ask(machine)


def test_the_other_end_is_gone() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        line = LineSocket(ours)
        theirs.sendall(b"greeting\n")
        theirs.close()
        assert line.readline() == "greeting"
        with pytest.raises(QemuError, match="closed the connection"):
            line.send(b"hello\n")
        with pytest.raises(QemuError, match="closed the connection"):
            line.readline()
