# SPDX-License-Identifier: GPL-2.0-or-later
"""The drive's core under fuzzers: commands, media files, logs, rules of faults, traces.

known/ has the inputs that lead to code no other of them leads to, and those that once found an
error. They are run each time. With --long, libFuzzer looks for new ones, an hour each.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from programs import CORE_SOURCES, made
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache

HERE = Path(__file__).resolve().parent
FUZZERS = [path.stem.removeprefix("fuzz_") for path in sorted(HERE.glob("fuzz_*.c"))]
SOURCES = ("tests/fuzz/*.[ch]", "tests/fuzz/Makefile", *CORE_SOURCES[-1:])

# Debian's packages that have libFuzzer
CLANG, RUNTIME = "clang-19", "libclang-rt-19-dev"
# Seconds for each fuzzer; RSD_FUZZ_S, if it is set
HOUR = 3600
# What libFuzzer says in the end: edges of the program that inputs went along
COVERED = re.compile(r"DONE\s+cov: (\d+)")
EXECUTED = re.compile(r"stat::number_of_executed_units: (\d+)")


def known(fuzzer: str) -> Path:
    """A file with an input a line, in hexadecimal; # begins a comment."""
    return HERE / "known" / f"{fuzzer}.hex"


def inputs(path: Path) -> list[bytes]:
    lines = path.read_text().splitlines()
    return [bytes.fromhex(line) for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("fuzzer", FUZZERS)
def test_known_inputs(rsd_cache: Cache, fuzzer: str) -> None:
    program = made(rsd_cache, "fuzz", SOURCES, ["tests/fuzz"]) / f"fuzz_{fuzzer}"
    done = subprocess.run([program, known(fuzzer)], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout == f"{len(inputs(known(fuzzer)))} inputs\n"


@pytest.mark.long
@pytest.mark.parametrize("fuzzer", FUZZERS)
def test_new_inputs(rsd_cache: Cache, tmp_path: Path, fuzzer: str) -> None:
    """What is found is left in build/fuzz: an input that fails, and all that are worth keeping."""
    if not shutil.which(CLANG):
        pytest.skip(f"{CLANG} not found: apt-get install {CLANG} {RUNTIME}")
    make = ["tests/fuzz", "FUZZ=1", f"CC={CLANG}"]
    program = made(rsd_cache, "fuzz", SOURCES, make) / f"fuzz_{fuzzer}"
    begin, kept = tmp_path / "begin", tmp_path / "kept"
    for folder in (begin, kept):
        folder.mkdir()
    for number, one in enumerate(inputs(known(fuzzer))):
        (begin / str(number)).write_bytes(one)
    seconds = int(os.environ.get("RSD_FUZZ_S", HOUR))
    out = REPOSITORY / "build" / "fuzz"
    out.mkdir(parents=True, exist_ok=True)
    words: list[str | Path] = [program, "-timeout=60", "-rss_limit_mb=2048", "-max_len=4096"]
    done = subprocess.run(
        [*words, "-len_control=0", f"-max_total_time={seconds}", "-print_final_stats=1"]
        + [f"-artifact_prefix={out}/", begin],
        capture_output=True,
        text=True,
        timeout=2 * seconds + 600,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    merge = [*words, "-merge=1", kept, begin]
    subprocess.run(merge, capture_output=True, check=True, timeout=3600)
    lines = sorted((path.read_bytes().hex() for path in kept.iterdir()), key=lambda x: (len(x), x))
    (out / known(fuzzer).name).write_text("".join(f"{line}\n" for line in lines))
    executed, covered = EXECUTED.search(done.stderr), COVERED.search(done.stderr)
    assert executed and covered, done.stderr[-5000:]
    print(
        f"fuzz_{fuzzer}, {seconds} s: {int(executed[1]):,} executions, {int(covered[1]):,} edges,"
        f" {len(lines)} inputs worth keeping, nothing found"
    )
