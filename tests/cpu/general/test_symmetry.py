"""The look at canonical CSR that says if it is an undirected graph."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from gpumatch.cpu.general import symmetry
from gpumatch.cpu.matching import sides


@pytest.mark.parametrize("block", [1, 2**22])
@pytest.mark.parametrize("offsets", [np.int32, np.int64])
def test_against_the_transposed_matrix(monkeypatch, block, offsets):
    monkeypatch.setattr(sides, "BUDGET", block)
    rng, seen = np.random.default_rng(2), set()
    for _ in range(200):
        n = int(rng.integers(1, 9))
        dense = rng.integers(1, 4, (n, n)) * (rng.random((n, n)) < rng.choice([0.2, 0.5, 0.9]))
        dense = np.triu(dense) + np.triu(dense, 1).T
        if rng.random() < 0.6:
            i, j = rng.integers(0, n, 2)
            dense[i, j] = rng.choice([0, 5])
        A = csr_array(dense)
        arrays = A.indptr.astype(offsets), A.indices
        for weights, same in ((None, dense != 0), (A.data, dense)):
            found = symmetry.symmetry_of(*arrays, weights)
            assert found.is_symmetric == (same == same.T).all()
            if found.is_symmetric:
                assert found.loops == np.count_nonzero(dense.diagonal())
            seen.add((weights is None, found.is_symmetric))
    assert len(seen) == 4


def test_nothing_is_symmetric():
    empty = symmetry.symmetry_of(np.zeros(4, np.int32), np.zeros(0, np.int32))
    assert empty == (True, 0)
