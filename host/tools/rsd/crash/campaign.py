# SPDX-License-Identifier: GPL-2.0-or-later
"""A run and its directory: what decides it, the recorded drive, verdicts, reports.

    run.json         what decides the run; run.json.part until the user's own files are there
    work, check, in  the user's own, as is `patch`; patched.ko is built of it
    media, log       the drive as the work left it, and its operations
    trace            what the guest's kernel said of system calls and NVMe commands
    marks.json       what had to hold from which operation on; hashes of these three files
    verdicts         a line of JSON for each guest: its verdicts, as they came in

A directory belongs to one run. The same command goes on with it; another is refused. What a run
that was killed has left unfinished goes away when the next one begins.
"""

import contextlib
import dataclasses
import fcntl
import json
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from rsd.artifacts import Artifacts
from rsd.cache import Cache, hash_file, hash_inputs, hash_tree, remove_tree
from rsd.crash import guest, record
from rsd.crash.explore import Explored, explore
from rsd.crash.record import Cut, Marks, Work
from rsd.crash.states import ALL, Operation, State, choose
from rsd.crash.subject import Subject
from rsd.crash.view import Matcher, Recorded
from rsd.crash.visit import Verdict, Visitor
from rsd.errors import RsdError, naming
from rsd.progress import Progress

FORMAT = 3
RUN, VERDICTS, MARKS = "run.json", "verdicts", "marks.json"
RECORDED = ("media", "log", "trace")
# What a run is given, beside run.json
GIVEN = ("work", "check", "patch", record.MODULE, "in")


@dataclass(frozen=True)
class Settings:
    """What the user asks for. A work without a check is ace.py's, which checks itself.

    `cut`: the work is the recovery of this state of the run of that work.
    """

    subject: Subject
    work: Work
    check: Path | None
    given: Path | None
    points: str
    outcomes: int
    seed: int
    limit_s: int
    cut: Cut | None = None


@dataclass
class Spent:
    """What a run has taken; not a part of any report."""

    record_s: float = 0.0
    guests_s: float = 0.0
    wall_s: float = 0.0
    looked: int = 0


class Campaign:
    """One run, in its directory. `settings` name the directory's own copies of files."""

    def __init__(self, directory: Path, settings: Settings, description: Mapping[str, Any]) -> None:
        self.directory = directory
        self.settings = settings
        self.description = description
        self.spent = Spent()
        self._guard = threading.Lock()
        self.marks = Marks()
        self.operations: list[Operation] = []
        self.states: tuple[State, ...] = ()

    @property
    def title(self) -> str:
        """What the work is, in a few words."""
        if cut := self.description["cut"]:
            return f"the recovery of state {cut['state']}"
        work = self.settings.work
        first, last = work.sequences
        return "a script" if work.script else f"ace:{work.kind}, sequences {first} to {last}"

    @classmethod
    def begin(
        cls,
        directory: Path,
        settings: Settings,
        built: Artifacts,
        say: Callable[[str], None] = lambda text: None,
    ) -> "Campaign":
        """A new run, or one to go on with. `say` is told what was removed."""
        description = _describe(settings, built)
        path = directory / RUN
        if _remove_unfinished(directory):
            say(f"{directory}: a run that was interrupted while it began left files; removed")
        if path.exists():
            if (was := read_description(directory)) != description:
                names = [name for name in description if was.get(name) != description[name]]
                raise RsdError(
                    f"--out {directory}: it has another run, with another {', '.join(names)}",
                    "name another directory, or remove that one",
                )
        elif directory.exists() and any(directory.iterdir()):
            raise RsdError(
                f"--out {directory}: it is not empty, and has no run of ./rsd crash",
                "name a new directory",
            )
        else:
            _keep(directory, settings, description)
        kept = dataclasses.replace(_kept(directory, description), cut=settings.cut)
        return cls(directory, kept, description)

    def claim(self) -> None:
        """Become the only one who changes the directory. RsdError if there is another."""
        self._claim = (self.directory / RUN).open()
        lock(self._claim, f"--out {self.directory}")

    @classmethod
    def open(cls, directory: Path) -> "Campaign":
        """One that was begun."""
        description = read_description(directory)
        return cls(directory, _kept(directory, description), description)

    def record(self, built: Artifacts, cache: Cache, progress: Progress) -> None:
        """Do the work, if it was not done yet, and find the states to explore."""
        settings = self.settings
        if not (self.directory / MARKS).exists():
            for name in RECORDED:
                (self.directory / name).unlink(missing_ok=True)
            remove_tree(self.directory / record.OUT)
            what = self.title if settings.cut else "the work"
            with progress.step(f"{settings.subject.name}: {what}"):
                marks = record.record(
                    settings.subject,
                    settings.work,
                    settings.given,
                    settings.cut,
                    self.directory,
                    built,
                    cache,
                )
            shutil.rmtree(self.directory / record.OUT)
            files = {name: hash_file(self.directory / name) for name in RECORDED}
            write(self.directory / MARKS, json.dumps({**asdict(marks), "files": files}) + "\n")
        self.load(cache, progress)

    def load(self, cache: Cache, progress: Progress) -> None:
        """What the work left. RsdError if it did not get so far."""
        path = self.directory / MARKS
        if not path.exists():
            raise RsdError(f"{self.directory}: its work was not done to the end", "run it again")
        content = read_json(path)
        for name, digest in content["files"].items():
            file = self.directory / name
            if not file.exists() or hash_file(file) != digest:
                raise RsdError(
                    f"{file}: not what the work left: another one's, or not all of it",
                    f"remove {self.directory}, and run it again",
                )
        self.marks = Marks(tuple((op, name) for op, name in content["names"]), content["ace"])
        self.recorded = Recorded.open(self.directory, cache, progress)
        self.operations = self.recorded.operations()
        settings = self.settings
        self.states = choose(self.operations, settings.points, settings.outcomes, settings.seed)

    def state(self, number: int) -> State:
        """A state by its number."""
        if not 0 <= number < len(self.states):
            raise RsdError(
                f"state {number}: this run has states 0 to {len(self.states) - 1}",
                f"see {self.directory / 'report.html'}",
            )
        return self.states[number]

    @property
    def visitor(self) -> Visitor:
        """How its states are looked at."""
        settings = self.settings
        return Visitor(
            settings.subject,
            settings.work,
            settings.check,
            settings.given,
            self.marks,
            settings.limit_s,
            self.directory,
        )

    def explore(
        self, built: Artifacts, cache: Cache, progress: Progress, jobs: int, budget_s: float | None
    ) -> Explored:
        """Look at states until all are known, or the time is over."""
        began = time.monotonic()
        known = self._verdicts()
        visitor = self.visitor

        def spent(seconds: float) -> None:
            self.spent.guests_s += seconds

        def look(states: list[State]) -> list[Verdict] | None:
            if all(state.id in known for state in states):
                return [known[state.id] for state in states]
            if budget_s is not None and time.monotonic() - began > budget_s:
                return None
            verdicts = visitor.visit(states, built, cache, spent)
            with self._guard:
                self._add(verdicts)
                self.spent.looked += len(verdicts)
            return verdicts

        keys = [self.marks.key(state.op) for state in self.states]
        with (
            progress.step(f"{self.settings.subject.name}: states") as step,
            Matcher(self.recorded, self.states, keys) as matcher,
        ):
            step.counter = lambda: (self.spent.looked, len(self.states))
            found = explore(self.states, matcher, look, jobs)
        self.spent.wall_s = time.monotonic() - began
        return found

    def again(self, state: State, built: Artifacts) -> "Campaign":
        """The run whose work is the recovery of a state of this one, after all operations."""
        cut = Cut(state, self.marks, self.directory)
        settings = dataclasses.replace(self.settings, points=ALL, cut=cut)
        return Campaign.begin(self.directory / f"again-{state.id}", settings, built)

    def _verdicts(self) -> dict[int, Verdict]:
        """What guests have found out before this run was interrupted."""
        path = self.directory / VERDICTS
        if not path.exists():
            return {}
        text = path.read_bytes()
        # The last line is not whole if the run was killed while it was written.
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            with path.open("r+b") as stream:
                stream.truncate(len(whole))
        try:
            found = [json.loads(line) for line in whole.splitlines()]
            return {one["state"]: Verdict.from_json(one) for line in found for one in line}
        except (ValueError, TypeError, KeyError) as error:
            raise RsdError(
                f"{path}: not what ./rsd crash wrote ({error})",
                "remove it; the same command then looks at its states again",
            ) from error

    def _add(self, verdicts: list[Verdict]) -> None:
        with (self.directory / VERDICTS).open("a") as stream:
            stream.write(json.dumps([verdict.to_json() for verdict in verdicts]) + "\n")


def _describe(settings: Settings, built: Artifacts) -> dict[str, Any]:
    """Everything that decides a run, as its file has it."""
    subject = settings.subject
    return {
        "format": FORMAT,
        "system": subject.name,
        "properties": {**subject.stack.system.namespace, **subject.properties},
        "set": dict(subject.set),
        "mount_options": subject.options,
        "patch": hash_file(subject.patch) if subject.patch else None,
        "patched": hash_file(subject.module) if subject.module else None,
        "work": hash_file(settings.work.script) if settings.work.script else None,
        "sequences": list(settings.work.sequences),
        "kind": settings.work.kind,
        "check": hash_file(settings.check) if settings.check else None,
        "in": hash_tree(settings.given) if settings.given else None,
        "points": settings.points,
        "outcomes": settings.outcomes,
        "seed": settings.seed,
        "check_limit": settings.limit_s,
        "guest": hash_inputs(
            hash_tree(guest.HERE, [".pyc"]),
            record.script(subject, settings.work, recovery=settings.cut is not None),
        ),
        "cut": settings.cut.describe() if settings.cut else None,
        "hashes": built.deciding(rfs=subject.stack.rfs),
    }


def _keep(directory: Path, settings: Settings, description: Mapping[str, Any]) -> None:
    """Make the directory of a run. Until all is there, its file has a name that says so."""
    files = (
        settings.work.script,
        settings.check,
        settings.subject.patch,
        settings.subject.module,
    )
    with naming(directory):
        directory.mkdir(parents=True, exist_ok=True)
        with _unfinished(directory).open("w") as stream:
            lock(stream, f"--out {directory}")
            stream.write(json.dumps(description, indent=1) + "\n")
            stream.flush()
            for name, path in zip(GIVEN[:-1], files, strict=True):
                if path:
                    shutil.copyfile(path, directory / name)
            if settings.given:
                shutil.copytree(settings.given, directory / GIVEN[-1])
            _unfinished(directory).rename(directory / RUN)


def _unfinished(directory: Path) -> Path:
    return directory / f"{RUN}.part"


def _remove_unfinished(directory: Path) -> bool:
    """Remove what _keep() left when it was killed. Whether there was any."""
    with contextlib.suppress(FileNotFoundError), _unfinished(directory).open() as stream:
        lock(stream, f"--out {directory}")
        for name in GIVEN[:-1]:
            (directory / name).unlink(missing_ok=True)
        remove_tree(directory / GIVEN[-1])
        _unfinished(directory).unlink()
        return True
    return False


def lock(stream: IO[Any], what: str) -> None:
    """Become the only one who writes, as long as the stream is open."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RsdError(
            f"{what}: another ./rsd crash is at work there",
            "wait for it to end, or name another one",
        ) from None


def write(path: Path, text: str) -> None:
    """Write a file, which is there as a whole or as it was before."""
    unfinished = path.with_name(f"{path.name}.part")
    with naming(path):
        unfinished.write_text(text)
        unfinished.rename(path)


def read_json(path: Path, advice: str = "") -> dict[str, Any]:
    """A file of a run. RsdError, with some advice, if it is damaged."""
    try:
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise ValueError("it is no object")
    except ValueError as error:
        raise RsdError(
            f"{path}: not what ./rsd crash wrote, or not all of it ({error})",
            advice or f"remove {path.parent}, and run it again",
        ) from error
    return content


def _kept(directory: Path, description: Mapping[str, Any]) -> Settings:
    """The settings of a run, with the directory's own files."""
    first, last = description["sequences"]
    return Settings(
        Subject(
            description["system"],
            description["set"],
            description["mount_options"],
            directory / "patch" if description["patch"] else None,
            directory / record.MODULE if description["patch"] else None,
        ),
        Work(
            directory / "work" if description["work"] else None,
            (first, last),
            description["kind"],
        ),
        directory / "check" if description["check"] else None,
        directory / "in" if description["in"] else None,
        description["points"],
        description["outcomes"],
        description["seed"],
        description["check_limit"],
    )


def read_description(directory: Path) -> dict[str, Any]:
    """What decides the run of a directory. RsdError if it has none."""
    path = directory / RUN
    if not path.exists():
        raise RsdError(f"{directory}: it has no run of ./rsd crash", "--out names its directory")
    content = read_json(path)
    if content.get("format") != FORMAT:
        raise RsdError(
            f"{path}: format {content.get('format')}, {FORMAT} is known", "run it again elsewhere"
        )
    return content
