"""Assignments with the least largest cost, against brute force, SciPy's matchings and the proof."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

import gpumatch as gm
from gpumatch.cpu.assignment import bottleneck as paths
from gpumatch.cpu.matching import engine
from gpumatch.dispatch import registry
from gpumatch.problems import bottleneck
from graphs import costs
from tests.assignment_cases import DTYPES

SHAPES = st.tuples(st.integers(0, 5), st.integers(0, 5))
COSTS = SHAPES.flatmap(
    lambda shape: (
        hnp.arrays(np.int64, shape, elements=st.integers(-3, 3))
        | hnp.arrays(np.float64, shape, elements=st.floats(-9, 9) | st.just(np.inf))
    )
)
BACKENDS = ["cpu", "reference", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.emulated])]


def by_brute_force(C, size):
    """The least largest cost of `size` allowed pairs; None if there are none so many."""
    nrows, ncols = C.shape
    best = None
    for rows in itertools.combinations(range(nrows), size):
        for cols in itertools.permutations(range(ncols), size):
            most = max(C[r, c] for r, c in zip(rows, cols))
            if most < np.inf and (best is None or most < best):
                best = most
    return best


def csr_of(C):
    """All costs of a dense matrix, zeros too."""
    nrows, ncols = C.shape
    indices = np.tile(np.arange(ncols), nrows)
    return csr_array((C.ravel(), indices, np.arange(nrows + 1) * ncols), shape=C.shape)


def by_bisection(C):
    """The same for all rows, by SciPy's matchings."""
    values = np.unique(C.data)
    rows, cols = C.tocoo().coords
    low, high = -1, values.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        kept = C.data <= values[middle]
        below = csr_array((np.ones(kept.sum()), (rows[kept], cols[kept])), shape=C.shape)
        full = np.count_nonzero(maximum_bipartite_matching(below, "column") >= 0) == C.shape[0]
        low, high = (low, middle) if full else (middle, high)
    return values[high]


@given(C=COSTS)
def test_full(C):
    size = min(C.shape)
    best = by_brute_force(C, size) if size else None
    if size and best is None:
        with pytest.raises(gm.InfeasibleError) as caught:
            gm.assign(C, objective="bottleneck")
        rows, cols = caught.value.rows, caught.value.cols
        few, many = (cols, rows) if C.shape[0] <= C.shape[1] else (rows, cols)
        assert few.size < many.size
        return
    a = gm.assign(C, objective="bottleneck")
    assert (a.size, a.objective, a.proven) == (size, best, True)
    assert gm.verify(C, a).objective == best


@given(C=COSTS)
def test_paths(C):
    sparse = gm.costs.SparseCosts(csr_of(C))
    arguments = {"objective": "bottleneck", "algorithm": "paths"}
    try:
        best = gm.assign(C, objective="bottleneck").objective
    except gm.InfeasibleError:
        with pytest.raises(gm.InfeasibleError):
            gm.assign(sparse, **arguments)
        return
    a = gm.assign(sparse, **arguments)
    assert (a.size, a.objective, a.proven) == (min(C.shape), best, True)
    assert gm.verify(sparse, a).objective == best


@pytest.mark.parametrize("family", ["spread", "mesh", "circuit", "kkt"])
@pytest.mark.parametrize("maximize", [False, True])
def test_paths_on_larger_problems(family, maximize):
    C = costs.make(family, 6 if family == "mesh" else 400, seed=3)
    wish = {"objective": "bottleneck", "maximize": maximize}
    a = gm.assign(C, algorithm="paths", **wish)
    assert gm.verify(C, a).objective == gm.assign(C, **wish).objective


@pytest.mark.parametrize("seed", range(4))
def test_few_thresholds_are_tried(seed, monkeypatch):
    """More and more at first, and then half of those that are left."""
    tried, suffices = [], bottleneck._Thresholds._suffices
    monkeypatch.setattr(
        bottleneck._Thresholds,
        "_suffices",
        lambda self, limit: tried.append(limit) or suffices(self, limit),
    )
    C = np.random.default_rng(seed).permutation(3600).reshape(60, 60)
    gm.assign(C, objective="bottleneck")
    assert len(tried) == len(set(tried)) <= 2 + np.log2(C.size)


def test_a_search_by_paths_goes_on_where_its_budget_ended(monkeypatch):
    monkeypatch.setattr(paths, "_BUDGET", 1)
    C = costs.make("spread", 300, seed=4)
    assert gm.verify(C, gm.assign(C, objective="bottleneck", algorithm="paths")).size == 300


def test_bounds_of_rows_and_columns_may_need_no_path(monkeypatch):
    """Each row needs 1, and each column of a square matrix: 5 for the last."""
    monkeypatch.setattr(bottleneck, "load", lambda _: pytest.fail("there are paths"))
    wish = {"objective": "bottleneck", "algorithm": "paths"}
    costs = csr_array(np.array([[1, 5], [1, 7]]))
    assert gm.assign(costs, **wish).objective == 5
    assert gm.assign(csr_array(costs.T), **wish).objective == 5


def test_a_search_by_paths_is_stopped_between_its_rows(monkeypatch):
    """After three of ten, each of which uses the budget up."""
    monkeypatch.setattr(paths, "_BUDGET", 1)
    entries = csr_array(np.eye(10) + 1)
    mates, asked = (np.full(10, -1, np.int32), np.full(10, -1, np.int32)), iter(range(9))
    paths.raise_threshold(
        (entries.indptr, entries.indices, entries.data), mates, 0.0, lambda: next(asked) == 3
    )
    assert (mates[0] >= 0).sum() == (mates[1] >= 0).sum() == 3


def test_a_search_by_paths_can_be_stopped():
    C = costs.make("spread", 3000, seed=4)
    a = gm.assign(C, objective="bottleneck", algorithm="paths", callback=lambda _: True)
    assert not a.proven


@pytest.mark.parametrize(
    ("given", "wish", "message"),
    [
        (np.eye(3), {}, "finds full assignments of sparse costs only"),
        (csr_array(np.eye(3)), {"cardinality": "maximum"}, "finds full assignments of sparse"),
        (csr_array(np.eye(3)), {"backend": "cuda"}, "'paths' runs on 'cpu', not on 'cuda'"),
    ],
)
def test_what_paths_do_not_take(given, wish, message):
    with pytest.raises(ValueError, match=message):
        gm.assign(given, objective="bottleneck", algorithm="paths", **wish)


@given(C=COSTS)
def test_maximum(C):
    a = gm.assign(C, objective="bottleneck", cardinality="maximum")
    assert a.size == gm.maximum_matching(abs(C) < np.inf).size
    assert a.objective == (by_brute_force(C, a.size) if a.size else None)
    gm.verify(C, a)


@given(C=COSTS)
def test_maximised(C):
    a = gm.assign(-C, objective="bottleneck", cardinality="maximum", maximize=True)
    least = gm.assign(C, objective="bottleneck", cardinality="maximum")
    assert a.objective == (None if least.objective is None else -least.objective)
    gm.verify(-C, a)


FAMILIES = [
    ("uniform_integer", 60), ("uniform_float", 50, 90), ("geom2", 80, 40), ("machol_wien", 30),
    ("two_cost", 70), ("constant", 20),
]  # fmt: skip
SPARSE_FAMILIES = [("spread", 800), ("mesh", 9), ("circuit", 500), ("kkt", 600)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("family", FAMILIES + SPARSE_FAMILIES, ids=lambda family: family[0])
def test_families(family, backend):
    C = costs.make(*family, seed=2)
    a = gm.assign(C, objective="bottleneck", backend=backend)
    matrix = csr_of(C) if isinstance(C, np.ndarray) else C
    wide = matrix if C.shape[0] <= C.shape[1] else csr_array(matrix.T)
    assert a.objective == by_bisection(wide)
    assert a.stats["backend"] == backend
    gm.verify(C, a)


@pytest.mark.parametrize("seed", range(4))
def test_sparse_and_dense_agree(seed):
    C = costs.make("spread", 120, seed=seed)
    dense = np.full(C.shape, np.inf)
    dense[C.nonzero()] = C.data
    sparse, full = (gm.assign(part, objective="bottleneck") for part in (C, dense))
    assert sparse.objective == full.objective


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype):
    C = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]]).astype(dtype)
    a = gm.assign(C, objective="bottleneck")
    assert a.objective == 0
    kind = np.dtype(dtype).kind
    assert type(a.objective) is (float if kind == "f" else int)
    assert a.pair_costs.dtype == (np.float64 if kind == "f" else np.int64)
    assert a.col_ind.tolist() == [1, 2, 0]


def test_large_integers_are_told_apart():
    C = np.array([[2**60 + 1, 2**60], [2**60 + 2, 2**60 + 3]])
    a = gm.assign(C, objective="bottleneck")
    assert a.objective == 2**60 + 2
    gm.verify(C, a)


def test_neighbouring_floats_are_told_apart():
    """All but the diagonal costs the same up to an ulp, and the search tries each."""
    n = 6
    C = 1 + np.arange(n * n).reshape(n, n) * np.spacing(1.0)
    np.fill_diagonal(C, 9)
    a = gm.assign(C, objective="bottleneck")
    assert a.objective == C[n - 1, 0]
    gm.verify(C, a)


def test_an_initial_assignment_is_where_the_search_begins():
    C = costs.make("uniform_float", 40, seed=1)
    a = gm.assign(C, objective="bottleneck")
    again = gm.assign(C, objective="bottleneck", initial=a)
    assert again.objective == a.objective
    assert 0 < again.stats["phases"] < a.stats["phases"]


def test_its_matchings_have_the_threads_that_are_asked_for(monkeypatch, request):
    threads, run = set(), engine.run
    registry.load.cache_clear()  # of the function itself
    request.addfinalizer(registry.load.cache_clear)  # and of this test's

    def recorded(task):
        threads.add(task.threads)
        return run(task)

    monkeypatch.setattr(engine, "run", recorded)
    gm.assign(CLAIMED, objective="bottleneck", backend="cpu", threads=3)
    assert threads == {3}


def test_what_comes_back():
    C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    a = gm.assign(C, objective="bottleneck")
    assert isinstance(a, gm.BottleneckAssignment)
    assert repr(a) == "BottleneckAssignment(3 pairs, objective 2, optimal)"
    assert len(a) == 3
    assert a.pair_costs.tolist() == [1, 2, 2]
    assert a.stats["seconds"].keys() == {"compilation", "costs", "search"}
    assert str(gm.verify(C, a)) == (
        "optimal: 3 pairs up to 2, and a cover of 1 vertices of all that are better, "
        "checked on 9 pairs"
    )
    with pytest.raises(ValueError, match="only a proven assignment of cardinality 'maximum'"):
        a.vertex_cover()
    again = pickle.loads(pickle.dumps(a))
    assert gm.verify(C, again) == gm.verify(C, a)
    assert len(gm.assign(C[:, :2], objective="bottleneck")) == 2


def test_a_time_limit_leaves_no_proof():
    C = costs.make("uniform_float", 300, seed=0)
    a = gm.assign(C, objective="bottleneck", time_limit=0)
    assert not a.proven
    with pytest.raises(ValueError, match="only a proven assignment has a threshold cover"):
        a.threshold_cover()
    with pytest.raises(gm.CertificateError):
        gm.verify(C, a)


def test_ctrl_c_leaves_no_proof():
    def interrupt(progress):
        if next(calls) > 12:
            raise KeyboardInterrupt

    C, calls = costs.make("uniform_float", 200, seed=0), itertools.count()
    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(C, objective="bottleneck", callback=interrupt)
    a = caught.value.result
    assert not a.proven
    assert a.size > 0
    assert np.array_equal(C[a.row_ind, a.col_ind], a.pair_costs)


def test_a_callback_stops_between_thresholds():
    C = costs.make("uniform_float", 200, seed=0)
    calls = itertools.count()
    a = gm.assign(C, objective="bottleneck", callback=lambda _: next(calls) > 12)
    assert not a.proven
    assert a.size > 0
    assert np.array_equal(C[a.row_ind, a.col_ind], a.pair_costs)


def test_wherever_a_callback_stops_the_best_so_far_comes_back():
    C = costs.make("points", 60, seed=1)
    stopped = []
    for most in range(200):
        calls = itertools.count()
        a = gm.assign(C, objective="bottleneck", callback=lambda _, c=calls, m=most: next(c) >= m)
        assert np.array_equal(C[a.row_ind, a.col_ind], a.pair_costs)
        stopped.append((a.size, -(a.objective or 0) if a.size == 60 else 0))
        if a.proven:
            break
        if a.size == 60:
            with pytest.raises(gm.CertificateError, match="only a proven assignment has a thresh"):
                gm.verify(C, a)
    assert a.proven
    assert stopped == sorted(stopped)
    assert sum(0 < size < 60 for size, _ in stopped) > 3
    assert sum(size == 60 for size, _ in stopped) > 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"objective": "max"}, "objective must be one of"),
        ({"cardinality": "any"}, "'any' has no bottleneck"),
        ({"cost_limit": 3}, "takes no cost_limit"),
        ({"algorithm": "auction"}, "algorithm must be 'auto'"),
        ({"finish": "exact"}, "algorithm must be 'auto'"),
    ],
)
def test_wrong_arguments(wrong, message):
    with pytest.raises(ValueError, match=message):
        gm.assign(np.eye(2), **{"objective": "bottleneck", **wrong})


# -- the checker -----------------------------------------------------------------------------------

CLAIMED = np.array([[1, 7, 9], [6, 5, 9], [2, 3, 8]])  # (0, 0), (1, 1), (2, 2): the cover misses 2


class Claim:
    """A result that anybody may hand in; right unless told otherwise."""

    row_to_col, col_to_row = np.arange(3), np.arange(3)
    pair_costs, objective = np.array([1, 5, 8]), 8
    maximize, cardinality = False, "full"
    covers = (np.array([]), np.array([0, 1])), (np.arange(3), np.array([]))

    def __init__(self, **wrong):
        vars(self).update(wrong)

    def threshold_cover(self):
        return self.covers[0]

    def vertex_cover(self):
        return self.covers[1]


def test_a_right_claim_is_certified():
    assert gm.verify(CLAIMED, Claim()).bound == 2
    assert gm.verify(CLAIMED, Claim(cardinality="maximum")).size == 3


NONE = np.array([], int)
SWAPPED = {"row_to_col": np.array([1, 0, 2]), "col_to_row": np.array([1, 0, 2])}
WRONG = {
    "mates": ({"col_to_row": np.array([0, 1, 1])}, "row 2 is matched to column 2, which"),
    "costs": ({"pair_costs": np.array([1, 5, 7])}, "pair_costs does not agree"),
    "other pairs": (SWAPPED, "pair_costs does not agree"),
    "objective": ({"objective": 7}, "objective is 7, but the pair farthest from best costs 8"),
    "too few": (
        {"row_to_col": np.array([0, 1, -1]), "col_to_row": np.array([0, 1, -1]),
         "pair_costs": np.array([1, 5]), "objective": 5},
        "2 pairs are assigned, not the smaller side, 3",
    ),
    "a cover too large": ({"covers": ((np.arange(3), NONE),)}, "cover has 3 vertices, which 3"),
    "a cover that misses a pair": (
        {"covers": ((NONE, np.array([0])),)},
        "pair of row 0 and column 1 is better than the objective, but not covered",
    ),
    "a cover of all too small": (
        {"cardinality": "maximum", "covers": (Claim.covers[0], (np.arange(2), NONE))},
        "3 pairs are assigned, but the cover has 2",
    ),
    "a cover of all that misses a pair": (
        {"cardinality": "maximum",
         "covers": (Claim.covers[0], (np.array([0, 1]), np.array([0])))},
        "pair of row 2 and column 1 is not in the cover",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_claim_is_refused(wrong, message):
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify(CLAIMED, Claim(**wrong))


LIES = {
    "maximize": ({"maximize": "no"}, "maximize must be True or False; got 'no'"),
    "cardinality": ({"cardinality": "any"}, "the cardinality must be one of"),
    "no number": ({"objective": "8"}, "the objective must be a number; got '8'"),
    "bool": ({"objective": True}, "the objective must be a number; got True"),
    "nan": ({"objective": np.nan}, "the objective must be a number; got nan"),
    "type": ({"pair_costs": np.array([1.0, 5.0, 8.0])}, "pair_costs does not agree .* in its type"),
    "size": ({"size": 2}, "there are 3 pairs, but the size is 2"),
    "small mates": ({"row_to_col": np.array([0, 1, -126], np.int8)}, "outside"),
    "bool mates": ({"row_to_col": np.ones(3, bool)}, "must be 3 integers"),
}


@pytest.mark.parametrize(("wrong", "message"), LIES.values(), ids=LIES)
def test_what_a_claim_says_of_itself_is_checked(wrong, message):
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify(CLAIMED, Claim(**wrong))


@pytest.mark.parametrize("number", [float, np.float64])
@pytest.mark.parametrize("maximize", [False, True])
def test_objectives_of_large_integers_are_not_rounded(number, maximize):
    """The rounded one is a cost of its own, or better than all, so that nothing need be covered."""
    sign = -1 if maximize else 1
    C = sign * (2**53 + np.array([[1, 3], [3, 1]]))
    a = gm.assign(C, objective="bottleneck", maximize=maximize)
    assert gm.verify(C, a).objective == sign * (2**53 + 1)
    for objective in (2**53, 2**53 + 2):
        a.objective = number(sign * objective)
        with pytest.raises(gm.CertificateError, match="but the pair farthest from best costs"):
            gm.verify(C, a)


def test_an_infinite_cost_that_asks_for_a_pair_is_refused():
    C = np.array([[1, -np.inf, 9], [6, 5, 9], [2, 3, 8]])
    with pytest.raises(gm.CertificateError, match="asks for a pair"):
        gm.verify(C, Claim(pair_costs=np.array([1.0, 5.0, 8.0])))


def test_a_column_that_names_the_row_of_another_is_refused():
    wide = np.column_stack([CLAIMED, [9, 9, 9]])
    assert gm.verify(wide, Claim(col_to_row=np.array([0, 1, 2, -1]))).size == 3
    with pytest.raises(gm.CertificateError, match="column 3 is matched to row 1, which"):
        gm.verify(wide, Claim(col_to_row=np.array([0, 1, 2, 1])))


def test_a_value_that_is_not_the_best_is_refused():
    """No cover of fewer than three vertices touches all pairs below 9."""
    worse = {"row_to_col": np.array([0, 2, 1]), "col_to_row": np.array([0, 2, 1])}
    claim = Claim(**worse, pair_costs=np.array([1, 9, 3]), objective=9)
    with pytest.raises(gm.CertificateError, match="better than the objective, but not covered"):
        gm.verify(CLAIMED, claim)


def test_one_cost_for_all_pairs_is_refused():
    """It would agree with each of them."""
    C = np.full((3, 3), 5)
    claim = Claim(pair_costs=np.array([5]), objective=5, covers=((NONE, NONE),))
    with pytest.raises(gm.CertificateError, match="pair_costs does not agree"):
        gm.verify(C, claim)


def test_an_objective_without_pairs_is_refused():
    claim = Claim(row_to_col=NONE, col_to_row=-np.ones(3, int), pair_costs=NONE, objective=None)
    claim.covers = ((NONE, NONE),)
    C = np.zeros((0, 3))
    assert gm.verify(C, claim).size == 0
    claim.objective = 0
    with pytest.raises(gm.CertificateError, match="there are no pairs, but the objective is 0"):
        gm.verify(C, claim)


def test_a_forbidden_pair_is_refused():
    C = np.where(CLAIMED == 8, np.inf, CLAIMED)
    with pytest.raises(gm.CertificateError, match="row 2 is assigned to column 2, but that pair"):
        gm.verify(C, Claim())
