# SPDX-License-Identifier: GPL-2.0-or-later
"""Work that more than one machine can do: cells, their results in files, a Snakemake workflow.

A cell is described by what decides its result: the key. Sweeps have one a run of rsdsim; papers and
`compare --full` have one a guest whose result is kept in the cache (unit.py).
"""
