# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd crash`: is what a program has made durable there after a power cut, at any operation?

The files, from the top: command.py, the command line; campaign.py, a run and its directory;
explore.py, which states are looked at; visit.py, how, in guests; record.py, the work; report.py,
page.py and timeline.py, what is said of it; pack.py; view.py, the states without a guest; states.py
and subject.py, what they are of. guest/ has what runs in the guest; patched/ builds a file system
with a patch; bugs/ has published bugs to be found.
"""

from rsd.crash.command import add_arguments, main

__all__ = ["add_arguments", "main"]
