"""A matrix as its pattern and values, from anything."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csr_array

from gpumatch.linalg import entries

COO = scipy.sparse.coo_array(
    ([1.0, 0.0, 3.0, 5.0, -2.0, 4.0, -4.0], ([0, 0, 1, 2, 2, 2, 0], [1, 3, 0, 3, 2, 0, 2])),
    shape=(4, 4),
)
KINDS = {
    "csr": csr_array(COO),
    "dense": COO.toarray(),
    "tuple": (csr_array(COO).indptr, csr_array(COO).indices, csr_array(COO).data, COO.shape),
}


@pytest.fixture(params=["host", "device"])
def entries_of(request, monkeypatch):
    """By NumPy and SciPy in the place of CuPy on the device's path."""
    if request.param == "host":
        return entries.entries_of
    pytest.importorskip("cupy")
    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse", scipy.sparse)
    return entries._entries_on_device


@pytest.mark.parametrize("kind", KINDS)
def test_zeros_are_no_entries(entries_of, kind):
    graph, values = entries_of(KINDS[kind])
    assert graph.shape == (4, 4)
    assert graph.indptr.tolist() == [0, 2, 3, 6, 6]
    assert graph.indices.tolist() == [1, 2, 0, 0, 2, 3]
    assert values.tolist() == [1, -4, 3, 4, -2, 5]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_finite_is_named(entries_of, kind):
    matrix = csr_array(COO)
    matrix[2, 2] = np.nan
    given = {
        "csr": matrix,
        "dense": matrix.toarray(),
        "tuple": (matrix.indptr, matrix.indices, matrix.data, matrix.shape),
    }
    with pytest.raises(ValueError, match="that of row 2 and column 2 is nan"):
        entries_of(given[kind])
