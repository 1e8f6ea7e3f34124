"""The engine for sparse costs on the device: every kind of problem, its schedule, its stops."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import gpumatch as gm
from graphs import costs

cupy = pytest.importorskip("cupy")

from gpumatch.costs import SparseCosts  # noqa: E402
from gpumatch.cuda.assignment.sparse import engine, tuning  # noqa: E402  it imports cupy
from tests.cpu.assignment.tuned import tune  # noqa: E402

GPU = pytest.mark.gpu
WISHES = [
    {},
    {"cardinality": "maximum"},
    {"cardinality": "any"},
    {"cardinality": "any", "maximize": True},
    {"cardinality": "maximum", "maximize": True},
    {"cost_limit": 3},
    {"cost_limit": 2.5},
    {"cost_limit": -1, "maximize": True},
]


def solve(matrix, **wish):
    return gm.assign(matrix, algorithm="engine", backend="cuda", **wish)


def random_costs(rng, shape, degree, high, dtype):
    """Costs at random places: as many integers as `high`, or fractions of it."""
    matrix = random_array(shape, density=min(1.0, degree / shape[1]), rng=rng, format="csr")
    values = matrix.data * high
    values = values if np.dtype(dtype).kind == "f" else np.floor(values)
    return csr_array((values.astype(dtype), matrix.indices, matrix.indptr), shape=shape)


def check(matrix, **wish):
    """The answer is that of the CPU, and proves itself; True unless there is none."""
    try:
        best = gm.assign(matrix, algorithm="shortest-augmenting-path", backend="cpu", **wish)
    except gm.InfeasibleError:
        with pytest.raises(gm.InfeasibleError):
            solve(matrix, **wish)
        return False
    a = solve(matrix, **wish)
    gm.verify(matrix, a)
    assert a.proven
    limit = wish.get("cost_limit", 0)
    ours, theirs = (x.objective - limit * x.size for x in (a, best))
    if matrix.dtype.kind == "i" and isinstance(limit, int):
        assert ours == theirs
    else:
        assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return True


# -- answers ---------------------------------------------------------------------------------------


@GPU
@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_random_problems(dtype, wish):
    """Square ones, wide ones and tall ones; with ties; feasible or not."""
    rng = np.random.default_rng(7)
    answered = 0
    for _ in range(12):
        nrows, ncols = rng.integers(1, 150, 2)
        for shape in ((nrows, nrows), (nrows, ncols)):
            degree, high = rng.choice([1, 2, 6, 40]), rng.choice([1, 6, 1000])
            answered += check(random_costs(rng, shape, degree, high, dtype), **wish)
    assert answered >= 1


@GPU
@pytest.mark.parametrize(
    ("family", "size"),
    [
        ("spread", (3000,)),
        ("mesh", (11,)),
        ("power_law", (10,)),
        ("circuit", (3000,)),
        ("kkt", (3000,)),
        ("goldberg_kennedy", (2000,)),
    ],
)
def test_families_with_a_full_assignment(family, size):
    assert check(costs.make(family, *size, seed=3))


@GPU
@pytest.mark.parametrize(
    ("family", "size"), [("nearest", (2000,)), ("nearest", (1500, 2500)), ("linkage", (300,))]
)
@pytest.mark.parametrize("cardinality", ["maximum", "any"])
def test_families_without_one(family, size, cardinality):
    maximize = cardinality == "any"
    assert check(costs.make(family, *size, seed=3), cardinality=cardinality, maximize=maximize)


@GPU
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_rows_of_all_lengths(dtype):
    """One row has all columns, one column all rows: a warp takes long rows."""
    rng = np.random.default_rng(3)
    matrix = random_costs(rng, (5000, 5000), 3, 1000, dtype).tolil()
    matrix[7, :] = rng.integers(1, 1000, 5000)
    matrix[:, 9] = rng.integers(1, 1000, (5000, 1))
    matrix.setdiag(900)
    assert check(csr_array(matrix))


@GPU
def test_all_costs_equal():
    """Then only the number of pairs counts, and there are no prices to find."""
    pattern = costs.make("mesh", 10)
    for value in (0, 5, -3):
        same = csr_array((np.full(pattern.nnz, value), pattern.indices, pattern.indptr))
        assert check(same)
        assert check(same, cardinality="any", maximize=True)


@GPU
@pytest.mark.parametrize("scale", [2.0**-1060, 1e-300, 1e-30, 1e30, 1e300])
def test_floats_of_any_scale(scale):
    matrix = costs.make("spread", 500)
    assert check(csr_array((matrix.data * scale, matrix.indices, matrix.indptr)))


@GPU
def test_large_integers_are_exact():
    matrix = costs.make("mesh", 8)
    offset = 2**47
    assert check(csr_array((matrix.data + offset, matrix.indices, matrix.indptr)))


@GPU
def test_integers_too_large_for_its_sums_are_solved_in_another_way():
    matrix = costs.make("mesh", 6)
    a = csr_array((matrix.data * 2**45, matrix.indices, matrix.indptr))
    assert not engine.takes(SparseCosts(a), None)
    assert check(a)


@GPU
def test_an_infeasible_problem_tells_why():
    rng = np.random.default_rng(0)
    matrix = random_costs(rng, (400, 400), 6, 100, np.int64).tolil()
    matrix[:7, 6:] = 0
    matrix = csr_array(matrix)
    with pytest.raises(gm.InfeasibleError) as caught:
        solve(matrix)
    assert caught.value.rows.size > caught.value.cols.size


# -- starts and stops ------------------------------------------------------------------------------


@GPU
@pytest.mark.parametrize("wish", [{}, {"cardinality": "any", "maximize": True}], ids=str)
def test_it_begins_from_another_assignment(wish):
    matrix = costs.make("mesh", 12)
    a = solve(matrix, **wish)
    again = solve(matrix, initial=a, **wish)
    gm.verify(matrix, again)
    assert again.objective == a.objective
    assert not any(phase["step"] == "auction" for phase in again.stats["trace"])
    other = csr_array((matrix.data + (matrix.data % 7 == 0), matrix.indices, matrix.indptr))
    assert solve(other, initial=a, **wish).objective == solve(other, **wish).objective


def is_over(ticks, last, _):
    return next(ticks) >= last


@GPU
@pytest.mark.parametrize("wish", [{}, {"cardinality": "any"}], ids=str)
def test_it_stops_when_asked_with_a_matching(wish, monkeypatch):
    tune(monkeypatch, tuning, looks_a_launch=3)
    matrix = costs.make("mesh", 13)
    matrix.data = matrix.data - 2000
    full = solve(matrix, **wish)
    gm.verify(matrix, full)
    seen = []
    for calls in (1, 5, 12, 40):
        ticks = itertools.count(1)
        a = solve(matrix, callback=functools.partial(is_over, ticks, calls), **wish)
        assert not a.proven
        assert a.gap >= a.objective - full.objective >= 0 or a.gap == math.inf
        rows = np.flatnonzero(a.row_to_col >= 0)
        assert (a.col_to_row[a.row_to_col[rows]] == rows).all()
        seen.append(a.size)
    assert seen[0] < seen[-1]


@GPU
def test_short_launches_change_nothing(monkeypatch):
    matrix = costs.make("nearest", 3000)
    best = solve(matrix, cardinality="maximum")
    for looks in (1, 3, 100):
        tune(monkeypatch, tuning, looks_a_launch=looks)
        a = solve(matrix, cardinality="maximum")
        gm.verify(matrix, a)
        assert math.isclose(a.objective, best.objective, rel_tol=1e-12)


@GPU
def test_memory_is_asked_for_before_any_launch(monkeypatch):
    def refuse(nbytes, purpose):
        if purpose == "the engine for sparse costs":
            raise MemoryError(purpose, nbytes)

    monkeypatch.setattr(engine.memory, "require_memory", refuse)
    monkeypatch.setattr(engine, "Problem", None)
    with pytest.raises(MemoryError, match="sparse costs"):
        solve(costs.make("mesh", 6))
