# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd paper`: verdicts are of the numbers alone, every figure of the papers is listed."""

import argparse
import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from rsd.compare.benchmarks import BENCHMARKS, QUERIES
from rsd.compare.figures import counters, read_json
from rsd.compare.stacks import STACKS
from rsd.errors import RsdError
from rsd.paper import command, page, redo, risa, rounds
from rsd.paper.claim import Claim, Limit, Verdict
from rsd.paper.command import PAPERS
from rsd.paper.entry import DEFAULT
from rsd.paper.rounds import Round, Rounds

STORED = Path(__file__).parents[1] / "compare" / "data" / "stacks"
PAPER = {"theirs": 200.0, "ours": 100.0}
BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS} | risa.DATABASES


def verdict(ours: float, note: str = "") -> Verdict:
    """Of a paper that says half, where theirs is 1,000 here."""
    claim = Claim("x", "", PAPER, {"theirs": 1000, "ours": ours}, "theirs", note=note)
    return claim.verdict


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (500, Verdict.REPRODUCED),
        (600, Verdict.REPRODUCED),  # 10 points
        (400, Verdict.REPRODUCED),
        (601, Verdict.DIRECTION),
        (399, Verdict.DIRECTION),
        (999, Verdict.DIRECTION),
        (1000, Verdict.NOT),
        (1001, Verdict.NOT),
    ],
)
def test_a_changed_value_changes_the_verdict(ours: float, expected: Verdict) -> None:
    assert verdict(ours) is expected
    assert verdict(ours, note="a reason on record") is expected


def test_ten_percent_count_where_they_are_more_than_ten_points() -> None:
    claim = Claim("x", "", {"a": 1, "b": 30}, {"a": 100, "b": 3299}, "a")
    assert claim.verdict is Verdict.REPRODUCED
    claim = Claim("x", "", {"a": 1, "b": 30}, {"a": 100, "b": 3301}, "a")
    assert claim.verdict is Verdict.DIRECTION


def test_all_systems_have_to_be_in_order() -> None:
    paper = {"a": 1, "b": 2, "c": 3}
    assert Claim("x", "", paper, {"a": 1, "b": 5, "c": 9}, "a").verdict is Verdict.DIRECTION
    assert Claim("x", "", paper, {"a": 1, "b": 9, "c": 5}, "a").verdict is Verdict.NOT
    assert Claim("x", "", paper, {"a": 1, "b": 2}, "a").verdict is Verdict.NOT


def test_something_of_each_paper_can_be_measured() -> None:
    assert all(command._chosen(paper, []) for paper in PAPERS.values())


def test_systems_that_are_equal_in_the_paper_have_no_order() -> None:
    assert Claim("x", "", {"a": 1, "b": 1}, {"a": 1, "b": 1.2}, "a").verdict is Verdict.NOT
    assert Claim("x", "", {"a": 1, "b": 1}, {"a": 1, "b": 1.1}, "a").verdict is Verdict.REPRODUCED


def test_an_order_without_numbers_can_only_be_had() -> None:
    claim = Claim("x", "", {"a": 2, "b": 1}, {"a": 2, "b": 1}, ranks=True)
    assert claim.verdict is Verdict.DIRECTION
    assert Claim("x", "", {"a": 2, "b": 1}, {"a": 1, "b": 2}, ranks=True).verdict is Verdict.NOT


def test_a_limit_holds_or_not() -> None:
    assert Limit("x", "", 0.002, 0.0019).verdict is Verdict.REPRODUCED
    assert Limit("x", "", 0.002, 0.002).verdict is Verdict.NOT


# The tables


def test_every_table_and_figure_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the papers' evaluation sections."""
    expected = {
        "redo": {"table1", "table2", "figure7", "figure8"},
        "risa": {"table2", "table4", *(f"figure{n}" for n in range(7, 15))},
        "sfs": {"figure1", "figure2", *(f"figure{n}" for n in range(5, 15))},
        "oftl": {"table2", "table3", "figure7", "figure8", "figure9"},
        "hfm": {f"figure{n}" for n in range(5, 12)},
    }
    assert {name: {e.name for e in paper.entries} for name, paper in PAPERS.items()} == expected
    for paper in PAPERS.values():
        for entry in paper.entries:
            assert (entry.run is None) == bool(entry.missing), f"{paper.name} {entry.name}"
    command._print_list(None)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(expected) + sum(map(len, expected.values()))


def test_stacks_and_benchmarks_of_the_tables_exist() -> None:
    for systems in (redo.SYSTEMS, redo.BESIDE, risa.SYSTEMS):
        assert set(systems.values()) <= STACKS.keys()
    risas = (*risa.WRITES, *risa.READS.values(), *risa.TIOBENCH.values())
    for names, systems in ((redo.TABLE1, redo.SYSTEMS), (risas, risa.SYSTEMS)):
        for name in names:
            scale = BY_NAME[name].scale
            assert all(scale in STACKS[stack].scales for stack in systems.values())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["nothing"], "unknown paper 'nothing': there is redo, risa"),
        (["redo", "table9"], "redo has no 'table9': there is table1"),
        (["sfs", "figure1"], "sfs figure1 cannot be measured: needs the three drives"),
        (["hfm", "figure6"], "hfm figure6 cannot be measured: needs TPC-C in a guest"),
        (["redo", "--capacities", "0"], "--capacities 0: allowed is more than 0"),
        (["redo", "--live", "95"], "--live 95: allowed is 20 to 90"),
        ([], "NAME is missing: there is redo"),
    ],
)
def test_what_cannot_be_measured_is_said(words: list[str], expected: str) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(RsdError, match=expected.replace("(", r"\(")):
        command.main(parser.parse_args(words))


# Rounds


def cells(taken: dict[str, int]) -> dict[tuple[str, str], Rounds]:
    """REDO's benchmarks, each with so many blocks taken by stack."""
    return {
        (name, stack): Rounds(
            stack,
            BY_NAME[name],
            tuple(Round(blocks, blocks * 128, 0, blocks * 200, 2.0, at * 65536) for at in (1, 2)),
        )
        for name in redo.TABLE1
        for stack, blocks in taken.items()
    }


STACKS_OF_REDO = [*redo.SYSTEMS.values(), *redo.BESIDE.values()]


def test_redos_means_have_their_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = dict.fromkeys(STACKS_OF_REDO, 1000) | {"rfs+rsd": 640}
    found = cells(taken)
    monkeypatch.setattr(redo, "_measured", lambda context, scale: found)
    claims = {claim.what: claim for claim in redo.table1(None, None)}  # type: ignore[arg-type]
    assert len(claims) == 5 + 5 + 3
    mean = claims["erasures, mean against F2FS on page FTL"]
    assert mean.verdict is Verdict.REPRODUCED
    assert claims["erasures, mean against F2FS on block FTL"].verdict is Verdict.DIRECTION
    assert claims["erasures, redo-sysbench: ext4 and F2FS"].verdict is Verdict.NOT
    # One benchmark that RFS has no room for leaves no mean of five.
    key = ("redo-bonnie", "rfs+rsd")
    found[key] = Rounds("rfs+rsd", BY_NAME["redo-bonnie"], (), no_space=True)
    claims = {claim.what: claim for claim in redo.table1(None, None)}  # type: ignore[arg-type]
    mean = claims["erasures, mean against F2FS on page FTL"]
    assert mean.verdict is Verdict.NOT and "could not do all five" in mean.note
    assert "ran out of space" in claims["erasures, redo-bonnie"].note


def risas(seconds: dict[str, float], own: dict[str, float]) -> dict[tuple[str, str], Rounds]:
    """RISA's benchmarks, each in so many seconds by system, else all with the same figures."""

    def one(took: float) -> Round:
        hadoop = (phase for name in risa.HADOOP.values() for phase in BY_NAME[name].phases)
        phases = ("sequential", "random", "write", "rewrite", *hadoop)
        rates = {f"{phase}.bandwidth": 100 / took for phase in phases}
        rates["bandwidth"] = 100 / took
        return Round(100, 900, 100, 2000, took, 65536, timb=5, checkpoints=2, own={**own, **rates})

    return {
        (name, stack): Rounds(stack, BY_NAME[name], (one(seconds[system]),))
        for name in (*risa.WRITES, *risa.READS.values(), *risa.TIOBENCH.values())
        for system, stack in risa.SYSTEMS.items()
    }


def test_risas_orders_have_their_verdicts() -> None:
    """The text gives orders: two systems that change places change the verdict."""
    own = {f"{phase}.latency.mean": 50.0 for phase in ("sequential", "random")}
    own |= {f"{query}.rate": 7.0 for query in QUERIES}
    own["oltp.rate"] = 9.0
    lead = risas({risa.RISA: 1.0, risa.EXT4: 1.07, risa.F2FS: 2.0}, own)
    behind = risas({risa.RISA: 1.0, risa.EXT4: 0.9, risa.F2FS: 2.0}, own)

    def verdicts(claims: list[Claim | Limit]) -> dict[str, Verdict]:
        return {claim.what: claim.verdict for claim in claims}

    seven = verdicts(risa._figure7(lead))
    assert seven["throughput, FIO (RW)"] is Verdict.REPRODUCED
    assert seven["throughput, FIO (RW), the order"] is Verdict.DIRECTION
    assert seven["throughput, FIO (SR)"] is Verdict.NOT  # F2FS reads at half the rate
    seven = verdicts(risa._figure7(behind))
    assert seven["throughput, FIO (RW)"] is Verdict.NOT
    assert seven["throughput, FIO (RW), the order"] is Verdict.NOT
    # As fast with any number of threads, and F2FS behind ext4
    assert {claim.verdict for claim in risa._figure8(lead)} == {Verdict.NOT}
    # F2FS before ext4 is what figure 9 has
    assert set(verdicts(risa._figure9(lead)).values()) == {Verdict.NOT}
    nine = risas({risa.RISA: 1.0, risa.EXT4: 2.0, risa.F2FS: 1.5}, own)
    assert set(verdicts(risa._figure9(nine)).values()) == {Verdict.DIRECTION}
    assert len(risa._figure9(nine)) == 8
    ten = verdicts(risa._figure10(lead))
    assert ten["queries a second, select"] is Verdict.REPRODUCED
    assert ten["queries a second, insert"] is Verdict.NOT
    assert ten["transactions a second, OLTP"] is Verdict.NOT
    rates = {risa.RISA: 9.0, risa.EXT4: 8.0, risa.F2FS: 7.0}
    for system, rate in rates.items():
        cell = lead["risa-mariadb", risa.SYSTEMS[system]]
        last = dataclasses.replace(cell.last, own={"oltp.rate": rate})
        lead["risa-mariadb", risa.SYSTEMS[system]] = dataclasses.replace(cell, rounds=(last,))
    ten = verdicts(risa._figure10(lead))
    assert ten["transactions a second, OLTP"] is Verdict.DIRECTION
    assert set(verdicts(risa._figure11(behind)).values()) == {Verdict.NOT}
    thirteen = verdicts(risa._figure13(lead))
    assert thirteen["TIMB blocks a check-point"] is Verdict.REPRODUCED


def test_throughput_is_that_of_fio_and_not_of_its_process() -> None:
    """Which takes until the next quarter of a second: it is as long for both."""

    def found(name: str, **rates: float) -> float:
        own = {metric.replace("_", "."): rate for metric, rate in rates.items()}
        one = Round(1, 1, 0, 1, 5.092, 1, own=own)
        cell = Rounds("rfs+rsd", BY_NAME[name], (one,), fixed=True)
        assert risa._seconds(cell) * risa._throughput(cell) == BY_NAME[name].work
        return risa._throughput(cell)

    mib = 1.048576  # in MB
    assert found("risa-fio-seqread", bandwidth=100 * mib) == pytest.approx(100)
    assert found("risa-fio-seqread", bandwidth=101 * mib) == pytest.approx(101)
    rates = {"sequential_bandwidth": 200 * mib, "random_bandwidth": 50 * mib}
    # 640 MiB in 3.2 s, 320 in 6.4
    assert found("risa-tiobench-8", **rates) == pytest.approx(100)
    rates = {"write_bandwidth": 200 * mib, "rewrite_bandwidth": 50 * mib}
    assert found("risa-iozone-4k-sync", **rates) == pytest.approx(80)
    # Hadoop's wordcount: 512 MiB in 2.56 s, their result of 32 MiB in 0.64
    rates = {"count_bandwidth": 200 * mib, "result_bandwidth": 50 * mib}
    assert found("risa-wordcount", **rates) == pytest.approx(544 / 3.2)


@pytest.mark.parametrize(("last", "steady"), [(980, True), (979, False), (1021, False)])
def test_two_rounds_that_differ_by_two_percent_are_not_steady(last: int, steady: bool) -> None:
    def one(taken: int, written: int) -> Round:
        return Round(taken, 1, 0, 1, 1.0, written)

    found = Rounds("ext4-page", BY_NAME["redo-bonnie"], (one(1000, 65536), one(last, 131072 * 8)))
    assert found.steady is steady
    assert found.curve == [(0.5, 1000), (8.0, last)]
    assert found.note == ("" if steady else "ext4-page: not steady after 8.0 capacities")


def test_the_later_half_counts_where_the_number_of_rounds_is_given() -> None:
    """A log that cleans amid one round of two is not one that cleans never."""

    def found(*copied: int) -> Rounds:
        rows = [Round(900 + n, 1000, n, 9, n / 10, 5, own={"x.rate": n}) for n in copied]
        return Rounds("rfs+rsd", BY_NAME["risa-dfsio"], (*rows,), fixed=True)

    five = found(800, 700, 100, 0, 20)
    assert (five.mean.copied, five.mean.taken, five.mean.seconds) == (40, 940, 4.0)
    assert five.mean.own == {"x.rate": 40} and five.mean.all_written == 5
    assert found(800, 0).mean.copied == 0 and found(800).mean.copied == 800
    # by pages programmed, 1,000 and so many: 10% and a little more
    assert found(800, 0, 111).note == "" and found(800, 0, 0, 0).note == ""
    assert found(800, 0, 112).note == "rfs+rsd: rounds vary by 10%"


@pytest.mark.parametrize(
    ("given", "written", "ended"),
    [
        (None, [300], False),
        (None, [1100], False),  # the first alone is no later half
        (None, [300, 999], False),
        (None, [300, 1000], True),
        (None, [500, 700, 1000], True),
        (1, [0], True),
        (3, [5000, 9000], False),
        (3, [5000, 9000, 9900], True),
    ],
)
def test_given_rounds_end_when_so_much_is_written(
    given: int | None, written: list[int], ended: bool
) -> None:
    """As many blocks in each round: two that are the same are no end here."""
    loaded = rounds.Loaded("files", rounds=given)
    plan = rounds.Plan("rfs+rsd", BY_NAME["risa-dfsio"], DEFAULT, loaded)
    found = [Round(100, 100, 0, 100, 1.0, pages) for pages in written]
    assert rounds._ended(plan, found, 1000) is ended


def test_live_data_is_made_up_to_what_is_asked_for() -> None:
    """512 MiB: a fifth stays from the aging, 160 MiB are sysbench's."""
    benchmark = BY_NAME["redo-sysbench"]
    assert rounds.ballast(benchmark, 20) == 0
    mib = 1 << 20
    assert rounds.ballast(benchmark, 75) // mib == int(512 * 0.75 - 512 * 0.2 - 160)


@pytest.mark.parametrize("directory", sorted(STORED.iterdir()), ids=lambda path: path.name)
def test_blocks_taken_are_what_was_programmed(directory: Path) -> None:
    """In blocks of 128 pages, but for those that are partly written at either end."""
    before, after = (
        counters(read_json(directory / when / "counters.json")) for when in ("before", "after")
    )
    programs = sum(after[name] - before[name] for name in after if name.startswith("prog_"))
    assert rounds.blocks_taken(before, after) == pytest.approx(programs / 128, abs=8)


@pytest.mark.parametrize("directory", sorted(STORED.iterdir()), ids=lambda path: path.name)
def test_a_round_is_read_from_what_the_guest_left(directory: Path, tmp_path: Path) -> None:
    raw = tmp_path / "1" / "raw"
    shutil.copytree(directory, raw)
    plan = rounds.Plan("ext4-page", BY_NAME[directory.name], DEFAULT)
    one = rounds._round(plan, raw, raw / "before" / "counters.json")
    before, after = (counters(read_json(raw / w / "counters.json")) for w in ("before", "after"))
    assert one.written == after["prog_host"] - before["prog_host"] > 0
    assert one.all_written == after["host_write_pages"] - before["host_write_pages"] > 0
    assert one.pages >= one.written + one.copied >= one.written
    assert one.seconds > 0 and one.taken > 0


# The page


def test_the_page_has_every_figure_and_is_the_same_again(tmp_path: Path) -> None:
    claim = Claim("erasures, x", "blocks", PAPER, {"theirs": 10, "ours": 4}, "theirs", note="a & b")
    found = {"table1": [claim], "figure7": [Limit("share", "", 0.1, 0.05)]}
    for name in ("one", "two"):
        page.write(PAPERS["redo"], found, tmp_path / name)
    text = (tmp_path / "one").read_text()
    assert text == (tmp_path / "two").read_text()
    assert text.count("<h2>") == 4 and text.count("<svg") == 1
    assert "a &amp; b" in text and "reproduced" in text and "Not measured." in text
    json.dumps([list(map(str, claims)) for claims in found.values()])
