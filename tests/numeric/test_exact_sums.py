"""Sums of arrays: those of Python's own exact sums, to the last bit, whatever cancels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpumatch.numeric import exact_sums
from gpumatch.numeric.exact_sums import summands

RNG = np.random.default_rng(5)


def cancelling(count, spread):
    """Numbers of both signs over `spread` binary orders, whose sum is far smaller than they are."""
    half = np.ldexp(RNG.standard_normal(count), RNG.integers(-spread, spread + 1, count))
    tiny = np.ldexp(RNG.standard_normal(count), -spread - 60)
    return RNG.permutation(np.concatenate([half, tiny, -half]))


FLOATS = {
    "uniform": RNG.random(3000),
    "of one sign and size": RNG.random(3000) + 1,
    "cancelling by 2**60": cancelling(1000, 0),
    "cancelling by 2**160": cancelling(1000, 50),
    "of all exponents": cancelling(1000, 480),
    "float32": RNG.standard_normal(3000).astype(np.float32),
    "subnormal": np.array([5e-324, -5e-324, 1e-310, 5e-324] * 9),
    "as large as may be": np.array([1.7e308, -1.7e308, 1e292, 1.0, -1e292, 3e-5] * 300),
    "on the edge of infinite steps": np.ldexp(RNG.random(2000) - 0.5, 1012),
    "just beyond it": np.ldexp(RNG.random(2000) - 0.5, 1014),
    "an ulp that ties": np.array([1.0, 2.0**-53, 2.0**-106]),
    "an ulp that ties down": np.array([1.0, 2.0**-53, -(2.0**-106)]),
    "powers of two": np.ldexp(1.0, np.arange(-500, 500)) * np.tile([1, -1], 500),
    "zeros": np.array([0.0, -0.0] * 5),
    "infinite": np.array([1.0, math.inf, 2.0]),
    "none": np.zeros(0),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("few", [0, exact_sums.FEW], ids=["arrays", "lists"])
@pytest.mark.parametrize("values", FLOATS.values(), ids=FLOATS)
def test_floats_are_added_as_by_fsum(values, few):
    before = values.copy()
    assert math.fsum(summands(values, few)) == math.fsum(values.tolist())
    assert np.array_equal(values, before)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [1, 2, 6, 14, 1022, 4094])
def test_as_many_numbers_as_the_bits_have_room_for(size, sign):
    """Two less than a power of two, all close to 1: their high parts fill the 53 bits."""
    for _ in range(20):
        values = sign * (1 - RNG.random(size) / 50)
        assert math.fsum(summands(values, few=0)) == math.fsum(values.tolist())


def test_every_block_and_every_row_is_added():
    """Blocks of numbers of two dimensions, the last of one number; those of float32 too."""
    for shape in [(exact_sums.MANY + 1,), (5, exact_sums.MANY // 5 + 1), (2, exact_sums.MANY)]:
        for dtype in (np.float32, np.float64):
            values = RNG.standard_normal(shape).astype(dtype)
            assert math.fsum(summands(values)) == math.fsum(values.ravel().tolist())
            assert len(summands(values)) <= 4


def test_arrays_are_added_in_few_numbers():
    values = RNG.random(100_000)
    assert len(summands(values)) <= 4
    parts = [*summands(values), *summands(-values), 2.0**-80]
    assert math.fsum(parts) == 2.0**-80
    assert len(summands(np.arange(100_000))) == 2
    assert summands(np.zeros(100_000)) == []


@pytest.mark.parametrize("few", [0, exact_sums.FEW], ids=["arrays", "lists"])
@pytest.mark.parametrize(
    "values",
    [
        np.full(2000, 2**62),
        np.full(2000, -(2**63)),
        np.array([2**63 - 1, -(2**63), 2**32, -(2**32), -1] * 7),
        RNG.integers(-(2**63), 2**63 - 1, 2000),
        np.array([2**31 - 1, -(2**31)] * 3 + [-5], np.int32),
        np.array([2**32 - 1, 2**31, 1] * 3, np.uint32),
        np.array([2**64 - 1, 2**63, 1] * 700, np.uint64),
        np.zeros(0, np.int64),
    ],
    ids=["beyond", "below", "both", "any", "int32", "uint32", "uint64", "none"],
)
def test_integers_are_added_exactly(values, few):
    assert sum(summands(values, few)) == sum(values.tolist())


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("values", FLOATS.values(), ids=FLOATS)
def test_floats_on_a_device(values):
    import cupy

    assert math.fsum(summands(cupy.asarray(values))) == math.fsum(values.tolist())


@pytest.mark.gpu
@pytest.mark.emulated
def test_integers_on_a_device():
    import cupy

    values = RNG.integers(-(2**63), 2**63 - 1, 5000)
    assert sum(summands(cupy.asarray(values))) == sum(values.tolist())
