# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of compare, paper and crash, in a browser: on a phone and a desktop, light and dark."""

import json
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser

from rsd.artifacts import REPOSITORY
from rsd.crash import page as crash_page
from rsd.crash.campaign import Campaign, Settings
from rsd.crash.record import Marks, Work
from rsd.crash.states import Flying, Operation, choose
from rsd.crash.subject import Subject
from rsd.paper import page as paper_page
from rsd.paper.claim import Claim
from rsd.paper.command import PAPERS
from rsd.report import page

RESULTS = REPOSITORY / "docs/results"
PHONE, DESKTOP = 360, 1280

# Of each figure: is there a table in its section, or a link to one that is there?
WITHOUT_TABLE = """
return [...document.querySelectorAll("figure")].filter((figure) => {
  const link = figure.querySelector("a[href^='#']");
  if (link) return !document.querySelector(link.getAttribute("href") + " table");
  return !figure.closest("section").querySelector("table");
}).map((figure) => figure.closest("section").querySelector("h2").innerText);
"""
# The least difference in lightness of a text that is seen and of what is behind it
CONTRAST = """
const light = (text) => {
  const parts = text.match(/[\\d.]+/g).map(Number);
  if (parts.length > 3 && parts[3] === 0) return null;
  const [r, g, b] = parts.map((part) => {
    part /= 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (element) => {
  for (; element; element = element.parentElement) {
    const value = light(getComputedStyle(element).backgroundColor);
    if (value !== null) return value;
  }
  return 1;
};
let least = 21;
for (const element of document.querySelectorAll("h1, h2, h3, p, td, th, li, summary, pre")) {
  if (!element.innerText || !element.offsetParent) continue;
  const values = [light(getComputedStyle(element).color), ground(element)].sort();
  const [dark, bright] = values[0] < values[1] ? values : values.reverse();
  least = Math.min(least, (bright + 0.05) / (dark + 0.05));
}
return least;
"""


def compared(path: Path) -> dict[str, Any]:
    """What compare found, as it was kept."""
    content: dict[str, Any] = json.loads(path.read_text())
    configuration = content["configuration"]
    for facts in (*configuration["systems"].values(), *configuration.get("stacks", {}).values()):
        facts.setdefault("qemu", [["qemu-system-x86_64", "-device", "x" * 200]])
        facts.setdefault("commands", {"fio": "fio " + "--option=value " * 50})
    return {"failures": [], **content}


def write_drives(path: Path) -> None:
    page.write(compared(REPOSITORY / "tests/compare/data/results.json"), path)


def write_stacks(path: Path) -> None:
    page.write(compared(sorted(RESULTS.glob("compare-*.json"))[-1]), path)


def write_paper(path: Path) -> None:
    kept = json.loads(sorted(RESULTS.glob("paper-sfs-*.json"))[-1].read_text())
    found = {
        name: [
            Claim(c["what"], "", c["paper"], c["measured"], c["reference"], note=c["note"])
            for c in claims
            if "limit" not in c and not c["ranks"]
        ]
        for run in kept["runs"]
        for name, claims in run["figures"].items()
    }
    paper_page.write(PAPERS["sfs"], found, path)


def crashed(directory: Path, operations: int) -> tuple[Campaign, dict[str, Any]]:
    """A run of a script: every seventh state fails, and the last quarter is not explored."""
    script = directory / "work"
    settings = Settings(
        Subject("rfs+rsd"), Work(script=script), script, None, "all", outcomes=3, seed=1, limit_s=10
    )
    campaign = Campaign(directory, settings, {"cut": None})
    campaign.marks = Marks(((2, "a file"), (operations // 2, "<name> " + "x" * 200)))
    (directory / "trace").write_text("")
    flying = (Flying("program", 1, 0, 0, False, False),)
    campaign.operations = [
        Operation(number, number * 1000, "program", 1, number % 64, number, flying)
        for number in range(operations + 1)
    ]
    campaign.states = tuple(choose(campaign.operations, "all", 3, 1))
    explored = campaign.states[: len(campaign.states) * 3 // 4]
    failed = [state for state in explored if state.id % 7 == 6]
    results = {
        "system": "rfs+rsd",
        "operations": operations,
        "states": len(campaign.states),
        "explored": len(explored),
        "mounted": len(explored),
        "failed": len(failed),
        "complete": False,
        "checked": ["what was acknowledged", "the names in <its> directories"],
        "unchecked": ["what files hold: there is no <check>"],
        "failures": [
            {
                **{"state": state.id, "operation": state.op, "outcomes": state.outcomes},
                **{"holds": "a file", "stage": "CHECK", "said": "it lacks <a> " + "y" * 300},
                "same": [],
            }
            for state in failed
        ],
        "again": [
            {"state": 3, "operations": 12, "explored": 12, "mounted": 5, "failed": 0},
            {"state": 9},
        ],
        "verdicts": [[s.id, s.op, s.outcomes, s.id, s.id % 7 != 6] for s in explored],
        **{"properties": {"blocks": "16"}, "mount_options": "", "patch": None},
        **{"points": "all", "outcomes": 3, "seed": 1, "hashes": {"qemu": "0" * 64}},
    }
    return campaign, results


def write_crash(path: Path) -> None:
    path.write_text(crash_page.page(*crashed(path.parent, 1600)))


REPORTS = [write_drives, write_stacks, write_paper, write_crash]


@pytest.fixture(scope="module", params=REPORTS)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    request.param(path)
    return path


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_it_fits(browser: Browser, report: Path, width: int, dark: bool) -> None:
    browser.fetched(), browser.complaints()
    browser.show(width, 800, dark=dark)
    browser.open(report)
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("return innerWidth") == width
    assert browser.run("return matchMedia('(prefers-color-scheme: dark)').matches") is dark
    assert browser.run(CONTRAST) >= 4.5, "WCAG's contrast of texts"
    assert browser.complaints() == []
    assert browser.fetched() == [report.as_uri()]


def test_each_plot_has_a_table(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.run("return document.querySelectorAll('figure svg').length") > 0
    assert browser.run(WITHOUT_TABLE) == []


def test_no_script(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.run("return document.scripts.length") == 0


@pytest.mark.parametrize("operations", [9, 499, 1600])
def test_the_plot_of_power_cuts_has_all_states_in_its_table(
    browser: Browser, tmp_path: Path, operations: int
) -> None:
    campaign, results = crashed(tmp_path, operations)
    (tmp_path / "report.html").write_text(crash_page.page(campaign, results))
    browser.open(tmp_path / "report.html")
    rows = browser.run(
        "return [...document.querySelectorAll('figure + details tr')].slice(1).map("
        "(row) => [...row.cells].map((cell) => cell.textContent.replaceAll(',', '')))"
    )
    told: dict[int, list[int]] = {}
    for where, passed, failed in rows:
        first, last = (int(number) for number in (where.split(" to ") * 2)[:2])
        told |= {op: [int(passed), int(failed), first, last] for op in range(first, last + 1)}
    cut_after = {op for _, op, _, _, _ in results["verdicts"]}
    assert cut_after <= set(told)
    for passed, failed, first, last in told.values():
        verdicts = [good for _, op, _, _, good in results["verdicts"] if first <= op <= last]
        assert [verdicts.count(True), verdicts.count(False)] == [passed, failed]
