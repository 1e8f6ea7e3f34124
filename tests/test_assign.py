"""Assignment: every exact algorithm on every family and dtype, and what an Assignment is."""

from __future__ import annotations

import functools
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import block_diag, coo_array, csr_array, random_array

import gpumatch as gm
import gpumatch.assignment
from gpumatch.problems.request import CARDINALITIES
from graphs import costs
from tests.assignment_cases import (
    CASES,
    EVERY_ALGORITHM,
    EVERY_ALGORITHM_AND_DTYPE,
    FLOAT_AUCTIONS,
    PROVEN,
    SPARSE,
    WITH_OPTIONS,
)
from tests.assignment_checks import check_proof, check_violator, close, optimum, sparse


@functools.cache
def optimum_of_case(name):
    case = next(case for case in CASES if str(case) == name)
    return optimum(case.costs, case.maximize)


def csr_arrays(matrix):
    """All entries as (indptr, indices, data, shape), in the matrix's own dtype."""
    nrows, ncols = matrix.shape
    return (
        np.arange(nrows + 1) * ncols,
        np.tile(np.arange(ncols), nrows),
        matrix.ravel(),
        (nrows, ncols),
    )


# -- every algorithm -------------------------------------------------------------------------------


def test_every_family_is_a_case():
    assert {case.family for case in CASES} == costs.FAMILIES.keys()


@pytest.mark.parametrize(("run", "case"), PROVEN)
def test_every_algorithm_proves_the_optimum(run, case):
    matrix = case.costs
    a = gm.assign(matrix, maximize=case.maximize, **run.arguments)
    certificate = gm.verify(matrix, a)
    assert a.proven
    assert a.size == certificate.size == min(matrix.shape)
    assert close(a.objective, optimum_of_case(str(case)))
    assert close(certificate.bound, a.objective)
    assert isinstance(a.objective, int if matrix.dtype.kind == "i" else float)


@pytest.mark.parametrize(("run", "case", "form"), WITH_OPTIONS)
def test_every_option(run, case, form):
    """Exact algorithms prove the optimum, but for auctions that end early; others bound it."""
    matrix = case.costs + 1
    given = csr_array(matrix) if form == "sparse" else matrix
    a = gm.assign(given, maximize=case.maximize, **run.arguments)
    assert a.size == min(matrix.shape)
    assert close(a.objective, matrix[a.row_ind, a.col_ind].sum())
    assert a.proven or run.algorithm == "dgs" or ("finish", "epsilon") in run.options
    sign = -1 if case.maximize else 1
    least = sign * optimum(matrix, case.maximize)
    rounding = 1e-9 * abs(least)
    assert least - rounding <= sign * a.objective <= least + a.gap + rounding
    if a.proven:
        gm.verify(matrix, a)
    assert run.options == tuple((name, a.stats[name]) for name, _ in run.options)


@pytest.mark.parametrize(("run", "case"), FLOAT_AUCTIONS)
def test_an_auction_of_floats_ends_within_its_gap(run, case):
    """Not closed: n epsilons are a 32nd of the range of the costs at most."""
    matrix = case.costs
    a = gm.assign(matrix, maximize=case.maximize, finish="epsilon", **run.arguments)
    assert a.size == min(matrix.shape)
    assert matrix[a.row_ind, a.col_ind].sum() == pytest.approx(a.objective, rel=1e-12)
    sign = -1 if case.maximize else 1
    least = sign * optimum_of_case(str(case))
    rounding = 1e-12 * abs(least)
    assert least - rounding <= sign * a.objective <= least + a.gap + rounding
    assert -rounding <= a.gap <= (matrix.max() - matrix.min()) / 32 + rounding
    slack = sign * (matrix - a.row_dual[:, None] - a.col_dual)
    assert slack.min() >= -rounding


@pytest.mark.parametrize(("run", "case"), SPARSE)
def test_sparse_costs_agree_with_dense(run, case):
    matrix = case.costs
    a = gm.assign(csr_array(matrix + 1), maximize=not case.maximize, **run.arguments)
    gm.verify(csr_array(matrix + 1), a)
    assert close(a.objective, optimum(matrix + 1, not case.maximize))


@EVERY_ALGORITHM_AND_DTYPE
def test_every_dtype(run, dtype):
    top = 2 if dtype is np.bool_ else 100
    matrix = np.random.default_rng(5).integers(0, top, (23, 31)).astype(dtype)
    expected = {True: optimum(matrix, True), False: optimum(matrix)}
    for maximize, form in itertools.product((False, True), (np.asarray, csr_arrays)):
        for source in (form(matrix), form(matrix.T)):
            a = gm.assign(source, maximize=maximize, **run.arguments)
            gm.verify(source, a)
            assert a.objective == expected[maximize]
            assert isinstance(a.objective, float if np.dtype(dtype).kind == "f" else int)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint32])
@EVERY_ALGORITHM
def test_the_ends_of_a_dtype(run, dtype):
    info = np.iinfo(dtype)
    most = min(info.max, 2**59)
    matrix = np.array([[max(info.min, -most), most], [most, most - 1]], dtype)
    expected = int(matrix[0, 0]) + most - 1, 2 * most
    for maximize in (False, True):
        a = gm.assign(matrix, maximize=maximize, **run.arguments)
        gm.verify(matrix, a)
        assert a.objective == expected[maximize]


entries = st.one_of(
    st.integers(-3, 3),
    st.integers(-(10**6), 10**6),
    st.just(0),
    st.sampled_from([10**15, -(10**15)]),
)
matrices = st.tuples(st.integers(0, 9), st.integers(0, 9)).flatmap(
    lambda shape: hnp.arrays(np.int64, shape, elements=entries)
)


@EVERY_ALGORITHM
@given(matrix=matrices, maximize=st.booleans())
def test_every_algorithm_agrees_with_scipy(run, matrix, maximize):
    a = gm.assign(matrix, maximize=maximize, **run.arguments)
    assert gm.verify(matrix, a).bound == a.objective == optimum(matrix, maximize)


floats = st.floats(-1e6, 1e6, allow_nan=False) | st.sampled_from([0.0, 1.0, 1 + 1e-12, math.inf])


@EVERY_ALGORITHM
@given(
    matrix=hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=7), elements=floats
    ),
    maximize=st.booleans(),
    cardinality=st.sampled_from(["full", "maximum", "any"]),
    cost_limit=st.none() | st.integers(-3, 3) | st.floats(-5, 5),
)
def test_every_wish_is_proven(run, matrix, maximize, cardinality, cost_limit):
    turned = -matrix if maximize else matrix
    wish = {"maximize": maximize, "cardinality": cardinality, "cost_limit": cost_limit}
    for source in (turned, sparse(turned)):
        try:
            a = gm.assign(source, **wish, **run.arguments)
        except gm.InfeasibleError as exc:
            assert (cardinality, cost_limit) == ("full", None)
            check_violator(np.isfinite(matrix), exc)
        else:
            check_proof(source, a)


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"C": [[1.0, math.nan]]}, ValueError, "NaN"),
        ({"C": csr_array([[1.0, math.nan]])}, ValueError, "NaN"),
        ({"C": [[1.0, -math.inf]]}, ValueError, "-inf"),
        ({"C": csr_array([[1.0, -math.inf]])}, ValueError, "-inf"),
        ({"C": [[1.0, math.inf]], "maximize": True}, ValueError, "hold inf"),
        ({"C": [1, 2]}, ValueError, "2 dimensions; got 1"),
        ({"C": [["a"]]}, TypeError, "real numbers; got dtype"),
        ({"C": [[1j]]}, TypeError, "real numbers; got dtype complex128"),
        ({"C": ([0, 1], [0], (1, 1))}, TypeError, "got 3 parts"),
        ({"C": ([0, 1], [0], [], (1, 1))}, ValueError, "data must have 1 entries; got 0"),
        ({"C": gm.BipartiteGraph(np.eye(2))}, TypeError, "no costs"),
        ({"cardinality": "most"}, ValueError, "cardinality must be one of"),
        ({"cost_limit": "1"}, TypeError, "cost_limit"),
        ({"cost_limit": True}, TypeError, "cost_limit"),
        ({"cost_limit": -math.inf}, ValueError, "cost_limit must be None or finite"),
        ({"cost_limit": 2**61}, ValueError, "too large"),
        ({"C": [[0.5]], "cost_limit": 10**400}, ValueError, "cost_limit must be None or finite"),
        ({"algorithm": "hk"}, ValueError, "algorithm must be 'auto' or one of"),
        (
            {"algorithm": "shortest-augmenting-path", "backend": "reference"},
            ValueError,
            "not on 'reference'",
        ),
        ({"launch": "ct"}, TypeError, "^assign got an unexpected argument 'launch'$"),
        (
            {"maximise": True},
            TypeError,
            r"^assign got an unexpected argument 'maximise'; did you mean 'maximize'\?$",
        ),
        ({"cost_limt": 3}, TypeError, r"argument 'cost_limt'; did you mean 'cost_limit'\?$"),
        ({"row_labels": []}, TypeError, r"argument 'row_labels'; did you mean 'row_nodes'\?$"),
        ({"colour": 1}, TypeError, "^assign got an unexpected argument 'colour'$"),
        ({"finsh": "exact"}, TypeError, r"argument 'finsh'; did you mean 'finish'\?$"),
        (
            {"algorithm": "engine", "finish": "epsilon"},
            TypeError,
            "'engine' takes no option 'finish'; these do: 'auction'$",
        ),
        (
            {"algorithm": "auction", "finish": "best"},
            ValueError,
            r"finish must be one of \('exact', 'epsilon'\); got 'best'",
        ),
        ({"maximize": "no"}, TypeError, "maximize must be True or False; got 'no'"),
        ({"maximize": 0.1}, TypeError, "maximize must be True or False; got 0.1"),
        ({"progress": 1}, TypeError, "progress must be True or False; got 1"),
        ({"seed": -1}, ValueError, "seed"),
        ({"threads": 0}, ValueError, "threads"),
        (
            {"initial": [0, 0]},
            ValueError,
            "initial: row . is matched to column 0, which is matched to row",
        ),
        ({"initial": [0]}, ValueError, "initial: the mates of the rows must be 2 integers"),
        ({"initial": [0, 7]}, ValueError, "initial: row 1 is matched to column 7"),
        ({"initial": [0.0, 1.0]}, TypeError, "initial must be integers"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        gm.assign(**{"C": [[1, 2], [3, 4]]} | arguments)


def test_two_rows_of_an_initial_matching_that_share_a_column_are_named():
    with pytest.raises(ValueError, match=r"row (1|2) is matched to column 0, .* to row (?!\1)[12]"):
        gm.assign(np.ones((3, 3)), initial=[-1, 0, 0])


def test_all_but_the_costs_is_given_by_name():
    with pytest.raises(TypeError, match="positional argument"):
        gm.assign([[1, 2], [3, 4]], 0.1)


def test_numpy_bools_are_bools():
    a = gm.assign([[1, 2], [4, 3]], maximize=np.True_, progress=np.False_)
    assert a.objective == 6
    assert a.maximize is True


def test_the_callers_costs_are_not_changed():
    matrix = np.random.default_rng(1).random((20, 30))
    before = matrix.copy()
    for maximize in (False, True):
        gm.assign(matrix, maximize=maximize)
        gm.assign(matrix.T, maximize=maximize)
    assert np.array_equal(matrix, before)
    matrix.flags.writeable = False
    gm.assign(matrix)


# -- beginning from another assignment -------------------------------------------------------------


@pytest.mark.parametrize("shape", [(60, 60), (60, 90), (90, 60)])
@pytest.mark.parametrize("wish", [{}, {"cost_limit": 20}, {"maximize": True}], ids=str)
@EVERY_ALGORITHM
def test_beginning_from_an_assignment_of_like_costs(run, shape, wish):
    rng = np.random.default_rng(3)
    first = rng.integers(0, 100, shape)
    then = first + rng.integers(-2, 3, shape)
    a = gm.assign(first, **wish, **run.arguments)
    for matrix in (first, then, then.astype(float), csr_array(then + 5)):
        expected = gm.assign(matrix, **wish, **run.arguments).objective
        for initial in (a, a.row_to_col):
            again = gm.assign(matrix, initial=initial, **wish, **run.arguments)
            gm.verify(matrix, again)
            assert again.objective == expected


def test_beginning_from_a_matching():
    matrix = np.random.default_rng(5).integers(0, 100, (20, 30))
    m = gm.maximum_matching(matrix < 50)
    a = gm.assign(matrix, initial=m)
    assert a.objective == optimum(matrix)
    assert gm.maximum_matching(np.ones((20, 30)), initial=a, time_limit=0).size == 20


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(90, 90), (240, 320), (320, 240)])
def test_beginning_from_the_answer_needs_no_search(shape, maximize):
    matrix = np.random.default_rng(3).integers(0, 10**6, shape)
    a = gm.assign(matrix, maximize=maximize)
    again = gm.assign(matrix, maximize=maximize, initial=a)
    assert work(again) == (0, 0)
    for shift in (-0.4, 0.4):  # prices of floats are rounded
        rough = gm.assign(matrix.astype(float), maximize=maximize)
        rough.row_dual, rough.col_dual = rough.row_dual - shift, rough.col_dual + shift
        assert work(gm.assign(matrix, maximize=maximize, initial=rough)) == (0, 0)


def work(a):
    """Rows that are matched anew, and scanned rows of all phases; one compiled call counts none."""
    trace = a.stats["trace"]
    return tuple(sum(phase.get(part, 0) for phase in trace) for part in ("found", "scans"))


def test_prices_to_begin_from_may_be_many_times_the_largest_cost():
    """Each column must be cheaper than the next by 1, which is the largest cost."""
    chain = np.where(np.eye(9, dtype=bool), 1, np.where(np.eye(9, k=-1, dtype=bool), 0, math.inf))
    a = gm.assign(chain)
    assert np.ptp(a.col_dual) >= 8
    assert work(gm.assign(chain, initial=a)) == (0, 0)


def test_prices_to_begin_from_that_are_too_large_for_the_sums_are_cut():
    huge = np.array([[2**59, 1], [5, 2**58]])
    small = np.array([[2, 1], [5, 4]])
    for first, then in ((huge, small), (small, huge)):
        a = gm.assign(then, initial=gm.assign(first, maximize=True))
        assert gm.verify(then, a).objective == gm.assign(then).objective


@pytest.mark.parametrize("ncols", [2, 4])
def test_prices_to_begin_from_are_as_many_as_the_columns(ncols):
    with pytest.raises(ValueError, match=r"initial: its shape is not that .* \(2, 3\)"):
        gm.assign(np.ones((2, 3)), initial=gm.assign(np.ones((2, ncols))))


# -- stopping --------------------------------------------------------------------------------------


def stopped_at(matrix, stop_at, **wish):
    ticks = itertools.count(1)
    return gm.assign(matrix, callback=lambda progress: next(ticks) == stop_at, **wish)


@pytest.mark.parametrize("wish", [{}, {"cardinality": "any"}, {"cardinality": "maximum"}], ids=str)
def test_a_callback_stops_with_the_best_so_far(wish):
    matrix = -np.random.default_rng(3).random((200, 200))
    matrix[:, :50][50:] = math.inf
    matrix[:20, 50:] = math.inf
    a = stopped_at(sparse(matrix), 1, **wish)
    best = gm.assign(sparse(matrix), **wish)
    assert not a.proven
    assert a.gap >= best.objective - a.objective or a.gap == math.inf or "any" in wish.values()
    assert a.objective - a.gap <= best.objective
    pairs = sparse(matrix)[a.row_ind, a.col_ind]
    assert math.isclose(a.objective, pairs.sum(), abs_tol=1e-9)
    assert np.array_equal(a.col_to_row[a.col_ind], a.row_ind)


@pytest.mark.parametrize("stop_at", [1, 2, 3])
@pytest.mark.parametrize("maximize", [False, True])
def test_a_row_without_pairs_has_a_finite_dual_in_a_run_that_stops(stop_at, maximize):
    matrix = np.random.default_rng(3).random((40, 40))
    matrix[:, 10:][10:] = math.inf
    matrix[3] = math.inf
    a = stopped_at(sparse(matrix), stop_at, cardinality="maximum", maximize=maximize)
    assert a.gap == math.inf
    assert np.isfinite(a.row_dual).all()
    gm.verify(sparse(matrix), a, optimal=False)


def test_a_search_that_is_stopped_in_one_part_begins_no_other():
    """The cover of the largest assignments makes two problems."""
    matrix = np.full((60, 60), math.inf)
    matrix[:20, 20:] = np.random.default_rng(4).random((20, 40))
    matrix[20:, :20] = np.random.default_rng(5).random((40, 20))
    calls = []

    def stop(progress):
        calls.append(progress)
        return len(calls) >= stop_at

    stop_at = math.inf
    gm.assign(matrix, cardinality="maximum", callback=stop)
    for stop_at in range(1, len(calls) + 1):
        calls.clear()
        gm.assign(matrix, cardinality="maximum", callback=stop)
        assert len(calls) == stop_at


@pytest.mark.parametrize("rough", [0, 1])
def test_a_gap_in_one_part_is_one_in_the_whole(rough):
    """The auction ends with an epsilon where costs are random, exactly where all are 0."""
    parts = [np.zeros((20, 40)), np.zeros((20, 40))]
    parts[rough] = np.random.default_rng(4).random((20, 40))
    allowed = block_diag([coo_array(np.ones(shape)) for shape in ((20, 40), (40, 20))])
    weights = np.concatenate([parts[0].ravel(), parts[1].T.ravel()])
    a = gm.assign(
        coo_array((weights, allowed.coords), allowed.shape),
        cardinality="maximum", algorithm="auction", finish="epsilon", backend="cpu",
    )  # fmt: skip
    assert a.size == 40
    assert a.gap > 0
    assert not a.proven


HOLES = np.where(np.arange(56).reshape(7, 8) % 4 == 0, 0.1, math.inf)
SOME = np.random.default_rng(2).random((6, 8))
LEAVES_GAPS = [("auction", {"finish": "epsilon"}), ("dgs", {})]


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize(("algorithm", "options"), LEAVES_GAPS)
@pytest.mark.parametrize("cardinality", CARDINALITIES)
@pytest.mark.parametrize(
    "matrix",
    [np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros((3, 4)), SOME, HOLES, [[0.5]], [[5, 7]]],
    ids=["two", "zeros", "random", "holes", "one", "integers"],
)
def test_what_leaves_no_gap_is_proven(matrix, cardinality, algorithm, options, backend):
    """And no pair is missing, also where two problems make one."""
    call = {"cardinality": cardinality, "algorithm": algorithm, "backend": backend, **options}
    try:
        a = gm.assign(matrix, **call)
    except gm.InfeasibleError:
        assert cardinality == "full"
        return
    assert a.size == gm.assign(matrix, cardinality=cardinality).size or cardinality == "any"
    assert 0 <= a.gap < math.inf
    assert a.proven == (a.gap == 0)
    if a.proven:
        assert gm.verify(matrix, a).size == a.size


def test_no_time_gives_an_unproven_assignment():
    a = gm.assign(np.random.default_rng(3).random((50, 50)), time_limit=0)
    assert (a.proven, a.gap) == (False, math.inf) or (a.size == 50 and not a.proven)
    assert "not proven" in repr(a)


def test_an_interrupt_carries_the_assignment_so_far():
    def interrupt(progress):
        raise KeyboardInterrupt

    matrix = np.random.default_rng(3).random((300, 300))
    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(matrix, callback=interrupt)
    a = caught.value.result
    assert not a.proven
    assert np.array_equal(a.col_to_row[a.col_ind], a.row_ind)


# -- the result ------------------------------------------------------------------------------------


def test_what_an_assignment_holds():
    matrix = np.array([[4, 1, 3], [2, 0, 5]])
    a = gm.assign(matrix)
    assert (a.row_ind.tolist(), a.col_ind.tolist()) == ([0, 1], [1, 0])
    assert (a.row_to_col.tolist(), a.col_to_row.tolist()) == ([1, 0], [1, 0, -1])
    assert {a.row_to_col.dtype, a.col_to_row.dtype} == {np.dtype(np.int32)}
    assert {a.row_ind.dtype, a.row_dual.dtype, a.col_dual.dtype} == {np.dtype(np.int64)}
    assert (a.objective, a.gap, a.size) == (3, 0, 2)
    assert (a.maximize, a.cardinality, a.cost_limit) == (False, "full", None)
    assert repr(a) == "Assignment(2 pairs, objective 3, optimal, engine)"
    assert a.stats["backend"] == "cpu"
    assert a.stats["seconds"].keys() == {"compilation", "costs", "search"}
    with pytest.raises(ValueError, match="only a proven assignment"):
        a.vertex_cover()


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("shape", [(4, 7), (7, 4)])
def test_pair_costs_are_those_of_the_matrix(shape, form, maximize):
    matrix = costs.uniform_integer(*shape, seed=5) + 1
    for dtype in (np.int64, np.float64):
        a = gm.assign(form(matrix.astype(dtype)), maximize=maximize)
        assert a.pair_costs.tolist() == matrix[a.row_ind, a.col_ind].tolist()
        assert a.pair_costs.dtype == a.row_dual.dtype


@pytest.mark.parametrize("wish", [{}, {"cardinality": "maximum"}], ids=str)
def test_an_assignment_pickles(wish):
    matrix = np.random.default_rng(3).random((20, 30))
    a = pickle.loads(pickle.dumps(gm.assign(matrix, **wish)))
    assert gm.verify(matrix, a).objective == a.objective


def test_sparse_costs_of_many_forms():
    matrix = random_array((40, 50), density=0.3, rng=np.random.default_rng(6), format="csr")
    forms = ["csr", "csc", "coo", "lil", "dok", "bsr"]
    totals = {gm.assign(matrix.asformat(form)).objective for form in forms}
    totals.add(gm.assign((matrix.indptr, matrix.indices, matrix.data, matrix.shape)).objective)
    totals.add(gm.assign(gm.SparseCosts(matrix)).objective)
    assert len(totals) == 1


def test_objective_and_gap_of_many_pairs_are_rounded_once():
    """More pairs than are added one by one: the arrays' sums are as exact."""
    n = 5000
    rng, diagonal = np.random.default_rng(8), (np.arange(n), np.arange(n + 1))
    weights = rng.standard_normal(n) * 10.0 ** rng.integers(-8, 8, n)
    a = gm.assign(csr_array((weights, *diagonal), shape=(n, n)))
    assert a.objective == math.fsum(weights.tolist())
    duals = [*a.row_dual.tolist(), *a.col_dual.tolist()]
    exact = sum(map(Fraction, [*weights.tolist(), *(-dual for dual in duals)]))
    assert math.nextafter(a.gap, -math.inf) < exact <= a.gap  # rounded up
    whole = gm.assign(csr_array((np.arange(n) - 2**48, *diagonal), shape=(n, n)))
    assert whole.objective == n * (n - 1) // 2 - n * 2**48
    assert whole.gap == 0


# -- the short way ---------------------------------------------------------------------------------

PLAIN = np.array([[4.0, 1.0], [2.0, 3.0]])


@pytest.mark.parametrize(
    ("matrix", "told", "is_short"),
    [
        (PLAIN, {}, True),
        (PLAIN, {"maximize": True, "cardinality": "any", "cost_limit": 3}, True),
        (PLAIN, {"backend": "cpu", "seed": 3, "threads": 2}, True),
        (np.zeros((1, gpumatch.assignment.SMALL)), {}, True),
        (np.zeros((1, gpumatch.assignment.SMALL + 1)), {}, False),
        (csr_array(PLAIN), {}, False),
        (PLAIN.tolist(), {}, False),
        (PLAIN, {"backend": "reference"}, False),
        (PLAIN, {"algorithm": "engine"}, False),
        (PLAIN, {"initial": [1, 0]}, True),
        (PLAIN, {"time_limit": 9}, False),
        (PLAIN, {"callback": lambda progress: None}, False),
        (PLAIN, {"objective": "bottleneck"}, False),
    ],
)
def test_what_is_assigned_in_one_compiled_call(matrix, told, is_short, monkeypatch):
    asked, short = [], gpumatch.assignment.assign_small
    monkeypatch.setattr(
        gpumatch.assignment, "assign_small", lambda *wish: asked.append(wish) or short(*wish)
    )
    assert gm.assign(matrix, **told).proven
    assert len(asked) == is_short


@pytest.mark.parametrize(
    ("matrix", "wish", "size"),
    [
        (np.ones((4, 2)), {}, 2),
        (np.ones((3, 5)), {}, 3),
        (np.array([[1, 5, 9], [5, 5, 9]]), {"cost_limit": 2}, 1),
    ],
    ids=["tall", "wide", "limit"],
)
def test_statistics_of_few_costs_count_the_pairs(matrix, wish, size):
    a = gm.assign(matrix, **wish)
    assert a.size == size
    assert a.stats["phases"] == len(a.stats["trace"]) == 1
    assert a.stats["trace"][0]["found"] == a.stats["trace"][0]["matched"] == size
    assert a.stats["levels"] == a.stats["trace"][0]["levels"] == 0


def test_a_sparse_matrix_of_a_device_is_not_given_to_the_host(monkeypatch):
    """Which would import Numba before it refuses the matrix."""
    from types import SimpleNamespace

    from gpumatch import assignment

    monkeypatch.setattr(assignment, "is_sparse", lambda _: True)
    monkeypatch.setattr(assignment, "assign_small_sparse", lambda *_: pytest.fail("called"))
    of_a_device = SimpleNamespace(format="csr", data=SimpleNamespace(__cuda_array_interface__={}))
    wishes = "auto", False, "full", None, "raise", None
    assert assignment._at_once(of_a_device, *wishes) is None
    on_host = SimpleNamespace(format="csr", data=np.ones(3))
    with pytest.raises(pytest.fail.Exception, match="called"):
        assignment._at_once(on_host, *wishes)
