"""Augmenting paths in dense costs by the columns that each row knows (`candidates`)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from gpumatch.contracts import AssignmentTask, Control
from gpumatch.cpu.assignment.dense import candidate_bids, candidate_search, candidates
from gpumatch.cpu.assignment.dense.candidates import KNOWN, look_at_all
from gpumatch.cpu.assignment.dense.paths import DensePaths
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.searches import dense as dense_search
from gpumatch.cpu.searches.dense import LANES
from gpumatch.cpu.searches.paths import Paths

__all__ = ["BUDGET", "KnownPaths", "RangeWork"]

BUDGET = 2**23
"""Entries read between two returns to Python: less than a tenth of a second."""
BIDS = 8
"""Bids in a round for each unmatched row."""

ROUNDED = 2.0**-40
"""What bounds may miss by rounding: a share of the largest cost and price, in 4,000 rounds."""

RangeWork = Callable[[int, int, int], None]
"""Work of a worker on rows first to last."""


class KnownPaths(Paths):
    """`Paths` by kernels of candidates, and by threads where rows can be shared out."""

    bids = BIDS
    budget = BUDGET

    def __init__(self, task: AssignmentTask, workers: Workers) -> None:
        values: Any = task.costs.entries()
        super().__init__(values, task.costs, *task.mates, task.solution.col_dual, task.limit)
        self.values, self.workers = values, workers
        nrows, ncols = values.shape
        self.known = np.zeros((nrows, KNOWN), np.int32), np.zeros((nrows, KNOWN)), np.zeros(nrows)
        pred, near, tree, reached = np.empty((4, ncols), np.int32)
        room = 2 * (ncols + nrows + KNOWN)  # twice what may wait
        heap = np.empty(room), np.empty(room, np.int32)
        self.search = np.full(ncols, self.far), pred, near, *heap, tree, reached
        self.spare = np.empty(KNOWN, np.int32), np.empty(KNOWN)
        self.scratch = [
            (np.empty(ncols + 1), *np.empty((2, ncols + 1), np.int32))
            for _ in range(workers.threads)
        ]
        self.terms = self.limit, self.leaves
        self.kept: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # prices, duals, which

    def _number(self, col_dual: np.ndarray, limit: float) -> Any:
        return np.float64

    @property
    def state(self) -> tuple[Any, ...]:
        """What all kernels take: the matrix, and what they change."""
        return self.values, self.price, self.row_to_col, self.col_to_row, self.known

    def share(self, work: RangeWork, control: Control) -> bool:
        """Let all threads work on all rows, for a budget at a time; False if stopped."""
        for rows in self.blocks():
            self._share_range(work, *rows)
            if control.tick(self.matched):
                return False
        return True

    def _share_range(self, work: RangeWork, first: int, last: int) -> None:
        count = self.workers.threads
        bounds = [first + (last - first) * share // count for share in range(count + 1)]

        def work_on_share(worker: int) -> bool:
            work(worker, *bounds[worker : worker + 2])
            return True

        self.workers.run(work_on_share, count)

    def blocks(self) -> Iterator[tuple[int, int]]:
        nrows = self.row_to_col.size
        count = -(-self.values.size // (BUDGET * self.workers.threads))
        bounds = [nrows * block // count for block in range(count + 1)]
        return pairwise(bounds)

    def look(self, control: Control) -> bool:
        """Let all rows look at their lines; False if stopped."""

        def look_at_range(worker: int, first: int, last: int) -> None:
            look_at_all(
                self.values, self.price,  # IN
                self.known, self.scratch[worker],  # OUT
                first, last,  # IN
            )  # fmt: skip

        return self.share(look_at_range, control)

    def leave_search(self) -> None:
        """Give up a search that has not ended."""
        self.search[0][:] = self.far

    @contextlib.contextmanager
    def by_lines(self) -> Iterator[DensePaths]:
        """Within, paths from the same pairs and prices that read whole lines."""
        is_integer = self.costs.is_integer
        price = self.price.astype(np.int64) if is_integer else self.price
        limit = self.limit if self.leaves else None
        lines = DensePaths(self.entries, self.costs, self.row_to_col, self.col_to_row, price, limit)
        lines.unit = self.price.size
        try:
            yield lines
        finally:
            self.price[:] = lines.price

    def augment_some(self, unmatched: np.ndarray, budget: int) -> int:
        return candidate_search.augment(
            *self.state[:4],  # IN, OUT
            unmatched,  # IN
            self.spot, self.mark, self.search, self.known, self.scratch[0], self.spare,  # OUT
            self.terms, budget,  # IN
        )  # fmt: skip

    def _reduce_rows(self, unmatched: np.ndarray) -> bool:
        return candidate_bids.reduce_rows(
            *self.state[:4], unmatched, self.spot, self.known, self.scratch[0],  # OUT
            self.terms, self.bids * unmatched.size, self.budget,  # IN
        )  # fmt: skip

    def _lower_to_minima(
        self, lowest: np.ndarray, nearest: np.ndarray, first: int, last: int
    ) -> None:
        threads = range(self.workers.threads)
        found = [(np.full_like(lowest, self.far), np.zeros_like(nearest)) for _ in threads]

        def lower(worker: int, first: int, last: int) -> None:
            dense_search.lower_to_minima(
                self.values,  # IN
                *found[worker],  # OUT
                first, last,  # IN
            )  # fmt: skip

        self._share_range(lower, first, last)
        for others, rows in found:
            lower_ones = others < lowest
            np.copyto(lowest, others, where=lower_ones)
            np.copyto(nearest, rows, where=lower_ones)

    def write_row_duals(self, row_dual: np.ndarray) -> None:
        least = np.empty(row_dual.size)
        self._find_row_duals(least)
        row_dual[:] = np.minimum(least, self.limit) if self.leaves else least

    def keep_row_duals(self, row_dual: np.ndarray) -> None:
        """Take row duals that no pair undercuts but for rounding, and that pairs are tight at."""
        largest = self.costs.largest + float(abs(self.price).max(initial=0))
        margin = 0.0 if self.costs.is_integer else ROUNDED * largest
        is_kept = np.zeros(row_dual.size, bool)
        candidates.mark_fair(
            row_dual.astype(np.float64), self.price, margin, self.known,  # IN
            is_kept,  # OUT
        )  # fmt: skip
        self.kept = self.price.copy(), row_dual.copy(), is_kept

    def _find_row_duals(self, row_dual: np.ndarray) -> None:
        self._find_duals(dense_search.row_duals, row_dual)

    def _find_fair_duals(self, row_dual: np.ndarray) -> None:
        self._find_duals(dense_search.fair_row_duals, row_dual)

    def _find_duals(self, kernel: Any, row_dual: np.ndarray) -> None:
        if self.kept is not None and np.array_equal(self.price, self.kept[0]):
            _, duals, is_kept = self.kept
            row_dual[:] = duals
            least = np.empty(LANES)
            for row in np.flatnonzero(~is_kept):
                kernel(
                    self.values, self.price,  # IN
                    least,  # OUT
                    self.far,  # IN
                    row_dual,  # OUT
                    row, row + 1,  # IN
                )  # fmt: skip
            return

        def find(_: int, first: int, last: int) -> None:
            kernel(
                self.values, self.price,  # IN
                np.empty(LANES),  # OUT
                self.far,  # IN
                row_dual,  # OUT
                first, last,  # IN
            )  # fmt: skip

        for rows in self.blocks():
            self._share_range(find, *rows)
