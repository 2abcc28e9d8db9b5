# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd site`: the documents as a web site with search, made by MkDocs.

MkDocs is installed for this alone, from docs/requirements.txt, into the cache. It is given copies
of the pages: its Markdown wants a blank line before lists and tables, and a link to a source file
is to lead to a page that shows it.
"""

import argparse
import functools
import http.server
import os
import re
import shutil
import sys
from pathlib import Path

from rsd import pip
from rsd.artifacts import OUTPUTS, REPOSITORY
from rsd.cache import Cache, hash_file, hash_inputs
from rsd.errors import RsdError, naming
from rsd.progress import Progress
from rsd.steps import run_logged

DEFAULT_OUT = OUTPUTS / "site"
CONFIGURATION = REPOSITORY / "docs" / "mkdocs.yml"
REQUIREMENTS = REPOSITORY / "docs" / "requirements.txt"

# Folders of the repository without documents of ours.
NOT_HERE = ("build", ".git", ".pytest_cache", ".ruff_cache")

LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^(```.*?^```$)", re.M | re.S)
# A line that is no item and no table, and one that begins a list or a table behind it
BEGINS = re.compile(r"^(?!- |\d+\. |\||\s)(.*\S.*)\n(?=- |1\. |\|)", re.M)
IMAGES = (".svg", ".png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `site`."""
    parser.add_argument(
        "--out",
        type=Path,
        default=DEFAULT_OUT,
        metavar="DIR",
        help="Write the site there. An older one there is replaced (default: build/site).",
    )
    parser.add_argument(
        "--serve",
        type=int,
        nargs="?",
        const=8000,
        metavar="PORT",
        help="Then serve it to browsers on this machine, at this port (default: 8000).",
    )


def main(arguments: argparse.Namespace) -> int:
    """Make the site; a link that leads nowhere is an error."""
    cache, progress = Cache(), Progress()
    build(arguments.out, cache, progress)
    progress.say(f"the site is {arguments.out / 'index.html'}")
    if arguments.serve is not None:
        handler = functools.partial(
            http.server.SimpleHTTPRequestHandler, directory=str(arguments.out)
        )
        with http.server.ThreadingHTTPServer(("127.0.0.1", arguments.serve), handler) as server:
            progress.say(f"http://127.0.0.1:{server.server_port}/ until Ctrl-C")
            server.serve_forever()
    return 0


def build(out: Path, cache: Cache, progress: Progress) -> None:
    """Write the site to `out`, which is empty, a former site or not there."""
    if out.exists() and any(out.iterdir()) and not (out / "search").is_dir():
        raise RsdError(f"--out {out}: not empty, and no site", "name another directory")
    packages = mkdocs(cache, progress)
    with cache.scratch("site") as scratch, progress.step("site") as step, naming(out):
        stage(scratch / "pages")
        shutil.copy2(CONFIGURATION, scratch / "mkdocs.yml")
        with (scratch / "mkdocs.yml").open("a") as stream:
            stream.write("docs_dir: pages\n")
        run_logged(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", out.absolute()],
            step=step,
            log=cache.log("site"),
            hint="a warning names the page and the link",
            cwd=scratch,
            env={"PYTHONPATH": str(packages), "SOURCE_DATE_EPOCH": "0", "NO_MKDOCS_2_WARNING": "1"},
        )


def mkdocs(cache: Cache, progress: Progress) -> Path:
    """A directory of Python packages."""

    def install(partial: Path) -> None:
        pip.install(REQUIREMENTS, partial, "MkDocs", cache, progress)

    return cache.entry("mkdocs", hash_inputs(sys.version, hash_file(REQUIREMENTS)), install)


def documents() -> list[Path]:
    """Every page of the repository, relative to its root."""
    found = []
    for directory, folders, files in os.walk(REPOSITORY):
        folders[:] = sorted(name for name in folders if name not in NOT_HERE)
        found += [Path(directory, name) for name in sorted(files) if name.endswith(".md")]
    return [path.relative_to(REPOSITORY) for path in found]


def stage(target: Path) -> None:
    """Copy the pages, and make pages of what they link to."""
    for page in documents():
        text = (REPOSITORY / page).read_text()
        place = target / page
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(spaced(LINK.sub(functools.partial(_linked, page, target), text)))


def spaced(text: str) -> str:
    """With the blank lines that MkDocs's Markdown needs, and GitHub's does not."""
    parts = FENCE.split(text)
    return "".join(
        part if part.startswith("```") else BEGINS.sub(r"\1\n\n", part) for part in parts
    )


def _linked(page: Path, target: Path, match: re.Match[str]) -> str:
    """The link as it must be on the site; what it leads to is staged."""
    link, anchor = match[1], match[2] or ""
    path = (REPOSITORY / page.parent / link).resolve()
    if not path.exists() or not path.is_relative_to(REPOSITORY) or path.suffix == ".md":
        return match[0]
    below = path.relative_to(REPOSITORY)
    if path.is_dir():
        if not (path / "README.md").exists():
            _stage_folder(path, target / below)
        return f"]({link.rstrip('/')}/README.md)"
    place = target / below
    place.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in IMAGES:
        shutil.copy2(path, place)
        return match[0]
    place.with_name(f"{place.name}.md").write_text(_source(path))
    return f"]({link}.md{anchor})"


def _stage_folder(folder: Path, place: Path) -> None:
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    place.mkdir(parents=True, exist_ok=True)
    for path in files:
        (place / f"{path.name}.md").write_text(_source(path))
    listed = "".join(f"- [{path.name}]({path.name}.md)\n" for path in files)
    title = folder.relative_to(REPOSITORY)
    (place / "README.md").write_text(f"# {title}\n\n{listed}")


def _source(path: Path) -> str:
    """A page that shows a file."""
    text = path.read_text()
    return f"# {path.relative_to(REPOSITORY)}\n\n~~~~~~text\n{text}~~~~~~\n"
