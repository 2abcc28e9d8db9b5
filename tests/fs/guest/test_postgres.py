# SPDX-License-Identifier: GPL-2.0-or-later
"""PostgreSQL without images of whole pages in its log: the power is cut, and no page is torn."""

from pathlib import Path

import pytest
from databases import CUT, OPS, cut
from mounted import Run, Volume

from rsd import artifacts
from rsd.artifacts import Artifacts
from rsd.bench import postgres
from rsd.cache import Cache
from rsd.progress import Progress

pytestmark = pytest.mark.guest

WORK = f"""
{postgres.prepare(full_page_writes=False)}
sync
first=$(ops)
{postgres.transfers(4, 200)}
{postgres.stop("immediate")}
: >/tmp/promised
"""


@pytest.fixture
def parts(rsd_cache: Cache) -> Artifacts:
    """A guest that has PostgreSQL beside its own packages."""
    return artifacts.ensure(rsd_cache, Progress(), packages=[postgres.PACKAGE])


@pytest.mark.long
@pytest.mark.parametrize("points", [10, 1000])
def test_postgres_without_whole_pages(
    run: Run, volume: Volume, tmp_path: Path, points: int
) -> None:
    """At each point: no page is torn, and each transaction is there as a whole or not at all."""
    if volume.system != "rsd":
        pytest.skip("others tear pages")
    values = {"points": points, "program": "postgres.py", "least": 200}
    cut(run, volume, OPS + WORK + CUT % values, {}, tmp_path / "operations")
