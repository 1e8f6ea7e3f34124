"""Matrices with values: their form, their seeds, and what makes them hard."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import structural_rank

from graphs import costs, matrices

EVERY_FAMILY = pytest.mark.parametrize("name", matrices.FAMILIES)


@EVERY_FAMILY
@pytest.mark.parametrize("n", [12, 57, 400])
def test_form(name, n):
    A = matrices.make(name, n, seed=3)
    assert A.shape == (n, n)
    assert A.dtype == np.float64
    assert A.indices.dtype == A.indptr.dtype == np.int32
    assert A.has_canonical_format
    assert np.all(np.isfinite(A.data))
    assert structural_rank(A) == n


@EVERY_FAMILY
def test_seeds(name):
    first, again, other = (matrices.make(name, 300, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.indices, again.indices)
    assert np.array_equal(first.data, again.data)
    assert first.nnz != other.nnz or np.any(first.data != other.data)


@EVERY_FAMILY
def test_values_go_over_many_orders_of_magnitude(name):
    values = abs(matrices.make(name, 500).data)
    values = values[values > 0]
    assert values.max() / values.min() > 1e7


@EVERY_FAMILY
def test_the_diagonal_is_small(name):
    """Most rows, or all those of sources, have an entry that is 10 times the diagonal's."""
    A = matrices.make(name, 500)
    greatest = abs(A).max(axis=1).toarray().ravel()
    assert np.count_nonzero(abs(A.diagonal()) < greatest / 10) >= 25


def test_the_costs_are_those_of_the_same_circuit():
    """Sources stand at the other end there, and no node leaks."""
    A, C = matrices.circuit(300, seed=1), costs.circuit(300, seed=1)
    order = np.roll(np.arange(300), -15)
    places = [set(zip(*M.tocoo().coords)) for M in (A[order][:, order], C)]
    assert places[0] - places[1] == {(i, i) for i in range(285, 300)}
    assert places[1] <= places[0]


def test_a_family_that_is_none_is_refused():
    with pytest.raises(ValueError, match="no family 'bridge'; there are circuit, kkt"):
        matrices.make("bridge", 10)
