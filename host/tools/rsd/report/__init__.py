# SPDX-License-Identifier: GPL-2.0-or-later
"""The HTML report of a comparison: page.py the text and tables, plots.py the pictures."""
