"""The cache: finished entries keyed by their inputs, and warm build trees.

An entry is a directory `KIND/KEY` that appears by one rename when it is complete. It is
never changed afterwards, so readers need no lock. Two processes that want the same
missing entry meet at a file lock; the second finds the first one's work.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from rsd.errors import RsdError


def default_root() -> Path:
    """$RSD_CACHE, else rsd-nvme under $XDG_CACHE_HOME or ~/.cache."""
    if explicit := os.environ.get("RSD_CACHE"):
        return Path(explicit).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "rsd-nvme"


def _locked_soon(stream: IO[str]) -> bool:
    """Lock it, if that takes no longer than nobody would notice."""
    for _ in range(20):
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.1)
    return False


def hash_inputs(*inputs: object) -> str:
    """A key for anything that JSON can write (paths and tuples included)."""
    text = json.dumps(inputs, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def hash_file(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# What is said of a program does not change what is built.
DOCUMENTS = (".md", ".8")


def hash_tree(root: Path, skip_suffixes: Iterable[str] = ()) -> str:
    """A hash over names, execute bits and contents below `root` (no times, no owners)."""
    digest = hashlib.sha256()
    skip = tuple(skip_suffixes)
    files = sorted(p for p in root.rglob("*") if p.is_file() and p.suffix not in skip)
    for path in files:
        executable = os.access(path, os.X_OK)
        digest.update(f"{path.relative_to(root)}\0{executable}\0{hash_file(path)}\n".encode())
    return digest.hexdigest()


def remove_tree(path: Path) -> None:
    """Delete a directory; one that is not there is fine."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


class Cache:
    """All of the runner's files that outlive a command."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or default_root()
        try:
            for name in ("locks", "logs", "tmp"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            # Held as long as we live: what we use is not to be cleaned away.
            self._in_use = (self.root / "locks" / "in-use").open("w")
            fcntl.flock(self._in_use, fcntl.LOCK_SH)
        except OSError as error:
            raise RsdError(
                f"cache {self.root}: {error.strerror}",
                "set RSD_CACHE to a directory on a disk with 10 GB free that you can write",
            ) from error

    def claim(self) -> None:
        """Become the only user of the cache, for good. RsdError if there are others."""
        try:
            fcntl.flock(self._in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RsdError(
                f"cache {self.root}: another rsd command is using it",
                "wait for it to end, or end it; then try again",
            ) from None

    def log(self, name: str) -> Path:
        """Where the output of the step `name` goes (overwritten by its next run)."""
        return self.root / "logs" / f"{name}.log"

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold `name` against other threads and processes. Waits as long as it takes.

        The file has the holder's process id: who waits for another process says so.
        """
        with (self.root / "locks" / name).open("a+") as stream:
            if not _locked_soon(stream):
                stream.seek(0)
                holder = stream.read()
                if holder != str(os.getpid()):
                    print(f"rsd: waiting for process {holder}: {name}", file=sys.stderr, flush=True)
                fcntl.flock(stream, fcntl.LOCK_EX)
            stream.truncate(0)
            stream.write(str(os.getpid()))
            stream.flush()
            yield

    def find(self, kind: str, key: str) -> Path | None:
        """A finished entry, or nothing."""
        path = self.root / kind / key
        return path if path.is_dir() else None

    def entry(self, kind: str, key: str, build: Callable[[Path], None]) -> Path:
        """The entry `kind/key`; when it is missing, `build` fills a directory for it.

        If `build` raises (Ctrl-C included), nothing of the entry remains.
        """
        final = self.root / kind / key
        if final.is_dir():
            return final
        with self.lock(f"{kind}-{key}"):
            if final.is_dir():
                return final
            # Whatever is here was left by a process that was killed: we hold the lock.
            partial = self.root / "tmp" / f"{kind}-{key}"
            remove_tree(partial)
            partial.mkdir()
            try:
                build(partial)
                final.parent.mkdir(parents=True, exist_ok=True)
                partial.rename(final)
            finally:
                remove_tree(partial)
        return final

    def work(self, name: str) -> Path:
        """A build tree that is kept warm between builds. Hold a lock while using it."""
        path = self.root / "work" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    @contextlib.contextmanager
    def scratch(self, purpose: str) -> Iterator[Path]:
        """A directory for one run, deleted afterwards.

        Its name carries our process id, so that what a killed run left behind can be told
        from what is in use, and goes when the next run starts.
        """
        base = self.root / "tmp"
        self._remove_leftovers(base)
        number = 0
        while True:
            path = base / f"run.{os.getpid()}.{purpose}.{number}"
            try:
                path.mkdir()
                break
            except FileExistsError:
                number += 1
        try:
            yield path
        finally:
            remove_tree(path)

    def _remove_leftovers(self, base: Path) -> None:
        """Delete what killed processes left: scratch directories, and entries half built."""
        for old in base.iterdir():
            if old.name.startswith("run."):
                pid = old.name.split(".")[1]
                if not Path(f"/proc/{pid}").exists():
                    remove_tree(old)
                continue
            # Who builds an entry holds the lock of its name.
            lock = self.root / "locks" / old.name
            with lock.open("a") as stream, contextlib.suppress(BlockingIOError):
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(old)
