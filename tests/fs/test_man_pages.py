# SPDX-License-Identifier: GPL-2.0-or-later
"""The manual pages say what the programs' usage and host/fs/README.md say."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
MAN = REPOSITORY / "host/fs/man"
RSDCTL = REPOSITORY / "host/tools/rsdctl"
OFTL = REPOSITORY / "host/tools/oftl"
PAGES = [
    *sorted(MAN.iterdir()),
    *(RSDCTL / "rsdctl.8", OFTL / "liboftl.3", OFTL / "objtool.8"),
]
SOURCES = {
    name: REPOSITORY / f"host/tools/{name}.rfs/{name}.c" for name in ("mkfs", "fsck", "dump")
}


def usage(name: str) -> list[str]:
    """The lines that -h prints, as the source has them."""
    text = SOURCES[name].read_text()
    start = text.index("static const char usage[] =")
    lines = text[start : text.index('";\n', start)].splitlines()[1:]
    return [line.strip().strip('"').removesuffix("\\n") for line in lines]


def page(name: str) -> str:
    return next(path for path in PAGES if path.name == name).read_text().replace("\\-", "-")


@pytest.mark.parametrize("name", ["mkfs", "fsck"])
def test_options(name: str) -> None:
    """The same options in usage and page, and those the program takes are among them."""
    entries = [line for line in usage(name) if re.match(r"  -", line)]
    said = {option for line in entries for option in re.findall(r"(?:^  |, )(--?\w+)", line)}
    text = page(f"{name}.rfs.8")
    described = set(re.findall(r"^\.TP\n\.BI? (--?\w+)", text, re.M))
    assert said == described
    letters = re.search(r'getopt(?:_long)?\(argc, argv, "([a-zA-Z:]+)"', SOURCES[name].read_text())
    assert letters
    taken = {f"-{letter}" for letter in letters[1].replace(":", "")} - {"-h"}
    also = set(re.findall(r"^\.BR? (-[A-Z]|-f) ?,?$", text, re.M))
    assert taken - described <= also
    assert {option for option in described if len(option) == 2} <= taken


def test_what_dump_prints() -> None:
    said = {match[1] for line in usage("dump") if (match := re.match(r"  ([a-z]+) ", line))}
    described = re.findall(r"^\.TP\n\.BI? (\w+)", page("dump.rfs.8"), re.M)
    assert said == set(described)


def test_mount_options() -> None:
    text = (REPOSITORY / "host/fs/README.md").read_text()
    table = text[text.index("| mount option") :].split("\n\n")[0]
    rows = [row.strip("|").split("|")[0] for row in table.splitlines()[2:]]
    first = [re.findall(r"`([^`]+)`", row) for row in rows]
    # values follow the first, or it is a list of options without any
    said = {
        name.split("=")[0] for names in first for name in names[: 1 if "=" in names[0] else None]
    }
    assert said
    described = page("rfs.5")
    described = described[described.index(".SH MOUNT OPTIONS") : described.index(".SH QUOTAS")]
    assert said == set(re.findall(r"^\.TP\n\.BI? (\w+)", described, re.M))
    for value in re.findall(r"errors=([a-z-]+)`, `(\w+)`, `(\w+)`", table)[0]:
        assert f".B {value}" in described


def names(text: str, title: str) -> set[str]:
    """The names in the first column of a table."""
    table = text[text.index(title) :].split("\n\n")[0]
    return set(re.findall(r"`([a-z_]+)", " ".join(row.split("|")[1] for row in table.splitlines())))


def test_kernel_documentation() -> None:
    """doc/rfs.rst has the mount options, counters, tables and events of README.md, no others."""
    readme = (REPOSITORY / "host/fs/README.md").read_text()
    text = (REPOSITORY / "host/fs/doc/rfs.rst").read_text()
    options = text[text.index("\nMount options\n") : text.index("\nWhat is supported\n")]
    rows = readme[readme.index("| mount option") :].split("\n\n")[0].splitlines()[2:]
    said = {
        name
        for row in rows
        for name in re.findall(r"`([a-z]+)(?:=[^`]*)?`", row.split("|")[1])
        if f"`{name}=" in row or "quota" in name
    }
    assert said == set(re.findall(r"``([a-z]+)(?:=%\w)?``", options))
    for section, title in {
        "sysfs": "| `written_data`",
        "debugfs": "| `groups`",
        "Trace events": "| `rfs_append`",
    }.items():
        table = text[text.index(f"\n{section}\n=") :].split("\n====", 3)
        found = re.findall(r"^([a-z_]+) {2,}", "".join(table[2:3]), re.M)
        assert set(found) == names(readme, title), section


def test_sysfs_documentation() -> None:
    """doc/sysfs-fs-rfs has an entry of each file in sysfs, in the order of the module's list."""
    source = (REPOSITORY / "host/fs/stats.c").read_text()
    text = (REPOSITORY / "host/fs/doc/sysfs-fs-rfs").read_text()
    entry = re.compile(
        r"What:\t\t/sys/fs/rfs/<disk>/(\w+)\nDate:\t\t\w+ \d{4}\nContact:\t\S.*\n"
        r"Description:\t\S.*\n(?:\t\t\S.*\n)*"
    )
    entries = text.split("\n\nWhat:")
    entries = [entries[0] + "\n", *(f"What:{rest.rstrip()}\n" for rest in entries[1:])]
    found = [entry.fullmatch(one) for one in entries]
    assert None not in found, entries[found.index(None)]
    files = re.findall(r"^\t&stat_(\w+)\.attr,$", source, re.M)
    assert len(files) > 40
    assert [one[1] for one in found if one] == files


def test_rsdctl() -> None:
    """The commands and options that it takes, and their arguments, are those described."""
    source = (RSDCTL / "rsdctl.c").read_text()
    text = page("rsdctl.8")
    synopsis, rest = text[: text.index(".SH DESCRIPTION")], text[text.index(".SH COMMANDS") :]
    commands = set(re.findall(r"^\t\{ \"(\w+)\", \d, (?:\d|INT_MAX),", source, re.M))
    assert commands == set(re.findall(r"^\.B rsdctl (\w+)", synopsis, re.M))
    listed, options = rest[: rest.index(".SH OPTIONS")], rest[rest.index(".SH OPTIONS") :]
    assert commands == set(re.findall(r"^\.TP\n\.B (\w+)$", listed, re.M))
    taken = dict(re.findall(r"\{ \"([a-z-]+)\", (no|required)_argument,", source))
    taken["version"] = "no"
    described = re.findall(r"^\.TP\n\.(B|BI) --([a-z-]+)", options, re.M)
    assert {name: "required" if kind == "BI" else "no" for kind, name in described} == taken
    said = source.replace('\\n"\n"', " ")
    assert "is 0 if the command succeeded, 1 if it failed, and 2 if the usage was wrong." in said
    assert "0 if they succeeded, 1 if they failed, and 2 if the usage was wrong." in text


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_clean(path: Path) -> None:
    """groff has no warning, and the page is more than its title."""
    command = ["groff", "-man", "-Tutf8", "-ww", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) > 30
