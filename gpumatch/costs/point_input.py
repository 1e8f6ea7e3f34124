"""What a caller gives for points: coordinates and offsets, checked and made float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.costs.base import row_tiles
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import array_module, array_of, as_array, first_true

__all__ = ["checked_offsets", "checked_points", "directions"]

MOST_COORDINATES = 4096
EXACT = 2**53  # float64 holds all integers up to here


def checked_points(source: Any, name: str) -> Any:
    """The points as a contiguous float64 array, checked."""
    given = source_of(source) if is_tensor(source) else source
    if isinstance(given, tuple) and is_tensor(source):
        raise TypeError(f"{name} must be a dense tensor")
    values = as_array(given, name)
    if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
        raise TypeError(f"{name} must be real numbers of up to 64 bits; got dtype {values.dtype}")
    if values.ndim != 2:
        raise ValueError(
            f"{name} must have 2 dimensions, points and coordinates; got {values.ndim}"
        )
    if not 1 <= values.shape[1] <= MOST_COORDINATES:
        raise ValueError(
            f"{name} must have 1 to {MOST_COORDINATES} coordinates; got {values.shape[1]}"
        )
    if values.shape[0] >= 2**31 - 1:
        raise ValueError(f"{name} must have fewer than 2**31 - 1 points; got {values.shape[0]}")
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8 and values.size:
        largest = max(abs(int(values.min())), abs(int(values.max())))
        if largest > EXACT:
            raise ValueError(f"{name} holds the integer {largest}, beyond 2**53: pass floats")
    xp = array_module(values)
    points = xp.array(values, np.float64, order="C")  # the caller's may change afterwards
    for tile in row_tiles(points):
        stray = first_true((~xp.isfinite(points[tile])).ravel())
        if stray is not None:
            row, col = divmod(stray, points.shape[1])
            what = "NaN" if bool(points[tile][row, col] != points[tile][row, col]) else "inf"
            raise ValueError(f"{name} holds {what}, first at row {tile.start + row}, column {col}")
    return points


def checked_offsets(source: Any, points: Any, name: str) -> Any:
    """The offsets of a side as float64, checked; None without."""
    if source is None:
        return None
    values = as_array(source_of(source) if is_tensor(source) else source, name)
    if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
        raise TypeError(f"{name} must be real numbers of up to 64 bits; got dtype {values.dtype}")
    if values.shape != points.shape[:1]:
        raise ValueError(
            f"{name} must be {points.shape[0]} numbers, one for each point; "
            f"got the shape {values.shape}"
        )
    xp = array_module(points)
    values = array_of(xp, values)
    given, values = values, xp.array(values, np.float64)
    stray = first_true(~xp.isfinite(values))
    if stray is not None:
        raise ValueError(f"{name}[{stray}] is {float(values[stray])}, not finite")
    if given.dtype.kind in "iu" and values.size and float(abs(values).max()) > EXACT:
        raise ValueError(f"{name} holds an integer beyond 2**53: pass floats")
    return values


def directions(points: Any, name: str) -> Any:
    """The points divided by their norms. A power of 2 is taken out first, so nothing overflows."""
    xp = array_module(points)
    largest = abs(points).max(axis=1) if points.shape[0] else xp.zeros(0)
    stray = first_true(largest == 0)
    if stray is not None:
        raise ValueError(f"{name}[{stray}] has length 0, so it has no cosine")
    _, exponents = xp.frexp(largest)
    scaled = xp.ldexp(points, -exponents[:, None])
    scaled /= xp.sqrt((scaled * scaled).sum(axis=1))[:, None]
    return xp.ascontiguousarray(scaled)
