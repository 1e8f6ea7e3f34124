"""The engine's sparse core for dense costs, its kernels on the CPU with threads in any order."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import gpumatch as gm
from graphs import costs as families

pytest.importorskip("cupy")

from gpumatch.costs import as_costs
from gpumatch.cpu import csr as cpu_csr
from gpumatch.cpu.assignment import shortest_augmenting_path
from gpumatch.cuda.assignment import engine
from gpumatch.cuda.assignment.dense import core, tuning
from gpumatch.cuda.assignment.dense import prices as dense_prices
from gpumatch.cuda.assignment.dense import rows as dense_rows
from gpumatch.cuda.assignment.dense.prices import DenseAuction
from gpumatch.cuda.assignment.sparse import auction as sparse_auction
from gpumatch.cuda.assignment.sparse import engine as sparse_engine
from gpumatch.cuda.assignment.sparse import full, problem, trees
from gpumatch.cuda.assignment.sparse import tuning as sparse_tuning
from gpumatch.dispatch import backends
from gpumatch.numeric import fair_duals
from gpumatch.problems.cardinality import empty_solution
from tests.cpu.assignment.tuned import tune
from tests.cuda.emulator import COMPILER, ArraysOfDevice, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK, MOST = 64, 16
SMALL = {
    dense_rows.NEAREST: {
        **{"kBlock": BLOCK, "kEach": 2, "kMost": MOST},
        "kPlaces": 4 * BLOCK,
    },
    dense_prices.PRICES: {"kBlock": BLOCK, "kAtOnce": 2},
    problem.PRICES: {},
    trees.TREES: {"kBlock": BLOCK, "kPatience": 2, "kLongRow": 4},
}


@pytest.fixture(scope="module")
def emulators():
    return {source: Emulator(source, constants) for source, constants in SMALL.items()}


class Rows(dense_rows.ArrayRows):
    """On the device."""

    most = MOST

    def __init__(self, *given):
        super().__init__(*given)
        self.xp = ArraysOfDevice()


@pytest.fixture
def device(emulators, monkeypatch):
    """Kernels and arrays on the CPU in the place of those on a device."""
    cp = ArraysOfDevice()
    drivers = dense_prices, dense_rows, full, problem, sparse_auction, sparse_engine, trees
    lead_drivers_here(monkeypatch, emulators, *drivers, block=BLOCK, cp=cp)
    tune(
        monkeypatch, tuning, least_for_core=0, first=4, again=4, more=2, unmatched=(2, 1024),
        steps_a_launch=256, launches=4,
    )  # fmt: skip
    tune(monkeypatch, sparse_tuning, unmatched=(2, 1024), longest_chain=64)
    monkeypatch.setattr(full, "csr", cpu_csr)
    monkeypatch.setattr(engine, "ArrayRows", Rows)
    monkeypatch.setattr(engine, "_begins_with_trees", lambda *_: False)
    monkeypatch.setattr(engine, "_has_team", lambda *_: False)
    monkeypatch.setattr(core, "array_module", lambda _: cp)
    return monkeypatch


@pytest.fixture
def solve(device):
    """The engine's answer by its core alone; with `has_more`, by what it falls back on, too."""

    def solve(matrix, *, has_more=False, **wish):
        with device.context() as patch:
            if not has_more:
                patch.setattr(engine, "_grow_trees", refuse)
            patch.setattr(backends.Choice, "search", lambda _: engine.run)
            return gm.assign(matrix, algorithm="engine", backend="cpu", **wish)

    return solve


def refuse(*_):
    raise AssertionError("the core was given up")


def vary(emulators, rng):
    for emulator in emulators.values():
        emulator.vary(rng)


def check(a, matrix, **wish):
    """The answer proves itself, and is that of the CPU."""
    gm.verify(matrix, a)
    assert a.proven
    assert a.stats["algorithm"] == "engine"
    best = gm.assign(matrix, backend="cpu", **wish)
    limit = wish.get("cost_limit", 0)
    ours, theirs = (x.objective - limit * x.size for x in (a, best))
    assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


FAMILIES = {
    "uniform": families.uniform_float,
    "integers": families.uniform_integer,
    "plane": families.points,
    "rank 1": lambda *shape: families.low_rank(*shape, 1),
    "rank 4": lambda *shape: families.low_rank(*shape, 4),
    "machol-wien": families.machol_wien,
    "two-cost": families.two_cost,
    "constant": families.constant,
    "low": lambda *shape: -families.points(*shape),
}


NEED_PRICES = {"rank 1", "machol-wien", "low"}
"""Families in which all rows want the same columns."""


DTYPES = np.int32, np.int64, np.float32, np.float64
TWO_DTYPES_A_FAMILY = [
    (family, DTYPES[(k + other) % len(DTYPES)])
    for k, family in enumerate(FAMILIES)
    for other in (0, 1)
]


@pytest.mark.parametrize(("family", "dtype"), TWO_DTYPES_A_FAMILY)
def test_families(solve, emulators, family, dtype):
    rng = np.random.default_rng(4)
    vary(emulators, rng)
    matrix = FAMILIES[family](26, 26)
    matrix = (matrix if matrix.max() > 1 else 100 * matrix).astype(dtype)
    a = solve(matrix)
    check(a, matrix)
    assert any("looks" in phase for phase in a.stats["trace"]) or family not in NEED_PRICES


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - NEED_PRICES - {"rank 4"}))
def test_families_with_more_columns(solve, emulators, family):
    vary(emulators, np.random.default_rng(5))
    matrix = FAMILIES[family](22, 33)
    check(solve(matrix), matrix)


WISHES = [
    {"maximize": True},
    {"cardinality": "any"},
    {"cost_limit": 20},
    {"cardinality": "maximum", "maximize": True},
]


@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_whatever_is_asked_for(solve, emulators, wish, dtype):
    rng = np.random.default_rng(6)
    for shape in ((20, 20), (14, 25), (25, 14)):
        vary(emulators, rng)
        matrix = rng.integers(-20, 60, shape).astype(dtype)
        if dtype is np.float32:
            matrix += rng.random(shape, np.float32)
        check(solve(matrix, **wish), matrix, **wish)


def on_the_host(task, _):
    """What the engine falls back on, in the place of trees on a device."""
    fallen_back.append(task.solution.copy())
    return shortest_augmenting_path.run(task)


fallen_back: list = []


@pytest.fixture
def solve_at_last(solve, device):
    fallen_back.clear()
    device.setattr(engine, "_grow_trees", on_the_host)
    return functools.partial(solve, has_more=True)


@pytest.mark.parametrize("most", [tuning.DEFAULT.most, 0], ids=["more pairs", "no more pairs"])
def test_random_problems_with_forbidden_pairs(solve_at_last, emulators, device, most):
    """Some have no full assignment."""
    tune(device, tuning, most=most, launches=1, steps_a_launch=64)
    rng = np.random.default_rng(3)
    for _ in range(12):
        vary(emulators, rng)
        nrows, ncols = rng.integers(2, 20, 2)
        ncols = nrows if rng.random() < 0.6 else ncols
        matrix = rng.integers(0, rng.choice([3, 1000]), (nrows, ncols)).astype(float)
        matrix[rng.random(matrix.shape) < rng.choice([0.2, 0.8])] = math.inf
        try:
            gm.assign(matrix, backend="cpu")
        except gm.InfeasibleError:
            with pytest.raises(gm.InfeasibleError):
                solve_at_last(matrix)
        else:
            check(solve_at_last(matrix), matrix)
    assert fallen_back


def test_it_goes_on_from_the_duals_of_a_core_that_is_given_up(solve_at_last, device):
    tune(device, tuning, rounds=1)
    device.setattr(DenseAuction, "improve", lambda *_: None)
    matrix = families.points(30, seed=13)
    check(solve_at_last(matrix), matrix)
    (left,) = fallen_back
    assert (left.row_to_col >= 0).all()
    assert left.col_dual.any()


def test_duals_that_many_pairs_undercut_are_given_up_for_better_ones(solve, device):
    tune(device, tuning, too_many=0)
    matrix = families.points(30, seed=13)
    a = solve(matrix)
    check(a, matrix)
    told = [phase.get("added", "looks" in phase) for phase in a.stats["trace"]]
    first, second, *_, last = [one for one in told if one is not False]
    assert first > 0
    assert second is True
    assert last == 0


@pytest.mark.parametrize("wish", [{}, {"cardinality": "any", "maximize": True}], ids=str)
def test_an_assignment_to_begin_from_is_kept(solve, wish):
    """Also of equal costs, of which other pairs would do as well."""
    for matrix in (families.uniform_float(30), families.constant(30), families.low_rank(24)):
        a = gm.assign(matrix, backend="cpu", **wish)
        again = solve(matrix, initial=a, **wish)
        check(again, matrix, **wish)
        if a.col_dual.any():
            assert (again.row_to_col == a.row_to_col).all()
            assert sum(phase["found"] for phase in again.stats["trace"]) == 0


def stop(_):
    return True


def interrupt(_):
    raise KeyboardInterrupt


ENDS = {"stop": stop, "interrupt": interrupt}


@pytest.mark.parametrize(
    ("family", "wish", "end"),
    [
        ("uniform", {}, "interrupt"),
        ("rank 4", {}, "stop"),
        ("low", {}, "interrupt"),
        ("low", {"cost_limit": -0.2}, "stop"),
    ],
    ids=str,
)
def test_it_ends_at_any_tick_with_a_matching_and_duals(solve, device, family, wish, end):
    """No pair of all costs undercuts them, not only of the core."""
    tune(device, tuning, steps_a_launch=16)
    tune(device, sparse_tuning, looks_a_launch=2)
    matrix, ticks = FAMILIES[family](24, 24), []
    check(solve(matrix, callback=ticks.append, **wish), matrix, **wish)
    for last in range(1, len(ticks), max(1, len(ticks) // 4)):
        left = itertools.count(1)

        def ending(progress, left=left, last=last):
            return next(left) >= last and ENDS[end](progress)

        try:
            a = solve(matrix, callback=ending, **wish)
        except KeyboardInterrupt as exc:
            a = exc.result
        calls = next(left) - 1
        assert not a.proven or a.gap == 0 or calls < last  # calls are not as many each time
        assert calls <= last + 1
        rows = np.flatnonzero(a.row_to_col >= 0)
        assert (a.col_to_row[a.row_to_col[rows]] == rows).all()
        assert a.size == rows.size
        row_dual = a.row_dual + wish.get("cost_limit", 0)
        assert (row_dual[:, None] + a.col_dual <= matrix + 1e-12).all()
        assert row_dual.max() <= wish.get("cost_limit", math.inf)


def test_better_duals_are_raised_until_each_column_has_a_tight_pair(solve, device):
    """An auction leaves columns too dear that nobody wanted at last."""
    raised = []
    first = core.Core._tightened
    device.setattr(core.Core, "_tightened", lambda self: raised.append(first(self)) or raised[-1])
    matrix = families.low_rank(30, rank=1, seed=3)
    check(solve(matrix), matrix)
    reduced = matrix - raised[0]
    slack = reduced - reduced.min(axis=1, keepdims=True)
    assert slack.min(axis=0).max() < 1e-12


# -- prices ----------------------------------------------------------------------------------------


class Watched:
    """A control that says nothing."""

    stopped = False

    def tick(self, matched):
        return False

    def phase(self, **_):
        pass


@pytest.mark.parametrize(
    ("family", "n", "dtype"),
    [
        ("uniform", 60, np.float64),
        ("low", 50, np.float64),
        ("two-cost", 60, np.int32),
        ("rank 1", 9, np.float64),
        ("rank 1", 130, np.int32),
    ],
)
def test_rows_have_columns_that_are_their_best_within_epsilon(device, emulators, family, n, dtype):
    """The core would do with any prices, so that it does not show what they are worth."""
    vary(emulators, np.random.default_rng(8))
    matrix = FAMILIES[family](n, n)
    matrix = np.round(matrix * 1000).astype(dtype) if dtype is np.int32 else matrix
    solution = empty_solution(as_costs(matrix))
    prices = DenseAuction(as_costs(matrix))
    prices.improve(solution, Watched())
    (rows,) = (solution.row_to_col >= 0).nonzero()
    assert rows.size >= 0.9 * n - prices.unmatched
    reduced = matrix - solution.col_dual
    excess = reduced[rows, solution.row_to_col[rows]] - reduced[rows].min(axis=1)
    rounding = 1 if dtype is np.int32 else 1e-12  # integer duals are rounded
    assert excess.max() <= 1 / prices.units.of_one + rounding
    assert 0 < prices.looks < n * n


def test_rows_look_again_only_when_what_they_know_does_not_do(device):
    """With room for all their columns they look once."""
    matrix = families.low_rank(30, 30, 1)
    prices = DenseAuction(as_costs(matrix), replace(tuning.DEFAULT, steps_a_launch=2**20))
    prices.improve(empty_solution(as_costs(matrix)), Watched())
    assert prices.looks == 30


def test_equal_costs_have_no_prices(device):
    solution = empty_solution(as_costs(families.constant(6)))
    DenseAuction(as_costs(families.constant(6))).improve(solution, Watched())
    assert not solution.col_dual.any()


@pytest.mark.parametrize("wish", [{}, {"cost_limit": 0.4}])
def test_gap_of_floats_is_a_bound(monkeypatch, solve, wish):
    """The last pass rounds the rows' duals down, so that no pair undercuts them."""
    monkeypatch.setattr(fair_duals, "lacks", None)  # it would read the costs again
    rng = np.random.default_rng(3)
    for shape in ((30, 30), (25, 40)):
        costs = np.exp(2 * rng.standard_normal(shape))
        a = solve(costs, **wish)
        assert gm.verify(costs, a).gap == a.gap
