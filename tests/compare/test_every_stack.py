# SPDX-License-Identifier: GPL-2.0-or-later
"""Every kind of benchmark on every stack, tiny and on a new volume: each gives its figures."""

from pathlib import Path

import pytest

from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.compare import benchmarks as b
from rsd.compare import drive_latency, stack_script
from rsd.compare.benchmarks import BENCHMARKS, FULL, KIB, MIB, REDO, RISA, Benchmark
from rsd.compare.run import guest_failure
from rsd.compare.stack_figures import stack_figures
from rsd.compare.stacks import STACKS
from rsd.machine import GuestJob, run_guest

pytestmark = [pytest.mark.guest, pytest.mark.long]

MODES = {"seqwrite": "write", "seqread": "read", "randread": "randread", "randwrite": "randwrite"}
TINY = (
    b._sqlite(REDO, "tiny", 500, 20, "delete", FULL),
    b._sqlite(REDO, "tiny", 500, 20, "wal", FULL),
    b._postmark(REDO, "tiny", 200, 500, FULL),
    b._tiobench(REDO, "tiny", 8, 8, FULL),
    b._sysbench_files(REDO, "tiny", 8, 300, FULL),
    b._iozone(REDO, "tiny", "-buffered", (4 * KIB, 16 * MIB), False, 16, FULL),
    b._iozone(REDO, "tiny", "-sync", (64 * KIB,), True, 4, FULL),
    b._bonnie(REDO, "tiny", 16, 1, FULL),
    *(b._file(REDO, "tiny", name, name, 8 * MIB, mode, FULL) for name, mode in MODES.items()),
    b._mariadb(REDO, "tiny", 500, 6, 50, FULL),
    b._queries(REDO, "tiny", 500, 6, 30, FULL),
    *(b._hadoop(REDO, "tiny", name, 1, 16, FULL) for name in b._HADOOP),
)


def test_no_kind_is_missing() -> None:
    assert {x.output for x in TINY} == {x.output for x in BENCHMARKS}
    assert {_program(x) for x in TINY} == {_program(x) for x in BENCHMARKS}


def _program(benchmark: Benchmark) -> str:
    """By its name: what is measured, without the group."""
    return benchmark.name.split("-")[1]


@pytest.mark.parametrize("name", STACKS)
def test_every_kind_runs(name: str, built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> None:
    """One guest, which makes the file system and mounts it for each benchmark."""
    stack = STACKS[name]
    scale = REDO if REDO in stack.scales else RISA
    media, trace = tmp_path / "media", tmp_path / "trace"
    if not stack.ours:
        with media.open("xb") as stream:
            stream.truncate(stack.raw_bytes(scale))
    made = stack_script.age(stack, scale).replace("must python3 /tmp/age.py", "true")
    script = "".join(
        f"echo {x.name}\nmkdir /out/{x.name}\nsh /in/{x.name} || exit\n"
        f"! mount | grep {stack_script.VOLUME} || exit\n"
        for x in TINY
    )
    job = GuestJob(
        system=stack.drive,
        script=f"( {made} ) || exit\n{script}",
        media=media,
        rfs=stack.rfs,
        inputs={x.name: _measure(name, x) for x in TINY},
        out_dir=tmp_path / "out",
        memory_mib=RISA.memory_mib,  # MariaDB's buffer pool
        namespace=stack.properties(scale) | ({"trace": str(trace)} if stack.ours else {}),
        waits=not stack.ours,
    )
    result = run_guest(job, built, cache=rsd_cache)
    assert not guest_failure(result), result.output[-2000:]
    for benchmark in TINY:
        directory = tmp_path / "out" / benchmark.name
        if stack.ours:
            drive_latency.write(trace, directory)
        figures = stack_figures(stack, benchmark, directory)
        values = {figure.metric: figure.value for figure in figures}
        assert values["run_time"] > 0 and values["throughput"] > 0, benchmark.name
        if stack.ours:
            assert values["drive.write.latency.p99"] > 0, benchmark.name
        if benchmark.written:
            assert values["fs.written"] >= benchmark.written, benchmark.name


def _measure(stack: str, benchmark: Benchmark) -> str:
    """The script that measures it, with directories of its own."""
    text = stack_script.measure(STACKS[stack], benchmark)
    return text.replace("out=/out\n", f"out=/out/{benchmark.name}\n").replace(
        f"{stack_script.VOLUME}/bench", f"{stack_script.VOLUME}/{benchmark.name}"
    )
