# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison's results, looked up by system, workload and metric."""

from collections.abc import Mapping
from typing import Any


class Results:
    """A view of results.json."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content
        self.systems: list[str] = list(content["configuration"]["systems"])
        self.workloads: Mapping[str, Any] = content["configuration"]["workloads"]
        # File systems on drives, and what ran on them; results of before have none.
        self.stacks: Mapping[str, Any] = content["configuration"].get("stacks", {})
        self.benchmarks: Mapping[str, Any] = content["configuration"].get("benchmarks", {})
        self._values = {
            (record["system"], record["workload"], record["metric"]): record
            for record in content["records"]
        }

    def value(self, system: str, workload: str, metric: str) -> float | None:
        """The figure, or None if it was not measured or does not apply."""
        record = self._values.get((system, workload, metric))
        return None if record is None else record["value"]

    def has(self, workload: str, metric: str) -> bool:
        """Whether any system has the figure."""
        return any(self.value(system, workload, metric) is not None for system in self.systems)

    def measured_stacks(self, benchmark: str) -> list[str]:
        """The stacks on which the benchmark finished."""
        return [s for s in self.stacks if self.value(s, benchmark, "run_time") is not None]

    def loads(self) -> list[tuple[str, str]]:
        """(workload, prefix) of everything that has a throughput; mixed loads twice."""
        found = []
        for workload in self.workloads:
            for prefix in ("", "read.", "write."):
                if self.has(workload, f"{prefix}iops"):
                    found.append((workload, prefix))
        return found

    def runs(self, system: str, workload: str, metric: str) -> list[float]:
        """The figure of each repetition."""
        values = self.content["repeatability"][system]["values"]
        found: list[float] = values.get(workload, {}).get(metric, [])
        return found

    def identical(self, system: str) -> bool:
        """Whether the repetitions were compared and found equal in every figure."""
        return bool(self.content["repeatability"][system]["identical"])

    def deviations(self, system: str) -> list[float]:
        """Each run's IOPS relative to the median of its cell, in percent, over all cells."""
        found = []
        for workload, prefix in self.loads():
            values = sorted(self.runs(system, workload, f"{prefix}iops"))
            if len(values) > 1 and values[0] > 0:
                median = values[(len(values) - 1) // 2]
                found += [100 * (value / median - 1) for value in values]
        return found


def label(workload: str, prefix: str) -> str:
    """A workload's name with its direction."""
    return f"{workload} {prefix.rstrip('.')}".strip()
