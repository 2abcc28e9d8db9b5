# SPDX-License-Identifier: GPL-2.0-or-later
"""Sweeps as workflows, run by Snakemake itself: with two jobs here, and by Slurm's two nodes."""

import json
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import slurm

from rsd.artifacts import REPOSITORY, Artifacts

SWEEP = """
[options]
requests = {requests}
set = {{ channels = 2, ways = 2, blocks = 16, pages = 8, idle-erase = 0 }}

[axes]
pattern = ["uniform", "sequential"]
"set.t-prog" = [{times}]
"""
SLURM = (
    *("--executor", "slurm", "--jobs", "2", "--slurm-no-account"),
    *("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2"),
    *("--retries", "3", "--rerun-incomplete", "--quiet"),
)


def make(directory: Path, *, requests: int = 500, times: str = "100000, 200000") -> Path:
    """A file with four cells."""
    path = directory / "sweep.toml"
    path.write_text(SWEEP.format(requests=requests, times=times))
    return path


def rsd(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [REPOSITORY / "rsd", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def engine(
    snakemake: Path, store: Path, *words: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Snakemake in the workflow's directory, to its end."""
    return subprocess.run(
        [snakemake, *words],
        cwd=store,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def workflow(file: Path, store: Path) -> list[str]:
    """The keys of the cells of a workflow that is written now."""
    done = rsd("sweep", file, "--snakemake", store)
    assert done.returncode == 0, done.stderr
    return list(json.loads((store / "cells.json").read_text()))


def stamps(store: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (store / "cells").iterdir()}


def test_a_workflow_gives_the_same_bytes(snakemake: Path, tmp_path: Path) -> None:
    """Two jobs at a time; a second run has nothing to do, as the table has not."""
    file, store = make(tmp_path), tmp_path / "it's here"
    keys = workflow(file, store)
    done = engine(snakemake, store, "--cores", "2", "--quiet")
    assert done.returncode == 0, done.stderr
    before = stamps(store)
    assert set(before) == {f"{key}.json" for key in keys} and len(keys) == 4
    assert "Nothing to be done" in engine(snakemake, store, "--cores", "2").stderr
    elsewhere = rsd("sweep", file, "--store", store)
    here = rsd("sweep", file, "--store", tmp_path / "here")
    assert (elsewhere.returncode, here.returncode) == (0, 0)
    assert elsewhere.stdout == here.stdout and "uniform" in here.stdout
    assert stamps(store) == before
    texts = [(where / "results.csv").read_bytes() for where in (store, tmp_path / "here")]
    assert texts[0] == texts[1]


def test_a_cell_that_fails_does_not_stop_the_others(snakemake: Path, tmp_path: Path) -> None:
    """Its reason is in its log; what is run again is what is missing."""
    file, store = make(tmp_path, times="100000, 99999999999999999999"), tmp_path / "store"
    keys = workflow(file, store)
    done = engine(snakemake, store, "--cores", "2", "--keep-going", "--quiet")
    assert done.returncode != 0
    good = {key for key in keys if (store / "cells" / f"{key}.json").exists()}
    assert len(good) == 2
    for key in set(keys) - good:
        assert "t-prog" in (store / "logs" / f"{key}.log").read_text()
    again = engine(snakemake, store, "--cores", "2", "--keep-going")
    assert "2 of 2 steps" not in again.stderr and len(stamps(store)) == 2


def drain(command: Sequence[str | Path], store: Path, cluster: slurm.Cluster, lose: str) -> None:
    """Run a workflow on the cluster; the node `lose` is killed in the middle and comes back."""
    with subprocess.Popen(
        command,
        cwd=store,
        env=cluster.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        try:
            until = time.monotonic() + 120
            while {"n1", "n2"} - {n for s, n in cluster.jobs().values() if s == "RUNNING"}:
                assert time.monotonic() < until and running.poll() is None, cluster.jobs()
                time.sleep(0.2)
            cluster.kill(lose)
            while "down" not in cluster.states()[lose]:
                assert time.monotonic() < until, cluster.states()
                time.sleep(0.5)
            cluster.start(lose)
            output, _ = running.communicate(timeout=900)
        except BaseException:
            running.kill()
            raise
    assert running.returncode == 0, output
    ended = cluster.jobs().values()
    assert any(state != "COMPLETED" for state, _ in ended), "no job was lost"
    assert {node for state, node in ended if state == "COMPLETED"} >= {"n2"}


@pytest.mark.long
def test_slurm(snakemake: Path, cluster: slurm.Cluster, tmp_path: Path) -> None:
    """A node is killed in the middle, comes back, and the tables are the same bytes."""
    file, store = make(tmp_path, requests=3_000_000), tmp_path / "store"
    workflow(file, store)
    drain([snakemake, *SLURM], store, cluster, "n1")
    assert len(stamps(store)) == 4
    elsewhere = rsd("sweep", file, "--store", store)
    here = rsd("sweep", file, "--store", tmp_path / "here")
    assert elsewhere.returncode == 0 and elsewhere.stdout == here.stdout


@pytest.mark.long
def test_slurm_with_guests(
    snakemake: Path,
    cluster: slurm.Cluster,
    built: Artifacts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guests on two nodes, which have the repository and an exported image, build nothing, and give
    the bytes that guests give here."""
    exported = tmp_path / "image.tar"
    assert rsd("image", "export", exported).returncode == 0
    words = ["compare", "--full", "--workload=small-postmark"]
    words += ["--system=rfs+rsd", "--system=ext4-page"]
    found = {}
    for where in ("nodes", "here"):
        monkeypatch.setenv("RSD_CACHE", str(tmp_path / where))
        done = rsd("image", "import", exported)
        assert done.returncode == 0, done.stderr
        store, out = tmp_path / f"{where}.store", tmp_path / f"{where}.out"
        if where == "nodes":
            done = rsd(*words, "--snakemake", store)
            assert done.returncode == 0, done.stderr
            monkeypatch.setitem(cluster.environment, "RSD_CACHE", str(tmp_path / where))
            drain([snakemake, *SLURM], store, cluster, "n1")
            shutil.rmtree(tmp_path / where / "cell")
            words += ["--store", store]
        done = rsd(*words, "--out", out)
        assert done.returncode == 0, done.stderr
        assert where == "here" or "have no result" not in done.stderr
        words = words[: -2 if where == "nodes" else None]
        found[where] = json.loads((out / "results.json").read_text())["records"]
        assert not any((tmp_path / where).glob("qemu*")), "QEMU was built"
    ours = [[one for one in some if one["clock"] != "wall"] for some in found.values()]
    assert ours[0] == ours[1] and len(ours[0]) > 50
