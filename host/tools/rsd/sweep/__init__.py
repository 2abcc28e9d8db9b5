# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd sweep`: rsdsim over a grid of settings, on all cores or on a cluster."""

from rsd.sweep.command import add_arguments, main

__all__ = ["add_arguments", "main"]
