"""Whatever `initial` holds, an assignment is right, or an error says what is wrong with it."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.costs import as_costs
from gpumatch.cpu.assignment.dense import tuning as dense_tuning
from gpumatch.problems.initial import initial_duals
from gpumatch.results.assignment import Assignment
from tests.cpu.assignment.tuned import tune

HOMES = [
    (algorithm.name, backend)
    for algorithm in gm.algorithms("assignment")
    for backend in algorithm.backends
    if backend != "cuda"
]
BY_HOME = pytest.mark.parametrize("home", HOMES, ids=map("-on-".join, HOMES))
SHAPES = [(7, 7), (7, 9), (9, 7)]


def costs_of(shape, kind):
    costs = np.random.default_rng(sum(shape)).integers(-40, 40, shape)
    return costs if kind == "ints" else costs / 7


def given_by(costs, **changed):
    """The proven assignment of these costs, with some of its arrays exchanged."""
    a = copy.copy(gm.assign(costs, backend="cpu"))
    for name, value in changed.items():
        setattr(a, name, value)
    return a


def duals(size, value, dtype=float):
    array = np.zeros(size, dtype)
    array[0] = value
    return array


def names_of(shape):
    """The duals that prices are made from, those of the longer side, and how many they are."""
    return ("row_dual", shape[0]) if shape[0] > shape[1] else ("col_dual", shape[1])


WRONG = {
    "nan": lambda n: duals(n, np.nan),
    "inf": lambda n: duals(n, np.inf),
    "-inf": lambda n: duals(n, -np.inf),
    "long double": lambda n: duals(n, np.longdouble("1e4000"), np.longdouble),
    "complex": lambda n: np.zeros(n, complex),
    "objects": lambda n: np.array([None] * n),
    "text": lambda n: np.array(["a"] * n),
    "bools": lambda n: np.zeros(n, bool),
    "short": lambda n: np.zeros(n - 1),
    "of a batch": lambda n: np.zeros((1, n)),
    "column": lambda n: np.zeros((n, 1)),
    "one number": lambda n: np.float64(0),
    "ragged": lambda n: [[0], [1, 2]],
}


@pytest.mark.parametrize("kind", ["ints", "floats"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_duals_that_are_no_prices_are_refused(wrong, shape, kind):
    name, size = names_of(shape)
    costs = costs_of(shape, kind)
    initial = given_by(costs, **{name: wrong(size)})
    with pytest.raises((ValueError, TypeError), match=f"^initial: its ({name}|shape)"):
        gm.assign(costs, initial=initial)


MATES = {
    "outside": lambda n: np.arange(n) + 1,
    "below": lambda n: np.arange(n) - 2,
    "twice": lambda n: np.zeros(n, int),
    "floats": lambda n: np.zeros(n),
    "of a batch": lambda n: np.arange(n)[None],
    "short": lambda n: np.arange(n - 1),
    "objects": lambda n: np.array([None] * n),
    "huge": lambda n: np.full(n, 2**64 - 1, np.uint64),
}


@pytest.mark.parametrize("mates", MATES.values(), ids=MATES)
@pytest.mark.parametrize("how", [{}, {"objective": "bottleneck"}], ids=["sum", "bottleneck"])
def test_mates_that_are_no_matching_are_refused(mates, how):
    costs = costs_of((7, 7), "ints")
    for initial in (mates(7), given_by(costs, row_to_col=mates(7))):
        with pytest.raises((ValueError, TypeError), match=r"^initial"):
            gm.assign(costs, initial=initial, **how)
        with pytest.raises((ValueError, TypeError), match=r"^initial"):
            gm.maximum_matching(csr_array(costs != 0), initial=initial)


def test_a_batch_is_no_initial():
    costs = costs_of((7, 7), "ints")
    with pytest.raises((ValueError, TypeError), match=r"^initial"):
        gm.assign(costs, initial=gm.assign(costs[None]))


STRANGE = {
    "great": lambda n, rng: rng.normal(size=n) * 1e300,
    "great of one": lambda n, rng: duals(n, 1.7e308),
    "low of one": lambda n, rng: duals(n, -1.7e308),
    "of another scale": lambda n, rng: rng.normal(size=n) * 1e12,
    "denormal": lambda n, rng: rng.normal(size=n) * 5e-324,
    "int64": lambda n, rng: rng.choice([-(2**63), 2**63 - 1], n),
    "uint64": lambda n, rng: rng.choice(np.array([0, 2**64 - 1], np.uint64), n),
    "int8": lambda n, rng: np.full(n, -128, np.int8),
    "float16": lambda n, rng: (rng.normal(size=n) * 60000).clip(-65000, 65000).astype(np.float16),
    "list": lambda n, rng: rng.normal(size=n).tolist(),
    "read-only": lambda n, rng: np.broadcast_to(np.float64(3.5), n),
    "backwards": lambda n, rng: rng.normal(size=2 * n)[::-2],
    "positive": lambda n, rng: rng.random(n) * 100,
}


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE)
@BY_HOME
def test_prices_from_anywhere_lead_to_the_optimum(monkeypatch, home, strange):
    tune(monkeypatch, dense_tuning, small=0)
    rng, (algorithm, backend) = np.random.default_rng(5), home
    for number, shape in enumerate(SHAPES):
        name, size = names_of(shape)
        for kind in ("ints", "floats"):
            costs = costs_of(shape, kind)
            maximize, mates = bool(number % 2), rng.permutation(shape[1])[: shape[0]]
            initial = given_by(costs, **{name: strange(size, rng)})
            if number == 1:
                initial.row_to_col = mates
            form = csr_array if kind == "floats" and number else np.asarray
            how = {"algorithm": algorithm, "backend": backend, "maximize": maximize}
            a = gm.assign(form(costs), initial=initial, **how)
            check(a, costs, exact=algorithm != "dgs")


def check(a, costs, exact=True):
    best = costs[linear_sum_assignment(costs, maximize=a.maximize)].sum()
    assert np.all(np.isfinite(a.row_dual))
    if exact:
        assert a.proven
        assert a.objective == pytest.approx(best, rel=1e-12)
        gm.verify(costs, a)
    else:
        assert abs(a.objective - best) <= a.gap + 1e-9


@BY_HOME
def test_an_assignment_of_other_costs_is_a_beginning(home):
    algorithm, backend = home
    for shape in SHAPES:
        costs = costs_of(shape, "ints")
        others = [gm.assign(np.ones(shape, int)), gm.assign(-costs * 10**9, maximize=True)]
        others.append(gm.assign(costs, cardinality="any"))
        for initial in others:
            a = gm.assign(costs, initial=initial, algorithm=algorithm, backend=backend)
            check(a, costs, exact=algorithm != "dgs")


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    ("number", "given", "cut"),
    [
        (float, [1e300, -1e300, 0.6], [24.0, -24.0, 0.6]),
        (int, [1e300, -1e300, 0.6], [24, -24, 1]),
        (int, [2**63 - 1, -(2**63), 1], [24, -24, 1]),
        (int, np.array([2**64 - 1, 25, 1], np.uint64), [24, 24, 1]),
    ],
    ids=["floats", "rounded", "int64", "uint64"],
)
def test_prices_are_cut_to_what_an_optimum_may_need(number, given, cut, maximize):
    """A path has at most two rows and one pair more, and costs differ by at most 8."""
    problem = as_costs(np.array([[1, 9, 4], [2, 3, 9]], number)).problem(False, False)
    initial = SimpleNamespace(col_dual=np.array(given))
    price = initial_duals(initial, "col_dual", maximize, (2, 3), problem, None)
    assert price.dtype == np.dtype(number)
    assert price.tolist() == ([-p for p in cut] if maximize else cut)


@pytest.mark.parametrize("base", [10**15, -(10**15)])
@BY_HOME
def test_prices_of_integers_that_are_large_and_near_each_other(home, base):
    """Units finer than the costs' leave no room for prices as large as the costs."""
    algorithm, backend = home
    rng = np.random.default_rng(3)
    costs = base + rng.integers(0, 11, (9, 9))
    initial = given_by(costs, col_dual=rng.choice([-(2**63), 2**63 - 1], 9))
    for form in (np.asarray, csr_array):
        a = gm.assign(form(costs), initial=initial, algorithm=algorithm, backend=backend)
        check(a, costs, exact=algorithm != "dgs")


def test_a_stopped_assignment_is_a_beginning():
    costs = costs_of((9, 9), "floats")
    for name, _ in HOMES:
        how = {"algorithm": name, "backend": "cpu"}
        stopped = gm.assign(costs, time_limit=0, **how)
        assert isinstance(stopped, Assignment)
        check(gm.assign(costs, initial=stopped), costs)
