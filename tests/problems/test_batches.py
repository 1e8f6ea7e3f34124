"""Many problems at once: the same answers as one by one, proven, whatever becomes of some."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import gpumatch as gm
from gpumatch.problems.small_problems import numbers_for

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


@pytest.mark.dtypes
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


def test_problems_without_rows_or_columns_are_as_large_as_they_are():
    for shape in ((0, 0), (0, 2), (2, 0)):
        batch = gm.assign([np.zeros(shape)] * 3, cardinality="maximum")
        assert batch.row_to_col.shape == batch.row_dual.shape == (3, shape[0])
        assert batch.col_to_row.shape == batch.col_dual.shape == (3, shape[1])
        assert (batch.size.tolist(), batch.objective.tolist()) == ([0] * 3, [0] * 3)


def test_an_empty_batch_and_empty_problems():
    assert len(gm.assign(np.zeros((0, 3, 4)))) == 0
    with pytest.raises(ValueError, match="backend"):
        gm.assign(np.zeros((0, 3, 4)), backend="gpu")
    batch = gm.assign(np.zeros((2, 0, 4)))
    assert batch.row_to_col.shape == (2, 0)
    assert batch.objective.tolist() == [0, 0]


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


@pytest.mark.parametrize("name", ["row_ind", "unmatched_cols", "edges", "to_matrix", "cover_ind"])
def test_what_one_problem_has_is_not_a_batchs(name):
    batch = gm.assign(np.ones((3, 2, 4)))
    with pytest.raises(AttributeError, match=rf"a batch has no {name} of its own.*a\[k\]\.{name}"):
        getattr(batch, name)
    assert not hasattr(batch, name)
    assert pickle.loads(pickle.dumps(batch))[1].to_dict() == batch[1].to_dict()
