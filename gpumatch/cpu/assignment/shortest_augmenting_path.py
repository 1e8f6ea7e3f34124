"""Assignment by shortest augmenting paths: Jonker and Volgenant's algorithm, dense and sparse.

The prices start from the columns' least costs if all must be matched (column reduction), else from
0. Then rows bid for columns, a limited number of times (augmenting row reduction). Each row that is
left gets a shortest augmenting path. There is no tolerance: a search ends because every column
joins its tree once, whatever the rounding is.

O(n²m) for n <= m rows and columns, dense, and O(n (e log m)) for e sparse entries; far less if
costs are spread out. It uses one thread, and the result does not depend on the seed.

References
----------
Jonker, Volgenant, *A shortest augmenting path algorithm for dense and sparse linear assignment
problems*, Computing 38, 1987.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpumatch.arrays import count_matched
from gpumatch.contracts import AssignmentTask, Control, Costs
from gpumatch.cpu.assignment import dense_paths, sparse_paths
from gpumatch.cpu.assignment.dense_paths import (
    FOUND,
    HEAD,
    KEPT,
    LANES,
    NEXT,
    SCANS,
    SPENT,
    STUCK,
)
from gpumatch.cpu.assignment.entries import Entries
from gpumatch.cpu.csr import places_in
from gpumatch.cpu.matching.lookahead_search import LookaheadSearch
from gpumatch.cpu.matching.sides import Side
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.kept_memory import kept_empty, kept_full

__all__ = ["DensePaths", "Paths", "SparsePaths", "run"]

BIDS = 5
"""Scans in a round of bids for each free row, if costs are dense.

With 1, 2, 5, 10 and 20, a uniform matrix of 1,000 rows and costs up to 10**6 takes 8,841, 8,506,
7,884, 7,850 and 8,306 scans in all. A matrix of products of two factors, where bids are in vain,
takes 2.6 % more scans with 5 than with 1, and 12 % more with 20.
"""
SPARSE_BIDS = 32
"""Scans in a round of bids for each free row, if costs are sparse and bids cheap.

With 1, 8, 32 and 128, the paths of a random matrix of 20,000 rows with 21 entries each look at
21.6, 18.7, 13.7 and 9.0 million entries, and the first round of bids at 0.15, 1.2, 4.9 and 8.9
million.
"""
ROUNDS = 2
"""Rounds of bids: as many as Jonker and Volgenant's."""
EACH = 4
"""Rows to be served for each thread that searches."""
ROOM = 64
"""Dense prices and distances stay below this many times the largest cost, C.

Prices stay within 3 C of 0, because a free column has a price within C and no matched pair costs
its row more than that column would. So reduced costs are at most 4 C, and what is added up on the
way to a distance is at most 10 C. The rest is margin.
"""
ADOPTIONS = 4
"""Times that given prices are repaired before they are given up: a few passes over the costs."""


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    control = task.control
    entries = task.costs.entries()
    kind = SparsePaths if isinstance(entries, tuple) else DensePaths
    paths = kind(entries, task.costs, *task.mates, task.solution.col_dual, task.limit)
    try:
        return paths.begin(control) and paths.bid(control) and paths.augment(control)
    finally:
        paths.write_duals(*task.duals)


class Paths(ABC):
    """The common part for dense and sparse costs; subclasses have the kernels."""

    bids: int  # scans in a round of bids, for each free row

    def __init__(
        self,
        entries: Entries,
        costs: Costs,
        row_to_col: np.ndarray,
        col_to_row: np.ndarray,
        col_dual: np.ndarray,
        limit: float | None,
    ) -> None:
        self.entries, self.costs = entries, costs
        self.row_to_col, self.col_to_row = row_to_col, col_to_row
        self.is_given = bool(col_dual.any() or (row_to_col >= 0).any())
        self.leaves = limit is not None
        number = self._number(col_dual, 0 if limit is None else limit)
        self.price = col_dual.astype(number, copy=False)  # mostly in place
        self.limit = number(0 if limit is None else limit)
        self.low, self.far = (
            (number(np.iinfo(number).min), number(np.iinfo(number).max))
            if self.price.dtype.kind == "i"
            else (number(-np.inf), number(np.inf))
        )
        self.all_match = not self.leaves and row_to_col.size == col_to_row.size
        self.minima: np.ndarray | None = None  # those of the start, while its prices stand
        self.room_for_minima: np.ndarray | None = None
        self.spot = np.zeros(7, np.int64)
        self.mark = np.zeros(2, number)

    @property
    @abstractmethod
    def budget(self) -> int:
        """Entries scanned between two returns to Python."""

    @property
    def matched(self) -> int:
        return count_matched(self.row_to_col)

    def begin(self, control: Control) -> bool:
        """Prices and pairs to begin from: those given, as far as they fit together, or new ones."""
        if self.is_given:
            self._adopt()
            return True
        return self._start(control)

    def bid(self, control: Control) -> bool:
        """Rounds of bids by the rows that are free."""
        for _ in range(ROUNDS):
            free = self.start_with_free_rows()
            if not free.size:
                break
            done = False
            while not done:
                done = self._reduce_rows(free)
                matched = self.matched
                if control.tick(matched):
                    return False
            self.record("bids", free, matched, control)
        return True

    def augment(self, control: Control) -> bool:
        """Serve all rows that are free, up to the first that has no path."""
        return self.serve(self.start_with_free_rows(), control)

    def serve(self, free: np.ndarray, control: Control) -> bool:
        """Serve these free rows, up to the first that has no path; False when stopped."""
        outcome, matched = SPENT, self.row_to_col.size - free.size
        while outcome == SPENT and free.size:
            outcome = self.augment_some(free, self.budget)
            matched = self.matched
            if control.tick(matched) and outcome == SPENT:
                return False
        self.record("paths", free, matched, control)
        return True

    def record(self, step: str, free: np.ndarray, matched: int, control: Control) -> None:
        found = matched - (self.row_to_col.size - free.size)
        control.phase(found=found, matched=matched, step=step, scans=int(self.spot[SCANS]))

    def write_duals(self, row_dual: np.ndarray, col_dual: np.ndarray) -> None:
        """The duals at these prices; if all must match, these move so that none is above 0."""
        top = self.price.max() if self.all_match and self.price.size else self.price.dtype.type(0)
        self.price -= top
        col_dual[:] = self.price
        if self.minima is None:
            self.write_minima(row_dual)
        else:
            np.add(self.minima, top, out=row_dual)

    def write_minima(self, minima: np.ndarray) -> None:
        """The least that a column, or taking none, costs each row at these prices."""
        self._row_minima(minima)
        if self.leaves:
            np.minimum(minima, self.limit, out=minima)

    def _number(self, col_dual: np.ndarray, limit: float) -> Any:
        """The type of prices."""
        return col_dual.dtype.type

    def start_with_free_rows(self) -> np.ndarray:
        """The rows that are to be served, whatever that does to prices."""
        self.spot[:] = 0
        self.spot[HEAD] = -1
        free = np.flatnonzero(self.row_to_col < 0).astype(np.int32)
        if free.size:
            self.minima = None
        return free

    def _adopt(self) -> None:
        """Keep the pairs that are cheapest for their rows, and the prices that fit those pairs."""
        if not self.all_match:
            np.minimum(self.price, 0, out=self.price)
        minima = np.empty(self.row_to_col.size, self.price.dtype)
        for _ in range(ADOPTIONS):
            if not self.all_match:
                self.price[self.col_to_row < 0] = 0
            self.write_minima(minima)
            rows = np.flatnonzero(self.row_to_col >= 0)
            cols = self.row_to_col[rows]
            dear = self.costs.at(rows, cols) - self.price[cols] > minima[rows]
            if not dear.any():
                return
            self.row_to_col[rows[dear]] = -1
            self.col_to_row[cols[dear]] = -1
        self.row_to_col[:] = self.col_to_row[:] = -1
        self.price[:] = 0

    def _start(self, control: Control) -> bool:
        return self._reduce_columns(control) if self.all_match else True

    def _reduce_columns(self, control: Control) -> bool:
        """Price the columns at their least costs, and give them to rows that have these costs."""
        nearest = np.zeros(self.price.size, np.int32)
        self.price.fill(self.far)
        for first, last in self._blocks():
            self._lower_to_minima(self.price, nearest, first, last)
            if control.tick(0):
                self.price.fill(0)
                return False
        if (self.price < self.far).all():
            self._take_cheapest(nearest)
        else:
            self.price.fill(0)
        return True

    def _take_cheapest(self, nearest: np.ndarray) -> None:
        """Match rows to columns whose least costs are theirs."""
        dense_paths.take_nearest(
            nearest,  # IN
            self.row_to_col, self.col_to_row,  # OUT
        )  # fmt: skip

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Ranges of rows with about the budget's entries."""
        nrows = self.row_to_col.size
        step = max(1, self.budget * nrows // max(self.costs.nnz, 1))
        for first in range(0, nrows, step):
            yield first, min(first + step, nrows)

    @abstractmethod
    def _lower_to_minima(
        self, lowest: np.ndarray, nearest: np.ndarray, first: int, last: int
    ) -> None:
        """Lower the columns' least costs to those of rows first to last, the ``nearest`` ones."""

    @abstractmethod
    def _reduce_rows(self, free: np.ndarray) -> bool:
        """Let the free rows bid; False when the budget ends before they have."""

    @abstractmethod
    def augment_some(self, free: np.ndarray, budget: int) -> int:
        """Augment along shortest paths from the free rows; why it ended (SPENT: the budget)."""

    @abstractmethod
    def _row_minima(self, minima: np.ndarray) -> None:
        """The least reduced cost of each row."""


class DensePaths(Paths):
    """By the kernels of `dense_paths`."""

    bids = BIDS
    entries: np.ndarray

    def __init__(self, entries: Entries, costs: Costs, *others: Any) -> None:
        super().__init__(entries, costs, *others)
        is_wide = self.price.dtype == np.int64
        self.values = np.require(self.entries, np.int64) if is_wide else self.entries
        number, ncols = self.price.dtype, self.price.size
        self.least = np.empty(LANES, number)
        self.dist = np.empty(ncols, number)
        self.pred = np.empty(ncols, np.int32)
        self.tree = np.empty(ncols, np.int32)
        self.reach = np.empty(ncols, number)

    @property
    def budget(self) -> int:
        return dense_paths.BUDGET

    def _number(self, col_dual: np.ndarray, limit: float) -> Any:
        """int32 if it can hold some times the largest cost, because a vector holds more of them."""
        largest = ROOM * max(self.costs.largest, abs(limit))
        is_narrow = self.entries.dtype == np.int32 and largest <= np.iinfo(np.int32).max
        return np.int32 if is_narrow and not self.is_given else col_dual.dtype.type

    def _start(self, control: Control) -> bool:
        if self.costs.is_complete and self.costs.low == self.costs.high:
            return self._match_diagonal()
        return super()._start(control)

    def _match_diagonal(self) -> bool:
        """If all pairs cost the same, any choice is as good as another."""
        pairs = self.row_to_col.size
        if pairs and not (self.leaves and self.limit <= self.values[0, 0]):
            self.row_to_col[:] = self.col_to_row[:pairs] = np.arange(pairs)
        return True

    def _lower_to_minima(
        self, lowest: np.ndarray, nearest: np.ndarray, first: int, last: int
    ) -> None:
        dense_paths.lower_to_minima(
            self.values,  # IN
            lowest, nearest,  # OUT
            first, last,  # IN
        )  # fmt: skip

    def _reduce_rows(self, free: np.ndarray) -> bool:
        return dense_paths.reduce_rows(
            self.values,  # IN
            self.price, self.row_to_col, self.col_to_row, free, self.spot, self.least,  # OUT
            self.limit, self.leaves, self.far, self.bids * free.size, self.budget,  # IN
        )  # fmt: skip

    def augment_some(self, free: np.ndarray, budget: int) -> int:
        return dense_paths.augment(
            self.values,  # IN
            self.price, self.row_to_col, self.col_to_row,  # OUT
            free,  # IN
            self.spot, self.mark, self.dist, self.pred, self.least, self.tree, self.reach,  # OUT
            self.limit, self.leaves, self.low, self.far, budget,  # IN
        )  # fmt: skip

    def _row_minima(self, minima: np.ndarray) -> None:
        for first, last in self._blocks():
            dense_paths.row_minima(
                self.values, self.price,  # IN
                self.least,  # OUT
                self.far,  # IN
                minima,  # OUT
                first, last,  # IN
            )  # fmt: skip


class FirstPairs(NamedTuple):
    """The columns that rows take first, and the columns' first prices, which such pairs cost."""

    row_to_col: np.ndarray
    price: np.ndarray


class SparsePaths(Paths):
    """By the kernels of `sparse_paths`."""

    entries: tuple[np.ndarray, np.ndarray, np.ndarray]

    def __init__(
        self, entries: Entries, costs: Costs, *others: Any, workers: Workers | None = None
    ) -> None:
        super().__init__(entries, costs, *others)
        self.workers = workers or Workers(1, 0)
        # A bid lowers a price below all others by the range of costs at most.
        most = 4 * SPARSE_BIDS * self.row_to_col.size * costs.largest
        self.bids = SPARSE_BIDS if most < self.far else 1
        self.spot = np.zeros(sparse_paths.SPOTS, np.int64)
        self.clashes = 0  # above 0 if threads have been in each other's way
        self.looks_ahead = True
        self.keeps_first = False
        self.first: FirstPairs | None = None

    @property
    def budget(self) -> int:
        return sparse_paths.BUDGET

    def _start(self, control: Control) -> bool:
        if not super()._start(control):
            return False
        return not self.looks_ahead or self.match_tight(control)

    @cached_property
    def distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of the columns, all `far`, and the rows from which they are reached."""
        distances = kept_full(self.price.size, self.far, self.price.dtype)
        return distances, kept_empty(self.price.size, np.int32)

    @cached_property
    def room(self) -> sparse_paths.Room:
        """What searches need, made for the first."""
        return self._room(np.empty(0, np.int32), 0, self.costs.nnz + 1)

    @cached_property
    def owner(self) -> np.ndarray:
        """The thread that each column belongs to."""
        return kept_full(self.price.size, sparse_paths.NOBODY, np.int32)

    @cached_property
    def rooms(self) -> dict[int, sparse_paths.Room]:
        """Those of threads that search at once."""
        return {}

    @cached_property
    def longest(self) -> int:
        """The entries of the row that has most."""
        return int(np.diff(self.entries[0]).max(initial=0))

    def _room(self, owner: np.ndarray, me: int, most: int) -> sparse_paths.Room:
        """The same of a thread; a column may be in the heap once an entry, of so many at most."""
        near, tree, reached = kept_empty((3, self.price.size), np.int32)
        keys, heap = kept_empty(most, self.price.dtype), kept_empty(most, np.int32)
        return sparse_paths.Room(owner, me, *self.distances, near, keys, heap, tree, reached)

    def _room_of(self, worker: int, most: int) -> sparse_paths.Room:
        """The room of a worker for so many entries: that of its last search, if that suffices."""
        room = self.rooms.get(worker)
        if room is None or room.keys.size < most:
            room = self.rooms[worker] = self._room(self.owner, worker + 1, most)
        return room

    def leave_search(self) -> None:
        """Give up the search that has not ended."""
        if self.spot[HEAD] >= 0:
            reached = self.room.reached[: self.spot[sparse_paths.REACHED]]
            self.room.dist[reached] = self.far

    def excess(self, rows: np.ndarray) -> tuple[int, np.ndarray]:
        """What each entry costs these rows more than their cheapest; how many rows have entries."""
        indptr, indices, weights = self.entries
        count = indptr[rows + 1] - indptr[rows]
        rows, count = rows[count > 0], count[count > 0]
        starts = np.cumsum(count) - count
        places = places_in(indptr, rows)
        reduced = weights[places] - self.price[indices[places]]
        least = np.minimum.reduceat(reduced, starts) if count.size else reduced
        return count.size, reduced - np.repeat(least, count)

    def match_tight(self, control: Control) -> bool:
        """Match free rows to tight columns, as far as one step ahead shows; False when stopped."""
        for rows in self._blocks():
            self._by_shares(self._match_tight, rows)
            if control.tick(self.matched):
                return False
        return True

    def _match_tight(self, rows: tuple[int, int]) -> None:
        sparse_paths.match_tight(
            *self.entries, self.price,  # IN
            self.row_to_col, self.col_to_row,  # OUT
            self.limit, self.leaves, self.far, *rows,  # IN
        )  # fmt: skip

    def match_all_tight(self, control: Control, workers: Workers) -> bool:
        """As many free rows as tight pairs allow, by the matching's searches; False when stopped.

        They go on as long as a phase of them serves rows.
        """
        side = Side(*self._tight_pairs(), self.row_to_col, self.col_to_row)
        search = LookaheadSearch(side, workers)
        found, matched = -1, self.matched
        while found:
            found = search.phase(control, matched)
            if found < 0:
                return False
            matched += found
        return True

    def _tight_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The pairs that cost their rows the least, in CSR."""
        indptr, indices, _ = self.entries
        tight_indptr, tight_indices = np.zeros_like(indptr), np.empty_like(indices)

        def find(rows: tuple[int, int]) -> None:
            sparse_paths.tight_pairs(
                *self.entries, self.price, self.limit, self.leaves, self.far,  # IN
                tight_indptr, tight_indices,  # OUT
                *rows,  # IN
            )  # fmt: skip

        nrows, count = self.row_to_col.size, 0
        self._by_shares(find, (0, nrows))
        for first, last in self.shares(0, nrows):
            if first == last:
                continue
            begin, found = int(indptr[first]), int(tight_indptr[last])
            tight_indices[count : count + found] = tight_indices[begin : begin + found]
            tight_indptr[first + 1 : last + 1] += count
            count += found
        return tight_indptr, tight_indices[:count]

    def _reduce_rows(self, free: np.ndarray) -> bool:
        return sparse_paths.reduce_rows(
            *self.entries,  # IN
            self.price, self.row_to_col, self.col_to_row, free, self.spot,  # OUT
            self.limit, self.leaves, self.far, self.bids * free.size, self.budget,  # IN
        )  # fmt: skip

    def augment_some(self, free: np.ndarray, budget: int) -> int:
        is_between = self.spot[HEAD] < 0
        if is_between and self.clashes <= 0 and self._threads_for(free) > 1:
            return self._augment_at_once(free, budget)
        return self._augment(free, self.spot, self.mark, self.room, budget)

    def _augment(
        self,
        free: np.ndarray,
        spot: np.ndarray,
        mark: np.ndarray,
        room: sparse_paths.Room,
        budget: int,
    ) -> int:
        return sparse_paths.augment(
            *self.entries,  # IN
            self.price, self.row_to_col, self.col_to_row,  # OUT
            free, spot, mark,  # OUT
            *room,  # OUT
            self.limit, self.leaves, self.low, self.far, budget,  # IN
        )  # fmt: skip

    def _threads_for(self, free: np.ndarray) -> int:
        """Threads that are worth it for the rows that are left."""
        left = free.size - int(self.spot[NEXT])
        return min(self.workers.threads, left // EACH)

    def _augment_at_once(self, free: np.ndarray, budget: int) -> int:
        """Paths by several threads; rows that are not served are put at the end of those free.

        It is the last time if more searches have clashed than have ended.
        """
        threads = self._threads_for(free)
        shares = np.array_split(free[self.spot[NEXT] :].copy(), threads)
        budget = budget // threads + 1
        most = min(self.costs.nnz, budget + self.longest) + 1
        spots = np.zeros((threads, self.spot.size), np.int64)
        spots[:, HEAD] = -1
        rooms = [self._room_of(worker, most) for worker in range(threads)]
        outcomes = [SPENT] * threads

        def search(worker: int) -> bool:
            own = shares[worker], spots[worker], np.zeros_like(self.mark), rooms[worker]
            outcomes[worker] = self._augment(*own, budget)
            return True

        self.workers.run(search, threads)
        self.spot[SCANS] += spots[:, SCANS].sum()
        put_off = [share[: spot[KEPT]] for share, spot in zip(shares, spots)]
        left = np.concatenate(
            [*put_off, *(share[spot[NEXT] :] for share, spot in zip(shares, spots))]
        )
        clashed = sum(rows.size for rows in put_off)
        self.clashes = 2 * clashed - int(spots[:, NEXT].sum())
        self.spot[NEXT] = free.size - left.size
        free[free.size - left.size :] = left
        if STUCK in outcomes:
            return STUCK
        return SPENT if left.size else FOUND

    def _lower_to_minima(
        self, lowest: np.ndarray, nearest: np.ndarray, first: int, last: int
    ) -> None:
        """The rows are not asked for: `_take_cheapest` finds them.

        One thread does it: others would need prices of their own, which take longer to write.
        """
        sparse_paths.lower_to_minima(
            *self.entries,  # IN
            lowest,  # OUT
            first, last,  # IN
        )  # fmt: skip

    def _take_cheapest(self, nearest: np.ndarray) -> None:
        minima = self.room_for_minima
        if minima is None:
            minima = np.empty(self.row_to_col.size, self.price.dtype)

        def take(rows: tuple[int, int]) -> None:
            sparse_paths.take_cheapest(
                *self.entries, self.price, self.far,  # IN
                self.row_to_col, self.col_to_row, minima,  # OUT
                *rows,  # IN
            )  # fmt: skip

        for rows in self._blocks():
            self._by_shares(take, rows)
        self.minima = minima
        if self.keeps_first:
            self.first = self._first_pairs()

    def _first_pairs(self) -> FirstPairs:
        """Copies of what there is now."""
        there = self.row_to_col, self.price
        copies = [kept_empty(array.shape, array.dtype) for array in there]
        self.workers.deal(lambda part: np.copyto(copies[part], there[part]), len(there))
        return FirstPairs(*copies)

    def _row_minima(self, minima: np.ndarray) -> None:
        def find(rows: tuple[int, int]) -> None:
            sparse_paths.row_minima(
                *self.entries, self.price, self.far,  # IN
                minima,  # OUT
                *rows,  # IN
            )  # fmt: skip

        for rows in self._blocks():
            self._by_shares(find, rows)

    def _by_shares(self, work: Callable[[tuple[int, int]], None], rows: tuple[int, int]) -> None:
        """Call ``work`` for ranges of these rows, by all workers."""
        shares = self.shares(*rows)
        self.workers.deal(lambda share: work(shares[share]), len(shares))

    def shares(self, first: int, last: int) -> list[tuple[int, int]]:
        """Rows first to last, in a range for each worker."""
        count = self.workers.threads
        bounds = [first + (last - first) * share // count for share in range(count + 1)]
        return [*pairwise(bounds)]
