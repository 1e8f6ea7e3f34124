"""A matrix as its pattern and values, from anything."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csr_array

from gpumatch.linalg import entries

COO = scipy.sparse.coo_array(
    ([1.0, 0.0, 3.0, 5.0, -2.0, 4.0, -4.0], ([0, 0, 1, 2, 2, 2, 0], [1, 3, 0, 3, 2, 0, 2])),
    shape=(4, 4),
)
KINDS = "csr", "dense", "tuple"
ON_DEVICE = pytest.param("cupy", id="device", marks=[pytest.mark.gpu, pytest.mark.emulated])


def at_home(home, kind, matrix):
    """A matrix in this form, in arrays of a library."""
    csr = csr_array(matrix)
    if home == "numpy":
        arrays, form = (csr.indptr, csr.indices, csr.data), csr_array
        dense = csr.toarray()
    else:
        cp = pytest.importorskip(home)
        arrays = tuple(map(cp.asarray, (csr.indptr, csr.indices, csr.data)))
        form = importlib.import_module("cupyx.scipy.sparse").csr_matrix
        dense = cp.asarray(csr.toarray())
    whole = form((arrays[2], arrays[1], arrays[0]), shape=csr.shape)
    return {"csr": whole, "dense": dense, "tuple": (*arrays, csr.shape)}[kind]


@pytest.mark.parametrize("home", ["numpy", ON_DEVICE])
@pytest.mark.parametrize("kind", KINDS)
def test_zeros_are_no_entries(home, kind):
    graph, values = entries.entries_of(at_home(home, kind, COO))
    assert graph.shape == (4, 4)
    assert graph.indptr.tolist() == [0, 2, 3, 6, 6]
    assert graph.indices.tolist() == [1, 2, 0, 0, 2, 3]
    assert values.tolist() == [1, -4, 3, 4, -2, 5]


@pytest.mark.parametrize("home", ["numpy", ON_DEVICE])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_finite_is_named(home, kind):
    matrix = csr_array(COO)
    matrix[2, 2] = np.nan
    with pytest.raises(ValueError, match="that of row 2 and column 2 is nan"):
        entries.entries_of(at_home(home, kind, matrix))
