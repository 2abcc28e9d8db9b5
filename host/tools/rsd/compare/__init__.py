# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd compare`: the systems side by side, in a table, a file and a report."""

from rsd.compare.command import add_arguments, main

__all__ = ["add_arguments", "main"]
