"""Points at few places: the transport problem that stands for them."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.costs import PointCosts
from gpumatch.cpu.assignment.points import copies
from gpumatch.cpu.assignment.points import tuning as tunings
from tests.clouds import SMALL
from tests.cpu.assignment.tuned import tune

SIDES = {  # places of the rows and of the columns; 0: no copies
    "rows": (3, 0),
    "columns": (0, 2),
    "both": (5, 7),
    "one place": (1, 0),
    "all": (1, 1),
}


@pytest.fixture(autouse=True)
def _is_small(monkeypatch):
    tune(monkeypatch, tunings, **SMALL)


def cloud(count, places, rng):
    points = rng.normal(size=(places or count, 2))
    if not places:
        return points
    return points[rng.choice(places, count, p=rng.dirichlet(np.ones(places)))]


def costs_of(sides, shape=(60, 60), seed=1, **offsets):
    rng = np.random.default_rng(seed)
    clouds = [cloud(count, places, rng) for count, places in zip(shape, SIDES[sides])]
    return PointCosts(*clouds, "euclidean", **offsets)


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("shape", [(60, 60), (40, 70), (70, 40)])
@pytest.mark.parametrize(
    "wish", [{}, {"maximize": True}, {"cost_limit": 0.8}, {"cardinality": "any"}], ids=str
)
def test_each_copy_gets_a_partner_of_its_place(sides, shape, wish):
    costs = costs_of(sides, shape)
    a = gm.assign(costs, backend="cpu", **wish)
    b = gm.assign(costs.dense(), backend="cpu", algorithm="shortest-augmenting-path", **wish)
    assert a.stats["trace"][-1]["step"] == "copies"
    assert a.proven
    limits = wish.get("cost_limit", 0)
    worth = [c.objective - limits * c.row_ind.size for c in (a, b)]
    assert worth[0] == pytest.approx(worth[1], abs=1e-10)
    certificate = gm.verify(costs, a)
    assert certificate.gap <= certificate.allowance


def test_offsets_make_places_of_their_own():
    offsets = np.repeat([0.0, 2.0], 30)
    costs = costs_of("rows", row_offset=offsets, col_offset=offsets)
    a = gm.assign(costs, backend="cpu")
    assert a.stats["trace"][-1]["places"] == [6, 60]
    assert a.objective == pytest.approx(gm.assign(costs.dense()).objective)


def test_points_that_differ_are_no_copies(monkeypatch):
    monkeypatch.setattr(copies, "_ship", None)
    rng = np.random.default_rng(3)
    assert gm.assign(PointCosts(rng.random((60, 2)), rng.random((60, 2))), backend="cpu").proven


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_no_points_are_no_copies(shape, monkeypatch):
    tune(monkeypatch, tunings, **{**SMALL, "stored": -1})
    a = gm.assign(PointCosts(*(np.zeros((count, 2)) for count in shape)))
    assert (a.size, a.objective, a.proven) == (0, 0, True)


def test_many_copies_need_no_matrix(monkeypatch):
    """20,000 at one place were not done in 25 seconds, nor by a matrix of 3 GB."""
    monkeypatch.undo()
    monkeypatch.setattr(PointCosts, "stored", None)
    rng = np.random.default_rng(4)
    X, Y = np.zeros((2, 20_000, 2))
    for columns in (Y, Y + rng.random((20_000, 1))):
        a = gm.assign(PointCosts(X, columns, "euclidean"), backend="cpu")
        assert (a.row_ind.size, a.proven) == (20_000, True)


def test_a_run_that_stops_claims_nothing_false():
    a = gm.assign(costs_of("both"), backend="cpu", time_limit=0)
    assert not a.proven
    assert (a.col_to_row[a.col_ind] == a.row_ind).all()
