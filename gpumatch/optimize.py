"""SciPy's name from `scipy.optimize`, served by gpumatch.

There are three differences from SciPy 1.17. Integers are added as integers, so the result is exact
even if doubles would round. Only integers that are too large for that are turned into doubles.
Floats whose sums would overflow, from about 1e307 / n on, are divided by a power of two first. A
masked array is refused, not read through its mask.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy import asarray, ndarray

from gpumatch.assignment import assign
from gpumatch.costs import Costs, DenseCosts, overflow_of_sums
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import as_array, refuse_masks
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.running.interrupts import InterruptsHeld

__all__ = ["linear_sum_assignment"]

_SOLVERS: dict[Any, Any] = {}  # for small host matrices, by dtype, on first use
_SPARED = 32  # floats are divided by so great a power of 2, so that sums do not overflow
_INFEASIBLE = "cost matrix is infeasible"
_INVALID = "matrix contains invalid numeric entries"


def linear_sum_assignment(cost_matrix: Any, maximize: bool = False) -> tuple[Any, Any]:
    """Assign rows to columns at least total cost, as many as there are on the smaller side.

    Parameters
    ----------
    cost_matrix : two-dimensional array
        Boolean, integer or floating up to float64. ``inf`` forbids a pair (``-inf`` to be
        maximised).
    maximize : bool
        Seek the greatest total instead.

    Returns
    -------
    row_ind, col_ind : int64 arrays
        The assigned pairs, rows ascending; ``cost_matrix[row_ind, col_ind].sum()`` is the total.

    Raises
    ------
    ValueError
        If there are not two dimensions, an entry is NaN or an infinity of the wrong sign, or the
        infinities leave no full assignment.
    TypeError
        If the dtype cannot be cast to float64 safely.

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch.optimize import linear_sum_assignment
    >>> cost = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    >>> row_ind, col_ind = linear_sum_assignment(cost)
    >>> col_ind
    array([1, 0, 2])
    >>> int(cost[row_ind, col_ind].sum())
    5
    """
    # The smallest problems take SciPy half a microsecond, so nothing is looked up here in vain.
    kind = type(cost_matrix)
    if kind is ndarray:
        values = cost_matrix
    else:
        is_plain = kind is list and cost_matrix and type(cost_matrix[0]) is list
        values = asarray(cost_matrix) if is_plain else _array(cost_matrix)
    try:
        pairs = _SOLVERS[values.dtype](values, maximize)
    except (KeyError, TypeError):
        pairs = None  # the first of its dtype, not of two dimensions, or not on the host
    if type(pairs) is tuple:
        return pairs
    if pairs is not None:
        raise _error(pairs)
    return _otherwise(cost_matrix, values, maximize)


def _array(cost_matrix: Any) -> Any:
    """The costs as an array on their device."""
    if is_tensor(cost_matrix):
        cost_matrix = source_of(cost_matrix)
    if hasattr(cost_matrix, "__cuda_array_interface__") or hasattr(cost_matrix, "to_numpy"):
        return as_array(cost_matrix, "cost_matrix")
    refuse_masks(cost_matrix, "cost_matrix")
    return asarray(cost_matrix)  # no subclass


def _otherwise(cost_matrix: Any, values: Any, maximize: bool) -> tuple[Any, Any]:
    """The pairs for costs that a compiled function does not take at once."""
    if not isinstance(values, ndarray):
        return _by_assign(values, maximize)
    if values.dtype.kind in "OSU" and values is not cost_matrix:
        values = asarray(cost_matrix, np.float64)  # of fractions, decimals, strings, large ints
    pairs_only = _pairs_only()
    if pairs_only is None:
        return _by_assign(values, maximize)
    if values.dtype not in _SOLVERS and pairs_only.takes(values):
        solve = pairs_only.solver(values.dtype)
        if solve is not None:
            _SOLVERS[values.dtype] = solve
            pairs = solve(values, bool(maximize))
            if pairs is not None:  # else another function, for which more must be compiled
                return _pairs_or_error(pairs)
    pairs = pairs_only.pairs(values, maximize)
    return _by_assign(values, maximize) if pairs is None else _pairs_or_error(pairs)


def _pairs_or_error(pairs: Any) -> tuple[Any, Any]:
    """The pairs that a compiled function has found; raises the error that it names instead."""
    if type(pairs) is not tuple:
        raise _error(pairs)
    return pairs


def _error(reason: int) -> ValueError:
    """The error for the reason why a compiled function has found no pairs."""
    return ValueError(_INFEASIBLE if reason == _pairs_only().INFEASIBLE else _INVALID)


@functools.cache
def _pairs_only() -> Any:
    """The module for small host matrices, imported with the first.

    None for a Numba that lacks the private parts which that module imports.
    """
    try:
        with InterruptsHeld():
            from gpumatch.cpu.assignment.small import pairs_only
    except (ImportError, AttributeError):
        return None
    return pairs_only


def _by_assign(values: Any, maximize: bool) -> tuple[Any, Any]:
    """The pairs by `assign`, or the reason why there are none."""
    if values.ndim != 2:
        raise ValueError(f"expected a matrix (2-D array), got a {values.ndim} array")
    if not np.can_cast(values.dtype, np.float64, "safe"):
        raise TypeError(
            f"Cannot cast array data from {values.dtype!r} to {np.dtype(np.float64)!r} "
            "according to the rule 'safe'"
        )
    costs = _checked(values, maximize)
    pairs = None if costs.on_device or costs.is_integer else _pairs_of_floats(costs, maximize)
    if pairs is not None:
        return _pairs_or_error(pairs)
    try:
        assignment = assign(costs, maximize=bool(maximize))
    except InfeasibleError as exc:
        raise ValueError(_INFEASIBLE) from exc
    return assignment.row_ind, assignment.col_ind


def _pairs_of_floats(costs: Costs, maximize: bool) -> Any:
    """What a compiled function returns for costs that were too large for it as they came."""
    pairs_only = _pairs_only()
    if pairs_only is None or costs.nnz > pairs_only.MOST_FLOATS:
        return None
    power = _SPARED if costs.largest > 2.0**1000 else 0
    return pairs_only.pairs((costs.divided(power) if power else costs).dense(), maximize)


def _checked(values: Any, maximize: bool) -> Costs:
    is_float = values.dtype.kind == "f"
    try:
        costs: Costs = DenseCosts(values, summed=not is_float)
    except ValueError:
        if is_float:
            raise ValueError(_INVALID) from None
        costs = DenseCosts(values.astype(np.float64))
    if (costs.high if maximize else -costs.low) == np.inf:
        raise ValueError(_INVALID)
    power = overflow_of_sums(costs.extent, min(costs.shape)) if is_float else 0
    return costs.divided(power) if power else costs


def __dir__() -> list[str]:
    return __all__
