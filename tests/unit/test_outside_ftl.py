# SPDX-License-Identifier: GPL-2.0-or-later
"""A translation layer from outside: its folder and a line of RSD_FTLS, with nothing else touched.

tests/unit/ftl-plain is the template for one. It is put into a copy of the core, with the line that
CONTRIBUTING.md has; the conformance test (test_ftl.c) finds it in the list and tries it, and rsdsim
has it by its name.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from examples import apply, examples
from programs import CORE_SOURCES, hash_files
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache, hash_inputs

LINE = examples()["ftl"]
FOLDERS = (
    "hw/rsd-nvme/core",
    "tests/unit",
    "tests/model",
    "host/tools/rsdsim",
    "host/tools/common",
)
SIM_SOURCES = (
    "host/tools/rsdsim/*",
    "host/tools/common/*",
    "tests/unit/ftl-plain/*",
    "tests/unit/test_outside_ftl.py",
)


def copy_with_plain(root: Path) -> None:
    for folder in FOLDERS:
        shutil.copytree(REPOSITORY / folder, root / folder)
    core = root / FOLDERS[0]
    shutil.copytree(REPOSITORY / "tests/unit/ftl-plain", core / "ftl/plain")
    apply(LINE, root)


@pytest.fixture(scope="module")
def programs(rsd_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(directory: Path) -> None:
        root = tmp_path_factory.mktemp("outside")
        copy_with_plain(root)
        for folder, program in (("tests/unit", "test_ftl"), ("host/tools/rsdsim", "rsdsim")):
            done = subprocess.run(
                ["make", "-s", "-j2", "-C", root / folder, f"BUILD={directory}"]
                + [str(directory / program)],
                capture_output=True,
                text=True,
                timeout=900,
            )
            assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    key = hash_inputs(LINE, hash_files((*CORE_SOURCES, *SIM_SOURCES)))
    return rsd_cache.entry("test-outside", key, build)


def test_it_conforms(programs: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [programs / "test_ftl"],
        env=os.environ | {"RSD_TEST_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_rsdsim_has_it(programs: Path) -> None:
    options = ("ftl=plain", "channels=2", "ways=2", "blocks=64", "over-provision=20")
    done = subprocess.run(
        [programs / "rsdsim", *(f"--set={option}" for option in options)]
        + ["--precondition=2", "--requests=2000", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["settings"]["ftl"] == "plain"
    assert "plain = the plainest page map" in subprocess.run(
        [programs / "rsdsim", "--list"], capture_output=True, text=True, check=True
    ).stdout.replace("\n", " ")
