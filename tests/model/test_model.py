# SPDX-License-Identifier: GPL-2.0-or-later
"""Random scripts on the core and on the reference model: all that is seen must be equal.

The time of each completion to the nanosecond, the content of each page and its OOB, every
counter, write pointers, statuses. Configurations come from a table that has every pair of option
values. RSD_MODEL_SECONDS sets the time to spend (default 40), RSD_MODEL_SEED where to begin.
"""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from script import (
    Config,
    difference,
    good_blocks,
    make_script,
    minimise,
    pairwise_rows,
    parse_outcomes,
    run_model,
)

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "hw" / "rsd-nvme" / "core"
SECONDS = float(os.environ.get("RSD_MODEL_SECONDS", "40"))
FIRST_SEED = int(os.environ.get("RSD_MODEL_SEED", "0"))


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core with a driver that replays scripts, built with sanitizers."""
    program = tmp_path_factory.mktemp("model") / "replay"
    command = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-O1"]
    command += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DRSD_ASSERT_NAND"]
    command += [f"-I{CORE}", "-o", str(program), str(HERE / "replay.c")]
    command += [str(source) for source in sorted(CORE.glob("*.c"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return program


def compare(replay: Path, media: Path, lines: list[str]) -> str | None:
    """Runs a script on both; the first difference, or None."""
    media.unlink(missing_ok=True)
    script = "\n".join(lines).replace("MEDIA", str(media)) + "\n"
    done = subprocess.run(
        [replay], input=script, capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr}"

    def good(cfg: Config) -> list[int]:
        return good_blocks(media, cfg)

    return difference(run_model(lines, good), parse_outcomes(done.stdout))


def creatable(replay: Path, media: Path, lines: list[str]) -> list[str]:
    """The script with the first seed of bad blocks that leaves each die enough good ones."""
    for seed in range(1000):
        changed = [re.sub(r" seed=\d+", f" seed={seed}", line) for line in lines]
        what = compare(replay, media, changed[:1])
        if what is None:
            return changed
        assert "bad-blocks-ppm" in what, what
    raise AssertionError(f"no seed makes a drive: {lines[0]}")


def kind(what: str) -> str:
    """What a difference is about, numbers apart."""
    return re.sub(r"[0-9]+", "", what)[:40]


def explain(replay: Path, media: Path, seed: int, lines: list[str], what: str) -> str:
    """A failure: the seed, what differs, and the shortest script found that shows it."""
    deadline = time.monotonic() + 60

    def fails(candidate: list[str]) -> bool:
        if time.monotonic() > deadline:
            return False
        found = compare(replay, media, candidate)
        return found is not None and kind(found) == kind(what)

    short = minimise(lines, fails)
    return "\n".join(
        [
            f"seed {seed} (RSD_MODEL_SEED={seed}): {what}",
            "minimised:",
            *short,
            f"which shows: {compare(replay, media, short)}",
        ]
    )


def test_core_does_what_the_model_says(replay: Path, tmp_path: Path) -> None:
    """As many random scripts as fit the time, at least one for every row of the table."""
    rows = pairwise_rows(0)
    media = tmp_path / "media"
    end = time.monotonic() + SECONDS
    seed = FIRST_SEED
    while time.monotonic() < end or seed < FIRST_SEED + len(rows):
        lines = creatable(replay, media, make_script(seed, rows[seed % len(rows)]))
        what = compare(replay, media, lines)
        assert what is None, explain(replay, media, seed, lines, what)
        seed += 1
    print(f"{seed - FIRST_SEED} scripts")
