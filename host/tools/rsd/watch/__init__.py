# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd watch`: what each die did in a recorded run, in Perfetto."""

from rsd.watch.command import add_arguments, main

__all__ = ["add_arguments", "main"]
