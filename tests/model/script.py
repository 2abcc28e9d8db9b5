# SPDX-License-Identifier: GPL-2.0-or-later
"""Scripts of commands: made at random, run on the model, compared with what the core printed."""

import itertools
import json
import random
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

from reference import Command, Drive

Config = dict[str, int | str]
# One line printed by the core or what the model says in its place.
Outcome = dict[str, object]

# Every pair of values of any two options occurs in some row of pairwise_rows().
OPTIONS: dict[str, list[int | str]] = {
    "segment": ["all", "way"],
    "queue": ["way", "global"],
    "reset": ["mark", "erase"],
    "finish": ["mark", "pad"],
    "idle-erase": [0, 1, 700, 2_000_000],
    "planes": [1, 2],
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
}
# What may differ from one opening of a file to the next.
VOLATILE = [
    "queue", "reset", "finish", "idle-erase", "t-cmd", "t-xfer", "t-read", "t-prog", "t-erase",
]  # fmt: skip
# Counters that the model does not have.
NOT_MODELLED = {"ram_bytes", "endurance"}
FOREVER = 10**12


def pairwise_rows(seed: int) -> list[Config]:
    """Greedy rows that cover all pairs of option values."""
    rng = random.Random(seed)
    names = list(OPTIONS)
    missing = {
        ((a, x), (b, y))
        for a, b in itertools.combinations(names, 2)
        for x in OPTIONS[a]
        for y in OPTIONS[b]
    }
    rows: list[Config] = []
    while missing:
        (first, x), (second, y) = min(missing, key=repr)
        row: Config = {first: x, second: y}
        for name in rng.sample(names, len(names)):
            if name not in row:
                candidates = rng.sample(OPTIONS[name], len(OPTIONS[name]))
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


def open_line(cfg: Config) -> str:
    """The script line that opens the drive with a configuration."""
    return "open MEDIA " + " ".join(f"{name}={value}" for name, value in cfg.items())


def make_script(seed: int, row: Config) -> list[str]:
    """A random script for a configuration. Times begin at 0 after each opening.

    It keeps its own idea of the write pointers to make most commands valid; a few are not.
    """
    rng = random.Random(seed)
    cfg: Config = row | {"seed": rng.randrange(1000), "wl-threshold": 0}
    lanes = int(cfg["channels"]) * (int(cfg["ways"]) if cfg["segment"] == "all" else 1)
    capacity = lanes * int(cfg["pages"])
    size = 1 << (capacity - 1).bit_length()
    zones = int(cfg["blocks"]) * (1 if cfg["segment"] == "all" else int(cfg["ways"]))
    # Few zones, hit often, wear their blocks differently from the rest.
    hot = rng.sample(range(zones), min(zones, rng.choice([1, 2, 3, 6])))
    pointers = [0] * zones
    lines = [open_line(cfg)]
    now, tag = 0, 1
    gaps = [[0], [0, 1], [0, 3, 40], [0, 1000, 40_000], [200, 500_000, 9_000_000]][rng.randrange(5)]
    longest = rng.choice([1, 4, capacity])
    for ident in range(1, rng.choice([8, 30, 60])):
        now += rng.choice(gaps)
        action = rng.random()
        zone = rng.choice(hot) if rng.random() < 0.9 else rng.randrange(zones)
        line = "detach" if rng.random() < 0.03 else "sub"
        if action < 0.45:
            left = capacity - pointers[zone]
            if left == 0 and rng.random() < 0.8:
                lines.append(f"sub {now} {ident} reset {zone * size} 0 0")
                pointers[zone] = 0
                continue
            nlb = rng.randint(1, max(1, min(left, longest)))
            lba = zone * size + pointers[zone]
            if rng.random() < 0.03:
                lba = rng.randrange(zones * size)
            elif left:
                pointers[zone] += nlb
            op = "zeroes" if rng.random() < 0.1 else "write"
            lines.append(f"{line} {now} {ident} {op} {lba} {nlb} {tag}")
            tag += nlb
        elif action < 0.70:
            nlb = rng.randint(1, rng.choice([1, capacity, 2 * size]))
            lba = zone * size + rng.randrange(size)
            if lba + nlb > zones * size and rng.random() < 0.9:
                nlb = zones * size - lba
            lines.append(f"{line} {now} {ident} read {lba} {nlb} 0")
        elif action < 0.80:
            lines.append(f"{line} {now} {ident} reset {zone * size + rng.randrange(size)} 0 0")
            pointers[zone] = 0
        elif action < 0.84:
            lines.append(f"{line} {now} {ident} finish {zone * size} 0 0")
            if cfg["finish"] == "pad":
                pointers[zone] = capacity
        elif action < 0.86:
            lines.append(f"{line} {now} {ident} flush 0 0 0")
        elif action < 0.94:
            lines.append(f"{rng.choice(['adv', 'step'])} {now}")
        elif action < 0.95:
            lines.append("zones")
        elif action < 0.97:
            now += FOREVER
            lines += [f"adv {now}", "counters"]
            if rng.random() < 0.5:
                lines.append(f"format {now} {rng.choice([0, 16, 64, 128, 8])}")
                pointers = [0] * zones
        else:
            if rng.random() < 0.5:
                now += rng.choice([1, 100, 100_000, FOREVER])
                lines.append(f"adv {now}")
            cfg = dict(cfg)
            for name in rng.sample(VOLATILE, 2):
                cfg[name] = rng.choice(OPTIONS[name])
            lines += ["counters", "close", open_line(cfg), "counters", "zones"]
            now = 0
    now += FOREVER
    lines += [f"step {now}", "counters", "zones"]
    for zone in range(zones):
        lines.append(f"sub {now} {100_000 + zone} read {zone * size} {size} 0")
    lines += [f"adv {now + FOREVER}", "counters", "close", open_line(cfg), "counters", "zones"]
    for zone in range(zones):
        lines.append(f"sub 0 {200_000 + zone} read {zone * size} {size} 0")
    lines += [f"adv {FOREVER}", "counters"]
    return lines


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


def run_model(lines: list[str], good: Callable[[Config], list[int]]) -> list[Outcome]:
    """What the model says the core prints for a script."""
    drive: Drive | None = None
    outcomes: list[Outcome] = []
    for line in lines:
        word, *args = line.split()
        if word == "open":
            cfg = parse_open(line)
            if drive is None:
                drive = Drive(cfg, good(cfg))
            else:
                drive.reopen(cfg)
            continue
        if word == "close":
            continue
        assert drive is not None
        if word in ("sub", "detach"):
            now, ident, lba, nlb, tag = (int(args[i]) for i in (0, 1, 3, 4, 5))
            cmd = Command(ident, args[2], lba, nlb, tag, detached=word == "detach")
            outcomes.append({"sub": ident, "status": drive.submit(cmd, now)})
        elif word in ("adv", "step"):
            for cmd in drive.advance(int(args[0])):
                done: Outcome = {"done": cmd.ident, "status": "ok", "at": cmd.done_ns}
                if cmd.op == "read":
                    done["pages"] = [list(tags) for tags in cmd.pages]
                outcomes.append(done)
        elif word == "format":
            outcomes.append({"format": drive.format(int(args[1]), int(args[0]))})
        elif word == "counters":
            outcomes.append({"counters": drive.all_counters()})
        elif word == "zones":
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
