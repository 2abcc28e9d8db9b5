# SPDX-License-Identifier: GPL-2.0-or-later
"""Published bugs of crash consistency, to see that they are found in Linux 6.12.

Each has a directory of its name. `bug.patch` leaves out what keeps the bug away, and says where it
was published; without a patch, a mount option chooses the behaviour. `work` and `check` are scripts
of its own, where the sequences of ace.py do not show it, or their check cannot see what is lost.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.crash import actions, patched, report, timeline
from rsd.crash.campaign import Campaign, Settings, write
from rsd.crash.guest import ace
from rsd.crash.record import Work
from rsd.crash.states import ALL
from rsd.crash.subject import Subject
from rsd.progress import Progress

HERE = Path(__file__).parent
# How many states may be explored until a bug is found
BUDGET = 1000
# To how many calls it must come down
CALLS = 5
LIMIT_S = 10
# Sequences that are done before the one that shows a bug, and after it
NEIGHBOURS = 1


@dataclass(frozen=True)
class Bug:
    """A bug. `chosen_by` is the option of the mount that brings it; `options` are there without it,
    and with its patch.

    `title` is of the sequence that shows it, among neighbours. `published` says where it was.
    """

    name: str
    system: str
    loses: str
    published: str
    title: str = ""
    options: str = ""
    chosen_by: str = ""

    @property
    def directory(self) -> Path:
        """Where its files are."""
        return HERE / self.name

    @property
    def patch(self) -> Path | None:
        """What puts it back."""
        return None if self.chosen_by else self.directory / "bug.patch"

    def mount_options(self, *, fixed: bool) -> str:
        """The options of the mount with the bug, or without it."""
        return self.options if fixed else self.chosen_by or self.options

    def settings(self, cache: Cache, progress: Progress, *, fixed: bool) -> Settings:
        """A run that explores all its points with the bug, or without it."""
        subject = Subject(self.system, {}, self.mount_options(fixed=fixed))
        if self.patch and not fixed:
            module = patched.ensure(cache, progress, subject.kind, self.patch)
            subject = Subject(self.system, {}, subject.options, self.patch, module)
        check = None if self.title else self.directory / "check"
        return Settings(subject, self.work, check, None, ALL, 1, 1, LIMIT_S)

    @property
    def work(self) -> Work:
        """Its script, or its sequence and neighbours."""
        if not self.title:
            return Work(script=self.directory / "work")
        for kind in ace.KINDS:
            works = ace.sequences(kind)
            for one in works:
                if one.title == self.title:
                    first, last = max(1, one.number - NEIGHBOURS), one.number + NEIGHBOURS
                    return Work(sequences=(first, min(last, len(works))), kind=kind)
        raise KeyError(self.title)


@dataclass(frozen=True)
class Tried:
    """A run that has explored all its states."""

    campaign: Campaign
    results: Mapping[str, Any]

    @property
    def until_found(self) -> tuple[int, int] | None:
        """How many states were explored up to the first that fails, and how many were mounted."""
        if not self.results["failures"]:
            return None
        first = self.results["failures"][0]["state"]
        before = [one for one in self.results["verdicts"] if one[0] <= first]
        return len(before), sum(one[0] == one[3] for one in before)


def explore(
    bug: Bug, directory: Path, built: Artifacts, cache: Cache, progress: Progress, *, fixed: bool
) -> Tried:
    """Run it in a directory, or go on with what is there."""
    campaign = Campaign.begin(directory, bug.settings(cache, progress, fixed=fixed), built)
    campaign.claim()
    campaign.record(built, cache, progress)
    results = report.content(campaign, campaign.explore(built, cache, progress, 1, None))
    write(directory / actions.RESULTS, json.dumps(results, indent=1) + "\n")
    return Tried(campaign, results)


def calls(found: Tried, built: Artifacts, cache: Cache, progress: Progress) -> list[str]:
    """What the work comes down to. A script is as short as it gets."""
    campaign = found.campaign
    if campaign.settings.work.script:
        return timeline.calls(campaign)
    state = campaign.state(found.results["failures"][0]["state"])
    smallest, _ = actions.smallest(campaign, state, built, cache, progress, 1)
    return timeline.calls(smallest)


CRASHMONKEY = "CrashMonkey (OSDI 2018)"

BUGS = (
    Bug(
        "ext4-no-auto-da-alloc",
        "ext4-page",
        "the old file and the new one, after a rename",
        "ext4's documentation of the option",
        chosen_by="noauto_da_alloc",
    ),
    Bug(
        "f2fs-moved-file",
        "f2fs-page",
        "a file that was moved",
        "a fix of 2014, generic/322",
    ),
    Bug(
        "f2fs-name-again",
        "f2fs-page",
        "a renamed file, whose name another one got",
        f"{CRASHMONKEY}, generic/342",
        options="fsync_mode=strict",
        chosen_by="fsync_mode=posix",
    ),
    Bug(
        "f2fs-renamed-directory",
        "f2fs-page",
        "a new file in a renamed directory",
        "a fix of 2018",
        options="fsync_mode=strict",
    ),
    Bug(
        "f2fs-zero-range",
        "f2fs-page",
        "the size of a file",
        f"{CRASHMONKEY}, new bug 9",
    ),
    Bug(
        "btrfs-fast-fsync-xattr",
        "btrfs-page",
        "an extended attribute",
        "a fix of 2015",
    ),
    Bug(
        "btrfs-link-in-new-directory",
        "btrfs-page",
        "a name of a file",
        "reported by the authors of CrashMonkey",
    ),
    Bug(
        "btrfs-name-again",
        "btrfs-page",
        "a renamed file, whose name another one got",
        f"{CRASHMONKEY}, generic/342",
        "rename foo bar; creat foo; fsync foo",
    ),
    Bug(
        "btrfs-prealloc",
        "btrfs-page",
        "allocated blocks",
        f"{CRASHMONKEY}, new bug 8",
    ),
    Bug(
        "btrfs-removed-xattr",
        "btrfs-page",
        "the removal of an attribute",
        f"{CRASHMONKEY}, generic/066",
        "removexattr A/foo; fsync A/foo",
    ),
)
