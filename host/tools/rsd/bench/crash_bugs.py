# SPDX-License-Identifier: GPL-2.0-or-later
"""Published bugs of crash consistency: whether `./rsd crash` finds them, and how soon."""

from rsd.artifacts import OUTPUTS
from rsd.bench.base import Context, Row
from rsd.crash import bugs
from rsd.errors import RsdError

FOUND = 10
MUST = (
    f"{bugs.BUDGET:,} states or fewer; no failure of Linux 6.12 as it is; {bugs.CALLS} calls or"
    " fewer"
)


def crash_bugs(context: Context) -> list[Row]:
    """A row for each bug, and one for all. What was explored before is not explored again."""
    rows = [_row(bug, context) for bug in bugs.BUGS]
    found = sum(bool(row.passed) for row in rows)
    what = "published bugs, each put back into Linux 6.12, that are found"
    return [
        Row(what, f"{FOUND} or more", str(found), found, "bugs", "count", found >= FOUND),
        *rows,
    ]


def _row(bug: bugs.Bug, context: Context) -> Row:
    built, cache, progress = context.built, context.cache, context.progress
    tried = {}
    for fixed in (False, True):
        directory = OUTPUTS / "crash-bugs" / f"{bug.name}-{'as-it-is' if fixed else 'bug'}"
        try:
            tried[fixed] = bugs.explore(bug, directory, built, cache, progress, fixed=fixed)
        except RsdError as error:
            raise RsdError(
                f"{bug.name}: {error}", f"remove {directory}, and run it again"
            ) from error
    chosen = f" with {bug.chosen_by}" if bug.chosen_by else ""
    what = f"{bug.name}: {bug.system}{chosen}; {bug.published}; lost: {bug.loses}"
    as_it_is = tried[True].results
    others = f"{as_it_is['failed']} of {as_it_is['explored']} fail as it is"
    until = tried[False].until_found
    if until is None:
        said = f"not found in {tried[False].results['explored']} states; {others}"
        return Row(what, MUST, said, 0, "states", "count", False)
    calls = bugs.calls(tried[False], built, cache, progress)
    said = f"{until[0]} states, {until[1]} of them mounted; {others}; {len(calls)} calls: "
    passed = until[0] <= bugs.BUDGET and not as_it_is["failed"] and len(calls) <= bugs.CALLS
    return Row(what, MUST, said + "; ".join(calls), until[0], "states", "count", passed)
