"""The forms in which a Matching and an Assignment give their pairs."""

from __future__ import annotations

import copy
import math
import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms import bipartite

import gpumatch as gm
from gpumatch import BipartiteGraph

SHAPES = [(0, 0), (0, 3), (3, 0), (1, 1), (6, 6), (8, 5), (5, 8)]


def sparse_graph(shape, seed=1):
    rng = np.random.default_rng(seed)
    return sp.csr_array(rng.random(shape) < 0.3)


def dense_costs(shape, dtype=np.int64, seed=1):
    return np.random.default_rng(seed).integers(0, 50, shape).astype(dtype)


def results():
    """Matchings and assignments of all shapes; sparse, so that some have unmatched vertices."""
    for shape in SHAPES:
        yield f"matching {shape}", lambda s=shape: gm.maximum_matching(sparse_graph(s))
        yield f"assignment {shape}", lambda s=shape: gm.assign(dense_costs(s))
    limited = {"cost_limit": 3, "cardinality": "any"}
    yield "limited", lambda: gm.assign(dense_costs((8, 5)), **limited)


RESULTS = dict(results())


@pytest.fixture(params=RESULTS.values(), ids=RESULTS)
def result(request):
    return request.param()


def as_set(pairs):
    return set(map(tuple, pairs))


def test_every_form_has_the_same_pairs(result):
    pairs = {(r, c) for r, c in enumerate(result.row_to_col.tolist()) if c >= 0}
    assert result.size == len(pairs)
    assert as_set(zip(result.row_ind.tolist(), result.col_ind.tolist())) == pairs
    assert as_set(result.edges().tolist()) == pairs
    assert result.edges().shape == (result.size, 2)
    assert as_set(result.to_dict().items()) == pairs
    matrix = result.to_matrix()
    assert as_set(zip(*(part.tolist() for part in matrix.nonzero()))) == pairs
    assert result.row_ind.tolist() == sorted(result.row_ind.tolist())
    assert result.row_ind.dtype == result.col_ind.dtype == np.int64


def test_a_result_unpacks_as_what_scipy_returns(result):
    rows, cols = result
    assert rows is result.row_ind
    assert cols is result.col_ind
    assert result  # without pairs, too


def test_unmatched_vertices_are_the_others(result):
    shape = result.row_to_col.size, result.col_to_row.size
    sides = (result.row_ind, result.unmatched_rows), (result.col_ind, result.unmatched_cols)
    for (matched, others), length in zip(sides, shape):
        assert sorted([*matched.tolist(), *others.tolist()]) == list(range(length))


def test_the_matrix_has_the_shape_and_a_one_a_pair(result):
    matrix = result.to_matrix()
    assert isinstance(matrix, sp.csr_array)
    assert matrix.shape == (result.row_to_col.size, result.col_to_row.size)
    assert matrix.dtype == np.float64
    assert matrix.nnz == result.size == matrix.sum()
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert not np.shares_memory(matrix.indices, result.row_to_col)


def test_permutations_put_pairs_on_the_diagonal(result):
    marks = result.to_matrix().toarray()
    nrows, ncols = marks.shape
    p, q = result.row_permutation(), result.col_permutation()
    assert sorted(p.tolist()) == list(range(nrows))
    assert sorted(q.tolist()) == list(range(ncols))
    on_rows, on_cols = marks[p].diagonal(), marks[:, q].diagonal()
    diagonal = min(nrows, ncols)
    assert on_rows.tolist() == (result.col_to_row[:diagonal] >= 0).tolist()
    assert on_cols.tolist() == (result.row_to_col[:diagonal] >= 0).tolist()


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [np.arange(6), np.arange(6.0), [0, 1, 2, 3, 4, 5]])
def test_values_are_in_the_order_of_the_rows(values):
    a = gm.assign(dense_costs((6, 9)))
    matrix = a.to_matrix(values)
    assert matrix.nnz == 6  # a zero too
    assert matrix[a.row_ind, a.col_ind].tolist() == list(range(6))
    assert matrix.dtype == np.asarray(values).dtype


@pytest.mark.parametrize("values", [np.ones(5), np.ones(7), np.ones((6, 1)), 1.0])
def test_another_number_of_values_is_refused(values):
    with pytest.raises(ValueError, match="values must be one for each of the 6 pairs; got shape"):
        gm.assign(dense_costs((6, 9))).to_matrix(values)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("dtype", "summed"),
    [(np.int8, np.int64), (np.int64, np.int64), (np.float32, np.float64), (float, np.float64)],
)
def test_the_costs_of_the_pairs_are_those_given(shape, dtype, summed, maximize):
    C = dense_costs(shape, dtype)
    a = gm.assign(C, maximize=maximize)
    assert a.pair_costs.dtype == summed
    assert a.pair_costs.tolist() == C[a.row_ind, a.col_ind].tolist()
    matrix = a.to_matrix(a.pair_costs)
    assert matrix.nnz == a.size  # pairs that cost nothing are entries too
    expected = np.zeros(shape)
    expected[a.row_ind, a.col_ind] = C[a.row_ind, a.col_ind]
    np.testing.assert_array_equal(matrix.toarray(), expected)


@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(9, 6), (6, 9)])
def test_the_costs_of_the_pairs_add_up_to_the_objective(shape, maximize, cardinality):
    rng = np.random.default_rng(4)
    dense = rng.normal(size=shape) * (rng.random(shape) < 0.7)
    C = sp.csr_array(dense)
    limit = 1.4 if maximize else -1.4
    a = gm.assign(C, maximize=maximize, cardinality=cardinality, cost_limit=limit)
    assert 0 < a.size < 6
    assert math.fsum(a.pair_costs) == a.objective
    np.testing.assert_array_equal(a.pair_costs, dense[a.row_ind, a.col_ind])


@pytest.mark.parametrize("through", [lambda a: pickle.loads(pickle.dumps(a)), copy.deepcopy])
def test_a_copied_result_has_the_same_pairs(through, result):
    again = through(result)
    assert again.size == result.size
    assert again.to_dict() == result.to_dict()
    assert (again.to_matrix() != result.to_matrix()).nnz == 0


# -- labels ----------------------------------------------------------------------------------------


@st.composite
def labelled_graphs(draw):
    """Marked networkx graphs with isolated nodes whose names look like numbers of vertices."""
    nodes = draw(st.lists(st.integers(0, 20), unique=True, max_size=14))
    cut = draw(st.integers(0, len(nodes)))
    rows, cols = nodes[:cut], nodes[cut:]
    G = nx.Graph()
    G.add_nodes_from(cols, bipartite=1)
    G.add_nodes_from(rows, bipartite=0)
    if rows and cols:
        pairs = st.tuples(st.sampled_from(rows), st.sampled_from(cols))
        G.add_edges_from(draw(st.lists(pairs, max_size=30)))
    return G, rows, cols


@given(labelled_graphs())
def test_the_dict_of_a_networkx_graph_is_what_networkx_works_on(graph):
    G, rows, _ = graph
    m = gm.maximum_matching(G)
    mates = m.to_dict()
    peer = bipartite.hopcroft_karp_matching(G, rows)
    assert len(mates) == len(peer) == 2 * m.size
    assert nx.is_matching(G, {tuple(pair) for pair in m.edges()})
    assert {*m.edges()} == {(row, mates[row]) for row in rows if row in mates}
    assert all(mates[mates[node]] == node for node in mates)
    cover = bipartite.to_vertex_cover(G, mates, rows)
    assert len(cover) == m.size
    assert {*m.unmatched_rows, *m.unmatched_cols} == {*G} - {*mates}


@given(labelled_graphs())
def test_covers_and_independent_sets_are_sets_of_nodes(graph):
    G, rows, cols = graph
    m = gm.maximum_matching(G)
    in_rows, in_cols = m.vertex_cover()
    assert len(in_rows) + len(in_cols) == m.size
    assert {*in_rows} <= {*rows}
    assert {*in_cols} <= {*cols}
    assert all(u in in_rows + in_cols or v in in_rows + in_cols for u, v in G.edges())
    of_rows, of_cols = m.independent_set()
    assert {*of_rows, *in_rows} == {*rows}
    assert {*of_cols, *in_cols} == {*cols}
    assert len(of_rows + of_cols) == len(G) - m.size
    assert [m.unmatched_rows, m.unmatched_cols] == [
        [node for node in side if node not in m.to_dict()] for side in (rows, cols)
    ]
    assert gm.verify(G, m).size == m.size


def test_a_pickled_matching_keeps_the_nodes():
    G = nx.Graph(["ax", "bx", "cx", "cy"])
    m = gm.maximum_matching(G)
    again = pickle.loads(pickle.dumps(m))
    assert again.to_dict() == m.to_dict()
    assert again.vertex_cover() == (["c"], ["x"])


def test_an_assignment_of_a_networkx_graph_is_in_its_nodes():
    G = nx.Graph()
    G.add_weighted_edges_from([("x", "a", 3), ("b", "x", 1)], weight="price")
    G.add_edge("b", "y")  # costs 1, as in networkx
    a = gm.assign(G, weight="price", row_nodes="ab")
    assert (a.objective, a.edges()) == (4, [("a", "x"), ("b", "y")])
    assert a.to_dict()["x"] == "a"
    assert gm.assign(G, weight=None).objective == 2
    assert gm.assign(G, objective="bottleneck", weight="price").to_dict() == a.to_dict()
    G.add_edge("c", "x", price=0)
    a = gm.assign(G, weight="price", cardinality="maximum", row_nodes="abc")
    assert (a.objective, a.unmatched_rows, a.unmatched_cols) == (1, ["a"], [])
    rows, cols = a.vertex_cover()
    assert len(rows + cols) == 2
    assert all(v in rows + cols or u in rows + cols for u, v in G.edges)
    assert gm.verify(gm.SparseCosts.from_networkx(G, "price", "abc"), a).size == 2


def test_row_nodes_say_which_nodes_are_rows():
    G = nx.Graph(["ax", "bx"])
    m = gm.maximum_matching(G, row_nodes="xy"[:1])
    assert (m.row_to_col.size, m.edges()) == (1, [("x", m.to_dict()["x"])])
    for call in (gm.maximum_matching, gm.assign):
        with pytest.raises(TypeError, match="networkx graph only"):
            call(np.eye(2), row_nodes=[0])
    with pytest.raises(TypeError, match=r"weight .* networkx graph only"):
        gm.assign(np.eye(2), weight="price")


def test_a_directed_graph_with_two_costs_for_an_edge_is_refused():
    G = nx.DiGraph()
    G.add_weighted_edges_from([("x", "a", 3), ("b", "x", 1)])
    assert gm.assign(G).objective == 1
    G.add_edge("a", "x", weight=2)
    with pytest.raises(ValueError, match="in both directions"):
        gm.assign(G)


# -- on a GPU --------------------------------------------------------------------------------------


def on_host(result):
    return [result.row_ind.get(), result.col_ind.get(), result.row_to_col.get()]


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_on_the_device_stay_there(shape):
    cupy = pytest.importorskip("cupy")
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    m = gm.maximum_matching(BipartiteGraph(sparse_graph(shape)).to_device())
    a = gm.assign(cupy.asarray(dense_costs(shape)), maximize=True)
    for result in (m, a):
        arrays = [result.row_ind, result.col_ind, result.unmatched_rows, result.unmatched_cols]
        arrays += [result.row_permutation(), result.col_permutation(), result.edges()]
        assert all(isinstance(array, cupy.ndarray) for array in arrays)
        matrix = result.to_matrix()
        assert isinstance(matrix, sparse.csr_matrix)
        assert (matrix.shape, matrix.dtype) == (shape, np.float64)
        row_ind, col_ind, row_to_col = on_host(result)
        expected = np.zeros(shape)
        expected[row_ind, col_ind] = 1
        np.testing.assert_array_equal(matrix.get().toarray(), expected)
        assert result.to_dict() == dict(zip(row_ind.tolist(), col_ind.tolist()))
        assert result.size == (row_to_col >= 0).sum()
        ranks = result.to_matrix(np.arange(result.size))  # of the host, integers
        assert ranks.dtype == np.float64
        assert ranks.data.get().tolist() == list(range(result.size))
    assert isinstance(a.pair_costs, cupy.ndarray)
    row_ind, col_ind, _ = on_host(a)
    assert a.pair_costs.get().tolist() == dense_costs(shape)[row_ind, col_ind].tolist()
    assert a.to_matrix(a.pair_costs).sum() == a.objective


@pytest.mark.gpu
@pytest.mark.emulated
def test_nodes_of_a_graph_on_the_device():
    G = nx.Graph(["ax", "bx", "cx", "cy"])
    m = gm.maximum_matching(BipartiteGraph.from_networkx(G, "abc").to_device())
    assert m.vertex_cover() == (["c"], ["x"])
    assert len(m.to_dict()) == 4
