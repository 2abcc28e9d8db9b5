# SPDX-License-Identifier: GPL-2.0-or-later
"""hfmsim: what it prints is right in cases that can be known."""

import json
import re
import subprocess
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hfm_model import Store

from rsd import sim
from rsd.cache import Cache
from rsd.progress import Progress

HFM = {1: ("rho=1", "extent=8"), 2: ("rho=2", "extent=64"), 3: ("rho=3", "extent=512")}
SMALL = ("transactions=4000", "files=300")
LINK = 4096 / 0.013653  # bytes of the disk's link in a microsecond of its preset, as MB/s
FLASH = 540.0


@pytest.fixture(scope="module")
def program(rsd_cache: Cache) -> Path:
    """The simulator, built."""
    return sim.ensure_hfmsim(rsd_cache, Progress())


def run(program: Path, *options: str) -> Any:
    """Its result."""
    done = subprocess.run([program, *options], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "options",
    [
        SMALL,
        ("work=tpcc", "files=80", "transactions=300", "clients=8", *HFM[3]),
        ("work=iozone-mixed", "files=400", "clients=3", "section=128", *HFM[2]),
        ("pack=log", *SMALL),
    ],
)
def test_same_bytes(program: Path, options: tuple[str, ...]) -> None:
    texts = {subprocess.check_output([program, *options]) for _ in range(2)}
    assert len(texts) == 1
    one, two = (run(program, *options, f"seed={seed}") for seed in (1, 2))
    assert one.pop("seed") != two.pop("seed") and one != two


def test_help_lists_every_setting(program: Path) -> None:
    said = subprocess.check_output([program, "--help"], text=True)
    assert said == subprocess.check_output([program, "-h"], text=True)
    found = run(program)
    listed = set(re.findall(r"^  (\w+)=", said, re.M))
    settings = [*found][: [*found].index("done")]
    assert set(settings) <= listed
    for name in settings:
        if f"{name}=N" not in said:
            assert f"  {name}={found[name]} " in said, f"{name} has another default"
    assert settings == [*dict.fromkeys(settings)] and len(settings) == len(listed) - 1


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("nonsense", "there is no such setting"),
        ("nonsense=1", "there is no such setting"),
        ("=", "there is no such setting"),
        ("work=bonnie", "allowed is tpcc, postmark, iozone-mixed, iozone-large, iozone-one"),
        ("pack=tight", "allowed is sections, log, off"),
        ("rho=4", "from 1 to 3"),
        ("rho=-1", "from 1 to 3"),
        ("rho=", "from 1 to 3"),
        ("extent=9", "allowed is a power of 2, from 4 to 65536"),
        ("extent=131072", "from 4 to 65536"),
        ("delta=33", "from 2 to 65536"),
        ("threshold=9", "allowed is 1 KiB to what extent= says"),
        ("files=0", "from 1 to 1000000"),
        ("files=99999999999999999999", "from 1 to 1000000"),
        ("files=1e3", "from 1 to 1000000"),
        ("clients=0", "from 1 to 10000"),
        ("section=63", "from 64 to 65536"),
        ("calls=/", "Is a directory; name another file"),
    ],
)
def test_refuses(program: Path, word: str, says: str) -> None:
    words = [word, "rho=3"] if word.startswith("delta") else [word]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith(f"hfmsim: {word.split('=')[0]}") and says in done.stderr
    assert "hfmsim --help lists the settings" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("extent=8192", "section=127"), "16 extents and 4 times what collect= says, at least 128"),
        (("collect=32768", "section=127"), "at least 128 MiB"),
        (("work=tpcc", "files=61"), "files: work=tpcc needs 62 at least"),
    ],
)
def test_refuses_together(program: Path, words: tuple[str, ...], says: str) -> None:
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2) and says in done.stderr and not done.stdout
    least = {"section=127": "section=128", "files=61": "files=62"}
    words = tuple(least.get(word, word) for word in words)
    assert run(program, *words, "transactions=3")["done"] == 3


def calls(path: Path) -> list[list[str]]:
    """What a run has listed, of its mark too."""
    return [line.split() for line in path.read_text().splitlines()]


def counted(model: Store, path: Path) -> dict[str, int]:
    """What the model counts from the mark on."""
    before: Counter[str] = Counter()
    for name, file, size in calls(path):
        if name == "mark":
            model.flush()
            before = Counter(model.counts)
        elif name == "append":
            model.append(int(file), int(size))
        elif name == "overwrite":
            model.overwrite(int(file))
        elif name == "delete":
            model.delete(int(file))
    model.flush()
    return {name: count - before[name] for name, count in model.counts.items()}


@pytest.mark.parametrize("rho", HFM)
@pytest.mark.parametrize(
    "work",
    [
        SMALL,
        ("files=2000", "transactions=3000", "seed=3"),
        ("work=iozone-mixed", "files=300", "clients=4"),
        ("work=iozone-one", "files=500", "size=3000"),
        ("work=iozone-one", "files=5", "size=10000000"),
        ("work=tpcc", "files=70", "transactions=200", "clients=7"),
    ],
    ids=" ".join,
)
def test_counts_are_the_models(
    program: Path, tmp_path: Path, rho: int, work: tuple[str, ...]
) -> None:
    for theta in (1, 5):
        path = tmp_path / "calls"
        words = (*HFM[rho], f"threshold={theta}", "section=2048", f"calls={path}")
        found = run(program, *work, *words)
        model = Store(found["extent"], rho, 32, theta)
        expected = counted(model, path)
        assert {name: found[name] for name in expected} == expected
        assert found["evicted"] == 0 and found["flash_programs"] == found["flash_pages"]


def sizes(path: Path) -> tuple[list[tuple[int, int]], int]:
    """Of each append after the mark: the file's size before, and its bytes; and all bytes."""
    size: Counter[str] = Counter()
    found = []
    marked = False
    for name, file, text in calls(path):
        marked = marked or name == "mark"
        if name == "delete":
            del size[file]
        if name != "append":
            continue
        if marked:
            found.append((size[file], int(text)))
        size[file] += int(text)
    return found, sum(n for _, n in found)


def test_pages_without_sections(program: Path, tmp_path: Path) -> None:
    """Without packing each append begins in the page where the file ends, if that is not full."""
    path = tmp_path / "calls"
    off = run(program, "pack=off", "extent=256", *SMALL, f"calls={path}")
    appended, size = sizes(path)
    assert off["bytes"] == size
    assert off["flash_pages"] == sum(-(-(old + n) // 4096) - old // 4096 for old, n in appended)
    log = run(program, "pack=log", "extent=256", *SMALL, f"calls={path}")
    assert sizes(path)[0] == appended
    units = sum(-(-(old % 1024 + n) // 1024) for old, n in appended)
    assert log["units"] == units
    # the last page before the mark may be written again
    assert 0 <= log["flash_pages"] - units / 4 <= 2
    assert log["flash_pages"] < 0.7 * off["flash_pages"]


def test_postmark_is_as_the_paper_says(program: Path, tmp_path: Path) -> None:
    """HFM 4.3: 500 to 10,000 bytes, append and read equally likely."""
    path = tmp_path / "calls"
    run(program, "files=1000", "transactions=20000", f"calls={path}")
    names = Counter(name for name, _, _ in calls(path))
    appended, _ = sizes(path)
    created = [n for old, n in appended if not old]
    assert min(created) < 520 and max(created) > 9980
    assert sum(created) / len(created) == pytest.approx(5250, rel=0.02)
    assert max(old + n for old, n in appended) == 10000
    assert names["read"] == pytest.approx(10000, rel=0.03)
    assert names["delete"] == pytest.approx(len(created), rel=0.03)
    assert names["read"] + len(appended) - len(created) == 20000


def test_iozone_is_as_the_paper_says(program: Path, tmp_path: Path) -> None:
    """HFM 4.4: 96% of 8 to 16 KiB, 4% of 512 KiB to 4 MiB, or all of these."""
    path = tmp_path / "calls"
    words = ("files=5000", "section=4096", f"calls={path}", *HFM[3])
    run(program, "work=iozone-mixed", *words)
    found = [n for _, n in sizes(path)[0]]
    small = [n for n in found if n <= 16384]
    assert len(found) == 5000 and len(small) == pytest.approx(4800, rel=0.02)
    assert 8192 <= min(small) < 8400 and sum(small) / len(small) == pytest.approx(12288, rel=0.02)
    run(program, "work=iozone-large", "files=500", "section=4096", f"calls={path}", *HFM[3])
    large = [n for _, n in sizes(path)[0]]
    assert min(large) >= 512 << 10 and max(large) <= 4 << 20
    assert sum(large) / len(large) == pytest.approx((512 << 10) + (7 << 18), rel=0.05)


def test_the_flash_drive_takes_a_time_for_commands_and_one_for_bytes(program: Path) -> None:
    """One core does both: large extents have 540 MB/s, small ones pay for their commands."""
    words = ("work=iozone-one", "size=67108864", "files=8", "memory=4096")
    for extent, options in ((8, HFM[1]), (512, HFM[3])):
        for command in (0, 2415, 10000):
            found = run(program, *words, *options, f"command={command}")
            page = 4096 / FLASH * 1000  # ns
            expected = FLASH * page / (page + command * 4 / extent)
            assert found["mb_a_second"] == pytest.approx(expected, rel=0.01)


def test_the_disk_throttles_who_writes_more_than_waits(program: Path) -> None:
    """Its outermost tracks have about 118 MB/s, and the flash alone 540."""
    words = ("work=iozone-one", "size=67108864", "files=16", *HFM[3])
    assert run(program, *words, "memory=4096")["mb_a_second"] > 500
    assert 90 < run(program, *words, "memory=0")["mb_a_second"] < 130


def test_short_files_wait_for_company(program: Path) -> None:
    """Alone, a file of an extent's size returns from the flash, a shorter one from the disk."""
    words = ("work=iozone-one", "files=2000")
    assert run(program, *words, "size=8192", *HFM[1])["disk_first"] == 0
    alone = run(program, *words, "size=8192", *HFM[3])
    assert alone["disk_first"] == 2000 and alone["reused"] > 1900
    # the disk's link is what it waits for until the disk's cache is full, then the disk
    assert alone["mb_a_second"] < LINK
    many = run(program, *words, "size=8192", *HFM[3], "clients=100")
    assert many["disk_first"] < 200
    assert many["mb_a_second"] > 2 * alone["mb_a_second"]


def test_what_is_full_gives_way(program: Path) -> None:
    """What was used longest ago; it is read from the disk then, and comes back."""
    words = ("files=20000", "transactions=4000", *HFM[2])
    fits = run(program, *words, "section=1024")
    assert fits["evicted"] == fits["read_disk"] == 0
    small = run(program, *words, "section=64")
    assert small["evicted"] > 0 and small["read_disk"] > 0
    assert small["seconds"] > 2 * fits["seconds"]
    assert small["units"] > fits["units"]
    log = run(program, *words, "section=64", "pack=log")
    assert 0 < log["read_disk"] < small["read_disk"]


def test_collection_makes_fewer_commands_of_the_same_pages(program: Path) -> None:
    words = ("work=iozone-one", "files=3000", "size=8192", *HFM[1], "clients=64")
    alone, together = run(program, *words), run(program, *words, "collect=64")
    # extents as long as the files are written at once
    assert alone["collections"] == 0
    assert together["flash_pages"] == alone["flash_pages"]
    words = ("work=iozone-one", "files=3000", "size=4096", *HFM[1], "clients=64")
    alone, together = run(program, *words), run(program, *words, "collect=64")
    assert together["collections"] == -(-1500 // 8)
    assert together["collected"] == 1500
    assert together["flash_pages"] == alone["flash_pages"] == 3000
    assert together["flash_commands"] * 7 < alone["flash_commands"]


def test_garbage_collection_counts(program: Path) -> None:
    """A small section that is written many times: the drive erases, and copies."""
    words = ("work=tpcc", "files=62", "transactions=2000", "section=64", *HFM[1])
    found = run(program, *words)
    assert found["flash_erases"] > 100
    assert found["flash_programs"] >= found["flash_pages"] * 0.9


def test_what_was_used_longest_ago_gives_way(program: Path, tmp_path: Path) -> None:
    """Runs that fill an extent each, more than the section has."""
    path = tmp_path / "calls"
    words = ("rho=1", "extent=1024", "section=64", f"calls={path}")
    found = run(program, "work=tpcc", "files=80", "transactions=2000", *words)
    used: OrderedDict[str, None] = OrderedDict()
    evicted = 0
    for name, file, _ in calls(path):
        if name == "mark":
            evicted = 0
            continue
        if file not in used and len(used) == 64:
            used.popitem(last=False)
            evicted += 1
        used[file] = None
        used.move_to_end(file)
    assert found["evicted"] == evicted > 20
