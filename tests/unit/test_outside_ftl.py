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
import sys
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
    "host/tools/rsd",
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


# Of the Python side: a drive to run and to compare, aged, with a colour and a marker of its own
USES = """
from rsd import systems
from rsd.compare import aged, cells
from rsd.report import plots
drive = systems.get_drive("plain-ftl")
print(drive.namespace["ftl"], cells.SYSTEMS["plain-ftl"].aged)
print("ftl=plain" in " ".join(aged.sim_arguments("plain-ftl")))
print(len(set(plots.SYSTEM_COLOURS.values())) == len(plots.MARKERS) == len(cells.SYSTEMS))
print(plots.style().count("--plain-ftl: #"))
"""


def test_the_runner_has_it(tmp_path: Path) -> None:
    copy_with_plain(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", USES],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "host/tools")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["plain", "True", "True", "True", "2"], done.stderr


# The work of the laws that is the layer's: what must add up does.
LAWS = """
import sys
from pathlib import Path
from rsd.bench.laws.base import Simulator
from rsd.bench.laws.conservation import SMALL, WORKS, invariants
((work, drive),) = [one for one in WORKS if one[1]["ftl"] == "plain"]
got = Simulator(Path(sys.argv[1]), Path(sys.argv[2])).run(work, **(SMALL | drive))
assert got.count("prog_clean") > 0, "nothing was collected"
for law, point in invariants(got):
    assert point.error(law.relation) <= law.tolerance + 1e-9, f"{law.says} {point}"
"""


def test_the_laws_find_it(programs: Path, tmp_path: Path) -> None:
    copy_with_plain(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", LAWS, programs / "rsdsim", tmp_path],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "host/tools")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


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
