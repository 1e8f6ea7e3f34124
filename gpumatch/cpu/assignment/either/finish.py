"""Exact paths from the pairs and prices of an assignment that leave too large a gap.

An algorithm whose steps are shares of the whole range of costs leaves such prices where some costs
are far greater than those of the pairs. Prices are then so far from 0 that c - v has lost the last
digits of c. So

1. prices are moved up so that no two neighbours are farther apart than `narrowed` says: then they
   are no greater than the costs of pairs in use make them;
2. pairs that are not tight at these prices are parted, without any allowance for rounding;
3. the unmatched rows get shortest augmenting paths, whose lengths are differences of costs in
   use, too; no row bids, because a bid may be as far away as the row's second column.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import AssignmentTask
from gpumatch.cpu.assignment.either.paths import paths_of
from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.searches.paths import Paths
from gpumatch.numeric.auction_schedule import narrowed

__all__ = ["run"]


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    solution = task.solution
    _narrow(paths_of(task), task)
    if task.costs.is_sparse:
        ended = sparse_engine.run_exactly(task)
    else:
        paths = paths_of(task)
        try:
            ended = paths.begin(task.control) and paths.augment(task.control)
        finally:
            paths.write_duals(*solution.duals)
    paths = paths_of(task)
    _narrow(paths, task)
    paths.write_duals(*solution.duals)
    solution.has_duals = solution.are_fair = True
    return ended


def _narrow(paths: Paths, task: AssignmentTask) -> None:
    """Move the prices up as far as the pairs allow."""
    price, rows = paths.price, np.flatnonzero(paths.row_to_col >= 0)
    if not rows.size or price.dtype.kind != "f":
        return
    dearest = task.costs.at(rows, paths.row_to_col[rows]).astype(np.float64)
    least, given = np.empty(paths.row_to_col.size), price.copy()
    price[:] = 0
    paths.write_row_duals(least)
    most = float((dearest - least[rows]).max())
    if task.limit is not None:
        most = max(most, float((task.limit - least).max()))
    price[:] = narrowed(given, most)
