"""Errors that are shown to the user as they are, without a traceback."""

import contextlib
import difflib
import re
import shutil
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path


class RsdError(Exception):
    """What went wrong, and what to do about it.

    `message` names the thing, its value and the allowed range; `hint` is the next step.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  try: {self.hint}" if self.hint else self.message


class StepFailed(RsdError):
    """A logged command ended with a failure: carries the end of its log."""

    def __init__(self, title: str, status: int, log: Path, tail: list[str], hint: str) -> None:
        lines = "".join(f"  | {line}\n" for line in tail)
        super().__init__(
            f"{title}: failed with status {status}\n{lines}  whole log: {log}",
            hint,
        )


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an OSError of the block the name that one of writing lacks."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def nearest(name: str, known: Iterable[str]) -> str:
    """Those of `known` that `name` may have been meant to be, as words; nothing if there are none.

    `rfs` may be `rfs+rsd`, which difflib finds too different.
    """
    known = list(known)
    parts = [one for one in known if name and name in re.split(r"[-+]", one)]
    return " or ".join((parts or difflib.get_close_matches(name, known, cutoff=0.7))[:3])


def words(error: Exception) -> str:
    """What it says to a user; an OSError names its file first, and no number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def how_it_ended(status: int) -> str:
    """What became of a program, by its status as Popen has it."""
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"


# With less left than this, a file that could not grow is why something failed.
LITTLE_ROOM = 64 << 20


def no_room(directory: Path) -> str:
    """What to do if the disk of `directory` is full; nothing if it is not."""
    if shutil.disk_usage(directory).free >= LITTLE_ROOM:
        return ""
    return f"the disk of {directory} is full: make room there, or set RSD_CACHE to another one"
