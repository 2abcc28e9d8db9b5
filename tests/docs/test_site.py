# SPDX-License-Identifier: GPL-2.0-or-later
"""The documents make a site: every link leads somewhere, nothing comes from elsewhere."""

import json
import re
from pathlib import Path

import pytest

from rsd import site
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache
from rsd.errors import StepFailed
from rsd.progress import Progress


@pytest.fixture(scope="module")
def built_site(rsd_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MkDocs is strict: a link or an anchor that is not there ends it."""
    out = tmp_path_factory.mktemp("site") / "out"
    site.build(out, rsd_cache, Progress())
    return out


def test_every_page_is_in_the_navigation() -> None:
    text = site.CONFIGURATION.read_text().split("\nnav:\n")[1]
    named = re.findall(r": (\S+\.md)$", text, re.M)
    assert sorted(named) == sorted(str(page) for page in site.documents())


def test_every_page_is_there_and_found(built_site: Path) -> None:
    index = json.loads((built_site / "search/search_index.json").read_text())
    found = {entry["location"].split("#")[0] for entry in index["docs"]}
    for page in site.documents():
        name = "index.html" if page.name == "README.md" else f"{page.stem}.html"
        assert (built_site / page.parent / name).exists(), page
        assert (page.parent / name).as_posix() in found, page


def test_lists_and_tables_are_some(built_site: Path) -> None:
    """A table or a list that MkDocs does not see is a paragraph with bars or dashes."""
    for page in built_site.rglob("*.html"):
        text = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", page.read_text(), flags=re.S)
        assert not re.search(r"<p>\|", text), page
        assert not re.search(r"^(- |\| -)", text, re.M), page


def test_a_source_file_has_a_page(built_site: Path) -> None:
    text = (built_site / "host/tools/rsd/compare/age.py.html").read_text()
    assert "Ages a file system" in text
    assert "plain.c.html" in (built_site / "tests/unit/ftl-plain/index.html").read_text()


def test_nothing_is_fetched_from_elsewhere(built_site: Path) -> None:
    for page in built_site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe)[^>]*>", page.read_text()):
            assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", tag), f"{page}: {tag}"


@pytest.mark.parametrize("link", ["docs/none.md", "docs/drive.md#nowhere"])
def test_a_link_that_leads_nowhere_is_an_error(
    rsd_cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("docs/drive.md", "docs/mkdocs.yml"):
        (tmp_path / name).write_text("# The drive\n")
    (tmp_path / "README.md").write_text(f"# Title\n[here]({link})\n")
    text = (REPOSITORY / "docs/mkdocs.yml").read_text().split("nav:\n  -")[0]
    (tmp_path / "docs/mkdocs.yml").write_text(text)
    monkeypatch.setattr(site, "REPOSITORY", tmp_path)
    monkeypatch.setattr(site, "CONFIGURATION", tmp_path / "docs/mkdocs.yml")
    with pytest.raises(StepFailed, match=re.escape(link.split("#")[-1])):
        site.build(tmp_path / "out", rsd_cache, Progress())
