# SPDX-License-Identifier: GPL-2.0-or-later
"""Scripts of commands: made at random, run on the model, compared with what the core printed."""

import itertools
import json
import math
import random
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

from die import Shape
from page_reference import PageDrive
from reference import Command, Drive

Config = dict[str, int | str]
Options = dict[str, list[int | str]]
# One line printed by the core or what the model says in its place.
Outcome = dict[str, object]

# Every pair of values of any two options occurs in some row of pairwise_rows().
OPTIONS: Options = {
    "segment": ["all", "way"],
    "queue": ["way", "global"],
    "reset": ["mark", "erase"],
    "finish": ["mark", "pad"],
    "idle-erase": [0, 1, 700, 2_000_000],
    "planes": [1, 2, 4],
    "page-size": [4096, 8192, 16384],
    "cell": ["slc", "mlc", "tlc", "qlc"],
    "one-shot": ["off", "on"],
    "channels": [1, 2, 3, 4, 5],
    "ways": [1, 2, 3, 4],
    "pages": [1, 2, 3, 5, 8],
    "blocks": [2, 4, 6],
    "oob": [0, 16, 64, 128],
    "spare-blocks": [0, 1, 2],
    "bad-blocks-ppm": [0, 0, 30_000],
    "t-cmd": [0, 1, 2500],
    "t-xfer": [0, 7, 30833],
    "t-read": [0, 60, 60000],
    "t-prog": [0, 130, 444278],
    "t-erase": [0, 900, 3_500_000],
    "zd-ext": [0, 64],
    "wl-threshold": [0, 1, 3],
    "wl-share": [0, 7, 50, 100],
    "t-read-csb": [0, 77_000],
    "t-read-msb": [0, 91],
    "t-read-tsb": [0, 133_000],
    "t-prog-csb": [0, 611_000],
    "t-prog-msb": [0, 173],
    "t-prog-tsb": [0, 911_000],
    "t-status": [0, 11, 1300],
    "cache": ["off", "on"],
    "suspend": ["off", "on"],
    "t-suspend": [0, 37, 5000],
    "suspend-reads": [1, 2, 16],
    "read-retries": [0, 0, 3],
    "endurance": [2, 3000],
    "cores": [1, 2, 3],
    "t-fw-read": [0, 0, 17, 2250],
    "t-fw-write": [0, 0, 23, 5480],
    "t-fw-append": [0, 0, 7560],
    "t-fw-zone": [0, 0, 900_000],
    "t-fw-page": [0, 0, 3, 150],
    "t-lat-read": [0, 0, 9500],
    "t-lat-write": [0, 0, 4300],
    "t-lat-zone": [0, 0, 11_000],
    "t-link": [0, 0, 5, 1558],
    "write-buffer": [0, 0, 4096, 65536, 1 << 20],
    "ack": ["program", "buffer"],
    "plp": ["on", "off"],
    "zrwa": [0, 0, 1, 2],
    "zrwa-size": [4096, 12288, 65536],
    "zrwa-flush": [4096, 8192, 12288],
}
BITS = {"slc": 1, "mlc": 2, "tlc": 3, "qlc": 4}
MOST_SLOTS = 32  # of a block: more would only take longer
TIMINGS = [name for name in OPTIONS if name.startswith("t-")] + ["idle-erase"]
# What may differ from one opening of a file to the next.
VOLATILE = [
    "queue",
    "reset",
    "finish",
    "wl-threshold",
    "wl-share",
    "cache",
    "suspend",
    "cores",
    "ack",
    *TIMINGS,
]
# Counters that the model does not have.
NOT_MODELLED = {"ram_bytes", "endurance"}
FOREVER = 10**12


def pairwise_rows(seed: int, options: Options = OPTIONS) -> list[Config]:
    """Greedy rows that cover all pairs of option values."""
    rng = random.Random(seed)
    names = list(options)
    missing = {
        ((a, x), (b, y))
        for a, b in itertools.combinations(names, 2)
        for x in options[a]
        for y in options[b]
    }
    rows: list[Config] = []
    while missing:
        (first, x), (second, y) = min(missing, key=repr)
        row: Config = {first: x, second: y}
        for name in rng.sample(names, len(names)):
            if name not in row:
                candidates = rng.sample(options[name], len(options[name]))
                row[name] = max(
                    candidates,
                    key=lambda v: sum(pair in missing for pair in pairs(names, row | {name: v})),
                )
        missing -= set(pairs(names, row))
        rows.append(row)
    return rows


def pairs(names: list[str], row: Config) -> Iterable[tuple[object, object]]:
    """All pairs of (option, value) in a row."""
    present = [(name, row[name]) for name in names if name in row]
    return itertools.combinations(present, 2)


def drive_of(row: Config) -> Config:
    """A row made a drive: what its values must have in common."""
    cfg = dict(row)
    slots = int(cfg["planes"]) * int(cfg["page-size"]) // 4096
    bits = BITS[str(cfg["cell"])] if cfg["one-shot"] == "on" else 1
    pages = min(int(cfg["pages"]), max(1, MOST_SLOTS // slots))
    cfg["pages"] = -(-pages // bits) * bits
    cfg["blocks"] = -(-int(cfg["blocks"]) // int(cfg["planes"])) * int(cfg["planes"])
    give_areas_room(cfg, slots * bits)
    return cfg


def give_areas_room(cfg: Config, unit: int) -> None:
    """Random write areas of sizes that a zone and the write buffer can hold."""
    dies = int(cfg["channels"]) * int(cfg["ways"])
    lanes = dies if cfg["segment"] == "all" else int(cfg["channels"])
    row = int(cfg["planes"]) * int(cfg["page-size"]) // 4096
    capacity = lanes * int(cfg["pages"]) * row
    flush = math.gcd(int(cfg["zrwa-flush"]) // 4096, capacity)
    size = min(int(cfg["zrwa-size"]) // 4096, capacity) // flush * flush or flush
    cfg["zrwa-flush"], cfg["zrwa-size"] = flush * 4096, size * 4096
    if cfg["zrwa"]:
        least = int(cfg["zrwa"]) * size + dies * unit
        cfg["write-buffer"] = max(int(cfg["write-buffer"]), least * 4096)


def open_line(cfg: Config) -> str:
    """The script line that opens the drive with a configuration."""
    # the one queue of all dies goes with neither
    no = ("cache", "suspend") if cfg["queue"] == "global" else ()
    return "open MEDIA " + " ".join(f"{name}={cfg[name]}" for name in cfg if name not in no)


class Writer:
    """Writes a script. It keeps its own idea of time and of the write pointers."""

    def __init__(self, seed: int, row: Config) -> None:
        self.rng = rng = random.Random(seed)
        row = drive_of(row)
        self.cfg: Config = row | {"seed": rng.randrange(1000)}
        all_dies = row["segment"] == "all"
        self.ways = 1 if all_dies else int(row["ways"])
        lanes = int(row["channels"]) * (int(row["ways"]) if all_dies else 1)
        shape = Shape(self.cfg)
        self.buffered = shape.unit > 1 or int(row.get("write-buffer", 0)) > 0
        self.capacity = lanes * shape.slots
        self.size = 1 << (self.capacity - 1).bit_length()
        self.zones = int(row["blocks"]) * self.ways
        self.pointers = [0] * self.zones
        self.areas: set[int] = set()  # zones that may have a random write area
        self.area_size = int(self.cfg["zrwa-size"]) // 4096
        self.area_flush = int(self.cfg["zrwa-flush"]) // 4096
        self.lines = [open_line(self.cfg)]
        self.now, self.tag, self.ident = 0, 1, 0
        # Few zones, hit often, wear their blocks differently from the rest.
        self.hot = rng.sample(range(self.zones), min(self.zones, rng.choice([1, 2, 3, 6])))
        self.gap_kind = rng.randrange(4)
        self.longest = rng.choice([1, 4, self.capacity])

    def wait(self) -> None:
        """Lets some time pass, often about as long as an operation, or none at all."""
        gap = 0
        if self.gap_kind == 1:
            gap = self.rng.choice([0, 1])
        elif self.gap_kind == 2:
            gap = self.rng.choice([0, 1, 1000, 40_000, 9_000_000])
        elif self.gap_kind == 3:
            gap = sum(
                int(self.cfg[name]) for name in self.rng.sample(TIMINGS, self.rng.randint(0, 2))
            )
            gap = self.rng.choice([gap, gap // 2, gap + 1, 0])
        self.now += gap

    def command(self, op: str, lba: int, nlb: int = 0, tag: int = 0) -> None:
        """One command; now and then the host forgets it."""
        self.ident += 1
        word = "detach" if self.rng.random() < 0.03 else "sub"
        self.lines.append(f"{word} {self.now} {self.ident} {op} {lba} {nlb} {tag}")

    def advance(self) -> None:
        """Lets the drive work up to now, in one of two ways."""
        self.lines.append(f"{self.rng.choice(['adv', 'step'])} {self.now}")

    def write(self, zone: int, nlb: int) -> None:
        """Writes to a zone at its pointer, or seldom somewhere else."""
        if zone in self.areas:
            self.write_area(zone, nlb)
            return
        lba = zone * self.size + self.pointers[zone]
        if self.rng.random() < 0.03:
            lba = self.rng.randrange(self.zones * self.size)
        elif nlb <= self.capacity - self.pointers[zone]:
            self.pointers[zone] += nlb
        op = self.rng.choice(["write"] * 7 + ["append", "append", "zeroes"])
        self.command(self.with_fua(op), lba, nlb, self.tag)
        self.tag += nlb

    def with_fua(self, op: str) -> str:
        """The operation, or, of some writes to a buffer, the same with FUA."""
        return "fua" if op == "write" and self.buffered and self.tag % 5 == 0 else op

    def write_area(self, zone: int, nlb: int) -> None:
        """Writes somewhere in a random write area, or beyond it, seldom too far."""
        rng, pointer = self.rng, self.pointers[zone]
        most = min(2 * self.area_size, self.capacity - pointer)
        offset = pointer + rng.randrange(max(1, most + (rng.random() < 0.05)))
        nlb = min(nlb, max(1, pointer + most - offset + (rng.random() < 0.03)))
        op = "append" if rng.random() < 0.02 else rng.choice(["write"] * 5 + ["zeroes"])
        self.command(self.with_fua(op), zone * self.size + offset, nlb, self.tag)
        self.tag += nlb
        beyond = offset + nlb - pointer - self.area_size
        if beyond > 0 and nlb <= pointer + most - offset and op != "append":
            self.pointers[zone] += -(-beyond // self.area_flush) * self.area_flush

    def use_area(self, zone: int) -> None:
        """Gives a zone a random write area, or commits some of it."""
        rng, pointer = self.rng, self.pointers[zone]
        if zone not in self.areas or rng.random() < 0.05:
            self.command("zopen", zone * self.size + rng.randrange(self.size))
            fits = pointer < self.capacity and pointer % self.area_flush == 0
            if fits and len(self.areas) < int(self.cfg["zrwa"]):
                self.areas.add(zone)
            return
        nlb = rng.randint(1, self.area_size // self.area_flush) * self.area_flush
        if rng.random() < 0.05:
            nlb = rng.randint(1, 2 * self.area_size)
        self.command("commit", zone * self.size + pointer, nlb)
        if nlb % self.area_flush == 0 and nlb <= min(self.area_size, self.capacity - pointer):
            self.pointers[zone] += nlb
        if self.pointers[zone] == self.capacity:
            self.areas.discard(zone)

    def reset(self, zone: int) -> None:
        """Resets a zone, by any address in it."""
        self.areas.discard(zone)
        self.command("reset", zone * self.size + self.rng.randrange(self.size))
        self.pointers[zone] = 0

    def finish(self, zone: int) -> None:
        """Finishes a zone."""
        self.areas.discard(zone)
        self.command("finish", zone * self.size)
        if self.cfg["finish"] == "pad":
            self.pointers[zone] = self.capacity

    def read(self, zone: int) -> None:
        """Reads from a zone on, seldom beyond the drive's end."""
        rng, end = self.rng, self.zones * self.size
        nlb = rng.randint(1, rng.choice([1, self.capacity, 2 * self.size]))
        lba = zone * self.size + rng.randrange(self.size)
        if lba + nlb > end and rng.random() < 0.9:
            nlb = end - lba
        self.command("read", lba, nlb)

    def read_all(self) -> None:
        """Reads all there is and waits for it."""
        for zone in range(self.zones):
            self.command("read", zone * self.size, self.size)
        self.now += FOREVER
        self.lines += [f"adv {self.now}", "counters"]

    def format(self) -> None:
        """Formats, perhaps with commands in flight: pointers may then be wrong, which is fine."""
        self.lines.append(f"format {self.now} {self.rng.choice([0, 16, 64, 128, 8])}")
        self.pointers = [0] * self.zones
        self.areas = set()

    def show(self) -> None:
        """The counters, and what of each zone a power cut would leave, where that is known."""
        self.lines.append("counters")
        if not (self.buffered and self.cfg["plp"] == "off"):
            self.lines.append("zones")

    def restart(self) -> None:
        """Closes without advancing and opens with other settings; time begins at 0."""
        if self.buffered and self.cfg["plp"] == "off":
            return  # what was lost depends on what was safe when
        self.cfg = dict(self.cfg)
        for name in self.rng.sample(VOLATILE, 2):
            self.cfg[name] = self.rng.choice(OPTIONS[name])
        self.cfg = drive_of(self.cfg)
        self.lines += ["counters", "close", open_line(self.cfg), "counters", "zones"]
        self.now = 0

    def wear(self) -> None:
        """Fills some zones and cycles another one, so that wear levelling has work to do."""
        hot = self.rng.randrange(self.zones)
        for zone in self.rng.sample(range(self.zones), self.rng.randint(1, self.zones)):
            if zone != hot:
                self.write(zone, self.capacity - self.pointers[zone] or 1)
        for _ in range(self.rng.randint(1, 5) * int(self.cfg["wl-threshold"])):
            self.now += FOREVER
            self.write(hot, self.rng.randint(1, max(1, self.capacity - self.pointers[hot])))
            self.now += FOREVER
            self.reset(hot)
        self.now += sum(self.rng.choice([0, int(self.cfg[name])]) for name in TIMINGS)

    def wear_busily(self) -> None:
        """The same without waiting until the drive is idle: levelling has to go on beside it."""
        hot = self.rng.sample(range(self.zones), min(self.zones, self.rng.choice([1, 2])))
        for zone in range(self.zones):
            if zone not in hot and self.rng.random() < 0.8:
                self.write(zone, self.capacity - self.pointers[zone] or 1)
        for _ in range(self.rng.randint(5, 20) * int(self.cfg["wl-threshold"])):
            zone = self.rng.choice(hot)
            self.write(zone, self.capacity - self.pointers[zone] or 1)
            if self.rng.random() < 0.5:
                self.now += self.rng.choice([1, 3]) * int(self.cfg["t-prog"])
            if self.rng.random() < 0.2:
                self.read(self.rng.randrange(self.zones))
            self.reset(zone)

    def anything(self) -> None:
        """One step of a random walk."""
        rng = self.rng
        self.wait()
        zone = rng.choice(self.hot) if rng.random() < 0.9 else rng.randrange(self.zones)
        left = self.capacity - self.pointers[zone]
        action = rng.random()
        if action < 0.45:
            if left == 0 and rng.random() < 0.8:
                self.reset(zone)
            else:
                self.write(zone, rng.randint(1, max(1, min(left, self.longest))))
        elif action < 0.70:
            self.read(zone)
        elif action < 0.80:
            self.reset(zone)
        elif action < 0.84:
            self.finish(zone)
        elif action < 0.90 and self.cfg["zrwa"]:
            self.use_area(zone)
        elif action < 0.86:
            self.command("flush", 0)
        elif action < 0.93:
            self.advance()
        elif action < 0.95:
            self.show()
        elif action < 0.96:
            self.wear()
        elif action < 0.98:
            if rng.random() < 0.8:
                self.now += FOREVER
                self.advance()
            self.format()
        else:
            if rng.random() < 0.5:
                self.now += rng.choice([1, 100, 100_000, FOREVER])
                self.advance()
            self.restart()


def make_script(seed: int, row: Config) -> list[str]:
    """A random script for a configuration."""
    writer = Writer(seed, row)
    rng = writer.rng
    if writer.cfg["wl-threshold"] and rng.random() < 0.5:
        rng.choice([writer.wear, writer.wear_busily])()
    for _ in range(rng.choice([8, 30, 60])):
        writer.anything()
    if rng.random() < 0.3:
        writer.restart()
    writer.now += FOREVER
    writer.lines.append(f"step {writer.now}")
    writer.show()
    writer.read_all()
    writer.restart()
    writer.read_all()
    return writer.lines


def good_blocks(media: Path, cfg: Config) -> list[int]:
    """Of each die, the good blocks of a media file: its records follow the header page."""
    dies = int(cfg["channels"]) * int(cfg["ways"])
    per_die = int(cfg["blocks"]) + int(cfg["spare-blocks"])
    with media.open("rb") as file:
        file.seek(4096)
        records = struct.unpack(f"<{dies * per_die}Q", file.read(8 * dies * per_die))
    bad = [record >> 56 & 1 for record in records]
    return [per_die - sum(bad[die * per_die : (die + 1) * per_die]) for die in range(dies)]


def parse_open(line: str) -> Config:
    """The configuration in an open line."""
    items = (item.split("=") for item in line.split()[2:])
    return {name: int(value) if value.isdigit() else value for name, value in items}


def completion(cmd: Command) -> Outcome:
    """What is printed of a command that is done."""
    done: Outcome = {"done": cmd.ident, "status": cmd.status, "at": cmd.done_ns}
    if cmd.op == "read":
        done["pages"] = [list(tags) for tags in cmd.pages]
    return done


def run_model(lines: list[str], good: Callable[[Config], list[int]]) -> list[Outcome]:
    """What the model says the core prints for a script."""
    drive: Drive | PageDrive | None = None
    outcomes: list[Outcome] = []
    for line in lines:
        word, *args = line.split()
        if word == "open":
            cfg = parse_open(line)
            if drive is None:
                drive = (PageDrive if cfg.get("ftl") == "page" else Drive)(cfg, good(cfg))
            else:
                drive.reopen(cfg)
            continue
        if word == "close":
            continue
        assert drive is not None
        if word in ("sub", "detach"):
            now, ident, lba, nlb, tag = (int(args[i]) for i in (0, 1, 3, 4, 5))
            op, fua = ("write", True) if args[2] == "fua" else (args[2], False)
            cmd = Command(ident, op, lba, nlb, tag, detached=word == "detach", fua=fua)
            outcomes.append({"sub": ident, "status": drive.submit(cmd, now)})
        elif word in ("adv", "step"):
            outcomes += map(completion, drive.advance(int(args[0])))
        elif word == "format":
            outcomes += map(completion, drive.advance(int(args[0])))
            outcomes.append({"format": drive.format(int(args[1]), int(args[0]))})
        elif word == "counters":
            outcomes.append({"counters": drive.all_counters()})
        elif word == "zones":
            assert isinstance(drive, Drive)
            outcomes.append(
                {"capacity": drive.capacity, "size": drive.zone_size, "zones": drive.written()}
            )
    return outcomes


def parse_outcomes(text: str) -> list[Outcome]:
    """What the core printed."""
    return [json.loads(line) for line in text.splitlines()]


def difference(model: list[Outcome], core: list[Outcome]) -> str | None:
    """The first difference in words, or None. Completions of one instant are in any order."""
    model, core = in_order(model), in_order(core)
    for index, (expected, got) in enumerate(zip(model, core, strict=False)):
        if "counters" in expected and "counters" in got:
            want, have = expected["counters"], got["counters"]
            assert isinstance(want, dict) and isinstance(have, dict)
            names = [name for name in have if name not in NOT_MODELLED]
            wrong = [
                f"{name}: model {want.get(name, 0)}, core {have[name]}"
                for name in names
                if want.get(name, 0) != have[name]
            ]
            if wrong:
                return f"outcome {index}, counters: " + "; ".join(wrong)
        elif expected != got:
            return f"outcome {index}:\n  model {expected}\n  core  {got}"
    if len(model) != len(core):
        longer = model if len(model) > len(core) else core
        rest = longer[min(len(model), len(core))]
        return f"only the {'model' if longer is model else 'core'} goes on: {rest}"
    return None


def in_order(outcomes: list[Outcome]) -> list[Outcome]:
    """Completions between two other outcomes sorted by time and command."""
    result: list[Outcome] = []
    for is_done, group in itertools.groupby(outcomes, key=lambda outcome: "done" in outcome):
        run = list(group)
        if is_done:
            assert [o["at"] for o in run] == sorted(o["at"] for o in run), "not in time order"
            run.sort(key=lambda outcome: (outcome["at"], outcome["done"]))
        result += run
    return result


def minimise(lines: list[str], fails: Callable[[list[str]], bool]) -> list[str]:
    """Delta debugging: drops ever smaller runs of lines, never the first, while it still fails."""
    size = len(lines) // 2
    while size:
        start = 1
        while start < len(lines):
            candidate = lines[:start] + lines[start + size :]
            if is_well_formed(candidate) and fails(candidate):
                lines = candidate
            else:
                start += size
        size //= 2
    return lines


def is_well_formed(lines: list[str]) -> bool:
    """Open and close alternate."""
    words = [line.split()[0] for line in lines if line.split()[0] in ("open", "close")]
    return all(word == ("open", "close")[index % 2] for index, word in enumerate(words)) and (
        lines[-1] != "close"
    )
