"""`gpumatch.k_best` on matrices that are on a device: the host's results."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]


def check(cp, costs, k, **arguments):
    found = gm.k_best(cp.asarray(costs), k, **arguments)
    held = gm.k_best(costs, k, **arguments)
    assert isinstance(found.row_to_col, cp.ndarray)
    assert isinstance(found.objective, cp.ndarray)
    for one, other in zip(found, held) if costs.ndim == 3 else [(found, held)]:
        assert one.stats["backend"] == "cuda"
        assert (one.is_complete, one.proven) == (other.is_complete, True)
        np.testing.assert_allclose(one.objective.get(), other.objective, rtol=1e-13)
        mates = one.row_to_col.get()
        assert len(set(map(tuple, mates.tolist()))) == len(other)
        if len(set(other.objective.tolist())) == len(other):
            assert (mates == other.row_to_col).all()
    if costs.ndim == 3:
        assert (found.counts.get() == held.counts).all()


@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 3), (1, 40), (5, 34)])
def test_small_matrices(shape):
    cp = pytest.importorskip("cupy")
    rng = np.random.default_rng(sum(shape))
    floats, integers = rng.random(shape), rng.integers(-2, 3, shape)
    for costs in (floats, integers):
        check(cp, costs, 7)
        check(cp, costs, 40, cost_limit=1 if costs is integers else 0.4)
    check(cp, floats, 5, maximize=True)
    check(cp, integers, 30, cost_limit=rng.integers(-2, 3, shape[0]))


def test_forbidden_pairs_and_no_assignment():
    cp = pytest.importorskip("cupy")
    rng = np.random.default_rng(3)
    for _ in range(4):
        costs = np.where(rng.random((5, 5)) < 0.5, np.inf, rng.random((5, 5)))
        check(cp, costs, 200)
    check(cp, np.full((2, 2), np.inf), 3)


def test_a_batch():
    cp = pytest.importorskip("cupy")
    rng = np.random.default_rng(5)
    check(cp, rng.random((6, 7, 9)), 12)
    check(cp, rng.integers(0, 3, (3, 4, 4)), 30, maximize=True)


def test_a_proof_comes_from_the_host():
    cp = pytest.importorskip("cupy")
    costs = np.random.default_rng(7).random((5, 5))
    found = gm.k_best(cp.asarray(costs), 4, proof=True)
    assert isinstance(found.row_to_col, cp.ndarray)
    assert found.tree is not None
    gm.verify(costs, found)
