"""The engine for costs: the contract on sparse costs, each of its steps, stops."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.assignment.sparse import paths as sparse_paths
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.tuning import Effort, Tuning
from gpumatch.cpu.matching import completion
from gpumatch.cpu.matching.engine import match_rows
from gpumatch.cpu.searches import sparse as sparse_search
from gpumatch.cpu.searches.state import NEXT, SCANS
from gpumatch.numeric.multiples import Units
from graphs import costs
from tests.cpu.assignment.solved import Trace, least, rounding
from tests.cpu.assignment.sparse.forced import (
    EVERY_PATH,
    PATHS,
    UNTRIED,
    solve,
    steps,
    thinned,
)
from tests.cpu.assignment.tuned import tune
from tests.pairwise import pairwise_product, parametrize_pairwise

pytestmark = pytest.mark.usefixtures("path")

SHAPES = [(1, 1), (1, 6), (5, 5), (40, 40), (40, 41), (30, 90), (200, 200), (150, 220)]


@parametrize_pairwise(
    *("path", "limit"),
    path=PATHS,
    shape=SHAPES,
    top=[1, 5, 1000, 10**6],
    limit=[None, 0.75, 0],
    threads=[1, 2],
    indirect=["path"],
)
def test_floats(shape, top, limit, threads):
    rng = np.random.default_rng(top)
    matrix = thinned(rng.random(shape) * top, 0.3, rng)
    limit = None if limit is None else limit * top
    solved = solve(matrix, limit=limit, threads=threads)
    solved.check_optimal(rounding(matrix) * 8)
    assert math.isclose(solved.total, least(matrix, limit), rel_tol=1e-12, abs_tol=1e-12)


class Entries:
    """Integers of a sparse matrix; for `gm.assign`, which keeps them integers."""

    def __init__(self, shape, top, seed, share=0.3):
        rng = np.random.default_rng(seed)
        self.floats = thinned(rng.integers(-top, top, shape, endpoint=True), share, rng)
        rows, cols = np.isfinite(self.floats).nonzero()
        values = self.floats[rows, cols].astype(np.int64)
        self.matrix = csr_array((values, (rows, cols)), shape=shape)

    def assign(self, **wish):
        return gm.assign(self.matrix, algorithm="engine", backend="cpu", **wish)


@parametrize_pairwise(
    *("path", "limit"),
    path=PATHS,
    shape=SHAPES,
    top=[0, 1, 7, 1000, 10**9],
    limit=[None, 3, -1],
    turned=[False, True],
    indirect=["path"],
)
def test_integers_are_exact(shape, top, limit, turned):
    entries = Entries(shape, top, seed=top)
    if turned:
        entries.matrix = csr_array(entries.matrix.T)
    a = entries.assign(cost_limit=limit)
    gm.verify(entries.matrix, a)
    assert a.gap == 0
    assert a.row_dual.dtype == np.int64
    unmatched = min(shape) - a.size
    assert a.objective + (limit or 0) * unmatched == least(entries.floats, limit)


@EVERY_PATH
@pytest.mark.parametrize("top", [2**54, 2**55])
def test_integers_too_large_to_be_scaled(top):
    """There is room for prices of some times the largest cost only."""
    entries = Entries((40, 40), top, seed=1)
    weights = entries.matrix.data
    assert Units.of(weights, (weights.min(), weights.max()), None, 40).is_crude
    a = entries.assign()
    gm.verify(entries.matrix, a)
    assert a.gap == 0


@parametrize_pairwise(
    *("path", "cardinality"),
    path=PATHS,
    cardinality=["maximum", "any"],
    maximize=[False, True],
    shape=[(30, 30), (30, 50), (50, 30)],
    indirect=["path"],
)
def test_other_cardinalities(cardinality, maximize, shape):
    rng = np.random.default_rng(5)
    for share in (0.02, 0.05, 0.1):
        values = rng.integers(-20, 20, shape) * (rng.random(shape) < share)
        matrix = csr_array(values)
        wish = {"cardinality": cardinality, "maximize": maximize}
        a = gm.assign(matrix, algorithm="engine", backend="cpu", **wish)
        gm.verify(matrix, a)
        other = gm.assign(matrix, algorithm="auction", backend="cpu", **wish)
        assert (a.objective, a.gap) == (other.objective, 0)


@EVERY_PATH
@pytest.mark.parametrize(
    ("cost", "dtype", "limit"),
    pairwise_product({"cost": [0, 7, -3], "dtype": [int, float], "limit": [None, 2, 7]}),
)
def test_pairs_that_all_cost_the_same(cost, dtype, limit):
    """No price is needed, however many rows want the same column."""
    rng = np.random.default_rng(11)
    for shape in ((60, 60), (60, 70)):
        rows, cols = np.isfinite(thinned(np.zeros(shape), 0.05, rng)).nonzero()
        matrix = csr_array((np.full(rows.size, cost, dtype), (rows, cols)), shape=shape)
        a = gm.assign(matrix, algorithm="engine", backend="cpu", cost_limit=limit)
        gm.verify(matrix, a)
        assert a.proven
        if limit is None:
            assert (a.size, a.objective) == (60, 60 * cost)
            assert not a.col_dual.any()


@EVERY_PATH
def test_infeasible_costs_end():
    matrix = np.full((6, 6), np.inf)
    matrix[:, 0] = 1  # six rows want the same column
    matrix[0] = 2
    solved = solve(matrix)
    solved.check_matching()
    assert solved.ended
    assert solved.rows.size < 6
    with pytest.raises(gm.InfeasibleError):
        gm.assign(csr_array(([1, 1], ([0, 1], [0, 0])), shape=(2, 2)))


@EVERY_PATH
def test_a_row_without_entries():
    matrix = np.array([[1.0, 2.0, np.inf], [np.inf] * 3])
    assert solve(matrix).rows.size < 2
    solved = solve(matrix, limit=1.5)
    solved.check_optimal()
    assert solved.row_to_col.tolist() == [0, -1]
    empty = gm.assign(csr_array((3, 3)), cardinality="any")
    assert (empty.size, empty.objective) == (0, 0)


@EVERY_PATH
@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 9), st.integers(0, 5)),
    top=st.sampled_from([1, 4, 10**6]),
    limit=st.none() | st.integers(-2, 6),
    is_given=st.booleans(),
)
def test_any_small_problem(seed, shape, top, limit, is_given):
    rng = np.random.default_rng(seed)
    nrows, ncols = shape[0], shape[0] + shape[1]
    matrix = thinned(rng.integers(-top, top, (nrows, ncols), endpoint=True), rng.random(), rng)
    start = {}
    if is_given:
        count = rng.integers(0, nrows, endpoint=True)
        pairs = zip(rng.permutation(nrows)[:count], rng.permutation(ncols)[:count])
        start["mates"] = [pair for pair in pairs if np.isfinite(matrix[pair])]
        start["price"] = rng.integers(-top, top, ncols)
    solved = solve(matrix, limit=limit, **start)
    solved.check_optimal(1e-9)
    assert math.isclose(solved.total, least(matrix, limit), abs_tol=1e-9)


@EVERY_PATH
def test_one_thread_always_finds_the_same():
    rng = np.random.default_rng(2)
    matrix = thinned(rng.integers(0, 9, (300, 300)), 0.05, rng)
    one, other = (solve(matrix) for _ in range(2))
    assert np.array_equal(one.row_to_col, other.row_to_col)
    assert np.array_equal(one.col_dual, other.col_dual)


@EVERY_PATH
def test_the_trial_is_enough_if_rows_hardly_meet(path):
    """Two rows want the same column, which the one that is to lose it takes first."""
    matrix = np.full((100, 100), np.inf)
    np.fill_diagonal(matrix, 1.0)
    matrix[0, 1], matrix[1, 0], matrix[1, 2], matrix[2, 0] = 0.0, 0.5, 0.2, 0.9
    solved = solve(matrix)
    solved.check_optimal(1e-12)
    found = steps(solved)
    trial = ["bids", "trial"] if path == "bids" else ["trial"]
    assert found[: len(trial)] == trial
    assert found == trial or path == "auction"


def two_costs():
    return costs.make("goldberg_kennedy", 2048, 16, "two_cost", seed=1)


@EVERY_PATH
def test_rows_with_a_choice_are_matched_to_their_cheapest_columns():
    matrix = two_costs()
    a = gm.assign(matrix, algorithm="engine", backend="cpu")
    gm.verify(matrix, a)
    (trial,) = a.stats["trace"]
    assert (trial["step"], trial["matched"]) == ("trial", 2048)
    assert trial["scans"] < matrix.nnz / 10


@EVERY_PATH
def test_ties_are_searched_breadth_first(monkeypatch):
    """Depth first, the trial reads the entries 1.7 times."""
    tune(monkeypatch, sparse_tuning, choice=math.inf)
    tune(
        monkeypatch,
        sparse_tuning,
        trial=sparse_tuning.DEFAULT.trial._replace(
            looks_ahead=True, bids=0, unmatched=1, reads=math.inf
        ),
    )
    matrix = two_costs()
    (trial,) = gm.assign(matrix, algorithm="engine", backend="cpu").stats["trace"]
    assert 0 < trial["scans"] < 1.3 * matrix.nnz


@EVERY_PATH
def test_a_given_matching_is_kept_if_all_pairs_cost_the_same(monkeypatch):
    seen = []
    complete = sparse_engine.complete
    monkeypatch.setattr(
        sparse_engine,
        "complete",
        lambda task, *mates: seen.append(task.costs) or complete(task, *mates),
    )
    solved = solve(np.ones((3, 3)), mates=[(0, 2), (1, 0), (2, 1)])
    assert seen
    assert solved.row_to_col.tolist() == [2, 0, 1]


def test_a_tuning_that_is_passed_replaces_the_default():
    """Whatever the fixture has made the default."""
    matrix = np.random.default_rng(3).random((50, 50))
    alone = Tuning(trial=Effort(False, 0, 0, -1), small=-1, fewest=0, few=1, few_paths=0)
    assert "auction" in steps(solve(matrix, tuning=alone))
    assert "auction" not in steps(solve(matrix, tuning=Tuning()))


@EVERY_PATH
def test_stops_at_every_tick_leave_a_matching_and_a_bound(monkeypatch):
    tune(monkeypatch, sparse_tuning, budget=40)
    monkeypatch.setattr(sparse_search, "BUDGET", 40)
    rng = np.random.default_rng(4)
    for shape, limit in (((30, 30), None), ((30, 40), None), ((30, 40), 0.2)):
        matrix = thinned(rng.random(shape), 0.3, rng)
        best, stops = solve(matrix, limit=limit), 0
        for tick in range(1, len(best.control.ticks)):
            solved = solve(matrix, limit=limit, control=Trace(stop_at=tick))
            stops += not solved.ended
            solved.check_matching()
            solved.check_duals(1e-12)
            assert shape == (30, 30) or not solved.col_dual[solved.col_to_row < 0].any()
            assert solved.bound <= best.bound + 1e-9
        assert stops > 5
        assert stops >= len(best.control.ticks) - 4


@EVERY_PATH
def test_given_pairs_without_prices_are_not_begun_from():
    rng = np.random.default_rng(5)
    matrix = thinned(rng.integers(0, 4, (40, 40)), 0.2, rng)
    cold = solve(matrix)
    given = solve(matrix, mates=[(row, row) for row in range(0, 40, 2)])
    assert np.array_equal(given.row_to_col, cold.row_to_col)
    assert np.array_equal(given.col_dual, cold.col_dual)


@EVERY_PATH
def test_given_prices_leave_little_to_do(path):
    matrix = costs.mesh(11, 1000, seed=3)
    first = gm.assign(matrix, algorithm="engine", backend="cpu")
    again = gm.assign(matrix, algorithm="engine", backend="cpu", initial=first)
    assert again.objective == first.objective
    assert [phase["found"] for phase in again.stats["trace"]] == [0]
    changed = matrix.copy()
    changed.data[::500] += 7
    warm = gm.assign(changed, algorithm="engine", backend="cpu", initial=first)
    cold = gm.assign(changed, algorithm="engine", backend="cpu")
    gm.verify(changed, warm)
    assert warm.objective == cold.objective
    assert sum(p["scans"] for p in warm.stats["trace"]) < 3 * matrix.nnz


@pytest.mark.usefixtures("no_rival")
@pytest.mark.parametrize("path", ["auction"], indirect=True)
@pytest.mark.parametrize(("changed", "step"), [(0.5, "auction"), (0.01, "paths")])
def test_rows_bid_again_if_many_given_pairs_are_not_tight(path, changed, step, monkeypatch):
    rng = np.random.default_rng(8)
    matrix = thinned(rng.random((300, 300)), 0.1, rng)
    before = solve(matrix)
    assert "auction" in steps(before)
    rows = np.flatnonzero(rng.random(300) < changed)
    matrix[rows] *= rng.random((rows.size, 300))
    tune(monkeypatch, sparse_tuning, bid_again=1 / 16)
    again = solve(matrix, mates=enumerate(before.row_to_col), price=before.col_dual)
    again.check_optimal(rounding(matrix) * 8)
    assert steps(again)[0] == step
    assert math.isclose(again.total, least(matrix, None), rel_tol=1e-12)


@EVERY_PATH
def test_dense_costs_are_served(path):
    matrix = costs.uniform_float(60, seed=1)
    a = gm.assign(matrix, algorithm="engine", backend="cpu")
    gm.verify(matrix, a)


@pytest.mark.parametrize("path", ["bids"], indirect=True)
def test_threads_that_search_at_once_find_shortest_paths(path, monkeypatch):
    """Whatever they put off because another has the column; one thread ends what is left."""
    monkeypatch.setattr("gpumatch.cpu.numba_tools.workers._EDGES_EACH", 1)
    monkeypatch.setattr(sparse_paths, "EACH", 1)
    tune(
        monkeypatch,
        sparse_tuning,
        trial=sparse_tuning.DEFAULT.trial._replace(
            looks_ahead=True, bids=0, unmatched=1, reads=math.inf
        ),
    )
    rounds = []
    at_once = SparsePaths._augment_at_once

    def spy(paths, free, budget):
        before = free.size - paths.spot[NEXT]
        scans = int(paths.spot[SCANS])
        outcome = at_once(paths, free, budget)
        assert paths.spot[SCANS] - scans >= before - (free.size - paths.spot[NEXT])
        rounds.append(before - (free.size - paths.spot[NEXT]))
        return outcome

    monkeypatch.setattr(SparsePaths, "_augment_at_once", spy)
    for family, size in (("kkt", 3000), ("spread", 300), ("mesh", 8)):
        matrix = costs.make(family, size, seed=1)
        for cost_limit in (None, float(np.median(matrix.data))):
            run = partial(gm.assign, matrix, cost_limit=cost_limit, backend="cpu")
            several, one = run(threads=4), run(threads=1)
            gm.verify(matrix, several)
            assert math.isclose(several.objective, one.objective, rel_tol=1e-12)
    assert sum(rounds) > 300


@EVERY_PATH
def test_the_largest_assignment_needs_no_matching_if_the_trial_has_all_rows(path):
    """Else one tells what the trial's pairs leave in doubt; nothing is solved twice."""
    rng = np.random.default_rng(1)
    matrix = rng.random((300, 300)) + 1
    kept = rng.random((300, 300)) < 0.02
    np.fill_diagonal(kept, True)
    np.fill_diagonal(matrix, 1e-3)
    full = csr_array(matrix * kept)
    assignment = gm.assign(full, cardinality="maximum", backend="cpu")
    gm.verify(full, assignment)
    steps = [phase.get("step") for phase in assignment.stats["trace"]]
    assert assignment.size == 300
    if path in ("trial", "bids"):
        assert steps == ["trial"]
    kept[:, :3] = False
    kept[:5] = False
    lacking = csr_array(matrix * kept)
    assignment = gm.assign(lacking, cardinality="maximum", backend="cpu")
    gm.verify(lacking, assignment)
    assert assignment.size == 295
    assert math.isclose(
        assignment.objective, gm.assign(lacking, cardinality="maximum", algorithm="auction",
        backend="cpu").objective, rel_tol=1e-6
    )  # fmt: skip


WAYS = {
    "all have columns": (300, 2**17, []),
    "some have none": (3000, 2**17, ["row by row"]),
    "many entries": (300, 0, ["row by row"]),
    "many entries, some have none": (3000, 0, ["row by row", "forests"]),
}


@EVERY_PATH
@pytest.mark.parametrize(("rows", "middle", "steps"), WAYS.values(), ids=WAYS)
def test_short_searches_tell_whether_all_rows_can_be_matched(monkeypatch, rows, middle, steps):
    """Phases if columns abound, searches row by row if some rows have no path, then forests."""
    tune(
        monkeypatch,
        sparse_tuning,
        trial=sparse_tuning.DEFAULT.trial._replace(looks_ahead=True, bids=0, unmatched=-1),
        trial_with_spare=UNTRIED,
    )
    tune(monkeypatch, sparse_tuning, small=0, middle=middle)
    row_by_row, forests, seen = match_rows, completion.complete_matching, []
    monkeypatch.setattr(
        completion, "match_rows", lambda *args: seen.append("row by row") or row_by_row(*args)
    )
    monkeypatch.setattr(
        completion, "complete_matching", lambda *args: seen.append("forests") or forests(*args)
    )
    matrix = costs.make("sparse_uniform", rows, 3000, 4.0, 1000, seed=1)
    a = gm.assign(matrix, cardinality="maximum")
    gm.verify(matrix, a)
    assert seen == steps
