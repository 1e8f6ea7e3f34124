"""Small transport problems, and an independent answer: a linear program."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from gpumatch.contracts.transport import TransportTask
from gpumatch.cpu.transport.sources import Matrix
from gpumatch.running.control import Control


def random_task(seed, *, dense, integer, limit, most=6, size=7, allow=False):
    """A problem with zero masses and forbidden pairs; total supply <= demand without limit."""
    rng = np.random.default_rng(seed)
    nrows, ncols = rng.integers(1, size, 2)
    costs = rng.integers(-4, 9, (nrows, ncols)).astype(np.int64 if integer else np.float64)
    if not integer:
        costs += rng.random(costs.shape)
    supply = rng.integers(0, most, nrows)
    demand = rng.integers(0, most, ncols)
    if limit is False:
        demand[rng.integers(ncols)] += max(supply.sum() - demand.sum(), 0) + rng.integers(2)
    forbidden = rng.random(costs.shape) < (0 if allow else rng.choice([0, 0.2, 0.6]))
    limits = rng.integers(-3, 9, nrows).astype(costs.dtype) if limit else None
    return task_of(costs, supply, demand, forbidden, limits, dense=dense, seed=seed)


def task_of(costs, supply, demand, forbidden=None, limits=None, *, dense=True, seed=0, **options):
    supply, demand = supply.astype(np.int64), demand.astype(np.int64)
    options = {"control": Control(), "row_limit": limits, "seed": seed, **options}
    forbidden = np.zeros(costs.shape, bool) if forbidden is None else forbidden
    if not dense:
        indptr = np.concatenate([[0], np.cumsum((~forbidden).sum(axis=1))])
        indices = np.nonzero(~forbidden)[1].astype(np.int32)
        return TransportTask(
            supply, demand, indptr=indptr, indices=indices, data=costs[~forbidden], **options
        )
    if costs.dtype.kind == "f":
        return TransportTask(supply, demand, costs=np.where(forbidden, np.inf, costs), **options)
    mask = forbidden if forbidden.any() else None
    return TransportTask(supply, demand, costs=costs, forbidden=mask, **options)


def no_duals(task):
    """Duals to begin from that tell nothing."""
    return np.zeros(task.shape[0], task.dtype), np.zeros(task.shape[1], task.dtype)


def pairs(task):
    """Rows, columns and costs of the allowed pairs."""
    if task.is_sparse:
        rows = np.repeat(np.arange(task.shape[0]), np.diff(task.indptr))
        return rows, task.indices, task.data
    allowed = np.isfinite(task.costs)
    if task.forbidden is not None:
        allowed &= ~task.forbidden
    rows, cols = np.nonzero(allowed)
    return rows, cols, task.costs[allowed]


def least_cost(task):
    """The least cost by a linear program, or None if the problem is infeasible."""
    nrows, ncols = task.shape
    rows, cols, costs = pairs(task)
    count = rows.size
    extra = nrows if task.row_limit is not None else 0
    ships = np.zeros((nrows, count + extra))
    ships[rows, np.arange(count)] = 1
    takes = np.zeros((ncols, count + extra))
    takes[cols, np.arange(count)] = 1
    price = costs
    if extra:
        ships[:, count:] = np.eye(nrows)
        price = np.concatenate([costs, task.row_limit])
    if not price.size:
        return None if task.supply.any() else 0.0
    found = linprog(price, takes, task.demand, ships, task.supply, method="highs")
    return found.fun if found.status == 0 else None


def check(task, solution, tolerance=0.0):
    """Check flow, duals and complementary slackness, as the contract states them."""
    nrows, ncols = task.shape
    u, v = solution.row_dual, solution.col_dual
    assert u.dtype == v.dtype == task.dtype
    assert np.isfinite(u).all()
    assert np.isfinite(v).all()
    rows, cols, costs = pairs(task)
    slack = costs - u[rows] - v[cols]
    assert (slack >= -tolerance).all()
    assert (v <= 0).all()
    if task.row_limit is not None:
        assert (u <= task.row_limit + tolerance).all()
    codes = solution.rows * ncols + solution.cols
    assert (np.diff(codes) > 0).all()
    assert (solution.flow > 0).all()
    known = np.searchsorted(rows * ncols + cols, codes)
    assert (rows[known] == solution.rows).all()
    assert (cols[known] == solution.cols).all()
    sent = np.bincount(solution.rows, solution.flow, nrows)
    taken = np.bincount(solution.cols, solution.flow, ncols)
    assert (sent <= task.supply).all()
    assert (taken <= task.demand).all()
    if not solution.is_optimal:
        return None
    assert (np.abs(slack[known]) <= tolerance).all()
    assert (v[taken < task.demand] == 0).all()
    left = sent < task.supply
    if task.row_limit is None:
        assert not left.any()
        return (costs[known] * solution.flow).sum()
    assert (np.abs(u - task.row_limit)[left] <= tolerance).all()
    return (costs[known] * solution.flow).sum() + (task.row_limit * (task.supply - sent)).sum()


def check_violator(task, rows):
    """Check that the rows supply more than the columns that they may use demand."""
    owners, cols, _ = pairs(task)
    used = np.unique(cols[np.isin(owners, rows)])
    assert task.supply[rows].sum() > task.demand[used].sum()


def answers(source, rows, cols, own, dual):
    """What a source says at some duals; of pairs, their reduced costs, because some are equal."""
    part = source.part(rows, cols)
    part = Matrix(part) if isinstance(part, np.ndarray) else part
    near = source.nearest(dual, (4, 3), lambda: None)
    pairs = tuple(np.concatenate(parts) for parts in zip(near.of_rows, near.of_cols))
    assert np.unique(pairs[0] * np.int64(dual.size) + pairs[1]).size == pairs[0].size
    reduced = source.at(*pairs) - dual[pairs[1]] - near.row_dual[pairs[0]]
    return [
        source.at(rows[:5], cols),
        source.features(0, cols),
        source.features(1, rows),
        source.conjugate(rows, own, lambda: None),
        source.row_minima(dual),
        part.row_minima(dual[cols]),
        near.row_dual,
        near.regret,
        np.sort(reduced[: 4 * near.row_dual.size].reshape(-1, 4), axis=1),
        np.stack([np.sort(reduced[pairs[1] == col])[:3] for col in range(dual.size)]),
    ]
