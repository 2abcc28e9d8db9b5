# SPDX-License-Identifier: GPL-2.0-or-later
"""A reference model of the drive.

It was written from the drive's description, before its code was read. Where the description
leaves a rule open and the core's answer is as good as another, the core's was then taken over:
who goes first at one instant (Bus, Drive._watch, Die.look), when sums are counted
(Drive.operation_done), and the order of refusals (Drive.format). So the comparison cannot show
those to be wrong, only to change.

It is brute force on purpose: a list of blocks a die, a search through all of them to allocate,
a heap of (time, sequence, function) as the only machinery. It is right if it can be checked by
eye. It knows the RSD personality.

Rules that the interface leaves open are each in one place:

    order of events         Machine
    bus arbitration         Bus
    die queues              Drive._start_work
    choice of a block       Drive._choose
    idle erasure            Drive._idle_check, Drive._background
    wear levelling          Drive._begin_move, Drive._continue_move, Drive._abandon_move
    power cut, recovery     Drive.reopen, Drive._recover
"""

import heapq
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

READ, PROGRAM, ERASE = "read", "program", "erase"
Tags = tuple[int, int]  # what a page holds: tag of its data, tag of its OOB
BLANK: Tags = (0, 0)
MOVE_TARGET = -1  # in the place of a zone that owns a block


class Machine:
    """Events in order of time; at equal times, in the order in which they were scheduled.

    An instant has two steps, repeated until nothing is left at that instant: all events, then
    all buses that are wanted (by number) are given away. So a bus is given away only when
    everything that happens at that time was seen.
    """

    def __init__(self) -> None:
        self.now = 0
        self.wanted: dict[int, Callable[[], None]] = {}
        self._sequence = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []

    def at(self, when: int, action: Callable[[], None]) -> None:
        """Schedules an action."""
        self._sequence += 1
        heapq.heappush(self._heap, (when, self._sequence, action))

    def run(self, until: int) -> None:
        """Carries out the events up to and including a time, and moves to it."""
        while self._heap and self._heap[0][0] <= until:
            self.now = self._heap[0][0]
            while self._heap and self._heap[0][0] == self.now:
                heapq.heappop(self._heap)[2]()
            self.give_buses()
        self.now = max(self.now, until)

    def give_buses(self) -> None:
        """The second step of an instant."""
        wanted, self.wanted = self.wanted, {}
        for channel in sorted(wanted):
            wanted[channel]()


@dataclass
class Command:
    """A command as the script gives it, and its outcome."""

    ident: int
    op: str
    lba: int
    nlb: int
    tag: int
    detached: bool = False
    done_ns: int = -1
    pages: list[Tags] = field(default_factory=list)
    unwritten: int = 0
    waits_for: int = 0  # operations (or earlier operations of the zone) not yet done


@dataclass(eq=False)
class Block:
    """A good flash block."""

    number: int
    erases: int = 0
    pages: list[Tags] = field(default_factory=list)
    owner: int | None = None  # zone of the used segment it belongs to
    old_owner: int | None = None  # zone of the invalid segment that it was last part of
    dirty: bool = False  # the mark in the file: what it holds is nobody's
    worn: bool = False  # wear levelling made it dirty, and is the cause of its erase
    # as it will be when all that is queued now is done:
    coming_erases: int = 0
    coming_pages: int = 0

    def needs_erase(self) -> bool:
        """Whether an erase is still to be queued before it can be used."""
        return self.coming_pages > 0


@dataclass(eq=False)
class Operation:
    """One page or block operation of a die."""

    kind: str
    die: "Die"
    block: Block
    cause: str
    zone: "Zone | None" = None
    command: Command | None = None
    page: int = 0
    slot: int = 0  # index into the command's pages
    tags: Tags = BLANK
    age: int = 0  # operations queued before it, ever
    entered: int = 0
    started: int = 0
    bus_time: int = 0
    sending: bool = False  # a read whose page is on its way out
    idle: bool = False


class Bus:
    """A channel: first come first served in two classes, commands without data first.

    It is given away once for each instant; tenures that take no time leave it free for the next.
    """

    def __init__(self, drive: "Drive", channel: int) -> None:
        self.drive = drive
        self.channel = channel
        self.queues: tuple[deque[Operation], deque[Operation]] = (deque(), deque())
        self.free_at = 0

    def request(self, op: Operation) -> None:
        """An operation wants the bus."""
        with_data = op.kind == PROGRAM or op.sending
        self.queues[with_data].append(op)
        self._want()

    def _want(self) -> None:
        self.drive.machine.wanted[self.channel] = self._give

    def _give(self) -> None:
        machine, cfg = self.drive.machine, self.drive.cfg
        while any(self.queues) and self.free_at <= machine.now:
            op = (self.queues[0] or self.queues[1]).popleft()
            if op.sending:
                tenure, array = cfg["t-xfer"], 0
            else:
                op.started = machine.now
                tenure, array = {
                    READ: (cfg["t-cmd"], cfg["t-read"]),
                    PROGRAM: (cfg["t-cmd"] + cfg["t-xfer"], cfg["t-prog"]),
                    ERASE: (cfg["t-cmd"], cfg["t-erase"]),
                }[op.kind]
            op.bus_time += tenure
            self.free_at = machine.now + tenure
            machine.at(self.free_at + array, lambda op=op: self._phase_end(op))
        if any(self.queues):
            machine.at(self.free_at, self._want)

    def _phase_end(self, op: Operation) -> None:
        if op.kind == READ and not op.sending:
            op.sending = True
            self.request(op)
        else:
            self.drive.operation_done(op)


@dataclass(eq=False)
class Move:
    """A block's content on its way to a more worn block."""

    source: Block
    target: Block
    page: int = 0  # next to copy
    loaded: Tags | None = None  # read, not yet programmed


class Die:
    """A way of a channel: its blocks and what it is doing."""

    def __init__(self, bus: Bus, good_blocks: int) -> None:
        self.bus = bus
        self.blocks = [Block(number) for number in range(good_blocks)]
        self.queue: deque[Operation] = deque()
        self.current: Operation | None = None
        self.queued = 0  # operations for it in whatever queue
        self.quiet_since = 0  # end of its last operation, or a later reset
        self.alarm = False  # an event looks for work in the background
        self.move: Move | None = None
        # Whether blocks were taken, filled, erased or made dirty since levelling last found
        # nothing to do.
        self.look = True


class Zone:
    """A zone: its segment and what waits for its operations."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.blocks: list[Block] | None = None  # one a lane while the segment is used
        self.old_blocks: list[Block] = []  # the same while it is invalid
        self.pointer = 0  # next page to be submitted
        self.in_flight: set[int] = set()  # id() of operations submitted and not done
        self.barriers: list[tuple[set[int], Command]] = []


class Drive:
    """The drive. Addresses and counts in pages, times in ns."""

    def __init__(self, cfg: dict[str, int | str], good_blocks: list[int]) -> None:
        """A new drive; good_blocks: of each die, way by way (channel first)."""
        self.cfg = dict(cfg)
        self.channels, self.ways = int(cfg["channels"]), int(cfg["ways"])
        self.oob = int(cfg["oob"])
        all_dies = cfg["segment"] == "all"
        self.lanes = self.channels * (self.ways if all_dies else 1)
        self.capacity = self.lanes * int(cfg["pages"])
        self.zone_size = 1 << (self.capacity - 1).bit_length()
        zones = int(cfg["blocks"]) * (1 if all_dies else self.ways)
        self.zones = [Zone(number) for number in range(zones)]
        self.good_blocks = good_blocks
        self.counters: Counter[str] = Counter()
        self.longest_wait = 0
        self._power_up()
        self.dies = [
            Die(self.buses[index % self.channels], good) for index, good in enumerate(good_blocks)
        ]

    # -- power ---------------------------------------------------------------------------------

    def _power_up(self) -> None:
        self.machine = Machine()
        self.buses = [Bus(self, channel) for channel in range(self.channels)]
        self.global_queue: deque[Operation] = deque()
        self.completed: list[Command] = []
        self.commands_in_flight = 0
        self.operations = 0

    def reopen(self, cfg: dict[str, int | str]) -> None:
        """Closes and opens the drive, with settings that may differ in what is not geometry.

        What is queued or running is lost; pages, marks and counters stay. Time begins at 0.
        """
        self.cfg = dict(cfg)
        self._power_up()
        old = self.dies
        self.dies = []
        for index, before in enumerate(old):
            die = Die(self.buses[index % self.channels], 0)
            die.blocks = before.blocks
            self.dies.append(die)
        self._recover()
        for die in self.dies:
            self._watch(die)

    def _recover(self) -> None:
        """Closes gaps; a used segment without any page becomes free.

        A block marked dirty counts as empty. In a used segment with pages it is erased now.
        """
        for zone in self.zones:
            zone.in_flight, zone.barriers = set(), []
            if zone.blocks is None:
                continue
            counts = [0 if block.dirty else len(block.pages) for block in zone.blocks]
            zone.pointer = max(
                (count - 1) * self.lanes + lane + 1 if count else 0
                for lane, count in enumerate(counts)
            )
            if zone.pointer == 0:
                for block in zone.blocks:
                    block.owner = None
                zone.blocks = None
                zone.old_blocks = []
                continue
            for lane, block in enumerate(zone.blocks):
                if block.dirty:
                    self.counters["erase_wear" if block.worn else "erase_host"] += 1
                    block.dirty = block.worn = False
                    block.pages = []
                    block.erases += 1
                    self.counters["erase_on_demand"] += 1
                missing = self._lane_pages(zone.pointer, lane) - len(block.pages)
                block.pages += [BLANK] * missing
                self.counters["prog_pad"] += missing
        for die in self.dies:
            for block in die.blocks:
                if block.owner == MOVE_TARGET:
                    block.owner = None
                if block.owner is None:
                    block.dirty = bool(block.pages)
                    block.worn = block.worn and block.dirty
                block.coming_erases = block.erases
                block.coming_pages = len(block.pages)

    # -- time ----------------------------------------------------------------------------------

    def advance(self, now: int) -> list[Command]:
        """All events up to and including now; the commands completed, in order."""
        self.machine.run(now)
        done, self.completed = self.completed, []
        return done

    # -- commands ------------------------------------------------------------------------------

    def submit(self, cmd: Command, now: int) -> str:
        """Queues a command; the status of rsd_submit() in words. Events up to now come first."""
        self.machine.run(now)
        status = self._check(cmd)
        if status != "ok":
            return status
        self.commands_in_flight += 1
        cmd.waits_for = 1  # this function itself
        getattr(self, f"_{cmd.op}")(cmd)
        self._start_work()
        self.machine.give_buses()
        self._part_done(cmd)
        return "ok"

    def _check(self, cmd: Command) -> str:
        size = self.zone_size * len(self.zones)
        if cmd.op == "flush":
            return "ok"
        if cmd.op in ("reset", "finish"):
            return "ok" if cmd.lba < size else "out of range"
        if cmd.lba + cmd.nlb > size:
            return "out of range"
        if cmd.op in ("write", "zeroes"):
            zone, offset = self._locate(cmd.lba)
            if offset + cmd.nlb > self.capacity:
                return "out of range"
            if offset != zone.pointer:
                return "not in order"
        return "ok"

    def _locate(self, lba: int) -> tuple[Zone, int]:
        return self.zones[lba // self.zone_size], lba % self.zone_size

    def _read(self, cmd: Command) -> None:
        cmd.pages = [BLANK] * cmd.nlb
        for slot in range(cmd.nlb):
            zone, offset = self._locate(cmd.lba + slot)
            if offset < zone.pointer:
                self._page_operation(READ, zone, offset, "host", cmd, slot)
            else:
                cmd.unwritten += 1

    def _write(self, cmd: Command) -> None:
        zone, offset = self._locate(cmd.lba)
        self._open_segment(zone)
        for slot in range(cmd.nlb):
            tag = cmd.tag + slot if cmd.op == "write" else 0
            tags = (tag, tag if self.oob else 0)
            self._page_operation(PROGRAM, zone, offset + slot, "host", cmd, slot, tags)
        zone.pointer += cmd.nlb

    _zeroes = _write

    def _reset(self, cmd: Command) -> None:
        zone, _ = self._locate(cmd.lba)
        self._barrier(zone, cmd)
        if zone.blocks is not None:
            self._release(zone)
        if self.cfg["reset"] == "erase":
            # also those that an earlier reset=mark or a format has left
            for lane, block in enumerate(zone.old_blocks):
                if block.old_owner == zone.number and block.needs_erase():
                    die = self._die(zone, lane)
                    self._enqueue_erase(die, block, zone, cmd)

    def _finish(self, cmd: Command) -> None:
        zone, _ = self._locate(cmd.lba)
        self._barrier(zone, cmd)
        if self.cfg["finish"] == "pad" and zone.pointer < self.capacity:
            self._open_segment(zone)
            for offset in range(zone.pointer, self.capacity):
                self._page_operation(PROGRAM, zone, offset, "pad", cmd)
            zone.pointer = self.capacity

    def _flush(self, cmd: Command) -> None:
        """Nothing to wait for: a write completes when it is programmed."""

    def format(self, oob: int, now: int) -> str:
        """Format NVM. Events up to now come first."""
        self.machine.run(now)
        if self.commands_in_flight:
            return "not in order"
        if oob not in (0, 16, 64, 128):
            return "out of range"
        for zone in self.zones:
            if zone.blocks is not None:
                self._release(zone)
        self.oob = oob
        self.counters["formats"] += 1
        return "ok"

    def _part_done(self, cmd: Command) -> None:
        cmd.waits_for -= 1
        if cmd.waits_for:
            return
        self.commands_in_flight -= 1
        cmd.done_ns = self.machine.now
        count = self.counters
        if cmd.op == "read":
            count["host_read_cmds"] += 1
            count["host_read_pages"] += cmd.nlb
            count["unwritten_reads"] += cmd.unwritten
        elif cmd.op in ("write", "zeroes"):
            count["host_write_cmds"] += 1
            count["host_write_pages"] += cmd.nlb
        else:
            count[
                {"reset": "zone_resets", "finish": "zone_finishes", "flush": "flush_cmds"}[cmd.op]
            ] += 1
        if not cmd.detached:
            self.completed.append(cmd)

    # -- segments ------------------------------------------------------------------------------

    def _die(self, zone: Zone, lane: int) -> Die:
        """Lane n is channel n mod channels of way n / channels, or of the zone's own way."""
        way = lane // self.channels if self.cfg["segment"] == "all" else zone.number % self.ways
        return self.dies[way * self.channels + lane % self.channels]

    def _lane_pages(self, pages: int, lane: int) -> int:
        """How many of a zone's first pages are in a lane."""
        return (pages - lane + self.lanes - 1) // self.lanes if pages > lane else 0

    def _open_segment(self, zone: Zone) -> None:
        """The first write: a block in every lane, erases queued before any program."""
        if zone.blocks is not None:
            return
        zone.blocks = []
        for lane in range(self.lanes):
            die = self._die(zone, lane)
            block = self._choose(die)
            die.look = True
            block.owner = zone.number
            block.old_owner = None
            zone.blocks.append(block)
            if block.needs_erase():
                # No command waits for it as such: a reset before the lane's first program
                # does not.
                self._enqueue_erase(die, block)

    def _choose(self, die: Die) -> Block:
        """Least worn; an erase still needed counts; ties: already erased, then lowest number."""
        if die.move and all(block.owner is not None for block in die.blocks):
            self._abandon_move(die)
        return min(
            (block for block in die.blocks if block.owner is None),
            key=lambda block: (
                block.coming_erases + block.needs_erase(),
                block.needs_erase() or block.coming_erases > block.erases,
                block.number,
            ),
        )

    def _release(self, zone: Zone) -> None:
        """Used becomes invalid: the blocks are free, and dirty if anything was programmed."""
        assert zone.blocks is not None
        for lane, block in enumerate(zone.blocks):
            die = self._die(zone, lane)
            if die.move and die.move.source is block:
                self._abandon_move(die)
            block.owner = None
            block.old_owner = zone.number
            if block.needs_erase():
                block.dirty, block.worn = True, False
                die.look = True
                if die.queued == 0:
                    die.quiet_since = self.machine.now
                    self._watch(die)
        zone.old_blocks = zone.blocks
        zone.blocks = None
        zone.pointer = 0

    def _barrier(self, zone: Zone, cmd: Command) -> None:
        """The command waits for the operations submitted to its zone so far."""
        if zone.in_flight:
            cmd.waits_for += 1
            zone.barriers.append((set(zone.in_flight), cmd))

    # -- operations ----------------------------------------------------------------------------

    def _page_operation(
        self,
        kind: str,
        zone: Zone,
        offset: int,
        cause: str,
        cmd: Command,
        slot: int = 0,
        tags: Tags = BLANK,
    ) -> None:
        assert zone.blocks is not None
        lane, page = offset % self.lanes, offset // self.lanes
        block = zone.blocks[lane]
        die = self._die(zone, lane)
        self._enqueue(Operation(kind, die, block, cause, zone, cmd, page, slot, tags))

    def _enqueue_erase(
        self,
        die: Die,
        block: Block,
        zone: Zone | None = None,
        cmd: Command | None = None,
        idle: bool = False,
    ) -> None:
        cause = "wear" if block.worn else "host"
        self._enqueue(Operation(ERASE, die, block, cause, zone, cmd, idle=idle))

    def _enqueue(self, op: Operation) -> None:
        if op.kind == PROGRAM:
            assert op.page == op.block.coming_pages, "programs must come in order"
            op.block.coming_pages += 1
        elif op.kind == ERASE:
            op.block.coming_pages = 0
            op.block.coming_erases += 1
        op.entered = self.machine.now
        op.age = self.operations
        self.operations += 1
        op.die.queued += 1
        if op.command:
            op.command.waits_for += 1
        if op.zone:
            op.zone.in_flight.add(id(op))
        queue = self.global_queue if self.cfg["queue"] == "global" else op.die.queue
        queue.append(op)

    def _start_work(self) -> None:
        """Gives idle dies the head of their queue.

        With queue=global the one head waits until its die is free, and all others behind it.
        """
        if self.cfg["queue"] == "global":
            while self.global_queue and self.global_queue[0].die.current is None:
                self._start(self.global_queue.popleft())
        else:
            # A command's operations go to their buses in page order.
            heads = [die.queue[0] for die in self.dies if die.queue and die.current is None]
            for op in sorted(heads, key=lambda op: op.age):
                self._start(op.die.queue.popleft())

    def _start(self, op: Operation) -> None:
        op.die.current = op
        op.die.bus.request(op)

    def operation_done(self, op: Operation) -> None:
        """The array has done it: data moves here."""
        block, die, now = op.block, op.die, self.machine.now
        count = self.counters
        if op.kind == PROGRAM:
            assert op.page == len(block.pages), "the array refuses"
            block.pages.append(op.tags)
            die.look = die.look or len(block.pages) == self.cfg["pages"]
            count[f"prog_{op.cause}"] += 1
        elif op.kind == READ:
            if op.command:
                op.command.pages[op.slot] = block.pages[op.page]
            op.tags = block.pages[op.page]
            count[f"read_{op.cause}"] += 1
        else:
            block.pages = []
            block.erases += 1
            die.look = True
            if not self._stale_programs(block):
                block.dirty = block.worn = False
            count[f"erase_{op.cause}"] += 1
            count["erase_idle" if op.idle else "erase_on_demand"] += 1
        count["die_busy_ns"] += now - op.started
        count["bus_busy_ns"] += op.bus_time
        waited = op.started - op.entered
        count["queue_wait_ns"] += waited
        self.longest_wait = max(self.longest_wait, waited)
        die.current = None
        die.queued -= 1
        if op.zone:
            self._leave(op.zone, id(op))
        if op.command:
            self._part_done(op.command)
        if die.move and op.idle and op.kind != ERASE:
            self._move_went_on(die, op)
        self._start_work()
        # Once begun, work in the background goes on until the host comes.
        if die.queued == 0 and not (op.idle and self._background(die)):
            die.quiet_since = now
            self._watch(die)

    def _stale_programs(self, block: Block) -> bool:
        """Whether an erase of the block is still queued: programs before it are an old owner's."""
        return block.coming_erases > block.erases or (
            block.owner is None and block.coming_pages > 0
        )

    def _leave(self, zone: Zone, key: int) -> None:
        zone.in_flight.remove(key)
        for before, cmd in zone.barriers:
            if key in before:
                before.remove(key)
                if not before:
                    self._part_done(cmd)
        zone.barriers = [(before, cmd) for before, cmd in zone.barriers if before]

    # -- background ----------------------------------------------------------------------------

    def _watch(self, die: Die) -> None:
        """Sets the die's one alarm, if there is work that it could find to do.

        It is not moved when the die works or is reset meanwhile: an alarm that comes too early
        sets itself again. (This decides the order of dies that wake up at one instant.)
        """
        if not die.alarm and (die.move or self._obsolete(die) or self._worn_unevenly(die)):
            die.alarm = True
            when = die.quiet_since + int(self.cfg["idle-erase"])
            self.machine.at(when, lambda: self._idle_check(die))

    def _idle_check(self, die: Die) -> None:
        """Idle long enough, counted from the last operation or the last reset."""
        die.alarm = False
        if die.queued:
            return
        if self.machine.now < die.quiet_since + int(self.cfg["idle-erase"]):
            self._watch(die)
        else:
            self._background(die)

    def _obsolete(self, die: Die) -> Block | None:
        """The block that idle erasure would erase: the lowest."""
        if self.cfg["idle-erase"]:
            for block in die.blocks:
                if block.owner is None and block.needs_erase():
                    return block
        return None

    def _worn_unevenly(self, die: Die) -> bool:
        threshold = int(self.cfg["wl-threshold"])
        wear = [block.erases for block in die.blocks]
        return die.look and threshold > 0 and max(wear) - min(wear) > threshold

    def _background(self, die: Die) -> bool:
        """Queues the next operation in the background, if there is one to do.

        It takes its place in the queue as any other (with queue=global, in the one queue).
        A move begun goes on; else the lowest obsolete block is erased; else a move may begin.
        """
        obsolete = self._obsolete(die)
        if not die.move and obsolete:
            self._enqueue_erase(die, obsolete, idle=True)
            self._start_work()
            return True
        if not die.move:
            self._begin_move(die)
        if not die.move:
            return False
        self._continue_move(die, die.move)
        self._start_work()
        return True

    def _begin_move(self, die: Die) -> None:
        """Least worn filled block to most worn free one; ties: the lowest number."""
        if not self._worn_unevenly(die):
            return
        die.look = False
        full = [
            block
            for block in die.blocks
            if block.owner is not None and len(block.pages) == self.cfg["pages"]
        ]
        free = [block for block in die.blocks if block.owner is None]
        if not full or not free:
            return
        source = min(full, key=lambda block: (block.erases, block.number))
        target = max(free, key=lambda block: (block.erases + block.needs_erase(), -block.number))
        worn_more = target.erases + target.needs_erase() - source.erases
        if worn_more > int(self.cfg["wl-threshold"]):
            target.owner = MOVE_TARGET
            target.old_owner = None
            die.move = Move(source, target)

    def _continue_move(self, die: Die, move: Move) -> None:
        if move.target.needs_erase() and move.page == 0 and move.loaded is None:
            move.target.dirty = move.target.worn = True
            self._enqueue_erase(die, move.target, idle=True)
        elif move.loaded is None:
            op = Operation(READ, die, move.source, "wear", page=move.page, idle=True)
            self._enqueue(op)
        else:
            op = Operation(PROGRAM, die, move.target, "wear", page=move.page, idle=True)
            op.tags = move.loaded
            self._enqueue(op)

    def _move_went_on(self, die: Die, op: Operation) -> None:
        """A read or a program of it is done; after the last one the map is switched."""
        move = die.move
        assert move
        if op.kind == READ:
            move.loaded = op.tags
            return
        move.loaded = None
        move.page += 1
        if move.page < int(self.cfg["pages"]):
            return
        source, target = move.source, move.target
        assert source.owner is not None
        blocks = self.zones[source.owner].blocks
        assert blocks
        blocks[blocks.index(source)] = target
        target.owner, source.owner = source.owner, None
        source.dirty = source.worn = die.look = True
        die.move = None
        self.counters["wear_moves"] += 1

    def _abandon_move(self, die: Die) -> None:
        """The target is free again, and dirty if a program of it was queued."""
        assert die.move
        target = die.move.target
        target.owner = None
        if target.coming_pages:
            target.dirty = target.worn = die.look = True
        die.move = None

    # -- what is shown -------------------------------------------------------------------------

    def written(self) -> list[int]:
        """Of each zone, the pages below its highest programmed page, that one included."""
        result = []
        for zone in self.zones:
            highest = 0
            for lane, block in enumerate(zone.blocks or []):
                pages = 0 if block.dirty else len(block.pages)
                if pages:
                    highest = max(highest, (pages - 1) * self.lanes + lane + 1)
            result.append(highest)
        return result

    def all_counters(self) -> dict[str, int]:
        """The counters of the log page, except ram_bytes and endurance."""
        blocks = [block for die in self.dies for block in die.blocks]
        used = sum(block.owner is not None for block in blocks)
        dirty = sum(
            block.owner is None and (block.dirty or block.coming_erases > block.erases)
            for block in blocks
        )
        cfg = self.cfg
        per_way = int(cfg["blocks"]) + int(cfg["spare-blocks"])
        total = per_way * len(self.dies)
        shown = dict(self.counters)
        shown |= {
            "queue_wait_max_ns": self.longest_wait,
            "map_bytes": 4 * int(cfg["blocks"]) * len(self.dies),
            "zones": len(self.zones),
            "capacity_bytes": len(self.zones) * self.capacity * 4096,
            "page_bytes": 4096,
            "oob_bytes": self.oob,
            "blocks_total": total,
            "blocks_bad": total - len(blocks),
            "blocks_used": used,
            "blocks_dirty": dirty,
            "blocks_erased": len(blocks) - used - dirty,
            "spares_total": int(cfg["spare-blocks"]) * len(self.dies),
            "spares_left": sum(max(0, good - int(cfg["blocks"])) for good in self.good_blocks),
            "wear_min": min(block.erases for block in blocks),
            "wear_max": max(block.erases for block in blocks),
            "wear_sum": sum(block.erases for block in blocks),
        }
        return shown
