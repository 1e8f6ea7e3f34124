"""The engine for dense costs: the contract, each of its steps, stops, threads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpumatch as gm
from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import DenseCosts
from gpumatch.cpu.assignment import engine
from gpumatch.cpu.assignment.dense import auction, candidate_paths
from gpumatch.cpu.assignment.dense import engine as dense_engine
from gpumatch.cpu.assignment.dense import tuning as dense_tuning
from gpumatch.cpu.assignment.dense.auction import Auction
from gpumatch.cpu.assignment.dense.candidates import KNOWN
from gpumatch.cpu.assignment.dense.tuning import Tuning
from graphs import adversarial, costs
from tests.cpu.assignment.solved import Solved, Trace, least, rounding
from tests.cpu.assignment.tuned import tune
from tests.pairwise import parametrize_pairwise

PATHS = ["lines", "trial", "core", "auction"]
EVERY_PATH = pytest.mark.parametrize("path", PATHS, indirect=True)


@pytest.fixture(params=["lines"], autouse=True)
def path(request, monkeypatch):
    """With paths in whole lines first, as middling problems have it; without; with a core or none.

    "auction" has neither trial nor core.
    """
    tune(monkeypatch, dense_tuning, small=-1, few=1, too_many=-1)
    if request.param == "lines":
        tune(monkeypatch, dense_tuning, patience=30, first_step=1 / 8)
    else:
        tune(monkeypatch, dense_tuning, middle=-1)
    if request.param == "core":
        tune(monkeypatch, dense_tuning, many=-1, too_many=1, core=1)
    if request.param == "auction":
        tune(monkeypatch, dense_tuning, trial=-1, lines=0)
    return request.param


def solve(matrix, **given):
    return Solved(dense_engine.run, matrix, **given)


def points(n, far=False, seed=0, rest=0):
    """Distances in the plane, or how near they are."""
    rng = np.random.default_rng(seed)
    distance = np.hypot(*np.subtract(rng.random((n, 1, 2)), rng.random((1, n + rest, 2))).T).T
    return -distance if far else distance**2


SHAPES = [(1, 2), (5, 5), (60, 60), (60, 61), (30, 90), (150, 150), (100, 190)]
FAMILIES = {
    "uniform": lambda shape, rng: rng.random(shape) * 1000,
    "integers": lambda shape, rng: rng.integers(-1000, 1000, shape),
    "narrow": lambda shape, rng: rng.integers(0, 4, shape),
    "rank 2": lambda shape, rng: rng.random((shape[0], 2)) @ rng.random((2, shape[1])),
    "products": lambda shape, rng: costs.machol_wien(*shape),
}
LIMITS = [None, 0.3, 0]


@parametrize_pairwise(
    *("path", "limit"),
    path=PATHS,
    shape=SHAPES,
    family=FAMILIES,
    limit=LIMITS,
    indirect=["path"],
)
def test_optimal(shape, family, limit):
    check_found(FAMILIES[family](shape, np.random.default_rng(1)), limit)


@pytest.mark.long
@parametrize_pairwise("path", "limit", path=PATHS, shape=SHAPES, limit=LIMITS, indirect=["path"])
def test_float32(shape, limit):
    """It has kernels of its own, which take ten seconds to compile."""
    check_found(np.random.default_rng(1).random(shape).astype(np.float32), limit)


def check_found(matrix, limit):
    is_integer = matrix.dtype.kind == "i"
    limit = limit if limit is None or not is_integer else int(limit * 1000)
    solved = solve(matrix, limit=limit, threads=2)
    solved.matrix = matrix if is_integer else matrix.astype(float)
    solved.check_optimal(rounding(solved.matrix) * 8)
    best = least(matrix.astype(float), limit)
    assert math.isclose(solved.total, best, rel_tol=0 if is_integer else 1e-12, abs_tol=1e-12)


@parametrize_pairwise(
    *("path", "wish"),
    path=PATHS,
    wish=[{}, {"cost_limit": 3}, {"cardinality": "any"}],
    shape=[(300, 300), (280, 300), (300, 280)],
    maximize=[False, True],
    indirect=["path"],
)
def test_through_the_front_door(wish, shape, maximize):
    matrix = np.random.default_rng(2).integers(-20, 50, shape)
    a = gm.assign(matrix, maximize=maximize, algorithm="engine", backend="cpu", **wish)
    gm.verify(matrix, a)
    assert (a.gap, a.proven) == (0, True)


@EVERY_PATH
def test_forbidden_pairs():
    rng = np.random.default_rng(3)
    for share in (0.1, 0.3, 0.9):
        matrix = np.where(rng.random((150, 150)) < share, rng.random((150, 150)), np.inf)
        np.fill_diagonal(matrix, 2.0)
        solved = solve(matrix)
        solved.check_optimal(1e-12)
        assert math.isclose(solved.total, least(matrix))


@EVERY_PATH
def test_infeasible_costs_end():
    matrix = np.full((90, 90), np.inf)
    matrix[:, :30] = np.random.default_rng(4).random((90, 30))  # 90 rows want 30 columns
    matrix[0] = 1.0
    solved = solve(matrix)
    solved.check_matching()
    assert solved.ended
    assert solved.rows.size < 90


@EVERY_PATH
def test_a_row_that_may_take_none():
    matrix = np.array([[1.0, 2.0, np.inf], [np.inf] * 3])
    assert solve(matrix).rows.size < 2
    solved = solve(matrix, limit=1.5)
    solved.check_optimal()
    assert solved.row_to_col.tolist() == [0, -1]


@EVERY_PATH
@pytest.mark.parametrize("rest", [0, 30])
def test_rows_that_all_know_the_same_columns(rest):
    """There is no matching in what they know first."""
    nrows = 3 * KNOWN
    rng = np.random.default_rng(5)
    order = np.arange(nrows + rest) * 10.0
    matrix = order + rng.random((nrows, nrows + rest))
    solved = solve(matrix)
    solved.check_optimal(1e-10)
    assert math.isclose(solved.total, least(matrix))


@EVERY_PATH
def test_a_bid_at_the_bound_is_no_tie_with_a_known_column():
    """Of 40 columns that the last row knows, 39 are bid for first; the one left is taken, too."""
    matrix = np.full((41, 100), 10)
    np.fill_diagonal(matrix[:39, :39], 0)
    matrix[39] = 5
    matrix[39, [97, 98]] = 0
    matrix[40] = 1
    matrix[40, :39] = 0
    solved = solve(matrix)
    solved.check_optimal()
    assert solved.total == 1


@EVERY_PATH
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_equal_costs(dtype):
    """Nearly all pairs cost the same, or all."""
    matrix = np.full((200, 200), 7, dtype)
    assert solve(matrix).total == 1400
    matrix[:, 3] = 6
    matrix[5] = 9
    solved = solve(matrix)
    solved.check_optimal()
    assert solved.total == 198 * 7 + 6 + 9


@pytest.mark.dtypes
@EVERY_PATH
@pytest.mark.parametrize(
    ("low", "high", "n"),
    [
        (-(2**24), 2**24, 120),
        (-(2**36), 2**36, 120),
        (-(2**60 // 400), 2**60 // 400, 120),
        (2**53, 2**53 + 4, 30),
    ],
)
def test_large_integers_are_exact(low, high, n):
    """Beyond float64 they go to the paths that count in int64."""
    matrix = np.random.default_rng(6).integers(low, high, (n, n))
    a = gm.assign(matrix, algorithm="engine", backend="cpu")
    gm.verify(matrix, a)
    assert a.gap == 0
    Solved(engine.run, matrix).check_optimal()


def task_of(matrix, limit=None, price=0):
    solution = Solution.empty(matrix.shape, is_integer=matrix.dtype.kind == "i")
    solution.col_dual[-1] = price
    return AssignmentTask(DenseCosts(matrix).problem(False, False), solution, Trace(), limit)


def test_only_many_costs_that_differ_are_taken(monkeypatch):
    matrix = np.arange(20.0).reshape(4, 5)
    for most, is_taken in ((19, True), (20, False)):
        tune(monkeypatch, dense_tuning, small=most)
        assert dense_engine.takes(task_of(matrix)) == is_taken
    tune(monkeypatch, dense_tuning, small=-1)
    assert not dense_engine.takes(task_of(np.full((4, 5), 7)))


@pytest.mark.parametrize(("top", "is_taken"), [(2**47 - 1, True), (2**47, False)])
def test_integers_are_taken_if_sums_are_exact_in_floats(top, is_taken):
    """16 times a row more than there are times the largest cost, limit or price: below 2**53."""
    matrix = np.arange(15).reshape(3, 5)
    given = [task_of(matrix, limit=sign * top) for sign in (1, -1)]
    given.append(task_of(matrix, price=-top))
    for cost in (top, -top):
        matrix = matrix.copy()
        matrix[1, 3] = cost
        given.append(task_of(matrix))
    assert [dense_engine.takes(task) for task in given] == [is_taken] * 5
    assert dense_engine.takes(task_of(matrix.astype(float)))


@EVERY_PATH
@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 12), st.integers(0, 6)),
    top=st.sampled_from([1, 4, 10**6]),
    limit=st.none() | st.integers(-2, 6),
    is_given=st.booleans(),
)
def test_any_small_problem(seed, shape, top, limit, is_given):
    rng = np.random.default_rng(seed)
    nrows, ncols = shape[0], sum(shape)
    matrix = rng.integers(-top, top, (nrows, ncols), endpoint=True)
    start = {}
    if is_given:
        count = rng.integers(0, nrows, endpoint=True)
        start["mates"] = [*zip(rng.permutation(nrows)[:count], rng.permutation(ncols)[:count])]
        start["price"] = rng.integers(-top, top, ncols)
    solved = solve(matrix, limit=limit, **start)
    solved.check_optimal()
    assert solved.total == least(matrix.astype(float), limit)


# -- what a run does -------------------------------------------------------------------------------


def steps(solved):
    return [phase["step"] for phase in solved.control.phases if "step" in phase]


@EVERY_PATH
def test_each_step_runs(path, monkeypatch):
    """The trial is enough for costs drawn at random, and not for distances that are maximised."""
    tune(monkeypatch, dense_tuning, lines=0)
    for matrix, is_easy in ((costs.uniform_float(200), True), (points(200, far=True), False)):
        solved = solve(matrix)
        solved.check_optimal(1e-12)
        is_tried = is_easy and path != "auction"
        last = "pricing" if path == "core" else "trial" if is_tried else "paths"
        assert ("auction" in steps(solved)) == (last != "trial")
        assert steps(solved)[-1] == last


@pytest.mark.parametrize("path", ["auction"], indirect=True)
def test_ties_are_matched_at_once_after_an_auction(path, monkeypatch):
    """Prices are rounded then, so that many pairs are tight."""
    matrix = adversarial.clusters(300, seed=1)
    matrix = np.ceil(200 * matrix / matrix.max()).astype(np.int64)
    tune(monkeypatch, dense_tuning, faster=0)
    solved = solve(matrix)
    solved.check_optimal()
    assert steps(solved)[-2:] == ["auction", "ties"]


@pytest.mark.parametrize("path", ["auction"], indirect=True)
def test_a_price_war_goes_on_with_a_coarser_epsilon(path, monkeypatch):
    """The pairs that cannot be had nearby are found in a few large steps."""
    matrix = adversarial.clusters(150, seed=1)
    read = []
    for wars in (0, 3):
        tune(monkeypatch, dense_tuning, faster=0, wars=wars)
        solved = solve(matrix)
        solved.check_optimal(1e-12)
        phases = [phase for phase in solved.control.phases if phase["step"] == "auction"]
        read.append(sum(phase["scans"] for phase in phases))
    assert 0 < read[1] < 0.6 * read[0]


def test_paths_are_judged_a_few_times(monkeypatch):
    """The step grows with what has been read, so that its share of all is the same."""
    tune(monkeypatch, dense_tuning, patience=10**9, first_step=1 / 100)
    solved = solve(points(300))
    solved.check_optimal(1e-12)
    assert steps(solved)[-1] == "trial"
    lines, ticks = solved.control.phases[-1]["scans"], len(solved.control.ticks)
    assert lines > 600
    assert ticks < 60


def test_few_lines_are_read(monkeypatch):
    """Paths in the whole matrix read 111 and 202 times as much as it has.

    If rows looked at all lines that they read for a bid, it would be 15 and 7 times. But looks take
    three times as long.
    """
    monkeypatch.undo()
    tune(monkeypatch, dense_tuning, middle=-1)
    for matrix, most in ((points(800, far=True), 25), (costs.low_rank(800, rank=4), 14)):
        trace = gm.assign(matrix, backend="cpu", threads=1).stats["trace"]
        assert 0 < sum(phase["scans"] for phase in trace) < most * matrix.size


@pytest.mark.parametrize(
    ("family", "rest", "most"), [("line", 0, 45), ("clusters", 4, 150), ("outer", 8, 260)]
)
@pytest.mark.parametrize("path", ["trial"], indirect=True)
def test_long_paths_go_over_to_whole_lines(monkeypatch, family, rest, most):
    """By known columns, these would read 37, 188 and 346 times the matrix."""
    tune(monkeypatch, dense_tuning, in_order=0.0)
    rng = np.random.default_rng(7)
    matrix = adversarial.make(family, 400, 400 + rest, seed=1)
    matrix = matrix + 1e-3 * rng.random(matrix.shape)  # so that no order of the rows is best
    solved = solve(matrix)
    solved.check_optimal(1e-12)
    assert "auction" not in steps(solved)
    assert 0 < sum(phase["scans"] for phase in solved.control.phases) < most * matrix.size


@EVERY_PATH
def test_most_pairs_of_the_auction_are_kept(path):
    for matrix in (points(300), costs.uniform_integer(300, factor=1000.0)):
        solved = solve(matrix)
        if path == "auction":
            assert steps(solved)[-1] == "paths"
            assert solved.control.phases[-1]["found"] <= 12


@EVERY_PATH
@pytest.mark.parametrize("n", [70, 150])
def test_no_column_that_a_row_does_not_know_is_below_its_bound(path, monkeypatch, n):
    """After each step that changes prices, and where they are integers, too."""
    checked = []

    def checks(step):
        def stepping(auction, *told):
            step(auction, *told)
            cols, costs_of_known, bound = auction.paths.known
            reduced = auction.paths.values - auction.paths.price
            for row in range(n):
                reduced[row, cols[row][costs_of_known[row] < math.inf]] = math.inf
            assert (reduced.min(axis=1) >= bound - 1e-6).all()  # but for rounding
            checked.append((reduced.min(axis=1) < bound + 1).any())

        return stepping

    for name in ("round_prices", "part_slack_pairs"):
        monkeypatch.setattr(Auction, name, checks(getattr(Auction, name)))
    for seed in range(5):
        far = (points(n, far=True, seed=seed) * 1000).astype(int)
        for matrix in (far, costs.low_rank(n, rank=2, seed=seed) * 300 // 1, far // 30):
            solve(matrix.astype(int)).check_optimal(0)
    assert any(checked) or path != "auction"


def test_a_tuning_that_is_passed_replaces_the_default():
    """Whatever the fixture has made the default."""
    matrix = points(80, far=True)
    auction, paths = (Tuning(middle=-1, trial=-1, lines=most, few=1) for most in (0, math.inf))
    assert "auction" in steps(solve(matrix, tuning=auction))
    assert "auction" not in steps(solve(matrix, tuning=paths))


@EVERY_PATH
def test_a_war_of_prices_is_left_early(path, monkeypatch):
    tune(monkeypatch, dense_tuning, most=0)
    solved = solve(points(80, far=True))
    solved.check_optimal(1e-12)
    if path == "auction":
        assert "auction" not in steps(solved)


@EVERY_PATH
def test_stops_at_every_tick_leave_a_matching_and_a_bound(monkeypatch):
    for module in dense_engine, auction, candidate_paths:
        monkeypatch.setattr(module, "BUDGET", 3000)
    monkeypatch.setattr(candidate_paths.KnownPaths, "budget", 3000)
    for rest, limit in ((0, None), (9, None), (9, -0.3)):
        matrix = points(50, far=True, rest=rest)
        best, stops = solve(matrix, limit=limit), 0
        for tick in range(1, len(best.control.ticks)):
            solved = solve(matrix, limit=limit, control=Trace(stop_at=tick))
            stops += not solved.ended
            solved.check_matching()
            solved.check_duals(1e-12)
            assert solved.bound <= best.bound + 1e-9
        assert stops > 5
        assert stops >= len(best.control.ticks) - 4


@EVERY_PATH
def test_given_prices_leave_little_to_do():
    matrix = np.random.default_rng(8).integers(0, 10**5, (300, 300))
    first = gm.assign(matrix, algorithm="engine", backend="cpu")
    changed = matrix.copy()
    changed[::50] += 700
    warm = gm.assign(changed, algorithm="engine", backend="cpu", initial=first)
    gm.verify(changed, warm)
    assert warm.objective == gm.assign(changed, algorithm="engine", backend="cpu").objective
    assert sum(phase["found"] for phase in warm.stats["trace"]) <= 12


@EVERY_PATH
def test_one_thread_always_finds_the_same():
    matrix = points(200)
    one, other = (solve(matrix) for _ in range(2))
    assert np.array_equal(one.row_to_col, other.row_to_col)
    assert np.array_equal(one.col_dual, other.col_dual)


@pytest.mark.parametrize("path", ["lines", "trial"], indirect=True)
def test_threads_share_the_work(monkeypatch):
    """Columns change hands between threads while rows look at their lines."""
    tune(monkeypatch, dense_tuning, trial=-1, lines=0)
    for seed in range(3):
        matrix = points(700, far=True, seed=seed)
        a = gm.assign(matrix, algorithm="engine", backend="cpu", threads=4)
        gm.verify(matrix, a)


@pytest.mark.parametrize("middle", [-1, 2**21])
@pytest.mark.parametrize("path", ["trial"], indirect=True)
def test_large_costs_that_are_nearly_monge_begin_from_the_prices_of_their_order(
    monkeypatch, middle
):
    """In smaller ones, paths in the whole matrix come next, and begin without prices."""
    tune(monkeypatch, dense_tuning, middle=middle, lines=0)
    sort, begun = dense_engine._try_sort, []

    def try_sort(task, tuning):
        ended = sort(task, tuning)
        begun.append((ended, (task.solution.row_to_col >= 0).any(), task.solution.col_dual.any()))
        return ended

    monkeypatch.setattr(dense_engine, "_try_sort", try_sort)
    rng = np.random.default_rng(1)
    matrix = adversarial.make("line", 400, seed=1) + 1e-3 * rng.random((400, 400))
    solved = solve(matrix)
    solved.check_optimal(1e-12)
    assert "sort" in steps(solved)
    assert begun == [(None, False, middle < 0)]
