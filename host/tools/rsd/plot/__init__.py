# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd plot`: latency or throughput over time, from the logs that fio writes."""

from rsd.plot.command import add_arguments, main

__all__ = ["add_arguments", "main"]
