"""The problems of a batch one by one, and the arrays of its result.

The general way solves what no kernel for batches takes, and what such a kernel has left unsolved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gpumatch.costs import CostBatch
from gpumatch.numeric.arrays import array_module, array_of
from gpumatch.numeric.gaps import rounding_above
from gpumatch.problems import one_problem, row_limits
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.problems.frames import limit_of, limits_of
from gpumatch.problems.request import Request
from gpumatch.problems.small_problems import violator_in
from gpumatch.results.assignment import Assignment, BatchAssignment
from gpumatch.running.control import Callback, Progress, attach_result

__all__ = ["Batch"]


class Batch:
    """A batch in work: its problems, the request, and the arrays of the result.

    Attributes
    ----------
    problems : CostBatch
    request : Request
    xp : module
        NumPy or CuPy, whose arrays hold the result.
    limits : sequence, optional
        The limit of each problem, or those of its rows; None if all have one number.
    cost_limit : int or float, or list, optional
        The limit of the result, or that of each problem.
    mates, numbers, objective, gap, size, proven
        As in `gpumatch.contracts.batch.DeviceResults`, where `size` is ``pairs``.
    marks : bool array of shape (B, nrows + ncols)
        The vertex covers. It has no columns unless the cardinality is ``"maximum"``.
    errors : dict
        Why a problem has no assignment, by its number.
    marked : dict
        The mates of problems that a kernel has found to have no full assignment, by their numbers.
        `violator_in` reads them.
    names : dict
        The algorithm and the backend, for the statistics.
    """

    def __init__(self, problems: CostBatch, request: Request) -> None:
        self.problems, self.request, self.control = problems, request, request.control
        self.xp = problems.xp
        self.limits = limits_of(request.cost_limit, len(problems))
        self.cost_limit: Any = request.cost_limit if self.limits is None else [None] * len(problems)
        self.errors: dict[int, Exception] = {}
        self.marked: dict[int, np.ndarray] = {}
        self.names: dict[str, str] = {"algorithm": "engine", "backend": "cpu"}
        count, (nrows, ncols) = len(problems), problems.shape
        self.nrows, self.both = nrows, nrows + ncols
        self.mates: Any = None
        self.numbers: Any = None
        self.objective: Any = None
        self.gap: Any = None
        self.size: Any = None
        self.proven: Any = None
        self.marks: Any = np.zeros(
            (count, self.both if request.cardinality == "maximum" else 0), bool
        )

    def solve_all(self) -> BatchAssignment:
        """Solve all problems one by one."""
        count = len(self.problems)
        self.mates = np.full((count, self.both), -1, np.int32)
        self.numbers = np.zeros((count, self.both + self.nrows))
        self.objective, self.gap = np.zeros(count), np.full(count, np.inf)
        self.size, self.proven = np.zeros(count, np.int64), np.zeros(count, bool)
        self.solve_these(range(count), are_all=True)
        return self.result()

    def solve_these(self, numbers: Iterable[int], are_all: bool = False) -> None:
        """Solve these problems one by one, or find why they have no assignment."""
        errors: dict[int, Exception] = {}
        self.errors = errors
        done = int(self.size.sum())
        integers = True

        def tell(progress: Progress) -> bool:
            return self.control.tick(done + progress.matched)

        for k in numbers:
            if self.control.tick(done):
                break
            try:
                if k in self.marked:
                    raise InfeasibleError(*violator_in(self.marked[k], self.nrows), k)
                a = self._solve_one(k, tell)
            except (ValueError, TypeError) as exc:
                if exc is self.control.callers_error:
                    raise
                error = _named(exc, k)
                if self.request.on_error == "raise":
                    raise error from None
                errors[k] = error
                continue
            except KeyboardInterrupt as exc:
                attach_result(exc, self.result())
                raise
            if are_all:
                integers &= isinstance(a.objective, int)
                if integers and self.numbers.dtype.kind == "f":
                    self._count_in(np.int64)
                elif not integers and self.numbers.dtype.kind == "i":
                    self._count_in(np.float64)
                self.names = {name: a.stats[name] for name in self.names}
            if self.limits is not None:
                self.cost_limit[k] = a.cost_limit
            elif are_all:
                self.cost_limit = a.cost_limit
            self._put(k, a)
            done += a.size
        if are_all and self.problems.is_integer and not len(self.problems):
            self._count_in(np.int64)

    def add_roundings(self) -> None:
        """Add what the rounding of computed costs may enlarge to the gaps of proven problems."""
        rounded = dict(self.problems.roundings())
        if not rounded:
            return
        competes = self.request.cardinality != "maximum"
        xp = array_module(self.mates)
        paid = xp.where(self.mates[:, : self.nrows] >= 0, abs(self.numbers[:, self.both :]), 0).sum(
            axis=1
        )
        paid, gaps, proven = (array_of(np, part) for part in (paid, self.gap, self.proven))
        added = np.zeros(len(gaps))
        for k, rounding in rounded.items():
            if proven[k]:
                own = self.cost_limit if self.limits is None else self.cost_limit[k]
                limit = float(np.abs(own or 0).max()) if competes and np.size(own) else 0.0
                above = rounding_above(
                    rounding, int(self.problems.sizes[k].min()), float(paid[k]), limit
                )
                added[k] = 0.0 if above is None else above(gaps[k])
        self.gap[:] = array_of(xp, np.where(added > 0, np.nextafter(gaps + added, np.inf), gaps))

    def errors_of(self, numbers: list[int]) -> dict[int, Exception]:
        """Why the kernels have not solved these problems."""
        found: dict[int, Exception] = {}
        for k in numbers:
            try:
                self._solve_one(k)
            except (ValueError, TypeError) as exc:
                found[k] = _named(exc, k)
            else:
                found[k] = ValueError(f"problem {k}: its numbers are too large for a batch")
        return found

    def _solve_one(self, k: int, callback: Callback | None = None) -> Assignment:
        request = self.request.for_problem(callback)
        if self.limits is not None:
            own = limit_of(self.limits, k, int(self.problems.sizes[k, 0]))
            request = request._replace(cost_limit=own)
        costs = request.costs_of(self.problems[k])
        way = row_limits if request.has_row_limits else one_problem
        return way.solve(costs, request)

    def _count_in(self, number: type) -> None:
        self.numbers = self.numbers.astype(number)
        self.objective = self.objective.astype(number)

    def _put(self, k: int, a: Assignment) -> None:
        """Write the assignment of problem k."""
        xp = np if isinstance(self.mates, np.ndarray) else self.xp
        nrows, both = self.nrows, self.both
        rows, cols = self.problems.sizes[k].tolist()
        row_to_col = array_of(xp, a.row_to_col)
        self.mates[k, :rows] = row_to_col
        self.mates[k, nrows : nrows + cols] = array_of(xp, a.col_to_row)
        self.numbers[k, :rows] = array_of(xp, a.row_dual)
        self.numbers[k, nrows : nrows + cols] = array_of(xp, a.col_dual)
        self.numbers[k, both : both + rows][row_to_col >= 0] = array_of(xp, a.pair_costs)
        self.objective[k], self.gap[k] = a.objective, a.gap
        self.size[k], self.proven[k] = a.size, a.proven
        if self.marks.size and a.proven:
            in_rows, in_cols = (array_of(np, part) for part in a.vertex_cover())
            self.marks[k] = False
            self.marks[k, in_rows] = True
            self.marks[k, nrows + in_cols] = True

    def result(self, errors: Callable[[], dict[int, Exception]] | None = None) -> BatchAssignment:
        """The result so far. On first need, it calls `errors` for the errors of problems."""
        nrows, both = self.nrows, self.both
        home = self.problems.xp
        arrays = self.mates, self.numbers, self.objective, self.gap, self.proven, self.size
        if home is not self.xp or isinstance(self.mates, np.ndarray):
            arrays = tuple(array_of(home, array) for array in arrays)
        mates, numbers, objective, gap, proven, size = arrays
        marks = array_of(home, self.marks) if self.marks.size else self.marks
        found = {
            "row_to_col": mates[:, :nrows],
            "col_to_row": mates[:, nrows:],
            "row_dual": numbers[:, :nrows],
            "col_dual": numbers[:, nrows:both],
            "pair_costs": numbers[:, both:],
            "objective": objective,
            "gap": gap,
            "proven": proven,
            "size": size,
        }
        return BatchAssignment(
            found.__getitem__,
            maximize=self.request.maximize,
            cardinality=self.request.cardinality,
            cost_limit=self.cost_limit,
            stats={**self.names, **self.control.statistics()},
            sizes=self.problems.sizes,
            marks=(marks[:, :nrows], marks[:, nrows:]),
            errors=errors or self.errors,
        )


def _named(error: Exception, k: int) -> Exception:
    """The error with the number of its problem."""
    if isinstance(error, InfeasibleError):
        if error.problem == k:
            return error
        return InfeasibleError(error.rows, error.cols, problem=k)
    return type(error)(f"problem {k}: {error}")
