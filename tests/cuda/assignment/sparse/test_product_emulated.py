"""Maximum products by the engine for sparse costs, and their scales, on the CPU."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm

pytest.importorskip("cupy")

from gpumatch.cuda.assignment.sparse import product, tuning
from gpumatch.linalg import entries, product_matching
from tests.cpu.assignment.tuned import tune
from tests.cuda.assignment.sparse.emulated import BLOCK, TRIALS, vary
from tests.cuda.emulator import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


@pytest.mark.parametrize("trial", TRIALS)
@pytest.mark.parametrize("shape", [(60, 60), (50, 60), (60, 50)], ids=str)
def test_maximum_products_and_their_scales(solve, emulators, shape, trial, monkeypatch):
    """As on the CPU; `verify` checks the scales."""
    tune(monkeypatch, tuning, long_trial=trial)
    rng = np.random.default_rng(8)
    for density in (0.05, 0.1, 0.3):
        vary(emulators, rng)
        values = np.exp(rng.normal(0, 9, shape)) * (rng.random(shape) < density)
        best = gm.linalg.maximum_product_matching(csr_array(values))
        with monkeypatch.context() as patch:
            patch.setattr(product_matching, "_engine", lambda _: product.run)
            found = gm.linalg.maximum_product_matching(csr_array(values))
        gm.verify(csr_array(values), found)
        assert found.size == best.size
        assert math.isclose(found.log_product, best.log_product, rel_tol=1e-9)


def found_by_the_engine(matrix, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(product_matching, "_engine", lambda _: product.run)
        patch.setattr(entries, "SMALL", 0)
        return gm.linalg.maximum_product_matching(matrix)


@pytest.mark.parametrize("shape", [(70, 70), (40, 70), (70, 40)], ids=str)
@pytest.mark.parametrize("decades", [0, 3, 250])
def test_scales_of_a_product_have_the_same_middle(solve, emulators, shape, decades, monkeypatch):
    """Of matched rows and columns; whatever the range of the entries is."""
    rng = np.random.default_rng(decades)
    for _ in range(2):
        vary(emulators, rng)
        values = 10.0 ** rng.uniform(-decades, decades, shape) * (rng.random(shape) < 0.2)
        values[np.arange(min(shape)), np.arange(min(shape))] = 1
        matrix = csr_array(values * 10.0 ** rng.uniform(-40, 40, shape[1]))
        found = found_by_the_engine(matrix, monkeypatch)
        gm.verify(matrix, found)
        rows, cols = found.row_log_scale[found.row_ind], found.col_log_scale[found.col_ind]
        middles = (rows.min() + rows.max()) / 2, (cols.min() + cols.max()) / 2
        assert math.isclose(*middles, rel_tol=1e-9, abs_tol=1e-9)
        logs = np.log(matrix.toarray()[found.row_ind, found.col_ind])
        assert math.isclose(found.log_product, math.fsum(logs), rel_tol=1e-12, abs_tol=1e-9)


@pytest.mark.parametrize("shape", [(80, 80), (50, 80)], ids=str)
def test_costs_are_counted_from_the_least_of_their_column_or_row(
    solve, emulators, shape, monkeypatch
):
    rng = np.random.default_rng(17)
    vary(emulators, rng)
    seen = []
    from_least = product._from_least
    monkeypatch.setattr(
        product, "_from_least", lambda given: seen.append(from_least(given)) or seen[-1]
    )
    values = np.exp(rng.normal(0, 20, shape)) * (rng.random(shape) < 0.2)
    values[:, :50] += np.eye(shape[0])[:, :50]
    matrix = csr_array(values)
    found_by_the_engine(matrix, monkeypatch)
    ((reduced, of_columns),) = seen
    logs = np.full(shape, np.inf)
    logs[matrix.nonzero()] = -np.log(matrix.data)
    least = logs.min(axis=0 if shape[0] == shape[1] else 1)
    rows, cols = matrix.nonzero()
    counted_from = least[cols if shape[0] == shape[1] else rows]
    assert np.allclose(reduced.full.weights, logs[rows, cols] - counted_from, 1e-13, 1e-13)
    assert (reduced.full.low, reduced.full.high) == (0, reduced.full.weights.max())
    assert np.allclose(of_columns, least if shape[0] == shape[1] else 0, 1e-13, 1e-13)


def test_what_rows_of_many_blocks_pay_is_added_up(emulators):
    """More blocks than one has threads."""
    sums = np.arange(200.0)
    ends, none, total = np.zeros(4, np.uint64), np.empty(0), np.zeros(1)
    of_no_rows = np.empty(0, np.int32), none, none, np.int32(0), np.int32(0)
    emulators[product.SCALES].bound_to({})["settle"](
        (3,), (BLOCK,), (*of_no_rows, ends, sums, np.int32(200), none, none, total)
    )
    assert total == sums.sum()


def test_products_of_singular_and_of_tiny_matrices(solve, monkeypatch):
    for values in (
        np.zeros((3, 3)), np.eye(4)[:, [0, 1, 2, 2]], np.ones((1, 1)), np.ones((3, 3)),
        np.diag([1e-300, 1e300, 5e-324]), np.empty((0, 4)), np.empty((4, 0)), -2 * np.eye(65),
    ):  # fmt: skip
        found = found_by_the_engine(csr_array(values), monkeypatch)
        best = gm.linalg.maximum_product_matching(csr_array(values))
        gm.verify(csr_array(values), found)
        assert found.size == best.size
        assert math.isclose(found.log_product, best.log_product, rel_tol=1e-12, abs_tol=1e-12)
