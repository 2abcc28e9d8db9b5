# SPDX-License-Identifier: GPL-2.0-or-later
"""OFTL's six workloads, generated: the traces are not to be had, table 2 says what they are like.

Of a workload the table gives the writes, their bytes, the flushes, and the share of writes that are
not of whole pages. In the traces a flush is the closing of a file. So a workload is a row of
sessions: a file is opened, written from where it ends, and closed with fsync. A session is on a new
file or on one that is there, by equal chance. Its writes are of whole pages, or none of them is.
How long sessions and writes are is drawn by exponential distributions with the table's means, and
scaled so that their sums are the table's.

In TPC-C, sessions of whole pages write pages of 8 KiB of a table that is there before. The table
does not say which. A few are written again and again: their distribution is set so that a flush
finds the share of the bytes that ext2 wrote in the paper's ASYNC mode, 0.705.
"""

import array
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
KIB = 1024
# Bytes to write: as nothing is known of the paper's, btrfs cannot compress them.
CONTENT = 1 << 20
# A page of TPC-C's table, as PostgreSQL has them; the table's pages, and Zipf's theta over them
TABLE_PAGE = 8192
TABLE_PAGES = 2048
THETA = 1.015
# Of the file that is the table; others have the numbers after it
TABLE = 0


@dataclass(frozen=True)
class Workload:
    """A row of OFTL's table 2. `here` are the writes of ours; `unaligned` is a percentage."""

    title: str
    writes: int
    kib: int
    flushes: int
    unaligned: float
    here: int
    table: bool = False

    @property
    def mean(self) -> float:
        """Bytes a write."""
        return self.kib * KIB / self.writes

    @property
    def burst(self) -> float:
        """Writes a flush."""
        return self.writes / self.flushes


# Each is scaled to a few seconds in the guest.
WORKLOADS = {
    "iphoto": Workload("iPhoto", 496_542, 6_651_962, 37_054, 51.2, 2000),
    "ipages": Workload("iPages", 75_661, 183_728, 565, 99.6, 4000),
    "lasr-1": Workload("LASR-1", 32_249, 42_600, 1_714, 93.3, 4000),
    "lasr-2": Workload("LASR-2", 111_531, 216_114, 14_998, 99.0, 4000),
    "lasr-3": Workload("LASR-3", 21_956, 24_426, 3_056, 96.1, 4000),
    "tpc-c": Workload("TPC-C", 26_144, 219_689, 489, 7.1, 3000, table=True),
}


@dataclass(frozen=True)
class Write:
    """Bytes of a file, by its number. `last`: the file is closed after it."""

    file: int
    offset: int
    length: int
    last: bool

    @property
    def aligned(self) -> bool:
        """Whether it is of whole pages."""
        return self.offset % PAGE == 0 and self.length % PAGE == 0


@dataclass(frozen=True)
class Statistics:
    """What table 2 says of a workload, of ours."""

    mean: float
    burst: float
    unaligned: float


def writes(name: str) -> list[Write]:
    """A workload, the same at each call."""
    work = WORKLOADS[name]
    chance = random.Random(f"OFTL {name}")
    bursts = _parts(chance, round(work.here / work.burst), work.here, 1)
    kinds = list(_kinds(bursts, work))
    lengths = _lengths(chance, bursts, kinds, work)
    ends = {TABLE: TABLE_PAGES * TABLE_PAGE} if work.table else {}
    pages = _table_pages(chance)
    done: list[Write] = []
    for burst, aligned in zip(bursts, kinds, strict=True):
        if work.table and aligned:
            session = [(TABLE, next(pages) * TABLE_PAGE, next(lengths)) for _ in range(burst)]
        else:
            session = list(_session(chance, ends, burst, aligned, lengths))
        done += [Write(*one, last=number == burst) for number, one in enumerate(session, 1)]
    return done


def statistics(work: Sequence[Write]) -> Statistics:
    """Of what was generated."""
    count = len(work)
    return Statistics(
        sum(one.length for one in work) / count,
        count / sum(one.last for one in work),
        100 * sum(not one.aligned for one in work) / count,
    )


def least(work: Sequence[Write], *, every_write: bool) -> float:
    """What a flush makes durable, in whole pages, by the bytes asked for.

    No system writes flash of whole pages with less. With `every_write` each write is a flush.
    """
    pages = 0
    session: list[tuple[int, int]] = []
    for one in work:
        session.append((one.offset, one.offset + one.length))
        if one.last or every_write:
            pages += -(-_distinct(session) // PAGE)
            session = []
    return pages * PAGE / sum(one.length for one in work)


def _distinct(parts: Iterable[tuple[int, int]]) -> int:
    """Bytes of a file that some of these parts have."""
    total = reached = 0
    for begin, end in sorted(parts):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def packed(work: Iterable[Write]) -> bytes:
    """As replay.py reads it: four words of 32 bits, little-endian, for each write."""
    numbers = array.array("I")
    for one in work:
        numbers.extend((one.file, one.offset, one.length, one.last))
    return numbers.tobytes()


def inputs(target: Path, listed: bytes, program: Path) -> Path:
    """A new directory of what a guest needs: a packed list, content for it, and the program."""
    directory = target / "in"
    directory.mkdir()
    (directory / "list").write_bytes(listed)
    (directory / "content").write_bytes(random.Random("OFTL").randbytes(CONTENT))
    (directory / program.name).write_bytes(program.read_bytes())
    return directory


def _parts(chance: random.Random, count: int, total: int, least: int) -> list[int]:
    """`count` numbers of at least `least`, drawn exponentially, whose sum is `total`."""
    drawn = [chance.expovariate(1) for _ in range(count)]
    rest = total - count * least
    borders = [round(rest * part / sum(drawn)) for part in itertools.accumulate(drawn)]
    return [least + high - low for low, high in itertools.pairwise((0, *borders))]


def _kinds(bursts: Sequence[int], work: Workload) -> Iterator[bool]:
    """Whether each session is of whole pages; at any time, as many writes are as should be."""
    share = 1 - work.unaligned / 100
    all_writes = aligned = 0
    for burst in bursts:
        all_writes += burst
        kind = aligned + burst / 2 <= share * all_writes
        aligned += burst * kind
        yield kind


def _lengths(
    chance: random.Random, bursts: Sequence[int], kinds: Sequence[bool], work: Workload
) -> Iterator[int]:
    """Of all writes in their order: both kinds have the mean length, as far as pages allow."""
    counts = {
        kind: sum(burst for burst, of in zip(bursts, kinds, strict=True) if of is kind)
        for kind in (True, False)
    }
    unit = TABLE_PAGE if work.table else PAGE
    pages = counts[True]
    if not work.table:
        pages = max(pages, round(pages * work.mean / unit))
    rest = round(work.here * work.mean) - pages * unit
    whole = iter(_parts(chance, counts[True], pages, 1) if counts[True] else [])
    odd = iter(_parts(chance, counts[False], rest, 1))
    for burst, kind in zip(bursts, kinds, strict=True):
        for _ in range(burst):
            yield next(whole) * unit if kind else next(odd)


def _table_pages(chance: random.Random) -> Iterator[int]:
    """Pages of the table, drawn by Zipf; those that are written most lie anywhere in it."""
    places = list(range(TABLE_PAGES))
    chance.shuffle(places)
    weights = list(itertools.accumulate((at + 1) ** -THETA for at in range(TABLE_PAGES)))
    while True:
        yield from chance.choices(places, cum_weights=weights, k=TABLE_PAGES)


def _session(
    chance: random.Random,
    ends: dict[int, int],
    burst: int,
    aligned: bool,
    lengths: Iterator[int],
) -> Iterator[tuple[int, int, int]]:
    """File, offset and length of each write: on a new file, or where an old one ends."""
    old = [file for file in ends if file != TABLE]
    file = chance.choice(old) if old and chance.random() < 0.5 else len(ends) + 1
    offset = ends.get(file, 0)
    if aligned:
        offset = -(-offset // PAGE) * PAGE
    for _ in range(burst):
        length = next(lengths)
        yield file, offset, length
        offset += length
    ends[file] = offset
