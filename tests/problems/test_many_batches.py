"""A hundred thousand random problems in batches, each beside SciPy's optimum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import gpumatch as gm

PARTS, EACH = 50, 2000
KINDS = ("uniform", "ties", "signed", "constant", "gated", "gaps", "nan", "wrong infinity")


def drawn(rng):
    """A problem of any kind, at most 24 rows and columns, and mostly few."""
    kind = KINDS[rng.integers(len(KINDS))]
    rows, cols = rng.integers(1, 9 if rng.random() < 0.8 else 25, 2)
    costs = rng.random((rows, cols))
    if kind == "ties":
        costs = np.floor(4 * costs)
    elif kind == "signed":
        costs = np.floor(20 * costs - 10)
    elif kind == "constant":
        costs[:] = costs[0, 0]
    elif kind == "gated":
        costs[costs > rng.random()] = math.inf
    elif kind == "gaps":
        costs[rng.integers(rows)] = math.inf
    elif kind in ("nan", "wrong infinity") and rng.random() < 0.5:
        costs[rng.integers(rows), rng.integers(cols)] = math.nan if kind == "nan" else -math.inf
    return costs


def optimum(costs):
    """What SciPy's pairs cost; None if it refuses the costs."""
    try:
        return costs[linear_sum_assignment(costs)].sum()
    except ValueError:
        return None


def check(seed, count, home=np):
    """Solve so many problems in one batch, and compare; how many had no full assignment."""
    rng = np.random.default_rng(seed)
    problems = [drawn(rng) for _ in range(count)]
    batch = gm.assign(list(map(home.asarray, problems)), on_error="mark")
    errors, objective, proven = batch.errors, batch.objective.tolist(), batch.proven.tolist()
    for k, costs in enumerate(problems):
        expected = optimum(costs)
        assert proven[k] == (expected is not None) == (k not in errors)
        if expected is None:
            assert str(errors[k]).startswith(f"problem {k}: ")
            assert isinstance(errors[k], gm.InfeasibleError) == (costs > -math.inf).all()
        else:
            assert math.isclose(objective[k], expected, rel_tol=1e-12, abs_tol=1e-12)
    for k in range(0, count, 100):
        if proven[k]:
            gm.verify(home.asarray(problems[k]), batch[k])
    return len(errors)


def test_random_problems_have_the_optima_of_scipy():
    assert 20 < check(0, 300) < 200


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, PARTS + 1))
def test_many_random_problems_have_the_optima_of_scipy(seed):
    check(seed, EACH)


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(1, PARTS + 1))
def test_many_random_problems_on_a_device_have_the_optima_of_scipy(seed):
    check(seed, EACH, pytest.importorskip("cupy"))


@pytest.mark.parametrize(
    "shape",
    [(2, 30, 513), (3, 40, 900), (2, 700, 30), (2, 540, 530), (2, 300, 512), (2, 512, 512)],
    ids=str,
)
def test_vectors_about_as_long_as_the_stack_has_room_for(shape):
    rng = np.random.default_rng(3)
    for costs in (rng.random(shape), rng.integers(0, 30, shape)):
        a = gm.assign(costs)
        for k, matrix in enumerate(costs):
            gm.verify(matrix, a[k])
            rows, cols = linear_sum_assignment(matrix)
            assert a.objective[k] == pytest.approx(matrix[rows, cols].sum(), rel=1e-12)
