"""lapx's functions: what each returns, of which dtypes, with limits and without, and its errors."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
import scipy.optimize
from scipy.sparse import csr_array

import gpumatch.problems.frames as problems_frames
from gpumatch.interop import lap
from tests.frames import KINDS, best_total, check_pairs, frame

LIMITED = lap.lapjv, lap.lapjvx, lap.lapjvxa, lap.lapjvr, lap.lapjvh
LIMIT = inspect.Parameter.empty
SIGNATURES = {
    "lapjv": "(cost, extend_cost=False, cost_limit=inf, return_cost=True)",
    "lapjvx": "(cost, extend_cost=False, cost_limit=inf, return_cost=True)",
    "lapjvxa": "(cost, extend_cost=False, cost_limit=inf, return_cost=True)",
    "lapjvs": "(cost, extend_cost=None, return_cost=True, jvx_like=True, prefer_float32=True)",
    "lapjvsa": "(cost, extend_cost=None, return_cost=True, prefer_float32=True)",
    "lapjvc": "(cost, return_cost=True)",
    "lapjvr": "(cost, extend_cost=False, cost_limit=inf, return_cost=True, *, precision='native', "
    "output='indices')",
    "lapmod": "(n, cc, ii, kk, fast=True, return_cost=True, fp_version=3)",
    "lapjvx_batch": "(costs, extend_cost=False, cost_limit=inf, return_cost=True, n_threads=0)",
    "lapjvxa_batch": "(costs, extend_cost=False, cost_limit=inf, return_cost=True, n_threads=0)",
    "lapjvs_batch": "(costs, extend_cost=False, return_cost=True, n_threads=0, "
    "prefer_float32=True)",
    "lapjvsa_batch": "(costs, extend_cost=False, return_cost=True, n_threads=0, "
    "prefer_float32=True)",
    "lapjvr_batch": "(costs, extend_cost=False, cost_limit=inf, return_cost=True, n_threads=0, *, "
    "precision='native', output='indices')",
    "lapmod_batch": "(problems, fast=True, return_cost=True, fp_version=3, n_threads=0)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_parameters_are_lapx_s(name):
    signature = inspect.signature(getattr(lap, name))
    bare = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    found = signature.replace(parameters=bare, return_annotation=signature.empty)
    assert str(found) == SIGNATURES[name]


def as_pairs(found):
    """The pairs of any form, rows ascending."""
    if isinstance(found, np.ndarray):
        return found[:, 0].astype(np.int64), found[:, 1].astype(np.int64)
    one, other = found
    if one.dtype == other.dtype == np.int32 and (
        one.size == 0 or -1 in one or one.size != other.size
    ):
        return (one >= 0).nonzero()[0], one[one >= 0].astype(np.int64)
    return one.astype(np.int64), other.astype(np.int64)


def mates_as_pairs(x, y):
    assert x.dtype == y.dtype == np.int32
    rows = (x >= 0).nonzero()[0]
    cols = x[rows].astype(np.int64)
    assert (y[cols] == rows).all()
    assert (y >= 0).sum() == rows.size
    return rows, cols


@pytest.mark.parametrize("kind", KINDS)
def test_limits(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(25):
        costs, limit = frame(rng, kind, *rng.integers(1, 40, 2)), float(rng.choice([0.1, 0.5, 1.0]))
        total, x, y = lap.lapjv(costs, cost_limit=limit)
        rows, cols = mates_as_pairs(x, y)
        check_pairs((rows, cols), costs, limit)
        assert math.isclose(total, costs[rows, cols].sum(), abs_tol=1e-12)
        assert type(total) is float
        assert (x.size, y.size) == costs.shape
        total, rows, cols = lap.lapjvx(costs, True, limit)
        assert (rows.dtype, cols.dtype) == (np.int64, np.int32)
        check_pairs((rows, cols.astype(np.int64)), costs, limit)
        again, pairs = lap.lapjvxa(costs, True, limit)
        assert pairs.dtype == np.int32
        assert (again, pairs.tolist()) == (total, [list(pair) for pair in zip(rows, cols)])
        again, more_rows, more_cols = lap.lapjvr(costs, cost_limit=limit)
        assert more_rows.dtype == more_cols.dtype == np.int64
        assert (again, more_rows.tolist(), more_cols.tolist()) == (
            total,
            rows.tolist(),
            cols.tolist(),
        )
        again, pairs = lap.lapjvh(costs, cost_limit=limit, output="pairs")
        assert pairs.dtype == np.int64
        assert again == total


@pytest.mark.parametrize("shape", [(1, 1), (9, 9), (5, 20), (20, 5)], ids=str)
def test_full_assignments(shape):
    costs = np.random.default_rng(7).random(shape)
    rows, cols = scipy.optimize.linear_sum_assignment(costs)
    best = costs[rows, cols].sum()
    total, x, y = lap.lapjv(costs, extend_cost=True)
    assert math.isclose(total, best)
    assert np.array_equal(mates_as_pairs(x, y), (rows, cols))
    for found, dtypes in (
        (lap.lapjvx(costs, extend_cost=True), (np.int64, np.int32)),
        (lap.lapjvs(costs), (np.int64, np.int64)),
        (lap.lapjvc(costs), (np.int32, np.int32)),
        (lap.lapjvr(costs, True), (np.int64, np.int64)),
    ):
        assert math.isclose(found[0], best)
        assert (found[1].dtype, found[2].dtype) == dtypes
        assert np.array_equal(found[1:], (rows, cols))
    for found, dtype in (
        (lap.lapjvxa(costs, True), np.int32),
        (lap.lapjvsa(costs), np.int64),
        (lap.lapjvr(costs, True, output="pairs"), np.int64),
    ):
        assert math.isclose(found[0], best)
        assert found[1].dtype == dtype
        assert np.array_equal(found[1].T, (rows, cols))
    total, x, y = lap.lapjvs(costs, jvx_like=False)
    assert x.dtype == y.dtype == np.int64
    assert np.array_equal(((x >= 0).nonzero()[0], x[x >= 0]), (rows, cols))


def test_totals_are_left_out():
    costs = np.random.default_rng(7).random((4, 4))
    for function in (lap.lapjv, lap.lapjvx, lap.lapjvs, lap.lapjvr, lap.lapjvc):
        with_total, without = function(costs), function(costs, return_cost=False)
        assert np.array_equal(with_total[1:], without)
    for function in (lap.lapjvxa, lap.lapjvsa):
        assert np.array_equal(function(costs)[1], function(costs, return_cost=False))


OTHERS = [pytest.param(dtype, marks=pytest.mark.long) for dtype in ("f2", "u1")]
"""Each dtype has kernels of its own, which take seconds to compile."""


@pytest.mark.parametrize("dtype", ["f4", "i4", "?", ">f8", *OTHERS])
def test_dtypes(dtype):
    costs = (10 * np.random.default_rng(3).random((8, 12))).astype(dtype)
    for limit in (math.inf, 3):
        total, x, _ = lap.lapjv(costs, True, limit)
        rows = (x >= 0).nonzero()[0]
        assert math.isclose(total, costs[rows, x[rows]].sum(dtype=float), abs_tol=1e-12)
        gates = np.full(8, 1e3 if limit == math.inf else limit)
        assert math.isclose(total - gates[rows].sum(), best_total(costs, gates), rel_tol=1e-9)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)], ids=str)
def test_empty_costs(shape):
    for limit in (math.inf, 0.5):
        total, x, y = lap.lapjv(np.empty(shape), True, limit)
        assert (total, x.tolist(), y.tolist()) == (0, [-1] * shape[0], [-1] * shape[1])
        assert lap.lapjvxa(np.empty(shape), True, limit)[1].shape == (0, 2)


def test_where_no_full_assignment_exists():
    costs = np.full((3, 4), math.inf)
    costs[:, 0] = 1.0
    for found in (lap.lapjv(costs, True), lap.lapjvx(costs, True), lap.lapjvxa(costs, True)):
        assert found[0] == math.inf
    _, x, y = lap.lapjv(costs, True)
    rows, cols = mates_as_pairs(x, y)
    assert rows.tolist() == [0, 1, 2]
    assert len(set(cols.tolist())) == 3
    total, rows, cols = lap.lapjvc(costs)
    assert (total, rows.size, cols.tolist()) == (1, 1, [0])
    for function in (lap.lapjvs, lap.lapjvsa, lambda c: lap.lapjvr(c, True)):
        with pytest.raises(ValueError, match="infeasible"):
            function(costs)
    totals, rows, _ = lap.lapjvx_batch(np.array([costs, np.eye(3, 4)]), True)
    assert totals.tolist() == [math.inf, 0]
    assert [one.size for one in rows] == [3, 3]
    with pytest.raises(ValueError, match="problem 1: cost matrix is infeasible"):
        lap.lapjvs_batch(np.array([np.eye(3, 4), costs]), True)


def test_lapjvc_takes_nan_and_infinities_for_forbidden():
    costs = np.array([[math.nan, 2.0, -math.inf], [1.0, math.inf, 3.0], [4.0, 4.0, math.nan]])
    total, rows, cols = lap.lapjvc(costs)
    assert (total, rows.tolist(), cols.tolist()) == (9.0, [0, 1, 2], [1, 2, 0])


@pytest.mark.parametrize("function", LIMITED)
def test_errors(function):
    costs = np.ones((3, 3))
    with pytest.raises(ValueError, match="2-dimensional array expected"):
        function(np.ones(3))
    with pytest.raises(ValueError, match="square cost array expected"):
        function(np.ones((2, 3)))
    for limit in (math.nan, -math.inf):
        with pytest.raises(ValueError, match="cost_limit must be finite or positive infinity"):
            function(costs, cost_limit=limit)
    costs[1, 1] = math.nan
    for limit in (math.inf, 0.5):
        with pytest.raises(ValueError, match=r"NaN|invalid numeric entries"):
            function(costs, cost_limit=limit)


def test_more_errors():
    with pytest.raises(ValueError, match="square cost array expected"):
        lap.lapjvs(np.ones((2, 3)), extend_cost=False)
    with pytest.raises(ValueError, match="precision must be one of"):
        lap.lapjvr(np.ones((2, 2)), precision="float16")
    with pytest.raises(ValueError, match="output must be one of"):
        lap.lapjvr(np.ones((2, 2)), output="mates")
    with pytest.raises(ValueError, match="3-dimensional array expected"):
        lap.lapjvx_batch(np.ones((2, 2)))
    with pytest.raises(ValueError, match="square cost array expected"):
        lap.lapjvxa_batch(np.ones((2, 2, 3)))


@pytest.mark.parametrize("threads", [0, None, 1, -1, 2])
def test_batches(threads):
    rng = np.random.default_rng(1)
    costs = rng.random((30, 12, 17))
    for limit in (0.2, math.inf):
        totals, rows, cols = lap.lapjvx_batch(costs, True, limit, n_threads=threads)
        again, pairs = lap.lapjvxa_batch(costs, True, limit, n_threads=threads)
        more, more_rows, _ = lap.lapjvr_batch(costs, True, limit, n_threads=threads)
        assert totals.tolist() == again.tolist() == more.tolist()
        for k, one in enumerate(costs):
            total, x, _ = lap.lapjv(one, True, limit)
            assert math.isclose(total, totals[k])
            assert rows[k].dtype == cols[k].dtype == pairs[k].dtype == np.int64
            assert np.array_equal(pairs[k].T, (rows[k], cols[k]))
            assert np.array_equal(more_rows[k], rows[k])
            assert np.array_equal(x[rows[k]], cols[k])
    totals, rows, cols = lap.lapjvs_batch(costs, True, n_threads=threads)
    again, pairs = lap.lapjvsa_batch(costs, True, n_threads=threads)
    assert np.allclose(totals, [lap.lapjvs(one)[0] for one in costs])
    assert again.tolist() == totals.tolist()
    assert np.array_equal(pairs[0].T, (rows[0], cols[0]))
    pairs = lap.lapjvr_batch(costs, True, 0.2, False, threads, precision="float32", output="pairs")
    assert [one.shape[1] for one in pairs] == [2] * 30


def test_no_problems():
    assert lap.lapjvx_batch(np.empty((0, 2, 2)), return_cost=False) == ([], [])
    assert lap.lapmod_batch([], return_cost=False) == ([], [])


# -- sparse ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "share"), [(5, 0.9), (20, 0.5), (80, 0.1)])
def test_sparse_costs(size, share):
    rng = np.random.default_rng(size)
    dense = rng.random((size, size))
    dense[rng.random((size, size)) > share] = math.inf
    np.fill_diagonal(dense, 2.0)
    rows, cols = np.isfinite(dense).nonzero()
    matrix = csr_array((dense[rows, cols], (rows, cols)), (size, size))
    problem = size, matrix.data, matrix.indptr, matrix.indices
    total, x, y = lap.lapmod(*problem)
    assert math.isclose(total, dense[scipy.optimize.linear_sum_assignment(dense)].sum())
    assert math.isclose(total, dense[mates_as_pairs(x, y)].sum())
    assert np.array_equal(lap.lapmod(*problem, fast=False, return_cost=False), (x, y))
    totals, xs, ys = lap.lapmod_batch([problem, problem])
    assert totals.tolist() == [total, total]
    assert np.array_equal(xs, [x, x])
    assert np.array_equal(ys, [y, y])


@pytest.mark.parametrize("size", [3, 60])
def test_sparse_costs_without_a_full_assignment(size):
    """All rows have the first column, and no other."""
    total, x, y = lap.lapmod(size, np.ones(size), np.arange(size + 1), np.zeros(size, int))
    assert total == math.inf
    assert mates_as_pairs(x, y)[0].size == size


@pytest.mark.parametrize(
    ("n", "cc", "ii", "kk", "message"),
    [
        (0, [1.0], [0], [0], "n must be positive"),
        (2, [1.0], [0, 1], [0], "ii must have n"),
        (1, [-1.0], [0, 1], [0], "not below 0"),
        (1, [math.inf], [0, 1], [0], "finite"),
        (1, [], [0, 0], [], "cc must have costs"),
        (1, [1.0], [0, 1], [3], "3"),
    ],
)
def test_sparse_costs_that_are_none(n, cc, ii, kk, message):
    with pytest.raises(ValueError, match=message):
        lap.lapmod(n, np.array(cc), np.array(ii), np.array(kk, int))


def test_without_short_calls(monkeypatch):
    costs = np.random.default_rng(1).random((7, 9))
    best = lap.lapjv(costs, True, 0.3)
    monkeypatch.setattr(problems_frames, "_mates_module", lambda: None)
    monkeypatch.setattr(problems_frames, "_MATCH", [])
    monkeypatch.setattr(problems_frames, "_TOTALS", {})
    total, x, y = lap.lapjv(costs, True, 0.3)
    assert math.isclose(total, best[0])
    assert np.array_equal((x[:7], y[:7]), (best[1], best[2][:7]))


@pytest.mark.parametrize("limit", [None, "1", [1.0]])
def test_a_limit_that_is_no_number_is_named(limit):
    for call in (lap.lapjv, lambda cost, **how: lap.lapjvx_batch(cost[None], **how)):
        with pytest.raises(TypeError, match="cost_limit must be a number"):
            call(np.eye(3), cost_limit=limit)
