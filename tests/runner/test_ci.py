# SPDX-License-Identifier: GPL-2.0-or-later
"""The container's recipe and the GitHub action, as far as they can be tried without either."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rsd import packages, site
from rsd.artifacts import REPOSITORY, Artifacts
from rsd.cache import Cache
from rsd.progress import Progress

CONTAINER = REPOSITORY / "ci/container"
ACTION = REPOSITORY / "ci/action"


@pytest.fixture(scope="module")
def linters(rsd_cache: Cache) -> Path:
    """The directory that docs/requirements.txt is installed into."""
    return site.mkdocs(rsd_cache, Progress())


def test_the_recipe_is_clean(linters: Path) -> None:
    (hadolint,) = linters.glob("bin/hadolint*")
    done = subprocess.run(
        [hadolint, CONTAINER / "Containerfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_recipe_installs_what_is_asked_for() -> None:
    """So that --no-install in it has nothing to say."""
    text = (CONTAINER / "Containerfile").read_text()
    block = text.split("--no-install-recommends ")[1].split("&&")[0]
    installed = set(block.replace("\\", " ").split())
    asked = {one.package for one in (*packages.REQUIREMENTS, packages.UNPRIVILEGED)}
    assert installed - asked == {"python3", "python3-venv", "ca-certificates"}
    assert asked <= installed


def test_the_recipe_copies_what_setup_reads() -> None:
    """The file that says what is left out leaves nothing of git's out."""
    ignored = (CONTAINER / "ignore").read_text().split()
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in ignored:
        anywhere, plain = name.startswith("**/"), name.removeprefix("**/").removesuffix("/*")
        for path in tracked:
            folders = path.split("/")[:-1]
            assert plain not in (folders if anywhere else folders[:1]), f"{name}: {path}"


def schema(linters: Path, name: str) -> Callable[[Any], Any]:
    sys.path.insert(0, str(linters))
    try:
        import fastjsonschema  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(linters))
    path = linters / f"check_jsonschema/builtin_schemas/vendor/github-{name}.json"
    found: Callable[[Any], Any] = fastjsonschema.compile(json.loads(path.read_text()))
    return found


def read(linters: Path, path: Path) -> Any:
    sys.path.insert(0, str(linters))
    try:
        import yaml  # type: ignore[import-untyped]
    finally:
        sys.path.remove(str(linters))
    content = yaml.safe_load(path.read_text())
    # YAML 1.1 has on as a name of true
    return {("on" if key is True else key): value for key, value in content.items()}


def test_the_action_is_valid(linters: Path) -> None:
    action = read(linters, ACTION / "action.yml")
    valid = schema(linters, "actions")
    valid(action)
    with pytest.raises(Exception, match="runs"):
        valid({key: value for key, value in action.items() if key != "runs"})
    names = set(re.findall(r"inputs\.(\w+)", (ACTION / "action.yml").read_text()))
    assert names == action["inputs"].keys()


def test_the_example_is_valid_and_has_the_inputs(linters: Path) -> None:
    example = read(linters, ACTION / "example.yml")
    schema(linters, "workflows")(example)
    inputs = read(linters, ACTION / "action.yml")["inputs"]
    (given,) = (step["with"] for step in example["jobs"]["figures"]["steps"] if "with" in step)
    assert given.keys() <= inputs.keys()
    assert {name for name, one in inputs.items() if one.get("required")} <= given.keys()


def gate(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [ACTION / "gate", "job.fio", "expected.json", *options]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_the_gate_wants_a_job(tmp_path: Path) -> None:
    assert gate(tmp_path).returncode == 2
    assert not (tmp_path / "expected.json").exists()


@pytest.mark.guest
@pytest.mark.long
def test_the_gate_opens_for_equal_figures_alone(tmp_path: Path, built: Artifacts) -> None:
    job = "[w]\nfilename=/dev/nvme0n1\nrw=randwrite\nbs=4k\ndirect=1\nnumber_ios=200\n"
    (tmp_path / "job.fio").write_text(job)
    drive = ("--system", "page-ftl", "--set", "pages=32")
    first = gate(tmp_path, *drive)
    assert first.returncode == 1 and "written now" in first.stderr
    text = (tmp_path / "expected.json").read_text()
    assert '"host_write_pages": 200' in text and '"clat_ns"' in text
    same = gate(tmp_path, *drive)
    assert same.returncode == 0, same.stdout + same.stderr
    other = gate(tmp_path, *drive, "--set", "t-prog=500us")
    assert other.returncode == 1
    assert re.search(r'^\+ +"mean": ', other.stdout, re.M), other.stdout
    (tmp_path / "job.fio").write_text("[w]\nfilename=/dev/none\n")
    assert gate(tmp_path, *drive).returncode == 2
