# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of mounted volumes share."""

from collections.abc import Callable

from rsd.machine import GuestResult

# The fixture `run`.
Run = Callable[..., GuestResult]
