# SPDX-License-Identifier: GPL-2.0-or-later
"""OFTL (FAST 2013): tables 2 and 3, figures 7 to 9. Nothing of them can be measured yet."""

from rsd.paper.entry import Entry, Paper

_COMPACTED = "needs compacted updates (OFTL 4.3), which RFS does not have"

PAPER = Paper(
    "oftl",
    "Y. Lu, J. Shu, W. Zheng: Extending the Lifetime of Flash-based Storage through Reducing Write "
    "Amplification from File Systems. USENIX FAST 2013",
    (
        Entry(
            "table2",
            "six workloads: sizes, alignment, flushes",
            missing="needs generators of the six workloads",
        ),
        Entry("table3", "bytes written by bytes asked, SYNC and ASYNC", missing=_COMPACTED),
        Entry("figure7", "write amplification of metadata", missing=_COMPACTED),
        Entry("figure8", "write amplification by the size of a page", missing=_COMPACTED),
        Entry(
            "figure9", "latency of I/Os beside the updating window's extensions", missing=_COMPACTED
        ),
    ),
)
