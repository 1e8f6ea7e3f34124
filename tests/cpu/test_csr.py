"""Whether CSR arrays on the host are in order."""

import numpy as np
import pytest

from gpumatch.cpu import csr


@pytest.mark.parametrize("offsets", [np.int32, np.int64])
@pytest.mark.parametrize("seed", range(40))
def test_rows_are_in_order_if_each_of_them_rises(seed, offsets, monkeypatch):
    """Blocks end anywhere, rows may be empty, and indices fall within rows, or not."""
    monkeypatch.setattr(csr, "BLOCK", 8)
    rng = np.random.default_rng(seed)
    rows = [np.flatnonzero(rng.random(6) < rng.choice([0, 0.5])) for _ in range(rng.integers(30))]
    indices = np.concatenate([*rows, np.empty(0, int)]).astype(np.int32)
    indptr = np.cumsum([0, *map(len, rows)]).astype(offsets)
    assert csr.is_canonical(indptr, indices)
    for place in range(indices.size):
        changed = indices.copy()
        changed[place] = rng.integers(6)
        own = np.split(changed, indptr[1:-1]) if rows else []
        assert csr.is_canonical(indptr, changed) == all((np.diff(row) > 0).all() for row in own)
