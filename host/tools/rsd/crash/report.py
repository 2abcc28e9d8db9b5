# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of a run: lines, JSON, JUnit. The same run gives the same bytes."""

import collections
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from rsd.crash.campaign import Campaign
from rsd.crash.explore import Explored
from rsd.crash.states import State
from rsd.crash.visit import Verdict

SCHEMA = 3
# Failures that lines show; the files have all
SHOWN = 5
# What XML has no characters for
UNPRINTABLE = {code: "?" for code in range(32) if code not in (9, 10, 13)}


@dataclass(frozen=True)
class Failure:
    """A state that was looked at and is wrong, and those that are the same."""

    state: State
    verdict: Verdict
    same: Sequence[int]


def failures(campaign: Campaign, explored: Explored) -> list[Failure]:
    """In the order of their states."""
    same = collections.defaultdict(list)
    for state, other in sorted(explored.same.items()):
        same[other].append(state)
    wrong = sorted(number for number, one in explored.verdicts.items() if not one.passed)
    return [
        Failure(campaign.states[number], explored.verdicts[number], same[number])
        for number in wrong
    ]


def checked(campaign: Campaign) -> list[str]:
    """What was asked of each state that was mounted, in this order."""
    settings = campaign.settings
    own = ["your check"] if settings.check else []
    if campaign.marks.ace:
        own = [f"what ace:{settings.work.kind} made durable"]
    fsck = settings.subject.fsck[:1]
    return ["mount", *own, "a new file", "unmount", *fsck]


def unchecked(campaign: Campaign) -> list[str]:
    """What a reader might believe to have been checked, and why it was not."""
    settings, names = campaign.settings, len(campaign.marks.names)
    found = []
    if not settings.check and not campaign.marks.ace:
        durable = f", and the names that were called durable ({names:,})" if names else ""
        found.append(f"what files hold{durable}: there is no --check")
    elif not names and not campaign.marks.ace:
        found.append("whether anything durable is lost: the work never calls `durable`")
    if not settings.subject.fsck:
        found.append(f"the volume by an fsck: {settings.subject.kind} has none")
    return found


def content(campaign: Campaign, explored: Explored) -> dict[str, Any]:
    """The run as JSON has it."""
    found = failures(campaign, explored)
    names = ("system", "properties", "mount_options", "patch", "work", "kind", "sequences")
    return {
        "schema": SCHEMA,
        **{name: campaign.description[name] for name in names},
        "check": campaign.description["check"],
        "checked": checked(campaign),
        "unchecked": unchecked(campaign),
        "points": campaign.settings.points,
        "outcomes": campaign.settings.outcomes,
        "seed": campaign.settings.seed,
        "hashes": campaign.description["hashes"],
        "complete": explored.complete,
        "operations": campaign.operations[-1].number,
        "marks": len(campaign.marks.names),
        "refused": campaign.marks.ace["refused"] if campaign.marks.ace else [],
        "states": len(campaign.states),
        "explored": len(explored.verdicts) + len(explored.same),
        "mounted": len(explored.verdicts),
        "failed": sum(1 + len(failure.same) for failure in found),
        "failures": [
            {
                "state": one.state.id,
                "operation": one.state.op,
                "outcomes": one.state.outcomes,
                "holds": campaign.marks.text(one.state.op),
                "stage": one.verdict.stage,
                "said": one.verdict.said,
                "same": list(one.same),
            }
            for one in found
        ],
        # of the recovery of states: again.explore()
        "again": [],
        # number, operation, outcomes, the state that was looked at for it, whether it passed
        "verdicts": [
            [state.id, state.op, state.outcomes, explored.same.get(state.id, state.id), one.passed]
            for state in campaign.states
            if (one := explored.verdict(state.id))
        ],
    }


def lines(campaign: Campaign, results: Mapping[str, Any]) -> Iterator[str]:
    """For the terminal."""
    flying = sum(bool(operation.flying) for operation in campaign.operations)
    yield (
        f"{results['system']}: {results['operations']:,} operations of the drive; after {flying:,}"
        " of them something was in flight"
    )
    if results["patch"]:
        yield f"its file system is patched: SHA-256 of the patch {results['patch'][:16]}..."
    if refused := results["refused"]:
        yield f"not supported, and left out: operations of {len({n for n, _ in refused})} sequences"
    yield (
        f"{results['explored']:,} states explored, {results['mounted']:,} of them mounted; each"
        " other state equals one of these in every block that was read"
    )
    yield f"checked in each that was mounted: {', '.join(results['checked'])}"
    yield from (f"not checked: {what}" for what in results["unchecked"])
    if not results["complete"]:
        yield f"not explored, for want of time: {results['states'] - results['explored']:,} states"
    yield f"{results['failed']:,} states fail"
    yield from _again_lines(results)
    for failure in results["failures"][:SHOWN]:
        letters = f", outcomes {failure['outcomes']}" if failure["outcomes"] else ""
        alike = f", and {len(failure['same']):,} like it" if failure["same"] else ""
        yield f"state {failure['state']}{alike}: operation {failure['operation']}{letters}"
        yield f"  durable by then: {failure['holds']}"
        said = failure["said"].strip().splitlines() or [""]
        yield f"  {failure['stage']}: {said[0]}"
        yield from (f"  | {line}" for line in said[1:4])
    if more := results["failures"][SHOWN:]:
        yield f"and {len(more):,} more"


def _again_lines(results: Mapping[str, Any]) -> Iterator[str]:
    if not results["again"]:
        return
    whole = [one for one in results["again"] if "explored" in one]
    total = {name: sum(one[name] for one in whole) for name in ("explored", "mounted", "failed")}
    yield (
        f"cut again within the recovery of {len(whole):,} of them: {total['explored']:,} states"
        f" explored, {total['mounted']:,} of them mounted; {total['failed']:,} fail"
    )
    if unfinished := sum(not one["complete"] for one in results["again"]):
        yield f"not all explored, for want of time: the recovery of {unfinished:,} states"
    for one in whole:
        if first := one["first"]:
            said = first["said"].strip().splitlines() or [""]
            yield f"the recovery of state {one['state']}: state {first['state']} of again-" + (
                f"{one['state']}: {first['stage']}: {said[0]}"
            )


def failed(results: Mapping[str, Any]) -> bool:
    """Whether any state fails, also of those within a recovery."""
    return bool(results["failed"]) or any(one.get("failed") for one in results["again"])


def complete(results: Mapping[str, Any]) -> bool:
    """Whether all was explored."""
    return results["complete"] and all(one["complete"] for one in results["again"])


def junit(results: Mapping[str, Any]) -> str:
    """A test case for each state that was looked at."""
    name = f"rsd crash {results['system']}"
    mounted = [
        (number, op, how) for number, op, how, other, _ in results["verdicts"] if number == other
    ]
    wrong = {failure["state"]: failure for failure in results["failures"]}
    again = [one for one in results["again"] if "explored" in one]
    failures = len(wrong) + sum(bool(one["failed"]) for one in again)
    tests = len(mounted) + len(again)
    counts = f'tests="{tests}" failures="{failures}" errors="0" skipped="0"'
    rows = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {counts}>"]
    rows.append(f"<testsuite name={quoteattr(name)} {counts}>")
    for number, op, outcomes in mounted:
        title = f"state {number}: operation {op}" + (f", outcomes {outcomes}" if outcomes else "")
        case = f"<testcase classname={quoteattr(name)} name={quoteattr(title)}"
        if failure := wrong.get(number):
            said = failure["said"].translate(UNPRINTABLE)
            rows.append(f"{case}><failure message={quoteattr(failure['stage'])}>{escape(said)}")
            rows.append("</failure></testcase>")
        else:
            rows.append(f"{case}/>")
    for one in again:
        title = f"the recovery of state {one['state']}: {one['explored']} states"
        case = f"<testcase classname={quoteattr(name)} name={quoteattr(title)}"
        if first := one["first"]:
            said = first["said"].translate(UNPRINTABLE)
            rows.append(f"{case}><failure message={quoteattr(first['stage'])}>{escape(said)}")
            rows.append("</failure></testcase>")
        else:
            rows.append(f"{case}/>")
    return "\n".join([*rows, "</testsuite>", "</testsuites>", ""])
