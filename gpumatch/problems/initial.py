"""The pairs and duals of the argument `initial`, checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.contracts import Costs
from gpumatch.numeric.arrays import any_true, array_of, as_array, first_true, index_array

__all__ = ["flow_duals", "initial_duals", "initial_pairs"]

SUMS = 2**62
"""A bound of the sum of an integer dual and the costs of a path. Twice as much fits int64."""


def initial_pairs(initial: Any, shape: tuple[int, int], xp: Any) -> tuple[Any, Any]:
    """Rows and columns of the pairs, as arrays of `xp`.

    Parameters
    ----------
    initial : Matching, Assignment, or integer array of length nrows
        The column of each row, -1 for none.
    shape : (int, int)
        Numbers of rows and columns.

    Raises
    ------
    TypeError, ValueError
        If it is no such array, or names a column twice.
    """
    nrows, ncols = shape
    mates = index_array(getattr(initial, "row_to_col", initial), "initial")
    if mates.size != nrows:
        raise ValueError(
            f"initial: the mates of the rows must be {nrows} integers; "
            f"got {mates.dtype} of shape {mates.shape}"
        )
    mates = array_of(xp, mates)
    stray = first_true((mates < -1) | (mates >= ncols))
    if stray is not None:
        raise ValueError(
            f"initial: row {stray} is matched to column {int(mates[stray])}, outside [-1, {ncols})"
        )
    rows = (mates >= 0).nonzero()[0]
    cols = mates[rows].astype(np.int64)
    holder = xp.empty(ncols, np.int64)
    holder[cols] = rows
    second = first_true(holder[cols] != rows)
    if second is not None:
        row, col = int(rows[second]), int(cols[second])
        raise ValueError(
            f"initial: row {row} is matched to column {col}, "
            f"which is matched to row {int(holder[col])}"
        )
    return rows, cols


def initial_duals(
    initial: Any,
    side: str,
    maximize: bool,
    shape: tuple[int, int],
    problem: Costs,
    limit: float | None,
) -> Any:
    """Duals of a problem's columns, from those of `initial`, as an array for its solution.

    Duals beyond all optimal ones are clipped.

    Parameters
    ----------
    initial : Assignment
    side : {"row_dual", "col_dual"}
        The duals of `initial` that belong to the problem's columns.
    maximize : bool
        True if their sign changes, because the caller's costs are to be maximised.
    shape : (int, int)
        The shape of the caller's costs, for the error.
    limit : int or float, optional
        As of an `AssignmentTask`.

    Raises
    ------
    TypeError, ValueError
        If they are no real, finite numbers, one for each column.
    """
    xp, (nrows, ncols) = problem.xp, problem.shape
    dual = as_array(getattr(initial, side), f"initial: its {side}")
    if dual.dtype.kind not in "iuf":
        raise TypeError(f"initial: its {side} must be real numbers; got dtype {dual.dtype}")
    if dual.shape != (ncols,):
        raise ValueError(f"initial: its shape is not that of the costs, {shape}")
    dual = array_of(xp, dual)
    if dual.dtype.kind == "f":
        with np.errstate(over="ignore"):  # the check below refuses infinity
            dual = dual.astype(np.float64)
        stray = first_true(~(abs(dual) < math.inf))
        if stray is not None:
            raise ValueError(f"initial: its {side}[{stray}] is {float(dual[stray])}, not finite")
    largest = max(problem.largest, 0 if limit is None else abs(limit))
    most = (nrows + 1) * min(largest, _spread(problem, limit))
    if not problem.is_integer:
        dual = xp.clip(dual.astype(np.float64), -most, most)
        return -dual if maximize else dual
    most = min(int(most), SUMS - 1 - (nrows + 1) * int(largest))
    if dual.dtype.kind == "f":
        dual = xp.rint(xp.clip(dual, -(2.0**62), 2.0**62))
    elif dual.dtype.kind == "u":
        dual = xp.minimum(dual, dual.dtype.type(min(most, np.iinfo(dual.dtype).max)))
    dual = xp.clip(dual.astype(np.int64), -most, most)
    return -dual if maximize else dual


def flow_duals(
    initial: Any, shape: tuple[int, int], is_integer: bool, maximize: bool, xp: Any = np
) -> tuple[Any, Any] | None:
    """Duals of rows and columns to begin a flow from, for costs that are minimised.

    Parameters
    ----------
    initial : Transport, or tuple (row_dual, col_dual), optional
    shape : (int, int)
        The shape of the caller's costs.
    is_integer : bool
        True if the duals become int64, else float64.
    maximize : bool
        True if their sign changes.
    xp : module
        NumPy or CuPy, whose arrays they become.

    Raises
    ------
    TypeError, ValueError
        If they are no real, finite numbers, one for each row and each column.
    """
    if initial is None:
        return None
    if hasattr(initial, "flow_units"):
        initial = initial.row_dual, initial.col_dual
    if not (isinstance(initial, tuple) and len(initial) == 2):
        raise TypeError(
            "initial must be a Transport, or the tuple (row_dual, col_dual); "
            f"got {type(initial).__name__}"
        )
    duals = []
    for k, (side, length) in enumerate(zip(initial, shape)):
        name = f"initial[{k}]"
        dual = array_of(xp, as_array(side, name))
        if dual.shape != (length,) or dual.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} must be {length} numbers; got {dual.dtype} of shape {dual.shape}"
            )
        if any_true(~(abs(dual.astype(np.float64)) < math.inf)):
            raise ValueError(f"{name} must be finite")
        if is_integer:
            if dual.dtype.kind == "f":
                dual = xp.clip(xp.rint(dual), -(2.0**61), 2.0**61)
            dual = xp.clip(dual.astype(np.int64), -(2**61), 2**61)
        else:
            dual = dual.astype(np.float64)
        duals.append(-dual if maximize else dual)
    return duals[0], duals[1]


def _spread(problem: Costs, limit: float | None) -> Any:
    """The largest difference of two costs, or of a cost and the limit; infinity if unknown."""
    ends = [problem.low, problem.high] if problem.shape[0] and problem.shape[1] else []
    ends += [] if limit is None else [limit]
    return max(ends) - min(ends) if ends and all(map(math.isfinite, ends)) else math.inf
