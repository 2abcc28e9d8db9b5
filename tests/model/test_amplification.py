# SPDX-License-Identifier: GPL-2.0-or-later
"""The formulas that page-ftl's write amplification is measured against."""

import random

import pytest

from rsd.bench.amplification import first_in_first_out, greedy


def simulated(over_provision: float, pages: int, blocks: int, policy: str) -> float:
    """Amplification of lists of pages that are rewritten at random: no core, no timing."""
    rng = random.Random(1)
    user = int(blocks * pages / (1 + over_provision))
    content: list[set[int]] = [set()]
    holder = [-1] * user
    full: list[int] = []
    free: list[int] = []
    open_block, filled, programmed = 0, 0, 0

    def put(page: int) -> None:
        nonlocal open_block, filled, programmed
        if filled == pages:
            full.append(open_block)
            if not free:
                content.append(set())
                free.append(len(content) - 1)
            open_block, filled = free.pop(), 0
        if holder[page] >= 0:
            content[holder[page]].discard(page)
        content[open_block].add(page)
        holder[page] = open_block
        filled += 1
        programmed += 1

    def write(page: int) -> None:
        put(page)
        while len(full) >= blocks:
            victim = (
                0
                if policy == "fifo"
                else min(range(len(full)), key=lambda n: len(content[full[n]]))
            )
            block = full.pop(victim)
            for valid in sorted(content[block]):
                put(valid)
            free.append(block)

    for page in range(user):
        write(page)
    for _ in range(6 * user):
        write(rng.randrange(user))
    before = programmed
    for _ in range(6 * user):
        write(rng.randrange(user))
    return (programmed - before) / (6 * user)


@pytest.mark.parametrize(("over_provision", "pages"), [(0.1, 8), (0.28, 8), (0.28, 16)])
def test_greedy_is_what_greedy_does(over_provision: float, pages: int) -> None:
    """Small blocks, where it matters that a block has few pages."""
    measured = simulated(over_provision, pages, 400, "greedy")
    assert measured == pytest.approx(greedy(over_provision, pages), rel=0.02)


def test_fifo_is_what_fifo_does() -> None:
    """The formula knows no block size."""
    measured = simulated(0.2, 8, 400, "fifo")
    assert measured == pytest.approx(first_in_first_out(0.2), rel=0.02)


def test_published_values() -> None:
    """Dai et al., arXiv 1110.4245: 2.36 at an over-provisioning factor of 0.3."""
    assert first_in_first_out(0.3) == pytest.approx(2.36, abs=0.005)
    # The definition itself.
    for over_provision in (0.05, 0.1, 0.2, 0.28):
        survive = 1 - 1 / first_in_first_out(over_provision)
        from_definition = 2.718281828459045 ** (-(1 - survive) * (1 + over_provision))
        assert from_definition == pytest.approx(survive, abs=1e-9)


def test_greedy_is_never_worse_than_fifo() -> None:
    """More pages a block bring it nearer, from below."""
    for over_provision in (0.05, 0.1, 0.2, 0.28):
        figures = [greedy(over_provision, pages) for pages in (8, 16, 32, 64, 256, 4096)]
        assert figures == sorted(figures)
        assert figures[-1] <= first_in_first_out(over_provision)
        assert figures[-1] == pytest.approx(first_in_first_out(over_provision), rel=0.01)


def test_no_collection_without_need() -> None:
    """Blocks of one page are always empty when they are collected."""
    assert greedy(0.5, 1) == 1.0
