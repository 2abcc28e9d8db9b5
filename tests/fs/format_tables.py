# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the tables of host/fs/doc/format.md from the comments and asserts of rfs_format.h.

python3 tests/fs/format_tables.py --write
"""

import re
import sys
from pathlib import Path

FS = Path(__file__).resolve().parents[2] / "host" / "fs"
HEADER = FS / "core/format/rfs_format.h"
DOCUMENT = FS / "doc" / "format.md"
STRUCT = re.compile(
    r"/\*\*\n \* struct (\w+) - (.*?)\n(.*?) \*/\nstruct \1 \{\n(.*?)^\}", re.M | re.S
)
FIELD = re.compile(r"^\t+(?:struct )?(\w+) (\w+)(\[\w*\])?;", re.M)


def comments(text: str) -> dict[str, str]:
    """Field name to its description."""
    found = re.findall(r"^ \* @(\w+): (.*(?:\n \*(?: {2,}|\t).*)*)", text, re.M)
    return {name: re.sub(r"\s*\n \*\s*", " ", words) for name, words in found}


def tables() -> dict[str, str]:
    """Struct name to its table; every field needs a comment, an offset assert and no others."""
    header = HEADER.read_text()
    offsets = {
        (struct, field): int(at)
        for struct, field, at in re.findall(r"^RFS_AT\((\w+), (\w+), (\d+)\);", header, re.M)
    }
    sizes = dict(re.findall(r"^RFS_SIZE\((\w+), (\d+)\);", header, re.M))
    made = {}
    for struct, title, text, body in STRUCT.findall(header):
        described = comments(text)
        fields = FIELD.findall(body)
        names = [name for _, name, _ in fields]
        if sorted(described) != sorted(names):
            raise SystemExit(f"{struct}: fields {names}, but described are {sorted(described)}")
        rows = [f"`struct {struct}`, {sizes[struct]} bytes: {title}", ""]
        rows += ["| offset | field | type | what |", "| --- | --- | --- | --- |"]
        for kind, name, array in fields:
            what = described[name].replace("|", "\\|")
            at = offsets.pop((struct, name))
            rows.append(f"| {at} | `{name}` | `{kind.strip('_')}{array}` | {what} |")
        made[struct] = "\n".join(rows)
    if offsets:
        raise SystemExit(f"asserts of fields that do not exist: {sorted(offsets)}")
    return made


def document() -> str:
    """The document with its tables as the header has them."""
    made = tables()

    def table(match: re.Match[str]) -> str:
        return f"<!-- struct: {match[1]} -->\n{made.pop(match[1])}\n<!-- end -->"

    pattern = r"<!-- struct: (\w+) -->\n.*?<!-- end -->"
    text = re.sub(pattern, table, DOCUMENT.read_text(), flags=re.S)
    if made:
        raise SystemExit(f"no place in the document for {sorted(made)}")
    return text


def main() -> int:
    """Write the tables, or say whether they are out of date."""
    if sys.argv[1:] == ["--write"]:
        DOCUMENT.write_text(document())
        return 0
    return int(document() != DOCUMENT.read_text())


if __name__ == "__main__":
    sys.exit(main())
