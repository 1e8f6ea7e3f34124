"""Assignment of numbers that are hard: scales, ties, large integers, real instances."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

import gpumatch as gm
from graphs import costs
from tests.assignment_cases import (
    DENSE_OPTIMA,
    DENSE_RUNS,
    EVERY_ALGORITHM,
    IPADIC_OPTIMUM,
    IPADIC_RUNS,
    LAPX_OPTIMUM,
    LAPX_RUNS,
    SPARSE_OPTIMA,
    SPARSE_RUNS,
    ipadic,
    lapx_cost_eps,
    or_library,
    or_library_sparse,
)
from tests.assignment_checks import close, optimum

MOST = sys.float_info.max


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e290])
@pytest.mark.parametrize("family", ["uniform_float", "two_cost", "low_rank", "geom2"])
@EVERY_ALGORITHM
def test_scales_do_not_matter(run, family, scale):
    matrix = costs.make(family, 60, 70, seed=4) * scale
    a = gm.assign(matrix, **run.arguments)
    gm.verify(matrix, a)
    assert close(a.objective, optimum(matrix))
    assert a.gap <= 60 * np.spacing(matrix.max())


def test_gaps_are_not_negative_by_rounding():
    """Where duals of all sizes add up to less than the pairs, by units in their last places."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        matrix = 10.0 ** rng.uniform(-300, 300, rng.integers(2, 9, 2))
        a = gm.assign(matrix, maximize=True, algorithm="dgs", threads=1)
        assert a.gap >= 0
        if a.proven:
            gm.verify(matrix, a)


@EVERY_ALGORITHM
def test_costs_that_hardly_differ(run):
    rng = np.random.default_rng(8)
    for step in (1e-12, np.spacing(1.0)):
        steps = rng.integers(0, 9, (80, 80))
        a = gm.assign(1 + step * steps, **run.arguments)
        gm.verify(1 + step * steps, a)
        least = optimum(steps)
        assert steps[a.row_ind, a.col_ind].sum() <= least + 80 * np.spacing(1.0) / step


@EVERY_ALGORITHM
def test_integers_of_fifty_bits_are_exact(run):
    rng = np.random.default_rng(9)
    small = rng.integers(0, 3, (200, 200))
    matrix = small + 2**50 * rng.permutation(np.eye(200, dtype=np.int64))
    for costs_ in (matrix, -matrix, csr_array(matrix + 1)):
        a = gm.assign(costs_, **run.arguments)
        assert gm.verify(costs_, a).bound == a.objective
    assert gm.assign(matrix, **run.arguments).objective == optimum(
        np.where(matrix > 9, 10**4, small)
    )


@EVERY_ALGORITHM
def test_integers_beyond_the_sums_of_int64_are_refused(run):
    limit = 2**62 // 3
    gm.assign([[limit, 0], [0, limit]], **run.arguments)
    with pytest.raises(ValueError, match=r"too large for 2 rows or columns: .* below 2\*\*62"):
        gm.assign([[limit + 1, 0], [0, 0]], **run.arguments)
    with pytest.raises(ValueError, match="too large"):
        gm.assign(np.array([[2**63]], np.uint64), **run.arguments)


@EVERY_ALGORITHM
def test_floats_whose_sums_overflow_are_divided_first(run):
    """What is refused is a total, or a dual, that float64 does not hold."""
    assert gm.assign([[1e308, 1.0]], **run.arguments).row_to_col.tolist() == [1]
    assert gm.assign([[MOST]], **run.arguments).objective == MOST
    a = gm.assign([[1.0, MOST], [MOST, 2.0]], **run.arguments)
    assert (a.objective, a.pair_costs.tolist()) == (3.0, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"the total of 2 pairs overflow float64: .* by 2\*\*6"):
        gm.assign([[1e308, MOST], [MOST, 1e308]], **run.arguments)


@EVERY_ALGORITHM
def test_a_long_chain_of_large_integers(run):
    """Every augmentation flips the whole chain, and prices grow to n times the range."""
    n, most = 40, 2**62 // 41 - 1
    i = np.arange(n)
    rows, cols = np.concatenate([i, i[1:]]), np.concatenate([i, i[:-1]])
    chain = coo_array((np.repeat([most, -most], [n, n - 1]), (rows, cols)), shape=(n, n)).tocsr()
    a = gm.assign(chain, **run.arguments)
    assert gm.verify(chain, a).bound == a.objective == n * most


# -- real instances --------------------------------------------------------------------------------


@pytest.mark.parametrize(("run", "name"), DENSE_RUNS)
def test_or_library(run, name):
    matrix = or_library(name)
    a = gm.assign(matrix, **run.arguments)
    assert gm.verify(matrix, a).bound == a.objective == DENSE_OPTIMA[name]


@pytest.mark.parametrize(("run", "name"), SPARSE_RUNS)
def test_or_library_sparse(run, name):
    matrix = or_library_sparse(name)
    a = gm.assign(matrix, **run.arguments)
    assert gm.verify(matrix, a).bound == a.objective == SPARSE_OPTIMA[name]


@pytest.mark.parametrize(("run", "name"), IPADIC_RUNS)
def test_ipadic(run, name):
    matrix = ipadic()
    a = gm.assign(matrix, **run.arguments)
    assert gm.verify(matrix, a).bound == a.objective == IPADIC_OPTIMUM


@pytest.mark.parametrize(("run", "_"), LAPX_RUNS)
def test_costs_that_break_absolute_tolerances(run, _):
    matrix = lapx_cost_eps()
    a = gm.assign(matrix, **run.arguments)
    gm.verify(matrix, a)
    assert math.isclose(a.objective, LAPX_OPTIMUM, rel_tol=1e-14)


def test_the_named_optima_are_scipys():
    assert {name: optimum(or_library(name)) for name in DENSE_OPTIMA} == DENSE_OPTIMA
    assert optimum(ipadic()) == IPADIC_OPTIMUM
    assert math.isclose(optimum(lapx_cost_eps()), LAPX_OPTIMUM, rel_tol=1e-14)
    for name, least in SPARSE_OPTIMA.items():
        matrix = or_library_sparse(name).tocsr()
        rows, cols = min_weight_full_bipartite_matching(matrix)
        assert matrix[rows, cols].sum() == least


@pytest.mark.parametrize("base", [0, 2**54 + 1])
@EVERY_ALGORITHM
def test_a_fractional_limit_of_maximum_leaves_integers_exact(run, base):
    """It only forbids pairs, so nothing is added to it."""
    matrix = base + np.random.default_rng(6).integers(0, 9, (4, 5))
    for limit in (base + 4.5, np.full(4, base / 2 + 2.25)):
        for sign in (1, -1):
            a = gm.assign(
                sign * matrix, maximize=sign < 0, cardinality="maximum", cost_limit=sign * limit,
                **run.arguments,
            )  # fmt: skip
            gm.verify(sign * matrix, a)
            assert type(a.objective) is int
            paid = (sign * matrix)[a.row_ind, a.col_ind].tolist()
            assert (a.pair_costs.tolist(), a.objective) == (paid, sum(paid))
            assert {a.pair_costs.dtype, a.row_dual.dtype, a.col_dual.dtype} == {np.dtype(np.int64)}


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 2), (300, 300)])
def test_nothing_costs_no_negative_zero(shape):
    """Of negative gains none pays."""
    for source in (
        np.full(shape, -5.0),
        csr_array(np.full(shape, -5.0)),
        np.full((2, *shape), -5.0),
    ):
        a = gm.assign(source, maximize=True, cardinality="any")
        assert not np.signbit(a.objective).any()
