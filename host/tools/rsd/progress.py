"""Progress of long steps: a live display on a terminal, plain lines elsewhere.

Everything goes to standard error: standard output belongs to the guest's command.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

# A plain log says "still running" this often, so that CI does not look dead; RSD_HEARTBEAT_S is
# another interval, for tests.
HEARTBEAT_S = 30.0


def heartbeat_s() -> float:
    """Seconds from one line of a step that still runs to the next."""
    return float(os.environ.get("RSD_HEARTBEAT_S", HEARTBEAT_S))


class Step:
    """One running step. `detail` shows the newest line of its output."""

    def __init__(self, owner: "Progress", title: str, task: "TaskID | None") -> None:
        self.title = title
        self.started = time.monotonic()
        self._owner = owner
        self._task = task
        self._newest = ""

    @property
    def elapsed_s(self) -> float:
        """Wall seconds since the step began."""
        return time.monotonic() - self.started

    def detail(self, text: str) -> None:
        """Show `text` beside the title; in plain form, at every heartbeat only."""
        if self._task is not None and self._owner.live is not None:
            self._owner.live.update(self._task, detail=text.strip()[:100])
        self._newest = text.strip()

    def beat(self, ended: threading.Event) -> None:
        """Say at every heartbeat that it still runs, whether there is output or not."""
        while not ended.wait(heartbeat_s()):
            newest = f": {self._newest}" if self._newest else ""
            self._owner.say(f"{self.title}: still running, {self.elapsed_s:.0f} s{newest}")


class Progress:
    """Shows any number of steps, from any number of threads."""

    def __init__(self) -> None:
        self._tty = sys.stderr.isatty()
        self._guard = threading.Lock()
        self._running = 0
        self.live: RichProgress | None = None
        self.timings: list[tuple[str, float]] = []

    def say(self, text: str) -> None:
        """Print one line (above the live display, if there is one)."""
        line = text if self._tty else f"rsd: {text}"
        if self.live is not None:
            self.live.console.print(line, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show `title` while the block runs, then how long it took."""
        step = Step(self, title, self._begin(title))
        ended = threading.Event()
        if not self._tty:
            self.say(f"{title} ...")
            threading.Thread(target=step.beat, args=(ended,), daemon=True).start()
        try:
            yield step
        except BaseException:
            ended.set()
            self._end(step, "failed after")
            raise
        ended.set()
        self.timings.append((title, step.elapsed_s))
        self._end(step, "done in")

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

    def _end(self, step: Step, how: str) -> None:
        self.say(f"{step.title}: {how} {step.elapsed_s:.1f} s")
        if step._task is None or self.live is None:
            return
        with self._guard:
            self.live.remove_task(step._task)
            self._running -= 1
            if self._running == 0:
                self.live.stop()
                self.live = None
