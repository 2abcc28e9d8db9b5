# SPDX-License-Identifier: GPL-2.0-or-later
"""Work whose result is an entry of the cache, done here or elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rsd.cache import Cache


@dataclass(frozen=True)
class Unit:
    """`build` fills the directory that becomes the entry `kind`/`key`. `title` is for people.

    `needs` are kind and key of entries that others may share, such as an aged volume; `build` makes
    them, too, if they are missing.
    """

    title: str
    kind: str
    key: str
    build: Callable[[Path], None]
    needs: tuple[tuple[str, str], ...] = ()

    def run(self, cache: Cache) -> Path:
        """The entry: what the cache has, or built now."""
        return cache.entry(self.kind, self.key, self.build)
