"""The checker of assignments knows limits of every type, and which pairs are made at a limit."""

from __future__ import annotations

import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from tests.certificates.claimed import WIDE

X = math.inf


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
