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

    order of events         machine.Machine
    bus arbitration         machine.Bus
    steps of a die          die.Die
    die queues              Drive._start_work
    firmware, host's link   front.Front
    write buffer            buffer.Buffer, Drive._into_buffer, Drive._program_unit
    random write areas      buffer.Buffer, Drive._to_area, Drive._check_area, Drive._align_area
    choice of a block       Drive._choose
    idle erasure            Drive._idle_check, Drive._background
    wear levelling          Drive._begin_move, Drive._continue_move, Drive._abandon_move
    the same on busy dies   Drive._level_busy
    power cut, recovery     Drive.reopen, Drive._recover
"""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from buffer import Area, AreaEntry, Buffer, Entry, Slot
from die import BLANK, ERASE, PROGRAM, READ, Block, Die, Move, Operation, Shape, Step, Tags
from front import Front
from machine import Bus, Machine

MOVE_TARGET = -1  # in the place of a zone that owns a block
WRITES = ("write", "append", "zeroes")


@dataclass(eq=False)
class Command:
    """A command as the script gives it, and its outcome."""

    ident: int
    op: str
    lba: int
    nlb: int
    tag: int
    detached: bool = False
    fua: bool = False
    status: str = "ok"
    done_ns: int = -1
    pages: list[Tags] = field(default_factory=list)
    unwritten: int = 0
    refused: bool = False  # after the controller took it
    waits_for: int = 0  # operations (or earlier operations of the zone) not yet done
    progress: int = 0  # pages that were given a place, or are trimmed, in a page map
    whole: "Command | None" = None  # the trim that it is a step of
    held: bool = False  # by what is left of a trim
    seq: int = 0  # pages that were written before, of all writes


class Zone:
    """A zone: its segment and what waits for its operations."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.blocks: list[Block] | None = None  # one a lane while the segment is used
        self.old_blocks: list[Block] = []  # the same while it is invalid
        self.pointer = 0  # next slot to be submitted
        # With a write buffer: what was submitted, with its cause; and how much of it was taken.
        self.accepted: dict[int, tuple[Tags, str]] = {}
        self.taken = 0
        self.area: Area | None = None  # also one that is still to be committed
        self.safe = 0  # what of the buffer is safe ends here
        self.in_flight: set[int] = set()  # id() of operations submitted and not done
        self.barriers: list[tuple[set[int], Command]] = []


class Drive:
    """The drive. Addresses and counts in slots (pages of a logical block), times in ns."""

    def __init__(self, cfg: dict[str, int | str], good_blocks: list[int]) -> None:
        """A new drive; good_blocks: of each die, way by way (channel first)."""
        self.cfg = dict(cfg)
        self.channels, self.ways = int(cfg["channels"]), int(cfg["ways"])
        self.oob = int(cfg["oob"])
        all_dies = cfg["segment"] == "all"
        self.lanes = self.channels * (self.ways if all_dies else 1)
        self.shape = Shape(self.cfg)
        self.capacity = self.lanes * self.shape.slots
        self.zone_size = 1 << (self.capacity - 1).bit_length()
        zones = int(cfg["blocks"]) * (1 if all_dies else self.ways)
        self.zones = [Zone(number) for number in range(zones)]
        self.good_blocks = good_blocks
        self.counters: Counter[str] = Counter()
        self.longest_wait = 0
        self._power_up()
        self.dies = [
            Die(self, self.buses[index % self.channels], good)
            for index, good in enumerate(good_blocks)
        ]

    # -- power ---------------------------------------------------------------------------------

    def _power_up(self) -> None:
        self.machine = Machine()
        self.shape = Shape(self.cfg)
        self.buses = [Bus(self.machine, channel) for channel in range(self.channels)]
        self.front = Front(self.machine, self.cfg, self._hand_over, self._complete)
        size = int(self.cfg.get("write-buffer", 0)) // 4096
        self.buffer: Buffer | None = None
        self.units: list[Operation] = []  # full units on their way from the buffer
        self.area_size = int(self.cfg.get("zrwa-size", 4096)) // 4096
        self.area_flush = int(self.cfg.get("zrwa-flush", 4096)) // 4096
        if size or self.shape.unit > 1:
            dies = self.channels * self.ways
            size -= int(self.cfg.get("zrwa", 0)) * self.area_size
            self.buffer = Buffer(
                self.shape.unit,
                max(size, self.shape.unit * dies),
                self._lane,
                self._program_unit,
                self._taken,
                self.area_size,
                self.area_flush,
                self._count,
            )
        self.global_queue: deque[Operation] = deque()
        self.completed: list[Command] = []
        self.commands_in_flight = 0
        self.operations = 0

    def reopen(self, cfg: dict[str, int | str]) -> None:
        """Closes and opens the drive, with settings that may differ in what is not geometry.

        What is queued or running is lost; pages, marks and counters stay. Time begins at 0.
        """
        self.cfg = dict(cfg)
        begun = self.buffer.begun if self.buffer else {}
        self._power_up()
        if self.buffer:
            self.buffer.begun = begun
            for slot in (slot for slots in begun.values() for slot in slots):
                slot.cause = "host"  # the file does not say why they were written
        old = self.dies
        self.dies = []
        for index, before in enumerate(old):
            die = Die(self, self.buses[index % self.channels], 0)
            die.blocks = before.blocks
            self.dies.append(die)
        self._recover()
        for die in self.dies:
            self._watch(die)

    def _count(self, name: str) -> None:
        self.counters[name] += 1

    def _align_area(self, zone: Zone) -> None:
        """What survives of an area; the rest of a part that was being committed follows."""
        area = zone.area
        if area is None:
            return
        assert self.buffer
        area.start, area.open = zone.taken, True
        while zone.taken % self.area_flush:
            lane = self._lane(zone.taken)
            slot = self.buffer.committed(area, Command(0, "commit", 0, 0, 0))
            zone.accepted[zone.taken] = slot.tags, slot.cause
            part = self.buffer.begun.setdefault((zone.number, lane), [])
            part.append(slot)
            if len(part) == self.shape.unit:
                del self.buffer.begun[zone.number, lane]
            area.pages.pop(zone.taken, None)
            zone.taken += 1
            area.start += 1
        if zone.taken == self.capacity or not (zone.taken or area.pages):
            zone.area = None
        area.end = max(area.pages, default=-1) + 1

    def _recover(self) -> None:
        """Closes gaps; a used segment without any page becomes free.

        A block marked dirty counts as empty. In a used segment with pages it is erased now.
        """
        for zone in self.zones:
            zone.in_flight, zone.barriers = set(), []
            self._align_area(zone)
            if zone.blocks is None:
                continue
            if self.buffer:
                self._recover_buffered(zone)
                continue
            counts = [0 if block.dirty else len(block.pages) for block in zone.blocks]
            zone.pointer = max(
                self._offset(lane, count - 1) + 1 if count else 0
                for lane, count in enumerate(counts)
            )
            if zone.pointer == 0:
                for block in zone.blocks:
                    block.owner = None
                zone.blocks = None
                zone.old_blocks = []
                continue
            for lane, block in enumerate(zone.blocks):
                self._erase_now(block)
                missing = self._lane_pages(zone.pointer, lane) - len(block.pages)
                block.pages += [BLANK] * missing
                self.counters["prog_pad"] += missing
                self.counters["nand_programs"] += missing
        for die in self.dies:
            for block in die.blocks:
                if block.owner == MOVE_TARGET:
                    block.owner = None
                if block.owner is None:
                    block.dirty = bool(block.pages)
                    block.worn = block.worn and block.dirty
                block.coming_erases = block.erases
                block.coming_pages = len(block.pages)
                block.queued = 0

    def _erase_now(self, block: Block) -> None:
        """A block that still was to be erased when the power was cut."""
        if block.dirty:
            self.counters["erase_wear" if block.worn else "erase_host"] += 1
            block.dirty = block.worn = False
            block.pages = []
            block.erases += 1
            self.counters["erase_on_demand"] += 1

    def _recover_buffered(self, zone: Zone) -> None:
        """Whole units of the buffer are programmed now, the rest is in the buffer again."""
        assert zone.blocks
        zone.pointer = zone.taken
        zone.accepted = {o: kept for o, kept in zone.accepted.items() if o < zone.taken}
        if zone.taken == 0:
            for block in zone.blocks:
                block.owner = None
            zone.blocks = None
            zone.old_blocks = []
            return
        unit = self.shape.unit
        for lane, block in enumerate(zone.blocks):
            self._erase_now(block)
            for slot in range(len(block.pages), self._lane_pages(zone.taken, lane) // unit * unit):
                tags, _ = zone.accepted[self._offset(lane, slot)]
                block.pages.append(tags)
                self.counters["prog_host"] += 1  # the file does not say why they were written
                if slot % self.shape.page_slots == 0:
                    self.counters["nand_programs"] += 1

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
        status = self._check_range(cmd)
        if status == "ok" and not self.front.there:
            status = self._check_order(cmd)
        if status != "ok":
            return status
        self.commands_in_flight += 1
        if self.front.there:
            self.front.submit(cmd)
        else:
            self._carry_out(cmd)
        self.machine.give_buses()
        return "ok"

    def _hand_over(self, cmd: Command) -> None:
        """The controller lets a command begin: what it refuses now, it refuses as its status."""
        cmd.status = self._check_order(cmd)
        if cmd.status == "ok":
            self._carry_out(cmd)
        else:
            cmd.refused = True
            self.front.done(cmd)

    def _carry_out(self, cmd: Command) -> None:
        cmd.waits_for = 1  # this function itself
        getattr(self, f"_{cmd.op}")(cmd)
        self._start_work()
        self._part_done(cmd)

    def _check_range(self, cmd: Command) -> str:
        size = self.zone_size * len(self.zones)
        if cmd.op == "flush":
            return "ok"
        if cmd.op in ("reset", "finish", "zopen"):
            return "ok" if cmd.lba < size else "out of range"
        if cmd.lba + cmd.nlb > size:
            return "out of range"
        if cmd.op in (*WRITES, "commit") and self._locate(cmd.lba)[1] + cmd.nlb > self.capacity:
            return "out of range"
        return "ok"

    def _check_order(self, cmd: Command) -> str:
        if cmd.op in ("zopen", "commit"):
            return self._check_area(cmd)
        if cmd.op not in WRITES:
            return "ok"
        zone, offset = self._locate(cmd.lba)
        if zone.area and zone.area.open:
            end = zone.pointer + 2 * self.area_size
            there = zone.pointer <= offset and offset + cmd.nlb <= end
            return "ok" if there and cmd.op != "append" else "not in order"
        return "ok" if not zone.area and offset == zone.pointer else "not in order"

    def _check_area(self, cmd: Command) -> str:
        zone, offset = self._locate(cmd.lba)
        has = zone.area is not None and zone.area.open
        if cmd.op == "commit":
            whole = cmd.nlb % self.area_flush == 0 and cmd.nlb <= self.area_size
            return "ok" if has and whole and offset == zone.pointer else "not in order"
        used = sum(other.area is not None for other in self.zones)
        if has:
            return "ok"
        if used >= int(self.cfg.get("zrwa", 0)) or zone.area:
            return "no random write area"
        ends = zone.pointer == self.capacity
        return "no random write area" if ends or zone.pointer % self.area_flush else "ok"

    def _locate(self, lba: int) -> tuple[Zone, int]:
        return self.zones[lba // self.zone_size], lba % self.zone_size

    def _read(self, cmd: Command) -> None:
        cmd.pages = [BLANK] * cmd.nlb
        wanted: list[tuple[Zone, int, int]] = []
        for place in range(cmd.nlb):
            zone, offset = self._locate(cmd.lba + place)
            if zone.area and offset >= zone.area.start:
                self._read_area(zone, offset, place, cmd)
            elif offset >= zone.pointer:
                cmd.unwritten += 1
            elif self.buffer and not self._is_programmed(zone, offset):
                cmd.pages[place] = zone.accepted[offset][0]
                self.counters["buffer_reads"] += 1
            else:
                wanted.append((zone, offset, place))
        self._queue_runs(READ, wanted, cmd)

    def _read_area(self, zone: Zone, offset: int, place: int, cmd: Command) -> None:
        assert self.buffer
        assert zone.area
        tags = zone.area.pages.get(offset)
        for entry in self.buffer.line:
            if isinstance(entry, AreaEntry) and entry.zone is zone:
                for at, waiting in entry.writes:
                    if at == offset:
                        tags = waiting
        if tags is None:
            cmd.unwritten += 1
        else:
            cmd.pages[place] = tags
            self.counters["buffer_reads"] += 1

    def _is_programmed(self, zone: Zone, offset: int) -> bool:
        assert zone.blocks
        block = zone.blocks[self._lane(offset)]
        # Until an erase that is queued is done, the block holds what an old owner wrote.
        return block.coming_erases == block.erases and self._slot(offset) < len(block.pages)

    def _write(self, cmd: Command) -> None:
        zone, offset = self._locate(cmd.lba)
        tags: list[Tags] = []
        for place in range(cmd.nlb):
            tag = cmd.tag + place if cmd.op != "zeroes" else 0
            tags.append((tag, tag if self.oob else 0))
        if zone.area:
            beyond = offset + cmd.nlb - zone.pointer - self.area_size
            parts = max(0, -(-beyond // self.area_flush))
            self._to_area(zone, cmd, deque(enumerate(tags, offset)), parts * self.area_flush)
            return
        self._open_segment(zone)
        if self.buffer:
            self._into_buffer(zone, cmd, offset, tags, "host")
        else:
            wanted = [(zone, offset + place, place) for place in range(cmd.nlb)]
            self._queue_runs(PROGRAM, wanted, cmd, tags)
        zone.pointer += cmd.nlb

    _append = _write
    _zeroes = _write

    def _zopen(self, cmd: Command) -> None:
        zone, _ = self._locate(cmd.lba)
        if not zone.area:
            zone.area = Area(zone.pointer)

    def _commit(self, cmd: Command) -> None:
        self._to_area(self._locate(cmd.lba)[0], cmd, deque(), cmd.nlb)

    def _to_area(
        self, zone: Zone, cmd: Command, writes: deque[tuple[int, Tags]], commit: int
    ) -> None:
        """A command to the zone's area, by which so many pages will be committed."""
        area = zone.area
        assert self.buffer
        assert area
        if commit:
            self._open_segment(zone)
        zone.pointer += commit
        entry = AreaEntry(cmd, zone, area=area, writes=writes, owed=0 if writes else commit)
        if writes:
            area.end = max(area.end, writes[-1][0] + 1)
        if zone.pointer == self.capacity or cmd.op == "finish":
            area.open = False
        cmd.waits_for += 1
        zone.in_flight.add(id(entry))
        self.buffer.write(entry)
        if cmd.op in WRITES and self._writes_through(cmd):
            self._flush(cmd)

    def _reset(self, cmd: Command) -> None:
        zone, _ = self._locate(cmd.lba)
        self._barrier(zone, cmd)
        zone.area = None
        if self.buffer:
            for dropped in self.buffer.drop(zone):
                if dropped.command.op in WRITES:
                    dropped.command.status = "not in order"
                self._taken(dropped)
            self.buffer.work()
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
        end = zone.pointer
        if zone.area and zone.area.open:
            end = max(end, zone.area.end)
        if self.cfg["finish"] == "pad":
            end = self.capacity
        elif self.buffer and end % self.shape.unit:
            end += self.shape.unit - end % self.shape.unit
        if zone.area and zone.area.open:
            self._to_area(zone, cmd, deque(), end - zone.pointer)
            return
        if end == zone.pointer:
            return
        self._open_segment(zone)
        blank = [BLANK] * (end - zone.pointer)
        if self.buffer:
            self._into_buffer(zone, cmd, zone.pointer, blank, "pad")
        else:
            wanted = [(zone, offset, 0) for offset in range(zone.pointer, end)]
            self._queue_runs(PROGRAM, wanted, cmd, blank, "pad")
        zone.pointer = end

    def _flush(self, cmd: Command) -> None:
        """Unless the buffer is protected: waits until what came before is taken, then safe."""
        if self.cfg.get("plp", "on") == "on":
            return
        if self.buffer:
            cmd.waits_for += 1
            self.buffer.write(Entry(cmd, None))

    def _wait_until_safe(self, cmd: Command) -> None:
        """For full units that a power cut would lose; part-filled ones are put away at once."""
        assert self.buffer
        for unit in self.units:
            unit.waiting.append(cmd)
            cmd.waits_for += 1
        for number, _ in self.buffer.begun:
            self._put_away(self.zones[number])

    def format(self, oob: int, now: int) -> str:
        """Format NVM. Events up to now come first."""
        self.machine.run(now)
        if self.commands_in_flight:
            return "not in order"
        if oob not in (0, 16, 64, 128):
            return "out of range"
        for zone in self.zones:
            zone.area = None
            if self.buffer:
                self.buffer.drop(zone)
            if zone.blocks is not None:
                self._release(zone)
        self.oob = oob
        self.counters["formats"] += 1
        return "ok"

    def _part_done(self, cmd: Command) -> None:
        cmd.waits_for -= 1
        if cmd.waits_for:
            return
        if self.front.there:
            self.front.done(cmd)
        else:
            self._complete(cmd)

    def _complete(self, cmd: Command) -> None:
        self.commands_in_flight -= 1
        cmd.done_ns = self.machine.now
        count = self.counters
        pages = cmd.nlb if cmd.status == "ok" else 0
        if cmd.refused:
            pass  # it did nothing
        elif cmd.op == "read":
            count["host_read_cmds"] += 1
            count["host_read_pages"] += pages
            count["unwritten_reads"] += cmd.unwritten
        elif cmd.op in WRITES:
            count["host_write_cmds"] += 1
            count["host_write_pages"] += pages
        elif cmd.op not in ("zopen", "commit"):
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

    def _lane(self, offset: int) -> int:
        """The lane of a zone's slot: a unit goes to a lane, the next one to the next."""
        return offset // self.shape.unit % self.lanes

    def _slot(self, offset: int) -> int:
        """Where in its lane's block a zone's slot is."""
        unit = self.shape.unit
        return offset // unit // self.lanes * unit + offset % unit

    def _offset(self, lane: int, slot: int) -> int:
        """The reverse of _lane and _slot."""
        unit = self.shape.unit
        return (slot // unit * self.lanes + lane) * unit + slot % unit

    def _lane_pages(self, pages: int, lane: int) -> int:
        """How many of a zone's first slots are in a lane."""
        return sum(self._lane(offset) == lane for offset in range(pages))

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
        zone.accepted = {}
        zone.taken = zone.safe = 0

    def _barrier(self, zone: Zone, cmd: Command) -> None:
        """The command waits for the operations submitted to its zone so far."""
        if zone.in_flight:
            cmd.waits_for += 1
            zone.barriers.append((set(zone.in_flight), cmd))

    # -- operations ----------------------------------------------------------------------------

    def _queue_runs(
        self,
        kind: str,
        wanted: Iterable[tuple[Zone, int, int]],
        cmd: Command,
        tags: list[Tags] | None = None,
        cause: str = "host",
    ) -> None:
        """One operation for each run of slots in a block, or for each step: see _splits."""
        runs: list[Operation] = []
        latest: dict[int, Operation] = {}
        for index, (zone, offset, place) in enumerate(wanted):
            assert zone.blocks is not None
            lane, slot = self._lane(offset), self._slot(offset)
            block = zone.blocks[lane]
            run = latest.get(id(block))
            if run is None or run.slots[-1] + 1 != slot or self._splits(run.slots[-1], slot):
                run = Operation(kind, self._die(zone, lane), block, cause, zone, cmd)
                latest[id(block)] = run
                runs.append(run)
            run.slots.append(slot)
            run.places.append(place)
            if tags is not None:
                run.tags.append(tags[index])
        for run in runs:
            self._enqueue(run)

    def _splits(self, before: int, slot: int) -> bool:
        """Whether the slot begins an operation.

        In the one queue, and with a write buffer, which knows rows of units, each step is one.
        """
        row = self.shape.row
        steps = self.cfg["queue"] == "global" or self.buffer is not None
        return steps and before // row != slot // row

    # -- write buffer --------------------------------------------------------------------------

    def _into_buffer(
        self, zone: Zone, cmd: Command, offset: int, tags: list[Tags], cause: str
    ) -> None:
        assert self.buffer
        slots = deque(Slot(offset + n, tag, cause, cmd) for n, tag in enumerate(tags))
        for slot in slots:
            zone.accepted[slot.offset] = slot.tags, cause
        cmd.waits_for += 1
        entry = Entry(cmd, zone, slots)
        zone.in_flight.add(id(entry))
        self.buffer.write(entry)

    def _writes_through(self, cmd: Command) -> bool:
        """Whether it is done when it is safe, not as soon as it is in the buffer."""
        if self.cfg.get("ack", "program") == "program":
            return True
        return cmd.fua and self.cfg.get("plp", "on") == "off"

    def _put_away(self, zone: Zone) -> None:
        """Part-filled units go where they are safe."""
        assert self.buffer
        for (number, _), slots in self.buffer.begun.items():
            if number == zone.number:
                zone.safe = max(zone.safe, slots[-1].offset + 1)

    def _taken(self, entry: Entry) -> None:
        if entry.zone is None:
            self._wait_until_safe(entry.command)
        elif self._writes_through(entry.command):
            self._put_away(entry.zone)
        if isinstance(entry, AreaEntry) and entry.zone:
            self._let_go(entry.zone)
        self._part_done(entry.command)
        if entry.zone:
            self._leave(entry.zone, id(entry))

    def _let_go(self, zone: Zone) -> None:
        """An area that the zone has lost is another's when all of it is taken."""
        assert self.buffer
        waits = any(
            isinstance(entry, AreaEntry) and entry.area is zone.area for entry in self.buffer.line
        )
        if zone.area and not zone.area.open and not waits:
            zone.area = None

    def _program_unit(self, zone: Zone, lane: int, slots: list[Slot]) -> None:
        """A unit is full: it is queued to its die."""
        assert zone.blocks and self.buffer
        first = self._slot(slots[0].offset)
        run = Operation(PROGRAM, self._die(zone, lane), zone.blocks[lane], "host", zone)
        run.slots = list(range(first, first + len(slots)))
        run.tags = [slot.tags for slot in slots]
        run.causes = [slot.cause for slot in slots]
        run.buffered = True
        self.units.append(run)
        # A command may have to wait for the units that it has filled.
        cmd = slots[-1].command
        if cmd.op == "finish" or self._writes_through(cmd):
            cmd.waits_for += 1
            run.waiting.append(cmd)
        # So has a command that waits for the write that fills it.
        for before, _ in zone.barriers:
            if id(self.buffer.line[0]) in before:
                before.add(id(run))
        self._enqueue(run)
        if self.cfg["queue"] == "global":
            self._start_work()
        else:
            run.die.wake()  # before the die whose program has made room goes on

    # -- the dies' queues ----------------------------------------------------------------------

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

    def _enqueue(self, op: Operation, first: bool = False) -> None:
        """The operation waits for its die, behind all others or before them."""
        if op.kind == PROGRAM:
            assert op.slots[0] == op.block.coming_pages, "programs must come in order"
            op.block.coming_pages += len(op.slots)
        elif op.kind == ERASE:
            op.block.coming_pages = 0
            op.block.coming_erases += 1
        op.entered = self.machine.now
        op.age = self.operations
        self.operations += 1
        op.die.queued += 1
        op.block.queued += 1
        if op.command:
            op.command.waits_for += 1
        if op.zone:
            op.zone.in_flight.add(id(op))
        if first and self.cfg["queue"] == "global":
            self.global_queue.appendleft(op)
            self._start_work()
        elif first:
            op.die.queue.appendleft(op)
            op.die.wake()
            if op.kind == READ:
                op.die.maybe_suspend()
        elif self.cfg["queue"] == "global":
            self.global_queue.append(op)
        else:
            op.die.queue.append(op)
            if op.kind == READ:
                op.die.maybe_suspend()

    def _start_work(self) -> None:
        """Gives idle dies the head of their queue.

        With queue=global the one head waits until its die is free, and all others behind it.
        """
        if self.cfg["queue"] == "global":
            while self.global_queue and self.global_queue[0].die.idle():
                op = self.global_queue.popleft()
                op.die.queue.append(op)
                op.die.wake()
        else:
            # A command's operations go to their buses in page order.
            waiting = [die for die in self.dies if die.queue]
            for die in sorted(waiting, key=lambda die: die.queue[0].age):
                die.wake()

    def busy(self, duration: int) -> None:
        """A die has worked for so long."""
        self.counters["die_busy_ns"] += duration

    def step_done(self, step: Step) -> None:
        """The array has done it: data moves here."""
        op = step.op
        block, die, count = op.block, op.die, self.counters
        for index, slot in enumerate(step.slots, step.first):
            if op.kind == PROGRAM:
                assert slot == len(block.pages), "the array refuses"
                block.pages.append(op.tags[index])
                count[f"prog_{op.causes[index] if op.causes else op.cause}"] += 1
            else:
                op.tags.append(block.pages[slot])
                if op.command:
                    op.command.pages[op.places[index]] = block.pages[slot]
                count[f"read_{op.cause}"] += 1
        if op.kind == PROGRAM:
            die.look = die.look or len(block.pages) == self.shape.slots
            die.programmed += len(step.slots) if op.cause != "wear" else 0
            count["nand_programs"] += step.nand_pages
        elif op.kind == READ:
            count["nand_reads"] += step.nand_pages
        else:
            block.pages = []
            block.erases += 1
            die.look = True
            if not self._stale_programs(block):
                block.dirty = block.worn = False
            count[f"erase_{op.cause}"] += 1
            count["erase_idle" if op.idle else "erase_on_demand"] += 1
        count["bus_busy_ns"] += step.bus_time
        assert step.started is not None
        waited = step.started - op.entered
        count["queue_wait_ns"] += waited
        self.longest_wait = max(self.longest_wait, waited)
        if op.finished:
            self._operation_done(op)

    def _operation_done(self, op: Operation) -> None:
        die, now = op.die, self.machine.now
        die.queued -= 1
        op.block.queued -= 1
        if op.zone:
            self._leave(op.zone, id(op))
        if op.command:
            self._part_done(op.command)
        for cmd in op.waiting:
            self._part_done(cmd)
        if self.buffer and op.buffered:
            self.units.remove(op)
            self.buffer.programmed()
        busy = op.kind == PROGRAM
        if die.move_op is op:
            die.move_op = None
            busy = not op.idle
            if die.move and op.kind != ERASE:
                self._move_went_on(die, op)
        if busy:
            self._level_busy(die)
        self._start_work()
        # Once begun, work in the background goes on until the host comes.
        if die.queued == 0 and not (op.idle and self._background(die)):
            die.quiet_since = now
            self._watch(die)

    def _stale_programs(self, block: Block) -> bool:
        """Whether an erase of the block is still queued: programs before it are an old owner's."""
        return block.coming_erases > block.erases or (block.owner is None and block.needs_erase())

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
        self._continue_move(die, die.move, idle=True)
        self._start_work()
        return True

    def _level_busy(self, die: Die) -> None:
        """After a program on it that levelling did not make idle: begins a move, or goes on.

        Of what others have programmed since the move began, levelling may program a share.
        """
        share = int(self.cfg.get("wl-share", 50))
        if not share or die.move_op:
            return
        if not die.move:
            if sum(block.owner is None for block in die.blocks) < 2:
                return
            self._begin_move(die)
        move = die.move
        if move is None:
            return
        others = die.programmed - move.since
        affordable = (move.busy + self.shape.unit) * 100 <= others * share
        if affordable or self._to_be_erased(move):
            self._continue_move(die, move, idle=False)

    def _to_be_erased(self, move: Move) -> bool:
        return move.target.needs_erase() and move.page == 0 and not move.loaded

    def _begin_move(self, die: Die) -> None:
        """Least worn filled block to most worn free one; ties: the lowest number."""
        if not self._worn_unevenly(die):
            return
        die.look = False
        full = [
            block
            for block in die.blocks
            if block.owner is not None
            and len(block.pages) == self.shape.slots
            and block.coming_erases == block.erases
        ]
        free = [
            block
            for block in die.blocks
            if block.owner is None and (block.coming_erases == block.erases or block.needs_erase())
        ]
        if not full or not free:
            return

        def wear(block: Block) -> int:
            return block.coming_erases + block.needs_erase()

        source = min(full, key=lambda block: (block.erases, block.number))
        target = max(free, key=lambda block: (wear(block), -block.number))
        worn_more = wear(target) - source.erases
        if worn_more > int(self.cfg["wl-threshold"]):
            target.owner = MOVE_TARGET
            target.old_owner = None
            die.move = Move(source, target, since=die.programmed)

    def _continue_move(self, die: Die, move: Move, idle: bool) -> None:
        """On a die that is not idle, each operation goes before all that waits.

        Only the erase of a target for which there are operations waits for its turn.
        """
        first = not idle
        if self._to_be_erased(move):
            move.target.dirty = move.target.worn = True
            op = Operation(ERASE, die, move.target, "wear", idle=idle)
            first = first and not move.target.queued
        elif len(move.loaded) < self.shape.unit:
            at = move.page + len(move.loaded)
            slots = list(range(at, at + self.shape.row))
            op = Operation(READ, die, move.source, "wear", slots=slots, idle=idle)
        else:
            slots = list(range(move.page, move.page + self.shape.unit))
            op = Operation(PROGRAM, die, move.target, "wear", slots=slots, idle=idle)
            op.tags = move.loaded
            move.busy += 0 if idle else self.shape.unit
        die.move_op = op
        self._enqueue(op, first)

    def _move_went_on(self, die: Die, op: Operation) -> None:
        """A read or a program of it is done; after the last one the map is switched."""
        move = die.move
        assert move
        if op.kind == READ:
            move.loaded += op.tags
            return
        move.loaded = []
        move.page += self.shape.unit
        if move.page < self.shape.slots:
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
            highest = zone.taken if self.cfg.get("plp", "on") == "on" else zone.safe
            for lane, block in enumerate(zone.blocks or []):
                pages = 0 if block.dirty else len(block.pages)
                if pages:
                    highest = max(highest, self._offset(lane, pages - 1) + 1)
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
            "flash_bytes": len(blocks) * self.shape.slots * 4096,
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
