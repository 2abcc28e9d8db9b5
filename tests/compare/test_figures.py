# SPDX-License-Identifier: GPL-2.0-or-later
"""From tools' output to figures. data/raw is what a real run left."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rsd.compare.cells import ALL_CELLS, SYSTEMS, Cell
from rsd.compare.figures import BadOutput, cell_figures, counter_figures

RAW = Path(__file__).parent / "data" / "raw"
OURS = SYSTEMS["rsd"]
CELLS = {cell.name: cell for cell in ALL_CELLS}


def figures(name: str, directory: Path | None = None) -> dict[str, Any]:
    found = cell_figures(CELLS[name], OURS, directory or RAW / name)
    assert len({figure.metric for figure in found}) == len(found)
    return {figure.metric: figure for figure in found}


def loads() -> list[Cell]:
    return [CELLS[path.name] for path in sorted(RAW.iterdir()) if CELLS[path.name].ios]


def test_the_stored_run_has_every_kind_of_load() -> None:
    assert {cell.family.name for cell in loads()} == {"randread", "mixed", "append"}


@pytest.mark.parametrize("cell", loads(), ids=lambda cell: cell.name)
def test_loads(cell: Cell) -> None:
    found = figures(cell.name)
    output = json.loads((RAW / cell.name / "main.json").read_text())["jobs"][0]
    assert sum(found[m].value for m in found if m in ("ios", "read.ios", "write.ios")) == cell.ios
    for direction in cell.directions:
        prefix = f"{direction}." if len(cell.directions) == 2 else ""
        side = output[direction]
        assert found[f"{prefix}iops"].value == pytest.approx(side["iops"])
        assert found[f"{prefix}bandwidth"].value == pytest.approx(side["bw_bytes"] / 1e6, rel=1e-3)
        at = [found[f"{prefix}latency.{p}"].value for p in ("p50", "p99", "p99.9", "max")]
        assert at == sorted(at)
        assert at[-1] == pytest.approx(side["clat_ns"]["max"] / 1000)
        assert {found[f"{prefix}{m}"].clock for m in ("iops", "latency.max")} == {"virtual"}
        assert found[f"{prefix}ios"].clock == "count"


def test_an_append_is_one_program() -> None:
    found = figures("append-4k-qd8")
    cell = CELLS["append-4k-qd8"]
    assert found["nand.programs"].value == cell.ios
    assert found["write_amplification"].value == 1
    assert found["nand.reads"].value == 0
    assert found["map_bytes"].value == 8 * 4 * 128 * 4


def test_a_random_read_is_one_nand_read() -> None:
    found = figures("randread-4k-qd1")
    assert found["nand.reads"].value == CELLS["randread-4k-qd1"].ios
    assert "write_amplification" not in found


def test_counters_are_differences() -> None:
    kinds = [
        f"{k}_{c}"
        for k in ("read", "prog", "erase")
        for c in ("host", "clean", "merge", "wear", "map", "pad")
    ]
    others = ["erase_on_demand", "host_write_pages", "queue_wait_ns", "map_bytes"]
    before = {name: 100 for name in kinds + others}
    after = before | {
        "prog_host": 110,
        "prog_wear": 103,
        "read_wear": 103,
        "erase_host": 102,
        "erase_on_demand": 101,
        "host_write_pages": 110,
        "queue_wait_ns": 100 + 18_000,
    }
    found = {figure.metric: figure.value for figure in counter_figures(before, after)}
    assert found == {
        "nand.reads": 3,
        "nand.programs": 13,
        "nand.erases": 2,
        "nand.erases_on_demand": 1,
        "write_amplification": 1.3,
        "nand.queue_wait.mean": 1.0,
        "map_bytes": 100,
    }


def test_nvme_cli() -> None:
    found = {metric: figure.value for metric, figure in figures("admin").items()}
    assert found["capacity"] == 2 << 30
    assert found["zones"] == 128
    assert found["zone_size"] == found["zone_capacity"] == 16 << 20
    assert found["metadata"] == 64
    assert found["zones_full"] == 4
    assert found["log.counters"] > 40
    assert {figure.clock for figure in figures("admin").values()} == {"count"}


Change = Callable[[Any], None]


def drop_a_zone(report: Any) -> None:
    report["zone_list"].pop()


def shift_a_zone(report: Any) -> None:
    report["zone_list"][5]["slba"] += 1


def fewer_ios(output: Any) -> None:
    output["jobs"][0]["read"]["total_ios"] -= 1


def an_error(output: Any) -> None:
    output["jobs"][0]["error"] = 5


def no_jobs(output: Any) -> None:
    del output["jobs"]


def small_blocks(namespace: Any) -> None:
    for lba_format in namespace["lbafs"]:
        lba_format["ds"] = 9


@pytest.mark.parametrize(
    ("cell", "file", "change", "message"),
    [
        ("randread-4k-qd1", "main.json", fewer_ios, "1199 of 1200"),
        ("randread-4k-qd1", "main.json", an_error, "error 5"),
        ("randread-4k-qd1", "main.json", no_jobs, "unexpected JSON"),
        ("randread-4k-qd1", "after.json", lambda c: c.pop("counters"), "rsdctl: unexpected"),
        ("admin", "zones.json", drop_a_zone, "nr_zones"),
        ("admin", "zones.json", shift_a_zone, "gaps"),
        ("admin", "id-ns.json", small_blocks, "not 4 KiB"),
        ("admin", "smart.json", lambda s: s.pop("media_errors"), "unexpected JSON"),
    ],
)
def test_bad_output_is_noticed(
    tmp_path: Path, cell: str, file: str, change: Change, message: str
) -> None:
    shutil.copytree(RAW / cell, tmp_path / "cell")
    path = tmp_path / "cell" / file
    output = json.loads(path.read_text())
    change(output)
    path.write_text(json.dumps(output))
    with pytest.raises(BadOutput, match=message):
        figures(cell, tmp_path / "cell")


def test_output_that_is_not_json(tmp_path: Path) -> None:
    shutil.copytree(RAW / "randread-4k-qd1", tmp_path / "cell")
    path = tmp_path / "cell" / "main.json"
    path.write_text(path.read_text()[:-40])
    with pytest.raises(BadOutput, match=r"main\.json: not JSON"):
        figures("randread-4k-qd1", tmp_path / "cell")


def test_another_log_page_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(RAW / "admin", tmp_path / "cell")
    (tmp_path / "cell" / "counters.bin").write_bytes(bytes(4096))
    with pytest.raises(BadOutput, match="not the drive's page"):
        figures("admin", tmp_path / "cell")
