"""Costs of small problems of every kind."""

from __future__ import annotations

import numpy as np


def small_costs(rng):
    """Ties, infinities, tiny numbers and long mantissas, of any shape up to 40."""
    shape = rng.integers(1, rng.choice([4, 8, 40]), 2)
    if rng.random() < 0.4:
        shape[:] = shape[0]
    kinds = [
        rng.integers(-3, 4, shape).astype(float),
        rng.integers(0, 2, shape).astype(float),
        rng.uniform(-1e6, 1e6, shape),
        rng.random(shape) * 10.0 ** rng.integers(-20, 6, shape),
        rng.choice([0.0, 1.0, 1 + 1e-12, 0.5, -1e6, 1e-5], shape),
        rng.choice([0.0, 5e-324, 1e-310, 1e-300], shape),
    ]
    C = kinds[rng.integers(len(kinds))]
    if rng.random() < 0.5:
        C[rng.random(shape) < rng.choice([0.1, 0.5, 0.9])] = np.inf
    return C
