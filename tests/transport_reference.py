"""A slow transport algorithm that is easy to believe: each unit becomes a row or a column.

`solve` has the signature of `gpumatch.contracts.transport`. It takes few units only, of a size that
divides all masses.
"""

from __future__ import annotations

import numpy as np

import gpumatch as gm
from gpumatch.contracts.transport import TransportSolution, TransportTask


def matrix_of(task: TransportTask) -> tuple[np.ndarray, np.ndarray]:
    """The costs as a matrix, 0 where a pair is forbidden, and marks of the allowed pairs."""
    if task.costs is not None:
        allowed = np.isfinite(task.costs)
        if task.forbidden is not None:
            allowed &= ~task.forbidden
        return np.where(allowed, task.costs, 0).astype(task.dtype), allowed
    values, allowed = np.zeros(task.shape, task.dtype), np.zeros(task.shape, bool)
    rows = np.repeat(np.arange(task.shape[0]), np.diff(task.indptr))
    values[rows, task.indices] = task.data
    allowed[rows, task.indices] = True
    return values, allowed


def solve(task: TransportTask) -> TransportSolution:
    values, allowed = matrix_of(task)
    masses = np.concatenate([task.supply, task.demand])
    step = max(int(np.gcd.reduce(masses)) if masses.size else 1, 1)
    own = np.repeat(np.arange(task.shape[0]), task.supply // step)
    other = np.repeat(np.arange(task.shape[1]), task.demand // step)
    kept_rows, kept_cols = allowed[own][:, other].nonzero()
    indptr = np.append(0, np.cumsum(np.bincount(kept_rows, minlength=own.size)))
    data = values[own[kept_rows], other[kept_cols]]
    unfolded = (indptr, kept_cols, data, (own.size, other.size))
    limit = None if task.row_limit is None else task.row_limit[own]
    zero = np.zeros(0, np.int64)
    try:
        a = gm.assign(unfolded, cost_limit=limit, algorithm="hungarian-tree", threads=1)
    except gm.InfeasibleError as exc:
        rows = np.unique(own[exc.rows])
        u, v = _duals(task, values, allowed, np.zeros(task.shape[1], task.dtype))
        return TransportSolution(zero, zero, zero, u, v, False, rows)
    v = np.full(task.shape[1], np.iinfo(np.int64).min if task.is_integer else -np.inf, task.dtype)
    np.maximum.at(v, other, a.col_dual.astype(task.dtype))
    u, v = _duals(task, values, allowed, v)
    pairs, flow = np.unique(own[a.row_ind] * task.shape[1] + other[a.col_ind], return_counts=True)
    rows, cols = np.divmod(pairs, max(task.shape[1], 1))
    return TransportSolution(rows, cols, flow * step, u, v, True, None, {"units": int(flow.sum())})


def _duals(task, values, allowed, v):
    """Duals of the rows that go with those of the columns; columns without demand get theirs."""
    far = np.iinfo(np.int64).max // 2 if task.is_integer else np.inf
    v = np.where(task.demand > 0, v, 0)
    with_demand = allowed & (task.demand > 0)
    u = np.where(with_demand, values - v, far).min(axis=1, initial=far)
    if task.row_limit is not None:
        u = np.minimum(u, task.row_limit)
    u = np.where(u == far, 0, u)
    least = np.where(allowed, values - u[:, None], far).min(axis=0, initial=far)
    v = np.where(task.demand > 0, v, np.minimum(0, least))
    return u.astype(task.dtype), v.astype(task.dtype)
