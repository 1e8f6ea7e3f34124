"""The duals of floats bound the objective as numbers: nothing here is up to rounding.

All sums are sums of fractions. `gpumatch.certificates` is not used, so that it can be compared.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.cpu.assignment.dense import tuning as dense_tuning
from gpumatch.cpu.assignment.small.search import NARROW
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse.tuning import Effort
from gpumatch.numeric import fair_duals
from gpumatch.numeric.gaps import allowance_of
from tests.cpu.assignment.tuned import tune

KINDS = {
    "exponentials": lambda rng, shape: np.exp(7 * rng.standard_normal(shape)),
    "magnitudes": lambda rng, shape: 10.0 ** rng.uniform(-9, 9, shape),
    "both signs": lambda rng, shape: rng.standard_normal(shape) * 10.0 ** rng.uniform(-5, 5, shape),
    "offset": lambda rng, shape: 1e12 + rng.random(shape),
    "ties": lambda rng, shape: rng.integers(0, 4, shape) * 0.1,
    "uniform": lambda rng, shape: rng.random(shape),
    "thirds": lambda rng, shape: rng.integers(1, 1000, shape) / 3.0,
}
WISHES = {
    "full": {},
    "maximum": {"cardinality": "maximum"},
    "any": {"cardinality": "any"},
    "limit": {"cost_limit": 0.5},
    "limits": {"cost_limit": None},
    "maximum-limit": {"cardinality": "maximum", "cost_limit": 0.6},
}
HOMES = [algorithm.name for algorithm in gm.algorithms("assignment") if "cpu" in algorithm.backends]
DOORS = ["small", "batch", "distributed", *HOMES]
SHAPES = [(6, 6), (5, 8), (8, 5)]


def costs_of(kind, shape, seed, *, maximize, wish):
    """Costs of which some are forbidden, and a limit among them."""
    rng = np.random.default_rng([seed, *shape, [*KINDS].index(kind)])
    costs = KINDS[kind](rng, shape)
    if wish == "any":
        costs -= np.median(costs)
    costs[rng.random(shape) < 0.3] = -math.inf if maximize else math.inf
    np.fill_diagonal(costs, KINDS[kind](rng, shape)[0, 0])
    arguments = dict(WISHES[wish])
    finite = costs[np.isfinite(costs)]
    if wish == "limits":
        arguments["cost_limit"] = rng.choice(finite, shape[0])
    elif "cost_limit" in arguments:
        arguments["cost_limit"] = float(np.quantile(finite, arguments["cost_limit"]))
    return costs, arguments


def solved(door, costs, arguments, *, maximize):
    """The assignment by one of the doors; None if a door does not take the wish."""
    arguments = {**arguments, "maximize": maximize}
    if door == "small":
        return gm.assign(costs, **arguments)
    has_limits = np.ndim(arguments.get("cost_limit")) > 0
    if door == "batch":
        if has_limits:
            arguments["cost_limit"] = [arguments["cost_limit"]] * 2
        return gm.assign(np.stack([costs, costs]), **arguments)[1]
    if door == "distributed":
        return None if has_limits else gm.distributed.assign(costs, backend="cpu", **arguments)
    allowed = np.isfinite(costs)
    sparse = csr_array((costs[allowed], np.nonzero(allowed)), shape=costs.shape)
    return gm.assign(sparse, algorithm=door, backend="cpu", threads=1, **arguments)


def margin(costs, a):
    """The objective less the bound, exactly, of duals that no pair undercuts."""
    nrows, ncols = costs.shape
    sign = -1 if a.maximize else 1
    limits = [Fraction(0)] * nrows
    if a.cardinality != "maximum" and a.cost_limit is not None:
        limits = [sign * Fraction(float(x)) for x in np.broadcast_to(a.cost_limit, nrows)]
    most = math.inf
    if a.cardinality == "maximum" and a.cost_limit is not None:
        most = sign * np.broadcast_to(a.cost_limit, nrows)
    is_free = a.cardinality == "any" or (a.cardinality == "full" and a.cost_limit is not None)
    inside = np.zeros(nrows, bool), np.zeros(ncols, bool)
    if a.cardinality == "maximum":
        is_whole = isinstance(a, gm.Assignment)
        for mark, side in zip(inside, a.vertex_cover() if is_whole else a.cover):
            mark[side] = True
    elif not is_free:
        inside[nrows > ncols][:] = True
    u, v = ([sign * Fraction(x) for x in dual.tolist()] for dual in (a.row_dual, a.col_dual))
    allowed = np.isfinite(costs) & (sign * costs <= np.reshape(most, (-1, 1)))
    for row, col in np.argwhere(allowed).tolist():
        if not (inside[0][row] and inside[1][col]):
            assert u[row] + v[col] <= sign * Fraction(costs[row, col]) - limits[row], (row, col)
    for dual, mark in ((u, inside[0]), (v, inside[1])):
        assert all(number <= 0 or is_inside for number, is_inside in zip(dual, mark))
    rows = np.flatnonzero(a.row_to_col >= 0)
    pairs = zip(rows.tolist(), a.row_to_col[rows].tolist())
    paid = (sign * Fraction(costs[pair]) - limits[pair[0]] for pair in pairs)
    return sum(paid, Fraction(0)) - sum(u) - sum(v)


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("door", DOORS)
def test_gap_bounds_objective_exactly(door, wish):
    seen = 0
    for number, kind in enumerate(KINDS):
        for seed, shape in enumerate(SHAPES):
            for maximize in [(number + seed) % 2 == 0]:
                costs, arguments = costs_of(kind, shape, seed, maximize=maximize, wish=wish)
                a = solved(door, costs, arguments, maximize=maximize)
                if a is None or a.gap == math.inf:  # of a heuristic, too few pairs
                    continue
                if "maximum" in wish and not a.proven:  # then a batch has no cover
                    continue
                exact = margin(costs, a)
                assert exact <= a.gap <= 2 * exact, (kind, shape, maximize)
                seen += 1
    assert seen or wish == "limits" or door == "dgs"


@pytest.mark.parametrize("kind", KINDS)
def test_wide_rows_that_are_read_once_have_duals_that_bound_the_objective(kind):
    """In half of their rows, the mate alone is nearest, and only its distance is rounded."""
    for wish, shape in zip(("full", "maximum", "any", "limit"), [(30, 30), (26, 40), (40, 26)] * 2):
        assert min(shape) > NARROW
        maximize = wish == "any"
        costs, arguments = costs_of(kind, shape, 4, maximize=maximize, wish=wish)
        a = gm.assign(costs, maximize=maximize, **arguments)
        exact = margin(costs, a)
        assert exact <= a.gap <= 2 * exact


@pytest.mark.parametrize("wish", ["full", "any", "limit", "limits"])
def test_gap_of_stopped_run_bounds_objective(wish):
    for kind in KINDS:
        costs, arguments = costs_of(kind, (6, 6), 0, maximize=False, wish=wish)
        a = gm.assign(costs, callback=lambda progress: True, **arguments)
        if a.gap < math.inf:
            assert margin(costs, a) <= a.gap


@pytest.mark.parametrize("kind", KINDS)
def test_checker_finds_the_gap(kind):
    """A second program, with other methods, finds the same number."""
    for wish in WISHES:
        costs, arguments = costs_of(kind, (8, 5), 3, maximize=False, wish=wish)
        a = gm.assign(costs, algorithm="shortest-augmenting-path", **arguments)
        assert gm.verify(costs, a).gap == a.gap


@pytest.mark.parametrize("wish", ["full", "any", "limit"])
@pytest.mark.parametrize("home", ["dense", "sparse"])
def test_checker_finds_the_gap_of_the_engines(monkeypatch, home, wish):
    """The steps after the first, too, with two threads."""
    tune(monkeypatch, dense_tuning, small=0, middle=0)
    tune(
        monkeypatch,
        sparse_tuning,
        small=0,
        **dict.fromkeys(["trial", "trial_with_spare"], Effort(False, 0, 0, 0)),
    )
    for kind, shape in zip(KINDS, [(60, 60), (60, 60), (50, 200), (60, 60), (90, 40), (50, 50)]):
        costs, arguments = costs_of(kind, shape, 5, maximize=False, wish=wish)
        given = costs if home == "dense" else csr_array(np.where(costs < math.inf, costs, 0))
        a = gm.assign(
            given, threads=2, algorithm="engine", backend="cpu", callback=never, **arguments
        )
        assert gm.verify(given, a).gap == a.gap, kind


def never(progress):
    """A callback, with which no call is small."""
    return False


@pytest.mark.parametrize("wish", ["full", "any", "limit", "maximum"])
@pytest.mark.parametrize("door", ["small", "batch", *HOMES])
def test_last_pass_of_the_cpu_makes_duals_fair(monkeypatch, door, wish):
    """No door reads the costs once more."""

    def fail(*_, **__):
        raise AssertionError("the costs are read again")

    monkeypatch.setattr(fair_duals, "lacks", fail)
    for maximize in (False, True):
        costs, arguments = costs_of("uniform", (12, 12), 1, maximize=maximize, wish=wish)
        a = solved(door, costs, arguments, maximize=maximize)
        assert a.gap < math.inf or door == "dgs"


@pytest.mark.parametrize("kind", KINDS)
def test_proven_is_within_the_allowance_of_the_checker(kind):
    costs, _ = costs_of(kind, (8, 8), 4, maximize=False, wish="full")
    a = gm.assign(costs)
    proof = gm.verify(costs, a)
    largest, *duals = (abs(part).max() for part in (a.pair_costs, a.row_dual, a.col_dual))
    assert proof.allowance == allowance_of(a.size, largest, max(duals))
    assert a.proven
    assert a.gap <= proof.allowance
