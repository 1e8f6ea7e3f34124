"""One graph from every kind of input, errors that name what is wrong, the caller's arrays kept."""

from __future__ import annotations

import itertools
import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import gpumatch as gm
from gpumatch import BipartiteGraph
from gpumatch.bipartite import as_bipartite
from gpumatch.interop.compressed import compressed_of

# The graph that every input below stands for: an empty row, an empty column.
DENSE = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]])
INDPTR, INDICES = [0, 2, 2, 4], [1, 3, 0, 1]
COL_INDPTR, COL_INDICES = [0, 1, 3, 3, 4], [2, 0, 2, 0]
ROWS, COLS = [0, 0, 2, 2], [1, 3, 0, 1]
SHAPE = (3, 4)


def arrays(dtype=np.int32):
    return np.array(INDPTR, dtype), np.array(INDICES, dtype)


def spaced(values):
    """The values as every other entry of a larger array."""
    wide = np.full(2 * len(values), 99, np.int32)
    wide[::2] = values
    return wide[::2]


def read_only(values):
    array = np.array(values, np.int32)
    array.flags.writeable = False
    return array


class DLPackOnly:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, values):
        self.array = np.array(values)

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def names(vertices, letter):
    return [f"{letter}{i}" for i in range(vertices)]


def networkx_graph(kind=nx.Graph, marked=True):
    """Rows are r0, r1, …, columns c0, c1, …, added in mixed order."""
    G = kind()
    for side, nodes in ((1, names(4, "c")), (0, names(3, "r"))):
        G.add_nodes_from(nodes, **({"bipartite": side} if marked else {}))
    G.add_edges_from((f"c{c}", f"r{r}") for r, c in zip(ROWS, COLS))
    return G


def doubled(G):
    G.add_edges_from(list(G.edges()))
    return G


FORMATS = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]
SOURCES = {
    **{
        f"{kind.__name__} {form}": lambda kind=kind, form=form: kind(DENSE).asformat(form)
        for kind, form in itertools.product((sp.csr_array, sp.csr_matrix), FORMATS)
    },
    "tuple of 3": lambda: (*arrays(), SHAPE),
    "tuple of 4": lambda: (*arrays(), np.ones(4), SHAPE),
    "tuple of lists": lambda: (INDPTR, INDICES, list(SHAPE)),
    "shape as array": lambda: (*arrays(), np.array(SHAPE)),
    **{
        f"{dtype} indices": lambda dtype=dtype: (*arrays(dtype), SHAPE)
        for dtype in ("int8", "uint8", "int16", "uint32", "int64", "uint64", ">i4", ">i8", "<u2")
    },
    "int64 offsets only": lambda: (arrays(np.int64)[0], arrays()[1], SHAPE),
    "spare room": lambda: (INDPTR, [*INDICES, -7, 10**6], SHAPE),
    "unsorted": lambda: (INDPTR, [3, 1, 1, 0], SHAPE),
    "unsorted >u8": lambda: (np.array(INDPTR, ">u8"), np.array([3, 1, 1, 0], ">u8"), SHAPE),
    "duplicates": lambda: ([0, 3, 3, 6], [1, 3, 1, 0, 0, 1], SHAPE),
    "many duplicates": lambda: ([0, 513, 513, 515], [1] * 256 + [3] * 257 + [0, 1], SHAPE),
    "non-contiguous": lambda: (spaced(INDPTR), spaced(INDICES), SHAPE),
    "read-only": lambda: (read_only(INDPTR), read_only(INDICES), SHAPE),
    "DLPack": lambda: (DLPackOnly(INDPTR), DLPackOnly(INDICES), SHAPE),
    "COO with duplicates": lambda: sp.coo_array(
        (np.ones(6), ([*ROWS, 0, 2], [*COLS, 1, 1])), shape=SHAPE
    ),
    "COO whose duplicates cancel": lambda: sp.coo_array(
        ([1.0, -1.0, 1, 1, 1], ([0, *ROWS], [1, *COLS])), shape=SHAPE
    ),
    **{
        f"dense {dtype}": lambda dtype=dtype: DENSE.astype(dtype)
        for dtype in ("bool", "int8", "uint64", "float16", "float64", "complex128", ">f4")
    },
    "dense NaN": lambda: np.where(DENSE, np.nan, 0),
    "dense inf": lambda: np.where(DENSE, -np.inf, -0.0),
    "dense by columns": lambda: np.asfortranarray(DENSE),
    "dense view": lambda: np.repeat(DENSE, 2, axis=1)[:, ::2],
    "dense DLPack": lambda: DLPackOnly(DENSE),
    "np.matrix": lambda: np.asmatrix(DENSE),
    "lists": lambda: DENSE.tolist(),
    "BipartiteGraph": lambda: BipartiteGraph(DENSE),
    "networkx": networkx_graph,
    "networkx directed": lambda: networkx_graph(nx.DiGraph),
    "networkx parallel edges": lambda: doubled(networkx_graph(nx.MultiGraph)),
    "networkx both": lambda: doubled(networkx_graph(nx.MultiDiGraph)),
}


def assert_is_the_graph(graph):
    assert (graph.shape, graph.nrows, graph.ncols, graph.nnz) == (SHAPE, 3, 4, 4)
    found = graph.indptr, graph.indices, graph.col_indptr, graph.col_indices
    for array, expected in zip(found, (INDPTR, INDICES, COL_INDPTR, COL_INDICES)):
        assert array.tolist() == expected
        assert array.dtype == np.int32
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.aligned


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_every_input_gives_the_same_graph(make):
    assert_is_the_graph(BipartiteGraph(make()))
    assert_is_the_graph(as_bipartite(make()))


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    assert_is_the_graph(BipartiteGraph(torch.tensor(DENSE, dtype=torch.float32).to_sparse_csr()))
    assert_is_the_graph(BipartiteGraph(torch.tensor(DENSE)))


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2], [0, 0, 1, 1, 2, 3, 3]])
@pytest.mark.parametrize("dtype", [None, np.uint8, np.int64, ">i4"])
def test_edge_arrays_in_any_order(order, dtype):
    rows, cols = ([ends[i] for i in order] for ends in (ROWS, COLS))
    if dtype is not None:
        rows, cols = np.array(rows, dtype), np.array(cols, dtype)
    assert_is_the_graph(BipartiteGraph.from_edges(rows, cols, SHAPE))
    assert_is_the_graph(BipartiteGraph.from_edges(rows, cols))


def test_edge_arrays_may_be_empty():
    assert BipartiteGraph.from_edges([], []).shape == (0, 0)
    assert BipartiteGraph.from_edges([], [], (2, 3)).indptr.tolist() == [0, 0, 0]


# -- stored zeros ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [sp.coo_array, sp.coo_matrix])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok"])
def test_stored_zeros_are_edges(form, kind):
    stored = kind(([0.0, 0.0, np.nan, 5.0], (ROWS, COLS)), shape=SHAPE).asformat(form)
    assert stored.nnz == 4
    assert_is_the_graph(BipartiteGraph(stored))


def test_every_entry_of_a_stored_block_is_an_edge():
    blocks = sp.bsr_array(np.array([[1, 0, 0, 0], [0, 0, 0, 0]]), blocksize=(2, 2))
    assert BipartiteGraph(blocks).nnz == blocks.nnz == 4


def test_of_diagonals_the_nonzero_entries_are_edges():
    """DIA stores zeros as padding too, and nothing tells them apart."""
    diagonals = sp.dia_array(([[0.0, 1.0, np.nan]], [0]), shape=(3, 3))
    assert BipartiteGraph(diagonals).indptr.tolist() == [0, 0, 1, 2]


# -- empty graphs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 3)])
@pytest.mark.parametrize(
    "make",
    [
        sp.csr_array,
        sp.csc_array,
        sp.coo_array,
        sp.lil_array,
        np.zeros,
        lambda shape: (np.zeros(shape[0] + 1, int), np.zeros(0, int), shape),
        lambda shape: ([0] * (shape[0] + 1), [], shape),
    ],
    ids=["csr", "csc", "coo", "lil", "dense", "arrays", "lists"],
)
def test_graphs_without_edges(make, shape):
    graph = BipartiteGraph(make(shape))
    assert (graph.shape, graph.nnz) == (shape, 0)
    assert graph.indptr.tolist() == [0] * (shape[0] + 1)
    assert graph.col_indptr.tolist() == [0] * (shape[1] + 1)
    assert graph.indices.dtype == graph.col_indices.dtype == np.int32
    assert [end.tolist() for end in graph.edges()] == [[], []]


# -- the caller's arrays ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        ("int32", INDPTR, INDICES),
        ("int64", INDPTR, INDICES),
        ("int32", INDPTR, [3, 1, 1, 0]),
        ("int64", [0, 3, 3, 6], [1, 3, 1, 0, 0, 1]),
    ],
    ids=["right form", "int64", "unsorted", "duplicates"],
)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, None], ids=["csr", "csc", "tuple"])
def test_the_callers_arrays_are_not_modified(kind, parts):
    dtype, *given_parts = parts
    indptr, indices = (np.array(part, dtype) for part in given_parts)
    data = np.arange(1.0, 1 + len(indices))
    if kind is None:
        source = held = (indptr, indices, data, SHAPE)
    else:
        shape = SHAPE if kind is sp.csr_array else SHAPE[::-1]
        source = kind((data, indices, indptr), shape=shape)
        held = (source.indptr, source.indices, source.data)
    before = [part.copy() for part in held[:3]]
    graph = BipartiteGraph(source)
    assert_is_the_graph(graph.transpose() if kind is sp.csc_array else graph)
    for part, copy in zip(held, before):
        np.testing.assert_array_equal(part, copy)
        assert part.dtype == copy.dtype
    if kind is not None:
        assert source.nnz == len(indices)


def test_a_graph_on_the_host_has_arrays_of_its_own():
    """What another thread does to the caller's must not reach what kernels index by."""
    indptr, indices = arrays()
    for source in ((indptr, indices, SHAPE), sp.csr_array((INDICES, indices, indptr), SHAPE)):
        graph = BipartiteGraph(source)
        assert not np.shares_memory(graph.indptr, indptr)
        assert not np.shares_memory(graph.indices, indices)


def test_rows_are_sorted_where_the_first_has_one_entry():
    indptr, indices = np.array([0, 1, 3, 3], np.int32), np.array([3, 0, 2], np.int32)
    entries = compressed_of((indptr, indices, SHAPE))
    assert entries.is_canonical
    assert entries.pattern()[1] is entries.indices


@pytest.mark.parametrize(("most", "dtype"), [(3, np.int64), (4, np.int32)])
def test_offsets_are_as_long_as_they_have_to_be(most, dtype, monkeypatch):
    monkeypatch.setattr("gpumatch.interop.compressed._MAX_INT32_OFFSET", most)
    indptr, indices = arrays()
    assert BipartiteGraph((indptr, indices, SHAPE)).indptr.dtype == dtype


def test_the_most_vertices_are_held():
    assert BipartiteGraph(([0], [], (0, HUGE - 1))).shape == (0, HUGE - 1)


# -- what is refused -------------------------------------------------------------------------------

HUGE = 2**31 - 2**20 + 1
REFUSED = {
    "float indices": (
        (INDPTR, [1.0, 3, 0, 1], SHAPE),
        TypeError,
        "indices must be integers.*float",
    ),
    "bool indices": ((INDPTR, [True] * 4, SHAPE), TypeError, "indices must be integers.*bool"),
    "float offsets": ((np.array(INDPTR, float), INDICES, SHAPE), TypeError, "indptr must be int"),
    "object indices": ((INDPTR, [2**70, 1, 0, 1], SHAPE), TypeError, "indices must be integers"),
    "index too large": ((INDPTR, [1, 4, 0, 1], SHAPE), ValueError, r"indices: 4 .*\[0, 4\)"),
    "negative index": ((INDPTR, [1, 3, -1, 1], SHAPE), ValueError, r"indices: -1 .*\[0, 4\)"),
    "beyond int32": ((INDPTR, [1, 2**32, 0, 1], SHAPE), ValueError, "indices: 4294967296 lies"),
    "beyond int64": (
        (INDPTR, np.array([1, 2**63, 0, 1], np.uint64), SHAPE),
        ValueError,
        "9223372036854775808 lies",
    ),
    "columns and no room": (([0, 1], [0], (1, 0)), ValueError, r"indices: 0 lies outside \[0, 0\)"),
    "too few offsets": (([0, 2, 4], INDICES, SHAPE), ValueError, r"nrows \+ 1 = 4 entries; got 3"),
    "too many offsets": (([0, 2, 2, 4, 4], INDICES, SHAPE), ValueError, "= 4 entries; got 5"),
    "no offsets": (([], [], (0, 0)), ValueError, "= 1 entries; got 0"),
    "decreasing offsets": (([0, 3, 2, 4], INDICES, SHAPE), ValueError, "indptr must not decrease"),
    "decreasing uint64": (
        (np.array([0, 3, 2, 4], np.uint64), INDICES, SHAPE),
        ValueError,
        "indptr must not decrease",
    ),
    "offset not from 0": (
        ([1, 2, 2, 4], INDICES, SHAPE),
        ValueError,
        r"indptr\[0\] must be 0",
    ),
    "offset too large": (([0, 2, 2, 5], INDICES, SHAPE), ValueError, r"indptr\[-1\] is 5.*only 4"),
    "huge offset": (
        (np.array([0, 2, 2, 2**63], np.uint64), INDICES, SHAPE),
        ValueError,
        r"indptr\[-1\] is 92233720",
    ),
    "negative offset": (([0, -2, -2, 4], INDICES, SHAPE), ValueError, "indptr must not decrease"),
    "2-d indices": ((INDPTR, [INDICES], SHAPE), ValueError, "indices must have 1 dimension; got 2"),
    "ragged indices": ((INDPTR, [[1], [2, 3]], SHAPE), TypeError, "indices: can't make an array"),
    "short shape": ((INDPTR, INDICES, (3,)), ValueError, r"shape must be two integers.*\(3,\)"),
    "float shape": ((INDPTR, INDICES, (3, 4.0)), TypeError, "shape must be two integers"),
    "no shape": ((INDPTR, INDICES, None), TypeError, "shape must be two integers"),
    "negative shape": (([0], [], (0, -1)), ValueError, "shape must not be negative"),
    "too many columns": (([0], [], (0, HUGE)), ValueError, "at most 2146435072 rows and columns"),
    "tuple of 2": ((INDPTR, INDICES), TypeError, "a tuple must be .*; got 2 parts"),
    "tuple of 5": ((1, 2, 3, 4, 5), TypeError, "a tuple must be .*; got 5 parts"),
    "1-d dense": (np.ones(3), ValueError, "a dense graph must have 2 dimensions; got 1"),
    "3-d dense": (np.ones((2, 2, 2)), ValueError, "must have 2 dimensions; got 3"),
    "1-d sparse": (sp.coo_array([1, 0, 1]), ValueError, "must have 2 dimensions; got 1"),
    "objects": (np.array([[None]]), TypeError, "boolean or numeric.*object"),
    "text": ("matrix.mtx", TypeError, "the graph must be .*; got str"),
    "dates": (np.zeros((2, 2), "M8[s]"), TypeError, "boolean or numeric"),
    "nothing": (None, TypeError, "the graph must be .*; got NoneType"),
    "ragged lists": ([[1, 0], [1]], TypeError, "the graph: can't make an array of list"),
    "not bipartite": (nx.cycle_graph(3), ValueError, "odd cycle 0, [12], [12]$"),
    "odd part": (
        nx.Graph([(1, "x"), (3, 4), (4, 5), (5, 3)]),
        ValueError,
        "odd cycle 3, [45], [45]",
    ),
    "self-loop": (nx.Graph([(1, 1)]), ValueError, "odd cycle 1$"),
}


@pytest.mark.parametrize(("source", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_wrong_input_is_refused_and_named(source, error, message):
    with pytest.raises(error, match=message):
        BipartiteGraph(source)


@pytest.mark.parametrize(
    ("rows", "cols", "shape", "error", "message"),
    [
        ([0, 1], [0], None, ValueError, "must have one length; got 2 and 1"),
        ([0, 3], [0, 1], (3, 2), ValueError, r"rows: 3 lies outside \[0, 3\)"),
        ([0, 1], [0, 2], (3, 2), ValueError, r"cols: 2 lies outside \[0, 2\)"),
        ([0, -1], [0, 1], None, ValueError, "rows: -1 lies outside"),
        ([0, 1], [0, 2**40], None, ValueError, "at most 2146435072"),
        ([0.0, 1], [0, 1], None, TypeError, "rows must be integers; got dtype float64"),
        (np.array([]), np.array([]), None, TypeError, "rows must be integers; got dtype float64"),
        ([[0], [1]], [0, 1], None, ValueError, "rows must have 1 dimension"),
        ([0], [0], (2, 2, 2), ValueError, "shape must be two integers"),
    ],
)
def test_wrong_edges_are_refused_and_named(rows, cols, shape, error, message):
    with pytest.raises(error, match=message):
        BipartiteGraph.from_edges(rows, cols, shape)


# -- networkx --------------------------------------------------------------------------------------


def test_networkx_nodes_are_the_labels():
    graph = BipartiteGraph(networkx_graph())
    assert (graph.row_labels, graph.col_labels) == (names(3, "r"), names(4, "c"))


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
def test_a_connected_networkx_graph_needs_no_marks(kind):
    G = kind([("a", "x"), ("b", "x"), ("b", "y")])
    graph = BipartiteGraph(G)
    sides = {tuple(graph.row_labels), tuple(graph.col_labels)}
    assert sides == {("a", "b"), ("x", "y")}
    assert graph.nnz == 3


def test_sides_that_are_found_keep_the_order_of_the_nodes():
    G = nx.path_graph(range(99, -1, -1))
    graph = BipartiteGraph(G)
    for labels in (graph.row_labels, graph.col_labels):
        assert labels == sorted(labels, reverse=True)


def test_each_component_is_divided_by_itself():
    """Its first node is a row, so that isolated nodes are."""
    graph = BipartiteGraph(nx.Graph([("b", "y"), ("a", "y"), ("x", "c"), ("x", "d")]))
    assert (graph.row_labels, graph.col_labels) == (["b", "a", "x"], ["y", "c", "d"])
    G = nx.Graph()
    G.add_nodes_from("zyx")
    G.add_edge("x", "u")
    assert BipartiteGraph(G).row_labels == ["z", "y", "x"]


@pytest.mark.parametrize("marked", [{"c": 0}, {"x": 1}, {"x": 1, "d": 0}])
def test_a_component_goes_where_a_mark_lets_it(marked):
    G = nx.Graph([("x", "c"), ("x", "d"), ("y", "e")])
    nx.set_node_attributes(G, {**marked, "e": 0}, "bipartite")
    graph = BipartiteGraph(G)
    assert (graph.row_labels, graph.col_labels) == (["c", "d", "e"], ["x", "y"])


@pytest.mark.parametrize("mark", [2, -1, "0", 0.5])
def test_a_mark_that_is_no_side_is_refused_by_name(mark):
    G = nx.Graph(["ax", "bx"])
    nx.set_node_attributes(G, {"a": 0, "b": mark, "x": None}, "bipartite")
    says = re.escape(f"node 'b' has the mark bipartite={mark!r}: it must be 0 for rows and 1 for")
    with pytest.raises(ValueError, match=says):
        BipartiteGraph(G)
    with pytest.raises(ValueError, match=says):
        gm.assign(G)
    assert BipartiteGraph.from_networkx(G, "ab").shape == (2, 1)


@pytest.mark.parametrize("zero", [0, 0.0, False, np.int64(0)])
def test_marks_may_be_of_any_kind_of_number(zero):
    G = nx.Graph(["ax", "by"])
    nx.set_node_attributes(G, {"x": zero, "b": zero + 1}, "bipartite")
    assert set(BipartiteGraph(G).row_labels) == {"x", "y"}


def test_marks_in_a_component_that_contradict_each_other_are_refused():
    G = nx.path_graph(4)
    nx.set_node_attributes(G, {0: 0, 3: 0}, "bipartite")
    with pytest.raises(ValueError, match="stays on one side"):
        BipartiteGraph(G)


def test_row_nodes_set_the_order_of_rows():
    G = networkx_graph(marked=False)
    graph = BipartiteGraph.from_networkx(G, iter(["r2", "r0", "r1", "r2"]))
    assert graph.row_labels == ["r2", "r0", "r1"]
    assert graph.indptr.tolist() == [0, 2, 4, 4]
    with pytest.raises(ValueError, match="row_nodes: 'z' is not a node"):
        BipartiteGraph.from_networkx(G, ["z"])
    with pytest.raises(ValueError, match=r"edge .* stays on one side"):
        BipartiteGraph.from_networkx(G, ["r0", "c1", "c3"])


def test_marks_that_contradict_the_edges_are_refused():
    G = networkx_graph()
    G.add_edge("r0", "r1")
    with pytest.raises(ValueError, match=r"edge \('r0', 'r1'\) stays on one side"):
        BipartiteGraph(G)


def test_a_networkx_graph_without_nodes():
    assert BipartiteGraph(nx.Graph()).shape == (0, 0)


# -- what it does ----------------------------------------------------------------------------------


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


# -- on a GPU --------------------------------------------------------------------------------------


def assert_is_the_graph_on_a_device(graph):
    assert graph.on_device
    assert repr(graph).startswith("BipartiteGraph(3 rows, 4 columns, 4 edges, GPU")
    assert graph.to_device() is graph
    assert_is_the_graph(graph.to_host())


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dia"])
def test_cupyx_matrices(form):
    cupyx_sparse = pytest.importorskip("cupyx.scipy.sparse")
    kind = getattr(cupyx_sparse, f"{form}_matrix")
    graph = BipartiteGraph(kind(sp.csr_matrix(DENSE.astype(np.float32)).asformat(form)))
    assert_is_the_graph_on_a_device(graph)
    host = BipartiteGraph(DENSE)
    for name in ("indptr", "indices", "col_indptr", "col_indices"):
        array = getattr(graph, name)
        assert array.dtype == np.int32
        np.testing.assert_array_equal(array.get(), getattr(host, name))


ON_DEVICE = [
    "tuple of 3",
    "int64 indices",
    "uint64 indices",
    "spare room",
    "unsorted",
    "duplicates",
    "many duplicates",
    "non-contiguous",
]


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("name", ON_DEVICE)
def test_cupy_arrays(name):
    cupy = pytest.importorskip("cupy")
    *parts, shape = SOURCES[name]()
    assert_is_the_graph_on_a_device(BipartiteGraph((*map(cupy.asarray, parts), shape)))


@pytest.mark.gpu
@pytest.mark.emulated
def test_other_ways_onto_the_device():
    cupy = pytest.importorskip("cupy")
    rows, cols = cupy.asarray(ROWS), cupy.asarray(COLS)
    assert_is_the_graph_on_a_device(BipartiteGraph.from_edges(rows, cols, SHAPE))
    assert_is_the_graph_on_a_device(BipartiteGraph(cupy.asarray(DENSE)))
    assert_is_the_graph_on_a_device(BipartiteGraph(DENSE).to_device())
    with pytest.raises(ValueError, match="rows and cols must live on one device"):
        BipartiteGraph.from_edges(rows, COLS)
    with pytest.raises(ValueError, match="indptr and indices must live on one device"):
        BipartiteGraph((cupy.asarray(INDPTR), INDICES, SHAPE))


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
