# SPDX-License-Identifier: GPL-2.0-or-later
"""SFS (FAST 2012): its cleaning experiments, 4.2 and 4.3, in sfssim with the policy of RFS.

SFS does not say how large the files of its workloads are: here they are 12% of the volume, since
cleaning with one group then copies about as much as there (figure 5: 0.65 blocks a write for Zipf,
0.54 for TPC-C). What it prints of figures 5 to 7 are write costs of SSD-M; with its bandwidths
taken out they are copies, which are compared here.
"""

import array
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

from rsd import sim
from rsd.bench.base import Context
from rsd.cluster.unit import Unit
from rsd.errors import RsdError
from rsd.paper import recorded
from rsd.paper.claim import Claim, Limit
from rsd.paper.entry import Entry, Paper, Scale
from rsd.paper.recorded import Recorded

# 32 MiB segments, 4 KiB blocks; 95% is where cleaning begins (SFS 3.6).
STATE = {"segments": 1024, "blocks": 8192, "reserve": 5, "set": 12, "theta": 0.99, "seed": 1}
LENGTH = {"cache": 0.5, "age": 0.5, "writes": 0.25}
BASE = {"fill": 85, "groups": 4, "quantize": "iterative", "gc": "cost-hotness"}
LFS = {"groups": 1, "gc": "cost-benefit"}
# RFS's own policy; the same where the rate of each block is known, which is all that can be known
# of writes that are drawn by themselves; and where each block's next write is, with several borders
# and victims, of which the best counts: a bound, though not a proven one
OURS = {"gc": "cost-benefit", "quantize": "balanced"}
RATES = {**OURS, "know": "rate"}
NEXT = (
    {**OURS, "know": "next", "gc": "cost-hotness"},
    {"know": "next", "gc": "cost-hotness", "lives": "0.3,1,3"},
    {"know": "next", "gc": "cost-benefit", "lives": "0.3,1,3"},
)
# Percent of the volume that may be dirty: about what SSD-M (64 GB, 87 MB/s) takes in the five
# seconds between SFS's flushes (3.5) at figure 5's write costs, 6.96 and 4.21; and none
CACHES = (0.125, 0)
# Percent of the volume that is written again, as alternatives
SETS = (3, 5)
TITLES = {"zipf": "Zipf", "oltp": "TPC-C", "uniform": "uniform"}

# The text of 2.3
HOTTEST, HOTTEST_GET = 0.016, 0.29

# Figures 5 to 7, their bandwidth weights taken out: copies with 4 groups in parts of those with
# one; copies of two ways to quantize in parts of the iterative one's; of cost-hotness in
# parts of cost-benefit's
GROUPS = {"zipf": 1 - 0.46, "oltp": 1 - 0.67}
QUANTIZE = {
    "zipf": {"equi-height": 1.20, "equi-width": 1.56},
    "oltp": {"equi-height": 1.56, "equi-width": 2.48},
}
VICTIMS = 0.91
# Figure 8: write cost at 90% in parts of LFS-CB's
COST = {"oltp": 1 - 0.774, "uniform": 1 - 0.279}

Options = Mapping[str, Any]


class _Runs:
    """Runs of sfssim; all that is asked for at once runs side by side."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._program = sim.ensure_sfssim(context.cache, context.progress)
        self._results: dict[tuple[tuple[str, Any], ...], Any] = {}

    def get(self, work: str, options: list[Options]) -> list[Any]:
        """The results, in the order of the options."""
        keys = [
            tuple(sorted({**STATE, **LENGTH, **BASE, "work": work, **o}.items())) for o in options
        ]
        missing = [key for key in dict.fromkeys(keys) if key not in self._results]
        title = f"sfssim, {TITLES[work]}: {len(missing)} runs"
        with self._context.progress.step(title) as step, ThreadPoolExecutor(2) as pool:
            for key, result in zip(
                missing, pool.map(lambda key: _run(self._program, key), missing), strict=True
            ):
                self._results[key] = result
                step.detail(f"{len(self._results)} done")
        return [self._results[key] for key in keys]

    def copies(self, work: str, options: list[Options]) -> list[float]:
        """Blocks that cleaning copied, a block written."""
        return [float(result["copies_a_write"]) for result in self.get(work, options)]


def _run(program: Path, key: tuple[tuple[str, Any], ...]) -> Any:
    words = [f"{name}={value}" for name, value in key]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RsdError(f"sfssim {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def figure2(context: Context, scale: Scale) -> list[Claim | Limit]:
    """TPC-C alone: what the text says of it (2.3). The curves have no numbers."""
    blocks = array.array("I")
    writes = recorded.FLASH // 2
    with context.cache.scratch("workload") as scratch:
        program = sim.ensure_sfssim(context.cache, context.progress)
        recorded.workload(program, "oltp", scratch / "list", writes)
        blocks.frombytes((scratch / "list").read_bytes())
    often = sorted(Counter(blocks[:writes]).values(), reverse=True)

    def top(share: float) -> float:
        """Of all writes, what goes to this share of the file that is written most."""
        return sum(often[: round(share * recorded.hot_blocks())]) / writes

    return [
        Claim(
            f"writes that go to {HOTTEST:.1%} of the pages, TPC-C",
            "",
            {"TPC-C": HOTTEST_GET},
            {"TPC-C": top(HOTTEST)},
            beside={f"to {share:.0%} of them": top(share) for share in (0.1, 0.2, 0.5)},
            note="the Research and the web server's trace are not to be had",
        )
    ]


def figure5(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Copies by the number of groups, 85% full; with less dirty, with less written; RFS's own."""
    runs = _Runs(context)
    claims: list[Claim | Limit] = []
    for work, paper in GROUPS.items():
        copies = runs.copies(work, [{"groups": n} for n in range(1, 7)])
        benefit = runs.copies(work, [LFS, {"gc": "cost-benefit"}])
        lfs, own, rates = runs.copies(work, [LFS, OURS, RATES])
        known = min(runs.copies(work, list(NEXT)))
        claims.append(
            Claim(
                f"copies a write, {TITLES[work]}, 85% full",
                "",
                {"1 group": 1, "4 groups": paper},
                {"1 group": copies[0], "4 groups": copies[3]},
                "1 group",
                {f"{n} groups": copies[n - 1] for n in (2, 3, 5, 6)}
                | dict(
                    zip(
                        ("cost-benefit, 1", "cost-benefit, 4"),
                        benefit,
                        strict=True,
                    )
                ),
            )
        )
        claims.append(
            Claim(
                f"copies a write, {TITLES[work]}, 85% full, RFS's groups and victims",
                "",
                {"1 group": 1, "4 groups": paper},
                {"1 group": lfs, "4 groups": own},
                "1 group",
                {"rates known": rates, "next write known": known},
            )
        )
    for size in CACHES:
        one, four = runs.copies("zipf", [{"cache": size, "groups": n} for n in (1, 4)])
        claims.append(
            Claim(
                f"copies a write, Zipf, 85% full, {size:g}% may be dirty in memory",
                "",
                {"1 group": 1, "4 groups": GROUPS["zipf"]},
                {"1 group": one, "4 groups": four},
                "1 group",
            )
        )
    for share in SETS:
        one, four = runs.copies("zipf", [{"set": share, "groups": n} for n in (1, 4)])
        claims.append(
            Claim(
                f"copies a write, Zipf, 85% full, {share}% are written again",
                "",
                {"1 group": 1, "4 groups": GROUPS["zipf"]},
                {"1 group": one, "4 groups": four},
                "1 group",
            )
        )
    return claims


def figure6(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Copies by how segments are quantized."""
    runs = _Runs(context)
    claims: list[Claim | Limit] = []
    for work, paper in QUANTIZE.items():
        names = ["iterative", *paper]
        copies = runs.copies(work, [{"quantize": name} for name in names])
        claims.append(
            Claim(
                f"copies a write, {TITLES[work]}, by the way to quantize",
                "",
                {"iterative": 1, **paper},
                dict(zip(names, copies, strict=True)),
                "iterative",
                {"balanced": runs.copies(work, [{"quantize": "balanced"}])[0]},
            )
        )
    names = ["iterative", *QUANTIZE["zipf"]]
    for share in SETS:
        copies = runs.copies("zipf", [{"set": share, "quantize": name} for name in names])
        claims.append(
            Claim(
                f"copies a write, Zipf, by the way to quantize, {share}% are written again",
                "",
                {"iterative": 1, **QUANTIZE["zipf"]},
                dict(zip(names, copies, strict=True)),
                "iterative",
            )
        )
    return claims


def figure7(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Copies by how victims are chosen."""
    runs = _Runs(context)
    claims: list[Claim | Limit] = []
    for work in GROUPS:
        names = ["cost-benefit", "cost-hotness", "greedy"]
        benefit, hotness, greedy = runs.copies(work, [{"gc": name} for name in names])
        claims.append(
            Claim(
                f"copies a write, {TITLES[work]}, by the choice of victims",
                "",
                {"cost-benefit": 1, "cost-hotness": VICTIMS},
                {"cost-benefit": benefit, "cost-hotness": hotness},
                "cost-benefit",
                {"greedy": greedy},
            )
        )
    return claims


def figure8(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Write cost with SSD-M's bandwidths, 90% full, against LFS-CB."""
    runs = _Runs(context)
    claims: list[Claim | Limit] = []
    for work, paper in COST.items():
        options = [{"fill": 90, **one} for one in (LFS, {}, OURS, RATES, *NEXT)]
        lfs, sfs, ours, rates, *known = (
            float(one["write_cost"]) for one in runs.get(work, options)
        )
        claims.append(
            Claim(
                f"write cost, {TITLES[work]}, 90% full",
                "",
                {"LFS-CB": 1, "SFS": paper},
                {"LFS-CB": lfs, "SFS": sfs},
                "LFS-CB",
                {"RFS": ours, "rates known": rates, "next write known": min(known)},
            )
        )
    return claims


def figure10(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Two heaps of segments, nearly empty and nearly full: what lies between is little."""
    runs = _Runs(context)
    claims: list[Claim | Limit] = []
    for work, options, whose in (
        (work, options, whose) for work in GROUPS for options, whose in (({}, ""), (OURS, ", RFS"))
    ):
        (result,) = runs.get(work, [{"fill": 70, **options}])
        bars = [float(bar) for bar in result["histogram"]]
        shown = " ".join(f"{100 * bar:.0f}" for bar in bars)
        middle = sum(bars[len(bars) // 5 : -len(bars) // 5])
        ends = {"nearly empty or full": 1 - middle, "between 20 and 80% live": middle}
        claims.append(
            Claim(
                f"segments, {TITLES[work]}, 70% full{whose}, share by what is live in them",
                "",
                {"nearly empty or full": 2, "between 20 and 80% live": 1},
                ends,
                ranks=True,
                note=f"percent of segments, 5% of live blocks a bar: {shown}",
            )
        )
    return claims


# Figures 9 and 12 to 14, as the text has them
THROUGHPUT_90 = {"oltp": 2.519, "uniform": 1.185}
THROUGHPUT = {
    "SFS": 1,
    "LFS-CB": 1 / 1.6,
    "btrfs": 1 / 7.3,
    "btrfs-nodatacow": 1 / 1.5,
    "ext4": 1 / 1.5,
}
AMPLIFICATION = {
    "fast": {"SFS": 1.1, "LFS-CB": 1.1, "ext4": 5.3, "btrfs-nodatacow": 5.3, "btrfs": 2.8},
    "page": {"SFS": 1.0, "LFS-CB": 1.0, "ext4": 2.8, "btrfs-nodatacow": 2.8, "btrfs": 1.2},
}
ERASES = {
    "fast": {"SFS": 1, "LFS-CB": 1.2, "ext4": 3.1, "btrfs-nodatacow": 3.4, "btrfs": 6.1},
    "page": {"SFS": 1, "LFS-CB": 1.2, "ext4": 1.8, "btrfs-nodatacow": 2.0, "btrfs": 3.8},
}
FTL_TITLES = {"fast": "FAST", "page": "page-level FTL"}

Found = Mapping[tuple[str, str], Recorded]


def figure9(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Writes a second in the guest, 90% full, against LFS-CB."""
    found = recorded.measure(_logs(), context)
    return [
        Claim(
            f"writes a second, {TITLES[work]}, 90% full",
            "",
            {"LFS-CB": 1, "SFS": paper},
            _each(found, work, lambda one: 1 / one.seconds, ("LFS-CB", "SFS")),
            "LFS-CB",
        )
        for work, paper in THROUGHPUT_90.items()
    ]


def _logs() -> list[recorded.Plan]:
    return recorded.plans(["SFS", "LFS-CB"], THROUGHPUT_90, 90)


def _all() -> list[recorded.Plan]:
    return recorded.plans(recorded.SYSTEMS, recorded.WORKS, 85)


def _found(context: Context) -> Found:
    return recorded.measure(_all(), context)


def _log_units(context: Context, scale: Scale) -> list[Unit]:
    return [recorded.unit(plan, context) for plan in _logs()]


def _units(context: Context, scale: Scale) -> list[Unit]:
    return [recorded.unit(plan, context) for plan in _all()]


def _each(
    found: Found, work: str, of: Callable[[Recorded], float], systems: Iterable[str]
) -> dict[str, float]:
    """Of the systems that had room for the work."""
    return {one: of(found[work, one]) for one in systems if not found[work, one].no_space}


def _on_average(
    what: str,
    paper: Mapping[str, float],
    found: Found,
    of: Callable[[Recorded], float],
    reference: str | None,
) -> Claim:
    """The paper's average of four workloads against the mean of ours."""
    values = {work: _each(found, work, of, recorded.SYSTEMS) for work in recorded.WORKS}
    if reference:
        values = {
            work: {system: value / one[reference] for system, value in one.items()}
            for work, one in values.items()
            if reference in one
        }
    common = [one for one in paper if values and all(one in some for some in values.values())]
    means = {one: fmean(some[one] for some in values.values()) for one in common}
    shown = "; ".join(
        f"{TITLES[work]}: " + ", ".join(f"{one} {value:.2f}" for one, value in some.items())
        for work, some in values.items()
    )
    missing = [one for one in paper if one not in common]
    no_room = f"; no room: {', '.join(missing)}" if missing else ""
    return Claim(what, "", paper, means, reference, note=shown + no_room)


def figure12(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Writes a second in the guest, each on its own drive: RFS on RSD, others on a page map."""
    found = _found(context)
    what = "writes a second, 85% full, mean of the workloads"
    return [_on_average(what, THROUGHPUT, found, lambda one: 1 / one.seconds, "SFS")]


def figure13(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Write amplification of recorded work on two simulated drives."""
    found = _found(context)
    return [
        _on_average(
            f"write amplification, {FTL_TITLES[ftl]}, mean of the workloads",
            paper,
            found,
            lambda one, ftl=ftl: one.drives[ftl].amplification,  # type: ignore[misc]
            None,
        )
        for ftl, paper in AMPLIFICATION.items()
    ]


def figure14(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Blocks of two simulated drives taken into use by recorded work."""
    found = _found(context)
    return [
        _on_average(
            f"erasures, {FTL_TITLES[ftl]}, mean of the workloads",
            paper,
            found,
            lambda one, ftl=ftl: one.drives[ftl].taken,  # type: ignore[misc]
            "SFS",
        )
        for ftl, paper in ERASES.items()
    ]


PAPER = Paper(
    "sfs",
    "C. Min, K. Kim, H. Cho, S.-W. Lee, Y. I. Eom: SFS: Random Write Considered Harmful in Solid "
    "State Drives. USENIX FAST 2012",
    (
        Entry(
            "figure1",
            "bandwidth of random writes by their size",
            missing="needs the three drives it measured: SSD-H, SSD-M and SSD-L",
        ),
        Entry("figure2", "how often which blocks are written", figure2),
        Entry("figure5", "cleaning by the number of groups", figure5),
        Entry("figure6", "cleaning by the way to quantize hotness", figure6),
        Entry("figure7", "cleaning by the choice of victims", figure7),
        Entry("figure8", "write cost against a plain log, 90% full", figure8),
        Entry("figure9", "throughput against a plain log, 90% full", figure9, units=_log_units),
        Entry("figure10", "segments by their live blocks", figure10),
        Entry(
            "figure11",
            "throughput on three drives",
            missing="needs the three drives it measured: SSD-H, SSD-M and SSD-L",
        ),
        Entry("figure12", "throughput against other file systems", figure12, units=_units),
        Entry("figure13", "write amplification in the drive", figure13, units=_units),
        Entry("figure14", "erasures in the drive", figure14, units=_units),
    ),
)
