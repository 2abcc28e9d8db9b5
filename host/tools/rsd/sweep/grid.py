# SPDX-License-Identifier: GPL-2.0-or-later
"""A sweep is described by a file like this:

    [options]                       # what all cells have: rsdsim's options, without --
    precondition = "steady"
    requests = 100000
    set.ftl = "page"                # set.NAME is a property of the drive

    [axes]                          # each is an option with its values
    pattern = ["uniform", "zipf=0.99"]
    "set.over-provision" = [5, 10, 20, 28]

It is TOML or, if the file's name ends in .json, JSON of the same shape. The cells are all
combinations of the axes' values. The last axis changes fastest.
"""

import itertools
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd.cache import hash_file, hash_inputs
from rsd.errors import RsdError

MOST_CELLS = 1_000_000
# Set by the sweep itself, or without a meaning in it
OURS = ("json", "output", "host-time", "help", "list")
# They leave a file behind, which cells would share.
LEAVE_FILES = ("age", "media", "record")
# Options that name a file: its content is part of a cell's identity.
FILES = ("trace", "replay")

Value = str | int | float | bool


@dataclass(frozen=True)
class Cell:
    """One run of rsdsim."""

    axes: Mapping[str, Value]
    arguments: tuple[str, ...]
    key: str


def read(path: Path, identity: str) -> list[Cell]:
    """The cells of a sweep. `identity` names the simulator that will run them."""
    content = _load(path)
    for name in content:
        if name not in ("options", "axes"):
            raise RsdError(
                f"{path}: there is no part {name!r}, allowed are options and axes",
                "./rsd sweep --help has an example",
            )
    options = _flatten(path, "options", content.get("options", {}))
    axes = _flatten(path, "axes", content.get("axes", {}))
    number = 1
    for name, values in axes.items():
        if not isinstance(values, list) or not values:
            raise RsdError(f"{path}: axes.{name} is {values!r}, expected a list of values")
        if name in options:
            raise RsdError(f"{path}: {name} is in both options and axes", "remove one of them")
        number *= len(values)
    if number > MOST_CELLS:
        raise RsdError(f"{path}: {number} cells, allowed are up to {MOST_CELLS}")
    hashes: dict[str, str] = {}
    cells = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        arguments = _arguments(path, options | chosen)
        inputs = _input_hashes(path, options | chosen, hashes)
        cells.append(Cell(chosen, arguments, hash_inputs(identity, arguments, inputs)))
    if len({cell.key for cell in cells}) != len(cells):
        raise RsdError(f"{path}: an axis has the same value twice", "remove one of them")
    return cells


def _load(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise RsdError(f"{path}: {error.strerror}") from error
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise RsdError(f"{path}: not {kind}: {error}") from error
    if not isinstance(content, dict):
        raise RsdError(f"{path}: expected an object with options and axes")
    return content


def _flatten(path: Path, part: str, content: Any) -> dict[str, Any]:
    """`set = {NAME = VALUE}` becomes `set.NAME = VALUE`, as is allowed in one piece, too."""
    if not isinstance(content, dict):
        raise RsdError(f"{path}: {part} is {content!r}, expected names with values")
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if name == "set" and isinstance(value, dict):
            flat |= {f"set.{inner}": each for inner, each in value.items()}
        else:
            flat[name] = value
    for name in flat:
        if name in OURS or name in LEAVE_FILES:
            why = "is set by the sweep itself" if name in OURS else "would be shared by its cells"
            raise RsdError(f"{path}: {part}.{name} {why}", "leave it out")
    return flat


def _arguments(path: Path, options: Mapping[str, Any]) -> tuple[str, ...]:
    # --preset undoes what --set did before it.
    ordered = sorted(options.items(), key=lambda item: (item[0] != "preset", item[0]))
    arguments = []
    for name, value in ordered:
        if isinstance(value, list | dict) or value is None:
            raise RsdError(
                f"{path}: {name} is {value!r}, expected a number, a string, true or false"
            )
        if value is False:
            continue
        if name.startswith("set."):
            arguments += ["--set", f"{name.removeprefix('set.')}={value}"]
        elif value is True:
            arguments.append(f"--{name}")
        else:
            shown = _absolute(path, str(value)) if name in FILES else str(value)
            arguments += [f"--{name}", shown]
    return tuple(arguments)


def _absolute(sweep: Path, name: str) -> str:
    """A file named in a sweep lies beside it."""
    return str((sweep.parent / name).absolute())


def _input_hashes(path: Path, options: Mapping[str, Any], known: dict[str, str]) -> list[str]:
    found = []
    for option in FILES:
        if option not in options:
            continue
        name = _absolute(path, str(options[option]))
        if name not in known:
            try:
                known[name] = hash_file(Path(name))
            except OSError as error:
                raise RsdError(f"{path}: {option} {name}: {error.strerror}") from error
        found.append(known[name])
    return found
