"""One small problem on the host, dense or sparse, solved by one compiled call."""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np

from gpumatch.contracts.batch import (
    BAD,
    INFEASIBLE,
    LARGEST,
    LARGEST_INTEGER,
    LARGEST_PATH,
    REACHED,
    SOLVED,
)
from gpumatch.costs import DenseCosts, native
from gpumatch.dispatch.registry import ONE_OF_A_BATCH, ONE_WARM, SMALL_SPARSE, load
from gpumatch.interop.sparse import labels_of
from gpumatch.numeric.arrays import for_kernels, has_length
from gpumatch.numeric.exact_sums import magnitude
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.problems.request import CARDINALITIES, checked_limit, wish_for
from gpumatch.results.assignment import Assignment, SmallAssignment
from gpumatch.running import compile_time

__all__ = ["SMALL", "assign_small", "assign_small_sparse", "numbers_for", "violator_in"]

SMALL = 2**16
"""Costs up to which one compiled call answers. It ends within milliseconds, and no tick interrupts
it.
"""
ROUNDED = 2.0**53
"""A magnitude beyond which floats do not hold all integers."""

_INT32, _INT64, _FLOAT64, _BOOL = map(np.dtype, ("i4", "i8", "f8", "?"))
_NO_DUALS = np.empty(0)


def assign_small(
    values: np.ndarray,
    maximize: bool,
    cardinality: str,
    cost_limit: Any,
    initial: Any = None,
    limits: np.ndarray | None = None,
) -> Assignment | None:
    """Return the assignment of a matrix by one compiled call; None if another way must answer.

    That is so if the matrix is empty, if an argument is not valid, or if numbers are so large that
    floats do not hold their sums. `limits`, of each row, are int64 or finite float64, and take the
    place of one limit. From an `initial` assignment there may be two calls: if it does
    not help, the second begins from nothing.

    Raises
    ------
    InfeasibleError
        If no full assignment exists.
    ValueError
        If a cost is not valid.
    """
    began, compiled = time.perf_counter(), compile_time.spent()
    if cardinality not in CARDINALITIES or type(maximize) is not bool or values.size == 0:
        return None
    if has_length(cost_limit) or (limits is not None and cardinality == "maximum"):
        return None
    is_integer = values.dtype.kind != "f"
    is_taken = values.dtype == _INT64 and values.flags.c_contiguous
    costs = for_kernels(values) if is_taken else native(values)
    if costs is None:
        return None
    limit = None if cost_limit is None else checked_limit(cost_limit, is_integer, maximize)
    if limits is not None:
        limit = 0.0 if limits.dtype.kind == "f" else 0  # which tells the kind of the results
    nrows, ncols = costs.shape
    is_integer, largest = numbers_for(is_integer, cardinality, limit, min(nrows, ncols))
    most = limit if limits is None else magnitude(limits)
    if most is not None and abs(most) > largest:
        return None
    wish = wish_for(maximize, cardinality, limit)
    both = nrows + ncols
    mates, numbers = np.empty((1, both), _INT32), np.empty((1, both + nrows), _FLOAT64)
    totals, ends = np.empty((2, 1), _FLOAT64), np.zeros((3, 1), _INT64)
    marks = np.zeros((1, both), _BOOL) if wish.wants_maximum else None
    gates = None
    if limits is not None:
        gates = (-limits if maximize else limits).astype(_FLOAT64)[None]
    elif wish.takes_equal:
        gates = np.empty((1, 1), _FLOAT64)
        gates[0, 0] = wish.limit
    problem = (
        costs.reshape(-1), _place(nrows, ncols), wish, gates, largest,  # IN
        (mates, numbers, totals, marks, ends),  # OUT
    )  # fmt: skip
    if initial is None:
        load(ONE_OF_A_BATCH)(*problem)
    else:
        start = _start(initial, costs.shape, cardinality == "full" and limit is None)
        if start is None:
            return None
        load(ONE_WARM)(*problem[:2], start, *problem[2:])
        if ends.item(0) == BAD:  # the general way says how
            return None
    compiled = compile_time.spent() - compiled
    end, size, kept = ends[:, 0].tolist()
    if end == INFEASIBLE:
        raise InfeasibleError(*violator_in(mates[0], nrows))
    if end != SOLVED:
        _check(values, maximize)
        return None
    gap = totals.item(1)
    if is_integer:
        numbers, totals = numbers.view(_INT64), totals.view(_INT64)
    cover = None
    if marks is not None:
        cover = marks[0, :nrows].nonzero()[0], marks[0, nrows:].nonzero()[0]
    return _assignment(
        mates[0], numbers[0], nrows, size, (totals.item(0) + 0, int(gap) if is_integer else gap),
        (maximize, cardinality, limit if limits is None else limits), cover,
        (began, compiled), kept,
    )  # fmt: skip


def _start(
    initial: Any, shape: tuple[int, int], is_full: bool
) -> tuple[np.ndarray, np.ndarray, bool] | None:
    """Return the columns of the rows to begin with, the duals, and whether they may help.

    The duals are those of the columns, or of the rows if these are more, as the problem is then
    transposed. None if the general way must look at them.
    """
    nrows, ncols = shape
    mates = getattr(initial, "row_to_col", initial)
    if type(mates) is not np.ndarray or mates.dtype.kind != "i" or mates.shape != (nrows,):
        return None
    if not isinstance(initial, Assignment):
        return mates.astype(_INT64), _NO_DUALS, False
    duals = initial.row_dual if nrows > ncols else initial.col_dual
    side = max(shape)
    if type(duals) is not np.ndarray or duals.dtype.char not in "dqlif" or duals.shape != (side,):
        return None
    return mates.astype(_INT64), duals.astype(_FLOAT64), is_full


def assign_small_sparse(
    matrix: Any, maximize: bool, cardinality: str, cost_limit: Any
) -> Assignment | None:
    """Return the assignment of a sparse matrix in CSR or CSC by one compiled call; else None.

    That is so if not all of the smaller side must be matched, if an argument or an array is not
    valid, or if paths would read many entries.

    Raises
    ------
    InfeasibleError
        If no full assignment exists.
    """
    began, compiled = time.perf_counter(), compile_time.spent()
    if cardinality != "full" or cost_limit is not None or type(maximize) is not bool:
        return None
    if labels_of(matrix) != (None, None):
        return None
    arrays, by_rows = (matrix.indptr, matrix.indices, matrix.data), matrix.format == "csr"
    nrows = matrix.shape[0]
    found = load(SMALL_SPARSE)(arrays, matrix.shape, by_rows=by_rows, maximize=maximize)
    compiled = compile_time.spent() - compiled
    if found is None:
        return None
    end, mates, numbers, ends, is_integer = found
    if end == INFEASIBLE:
        raise InfeasibleError(*violator_in(mates, nrows))
    _, size, objective, gap = ends.tolist()
    if is_integer:
        numbers, objective, gap = numbers.view(_INT64), int(objective), int(gap)
    return _assignment(
        mates, numbers, nrows, int(size), (objective, gap), (maximize, cardinality, None), None,
        (began, compiled),
    )  # fmt: skip


def _assignment(
    mates: np.ndarray,
    numbers: np.ndarray,
    nrows: int,
    size: int,
    found: tuple[Any, Any],
    request: tuple[bool, str, Any],
    cover: Any,
    times: tuple[float, float],
    kept: int = 0,
) -> Assignment:
    """Return the result that a kernel has written: mates, duals, and the costs of the rows' pairs.

    `found` is the objective and the gap. `request` has ``maximize``, the cardinality and the
    limit. `times` are when it began, and the seconds of compilation. `kept` are the rows that have
    the columns of the start.
    """
    (objective, gap), (maximize, cardinality, limit), (began, compiled) = found, request, times
    return SmallAssignment(
        mates, numbers, nrows, (compiled, time.perf_counter() - began - compiled), kept,
        size=size, objective=objective, gap=gap,
        maximize=maximize, cardinality=cardinality, cost_limit=limit, cover=cover,
    )  # fmt: skip


def _check(values: np.ndarray, maximize: bool) -> None:
    """Raise ValueError if a cost is NaN, or an infinity that does not forbid."""
    DenseCosts(values, summed=False).check_sign(maximize)


def violator_in(mates: np.ndarray, nrows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of the Hall violator that a kernel has marked in the mates."""
    marks = mates == REACHED
    return marks[:nrows].nonzero()[0], marks[nrows:].nonzero()[0]


@functools.lru_cache(maxsize=1024)
def _place(nrows: int, ncols: int) -> np.ndarray:
    """Return the place of the one problem in an array."""
    return np.array(((0, ncols, nrows, ncols),), np.int64)


def numbers_for(
    is_integer: bool, cardinality: str, limit: float | None, side: int
) -> tuple[bool, float]:
    """Return if results are integers, and the greatest magnitude that kernels take.

    ``side`` is the number of vertices on a problem's smaller side, or the greatest of these.
    """
    if not is_integer:
        return False, LARGEST
    if cardinality == "maximum" and limit is not None:  # which forbids pairs
        return True, min(LARGEST_INTEGER, LARGEST_PATH / max(side, 1))
    return (False, ROUNDED) if isinstance(limit, float) else (True, LARGEST_INTEGER)
