"""The checker of assignments accepts results that claim less than the optimum, with their gaps."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gpumatch as gm
from graphs import costs
from tests.certificates.claimed import GOOD, WIDE, changed

X = math.inf


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
