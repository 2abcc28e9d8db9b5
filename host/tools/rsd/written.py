# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives that were written before a guest starts: rsdsim writes them, and the cache keeps them."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rsd import sim, systems
from rsd.cache import Cache, hash_inputs
from rsd.errors import RsdError
from rsd.layers import layers
from rsd.progress import Progress, Step, heartbeat_s

# Capacities of writes, at most: rsdsim's own limit
MOST_CAPACITIES = 1000

# What rsdsim printed, beside the media file
AGING = "aging.json"
WARNINGS = "warnings"
# What it prints while it runs
HOW_FAR = re.compile(r"rsdsim: (.* a second.*)")


def check(system: str, properties: Mapping[str, str], how: str | None, media: Path | None) -> None:
    """Refuse what cannot be written before, and say why. The properties are those of --set."""
    drive = systems.SYSTEMS[systems.check_name(system)]
    if drive is None or drive.raw_media:
        raise RsdError(
            f"--precondition: system {system} has no flash that could be written before",
            "--system page-ftl, or another one of ours",
        )
    # the first of the list is the drive's default
    ftl = properties.get("ftl", drive.namespace.get("ftl", next(iter(layers()))))
    layer = layers().get(ftl)
    name = f"{system} with ftl={ftl}" if "ftl" in properties else system
    if layer and layer.rotates:
        raise RsdError(
            f"--precondition: system {name} is a disk, which is as fast when it is empty",
            "leave --precondition and --fill out",
        )
    if layer and layer.zoned and how == "steady":
        raise RsdError(
            f"--precondition steady: {name} has zones; its host cleans them, so the drive has no"
            " write amplification that could become steady",
            "--precondition fill, or a volume in steady state as in"
            " docs/preconditioning.md#file-systems",
        )
    if how not in (None, "fill", "steady"):
        try:
            allowed = 0 <= float(how) <= MOST_CAPACITIES
        except ValueError:
            allowed = False
        if not allowed:
            raise RsdError(
                f"--precondition {how}: must be fill, steady or a number of capacities, up to"
                f" {MOST_CAPACITIES}",
                "docs/preconditioning.md",
            )
    if media is not None and media.exists():
        raise RsdError(
            f"--precondition: {media} exists, and may hold what you want to keep",
            "name a new --media FILE, or leave --precondition out to go on with this one",
        )


def arguments(system: str, properties: Mapping[str, str]) -> list[str]:
    """rsdsim's options for the drive of this system, with these other properties of it."""
    options = dict(systems.get_drive(system).namespace) | dict(properties)
    del options["media"]
    words = ["--preset", options.pop("preset")]
    for name, value in options.items():
        words += ["--set", f"{name}={value}"]
    return words


def drive(
    system: str,
    properties: Mapping[str, str],
    how: str,
    fill: float | None,
    cache: Cache,
    progress: Progress,
) -> Path:
    """A media file in the cache, written as `how` says of rsdsim. It is not to be changed.

    Properties that rsdsim does not have, such as op-log, are of the run alone.
    """
    program = sim.ensure(cache, progress)
    listed = subprocess.run([program.path, "--list"], capture_output=True, text=True, check=True)
    known = set(re.findall(r"^([a-z][\w-]*) ", listed.stdout, re.MULTILINE)) | {"preset"}
    words = arguments(system, {k: v for k, v in properties.items() if k in known})
    words += ["--precondition", how]
    if fill is not None:
        words += ["--fill", f"{fill:g}"]
    media = make(
        f"{system}: writing the drive before the guest starts", words, program, cache, progress
    )
    for line in (media.parent / WARNINGS).read_text().splitlines():
        progress.say(line)
    return media


def make(
    title: str, words: list[str], program: sim.Simulator, cache: Cache, progress: Progress
) -> Path:
    """The media file that rsdsim makes with these options; made once."""

    def build(partial: Path) -> None:
        media = partial / "media"
        with progress.step(title) as step:
            command = [program.path, "--age", media, *words, "--json"]
            status, said = _run(command, partial / AGING, step)
            if status != 0:
                raise RsdError(f"{title}: {said.strip()}")
            warnings = re.findall(r"^rsdsim: (warning: .*\n)", said, re.MULTILINE)
            (partial / WARNINGS).write_text("".join(warnings))
            shrink_media(media)

    return cache.entry("aged", hash_inputs(program.identity, words), build) / "media"


def _run(command: Sequence[str | Path], output: Path, step: Step) -> tuple[int, str]:
    """Runs rsdsim: its exit status, and what it says. The step shows how far it is."""
    said: list[str] = []
    env = {**os.environ, "RSD_HEARTBEAT_S": str(heartbeat_s() / 4)}
    with output.open("w") as stdout:
        process = subprocess.Popen(
            command, stdout=stdout, stderr=subprocess.PIPE, text=True, errors="replace", env=env
        )
        with process:
            assert process.stderr is not None
            try:
                for line in process.stderr:
                    if match := HOW_FAR.match(line):
                        step.detail(match[1])
                    else:
                        said.append(line)
            except BaseException:
                process.kill()
                raise
    return process.returncode, "".join(said)


def copy_media(source: Path, target: Path) -> None:
    """A copy that can be changed; holes stay holes.

    What host-sync keeps beside a file that was there is not the copy's.
    """
    target.with_name(f"{target.name}.sync").unlink(missing_ok=True)
    subprocess.run(["cp", "--sparse=always", "--reflink=auto", source, target], check=True)


def shrink_media(media: Path) -> None:
    """Give the disk its zeroes back: aged drives have little else."""
    subprocess.run(["fallocate", "--dig-holes", media], check=True)
