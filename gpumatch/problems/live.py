"""The kinds of costs of a session: a matrix, or points. A kind makes the tables and fills them.

A kind checks what a caller gives for a row or column, keeps numbers in their range, and names the
costs that there are. `gpumatch.live.Session` calls it; the tables know nothing of its checks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from gpumatch.costs import Costs, PointCosts, as_costs
from gpumatch.cpu.assignment.points.distances import METRICS
from gpumatch.cpu.live.changes import (
    AT_LIMIT,
    BY_COVER,
    BY_LIMIT,
    TOO_LARGE,
)
from gpumatch.cpu.live.point_table import PointTable
from gpumatch.cpu.live.sparse_table import SparseTable
from gpumatch.cpu.live.tables import Report, Table
from gpumatch.interop.sparse import csr_of
from gpumatch.numeric.arrays import as_array
from gpumatch.numeric.gaps import rounding_above
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.results.assignment import Assignment

__all__ = ["LiveCosts", "LiveMatrix", "LivePoints", "LiveSparse", "Wish", "live_costs", "report_of"]

LARGEST = 2.0**1000
"""The greatest magnitude of floats."""
LARGEST_POINT = 2.0**400
"""The greatest magnitude of coordinates."""
EXACT = 2**49
"""For integers, (n + 1) max|c| must be less, so that sums of floats are exact."""

_FLOAT64 = np.dtype(np.float64)
_CONTIGUOUS = (_FLOAT64.itemsize,)
"""The strides of such an array of one dimension."""

Solve = Callable[..., Assignment]
AnyTable = Table | PointTable


class Wish(NamedTuple):
    """What a session finds."""

    maximize: bool
    cardinality: str
    cost_limit: float | None

    @property
    def sign(self) -> float:
        return -1.0 if self.maximize else 1.0

    @property
    def forbidden(self) -> float:
        """The cost of a forbidden pair."""
        return self.sign * math.inf

    @property
    def mode(self) -> int:
        """That of `gpumatch.cpu.live.changes`."""
        if self.cardinality == "maximum" or (self.cost_limit is None and self.cardinality != "any"):
            return BY_COVER
        return BY_LIMIT if self.cost_limit is None else AT_LIMIT

    @property
    def is_full(self) -> bool:
        return self.cardinality == "full" and self.mode == BY_COVER

    @property
    def top(self) -> float:
        """What an unmatched row costs."""
        return 0.0 if self.mode == BY_COVER else self.sign * (self.cost_limit or 0.0)


class LiveCosts(ABC):
    """What both kinds share."""

    wish: Wish
    most: float

    @abstractmethod
    def table(self) -> AnyTable:
        """A table with the rows and columns that there are at first, without pairs."""

    @abstractmethod
    def values(self, costs: Any, length: int, side: int) -> np.ndarray:
        """What a caller gives for a row (side 0) or column, as floats, checked but for their size.

        ``length`` is that of the other side.
        """

    @abstractmethod
    def costs(self, table: Any) -> Any:
        """The costs now, as a caller may have them."""

    @abstractmethod
    def load(self, table: Any, solve: Solve) -> Assignment:
        """Solve the problem afresh by ``solve``, and hold the result."""

    def report(self, table: Any) -> Report:
        """What the assignment of a table is, if nothing waits."""
        return table.report()

    @abstractmethod
    def set_range(self, table: Any, nrows: int, ncols: int) -> None:
        """See that sums of a table stay in their range with so many rows and columns."""

    @abstractmethod
    def cost(self, cost: Any) -> float:
        """The cost of one pair, as a float, checked but for its size."""

    def error(self, fit: int, values: Any) -> ValueError:
        """The error for costs that were not fit, as `gpumatch.cpu.live.changes` tells."""
        if np.isnan(values).any():
            return ValueError("costs must not be NaN")
        if fit == TOO_LARGE:
            return ValueError(f"numbers are too large for this session: at most {self.most:g}")
        return self._wrong_infinity()

    def _wrong_infinity(self) -> ValueError:
        forbids = self.wish.forbidden
        return ValueError(f"a cost of {-forbids} would ask for a pair; {forbids} forbids one")


class LiveMatrix(LiveCosts):
    """A matrix of costs, of which some may be forbidden."""

    kind: type[Table] = Table

    def __init__(self, costs: Costs, wish: Wish) -> None:
        self.wish = wish
        self._first: Costs | None = costs
        self.is_exact = costs.is_integer and not isinstance(wish.cost_limit, float)
        self._largest = max(float(costs.largest), abs(float(wish.cost_limit or 0)))
        self.shape = costs.shape
        self._set_range(*costs.shape, self._largest)

    def table(self) -> Table:
        wish, limit = self.wish, self.wish.cost_limit
        is_bar = wish.mode == BY_COVER and limit is not None
        table = self.kind(
            self.shape,
            sign=wish.sign,
            mode=wish.mode,
            limit=wish.top,
            most=wish.sign * (limit or 0.0) if is_bar else math.inf,
            largest=self._largest,
            is_exact=self.is_exact,
            is_full=wish.is_full,
        )
        table.reserve(*self.shape)
        return table

    def values(self, costs: Any, length: int, side: int) -> np.ndarray:
        if (
            type(costs) is np.ndarray and costs.dtype is _FLOAT64 and costs.strides == _CONTIGUOUS
            and len(costs) == length and not self.is_exact
        ):  # fmt: skip
            return costs
        values = as_array(costs, "costs")
        if values.shape != (length,):
            others = ("columns", "rows")[side]
            raise ValueError(
                f"costs must have one number for each of {length} {others}; got shape "
                f"{values.shape}"
            )
        if values.dtype.kind not in "biuf":
            raise TypeError(f"costs must be real numbers; got dtype {values.dtype}")
        if self.is_exact and values.dtype.kind == "f":
            is_whole = (np.floor(values) == values) | ~np.isfinite(values)
            if not is_whole.all():
                raise TypeError(f"the costs of this session are integers; got dtype {values.dtype}")
        return np.ascontiguousarray(values, np.float64)

    def cost(self, cost: Any) -> float:
        value = cost if type(cost) is float else _number(cost)
        if self.is_exact and math.isfinite(value) and not value.is_integer():
            raise TypeError(f"the costs of this session are integers; got {cost!r}")
        return value

    def costs(self, table: Table) -> Any:
        values = table.values()
        if not self.is_exact:
            return values
        is_allowed = np.isfinite(values)
        if is_allowed.all():
            return values.astype(np.int64)
        cols = is_allowed.nonzero()[1]
        indptr = np.zeros(values.shape[0] + 1, np.int64)
        np.cumsum(is_allowed.sum(axis=1), out=indptr[1:])
        return csr_of(values[is_allowed].astype(np.int64), cols, indptr, values.shape)

    def load(self, table: Table, solve: Solve) -> Assignment:
        costs = self._first if self._first is not None else as_costs(self.costs(table))
        self._first = None
        free = [np.ones(size, bool) for size in costs.shape]
        a = self._solved(costs, solve)
        if a.cardinality == "maximum":
            for marks, cover in zip(free, a.cover_ind()):
                marks[cover] = False
        elif self.wish.is_full:
            free[costs.shape[0] > costs.shape[1]][:] = False
        values = self._held(costs.problem(self.wish.maximize, False).as_float())
        duals = self.wish.sign * a.row_dual, self.wish.sign * a.col_dual
        table.load(values, (a.row_to_col, a.col_to_row), duals, free)
        return a

    def _held(self, costs: Any) -> Any:
        """What a table takes of costs to be minimised."""
        return costs.dense()

    def _solved(self, costs: Costs, solve: Solve) -> Assignment:
        """The assignment of these costs; a maximum one if no full one exists."""
        try:
            return solve(costs, cardinality=self.wish.cardinality)
        except InfeasibleError:
            return solve(costs, cardinality="maximum")

    def set_range(self, table: Table, nrows: int, ncols: int) -> None:
        self._set_range(nrows, ncols, table.largest)

    def _set_range(self, nrows: int, ncols: int, largest: float) -> None:
        self.most = float((EXACT - 1) // (min(nrows, ncols) + 1)) if self.is_exact else LARGEST
        if largest > self.most:
            raise ValueError(
                f"a magnitude of {largest:g} is too large for a session: "
                + (
                    "for integers, (n + 1) max|cost| must be below 2**49"
                    if self.is_exact
                    else "it takes 2**1000 at most"
                )
            )


class LiveSparse(LiveMatrix):
    """Costs of which those that no sparse matrix stores are forbidden."""

    kind = SparseTable

    def costs(self, table: Any) -> Any:
        indptr, cols, values = table.csr()
        return csr_of(
            values.astype(np.int64) if self.is_exact else values, cols, indptr, table.shape
        )

    def _held(self, costs: Any) -> Any:
        return costs


class LivePoints(LiveCosts):
    """Distances of points, which have no matrix."""

    def __init__(self, costs: PointCosts, wish: Wish) -> None:
        if costs.metric not in METRICS or costs.row_offset is not None or costs.points is None:
            raise TypeError(
                f"a session takes points with a metric of {', '.join(METRICS)} and without "
                "offsets, of moderate size; pass a matrix instead"
            )
        self.wish, self.metric = wish, costs.metric
        self._sides = (
            np.ascontiguousarray(costs.X, np.float64),
            np.ascontiguousarray(costs.Y, np.float64),
        )
        self.width, self.most = self._sides[0].shape[1], LARGEST_POINT

    def table(self) -> PointTable:
        wish = self.wish
        return PointTable(
            self._sides, self.metric,
            sign=wish.sign, mode=wish.mode, limit=wish.top, is_full=wish.is_full,
        )  # fmt: skip

    def values(self, costs: Any, length: int, side: int) -> np.ndarray:
        is_plain = type(costs) is np.ndarray and costs.dtype == _FLOAT64
        values = costs if is_plain else as_array(costs, "the point")
        if values.shape != (self.width,):
            raise ValueError(
                f"the point must have {self.width} coordinates; got shape {values.shape}"
            )
        if values.dtype.kind not in "biuf":
            raise TypeError(f"the point must have real numbers; got dtype {values.dtype}")
        return np.ascontiguousarray(values, np.float64)

    def cost(self, cost: Any) -> float:
        raise TypeError("the costs of this session are distances: only points can change")

    def _wrong_infinity(self) -> ValueError:
        return ValueError("the point must have finite coordinates")

    def costs(self, table: PointTable) -> PointCosts:
        return PointCosts(*table.values(), metric=self.metric)

    def load(self, table: PointTable, solve: Solve) -> Assignment:
        cardinality = "full" if self.wish.cardinality == "maximum" else self.wish.cardinality
        a = solve(self.costs(table), cardinality=cardinality)
        sign = self.wish.sign
        limit = table.numbers[0][-1, 0]
        table.load((a.row_to_col, a.col_to_row), (sign * a.row_dual + limit, sign * a.col_dual))
        return a

    def report(self, table: PointTable) -> Report:
        """The report of a table, whose gap holds for the exact distances."""
        report, costs = table.report(), self.costs(table)
        paid = float(abs(report.numbers[sum(table.shape) :]).sum())
        above = rounding_above(
            costs.rounding, min(table.shape), paid, abs(float(self.wish.cost_limit or 0))
        )
        return report if above is None else report._replace(gap=report.gap + above(report.gap))

    def set_range(self, table: PointTable, nrows: int, ncols: int) -> None:
        pass


def live_costs(costs: Costs, wish: Wish) -> LiveCosts:
    """The kind for these costs."""
    if costs.on_device:
        raise TypeError("a session is on the CPU: pass the costs as an array of the host")
    if isinstance(costs, PointCosts):
        return LivePoints(costs, wish)
    return (LiveSparse if costs.is_sparse else LiveMatrix)(costs, wish)


def report_of(a: Assignment) -> Report:
    """What a table would report of an assignment that it does not hold as its own."""
    paid = np.zeros(a.row_to_col.size, a.pair_costs.dtype)
    paid[a.row_ind] = a.pair_costs
    return Report(
        np.concatenate([a.row_to_col, a.col_to_row]),
        np.concatenate([a.row_dual, a.col_dual, paid]),
        a.size,
        a.objective,
        a.gap,
        a.proven,
    )


def _number(cost: Any) -> float:
    """A cost as a float."""
    if getattr(cost, "ndim", None) == 0:
        cost = cost.item()
    if not isinstance(cost, Real):
        raise TypeError(f"cost must be a real number; got {cost!r}")
    try:
        return float(cost)
    except OverflowError:
        raise ValueError("cost is beyond the range of float64") from None
