"""Costs that are Monge in some order are sorted on the device; others go the other ways."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gpumatch as gm
from graphs import adversarial, costs

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]
cp = pytest.importorskip("cupy")

from gpumatch.cuda.assignment.dense import sorting  # noqa: E402  it imports cupy


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch):
    monkeypatch.setattr(sorting, "LEAST", 16)


def differences(n, seed, function, wide=1.0):
    rng = np.random.default_rng(seed)
    return function(np.subtract.outer(rng.normal(size=n), wide * rng.normal(size=n)))


def products(n, seed):
    rng = np.random.default_rng(seed)
    return np.multiply.outer(*rng.integers(-1000, 1000, (2, n))).astype(np.int32)


MONGE = {
    "line": adversarial.line(90, seed=1),
    "wide line": differences(91, 2, abs, wide=2.0),
    "squares": differences(70, 3, np.square),
    "outer": adversarial.outer(90, seed=4),
    "products": products(60, 5),
    "machol_wien": costs.machol_wien(40),
    "wide integers": products(40, 6).astype(np.int64) * 10**9,
}


def steps_of(a):
    return [phase.get("step") for phase in a.stats["trace"]]


def check(matrix, **wish):
    a, best = gm.assign(cp.asarray(matrix), **wish), gm.assign(matrix, **wish)
    gm.verify(matrix, a)
    assert a.proven
    assert isinstance(a.row_to_col, cp.ndarray)
    if matrix.dtype.kind == "i":
        assert (a.objective, a.gap) == (best.objective, 0)
    else:
        assert math.isclose(a.objective, best.objective, rel_tol=1e-12)
    return a


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("name", MONGE)
def test_monge_costs_are_sorted(name, maximize):
    assert steps_of(check(MONGE[name], maximize=maximize)) == ["sort"]


def products_of(n, width):
    """Products of numbers from 1 to 1 + width, in float32, whose neighbours differ by less."""
    x, y = 1 + width * np.random.default_rng(1).random((2, n))
    return np.multiply.outer(x, y).astype(np.float32)


@pytest.mark.parametrize(("n", "width", "are_tight"), [(200, 0.3, True), (100, 0.1, False)])
def test_costs_that_lost_digits_in_float32_are_sorted(n, width, are_tight):
    steps = steps_of(check(products_of(n, width)))
    assert steps[0] == "sort"
    assert (steps == ["sort"]) == are_tight


def test_ties_that_lost_digits_in_float32_are_left_to_other_ways():
    """The order is found, but most of its pairs are not tight."""
    assert steps_of(check(MONGE["line"].astype(np.float32)))[-1] != "sort"


OTHERS = {
    "uniform": costs.uniform_float(60, seed=1),
    "plane": costs.geom2(60, seed=1),
    "zeros": adversarial.few_zeros(60, share=0.05, seed=1),
    "equal": np.ones((40, 40), np.int32),
    "sums": np.add.outer(np.arange(40.0), np.arange(40.0) ** 2),
    "wide": MONGE["line"][:, :80],
    "tall": MONGE["line"][:80],
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_costs_are_not(name):
    assert "sort" not in steps_of(check(OTHERS[name]))


def test_a_limit_or_a_forbidden_pair_leaves_them_to_other_ways():
    line = MONGE["line"][:40, :40]
    assert "sort" not in steps_of(check(line, cost_limit=0.1))
    line[3, 4] = math.inf
    assert "sort" not in steps_of(check(line))


@pytest.mark.parametrize("kind", ["a few", "many"])
def test_costs_that_are_not_as_the_others(kind):
    """Samples have every 8th row and column."""
    rng = np.random.default_rng(6)
    if kind == "a few":
        matrix = adversarial.line(128, seed=7)
        matrix[[17, 50], [3, 77]] = -1.0
    else:
        matrix = rng.random((128, 128))
        matrix[::8] = matrix[:, ::8] = 0
        matrix[::8, ::8] = differences(16, 7, np.square)
    for costs_ in (matrix, np.rint(1000 * matrix).astype(np.int32)):
        steps = steps_of(check(costs_))
        assert steps[-1] != "sort"
