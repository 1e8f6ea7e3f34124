"""The trial of the GPU's engine for sparse costs: pairs, exact bids and trees from the least costs.

It needs no auctions with an epsilon. It is given up if too many rows are unmatched after its bids,
or after its first trees.
"""

from __future__ import annotations

import cupy as cp

from gpumatch.contracts import Control
from gpumatch.cuda.assignment.sparse.auction import bid_exactly
from gpumatch.cuda.assignment.sparse.problem import Problem
from gpumatch.cuda.assignment.sparse.trees import Trees
from gpumatch.cuda.assignment.sparse.tuning import Trial

__all__ = ["run_trial"]


def run_trial(problem: Problem, given: cp.ndarray | None, trial: Trial, control: Control) -> bool:
    """Match the rows without auctions that have an epsilon; False if the trial was given up."""
    with control.part("first pairs"):
        problem.reduce_columns()
        problem.take_tight_pairs(given)
    nrows, tuning = problem.full.shape[0], problem.tuning
    if problem.has_surplus(tuning.surplus) and problem.count_unmatched() > trial.unmatched * nrows:
        trial = tuning.wide_trial
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
