"""The lesser of two numbers: floats, infinities, integers of either sign, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from gpumatch.cpu.numba_tools.vector_min import lesser


@njit
def least(numbers):
    found = numbers[0]
    for k in range(numbers.size):
        found = lesser(found, numbers[k])
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_least_of_many(size, dtype):
    numbers = np.random.default_rng(size).integers(-1000, 1000, size).astype(dtype)
    assert least(numbers) == numbers.min()
    assert least(-numbers) == -numbers.max()


def test_infinities():
    assert least(np.array([math.inf, math.inf])) == math.inf
    assert least(np.array([math.inf, 3.0, -math.inf])) == -math.inf


def test_numbers_must_be_of_one_type():
    mixed = njit(lambda one, two: lesser(one, two))
    with pytest.raises(TypingError, match="two numbers of one type, got float64 and int64"):
        mixed(1.0, 2)
