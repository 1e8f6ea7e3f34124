"""The kernels for batches on the CPU, threads in any order: right answers, and no race shows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import gpumatch as gm

pytest.importorskip("cupy")

from gpumatch.batch_contracts import (
    ENDLESS,
    INFEASIBLE,
    ORDERED,
    SOLVED,
    UNFIT,
    UNSOLVED,
    DeviceBatch,
    DeviceResults,
    Together,
)
from gpumatch.contracts import Solution
from gpumatch.costs import SparseCosts
from gpumatch.cuda.assignment.batched import batch as device_batch
from tests.cuda.emulator import COMPILER, ArraysOfDevice, Emulator

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

INF = math.inf


@pytest.fixture(scope="module")
def emulator():
    return Emulator(device_batch.SOURCE, {})


@pytest.fixture
def solve(emulator, monkeypatch):
    """The results for some problems of one dtype: a list, or an array."""
    cp = ArraysOfDevice()
    names = device_batch.SOURCE.types["Cost"]
    monkeypatch.setattr(device_batch, "cp", cp)
    monkeypatch.setattr(device_batch, "require_memory", lambda *_: None)
    monkeypatch.setattr(
        device_batch, "kernels_for", lambda _, Cost: emulator.bound_to({"Cost": names[Cost.name]})
    )

    monkeypatch.setattr(device_batch, "largest_side", lambda: 1200)
    monkeypatch.setattr(device_batch, "most_blocks", lambda _: 1)
    monkeypatch.setattr(device_batch, "has_room", lambda _: False)
    monkeypatch.setattr(device_batch.driver, "funcSetAttribute", lambda *_: None)

    def solve(
        problems,
        *,
        sign=1.0,
        limit=INF,
        takes_equal=False,
        most=INF,
        wants_maximum=False,
        columns=1,
        blocks=1,
        steps=ENDLESS,
        together=None,
        asks_order=False,
    ):
        monkeypatch.setattr(
            device_batch, "shape_for", lambda *sides: shape(columns, blocks, *sides)
        )
        emulator.at_once, emulator.stay = blocks, 0 if blocks == 1 else 500
        is_array = isinstance(problems, np.ndarray)
        count, dtype = len(problems), problems[0].dtype
        sizes = np.array([part.shape for part in problems]).reshape(-1, 2)
        rows, cols = sizes.max(axis=0).tolist()
        is_integer = dtype.kind == "i"
        number = np.int64 if is_integer else np.float64
        results = DeviceResults(
            cp.full((count, rows + cols), 77, np.int32),
            cp.full((count, 2 * rows + cols), 77, number),
            cp.full(count, 77, number),
            cp.full(count, 77.0),
            cp.full(count, 77, np.int64),
            cp.full(count, UNSOLVED, np.int64),
            cp.full(count, True),
            rows,
            cols,
        )
        task = DeviceBatch(
            dtype,
            np.array([part.ctypes.data for part in problems]),
            np.array([part.strides[0] // dtype.itemsize for part in problems]),
            sizes,
            rows * cols if is_array else None,
            (sign, limit, takes_equal, most, wants_maximum),
            2.0**47 if is_integer else 2.0**1000,
            is_integer,
            results,
            steps,
            together,
            asks_order,
        )
        monkeypatch.setattr(device_batch._Run, "_matrix", lambda _, k: problems[k])
        assert device_batch.run(task) is (together is None or together.costs_of is not None)
        return results

    return solve


def shape(columns, blocks, short, long, *_):
    threads = -(-long // (32 * columns * blocks)) * 32
    kernel = "solve_alone" if threads * blocks == 32 else "solve"
    return device_batch._Shape(f"{kernel}<{{Cost}}, {columns}>", threads, 0, blocks)


def random_problem(rng, dtype, most=70):
    nrows, ncols = rng.integers(1, most, 2)
    ncols = nrows if rng.random() < 0.4 else ncols
    costs = rng.random((nrows, ncols)) * rng.choice([1, 1e3])
    if dtype.kind == "i" or rng.random() < 0.4:
        costs = rng.integers(-2, rng.choice([3, 50]), (nrows, ncols))
    costs = costs.astype(dtype)
    if dtype.kind == "f":
        costs[rng.random(costs.shape) < rng.choice([0, 0, 0.5])] = INF
    return costs


def least(costs, sign, limit, wants_maximum):
    """The least total, less the limit for each pair if there is one; None if it is infeasible."""
    costs = sign * costs.astype(float)
    nrows, ncols = costs.shape
    if limit < INF:
        gates = np.full((nrows, nrows), INF)
        np.fill_diagonal(gates, limit)
        padded = np.hstack([costs, gates]) if nrows <= ncols else None
        if padded is None:
            return least(costs.T, 1, limit, False)
        rows, cols = linear_sum_assignment(padded)
        return padded[rows, cols].sum() - limit * nrows
    try:
        rows, cols = linear_sum_assignment(costs)
    except ValueError:
        return None
    return costs[rows, cols].sum()


def check(results, k, costs, *, sign=1.0, limit=INF, wants_maximum=False):
    nrows, ncols = costs.shape
    best = least(costs, sign, limit, wants_maximum)
    mates, numbers = results.mates[k], results.numbers[k]
    row_to_col, col_to_row = mates[:nrows], mates[results.most_rows :][:ncols]
    if best is None:
        assert results.states[k] == (UNSOLVED if wants_maximum else INFEASIBLE)
        assert not results.proven[k]
        assert (mates == -1).all()
        assert results.gap[k] == INF
        return
    assert results.states[k] == SOLVED
    assert results.proven[k]
    rows = np.flatnonzero(row_to_col >= 0)
    assert (col_to_row[row_to_col[rows]] == rows).all()
    assert (col_to_row >= 0).sum() == len(rows) == results.pairs[k]
    paid = costs[rows, row_to_col[rows]].astype(float)
    tolerance = 1e-12 * max(1.0, np.abs(costs[np.isfinite(costs)]).max(initial=0)) * nrows
    base = limit if limit < INF else 0.0
    assert math.isclose(results.objective[k], paid.sum(), rel_tol=1e-12, abs_tol=tolerance)
    assert math.isclose(sign * paid.sum() - base * len(rows), best, abs_tol=tolerance)
    u, v = sign * numbers[:nrows], sign * numbers[results.most_rows :][:ncols]
    slack = sign * costs.astype(float) - base - u[:, None] - v
    assert slack.min() >= -tolerance
    assert abs(slack[rows, row_to_col[rows]]).max(initial=0) <= tolerance
    assert 0 <= results.gap[k] <= tolerance
    if limit < INF:
        assert max(u.max(), v.max()) <= tolerance
        assert abs(u[row_to_col < 0]).max(initial=0) <= tolerance
    if limit < INF or nrows < ncols:
        assert abs(v[col_to_row < 0]).max(initial=0) <= tolerance
    if nrows <= ncols:
        assert v.max() <= tolerance
    pays = numbers[results.most_rows + results.most_cols :][:nrows]
    assert pays[rows].tolist() == paid.tolist()
    assert not pays[row_to_col < 0].any()


WISHES = [{}, {"sign": -1.0}, {"limit": 0.4}, {"limit": 3.0}, {"wants_maximum": True}]


@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_lists_of_random_problems(solve, emulator, wish, dtype, monkeypatch):
    rng = np.random.default_rng(3)
    dtype = np.dtype(dtype)
    for columns, most, count in ((1, 70, 4), (2, 70, 4), (1, 160, 2)):
        emulator.odds = int(rng.choice([3, 30]))
        monkeypatch.setattr(device_batch, "_ROWS_AT_ONCE", 2 * (int(rng.choice([1, 2, 8])),))
        problems = [random_problem(rng, dtype, most) for _ in range(count)]
        if wish.get("sign") == -1:
            problems = [-part for part in problems]
        if dtype.kind == "i" and wish.get("limit") == 0.4:
            continue  # fractions are for floats
        results = solve(problems, columns=columns, **wish)
        for k, costs in enumerate(problems):
            check(results, k, costs, **wish)


@pytest.mark.parametrize("shape", [(7, 40), (65, 7), (33, 33)], ids=str)
@pytest.mark.parametrize("kind", ["random", "ties", "constant", "points", "product"])
def test_arrays_of_problems(solve, emulator, kind, shape):
    rng = np.random.default_rng(4)
    emulator.odds = 10
    problems = {
        "random": lambda: rng.random((3, *shape), np.float32),
        "ties": lambda: rng.integers(0, 4, (3, *shape)),
        "constant": lambda: np.ones((3, *shape)),
        "points": lambda: (rng.random((3, shape[0], 1)) - rng.random((3, 1, shape[1]))) ** 2,
        "product": lambda: np.broadcast_to(np.outer(*map(np.arange, shape)), (3, *shape)).copy(),
    }[kind]()
    results = solve(problems)
    for k in range(3):
        check(results, k, problems[k])


@pytest.mark.parametrize("limit", [0.0, 2.0])
@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("takes_equal", [False, True])
def test_a_row_pays_its_limit_or_leaves(solve, emulator, takes_equal, blocks, limit):
    """Whether it bids last or begins a path, as on the CPU."""
    rng = np.random.default_rng(8)
    emulator.odds = 10
    alike = [np.full(sides, limit) for sides in ((1, 1), (2, 2), (2, 5), (40, 40), (44, 40))]
    problems = alike + [rng.integers(0, 4, sides).astype(float) for sides in ((9, 9), (30, 33))]
    results = solve(problems, limit=limit, takes_equal=takes_equal, blocks=blocks)
    pairs = [min(costs.shape) if takes_equal else 0 for costs in alike]
    assert results.pairs[: len(alike)].tolist() == pairs
    for k, costs in enumerate(problems):
        check(results, k, costs, limit=limit)
        nrows, ncols = costs.shape
        own = results.mates[k][:nrows], results.mates[k][results.most_rows :][:ncols]
        both = np.ix_(own[0] < 0, own[1] < 0)
        assert not takes_equal or (costs[both] > limit).all()
    if takes_equal:  # there are then as many pairs as there can be
        assert results.pairs.tolist() == gm.assign(problems, cost_limit=limit).size.tolist()


TENTHS = {  # a row would stay unmatched nearer than the column that it may have at the limit, if
    # its distance from that were added up in another order
    1: (
        [[8, -6, 6, 8], [1, 8, -1, 1], [-5, 2, -9, -3], [0, -9, -6, -2]],
        [[-6, 1, 6, 0], [5, 1, -2, 2], [-2, 9, -5, 0]],
        [[-2, -1, -8], [1, -5, 5], [-1, -8, -6]],
    ),
    6: (
        [[6, 6, 3], [2, 9, -3], [-4, 2, -8]],
        [[-1, 4, -1, -9], [-7, -5, 6, -1], [-9, 6, 8, 4], [-2, -3, 6, 8]],
    ),
    7: (
        [[9, -6, 7], [7, 2, 1], [3, -5, -3]],
        [[-7, 6, 6], [7, 7, 5], [-1, 9, -1]],
        [[7, -2, 5], [7, 8, 6], [9, -8, -2]],
    ),
}


@pytest.mark.parametrize("team", ["warp", "block", "cluster"])
def test_rounded_sums_leave_no_pair_at_the_limit(solve, emulator, team, monkeypatch):
    """Free columns and rows that may stay unmatched are as far as each other, to the last bit."""
    threads, blocks = {"warp": (32, 1), "block": (64, 1), "cluster": (32, 2)}[team]
    kernel = "solve_alone" if team == "warp" else "solve"
    chosen = device_batch._Shape(f"{kernel}<{{Cost}}, 1>", threads, 0, blocks)
    monkeypatch.setitem(globals(), "shape", lambda *_: chosen)
    emulator.odds = 30
    for limit, numbers in TENTHS.items():
        problems = [0.1 * np.array(part) for part in numbers]
        results = solve(problems, limit=0.1 * limit, takes_equal=True, blocks=blocks)
        for k, costs in enumerate(problems):
            check(results, k, costs, limit=0.1 * limit)
            nrows, ncols = costs.shape
            own = results.mates[k][:nrows], results.mates[k][results.most_rows :][:ncols]
            assert (costs[np.ix_(own[0] < 0, own[1] < 0)] > 0.1 * limit).all()


def test_what_is_not_valid_is_marked(solve, emulator):
    emulator.odds = 10
    problems = np.random.default_rng(5).random((5, 6, 6))
    problems[1, 2, 3] = math.nan
    problems[2, :, 4] = INF
    problems[3, 0, 0] = -INF
    results = solve(problems)
    assert results.states.tolist() == [SOLVED, UNFIT, INFEASIBLE, UNFIT, SOLVED]
    assert results.proven.tolist() == [True, False, False, False, True]
    assert (results.mates[1:4] == -1).all()
    assert not results.numbers[1:4].any()
    check(results, 4, problems[4])


@pytest.mark.parametrize("blocks", [1, 2])
def test_what_seems_to_be_sorted_is_left_to_others(solve, emulator, blocks, monkeypatch):
    """A few of its rows and columns are in one order, or in opposite ones."""
    monkeypatch.setattr(device_batch.sorting, "LEAST", 40)
    emulator.odds = 30
    rng = np.random.default_rng(27)
    product = np.outer(rng.random(40), rng.random(40))
    problems = np.stack([product, rng.random((40, 40)), 1 - product, rng.random((40, 40))])
    for costs in (problems, np.floor(1e6 * problems).astype(np.int32)):
        results = solve(costs, blocks=blocks, asks_order=True)
        assert results.states.tolist() == [ORDERED, SOLVED, ORDERED, SOLVED]
        results = solve(costs, blocks=blocks)
        for k in range(4):
            check(results, k, costs[k])
    smaller = np.ascontiguousarray(problems[:, :39, :39])
    assert (solve(smaller, blocks=blocks, asks_order=True).states == SOLVED).all()


def test_forbidden_by_a_limit(solve, emulator):
    emulator.odds = 10
    problems = np.random.default_rng(6).random((2, 20, 24))
    results = solve(problems, most=0.7, wants_maximum=True)
    for k in range(2):
        check(results, k, np.where(problems[k] > 0.7, INF, problems[k]), wants_maximum=True)


@pytest.mark.parametrize(
    ("sides", "most", "kernel", "blocks", "threads", "columns"),
    [
        ((1, 1), 8, "solve_alone", 1, 32, 1),
        ((32, 33), 8, "solve_alone", 1, 32, 2),
        ((64, 64), 8, "solve_alone", 1, 32, 2),
        ((64, 65), 8, "solve", 1, 96, 1),
        ((300, 300), 8, "solve", 1, 320, 1),
        ((512, 512), 8, "solve", 1, 512, 1),
        ((9, 513), 1, "solve", 1, 544, 1),
        ((9, 513), 2, "solve", 2, 288, 1),
        ((100, 1024), 8, "solve", 8, 128, 1),
        ((9, 1025), 1, "solve", 1, 544, 2),
        ((9, 1025), 4, "solve", 4, 288, 1),
        ((4096, 4096), 4, "solve", 4, 512, 2),
    ],
)
def test_teams_have_room(sides, most, kernel, blocks, threads, columns):
    made = device_batch.shape_for(*sides, most, has_room=False)
    assert made.kernel == f"{kernel}<{{Cost}}, {columns}>"
    assert (made.blocks, made.threads) == (blocks, threads)
    assert made.blocks * made.threads * columns >= max(sides)
    assert made.threads <= 1024
    assert made.blocks * made.threads <= 32 * device_batch.SOURCE.constant("kMostWarps")


@pytest.mark.parametrize(
    ("sides", "threads"),
    [
        ((100, 300), 512),
        ((128, 256), 512),
        ((129, 258), 1024),
        ((129, 257), 288),
        ((250, 512), 1024),
        ((300, 300), 320),
    ],
)
def test_where_there_is_room_teams_read_wide_rows_with_more_threads(sides, threads):
    made = device_batch.shape_for(*sides, 1, has_room=True)
    assert (made.kernel, made.blocks, made.threads) == ("solve<{Cost}, 1>", 1, threads)


def test_the_smallest_problems_and_large_ones_have_no_more_threads():
    for sides, most in (((9, 64), 1), ((9, 513), 2), ((100, 1024), 8)):
        assert device_batch.shape_for(*sides, most, True) == device_batch.shape_for(
            *sides, most, False
        )


@pytest.mark.parametrize(("side", "blocks"), [(256, 1), (257, 8), (512, 8), (513, 8)])
def test_a_single_problem_has_a_cluster_sooner(side, blocks):
    assert device_batch.shape_for(side, side, 8, True, is_alone=True).blocks == blocks
    assert device_batch.shape_for(side, side, 8, True).blocks == (8 if side > 512 else 1)


def test_there_is_room_for_two_teams_on_each_multiprocessor(monkeypatch):
    one = SimpleNamespace(id=0, attributes={"MultiProcessorCount": 132})
    cuda = SimpleNamespace(Device=lambda *_: one)
    monkeypatch.setattr(device_batch, "cp", SimpleNamespace(cuda=cuda))
    device_batch._multiprocessors.cache_clear()
    assert device_batch.has_room(264)
    assert not device_batch.has_room(265)
    device_batch._multiprocessors.cache_clear()


@pytest.mark.parametrize("wish", [{}, {"limit": 0.3}, {"sign": -1.0}], ids=str)
def test_more_threads_than_columns(solve, wish, monkeypatch):
    """Some warps have no columns, but read rows, and bid."""
    rng = np.random.default_rng(12)
    problems = [rng.random((40, 70)), rng.integers(0, 9, (30, 70)) / 9, rng.random((3, 5))]
    monkeypatch.setattr(
        f"{__name__}.shape", lambda *_: device_batch._Shape("solve<{Cost}, 1>", 256, 0, 1)
    )
    results = solve(problems, **wish)
    for k in range(3):
        check(results, k, problems[k], **wish)


def test_more_warps_than_lanes(solve, emulator):
    """Then a lane sees the columns that two warps name."""
    emulator.odds = 100
    rng = np.random.default_rng(9)
    problems = [np.hstack([rng.random((9, 1020)) + 1, rng.random((9, 130))]), rng.random((5, 9))]
    problems[0][:, 1100:1104] = rng.integers(0, 2, (9, 4)) / 10
    results = solve(problems)
    for k in range(2):
        check(results, k, problems[k])


@pytest.mark.parametrize("n", [30, 40])
def test_a_problem_that_takes_more_steps_is_left_unsolved(solve, n, monkeypatch):
    """Products of numbers take about n steps for each of n paths."""
    costs = np.multiply.outer(np.arange(n), np.arange(n)).astype(np.float64)
    many = np.stack([costs, 1 - np.eye(n), costs])
    monkeypatch.setattr(device_batch, "_STEPS_A_ROW", (ENDLESS, ENDLESS))
    for steps in (n // 2, n):
        results = solve(many, steps=steps)
        assert results.states.tolist() == [UNSOLVED, SOLVED, UNSOLVED]
        assert not results.proven[0]
        assert (results.mates[0] == -1).all()
    enough = n * n
    assert solve(many, steps=enough).states.tolist() == [SOLVED] * 3
    monkeypatch.setattr(device_batch, "_STEPS_BEFORE_A_GUESS", ENDLESS)
    assert solve(many, steps=enough // 3).states[0] == UNSOLVED


def test_the_rest_is_guessed_from_the_first_paths(solve, monkeypatch):
    """The first path of products takes few steps, but as many for each would be too many."""
    monkeypatch.setattr(device_batch, "_STEPS_BEFORE_A_GUESS", 0)
    costs = np.multiply.outer(np.arange(70), np.arange(70)).astype(np.float64)
    assert solve(costs[None], steps=60).states.tolist() == [UNSOLVED]


HARD = ["products", "line", "low rank", "clusters"]


def hard_problem(rng, kind, n, dtype, ncols=None):
    """Costs whose shortest paths are long. Integers have five digits."""
    ncols = ncols or n
    one, other = rng.random(n), rng.random(ncols)
    if kind == "products":
        costs = np.outer(one, other)
    elif kind == "line":
        costs = abs(one[:, None] - 2 * other)
    elif kind == "low rank":
        costs = rng.random((n, 3)) @ rng.random((3, ncols))
    else:
        one[n // 2 :] += 10
        other[ncols // 3 :] += 10
        costs = abs(one[:, None] - other) ** 1.5
    return (costs * (1 if dtype.kind == "f" else 1e5)).astype(dtype)


@pytest.mark.parametrize(("dtype", "blocks"), [("i4", 1), ("f8", 2)])
def test_auctions_come_before_many_long_paths(solve, dtype, blocks, monkeypatch):
    """Paths alone take n * n / 2 steps for products."""
    monkeypatch.setattr(device_batch, "_STEPS_BEFORE_A_GUESS", ENDLESS)
    costs = hard_problem(np.random.default_rng(13), "products", 80, np.dtype(dtype))
    results = solve(costs[None], blocks=blocks, steps=1500)
    check(results, 0, costs)


@pytest.mark.parametrize(
    ("dtype", "blocks", "sign"),
    [("i4", 1, 1.0), ("i8", 2, -1.0), ("f4", 1, -1.0), ("f4", 2, 1.0), ("f8", 1, 1.0)],
)
def test_auctions(solve, emulator, dtype, blocks, sign, monkeypatch):
    """They may come after the first path that makes the steps more than the rows."""
    emulator.odds = 100
    monkeypatch.setattr(device_batch, "_STEPS_A_ROW", (-1, -1))
    rng = np.random.default_rng(14)
    problems = [sign * hard_problem(rng, kind, 34, np.dtype(dtype)) for kind in HARD]
    results = solve(problems, sign=sign, blocks=blocks)
    for k, costs in enumerate(problems):
        check(results, k, costs, sign=sign)


@pytest.mark.parametrize("dtype", ["i4", "f8"])
def test_few_costs_above_all_others_leave_prices_small(solve, emulator, dtype, monkeypatch):
    """Prices as large as these costs would leave no digits for the others."""
    emulator.odds = 100
    monkeypatch.setattr(device_batch, "_STEPS_A_ROW", (-1, -1))
    costs = hard_problem(np.random.default_rng(14), "products", 40, np.dtype(dtype))
    costs[5, 20] = costs[8, 21] = 1e9 if dtype[0] == "i" else 1e30
    results = solve(costs[None])
    assert results.proven[0]
    assert abs(results.numbers[0]).max() <= 4 * np.partition(costs, -3, axis=None)[-3]


def test_no_auctions_where_pairs_are_forbidden(solve, emulator, monkeypatch):
    """They would not end if there were no full assignment."""
    emulator.odds = 100
    monkeypatch.setattr(device_batch, "_STEPS_A_ROW", (-1, -1))
    costs = hard_problem(np.random.default_rng(15), "products", 34, np.dtype("f8"))
    some, none = np.where(costs > 0.9 * costs.max(), INF, costs), costs.copy()
    none[:20, 12:] = INF
    results = solve([some, none])
    check(results, 0, some)
    check(results, 1, none)


@pytest.mark.parametrize(
    ("dtype", "shape", "blocks", "sign"),
    [("f8", (80, 130), 1, 1.0), ("i4", (130, 80), 2, -1.0), ("f4", (70, 71), 2, 1.0)],
)
def test_columns_that_no_row_needs_are_left_out(solve, dtype, shape, blocks, sign, monkeypatch):
    """Then auctions are held for products, though not all columns will be matched."""
    monkeypatch.setattr(device_batch, "_STEPS_BEFORE_A_GUESS", ENDLESS)
    rng = np.random.default_rng(16)
    costs = sign * hard_problem(rng, "products", shape[0], np.dtype(dtype), shape[1])
    results = solve(costs[None], blocks=blocks, sign=sign, steps=1500)
    check(results, 0, costs, sign=sign)


@pytest.mark.parametrize("blocks", [1, 2])
def test_rows_that_prefer_different_columns_go_on_by_paths(solve, emulator, blocks, monkeypatch):
    emulator.odds = 100
    monkeypatch.setattr(device_batch, "_STEPS_A_ROW", (-1, -1))
    rng = np.random.default_rng(17)
    problems = [hard_problem(rng, kind, 36, np.dtype("f8"), 44) for kind in HARD]
    problems.append(np.outer(rng.normal(size=36), rng.normal(size=44)))
    problems.append(hard_problem(rng, "products", 36, np.dtype("f8"), 44))
    problems[-1][35, 43] = problems[-1].min() - 1  # the others leave out this column, or a near one
    problems.append(np.where(problems[0] > 0.9 * problems[0].max(), INF, problems[0]))
    problems.append(problems[0].copy())
    problems[-1][:20, 12:] = INF
    results = solve(problems, blocks=blocks)
    for k, costs in enumerate(problems):
        check(results, k, costs)


@pytest.mark.parametrize(("kind", "steps", "state"), [("products", 2250, 3), ("low rank", 1200, 0)])
def test_rows_scanned_again_are_then_scanned_one_by_one(solve, kind, steps, state, monkeypatch):
    """That takes more steps, which are shorter. Few rows of low rank are scanned again."""
    monkeypatch.setattr(device_batch, "_STEPS_BEFORE_A_GUESS", ENDLESS)
    monkeypatch.setattr(device_batch, "_STEPS_A_ROW", (ENDLESS, ENDLESS))
    costs = hard_problem(np.random.default_rng(18), kind, 68, np.dtype("f8"), 70)
    assert solve(costs[None], steps=steps).states[0] == state


@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_teams_of_blocks(solve, emulator, wish):
    """A block may be long ahead of another one."""
    rng = np.random.default_rng(10)
    for blocks, most in ((2, 12), (2, 70), (3, 40)):
        emulator.odds = int(rng.choice([3, 30]))
        sign = wish.get("sign", 1.0)
        problems = [sign * random_problem(rng, np.dtype("f8"), most) for _ in range(4)]
        results = solve(problems, blocks=blocks, **wish)
        for k, costs in enumerate(problems):
            check(results, k, costs, **wish)


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_what_teams_give_up_is_solved_together(solve, emulator, dtype, sign, blocks, monkeypatch):
    """Pairs and prices of the columns come from elsewhere; the kernel makes the rest of them."""
    emulator.odds = 10
    rng = np.random.default_rng(11)
    shapes = ((9, 9), (1, 1), (4, 70), (33, 33), (20, 5), (40, 44))
    problems = [(rng.integers(-9, 30, shape) * sign).astype(dtype) for shape in shapes]
    taken = []

    def solve_each(matrices, is_integer, _):
        assert is_integer == (dtype[0] == "i")
        taken.extend(matrix.shape for matrix in matrices)
        return [solution_of(matrix) for matrix in matrices]

    monkeypatch.setattr(
        device_batch.stacked, "signed", lambda matrix, sign: sign * matrix.astype(float)
    )
    monkeypatch.setattr(device_batch.stacked, "solve", solve_each)
    monkeypatch.setattr(device_batch, "_TOGETHER", 9)
    monkeypatch.setattr(device_batch, "_STEPS_OF_CORE", 2)
    monkeypatch.setattr(device_batch, "_STEPS_OF_ITS_ROWS", 0)
    monkeypatch.setattr(device_batch, "_classes", one_by_one)
    results = solve(problems, sign=sign, blocks=blocks, together=Together(SparseCosts.of_csr, None))
    assert bool(taken) == (blocks > 1)
    assert {(1, 1), (20, 5)}.isdisjoint(taken)  # one is small, and one is turned
    for k, costs in enumerate(problems):
        check(results, k, costs, sign=sign)


def one_by_one(sizes, numbers):
    return [(numbers[k : k + 1], tuple(sizes[n].tolist())) for k, n in enumerate(numbers)]


def solution_of(matrix):
    a = gm.assign(matrix.astype(np.int64))
    return Solution(a.row_to_col, a.col_to_row, a.row_dual, a.col_dual)


def test_what_is_not_solved_together_either_is_left(solve, emulator, monkeypatch):
    emulator.odds = 10
    monkeypatch.setattr(device_batch.stacked, "signed", lambda matrix, _: matrix)
    monkeypatch.setattr(device_batch.stacked, "solve", lambda *_: None)
    monkeypatch.setattr(device_batch, "_TOGETHER", 9)
    monkeypatch.setattr(device_batch, "_STEPS_OF_CORE", 2)
    monkeypatch.setattr(device_batch, "_STEPS_OF_ITS_ROWS", 0)
    costs = np.multiply.outer(np.arange(40), np.arange(40)).astype(np.float64)
    results = solve(costs[None], blocks=2, together=Together(None, None))
    assert results.states.tolist() == [UNSOLVED]
    assert not results.proven[0]
    assert (results.mates[0] == -1).all()


# -- where problems are ----------------------------------------------------------------------------


@pytest.mark.parametrize("is_even", [True, False], ids=["an array", "a list"])
def test_the_costs_of_a_problem_are_found_where_they_are(stand_in, is_even):
    """Those of an array are at even distances; rows of the others may be parts of longer ones."""
    values = stand_in.asarray(np.arange(3 * 4 * 6.0).reshape(3, 4, 6))
    problems = list(values) if is_even else [values[0, :, 2:], values[2, 1:3], values[1, :1, :1]]
    first = values.data.ptr if is_even else None
    task = DeviceBatch(
        values.dtype,
        [first] if is_even else np.array([part.data.ptr for part in problems]),
        [6] if is_even else np.array([6, 6, 6]),
        np.array([part.shape for part in problems]),
        24 if is_even else None,
        (1.0, INF, INF, False),
        2.0**1000,
        False,
        DeviceResults(*[0] * 9),
    )
    run = device_batch._Run(task)
    for k, part in enumerate(problems):
        found = run._matrix(k)
        assert found.data.ptr == part.data.ptr
        assert found.tolist() == part.tolist()


@pytest.mark.parametrize("limit", [INF, 0.7])
def test_gap_of_floats_is_a_bound(solve, limit):
    rng = np.random.default_rng(5)
    shapes = [*itertools.repeat((20, 20), 12), (5, 12), (12, 5)]
    problems = [10.0 ** rng.uniform(-9, 9, shape) for shape in shapes]
    results = solve(problems, limit=limit)
    base = Fraction(limit) if limit < INF else 0
    for k, costs in enumerate(problems):
        nrows, ncols = costs.shape
        row_dual = [*map(Fraction, results.numbers[k, :nrows].tolist())]
        col_dual = [*map(Fraction, results.numbers[k, 20 : 20 + ncols].tolist())]
        for (row, col), cost in np.ndenumerate(costs):
            assert row_dual[row] + col_dual[col] <= Fraction(cost.item()) - base
        pairs = [(row, col) for row, col in enumerate(results.mates[k, :nrows]) if col >= 0]
        paid = sum((Fraction(costs[pair].item()) - base for pair in pairs), Fraction(0))
        exact = paid - sum(row_dual) - sum(col_dual)
        assert exact <= results.gap[k] <= 2 * exact
