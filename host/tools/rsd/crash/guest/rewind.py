# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: rewind.py DRIVE OPERATION OUTCOMES. See Drive.rewind()."""

import sys

from drive import Drive

Drive(sys.argv[1]).rewind(int(sys.argv[2]), sys.argv[3])
