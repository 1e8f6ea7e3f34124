"""`maximum_matching` with capacities: results, arguments and proofs."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, random_array
from scipy.sparse.csgraph import maximum_flow

import gpumatch as gm

#   Row 0 may have three columns; columns 0 and 1 are wanted by all.
GRAPH = csr_array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 0, 0]])


def size_by_flow(A, row_capacity, col_capacity):
    """The size of a maximum b-matching, by SciPy's maximum flow."""
    (nrows, ncols), A = A.shape, coo_array(A)
    source, sink = nrows + ncols, nrows + ncols + 1
    tails = np.concatenate([np.full(nrows, source), A.row, nrows + np.arange(ncols)])
    heads = np.concatenate([np.arange(nrows), nrows + A.col, np.full(ncols, sink)])
    caps = np.concatenate([row_capacity, np.ones(A.nnz, int), col_capacity]).astype(np.int32)
    arcs = csr_array((caps, (tails, heads)), shape=(sink + 1, sink + 1))
    return maximum_flow(arcs, source, sink).flow_value


@pytest.mark.parametrize("seed", range(8))
def test_as_large_as_a_maximum_flow(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        shape, most = rng.integers(0, 12, 2), rng.integers(1, 5)
        A = (rng.random(shape) < rng.random()).astype(int)
        capacities = [rng.integers(0, most + 1, length) for length in shape]
        m = gm.maximum_matching(A, row_capacity=capacities[0], col_capacity=capacities[1])
        assert m.proven
        assert gm.verify(A, m).size == m.size == size_by_flow(A, *capacities)


@pytest.mark.parametrize(("rows", "cols"), [(1, 5), (3, 2), (40, 40), (0, 3)])
def test_sparse_graphs_of_some_size(rows, cols):
    A = random_array((300, 200), density=0.02, format="csr", rng=4)
    m = gm.maximum_matching(A, row_capacity=rows, col_capacity=cols)
    assert gm.verify(A, m).size == size_by_flow(A, np.full(300, rows), np.full(200, cols))


def test_capacities_of_one_are_a_matching():
    A = random_array((60, 70), density=0.05, format="csr", rng=1)
    m = gm.maximum_matching(A, row_capacity=1)
    assert m.size == gm.maximum_matching(A).size
    assert gm.verify(A, m).bound == m.size


def test_capacities_may_exceed_all_degrees():
    m = gm.maximum_matching(GRAPH, row_capacity=2**62, col_capacity=2**62)
    assert m.size == GRAPH.nnz
    assert gm.verify(GRAPH, m).size == GRAPH.nnz


def test_what_a_result_holds():
    m = gm.maximum_matching(GRAPH, row_capacity=[3, 1, 1], col_capacity=[1, 1, 1, 1])
    assert repr(m) == "BMatching(size 3, maximum)"
    assert (len(m), m.size, m.proven) == (3, 3, True)
    rows, cols = m
    assert rows is m.row_ind
    assert cols is m.col_ind
    assert m.edges().tolist() == np.stack([rows, cols], axis=1).tolist()
    assert m.row_degree.sum() == m.col_degree.sum() == 3
    assert m.col_degree.tolist() == [1, 1, 1, 0]
    assert (m.to_matrix().toarray() <= GRAPH.toarray()).all()
    assert m.to_matrix([7, 8, 9]).data.tolist() == [7, 8, 9]
    assert sorted(col for cols in m.to_dict().values() for col in cols) == [0, 1, 2]
    assert not hasattr(m, "row_to_col")
    again = pickle.loads(pickle.dumps(m))
    assert gm.verify(GRAPH, again).size == 3
    with pytest.raises(ValueError, match="one for each of the 3 edges"):
        m.to_matrix([1])


def test_nodes_of_networkx():
    G = nx.Graph([("ann", "x"), ("ann", "y"), ("bob", "x"), ("cem", "x")])
    m = gm.maximum_matching(
        G, row_nodes=["ann", "bob", "cem"], row_capacity={"ann": 2}, col_capacity={"x": 2}
    )
    assert m.size == 3
    assert ("ann", "y") in m.edges()
    rows, cols = m.vertex_cover()
    assert set(rows) <= {"ann", "bob", "cem"}
    assert set(cols) <= {"x", "y"}
    with pytest.raises(ValueError, match="row_capacity: 'dan' is no node of this side"):
        gm.maximum_matching(G, row_nodes=["ann", "bob", "cem"], row_capacity={"dan": 2})
    with pytest.raises(TypeError, match="for the nodes of a networkx graph only"):
        gm.maximum_matching(GRAPH, row_capacity={0: 2})


def test_a_warm_start_keeps_to_the_graph_and_the_capacities():
    m = gm.maximum_matching(GRAPH, row_capacity=2, col_capacity=2)
    again = gm.maximum_matching(GRAPH, row_capacity=2, col_capacity=2, initial=m)
    assert again.stats["start_size"] == again.size == m.size
    fewer = gm.maximum_matching(GRAPH, row_capacity=2, col_capacity=2, initial=([0], [2]))
    assert fewer.stats["start_size"] == 1
    assert gm.verify(GRAPH, fewer).size == m.size


@pytest.mark.parametrize(
    ("initial", "error", "message"),
    [
        (([0], [3]), ValueError, "row 0 and column 3 are no edge"),
        (([0, 0], [0, 0]), ValueError, "has an edge twice"),
        (([0, 0, 0], [0, 1, 2]), ValueError, "row 0 has more edges than its capacity"),
        (([5], [0]), ValueError, "there is no row 5"),
        (([0], [0, 1]), ValueError, "has 1 rows and 2 columns"),
        ([0, -1, -1], TypeError, "a result, or a pair of rows and columns"),
    ],
)
def test_a_wrong_start_is_refused(initial, error, message):
    with pytest.raises(error, match=f"initial.*{message}"):
        gm.maximum_matching(GRAPH, row_capacity=2, initial=initial)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"row_capacity": -1}, ValueError, r"row_capacity must be in \[0, 2\*\*62\]"),
        ({"row_capacity": [1, 2]}, ValueError, "row_capacity must be .* of length 3; got length 2"),
        ({"col_capacity": [1]}, ValueError, "col_capacity must be .* of length 4; got length 1"),
        ({"col_capacity": 1.5}, TypeError, "col_capacity"),
        ({"row_capacity": [[1, 1, 1]]}, ValueError, "row_capacity"),
        ({"algorithm": "hk"}, ValueError, "algorithm of a b-matching"),
        ({"init": "karp-sipser"}, ValueError, "init of a b-matching"),
        ({"backend": "cuda"}, ValueError, "backend of a b-matching"),
        ({"launch": "ct"}, TypeError, "takes no option 'launch'"),
    ],
)
def test_wrong_arguments_are_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        gm.maximum_matching(GRAPH, **{"row_capacity": 1, **wrong})


def test_a_run_that_stops_has_no_proof():
    m = gm.maximum_matching(GRAPH, row_capacity=2, time_limit=0)
    assert (m.size, m.proven) == (0, False)
    assert repr(m) == "BMatching(size 0, not proven maximum)"
    with pytest.raises(ValueError, match="not maximum: it has no cover"):
        m.vertex_cover()
    with pytest.raises(gm.CertificateError, match="not maximum"):
        gm.verify(GRAPH, m)


def test_ctrl_c_brings_what_there_is():
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.maximum_matching(GRAPH, row_capacity=2, callback=interrupt)
    assert not caught.value.result.proven


def test_tensors_come_back_as_tensors():
    torch = pytest.importorskip("torch")
    A = torch.tensor(GRAPH.toarray())
    m = gm.maximum_matching(A, row_capacity=torch.tensor([3, 1, 1]))
    assert all(
        isinstance(part, torch.Tensor)
        for part in (m.row_ind, m.col_degree, m.row_capacity, m.edges(), *m.vertex_cover())
    )
    assert gm.verify(A, m).size == 3
