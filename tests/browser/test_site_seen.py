# SPDX-License-Identifier: GPL-2.0-or-later
"""The documents' site in a browser: it fits, its search finds, its pages ask for nothing else."""

import functools
import http.server
import threading
from collections.abc import Iterator

import pytest
from chromium import Browser

from rsd import site
from rsd.cache import Cache
from rsd.progress import Progress

PAGES = ("index.html", "docs/seeing.html", "hw/rsd-nvme/index.html", "docs/comparing.html")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def served(rsd_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site's address."""
    out = tmp_path_factory.mktemp("site") / "out"
    site.build(out, rsd_cache, Progress())
    handler = functools.partial(_Quiet, directory=str(out))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("width", [360, 1280])
def test_pages_fit(browser: Browser, served: str, width: int) -> None:
    browser.show(width, 800, dark=False)
    browser.fetched(), browser.complaints()
    for name in PAGES:
        browser.open(served + name)
        assert browser.run("return document.documentElement.scrollWidth") <= width, name
        assert browser.run("return [...document.images].every((one) => one.naturalWidth > 0)")
    assert browser.complaints() == []
    assert [url for url in browser.fetched() if not url.startswith(served)] == []


def test_the_search_finds(browser: Browser, served: str) -> None:
    """A property's name, typed into the field, leads to pages that have it."""
    browser.show(1280, 800, dark=False)
    browser.open(served)
    browser.run(
        "const field = document.querySelector('input[name=q]'); field.value = 'over-provision';"
        " field.form.submit();"
    )
    browser.wait("return document.querySelectorAll('#mkdocs-search-results a').length > 1")
    found = browser.run(
        "return [...document.querySelectorAll('#mkdocs-search-results a')].map((a) => a.href)"
    )
    assert any("hw/rsd-nvme" in link for link in found), found
    browser.open(found[0])
    assert browser.run("return document.body.innerText.includes('over-provision')")


def test_links_of_the_navigation_lead_to_their_pages(browser: Browser, served: str) -> None:
    browser.open(served)
    links = browser.run(
        "return [...document.querySelectorAll('nav a.reference')].map((a) => a.href)"
    )
    assert len(links) > 20
    for link in links:
        browser.open(link)
        assert browser.run("return document.querySelector('h1') !== null"), link
    assert browser.complaints() == []
