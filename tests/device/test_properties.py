# SPDX-License-Identifier: GPL-2.0-or-later
"""Every bound of every property, and nonsense between them, is refused by name at start-up."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from drive import SMALL, device_args, digest, open_drive
from qtest import Qemu, QemuError, start_error

U64_MAX = (1 << 64) - 1

# The settings as core/api/rsd-props.h has them: name, lowest, highest; name, names of its values.
CORE = Path(__file__).resolve().parents[2] / "hw" / "rsd-nvme" / "core"
_NUMBER = r"(?:[^,()]|\([^)]*\))+"
RANGES: dict[str, tuple[int, int]] = {
    name: (int(low), U64_MAX if high == "UINT64_MAX" else int(high))
    for name, low, high in re.findall(
        rf'^    RSD_(?:NUM|SIZE)\(\w+, "([\w-]+)",\s+{_NUMBER},\s*(\d+),\s*(\w+),',
        (CORE / "api/rsd-props.h").read_text().replace("\\\n", "\n"),
        re.MULTILINE,
    )
}
_NAMES = {
    array: re.findall(r'"([\w-]+)"', values)
    for array, values in re.findall(
        r"^const char \*const (\w+)\[\] = \{([^}]*)\}",
        (CORE / "api/config.c").read_text(),
        re.MULTILINE,
    )
}
_NAMES["rsd_ftl_names"] = re.findall(
    r"^    X\(\w+, \d+, (\w+),", (CORE / "api/rsd-props.h").read_text(), re.MULTILINE
)
CHOICES: dict[str, list[str]] = {
    name: _NAMES[array]
    for name, array in re.findall(
        r'^    RSD_ENUM\(\w+, "([\w-]+)",\s+\w+,\s+(\w+),',
        (CORE / "api/rsd-props.h").read_text().replace("\\\n", "\n"),
        re.MULTILINE,
    )
}
# Some of them a second time: the table must not change by accident, nor its reading here.
KNOWN_RANGES: dict[str, tuple[int, int]] = {
    "channels": (1, 64),
    "ways": (1, 64),
    "planes": (1, 4),
    "blocks": (1, 1_048_576),
    "pages": (1, 65_536),
    "page-size": (4096, 16_384),
    "spare-blocks": (0, 65_536),
    "bad-blocks-ppm": (0, 500_000),
    "seed": (0, U64_MAX),
    "over-provision": (0, 1000),
    "oob": (0, 128),
    "t-cmd": (0, 1_000_000_000),
    "t-xfer": (0, 1_000_000_000),
    "t-read": (0, 1_000_000_000),
    "t-prog": (0, 10_000_000_000),
    "t-erase": (0, 100_000_000_000),
    "idle-erase": (0, 1_000_000_000_000),
    "wl-threshold": (0, 1_000_000),
    "endurance": (1, 10_000_000),
    "zd-ext": (0, 16_320),
}
KNOWN_CHOICES = {
    "ftl": ["rsd", "page", "dftl", "block", "fast", "disk"],
    "segment": ["all", "way"],
    "queue": ["way", "global"],
    "reset": ["mark", "erase"],
    "finish": ["mark", "pad"],
}
# Of those, what does not go with the others of LEAST
DOES_NOT_FIT: set[tuple[str, int]] = set()
# The least of everything, so that one value at its bound makes a drive of reasonable size.
LEAST: dict[str, str | int] = {"channels": 1, "ways": 1, "blocks": 4, "pages": 1, "spare-blocks": 4}


def refusal(qemu: str, media: Path, props: dict[str, str | int]) -> str:
    """The message; the media file must not have been made."""
    args = device_args(media, props)
    message = start_error(qemu, args)
    assert list(media.parent.iterdir()) == [], "a refused start leaves a file"
    return message.replace(args[-1], "")  # which QEMU repeats, name and value included


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, high + 1) for name, (_, high) in RANGES.items() if high < U64_MAX]
    + [(name, low - 1) for name, (low, _) in RANGES.items() if low > 0],
)
def test_beyond_a_bound(qemu: str, media: Path, name: str, value: int) -> None:
    message = refusal(qemu, media, LEAST | {name: value})
    low, high = RANGES[name]
    assert name in message
    assert re.search(rf"\b{value}\b", message), message
    assert re.search(rf"\b{low}\b", message), message
    assert re.search(rf"\b{high}\b", message), message


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, bound) for name, bounds in RANGES.items() for bound in sorted(set(bounds))],
)
def test_at_a_bound(qemu: str, media: Path, name: str, value: int) -> None:
    """It works; of settings that must fit others, the message may also say that it does not."""
    try:
        with open_drive(qemu, media, LEAST | {name: value}) as drive:
            drive.ns.write(0, bytes(4096), bytes(drive.ns.oob)).expect()
            drive.ns.read(0)
    except QemuError as error:
        assert name not in KNOWN_RANGES or (name, value) in DOES_NOT_FIT, error
        assert name in refusal(qemu, media, LEAST | {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name in (*RANGES, *CHOICES)
        for value in ("", "many", "-1", "1e3", "0x")
        if (name, value) != ("seed", "-1")  # the highest seed, in QEMU's reading of numbers
    ],
)
def test_not_a_number(qemu: str, media: Path, name: str, value: str) -> None:
    message = refusal(qemu, media, LEAST | {name: value})
    assert name in message
    assert value != "-1" or str(U64_MAX) not in message, "that is not what was given"


@pytest.mark.parametrize(
    ("given", "name", "ns"),
    [
        ("t-read=25us", "t-read", 25_000),
        ("t-prog=1.5ms", "t-prog", 1_500_000),
        ("t-erase=7", "t-erase", 7),
        ("cut-at-time=4s", "cut-at-time", 4_000_000_000),
        ("cut-at-time=4000000000", "cut-at-time", 4_000_000_000),
    ],
)
@pytest.mark.parametrize("form", ["device", "json", "global"])
def test_times_have_units(
    qemu: str, media: Path, given: str, name: str, ns: int, form: str
) -> None:
    value = given.split("=")[1]
    args = device_args(media, LEAST)
    if form == "device":
        args[-1] += f",{given}"
    elif form == "global":
        args += ["-global", f"rsd-ns.{given}"]
    else:
        driver, *rest = args[-1].split(",")
        pairs = [word.split("=") for word in rest]
        options: dict[str, object] = {"driver": driver, **{k: v for k, v in pairs}}
        options |= {k: v for k, v in LEAST.items()} | {
            name: int(value) if value.isdigit() else value
        }
        args[-1] = json.dumps(options)
    with Qemu(qemu, args) as machine:
        assert machine.qom_get("/machine/peripheral/ns0", name) == ns


@pytest.mark.parametrize("name", ["t-read", "cut-at-time"])
@pytest.mark.parametrize("value", ["25xs", "1.5", "1.23456us", "99999999999s", "us"])
def test_a_time_that_is_none_is_refused_with_its_units(
    qemu: str, media: Path, name: str, value: str
) -> None:
    message = refusal(qemu, media, LEAST | {name: value})
    assert f"'{name}' is '{value}', must be a number of ns, or one with a unit" in message


@pytest.mark.parametrize("name", CHOICES)
def test_unknown_choice(qemu: str, media: Path, name: str) -> None:
    message = refusal(qemu, media, LEAST | {name: "sideways"})
    for word in (name, "sideways", *CHOICES[name]):
        assert word in message


def test_too_little_is_left(qemu: str, media: Path) -> None:
    """What only the translation layer can say; the file made for it is gone again."""
    message = refusal(qemu, media, LEAST | {"ftl": "page", "blocks": 8, "over-provision": 900})
    assert "over-provision" in message


@pytest.mark.parametrize("value", [1, 8, 15, 17, 32, 63, 127])
def test_unknown_oob(qemu: str, media: Path, value: int) -> None:
    message = refusal(qemu, media, LEAST | {"oob": value})
    assert re.search(rf"oob.*\b{value}\b.*0, 16, 64 or 128", message)


@pytest.mark.parametrize("value", [1, 63, 65, 16_319])
def test_zone_extension_in_units_of_64(qemu: str, media: Path, value: int) -> None:
    message = refusal(qemu, media, LEAST | {"zd-ext": value})
    assert re.search(rf"zd-ext.*\b{value}\b.*multiple of 64", message)


def test_preset_unknown(qemu: str, media: Path) -> None:
    message = refusal(qemu, media, {"preset": "zn54"})
    for word in ("preset", "zn54", "custom", "redo", "risa", "zn540"):
        assert word in message


@pytest.mark.parametrize(
    ("props", "words"),
    [
        ({"ways": 0}, ["ways"]),
        ({"page-size": 3000}, ["page-size", "3000", "4096"]),
        ({"page-size": "12K"}, ["page-size", "12288", "4096", "8192", "16384"]),
        ({"one-shot": "on", "cell": "tlc", "pages": 8}, ["one-shot", "pages", "8", "tlc", "9"]),
        (
            {"channels": 64, "ways": 64, "blocks": 1_048_576, "pages": 65_536},
            ["channels", "ways", "blocks", "pages"],
        ),
        ({"channels": 64, "ways": 64, "blocks": 1_048_576, "pages": 1}, ["blocks"]),
        ({"bad-blocks-ppm": 500_000, "blocks": 100, "spare-blocks": 0}, ["bad-blocks-ppm"]),
        ({"blocks": 1_048_576, "zd-ext": 16_320}, ["zd-ext"]),
    ],
)
def test_nonsense_geometry(
    qemu: str, media: Path, props: dict[str, str | int], words: list[str]
) -> None:
    message = refusal(qemu, media, LEAST | props)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("props", "words"),
    [
        ({"ms": 64}, ["ms", "oob"]),
        ({"mset": 1}, ["mset"]),
        ({"pi": 1}, ["pi"]),
        ({"zoned": "on"}, ["zoned"]),
        ({"zoned.zone_size": "1M"}, ["zoned.zone_size", "segment"]),
        ({"zoned.zone_capacity": "1M"}, ["zoned.zone_capacity", "segment"]),
        ({"zoned.descr_ext_size": 64}, ["zoned.descr_ext_size", "zd-ext"]),
        ({"zoned.zrwas": "64K"}, ["zoned.zrwas"]),
        ({"zoned.numzrwa": 1}, ["zoned.numzrwa"]),
        ({"zoned.max_open": 5, "zoned.max_active": 4}, ["max_open", "5", "max_active", "4"]),
        ({"nsid": 1000}, ["1000"]),
        ({"uuid": "nonsense"}, ["uuid", "nonsense"]),
        ({"colour": "blue"}, ["colour"]),
    ],
)
def test_properties_of_the_base_class(
    qemu: str, media: Path, props: dict[str, str | int], words: list[str]
) -> None:
    message = refusal(qemu, media, LEAST | props)
    for word in words:
        assert word in message


def test_media_is_needed(qemu: str) -> None:
    device = ["-device", "nvme,id=nvme0,serial=x", "-device", "rsd-ns,bus=nvme0"]
    assert "media" in start_error(qemu, device)


def test_inline_queues_exclude_ioeventfd(qemu: str, media: Path) -> None:
    message = start_error(qemu, device_args(media, SMALL, "ioeventfd=on"))
    assert "inline-queues" in message
    assert "ioeventfd" in message


def help_lines(qemu: str) -> dict[str, str]:
    """The description of each property in the output of -device rsd-ns,help."""
    output = subprocess.run(
        [qemu, "-device", "rsd-ns,help"], capture_output=True, text=True, timeout=600, check=True
    ).stdout
    lines = re.findall(r"^ +([a-z0-9._-]+)=<[^>]*> *- (.*)$", output, re.MULTILINE)
    return dict(lines)


def test_help(qemu: str) -> None:
    """Each property is described, numbers with the range that this file tests."""
    lines = help_lines(qemu)
    for name, (low, high) in RANGES.items():
        assert f"{low} to {high}" in lines[name]
    for name, bounds in KNOWN_RANGES.items():
        assert RANGES[name] == bounds
    for name, choices in KNOWN_CHOICES.items():
        assert CHOICES[name][: len(choices)] == choices, "a new one comes last"
    for name, choices in CHOICES.items():
        assert ", ".join(choices) in lines[name]
    for name in ("media", "preset", "host-sync"):
        assert len(lines[name]) > 10
    numbers = {name for name in lines if re.search(r"\(\d+ to \d+", lines[name])}
    assert numbers == set(RANGES), "a property without a test of its bounds"


def test_controller_defaults_are_those_of_upstream(qemu: str) -> None:
    with Qemu(qemu, ["-device", "nvme,id=nvme0,serial=x"]) as machine:
        assert machine.qom_get("/machine/peripheral/nvme0", "inline-queues") is False
        assert machine.qom_get("/machine/peripheral/nvme0", "dbcs") is True


def test_settings_cannot_change_on_a_running_drive(qemu: str, media: Path) -> None:
    with open_drive(qemu, media) as drive:
        with pytest.raises(Exception, match="channels"):
            drive.qemu.qom_set("/machine/peripheral/ns0", "channels", 4)
        assert drive.qemu.qom_get("/machine/peripheral/ns0", "channels") == 2


def test_a_size_takes_suffixes(qemu: str, media: Path) -> None:
    with open_drive(qemu, media, {"page-size": "4K", "zd-ext": "1K"}) as drive:
        assert drive.ns.extension_size == 1024


def test_a_drive_that_exists_needs_no_settings(qemu: str, media: Path) -> None:
    with open_drive(qemu, media, {"channels": 3, "oob": 64, "zd-ext": 64}) as drive:
        drive.ns.write(0, bytes(range(256)) * 16, bytes(64)).expect()
        drive.qemu.quit()
    before = digest(media)
    with Qemu(qemu, device_args(media)) as machine:
        assert machine.qom_get("/machine/peripheral/ns0", "channels") == 3
        assert machine.qom_get("/machine/peripheral/ns0", "oob") == 64
        machine.quit()
    assert digest(media) == before
