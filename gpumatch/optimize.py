"""SciPy's name from `scipy.optimize`, served by gpumatch, with limits and for many matrices.

There are three differences from SciPy 1.17. Integers are added as integers, so the result is exact
even if doubles would round. Only integers that are too large for that are turned into doubles.
Floats whose sums would overflow, from about 1e307 / n on, are divided by a power of two first. A
masked array is refused, not read through its mask.
"""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np
from numpy import asarray, ndarray

from gpumatch.assignment import assign
from gpumatch.costs import CostBatch, Costs, DenseCosts, overflow_of_sums
from gpumatch.dispatch.arguments import checked_threads
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import PROTOCOLS, as_array, refuse_masks
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.problems.frames import (
    are_plain,
    limit_of,
    limits_of,
    pairs_of_many,
    pairs_of_one,
    solver,
)
from gpumatch.running.interrupts import InterruptsHeld

__all__ = ["linear_sum_assignment", "linear_sum_assignment_batch"]

_SOLVERS: dict[Any, Any] = {}  # for small host matrices, by dtype, on first use
_LIMITED: dict[Any, Any] = {}  # the same, with a limit
_MOST_LIMIT = 2.0**500  # no sum of such limits overflows
_NO_GATES = np.empty(0)
_SPARED = 32  # floats are divided by so great a power of 2, so that sums do not overflow
_INFEASIBLE = "cost matrix is infeasible"
_INVALID = "matrix contains invalid numeric entries"


def linear_sum_assignment(
    cost_matrix: Any, maximize: bool = False, cost_limit: Any = None
) -> tuple[Any, Any]:
    """Assign rows to columns at least total cost, as many as there are on the smaller side.

    With ``cost_limit``, pairs that cost more are left out, as `gpumatch.assign` does. This is what
    a tracker asks for each frame. A frame of 50 tracks and 80 detections takes some microseconds.

    Parameters
    ----------
    cost_matrix : two-dimensional array
        Boolean, integer or floating up to float64. ``inf`` forbids a pair (``-inf`` to be
        maximised).
    maximize : bool
        Seek the greatest total instead.
    cost_limit : float, or array of length nrows, optional
        What an unmatched vertex of the smaller side costs (to be maximised: gains); a row's own, if
        it is an array. No row and column are both unmatched whose pair costs that or less, and no
        pair costs more. inf (-inf to be maximised) is no limit.

    Returns
    -------
    row_ind, col_ind : int64 arrays
        The assigned pairs, rows ascending; ``cost_matrix[row_ind, col_ind].sum()`` is the total.

    Raises
    ------
    ValueError
        If there are not two dimensions, an entry is NaN or an infinity of the wrong sign, the
        infinities leave no full assignment and there is no limit, or a limit is not finite.
    TypeError
        If the dtype cannot be cast to float64 safely, or the limit is no number.

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
    >>> linear_sum_assignment(cost, cost_limit=2)
    (array([1, 2]), array([1, 2]))
    """
    # The smallest problems take SciPy half a microsecond, so nothing is looked up here in vain.
    kind = type(cost_matrix)
    if kind is ndarray:
        values = cost_matrix
    else:
        is_plain = kind is list and cost_matrix and type(cost_matrix[0]) is list
        values = asarray(cost_matrix) if is_plain else _array(cost_matrix)
    if cost_limit is not None:
        if type(cost_limit) is not float or not -_MOST_LIMIT <= cost_limit <= _MOST_LIMIT:
            return _under_limit(values, maximize, cost_limit)
        try:
            limit = -cost_limit if maximize else cost_limit
            pairs = _LIMITED[values.dtype](values, maximize, limit, _NO_GATES)
        except (KeyError, TypeError):
            pairs = None
        return pairs if type(pairs) is tuple else _under_limit(values, maximize, cost_limit)
    try:
        pairs = _SOLVERS[values.dtype](values, maximize)
    except (KeyError, TypeError):
        pairs = None  # the first of its dtype, not of two dimensions, or not on the host
    if type(pairs) is tuple:
        return pairs
    if pairs is not None:
        raise _error(pairs)
    return _otherwise(cost_matrix, values, maximize)


def linear_sum_assignment_batch(
    cost_matrices: Any,
    maximize: bool = False,
    cost_limit: Any = None,
    *,
    sizes: Any = None,
    threads: int | None = None,
) -> list[tuple[Any, Any]]:
    """Assign rows to columns in each of many matrices, as `linear_sum_assignment` does in one.

    With limits, a tracker's frames are solved where they are, in a few compiled calls on all cores.

    Parameters
    ----------
    cost_matrices : list of two-dimensional arrays, or array of shape (B, n, m)
        Each as for `linear_sum_assignment`, and each of its own shape. It may have no rows.
    maximize : bool
        Seek the greatest totals instead.
    cost_limit : float, array of B floats, or B arrays, optional
        One limit, one for each matrix, or one for each row of each matrix. B arrays may be a list,
        or an array of shape (B, n).
    sizes : (rows, cols), optional
        For an array of shape (B, n, m): how many rows and columns of it each matrix has, from the
        first on. Each is an integer, or an array of B of them.
    threads : int, optional
        The default is all cores that this process may use.

    Returns
    -------
    list of (row_ind, col_ind)
        The assigned pairs of each matrix, int64, rows ascending.

    Raises
    ------
    ValueError, TypeError
        As `linear_sum_assignment`, with the number of the matrix; or if sizes or limits do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch.optimize import linear_sum_assignment_batch
    >>> frames = [np.array([[0.2, 0.9], [0.3, 0.8]]), np.empty((0, 3)), np.array([[0.6, 0.1]])]
    >>> for row_ind, col_ind in linear_sum_assignment_batch(frames, cost_limit=0.5):
    ...     print(row_ind, col_ind)
    [0] [0]
    [] []
    [0] [1]
    """
    threads = checked_threads(threads)
    problems: Any = cost_matrices
    if sizes is not None or not are_plain(problems):
        problems = CostBatch(cost_matrices, sizes)
    limits = limits_of(cost_limit, len(problems))
    found: Any = None
    if cost_limit is not None and not getattr(problems, "on_device", False):
        given = cost_limit if limits is None else limits
        found = pairs_of_many(problems, maximize, given, threads)
    if found is None:
        found = [None] * len(problems)
    if None not in found:
        return cast(list[tuple[Any, Any]], found)
    for k, problem in enumerate(problems):
        if found[k] is None:
            try:
                limit = cost_limit
                if limits is not None:
                    limit = limit_of(limits, k, problem.shape[0])
                found[k] = linear_sum_assignment(problem, maximize, limit)
            except (TypeError, ValueError) as exc:
                raise type(exc)(f"problem {k}: {exc}") from None
    return cast(list[tuple[Any, Any]], found)


def _under_limit(values: Any, maximize: bool, cost_limit: Any) -> tuple[Any, Any]:
    """The pairs for costs with a limit that the compiled function does not take at once."""
    is_on_host = isinstance(values, ndarray)
    if is_on_host and values.dtype not in _LIMITED:
        solve = solver(values.dtype)
        if solve is not None:
            _LIMITED[values.dtype] = solve
    if is_on_host:
        pairs = pairs_of_one(values, bool(maximize), cost_limit)
        if pairs is not None:
            return pairs
    return _by_assign(values, maximize, cost_limit)


def _array(cost_matrix: Any) -> Any:
    """The costs as an array on their device."""
    if is_tensor(cost_matrix):
        cost_matrix = source_of(cost_matrix)
    has = [name for name in (*PROTOCOLS, "to_numpy") if hasattr(cost_matrix, name)]
    is_of_numpy = "__array__" in has and not {"__cuda_array_interface__", "to_numpy"} & {*has}
    if has and not is_of_numpy:
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


def _by_assign(values: Any, maximize: bool, cost_limit: Any = None) -> tuple[Any, Any]:
    """The pairs by `assign`, or the reason why there are none."""
    if values.ndim != 2:
        raise ValueError(f"expected a matrix (2-D array), got a {values.ndim} array")
    if not np.can_cast(values.dtype, np.float64, "safe"):
        raise TypeError(
            f"Cannot cast array data from {values.dtype!r} to {np.dtype(np.float64)!r} "
            "according to the rule 'safe'"
        )
    costs = _checked(values, maximize)
    if cost_limit is None and not costs.on_device and not costs.is_integer:
        pairs = _pairs_of_floats(costs, maximize)
        if pairs is not None:
            return _pairs_or_error(pairs)
    try:
        assignment = assign(costs, maximize=bool(maximize), cost_limit=cost_limit)
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
