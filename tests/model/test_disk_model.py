# SPDX-License-Identifier: GPL-2.0-or-later
"""ftl=disk on random commands at random times: when each is done, to the nanosecond, what it reads
and all counters of the disk equal those of the reference (disk_reference.py)."""

import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

from disk_reference import PAGE, Command, Disk, Settings

SCRIPTS = int(os.environ.get("RSD_MODEL_SCRIPTS", "800")) // 4
FIRST_SEED = int(os.environ.get("RSD_MODEL_SEED", "0"))
FOREVER = 10**14

CHOICES: dict[str, list[int]] = {
    "blocks": [3, 40, 200],
    "pages": [7, 16],
    "disk-rpm": [3600, 7200, 10007],
    "disk-seek-min": [0, 300_000, 1_000_000],
    "disk-seek-max": [10_000_000, 18_000_001],
    "disk-head-switch": [0, 500_000, 1_500_000],
    "disk-heads": [1, 2, 5],
    "disk-zones": [1, 2, 7],
    "disk-outer-slots": [13, 40],
    "disk-inner-slots": [8, 13],
    "disk-segments": [0, 1, 3],
    "disk-segment-size": [4 * 1024, 64 * 1024, 200 * 1024],
    "disk-write-cache": [0, 8 * PAGE, 64 * PAGE],
}


def settings_of(rng: random.Random) -> Settings:
    cfg = {name: rng.choice(values) for name, values in CHOICES.items()}
    low, high = cfg["disk-seek-min"], cfg["disk-seek-max"]
    least, most = -(-(115 * low + 20 * high) // 135), (27 * low + 108 * high) // 135
    cfg["disk-seek-avg"] = rng.choice([least, most, rng.randint(least, most)])
    return cfg


def commands(rng: random.Random, lbas: int, length: int) -> Iterator[tuple[int, Command]]:
    """At rest or in bursts; to a few places, anywhere, or where the last one ended."""
    time, tag, after = 0, 1, 0
    pause = rng.choice([3_000, 300_000, 5_000_000])
    reads = rng.choice([20, 45, 90])
    ops = ["read", "write", "fua", "zeroes", "trim", "flush"]
    for number in range(length):
        op = rng.choices(ops, [reads, 35, 4, 3, 3, 5])[0]
        nlb = rng.choice([1, 1, 2, 8, rng.randint(1, 30)])
        lba = rng.choice([after, after + rng.randrange(3), rng.randrange(20), rng.randrange(lbas)])
        nlb = min(nlb, lbas)
        lba = min(lba, lbas - nlb)
        yield time, Command(number, op, lba, nlb, tag)
        after, tag = (lba + nlb) % lbas, tag + nlb
        if rng.random() < 0.6:
            time += rng.randrange(pause)
        if rng.random() < 0.03:
            time += 100_000_000


def run_core(
    replay: Path, media: Path, cfg: Settings, told: list[tuple[int, Command]]
) -> list[str]:
    options = " ".join(f"{name}={value}" for name, value in cfg.items())
    lines = [f"open {media} ftl=disk channels=1 ways=1 {options}"]
    for time, c in told:
        lines += [f"step {time}", f"sub {time} {c.number} {c.op} {c.lba} {c.nlb} {c.tag}"]
    lines += [f"step {FOREVER}", "counters", "end"]
    done = subprocess.run(
        [replay], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def check_disks(replay: Path, tmp_path: Path, seeds: range) -> dict[str, int]:
    """A script of each seed; the sums of the counters."""
    sums: dict[str, int] = {}
    for seed in seeds:
        rng = random.Random(seed)
        cfg = settings_of(rng)
        lbas = cfg["blocks"] * cfg["pages"]
        told = list(commands(rng, lbas, rng.choice([40, 150])))
        media = tmp_path / f"{seed}.rsd"
        printed = [json.loads(line) for line in run_core(replay, media, cfg, told)]
        media.unlink()
        disk = Disk(cfg, lbas)
        for time, command in told:
            disk.submit(time, command)
        disk.run_until(FOREVER)
        found = {line["done"]: line for line in printed if "done" in line}
        for _, command in told:
            line, what = found[command.number], f"seed {seed}: {command}"
            assert line["at"] == command.done, f"{what}: the core says {line['at']}"
            if command.op == "read":
                assert [page[0] for page in line["pages"]] == command.pages, what
        counters = next(line["counters"] for line in printed if "counters" in line)
        for name, value in disk.count.items():
            assert counters[name] == value, f"seed {seed}: {name}"
            sums[name] = sums.get(name, 0) + value
    return sums


def test_disks_do_what_the_model_says(replay: Path, tmp_path: Path) -> None:
    assert all(check_disks(replay, tmp_path, range(FIRST_SEED, FIRST_SEED + SCRIPTS)).values())
