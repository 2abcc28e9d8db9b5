# SPDX-License-Identifier: GPL-2.0-or-later
"""What is done with one state of a run: show, open, min, pack."""

import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.crash import pack, record, report, timeline
from rsd.crash.campaign import Campaign, Settings, read_json, write
from rsd.crash.states import ALL, State
from rsd.crash.visit import Verdict
from rsd.errors import RsdError
from rsd.guest_run import report as report_guest
from rsd.machine import Outcome, run_guest
from rsd.progress import Progress

RESULTS = "results.json"
# Lines of `show`
EVENTS = 40
OTHER = 1


def results_of(campaign: Campaign) -> dict[str, Any]:
    """What the run has found out."""
    path = campaign.directory / RESULTS
    if not path.exists():
        raise RsdError(f"{campaign.directory}: it has no results yet", "run it first")
    return read_json(path, "repeat the command of the run, which writes it again")


def show(campaign: Campaign, number: int) -> int:
    """Print the timeline up to a state's power cut, and the verdict."""
    _print_state(campaign, campaign.state(number))
    return 0


def _print_state(campaign: Campaign, state: State) -> None:
    for line in timeline.before(campaign, state, timeline.events(campaign), EVENTS):
        print(line.rstrip())
    print(f"durable by then: {campaign.marks.text(state.op)}")
    for line in _verdict_lines(campaign, state):
        print(line)


def _verdict_lines(campaign: Campaign, state: State) -> list[str]:
    """What the run says of a state."""
    results = results_of(campaign)
    found = [one for one in results["verdicts"] if one[0] == state.id]
    if not found:
        return ["it was not explored: there was no time"]
    _, _, _, other, passed = found[0]
    same = f" (as state {other}, which has the same)" if other != state.id else ""
    if passed:
        return [f"it passes{same}"]
    (failure,) = (one for one in results["failures"] if one["state"] == other)
    return [f"it fails{same}: {failure['stage']}", failure["said"].rstrip()]


def look(campaign: Campaign, state: State, built: Artifacts, cache: Cache) -> Verdict:
    """Look at a state alone."""
    (verdict,) = campaign.visitor.visit([state], built, cache, lambda seconds: None)
    return verdict


def open_state(
    campaign: Campaign,
    state: State,
    do: str | None,
    built: Artifacts,
    cache: Cache,
    progress: Progress,
) -> int:
    """A guest in that state: it does the command, or is on the terminal."""
    with cache.scratch("crash") as scratch:
        insert = record.insert(campaign.settings.subject)
        script = f"{insert} && {record.rewind(state)} || exit\n{do or ''}\n"
        job = campaign.visitor.job([state], scratch, script)
        result = run_guest(job, built, cache=cache, on_output=_print)
        if do or result.outcome is not Outcome.EXITED or result.status:
            return report_guest(result, progress)
        device, kind, options = campaign.settings.subject.mount
        words = ["mount", "-t", kind, *(["-o", options] if options else []), device, "/mnt"]
        first = f"{insert}; " if campaign.settings.subject.module else ""
        progress.say(f"the guest is as the power cut left it; next: {first}{shlex.join(words)}")
        properties = {key: value for key, value in job.namespace.items() if key != "op-log"}
        job = dataclasses.replace(
            job, namespace=properties, deterministic=False, out_dir=None, virtual_limit_s=0
        )
        machine.run_shell(job, built, cache=cache, terminal=os.get_terminal_size())
    return 0


def _print(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def pack_state(
    campaign: Campaign, state: State, target: Path, built: Artifacts, cache: Cache
) -> int:
    """Write the file that open_packed() takes."""
    pack.check_target(target)
    verdict = look(campaign, state, built, cache)
    pack.pack(campaign, state, verdict, target)
    print(f"{target}: state {state.id}, which {_short(pack.said(verdict))}")
    return 0


def open_packed(
    source: Path,
    do: str | None,
    built: Artifacts,
    cache: Cache,
    progress: Progress,
) -> int:
    """Look at a packed state: OTHER if its verdict is not the packed one. Then open it."""
    with cache.scratch("packed") as scratch:
        packed = pack.unpack(source, scratch)
        campaign = Campaign.open(scratch)
        campaign.load(cache, progress)
        state = campaign.state(packed.state)
        subject = campaign.settings.subject
        hashes = campaign.description["hashes"]
        differ = [
            name
            for name, one in built.deciding(rfs=subject.stack.rfs).items()
            if hashes.get(name) != one
        ]
        if differ:
            progress.say(f"here it is another {', '.join(differ)} than where it was packed")
        found = pack.said(look(campaign, state, built, cache))
        print(f"state {state.id}: operation {state.op}, outcomes {state.outcomes or '-'}")
        print(f"it {_short(found)}")
        if found["said"]:
            print(found["said"].rstrip())
        same = found == dict(packed.verdict)
        print("as it did when it was packed" if same else f"packed, it {_short(packed.verdict)}")
        if do or sys.stdin.isatty():
            return open_state(campaign, state, do, built, cache, progress)
        return 0 if same else OTHER


def _short(said: Mapping[str, Any]) -> str:
    return "passes" if said["passed"] else f"fails: {said['stage']}"


def minimise(
    campaign: Campaign,
    state: State,
    built: Artifacts,
    cache: Cache,
    progress: Progress,
    jobs: int,
) -> int:
    """Print the shortest work and the fewest outcomes that still fail in the same stage."""
    campaign, least = smallest(campaign, state, built, cache, progress, jobs)
    calls = timeline.calls(campaign)
    print(f"{campaign.title}: state {least.id}")
    _print_state(campaign, least)
    print(f"calls since everything was durable: {len(calls)}: {'; '.join(calls)}")
    progress.say(f"./rsd crash open {least.id} --out {campaign.directory}")
    return 0


def smallest(
    campaign: Campaign,
    state: State,
    built: Artifacts,
    cache: Cache,
    progress: Progress,
    jobs: int,
) -> tuple[Campaign, State]:
    """The run of the shortest work, and its simplest state, that fail in the same stage."""
    verdict = look(campaign, state, built, cache)
    if verdict.passed:
        raise RsdError(
            f"state {state.id}: it passes, so there is nothing to make smaller",
            f"name a state that fails: {campaign.directory}/report.html lists them",
        )
    shorter = _shorter(campaign, state, verdict.stage, built, cache, progress, jobs)
    campaign, results = shorter or (campaign, results_of(campaign))
    alike = [
        campaign.states[number]
        for failure in results["failures"]
        if failure["stage"] == verdict.stage
        for number in (failure["state"], *failure["same"])
    ]
    return campaign, min(alike or [state], key=_weight)


def _weight(state: State) -> tuple[int, int, int]:
    """What is less is simpler: fewer operations that are not absent, then an earlier cut."""
    return len(state.outcomes) - state.outcomes.count("a"), state.op, state.id


def _shorter(
    campaign: Campaign,
    state: State,
    stage: str,
    built: Artifacts,
    cache: Cache,
    progress: Progress,
    jobs: int,
) -> tuple[Campaign, dict[str, Any]] | None:
    """Its sequence alone, or with the one before, all points of it: if that fails in that stage.

    A script is not shortened, nor is a recovery.
    """
    if not campaign.marks.ace or campaign.description["cut"]:
        return None
    first, last = campaign.settings.work.sequences
    steps = len(campaign.settings.work.works[0].steps)
    _, begun = campaign.marks.steps(state.op)
    # While a sequence is filled, what fails is likely to be of the one before.
    acted = begun - 1 if begun % steps != 1 else begun - 2
    number = first + max(0, acted) // steps
    for start in (number, number - 1):
        if start < first or (start, number) == (first, last):
            continue
        directory = campaign.directory / f"min-{start}-{number}"
        settings: Settings = dataclasses.replace(
            campaign.settings,
            work=dataclasses.replace(campaign.settings.work, sequences=(start, number)),
            points=ALL,
        )
        small = Campaign.begin(directory, settings, built)
        small.record(built, cache, progress)
        results = report.content(small, small.explore(built, cache, progress, jobs, None))
        write(directory / RESULTS, json.dumps(results, indent=1) + "\n")
        if any(failure["stage"] == stage for failure in results["failures"]):
            return small, results
    return None
