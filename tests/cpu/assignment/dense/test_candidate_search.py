"""Searches by the columns that rows of a dense matrix know."""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.assignment.dense import candidate_search


def test_a_full_heap_is_tidied():
    """Of what is out of date, nothing stays; rows always do."""
    keys, heap = np.array([1.0, 2.0, 2.5, 3.0, 9.0]), np.array([0, 1, 2, 0, 3], np.int32)
    dist = np.array([1.0, 1.5, 2.5])
    assert candidate_search._tidy(keys, heap, 5, dist) == 3
    assert sorted(zip(keys[:3], heap[:3])) == [(1.0, 0), (2.5, 2), (9.0, 3)]
