"""Lexicographic bottlenecks: against brute force, and by their certificate."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.certificates import CertificateError
from gpumatch.results.lexicographic import LevelDuals, LexicographicAssignment


def best_costs(costs, maximize):
    """The costs of the best assignment, the worst first; None if there is none."""
    turned = costs.T if costs.shape[0] > costs.shape[1] else costs
    nrows, ncols = turned.shape
    found = []
    for cols in itertools.permutations(range(ncols), nrows):
        paid = turned[np.arange(nrows), list(cols)]
        if np.isfinite(paid).all():
            found.append(sorted(paid.tolist(), reverse=not maximize))
    if not found:
        return None
    return max(found) if maximize else min(found)


def random_costs(rng):
    high = int(rng.choice([2, 4, 8, 1000]))
    costs = rng.integers(-high, high, rng.integers(0, 6, 2))
    if rng.random() < 0.6:
        forbidden = rng.random(costs.shape) < rng.choice([0.1, 0.4])
        costs = np.where(forbidden, np.nan, costs)
    return costs


@pytest.mark.parametrize("maximize", [False, True])
def test_equal_to_brute_force(maximize):
    rng = np.random.default_rng(int(maximize))
    solved = 0
    for _ in range(400):
        costs = random_costs(rng)
        if costs.dtype.kind == "f":
            costs = np.where(np.isnan(costs), -np.inf if maximize else np.inf, costs)
        wanted = best_costs(costs, maximize)
        if wanted is None:
            with pytest.raises(gm.InfeasibleError):
                gm.assign(costs, objective="lexicographic", maximize=maximize)
            continue
        a = gm.assign(costs, objective="lexicographic", maximize=maximize)
        assert a.sorted_costs.tolist() == wanted
        assert a.proven
        assert a.objective == (wanted[0] if wanted else None)
        gm.verify(costs, a)
        solved += a.size > 0
    assert solved > 200


@pytest.mark.parametrize("shape", [(60, 60), (40, 70), (70, 40)])
@pytest.mark.parametrize("values", [None, 12, 300])
def test_larger_problems_are_proven(shape, values):
    rng = np.random.default_rng(7)
    costs = rng.random(shape) if values is None else rng.integers(0, values, shape)
    a = gm.assign(costs, objective="lexicographic")
    certificate = gm.verify(costs, a)
    assert certificate.size == min(shape)
    assert certificate.objective == gm.assign(costs, objective="bottleneck").objective
    sparse = gm.assign(csr_array(costs + 1), objective="lexicographic")
    np.testing.assert_allclose(sparse.sorted_costs, a.sorted_costs + 1, rtol=1e-15)


def test_unequal_costs_are_those_of_the_least_sum_of_powers():
    rng = np.random.default_rng(11)
    costs = rng.permutation(49).reshape(7, 7)
    a = gm.assign(costs, objective="lexicographic")
    least = gm.assign(2.0 ** costs.astype(float))
    assert (a.row_to_col == least.row_to_col).all()


def test_wrong_arguments():
    costs = np.eye(3)
    for arguments in ({"cardinality": "any"}, {"cardinality": "maximum"}, {"cost_limit": 1.0}):
        with pytest.raises(ValueError, match=r"'full'|no bottleneck|takes no cost_limit"):
            gm.assign(costs, objective="lexicographic", **arguments)
    with pytest.raises(ValueError, match="batch"):
        gm.assign(np.zeros((2, 3, 3)), objective="lexicographic")


def test_a_stopped_run_is_not_proven():
    costs = np.random.default_rng(3).random((30, 30))
    a = gm.assign(costs, objective="lexicographic", time_limit=0)
    assert not a.proven
    with pytest.raises(CertificateError):
        gm.verify(costs, a)


# -- forgeries -------------------------------------------------------------------------------------

COSTS = np.random.default_rng(5).integers(0, 9, (8, 8)) ** 2


@pytest.fixture(scope="module")
def found():
    return gm.assign(COSTS, objective="lexicographic")


def other(found, **fields):
    forged = copy.copy(found)
    for name, value in fields.items():
        setattr(forged, name, value)
    return forged


def with_numbers(level, numbers):
    return LevelDuals(level.value, level.vertices, numbers)


FORGERIES = {
    "no levels": lambda a: other(a, levels=[]),
    "no last level": lambda a: other(a, levels=a.levels[:-1]),
    "levels in another order": lambda a: other(a, levels=a.levels[::-1]),
    "no duals": lambda a: other(a, levels=[with_numbers(x, x.numbers * 0) for x in a.levels]),
    "greater duals": lambda a: other(a, levels=[with_numbers(x, x.numbers + 1) for x in a.levels]),
    "another value": lambda a: other(
        a, levels=[a.levels[0]._replace(value=a.levels[0].value + 1), *a.levels[1:]]
    ),
    "another objective": lambda a: other(a, objective=a.objective - 1),
    "other costs": lambda a: other(a, pair_costs=a.pair_costs - 1),
    "maximised": lambda a: other(a, maximize=True),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused(found, name):
    gm.verify(COSTS, found)
    with pytest.raises(CertificateError):
        gm.verify(COSTS, FORGERIES[name](found))


def test_the_least_sum_is_refused_where_it_is_another():
    costs = np.array([[0, 3], [3, 5]])
    found, least = gm.assign(costs, objective="lexicographic"), gm.assign(costs)
    assert (found.sorted_costs.tolist(), least.objective) == ([3, 3], 5)
    claimed = other(
        found,
        row_to_col=least.row_to_col, col_to_row=least.col_to_row, pair_costs=least.pair_costs,
        objective=5,
    )  # fmt: skip
    with pytest.raises(CertificateError):
        gm.verify(costs, claimed)


def test_an_interrupt_in_the_bottleneck_brings_a_lexicographic_result():
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(np.eye(3), objective="lexicographic", callback=interrupt)
    assert type(caught.value.result) is LexicographicAssignment
    assert not caught.value.result.proven
