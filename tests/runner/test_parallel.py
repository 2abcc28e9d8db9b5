# SPDX-License-Identifier: GPL-2.0-or-later
"""Several things at once: results in order, and nothing goes on after a failure."""

import os
import subprocess
import time

import pytest

from rsd.parallel import run_all


def test_results_are_in_order() -> None:
    """The last one asked for may be the first to end."""

    def late(number: int) -> int:
        time.sleep(0.05 if number == 0 else 0)
        return number

    assert run_all([lambda n=n: late(n) for n in range(5)]) == list(range(5))
    assert run_all([]) == []


def test_a_failure_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that would run for a minute is killed, and the failure is what comes out."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    begun: list[subprocess.Popen[bytes]] = []

    def long_child() -> int:
        begun.append(subprocess.Popen(["sleep", "60"]))
        return begun[0].wait()

    def fail() -> int:
        while not begun:
            time.sleep(0.01)
        raise ValueError("of the second")

    with pytest.raises(ValueError, match="of the second"):
        run_all([long_child, fail])
    assert begun[0].returncode == -9
