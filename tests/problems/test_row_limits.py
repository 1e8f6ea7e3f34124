"""A limit for each row: against SciPy with a column more for each row, and the certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array

import gpumatch as gm
from gpumatch import CertificateError
from gpumatch.costs import DenseCosts
from tests.assignment_cases import EVERY_ALGORITHM
from tests.assignment_checks import check_limit

RNG = np.random.default_rng(19)
SHAPES = ((1, 1), (4, 4), (3, 6), (6, 3), (0, 3), (9, 8))


def problem(shape, dtype, sign):
    low = -20 if np.dtype(dtype).kind != "u" else 0
    costs = RNG.integers(low, 20, shape).astype(dtype) * sign
    return costs, RNG.integers(-10, 15, shape[0])


def least(costs, limits):
    """The least total of pairs and of the limits of unmatched rows."""
    rows = costs.shape[0]
    own = np.full((rows, rows), 1e6)
    np.fill_diagonal(own, limits)
    wide = np.hstack([np.where(np.isfinite(costs), costs, 1e6), own])
    return wide[linear_sum_assignment(wide)].sum() if rows else 0


def paid(a, limits):
    return a.objective + np.asarray(limits)[a.row_to_col < 0].sum()


@pytest.mark.parametrize("dtype", ["int64", "float64", "float32", "int8"])
@pytest.mark.parametrize("sign", [1, -1])
def test_as_good_as_with_a_column_for_each_row(dtype, sign):
    for shape in SHAPES:
        costs, limits = problem(shape, dtype, sign)
        a = gm.assign(costs, maximize=sign < 0, cost_limit=limits * sign)
        assert paid(a, limits * sign) * sign == least(costs * sign, limits)
        assert gm.verify(costs, a).size == a.size
        assert a.cost_limit.tolist() == (limits * sign).tolist()
        assert (a.proven, a.gap) == (True, 0)
        assert a.pair_costs.tolist() == costs[a.row_ind, a.col_ind].tolist()
        assert type(a.objective) is (int if costs.dtype.kind == "i" else float)


@pytest.mark.parametrize("shape", [(40, 30), (300, 320)])
def test_floats_up_to_rounding(shape):
    costs, limits = RNG.random(shape), RNG.random(shape[0]) * 0.05
    for given in (costs, csr_array(np.where(costs < 0.1, costs, 0))):
        a = gm.assign(given, cost_limit=limits)
        known = costs if given is costs else np.where(costs < 0.1, costs, math.inf)
        assert paid(a, limits) == pytest.approx(least(known, limits), rel=1e-12)
        assert 0 <= a.gap < 1e-12
        assert a.objective == math.fsum(costs[a.row_ind, a.col_ind])
        gm.verify(given, a)


@EVERY_ALGORITHM
def test_with_every_algorithm(run):
    costs, limits = problem((9, 12), "float64", 1)
    for given in (costs, csr_array(costs), costs.T.copy()):
        own = limits if given.shape[0] == 9 else RNG.integers(-10, 15, 12)
        a = gm.assign(given, cost_limit=own, **run.arguments)
        if a.proven:
            gm.verify(given, a)
            dense = given if isinstance(given, np.ndarray) else given.toarray()
            known = np.where(dense == 0, math.inf, dense) if dense is not given else dense
            assert paid(a, own) == least(known, own)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_maximum_leaves_out_what_costs_more(form, dtype, sign):
    costs = np.array([[1, 5, 9], [2, 6, 9], [3, 7, 9]]).astype(dtype) * sign
    a = gm.assign(
        form(costs), maximize=sign < 0, cardinality="maximum", cost_limit=np.array([1, 6, 2]) * sign
    )
    assert a.row_to_col.tolist() == [0, 1, -1]
    assert a.objective == 7 * sign
    gm.verify(form(costs), a)
    rows, cols = a.vertex_cover()
    assert len(rows) + len(cols) == 2


def test_fractions_make_integers_floats_and_whole_floats_do_not():
    costs = np.array([[1, 4], [3, 2]])
    a = gm.assign(costs, cost_limit=[0.5, 2.5])
    assert (a.row_to_col.tolist(), type(a.objective), a.objective) == ([-1, 1], float, 2.0)
    assert a.row_dual.dtype == np.float64
    a = gm.assign(costs, cost_limit=[0.0, 3.0])
    assert (a.row_to_col.tolist(), type(a.objective), a.objective) == ([-1, 1], int, 2)
    gm.verify(costs, a)


def test_infinity_everywhere_is_no_limit():
    costs = np.array([[1, 4], [3, 2]])
    assert gm.assign(costs, cost_limit=[math.inf] * 2).cost_limit is None
    assert gm.assign(-costs, maximize=True, cost_limit=[-math.inf] * 2).objective == -3
    a = gm.assign(costs, cardinality="maximum", cost_limit=[math.inf, 2])
    assert a.row_to_col.tolist() == [0, 1]


EXTREMES = {
    "uint8": [0, 3, 200, 255],
    "int8": [-128, -1, 5, 127],
    "int16": [-(2**15), 0, 4, 2**15 - 1],
    "bool": [True, False, True, True],
    "uint16": [0, 1, 2**16 - 1, 4],
    "uint32": [0, 1, 2**32 - 1, 4],
    "uint64": [0, 1, 2**40, 4],
    "int64": [-(2**40), 1, 2**40, 4],
    "float16": [0.5, -3.0, 100.0, 4.0],
    "float32": [0.1, -3.0, 100.0, 4.0],
    "longdouble": [0.1, -3.0, 100.0, 4.0],
    ">f8": [0.1, -3.0, 100.0, 4.0],
    ">i2": [3, -3, 100, 4],
}


@pytest.mark.parametrize("form", [np.asarray, csr_array, "tiles"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64"])
@pytest.mark.parametrize("kind", EXTREMES)
def test_limits_of_any_dtype_are_the_numbers_that_they_are(kind, dtype, form):
    """Converted once: what is solved, what comes back and what `verify` reads are the same."""
    limits = np.array(EXTREMES[kind], kind)
    exact = [x.item() if limits.dtype.kind != "f" else float(x) for x in limits]
    costs = np.array([[7, 2, 90], [1, 0, 1], [3, 200, 255], [4, 4, 4]]).astype(dtype)
    as_form = TiledCosts if form == "tiles" else form
    for maximize in (False, True):
        for cardinality in ("full", "any", "maximum"):
            given = as_form(costs)
            wish = {"maximize": maximize, "cardinality": cardinality}
            a = gm.assign(given, cost_limit=limits, **wish)
            wide = gm.assign(given, cost_limit=np.array(exact, object).astype(float), **wish)
            gm.verify(given, a)
            check_limit(given if form is csr_array else costs, a, exact)
            is_integer = costs.dtype.kind != "f" and limits.dtype.kind != "f"
            assert a.cost_limit.dtype == (np.int64 if is_integer else np.float64)
            stays = cardinality == "maximum" and costs.dtype.kind != "f"  # limits add nothing
            assert type(a.objective) is (int if is_integer or stays else float)
            assert a.cost_limit.tolist() == exact
            if cardinality == "maximum":
                assert (a.size, a.objective) == (wide.size, wide.objective)
            else:
                assert paid(a, exact) == paid(wide, exact)


class TiledCosts(DenseCosts):
    """Costs of a kind that has no matrix to be read at once."""

    has_matrix = False


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_infinite_limits_among_others_are_none_of_those_rows(form, sign):
    """With "maximum", which forbids pairs. A limit that must be paid may not be infinite."""
    large = 2**53
    costs = sign * np.array([[5, large + 1, large], [9, 4, 8], [large + 1, 7, 6]])
    limits = np.array([large, math.inf, 6]) * sign
    for given in (form(costs), form(costs.astype(float))):
        a = gm.assign(given, maximize=sign < 0, cardinality="maximum", cost_limit=limits)
        gm.verify(given, a)
        assert (a.size, a.objective) == (3, sign * 15)
        assert a.cost_limit.tolist() == limits.tolist()
        for cardinality in ("full", "any"):
            with pytest.raises(
                ValueError, match=r"cost_limit\[1\] is -?inf: the limits of the rows"
            ):
                gm.assign(given, maximize=sign < 0, cardinality=cardinality, cost_limit=limits)


def test_a_fraction_beside_an_infinite_limit_rounds_no_costs():
    large = 2**60
    costs = np.array([[large + 1, large + 2], [large, 3]])
    a = gm.assign(costs, cardinality="maximum", cost_limit=[math.inf, 3.5])
    assert (a.row_to_col.tolist(), a.objective) == ([0, 1], large + 4)
    assert type(a.objective) is int
    a = gm.assign(-costs, maximize=True, cardinality="maximum", cost_limit=[-math.inf, -3.5])
    assert (a.row_to_col.tolist(), a.objective) == ([0, 1], -large - 4)


@pytest.mark.parametrize("limit", [2**63, 2**64 - 1])
def test_limits_beyond_int64(limit):
    costs, limits = np.array([[4, 2], [3, 9]]), np.array([limit, 3], np.uint64)
    a = gm.assign(costs, cardinality="maximum", cost_limit=limits)
    gm.verify(costs, a)
    assert (a.row_to_col.tolist(), a.objective) == ([1, 0], 5)
    with pytest.raises(ValueError, match=rf"cost_limit\[0\] is {limit}: the limits of integer"):
        gm.assign(costs, cost_limit=limits)
    a = gm.assign(costs.astype(float), cost_limit=limits)
    assert (a.objective, a.cost_limit.tolist()) == (5.0, [float(limit), 3.0])
    least = np.full(2, -(2**63))
    a = gm.assign(costs, maximize=True, cardinality="maximum", cost_limit=least)
    gm.verify(costs, a)
    assert (a.size, a.objective) == (2, 13)


def test_whole_floats_beyond_int64_make_floats_of_the_costs():
    """As one limit for all does."""
    costs = np.array([[1, 2], [4, 3]])
    for limits in ([1e300, 1e300], [2.0**62, 5.0]):
        a = gm.assign(costs, cost_limit=limits)
        assert (type(a.objective), a.objective, a.cost_limit.tolist()) == (float, 4.0, limits)
        gm.verify(costs, a)


def test_a_long_double_that_no_float_holds_is_refused():
    if np.finfo(np.longdouble).max == np.finfo(float).max:
        pytest.skip("long doubles are floats here")
    limits = np.array([np.longdouble(10) ** 400, 1])
    with pytest.raises(ValueError, match=r"cost_limit\[0\] is inf"):
        gm.assign(np.ones((2, 2)), cost_limit=limits)


@pytest.mark.parametrize("number", [np.float64, np.float32, np.float16, np.longdouble, np.int8])
def test_an_array_without_a_dimension_is_one_limit(number):
    limit = np.array(2.5).astype(number)
    for costs in (np.array([[1.0, 9.0], [8.0, 7.0]]), np.array([[1, 9], [8, 7]])):
        for given in (costs, csr_array(costs), costs[None], [costs], [csr_array(costs)]):
            for wish in ({}, {"algorithm": "hungarian-tree"}):
                a = gm.assign(given, cost_limit=limit, **wish)
                gm.verify(given, a)
                assert np.asarray(a.row_to_col).ravel().tolist() == [0, -1]
                assert a.cost_limit == float(limit)
                assert type(a.cost_limit) in (int, float)
    for wrong in (np.array("a"), np.array(None), np.array(True), np.array(1j)):
        with pytest.raises(TypeError, match="cost_limit must be"):
            gm.assign(np.ones((2, 2)), cost_limit=wrong)


@pytest.mark.parametrize("limit", [math.inf, np.array(math.inf), np.float32(math.inf)])
def test_an_infinite_limit_of_problems_solved_one_by_one_is_none(limit):
    problems = np.array([[[4.0, 1.0], [2.0, 0.0]]])
    for wish in ({}, {"algorithm": "hungarian-tree"}):
        batch = gm.assign(problems, cost_limit=limit, **wish)
        assert (batch.cost_limit, batch.size.tolist()) == (None, [2])
        gm.verify(problems, batch)


def test_the_nodes_of_a_graph_stay():
    nx = pytest.importorskip("networkx")
    G = nx.Graph()
    G.add_weighted_edges_from([("a", "x", 3), ("a", "y", 1), ("b", "y", 2)])
    a = gm.assign(G, cost_limit=[5, 1], row_nodes=["a", "b"])
    assert (a.edges(), a.unmatched_rows) == ([("a", "y")], ["b"])
    a = gm.assign(G, cardinality="maximum", cost_limit=[2, 2], row_nodes=["a", "b"])
    assert a.vertex_cover() in ((["a"], []), ([], ["y"]))


def test_begin_from_the_last_frame():
    costs, limits = problem((30, 40), "float64", 1)
    a = gm.assign(costs, cost_limit=limits)
    again = gm.assign(costs, cost_limit=limits, initial=a)
    assert again.objective == a.objective
    gm.verify(costs, again)


def test_ctrl_c_brings_the_callers_costs():
    costs, limits = DenseCosts(RNG.random((60, 60))), np.full(60, 0.9)

    def interrupt(progress):
        if progress.matched > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(costs, cost_limit=limits, algorithm="hungarian-tree", callback=interrupt)
    best = caught.value.result
    assert best.objective == pytest.approx(costs.values[best.row_ind, best.col_ind].sum())


@pytest.mark.parametrize(
    ("limits", "error", "text"),
    [
        ([1, 2, 3], ValueError, r"or 2 numbers, one for each row; got the shape \(3,\)"),
        ([[1, 2]], ValueError, r"got the shape \(1, 2\)"),
        (["a", "b"], TypeError, "cost_limit must be real numbers"),
        ([1.0, math.nan], ValueError, r"cost_limit\[1\] is nan"),
        ([math.inf, 1.0], ValueError, r"cost_limit\[0\] is inf: the limits of the rows must be"),
        ([2**61, 1], ValueError, "too large"),
    ],
)
def test_wrong_limits_are_refused(limits, error, text):
    with pytest.raises(error, match=text):
        gm.assign(np.array([[1, 2], [3, 4]]), cost_limit=limits)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    ("cost", "limit", "text"),
    [
        (5, -(2**63), "integer costs up to 9223372036854775813 are too large"),
        (5, 2**62, "integer costs up to 4611686018427387909 are too large"),
        (1e307, -1.79e308, "overflow when 1 of them are summed"),
        (-1e307, 1.79e308, "overflow when 1 of them are summed"),
    ],
)
def test_limits_too_far_from_costs_are_refused(cost, limit, text, maximize):
    with pytest.raises(ValueError, match=text):
        gm.assign(np.array([[cost]]), cost_limit=[limit], maximize=maximize)


def test_a_bottleneck_takes_none():
    with pytest.raises(ValueError, match="objective 'bottleneck' takes no cost_limit"):
        gm.assign(np.ones((2, 2)), objective="bottleneck", cost_limit=[1, 2])


@pytest.mark.parametrize("cardinality", ["full", "maximum"])
def test_a_wrong_result_is_found(cardinality):
    costs, limits = np.array([[1, 4], [3, 2]]), np.array([3, 3])
    a = gm.assign(costs, cardinality=cardinality, cost_limit=limits)
    gm.verify(costs, a)
    a.cost_limit = np.array([0, 3])
    with pytest.raises(CertificateError):
        gm.verify(costs, a)
    a.cost_limit = np.array([3])
    with pytest.raises(CertificateError, match="the limits of the rows must be 2 numbers"):
        gm.verify(costs, a)


def test_stored_zeros_and_missing_pairs_of_sparse_costs():
    costs = coo_array(([0, 5, 2], ([0, 0, 1], [0, 1, 1])), shape=(2, 3)).tocsr()
    a = gm.assign(costs, cost_limit=[1, 1])
    assert a.row_to_col.tolist() == [0, -1]
    gm.verify(costs, a)


@pytest.mark.parametrize("wish", [{}, {"cardinality": "maximum"}], ids=str)
def test_an_interrupt_carries_the_assignment_so_far(wish):
    def interrupt(progress):
        raise KeyboardInterrupt

    costs, limits = RNG.random((300, 310)), np.full(300, 0.01)
    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(csr_array(costs), cost_limit=limits, callback=interrupt, **wish)
    a = caught.value.result
    assert not a.proven
    assert a.cost_limit.tolist() == limits.tolist()
    assert (costs[a.row_ind, a.col_ind] == a.pair_costs).all()


def test_no_rows_have_no_limits():
    a = gm.assign(np.empty((0, 3)), cost_limit=[])
    assert (a.size, a.proven, a.cost_limit.shape) == (0, True, (0,))


def test_an_interrupt_before_the_search_carries_nothing(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpumatch.problems.one_problem.choose_assignment", interrupted)
    monkeypatch.setattr("gpumatch.problems.row_limits.assign_small", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(np.eye(3), cost_limit=[1, 2, 3])
    assert caught.value.result is None


@pytest.mark.parametrize("shape", [(6, 5), (30, 40)])
def test_no_gap_is_below_0_by_rounding(shape):
    """The bounds of some of these are above their objectives by some units in the last place."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        costs = (rng.random(shape) * 1000).astype(np.float32)
        assert gm.assign(costs, cost_limit=rng.random(shape[0]) * 1000).gap >= 0


@pytest.mark.parametrize("shape", [(2, 9), (9, 2)])
def test_sums_are_as_long_as_the_shorter_side(shape):
    costs = np.full(shape, 2**59) - np.arange(shape[1])
    a = gm.assign(costs, cost_limit=[2**59 + 1] * shape[0])
    assert a.size == 2
    assert gm.verify(costs, a).objective == a.objective == costs[0, -2:].sum()


@pytest.mark.parametrize("ends", [(-(2**60), 0), (0, 2**60)])
def test_limits_count_among_the_sums_that_must_fit(ends):
    with pytest.raises(ValueError, match=f"costs up to {2**60 + 3} are too large"):
        gm.assign(np.array([[1, 2, 3], [3, 1, 2], [2, 3, 1]]), cost_limit=[ends[0], 0, ends[1]])
