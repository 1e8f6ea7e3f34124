"""Rows of a Matrix Market file are those of the whole."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array, random_array

from gpumatch.io import read, slices
from gpumatch.io.slices import has_coordinates, matrix_market_rows

RNG = np.random.default_rng(3)
SQUARE = random_array((30, 30), density=0.2, rng=RNG)
SYMMETRIC = coo_array(SQUARE + SQUARE.T)
WIDE = random_array((5, 30), density=0.5, rng=RNG)


@pytest.fixture(params=[40, 2**24], ids=["in pieces", "at once"])
def piece(request, monkeypatch):
    monkeypatch.setattr(slices, "PIECE", request.param)


in_pieces_and_at_once = pytest.mark.usefixtures("piece")


@in_pieces_and_at_once
@pytest.mark.parametrize("field", ["real", "pattern", "integer"])
@pytest.mark.parametrize(
    "matrix",
    [SQUARE, SYMMETRIC, WIDE, coo_array((4, 3))],
    ids=["general", "symmetric", "wide", "empty"],
)
def test_rows_are_those_of_the_whole(matrix, field, tmp_path):
    path = tmp_path / "matrix.mtx"
    mmwrite(path, coo_array(matrix * 9).astype(int) if field == "integer" else matrix, field=field)
    assert has_coordinates(path)
    whole = read(path)
    for rows in (slice(0, 2), slice(2, matrix.shape[0]), slice(1, 1)):
        part, wanted = matrix_market_rows(path, lambda _, rows=rows: rows), whole[rows]
        assert part.shape == wanted.shape
        np.testing.assert_array_equal(part.indptr, wanted.indptr)
        np.testing.assert_array_equal(part.indices, wanted.indices)
        np.testing.assert_array_equal(part.data, wanted.data)


@in_pieces_and_at_once
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n  \n"], ids=repr)
def test_the_last_line_may_end_in_any_way(end, tmp_path):
    path = tmp_path / "matrix.mtx"
    lines = "1 1 5", "", "3 2 -1.5", "2 3 7"
    path.write_text(HEAD + "3 3 3\n" + "\n".join(lines) + end)
    part = matrix_market_rows(path, lambda nrows: slice(1, nrows))
    assert part.toarray().tolist() == [[0, 0, 7], [0, -1.5, 0]]


@in_pieces_and_at_once
def test_a_compressed_file(tmp_path):
    plain, path = tmp_path / "matrix.mtx", tmp_path / "matrix.mtx.gz"
    mmwrite(plain, SQUARE)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    part = matrix_market_rows(path, lambda nrows: slice(0, nrows))
    assert (part != read(plain)).nnz == 0


HEAD = "%%MatrixMarket matrix coordinate real general\n% a comment\n\n"
WRONG = {
    "too few entries": (HEAD + "2 2 3\n1 1 5\n2 2 6\n", "promises 3 entries, but has 2"),
    "too many entries": (HEAD + "2 2 1\n1 1 5\n2 2 6\n", "promises 1 entries, but has 2"),
    "a row out of range": (HEAD + "2 2 1\n3 1 5\n", "out of bounds|Row index"),
    "no sizes": (HEAD, ""),
    "nothing": ("", ""),
    "no line ends": (HEAD + "2 2 1\n" + "1" * 2**17, "has a line of more than"),
    "a huge shape": (HEAD + f"{2**60} 2 0\n", "index pointers"),
    "a dense array": ("%%MatrixMarket matrix array real general\n1 1\n5\n", "is a dense array"),
}


@in_pieces_and_at_once
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_is_refused_by_name(what, tmp_path):
    path = tmp_path / "wrong.mtx"
    text, pattern = WRONG[what]
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"wrong\.mtx: .*({pattern})"):
        matrix_market_rows(path, lambda nrows: slice(0, nrows))


def test_only_names_of_matrix_market_files_are_theirs(tmp_path):
    assert not has_coordinates(tmp_path / "matrix.npz")


def test_a_huge_shape_is_refused_however_few_rows_are_wanted(tmp_path):
    path = tmp_path / "wrong.mtx"
    path.write_text(HEAD + f"{2**60} 2 0\n")
    with pytest.raises(ValueError, match=r"wrong\.mtx: index pointers"):
        matrix_market_rows(path, lambda _: slice(0, 1))
