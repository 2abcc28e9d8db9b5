# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd top`: what a drive that is in use does, seen from outside."""

from rsd.top.command import add_arguments, main

__all__ = ["add_arguments", "main"]
