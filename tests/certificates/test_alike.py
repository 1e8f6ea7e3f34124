"""Equal points of one price are looked at once, and the certificate is that of all pairs."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.certificates import pairs as checked_pairs
from gpumatch.certificates.alike import Alike
from gpumatch.costs import PointCosts
from tests.certificates.claimed import changed

WISHES = {
    "full": {},
    "maximize": {"maximize": True},
    "limit": {"cost_limit": 0.5},
    "each": {"cost_limit": np.repeat([0.01, 0.2, 0.5], 20)},
    "any": {"cardinality": "any", "maximize": True},
    "maximum": {"cardinality": "maximum", "cost_limit": 0.5},
    "maximize within": {"cardinality": "maximum", "cost_limit": 3.0, "maximize": True},
}


def places(counts, shape, seed=0, **offsets):
    """Costs of points at few places."""
    rng = np.random.default_rng(seed)
    X, Y = (rng.normal(size=(count, 2))[rng.integers(0, count, n)] for count, n in
            zip(counts, shape))  # fmt: skip
    return PointCosts(X, Y, **offsets)


def looks_of(monkeypatch):
    """The pairs that boxes have left, in a list that grows."""
    looks, near = [], checked_pairs.near_pairs

    def counted(*given):
        for rows, cols in near(*given):
            looks.extend(zip(rows.tolist(), cols.tolist()))
            yield rows, cols

    monkeypatch.setattr(checked_pairs, "near_pairs", counted)
    return looks


def test_classes_are_of_equal_lines():
    rng = np.random.default_rng(1)
    lines = rng.integers(0, 3, (3, 200)).astype(np.float64), rng.integers(0, 2, 200) > 0
    alike = Alike.of(*lines[0], lines[1])
    rows = [tuple(line) for line in np.column_stack([*lines[0], lines[1]]).tolist()]
    assert len(set(rows)) == alike.first.size
    assert [rows[k] for k in alike.stand_in.tolist()] == rows
    assert alike.sizes.tolist() == [rows.count(row) for row in rows]
    assert set(alike.stand_in.tolist()) == set(alike.first.tolist())


def test_vertices_that_differ_stay_in_their_order():
    alike = Alike.of(np.array([3.0, -0.0, 0.0, 2.0]), np.zeros(4, np.int64))
    assert [part.tolist() for part in alike] == [[0, 1, 2, 3], [0, 1, 2, 3], [1, 1, 1, 1]]
    assert Alike.of(np.zeros(0)).first.size == 0


@pytest.mark.parametrize("n", [60, 2100])
def test_points_at_one_place_are_one_look(n, monkeypatch):
    monkeypatch.setattr(checked_pairs, "MANY", -1)
    looks = looks_of(monkeypatch)
    result = gm.Assignment(
        *(np.arange(n, dtype=np.int32),) * 2, np.full(n, 2.0), np.zeros(n),
        pair_costs=np.full(n, 2.0), objective=2.0 * n, gap=0.0, proven=True,
    )  # fmt: skip
    found = gm.verify(PointCosts(np.zeros((n, 2)), np.ones((n, 2))), result)
    assert len(looks) == 1
    assert found.edges == n * n


def test_a_pair_of_classes_is_one_look(monkeypatch):
    monkeypatch.setattr(checked_pairs, "MANY", -1)
    costs = places((6, 4), (60, 60))
    a = gm.assign(costs, backend="cpu")
    looks = looks_of(monkeypatch)
    gm.verify(costs, a)
    kinds = [len(np.unique(np.column_stack(side), axis=0)) for side in
             ((costs.X, a.row_dual), (costs.Y, a.col_dual))]  # fmt: skip
    assert len(set(looks)) == len(looks) <= kinds[0] * kinds[1]


@pytest.mark.parametrize("has_offsets", [False, True], ids=["bare", "offsets"])
@pytest.mark.parametrize("shape", [(60, 60), (60, 75), (60, 48)], ids=str)
@pytest.mark.parametrize("wish", WISHES)
def test_the_certificate_is_that_of_all_pairs(wish, shape, has_offsets, monkeypatch):
    """Also that of duals that pairs undercut: each vertex is lowered, not only its stand-in."""
    offsets = {}
    if has_offsets:
        offsets = {"row_offset": np.arange(shape[0]) % 3 / 8, "col_offset": np.zeros(shape[1])}
    costs = places((7, 9), shape, **offsets)
    a = gm.assign(costs, backend="cpu", **WISHES[wish])
    sign = -1 if a.maximize else 1
    rough = changed(
        a, gap=np.inf, row_dual=a.row_dual - sign * 0.1 * (costs.X[:, 0] > 0),
        col_dual=a.col_dual + sign * 0.25 * (costs.Y[:, 0] > 0),
    )  # fmt: skip
    for result, optimal in ((a, True), (rough, False)):
        monkeypatch.setattr(checked_pairs, "MANY", -1)
        found = gm.certificates.assignment.verify_assignment(costs, result, optimal=optimal)
        monkeypatch.setattr(checked_pairs, "MANY", np.inf)
        expected = gm.certificates.assignment.verify_assignment(costs, result, optimal=optimal)
        assert found == expected
    assert found.gap > 0.1


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "chebyshev"])
def test_a_device_leaves_out_pairs_as_the_host_does(metric, monkeypatch):
    pytest.importorskip("cupy")
    monkeypatch.setattr(checked_pairs, "MANY", -1)
    monkeypatch.setattr(checked_pairs, "MANY_ON_DEVICE", -1)
    rng = np.random.default_rng(4)
    costs = PointCosts(rng.normal(size=(90, 2)), rng.normal(size=(99, 2)), metric)
    looks = looks_of(monkeypatch)
    for wish in ({}, {"cost_limit": 0.3}, {"cardinality": "maximum", "cost_limit": 0.3}):
        a = gm.assign(costs, backend="cpu", **wish)
        expected, here = gm.verify(costs, a), len(looks)
        assert gm.verify(costs.to_device(), a) == expected
        # Rounding may part ties and bound boxes in another way, but it changes few looks.
        assert abs(len(looks) - 2 * here) < 90 * 99 // 50
        looks.clear()
