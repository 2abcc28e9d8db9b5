# SPDX-License-Identifier: GPL-2.0-or-later
"""Which states there are after an operation, and what is said of them, without a guest."""

import json
from pathlib import Path

import pytest

from rsd.crash import campaign, pack, subject
from rsd.crash.record import Marks, Work
from rsd.crash.states import Flying, Operation, choose, points
from rsd.crash.visit import _reads
from rsd.errors import RsdError


def program(*, protected: bool = False, waiting: bool = False) -> Flying:
    return Flying("program", 1, 0, 0, protected, waiting)


def log(*flying: Flying) -> list[Operation]:
    return [Operation(0, 0, "start", 0, 0, 0), Operation(1, 9, "program", 1, 0, 0, flying)]


def outcomes(*flying: Flying, most: int = 9, seed: int = 1) -> list[str]:
    return [state.outcomes for state in choose(log(*flying), "all", most, seed)[1:]]


def test_every_outcome_where_they_are_few() -> None:
    assert outcomes() == [""]
    assert outcomes(program()) == ["a", "t", "c"]
    both = ["aa", "at", "ac", "ta", "tt", "tc", "ca", "ct", "cc"]
    assert outcomes(program(), program()) == both


def test_what_a_buffer_holds_is_never_torn() -> None:
    assert outcomes(program(protected=True), program(waiting=True)) == ["aa", "ac", "ca", "cc"]


def test_a_seed_decides_where_they_are_many() -> None:
    many = [program()] * 5 + [program(waiting=True)]
    found = outcomes(*many)
    assert found[:3] == ["aaaaaa", "cccccc", "ttttta"]
    assert len(set(found)) == 9
    assert found == outcomes(*many)
    assert found != outcomes(*many, seed=2)
    assert outcomes(*many, most=1) == ["aaaaaa"]


def test_points_are_spread_over_the_work() -> None:
    assert points(3, "all") == [0, 1, 2, 3]
    assert points(9, "4") == [0, 3, 6, 9]
    assert points(9, "1") == [0]


def test_points_beyond_the_end_are_refused() -> None:
    with pytest.raises(RsdError, match="--points 11: the work ends with operation 9"):
        points(9, "11")


@pytest.mark.parametrize(
    "name",
    ["ace:seq1/0", "ace:seq1/7-3", "ace:seq1/1-9999", "ace:seq2", "ace:seq2/1-99999", "ace:seq3"],
)
def test_sequences_that_there_are_not(name: str) -> None:
    with pytest.raises(RsdError, match=f"--work {name}: must be ace:seq1"):
        Work.named(name)


def test_an_unknown_system_is_refused_with_those_that_there_are() -> None:
    for name in ("ext4", "ext4-stock", "f2fs-2013-page"):
        with pytest.raises(RsdError, match=r"(?s)there is ext4-page, .*rfs\+rsd.*try: "):
            _ = subject.Subject(name).stack


def test_every_system_has_a_size_and_a_mount() -> None:
    for name in subject.names():
        one = subject.Subject(name, options="x")
        assert one.mount[0] in subject.DRIVES.values() and one.mount[2].endswith("x")
        assert one.properties["blocks"]
        assert one.fsck or one.kind == "nilfs2"


def test_marks_hold_from_their_operation_on() -> None:
    marks = Marks(((2, "one"), (5, "two")))
    assert [marks.at(op) for op in (1, 2, 5)] == [[], ["one"], ["one", "two"]]
    assert [marks.key(op) for op in (1, 2, 5)] == [0, 1, 2]
    steps = Marks(ace={"steps": [(0, 3), (3, 4)], "kind": "seq1", "sequences": [1, 1]})
    assert [steps.steps(op) for op in (0, 2, 3, 4)] == [(0, 1), (0, 1), (1, 2), (2, 2)]
    assert len({steps.key(op) for op in (0, 3, 4)}) == 3


LINE = (
    "x-1 [000] ..... 7: nvme_setup_cmd: nvme0: qid=1, nsid={}, cmd=(nvme_cmd_{} slba={}, len={},)"
)


def test_what_held_before_a_recovery_holds_in_all_of_it() -> None:
    before = Marks(((3, "one"), (7, "two")), {"steps": [[1, 4], [5, 9], [10, 12]]})
    after = before.after(6)
    for op in (0, 1, 1000):
        assert after.at(op) == ["one"]
        assert after.steps(op) == before.steps(6) == (1, 2)


def test_what_was_written_before_it_is_read_decides_nothing() -> None:
    commands = [(1, "read", 5, 1), (1, "write", 6, 2), (1, "read", 4, 5), (2, "read", 7, 0)]
    trace = "\n".join(LINE.format(*command) for command in commands)
    assert _reads(trace) == [(0, 4, 3), (0, 9, 1), (1, 7, 0 + 1)]


def test_what_is_no_pack_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no archive")
    with pytest.raises(RsdError, match="not what ./rsd crash pack writes"):
        pack.unpack(tmp_path / "file", tmp_path / "out")


def test_a_directory_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RsdError, match="it has no run of ./rsd crash"):
        campaign.read_description(tmp_path)
    (tmp_path / campaign.RUN).write_text(json.dumps({"format": 99}))
    with pytest.raises(RsdError, match="format 99, 3 is known"):
        campaign.read_description(tmp_path)
