# SPDX-License-Identifier: GPL-2.0-or-later
"""ftl=block and ftl=fast on random traces: every merge by kind, every erase, every page read or
programmed by cause, and all contents equal those of the references (block_reference.py,
fast_reference.py). RSD_BLOCK_TRACES sets how many traces a configuration gets (default 3)."""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from block_reference import BlockDrive, Flash
from fast_reference import FastDrive
from one_by_one import Command, run_one_by_one

TRACES = int(os.environ.get("RSD_BLOCK_TRACES", "3"))
COUNTED = (
    "merge_switch merge_partial merge_full read_host read_merge prog_host prog_merge prog_pad "
    "erase_host erase_merge unwritten_reads".split()
)


@dataclass(frozen=True)
class Setup:
    """A drive."""

    ftl: str
    stripe: str
    channels: int
    ways: int
    blocks: int
    spares: int
    pages: int
    over_blocks: int  # percent of blocks, beyond what the host sees; spares are besides
    log_blocks: int = 5
    planes: int = 1
    page_size: int = 4096
    cell: str = "slc"  # other ones are programmed in one shot
    buffer: int = 0
    ack: str = "program"
    plp: str = "on"
    replacements: bool = True

    def __str__(self) -> str:
        """What a test is called by."""
        return f"{self.ftl}-{self.stripe}-{self.pages}x{self.blocks}-{self.grain}"

    @property
    def slots(self) -> int:
        """Pages of 4 KiB in a block."""
        return self.pages * self.planes * self.page_size // 4096

    @property
    def grain(self) -> int:
        """Of these, programmed at once."""
        bits = ("slc", "mlc", "tlc", "qlc").index(self.cell) + 1
        return self.planes * self.page_size // 4096 * bits

    @property
    def buffered(self) -> bool:
        """Is there a write buffer?"""
        return self.grain > 1 or self.buffer > 0

    @property
    def lanes(self) -> int:
        """Dies that a unit is in."""
        return self.channels * self.ways if self.stripe == "all" else 1

    @property
    def groups(self) -> int:
        """Dies, or one for all."""
        return self.channels * self.ways // self.lanes

    @property
    def span(self) -> int:
        """Pages of a unit."""
        return self.lanes * self.slots

    @property
    def logical(self) -> int:
        """Logical blocks."""
        flash = self.channels * self.ways * (self.blocks + self.spares) * self.slots
        return flash * 100 // (100 + self.over_provision) // self.span

    @property
    def over_provision(self) -> int:
        """The property: spares are counted."""
        flash = (self.blocks + self.spares) * (100 + self.over_blocks)
        return -(-flash // self.blocks) - 100

    def settings(self) -> str:
        """As the replay program wants them."""
        return (
            f"ftl={self.ftl} stripe={self.stripe} channels={self.channels} "
            f"ways={self.ways} blocks={self.blocks} spare-blocks={self.spares} "
            f"pages={self.pages} over-provision={self.over_provision} "
            f"log-blocks={self.log_blocks} wl-threshold=0 oob=16 planes={self.planes} "
            f"page-size={self.page_size} cell={self.cell} "
            f"one-shot={'off' if self.cell == 'slc' else 'on'} write-buffer={self.buffer} "
            f"ack={self.ack} plp={self.plp} "
            f"replacement-blocks={'on' if self.replacements else 'off'}"
        )

    def reference(self) -> BlockDrive | FastDrive:
        """The drive that does nothing but what the rules say."""
        flash = Flash(self.span, self.lanes, self.logical * self.span, self.grain)
        if self.ftl == "block":
            units = self.blocks + self.spares
            return BlockDrive(flash, self.groups, units, self.replacements)
        return FastDrive(flash, max(2, self.logical * self.log_blocks // 100) - 1)


SETUPS = [
    Setup("block", "block", 2, 2, 10, 1, 8, 20),
    Setup("block", "block", 1, 3, 8, 1, 5, 0),
    Setup("block", "block", 2, 1, 30, 3, 4, 7),
    Setup("block", "block", 1, 1, 6, 1, 1, 20),
    Setup("block", "all", 2, 2, 10, 1, 4, 10),
    Setup("block", "all", 3, 1, 8, 1, 1, 0),
    Setup("block", "block", 2, 2, 9, 1, 8, 20, replacements=False),
    Setup("block", "all", 2, 2, 8, 1, 4, 10, replacements=False),
    Setup("block", "block", 2, 1, 9, 1, 6, 20, buffer=4096, replacements=False),
    Setup("fast", "block", 2, 2, 10, 2, 8, 20, 10),
    Setup("fast", "block", 1, 3, 20, 4, 5, 10, 25),
    Setup("fast", "block", 2, 1, 30, 3, 4, 12, 1),
    Setup("fast", "block", 1, 1, 8, 4, 2, 10, 40),
    Setup("fast", "all", 2, 2, 12, 3, 4, 10, 20),
    Setup("fast", "all", 3, 1, 10, 3, 1, 10, 10),
    Setup("block", "block", 2, 2, 10, 1, 6, 20, buffer=4096),
    Setup("block", "block", 2, 1, 9, 2, 3, 10, page_size=16384, plp="off"),
    Setup("block", "all", 2, 2, 10, 1, 4, 10, planes=2, cell="mlc", ack="buffer", plp="off"),
    Setup("fast", "block", 1, 3, 20, 4, 6, 10, 25, cell="tlc", ack="buffer"),
    Setup("fast", "block", 2, 1, 12, 4, 2, 10, 20, planes=4, page_size=8192, plp="off"),
    Setup("fast", "all", 2, 1, 12, 3, 4, 10, 20, planes=2, cell="qlc", buffer=1 << 20),
]
# Seeds of traces that show what is seldom seen, by drive: a write that waits for a block of the log
# would fit its own logical block's data block before the rest of the log block is merged; of the
# pages of a merge, the first and the third are in a row, the second in another.
SELDOM = {
    "fast-all-1x10-1": 10058,
    "fast-block-4x30-1": 10017,
    "fast-all-4x12-1": 10085,
    "fast-block-2x12-8": 10020,
}


def trace(setup: Setup, seed: int, length: int) -> Iterator[Command]:
    """Runs from a logical block's beginning, single pages, hot ones; some trims and reads."""
    rng = random.Random(seed)
    lbas = setup.logical * setup.span
    hot = [rng.randrange(lbas) for _ in range(8)]
    at, tag = 0, 1
    for _ in range(length):
        shape = rng.random()
        if shape < 0.25:  # goes on where the last one ended
            lba = at
        elif shape < 0.45:
            lba = rng.randrange(setup.logical) * setup.span
        elif shape < 0.6:
            lba = rng.choice(hot)
        else:
            lba = rng.randrange(lbas)
        lba %= lbas
        run = rng.choice([1, 1, 2, 3, setup.span, rng.randint(1, 2 * setup.span)])
        run = min(run, lbas - lba, 40)
        op = rng.choices(["write", "read", "zeroes", "trim"], [70, 20, 5, 5])[0]
        yield op, lba, run, tag
        if op == "write":
            tag += run
            at = lba + run


def run_reference(setup: Setup, commands: list[Command]) -> tuple[list[list[int]], dict[str, int]]:
    """Tags of the pages of each read, and the counters."""
    drive = setup.reference()
    reads = []
    for op, lba, pages, tag in commands:
        if op == "read":
            reads.append([drive.flash.read(lba + n) for n in range(pages)])
        for n in range(pages):
            if op == "write":
                drive.write(lba + n, tag + n)
                last = n + 1 == pages or (lba + n + 1) % setup.span == 0
                if last and isinstance(drive, BlockDrive):
                    drive.end_write(lba + n)
            elif op != "read":
                drive.trim(lba + n)
    return reads, {name: drive.flash.count[name] for name in COUNTED}


def outcome_of(setup: Setup, counters: dict[str, int]) -> dict[str, int]:
    """What is compared. A page that is read may still be in the write buffer.

    Then the host's reads are counted there, and those of merges nowhere.
    """
    found = {name: counters[name] for name in COUNTED}
    if setup.buffered:
        found["read_host"] += counters.get("buffer_reads", 0)
        del found["read_merge"]
    return found


def check_traces(
    replay: Path, tmp_path: Path, setup: Setup, seeds: range, length: int
) -> dict[str, int]:
    """Every merge, erase, page and content of a trace of each seed; the sums of the counters."""
    kinds = dict.fromkeys(COUNTED, 0)
    for seed in seeds:
        commands = list(trace(setup, seed, length))
        commands += [("read", n, 1, 0) for n in range(setup.logical * setup.span)]
        outcomes = run_one_by_one(replay, tmp_path / f"{seed}.rsd", setup.settings(), commands)
        (tmp_path / f"{seed}.rsd").unlink()
        reads, counted = run_reference(setup, commands)
        found = [outcome["pages"] for outcome in outcomes if "pages" in outcome]
        assert found == [[[tag, tag] for tag in tags] for tags in reads], f"seed {seed}"
        counters = outcomes[-1]["counters"]
        assert outcome_of(setup, counters) == outcome_of(setup, counted), f"seed {seed}"
        assert counters["read_merge"] <= counted["read_merge"], f"seed {seed}"
        for name, value in counted.items():
            kinds[name] += value
    return kinds


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_merges_and_contents(replay: Path, tmp_path: Path, setup: Setup) -> None:
    """TRACES traces of 400 commands.

    With a write buffer a third of the traces, of 250 commands: the reference is slow.
    """
    seeds = range(-(-TRACES // 3) if setup.buffered else TRACES)
    kinds = check_traces(replay, tmp_path, setup, seeds, 250 if setup.buffered else 400)
    idle = [name for name, value in kinds.items() if not value]
    # of one page a block, there is nothing to copy
    assert idle == [] or setup.span < 4 or (setup.ftl == "fast" and setup.pages < 3), idle


@pytest.mark.parametrize("name", SELDOM)
def test_what_is_seldom_seen(replay: Path, tmp_path: Path, name: str) -> None:
    setup = next(setup for setup in SETUPS if str(setup) == name)
    check_traces(replay, tmp_path, setup, range(SELDOM[name], SELDOM[name] + 1), length=120)
