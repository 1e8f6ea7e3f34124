"""The functions of `lap` (lapx), served by gpumatch: a tracker changes one import.

``from gpumatch.interop import lap`` takes the place of ``import lap``. Names, parameters and what
is returned are those of lapx 0.11. Several names of lapx are one problem solved by different
codes. Here one code solves it, so they differ in what they return:

=================  =========================================================  =====================
function           returns, after the total if ``return_cost``                limit
=================  =========================================================  =====================
`lapjv`            mates of the rows and of the columns, int32, -1 for none   ``cost_limit``
`lapjvx`           rows (int64) and columns (int32) of the pairs              ``cost_limit``
`lapjvxa`          pairs, int32, of shape (k, 2)                              ``cost_limit``
`lapjvs`           rows and columns, int64; or mates                          none
`lapjvsa`          pairs, int64                                               none
`lapjvc`           rows and columns, int32; forbidden rows may stay           none
`lapjvr`           rows and columns, int64; or pairs                          ``cost_limit``
`lapjvh`           the same                                                   ``cost_limit``
`lapmod`           mates, int32, of sparse costs                              none
=================  =========================================================  =====================

Those with ``_batch`` take many problems, on all cores. They return lists.

With a finite ``cost_limit``, a pair that costs more is left out: an unmatched row and an unmatched
column cost half of the limit each, as in lapx. Rows of pairs ascend. Where several assignments are
best, another one than lapx's may be found. NaN and -inf are a ValueError, whereas lapx does not
look for them; `lapjvc` takes them for forbidden, as lapx's does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy import empty, ndarray

from gpumatch.assignment import assign
from gpumatch.costs import SparseCosts
from gpumatch.dispatch.arguments import check_one_of, checked_threads
from gpumatch.numeric.arrays import as_array
from gpumatch.optimize import linear_sum_assignment, linear_sum_assignment_batch
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.problems.frames import mates_of, total_of

__all__ = [
    "FP_1",
    "FP_2",
    "FP_DYNAMIC",
    "LARGE",
    "lapjv",
    "lapjvc",
    "lapjvh",
    "lapjvh_batch",
    "lapjvr",
    "lapjvr_batch",
    "lapjvs",
    "lapjvs_batch",
    "lapjvsa",
    "lapjvsa_batch",
    "lapjvx",
    "lapjvx_batch",
    "lapjvxa",
    "lapjvxa_batch",
    "lapmod",
    "lapmod_batch",
]

LARGE = 1_000_000
"""The bound of lapx's sparse costs. Here it bounds nothing."""
FP_1, FP_2, FP_DYNAMIC = 1, 2, 3
"""Versions of a step of lapx's `lapmod`. Here they make no difference."""

DENSE = 2**10
"""Costs up to which `lapmod` makes a matrix of sparse costs, as it does if half of it is stored."""
PRECISIONS = ("native", "float32", "float64")
OUTPUTS = ("indices", "pairs")


# -- mates -----------------------------------------------------------------------------------------


def _array(values: Any) -> np.ndarray:
    return np.asarray(as_array(values, "the costs"))


def lapjv(
    cost: Any, extend_cost: bool = False, cost_limit: float = math.inf, return_cost: bool = True
) -> Any:
    """Return the least total cost, and the mates of rows and columns.

    Parameters
    ----------
    cost : array of shape (n, m)
        The costs, to be minimised; ``inf`` forbids a pair.
    extend_cost : bool
        Allow as many rows as columns or not. A finite limit allows it, too.
    cost_limit : float
        Leave out a pair that costs more.
    return_cost : bool
        Return the total.

    Returns
    -------
    total : float
        The sum of the pairs' costs, if `return_cost`. It is inf if no full assignment exists; then
        some pairs are forbidden ones.
    x : int32 array of length n
        The column of each row, -1 for none.
    y : int32 array of length m
        The row of each column, -1 for none.

    Raises
    ------
    ValueError
        If there are not two dimensions, rows and columns are not allowed to differ, or a number is
        not valid.

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch.interop import lap
    >>> cost = np.array([[0.2, 0.9, 0.8], [0.3, 0.1, 0.9]])
    >>> total, x, y = lap.lapjv(cost, extend_cost=True, cost_limit=0.15)
    >>> x, y
    (array([-1,  1], dtype=int32), array([-1,  1, -1], dtype=int32))
    """
    if type(cost) is not ndarray:
        cost = _array(cost)
    rows, cols, is_full = _pairs(cost, extend_cost, cost_limit)
    x, y = mates_of(rows, cols, cost.shape)
    if not return_cost:
        return x, y
    return total_of(cost, rows, cols) if is_full else math.inf, x, y


def lapmod(
    n: int,
    cc: Any,
    ii: Any,
    kk: Any,
    fast: bool = True,
    return_cost: bool = True,
    fp_version: int = FP_DYNAMIC,
) -> Any:
    """Return the least total cost of sparse costs, and the mates of rows and columns.

    Parameters
    ----------
    n : int
        Rows and columns.
    cc, ii, kk : arrays
        Costs, where each row begins and ends among them, and their columns: ``(cc, kk, ii)`` is
        SciPy's ``(data, indices, indptr)``. Costs must be finite, and not below 0.
    fast, fp_version
        Nothing here depends on them.
    return_cost : bool
        Return the total.

    Returns
    -------
    total, x, y
        As of `lapjv`.

    Raises
    ------
    ValueError
        If the arrays are no such matrix.
    """
    cc, ii, kk = _array(cc), _array(ii), _array(kk)
    _check_sparse(n, cc, ii, kk)
    costs = SparseCosts((ii, kk, cc, (n, n)))
    if n * n <= max(DENSE, 2 * cc.size):
        return lapjv(costs.dense(), return_cost=return_cost)
    try:
        a = assign(costs, cardinality="full")
        total = float(a.objective)
    except InfeasibleError:
        a, total = assign(costs, cardinality="maximum"), math.inf
    x, y = mates_of(*_completed(a.row_ind, a.col_ind, (n, n)), (n, n))
    return (total, x, y) if return_cost else (x, y)


# -- pairs -----------------------------------------------------------------------------------------


def lapjvx(
    cost: Any, extend_cost: bool = False, cost_limit: float = math.inf, return_cost: bool = True
) -> Any:
    """Return the least total cost, and the rows (int64) and columns (int32) of the pairs.

    Parameters and errors are those of `lapjv`.
    """
    cost = _array(cost)
    rows, cols, is_full = _pairs(cost, extend_cost, cost_limit)
    found = rows, cols.astype(np.int32)
    return (_total(cost, rows, cols, is_full), *found) if return_cost else found


def lapjvxa(
    cost: Any, extend_cost: bool = False, cost_limit: float = math.inf, return_cost: bool = True
) -> Any:
    """Return the least total cost, and the pairs as an int32 array of shape (k, 2).

    Parameters and errors are those of `lapjv`.
    """
    cost = _array(cost)
    rows, cols, is_full = _pairs(cost, extend_cost, cost_limit)
    found = _stacked(rows, cols, np.int32)
    return (_total(cost, rows, cols, is_full), found) if return_cost else found


def lapjvs(
    cost: Any,
    extend_cost: bool | None = None,
    return_cost: bool = True,
    jvx_like: bool = True,
    prefer_float32: bool = True,
) -> Any:
    """Return the least total cost, and the rows and columns of the pairs, int64.

    Parameters
    ----------
    cost, return_cost
        As for `lapjv`.
    extend_cost : bool, optional
        False refuses costs of which rows and columns differ.
    jvx_like : bool
        If False, return mates as `lapjv` does, int64.
    prefer_float32 : bool
        Nothing here depends on it: costs are not rounded.

    Raises
    ------
    ValueError
        As of `lapjv`, and if no full assignment exists.
    """
    cost = _array(cost)
    rows, cols = _full_pairs(cost, extend_cost is not False)
    found: tuple[Any, Any] = rows, cols
    if not jvx_like:
        x, y = mates_of(rows, cols, cost.shape)
        found = x.astype(np.int64), y.astype(np.int64)
    return (total_of(cost, rows, cols), *found) if return_cost else found


def lapjvsa(
    cost: Any,
    extend_cost: bool | None = None,
    return_cost: bool = True,
    prefer_float32: bool = True,
) -> Any:
    """Return the least total cost, and the pairs as an int64 array of shape (k, 2).

    Parameters and errors are those of `lapjvs`.
    """
    cost = _array(cost)
    rows, cols = _full_pairs(cost, extend_cost is not False)
    found = _stacked(rows, cols, np.int64)
    return (total_of(cost, rows, cols), found) if return_cost else found


def lapjvc(cost: Any, return_cost: bool = True) -> Any:
    """Return the least total cost of as many pairs as can be, and their rows and columns, int32.

    NaN and both infinities forbid a pair. Rows and columns may differ in number.
    """
    cost = _array(cost)
    _check_dimensions(cost)
    try:
        rows, cols = linear_sum_assignment(cost)
    except ValueError:
        allowed = np.where(np.isfinite(cost), cost, math.inf)
        rows, cols = assign(allowed, cardinality="maximum")
    found = rows.astype(np.int32), cols.astype(np.int32)
    return (total_of(cost, rows, cols), *found) if return_cost else found


def lapjvr(
    cost: Any,
    extend_cost: bool = False,
    cost_limit: float = math.inf,
    return_cost: bool = True,
    *,
    precision: str = "native",
    output: str = "indices",
) -> Any:
    """Return the least total cost, and the rows and columns of the pairs, int64.

    Parameters
    ----------
    cost, extend_cost, cost_limit, return_cost
        As for `lapjv`.
    precision : {"native", "float32", "float64"}
        Round the costs to a dtype before they are compared.
    output : {"indices", "pairs"}
        Return rows and columns, or an array of shape (k, 2).

    Raises
    ------
    ValueError
        As of `lapjv`, and if no full assignment exists.
    """
    cost = _array(cost)
    rows, cols, is_full = _pairs(_in_precision(cost, precision), extend_cost, cost_limit)
    if not is_full:
        raise ValueError("cost matrix is infeasible")
    found = _in_form(rows, cols, output)
    if not return_cost:
        return found
    total = total_of(cost, rows, cols)
    return (total, *found) if output == "indices" else (total, found)


lapjvh = lapjvr


# -- batches ---------------------------------------------------------------------------------------


def lapjvx_batch(
    costs: Any,
    extend_cost: bool = False,
    cost_limit: float = math.inf,
    return_cost: bool = True,
    n_threads: int | None = 0,
) -> Any:
    """Return the totals of many problems, and lists of the rows and columns of their pairs, int64.

    Parameters
    ----------
    costs : array of shape (B, n, m)
        The costs of each problem.
    extend_cost, cost_limit, return_cost
        As for `lapjv`.
    n_threads : int, optional
        0 or None: all cores. Below 0: one.

    Returns
    -------
    totals : float64 array of length B
        If `return_cost`.
    rows, cols : lists of B arrays
    """
    costs, pairs, is_full = _pairs_of_batch(costs, extend_cost, cost_limit, n_threads)
    found = [rows for rows, _ in pairs], [cols for _, cols in pairs]
    return (_totals(costs, pairs, is_full), *found) if return_cost else found


def lapjvxa_batch(
    costs: Any,
    extend_cost: bool = False,
    cost_limit: float = math.inf,
    return_cost: bool = True,
    n_threads: int | None = 0,
) -> Any:
    """Return the totals of many problems, and a list of their pairs, int64 of shape (k, 2).

    Parameters are those of `lapjvx_batch`.
    """
    costs, pairs, is_full = _pairs_of_batch(costs, extend_cost, cost_limit, n_threads)
    found = [_stacked(rows, cols, np.int64) for rows, cols in pairs]
    return (_totals(costs, pairs, is_full), found) if return_cost else found


def lapjvs_batch(
    costs: Any,
    extend_cost: bool = False,
    return_cost: bool = True,
    n_threads: int | None = 0,
    prefer_float32: bool = True,
) -> Any:
    """Return the totals of many problems, and lists of the rows and columns of their pairs, int64.

    Parameters are those of `lapjvx_batch` and `lapjvs`. A problem without a full assignment is a
    ValueError.
    """
    costs, pairs = _full_pairs_of_batch(costs, extend_cost, math.inf, n_threads)
    found = [rows for rows, _ in pairs], [cols for _, cols in pairs]
    return (_totals(costs, pairs), *found) if return_cost else found


def lapjvsa_batch(
    costs: Any,
    extend_cost: bool = False,
    return_cost: bool = True,
    n_threads: int | None = 0,
    prefer_float32: bool = True,
) -> Any:
    """Return the totals of many problems, and a list of their pairs, int64 of shape (k, 2).

    Parameters and errors are those of `lapjvs_batch`.
    """
    costs, pairs = _full_pairs_of_batch(costs, extend_cost, math.inf, n_threads)
    found = [_stacked(rows, cols, np.int64) for rows, cols in pairs]
    return (_totals(costs, pairs), found) if return_cost else found


def lapjvr_batch(
    costs: Any,
    extend_cost: bool = False,
    cost_limit: float = math.inf,
    return_cost: bool = True,
    n_threads: int | None = 0,
    *,
    precision: str = "native",
    output: str = "indices",
) -> Any:
    """Return the totals of many problems, and lists of the rows and columns of their pairs, int64.

    Parameters and errors are those of `lapjvx_batch` and `lapjvr`.
    """
    given = _array(costs)
    rounded = _in_precision(given, precision)
    _, pairs = _full_pairs_of_batch(rounded, extend_cost, cost_limit, n_threads)
    forms = [_in_form(rows, cols, output) for rows, cols in pairs]
    if output == "pairs":
        return (_totals(given, pairs), forms) if return_cost else forms
    found = [rows for rows, _ in forms], [cols for _, cols in forms]
    return (_totals(given, pairs), *found) if return_cost else found


lapjvh_batch = lapjvr_batch


def lapmod_batch(
    problems: Sequence[tuple[int, Any, Any, Any]],
    fast: bool = True,
    return_cost: bool = True,
    fp_version: int = FP_DYNAMIC,
    n_threads: int | None = 0,
) -> Any:
    """Return the totals of many sparse problems, and lists of the mates of their rows and columns.

    Each problem is a tuple ``(n, cc, ii, kk)``, as for `lapmod`. Each takes all threads, one after
    the other.
    """
    found = [lapmod(*problem, fast, True, fp_version) for problem in problems]
    mates = [x for _, x, _ in found], [y for _, _, y in found]
    totals = np.array([total for total, _, _ in found], np.float64)
    return (totals, *mates) if return_cost else mates


# -- what they share -------------------------------------------------------------------------------


def _pairs(cost: np.ndarray, extend: bool, limit: float) -> tuple[np.ndarray, np.ndarray, bool]:
    """The rows and columns of the pairs, and whether all are allowed."""
    if cost.ndim != 2:
        _check_dimensions(cost)
    _check_limit(limit)
    if limit < math.inf:
        return *linear_sum_assignment(cost, False, float(limit)), True
    _check_shape(cost.shape, extend)
    try:
        return *linear_sum_assignment(cost), True
    except ValueError:
        a = assign(cost, cardinality="maximum")  # raises if a number is not valid
        return *_completed(a.row_ind, a.col_ind, cost.shape), False


def _full_pairs(cost: np.ndarray, extend: bool) -> tuple[np.ndarray, np.ndarray]:
    """The rows and columns of the pairs of a full assignment."""
    _check_dimensions(cost)
    _check_shape(cost.shape, extend)
    return linear_sum_assignment(cost)


def _pairs_of_batch(
    costs: Any, extend: bool, limit: float, n_threads: int | None
) -> tuple[np.ndarray, list[Any], np.ndarray]:
    """The costs as an array, the pairs of each problem, and whether all of them are allowed."""
    costs = _array(costs)
    _check_dimensions(costs, 3)
    _check_limit(limit)
    threads = checked_threads(max(int(n_threads), 1) if n_threads else None)
    are_full = np.ones(len(costs), bool)
    if limit < math.inf:
        pairs = linear_sum_assignment_batch(costs, cost_limit=float(limit), threads=threads)
        return costs, pairs, are_full
    _check_shape(costs.shape[1:], extend)
    batch: Any = assign(costs, threads=threads, on_error="mark")
    for k, error in batch.errors.items():
        if not isinstance(error, InfeasibleError):
            raise error
        are_full[k] = False
    row_to_col = batch.row_to_col
    rows_of = [(mates >= 0).nonzero()[0] for mates in row_to_col]
    pairs = [(rows, mates[rows].astype(np.int64)) for rows, mates in zip(rows_of, row_to_col)]
    for k in (~are_full).nonzero()[0].tolist():
        pairs[k] = _pairs(costs[k], extend, limit)[:2]
    return costs, pairs, are_full


def _full_pairs_of_batch(
    costs: Any, extend: bool, limit: float, n_threads: int | None
) -> tuple[np.ndarray, list[Any]]:
    """The costs as an array, and the pairs of each problem, all of them allowed."""
    costs, pairs, are_full = _pairs_of_batch(costs, extend, limit, n_threads)
    if not are_full.all():
        raise ValueError(f"problem {int(are_full.argmin())}: cost matrix is infeasible")
    return costs, pairs


def _completed(rows: Any, cols: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The pairs, and forbidden ones for the vertices that are left, rows ascending."""
    left = [np.setdiff1d(np.arange(side), part) for side, part in zip(shape, (rows, cols))]
    count = min(map(len, left))
    rows, cols = (np.concatenate([part, more[:count]]) for part, more in zip((rows, cols), left))
    order = rows.argsort()
    return rows[order].astype(np.int64), cols[order].astype(np.int64)


def _total(cost: np.ndarray, rows: np.ndarray, cols: np.ndarray, is_full: bool) -> float:
    return total_of(cost, rows, cols) if is_full else math.inf


def _totals(costs: np.ndarray, pairs: list[Any], are_full: np.ndarray | None = None) -> np.ndarray:
    totals = np.array([total_of(cost, *found) for cost, found in zip(costs, pairs)], np.float64)
    if are_full is not None:
        totals[~are_full] = math.inf
    return totals


def _stacked(rows: np.ndarray, cols: np.ndarray, dtype: Any) -> np.ndarray:
    found = empty((len(rows), 2), dtype)
    found[:, 0], found[:, 1] = rows, cols
    return found


def _in_form(rows: np.ndarray, cols: np.ndarray, output: str) -> Any:
    check_one_of("output", output, OUTPUTS)
    return (rows, cols) if output == "indices" else _stacked(rows, cols, np.int64)


def _in_precision(cost: np.ndarray, precision: str) -> np.ndarray:
    check_one_of("precision", precision, PRECISIONS)
    return cost if precision == "native" else cost.astype(precision, copy=False)


def _check_dimensions(cost: np.ndarray, dimensions: int = 2) -> None:
    if cost.ndim != dimensions:
        raise ValueError(f"{dimensions}-dimensional array expected, got {cost.ndim} dimensions")


def _check_shape(shape: tuple[int, ...], extend: bool) -> None:
    if shape[0] != shape[1] and not extend:
        raise ValueError(
            f"square cost array expected, got the shape {shape}: pass extend_cost=True, "
            "or where there is one, a finite cost_limit"
        )


def _check_limit(limit: float) -> None:
    if type(limit) is not float and not isinstance(limit, Real):
        raise TypeError(f"cost_limit must be a number; got {type(limit).__name__}")
    if not limit > -math.inf:
        raise ValueError(f"cost_limit must be finite or positive infinity; got {limit}")


def _check_sparse(n: int, cc: np.ndarray, ii: np.ndarray, kk: np.ndarray) -> None:
    if n <= 0:
        raise ValueError(f"n must be positive; got {n}")
    if ii.shape != (n + 1,):
        raise ValueError(f"ii must have n + 1 = {n + 1} entries; got the shape {ii.shape}")
    if cc.size == 0 or not (np.isfinite(cc) & (cc >= 0)).all():
        raise ValueError("cc must have costs that are finite and not below 0")
