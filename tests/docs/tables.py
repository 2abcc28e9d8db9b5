"""The tables of hw/rsd-nvme/README.md, as the drive's source has them.

`python3 tests/docs/tables.py --write` brings the document up to date.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "hw/rsd-nvme/core"
DOCUMENT = ROOT / "hw/rsd-nvme/README.md"
PLACE = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(<!-- end -->)", re.S)


def source_tables() -> dict[str, str]:
    """Each table by name, in Markdown, from a program made of the drive's own tables."""
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory, "dump_tables")
        subprocess.run(
            ["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{CORE}/api"]
            + ["-o", program, ROOT / "tests/docs/dump_tables.c", *sorted(CORE.rglob("*.c"))],
            check=True,
        )
        text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    parts = re.split(r"^table: (\w+)\n", text, flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def document_tables() -> dict[str, str]:
    """Each table by name, as the document has it."""
    return {match[2]: match[3] for match in PLACE.finditer(DOCUMENT.read_text())}


def write() -> None:
    """Replace the document's tables by the source's."""
    tables = source_tables()
    text = PLACE.sub(lambda match: match[1] + tables[match[2]] + match[4], DOCUMENT.read_text())
    DOCUMENT.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python3 tests/docs/tables.py --write")
    write()
