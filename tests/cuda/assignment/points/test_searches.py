"""The searches for the cheapest columns of each row on the device, against all pairs."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
import pytest

from gpumatch.costs import PointCosts
from gpumatch.numeric.fair_duals import differences_below
from tests.clouds import METRICS, costs_to_search
from tests.pairwise import parametrize_pairwise

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]
cp = pytest.importorskip("cupy")

from gpumatch.cuda.assignment.points import distances, divided, products  # noqa: E402  they import cupy
from gpumatch.cuda.assignment.points.boxes import MOST, Boxes, order_of  # noqa: E402
from gpumatch.cuda.assignment.points.divided import Divided, devices_for  # noqa: E402
from gpumatch.cuda.assignment.points.products import Products, lines_of  # noqa: E402
from gpumatch.cuda.assignment.points.tiles import Tiles  # noqa: E402


def costs_of(kind, metric, shape, d, sign=1, has_offsets=False):
    """The costs on the device, and their matrix on the host."""
    costs = costs_to_search(kind, metric, shape, d, sign, has_offsets)
    return costs.to_device(), costs.dense()


@pytest.mark.parametrize("width", [1, 2, 3, 6])
@pytest.mark.parametrize("count", [0, 1, 70])
def test_the_order_is_that_of_ranks_whose_bits_interleave(count, width):
    points = np.random.default_rng(width).normal(size=(count, width))
    bits = min(63 // width, 31)
    ranks = points.argsort(axis=0).argsort(axis=0)
    keys = [
        sum(
            (((int(rank) << bits) // count >> bit) & 1) << (bit * width + axis)
            for axis, rank in enumerate(line)
            for bit in range(bits)
        )
        for line in ranks
    ]
    assert order_of(cp.asarray(points)).get().tolist() == sorted(range(count), key=keys.__getitem__)


@parametrize_pairwise(
    search=["boxes", "lines"],
    kind=["normal", "lattice", "apart", "far", "equal"],
    metric=METRICS,
    shape=[(40, 1), (30, 50), (3, 33), (5, 1100)],
    d=[1, 2, 5],
    sign=[1, -1],
    has_offsets=[False, True],
    priced=[False, True],
)
def test_a_search_finds_the_cheapest_columns(
    search, kind, metric, shape, d, sign, has_offsets, priced
):
    costs, matrix = costs_of(kind, metric, shape, d, sign, has_offsets)
    found = Boxes(costs.points) if search == "boxes" else lines_of(costs)
    rng = np.random.default_rng(7)
    scale = costs.high - costs.low or 1.0
    price = rng.normal(size=shape[1]) * scale / 4 if priced else np.zeros(shape[1])
    found.set_prices(cp.asarray(price))
    bound = np.quantile(matrix - price, 0.5, axis=1) if priced else np.full(shape[0], np.inf)
    cols, values = (part.get() for part in found.least(6, cp.asarray(bound)))
    reduced = differences_below(matrix, price)
    is_exact = not isinstance(found, Tiles) or isinstance(found, Products)
    if not is_exact:
        reduced = matrix - price
    own, place = np.nonzero(cols >= 0)
    assert (np.isfinite(values) == (cols >= 0)).all()
    assert (reduced[own, cols[own, place]] == values[own, place]).all()
    reduced[reduced >= bound[:, None]] = np.inf
    np.testing.assert_array_equal(values, np.sort(reduced, axis=1)[:, : values.shape[1]])


@pytest.mark.parametrize("kind", ["normal", "lattice", "equal", "far"])
@pytest.mark.parametrize("count", [20, 1500])
def test_no_price_is_above_the_slope_of_its_node(kind, count):
    """At every level; and prices that are linear are just that."""
    costs, _ = costs_of(kind, "sqeuclidean", (60, count), 2)
    boxes, rng = Boxes(costs.points), np.random.default_rng(6)
    points, slope = boxes._shown_cols.get(), np.array([3.0, -40.0])
    for is_linear in (False, True):
        price = slope @ points if is_linear else rng.normal(size=count)  # in the order of the boxes
        given = np.empty(count)
        given[boxes.ids.get()] = price
        if boxes.frame is not None:
            given += boxes.frame.of_cols.get()
        boxes.set_prices(cp.asarray(given))
        price, first = boxes._shown_price.get(), 0
        for level, nodes in enumerate(boxes._nodes):
            here = slice(first, first + nodes)
            of_node = np.arange(count) // 32 ** (level + 1)
            low, high = (side[:, here].get()[:, of_node] for side in (boxes._low, boxes._high))
            steps = points - 0.5 * (low + high)
            rest, own = boxes._top[here].get(), boxes._slope[:, here].get()
            above = price - rest[of_node] - (own[:, of_node] * steps).sum(axis=0)
            assert above.max() <= 1e-12 * abs(price).max()
            if is_linear and kind != "equal":  # nodes of a lattice may be lines of it
                assert above.min() > -(0.1 if kind == "lattice" else 0.01) * np.ptp(price)
            first += nodes


@pytest.mark.parametrize("metric", METRICS)
def test_tiles_and_pairs_have_the_numbers_of_the_host(metric, monkeypatch):
    monkeypatch.setattr("gpumatch.costs.points.FEW", 0)
    costs, matrix = costs_of("normal", metric, (13, 70), 5, -1, True)
    np.testing.assert_array_equal(costs.tile(slice(2, 13))[2].get(), matrix[2:13])
    rows, cols = np.arange(70) % 13, np.arange(70)[::-1]
    at = costs.at(cp.asarray(rows), cp.asarray(cols))
    np.testing.assert_array_equal(at.get(), matrix[rows, cols])


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_many_ties_are_all_seen(metric, monkeypatch):
    """More pairs may be below the bound by products than a search keeps."""
    monkeypatch.setattr(products, "MOST", 3)
    monkeypatch.setattr(products, "WHOLE", 128)
    costs, matrix = costs_of("far", metric, (20, 60), 3)
    search = lines_of(costs)
    price = np.zeros(60)
    price[41:] = 1e-6 * matrix.max()
    search.set_prices(cp.asarray(price))
    least = differences_below(matrix, price).min(axis=1)
    cols, values = search.least(2, cp.asarray(np.nextafter(least, np.inf)))
    assert (values.get()[:, 0] == least).all()
    assert (cols.get()[:, 0] >= 0).all()
    cols, _ = search.least(2, cp.asarray(least))
    assert (cols.get() < 0).all()


@pytest.mark.parametrize("most", [1, 3, 1000])
@pytest.mark.parametrize("d", [1, 3])
def test_pairs_within_a_bound(d, most, monkeypatch):
    from gpumatch.cuda.assignment.points.near import pairs_within

    costs, matrix = costs_of("lattice", "cityblock", (25, 90), d)
    bound = np.quantile(matrix, 0.2, axis=1)
    rows, cols, values = (part.get() for part in pairs_within(costs.points, bound, most))
    assert (np.diff(rows * 90 + cols) > 0).all()
    np.testing.assert_array_equal(values, matrix[rows, cols])
    near = np.sort(np.where(matrix <= bound[:, None], matrix, np.inf), axis=1)[:, :most]
    counts = np.isfinite(near).sum(axis=1)
    np.testing.assert_array_equal(np.bincount(rows, minlength=25), counts)
    if most <= MOST:
        np.testing.assert_array_equal(
            np.bincount(rows, values, minlength=25),
            np.where(counts[:, None] > np.arange(near.shape[1]), near, 0).sum(axis=1),
        )


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_few_rows_are_searched_in_parts(metric, monkeypatch):
    costs, matrix = costs_of("normal", metric, (3, 700), 8)
    whole = lines_of(costs).nearest(5, cp.full(3, np.inf)).get()
    monkeypatch.setattr(products, "LEAST", 100)
    bound = np.full(3, np.inf)
    bound[1] = np.sort(matrix[1])[2]
    parted = lines_of(costs).nearest(5, cp.asarray(bound)).get()
    np.testing.assert_array_equal(parted[[0, 2]], whole[[0, 2]])
    np.testing.assert_array_equal(parted[1, :2], whole[1, :2])
    assert (parted[1, 3:] == -1).all()


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("sign", [1, -1])
def test_lists_are_renewed_where_prices_have_changed(metric, sign, monkeypatch):
    monkeypatch.setattr(products, "MOST", 4)
    costs, matrix = costs_of("normal", metric, (30, 80), 9, sign, True)
    search = lines_of(costs)
    rng = np.random.default_rng(3)
    price, looked = np.zeros(80), []
    near = Products._near
    monkeypatch.setattr(
        Products,
        "_near",
        lambda self, rows, *more: looked.append(rows.size) or near(self, rows, *more),
    )
    for step in (0.001, 1.0, 1.0):
        bound = np.sort(matrix - price, axis=1)[:, 1]
        search.set_prices(cp.asarray(price))
        _, values = search.least(2, cp.asarray(bound))
        reduced = differences_below(matrix, price)
        reduced[reduced >= bound[:, None]] = np.inf
        np.testing.assert_array_equal(values.get(), np.sort(reduced, axis=1)[:, :2])
        price = price + rng.normal(size=80) * step * np.sqrt(costs.high - costs.low)
    assert looked[0] == 30
    assert looked[1] < 30
    assert looked[2] > 0


def test_matrices_of_many_clouds_are_one_launch():
    """Of unlike sizes and metrics, some of them empty: each as it is by itself."""
    rng, problems = np.random.default_rng(8), []
    shapes = [(5, 7), (0, 3), (70, 9), (3, 0), (1, 1), (17, 130), (0, 0)]
    for k, (n, m) in enumerate(shapes):
        d = 1 + k % 3
        X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
        offsets = {"row_offset": rng.normal(size=n)} if k % 2 else {}
        costs = PointCosts(X, Y, METRICS[k % len(METRICS)], **offsets)
        problems.append(costs.problem(k % 3 == 0, False))
    values = cp.full(sum(n * m for n, m in shapes) + 3, np.nan)
    distances.fill_clouds([costs.to_device().points for costs in problems], values)
    expected = np.concatenate([costs.dense().ravel() for costs in problems])
    assert (values.get()[:-3] == expected).all()
    assert np.isnan(values.get()[-3:]).all()
    distances.fill_clouds([], values)


@pytest.mark.parametrize("shape", [(40, 50), (5, 1100)], ids=str)
def test_tensor_cores_find_nearly_the_nearest(shape):
    costs, matrix = costs_of("normal", "sqeuclidean", shape, 16)
    found = lines_of(costs).nearest(8, cp.full(shape[0], np.inf)).get()
    assert (np.sort(found, axis=1)[:, 1:] != np.sort(found, axis=1)[:, :-1]).all()
    last = np.sort(matrix, axis=1)[:, 7]
    assert (np.take_along_axis(matrix, found, 1).max(axis=1) <= last * 1.01).all()
    rows, cols = (rng.random((n, 16)).astype(np.float32) for rng, n in
                  zip(map(np.random.default_rng, (1, 2)), shape))  # fmt: skip
    product = products.rough_product(cp.asarray(rows), cp.asarray(cols)).get()
    np.testing.assert_allclose(product, rows @ cols.T, rtol=2e-3)


class OneAfterTheOther:
    """A thread that is none: the emulator runs one kernel at a time."""

    def submit(self, function, *given):
        made = Future()
        made.set_result(function(*given))
        return made


@parametrize_pairwise(
    metric=["sqeuclidean", "euclidean", "cityblock"],
    shape=[(40, 50), (2, 300)],
    has_offsets=[False, True],
    sign=[1, -1],
)
def test_rows_that_are_divided_find_what_one_device_finds(
    metric, shape, has_offsets, sign, monkeypatch
):
    """Three shares on one device, of which one may have no row."""
    monkeypatch.setattr(divided, "thread_of", lambda _: OneAfterTheOther())
    costs, matrix = costs_of("normal", metric, shape, 9, sign, has_offsets)
    whole, own = lines_of(costs), cp.cuda.runtime.getDevice()
    parts = Divided(costs, costs.points, [own] * 3)
    assert devices_for(1) == [own]
    price = np.random.default_rng(4).normal(size=shape[1]) * matrix.std()
    bound = cp.asarray(np.sort(matrix - price, axis=1)[:, 3])
    for search in (whole, parts):
        search.set_prices(cp.asarray(price))
    for one, other in zip(whole.least(5, bound), parts.least(5, bound)):
        np.testing.assert_array_equal(one.get(), other.get())
    far = cp.full(shape[0], np.inf)
    np.testing.assert_array_equal(whole.nearest(4, far).get(), parts.nearest(4, far).get())
    assert parts.is_exact == whole.is_exact
    np.testing.assert_array_equal(whole.least_of_rows().get(), parts.least_of_rows().get())


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("spread", ["wide", "narrow", "least"])
def test_what_tensor_cores_cut_is_looked_at_again(metric, spread, monkeypatch):
    """Where 11 bits do not tell the least column, products become more exact."""
    monkeypatch.setattr(products, "MOST", 4)
    rng = np.random.default_rng(9)
    spread, level = {
        "wide": (1.0, products.ROUGH),
        "narrow": (0.03, products.SINGLE),
        "least": (1e-6, products.DOUBLE),
    }[spread]
    X, Y = 1 + spread * rng.normal(size=(40, 12)), spread * rng.normal(size=(300, 12))
    X[::2] += 3
    Y[::2] += 3
    costs = PointCosts(X, Y, metric)
    matrix, search = costs.dense(), lines_of(costs.to_device())
    price = 0.1 * spread * rng.normal(size=300)
    search.set_prices(cp.asarray(price))
    assert search.level == products.ROUGH
    reduced = np.sort(differences_below(matrix, price), axis=1)
    _, values = search.least(1, cp.asarray(reduced[:, 1]))
    np.testing.assert_array_equal(values.get(), reduced[:, :1])
    assert search.level == level


@pytest.mark.parametrize("search", ["boxes", "products", "tiles"])
def test_prices_that_change_where_they_are_count(search):
    """The engine's prices are the duals of its solution, which each core changes in place."""
    shape = (6, 300)
    metric = "cityblock" if search == "tiles" else "sqeuclidean"
    costs, matrix = costs_of("normal", metric, shape, 3 if search == "boxes" else 16)
    found = Boxes(costs.points) if search == "boxes" else lines_of(costs)
    price, rng = cp.asarray(np.zeros(300)), np.random.default_rng(2)
    for _ in range(3):
        price[:] = price + cp.asarray(rng.random(300) * matrix.max())
        found.set_prices(price)
        reduced = differences_below(matrix, price.get())
        bound = cp.asarray(np.sort(reduced, axis=1)[:, 4])
        _, values = found.least(3, bound)
        np.testing.assert_allclose(values.get(), np.sort(reduced, axis=1)[:, :3], rtol=1e-12)
