# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd watch`: what each die did in a run that was recorded, as a file for Perfetto.

A trace has the host's commands and not what the dies did for them. rsdsim repeats the trace, to the
nanosecond, and writes down what each die does meanwhile.
"""

import argparse
import gzip
import shutil
import subprocess
from pathlib import Path

from rsd import sim, written
from rsd.cache import Cache
from rsd.errors import RsdError, naming
from rsd.progress import Progress
from rsd.watch import viewer

VIEWER = "https://ui.perfetto.dev"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `watch`."""
    parser.add_argument(
        "trace",
        type=Path,
        metavar="FILE",
        help="The trace: ./rsd run --set trace=FILE or ./rsd sim --record FILE writes one.",
    )
    parser.add_argument(
        "--media",
        type=Path,
        metavar="COPY",
        help="A copy of the media file as it was when the recording began; it is not changed. A new"
        " drive needs none.",
    )
    parser.add_argument(
        "--from",
        dest="begin",
        metavar="TIME",
        help="Let the timeline begin at this time of the trace, such as 1.5ms (default: 0).",
    )
    parser.add_argument(
        "--until",
        dest="end",
        metavar="TIME",
        help="Let the timeline end at this time of the trace (default: the trace's end).",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="Write the timeline there, packed by gzip (default: beside the trace, its name with"
        " .json.gz).",
    )
    parser.add_argument(
        "--serve",
        type=int,
        nargs="?",
        const=8001,
        metavar="PORT",
        help="Then show it in Perfetto's interface on this machine, at this port, without a network"
        " (default: 8001). The first time, the interface is installed into the cache.",
    )


def main(arguments: argparse.Namespace) -> int:
    """Write the timeline; gives rsdsim's exit status."""
    if not arguments.trace.is_file():
        raise RsdError(
            f"{arguments.trace}: there is no such trace",
            "record one: ./rsd run --set trace=FILE -- CMD, or ./rsd sim --record FILE",
        )
    out = arguments.out or arguments.trace.with_name(f"{arguments.trace.name}.json.gz")
    cache, progress = Cache(), Progress()
    simulator = sim.ensure(cache, progress)
    with cache.scratch("watch") as scratch:
        plain = scratch / "timeline"
        command = [simulator.path, "--replay", arguments.trace, "--check", "--timeline", plain]
        if arguments.media:
            # The replay writes to it.
            written.copy_media(arguments.media, scratch / "media")
            command += ["--media", scratch / "media"]
        for name, value in (("--from", arguments.begin), ("--until", arguments.end)):
            command += [name, value] if value else []
        status = subprocess.run(command, check=False).returncode
        if not plain.exists():
            return status
        _pack(plain, out)
    if arguments.serve is None:
        progress.say(f"the timeline is {out}: open {VIEWER} in a browser, and drop the file on it")
        return status
    with viewer.server(viewer.ensure(cache, progress), out, arguments.serve) as served:
        progress.say(f"{viewer.address(served)} until Ctrl-C")
        served.serve_forever()
    return status


def _pack(plain: Path, out: Path) -> None:
    # Neither name nor time: the same trace gives the same bytes.
    with (
        plain.open("rb") as source,
        naming(out),
        out.open("wb") as target,
        gzip.GzipFile("", "wb", fileobj=target, mtime=0) as packed,
    ):
        shutil.copyfileobj(source, packed)
