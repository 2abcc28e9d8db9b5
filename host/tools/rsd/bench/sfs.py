# SPDX-License-Identifier: GPL-2.0-or-later
"""SFS's experiments (FAST 2012, sections 4.2 and 4.3) in sfssim, with the policy of RFS.

What SFS says is beside each figure. It does not say how large the files of its workloads are:
here they are 12% of the volume, since cleaning with one group then copies about as much as there
(figure 5: 0.65 blocks a write for Zipf, 0.54 for TPC-C).
"""

import json
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rsd import sim
from rsd.bench.base import Context, Row
from rsd.errors import RsdError

SOURCES = ("host/tools/sfssim", "host/tools/rsdsim", "host/fs/core")
# 32 MiB segments, 4 KiB blocks; 95% is where cleaning begins (SFS 3.6).
STATE = {"segments": 1024, "blocks": 8192, "reserve": 5, "set": 12, "theta": 0.99, "seed": 1}
LENGTH = {"cache": 0.5, "age": 0.5, "writes": 0.25}
BASE = {"fill": 85, "groups": 4, "quantize": "iterative", "gc": "cost-hotness"}
LFS = {"groups": 1, "gc": "cost-benefit"}
OURS = {"gc": "cost-benefit", "quantize": "logarithmic"}
FILLS = (70, 80, 90)
# Percent of the volume that may be dirty: about what SSD-M (64 GB, 87 MB/s) takes in the five
# seconds between SFS's flushes (3.5) at figure 5's write costs, 6.96 and 4.21; and none
CACHES = (0.125, 0)
GCS = ("cost-hotness", "cost-benefit")
WORKLOADS = ("zipf", "oltp", "uniform")
# Figures 5 to 7, their bandwidth weights taken out: fewer copies, times as many
SFS_GROUPS = {"zipf": "46%", "oltp": "67%"}
SFS_QUANTIZE = {"zipf": (1.20, 1.56), "oltp": (1.56, 2.48)}
SFS_COST = {"oltp": "77.4%", "uniform": "27.9%"}

Options = Mapping[str, Any]
Key = tuple[tuple[str, Any], ...]


def _key(work: str, options: Options) -> Key:
    return tuple(sorted({**STATE, **LENGTH, **BASE, "work": work, **options}.items()))


def _variants(work: str) -> list[Options]:
    if work == "uniform":
        found: list[Options] = [{}, LFS]
    else:
        found = [{"groups": n} for n in range(1, 7)]
        found += [{"quantize": name} for name in ("equi-height", "equi-width")]
        found += [{"gc": "cost-benefit"}, {"gc": "greedy"}, LFS, OURS]
    if work == "zipf":
        found += [
            {"cache": size, "groups": n, "gc": gc} for size in CACHES for gc in GCS for n in (1, 4)
        ]
    for fill in FILLS:
        found += [{"fill": fill}, {"fill": fill, "gc": "cost-benefit"}]
        found += [{"fill": fill, **LFS}, {"fill": fill, **OURS}]
    return found


def _run(program: Path, key: Key) -> Any:
    words = [f"{name}={value}" for name, value in key]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RsdError(f"sfssim {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def sfs(context: Context) -> list[Row]:
    """All runs, then the rows of each workload."""
    program = sim.ensure_program(context.cache, context.progress, "sfssim", SOURCES).path
    keys = [_key(work, options) for work in WORKLOADS for options in _variants(work)]
    results: dict[Key, Any] = {}
    with context.progress.step(f"sfs: {len(keys)} runs") as step, ThreadPoolExecutor(2) as pool:
        for key, result in zip(keys, pool.map(lambda key: _run(program, key), keys), strict=True):
            results[key] = result
            step.detail(f"{len(results)} done")
    rows = []
    for work in WORKLOADS:
        shown = _Shown(work, results)
        if work != "uniform":
            rows += [shown.groups(), *shown.quantize(), *shown.victims()]
        if work == "zipf":
            rows += [shown.cache(size, gc) for size in CACHES for gc in GCS]
        rows += [*(shown.cost(fill) for fill in FILLS), shown.histogram()]
    return rows


class _Shown:
    """The figures of one workload."""

    def __init__(self, work: str, results: Mapping[Key, Any]) -> None:
        self.work = work
        self.results = results

    def _of(self, figure: str, **options: Any) -> Any:
        return self.results[_key(self.work, options)][figure]

    def _copies(self, **options: Any) -> float:
        return float(self._of("copies_a_write", **options))

    def _row(self, what: str, must: str, measured: str, value: float) -> Row:
        return Row(f"sfs, {self.work}, {what}", must, measured, value, "", "count", None)

    def groups(self) -> Row:
        """SFS figure 5."""
        copies = [self._copies(groups=n) for n in range(1, 7)]
        shown = ", ".join(f"{value:.3f}" for value in copies)
        fewer = 1 - copies[3] / copies[0]
        return self._row(
            "85% full: copies a write with 1 to 6 groups, and 4 against 1",
            f"SFS: {SFS_GROUPS[self.work]} fewer",
            f"{shown}: {fewer:.0%} fewer",
            fewer,
        )

    def cache(self, size: float, gc: str) -> Row:
        """SFS figure 5, with less of the volume dirty in the page cache."""
        one, four = (self._copies(cache=size, groups=n, gc=gc) for n in (1, 4))
        fewer = 1 - four / one
        return self._row(
            f"85% full: copies a write with {gc}, 1 and 4 groups, {size:g}% may be dirty in memory",
            f"SFS: {SFS_GROUPS[self.work]} fewer",
            f"{one:.3f}, {four:.3f}: {fewer:.0%} fewer",
            fewer,
        )

    def quantize(self) -> list[Row]:
        """SFS figure 6."""
        rows = []
        for name, paper in zip(("equi-height", "equi-width"), SFS_QUANTIZE[self.work], strict=True):
            times = self._copies(quantize=name) / self._copies()
            rows.append(
                self._row(
                    f"85% full: copies, {name} against iterative",
                    f"SFS: {paper:.2f} times",
                    f"{times:.2f} times",
                    times,
                )
            )
        return rows

    def victims(self) -> list[Row]:
        """SFS figure 7, and greedy; then what both techniques do together."""
        rows = []
        for name, paper in (("cost-benefit", "SFS: 0.91 times"), ("greedy", "")):
            times = self._copies() / self._copies(gc=name)
            rows.append(
                self._row(
                    f"85% full: copies, cost-hotness against {name}",
                    paper,
                    f"{times:.2f} times",
                    times,
                )
            )
        best = self._copies(gc="cost-benefit")
        fewer = 1 - best / self._copies(**LFS)
        rows.append(
            self._row(
                "85% full: copies with cost-benefit, 4 groups against 1",
                "",
                f"{best:.3f}, {self._copies(**LFS):.3f}: {fewer:.0%} fewer",
                fewer,
            )
        )
        log = self._copies(**OURS)
        fewer = 1 - log / self._copies(**LFS)
        rows.append(
            self._row(
                "85% full: the same with 4 groups by hotness's logarithm",
                "",
                f"{log:.3f}: {fewer:.0%} fewer",
                fewer,
            )
        )
        return rows

    def cost(self, fill: int) -> Row:
        """SFS figure 8."""
        lfs = self._of("write_cost", fill=fill, **LFS)
        hot = self._of("write_cost", fill=fill)
        benefit = self._of("write_cost", fill=fill, gc="cost-benefit")
        log = self._of("write_cost", fill=fill, **OURS)
        paper = SFS_COST.get(self.work)
        less = [f"{cost:.2f} ({cost / lfs - 1:+.0%})" for cost in (hot, benefit, log)]
        return self._row(
            f"{fill}% full: write cost with SSD-M's bandwidths, groups=1 with cost-benefit; "
            "groups=4 with cost-hotness, cost-benefit, cost-benefit by logarithm",
            f"SFS: {paper} less" if paper and fill == 90 else "",
            f"{lfs:.2f}; {', '.join(less)}",
            1 - hot / lfs,
        )

    def histogram(self) -> Row:
        """SFS figure 10: segments that hold the workload's blocks."""
        bars = self._of("histogram", fill=70)
        shown = " ".join(f"{100 * bar:.0f}" for bar in bars)
        return self._row(
            "70% full: % of segments by utilization, 5% a bar", "SFS: two heaps", shown, bars[0]
        )
