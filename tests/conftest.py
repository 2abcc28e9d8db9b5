# SPDX-License-Identifier: GPL-2.0-or-later
"""What every test may ask for: the cache, QEMU, a built guest."""

from pathlib import Path

import pytest

from rsd import artifacts, qemu
from rsd.artifacts import REPOSITORY, Artifacts
from rsd.cache import Cache
from rsd.progress import Progress

# The cheap and telling ones first: a lint error or a broken unit needs no guest to show.
ORDER = ("lint", "unit", "model", "docs", "tools", "sim", "device", "runner", "compare", "guest")


@pytest.fixture(scope="session")
def rsd_cache() -> Cache:
    """The cache that ./rsd uses."""
    return Cache()


@pytest.fixture(scope="session")
def qemu_binary(rsd_cache: Cache) -> Path:
    """Our QEMU, built from this repository's patches and device if it is not yet."""
    return qemu.ensure(rsd_cache, Progress(), REPOSITORY) / qemu.BINARY


@pytest.fixture(scope="session")
def built(rsd_cache: Cache) -> Artifacts:
    """Everything a guest needs. A test that uses it is never skipped: it fails without."""
    return artifacts.ensure(rsd_cache, Progress())


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rsd")
    group.addoption("--long", action="store_true", help="also what takes minutes or hours")
    group.addoption("--volume", default="rfs", help="file system of tests/fs/guest (rfs)")
    group.addoption("--guest-kernel", default="release", help="kernel of tests/fs/guest (release)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the folders in ORDER, and in them the tests without a guest first."""
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    root = Path(__file__).parent

    def rank(item: pytest.Item) -> tuple[int, bool]:
        folder = item.path.relative_to(root).parts[0]
        guest = item.get_closest_marker("guest") is not None
        return ORDER.index(folder) if folder in ORDER else len(ORDER), guest

    items.sort(key=rank)
