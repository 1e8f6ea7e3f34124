"""What the kernels for batches are given and what they give back, on the host and on a device."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Control, Costs

__all__ = [
    "ENDLESS",
    "INFEASIBLE",
    "LARGEST",
    "LARGEST_INTEGER",
    "LARGEST_PATH",
    "SOLVED",
    "UNFIT",
    "UNSOLVED",
    "BatchTask",
    "DeviceBatch",
    "DeviceResults",
    "Together",
]

SOLVED, INFEASIBLE, UNFIT, UNSOLVED = range(4)  # how a problem of a batch may end
LARGEST, LARGEST_INTEGER, LARGEST_PATH = 2.0**990, 2.0**47, 2.0**48
"""Magnitudes C of costs and of the limit that kernels in float64 take: of floats, of integers, and
of integers n times if pairs may be forbidden, for n vertices of the smaller side.

Kernels price columns by shortest paths, and no term of theirs is beyond so many times C:

- 16 without forbidden pairs. Each row may take any column that is free, or none, so that duals are
  within 4 C, and distances and their parts within 16 C. For C = 2**47 this is 2**51.
- 32 n with forbidden pairs. A path has up to 2 n costs, so that prices are within 4 n C, or within
  7 n C after 3 n bids of a row that finds its second column 2 C farther. The parts of a distance
  are then within 22 n C. For n C = 2**48 this is 2**53.

Below 2**53, sums of integers are exact in float64. Floats may overflow only where the duals are
added up: 2 n of them are within 64 n**2 C, which is finite for n up to 2**13.
"""
ENDLESS = 2**31 - 1


@dataclasses.dataclass
class BatchTask:
    """Many small dense problems, what is wanted of each, and the arrays for the results.

    Attributes
    ----------
    read : function
        ``read(first, last, room)`` gives the costs of a range of problems, one after the other in
        one dtype. It may copy them into ``room(count)``, an array of so many float64.
    in_place : bool
        True if `read` returns the caller's own array, without a copy.
    places : int64 array of shape (B, 4)
        Where each problem's costs start if all were in one array, the step from row to row, the
        rows and the columns.
    total : int
        The length of that array.
    takes : bool array of length B
        Which problems are to be solved.
    wish : (float, float, bool, float, bool)
        Sign, -1 if costs are to be maximised, else 1. What it costs a row to go without a column,
        inf if it must have one. Whether a row rather takes a column that costs as much. What
        forbidden pairs cost more than. Whether as many pairs as can be are wanted.
    largest : float
        Problems with greater magnitudes are not taken.
    results : tuple of five arrays
        As `gpumatch.cpu.assignment.small.batch` lays them out: the mates, the numbers, their
        totals, the marks of the vertex cover, and how each problem ended.
    control : Control
    threads : int
        CPU threads.
    """

    read: Callable[[int, int, Any], Any]
    in_place: bool
    places: Any
    total: int
    takes: Any
    wish: tuple[float, float, bool, float, bool]
    largest: float
    results: tuple[Any, ...]
    control: Control
    threads: int = 1


class DeviceResults(NamedTuple):
    """What is found of each problem of a batch, on the device: arrays, or their addresses.

    Attributes
    ----------
    mates : int32 array of shape (B, most_rows + most_cols)
        The columns of rows, then the rows of columns; -1 for none.
    numbers : int64 or float64 array of shape (B, 2 * most_rows + most_cols)
        Duals of rows and of columns, then what each row pays.
    objective : int64 or float64 array of length B
    gap : float64 array of length B
    pairs, states : int64 arrays of length B
        The number of pairs, and SOLVED, INFEASIBLE, UNFIT or UNSOLVED.
    proven : bool array of length B
    most_rows, most_cols : int
    """

    mates: Any
    numbers: Any
    objective: Any
    gap: Any
    pairs: Any
    states: Any
    proven: Any
    most_rows: int
    most_cols: int


class Together(NamedTuple):
    """What it takes to solve problems of a batch as one, if all rows of each must be matched.

    Attributes
    ----------
    costs_of : callable
        The costs of some pairs, from their shape and their CSR: indptr, indices, weights.
    control : Control
    """

    costs_of: Callable[[tuple[int, int], Any, Any, Any], Costs]
    control: Control


@dataclasses.dataclass
class DeviceBatch:
    """Many dense problems on a device, what is wanted of each, and the arrays for the results.

    Attributes
    ----------
    dtype : dtype
        Of all costs.
    addresses, steps : int64 arrays of length B, on the host
        Where the costs of each problem begin, and the step from row to row. If all problems are of
        one size, those of the first are enough, in any sequence.
    sizes : int64 array of shape (B, 2), on the host
        Rows and columns.
    apart : int, optional
        If all problems are of one size: the step from one to the next.
    wish, largest
        As of a `BatchTask`.
    is_integer : bool
        Whether results are int64.
    results : DeviceResults
    most_steps : int
        Of the searches for a problem: one that takes more is left unsolved.
    together : Together, optional
        With it, large problems may be solved together, for which the call waits.
    """

    dtype: np.dtype
    addresses: Sequence[int] | np.ndarray
    steps: Sequence[int] | np.ndarray
    sizes: np.ndarray
    apart: int | None
    wish: tuple[float, float, bool, float, bool]
    largest: float
    is_integer: bool
    results: DeviceResults
    most_steps: int = ENDLESS
    together: Together | None = None
