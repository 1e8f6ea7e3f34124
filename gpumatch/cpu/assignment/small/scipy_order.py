"""Shortest augmenting paths of dense problems in SciPy's order.

Where several assignments are optimal, this is the one of `scipy.optimize.linear_sum_assignment`.
Rows are taken in their order, and a search scans one row at a time. It keeps the columns that it
has not reached in a list, at first from the last to the first. A column that is reached gives its
place to the last of the list. Of the nearest columns, the last unmatched one of the list is chosen;
if all are matched, the first. Numbers are added in SciPy's order, too, so that rounding makes no
difference.

    costs[i, j]    cost of the pair, for no more rows than columns; inf forbids it
    u[i], v[j]     duals
    mate[j]        row matched to column j, or -1
    found[i]       column matched to row i, or -1
    pred[j]        row from which column j is reached, at distance[j]
    left[:size]    columns that are not reached; after them, those that are

Reference: Crouse, "On implementing 2D rectangular assignment algorithms", IEEE Transactions on
Aerospace and Electronic Systems 52(4), 2016.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpumatch.cpu.numba_tools.compiled import strict_kernel
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["columns_of_rows"]


def columns_of_rows(problems: Sequence[np.ndarray], most_rows: int, threads: int) -> np.ndarray:
    """The column of each row of many problems, int64, -1 for none; ``most_rows`` for each problem.

    All rows of a problem that has no full assignment, or a number that is not valid, have -1.
    """
    columns = np.full((len(problems), most_rows), -1, np.int64)
    ahead, halted = iter(range(len(problems))), False

    def serve(_: int) -> bool:
        nonlocal halted
        try:
            for k in ahead:
                if halted:
                    return False
                _solve(problems[k], columns[k])
        except BaseException:
            halted = True  # a Ctrl-C: the other threads end after the problem that they have
            raise
        return True

    with Workers(threads, sum(costs.size for costs in problems)) as workers:
        try:
            workers.run(serve, len(problems))
        except BaseException:
            halted = True  # a Ctrl-C while this thread waits for the others
            raise
    return columns


def _solve(costs: np.ndarray, columns: np.ndarray) -> None:
    """Write the columns of the rows of one problem."""
    turned = costs.shape[0] > costs.shape[1]
    costs = np.ascontiguousarray(costs.T if turned else costs, np.float64)
    nrows, ncols = costs.shape
    found, mate = np.full(nrows, -1), np.full(ncols, -1)
    prices = np.zeros(nrows), np.zeros(ncols)
    room = np.empty(ncols, np.int64), np.empty(ncols), np.empty(ncols, np.int64)
    if not _match(costs, found, mate, *prices, *room):
        return
    if turned:
        columns[found] = np.arange(found.size)
    else:
        columns[: found.size] = found


@strict_kernel
def _match(costs, found, mate, u, v, pred, distance, left):
    """Match all rows; False if a number is not valid, or some row has no path."""
    nrows, ncols = costs.shape
    for row in range(nrows):
        for col in range(ncols):
            if not costs[row, col] > -np.inf:
                return False
    for root in range(nrows):
        size = _search(costs, u, v, mate, pred, distance, left, root)
        if size < 0:
            return False
        sink = left[size]
        far = distance[sink]
        u[root] += far
        for k in range(size, ncols):
            col = left[k]
            if mate[col] >= 0:
                u[mate[col]] += far - distance[col]
            v[col] -= far - distance[col]
        while True:
            row = pred[sink]
            mate[sink] = row
            found[row], sink = sink, found[row]
            if row == root:
                break
    return True


@strict_kernel
def _search(costs, u, v, mate, pred, distance, left, root):
    """Search from ``root``; return how many columns are not reached yet when an unmatched one is.

    It is -1 if none is.
    """
    size = left.size
    for k in range(size):
        left[k] = size - 1 - k
        distance[k] = np.inf
    row, front = root, 0.0
    while True:
        least, at = np.inf, -1
        for k in range(size):
            col = left[k]
            there = front + costs[row, col] - u[row] - v[col]
            if there < distance[col]:
                distance[col] = there
                pred[col] = row
            if distance[col] < least or (distance[col] == least and mate[col] < 0):
                least = distance[col]
                at = k
        if least == np.inf:
            return -1
        front = least
        size -= 1
        left[at], left[size] = left[size], left[at]
        row = mate[left[size]]
        if row < 0:
            return size
