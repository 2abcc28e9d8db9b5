# SPDX-License-Identifier: GPL-2.0-or-later
"""Published bugs that are put back are found, and file systems of the kernel can be patched."""

import shutil
import subprocess
from pathlib import Path

import pytest

from rsd import buildroot, image
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.crash import bugs, pack, patched
from rsd.crash.campaign import Campaign, read_description
from rsd.crash.subject import Subject
from rsd.errors import RsdError
from rsd.progress import Progress

# Its module need not be built: it has none.
QUICK = ("ext4-no-auto-da-alloc",)


@pytest.mark.parametrize("bug", bugs.BUGS, ids=lambda bug: bug.name)
def test_each_is_described_and_whole(bug: bugs.Bug) -> None:
    """It has a patch that says where it was published, or a mount option; a work, and a check."""
    files = {path.name for path in bug.directory.iterdir()} if bug.directory.exists() else set()
    assert ("bug.patch" in files) != bool(bug.chosen_by)
    assert ({"work", "check"} <= files) != bool(bug.title)
    assert bug.published and bug.loses
    if bug.patch:
        text = bug.patch.read_text()
        assert text.startswith("SPDX-License-Identifier: GPL-2.0\n") and "\nPublished: " in text
        assert f"--- a/fs/{Subject(bug.system).kind}/" in text
    if bug.title:
        work = bug.work
        assert bug.title in [one.title for one in work.works]
        assert len(work.works) > bugs.NEIGHBOURS


def test_each_directory_is_of_a_bug() -> None:
    names = {path.name for path in bugs.HERE.iterdir() if path.is_dir()} - {"__pycache__"}
    assert names == {bug.name for bug in bugs.BUGS if bug.directory.exists()}


def found_and_only_there(
    bug: bugs.Bug, built: Artifacts, cache: Cache, directory: Path
) -> bugs.Tried:
    tried = bugs.explore(bug, directory / "bug", built, cache, Progress(), fixed=False)
    assert tried.until_found and tried.until_found[0] <= bugs.BUDGET, tried.results
    fixed = bugs.explore(bug, directory / "fixed", built, cache, Progress(), fixed=True)
    assert not fixed.results["failed"], fixed.results["failures"]
    assert fixed.results["complete"] and fixed.results["mounted"]
    assert len(bugs.calls(tried, built, cache, Progress())) <= bugs.CALLS
    return tried


@pytest.mark.guest
@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, marks=[] if bug.name in QUICK else pytest.mark.long, id=bug.name)
        for bug in bugs.BUGS
    ],
)
def test_each_is_found_and_only_with_the_bug(
    bug: bugs.Bug, built: Artifacts, rsd_cache: Cache, tmp_path: Path
) -> None:
    found_and_only_there(bug, built, rsd_cache, tmp_path)


@pytest.mark.guest
def test_a_patched_file_system_is_the_one_that_is_looked_at(
    built: Artifacts, rsd_cache: Cache, tmp_path: Path
) -> None:
    """A bug of F2FS is found. The pack has the module: it fails again where it is unpacked."""
    (bug,) = (bug for bug in bugs.BUGS if bug.name == "f2fs-moved-file")
    tried = found_and_only_there(bug, built, rsd_cache, tmp_path)
    calls = bugs.calls(tried, built, rsd_cache, Progress())
    assert calls == ["renameat2", "fsync"]
    described = read_description(tmp_path / "bug")
    assert described["patch"] and described["patched"]
    assert read_description(tmp_path / "fixed")["patched"] is None
    state = tried.campaign.state(tried.results["failures"][0]["state"])
    (verdict,) = tried.campaign.visitor.visit([state], built, rsd_cache, lambda seconds: None)
    pack.pack(tried.campaign, state, verdict, tmp_path / "one.crash")
    (tmp_path / "there").mkdir()
    pack.unpack(tmp_path / "one.crash", tmp_path / "there")
    there = Campaign.open(tmp_path / "there")
    there.load(rsd_cache, Progress())
    (again,) = there.visitor.visit([state], built, rsd_cache, lambda seconds: None)
    assert (again.passed, again.stage, again.said) == (False, verdict.stage, verdict.said)
    assert "A/bar is lost" in again.said

    # without its module the unpacked one would not be looked at
    (tmp_path / "there/patched.ko").write_bytes(b"no module")
    with pytest.raises(RsdError, match="states could not be looked at"):
        there.visitor.visit([state], built, rsd_cache, lambda seconds: None)


@pytest.mark.guest
@pytest.mark.parametrize(
    "kind", sorted({Subject(bug.system).kind for bug in bugs.BUGS if bug.patch})
)
def test_every_patch_applies(kind: str, built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> None:
    root = buildroot.ensure(rsd_cache, Progress())
    shutil.copytree(root.root / buildroot.LINUX_SOURCE[1:] / "fs" / kind, tmp_path / "fs" / kind)
    patches = [bug.patch for bug in bugs.BUGS if bug.patch and Subject(bug.system).kind == kind]
    for patch in patches:
        command = ["patch", "-p1", "--dry-run", "--batch", "--fuzz=0", "-d", tmp_path, "-i", patch]
        subprocess.run(command, check=True, capture_output=True)


def _diff(name: str, old: bytes = b"no", new: bytes = b"yes") -> bytes:
    """A patch of one line of a file."""
    return b"--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n-%s\n+%s\n" % (name.encode(), name.encode(), old, new)


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (_diff("fs/f2fs/node.c", b"other"), "does not apply to fs/f2fs .* Hunk #1 FAILED at 1"),
        (_diff("fs/f2fs/node.c", b"yes", b"no"), "does not apply .*previously applied"),
        (
            _diff("fs/f2fs/node.c") + _diff("fs/ext4/file.c"),
            "does not apply to fs/f2fs .*can't find file .*--- a/fs/ext4/file.c",
        ),
        (b"By J\xfcrgen\n" + _diff("fs/ext4/file.c"), "does not apply .*can't find file"),
        (b"\0\xff\xfe junk\n", "does not apply .*Only garbage"),
        (b"", "changes nothing in fs/f2fs"),
        (
            _diff("fs/f2fs/node.c") + b"--- /dev/null\n+++ b/fs/ext4/new.c\n@@ -0,0 +1 @@\n+new\n",
            "changes fs/ext4/new.c, but only fs/f2fs is built",
        ),
    ],
    ids=["other", "reversed", "two", "latin-1", "junk", "empty", "beside"],
)
def test_a_patch_that_does_not_change_the_file_system_is_refused(
    patch: bytes, said: str, tmp_path: Path
) -> None:
    source = tmp_path / "tree/fs/f2fs"
    source.mkdir(parents=True)
    (source / "node.c").write_text("no\n")
    (tmp_path / "file.patch").write_bytes(patch)
    with pytest.raises(RsdError, match=f"(?s)file.patch: {said}.* try: make it with diff -u"):
        patched._apply(tmp_path / "file.patch", tmp_path / "tree", "f2fs")


@pytest.mark.guest
def test_a_patch_that_does_not_compile_is_refused(
    built: Artifacts, rsd_cache: Cache, tmp_path: Path
) -> None:
    """The compiler's words are shown."""
    path = tmp_path / "wrong.patch"
    path.write_text(
        "--- a/fs/f2fs/hash.c\n+++ b/fs/f2fs/hash.c\n@@ -1,2 +1,3 @@\n"
        " // SPDX-License-Identifier: GPL-2.0\n+no C\n /*\n"
    )
    with pytest.raises(RsdError, match=r"(?s)f2fs with .*wrong.patch: failed .*hash.c.*error:"):
        patched.ensure(rsd_cache, Progress(), "f2fs", path)


def test_the_kernel_of_an_imported_image_cannot_be_patched(
    rsd_cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "imported", lambda cache: tmp_path)
    with pytest.raises(RsdError, match=r"(?s)a kernel of its own.* try: ./rsd image reset"):
        patched.ensure(rsd_cache, Progress(), "f2fs", tmp_path / "any.patch")


def test_what_cannot_be_patched_is_refused(tmp_path: Path) -> None:
    for name in ("rfs+rsd", "xfs-page", "btrfs-rsd"):
        with pytest.raises(RsdError, match=r"(?s)cannot have one.*ext4-page, .*btrfs-page"):
            Subject(name, patch=tmp_path).check_patch()
    with pytest.raises(RsdError, match="no such file"):
        Subject("f2fs-page", patch=tmp_path / "missing").check_patch()
