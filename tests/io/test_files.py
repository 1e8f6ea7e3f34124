"""Reading of matrices: what is kept, and what malformed input gets."""

from __future__ import annotations

import bz2
import errno
import gzip
import io as bytesio
import lzma
import re
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gpumatch import io
from gpumatch.io.contents import naming
from tests.io.stored_files import PATTERN, REAL, SMALL, UNHURRIED, same, stored

# Round trips ------------------------------------------------------------------------------------


@st.composite
def matrices(draw, min_side=0):
    rows, columns = draw(st.integers(min_side, 6)), draw(st.integers(min_side, 6))
    cells = st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1))
    places = draw(st.lists(cells, unique=True, max_size=12)) if rows and columns else []
    number = st.floats(allow_nan=False) if draw(st.booleans()) else st.integers(-(2**40), 2**40)
    values = draw(st.lists(number, min_size=len(places), max_size=len(places)))
    row, column = np.array(places, dtype=np.int32).reshape(-1, 2).T
    dtype = np.int64 if values and isinstance(values[0], int) else np.float64
    return sp.coo_array((np.array(values, dtype=dtype), (row, column)), shape=(rows, columns))


@UNHURRIED
@given(matrices())
def test_matrix_market_round_trip(matrix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "matrix.mtx")
        scipy.io.mmwrite(path, matrix, symmetry="general", precision=17)
        same(io.read(path), matrix)


@UNHURRIED
@given(matrices(min_side=1), st.sampled_from(["csr", "csc", "coo", "bsr"]), st.booleans())
def test_npz_round_trip(matrix, layout, compressed):
    matrix = matrix.asformat(layout)  # the zeros in a block of BSR are stored entries
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "matrix.npz")
        sp.save_npz(path, matrix, compressed=compressed)
        same(io.read(path), matrix)


@UNHURRIED
@given(matrices(min_side=1).filter(lambda matrix: matrix.nnz), st.sampled_from([".txt", ".csv"]))
def test_edge_list_round_trip(matrix, suffix):
    separator, header = (",", ["row,col,val"]) if suffix == ".csv" else (" ", [])
    edges = zip(matrix.row, matrix.col, matrix.data.tolist(), strict=True)
    lines = [separator.join(map(str, edge)) for edge in edges]
    shape = (matrix.row.max() + 1, matrix.col.max() + 1)
    with tempfile.TemporaryDirectory() as folder:
        path = stored(Path(folder, "edges" + suffix), "\n".join(["# one", *header, *lines]))
        same(io.read(path), sp.coo_array((matrix.data, (matrix.row, matrix.col)), shape=shape))


@UNHURRIED
@given(matrices(min_side=1).filter(lambda matrix: matrix.nnz))
def test_harwell_boeing_round_trip(matrix):
    values = sp.coo_array((np.arange(1.0, matrix.nnz + 1), matrix.coords), shape=matrix.shape)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "matrix.rua")
        scipy.io.hb_write(path, values.tocsc())
        same(io.read(path), values)


def test_lines_of_harwell_boeing_end_as_on_any_system(tmp_path):
    matrix = sp.csc_array(np.arange(12.0).reshape(3, 4))
    scipy.io.hb_write(tmp_path / "a.rua", matrix)
    lines = (tmp_path / "a.rua").read_bytes().splitlines()
    for end in (b"\r\n", b"\r"):
        same(io.read(stored(tmp_path / "b.rua", end.join([*lines, b""]))), matrix)


@pytest.mark.parametrize("field", ["real", "integer", "complex", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
def test_symmetric_files_are_read_in_full(tmp_path, field, symmetry):
    lower = {(1, 0): 2 + 3j, (2, 1): 4 - 1j, (3, 0): 0}
    if symmetry in ("general", "symmetric"):
        lower[2, 2] = 7
    number = {
        "real": lambda value: f"{complex(value).real}",
        "integer": lambda value: f"{int(complex(value).real)}",
        "complex": lambda value: f"{complex(value).real} {complex(value).imag}",
        "pattern": lambda value: "",
    }[field]
    lines = [f"{i + 1} {j + 1} {number(value)}" for (i, j), value in lower.items()]
    text = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n4 4 {len(lines)}\n"
    matrix = io.read(stored(tmp_path / "a.mtx", text + "\n".join(lines)))

    mirror = {
        "symmetric": lambda value: value,
        "skew-symmetric": lambda value: -value,
        "hermitian": lambda value: complex(value).conjugate(),
    }
    full = dict(lower)
    if symmetry != "general":
        full.update({(j, i): mirror[symmetry](value) for (i, j), value in lower.items() if i != j})
    assert set(zip(*matrix.nonzero(), strict=True)) <= set(full)
    assert matrix.nnz == len(full)
    if field != "pattern":
        for (i, j), value in full.items():
            assert matrix[i, j] == (value if field == "complex" else complex(value).real)


@pytest.mark.parametrize(
    ("symmetry", "values", "full"),
    [
        ("general", "1 2 0 4", [[1, 0], [2, 4]]),
        ("symmetric", "1 2 3", [[1, 2], [2, 3]]),
        ("skew-symmetric", "5", [[0, -5], [5, 0]]),
    ],
)
def test_dense_file_gives_its_nonzeros(tmp_path, symmetry, values, full):
    text = f"%%MatrixMarket matrix array real {symmetry}\n2 2\n" + values.replace(" ", "\n")
    same(io.read(stored(tmp_path / "a.mtx", text)), np.array(full, dtype=float))


@pytest.mark.parametrize(("symmetry", "lines"), [("general", 100**2), ("skew-symmetric", 99 * 50)])
def test_the_shortest_dense_files_are_read(tmp_path, symmetry, lines):
    text = f"%%MatrixMarket matrix array integer {symmetry}\n100 100\n" + "1\n" * lines
    assert io.read(stored(tmp_path / "a.mtx", text)).nnz >= 2 * 99 * 50


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0)])
@pytest.mark.parametrize("layout", ["coordinate", "array"])
def test_no_rows_or_columns(tmp_path, shape, layout):
    sizes = " ".join(map(str, shape)) + (" 0" if layout == "coordinate" else "")
    text = f"%%MatrixMarket matrix {layout} real general\n{sizes}\n"
    same(io.read(stored(tmp_path / "a.mtx", text)), sp.csr_array(shape))


def test_stored_zeros_are_entries(tmp_path):
    expected = sp.coo_array(([0.0, 5.0, 0.0], ([0, 1, 1], [0, 0, 1])), shape=(2, 2))
    same(io.read(stored(tmp_path / "a.mtx", REAL + "2 2 3\n1 1 0\n2 1 5\n2 2 0\n")), expected)
    same(io.read(stored(tmp_path / "a.txt", "0 0 0\n1 0 5\n1 1 0\n")), expected)
    sp.save_npz(tmp_path / "a.npz", expected)
    same(io.read(tmp_path / "a.npz"), expected)


def test_duplicates_are_one_entry_even_when_they_cancel(tmp_path):
    text = REAL + "2 2 3\n1 1 2\n1 1 -2\n2 1 1\n"
    matrix = io.read(stored(tmp_path / "a.mtx", text))
    same(matrix, sp.coo_array(([0.0, 1.0], ([0, 1], [0, 0])), shape=(2, 2)))


def test_unsorted_npz_comes_out_sorted(tmp_path):
    unsorted = sp.csr_array(([1.0, 2.0, 3.0], [2, 0, 2], [0, 3]), shape=(1, 3))
    sp.save_npz(tmp_path / "a.npz", unsorted)
    same(io.read(tmp_path / "a.npz"), np.array([[2.0, 0.0, 4.0]]))


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
@pytest.mark.parametrize("name", ["a.mtx", "A.MTX"])
@pytest.mark.parametrize("in_case", [str.lower, str.upper])
def test_compressed(tmp_path, name, suffix, compress, in_case):
    matrix = io.read(stored(tmp_path / (name + in_case(suffix)), compress(SMALL)))
    same(matrix, np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "# comment\n% another\n\n0 2\n1 0 # one more\n"),
        ("a.el", "0\t2\r\n1\t0\r\n"),
        ("a.csv", "0, 2\n1, 0"),
        ("a.csv", " \t\n0,2\n  % one more\n1,0\n  "),
        ("a.edges", SMALL.decode()),
        ("a.txt", "# caf\xe9\n0 2\n1 0\n"),
        ("a.csv", "\xef\xbb\xbf0,2\n1,0\n"),
    ],
    ids=["comments", "tabs", "commas", "blanks", "MatrixMarket", "Latin-1", "byte order mark"],
)
def test_edge_lists(tmp_path, name, text):
    path = stored(tmp_path / name, text.encode("latin-1"))
    same(io.read(path), np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
@pytest.mark.parametrize(
    ("dtype", "values", "total"),
    [
        ("uint8", [100, 100, 100], 300),
        ("int8", [-100, -100, 0], -200),
        ("int32", [2**31 - 1, 2**31 - 1, 1], 2**32 - 1),
        ("int64", [2**62, 2**62 - 1, 0], 2**63 - 1),
        ("uint64", [2**63, 2**62, 1], 2**63 + 2**62 + 1),
        ("bool", [True, True, True], 3),
        ("float32", [3e38, 3e38, 3e38], 3 * float(np.float32(3e38))),
        ("complex64", [3e38, 3e38j, 3e38], float(np.float32(3e38)) * (2 + 1j)),
    ],
)
def test_entries_of_one_place_are_summed_exactly(tmp_path, layout, dtype, values, total):
    data, cols = np.array([*values, 1], dtype), np.array([1, 1, 1, 0])
    if layout == "coo":
        matrix = sp.coo_array((data, ([0, 0, 0, 1], cols)), shape=(2, 2))
    else:
        form = sp.csr_array if layout == "csr" else sp.csc_array
        matrix = form((data, cols, [0, 3, 4]), shape=(2, 2))
    sp.save_npz(tmp_path / "a.npz", matrix)
    place = (1, 0) if layout == "csc" else (0, 1)
    for read in (io.read, io.read_costs):
        found = read(tmp_path / "a.npz")
        assert found.nnz == 2
        assert found[place].item() == total


# Malformed files --------------------------------------------------------------------------------


def npz(**arrays):
    file = bytesio.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def csr(**changed):
    arrays = {
        "format": np.array(b"csr"),
        "shape": np.array([2, 3]),
        "data": np.ones(2),
        "indices": np.array([2, 0], dtype=np.int32),
        "indptr": np.array([0, 1, 2], dtype=np.int32),
    }
    return npz(**{**arrays, **{name: np.asarray(array) for name, array in changed.items()}})


def npz_promising(shape):
    """A csr .npz whose `data` declares a shape that its bytes do not hold."""
    file = bytesio.BytesIO()
    with zipfile.ZipFile(bytesio.BytesIO(csr())) as archive, zipfile.ZipFile(file, "w") as copy:
        for name in archive.namelist():
            member = bytesio.BytesIO()
            if name == "data.npy":
                header = {"descr": "<f8", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(member, header)
            copy.writestr(name, member.getvalue() or archive.read(name))
    return file.getvalue()


def harwell_boeing(change=lambda text: text):
    text = bytesio.StringIO()
    scipy.io.hb_write(text, sp.csc_array(np.array([[1.0, 0.0], [2.5, 3.0]])))
    return change(text.getvalue())


def test_comments_of_integers_may_have_points(tmp_path):
    text = REAL.replace("real", "integer") + "% v. 1.5\n% made by E. E.\n1 2 1\n1 2 7\n"
    assert io.read(stored(tmp_path / "a.mtx", text)).toarray().tolist() == [[0, 7]]


@pytest.mark.parametrize(
    ("error", "says"),
    [(EOFError(), "^f.mtx: EOFError$"), (gzip.BadGzipFile("no gzip"), "^f.mtx: no gzip$")],
    ids=["without text", "without a system call"],
)
def test_whatever_a_reader_raises_is_a_value_error_with_the_name(error, says):
    with pytest.raises(ValueError, match=says), naming("f.mtx"):
        raise error


def test_a_failed_system_call_is_left_as_it_is():
    failed = PermissionError(errno.EACCES, "no entry")
    with pytest.raises(PermissionError, match="no entry") as caught, naming("f.mtx"):
        raise failed
    assert caught.value is failed


def test_no_memory_is_no_fault_of_the_file(tmp_path, monkeypatch):
    def read(*_, **__):
        raise MemoryError

    monkeypatch.setattr(scipy.io, "mmread", read)
    with pytest.raises(MemoryError):
        io.read(stored(tmp_path / "a.mtx", REAL + "1 1 1\n1 1 7\n"))


MALFORMED = {
    "empty": ("a.mtx", "", "the file is empty"),
    "blank": ("a.mtx", "\n\n", "Missing banner"),
    "other text": ("a.mtx", "hello\n1 1 1\n", "Missing banner"),
    "binary": ("a.mtx", b"\x89PNG\r\n\xff\xfe", "Missing banner"),
    "header only": ("a.mtx", REAL, "Premature EOF"),
    "unknown field": ("a.mtx", REAL.replace("real", "weird"), "weird"),
    "vector": ("a.mtx", "%%MatrixMarket vector coordinate real general\n5 1\n2 3\n", "vector"),
    "negative rows": ("a.mtx", REAL + "-3 3 1\n1 1 1\n", "negative"),
    "negative entries": ("a.mtx", REAL + "3 3 -1\n", "negative"),
    "no integer": (
        "a.mtx",
        REAL.replace("real", "integer") + "2 2 1\n1 1 1.9\n",
        "line 3: '1.9' is not an integer",
    ),
    "no integer in an array": (
        "a.mtx",
        "%%MatrixMarket matrix array integer general\n1 2\n1\n2.5\n",
        "line 4: '2.5' is not an integer",
    ),
    "exponent": ("a.mtx", REAL.replace("real", "integer") + "2 2 1\n1 1 1e2\n", "'1e2' is not an"),
    "large exponent": (
        "a.mtx",
        REAL.replace("real", "integer") + "2 2 1\n1 1 3E2\n",
        "'3E2' is not an",
    ),
    "float size": ("a.mtx", REAL + "3.0 3 1\n1 1 1\n", "Invalid integer"),
    "missing size": ("a.mtx", REAL + "3 3\n1 1 1\n", "Invalid integer"),
    "1e18 entries": ("a.mtx", REAL + f"3 3 {10**18}\n1 1 1\n", "promises 10{18} entries"),
    "1e26 entries": ("a.mtx", REAL + f"3 3 {10**26}\n1 1 1\n", "out of range"),
    "1e18 rows": ("a.mtx", REAL + f"{10**18} 3 1\n1 1 1\n", "index pointers of 10{18} x 3"),
    "1e9 columns": ("a.mtx", REAL + f"3 {10**9} 1\n1 1 1\n", "index pointers of 3 x 10{9}"),
    "1e16 dense": ("a.mtx", REAL.replace("coordinate", "array") + f"{10**8} {10**8}\n1\n", "prom"),
    "too few lines": ("a.mtx", PATTERN + "9 9 4\n1 1\n2 2\n3 3\n", "Truncated file"),
    "truncated": ("a.mtx", REAL + "3 3 2\n1 1 1.25\n", "Truncated file"),
    "truncated number": (
        "a.mtx",
        REAL + "3 3 1\n1 1",
        "line 3: has 2 fields, expected an index, an",
    ),
    "truncated dense": ("a.mtx", REAL.replace("coordinate", "array") + "2 2\n1.5\n2.5\n", "Trunc"),
    "too many lines": ("a.mtx", REAL + "3 3 1\n1 1 1\n2 2 2\n", "Too many lines"),
    "row 0": ("a.mtx", REAL + "3 3 1\n0 1 1\n", "Row index out of bounds"),
    "row beyond": ("a.mtx", REAL + "3 3 1\n4 1 1\n", "Row index out of bounds"),
    "negative column": ("a.mtx", REAL + "3 3 1\n1 -1 1\n", "Column index out of bounds"),
    "huge row": ("a.mtx", REAL + f"3 3 1\n{2**32 + 1} 1 1\n", "out of range"),
    "float row": ("a.mtx", REAL + "3 3 1\n1.5 1 1\n", "line 3: '1.5' is not an index"),
    "word for a value": ("a.mtx", REAL + "3 3 1\n1 1 one\n", "line 3: 'one' is not a real number"),
    "Arabic digit": ("a.mtx", REAL + "3 3 1\n1 1 \u0663\n", "line 3: .* is not a real number"),
    "huge integer": ("a.mtx", REAL.replace("real", "integer") + f"1 1 1\n1 1 {10**30}\n", "range"),
    "NUL": ("a.mtx", REAL + "3 3 1\n1 1 1\0junk\n", "line 3: .*junk' is not a real number"),
    "NUL for a number": ("a.mtx", REAL + "3 3 1\n1 \0 1\n", "line 3: .* is not an index"),
    "NUL among the sizes": ("a.mtx", REAL + "3 3\0 1\n1 1 1\n", "NUL bytes"),
    "oblong symmetric": (
        "a.mtx",
        PATTERN.replace("general", "symmetric") + "2 5 1\n1 2\n",
        "squar",
    ),
    "not gzip": ("a.mtx.gz", SMALL, "Not a gzipped file"),
    "truncated gzip": ("a.mtx.gz", gzip.compress(SMALL)[:-12], "end-of-stream"),
    "damaged gzip": ("a.mtx.gz", gzip.compress(SMALL)[:-8] + b"\0" * 8, "CRC"),
    "empty gzip": ("a.mtx.gz", gzip.compress(b""), "the file is empty"),
    "not bzip2": ("a.mtx.bz2", SMALL, "Invalid data stream"),
    "not xz": ("a.mtx.xz", SMALL, "format not supported"),
    "unknown format": ("a.docx", SMALL, "unknown format '.docx'"),
    "no format": ("a.gz", gzip.compress(SMALL), "unknown format ''"),
    "edge list of comments": ("a.txt", "# nothing\n% here\n", "has no edges"),
    "one field": ("a.txt", "0\n1\n", "1 fields a line"),
    "four fields": ("a.txt", "0 1 2 3\n", "4 fields a line"),
    "ragged": ("a.txt", "0 1\n2 3 4\n", "line 2 has 3 fields, but line 1 has 2"),
    "heading alone": ("a.csv", "source,target\n", "has no edges"),
    "heading without ends": ("a.csv", "id,name,size,age\n1,2,3,4\n", "the header names 'id, name"),
    "second heading": ("a.csv", "row,column\n0,1\nrow,column\n", "line 3, field 1: 'row' is no"),
    "name on the first line": ("a.txt", "0 one\n1 2\n", "line 1, field 2: 'one' is no number; ab"),
    "heading of nothing": ("a.csv", ",\n0,1\n", "line 1, field 1: '' is no number"),
    "semicolons and commas": ("a.txt", "0;1,2\n", "line 1 has commas and semicolons"),
    "negative edge": ("a.txt", "0 1\n-1 2\n", "line 2, field 1: -1 is no integer from 0"),
    "float edge": ("a.txt", "0 1.5\n", "line 1, field 2: '1.5' is no integer"),
    "NaN edge": ("a.txt", "0 nan\n", "field 2: 'nan' is no integer"),
    "infinite edge": ("a.txt", "inf 0\n", "field 1: 'inf' is no integer"),
    "vertex beyond the last": ("a.txt", f"0 {2**31 - 1}\n", r"integer from 0 to 2\^31 - 2"),
    "1e18 edge": ("a.txt", f"0 {10**18}\n", "field 2: 1.* is no integer from 0"),
    "2e9 edge": ("a.txt", f"0 {2 * 10**9}\n", "index pointers of 1 x 2000000001"),
    "NUL edge": ("a.txt", "0 1\n1\0 2\n", "has NUL bytes"),
    "not a zip": ("a.npz", SMALL, "not a zip file"),
    "truncated zip": ("a.npz", csr()[:-30], "not a zip file"),
    "damaged zip": ("a.npz", csr().replace(struct.pack("<d", 1.0), b"damaged!"), "CRC"),
    "no sparse matrix": ("a.npz", npz(format=np.array("no")), "Unknown format"),
    "foreign array": ("a.npz", csr(pickle=np.ones(3)), "'pickle' of type float64"),
    "pickled array": ("a.npz", csr(data=np.array([1, None])), "'data' of type object"),
    "text values": ("a.npz", csr(data=["a", "b"]), "'data' of type <U1"),
    "float indices": ("a.npz", csr(indices=[2.0, 0.5]), "'indices' of type float64"),
    "no indptr": ("a.npz", npz(format=np.array("csr"), data=np.ones(2)), "indices"),
    "array promises 1e18": ("a.npz", npz_promising((10**18,)), "promises shape"),
    "array promises 3": ("a.npz", npz_promising((3,)), "promises shape"),
    "column beyond": ("a.npz", csr(indices=[3, 0]), "indices"),
    "column below": ("a.npz", csr(indices=[-1, 0]), "indices"),
    "indptr short": ("a.npz", csr(indptr=[0, 2]), "index pointer size"),
    "indptr from 1": ("a.npz", csr(indptr=[1, 1, 2]), "should start with 0"),
    "indptr beyond": ("a.npz", csr(indptr=[0, 1, 9]), "Last value of index pointer"),
    "indptr down": ("a.npz", csr(shape=[3, 3], indptr=[0, 2, 1, 2]), "indptr decreases"),
    "indptr down by 2^31": (
        "a.npz",
        csr(shape=[4, 3], indptr=np.array([0, 2, -(2**31), -1, 2], dtype=np.int32)),
        "indptr decreases",
    ),
    "values short": ("a.npz", csr(data=[1.0]), "same size"),
    "shape negative": ("a.npz", csr(shape=[-2, 3]), "shape"),
    "1e18 columns": ("a.npz", csr(shape=[2, 10**18]), "index pointers of 2 x 10{18}"),
    "one dimension": (
        "a.npz",
        npz(format=np.array("coo"), shape=[5], data=[1.0], coords=[[2]], _is_array=np.True_),
        "1 dimensions, expected 2",
    ),
    "99 entries in 9 lines": ("a.mtx", PATTERN + "90 90 99\n" + "1 1\n" * 9, "promises 99 entries"),
    "short header": ("a.rua", "title\n", "72 characters"),
    "header cut": ("a.hb", harwell_boeing(lambda text: text[:90]), "56 characters"),
    "body cut": ("a.rua", harwell_boeing(lambda text: text[: len(text) - 30]), "same size"),
    "symmetric": ("a.rsa", harwell_boeing(lambda text: text.replace("RUA", "RSA")), "unsymmetric"),
    "D exponent": ("a.rua", harwell_boeing(lambda text: text.replace("E+", "D+")), "read"),
    "1e12 rows": (
        "a.rua",
        harwell_boeing(lambda text: text.replace(" " * 12 + " 2", f"{10**12:14d}", 1)),
        "index pointers of 10{12} x 2",
    ),
}


@pytest.mark.parametrize(("name", "content", "says"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_file(tmp_path, name, content, says):
    path = stored(tmp_path / name, content)
    says = re.sub(r"10\{(\d+)\}", lambda power: str(10 ** int(power[1])), says)
    with pytest.raises(ValueError, match=says) as failure:
        io.read(path)
    assert str(failure.value).startswith(f"{path}: ")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.mtx"):
        io.read(tmp_path / "none.mtx")


@pytest.mark.parametrize("name", ["a.mtx", "a"])
def test_folder(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(IsADirectoryError):
        io.read(tmp_path / name)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_decompression_stops_at_max_bytes(tmp_path, compress):
    suffix = {"gzip": ".gz", "bz2": ".bz2", "lzma": ".xz"}[compress.__module__]
    bomb = compress(SMALL + b"\n" * 2**24)
    path = stored(tmp_path / ("a.mtx" + suffix), bomb)
    with pytest.raises(ValueError, match="more than max_bytes = 1000000 bytes"):
        io.read(path, max_bytes=10**6)


def test_unpacking_stops_at_max_bytes(tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.coo_array(np.ones((200, 200))))
    assert (tmp_path / "a.npz").stat().st_size < 10**5
    with pytest.raises(ValueError, match="more than max_bytes = 100000 bytes"):
        io.read(tmp_path / "a.npz", max_bytes=10**5)


def test_the_shape_of_an_edge_list_is_bounded_too(tmp_path):
    path = tmp_path / "far.el"
    path.write_text("0 1998\n")
    assert io.read(path, max_bytes=16_000).shape == (1, 1999)
    says = "index pointers of 1 x 1999 take more than max_bytes = 15999"
    with pytest.raises(ValueError, match=says):
        io.read(path, max_bytes=15_999)
