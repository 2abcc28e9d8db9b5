# SPDX-License-Identifier: GPL-2.0-or-later
"""A die of the reference model: what it does, step by step, and how long that takes.

The rules are those of core/array/sched.c's header. A die has an array and, with cache=on, a second
register: while a page read is on its way out, or a program's status is asked for, that step is in
`register`; `preload` is a program whose data comes in while the array still programs the one
before.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from machine import Bus, Machine

if TYPE_CHECKING:
    from reference import Command, Zone

READ, PROGRAM, ERASE = "read", "program", "erase"
Tags = tuple[int, int]  # what a slot holds: tag of its data, tag of its OOB
BLANK: Tags = (0, 0)
PAGE_TYPES = {
    "slc": [""],
    "mlc": ["", "-msb"],
    "tlc": ["", "-csb", "-msb"],
    "qlc": ["", "-csb", "-msb", "-tsb"],
}


class Shape:
    """Geometry of a block, and the times of what is done to it."""

    def __init__(self, cfg: dict[str, int | str]) -> None:
        self.cfg = cfg
        self.planes = int(cfg.get("planes", 1))
        self.page_slots = int(cfg.get("page-size", 4096)) // 4096
        self.row = self.planes * self.page_slots
        self.types = PAGE_TYPES[str(cfg.get("cell", "slc"))]
        self.one_shot = cfg.get("one-shot", "off") == "on"
        self.unit = self.row * (len(self.types) if self.one_shot else 1)
        self.slots = int(cfg["pages"]) * self.row
        self.cache = cfg.get("cache", "off") == "on" and cfg["queue"] == "way"
        self.suspend = cfg.get("suspend", "off") == "on" and cfg["queue"] == "way"
        self.status = int(cfg.get("t-status", 0))
        self.t_suspend = int(cfg.get("t-suspend", 5000))
        self.suspend_reads = int(cfg.get("suspend-reads", 16))

    def _typed(self, name: str, row: int) -> int:
        own = int(self.cfg.get(name + self.types[row % len(self.types)], 0))
        return own or int(self.cfg[name])

    def command_time(self, step: "Step") -> int:
        """Bus time of the step's commands and addresses: one for each NAND page."""
        return step.nand_pages * int(self.cfg["t-cmd"])

    def transfer_time(self, step: "Step") -> int:
        """Bus time of its data."""
        return len(step.slots) * int(self.cfg["t-xfer"])

    def array_time(self, step: "Step") -> int:
        """Time in the array."""
        if step.kind == ERASE:
            return int(self.cfg["t-erase"])
        if step.kind == PROGRAM and self.one_shot:
            return int(self.cfg["t-prog"])
        name = "t-read" if step.kind == READ else "t-prog"
        return self._typed(name, step.slots[0] // self.row)

    def retries(self, step: "Step") -> int:
        """How often a read is repeated."""
        most = int(self.cfg.get("read-retries", 0))
        return most * step.op.block.erases // int(self.cfg.get("endurance", 3000))


@dataclass(eq=False)
class Block:
    """A good flash block."""

    number: int
    erases: int = 0
    pages: list[Tags] = field(default_factory=list)  # programmed slots
    owner: int | None = None  # zone of the used segment it belongs to
    old_owner: int | None = None  # zone of the invalid segment that it was last part of
    dirty: bool = False  # the mark in the file: what it holds is nobody's
    worn: bool = False  # wear levelling made it dirty, and is the cause of its erase
    # as it will be when all that is queued now is done:
    coming_erases: int = 0
    coming_pages: int = 0
    queued: int = 0  # operations on it that are queued or begun

    def needs_erase(self) -> bool:
        """Whether an erase is still to be queued before it can be used."""
        return self.coming_pages > 0


@dataclass(eq=False)
class Operation:
    """A run of slots of one block, or its erasure."""

    kind: str
    die: "Die"
    block: Block
    cause: str
    zone: "Zone | None" = None
    command: "Command | None" = None
    slots: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # of the slots in the command
    tags: list[Tags] = field(default_factory=list)  # to program
    causes: list[str] = field(default_factory=list)  # of the slots, if not all the same
    waiting: "list[Command]" = field(default_factory=list)  # they wait for it, too
    buffered: bool = False  # a unit out of the write buffer
    idle: bool = False
    age: int = 0  # operations queued before it, ever
    entered: int = 0
    issued: int = 0  # slots of the steps that have begun
    finished: bool = False  # its last step is done


@dataclass(eq=False)
class Step:
    """What a die does at once: slots of a row read, a unit programmed, a block erased."""

    op: Operation
    first: int  # index of its first slot in the operation
    slots: list[int]
    nand_pages: int
    started: int | None = None
    bus_time: int = 0
    retries: int = 0
    attempts: int = 0  # done
    waits: bool = False  # a program that was to be loaded ahead, and has the array now
    loaded: bool = False  # its data is in
    works: bool = False  # the array does it now
    array_end: int = 0
    held: bool = False  # out of the array, but the register is not free yet
    left: int = 0  # of the array's time, while suspended
    token: int = 0  # events of an earlier token are void

    @property
    def kind(self) -> str:
        """That of its operation."""
        return self.op.kind


class Owner(Protocol):
    """Who is told what a die has done."""

    machine: Machine
    shape: Shape
    counters: Counter[str]

    def busy(self, duration: int) -> None:
        """A die has worked for so long."""

    def step_done(self, step: Step) -> None:
        """The array has done it."""


class Die:
    """A way of a channel: its blocks and what it is doing."""

    def __init__(self, owner: Owner, bus: Bus, good_blocks: int) -> None:
        self.owner = owner
        self.bus = bus
        self.blocks = [Block(number) for number in range(good_blocks)]
        self.queue: deque[Operation] = deque()
        self.run: Operation | None = None  # begun, with steps left
        self.ahead: Operation | None = None  # a read that goes before a program, with steps left
        self.array: Step | None = None
        self.register: Step | None = None
        self.preload: Step | None = None
        self.suspended: Step | None = None
        self.suspending = False
        self.passed = 0  # reads that went before or interrupted the same program or erase
        self.counted_to = 0  # busy time is counted up to here
        self.queued = 0  # operations for it in whatever queue, until done
        self.quiet_since = 0  # end of its last operation, or a later reset
        self.alarm = False  # an event looks for work in the background
        self.move: Move | None = None
        self.move_op: Operation | None = None  # queued for a move, be it given up, and not done
        self.programmed = 0  # slots, but not by wear levelling
        # Whether blocks were taken, filled, erased or made dirty since levelling last found
        # nothing to do.
        self.look = True

    def idle(self) -> bool:
        """Nothing in any stage, nothing waits."""
        stages = (self.array, self.register, self.preload, self.suspended, self.run, self.ahead)
        return not any(stages) and not self.queue

    # -- what is next --------------------------------------------------------------------------

    def _eligible(self, op: Operation) -> bool:
        """A read that may go before programs: none of its block is before it, or begun."""
        if op.kind != READ:
            return False
        begun = [self.run] + [
            step.op
            for step in (self.array, self.register, self.preload, self.suspended)
            if step is not None
        ]
        for other in [*begun, *self.queue]:
            if other is op:
                return True
            if other is not None and other.kind != READ and other.block is op.block:
                return False
        raise AssertionError("it is in the queue")

    def _next(self) -> tuple[Operation | None, bool]:
        """The operation of the next step, and whether it goes before its turn."""
        shape = self.owner.shape
        if self.ahead:
            return self.ahead, True
        turn = self.run or (self.queue[0] if self.queue else None)
        others = self.suspended or (turn and turn.kind != READ)
        if shape.suspend and others and self.passed < shape.suspend_reads:
            for op in self.queue:
                if self._eligible(op):
                    return op, True
        return (None if self.suspended else turn), False

    def _take(self, op: Operation, before_its_turn: bool) -> Step:
        """The operation's next step; a read takes what it wants of one row at once."""
        shape = self.owner.shape
        if before_its_turn and op is not self.ahead:
            self.queue.remove(op)
            self.ahead = op
            self.passed += 1
        elif not before_its_turn and op is not self.run:
            assert self.queue[0] is op
            self.queue.popleft()
            self.run = op
        first = op.issued
        if op.kind == ERASE:
            step = Step(op, 0, [], shape.planes)
        else:
            if op.kind == READ:
                row = op.slots[first] // shape.row
                slots = [slot for slot in op.slots[first:] if slot // shape.row == row]
            else:
                slots = op.slots[first : first + shape.unit]
            pages = {slot // shape.page_slots for slot in slots}
            step = Step(op, first, slots, len(pages))
        op.issued += len(step.slots)
        if op.issued == len(op.slots):
            if before_its_turn:
                self.ahead = None
            else:
                self.run = None
        return step

    # -- doing it ------------------------------------------------------------------------------

    def wake(self) -> None:
        """Begins whatever can begin now."""
        shape, now = self.owner.shape, self.owner.machine.now
        if self.suspending:
            return
        if self.array is None and self.preload:
            self.array, self.preload = self.preload, None
            self.array.waits = True
            if self.array.loaded:
                self._array_begins(self.array)
            return
        if self.array is None:
            sent = self.register  # no overlap while something is suspended
            overlap = sent is None or (
                shape.cache and sent.kind == READ and not sent.retries and not self.suspended
            )
            op, before_its_turn = self._next() if overlap else (None, False)
            # What overlaps is the next of the run or the head of the queue.
            if sent and before_its_turn and op is not self.ahead:
                op = None
                overlap = False
            if op is not None and (sent is None or op.kind == READ):
                self.array = self._take(op, before_its_turn)
                self._begin(self.array)
            elif op is None and self.suspended and sent is None:
                self.array, self.suspended = self.suspended, None
                self.counted_to = now
                self.array.works = True
                self._array_ends_after(self.array, self.array.left)
                self.wake()
        elif shape.cache and self.array.kind == PROGRAM and self.array.works and not self.preload:
            op, before_its_turn = self._next()
            if op is not None and op.kind == PROGRAM and op.block is self.array.op.block:
                self.preload = self._take(op, before_its_turn)
                self._begin(self.preload)

    def maybe_suspend(self) -> None:
        """When a read was queued, or a program or an erase has begun: the array may stop."""
        shape, now, step = self.owner.shape, self.owner.machine.now, self.array
        if not shape.suspend or step is None or step.kind == READ:
            return
        # What is loaded ahead is in the register that a read would need.
        if not step.works or self.preload or self.passed >= shape.suspend_reads:
            return
        if step.array_end - now <= shape.t_suspend or not any(map(self._eligible, self.queue)):
            return
        self.owner.counters["suspends"] += 1
        step.token += 1
        step.left = step.array_end - now
        step.works = False
        self.suspended, self.array = step, None
        self.suspending = True
        self._count_busy(step, now + shape.t_suspend)
        self.owner.machine.at(now + shape.t_suspend, self._is_suspended)

    def _is_suspended(self) -> None:
        self.suspending = False
        self.wake()

    def _begin(self, step: Step) -> None:
        """Asks for the bus: command and data of a program in one tenure, else the command."""
        shape = self.owner.shape
        tenure = shape.command_time(step)
        if step.kind == PROGRAM:
            tenure += shape.transfer_time(step)
        self.bus.request(step.kind == PROGRAM, tenure, lambda: self._granted(step, tenure))

    def _granted(self, step: Step, tenure: int) -> None:
        now = self.owner.machine.now
        step.bus_time += tenure
        if step.started is None:
            step.started = now
            if step.kind == READ:
                step.retries = self.owner.shape.retries(step)
        if step is self.preload or step.waits:
            self.owner.machine.at(now + tenure, lambda: self._data_in(step))
            return
        self._array_ends_after(step, tenure + self.owner.shape.array_time(step))
        if step.kind != READ and (self.owner.shape.cache or self.owner.shape.suspend):
            self.owner.machine.at(now + tenure, lambda: self._array_has_begun(step))

    def _data_in(self, step: Step) -> None:
        """A program was loaded ahead; the array may still be at work on the one before."""
        step.loaded = True
        if self.array is step:
            self._array_begins(step)

    def _array_begins(self, step: Step) -> None:
        self._array_ends_after(step, self.owner.shape.array_time(step))
        self._array_has_begun(step)

    def _array_has_begun(self, step: Step) -> None:
        if self.array is not step:
            return  # it took no time and is done
        step.works = True
        self.maybe_suspend()
        self.wake()

    def _array_ends_after(self, step: Step, duration: int) -> None:
        machine, token = self.owner.machine, step.token
        step.array_end = machine.now + duration

        def end() -> None:
            if step.token == token:
                self._array_ended(step)

        machine.at(step.array_end, end)

    def _array_ended(self, step: Step) -> None:
        step.works = False
        if step.kind != READ and not self.owner.shape.status:
            self.array = None
            self._done(step)
        elif self.register is not None:
            step.held = True
        else:
            self._leave_array(step)

    def _leave_array(self, step: Step) -> None:
        """Into the register, from where the page goes out, or the status is asked for."""
        shape = self.owner.shape
        step.held = False
        self.array, self.register = None, step
        tenure = shape.transfer_time(step) if step.kind == READ else shape.status

        def granted() -> None:
            step.bus_time += tenure
            end = self.owner.machine.now + tenure
            self.owner.machine.at(end, lambda: self._register_free(step))

        self.bus.request(step.kind == READ, tenure, granted)
        self.wake()

    def _register_free(self, step: Step) -> None:
        self.register = None
        if step.attempts < step.retries:
            step.attempts += 1
            self.owner.counters["read_retries"] += step.nand_pages
            self.owner.counters["bus_busy_ns"] += step.bus_time
            step.bus_time = 0
            assert self.array is None, "a read with retries is not overlapped"
            self.array = step
            self._begin(step)
            return
        if self.array and self.array.held:
            self._leave_array(self.array)
        self._done(step)

    def _count_busy(self, step: Step, until: int) -> None:
        """The time since the step began, but no time twice."""
        assert step.started is not None
        self.owner.busy(until - max(step.started, self.counted_to))
        self.counted_to = until

    def _done(self, step: Step) -> None:
        self._count_busy(step, self.owner.machine.now)
        if step.kind != READ:
            self.passed = 0
        step.op.finished = step.first + len(step.slots) == len(step.op.slots)
        self.owner.step_done(step)
        self.wake()


@dataclass(eq=False)
class Move:
    """A block's content on its way to a more worn block."""

    source: Block
    target: Block
    page: int = 0  # next slot to copy
    loaded: list[Tags] = field(default_factory=list)  # read, not yet programmed
    since: int = 0  # Die.programmed when it began
    busy: int = 0  # slots programmed on a die that need not be idle
