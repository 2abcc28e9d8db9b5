"""Run a command as a step: its output goes to a log, its last line to a terminal's display."""

import collections
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from rsd.errors import RsdError, StepFailed
from rsd.progress import Step

TAIL_LINES = 15

_running: set[subprocess.Popen[str]] = set()
_guard = threading.Lock()
_stopping = False


def run_logged(
    argv: Sequence[str | Path],
    *,
    step: Step,
    log: Path,
    hint: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    append: bool = False,
) -> None:
    """Run `argv` to its end. Raises StepFailed with the log's tail and `hint`.

    `env` is added to our environment. The command gets its own process group and dies
    with the thread that called us, so an interrupt leaves nothing running.
    """
    command = ["setpriv", "--pdeathsig", "KILL", "--", *map(str, argv)]
    tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
    with log.open("a" if append else "w", buffering=1) as out:
        out.write(f"$ {' '.join(map(str, argv))}\n")
        out.flush()
        with _guard:
            if _stopping:
                raise RsdError(f"{step.title}: stopped")
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                cwd=cwd,
                env={**os.environ, **(env or {})},
                process_group=0,
            )
            _running.add(process)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                out.write(line)
                if line.strip():
                    tail.append(line.rstrip())
                    step.output(line)
            status = _wait(process, step)
        finally:
            _kill(process)
            with _guard:
                _running.discard(process)
    if status != 0:
        raise StepFailed(step.title, status, log, list(tail), hint)


def _wait(process: subprocess.Popen[str], step: Step) -> int:
    """The exit status; the processor time of the command and its children goes to the step."""
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except ChildProcessError:  # stop_all was faster
        return process.wait()
    process.returncode = os.waitstatus_to_exitcode(status)
    step.cpu_s += usage.ru_utime + usage.ru_stime
    return process.returncode


def stop_all() -> None:
    """End every running step, for good: called when the user interrupts us."""
    global _stopping
    with _guard:
        _stopping = True
        processes = list(_running)
    for process in processes:
        _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
