# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of `./rsd crash`."""

import argparse
import dataclasses
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from rsd import artifacts
from rsd.artifacts import OUTPUTS
from rsd.cache import Cache, remove_tree
from rsd.crash import actions, again, page, patched, report
from rsd.crash.campaign import RUN, Campaign, Settings, write
from rsd.crash.record import Work
from rsd.crash.states import ALL
from rsd.crash.subject import Subject, names
from rsd.errors import RsdError, naming
from rsd.guest_run import add_install_argument, add_set_argument, check_directory
from rsd.progress import Progress

DEFAULT_OUT = OUTPUTS / "crash"
FAILED = 1
NUMBER = re.compile("[0-9]+")
# Properties of the drive that are not the user's
OWN = ("op-log", "cut-at-op", "cut-at-time", "cut-outcomes")

ACTIONS = ("run", "show", "open", "min", "pack")

DETAILS = """\
These are the actions:
  run          Explore the states that power cuts leave. This is the default.
  show N       Print what happened before the power cut of state N, and its verdict.
  open N       Start a guest in state N, on your terminal, or with --do in virtual time.
  min N        Find the shortest workload and the fewest outcomes that fail as state N does.
  pack N       Write one file, with which another clone opens state N.
  open FILE    Check a packed state again, compare the verdicts, then do as open N does.

WORK is a shell script that runs in the volume's root directory. It calls `durable NAME` when
something must survive every later power cut. CHECK is a shell script that runs there after each
power cut. Its arguments are the names that were durable by then; it must end with status 0.
WORK can also be ace:seq1. These are sequences of one operation and one call of fsync, fdatasync or
sync, and they have their own check. ace:seq1/N-M runs some of them. ace:seq2/N-M runs sequences of
two operations; they are in a random order, so a range of them is a sample.

The exit status is 0 if no state failed, 1 if one did, and 2 if the usage is wrong, building
failed, or WORK fails without a power cut."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `crash`."""
    parser.epilog = f"{DETAILS}\n\n{parser.epilog}"
    parser.add_argument(
        "action",
        nargs="?",
        default="run",
        choices=ACTIONS,
        metavar="ACTION",
        help=f"What to do, one of {', '.join(ACTIONS)}, which are explained below.",
    )
    parser.add_argument(
        "what", nargs="?", metavar="N", help="The number of a state, or a FILE that pack wrote."
    )
    parser.add_argument(
        "--system",
        default="rfs+rsd",
        metavar="NAME",
        help=f"The file system and its drive: {', '.join(names())} (default: rfs+rsd).",
    )
    parser.add_argument(
        "--work", default="ace:seq1", metavar="WORK", help="The workload (default: ace:seq1)."
    )
    parser.add_argument(
        "--check",
        type=Path,
        metavar="CHECK",
        help="A shell script that checks the volume after each power cut. With and without it,"
        " each volume must mount, must take a new file, and must pass its file system's fsck.",
    )
    parser.add_argument(
        "--in",
        type=Path,
        dest="in_dir",
        metavar="DIR",
        help="Copy DIR into the guests, as /in, for WORK and CHECK.",
    )
    parser.add_argument(
        "--points",
        default=ALL,
        type=_points,
        metavar="N",
        help="Cut the power after N of the drive's operations, evenly spaced, or after all of them"
        " (default: all).",
    )
    parser.add_argument(
        "--outcomes",
        type=_positive,
        default=9,
        metavar="N",
        help="At each power cut, explore at most N combinations of outcomes. Each operation in"
        " flight ends absent, torn or complete (default: 9, which are all combinations of two"
        " operations).",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="The seed that chooses these combinations (default: 1).",
    )
    parser.add_argument(
        "--again",
        type=_positive,
        default=0,
        metavar="N",
        help="Cut the power again, after each operation of the recovery of N of the states that"
        " pass. Each of them has a directory again-STATE in that of the run (default: none).",
    )
    add_set_argument(parser)
    parser.add_argument(
        "--mount-options",
        default="",
        metavar="OPTIONS",
        help="More options of the file system's own, as mount -o takes them.",
    )
    parser.add_argument(
        "--patch",
        type=Path,
        metavar="FILE",
        help="Change the guest's ext4, F2FS or btrfs by this patch of its directory in the kernel's"
        " source, such as fs/f2fs.",
    )
    parser.add_argument(
        "--check-limit",
        type=_positive,
        default=10,
        metavar="SECONDS",
        help="Count CHECK or fsck as failed if it runs longer than this, by the guest's clock"
        " (default: 10).",
    )
    parser.add_argument(
        "--jobs",
        type=_positive,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="Run N guests at once (default: one for each core). The results do not depend on it.",
    )
    parser.add_argument(
        "--budget",
        type=_duration,
        metavar="TIME",
        help="Start no guest after this time, such as 90s, 10m or 2h. Repeat the command to go on"
        " (default: explore all).",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=DEFAULT_OUT,
        metavar="DIR",
        help="The directory of the run, with its reports: report.html, results.json, junit.xml"
        " (default: build/crash).",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="Write the results there as well."
    )
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="Write them there as well, for a CI."
    )
    parser.add_argument(
        "--do",
        metavar="SCRIPT",
        help="Let open run this shell script in the guest, and end with its status.",
    )
    parser.add_argument(
        "--file",
        type=Path,
        metavar="FILE",
        help="What pack writes (default: state-N.crash in the current directory).",
    )
    add_install_argument(parser)


def main(arguments: argparse.Namespace) -> int:
    """FAILED if a state failed."""
    cache, progress = Cache(), Progress()
    if arguments.action != "run":
        return _of_one(arguments, cache, progress)
    if arguments.what is not None:
        raise RsdError(f"{arguments.what}: run takes options only", "./rsd crash --help")
    settings = _settings(arguments)
    artifacts.install_packages(cache, progress, install=not arguments.no_install)
    built = artifacts.ensure(cache, progress)
    settings = with_module(settings, cache, progress)
    is_new = not (arguments.out / RUN).exists()
    campaign = Campaign.begin(arguments.out, settings, built, progress.say)
    campaign.claim()
    try:
        campaign.record(built, cache, progress)
    except RsdError:
        # What is asked for has to be another: nothing stands in its way.
        if is_new:
            remove_tree(arguments.out)
        raise
    end = None if arguments.budget is None else time.monotonic() + arguments.budget
    explored = campaign.explore(built, cache, progress, arguments.jobs, arguments.budget)
    results = report.content(campaign, explored)
    if arguments.again and explored.complete:
        _write(campaign, results, arguments)  # which stay if what follows fails
        results["again"] = again.explore(
            campaign,
            explored,
            arguments.again,
            built,
            cache,
            progress,
            arguments.jobs,
            end,
            _write,
        )
    _write(campaign, results, arguments)
    for line in report.lines(campaign, results):
        print(line)
    _say_speed(campaign, results["explored"], progress)
    shown = arguments.out / "report.html"
    if not report.complete(results):
        progress.say(f"{shown} shows what was explored; the same command goes on")
    elif results["failures"]:
        progress.say(
            f"{shown}, or ./rsd crash show {results['failures'][0]['state']}{_where(arguments)}"
        )
    else:
        progress.say(f"{shown} shows all")
    return FAILED if report.failed(results) else 0


def with_module(settings: Settings, cache: Cache, progress: Progress) -> Settings:
    """With the module that the patch gives, if there is a patch."""
    subject = settings.subject
    if subject.patch is None:
        return settings
    module = patched.ensure(cache, progress, subject.kind, subject.patch)
    return dataclasses.replace(settings, subject=dataclasses.replace(subject, module=module))


def _where(arguments: argparse.Namespace) -> str:
    return "" if arguments.out == DEFAULT_OUT else f" --out {arguments.out}"


def _write(
    campaign: Campaign, results: dict[str, Any], arguments: argparse.Namespace | None = None
) -> None:
    """The reports of a run in its directory, and where else the user wants them."""
    text, junit = json.dumps(results, indent=1) + "\n", report.junit(results)
    files = {
        campaign.directory / actions.RESULTS: text,
        campaign.directory / "junit.xml": junit,
        campaign.directory / "report.html": page.page(campaign, results),
    }
    for path, said in files.items():
        write(path, said)
    wanted = {arguments.json: text, arguments.junit: junit} if arguments else {}
    for path, said in wanted.items():
        if path:
            with naming(path):
                path.write_text(said)


def _of_one(arguments: argparse.Namespace, cache: Cache, progress: Progress) -> int:
    """An action on one state."""
    action, what = arguments.action, arguments.what
    if what is None:
        raise RsdError(f"{action}: the number of a state is missing", "./rsd crash --help")
    number = NUMBER.fullmatch(what) is not None
    if action == "open" and not arguments.do and not sys.stdin.isatty() and number:
        raise RsdError("open needs a terminal", f"./rsd crash open {what} --do SCRIPT needs none")
    if action != "show":
        artifacts.install_packages(cache, progress, install=not arguments.no_install)
    if action == "open" and not number:
        built = artifacts.ensure(cache, progress)
        return actions.open_packed(Path(what), arguments.do, built, cache, progress)
    if not number:
        raise RsdError(f"{action} {what}: must be the number of a state", "./rsd crash --help")
    campaign = Campaign.open(arguments.out)
    campaign.load(cache, progress)
    state = campaign.state(int(what))
    if action == "show":
        return actions.show(campaign, state.id)
    built = artifacts.ensure(cache, progress)
    if action == "open":
        return actions.open_state(campaign, state, arguments.do, built, cache, progress)
    if action == "pack":
        target = arguments.file or Path(f"state-{state.id}.crash")
        return actions.pack_state(campaign, state, target, built, cache)
    return actions.minimise(campaign, state, built, cache, progress, arguments.jobs)


def _rate(states_a_second: float) -> str:
    """As many digits as it takes, so that a slow check does not print 0."""
    digits = 0 if states_a_second >= 100 else 1 if states_a_second >= 1 else 3
    return f"{states_a_second:.{digits}f}"


def _say_speed(campaign: Campaign, explored: int, progress: Progress) -> None:
    """Not on standard output: it is not the same each time."""
    spent = campaign.spent
    if not spent.looked:
        return
    progress.say(
        f"{_rate(explored / spent.wall_s)} states a second,"
        f" {_rate(spent.looked / spent.wall_s)} of them mounted;"
        f" {_rate(spent.looked / spent.guests_s)} mounted a second of the guests' processors"
    )


def _settings(arguments: argparse.Namespace) -> Settings:
    """Refuses what cannot run, before anything is built for it."""
    work = Work.named(arguments.work)
    if arguments.check and not work.script:
        raise RsdError(
            f"--check {arguments.check}: --work {arguments.work} has a check of its own",
            "leave out --check, or let --work name a shell script",
        )
    if arguments.check and not arguments.check.is_file():
        raise RsdError(f"--check {arguments.check}: no such file", "name a shell script")
    check_directory("--in", arguments.in_dir)
    if own := [name for name in OWN if name in dict(arguments.properties)]:
        raise RsdError(
            f"--set {own[0]}: ./rsd crash keeps the log and cuts the power itself", "leave it out"
        )
    subject = Subject(
        arguments.system, dict(arguments.properties), arguments.mount_options, arguments.patch
    )
    _ = subject.stack
    subject.check_patch()
    return Settings(
        subject,
        work,
        arguments.check,
        arguments.in_dir,
        arguments.points,
        arguments.outcomes,
        arguments.seed,
        arguments.check_limit,
    )


def _points(text: str) -> str:
    if text != ALL and (not NUMBER.fullmatch(text) or not int(text)):
        raise argparse.ArgumentTypeError(f"{text}: must be all, or 1 or more")
    return text


def _positive(text: str) -> int:
    if not NUMBER.fullmatch(text) or not int(text):
        raise argparse.ArgumentTypeError(f"{text}: must be 1 or more")
    return int(text)


def _duration(text: str) -> float:
    found = re.fullmatch(r"(\d+)([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text}: must be a time, as 90s, 10m or 2h")
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]
