# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of tests in which nothing is measured."""

# Without instructions that copy and clear memory byte by byte: each byte is a step for TCG, and
# these were half of what guests took.
CPU = ("-cpu", "max,+rdrand,-rdseed,-erms,-fsrm,-fsrs,-fsrc,-fzrm")
