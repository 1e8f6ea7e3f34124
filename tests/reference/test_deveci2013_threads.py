"""The reference's expressions over whole arrays, against the same kernels as interleaved threads.

In these kernels no thread writes what another thread of the launch reads, or all write the same;
so every order of the threads must end in the state that the expressions make. Algorithm 3 leaves
out pairs that change nothing; so it must have the same outcomes as with all of them.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from gpumatch.reference import date2016 as reference_hungarian
from gpumatch.reference import interleaving
from gpumatch.reference import vasconcelos2009 as reference_auction
from gpumatch.reference.date2016 import ACTIVE, NONE, REVERSE, VISITED, State
from gpumatch.reference.exact_slacks import Slacks
from gpumatch.reference.interleaving import Grid
from graphs import costs

SEEDS = range(4)


def slack_of(state, row, col):
    return state.slacks.at(np.array([row]), np.array([col]))[0]


def reduce_rows(state, *, grid):
    duals = state.slacks.row_dual
    _reduce(duals, state.ncols, lambda row, col: slack_of(state, row, col), state, grid)


def reduce_columns(state, *, grid):
    duals = state.slacks.col_dual
    _reduce(duals, state.nrows, lambda col, row: slack_of(state, row, col), state, grid)


def _reduce(duals, others, slack, state, grid):
    def thread(vertices):
        for vertex in vertices:
            yield
            least = min(slack(vertex, other) for other in range(others))
            duals[vertex] += least if least < state.slacks.far else 0

    grid.launch(thread, len(duals))


def check_optimality(state, *, grid):
    match_count = 0

    def thread(rows):
        nonlocal match_count
        for row in rows:
            yield
            if state.row_to_col[row] != NONE:
                state.row_cover[row] = True
                match_count += 1

    grid.launch(thread, state.nrows)
    return match_count


def compress_matrix(state, *, grid):
    counts = np.zeros(state.nrows, int)

    def tight(row):
        return [col for col in range(state.ncols) if slack_of(state, row, col) == 0]

    def count(rows):
        for row in rows:
            yield
            counts[row] = len(tight(row))

    def scatter(rows):
        for row in rows:
            yield
            state.indices[state.indptr[row] : state.indptr[row + 1]] = tight(row)

    grid.launch(count, state.nrows)
    state.indptr = np.append(0, counts.cumsum())
    state.indices = np.full(state.indptr[-1], NONE)
    grid.launch(scatter, state.nrows)


def expand_tree(state, frontier, *, grid):
    def thread(cols):
        for col in cols:
            yield
            if state.col_cover[col]:
                continue
            for row in frontier:
                slack = slack_of(state, row, col)
                yield
                if state.slack[col] > slack:
                    state.slack[col] = slack
                    state.col_pred[col] = row
                new = state.col_to_row[col]
                if state.slack[col] != 0:
                    continue
                if new == NONE:
                    state.col_mark[col] = REVERSE
                    continue
                yield
                state.row_pred[new] = col
                state.row_cover[new] = False
                state.col_cover[col] = True
                state.row_mark[new] = ACTIVE

    grid.launch(thread, state.ncols)
    state.row_mark[frontier] = VISITED


def least_uncovered_slacks(state, *, grid):
    least = np.full(state.nrows, state.slacks.far, object)
    theta = state.slacks.far

    def of_rows(rows):
        for row in rows:
            yield
            if state.row_cover[row]:
                continue
            for col in range(state.ncols):
                if not state.col_cover[col]:
                    least[row] = min(slack_of(state, row, col), least[row])

    def of_all(only):
        nonlocal theta
        for _ in only:
            yield
            theta = least.min()

    grid.launch(of_rows, state.nrows)
    grid.launch(of_all, 1)
    return int(theta) if theta < state.slacks.far else None


def update_classical(state, theta, *, grid):
    def thread(vertices):
        for k in vertices:
            yield
            change_duals(state, theta // 2, k)

    grid.launch(thread, state.ncols)


def update_tree(state, theta, *, grid):
    def thread(vertices):
        for k in vertices:
            yield
            change_duals(state, theta // 2, k)
            if 0 < state.slack[k] < state.slacks.far:
                state.slack[k] -= theta
                yield
                if state.slack[k] == 0:
                    state.row_mark[state.col_pred[k]] = ACTIVE

    grid.launch(thread, state.ncols)


def change_duals(state, half, k):
    slacks = state.slacks
    if k < state.nrows:
        slacks.row_dual[k] += -half if state.row_cover[k] else half
    slacks.col_dual[k] += -half if state.col_cover[k] else half


BOTH = [reduce_rows, reduce_columns, check_optimality]
KERNELS = [
    *[("hungarian-classical", kernel) for kernel in BOTH],
    ("hungarian-classical", compress_matrix),
    ("hungarian-classical", least_uncovered_slacks),
    ("hungarian-classical", update_classical),
    ("hungarian-tree", expand_tree),
    ("hungarian-tree", update_tree),
]


def arrays(state):
    """All that a kernel may change."""
    found = vars(state) | vars(state.slacks)
    return {name: value.tolist() for name, value in found.items() if hasattr(value, "tolist")}


def solve(matrix, algorithm, seed):
    grid = Grid("ct", seed)
    state = State(Slacks(matrix, np.isfinite(matrix)))
    reference_hungarian.reduce_rows(state, grid=grid)
    if state.nrows == state.ncols:
        reference_hungarian.reduce_columns(state, grid=grid)
    list(reference_hungarian.iterations(state, algorithm, grid))
    return state


@pytest.mark.parametrize(
    ("algorithm", "as_threads"), KERNELS, ids=lambda x: getattr(x, "__name__", x)
)
def test_no_order_of_threads_changes_a_kernel(monkeypatch, algorithm, as_threads):
    name = as_threads.__name__
    whole = getattr(reference_hungarian, name)
    calls = 0

    def check(state, *arguments, grid):
        nonlocal calls
        calls += 1
        copies = [copy.deepcopy(state) for _ in SEEDS]
        results = [
            as_threads(one, *arguments, grid=Grid("ct", seed)) for one, seed in zip(copies, SEEDS)
        ]
        results.append(whole(state, *arguments, grid=grid))
        assert all(result == results[0] for result in results)
        assert all(arrays(one) == arrays(state) for one in copies)
        return results[0]

    monkeypatch.setattr(reference_hungarian, name, check)
    for matrix in (
        costs.uniform_integer(18, 18, 3, seed=1),
        costs.two_cost(18, 21, 0.1, seed=1),
        costs.geom2(17, seed=1),
        np.where(costs.uniform_float(18, seed=1) < 0.5, costs.geom2(18, seed=2), np.inf),
    ):
        state = solve(matrix, algorithm, seed=3)
        rows, cols = linear_sum_assignment(matrix)
        pairs = range(len(rows)), state.row_to_col
        assert matrix[pairs].sum() == pytest.approx(matrix[rows, cols].sum(), rel=1e-12)
    assert calls >= 4 - (as_threads is reduce_columns)


# -- Algorithm 3 -----------------------------------------------------------------------------------


def expand_along_all_pairs(state, frontier, *, grid):
    """As printed: each row goes through all of its list."""

    def thread(slots):
        for slot in slots:
            row = frontier[slot]
            for k in range(state.indptr[row], state.indptr[row + 1]):
                col = state.indices[k]
                yield
                if state.col_cover[col]:
                    continue
                yield
                state.col_pred[col] = row
                new = state.col_to_row[col]
                if new == row:
                    continue
                if new == NONE:
                    state.col_mark[col] = REVERSE
                    continue
                yield
                state.row_pred[new] = col
                state.row_cover[new] = False
                yield
                state.col_cover[col] = True
                yield
                if state.row_mark[new] != VISITED:
                    state.row_mark[new] = ACTIVE
            state.row_mark[row] = VISITED

    grid.launch(thread, len(frontier))


@pytest.mark.parametrize("threads", [2, 3])
def test_algorithm_3_has_the_outcomes_of_all_pairs(monkeypatch, threads):
    """Rows 0 to 2 race for column 0, which is row 3's, and for two that are free; 3 is covered.

    With two threads, rows 0 and 2 take turns in one.
    """
    monkeypatch.setitem(interleaving.THREAD_LIMIT, "ct", threads)
    is_tight = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0], [1, 0, 0, 0]], bool)

    def outcomes(expand, seeds):
        found = set()
        for seed in seeds:
            state = State(Slacks(np.where(is_tight, 0, 1), np.ones((4, 4), bool)))
            reference_hungarian.compress_matrix(state, grid=Grid("ct", 0))
            state.row_to_col[3], state.col_to_row[0] = 0, 3
            state.row_cover[3] = state.col_cover[3] = True
            state.row_mark[:3] = ACTIVE
            expand(state, np.arange(3), grid=Grid("ct", seed))
            found.add(str(arrays(state)))
        return found

    pairs = outcomes(expand_along_all_pairs, range(3000))
    assert outcomes(reference_hungarian.expand_classical, range(3000)) == pairs
    assert len(pairs) > 3


# -- the auction -----------------------------------------------------------------------------------


def bidding(benefit, price, row_to_col, bid_value, bid_target, epsilon, jump, *, grid):
    def thread(persons):
        for person in persons:
            yield
            bid_target[person] = NONE
            if row_to_col[person] != NONE:
                continue
            value = benefit[person] - price
            best = int(value.argmax())
            second = max(value[:best].max(initial=-np.inf), value[best + 1 :].max(initial=-np.inf))
            lead = value[best] - second if second > -np.inf else jump
            yield
            bid_target[person] = best
            bid_value[person] = price[best] + (lead + epsilon)

    grid.launch(thread, row_to_col.size)


@pytest.mark.parametrize("tile", [1, 100, 1 << 18])
@pytest.mark.parametrize("seed", range(6))
def test_no_order_of_threads_changes_bids(monkeypatch, seed, tile):
    monkeypatch.setattr(reference_auction, "TILE", tile)
    rng = np.random.default_rng(seed)
    nrows, ncols = 20, 20 + 5 * seed
    benefit = rng.integers(0, 4 if seed % 2 else 1000, (nrows, ncols)).astype(float)
    benefit[rng.random(benefit.shape) < 0.3 + 0.13 * seed] = -np.inf
    benefit[range(nrows), range(nrows)] = 1.0
    price, row_to_col = rng.random(ncols), rng.integers(-1, 2, nrows)
    bids = [(np.zeros(nrows), rng.integers(-1, ncols, nrows)) for _ in range(2)]
    for (value, target), kernel in zip(bids, (bidding, reference_auction.bidding)):
        kernel(benefit, price, row_to_col, value, target, 0.25, 99.0, grid=Grid("ct", seed))
    assert np.array_equal(bids[0], bids[1])
    assert (bids[0][1] >= 0).any()


def count_assigned(col_to_row, *, grid):
    assigned = np.empty(col_to_row.size, int)

    def mark(objects):
        for column in objects:
            yield
            assigned[column] = col_to_row[column] != NONE

    grid.launch(mark, assigned.size)
    size = assigned.size
    while size > 1:
        half = -(-size // 2)

        def add(places, size=size, half=half):
            for place in places:
                yield
                if place + half < size:
                    seen = assigned[place] + assigned[place + half]
                    yield
                    assigned[place] = seen

        grid.launch(add, half)
        size = half
    return int(assigned[0]) if size else 0


@pytest.mark.parametrize("size", [0, 1, 2, 7, 33, 64])
def test_no_order_of_threads_changes_the_count(size):
    for seed in range(6):
        col_to_row = np.random.default_rng(seed).integers(-1, 2, size)
        grids = [Grid("ct", seed) for _ in range(2)]
        count = count_assigned(col_to_row, grid=grids[0])
        assert reference_auction.count_assigned(col_to_row, grid=grids[1]) == count
        assert count == np.count_nonzero(col_to_row >= 0)
        assert grids[0].launches == grids[1].launches
