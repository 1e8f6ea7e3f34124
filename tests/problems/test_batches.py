"""Many problems at once: the same answers as one by one, proven, whatever becomes of some."""

from __future__ import annotations

import ctypes
import math
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.costs import CostBatch, SideBySide
from gpumatch.cpu.assignment.small import batch as small_batch
from gpumatch.cpu.assignment.small import search as small_search
from gpumatch.dispatch import registry
from gpumatch.problems import batches, device_batches
from gpumatch.problems.small_problems import numbers_for

X = math.inf
NAMED = {"algorithm": "hungarian-classical"}  # so that problems are solved one by one
WISHES = [
    {},
    {"cost_limit": 0.3},
    {"cost_limit": 2},
    {"cardinality": "any"},
    {"cardinality": "maximum"},
    {"cardinality": "maximum", "cost_limit": 0.4},
]


def random_problem(rng):
    """A small problem of any kind: ties, negative costs, forbidden pairs, more rows or columns."""
    shape = tuple(rng.integers(0, 12, 2))
    kind = rng.integers(4)
    if kind == 0:
        return rng.integers(-3, 4, shape)
    costs = rng.random(shape) if kind == 1 else rng.integers(0, 4, shape).astype(float)
    if kind == 3:
        costs = (costs - 1.5).astype(np.float32)
        costs[rng.random(shape) < rng.random()] = math.inf
    return costs


def one_by_one(matrix, **wish):
    """The same by the algorithm for large problems."""
    try:
        return gm.assign(matrix, algorithm="shortest-augmenting-path", **wish)
    except gm.InfeasibleError as exc:
        return exc


def paid(a):
    """What is minimised: with a limit, that of the vertices left out as well."""
    return a.objective - (a.cost_limit or 0) * a.size


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_a_list_of_any_problems_is_solved_as_one_by_one(wish, maximize):
    rng = np.random.default_rng(5)
    problems = [random_problem(rng) for _ in range(150)]
    if maximize:
        problems = [-matrix for matrix in problems]
        wish = {**wish, **({"cost_limit": -wish["cost_limit"]} if "cost_limit" in wish else {})}
    batch = gm.assign(problems, maximize=maximize, on_error="mark", **wish)
    assert len(batch) == len(problems)
    for k, matrix in enumerate(problems):
        alone = one_by_one(matrix, maximize=maximize, **wish)
        if isinstance(alone, Exception):
            assert str(batch.errors[k]) == f"problem {k}: {alone}"
            assert (batch[k].size, batch.proven[k], batch.gap[k]) == (0, False, math.inf)
            continue
        assert k not in batch.errors
        gm.verify(matrix, batch[k])
        assert math.isclose(paid(batch[k]), paid(alone), abs_tol=1e-12)
        if wish.get("cardinality") == "maximum":
            assert batch.size[k] == alone.size


@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("kind", ["float", "integer", "gated"])
def test_a_small_matrix_is_solved_as_a_large_one(kind, wish):
    """The call for small problems, and the algorithm for large ones."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        matrix = rng.random(tuple(rng.integers(1, 30, 2)))
        if kind == "integer":
            matrix = (10 * matrix).astype(np.int32)
        if kind == "gated":
            matrix[matrix > rng.random()] = math.inf
        alone = one_by_one(matrix, **wish)
        if isinstance(alone, Exception):
            with pytest.raises(gm.InfeasibleError, match="are infeasible") as caught:
                gm.assign(matrix, **wish)
            assert caught.value.problem is None
            continue
        a = gm.assign(matrix, **wish)
        gm.verify(matrix, a)
        assert math.isclose(paid(a), paid(alone), abs_tol=1e-12)
        for name in ("row_to_col", "row_dual", "col_dual", "pair_costs"):
            one, other = getattr(a, name), getattr(alone, name)
            assert (one.dtype, one.shape) == (other.dtype, other.shape) or (
                name == "pair_costs" and one.dtype == other.dtype
            )
        assert type(a.objective) is type(alone.objective)
        assert a.pair_costs.tolist() == matrix[a.row_ind, a.col_ind].tolist()
        assert a.proven
        assert a.stats.keys() == alone.stats.keys()


@pytest.mark.parametrize("wish", [*WISHES[1:3], *WISHES[4:]], ids=str)
@pytest.mark.parametrize("shape", [(6, 6), (5, 8), (8, 5), (30, 30), (20, 40)], ids=str)
def test_rows_columns_and_problems_without_an_allowed_pair(shape, wish):
    costs = np.random.default_rng(22).random((6, *shape))
    costs[0] = costs[1, 2] = costs[2, :, 3] = costs[3, 1:] = costs[4, :, :-1] = math.inf
    batch = gm.assign(costs, **wish)
    assert batch.size[0] == 0
    assert batch.size[3] == (1 if "cost_limit" not in wish else costs[3].min() <= 0.4)
    for k, matrix in enumerate(costs):
        alone = one_by_one(matrix, **wish)
        gm.verify(matrix, batch[k])
        assert math.isclose(paid(batch[k]), paid(alone), abs_tol=1e-12)


@pytest.mark.parametrize("n", [1, 7, 16, 40])
def test_as_many_pairs_as_can_be_are_all_where_every_pair_is_allowed(n):
    """The search is the same then, and so are the duals."""
    costs = np.random.default_rng(23).random((3, n, n))
    full, most = (gm.assign(costs, cardinality=wish) for wish in ("full", "maximum"))
    for name in ("row_to_col", "row_dual", "col_dual", "objective"):
        assert np.array_equal(getattr(full, name), getattr(most, name))


INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


@pytest.mark.parametrize("dtype", ["?", *INTEGERS, "f2", "f4", "f8", ">f8", ">i4", ">u8"])
@pytest.mark.parametrize("threads", [1, 3])
def test_an_array_of_any_dtype_has_the_optima_of_scipy(dtype, threads):
    costs = np.random.default_rng(7).integers(0, 90, (60, 40, 50)).astype(dtype)
    batch = gm.assign(costs, threads=threads)
    assert batch.row_to_col.shape == (60, 40)
    assert batch.col_dual.shape == (60, 50)
    assert batch.objective.dtype.kind == batch.row_dual.dtype.kind == ("f" if "f" in dtype else "i")
    wide = costs.astype(float)
    best = [matrix[linear_sum_assignment(matrix)].sum() for matrix in wide]
    assert batch.objective.tolist() == best
    assert batch.proven.all()
    assert not batch.gap.any()


@pytest.mark.parametrize("cardinality", ["full", "maximum"])
@pytest.mark.parametrize("shape", [(128, 13), (128, 8), (256, 1), (120, 13)])
def test_problems_of_many_rows_are_filled_in_by_parts(shape, cardinality):
    costs = np.random.default_rng(19).random((3, *shape))
    batch = gm.assign(costs, cardinality=cardinality)
    for matrix, found in zip(costs, batch):
        expected = linear_sum_assignment(matrix)
        assert [part.tolist() for part in found] == [part.tolist() for part in expected]
        own = gm.optimize.linear_sum_assignment(matrix)
        assert [part.tolist() for part in own] == [part.tolist() for part in expected]
    costs[1, -1, -1] = costs[2, 0, -1] = math.nan
    marked = gm.assign(costs, cardinality=cardinality, on_error="mark")
    assert marked.proven.tolist() == [True, False, False]


def test_sizes_tell_which_part_of_an_array_counts():
    costs = np.random.default_rng(8).random((30, 9, 7))
    cols = np.arange(30) % 8
    padded = costs.copy()
    padded[np.arange(7) >= cols[:, None, None] + np.zeros((9, 1), int)] = math.nan
    batch = gm.assign(padded, sizes=(9, cols))
    for k, (rows, own) in enumerate(batch):
        expected = linear_sum_assignment(costs[k, :, : cols[k]])
        assert (rows.tolist(), own.tolist()) == tuple(part.tolist() for part in expected)
    assert (batch.col_to_row[np.arange(7) >= cols[:, None]] == -1).all()


@pytest.mark.parametrize(
    ("sizes", "error"),
    [((9, 8), ValueError), ((-1, 3), ValueError), ((9, [1, 2]), TypeError), ((9, 0.5), TypeError)],
    ids=str,
)
def test_wrong_sizes_are_refused(sizes, error):
    with pytest.raises(error, match="sizes"):
        gm.assign(np.zeros((30, 9, 7)), sizes=sizes)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"initial": np.zeros(5, int)}, "a batch takes no initial"),
        ({"objective": "bottleneck"}, "a batch takes the objective 'sum' only"),
    ],
)
def test_what_a_batch_does_not_take_is_refused(asked, says):
    with pytest.raises(ValueError, match=says):
        gm.assign(np.ones((3, 5, 6)), **asked)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("shape", [(9, 5), (5, 9), (6, 6)], ids=str)
def test_a_pair_that_costs_the_limit_may_be_taken(shape, sign):
    costs = np.full(shape, 4.0)
    np.fill_diagonal(costs, 3)
    wish = {"cardinality": "maximum", "cost_limit": 3 * sign, "maximize": sign < 0}
    batch = gm.assign([sign * costs, sign * (costs + 1)], **wish)
    assert batch.size.tolist() == [min(shape), 0]
    assert gm.assign(sign * costs, **wish).size == min(shape)


def test_the_first_problem_has_a_number_too():
    none = np.full((2, 2), math.inf)
    with pytest.raises(gm.InfeasibleError, match=r"^problem 0: the costs are infeasible") as caught:
        gm.assign([none, np.ones((2, 2))])
    assert caught.value.problem == 0
    batch = gm.assign([none, np.ones((2, 2))], on_error="mark")
    assert str(batch.errors[0]).startswith("problem 0: ")
    assert batch.errors[0].problem == 0


def test_an_error_names_the_problem():
    costs = np.random.default_rng(9).random((20, 5, 6))
    costs[13, 2] = math.inf
    costs[17, 1, 1] = math.nan
    with pytest.raises(gm.InfeasibleError, match="problem 13: the costs are infeasible") as caught:
        gm.assign(costs)
    assert caught.value.problem == pickle.loads(pickle.dumps(caught.value)).problem == 13
    assert caught.value.rows.tolist() == [2]
    batch = gm.assign(costs, on_error="mark")
    assert batch.errors.keys() == {13, 17}
    assert "problem 17: the costs hold NaN, first at row 1" in str(batch.errors[17])
    assert np.flatnonzero(~batch.proven).tolist() == [13, 17]
    gm.verify(costs[16], batch[16])
    with pytest.raises(ValueError, match="on_error"):
        gm.assign(costs, on_error="ignore")


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_large_integers_stay_exact(dtype):
    costs = np.random.default_rng(10).integers(2**50, 2**55, (4, 6, 6)).astype(dtype)
    batch = gm.assign(costs)
    for k in range(4):
        assert batch.objective[k] == gm.assign(costs[k], algorithm="hungarian-tree").objective
        gm.verify(costs[k], batch[k])


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_extreme_integers_are_exact(dtype, maximize):
    """The least and the greatest of a dtype, or those which floats add up without rounding."""
    info, most = np.iinfo(dtype), 2**47
    extremes = [max(info.min, -most), min(info.max, most), 0, 1]
    costs = np.random.default_rng(10).choice(extremes, (6, 7, 7)).astype(dtype)
    batch = gm.assign(costs, maximize=maximize)
    for k, matrix in enumerate(costs):
        rows, cols = linear_sum_assignment(matrix.astype(float), maximize)
        assert batch.objective[k] == sum(map(int, matrix[rows, cols]))
        assert batch.pair_costs[k].tolist() == matrix[batch[k].row_ind, batch[k].col_ind].tolist()
        gm.verify(matrix, batch[k])


@pytest.mark.parametrize("maximize", [False, True])
def test_sums_that_no_float_holds_are_exact(maximize):
    costs = 2**47 - np.random.default_rng(12).integers(0, 1000, (4, 99, 99))
    batch = gm.assign(costs, maximize=maximize)
    expected = [sum(map(int, pairs)) for pairs in batch.pair_costs]
    assert any(int(float(total)) != total for total in expected)
    assert batch.objective.tolist() == expected
    assert gm.assign(costs[0], maximize=maximize).objective == expected[0]


def chains(rows, most, rng):
    """Two chains along which the last row may push all others, and about as dear. Odd rows.

    Each row has a column at ``-most`` and the next at ``most``, or a little less, and all other
    pairs are dearer. So the paths cost ``rows * most``, and low digits tell which is shorter.
    """
    costs = np.full((rows, rows + 1), most + 1)
    of_row, of_col = rng.permutation(rows - 1), rng.permutation(rows + 1)
    length = (rows - 1) // 2
    for first, shift in ((0, 0), (length, 1)):
        for k in range(first, first + length):
            costs[of_row[k], of_col[k + shift]] = rng.integers(0, 9) - most
            costs[of_row[k], of_col[k + shift + 1]] = most - rng.integers(0, 9)
        costs[-1, of_col[first + shift]] = rng.integers(0, 9) - most
    return costs


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(("rows", "bits"), [(9, 46), (255, 40), (255, 46), (509, 45)])
def test_paths_that_no_float_holds_are_exact(rows, bits, maximize):
    costs = chains(rows, 2**bits, np.random.default_rng(rows))
    sign = -1 if maximize else 1
    wish = {"maximize": maximize, "cardinality": "maximum", "cost_limit": sign * 2**bits}
    problems = [sign * costs, sign * costs.T, sign * chains(9, 2**bits, np.random.default_rng(1))]
    batch = gm.assign(problems, **wish)
    for k, matrix in enumerate(problems):
        for a in (batch[k], gm.assign(matrix, **wish)):
            gm.verify(matrix, a)
            assert (a.proven, a.gap, type(a.objective)) == (True, 0, int)


def test_the_magnitudes_that_are_taken_keep_sums_exact():
    """32 n C with forbidden pairs, as `gpumatch.contracts` states, and 16 C without."""
    for side in (0, 1, 2, 3, 509, 1024, 6000):
        is_integer, most = numbers_for(True, "maximum", 2**40, side)
        assert is_integer
        assert 32 * side * most <= 2**53
        assert most >= 2**34  # any int32
    for cardinality, limit in (("full", None), ("full", 7), ("any", None), ("maximum", None)):
        assert numbers_for(True, cardinality, limit, 6000) == (True, 2**47)
    largest = numbers_for(False, "full", None, 6000)[1]
    assert math.isfinite(64 * 2**26 * largest)


@pytest.mark.parametrize("limit", [None, 2.5])
@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_integers_too_large_for_exact_sums_are_refused_in_a_batch_too(dtype, limit):
    costs = np.array([[[5, 7], [3, 9]], [[2**61, 7], [3, 2**62]]], dtype)
    batch = gm.assign(costs, cost_limit=limit, on_error="mark")
    assert batch.proven.tolist() == [True, False]
    with pytest.raises(ValueError, match="too large") as alone:
        gm.assign(costs[1], cost_limit=limit)
    assert str(batch.errors[1]) == f"problem 1: {alone.value}"


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("sign", [1, -1])
def test_costs_that_are_not_numbers_spoil_their_problem_only(dtype, sign):
    costs = sign * np.random.default_rng(11).random((5, 20, 20)).astype(dtype)
    costs[0, 3, 4] = math.nan
    costs[1, 19, 19] = -sign * math.inf
    costs[2, 5] = sign * math.inf
    costs[3, :, 7:9] = costs[3, 2:4] = sign * math.inf
    costs[3, 2, 7] = costs[3, 3, 8] = 0
    batch = gm.assign(costs, maximize=sign < 0, on_error="mark")
    assert batch.proven.tolist() == [False, False, False, True, True]
    assert [type(batch.errors[k]) for k in range(3)] == [ValueError] * 2 + [gm.InfeasibleError]
    assert (batch.row_to_col[:3] == -1).all()
    assert not batch.row_dual[:3].any()
    for k in (3, 4):
        wide = costs[k].astype(float)
        best = wide[linear_sum_assignment(wide, sign < 0)].sum()
        assert math.isclose(batch.objective[k], best, rel_tol=1e-12)
        gm.verify(costs[k], batch[k])


def test_sparse_matrices_and_named_algorithms_are_solved_one_by_one():
    sparse = [csr_array(np.random.default_rng(k).random((4, 5 + k))) for k in range(3)]
    batch = gm.assign(sparse)
    for k in range(3):
        gm.verify(sparse[k], batch[k])
    costs = np.random.default_rng(1).random((3, 4, 5))
    assert np.allclose(
        gm.assign(costs, algorithm="hungarian-classical").objective, gm.assign(costs).objective
    )


def test_options_reach_problems_alone():
    batch = gm.assign(np.eye(3)[None].repeat(2, axis=0), scaling="none")
    assert batch.stats["algorithm"] == "auction"
    assert gm.assign([np.eye(3)]).stats["algorithm"] == "engine"


def test_problems_without_rows_or_columns_are_as_large_as_they_are():
    for shape in ((0, 0), (0, 2), (2, 0)):
        batch = gm.assign([np.zeros(shape)] * 3, cardinality="maximum")
        assert batch.row_to_col.shape == batch.row_dual.shape == (3, shape[0])
        assert batch.col_to_row.shape == batch.col_dual.shape == (3, shape[1])
        assert (batch.size.tolist(), batch.objective.tolist()) == ([0] * 3, [0] * 3)


def test_nested_lists_are_problems_and_two_levels_are_one():
    batch = gm.assign([[[1, 2], [0, 4]], [[1, 0]]])
    assert batch.row_to_col.tolist() == [[1, 0], [1, -1]]
    assert gm.assign([[[]]]).row_to_col.shape == (1, 1)
    assert gm.assign([[[1, 2]]]).objective.tolist() == [1]
    assert gm.assign([[]]).row_to_col.tolist() == [-1]
    with pytest.raises(ValueError, match="must have 2 dimensions; got 1"):
        gm.assign([])


class OnlyAnArrayForNumPy:
    def __init__(self, values):
        self.values = np.array(values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


def test_a_list_may_begin_with_what_is_an_array_for_numpy_only():
    for second in ([[1, 0]], [[1, 2], [0, 4]]):
        batch = gm.assign([OnlyAnArrayForNumPy([[1, 2], [0, 4]]), np.array(second)])
        assert batch.objective.tolist() == [2, 0 if len(second) == 1 else 2]
    assert gm.assign([OnlyAnArrayForNumPy([1, 2]), OnlyAnArrayForNumPy([0, 4])]).objective == 2


class OnlyDlpack:
    def __init__(self, values):
        self.values = np.array(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


@pytest.mark.parametrize("kind", [OnlyAnArrayForNumPy, OnlyDlpack])
def test_three_dimensions_may_be_those_of_what_is_read_as_an_array(kind):
    costs = np.random.default_rng(3).integers(0, 99, (4, 5, 7))
    expected = gm.assign(costs)
    for options in ({}, {"sizes": (5, 7)}, {"algorithm": "hungarian-tree"}):
        batch = gm.assign(kind(costs), **options)
        assert batch.objective.tolist() == expected.objective.tolist()
        assert gm.verify(kind(costs), batch).size == 20
    assert gm.assign(kind(costs[0])).objective == expected.objective[0]
    with pytest.raises(ValueError, match="2 dimensions"):
        gm.assign(kind(costs[None]))
    with pytest.raises(TypeError, match="one number as its cost_limit"):
        gm.assign(kind(costs), cost_limit=[1, 2, 3, 4, 5])


def test_numbers_that_are_not_real_are_refused_in_a_batch():
    with pytest.raises(TypeError, match="problem 0: the costs must be real numbers"):
        gm.assign(np.ones((2, 3, 3), complex))


@pytest.mark.parametrize(
    ("problems", "kind"),
    [
        ([[[7, 3], [1, 9]], [[2]]], "i"),
        ([[[7, 3], [1, 9]], [[2.5]], [[4]]], "f"),
        ([[[2.5]], [[7, 3], [1, 9]]], "f"),
        (np.zeros((0, 3, 4), int), "i"),
        (np.zeros((0, 3, 4)), "f"),
    ],
    ids=["integers", "both", "floats first", "no integers", "no floats"],
)
def test_problems_alone_give_integers_if_all_are_integers(problems, kind):
    if isinstance(problems, list):
        problems = [np.array(matrix) for matrix in problems]
    batch = gm.assign(problems, **NAMED)
    assert batch.row_dual.dtype.kind == batch.col_dual.dtype.kind == kind
    assert batch.objective.dtype.kind == batch.pair_costs.dtype.kind == kind
    assert batch.objective.tolist() == [gm.assign(matrix).objective for matrix in problems]
    assert batch.proven.all()


def test_covers_of_problems_alone():
    holed = [np.array([[X, 5.0], [X, 3.0], [1.0, 2.0]]), np.array([[2.0, X]])]
    batch = gm.assign(holed, cardinality="maximum", **NAMED)
    for matrix, alone in zip(holed, batch):
        gm.verify(matrix, alone)
        one = gm.assign(matrix, cardinality="maximum").vertex_cover()
        assert [part.tolist() for part in alone.vertex_cover()] == [part.tolist() for part in one]


@pytest.mark.parametrize("dtype", ["i8", "f8"])
@pytest.mark.parametrize("limit", [2.0**60 + 0.5, 2**60])
def test_limits_too_large_for_floats_are_exact(dtype, limit):
    costs = np.array([[[5, 7], [3, 9]]] * 2, dtype)
    for a in (gm.assign(costs, cost_limit=limit)[1], gm.assign(costs[0], cost_limit=limit)):
        assert a.objective == 10
        gm.verify(costs[0], a)


def test_a_time_limit_leaves_the_rest_unsolved():
    costs = np.random.default_rng(2).random((5, 4, 4))
    batch = gm.assign(costs, time_limit=0)
    assert not batch.proven.any()
    assert (batch.row_to_col == -1).all()
    assert (batch.gap == math.inf).all()


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_no_problem_is_begun_after_a_stop(form):
    problems = [form(np.random.default_rng(k).random((6, 7))) for k in range(9)]
    calls = []
    whole = gm.assign(problems, callback=calls.append, **NAMED)
    for stop in range(len(calls)):
        later = []

        def stopping(_, later=later, stop=stop):
            later.append(1)
            return len(later) > stop

        batch = gm.assign(problems, callback=stopping, **NAMED)
        assert len(later) <= stop + 2  # that of the problem, and that between problems
        assert (
            batch.proven.tolist() == [True] * batch.proven.sum() + [False] * (~batch.proven).sum()
        )
    assert whole.proven.all()


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_keeps_what_is_solved(threads, monkeypatch):
    costs = np.random.default_rng(3).random((50, 30, 30))
    monkeypatch.setattr(small_batch, "RANGE", 5 * 900)
    calls = []

    def interrupt(progress):
        calls.append(progress)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(costs, threads=threads, callback=interrupt)
    best = caught.value.result
    assert 15 <= best.proven.sum() <= 50
    for k in np.flatnonzero(best.proven):
        gm.verify(costs[k], best[k])
    assert (best.row_to_col[~best.proven] == -1).all()


def test_an_interrupt_between_problems_alone_keeps_those_before():
    costs = np.random.default_rng(3).random((6, 30, 30))
    calls = []

    def interrupt(progress):
        calls.append(progress.matched)
        if progress.matched > 70:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(costs, callback=interrupt, **NAMED)
    best = caught.value.result
    assert len(best) == 6
    assert best.proven[:2].all()
    assert not best.proven[3:].any()
    assert calls == sorted(calls)
    for k in range(2):
        gm.verify(costs[k], best[k])


def test_a_limit_and_a_callback_reach_problems_alone():
    costs = np.random.default_rng(2).random((5, 20, 20))
    assert not gm.assign(costs, time_limit=0, **NAMED).proven.any()
    batch = gm.assign(costs, callback=lambda progress: progress.matched >= 40, **NAMED)
    assert batch.proven[:2].all()
    assert not batch.proven[2:].any()
    assert batch.size[2:].tolist() == [0, 0, 0]


def test_statistics_name_what_has_solved_it():
    costs = np.random.default_rng(1).random((3, 4, 5))
    named = gm.assign(costs, **NAMED).stats
    assert (named["algorithm"], named["backend"]) == ("hungarian-classical", "cpu")
    assert gm.assign(costs).stats["algorithm"] == "engine"


def test_an_empty_batch_and_empty_problems():
    assert len(gm.assign(np.zeros((0, 3, 4)))) == 0
    with pytest.raises(ValueError, match="backend"):
        gm.assign(np.zeros((0, 3, 4)), backend="gpu")
    batch = gm.assign(np.zeros((2, 0, 4)))
    assert batch.row_to_col.shape == (2, 0)
    assert batch.objective.tolist() == [0, 0]


def test_a_batch_knows_where_its_costs_are():
    costs = np.random.default_rng(2).random((3, 4, 5))
    on_device = SimpleNamespace(
        __cuda_array_interface__={}, ndim=2, shape=(4, 5), dtype=costs.dtype
    )
    assert not CostBatch([csr_array(one) for one in costs]).on_device
    assert not CostBatch(costs).on_device
    assert CostBatch([costs[0], on_device]).on_device
    again = gm.assign(CostBatch(costs))
    assert np.array_equal(again.row_to_col, gm.assign(costs).row_to_col)


# -- memory of a device, in arrays of the CPU ------------------------------------------------------


def part_at(address, like):
    """An array of what is at an address."""
    kind = ctypes.c_char * like.nbytes
    return np.frombuffer(kind.from_address(address), like.dtype).reshape(like.shape)


def test_results_share_a_piece_of_memory_without_overlap(monkeypatch):
    """What is written at the addresses is read by name."""

    class Memory:
        def __init__(self, room):
            self.room, self.ptr = room, room.ctypes.data

        def __add__(self, begin):
            return self.room[begin:]

    cupy = SimpleNamespace(
        cuda=SimpleNamespace(alloc=lambda nbytes: Memory(np.zeros(nbytes, np.uint8))),
        ndarray=lambda shape, dtype, memory: np.ndarray(shape, dtype, memory),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    for number in (np.dtype(np.int64), np.dtype(np.float64)):
        room = device_batches._Room(7, 3, 5, number)
        places, arrays = room.addresses(), room.arrays()
        assert (
            (places.most_rows, places.most_cols) == (3, 5) == (arrays.most_rows, arrays.most_cols)
        )
        for k, (address, array) in enumerate(zip(places[:7], arrays[:7])):
            assert (address - places[0]) % 256 == 0
            part_at(address, array)[...] = k % 2 if array.dtype == bool else 10 * k + 1
        for k, array in enumerate(arrays[:7]):
            assert (array == (k % 2 if array.dtype == bool else 10 * k + 1)).all()
        arrays.mates[:] = np.arange(7 * 8).reshape(7, 8)
        arrays.numbers[:] = np.arange(7 * 11).reshape(7, 11)
        assert room.read("row_to_col")[1].tolist() == [8, 9, 10]
        assert room.read("col_to_row")[1].tolist() == [11, 12, 13, 14, 15]
        assert room.read("row_dual")[1].tolist() == [11, 12, 13]
        assert room.read("col_dual")[1].tolist() == [14, 15, 16, 17, 18]
        assert room.read("pair_costs")[1].tolist() == [19, 20, 21]
        assert room.read("size").tolist() == arrays.pairs.tolist()
        assert room.read("gap").tolist() == arrays.gap.tolist()


@pytest.mark.parametrize("sizes", [None, (4, [5, 2, 0]), "side by side"])
def test_where_the_problems_of_an_array_begin(sizes):
    costs = np.random.default_rng(3).random((3, 4, 5))
    problems = SideBySide(costs, [2, 0, 3]) if sizes == "side by side" else CostBatch(costs, sizes)
    arrays = SimpleNamespace(shape=costs.shape, data=SimpleNamespace(ptr=costs.ctypes.data))
    addresses, steps, shapes, apart = device_batches._places(arrays, problems, costs.dtype)
    assert np.array_equal(shapes, problems.sizes)
    assert apart == (20 if sizes is None else None)
    for k, own in enumerate(costs if sizes is None else problems):
        first = int(addresses[0]) + 8 * apart * k if apart else int(addresses[k])
        step = int(steps[0] if apart else steps[k])
        for row in range(own.shape[0]):
            like = np.ascontiguousarray(own[row])
            assert part_at(first + 8 * step * row, like).tolist() == own[row].tolist()


def test_problems_side_by_side_have_the_next_columns_each():
    costs = np.random.default_rng(3).random((4, 3, 7))
    problems = SideBySide(costs, [2, 0, 4, 1])
    assert problems.begins.tolist() == [0, 2, 2, 6]
    assert (problems.sizes.tolist(), problems.shape) == ([[3, 2], [3, 0], [3, 4], [3, 1]], (3, 4))
    expected = costs[0, :, :2], costs[1, :, 2:2], costs[2, :, 2:6], costs[3, :, 6:]
    for own, part in zip(problems, expected, strict=True):
        assert np.array_equal(own, part)


def test_where_the_problems_of_a_list_begin():
    wide = np.random.default_rng(4).random((6, 10))
    given = [wide[:3, 2:7], wide[3:, :4]]
    arrays = [
        SimpleNamespace(data=SimpleNamespace(ptr=own.ctypes.data), strides=own.strides)
        for own in given
    ]
    addresses, steps, _, apart = device_batches._places(arrays, CostBatch(given), wide.dtype)
    assert (steps.tolist(), apart) == ([10, 10], None)
    assert addresses.tolist() == [own.ctypes.data for own in given]


def test_verify_takes_a_batch_and_names_the_problem_that_is_wrong():
    costs = np.random.default_rng(4).random((5, 4, 6))
    sizes = 4, [6, 5, 4, 6, 4]
    batch = gm.assign(costs, sizes=sizes)
    certificate = gm.verify(costs, batch, sizes=sizes)
    assert certificate.size == 20
    assert str(certificate) == "optimal: 5 problems with 20 pairs, checked on 100 pairs"
    assert math.isclose(certificate.bound, batch.objective.sum())
    assert math.isclose(certificate.gap, 0, abs_tol=1e-12)
    with pytest.raises(gm.CertificateError, match="there are 4 problems, but 5 results"):
        gm.verify(list(costs[:4]), batch)
    batch.row_dual[3, 1] += 1
    with pytest.raises(gm.CertificateError, match="problem 3: "):
        gm.verify(costs, batch, sizes=sizes)


@pytest.mark.parametrize("sizes", [None, (4, 6), (4, [6, 5, 4, 6, 5]), (3, [6, 5, 4, 6, 4])])
def test_verify_takes_sizes_from_the_caller_only(sizes):
    """The optimum of other parts of the array is not the one that was asked for."""
    costs = np.random.default_rng(4).random((5, 4, 6))
    batch = gm.assign(costs, sizes=(4, [6, 5, 4, 6, 4]))
    says = "of other sizes: pass the sizes" if sizes is None else "of other sizes$"
    with pytest.raises(gm.CertificateError, match=says):
        gm.verify(costs, batch, sizes=sizes)


@pytest.mark.parametrize("name", ["row_to_col", "col_to_row"])
def test_verify_looks_at_rows_and_columns_that_are_not_there(name):
    costs, sizes = np.random.default_rng(4).random((5, 4, 6)), (3, [6, 5, 4, 3, 4])
    batch = gm.assign(costs, sizes=sizes)
    assert gm.verify(costs, batch, sizes=sizes).size == 15
    getattr(batch, name)[3, 3] = 0
    with pytest.raises(gm.CertificateError, match=f"problem 3: {name} has mates of what is not"):
        gm.verify(costs, batch, sizes=sizes)


def test_sizes_are_for_batches():
    with pytest.raises(TypeError, match="sizes are for the result of a batch"):
        gm.verify(np.eye(2), gm.assign(np.eye(2)), sizes=(2, 2))


def test_a_batch_that_was_stopped_has_bounds():
    costs = np.random.default_rng(4).integers(0, 99, (3, 4, 6))
    batch = gm.assign(costs)
    batch.row_dual[1, 2] -= 5
    batch.gap[1] = 5
    with pytest.raises(gm.CertificateError, match=r"problem 1: the objective is .*: the gap is 5"):
        gm.verify(costs, batch)
    certificate = gm.verify(costs, batch, optimal=False)
    assert [one.gap for one in certificate.certificates] == [0, 5, 0]
    assert (certificate.gap, certificate.bound) == (5, batch.objective.sum() - 5)
    assert str(certificate) == "not proven optimal: 3 problems with 12 pairs, checked on 72 pairs"


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_each_problem_of_a_batch_says_all_that_it_says_alone(wish, maximize, kind):
    rng = np.random.default_rng(12)
    wish = {"maximize": maximize, **wish}
    problems = [rng.integers(-3, 9, tuple(rng.integers(1, 9, 2))).astype(kind) for _ in range(40)]
    for given in (problems, [*problems, np.ones((40, 45), kind)]):
        batch = gm.assign(given, **wish)
        for k, matrix in enumerate(given):
            alone, own = gm.assign(matrix, **wish), batch[k]
            for name in ("objective", "gap", "proven", "cost_limit", "size"):
                one, other = getattr(own, name), getattr(alone, name)
                assert (type(one), one) == (type(other), other)
            assert (own.maximize, own.cardinality) == (maximize, wish.get("cardinality", "full"))
            for name in ("row_to_col", "col_to_row", "row_dual", "col_dual", "pair_costs"):
                one, other = getattr(own, name), getattr(alone, name)
                assert (one.dtype, one.tolist()) == (other.dtype, other.tolist())
            if own.cardinality == "maximum":
                for one, other in zip(own.vertex_cover(), alone.vertex_cover()):
                    assert one.tolist() == other.tolist()
            else:
                with pytest.raises(ValueError, match="has a vertex cover"):
                    own.vertex_cover()


@pytest.mark.parametrize("kind", [int, float])
def test_a_problem_that_fails_leaves_a_gap_without_end(kind):
    costs = np.ones((3, 2, 2), kind)
    batch = gm.assign(costs, time_limit=0)
    assert batch[1].gap == math.inf
    assert (batch[1].size, batch[1].objective, batch[1].proven) == (0, 0, False)
    with pytest.raises(ValueError, match="only a proven assignment"):
        gm.assign(costs, time_limit=0, cardinality="maximum")[1].vertex_cover()


def test_problems_are_numbered_from_either_end():
    batch = gm.assign(np.arange(12.0).reshape(3, 2, 2))
    assert [batch[k].objective for k in (0, 2, -1, -3)] == [3, 19, 19, 3]
    for k in (3, -4):
        with pytest.raises(IndexError, match=f"problem {k} of 3"):
            batch[k]
    assert repr(batch) == "BatchAssignment(3 problems, 3 proven optimal)"


def test_many_problems_are_solved_in_compiled_calls_unless_one_algorithm_is_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(batches, "load", lambda name: asked.append(name) or registry.load(name))
    costs = np.random.default_rng(13).random((3, 4, 4))
    for told, is_compiled in (
        ({}, True),
        ({"backend": "cpu"}, True),
        ({"cardinality": "maximum", "cost_limit": 3, "maximize": True}, True),
        ({"backend": "reference"}, False),
        ({"algorithm": "engine"}, False),
        ({"algorithm": "hungarian-tree", "search": "stack"}, False),
    ):
        asked.clear()
        assert gm.assign(costs, **told).proven.all()
        assert asked == [registry.BATCHES["cpu"]] * is_compiled


@pytest.mark.parametrize("name", ["row_ind", "unmatched_cols", "edges", "to_matrix", "cover_ind"])
def test_what_one_problem_has_is_not_a_batchs(name):
    batch = gm.assign(np.ones((3, 2, 4)))
    with pytest.raises(AttributeError, match=rf"a batch has no {name} of its own.*a\[k\]\.{name}"):
        getattr(batch, name)
    assert not hasattr(batch, name)
    assert pickle.loads(pickle.dumps(batch))[1].to_dict() == batch[1].to_dict()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("threads", [1, 2])
def test_ranges_of_problems_are_read_from_arrays_of_any_form(dtype, threads, monkeypatch):
    monkeypatch.setattr(small_batch, "RANGE", 100)
    monkeypatch.setattr(small_batch, "COPIED", 100)
    costs = np.random.default_rng(14).random((40, 9, 14)).astype(dtype)
    turned = np.asfortranarray(costs)
    padded = costs.copy()
    padded[:, 7:], padded[:, :, 8:] = math.nan, math.nan
    for given, told, used in (
        (costs, {}, costs),
        (turned, {}, costs),
        (costs[::-2], {}, costs[::-2]),
        (padded, {"sizes": (7, 8)}, costs[:, :7, :8]),
        ([*turned], {}, costs),
        ([costs[0].astype(int), *costs[1:].astype(">f4")], {}, [np.zeros((9, 14)), *costs[1:]]),
    ):
        batch = gm.assign(given, threads=threads, **told)
        best = [matrix[linear_sum_assignment(matrix)].sum(dtype=float) for matrix in used]
        assert np.allclose(batch.objective, best, rtol=1e-6)


def test_every_thread_gets_several_ranges_that_are_worth_a_call():
    even = CostBatch(np.zeros((256, 32, 32)))
    for threads, count in ((1, 8), (2, 16), (4, 32), (100, 32)):
        places, total = even.places()
        takes = np.ones(len(even), bool)
        takes[5] = False
        task = SimpleNamespace(
            places=places, takes=takes, total=total, threads=threads, in_place=True
        )
        ranges = small_batch._ranges(task)
        assert len(ranges) == count + 1  # no range has problem 5
        assert [k for part in ranges for k in range(*part)] == [*range(5), *range(6, 256)]


@pytest.mark.parametrize("is_list", [True, False])
def test_ranges_whose_costs_are_copied_are_shorter(is_list):
    costs = np.zeros((64, 256, 256), np.float32)
    problems = CostBatch([*costs] if is_list else costs)
    assert problems.in_place is not is_list
    places, total = problems.places()
    task = SimpleNamespace(
        places=places, takes=np.ones(64, bool), total=total, threads=1, in_place=problems.in_place
    )
    most = small_batch.COPIED if is_list else total // small_batch.SHARES
    assert {last - first for first, last in small_batch._ranges(task)} == {most // 256**2}


@pytest.mark.parametrize("kind", [float, np.int32])
def test_large_problems_between_small_ones_are_solved_alone(kind, monkeypatch):
    monkeypatch.setattr(batches, "MOST", 100)
    rng = np.random.default_rng(15)
    problems = [rng.integers(0, 50, (n, n)).astype(kind) for n in (4, 12, 5, 6, 20, 11, 3, 15)]
    told = []
    batch = gm.assign(problems, callback=lambda progress: told.append(progress.matched))
    assert batch.proven.all()
    assert told == sorted(told)  # those of the small ones count when the others are solved
    assert told[-1] >= batch.size.sum() - 15
    best = [matrix[linear_sum_assignment(matrix)].sum() for matrix in problems]
    assert batch.objective.tolist() == best


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
@pytest.mark.parametrize("size", [1, 3, 5000, 400_000])
def test_memory_to_work_in_begins_at_a_cache_line(size, dtype):
    memories = [small_batch._in_lines(size, np.dtype(dtype)) for _ in range(4)]
    assert all((part.size, part.dtype) == (size, dtype) for part in memories)
    assert not any(part.ctypes.data % small_batch.LINE for part in memories)


@pytest.mark.parametrize("size", [small_batch.LARGE // 8, small_batch.LARGE])
def test_large_memory_to_work_in_begins_with_a_huge_page(size):
    memory = small_batch._in_lines(size, np.dtype(np.float64))
    assert memory.size == size
    assert memory.ctypes.data % small_batch.HUGE == 0


def test_what_threads_work_in_is_kept_for_the_next_call(monkeypatch):
    costs = np.random.default_rng(8).random((60, 60, 60))
    monkeypatch.setattr(small_batch, "_idle", [])
    for _ in range(3):
        gm.assign(costs, threads=2)
        gm.assign(costs[0])
    kept = small_batch._idle
    assert 1 <= len(kept) <= 2
    assert len({id(each) for each in kept}) == len(kept)


class OneAfterTheOther:
    """Two workers on one thread, the last of which works whatever becomes of the first."""

    order = 0, 1
    threads = 2

    def __init__(self, threads, costs):
        assert (threads, costs) == (2, 50 * 30 * 30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, kernel, tasks):
        first, last = self.order
        try:
            done = kernel(first)
        finally:
            also_done = kernel(last)
        return done and also_done


@pytest.mark.parametrize("ending", [KeyboardInterrupt, True], ids=["interrupt", "stop"])
def test_no_thread_goes_on_when_one_is_halted(ending, monkeypatch):
    monkeypatch.setattr(small_batch, "Workers", OneAfterTheOther)
    costs = np.random.default_rng(3).random((50, 30, 30))

    def halt(progress):
        if ending is True:
            return True
        raise ending

    if ending is True:
        best = gm.assign(costs, threads=2, callback=halt)
    else:
        with pytest.raises(ending) as caught:
            gm.assign(costs, threads=2, callback=halt)
        best = caught.value.result
    assert not best.proven.any()


def test_the_caller_stops_when_another_thread_fails(monkeypatch):
    monkeypatch.setattr(small_batch, "Workers", OneAfterTheOther)
    monkeypatch.setattr(OneAfterTheOther, "order", (1, 0))
    solved = []

    def solve(*arguments):
        solved.append(arguments)
        raise ArithmeticError

    monkeypatch.setattr(small_batch, "solve_range", solve)
    with pytest.raises(ArithmeticError):
        gm.assign(np.random.default_rng(3).random((50, 30, 30)), threads=2)
    assert len(solved) == 1


@pytest.mark.parametrize("sides", [(1, 1), (1, 3000), (19, 20), (150, 150), (130, 700)], ids=str)
def test_there_is_memory_for_a_problem_and_its_second_one(sides):
    """What `solve_range` needs: of as many pairs as can be, a part is solved again."""
    short, longest = sides
    width, again = small_batch.width_for(longest), small_batch.width_for(short)
    of_vectors = (small_batch.VECTORS + small_batch.LINKS) * width + 2 * short
    tables, lists = short * (width + again), short + longest + small_batch.PAD
    kept = small_batch._Kept()
    room = kept.scratch_of(small_batch._size(*sides))
    assert room.dtype == np.float64
    assert room.size >= tables + of_vectors + lists
    assert kept.scratch_of(1) is room


def test_a_stop_within_a_problem_leaves_it_without_a_cover():
    problems = np.random.default_rng(4).random((3, 30, 30))
    problems[:, :, 20:] = X
    calls = []
    gm.assign(problems, callback=calls.append, cardinality="maximum", **NAMED)
    parts = set()
    for stop in range(1, len(calls)):
        later = []

        def stopping(_, later=later, stop=stop):
            later.append(1)
            return len(later) >= stop

        batch = gm.assign(problems, callback=stopping, cardinality="maximum", **NAMED)
        parts |= set(zip(batch.proven.tolist(), (batch.size > 0).tolist()))
        for k, is_proven in enumerate(batch.proven):
            if is_proven:
                gm.verify(problems[k], batch[k])
            else:
                with pytest.raises(ValueError, match="only a proven assignment"):
                    batch[k].cover_ind()
    assert {(True, True), (False, True), (False, False)} <= parts


def test_the_costs_of_the_next_problem_of_a_range_are_brought_near():
    """Those of enough costs, from where the range begins; and nothing beyond the range."""
    large = small_batch.AHEAD // 64
    places = np.array([[0, 70, 5, 64], [350, 70, large, 64], [350 + 70 * large, 64, 9, 64]])
    assert small_batch._costs_of(places, 0, 1, 3) == (350, 70 * large)
    assert small_batch._costs_of(places, 1, 1, 3) == (0, 70 * large)
    assert small_batch._costs_of(places, 0, 2, 3) == (350 + 70 * large, 0)
    assert small_batch._costs_of(places, 0, 1, 1) == (0, 0)
    assert small_batch._costs_of(places, 0, 3, 3) == (0, 0)


@pytest.mark.parametrize(("dtype", "line"), [(np.float32, 16), (np.float64, 8)])
def test_a_search_brings_costs_near_line_by_line(dtype, line):
    costs = np.random.default_rng(21).random((40, 40))
    width = small_batch.width_for(40)
    table = np.full((40, width), np.inf)
    table[:, :40] = costs
    vectors = np.empty((small_batch.VECTORS, width))
    links, found = np.empty((small_batch.LINKS, width), np.int32), np.empty((2, 40), np.int64)
    place, ahead = np.zeros(1, np.int64), np.zeros(100_000, dtype)

    def match():
        small_search.price_columns(table, vectors, links, np.inf)
        ahead_of = ahead, place
        return small_search.match_rows(
            table, vectors, links, found, 40, True, False, np.inf, False, np.inf, ahead_of
        )

    assert match() == 0
    assert (
        costs[range(40), found[small_batch.COL]].sum() == costs[linear_sum_assignment(costs)].sum()
    )
    lines = place[0] // line
    assert lines % small_search.FETCHED == 0
    assert 10 <= lines // small_search.FETCHED <= 40 * 40  # rows that were scanned
    place[0] = 99_990
    match()
    assert 100_000 <= place[0] < 100_000 + line * small_search.FETCHED


@pytest.mark.parametrize("shape", [(2,), (1, 2, 2), ()], ids=str)
def test_each_problem_of_a_list_has_two_dimensions(shape):
    with pytest.raises(ValueError, match="problem 1: the costs must have 2 dimensions"):
        gm.assign([np.ones((2, 2)), np.ones(shape), np.ones(shape)])
