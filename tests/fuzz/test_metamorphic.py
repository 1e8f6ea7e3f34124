"""The same problem, changed in ways that must not matter, around the thresholds of the code."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.costs import as_costs
from tests.fuzz import problems
from tests.fuzz.doors.metamorphic import check_change
from tests.fuzz.problems import Problem
from tests.fuzz.transformations import TRANSFORMATIONS, WAYS, source_of
from tests.fuzz.trials import Trial

SHAPES = {
    "tiny": (4, 6),
    "small": (37, 40),
    "2^14 costs": (128, 129),
    "2^17 costs": (363, 363),
}
LARGE = {"2^17 costs"}
SLOW = {"by_classical", "by_auction", "by_trees"}
DTYPES = (np.float64, np.int64, np.float32)


def problem_of(seed: int, shape: tuple[int, int]) -> Problem:
    """Costs with some ties and forbidden pairs, and any options."""
    trial = Trial(seed)
    dtype = np.dtype(trial.pick(DTYPES))
    rows, cols = (part.ravel() for part in np.indices(shape))
    if dtype.kind == "f":
        values = trial.rng.normal(size=rows.size).astype(dtype)
        forbidden = trial.pick((0.0, 0.001, 0.3))
        kept = trial.rng.random(rows.size) >= forbidden
        kept[rows == cols] = True  # so that a full assignment exists
        kept[0] = not forbidden
    else:
        values = trial.rng.integers(-50, 50, rows.size).astype(dtype)
        kept = np.ones(rows.size, bool)
    cardinality = trial.pick(("full", "full", "maximum", "any"))
    limit = trial.pick((None, None, 0, values[0].item()))
    return Problem(
        shape, rows[kept], cols[kept], values[kept], trial.chance(0.5), cardinality, limit
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [*TRANSFORMATIONS, *WAYS])
def test_a_change_that_must_not_matter_does_not(name, shape):
    applied, wanted = 0, 1 if shape in LARGE else 4
    for seed in range(1, 60):
        if shape in LARGE and name in SLOW:
            return
        applied += check_change(Trial(seed), problem_of(seed, SHAPES[shape]), name)
        if applied == wanted:
            return
    assert applied, "the change never applied"


def test_a_limit_beyond_64_bits_stays_what_it_is():
    """Each float of such a size is whole, but no int64."""
    rows, cols = (part.ravel() for part in np.indices((2, 3)))
    values = np.array([-4, -1, 2, -3, 1, 5]) * 1e33
    problem = Problem((2, 3), rows, cols, values, limit=-2e33)
    assert check_change(Trial(1), problem, "limit_of_each_row")


def test_a_spare_column_is_for_problems_with_a_full_assignment():
    """The first two rows have one column: a spare one would serve the other of them."""
    rows, cols = np.array([0, 1, 2]), np.array([0, 0, 1])
    problem = Problem((3, 4), rows, cols, np.array([1.0, 2.0, 3.0]))
    assert not check_change(Trial(1), problem, "with_spare_columns")
    problem = Problem((3, 4), rows, rows, np.array([1.0, 2.0, 3.0]))
    assert check_change(Trial(1), problem, "with_spare_columns")


@pytest.mark.parametrize("power", [20, 29, 34, 43, 46])
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_changed_integers_stay_within_their_bound(name, power):
    n = 2**15
    values = 2**power - np.arange(n)
    limit = 2**power if name in ("doubled", "shifted_with_limit") else None
    cardinality = "any" if limit else "full"
    problem = Problem((n, n + 1), np.arange(n), np.arange(n), values, False, cardinality, limit)
    changed = TRANSFORMATIONS[name](Trial(1), problem)
    if changed is not None:
        as_costs(source_of(changed[0]))


@pytest.mark.parametrize("name", [*TRANSFORMATIONS, "sparse", "by_paths", "again", "on_one_thread"])
def test_a_change_of_sparse_costs_that_must_not_matter_does_not(name):
    applied = 0
    for seed in range(1, 200):
        trial = Trial(seed)
        problem = problems.sparse_problem(trial, 2**12)
        if problem.values.dtype in DTYPES and problem.rows.size > 10:
            applied += check_change(trial, problem, name)
        if applied == 3:
            return
    assert applied, "the change never applied"
