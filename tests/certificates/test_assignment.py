"""The checker of assignments turns down every wrong result, and says what is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import gpumatch as gm
import gpumatch.costs.base
from graphs import costs
from tests.certificates.claimed import GOOD, WIDE, changed, claimed

X = math.inf

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
