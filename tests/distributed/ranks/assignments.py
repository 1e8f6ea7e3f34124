"""Assignments: of the case tables, with every wish, kind of costs and shape, and batches."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch
import graphs
from gpumatch import distributed
from graphs import costs as families
from tests import assignment_cases, cases
from tests.distributed.ranks.checks import (
    check_assignment,
    check_matching,
    raises_everywhere,
    share,
    some_of,
)
from tests.distributed.shares import FEW_ROWS


def assignment(comm):
    for case in assignment_cases.CASES:
        if max(case.shape) <= FEW_ROWS:
            yield str(case)
            check_assignment(case.costs, comm, maximize=case.maximize)


def every_assignment(comm, most=500, **how):
    """Cases of up to so many rows and columns."""
    for case in some_of(assignment_cases.CASES, comm):
        limit = {"easy": 500, "chained": 100, "hard": 40}[case.difficulty]
        if max(case.shape) <= min(limit, most):
            yield str(case)
            check_assignment(case.costs, comm, maximize=case.maximize, **how)


def few(comm):
    """One of each kind, for many ranks on few cores."""
    yield "matching"
    check_matching(cases.matrix(7, 6, [(i, j) for i in range(7) for j in (0, i % 6)]), 6, comm)
    for shape in ((5, 5), (6, 3)):
        yield f"assignment {shape}"
        whole = families.make("uniform_integer", *shape, seed=3)
        check_assignment(whole, comm)
        check_assignment(csr_array(whole + 1), comm)


def wishes(comm, **how):
    """Sparse costs, either side longer, forbidden pairs, limits, dtypes, and every sign."""
    rng = np.random.default_rng(3)
    for shape in ((9, 9), (7, 12), (12, 7), (1, 5), (0, 4), (4, 0)):
        full = rng.integers(-20, 60, shape)
        holed = np.where(rng.random(shape) < 0.5, full.astype(float), np.inf)
        sparse = csr_array(np.where(np.isfinite(holed), full, 0))
        for maximize in (False, True):
            for wish in (
                {},
                {"cardinality": "any"},
                {"cost_limit": 15},
                {"cost_limit": 15.5},
                {"cost_limit": 10**6},
            ):
                yield f"{shape} {maximize} {wish}"
                check_assignment(full, comm, maximize=maximize, **wish, **how)
                if wish:
                    allowed = -holed if maximize else holed
                    for holed_costs in (allowed.astype(np.float32), sparse):
                        check_assignment(holed_costs, comm, maximize=maximize, **wish, **how)
    yield "pairs that cost the limit"
    for shape in ((9, 7), (7, 9), (1, 5), (8, 8)):
        for few in (rng.integers(1, 4, shape), np.full(shape, 2)):
            for sign in (1, -1):
                wish = {"maximize": sign < 0, "cost_limit": sign * 2}
                for given in (sign * few, csr_array(sign * few)):
                    check_assignment(given, comm, **wish, **how)
    yield "sparse and full"
    costs = families.make("uniform_integer", 30, 40, seed=1)
    costs[rng.random(costs.shape) < 0.7] = 0
    costs[:, :30] += np.eye(30, dtype=costs.dtype)
    check_assignment(csr_array(costs), comm, **how)
    check_assignment(csr_array(costs.T), comm, **how)


def wishes_of_matrices(comm, **how):
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        for shape in ((8, 8), (5, 9), (9, 5)):
            yield f"{np.dtype(dtype)} {shape}"
            costs = np.random.default_rng(7).integers(-20, 60, shape).astype(dtype)
            check_assignment(costs, comm, **how)
            check_assignment(costs, comm, cost_limit=10, maximize=True, **how)
    yield "forbidden pairs"
    costs = np.where(np.random.default_rng(1).random((9, 9)) < 0.5, np.inf, 3.0)
    np.fill_diagonal(costs, 5.5)
    check_assignment(costs, comm, **how)
    yield "many searches"
    check_assignment(families.make("low_rank", 12, 12, seed=1), comm, **how)


def largest(comm, **how):
    """The cheapest among the largest assignments, with rows, columns or both in the cover."""
    rng = np.random.default_rng(8)
    for shape in ((9, 9), (7, 12), (12, 7), (0, 4)):
        for density in (0.2, 1.0):
            full = rng.integers(-20, 60, shape)
            holed = np.where(rng.random(shape) < density, full.astype(float), np.inf)
            for maximize in (False, True):
                allowed = -holed if maximize else holed
                stored = np.where(np.isfinite(holed), full + 100, 0)
                for limit in (None, 20):
                    yield f"{shape} {density} {maximize} {limit}"
                    wish = {"cardinality": "maximum", "maximize": maximize}
                    check_assignment(allowed, comm, cost_limit=limit, **wish, **how)
                    wish["cost_limit"] = None if limit is None else 100 + limit
                    check_assignment(csr_array(stored), comm, **wish, **how)
    yield "no time"
    ladder = graphs.make("ladder", 25, seed=1).astype(int)  # no start matches all of it
    wish = {"cardinality": "maximum", "time_limit": 0}
    result = distributed.assign(share(csr_array(ladder), comm), comm=comm, **wish, **how)
    assert not result.proven
    assert result.size == comm.allreduce(int(np.count_nonzero(result.row_to_col >= 0)))
    yield "only one rank has forbidden pairs"
    costs = np.arange(40).reshape(5, 8) / 7
    if comm.rank == comm.size - 1:
        costs[:, 1:] = np.inf
    a = distributed.assign(costs, comm=comm, cardinality="maximum", **how)
    assert a.size == min(5 * comm.size - 4, 8)
    assert distributed.verify(costs, a, comm=comm).objective == a.objective
    yield "a cover that is wrong on one rank"
    costs = np.where(np.eye(8, 5) > 0, 2.0, np.inf)
    block = share(costs, comm)
    a = distributed.assign(block, comm=comm, cardinality="maximum", **how)
    assert a.size == 5
    a.cover = ~a.cover[0], a.cover[1]
    with pytest.raises(gpumatch.CertificateError, match="cover"):
        distributed.verify(block, a, comm=comm)


def batches(comm, **how):
    """Each rank has problems of its own."""
    rng = np.random.default_rng(comm.rank)
    costs = rng.integers(0, 50, (3 + comm.rank, 6, 7))
    for wish in ({}, {"maximize": True}, {"cost_limit": 9}):
        yield f"{wish}"
        a = distributed.assign(costs, comm=comm, **wish, **how)
        assert a.objective.tolist() == gpumatch.assign(costs, **wish).objective.tolist()
        assert distributed.verify(costs, a, comm=comm).size == a.size.sum()
        assert a.stats["algorithm"] == "engine"
    yield "the algorithm that is asked for"
    a = distributed.assign(costs, comm=comm, algorithm="hungarian-tree", **how)
    assert a.stats["algorithm"] == "hungarian-tree"
    yield "one problem is wrong"
    wrong = costs.astype(float)
    if comm.rank == comm.size - 1:
        wrong[2, 0, 0] = np.nan
    run = lambda: distributed.assign(wrong, comm=comm, **how)  # noqa: E731
    raises_everywhere(comm, ValueError, "problem 2: the costs hold NaN", run)
    if comm.size > 1:
        yield "not all have a batch"
        block = costs if comm.rank else costs[0]
        run = lambda: distributed.assign(block, comm=comm, **how)  # noqa: E731
        raises_everywhere(comm, ValueError, "ranks have a batch", run)


GROUPS = assignment, every_assignment, few, wishes, largest, batches
