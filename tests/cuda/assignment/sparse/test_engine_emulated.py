"""The engine for sparse costs with its kernels on the CPU, threads in any order: no race shows."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import gpumatch as gm
from graphs import costs

pytest.importorskip("cupy")

from gpumatch.costs import SparseCosts
from gpumatch.cpu import csr as cpu_csr
from gpumatch.cuda.assignment.sparse import engine, full, product
from gpumatch.dispatch import backends
from gpumatch.linalg import entries, product_matching
from gpumatch.numeric import fair_duals
from gpumatch.running.control import Control
from tests.cuda.emulator import COMPILER, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK = 64  # two warps
TRIALS = [
    pytest.param(engine.Trial(0, 1, 4096, 1), id="least costs"),
    pytest.param(engine.Trial(8, 1, 4096, 1), id="exact bids"),
    pytest.param(engine.Trial(8, 1, 4096, 1, finest=3), id="wide bounds"),
    pytest.param(engine.Trial(0, -1, 1, 1), id="auctions"),
    pytest.param(engine.Trial(8, 1, 2, 0), id="few levels"),
]
TREES = {"kBlock": BLOCK, "kPatience": 1, "kWide": 4, "kLongRow": 4}


@pytest.fixture(scope="module")
def emulators():
    return {
        engine.PRICES: Emulator(engine.PRICES, {}),
        engine.TREES: Emulator(engine.TREES, TREES),
        product.SCALES: Emulator(product.SCALES, {}),
    }


@pytest.fixture
def solve(emulators, monkeypatch):
    """The engine's answer, checked."""
    lead_drivers_here(monkeypatch, emulators, engine, full, product, block=BLOCK)
    monkeypatch.setattr(engine, "_LEFT", (4, 1024))
    for module in (full, product):
        monkeypatch.setattr(module, "csr", cpu_csr)

    def solve(matrix, **wish):
        with monkeypatch.context() as patch:
            patch.setattr(backends.Choice, "search", lambda _: engine.run)
            return gm.assign(matrix, backend="cpu", algorithm="engine", **wish)

    return solve


def vary(emulators, rng):
    for emulator in emulators.values():
        emulator.vary(rng)


def random_costs(rng, dtype, *, most=90):
    nrows, ncols = rng.integers(1, most, 2)
    ncols = nrows if rng.random() < 0.5 else ncols
    density = min(1.0, rng.choice([1, 3, 6, 20]) / ncols)
    matrix = random_array((nrows, ncols), density=density, rng=rng, format="csr")
    values = matrix.data * rng.choice([2, 10, 1000])
    values = values if dtype is np.float64 else np.floor(values)
    shape = matrix.shape
    return csr_array((values.astype(dtype), matrix.indices, matrix.indptr), shape=shape)


def check(solve, matrix, **wish):
    """The answer proves itself, and is that of the CPU."""
    try:
        best = gm.assign(matrix, backend="cpu", **wish)
    except gm.InfeasibleError:
        with pytest.raises(gm.InfeasibleError):
            solve(matrix, **wish)
        return
    a = solve(matrix, **wish)
    gm.verify(matrix, a)
    assert a.proven
    limit = wish.get("cost_limit", 0)
    ours, theirs = (x.objective - limit * x.size for x in (a, best))
    assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


WISHES = [
    {},
    {"cardinality": "maximum"},
    {"cardinality": "any", "maximize": True},
    {"cardinality": "maximum", "maximize": True},
    {"cost_limit": 3},
    {"cost_limit": 0.75},
]


@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize(("count", "most"), [(5, 60), pytest.param(12, 90, marks=pytest.mark.long)])
def test_random_problems(solve, emulators, wish, dtype, count, most):
    rng = np.random.default_rng(5)
    for _ in range(count):
        vary(emulators, rng)
        check(solve, random_costs(rng, dtype, most=most), **wish)


@pytest.mark.parametrize("trial", TRIALS)
@pytest.mark.parametrize("family", ["mesh", "spread", "kkt"])
def test_families(solve, emulators, family, trial, monkeypatch):
    """From the least costs, from exact bids, from prices of auctions, and from trees given up."""
    monkeypatch.setattr(engine, "SHORT", trial)
    rng = np.random.default_rng(9)
    matrix = costs.make(family, 7 if family == "mesh" else 150, seed=1)
    for _ in range(2):
        vary(emulators, rng)
        check(solve, matrix)


def test_a_row_and_a_column_with_all_entries(solve, emulators):
    rng = np.random.default_rng(3)
    matrix = np.where(rng.random((80, 80)) < 0.03, rng.integers(1, 50, (80, 80)), 0)
    matrix[7], matrix[:, 9] = rng.integers(1, 50, (2, 80))
    np.fill_diagonal(matrix, 45)
    for _ in range(6):
        vary(emulators, rng)
        check(solve, csr_array(matrix))


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_narrow_steps_keep_labels_beyond_the_bound(solve, emulators, dtype, monkeypatch):
    monkeypatch.setattr(engine, "_WIDTH_OF_A_STEP", 1)
    rng = np.random.default_rng(7)
    for wish in ({}, {"cardinality": "maximum"}, {"cardinality": "any", "maximize": True}):
        for _ in range(4):
            vary(emulators, rng)
            check(solve, random_costs(rng, dtype), **wish)


def test_columns_that_many_rows_want_at_once(solve, emulators, monkeypatch):
    """Labels come at the same time, from roots and others, and only one of them lasts."""
    monkeypatch.setattr(engine, "SHORT", engine.Trial(0, 1, 4096, 1))
    rng = np.random.default_rng(10)
    for _ in range(20):
        vary(emulators, rng)
        for emulator in emulators.values():
            emulator.odds = 2
        matrix = rng.integers(1, 4, (24, 24)) + 3 * rng.random((24, 24))
        check(solve, csr_array(matrix))


def test_short_launches_change_nothing(solve, emulators, monkeypatch):
    rng = np.random.default_rng(4)
    for looks in (1, 3, 20):
        monkeypatch.setattr(engine, "_LOOKS_A_LAUNCH", looks)
        for dtype in (np.int64, np.float64):
            vary(emulators, rng)
            check(solve, random_costs(rng, dtype), cardinality="maximum")


@pytest.mark.parametrize("wish", [{}, {"cardinality": "any", "maximize": True}], ids=str)
def test_an_assignment_to_begin_from_is_kept(solve, wish):
    """If no sum is rounded: a pair that is not tight any more would be found again."""
    matrix = costs.make("mesh", 7)
    a = solve(matrix, **wish)
    again = solve(matrix, initial=a, **wish)
    gm.verify(matrix, again)
    assert math.isclose(again.objective, a.objective, rel_tol=1e-12)
    assert sum(phase["found"] for phase in again.stats["trace"]) == 0


@pytest.mark.parametrize("wish", [{}, {"cardinality": "any"}], ids=str)
def test_it_stops_when_asked_with_a_matching(solve, wish, monkeypatch):
    monkeypatch.setattr(engine, "_LOOKS_A_LAUNCH", 2)
    monkeypatch.setattr(engine, "WIDE", engine.WIDE._replace(looks=2, rest=1))
    matrix = costs.make("mesh", 6)
    matrix.data -= 2000
    best = solve(matrix, **wish).objective
    for last in (1, 3, 6):
        ticks = itertools.count(1)
        a = solve(matrix, callback=functools.partial(is_over, ticks, last), **wish)
        assert not a.proven
        assert a.gap >= a.objective - best
        rows = np.flatnonzero(a.row_to_col >= 0)
        assert (a.col_to_row[a.row_to_col[rows]] == rows).all()


def is_over(ticks, last, _):
    return next(ticks) >= last


@pytest.mark.parametrize("bids", [0, 8])
def test_it_stops_in_its_first_trees(solve, bids, monkeypatch):
    monkeypatch.setattr(engine, "SHORT", engine.Trial(bids, left=1, looks=2, rest=1))
    monkeypatch.setattr(engine, "_LOOKS_A_LAUNCH", 2)
    a = solve(costs.make("mesh", 6), callback=lambda _: True)
    assert not a.proven
    assert 0 < a.size < a.row_to_col.size


@pytest.mark.parametrize("scale", [2.0**-1060, 1e-300, 1e300])
def test_floats_of_any_scale(solve, scale):
    matrix = costs.make("spread", 40)
    check(solve, csr_array((matrix.data * scale, matrix.indices, matrix.indptr)))


# -- where it begins -------------------------------------------------------------------------------


def test_the_least_costs_do_where_few_rows_are_left(solve):
    """If all rows want one column, an auction finds prices."""
    rng = np.random.default_rng(2)
    easy = np.where(rng.random((40, 40)) < 0.2, rng.integers(20, 90, (40, 40)), 0)
    np.fill_diagonal(easy, rng.integers(1, 9, 40))
    a = solve(csr_array(easy))
    assert a.objective == easy.trace()
    assert not a.stats["trace"]
    dear = solve(csr_array(easy + np.where(np.arange(40) % 2, 500, 0) * (easy > 0)))
    assert dear.objective == easy.trace() + 20 * 500
    assert not dear.stats["trace"]
    crowded = solve(csr_array(np.outer(np.arange(1, 41), np.arange(1, 41))))
    assert {phase["step"] for phase in crowded.stats["trace"]} == {"auction", "trees"}


def test_many_more_columns_than_rows_need_no_prices(solve, emulators):
    """No unmatched column gets a price that trees of spare rows would have to take back."""
    rng = np.random.default_rng(14)
    points, others = rng.random((90, 2)), rng.random((120, 2))
    apart = np.sqrt(np.square(points[:, None] - others).sum(axis=2))
    nearest = apart.argsort(axis=1).argsort(axis=1) < 20
    for share in (60, 90):
        vary(emulators, rng)
        matrix = csr_array(np.where(nearest, apart, 0)[:share])
        check(solve, matrix)
        steps = [phase["step"] for phase in solve(matrix).stats["trace"]]
        assert "auction" not in steps


@pytest.mark.parametrize("trial", TRIALS)
def test_columns_of_negative_costs_begin_at_the_least(solve, emulators, trial, monkeypatch):
    monkeypatch.setattr(engine, "SHORT", trial)
    rng = np.random.default_rng(6)
    for dtype in (np.int64, np.float64):
        for _ in range(2):
            vary(emulators, rng)
            matrix = random_costs(rng, dtype, most=40)
            matrix.data -= dtype(rng.choice([1, 5, 900]))
            check(solve, matrix)


# -- prices ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nrows", "lanes", "first", "others"),
    [
        (100, 2, (25, 4096, 1), (25, 4096, 1)),
        (20_000, 16, (32, 4096, 2), (32, 4096, 1)),
        (262_144, 16, (256, 4096, 32), (256, 4096, 1)),
        (846_827, 16, (256, 4096, 103), (826, 4096, 1)),
        (1_000_000, 4, (976, 4096, 122), (976, 4096, 1)),
        (3_000_000, 32, (128, 4096, 366), (1024, 4096, 1)),
    ],
)
def test_the_first_auction_of_many_long_rows_leaves_fewer(nrows, lanes, first, others):
    ends = engine._ends(nrows, lanes)
    assert next(ends) == first
    assert {next(ends) for _ in range(9)} == {others}


@pytest.mark.parametrize("density", [0.1, 0.5])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_rows_have_columns_that_are_their_best_within_epsilon(
    solve, emulators, dtype, density, monkeypatch
):
    """The trees would do with any prices, so that they do not show what these are worth."""
    monkeypatch.setattr(engine, "SHORT", engine.Trial(0, -1, 1, 1))
    rng = np.random.default_rng(11)
    held = []
    hold = engine._Auctions.hold

    def watched(self, epsilon, end, control):
        hold(self, epsilon, end, control)
        held.append((self, epsilon, end, self.offers.copy()))

    monkeypatch.setattr(engine._Auctions, "hold", watched)
    for _ in range(4):
        vary(emulators, rng)
        matrix = rng.integers(1, 1000, (60, 60)) * (rng.random((60, 60)) < density).astype(dtype)
        np.fill_diagonal(matrix, 999)
        held.clear()
        check(solve, csr_array(matrix))
        lanes = held[0][0].problem.rows.lanes
        ends = itertools.islice(engine._ends(60, lanes), len(held))
        for (auctions, epsilon, end, offers), planned in zip(held, ends, strict=True):
            assert end == planned
            units, row_bits = auctions.units, np.uint64(auctions.units.row_bits)
            rows = (offers & (np.uint64(1) << row_bits) - np.uint64(1)).astype(int) - 1
            cols = np.flatnonzero(rows >= 0)
            assert cols.size >= 60 - end.left
            assert np.unique(rows[cols]).size == cols.size
            fallen = (offers >> row_bits).astype(float)
            low = auctions.problem.full.low
            reduced = np.where(matrix > 0, (matrix - low) * units.of_one, math.inf) + fallen
            excess = reduced[rows[cols], cols] - reduced[rows[cols]].min(axis=1)
            assert excess.max() <= epsilon


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_columns_bid_after_each_auction(solve, emulators, dtype, monkeypatch):
    monkeypatch.setattr(engine, "SHORT", engine.Trial(0, -1, 1, 1))
    rng = np.random.default_rng(33)
    for n in (30, 55, 70):
        vary(emulators, rng)
        matrix = random_rows(rng, n, 6, lambda size: np.floor(900 * rng.random(size)).astype(dtype))
        check(solve, matrix[: n - 2])


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_columns_that_bid_get_prices_that_fit(emulators, dtype, monkeypatch):
    """Each has a row at no slack, but for units, or a price of 0."""
    lead_drivers_here(monkeypatch, emulators, engine, full, block=BLOCK)
    monkeypatch.setattr(engine, "_LEFT", (4, 1024))
    rng = np.random.default_rng(34)
    has_bid = []
    bid = engine._Auctions._bid

    def watched(auctions, side, *wishes):
        has_bid.append(side.rows is not auctions.problem.rows)
        bid(auctions, side, *wishes)

    monkeypatch.setattr(engine._Auctions, "_bid", watched)
    for _ in range(3):
        vary(emulators, rng)
        values = np.where(rng.random((60, 62)) < 0.15, rng.integers(1, 2**20, (60, 62)), 0)
        values[:, 7] = 5
        values[np.arange(60), rng.permutation(60)] = 2**21
        matrix = csr_array(values.astype(dtype))
        problem = engine.Problem(full.FullProblem.of(SparseCosts(matrix), None))
        units = engine._units_of(problem)
        auctions = engine._Auctions(problem, units, np.zeros(62, np.uint64))
        for number, epsilon in enumerate(units.epsilons()[:3]):
            has_bid.clear()
            auctions.hold(epsilon, engine._End(15, 4096), control=Control())
            assert has_bid == [False, True][: number + 1]  # at first, they have no price
            fallen = (auctions.offers >> np.uint64(units.row_bits)).astype(float)
            paid = np.where(values, (values - 5) * units.of_one + fallen, math.inf)
            slack = (paid - paid.min(axis=1, keepdims=True)).min(axis=0)
            assert number == 0 or (np.minimum(slack, fallen) <= 2).all()
        transposed = csr_array(
            (problem.turned.full.weights, problem.turned.full.indices, problem.turned.full.indptr)
        )
        assert (transposed.toarray() == matrix.toarray().T).all()


@pytest.mark.parametrize("rows_a_launch", [1, 60])
def test_rows_that_were_given_up_bid_again(solve, emulators, rows_a_launch, monkeypatch):
    """In another launch of the first auction, if there is one."""
    monkeypatch.setattr(engine, "SHORT", engine.Trial(0, -1, 1, 1))
    monkeypatch.setattr(engine, "_LONGEST_CHAIN", 2)
    monkeypatch.setattr(engine, "_ROWS_A_LAUNCH", rows_a_launch)
    rng = np.random.default_rng(12)
    bidders = []
    bid = engine._Auctions._bid

    def watched(self, side, rows, epsilon, end):
        bidders.append(rows)
        bid(self, side, rows, epsilon, end)

    monkeypatch.setattr(engine._Auctions, "_bid", watched)
    vary(emulators, rng)
    matrix = csr_array(np.outer(np.arange(1, 61), np.arange(1, 61)))
    check(solve, matrix)
    whole = [rows.size == 60 for rows in bidders]
    launches = whole.index(True, 1)
    assert (launches > 1) == (rows_a_launch == 1)
    assert all(whole[launches:])
    sizes = [rows.size for rows in bidders[:launches]]
    assert sizes == sorted(sizes, reverse=True)


def test_an_auction_stops_between_its_launches(solve, monkeypatch):
    monkeypatch.setattr(engine, "SHORT", engine.Trial(0, -1, 1, 1))
    monkeypatch.setattr(engine, "_LONGEST_CHAIN", 2)
    monkeypatch.setattr(engine, "_ROWS_A_LAUNCH", 1)
    launches = []
    bid = engine._Auctions._bid
    monkeypatch.setattr(engine._Auctions, "_bid", lambda *auction: launches.append(bid(*auction)))
    matrix = csr_array(np.outer(np.arange(1, 61), np.arange(1, 61)))
    for last in (1, 2, 3):
        launches.clear()
        a = solve(matrix, callback=functools.partial(is_over, itertools.count(1), last))
        assert not a.proven
        assert len(launches) == last


# -- maximum products ------------------------------------------------------------------------------


@pytest.mark.parametrize("trial", TRIALS)
@pytest.mark.parametrize("shape", [(60, 60), (50, 60), (60, 50)], ids=str)
def test_maximum_products_and_their_scales(solve, emulators, shape, trial, monkeypatch):
    """As on the CPU; `verify` checks the scales."""
    monkeypatch.setattr(product, "LONG", trial)
    rng = np.random.default_rng(8)
    for density in (0.05, 0.1, 0.3):
        vary(emulators, rng)
        values = np.exp(rng.normal(0, 9, shape)) * (rng.random(shape) < density)
        best = gm.linalg.maximum_product_matching(csr_array(values))
        with monkeypatch.context() as patch:
            patch.setattr(product_matching, "_engine", lambda _: product.run)
            found = gm.linalg.maximum_product_matching(csr_array(values))
        gm.verify(csr_array(values), found)
        assert found.size == best.size
        assert math.isclose(found.log_product, best.log_product, rel_tol=1e-9)


def found_by_the_engine(matrix, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(product_matching, "_engine", lambda _: product.run)
        patch.setattr(entries, "SMALL", 0)
        return gm.linalg.maximum_product_matching(matrix)


@pytest.mark.parametrize("shape", [(70, 70), (40, 70), (70, 40)], ids=str)
@pytest.mark.parametrize("decades", [0, 3, 250])
def test_scales_of_a_product_have_the_same_middle(solve, emulators, shape, decades, monkeypatch):
    """Of matched rows and columns; whatever the range of the entries is."""
    rng = np.random.default_rng(decades)
    for _ in range(2):
        vary(emulators, rng)
        values = 10.0 ** rng.uniform(-decades, decades, shape) * (rng.random(shape) < 0.2)
        values[np.arange(min(shape)), np.arange(min(shape))] = 1
        matrix = csr_array(values * 10.0 ** rng.uniform(-40, 40, shape[1]))
        found = found_by_the_engine(matrix, monkeypatch)
        gm.verify(matrix, found)
        rows, cols = found.row_log_scale[found.row_ind], found.col_log_scale[found.col_ind]
        middles = (rows.min() + rows.max()) / 2, (cols.min() + cols.max()) / 2
        assert math.isclose(*middles, rel_tol=1e-9, abs_tol=1e-9)
        logs = np.log(matrix.toarray()[found.row_ind, found.col_ind])
        assert math.isclose(found.log_product, math.fsum(logs), rel_tol=1e-12, abs_tol=1e-9)


@pytest.mark.parametrize("shape", [(80, 80), (50, 80)], ids=str)
def test_costs_are_counted_from_the_least_of_their_column_or_row(
    solve, emulators, shape, monkeypatch
):
    rng = np.random.default_rng(17)
    vary(emulators, rng)
    seen = []
    from_least = product._from_least
    monkeypatch.setattr(
        product, "_from_least", lambda given: seen.append(from_least(given)) or seen[-1]
    )
    values = np.exp(rng.normal(0, 20, shape)) * (rng.random(shape) < 0.2)
    values[:, :50] += np.eye(shape[0])[:, :50]
    matrix = csr_array(values)
    found_by_the_engine(matrix, monkeypatch)
    ((reduced, of_columns),) = seen
    logs = np.full(shape, np.inf)
    logs[matrix.nonzero()] = -np.log(matrix.data)
    least = logs.min(axis=0 if shape[0] == shape[1] else 1)
    rows, cols = matrix.nonzero()
    counted_from = least[cols if shape[0] == shape[1] else rows]
    assert np.allclose(reduced.full.weights, logs[rows, cols] - counted_from, 1e-13, 1e-13)
    assert (reduced.full.low, reduced.full.high) == (0, reduced.full.weights.max())
    assert np.allclose(of_columns, least if shape[0] == shape[1] else 0, 1e-13, 1e-13)


def test_what_rows_of_many_blocks_pay_is_added_up(emulators):
    """More blocks than one has threads."""
    sums = np.arange(200.0)
    ends, none, total = np.zeros(4, np.uint64), np.empty(0), np.zeros(1)
    of_no_rows = np.empty(0, np.int32), none, none, np.int32(0), np.int32(0)
    emulators[product.SCALES].bound_to({})["settle"](
        (3,), (BLOCK,), (*of_no_rows, ends, sums, np.int32(200), none, none, total)
    )
    assert total == sums.sum()


def test_products_of_singular_and_of_tiny_matrices(solve, monkeypatch):
    for values in (
        np.zeros((3, 3)), np.eye(4)[:, [0, 1, 2, 2]], np.ones((1, 1)), np.ones((3, 3)),
        np.diag([1e-300, 1e300, 5e-324]), np.empty((0, 4)), np.empty((4, 0)), -2 * np.eye(65),
    ):  # fmt: skip
        found = found_by_the_engine(csr_array(values), monkeypatch)
        best = gm.linalg.maximum_product_matching(csr_array(values))
        gm.verify(csr_array(values), found)
        assert found.size == best.size
        assert math.isclose(found.log_product, best.log_product, rel_tol=1e-12, abs_tol=1e-12)


# -- costs of all magnitudes -----------------------------------------------------------------------


def random_rows(rng, n, entries, draw):
    """A square matrix with so many entries a row, and a full assignment."""
    order = rng.random((n, n))
    order[np.arange(n), rng.permutation(n)] = -1
    cols = np.argsort(order, axis=1)[:, :entries]
    indptr = np.arange(n + 1) * entries
    return csr_array((draw(n * entries), cols.ravel(), indptr), shape=(n, n))


def test_epsilon_follows_from_typical_costs(solve, monkeypatch):
    """If it follows from their range, the trees take 350 looks instead of 130."""
    rng = np.random.default_rng(21)
    matrix = random_rows(rng, 150, 8, lambda size: np.exp(7 * rng.normal(size=size)))
    looks = []
    grow = engine._Trees.grow

    def watched(trees, *wishes):
        ended = grow(trees, *wishes)
        looks.append(int(trees.board.seen["looks"]))
        return ended

    monkeypatch.setattr(engine._Trees, "grow", watched)
    check(solve, matrix)
    assert sum(looks) < 240


def test_typical_leads(emulators, monkeypatch):
    """Rows with fewer than two entries have none, and ties count for nothing."""
    lead_drivers_here(monkeypatch, emulators, engine, full, block=BLOCK)
    values = np.array([[5.0, 2, 2.5, 0], [0, 0, 4, 0], [3, 0, 3, 0], [0, 1, 8, 1e15]])
    for repeats, typical in ((1, 3.75), (700, 3.75)):  # of 2,800 rows, every third one
        matrix = csr_array(np.tile(values, (repeats, 1)))
        problem = engine.Problem(full.FullProblem.of(SparseCosts(matrix), None))
        assert problem.span == 1e15 - 1
        problem.narrow_span()
        assert problem.span == engine._WIDEST * typical


# -- large integers --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "products", "infeasible"])
def test_sums_of_integers_below_the_limit_are_exact(solve, emulators, kind):
    """Prices fall far in products. If there is no full assignment, they fall as far as they may."""
    n = {"random": 50, "products": 18, "infeasible": 30}[kind]
    most = 2**60 // (n + 1) - 2
    rng = np.random.default_rng(22)
    vary(emulators, rng)
    if kind == "products":
        matrix = csr_array(np.outer(np.arange(1, n + 1), np.arange(1, n + 1)) * (most // n**2))
    else:
        matrix = random_rows(rng, n, 5, lambda size: rng.integers(1, most, size))
    if kind == "infeasible":
        some = matrix.toarray()
        some[:5, 4:] = 0
        matrix = csr_array(some)
        with pytest.raises(gm.InfeasibleError):
            solve(matrix)
        return
    assert engine.takes(SparseCosts(matrix), None)
    a, best = solve(matrix), gm.assign(matrix, backend="cpu")
    gm.verify(matrix, a)
    assert a.proven
    assert a.objective == best.objective


@pytest.mark.parametrize(("spread", "nrows"), [(2**59, 1), (2**42, 200_000), (1000, 10)])
def test_prices_of_integers_fall_no_further_than_sums_have_room(spread, nrows):
    units = engine.Units(spread, nrows, finest=24, is_integer=True)
    assert 0 < units.most <= 2**58 * units.of_one
    assert units.most < 2 ** (64 - units.row_bits)


def test_sums_beyond_the_limit_are_for_others():
    for limit, fits in ((None, True), (2**56, True), (2**58, False)):
        matrix = csr_array(np.diag(np.arange(1, 9)) * 2**50)
        assert engine.takes(SparseCosts(matrix), limit) == fits
    assert not engine.takes(SparseCosts(csr_array(np.array([[1, 2**60], [3, 4]]))), None)


# -- exact bids ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_exact_bids_keep_the_pairs_tight(solve, emulators, dtype, monkeypatch):
    """They begin from the first pairs, and each column that was taken stays so."""
    monkeypatch.setattr(engine, "SHORT", engine.Trial(9, 1, 4096, 1))
    rng = np.random.default_rng(15)
    seen = []
    bid = engine._bid_exactly

    def watched(problem, bids):
        before = problem.mates[1] >= 0
        held = bid(problem, bids)
        seen.append((problem, before, held, problem.col_dual.copy()))
        return held

    monkeypatch.setattr(engine, "_bid_exactly", watched)
    won = 0
    for _ in range(12):
        vary(emulators, rng)
        seen.clear()
        matrix = random_costs(rng, dtype, most=70)
        if dtype is np.float64:
            matrix.data = np.round(matrix.data * 64) / 64  # so that nothing is rounded
        check(solve, matrix)
        for problem, before, held, price in seen:
            rows = np.flatnonzero(held >= 0)
            assert np.unique(held[rows]).size == rows.size
            assert set(np.flatnonzero(before)) <= set(held[rows])
            won += rows.size - np.count_nonzero(before)
            full = problem.full
            costs_of = csr_array((full.weights + 1, full.indices, full.indptr), full.shape)
            dense = costs_of.toarray().astype(float)
            reduced = np.where(dense > 0, dense - 1 - price, np.inf)
            assert (reduced[rows, held[rows]] == reduced[rows].min(axis=1)).all()
    assert won > 20


@pytest.mark.parametrize("wish", [{}, {"cost_limit": 0.4}])
def test_gap_of_floats_is_a_bound(monkeypatch, solve, wish):
    """The last pass rounds the rows' duals down, so that no pair undercuts them."""
    monkeypatch.setattr(fair_duals, "lacks", None)  # it would read the costs again
    rng = np.random.default_rng(3)
    for shape in ((30, 30), (25, 40)):
        values = np.exp(2 * rng.standard_normal(shape))
        matrix = csr_array(np.where(rng.random(shape) < 0.3, values, 0) + np.eye(*shape))
        a = solve(matrix, **wish)
        assert gm.verify(matrix, a).gap == a.gap
