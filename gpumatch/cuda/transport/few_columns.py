"""Dense transport with few columns: most rows go whole to their cheapest column, and never move.

1. Newton's method finds prices at which the loads of the columns nearly agree with the demands
   (`prices`).
2. Each row ships all to its cheapest column. Rows whose second best column costs little more become
   marginal: some of each column, with twice the units that the column has too much.
3. Shortest paths between columns move what they have too much to those that have too little, by
   rows that are marginal (few_columns.cu). Before a price would fall so far that another row might
   leave its column, more rows become marginal, and the paths go on.

Each time at least as many rows of the column in question become marginal as before, so this ends. A
path ships a unit or more. Nothing is unfolded.

A limit is one more column, whose demand is beyond all supply. What the columns could take beyond
all supply is spare, and comes from one more node at no cost, so both sides have equal totals. A
column that must get something takes no more of what is spare than it may lack. Columns without
demand are left out, and get their duals at the end. Paths only lower prices. In the end all of them
are shifted, so that the node of what is spare has the price 0.

Device memory, beside the costs: 90 bytes a row, and 20 bytes for each two columns.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Stopped
from gpumatch.contracts.transport import TransportSolution, TransportTask
from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for
from gpumatch.cuda.launches import Board
from gpumatch.cuda.transport.prices import LEAST_ROWS, NUMBERS, lanes_for, nearly_right
from gpumatch.numeric.units import merged, units_at

__all__ = ["FEW", "solve", "takes"]

FEW = Source(
    "transport/few_columns.cu",
    (
        *("settle<{Cost}>", "classify<{Cost}>", "choose<{Cost}>", "mark<{Cost}>"),
        *("hold<{Cost}>", "find_all_arcs<{Cost}>", "ship<{Cost}>"),
    ),
    {"Cost": NUMBERS},
    structs=("Matrix<{Cost}>", "Rows<{Cost}>", "Classes<{Cost}>", "Flow<{Cost}>", "Progress"),
)
_BLOCK, _CLASSES = FEW.constant("kBlock"), FEW.constant("kClasses")
MOST = FEW.constant("kMost") - 2
GOING, SHIPPED, NARROW, FULL, CUT = (
    FEW.constant(name) for name in ("kGoing", "kShipped", "kNarrow", "kFull", "kCut")
)

MARGINAL = 24
"""Marginal rows of each column at first; twice as many whenever there are too few."""
SPARE_ENTRIES = 64
"""Entries that a list has room for beyond one and a half times those that it has."""
LOOKS_A_LAUNCH = 2**13
"""Columns that a launch takes from the queues of its searches: some hundredths of a second."""
LEAST_THREADS = 128
"""Threads that search for paths: one a column, between these and a block. A power of two."""
ROOM = 16
"""Sums of prices and lengths are at most so many times (columns + 2) times the largest cost."""


def takes(task: TransportTask) -> bool:
    """True if the problem is dense with few columns, and sums of integers fit into 64 bits."""
    if task.is_sparse or not 0 < task.shape[1] <= MOST or not task.shape[0]:
        return False
    return not task.is_integer or ROOM * (task.shape[1] + 2) * _largest(task) < 2**62


def solve(task: TransportTask) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.contracts.transport` states."""
    return _FewColumns(task).solve()


def _largest(task: TransportTask) -> float:
    """The greatest magnitude of finite costs and limits."""
    if task.largest is not None:
        return task.largest
    parts = [task.costs] if task.row_limit is None else [task.costs, task.row_limit]
    sizes = [abs(part) for part in parts]
    return max(cp.where(size < np.inf, size, 0).max().item() for size in sizes)


class _FewColumns:
    """A problem of the columns with demand, and that of the limit."""

    def __init__(self, task: TransportTask) -> None:
        self.task, self.control = task, task.control
        self.supply, self.nrows = task.supply, task.shape[0]
        self.number: Any = task.dtype.type
        self.far = self.number(np.iinfo(np.int64).max if task.is_integer else np.inf)
        demand = cp.asnumpy(task.demand)
        self.cols = np.flatnonzero(demand)
        values, forbidden = task.costs, task.forbidden
        if self.cols.size < demand.size:
            kept = cp.asarray(self.cols)
            values = cp.ascontiguousarray(values[:, kept])
            forbidden = None if forbidden is None else cp.ascontiguousarray(forbidden[:, kept])
        has_limit = task.row_limit is not None
        self.ncols, self.count = self.cols.size, self.cols.size + has_limit
        self.total = int(task.supply.sum())
        least = np.zeros_like(demand) if task.least is None else cp.asnumpy(task.least)
        self.demand = demand[self.cols].tolist() + [self.total + 1] * has_limit
        self.lower = least[self.cols].tolist() + [0] * has_limit
        self.spare = sum(self.demand) - self.total
        self.matrix = {
            "values": values,
            "forbidden": forbidden,
            "limit": task.row_limit,
            "nrows": self.nrows,
            "ncols": self.ncols,
            "count": self.count,
        }
        self.width = lanes_for(max(self.count, 1))
        self.stats = {"marginal": 0, "rounds": 0, "steps": 0, "paths": 0, "looks": 0}

    # -- the run -----------------------------------------------------------------------------------

    def solve(self) -> TransportSolution:
        if not self.count:
            return self._without_columns()
        self.kernels = kernels_for(FEW, Cost=self.task.dtype)
        self.place = cp.full(self.nrows, -1, np.int32)
        self.gap = cp.full(self.nrows, self.far)
        self.least = cp.empty(self.nrows, self.number)
        self.is_marginal = cp.zeros(self.nrows, bool)
        self.entries: Any = None
        self.price = cp.zeros(self.count + 1, self.number)
        violator, is_optimal = None, False
        try:
            self._find_prices()
        except Stopped:
            is_stopped = True
        else:
            is_stopped = False
        load = self._settle(is_first=True)
        lost = cp.flatnonzero((self.place < 0) & (self.supply > 0))
        if lost.size:
            violator = lost
        else:
            self._begin(load)
            if not is_stopped:
                try:
                    violator = self._ship()
                    is_optimal = violator is None
                except Stopped:
                    pass
        self.price -= self.price[-1] if self.spare else self.price[:-1].max()
        self._settle()
        return self._solution(is_optimal, violator)

    def _find_prices(self) -> None:
        """Write prices that are nearly right."""
        initial = self.task.initial
        given: np.ndarray | None = None
        if initial is not None:
            given = cp.asnumpy(initial[1]).astype(np.float64)[self.cols]
            bound = 4.0 * _largest(self.task)
            given = np.clip(given if self.spare else given - given.max(), -bound, bound)
            given = np.append(given, np.zeros(self.count - self.ncols))
        is_small = self.nrows < LEAST_ROWS // 4 or self.nrows < 4 * self.count
        if self.total and not is_small:
            most = np.array(self.demand, np.float64)
            if self.count > self.ncols:
                most[-1] = np.inf
            given, self.stats["steps"] = nearly_right(
                self.matrix, self.supply, np.array(self.lower, np.float64), most, given,
                self.control, self.task.seed, self._finest(),
            )  # fmt: skip
        if given is None:
            return
        if self.spare:
            given = np.where(np.array(self.lower) == 0, np.minimum(given, 0), given)
        else:
            given = given - given.max()
        if self.task.is_integer:
            given = np.rint(given)
        self.price[:-1] = cp.asarray(given.astype(self.number))

    def _finest(self) -> float:
        """By how much prices may be wrong without harm."""
        return 0.125 if self.task.is_integer else 2.0**-40 * _largest(self.task)

    def _begin(self, load: np.ndarray) -> None:
        """Let what is spare fill columns, and find what each node has too much."""
        price, left = cp.asnumpy(self.price), self.spare
        excess = [got - most for got, most in zip(load.tolist(), self.demand)]
        most_spare = [
            most - least if least else 2**62 + 1 for most, least in zip(self.demand, self.lower)
        ]
        spare = [most if high else 0 for most, high in zip(most_spare, price[:-1] > 0)]
        left -= sum(spare)
        for col in np.flatnonzero(price[:-1] == 0).tolist():
            spare[col] = max(min(left, -excess[col], most_spare[col]), 0)
            left -= spare[col]
        excess = [units + more for units, more in zip(excess, spare)]
        self.excess, self.spares, self.most_spare = (
            cp.asarray(np.array(units, np.int64)) for units in ([*excess, left], spare, most_spare)
        )
        nothing = cp.empty(0, np.int32)
        self.entries = nothing, nothing, cp.empty(0, np.int64)

    def _ship(self) -> cp.ndarray | None:
        """Ship along paths until nothing is too much; a Hall violator if that is not possible."""
        nodes = self.count + 1
        self.table = cp.full(nodes * nodes, self.far)
        self.by = cp.full(nodes * nodes, -1, np.int32)
        self.room = cp.full(nodes, self.far)
        self.is_reached = cp.zeros(nodes, bool)
        self.longest = cp.zeros(self.count, np.int64)
        board = Board(self.kernels.struct("Progress"))
        status, least = NARROW, MARGINAL
        threads = min(_BLOCK, max(LEAST_THREADS, 1 << self.count.bit_length()))
        while True:
            if status == NARROW:
                self._widen(least)
                least *= 2
            if status in (NARROW, FULL):
                needed = int(board.seen["needed"]) if status == FULL else 0
                flow = self._hold(int(board.seen["column"]), needed)
            if status == NARROW:
                self._launch("find_all_arcs<{Cost}>", self.count, flow)
            self.kernels["ship<{Cost}>"](
                (1,), (threads,), (flow, board.state, np.int32(LOOKS_A_LAUNCH))
            )
            board.look()
            status = int(board.seen["status"])
            self.stats["paths"] = int(board.seen["paths"])
            self.stats["looks"] = int(board.seen["looks"])
            if status == SHIPPED:
                return None
            if status == CUT:
                return self._violator()
            if self.control.tick(0):
                raise Stopped

    # -- steps -------------------------------------------------------------------------------------

    def _launch(self, kernel: str, blocks: int, *arguments: Any) -> None:
        self.kernels[kernel]((blocks,), (_BLOCK,), arguments)

    def _rows(self, *, is_first: bool = False) -> Any:
        return self.kernels.struct("Rows")(
            matrix=self.matrix,
            price=self.price,
            supply=self.supply,
            place=self.place,
            gap=self.gap,
            least=self.least,
            is_marginal=self.is_marginal,
            width=self.width,
            is_first=is_first,
        )

    def _settle(self, *, is_first: bool = False) -> np.ndarray:
        """Find least reduced costs and gaps of all rows, and at first their columns.

        Returns the loads of the columns, which are 0 but for the first time.
        """
        load = cp.zeros(self.count, np.uint64)
        blocks = blocks_for(self.nrows * self.width // 2)
        self._launch("settle<{Cost}>", blocks, self._rows(is_first=is_first), load)
        if not is_first:
            return np.zeros(self.count, np.uint64)
        return cp.asnumpy(load)

    def _widen(self, least: int) -> None:
        """Make more rows marginal, at least so many in each column."""
        if self.stats["rounds"]:
            self._settle()
        self.stats["rounds"] += 1
        size = self.count * _CLASSES
        is_new = cp.zeros(self.nrows, bool)
        finite = cp.where(self.gap < self.far, self.gap, 0)
        held = {
            "rows": cp.zeros(size, np.int32),
            "units": cp.zeros(size, np.uint64),
            "last": cp.zeros(self.count, np.int32),
            "room": self.room,
            "is_new": is_new,
        }
        typical = float(finite.mean(dtype=np.float64)) or 1.0
        classes = self.kernels.struct("Classes")(**held, typical=typical)
        rows, blocks = self._rows(), blocks_for(self.nrows // 2)
        self._launch("classify<{Cost}>", blocks, rows, classes)
        self._launch("choose<{Cost}>", 1, rows, classes, self.excess, np.int32(least))
        self._launch("mark<{Cost}>", blocks, rows, classes)
        new = cp.flatnonzero(is_new).astype(np.int32)
        self.is_marginal |= is_new
        self.stats["marginal"] += int(new.size)
        more = new, self.place[new], self.supply[new]
        self.entries = tuple(cp.concatenate(pair) for pair in zip(self._listed(), more))

    def _hold(self, column: int, needed: int) -> Any:
        """Put all entries into lists, that of a column with room for what is needed.

        No list becomes shorter, so this happens a few times for each column.
        """
        rows, cols, units = self._listed()
        order = cp.argsort(cols, kind="stable")
        rows, cols, units = rows[order], cols[order], units[order]
        size = cp.bincount(cols, minlength=self.count).astype(np.int64)
        most = cp.maximum(size + size // 2 + SPARE_ENTRIES, self.longest)
        if needed:
            most[column] = max(needed, int(size[column])) * 3 // 2 + SPARE_ENTRIES
        self.longest = most
        begin, first = (cp.zeros(self.count + 1, np.int64) for _ in range(2))
        cp.cumsum(most, out=begin[1:])
        cp.cumsum(size, out=first[1:])
        total = int(begin[-1])
        at = begin[cols] - first[cols] + cp.arange(cols.size)
        self.begin, self.size = begin.astype(np.int32), size.astype(np.int32)
        self.lists = (
            cp.zeros(total, np.int32), cp.zeros(total, np.int64), cp.zeros(total, self.number)
        )  # fmt: skip
        self.entries = None
        flow = self.kernels.struct("Flow")(
            matrix=self.matrix,
            price=self.price,
            room=self.room,
            excess=self.excess,
            spare=self.spares,
            most_spare=self.most_spare,
            begin=self.begin,
            size=self.size,
            rows=self.lists[0],
            units=self.lists[1],
            own=self.lists[2],
            table=self.table,
            by=self.by,
            is_reached=self.is_reached,
        )
        if rows.size:
            self.kernels["hold<{Cost}>"](
                (blocks_for(rows.size),), (BLOCK,),
                (flow, rows, cols, units, at, np.int32(rows.size)),
            )  # fmt: skip
        return flow

    def _listed(self) -> tuple[cp.ndarray, cp.ndarray, cp.ndarray]:
        """The rows, columns and units of all entries, by columns."""
        if self.entries is not None:
            return self.entries
        slot = cp.arange(self.lists[0].size)
        cols = cp.searchsorted(self.begin, slot, side="right") - 1
        slot = cp.flatnonzero(slot - self.begin[cols] < self.size[cols])
        return self.lists[0][slot], cols[slot].astype(np.int32), self.lists[1][slot]

    def _violator(self) -> cp.ndarray:
        """The rows that ship to the columns that the last search has reached."""
        rows, cols, _ = self._listed()
        is_in = (self.place >= 0) & ~self.is_marginal & (self.supply > 0)
        is_in &= self.is_reached[cp.maximum(self.place, 0)]
        is_in[rows[self.is_reached[cols]]] = True
        return cp.flatnonzero(is_in)

    # -- the solution ------------------------------------------------------------------------------

    def _solution(self, is_optimal: bool, violator: cp.ndarray | None) -> TransportSolution:
        empty = cp.empty(0, np.int64)
        flow = (empty, empty, empty) if violator is not None else self._flow(is_optimal)
        return TransportSolution(
            *flow, *self._duals(), is_optimal, violator, stats=dict(self.stats)
        )

    def _flow(self, is_optimal: bool) -> tuple[cp.ndarray, cp.ndarray, cp.ndarray]:
        """The flow by row and column. Where a run was stopped, columns drop what is too much."""
        rows, cols, units = self._listed()
        kept = cp.flatnonzero(cols < self.ncols)
        part = merged(rows[kept], cols[kept], units[kept])
        whole = cp.flatnonzero(
            ~self.is_marginal & (self.supply > 0) & (self.place >= 0) & (self.place < self.ncols)
        )
        there = self.place[whole].astype(np.int64)
        at = (
            cp.arange(whole.size) + cp.searchsorted(part[0], whole),
            cp.arange(part[0].size) + cp.searchsorted(whole, part[0], side="right"),
        )
        flow = []
        for ones, others in zip((whole, there, self.supply[whole]), part):
            joined = cp.empty(ones.size + others.size, np.int64)
            joined[at[0]], joined[at[1]] = ones, others
            flow.append(joined)
        if not is_optimal:
            flow = self._within_demand(*flow)
        return flow[0], cp.asarray(self.cols)[flow[1]], flow[2]

    def _within_demand(self, rows: Any, cols: Any, units: Any) -> list[Any]:
        """The first pairs of each column, up to its demand."""
        order = cp.argsort(cols, kind="stable")
        load = units_at(cols, units, self.ncols)
        first, before = (cp.zeros(length + 1, np.int64) for length in (self.ncols, cols.size))
        cp.cumsum(load, out=first[1:])
        cp.cumsum(units[order], out=before[1:])
        demand = cp.asarray(np.array(self.demand[: self.ncols], np.int64))
        ahead = before[:-1] - first[cols[order]]
        taken = cp.zeros_like(units)
        taken[order] = cp.clip(demand[cols[order]] - ahead, 0, units[order])
        kept = cp.flatnonzero(taken)
        return [rows[kept], cols[kept], taken[kept]]

    def _duals(self) -> tuple[cp.ndarray, cp.ndarray]:
        """The duals of all rows, and of all columns."""
        row_dual = cp.where(self.least < self.far, self.least, self.number(0))
        col_dual = cp.zeros(self.task.shape[1], self.number)
        col_dual[cp.asarray(self.cols)] = self.price[: self.ncols]  # before that of the limit
        self._add_empty_columns(row_dual, col_dual)
        return row_dual, col_dual

    def _add_empty_columns(self, row_dual: cp.ndarray, col_dual: cp.ndarray) -> None:
        """Write the duals of the columns without demand: at most 0, and feasible."""
        others = np.setdiff1d(np.arange(self.task.shape[1]), self.cols)
        costs, forbidden = self.task.costs, self.task.forbidden
        for col in others.tolist():
            slack = cp.where(costs[:, col] < self.far, costs[:, col] - row_dual, self.far)
            if forbidden is not None:
                slack = cp.where(forbidden[:, col], self.far, slack)
            col_dual[col] = cp.minimum(slack.min(), 0)

    def _without_columns(self) -> TransportSolution:
        """No column has a demand, and no unit may stay."""
        empty = cp.empty(0, np.int64)
        row_dual = cp.zeros(self.nrows, self.number)
        col_dual = cp.zeros(self.task.shape[1], self.number)
        self._add_empty_columns(row_dual, col_dual)
        needy = cp.flatnonzero(self.supply)
        violator = needy if needy.size else None
        return TransportSolution(
            empty, empty, empty, row_dual, col_dual, violator is None, violator,
            stats=dict(self.stats),
        )  # fmt: skip
