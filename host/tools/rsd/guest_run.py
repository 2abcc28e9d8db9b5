"""`./rsd shell` and `./rsd run`."""

import argparse
import contextlib
import dataclasses
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from rsd import artifacts, machine, media_file, systems, written
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.errors import RsdError
from rsd.kvm import kvm_works
from rsd.machine import GuestJob, GuestResult, Outcome
from rsd.progress import Progress

# Exit statuses of `./rsd run` for ends that are not the command's own. 2 is ours too:
# set-up or usage failed.
STATUS = {
    Outcome.PANIC: 201,
    Outcome.HANG: 202,
    Outcome.VIRTUAL_TIMEOUT: 203,
    Outcome.WALL_TIMEOUT: 204,
    Outcome.LOST: 205,
    Outcome.INTERRUPTED: 130,
}

ADVICE = {
    Outcome.PANIC: "the kernel's messages are above; --kernel debug finds more",
    Outcome.HANG: "the guest made no progress until its watchdog fired; --kernel debug finds more",
    Outcome.VIRTUAL_TIMEOUT: "raise --virtual-limit (seconds of the guest's clock)",
    Outcome.WALL_TIMEOUT: "raise --wall-limit (seconds of your clock)",
    Outcome.LOST: "the command itself may have switched the guest off",
    Outcome.INTERRUPTED: "a signal asked ./rsd to end it",
}

CONSOLE_TAIL_LINES = 30

# What the kernel says of `echo c >/proc/sysrq-trigger`, which ends a test of power cuts.
ASKED_FOR = "Kernel panic - not syncing: sysrq triggered crash"

# Of 4 KiB: what the kernel and mount read of a drive to find out what is on it is less.
LEAST_UNWRITTEN = 1024

# With 32 the kernel does not start, with 48 it does; the debug kernel needs more.
LEAST_MEMORY_MIB = 64


def add_set_argument(parser: argparse.ArgumentParser) -> None:
    """The option --set of what runs a guest with a drive."""
    parser.add_argument(
        "--set",
        type=_property,
        action="append",
        default=[],
        dest="properties",
        metavar="PROPERTY=VALUE",
        help="Give a property of the drive another value. Repeatable. ./rsd sim --list prints"
        " every property, and hw/rsd-nvme/README.md explains them.",
    )


def add_arguments(parser: argparse.ArgumentParser, *, shell: bool) -> None:
    """The options of `shell` and `run`."""
    parser.add_argument(
        "--system",
        default="rsd",
        metavar="NAME",
        help="The drive of the guest. The systems are listed below (default: rsd).",
    )
    add_set_argument(parser)
    parser.add_argument(
        "--media",
        type=Path,
        metavar="FILE",
        help="Keep the drive's data in FILE, which is made if it is missing (default: the drive is"
        " new, and is deleted at the end).",
    )
    parser.add_argument(
        "--second",
        metavar="NAME",
        help="Give the guest a second drive, /dev/nvme1n1: of one of the systems below (default:"
        " it has one drive).",
    )
    parser.add_argument(
        "--second-set",
        type=_second_property,
        action="append",
        default=[],
        metavar="PROPERTY=VALUE",
        help="The same as --set, for the second drive.",
    )
    parser.add_argument(
        "--second-media",
        type=Path,
        metavar="FILE",
        help="The same as --media, for the second drive.",
    )
    parser.add_argument(
        "--precondition",
        metavar="HOW",
        help="Write to the drive before the guest starts. fill writes all of it once; a number N"
        " then writes N times as much at random; steady writes at random until the write"
        " amplification is steady (default: nothing is written). docs/preconditioning.md has more.",
    )
    parser.add_argument(
        "--fill",
        type=_percent,
        metavar="PERCENT",
        help="Let --precondition write to the first PERCENT of the drive only. Without"
        " --precondition, this part is filled once (default: 100).",
    )
    parser.add_argument(
        "--in", type=Path, dest="in_dir", metavar="DIR", help="Copy DIR into the guest, as /in."
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="Copy the guest's /out to DIR at the end."
    )
    parser.add_argument(
        "--packages",
        type=_packages,
        action="extend",
        default=[],
        metavar="NAME[,NAME...]",
        help="Add Debian packages to the guest's own. The first run with them builds an image,"
        " which takes minutes.",
    )
    parser.add_argument(
        "--kernel",
        choices=("release", "debug"),
        default="release",
        help="The guest's kernel. debug finds faults of the kernel and of RFS, and is ten times"
        " slower (default: release).",
    )
    parser.add_argument(
        "--memory",
        type=int,
        default=1024,
        metavar="MIB",
        help=f"The guest's memory, {LEAST_MEMORY_MIB} MiB or more (default: 1024).",
    )
    parser.add_argument(
        "--icount",
        action=argparse.BooleanOptionalAction,
        default=not shell,
        help="Use virtual time, which counts the guest's instructions: the same command gives the"
        f" same bytes each time (default: {'off' if shell else 'on'}).",
    )
    if not shell:
        parser.add_argument(
            "--cold",
            action="store_true",
            help="With --icount, boot a guest for this run alone. It prints the same bytes, but"
            " takes longer (default: start from a saved guest, which has booted already).",
        )
    parser.add_argument(
        "--guest-speed",
        type=int,
        choices=machine.GUEST_SPEED_RANGE,
        default=machine.GUEST_SPEED_SHIFT,
        metavar="SHIFT",
        help="With --icount, let an instruction of the guest take 2^SHIFT ns, -4 to 10"
        f" (default: {machine.GUEST_SPEED_SHIFT}).",
    )
    parser.add_argument(
        "--accel",
        choices=("auto", "tcg", "kvm"),
        default="auto",
        help="Without --icount, what runs the guest. auto takes KVM where a guest starts with it"
        " (default: auto).",
    )
    parser.add_argument(
        "--print-command",
        type=Path,
        metavar="DIR",
        help="Run nothing. Make the files that QEMU opens in DIR, and print QEMU's command line,"
        " to be changed (docs/own-qemu.md).",
    )
    add_install_argument(parser)
    parser.add_argument(
        "--virtual-limit",
        type=_positive,
        default=0 if shell else 600,
        metavar="SECONDS",
        help="End the guest's command after this time of the guest's clock "
        f"(default: {'no limit' if shell else 600}).",
    )
    parser.add_argument(
        "--wall-limit",
        type=_positive,
        default=None if shell else 3600,
        metavar="SECONDS",
        help="End the guest after this time of your clock"
        + (
            " (default: no limit)."
            if shell
            else " (default: 3600). What is in /out by then is copied, as after Ctrl-C or SIGTERM."
        ),
    )
    if not shell:
        parser.add_argument(
            "command",
            nargs="+",
            metavar="CMD",
            help="The command and its arguments, behind --. It runs as root.",
        )


def add_install_argument(parser: argparse.ArgumentParser) -> None:
    """--no-install, for every command that may set things up."""
    parser.add_argument(
        "--no-install",
        action="store_true",
        help="Install nothing. Missing Debian packages are listed, and end the command.",
    )


def run(arguments: argparse.Namespace) -> int:
    """`./rsd run`: the command's exit status, or one of STATUS."""
    _check(arguments)
    cache, progress = Cache(), Progress()
    built = _set_up(arguments, cache, progress)
    with cache.scratch("out") as out:
        common = _common(arguments, cache, built)
        if arguments.print_command:
            job = GuestJob(script=shlex.join(arguments.command), **common)
            return _print_command(job, arguments, cache, built, progress)
        common["media"] = _drive(arguments, cache, progress, arguments.media or out / "media")
        out_dir = out / "out"
        out_dir.mkdir()
        job = GuestJob(
            script=shlex.join(arguments.command),
            cold=arguments.cold,
            out_dir=_made(arguments.out) if arguments.out else out_dir,
            **common,
        )
        before = media_file.counters(job.media) if job.media else None
        with _ends_by_signal() as stop:
            result = machine.run_guest(job, built, cache=cache, on_output=_print_output, stop=stop)
        for warning in result.warnings:
            progress.say(f"warning: {warning}")
        if job.media:
            _warn_of_reads(before, media_file.counters(job.media), progress)
    if result.outcome is Outcome.EXITED and result.status:
        _note_host_files(arguments.command, progress)
        note_inputs(arguments.command, result.status, arguments.in_dir, progress)
    return report(result, progress, arguments.out)


def shell(arguments: argparse.Namespace) -> int:
    """`./rsd shell`: a guest on the user's terminal."""
    if not arguments.print_command and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise RsdError("shell needs a terminal", "./rsd run -- sh -c '...' runs a script")
    _check(arguments)
    cache, progress = Cache(), Progress()
    built = _set_up(arguments, cache, progress)
    common = _common(arguments, cache, built)
    if arguments.print_command:
        return _print_command(GuestJob(script="", **common), arguments, cache, built, progress)
    out_dir = _made(arguments.out) if arguments.out else None
    with cache.scratch("drive") as scratch:
        common["media"] = _drive(arguments, cache, progress, arguments.media or scratch / "media")
        job = GuestJob(script="", out_dir=out_dir, **common)
        outcome = machine.run_shell(job, built, cache=cache, terminal=os.get_terminal_size())
    if outcome in (Outcome.VIRTUAL_TIMEOUT, Outcome.WALL_TIMEOUT):
        progress.say(f"{outcome.value}: {ADVICE[outcome]}")
        return STATUS[outcome]
    return 0


def report(result: GuestResult, progress: Progress, out: Path | None = None) -> int:
    """Say how a run ended if it was not by itself; gives our exit status."""
    if result.outcome is Outcome.EXITED:
        assert result.status is not None
        return result.status
    before, asked_for, _ = result.console.partition(ASKED_FOR)
    advice = "as the command asked" if asked_for else ADVICE[result.outcome]
    if not result.complete:
        # The kernel's registers and stack are of no use where the command ended it.
        lines = (before + asked_for if asked_for else result.console).splitlines()
        tail = [f"  | {line}" for line in lines[-CONSOLE_TAIL_LINES:]]
        progress.say("\n".join(["the end of the guest's console:", *tail]))
    if out is not None:
        how = f"is in {out}" if result.complete else "is lost"
        progress.say(f"what was in the guest's /out {how}")
    progress.say(
        f"{result.outcome.value} after {result.wall_s:.0f} s of wall time: "
        f"{advice} (exit status {STATUS[result.outcome]})"
    )
    return STATUS[result.outcome]


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what cannot run, before anything is built for it."""
    system = systems.SYSTEMS[systems.check_name(arguments.system)]
    if system is None and arguments.properties:
        name, value = arguments.properties[0]
        raise RsdError(f"--set {name}={value}: system none has no drive", "choose another --system")
    _check_second(arguments)
    if arguments.memory < LEAST_MEMORY_MIB:
        raise RsdError(
            f"--memory {arguments.memory}: a guest needs {LEAST_MEMORY_MIB} MiB",
            f"--memory {LEAST_MEMORY_MIB} or more",
        )
    check_directory("--in", arguments.in_dir)
    if arguments.precondition or arguments.fill:
        written.check(
            arguments.system,
            dict(arguments.properties),
            arguments.precondition,
            arguments.media,
        )
    if arguments.accel == "kvm" and arguments.icount:
        raise RsdError("--accel kvm: virtual time needs tcg", "add --no-icount")


def check_directory(option: str, path: Path | None) -> None:
    """Raises RsdError if the directory that an option names is none. None was not given."""
    if path is None or path.is_dir():
        return
    if path.exists():
        raise RsdError(
            f"{option} {path}: not a directory, but a file",
            f"name the directory that has it: {option} {path.parent}",
        )
    raise RsdError(f"{option} {path}: not a directory: nothing has this name", "make it first")


def _check_second(arguments: argparse.Namespace) -> None:
    if arguments.second is None:
        options = {"--second-set": arguments.second_set, "--second-media": arguments.second_media}
        for option, given in options.items():
            if given:
                raise RsdError(f"{option}: there is no second drive", "add --second NAME")
        return
    if systems.SYSTEMS[systems.check_name(arguments.second)] is None:
        raise RsdError("--second none: that is no drive", "choose another one, or leave it out")
    if arguments.system == "none":
        raise RsdError(
            f"--second {arguments.second}: system none has no first drive",
            f"--system {arguments.second}, without --second",
        )
    files = [file.resolve() for file in (arguments.media, arguments.second_media) if file]
    if len(files) == 2 and files[0] == files[1]:
        raise RsdError(
            f"--second-media {arguments.second_media}: the first drive has it", "name another file"
        )


def _set_up(arguments: argparse.Namespace, cache: Cache, progress: Progress) -> Artifacts:
    artifacts.install_packages(cache, progress, install=not arguments.no_install)
    return artifacts.ensure(
        cache, progress, kernel=arguments.kernel, packages=sorted(set(arguments.packages))
    )


@contextlib.contextmanager
def _ends_by_signal() -> Iterator[machine.Stop]:
    """SIGINT, SIGTERM and SIGHUP ask a guest that runs to end; a second one ends us."""
    stop = machine.Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.asked or not stop.heeded:
            raise KeyboardInterrupt
        stop.asked = True

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _drive(
    arguments: argparse.Namespace, cache: Cache, progress: Progress, media: Path
) -> Path | None:
    """The media file of a run: written as --precondition says, if it says so; None is a new one."""
    how = arguments.precondition or ("fill" if arguments.fill else None)
    if how is None:
        return arguments.media if arguments.system == "none" else media
    settings = dict(arguments.properties)
    source = written.drive(arguments.system, settings, how, arguments.fill, cache, progress)
    if "trace" in settings:
        progress.say(f"to see the trace: ./rsd watch {settings['trace']} --media {source}")
    written.copy_media(source, media)
    return media


def _warn_of_reads(
    before: media_file.Counters | None, after: media_file.Counters | None, progress: Progress
) -> None:
    """Figures of reads that no flash was asked for are not the drive's."""
    if after is None or after.rotates:
        return
    read, unwritten = after.host_read_pages, after.unwritten_reads
    if before is not None:
        read, unwritten = read - before.host_read_pages, unwritten - before.unwritten_reads
    if unwritten >= LEAST_UNWRITTEN and unwritten * 2 > read:
        progress.say(
            f"warning: {unwritten:,} of the {read:,} blocks of 4 KiB that were read had never been"
            " written: that takes the flash no time, and is no figure of the drive\n"
            "  try: --precondition fill, which writes the drive first"
        )


def _note_host_files(command: Sequence[str], progress: Progress) -> None:
    """A command that failed may have looked for files of the current directory."""
    here = Path.cwd()
    for word in command:
        path = Path(word)
        if word and path.exists() and here in path.resolve().parents:
            progress.say(
                f"note: {word} is a file of this machine, which the guest does not see\n"
                "  try: --in DIR, which copies a directory to the guest's /in"
            )


# Of a shell that finds no command of a name, and that may not execute a file
NOT_FOUND, NOT_EXECUTABLE = 127, 126


def note_inputs(
    command: Sequence[str], status: int, inputs: Path | None, progress: Progress
) -> None:
    """A command that the guest's shell could not start may be a file of --in."""
    if inputs is None:
        return
    name = command[0].removeprefix("/in/")
    if not (inputs / name).is_file():
        return
    if status == NOT_FOUND and name == command[0]:
        progress.say(f"note: {name} is in {inputs}, which the guest has as /in\n  try: /in/{name}")
    elif status == NOT_EXECUTABLE and not os.access(inputs / name, os.X_OK):
        progress.say(f"note: {inputs / name} is not executable\n  try: chmod +x {inputs / name}")


def _print_command(
    job: GuestJob,
    arguments: argparse.Namespace,
    cache: Cache,
    built: Artifacts,
    progress: Progress,
) -> int:
    """--print-command: the command line, an option a line, as a shell takes it."""
    directory = arguments.print_command.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise RsdError(f"--print-command {directory}: it is not empty", "name a new directory")
    media = _drive(arguments, cache, progress, arguments.media or directory / "media")
    job = dataclasses.replace(job, media=media)
    interactive = arguments.function is shell
    words = machine.standalone(job, built, directory, interactive=interactive)
    lines: list[list[str]] = []
    for word in words:
        if word.startswith("-") or not lines:
            lines.append([])
        lines[-1].append(word)
    print(" \\\n    ".join(shlex.join(line) for line in lines))
    return 0


def _common(arguments: argparse.Namespace, cache: Cache, built: Artifacts) -> dict[str, Any]:
    """What shell and run ask of a job alike."""
    accel = arguments.accel
    if accel == "auto":
        accel = "kvm" if not arguments.icount and kvm_works(cache, built) else "tcg"
    return {
        "system": arguments.system,
        "namespace": dict(arguments.properties),
        "beside": machine.Beside(
            arguments.second,
            arguments.second_media,
            dict(arguments.second_set),
        )
        if arguments.second
        else None,
        "inputs": arguments.in_dir,
        "deterministic": arguments.icount,
        "guest_speed": arguments.guest_speed,
        "accel": accel,
        "kernel": arguments.kernel,
        "memory_mib": arguments.memory,
        "virtual_limit_s": arguments.virtual_limit,
        "wall_limit_s": arguments.wall_limit,
    }


def _made(directory: Path) -> Path:
    """`directory`, made before the run, so that a typo costs no run."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RsdError(f"--out {directory}: {error.strerror}", "name another directory") from error
    return directory


def _print_output(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _property(text: str, media: str = "--media") -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text}: must be PROPERTY=VALUE, such as ways=2")
    if name in systems.OURS_TO_SET:
        raise argparse.ArgumentTypeError(f"{text}: {name} is not to be set; {media} names the file")
    return name, value


def _second_property(text: str) -> tuple[str, str]:
    return _property(text, "--second-media")


def _percent(text: str) -> float:
    value = float(text)
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"{text}: must be above 0 and up to 100 percent")
    return value


def _packages(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name):
            raise argparse.ArgumentTypeError(f"{name!r}: is not the name of a Debian package")
    return names


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}: must be 1 or more")
    return value
