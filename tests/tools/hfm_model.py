# SPDX-License-Identifier: GPL-2.0-or-later
"""HFM's data sections (2014, sections 3.2 and 3.3), written from the paper's definitions.

It shares no code with RFS or hfmsim, and is built another way: a partition is the set of segments
that the definitions of the partitioning functions name, and a map table is one list in which all
extents are looked at. What the paper leaves open is as the design of RFS says (*Data sections*).
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Segment:
    """sg with its level and its index, of which -1 is the paper's H."""

    level: int
    index: int
    start: int
    length: int


def _children(level: int, start: int, length: int) -> list[Segment]:
    """What an extent, or a segment, is split into: the head, and one segment for each power of 2.

    The paper says that start[sg_L^H] is the start of what is split, and start[sg_L^j] is 2^j more.
    """
    powers = [2**i for i in range(length.bit_length() - 1)]
    return [
        Segment(level, -1, start, 1),
        *(Segment(level, i, start + power, power) for i, power in enumerate(powers)),
    ]


def partition(size: int, rho: int, delta: int) -> list[Segment]:
    """Every segment of an extent, those that are split included."""
    found = _children(0, 0, size)
    if rho == 2:
        found += _children(1, size // 2, size // 2)
    if rho == 3:
        for one in found:  # which grows meanwhile
            if one.index >= 0 and one.length >= delta:
                found += _children(one.level + 1, one.start, one.length)
    return found


def following(size: int, rho: int, delta: int) -> dict[int, Segment]:
    """Of each unit: the segment after the smallest one that has it; of those, the outermost."""
    segments = partition(size, rho, delta)
    ends = {}
    for one in sorted(segments, key=lambda one: one.level):
        for unit in range(one.start, one.start + one.length):
            ends[unit] = one.start + one.length
    outermost: dict[int, Segment] = {}
    for one in sorted(segments, key=lambda one: -one.level):
        outermost[one.start] = one
    return {unit: outermost[end] for unit, end in ends.items() if end < size}


@dataclass
class Extent:
    """In the map table. `since` is 0 if no file is in it."""

    address: int
    start: int = 0
    since: int = 0


@dataclass(frozen=True)
class Placed:
    """Where a file went, and where the next one of that extent would begin."""

    address: int
    start: int
    units: int
    end: int
    reused: bool
    full: bool


@dataclass
class Section:
    """A section's map table."""

    size: int
    rho: int
    delta: int
    theta: int
    unit: int
    descriptors: int
    extents: list[Extent] = field(default_factory=list)
    files: int = 0
    collected: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.next = following(self.size, self.rho, self.delta)

    def add(self, address: int) -> bool:
        """An empty extent, if there is a descriptor for it."""
        if len(self.extents) == self.descriptors:
            return False
        self.extents.append(Extent(address))
        return True

    def place(self, units: int, empty: bool) -> Placed | None:
        """Algorithm 1."""
        units = min(units, self.size)
        room = [e for e in self.extents if e.since and self.size - e.start >= units]
        room.sort(key=lambda e: e.since)
        fresh = [e for e in self.extents if not e.since]
        chosen = ([] if empty else room) + fresh
        if not chosen:
            return None
        extent = chosen[0]
        start, reused = extent.start, extent.since > 0
        self.files += 1
        extent.since = extent.since or self.files
        after = self.next.get(start + units - 1)
        end = after.start if after else self.size
        full = self.size - end < self.theta
        if full:
            self.extents.remove(extent)
        extent.start = end
        return Placed(extent.address, start, units, end, reused, full)

    def oldest(self) -> int | None:
        """The address of the extent that waits longest."""
        waiting = [e for e in self.extents if e.since]
        return min(waiting, key=lambda e: e.since).address if waiting else None

    def remove(self, address: int) -> None:
        """Takes an extent out."""
        self.extents = [e for e in self.extents if e.address != address]

    def collect(self, units: int) -> bool:
        """Whether what waits, this included, is written now."""
        self.collected.append(units)
        if sum(self.collected) < self.unit:
            return False
        self.collected = []
        return True


KIB = 1024
PAGE = 4


@dataclass
class _Part:
    """Of a file, in the extent of an address; it may grow up to `end`."""

    address: int
    start: int
    units: int
    end: int


@dataclass
class _File:
    parts: list[_Part] = field(default_factory=list)
    size: int = 0


@dataclass
class _State:
    """Of an extent: how far it is filled and written, and whether more comes to it."""

    filled: int = 0
    written: int = 0
    open: bool = True


class Store:
    """Files on a section that is never full: what hfmsim counts, of the calls it lists.

    The last bytes of a file's last unit, and the units behind it up to where the next file begins,
    are the file's own. A file as long as an extent is written at once, a shorter one with its
    extent, which is written when it is full.
    """

    def __init__(self, size: int, rho: int, delta: int, theta: int) -> None:
        self.section = Section(size, rho, delta, theta, 0, 1024)
        self.files: dict[int, _File] = {}
        self.states: dict[int, _State] = {}
        self.counts = dict.fromkeys(
            ("units", "gap_units", "placed", "reused", "flash_commands", "flash_pages", "forced"), 0
        )

    def _write(self, first: int, last: int) -> None:
        self.counts["flash_commands"] += 1
        self.counts["flash_pages"] += (last - 1) // PAGE - first // PAGE + 1

    def _write_rest(self, state: _State) -> None:
        if state.filled > state.written:
            self._write(state.written, state.filled)
            state.written = state.filled

    def _place(self, file: _File, units: int) -> None:
        long = units >= self.section.size
        while units:
            placed = self.section.place(units, long)
            if placed is None:
                if len(self.section.extents) == 1024:
                    self._close(self.section.oldest() or 0)
                    self.counts["forced"] += 1
                self.section.add(len(self.states))
                self.states[len(self.states)] = _State()
                continue
            state = self.states[placed.address]
            state.filled = placed.start + placed.units
            file.parts.append(_Part(placed.address, placed.start, placed.units, placed.end))
            units -= placed.units
            self.counts["units"] += placed.units
            self.counts["placed"] += 1
            self.counts["reused"] += placed.reused
            self.counts["gap_units"] += placed.end - state.filled
            if placed.full:
                self._close(placed.address)
            elif long:
                self._write_rest(state)

    def _close(self, address: int) -> None:
        self.section.remove(address)
        self.states[address].open = False
        self._write_rest(self.states[address])

    def append(self, number: int, size: int) -> None:
        """Bytes behind those that the file has."""
        file = self.files.setdefault(number, _File())
        file.size += size
        if file.parts:
            size -= self._grow(file, size)
        if size:
            self._place(file, -(-size // KIB))

    def _grow(self, file: _File, size: int) -> int:
        part = file.parts[-1]
        # all units of a file but the last one are full: a part grows before another is made
        slack = -(file.size - size) % KIB
        taken = min(size, slack + (part.end - part.start - part.units) * KIB)
        if not taken:
            return 0
        state = self.states[part.address]
        begun = part.start + part.units - (slack > 0)
        more = max(0, -(-(taken - slack) // KIB))
        part.units += more
        end = part.start + part.units
        self.counts["units"] += more
        self.counts["gap_units"] -= more
        state.filled = max(state.filled, end)
        if begun < state.written or not state.open:
            self._write(begun, end)
            state.written = max(state.written, end)
        return taken

    def delete(self, number: int) -> None:
        """An extent without files leaves the table, and what was not written never is."""
        gone = {part.address for part in self.files.pop(number).parts}
        kept = {part.address for file in self.files.values() for part in file.parts}
        for address in gone - kept:
            self.section.remove(address)
            self.states[address] = _State(open=False)

    def overwrite(self, number: int) -> None:
        """All of a file, in place."""
        for part in self.files[number].parts:
            state, end = self.states[part.address], part.start + part.units
            if part.start < state.written or not state.open:
                self._write(part.start, end)
                state.written = max(state.written, end)

    def flush(self) -> None:
        """Writes what waits."""
        for state in self.states.values():
            self._write_rest(state)
