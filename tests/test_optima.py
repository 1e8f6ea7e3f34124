"""Pairs of other optima, against all assignments and all matchings of small problems."""

from __future__ import annotations

import copy
import itertools

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import gpumatch as gm
from tests.test_ranking import random_problem


def best_with_each_pair(costs, limit, maximize, cardinality):
    """For each pair, the least value of an assignment that has it; and all values, in order.

    Values are to be minimised, and count a limit as `assign` does. Assignments of all
    cardinalities are listed, and those that compete are kept.
    """
    sign = -1 if maximize else 1
    nrows, ncols = costs.shape
    limits = np.broadcast_to(0 if limit is None else limit, nrows) * sign
    found = []

    def extend(row, used, value, pairs):
        if row == nrows:
            found.append((value, pairs))
            return
        extend(row + 1, used, value, pairs)
        for col in range(ncols):
            cost = costs[row, col].item() * sign
            is_near = cardinality != "maximum" or limit is None or cost <= limits[row]
            if not used >> col & 1 and np.isfinite(cost) and is_near:
                base = 0 if cardinality == "maximum" else limits[row]
                extend(row + 1, used | 1 << col, value + cost - base, [*pairs, (row, col)])

    extend(0, 0, 0, [])
    if cardinality == "maximum":
        most = max(len(pairs) for _, pairs in found)
    elif cardinality == "full" and limit is None:
        most = min(nrows, ncols)
    else:
        most = None
    found = [one for one in found if most is None or len(one[1]) == most]
    best = np.full(costs.shape, np.inf)
    for value, pairs in found:
        for pair in pairs:
            best[pair] = min(best[pair], value)
    return best, sorted(value for value, _ in found)


@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
def test_alternatives_are_those_of_brute_force(cardinality):
    rng = np.random.default_rng(["full", "maximum", "any"].index(cardinality))
    checked = 0
    for _ in range(120):
        costs, limit, maximize = random_problem(rng)
        costs = costs[:4, :5]
        limit = limit[:4] if np.ndim(limit) else limit
        arguments = {"maximize": maximize, "cost_limit": limit, "cardinality": cardinality}
        try:
            a = gm.assign(costs, **arguments)
        except gm.InfeasibleError:
            continue
        if not costs.size:
            continue
        best, values = best_with_each_pair(costs, limit, maximize, cardinality)
        for within in (0, float(rng.choice([1, 2.5, 50, 3000]))):
            other = gm.alternatives(costs, a, within=within)
            wanted = np.where(best - values[0] <= within + 1e-9, best - values[0], np.inf)
            found = np.full(costs.shape, np.inf)
            found[other.row_ind, other.col_ind] = other.matrix.data
            np.testing.assert_allclose(found, wanted, atol=1e-9)
            near = [value for value in values if value - values[0] <= within + 1e-9]
            assert other.is_unique == (len(near) == 1)
            checked += len(other)
            assert gm.verify(costs, other).size == len(other)
            for row, col in other.edges()[:3].tolist():
                mates = other.witness(row, col)
                assert mates[row] == col
                assert np.unique(mates[mates >= 0]).size == (mates >= 0).sum()
    assert checked > 240


def test_witnesses_cost_what_the_matrix_says():
    costs = np.random.default_rng(2).integers(0, 9, (6, 7))
    a = gm.assign(costs)
    other = gm.alternatives(costs, a, within=3)
    for row, col in other.edges().tolist():
        mates = other.witness(row, col)
        assert costs[np.arange(6), mates].sum() - a.objective == other.matrix[row, col]
    is_inside = np.zeros(costs.shape, bool)
    is_inside[other.row_ind, other.col_ind] = True
    with pytest.raises(ValueError, match="in none of these"):
        other.witness(*np.argwhere(~is_inside)[0].tolist())


def test_the_order_shows_what_is_left_out():
    costs = np.random.default_rng(3).integers(0, 4, (30, 30))
    a = gm.assign(costs)
    other = gm.alternatives(costs, a)
    tight = costs == a.row_dual[:, None] + a.col_dual
    rows, cols = tight.nonzero()
    assert (other.row_block[rows] <= other.col_block[cols]).all()
    same = other.row_block[rows] == other.col_block[cols]
    assert (rows[same] == other.row_ind).all()
    assert (cols[same] == other.col_ind).all()


@pytest.mark.parametrize("within", [0, 2])
def test_false_alternatives_are_refused(within):
    costs = np.random.default_rng(4).integers(0, 5, (12, 14))
    a = gm.assign(costs)
    true = gm.alternatives(costs, a, within=within)
    gm.verify(costs, true)
    matrix = true.matrix
    at = next(k for k in range(len(true)) if a.row_to_col[true.row_ind[k]] != true.col_ind[k])
    left_out, listed = matrix.toarray() * 0 + 1, matrix.copy()
    left_out[true.row_ind, true.col_ind] = 0
    row, col = np.argwhere(left_out)[0]
    keep = np.arange(len(true)) != at
    fewer = sparse.csr_array(
        (matrix.data[keep], (true.row_ind[keep], true.col_ind[keep])), shape=matrix.shape
    )
    rows, cols = np.append(true.row_ind, row), np.append(true.col_ind, col)
    more = sparse.coo_array((np.append(matrix.data, 0), (rows, cols)), shape=matrix.shape).tocsr()
    listed.data = listed.data.copy()
    listed.data[at] += 1
    worse = gm.assign(costs + np.eye(12, 14, dtype=int))
    forgeries = [
        ({"matrix": fewer}, "is left out"),
        ({"matrix": more}, "is listed"),
        ({"matrix": listed}, "more, not"),
        ({"is_unique": not true.is_unique}, "is_unique"),
        ({"tolerance": 1e-9}, "tolerance"),
        ({"assignment": worse}, None),
    ]
    if within == 0:
        row_block = true.row_block.copy()
        row_block[true.row_ind[at]] += 1
        forgeries.append(({"row_block": row_block}, "the blocks of"))
    for changes, message in forgeries:
        false = copy.copy(true)
        vars(false).update(changes)
        with pytest.raises(gm.CertificateError, match=message):
            gm.verify(costs, false)


def test_sparse_and_dense_costs_have_the_same_alternatives():
    rng = np.random.default_rng(5)
    dense = np.where(rng.random((40, 50)) < 0.3, rng.integers(1, 6, (40, 50)), 0)
    held = np.where(dense > 0, dense.astype(float), np.inf)
    a = gm.assign(held)
    for within in (0, 2):
        one = gm.alternatives(held, a, within=within)
        two = gm.alternatives(sparse.csr_array(dense), a, within=within, threads=1)
        assert (one.matrix.toarray() == two.matrix.toarray()).all()
        assert (one.edges() == two.edges()).all()


def test_floats_near_a_tie_are_within_rounding():
    costs = np.full((3, 3), 0.1) + np.eye(3)
    a = gm.assign(costs)
    other = gm.alternatives(costs, a)
    assert 0 < other.tolerance < 1e-13
    assert len(other) == 6
    assert not other.is_unique


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_an_empty_problem_has_one_optimum(shape):
    a = gm.assign(np.zeros(shape))
    for within in (0, 1):
        other = gm.alternatives(np.zeros(shape), a, within=within)
        assert other.is_unique
        assert other.matrix.shape == shape


def test_no_pair_is_too_far_for_inf():
    costs = np.random.default_rng(7).random((5, 5))
    costs[0, 1:] = np.inf
    a = gm.assign(costs)
    every, most = (gm.alternatives(costs, a, within=most) for most in (np.inf, 10))
    assert (every.matrix != most.matrix).nnz == 0
    assert len(every) == 17


@pytest.mark.parametrize(
    ("costs", "within", "words"),
    [
        (np.eye(3), -1, "within"),
        (np.eye(2), 0, "other rows"),
        (1 - np.eye(3), 0, "not an optimum of these costs"),
        (np.eye(3) - 1, 0, "not an optimum of these costs"),
    ],
    ids=["within", "other rows", "other pairs", "other costs"],
)
def test_wrong_arguments_of_alternatives(costs, within, words):
    """The assignment is that of other costs, or `within` is wrong."""
    with pytest.raises(ValueError, match=words):
        gm.alternatives(np.eye(3), gm.assign(costs), within=within)
    with pytest.raises(TypeError, match="within"):
        gm.alternatives(np.eye(3), gm.assign(np.eye(3)), within="1")
    for a in ([1, 0, 2], gm.assign(np.eye(3), objective="bottleneck")):
        with pytest.raises(TypeError, match="a must be an Assignment"):
            gm.alternatives(np.eye(3), a)


# -- matchings -------------------------------------------------------------------------------------


def all_maximum(A):
    nrows, ncols = A.shape
    found = []

    def extend(row, used, pairs):
        if row == nrows:
            found.append(pairs)
            return
        extend(row + 1, used, pairs)
        for col in range(ncols):
            if A[row, col] and not used >> col & 1:
                extend(row + 1, used | 1 << col, [*pairs, (row, col)])

    extend(0, 0, [])
    most = max(map(len, found))
    return [set(pairs) for pairs in found if len(pairs) == most]


def test_edges_of_matchings_are_those_of_brute_force():
    rng = np.random.default_rng(7)
    for _ in range(300):
        shape = rng.integers(0, 6, 2)
        A = rng.random(shape) < rng.choice([0.2, 0.4, 0.8])
        matchings = all_maximum(A)
        possible, forced = gm.possible_edges(A), gm.forced_edges(A)
        assert set(map(tuple, possible.edges().tolist())) == set().union(*matchings)
        assert set(map(tuple, forced.edges().tolist())) == set.intersection(*matchings)
        assert possible.is_unique == forced.is_unique == (len(matchings) == 1)
        rows, cols = A.nonzero()
        assert (possible.row_block[rows] <= possible.col_block[cols]).all()
        assert gm.verify(A, possible).size == len(possible)
        assert gm.verify(A, forced).size == len(forced)
        for row, col in possible.edges().tolist():
            mates = possible.witness(row, col).tolist()
            pairs = {(i, j) for i, j in enumerate(mates) if j >= 0}
            assert pairs in matchings
            assert (row, col) in pairs


def test_a_given_matching_is_used_and_must_be_maximum():
    A = sparse.csr_array(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]]))
    m = gm.maximum_matching(A)
    assert gm.possible_edges(A, m).edges().tolist() == [[0, 1], [1, 0], [2, 2]]
    assert gm.forced_edges(A, np.array([1, 0, 2])).is_unique
    with pytest.raises(ValueError, match="not a maximum matching: it has 2 of 3"):
        gm.possible_edges(A, np.array([0, -1, 2]))
    with pytest.raises(ValueError, match="none of these"):
        gm.possible_edges(A, m).witness(0, 0)


def test_graphs_of_networkx_and_components_agree():
    graph = nx.bipartite.gnmk_random_graph(60, 60, 200, seed=3)
    A = nx.bipartite.biadjacency_matrix(graph, range(60))
    edges = gm.possible_edges(graph, None)
    assert (edges.edges() == gm.possible_edges(A).edges()).all()
    d = gm.linalg.dmperm(A)
    inside = sum(
        int(abs(A[d.p[r:s]][:, d.q[u:v]] != 0).sum())
        for r, s, u, v in zip(d.r[:-1], d.r[1:], d.s[:-1], d.s[1:])
    )
    assert len(edges) == inside
    assert list(itertools.islice(edges.edges().tolist(), 1))


def forged(edges, **fields):
    other = copy.copy(edges)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


FORGERIES = {
    "others": lambda e, f: forged(e, matrix=f.matrix),
    "forced": lambda e, f: forged(e, forced=True),
    "unique": lambda e, f: forged(e, is_unique=not e.is_unique),
    "one block": lambda e, f: forged(
        e, row_block=e.row_block * 0 + 1, col_block=e.col_block * 0 + 1
    ),
    "rows apart": lambda e, f: forged(e, row_block=np.arange(e.row_block.size, dtype=np.int32)),
    "columns earlier": lambda e, f: forged(e, col_block=e.col_block * 0),
    "fewer pairs": lambda e, f: forged(e, row_to_col=np.where(e.row_block == 1, -1, e.row_to_col)),
    "no pairs": lambda e, f: forged(e, row_to_col=np.full_like(e.row_to_col, -1)),
    "a column twice": lambda e, f: forged(e, row_to_col=e.row_to_col * 0),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_edges_are_refused(name):
    A = np.array(
        [
            [1, 1, 0, 0, 0, 1],
            [0, 0, 1, 1, 0, 0],
            [0, 0, 1, 1, 0, 1],
            [0, 0, 0, 0, 1, 0],
            [0, 0, 0, 0, 0, 1],
            [0, 0, 0, 0, 0, 1],
        ]
    )
    edges, forced = gm.possible_edges(A), gm.forced_edges(A)
    gm.verify(A, edges)
    gm.verify(A, forced)
    assert (len(edges), len(forced)) == (9, 1)
    with pytest.raises(gm.CertificateError):
        gm.verify(A, FORGERIES[name](edges, forced))
