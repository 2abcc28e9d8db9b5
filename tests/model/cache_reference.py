# SPDX-License-Identifier: GPL-2.0-or-later
"""What a drive with a cached map (ftl=dftl) does to its map, command by command: no time, no dies,
no flash blocks, no collection.

Written from the rules (DFTL's paper; the head of map-cache.c), and shaped differently from the
core on purpose. The cache is two lists of LBAs, that used last first. An entry is looked for by
going through them; what is dirty is a set. Nothing waits: an update is done when it is begun.
"""

from collections import Counter
from collections.abc import Iterator

ENTRIES = 1024  # of a map page
ENTRY_BYTES = 8


class CachedMap:
    """The map of a drive that has free blocks enough."""

    def __init__(self, cache_bytes: int) -> None:
        self.size = cache_bytes // ENTRY_BYTES
        self.probation: list[int] = []
        self.protected: list[int] = []
        self.dirty: set[int] = set()
        self.in_flash: set[int] = set()  # map pages that were ever written
        self.tags: dict[int, int] = {}  # LBAs that have content
        self.count: Counter[str] = Counter()

    def _update(self, page: int) -> None:
        """All changed entries of a map page are written."""
        if page in self.in_flash:
            self.count["read_map"] += 1
        self.count["prog_map"] += 1
        self.in_flash.add(page)
        self.dirty = {lba for lba in self.dirty if lba // ENTRIES != page}

    def _hit(self, lba: int) -> bool:
        """It is in the cache: it moves to the head of the protected half."""
        if lba in self.protected:
            self.protected.remove(lba)
        elif lba in self.probation:
            self.probation.remove(lba)
        else:
            return False
        self.protected.insert(0, lba)
        if len(self.protected) > self.size // 2:
            self.probation.insert(0, self.protected.pop())
        return True

    def _make_room(self, entries: int) -> None:
        """So many are evicted, the least recently used first."""
        leaving = [(self.probation or self.protected).pop() for _ in range(entries)]
        for lba in leaving:
            if lba in self.dirty:
                self._update(lba // ENTRIES)

    def _translate(self, lba: int, pages: int) -> Iterator[range]:
        """What a command needs of a map page, of a quarter of the cache at most, at a time."""
        while pages:
            n = min(pages, ENTRIES - lba % ENTRIES, self.size // 4)
            missing = [at for at in range(lba, lba + n) if not self._hit(at)]
            self.count["map_hits"] += n - len(missing)
            self.count["map_misses"] += len(missing)
            used = len(self.probation) + len(self.protected)
            self._make_room(max(0, used + len(missing) - self.size))
            if missing and lba // ENTRIES in self.in_flash:
                self.count["read_map"] += 1
            for at in missing:
                self.probation.insert(0, at)
            yield range(lba, lba + n)
            lba += n
            pages -= n

    def write(self, lba: int, pages: int, tag: int) -> None:
        """They have content, and their entries are changed."""
        for part in self._translate(lba, pages):
            self.dirty.update(part)
            self.tags.update((at, tag + at - lba) for at in part)
            self.count["prog_host"] += len(part)

    def read(self, lba: int, pages: int) -> list[int]:
        """Tags, 0 for no content."""
        tags = [self.tags.get(at, 0) for part in self._translate(lba, pages) for at in part]
        self.count["read_host"] += sum(tag > 0 for tag in tags)
        return tags

    def trim(self, lba: int, pages: int) -> None:
        """Entries that are not in the cache are changed in flash, each map page once."""
        updates = set()
        for at in range(lba, lba + pages):
            if self.tags.pop(at, 0):
                if at in self.probation or at in self.protected:
                    self.dirty.add(at)
                elif at // ENTRIES in self.in_flash:
                    updates.add(at // ENTRIES)
        for page in updates:
            self._update(page)
