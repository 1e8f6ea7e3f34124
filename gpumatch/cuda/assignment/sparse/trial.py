"""The trial of the GPU's engine for sparse costs: pairs, exact bids and trees from the least costs.

It needs no auctions with an epsilon. It is given up if too many rows are unmatched after its bids,
or after its first trees.
"""

from __future__ import annotations

from typing import NamedTuple

import cupy as cp

from gpumatch.contracts import Control
from gpumatch.cuda.assignment.sparse.auction import bid_exactly
from gpumatch.cuda.assignment.sparse.problem import FINEST, Problem
from gpumatch.cuda.assignment.sparse.trees import Trees

__all__ = ["LONG", "SHORT", "Trial", "run_trial"]


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
"""The trial for costs that differ by orders of magnitude.

`gpumatch.cpu.assignment.sparse.engine` has such a trial too. In a KKT matrix of 200,000 rows, 4,000
are unmatched after exact bids. If costs have one magnitude, a trial that is given up takes a fifth
of the whole time.
"""
WIDE = Trial(32, 1 / 8, 4096, 1 / 200, 16)
"""The trial if columns are so many more than rows that most rows find one nearby.

Exact bids leave the price 0 to columns that nobody wants, as they must have it. Auctions with an
epsilon do not: with 90,000 of 100,000 points and their 24 nearest, all 10,000 unmatched columns got
a price, and the trees of spare rows that took it back were 0.69 of 0.71 seconds on an H200.
"""
_SURPLUS = 1 / 16
"""The share of the rows by which columns must be more for that."""


def run_trial(problem: Problem, given: cp.ndarray | None, trial: Trial, control: Control) -> bool:
    """Match the rows without auctions that have an epsilon; False if the trial was given up."""
    with control.part("first pairs"):
        problem.reduce_columns()
        problem.take_tight_pairs(given)
    nrows = problem.full.shape[0]
    if problem.has_surplus(_SURPLUS) and problem.count_unmatched() > trial.unmatched * nrows:
        trial = WIDE
        problem.narrow_span()
    if trial.bids and problem.count_unmatched():
        with control.part("auctions"):
            held = bid_exactly(problem, trial.bids)
        with control.part("first pairs"):
            problem.take_tight_pairs(held)
    unmatched = problem.count_unmatched()
    if unmatched > trial.unmatched * nrows:
        return False
    with control.part("trees"):
        return unmatched == 0 or Trees.of_rows(problem, trial.finest).grow(
            control, looks=trial.looks, most=trial.rest * nrows
        )
