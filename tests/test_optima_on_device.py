"""`gpumatch.alternatives` and the edges of matchings on data that is on a device."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]


def on_device(cp, matrix):
    arrays = matrix.indptr, matrix.indices, matrix.data
    return *(cp.asarray(array) for array in arrays), matrix.shape


def entries(cp, chosen):
    """Rows, columns and values of what a call on a device has returned."""
    assert isinstance(chosen.matrix.indices, cp.ndarray)
    matrix = csr_array(
        (chosen.matrix.data.get(), chosen.matrix.indices.get(), chosen.matrix.indptr.get()),
        shape=chosen.matrix.shape,
    ).tocoo()
    return sorted(zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist()))


def on_host(chosen):
    matrix = chosen.matrix.tocoo()
    return sorted(zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist()))


@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
def test_alternatives_on_a_device_are_those_of_the_host(cardinality):
    cp = pytest.importorskip("cupy")
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((30, 34)) < 0.4, rng.integers(-4, 4, (30, 34)), 9)
    matrix = csr_array(np.where(dense < 9, dense + 5, 0))
    a = gm.assign(matrix, cardinality=cardinality, maximize=cardinality == "any")
    held = on_device(cp, matrix)
    b = gm.assign(held, cardinality=cardinality, maximize=cardinality == "any")
    one, other = gm.alternatives(matrix, a), gm.alternatives(held, b)
    assert on_host(one) == entries(cp, other)
    assert one.is_unique == other.is_unique
    with pytest.raises(ValueError, match="on the host"):
        gm.alternatives(held, b, within=1)
    row, col, _ = on_host(one)[-1]
    assert other.witness(row, col)[row] == col


@pytest.mark.parametrize("shape", [(40, 40), (30, 45), (45, 30)])
def test_edges_on_a_device_are_those_of_the_host(shape):
    cp = pytest.importorskip("cupy")
    matrix = csr_array((np.random.default_rng(5).random(shape) < 0.06).astype(float))
    held = on_device(cp, matrix)
    for find in (gm.possible_edges, gm.forced_edges):
        one, other = find(matrix), find(held)
        assert on_host(one) == entries(cp, other)
        assert one.is_unique == other.is_unique
