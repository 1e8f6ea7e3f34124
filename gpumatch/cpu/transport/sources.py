"""All pairs of a dense transport problem, as a matrix or as points, for `dense`.

Both tell the pairs of least reduced cost at given duals. A matrix is read for that. Points are in
trees of boxes (`gpumatch.cpu.assignment.points.tree`), which look at a small part of the pairs, and
their memory is O(n + m).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpumatch.contracts import Points
from gpumatch.contracts.transport import AllPairs, Beat, Nearest, PairList
from gpumatch.cpu.assignment.points.distances import distances_at, fill_distances
from gpumatch.cpu.assignment.points.tree import Tree
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.transport import candidates
from gpumatch.numeric.points.clouds import turned

__all__ = ["STORED", "Cloud", "Matrix", "part_of"]

STORED = 2**22
"""Pairs up to which a matrix is made of points."""
ENTRIES = 2**24
"""Entries that are read between two ticks."""


class Matrix:
    """A C-contiguous matrix of finite costs, int64 or float64."""

    def __init__(self, costs: np.ndarray) -> None:
        self.costs, self.shape, self.dtype = costs, costs.shape, costs.dtype
        far: Any = np.iinfo(np.int64).max if costs.dtype.kind == "i" else np.inf
        self.far = costs.dtype.type(far)
        self._step = ENTRIES // max(self.shape[1], 1) + 1

    @functools.cached_property
    def extremes(self) -> tuple[Any, Any]:
        low, high = np.empty((2, 1), self.dtype)
        candidates.extremes(
            self.costs.ravel(),  # IN
            low, high,  # OUT
        )  # fmt: skip
        return low[0], high[0]

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return self.costs[rows, cols]

    def features(self, side: int, others: np.ndarray) -> np.ndarray:
        """The costs of all rows with some columns, or of all columns with some rows."""
        return self.costs[others].T if side else self.costs[:, others]

    def part(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        costs, step = np.empty((rows.size, cols.size), self.dtype), ENTRIES // cols.size + 1
        for first in range(0, rows.size, step):
            part = slice(first, first + step)
            places = rows[part, None] * self.shape[1] + cols
            costs[part] = self.costs.ravel().take(places)
        return costs

    def conjugate(self, rows: np.ndarray, row_dual: np.ndarray, beat: Beat) -> np.ndarray:
        """The least cost of each column less the duals of some rows."""
        col_dual = np.full(self.shape[1], self.far)
        for first in range(0, rows.size, self._step):
            part = slice(first, first + self._step)
            candidates.conjugate(
                self.costs, rows[part], row_dual[part],  # IN
                col_dual,  # OUT
            )  # fmt: skip
            beat()
        return col_dual

    def nearest(self, col_dual: np.ndarray, most: tuple[int, int], beat: Beat) -> Nearest:
        nrows, ncols = self.shape
        of_row, of_col = min(most[0], ncols), min(most[1], nrows)
        row_dual = np.empty(nrows, self.dtype)
        cols, rows = np.zeros((nrows, of_row), np.int32), np.zeros((ncols, of_col), np.int32)
        values = np.full((nrows, of_row), self.far), np.full((ncols, of_col), self.far)
        bar, lanes = np.full(ncols, self.far), candidates.lanes_of(ncols)
        room = tuple(np.empty(length, self.dtype) for length in (ncols, lanes, lanes))
        for first in range(0, nrows, self._step):
            candidates.find(
                self.costs, col_dual,  # IN
                row_dual, cols, values[0], rows, values[1], bar, room,  # OUT
                first, min(first + self._step, nrows),  # IN
            )  # fmt: skip
            beat()
        regret = np.zeros(nrows, self.dtype)
        if of_row > 1:
            regret = np.partition(values[0], 1, axis=1)[:, 1] - row_dual
        return Nearest(row_dual, regret, _listed(cols), _others(rows, cols))

    def undercuts(
        self, row_dual: np.ndarray, col_dual: np.ndarray, tolerance: Any, most: int, beat: Beat
    ) -> PairList:
        """Pairs that cost less than their duals by more than the tolerance, a few of each row."""
        nrows, found = self.shape[0], []
        values, scratch = np.empty(most, self.dtype), np.empty(self.shape[1], self.dtype)
        rows, cols = np.empty((2, min(self._step, nrows) * most), np.int32)
        for first in range(0, nrows, self._step):
            count = candidates.undercuts(
                self.costs, row_dual, col_dual, tolerance,  # IN
                values, rows, cols, scratch,  # OUT
                first, min(first + self._step, nrows),  # IN
            )  # fmt: skip
            found.append((rows[:count].copy(), cols[:count].copy()))
            beat()
        return np.concatenate([one for one, _ in found]), np.concatenate([one for _, one in found])

    def matrix(self) -> np.ndarray:
        return self.costs

    def row_minima(self, col_dual: np.ndarray) -> np.ndarray:
        """The least reduced cost of each row."""
        row_dual = np.empty(self.shape[0], self.dtype)
        candidates.row_minima(
            self.costs, col_dual,  # IN
            row_dual, np.empty(self.shape[1], self.dtype),  # OUT
        )  # fmt: skip
        return row_dual


class Cloud:
    """All pairs of points, whose costs are computed; `workers` search."""

    dtype = np.dtype(np.float64)

    def __init__(self, points: Points, workers: Workers) -> None:
        self.points, self.workers = points, workers
        self.shape = points.rows.shape[0], points.cols.shape[0]

    @functools.cached_property
    def extremes(self) -> tuple[float, float]:
        """Bounds by the extent of all points in each coordinate."""
        p = self.points
        every = np.concatenate([p.rows, p.cols])
        extent = every.max(axis=0) - every.min(axis=0)
        greatest = {
            "sqeuclidean": float(np.square(extent).sum()),
            "euclidean": float(np.sqrt(np.square(extent).sum())),
            "cityblock": float(extent.sum()),
            "chebyshev": float(extent.max()),
        }[p.metric] * (1 + 2.0**-40)
        ends = [0.0, p.sign * greatest]
        low, high = min(ends), max(ends)
        if p.row_offset is not None:
            sums = [
                p.sign * (getattr(p.row_offset, name)() + getattr(p.col_offset, name)())
                for name in ("min", "max")
            ]
            low, high = low + min(sums), high + max(sums)
        return low, high

    @functools.cached_property
    def _of_rows(self) -> Tree:
        """It finds columns for rows."""
        return Tree(self.points)

    @functools.cached_property
    def _of_cols(self) -> Tree:
        """It finds rows for columns."""
        return Tree(turned(self.points))

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return distances_at(self.points, rows, cols)

    def features(self, side: int, others: np.ndarray) -> np.ndarray:
        points = turned(self.points) if side else self.points
        every = np.arange(points.rows.shape[0])
        return np.stack([distances_at(points, every, np.full_like(every, k)) for k in others], 1)

    def part(self, rows: np.ndarray, cols: np.ndarray) -> AllPairs | np.ndarray:
        return part_of(self.points, rows, cols, self.workers)

    def conjugate(self, rows: np.ndarray, row_dual: np.ndarray, beat: Beat) -> np.ndarray:
        every = np.arange(self.shape[1])
        some = Cloud(turned(_restricted(self.points, rows, every)), self.workers)
        return some.row_minima(row_dual, beat)

    def nearest(self, col_dual: np.ndarray, most: tuple[int, int], beat: Beat) -> Nearest:
        bounds = [np.full(length, np.inf) for length in self.shape]
        cols, values = self._least(
            self._of_rows, col_dual, min(most[0], self.shape[1]), bounds[0], beat
        )
        row_dual = values[:, 0].copy()
        regret = values[:, 1] - row_dual if values.shape[1] > 1 else np.zeros_like(row_dual)
        rows, _ = self._least(self._of_cols, row_dual, min(most[1], self.shape[0]), bounds[1], beat)
        return Nearest(row_dual, regret, _listed(cols), _others(rows, cols))

    def undercuts(
        self, row_dual: np.ndarray, col_dual: np.ndarray, tolerance: Any, most: int, beat: Beat
    ) -> PairList:
        bound = row_dual - tolerance
        return _listed(self._least(self._of_rows, col_dual, most, bound, beat)[0])

    def matrix(self) -> None:
        """There is none."""

    def row_minima(self, col_dual: np.ndarray, beat: Beat = lambda: None) -> np.ndarray:
        bound = np.full(self.shape[0], np.inf)
        return self._least(self._of_rows, col_dual, 1, bound, beat)[1][:, 0]

    def _least(
        self, tree: Tree, prices: np.ndarray, most: int, bound: np.ndarray, beat: Beat
    ) -> tuple[np.ndarray, np.ndarray]:
        """The cheapest partners below a bound, and what they cost less their prices."""
        tree.set_prices(prices)
        order = self._of_cols.ids if tree is self._of_rows else self._of_rows.ids
        found, values = tree.least(order, most, bound[order], self.workers, beat)
        of_all = np.empty_like(found), np.empty_like(values)
        of_all[0][order], of_all[1][order] = found, values
        return of_all


def part_of(
    points: Points, rows: np.ndarray, cols: np.ndarray, workers: Workers
) -> AllPairs | np.ndarray:
    """The pairs of some rows and columns: their matrix if it is small."""
    some = _restricted(points, rows, cols)
    if rows.size * cols.size <= STORED:
        return fill_distances(some, 0, rows.size)
    return Cloud(some, workers)


def _restricted(points: Points, rows: np.ndarray, cols: np.ndarray) -> Points:
    offsets = points.row_offset, points.col_offset
    return points._replace(
        rows=points.rows[rows],
        cols=points.cols[cols],
        row_offset=None if offsets[0] is None else offsets[0][rows],
        col_offset=None if offsets[1] is None else offsets[1][cols],
    )


def _listed(partners: np.ndarray) -> PairList:
    """The vertices and their partners, which stand in a line for each vertex; -1 is none."""
    has = partners >= 0
    return np.nonzero(has)[0].astype(np.int32), partners[has].astype(np.int32)


def _others(rows: np.ndarray, cols: np.ndarray) -> PairList:
    """The pairs of columns with their ``rows`` that are not those of rows with their ``cols``."""
    own, partners = _listed(rows)
    is_known = (cols[partners] == own[:, None]).any(axis=1)
    return partners[~is_known], own[~is_known]
