"""Shortest augmenting paths: the contract, budgets, starts, stops at any tick, hard shapes."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from gpumatch.costs import as_costs
from gpumatch.cpu.assignment import shortest_augmenting_path
from gpumatch.cpu.assignment.dense.paths import DensePaths
from gpumatch.cpu.assignment.sparse.paths import SPARSE_BIDS, SparsePaths
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.searches import dense as dense_search
from gpumatch.cpu.searches import paths
from gpumatch.cpu.searches import sparse as sparse_search
from gpumatch.cpu.searches.state import LOCKED
from graphs import costs
from tests.cpu.assignment.solved import Solved as SolvedBy
from tests.cpu.assignment.solved import Trace as Stopping
from tests.cpu.assignment.solved import (
    check_a_limit_where_no_column_is_left,
    check_rows_without_a_path,
    optimum,
)
from tests.cpu.matching.cases import FreeRun, StopAt

KINDS = ["dense", "sparse"]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


class Trace(FreeRun):
    """Remembers how often it was asked and what each phase says."""

    def __init__(self):
        super().__init__()
        self.ticks = []
        self.steps = []

    def tick(self, matched):
        self.ticks.append(matched)
        return False

    def phase(self, *, found, matched, step, scans):
        self.steps.append((step, found, scans))


class StopPaths(StopAt):
    def phase(self, **numbers):
        pass


class Solved(SolvedBy):
    """A run of this algorithm."""

    def __init__(self, kind, matrix, limit=None, control=None, **given):
        control = control or Trace()
        run = shortest_augmenting_path.run
        super().__init__(run, matrix, kind=kind, limit=limit, control=control, **given)


SHAPES = [(0, 0), (0, 4), (1, 1), (1, 9), (2, 2), (7, 300), (128, 128), (129, 257), (9, 4200)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("top", [1, 4, 1000, 10**12])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@EVERY_KIND
def test_lanes_of_any_length(kind, dtype, shape, top):
    matrix = np.random.default_rng(1).integers(-top, top, shape, endpoint=True).astype(dtype)
    solved = Solved(kind, matrix)
    solved.check_optimal()
    assert solved.total == optimum(matrix)


@pytest.mark.parametrize("ncols", [0, 1, 2, 127, 128, 129, 1000, 4096, 4097, 9000])
@pytest.mark.parametrize("top", [1, 5, 10**6])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_the_least_two_reduced_costs(dtype, top, ncols):
    """They are the first two of a stable sort; the last column often is one of them."""
    rng = np.random.default_rng(ncols)
    number = np.dtype(dtype).type
    far = number(math.inf if number is np.float64 else np.iinfo(number).max)
    for share in (0, 0.5, 1):
        line, price = rng.integers(0, top, (2, ncols), endpoint=True).astype(dtype)
        line[-1:], price[-1:] = 0, top
        if number is np.float64:
            line[rng.random(ncols) < share] = far
        reduced = line - price
        nearest = [col for col in np.argsort(reduced, kind="stable")[:2] if reduced[col] < far]
        expected = [(reduced[col], col) for col in nearest] + [(far, -1)] * (2 - len(nearest))
        found = dense_search.least_two(line, price, np.empty(dense_search.LANES, dtype), far)
        assert [found[:2], found[2:]] == expected
        cols = np.flatnonzero(line < far).astype(np.int32)
        row = np.array([0, cols.size]), cols, line[cols]
        found = sparse_search.least_two(*row, price, 0, far)
        assert [found[:2], found[2:]] == expected


def test_excess_counts_the_rows_that_have_entries():
    paths = object.__new__(SparsePaths)
    indptr, indices = np.array([0, 2, 2, 3, 3]), np.array([0, 1, 1], np.int32)
    paths.entries, paths.price = (indptr, indices, np.array([5, 7, 9])), np.array([1, 0])
    count, excess = paths.excess(np.arange(4))
    assert (count, excess.tolist()) == (2, [0, 3, 0])
    count, excess = paths.excess(np.array([1, 3]))
    assert (count, excess.size) == (0, 0)


@pytest.mark.parametrize("budget", [1, 100, 5000])
@pytest.mark.parametrize("shape", [(60, 60), (60, 100)], ids=str)
@pytest.mark.parametrize("limit", [None, 20])
@EVERY_KIND
def test_any_budget_gives_the_same_result(monkeypatch, kind, shape, limit, budget):
    matrix = costs.uniform_integer(*shape, seed=2)
    whole = Solved(kind, matrix, limit)
    for module in (dense_search, sparse_search):
        monkeypatch.setattr(module, "BUDGET", budget)
    control = Trace()
    pieces = Solved(kind, matrix, limit, control)
    pieces.check_optimal()
    assert np.array_equal(pieces.row_to_col, whole.row_to_col)
    assert np.array_equal(pieces.col_dual, whole.col_dual)
    assert control.ticks == sorted(control.ticks)
    if budget == 1:
        assert len(control.ticks) > 10


@pytest.mark.parametrize("limit", [None, 20])
@EVERY_KIND
def test_stops_at_every_tick_leave_a_matching_and_a_bound(monkeypatch, kind, limit):
    for module in (dense_search, sparse_search):
        monkeypatch.setattr(module, "BUDGET", 300)
    matrix = costs.uniform_integer(40, 50, 10, seed=2) if limit else costs.geom2(40, seed=3)
    control = Trace()
    best = Solved(kind, matrix, limit, control)
    stops = 0
    for tick in range(1, len(control.ticks)):
        solved = Solved(kind, matrix, limit, StopPaths(tick))
        solved.check_matching()
        solved.check_duals(1e-9)
        bound = solved.row_dual.sum() + solved.col_dual.sum()
        assert bound <= best.row_dual.sum() + best.col_dual.sum() + 1e-9
        stops += not solved.ended
    assert stops >= len(control.ticks) - 3


@EVERY_KIND
@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 8), st.integers(0, 6)),
    top=st.sampled_from([2, 9, 10**6]),
    limit=st.none() | st.integers(-2, 6),
)
def test_any_prices_and_pairs_will_do_to_begin(kind, seed, shape, top, limit):
    rng = np.random.default_rng(seed)
    nrows, ncols = shape[0], shape[0] + shape[1]
    matrix = rng.integers(0, top, (nrows, ncols))
    count = rng.integers(0, nrows, endpoint=True)
    mates = list(zip(rng.permutation(nrows)[:count], rng.permutation(ncols)[:count]))
    price = rng.integers(-top, top, ncols)
    for dtype in (np.int64, np.float64):
        solved = Solved(kind, matrix.astype(dtype), limit, mates=mates, price=price)
        solved.check_optimal()
        cold = Solved(kind, matrix.astype(dtype), limit)
        assert solved.total == cold.total


@pytest.mark.parametrize("limit", [None, 30])
@EVERY_KIND
def test_prices_that_are_repaired_too_often_are_given_up(monkeypatch, kind, limit):
    """A run then begins from prices of 0 and without pairs, in which no pair is dear."""
    monkeypatch.setattr(paths, "ADOPTIONS", 1)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        matrix = rng.integers(0, 50, (6, 9))
        mates = zip(*linear_sum_assignment(matrix + rng.integers(0, 30, (6, 9))))
        price = -rng.integers(0, 20, 9)
        Solved(kind, matrix, limit, mates=mates, price=price).check_optimal()


@EVERY_KIND
def test_an_optimal_start_is_kept(kind):
    matrix = costs.uniform_integer(50, 70, seed=3)
    first = Solved(kind, matrix)
    control = Trace()
    mates = list(zip(first.rows, first.row_to_col))
    again = Solved(kind, matrix, control=control, mates=mates, price=first.col_dual)
    assert np.array_equal(again.row_to_col, first.row_to_col)
    assert sum(found for _, found, _ in control.steps) == 0


@EVERY_KIND
def test_rows_without_a_path_stay_unmatched(kind):
    check_rows_without_a_path(functools.partial(Solved, kind))


@EVERY_KIND
def test_a_limit_is_taken_where_no_column_is_left(kind):
    check_a_limit_where_no_column_is_left(functools.partial(Solved, kind))


@pytest.mark.parametrize("n", [2, 65, 200])
@EVERY_KIND
def test_prices_too_coarse_to_fall(kind, n):
    """Where a price cannot fall by the little it should, a bid must not repeat itself."""
    rng = np.random.default_rng(4)
    matrix = 1e16 * rng.integers(0, 2, (n, n)) + rng.random((n, n))
    solved = Solved(kind, matrix)
    solved.check_optimal(slack=64)
    assert math.isclose(solved.total, optimum(matrix), rel_tol=1e-14)


@EVERY_KIND
def test_a_search_scans_each_row_once(kind):
    """On i · j each path leads through all rows: n searches of at most n scans."""
    n = 120
    control = Trace()
    solved = Solved(kind, costs.machol_wien(n), control=control)
    solved.check_optimal()
    assert solved.row_to_col.tolist() == [*range(n)][::-1]
    work = control.steps[-1][2]
    assert work <= n * n * (1 if kind == "dense" else n + 1)


@EVERY_KIND
def test_bids_are_counted(kind):
    """Three rows want two columns that others shun: bidding alone would go on and on."""
    matrix = np.full((3, 3), 10.0**9)
    matrix[:, :2] = [[0, 1], [1, 0], [0, 0]]
    control = Trace()
    Solved(kind, matrix, control=control).check_optimal(1e-6)
    most = SPARSE_BIDS if kind == "sparse" else 5
    assert all(scans <= most * 3 for step, _, scans in control.steps if step == "bids")


@pytest.mark.parametrize(
    ("limit", "number"),
    [(None, np.int32), (2**25 - 1, np.int32), (2**25, np.int64), (-(2**25), np.int64)],
)
def test_prices_are_narrow_where_sums_of_costs_and_limit_stay_so(monkeypatch, limit, number):
    chosen = []
    choose = DensePaths._number

    def recorded(self, *arguments):
        chosen.append(choose(self, *arguments))
        return chosen[-1]

    monkeypatch.setattr(DensePaths, "_number", recorded)
    Solved("dense", np.array([[2**25 - 1, 0]]), limit)
    assert chosen == [number]


@pytest.mark.parametrize("matrix", [np.full((3, 4), 5), np.array([[5, 6, 7], [6, 5, 7]])])
def test_rows_rather_go_without_than_pay_the_limit(matrix):
    assert Solved("dense", matrix, 5).rows.size == 0
    assert Solved("dense", matrix, 6).rows.size == min(matrix.shape)


@pytest.mark.parametrize("shape", [(30, 30), (30, 40)], ids=str)
@pytest.mark.parametrize("limit", [None, 6])
def test_pairs_that_all_cost_the_same_need_no_search(shape, limit):
    control = Trace()
    solved = Solved("dense", np.full(shape, 5), limit, control)
    solved.check_optimal()
    assert solved.row_to_col.tolist() == [*range(30)]
    assert control.steps == [("paths", 0, 0)]


@pytest.mark.parametrize("nrows", [1, 2, 3, 5])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_tight_pairs_are_the_same_from_any_number_of_threads(nrows, threads):
    """Threads have rows each, or none at all, and pairs follow one another without a gap."""
    ncols = 4 * 2**16 // nrows
    weights = np.random.default_rng(7).integers(0, 3, (nrows, ncols))
    weights[:, -1] = 0
    task = csr_array(weights + 1)
    task.data -= 1
    costs_of = as_costs(task)
    mates = np.full(nrows, -1, np.int32), np.full(ncols, -1, np.int32)
    with Workers(threads, costs_of.nnz) as workers:
        assert workers.threads == threads
        paths = SparsePaths(
            costs_of.entries(), costs_of, *mates, np.zeros(ncols, np.int64), None, workers=workers
        )
        indptr, indices = paths._tight_pairs()
    tight = csr_array(weights == 0)
    assert np.array_equal(indptr, tight.indptr)
    assert np.array_equal(indices, tight.indices)


@pytest.mark.parametrize("locked", [0, 1, 2])
def test_a_tight_column_that_another_thread_holds_is_left_to_it(locked):
    """Row 1 wants column 1, whose mate, row 0, may move to column 0 or 2; all pairs are tight."""
    indptr, indices = np.array([0, 3, 4], np.int32), np.array([0, 1, 2, 1], np.int32)
    row_to_col, col_to_row = np.array([1, -1], np.int32), np.array([-1, 0, -1], np.int32)
    col_to_row[locked] = LOCKED
    sparse_search.match_tight(
        indptr, indices, np.zeros(4), np.zeros(3), row_to_col, col_to_row, 0.0, False, np.inf, 0, 2
    )
    assert col_to_row[locked] == LOCKED
    assert row_to_col.tolist() == {0: [2, 1], 1: [1, -1], 2: [0, 1]}[locked]


def test_a_thread_that_searches_has_room_for_its_budget_and_the_longest_row(monkeypatch):
    """Two threads, rows of six columns; more room is made when the budget is larger."""
    monkeypatch.setattr("gpumatch.cpu.numba_tools.workers._EDGES_EACH", 1)
    monkeypatch.setattr("gpumatch.cpu.assignment.sparse.paths.EACH", 1)
    given = as_costs(csr_array(np.arange(1, 13).reshape(2, 6)))
    mates = np.full(2, -1, np.int32), np.full(6, -1, np.int32)
    with Workers(2, 12) as workers:
        searches = SparsePaths(
            given.entries(), given, *mates, np.zeros(6, np.int64), None, workers=workers
        )
        for budget, most in ((2, 2 // 2 + 1 + 6), (99, 12)):
            searches.clashes = 0
            searches.augment_some(searches.start_with_unmatched_rows(), budget)
            assert [room.keys.size for room in searches.rooms.values()] == [most + 1] * 2
            for side in mates:
                side.fill(-1)


def test_a_stop_before_all_columns_have_prices_leaves_prices_of_0(monkeypatch):
    monkeypatch.setattr(sparse_search, "BUDGET", 1)  # so the first look is after the first row
    matrix = np.where(np.eye(4, dtype=bool), 7, np.inf)
    matrix[3, 0] = 9
    solved = SolvedBy(
        shortest_augmenting_path.run, matrix, kind="sparse", control=Stopping(stop_at=1)
    )
    assert not solved.ended
    assert solved.control.ticks == [0]
    assert solved.col_dual.tolist() == [0, 0, 0, 0]
    assert solved.row_dual.tolist() == [7, 7, 7, 7]
