# SPDX-License-Identifier: GPL-2.0-or-later
"""Finished cells, a file each, named by what they are: a sweep that is started again goes on."""

import json
from pathlib import Path
from typing import Any

from rsd.errors import RsdError


class Store:
    """A directory with the results of cells in cells/KEY.json."""

    def __init__(self, directory: Path, option: str = "--store") -> None:
        self.directory = directory
        try:
            (directory / "cells").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RsdError(
                f"{option} {directory}: {error.strerror}", "name another directory"
            ) from error

    def path(self, key: str) -> Path:
        """Where the result of a cell is, or will be."""
        return self.directory / "cells" / f"{key}.json"

    def load(self, key: str) -> dict[str, Any] | None:
        """The result of a cell; nothing if there is none, or only a part of one."""
        try:
            content = json.loads(self.path(key).read_text())
        except (OSError, ValueError):
            return None
        return content if isinstance(content, dict) and "results" in content else None
