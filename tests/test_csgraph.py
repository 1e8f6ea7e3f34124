"""SciPy's names: its own test cases for cardinality, its shapes, dtypes and exceptions."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph as scipy_csgraph

from gpumatch import csgraph
from gpumatch.csgraph import maximum_bipartite_matching, structural_rank
from tests.cases import SMALL

NAMES = ["maximum_bipartite_matching", "structural_rank"]
PERM_TYPES = ["row", "column"]


def assert_is_a_matching(graph, size):
    """What `maximum_bipartite_matching` returns are matchings of `size` edges of `graph`."""
    pairs = set(map(tuple, np.argwhere(pattern(graph)).tolist()))
    for perm_type in PERM_TYPES:
        perm = maximum_bipartite_matching(graph, perm_type)
        assert type(perm) is np.ndarray
        assert perm.dtype == np.int32
        assert perm.shape == (graph.shape[1 if perm_type == "row" else 0],)
        assert perm.min(initial=-1) == -1
        matched = [(mate, vertex) for vertex, mate in enumerate(perm.tolist()) if mate >= 0]
        assert len({mate for mate, _ in matched}) == len(matched) == size
        assert {pair if perm_type == "row" else pair[::-1] for pair in matched} <= pairs


def pattern(graph):
    coo = graph.tocoo()
    dense = np.zeros(graph.shape, bool)
    dense[coo.row, coo.col] = True
    return dense


# -- SciPy's test_matching.py ----------------------------------------------------------------------

FORMATS = [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix]


def explicit_zeros():
    return sp.csr_array(([0, 0], [1, 0], [0, 1, 2]), shape=(2, 2))


def feasibility():
    """SciPy issue 11458."""
    # fmt: off
    indices = [11, 12, 19, 22, 23, 5, 22, 3, 8, 10, 5, 6, 11, 12, 13, 5, 13, 14, 20, 22, 3, 15, 3,
               13, 14, 11, 12, 19, 22, 23, 5, 22, 3, 8, 10, 5, 6, 11, 12, 13, 5, 13, 14, 20, 22, 3,
               15, 3, 13, 14]
    indptr = [0, 5, 7, 10, 10, 15, 20, 22, 22, 23, 25, 30, 32, 35, 35, 40, 45, 47, 47, 48, 50]
    # fmt: on
    return sp.csr_array((np.ones(50, int), indices, indptr), shape=(20, 25))


def permuted_identity():
    rng = np.random.RandomState(42)
    rows, cols = rng.permutation(25), rng.permutation(25)
    return sp.csr_array((np.ones(25), (rows, cols)))


SCIPYS = {  # name: graph, size, and per perm_type what is unique
    "empty graph": (sp.csr_array((0, 0)), 0, {"row": [], "column": []}),
    "empty left partition": (sp.csr_array((2, 0)), 0, {"row": [], "column": [-1, -1]}),
    "empty right partition": (sp.csr_array((0, 3)), 0, {"row": [-1, -1, -1], "column": []}),
    "no edges": (sp.csr_array((2, 2)), 0, {"row": [-1, -1], "column": [-1, -1]}),
    "augmentation": (sp.csr_array([[1, 1], [1, 0]]), 2, {"row": [1, 0], "column": [1, 0]}),
    "more rows than columns": (sp.csr_array([[1, 1], [1, 0], [0, 1]]), 2, {}),
    "more columns than rows": (sp.csr_array([[1, 1, 0], [0, 0, 1]]), 2, {}),
    "explicit zeros": (explicit_zeros(), 2, {"row": [1, 0], "column": [1, 0]}),
    "feasibility": (feasibility(), 13, {}),
    "permuted identity": (permuted_identity(), 25, {}),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("graph", "size", "unique"), SCIPYS.values(), ids=SCIPYS)
def test_scipys_matching_cases(graph, size, unique, form):
    graph = form(graph)
    assert_is_a_matching(graph, size)
    for perm_type, expected in unique.items():
        assert maximum_bipartite_matching(graph, perm_type=perm_type).tolist() == expected


@pytest.mark.parametrize("perm_type", PERM_TYPES)
def test_a_permuted_identity_is_brought_back(perm_type):
    graph = permuted_identity()
    perm = maximum_bipartite_matching(graph, perm_type)
    back = graph[perm] if perm_type == "row" else graph[:, perm]
    np.testing.assert_array_equal(back.toarray(), np.eye(25))


# -- SciPy's test_reordering.py --------------------------------------------------------------------

ROWS = [0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]
COLS = [0, 1, 2, 3, 4, 2, 5, 2, 6, 0, 1, 3, 5, 6, 7, 4, 5, 5, 6, 2, 6, 2, 4]
RANKS = {
    "square": (sp.csc_array([[1, 1, 0], [1, 0, 1], [0, 1, 0]]), 3),
    "deficient": (sp.coo_array((np.ones(23, int), (ROWS, COLS)), shape=(8, 8)), 6),
    "wide": (sp.csc_array([[1, 0, 2, 0], [2, 0, 4, 0]]), 2),
    "tall": (sp.csc_array([[1, 0, 2, 0], [2, 0, 4, 0]]).T, 2),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("graph", "rank"), RANKS.values(), ids=RANKS)
def test_scipys_structural_rank_cases(graph, rank, form):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = structural_rank(form(graph))
    assert (found, type(found)) == (rank, np.int64)


# -- like SciPy ------------------------------------------------------------------------------------

SCIPY_CAN = [case for case in SMALL if case.scipy_can]


@pytest.mark.parametrize("case", SCIPY_CAN, ids=[case.name for case in SCIPY_CAN])
def test_shapes_and_types_are_scipys(case):
    for perm_type in PERM_TYPES:
        ours = maximum_bipartite_matching(case.graph, perm_type)
        theirs = scipy_csgraph.maximum_bipartite_matching(case.graph, perm_type)
        assert (ours.shape, ours.dtype, type(ours)) == (theirs.shape, theirs.dtype, type(theirs))
        assert (ours >= 0).sum() == (theirs >= 0).sum() == case.size
    ours, theirs = structural_rank(case.graph), scipy_csgraph.structural_rank(case.graph)
    assert (ours, type(ours)) == (theirs, type(theirs))


@pytest.mark.parametrize("cheap", [0, 1])
def test_large_integers_of_wide_graphs_are_exact(cheap):
    """Each sum has two of them, though there are a thousand columns."""
    weights = np.full(3, 2**55)
    weights[1 - cheap] += 1
    graph = sp.csr_array((weights, ([0, 0, 1], [0, 1, 2])), shape=(2, 1000))
    assert csgraph.min_weight_full_bipartite_matching(graph)[1].tolist() == [cheap, 2]


@pytest.mark.parametrize(
    "weight", [2**61 - 1, 2**61, -(2**61), -(2**62)], ids=["below", "at", "negative", "least"]
)
def test_integers_at_the_end_of_the_range_are_taken(weight):
    graph = sp.csr_array(np.array([[weight]]))
    assert csgraph.min_weight_full_bipartite_matching(graph)[1].tolist() == [0]


def repeated(kind, weights, rows, cols):
    """A square matrix with these entries, those of a row together, which are not summed."""
    if kind == "coo":
        return sp.coo_array((weights, (rows, cols)))
    return sp.csr_array((weights, cols, np.append(0, np.bincount(rows).cumsum())))


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_weights_of_one_pair_are_summed_before_zeros_are_sought(kind):
    """Row 0's weights for column 0 sum to 0, so it is no edge, and only column 1 is left."""
    for home in (scipy_csgraph, csgraph):
        graph = repeated(kind, [1, -1, 9, 2, 3], [0, 0, 0, 1, 1], [0, 0, 1, 0, 1])
        with pytest.warns(UserWarning, match="explicit zero weights are removed"):
            assert home.min_weight_full_bipartite_matching(graph)[1].tolist() == [1, 0]


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_a_zero_that_is_summed_up_is_no_zero(kind):
    """As in SciPy, an entry of 0 is an edge if another of the same pair is not 0."""
    for home in (scipy_csgraph, csgraph):
        graph = repeated(kind, [0, 4], [0, 0], [0, 0])
        with warnings.catch_warnings(action="error"):
            assert home.min_weight_full_bipartite_matching(graph)[1].tolist() == [0]


def test_weights_are_numbers():
    graph = sp.csr_array(np.eye(2))
    graph.data = graph.data.astype(object)
    for home in (scipy_csgraph, csgraph):
        with pytest.raises(ValueError, match="expected a matrix containing numerical entries, got"):
            home.min_weight_full_bipartite_matching(graph)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_scipys(name):
    ours, theirs = (inspect.signature(getattr(home, name)) for home in (csgraph, scipy_csgraph))
    assert [(p.name, p.default, p.kind) for p in ours.parameters.values()] == [
        (p.name, p.default, p.kind) for p in theirs.parameters.values()
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "graph", [np.eye(3), [[1, 0]], None, "graph", (np.array([0, 1]), np.array([0]), (1, 1))]
)
def test_what_is_not_sparse_raises_scipys_exception(name, graph):
    with pytest.raises(TypeError, match="must be sparse") as theirs:
        getattr(scipy_csgraph, name)(graph)
    with pytest.raises(TypeError) as ours:
        getattr(csgraph, name)(graph)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("form", ["lil", "dok", "dia", "bsr"])
def test_other_formats_are_refused_or_warned_of_as_in_scipy(form):
    graph = sp.csr_array(np.eye(4)).asformat(form)
    for home in (scipy_csgraph, csgraph):
        with pytest.raises(TypeError, match="graph must be in CSC, CSR, or COO format"):
            home.maximum_bipartite_matching(graph)
        with pytest.warns(sp.SparseEfficiencyWarning, match="CSC, CSR, or COO") as caught:
            assert home.structural_rank(graph) == 4
    assert caught[0].filename == __file__


# -- unlike SciPy, as documented -------------------------------------------------------------------


@pytest.mark.parametrize("perm_type", ["rows", "", None, 0, "Row"])
def test_an_unknown_perm_type_is_refused(perm_type):
    with pytest.raises(ValueError, match="perm_type must be 'row' or 'column'; got "):
        maximum_bipartite_matching(sp.csr_array([[1]]), perm_type)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_duplicate_entries_count_once(kind):
    """They crash SciPy 1.17 (scipy issue 26160)."""
    graph = kind((np.ones(6), [0, 0, 1, 1, 1, 0], [0, 3, 5, 6]), shape=(3, 3))
    assert_is_a_matching(graph, 2)
    assert structural_rank(graph) == 2
    assert graph.nnz == 6


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("values", [[1.0, np.nan, 0.0], [1j, 0, 2], [True, False, True]])
def test_index_types_and_values_do_not_matter(dtype, values):
    graph = sp.csr_array((np.array(values), [2, 0, 1], [0, 2, 3]), shape=(2, 3))
    graph.indices, graph.indptr = graph.indices.astype(dtype), graph.indptr.astype(dtype)
    assert_is_a_matching(graph, 2)


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_device_matrices_are_answered_on_the_device(form):
    cupy = pytest.importorskip("cupy")
    cupyx_sparse = pytest.importorskip("cupyx.scipy.sparse")
    for case in SCIPY_CAN:
        if case.graph.nnz == 0:
            continue  # cupyx refuses some empty shapes itself
        graph = cupyx_sparse.csr_matrix(case.graph.astype(np.float32)).asformat(form)
        for perm_type in PERM_TYPES:
            perm = maximum_bipartite_matching(graph, perm_type)
            assert isinstance(perm, cupy.ndarray)
            assert perm.dtype == np.int32
            assert int((perm >= 0).sum()) == case.size
        assert int(structural_rank(graph)) == case.size


def test_integers_without_entries():
    rows, cols = csgraph.min_weight_full_bipartite_matching(sp.csr_array((0, 3), dtype=int))
    assert rows.size == cols.size == 0
    with pytest.raises(ValueError, match="no full matching exists"):
        csgraph.min_weight_full_bipartite_matching(sp.csr_array((2, 3), dtype=int))
