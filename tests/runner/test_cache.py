# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache: whole entries or none, built once."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY
from rsd.cache import Cache, default_root, hash_tree
from rsd.errors import RsdError


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_an_entry_is_built_once(cache: Cache) -> None:
    calls = []

    def build(partial: Path) -> None:
        calls.append(partial)
        (partial / "file").write_text("content")

    first = cache.entry("kind", "key", build)
    second = cache.entry("kind", "key", build)
    assert first == second
    assert (first / "file").read_text() == "content"
    assert len(calls) == 1


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failed_build_leaves_nothing(cache: Cache, failure: type[BaseException]) -> None:
    def build(partial: Path) -> None:
        (partial / "half").write_text("half")
        raise failure

    with pytest.raises(failure):
        cache.entry("kind", "key", build)
    assert cache.find("kind", "key") is None
    assert list((cache.root / "tmp").iterdir()) == []


def test_what_a_killed_build_left_is_not_taken_over(cache: Cache) -> None:
    (cache.root / "tmp" / "kind-key").mkdir()
    (cache.root / "tmp" / "kind-key" / "half").write_text("half")
    path = cache.entry("kind", "key", lambda partial: (partial / "new").write_text("new"))
    assert [p.name for p in path.iterdir()] == ["new"]


def test_two_that_want_the_same_entry_build_it_once(cache: Cache) -> None:
    calls = []
    inside = threading.Event()
    proceed = threading.Event()

    def build(partial: Path) -> None:
        calls.append(partial)
        inside.set()
        assert proceed.wait(60)

    threads = [threading.Thread(target=cache.entry, args=("k", "k", build)) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert inside.wait(60)
    proceed.set()
    for thread in threads:
        thread.join(60)
    assert len(calls) == 1


HOLD = """
import sys
from pathlib import Path
from rsd.cache import Cache
with Cache(Path(sys.argv[1])).lock("name"):
    print("locked", flush=True)
    sys.stdin.readline()
"""


def test_waiting_for_another_process_is_told(
    cache: Cache, capsys: pytest.CaptureFixture[str]
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, cache.root],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "host/tools")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"

    def wait() -> None:
        with cache.lock("name"):
            pass

    waiter = threading.Thread(target=wait)
    waiter.start()
    said, deadline = "", time.monotonic() + 60
    while not said and time.monotonic() < deadline:
        time.sleep(0.05)
        said = capsys.readouterr().err
    holder.communicate("\n", timeout=10)
    waiter.join(10)
    assert said == f"rsd: waiting for process {holder.pid}: name\n"


def test_scratch_of_a_dead_process_goes(cache: Cache) -> None:
    # of a number that Linux gives to none, where one that has been may be given again
    stale = cache.root / "tmp" / f"run.{(1 << 22) + 1}.guest.0"
    ours = cache.root / "tmp" / f"run.{os.getpid()}.guest.0"
    stale.mkdir()
    ours.mkdir()
    with cache.scratch("guest") as path:
        assert path != ours
        assert path.is_dir()
    assert not path.exists()
    assert not stale.exists()
    assert ours.exists()


def test_entries_that_dead_processes_half_built_go(cache: Cache) -> None:
    dead, alive = (cache.root / "tmp" / f"kind-{name}" for name in ("dead", "alive"))
    for directory in (dead, alive):
        directory.mkdir()
        (directory / "half").write_text("half")
    with cache.lock(alive.name), cache.scratch("guest"):
        pass
    assert not dead.exists()
    assert (alive / "half").read_text() == "half"


def test_an_unwritable_place_is_named() -> None:
    with pytest.raises(RsdError, match="/proc/nowhere") as error:
        Cache(Path("/proc/nowhere"))
    assert "RSD_CACHE" in error.value.hint


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RSD_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_root() == Path("/h/.cache/rsd-nvme")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert default_root() == Path("/x/rsd-nvme")
    monkeypatch.setenv("RSD_CACHE", "/r")
    assert default_root() == Path("/r")


def test_a_tree_hash_sees_content_names_and_modes_only(tmp_path: Path) -> None:
    file = tmp_path / "a.c"
    file.write_text("1")
    (tmp_path / "README.md").write_text("text")
    before = hash_tree(tmp_path, skip_suffixes=(".md",))
    os.utime(file, (1, 1))
    (tmp_path / "README.md").write_text("other text")
    assert hash_tree(tmp_path, skip_suffixes=(".md",)) == before
    file.chmod(0o755)
    executable = hash_tree(tmp_path, skip_suffixes=(".md",))
    assert executable != before
    file.write_text("2")
    assert hash_tree(tmp_path, skip_suffixes=(".md",)) != executable


def test_it_is_claimed_only_when_nobody_else_uses_it(cache: Cache) -> None:
    other = Cache(cache.root)
    with pytest.raises(RsdError, match="another rsd command"):
        cache.claim()
    del other
    cache.claim()
