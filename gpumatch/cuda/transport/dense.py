"""Dense transport on the GPU: a core of pairs, solved in CSR, and pricing of all pairs.

1. *Estimate*: rows and columns are ordered by their costs to a few others, so that neighbours are
   alike, and four in a row are a group. One vertex stands for each group, with the sum of its
   masses. That is a problem of a sixteenth of the pairs, which is solved in the same way.
2. *Core*: the estimate's duals tell which pairs are cheap. The cheapest of each row are the core,
   and the pairs of a first flow: that of the groups, poured out over their members. So the core
   can ship all.
3. *Solve* the core in CSR (`sparse.engine`), from the estimate's duals and the first flow.
4. *Price* all pairs: those that cost less than their duals join the core, some of each row, and
   step 3 follows from the duals and the flow that are there. Once there is none, the flow is
   optimal.

In costs of points, of images or of low rank the estimate is nearly right. In others it is of little
use, but no harm. A small problem is solved with all its pairs, and so is one with forbidden pairs,
because its core might not ship all that can be shipped.

Reference: Schmitzer, *A sparse multiscale algorithm for dense optimal transport*, Journal of
Mathematical Imaging and Vision 56, 2016.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.cuda import csr
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.cuda.assignment.points.boxes import order_of
from gpumatch.cuda.memory import require_memory
from gpumatch.cuda.transport.sparse import engine as sparse
from gpumatch.transport_contracts import TransportSolution, TransportTask

__all__ = ["WHOLE", "solve"]

WHOLE = 2**18
"""Pairs up to which all of them are solved in CSR."""
NEAREST, MORE = 12, 8
"""The pairs of a row in the first core, and those that join it in a pricing."""
LANDMARKS = 3
"""The columns by whose costs rows are ordered, and the rows by whose costs columns are."""
MEMBERS = 4
"""Members of a group."""
ROUNDING = 2.0**-46
"""The slack of floats that is rounding, as a share of the largest magnitude."""
ENTRIES = 2**24
"""Entries of rows without supply that are copied at a time."""
BYTES_A_PAIR = 120
"""The memory of a pair in CSR while it is sorted."""


def solve(task: TransportTask) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.transport_contracts` states.

    Only problems that are solved with all pairs begin from given duals.

    Raises
    ------
    gpumatch.cuda.transport.sparse.engine.TooLargeError
        Integer costs are so large that sums might overflow.
    MemoryError
        All pairs are needed, and there is no memory for them in CSR.
    """
    costs = task.costs
    assert costs is not None
    is_complete = task.forbidden is None and (
        not costs.size or task.is_integer or bool(cp.isfinite(costs.max()))
    )
    rows, cols = cp.flatnonzero(task.supply > 0), cp.flatnonzero(task.demand > 0)
    if rows.size * cols.size <= WHOLE or not is_complete:
        return sparse.solve(_all_pairs(task))
    part = task
    if rows.size < task.supply.size or cols.size < task.demand.size:
        part = dataclasses.replace(
            task, supply=task.supply[rows], demand=task.demand[cols],
            costs=cp.ascontiguousarray(costs[rows[:, None], cols]),
            row_limit=None if task.row_limit is None else task.row_limit[rows],
        )  # fmt: skip
    found = _Level.of(part).solve()
    return _with_idle(task, found, rows, cols)


def _all_pairs(task: TransportTask) -> TransportTask:
    """The same problem with all allowed pairs in CSR."""
    costs = task.costs
    assert costs is not None
    require_memory(BYTES_A_PAIR * costs.size, "transport with all pairs")
    nrows, ncols = costs.shape
    if task.forbidden is not None:
        allowed = ~task.forbidden
    elif task.is_integer:
        indptr = cp.arange(nrows + 1) * ncols
        indices = cp.tile(cp.arange(ncols, dtype=np.int32), nrows)
        data = costs.ravel()
        return dataclasses.replace(task, costs=None, indptr=indptr, indices=indices, data=data)
    else:
        allowed = cp.isfinite(costs)
    keys = cp.flatnonzero(allowed.ravel())
    return _in_csr(task, keys, costs.ravel()[keys], ncols)


def _in_csr(task: TransportTask, keys: cp.ndarray, data: cp.ndarray, ncols: int) -> TransportTask:
    """A problem with some pairs: their ``row * ncols + column`` in ascending order, and costs."""
    starts = cp.arange(task.supply.size + 1) * ncols
    return dataclasses.replace(
        task, costs=None, forbidden=None, indptr=cp.searchsorted(keys, starts),
        indices=(keys % max(ncols, 1)).astype(np.int32), data=data,
    )  # fmt: skip


def _with_idle(
    task: TransportTask, found: TransportSolution, rows: cp.ndarray, cols: cp.ndarray
) -> TransportSolution:
    """The solution of a problem with rows and columns of no mass, from that of the others.

    A row without supply gets the greatest dual that is allowed. A column without demand gets one
    that no pair can undercut.
    """
    if rows.size == task.supply.size and cols.size == task.demand.size:
        return found
    assert task.costs is not None
    row_dual, idle = cp.empty(task.supply.size, task.dtype), cp.flatnonzero(task.supply == 0)
    row_dual[rows] = found.row_dual
    step = ENTRIES // task.costs.shape[1] + 1
    for some in (idle[first : first + step] for first in range(0, idle.size, step)):
        row_dual[some] = (task.costs[some[:, None], cols] - found.col_dual).min(axis=1)
    if task.row_limit is not None:
        row_dual = cp.minimum(row_dual, task.row_limit)
    col_dual = cp.empty(task.demand.size, task.dtype)
    col_dual[:] = cp.minimum(task.costs.min() - row_dual.max(), 0)
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
    """A complete problem without idle rows and columns, or one of its groups.

    Attributes
    ----------
    task : TransportTask
    row_order, col_order : int arrays
        Orders in which neighbours are alike.
    depth : int
        How many times vertices were grouped.
    """

    task: TransportTask
    row_order: cp.ndarray
    col_order: cp.ndarray
    depth: int = 0

    @classmethod
    def of(cls, task: TransportTask) -> _Level:
        rng, (nrows, ncols) = np.random.default_rng(task.seed), task.shape
        assert task.costs is not None
        some_cols = np.sort(rng.permutation(ncols)[:LANDMARKS])
        some_rows = np.sort(rng.permutation(nrows)[:LANDMARKS])
        of_rows = task.costs[:, cp.asarray(some_cols)].astype(np.float64)
        of_cols = task.costs[cp.asarray(some_rows)].T.astype(np.float64)
        return cls(task, order_of(of_rows), order_of(cp.ascontiguousarray(of_cols)))

    def __post_init__(self) -> None:
        task = self.task
        assert task.costs is not None
        self.nrows, self.ncols = task.shape
        far: Any = np.iinfo(np.int64).max if task.is_integer else np.inf
        self.rows = ArrayRows(task.costs, task.dtype.type(far), self._beat)
        spare = int(task.demand.sum()) - int(task.supply.sum())
        self.is_even = task.row_limit is None and spare == 0
        self.keys: cp.ndarray = cp.empty(0, np.int64)
        self.readings = 0
        self.counts: dict[str, Any] = {}

    def _beat(self) -> bool:
        return self.task.control.tick(0)

    def solve(self) -> TransportSolution:
        """The solution with fair duals, by an estimate, a core and pricing."""
        found = self.solved()
        if found is None:
            none = cp.empty(0, np.int64)
            col_dual = cp.zeros(self.ncols, self.task.dtype)
            found = TransportSolution(none, none, none, col_dual, col_dual, False)
        row_dual = self.rows.least_of_rows(found.col_dual)
        if self.task.row_limit is not None:
            row_dual = cp.minimum(row_dual, self.task.row_limit)
        return dataclasses.replace(found, row_dual=row_dual, stats=self.counts)

    def solved(self) -> TransportSolution | None:
        """The solution, or None if the control has stopped the run before there was a flow."""
        if self.nrows * self.ncols <= WHOLE:
            self.keys = cp.arange(self.nrows * self.ncols)
            found = sparse.solve(_all_pairs(self.task))
            return found if found.is_optimal else None
        estimate = self._estimate()
        if estimate is None:
            return None
        bound = self._bound(estimate.col_dual)
        near = self._named(self.rows.nearest(estimate.col_dual, bound, NEAREST))
        self._add(near)
        self._add(estimate.keys)
        return self._solve_from(estimate)

    def _solve_from(self, start: _Estimate) -> TransportSolution:
        """Solve the core and price all pairs, until none costs less than its duals."""
        control, costs, largest = self.task.control, self.rows.values, 0.0
        if not self.task.is_integer:
            largest = max(abs(float(end)) for end in (costs.min(), costs.max()))
        tolerance = self.task.dtype.type(ROUNDING * largest)
        epsilon = self._mean_excess(start)
        while True:
            flow = cp.zeros(self.keys.size, np.int64)
            flow[cp.searchsorted(self.keys, start.keys)] = start.units
            data = self.rows.at(self.keys // self.ncols, self.keys % self.ncols)
            core = _in_csr(self.task, self.keys, data, self.ncols)
            found = sparse.solve(core, sparse.Start(start.col_dual, flow, epsilon))
            self._count(found)
            if not found.is_optimal:
                return dataclasses.replace(found, infeasible_rows=None)
            bound = found.row_dual - tolerance
            more = self._named(self.rows.nearest(found.col_dual, bound, MORE))
            self.readings += 1
            control.phase(
                found=0, matched=int(found.flow.sum()), step="pricing", added=int(more.size),
                depth=self.depth,
            )  # fmt: skip
            self.counts["readings"], self.counts["pairs"] = self.readings, int(self.keys.size)
            if not more.size:
                return found
            self._add(more)
            keys = found.rows * self.ncols + found.cols
            start, epsilon = _Estimate(found.col_dual, keys, found.flow), 0.0

    def _count(self, found: TransportSolution) -> None:
        for name, number in found.stats.items():
            self.counts[name] = self.counts.get(name, 0) + number

    def _bound(self, col_dual: cp.ndarray) -> cp.ndarray:
        """Reduced costs beyond which a row stays where it is."""
        if self.task.row_limit is not None:
            return self.task.row_limit
        return cp.full(self.nrows, self.rows.far)

    def _named(self, pairs: tuple[Any, Any, Any]) -> cp.ndarray:
        """The keys of pairs."""
        return pairs[0].astype(np.int64) * self.ncols + pairs[1]

    def _add(self, keys: cp.ndarray) -> None:
        """Add pairs to the core."""
        self.keys = cp.unique(cp.concatenate([self.keys, keys]))

    def _mean_excess(self, start: _Estimate) -> float:
        """How much dearer than the row's cheapest pair a unit of a flow is, on average."""
        least = self.rows.least_of_rows(start.col_dual)
        if self.task.row_limit is not None:
            least = cp.minimum(least, self.task.row_limit)
        rows, cols = start.keys // self.ncols, start.keys % self.ncols
        excess = self.rows.at(rows, cols) - start.col_dual[cols] - least[rows]
        total = float(start.units.sum())
        if not total:
            return 0.0
        mean = float((excess.astype(np.float64) * start.units).sum()) / total
        return max(mean, np.finfo(np.float64).tiny)

    # -- the estimate ------------------------------------------------------------------------------

    def _estimate(self) -> _Estimate | None:
        """Duals and a flow by the problem of groups; None if the control has stopped the run."""
        task = self.task
        assert task.costs is not None
        heads = _heads(self.row_order), _heads(self.col_order)
        of_rows, of_cols = (
            _sums(masses, order)
            for masses, order in ((task.supply, self.row_order), (task.demand, self.col_order))
        )
        smaller = _Level(
            dataclasses.replace(
                task, supply=of_rows, demand=of_cols,
                costs=cp.ascontiguousarray(task.costs[heads[0][:, None], heads[1]]),
                row_limit=None if task.row_limit is None else task.row_limit[heads[0]],
            ),
            cp.arange(of_rows.size), cp.arange(of_cols.size), self.depth + 1,
        )  # fmt: skip
        found = smaller.solved()
        if found is None or not found.is_optimal:
            return None
        col_dual = self._conjugate(smaller.keys, found.row_dual, heads[0])
        rows, cols, units = self._poured(found, of_rows, of_cols)
        return _Estimate(col_dual, rows * self.ncols + cols, units)

    def _conjugate(self, keys: cp.ndarray, row_dual: cp.ndarray, heads: cp.ndarray) -> cp.ndarray:
        """Duals of all columns: the least cost less dual of the pairs of their groups."""
        groups = -(-self.ncols // MEMBERS)
        of_row, of_col = keys // groups, keys % groups
        col_dual = cp.full(self.ncols, self.rows.far, self.task.dtype)
        for member in range(MEMBERS):
            place = of_col * MEMBERS + member
            used = cp.flatnonzero(place < self.ncols)
            cols, rows = self.col_order[place[used]], of_row[used]
            csr.lower(col_dual, cols, self.rows.at(heads[rows], cols) - row_dual[rows])
        if not self.is_even:
            cp.minimum(col_dual, 0, out=col_dual)
        return col_dual

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
