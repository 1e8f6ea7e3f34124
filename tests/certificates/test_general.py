"""The checker of matchings of any graph, against wrong results."""

from __future__ import annotations

import types

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.certificates import CertificateError

# A triangle 0 1 2 and a pair 3 4 at vertex 5, which vertex 6 needs as well.
EDGES = [(0, 1), (1, 2), (0, 2), (2, 5), (5, 6), (5, 3), (3, 4)]
MATE = [1, 0, 5, 4, 3, 2, -1]
PARTS = [0, 1, 2, 6], [5], [3, 4]


def claimed(**changes):
    barrier = changes.pop("barrier", [5])
    parts = changes.pop("parts", PARTS)
    facts = {"mate": np.array(MATE), "size": 3, **changes}
    return types.SimpleNamespace(
        **facts,
        tutte_berge_ind=lambda: np.array(barrier),
        part_ind=lambda: [np.array(part, int) for part in parts],
    )


def test_a_right_claim():
    certificate = gm.verify((EDGES, None), claimed())
    assert (certificate.problem, certificate.size, certificate.bound) == ("general-matching", 3, 3)
    assert (certificate.odd_components, certificate.barrier, certificate.edges) == (2, 1, 7)
    assert str(certificate) == (
        "maximum: a matching of 3 edges, and 2 odd components without 1 vertices, "
        "checked on 7 edges"
    )


def test_the_claim_is_that_of_the_engine():
    m = gm.general.maximum_matching((EDGES, None))
    assert [part.tolist() for part in m.gallai_edmonds()] == [*PARTS]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mate": np.array(MATE[:-1])}, "the mates must be 7 integers"),
        ({"mate": np.array(MATE, float)}, "the mates must be 7 integers; got float64"),
        ({"mate": np.array([7, *MATE[1:]])}, "vertex 0 has the mate 7, outside"),
        ({"mate": np.array([-2, *MATE[1:]])}, "vertex 0 has the mate -2, outside"),
        ({"mate": np.array([-1, *MATE[1:]])}, "vertex 1 has the mate 0, which has the mate -1"),
        ({"mate": np.array([0, -1, *MATE[2:]])}, "vertices 0 and 0 are mates, but no edge"),
        ({"mate": np.array([1, 0, -1, -1, 6, -1, 4]), "size": 2}, "vertices 4 and 6 are mates"),
        ({"mate": np.array([1, 0, -1, 4, 3, -1, -1]), "size": 2}, "3 vertices are unmatched, but"),
        ({"size": 4}, "there are 3 pairs, but the size is 4"),
        ({"barrier": [], "parts": ([*range(7)], [], [])}, None),
        ({"barrier": [0]}, "without 1 vertices the graph has 0 odd components"),
        ({"barrier": [5, 3], "parts": ([0, 1, 2, 4, 6], [3, 5], [])}, None),
        ({"barrier": [5, 2]}, "no proof"),
        ({"barrier": [7]}, "a set of vertices names 7 of 7"),
        ({"barrier": [5.0]}, "a set of vertices must be a list of integers"),
        ({"parts": ([0, 1, 2], [5], [3, 4])}, "vertex 6 is not in one of the parts"),
        ({"parts": ([0, 1, 2, 6], [5], [3, 4, 5])}, "vertex 5 is not in one of the parts"),
        ({"parts": ([0, 1, 2, 6], [3], [4, 5])}, "but not in both"),
        ({"parts": ([0, 1, 2, 3, 4, 6], [5], [])}, "vertex 3 is in D, but its component is even"),
        ({"parts": ([6], [5], [0, 1, 2, 3, 4])}, "vertex 0 is in C, but its component is odd"),
    ],
)
def test_wrong_claims_are_seen(changes, message):
    if message is None:
        gm.verify((EDGES, None), claimed(**changes))
        return
    with pytest.raises(CertificateError, match=message):
        gm.verify((EDGES, None), claimed(**changes))


def test_a_claim_of_another_graph_is_seen():
    m = gm.general.maximum_matching((EDGES, None))
    with pytest.raises(CertificateError, match="no proof"):
        gm.verify(([*EDGES, (0, 6)], None), m)


def test_the_triangle_is_the_one_that_was_matched():
    A = np.zeros((4, 4), int)
    A[0, 1] = A[3, 2] = 1
    m = gm.general.maximum_matching(A, triangle="upper")
    assert gm.verify(A, m, triangle="upper").size == 1
    with pytest.raises(CertificateError, match="no proof"):
        gm.verify(A, m)
    with pytest.raises(TypeError, match="triangle is for"):
        gm.verify(A, gm.maximum_matching(A), triangle="upper")
