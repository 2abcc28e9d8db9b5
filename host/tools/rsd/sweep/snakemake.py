# SPDX-License-Identifier: GPL-2.0-or-later
"""The same cells as a Snakemake workflow, for a cluster.

Snakemake was chosen over Dask since a cell is a program that writes a file: rules say
just that, no process of ours has to stay alive on the cluster, its profiles know the
batch systems, and rsdsim and this file are all that its machines need.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from rsd.sweep.grid import Cell

SNAKEFILE = """\
# Made by ./rsd sweep --snakemake. Run in this directory:
#     snakemake --cores all                          here
#     snakemake --executor slurm --jobs 100          or another executor's name
# then, for the table, where the repository is:
#     ./rsd sweep {sweep} --store {store}
# --config rsdsim=PATH names another rsdsim, of the same sources.

import json

RSDSIM = config.get("rsdsim", {rsdsim!r})

with open("cells.json") as stream:
    CELLS = json.load(stream)


rule all:
    input:
        expand("cells/{{key}}.json", key=CELLS),


rule cell:
    output:
        "cells/{{key}}.json",
    log:
        "logs/{{key}}.log",
    params:
        rsdsim=RSDSIM,
        arguments=lambda wildcards: CELLS[wildcards.key],
    shell:
        "{{params.rsdsim:q}} {{params.arguments:q}} --json --output {{output:q}} 2> {{log:q}}"
"""


def write(directory: Path, sweep: Path, cells: Sequence[Cell], rsdsim: Path) -> None:
    """Snakefile and cells.json. The directory is also the store of the results."""
    text = SNAKEFILE.format(sweep=sweep.absolute(), store=directory.absolute(), rsdsim=str(rsdsim))
    content = {cell.key: cell.arguments for cell in cells}
    (directory / "Snakefile").write_text(text)
    (directory / "cells.json").write_text(json.dumps(content, indent=1) + "\n")
