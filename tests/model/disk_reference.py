# SPDX-License-Identifier: GPL-2.0-or-later
"""What ftl=disk must do, told apart from how it does it: slot by slot, with lists and dictionaries.

Every slot's place is written down when the disk is made, by going along the tracks once. When a
slot has passed under the head is found by going from slot to slot. All times are whole nanoseconds,
and rounded where mechanics.c says that they are: the angle of a slot, and the root in a seek.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt

LOOKED_AT = 32
TURNS = 64
PAGE = 4096

Settings = dict[str, int]


@dataclass(frozen=True)
class Place:
    """Where a slot is."""

    cylinder: int
    head: int
    slots: int  # of its track
    angle: int  # where it begins, in slots


@dataclass
class Command:
    """What the host asked for."""

    number: int
    op: str
    lba: int
    nlb: int
    tag: int
    fresh: int = 0  # a read: the first LBA that is not in the cache
    before: int = 0  # a flush: writes that it has to wait for
    done: int | None = None
    pages: list[int] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.lba + self.nlb

    def overlaps(self, other: "Command") -> bool:
        both_read = self.op == other.op == "read"
        return not both_read and self.lba < other.end and other.lba < self.end


@dataclass
class Stream:
    """LBAs passing under the head, from one on; when each of them has passed."""

    disk: "Disk"
    first: int
    arm: tuple[int, int]
    since: int
    ends: list[int] = field(default_factory=list)
    arms: list[tuple[int, int]] = field(default_factory=list)
    moves: list[tuple[int, int, int, int]] = field(default_factory=list)

    def passed(self, lba: int) -> int:
        """When this one has."""
        while self.first + len(self.ends) <= lba:
            now = self.ends[-1] if self.ends else self.since
            arm = self.arms[-1] if self.arms else self.arm
            end, move = self.disk.go(arm, now, self.first + len(self.ends))
            place = self.disk.places[self.first + len(self.ends)]
            self.ends.append(end)
            self.arms.append((place.cylinder, place.head))
            self.moves.append(move)
        return self.ends[lba - self.first]


@dataclass
class Segment:
    first: int = 0
    end: int = 0
    used: int = 0


class Disk:
    """One, with the drive's properties by name, of so many LBAs."""

    def __init__(self, cfg: Settings, lbas: int) -> None:
        self.cfg = cfg
        self.lbas = lbas
        self.turn = 60_000_000_000 // cfg["disk-rpm"]
        self.switch = cfg["disk-head-switch"] if cfg["disk-heads"] > 1 else 0
        self.places, self.cylinders = self._layout()
        self.now = 0
        self.arm = (0, 0)
        self.readers: list[Command] = []
        self.writer: Command | None = None
        self.busy: str = ""  # "", "read" or "write"
        self.due: int | None = None
        self.stream: Stream | None = None  # what is read, or written
        self.limit = 0  # how far the stream may be read
        self.read_up_to = 0  # and how far it was, for commands that are done
        self.counted = 0  # LBAs of the stream whose moves are counted
        self.segment: Segment | None = None
        self.segments = [Segment() for _ in range(cfg["disk-segments"])]
        self.uses = 0
        self.medium: dict[int, int] = {}  # the tag of each LBA written
        self.dirty: dict[int, tuple[int, int]] = {}  # tag, number of the write
        self.writing: dict[int, tuple[int, int]] = {}
        self.run: list[int] = []
        self.writes = 0
        self.sweep_lba = self.sweep_end = 0
        self.alive: list[Command] = []
        self.blocked: list[Command] = []
        self.queue: list[Command] = []
        self.room: list[Command] = []
        self.flushes: list[Command] = []
        self.passed_over = self.turns = 0
        self.count = dict.fromkeys(
            (
                "disk_read_pages disk_cache_hits disk_write_pages disk_overwrites "
                "disk_seeks disk_seek_ns disk_rotate_ns disk_transfer_ns"
            ).split(),
            0,
        )

    # Mechanics

    def _skew(self, time: int, slots: int) -> int:
        return time * slots // self.turn + 1 if time else 0

    def _layout(self) -> tuple[list[Place], int]:
        cfg = self.cfg
        zones, heads = cfg["disk-zones"], cfg["disk-heads"]
        outer, inner = cfg["disk-outer-slots"], cfg["disk-inner-slots"]
        tracks = [outer - ((outer - inner) * z // (zones - 1) if z else 0) for z in range(zones)]
        cylinders = -(-self.lbas // (heads * sum(tracks)))
        places: list[Place] = []
        for zone, slots in enumerate(tracks):
            begin = 0
            for cylinder in range(zone * cylinders, (zone + 1) * cylinders):
                for head in range(heads):
                    places += (
                        Place(cylinder, head, slots, (begin + i) % slots) for i in range(slots)
                    )
                    last = head == heads - 1
                    step = max(cfg["disk-seek-min"], self.switch) if last else self.switch
                    begin += self._skew(step, slots) % slots
        return places, cylinders * zones

    def seek(self, distance: int) -> int:
        low, mean, high = (self.cfg[f"disk-seek-{name}"] for name in ("min", "avg", "max"))
        knee = (135 * mean - 27 * low - 20 * high) // 88
        third, last = self.cylinders // 3, self.cylinders - 1
        if distance < 2:
            return low * distance
        if distance < third:
            root = isqrt((distance - 1 << 32) // (third - 1))
            return low + ((knee - low) * root >> 16)
        return knee + int(Fraction((high - knee) * (distance - third), last - third))

    def go(self, arm: tuple[int, int], now: int, lba: int) -> tuple[int, tuple[int, int, int, int]]:
        """When a slot has passed; seeks, ns of moving, of waiting and of passing until then."""
        place = self.places[lba]
        move = self.seek(abs(arm[0] - place.cylinder))
        if arm[1] != place.head:
            move = max(move, self.switch)
        begin = self.turn * place.angle // place.slots
        passing = self.turn * (place.angle + 1) // place.slots - begin
        wait = (begin - now - move) % self.turn
        seeks = int(arm[0] != place.cylinder)
        return now + move + wait + passing, (seeks, move, wait, passing)

    def _count_up_to(self, lba: int) -> None:
        """The stream is followed to there for somebody."""
        assert self.stream
        self.stream.passed(lba - 1)
        for move in self.stream.moves[self.counted : lba - self.stream.first]:
            for name, value in zip(
                ("seeks", "seek_ns", "rotate_ns", "transfer_ns"), move, strict=True
            ):
                self.count[f"disk_{name}"] += value
        self.counted = max(self.counted, lba - self.stream.first)

    # Cache

    def _unwritten(self, lba: int) -> tuple[int, int] | None:
        """What the cache has of an LBA for the medium."""
        return self.dirty.get(lba) or self.writing.get(lba)

    def _fresh(self, command: Command) -> int:
        lba = command.lba
        while lba < command.end and (
            any(s.first <= lba < s.end for s in self.segments) or self._unwritten(lba)
        ):
            lba += 1
        return lba

    def _extend(self, end: int) -> None:
        assert self.segment
        self.segment.end = end
        slots = self.cfg["disk-segment-size"] // PAGE
        self.segment.first = max(self.segment.first, end - slots)

    def _look_ahead(self) -> None:
        """If it reads ahead: what is in the segment by now; the arm is where that led."""
        if self.busy or not self.stream:
            return
        stream, lba = self.stream, self.stream.first
        while lba < self.limit and stream.passed(lba) <= self.now:
            lba += 1
        assert self.segment
        if lba > self.segment.end:
            self._extend(lba)
        last = lba - 1 - stream.first
        # at the moment when a slot has passed the arm has not yet set out for the next one
        goes_on = lba < self.limit and stream.ends[last] < self.now
        self.arm = stream.arms[last + goes_on]

    def _take_run(self) -> None:
        due = sorted(lba for lba in self.dirty if self.dirty[lba][1] < self.sweep_end)
        if not due:
            self.sweep_end = self.writes
            due = sorted(self.dirty)
        lba = next((lba for lba in due if lba >= self.sweep_lba), due[0])
        place = self.places[lba]
        self.run = [lba]
        while lba + 1 in self.dirty and self.places[lba + 1].slots == place.slots:
            after = self.places[lba + 1]
            if (after.cylinder, after.head) != (place.cylinder, place.head):
                break
            lba += 1
            self.run.append(lba)
        self.writing = {lba: self.dirty.pop(lba) for lba in self.run}
        self.sweep_lba = lba + 1

    # Commands

    def _finish(self, command: Command) -> None:
        command.done = self.now
        if command in self.alive:
            self.alive.remove(command)

    def _finish_read(self, command: Command) -> None:
        for lba in range(command.lba, command.end):
            cached = self._unwritten(lba)
            command.pages.append(cached[0] if cached else self.medium.get(lba, 0))
        self.count["disk_cache_hits"] += command.fresh - command.lba
        self.count["disk_read_pages"] += command.end - command.fresh
        for segment in self.segments:
            if segment.first < command.end and command.lba < segment.end:
                self.uses += 1
                segment.used = self.uses
        self._finish(command)

    def _wait_for_first(self) -> None:
        assert self.stream
        self.busy = "read"
        self._count_up_to(self.readers[0].end)
        self.due = max(self.now, self.stream.passed(self.readers[0].end - 1))

    def _limit_for(self, end: int) -> int:
        ahead = self.cfg["disk-segment-size"] // PAGE if self.segment else 0
        return min(self.lbas, end + ahead)

    def _choose_segment(self, lba: int) -> Segment | None:
        if not self.segments:
            return None
        for segment in self.segments:
            if segment.first < segment.end == lba:
                return segment
        segment = min(self.segments, key=lambda s: s.used)
        self.uses += 1
        segment.first = segment.end = lba
        segment.used = self.uses
        return segment

    def _set_out(self, lba: int) -> None:
        self.stream = Stream(self, lba, self.arm, self.now)
        self.counted, self.read_up_to = 0, lba

    def _start_write(self, command: Command | None) -> None:
        self.busy, self.writer = "write", command
        if command is None:
            self._take_run()
        else:
            self.run = list(range(command.lba, command.end))
        self._set_out(self.run[0])
        self._count_up_to(self.run[-1] + 1)
        assert self.stream
        self.due = self.stream.passed(self.run[-1])

    def _start(self) -> bool:
        if self.busy or not (self.dirty or self.queue):
            return False
        self._look_ahead()
        self.stream = None
        urgent = self.room or self.flushes
        if self.dirty and (not self.queue or self.turns >= (1 if urgent else TURNS)):
            self.turns = 0
            self._start_write(None)
            return False
        looked_at = self.queue[: 1 if self.passed_over == TURNS else LOOKED_AT]

        def cost(command: Command) -> int:
            if command.op == "read":
                command.fresh = self._fresh(command)
                if command.fresh == command.end:
                    return 0
            lba = command.fresh if command.op == "read" else command.lba
            _, (_, move, wait, _) = self.go(self.arm, self.now, lba)
            return move + wait

        command = min(looked_at, key=cost)
        self.passed_over = 0 if command is self.queue[0] else self.passed_over + 1
        self.turns = self.turns + 1 if self.dirty else 0
        self.queue.remove(command)
        if command.op != "read":
            self._start_write(command)
            return False
        if command.fresh == command.end:
            self._finish_read(command)
            return True
        self.segment = self._choose_segment(command.fresh)
        self._set_out(command.fresh)
        self.limit = self._limit_for(command.end)
        self.readers.append(command)
        self._wait_for_first()
        return False

    def _enter_read(self, command: Command) -> None:
        self._look_ahead()
        command.fresh = self._fresh(command)
        if command.fresh == command.end:
            self._finish_read(command)
        elif (
            self.stream
            and self.busy != "write"
            and self.segment
            and not self.queue
            and not self.dirty
            and self.read_up_to <= command.fresh
            and command.end <= self.limit
        ):
            self.limit = max(self.limit, self._limit_for(command.end))
            self.readers.append(command)
            if not self.busy:
                self._wait_for_first()
        else:
            self.queue.append(command)

    def _caches(self, command: Command) -> bool:
        """Takes a write into the cache, if it has room."""
        slots = self.cfg["disk-write-cache"] // PAGE
        wanted = range(command.lba, command.end)
        had = [lba for lba in wanted if lba in self.dirty]
        if len(self.dirty) + len(self._run_of_cache()) + command.nlb - len(had) > slots:
            return False
        for lba in wanted:
            number = self.dirty[lba][1] if lba in self.dirty else self.writes
            self.dirty[lba] = command.tag + lba - command.lba, number
        self.writes += 1
        self.count["disk_overwrites"] += len(had)
        self._finish(command)
        return True

    def _run_of_cache(self) -> list[int]:
        """What is on its way from the cache to the medium, and has its room still."""
        return self.run if self.busy == "write" and self.writer is None else []

    def _enter(self, command: Command) -> None:
        if command.op == "read":
            self._enter_read(command)
        elif command.op == "trim":
            for lba in range(command.lba, command.end):
                self.dirty.pop(lba, None)
                self.writing.pop(lba, None)
                self.medium.pop(lba, None)
            self._finish(command)
        elif command.op in ("fua", "zeroes") or command.nlb > self.cfg["disk-write-cache"] // PAGE:
            self.queue.append(command)
        elif self.room or not self._caches(command):
            self.room.append(command)

    def _release(self) -> bool:
        for command in self.blocked:
            earlier = self.alive[: self.alive.index(command)]
            if not any(command.overlaps(other) for other in earlier):
                self.blocked.remove(command)
                self._enter(command)
                return True
        return False

    def _fill_room(self) -> bool:
        if self.room and self._caches(self.room[0]):
            del self.room[0]
            return True
        return False

    def _end_flush(self) -> bool:
        if not self.flushes:
            return False
        left = [*self.dirty.values(), *self.writing.values()]
        if any(number < self.flushes[0].before for _, number in left):
            return False
        self._finish(self.flushes.pop(0))
        return True

    def _go_on(self) -> None:
        steps: tuple[Callable[[], bool], ...] = (
            self._release,
            self._fill_room,
            self._end_flush,
            self._start,
        )
        while any(step() for step in steps):
            pass

    # Time

    def _end_write(self) -> None:
        command = self.writer
        for i, lba in enumerate(self.run):
            if command is None:
                if lba in self.writing:
                    self.medium[lba] = self.writing[lba][0]
            elif command.op == "zeroes":
                self.medium.pop(lba, None)
            else:
                self.medium[lba] = command.tag + i
        self.count["disk_write_pages"] += len(self.run)
        self.writing = {}
        assert self.stream
        self.arm = self.stream.arms[self.run[-1] - self.stream.first]
        self.stream, self.busy, self.due = None, "", None
        if command:
            for lba in self.run:
                self.dirty.pop(lba, None)
            self._finish(command)

    def _end_read(self) -> None:
        command = self.readers.pop(0)
        assert self.stream
        self.read_up_to = max(self.read_up_to, command.end)
        self.arm = self.stream.arms[self.read_up_to - 1 - self.stream.first]
        if self.segment and self.read_up_to > self.segment.end:
            self._extend(self.read_up_to)
        self._finish_read(command)
        if self.readers:
            self._wait_for_first()
        else:
            self.busy, self.due = "", None
            if not self.segment:
                self.stream = None

    def run_until(self, time: int) -> None:
        """What happens up to and including a time."""
        while self.due is not None and self.due <= time:
            self.now = self.due
            if self.busy == "write":
                self._end_write()
            else:
                self._end_read()
            self._go_on()
        self.now = max(self.now, time)

    def submit(self, time: int, command: Command) -> None:
        """A command comes."""
        self.run_until(time)
        if command.op == "flush":
            command.before = self.writes
            self.flushes.append(command)
        else:
            self.alive.append(command)
            self.blocked.append(command)
        self._go_on()
