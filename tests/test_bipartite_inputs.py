"""One graph from every kind of input, errors that name what is wrong, the caller's arrays kept."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from gpumatch import BipartiteGraph
from gpumatch.bipartite import as_bipartite
from gpumatch.interop.compressed import compressed_of
from tests.bipartite_inputs import (
    COLS,
    DENSE,
    INDICES,
    INDPTR,
    ROWS,
    SHAPE,
    SOURCES,
    arrays,
    assert_is_the_graph,
)


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
