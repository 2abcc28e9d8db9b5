# SPDX-License-Identifier: GPL-2.0-or-later
"""Sequences of operations and a call that makes them durable, and what a power cut may leave.

The sequences are those of CrashMonkey's ACE (Mohan and others, OSDI 2018) in kind: one operation
over a small set of files, or two, then fsync, fdatasync or sync. Each has a directory of its own,
s0001 and so on, and three or four steps: it is filled and synced, each operation, the call. The
directory of the sequence before the last is removed in the first step, so that there is never more
than two of them. All sequences of a run have as many steps.

Number n of `trees` is what is there when n steps are done. After a power cut each name, size, byte
and attribute has to be as in one of the trees from the one that was made durable last up to the one
of the step that had begun; which one that is, is told apart for a name and for a file, since fsync
speaks of one of them. Nothing else may be there, and a file that no step removes has a name.

It runs in the guest, below TOP, but for `sequences`: the guest is given those that it needs.
"""

import ctypes
import errno
import functools
import json
import mmap
import os
import random
import re
import stat
from collections.abc import Callable, Iterator, Sequence

TOP = "/mnt"
BLOCK = 4096
BYTES = 3 * BLOCK  # of each file in the beginning
ATTRIBUTE = "user.crash"

KEEP_SIZE, PUNCH, ZERO = 1, 2, 16

# Where and how much is written: within, at the end, behind the end
PLACES = {
    "first block": (0, BLOCK),
    "across blocks": (2000, 4000),
    "append a block": (BYTES, BLOCK),
    "append 1000 bytes": (BYTES, 1000),
    "behind a hole": (BYTES + 2 * BLOCK, BLOCK),
}
SIZES = (0, BLOCK, 5000, BYTES + 8000)
ALLOCATIONS = {
    "allocate": (0, BYTES, 2 * BLOCK),
    "allocate, keep the size": (KEEP_SIZE, BYTES, 2 * BLOCK),
    "punch a block": (PUNCH | KEEP_SIZE, BLOCK, BLOCK),
    "punch across blocks": (PUNCH | KEEP_SIZE, 2000, 4000),
    "zero a block": (ZERO, BLOCK, BLOCK),
    "zero beyond the end": (ZERO, BYTES - BLOCK, 2 * BLOCK),
    "zero, keep the size": (ZERO | KEEP_SIZE, BYTES - BLOCK, 2 * BLOCK),
}


# Sequences of one operation, and of two
KINDS = ("seq1", "seq2")

Operation = tuple[object, ...]
Chosen = tuple[tuple[Operation, ...], tuple[str, ...]]


class Work:
    """Operations, with their arguments, and the call that follows, with the path it is about."""

    def __init__(
        self, number: int, operations: Sequence[Sequence[object]], call: Sequence[str]
    ) -> None:
        self.number = number
        self.operations = tuple(map(tuple, operations))
        self.call = tuple(call)

    @property
    def title(self) -> str:
        return "; ".join(" ".join(map(str, one)) for one in (*self.operations, self.call))

    @property
    def steps(self) -> tuple[str, ...]:
        names = ("operation",) if len(self.operations) == 1 else ("operation 1", "operation 2")
        return ("fill", *names, "call")

    @property
    def directory(self) -> str:
        return f"s{self.number:04}"

    def path(self, name: object) -> str:
        return os.path.normpath(f"{self.directory}/{name}")


@functools.cache
def sequences(kind: str) -> list[Work]:
    """All of seq1 or seq2, in their order; their numbers begin with 1.

    There are many of two operations, so they are in a random order: any range is a sample.
    """
    found = list((_singles if kind == "seq1" else _pairs)())
    if kind == "seq2":
        random.Random(kind).shuffle(found)
    return [Work(number, *one) for number, one in enumerate(found, 1)]


def dump(works: Sequence[Work]) -> str:
    """For load(), in the guest."""
    return json.dumps([[work.number, work.operations, work.call] for work in works])


def load(text: str) -> list[Work]:
    """What dump() was given."""
    return [Work(*one) for one in json.loads(text)]


def _singles() -> Iterator[Chosen]:
    for operation in _operations():
        for call in _calls(operation):
            yield (operation,), call


def _pairs() -> Iterator[Chosen]:
    """Two operations of which the second one can follow the first, and calls on what is left."""
    work = Work(0, (), ())
    for first in _operations():
        between = _after(_filled(work), work, 0, first)
        for second in (*_operations(), *SECOND):
            if _is_possible(between, work, second):
                tree = _after(between, work, 1, second)
                calls = dict.fromkeys((*_calls(second), *_calls(first)))
                for call in calls:
                    if _can_follow(tree, work, call):
                        yield (first, second), call


def _is_possible(tree: "Tree", work: Work, operation: Operation) -> bool:
    """Whether a file system does it, if it supports it."""
    kind, *arguments = operation
    path, other = work.path(arguments[0]), work.path(arguments[-1])
    file = tree.get(path)
    if kind in ("creat", "mkdir", "symlink"):
        return file is None and os.path.dirname(path) in tree
    if file is None:
        return False
    below = any(name.startswith(f"{path}/") for name in tree)
    if kind == "rmdir":
        return file.kind == "directory" and not below
    if kind == "unlink":
        return file.kind != "directory"
    if kind in RENAMING:
        target = tree.get(other)
        if os.path.dirname(other) not in tree or other.startswith(f"{path}/"):
            return False
        if kind == "link" or target is None:
            return target is None
        if target.identity == file.identity or any(name.startswith(f"{other}/") for name in tree):
            return False
        return (file.kind == "directory") == (target.kind == "directory")
    if file.kind != "file":
        return False
    if kind == "mmap":
        return sum(PLACES[str(arguments[1])]) <= len(file.data)
    return kind != "removexattr" or file.attribute is not None


def _can_follow(tree: "Tree", work: Work, call: tuple[str, ...]) -> bool:
    if call == ("sync",):
        return True
    file = tree.get(work.path(call[1]))
    return file is not None and file.kind in ("file", "directory" if call[0] == "fsync" else "")


def _operations() -> Iterator[Operation]:
    for path in ("bar", "A/bar", "B/foo"):
        yield "creat", path
    for path in ("C", "A/C"):
        yield "mkdir", path
    yield "rmdir", "B"
    for path in ("foo", "A/foo"):
        yield "unlink", path
    for old, new in (("foo", "bar"), ("foo", "A/bar"), ("A/foo", "A/bar"), ("A/foo", "B/foo")):
        yield "link", old, new
    for path in ("bar", "A/bar"):
        yield "symlink", path
    for old, new in (
        *(("foo", "bar"), ("foo", "A/bar"), ("foo", "A/foo"), ("A/foo", "foo")),
        *(("A/foo", "A/bar"), ("A/foo", "B/foo"), ("A", "C"), ("A", "B"), ("B", "A/B")),
    ):
        yield "rename", old, new
    for path in ("foo", "A/foo"):
        for place in PLACES:
            yield "write", path, place
        for place in ("first block", "append a block"):
            yield "direct", path, place
        for place in ("first block", "across blocks"):
            yield "mmap", path, place
        for size in SIZES:
            yield "truncate", path, size
        for how in ALLOCATIONS:
            yield "falloc", path, how
        yield "setxattr", path
    yield "removexattr", "A/foo"


# What is only possible after another operation: an old name is used again, or a new directory
SECOND: tuple[Operation, ...] = (
    ("creat", "foo"),
    ("creat", "A/foo"),
    ("creat", "C/bar"),
    ("mkdir", "A"),
    ("mkdir", "B"),
    ("link", "foo", "C/bar"),
    ("link", "A/foo", "foo"),
    ("rename", "foo", "C/bar"),
    ("rename", "A/foo", "C/bar"),
    ("rename", "B", "A"),
    ("rename", "C", "A"),
)


def _calls(operation: Operation) -> Iterator[tuple[str, ...]]:
    """The calls that may follow: on what was changed, on its directories, on another file."""
    kind, old = str(operation[0]), str(operation[1])
    path = str(operation[2]) if kind in RENAMING else old
    kept = "foo" if path.startswith("A/") else "A/foo"
    if kind not in ("unlink", "rmdir", "symlink"):
        yield "fsync", path
        if kind != "mkdir" and path not in ("A/B", "B", "C"):
            yield "fdatasync", path
    yield ("sync",)
    if kind in (*RENAMING, "creat", "mkdir", "unlink", "rmdir", "symlink"):
        yield "fsync", _above(path)
    if kind == "rename" and _above(old) != _above(path):
        yield "fsync", _above(old)
    elif kind != "rename" or old not in ("A", kept):
        yield "fsync", kept


def _above(path: str) -> str:
    return os.path.dirname(path) or "."


# Their arguments are an old name and a new one.
RENAMING = ("link", "rename")

# -- what is there --


class File:
    """A state of a file. Names of one file share its `identity`, and so do its later states.

    Directories and symbolic links are files, too, with a `kind` and no bytes.
    """

    def __init__(
        self,
        identity: object,
        kind: str,
        data: bytes = b"",
        attribute: bytes | None = None,
    ) -> None:
        self.identity = identity
        self.kind = kind
        self.data = data
        self.attribute = attribute

    def changed(self, data: bytes | None = None, attribute: bytes | None = None) -> "File":
        """The same file with other bytes, or with another attribute, which b"" removes."""
        return File(
            self.identity,
            self.kind,
            self.data if data is None else data,
            self.attribute if attribute is None else attribute or None,
        )


Tree = dict[str, File]


def _bytes(number: int, what: str, size: int = BYTES) -> bytes:
    return random.Random(f"{number} {what}").randbytes(size)


def _filled(work: Work) -> Tree:
    """The directory of a sequence before its operation."""
    top, number = work.directory, work.number
    tree = {path: File(path, "directory") for path in (top, f"{top}/A", f"{top}/B")}
    for name in ("foo", "A/foo"):
        path = f"{top}/{name}"
        # only one of them has the attribute already
        attribute = b"old" if name == "A/foo" else None
        tree[path] = File(path, "file", _bytes(number, name), attribute)
    return tree


def _after(tree: Tree, work: Work, index: int, operation: Operation) -> Tree:
    """The directory of a sequence after its operation of this index."""
    kind, *arguments = operation
    path, other = work.path(arguments[0]), work.path(arguments[-1])
    new = dict(tree)
    file = tree.get(path)
    if kind in ("creat", "mkdir", "symlink"):
        new[path] = File((path, index), {"creat": "file", "mkdir": "directory"}.get(kind, kind))
        return new
    assert file is not None
    if kind in ("unlink", "rmdir"):
        del new[path]
    elif kind == "link":
        new[other] = file
    elif kind == "rename":
        for name in [name for name in tree if name == path or name.startswith(f"{path}/")]:
            new[other + name[len(path) :]] = new.pop(name)
    elif kind in ("write", "direct", "mmap"):
        at, size = PLACES[str(arguments[1])]
        written = _bytes(work.number, WRITTEN[index], size)
        new = _changed(new, file, data=_put(file.data, at, written))
    elif kind == "truncate":
        size = int(str(arguments[1]))
        new = _changed(new, file, data=file.data[:size].ljust(size, b"\0"))
    elif kind == "falloc":
        mode, at, size = ALLOCATIONS[str(arguments[1])]
        data = file.data
        if mode & (PUNCH | ZERO):
            data = _put(data, at, bytes(size))
        elif not mode & KEEP_SIZE:
            data = data.ljust(at + size, b"\0")
        new = _changed(new, file, data=data[: len(file.data)] if mode & KEEP_SIZE else data)
    else:
        new = _changed(new, file, attribute=b"changed" if kind == "setxattr" else b"")
    return new


# What the first operation writes, and the second
WRITTEN = ("written", "written by the second")


def _changed(
    tree: Tree, file: File, data: bytes | None = None, attribute: bytes | None = None
) -> Tree:
    """The file is another under each of its names."""
    changed = file.changed(data, attribute)
    return {name: changed if one is file else one for name, one in tree.items()}


def _put(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at].ljust(at, b"\0") + new + data[at + len(new) :]


def trees(works: Sequence[Work], refused: Sequence[Sequence[int]]) -> list[Tree]:
    """What is there when 0, 1, 2 ... steps are done. An operation that was refused did nothing."""
    found: list[Tree] = [{}]
    last: Tree = {}
    for work in works:
        tree = _filled(work)
        found.append({**last, **tree})
        for index, operation in enumerate(work.operations):
            if [work.number, index] not in refused:
                tree = _after(tree, work, index, operation)
            found.append({**last, **tree})
        found.append(found[-1])
        last = tree
    return found


# -- the work --


def run(
    works: Sequence[Work], operations: Callable[[], int], mark: Callable[[str], None]
) -> dict[str, object]:
    """Do all steps below TOP. Gives `steps`, how many operations the drive's log had when each
    began and when it was done; and `refused`, the operations that are not supported, by the number
    of their sequence and their index.
    """
    steps: list[tuple[int, int]] = []
    refused: list[list[int]] = []
    before: list[Work] = []
    root = sorted(os.listdir(TOP))
    for work in works:
        for number, name in enumerate(work.steps):
            mark(f"{work.directory} {name}")
            began = operations()
            if not do_step(work, number, before):
                refused.append([work.number, number - 1])
            steps.append((began, operations()))
        before.append(work)
    return {"steps": steps, "refused": refused, "root": root}


def do_step(work: Work, step: int, before: Sequence[Work]) -> bool:
    """Whether the file system supports it; `before` are the sequences before this one."""
    if step == 0:
        _fill(work, before)
    elif step > len(work.operations):
        _make_durable(work)
    else:
        try:
            _operate(work, step - 1)
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            return False
    return True


UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL)


def _fill(work: Work, before: Sequence[Work]) -> None:
    if len(before) > 1:
        _remove(f"{TOP}/{before[-2].directory}")
    for path, file in _filled(work).items():
        if file.kind == "directory":
            os.mkdir(f"{TOP}/{path}")
            continue
        with open(f"{TOP}/{path}", "wb") as stream:
            stream.write(file.data)
        if file.attribute:
            os.setxattr(f"{TOP}/{path}", ATTRIBUTE, file.attribute)
    os.sync()


def _remove(top: str) -> None:
    for path, _, files in os.walk(top, topdown=False):
        for name in files:
            os.unlink(f"{path}/{name}")
        os.rmdir(path)


def _operate(work: Work, index: int) -> None:
    kind, *arguments = work.operations[index]
    path, other = f"{TOP}/{work.path(arguments[0])}", f"{TOP}/{work.path(arguments[-1])}"
    if kind == "creat":
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    elif kind == "mkdir":
        os.mkdir(path)
    elif kind == "symlink":
        os.symlink("foo", path)
    elif kind == "unlink":
        os.unlink(path)
    elif kind == "rmdir":
        os.rmdir(path)
    elif kind == "link":
        os.link(path, other)
    elif kind == "rename":
        os.rename(path, other)
    elif kind == "setxattr":
        os.setxattr(path, ATTRIBUTE, b"changed")
    elif kind == "removexattr":
        os.removexattr(path, ATTRIBUTE)
    elif kind == "truncate":
        os.truncate(path, int(str(arguments[1])))
    else:
        _write(work, index, path)


def _write(work: Work, index: int, path: str) -> None:
    kind, _, how = work.operations[index]
    file = os.open(path, os.O_RDWR | (os.O_DIRECT if kind == "direct" else 0))
    try:
        if kind == "falloc":
            mode, at, size = ALLOCATIONS[str(how)]
            if LIBC.fallocate(file, mode, ctypes.c_int64(at), ctypes.c_int64(size)):
                raise OSError(ctypes.get_errno(), "fallocate")
            return
        at, size = PLACES[str(how)]
        data = _bytes(work.number, WRITTEN[index], size)
        if kind == "write":
            os.pwrite(file, data, at)
        elif kind == "direct":
            # memory that is aligned, as direct I/O wants it
            with mmap.mmap(-1, size) as memory:
                memory[:] = data
                os.pwritev(file, [memory], at)
        else:
            with mmap.mmap(file, 0) as memory:
                memory[at : at + size] = data
    finally:
        os.close(file)


LIBC = ctypes.CDLL(None, use_errno=True)


def _make_durable(work: Work) -> None:
    if work.call[0] == "sync":
        os.sync()
        return
    file = os.open(f"{TOP}/{work.path(work.call[1])}", os.O_RDONLY)
    try:
        (os.fsync if work.call[0] == "fsync" else os.fdatasync)(file)
    finally:
        os.close(file)


# -- the check --


class Allowed:
    """What a power cut may leave when `done` steps were done and `begun` had begun."""

    def __init__(
        self, works: Sequence[Work], all_trees: Sequence[Tree], done: int, begun: int
    ) -> None:
        steps = [(work, name) for work in works for name in work.steps][:done]
        # a step that makes everything durable is the first of each sequence, and sync
        synced = [
            step
            for step, (work, name) in enumerate(steps)
            if name == "fill" or (name == "call" and work.call == ("sync",))
        ]
        self.floor = synced[-1] + 1 if synced else 0
        self.trees = all_trees[: begun + 1]
        # From which tree on a name, the bytes of a file and its attribute count, where later
        self.names: dict[str, int] = {}
        self.data: dict[object, int] = {}
        self.attributes: dict[object, int] = {}
        for step, (work, name) in enumerate(steps):
            if step >= self.floor and name == "call":
                self._promise(work, step)

    def _promise(self, work: Work, step: int) -> None:
        """What a call on one file has made durable. fdatasync speaks of no name: the file of which
        it makes the bytes durable must only be found under one.
        """
        tree = self.trees[step]
        call, path = work.call[0], work.path(work.call[1])
        file = tree[path]
        if file.kind == "directory":
            known = {name for tree in self.trees[self.floor :] for name in tree}
            self.names |= {name: step for name in known if os.path.dirname(name) == path}
        self.data[file.identity] = step
        if call == "fdatasync":
            return
        self.attributes[file.identity] = step
        while path:
            self.names[path] = step
            path = os.path.dirname(path)

    def of_name(self, path: str) -> list[File | None]:
        """What may be there under this name."""
        return [tree.get(path) for tree in self.trees[self.names.get(path, self.floor) :]]

    def states(self, identity: object, floors: dict[object, int]) -> list[File | None]:
        """What a file may be like; None: it is new, and may be so only in part."""
        return [
            next((file for file in tree.values() if file.identity == identity), None)
            for tree in self.trees[floors.get(identity, self.floor) :]
        ]

    def lasting(self) -> dict[object, set[str]]:
        """The files that must be there, and the names that they may have."""
        names: dict[object, set[str]] = {}
        for tree in self.trees[self.floor :]:
            for name, file in tree.items():
                names.setdefault(file.identity, set()).add(name)
        return {one: its for one, its in names.items() if all(self.states(one, self.data))}

    def most_names(self) -> dict[object, int]:
        """How many names a file may have at once: a rename leaves the old one or the new one."""
        most: dict[object, int] = {}
        for tree in self.trees[self.floor :]:
            identities = [file.identity for file in tree.values()]
            most |= {one: max(most.get(one, 0), identities.count(one)) for one in identities}
        return most


def check(allowed: Allowed, root: Sequence[str]) -> None:
    """Raises AssertionError with the first thing below TOP that is not as it may be."""
    there = _look(root)
    known = {name for tree in allowed.trees[allowed.floor :] for name in tree}
    accepted: dict[str, set[object]] = {}
    for path in sorted(known | set(there)):
        if path not in there:
            assert None in allowed.of_name(path), f"{path} is not there"
            continue
        found = there[path]
        candidates = {file.identity: file for file in allowed.of_name(path) if file}
        assert candidates, f"{path} is there"
        wrong = {identity: _differs(allowed, found, identity) for identity in candidates}
        accepted[path] = {identity for identity, how in wrong.items() if not how}
        assert accepted[path], f"{path}: {'; '.join(sorted(set(wrong.values())))}"
    for identity, names in allowed.lasting().items():
        assert any(identity in accepted.get(name, ()) for name in names), (
            f"the file of {' or '.join(sorted(names))} is under no name"
        )
    for identity, most in allowed.most_names().items():
        names = {name for name, files in accepted.items() if files == {identity}}
        assert len(names) <= most, f"{' and '.join(sorted(names))} are one file"
    _check_links(there)


class Found:
    """What is there under a name."""

    def __init__(self, path: str) -> None:
        self.status = os.lstat(path)
        mode = self.status.st_mode
        self.kind = "directory" if stat.S_ISDIR(mode) else "file"
        self.data = b""
        self.attribute: bytes | None = None
        if stat.S_ISLNK(mode):
            self.kind = "symlink"
            assert os.readlink(path) == "foo", f"{path}: leads to {os.readlink(path)!r}"
        elif stat.S_ISREG(mode):
            with open(path, "rb") as stream:
                self.data = stream.read()
            try:
                self.attribute = os.getxattr(path, ATTRIBUTE)
            except OSError as error:
                if error.errno not in (errno.ENODATA, errno.EOPNOTSUPP):
                    raise


def _look(root: Sequence[str]) -> dict[str, Found]:
    """Everything below TOP but for what was there before the work."""
    found: dict[str, Found] = {}
    for top in sorted(set(os.listdir(TOP)) - set(root)):
        assert re.fullmatch(r"s\d{4,}", top), f"{top} is there"
        found[top] = Found(f"{TOP}/{top}")
        for path, below, files in os.walk(f"{TOP}/{top}"):
            for name in (*below, *files):
                found[f"{path[len(TOP) + 1 :]}/{name}"] = Found(f"{path}/{name}")
    return found


def _differs(allowed: Allowed, found: Found, identity: object) -> str:
    """How what is there differs from all that this file may be; nothing: it does not."""
    states = allowed.states(identity, allowed.data)
    files = [file for file in states if file]
    # not there when the window begins: of what is written then, any part may be there
    new = [b""] * (states[0] is None)
    if found.kind != files[-1].kind:
        return f"is a {found.kind}, not a {files[-1].kind}"
    versions = [file.data for file in files] + new
    sizes = [len(version) for version in versions]
    if not min(sizes) <= len(found.data) <= max(sizes):
        return f"has {len(found.data)} bytes, not {' or '.join(map(str, sorted(set(sizes))))}"
    for at in range(0, len(found.data), BLOCK):
        block = found.data[at : at + BLOCK]
        may = [version[at : at + BLOCK].ljust(len(block), b"\0") for version in versions]
        if not any(one.startswith(block) for one in may) and (
            bad := [n for n, byte in enumerate(block) if all(byte != one[n] for one in may)]
        ):
            return f"byte {at + bad[0]} was never written so, {len(bad)} bytes of its block"
    states = allowed.states(identity, allowed.attributes)
    values = {file.attribute for file in states if file} | ({None} if states[0] is None else set())
    if found.attribute not in values:
        return (
            f"has the attribute {found.attribute!r}, not {' or '.join(sorted(map(repr, values)))}"
        )
    return ""


def _check_links(there: dict[str, Found]) -> None:
    """Each file has as many names as it says."""
    names: dict[int, list[str]] = {}
    for path, found in there.items():
        if found.kind != "directory":
            names.setdefault(found.status.st_ino, []).append(path)
    for paths in names.values():
        links = there[paths[0]].status.st_nlink
        assert links == len(paths), f"{', '.join(paths)}: has {links} links"
