"""Lists of edges: headers, labels, separators, quotes, pairs that are named twice."""

from __future__ import annotations

import csv
import io as bytesio
import re
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import gpumatch as gm
from gpumatch import io
from gpumatch.io import edges as module
from gpumatch.io.edges import Header
from gpumatch.io.fields import Text, as_numbers, is_number
from tests.io.stored_files import UNHURRIED, same, stored

READERS = pytest.mark.parametrize("read", [io.read, io.read_costs])


def edges_of(matrix):
    """Row, column and value of each entry, in labels where there are some."""
    entries = matrix.tocoo()
    rows, cols = entries.row.tolist(), entries.col.tolist()
    if isinstance(matrix, io.LabelledArray):
        rows = [matrix.row_labels[row] for row in rows]
        cols = [matrix.col_labels[col] for col in cols]
    return sorted(zip(rows, cols, entries.data.tolist()))


# Headers ----------------------------------------------------------------------------------------

INDICES = ["row,col,val", "i,j,data", "ROW,Column,Score", '"i";"j";"w"', "row\tcolumn\tcost"]
LABELS = [
    *("source,target,similarity", "left,right,score", "u,v,weight", "from,to,distance"),
    *("src,dst,price", "source;target;value", "worker,task,cost", "source\ttarget\tanything"),
    *("row,target,val", "source,column,w", "user,item,rating"),
]


@READERS
@pytest.mark.parametrize("header", INDICES + LABELS)
def test_every_header_keeps_its_values(tmp_path, read, header):
    mark = next(mark for mark in ",;\t" if mark in header)
    lines = [header, "900000001,7,2.5", "5,900000001,1", "5,7,0"]
    if header in INDICES:
        lines[1:3] = "9,7,2.5", "5,9,1"
    text = "\n".join([header, *(line.replace(",", mark) for line in lines[1:])])
    how = {"format": "list"} if header == "user,item,rating" else {}
    matrix = read(stored(tmp_path / "e.csv", text), **how)
    if header in INDICES:
        assert matrix.shape == (10, 10)
        assert edges_of(matrix) == [(5, 7, 0), (5, 9, 1), (9, 7, 2.5)]
    else:
        assert matrix.shape == (2, 2)
        assert (matrix.row_labels, matrix.col_labels) == (["900000001", "5"], ["7", "900000001"])
        assert edges_of(matrix) == [("5", "7", 0), ("5", "900000001", 1), ("900000001", "7", 2.5)]


@pytest.mark.parametrize(
    ("header", "row", "col", "value"),
    [
        ("weight,name,to,from", 3, 2, 0),
        ("id,source,target", 1, 2, None),
        (",source,target", 1, 2, None),
        ("source,target,id", 0, 1, None),
        ("source,target,", 0, 1, None),
        ("source,target,,cost", 0, 1, 3),
        ("source,target,kind,note", 0, 1, None),
        ("source,kind,target,cost", 0, 2, 3),
        ("cost,worker,task", 1, 2, 0),
        ("to,origin", 1, 0, None),
        ("origin,to,km", 0, 1, 2),
    ],
)
def test_where_a_header_puts_the_fields(header, row, col, value):
    if header == "origin,to,km":
        with pytest.raises(ValueError, match="the header names 'origin, to, km', expected one of"):
            Header.of(Text.of(header.encode(), ".csv"))
        return
    found = Header.of(Text.of(header.encode(), ".csv"))
    assert (found.row, found.col, found.value) == (row, col, value)
    assert found.lines == 1


@READERS
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("source,target,cost\n", "has no edges"),
        ("row,col\n# none\n\n", "has no edges"),
        ("source,target,cost,weight\na,b,1,2\n", "line 1: .* the value twice, by 'cost' and 'w"),
        ("source,from,to\na,b,1\n", "line 1: the header names the row twice, by 'source' and 'fr"),
        ("id,name,size,age\n1,2,3,4\n", "line 1: the header names 'id, name"),
        ("source,target,cost\na,b,1\nc,d\n", "line 3 has 2 fields, but line 1 has 3"),
        ("source,target,cost\na,b,1\nc,d,2,3\n", "line 3 has 4 fields, but line 1 has 3"),
        ("row,col,cost,note\n0,1,1,x\n0,2,3,y,z\n", "line 3 has 5 fields, but line 1 has 4"),
        ("source,target,cost\na,b,1\n,d,2\n", "line 3, field 1: '' is empty"),
        ("source,target,cost\na,b,1\nc,d,x\n", "line 3, field 3: 'x' is no number"),
        ("source,target,cost\na,b,1\nc,d,\n", "line 3, field 3: '' is no number"),
        ("source,target,cost\na,b,1_0\n", "line 2, field 3: '1_0' is no number"),
        ("source,target,cost\na,b,1.5D0\n", "line 2, field 3: '1.5D0' is no number"),
        ("source,target,km\na,b,far\nc,d,2\n", "line 2, field 3: 'far' is no number"),
        ("row,col,val\n0,1,2\n0.5,1,2\n", "line 3, field 1: '0.5' is no integer from 0"),
        ("row,col,val\n0,1,2\n-1,1,2\n", "line 3, field 1: -1 is no integer from 0"),
        ("row,col,val\n0,1,2\nA,1,2\n", "line 3, field 1: 'A' is no number; above labels, put"),
        ("ann,bob\ncat,dan\n", "line 1: 'ann, bob' may be a header or an edge"),
        ("ann,bob,n/a\ncat,dan,5\n", "line 1, field 3: 'n/a' is no number"),
        ("A-1,B-1,0.5\nA-2,3,0.5\n", "line 1, field 1: 'A-1' is no number; above labels, put"),
        ('source,target,cost\n"a"x,b,1\n', "line 2: ',' expected after"),
        ('source,target,cost\n"a,b,1\n', "line 2: unexpected end of data"),
        ("source,target,cost\n\xffa,b,1\n", "not UTF-8"),
        ("source,target,cost\na,b\0,1\n", "NUL bytes"),
        ("a;b,c\n", "line 1 has commas and semicolons"),
        ('source,target,cost\n"' + "x" * 200_000 + '",b,1\n', "line 2: field larger than"),
    ],
)
def test_what_is_wrong_with_a_list_is_said_with_its_line(tmp_path, read, text, says):
    path = stored(tmp_path / "e.csv", text.encode("latin-1"))
    with pytest.raises(ValueError, match=says) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_words_under_an_unknown_name_are_no_values(tmp_path):
    path = stored(tmp_path / "e.csv", "source,target,kind\na,b,friend\nb,c,foe\n")
    assert edges_of(io.read(path)) == [("a", "b", 1), ("b", "c", 1)]
    with pytest.raises(ValueError, match="its lines have no value: expected row, column and cost"):
        io.read_costs(path)


# Three numbers in each line ---------------------------------------------------------------------


@READERS
@pytest.mark.parametrize("text", ["0,1,7\n1,0,8\n", "0;1;.5\n1;0;8\n", "x,y,z\n0,1,7\n"])
def test_three_numbers_without_a_header_mean_two_things(tmp_path, read, text):
    for source in (stored(tmp_path / "e.csv", text), bytesio.BytesIO(text.encode())):
        with pytest.raises(ValueError, match="may be row, column and value, or a row of a table"):
            read(source)
    assert read(tmp_path / "e.csv", format="list").nnz == text.count("\n") - text.count("x")


def test_the_format_says_which(tmp_path):
    path = stored(tmp_path / "e.csv", "0,1,7\n1,0,8\n")
    for read in (io.read, io.read_costs):
        same(read(path, format="list"), sp.coo_array(([7, 8], ([0, 1], [1, 0]))))
    assert io.read_costs(path, format="table").tolist() == [[0, 1, 7], [1, 0, 8]]
    same(io.read(path, format="table"), sp.coo_array([[0, 1, 7], [1, 0, 8]]))
    blanks = stored(tmp_path / "e.txt", "0 1 7\n1 0 8\n")  # never a table by itself
    same(io.read_costs(blanks), sp.coo_array(([7, 8], ([0, 1], [1, 0]))))
    assert io.read_costs(blanks, format="table").tolist() == [[0, 1, 7], [1, 0, 8]]


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("0,1\n1,0\n", [[0, 1], [1, 0]]),
        ("0.5,1,7\n1,0,8\n", [[0.5, 1, 7], [1, 0, 8]]),
        ("-1,1,7\n1,0,8\n", [[-1, 1, 7], [1, 0, 8]]),
        ("1;2;3;4\n", [[1, 2, 3, 4]]),
        ("1\t2\n3\t4\n", [[1, 2], [3, 4]]),
        ('"1","2"\n3,"4"\n', [[1, 2], [3, 4]]),
        ("inf,1,7\n1,inf,8\n", [[np.inf, 1, 7], [1, np.inf, 8]]),
    ],
)
def test_other_tables_are_tables(tmp_path, text, table):
    assert io.read_costs(stored(tmp_path / "e.csv", text)).tolist() == table


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("format", "matrix", "'auto', 'list', 'table'; got 'matrix'"),
        ("duplicates", "mean", "got 'm"),
    ],
)
@READERS
def test_unknown_choices_are_refused(tmp_path, read, name, value, says):
    with pytest.raises(ValueError, match=f"^{name} must be one of .*{says}"):
        read(tmp_path / "e.csv", **{name: value})


@READERS
def test_a_format_is_for_text_only(tmp_path, read):
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(np.eye(2)))
    with pytest.raises(ValueError, match=r"format='list' is for \.txt, "):
        read(tmp_path / "a.npz", format="list")


# Labels -----------------------------------------------------------------------------------------


@READERS
@pytest.mark.parametrize(
    ("name", "text", "edges"),
    [
        (
            "e.csv",
            "A-001,B-17,0.92\nA-002,B-17,0.5\n",
            [("A-001", "B-17", 0.92), ("A-002", "B-17", 0.5)],
        ),
        ("e.txt", "A-001 B-17 0.92\n", [("A-001", "B-17", 0.92)]),
        ("e.tsv", "New York\tSão Paulo\t3\n", [("New York", "São Paulo", 3)]),
        ("e.csv", "source;target;cost\na,1;b;3\n", [("a,1", "b", 3)]),
        ("e.csv", 'source,target,cost\n"Smith, ""J""",b#2,3\n', [('Smith, "J"', "b#2", 3)]),
        ("e.csv", "source,target,cost\n x , y #1 , 3\n# no,edge,1\n", [("x", "y #1", 3)]),
        ("e.csv", 'source,target,cost\n"#1",%2,3\n', [("#1", "%2", 3)]),
        (
            "e.csv",
            "source,target,cost\r\n007,7,3\r\n7,007,4\r\n",
            [("007", "7", 3), ("7", "007", 4)],
        ),
        ("e.csv", "\ufeffsource,target,cost\nå,é,3\n", [("å", "é", 3)]),
        ("e.csv", "source,target,cost\na\xa0b,\u2028,3\n", [("a\xa0b", "\u2028", 3)]),
        ("e.csv", "source,target,cost\n1e3,1.0,3\n", [("1e3", "1.0", 3)]),
        ("e.csv", f"source,target,cost\na,b,{2**63}\n", [("a", "b", 2**63)]),
    ],
)
def test_labels_are_kept(tmp_path, read, name, text, edges):
    matrix = read(stored(tmp_path / name, text))
    assert edges_of(matrix) == edges


def test_results_are_in_labels(tmp_path):
    text = "worker,task,cost\nann,mow,3\nann,cook,1\nbob,cook,2\ncy,cook,9\n"
    path = stored(tmp_path / "e.csv", text)
    m = gm.maximum_matching(io.read(path))
    assert {row for row, _ in m.edges()} < {"ann", "bob", "cy"}
    assert m.vertex_cover() == (["ann"], ["cook"])
    a = gm.assign(io.read_costs(path))
    assert (a.objective, a.edges()) == (5, [("ann", "mow"), ("bob", "cook")])
    assert a.unmatched_rows == ["cy"]
    assert gm.verify(io.read_costs(path), a).size == 2
    with pytest.raises(gm.InfeasibleError, match="'a', 'b' to 'x'"):
        gm.assign(io.read_costs(stored(path, "u,v,cost\na,x,3\nb,x,1\nc,y,1\nc,z,1\n")))


def test_what_is_computed_from_a_matrix_has_no_labels(tmp_path):
    matrix = io.read(stored(tmp_path / "e.csv", "source,target\na,b\nb,c\n"))
    for other in (matrix[:1], matrix.T, matrix @ matrix, matrix + matrix, abs(matrix)):
        assert getattr(other, "row_labels", None) is None


LABEL = (
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=6)
    .map(lambda text: text.strip(" \t"))
    .filter(bool)
)


@UNHURRIED
@given(
    st.dictionaries(
        st.tuples(LABEL, LABEL), st.integers() | st.floats(allow_nan=False), min_size=1
    ),
    st.sampled_from([",", ";", "\t"]),
)
def test_whatever_the_csv_module_writes_is_read_back(edges, mark):
    text = bytesio.StringIO()
    writer = csv.writer(text, delimiter=mark, quoting=csv.QUOTE_ALL)
    writer.writerow(["source", "target", "cost"])
    writer.writerows([*pair, value] for pair, value in edges.items())
    path = "e.csv" if mark != "\t" else "e.tsv"
    matrix = read_bytes(text.getvalue().encode(), path)
    values = as_numbers([str(value) for value in edges.values()]).tolist()
    assert edges_of(matrix) == sorted((*pair, value) for pair, value in zip(edges, values))


def read_bytes(content, name):
    """What a file of this name with this content is read as."""
    file = bytesio.BytesIO(content)
    if name.endswith(".csv"):
        return io.read(file, format="list", max_bytes=2**24)
    with tempfile.TemporaryDirectory() as folder:
        return io.read(stored(Path(folder, name), content))


@UNHURRIED
@given(
    st.dictionaries(LABEL, LABEL, min_size=1).map(
        lambda pairs: {row: col for col, row in {col: row for row, col in pairs.items()}.items()}
    )
)
def test_matchings_of_labels_come_back(pairs):
    rows, cols = list(pairs), sorted(pairs.values())
    row_to_col = np.array([cols.index(pairs[row]) for row in rows])
    shape = len(rows), len(cols)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("m.csv", "m.npz", "m.npy", "m.mtx"):
            path = Path(folder, name)
            io.write_matching(path, row_to_col, shape, labels=(rows, cols))
            found = io.read_matching(path, shape, labels=(rows, cols))
            assert found.tolist() == row_to_col.tolist()
        with np.load(Path(folder, "m.npz")) as arrays:
            assert arrays["row_labels"].shape == (len(rows),)


def test_a_result_is_written_with_the_labels_of_its_input(tmp_path):
    scores = io.LabelledArray.from_pairs(["a", "a", "b"], ["x", "y", "x"], [0.75, 0.5, 0.625])
    a = gm.assign(scores, maximize=True)
    io.write_matching(tmp_path / "links.csv", a)
    assert (tmp_path / "links.csv").read_text() == "source,target,cost\na,y,0.5\nb,x,0.625\n"
    m = gm.maximum_matching(scores)
    G = pytest.importorskip("networkx").Graph([((0, 1), "b"), ("b", 3.5)])
    for name in ("m.csv", "m.npz"):
        path = tmp_path / name
        io.write_matching(path, m)
        rows, cols = ["a", "b"], ["x", "y"]
        assert (io.read_matching(path, (2, 2), labels=(rows, cols)) == m.row_to_col).all()
        mates = gm.general.maximum_matching(G)
        io.write_matching(path, mates)
        nodes = [*map(str, G)]
        found = io.read_matching(path, (3, 3), labels=(nodes, nodes))
        assert (found >= 0).sum() == (1 if name == "m.csv" else 2)


def test_a_matching_of_other_labels(tmp_path):
    path = stored(tmp_path / "m.csv", "source,target\na,x\nzed,y\n")
    with pytest.raises(ValueError, match="names 'zed', which is no row of the graph"):
        io.read_matching(path, (2, 2), labels=(["a", "b"], ["x", "y"]))
    with pytest.raises(ValueError, match="has labels, but rows and columns of the graph have none"):
        io.read_matching(path, (2, 2))


# Pairs that are named twice ---------------------------------------------------------------------

TWICE = "source,target,score\nA,B,.9\n# again\nC,B,1\nA,B,.5\nA,B,.7\n"


@READERS
@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("e.csv", TWICE, "line 5 names the pair A, B of line 2 again: duplicates"),
        (
            "e.csv",
            "row,col,val\n3,4,1\n\n# x\n3,4,2\n",
            "line 5 names the pair 3, 4 of line 2 again",
        ),
        ("e.txt", "# x\n3 4 1\n3 4 2 # y\n", "line 3 names the pair 3, 4 of line 2 again"),
        ("e.txt", "3 4 1.5\n0 0 0\n3 4 1.5\n", "line 3 names the pair 3, 4 of line 1 again"),
        ("e.tsv", "A\tB\t1\nA\tB\t1\n", "line 2 names the pair A, B of line 1 again"),
    ],
)
def test_a_pair_with_two_values_is_an_error(tmp_path, read, name, text, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        read(stored(tmp_path / name, text))


@READERS
@pytest.mark.parametrize(
    ("how", "value"), [("sum", 2.1), ("min", 0.5), ("max", 0.9), ("last", 0.7)]
)
def test_what_becomes_of_two_values(tmp_path, read, how, value):
    matrix = read(stored(tmp_path / "e.csv", TWICE), duplicates=how)
    assert edges_of(matrix) == [("A", "B", pytest.approx(value)), ("C", "B", 1)]


@pytest.mark.parametrize(("how", "value"), [("sum", 12), ("min", 3), ("max", 5), ("last", 4)])
@pytest.mark.parametrize("end", ["mtx", "npz"])
def test_other_formats_sum_unless_told(tmp_path, how, value, end):
    path = tmp_path / f"a.{end}"
    entries = sp.coo_array((np.array([5, 3, 4, 1], np.int8), ([0, 0, 0, 1], [1, 1, 1, 0])))
    lines = "".join(f"{i + 1} {j + 1} {v}\n" for i, j, v in zip(*entries.coords, entries.data))
    if end == "npz":
        sp.save_npz(path, entries)
    else:
        stored(path, "%%MatrixMarket matrix coordinate integer general\n2 2 4\n" + lines)
    for read in (io.read, io.read_costs):
        assert read(path, duplicates=how).toarray().tolist() == [[0, value], [1, 0]]
        assert read(path).toarray().tolist() == [[0, 12], [1, 0]]
        with pytest.raises(ValueError, match="entry 2 has the row and the column of entry 1"):
            read(path, duplicates="error")


def test_edges_without_values_count_once(tmp_path):
    path = stored(tmp_path / "e.txt", "0 1\n1 0\n0 1\n")
    assert edges_of(io.read(path)) == [(0, 1, 1), (1, 0, 1)]
    assert edges_of(io.read(path, duplicates="sum")) == [(0, 1, 2), (1, 0, 1)]
    with pytest.raises(ValueError, match="line 3 names the pair 0, 1 of line 1 again"):
        io.read(path, duplicates="error")


def test_complex_entries_have_no_order(tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.coo_array(([1j, 2], ([0, 0], [0, 0]))))
    assert io.read(tmp_path / "a.npz").toarray().tolist() == [[2 + 1j]]
    with pytest.raises(ValueError, match="duplicates='min' has no meaning for complex"):
        io.read(tmp_path / "a.npz", duplicates="min")


# Two readers ------------------------------------------------------------------------------------

FIELD = st.one_of(
    st.integers(0, 9).map(str),
    st.integers(0, 9).map(str),
    st.text(alphabet="0123456789+-.eEinfa_x# \x0b\xa0", max_size=5),
    st.floats().map(repr),
    st.integers(2**63 - 1, 2**64).map(str),
)


@UNHURRIED
@given(
    st.lists(st.tuples(FIELD, FIELD, FIELD), min_size=1, max_size=4),
    st.sampled_from([",", ";", "\t", " ", " , "]),
    st.sampled_from(["", "row,col,val\n", "i j w\n"]),
)
def test_the_fast_reader_takes_only_what_the_careful_one_takes(lines, mark, header):
    """With and without it, the same is read, or the same is said."""
    content = header.replace(",", mark) + "\n".join(map(mark.join, lines))

    def outcome():
        try:
            found = module.parse_edges(text := Text.of(content.encode(), ".txt"), Header.of(text))
        except ValueError as error:
            return re.sub("'|from 0.*", "", str(error))
        values = None if found.values is None else (found.values.dtype, found.values.tolist())
        return found.rows.tolist(), found.cols.tolist(), found.row_labels, repr(values)

    at_once = outcome()
    with mock.patch.object(module, "_from_numbers", return_value=None):
        assert outcome() == at_once


@given(st.text(alphabet="0123456789+-.eEinfaty_xD \x0b٣", max_size=8))
def test_numbers_are_those_of_float_without_underscores(field):
    def by_float():
        try:
            float(field)
        except ValueError:
            return False
        return field.isascii() and "_" not in field and field == field.strip()

    assert is_number(field) == by_float()


@UNHURRIED
@given(
    st.binary(max_size=80) | st.text(alphabet='0123,;\t\n"#% ab.-einf', max_size=60).map(str.encode)
)
def test_any_bytes_are_edges_or_a_value_error(content):
    for read in (io.read, io.read_costs):
        for how in ({}, {"format": "list", "duplicates": "last"}, {"format": "table"}):
            try:
                matrix = read(bytesio.BytesIO(content), max_bytes=2**20, **how)
            except ValueError:
                continue
            assert matrix.ndim == 2
