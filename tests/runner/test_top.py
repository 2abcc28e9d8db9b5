# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd top`: what is read of a media file is what the drive says of itself."""

import argparse
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path

import numpy
import pytest

from rsd import sim
from rsd.cache import Cache
from rsd.errors import RsdError
from rsd.progress import Progress
from rsd.top import command, page, runs, view
from rsd.top.look import counter_names, look

SMALL = ("channels=2", "ways=2", "blocks=64", "pages=16", "spare-blocks=8")


@pytest.fixture(scope="module")
def program(rsd_cache: Cache) -> Path:
    return sim.ensure(rsd_cache, Progress()).path


def age(program: Path, media: Path, *settings: str) -> None:
    words = [word for setting in (*SMALL, *settings) for word in ("--set", setting)]
    command = [program, *words, "--age", media, "--precondition", "1", "--json"]
    subprocess.run(command, check=True, capture_output=True)


def work(program: Path, media: Path, trace: Path, *settings: str) -> dict[str, int]:
    """Some work; gives the drive's counters behind it, as it wrote them into a trace."""
    words = [word for setting in settings for word in ("--set", setting)]
    command = [program, *words, "--media", media, "--requests", "2000", "--record", trace]
    subprocess.run(command, check=True, capture_output=True)
    raw = trace.read_bytes()
    records = [raw[at : at + 48] for at in range(len(raw) - 48, 0, -48)]
    values = {}
    for record in records:
        if record[36] == 3:  # a counter: its number, its value
            values[int.from_bytes(record[8:16], "little")] = int.from_bytes(record[16:24], "little")
        elif record[36] != 4:
            break
    names = counter_names()
    return {names[number]: value for number, value in values.items()}


@pytest.mark.parametrize("settings", [(), ("ftl=page", "over-provision=28", "wl-threshold=1000")])
def test_a_look_sees_what_the_drive_counts(
    program: Path, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    media = tmp_path / "media"
    age(program, media, *settings)
    before = look(media)
    said = work(program, media, tmp_path / "trace", *settings)
    now = look(media)
    for name in ("host_write_pages", "prog_host", "prog_clean", "erase_host", "erase_clean"):
        assert now.counters[name] == said[name], name
    assert now.counters["die_busy_ns"] == said["die_busy_ns"]
    assert int(now.wear.max()) == said["wear_max"] and int(now.wear.min()) == said["wear_min"]
    assert int(now.erases.sum()) == said["wear_sum"]
    assert sum(now.blocks.values()) == said["blocks_total"]
    # What dies are said to have programmed since, is what the drive says it has.
    shown = view.view("x", before, now, real_time=False)
    dies = next(table for table in shown.tables if table.title.startswith("Dies"))
    assert len(dies.rows) == 4
    last = view.programs(now.counters) - view.programs(before.counters)
    told = sum(int(row[1].replace(",", "")) for row in dies.rows)
    assert told == last if not settings else abs(told - last) <= last * 0.02


def test_write_amplification_is_that_of_the_time_between(program: Path, tmp_path: Path) -> None:
    media = tmp_path / "media"
    settings = ("ftl=page", "over-provision=28")
    age(program, media, *settings)
    before = look(media)
    work(program, media, tmp_path / "trace", *settings)
    now = look(media)
    rows = {row[0]: row[1:] for row in view.view("x", before, now, real_time=False).tables[0].rows}
    written = now.counters["host_write_pages"] - before.counters["host_write_pages"]
    programs = sum(
        now.counters[f"prog_{cause}"] - before.counters[f"prog_{cause}"] for cause in view.CAUSES
    )
    assert programs > written == 2000
    assert rows["write amplification"][0] == f"{programs / written:.3f}"
    assert rows["written by the host, 4 KiB"][0] == "2,000"


def test_the_histogram_has_every_block(program: Path, tmp_path: Path) -> None:
    age(program, tmp_path / "media", "bad-blocks-ppm=20000")
    now = look(tmp_path / "media")
    table = view.view("x", now, now, real_time=False).tables[-1]
    assert now.blocks["bad"] > 0
    assert sum(int(row[1].replace(",", "")) for row in table.rows) == len(now.wear)
    assert len(now.wear) == now.erases.size - now.blocks["bad"]
    assert isinstance(now.wear, numpy.ndarray)


def test_a_run_is_found_and_its_end_seen(program: Path, tmp_path: Path) -> None:
    media = tmp_path / "media"
    age(program, media)
    work = subprocess.Popen(
        [program, "--media", media, "--requests", "100000000"], stdout=subprocess.DEVNULL
    )
    try:
        end = 100
        while not any(run.pid == work.pid for run in runs.running()) and end:
            end -= 1
            threading.Event().wait(0.1)
        run = runs.find(media)
        assert run.pid == work.pid and not run.real_time
        following = command.views(run)
        first, second = following(), following()
        assert first and second
    finally:
        work.kill()
        work.wait()
    assert following() is None


def test_the_page_has_the_views(program: Path, tmp_path: Path) -> None:
    media = tmp_path / "media"
    age(program, media)
    with page.server(command.views(runs.find(media)), 1, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            root = f"http://127.0.0.1:{server.server_port}"
            for path in ("/", "/view"):
                text = urllib.request.urlopen(root + path).read().decode()
                assert "ch 1 way 1" in text and "write amplification" in text
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(root + "/etc/passwd")
            media.unlink()
            with pytest.raises(urllib.error.HTTPError, match="410"):
                urllib.request.urlopen(root + "/view")
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "content, words", [(b"", "not the media file"), (None, "No such file or directory")]
)
def test_no_drive(tmp_path: Path, content: bytes | None, words: str) -> None:
    media = tmp_path / "media"
    if content is not None:
        media.write_bytes(content)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(RsdError, match=words):
        command.main(parser.parse_args([str(media), "--once"]))
