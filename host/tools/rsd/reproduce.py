# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd artifact` keeps the figures of a paper, with all that repeats them elsewhere.

A description, FILE.toml, is written so:

    name = "my-paper"
    inputs = "work"             # a directory beside FILE.toml; commands run in a copy of it

    [[figures]]                 # any number of these
    name = "figure-3"
    command = "./rsd sim --set ftl=page --precondition steady --requests 20000"
    files = ["figure-3.csv"]    # what the command writes besides its standard output

It must have a name and a figure. A command is shell, and finds ./rsd in its directory.

`pack` runs each command and keeps what it printed. `verify` runs it elsewhere, and says whether
the bytes are the same. If they are not, it says which of the drive, QEMU, the kernel and the image
is another one.
"""

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd import artifacts, cite, packages
from rsd.cache import Cache
from rsd.errors import RsdError, naming
from rsd.guest_run import add_install_argument
from rsd.progress import Progress
from rsd.untar import extract

FORMAT = 1
MANIFEST = "artifact.json"
# In the archive: FIGURE/out is what its command printed, FIGURE/NAME a file that it wrote.
EXPECTED, INPUTS = "expected", "inputs"
PRINTED = "out"
# Commands that have the simulated drive alone
ALONE = ("sim", "sweep")
HOW = "docs/artifacts.md has an example"


@dataclass(frozen=True)
class Figure:
    """A command, and what of it is compared."""

    name: str
    command: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Description:
    """What the file of an artifact says."""

    name: str
    figures: tuple[Figure, ...]
    inputs: Path | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `artifact`."""
    assert __doc__ is not None and parser.epilog is not None
    parser.epilog = f"{__doc__}\n{parser.epilog}"
    parser.add_argument(
        "action",
        choices=("pack", "verify"),
        help="pack runs the commands of FILE.toml, and writes FILE.tar. verify runs those of"
        " FILE.tar, and compares.",
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="A description for pack, an artifact for verify."
    )
    parser.add_argument(
        "--out", type=Path, metavar="TAR", help="Let pack write there (default: beside FILE)."
    )
    parser.add_argument(
        "--figure",
        action="append",
        default=[],
        metavar="NAME",
        help="Verify this one only. Repeatable.",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="Print the commands, and run nothing: an artifact may be somebody else's program.",
    )
    add_install_argument(parser)


def main(arguments: argparse.Namespace) -> int:
    """1 if a figure is not the same."""
    cache, progress = Cache(), Progress()
    if arguments.action == "pack":
        description = read(arguments.file)
        if arguments.list:
            return _list(description.figures)
        packages.ensure(progress, install=not arguments.no_install)
        out = arguments.out or arguments.file.with_suffix(".tar")
        facts = _facts(description.figures, cache, progress)
        pack(description, out, facts, cache, progress)
        progress.say(f"{out}: to be checked by ./rsd artifact verify {out.name}")
        return 0
    with cache.scratch("artifact") as scratch:
        manifest = unpack(arguments.file, scratch)
        figures = [Figure(**{**one, "files": tuple(one["files"])}) for one in manifest["figures"]]
        if unknown := set(arguments.figure) - {figure.name for figure in figures}:
            raise RsdError(f"{arguments.file}: has no figure {min(unknown)!r}", "--list")
        figures = [f for f in figures if not arguments.figure or f.name in arguments.figure]
        if arguments.list:
            return _list(figures)
        packages.ensure(progress, install=not arguments.no_install)
        facts = _facts(figures, cache, progress)
        return _verify(figures, manifest, scratch, facts, progress)


def _facts(figures: Sequence[Figure], cache: Cache, progress: Progress) -> dict[str, Any]:
    """Versions and hashes; those of a guest only where a command has one, since it is built."""
    commands = {name for f in figures for name in re.findall(r"\./rsd (\w+)", f.command)}
    return cite.identity(artifacts.ensure(cache, progress) if commands - {*ALONE} else None)


def _list(figures: Sequence[Figure]) -> int:
    for figure in figures:
        print(f"{figure.name}: {figure.command}")
    return 0


def read(path: Path) -> Description:
    """A description. Raises RsdError that names what is wrong with it."""
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RsdError(f"{path}: {error}", HOW) from error
    if unknown := set(content) - {"name", "inputs", "figures"}:
        raise RsdError(f"{path}: there is no field {min(unknown)!r}", HOW)
    if not isinstance(content.get("name"), str):
        raise RsdError(f"{path}: name is missing, or no text", HOW)
    inputs = path.parent / content["inputs"] if "inputs" in content else None
    if inputs is not None and not inputs.is_dir():
        raise RsdError(f"{path}: inputs: {inputs} is not a directory", HOW)
    figures = tuple(_figure(path, one) for one in content.get("figures", []))
    names = [figure.name for figure in figures]
    if not names or len(set(names)) != len(names):
        raise RsdError(f"{path}: figures are missing, or two have one name", HOW)
    return Description(content["name"], figures, inputs)


def _figure(path: Path, content: Mapping[str, Any]) -> Figure:
    if unknown := set(content) - {"name", "command", "files"}:
        raise RsdError(f"{path}: a figure has no field {min(unknown)!r}", HOW)
    for field in ("name", "command"):
        if not isinstance(content.get(field), str):
            raise RsdError(f"{path}: a figure's {field} is missing, or no text", HOW)
    if not re.fullmatch(r"[\w.-]+", content["name"]):
        raise RsdError(f"{path}: figure {content['name']!r}: letters, digits, _ . - only", HOW)
    files = tuple(content.get("files", ()))
    for name in files:
        if not isinstance(name, str) or Path(name).is_absolute() or ".." in Path(name).parts:
            raise RsdError(f"{path}: file {name!r}: must be inside the command's directory", HOW)
    return Figure(content["name"], content["command"], files)


def pack(
    description: Description,
    out: Path,
    facts: Mapping[str, Any],
    cache: Cache,
    progress: Progress,
) -> None:
    """Run every command, and write the archive. Equal results make equal archives."""
    kept: dict[str, bytes] = {}
    if description.inputs is not None:
        for path in sorted(description.inputs.rglob("*")):
            if path.is_file():
                kept[f"{INPUTS}/{path.relative_to(description.inputs)}"] = path.read_bytes()
    for figure in description.figures:
        with cache.scratch("artifact") as scratch, progress.step(figure.name):
            found = run(figure, description.inputs, scratch / "work")
        for name, data in found.items():
            kept[f"{EXPECTED}/{figure.name}/{name}"] = data
    manifest = {
        "format": FORMAT,
        "name": description.name,
        "figures": [
            {"name": figure.name, "command": figure.command, "files": list(figure.files)}
            for figure in description.figures
        ],
        "made_with": facts,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(kept.items())},
    }
    kept[MANIFEST] = (json.dumps(manifest, indent=2) + "\n").encode()
    unfinished = out.with_name(f"{out.name}.part")
    try:
        with naming(unfinished), tarfile.open(unfinished, "w", format=tarfile.GNU_FORMAT) as tar:
            for name in sorted(kept, key=lambda name: (name != MANIFEST, name)):
                member = tarfile.TarInfo(name)
                member.size = len(kept[name])
                tar.addfile(member, io.BytesIO(kept[name]))
        unfinished.rename(out)
    finally:
        unfinished.unlink(missing_ok=True)


def run(figure: Figure, inputs: Path | None, directory: Path) -> dict[str, bytes]:
    """Run a command in `directory`, which is made; gives its output and its files."""
    if inputs is not None and inputs.is_dir():
        shutil.copytree(inputs, directory)
    else:
        directory.mkdir(parents=True)
    package = Path(__file__).resolve().parents[1]
    launcher = directory / "rsd"
    launcher.write_text(f'#!/bin/sh\nPYTHONPATH="{package}" exec "{sys.executable}" -m rsd "$@"\n')
    launcher.chmod(0o755)
    done = subprocess.run(
        ["sh", "-ec", figure.command],
        cwd=directory,
        env={**os.environ, "COLUMNS": "100", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0:
        raise RsdError(
            f"{figure.name}: exit status {done.returncode} of {figure.command}", "see above"
        )
    found = {PRINTED: done.stdout}
    for name in figure.files:
        if not (directory / name).is_file():
            raise RsdError(f"{figure.name}: {figure.command} wrote no file {name}", HOW)
        found[name] = (directory / name).read_bytes()
    return found


def unpack(archive: Path, target: Path) -> dict[str, Any]:
    """Unpack an artifact into `target`; gives its manifest. Refuses one that is damaged."""
    how = "./rsd artifact pack makes one"
    try:
        with tarfile.open(archive) as tar:
            if left_out := extract(tar, target):
                raise RsdError(f"{archive}: {left_out[0]!r} leads outside", how)
        manifest: dict[str, Any] = json.loads((target / MANIFEST).read_text())
        expected = manifest["sha256"]
    except (tarfile.TarError, OSError, ValueError, KeyError) as error:
        raise RsdError(f"{archive}: no artifact ({error})", how) from error
    if manifest.get("format") != FORMAT:
        raise RsdError(f"{archive}: format {manifest.get('format')}, {FORMAT} is known", how)
    for name, digest in expected.items():
        path = target / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise RsdError(f"{archive}: {name} is damaged", "get the file again")
    return manifest


def _verify(
    figures: Sequence[Figure],
    manifest: Mapping[str, Any],
    scratch: Path,
    facts: Mapping[str, Any],
    progress: Progress,
) -> int:
    others = 0
    for figure in figures:
        with progress.step(figure.name):
            found = run(figure, scratch / INPUTS, scratch / "runs" / figure.name)
        other = [
            f"{figure.name}: {name} is not the same: {_first_difference(expected, data)}"
            for name, data in found.items()
            if (expected := (scratch / EXPECTED / figure.name / name).read_bytes()) != data
        ]
        print("\n".join(other) if other else f"{figure.name}: the same bytes")
        others += bool(other)
    print(f"{len(figures) - others} of {len(figures)} figures of {manifest['name']} are the same")
    if others:
        found_others = cite.differences(manifest["made_with"], facts)
        for line in found_others or ["every version and hash is the same"]:
            print(f"  {line}")
    return int(bool(others))


def _first_difference(expected: bytes, found: bytes) -> str:
    """The first line that is another."""
    theirs, ours = (data.decode(errors="replace").splitlines() for data in (expected, found))
    for number, (left, right) in enumerate(zip(theirs, ours, strict=False), 1):
        if left != right:
            return f"line {number} was {left!r}, is {right!r}"
    return f"{len(theirs)} lines were there, {len(ours)} are"
