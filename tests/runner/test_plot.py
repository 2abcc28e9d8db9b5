# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd plot` draws fio's logs, and says what is wrong with one."""

import re
from pathlib import Path

import pytest

from rsd.cli import main

LATENCIES = "1, 480000, 1, 4096, 0\n2, 100000, 0, 4096, 0\n3, 482000, 1, 4096, 0\n"


def words(svg: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)", svg.read_text())


def test_two_logs_are_lines_of_one_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("page", "rfs"):
        Path(name).mkdir()
        Path(name, "run_lat.1.log").write_text(LATENCIES)
    Path("rfs", "run_lat.1.log").write_text("1, 250000, 0, 4096, 0, 0\n")
    assert main(["plot", "page/run_lat.1.log", "rfs/run_lat.1.log"]) == 0
    assert capsys.readouterr().out == "plot.svg\n"
    said = words(Path("plot.svg"))
    assert said[-3:] == [
        "page/run_lat.1.log, read",
        "page/run_lat.1.log, write",
        "rfs/run_lat.1.log",
    ]
    # in us and seconds: the highest is 482 us, the last at 3 ms
    assert "latency (us)" in said
    assert {"400", "500"} & set(said)
    assert "0.003" in " ".join(said)
    again = Path("again.svg")
    assert main(["plot", "--out", "again.svg", "page/run_lat.1.log", "rfs/run_lat.1.log"]) == 0
    assert again.read_bytes() == Path("plot.svg").read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("run.log", LATENCIES, "its name must say what it is"),
        ("run_bw.1.log", "", "it is empty"),
        ("run_bw.1.log", "1, 2\n", "run_bw.1.log:1: '1, 2'"),
        ("run_iops.log", "1, 2, 0, 4096, 0\n1, 2, 7, 4096, 0\n", "run_iops.log:2: '1, 2, 7, 4096"),
        ("run_iops.log", "1, 2, -1, 4096, 0\n", "run_iops.log:1: '1, 2, -1, 4096"),
    ],
)
def test_what_is_no_log(
    name: str, content: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / name
    log.write_text(content)
    assert main(["plot", "--out", str(tmp_path / "plot.svg"), str(log)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "\n  try: " in error


def test_kinds_do_not_share_an_axis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = [tmp_path / "run_lat.1.log", tmp_path / "run_iops.1.log"]
    for log in logs:
        log.write_text(LATENCIES)
    assert main(["plot", *map(str, logs)]) == 2
    assert "these logs are of different kinds" in capsys.readouterr().err
