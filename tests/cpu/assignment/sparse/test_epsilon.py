"""Costs of few values: what is found of them, and that rounded prices keep close pairs."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.cpu.assignment.sparse.epsilon import quantum_of, round_down
from gpumatch.cpu.assignment.sparse.tuning import DEFAULT


@pytest.mark.parametrize("number", [np.int64, np.float64], ids=["integers", "floats"])
def test_pairs_within_the_widest_gap_become_tight(number):
    """If a reduced cost is greater by less than the gap, it is not greater after rounding."""
    quantum = number(64)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        price = rng.integers(-5, 1, 9) * 64 + rng.choice(rng.integers(0, 64, 3), 9)
        price = price.astype(number)
        remainders = np.unique(price % 64)
        gap = np.diff(remainders, append=remainders[0] + 64).max()
        rounded = price.copy()
        round_down(rounded, quantum)
        assert (rounded % 64 == 0).all()
        for steps in range(-6, 7):
            is_within = price[:, None] - price < 64 * steps + gap
            assert (rounded[:, None] - rounded <= 64 * steps)[is_within].all()


@pytest.mark.parametrize(
    ("values", "quantum"),
    [([3, 5, 9], 2), ([0.1, 0.4], 0.4 - 0.1), ([1, 1], None), ([0, 1, 2.5], None)],
)
def test_the_quantum_divides_all_differences(values, quantum):
    matrix = np.full((40, 40), float(values[0]))
    matrix[:, 1:20:2] = values[1]
    matrix[:5] = values[-1]
    assert quantum_of(matrix.ravel(), DEFAULT) == quantum


def test_one_odd_cost_is_no_multiple():
    """Outside the sample, too."""
    matrix = np.ones((60, 60))
    matrix[:, ::2] = 2
    assert quantum_of(matrix.ravel(), DEFAULT) == 1
    matrix[31, 1] = 1.25
    assert quantum_of(matrix.ravel(), DEFAULT) is None


def test_no_costs_have_no_quantum():
    assert quantum_of(np.empty(0), DEFAULT) is None
