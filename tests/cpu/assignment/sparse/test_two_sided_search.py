"""Searches from both ends: against SciPy, step by step against plain Dijkstra, and in any order."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest

from gpumatch import assign, verify
from gpumatch.contracts import Stopped
from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse import two_sided_search
from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.tuning import SHORT
from gpumatch.cpu.assignment.sparse.two_sided_search import TwoSidedPaths
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.searches import sparse as sparse_search
from gpumatch.cpu.searches.state import SCANS
from graphs.costs import mesh
from tests.cpu.assignment.solved import Solved, Trace, least
from tests.cpu.assignment.tuned import tune
from tests.cpu.interleaved import interleave, one_by_one

INTEGER, FLOAT = np.int64, np.float64


class Drawn:
    """A square matrix whose forbidden pairs are inf, and prices at which no pair is too cheap.

    Some pairs that are tight then are matched.
    """

    def __init__(self, seed, number=INTEGER, share=0.4, high=20, full=True):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 14))
        matrix = rng.integers(0, rng.choice([3, high]), (n, n)).astype(float)
        if number is FLOAT:
            matrix += rng.random((n, n)) / 3
        is_stored = rng.random((n, n)) < share
        if full:
            is_stored[np.arange(n), rng.permutation(n)] = True
        self.matrix, self.number = np.where(is_stored, matrix, math.inf), number
        self.is_stored = is_stored
        costs = matrix.astype(number)
        self.far = number(np.inf) if number is FLOAT else np.iinfo(number).max
        self.cols_price = -rng.integers(0, 4, n).astype(number)
        reduced = np.where(is_stored, costs - self.cols_price, self.far)
        self.rows_price = np.where(is_stored.any(1), reduced.min(1), 0).astype(number)
        self.row_to_col, self.col_to_row = np.full((2, n), -1, np.int32)
        for row in np.flatnonzero(rng.random(n) < 0.6):
            is_tight = is_stored[row] & (reduced[row] == self.rows_price[row])
            for col in np.flatnonzero(is_tight & (self.col_to_row < 0))[:1]:
                self.row_to_col[row], self.col_to_row[col] = col, row
        self.costs, self.n = costs, n

    def by_rows(self, costs, is_stored):
        counts = is_stored.sum(axis=1)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return indptr, is_stored.nonzero()[1].astype(np.int32), costs[is_stored]

    def paths(self, workers):
        entries = (
            self.by_rows(self.costs, self.is_stored),
            self.by_rows(self.costs.T, self.is_stored.T),
        )
        mates = self.row_to_col, self.col_to_row
        prices = self.rows_price, self.cols_price
        return TwoSidedPaths(entries, prices, mates, self.far, workers, sparse_tuning.DEFAULT)

    def check(self):
        """Pairs that belong together, none of them dear, and no entry too cheap."""
        rows = np.flatnonzero(self.row_to_col >= 0)
        assert (self.col_to_row[self.row_to_col[rows]] == rows).all()
        assert (self.col_to_row >= 0).sum() == rows.size
        reduced = self.costs - self.rows_price[:, None] - self.cols_price
        close = 1e-12 if self.number is FLOAT else 0
        assert (reduced[self.is_stored] >= -close).all()
        assert self.is_stored[rows, self.row_to_col[rows]].all()
        assert (abs(reduced[rows, self.row_to_col[rows]]) <= close).all()

    @property
    def shortest(self):
        """The length of a shortest augmenting path, by Dijkstra's algorithm; None without one."""
        reduced = np.maximum(self.costs - self.rows_price[:, None] - self.cols_price, 0)
        dist = dict.fromkeys(np.flatnonzero(self.row_to_col < 0).tolist(), 0)
        heap = [(0, row) for row in dist]
        ends = []
        while heap:
            length, row = heapq.heappop(heap)
            if length > dist[row]:
                continue
            for col in np.flatnonzero(self.is_stored[row]):
                there, mate = length + reduced[row, col], int(self.col_to_row[col])
                if mate < 0:
                    ends.append(there)
                elif there < dist.get(mate, math.inf):
                    dist[mate] = there
                    heapq.heappush(heap, (there, mate))
        return min(ends, default=None)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("number", [INTEGER, FLOAT])
def test_each_path_is_a_shortest_one(number, threads, monkeypatch):
    lengths = []
    augment = TwoSidedPaths._augment

    def noted(paths, roots, control):
        expected, before = drawn.shortest, (drawn.row_to_col >= 0).sum()
        has_path = augment(paths, roots, control)
        assert has_path == (expected is not None)
        if has_path:
            assert paths.best[0] == pytest.approx(expected, abs=1e-12)
            lengths.append(expected)
        assert (drawn.row_to_col >= 0).sum() == before + has_path
        drawn.check()
        return has_path

    monkeypatch.setattr(TwoSidedPaths, "_augment", noted)
    with Workers(threads, 10**6) as workers:
        for seed in range(120):
            drawn = Drawn(seed, number, full=bool(seed % 3))
            drawn.paths(workers).serve(Trace())
            assert drawn.shortest is None
            if seed % 3:
                assert (drawn.row_to_col >= 0).all()
                total = drawn.matrix[np.arange(drawn.n), drawn.row_to_col].sum()
                assert total == pytest.approx(least(drawn.matrix), abs=1e-9)
    assert np.count_nonzero(lengths) > 50
    assert np.count_nonzero(np.array(lengths) == 0) > 50 or number is FLOAT


def test_any_order_of_turns_of_two_threads(monkeypatch):
    taken = 0
    for seed in range(40):
        turns = interleave(monkeypatch, two_sided_search, sparse_search, seed=seed)
        drawn = Drawn(seed, share=0.6)
        with Workers(2, 10**6) as workers:
            drawn.paths(workers).serve(Trace())
        drawn.check()
        total = drawn.matrix[np.arange(drawn.n), drawn.row_to_col].sum()
        assert total == least(drawn.matrix)
        taken += turns.taken
    assert taken > 1000


@pytest.mark.parametrize("budget", [1, 7])
def test_searches_that_are_left_and_taken_up_again(budget, monkeypatch):
    tune(monkeypatch, sparse_tuning, turn=budget, turns_at_once=2)
    for seed in range(60):
        drawn, trace = Drawn(seed), Trace()
        drawn.paths(Workers(1, 0)).serve(trace)
        drawn.check()
        assert drawn.matrix[np.arange(drawn.n), drawn.row_to_col].sum() == least(drawn.matrix)
        assert trace.ticks == sorted(trace.ticks)


def test_a_thread_without_a_processor_does_not_cost_readings(monkeypatch):
    """The thread that runs grows both forests; alone, that of the rows would read all entries.

    Row 200 and column 200 are unmatched, and their entry is dear. Others are tight, or cost 1.
    """
    tune(monkeypatch, sparse_tuning, turn=16)
    one_by_one(monkeypatch)
    reads = []
    for threads in (1, 2):
        drawn, n = Drawn(0), 400
        places = np.arange(n)
        drawn.is_stored = abs(np.subtract.outer(places, places)) <= 1
        drawn.costs = 1 - np.eye(n, dtype=INTEGER)
        drawn.costs[200, 200] = 5
        drawn.rows_price, drawn.cols_price = np.zeros((2, n), INTEGER)
        drawn.row_to_col = np.where(places == 200, -1, places).astype(np.int32)
        drawn.col_to_row = drawn.row_to_col.copy()
        paths = drawn.paths(Workers(threads, 10**6))
        paths.serve(Trace())
        assert (drawn.row_to_col >= 0).all()
        reads.append(paths.scans)
    assert reads[1] <= reads[0] + (two_sided_search.LEAD + 1) * 32 < drawn.is_stored.sum() / 2


def test_a_stop_leaves_prices_and_pairs_and_nothing_behind(monkeypatch):
    tune(monkeypatch, sparse_tuning, turn=2, turns_at_once=2)
    stops = 0
    for seed in range(60):
        drawn = Drawn(seed)
        paths = drawn.paths(Workers(1, 0))
        try:
            paths.serve(Trace(stop_at=1 + seed % 5))
        except Stopped:
            stops += 1
        drawn.check()
        for forest in paths.forests:
            assert (forest.dist == drawn.far).all()
            assert not forest.joined.any()
            assert not np.delete(forest.spot, SCANS).any()
        paths.serve(Trace())
        drawn.check()
        assert drawn.matrix[np.arange(drawn.n), drawn.row_to_col].sum() == least(drawn.matrix)
    assert stops > 20


def test_entries_are_counted():
    """Those of a row's only entry, and of its column's."""
    drawn = Drawn(0)
    drawn.is_stored, drawn.costs, drawn.n = np.ones((1, 1), bool), np.array([[5]]), 1
    drawn.rows_price, drawn.cols_price = np.array([3]), np.array([0])
    drawn.row_to_col, drawn.col_to_row = np.full((2, 1), -1, np.int32)
    paths = drawn.paths(Workers(1, 0))
    paths.serve(Trace())
    drawn.check()
    assert (drawn.row_to_col, drawn.col_to_row) == ([0], [0])
    assert paths.scans == 4  # each end is looked at with its entry


def test_integers_beyond_the_range_are_no_path():
    """Row 0 may go to column 1 at a length that wraps around, or by column 0 at a short one."""
    top = 2**62
    drawn = Drawn(0)
    drawn.n, drawn.number = 2, INTEGER
    drawn.is_stored = np.ones((2, 2), bool)
    drawn.costs = np.array([[0, top], [0, -top]])
    drawn.rows_price, drawn.cols_price = np.array([-top, -top]), np.array([top, 0])
    drawn.row_to_col, drawn.col_to_row = np.array([-1, 0], np.int32), np.array([1, -1], np.int32)
    drawn.paths(Workers(1, 0)).serve(Trace())
    assert drawn.row_to_col.tolist() == [0, 1]


def test_halves_with_a_row_in_common_meet_in_the_last_one():
    """Row 0 is free, and so is column 3. The halves meet in (2, 2), but both come by row 1."""
    row_to_col, col_to_row = np.array([-1, 0, 1, 2]), np.array([1, 2, 3, -1])
    pred_of_col = np.array([0, 1, -9, -9])  # row 0 - column 0 - row 1 - column 1 - row 2
    pred_of_row = np.array([-9, 3, -9, 0])  # column 3 - row 1 - column 0 - ... - row 3
    pred_of_row[3] = 0
    pred_of_row[1] = 3
    meeting, is_on_path = np.array([2, 2, 0]), np.zeros(4, np.int8)
    two_sided_search._turn(meeting, row_to_col, col_to_row, pred_of_col, pred_of_row, is_on_path)
    assert row_to_col.tolist() == [0, 3, 1, 2]
    assert col_to_row.tolist() == [0, 2, 3, 1]
    assert not is_on_path.any()


def sparse(seed):
    """Costs of a twentieth of all pairs, among these all of a full assignment."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 1000, (200, 200)).astype(float)
    matrix[rng.random((200, 200)) < 0.8] = math.inf
    matrix[np.arange(200), rng.permutation(200)] = 900
    return matrix


class TestInTheEngine:
    @pytest.fixture(autouse=True)
    def anywhere(self, monkeypatch):
        tune(
            monkeypatch,
            sparse_tuning,
            two_sided_entries=0,
            trial=SHORT._replace(unmatched=-1),
            small=-1,
            few_paths=0,
        )

    @pytest.mark.parametrize("last", [1, 4, 1000])
    @pytest.mark.parametrize("is_integer", [True, False], ids=["integers", "floats"])
    def test_optimum_and_record(self, is_integer, last, monkeypatch):
        tune(
            monkeypatch, sparse_tuning, two_sided_rows=last, two_sided_all=last, few=1000, fewest=4
        )  # so paths have much to do
        for seed in range(12):
            matrix = sparse(seed) + (0 if is_integer else 0.25)
            solved = Solved(sparse_engine.run, matrix, kind="sparse", threads=1 + seed % 2)
            solved.check_optimal(1e-9)
            assert solved.total == least(matrix)
            end = solved.control.phases[-1]
            assert (end["step"], end["matched"]) == ("paths", 200)
            assert end["found"] > 0
            assert end["scans"] > end["found"]

    @pytest.mark.usefixtures("no_rival")
    @pytest.mark.parametrize("last", [4, 1000])
    def test_rows_alone_come_first_and_leave_prices_that_fit(self, last, monkeypatch):
        tune(monkeypatch, sparse_tuning, two_sided_rows=last, two_sided_all=last, fewest=4)
        monkeypatch.setattr(sparse_search, "BUDGET", 1)  # so each path is a call
        begun, alone = [], []
        serve, augment = TwoSidedPaths.serve, SparsePaths.augment_some

        def watched(paths, control):
            for (indptr, indices, costs), own, others, mates in zip(
                paths.entries, paths.prices, paths.prices[::-1], paths.mates
            ):
                owners = np.repeat(np.arange(own.size), np.diff(indptr))
                reduced = costs - own[owners] - others[indices]
                assert (abs(reduced[mates[owners] == indices]) < 1e-9).all()
                if own is paths.prices[0]:
                    assert (reduced > -1e-9).all()
            begun.append((paths, int((paths.mates[0] < 0).sum())))
            serve(paths, control)

        def noted(paths, free, budget):
            alone.append("path")
            return augment(paths, free, budget)

        monkeypatch.setattr(sparse_engine, "heartbeat", lambda *_: lambda: alone.append("beat"))
        monkeypatch.setattr(TwoSidedPaths, "serve", watched)
        monkeypatch.setattr(SparsePaths, "augment_some", noted)
        for seed in range(8):
            begun.clear()
            alone.clear()
            matrix = sparse(seed)
            solved = Solved(sparse_engine.run, matrix, kind="sparse")
            assert solved.total == least(matrix)
            ((paths, left),) = begun
            count = alone.count("path")
            if last == 4:
                assert left == 4
                assert count >= 3
                assert alone[-2 * count :] == ["path", "beat"] * count
                assert solved.control.phases[-2]["scans"] > 0
            else:
                assert count == 0
            assert solved.control.phases[-1]["scans"] == paths.scans > 0

    @pytest.mark.usefixtures("no_rival")
    def test_it_is_asked_where_all_must_be_matched_in_a_large_matrix(self, monkeypatch):
        served = []
        serve = TwoSidedPaths.serve
        monkeypatch.setattr(
            TwoSidedPaths, "serve", lambda paths, control: served.append(1) or serve(paths, control)
        )
        rng = np.random.default_rng(0)
        matrix = rng.integers(0, 100, (30, 30)).astype(float)
        for changed, expected in ((matrix, [1]), (matrix[:20], []), (matrix[:, :20], [])):
            served.clear()
            Solved(sparse_engine.run, changed, kind="sparse")
            assert served == expected
        tune(monkeypatch, sparse_tuning, two_sided_entries=901)
        served.clear()
        Solved(sparse_engine.run, matrix, kind="sparse")
        assert not served
        tune(monkeypatch, sparse_tuning, two_sided_entries=900)
        Solved(sparse_engine.run, matrix, kind="sparse")
        assert served == [1]


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
def test_a_mesh_whose_last_rows_are_far_away(threads):
    costs = mesh(18, seed=3)
    assert costs.nnz > sparse_tuning.DEFAULT.two_sided_entries
    assert "optimal" in str(verify(costs, assign(costs, threads=threads)))
