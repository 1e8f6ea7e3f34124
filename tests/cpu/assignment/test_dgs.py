"""Deep Greedy Switching: valid, near the optimum, honest about how near, and quick to stop."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import as_costs
from gpumatch.cpu.assignment.dgs.exchanges import Side, difference, exchange, find_best
from gpumatch.cpu.assignment.dgs.start import start_from
from graphs import costs
from tests.cpu.matching.cases import FreeRun

STARTS = pytest.mark.parametrize("start", ["random", "greedy"])
FAMILIES = [
    ("uniform_integer", {"factor": 10}),
    ("uniform_float", {}),
    ("geom2", {}),
    ("machol_wien", {}),
    ("two_cost", {}),
    ("constant", {}),
]


def optimum(matrix, maximize=False):
    rows, cols = linear_sum_assignment(matrix, maximize=maximize)
    return matrix[rows, cols].sum()


def solve(matrix, **wish):
    return gm.assign(matrix, algorithm="dgs", **wish)


def started(matrix, start, seed=0, limit=None):
    """The mates that the start alone finds."""
    problem = as_costs(matrix).problem(False, False)
    solution = Solution.empty(matrix.shape, is_integer=False)
    task = AssignmentTask(problem, solution, FreeRun(), limit, seed=seed)
    assert start_from(start, task)
    return task.mates


def start_of(matrix, start, seed=0):
    """What the start alone pays."""
    rows, cols = started(matrix, start, seed)
    assert (cols[rows] == np.arange(rows.size)).all()
    return matrix[np.arange(rows.size), rows].sum()


def check_mates(a):
    assert (a.row_to_col[a.row_ind] == a.col_ind).all()
    assert (a.col_to_row[a.col_ind] == a.row_ind).all()
    assert np.count_nonzero(a.col_to_row >= 0) == a.size


def check_no_exchange_is_left(matrix, a):
    """No row gains by taking any column, that column's row taking its own instead."""
    paid = matrix[np.arange(matrix.shape[0]), a.row_to_col]
    for row, col in itertools.product(*map(range, matrix.shape)):
        other = a.col_to_row[col]
        before = paid[row] + (paid[other] if other >= 0 else 0)
        after = matrix[row, col] + (matrix[other, a.row_to_col[row]] if other >= 0 else 0)
        assert after >= before


# -- how good it is --------------------------------------------------------------------------------


@STARTS
def test_it_is_as_near_as_the_paper_says(start):
    matrix = costs.geom(1000, seed=3)
    best = optimum(matrix, maximize=True)
    a = solve(matrix, maximize=True, start=start)
    check_mates(a)
    assert a.size == 1000
    assert a.objective >= (1 - 0.006) * best
    assert best - a.objective <= a.gap <= 0.006 * best
    assert not a.proven


@STARTS
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (17, 17), (60, 60), (60, 80), (80, 60)])
@pytest.mark.parametrize(("family", "parameters"), FAMILIES)
def test_it_is_valid_and_no_exchange_is_left(family, parameters, shape, start):
    matrix = costs.make(family, *shape, seed=2, **parameters)
    a = solve(matrix, start=start)
    check_mates(a)
    assert a.size == min(shape)
    least = optimum(matrix)
    assert least - 1e-9 <= a.objective <= least + a.gap + 1e-9
    assert (matrix - a.row_dual[:, None] - a.col_dual >= -1e-9).all()
    if shape[0] <= shape[1]:
        check_no_exchange_is_left(matrix, a)
        assert a.objective <= start_of(matrix, start) + 1e-9


def test_the_greedy_start_is_greedy():
    assert start_of(np.array([[1, 5], [2, 9]]), "greedy", seed=0) in (10, 7)
    matrix = costs.make("uniform_float", 100)
    assert start_of(matrix, "greedy") < 0.2 * start_of(matrix, "random")


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_random_start_takes_any_column(form):
    costs_ = form(np.ones((1, 50)))
    starts = [
        gm.assign(costs_, algorithm="dgs", backend="cpu", start="random", seed=seed)
        for seed in range(20)
    ]
    assert len({int(a.col_ind[0]) for a in starts}) > 10


def test_another_seed_makes_another_start():
    matrix = costs.make("uniform_float", 100)
    assert start_of(matrix, "random", 0) != start_of(matrix, "random", 1)
    assert start_of(matrix, "random", 1) == start_of(matrix, "random", 1)


def test_the_greedy_start_takes_no_pair_beyond_the_limit():
    matrix = np.array([[1, 9, 9], [9, 2, 9], [9, 9, 9]])
    rows, cols = started(matrix, "greedy", limit=5)
    assert rows.tolist() == cols.tolist() == [0, 1, -1]


def test_a_gap_of_zero_is_found_where_the_answer_is_plain():
    matrix = 10 - 9 * np.eye(30, dtype=int)
    a = solve(matrix)
    assert (a.objective, a.gap, a.proven) == (30, 0, True)
    gm.verify(matrix, a)


small = hnp.arrays(
    np.int64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(-9, 9)
)
wishes = st.sampled_from(
    [{}, {"maximize": True}, {"cardinality": "any"}, {"cost_limit": 2}, {"cost_limit": -1.5}]
)


@STARTS
@given(matrix=small, holes=st.integers(0, 2**36 - 1), wish=wishes)
def test_the_gap_is_never_too_small(start, matrix, holes, wish):
    """Where some pairs are forbidden and rows may go without, too, dense or sparse."""
    forbidden = np.array([holes >> k & 1 for k in range(36)], bool).reshape(6, 6)
    forbidden = forbidden[: matrix.shape[0], : matrix.shape[1]]
    sign = -1 if wish.get("maximize") else 1
    dense = np.where(forbidden, sign * np.inf, matrix)
    rows, cols = (~forbidden).nonzero()
    indptr = np.searchsorted(rows, np.arange(matrix.shape[0] + 1))
    sparse = (indptr, cols, matrix[rows, cols], matrix.shape)
    for source in (dense, sparse):
        try:
            best = gm.assign(source, **wish)
        except gm.InfeasibleError:
            with pytest.raises(gm.InfeasibleError):
                solve(source, start=start, **wish)
            continue
        a = solve(source, start=start, **wish)
        check_mates(a)
        limit = wish.get("cost_limit", 0)
        missed = (a.objective - limit * a.size) - (best.objective - limit * best.size)
        assert -1e-9 <= missed * sign <= a.gap + 1e-9


def total(matrix, row_to_col, limit):
    rows = np.flatnonzero(row_to_col >= 0)
    return matrix[rows, row_to_col[rows]].sum() + limit * (row_to_col.size - rows.size)


@STARTS
@pytest.mark.parametrize("limit", [-4, 2, 9])
@pytest.mark.parametrize("seed", range(6))
def test_no_exchange_is_left_where_rows_may_go_without(start, limit, seed):
    """Some columns are cheap for all, so that rows must go without."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-5, 6, (9, 10)) + np.repeat([-3, 8], 5)
    a = solve(matrix, cost_limit=limit, start=start, time_limit=20)
    now = total(matrix, a.row_to_col, limit)
    assert 0 < a.size < 9 or limit == 9
    for row, col in itertools.product(range(9), range(-1, 10)):
        mates = a.row_to_col.copy()
        if col >= 0 and a.col_to_row[col] >= 0:
            mates[a.col_to_row[col]] = mates[row]
        mates[row] = col
        assert total(matrix, mates, limit) >= now


def test_spare_columns_leave_no_gap():
    matrix = np.array([[1, 5, 5, 2], [5, 1, 5, 2]])
    a = solve(matrix)
    assert (a.objective, a.gap) == (2, 0)
    matrix = costs.make("uniform_float", 50, 100)
    a = solve(matrix)
    assert a.gap <= 0.3 * a.objective


def test_sparse_costs_are_switched_as_dense_ones():
    matrix = costs.make("uniform_integer", 40, 50, seed=1) + 1
    a, b = solve(matrix), solve(csr_array(matrix))
    assert (a.row_to_col == b.row_to_col).all()


def test_prices_stay_as_far_from_0_as_any_optimum_needs():
    """Whatever prices are given: those beyond would buy the checker's allowance."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        matrix = rng.integers(-9, 10, (rng.integers(2, 9), 9))
        given_prices = copy.copy(gm.assign(matrix, algorithm="dgs", threads=1))
        given_prices.col_dual = np.where(rng.random(9) < 0.5, 0, -rng.integers(0, 2**40, 9))
        a = gm.assign(matrix, algorithm="dgs", threads=1, initial=given_prices)
        assert a.col_dual.min() >= -(min(matrix.shape) + 1) * abs(matrix).max()


def test_prices_above_0_are_not_begun_from():
    """The best assignment to be maximised has such prices."""
    matrix = costs.make("uniform_integer", 20, 30, seed=1)
    given_prices = gm.assign(matrix, maximize=True)
    assert given_prices.col_dual.max() > 0
    a = solve(matrix, initial=given_prices, backend="cpu")
    assert a.col_dual.max() == 0
    assert a.gap >= a.objective - optimum(matrix)


def test_the_bound_of_the_largest_integers_does_not_overflow():
    most = (2**62 - 1) // 4
    matrix = np.array([[most, -most, most], [-most, most, -most], [most, most, -most]])
    for wish in ({}, {"maximize": True}):
        a = solve(matrix, **wish)
        best = gm.assign(matrix, **wish).objective
        assert abs(a.objective - best) <= a.gap


def test_large_integers_are_not_rounded():
    matrix = np.array([[2**55, 2**55 + 1], [2**55 + 2, 2**55 + 4]])
    assert solve(matrix).objective == 2**56 + 3
    assert solve(matrix, maximize=True).objective == 2**56 + 4


# -- one exchange ----------------------------------------------------------------------------------


def sides(matrix, row_to_col):
    """Rows and columns as the kernels take them."""
    matrix = np.array(matrix, float)
    rows = np.array(row_to_col, np.int32)
    cols = np.full(matrix.shape[1], -1, np.int32)
    cols[rows] = np.arange(rows.size)
    row_paid, col_paid = matrix[np.arange(rows.size), rows], np.zeros(cols.size)
    col_paid[rows] = row_paid
    return (
        Side(matrix, rows, row_paid, np.inf, np.inf),
        Side(np.ascontiguousarray(matrix.T), cols, col_paid, 0.0, np.inf),
    )


def test_agents_and_jobs_find_their_best_exchanges():
    rows, cols = sides([[9, 4, 1], [3, 9, 9], [8, 9, 9]], [0, 1, 2])
    assert find_best(rows, cols, 0) == (11.0, 1)  # 9 + 9 becomes 4 + 3; 9 + 9 becomes 1 + 8
    assert find_best(rows, cols, 2) == (9.0, 0)
    assert find_best(cols, rows, 1) == (11.0, 0)
    assert find_best(cols, rows, 2) == (9.0, 0)


def test_an_exchange_that_needs_a_forbidden_pair_gains_nothing():
    """Neither its own new pair nor that of the mates; a sum with `far` would wrap around."""
    far = np.int64(2**63 - 1)
    matrix, mates, paid = np.array([[5, far], [3, 5]]), np.arange(2, dtype=np.int32), np.full(2, 5)
    rows = Side(matrix, mates, paid, far, far)
    cols = Side(np.ascontiguousarray(matrix.T), mates.copy(), paid.copy(), np.int64(0), far)
    assert difference(rows, cols, 0, 1, far) == 0
    assert difference(rows, cols, 1, 0, np.int64(3)) == 0
    assert difference(cols, rows, 0, 1, np.int64(3)) == 0
    matrix[0, 1] = cols.entries[1, 0] = 6
    assert difference(rows, cols, 0, 1, np.int64(6)) == 1


def test_an_exchange_out_of_date_is_not_made():
    rows, cols = sides([[9, 4, 1], [3, 9, 9], [8, 9, 9]], [0, 1, 2])
    assert exchange(rows, cols, 0, 1)
    assert rows.mate.tolist() == [1, 0, 2]
    assert cols.mate.tolist() == [1, 0, 2]
    assert rows.paid.tolist() == [4, 3, 9]
    assert cols.paid.tolist() == [3, 4, 9]
    assert not exchange(rows, cols, 2, 0)  # 9 + 3 would become 8 + 9
    assert rows.mate.tolist() == [1, 0, 2]


# -- control ---------------------------------------------------------------------------------------


@STARTS
@pytest.mark.parametrize("wish", [{"maximize": True}, {"cost_limit": 200}], ids=str)
def test_the_bound_of_a_stopped_run_is_that_of_its_problem(start, wish):
    """Costs are negative if they are to be maximised, and rows may go without at a limit."""
    matrix = costs.make("uniform_integer", 40, 50, factor=10, seed=1)
    best = gm.assign(matrix, **wish)
    a = solve(matrix, start=start, time_limit=0, **wish)
    assert not a.proven
    limit = wish.get("cost_limit", 0)
    missed = (a.objective - limit * a.size) - (best.objective - limit * best.size)
    assert 0 < abs(missed) <= a.gap


def set_budget(monkeypatch, entries):
    for module in ("start", "switching", "relaxation"):
        monkeypatch.setattr(f"gpumatch.cpu.assignment.dgs.{module}.BUDGET", entries)


@STARTS
def test_it_stops_at_any_tick_with_an_assignment_and_a_bound(monkeypatch, start):
    set_budget(monkeypatch, 500)
    matrix = costs.make("uniform_integer", 40, 50, factor=10, seed=1)
    seen = []
    whole = solve(matrix, start=start, callback=lambda _: seen.append(0))
    for last in range(1, len(seen), 3):
        ticks = itertools.count(1)
        a = solve(
            matrix, start=start, callback=lambda _, last=last, ticks=ticks: next(ticks) >= last
        )
        check_mates(a)
        assert not a.proven
        if a.size == 40:
            assert a.objective <= start_of(matrix, start)
            assert a.objective - a.gap <= optimum(matrix)
        resumed = solve(matrix, start=start, initial=a.row_to_col)
        assert a.size < 40 or resumed.objective <= a.objective
        check_no_exchange_is_left(matrix, resumed)
    assert whole.size == 40


def test_a_time_limit_of_nothing_still_tells_a_bound():
    a = solve(costs.make("uniform_float", 200), time_limit=0)
    assert not a.proven
    assert a.gap >= 0


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(monkeypatch, threads):
    monkeypatch.setattr("gpumatch.cpu.numba_tools.workers._EDGES_EACH", 1)
    set_budget(monkeypatch, 1000)
    matrix = costs.make("uniform_float", 60, 70)
    a, b = solve(matrix, threads=threads), solve(matrix, threads=1)
    assert (a.row_to_col == b.row_to_col).all()


@STARTS
def test_lines_longer_than_the_budget_are_evaluated_one_by_one(monkeypatch, start):
    matrix = costs.make("uniform_float", 20, 25)
    whole = solve(matrix, start=start)
    set_budget(monkeypatch, 1)
    pieces = solve(matrix, start=start)
    assert pieces.row_to_col.tolist() == whole.row_to_col.tolist()
    assert pieces.gap == whole.gap


def test_the_trace_counts_exchanges():
    a = solve(costs.make("uniform_float", 60))
    exchanges = [phase["exchanges"] for phase in a.stats["trace"]]
    assert exchanges[0] > 10
    assert exchanges[-1] == 0
    assert {"difference evaluation", "switching", "bound"} <= a.stats["seconds"].keys()
