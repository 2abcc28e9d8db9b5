# SPDX-License-Identifier: GPL-2.0-or-later
"""HFM's data sections in RFS's core, and in a model of the paper, on the same histories."""

import random
import subprocess
from pathlib import Path

import pytest
from hfm_model import Section, following, partition

from programs import fs_programs
from rsd.cache import Cache

PARTITIONS = [
    (8, 1, 0),
    (64, 2, 0),
    (512, 3, 32),
    (4, 1, 0),
    (512, 1, 0),
    (4, 2, 0),
    (8, 3, 2),
    (64, 3, 2),
    (32, 3, 32),
    (16, 3, 32),
    (4096, 3, 64),
]


@pytest.fixture(scope="module")
def program(rsd_cache: Cache) -> Path:
    """What carries out a history with the core."""
    return fs_programs(rsd_cache) / "section_history"


def test_the_model_has_the_papers_examples() -> None:
    """Of 3.2.1 and 3.2.2."""
    assert [one.start for one in partition(8, 1, 0)] == [0, 1, 2, 4]
    second = [one.start for one in partition(64, 2, 0) if one.level == 1]
    assert second == [32, 33, 34, 36, 40, 48]
    third = [one for one in partition(512, 3, 32) if (one.level, one.start) >= (1, 256)]
    assert [one.start for one in third if one.level == 1][:8] == [
        *(256, 257, 258, 260, 264, 272, 288, 320),
    ]
    assert [one.start for one in third if one.level == 3 and 352 <= one.start < 384] == [
        *(352, 353, 354, 356, 360, 368),
    ]
    assert max(one.level for one in partition(512, 3, 32)) == 4
    for size, rho, pos, level, index, start in (
        (8, 1, 3, 0, 2, 4),
        (64, 2, 35, 1, 2, 36),
        (512, 3, 161, 2, 1, 162),
    ):
        found = following(size, rho, 32)[pos]
        assert (found.level, found.index, found.start) == (level, index, start)


def history(section: Section, chance: random.Random, length: int) -> tuple[list[str], list[str]]:
    """Random words, and what the model says to each."""
    words, answers = [], []
    addresses = iter(range(4096))
    for _ in range(length):
        kind = chance.random()
        if kind < 0.3 and (address := next(addresses, None)) is not None:
            words.append(f"add {address}")
            answers.append("added" if section.add(address) else "none")
        elif kind < 0.9:
            least = chance.choice((1, 1, section.size))
            most = least + chance.choice((2, section.size, 3 * section.size))
            units = chance.randint(least, most)
            empty = units >= section.size
            words.append(f"place {units} {empty:d}")
            p = section.place(units, empty)
            answers.append(
                f"{p.address} {p.start} {p.units} {p.end} {p.reused:d} {p.full:d}" if p else "none"
            )
        elif kind < 0.93:
            words.append("oldest 0")
            oldest = section.oldest()
            answers.append("none" if oldest is None else str(oldest))
        elif kind < 0.94 and section.extents:
            address = chance.choice(section.extents).address
            section.remove(address)
            words.append(f"remove {address}")
            answers.append("removed")
        elif kind < 0.99:
            pos = chance.randrange(section.size)
            after = section.next.get(pos)
            words.append(f"map {pos}")
            answers.append(f"{after.level} {after.index} {after.start}" if after else "none")
        else:
            units = chance.randint(1, section.size)
            words.append(f"collect {units}")
            answers.append("write" if section.collect(units) else "wait")
    return words, answers


@pytest.mark.parametrize("size,rho,delta", PARTITIONS)
def test_random_histories(program: Path, size: int, rho: int, delta: int) -> None:
    placed = reused = 0
    for seed in range(6):
        chance = random.Random(f"{size} {rho} {seed}")
        theta = chance.choice((1, 1, 2, max(1, size // 8)))
        unit, descriptors = chance.choice((0, size, 4 * size)), chance.choice((3, 40, 1024))
        section = Section(size, rho, delta, theta, unit, descriptors)
        words, answers = history(section, chance, 3000)
        settings = f"{size} {rho} {delta} {theta} {unit} {descriptors}"
        done = subprocess.run(
            [program],
            input="\n".join([settings, *words, ""]),
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
        for at, (word, said, right) in enumerate(
            zip(words, done.stdout.splitlines(), answers, strict=True)
        ):
            assert said == right, f"seed {seed}, {at}: {word}"
        placed += sum(len(one.split()) == 6 for one in answers)
        reused += sum(len(one.split()) == 6 and one.split()[4] == "1" for one in answers)
    assert placed > 2000 and reused > 500
