"""Results of one compiled call, whose arrays are made when they are asked for."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import gpumatch as gm

COSTS = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0]])
ARRAYS = ("row_to_col", "col_to_row", "row_dual", "col_dual", "pair_costs")


def test_arrays_are_made_once_and_kept():
    a = gm.assign(COSTS, cost_limit=1.0)
    assert not set(ARRAYS) & a.__dict__.keys()
    assert a.row_to_col.tolist() == [-1, 1]
    assert a.col_to_row.tolist() == [-1, 1, -1]
    assert a.pair_costs.tolist() == [0.0]
    for name in (*ARRAYS, "stats"):
        assert getattr(a, name) is getattr(a, name)
    assert a.stats["trace"] == [{"levels": 0, "found": 1, "matched": 1, "step": "paths"}]
    a.row_dual = a.row_dual + 1
    with pytest.raises(gm.CertificateError):
        gm.verify(COSTS, a)


@pytest.mark.parametrize(
    "through", [lambda a: pickle.loads(pickle.dumps(a)), copy.deepcopy, copy.copy]
)
@pytest.mark.parametrize("are_made", [False, True])
def test_copies_are_the_same(through, are_made):
    a = gm.assign(COSTS)
    if are_made:
        assert [getattr(a, name).size for name in ARRAYS] == [2, 3, 2, 3, 2]
    again = through(a)
    assert type(again) is type(a)
    gm.verify(COSTS, again)
    assert again.stats == a.stats
    for name in ARRAYS:
        assert (getattr(again, name) == getattr(a, name)).all()


def test_what_is_not_there_is_an_attribute_error():
    a = gm.assign(COSTS)
    assert not hasattr(a, "flow_units")
    with pytest.raises(AttributeError, match="no attribute 'row_duals'"):
        _ = a.row_duals
