"""Deep Greedy Switching begins from one assignment in each of its forms, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.numeric.dgs_start import any_pairs, turns
from graphs import costs

ON_HOST = [{"backend": "cpu"}, {"backend": "reference"}]
ON_GPU = [  # of the mixed form and of the GPU's
    {"backend": "cuda", "switching": switching, "evaluation": evaluation}
    for switching in ("sequential", "parallel")
    for evaluation in ("global", "shared", "block")
]
FORMS = [
    *(pytest.param(form, id=form["backend"]) for form in ON_HOST),
    *(
        pytest.param(form, id=f"{form['switching']}-{form['evaluation']}", marks=pytest.mark.gpu)
        for form in ON_GPU
    ),
]
EVERY_FORM = pytest.mark.parametrize("form", FORMS)
SEEDS = pytest.mark.parametrize("seed", range(3))
SHAPES = pytest.mark.parametrize("shape", [(1, 1), (60, 60), (50, 70)])


@pytest.fixture(autouse=True)
def no_rounds(request, monkeypatch):
    """The GPU's first launch makes no exchange, so that a run of no time ends with its start."""
    if request.node.get_closest_marker("gpu"):
        from gpumatch.cuda.assignment.dgs import engine as dgs

        monkeypatch.setattr(dgs, "ROUNDS_A_LAUNCH", 0)


def start_of(matrix, form, **wish):
    """The columns that rows have before the first exchange."""
    return gm.assign(matrix, algorithm="dgs", time_limit=0, **form, **wish).row_to_col.tolist()


def holes(matrix, share, value=np.inf):
    """The matrix with a share of its pairs forbidden."""
    return np.where(np.random.default_rng(8).random(matrix.shape) < share, value, matrix)


@EVERY_FORM
@SHAPES
@SEEDS
def test_a_random_start_is_the_first_columns_of_a_permutation(seed, shape, form):
    matrix = costs.make("uniform_float", *shape)
    permuted = np.random.default_rng(seed).permutation(shape[1])
    assert start_of(matrix, form, seed=seed) == permuted[: shape[0]].tolist()


@EVERY_FORM
@SEEDS
def test_free_rows_and_columns_alone_are_drawn(seed, form):
    matrix = costs.make("uniform_float", 50, 70)
    given = np.full(50, -1)
    given[10:40] = np.arange(30) * 2
    free = np.setdiff1d(np.arange(70), given)
    expected = given.copy()
    expected[given < 0] = np.random.default_rng(seed).permutation(free)[:20]
    assert start_of(matrix, form, seed=seed, initial=given) == expected.tolist()


@EVERY_FORM
@SEEDS
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_row_whose_column_is_forbidden_stays_free_at_a_limit(is_sparse, seed, form):
    matrix = holes(costs.make("uniform_float", 50, 70), 0.4)
    drawn = np.random.default_rng(seed).permutation(70)[:50]
    expected = np.where(np.isfinite(matrix[np.arange(50), drawn]), drawn, -1)
    assert 10 < np.count_nonzero(expected < 0) < 40
    rows, cols = np.isfinite(matrix).nonzero()
    sparse = csr_array((matrix[rows, cols], (rows, cols)), shape=matrix.shape)
    given = sparse if is_sparse else matrix
    assert start_of(given, form, seed=seed, cost_limit=2) == expected.tolist()


@EVERY_FORM
@SHAPES
@SEEDS
def test_a_greedy_start_takes_the_cheapest_in_the_order_of_a_permutation(seed, shape, form):
    matrix = costs.make("uniform_float", *shape)
    left = matrix.copy()
    expected = np.full(shape[0], -1)
    for row in np.random.default_rng(seed).permutation(shape[0]):
        expected[row] = left[row].argmin()
        left[:, expected[row]] = np.inf
    assert start_of(matrix, form, start="greedy", seed=seed) == expected.tolist()


@SEEDS
def test_draws_know_mates_and_seed_only(seed):
    row_to_col = np.array([3, -1, -1, 0], np.int32)
    col_to_row = np.array([3, -1, -1, 0, -1], np.int32)
    rows, cols = any_pairs(row_to_col, col_to_row, seed)
    assert rows.tolist() == [1, 2]
    assert len(set(cols.tolist()) & {1, 2, 4}) == 2
    assert sorted(turns(row_to_col, seed).tolist()) == [1, 2]
    again = any_pairs(row_to_col, col_to_row, seed)
    assert cols.tolist() == again[1].tolist()
