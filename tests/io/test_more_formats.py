"""Edge lists with headers, MATLAB files, dense arrays, and files that are open already."""

from __future__ import annotations

import bz2
import gzip
import io as bytesio
import lzma
import struct
import warnings
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from gpumatch import io
from tests.io.stored_files import SMALL, npy, same, stored

EDGES = sp.coo_array(([7, 8, 9], ([0, 1, 2], [1, 0, 3])))


@pytest.mark.parametrize(
    "text",
    [
        "0 1 7\n1 0 8\n2 3 9\n",
        "0,1,7\n1, 0, 8\n2,3,9\n",
        "0;1;7\n1; 0; 8\n2;3;9\n",
        "0\t1\t7\n1\t0\t8\n2\t3\t9\n",
        "# who likes whom\n\nrow,column,value\n0,1,7\n1,0,8\n2,3,9\n",
        '"I"\t"J"\t"Weight"\n0\t1\t7\n1\t0\t8\n2\t3\t9\n',
        "weight,name,j,i\n7,ann,1,0\n8,bob,0,1\n9,cat,3,2\n",
        "Col,ROW,Weight\n1,0,7\n0,1,8\n3,2,9\n",
        'row,col,val\n"0","1","7"\n1,0,8\n"2",3,"9" \n'.replace(" ", ""),
    ],
    ids=[
        *("blanks", "commas", "semicolons", "tabs", "comment", "quotes", "other order"),
        *("capitals", "quoted numbers"),
    ],
)
def test_edge_lists(tmp_path, text):
    for name in ("edges.txt", "edges.csv", "edges.tsv"):
        for read in (io.read, io.read_costs):
            matrix = read(stored(tmp_path / name, text), format="list")
            same(matrix, EDGES)
            assert matrix.dtype == np.int64


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("factor", [1, 1 + 2j], ids=["real", "complex"])
def test_an_archive_of_every_layout(tmp_path, layout, factor):
    matrix = sp.csr_array(SQUARE * factor)
    sp.save_npz(tmp_path / "a.npz", matrix.asformat(layout))
    same(io.read(tmp_path / "a.npz"), matrix)


@pytest.mark.parametrize("end", [".hb", ".rb", ".rua", ".rra", ".rsa"])
def test_every_ending_of_harwell_boeing(tmp_path, end):
    scipy.io.hb_write(tmp_path / "a.x", sp.csc_array(SQUARE))
    (tmp_path / "a.x").rename(tmp_path / f"a{end}")
    same(io.read(tmp_path / f"a{end}"), SQUARE)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_the_largest_numbers_of_a_matlab_file(tmp_path, dtype):
    limits = np.iinfo(dtype) if dtype[0] in "iu" else np.finfo(dtype)
    ends = np.array([[limits.max, 1], [limits.min, 0]], dtype)
    found = io.read_costs(stored(tmp_path / "m.mat", mat({"M": ends})))
    assert found.dtype == ends.dtype
    assert np.array_equal(found, ends)


def test_values_stay_floats_unless_all_are_integers(tmp_path):
    matrix = io.read(stored(tmp_path / "e.txt", "0 0 1\n0 1 0.5\n"))
    assert matrix.toarray().tolist() == [[1.0, 0.5]]


def test_a_numpy_that_reads_integers_as_floats_changes_no_value(tmp_path, monkeypatch):
    """NumPy 2.0 cuts fractions off, and warns."""

    def loads(lines, dtype, load=np.loadtxt, **how):
        if np.dtype(dtype).names:  # its integers have no fractions here
            return load(lines, dtype, **how)
        floats = load(lines, np.float64, **how)
        if dtype == np.int64 and (floats != floats.astype(dtype)).any():
            warnings.warn("Parsing an integer via a float", DeprecationWarning, stacklevel=1)
        return floats.astype(dtype)

    monkeypatch.setattr(np, "loadtxt", loads)
    (tmp_path / "edges.csv").write_text("row,col,val\n0,1,1.5\n1,0,2\n")
    assert io.read(tmp_path / "edges.csv").data.tolist() == [1.5, 2.0]


# Dense arrays and MATLAB ------------------------------------------------------------------------


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_an_array_of_any_version(tmp_path, version):
    file = bytesio.BytesIO()
    np.lib.format.write_array(file, EDGES.toarray(), version=version)
    path = stored(tmp_path / "a.npy", file.getvalue())
    same(io.read(path), EDGES)
    assert np.array_equal(io.read_costs(path), EDGES.toarray())
    with pytest.raises(ValueError, match="promises shape"):
        io.read_costs(stored(tmp_path / "b.npy", file.getvalue()[:-8]))


def test_matrix_market_under_the_name_of_a_list(tmp_path):
    content = "%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n4\n"
    assert io.read_costs(stored(tmp_path / "a.txt", content)).tolist() == [[1, 3], [2, 4]]
    same(io.read(stored(tmp_path / "a.txt", content)), sp.csr_array([[1, 3], [2, 4]]))


def test_nonzeros_of_a_dense_array_are_the_edges(tmp_path):
    path = stored(tmp_path / "a.npy", npy(EDGES.toarray()))
    same(io.read(path), EDGES)


SQUARE = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [0.0, 0.0, 5.0]])


def mat(variables, **options):
    file = bytesio.BytesIO()
    scipy.io.savemat(file, variables, **options)
    return file.getvalue()


NOTES = np.array(["a note", "another"], dtype=object)
MATRIX = sp.csc_array(EDGES.astype(float))
PROBLEM = {"Problem": {"title": "small", "A": MATRIX, "notes": NOTES, "b": np.ones(3)}}


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize(
    "variables",
    [
        PROBLEM,
        {"M": MATRIX},
        {"dense": MATRIX.toarray(), "said": "so"},
        {"dense": EDGES.toarray().astype("i2")},
        {"M": MATRIX * (1 + 2j)},
    ],
    ids=["collection", "sparse", "dense", "integers", "complex"],
)
def test_matlab(tmp_path, variables, compressed):
    path = stored(tmp_path / "m.mat", mat(variables, do_compression=compressed))
    factor = 1 + 2j if "M" in variables and variables["M"].dtype.kind == "c" else 1
    same(io.read(path), MATRIX * factor)
    costs = io.read_costs(path)
    assert sp.issparse(costs) == ("dense" not in variables)


@pytest.mark.parametrize("form", [np.array, sp.csc_array], ids=["dense", "sparse"])
def test_a_matlab_matrix_without_rows(tmp_path, form):
    path = stored(tmp_path / "m.mat", mat({"M": form(np.zeros((0, 3)))}))
    assert io.read(path).shape == io.read_costs(path).shape == (0, 3)


@pytest.mark.parametrize("dtype", [float, "f4", "i2", "u8"])
@pytest.mark.parametrize("in_bytes", [False, True], ids=["in full", "in bytes"])
def test_a_dense_matlab_matrix_keeps_its_type(tmp_path, dtype, in_bytes):
    """Its file may store small whole numbers in a byte each."""
    small = np.array([[1, 2], [3, 250]], dtype)
    content = mat({"a": small})
    if in_bytes:
        content = with_values_in_bytes(content, small)
    costs = io.read_costs(stored(tmp_path / "m.mat", content))
    assert costs.dtype == small.dtype
    assert costs.tolist() == small.tolist()


def with_values_in_bytes(content, values):
    """The file of one variable as MATLAB writes it, which SciPy does not."""
    before = content[: content.rindex(values.tobytes("F")) - 8]  # without the type and the size
    data = struct.pack("<II", 2, values.size) + values.astype("u1").tobytes("F") + bytes(4)
    whole = before[136:] + data
    return before[:128] + struct.pack("<II", 14, len(whole)) + whole


def compressed_variable(content):
    packed = zlib.compress(content)
    return mat({})[:128] + struct.pack("<II", 15, len(packed)) + packed


def cut_variable():
    """A whole element with only part of what is compressed."""
    packed = zlib.compress(mat({"a": np.arange(81.0)})[128:])[:-20]
    return mat({})[:128] + struct.pack("<II", 15, len(packed)) + packed


def big_endian(kind, values):
    """A small matrix as a machine of the other byte order writes it."""
    element = lambda kind, data: struct.pack(">II", kind, len(data)) + data  # noqa: E731
    parts = element(6, struct.pack(">II", 6, 0)) + element(5, struct.pack(">ii", 2, 2))
    parts += struct.pack(">HH4s", 1, 1, b"a") + element(kind, values.tobytes("F"))
    return mat({})[:124] + b"\x01\x00MI" + element(14, parts)


@pytest.mark.parametrize(("kind", "dtype"), [(9, ">f8"), (5, ">i4"), (3, ">i2"), (1, "i1")])
def test_a_matlab_file_of_the_other_byte_order(tmp_path, kind, dtype):
    values = np.array([[1, -2], [30, 4]], dtype)
    path = stored(tmp_path / "m.mat", big_endian(kind, values))
    assert io.read_costs(path).tolist() == values.tolist()


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
def test_a_dense_complex_matlab_matrix(tmp_path, compressed):
    values = np.array([[1 + 2j, 0], [3, 4j]])
    path = stored(tmp_path / "m.mat", mat({"a": values}, do_compression=compressed))
    same(io.read(path), sp.csr_array(values))


FULL = sp.csc_array(np.ones((2, 2)))
"""Its four row numbers take 16 bytes, to which also three are padded."""
ROWS_OF_FULL = [struct.pack("<II", 5, size) for size in (16, 12)]

FLAGS = [struct.pack("<III", 6, 8, 5 | flags) for flags in (0, 0x800)]
"""Of a sparse matrix of real numbers, and of complex ones."""

WRONG_MATLAB = {
    "no imaginary part": (mat({"M": FULL}).replace(*FLAGS), "M is no matrix of numbers"),
    "fewer rows": (mat({"M": FULL}).replace(*ROWS_OF_FULL, 1), "M promises more entries than it"),
    "text": (b"%!PS\n" * 40, "is no MATLAB file"),
    "version 7.3": (b"\x89HDF\r\n\x1a\n" + b"\0" * 200, "save it with -v7"),
    "header alone": (mat({}), "has 0 matrices"),
    "two matrices": (mat({"a": np.ones((2, 2)), "b": np.ones((2, 2))}), "has 2 matrices"),
    "problem without A": (mat({"Problem": {"name": "x"}}), "has no matrix A"),
    "two problems": (mat({"Problem": np.array([(MATRIX,)] * 2, [("A", object)])}), "no matrix A"),
    "problem of text": (mat({"Problem": "A"}), "has no matrix A"),
    "three dimensions": (mat({"a": np.ones((2, 2, 2))}), "3 dimensions"),
    "cut": (mat({"a": np.ones((9, 9))})[:-9], "promises 696 bytes in 687"),
    "no size": (compressed_variable(struct.pack("<II", 14, 0)), "no size or no name"),
    "no name": (
        compressed_variable(
            struct.pack("<II", 14, 32) + FLAGS[0] + struct.pack("<IIIii", 0, 5, 8, 2, 3)
        ),
        "no size or no name",
    ),
    "not a matrix": (compressed_variable(struct.pack("<IIQ", 9, 8, 0)), "variable of type 9"),
    "cut while compressed": (
        compressed_variable(mat({"a": np.ones((9, 9))})[128:])[:-9],
        "promises .* bytes in|is cut off",
    ),
    "compressed, but cut before": (cut_variable(), "a compressed variable is cut off"),
    "negative size": (
        mat({"a": np.ones((2, 3))}).replace(struct.pack("<ii", 2, 3), struct.pack("<ii", -2, 3), 1),
        r"a matrix has the shape \(-2, 3\)",
    ),
    "one size": (
        mat({"a": np.ones((2, 3))}).replace(
            struct.pack("<IIii", 5, 8, 2, 3), struct.pack("<IIiI", 5, 4, 2, 0), 1
        ),
        r"a matrix has the shape \(2,\)",
    ),
    "part of a number": (
        mat({"a": np.ones((2, 3))}).replace(
            struct.pack("<II", 9, 48), struct.pack("<II", 9, 47), 1
        ),
        "has 47 bytes of float64",
    ),
    "bomb": (compressed_variable(bytes(2**22)), "more than max_bytes = 1048576 bytes"),
    "two halves of a bomb": (
        compressed_variable(mat({"a": np.ones(80_000)})[128:])
        + compressed_variable(mat({"b": np.ones(80_000)})[128:])[128:],
        "more than max_bytes = 1048576 bytes",
    ),
    "cells alone": (mat({"c": NOTES}), "has 0 matrices"),
    "A is text": (mat({"Problem": {"A": "x"}}), "A is no matrix of numbers"),
    "more values than its shape": (
        mat({"a": np.ones((2, 3))}).replace(struct.pack("<ii", 2, 3), struct.pack("<ii", 2, 2), 1),
        r"a promises shape \(2, 2\), but has 6 values",
    ),
}


@pytest.mark.parametrize(("content", "says"), WRONG_MATLAB.values(), ids=WRONG_MATLAB)
def test_malformed_matlab(tmp_path, content, says):
    path = stored(tmp_path / "m.mat", content)
    with pytest.raises(ValueError, match=says) as caught:
        io.read(path, max_bytes=2**20)
    assert str(caught.value).startswith(f"{path}: ")


def test_any_byte_of_a_matlab_file_may_be_wrong(tmp_path):
    content = mat(PROBLEM)
    random = np.random.default_rng(0)
    read = 0
    for at in random.integers(0, len(content), 300):
        broken = bytearray(content)
        broken[at] ^= 1 << random.integers(8)
        try:
            io.read(stored(tmp_path / "m.mat", bytes(broken)), max_bytes=2**20)
            read += 1
        except ValueError:
            pass
    assert 0 < read < 300


# Open files -------------------------------------------------------------------------------------


def zipped_matrix():
    file = bytesio.BytesIO()
    sp.save_npz(file, EDGES.tocsr())
    return file.getvalue()


@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, bz2.compress, lzma.compress],
    ids=["plain", "gzip", "bzip2", "xz"],
)
def test_an_open_file_says_its_format_itself(pack):
    for content in (
        b"0 1 7\n1 0 8\n2 3 9\n",
        b"row,column,value\n0,1,7\n1,0,8\n2,3,9\n",
        b"row;column;value\n0;1;7\n1;0;8\n2;3;9\n",
        npy(EDGES.toarray()),
        mat({"M": MATRIX}),
        zipped_matrix(),
    ):
        same(io.read(bytesio.BytesIO(pack(content))), EDGES)
        assert (io.read_costs(bytesio.BytesIO(pack(content))) != EDGES.tocsr()).sum() == 0
    assert io.read(bytesio.BytesIO(pack(SMALL))).shape == (2, 3)
    table = b"# four costs a row\n4,1,3,0\n2,0,5,0\n"  # as in a file that is called .csv
    assert io.read_costs(bytesio.BytesIO(pack(table))).tolist() == [[4, 1, 3, 0], [2, 0, 5, 0]]


def test_an_open_file_is_read_up_to_the_limit():
    with pytest.raises(ValueError, match="the open file: more than max_bytes = 1000 bytes"):
        io.read(bytesio.BytesIO(gzip.compress(b"0 1\n" * 1000)), max_bytes=1000)
    with pytest.raises(ValueError, match="the open file: it is empty"):
        io.read(bytesio.BytesIO())


def test_an_open_file_is_named(tmp_path):
    path = stored(tmp_path / "wrong.txt", "0 1\n0 x\n")
    with (
        open(path, "rb") as file,
        pytest.raises(ValueError, match=r"wrong\.txt: line 2, field 2: 'x' is no"),
    ):
        io.read(file)
