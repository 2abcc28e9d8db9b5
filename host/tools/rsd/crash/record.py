# SPDX-License-Identifier: GPL-2.0-or-later
"""Does the work once, in a guest, on a drive that keeps a log of its operations."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd.artifacts import Artifacts
from rsd.cache import Cache, hash_file
from rsd.compare.run import guest_failure
from rsd.crash.guest import HERE, VISITING, ace
from rsd.crash.states import State
from rsd.crash.subject import DRIVES, Subject
from rsd.errors import RsdError
from rsd.machine import GuestJob, Outcome, run_guest
from rsd.written import copy_media

# Of the guest's clock
VIRTUAL_LIMIT_S = 600
# Where its programs are in the guest; beside it is what the user gave
PROGRAMS = "crash"
MODULE = "patched.ko"
# Where what the work's guest has said is until it is needed, in the directory of the run
OUT = "record"
ACE = re.compile(r"ace:(seq[12])(?:/(\d+)(?:-(\d+))?)?")

# Later than any operation
NEVER = 1 << 62
# Of the work's own status this is none.
NOT_PREPARED = 203
# Before the command that failed then
FAILED = "@failed "
UNMOUNT = "umount /mnt"
TRACE_KIB = 32768

# System calls that change files, by their numbers on x86-64
_NUMBERED = """
write 1  pwrite64 18  writev 20  msync 26  sendfile 40  fsync 74  fdatasync 75  truncate 76
ftruncate 77  rename 82  mkdir 83  rmdir 84  creat 85  link 86  unlink 87  symlink 88  chmod 90
fchmod 91  sync 162  setxattr 188  fsetxattr 190  removexattr 197  mkdirat 258  unlinkat 263
renameat 264  linkat 265  symlinkat 266  sync_file_range 277  fallocate 285  pwritev 296
syncfs 306  renameat2 316  copy_file_range 326
""".split()
CALLS = dict(zip(map(int, _NUMBERED[1::2]), _NUMBERED[::2], strict=True))


@dataclass(frozen=True)
class Work:
    """What is done: a script of the user, or sequences of ace.py, from the first to the last.

    `kind` is ace.py's, and says of which.
    """

    script: Path | None = None
    sequences: tuple[int, int] = (0, 0)
    kind: str = "seq1"

    @classmethod
    def named(cls, text: str) -> "Work":
        """A file's name, or ace:seq1, ace:seq1/N, ace:seq1/N-M; seq2 only with numbers."""
        if not text.startswith("ace:"):
            if not Path(text).is_file():
                raise RsdError(
                    f"--work {text}: no such file",
                    "name a shell script, or ace:seq1",
                )
            return cls(script=Path(text))
        found = ACE.fullmatch(text)
        counts = {kind: len(ace.sequences(kind)) for kind in ace.KINDS}
        kind = found[1] if found else ""
        first, last = (1, counts["seq1"]) if kind == "seq1" else (0, 0)
        if found and found[2]:
            first = int(found[2])
            last = int(found[3] or found[2])
        if not found or not 1 <= first <= last <= counts[kind]:
            raise RsdError(
                f"--work {text}: must be ace:seq1, ace:seq1/FIRST-LAST of 1 to {counts['seq1']:,},"
                f" or ace:seq2/FIRST-LAST of 1 to {counts['seq2']:,}",
                "--work ace:seq1/1-10",
            )
        return cls(sequences=(first, last), kind=kind)

    @property
    def works(self) -> list[ace.Work]:
        """The sequences; none of a script."""
        first, last = self.sequences
        return [] if self.script else ace.sequences(self.kind)[first - 1 : last]


@dataclass(frozen=True)
class Marks:
    """How far the drive's log was when something held. An operation, a name; or ace.py's steps."""

    names: tuple[tuple[int, str], ...] = ()
    ace: dict[str, Any] | None = None

    def key(self, op: int) -> int:
        """States with different keys have to satisfy different things."""
        if self.ace is None:
            return len(self.at(op))
        done, begun = self.steps(op)
        return begun * 2 + (begun - done)

    def at(self, op: int) -> list[str]:
        """The names that must hold after a cut after this operation."""
        return [name for mark, name in self.names if mark <= op]

    def steps(self, op: int) -> tuple[int, int]:
        """How many steps were done then, and how many had begun."""
        assert self.ace is not None
        steps = self.ace["steps"]
        return sum(done <= op for _, done in steps), sum(began <= op for began, _ in steps)

    def after(self, op: int) -> "Marks":
        """What has to hold of the state that a cut after this operation left, whatever follows."""
        names = tuple((0, name) for name in self.at(op))
        if self.ace is None:
            return Marks(names)
        done, begun = self.steps(op)
        steps = [
            [0 if number < begun else NEVER, 0 if number < done else NEVER]
            for number in range(len(self.ace["steps"]))
        ]
        return Marks(names, {**self.ace, "steps": steps})

    def text(self, op: int) -> str:
        """For a report."""
        if self.ace is None:
            return ", ".join(self.at(op)[-1:]) or "nothing"
        done, begun = self.steps(op)
        if not begun:
            return "nothing has begun"
        works = ace.sequences(self.ace["kind"])
        first = self.ace["sequences"][0]
        before, step = divmod(begun - 1, len(works[0].steps))
        work = works[first + before - 1]
        how = "done" if done == begun else "begun"
        return f"sequence {work.number}, {work.title}: {work.steps[step]} {how}"


@dataclass(frozen=True)
class Cut:
    """A state of another run, whose recovery is the work: mounting it, and unmounting it."""

    state: State
    marks: Marks
    directory: Path

    def describe(self) -> dict[str, Any]:
        """What decides the state: the files that the other run left, and where they are cut."""
        files = {name: hash_file(self.directory / name) for name in ("media", "log")}
        state = {"state": self.state.id, "op": self.state.op, "outcomes": self.state.outcomes}
        return {**state, **files}


def programs() -> dict[str, bytes | str | Path]:
    """What each guest finds in /in/crash."""
    names = ("ace.py", "ace_work.py", "visit.py", "rewind.py")
    files = [*VISITING.values(), *(HERE / name for name in names)]
    return {f"{PROGRAMS}/{path.name}": path for path in (*files, HERE / "durable")}


def rewind(state: State) -> str:
    """The command that puts the guest's drive into a state."""
    return (
        f"python3 -B /in/{PROGRAMS}/rewind.py {DRIVES['$drive']} {state.op} {state.outcomes or 'a'}"
    )


def insert(subject: Subject) -> str:
    """The command that lets a patched file system take the place of the built-in one."""
    return f"insmod /in/{PROGRAMS}/{MODULE}" if subject.module else ":"


def script(subject: Subject, work: Work, *, recovery: bool) -> str:
    """What the guest does: the work on a new volume, or the recovery of one that is there."""
    file_system = subject.stack.file_system
    device, kind, options = subject.mount
    calls = " || ".join(f"id == {number}" for number in CALLS)
    mount = f"must mount -t {kind} {f'-o {options}' if options else ''} {device} /mnt"
    mount = f"{mount}\n{file_system.after_mount}"
    if work.script:
        do = f"PATH=/in/{PROGRAMS}:$PATH sh /in/{PROGRAMS}/work"
    else:
        do = f"python3 -B /in/{PROGRAMS}/ace_work.py /in/{PROGRAMS}/works $drive"
    if recovery:
        before, do = "", mount
    else:
        before = f"must {file_system.mkfs}\n{mount}\nsync"
        do = f"( cd /mnt && {do} ) || status=$?"
    return f"""\
set -u
drive={DRIVES["$drive"]} second={DRIVES["$second"]}
export RSD_CRASH_DRIVE=$drive
fail() {{ echo "{FAILED}$1"; shift; cat "$@" 2>/dev/null; exit {NOT_PREPARED}; }}
must() {{ "$@" >/tmp/prepare 2>&1 || fail "$*" /tmp/prepare; }}
must {insert(subject)}
{file_system.before_mount}
{before}
must rsdctl oplog --restart $drive
tracing=/sys/kernel/tracing
mountpoint -q $tracing || must mount -t tracefs none $tracing
echo x86-tsc >$tracing/trace_clock
echo {TRACE_KIB} >$tracing/buffer_size_kb
echo 'qid != 0' >$tracing/events/nvme/nvme_setup_cmd/filter
echo '{calls}' >$tracing/events/raw_syscalls/sys_enter/filter
: >/out/durable
: >$tracing/trace
echo 1 >$tracing/events/nvme/nvme_setup_cmd/enable
echo 1 >$tracing/events/raw_syscalls/sys_enter/enable
status=0
{do}
if test $status -eq 0; then must {UNMOUNT}; fi
echo 0 >$tracing/events/raw_syscalls/sys_enter/enable
echo 0 >$tracing/events/nvme/nvme_setup_cmd/enable
cp $tracing/trace /out/trace
exit $status
"""


def inputs(subject: Subject, work: Work, given: Path | None) -> dict[str, bytes | str | Path]:
    """The guest's /in."""
    found: dict[str, bytes | str | Path] = programs()
    if subject.module:
        found[f"{PROGRAMS}/{MODULE}"] = subject.module
    if given:
        found |= {path.name: path for path in sorted(given.iterdir())}
    if work.script:
        found[f"{PROGRAMS}/work"] = work.script
    else:
        found[f"{PROGRAMS}/works"] = ace.dump(work.works)
    return found


def _cut(
    subject: Subject, cut: Cut, media: Path, scratch: Path, built: Artifacts, cache: Cache
) -> None:
    """Make the media file of a drive as the cut left it."""
    copy_media(cut.directory / "media", media)
    copy_media(cut.directory / "log", scratch / "log")
    job = GuestJob(
        system=subject.stack.drive,
        script=rewind(cut.state),
        media=media,
        inputs=dict(programs()),
        rfs=subject.stack.rfs,
        out_dir=scratch / "out",
        namespace={**subject.properties, "op-log": str(scratch / "log")},
        virtual_limit_s=VIRTUAL_LIMIT_S,
        wall_limit_s=None,
    )
    result = run_guest(job, built, cache=cache)
    if result.status or guest_failure(result):
        raise RsdError(f"state {cut.state.id}: the drive cannot be rewound:\n{result.output}")


def _fails(status: int, output: str) -> RsdError:
    """What the user is told when the work, or what comes before or after it, fails by itself."""
    said = output.splitlines()
    failed = [line.removeprefix(FAILED) for line in said if line.startswith(FAILED)]
    advice = "./rsd run shows the same with the same commands"
    if status != NOT_PREPARED or not failed:
        what = f"the work fails by itself, without a power cut: status {status}"
    elif failed[0] == UNMOUNT:
        what = "the work ends, and its volume cannot be unmounted"
        advice = "let it unmount nothing, and end what it began in the background"
    else:
        what = f"{failed[0]} fails by itself, without a power cut"
    lines = "".join(f"\n  | {line}" for line in said[-15:] if not line.startswith(FAILED))
    return RsdError(f"{what}{lines}", advice)


def record(
    subject: Subject,
    work: Work,
    given: Path | None,
    cut: Cut | None,
    directory: Path,
    built: Artifacts,
    cache: Cache,
) -> Marks:
    """Leave `media`, `log` and `trace` in a directory. RsdError if the work fails by itself."""
    out = directory / OUT
    if cut:
        with cache.scratch("crash") as scratch:
            _cut(subject, cut, directory / "media", scratch, built, cache)
    job = GuestJob(
        system=subject.stack.drive,
        script=script(subject, work, recovery=cut is not None),
        media=directory / "media",
        inputs=inputs(subject, work, given),
        rfs=subject.stack.rfs,
        out_dir=out,
        namespace={**subject.properties, "op-log": str(directory / "log")},
        virtual_limit_s=VIRTUAL_LIMIT_S,
        wall_limit_s=None,
    )
    result = run_guest(job, built, cache=cache)
    if result.status:
        raise _fails(result.status, result.output)
    if result.outcome is Outcome.VIRTUAL_TIMEOUT:
        raise RsdError(
            f"the work does not end within {VIRTUAL_LIMIT_S} s of the guest's clock",
            "let it do less, or look for what it waits for",
        )
    if why := guest_failure(result):
        raise RsdError(f"the work: {why}")
    if (out / "wrong").exists():
        raise RsdError(
            f"the work: {(out / 'wrong').read_text().strip()}", "call it as: durable NAME"
        )
    (out / "trace").rename(directory / "trace")
    if cut:
        return cut.marks.after(cut.state.op)
    lines = (out / "durable").read_text().splitlines()
    pairs = [line.split(" ", 1) for line in lines]
    done = None
    if not work.script:
        done = json.loads((out / "ace").read_text())
        done |= {"kind": work.kind, "sequences": list(work.sequences)}
    return Marks(tuple((int(op), name) for op, name in pairs), done)
