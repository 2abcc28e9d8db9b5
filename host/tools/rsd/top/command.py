# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of `./rsd top`."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rsd.errors import RsdError
from rsd.progress import Progress
from rsd.top import page, runs, screen
from rsd.top.look import Look, look
from rsd.top.view import View, view


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `top`."""
    parser.add_argument(
        "media",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="The drive's media file (default: that of the only drive in use on this machine).",
    )
    parser.add_argument(
        "--every",
        type=_seconds,
        default=1.0,
        metavar="SECONDS",
        help="The time between two looks, by your clock (default: 1).",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="Print one view, of the time between two looks, and end. Without a terminal, this is"
        " what top does.",
    )
    parser.add_argument(
        "--serve",
        type=int,
        nargs="?",
        const=8002,
        metavar="PORT",
        help="Show the views to browsers on this machine, at this port (default: 8002).",
    )


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text}: must be above 0")
    return value


def views(run: runs.Run) -> Callable[[], View | None]:
    """What gives the next view of a drive, None when its run has ended."""
    before: Look | None = None

    def following() -> View | None:
        nonlocal before
        if before is not None and run.pid and not Path(f"/proc/{run.pid}").exists():
            return None
        try:
            now = look(run.media)
        except RsdError:
            if before is None:
                raise
            return None
        shown = view(str(run.media), before or now, now, real_time=run.real_time)
        before = now
        return shown

    return following


def main(arguments: argparse.Namespace) -> int:
    """Show a drive until its run ends, or Ctrl-C."""
    run = runs.find(arguments.media)
    following = views(run)
    if arguments.serve is not None:
        with page.server(following, arguments.every, arguments.serve) as server:
            Progress().say(f"http://127.0.0.1:{server.server_port}/ until Ctrl-C")
            server.serve_forever()
    elif arguments.once or not sys.stdout.isatty():
        shown = following()
        time.sleep(arguments.every)
        screen.once(following() or shown)
    else:
        screen.follow(following, arguments.every)
        Progress().say("the run has ended")
    return 0
