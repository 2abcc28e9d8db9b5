# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of a comparison is to be done yet, and about how long it takes.

The estimate is by what the cache has of the same benchmarks and agings, of any version; of those
that were never run, by the mean of their scale; where nothing like them ever ran, by the flash of
their drive.
"""

import json
import math
import threading
from collections.abc import Iterator, Sequence
from statistics import fmean

from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.compare import kept
from rsd.compare.own import SCALES
from rsd.compare.stack_run import StackPlan, cell_key, volume_key
from rsd.progress import Progress

AGING = "aging"

# Processor seconds a MiB of flash. On REDO's drive of 512 MiB most benchmarks took 20 to 60 s and
# an aging 60 to 190 s (README.md here, known gaps): the middle of each.
BENCHMARK_S_A_MIB = 0.08
AGING_S_A_MIB = 0.25


class Outlook:
    """Counts the benchmarks on file systems that a comparison finishes. For several threads."""

    def __init__(self, plans: Sequence[StackPlan], built: Artifacts, cache: Cache) -> None:
        self._left = [plan for plan in plans if not cache.find("cell", cell_key(plan, built))]
        self._kept = len(plans) - len(self._left)
        # of several benchmarks on one volume, the first ages it
        self._to_age = {
            (plan.system, plan.benchmark.scale.name)
            for plan in self._left
            if not cache.find("aged", volume_key(plan.system, plan.benchmark.scale, built))
        }
        self._cpu_s = _measured(cache)
        self._guard = threading.Lock()

    def say(self, progress: Progress) -> None:
        """One line, if there is anything to do."""
        with self._guard:
            if self._left:
                progress.say(self._text())

    def done(self, plan: StackPlan) -> bool:
        """A plan is finished, well or not. Whether it was one to do."""
        with self._guard:
            if plan not in self._left:
                return False
            self._left.remove(plan)
            self._to_age.discard((plan.system, plan.benchmark.scale.name))
            return True

    def _text(self) -> str:
        keys = [(plan.system, plan.benchmark.name) for plan in self._left]
        scales = [plan.benchmark.scale.name for plan in self._left]
        keys += [(system, f"{AGING}-{scale}") for system, scale in self._to_age]
        scales += [scale for _, scale in self._to_age]
        seconds, unknown = 0.0, 0
        for key, scale in zip(keys, scales, strict=True):
            if (known := self._estimate(*key, scale)) is None:
                unknown += 1
                known = _guess(key[1], scale)
            seconds += known
        text = f"{len(self._left)} benchmarks on file systems to do, {self._kept} are kept"
        text += f"; {len(self._to_age)} volumes to age"
        long = seconds >= 3600
        about = f"{seconds / 3600:.1f} h" if long else f"{math.ceil(seconds / 60)} min"
        text += f"; about {about} of processor time"
        rough = (
            f"{unknown} of the guests never ran here, and are guessed by the size of their drive"
        )
        return text + (f"; {rough}" if unknown else "")

    def _estimate(self, system: str, what: str, scale: str) -> float | None:
        """Processor seconds; None if nothing like it ever ran."""
        if known := self._cpu_s.get((system, what)):
            return known
        aging = what.startswith(AGING)
        alike = [s for (_, other), s in self._cpu_s.items() if other == what]
        if not alike and not aging:
            alike = [s for (_, other), s in self._cpu_s.items() if other.startswith(f"{scale}-")]
        return fmean(alike) if alike else None


def _guess(what: str, scale: str) -> float:
    """Processor seconds of an aging or a benchmark of which nothing is known."""
    a_mib = AGING_S_A_MIB if what.startswith(AGING) else BENCHMARK_S_A_MIB
    return a_mib * SCALES[scale].raw_mib


def _measured(cache: Cache) -> dict[tuple[str, str], float]:
    """Processor seconds by system and benchmark or aging, the newest of each."""
    return {key: seconds for _, key, seconds in sorted(_entries(cache))}


def _entries(cache: Cache) -> Iterator[tuple[float, tuple[str, str], float]]:
    for kind in ("cell", "aged"):
        for path in (cache.root / kind).glob(f"*/{kept.HOST}"):
            facts = json.loads(path.read_text())
            # drives of their own have no system there
            if "system" in facts:
                what = facts.get("benchmark") or f"{AGING}-{facts['scale']}"
                yield path.stat().st_mtime, (facts["system"], what), facts["qemu_cpu_s"]
