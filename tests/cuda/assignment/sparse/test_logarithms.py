"""Minus the logarithms of all kinds of values, by the kernel on the CPU, as NumPy finds them."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpumatch.cuda.assignment.sparse import logarithms
from gpumatch.linalg.entries import log_magnitudes
from tests.cuda.emulator import COMPILER, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

KINDS = ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d", "F", "D"]


@pytest.fixture(scope="module")
def emulator():
    return Emulator(logarithms.SOURCE, {})


@pytest.fixture
def weights_of(emulator, monkeypatch):
    lead_drivers_here(monkeypatch, {logarithms.SOURCE: emulator}, logarithms, block=96)
    return logarithms.minus_logarithms


def numbers(rng, kind, size):
    """Numbers of both signs over the range of their kind, none of which is 0."""
    dtype = np.dtype(kind)
    if dtype.kind in "bui":
        most = 2 if kind == "?" else min(int(np.iinfo(dtype).max), 2**62)
        least = 1 if dtype.kind in "bu" else -most
        drawn = rng.integers(least, most, size).astype(dtype)
        return np.where(drawn == 0, dtype.type(1), drawn)
    decades = {"e": 4, "f": 37, "F": 37}.get(kind, 300)
    drawn = 10.0 ** rng.uniform(-decades, decades, size) * rng.choice([-1, 1], size)
    if dtype.kind == "c":
        drawn = drawn * np.exp(1j * rng.uniform(0, 7, size))
    return drawn.astype(dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_those_of_numpy_with_their_ends(weights_of, kind):
    rng = np.random.default_rng(3)
    for size in (1, 2, 95, 300, 1000):
        values = numbers(rng, kind, size)
        weights, low, high = weights_of(values)
        assert weights.dtype == np.float64
        assert np.allclose(weights, -log_magnitudes(values), rtol=1e-15, atol=1e-15)
        assert (low, high) == (weights.min(), weights.max())


@pytest.mark.parametrize("kind", ["F", "D"])
def test_those_of_complex_numbers_near_1_are_as_good_as_any(weights_of, kind):
    values = np.exp(1j * np.random.default_rng(3).uniform(0, 7, 300)).astype(kind)
    weights = weights_of(values)[0]
    assert abs(weights).max() < 1e-7
    assert np.allclose(weights, -log_magnitudes(values), rtol=1e-14, atol=0)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_ends_are_found_among_weights_of_one_sign(weights_of, sign):
    """Bits are in another order for numbers below 0."""
    values = 10.0 ** (sign * np.arange(1.0, 250.0))
    _, low, high = weights_of(values)
    assert math.isclose(low, -max(math.log(values[0]), math.log(values[-1])))
    assert math.isclose(high, -min(math.log(values[0]), math.log(values[-1])))


@pytest.mark.parametrize("place", [0, 7, 299])
@pytest.mark.parametrize(
    "odd", [0.0, -0.0, math.inf, -math.inf, math.nan, complex(math.nan, 1), complex(1, math.nan),
            complex(math.inf, 1), complex(math.inf, math.inf), 0j],
)  # fmt: skip
def test_an_end_shows_each_value_that_is_0_or_not_finite(weights_of, odd, place):
    values = np.ones(300, complex if isinstance(odd, complex) else float)
    values[place] = odd
    weights, low, high = weights_of(values)
    assert not (math.isfinite(low) and math.isfinite(high))
    assert not math.isfinite(weights[place])
    assert np.count_nonzero(weights) == 1


def test_numbers_at_the_ends_of_the_range(weights_of):
    values = np.array([5e-324, 1.7e308, 1e-320])
    weights, low, high = weights_of(values)
    assert np.allclose(weights, -np.log(values), 1e-15, 0)
    assert (low, high) == (weights[1], weights[0])
    (weight,), *_ = weights_of(np.array([1.5e308 + 1.5e308j]))
    assert math.isclose(weight, -math.log(1.5e308) - math.log(2) / 2, rel_tol=1e-15)


def test_values_with_gaps_between_them(weights_of):
    spread = np.arange(1.0, 41.0)[::2]
    weights, *ends = weights_of(spread)
    assert np.allclose(weights, -np.log(spread))
    assert np.allclose(ends, [-math.log(39), 0])
