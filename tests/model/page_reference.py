# SPDX-License-Identifier: GPL-2.0-or-later
"""A reference model of a drive with a page map (ftl=page): which NAND operations a command makes
of itself, and when each of them, and so the command, is done.

It has the dies, buses and controller of reference.py, and the rules of the header of
core/ftl/page, in another shape: there are no maps and no lists of blocks. A logical
page is where its last Page is, what a block holds is counted page by page, and a victim is
found by looking at every block.
What goes first at one instant is as in reference.py the core's answer.

The write buffer is page_buffer.PageBuffer. Not here: blocks that wear out.

    pages given away     PageDrive._next_block, _stripe_is_short, _give
    copies               Frontier.for_copies, PageDrive._room_for_host
    choice of victims    PageDrive._choose, _better
    when to collect      PageDrive._collect
    a victim's pages     PageDrive._advance
    levelling            PageDrive._begin_levelling
    filler of units      PageDrive._fill, _end_copying, _something_happens
    power cut, recovery  PageDrive.reopen
    large trims          PageDrive._arrive, _step, _step_done
"""

from collections import Counter, deque
from dataclasses import dataclass, field

from die import BLANK, ERASE, PROGRAM, READ, Block, Die, Operation, Shape, Step, Tags
from front import Front
from machine import Bus, Machine
from page_buffer import Entry, PageBuffer, Unit
from reference import Command

Config = dict[str, int | str]
COPIES = 8  # of a victim, at a time; two rows at least
FILLER = -1  # in the place of an LBA
GRANULE = 256  # the host's pages are a multiple
FREE, OPEN, FULL, VICTIM = "free", "open", "full", "victim"


@dataclass(eq=False)
class Page:
    """A flash page that was given away."""

    block: "FlashBlock"
    index: int
    lba: int
    seq: int  # of two pages of an LBA the higher is newer
    tags: Tags
    replaces: "Page | None"  # until it is programmed, that one is needed, too
    copy: bool = False
    taken: bool = False  # by the write buffer
    programmed: bool = False
    needed: bool = True


@dataclass(eq=False)
class FlashBlock(Block):
    """A good flash block."""

    die: int = 0
    state: str = FREE
    given: list[Page] = field(default_factory=list)
    stamp: int = 0  # pages written when it changed last
    joined: int = 0  # the full blocks' order

    def valid(self) -> int:
        """Pages for the sake of which it must not be erased."""
        return sum(page.needed for page in self.given)

    def least_worn(self) -> tuple[int, int]:
        """The key of the choice of a free block."""
        return self.erases, self.number


@dataclass(eq=False)
class Victim:
    """What a die collects, or levels."""

    block: FlashBlock
    cause: str
    idle: bool
    to: int  # frontier that its pages go to
    owed: int  # pages there that are kept for it
    left: list[Page]  # to be looked at
    copying: int = 0
    erasing: bool = False


@dataclass(eq=False)
class Worn:
    """What levelling fills."""

    block: FlashBlock
    room: int  # pages; 0 for good when it is full


class Open:
    """A place for the block that is being filled."""

    def __init__(self) -> None:
        self.block: FlashBlock | None = None

    def left(self, slots: int) -> int:
        """Pages to give away."""
        return slots - len(self.block.given) if self.block else 0


class Frontier:
    """Gives pages away: those of one block after the other, each of the next of its dies.

    Copies have a block of their own (gc-frontiers=own), or that of the host's pages.
    """

    def __init__(self, dies: list[int], low: int, *, own: bool) -> None:
        self.dies, self.low = dies, low
        self.for_host = Open()
        self.for_copies = Open() if own else self.for_host
        self.turn = 0  # index in dies

    def open_places(self) -> set[Open]:
        """One or two."""
        return {self.for_host, self.for_copies}


class PageDrive:
    """The drive. Its interface is that of reference.Drive, without zones."""

    trim_step = 65536  # pages that a trim deals with at a time

    def __init__(self, cfg: Config, good_blocks: list[int]) -> None:
        self.cfg = dict(cfg)
        self.oob = int(cfg["oob"])
        self.slots = Shape(cfg).slots
        self.good_blocks = good_blocks
        self.map_bytes = 4 * int(cfg["blocks"]) * len(good_blocks) * self.slots
        good = sum(good_blocks) * self.slots
        self.lbas = good * 100 // (100 + int(cfg["over-provision"])) // GRANULE * GRANULE
        self.blocks = [
            [FlashBlock(number, die=die) for number in range(good)]
            for die, good in enumerate(good_blocks)
        ]
        self.counters: Counter[str] = Counter()
        self.longest_wait = 0
        self.seq = 0
        self.where: dict[int, Page] = {}
        self.trimmed: set[int] = set()  # as the file says
        self._power_up()

    # -- power ---------------------------------------------------------------------------------

    def _power_up(self) -> None:
        cfg = self.cfg
        self.machine = Machine()
        self.shape = Shape(cfg)
        channels = int(cfg["channels"])
        buses = [Bus(self.machine, channel) for channel in range(channels)]
        self.dies = [Die(self, buses[n % channels], 0) for n in range(len(self.good_blocks))]
        self.front = Front(self.machine, cfg, self._arrive, self._complete)
        self.trims: list[Command] = []  # large ones, and what they hold, in their order
        self.free: deque[Command] = deque()  # held no more
        self.freeing = False
        self.victims: list[Victim | None] = [None] * len(self.dies)
        self.worn: list[Worn | None] = [None] * len(self.dies)
        self.levelled = [0] * len(self.dies)  # Die.programmed when each last levelled
        count = int(cfg["frontiers"]) or len(self.dies)
        self.own = cfg["gc-frontiers"] == "own"
        self.frontiers = []
        # pages of a frontier that the host does not get, and free blocks below which it collects
        unit = self.shape.unit
        self.reserve = self.slots + (unit if unit > 1 else 0)
        self.least_low = 1 + (
            -(-self.reserve // self.slots) if self.own else self.reserve // self.slots
        )
        for first in range(count):
            mine = list(range(first, len(self.dies), count))
            good = sum(self.good_blocks[die] for die in mine)
            low = max(self.least_low, -(-good * int(cfg["gc-trigger"]) // 100))
            self.frontiers.append(Frontier(mine, low, own=self.own))
        self.buffer: PageBuffer | None = None
        if unit > 1 or int(cfg.get("write-buffer", 0)):
            self.buffer = PageBuffer(self, cfg, unit, len(self.dies))
        self.no_room = False  # a write waits for free pages
        self.going = False  # commands that wait are gone on with, or will be
        self.turn = 0
        self.line: deque[Command] = deque()  # commands that wait
        self.global_queue: deque[Operation] = deque()
        self.writes: list[Command] = []  # begun and not done
        self.completed: list[Command] = []
        self.commands_in_flight = 0
        self.own_operations = 0  # in flight, all but the host's reads
        self.joins = 0

    def reopen(self, cfg: Config) -> None:
        """Closes and opens the drive. Of each LBA the newest page counts that was programmed."""
        self.cfg = dict(cfg)
        self.seq = 0
        self.where = {}
        blocks = [block for blocks in self.blocks for block in blocks]
        for block in blocks:
            self._keep(block)
            block.stamp = max((max(page.seq, 0) for page in block.given), default=0)
            block.state = FULL if block.given else FREE
            for page in block.given:
                page.needed, page.replaces = False, None
                if page.lba == FILLER:
                    continue
                self.seq = max(self.seq, page.seq + 1)
                newest = self.where.get(page.lba)
                if page.lba not in self.trimmed and (newest is None or newest.seq < page.seq):
                    self.where[page.lba] = page
        for page in self.where.values():
            page.needed = True
        self._power_up()
        for frontier in self.frontiers:
            self._go_on_with_begun(frontier)
        for block in sorted(blocks, key=lambda block: block.stamp):
            if block.state == FULL:
                self._join(block)
        for die in range(len(self.dies)):
            self._quiet(die)

    def _keep(self, block: FlashBlock) -> None:
        """What is left of a block, the power having failed: also what a protected buffer has of it,
        which is programmed now, all of it as the host's, with filler for what a unit lacks."""
        kept = self.buffer is not None and self.buffer.protected
        block.given = [page for page in block.given if page.programmed or (kept and page.taken)]
        saved = [page for page in block.given if not page.programmed]
        while saved and len(block.given) % self.shape.unit:
            block.given.append(self._filler(block))
            self.counters["prog_pad"] += 1
        for page in block.given:
            page.programmed = True
        programmed = -(-len(saved) // self.shape.unit) * self.shape.unit
        self.counters["prog_host"] += len(saved)
        self.counters["nand_programs"] += programmed // self.shape.page_slots

    def _filler(self, block: FlashBlock) -> Page:
        return Page(block, len(block.given), FILLER, -1, BLANK, None, needed=False)

    def _go_on_with_begun(self, frontier: Frontier) -> None:
        """Of the partly filled blocks those with most room: one for the host, one for copies.

        A block is one of copies if its first page is one. Without a free block the copies get
        the one that has more room, whatever it was.
        """
        mine = [block for die in frontier.dies for block in self.blocks[die]]
        begun = [block for block in mine if 0 < len(block.given) < self.slots]
        host, copies = frontier.for_host, frontier.for_copies
        for place in frontier.open_places():
            wanted = (
                [b for b in begun if b.given[0].copy == (place is copies)] if self.own else begun
            )
            place.block = min(wanted, key=lambda block: len(block.given), default=None)
        if all(block.given for block in mine) and host.left(self.slots) > copies.left(self.slots):
            host.block, copies.block = copies.block, host.block
        for place in frontier.open_places():
            if place.block:
                place.block.state = OPEN

    # -- commands ------------------------------------------------------------------------------

    def advance(self, now: int) -> list[Command]:
        """All events up to and including now; the commands completed, in order."""
        self.machine.run(now)
        done, self.completed = self.completed, []
        return done

    def submit(self, cmd: Command, now: int) -> str:
        """Queues a command; the status of rsd_submit() in words. Events up to now come first."""
        self.machine.run(now)
        if cmd.op != "flush" and not 0 < cmd.nlb <= self.lbas - cmd.lba:
            return "out of range"
        self.commands_in_flight += 1
        if self.front.there:
            self.front.submit(cmd)
        else:
            self._arrive(cmd)
        self.machine.give_buses()
        return "ok"

    def format(self, oob: int, now: int) -> str:
        """Format NVM. Events up to now come first."""
        self.machine.run(now)
        if self.commands_in_flight:
            return "not in order"
        if oob not in (0, 16, 64):
            return "out of range"
        self._trim(0, self.lbas)
        self.machine.give_buses()
        self.oob = oob
        self.counters["formats"] += 1
        return "ok"

    def _arrive(self, cmd: Command) -> None:
        """The processor has dealt with a command, or with a step of a trim."""
        if cmd.whole:
            cmd.whole.progress += cmd.nlb
            self._begin(cmd)
        elif self._is_held(cmd, self.trims):
            cmd.held = True
            self.trims.append(cmd)
        else:
            self._let_on(cmd)

    def _is_held(self, cmd: Command, by: list[Command]) -> bool:
        """Does it overlap what is left of one of these, that came before?"""
        return any(
            cmd.lba < other.lba + other.nlb
            and other.lba + other.progress < cmd.lba + cmd.nlb
            and not (cmd.op == other.op == "read")
            for other in by
        )

    def _let_on(self, cmd: Command) -> None:
        """Nothing holds a command."""
        if cmd.op not in ("trim", "zeroes") or cmd.nlb <= self.trim_step:
            self._begin(cmd)
            return
        if cmd not in self.trims:
            self.trims.append(cmd)
        step = Command(-1, cmd.op, cmd.lba, self.trim_step, 0, whole=cmd)
        cmd.progress = step.nlb
        self._begin(step)

    def _step_done(self, step: Command, cmd: Command) -> None:
        """The next one follows, or the trim is over, and what it held goes on in its order."""
        left = cmd.nlb - cmd.progress
        if left:
            nlb = min(left, self.trim_step)
            self.front.step(Command(-1, cmd.op, cmd.lba + cmd.progress, nlb, 0, whole=cmd))
            return
        self.trims.remove(cmd)
        self._leave(cmd)
        still: list[Command] = []
        for other in self.trims:
            if other.held and not self._is_held(other, still):
                other.held = False
                self.free.append(other)
            if other.held or other.op in ("trim", "zeroes") and other.nlb > self.trim_step:
                still.append(other)
        self.trims = still
        if self.freeing:
            return
        self.freeing = True
        while self.free:
            self._let_on(self.free.popleft())
        self.freeing = False

    def _begin(self, cmd: Command) -> None:
        cmd.waits_for = 1  # this function itself
        cmd.seq = self.seq
        if cmd.op == "read":
            cmd.pages = [BLANK] * cmd.nlb
        if cmd.op == "write":
            self.writes.append(cmd)
        if cmd.op == "flush":
            if self.buffer and not self.buffer.protected:
                cmd.waits_for += 1
                self.buffer.come(Entry([], command=cmd))
        else:
            self.going = True
            waits = self._must_wait(cmd) or not self._go_on(cmd)
            if waits:
                cmd.waits_for += 1
                self.line.append(cmd)
                self._something_happens()
            self.going = False
            if waits:
                self._resume()
        if cmd.op == "write":
            self.seq += cmd.nlb
        self.part_done(cmd)

    def _must_wait(self, cmd: Command) -> bool:
        """Writes and trims keep their order among those that wait; a read may pass others."""
        if cmd.op != "read":
            return bool(self.line)
        return any(other.op != "read" and overlap(other, cmd) for other in self.line)

    def _go_on(self, cmd: Command) -> bool:
        """Does what can be done of a command; False: it has to wait."""
        if cmd.op in ("trim", "zeroes"):
            if any(other.progress and overlap(other, cmd) for other in self.writes):
                return False
            self._trim(cmd.lba, cmd.nlb)
        elif cmd.op == "read":
            self._read(cmd)
        else:
            while cmd.progress < cmd.nlb:
                if not self._write_page(cmd):
                    self.no_room = True
                    return False
        return True

    def _busy(self) -> bool:
        return self.own_operations > 0 or (self.buffer is not None and self.buffer.busy())

    def _something_happens(self) -> None:
        """A command waits. If nothing goes on that it could wait for, something is made to."""
        if not self._busy():
            self._collect_all()
        if not self._busy() and self._close_worn():
            self._collect_all()
        if not self._busy():
            for frontier in self.frontiers:
                for place in (frontier.for_host, frontier.for_copies):
                    self._fill(place.block)
            for worn in self.worn:
                self._fill(worn.block if worn else None)
        assert self._busy(), "what waits does so in vain"

    def _collect_all(self) -> None:
        for frontier in self.frontiers:
            self._collect(frontier)

    def _close_worn(self) -> bool:
        """What levelling fills may be collected, even though there is room in it."""
        any_closed = False
        for die, worn in enumerate(self.worn):
            if worn and worn.room and not self.victims[die]:
                self._make_full(worn.block)
                self.worn[die] = None
                any_closed = True
        return any_closed

    def _resume(self) -> None:
        """Goes on with commands that wait."""
        if self.going:
            return
        self.going = True
        self.no_room = False
        while self.line and self._go_on(self.line[0]):
            self.part_done(self.line.popleft())
        if self.line:
            self._something_happens()
        self.going = False

    def part_done(self, cmd: Command) -> None:
        """A command waits for one thing less."""
        cmd.waits_for -= 1
        if cmd.waits_for:
            return
        if cmd.op == "write":
            self.writes.remove(cmd)
        if cmd.whole:
            self._step_done(cmd, cmd.whole)
        else:
            self._leave(cmd)

    def _leave(self, cmd: Command) -> None:
        if self.front.there:
            self.front.done(cmd)
        else:
            self._complete(cmd)

    def _complete(self, cmd: Command) -> None:
        self.commands_in_flight -= 1
        cmd.done_ns = self.machine.now
        pages, unit = {
            "read": ("host_read_pages", "host_read_cmds"),
            "write": ("host_write_pages", "host_write_cmds"),
            "zeroes": ("host_zero_pages", "host_write_cmds"),
            "trim": ("trim_pages", "trim_cmds"),
            "flush": ("flush_pages", "flush_cmds"),
        }[cmd.op]
        self.counters[pages] += cmd.nlb
        self.counters[unit] += 1
        self.counters["unwritten_reads"] += cmd.unwritten
        if not cmd.detached:
            self.completed.append(cmd)

    def _read(self, cmd: Command) -> None:
        """One operation for each run of pages that follow each other in a block.

        What is not programmed is read from the write buffer, at once.
        """
        run: Operation | None = None
        for place in range(cmd.nlb):
            page = self.where.get(cmd.lba + place)
            in_flash = page and (page.programmed or not self.buffer)
            if page is None:
                cmd.unwritten += 1
            elif not in_flash:
                cmd.pages[place] = page.tags
                self.counters["buffer_reads"] += 1
            elif run and run.block is page.block and run.slots[-1] + 1 == page.index:
                run.slots.append(page.index)
                run.places.append(place)
                continue
            if run:
                self._enqueue(run)
            run = None
            if page and in_flash:
                run = Operation(READ, self.dies[page.block.die], page.block, "host", command=cmd)
                run.slots, run.places = [page.index], [place]
        if run:
            self._enqueue(run)

    def _write_page(self, cmd: Command) -> bool:
        block = self._next_block()
        if block is None:
            return False
        lba, tag = cmd.lba + cmd.progress, cmd.tag + cmd.progress
        tags = (tag, tag if self.oob else 0)
        index = len(block.given)
        cmd.progress += 1
        self._program(block, lba, cmd.seq + cmd.progress - 1, tags, "host", cmd)
        if index == 0:
            self._collect(self._frontier(block.die))
        return True

    def _trim(self, lba: int, pages: int) -> None:
        for at in range(lba, lba + pages):
            page = self.where.pop(at, None)
            if page:
                self.trimmed.add(at)
                self._invalidate(page)
                self._collect(self._frontier(page.block.die))

    # -- pages ---------------------------------------------------------------------------------

    def _frontier(self, die: int) -> Frontier:
        return self.frontiers[die % len(self.frontiers)]

    def _space(self, frontier: Frontier) -> int:
        """Pages that a frontier can give to copies, without those kept for victims."""
        space = sum(
            self.slots for die in frontier.dies for block in self.blocks[die] if block.state == FREE
        )
        space += frontier.for_copies.left(self.slots)
        return space - sum(
            victim.owed
            for victim in self.victims
            if victim and self.frontiers[victim.to] is frontier
        )

    def _free(self, frontier: Frontier) -> int:
        return sum(b.state == FREE for die in frontier.dies for b in self.blocks[die])

    def _room_for_host(self, frontier: Frontier) -> bool:
        """Whether it has a page for the host and a block's worth beyond, for copies."""
        if self.own:
            begun = frontier.for_host.left(self.slots) > 0
            return begun or self._space(frontier) >= self.reserve + self.slots
        return self._space(frontier) > self.reserve

    def _next_block(self) -> FlashBlock | None:
        """The block of the next page for the host: frontiers in turn, each gives a unit.

        One that has no page is passed over if seven of eight of them have one, or all but one of
        fewer than sixteen; also if none of those that lack a page is emptying a block.
        """
        if not self._room_for_host(self.frontiers[self.turn]) and self._stripe_is_short():
            return None
        for _ in self.frontiers:
            frontier = self.frontiers[self.turn]
            block = None
            if self._room_for_host(frontier):
                block = self._give(frontier, frontier.for_host)
            if block is None or (len(block.given) + 1) % self.shape.unit == 0:
                self.turn = (self.turn + 1) % len(self.frontiers)
            if block:
                return block
        return None

    def _stripe_is_short(self) -> bool:
        """Whether too many frontiers lack a page, and one of these will have more."""
        lacking = [frontier for frontier in self.frontiers if not self._room_for_host(frontier)]
        emptying = any(self.victims[die] for frontier in lacking for die in frontier.dies)
        return emptying and len(lacking) > max(1, len(self.frontiers) // 8)

    def _give(self, frontier: Frontier, place: Open) -> FlashBlock:
        """The block of the frontier's next page."""
        while place.block is None:
            die = frontier.dies[frontier.turn]
            frontier.turn = (frontier.turn + 1) % len(frontier.dies)
            free = [block for block in self.blocks[die] if block.state == FREE]
            if free:
                place.block = min(free, key=FlashBlock.least_worn)
                place.block.state = OPEN
        return place.block

    def _program(
        self,
        block: FlashBlock,
        lba: int,
        seq: int,
        tags: Tags,
        cause: str,
        cmd: Command | None = None,
    ) -> None:
        """The block's next page becomes that of an LBA."""
        page = Page(block, len(block.given), lba, seq, tags, self.where.get(lba), cmd is None)
        self._give_away(page)
        block.stamp = self.seq
        self.where[lba] = page
        if self.buffer:
            self.own_operations += 1
            last = cmd is not None and cmd.progress == cmd.nlb
            if cmd:
                cmd.waits_for += 1
            self.buffer.come(Entry([page], cause, cmd, last))
            return
        op = Operation(PROGRAM, self.dies[block.die], block, cause, command=cmd)
        op.slots = [page.index]
        self._enqueue(op)

    def _give_away(self, page: Page) -> None:
        block = page.block
        block.given.append(page)
        for place in self._frontier(block.die).open_places():
            if len(block.given) == self.slots and place.block is block:
                place.block = None

    def _fill(self, block: FlashBlock | None) -> None:
        """Filler for what is lacking in the unit that is begun in a block, if one is."""
        if block is None or len(block.given) % self.shape.unit == 0:
            return
        assert self.buffer
        filler = []
        while len(block.given) % self.shape.unit:
            filler.append(self._filler(block))
            self._give_away(filler[-1])
        worn = self.worn[block.die]
        if worn and worn.block is block:
            worn.room -= len(filler)
        self.buffer.come(Entry(filler, "pad"))

    def _invalidate(self, page: Page) -> None:
        """Its content is of no use any more."""
        block = page.block
        page.needed = False
        if block.state != FULL or self.cfg["gc-policy"] != "fifo":
            block.stamp = self.seq
        victim = self.victims[block.die]
        if block.state == VICTIM and not block.valid():
            assert victim
            self._advance(block.die, victim)
        elif block.state == FULL and self.cfg["gc-policy"] != "fifo":
            self._join(block)
            if not block.valid() and not self.dies[block.die].queued:
                self._quiet(block.die)

    def _join(self, block: FlashBlock) -> None:
        """The block is the last of the full ones."""
        self.joins += 1
        block.joined = self.joins

    # -- collection ----------------------------------------------------------------------------

    def _fits(self, frontier: Frontier, block: FlashBlock) -> bool:
        return block.valid() + self.shape.unit - 1 <= self._space(frontier)

    def _takes(self, block: FlashBlock) -> int:
        """Pages that the copies of a block take, with filler."""
        return block.valid() + (self.shape.unit - 1 if self.own and block.valid() else 0)

    def _taker(self, block: FlashBlock) -> Frontier:
        """Who gets the block's pages: its own frontier, or that which has most room."""
        own = self._frontier(block.die)
        if self._fits(own, block):
            return own
        return max([own, *self.frontiers], key=self._space)

    def _benefit(self, a: FlashBlock, b: FlashBlock) -> bool:
        """Whether a has more of it: age * (1 - u) / 2u."""
        gain_a = (self.slots - a.valid()) * (self.seq - a.stamp)
        gain_b = (self.slots - b.valid()) * (self.seq - b.stamp)
        return gain_a * b.valid() > gain_b * a.valid()

    def _choose(self, die: int) -> FlashBlock | None:
        """What a die would collect."""
        full = [block for block in self.blocks[die] if block.state == FULL]
        if self.victims[die] or all(block.valid() == self.slots for block in full):
            return None
        full.sort(key=lambda block: block.joined)
        least = min(full, key=FlashBlock.valid)
        best: FlashBlock | None = least
        if self.cfg["gc-policy"] == "fifo":
            best = full[0]
        elif self.cfg["gc-policy"] == "cost-benefit" and least.valid():
            best = None
            # of those with as many valid pages, that which has been full, or as it is, longest
            oldest = {block.valid(): block for block in reversed(full)}
            for valid in sorted(oldest):
                block = oldest[valid]
                if valid < self.slots and (best is None or self._benefit(block, best)):
                    best = block
        assert best
        if not self._fits(self._frontier(die), best):
            best = least
        if self.shape.unit > 1 and not self.no_room and self._takes(best) >= self.slots:
            return None
        return best if self._fits(self._taker(best), best) else None

    def _better(self, a: FlashBlock | None, b: FlashBlock | None) -> FlashBlock | None:
        """The better one of two that their dies would choose; the first, if they are equal."""
        if a is None or b is None:
            return a or b
        policy = self.cfg["gc-policy"]
        if policy == "cost-benefit":
            second = self._benefit(b, a)
        elif policy == "greedy":
            second = (b.valid(), b.stamp) < (a.valid(), a.stamp)
        else:
            second = b.stamp < a.stamp
        return b if second else a

    def _collect(self, frontier: Frontier) -> None:
        """Begins what a frontier is in need of."""
        free = self._free(frontier)
        if self.cfg["gc-unit"] == "all":
            all_free = sum(map(self._free, self.frontiers))
            low = sum(f.low for f in self.frontiers)
            if any(self.victims) or (free >= self.least_low and all_free >= low):
                return
            for die in range(len(self.dies)):
                block = self._choose(die)
                if block:
                    self._begin_victim(block, "clean", idle=False)
        elif free < frontier.low and not any(self.victims[die] for die in frontier.dies):
            best = None
            for die in frontier.dies:
                best = self._better(best, self._choose(die))
            if best:
                self._begin_victim(best, "clean", idle=False)

    def _begin_victim(self, block: FlashBlock, cause: str, idle: bool) -> None:
        to = self.frontiers.index(self._taker(block))
        worn = self.worn[block.die]
        holds = cause == "wear" and worn is not None and block.valid() <= worn.room
        owed = 0 if holds else self._takes(block)
        block.state = VICTIM
        left = [page for page in block.given if page.programmed]
        victim = Victim(block, cause, idle, to, owed, left)
        self.victims[block.die] = victim
        self._advance(block.die, victim)

    def _is_content(self, page: Page) -> bool:
        return self.where.get(page.lba) is page

    def _advance(self, number: int, victim: Victim) -> None:
        """Queues the next reads of a victim, or its erase."""
        block, die, row = victim.block, self.dies[number], self.shape.row
        while block.valid() and victim.copying + row <= max(COPIES, 2 * row) and victim.left:
            first = victim.left[0].index // row
            same_row = [page for page in victim.left if page.index // row == first]
            del victim.left[: len(same_row)]
            wanted = [page.index for page in same_row if self._is_content(page)]
            if wanted:
                victim.copying += len(wanted)
                op = Operation(READ, die, block, victim.cause)
                op.slots = wanted
                self._enqueue(op)
        if block.valid() and not victim.copying and not victim.left:
            self._end_copying(number, victim)
        if not block.valid() and not victim.erasing:
            victim.erasing = True
            self._enqueue(Operation(ERASE, die, block, victim.cause, idle=victim.idle))

    def _end_copying(self, die: int, victim: Victim) -> None:
        """All pages have a new place. If it is not the host's that follow them, filler does."""
        worn = self.worn[die]
        if victim.cause == "wear" and worn:
            self._fill(worn.block)
        if self.own and (victim.cause == "clean" or victim.owed):
            self._fill(self.frontiers[victim.to].for_copies.block)

    # -- what the write buffer tells -----------------------------------------------------------

    def fill_up(self, block: FlashBlock) -> None:
        """A unit that is begun has to be programmed."""
        worn = self.worn[block.die]
        is_worn = worn is not None and worn.block is block
        if is_worn or self._frontier(block.die).for_host.block is block:
            self._fill(block)

    def program_unit(self, unit: Unit) -> Operation:
        """A unit is full."""
        op = Operation(PROGRAM, self.dies[unit.block.die], unit.block, "host", buffered=True)
        op.slots = [page.index for page in unit.pages]
        self._enqueue(op)
        return op

    def buffered(self, entry: Entry) -> None:
        """A page, or filler, is in the buffer."""
        going, self.going = self.going, True
        page, cmd = entry.pages[0], entry.command
        assert self.buffer
        if cmd and self.buffer.protected and self._would_be_content(page):
            self.trimmed.discard(page.lba)
        if entry.cause != "pad":
            self.own_operations -= 1
        if cmd is None and entry.cause != "pad":
            assert page.replaces
            die = page.replaces.block.die
            victim = self.victims[die]
            assert victim
            victim.copying -= 1
            self._advance(die, victim)
        if cmd:
            self.part_done(cmd)
        self.going = going
        self._resume()

    def _would_be_content(self, page: Page) -> bool:
        """Whether it is what its LBA has, or would have if what is not programmed were lost."""
        at = self.where.get(page.lba)
        while at and at is not page and not at.programmed:
            at = at.replaces
        return at is page

    # -- operations ----------------------------------------------------------------------------

    def _enqueue(self, op: Operation) -> None:
        op.entered = self.machine.now
        op.die.queued += 1
        self.own_operations += not op.buffered and (op.kind != READ or op.command is None)
        if op.command:
            op.command.waits_for += 1
        if self.cfg["queue"] == "global":
            self.global_queue.append(op)
            self._start_work()
            return
        op.die.queue.append(op)
        op.die.wake()
        if op.kind == READ:
            op.die.maybe_suspend()

    def _start_work(self) -> None:
        while self.global_queue and self.global_queue[0].die.idle():
            op = self.global_queue.popleft()
            op.die.queue.append(op)
            op.die.wake()

    def busy(self, duration: int) -> None:
        """A die has worked for so long."""
        self.counters["die_busy_ns"] += duration

    def step_done(self, step: Step) -> None:
        """The array has done it."""
        op, count = step.op, self.counters
        block = op.block
        assert isinstance(block, FlashBlock)
        for index, slot in enumerate(step.slots, step.first):
            page = block.given[slot]
            if op.kind == PROGRAM:
                assert slot == 0 or block.given[slot - 1].programmed, "the array refuses"
                page.programmed = True
                count[f"prog_{op.cause}"] += not op.buffered
            else:
                assert page.programmed, "it reads what is not there"
                count[f"read_{op.cause}"] += 1
                if op.command:
                    op.command.pages[op.places[index]] = page.tags
        if op.kind == ERASE:
            assert not block.valid(), "it erases what is needed"
            block.erases += 1
            count[f"erase_{op.cause}"] += 1
            count["erase_idle" if op.idle else "erase_on_demand"] += 1
        else:
            count["nand_programs" if op.kind == PROGRAM else "nand_reads"] += step.nand_pages
            if op.kind == PROGRAM and op.cause != "wear":
                op.die.programmed += len(step.slots)
        count["bus_busy_ns"] += step.bus_time
        assert step.started is not None
        waited = step.started - op.entered
        count["queue_wait_ns"] += waited
        self.longest_wait = max(self.longest_wait, waited)
        if op.finished:
            self._operation_done(op, block)

    def _operation_done(self, op: Operation, block: FlashBlock) -> None:
        op.die.queued -= 1
        if op.buffered:
            assert self.buffer
            self.buffer.programmed(op)
        self.going = True
        if op.kind == READ and op.command:
            self.part_done(op.command)
        else:
            self.own_operations -= not op.buffered
            if op.kind == READ:
                self._copies_read([block.given[slot] for slot in op.slots])
            elif op.kind == PROGRAM:
                self._programmed([block.given[slot] for slot in op.slots], op)
            else:
                self._erased(block)
        self.going = False
        self._resume()
        self._start_work()
        # Once begun, work in the background goes on until the host comes.
        if not op.die.queued and not (op.idle and self._background(block.die)):
            self._quiet(block.die)

    def _copies_read(self, pages: list[Page]) -> None:
        """A victim's pages are given new places, but for those that are of no use any more."""
        die = pages[0].block.die
        victim = self.victims[die]
        assert victim
        useless = 0
        for page in pages:
            if self._is_content(page):
                self._copy(page, victim)
            else:
                useless += 1
        if useless:
            victim.copying -= useless
            self._advance(die, victim)

    def _copy(self, page: Page, victim: Victim) -> None:
        worn = self.worn[page.block.die]
        if victim.cause == "wear" and worn and worn.room:
            target = worn.block
            worn.room -= 1
        else:
            frontier = self.frontiers[victim.to]
            target = self._give(frontier, frontier.for_copies)
            victim.owed = max(0, victim.owed - 1)
        self._program(target, page.lba, page.seq, page.tags, victim.cause)

    def _programmed(self, pages: list[Page], op: Operation) -> None:
        """What they replace is needed no more."""
        block = pages[0].block
        replaced = [page.replaces for page in pages]
        for page in pages:
            page.replaces = None
            if op.command or (not page.copy and self._would_be_content(page)):
                self.trimmed.discard(page.lba)
        if op.command:
            self.part_done(op.command)
        if pages[-1].index + 1 == self.slots:
            block.stamp = self.seq
            self._make_full(block)
            self._collect(self._frontier(block.die))
        for old in replaced:
            if old is None:
                continue
            victim = self.victims[old.block.die]
            is_copy = not op.command and not op.buffered
            if is_copy:
                assert victim
                victim.copying -= 1
            self._invalidate(old)
            if is_copy and victim:
                self._advance(old.block.die, victim)
            self._collect(self._frontier(old.block.die))

    def _make_full(self, block: FlashBlock) -> None:
        block.state = FULL
        self.dies[block.die].look = True
        self._join(block)

    def _erased(self, block: FlashBlock) -> None:
        victim = self.victims[block.die]
        assert victim
        self.victims[block.die] = None
        block.given, block.state = [], FREE
        self.counters["wear_moves"] += victim.cause == "wear"
        self.dies[block.die].look = True
        if victim.cause == "wear":
            self.levelled[block.die] = self.dies[block.die].programmed
        self._level_busy(block.die)
        self._collect(self._frontier(block.die))

    # -- background ----------------------------------------------------------------------------

    def _empty(self, die: int) -> FlashBlock | None:
        """A full block without any page that is needed, in which that was first so."""
        if self.cfg["idle-erase"] and self.cfg["gc-policy"] != "fifo":
            empty = [b for b in self.blocks[die] if b.state == FULL and not b.valid()]
            return min(empty, key=lambda block: block.joined, default=None)
        return None

    def _uneven(self, die: int) -> bool:
        threshold = int(self.cfg["wl-threshold"])
        wear = [block.erases for block in self.blocks[die]]
        return threshold > 0 and self.dies[die].look and max(wear) - min(wear) > threshold

    def _has_background(self, die: int) -> bool:
        return self.victims[die] is None and (self._uneven(die) or self._empty(die) is not None)

    def _quiet(self, number: int) -> None:
        """The die is idle from now on: sets its one alarm, if there is work that it could do."""
        die = self.dies[number]
        die.quiet_since = self.machine.now
        self._watch(number)

    def _watch(self, number: int) -> None:
        die = self.dies[number]
        if not die.alarm and self._has_background(number):
            die.alarm = True
            when = die.quiet_since + int(self.cfg["idle-erase"])
            self.machine.at(when, lambda: self._idle_check(number))

    def _idle_check(self, number: int) -> None:
        die = self.dies[number]
        die.alarm = False
        if die.queued:
            return
        if self.machine.now < die.quiet_since + int(self.cfg["idle-erase"]):
            self._watch(number)
        else:
            self._background(number)

    def _background(self, die: int) -> bool:
        """Begins work in the background, if there is some."""
        if not self._has_background(die):
            return False
        empty = self._empty(die)
        if empty:
            self._begin_victim(empty, "clean", idle=True)
            return True
        return self._begin_levelling(die, idle=True)

    def _level_busy(self, number: int) -> None:
        """After an erase, if the frontier has a block beyond its reserve."""
        room = self._space(self._frontier(number)) >= self.reserve + self.slots
        if int(self.cfg.get("wl-share", 50)) and self._uneven(number) and room:
            self._begin_levelling(number, idle=False)

    def _rests(self, block: FlashBlock) -> bool:
        """Whether copies or levelling fill it, and all that it was given is programmed."""
        worn = self.worn[block.die]
        filling = {self._frontier(block.die).for_copies.block} if self.own else set()
        filling |= {worn.block} if worn else set()
        given = block.given
        return (
            block.state == OPEN
            and block in filling
            and bool(given)
            and all(page.programmed for page in given)
        )

    def _begin_levelling(self, number: int, idle: bool) -> bool:
        """Moves what the least worn block has that is full, or rests, to the most worn free one, or
        what is left of the block that levelling fills. What has no place there goes to the copies.

        A die that need not be idle does so if it is a share at most of what others programmed.
        """
        self.dies[number].look = False
        blocks = self.blocks[number]
        movable = [block for block in blocks if block.state == FULL or self._rests(block)]
        if not movable:
            return False
        source = min(movable, key=FlashBlock.least_worn)
        share = int(self.cfg.get("wl-share", 50))
        others = self.dies[number].programmed - self.levelled[number]
        if not idle and source.valid() * 100 > others * share:
            self.dies[number].look = True
            return False
        least = source.erases + int(self.cfg["wl-threshold"]) - (not idle)
        worn = self.worn[number]
        copies = self._frontier(number).for_copies
        lost = copies.left(self.slots) if copies.block is source else 0
        space = self._space(self._frontier(number)) - lost
        used_up = worn is None or not worn.room or worn.block.erases <= least
        if worn is None or used_up or worn.block is source:
            free = [block for block in blocks if block.state == FREE]
            fresh = max(free, key=lambda block: (block.erases, -block.number), default=None)
            keep = self.slots if idle else self.reserve
            if fresh is None or fresh.erases <= least or space < keep + self.slots:
                return False
            if worn and worn.room:
                self._make_full(worn.block)
            fresh.state = OPEN
            self.worn[number] = Worn(fresh, self.slots)
            space -= self.slots
        elif worn.room < source.valid() and space < self.reserve + self._takes(source):
            return False
        if source.state == OPEN:
            if space < self.reserve:
                return False
            if copies.block is source:
                copies.block = None
            self._make_full(source)
        self._begin_victim(source, "wear", idle)
        return True

    # -- what is shown -------------------------------------------------------------------------

    def all_counters(self) -> dict[str, int]:
        """The counters of the log page, except ram_bytes and endurance."""
        cfg = self.cfg
        blocks = [block for blocks in self.blocks for block in blocks]
        total = (int(cfg["blocks"]) + int(cfg["spare-blocks"])) * len(self.dies)
        free = sum(block.state == FREE for block in blocks)
        shown = dict(self.counters)
        shown |= {
            "queue_wait_max_ns": self.longest_wait,
            "map_bytes": self.map_bytes,
            "capacity_bytes": self.lbas * 4096,
            "flash_bytes": len(blocks) * self.slots * 4096,
            "page_bytes": 4096,
            "oob_bytes": self.oob,
            "blocks_total": total,
            "blocks_bad": total - len(blocks),
            "blocks_used": len(blocks) - free,
            "blocks_erased": free,
            "spares_total": int(cfg["spare-blocks"]) * len(self.dies),
            "spares_left": sum(max(0, good - int(cfg["blocks"])) for good in self.good_blocks),
            "wear_min": min(block.erases for block in blocks),
            "wear_max": max(block.erases for block in blocks),
            "wear_sum": sum(block.erases for block in blocks),
        }
        return shown


def overlap(a: Command, b: Command) -> bool:
    """Whether they have an LBA in common."""
    return a.lba < b.lba + b.nlb and b.lba < a.lba + a.nlb
