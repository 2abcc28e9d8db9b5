# SPDX-License-Identifier: GPL-2.0-or-later
"""Does several things at once, each of which waits for a child process, as for a guest."""

import concurrent.futures
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


def run_all(todo: Sequence[Callable[[], Result]], most: int | None = None) -> list[Result]:
    """The result of each, as many at once as there are cores, or `most`.

    The first exception of any, an interrupt included, ends all children and is raised.
    """
    workers = max(1, min(most or len(os.sched_getaffinity(0)), len(todo)))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(run) for run in todo]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            # Again and again: one may be about to start its child.
            while not all(future.done() for future in futures):
                _kill_children()
                time.sleep(0.1)
            raise
        return [future.result() for future in futures]


def _kill_children() -> None:
    """End what other threads wait for: all our children are guests or simulators of theirs."""
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            os.kill(int(pid), signal.SIGKILL)
