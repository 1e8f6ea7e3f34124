"""Reading of costs: what is kept, and what malformed input gets."""

from __future__ import annotations

import gzip
import lzma
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gpumatch import io
from tests.io.stored_files import REAL, UNHURRIED, npy, same, stored

TABLES = {
    "integers": ("1,-2\n3,4\n", [[1, -2], [3, 4]], np.int64),
    "floats": ("1,2.5\n1e3,inf\n", [[1, 2.5], [1e3, np.inf]], np.float64),
    "comments": ("# costs\n\n1,2 # first\n3,4", [[1, 2], [3, 4]], np.int64),
    "blank lines": (" \n1,2\n\t \n  # more\n3,4\n ", [[1, 2], [3, 4]], np.int64),
    "spaces": ("1 , 2\r\n3,\t4\r\n", [[1, 2], [3, 4]], np.int64),
    "byte order mark": ("\ufeff1,2\n", [[1, 2]], np.int64),
    "one column": ("1\n2\n", [[1], [2]], np.int64),
    "a fraction below": ("1,2\n3,4.5\n", [[1, 2], [3, 4.5]], np.float64),
    "53 bits are not enough": (f"{2**53 + 1},0", [[2**53 + 1, 0]], np.int64),
    "nor are 63": (f"{2**63 + 1},0", [[2**63 + 1, 0]], np.uint64),
}


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize(("text", "expected", "dtype"), TABLES.values(), ids=TABLES)
def test_costs_as_lines_of_numbers(tmp_path, text, expected, dtype, end):
    content = gzip.compress(text.encode()) if end else text.encode()
    costs = io.read_costs(stored(tmp_path / f"costs.csv{end}", content))
    assert costs.dtype == dtype
    assert costs.tolist() == expected


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize("dtype", ["?", "i1", ">i4", "u8", "f2", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_costs_as_an_array(tmp_path, dtype, order, end):
    array = np.array([[0, 1, 1], [1, 0, 1]], dtype, order=order)
    content = gzip.compress(npy(array)) if end else npy(array)
    costs = io.read_costs(stored(tmp_path / f"costs.npy{end}", content))
    assert costs.dtype == array.dtype
    assert costs.tolist() == array.tolist()


@pytest.mark.parametrize("end", ["", ".gz", ".xz"])
def test_costs_as_a_sparse_matrix_keep_zeros(tmp_path, end):
    compress = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[end]
    content = compress((REAL + "2 3 3\n1 1 0\n2 3 5\n2 1 -1\n").encode())
    costs = io.read_costs(stored(tmp_path / f"costs.mtx{end}", content))
    same(costs, sp.csr_array(([0, -1, 5], ([0, 1, 1], [0, 0, 2])), shape=(2, 3)))


def test_costs_as_an_array_of_matrix_market_keep_zeros(tmp_path):
    text = "%%MatrixMarket matrix array integer general\n2 2\n1\n0\n2\n3\n"
    costs = io.read_costs(stored(tmp_path / "costs.mtx", text))
    assert costs.tolist() == [[1, 2], [0, 3]]
    assert costs.dtype == np.int64


OBJECT = np.array([[{}]], object)
WRONG_COSTS = {
    "another format": ("costs.dat", "1,2", "unknown format '.dat' of costs"),
    "no values": ("costs.txt", "0,1\n", "its lines have no value"),
    "no values below a header": ("costs.txt", "u v\n0 1\n", "its lines have no value"),
    "an archive": ("costs.tar.gz", gzip.compress(b"1"), "unknown format '.tar.gz'"),
    "nothing": ("costs.csv", "", "the file is empty"),
    "comments only": ("costs.csv", "# 1,2\n\n", "has no numbers"),
    "a header": ("costs.csv", "a,b\n1,2\n", "its lines have no value"),
    "a word": ("costs.csv", "#\n1,2\n\n3,x4\n", "line 4, field 2: 'x4' is no number"),
    "a long word": ("costs.csv", "1,2\n3," + "y" * 999, "field 2: 'yyyyyyyyyyyyyyyyyyyy...' is"),
    "no number": ("costs.csv", "1,2\n3,\n", "line 2, field 2: '' is no number"),
    "spaces only": ("costs.csv", " \n\t\n", "has no numbers"),
    "a word after blanks": ("costs.csv", " \n  # 1\n3,x4\n", "line 3, field 2: 'x4' is no number"),
    "semicolons": ("costs.csv", "1;2\n3;4,5\n", "line 2, field 2: '4,5' is no number"),
    "NUL": ("costs.csv", "1,\0\n", "has NUL bytes"),
    "a short line": ("costs.csv", "\n1,2,3\n4,5,6\n7,8", "line 4 has 2 fields, but line 2 has 3"),
    "a long line": ("costs.csv", "1,2\n2,3,4", "line 2 has 3 fields, but line 1 has 2"),
    "Python's numbers": ("costs.csv", "1_000,2", "line 1, field 1: '1_000' is no number"),
    "a picture": ("costs.npy", b"\x89PNG" * 9, "magic"),
    "half an array": ("costs.npy", npy(np.eye(9))[:-8], r"promises shape \(9, 9\)"),
    "more than an array": ("costs.npy", npy(np.eye(9)) + b"x", r"promises shape \(9, 9\)"),
    "a vast array": (
        "costs.npy",
        npy(np.eye(9), **{"(9, 9)": "(9999999, 9999999)"}),
        "promises shape",
    ),
    "a negative shape": ("costs.npy", npy(np.eye(3), **{"(3, 3)": "(-3, -3)"}), "costs.npy"),
    "pickles": ("costs.npy", npy(OBJECT), "type object does not belong there"),
    "texts": ("costs.npy", npy(np.array([["1"]])), "type <U1 does not belong there"),
    "complex numbers": ("costs.npy", npy(np.eye(2) * 1j), "type complex128 does not belong there"),
    "half a header": ("costs.npy", npy(np.eye(2))[:50], "costs.npy"),
    "broken compression": ("costs.csv.gz", gzip.compress(b"1,2\n" * 99)[:-9], "costs.csv.gz"),
    "a vast matrix": ("costs.mtx", REAL + "3 3 99999999\n1 1 1\n", "promises 99999999 entries"),
    "a vast dense matrix": (
        "costs.mtx",
        "%%MatrixMarket matrix array real general\n99999 99999\n1\n",
        "promises 9999800001 entries",
    ),
}


@pytest.mark.parametrize("comment", ["%", "#"])
@pytest.mark.parametrize("end", ["txt", "el", "edges", "tsv"])
def test_lists_of_costs_may_begin_with_comments(tmp_path, end, comment):
    path = stored(tmp_path / f"costs.{end}", f"{comment} made by hand\n0 1 5\n1 0 0 {comment} x\n")
    same(io.read_costs(path), sp.coo_array(([5, 0], ([0, 1], [1, 0]))))


@pytest.mark.parametrize(("name", "content", "says"), WRONG_COSTS.values(), ids=WRONG_COSTS)
def test_malformed_costs(tmp_path, name, content, says):
    path = stored(tmp_path / name, content)
    with pytest.raises(ValueError, match=says) as caught:
        io.read_costs(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["costs.csv.gz", "costs.npy.gz"])
def test_decompression_of_costs_stops_at_max_bytes(tmp_path, name):
    content = b"1,2\n" * 2**18 if ".csv" in name else npy(np.zeros((2**9, 2**9)))
    path = stored(tmp_path / name, gzip.compress(content))
    assert io.read_costs(path, max_bytes=len(content)).size
    with pytest.raises(ValueError, match="more than max_bytes"):
        io.read_costs(path, max_bytes=len(content) - 1)


@given(st.binary(max_size=200), st.sampled_from(["csv", "npy", "mtx", "csv.gz"]))
@UNHURRIED
def test_whatever_is_read_as_costs_is_costs_or_a_value_error(content, end):
    with tempfile.TemporaryDirectory() as folder:
        path = stored(Path(folder, f"costs.{end}"), content)
        try:
            kind = io.read_costs(path).dtype.kind
        except ValueError:
            return
        assert kind in "biufc"


@pytest.mark.parametrize(("field", "shown"), [("x" * 20, "x" * 20), ("x" * 21, "x" * 20 + "...")])
def test_a_long_field_is_cut_in_the_message(tmp_path, field, shown):
    with pytest.raises(ValueError, match=f"line 1, field 2: '{shown}' is no number"):
        io.read_costs(stored(tmp_path / "costs.csv", f"1,{field}\n"))
