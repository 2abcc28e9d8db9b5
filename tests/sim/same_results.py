# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares two builds of rsdsim on random settings: a change that makes the core faster is to
change no result.

    python3 tests/sim/same_results.py BEFORE AFTER [--settings N] [--seed N]

BEFORE and AFTER are two programs (`make -C host/tools/rsdsim BUILD=DIR` builds DIR/rsdsim). Of
each setting, the JSON is compared, every submission and completion of a recorded trace, and, of a
drive in a media file, each byte of that file. Left out is the memory that the core takes, the
counter `ram_bytes`. The exit status is 1 if any setting differs.
"""

import argparse
import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from simulator import COUNTER, HEADER, RECORD, Simulator, header_bytes

FTLS = ("rsd", "page", "dftl", "block", "fast", "disk")
PATTERNS = ("uniform", "sequential", "zipf=0.99", "hotcold=80/20")


def _flash(rng: random.Random, ftl: str) -> dict[str, str | int]:
    """Geometry, times and features of a small flash drive."""
    cell = rng.choice(("slc", "slc", "mlc", "tlc"))
    bits = {"slc": 1, "mlc": 2, "tlc": 3}[cell]
    channels, ways = rng.choice(((2, 1), (1, 4), (2, 2), (3, 1), (4, 2)))
    planes, page_size = rng.choice(((1, 4096),) * 4 + ((2, 4096), (1, 16384), (2, 8192), (4, 4096)))
    props: dict[str, str | int] = {
        "ftl": ftl,
        "channels": channels,
        "ways": ways,
        "blocks": rng.choice((24, 40)) if channels * ways < 8 else 16,
        "pages": rng.choice((8, 24) if planes * page_size == 4096 else (4, 8)) * bits,
        "spare-blocks": rng.choice((4, 6)),
        "planes": planes,
        "page-size": page_size,
        "cell": cell,
        "one-shot": rng.choice(("off", "on")),
        "over-provision": rng.choice((30, 45, 70)),
        "idle-erase": rng.choice((0, 100_000, 2_000_000)),
        "queue": rng.choice(("way", "way", "way", "global")),
        "t-status": rng.choice((0, 0, 700)),
        "wl-threshold": rng.choice((0, 4, 32)),
        "cache": rng.choice(("off", "off", "on")),
        "suspend": rng.choice(("off", "off", "on")),
        "suspend-reads": rng.choice((1, 16)),
        "read-retries": rng.choice((0, 0, 20)),
        "bad-blocks-ppm": rng.choice((0, 0, 20_000)),
        "seed": rng.randrange(1000),
    }
    if props["cache"] == "on" or props["suspend"] == "on":
        props["queue"] = "way"  # nothing else goes with them
    if rng.random() < 0.3:
        props |= {"t-read-msb": 90_000, "t-prog-msb": 900_000}
    if rng.random() < 0.3:
        props["write-buffer"] = rng.choice(("1M", "4M"))
        props["ack"] = rng.choice(("program", "buffer"))
        props["plp"] = rng.choice(("on", "off"))
    if rng.random() < 0.2:
        props |= {"endurance": rng.choice((40, 200)), "life-spread": rng.choice((20, 60))}
    if rng.random() < 0.3:
        props |= {"t-fw-read": 1000, "t-fw-write": 2000, "t-link": 1500, "t-lat-read": 5000}
        props["cores"] = rng.choice((1, 3))
    return props


def _layer(rng: random.Random, ftl: str) -> dict[str, str | int]:
    """What only some translation layers have."""
    if ftl == "rsd":
        return {
            "segment": rng.choice(("all", "way")),
            "reset": rng.choice(("mark", "erase")),
            "finish": rng.choice(("mark", "pad")),
        }
    if ftl in ("page", "dftl"):
        return {
            "gc-policy": rng.choice(("greedy", "cost-benefit", "fifo")),
            "gc-unit": rng.choice(("block", "block", "all")),
            "gc-frontiers": rng.choice(("own", "shared")),
            "frontiers": rng.choice((0, 0, 1)),
            "map-cache": rng.choice((8192, 65536)),
        }
    return {
        "stripe": rng.choice(("block", "all")),
        "replacement-blocks": rng.choice(("on", "off")),
        "log-blocks": rng.choice((3, 10)),
    }


def _work(rng: random.Random, number: int, ftl: str) -> list[str]:
    options = ["--pattern", PATTERNS[number // len(FTLS) % len(PATTERNS)]]
    options += ["--size", rng.choice(("4K", "4K", "8K", "36K", "128K"))]
    options += ["--reads", str(rng.choice((0, 0, 30, 70)))]
    if ftl not in ("rsd", "disk"):
        options += ["--trims", str(rng.choice((0, 0, 10)))]
    if rng.random() < 0.3:
        options += ["--rate", str(rng.choice((2000, 50_000)))]
    else:
        options += ["--depth", str(rng.choice((1, 7, 32, 64, 300)))]
    options += ["--seed", str(rng.randrange(1000))]
    merges = ftl in ("block", "fast")  # they cost much work
    options += ["--precondition", "fill" if merges else rng.choice(("fill", "1", "2"))]
    return [*options, "--requests", str(200 if merges else 1000)]


def settings(count: int, seed: int) -> Iterator[tuple[bool, list[str], list[str]]]:
    """Of each: is it in a media file, the drive's options, those of the work"""
    for number in range(count):
        rng = random.Random(seed * 1_000_003 + number)
        ftl = FTLS[number % len(FTLS)]
        if ftl == "disk":
            props: dict[str, str | int] = {"ftl": "disk", "blocks": 2}
        else:
            props = _flash(rng, ftl) | _layer(rng, ftl)
        drive = [part for name in props for part in ("--set", f"{name}={props[name]}")]
        yield rng.random() < 0.15, drive, _work(rng, number, ftl)


def _forget_memory(value: object) -> object:
    if isinstance(value, dict):
        return {k: _forget_memory(v) for k, v in value.items() if k != "ram_bytes"}
    return value


def result(program: Path, directory: Path, media: bool, drive: list[str], work: list[str]) -> str:
    """A hash of all that a run gives, or what it said when it failed."""
    trace, file = directory / "trace", directory / "media"
    trace.unlink(missing_ok=True)
    file.unlink(missing_ok=True)
    simulator = Simulator(program, directory)
    if media:
        made = simulator.run(*drive, "--age", file, "--precondition", "fill")
        if made.returncode != 0:
            return made.stderr.decode()
        drive = [*drive, "--media", str(file)]
    done = simulator.run(*drive, *work, "--json", "--record", trace)
    if done.returncode != 0:
        return done.stderr.decode()
    content = json.dumps(_forget_memory(json.loads(done.stdout)))
    digest = hashlib.sha256(content.encode())
    recorded = trace.read_bytes()
    for at in range(header_bytes(trace), len(recorded), RECORD.size):
        record = recorded[at : at + RECORD.size]
        if RECORD.unpack(record)[7] != COUNTER:
            digest.update(record)
    digest.update(recorded[: HEADER.size])
    if media:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--settings", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    differ = ran = 0
    with tempfile.TemporaryDirectory() as directory:
        for case in settings(arguments.settings, arguments.seed):
            before, after = (
                result(program.resolve(), Path(directory), *case)
                for program in (arguments.before, arguments.after)
            )
            ran += not before.startswith("rsdsim: ")
            if before != after:
                differ += 1
                print("differs:", *(["--media"] if case[0] else []), *case[1], *case[2])
                print("  before:", before.strip(), "\n  after: ", after.strip())
    print(f"{arguments.settings} settings, {ran} of them ran to the end, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
