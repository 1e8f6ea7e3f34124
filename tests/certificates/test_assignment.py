"""The checker of assignments turns down every wrong result, and says what is wrong."""

from __future__ import annotations

import copy
import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import gpumatch as gm
import gpumatch.costs.base
from graphs import costs

X = math.inf


def changed(assignment, **fields):
    """The assignment with some fields changed; mates bring their pairs along."""
    other = copy.copy(assignment)
    for name, value in fields.items():
        setattr(other, name, np.array(value) if isinstance(value, list) else value)
    if "row_to_col" in fields:
        other.row_ind = (other.row_to_col >= 0).nonzero()[0]
        other.col_ind = other.row_to_col[other.row_ind]
    return other


#   rows 0, 1 at columns 1, 0; their duals are 3 and 2, those of the columns 0, -2, 0
WIDE = np.array([[4, 1, 3], [2, 0, 5]])


def claimed(sign=1, row_dual=(3, 2), **wishes):
    """What `assign` finds for these costs, written out, so that nothing is compiled to import."""
    return gm.Assignment(
        np.array([1, 0], np.int32),
        np.array([1, 0, -1], np.int32),
        sign * np.array(row_dual),
        sign * np.array([0, -2, 0]),
        pair_costs=sign * np.array([1, 2]),
        objective=sign * 3,
        gap=0,
        proven=True,
        maximize=sign < 0,
        **wishes,
    )


GOOD = claimed()

WRONG = [
    ({"row_to_col": [1]}, "mates of the rows must be 2 integers"),
    ({"row_to_col": [1, 3]}, "row 1 is matched to column 3, outside"),
    ({"row_to_col": [1, 1]}, "row 1 is matched to column 1, which is matched to row 0"),
    ({"col_to_row": [1, 0, 0]}, "column 2 is matched to row 0, which is matched to column 1"),
    ({"row_ind": [1, 0]}, "row_ind does not agree"),
    ({"col_ind": [0, 1]}, "col_ind does not agree"),
    ({"objective": 4}, "cost 3 in all, but the objective is 4"),
    ({"row_to_col": [1, -1], "col_to_row": [-1, 0, -1], "objective": 1}, "1 pairs are assigned"),
    ({"row_dual": [1]}, "duals of the rows must be 2 numbers"),
    ({"row_dual": np.array([True, True])}, "duals of the rows must be 2 numbers; got bool"),
    ({"col_dual": np.zeros(3, complex)}, "duals of the columns must be 3 numbers; got complex128"),
    ({"row_ind": [0]}, "row_ind does not agree"),
    ({"col_ind": [1, 0, 0]}, "col_ind does not agree"),
    ({"cost_limit": [3]}, r"limits of the rows must be 2 numbers; got int64 of shape \(1,\)"),
    ({"cost_limit": ["3", "4"]}, "limits of the rows must be 2 numbers; got <U1"),
    ({"row_dual": GOOD.row_dual + 1}, "costs less than its duals"),
    ({"row_dual": GOOD.row_dual - 1}, "the objective is 3, but the duals prove 1"),
    ({"col_dual": [0, 0, 1]}, "dual of column 2 is 1, but must be at most 0"),
    ({"col_dual": [0, 0, -1]}, "dual of column 2 is -1, but must be 0"),
    ({"row_dual": GOOD.row_dual + 10**9}, "row 0 and column 1 costs less than its duals"),
    ({"row_dual": [3, 61]}, "row 1 and column 0 costs less than its duals, by 59"),
    ({"row_dual": [3, 60]}, "costs less than its duals"),
    ({"col_dual": [0, -2, -61]}, "dual of column 2 is -61, but must be 0"),
    ({"col_dual": [0, -2, -60]}, "dual of column 2 is -60, but must be 0"),
    ({"row_dual": np.array([1.0, math.nan])}, "must be finite .* number 1 is nan"),
    ({"gap": 1}, "the gap is 1"),
    ({"gap": -7}, "the gap is -7"),
    ({"maximize": True}, "must be at least 0|costs less than its duals"),
    ({"cost_limit": 3}, "the dual of row|duals prove|costs less"),
    ({"cardinality": "maximum"}, "only a proven assignment"),
]  # fmt: skip


def test_the_right_result_passes():
    certificate = gm.verify(WIDE, GOOD)
    assert (certificate.problem, certificate.size, certificate.edges) == ("assignment", 2, 6)
    assert (certificate.objective, certificate.bound) == (3, 3)
    assert gm.verify(csr_array(WIDE), GOOD).edges == 5


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_nothing_is_the_best_where_there_are_no_pairs(shape):
    certificate = gm.verify(np.zeros(shape), gm.assign(np.zeros(shape)))
    assert (certificate.size, certificate.bound, certificate.edges) == (0, 0, 0)


@pytest.mark.parametrize(("fields", "message"), WRONG)
def test_wrong_results_are_turned_down(fields, message):
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify(WIDE, changed(GOOD, **fields))


#   the same costs with their sign turned, so that duals are at least 0
MOST = claimed(-1)
LIMITED = claimed(row_dual=(-1, -2), cost_limit=4)


@pytest.mark.parametrize(
    ("claim", "wishes"), [(GOOD, {}), (MOST, {"maximize": True}), (LIMITED, {"cost_limit": 4})]
)
def test_the_claims_are_what_is_found(claim, wishes):
    found = gm.assign(-WIDE if claim is MOST else WIDE, **wishes)
    names = "row_to_col col_to_row row_dual col_dual pair_costs objective gap proven maximize"
    for name in [*names.split(), "cardinality", "cost_limit"]:
        assert np.array_equal(getattr(found, name), getattr(claim, name)), name


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"col_dual": [0, 2, -1]}, "the dual of column 2 is -1, but must be at least 0"),
        ({"col_dual": [0, 2, 1]}, "column 2 is 1, but must be 0, because the column is unmatched"),
        ({"row_dual": MOST.row_dual - 1}, r"row 0 and column 1 costs less than its duals, by 1$"),
        ({"row_dual": MOST.row_dual + 1}, "the objective is -3, but the duals prove -1"),
        ({"row_dual": [-3, -61]}, "row 1 and column 0 costs less than its duals, by 59"),
        ({"row_dual": [-3, 61]}, "the objective is -3, but the duals prove 60: the gap is 63"),
        ({"objective": 3}, "the pairs cost -3 in all, but the objective is 3"),
    ],
)
def test_signs_are_those_of_costs_to_be_maximised(fields, message):
    assert gm.verify(-WIDE, MOST).bound == -3
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify(-WIDE, changed(MOST, **fields))


@pytest.mark.parametrize(("vertex", "pair"), [(0, "row 0 and column 1"), (1, "row 1 and column 0")])
def test_a_limit_is_part_of_what_pairs_must_cost(vertex, pair):
    assert gm.verify(WIDE, LIMITED).size == 2
    row_dual = LIMITED.row_dual + np.eye(2, dtype=int)[vertex]
    assert (row_dual <= 0).all()
    with pytest.raises(gm.CertificateError, match=f"{pair} costs less than its duals and the lim"):
        gm.verify(WIDE, changed(LIMITED, row_dual=row_dual))


def test_a_dearer_assignment_is_turned_down_whatever_its_duals():
    dearer = changed(GOOD, row_to_col=[2, 0], col_to_row=[1, -1, 0], objective=5)
    for duals in ([3, 2], [2, 3], [1, 2]):
        with pytest.raises(gm.CertificateError):
            gm.verify(WIDE, changed(dearer, row_dual=duals))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_forbidden_pairs_are_turned_down(form):
    source = form(np.array([[1.0, X], [X, 1.0]]))
    a = gm.assign(source)
    crossed = changed(a, row_to_col=[1, 0], col_to_row=[1, 0])
    with pytest.raises(gm.CertificateError, match="row 0 is assigned to column 1, but that pair"):
        gm.verify(source, crossed)
    with pytest.raises(gm.CertificateError, match="row 1 is assigned to column 1, but that pair"):
        gm.verify(csr_array(([2.0], ([0], [0])), shape=(2, 2)), a)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("at", ["row_dual", "col_dual"])
def test_floats_are_allowed_their_rounding_and_no_more(scale, at):
    matrix = costs.uniform_float(30, 40, seed=2) * scale
    a = gm.assign(matrix)
    gm.verify(matrix, a)
    for vertex in (0, 11, 29):
        for step in (1e-12 * scale, -1e-12 * scale):
            duals = getattr(a, at).copy()
            duals[vertex] += step
            with pytest.raises(gm.CertificateError):
                gm.verify(matrix, changed(a, **{at: duals}))


def test_large_integers_are_checked_to_the_last_unit():
    matrix = costs.uniform_integer(9, 12, seed=2) + 2**58 * np.arange(9)[:, None] // 9
    a = gm.assign(matrix)
    gm.verify(matrix, a)
    row_dual = a.row_dual.copy()
    row_dual[8] += 1
    with pytest.raises(gm.CertificateError, match="costs less than its duals"):
        gm.verify(matrix, changed(a, row_dual=row_dual))


def test_duals_of_which_a_difference_is_beyond_int64_buy_nothing():
    """Row 0's pairs cost 13 times `most` less than its dual, which wraps in int64."""
    most = 2**63 // 12 - 5
    matrix = np.array([[-most, -most], [0, 1]])
    a = gm.assign(matrix)
    assert a.objective == -most
    crossed = {"row_to_col": [0, 1], "col_to_row": [0, 1], "pair_costs": [-most, 1]}
    diagonal = changed(a, objective=1 - most, **crossed)
    row_dual, col_dual = [12 * most, -12 * most], [1 - most, 0]
    assert sum(row_dual) + sum(col_dual) == diagonal.objective
    with pytest.raises(gm.CertificateError, match="row 0 and column 1 costs less than its duals"):
        gm.verify(matrix, changed(diagonal, row_dual=row_dual, col_dual=col_dual))


MAXIMUM = np.array([[X, 5, X, X], [X, 3, X, X], [7, -9, 1, 2], [X, 4, X, X]])


@pytest.mark.parametrize(
    ("cover", "message"),
    [
        (([2], []), "2 pairs are assigned, not 1, as the cover has vertices"),
        (([2, 3], []), "the pair of row 0 and column 1 is not in the cover"),
        (([2], [4]), "the cover names column 4 of 4"),
    ],
)
def test_a_wrong_cover_is_turned_down(cover, message):
    a = gm.assign(MAXIMUM, cardinality="maximum")
    assert gm.verify(MAXIMUM, a).size == 2
    cover = [np.array(part, int) for part in cover]
    zeros = {"row_dual": np.zeros(4), "col_dual": np.zeros(4)}
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify(MAXIMUM, changed(a, cover_ind=lambda: cover, **zeros))


def test_a_dearer_maximum_is_turned_down():
    a = gm.assign(MAXIMUM, cardinality="maximum")
    pairs = {"row_to_col": [1, -1, 2, -1], "col_to_row": [-1, 0, 2, -1], "pair_costs": [5.0, 1.0]}
    dearer = changed(a, objective=6.0, **pairs)
    with pytest.raises(gm.CertificateError, match=r"the dual of row|duals prove"):
        gm.verify(MAXIMUM, dearer)


def test_pairs_beyond_the_limit_are_turned_down():
    source = np.array([[1, 4], [9, 9]])
    a = gm.assign(source, cardinality="maximum", cost_limit=5)
    assert gm.verify(source, a).edges == 2
    full = changed(gm.assign(source), cardinality="maximum", cost_limit=5)
    with pytest.raises(gm.CertificateError, match="row 1 is assigned to column 1, but that pair"):
        gm.verify(source, full)


def test_pairs_at_the_limit_are_allowed_and_must_be_looked_at():
    source = np.array([[1, 5], [5, 9]])
    a = gm.assign(source, cardinality="maximum", cost_limit=5)
    assert (a.objective, gm.verify(source, a).edges) == (10, 3)
    smaller = gm.assign(source, cardinality="maximum", cost_limit=4)
    with pytest.raises(gm.CertificateError, match="is not in the cover"):
        gm.verify(source, changed(smaller, cost_limit=5))


def test_an_unproven_result_is_turned_down():
    matrix = costs.uniform_float(40, seed=1)
    with pytest.raises(gm.CertificateError):
        gm.verify(matrix, gm.assign(matrix, time_limit=0))


@pytest.mark.parametrize("tile", [1, 7, 64])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_tiles_of_any_size(monkeypatch, tile, form):
    monkeypatch.setattr(gpumatch.costs.base, "HOST_TILE", tile)
    matrix = costs.uniform_integer(9, 13, seed=4) + 1
    a = gm.assign(form(matrix))
    assert gm.verify(form(matrix), a).edges == 9 * 13
    row_dual = a.row_dual.copy()
    row_dual[8] += 1
    with pytest.raises(gm.CertificateError, match="the pair of row 8 and column"):
        gm.verify(form(matrix), changed(a, row_dual=row_dual))


@given(
    seed=st.integers(0, 10**6), wish=st.sampled_from([{}, {"cost_limit": 3}, {"maximize": True}])
)
def test_no_other_assignment_passes(seed, wish):
    """Where the optimum is unique, its duals prove nothing else."""
    rng = np.random.default_rng(seed)
    matrix = rng.permutation(2 ** np.arange(20)).reshape(4, 5)
    a = gm.assign(matrix, **wish)
    gm.verify(matrix, a)
    cols = rng.permutation(5)[:4]
    if np.array_equal(cols, a.row_to_col):
        return
    col_to_row = np.full(5, -1)
    col_to_row[cols] = np.arange(4)
    total = int(matrix[np.arange(4), cols].sum())
    other = changed(a, row_to_col=cols.tolist(), col_to_row=col_to_row.tolist(), objective=total)
    with pytest.raises(gm.CertificateError):
        gm.verify(matrix, other)


# -- bounds that are true as numbers ---------------------------------------------------------------


def exact(number):
    return Fraction(number.item() if isinstance(number, np.generic) else number)


def best(matrix, sign, cardinality, limits):
    """The least sum of costs less limits of what competes, by looking at everything."""
    n, m = matrix.shape
    allowed = {(i, j) for i in range(n) for j in range(m) if abs(matrix[i, j]) < X}
    is_free = cardinality == "any" or (limits is not None and cardinality == "full")
    if cardinality == "maximum" and limits is not None:
        allowed = {(i, j) for i, j in allowed if sign * (limits[i] - matrix[i, j]) >= 0}
    base = limits if is_free and limits is not None else [0] * n
    found = {}
    for size in range(min(n, m) + 1):
        for rows in itertools.combinations(range(n), size):
            for cols in itertools.permutations(range(m), size):
                if all(pair in allowed for pair in zip(rows, cols)):
                    total = sum(exact(matrix[i, j]) - exact(base[i]) for i, j in zip(rows, cols))
                    found.setdefault(size, []).append(sign * total)
    return min(map(min, found.values())) if is_free else min(found[max(found)])


NEAR = st.sampled_from([1.0, 1 + 2**-52, 1 - 2**-53, 2.0**-53, 1e-300, 5e-324, 3.0, 1e18, -0.0])
NUMBERS = {
    "floats": (st.floats(-1e9, 1e9) | NEAR, st.floats(-1e9, 1e9) | NEAR),
    "integers": (st.integers(-9, 9), st.integers(-9, 9)),
    "large": (st.integers(2**53 - 3, 2**53 + 3), st.integers(-(2**63) + 1, 2**63 - 1)),
    "mixed": (st.integers(-9, 9), st.floats(-9, 9) | NEAR),
}


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
@given(data=st.data())
def test_bounds_are_true_whatever_the_duals_are(kind, cardinality, data):
    numbers, duals = NUMBERS[kind]
    n, m = data.draw(st.sampled_from([(1, 1), (2, 3), (3, 2), (3, 3)]))
    draw = lambda of, count: np.array(data.draw(st.lists(of, min_size=count, max_size=count)))  # noqa: E731
    matrix = draw(numbers, n * m).reshape(n, m)
    maximize = data.draw(st.booleans())
    if cardinality == "maximum" and matrix.dtype.kind == "f":
        matrix[draw(st.booleans(), n * m).reshape(n, m)] = -X if maximize else X
    wish = {"maximize": maximize, "cardinality": cardinality}
    if data.draw(st.booleans()):
        wish["cost_limit"] = data.draw(numbers)
    a = gm.assign(matrix, **wish)
    limits = None if a.cost_limit is None else np.full(n, a.cost_limit)
    wrong = changed(a, row_dual=draw(duals, n), col_dual=draw(duals, m), gap=X)
    certificate = gm.verify(matrix, wrong, optimal=False)
    sign = -1 if maximize else 1
    least = best(matrix, sign, cardinality, limits)
    is_free = limits is not None and cardinality != "maximum"
    base = sum(exact(limits[i]) for i in a.row_ind) if is_free else 0
    own = sum(exact(matrix[i, j]) for i, j in zip(a.row_ind, a.col_ind)) - base
    assert certificate.gap == X or sign * own - exact(certificate.gap) <= least
    if abs(certificate.bound) < X:
        room = 1e-14 * abs(base) if matrix.dtype.kind == "f" else 0
        assert sign * (exact(certificate.bound) - base) <= least + room


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("unused", [1e18, 1e300])
def test_unused_costs_allow_nothing(form, unused):
    """Pairs of 900 are not the best where those of 0 are, whatever else costs 1e18."""
    matrix = np.array([[1e-9, 900, unused], [900, 1e-9, unused], [unused, unused, 1e-9]])
    a = gm.assign(form(matrix))
    assert gm.verify(form(matrix), a).allowance < 1e-20
    pairs = {"row_to_col": [1, 0, 2], "col_to_row": [1, 0, 2], "pair_costs": [900, 900, 1e-9]}
    duals = {"row_dual": [900, 900, 1e-9], "col_dual": [0.0, 0.0, 0.0]}
    with pytest.raises(gm.CertificateError, match="costs less than its duals"):
        gm.verify(form(matrix), changed(a, **pairs, **duals, objective=1800 + 1e-9))
    with pytest.raises(gm.CertificateError, match="but the objective is"):
        gm.verify(form(matrix), changed(a, objective=a.objective + 1e-9))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_unused_costs_that_duals_make_tight_allow_nothing(form):
    """As far as their slacks show, a better assignment might have them, but none of the pairs."""
    matrix = np.array([[1e-9, 900, 1e18], [900, 1e-9, 1e18], [1e18, 1e18, 1e-9]])
    pairs = {"row_to_col": [1, 0, 2], "col_to_row": [1, 0, 2], "pair_costs": [900, 900, 1e-9]}
    duals = {"row_dual": [1e18, 1e18, 0.0], "col_dual": [-1e18, -1e18, 0.0]}
    forged = changed(gm.assign(matrix), **pairs, **duals, objective=1800 + 1e-9, gap=X)
    found = gm.verify(form(matrix), forged, optimal=False)
    assert 1800 <= found.gap < 2100
    assert found.allowance < 1e-9
    with pytest.raises(gm.CertificateError):
        gm.verify(form(matrix), changed(forged, gap=found.gap))


@pytest.mark.parametrize("gap", [-5e-324, -1e-18])
def test_a_gap_below_zero_is_refused_though_rounding_might_explain_it(gap):
    matrix = WIDE * 0.1
    a = gm.assign(matrix)
    assert abs(gap - a.gap) <= gm.verify(matrix, a).allowance
    with pytest.raises(gm.CertificateError, match=f"the gap is {gap}"):
        gm.verify(matrix, changed(a, gap=gap))


@pytest.mark.parametrize("scale", [1, 1e200, 1e-200])
def test_the_gap_of_a_run_without_pairs_is_a_rounded_sum(scale):
    """Without a pair nothing is allowed for rounding, but duals are rounded all the same."""
    rows = [0.39608785, 0.22037226, 0.79015999, 0.43962302, 0.66177307, 0.36819211, 0.01582319]
    matrix = np.array(rows)[:, None] * np.array([1.0, 0.55638])
    a = gm.assign(
        matrix * scale, cardinality="any", cost_limit=0.66177307 * scale,
        algorithm="hungarian-tree", callback=lambda _: True,
    )  # fmt: skip
    assert a.size == 0 < a.gap < math.inf
    exact = gm.verify(matrix * scale, a, optimal=False)
    assert exact.allowance == 0
    summed = sum(map(abs, [*a.row_dual.tolist(), *a.col_dual.tolist()]))
    for off in (2.0**-50, -(2.0**-50)):
        close = changed(a, gap=exact.gap + off * summed)
        assert gm.verify(matrix * scale, close, optimal=False) == exact
    for off in (2.0**-45, -(2.0**-45)):
        with pytest.raises(gm.CertificateError, match="the gap is"):
            gm.verify(matrix * scale, changed(a, gap=exact.gap + off * summed), optimal=False)


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("algorithm", ["dgs", "auction", "hungarian-tree", "hungarian-classical"])
def test_stopped_runs_say_no_gap_that_is_refused(algorithm, kind, calls):
    rng = np.random.default_rng(5)
    for maximize in (False, True):
        for shape in ((1, 1), (9, 2), (3, 7), (6, 6)):
            matrix = (rng.random(shape) * 9).astype(kind)
            limits = matrix[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])]
            for limit in (None, limits[0].item(), limits, limits + 0.25):
                for cardinality in ("full", "any", "maximum"):
                    stops = itertools.chain([False] * (calls - 1), itertools.repeat(True))
                    a = gm.assign(
                        matrix, cardinality=cardinality, cost_limit=limit, maximize=maximize,
                        algorithm=algorithm, callback=lambda _, stops=stops: next(stops),
                    )  # fmt: skip
                    if a.gap < math.inf:
                        assert gm.verify(matrix, a, optimal=False).gap < math.inf


@pytest.mark.parametrize("size", [1e10, 1e18, 1e300])
def test_large_duals_buy_little(size):
    """They cancel. What they allow is bounded by the costs in use."""
    matrix = costs.uniform_float(8, seed=3)
    a = gm.assign(matrix)
    moved = changed(a, row_dual=a.row_dual + size, col_dual=a.col_dual - size)
    with pytest.raises(gm.CertificateError):
        gm.verify(matrix, moved)
    certificate = gm.verify(matrix, changed(moved, gap=X), optimal=False)
    assert certificate.allowance < 1e-11


@pytest.mark.parametrize("seed", range(20))
def test_floats_that_are_no_worse_than_rounding_are_told_from_worse_ones(seed):
    """Each other assignment loses far more than the allowance, and is refused with any duals."""
    rng = np.random.default_rng(seed)
    matrix = 10.0 ** rng.uniform(-9, 9, (6, 6))
    a = gm.assign(matrix)
    certificate = gm.verify(matrix, a)
    assert certificate.gap <= certificate.allowance <= 1e-11 * a.objective
    other = rng.permutation(6)
    if np.array_equal(other, a.row_to_col):
        return
    paid = matrix[np.arange(6), other]
    pairs = {"row_to_col": other, "col_to_row": np.argsort(other), "pair_costs": paid}
    for row_dual in (a.row_dual, paid - a.col_dual[other]):
        with pytest.raises(gm.CertificateError):
            gm.verify(matrix, changed(a, **pairs, objective=math.fsum(paid), row_dual=row_dual))


def test_duals_of_floats_prove_integers_if_nothing_is_lost():
    matrix = np.array([[2**60, 2**60 + 1], [2**60 + 1, 2**60]])
    a = gm.assign(matrix)
    duals = {"row_dual": a.row_dual.astype(float), "col_dual": a.col_dual.astype(float)}
    assert gm.verify(matrix, changed(a, **duals)).gap == 0
    crossed = {"row_to_col": [1, 0], "col_to_row": [1, 0], "pair_costs": [2**60 + 1] * 2}
    crossed["objective"] = 2**61 + 2
    for row_dual in (duals["row_dual"], duals["row_dual"] + 1024):
        with pytest.raises(gm.CertificateError):
            gm.verify(matrix, changed(a, **crossed, **{**duals, "row_dual": row_dual}))


def test_duals_beyond_int64_are_refused():
    least = np.array([-(2**63), 0])
    with pytest.raises(gm.CertificateError, match="must be finite numbers of float64 or int64"):
        gm.verify(WIDE, changed(GOOD, row_dual=least))
    with pytest.raises(gm.CertificateError, match="number 1 is 18446744073709551615"):
        gm.verify(WIDE, changed(GOOD, row_dual=np.array([3, 2**64 - 1], np.uint64)))
    assert gm.verify(WIDE, changed(GOOD, row_dual=GOOD.row_dual.astype(np.uint64))).gap == 0


@pytest.mark.parametrize("huge", [2**62, 2**63 - 1])
def test_integer_duals_do_not_wrap(huge):
    """Their sums and differences are beyond int64, but their bound is exact."""
    wrong = changed(GOOD, row_dual=[huge, -huge], col_dual=[-huge, -huge, 0], gap=X)
    certificate = gm.verify(WIDE, wrong, optimal=False)
    assert certificate.bound <= -3 * huge + 4
    with pytest.raises(gm.CertificateError):
        gm.verify(WIDE, wrong)


LIES = [
    ({"maximize": "no"}, "maximize must be True or False; got 'no'"),
    ({"maximize": 0}, "maximize must be True or False; got 0"),
    ({"cardinality": "foo"}, "the cardinality must be one of .* got 'foo'"),
    ({"cardinality": None}, "the cardinality must be one of .* got None"),
    ({"cost_limit": math.nan}, "the limit must be a number; got nan"),
    ({"cost_limit": "3"}, "the limit must be a number; got '3'"),
    ({"cost_limit": True}, "the limit must be a number; got True"),
    ({"cost_limit": math.inf}, "the limits must be finite"),
    ({"cost_limit": np.array([3.0, math.nan])}, "one is NaN"),
    ({"cost_limit": np.array([1, 2**62 + 1])}, r"must be at most 2\*\*62"),
    ({"objective": math.nan}, "the objective must be a number; got nan"),
    ({"objective": "3"}, "the objective must be a number; got '3'"),
    ({"objective": True}, "the objective must be a number; got True"),
    ({"objective": math.inf}, "but the objective is inf"),
    ({"objective": 3.0000000000000004}, "but the objective is 3.0000000000000004"),
    ({"gap": math.nan}, "the gap must be a number; got nan"),
    ({"gap": math.inf}, "the gap is inf, but the duals leave 0"),
    ({"gap": "0"}, "the gap must be a number; got '0'"),
    ({"gap": False}, "the gap must be a number; got False"),
    ({"size": 3}, "there are 2 pairs, but the size is 3"),
    ({"pair_costs": [1, 1]}, "pair_costs does not agree"),
    ({"pair_costs": [1]}, "pair_costs does not agree"),
    ({"row_to_col": np.array([True, False])}, "must be 2 integers; got bool"),
    ({"row_to_col": np.array([1, 0], object)}, "must be 2 integers; got object"),
    ({"row_to_col": np.array([1.0, 0.0])}, "must be 2 integers; got float64"),
    ({"row_ind": np.array([0.0, 1.0])}, "row_ind does not agree"),
    ({"row_dual": np.array([3, 2], object)}, "must be 2 numbers; got object"),
    ({"row_dual": np.array([math.inf, 2])}, "number 0 is inf"),
]  # fmt: skip


@pytest.mark.parametrize("optimal", [True, False])
@pytest.mark.parametrize(("fields", "message"), LIES)
def test_what_a_result_says_of_itself_is_checked(fields, message, optimal):
    wrong = changed(GOOD)
    for name, value in fields.items():
        setattr(wrong, name, np.array(value) if isinstance(value, list) else value)
    if not optimal and fields == {"gap": math.inf}:
        assert gm.verify(WIDE, wrong, optimal=False).gap == 0  # which is no lie
        return
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify(WIDE, wrong, optimal=optimal)


@pytest.mark.parametrize(
    "limits",
    [
        np.array([4, 4], np.uint8), np.array([4, 4], np.uint64), np.array([4, 4], np.int8),
        np.array([4.0, 4.0], np.float32), np.array(4), np.array(4.0), np.float32(4), np.int8(4),
        np.array([4, 4], np.longdouble), [4, 4], np.longdouble(4), np.array(4, np.uint8),
    ],
    ids=lambda limits: f"{np.asarray(limits).dtype}-{np.ndim(limits)}",
)  # fmt: skip
@pytest.mark.parametrize("cardinality", ["full", "any", "maximum"])
@pytest.mark.parametrize("maximize", [False, True])
def test_limits_of_every_type(limits, cardinality, maximize):
    wish = {"cardinality": cardinality, "maximize": maximize}
    matrix = 3 * WIDE
    a = gm.assign(matrix, cost_limit=4, **wish)
    other = copy.copy(a)
    other.cost_limit = limits
    assert gm.verify(matrix, other) == gm.verify(matrix, a)


@pytest.mark.parametrize("cardinality", ["full", "any"])
def test_the_least_int8_is_a_limit(cardinality):
    a = gm.assign(WIDE, cost_limit=-128, cardinality=cardinality)
    other = copy.copy(a)
    other.cost_limit = np.array([-128, -128], np.int8)
    assert gm.verify(WIDE, other) == gm.verify(WIDE, a)


@pytest.mark.parametrize("maximize", [False, True])
def test_infinite_costs_that_ask_for_a_pair_are_refused(maximize):
    matrix = np.array([[1.0, X], [2.0, 1.0]]) * (1 if maximize else -1)
    a = gm.assign(np.eye(2), maximize=maximize)
    with pytest.raises(gm.CertificateError, match="asks for a pair"):
        gm.verify(matrix, a)


# -- pairs at the limit ----------------------------------------------------------------------------


def nothing(limit, sign, number=float, shape=(1, 1)):
    """A result without pairs, whose duals prove it, because a pair at the limit gains nothing."""
    none = np.array([], np.int64)
    mates = {name: np.full(n, -1) for name, n in zip(("row_to_col", "col_to_row"), shape)}
    duals = {name: np.zeros(n, number) for name, n in zip(("row_dual", "col_dual"), shape)}
    return SimpleNamespace(
        **mates, **duals, row_ind=none, col_ind=none, objective=number(0), gap=number(0),
        maximize=sign < 0, cardinality="full", cost_limit=limit,
    )  # fmt: skip


LIMITS = [
    (5, 5, int), (5.0, 5.0, float), (0.1, 0.1, float), (2**60 + 1, 2**60 + 1, int),
    (5, np.array([5]), int), (5.0, np.array([5]), float), (0.0, -0.0, float),
]  # fmt: skip


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("cost", "limit", "number"), LIMITS, ids=range(len(LIMITS)))
def test_a_pair_within_the_limit_is_not_left_out(cost, limit, number, sign, form):
    matrix = sign * np.array([[cost]])
    if form is csr_array:
        matrix = csr_array(([sign * cost], ([0], [0])), shape=(1, 1))
    claim = nothing(limit * sign, sign, number)
    with pytest.raises(gm.CertificateError, match="row 0 and column 0 are unmatched, but their"):
        gm.verify(matrix, claim)
    assert gm.verify(matrix, claim, optimal=False).size == 0 or claim.gap == 0


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("cost", "limit"),
    [(5, 4), (5, 4.5), (2**60 + 1, 2**60), (0.1, math.nextafter(0.1, 0)), (X, 5.0)],
)
def test_a_pair_beyond_the_limit_is_left_out(cost, limit, sign):
    number = int if isinstance(cost, int) else float
    matrix = np.array([[cost]]) * sign
    assert gm.verify(matrix, nothing(limit * sign, sign, number)).size == 0


def test_each_row_has_its_own_limit_and_only_unmatched_vertices_count():
    matrix = np.array([[3, 9], [9, 4]])
    claim = nothing(np.array([2, 3]), 1, int, (2, 2))
    assert gm.verify(matrix, claim).size == 0
    claim.cost_limit = np.array([2, 4])
    with pytest.raises(gm.CertificateError, match="row 1 and column 1 are unmatched"):
        gm.verify(matrix, claim)
    claim.row_to_col, claim.col_to_row = np.array([0, -1]), np.array([0, -1])
    claim.row_ind, claim.col_ind, claim.objective = np.array([0]), np.array([0]), 3
    claim.cost_limit = np.array([3, 3])
    assert gm.verify(matrix, claim).size == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_without_a_limit_a_pair_is_made_only_if_it_pays(sign):
    claim = nothing(None, sign, int)
    claim.cardinality = "any"
    assert gm.verify(np.array([[0]]), claim).size == 0


# -- results that claim less -----------------------------------------------------------------------


def test_a_worse_assignment_has_a_gap():
    pairs = {"row_to_col": [2, 0], "col_to_row": [1, -1, 0], "pair_costs": [3, 2], "size": 2}
    worse = changed(GOOD, **pairs, objective=5, gap=2)
    with pytest.raises(gm.CertificateError, match="must be 0, because the column is unmatched"):
        gm.verify(WIDE, worse)
    certificate = gm.verify(WIDE, worse, optimal=False)
    assert (certificate.bound, certificate.gap, certificate.allowance) == (3, 2, 0)
    assert str(certificate) == (
        "not proven optimal: 2 pairs of total 5, and dual prices of total 3, checked on 6 pairs; "
        "the gap is at most 2, with an allowance of 0"
    )
    with pytest.raises(gm.CertificateError, match="the gap is 1, but the duals leave 2"):
        gm.verify(WIDE, changed(worse, gap=1), optimal=False)


@pytest.mark.parametrize("wish", [{}, {"cardinality": "maximum"}, {"cost_limit": 0.5}])
@pytest.mark.parametrize("maximize", [False, True])
def test_a_run_that_was_stopped_has_what_its_duals_prove(wish, maximize):
    matrix = costs.uniform_float(40, seed=1)
    stopped = gm.assign(matrix, time_limit=0, maximize=maximize, **wish)
    sign = -1 if maximize else 1
    certificate = gm.verify(matrix, stopped, optimal=False)
    assert certificate.gap <= stopped.gap
    if wish.get("cost_limit") is None:
        assert sign * certificate.bound <= sign * gm.assign(matrix, maximize=maximize).objective
    lied = changed(stopped, gap=certificate.gap / 2 if certificate.gap < X else 0.0)
    if certificate.gap > certificate.allowance:
        with pytest.raises(gm.CertificateError, match=r"the gap is .*, but the duals leave"):
            gm.verify(matrix, lied, optimal=False)


def test_epsilon_optimal_results_have_their_gap():
    matrix = costs.uniform_float(60, seed=2)
    a = gm.assign(matrix, algorithm="dgs")
    certificate = gm.verify(matrix, a, optimal=False)
    least = gm.assign(matrix).objective
    assert certificate.bound <= least <= a.objective
    assert abs(certificate.gap - a.gap) <= certificate.allowance


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("number", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("wish", [{}, {"cost_limit": 3}, {"cardinality": "maximum"}])
def test_costs_on_a_device(number, wish):
    cp = pytest.importorskip("cupy")
    matrix = costs.uniform_integer(9, 13, seed=4) % 7 + 1
    matrix = (matrix / (3 if np.dtype(number).kind == "f" else 1)).astype(number)
    a = gm.assign(matrix, **wish)
    assert gm.verify(cp.asarray(matrix), a) == gm.verify(matrix, a)
    with pytest.raises(gm.CertificateError, match="costs less than its duals"):
        gm.verify(cp.asarray(matrix), changed(a, row_dual=a.row_dual + (a.row_to_col >= 0)))
