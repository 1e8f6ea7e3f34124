"""A graph as a sparse matrix: the same edges, in the library of its arrays, without copies."""

from __future__ import annotations

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gpumatch import BipartiteGraph
from gpumatch.interop.sparse import csr_of

DENSE = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]])
SHAPES = list(itertools.product((0, 1, 3), (0, 2, 5)))
OF_CUPYX = [bool, np.float32, np.float64, np.complex64, np.complex128]


@st.composite
def edge_lists(draw):
    shape = draw(st.sampled_from(SHAPES))
    edges = st.tuples(*(st.integers(0, max(n - 1, 0)) for n in shape))
    return shape, draw(st.lists(edges, max_size=0 if 0 in shape else 20))


@given(edge_lists())
def test_the_matrix_has_the_edges_once_each(shape_and_edges):
    shape, edges = shape_and_edges
    rows, cols = np.array(edges, int).reshape(-1, 2).T
    matrix = BipartiteGraph.from_edges(rows, cols, shape).to_csr()
    expected = np.zeros(shape)
    expected[rows, cols] = 1
    assert isinstance(matrix, sp.csr_array)
    assert matrix.dtype == np.float64
    np.testing.assert_array_equal(matrix.toarray(), expected)
    assert matrix.nnz == len(set(edges))
    assert matrix.has_canonical_format


@given(edge_lists())
def test_a_graph_comes_back_from_its_matrix(shape_and_edges):
    shape, edges = shape_and_edges
    rows, cols = np.array(edges, int).reshape(-1, 2).T
    graph = BipartiteGraph.from_edges(rows, cols, shape)
    again = BipartiteGraph(graph.to_csr())
    assert again.shape == graph.shape
    for name in ("indptr", "indices", "col_indptr", "col_indices"):
        np.testing.assert_array_equal(getattr(again, name), getattr(graph, name))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_rows_stay_rows_whichever_direction_the_graph_has(form):
    graph = BipartiteGraph(sp.csr_array(DENSE).asformat(form))
    np.testing.assert_array_equal(graph.to_csr().toarray(), DENSE)
    np.testing.assert_array_equal(graph.transpose().to_csr().toarray(), DENSE.T)


@pytest.mark.parametrize("dtype", [*OF_CUPYX, np.int8, np.int64, np.uint16])
def test_the_ones_have_the_type_that_is_asked_for(dtype):
    matrix = BipartiteGraph(DENSE).to_csr(dtype)
    assert matrix.dtype == dtype
    np.testing.assert_array_equal(matrix.toarray(), DENSE.astype(dtype))


@pytest.mark.parametrize("dtype", ["S3", object, "M8[s]"])
def test_other_types_are_refused(dtype):
    with pytest.raises(TypeError, match="dtype must be boolean or numeric; got"):
        BipartiteGraph(DENSE).to_csr(dtype)


def test_indices_are_shared_unless_a_copy_is_asked_for():
    graph = BipartiteGraph(DENSE)
    shared, own = graph.to_csr(), graph.to_csr(copy=True)
    for name in ("indptr", "indices"):
        assert np.shares_memory(getattr(shared, name), getattr(graph, name))
        assert not np.shares_memory(getattr(own, name), getattr(graph, name))
        assert getattr(own, name).dtype == np.int32
    own.data[1:] = 0
    own.eliminate_zeros()
    assert (own.nnz, graph.nnz) == (1, 4)
    np.testing.assert_array_equal(graph.to_csr().toarray(), DENSE)


def test_weights_go_to_the_edges_in_the_order_of_the_rows():
    graph = BipartiteGraph(sp.csc_array(DENSE))
    matrix = graph.to_csr()
    rows, cols = graph.edges()
    matrix.data[:] = 10 * rows + cols
    assert [matrix[r, c] for r, c in zip(rows, cols)] == [1, 3, 20, 21]


@pytest.mark.parametrize("values", [[2.0, 3.0], [True, False]])
def test_stored_zeros_are_kept(values):
    matrix = csr_of(np.array(values), np.array([1, 0]), np.array([0, 1, 2]), (2, 2))
    assert matrix.nnz == 2
    assert matrix.toarray()[[0, 1], [1, 0]].tolist() == values


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("dtype", OF_CUPYX)
def test_a_graph_on_the_device_becomes_a_matrix_of_cupyx(dtype):
    cupy = pytest.importorskip("cupy")
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    graph = BipartiteGraph(DENSE).to_device()
    matrix = graph.to_csr(dtype)
    assert isinstance(matrix, sparse.csr_matrix)
    assert (matrix.dtype, matrix.shape) == (dtype, DENSE.shape)
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    np.testing.assert_array_equal(matrix.get().toarray(), DENSE.astype(dtype))
    again = BipartiteGraph(matrix)
    assert again.on_device
    np.testing.assert_array_equal(again.col_indices.get(), graph.col_indices.get())
    pointers = [array.data.ptr for array in (matrix.indices, matrix.indptr)]
    assert pointers == [array.data.ptr for array in (graph.indices, graph.indptr)]
    own = graph.to_csr(dtype, copy=True)
    assert own.indices.data.ptr != graph.indices.data.ptr
    assert own.indptr.data.ptr != graph.indptr.data.ptr
    assert isinstance(own.data, cupy.ndarray)


@pytest.mark.gpu
def test_what_cupyx_has_no_matrices_of_is_refused():
    pytest.importorskip("cupyx.scipy.sparse")
    with pytest.raises(ValueError, match="bool, float32, float64"):
        BipartiteGraph(DENSE).to_device().to_csr(np.int32)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_graphs_without_edges_on_the_device(shape):
    graph = BipartiteGraph(np.zeros(shape)).to_device()
    matrix = graph.to_csr()
    assert (matrix.shape, matrix.nnz) == (shape, 0)


def test_offsets_that_a_library_would_cut_off_are_refused(monkeypatch):
    """A stand-in for a cupyx that counts in int32, whatever it is given."""

    class Cut:
        def __init__(self, arrays, shape):
            self.data, self.indices, self.indptr = arrays[0], arrays[1], arrays[2].astype(np.int32)
            self.shape = shape

    class Array:  # which is not NumPy's
        def __init__(self, values):
            self.dtype, self.astype = values.dtype, values.astype

    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupyx.scipy", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse", SimpleNamespace(csr_matrix=Cut))
    for kind in (np.int32, np.int64):
        indptr = Array(np.array([0, 1, 3], kind))
        given = np.ones(3), np.array([0, 0, 1]), indptr, (2, 2)
        if kind is np.int32:
            assert csr_of(*given).shape == (2, 2)
        else:
            with pytest.raises(
                ValueError, match=r"^3 entries are more than this cupyx holds .* int32$"
            ):
                csr_of(*given)


@pytest.mark.gpu
def test_a_graph_that_takes_64_bit_offsets_keeps_them_or_is_refused():
    """More than 2**31 entries: a cupyx that counts in int32 would wrap around silently."""
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.Device().mem_info[0] < 20 * 2**31:
        pytest.skip("the device has less memory than the matrix takes")
    nrows, ncols = 2**16 + 1, 2**15
    indices = cupy.empty((nrows, ncols), np.int32)
    indices[:] = cupy.arange(ncols)
    indptr = cupy.arange(0, (nrows + 1) * ncols, ncols, dtype=np.int64)
    graph = BipartiteGraph((indptr, indices.ravel(), (nrows, ncols)))
    assert graph.nnz == 2**31 + 2**15
    try:
        matrix = graph.to_csr(bool)
    except ValueError as exc:
        if "entries are more than this cupyx holds" not in str(exc):
            raise
        return
    assert matrix.indptr.dtype == np.int64
    assert int(matrix.indptr[-1]) == graph.nnz
