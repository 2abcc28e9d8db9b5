# SPDX-License-Identifier: GPL-2.0-or-later
"""./rsd crash as a user has it: runs, what they find, what they leave, what they refuse."""

import dataclasses
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rsd.artifacts import REPOSITORY, Artifacts
from rsd.cache import Cache
from rsd.crash import again
from rsd.crash.campaign import Campaign
from rsd.progress import Progress

pytestmark = pytest.mark.guest

PATIENCE_S = 1800

FILES = """
for i in 1 2 3; do
    echo "$i" >"file$i"
    {first}
    {second}
done
"""
SYNC, DURABLE = 'sync "file$i"', 'durable "$i"'
GOOD = FILES.format(first=SYNC, second=DURABLE)
# It says so before it is so.
BAD = FILES.format(first=DURABLE, second=SYNC)
CHECK = """
for i in "$@"; do
    [ "$(cat "file$i")" = "$i" ] || { echo "file$i is lost"; exit 1; }
done
"""
# A drive that loses what waits in its buffer, unless it is told to flush it
VOLATILE = ["--set", "write-buffer=1M", "--set", "ack=buffer", "--set", "plp=off"]

Crash = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def crash(built: Artifacts, tmp_path: Path) -> Crash:
    """crash(*arguments, out="run", status=0, clone=REPOSITORY): ./rsd crash of a clone in a
    directory with good, bad, check.
    """
    for name, text in (("good", GOOD), ("bad", BAD), ("check", CHECK)):
        (tmp_path / name).write_text(text)

    def run(
        *arguments: str, out: str = "run", status: int = 0, clone: Path = REPOSITORY
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "rsd", "crash", *arguments, "--out", out],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(clone / "host/tools")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return run


def results(directory: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((directory / "results.json").read_text())
    return content


def reports(directory: Path) -> dict[str, bytes]:
    names = ("results.json", "junit.xml", "report.html")
    return {name: (directory / name).read_bytes() for name in names}


def test_a_work_that_promises_too_early_is_found(crash: Crash, tmp_path: Path) -> None:
    """And the same one that does not is not. The bytes are the same again, in pieces too."""
    few = ["--check", "check", "--points", "4", "--outcomes", "3"]
    assert "0 states fail" in crash("--work", "good", *few, out="good-run").stdout
    first = crash("--work", "bad", *few, "--jobs", "2", status=1)
    found = results(tmp_path / "run")
    assert found["failed"] and {one["stage"] for one in found["failures"]} == {"check"}
    assert all("is lost" in one["said"] for one in found["failures"])
    number = found["failures"][0]["state"]
    assert f"state {number}" in first.stdout
    cases = ElementTree.parse(tmp_path / "run/junit.xml").findall(".//testcase")
    assert len(cases) == found["mounted"]
    assert sum(case.find("failure") is not None for case in cases) == len(found["failures"])
    page = (tmp_path / "run/report.html").read_text()
    assert f"State {number}" in page and f"{found['failed']} of {found['explored']} states" in page

    # it is interrupted before the first guest, and goes on
    left = crash("--work", "bad", *few, "--budget", "0s", out="again")
    assert "not explored, for want of time" in left.stdout
    assert results(tmp_path / "again")["explored"] == 0
    second = crash("--work", "bad", *few, "--jobs", "1", out="again", status=1)
    assert second.stdout == first.stdout
    assert reports(tmp_path / "again") == reports(tmp_path / "run")

    shown = crash("show", str(number)).stdout
    assert "power cut after operation" in shown and "NVMe zone append" in shown
    assert "fsync(" in shown and "durable" in shown and "it fails: check" in shown
    assert "state 9999: this run has states 0 to" in crash("show", "9999", status=2).stderr

    ls = ["--do", "mount -t rfs /dev/nvme0n1 /mnt && ls /mnt; exit 7"]
    lost = found["failures"][0]["said"].split("is lost")[0].split()[-1]
    assert lost not in crash("open", str(number), *ls, status=7).stdout.split()

    assert "fails: check" in crash("pack", str(number), "--file", "one.crash").stdout
    crash("pack", str(number), "--file", "two.crash")
    assert (tmp_path / "one.crash").read_bytes() == (tmp_path / "two.crash").read_bytes()
    assert "it exists" in crash("pack", str(number), "--file", "one.crash", status=2).stderr
    opened = crash("open", "one.crash").stdout
    assert "as it did when it was packed" in opened and f"{lost} is lost" in opened

    least = crash("min", str(number)).stdout
    assert "it fails: check" in least
    assert "calls since everything was durable: " in least and "fsync" in least.splitlines()[-1]
    refused = crash("--work", "good", *few, status=2).stderr
    assert "it has another run, with another work" in refused


def test_a_pack_is_the_same_in_another_clone(crash: Crash, tmp_path: Path) -> None:
    """The same run there packs the same bytes, and opens those of here with the same verdict."""
    other = tmp_path / "other"
    ignored = shutil.ignore_patterns(".git", "build", "__pycache__", ".*_cache")
    shutil.copytree(REPOSITORY, other, symlinks=True, ignore=ignored)
    few = ["--work", "bad", "--check", "check", "--points", "4", "--outcomes", "3"]
    crash(*few, status=1)
    crash(*few, out="there", status=1, clone=other)
    assert reports(tmp_path / "there") == reports(tmp_path / "run")
    number = str(results(tmp_path / "run")["failures"][0]["state"])
    crash("pack", number, "--file", "here.crash")
    crash("pack", number, "--file", "there.crash", out="there", clone=other)
    assert (tmp_path / "here.crash").read_bytes() == (tmp_path / "there.crash").read_bytes()
    shutil.rmtree(tmp_path / "run")
    opened = crash("open", "here.crash", clone=other).stdout
    assert opened == crash("open", "there.crash").stdout
    assert "it fails: check" in opened and "as it did when it was packed" in opened


def test_it_says_what_was_not_checked(crash: Crash, tmp_path: Path) -> None:
    """A work that promises too early passes if nobody looks; the report says that nobody did."""
    few = ["--points", "2", "--outcomes", "1"]
    said = crash("--work", "bad", *few).stdout
    assert "checked in each that was mounted: mount, a new file, unmount, fsck.rfs\n" in said
    none = "what files hold, and the names that were called durable (3): there is no --check"
    assert f"not checked: {none}\n" in said
    assert results(tmp_path / "run")["unchecked"] == [none]
    assert f"Not checked: {none}." in (tmp_path / "run/report.html").read_text()

    said = crash("--work", "good", "--check", "check", *few, out="with").stdout
    assert "mounted: mount, your check, a new file, unmount, fsck.rfs\n" in said
    assert "not checked" not in said

    (tmp_path / "silent").write_text("echo 1 >file1\n")
    nilfs2 = ["--system", "nilfs2-page", "--work", "silent", "--check", "check"]
    said = crash(*nilfs2, "--points", "1", out="silent-run").stdout
    assert "not checked: whether anything durable is lost: the work never calls `durable`" in said
    assert "not checked: the volume by an fsck: nilfs2 has none" in said


def test_what_an_interrupted_run_left_goes_away(crash: Crash, tmp_path: Path) -> None:
    """It is killed while it begins, does the work, notes verdicts, packs: each goes on."""
    few = ["--work", "good", "--check", "check", "--points", "2", "--outcomes", "2"]
    run = tmp_path / "run"
    run.mkdir()
    for name in ("run.json.part", "work"):
        (run / name).write_text("{")
    first = crash(*few)
    assert "a run that was interrupted while it began left files; removed" in first.stderr
    expected = reports(run)

    (run / "marks.json").unlink()
    (run / "marks.json.part").write_text("{")
    (run / "record").mkdir()
    (run / "record/wrong").write_text("of another guest")
    verdicts = (run / "verdicts").read_bytes()
    (run / "verdicts").write_bytes(verdicts[: len(verdicts) // 2])
    for _ in range(2):  # the second one reads what was written after half a line
        assert crash(*few).stdout == first.stdout
        assert reports(run) == expected
    assert not list(run.glob("*.part")) and not (run / "record").exists()

    left = tmp_path / "one.crash.part"
    left.write_text("half a pack")
    crash("pack", "0", "--file", "one.crash")
    crash("pack", "0", "--file", "two.crash")
    assert (tmp_path / "one.crash").read_bytes() == (tmp_path / "two.crash").read_bytes()
    with left.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        (tmp_path / "one.crash").unlink()
        at_work = crash("pack", "0", "--file", "one.crash", status=2).stderr
    assert "one.crash: another ./rsd crash is at work there" in at_work

    (tmp_path / "mine").mkdir()
    for name in ("run.json.part", "mine"):
        (tmp_path / "mine" / name).write_text("mine")
    assert "it is not empty" in crash(*few, out="mine", status=2).stderr
    assert (tmp_path / "mine/mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("system", "points"),
    [
        ("ext4-page", "6"),
        pytest.param("rfs+rsd", "all", marks=pytest.mark.long),
        pytest.param("f2fs-rsd", "all", marks=pytest.mark.long),
    ],
)
def test_states_that_are_the_same_have_the_same_verdict(
    crash: Crash, built: Artifacts, rsd_cache: Cache, tmp_path: Path, system: str, points: str
) -> None:
    """Each state that was not mounted is mounted here, and fails or passes as the other one."""
    work = ["--system", system, "--work", "bad", "--check", "check"]
    crash(*work, "--points", points, status=1)
    campaign = Campaign.open(tmp_path / "run")
    campaign.load(rsd_cache, Progress())
    found = results(tmp_path / "run")
    same = [one for one in found["verdicts"] if one[0] != one[3]]
    assert len(same) == found["explored"] - found["mounted"] > 0
    states = [campaign.state(number) for number, *_ in same]
    verdicts = campaign.visitor.visit(states, built, rsd_cache, lambda seconds: None)
    assert [one.passed for one in verdicts] == [passed for *_, passed in same]


def test_the_power_is_cut_again_within_recoveries(
    crash: Crash, built: Artifacts, rsd_cache: Cache, tmp_path: Path
) -> None:
    """A state in which the recovery is cut has to have all that the state before had."""
    few = ["--work", "good", "--check", "check", "--points", "3", "--outcomes", "1", "--again", "1"]
    said = crash(*few).stdout
    assert "cut again within the recovery of 1 of them" in said and "; 0 fail" in said
    (one,) = results(tmp_path / "run")["again"]
    assert one["complete"] and one["mounted"] > 1 and one["explored"] == one["states"]
    small = f"run/again-{one['state']}"
    assert results(tmp_path / small)["states"] == one["states"]
    assert "it passes" in crash("show", "1", out=small).stdout
    cases = ElementTree.parse(tmp_path / "run/junit.xml").findall(".//testcase")
    assert f"the recovery of state {one['state']}" in cases[-1].attrib["name"]

    # what had to hold before has to hold in each of its states; a check that fails is seen
    campaign = Campaign.open(tmp_path / "run")
    campaign.load(rsd_cache, Progress())
    explored = campaign.explore(built, rsd_cache, Progress(), 2, None)
    (tmp_path / "never").write_text('test $# -eq 3 && { echo "all 3 are asked for"; exit 1; }')
    campaign.settings = dataclasses.replace(campaign.settings, check=tmp_path / "never")
    shutil.rmtree(tmp_path / small)
    state = again.chosen(campaign, explored, len(explored.verdicts))[-1]
    assert len(campaign.marks.at(state.op)) == 3
    found = campaign.again(state, built)
    found.record(built, rsd_cache, Progress())
    wrong = found.explore(built, rsd_cache, Progress(), 2, None)
    assert wrong.verdicts and not any(verdict.passed for verdict in wrong.verdicts.values())


def test_barriers_that_are_left_out_are_found(crash: Crash, tmp_path: Path) -> None:
    work = ["--system", "ext4-page", "--work", "ace:seq1/3-4", "--points", "8", "--outcomes", "3"]
    crash(*work, *VOLATILE, out="safe")
    crash(*work, *VOLATILE, "--mount-options", "nobarrier", status=1)
    assert results(tmp_path / "safe")["failed"] == 0
    assert results(tmp_path / "run")["failed"] > 0


def test_sequences_of_two_operations(crash: Crash, tmp_path: Path) -> None:
    """RFS keeps all that they make durable."""
    crash("--work", "ace:seq2/1-4", "--points", "16", "--outcomes", "2")
    found = results(tmp_path / "run")
    assert found["kind"] == "seq2" and found["explored"] > 16
    assert "operation 2" in (tmp_path / "run/trace").read_text()


@pytest.mark.parametrize(
    ("check", "stage", "said"),
    [
        ("sleep 1000", "check", "did not end within 10 s"),
        ("echo c >/proc/sysrq-trigger", "guest", "guest panic"),
    ],
    ids=["hangs", "panics"],
)
def test_a_check_that_takes_the_guest_along(
    crash: Crash, tmp_path: Path, check: str, stage: str, said: str
) -> None:
    """Only the states that it is said of fail: the others are looked at in another guest."""
    (tmp_path / "check").write_text(f'case $* in "1 2"*) {check};; esac\n')
    crash("--work", "good", "--check", "check", "--points", "5", "--outcomes", "1", status=1)
    found = results(tmp_path / "run")
    assert found["explored"] == 5 and 0 < found["failed"] < 5
    for failure in found["failures"]:
        assert failure["stage"] == stage and said in failure["said"]


def test_a_name_that_is_none_ends_the_run(crash: Crash, tmp_path: Path) -> None:
    """Else nothing would have to hold, and nothing could fail."""
    (tmp_path / "unnamed").write_text("durable $unset\ntrue\n")
    said = crash("--work", "unnamed", "--check", "check", status=2).stderr
    assert "durable has 0 arguments" in said and "durable NAME" in said


def test_what_is_refused(crash: Crash, tmp_path: Path) -> None:
    (tmp_path / "fails").write_text("echo nothing works; exit 4\n")
    said = crash("--work", "fails", out="fails-run", status=2).stderr
    assert "the work fails by itself, without a power cut: status 4" in said
    assert "nothing works" in said
    small = crash("--work", "good", "--set", "blocks=8", out="small-run", status=2).stderr
    assert "mkfs.rfs" in small and "fails by itself, without a power cut" in small

    (tmp_path / "goes-on").write_text("sleep 1000 &\n")
    busy = crash("--work", "goes-on", out="busy", status=2).stderr
    assert "the work ends, and its volume cannot be unmounted" in busy and "busy" in busy
    (tmp_path / "waits").write_text("sleep 1000\n")
    late = crash("--work", "waits", out="late", status=2).stderr
    assert "the work does not end within 600 s of the guest's clock" in late

    early = ["--work", "bad", "--points", "1"]
    crash(*early)
    assert "no such file" in crash("--work", "nothing", status=2).stderr
    assert "a check of its own" in crash("--check", "check", status=2).stderr
    cut = crash("--work", "good", "--set", "cut-at-op=5", status=2).stderr
    assert "--set cut-at-op: ./rsd crash keeps the log and cuts the power itself" in cut
    assert "must be all, or 1 or more" in crash("--points", "0", status=2).stderr
    few = ["--work", "good", "--check", "check", "--outcomes", "1"]
    beyond = crash(*few, "--points", "9999", status=2, out="beyond").stderr
    assert "--points 9999: the work ends with operation" in beyond
    assert "open needs a terminal" in crash("open", "0", status=2).stderr

    with (tmp_path / "run/run.json").open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert "another ./rsd crash is at work there" in crash(*early, status=2).stderr

    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("mine")
    assert "it is not empty" in crash(*few, out="full", status=2).stderr
    assert (tmp_path / "full/mine").read_text() == "mine"

    crash(*few, "--points", "2", out="beyond")
    log = tmp_path / "beyond/log"
    shutil.copyfile(tmp_path / "run/log", log)
    not_its = "beyond/log: not what the work left"
    assert not_its in crash("show", "0", out="beyond", status=2).stderr
    with log.open("r+b") as stream:
        stream.truncate(100)
    assert not_its in crash(*few, "--points", "2", out="beyond", status=2).stderr


def test_what_is_damaged_is_named(crash: Crash, tmp_path: Path) -> None:
    """The user is told which file it is, and what to do."""
    few = ["--work", "good", "--points", "1", "--outcomes", "1"]
    crash(*few)
    for name, advice in (
        ("run.json", "remove run, and run it again"),
        ("marks.json", "remove run, and run it again"),
        ("results.json", "repeat the command of the run, which writes it again"),
        ("verdicts", "remove it; the same command then looks at its states again"),
    ):
        file = tmp_path / "run" / name
        whole = file.read_bytes()
        for text in (whole[: len(whole) // 2] + b"\n", b"\xff\n", b"[1]\n"):
            file.write_bytes(text)
            said = crash(*(few if name == "verdicts" else ("show", "0")), status=2).stderr
            assert f"run/{name}: not what ./rsd crash wrote" in said and advice in said
        file.write_bytes(whole)

    assert "there is no directory none" in crash("pack", "0", "--file", "none/a", status=2).stderr
    crash("pack", "0", "--file", "whole.crash")
    packed = (tmp_path / "whole.crash").read_bytes()
    changed = bytearray(packed)
    changed[len(packed) // 2] ^= 1
    # the last one lacks a part of the checksum alone
    for text in (b"", b"no pack\n", packed[: len(packed) // 2], bytes(changed), packed[:-2]):
        (tmp_path / "part.crash").write_bytes(text)
        said = crash("open", "part.crash", status=2).stderr
        assert "part.crash: not what ./rsd crash pack writes, or not all of it (" in said
        assert "./rsd crash pack N --file FILE makes one" in said
    assert "none.crash: no such file" in crash("open", "none.crash", status=2).stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "system",
    ["f2fs-page", "f2fs-rsd", "f2fs-fast", "btrfs-page", "nilfs2-page", "xfs-page"],
)
def test_every_file_system(crash: Crash, system: str) -> None:
    crash("--system", system, "--work", "good", "--check", "check", "--points", "20")


@pytest.mark.long
def test_zoned_btrfs_fails_in_its_fsck_alone(crash: Crash, tmp_path: Path) -> None:
    """docs/findings/btrfs-zoned-unaligned-nodes.md: nothing is lost, but its check fails."""
    few = ["--work", "good", "--check", "check", "--points", "20"]
    crash("--system", "btrfs-rsd", *few, status=1)
    failures = results(tmp_path / "run")["failures"]
    assert {one["stage"] for one in failures} == {"fsck"}
    assert all("crossing stripe boundary" in one["said"] for one in failures)
