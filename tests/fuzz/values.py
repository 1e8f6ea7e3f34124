"""Dtypes and families of costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.trials import Trial

FLOATS = (np.float64, np.float64, np.float64, np.float32, np.float32, np.float16, np.longdouble)
INTEGERS = (
    *(np.int64, np.int64, np.int64, np.int32, np.int32, np.int16, np.int8, np.bool_),
    *(np.uint8, np.uint16, np.uint32, np.uint64),
)
FLOAT_FAMILIES = {
    "uniform": 4, "normal": 4, "ties": 3, "dyadic": 3, "outer": 3, "distances": 2, "wide": 1,
    "huge": 1, "denormal": 1, "constant": 1, "ordered": 1, "zeros": 1,
}  # fmt: skip
INTEGER_FAMILIES = {
    "ties": 3, "range": 3, "extremes": 2, "outer": 2, "constant": 1, "ordered": 1, "large": 2,
}  # fmt: skip


def drawn_dtype(trial: Trial) -> np.dtype:
    return np.dtype(trial.pick(FLOATS if trial.chance(0.6) else INTEGERS))


def drawn(
    trial: Trial, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int], dtype: np.dtype
) -> np.ndarray:
    """The costs of these pairs."""
    families = FLOAT_FAMILIES if dtype.kind == "f" else INTEGER_FAMILIES
    family = trial.pick(list(families), list(families.values()))
    trial.note(family=family, dtype=dtype.name)
    if dtype.kind == "f":
        return as_read(trial, _floats(trial, family, rows, cols, shape, dtype))
    return _integers(trial, family, rows, cols, shape, dtype)


def as_read(trial: Trial, values: np.ndarray) -> np.ndarray:
    """The values as a GPU reads them: as CuPy compiles, subnormal float32 numbers are 0."""
    if trial.backend != "cuda" or values.dtype not in (np.float32, np.complex64):
        return values
    parts = values.view(np.float32).copy()
    parts[abs(parts) < np.finfo(np.float32).tiny] = 0
    return parts.view(values.dtype)


def _floats(
    trial: Trial, family: str, rows: Any, cols: Any, shape: tuple[int, int], dtype: np.dtype
) -> np.ndarray:
    rng, count = trial.rng, rows.size
    finfo = np.finfo(dtype)
    if family == "uniform":
        values = rng.random(count)
    elif family == "normal":
        values = rng.normal(size=count)
    elif family == "ties":
        values = rng.integers(-3, 3, count, endpoint=True) / trial.pick((1, 4, 3))
    elif family == "dyadic":
        values = np.ldexp(rng.integers(-1000, 1000, count).astype(float), trial.integer(-14, 5))
    elif family == "outer":
        values = rng.random(shape[0])[rows] * rng.random(shape[1])[cols]
        values = -values if trial.chance(0.3) else values
    elif family == "distances":
        ends = rng.random((2, shape[0])), rng.random((2, shape[1]))
        values = np.hypot(*(one[rows] - other[cols] for one, other in zip(*ends)))
    elif family == "wide":
        values = np.exp(trial.pick((2.0, 7.0)) * rng.normal(size=count))
    elif family == "huge":
        most = min(float(finfo.max), 1e300) / 2.0**12
        values = rng.normal(size=count) * most / 16
    elif family == "denormal":
        values = rng.integers(-50, 50, count) * float(np.float64(finfo.smallest_subnormal))
    elif family == "constant":
        values = np.full(count, rng.normal())
    elif family == "ordered":
        values = (rows + 1.0) * (cols + 1.0) / max(1, shape[0] * shape[1])
    else:
        values = rng.choice([0.0, -0.0, 1.0, -1.0], count)
    most = float(finfo.max) / 2
    # longdouble is read as float64, so its costs must be such.
    return np.clip(values, -most, most).astype(np.float64).astype(dtype)


def _integers(
    trial: Trial, family: str, rows: Any, cols: Any, shape: tuple[int, int], dtype: np.dtype
) -> np.ndarray:
    rng, count = trial.rng, rows.size
    if dtype.kind == "b":
        return rng.random(count) < trial.pick((0.5, 0.05, 0.95))
    info = np.iinfo(dtype)
    most = (2**62 - 1) // (8 * (min(shape) + 2))
    low, high = max(int(info.min), -most), min(int(info.max), most)
    if family == "ties":
        values = rng.integers(max(low, -2), 3, count)
    elif family == "extremes":
        values = rng.choice(np.array([low, low + 1, high - 1, high, max(low, -1), 0, 1]), count)
    elif family == "range":
        values = rng.integers(low // 2 ** trial.integer(0, 7), high, count)
    elif family == "outer":
        values = rng.integers(0, 11, shape[0])[rows] * rng.integers(0, 11, shape[1])[cols]
    elif family == "constant":
        values = np.full(count, rng.integers(low, high))
    elif family == "ordered":
        values = np.minimum((rows + 1) * (cols + 1), high)
    else:
        bits = min(trial.integer(20, 61), high.bit_length())
        values = rng.integers(max(low, -(2**bits)), min(high, 2**bits), count)
    return values.astype(dtype)
