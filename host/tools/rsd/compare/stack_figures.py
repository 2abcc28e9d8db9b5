# SPDX-License-Identifier: GPL-2.0-or-later
"""From the files a benchmark on a file system left behind to figures."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rsd.compare import drive_latency
from rsd.compare.benchmarks import Benchmark, Output
from rsd.compare.figures import PERCENTILES, BadOutput, Figure, counters, read_json
from rsd.compare.stacks import Stack

SECTOR = 512
# Of bonnie++'s CSV, version 1.98
BONNIE_FIELDS = 50
CAUSES = ("host", "clean", "merge", "wear", "map", "pad")
NAND = (("read", "reads", "pages"), ("prog", "programs", "pages"), ("erase", "erases", "blocks"))


def stack_figures(stack: Stack, benchmark: Benchmark, directory: Path) -> list[Figure]:
    """Everything a finished benchmark gave. Raises BadOutput for what is missing or wrong."""
    seconds = run_seconds(directory)
    figures = [
        Figure("run_time", round(seconds, 6), "s", "virtual"),
        Figure("throughput", round(benchmark.work / seconds, 3), f"{benchmark.unit}/s", "virtual"),
        *benchmark_figures(benchmark, directory),
    ]
    before, after = _stat(directory / "before"), _stat(directory / "after")
    read, written, discarded = (after[field] - before[field] for field in (2, 6, 13))
    figures += [
        Figure("fs.read", read * SECTOR, "bytes", "count"),
        Figure("fs.written", written * SECTOR, "bytes", "count"),
        Figure("fs.discarded", discarded * SECTOR, "bytes", "count"),
    ]
    if benchmark.written:
        ratio = written * SECTOR / benchmark.written
        figures.append(Figure("fs.write_amplification", round(ratio, 6), "", "count"))
    if stack.ours:
        figures += drive_figures(directory)
        figures += _drive_latencies(directory)
    if stack.file_system.counters:
        figures += file_system_figures(directory)
    return figures


def benchmark_figures(benchmark: Benchmark, directory: Path) -> list[Figure]:
    """What the benchmark says of itself."""
    return [*_PARSERS[benchmark.output](benchmark, directory)]


def run_seconds(directory: Path) -> float:
    """How long the measured command took, with the sync after it, in virtual seconds."""
    try:
        begun, ended = (int(word) for word in (directory / "times").read_text().split())
    except (OSError, ValueError) as error:
        raise BadOutput(f"times: {error}") from error
    return (ended - begun) / 1e9


def _stat(directory: Path) -> list[int]:
    """/sys/block/*/stat, the drive's namespaces added up."""
    try:
        rows = [
            [int(word) for word in line.split()]
            for line in (directory / "stat").read_text().splitlines()
        ]
        if not rows or any(len(row) < 15 for row in rows):
            raise ValueError("not the block layer's fields")
    except (OSError, ValueError) as error:
        raise BadOutput(f"{directory.name}/stat: {error}") from error
    return [sum(column) for column in zip(*rows, strict=True)]


def drive_figures(directory: Path) -> Iterator[Figure]:
    """What the flash did, by cause, from the counters before and after."""
    before = counters(read_json(directory / "before" / "counters.json"))
    after = counters(read_json(directory / "after" / "counters.json"))
    for kind, metric, unit in NAND:
        by_cause = {cause: after[f"{kind}_{cause}"] - before[f"{kind}_{cause}"] for cause in CAUSES}
        yield Figure(f"nand.{metric}", sum(by_cause.values()), unit, "count")
        for cause, value in by_cause.items():
            yield Figure(f"nand.{metric}.{cause}", value, unit, "count")
        if kind == "prog":
            programs = sum(by_cause.values())
    host = after["host_write_pages"] - before["host_write_pages"]
    if host:
        yield Figure("write_amplification", round(programs / host, 6), "", "count")
    yield Figure("map_bytes", after["map_bytes"], "bytes", "count")


def _drive_latencies(directory: Path) -> Iterator[Figure]:
    """Of the commands that transfer data, from submission to completion."""
    for kind, values in read_json(directory / drive_latency.NAME).items():
        yield Figure(f"drive.{kind}.commands", values.pop("commands"), "commands", "count")
        for name, value in values.items():
            yield _latency(f"drive.{kind}.latency.{name}", value)


def file_system_figures(directory: Path) -> Iterator[Figure]:
    """What RFS wrote and moved, in blocks by kind; data and copies are numbers a group."""
    before, after = (_kinds(directory / when / "fs") for when in ("before", "after"))
    for kind, blocks in after.items():
        yield Figure(f"rfs.{kind}", blocks - before[kind], "blocks", "count")


def file_system_counted(directory: Path, name: str) -> int:
    """By how much one of RFS's counters grew. Raises BadOutput."""
    values = []
    for when in ("before", "after"):
        path = directory / when / "fs"
        try:
            lines = dict(line.split(":", 1) for line in path.read_text().splitlines())
            values.append(int(lines[name]))
        except (KeyError, OSError, ValueError) as error:
            raise BadOutput(f"{when}/fs: {name}: {error}") from error
    return values[1] - values[0]


def _kinds(path: Path) -> dict[str, int]:
    try:
        lines = (line.split(":") for line in path.read_text().splitlines())
        kinds = {
            name: sum(map(int, numbers.split()))
            for name, numbers in lines
            if name.startswith(("written_", "copied_"))
        }
    except (OSError, ValueError) as error:
        raise BadOutput(f"{path.parent.name}/fs: {error}") from error
    if not kinds:
        raise BadOutput(f"{path.parent.name}/fs: no counters")
    return kinds


def _fio(benchmark: Benchmark, directory: Path) -> Iterator[Figure]:
    for phase in benchmark.phases:
        output = read_json(directory / f"{phase}.json")
        prefix = f"{phase}." if len(benchmark.phases) > 1 else ""
        try:
            (job,) = output["jobs"]
            if job["error"]:
                raise BadOutput(f"{phase}.json: error {job['error']}")
            side = max((job["read"], job["write"]), key=lambda way: way["io_bytes"])
            latency = side["clat_ns"]
            yield _latency(f"{prefix}latency.mean", latency["mean"] / 1e3)
            for name, key in PERCENTILES.items():
                # fio gives the middle of a bucket, which may lie above every latency
                value = min(latency["percentile"][key], latency["max"])
                yield _latency(f"{prefix}latency.{name}", value / 1e3)
            yield _latency(f"{prefix}latency.max", latency["max"] / 1e3)
            rate = side["io_bytes"] / 1e6 / (side["runtime"] / 1e3)
            yield Figure(f"{prefix}bandwidth", round(rate, 3), "MB/s", "virtual")
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise BadOutput(f"{phase}.json: unexpected ({error!r})") from error


def _sysbench(benchmark: Benchmark, directory: Path) -> Iterator[Figure]:
    text = _report(directory)
    buckets = [
        (float(value), int(count))
        for value, count in re.findall(r"^\s*([\d.]+) \|\**\s+(\d+)$", text, re.M)
    ]
    events = _number(r"total number of events:\s+(\d+)", text)
    # one event may be between the last that counts and the order to stop
    if not buckets or abs(events - benchmark.work) > 1:
        raise BadOutput(f"report: {events:.0f} of {benchmark.work:.0f} events done")
    yield _latency("latency.mean", _number(r"avg:\s+([\d.]+)", text) * 1e3)
    yield from _percentiles([(value * 1e3, count) for value, count in buckets])
    yield _latency("latency.max", _number(r"max:\s+([\d.]+)", text) * 1e3)


def _sqlite(benchmark: Benchmark, directory: Path) -> Iterator[Figure]:
    found = re.findall(r"^Run Time: real ([\d.]+)", _report(directory), re.M)
    if len(found) != benchmark.work:
        raise BadOutput(f"report: {len(found)} of {benchmark.work:.0f} transactions done")
    values = sorted(float(text) * 1e6 for text in found)
    yield _latency("latency.mean", sum(values) / len(values))
    yield from _percentiles([(value, 1) for value in values])
    yield _latency("latency.max", values[-1])


def _postmark(benchmark: Benchmark, directory: Path) -> Iterator[Figure]:
    """The terse report: its third number is the count of transactions a second."""
    (line, *_) = [*re.findall(r"^\d+ \d+ [\d. ]+$", _report(directory), re.M), ""]
    fields = line.split()
    if len(fields) != 13:
        raise BadOutput("report: postmark did not finish")
    yield Figure("benchmark.read", int(float(fields[11])), "bytes", "count")
    yield Figure("benchmark.written", int(float(fields[12])), "bytes", "count")


def _bonnie(benchmark: Benchmark, directory: Path) -> Iterator[Figure]:
    """Its own rates are "++++" where a test took less than half a second: only checked."""
    lines = [line.split(",") for line in _report(directory).splitlines()]
    if not any(line[0] == "1.98" and len(line) == BONNIE_FIELDS for line in lines):
        raise BadOutput("report: bonnie++ did not finish")
    yield from ()


def _described(benchmark: Benchmark, directory: Path) -> Iterator[Figure]:
    for one in benchmark.figures:
        try:
            text = (directory / one.file).read_text()
        except (OSError, ValueError) as error:
            raise BadOutput(f"{one.file}, for {one.metric}: {error}") from error
        found = re.findall(one.pattern, text, re.M)
        if not found:
            raise BadOutput(
                f"{one.file}: nothing in it is like the pattern of {one.metric}, {one.pattern};"
                f" raw/ has the file, which ends so: {_end(text)}"
            )
        try:
            value = float(found[-1])
        except ValueError as error:
            raise BadOutput(
                f"{one.file}: the pattern of {one.metric}, {one.pattern}, finds {found[-1]!r},"
                " which is no number"
            ) from error
        yield Figure(one.metric, value, one.unit, "virtual")


def _end(text: str) -> str:
    """The last line that has something."""
    lines = text.strip().splitlines()
    return lines[-1][:80] if lines else "(it is empty)"


_PARSERS: dict[Output, Any] = {
    Output.DESCRIBED: _described,
    Output.FIO: _fio,
    Output.SYSBENCH: _sysbench,
    Output.SQLITE: _sqlite,
    Output.POSTMARK: _postmark,
    Output.BONNIE: _bonnie,
}


def _report(directory: Path) -> str:
    try:
        return (directory / "report").read_text()
    except (OSError, ValueError) as error:
        raise BadOutput(f"report: {error}") from error


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    if found is None:
        raise BadOutput(f"report: nothing like {pattern!r}")
    return float(found[1])


def _percentiles(buckets: list[tuple[float, int]]) -> Iterator[Figure]:
    """Of (value, count) in ascending order: the first value that so many do not exceed."""
    total = sum(count for _, count in buckets)
    for name, key in PERCENTILES.items():
        wanted, seen = total * float(key) / 100, 0
        for value, count in buckets:
            seen += count
            if seen >= wanted:
                yield _latency(f"latency.{name}", value)
                break


def _latency(metric: str, microseconds: float) -> Figure:
    return Figure(metric, round(microseconds, 3), "us", "virtual")
