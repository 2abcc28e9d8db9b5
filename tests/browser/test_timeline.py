# SPDX-License-Identifier: GPL-2.0-or-later
"""Perfetto's own interface and trace processor, in a browser, read what ./rsd watch writes."""

import argparse
import gzip
import json
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Browser

from rsd import sim
from rsd.cache import Cache
from rsd.progress import Progress
from rsd.watch import command, viewer

WORK = ("--preset", "risa", "--set", "channels=2", "--set", "ways=2", "--set", "blocks=16")
QUERY = """
const [sql, done] = arguments;
window.app.trace.engine.query(sql).then((result) => {
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next())
    rows.push(result.columns().map((name) => String(row.get(name))));
  done(rows);
}, (error) => done(String(error)));
"""


@pytest.fixture(scope="module")
def timeline(rsd_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command makes of a trace."""
    trace = tmp_path_factory.mktemp("timeline") / "a.trace"
    program = sim.ensure(rsd_cache, Progress()).path
    work = ("--set", "pages=32", "--requests", "3000", "--reads", "30")
    subprocess.run([program, *WORK, *work, "--record", trace], check=True, capture_output=True)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.main(parser.parse_args([str(trace)])) == 0
    return trace.with_name("a.trace.json.gz")


@pytest.fixture(scope="module")
def opened(browser: Browser, timeline: Path, rsd_cache: Cache) -> Iterator[Browser]:
    """The browser, which shows it."""
    pages = viewer.ensure(rsd_cache, Progress())
    with viewer.server(pages, timeline, 0) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        browser.open(viewer.address(served))
        browser.wait("return window.app && window.app.trace && !window.app.isLoadingTrace")
        yield browser
        browser.open("about:blank")
        served.shutdown()
        thread.join()


def query(browser: Browser, sql: str) -> list[list[str]]:
    rows = browser.call("POST", "/execute/async", {"script": QUERY, "args": [sql]})
    assert isinstance(rows, list), rows
    return rows


def test_perfetto_finds_no_fault(opened: Browser) -> None:
    bad = "select name, value from stats where value > 0 and severity <> 'info'"
    assert query(opened, bad) == []


def test_perfetto_shows_each_die(opened: Browser, timeline: Path) -> None:
    """As many slices, as long, as the file has; a track for each die."""
    events = json.loads(gzip.decompress(timeline.read_bytes()))["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    slices = [event for event in events if event["ph"] == "X"]
    count = Counter(names[event["tid"]] for event in slices)
    length: Counter[str] = Counter()
    for event in slices:
        length[names[event["tid"]]] += round(event["dur"] * 1000)
    assert len(count) == 4
    rows = query(
        opened,
        "select thread.name, count(*), sum(dur) from slice join thread_track on"
        " slice.track_id = thread_track.id join thread using(utid) group by thread.name",
    )
    assert rows == [[name, str(count[name]), str(length[name])] for name in sorted(count)]


def test_perfetto_shows_commands_and_the_queue(opened: Browser) -> None:
    rows = query(opened, "select name, count(*) from slice group by name")
    assert int(dict(map(tuple, rows))["write"]) > 1000
    rows = query(opened, "select count(*) from counter join counter_track on track_id ="
                 " counter_track.id where name like 'operations that wait%'")  # fmt: skip
    assert int(rows[0][0]) > 100


def test_nothing_is_fetched_from_elsewhere(opened: Browser) -> None:
    """What the page would ask of its makers' server does not leave the machine."""
    fetched = opened.fetched()
    assert any(url.endswith("/timeline.json.gz") for url in fetched)
    assert [url for url in fetched if not url.startswith("http://127.0.0.1:")] == []
