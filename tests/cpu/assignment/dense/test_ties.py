"""Tight pairs of a dense matrix, matched by cardinality, and what the engine makes of that."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from gpumatch.contracts import Stopped
from gpumatch.costs import DenseCosts
from gpumatch.cpu.assignment.dense import engine, ties
from gpumatch.cpu.assignment.dense import tuning as dense_tuning
from gpumatch.cpu.assignment.dense.paths import DensePaths
from graphs import adversarial, costs
from tests.cpu.assignment.solved import Solved, Trace, least
from tests.cpu.assignment.tuned import tune, tuned


def paths_of(matrix, limit=None):
    """Paths from the columns' least costs, and the pairs that were tight at them."""
    nrows, ncols = matrix.shape
    mates = np.full(nrows, -1, np.int32), np.full(ncols, -1, np.int32)
    number = np.int64 if matrix.dtype.kind == "i" else np.float64
    problem = DenseCosts(matrix).problem(False, False)
    paths = DensePaths(problem.entries(), problem, *mates, np.zeros(ncols, number), limit)
    paths.begin(Trace())
    return paths


def tight_of(paths):
    reduced = paths.values - paths.price
    return np.isfinite(reduced) & (reduced == reduced.min(axis=1, keepdims=True))


SHAPES = [(1, 1), (5, 5), (64, 64), (65, 65), (63, 130), (130, 130), (300, 300)]


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_matching_of_tight_pairs_is_maximum(shape, dtype):
    rng = np.random.default_rng(1)
    for share in (0.5 / shape[1], 2 / shape[1], 0.2):
        matrix = (rng.random(shape) >= share).astype(dtype) * 3 - 1
        paths = paths_of(matrix)
        price, before = paths.price.copy(), paths.matched
        found = ties.match_tight(paths, Trace())
        tight = tight_of(paths)
        rows = np.flatnonzero(paths.row_to_col >= 0)
        assert tight[rows, paths.row_to_col[rows]].all()
        assert np.array_equal(paths.col_to_row[paths.row_to_col[rows]], rows)
        most = np.count_nonzero(maximum_bipartite_matching(csr_array(tight)) >= 0)
        assert (before + found, paths.matched) == (most, most)
        assert np.array_equal(paths.price, price)


def test_rows_without_a_finite_cost_have_no_tight_pairs():
    matrix = np.zeros((70, 70))
    matrix[[3, 64]] = np.inf
    matrix[:, 66] = np.inf
    paths = paths_of(matrix)
    assert ties.have_ties(paths, matrix, 3)
    assert ties.match_tight(paths, Trace()) + np.count_nonzero(paths.row_to_col < 0) == 70
    assert np.flatnonzero(paths.row_to_col < 0).tolist() == [3, 64]
    paths.row_to_col[:] = 0
    paths.row_to_col[[3, 64]] = -1
    assert not ties.have_ties(paths, matrix, 3)


def test_ties_are_counted_in_unmatched_rows():
    matrix = np.arange(400.0).reshape(20, 20) ** 2
    matrix[4] = 5.0
    paths = paths_of(matrix)
    paths.price[:] = 0
    for row, many in ((4, 20), (5, 1)):
        paths.row_to_col[:] = 0
        paths.row_to_col[row] = -1
        assert ties.have_ties(paths, matrix, many)
        assert not ties.have_ties(paths, matrix, many + 1)
    paths.row_to_col[:] = 0
    assert not ties.have_ties(paths, matrix, 0)


def test_a_stop_leaves_a_matching():
    matrix = adversarial.few_zeros(200, share=0.01, seed=2)
    for tick in (1, 2, 3):
        paths = paths_of(matrix)
        with pytest.raises(Stopped):
            ties.match_tight(paths, Trace(stop_at=tick))
        rows = np.flatnonzero(paths.row_to_col >= 0)
        assert np.array_equal(paths.col_to_row[paths.row_to_col[rows]], rows)


# -- in the engine ---------------------------------------------------------------------------------

FAMILIES = {
    "few zeros": lambda n, m: adversarial.few_zeros(n, m, share=1 / n, seed=1),
    "some zeros": lambda n, m: adversarial.few_zeros(n, m, share=3 / n, seed=1),
    "two costs": lambda n, m: costs.two_cost(n, m, 0.03, seed=1),
    "four values": lambda n, m: np.random.default_rng(1).integers(0, 4, (n, m)) / 8,
    "plane": lambda n, m: np.ceil(costs.geom2(n, m, seed=1) / 100),
}


@pytest.fixture(params=["lines", "known"])
def form(request, monkeypatch):
    middle = 2**21 if request.param == "lines" else -1
    tune(monkeypatch, dense_tuning, small=-1, middle=middle)


@pytest.mark.parametrize("rest", [0, 20])
@pytest.mark.parametrize("family", FAMILIES)
def test_ties_are_matched_in_few_readings(family, rest, form):
    """By known columns and an auction, square ones read the matrix 8 to 70 times."""
    matrix = FAMILIES[family](250, 250 + rest)
    solved = Solved(engine.run, matrix)
    solved.check_optimal(1e-12 if matrix.dtype.kind == "f" else 0)
    assert np.isclose(solved.total, least(matrix), rtol=1e-12)
    assert "auction" not in [phase["step"] for phase in solved.control.phases]


def test_few_zeros_take_few_searches(form):
    """Nearly all rows are matched by tight pairs; then one reading or two for the others."""
    matrix = adversarial.few_zeros(400, share=1 / 400, seed=3)
    solved = Solved(engine.run, matrix)
    found = {"ties": 0, "trial": 0}
    for phase in solved.control.phases:
        found[phase["step"]] += phase["found"]
    assert found["ties"] > 3 * found["trial"]
    assert sum(phase["step"] == "ties" for phase in solved.control.phases) <= 3


def test_costs_drawn_at_random_are_not_tried(form):
    for matrix in (costs.uniform_float(200, seed=1), costs.uniform_integer(200, seed=1)):
        solved = Solved(engine.run, matrix)
        assert "ties" not in [phase["step"] for phase in solved.control.phases]


@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 12), st.integers(0, 6)),
    top=st.sampled_from([1, 2]),
    limit=st.none() | st.integers(-1, 3),
    middle=st.sampled_from([2**21, -1]),
)
def test_any_small_problem_with_ties(seed, shape, top, limit, middle):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, top, (shape[0], sum(shape)), endpoint=True)
    with tuned(dense_tuning, small=-1, middle=middle, ties=1):
        solved = Solved(engine.run, matrix, limit=limit)
    solved.check_optimal()
    assert solved.total == least(matrix.astype(float), limit)
