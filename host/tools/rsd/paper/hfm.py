# SPDX-License-Identifier: GPL-2.0-or-later
"""HFM (2014): figures 5 to 11. Nothing of them can be measured yet."""

from rsd.paper.entry import Entry, Paper

_TWO = "needs volumes on two drives and HFM's data sections, which RFS does not have"

PAPER = Paper(
    "hfm",
    "J. No, S.-M. Choi, S.-S. Park, C.-S. Lim: HFM: Hybrid File Mapping Algorithm for SSD Space "
    "Utilization. Applied Mathematics and Information Sciences, 2014",
    (
        Entry("figure5", "TPC-C, 4 GB of memory", missing=_TWO),
        Entry("figure6", "TPC-C, 1 GB of memory", missing=_TWO),
        Entry("figure7", "PostMark, 100,000 transactions", missing=_TWO),
        Entry("figure8", "PostMark, 500,000 transactions", missing=_TWO),
        Entry("figure9", "IOzone, small files", missing=_TWO),
        Entry("figure10", "IOzone, large files", missing=_TWO),
        Entry("figure11", "IOzone by the size of files", missing=_TWO),
    ),
)
