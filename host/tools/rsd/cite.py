# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd cite`: how to cite this program, with the versions and hashes that decide its figures."""

import argparse
import hashlib
import json
import re
import subprocess
from collections.abc import Mapping
from typing import Any

from rsd import __version__, artifacts, packages
from rsd.artifacts import REPOSITORY, Artifacts
from rsd.cache import Cache, hash_tree
from rsd.errors import RsdError
from rsd.guest_run import add_install_argument
from rsd.progress import Progress

TITLE = "rsd-nvme: a virtual {SSD} in {QEMU}, a file system made for it, and tools to measure both"
AUTHOR = "{The rsd-nvme maintainers}"

# What rsdsim prints follows from these alone.
DRIVE = ("hw/rsd-nvme/core", "host/tools/rsdsim")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `cite`."""
    parser.add_argument(
        "--json", action="store_true", help="Print the versions and hashes as JSON."
    )
    parser.add_argument(
        "--compare",
        metavar="FILE",
        help="Print what differs from FILE, which --json wrote. The exit status is 1 if something"
        " does.",
    )
    add_install_argument(parser)


def main(arguments: argparse.Namespace) -> int:
    """Print it. What is not built yet is built, since its hash is asked for."""
    progress = Progress()
    packages.ensure(progress, install=not arguments.no_install)
    facts = identity(artifacts.ensure(Cache(), progress))
    if arguments.compare:
        return _compare(facts, arguments.compare)
    if arguments.json:
        print(json.dumps(facts, indent=2))
    else:
        print(bibtex(facts))
        for name, value in facts["versions"].items():
            print(f"{name:10} {value}")
        for name, value in facts["sha256"].items():
            print(f"{name:10} sha256 {value}")
    return 0


def identity(built: Artifacts | None) -> dict[str, Any]:
    """What decides a figure: of a guest all of it, of rsdsim the drive alone."""
    versions = {"rsd-nvme": __version__, **_commit()}
    hashes = {"drive": drive_hash()}
    if built is not None:
        versions |= {"qemu": _qemu_version(built), "linux": _linux_version(built)}
        hashes |= built.hashes
    return {"versions": versions, "sha256": hashes}


def drive_hash() -> str:
    """Of the sources of the simulated drive; no document changes it."""
    trees = [hash_tree(REPOSITORY / folder, (".md",)) for folder in DRIVE]
    return hashlib.sha256(" ".join(trees).encode()).hexdigest()


def _commit() -> dict[str, str]:
    """Of a clone: its commit, and whether files differ from it."""
    command = ["git", "-C", REPOSITORY, "describe", "--always", "--dirty", "--abbrev=40"]
    if not (REPOSITORY / ".git").exists():
        return {}
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {"commit": done.stdout.strip()} if done.returncode == 0 else {}


def _qemu_version(built: Artifacts) -> str:
    done = subprocess.run([built.qemu, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0].removeprefix("QEMU emulator version ")


def _linux_version(built: Artifacts) -> str:
    """By the guest's modules, whose folder is named so."""
    return ", ".join(sorted(path.name for path in built.modules.iterdir()))


def bibtex(facts: Mapping[str, Any]) -> str:
    """An entry whose note says which QEMU, kernel and image the figures are of."""
    versions, hashes = facts["versions"], facts["sha256"]
    parts = [
        f"QEMU {versions['qemu'].split()[0]} {hashes['qemu'][:16]}",
        f"Linux {versions['linux']} {hashes['kernel'][:16]}",
        f"image {hashes['root'][:16]}",
        f"drive {hashes['drive'][:16]}",
    ]
    if "commit" in versions:
        parts.insert(0, f"commit {versions['commit']}")
    fields = {
        "title": f"{{{TITLE}}}",
        "author": f"{{{AUTHOR}}}",
        "version": f"{{{versions['rsd-nvme']}}}",
        "note": f"{{{_escaped('; '.join(parts))}}}",
    }
    return "\n".join(
        ["@software{rsd-nvme,", *(f"  {name} = {value}," for name, value in fields.items()), "}\n"]
    )


def _escaped(text: str) -> str:
    return re.sub(r"([_%#&])", r"\\\1", text)


def _compare(facts: Mapping[str, Any], name: str) -> int:
    try:
        with open(name) as stream:
            other = json.load(stream)
        found = list(differences(other, facts))
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise RsdError(f"--compare {name}: {error}", "./rsd cite --json >FILE makes one") from error
    for line in found:
        print(line)
    return int(bool(found))


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """A line for each version or hash that is another here."""
    return [
        f"{name}: {theirs[kind].get(name)} there, {ours[kind].get(name)} here"
        for kind in ("versions", "sha256")
        for name in {**theirs[kind], **ours[kind]}
        if theirs[kind].get(name) != ours[kind].get(name)
    ]
