# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd bench laws`: what any SSD model must obey, held against rsdsim from outside.

A module a subject; the small models that some of them need are in tests/model/law_*.py. None of
this was written from the drive's sources.
"""

from rsd.bench.laws.command import add_arguments, laws, main

__all__ = ["add_arguments", "laws", "main"]
