"""The checker catches every kind of wrong result, and says what breaks it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array

import gpumatch as gm
from gpumatch.certificates import base
from tests.cases import SMALL

# Rows 0..3, columns 0..2: a maximum matching has 3 edges, (0, 0), (1, 1), (2, 2).
GRAPH = csr_array([[1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]])


class Claim(NamedTuple):
    """A result as anybody may hand it in; right unless told otherwise."""

    row_to_col: object = (0, 1, 2, -1)
    col_to_row: object = (0, 1, 2)
    cover: tuple = ((), (0, 1, 2))

    def vertex_cover(self):
        return self.cover


def claim(**wrong):
    fields = Claim(**wrong)
    mates = (np.array(part) for part in fields[:2])
    return Claim(*mates, tuple(np.array(part, int) for part in fields.cover))


def test_a_right_claim_is_certified():
    certificate = gm.verify(GRAPH, claim())
    assert certificate == gm.Certificate("matching", size=3, bound=3, edges=5)
    assert str(certificate) == (
        "maximum: a matching of 3 edges and a cover of 3 vertices, checked on 5 edges"
    )


WRONG = {
    "pair that is no edge": (
        {"row_to_col": (2, 1, -1, -1), "col_to_row": (-1, 1, 0)},
        "row 0 is matched to column 2, but that is no edge",
    ),
    "column used twice": (
        {"row_to_col": (0, 1, 2, 2)},
        "row 3 is matched to column 2, which is matched to row 2",
    ),
    "row used twice": (
        {"row_to_col": (0, -1, 2, -1), "col_to_row": (0, 0, 2)},
        "column 1 is matched to row 0, which is matched to column 0",
    ),
    "mate unaware": (
        {"col_to_row": (0, -1, 2)},
        "row 1 is matched to column 1, which is unmatched",
    ),
    "mate unaware, of a column": (
        {"row_to_col": (0, 1, -1, -1)},
        "column 2 is matched to row 2, which is unmatched",
    ),
    "column that is none": ({"row_to_col": (0, 1, 3, -1)}, "row 2 is matched to column 3, outside"),
    "row that is none": ({"col_to_row": (0, 4, 2)}, "column 1 is matched to row 4, outside"),
    "mark left behind": ({"row_to_col": (0, 1, 2, -2)}, "row 3 is matched to column -2, outside"),
    "too few rows": (
        {"row_to_col": (0, 1, 2)},
        r"rows must be 4 integers; got int64 of shape \(3,",
    ),
    "too many columns": ({"col_to_row": (0, 1, 2, -1)}, "columns must be 3 integers"),
    "floats": ({"row_to_col": (0.0, 1, 2, -1)}, "rows must be 4 integers; got float64"),
    "bools": ({"col_to_row": (True, True, False)}, "columns must be 3 integers; got bool"),
    "two dimensions": ({"col_to_row": ((0, 1, 2),)}, r"of shape \(1, 3\)"),
    "cover misses an edge": (
        {"cover": ((0,), (0, 2))},
        "the cover misses the edge of row 1 and column 1",
    ),
    "cover too large": (
        {"cover": ((0, 1, 2, 3), ())},
        "the matching has 3 edges, but the cover has 4 vertices",
    ),
    "cover's row that is none": ({"cover": ((4,), (0, 1, 2))}, "the cover names row 4 of 4"),
    "cover's column that is none": ({"cover": ((), (0, 1, -1))}, "names column -1 of 3"),
    "not maximum": (
        {"row_to_col": (1, -1, 2, -1), "col_to_row": (-1, 0, 2), "cover": ((0, 1), (2,))},
        "the matching has 2 edges, but the cover has 3 vertices",
    ),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("form", [csr_array, csc_array])
def test_a_wrong_claim_is_refused_and_says_where(form, wrong, message):
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify(form(GRAPH), claim(**wrong))


@pytest.mark.parametrize(
    "cover",
    [
        (np.array([0.5]), np.array([])),
        (np.ones(4, bool), np.array([])),
        (np.array([[0, 1]]), np.array([])),
    ],
    ids=["float", "bool", "two dimensions"],
)
def test_a_cover_is_of_vertex_numbers(cover):
    with pytest.raises(gm.CertificateError, match="the cover's rows must be a list of integers"):
        gm.verify(GRAPH, claim()._replace(cover=cover))


def test_vertices_that_a_cover_names_twice_count_once():
    assert gm.verify(GRAPH, claim(cover=((), (0, 1, 2, 2)))).bound == 3


def test_a_result_that_cannot_give_a_cover_is_refused():
    early = gm.maximum_matching(GRAPH, init="none", time_limit=0)
    with pytest.raises(gm.CertificateError, match="not maximum: an augmenting path reaches"):
        gm.verify(GRAPH, early)


@pytest.mark.parametrize("result", [None, {}, [0, 1]])
def test_what_is_no_result_is_a_type_error(result):
    with pytest.raises(
        TypeError,
        match=r"result must be BoundedMatching, GeneralWeightMatching, .* or Matching; got ",
    ):
        gm.verify(np.eye(2), result)


def test_a_result_of_another_graph_is_refused():
    m = gm.maximum_matching(GRAPH)
    with pytest.raises(gm.CertificateError, match="row 0 is matched to column 0, but that is no"):
        gm.verify(csr_array([[0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]), m)


# -- mutations -------------------------------------------------------------------------------------


CASES_WITH_EDGES = st.sampled_from([case for case in SMALL if case.size])


@given(data=st.data())
def test_any_change_to_the_mates_is_caught(data):
    case = data.draw(CASES_WITH_EDGES)
    m = gm.maximum_matching(case.graph, seed=1)
    parts = [m.row_to_col, m.col_to_row]
    side = data.draw(st.integers(0, 1))
    vertex = data.draw(st.integers(0, parts[side].size - 1))
    mate = data.draw(st.integers(-2, parts[1 - side].size))
    assume(parts[side][vertex] != mate)
    parts[side] = parts[side].copy()
    parts[side][vertex] = mate
    with pytest.raises(gm.CertificateError):
        gm.verify(case.graph, Claim(*parts, m.vertex_cover()))


@given(data=st.data())
def test_a_pair_taken_out_is_caught(data):
    case = data.draw(CASES_WITH_EDGES)
    m = gm.maximum_matching(case.graph)
    row, col = data.draw(st.sampled_from(m.edges().tolist()))
    row_to_col, col_to_row = m.row_to_col.copy(), m.col_to_row.copy()
    row_to_col[row] = col_to_row[col] = -1
    with pytest.raises(gm.CertificateError, match="no proof"):
        gm.verify(case.graph, Claim(row_to_col, col_to_row, m.vertex_cover()))


@given(data=st.data())
def test_any_change_to_the_cover_is_caught(data):
    """A minimum cover with a vertex more is too large; with one less it misses an edge."""
    case = data.draw(CASES_WITH_EDGES)
    m = gm.maximum_matching(case.graph)
    cover = list(m.vertex_cover())
    side = data.draw(st.integers(0, 1))
    vertex = data.draw(st.integers(0, case.graph.shape[side] - 1))
    cover[side] = np.setxor1d(cover[side], [vertex])
    with pytest.raises(gm.CertificateError):
        gm.verify(case.graph, Claim(m.row_to_col, m.col_to_row, tuple(cover)))


@given(data=st.data())
def test_exchanged_mates_are_caught_unless_they_are_edges_too(data):
    case = data.draw(st.sampled_from([case for case in SMALL if case.size > 1]))
    m = gm.maximum_matching(case.graph)
    pairs = st.sampled_from(m.edges().tolist())
    (row, col), (other_row, other_col) = data.draw(st.lists(pairs, min_size=2, max_size=2))
    row_to_col, col_to_row = m.row_to_col.copy(), m.col_to_row.copy()
    row_to_col[[row, other_row]] = other_col, col
    col_to_row[[other_col, col]] = row, other_row
    exchanged = Claim(row_to_col, col_to_row, m.vertex_cover())
    if case.graph[row, other_col] and case.graph[other_row, col]:
        assert gm.verify(case.graph, exchanged).size == case.size
    else:
        with pytest.raises(gm.CertificateError, match="but that is no edge"):
            gm.verify(case.graph, exchanged)


# -- tiles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tile", [1, 2, 3, 7, 10**6])
@pytest.mark.parametrize("form", [csr_array, csc_array])
def test_tiles_cover_every_edge_once(tile, form, monkeypatch):
    monkeypatch.setattr(base, "TILE", tile)
    for case in SMALL:
        if case.graph.nnz > 200:
            continue
        tiles = list(base.edge_tiles(gm.BipartiteGraph(form(case.graph))))
        pairs = [pair for rows, cols in tiles for pair in zip(rows.tolist(), cols.tolist())]
        assert sorted(pairs) == [tuple(pair) for pair in np.argwhere(case.graph.toarray()).tolist()]
        assert all(0 < rows.size <= tile for rows, _ in tiles)


@pytest.mark.parametrize("number", [np.int8, np.uint8, np.uint64, np.int64])
def test_mates_of_small_and_unsigned_types_do_not_wrap(number):
    """Rows 0 to 299 at columns 0 to 299; in 8 bits, row 256 seems to be row 0."""
    n = 300
    mates = np.arange(n).astype(number)
    right = mates.tolist() == list(range(n))
    cover = np.arange(n), np.array([], int)
    claimed = Claim(mates, mates, cover)
    if right:
        assert gm.verify(np.eye(n), claimed).size == n
        return
    with pytest.raises(gm.CertificateError, match="is matched to"):
        gm.verify(np.eye(n), claimed)


def test_a_number_that_wraps_to_none_is_outside():
    mates = np.array([0, 2**64 - 1], np.uint64)
    with pytest.raises(
        gm.CertificateError, match="row 1 is matched to column 18446744073709551615"
    ):
        gm.verify(np.eye(2), Claim(mates, mates, (np.arange(2), np.array([], int))))


def test_a_vertex_that_a_cover_names_twice_counts_once():
    with pytest.raises(gm.CertificateError, match="misses the edge of row 1"):
        gm.verify(GRAPH, claim(cover=((0, 0), (2,))))


def test_a_size_that_is_not_that_of_the_mates_is_refused():
    m = gm.maximum_matching(GRAPH)
    m.size = 2
    with pytest.raises(gm.CertificateError, match="there are 3 pairs, but the size is 2"):
        gm.verify(GRAPH, m)


def test_bounds_are_for_assignments():
    with pytest.raises(TypeError, match=r"optimal is for .*Assignment or EdgeSet; got Matching"):
        gm.verify(GRAPH, claim(), optimal=False)
    with pytest.raises(TypeError, match="sizes is for RankedBatch, BatchTransport or Batch"):
        gm.verify(GRAPH, claim(), sizes=(4, 3))
