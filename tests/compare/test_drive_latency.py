# SPDX-License-Identifier: GPL-2.0-or-later
"""Which commands of a trace are a benchmark's, and their latencies."""

import json
from pathlib import Path
from typing import Any

import pytest
from native_trace import FLUSH, READ, REFUSED, WRITE, WRITE_ZEROES, write_trace

from rsd.compare import drive_latency
from rsd.compare.figures import BadOutput


def readings(directory: Path, before: tuple[int, int], after: tuple[int, int]) -> None:
    """The counters of reads and writes."""
    for when, values in (("before", before), ("after", after)):
        pairs = zip(("host_read_cmds", "host_write_cmds"), values, strict=True)
        text = json.dumps({"counters": {name: {"value": value} for name, value in pairs}})
        (directory / when).mkdir(exist_ok=True)
        (directory / when / "counters.json").write_text(text)


def summary(directory: Path) -> Any:
    drive_latency.write(directory / "trace", directory)
    return json.loads((directory / drive_latency.NAME).read_text())


def test_the_commands_between_two_readings(tmp_path: Path) -> None:
    # The drive had done 100 reads and 50 writes when QEMU began.
    commands = [(READ, 7000, 0), (WRITE, 9000, 0)]  # before the benchmark
    commands += [(WRITE, ns * 1000, 0) for ns in range(1, 201)]
    commands += [(FLUSH, 5, 0), (WRITE_ZEROES, 10**9, 0), (READ, 2000, 0), (READ, 0, REFUSED)]
    commands += [(READ, 8000, 0), (WRITE, 9000, 0)]  # after it
    write_trace(tmp_path / "trace", commands, (100 + 3, 50 + 203, 9))
    readings(tmp_path, (101, 51), (102, 252))
    assert summary(tmp_path) == {
        "read": {"commands": 1, "mean": 2.0, "p50": 2.0, "p99": 2.0, "p99.9": 2.0, "max": 2.0},
        "write": {
            "commands": 200,
            "mean": 100.5,
            "p50": 100.0,
            "p99": 198.0,
            "p99.9": 200.0,
            "max": 200.0,
        },
    }


def test_a_benchmark_without_reads(tmp_path: Path) -> None:
    write_trace(tmp_path / "trace", [(READ, 7000, 0), (WRITE, 9000, 0)], (1, 1))
    readings(tmp_path, (1, 0), (1, 1))
    assert summary(tmp_path)["read"] == {"commands": 0}
    assert summary(tmp_path)["write"]["mean"] == 9.0


def test_a_trace_that_does_not_fit_is_noticed(tmp_path: Path) -> None:
    write_trace(tmp_path / "trace", [(WRITE, 9000, 0)], (0, 4))
    for before, after in (((0, 2), (0, 4)), ((0, 3), (0, 5)), ((0, 4), (0, 3))):
        readings(tmp_path, before, after)
        with pytest.raises(BadOutput, match="its 1 commands are not those that host_write_cmds"):
            summary(tmp_path)
    # of a QEMU that was killed, there is no end
    write_trace(tmp_path / "trace", [(WRITE, 9000, 0)])
    with pytest.raises(BadOutput, match="does not end with the counters"):
        summary(tmp_path)
    (tmp_path / "trace").write_bytes(b"something else altogether")
    with pytest.raises(BadOutput, match="not a trace"):
        summary(tmp_path)
