"""`gpumatch.verify` refuses every false claim, and accepts true ones at the ends of all ranges."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import gpumatch as gm
from gpumatch.certificates.distributed import verify_share_of_assignment
from gpumatch.costs import as_costs
from tests.certificates.forging import (
    BROKEN,
    UNPROVEN,
    WORSE,
    OneRank,
    asked,
    claim_of,
    excess,
    pairs,
    proven_gap,
    share_of,
)
from tests.fuzz.problems import Problem
from tests.fuzz.transformations import source_of

INTEGERS = (np.int64, np.int64, np.int32, np.int8, np.uint8, np.uint64, np.bool_)
FLOATS = (np.float64, np.float64, np.float32, np.float16, np.longdouble)
MANY = settings(
    max_examples=30, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
CLOSE = 1e-9
"""Of the largest cost: what is worse by more must be refused. The allowance is far smaller."""
QUESTIONS = ("full", "maximum", "any", "limit", "limits", "maximum with limit")


@st.composite
def problems(draw, questions: tuple[str, ...] = QUESTIONS) -> Problem:
    """Up to 5 rows and columns, with ties, forbidden pairs, and perhaps an unused huge cost."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    dtype = np.dtype(draw(st.sampled_from((*INTEGERS, *FLOATS))))
    rows, cols = (part.ravel() for part in np.indices(shape))
    values = rng.integers(0 if dtype.kind in "ub" else -3, 4, rows.size)
    if dtype.kind == "f":
        power = draw(st.sampled_from((0, 0, -3, -1000, 990) if dtype.itemsize >= 8 else (0, 1)))
        found = np.ldexp(values.astype(np.float64) + 0.1 * rng.random(rows.size), power)
        if dtype.itemsize >= 8 and power == 0 and rng.random() < 0.3:
            found[rng.integers(found.size)] = 1e18
        values = found
    elif dtype == np.int64 and draw(st.booleans()):
        values = values * 2 ** draw(st.sampled_from((30, 45, 53, 56)))
    values = values.astype(dtype)
    kept = np.ones(rows.size, bool)
    question = draw(st.sampled_from(questions))
    if question != "full" and draw(st.booleans()):
        kept = rng.random(rows.size) < 0.6
    maximize = draw(st.booleans())
    limit: Any = None
    if "limit" in question:
        limits = rng.choice(values, shape[0])
        if dtype.kind == "b":
            limits = limits.astype(np.int8)
        limit = limits if question == "limits" else limits[0].item()
    cardinality = question if question in ("full", "any") else "full"
    cardinality = "maximum" if question.startswith("maximum") else cardinality
    return Problem(shape, rows[kept], cols[kept], values[kept], maximize, cardinality, limit)


def solved(problem: Problem) -> tuple[Any, SimpleNamespace]:
    """The costs, and a copy of what is found for them in the widest dtype of their kind."""
    wide = np.int64 if problem.is_integer else np.float64
    limit = problem.limit
    if problem.given_limits.ndim:
        limit = limit.astype(wide)
    widened = dataclasses.replace(problem, values=problem.values.astype(wide), limit=limit)
    result = gm.assign(source_of(widened), **widened.options)
    source = source_of(problem)
    if hasattr(source, "tocsr"):
        source = source_of(widened)
    claim = claim_of(result)
    assume(result.proven and excess(problem, claim) == 0)
    return source, claim


def margin(problem: Problem, claim: SimpleNamespace) -> float:
    """The excess from which a claim must be refused, of the costs but an unused huge one."""
    if problem.is_exact and asked(problem, claim).given_limits.dtype.kind != "f":
        return 0.0
    places = problem.places(claim.row_ind, claim.col_ind)
    numbers = [
        problem.costs[abs(problem.costs) != 1e18], problem.costs[places[places >= 0]],
        problem.limits[np.isfinite(problem.limits)],
    ]  # fmt: skip
    return CLOSE * float(max(abs(part).max(initial=0) for part in numbers))


def refuse(C: Any, claim: Any) -> None:
    with pytest.raises(gm.CertificateError):
        gm.verify(C, claim)


def refuse_everywhere(C: Any, problem: Problem, claim: Any) -> None:
    """Refuse a claim about one problem, and the same claim of a rank that has all rows."""
    refuse(C, claim)
    share = share_of(problem, claim)
    if share is not None:
        with pytest.raises(gm.CertificateError):
            verify_share_of_assignment(as_costs(C), share, OneRank())


@MANY
@given(problems())
def test_a_copy_of_a_true_result_is_accepted(problem):
    C, claim = solved(problem)
    certificate = gm.verify(C, claim)
    assert certificate.gap <= certificate.allowance
    assert gm.verify(C, claim, optimal=False) == certificate
    share = share_of(problem, claim)
    if share is not None:
        assert verify_share_of_assignment(as_costs(C), share, OneRank()) == certificate


@pytest.mark.parametrize("name", BROKEN)
@MANY
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_a_broken_claim_is_refused(name, problem, seed):
    C, claim = solved(problem)
    assume(BROKEN[name](np.random.default_rng(seed), problem, claim))
    if name == "pairs disagree":  # which a share does not say
        refuse(C, claim)
    else:
        refuse_everywhere(C, problem, claim)


@pytest.mark.parametrize("name", WORSE)
@MANY
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_a_claim_of_worse_pairs_is_refused(name, problem, seed):
    C, claim = solved(problem)
    assume(WORSE[name](np.random.default_rng(seed), problem, claim))
    assume(excess(problem, claim) > margin(problem, claim))
    refuse_everywhere(C, problem, claim)


@pytest.mark.parametrize("name", WORSE)
@MANY
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_the_gap_of_worse_pairs_is_no_less_than_it_is(name, problem, seed):
    C, claim = solved(problem)
    assume(WORSE[name](np.random.default_rng(seed), problem, claim))
    claim.gap = math.inf
    too_much = excess(problem, claim)
    try:
        certificate = gm.verify(C, claim, optimal=False)
    except gm.CertificateError:
        return
    assert certificate.gap >= too_much or certificate.gap == math.inf


@pytest.mark.parametrize("name", UNPROVEN)
@MANY
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_duals_that_prove_too_little_are_refused(name, problem, seed):
    C, claim = solved(problem)
    assume(UNPROVEN[name](np.random.default_rng(seed), problem, claim))
    assume(proven_gap(problem, claim) > margin(problem, claim))
    refuse_everywhere(C, problem, claim)


@MANY
@given(problems(("limit", "limits")))
def test_a_pair_at_the_limit_is_not_left_out(problem):
    """Without a pair that costs its limit, the objective is as good, but not what is promised."""
    C, claim = solved(problem)
    paid = problem.costs[problem.places(claim.row_ind, claim.col_ind)]
    at_limit = claim.row_ind[paid == problem.limits[claim.row_ind]]
    assume(at_limit.size)
    mates = claim.row_to_col.copy()
    mates[at_limit[0]] = -1
    pairs(claim, problem, mates)
    refuse_everywhere(C, problem, claim)


@pytest.mark.parametrize("limit", [2, np.array([2, 1])], ids=["scalar", "row limits"])
@pytest.mark.parametrize("maximize", [False, True], ids=["least", "greatest"])
def test_no_pairs_at_all_are_refused_where_one_costs_the_limit(limit, maximize):
    sign = -1 if maximize else 1
    C, limit = np.array([[2, 3], [4, 5]]) * sign, limit * sign
    claim = claim_of(gm.assign(C, cost_limit=limit, maximize=maximize))
    claim.row_dual, claim.col_dual = np.zeros((2, 2), np.int64)
    problem = Problem((2, 2), *np.indices((2, 2)).reshape(2, -1), C.ravel(), maximize, limit=limit)
    pairs(claim, problem, np.array([-1, -1]))
    claim.gap = 0
    refuse_everywhere(C, problem, claim)


@MANY
@given(problems(), st.integers(0, 2**32))
def test_the_result_of_other_costs_is_refused(problem, seed):
    C, claim = solved(problem)
    rng = np.random.default_rng(seed)
    other = dataclasses.replace(problem, values=rng.permutation(problem.values))
    source = source_of(other) if not hasattr(C, "tocsr") else C.copy()
    if hasattr(source, "tocsr"):
        source.data = other.values.astype(source.dtype)
    places = other.places(claim.row_ind, claim.col_ind)
    sign = -1 if problem.maximize else 1
    total = math.fsum((other.costs[places] * sign).tolist())
    is_worse = excess(other, claim) > margin(problem, claim)
    assume(is_worse or abs(total - claim.objective) > margin(problem, claim))
    refuse(source, claim)


@pytest.mark.parametrize("thing", [None, 3, "optimal", [], {}, np.zeros(3), object()])
def test_what_is_no_result_is_a_type_error(thing):
    with pytest.raises(TypeError):
        gm.verify(np.zeros((2, 2)), thing)


# -- the ends of ranges ----------------------------------------------------------------------------

ENDS = {
    "1e300": np.array([[1.0, 2, 5], [2, 1, 7], [4, 4, 1]]) * 1e300,
    "1e-300": np.array([[1.0, 2, 5], [2, 1, 7], [4, 4, 1]]) * 1e-300,
    "denormal": np.array([[1.0, 2, 5], [2, 1, 7], [4, 4, 1]]) * 5e-324,
    "both ends": np.array([[1e300, 1e-300, 5e-324], [1, 1e300, 2], [3, 1e-300, 1e300]]),
    "signed zeros": np.array([[0.0, -0.0, 1], [-0.0, 0.0, 1], [1, 1, -0.0]]),
    "float16": np.array([[6e4, 1, 2], [3, 6e4, 6e-8], [6e-8, 2, 6e4]], np.float16),
    "longdouble": np.array([[1, 2, 5], [2, 1, 7], [4, 4, 1]], np.longdouble) * 1e300,
    "float32": np.array([[3e38, 1e-45, 2], [3, 3e38, 1e-38], [1e-38, 2, 3e38]], np.float32),
    "int8": np.array([[-128, 127, 0], [127, -128, 1], [0, 1, -128]], np.int8),
    "uint64": np.array([[2**58, 1, 2], [1, 2**58, 3], [2, 3, 2**58]], np.uint64),
    "int64": np.array([[-(2**59), 1, 2], [1, 2**59, 3], [2, 3, -(2**59) + 1]]),
    "an unused 1e18": np.array([[1.0, 1e18, 5], [2, 1, 1e18], [4, 4, 1]]),
}


@pytest.mark.parametrize("maximize", [False, True], ids=["least", "greatest"])
@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
@pytest.mark.parametrize("name", ENDS)
def test_true_results_at_the_ends_of_ranges_are_accepted(name, cardinality, maximize):
    for part in (np.s_[:], np.s_[:2], np.s_[:, :2]):
        C = ENDS[name][part]
        result = gm.assign(C, cardinality=cardinality, maximize=maximize)
        assert gm.verify(C, result).gap <= 1e-12 * abs(result.pair_costs).max(initial=0)


def test_an_unused_cost_does_not_hide_a_worse_assignment():
    C = np.array([[0.0, 1.0, 1e18], [1.0, 0.0, 1e18], [1e18, 1e18, 0.0]])
    claim = claim_of(gm.assign(C))
    pairs(
        claim, Problem((3, 3), *np.indices((3, 3)).reshape(2, -1), C.ravel()), np.array([1, 0, 2])
    )
    refuse(C, claim)
    claim.row_dual, claim.col_dual = claim.row_dual + 1e18, claim.col_dual - 1e18
    refuse(C, claim)


# -- matchings -------------------------------------------------------------------------------------

patterns = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: st.lists(
        st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]
    ).map(lambda marks: np.array(marks).reshape(shape))
)


def matching_claim(A: np.ndarray) -> SimpleNamespace:
    m = gm.maximum_matching(A)
    cover = m.cover_ind()
    claim = SimpleNamespace(row_to_col=m.row_to_col.copy(), col_to_row=m.col_to_row.copy())
    claim.cover = list(cover)
    claim.cover_ind = claim.vertex_cover = lambda: tuple(claim.cover)
    return claim


def without_a_pair(rng, A, claim):
    rows = np.flatnonzero(claim.row_to_col >= 0)
    if not rows.size:
        return False
    row = rng.choice(rows)
    claim.col_to_row[claim.row_to_col[row]] = claim.row_to_col[row] = -1
    return True


def without_a_pair_and_its_cover(rng, A, claim):
    if not without_a_pair(rng, A, claim):
        return False
    side = 0 if claim.cover[0].size else 1
    claim.cover[side] = claim.cover[side][1:]
    return True


def cover_less(rng, A, claim):
    side = 0 if claim.cover[0].size else 1
    if not claim.cover[side].size:
        return False
    claim.cover[side] = claim.cover[side][1:]
    return True


def cover_more(rng, A, claim):
    others = np.setdiff1d(np.arange(A.shape[0]), claim.cover[0])
    claim.cover[0] = np.append(claim.cover[0], others[:1])
    return bool(others.size)


def cover_twice(rng, A, claim):
    """One vertex of the cover takes the place of another."""
    side = int(claim.cover[0].size < 2)
    if claim.cover[side].size < 2:
        return False
    claim.cover[side] = np.full_like(claim.cover[side], claim.cover[side][0])
    return True


def cover_outside(rng, A, claim):
    claim.cover[0] = np.append(claim.cover[0], rng.choice([-1, A.shape[0], 2**31]))
    return True


def pair_without_edge(rng, A, claim):
    rows, cols = np.flatnonzero(claim.row_to_col < 0), np.flatnonzero(claim.col_to_row < 0)
    if not rows.size or not cols.size:
        return False
    claim.row_to_col[rows[0]], claim.col_to_row[cols[0]] = cols[0], rows[0]
    return True


def mate_outside(rng, A, claim):
    claim.row_to_col[rng.integers(A.shape[0])] = rng.choice([-2, A.shape[1], 10**6])
    return True


MATCHINGS = [
    without_a_pair, without_a_pair_and_its_cover, cover_less, cover_more, cover_twice,
    cover_outside, pair_without_edge, mate_outside,
]  # fmt: skip


@pytest.mark.parametrize("forge", MATCHINGS, ids=lambda forge: forge.__name__)
@MANY
@given(A=patterns, seed=st.integers(0, 2**32))
def test_a_false_matching_is_refused(forge, A, seed):
    claim = matching_claim(A)
    gm.verify(A, claim)
    assume(forge(np.random.default_rng(seed), A, claim))
    refuse(A, claim)


# -- bottlenecks -----------------------------------------------------------------------------------


def bottleneck_claim(C: Any, **options: Any) -> SimpleNamespace:
    a = gm.assign(C, objective="bottleneck", **options)
    names = ("row_to_col", "col_to_row", "objective", "maximize", "cardinality", "pair_costs")
    claim = SimpleNamespace(**{name: getattr(a, name) for name in names})
    claim.cover = list(a.threshold_cover())
    claim.threshold_cover = lambda: tuple(claim.cover)
    return claim


def bottleneck_of(C: np.ndarray, maximize: bool) -> float:
    """The least largest cost of a full assignment, by enumeration of thresholds."""
    signed = -C if maximize else C
    for limit in np.unique(signed):
        if gm.maximum_matching(signed <= limit).size == min(C.shape):
            return (-limit if maximize else limit).item()
    raise AssertionError


@MANY
@given(
    st.integers(0, 2**32), st.booleans(), st.sampled_from(["int64", "float64", "float32"]),
    st.sampled_from([1, 2**53, 2**58]),
)  # fmt: skip
def test_a_worse_bottleneck_is_refused(seed, maximize, dtype, scale):
    """The next cost above, one unit or one ulp away, is not the bottleneck."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 5, 2))
    steps = rng.integers(0, 5, shape)
    if dtype == "int64":
        C = steps + (scale if scale > 1 else 0)
    else:
        C = np.asarray(1 + steps * np.finfo(dtype).eps, dtype)
    claim = bottleneck_claim(C, maximize=maximize)
    gm.verify(C, claim)
    rows = np.arange(min(shape))
    order = rng.permutation(max(shape))[: min(shape)]
    pair = (rows, order) if shape[0] <= shape[1] else (order, rows)
    row_to_col, col_to_row = (np.full(size, -1) for size in shape)
    row_to_col[pair[0]], col_to_row[pair[1]] = pair[1], pair[0]
    paid = C[row_to_col >= 0, row_to_col[row_to_col >= 0]]
    worst = (paid.min() if maximize else paid.max()).item()
    assume(worst != bottleneck_of(C, maximize))
    told = SimpleNamespace(**vars(claim))
    told.threshold_cover = claim.threshold_cover
    told.row_to_col, told.col_to_row, told.pair_costs = row_to_col, col_to_row, paid
    for objective in (worst, claim.objective, float(claim.objective), float(worst)):
        told.objective = objective
        refuse(C, told)


@pytest.mark.parametrize("objective", [2.0**53, math.nan, None, 2**53, -1, "9007199254740993"])
def test_a_bottleneck_of_another_number_is_refused(objective):
    C = np.array([[2**53 + 1]])
    claim = bottleneck_claim(C)
    claim.objective = objective
    refuse(C, claim)


# -- batches ---------------------------------------------------------------------------------------


def test_results_that_change_places_in_a_batch_are_refused():
    C = np.array([[[1, 9], [9, 1]], [[9, 1], [1, 9]]])
    result = gm.assign(C)
    gm.verify(C, result)
    refuse(C[::-1].copy(), result)
    refuse(C[:1], result)
    refuse(np.concatenate([C, C]), result)


@pytest.mark.parametrize("sizes", [[[1, 1], [1, 1]], [[0, 0], [0, 0]], [[2, 1], [2, 2]]], ids=str)
def test_a_batch_does_not_say_itself_how_large_its_problems_are(sizes):
    C = np.array([[[1, 9], [9, 1]], [[9, 1], [1, 9]]])
    result = gm.assign(C, sizes=(np.array(sizes)[:, 0], np.array(sizes)[:, 1]))
    refuse(C, result)


# -- products --------------------------------------------------------------------------------------


def product_claim(A: np.ndarray) -> SimpleNamespace:
    s = gm.linalg.maximum_product_matching(A)
    names = ("row_to_col", "col_to_row", "row_log_scale", "col_log_scale")
    return SimpleNamespace(**{name: getattr(s, name).copy() for name in names})


def _worst(rng, claim):
    claim.row_to_col = claim.col_to_row = np.array([1, 0], np.int32)


def _scales_apart(by):
    def forge(rng, claim):
        _worst(rng, claim)
        claim.row_log_scale = claim.row_log_scale + by
        claim.col_log_scale = claim.col_log_scale - by

    return forge


def _scale_of(value):
    def forge(rng, claim):
        claim.row_log_scale[0] = value

    return forge


PRODUCTS = {
    "worst": _worst,
    **{f"worst with scales {by:g}": _scales_apart(by) for by in (1e13, -1e13, 1e16, 1e300)},
    **{f"scale {value}": _scale_of(value) for value in (math.nan, math.inf, -math.inf, 1e13, 1.0)},
    "scale off by 1e-9": lambda rng, claim: claim.row_log_scale.__iadd__(1e-9),
    "short": lambda rng, claim: setattr(claim, "row_log_scale", claim.row_log_scale[:1]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_false_product_is_refused(name):
    A = np.array([[8.0, 1.0], [1.0, 4.0]])
    claim = product_claim(A)
    gm.verify(A, claim)
    PRODUCTS[name](np.random.default_rng(0), claim)
    refuse(A, claim)


@pytest.mark.parametrize("scale", [1.0, 1e300, 1e-300, 5e-324], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.longdouble])
def test_true_products_at_the_ends_of_ranges_are_accepted(scale, dtype):
    A = (np.array([[3.0, 1.0, 0], [1.0, 2.0, 1], [0, 7, 2]]) * scale).astype(dtype)
    gm.verify(A, gm.linalg.maximum_product_matching(A))


# -- blocks ----------------------------------------------------------------------------------------


def forged_blocks(d: Any, **changes: Any) -> Any:
    return d._replace(**{name: np.asarray(value) for name, value in changes.items()})


@pytest.mark.parametrize(
    "changes",
    [
        {"r": [0, 2, 3], "s": [0, 2, 3]}, {"p": [0, 0, 2]}, {"q": [0, 1, 3]}, {"p": [2, 1, 0]},
        {"rr": [0, 0, 2, 3, 3]}, {"cc": [0, 0, 0, 3, 4]}, {"r": [0, 1, 2]}, {"r": [0.0, 1, 2, 3]},
        {"p": [-1, 1, 2]}, {"rr": [0, 0, 3, 3]},
    ],
    ids=str,
)  # fmt: skip
def test_false_blocks_are_refused(changes):
    A = np.triu(np.ones((3, 3)))
    d = gm.linalg.dmperm(A)
    gm.verify(A, d)
    refuse(A, forged_blocks(d, **changes))


def test_parts_of_another_matrix_are_refused():
    A, B = np.triu(np.ones((3, 3))), np.ones((3, 3))
    refuse(B, gm.linalg.dmperm(A))
    refuse(A, gm.linalg.dmperm(B))
    refuse(B, gm.linalg.btf(A))
    refuse(A, gm.linalg.btf(B))
