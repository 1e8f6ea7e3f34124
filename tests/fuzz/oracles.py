"""Optima by other means: SciPy's algorithms on problems that are made full, and exact arithmetic.

An oracle gives an assignment of its own, whose cost is then added exactly. A result that is worse
is wrong, even if the oracle itself has rounded. What is better than the oracle is not wrong for
that, because its pairs are checked by themselves.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import (
    maximum_bipartite_matching,
    min_weight_full_bipartite_matching,
)

from tests.fuzz.problems import Problem

DENSE = 2**22 + 2**20
"""Costs of a matrix up to which it is made."""
EXACT_FROM = 2**44
"""Integers from which SciPy's float64 may lose what decides."""
EXACT_ROWS = 520
SPARSE = 2**28
"""Rows times entries up to which SciPy is asked about a sparse matrix that is not made dense."""
FAR = 2**61


class Optimum(NamedTuple):
    rows: np.ndarray
    cols: np.ndarray

    def among(self, nrows: int, ncols: int) -> Optimum:
        """The pairs of the first rows and columns."""
        kept = (self.rows < nrows) & (self.cols < ncols)
        return Optimum(self.rows[kept], self.cols[kept])


def is_infeasible(problem: Problem) -> bool:
    """Whether a full assignment is asked for, and none exists."""
    if problem.cardinality != "full" or problem.is_free:
        return False
    return rank(problem) < min(problem.shape)


def best(problem: Problem) -> Optimum | None:
    """An optimal assignment, as far as SciPy's float64 knows.

    None if there is none, or if SciPy would take long to find it.
    """
    if problem.cardinality == "maximum":
        return _largest(problem.within())
    return _free(problem) if problem.is_free else _full(problem)


def rank(problem: Problem) -> int:
    """The largest number of pairs."""
    pattern = problem.csr()
    pattern.data = np.ones(pattern.nnz)
    return int((maximum_bipartite_matching(pattern) >= 0).sum())


def _full(problem: Problem) -> Optimum | None:
    if is_infeasible(problem):
        return None
    return _solved(problem.rows, problem.cols, problem.costs, problem.shape)


def _free(problem: Problem) -> Optimum | None:
    """Pairs that gain nothing are worth 0, and so are all that are forbidden."""
    nets = problem.costs - problem.limits[problem.rows]
    gains = nets < 0
    rows, cols, nets = problem.rows[gains], problem.cols[gains], nets[gains]
    nrows, ncols = problem.shape
    if nrows * ncols <= DENSE:
        matrix = np.zeros(problem.shape, nets.dtype)
        matrix[rows, cols] = nets
        ends = _of_matrix(matrix)
        kept = matrix[ends] < 0
        return Optimum(ends[0][kept], ends[1][kept])
    own = np.arange(nrows)  # each row has a column of its own, which costs 0
    ends = _solved(
        np.concatenate([rows, own]), np.concatenate([cols, ncols + own]),
        np.concatenate([nets, np.zeros(nrows, nets.dtype)]), (nrows, ncols + nrows),
    )  # fmt: skip
    return ends and ends.among(nrows, ncols)


def _largest(problem: Problem) -> Optimum | None:
    """Vertices beyond the largest number of pairs are matched to vertices that are added."""
    size, (nrows, ncols) = rank(problem), problem.shape
    if size == min(problem.shape):
        return _solved(problem.rows, problem.cols, problem.costs, problem.shape)
    more_rows, more_cols = ncols - size, nrows - size
    shape = nrows + more_rows, ncols + more_cols
    if shape[0] * shape[1] > DENSE:
        return None
    added = np.repeat(np.arange(nrows), more_cols), np.tile(ncols + np.arange(more_cols), nrows)
    below = np.repeat(nrows + np.arange(more_rows), ncols), np.tile(np.arange(ncols), more_rows)
    rows, cols = (
        np.concatenate(parts) for parts in zip((problem.rows, problem.cols), added, below)
    )
    costs = np.zeros(rows.size, problem.costs.dtype)
    costs[: problem.costs.size] = problem.costs
    ends = _solved(rows, cols, costs, shape)
    return ends and ends.among(nrows, ncols)


def _solved(rows: Any, cols: Any, costs: Any, shape: tuple[int, int]) -> Optimum | None:
    """The pairs of a full assignment, which exists, at least cost; None if it may take long."""
    if shape[0] * shape[1] <= DENSE:
        if costs.dtype.kind == "i" and _needs_exact(costs, shape):
            matrix = np.full(shape, FAR, np.int64)
            matrix[rows, cols] = costs
            return Optimum(*exactly(matrix))
        matrix = np.full(shape, np.inf)
        if rows.size == shape[0] * shape[1]:
            matrix = np.zeros(shape, costs.dtype)
        matrix[rows, cols] = costs
        return Optimum(*_of_matrix(matrix))
    if min(shape) * rows.size > SPARSE:
        return None
    least = float(costs.min(initial=0))
    shifted = costs.astype(np.float64) - least + 1  # stored zeros are no edges for SciPy
    matrix = sparse.coo_array((shifted, (rows, cols)), shape=shape).tocsr()
    return Optimum(*min_weight_full_bipartite_matching(matrix))


def _of_matrix(matrix: np.ndarray) -> Any:
    if matrix.dtype.kind == "i" and _needs_exact(matrix, matrix.shape):
        return exactly(matrix)
    return linear_sum_assignment(matrix.astype(np.float64))


def _needs_exact(costs: np.ndarray, shape: tuple[int, int]) -> bool:
    return min(shape) <= EXACT_ROWS and int(abs(costs).max(initial=0)) >= EXACT_FROM


def exactly(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A cheapest full assignment of integers by shortest augmenting paths, without rounding.

    `FAR` forbids a pair. A shortest path has no such pair, because there is a full assignment. So
    distances are below `FAR` and a few times n costs; beyond 64 bits the numbers are Python's.
    """
    if matrix.shape[0] > matrix.shape[1]:
        rows, cols = exactly(matrix.T)
        order = cols.argsort()
        return cols[order], rows[order]
    nrows, ncols = matrix.shape
    most = int(abs(matrix[matrix != FAR]).max(initial=0))
    is_wide = most * 8 * (nrows + 2) >= FAR
    costs = matrix.astype(object) if is_wide else matrix
    if is_wide:
        costs = np.where(matrix == FAR, 4 * (nrows + 2) * FAR, costs)
    far = 2**200 if is_wide else np.int64(2**63 - 1)
    kind = object if is_wide else np.int64
    row_dual, col_dual = np.zeros(nrows, kind), np.zeros(ncols, kind)
    col_to_row = np.full(ncols, -1)
    for start in range(nrows):
        least, before = np.full(ncols, far, kind), np.full(ncols, -1)
        seen, row, last, reached = np.zeros(ncols, bool), start, -1, 0
        visited = []
        while True:
            slack = reached + costs[row] - row_dual[row] - col_dual
            closer = ~seen & (slack < least)
            least[closer], before[closer] = slack[closer], last
            open_cols = np.flatnonzero(~seen)
            last = int(open_cols[least[open_cols].argmin()])
            reached, seen[last] = least[last], True
            if col_to_row[last] < 0:
                break
            row = int(col_to_row[last])
            visited.append(last)
        row_dual[start] += reached
        for col in visited:
            row_dual[col_to_row[col]] += reached - least[col]
            col_dual[col] -= reached - least[col]
        while last >= 0:
            previous = int(before[last])
            col_to_row[last] = start if previous < 0 else col_to_row[previous]
            last = previous
    cols = np.flatnonzero(col_to_row >= 0)
    order = col_to_row[cols].argsort()
    return col_to_row[cols][order], cols[order]


def by_programming(problem: Problem) -> float | None:
    """The optimum of a small problem by HiGHS, up to its tolerance; None if infeasible."""
    from scipy.optimize import linprog

    (nrows, ncols), count = problem.shape, problem.rows.size
    of_rows = sparse.coo_array((np.ones(count), (problem.rows, np.arange(count))), (nrows, count))
    of_cols = sparse.coo_array((np.ones(count), (problem.cols, np.arange(count))), (ncols, count))
    costs = problem.costs.astype(float)
    equal: dict[str, Any] = {}
    if problem.is_free:
        costs = costs - problem.limits[problem.rows]
    else:
        size = min(problem.shape) if problem.cardinality == "full" else rank(problem)
        equal = {"A_eq": np.ones((1, count)), "b_eq": [size]}
    if count == 0:
        return None if equal and equal["b_eq"] != [0] else 0.0
    found = linprog(
        costs, A_ub=sparse.vstack([of_rows, of_cols]), b_ub=np.ones(nrows + ncols),
        bounds=(0, 1), method="highs", **equal,
    )  # fmt: skip
    return float(found.fun) if found.status == 0 else None


def enumerated(problem: Problem) -> tuple[int, Fraction] | None:
    """The pairs and the least sum of c - L of all assignments that compete; None if none does."""
    allowed = problem.within() if problem.cardinality == "maximum" else problem
    nrows, ncols = problem.shape
    options: list[list[tuple[int, Fraction]]] = [[] for _ in range(nrows)]
    limits = problem.limits.tolist()
    for row, col, cost in zip(allowed.rows.tolist(), allowed.cols.tolist(), allowed.costs.tolist()):
        base = Fraction(limits[row]) if problem.is_free else Fraction(0)
        options[row].append((col, Fraction(cost) - base))
    least = {0: Fraction(0)}  # by the columns that are taken, as bits
    for pairs in options:
        longer = dict(least)
        for taken, net in least.items():
            for col, cost in pairs:
                bits = taken | 1 << col
                if bits != taken and net + cost < longer.get(bits, net + cost + 1):
                    longer[bits] = net + cost
        least = longer
    sizes = {bits.bit_count() for bits in least}
    if not problem.is_free:
        sizes &= {max(sizes) if problem.cardinality == "maximum" else min(nrows, ncols)}
    nets = [(bits.bit_count(), net) for bits, net in least.items() if bits.bit_count() in sizes]
    return min(nets, key=lambda found: found[1], default=None)


def bottleneck(problem: Problem) -> Any:
    """The least largest cost, or None where there is no assignment; by halving thresholds."""
    size = rank(problem)
    if problem.cardinality == "full" and size < min(problem.shape):
        return None
    thresholds = np.unique(problem.costs)
    low, high = 0, thresholds.size - 1
    while low < high:
        middle = (low + high) // 2
        kept = dataclasses.replace(problem).of_pairs(problem.costs <= thresholds[middle])
        low, high = (low, middle) if rank(kept) == size else (middle + 1, high)
    return thresholds[low].item() if size else None
