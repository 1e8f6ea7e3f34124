"""The transpose by blocks is that of NumPy, whatever rows and columns are left over."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from gpumatch.cpu.numba_tools.turned import SIDE, turn


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_shape(dtype):
    rng = np.random.default_rng(1)
    for rows in [*range(2 * SIDE + 2), 37]:
        for cols in [*range(2 * SIDE + 2), 50]:
            values = rng.random((rows, cols)).astype(dtype)
            table = np.full((cols + 1, rows), -1, dtype)
            turn(values, table)
            assert np.array_equal(table[:cols], values.T)
            assert (table[cols] == -1).all()


def test_numbers_keep_their_bits():
    values = np.array([[np.nan, -0.0], [np.inf, 5e-324]] * SIDE)
    table = np.empty((2, 2 * SIDE))
    turn(values, table)
    assert table.T.tobytes() == values.tobytes()


def test_blocks_are_not_moved_one_number_at_a_time():
    turned = njit(lambda values, table: turn(values, table))
    turned(np.zeros((1, 1)), np.zeros((1, 1)))
    (code,) = turned.inspect_llvm().values()
    assert f"shufflevector <{SIDE} x double>" in code
