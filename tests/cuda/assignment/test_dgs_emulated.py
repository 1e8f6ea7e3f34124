"""Deep Greedy Switching with its kernels on the CPU, threads in any order."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from graphs import costs

pytest.importorskip("cupy")

from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import as_costs
from gpumatch.cpu.assignment.dgs.start import start_from
from gpumatch.cpu.matching import engine
from gpumatch.cuda.assignment.dgs import engine as dgs
from gpumatch.dispatch import backends, mixed_dgs
from tests.cpu.matching.cases import FreeRun
from tests.cuda.assignment.dgs_problems import (
    STARTS,
    SWITCHING,
    check_mates,
    check_no_exchange_is_left,
    optimum,
)
from tests.cuda.emulator import (
    COMPILER,
    ArraysOfDevice,
    Emulator,
    Stream,
    lead_drivers_here,
)

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK, TILE = 64, 8  # two warps
COSTS = {"Cost": {"int32": "int", "int64": "long long", "float64": "double"}}
FORMS = pytest.mark.parametrize("form", ["global", "shared", "block"])
ROOM = 2048 + 8 * 40  # of a block: for the costs of forty columns


@pytest.fixture(scope="module")
def emulator():
    source = dataclasses.replace(dgs.SOURCE, types=COSTS)
    emulator = Emulator(source, {"kTile": TILE})
    return emulator


@pytest.fixture
def solve(emulator, monkeypatch):
    cp = ArraysOfDevice()
    attributes = {"MultiProcessorCount": 2, "MaxSharedMemoryPerBlockOptin": ROOM}
    device = SimpleNamespace(attributes=attributes)
    cp.cuda = SimpleNamespace(get_current_stream=Stream, Device=lambda: device)
    lead_drivers_here(monkeypatch, {dgs.SOURCE: emulator}, dgs, block=BLOCK, cp=cp)
    small = {name: form._replace(block=BLOCK) for name, form in dgs.FORMS.items()}
    monkeypatch.setattr(dgs, "FORMS", small)
    monkeypatch.setattr(dgs, "_SWEEPING_BLOCK", BLOCK)
    monkeypatch.setattr(dgs, "matching_engine", engine)

    def solve(matrix, options=None, **wish):
        def search(task):
            seen = map(cp.asarray, (*task.mates, *task.duals))
            there = dataclasses.replace(task, solution=Solution(*seen))
            try:
                return mixed_dgs.run(there, **(options or {}))
            finally:
                task.solution.has_duals = there.solution.has_duals

        with monkeypatch.context() as patch:
            patch.setattr(backends.Choice, "search", lambda _: search)
            return gm.assign(matrix, algorithm="dgs", backend="cpu", **wish)

    return solve


@STARTS
@FORMS
@SWITCHING
@pytest.mark.parametrize("shape", [(1, 1), (17, 17), (20, 27), (1, 45)], ids=str)
def test_no_exchange_is_left(solve, emulator, shape, switching, form, start):
    rng = np.random.default_rng(shape)
    for dtype in (np.int64, np.float64):
        emulator.vary(rng)
        matrix = rng.integers(0, 90, shape).astype(dtype)
        a = solve(matrix, {"switching": switching, "evaluation": form, "start": start})
        check_mates(a)
        assert a.size == shape[0]
        assert (matrix - a.row_dual[:, None] - a.col_dual >= -1e-9).all()
        assert a.objective <= optimum(matrix) + a.gap + 1e-9
        check_no_exchange_is_left(matrix, a.row_to_col)


@STARTS
@FORMS
@SWITCHING
@pytest.mark.parametrize("limit", [-4, 9.5])
def test_rows_may_go_without(solve, emulator, limit, switching, form, start):
    rng = np.random.default_rng(9)
    emulator.vary(rng)
    matrix = rng.integers(-5, 6, (20, 22)) + np.repeat([-3, 8], 11)
    options = {"switching": switching, "evaluation": form, "start": start}
    a = solve(matrix, options, cost_limit=limit)
    check_mates(a)
    check_no_exchange_is_left(matrix, a.row_to_col, limit)
    best = gm.assign(matrix, cost_limit=limit, backend="cpu")
    missed = (a.objective - limit * a.size) - (best.objective - limit * best.size)
    assert 0 <= missed <= a.gap


@STARTS
@SWITCHING
def test_forbidden_pairs(solve, emulator, switching, start):
    """So few are allowed that the start alone leaves rows over."""
    rng = np.random.default_rng(6)
    hidden = rng.permutation(24)[:20]
    allowed = rng.random((20, 24)) < 0.15
    allowed[np.arange(20), hidden] = True
    whole = np.where(allowed, rng.integers(1, 90, (20, 24)), np.inf)
    rows, cols = allowed.nonzero()
    weights = whole[rows, cols].astype(int)
    for matrix in (whole, csr_array((weights, (rows, cols)), shape=whole.shape)):
        emulator.vary(rng)
        a = solve(matrix, {"switching": switching, "start": start})
        check_mates(a)
        assert a.size == 20
        assert optimum(whole) <= a.objective <= optimum(whole) + a.gap
        check_no_exchange_is_left(whole, a.row_to_col)
    whole[:7, 6:] = np.inf
    with pytest.raises(gm.InfeasibleError):
        solve(whole, {"switching": switching, "start": start})


@pytest.mark.parametrize("windows", [1, 16])
@pytest.mark.parametrize("limit", [None, 20], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (30, 30), (40, 50)], ids=str)
@pytest.mark.usefixtures("solve")
def test_the_greedy_start_is_that_of_the_cpu(emulator, shape, limit, windows, monkeypatch):
    """Products: all rows want the same columns; and small numbers: many of them are equal."""
    monkeypatch.setattr(dgs, "WINDOWS_A_LAUNCH", windows)
    rng = np.random.default_rng(1)
    matrix = np.outer(rng.integers(1, 9, shape[0]), rng.integers(1, 9, shape[1]))
    problem_of_matrix = as_costs(matrix).problem(False, False)
    for seed in range(3):
        emulator.vary(np.random.default_rng(seed))
        tasks = []
        for _ in range(2):
            solution = Solution(*map(ArraysOfDevice().asarray, unassigned(shape)))
            solution.row_to_col[0], solution.col_to_row[shape[1] // 2] = shape[1] // 2, 0
            tasks.append(AssignmentTask(problem_of_matrix, solution, FreeRun(), limit, seed=seed))
        problem = dgs.Problem(problem_of_matrix, limit)
        assert dgs._start(problem, tasks[0], "greedy")
        assert start_from("greedy", tasks[1])
        assert (problem.rows.mate == tasks[1].solution.row_to_col).all()
        assert (problem.cols.mate == tasks[1].solution.col_to_row).all()


def unassigned(shape):
    """Mates and duals of a problem that nothing is known of."""
    return (
        *(np.full(size, -1, np.int32) for size in shape),
        *(np.zeros(size, np.int64) for size in shape),
    )


def test_the_order_of_threads_changes_nothing(solve, emulator):
    matrix = costs.make("uniform_integer", 30, factor=0.1)
    for switching in ("parallel", "sequential"):
        found = []
        for seed in range(4):
            emulator.vary(np.random.default_rng(seed))
            a = solve(matrix, {"switching": switching})
            found.append((a.row_to_col.tolist(), a.gap))
        assert found == found[:1] * 4


def test_the_largest_integers(solve):
    most = (2**62 - 1) // 4
    matrix = np.array([[most, -most, most], [-most, most, -most], [most, most, -most]])
    for wish in ({}, {"maximize": True}):
        a = solve(matrix, **wish)
        best = gm.assign(matrix, backend="cpu", **wish).objective
        assert abs(a.objective - best) <= a.gap
    close = np.array([[2**55, 2**55 + 1], [2**55 + 2, 2**55 + 4]])
    assert solve(close).objective == 2**56 + 3
    assert solve(close, maximize=True).objective == 2**56 + 4


def test_the_gap_is_that_of_the_cpus_bound(solve, emulator):
    """Of the same assignment, by as many sweeps, of which the same one is the best."""
    rng = np.random.default_rng(2)
    for matrix in (
        *(costs.make("uniform_integer", 25, 30, factor=10, seed=seed) for seed in range(4)),
        *(np.outer(rng.integers(1, 40, 20), rng.integers(1, 40, 20)) for _ in range(4)),
        *(rng.integers(0, 5, (15, 15)) for _ in range(4)),
    ):
        emulator.vary(rng)
        whole = solve(matrix)
        again = gm.assign(matrix, algorithm="dgs", backend="cpu", initial=whole)
        assert (again.row_to_col == whole.row_to_col).all()
        here = solve(matrix, initial=whole)
        assert here.gap == again.gap
        assert (here.col_dual == again.col_dual).all()
        assert (here.row_dual == again.row_dual).all()


@STARTS
@SWITCHING
def test_it_stops_at_any_tick_with_an_assignment_and_a_bound(solve, switching, start, monkeypatch):
    for name in ("ROUNDS_A_LAUNCH", "WINDOWS_A_LAUNCH", "SWEEPS_A_LAUNCH"):
        monkeypatch.setattr(dgs, name, 1)
    matrix = costs.make("uniform_integer", 25, 30, factor=10, seed=1)
    options, best, seen = {"switching": switching, "start": start}, optimum(matrix), []
    whole = solve(matrix, options, callback=seen.append)
    assert len(seen) > 5
    for last in range(1, len(seen), 2):
        stop = functools.partial(is_over, itertools.count(1), last)
        a = solve(matrix, options, callback=stop)
        check_mates(a)
        assert not a.proven
        if a.size == 25:
            assert a.objective >= whole.objective
            assert a.objective - a.gap <= best
    resumed = solve(matrix, options, initial=a)
    assert resumed.objective <= a.objective
    check_no_exchange_is_left(matrix, resumed.row_to_col)


def is_over(ticks, last, _):
    return next(ticks) >= last


@SWITCHING
def test_statistics(solve, switching):
    a = solve(costs.make("uniform_integer", 40, seed=1), {"switching": switching})
    trace = a.stats["trace"]
    assert sum(phase["exchanges"] for phase in trace) > 20
    assert trace[-1]["exchanges"] == 0
    assert all(phase["matched"] == 40 for phase in trace)
    if switching == "parallel":
        assert all(phase["steps"] >= (phase["exchanges"] > 0) for phase in trace)
        assert trace[0]["steps"] < trace[0]["exchanges"]


def test_nothing_to_assign(solve):
    a = solve(np.zeros((0, 4)))
    assert a.size == 0
    assert a.gap == 0
