"""Progress of long steps: a live display on a terminal, plain lines elsewhere.

Everything goes to standard error: standard output belongs to the guest's command.

Steps of a set-up are known beforehand, with the processor time that each took when it was
recorded (first_run.py). Of them one line says how many are done, and about how long the rest takes.
"""

import contextlib
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

# A plain log says "still running" this often, so that CI does not look dead; RSD_HEARTBEAT_S is
# another interval, for tests.
HEARTBEAT_S = 30.0
# So often the line about all steps is made anew on a terminal.
REFRESH_S = 2.0

# For so long the estimate trusts the number of processors more than what it has seen.
TRUST_S = 60.0
# What is left of a step that should be over by now
STILL = 0.05

# ninja begins its lines so.
COUNTED = re.compile(r"\[(\d+)/(\d+)\] ")


def heartbeat_s() -> float:
    """Seconds from one line of a step that still runs to the next."""
    return float(os.environ.get("RSD_HEARTBEAT_S", HEARTBEAT_S))


class Step:
    """One running step."""

    def __init__(self, owner: "Progress", title: str, task: "TaskID | None") -> None:
        self.title = title
        self.started = time.monotonic()
        self.cpu_s = 0.0
        # How many parts are done, and how many there are; for steps that print nothing.
        self.counter: Callable[[], tuple[int, int]] | None = None
        self._count: tuple[int, int] | None = None
        self._owner = owner
        self._task = task
        self._newest = ""

    @property
    def elapsed_s(self) -> float:
        """Wall seconds since the step began."""
        return time.monotonic() - self.started

    def detail(self, text: str) -> None:
        """Show `text` beside the title; in plain form, at every heartbeat only."""
        self._newest = text.strip()
        self._owner.show(self._task, self._newest)

    def output(self, line: str) -> None:
        """A line that the step's command printed. Only a terminal has room for it."""
        if match := COUNTED.match(line):
            self._count = int(match[1]), int(match[2])
        self._owner.show(self._task, line.strip())

    def count(self) -> tuple[int, int] | None:
        """(parts that are done, all parts), where this is known."""
        return self.counter() if self.counter else self._count

    def text(self) -> str:
        """Which step it is, and how far, in few words."""
        count = self.count()
        return self.title + (f" ({count[0]:,} of {count[1]:,})" if count else "")

    def part(self, share_s: float) -> float:
        """Which part of it is done, if it is one that takes so many processor seconds."""
        count = self.count()
        part = count[0] / count[1] if count and count[1] else self.elapsed_s / max(share_s, 0.1)
        return min(part, 1 - STILL)

    def beat(self, ended: threading.Event) -> None:
        """Say at every heartbeat that it still runs, whether there is output or not."""
        while not ended.wait(heartbeat_s()):
            newest = f": {self._newest}" if self._newest else ""
            self._owner.say(f"{self.text()}: still running, {self.elapsed_s:.0f} s{newest}")


class Progress:
    """Shows any number of steps, from any number of threads."""

    def __init__(self) -> None:
        self._tty = sys.stderr.isatty()
        self._guard = threading.Lock()
        self._running = 0
        self.live: RichProgress | None = None
        # of each finished step: its title, wall and processor seconds
        self.timings: list[tuple[str, float, float]] = []
        self._shares: dict[str, float] = {}
        self._planned: dict[str, Step] = {}  # those of the plan that run
        self._done: set[str] = set()
        self._began: float | None = None

    def say(self, text: str) -> None:
        """Print one line (above the live display, if there is one)."""
        line = text if self._tty else f"rsd: {text}"
        if self.live is not None:
            self.live.console.print(line, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def show(self, task: "TaskID | None", text: str) -> None:
        """Put the text beside a step on a terminal."""
        if task is not None and self.live is not None:
            self.live.update(task, detail=text[:100])

    @contextlib.contextmanager
    def expect(self, shares: Mapping[str, float]) -> Iterator[None]:
        """The block takes these steps, of so many processor seconds: say how far it is."""
        if not shares:
            yield
            return
        self._shares, self._done, self._began = dict(shares), set(), time.monotonic()
        ended = threading.Event()
        beat = threading.Thread(target=self._beat, args=(ended,), daemon=True)
        beat.start()
        try:
            yield
        finally:
            ended.set()
            beat.join()  # it reads the shares
            self._shares = {}

    def outlook(self) -> str:
        """How many of the expected steps are done, which run, and about how long the rest takes."""
        with self._guard:
            running = list(self._planned.values())
            done = set(self._done)
        work = sum(self._shares.values())
        finished = sum(self._shares[title] for title in done)
        for step in running:
            share_s = self._shares[step.title]
            finished += share_s * step.part(share_s)
        assert self._began is not None
        elapsed = time.monotonic() - self._began
        cores = len(os.sched_getaffinity(0))
        speed = (finished + cores * TRUST_S) / (elapsed + TRUST_S)
        text = (
            f"{len(done)} of {len(self._shares)} steps done, {100 * finished / work:.0f}% of the"
            f" work, about {duration((work - finished) / speed)} left"
        )
        return "; ".join([text, *(step.text() for step in running)])

    def _beat(self, ended: threading.Event) -> None:
        task = self._begin("set-up") if self._tty else None
        while not ended.wait(REFRESH_S if self._tty else heartbeat_s()):
            if self._tty:
                self.show(task, self.outlook())
            else:
                self.say(self.outlook())
        if task is not None:
            self._remove(task)

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show `title` while the block runs, then how long it took."""
        step = Step(self, title, self._begin(title))
        ended = threading.Event()
        expected = title in self._shares
        if expected:
            with self._guard:
                self._planned[title] = step
        if not self._tty:
            self.say(f"{title} ...")
            if not expected:
                threading.Thread(target=step.beat, args=(ended,), daemon=True).start()
        try:
            yield step
        except BaseException:
            self._end(step, ended, "failed after")
            raise
        if expected:
            self._done.add(title)
        self.timings.append((title, step.elapsed_s, step.cpu_s))
        self._end(step, ended, "done in")

    def _begin(self, title: str) -> "TaskID | None":
        if not self._tty:
            return None
        # Here, since a run that finds everything built has no step to show, and need not wait.
        from rich.console import Console
        from rich.progress import Progress as RichProgress
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._guard:
            if self.live is None:
                self.live = RichProgress(
                    SpinnerColumn(),
                    TextColumn("{task.description}", markup=False),
                    TimeElapsedColumn(),
                    TextColumn("{task.fields[detail]}", style="dim", markup=False),
                    console=Console(stderr=True, highlight=False),
                    transient=True,
                )
                self.live.start()
            self._running += 1
            return self.live.add_task(title, total=None, detail="")

    def _end(self, step: Step, ended: threading.Event, how: str) -> None:
        ended.set()
        with self._guard:
            self._planned.pop(step.title, None)
        self.say(f"{step.title}: {how} {step.elapsed_s:.1f} s")
        if step._task is not None:
            self._remove(step._task)

    def _remove(self, task: "TaskID") -> None:
        with self._guard:
            if self.live is None:
                return
            self.live.remove_task(task)
            self._running -= 1
            if self._running == 0:
                self.live.stop()
                self.live = None


def duration(seconds: float) -> str:
    """In the unit that fits, rounded up."""
    if seconds < 90:
        return f"{math.ceil(seconds / 10) * 10} s"
    return f"{math.ceil(seconds / 60)} min"
