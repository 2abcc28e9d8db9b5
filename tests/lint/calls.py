# SPDX-License-Identifier: GPL-2.0-or-later
"""Who calls whom, read from object files: a symbol that one needs and another one has."""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

Calls = Mapping[str, Mapping[str, set[str]]]


def calls_between(objects: Mapping[str, Path]) -> Calls:
    """By file: the other files it calls, and by which symbols."""
    owner: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    for name, path in objects.items():
        said = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        needs[name] = set(re.findall(r"^ +U (\w+)$", said, re.M))
        owner |= dict.fromkeys(re.findall(r"^\w+ [BDRT] (\w+)$", said, re.M), name)
    calls: dict[str, dict[str, set[str]]] = {name: defaultdict(set) for name in objects}
    for name, symbols in needs.items():
        for symbol in symbols & owner.keys():
            calls[name][owner[symbol]].add(symbol)
    return calls


def circles(calls: Mapping[str, Iterable[str]]) -> list[str]:
    """Files from which calls lead back to them; none if they can be put in an order."""
    left = {name: set(others) for name, others in calls.items()}
    while free := [name for name, others in left.items() if not others & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)
