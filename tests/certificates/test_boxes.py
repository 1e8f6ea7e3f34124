"""Boxes leave out only pairs of points that cost more than their prices."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.certificates import boxes
from gpumatch.certificates import pairs as checked_pairs
from gpumatch.certificates.boxes import near_pairs
from gpumatch.costs import PointCosts
from tests.certificates.claimed import changed
from tests.clouds import METRICS, two_clouds
from tests.pairwise import parametrize_pairwise


@pytest.fixture(autouse=True)
def _is_small(monkeypatch):
    monkeypatch.setattr(checked_pairs, "MANY", -1)
    monkeypatch.setattr(boxes, "LEAF", 3)
    monkeypatch.setattr(boxes, "TOGETHER", 50)
    monkeypatch.setattr(boxes, "WAITING", 60)


@parametrize_pairwise(
    metric=METRICS,
    kind=["normal", "shifted", "lattice", "line", "far", "equal", "tiny", "huge"],
    shape=[(40, 40), (1, 50), (70, 9), (20, 33)],
    d=[1, 2, 3, 6],
    sign=[1, -1],
    has_offsets=[False, True],
    prices=["best", "rough", "none", "infinite"],
)
def test_no_pair_that_counts_is_left_out(metric, kind, shape, d, sign, has_offsets, prices):
    X, Y = two_clouds(kind, shape, d)
    rng, size = np.random.default_rng(3), abs(X).max()
    offsets = {}
    if has_offsets:
        offsets = {f"{side}_offset": rng.normal(size=n) * size for side, n in
                   zip(("row", "col"), shape)}  # fmt: skip
    costs = PointCosts(X, Y, metric, **offsets)
    C = sign * costs.dense()
    u, v = np.zeros(shape[0]), np.zeros(shape[1])
    if prices in ("best", "rough"):
        a = gm.assign(C, backend="cpu")
        u, v = a.row_dual, a.col_dual
    if prices == "rough":
        u = u + rng.normal(size=u.size) * np.ptp(C) * 0.05
    elif prices == "infinite":
        u[0], v[0] = -np.inf, np.inf
    points = costs.points._replace(sign=float(sign))
    with np.errstate(invalid="ignore"):
        counts = np.zeros(shape, int)
        for rows, cols in near_pairs(points, costs.rounding.pair, u, v):
            np.add.at(counts, (rows, cols), 1)
        needed = C - u[:, None] <= v
    assert counts.max() <= 1
    assert (counts[needed] == 1).all()


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    ("metric", "kind"),
    [("sqeuclidean", "shifted"), *((metric, "normal") for metric in METRICS[:4])],
)
def test_most_pairs_are_left_out(metric, kind, maximize):
    costs = PointCosts(*two_clouds(kind, (600, 600), 2), metric)
    a = gm.assign(costs, maximize=maximize, backend="cpu")
    sign = -1 if maximize else 1
    points = costs.points._replace(sign=float(sign))
    looked_at = sum(
        rows.size for rows, _ in near_pairs(points, 0.0, sign * a.row_dual, sign * a.col_dual)
    )
    assert looked_at < 600 * 600 * (0.3 if metric == "sqeuclidean" else 0.6)


WISHES = {
    "full": {},
    "maximize": {"maximize": True},
    "limit": {"cost_limit": 0.05},
    "each": {"cost_limit": np.linspace(0.01, 0.3, 60)},
    "any": {"cardinality": "any", "maximize": True},
    "maximum": {"cardinality": "maximum", "cost_limit": 0.05},
    "maximum of all": {"cardinality": "maximum"},
    "maximize within": {"cardinality": "maximum", "cost_limit": 3.0, "maximize": True},
}


@pytest.mark.parametrize("shape", [(60, 60), (60, 75), (60, 48)], ids=str)
@pytest.mark.parametrize("wish", WISHES)
def test_the_certificate_is_that_of_all_pairs(wish, shape, monkeypatch):
    costs = PointCosts(*two_clouds("normal", shape, 2))
    a = gm.assign(costs, backend="cpu", **WISHES[wish])
    found = gm.verify(costs, a)
    monkeypatch.setattr(checked_pairs, "MANY", np.inf)
    assert found == gm.verify(costs, a)


def solved(**wish):
    costs = PointCosts(*two_clouds("normal", (60, 66), 2))
    return costs, gm.assign(costs, backend="cpu", **wish)


def raised(values, at, amount):
    values = values.copy()
    values[at] += amount
    return values


def without(a, row):
    """The assignment without the pair of a row."""
    row_to_col, col_to_row = a.row_to_col.copy(), a.col_to_row.copy()
    col_to_row[row_to_col[row]], row_to_col[row] = -1, -1
    kept = a.row_ind != row
    return changed(
        a,
        row_to_col=row_to_col,
        col_to_row=col_to_row,
        pair_costs=a.pair_costs[kept],
        objective=float(a.pair_costs[kept].sum()),
        size=a.size - 1,
    )


def swapped(costs, a, first, second):
    row_to_col, col_to_row = a.row_to_col.copy(), a.col_to_row.copy()
    row_to_col[[first, second]] = row_to_col[[second, first]]
    col_to_row[row_to_col[[first, second]]] = first, second
    paid = costs.at(np.arange(60), row_to_col)
    return changed(
        a, row_to_col=row_to_col, col_to_row=col_to_row, pair_costs=paid,
        objective=float(paid.sum()),
    )  # fmt: skip


def wrong_results():
    costs, a = solved()
    free = int(np.flatnonzero(a.col_to_row < 0)[0])
    yield "row", costs, changed(a, row_dual=raised(a.row_dual, 7, 1e-7)), "costs less"
    yield "column", costs, changed(a, col_dual=raised(a.col_dual, a.col_ind[9], 1e-7)), "less|most"
    yield "low", costs, changed(a, row_dual=raised(a.row_dual, 7, -1e-3)), "prove"
    yield "all", costs, changed(a, row_dual=a.row_dual + 1e-3), "costs less"
    yield "unmatched", costs, changed(a, col_dual=raised(a.col_dual, free, 0.5)), "at most 0|less"
    yield "pairs", costs, swapped(costs, a, 3, 40), "duals prove|costs less|gap"
    costs, a = solved(cost_limit=0.05)
    lonely = int(a.row_ind[a.pair_costs.argmin()])
    cut = without(a, lonely)
    yield "left out", costs, cut, "are unmatched, but their pair|duals prove|gap|must be"
    dual = raised(cut.row_dual, lonely, -cut.row_dual[lonely] - 1.0)
    # Prices so low that they leave out the pair, which is to be made all the same.
    col = int(a.row_to_col[lonely])
    low = changed(cut, row_dual=dual, col_dual=raised(cut.col_dual, col, -1.0))
    yield "low and left out", costs, low, "are unmatched, but their pair|must be 0|prove"
    costs, a = solved(cardinality="maximum", cost_limit=0.05)
    yield "cover", costs, without(a, int(a.row_ind[0])), "not [0-9]+, as the cover has"
    fewer = copy.copy(without(a, int(a.row_ind[0])))
    rows, cols = a.cover_ind()
    fewer._cover = (rows[1:], cols) if rows.size else (rows, cols[1:])
    yield "bare", costs, fewer, "is not in the cover"


@pytest.mark.parametrize("are_boxes", [True, False], ids=["boxes", "tiles"])
def test_wrong_results_are_refused(are_boxes, monkeypatch):
    if not are_boxes:
        monkeypatch.setattr(checked_pairs, "MANY", np.inf)
    for _, costs, result, message in wrong_results():
        with pytest.raises(gm.CertificateError, match=message):
            gm.verify(costs, result)


def test_a_pair_that_is_left_out_is_found_by_itself(monkeypatch):
    """`verify` finds it even if the duals prove nothing of it."""
    costs, a = solved(cost_limit=0.05)
    cut = without(a, int(a.row_ind[a.pair_costs.argmin()]))
    monkeypatch.setattr(checked_pairs.TurnedPairs, "near_tiles", lambda *_: iter(()))
    with pytest.raises(gm.CertificateError, match="are unmatched, but their pair is within"):
        gm.verify(costs, cut)
