# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd bench`: the product's stated figures, measured, each with pass or fail."""

from rsd.bench.command import add_arguments, main

__all__ = ["add_arguments", "main"]
