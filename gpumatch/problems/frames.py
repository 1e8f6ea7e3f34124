"""Pairs under limits without duals, of one matrix or of many: what trackers ask for.

`pairs_of_one` and `pairs_of_many` give costs to compiled functions as float64 or float32. These do
not take large matrices, arrays on a device, integers beyond 2**47 or numbers that are not valid,
and they do not exist with a Numba that lacks the parts for short calls. In these cases the result
is None: `gpumatch.assign` must answer, or raise the error.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gpumatch.numeric.arrays import as_array, has_length
from gpumatch.problems.request import checked_limit
from gpumatch.running.interrupts import InterruptsHeld

__all__ = [
    "Pairs",
    "are_plain",
    "limit_of",
    "limits_of",
    "mates_of",
    "pairs_of_many",
    "pairs_of_one",
    "solver",
    "total_of",
]

Pairs = tuple[np.ndarray, np.ndarray]

_FLOAT64 = np.dtype(np.float64)
_NATIVE = frozenset((_FLOAT64, np.dtype(np.float32)))
"""Dtypes that kernels read where they are. All others become float64."""
_NDIM, _DTYPE = operator.attrgetter("ndim"), operator.attrgetter("dtype")
_LARGEST = 2**47
"""Magnitude of integers and limits up to which sums of a few integers are exact in floats."""


@functools.cache
def _kernels() -> Any:
    """The modules of kernels for one matrix and for many, imported with the first call.

    None for a Numba that lacks the private parts which they import.
    """
    try:
        with InterruptsHeld():
            from gpumatch.cpu.assignment.small import frames, gated
    except (ImportError, AttributeError):
        return None
    return gated, frames


def solver(dtype: np.dtype) -> Callable[..., Any] | None:
    """For float64 or float32, ``solve(values, maximize, limit, gates)``; else None.

    `gpumatch.cpu.assignment.small.gated` says what it returns. The limit is to be minimised, and
    within the LARGEST of that module.
    """
    modules = _kernels()
    return None if modules is None else modules[0].solver(dtype)


# -- one matrix ------------------------------------------------------------------------------------


def pairs_of_one(values: np.ndarray, maximize: bool, cost_limit: Any) -> Pairs | None:
    """Return the pairs of a matrix on the host; None if another way must answer.

    `cost_limit` is a number, or an array with one for each row.

    Raises
    ------
    TypeError, ValueError
        If the number is no limit.
    """
    modules, costs = _kernels(), _as_floats(values)
    if modules is None or costs is None or values.ndim != 2:
        return None
    gated, _ = modules
    limit, gates = 0.0, gated.NO_GATES
    if has_length(cost_limit):
        own = _as_gates(cost_limit, values.shape[0])
        if own is None or values.size == 0:
            return None
        gates, costs = -own if maximize else own, costs.astype(_FLOAT64, copy=False)
    else:
        given = checked_limit(cost_limit, values.dtype.kind != "f", maximize)
        if given is None or abs(given) > _LARGEST:
            return None
        limit = float(-given if maximize else given)
    solve = gated.solver(costs.dtype)
    found = None if solve is None else solve(costs, maximize, limit, gates)
    return found if type(found) is tuple else None


def _as_floats(values: np.ndarray) -> np.ndarray | None:
    """Return the values as float64 or float32; None if that would round any, or change its kind."""
    dtype = values.dtype
    if dtype in _NATIVE:
        return values
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        return None
    may_round = dtype.kind in "iu" and dtype.itemsize == 8 and values.size > 0
    if may_round and max(int(values.max()), -int(values.min())) > _LARGEST:
        return None
    return values.astype(_FLOAT64)


def _as_gates(limits: Any, nrows: int) -> np.ndarray | None:
    """Return finite limits of so many rows as float64; None if they are anything else."""
    try:
        gates = np.asarray(as_array(limits, "cost_limit"))
    except (TypeError, ValueError):  # of different lengths
        return None
    own = _as_floats(gates) if gates.shape == (nrows,) else None
    if own is None or not (abs(own) <= _LARGEST).all():
        return None
    return own.astype(_FLOAT64, copy=False)


# -- many ------------------------------------------------------------------------------------------


def limits_of(cost_limit: Any, count: int) -> Sequence[Any] | None:
    """Return the limit of each of so many frames; None if one number is the limit of all.

    Each is a number, or has one for each row of its frame.

    Raises
    ------
    ValueError, TypeError
        If there are not as many, or if they are in no order, as in a dict.
    """
    if not has_length(cost_limit) or isinstance(cost_limit, str):
        return None
    given = cost_limit
    if not isinstance(cost_limit, (list, tuple)):
        cost_limit = as_array(cost_limit, "cost_limit")
        if cost_limit.ndim == 0:
            raise TypeError(f"cost_limit must be a number, a list or an array; got {given!r}")
    if len(cost_limit) != count:
        raise ValueError(
            f"cost_limit must be a number, or have {count} limits, one for each frame or for the "
            f"rows of each; got {len(cost_limit)}"
        )
    return cost_limit


def limit_of(limits: Any, k: int, rows: int) -> Any:
    """Return the limit of frame k, or those of its rows. A line of an array may be longer."""
    own = limits[k]
    return own[:rows] if getattr(limits, "ndim", 0) == 2 else own


def are_plain(frames: Any) -> bool:
    """True for NumPy's matrices in a list, or in one array of floats, which need no other look."""
    return _is_stack(frames) or (
        type(frames) is list
        and {*map(type, frames)} == {np.ndarray}
        and {*map(_NDIM, frames)} == {2}
    )


def _is_stack(frames: Any) -> bool:
    """True for an array of matrices that kernels read where it is."""
    return type(frames) is np.ndarray and frames.ndim == 3 and frames.dtype in _NATIVE


def pairs_of_many(
    frames: Iterable[Any], maximize: bool, cost_limit: Any, threads: int
) -> list[Pairs | None] | None:
    """Return the pairs of each frame; None for one of which a number is not valid.

    `frames` are arrays of two dimensions on the host. `cost_limit` is a number, or what `limits_of`
    returns. The result is None if another way must solve the frames, one by one.
    """
    modules = _kernels()
    matrices: Any = frames if _is_stack(frames) else _alike(tuple(frames))
    if modules is None or matrices is None or len(matrices) == 0:
        return None
    gated, module = modules
    limits, gates = np.empty(len(matrices)), gated.NO_GATES
    try:
        if has_length(cost_limit) and has_length(cost_limit[0]):
            matrices = tuple(matrix.astype(_FLOAT64, copy=False) for matrix in matrices)
            own = [
                _as_gates(limit_of(cost_limit, k, len(matrix)), len(matrix))
                for k, matrix in enumerate(matrices)
            ]
            if any(one is None for one in own):
                return None
            limits[:] = 0.0
            gates = np.concatenate([one for one in own if one is not None])
        else:
            given = np.asarray(cost_limit)
            if given.dtype.kind not in "iuf":
                return None
            given = given.astype(_FLOAT64)
            if not (abs(given) <= _LARGEST).all():
                return None
            limits[:] = given
    except (TypeError, ValueError):  # the call for one frame says what is wrong
        return None
    dtype = matrices[0].dtype
    places = module.places_in(matrices) if _is_stack(matrices) else module.places_of(matrices)
    if maximize:
        limits, gates = -limits, -gates
    found: list[Pairs | None] | None = module.run(places, dtype, maximize, limits, gates, threads)
    return found


def _alike(matrices: tuple[Any, ...]) -> tuple[np.ndarray, ...] | None:
    """Return matrices of one dtype that kernels read; None if one is anything else."""
    if {*map(type, matrices)} != {np.ndarray}:
        return None
    dtypes = {*map(_DTYPE, matrices)}
    if len(dtypes) == 1 and dtypes <= _NATIVE:
        return matrices
    floats = [_as_floats(matrix) for matrix in matrices if matrix.ndim == 2]
    if any(values is None for values in floats):
        return None
    return tuple(values.astype(_FLOAT64, copy=False) for values in floats if values is not None)


# -- of pairs --------------------------------------------------------------------------------------

_MATCH: list[Any] = []  # a compiled function, on first use; and for each dtype, in _TOTALS
_TOTALS: dict[Any, Any] = {}


def total_of(values: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> float:
    """Return what int64 pairs cost."""
    try:
        return float(_TOTALS[values.dtype](values, rows, cols))
    except KeyError:
        mates = _mates_module() if values.dtype.kind in "biuf" else None
        total = None if mates is None or values.dtype.itemsize > 8 else mates.summer(values.dtype)
        _TOTALS[values.dtype] = total or _numpys_total
        return total_of(values, rows, cols)


def mates_of(
    rows: np.ndarray, cols: np.ndarray, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mates of all rows and columns of int64 pairs, int32, -1 for none."""
    row_to_col, col_to_row = np.empty(shape[0], np.intc), np.empty(shape[1], np.intc)
    if not _MATCH:
        mates = _mates_module()
        _MATCH.append((mates and mates.matcher()) or _write_mates)
    _MATCH[0](rows, cols, row_to_col, col_to_row)
    return row_to_col, col_to_row


@functools.cache
def _mates_module() -> Any:
    """The module of kernels for pairs; None for a Numba that lacks private parts."""
    try:
        with InterruptsHeld():
            from gpumatch.cpu.assignment.small import mates
    except (ImportError, AttributeError):
        return None
    return mates


def _numpys_total(values: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> float:
    return float(values[rows, cols].sum(dtype=_FLOAT64))


def _write_mates(rows: Any, cols: Any, row_to_col: np.ndarray, col_to_row: np.ndarray) -> None:
    row_to_col[:] = col_to_row[:] = -1
    row_to_col[rows], col_to_row[cols] = cols, rows
