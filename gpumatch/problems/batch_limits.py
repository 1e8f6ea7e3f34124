"""The limits of a batch: one for each problem, or one for each row of each problem.

A kernel gets them as an array of floats. If that does not hold them, if one is infinite, or if
something is wrong with them, there is no such array. Then problems are solved one by one, which
also says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts.batch import LARGEST, LARGEST_INTEGER
from gpumatch.numeric.arrays import array_of, as_array, has_length
from gpumatch.problems.frames import limit_of

__all__ = ["Gates", "gates_of"]


class Gates(NamedTuple):
    """The limits of a batch for a kernel.

    Attributes
    ----------
    values : float64 array of shape (B, 1) or (B, rows)
        The limits of each problem, to be minimised; those of rows that a problem lacks are 0.
    is_integer : bool
        True if the costs and all limits are integers.
    limits : list
        The limit of each problem, or an array of those of its rows, as its result has them.
    """

    values: np.ndarray
    is_integer: bool
    limits: list[Any]


def gates_of(
    limits: Sequence[Any], sizes: np.ndarray, is_integer: bool, maximize: bool
) -> Gates | None:
    """Return the limits of problems of these sizes; None if one by one is the way.

    Parameters
    ----------
    limits : sequence of B numbers, or of B arrays of numbers
    sizes : int64 array of shape (B, 2)
    is_integer : bool
        True if the costs are integers.
    """
    rows, have_rows = sizes[:, 0], any(map(has_length, limits))
    values = _lines(limits, rows) if have_rows else _numbers(limits)
    if values is None or not (abs(values) <= LARGEST).all():
        return None
    is_integer &= bool((values == np.rint(values)).all())
    if is_integer and not (abs(values) <= LARGEST_INTEGER).all():
        return None
    own = values.astype(np.int64) if is_integer else values
    lines = own.ravel().tolist()
    if have_rows:
        lines = [line[:count].copy() for line, count in zip(own, rows.tolist())]
    return Gates(-values if maximize else values, is_integer, lines)


def _numbers(limits: Sequence[Any]) -> np.ndarray | None:
    """One limit each; None if one is no real number that a float holds."""
    given = np.asarray(array_of(np, limits) if hasattr(limits, "ndim") else [*limits])
    return _as_floats(given[:, None]) if given.ndim == 1 else None


def _lines(limits: Sequence[Any], rows: np.ndarray) -> np.ndarray | None:
    """One limit for each row; None if there are others, or one is no number that a float holds."""
    values = np.zeros((len(limits), int(rows.max(initial=0))))
    for k, count in enumerate(rows.tolist()):
        own = limit_of(limits, k, count)
        if not has_length(own):
            return None
        try:
            line = _as_floats(np.asarray(array_of(np, as_array(own, "cost_limit"))))
        except (TypeError, ValueError):
            return None
        if line is None or line.shape != (count,):
            return None
        values[k, :count] = line
    return values


def _as_floats(given: np.ndarray) -> np.ndarray | None:
    """Real numbers as float64; None if that might round one."""
    if given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
        return None
    values = given.astype(np.float64)
    is_exact = given.dtype.kind == "f" or bool((abs(values) <= LARGEST_INTEGER).all())
    return values if is_exact else None
