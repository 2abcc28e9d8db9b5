# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd paper`: the papers' tables and figures, measured here, each with a verdict."""

from rsd.paper.command import add_arguments, main

__all__ = ["add_arguments", "main"]
