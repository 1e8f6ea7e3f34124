"""The Hungarian variants with their kernels on the CPU, threads in any order."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest

import gpumatch as gm
from graphs import costs

pytest.importorskip("cupy")

from gpumatch.cuda.assignment.hungarian import classical, problem, search, sources, tree
from gpumatch.dispatch import backends
from tests.cuda.assignment.small_costs import small_costs
from tests.cuda.emulator import COMPILER, ArraysOfDevice, Emulator, lead_drivers_here
from tests.pairwise import parametrize_pairwise

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK = 64  # two warps
COSTS = {"Cost": {"int32": "int", "int64": "long long", "float64": "double"}}
SOURCES = {
    sources.REDUCTION: {},
    sources.CLASSICAL: {"kBlock": BLOCK, "kAlone": 3, "kGathered": 2},
    sources.TREE: {"kBlock": BLOCK},
    sources.TREE_PAPER: {"kBlock": BLOCK},
}
ALGORITHMS = {
    "classical": ("hungarian-classical", classical.run),
    "tree": ("hungarian-tree", tree.run),
    "paper's tree": ("hungarian-tree", functools.partial(tree.run, search="paper")),
}
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.fixture(scope="module")
def emulators():
    return {
        source: Emulator(dataclasses.replace(source, types=COSTS), constants)
        for source, constants in SOURCES.items()
    }


@pytest.fixture
def solve(emulators, monkeypatch):
    cp = ArraysOfDevice()
    drivers = classical, problem, search, tree
    lead_drivers_here(monkeypatch, emulators, *drivers, block=BLOCK, cp=cp)
    monkeypatch.setattr(classical, "_EDGES_A_ROW", 2)
    monkeypatch.setattr(search, "_most_blocks", lambda: 3)
    lifted = problem.Units.lifted
    monkeypatch.setattr(problem.Units, "lifted", lambda *given: cp.asarray(lifted(*given)))

    def solve(matrix, algorithm, **wish):
        name, search = ALGORITHMS[algorithm]
        with monkeypatch.context() as patch:
            patch.setattr(backends.Choice, "search", lambda _: search)
            return gm.assign(matrix, algorithm=name, backend="cpu", **wish)

    return solve


def vary(emulators, rng):
    for emulator in emulators.values():
        emulator.vary(rng)


def check(a, matrix, **wish):
    """The answer proves itself, and is that of the CPU's paths."""
    gm.verify(matrix, a)
    assert a.proven
    best = gm.assign(matrix, algorithm="shortest-augmenting-path", backend="cpu", **wish)
    limit = wish.get("cost_limit") or 0
    ours, theirs = (x.objective - limit * x.size for x in (a, best))
    assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-300)


# -- problems --------------------------------------------------------------------------------------


@parametrize_pairwise(
    algorithm=ALGORITHMS,
    shape=[(1, 1), (2, 70), (20, 20), (7, 30), (30, 7), (24, 25)],
    dtype=["int64", "float64"],
)
def test_shapes(solve, emulators, algorithm, shape, dtype):
    rng = np.random.default_rng(3)
    for most in (3, 1000):
        vary(emulators, rng)
        matrix = rng.integers(-most, most, shape).astype(dtype)
        check(solve(matrix, algorithm), matrix)
        check(solve(matrix, algorithm, maximize=True), matrix, maximize=True)


@every_algorithm
@pytest.mark.parametrize("family", ["machol-wien", "two-cost", "rank 1", "uniform"])
def test_families(solve, emulators, algorithm, family):
    """Chains of many columns, ties, and duals that rise a little at a time."""
    matrix = {
        "machol-wien": costs.machol_wien(10),
        "two-cost": costs.two_cost(30, p=0.1, seed=5),
        "rank 1": costs.low_rank(14, rank=1, seed=3),
        "uniform": costs.uniform_integer(40, factor=0.3, seed=1),
    }[family]
    rng = np.random.default_rng(4)
    for _ in range(2):
        vary(emulators, rng)
        check(solve(matrix, algorithm), matrix)


@every_algorithm
def test_many_small_problems_of_every_kind(solve, emulators, algorithm):
    rng = np.random.default_rng(10)
    for _ in range(40):
        vary(emulators, rng)
        matrix = small_costs(rng)
        limit = [None, int(rng.integers(-3, 4)), float(rng.uniform(-5, 5))][rng.integers(3)]
        cardinality = str(rng.choice(["full", "maximum", "any"]))
        try:
            a = solve(matrix, algorithm, cardinality=cardinality, cost_limit=limit)
        except gm.InfeasibleError:
            assert (cardinality, limit) == ("full", None)
        else:
            assert a.proven
            gm.verify(matrix, a)


@every_algorithm
@pytest.mark.parametrize("limit", [0, 3, 9.5, -2])
def test_rows_leave_rather_than_pay_the_limit(solve, emulators, algorithm, limit):
    rng = np.random.default_rng(6)
    for shape in ((20, 20), (25, 12), (12, 25)):
        vary(emulators, rng)
        matrix = rng.integers(-9, 20, shape).astype(float)
        matrix[rng.random(shape) < 0.3] = np.inf
        check(solve(matrix, algorithm, cost_limit=limit), matrix, cost_limit=limit)


@every_algorithm
def test_duals_that_outgrow_fine_units(solve, algorithm):
    """A row that takes the first column pushes all others on; its dual is twice their number."""
    n = 40
    matrix = np.full((n, n), np.inf)
    others = np.arange(n - 1)
    matrix[others, others], matrix[others, others + 1], matrix[n - 1, 0] = -1.0, 1.0, 1.0
    a = solve(matrix, algorithm)
    gm.verify(matrix, a)
    assert a.objective == n
    assert a.row_dual.max() > n


@every_algorithm
def test_rows_that_have_too_few_columns(solve, algorithm):
    matrix = np.random.default_rng(0).random((20, 20))
    matrix[:7, 6:] = np.inf
    with pytest.raises(gm.InfeasibleError) as caught:
        solve(matrix, algorithm)
    assert caught.value.rows.size > caught.value.cols.size
    found = solve(matrix, algorithm, cardinality="maximum")
    gm.verify(matrix, found)
    assert found.size == 19


@every_algorithm
def test_no_rows_and_no_columns(solve, algorithm):
    for shape in ((0, 4), (0, 0)):
        a = solve(np.zeros(shape), algorithm)
        gm.verify(np.zeros(shape), a)
        assert a.size == 0


# -- launches --------------------------------------------------------------------------------------


@every_algorithm
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_launches_may_end_after_any_step(solve, algorithm, steps, monkeypatch):
    monkeypatch.setattr(search, "_STEPS_A_LAUNCH", steps)
    matrix = np.random.default_rng(steps).integers(0, 40, (30, 36))
    check(solve(matrix, algorithm), matrix)


@every_algorithm
@pytest.mark.parametrize("limit", [None, 9], ids=str)
@pytest.mark.parametrize("shape", [(30, 30), (30, 37)], ids=str)
def test_a_stopped_run_goes_on_from_its_prices(solve, algorithm, shape, limit, monkeypatch):
    monkeypatch.setattr(search, "_STEPS_A_LAUNCH", 2)
    matrix, wish = np.random.default_rng(5).integers(0, 100, shape), {"cost_limit": limit}
    whole = solve(matrix, algorithm, **wish)
    paid = whole.objective - (limit or 0) * whole.size
    proven = 0
    for at in (1, 2, 5, 13):
        stop = functools.partial(is_over, itertools.count(1), at)
        part = solve(matrix, algorithm, callback=stop, **wish)
        proven += part.proven
        if shape[0] < shape[1] or limit is not None:
            assert not part.col_dual[part.col_to_row < 0].any()
        slack = matrix - (part.row_dual[:, None] + (limit or 0)) - part.col_dual
        assert slack.min() >= 0
        rows = np.flatnonzero(part.row_to_col >= 0)
        assert (part.col_to_row[part.row_to_col[rows]] == rows).all()
        assert not slack[rows, part.row_to_col[rows]].any()
        rest = solve(matrix, algorithm, initial=part, **wish)
        gm.verify(matrix, rest)
        assert rest.objective - (limit or 0) * rest.size == paid
        found = sum(step["found"] for step in rest.stats["trace"])
        assert found <= shape[0] - part.size
    assert proven < 3


def is_over(ticks, last, _):
    return next(ticks) >= last


@every_algorithm
def test_it_begins_from_an_assignment(solve, algorithm):
    """Of other costs, too: pairs that are not tight are left, and found anew."""
    rng = np.random.default_rng(8)
    for shape in ((25, 25), (20, 30)):
        matrix = rng.integers(0, 60, shape)
        a = solve(matrix, algorithm)
        again = solve(matrix, algorithm, initial=a)
        assert again.objective == a.objective
        assert sum(step["found"] for step in again.stats["trace"]) == 0
        other = matrix + rng.integers(0, 4, shape)
        check(solve(other, algorithm, initial=a), other)


@every_algorithm
def test_statistics(solve, algorithm):
    """What is found before the duals change for the first time is initial, as in the paper."""
    matrix = np.random.default_rng(7).integers(0, 60, (40, 40))
    trace = solve(matrix, algorithm).stats["trace"]
    assert sum(step["found"] for step in trace) == 40
    assert trace[-1]["matched"] == 40
    matched = 0
    for step in trace:
        matched += step["found"]
        assert step["matched"] == matched
        assert step["levels"] > 0
    updates = itertools.accumulate(step["updates"] for step in trace)
    for step, updates_so_far in zip(trace, updates):  # later searches may do without updates, too
        assert step["initial"] == (step["found"] if updates_so_far == 0 else 0)
    initial = sum(step["initial"] for step in trace)
    assert 0 < initial < 40 if algorithm != "tree" else initial == 0  # each of its searches updates


def test_rows_scanned_by_one_block_alone_are_told(solve):
    (step,) = solve(np.zeros((1, 1)), "classical").stats["trace"]
    assert (step["levels"], step["scans"]) == (1, 1)
