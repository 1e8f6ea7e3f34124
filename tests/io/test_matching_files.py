"""Reading and writing of matchings: what is kept, and what malformed input gets."""

from __future__ import annotations

import io as bytesio
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import gpumatch
from gpumatch import io
from tests.io.stored_files import PATTERN, UNHURRIED, same, stored


@st.composite
def matchings(draw):
    rows, columns = draw(st.integers(0, 8)), draw(st.integers(0, 8))
    size = draw(st.integers(0, min(rows, columns)))
    row_to_col = np.full(rows, -1, dtype=np.int32)
    matched = draw(st.permutations(range(rows)))[:size]
    row_to_col[matched] = draw(st.permutations(range(columns)))[:size]
    return row_to_col, (rows, columns)


@UNHURRIED
@given(matchings(), st.sampled_from([".npy", ".npz", ".csv", ".mtx"]))
def test_matching_round_trip(matching, suffix):
    row_to_col, shape = matching
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "matching" + suffix)
        io.write_matching(path, row_to_col, shape)
        np.testing.assert_array_equal(io.read_matching(path, shape), row_to_col)


@pytest.mark.parametrize("dtype", ["u8", ">i4", "i1"])
def test_matching_of_any_integers_comes_back_as_int32(tmp_path, dtype):
    np.save(tmp_path / "m.npy", np.array([2, 0], dtype=dtype))
    matching = io.read_matching(tmp_path / "m.npy", (2, 3))
    assert matching.dtype == np.int32
    assert matching.dtype.isnative
    np.testing.assert_array_equal(matching, [2, 0])


@pytest.mark.parametrize("given", [[2, -1, 0], np.array([2, -1, 0], "i8")], ids=["list", "int64"])
def test_any_integers_are_written_as_int32(tmp_path, given):
    for name in ("m.npy", "m.npz"):
        io.write_matching(tmp_path / name, given, (3, 3))
        written = np.load(tmp_path / name)
        written = written["row_to_col"] if name == "m.npz" else written
        assert (written.dtype, written.tolist()) == (np.int32, [2, -1, 0])


def test_a_list_of_edges_has_their_costs(tmp_path):
    path = tmp_path / "m.csv"
    io.write_matching(path, np.array([2, -1, 0]), (3, 3), values=np.array([5, 7.5]))
    assert path.read_text() == "row,column,cost\n0,2,5.0\n2,0,7.5\n"


def test_matching_as_matrix_is_its_edges(tmp_path):
    io.write_matching(tmp_path / "m.MTX", np.array([2, -1, 0]), (3, 4))
    expected = sp.coo_array((np.ones(2), ([0, 2], [2, 0])), shape=(3, 4))
    same(io.read(tmp_path / "m.MTX"), expected)


WRONG_MATCHINGS = {
    "column twice": ([1, 1], "column 1 is matched 2 times"),
    "first column twice": ([0, 0], "column 0 is matched 2 times"),
    "column beyond": ([0, 3], "row 1 is matched to column 3 of 3"),
    "below -1": ([-2, 0], "row 0 is matched to column -2 of 3"),
    "too short": ([0], r"shape \(1,\), expected \(2,\)"),
    "too deep": ([[0, 1]], r"shape \(1, 2\), expected \(2,\)"),
    "floats": ([0.0, 1.0], "type float64, expected integers"),
}


@pytest.mark.parametrize(("row_to_col", "says"), WRONG_MATCHINGS.values(), ids=WRONG_MATCHINGS)
def test_wrong_matching_is_neither_written_nor_read(tmp_path, row_to_col, says):
    path = tmp_path / "m.npy"
    with pytest.raises(ValueError, match=says):
        io.write_matching(path, np.array(row_to_col), (2, 3))
    assert not path.exists()
    np.save(path, row_to_col)
    with pytest.raises(ValueError, match=says) as failure:
        io.read_matching(path, (2, 3))
    assert str(failure.value).startswith(f"{path}: ")


def npy_promising(shape):
    file = bytesio.BytesIO()
    header = {"descr": "<i8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + b"\0" * 16


def archive(**arrays):
    file = bytesio.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


WRONG_MATCHING_FILES = {
    "row twice": ("m.mtx", PATTERN + "2 3 2\n1 1\n1 2\n", "row 0 is matched 2 times"),
    "column twice": ("m.mtx", PATTERN + "2 3 2\n1 2\n2 2\n", "column 1 is matched 2 times"),
    "other shape": ("m.mtx", PATTERN + "3 2 1\n1 1\n", r"shape \(3, 2\), but the graph's is"),
    "malformed": ("m.mtx", PATTERN, "Premature EOF"),
    "promises 1e15": ("m.npy", npy_promising((10**15,)), "mmap length"),
    "list with more rows": ("m.csv", "row,column\n2,0\n", "a 3 by 1 graph"),
    "list with more columns": ("m.csv", "row,column\n0,3\n", "a 1 by 4 graph"),
    "row twice in a list": ("m.csv", "0,1\n0,2\n", "row 0 is matched 2 times"),
    "archive without it": ("m.npz", archive(mates=np.arange(2)), "no array 'row_to_col'"),
    "archive of floats": ("m.npz", archive(row_to_col=np.ones(2)), "type float64"),
    "archive of objects": ("m.npz", archive(row_to_col=np.array([None])), "does not belong"),
    "empty": ("m.npy", b"", "EOF"),
    "not npy": ("m.npy", b"0 1 2\n", "magic string"),
    "other ending": ("m.txt", "0 1\n", "a matching is a file of .npy, .npz, .csv, .mtx"),
}


@pytest.mark.parametrize(
    ("name", "content", "says"), WRONG_MATCHING_FILES.values(), ids=WRONG_MATCHING_FILES
)
def test_malformed_matching(tmp_path, name, content, says):
    path = stored(tmp_path / name, content)
    with pytest.raises(ValueError, match=says) as failure:
        io.read_matching(path, (2, 3))
    assert str(failure.value).startswith(f"{path}: ")
    assert str(failure.value).count(str(path)) == 1


def test_pickled_matching_is_not_loaded(tmp_path):
    np.save(tmp_path / "m.npy", np.array([0, None]), allow_pickle=True)
    with pytest.raises(ValueError, match="object"):
        io.read_matching(tmp_path / "m.npy", (2, 3))


def test_missing_matching(tmp_path):
    with pytest.raises(FileNotFoundError):
        io.read_matching(tmp_path / "m.npy", (2, 3))


def test_matchings_of_graphs_are_written(tmp_path):
    """The mate of each vertex, or each edge once."""
    m = gpumatch.general.maximum_matching(([(0, 1), (1, 2), (2, 0), (2, 3)], None))
    for ending, rows in ((".npy", [0, 1, 2, 3]), (".npz", [0, 1, 2, 3]), (".csv", [0, 2])):
        path = tmp_path / f"mates{ending}"
        io.write_matching(path, m)
        mates = io.read_matching(path, (4, 4))
        assert np.flatnonzero(mates >= 0).tolist() == rows
        assert (mates[rows] == m.mate[rows]).all()
