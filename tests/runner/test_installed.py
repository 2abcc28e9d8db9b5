# SPDX-License-Identifier: GPL-2.0-or-later
"""pip install of the tree, into a fresh environment: the runner finds its sources, and works."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from rsd import guesttools, sim
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache
from rsd.progress import Progress


def said(*words: str | Path, directory: Path, fails: bool = False, **env: str) -> str:
    """What a command prints, from another directory than this one, without our Python path."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        words, cwd=directory, env={**clean, **env}, capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) == fails, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stderr if fails else done.stdout


def install(directory: Path, *options: str) -> Path:
    """A fresh environment with the tree; gives its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    pip = [sys.executable, "-m", "pip", "--python", directory / "bin/python", "install", "--quiet"]
    said(*pip, "--disable-pip-version-check", *options, REPOSITORY, directory=directory)
    return directory / "bin"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the packages of ./rsd, so that none is fetched."""
    directory = tmp_path_factory.mktemp("installed")
    found = install(directory, "--no-deps")
    (place,) = directory.glob("lib/*/site-packages")
    (place / "rsd-packages.pth").write_text(sysconfig.get_path("purelib"))
    return found


def test_the_simulator_is_that_of_the_clone(
    programs: Path, rsd_cache: Cache, tmp_path: Path
) -> None:
    """Of the same sources and compiler: it is found in the cache, and is not built again."""
    ours = sim.ensure(rsd_cache, Progress())
    script = """
from rsd import artifacts, sim
from rsd.cache import Cache
from rsd.progress import Progress
print(artifacts.IS_CLONE, artifacts.OUTPUTS, sim.ensure(Cache(), Progress()).identity)
"""
    cache = str(rsd_cache.root)
    found = said(programs / "python", "-c", script, directory=tmp_path, RSD_CACHE=cache)
    assert found == f"False build {ours.identity}\n"
    command = (programs / "rsd", "sim", "--set", "ftl=page", "--requests", "500")
    assert "  write" in said(*command, directory=tmp_path, RSD_CACHE=cache)


def test_what_it_builds_has_the_names_that_the_clone_has(programs: Path, tmp_path: Path) -> None:
    """So that a run there is the run here: the same sources of QEMU, guest, tools and module."""
    script = """
from rsd import artifacts, guesttools, module, qemu
from rsd.cache import hash_file, hash_tree
tree = artifacts.REPOSITORY
print(qemu._device_hash(tree / "hw/rsd-nvme"), module.identity(tree / "host/fs"))
print(*(hash_file(path) for path in qemu._patches(tree)))
print(*(hash_tree(tree / "host/tools" / name) for name in (*guesttools.C_TOOLS, "common")))
print(*(hash_tree(tree / "host/fs" / name) for name in guesttools.FS_PARTS))
print(hash_tree(tree / "guest"))
"""
    there = said(programs / "python", "-c", script, directory=tmp_path)
    ours = str(REPOSITORY / "host/tools")
    assert there == said(sys.executable, "-c", script, directory=tmp_path, PYTHONPATH=ours)
    assert len(there.split()) > len(guesttools.C_TOOLS) + 10


def test_what_needs_a_clone_says_so(programs: Path, tmp_path: Path) -> None:
    for words in (("test",), ("site",), ("compare", "--record")):
        error = said(programs / "rsd", *words, directory=tmp_path, fails=True)
        assert "installed without tests and documents" in error
    assert "./rsd run" in said(programs / "rsd", "run", "--help", directory=tmp_path)


@pytest.mark.guest
@pytest.mark.long
def test_with_its_own_packages_it_runs_a_guest(tmp_path: Path, rsd_cache: Cache) -> None:
    """pip fetches what it depends on."""
    found = install(tmp_path / "venv")
    command = (found / "rsd", "run", "--", "echo", "hello")
    output = said(*command, directory=tmp_path, RSD_CACHE=str(rsd_cache.root))
    assert output == "hello\n"
