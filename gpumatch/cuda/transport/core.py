"""Transport of all pairs on the GPU: a core of pairs, solved in CSR, and pricing of all pairs.

1. *Estimate*: rows and columns are ordered so that neighbours are alike, and four in a row are a
   group. One vertex stands for each group, with the sum of its masses. That is a problem of a
   sixteenth of the pairs, which is solved in the same way.
2. *Core*: the estimate's duals tell which pairs are cheap. The cheapest of each row are the core,
   and the pairs of a first flow: that of the groups, poured out over their members. So the core
   can ship all.
3. *Solve* the core in CSR (`sparse.engine`), from the estimate's duals and the first flow.
4. *Price* all pairs: those that cost less than their duals join the core, some of each row, and
   step 3 follows from the duals and the flow that are there. Once there is none, the flow is
   optimal.

In costs of points, of images or of low rank the estimate is nearly right. In others it is of little
use, but no harm. A small problem is solved with all its pairs. The pairs come from a `Source`: a
matrix (`dense`) or points (`points`). All of them are allowed.

Reference: Schmitzer, *A sparse multiscale algorithm for dense optimal transport*, Journal of
Mathematical Imaging and Vision 56, 2016.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Protocol

import cupy as cp
import numpy as np

from gpumatch.contracts.transport import TransportSolution, TransportTask
from gpumatch.cuda import csr
from gpumatch.cuda.transport.sparse import engine as sparse

__all__ = ["WHOLE", "Source", "in_csr", "solve"]

WHOLE = 2**18
"""Pairs up to which all of them are solved in CSR."""
NEAREST, ACROSS, MORE = 12, 4, 8
"""The pairs of a row and of a column in the first core, and those of a row that join it in a
pricing."""
FEW = 1 / 32
"""Pairs for each row up to which those that join the core are left to paths."""
MEMBERS = 4
"""Members of a group."""
ROUNDING = 2.0**-46
"""The slack of floats that is rounding, as a share of the largest magnitude."""


class Source(Protocol):
    """All pairs of rows and columns.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
        int64 or float64.
    low, largest : number
        Bounds of the costs from below, and of their magnitudes.
    rows_at_once : int
        Rows of which a part may be made.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    rows_at_once: int

    @property
    def low(self) -> Any: ...
    @property
    def largest(self) -> float: ...
    def at(self, rows: Any, cols: Any) -> Any: ...
    def nearest(self, col_dual: Any, bound: Any, most: int) -> tuple[Any, Any]: ...
    def across(self) -> Source: ...
    def conjugate(self, rows: Any, row_dual: Any) -> Any: ...
    def least_of_rows(self, col_dual: Any) -> Any: ...
    def orders(self, seed: int) -> tuple[Any, Any]: ...
    def part(self, rows: Any, cols: Any) -> Source: ...


def solve(task: TransportTask, source: Source) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.contracts.transport` states.

    The task has masses, limits, control and seed. Its total supply and demand are positive.
    """
    rows, cols = cp.flatnonzero(task.supply > 0), cp.flatnonzero(task.demand > 0)
    part, pairs = task, source
    if rows.size < task.supply.size or cols.size < task.demand.size:
        pairs = source.part(rows, cols)
        part = dataclasses.replace(
            task, supply=task.supply[rows], demand=task.demand[cols],
            row_limit=None if task.row_limit is None else task.row_limit[rows],
        )  # fmt: skip
    part = dataclasses.replace(part, costs=None, points=None, initial=None)
    found = _Level(part, pairs, *pairs.orders(task.seed)).solve()
    if part.supply is task.supply:
        return found
    return _with_idle(task, source, found, rows, cols)


def in_csr(task: TransportTask, keys: cp.ndarray, data: cp.ndarray) -> TransportTask:
    """A problem with some pairs: their ``row * ncols + column`` in ascending order, and costs."""
    nrows, ncols = task.shape
    starts = cp.arange(nrows + 1) * ncols
    return dataclasses.replace(
        task, costs=None, forbidden=None, indptr=cp.searchsorted(keys, starts),
        indices=(keys % max(ncols, 1)).astype(np.int32), data=data,
    )  # fmt: skip


def _with_idle(
    task: TransportTask,
    source: Source,
    found: TransportSolution,
    rows: cp.ndarray,
    cols: cp.ndarray,
) -> TransportSolution:
    """The solution of a problem with rows and columns of no mass, from that of the others.

    A row without supply gets the greatest dual that is allowed. A column without demand gets one
    that no pair can undercut.
    """
    row_dual, idle = cp.empty(task.supply.size, source.dtype), cp.flatnonzero(task.supply == 0)
    row_dual[rows] = found.row_dual
    for first in range(0, idle.size, source.rows_at_once):
        some = idle[first : first + source.rows_at_once]
        row_dual[some] = source.part(some, cols).least_of_rows(found.col_dual)
    if task.row_limit is not None:
        row_dual = cp.minimum(row_dual, task.row_limit)
    col_dual = cp.empty(task.demand.size, source.dtype)
    col_dual[:] = cp.minimum(source.low - row_dual.max(), 0)
    col_dual[cols] = found.col_dual
    return dataclasses.replace(
        found, rows=rows[found.rows], cols=cols[found.cols], row_dual=row_dual, col_dual=col_dual
    )


class _Estimate(NamedTuple):
    """Duals of columns, and a flow that ships what is to be shipped.

    Attributes
    ----------
    col_dual : array
    keys, units : int64 arrays
        ``row * ncols + column`` of the pairs with flow, each once, and their units.
    """

    col_dual: cp.ndarray
    keys: cp.ndarray
    units: cp.ndarray


@dataclasses.dataclass
class _Level:
    """A problem without idle rows and columns, or one of its groups.

    Attributes
    ----------
    task : TransportTask
        Masses, limits, control.
    source : Source
    row_order, col_order : int arrays
        Orders in which neighbours are alike.
    depth : int
        How many times vertices were grouped.
    """

    task: TransportTask
    source: Source
    row_order: cp.ndarray
    col_order: cp.ndarray
    depth: int = 0

    def __post_init__(self) -> None:
        task = self.task
        self.nrows, self.ncols = task.shape
        far: Any = np.iinfo(np.int64).max if self.source.dtype.kind == "i" else np.inf
        self.far = self.source.dtype.type(far)
        spare = int(task.demand.sum()) - int(task.supply.sum())
        self.is_even = task.row_limit is None and spare == 0
        self.keys: cp.ndarray = cp.empty(0, np.int64)
        self.readings = 0
        self.counts: dict[str, Any] = {}

    def solve(self) -> TransportSolution:
        """The solution with fair duals, by an estimate, a core and pricing."""
        found = self.solved()
        if found is None:
            none = cp.empty(0, np.int64)
            col_dual = cp.zeros(self.ncols, self.source.dtype)
            found = TransportSolution(none, none, none, col_dual, col_dual, False)
        row_dual = self.source.least_of_rows(found.col_dual)
        if self.task.row_limit is not None:
            row_dual = cp.minimum(row_dual, self.task.row_limit)
        return dataclasses.replace(found, row_dual=row_dual, stats=self.counts)

    def solved(self) -> TransportSolution | None:
        """The solution, or None if the control has stopped the run before there was a flow."""
        if self.nrows * self.ncols <= WHOLE:
            self.keys = cp.arange(self.nrows * self.ncols)
            found = sparse.solve(self._core())
            self._count(found)
            return found if found.is_optimal or not self.depth else None
        estimate = self._estimate()
        if estimate is None:
            return None
        bound = self._bound()
        self._add(self._named(self.source.nearest(estimate.col_dual, bound, NEAREST)))
        self._add_across(estimate.col_dual)
        self._add(estimate.keys)
        return self._solve_from(estimate)

    def _add_across(self, col_dual: cp.ndarray) -> None:
        """Add the pairs of each column with the least costs less duals of rows."""
        row_dual = self.source.least_of_rows(col_dual)
        across = self.source.across()
        cols, rows = across.nearest(row_dual, cp.full(self.ncols, self.far), ACROSS)
        self._add(self._named((rows, cols)))

    def _solve_from(self, start: _Estimate) -> TransportSolution:
        """Solve the core and price all pairs, until none costs less than its duals."""
        control, is_integer = self.task.control, self.source.dtype.kind == "i"
        tolerance = self.source.dtype.type(0 if is_integer else ROUNDING * self.source.largest)
        epsilon = self._mean_excess(start)
        while True:
            flow = cp.zeros(self.keys.size, np.int64)
            flow[cp.searchsorted(self.keys, start.keys)] = start.units
            found = sparse.solve(self._core(), sparse.Start(start.col_dual, flow, epsilon))
            self._count(found)
            if not found.is_optimal:
                return dataclasses.replace(found, infeasible_rows=None)
            bound = found.row_dual - tolerance
            more = self._named(self.source.nearest(found.col_dual, bound, MORE))
            self.readings += 1
            control.phase(
                found=0, matched=int(found.flow.sum()), step="pricing", added=int(more.size),
                depth=self.depth,
            )  # fmt: skip
            self.counts["readings"], self.counts["pairs"] = self.readings, int(self.keys.size)
            if not more.size:
                return found
            epsilon = self._mean_undercut(more, found)
            self._add(more)
            keys = found.rows * self.ncols + found.cols
            start = _Estimate(found.col_dual, keys, found.flow)

    def _core(self) -> TransportTask:
        """The problem of the core's pairs."""
        data = self.source.at(self.keys // self.ncols, self.keys % self.ncols)
        return in_csr(self.task, self.keys, data)

    def _count(self, found: TransportSolution) -> None:
        for name, number in found.stats.items():
            self.counts[name] = self.counts.get(name, 0) + number

    def _bound(self) -> cp.ndarray:
        """Reduced costs beyond which a row stays where it is."""
        if self.task.row_limit is not None:
            return self.task.row_limit
        return cp.full(self.nrows, self.far)

    def _named(self, pairs: tuple[Any, Any]) -> cp.ndarray:
        """The keys of pairs."""
        return pairs[0].astype(np.int64) * self.ncols + pairs[1]

    def _add(self, keys: cp.ndarray) -> None:
        """Add pairs to the core."""
        self.keys = cp.unique(cp.concatenate([self.keys, keys]))

    def _mean_undercut(self, keys: cp.ndarray, found: TransportSolution) -> float:
        """How much less than its dual such pairs cost a row, on average of all such rows.

        It is 0 if there are few such rows, for which paths suffice.
        """
        if keys.size < FEW * self.nrows:
            return 0.0
        rows, cols = keys // self.ncols, keys % self.ncols
        least = cp.zeros(self.nrows, self.source.dtype)
        slack = self.source.at(rows, cols) - found.col_dual[cols] - found.row_dual[rows]
        csr.lower(least, rows, slack)
        return -float(least[least < 0].astype(np.float64).mean())

    def _mean_excess(self, start: _Estimate) -> float:
        """How much dearer than the row's cheapest pair a unit of a flow is, on average."""
        least = self.source.least_of_rows(start.col_dual)
        if self.task.row_limit is not None:
            least = cp.minimum(least, self.task.row_limit)
        rows, cols = start.keys // self.ncols, start.keys % self.ncols
        excess = self.source.at(rows, cols) - start.col_dual[cols] - least[rows]
        total = float(start.units.sum())
        if not total:
            return 0.0
        mean = float((excess.astype(np.float64) * start.units).sum()) / total
        return max(mean, np.finfo(np.float64).tiny)

    # -- the estimate ------------------------------------------------------------------------------

    def _estimate(self) -> _Estimate | None:
        """Duals and a flow by the problem of groups; None if the control has stopped the run."""
        task = self.task
        heads = _heads(self.row_order), _heads(self.col_order)
        of_rows, of_cols = (
            _sums(masses, order)
            for masses, order in ((task.supply, self.row_order), (task.demand, self.col_order))
        )
        smaller = _Level(
            dataclasses.replace(
                task, supply=of_rows, demand=of_cols,
                row_limit=None if task.row_limit is None else task.row_limit[heads[0]],
            ),
            self.source.part(*heads),
            cp.arange(of_rows.size), cp.arange(of_cols.size), self.depth + 1,
        )  # fmt: skip
        found = smaller.solved()
        if found is None or not found.is_optimal:
            return None
        col_dual = self.source.conjugate(heads[0], found.row_dual)
        if not self.is_even:
            col_dual = cp.minimum(col_dual, 0)
        rows, cols, units = self._poured(found, of_rows, of_cols)
        return _Estimate(col_dual, rows * self.ncols + cols, units)

    def _poured(
        self, found: TransportSolution, of_rows: cp.ndarray, of_cols: cp.ndarray
    ) -> tuple[cp.ndarray, cp.ndarray, cp.ndarray]:
        """The flow of groups divided among their members: rows, columns and units.

        The units of each group, in the order of its members, are a part of a line. So are those of
        its flow, in the order of its other ends. Both cut the line, and members get the pieces.
        """
        task = self.task
        beyond = of_cols.size  # stands for units that stay
        stay = of_rows - _totals(found.rows, found.flow, of_rows.size)
        groups = cp.concatenate([found.rows, cp.arange(of_rows.size)])
        others = cp.concatenate([found.cols, cp.full(of_rows.size, beyond, np.int64)])
        units = cp.concatenate([found.flow, stay])
        order = cp.argsort(groups * (beyond + 1) + others)
        members, flows, sizes = _pieces(task.supply[self.row_order], units[order])
        rows, other = self.row_order[members], others[order][flows]

        lack = of_cols - _totals(found.cols, found.flow, of_cols.size)
        rows = cp.concatenate([rows, cp.full(of_cols.size, -1, rows.dtype)])
        other = cp.concatenate([other, cp.arange(of_cols.size)])
        sizes = cp.concatenate([sizes, lack])
        kept = cp.flatnonzero(other < beyond)
        order = kept[cp.argsort(other[kept])]
        members, flows, sizes = _pieces(task.demand[self.col_order], sizes[order])
        rows, cols = rows[order][flows].astype(np.int64), self.col_order[members]
        used = cp.flatnonzero(rows >= 0)
        return rows[used], cols[used].astype(np.int64), sizes[used]


def _heads(order: cp.ndarray) -> cp.ndarray:
    """The vertex that stands for each group: one in the middle."""
    begins = cp.arange(0, order.size, MEMBERS)
    return order[cp.minimum(begins + MEMBERS // 2, order.size - 1)]


def _sums(masses: cp.ndarray, order: cp.ndarray) -> cp.ndarray:
    """The mass of each group."""
    line = cp.zeros(order.size + 1, np.int64)
    cp.cumsum(masses[order], out=line[1:])
    ends = cp.minimum(cp.arange(0, order.size + MEMBERS, MEMBERS), order.size)
    return cp.diff(line[ends])


def _totals(groups: cp.ndarray, units: cp.ndarray, count: int) -> cp.ndarray:
    """The units of each group."""
    order = cp.argsort(groups)
    line = cp.zeros(order.size + 1, np.int64)
    cp.cumsum(units[order], out=line[1:])
    return cp.diff(line[cp.searchsorted(groups[order], cp.arange(count + 1))])


def _pieces(one: cp.ndarray, other: cp.ndarray) -> tuple[cp.ndarray, cp.ndarray, cp.ndarray]:
    """The pieces of a line that two divisions of it make: the part of either, and the length.

    The parts of both have the same total.
    """
    ends_of_one, ends_of_other = cp.cumsum(one), cp.cumsum(other)
    ends = cp.unique(cp.concatenate([ends_of_one, ends_of_other]))
    begins = cp.concatenate([cp.zeros(1, np.int64), ends[:-1]])
    used = cp.flatnonzero(ends > begins)
    begins, ends = begins[used], ends[used]
    return (
        cp.searchsorted(ends_of_one, begins, side="right"),
        cp.searchsorted(ends_of_other, begins, side="right"),
        ends - begins,
    )
