"""Costs that are Monge in some order are found and sorted; others are left to the other steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpumatch as gm
from gpumatch.cpu.assignment.dense import engine
from gpumatch.cpu.assignment.dense import tuning as dense_tuning
from gpumatch.numeric import fair_duals, monge
from graphs import adversarial, costs
from tests.cpu.assignment.solved import Solved, Trace, least, rounding
from tests.cpu.assignment.tuned import tune

ROUNDING = 2.0**-50


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch):
    tune(monkeypatch, dense_tuning, small=-1)


def shuffled(matrix, seed=0):
    rng = np.random.default_rng(seed)
    return matrix[rng.permutation(len(matrix))][:, rng.permutation(matrix.shape[1])]


def differences(n, seed, function, wide=1.0, shift=0.0):
    rng = np.random.default_rng(seed)
    return function(np.subtract.outer(rng.normal(size=n), wide * rng.normal(size=n) + shift))


def products(n, seed):
    rng = np.random.default_rng(seed)
    return np.multiply.outer(*rng.integers(-1000, 1000, (2, n)))


FAMILIES = {
    "line": lambda n, seed: adversarial.line(n, seed=seed),
    "wide line": lambda n, seed: adversarial.line(n, width=2, seed=seed),
    "far line": lambda n, seed: differences(n, seed, np.square, shift=3.0),
    "squares": lambda n, seed: differences(n, seed, np.square),
    "fourth powers": lambda n, seed: differences(n, seed, lambda d: d**4),
    "one-sided": lambda n, seed: differences(n, seed, lambda d: np.maximum(d, 3 * -d)),
    "outer": lambda n, seed: adversarial.outer(n, seed=seed),
    "products": products,
    "machol_wien": lambda n, seed: costs.machol_wien(n),
    "rounded": lambda n, seed: np.rint(1e6 * adversarial.line(n, seed=seed)).astype(np.int64),
}


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_monge_costs_are_sorted(family, maximize, monkeypatch):
    """One reading proves the pairs, in any order of rows and columns, and one finds the duals."""

    def fail(*_, **__):
        raise AssertionError("the costs are read again")

    monkeypatch.setattr(fair_duals, "lacks", fail)
    for n, seed in ((50, 1), (131, 2), (200, 3), (64, 4), (90, 5)):
        matrix = shuffled(FAMILIES[family](n, seed), seed)
        a = gm.assign(matrix, maximize=maximize, algorithm="engine", backend="cpu", threads=1)
        gm.verify(matrix, a)
        assert a.proven
        best = -least(-matrix) if maximize else least(matrix)
        assert math.isclose(a.objective, best, rel_tol=1e-12)
        if family != "rounded":  # which are not quite Monge
            phase, *others = a.stats["trace"]
            assert (phase["step"], phase["matched"], phase["scans"]) == ("sort", n, n * n)
            assert not others


@pytest.mark.parametrize("seed", range(3))
def test_gaps_are_as_small_as_those_of_paths(seed):
    matrix = shuffled(adversarial.line(400, width=2, seed=seed))
    ours, theirs = (
        gm.assign(matrix, algorithm=name, backend="cpu", threads=1)
        for name in ("engine", "shortest-augmenting-path")
    )
    assert ours.gap <= 2 * theirs.gap + 1e-15


def test_a_few_wrong_costs_are_repaired_by_paths():
    """The pairs and prices of the others are kept."""
    rng = np.random.default_rng(4)
    for maximize in (False, True):
        matrix = differences(300, 5, np.square)
        cheap = 40 * rng.random(5)
        matrix[rng.integers(0, 300, 5), rng.integers(0, 300, 5)] = cheap if maximize else -cheap
        matrix = shuffled(matrix)
        solved = Solved(engine.run, -matrix if maximize else matrix)
        solved.check_optimal(1e-12)
        first, *others = solved.control.phases
        assert first["step"] == "sort"
        assert first["matched"] > 280
        assert [phase["step"] for phase in others] == ["trial"]


def test_costs_that_are_monge_in_samples_only_begin_anew():
    """Samples have every 8th row and column; all others are as if drawn at random."""
    rng = np.random.default_rng(6)
    matrix = rng.random((128, 128))
    matrix[::8] = matrix[:, ::8] = 0
    matrix[::8, ::8] = differences(16, 7, np.square)
    for kind in (matrix, np.rint(matrix * 1000).astype(np.int64)):
        solved = Solved(engine.run, kind)
        solved.check_optimal(rounding(kind) * 8)
        assert math.isclose(solved.total, least(kind.astype(float)), abs_tol=1e-9)


def test_pairs_that_prove_wrong_are_dropped(monkeypatch):
    """If nothing of the order is of use, the other steps begin without pairs and prices."""
    matrix = costs.uniform_float(150, seed=8)
    found = monge.Sorted(np.arange(150, dtype=np.int32), -np.arange(150.0), 0)
    monkeypatch.setattr(monge, "sort", lambda *_: found)
    tune(monkeypatch, dense_tuning, lines=0)
    solved = Solved(engine.run, matrix)
    solved.check_optimal(1e-12)
    assert solved.control.phases[2]["step"] == "bids"


OTHERS = {
    "uniform": costs.uniform_float(150, seed=1),
    "plane": costs.geom2(150, seed=1),
    "rank 2": costs.low_rank(150, rank=2, seed=1),
    "clusters": adversarial.clusters(150, seed=1),
    "few zeros": adversarial.few_zeros(150, share=0.01, seed=1),
    "equal": np.ones((150, 150)),
    "sums": np.add.outer(np.arange(150.0), np.arange(150.0) ** 2),
    "noise": adversarial.line(150, seed=1) + 1e-3 * costs.uniform_float(150, seed=2),
    "narrow": costs.uniform_integer(150, factor=0.02, seed=1),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_costs_are_told_by_samples(name, monkeypatch):
    """No line of the whole matrix is read for them."""
    read = []
    monkeypatch.setattr(monge, "_diagonal", lambda *_: read.append(name) or never)
    never = monge.Sorted(np.zeros(0), np.zeros(0), 10**9)
    matrix = OTHERS[name]
    for values in (matrix, -matrix):
        is_integer = matrix.dtype.kind == "i"
        assert monge.sort(values, 0 if is_integer else ROUNDING * abs(matrix).max()) is None
    assert not read


@pytest.mark.parametrize(
    "given",
    [{"limit": 1e3}, {"price": -np.ones(60)}, {"mates": [(3, 5)]}, {"rest": 4}, {"far": True}],
    ids=lambda given: next(iter(given)),
)
def test_only_full_square_problems_without_a_start_are_sorted(given):
    rest, far = given.pop("rest", 0), given.pop("far", False)
    matrix = adversarial.line(60, 60 + rest, seed=9)
    if far:
        matrix[2, 7] = np.inf
    solved = Solved(engine.run, matrix, **given)
    solved.check_optimal(1e-12)
    assert "sort" not in [phase["step"] for phase in solved.control.phases]


def test_costs_of_few_values_are_near_an_order():
    """Rounding by a small share of the range: pairs of the diagonal that are slack need paths."""
    matrix = np.rint(300 * adversarial.outer(200, seed=3))
    solved = Solved(engine.run, matrix)
    steps = [phase["step"] for phase in solved.control.phases]
    assert steps == ["sort", "trial"]
    solved.check_optimal()


def test_a_stop_leaves_a_matching_and_a_bound():
    matrix = differences(100, 5, np.square)
    matrix[[3, 50, 70], [80, 20, 5]] = -40
    best = Solved(engine.run, matrix)
    for tick in range(1, len(best.control.ticks) + 1):
        solved = Solved(engine.run, matrix, control=Trace(stop_at=tick))
        solved.check_matching()
        solved.check_duals(1e-12)
        assert not solved.ended
    assert best.control.ticks


@given(seed=st.integers(0, 2**32), n=st.integers(2, 24), top=st.sampled_from([1, 3, 10**6]))
def test_any_small_monge_matrix(seed, n, top):
    """The sums of what lies below and left of an entry, plus sums of rows and columns."""
    rng = np.random.default_rng(seed)
    density = rng.integers(0, top, (n, n), endpoint=True) * (rng.random((n, n)) < 0.5)
    matrix = -density.cumsum(axis=0).cumsum(axis=1)
    matrix += np.add.outer(*rng.integers(-top, top, (2, n)))
    matrix = shuffled(matrix, seed)
    solved = Solved(engine.run, matrix)
    solved.check_optimal()
    assert solved.total == least(matrix.astype(float))
