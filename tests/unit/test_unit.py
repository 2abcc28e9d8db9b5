# SPDX-License-Identifier: GPL-2.0-or-later
"""The drive's core: builds the C tests with sanitizers and runs each as a case of its own."""

import contextlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from programs import core_programs, in_memory
from rsd.cache import Cache

HERE = Path(__file__).resolve().parent
SKIPPED = 77
# Programs made from another one's source.
VARIANTS = {
    "test_nand_production": "test_nand",
    "test_dftl_sparse": "test_dftl",
    "test_page_ftl_sparse": "test_page_ftl",
    "test_ftl_steps": "test_ftl",
}


def cases() -> list[tuple[str, str]]:
    """(program, test) of every TEST(name) in the sources."""
    found = []
    programs = {path.stem: path.stem for path in sorted(HERE.glob("test_*.c"))} | VARIANTS
    for program, source in programs.items():
        text = (HERE / f"{source}.c").read_text()
        found += [(program, name) for name in re.findall(r"^TEST\((\w+)\)", text, re.MULTILINE)]
    return found


@pytest.fixture(scope="module")
def build(rsd_cache: Cache) -> Path:
    """Directory of the built programs."""
    return core_programs(rsd_cache)


@pytest.mark.parametrize(("program", "test"), cases(), ids=lambda value: value)
def test_core(build: Path, tmp_path: Path, program: str, test: str) -> None:
    """One test of one program."""
    # Tests of media files themselves stay on the disk, where users have theirs.
    on_disk = contextlib.nullcontext(str(tmp_path))
    with on_disk if program == "test_media" else in_memory(tmp_path) as directory:
        done = subprocess.run(
            [build / program, test],
            env=os.environ | {"RSD_TEST_DIR": directory},
            capture_output=True,
            text=True,
            timeout=900,
        )
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_every_test_is_found(build: Path) -> None:
    """What the programs list is what was run above."""
    for program in {program for program, _ in cases()}:
        done = subprocess.run(
            [build / program, "--list"], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == [test for name, test in cases() if name == program]


def test_benchmark_prints_json(build: Path) -> None:
    """A short run of the benchmark: figures are there and add up to the drive's timing."""
    done = subprocess.run(
        [build / "bench_core", "--seconds", "0.2", "--blocks", "512"],
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(done.stdout)
    assert result["capacity_bytes"] == 512 * 32 * 128 * 4096
    assert result["map_bytes"] == 512 * 32 * 4
    assert result["write"]["pages"] > 0
    assert result["read"]["pages_per_virtual_s"] <= 8e9 / 33_333 * 1.001
