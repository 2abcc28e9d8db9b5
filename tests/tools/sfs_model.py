# SPDX-License-Identifier: GPL-2.0-or-later
"""SFS (FAST 2012, sections 3.3 to 3.6) and its LFS-CB, written from the paper's text alone.

It shares no code with RFS or sfssim, and is built another way: blocks wait in memory until their
group fills a segment, numbers are floats, and every block's hotness is looked at by itself. So
where it copies as much as sfssim does on the same writes, neither is likely to be wrong.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

VICTIMS = 3  # at once (3.6)
ROUNDS = 3  # of quantization (3.4)


@dataclass
class Segment:
    """Blocks in it that are live, and what SFS keeps of them (3.3)."""

    live: dict[int, None] = field(default_factory=dict)
    writes: int = 0
    times: int = 0
    youngest: int = 0


def nearest(centres: Sequence[float], hot: float) -> int:
    """The centre that is closest; the first of two."""
    return min(range(len(centres)), key=lambda i: abs(centres[i] - hot))


def iterative(hot: list[float], centres: list[float] | None, k: int) -> list[float]:
    """3.4: segments go to the closest centre, which becomes their mean, three times at most.

    The paper does not say what becomes of a centre without segments: as is usual in clustering,
    it moves to the segment that is farthest from its own.
    """
    if centres is None or len(hot) <= k:
        ordered = sorted(hot)
        centres = [ordered[(2 * i + 1) * len(hot) // (2 * k)] for i in range(k)]
    if len(hot) <= k:
        return centres
    centres = sorted(centres)
    for _ in range(k):
        owners = [nearest(centres, one) for one in hot]
        empty = [i for i in range(k) if i not in owners]
        far = max(range(len(hot)), key=lambda j: abs(hot[j] - centres[owners[j]]))
        if not empty or hot[far] == centres[owners[far]]:
            break
        centres[empty[-1]] = hot[far]
        centres.sort()
    for _ in range(ROUNDS):
        clusters: list[list[float]] = [[] for _ in range(k)]
        for one in hot:
            clusters[nearest(centres, one)].append(one)
        moved = [
            sum(some) / len(some) if some else centre
            for some, centre in zip(clusters, centres, strict=True)
        ]
        if moved == centres:
            break
        centres = moved
    return centres


def equi_width(hot: list[float], k: int) -> list[float]:
    """As many segments in each group (3.4)."""
    ordered, n = sorted(hot), len(hot)
    parts = [ordered[i * n // k : max((i + 1) * n // k, i * n // k + 1)] for i in range(k)]
    return [sum(part) / len(part) for part in parts]


def equi_height(hot: list[float], k: int) -> list[float]:
    """Equal ranges of hotness (3.4)."""
    low, high = min(hot), max(hot)
    return [low + (2 * i + 1) * (high - low) / (2 * k) for i in range(k)]


class Model:
    """A volume. Its clock is the writes of the user."""

    def __init__(  # noqa: PLR0913
        self,
        segments: int,
        size: int,
        *,
        reserve: int,
        round_: int,
        groups: int,
        quantize: str,
        gc: str,
    ) -> None:
        self._segments, self._size = segments, size
        self._low = reserve - round_ // 2
        self._high = self._low + round_
        self._k, self._quantize, self._gc = groups, quantize, gc
        self._used: dict[int, Segment] = {}
        self._free = deque(range(segments))  # the least recently freed first (3.5)
        self._where: dict[int, Segment] = {}
        self._writes: dict[int, int] = {}
        self._time: dict[int, int] = {}
        self._number: dict[int, int] = {}  # of a segment, by its identity
        self._centres: list[float] | None = None
        self._waiting: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(groups)]
        self._lost = [0] * groups  # places of a group's next segment that are dead already
        self._lately: deque[float] = deque(maxlen=segments * size // 16)  # balanced: hotness
        self.now = self.copies = 0

    def write(self, block: int, file_hotness: float) -> None:
        """By the user, of a file of which that is known."""
        if self._free_segments() < self._low:
            while self._free_segments() < self._high:
                self._clean()
        self.now += 1
        hot = file_hotness
        if block in self._writes:
            hot = self._hotness(block)
            self._lately.append(hot)
        self._forget(block)
        self._writes[block] = self._writes.get(block, 0) + 1
        self._time[block] = self.now
        self._put(block, hot)

    def _free_segments(self) -> int:
        """But those that are taken once what waits is written."""
        begun = sum(
            bool(waiting) or lost > 0
            for waiting, lost in zip(self._waiting, self._lost, strict=True)
        )
        return len(self._free) - begun

    def _hotness(self, block: int) -> float:
        return self._writes[block] / max(self.now - self._time[block], 1)

    def _segment_hotness(self, segment: Segment) -> float:
        age = self.now * len(segment.live) - segment.times
        return segment.writes / max(age, 1)

    def _forget(self, block: int) -> None:
        segment = self._where.pop(block, None)
        if segment is not None:
            del segment.live[block]
            segment.writes -= self._writes[block]
            segment.times -= self._time[block]
            if not segment.live:
                self._release(segment)
        for i, waiting in enumerate(self._waiting):
            if block in waiting:  # it is written all the same: SFS's page cache might spare it
                del waiting[block]
                self._lost[i] += 1

    def _release(self, segment: Segment) -> None:
        number = self._number.pop(id(segment))
        del self._used[number]
        self._free.append(number)

    def _put(self, block: int, hot: float) -> None:
        i = self._group(hot)
        waiting = self._waiting[i]
        if not waiting and not self._lost[i]:
            self._regroup()
            i = self._group(hot)
            waiting = self._waiting[i]
        waiting[block] = None
        if len(waiting) + self._lost[i] == self._size:
            self._write_segment(i)

    def _group(self, hot: float) -> int:
        if self._centres is None:
            return 0
        if self._quantize == "balanced":
            return sum(hot > border for border in self._centres)
        return nearest(self._centres, hot)

    def _regroup(self) -> None:
        hot = [self._segment_hotness(segment) for segment in self._used.values()]
        if self._k == 1 or not hot:
            return
        if self._quantize == "iterative":
            self._centres = iterative(hot, self._centres, self._k)
        elif self._quantize == "equi-width":
            self._centres = equi_width(hot, self._k)
        elif self._quantize == "equi-height":
            self._centres = equi_height(hot, self._k)
        elif self._lately:  # each group is given as much
            ordered = sorted(self._lately)
            self._centres = [ordered[i * len(ordered) // self._k] for i in range(1, self._k)]

    def _write_segment(self, i: int) -> None:
        blocks = list(self._waiting[i])
        self._waiting[i].clear()
        self._lost[i] = 0
        if not blocks:
            return
        segment = Segment(
            dict.fromkeys(blocks),
            sum(self._writes[block] for block in blocks),
            sum(self._time[block] for block in blocks),
            max(self._time[block] for block in blocks),
        )
        number = self._free.popleft()
        self._used[number] = segment
        self._number[id(segment)] = number
        self._where.update(dict.fromkeys(blocks, segment))

    def _worth(self, segment: Segment) -> float:
        u = len(segment.live) / self._size
        if self._gc == "cost-hotness":  # 3.6
            return (1 - u) / (2 * u * max(self._segment_hotness(segment), 1e-12))
        if self._gc == "cost-benefit":
            return (1 - u) / (2 * u) * max(self.now - segment.youngest, 1)
        return 1 - u

    def _clean(self) -> None:
        for _ in range(VICTIMS):
            victim = max(
                (one for one in self._used.values() if len(one.live) < self._size),
                key=self._worth,
            )
            blocks = list(victim.live)
            for block in blocks:
                hot = self._hotness(block)
                self._lately.append(hot)
                self._forget(block)
                self._put(block, hot)
            self.copies += len(blocks)


def copies_a_write(  # noqa: PLR0913
    model: Model,
    cold: int,
    blocks: int,
    trace: Iterable[int],
    aged: int,
) -> float:
    """A volume is filled with what is never written again, and then with what is."""
    for i in range(cold + blocks):
        first = 0 if i < cold else cold
        # a file that is written in order: so many writes, the last one just before
        model.write(i, float(i - first))
    before = written = 0
    for i, block in enumerate(trace):
        if i == aged:
            before = model.copies
        model.write(cold + block, 0.0)
        written = i + 1
    return (model.copies - before) / (written - aged)
