"""Results that `assign` finds, written out, and what is changed of them."""

from __future__ import annotations

import copy

import numpy as np

import gpumatch as gm


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
