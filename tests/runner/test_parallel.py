# SPDX-License-Identifier: GPL-2.0-or-later
"""How ./rsd test shares tests between processes, on a few of no content."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY
from rsd.cli import parallel

TESTS = """\
import os, time, pytest
{mark}

@pytest.mark.parametrize("number", range(4))
def test_it(number):
    with open("ran", "a") as stream:
        stream.write("{name} " + os.environ.get("PYTEST_XDIST_WORKER", "alone") + "\\n")
    time.sleep(0.3)
    assert (number, "{name}") != (0, "{broken}")
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Tests of a file that fails, of one that does not, and of guests."""
    (tmp_path / "tests").mkdir()
    shutil.copy(REPOSITORY / "tests/conftest.py", tmp_path / "tests")
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    for name, folder in {"one": "unit", "two": "docs", "three": "guest"}.items():
        mark = "pytestmark = pytest.mark.guest" if folder == "guest" else ""
        directory = tmp_path / "tests" / folder
        directory.mkdir()
        text = TESTS.format(name=name, mark=mark, broken="one")
        (directory / f"test_{name}.py").write_text(text)
    return tmp_path


def run(suite: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
    """Pytest with what ./rsd test gives it; (file, process) of each test, in their order."""
    command = [sys.executable, "-m", "pytest", "--color=no", *parallel(2), *arguments]
    environment = {name: text for name, text in os.environ.items() if "PYTEST" not in name}
    environment["PYTHONPATH"] = str(REPOSITORY / "host/tools")
    done = subprocess.run(
        command, cwd=suite, env=environment, capture_output=True, text=True, timeout=600
    )
    return done, [line.split() for line in (suite / "ran").read_text().splitlines()]


def test_a_file_is_one_processs(suite: Path) -> None:
    done, ran = run(suite)
    assert len({process for name, process in ran if name == "one"}) == 1
    assert len({process for name, process in ran if name == "two"}) == 1
    assert "1 failed, 11 passed" in done.stdout.splitlines()[-1]
    assert done.returncode == 1


def test_guests_are_shared(suite: Path) -> None:
    _, ran = run(suite, "tests/guest")
    assert len(ran) == 4
    assert {process for _, process in ran} == {"gw0", "gw1"}


def test_a_failure_is_told_at_once(suite: Path) -> None:
    done, _ = run(suite)
    told = done.stdout.index("FAILED tests/unit/test_one.py::test_it[0] (call)")
    assert told < done.stdout.index("[100%]") < done.stdout.index("= FAILURES =")


def test_one_process_if_it_is_asked_for(suite: Path) -> None:
    done, ran = run(suite, "-n", "0", "-k", "one or two")
    assert [name for name, _ in ran] == ["one"] * 4 + ["two"] * 4
    assert {process for _, process in ran} == {"alone"}
    assert "1 failed, 7 passed, 4 deselected" in done.stdout.splitlines()[-1]
