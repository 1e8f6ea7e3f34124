"""The checker of weighted matchings catches every kind of wrong result."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.certificates import general_weights
from gpumatch.contracts.general_weights import OddSets
from gpumatch.results.general_weights import GeneralWeightMatching
from tests.general_graphs import complete, factor_critical

# A triangle of weight 8 each, whose dual is 8, and a tail: edge 2-3 and edge 0-1 match.
EDGES = np.array([(0, 1), (0, 2), (1, 2), (2, 3)])
WEIGHTS = np.array([8, 8, 8, 3])


def claim(mate=(1, 0, 3, 2), dual=(6, 6, 6, 0), sets=((0, 1, 2), (0,), (3,), (4,)), **wrong):
    """A result written out; right unless told otherwise."""
    arrays = [np.array(part, np.int64) for part in sets]
    facts = {"objective": 11, "gap": 0, "proven": True, "cardinality": "any", "maximize": True}
    facts |= {name: wrong.pop(name) for name in list(wrong) if name in facts}
    made = GeneralWeightMatching(
        np.array(mate), np.array(dual), OddSets(*arrays), nodes=None, stats={}, **facts
    )
    for name, value in wrong.items():
        setattr(made, name, value)
    return made


def test_a_right_claim():
    certificate = gm.verify((EDGES, WEIGHTS), claim())
    facts = certificate.size, certificate.bound, certificate.objective, certificate.gap
    assert facts == (2, 11, 11, 0)
    assert (certificate.edges, certificate.sets, certificate.allowance) == (4, 1, 0)
    assert str(certificate) == (
        "optimal: 2 edges of total 11, and duals of vertices and 1 odd sets of total 11, checked "
        "on 4 edges; the gap is at most 0, with an allowance of 0"
    )


def test_a_right_claim_of_least_weight():
    wrong = {"maximize": False, "objective": -11}
    sets = (0, 1, 2), (0,), (3,), (-4,)
    certificate = gm.verify((EDGES, -WEIGHTS), claim(dual=(-6, -6, -6, 0), sets=sets, **wrong))
    assert (certificate.bound, certificate.gap) == (-11, 0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mate": (1, 0, 3)}, "the mates must be 4 integers"),
        ({"mate": (1, 0, 3, 4)}, "vertex 3 has the mate 4, outside"),
        ({"mate": (1, 2, 3, 2)}, "vertex 0 has the mate 1, which has the mate 2"),
        ({"mate": (3, 2, 1, 0)}, "vertex 0 is matched to 3, but no edge joins them"),
        ({"mate": (1, 0, 2, -1), "objective": 8}, "vertex 2 is matched to 2, but no edge"),
        ({"objective": 12}, "the objective is 12"),
        ({"gap": 1}, "the gap is 1"),
        ({"gap": math.nan}, "the gap must be a number"),
        ({"size": 3}, "the size is 3"),
        ({"dual": (6, 6, 5, 1)}, "less than its weight"),
        ({"dual": (8, 6, 6, 0)}, "no proof"),
        ({"dual": (8, 8, 8, -2), "sets": ((), (), (), ())}, "no proof"),
        ({"dual": (6, 6, 6, math.nan)}, "must be finite"),
        ({"sets": ((0, 1, 2), (0,), (3,), (6,))}, "no proof"),
        ({"sets": ((0, 1, 2), (0,), (3,), (-4,))}, "wrong sign"),
        ({"sets": ((0, 1), (0,), (2,), (4,))}, "no odd number"),
        ({"sets": ((0, 1, 2), (0,), (4,), (4,))}, "no odd number"),
        ({"sets": ((0, 1, 1), (0,), (3,), (4,))}, "names a vertex twice"),
        ({"sets": ((0, 1, 4), (0,), (3,), (4,))}, "outside"),
        ({"sets": ((0, 1, 2), (0,), (3, 3), (4,))}, "set_end"),
        ({"sets": ((0, 1, 3), (0,), (3,), (4,))}, "less than its weight"),
        ({"cardinality": "full"}, "the cardinality must be one of"),
        ({"maximize": 1}, "maximize must be True or False"),
        ({"mate": (-1, 2, 1, -1), "objective": 8, "cardinality": "perfect"}, "not perfect"),
        ({"mate": (-1, 2, 1, -1), "objective": 8}, "no proof"),
    ],
)
def test_wrong_claims(wrong, message):
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify((EDGES, WEIGHTS), claim(**wrong))


def test_sets_that_overlap():
    edges = complete(5)
    sets = np.arange(5), [0, 2], [3, 5], [1, 1]
    with pytest.raises(gm.CertificateError, match="overlap"):
        gm.verify((edges, np.ones(10, int)), claim((1, 0, 3, 2, -1), [1] * 5, sets, objective=2))


def test_too_few_edges_are_not_the_most():
    """The level must be low enough to prove that there are no more edges."""
    edges, weights = [(0, 1), (1, 2), (2, 3)], [1, 9, 1]
    few = claim((-1, 2, 1, -1), (0, 18, 0, 0), ((), (), (), ()), objective=9)
    with pytest.raises(gm.CertificateError):
        gm.verify((edges, weights), few)
    few = claim((-1, 2, 1, -1), (0, 9, 9, 0), ((), (), (), ()), objective=9)
    gm.verify((edges, weights), few)
    few.cardinality = "maximum"
    with pytest.raises(gm.CertificateError, match="no more than 1 edges"):
        gm.verify((edges, weights), few)


@pytest.mark.parametrize("kind", [int, float])
def test_every_dual_counts(kind):
    """A dual that is changed by 2 violates an edge, or leaves a gap."""
    rng = np.random.default_rng(6)
    checked = 0
    for _ in range(8):
        edges = factor_critical(int(rng.integers(2, 8)), rng, 3)
        weights = rng.integers(5, 9, len(edges)).astype(kind)
        m = gm.general.maximum_weight_matching((edges, weights))
        gm.verify((edges, weights), m)
        checked += m.set_dual.size
        for name, places in (
            ("vertex_dual", np.flatnonzero(m.mate >= 0)),
            ("set_dual", range(m.set_dual.size)),
        ):
            for place in places:
                for change in (-2, 2):
                    wrong = copy.copy(m)
                    setattr(wrong, name, getattr(m, name).copy())
                    getattr(wrong, name)[place] += change
                    with pytest.raises(gm.CertificateError):
                        gm.verify((edges, weights), wrong)
    assert checked > 3


def test_shared_sets_are_found():
    """Innermost common sets of a deep family, against their definition."""
    rng = np.random.default_rng(2)
    n = 41
    order = rng.permutation(n)
    begin = np.array([0, 0, 0, 4, 4, 20, 20, 23, 30])
    end = np.array([41, 19, 3, 9, 7, 41, 29, 28, 33])
    sets = order, begin, end, np.arange(1, begin.size + 1)
    result = claim([-1] * n, [0] * n, sets)
    family = general_weights._Family.of(result, n, 1)
    edges = complete(n)
    parts = [(set(order[b:e].tolist()), z) for b, e, z in zip(begin, end, range(1, n))]
    around = family.shared(edges[:, 0], edges[:, 1])
    found = sum(part[around] for part in family.above)
    assert found.tolist() == [
        sum(z for part, z in parts if u in part and v in part) for u, v in edges.tolist()
    ]


def test_a_deep_family_is_checked_fast():
    """A thousand sets, each within the next."""
    n = 2001
    end = np.arange(3, n + 1, 2)
    sets = np.arange(n), np.zeros(end.size, int), end, np.ones(end.size, int)
    family = general_weights._Family.of(claim([-1] * n, [0] * n, sets), n, 1)
    tails = np.arange(n - 1)
    around = family.shared(tails, tails + 1)
    assert np.array_equal(family.above[0][around], end.size - tails // 2)


def test_floats_allow_rounding_and_no_more():
    edges, weights = EDGES, WEIGHTS / 10
    m = gm.general.maximum_weight_matching((edges, weights))
    certificate = gm.verify((edges, weights), m)
    assert 0 <= certificate.gap <= certificate.allowance < 1e-13
    m.vertex_dual = m.vertex_dual - 1e-12
    with pytest.raises(gm.CertificateError, match="less than its weight"):
        gm.verify((edges, weights), m)
    m.gap = math.inf
    assert 1e-13 < gm.verify((edges, weights), m, optimal=False).gap < 1e-11


@pytest.mark.parametrize("number", [1e308, -1e308, 1.7e308, -1.7e308])
def test_duals_whose_sums_are_beyond_float64_are_refused(number):
    """Without a warning, and by the checker's own error."""
    star = np.array([(0, 1), (0, 2), (0, 3), (0, 4)])
    for cardinality in ("any", "maximum"):
        wish = {"cardinality": cardinality, "maximize": number > 0}
        m = gm.general.maximum_weight_matching((star, [1.0, 2.0, 3.0, 2.5e307]), **wish)
        for dual in (number, -number):
            m.vertex_dual = np.full(5, dual)
            with pytest.raises(gm.CertificateError):
                gm.verify((star, [1.0, 2.0, 3.0, 2.5e307]), m)
