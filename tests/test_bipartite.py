"""What a `BipartiteGraph` does: both directions of its edges, transposition, places of pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gpumatch import BipartiteGraph
from tests.bipartite_inputs import COL_INDPTR, DENSE, INDICES, names, networkx_graph


@st.composite
def edge_lists(draw):
    shape = draw(st.tuples(st.integers(1, 8), st.integers(1, 8)))
    ends = [st.integers(0, n - 1) for n in shape]
    return shape, draw(st.lists(st.tuples(*ends), max_size=40))


@given(edge_lists(), st.sampled_from(["csr", "csc", "coo", "dense"]))
def test_both_directions_hold_the_same_edges(shape_and_edges, form):
    shape, edges = shape_and_edges
    rows, cols = np.array(edges, int).reshape(-1, 2).T
    dense = np.zeros(shape, bool)
    dense[rows, cols] = True
    source = dense if form == "dense" else sp.coo_array(dense).asformat(form)
    for graph in (BipartiteGraph(source), BipartiteGraph.from_edges(rows, cols, shape)):
        expected = sp.csr_array(dense)
        np.testing.assert_array_equal(graph.indptr, expected.indptr)
        np.testing.assert_array_equal(graph.indices, expected.indices)
        expected = sp.csc_array(dense)
        np.testing.assert_array_equal(graph.col_indptr, expected.indptr)
        np.testing.assert_array_equal(graph.col_indices, expected.indices)
        assert sorted(zip(*(end.tolist() for end in graph.edges()))) == sorted(set(edges))


@given(edge_lists())
def test_rows_of_csr_may_hold_columns_in_any_order_and_repeated(shape_and_edges):
    (nrows, ncols), edges = shape_and_edges
    by_row = [[col for row, col in edges if row == r] for r in range(nrows)]
    indptr = np.cumsum([0, *map(len, by_row)])
    indices = np.array([col for cols in by_row for col in cols], int)
    graph = BipartiteGraph((indptr, indices, (nrows, ncols)))
    found = np.split(graph.indices, graph.indptr[1:-1])
    assert [cols.tolist() for cols in found] == [sorted(set(cols)) for cols in by_row]


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_transpose_shares_the_arrays(form):
    graph = BipartiteGraph(sp.csr_array(DENSE).asformat(form))
    turned = graph.transpose()
    assert turned.shape == (4, 3)
    assert turned.indptr.tolist() == COL_INDPTR
    assert turned.col_indices.tolist() == INDICES
    kept = (
        (graph.indices, turned.col_indices)
        if form == "csr"
        else (graph.col_indices, turned.indices)
    )
    assert np.shares_memory(*kept)


def test_transpose_exchanges_the_labels():
    turned = BipartiteGraph(networkx_graph()).transpose()
    assert (turned.row_labels, turned.col_labels) == (names(4, "c"), names(3, "r"))


@pytest.mark.parametrize(("form", "has_rows"), [("csr", True), ("csc", False)])
def test_the_other_direction_is_made_when_asked_for_and_kept(form, has_rows):
    graph = BipartiteGraph(sp.csr_array(DENSE).asformat(form))
    assert graph.has_rows == has_rows
    before = graph.nbytes
    assert graph.indices is graph.indices
    assert graph.col_indices is graph.col_indices
    assert graph.has_rows
    assert before < graph.nbytes == 4 * (4 + 4 + 5 + 4)


def test_on_the_host():
    graph = BipartiteGraph(DENSE)
    assert graph.to_host() is graph
    assert (graph.on_device, graph.xp) == (False, np)
    assert repr(graph) == "BipartiteGraph(3 rows, 4 columns, 4 edges, host)"


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.6, 1.0])
def test_pairs_are_found_among_the_edges(form, density):
    rng = np.random.default_rng(7)
    marks = rng.random((9, 14)) < density
    graph = BipartiteGraph(sp.csr_array(marks).asformat(form))
    rows, cols = (part.ravel() for part in np.indices(marks.shape))
    places, are_edges = graph.find(rows, cols)
    assert np.array_equal(are_edges, marks.ravel())
    of_rows, of_cols = graph.edges()
    assert np.array_equal(of_rows[places[are_edges]], rows[are_edges])
    assert np.array_equal(of_cols[places[are_edges]], cols[are_edges])
    assert [part.size for part in graph.find(rows[:0], cols[:0])] == [0, 0]
