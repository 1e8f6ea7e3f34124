"""The searches for the cheapest columns of each row, against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.costs import FunctionCosts, PointCosts
from gpumatch.cpu.assignment.points import lines as lines_module
from gpumatch.cpu.assignment.points import tree as tree_module
from gpumatch.cpu.assignment.points.lines import Lines, lines_of
from gpumatch.cpu.assignment.points.tree import (
    LEAF,
    Tree,
    bound_of,
    sloped_bound_of,
    sloped_square_of,
)
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.fair_duals import differences_below
from tests.clouds import FINE, METRICS, cheapest, clouds_to_search, costs_to_search
from tests.pairwise import parametrize_pairwise


@parametrize_pairwise(
    search=["tree", "lines"],
    kind=["normal", "lattice", "apart", "far", "equal", *FINE],
    metric=METRICS,
    shape=[(40, 1), (30, 50), (3, LEAF + 1), (5, 200)],
    d=[1, 2, 7],
    sign=[1, -1],
    has_offsets=[False, True],
    priced=[False, True],
)
def test_a_search_finds_the_cheapest_columns(
    search, kind, metric, shape, d, sign, has_offsets, priced
):
    costs = costs_to_search(kind, metric, shape, d, sign, has_offsets)
    found = Tree(costs.points) if search == "tree" else lines_of(costs)
    rng = np.random.default_rng(7)
    scale = costs.high - costs.low or 1.0
    price = rng.normal(size=shape[1]) * scale / 4 if priced else np.zeros(shape[1])
    found.set_prices(price)
    bound = np.quantile(costs.dense() - price, 0.5, axis=1) if priced else np.full(shape[0], np.inf)
    rows, count = np.arange(shape[0], dtype=np.int32), min(6, shape[1])
    with Workers(2, 2**30) as workers:
        cols, values = found.least(rows, count, bound, workers, lambda: None)
    np.testing.assert_array_equal(values, cheapest(costs.dense(), price, count, bound))
    own, place = np.nonzero(cols >= 0)
    assert (np.isfinite(values) == (cols >= 0)).all()
    at = costs.at(own, cols[own, place])
    assert (differences_below(at, price[cols[own, place]]) == values[own, place]).all()


def bounds_of_leaves(tree, is_sloped):
    """Bounds of costs less prices: a line for each row, with a number for each leaf."""
    X, first = tree.points.rows, 1 << tree.levels
    metric = ["sqeuclidean", "euclidean"].index(tree.points.metric)
    bounds = np.empty((len(X), first))
    for row, leaf in np.ndindex(bounds.shape):
        node = first + leaf
        if not is_sloped:
            bound = bound_of(X, row, tree.box, node, metric, 1.0, 1.0, False, 0.0, tree.added)
            bound -= tree.top[node]
        elif metric == 0:
            bound = sloped_square_of(X, row, tree.box, node, 1.0, tree.slope, tree.rest, 0.0)
        else:
            bound = sloped_bound_of(X, row, tree.box, node, 1.0, tree.slope, tree.rest)
        bounds[row, leaf] = bound
    return bounds


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("kind", ["smooth", "rough", "line", "copies"])
def test_slopes_leave_out_boxes_of_clouds_that_are_apart(kind, metric, monkeypatch):
    monkeypatch.setattr(tree_module, "frame_of", lambda _: None)
    rng = np.random.default_rng(10)
    X, Y = rng.random((60, 2)), 3 + rng.random((600, 2))
    if kind == "line":
        Y[:, 1] = 3.5
    elif kind == "copies":
        Y = Y[rng.integers(0, 4, 600)]
    costs = PointCosts(X, Y, metric)
    tree = Tree(costs.points)
    price = np.linalg.norm(Y - X.mean(axis=0), axis=1) + 0.05 * np.sin(2 * Y[:, 0])
    if metric == "sqeuclidean":
        price = price**2
    if kind == "rough":
        price += rng.normal(size=600)
    tree.set_prices(price)
    reduced = (costs.dense() - price)[:, tree.ids]
    firsts = (np.arange(1 << tree.levels) * 600) >> tree.levels
    sloped, plain = (bounds_of_leaves(tree, is_sloped) for is_sloped in (True, False))
    allowed = 1e-13 if metric == "euclidean" else 0.0  # a margin makes up for what distances lack
    assert (sloped <= np.minimum.reduceat(reduced, firsts, axis=1) + allowed).all()
    if kind == "smooth":
        least = reduced.min(axis=1, keepdims=True)
        assert np.count_nonzero(sloped <= least) < np.count_nonzero(plain <= least) / 2


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_prices_are_forgotten_for_others(metric):
    X, Y = clouds_to_search("normal", (40, 90), 2)
    costs = PointCosts(X, Y, metric)
    tree, rows = Tree(costs.points), np.arange(40, dtype=np.int32)
    none = np.full(40, np.inf)
    with Workers(1, 2**30) as workers:
        for price in (Y[:, 0] * 5, np.zeros(90), -Y[:, 1], np.zeros(90)):
            tree.set_prices(price)
            _, values = tree.least(rows, 3, none, workers)
            np.testing.assert_array_equal(values, cheapest(costs.dense(), price, 3, none))


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_many_ties_are_all_seen(metric, monkeypatch):
    """More pairs may be below the bound by products than a search keeps."""
    monkeypatch.setattr(lines_module, "SPARE", 1)
    X, Y = clouds_to_search("equal", (9, 60), 8)
    Y[50] += 1e-9  # the only one that is farther, by less than products can tell
    costs = PointCosts(X, Y, metric)
    search = lines_of(costs)
    price = np.zeros(60)
    price[50] = 1e-7
    search.set_prices(price)
    bound = costs.dense()[:, 0]
    with Workers(2, 2**30) as workers:
        cols, _ = search.least(None, 2, bound, workers, lambda: None)
    assert cols.tolist() == [[50, -1]] * 9


@pytest.mark.parametrize("at_once", [1, 90, 2**18])
def test_lines_of_many_ties_are_computed_together(at_once, monkeypatch):
    """Not pair by pair: with points on a line, that took most of the time of `assign`."""
    monkeypatch.setattr(lines_module, "WHOLE", at_once)
    X, Y = np.zeros((20, 7)), np.zeros((80, 7))
    X[:, 0], Y[:, 0] = np.arange(20), np.arange(80) % 3
    costs = PointCosts(X, Y, "euclidean")
    search, made, fill = lines_of(costs), [], lines_module.fill_distances
    monkeypatch.setattr(PointCosts, "at", None)
    monkeypatch.setattr(search, "_write", lambda *_: None)
    monkeypatch.setattr(
        lines_module, "fill_distances",
        lambda points, first, last: made.append(last - first) or fill(points, first, last),
    )  # fmt: skip
    with Workers(1, 2**30) as workers:
        _, values = search.least(None, 2, np.full(20, np.inf), workers, lambda: None)
    np.testing.assert_array_equal(values, np.sort(costs.dense(), axis=1)[:, :2])
    assert sum(made) == 20
    assert max(made) == max(1, min(20, at_once // 80))


def test_products_that_tell_too_little_become_finer():
    rng = np.random.default_rng(8)
    X = 1e4 + rng.normal(size=(40, 8)) * 1e-3
    costs = PointCosts(X, np.concatenate([X[:30] + 1e-3, -X[:10]]))
    search = lines_of(costs)
    assert search.number == np.float32
    bound = costs.dense().min(axis=1) * 2
    with Workers(2, 2**30) as workers:
        for _ in range(2):
            _, values = search.least(None, 2, bound, workers, lambda: None)
            np.testing.assert_array_equal(values, cheapest(costs.dense(), np.zeros(40), 2, bound))
    assert search.number == np.float64


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean", "euclidean", "integers"])
def test_both_sides_name_their_nearest(metric, threads):
    X, Y = clouds_to_search("normal", (30, 23), 8)
    costs = PointCosts(X, Y, "cityblock" if metric == "integers" else metric)
    whole = costs.dense()
    if metric == "integers":
        whole = np.rint(whole * 1e6).astype(np.int64)
        costs = FunctionCosts(lambda rows, cols: whole[rows, cols], whole.shape, np.int64)
        assert type(lines_of(costs)) is Lines
    bounds = tuple(np.full(count, costs.far) for count in costs.shape)
    with Workers(threads, 2**30) as workers:
        rows, cols = lines_of(costs).nearest(4, bounds, workers, lambda: None)
    np.testing.assert_array_equal(np.sort(rows), np.sort(np.argsort(whole, axis=1)[:, :4]))
    np.testing.assert_array_equal(np.sort(cols), np.sort(np.argsort(whole.T, axis=1)[:, :4]))


def test_large_offsets_leave_something_near():
    X, Y = clouds_to_search("normal", (9, 12), 7)
    offsets = {"row_offset": np.full(9, 1e97), "col_offset": np.linspace(0, 1e96, 12)}
    lines = lines_of(PointCosts(X, Y, **offsets))
    bounds = np.full(9, np.inf), np.full(12, np.inf)
    with Workers(1, 2**30) as workers:
        of_rows, of_cols = lines.nearest(2, bounds, workers, lambda: None)
    assert (of_rows == [0, 1]).all()
    assert (of_cols >= 0).all()


def test_a_limit_bounds_the_nearest():
    costs = PointCosts(*clouds_to_search("normal", (30, 23), 8), "euclidean")
    limit = float(np.quantile(costs.dense(), 0.1))
    bounds = tuple(np.full(count, limit) for count in costs.shape)
    with Workers(2, 2**30) as workers:
        rows, cols = lines_of(costs).nearest(23, bounds, workers, lambda: None)
    near = costs.dense() < limit
    assert (rows >= 0).sum() == near.sum() == (cols >= 0).sum()


def changes(kind, price, rng):
    """Prices after a round."""
    if kind == "little":
        return price + rng.normal(size=price.size) * 1e-3
    if kind == "few rise":
        risen = price.copy()
        risen[rng.integers(0, price.size, 3)] += 2.0
        return risen
    if kind == "all rise":
        return price + rng.random(price.size)
    if kind == "fall":
        return price - 0.05 * rng.random(price.size)
    return rng.normal(size=price.size)


@parametrize_pairwise(
    kind=["little", "few rise", "all rise", "fall", "any"],
    metric=["sqeuclidean", "euclidean", "cosine"],
    cloud=["normal", "lattice", "equal"],
    shape=[(30, 200), (50, 20)],
    sign=[1, -1],
    has_offsets=[False, True],
    threads=[1, 2],
)
def test_what_is_known_tells_the_cheapest_columns_at_other_prices(
    kind, metric, cloud, shape, sign, has_offsets, threads, monkeypatch
):
    monkeypatch.setattr(lines_module, "SPARE", 4)
    monkeypatch.setattr(lines_module, "RISEN", 10)
    costs = costs_to_search(cloud, metric, shape, 7, sign, has_offsets)
    found, rng = lines_of(costs), np.random.default_rng(8)
    price = rng.normal(size=shape[1])
    count = min(3, shape[1])
    with Workers(threads, 2**30) as workers:
        for _ in range(5):
            found.set_prices(price)
            reduced = differences_below(costs.dense(), price)
            bound = np.quantile(reduced, 0.03, axis=1)
            bound[::5] = -np.inf
            cols, values = found.least(None, count, bound, workers, lambda: None)
            np.testing.assert_array_equal(values, cheapest(costs.dense(), price, count, bound))
            own, place = np.nonzero(cols >= 0)
            assert (reduced[own, cols[own, place]] == values[own, place]).all()
            assert all(np.unique(row[row >= 0]).size == (row >= 0).sum() for row in cols)
            price = changes(kind, price, rng)


def test_a_search_that_follows_multiplies_few_columns(monkeypatch):
    costs = costs_to_search("normal", "sqeuclidean", (60, 320), 8, 1, False)
    found, products = lines_of(costs), []
    multiply = lines_module._Products._multiply

    def counted(self, rows, cols, *more):
        products.append(len(rows) * len(cols))
        return multiply(self, rows, cols, *more)

    monkeypatch.setattr(lines_module._Products, "_multiply", counted)
    rng = np.random.default_rng(9)
    price = np.zeros(320)
    with Workers(1, 2**30) as workers:
        for rise in (0, 1e-3, 50.0):
            price[rng.integers(0, 320, 3)] += rise
            found.set_prices(price)
            bound = costs.dense().min(axis=1)
            found.least(None, 3, bound, workers, lambda: None)
    assert products[0] == 60 * 320
    assert sum(products[1:]) <= 2 * 60 * 6
