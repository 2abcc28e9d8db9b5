# SPDX-License-Identifier: GPL-2.0-or-later
"""rsdctl without a drive: log pages made here, byte by byte."""

import json
import random
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "host" / "tools" / "rsdctl"
HEADER = ROOT / "hw" / "rsd-nvme" / "core" / "api" / "rsd-log.h"
SANITIZE = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"

PAGE_BYTES = 4096
MAGIC = b"RRSD-LOG"
ROOM = 160

# Counters these tests rely on, with their place in version 1 of the log page.
PLACES = {
    "host_read_cmds": 0,
    "host_write_cmds": 1,
    "host_write_pages": 3,
    "zone_resets": 5,
    "read_host": 8,
    "prog_host": 14,
    "prog_clean": 15,
    "prog_wear": 17,
    "erase_host": 20,
    "queue_wait_ns": 30,
    "queue_wait_max_ns": 31,
    "map_bytes": 34,
    "ram_bytes": 35,
    "capacity_bytes": 37,
    "blocks_total": 40,
    "blocks_used": 42,
    "wear_max": 48,
    "endurance": 51,
    "disk_read_pages": 70,
    "disk_cache_hits": 71,
    "disk_write_pages": 72,
    "disk_seeks": 74,
    "disk_seek_ns": 75,
    "disk_transfer_ns": 77,
    "fault_program": 78,
    "fault_offline": 86,
}
COUNTERS = HEADER.read_text().count("    RSD_COUNTER(")


def make_page(
    values: dict[str, int],
    *,
    magic: bytes = MAGIC,
    version: int = 1,
    count: int = COUNTERS,
    bucket: int = 2,
    histogram: tuple[int, ...] = (),
) -> bytes:
    counters = [0] * ROOM
    for name, value in values.items():
        counters[PLACES[name]] = value
    buckets = list(histogram) + [0] * (64 - len(histogram))
    page = struct.pack("<8sHHI48x", magic, version, count, bucket)
    page += struct.pack(f"<{ROOM}Q", *counters) + struct.pack("<64Q", *buckets)
    return page.ljust(PAGE_BYTES, b"\0")


@pytest.fixture(scope="module")
def rsdctl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("rsdctl")
    subprocess.run(
        ["make", "-C", SOURCE, f"BUILD={build}", f"CFLAGS={SANITIZE} -Werror"], check=True
    )
    return build / "rsdctl"


def run(
    program: Path, *args: str | Path, stdin: bytes | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [program, *args], input=stdin, capture_output=True, timeout=600, check=False
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def decode(rsdctl: Path, page: bytes) -> dict[str, Any]:
    done = run(rsdctl, "decode", "--json", "-", stdin=page)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def line(output: str, label: str) -> list[str]:
    """The words that follow @label on its line."""
    (match,) = [one for one in output.splitlines() if one.strip().startswith(label + "  ")]
    return match.strip().removeprefix(label).split()


def test_faults_by_rule_are_shown_if_there_are_any(rsdctl: Path) -> None:
    page = make_page({"fault_program": 7, "fault_offline": 2})
    output = run(rsdctl, "decode", "-", stdin=page).stdout
    assert line(output, "programs failed") == ["7"]
    assert line(output, "zones offline") == ["2"]
    assert output.count("Faults by rule") == 1
    assert "writes lost" not in output
    assert "Faults" not in run(rsdctl, "decode", "-", stdin=make_page({})).stdout


def test_counters_are_those_of_the_header(rsdctl: Path) -> None:
    text = HEADER.read_text().partition("#define RSD_COUNTERS(")[2].replace("\\\n", "\n")
    documented = re.findall(r'RSD_COUNTER\((\w+),\s*"(\w+)",\s*((?:"[^"]*"\s*)+)\)', text)
    assert len(documented) == COUNTERS
    output = run(rsdctl, "counters").stdout.splitlines()
    assert len(output) == len(documented)
    for printed, (name, unit, doc) in zip(output, documented, strict=True):
        words = "".join(re.findall(r'"([^"]*)"', doc))
        assert printed.split(maxsplit=2) == [name, unit, words]
    names = [name for name, _, _ in documented]
    assert {name: names.index(name) for name in PLACES} == PLACES


def test_decode_as_json(rsdctl: Path) -> None:
    values = {name: 1000 + place for name, place in PLACES.items()}
    values["host_write_pages"] = 100
    values["prog_host"], values["prog_clean"], values["prog_wear"] = 100, 20, 5
    values["read_host"], values["erase_host"] = 70, 5
    values["queue_wait_ns"] = 2**64 - 1
    result = decode(rsdctl, make_page(values, bucket=3, histogram=(7, 0, 9)))
    counters = result["counters"]
    assert len(counters) == COUNTERS
    for name in PLACES:
        assert counters[name]["value"] == values[name]
    assert counters["queue_wait_ns"]["unit"] == "ns"
    assert counters["prog_host"]["unit"] == "pages"
    derived = result["derived"]
    assert derived["write_amplification"] == pytest.approx(1.25)
    assert derived["mean_queue_wait_ns"] == pytest.approx((2**64 - 1) / 200)
    assert result["erase_histogram"]["bucket_erases"] == 3
    assert result["erase_histogram"]["blocks"] == [7, 0, 9] + [0] * 61


def test_nothing_done_yet_has_no_ratios(rsdctl: Path) -> None:
    derived = decode(rsdctl, make_page({}))["derived"]
    assert derived == {"write_amplification": None, "mean_queue_wait_ns": None}
    output = run(rsdctl, "decode", "-", stdin=make_page({})).stdout
    assert line(output, "write amplification")[0] == "-"


def test_decode_for_people(rsdctl: Path) -> None:
    page = make_page(
        {
            "host_write_cmds": 11,
            "host_write_pages": 44,
            "zone_resets": 3,
            "read_host": 6,
            "prog_host": 44,
            "prog_wear": 22,
            "erase_host": 28,
            "queue_wait_ns": 1_000_000,
            "queue_wait_max_ns": 2_500_000,
            "map_bytes": 4096,
            "ram_bytes": 3 << 20,
            "capacity_bytes": 512 << 20,
            "blocks_total": 121,
        },
        histogram=(80, 1, 0, 0, 0, 40),
    )
    output = run(rsdctl, "decode", "-", stdin=page).stdout
    assert line(output, "write") == ["11", "44"]
    assert line(output, "zone resets") == ["3"]
    assert line(output, "host") == ["6", "44", "28"]
    assert line(output, "wear") == ["0", "22", "0"]
    assert line(output, "total") == ["6", "66", "28"]
    assert line(output, "write amplification")[0] == "1.500"
    assert line(output, "queue wait") == ["mean", "10.0", "us,", "longest", "2.50", "ms"]
    assert line(output, "mapping table") == ["4.0", "KiB", "(4096", "bytes)"]
    assert line(output, "other RAM") == ["3.0", "MiB", "(3145728", "bytes)"]
    assert line(output, "capacity")[:2] == ["512.0", "MiB"]
    assert line(output, "0 to 1") == ["80", "#" * 40]
    assert line(output, "2 to 3") == ["1", "#"]
    assert line(output, "...") == ["0"]
    assert line(output, "10 to 11") == ["40", "#" * 20]
    assert "12 to 13" not in output


def test_decode_of_a_disk(rsdctl: Path) -> None:
    """It has an arm, and no flash."""
    page = make_page(
        {
            "capacity_bytes": 512 << 20,
            "disk_read_pages": 12,
            "disk_cache_hits": 3,
            "disk_write_pages": 5,
            "disk_seeks": 7,
            "disk_seek_ns": 2_500_000,
            "disk_transfer_ns": 40_000,
        }
    )
    output = run(rsdctl, "decode", "-", stdin=page).stdout
    assert line(output.partition("Disk")[2], "read") == ["12"]
    assert line(output, "found in the cache") == ["3"]
    assert line(output, "written") == ["5"]
    assert line(output, "seeks")[:3] == ["7,", "2.50", "ms"]
    assert line(output, "transfer") == ["40.0", "us"]
    assert not re.search("NAND|flash|Wear|erase", output)


def test_older_drive_with_fewer_counters(rsdctl: Path) -> None:
    page = make_page({"host_read_cmds": 5}, count=20)
    assert len(decode(rsdctl, page)["counters"]) == 20
    done = run(rsdctl, "decode", "-", stdin=page)
    assert f"20 of {COUNTERS} counters" in done.stderr
    assert line(done.stdout, "merge")[2] == "-"


def test_newer_drive_with_more_counters(rsdctl: Path) -> None:
    done = run(rsdctl, "decode", "--json", "-", stdin=make_page({}, count=150))
    assert done.returncode == 0
    assert f"has 150 counters, this rsdctl knows the first {COUNTERS}" in done.stderr
    assert len(json.loads(done.stdout)["counters"]) == COUNTERS


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (make_page({}, version=2), "log version 2 is newer than this rsdctl"),
        (make_page({}, version=0), "corrupt log page: version 0"),
        (make_page({}, count=0), "corrupt log page: version 1, 0 counters"),
        (make_page({}, count=161), "161 counters"),
        (make_page({}, bucket=0), "buckets of 0 erases"),
        (make_page({}, magic=b"INTEL-CA"), "does not begin with the mark of an rsd drive"),
        (bytes(PAGE_BYTES), "does not begin with the mark"),
        (make_page({})[:-1], "4095 bytes; the log page has 4096: nvme get-log"),
        (make_page({}) + b"\0", "4097 bytes; the log page has 4096"),
        (b"", "0 bytes; the log page has 4096"),
        (bytes(2 << 20), "1048576 bytes or more"),
    ],
    ids=range(11),  # the pages themselves are too long for a test's name
)
def test_bad_pages_are_refused(rsdctl: Path, page: bytes, message: str) -> None:
    done = run(rsdctl, "decode", "-", stdin=page)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stdout == ""


def write_json(rsdctl: Path, path: Path, page: bytes) -> Path:
    path.write_text(json.dumps(decode(rsdctl, page)))
    return path


BEFORE = {
    "host_write_pages": 100,
    "prog_host": 100,
    "queue_wait_ns": 500,
    "map_bytes": 4096,
    "blocks_used": 10,
    "capacity_bytes": 1 << 29,
}
AFTER = BEFORE | {
    "host_write_pages": 300,
    "prog_host": 300,
    "prog_wear": 50,
    "queue_wait_ns": 25_500,
    "blocks_used": 4,
}


@pytest.mark.parametrize("raw", [False, True], ids=["json", "raw"])
def test_diff(rsdctl: Path, tmp_path: Path, raw: bool) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    if raw:
        before.write_bytes(make_page(BEFORE))
        after.write_bytes(make_page(AFTER))
    else:
        write_json(rsdctl, before, make_page(BEFORE))
        write_json(rsdctl, after, make_page(AFTER))
    done = run(rsdctl, "diff", before, after)
    assert done.returncode == 0, done.stderr
    assert line(done.stdout, "host_write_pages") == ["100", "300", "+200", "pages"]
    assert line(done.stdout, "blocks_used") == ["10", "4", "-6", "blocks"]
    assert "map_bytes" not in done.stdout
    assert "write amplification of the drive between: 1.250" in done.stdout
    assert "mean queue wait between: 100 ns" in done.stdout

    result = json.loads(run(rsdctl, "diff", "--json", before, after).stdout)
    assert len(result["counters"]) == COUNTERS
    assert result["counters"]["blocks_used"] == {
        "before": 10,
        "after": 4,
        "difference": -6,
        "unit": "blocks",
    }
    assert result["derived"]["write_amplification"] == pytest.approx(1.25)
    assert result["derived"]["mean_queue_wait_ns"] == pytest.approx(100)


def test_diff_of_equal_pages(rsdctl: Path, tmp_path: Path) -> None:
    page = write_json(rsdctl, tmp_path / "page", make_page(BEFORE))
    assert run(rsdctl, "diff", page, page).stdout == "nothing changed\n"


def test_diff_the_wrong_way_round(rsdctl: Path, tmp_path: Path) -> None:
    before = write_json(rsdctl, tmp_path / "before", make_page(BEFORE))
    after = write_json(rsdctl, tmp_path / "after", make_page(AFTER))
    done = run(rsdctl, "diff", after, before)
    assert done.returncode == 1
    assert "host_write_pages went down from 300 to 100" in done.stderr


def test_diff_of_two_drives(rsdctl: Path, tmp_path: Path) -> None:
    before = write_json(rsdctl, tmp_path / "before", make_page(BEFORE))
    other = make_page(AFTER | {"capacity_bytes": 1 << 30})
    done = run(rsdctl, "diff", before, write_json(rsdctl, tmp_path / "other", other))
    assert done.returncode == 1
    assert "capacity_bytes was 536870912 and is 1073741824: these are two drives" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", 'it has no "counters"'),
        ('{"counters": 3}', '"counters" is not an object'),
        ('{"counters": {"zones": 3}}', "a counter is not an object with a value"),
        ('{"counters": {"zones": {"unit": "zones"}}}', "a counter has no value"),
        ('{"counters": {"zones": {"value": -3}}}', "not a number of 0 or more"),
        ('{"counters": {"zones": {"value": 1.5}}}', "not a whole number"),
        ('{"counters": {"zones": {"value": 18446744073709551616}}}', "not a whole number"),
        ('{"counters": {}} x', "something follows"),
        ('{"counters": {}', "a comma or } is missing"),
        ('{"a": ' + "[" * 100, "nested too deeply"),
        ('{"a', "a string does not end"),
        ('{"counters": {}}\0', "zero byte"),
    ],
)
def test_bad_json_is_refused(rsdctl: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad").write_text(text)
    done = run(rsdctl, "diff", tmp_path / "bad", tmp_path / "bad")
    assert done.returncode == 1
    assert message in done.stderr


def test_damaged_files_never_crash(rsdctl: Path, tmp_path: Path) -> None:
    """The sanitizers end the program with a status of its own on a bad access."""
    rng = random.Random(1)
    page = make_page(BEFORE, histogram=(3, 2, 1))
    text = json.dumps(decode(rsdctl, page)).encode()
    for original in (page, text):
        for _ in range(60):
            damaged = bytearray(original[: rng.randrange(len(original) + 1)])
            for _ in range(rng.randrange(4)):
                if damaged:
                    damaged[rng.randrange(min(len(damaged), 1400))] = rng.randrange(256)
            (tmp_path / "x").write_bytes(damaged)
            done = run(rsdctl, "decode", tmp_path / "x")
            assert done.returncode in (0, 1), done.stderr
            assert "Sanitizer" not in done.stderr


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["show", "/nowhere/nvme0n1"], 1, "/nowhere/nvme0n1: No such file or directory"),
        (["show", "/dev/null"], 1, "/dev/null: Inappropriate ioctl for device; not an NVMe"),
        (["show", str(SOURCE / "Makefile")], 1, "not a device; rsdctl decode reads"),
        (["save", "/nowhere/x", "/dev/null"], 1, "not an NVMe device"),
        (["decode", "/nowhere/x"], 1, "/nowhere/x: No such file"),
        (["decode", str(SOURCE)], 1, "Is a directory"),
        (["decode"], 2, "usage: rsdctl decode"),
        (["diff", "one"], 2, "usage: rsdctl diff"),
        (["counters", "--json"], 2, "usage: rsdctl counters"),
        (["show", "--nonsense"], 2, "usage: rsdctl show"),
        (["nonsense"], 2, "no command nonsense: show, diff, save, decode, counters, "),
        (["rewind"], 2, "rewind: --op N is missing"),
        (["rewind", "--op", "x"], 2, "rewind: x is not the number of an operation"),
        (["rewind", "--op", "-1"], 2, "rewind: -1 is not the number of an operation"),
        (["rewind", "--op", "1", "--restart"], 2, "usage: rsdctl rewind"),
        (["rewind", "--op", "1", "--outcomes", "x"], 1, "--outcomes x: must be a number"),
        (["rewind", "--op", "1", "--outcomes", "1a"], 1, "--outcomes 1a: must be a number"),
        (["cut", "--op", "1"], 2, "usage: rsdctl cut"),
        (["cut", "/dev/null"], 1, "/dev/null: not the block device of a namespace"),
        (["oplog", "--list", "1", "--restart"], 2, "usage: rsdctl oplog"),
        (["oplog", "/nowhere/x"], 1, "/nowhere/x: not the block device of a namespace"),
        ([], 2, "usage: rsdctl COMMAND"),
    ],
)
def test_bad_arguments_are_named(rsdctl: Path, args: list[str], status: int, message: str) -> None:
    done = run(rsdctl, *args)
    assert done.returncode == status
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "command", ["", "show", "diff", "save", "decode", "counters", "oplog", "rewind", "cut"]
)
def test_help_has_an_example(rsdctl: Path, command: str) -> None:
    done = run(rsdctl, *command.split(), "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout


def test_a_full_output_is_an_error(rsdctl: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [rsdctl, "counters"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
