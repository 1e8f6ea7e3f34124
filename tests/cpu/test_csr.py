"""CSR patterns on the host: what is ordered, transposed and cut out of them, by dense matrices."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gpumatch.cpu import csr

MATRIX = np.array([[0, 3, 0, 5], [0, 0, 0, 0], [7, 0, 2, 9], [4, 0, 0, 1]])
INDPTR = np.array([0, 2, 2, 5, 7])
INDICES = np.array([1, 3, 0, 2, 3, 0, 3], np.int32)
VALUES = MATRIX[MATRIX > 0]


def entries_by_row(indptr, indices, values):
    return [
        [*zip(indices[first:last].tolist(), values[first:last].tolist())]
        for first, last in pairwise(indptr)
    ]


def rows_of(matrix):
    return [[(int(col), int(row[col])) for col in np.flatnonzero(row)] for row in matrix]


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [3, 2], [1], [2, 2, 0]])
@pytest.mark.parametrize("cols", [[0, 1, 2, 3], [3, 0, 2], [2, 1]])
def test_a_part_has_its_rows_and_columns_in_their_order(rows, cols):
    """Each of its rows is sorted, whatever the order of the columns is."""
    part = csr.part(INDPTR, INDICES, VALUES, np.array(rows), np.array(cols), 4)
    assert entries_by_row(*part) == rows_of(MATRIX[rows][:, cols])
    assert part[0].dtype == part[1].dtype == np.int32


def test_a_transposed_matrix_takes_its_values_along():
    assert entries_by_row(*csr.transpose_values(INDPTR, INDICES, VALUES, 4)) == rows_of(MATRIX.T)
    indptr, indices = csr.transpose(INDPTR, INDICES, 5)
    assert indptr.tolist() == [0, 2, 3, 4, 7, 7]
    assert indices.tolist() == [2, 3, 0, 2, 0, 2, 3]


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [2, 0], [1], [3, 3], []])
def test_where_the_entries_of_rows_are(rows):
    places = csr.places_in(INDPTR, np.array(rows, int))
    assert places.tolist() == [k for row in rows for k in range(INDPTR[row], INDPTR[row + 1])]


def test_the_row_of_each_entry_and_the_greatest_of_each_vertex():
    assert csr.owners(INDPTR, INDICES).tolist() == [0, 0, 2, 2, 2, 3, 3]
    greatest = csr.greatest(INDICES, -VALUES.astype(float), 5)
    assert greatest.tolist() == [-4, -3, -2, -1, -np.inf]


@pytest.mark.parametrize(
    ("indptr", "indices", "is_it"),
    [
        ([0, 0, 0], [], True),
        ([0, 1], [5], True),
        ([0, 2], [0, 1], True),
        ([0, 2], [1, 0], False),
        ([0, 2], [1, 1], False),
        ([0, 1, 2], [1, 1], True),
        ([0, 0, 2], [1, 0], False),
        ([0, 2, 2], [1, 0], False),
        ([0, 1, 3], [2, 1, 0], False),
        ([0, 2, 3], [0, 1, 0], True),
        ([0, 1, 1, 2], [1, 0], True),
    ],
)
def test_rows_are_canonical_if_each_rises(indptr, indices, is_it):
    arrays = np.array(indptr), np.array(indices, np.int32)
    assert csr.is_canonical(*arrays) is is_it
    ends, cols = csr.canonical(*arrays, len(indptr) - 1)
    for (first, last), own in zip(pairwise(indptr), pairwise(ends)):
        assert cols[slice(*own)].tolist() == sorted(set(indices[first:last]))


@pytest.mark.parametrize("offsets", [np.int32, np.int64])
@pytest.mark.parametrize("seed", range(40))
def test_rows_are_in_order_if_each_of_them_rises(seed, offsets):
    """Blocks end anywhere, rows may be empty, and indices fall within rows, or not."""
    rng = np.random.default_rng(seed)
    rows = [np.flatnonzero(rng.random(6) < rng.choice([0, 0.5])) for _ in range(rng.integers(30))]
    indices = np.concatenate([*rows, np.empty(0, int)]).astype(np.int32)
    indptr = np.cumsum([0, *map(len, rows)]).astype(offsets)
    assert csr.is_canonical(indptr, indices, block=8)
    for place in range(indices.size):
        changed = indices.copy()
        changed[place] = rng.integers(6)
        own = np.split(changed, indptr[1:-1]) if rows else []
        assert csr.is_canonical(indptr, changed, block=8) == all(
            (np.diff(row) > 0).all() for row in own
        )
