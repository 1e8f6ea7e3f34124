"""A sparse core of dense costs: the pairs that rows know, solved as sparse costs, then priced.

Most pairs of a matrix never matter. So

1. *Core*: each row brings the columns that it knows (`candidates`). What a maximum matching of
   these pairs leaves unmatched brings all its pairs, so that the core has a full assignment.
2. *Solution*: the engine for sparse costs solves the core, from the prices of the last round.
3. *Pricing*: the core's duals bound all pairs of a row whose bound they respect. Every other row
   looks at its line, and the columns that cost less than its dual allows join the core. Step 2
   follows, until there is none.

Bounds of rows hold while prices fall. Between two rounds some prices rise, but a row's dual and all
prices may be moved by one number. So each bound falls by the greatest rise of a price.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gpumatch.contracts import AssignmentTask, Solution, Stopped
from gpumatch.cpu.assignment.dense import candidates
from gpumatch.cpu.assignment.dense.candidate_paths import KnownPaths
from gpumatch.cpu.assignment.dense.tuning import Tuning
from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.assignment.sparse import tuning as sparse_tunings
from gpumatch.cpu.matching.completion import complete_matching
from gpumatch.numeric.points.pairs import Pairs

__all__ = ["Core"]


class Core:
    """The pairs of a task's matrix that `paths` knows, and what pricing adds.

    Parameters
    ----------
    task : AssignmentTask
        A square matrix, without a limit and without a forbidden pair.
    paths : KnownPaths
        Its rows have looked at their lines. Prices and pairs become those of the core.
    tuning : Tuning
    """

    def __init__(self, task: AssignmentTask, paths: KnownPaths, tuning: Tuning) -> None:
        self.task, self.paths, self.tuning = task, paths, tuning
        self.costs, self.pairs = task.costs, Pairs(task.costs)
        self.own = Solution.empty(task.costs.shape, is_integer=task.costs.is_integer)
        self.before = paths.price.copy()
        self.round = 0

    def solve(self) -> bool:
        """Solve and price in turns; False if the core does not hold a full assignment soon.

        Raises Stopped.
        """
        if not self._take_known():
            return False
        is_done = False
        while not is_done and self.pairs.keys.size < self.tuning.core * self.costs.nnz:
            self._solve_core()
            is_done = self._add_undercutting() == 0
        if is_done:
            self.paths.keep_row_duals(self.own.row_dual)
        return is_done

    def _take_known(self) -> bool:
        """Begin with what rows know; False if that leaves many columns without a row."""
        cols, costs, _ = self.paths.known
        known = np.bincount(cols.ravel(), minlength=costs.shape[0])
        if np.count_nonzero(known == 0) > self.tuning.joined:
            return False
        keys, weights = np.empty(cols.size, np.int64), np.empty(cols.size, self.pairs.weights.dtype)
        count = candidates.list_known(
            cols, costs,  # IN
            keys, weights,  # OUT
        )  # fmt: skip
        self.pairs.keys, self.pairs.weights = keys[:count], weights[:count]
        return self._join_unmatched()

    def _join_unmatched(self) -> bool:
        """Give the core a full assignment; False if a largest matching leaves many rows."""
        mates = tuple(np.full(size, -1, np.int32) for size in self.costs.shape)
        pattern = self.pairs.as_costs().pattern()
        if not complete_matching(self.task.matching(pattern, *mates)):
            raise Stopped
        rows, cols = (np.flatnonzero(mate < 0) for mate in mates)
        if rows.size > self.tuning.joined:
            return False
        if rows.size:
            self.pairs.add((np.repeat(rows, cols.size), np.tile(cols, rows.size)))
        return True

    def _solve_core(self) -> None:
        core = self.pairs.as_costs()
        self.own.has_duals = self.own.are_fair = False
        task = dataclasses.replace(
            self.task, costs=core, solution=self.own, is_fresh=False, may_be_infeasible=False
        )
        tuning = dataclasses.replace(sparse_tunings.DEFAULT, bid_again=self.tuning.bid_again)
        is_done = sparse_engine.run(task, tuning)
        self.paths.price[:] = self.own.col_dual
        self.paths.row_to_col[:], self.paths.col_to_row[:] = self.own.mates
        if not is_done:
            raise Stopped

    def _add_undercutting(self) -> int:
        """Add the pairs that cost less than their duals allow; return how many are new."""
        paths, control = self.paths, self.task.control
        rise = float((paths.price - self.before).max())
        self.before[:] = paths.price
        row_dual = self.own.row_dual.astype(np.float64)
        is_short = np.zeros(row_dual.size, bool)
        looks = np.zeros(paths.workers.threads, np.int64)

        def price(worker: int, first: int, last: int) -> None:
            looks[worker] += candidates.price_rows(
                paths.values, paths.price, row_dual, rise,  # IN
                paths.known, paths.scratch[worker], is_short,  # OUT
                first, last,  # IN
            )  # fmt: skip

        if not paths.share(price, control):
            raise Stopped
        reduced = paths.known[1] - paths.price[paths.known[0]]
        rows, places = np.nonzero(is_short[:, None] & (reduced < row_dual[:, None]))
        new = self.pairs.add((rows.astype(np.int64), paths.known[0][rows, places]))
        self.round += 1
        control.phase(
            found=0,
            matched=paths.matched,
            step="pricing",
            scans=int(looks.sum()) * paths.price.size,
            round=self.round,
            undercut=int(is_short.sum()),
            pairs=int(self.pairs.keys.size),
        )
        return new
