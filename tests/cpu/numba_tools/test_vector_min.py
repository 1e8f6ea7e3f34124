"""The lesser of two numbers: floats, infinities, integers of either sign, and what is refused."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError
from numba.np.numpy_support import from_dtype

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


@pytest.mark.parametrize(
    ("dtype", "call"),
    [
        (np.float64, r"call nnan nsz <\d+ x double> @llvm\.minnum"),
        (np.int32, r"call <\d+ x i32> @llvm\.smin"),
    ],
)
def test_the_loop_becomes_vector_instructions(dtype, call):
    least(np.zeros(1, dtype))
    (code,) = (least.inspect_llvm(t) for t in least.signatures if t[0].dtype == from_dtype(dtype))
    assert re.search(call, code)


def test_infinities():
    assert least(np.array([math.inf, math.inf])) == math.inf
    assert least(np.array([math.inf, 3.0, -math.inf])) == -math.inf


def test_numbers_must_be_of_one_type():
    mixed = njit(lambda one, two: lesser(one, two))
    with pytest.raises(TypingError, match="two numbers of one type, got float64 and int64"):
        mixed(1.0, 2)
