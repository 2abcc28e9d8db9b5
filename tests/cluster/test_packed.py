# SPDX-License-Identifier: GPL-2.0-or-later
"""Results that travel: the same bytes, and refused where something else made them."""

from pathlib import Path

import pytest

from rsd.cache import Cache
from rsd.cluster import packed
from rsd.cluster.unit import Unit
from rsd.errors import RsdError

HASHES = {"qemu": "a" * 64, "kernel": "b" * 64}


def unit(key: str = "key1", text: str = "figures") -> Unit:
    def build(target: Path) -> None:
        (target / "raw").mkdir()
        (target / "raw" / "counters.json").write_text(text)
        (target / "empty").mkdir()

    return Unit("ext4, a benchmark", "cell", key, build)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store" / "cells").mkdir(parents=True)
    return tmp_path / "store"


def send(one: Unit, cache: Cache, store: Path, **hashes: str) -> Path:
    target = store / "cells" / f"{one.key}{packed.SUFFIX}"
    packed.pack(one, one.run(cache), HASHES | hashes, target)
    return target


def test_the_same_entry_is_the_same_bytes(cache: Cache, store: Path, tmp_path: Path) -> None:
    first = send(unit(), cache, store).read_bytes()
    assert send(unit(), Cache(tmp_path / "another"), store).read_bytes() == first
    assert [path.name for path in (store / "cells").iterdir()] == ["key1.tar.gz"]


def test_an_entry_comes_out_as_it_went_in(cache: Cache, store: Path, tmp_path: Path) -> None:
    send(unit(), cache, store)
    other = Cache(tmp_path / "other")
    assert packed.take_in(store, [unit()], HASHES, other) == []
    entry = other.find("cell", "key1")
    assert entry is not None
    found = {str(path.relative_to(entry)) for path in entry.rglob("*")}
    assert found == {"raw", "raw/counters.json", "empty"}
    assert (entry / "raw/counters.json").read_text() == "figures"


def test_what_is_missing_is_said(cache: Cache, store: Path) -> None:
    units = [unit("key1"), unit("key2")]
    send(units[0], cache, store)
    assert packed.take_in(store, units, HASHES, cache) == [units[1]]
    units[1].run(cache)
    assert packed.take_in(store, units, HASHES, cache) == []


def test_a_result_of_another_qemu_is_refused(cache: Cache, store: Path) -> None:
    send(unit("key1"), cache, store, qemu="c" * 64)
    with pytest.raises(RsdError, match="'ext4, a benchmark' was made with another qemu than"):
        packed.take_in(store, [unit("key2")], HASHES, cache)


def test_a_result_of_another_command_is_refused(cache: Cache, store: Path) -> None:
    send(unit("key1"), cache, store)
    with pytest.raises(RsdError, match="none of this command's cells"):
        packed.take_in(store, [unit("key2")], HASHES, cache)


def test_a_renamed_result_is_refused(cache: Cache, store: Path) -> None:
    send(unit("key1"), cache, store).rename(store / "cells" / f"key2{packed.SUFFIX}")
    with pytest.raises(RsdError, match="has the result of 'ext4, a benchmark'"):
        packed.take_in(store, [unit("key2")], HASHES, cache)


@pytest.mark.parametrize("left", [0, 10, 200])
def test_a_damaged_result_is_refused(cache: Cache, store: Path, tmp_path: Path, left: int) -> None:
    path = send(unit(text="figures" * 1000), cache, store)
    path.write_bytes(path.read_bytes()[:left])
    other = Cache(tmp_path / "other")
    with pytest.raises(RsdError, match="not the result of a cell, or damaged"):
        packed.take_in(store, [unit(text="figures" * 1000)], HASHES, other)
    assert other.find("cell", "key1") is None
