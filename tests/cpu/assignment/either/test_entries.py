"""Functions of costs in either form: interpreted and compiled callers take the same kernel."""

import numpy as np
from numba import njit

from gpumatch.cpu.assignment.either.entries import by_entries


@njit
def _dense_sum(entries, row):
    return entries[row].sum(), "dense"


@njit
def _stored_sum(entries, row):
    indptr, _, weights = entries
    return weights[indptr[row] : indptr[row + 1]].sum(), "stored"


_sum = by_entries(_dense_sum, _stored_sum)


@njit
def _compiled(entries, row):
    return _sum(entries, row)


def test_the_kernel_of_a_form_is_taken():
    dense = np.array([[1.0, 0.0, 2.0], [0.0, 4.0, 0.0]])
    stored = np.array([0, 2, 3]), np.array([0, 2, 1]), np.array([1.0, 2.0, 4.0])
    for call in (_sum, _compiled):
        assert call(dense, 0) == (3.0, "dense")
        assert call(stored, 1) == (4.0, "stored")
