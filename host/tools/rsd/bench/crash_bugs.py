# SPDX-License-Identifier: GPL-2.0-or-later
"""Published bugs of crash consistency: whether `./rsd crash` finds them, and how soon."""

from rsd.artifacts import OUTPUTS
from rsd.bench.base import Context, Row
from rsd.crash import bugs
from rsd.errors import RsdError

FOUND = 10
MUST = f"{bugs.BUDGET:,} states or fewer; no failure without it; {bugs.CALLS} calls or fewer"


def crash_bugs(context: Context) -> list[Row]:
    """A row for each bug, and one for all. What was explored before is not explored again."""
    rows = [_row(bug, context) for bug in bugs.BUGS]
    found = sum(bool(row.passed) for row in rows)
    patches = sum(bug.patch is not None for bug in bugs.BUGS)
    options = len(bugs.BUGS) - patches
    how = f"{patches} of them with a patch, {options} with a mount option"
    what = f"published bugs that are found in Linux 6.12, {how}"
    return [
        Row(what, f"{FOUND} or more", str(found), found, "bugs", "count", found >= FOUND),
        *rows,
    ]


def _row(bug: bugs.Bug, context: Context) -> Row:
    built, cache, progress = context.built, context.cache, context.progress
    tried = {}
    for fixed in (False, True):
        directory = OUTPUTS / "crash-bugs" / f"{bug.name}-{'without' if fixed else 'bug'}"
        try:
            tried[fixed] = bugs.explore(bug, directory, built, cache, progress, fixed=fixed)
        except RsdError as error:
            raise RsdError(f"{bug.name}: {error.message}", error.hint) from error
    system = " with ".join(filter(None, [bug.system, bug.mount_options(fixed=False)]))
    what = f"{bug.name}: {system}; {bug.published}; lost: {bug.loses}"
    without = tried[True].results
    others = f"{without['failed']} of {without['explored']} fail without it"
    if bug.chosen_by and bug.options:
        others += f", with {bug.options}"
    until = tried[False].until_found
    if until is None:
        said = f"not found in {tried[False].results['explored']} states; {others}"
        return Row(what, MUST, said, 0, "states", "count", False)
    calls = bugs.calls(tried[False], built, cache, progress)
    said = f"{until[0]} states, {until[1]} of them mounted; {others}; {len(calls)} calls: "
    passed = until[0] <= bugs.BUDGET and not without["failed"] and len(calls) <= bugs.CALLS
    return Row(what, MUST, said + "; ".join(calls), until[0], "states", "count", passed)
