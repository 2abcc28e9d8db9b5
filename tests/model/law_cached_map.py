# SPDX-License-Identifier: GPL-2.0-or-later
"""A segmented least-recently-used cache of single entries. For `./rsd bench laws`.

Written from Karedla, Love and Wherry ("Caching strategies to improve disk system performance",
IEEE Computer 1994), which DFTL takes for its map. A new entry comes to the head of the
probationary segment. An entry that is found moves to the head of the protected segment, which has
half of the places; what falls out of that comes to the head of the probationary one again.
"""

from collections import OrderedDict


class SegmentedLru:
    """So many entries in all."""

    def __init__(self, entries: int) -> None:
        self.entries = entries
        self.probationary: OrderedDict[int, None] = OrderedDict()
        self.protected: OrderedDict[int, None] = OrderedDict()
        self.hits = self.misses = 0

    def use(self, key: int) -> bool:
        """Look it up, and have it in the cache afterwards. True if it was there."""
        if key in self.protected:
            self.protected.move_to_end(key)
            self.hits += 1
            return True
        if key in self.probationary:
            del self.probationary[key]
            self.protected[key] = None
            if len(self.protected) > self.entries // 2:
                fallen, _ = self.protected.popitem(last=False)
                self.probationary[fallen] = None
            self.hits += 1
            return True
        self.misses += 1
        if len(self.probationary) + len(self.protected) == self.entries:
            (self.probationary or self.protected).popitem(last=False)
        self.probationary[key] = None
        return False
