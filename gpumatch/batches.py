"""Small dense problems on the host: one, or many at once, in compiled calls."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpumatch.arrays import array_of
from gpumatch.assigned import Assignment, BatchAssignment
from gpumatch.cardinality import CARDINALITIES, InfeasibleError, checked_limit
from gpumatch.contracts import SOLVED, UNSOLVED, BatchTask
from gpumatch.control import Control, attach_result
from gpumatch.costs import CostBatch, native
from gpumatch.registry import BATCHES, ONE_OF_A_BATCH, load

__all__ = ["assign_batch", "assign_small"]

LARGEST, LARGEST_INTEGER = 2.0**1000, 2.0**47
"""Magnitudes up to which floats hold a few times the sum, and all of an integer."""
MOST = 2**18
"""Costs of a problem up to which a compiled call ends soon enough for Ctrl-C."""

_INT32, _INT64, _FLOAT64, _BOOL = map(np.dtype, ("i4", "i8", "f8", "?"))
_NO_MARKS = np.empty((1, 0), _BOOL)


class Wish(NamedTuple):
    """What is wanted of each problem, as numbers for kernels; `gpumatch.contracts` says of each."""

    sign: float
    limit: float
    most: float
    wants_maximum: bool

    @classmethod
    def of(cls, maximize: bool, cardinality: str, cost_limit: float | None) -> Wish:
        sign = -1.0 if maximize else 1.0
        if cardinality == "maximum":
            most = math.inf if cost_limit is None else sign * cost_limit
            return cls(sign, math.inf, most, True)
        if cost_limit is not None:
            return cls(sign, sign * cost_limit, math.inf, False)
        return cls(sign, 0.0 if cardinality == "any" else math.inf, math.inf, False)


def assign_small(
    values: np.ndarray, maximize: bool, cardinality: str, cost_limit: Any
) -> Assignment | None:
    """The assignment of a matrix, by one compiled call; None if it is not for this, or infeasible.

    It is not if there is nothing to assign, an argument or a number is not valid, or numbers are so
    large that floats would not hold their sums.
    """
    began = time.perf_counter()
    if cardinality not in CARDINALITIES or type(maximize) is not bool or values.size == 0:
        return None
    is_integer = values.dtype.kind != "f"
    costs = native(values)
    if costs is None:
        return None
    limit = None if cost_limit is None else checked_limit(cost_limit, is_integer, maximize)
    is_integer &= cardinality == "maximum" or not isinstance(limit, float)
    largest = LARGEST_INTEGER if is_integer else LARGEST
    if limit is not None and abs(limit) > largest:
        return None
    wish = Wish.of(maximize, cardinality, limit)
    nrows, ncols = costs.shape
    both = nrows + ncols
    mates, numbers = np.empty((1, both), _INT32), np.empty((1, both + nrows), _FLOAT64)
    totals, ends = np.empty((1, 4), _FLOAT64), np.empty((1, 2), _INT64)
    marks = np.empty((1, both), _BOOL) if wish.wants_maximum else _NO_MARKS
    load(ONE_OF_A_BATCH)(
        costs.reshape(-1), _place(nrows, ncols),  # IN
        *wish, largest, 0, 1,  # IN
        mates, numbers, totals, marks, ends,  # OUT
    )  # fmt: skip
    ((end, size),) = ends.tolist()
    if end != SOLVED:
        return None
    number: Any = int if is_integer else float
    if is_integer:
        numbers = numbers.astype(_INT64)
    total, rest, gap, gap_rest = map(number, totals[0].tolist())
    row_to_col, paid = mates[0, :nrows], numbers[0, both:]
    cover = None
    if wish.wants_maximum:
        cover = marks[0, :nrows].nonzero()[0], marks[0, nrows:].nonzero()[0]
    stats = {
        "algorithm": "engine",
        "backend": "cpu",
        "phases": 1,
        "levels": 0,
        "seconds": {"costs": 0.0, "search": time.perf_counter() - began},
        "trace": [{"levels": 0, "found": size, "matched": size, "step": "paths"}],
    }
    return Assignment(
        row_to_col,
        mates[0, nrows:],
        numbers[0, :nrows],
        numbers[0, nrows:both],
        pair_costs=paid if size == nrows else paid[row_to_col >= 0],
        objective=total + rest,
        gap=max(gap + gap_rest, number(0)),
        proven=True,
        maximize=maximize,
        cardinality=cardinality,
        cost_limit=limit,
        cover=cover,
        size=size,
        stats=stats,
    )


@functools.lru_cache(maxsize=1024)
def _place(nrows: int, ncols: int) -> np.ndarray:
    """The place of the one problem in an array."""
    return np.array(((0, ncols, nrows, ncols),), np.int64)


def assign_batch(
    problems: CostBatch,
    alone: Callable[[Any], Assignment],
    *,
    maximize: bool,
    cardinality: str,
    cost_limit: Any,
    on_error: str,
    is_compiled: bool,
    control: Control,
    threads: int,
) -> BatchAssignment:
    """The assignments of all problems: by compiled calls for many, or else by ``alone``.

    With ``is_compiled`` False, all are solved alone.
    """
    packed = problems.packed() if is_compiled and len(problems) else None
    solved = _Solved(problems, maximize, cardinality, packed is not None)
    if packed is None:
        solved.cost_limit = cost_limit
        solved.serve_alone(range(len(problems)), alone, on_error)
        return solved.result(control)
    values, places = packed
    is_integer = problems.is_integer
    limit = checked_limit(cost_limit, is_integer, maximize)
    is_integer &= cardinality == "maximum" or not isinstance(limit, float)
    largest = LARGEST_INTEGER if is_integer else LARGEST
    solved.cost_limit, solved.is_integer = limit, is_integer
    is_small = problems.sizes.prod(axis=1) <= MOST
    if limit is not None and abs(limit) > largest:
        is_small[:] = False
    small = is_small.nonzero()[0]
    task = BatchTask(
        values,
        places[small],
        Wish.of(maximize, cardinality, limit),
        largest,
        solved.arrays(small),
        control,
        threads,
    )
    try:
        with control.part("search"):
            ended = load(BATCHES["cpu"])(task)
    except KeyboardInterrupt as exc:
        solved.take(small, task)
        attach_result(exc, solved.result(control))
        raise
    solved.take(small, task)
    if ended:
        left = (solved.ends[:, 0] != SOLVED).nonzero()[0].tolist()
        solved.serve_alone(left, alone, on_error)
    return solved.result(control)


class _Solved:
    """The arrays of a batch's result while it is worked on."""

    def __init__(
        self, problems: CostBatch, maximize: bool, cardinality: str, is_compiled: bool
    ) -> None:
        self.problems, self.maximize, self.cardinality = problems, maximize, cardinality
        self.cost_limit: float | None = None
        self.is_integer = False
        self.errors: dict[int, Exception] = {}
        count, (nrows, ncols) = len(problems), problems.shape
        both = nrows + ncols
        self.mates = np.full((count, both), -1, np.int32)
        self.numbers = np.zeros((count, both + nrows))
        self.totals = np.zeros((count, 4))
        self.marks = np.zeros((count, both if cardinality == "maximum" else 0), bool)
        self.ends = np.zeros((count, 2), np.int64)
        self.ends[:, 0] = UNSOLVED
        self.objective: Any = None
        self.gap: Any = None

    def arrays(self, small: Any) -> tuple[Any, ...]:
        """Those of some problems: the arrays themselves if these are all."""
        whole = self.mates, self.numbers, self.totals, self.marks, self.ends
        return whole if small.size == len(self.problems) else tuple(a[small] for a in whole)

    def take(self, small: Any, task: BatchTask) -> None:
        """Take the results of these problems, as numbers of their kind."""
        if small.size < len(self.problems):
            whole: tuple[Any, ...] = (
                self.mates, self.numbers, self.totals, self.marks, self.ends
            )  # fmt: skip
            for array, part in zip(whole, task.results):
                array[small] = part
        number = np.int64 if self.is_integer else np.float64
        self.numbers = self.numbers.astype(number, copy=False)
        totals = self.totals.astype(number)
        self.objective = totals[:, 0] + totals[:, 1]
        self.gap = np.maximum(totals[:, 2] + totals[:, 3], 0).astype(np.float64)
        self.gap[self.ends[:, 0] != SOLVED] = np.inf

    def serve_alone(self, numbers: Any, alone: Callable[[Any], Assignment], on_error: str) -> None:
        """Solve these problems one by one, or find why they cannot be solved."""
        found: dict[int, Assignment] = {}
        for k in numbers:
            try:
                found[k] = alone(self.problems[k])
            except (ValueError, TypeError) as exc:
                error = _named(exc, k)
                if on_error == "raise":
                    raise error from None
                self.errors[k] = error
        if self.objective is None:
            self.is_integer = all(isinstance(a.objective, int) for a in found.values())
            count, number = len(self.problems), np.int64 if self.is_integer else np.float64
            self.numbers = self.numbers.astype(number)
            self.objective, self.gap = np.zeros(count, number), np.full(count, np.inf)
        nrows = self.problems.shape[0]
        both = sum(self.problems.shape)
        for k, a in found.items():
            rows, cols = self.problems.sizes[k].tolist()
            row_to_col = _on_host(a.row_to_col)
            self.mates[k, :rows] = row_to_col
            self.mates[k, nrows : nrows + cols] = _on_host(a.col_to_row)
            self.numbers[k, :rows] = _on_host(a.row_dual)
            self.numbers[k, nrows : nrows + cols] = _on_host(a.col_dual)
            self.numbers[k, both : both + rows][row_to_col >= 0] = _on_host(a.pair_costs)
            self.objective[k], self.gap[k] = a.objective, a.gap
            self.ends[k] = SOLVED if a.proven else UNSOLVED, a.size
            if self.marks.size and a.proven:
                in_rows, in_cols = map(_on_host, a.vertex_cover())
                self.marks[k, in_rows] = True
                self.marks[k, nrows + in_cols] = True

    def result(self, control: Control) -> BatchAssignment:
        nrows, ncols = self.problems.shape
        both = nrows + ncols
        names = {"algorithm": "engine", "backend": "cpu"}
        return BatchAssignment(
            self.mates[:, :nrows],
            self.mates[:, nrows:],
            self.numbers[:, :nrows],
            self.numbers[:, nrows:both],
            pair_costs=self.numbers[:, both:],
            objective=self.objective,
            gap=self.gap,
            proven=self.ends[:, 0] == SOLVED,
            maximize=self.maximize,
            cardinality=self.cardinality,
            cost_limit=self.cost_limit,
            size=self.ends[:, 1].copy(),
            stats={**names, **control.statistics()},
            sizes=self.problems.sizes,
            marks=(self.marks[:, :nrows], self.marks[:, nrows:]),
            errors=self.errors,
        )


def _on_host(values: Any) -> np.ndarray:
    return array_of(np, values)


def _named(error: Exception, k: int) -> Exception:
    """The error with the number of its problem."""
    if isinstance(error, InfeasibleError):
        return InfeasibleError(error.rows, error.cols, problem=k)
    return type(error)(f"problem {k}: {error}")
