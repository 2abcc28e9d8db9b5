# SPDX-License-Identifier: GPL-2.0-or-later
"""Random scripts of commands for a drive with a page map."""

import random

from page_reference import GRANULE
from script import BITS, FOREVER, OPTIONS, Config, Options, open_line

PAGE_OPTIONS: Options = {
    "frontiers": [0, 1, 2, 3],
    "gc-frontiers": ["own", "shared"],
    "gc-policy": ["greedy", "cost-benefit", "fifo"],
    "gc-unit": ["block", "all"],
    "gc-trigger": [0, 1, 4, 10],
    "over-provision": [0, 5, 28, 100],
    "pages": [2, 3, 5, 8, 16],
    "spare-blocks": [0, 1, 3],  # beyond what a drive of these settings cannot do without
    "oob": [0, 16, 64],
    "channels": [1, 2, 3],
    "ways": [1, 2, 3],
} | {
    name: OPTIONS[name]
    for name in OPTIONS
    if name.startswith(("t-", "suspend", "read-"))
    or name
    in ("queue", "idle-erase", "cell", "wl-threshold", "wl-share", "cache", "cores", "endurance")
}
# The same, with a write buffer in most rows
BUFFER_OPTIONS: Options = PAGE_OPTIONS | {
    "pages": [2, 3, 5, 8],
    "planes": [1, 2, 4],
    "page-size": [4096, 8192, 16384],
    "one-shot": ["off", "on"],
    "write-buffer": [0, 4096, 32768, 1 << 20],
    "ack": ["program", "buffer"],
    "plp": ["on", "off"],
}
MOST_IN_UNIT = 8  # pages of 4 KiB: with more, scripts would only take longer
TIMINGS = [name for name in PAGE_OPTIONS if name.startswith("t-")] + ["idle-erase"]
VOLATILE = [
    "queue",
    "gc-frontiers",
    "gc-policy",
    "gc-unit",
    "wl-threshold",
    "wl-share",
    "cache",
    "suspend",
    *TIMINGS,
]


def page_drive_of(row: Config) -> Config:
    """A row made a drive of 256 LBAs, or more, with flash enough.

    If so little over-provisioning leaves no such drive of reasonable size, it has more.
    """
    cfg = dict(row) | {"ftl": "page"}
    if "planes" in cfg:
        make_units(cfg)
    dies, pages = int(cfg["channels"]) * int(cfg["ways"]), block_pages(cfg)
    cfg["frontiers"] = min(int(cfg["frontiers"]), dies)
    more = int(cfg["spare-blocks"])
    for over in (int(cfg["over-provision"]), 28, 100, 200):
        cfg["over-provision"] = over
        cfg["blocks"] = -(-GRANULE * (100 + over) // (100 * dies * pages))
        for spares in range(more, more + 64):
            cfg["spare-blocks"] = spares
            if exported(cfg) and has_flash_enough(cfg):
                return cfg
    raise AssertionError(f"no drive: {row}")


def make_units(cfg: Config) -> None:
    """Units of not too many pages, and a block of several."""
    bits = BITS[str(cfg["cell"])] if cfg["one-shot"] == "on" else 1
    for name, least in (("page-size", 4096), ("planes", 1), ("page-size", 4096), ("planes", 1)):
        if row_pages(cfg) * bits > MOST_IN_UNIT:
            cfg[name] = max(least, int(cfg[name]) // 2)
    pages = min(int(cfg["pages"]), 4 * MOST_IN_UNIT // row_pages(cfg))
    cfg["pages"] = max(3, -(-pages // bits)) * bits


def row_pages(cfg: Config) -> int:
    """Pages of 4 KiB that all planes have under one number."""
    return int(cfg.get("planes", 1)) * int(cfg.get("page-size", 4096)) // 4096


def block_pages(cfg: Config) -> int:
    """Pages of 4 KiB of a block."""
    return int(cfg["pages"]) * row_pages(cfg)


def filler(cfg: Config) -> int:
    """Pages of a block, and of what a frontier keeps, that filler may take."""
    bits = BITS[str(cfg["cell"])] if cfg.get("one-shot") == "on" else 1
    unit = row_pages(cfg) * bits
    return unit if unit > 1 else 0


def exported(cfg: Config) -> int:
    """LBAs of a drive without bad blocks."""
    dies = int(cfg["channels"]) * int(cfg["ways"])
    pages = dies * (int(cfg["blocks"]) + int(cfg["spare-blocks"])) * block_pages(cfg)
    return pages * 100 // (100 + int(cfg["over-provision"])) // GRANULE * GRANULE


def has_flash_enough(cfg: Config) -> bool:
    """Beyond what the host sees."""
    dies, pages = int(cfg["channels"]) * int(cfg["ways"]), block_pages(cfg)
    blocks = int(cfg["blocks"]) + int(cfg["spare-blocks"])
    beyond = dies * blocks * (pages - filler(cfg)) - exported(cfg)
    low = [-(-n * blocks * int(cfg["gc-trigger"]) // 100) for n in shares(cfg)]
    own = cfg["gc-frontiers"] == "own"
    kept = (2 if own else 1) * pages + filler(cfg)
    least = 3 if own and filler(cfg) else 2
    return beyond > len(low) * kept and sum(n for n in low if n > least) * pages <= beyond


def shares(cfg: Config) -> list[int]:
    """Dies of each frontier."""
    dies = int(cfg["channels"]) * int(cfg["ways"])
    frontiers = int(cfg["frontiers"]) or dies
    return [len(range(first, dies, frontiers)) for first in range(frontiers)]


class PageWriter:
    """Writes a script."""

    def __init__(self, seed: int, row: Config) -> None:
        self.rng = rng = random.Random(seed)
        self.cfg = page_drive_of(row) | {"seed": rng.randrange(1000)}
        self.lbas = exported(self.cfg)
        self.lines = [open_line(self.cfg)]
        self.now, self.tag, self.ident = 0, 1, 0
        self.hot = rng.randrange(1, self.lbas)  # LBAs below are written most
        self.longest = rng.choice([1, 4, 16])
        self.gap_kind = rng.randrange(3)
        self.buffered = filler(self.cfg) > 0 or int(self.cfg.get("write-buffer", 0)) > 0

    def wait(self) -> None:
        """Lets some time pass, often about as long as an operation, or none at all."""
        gap = 0
        if self.gap_kind == 1:
            gap = self.rng.choice([0, 1, 1000, 40_000, 9_000_000])
        elif self.gap_kind == 2:
            gap = sum(
                int(self.cfg[name]) for name in self.rng.sample(TIMINGS, self.rng.randint(0, 2))
            )
            gap = self.rng.choice([gap, gap // 2, gap + 1, 0])
        self.now += gap

    def command(self, op: str, lba: int, pages: int) -> None:
        """One command; now and then the host forgets it."""
        if op == "write" and self.buffered and self.rng.random() < 0.2:
            op = "fua"
        self.ident += 1
        word = "detach" if self.rng.random() < 0.03 else "sub"
        self.lines.append(f"{word} {self.now} {self.ident} {op} {lba} {pages} {self.tag}")
        if op in ("write", "fua"):
            self.tag += pages

    def some(self, op: str, longest: int) -> None:
        """A command somewhere, seldom beyond the end."""
        rng = self.rng
        lba = rng.randrange(self.hot if rng.random() < 0.8 else self.lbas)
        pages = rng.randint(1, longest)
        if lba + pages > self.lbas and rng.random() < 0.9:
            pages = self.lbas - lba
        self.command(op, lba, pages)

    def fill(self) -> None:
        """Writes everything."""
        run = self.rng.choice([16, 61, self.lbas])
        for lba in range(0, self.lbas, run):
            self.command("write", lba, min(run, self.lbas - lba))
            self.wait()

    def rest(self) -> None:
        """Until nothing is in flight, or longer."""
        self.now += self.rng.choice([FOREVER, 30_000_000])
        self.lines.append(f"{self.rng.choice(['adv', 'step'])} {self.now}")

    def restart(self) -> None:
        """Closes without advancing and opens with other settings; time begins at 0."""
        before = dict(self.cfg)
        for name in self.rng.sample([*VOLATILE, *(["ack"] if self.buffered else [])], 3):
            self.cfg[name] = self.rng.choice(BUFFER_OPTIONS[name])
        if not has_flash_enough(self.cfg):
            self.cfg["gc-frontiers"] = "shared"
            if not has_flash_enough(self.cfg):
                self.cfg = before
        self.lines += ["counters", "close", open_line(self.cfg), "counters"]
        self.now = 0

    def anything(self) -> None:
        """One step of a random walk."""
        rng, action = self.rng, self.rng.random()
        self.wait()
        if action < 0.55:
            self.some("write", self.longest)
        elif action < 0.75:
            self.some("read", rng.choice([1, 8, 64]))
        elif action < 0.80:
            self.some(rng.choice(["trim", "zeroes"]), rng.choice([1, 8, 200]))
        elif action < 0.82 or (self.buffered and action < 0.86):
            self.command("flush", 0, 0)
        elif action < 0.93:
            self.lines.append(f"{rng.choice(['adv', 'step'])} {self.now}")
        elif action < 0.96:
            self.rest()
        elif action < 0.98:
            self.lines.append("counters")
        elif action < 0.985:
            self.rest()
            self.lines.append(f"format {self.now} {rng.choice([0, 16, 64, 128])}")
        elif action < 0.99:
            self.restart()

    def read_all(self) -> None:
        """Reads all there is and waits for it."""
        self.command("read", 0, self.lbas)
        self.now += FOREVER
        self.lines += [f"adv {self.now}", "counters"]


def make_page_script(seed: int, row: Config) -> list[str]:
    """A random script for a configuration."""
    writer = PageWriter(seed, row)
    if writer.rng.random() < 0.9:
        writer.fill()
    for _ in range(writer.rng.choice([30, 100, 200])):
        writer.anything()
    writer.now += FOREVER
    writer.lines += [f"step {writer.now}", "counters"]
    writer.read_all()
    writer.restart()
    writer.read_all()
    return writer.lines
