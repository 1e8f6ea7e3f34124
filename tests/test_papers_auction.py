"""The auction without scaling, as Vasconcelos and Rosenhahn have it, on CPU, GPU and reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array, random_array

import gpumatch as gm
from gpumatch.costs import DenseCosts
from gpumatch.cpu.assignment import auction
from gpumatch.numeric.auction_schedule import Precision
from gpumatch.reference import vasconcelos2009 as reference
from gpumatch.reference.interleaving import Grid
from graphs import costs
from tests.assignment_cases import CASES, factors_of
from tests.assignment_checks import close, optimum
from tests.pairwise import pairwise

FORMS = {
    ("cpu", "counter"): [],
    ("cuda", "counter"): [pytest.mark.gpu],
    ("cuda", "reduction"): [pytest.mark.gpu],
}
"""The marks of each backend and convergence."""
EVERY_FORM = pytest.mark.parametrize(
    ("backend", "convergence"),
    [pytest.param(*form, marks=marks) for form, marks in FORMS.items()],
)
FLOATS = pytest.mark.parametrize("family", ["uniform_float", "geom2", "low_rank"])
SHAPES = pytest.mark.parametrize("shape", [(40, 40), (40, 60), (60, 40), (1, 9), (2, 2)])
SMALL = [case for case in CASES if max(case.shape) <= (40 if case.difficulty == "hard" else 200)]
"""With one epsilon, rounds may number n times the spread of the costs by epsilon."""
WISHES = pytest.mark.parametrize(
    "wish",
    [
        {},
        {"maximize": True},
        {"cost_limit": 60},
        {"cardinality": "any", "maximize": True},
        {"cardinality": "maximum"},
    ],
    ids=str,
)


def solve(matrix, backend, convergence="counter", **wish):
    form = {"scaling": "none", "convergence": convergence, "backend": backend}
    return gm.assign(matrix, algorithm="auction", **form, **wish)


def steps(a):
    """The auctions of a result: how the trace calls them, and their epsilons."""
    return [(phase["step"], phase["epsilon"]) for phase in a.stats["trace"] if "epsilon" in phase]


def sparse_matrix(shape, seed=5):
    """Integers at random places, and large ones on the diagonal."""
    rng = np.random.default_rng(seed)
    matrix = random_array(shape, density=4 / shape[1], rng=rng, format="csr")
    matrix.data = np.ceil(matrix.data * 100)
    return csr_array(matrix + 150 * eye_array(*shape), dtype=np.int64)


# -- one auction, from prices of 0 -----------------------------------------------------------------


@EVERY_FORM
@SHAPES
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_only_rows_bid_and_by_one_epsilon(backend, convergence, shape, dtype):
    matrix = costs.make("uniform_integer", *shape, factor=3, seed=2).astype(dtype)
    for wish in ({}, {"cost_limit": shape[0] / 4}, {"cardinality": "any", "maximize": True}):
        limit = 0 if "cardinality" in wish else wish.get("cost_limit")
        rows = matrix if shape[0] <= shape[1] else matrix.T
        last = Precision.of(DenseCosts(rows), limit).epsilon
        a = solve(matrix, backend, convergence, finish="epsilon", **wish)
        assert steps(a) == [("forward", last)]


@EVERY_FORM
@SHAPES
@FLOATS
def test_prices_given_are_not_begun_from(backend, convergence, shape, family):
    matrix = costs.make(family, *shape, seed=2)
    other = gm.assign(costs.make(family, *shape, seed=3))
    a = solve(matrix, backend, convergence, finish="epsilon")
    b = solve(matrix, backend, convergence, finish="epsilon", initial=other)
    assert (a.row_to_col == b.row_to_col).all()
    assert (a.col_dual == b.col_dual).all()


@EVERY_FORM
@SHAPES
@FLOATS
def test_it_is_the_auction_of_the_reference(monkeypatch, backend, convergence, shape, family):
    """The same pairs and prices, after as many rounds; where the reference ends as fine."""
    monkeypatch.setattr(reference, "STEPS", 1 << 20)
    matrix = costs.make(family, *shape, seed=5)
    a = solve(matrix, backend, convergence, finish="epsilon")
    b = solve(matrix, "reference", convergence, finish="epsilon")
    assert (a.row_to_col == b.row_to_col).all()
    assert (a.col_dual == b.col_dual).all()
    assert (a.row_dual == b.row_dual).all()
    (auction,) = a.stats["trace"]
    assert auction["rounds"] == len(b.stats["trace"])
    assert auction["matched"] == min(shape)


@SHAPES
@FLOATS
def test_every_round_is_the_papers(monkeypatch, shape, family):
    """On the CPU; prices and mates after each. The GPU's are in tests/cuda."""
    monkeypatch.setattr(auction, "BUDGET", 1)  # one round at a time
    matrix = costs.make(family, *sorted(shape), seed=6)
    nrows, ncols = matrix.shape
    given = DenseCosts(matrix)
    precision = Precision.of(given, None)
    ours = auction._Auction(given, np.zeros(ncols), None, precision)
    terms = np.inf, precision.spread, precision.epsilon
    floor = auction._Floor(ours.rows, ours.cols, np.arange(nrows, dtype=np.int32), *terms)
    price, mates = np.zeros(ncols), (np.full(nrows, -1, np.int32), np.full(ncols, -1, np.int32))
    terms = precision.epsilon, precision.spread
    theirs = reference.rounds(-matrix, price, *mates, *terms, "counter", Grid("ct", 0))
    for count, step in enumerate(theirs, start=1):
        floor.rounds_alone()
        assert floor.rounds == count
        assert (ours.rows.mate == mates[0]).all()
        assert (ours.cols.mate == mates[1]).all()
        assert (ours.cols.dual == -price).all()
        assert floor.waiting == nrows - step.assigned
    assert floor.waiting == 0
    assert floor.rounds > 0


# -- optimal, and proven ---------------------------------------------------------------------------


SAMPLE = pairwise(
    ((form, case) for form in FORMS for case in SMALL),
    lambda pair: {"form": pair[0], **factors_of(pair[1])},
)


@pytest.mark.parametrize(
    ("backend", "convergence", "case"),
    [
        pytest.param(*form, case, id=f"{'-'.join(form)}-{case}", marks=FORMS[form])
        for form, case in SAMPLE
    ],
)
def test_it_is_optimal_on_the_case_table(backend, convergence, case):
    a = solve(case.costs, backend, convergence, maximize=case.maximize)
    gm.verify(case.costs, a)
    assert a.proven
    assert close(a.objective, optimum(case.costs, case.maximize))


@EVERY_FORM
@WISHES
@pytest.mark.parametrize("shape", [(30, 30), (120, 120), (120, 150), (150, 120)])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_it_is_optimal_on_sparse_costs(backend, convergence, wish, shape, dtype):
    matrix = sparse_matrix(shape).astype(dtype)
    a = solve(matrix, backend, convergence, **wish)
    gm.verify(matrix, a)
    assert a.proven
    best = gm.assign(matrix, algorithm="shortest-augmenting-path", backend="cpu", **wish)
    limit = wish.get("cost_limit", 0)  # what a row pays that goes without
    assert close(a.objective - limit * a.size, best.objective - limit * best.size)


@EVERY_FORM
@SHAPES
def test_integers_end_optimal_with_nothing_to_close(backend, convergence, shape):
    matrix = costs.make("uniform_integer", *shape, factor=3, seed=1)
    a = solve(matrix, backend, convergence, finish="epsilon")
    gm.verify(matrix, a)
    assert a.proven
    assert a.gap == 0
    assert a.objective == optimum(matrix)


@EVERY_FORM
@SHAPES
@FLOATS
def test_a_gap_that_is_left_is_at_most_n_epsilon(backend, convergence, shape, family):
    matrix = costs.make(family, *shape, seed=4)
    a = solve(matrix, backend, convergence, finish="epsilon")
    bound = a.row_dual.sum() + a.col_dual.sum()
    most = min(shape) * Precision.of(DenseCosts(matrix), None).epsilon
    assert a.size == min(shape)
    assert not a.proven
    assert bound <= optimum(matrix) + 1e-12 <= a.objective + 2e-12
    assert 0 <= a.gap <= most * (1 + 1e-9)
    assert (matrix - a.row_dual[:, None] - a.col_dual >= -1e-12).all()


@EVERY_FORM
def test_what_is_infeasible_does_not_loop(backend, convergence):
    with pytest.raises(gm.InfeasibleError) as caught:
        solve(csr_array([[1, 0, 0], [2, 0, 0], [1, 1, 1]]), backend, convergence)
    assert caught.value.rows.tolist() == [0, 1]


@EVERY_FORM
@pytest.mark.parametrize("shape", [(60, 60), (60, 62)])
@pytest.mark.parametrize("last", [2, 5, 9])
def test_it_stops_between_rounds_with_a_matching_and_a_bound(
    monkeypatch, backend, convergence, shape, last
):
    if backend == "cuda":
        monkeypatch.setattr("gpumatch.cuda.assignment.auction._ROUNDS_A_LAUNCH", 1)
    monkeypatch.setattr(auction, "BUDGET", 1)
    matrix = costs.make("uniform_float", *shape, seed=1)
    ticks = itertools.count(1)
    a = solve(matrix, backend, convergence, callback=lambda _: next(ticks) >= last)
    assert not a.proven
    assert 0 < a.size < 60
    assert np.unique(a.col_ind).size == a.size
    assert a.row_dual.sum() + a.col_dual.sum() <= optimum(matrix) + 1e-9
    assert (matrix - a.row_dual[:, None] - a.col_dual >= -1e-9).all()
