# SPDX-License-Identifier: GPL-2.0-or-later
"""rsdsim on a rotating disk: its figures, and a report of an arm rather than of flash."""

import re

from simulator import Simulator

DISK = ("--preset", "barracuda-320", "--reads", "100", "--requests", "500")


def grown(result: dict[str, dict[str, int]], name: str) -> int:
    return result[name]["after"] - result[name]["before"]


def test_the_time_is_the_arms_and_the_links(sim: Simulator) -> None:
    """Of random reads, one at a time, never written: they take their time, and count."""
    result = sim.json(*DISK, "--depth", "1")
    found, ns = result["results"], result["results"]["counters"]
    moving = sum(grown(ns, f"disk_{what}_ns") for what in ("seek", "rotate", "transfer"))
    link = 500 * result["settings"]["t-link"]
    assert round(found["seconds"] * 1e9) == moving + link
    assert grown(ns, "disk_read_pages") + grown(ns, "disk_cache_hits") == 500
    assert round(found["bytes_per_s"] * found["seconds"]) == 500 * 4096


def test_the_report_is_of_an_arm(sim: Simulator) -> None:
    done = sim.run(*DISK)
    assert done.stderr == b""
    report = done.stdout.decode()
    assert "7200 rpm, 2 heads, 298.09 GiB" in report
    assert "500 blocks read" in report
    shares = [float(share) for share in re.findall(r"s, ([\d.]+)% of the time", report)]
    assert len(shares) == 3
    assert 99 < sum(shares) <= 100.1
    assert not re.search("erase|Flash|Wear", report)


def test_a_disk_does_not_become_steady(sim: Simulator) -> None:
    """It says so at once, and makes no file: also if --age alone asks for it."""
    for options in (("--age", "x"), ("--precondition", "steady")):
        done = sim.run("--preset", "barracuda-320", *options)
        assert done.returncode == 2
        assert b"a disk (ftl=disk) has no write amplification" in done.stderr
        assert b"--precondition none or fill" in done.stderr
    assert not (sim.directory / "x").exists()
