"""The numbers that tune the engine for sparse costs: `DEFAULT`, unless a caller passes others.

No result depends on them, only time. A share is of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["DEFAULT", "FINEST", "Trial", "Tuning"]

FINEST = 24
"""Bits: the last epsilon is the span of the costs divided by this power of two."""


class Trial(NamedTuple):
    """The limits of a trial, which tries to solve a problem without auctions that have an epsilon.

    Attributes
    ----------
    bids : int
        The most bids without an epsilon of a group of lanes before it leaves its row unmatched.
    unmatched : float
        The largest share of unmatched rows from which trees grow.
    looks : int
        The rows that a warp scans in these trees before their progress is checked.
    rest : float
        The largest share of unmatched rows at that check.
    finest : int
        Bits: the first bound of the trees is the span of the costs divided by ``2**finest``.
    """

    bids: int
    unmatched: float
    looks: int
    rest: float
    finest: int = FINEST


SHORT = Trial(0, 0.15, 1024, 1 / 1000)
LONG = Trial(32, 1 / 8, 1024, 1 / 1000, 8)
WIDE = Trial(32, 1 / 8, 4096, 1 / 200, 16)


@dataclass(frozen=True)
class Tuning:
    """What the steps decide by; each field says its unit, and where it was measured."""

    # -- the trial ---------------------------------------------------------------------------------

    trial: Trial = SHORT
    """The trial of most costs."""
    long_trial: Trial = LONG
    """The trial for costs that differ by orders of magnitude.

    `gpumatch.cpu.assignment.sparse.engine` has such a trial too. In a KKT matrix of 200,000 rows,
    4,000 are unmatched after exact bids. If costs have one magnitude, a trial that is given up
    takes a fifth of the whole time.
    """
    wide_trial: Trial = WIDE
    """The trial if columns are so many more than rows that most rows find one nearby.

    Exact bids leave the price 0 to columns that nobody wants, as they must have it. Auctions with
    an epsilon do not: with 90,000 of 100,000 points and their 24 nearest, all 10,000 unmatched
    columns got a price, and the trees of spare rows that took it back were 0.69 of 0.71 seconds on
    an H200.
    """
    surplus: float = 1 / 16
    """The share by which columns must be more for that."""

    # -- the span of the costs ---------------------------------------------------------------------

    widest: int = 2**14
    """The most leads of a typical row that the span may be.

    A lead is the difference between the two least costs of a row. If the range of the costs is
    wider, some costs exceed all others, or costs differ by orders of magnitude. An epsilon that
    follows from the range is then too coarse: 1,500 rows with costs exp(7 normal) have 36 rounds of
    trees instead of 7, and four to twelve times the looks. The nearest columns of a million points
    in the plane have a range of a few thousand leads.
    """
    sample: int = 1024
    """The most rows whose leads are looked at."""

    # -- auctions ----------------------------------------------------------------------------------

    longest_chain: int = 4096
    """The most bids of a group before it leaves its row unmatched."""
    unmatched: tuple[int, int] = 32, 1024
    """Bounds of the rows that an auction leaves unmatched, which are one in 1024."""
    unmatched_by_first: int = 4096
    """The first auction ends at this number of rows, divided by the lanes of a row."""
    rows_a_launch: int = 8192
    """The first auction has a launch for each so many rows, because its last chains are long."""
    war: float = 0.9
    """The first auction ends if a launch leaves more than this share of its bidders unmatched.

    Then groups of rows have too few columns unless prices rise by orders of magnitude, and further
    auctions would end in the same wars.
    """
    most_at_war: float = 1 / 16
    """The share of unmatched rows above which prices are still on their way to other regions.

    On an H100, two far clusters of 80,000 points, of which 8,000 must go to the other one, take 64
    ms. If the first auction ends before they have, trees serve them, in 3.5 s.
    """
    chain_of_war: int = 256
    """The most bids of a group in the auctions after such a first one.

    On an H100, 80,000 rows with costs from 10**-9 to 10**9 take 110 ms with this, and 318 with
    `longest_chain` (bench/results/sparse-wars-h100.json). Both leave some hundred rows to trees.
    """
    kept: int = 4
    """The bids of columns end with one unmatched column in so many of those at first."""
    longest_chain_back: int = 1024
    """The most bids of a group that begins with a column."""
    surplus_to_bid: float = 1 / 50
    """The share by which columns must be more for them to bid after each auction.

    On an H200, 28,500 and 29,100 rows of 30,000 points with 16 nearest take 42 ms instead of 99 and
    109, and 88 and 125 with `wide_trial`. 27,000 rows take 34 instead of 102, and 18.5 with
    `wide_trial`. But 29,550 rows would take 130 instead of 105.
    """

    # -- trees -------------------------------------------------------------------------------------

    looks_a_launch: int = 4096
    """Rows that a warp scans before the host checks progress, time limit and Ctrl-C."""
    width_of_a_step: int = 256
    """A step of bounds is this number times the range of the costs, divided by two numbers.

    These are the lanes of a row, and the square root of the number of rows. For a million points in
    the plane, which take 3.3 s, a step is a 64th of the range. With a 128th they take 4.0 s, and
    with a 43rd 3.2 s.
    """


DEFAULT = Tuning()
