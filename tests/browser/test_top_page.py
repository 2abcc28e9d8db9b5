# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of ./rsd top in a browser: it goes on by itself, and fits a phone."""

import subprocess
import threading
from pathlib import Path

import pytest
from chromium import Browser

from rsd import sim
from rsd.cache import Cache
from rsd.progress import Progress
from rsd.top import command, page, runs
from rsd.top.look import look


@pytest.mark.parametrize("width, dark", [(360, False), (360, True), (1280, False), (1280, True)])
def test_the_page(
    browser: Browser, rsd_cache: Cache, tmp_path: Path, width: int, dark: bool
) -> None:
    media = tmp_path / "media"
    program = sim.ensure(rsd_cache, Progress()).path
    drive = ("--set", "ways=2", "--set", "blocks=64", "--set", "pages=32")
    subprocess.run(
        [program, *drive, "--age", media, "--precondition", "1"], check=True, capture_output=True
    )
    browser.show(width, 800, dark=dark)
    with page.server(command.views(runs.find(media)), 0.1, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            browser.open(f"http://127.0.0.1:{server.server_port}/")
            assert browser.complaints() == []
            assert browser.run("return document.querySelectorAll('table').length") >= 5
            assert browser.run("return document.documentElement.scrollWidth") <= width
            subprocess.run(
                [program, "--media", media, "--requests", "1234"], check=True, capture_output=True
            )
            written = f"{look(media).counters['host_write_pages']:,}"
            browser.wait("return document.body.innerText.includes(arguments[0])", written)
            media.unlink()
            browser.wait("return document.body.innerText.includes('The run has ended.')")
            assert [url for url in browser.fetched() if "127.0.0.1" not in url] == []
        finally:
            server.shutdown()
            thread.join()
            browser.open("about:blank")
            browser.complaints()
