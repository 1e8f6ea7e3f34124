"""Distances of points as costs: numbers, bounds, errors, and every option of `assign`."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import gpumatch as gm
from gpumatch.costs import PointCosts
from gpumatch.costs import points as points_module
from gpumatch.costs.computed import ComputedCosts
from gpumatch.problems.at_limit import join_at_limit
from tests.pairwise import parametrize_pairwise

METRICS = ["sqeuclidean", "euclidean", "cityblock", "chebyshev", "cosine"]
WISHES = [
    {},
    {"maximize": True},
    {"cost_limit": 0.6},
    {"cost_limit": 0.6, "maximize": True},
    {"cardinality": "any"},
    {"cardinality": "any", "maximize": True},
    {"cardinality": "maximum"},
    {"cardinality": "maximum", "cost_limit": 0.5},
    {"cost_limit": "each"},
    {"cost_limit": "each", "cardinality": "maximum"},
]


def clouds(shape, d=3, seed=1, dtype=np.float64, kind="normal"):
    rng = np.random.default_rng(seed)
    sides = [rng.normal(size=(count, d)) for count in shape]
    if kind == "lattice":
        sides = [np.rint(2 * side) for side in sides]
    elif kind == "line":
        sides = [side[:, :1] * np.arange(1, d + 1) for side in sides]
    elif kind == "far":
        for side in sides:
            side[:1] += 1e6
    elif kind == "equal":
        sides = [np.ones_like(side) for side in sides]
    return [(side + 0.0).astype(dtype) for side in sides]


def with_offsets(X, Y, seed=2):
    rng = np.random.default_rng(seed)
    return {"row_offset": rng.normal(size=len(X)), "col_offset": rng.normal(size=len(Y))}


@pytest.mark.parametrize("is_small", [True, False], ids=["arrays", "kernel"])
@pytest.mark.parametrize("has_offsets", [False, True], ids=["bare", "offsets"])
@pytest.mark.parametrize("metric", METRICS)
def test_a_tile_is_what_scipy_has_and_what_at_has(metric, has_offsets, is_small, monkeypatch):
    monkeypatch.setattr(points_module, "FEW", np.inf if is_small else -1)
    X, Y = clouds((5, 7), 17)
    offsets = with_offsets(X, Y) if has_offsets else {}
    costs = PointCosts(X, Y, metric, **offsets)
    expected = cdist(X, Y, metric)
    if has_offsets:
        expected += offsets["row_offset"][:, None] + offsets["col_offset"]
    rows, cols, values = costs.tile(slice(1, 4))
    np.testing.assert_allclose(values, expected[1:4], rtol=1e-13, atol=1e-14)
    assert (values == costs.at(*np.broadcast_arrays(rows, cols))).all()
    for turned in (costs.problem(True, False), costs.problem(True, True), costs.transpose()):
        whole = turned.tile(slice(0, turned.shape[0]))[2]
        whole = whole if turned.shape == costs.shape else whole.T
        whole = -whole if turned.low < costs.low else whole
        assert (whole[1:4] == values).all()
    assert costs.low <= values.min() <= values.max() <= costs.high
    assert costs.largest >= abs(values).max()


EXACT = {
    "sqeuclidean": lambda steps: sum(step * step for step in steps),
    "cityblock": sum,
    "chebyshev": max,
}


@pytest.mark.parametrize("kind", ["normal", "far", "equal"])
@pytest.mark.parametrize("metric", EXACT)
def test_rounding_bounds_what_is_computed(metric, kind):
    X, Y = clouds((4, 5), 9, kind=kind)
    offsets = with_offsets(X, Y)
    costs = PointCosts(X, Y, metric, **offsets)
    share, pair, added = costs.rounding
    values = costs.dense()
    r, s = offsets["row_offset"], offsets["col_offset"]
    assert added >= (abs(r).sum() + abs(s).sum()) * (1 - 1e-12)
    for i, j in np.ndindex(costs.shape):
        steps = [abs(Fraction(x) - Fraction(y)) for x, y in zip(X[i], Y[j])]
        exact = EXACT[metric](steps) + Fraction(r[i]) + Fraction(s[j])
        most = share * (abs(values[i, j]) + abs(r[i]) + abs(s[j])) + pair
        assert abs(Fraction(values[i, j]) - exact) <= Fraction(most)


def test_cosines_are_near_the_exact_ones():
    X, Y = clouds((6, 6), 40)
    Y[0], Y[1] = X[0] * 3, -X[1]
    costs = PointCosts(X, Y, "cosine")
    long = [side.astype(np.longdouble) for side in (X, Y)]
    unit = [side / np.sqrt((side * side).sum(axis=1))[:, None] for side in long]
    exact = 1 - unit[0] @ unit[1].T
    assert (abs(costs.dense() - exact) <= costs.rounding.pair).all()
    assert costs.dense()[0, 0] < 1e-30


@parametrize_pairwise(
    metric=METRICS,
    wish=WISHES,
    shape=[(6, 6), (5, 8), (8, 5), (1, 1), (0, 3), (1, 4)],
    kind=["normal", "lattice", "line", "far", "equal"],
    dtype=[np.float32, np.float64, np.int64],
    has_offsets=[False, True],
    few=[points_module.FEW, -1],
)
def test_points_are_assigned_as_their_matrix(
    metric, wish, shape, kind, dtype, has_offsets, few, monkeypatch
):
    monkeypatch.setattr(points_module, "FEW", few)
    X, Y = clouds(shape, dtype=dtype, kind=kind)
    if metric == "cosine":
        X, Y = X + np.array([3, 0, 0], dtype), Y + np.array([3, 0, 0], dtype)
        X[:, 1][(X == 0).all(axis=1)] = 1
        Y[:, 1][(Y == 0).all(axis=1)] = 1
    offsets = with_offsets(X, Y) if has_offsets else {}
    costs = PointCosts(X, Y, metric, **offsets)
    wish = dict(wish)
    if wish.get("cost_limit") == "each":
        wish["cost_limit"] = np.linspace(0.1, 1.5, shape[0])
    a = gm.assign(costs, backend="cpu", **wish)
    b = gm.assign(costs.dense(), backend="cpu", **wish)
    assert a.proven
    assert a.size == b.size
    assert a.objective == pytest.approx(b.objective, rel=1e-12, abs=1e-9)
    certificate = gm.verify(costs, a)
    assert certificate.gap <= certificate.allowance


def test_the_gap_has_the_rounding_of_the_costs():
    X, Y = clouds((40, 40), 30)
    costs = PointCosts(X, Y)
    a, b = gm.assign(costs, backend="cpu"), gm.assign(costs.dense(), backend="cpu")
    blur = costs.rounding.share * 2 * a.objective
    assert blur <= a.gap <= 1.01 * blur + b.gap
    assert gm.verify(costs, a).gap == pytest.approx(a.gap)
    a.gap = b.gap + 2 * gm.verify(costs, a).allowance
    with pytest.raises(gm.CertificateError, match="the gap"):
        gm.verify(costs, a)


def test_costs_that_are_rounding_alone_are_proven():
    """Their gap is the rounding of the costs, and itself rounded up."""
    for seed in range(20):
        X, Y = clouds((27, 27), 9, seed=seed, kind="line")
        costs = PointCosts(abs(X), abs(Y), "cosine")
        a = gm.assign(costs, backend="cpu", cost_limit=2e-16)
        certificate = gm.verify(costs, a)
        assert 0 < certificate.gap <= certificate.allowance < 1e-11


def test_a_wrong_dual_is_refused():
    costs = PointCosts(*clouds((30, 30)))
    a = gm.assign(costs, backend="cpu")
    a.row_dual[3] += 1e-9
    with pytest.raises(gm.CertificateError):
        gm.verify(costs, a)


@pytest.mark.parametrize("wish", [{}, {"cost_limit": 1.0}], ids=["full", "limit"])
def test_points_begin_from_an_assignment(wish):
    X, Y = clouds((40, 40))
    costs = PointCosts(X, Y)
    before = gm.assign(PointCosts(X + 0.01, Y), backend="cpu", **wish)
    for initial in (before, before.row_to_col):
        a = gm.assign(costs, initial=initial, backend="cpu", **wish)
        assert a.objective == pytest.approx(gm.assign(costs, backend="cpu", **wish).objective)


@pytest.mark.parametrize("algorithm", ["shortest-augmenting-path", "hungarian-tree", "auction"])
def test_other_algorithms_take_points(algorithm):
    costs = PointCosts(*clouds((9, 11)), "euclidean")
    a = gm.assign(costs, algorithm=algorithm, backend="cpu")
    assert a.objective == pytest.approx(gm.assign(costs.dense()).objective)
    gm.verify(costs, a)


def test_a_bottleneck_takes_points():
    costs = PointCosts(*clouds((12, 12)), "euclidean")
    a = gm.assign(costs, objective="bottleneck", backend="cpu")
    assert a.objective == gm.assign(costs.dense(), objective="bottleneck").objective
    gm.verify(costs, a)


def test_a_list_of_points_is_a_batch():
    problems = [PointCosts(*clouds((5, 6), seed=seed)) for seed in (1, 2)]
    batch = gm.assign(problems, backend="cpu")
    for problem, objective in zip(problems, batch.objective):
        assert objective == gm.assign(problem, backend="cpu").objective


def test_a_limit_of_all_pairs_keeps_no_list_of_pairs(monkeypatch):
    costs = PointCosts(*clouds((5, 5)))
    monkeypatch.setattr(ComputedCosts, "_kept", None)
    assert costs.up_to(costs.high) is costs


@pytest.mark.parametrize("few", [points_module.FEW, -1], ids=["tiles", "tree"])
@pytest.mark.parametrize("metric", METRICS)
def test_pairs_within_limits(metric, few, monkeypatch):
    monkeypatch.setattr(points_module, "FEW", few)
    X, Y = clouds((30, 45))
    costs = PointCosts(X, Y, metric)
    C = costs.dense()
    limit = float(np.sort(C, axis=None)[300])
    kept = costs.up_to(limit)
    assert kept.nnz == 301
    assert kept.rounding == costs.rounding
    rows, cols = kept.pattern().edges()
    assert (kept.weights == C[rows, cols]).all()
    limits = np.quantile(C, 0.3, axis=1)
    limits[4], limits[5] = np.inf, -np.inf
    lows = limits[:, None]
    for maximize, expected in ((False, lows >= C), (True, lows <= C)):
        kept = costs.within(limits, maximize)
        rows, cols = kept.pattern().edges()
        assert (np.argwhere(expected) == np.column_stack([rows, cols])).all()
        assert (kept.weights == C[rows, cols]).all()


def test_pairs_at_a_limit_are_found_by_a_tree(monkeypatch):
    monkeypatch.setattr(points_module, "FEW", -1)
    X, Y = np.zeros((5, 2)), np.zeros((5, 2))
    X[:, 0], Y[:, 0] = np.arange(5), np.arange(5) + 1
    costs = PointCosts(X, Y)
    mates = np.array([-1, 2, -1, -1, -1], np.int32), np.array([-1, -1, 1, -1, -1], np.int32)
    join_at_limit(costs, 1.0, mates)
    assert mates[0].tolist() == [0, 2, 1, -1, 3]
    assert mates[1].tolist() == [0, 2, 1, 4, -1]
    free = [np.flatnonzero(side < 0) for side in mates]
    assert costs.dense()[np.ix_(*free)].min() > 1


def test_the_points_are_copied():
    X, Y = clouds((3, 3))
    costs = PointCosts(X, Y)
    before = costs.dense()
    X[:] = 0
    assert (costs.dense() == before).all()
    assert (costs.nnz, costs.shape, costs.is_integer, costs.has_matrix) == (9, (3, 3), False, False)
    assert repr(costs) == "PointCosts(3 rows, 3 columns, 3 coordinates, sqeuclidean, host)"


def test_a_matrix_that_does_not_fit_is_refused(monkeypatch):
    costs = PointCosts(np.zeros((2**20, 2)), np.zeros((2**20, 2)))
    with pytest.raises(MemoryError, match="1048576 x 1048576"):
        costs.dense()


NAN, GOOD = np.nan, [[0.0, 1.0], [2.0, 3.0]]
BAD = {
    "widths": ((GOOD, [[1.0], [2.0]]), {}, ValueError, "as many coordinates; got 2 and 1"),
    "NaN": ((GOOD, [[0.0, 1.0], [2.0, NAN]]), {}, ValueError, "Y holds NaN, .* row 1, column 1"),
    "inf": (([[np.inf, 0.0]], GOOD), {}, ValueError, "X holds inf, first at row 0, column 0"),
    "metric": ((GOOD, GOOD, "manhattan"), {}, ValueError, "metric must be one of .*'manhattan'"),
    "cosine": ((GOOD, [[0.0, 0.0]], "cosine"), {}, ValueError, r"Y\[0\] has length 0"),
    "flat": (([1.0, 2.0], GOOD), {}, ValueError, "X must have 2 dimensions"),
    "wide": (
        (np.zeros((1, 4097)), np.zeros((1, 4097))), {}, ValueError, "X must have 1 to 4096 .* 4097",
    ),
    "none": ((np.zeros((2, 0)), np.zeros((2, 0))), {}, ValueError, "1 to 4096 coordinates; got 0"),
    "words": (([["a", "b"]], GOOD), {}, TypeError, "X must be real numbers"),
    "complex": ((GOOD, [[1j, 0]]), {}, TypeError, "Y must be real numbers"),
    "huge": (([[2**53 + 2, 0]], GOOD), {}, ValueError, "X holds the integer 9007199254740994"),
    "overflow": (([[1e200, 0.0]], GOOD), {}, ValueError, "overflow"),
    "few": ((GOOD, GOOD), {"row_offset": [1.0]}, ValueError, "row_offset must be 2 numbers"),
    "offset": ((GOOD, GOOD), {"col_offset": [NAN, 0]}, ValueError, r"col_offset\[0\] is nan"),
    "kind": ((GOOD, GOOD), {"col_offset": ["a", "b"]}, TypeError, "col_offset must be real"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_points_are_refused(case):
    arguments, named, error, message = BAD[case]
    with pytest.raises(error, match=message):
        PointCosts(*arguments, **named)


def test_tensors_give_tensors():
    torch = pytest.importorskip("torch")
    X, Y = clouds((6, 6), dtype=np.float32)
    costs = PointCosts(torch.from_numpy(X), torch.from_numpy(Y))
    a = gm.assign(costs, backend="cpu")
    assert isinstance(a.row_to_col, torch.Tensor)
    expected = gm.assign(PointCosts(X, Y), backend="cpu")
    assert a.row_to_col.tolist() == expected.row_to_col.tolist()
    gm.verify(costs, a)


def test_small_steps_have_an_absolute_rounding():
    tiny = np.array([[1e-160], [3e-160]])
    costs = PointCosts(tiny, tiny)
    share, pair, _ = costs.rounding
    assert pair > 0
    for i, j in np.ndindex(2, 2):
        exact = (Fraction(tiny[i, 0]) - Fraction(tiny[j, 0])) ** 2
        assert abs(Fraction(costs.dense()[i, j]) - exact) <= Fraction(share) * exact + Fraction(
            pair
        )
    assert PointCosts([[0.5]], [[0.25]]).rounding.pair == 0


MAGNITUDES = {
    "large": [1e200], "largest": [1e305], "small": [1e-200], "subnormal": [5e-322],
    "mixed": [1, 1e-200], "all": [1e200, 1, 1e-200],
    "low": [2.0**-440, 2.0**-460], "high": [2.0**490, 2.0**510],
}  # fmt: skip


def root_of(number):
    """The root of a fraction, rounded down to a multiple of 2**-1400."""
    return Fraction(math.isqrt(number.numerator * 2**2800 // number.denominator), 2**1400)


EXACT_OF_ALL = EXACT | {"euclidean": lambda steps: root_of(sum(step * step for step in steps))}


def far_from_one(name, seed=3):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(2, 6, 3)) * rng.choice(MAGNITUDES[name], size=(2, 6, 3))
    Y[2] = X[1]
    return X, Y


@pytest.mark.parametrize("is_small", [True, False], ids=["arrays", "kernel"])
@pytest.mark.parametrize("name", MAGNITUDES)
@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "chebyshev"])
def test_distances_at_both_ends_of_the_range(metric, name, is_small, monkeypatch):
    monkeypatch.setattr(points_module, "FEW", np.inf if is_small else -1)
    X, Y = far_from_one(name)
    costs = PointCosts(X, Y, metric)
    share, pair, _ = costs.rounding
    assert pair <= 2.0**-1074
    found = costs.dense()
    assert (found == costs.at(*map(np.ravel, np.indices((6, 6)))).reshape(6, 6)).all()
    assert costs.low <= found.min() <= found.max() <= costs.high
    for i, j in np.ndindex(6, 6):
        steps = [abs(Fraction(x) - Fraction(y)) for x, y in zip(X[i], Y[j])]
        most = Fraction(share) * Fraction(found[i, j]) + Fraction(pair) + Fraction(1, 2**1400)
        assert abs(Fraction(found[i, j]) - EXACT_OF_ALL[metric](steps)) <= most


def test_larger_steps_have_no_smaller_roots():
    """The roots lie on both sides of the numbers from which on differences are scaled."""
    for end in (-450, 500):
        steps = np.ldexp(1 + np.arange(-40, 41)[:, None] * 2.0**-52 * [1.0, 0.75, 0.5], end - 1)
        X = np.ldexp(1 + np.arange(-40, 41) * 2.0**-53, end)[:, None]
        for points in (steps, X):
            roots = PointCosts(points, np.zeros((1, points.shape[1])), "euclidean").dense()
            assert (np.diff(roots[:, 0]) >= 0).all()


@pytest.mark.parametrize("wish", [*WISHES[:4], *WISHES[6:9]], ids=str)
@pytest.mark.parametrize("name", MAGNITUDES)
@pytest.mark.parametrize("metric", ["euclidean", "chebyshev"])
def test_far_and_near_points_are_assigned(metric, name, wish):
    costs = PointCosts(*far_from_one(name), metric)
    C = costs.dense()
    wish = dict(wish)
    if "cost_limit" in wish:
        each = wish["cost_limit"] == "each"
        wish["cost_limit"] = np.quantile(C, np.linspace(0.1, 0.5, 6)) if each else C[2, 3]
    a = gm.assign(costs, backend="cpu", **wish)
    b = gm.assign(C, backend="cpu", **wish)
    assert a.proven
    assert a.gap <= 1e-10 * max(a.objective, C.max() * 1e-5) + 1e-320
    worth = [
        math.fsum([*one.pair_costs, *-np.broadcast_to(wish.get("cost_limit", 0), 6)[one.row_ind]])
        for one in (a, b)
    ]
    if wish.get("cardinality") != "maximum":
        assert worth[0] == pytest.approx(worth[1], rel=1e-12, abs=1e-14 * C.max())
    certificate = gm.verify(costs, a)
    assert certificate.gap <= certificate.allowance


def test_costs_that_are_divided_are_points_again():
    X, Y = far_from_one("large")
    costs = PointCosts(X, Y, "euclidean", row_offset=X[:, 0])
    assert costs.points is None
    divided = costs.divided(costs.power)
    assert divided.points is not None
    assert (np.ldexp(divided.dense(), costs.power) == costs.dense()).all()
    assert PointCosts(*far_from_one("all"), "euclidean").power == 0
    squares = PointCosts(X * 1e-60, Y * 1e-60)
    assert squares.power % 2 == 0
    assert (
        np.ldexp(squares.divided(squares.power).dense(), squares.power) == squares.dense()
    ).all()


@pytest.mark.parametrize("least", [1e-300, 1e-310, 3e-320, 5e-324])
@pytest.mark.parametrize("wish", [{}, {"cardinality": "maximum", "cost_limit": 0.0}])
def test_gaps_of_divided_costs_are_those_of_the_checker(least, wish):
    """Costs of 1e-100 are divided; a root that may be subnormal has an absolute rounding."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        shape = rng.integers(1, 6, 2)
        X, Y = (rng.choice([1e-100, 3e-101, least, 7 * least], (n, 1)) for n in shape)
        X[0] = least
        costs = PointCosts(X, Y, "euclidean")
        a = gm.assign(costs, **wish)
        assert a.proven
        gm.verify(costs, a)


def test_one_offset_is_enough():
    X, Y = clouds((3, 4))
    added = np.array([1.0, 2.0, 3.0])
    bare = PointCosts(X, Y).dense()
    assert (PointCosts(X, Y, row_offset=added).dense() == bare + added[:, None]).all()
    assert (PointCosts(Y, X, col_offset=added).dense() == bare.T + added).all()


def test_every_pair_of_sides_and_signs_keeps_the_rows():
    X, Y = clouds((4, 6))
    costs = PointCosts(X, Y, "cityblock", **with_offsets(X, Y))
    rows, cols = np.array([2, 0]), np.array([5, 1, 3])
    for maximize, transposed in itertools.product((False, True), repeat=2):
        turned = costs.problem(maximize, transposed)
        ends = (cols, rows) if transposed else (rows, cols)
        part = turned.restricted(*ends).dense()
        part = part.T if transposed else part
        assert ((-part if maximize else part) == costs.dense()[np.ix_(rows, cols)]).all()


@pytest.mark.parametrize("has_offsets", [False, True], ids=["bare", "offsets"])
@pytest.mark.parametrize("metric", METRICS)
def test_a_batch_of_clouds_is_that_of_each(metric, has_offsets):
    rng = np.random.default_rng(6)
    X, Y = rng.normal(size=(3, 5, 2)), rng.normal(size=(3, 7, 2)) * [[[1]], [[10]], [[100]]]
    offsets = {}
    if has_offsets:
        offsets = {"row_offset": rng.normal(size=(3, 5)), "col_offset": rng.normal(size=(3, 7))}
    batch = PointCosts.batch(X, Y, metric, **offsets)
    for k, costs in enumerate(batch):
        alone = PointCosts(X[k], Y[k], metric, **{name: part[k] for name, part in offsets.items()})
        assert (costs.dense() == alone.dense()).all()
        assert costs.low <= alone.low <= alone.high <= costs.high
        assert all(bound >= own for bound, own in zip(costs.rounding, alone.rounding))
        assert costs.rounding.added == pytest.approx(alone.rounding.added)
    a = gm.assign(batch, backend="cpu")
    assert a.row_to_col.shape == (3, 5)
    gm.verify(batch, a)


def test_what_is_no_batch_of_clouds_is_refused():
    X, Y = np.zeros((3, 5, 2)), np.ones((3, 7, 2))
    for given, message in (
        ((X[0], Y), "X of a batch must have 3 dimensions; got 2"),
        ((X, Y[:2]), "X and Y must have as many clouds; got 3 and 2"),
        ((X, Y[:, :, :1]), "as many coordinates; got 2 and 1"),
        ((np.where(X == 0, np.nan, 0.0), Y), "X holds NaN, first at row 0"),
    ):
        with pytest.raises(ValueError, match=message):
            PointCosts.batch(*given)
    with pytest.raises(ValueError, match=r"row_offset must have the shape \(3, 5\); got \(3, 7\)"):
        PointCosts.batch(X, Y, row_offset=np.zeros((3, 7)))
    with pytest.raises(TypeError, match="Y must be an array"):
        PointCosts.batch(X, None)
    assert PointCosts.batch(X[:0], Y[:0]) == []


def test_each_problem_of_a_batch_may_be_called():
    X, Y = np.arange(12.0).reshape(2, 3, 2), np.ones((2, 4, 2))
    batch = PointCosts.batch(X, Y, lambda x, y: float(abs(x - y).max()))
    assert (batch[1].dense() == PointCosts(X[1], Y[1], "chebyshev").dense()).all()


@pytest.mark.gpu
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_many_dimensions_are_proven_on_a_device(metric):
    """So many points that several pricings follow, which look at few lines again."""
    rng = np.random.default_rng(7)
    X, Y = rng.normal(size=(2, 6000, 64))
    costs = PointCosts(X, Y, metric)
    a = gm.assign(costs, backend="cuda")
    assert a.proven
    assert len([line for line in a.stats["trace"] if line.get("step") == "pricing"]) > 1
    gm.verify(costs.to_device(), a)
