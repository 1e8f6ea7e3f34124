"""The checker of b-matchings catches every kind of wrong result."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.certificates import base
from gpumatch.results.b_matching import BMatching

# Row 0 may have two edges, column 0 two, all others one.
GRAPH = csr_array([[1, 1, 1], [1, 0, 0], [1, 0, 0]])


def claim(rows=(0, 0, 1, 2), cols=(1, 2, 0, 0), cover=((0,), (0,)), **wrong):
    """A result written out; right unless told otherwise."""
    ends, cover = (tuple(np.array(part, int) for part in both) for both in ((rows, cols), cover))
    capacities = np.array([2, 1, 1]), np.array([2, 1, 1])
    made = BMatching(ends, capacities, cover, (None, None), {})
    made = copy.copy(made)
    for name, value in wrong.items():
        setattr(made, name, np.array(value) if isinstance(value, tuple) else value)
    return made


def test_a_right_claim_is_certified():
    certificate = gm.verify(GRAPH, claim())
    assert (certificate.size, certificate.bound, certificate.edges) == (4, 4, 5)
    assert str(certificate) == (
        "maximum: 4 edges within the capacities, and a cover that proves that no more than 4 are "
        "possible, checked on 5 edges"
    )


def test_edges_that_the_cover_misses_count(monkeypatch):
    """Row 0 has all of its edges, which no vertex of a cover need stand for."""
    monkeypatch.setattr(base, "TILE", 2)
    free = np.array([9, 1, 1]), np.array([1, 1, 1])
    right = claim(rows=(0, 0, 0), cols=(0, 1, 2), cover=((), (0,)))
    right.row_capacity, right.col_capacity = free
    assert gm.verify(GRAPH, right).bound == 3


WRONG = {
    "no edge": ({"rows": (0, 0, 1, 1), "cols": (1, 2, 0, 1)}, "its capacity is 1"),
    "no edge in capacity": (
        {"rows": (0, 1), "cols": (1, 2), "cover": ((), ())},
        "row 1 and column 2 are paired, but that is no edge",
    ),
    "an edge twice": (
        {"rows": (0, 0), "cols": (0, 0)},
        "the edge of row 0 and column 0 is there twice",
    ),
    "too many at a column": (
        {"rows": (0, 1, 2), "cols": (0, 0, 0)},
        "col_ind names 0 3 times: its capacity is 2",
    ),
    "no vertex": ({"rows": (0, 3), "cols": (1, 0)}, "row_ind names 3 of 3"),
    "negative": ({"rows": (0, -1), "cols": (1, 0)}, "row_ind names -1 of 3"),
    "unequal": ({"rows": (0, 1), "cols": (1,)}, "row_ind has 2 numbers, col_ind 1"),
    "floats": ({"row_ind": (0.0, 0.0, 1.0, 2.0)}, "row_ind must be a list of integers"),
    "degree": ({"row_degree": (2, 1, 0)}, "row_degree: number 2 is 0, but there are 1 edges"),
    "capacity's length": ({"row_capacity": (2, 1)}, "row_capacity must be 3 integers"),
    "size": ({"size": 3}, "there are 4 pairs, but the size is 3"),
    "cover that is too large": ({"cover": ((0, 1), (0,))}, "the cover allows 5: no proof"),
    "cover that misses edges": ({"cover": ((1,), ())}, "the cover allows 5: no proof"),
    "cover of strangers": ({"cover": ((7,), ())}, "the cover names row 7 of 3"),
    "fewer edges": ({"rows": (0, 1), "cols": (1, 0)}, "there are 2 edges, but the cover allows 4"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_claim_is_refused(case):
    fields, message = WRONG[case]
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify(GRAPH, claim(**fields))
