"""What the checker of assignments computes is true of numbers of any size, rounded or not."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import gpumatch as gm
from graphs import costs
from tests.certificates.claimed import GOOD, WIDE, changed

X = math.inf


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
@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
def test_tiny_costs_are_exact_beside_huge_ones(form, cardinality):
    """Each pair is tight by itself, whatever some other pair costs."""
    matrix = np.array([[-1e-301, 4e301], [5e-324, 1.0], [2.5e301, 3e-301]])
    wish = {"cardinality": cardinality, "cost_limit": None if cardinality != "any" else 1e-301}
    a = gm.assign(form(matrix), **wish)
    assert a.proven
    assert gm.verify(form(matrix), a).gap == 0
    raised = changed(a, row_dual=a.row_dual + np.array([1e-301, 0, 0]))
    with pytest.raises(gm.CertificateError, match="dual"):
        gm.verify(form(matrix), raised)


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
