"""The checker of batches names the problem whose result is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gpumatch as gm


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
    with pytest.raises(TypeError, match=r"sizes is for .* or BatchAssignment; got Assignment"):
        gm.verify(np.eye(2), gm.assign(np.eye(2)), sizes=(2, 2))
