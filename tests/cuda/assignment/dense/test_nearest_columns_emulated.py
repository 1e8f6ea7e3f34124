"""The choice of each row's best columns with its kernel on the CPU, threads in any order."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpumatch.cuda.assignment.dense import rows as dense_rows
from gpumatch.cuda.assignment.dense.rows import NEAREST, ArrayRows
from tests.cuda.emulator import COMPILER, ArraysOfDevice, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK, MOST = 64, 16


@pytest.fixture(scope="module")
def emulator():
    constants = {"kBlock": BLOCK, "kEach": 2, "kPlaces": 4 * BLOCK, "kMost": MOST}
    return Emulator(NEAREST, constants)


@pytest.fixture
def device_rows(emulator, monkeypatch):
    lead_drivers_here(monkeypatch, {NEAREST: emulator}, dense_rows, block=BLOCK)
    monkeypatch.setattr(ArrayRows, "most", MOST)

    def made(values, far):
        rows = ArrayRows(values, far, lambda: False)
        rows.xp = ArraysOfDevice()
        return rows

    return made


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 5), (4, 300), (5, 129), (2, 1)])
def test_the_kernel_finds_what_sorting_finds(shape, dtype, device_rows):
    rng = np.random.default_rng(shape[1])
    number = np.dtype(np.int64 if np.dtype(dtype).kind == "i" else np.float64)
    far = number.type(np.iinfo(np.int64).max if number.kind == "i" else np.inf)
    values = rng.integers(-40, 40, shape).astype(dtype)  # with ties
    if dtype != np.int32:
        values[rng.random(shape) < 0.2] = far
    price = rng.integers(-9, 9, shape[1]).astype(number)
    for bound in (np.full(shape[0], far), rng.integers(-60, 20, shape[0]).astype(number)):
        for most in (1, 7, MOST, 1000):
            ours = device_rows(values, far).nearest(price, bound, most)
            theirs = ArrayRows(values, far, lambda: False).nearest(price, bound, most)
            for found, wanted in zip(ours, theirs):
                np.testing.assert_array_equal(found, wanted)


def test_the_kernel_has_room_for_rows_whose_costs_fall(device_rows):
    """Each batch is better than all before it."""
    values = np.arange(2 * 900, dtype=np.int32)[::-1].reshape(2, 900).copy()
    price, bound = np.zeros(900, np.int64), np.full(2, 2**63 - 1)
    for most in (1, MOST):
        ours = device_rows(values, np.int64(2**63 - 1)).nearest(price, bound, most)
        theirs = ArrayRows(values, np.int64(2**63 - 1), lambda: False).nearest(price, bound, most)
        for found, wanted in zip(ours, theirs):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 5), (70, 130), (2, 1)])
def test_the_kernel_finds_the_columns_least_slacks(shape, dtype, device_rows):
    rng = np.random.default_rng(shape[1])
    number = np.dtype(np.int64 if np.dtype(dtype).kind == "i" else np.float64)
    far = number.type(np.iinfo(np.int64).max if number.kind == "i" else np.inf)
    values = rng.integers(-40, 40, shape).astype(dtype)
    least = values.min(axis=1).astype(number)
    if dtype != np.int32:
        values[:, 0] = far
    price = rng.integers(-9, 9, shape[1]).astype(number)
    np.testing.assert_array_equal(
        device_rows(values, far).least_of_rows(price),
        ArrayRows(values, far, lambda: False).least_of_rows(price),
    )
    found = device_rows(values, far).least_of_columns(least)
    wanted = ArrayRows(values, far, lambda: False).least_of_columns(least)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_least_of_rows_is_rounded_down(dtype, device_rows):
    rng = np.random.default_rng(9)
    values = np.exp(5 * rng.standard_normal((40, 70))).astype(dtype)
    price = -rng.random(70) * 10.0 ** rng.uniform(-5, 5, 70)
    exact = [
        min(Fraction(cost) - Fraction(paid) for cost, paid in zip(line, price.tolist()))
        for line in values.astype(float).tolist()
    ]
    for rows in (device_rows(values, np.inf), ArrayRows(values, np.inf, lambda: False)):
        for least, wanted in zip(rows.least_of_rows(price).tolist(), exact):
            assert Fraction(least) <= wanted < Fraction(math.nextafter(least, math.inf))
