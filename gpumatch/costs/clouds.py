"""Many pairs of clouds of one size each, checked at once: `PointCosts.batch`.

What is known of the costs before one is computed, their extent and their rounding, is that of all
clouds together. It holds for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import as_array

__all__ = ["costs_of_clouds"]

NAMES = "X", "Y", "row_offset", "col_offset"


def costs_of_clouds(
    make: Callable[..., Any], X: Any, Y: Any, metric: Any, row_offset: Any, col_offset: Any
) -> list[Any]:
    """Do as `PointCosts.batch` states; `make` makes a `PointCosts`."""
    given = X, Y, row_offset, col_offset
    parts: list[Any] = [
        None if part is None else as_array(source_of(part) if is_tensor(part) else part, name)
        for part, name in zip(given, NAMES)
    ]
    _check(parts)
    count, nrows, width = parts[0].shape
    ncols = parts[1].shape[1]
    if callable(metric) or not count:
        each = ([None if part is None else part[k] for part in parts] for k in range(count))
        return [
            make(own, other, metric, row_offset=sums[0], col_offset=sums[1])
            for own, other, *sums in each
        ]
    sides = parts[0].reshape(count * nrows, width), parts[1].reshape(count * ncols, -1)
    sums = [None if part is None else part.reshape(-1) for part in parts[2:]]
    whole = make(*sides, metric, row_offset=sums[0], col_offset=sums[1])
    problems = []
    for k in range(count):
        rows, cols = slice(k * nrows, (k + 1) * nrows), slice(k * ncols, (k + 1) * ncols)
        problems.append(whole.part(rows, cols))
        problems[-1].tensors = tuple(part[k] if is_tensor(part) else None for part in given)
    return problems


def _check(parts: list[Any]) -> None:
    """Check that there are points, and the shapes of what is given."""
    for part, name in zip(parts[:2], NAMES):
        if part is None:
            raise TypeError(f"{name} must be an array of three dimensions; got None")
    for part, name, dimensions in zip(parts, NAMES, (3, 3, 2, 2)):
        if part is not None and part.ndim != dimensions:
            raise ValueError(
                f"{name} of a batch must have {dimensions} dimensions; got {part.ndim}"
            )
    if len(parts[0]) != len(parts[1]):
        raise ValueError(
            f"X and Y must have as many clouds; got {len(parts[0])} and {len(parts[1])}"
        )
    for part, side, name in zip(parts[2:], parts, NAMES[2:]):
        if part is not None and part.shape != side.shape[:2]:
            raise ValueError(f"{name} must have the shape {side.shape[:2]}; got {part.shape}")
