"""Where pairs are among the entries of a pattern, and what is there, by looking at all of them."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.cpu import pairs_in_csr
from gpumatch.cpu.numba_tools import workers


def pattern(seed, shape=(9, 11)):
    """CSR of about a third of all pairs; the first and the last row are empty."""
    marks = np.random.default_rng(seed).random(shape) < 0.35
    marks[[0, -1]] = False
    rows, cols = marks.nonzero()
    indptr = np.searchsorted(rows, np.arange(shape[0] + 1))
    return marks, indptr, cols.astype(np.int32)


@pytest.mark.parametrize("number", [np.int32, np.int64])
@pytest.mark.parametrize("seed", range(5))
def test_every_pair_is_found_or_said_not_to_be_there(seed, number):
    marks, indptr, indices = pattern(seed)
    rows, cols = (part.ravel().astype(number) for part in np.indices(marks.shape))
    places, are_there = pairs_in_csr.find(indptr, indices, rows, cols)
    assert np.array_equal(are_there.reshape(marks.shape), marks)
    assert places[are_there].tolist() == [*range(indices.size)]
    assert ((places >= 0) & (places < indices.size)).all()  # so that values there can be read


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("budget", [1, 13, 40, 2**25])
def test_the_value_of_each_rows_pair(monkeypatch, budget, threads):
    monkeypatch.setattr(workers, "_EDGES_EACH", 5)
    for seed in range(5):
        marks, indptr, indices = pattern(seed)
        values = np.arange(1, indices.size + 1)
        mates = np.array([np.flatnonzero(line)[-1] if line.any() else -1 for line in marks])
        found = pairs_in_csr.values_of_mates(indptr, indices, values, mates, threads, budget)
        assert found.tolist() == [values[end - 1] if mate >= 0 else 0
                                  for end, mate in zip(indptr[1:], mates)]  # fmt: skip
        assert found.dtype == values.dtype


def test_no_rows_and_no_entries():
    none = np.zeros(0, np.int32)
    assert pairs_in_csr.values_of_mates(np.zeros(1, int), none, none, none).size == 0
    found = pairs_in_csr.values_of_mates(np.zeros(4, int), none, np.zeros(0), np.full(3, -1))
    assert found.tolist() == [0.0, 0.0, 0.0]
