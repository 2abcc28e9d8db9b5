# SPDX-License-Identifier: GPL-2.0-or-later
"""zappend without a drive: arguments, statistics, patterns, JSON."""

import json
import math
import os
import random
import statistics
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "host" / "tools" / "zappend"
SANITIZE = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
PERCENTILES = [1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99]


@pytest.fixture(scope="module")
def zappend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("zappend")
    subprocess.run(
        ["make", "-C", SOURCE, f"BUILD={build}", f"CFLAGS={' '.join(SANITIZE)} -Werror"],
        check=True,
    )
    return build / "zappend"


def compile_test(tmp_path: Path, *sources: Path) -> Path:
    program = tmp_path / "program"
    flags = ["-std=gnu11", "-Wall", "-Werror", *SANITIZE, f"-I{SOURCE}"]
    files = [str(source) for source in sources]
    subprocess.run(["cc", *flags, "-o", str(program), *files, "-lm"], check=True)
    return program


def run(program: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *args], capture_output=True, text=True, timeout=600, check=False
    )


def test_help_shows_every_option_and_an_example(zappend: Path) -> None:
    done = run(zappend, "--help")
    assert done.returncode == 0
    valued = ["op", "ios", "qd", "blocks", "zones", "seed", "runtime", "name", "output"]
    for option in [*valued, "oob", "reset", "verify"]:
        assert f"--{option} " in done.stdout
    assert "Example" in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "no device given"),
        (["/dev/ng0n1", "/dev/ng1n1"], "more than one device"),
        (["--qd", "0", "x"], "--qd 0: must be a number from 1 to 1024"),
        (["--qd", "1025", "x"], "--qd 1025: must be a number from 1 to 1024"),
        (["--qd", "-1", "x"], "--qd -1: must be"),
        (["--qd", "8k", "x"], "--qd 8k: must be"),
        (["--qd", "99999999999999999999", "x"], "must be a number from 1 to 1024"),
        (["--blocks", "65537", "x"], "--blocks 65537: must be a number from 1 to 65536"),
        (["--ios", "0", "x"], "--ios 0: must be a number from 1"),
        (["--seed", "", "x"], "--seed : must be a number, 0 or more"),
        (["--zones", "0", "x"], "--zones 0: must be a number from 1"),
        (["--zones", "5-2", "x"], "--zones 5-2: must be A-B with A <= B"),
        (["--zones", "1-2-3", "x"], "--zones 1-2-3: must be A-B"),
        (["--zones", "-3", "x"], "--zones -3: must be A-B"),
        (["--runtime", "10", "x"], "--runtime 10: must be a positive number and s, ms or us"),
        (["--runtime", "0s", "x"], "--runtime 0s: must be"),
        (["--runtime", "nans", "x"], "--runtime nans: must be"),
        (["--op", "write", "x"], "--op write: must be append or read"),
        (["--op", "read", "--verify", "x"], "--verify works with --op append only"),
        (["--op", "read", "--reset", "x"], "--reset works with --op append only"),
        (["--nonsense", "x"], "see zappend --help"),
        (["/nowhere/ng0n1"], "/nowhere/ng0n1: No such file or directory"),
        (["/dev/null"], "/dev/null: not an NVMe namespace"),
        ([str(HERE / "test_zappend.py")], "not a character device; give the namespace's generic"),
        (["--output", "/nowhere/x.json", "/dev/null"], "--output /nowhere/x.json: No such file"),
    ],
)
def test_bad_arguments_are_named(zappend: Path, args: list[str], message: str) -> None:
    done = run(zappend, *args)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


# Takes from root what lets it open anything.
UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]


def test_unreadable_device(zappend: Path, tmp_path: Path) -> None:
    (tmp_path / "ng0n1").touch(mode=0)
    program, *words = [*(UNPRIVILEGED if os.geteuid() == 0 else []), zappend, tmp_path / "ng0n1"]
    done = run(Path(program), *words)
    assert done.returncode == 2
    assert "ng0n1: Permission denied" in done.stderr
    assert "run as root" in done.stderr


@pytest.mark.parametrize("count", [1, 2, 3, 99, 100, 101, 10_007])
def test_statistics(tmp_path: Path, count: int) -> None:
    program = compile_test(tmp_path, HERE / "stats_test.c", SOURCE / "stats.c")
    rng = random.Random(count)
    # a large offset shows cancellation in the deviation
    values = [10**12 + rng.randrange(10**6) for _ in range(count)]
    text = "\n".join(map(str, [count, *values]))
    output = subprocess.run(
        [program], input=text, capture_output=True, text=True, check=True, timeout=600
    ).stdout.splitlines()
    n, low, high, mean, deviation = output[0].split()
    assert (int(n), int(low), int(high)) == (count, min(values), max(values))
    assert math.isclose(float(mean), statistics.fmean(values), rel_tol=1e-14)
    expected = statistics.stdev(values) if count > 1 else 0.0
    assert math.isclose(float(deviation), expected, rel_tol=1e-6, abs_tol=1e-9)
    ordered = sorted(values)
    for line, percentile in zip(output[1:], PERCENTILES, strict=True):
        hundredths, value = map(int, line.split())
        assert hundredths == round(percentile * 100)
        rank = -(-hundredths * count // 10_000)
        assert value == ordered[rank - 1]


def test_every_change_of_a_pattern_is_noticed(tmp_path: Path) -> None:
    program = compile_test(tmp_path, HERE / "pattern_test.c", SOURCE / "pattern.c")
    done = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_json_has_the_keys_of_fio(tmp_path: Path) -> None:
    program = compile_test(
        tmp_path,
        HERE / "output_test.c",
        *(SOURCE / name for name in ("output.c", "stats.c", "status.c")),
    )
    result = json.loads(run(program).stdout)
    assert result["zappend version"].startswith("zappend-")
    (job,) = result["jobs"]
    assert job["jobname"] == 'a "quoted" \\ name\n'
    assert job["error"] == 1
    assert job["errors"] == {"0x1b9 Zone Is Full": 1}
    assert job["total_err"] == 1
    assert job["verify"] == {"blocks": 8, "bad_blocks": 1, "total_err": 0}
    assert job["job options"]["zones"] == "2-9"
    write = job["write"]
    assert write["total_ios"] == 4
    assert write["io_bytes"] == 4 * 8192
    assert write["runtime"] == 2
    assert write["iops"] == pytest.approx(2000)
    assert write["bw_bytes"] == 2000 * 8192
    assert write["bw"] == 2000 * 8
    assert list(write["clat_ns"]["percentile"]) == [f"{p:.6f}" for p in PERCENTILES]
    assert write["clat_ns"]["percentile"]["50.000000"] == 200
    assert write["clat_ns"]["percentile"]["99.990000"] == 400
    assert write["lat_ns"]["min"] == 101
    assert write["lat_ns"]["max"] == 404
    assert write["lat_ns"]["mean"] == pytest.approx(252.5)
    assert write["slat_ns"]["stddev"] == pytest.approx(statistics.stdev([1, 2, 3, 4]), abs=1e-6)
    assert write["slat_ns"]["N"] == 4
    assert job["read"]["total_ios"] == 0
    assert "percentile" not in job["read"]["clat_ns"]
