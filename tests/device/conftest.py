# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the device tests.  They run on the QEMU of RSD_QEMU, else on the built one."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from drive import Drive, OpenDrive, open_drive


@pytest.fixture(scope="session")
def qemu(request: pytest.FixtureRequest) -> str:
    """Path of the QEMU binary under test."""
    binary = os.environ.get("RSD_QEMU")
    return binary if binary else str(request.getfixturevalue("qemu_binary"))


@pytest.fixture
def media(tmp_path: Path) -> Path:
    """Path for a media file that does not exist yet."""
    return tmp_path / "drive.rsd"


@pytest.fixture
def drive(qemu: str, media: Path) -> OpenDrive:
    """drive(channels=1, t_prog=5, ...) opens a drive on the test's media file.

    Property names are written with underscores; controller= and depth= go to open_drive().
    """

    def open_with(
        *, controller: str = "", depth: int = 1024, **props: Any
    ) -> AbstractContextManager[Drive]:
        names = {}
        for name, value in props.items():
            if name.startswith("zoned_"):
                names["zoned." + name.removeprefix("zoned_")] = value
            else:
                names[name.replace("_", "-")] = value
        return open_drive(qemu, media, names, controller=controller, depth=depth)

    return open_with
