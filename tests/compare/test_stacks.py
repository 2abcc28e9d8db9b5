# SPDX-License-Identifier: GPL-2.0-or-later
"""Benchmarks on file systems: tables, scripts, figures, and what is kept."""

import dataclasses
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from native_trace import READ, WRITE, write_trace
from rich.console import Console

from rsd import artifacts
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.compare import benchmarks, results, selection, stack_run, stack_script, table
from rsd.compare.benchmarks import BENCHMARKS, Benchmark, Output
from rsd.compare.cells import SYSTEMS, Level
from rsd.compare.figures import BadOutput, Figure, counters, read_json
from rsd.compare.run import Plan, Run, differing, merged, run_plan
from rsd.compare.stack_figures import stack_figures
from rsd.compare.stack_run import StackPlan, run_stack, stack_plans
from rsd.compare.stacks import REDO, RISA, SMALL, STACKS, Scale
from rsd.errors import RsdError
from rsd.machine import GuestJob, GuestResult, Outcome
from rsd.progress import Progress
from rsd.report import page
from rsd.report.data import Results
from rsd.systems import SYSTEMS as DRIVES
from rsd.systems import get_drive

DATA = Path(__file__).parent / "data" / "stacks"
BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS}
STORED = tuple(BY_NAME[path.name] for path in sorted(DATA.iterdir()))


def figures(benchmark: Benchmark, directory: Path | None = None) -> dict[str, float]:
    found = stack_figures(STACKS["ext4-page"], benchmark, directory or DATA / benchmark.name)
    assert len({figure.metric for figure in found}) == len(found)
    assert {figure.clock for figure in found} == {"virtual", "count"}
    return {figure.metric: figure.value for figure in found}


# The tables


def test_names_are_unique_and_of_a_group() -> None:
    assert len(BY_NAME) == len(BENCHMARKS)
    assert not BY_NAME.keys() & {cell.name for cell in selection.ALL_CELLS}
    assert not STACKS.keys() & SYSTEMS.keys()
    assert {name.split("-")[0] for name in BY_NAME} == set(selection.GROUPS)


def test_stacks_are_on_drives_that_exist() -> None:
    for stack in STACKS.values():
        assert DRIVES[stack.drive] is not None


def test_the_guest_has_less_memory_than_the_drive() -> None:
    for scale in (SMALL, REDO, RISA):
        assert scale.memory_mib * 2 <= scale.raw_mib


def test_levels_include_each_other() -> None:
    quick, default, full = (set(selection.select(lv, [], []).benchmarks) for lv in Level)
    assert quick < default < full
    assert {name for name, _ in full} == STACKS.keys()
    assert {benchmark for _, benchmark in full} == set(BENCHMARKS)


def test_a_stack_that_is_named_is_measured_whatever_its_level() -> None:
    chosen = selection.select(Level.QUICK, ["btrfs-page"], [])
    assert {name for name, _ in chosen.benchmarks} == {"btrfs-page"}
    assert chosen.drives == () and chosen.cells == ()
    chosen = selection.select(Level.QUICK, ["btrfs-rsd"], ["risa-mariadb"])
    assert [b.name for _, b in chosen.benchmarks] == ["risa-mariadb"]


def test_a_group_of_benchmarks_can_be_named() -> None:
    chosen = selection.select(Level.FULL, ["f2fs-rsd"], ["redo"])
    assert {b.name.split("-")[0] for _, b in chosen.benchmarks} == {"redo"}
    assert chosen.drives == ()


def test_nothing_to_measure_is_said() -> None:
    # btrfs in zoned mode does not fit REDO's drive
    with pytest.raises(RsdError, match="redo does not run on btrfs-rsd"):
        selection.select(Level.FULL, ["btrfs-rsd"], ["redo"])
    # --full would not help here, and does there
    with pytest.raises(RsdError, match="randread does not run on rfs.rsd"):
        selection.select(Level.DEFAULT, ["rfs+rsd"], ["randread"])
    with pytest.raises(RsdError, match=r"redo on rfs.rsd is of a higher level\n.*--full"):
        selection.select(Level.DEFAULT, ["rfs+rsd"], ["redo"])


def test_plans_of_a_level_are_repeated(tmp_path: Path) -> None:
    chosen = selection.select(Level.DEFAULT, ["ext4-page", "f2fs-rsd"], []).benchmarks
    plans = stack_plans(chosen, tmp_path, keep=False)
    assert len(plans) == 2 * len(chosen)
    assert plans[0].system != plans[1].system
    (rare,) = selection.select(Level.FULL, ["ext4-page"], ["risa-mariadb"]).benchmarks
    assert len(stack_plans([rare], tmp_path, keep=True)) == 1
    cold = stack_plans([rare], tmp_path, keep=True, cold=True)
    assert [(plan.number, plan.cold) for plan in cold] == [(1, False), (2, True)]


def test_each_volume_is_aged_before_its_plans(
    tmp_path: Path, built: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and what fails there is left to the plans."""
    aged: list[tuple[str, str]] = []

    def fail(system: str, scale: Scale, *_: object) -> None:
        aged.append((system, scale.name))
        raise RsdError("no")

    monkeypatch.setattr(stack_run, "aged_volume", fail)
    chosen = selection.select(Level.DEFAULT, ["rfs+rsd", "ext4-page"], []).benchmarks
    plans = stack_plans(chosen, tmp_path, keep=False)
    for age in stack_run.agings(plans, built, Cache(tmp_path / "cache"), Progress()):
        age()
    assert aged == [("ext4-page", "small"), ("rfs+rsd", "small")]


# The scripts


@pytest.mark.parametrize("name", STACKS)
def test_the_scripts_are_shell(name: str) -> None:
    stack = STACKS[name]
    for scale in stack.scales:
        texts = [stack_script.age(stack, scale)]
        texts += [stack_script.measure(stack, b) for b in BENCHMARKS if b.scale is scale]
        for text in texts:
            subprocess.run(["sh", "-n"], input=text, text=True, check=True)
            assert ("rsdctl" in text) == stack.ours


def run_age(directory: Path, fill: int, total: int) -> dict[str, int]:
    directory.mkdir()
    command = [sys.executable, stack_script.AGE, directory, str(fill), str(total), "0", "3"]
    subprocess.run(command, check=True)
    return {
        str(path.relative_to(directory)): path.stat().st_size
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_aging_is_the_same_everywhere_and_leaves_a_third(tmp_path: Path) -> None:
    first = run_age(tmp_path / "a", 16 << 20, 64 << 20)
    assert first == run_age(tmp_path / "b", 16 << 20, 64 << 20)
    assert 0.15 < sum(first.values()) / (16 << 20) < 0.55
    # what is left are not only the files that the fill made
    assert max(int(name.split("/")[1]) for name in first) > 2 * len(first) * 3


def oltp(transactions: int) -> list[str]:
    text = subprocess.run(
        ["awk", "-v", "rows=500", "-v", f"transactions={transactions}", "-v", "journal=delete"]
        + [benchmarks.OLTP_AWK],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [line for line in text.splitlines() if not line.startswith(".")]


def test_the_transactions_are_sql_and_keep_the_rows() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    changed = 0
    for line in oltp(0):
        connection.execute(line)
    before = connection.execute("SELECT * FROM sbtest ORDER BY id").fetchall()
    statements = oltp(20)
    assert statements.count("COMMIT;") == 20
    for line in statements:
        connection.execute(line)
    after = connection.execute("SELECT * FROM sbtest ORDER BY id").fetchall()
    assert [row[0] for row in after] == [row[0] for row in before] == list(range(1, 501))
    changed = sum(old != new for old, new in zip(before, after, strict=True))
    assert 20 < changed <= 60
    assert oltp(20) == statements


# The figures


def test_every_kind_of_output_is_stored() -> None:
    assert {benchmark.output for benchmark in STORED} == set(Output) - {Output.DESCRIBED}


@pytest.mark.parametrize("benchmark", STORED, ids=lambda benchmark: benchmark.name)
def test_figures(benchmark: Benchmark) -> None:
    found = figures(benchmark)
    assert found["run_time"] > 0
    assert found["throughput"] == pytest.approx(benchmark.work / found["run_time"], rel=1e-3)
    assert found["fs.written"] > 0
    programs = found["nand.programs"]
    assert programs == sum(v for m, v in found.items() if m.startswith("nand.programs."))
    # the block layer and the drive count the same writes
    assert found["nand.programs.host"] * 4096 == pytest.approx(found["fs.written"], rel=0.02)
    assert found["write_amplification"] >= 1
    prefix = f"{benchmark.phases[-1]}." if len(benchmark.phases) > 1 else ""
    if benchmark.output in (Output.FIO, Output.SYSBENCH, Output.SQLITE):
        latencies = [found[f"{prefix}latency.{name}"] for name in ("p50", "p99", "p99.9", "max")]
        assert latencies == sorted(latencies)
    drive = [found[f"drive.write.latency.{name}"] for name in ("p50", "p99", "p99.9", "max")]
    assert drive == sorted(drive)
    if benchmark.written:
        assert found["fs.write_amplification"] >= 1


def drop_times(directory: Path) -> None:
    (directory / "times").unlink()


def drop_counters(directory: Path) -> None:
    (directory / "after" / "counters.json").write_text("{}")


def short_stat(directory: Path) -> None:
    (directory / "before" / "stat").write_text("1 2 3\n")


def fewer_transactions(directory: Path) -> None:
    path = directory / "report"
    path.write_text("\n".join(path.read_text().splitlines()[1:]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_times, "times"),
        (drop_counters, "rsdctl"),
        (short_stat, "before/stat"),
        (fewer_transactions, "399 of 400 transactions"),
    ],
)
def test_bad_output_is_noticed(
    tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    shutil.copytree(DATA / "small-sqlite-delete", tmp_path / "cell")
    change(tmp_path / "cell")
    with pytest.raises(BadOutput, match=message):
        figures(BY_NAME["small-sqlite-delete"], tmp_path / "cell")


def test_rfs_counts_what_it_writes(tmp_path: Path) -> None:
    benchmark = BY_NAME["small-postmark"]
    shutil.copytree(DATA / benchmark.name, tmp_path / "cell")
    texts = {"before": "written_data:1 2\ncopied_inode_map:3\nfree_zones:9\n"}
    texts["after"] = "written_data:5 7\ncopied_inode_map:8\nfree_zones:4\n"
    for when, text in texts.items():
        (tmp_path / "cell" / when / "fs").write_text(text)
    found = stack_figures(STACKS["rfs+rsd"], benchmark, tmp_path / "cell")
    counted = {figure.metric: figure.value for figure in found if figure.metric[:4] == "rfs."}
    assert counted == {"rfs.written_data": 9, "rfs.copied_inode_map": 5}
    for bad in ("", "written_data:x\n"):
        (tmp_path / "cell" / "after" / "fs").write_text(bad)
        with pytest.raises(BadOutput, match="after/fs"):
            stack_figures(STACKS["rfs+rsd"], benchmark, tmp_path / "cell")


@pytest.mark.parametrize("benchmark", STORED, ids=lambda benchmark: benchmark.name)
def test_a_report_that_breaks_off_is_noticed(tmp_path: Path, benchmark: Benchmark) -> None:
    shutil.copytree(DATA / benchmark.name, tmp_path / "cell")
    name = f"{benchmark.phases[-1]}.json" if benchmark.phases else "report"
    path = tmp_path / "cell" / name
    path.write_text(path.read_text()[: path.stat().st_size // 3])
    with pytest.raises(BadOutput):
        figures(benchmark, tmp_path / "cell")


# Running, keeping, going on


@pytest.fixture
def built(tmp_path: Path) -> Artifacts:
    """A QEMU that can tell its version, and no more."""
    qemu = tmp_path / "qemu"
    qemu.write_text("#!/bin/sh\necho 'QEMU emulator version 10.0.0'\n")
    qemu.chmod(0o755)
    return Artifacts(qemu, qemu, qemu, qemu, qemu, qemu, (), {"qemu": "12ab"})


class Guests:
    """In place of real guests: aging makes a media file, a benchmark its stored output."""

    def __init__(self) -> None:
        self.jobs: list[GuestJob] = []
        self.fail_on = ""
        self.die_on = ""
        self.says = "@failed on purpose"

    def run(self, job: GuestJob, built: Artifacts, *, cache: Cache) -> GuestResult:
        self.jobs.append(job)
        assert job.out_dir is not None and job.media is not None
        job.out_dir.mkdir(parents=True)
        if self.die_on and self.die_on in job.script:
            (job.out_dir / "times").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
        status = 0
        if "age.py" in job.script:
            job.media.write_bytes(bytes(1 << 20) + b"aged")
            readings = job.out_dir / Path(stack_script.READINGS).name
            readings.mkdir()
            for number in range(12):
                facts = {"counters": {"nand_programs": {"value": 70_000 + 2500 * number}}}
                (readings / str((number + 1) * 10_000_000)).write_text(json.dumps(facts))
        else:
            assert job.media.read_bytes().endswith(b"aged")
            name = "small-postmark" if "postmark" in job.script else "small-sqlite-delete"
            shutil.copytree(DATA / name, job.out_dir, dirs_exist_ok=True)
            before, after = (
                counters(read_json(job.out_dir / when / "counters.json"))
                for when in ("before", "after")
            )
            reads, writes = (
                after[name] - before[name] for name in ("host_read_cmds", "host_write_cmds")
            )
            commands = [(READ, 1000, 0)] * reads + [(WRITE, 2000, 0)] * writes
            final = (after["host_read_cmds"], after["host_write_cmds"])
            write_trace(Path(job.namespace["trace"]), commands, final)
        if self.fail_on and self.fail_on in job.script:
            status = stack_script.FAILED
        return GuestResult(
            outcome=Outcome.EXITED,
            status=status,
            out_dir=job.out_dir,
            output=self.says,
            console="",
            virtual_s=1.0,
            wall_s=1.0,
            qemu_cpu_s=1.0,
            hashes={},
            qemu_command=("qemu",),
        )


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Guests]:
    found = Guests()
    monkeypatch.setattr(stack_run, "run_guest", found.run)
    yield found


def plan(tmp_path: Path, name: str, number: int = 1, *, keep: bool = True) -> StackPlan:
    return StackPlan("f2fs-rsd", number, BY_NAME[name], tmp_path / f"raw.{number}", keep)


def test_only_a_cold_run_boots_and_it_is_kept_apart(
    tmp_path: Path, built: Artifacts, guests: Guests
) -> None:
    cache = Cache(tmp_path / "cache")
    usual = plan(tmp_path, "small-postmark")
    for one in (usual, dataclasses.replace(usual, cold=True)):
        assert not run_stack(one, built, cache, Progress()).failures
        shutil.rmtree(tmp_path / "raw.1")
    # Both begin with the same aged volume.
    assert [("age.py" in job.script, job.cold) for job in guests.jobs] == [
        (True, False),
        (False, False),
        (False, True),
    ]


def test_what_finished_is_kept(tmp_path: Path, built: Artifacts, guests: Guests) -> None:
    cache = Cache(tmp_path / "cache")
    first = run_stack(plan(tmp_path, "small-postmark"), built, cache, Progress())
    assert len(guests.jobs) == 2 and not first.failures
    shutil.rmtree(tmp_path / "raw.1")
    second = run_stack(plan(tmp_path, "small-postmark"), built, cache, Progress())
    assert len(guests.jobs) == 2
    assert second.figures == first.figures and second.figures
    found = {figure.metric: figure.value for figure in second.figures["small-postmark"]}
    assert found["drive.write.latency.p99"] == 2
    # another benchmark uses the same aged volume, another QEMU does not
    run_stack(plan(tmp_path, "small-sqlite-delete"), built, cache, Progress())
    assert len(guests.jobs) == 3
    other = Artifacts(*[getattr(built, f) for f in artifacts.Artifacts.__annotations__][:-1], {})
    run_stack(plan(tmp_path, "small-postmark", 2), other, cache, Progress())
    assert len(guests.jobs) == 5


def test_no_other_system_depends_on_rfs(tmp_path: Path, built: Artifacts) -> None:
    """Its module and tools decide neither what the cache keeps of a stack nor who has them."""
    other = dataclasses.replace(built, hashes={**built.hashes, "module": "1", "rfs-tools": "2"})
    for name in STACKS:
        one = StackPlan(name, 1, BY_NAME["small-postmark"], tmp_path, True)
        same = stack_run.cell_key(one, built) == stack_run.cell_key(one, other)
        assert same != name.startswith("rfs"), name
        job = stack_run.stack_job(STACKS[name], SMALL, "true", tmp_path, tmp_path)
        assert job.rfs == name.startswith("rfs"), name
    tool = dataclasses.replace(built, hashes={**built.hashes, "tools": "1"})
    assert stack_run.cell_key(one, built) != stack_run.cell_key(one, tool)


def test_a_kill_in_the_middle_costs_only_what_was_running(
    tmp_path: Path, built: Artifacts, guests: Guests
) -> None:
    def run(where: str) -> list[dict[str, list[Figure]]]:
        cache = Cache(tmp_path / f"cache.{where}")
        names = ("small-postmark", "small-sqlite-delete")
        plans = (plan(tmp_path / where, name) for name in names)
        return [run_stack(one, built, cache, Progress()).figures for one in plans]

    whole = run("whole")
    child = os.fork()
    if child == 0:
        guests.die_on = "sqlite3"
        try:
            run("killed")
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    guests.jobs.clear()
    assert run("killed") == whole and all(whole)
    # neither the aging nor the benchmark that had ended
    assert ["sqlite3" in job.script for job in guests.jobs] == [True]


def test_a_failure_is_not_kept_and_named(tmp_path: Path, built: Artifacts, guests: Guests) -> None:
    cache = Cache(tmp_path / "cache")
    guests.fail_on = "postmark"
    run = run_stack(plan(tmp_path, "small-postmark"), built, cache, Progress())
    assert "on purpose" in run.failures["small-postmark"] and not run.figures
    guests.fail_on = ""
    run = run_stack(plan(tmp_path, "small-postmark"), built, cache, Progress())
    assert run.figures and not run.failures


@pytest.mark.parametrize("where", ["age.py", "postmark"])
def test_no_space_is_a_figure_and_kept(
    tmp_path: Path, built: Artifacts, guests: Guests, where: str
) -> None:
    cache = Cache(tmp_path / "cache")
    guests.fail_on, guests.says = where, "OSError: [Errno 28] No space left on device"
    for started in (1 if where == "age.py" else 2, 0):
        guests.jobs.clear()
        run = run_stack(plan(tmp_path, "small-postmark"), built, cache, Progress())
        assert not run.failures and len(guests.jobs) == started
        assert [figure.metric for figure in run.figures["small-postmark"]] == ["no_space"]
        shutil.rmtree(tmp_path / "raw.1", ignore_errors=True)
    content = results.results([run], (), built)
    stream = io.StringIO()
    table.print_table(content, Console(file=stream, width=150))
    assert re.search(r"small-postmark +\| f2fs-rsd \| +no space", stream.getvalue())
    page.write(content, tmp_path / "report.html")


def two_runs(tmp_path: Path, built: Artifacts) -> list[Run]:
    cache = Cache(tmp_path / "cache")
    names = ("small-postmark", "small-sqlite-delete")
    return [
        run_stack(plan(tmp_path, name, number, keep=False), built, cache, Progress())
        for number in (1, 2)
        for name in names
    ]


def test_runs_are_compared_over_all_benchmarks(
    tmp_path: Path, built: Artifacts, guests: Guests
) -> None:
    runs = two_runs(tmp_path, built)
    whole = merged(runs)
    assert len(whole) == 2 and len(whole[0].figures) == 2
    assert differing(whole) == []
    # a benchmark measured once only is no difference, a changed figure is
    assert differing(merged(runs[:3])) == []
    runs[3].figures["small-sqlite-delete"].pop()
    assert len(differing(merged(runs))) == 1


def test_table_csv_and_report(tmp_path: Path, built: Artifacts, guests: Guests) -> None:
    content = results.results(two_runs(tmp_path, built), (), built)
    assert content["repeatability"]["f2fs-rsd"]["identical"] is True
    stream = io.StringIO()
    table.print_table(content, Console(file=stream, width=150))
    assert "per s: transactions of small-sqlite-delete, small-postmark" in stream.getvalue()
    assert "identical (2)" in stream.getvalue()
    results.write_csv(content, tmp_path / "results.csv")
    lines = (tmp_path / "results.csv").read_text().splitlines()
    assert lines[0] == "system,workload,metric,value,unit,clock"
    assert len(lines) == 1 + len(content["records"])
    page.write(content, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert text.count("<svg") == len(Results(content).benchmarks) == 2
    assert "mkfs.f2fs" in text


def test_a_drive_that_fails_names_its_cells(
    tmp_path: Path, built: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rsd.compare import run as drive_run

    def no_guest(*_: object, **__: object) -> GuestResult:
        raise RsdError("QEMU ended with status 1")

    monkeypatch.setattr(drive_run, "run_guest", no_guest)
    cells = selection.select(Level.QUICK, ["rsd"], []).cells
    run = drive_run.run_plan(
        Plan("rsd", 1, cells, tmp_path / "raw"), built, Cache(tmp_path / "c"), Progress()
    )
    assert run.failures.keys() == {cell.name for cell in cells}
    assert "QEMU ended" in run.failures[cells[0].name]


@pytest.fixture
def drives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[GuestJob]:
    """In place of real guests: each cell ends well; aged drives are a few bytes."""
    from rsd.compare import aged as aged_drives
    from rsd.compare import run as drive_run

    jobs: list[GuestJob] = []

    def guest(job: GuestJob, *_: object, on_output: Callable[[bytes], None], **__: object) -> Any:
        jobs.append(job)
        assert job.out_dir is not None and not job.rfs
        (job.out_dir / "versions").write_text("6.12\n")
        if job.system == "page-ftl":
            assert job.media is not None and job.media.read_bytes() == b"aged"
            job.media.write_bytes(b"changed")
        for name in re.findall("@begin ([\\w-]+)", job.script):
            shutil.copytree(DATA.parent / "raw" / name, job.out_dir / name)
            on_output(f"@begin {name}\n@end {name} 0\n".encode())
        return GuestResult(Outcome.EXITED, 0, job.out_dir, "", "", 1.0, 1.0, 1.0, {}, ("qemu",))

    def aged(*_: object) -> Path:
        facts = {"steady": False, "capacities": 50, "range": 0.03, "slope": 0.0}
        (tmp_path / "aging.json").write_text(json.dumps({"precondition": facts}))
        (tmp_path / "aged").write_bytes(b"aged")
        return tmp_path / "aged"

    monkeypatch.setattr(drive_run, "run_guest", guest)
    monkeypatch.setattr(drive_run, "aged_drive", aged)
    monkeypatch.setattr(aged_drives, "aged_drive", aged)
    return jobs


@pytest.mark.parametrize(("system", "guests_a_run"), [("rsd", 1), ("page-ftl", 2)])
def test_what_a_drives_guest_finished_is_kept(
    tmp_path: Path, built: Artifacts, drives: list[GuestJob], system: str, guests_a_run: int
) -> None:
    """Another RFS changes nothing. And an aged drive is a new copy in each guest."""
    other = dataclasses.replace(built, hashes={**built.hashes, "module": "1", "rfs-tools": "2"})
    cells = selection.select(Level.FULL, [system], ["randread-4k-qd1", "mixed-4k-qd32"]).cells
    cache = Cache(tmp_path / "cache")
    first, second = (
        run_plan(Plan(system, 1, cells, tmp_path / name, keep=True), parts, cache, Progress())
        for name, parts in (("first", built), ("second", other))
    )
    assert len(drives) == guests_a_run
    assert not first.failures and first.figures.keys() == {cell.name for cell in cells}
    assert second.figures == first.figures and second.wall_s == first.wall_s
    said = [str(verdict) for verdict in first.aged.values()]
    unsteady = ["not steady after 50 capacities, range 3.0%, slope +0.0%"]
    assert said == (unsteady if system == "page-ftl" else []) and second.aged == first.aged
    # the second run of a comparison is a run of its own
    run_plan(Plan(system, 2, cells, tmp_path / "third", keep=True), built, cache, Progress())
    assert len(drives) == 2 * guests_a_run
    run_plan(Plan(system, 1, cells, tmp_path / "fourth"), built, cache, Progress())
    assert len(drives) == 3 * guests_a_run


# The document


def documented(name: str) -> str:
    text = (Path(benchmarks.__file__).parent / "README.md").read_text()
    return text.split(f"<!-- table: {name} -->\n")[1].split("<!-- end -->")[0]


def test_the_document_lists_the_drives() -> None:
    rows = [
        f"| `{name}` | {get_drive(name).summary} | {'aged' if traits.aged else 'prepared'} | "
        f"{traits.level.name.lower()} |"
        for name, traits in SYSTEMS.items()
    ]
    head = "| drive | what | state | first in |\n| --- | --- | --- | --- |\n"
    assert documented("drives") == head + "\n".join(rows) + "\n"


def test_the_document_lists_the_stacks() -> None:
    rows = [
        f"| `{name}` | {stack.summary} | `{stack.file_system.mkfs}` | {stack.level.name.lower()} |"
        for name, stack in STACKS.items()
    ]
    head = "| stack | what | made by | first in |\n| --- | --- | --- | --- |\n"
    assert documented("stacks") == head + "\n".join(rows) + "\n"


def test_the_document_lists_the_benchmarks() -> None:
    rows = [
        f"| `{benchmark.name}` | {benchmark.title} | {stack_run.REPETITIONS[benchmark.level]} |"
        for benchmark in BENCHMARKS
    ]
    head = "| benchmark | what | runs |\n| --- | --- | --- |\n"
    assert documented("benchmarks") == head + "\n".join(rows) + "\n"
