"""The contracts of the kernels for batches: what they receive and what they return."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Control, Costs

__all__ = [
    "BAD",
    "COLD",
    "ENDLESS",
    "INFEASIBLE",
    "LARGEST",
    "LARGEST_INTEGER",
    "LARGEST_PATH",
    "ORDERED",
    "REACHED",
    "SOLVED",
    "UNFIT",
    "UNSOLVED",
    "BatchTask",
    "DeviceBatch",
    "DeviceResults",
    "Together",
    "Wish",
]

SOLVED, INFEASIBLE, UNFIT, UNSOLVED, ORDERED = range(5)
"""The states in which a problem of a batch may end.

SOLVED: its assignment is optimal. INFEASIBLE: it has no full assignment. UNFIT: other code must
solve it, because a cost is not allowed or too large, or because the gap exceeds rounding.
UNSOLVED: the kernel has stopped early. ORDERED: it has not begun, because the matrix seems to be
Monge in some order, and the caller wants to know that.
"""
COLD, BAD = -1, -2
"""The states in which a problem may end that was to begin from others' pairs and prices.

COLD: it is as quick to begin from nothing. BAD: the pairs are no matching, or a price is not
finite.
"""
REACHED = -2
"""On the CPU, the mate of vertices of an INFEASIBLE problem: a Hall violator and its neighbours."""
LARGEST, LARGEST_INTEGER, LARGEST_PATH = 2.0**990, 2.0**47, 2.0**48
"""The largest magnitudes C of costs and of the limit for kernels that compute in float64.

LARGEST bounds C for floats, and LARGEST_INTEGER bounds C for integers. If pairs may be forbidden,
LARGEST_PATH bounds n C for integers, for n vertices of the smaller side.

The kernels find duals by shortest paths. All their terms are within these multiples of C:

- 16 without forbidden pairs. Each row may take any unmatched column, or none. So duals are within
  4 C, and distances and their parts within 16 C. For C = 2**47 this is 2**51.
- 48 without forbidden pairs in the kernels of a device, which may hold auctions. Their epsilon is
  at most 6 C, because it is at most a difference of costs less prices within 4 C. So prices are
  within 12 C, and distances and their parts within 48 C. For C = 2**47 this is below 2**53.
- 32 n with forbidden pairs. A path has up to 2 n costs. So duals are within 4 n C, or within 7 n C
  after 3 n bids of a row whose second best column is 2 C farther. The parts of a distance are then
  within 22 n C. For n C = 2**48 this is below 2**53.

Below 2**53, sums of integers are exact in float64. Floats may overflow only in the sums of the
duals: the sum of 2 n duals is within 64 n**2 C, which is finite for n up to 2**13.
"""
ENDLESS = 2**31 - 1
"""A number of steps of a search that no problem reaches."""


class Wish(NamedTuple):
    """The goal of a small problem, or of all problems of a batch, as numbers.

    Attributes
    ----------
    sign : float
        -1 if costs are to be maximised, else 1.
    limit : float
        The cost of an unmatched row; infinity if all rows must be matched.
    takes_equal : bool
        True if a row takes a column that costs as much as the limit.
    most : float
        Pairs that cost more are forbidden.
    wants_maximum : bool
        True if the assignment must be as large as possible.
    """

    sign: float
    limit: float
    takes_equal: bool
    most: float
    wants_maximum: bool


@dataclasses.dataclass
class BatchTask:
    """Many small dense problems, the caller's request, and the arrays for the results.

    Attributes
    ----------
    read : function
        ``read(first, last, room)`` returns the costs of a range of problems in one array, in the
        order of the problems. It may copy them into ``room(count)``, a float64 array of that size.
    in_place : bool
        True if `read` returns the caller's own array, without a copy.
    places : int64 array of shape (B, 4)
        For each problem: the offset of its costs in an array that holds those of all problems, the
        step from row to row, the number of rows and the number of columns.
    total : int
        The length of that array.
    takes : bool array of length B
        True for the problems to solve.
    wish : Wish
    gates : float64 array, optional
        The limits of unmatched rows, if the caller has set any, to be minimised: of shape (B or 1,
        1) if they are the same for all rows of a problem, else (B, rows). They take the place of
        the limit of the wish.
    largest : float
        Problems with costs of greater magnitude end as UNFIT.
    results : tuple of five arrays
        The mates, the duals with the costs of pairs, the objectives with the gaps, the marks of the
        vertex cover, and the states. `gpumatch.cpu.assignment.small.with_duals` states their
        layout.
    control : Control
    threads : int
        The number of CPU threads.
    """

    read: Callable[[int, int, Any], Any]
    in_place: bool
    places: Any
    total: int
    takes: Any
    wish: Wish
    gates: Any
    largest: float
    results: tuple[Any, ...]
    control: Control
    threads: int = 1


class DeviceResults(NamedTuple):
    """The results of each problem of a batch, on the device: arrays, or their addresses.

    Attributes
    ----------
    mates : int32 array of shape (B, most_rows + most_cols)
        The columns of rows, then the rows of columns; -1 means unmatched.
    numbers : int64 or float64 array of shape (B, 2 * most_rows + most_cols)
        The duals of rows, then the duals of columns, then the cost of each row's pair.
    objective : int64 or float64 array of length B
    gap : float64 array of length B
    pairs, states : int64 arrays of length B
        The number of pairs, and the state in which the problem has ended.
    proven : bool array of length B
    most_rows, most_cols : int
        The largest numbers of rows and of columns of a problem.
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
    """What a kernel needs to solve problems of a batch as one problem, with all rows matched.

    Attributes
    ----------
    costs_of : callable
        ``costs_of(shape, indptr, indices, weights)`` makes `Costs` of a CSR matrix.
    control : Control
    """

    costs_of: Callable[[tuple[int, int], Any, Any, Any], Costs]
    control: Control


@dataclasses.dataclass
class DeviceBatch:
    """Many dense problems on a device, the caller's request, and the arrays for the results.

    Attributes
    ----------
    dtype : dtype
        The dtype of all costs.
    addresses, steps : int64 arrays of length B, on the host
        The address of each problem's costs, and the step from row to row. If all problems have one
        size, a sequence with the numbers of the first problem is enough.
    sizes : int64 array of shape (B, 2), on the host
        The rows and columns of each problem.
    apart : int, optional
        The step from one problem to the next, if all problems have one size.
    wish, largest
        As of a `BatchTask`; a plain tuple may stand for a `Wish`.
    is_integer : bool
        True if the results are int64, False if they are float64.
    results : DeviceResults
    most_steps : int
        The most steps that the searches of a problem may take, with the rounds of its auctions. A
        problem that needs more ends as UNSOLVED.
    together : Together, optional
        If given, large problems may be solved together. The call then waits for their results.
    asks_order : bool
        True if a large problem that seems to be Monge in some order must end as ORDERED.
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
    asks_order: bool = False
