# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells as a Snakemake workflow, for a cluster.

Snakemake was chosen over Dask since a cell is a program that writes a file: rules say
just that, no process of ours has to stay alive on the cluster, and its executors know the
batch systems.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rsd.cluster.cell import Cell

SNAKEFILE = """\
# Made by {made_by}. Run in this directory:
#     snakemake --cores all                          here
#     snakemake --executor slurm --jobs 100          or another executor's name
# then, where the repository is:
#     {afterwards}
# --config program=PATH names another {program_name}, of the same sources.

import json

PROGRAM = config.get("program", {program!r})

with open("cells.json") as stream:
    CELLS = json.load(stream)


rule all:
    input:
        expand("cells/{{key}}{suffix}", key=CELLS),


rule cell:
    output:
        "cells/{{key}}{suffix}",
    log:
        "logs/{{key}}.log",
    params:
        program=PROGRAM,
        arguments=lambda wildcards: CELLS[wildcards.key]["arguments"],
    threads: 1
    resources:
        mem_mb={memory_mib},
    shell:
        "{{params.program:q}} {{params.arguments:q}} {{output:q}} 2> {{log:q}}"
"""


@dataclass(frozen=True)
class Workflow:
    """What a directory with a workflow is made of.

    `program` is started for each cell and needs `memory_mib`; its result is a file whose name ends
    in `suffix`. `made_by` and `afterwards` are commands, for the reader.
    """

    cells: Sequence[Cell]
    program: Path
    memory_mib: int
    suffix: str
    made_by: Sequence[str]
    afterwards: Sequence[str]

    def write(self, directory: Path) -> None:
        """Snakefile and cells.json. The directory is also where the results go."""
        text = SNAKEFILE.format(
            made_by=shlex.join(self.made_by),
            afterwards=shlex.join(self.afterwards),
            program=str(self.program),
            program_name=self.program.name,
            memory_mib=self.memory_mib,
            suffix=self.suffix,
        )
        content = {
            cell.key: {"title": cell.title, "arguments": [*cell.arguments]} for cell in self.cells
        }
        (directory / "Snakefile").write_text(text)
        (directory / "cells.json").write_text(json.dumps(content, indent=1) + "\n")
