# SPDX-License-Identifier: GPL-2.0-or-later
"""A browser for all tests of a file. They are skipped where Chromium is not installed."""

from collections.abc import Iterator

import chromium
import pytest


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    if missing := chromium.missing():
        pytest.skip(f"{' and '.join(missing)} not found: apt-get install chromium chromium-driver")
    with chromium.start(tmp_path_factory.mktemp("browser") / "log") as started:
        yield started
