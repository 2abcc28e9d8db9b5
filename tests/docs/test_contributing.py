# SPDX-License-Identifier: GPL-2.0-or-later
"""CONTRIBUTING.md: its examples apply and do what it says, its floors are those that lint checks.

tests/unit/test_outside_ftl.py applies the example of an FTL, and runs it.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from examples import apply, examples, files
from rsd.artifacts import REPOSITORY

PAGE = (REPOSITORY / "CONTRIBUTING.md").read_text()
CORE = REPOSITORY / "hw/rsd-nvme/core"
FS = REPOSITORY / "host/fs"


def test_there_are_four() -> None:
    assert examples().keys() == {"preset", "ftl", "benchmark", "check"}
    assert PAGE.count("```diff") == len(examples())


def checked(test: str) -> tuple[str, ...]:
    """FLOORS of a test in tests/lint, the lowest first."""
    for statement in ast.parse((REPOSITORY / "tests/lint" / test).read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "FLOORS":
            found: tuple[str, ...] = ast.literal_eval(statement.value)
            return found
    raise AssertionError(f"{test} has no FLOORS")


def floors(name: str) -> str:
    """A floor a line, the highest first, as the page shows them."""
    lint = "test_floors.py" if name == "rfs" else "test_core_floors.py"
    shown = ["drive.c" if floor == "." else f"{floor}/" for floor in checked(lint)]
    return "```\n" + "".join(f"  {line}\n" for line in reversed(shown)) + "```\n"


@pytest.mark.parametrize("name", ["drive", "rfs"])
def test_floors_are_those_that_lint_checks(name: str) -> None:
    shown = PAGE.split(f"<!-- floors: {name} -->\n")[1].split("<!-- end -->")[0]
    assert shown == floors(name)


def test_folders_and_tests_that_it_names_exist() -> None:
    for name in re.findall(r"`((?:tests|host|hw|ci|docs)/[\w./-]+?)/?`", PAGE):
        assert (REPOSITORY / name).exists(), name
    for line in re.findall(r"`\./rsd test ([^`]*)`", PAGE):
        for word in line.split():
            if word.startswith("tests/"):
                place = REPOSITORY / word
                assert place.is_dir() or (place.exists() and place.suffix == ".py"), word


def compiles(source: Path, *options: str | Path) -> None:
    done = subprocess.run(
        ["cc", "-fsyntax-only", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Werror", *options]
        + ["-Wno-missing-field-initializers", source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["preset", "check"])
def test_c_compiles_with_it(name: str, tmp_path: Path) -> None:
    apply(examples()[name], tmp_path)
    include = [f"-I{CORE / 'api'}", f"-I{FS / 'core'}", f"-I{FS / 'user'}"]
    include += [f"-I{REPOSITORY / 'tests/unit'}", f"-I{REPOSITORY / 'tests/fs'}"]
    for path in files(examples()[name]):
        # QEMU's headers are not here
        if path != "hw/rsd-nvme/rsd-ns.c":
            quoted = f"-I{(REPOSITORY / path).parent}"
            compiles(tmp_path / path, *include, quoted)


def test_the_benchmark_is_listed(tmp_path: Path) -> None:
    # the systems have the drive's list of translation layers
    for folder in ("host/tools/rsd", "hw/rsd-nvme/core/api"):
        shutil.copytree(
            REPOSITORY / folder,
            tmp_path / folder,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    apply(examples()["benchmark"], tmp_path)
    listed = python(tmp_path, "-m", "rsd", "compare", "--list")
    assert re.search(r"^small-sqlite-wal ", listed, re.M)


def python(root: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": str(root / "host/tools")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_the_preset_runs(tmp_path: Path) -> None:
    """In rsdsim, which needs no QEMU."""
    for folder in ("hw/rsd-nvme/core", "hw/rsd-nvme", "host/tools/rsdsim", "host/tools/common"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder, dirs_exist_ok=True)
    apply(examples()["preset"], tmp_path)
    make(tmp_path / "host/tools/rsdsim", f"BUILD={tmp_path}")
    command = [tmp_path / "rsdsim", "--preset", "small-slc", "--requests", "10"]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.long
def test_the_check_finds_what_it_is_for(tmp_path: Path) -> None:
    """And without its first half, its test fails."""
    for folder in ("host/fs", "tests/fs", "tests/unit"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    check = tmp_path / "host/fs/core/tools/check.c"
    before = check.read_text()
    apply(examples()["check"], tmp_path)
    program = tmp_path / "test_core"
    make(tmp_path / "tests/fs", f"BUILD={tmp_path}", str(program))
    assert subprocess.run([program, "symlink_to_nothing"], check=False).returncode == 0
    check.write_text(before)
    make(tmp_path / "tests/fs", f"BUILD={tmp_path}", str(program))
    assert subprocess.run([program, "symlink_to_nothing"], check=False).returncode != 0


def make(folder: Path, *words: str) -> None:
    command: Sequence[str | Path] = ["make", "-s", "-C", folder, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
