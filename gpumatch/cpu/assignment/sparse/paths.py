"""Augmenting paths in CSR, by the kernels of `searches.sparse`, and by several threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Control, Costs, Entries
from gpumatch.cpu import csr
from gpumatch.cpu.csr import places_in
from gpumatch.cpu.matching.lookahead_search import LookaheadSearch
from gpumatch.cpu.matching.sides import Side
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.searches import sparse as sparse_search
from gpumatch.cpu.searches.paths import Paths
from gpumatch.cpu.searches.state import (
    FOUND,
    HEAD,
    KEPT,
    NEXT,
    NOBODY,
    REACHED,
    SCANS,
    SPENT,
    STUCK,
)
from gpumatch.running.kept_memory import kept_empty, kept_full

__all__ = ["FirstPairs", "SparsePaths", "transpose"]

SPARSE_BIDS = 32
"""Scans in a round of bids for each unmatched row, if costs are sparse and bids cheap.

With 1, 8, 32 and 128, the paths of a random matrix of 20,000 rows with 21 entries each read 21.6,
18.7, 13.7 and 9.0 million entries, and the first round of bids reads 0.15, 1.2, 4.9 and 8.9
million.
"""
EACH = 4
"""Unmatched rows for each thread that searches."""


class FirstPairs(NamedTuple):
    """The first columns of rows, and the first prices of columns: what the pairs cost."""

    row_to_col: np.ndarray
    price: np.ndarray


class SparsePaths(Paths):
    """`Paths` in CSR."""

    entries: tuple[np.ndarray, np.ndarray, np.ndarray]

    def __init__(
        self, entries: Entries, costs: Costs, *others: Any, workers: Workers | None = None
    ) -> None:
        super().__init__(entries, costs, *others)
        self.workers = workers or Workers(1, 0)
        # A bid lowers a price below all others by the range of costs at most.
        most = 4 * SPARSE_BIDS * self.row_to_col.size * costs.largest
        self.bids = SPARSE_BIDS if most < self.far else 1
        self.clashes = 0  # above 0 if threads have been in each other's way
        self.looks_ahead = True
        self.keeps_first = False
        self.expected = math.inf  # readings in all, if that is known
        self.first: FirstPairs | None = None

    @property
    def budget(self) -> int:
        return sparse_search.BUDGET

    @property
    def readings(self) -> float:
        """How many times all entries have been read, as far as it has been counted."""
        return (self.scanned + int(self.spot[SCANS]) - self.told) / max(self.costs.nnz, 1)

    def _start(self, control: Control) -> bool:
        if not super()._start(control):
            return False
        return not self.looks_ahead or self.match_tight(control)

    @cached_property
    def distances(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Distances of columns, all `far`, the rows from which they are reached, and the places.

        The place of a row is its first entry.
        """
        distances = kept_full(self.price.size, self.far, self.price.dtype)
        return distances, kept_empty(self.price.size, np.int32), self.entries[0][:-1].copy()

    @cached_property
    def room(self) -> sparse_search.Room:
        """The arrays of searches by one thread, made for the first search."""
        return self._room(np.empty(0, np.int32), 0, self.costs.nnz + 1)

    @cached_property
    def owner(self) -> np.ndarray:
        """The thread that each column belongs to."""
        return kept_full(self.price.size, NOBODY, np.int32)

    @cached_property
    def rooms(self) -> dict[int, sparse_search.Room]:
        """The arrays of threads that search at once."""
        return {}

    @cached_property
    def longest(self) -> int:
        """How many entries the longest row has."""
        return int(np.diff(self.entries[0]).max(initial=0))

    def _room(self, owner: np.ndarray, me: int, most: int) -> sparse_search.Room:
        """Make the arrays of a thread, whose heap has room for `most` entries."""
        near, tree, reached = kept_empty((3, self.price.size), np.int32)
        keys, heap = kept_empty(most, self.price.dtype), kept_empty(most, np.int32)
        return sparse_search.Room(owner, me, *self.distances, near, keys, heap, tree, reached)

    def _room_of(self, worker: int, most: int) -> sparse_search.Room:
        """Return arrays of a worker for `most` entries: its last ones if they suffice."""
        room = self.rooms.get(worker)
        if room is None or room.keys.size < most:
            room = self.rooms[worker] = self._room(self.owner, worker + 1, most)
        return room

    def leave_search(self) -> None:
        """Give up a search that has not ended."""
        if self.spot[HEAD] >= 0:
            reached = self.room.reached[: self.spot[REACHED]]
            self.room.dist[reached] = self.far

    def expected_readings(self, rows: int, growth: float) -> float:
        """The readings of all entries by the paths of so many rows, to judge by those served.

        If all columns must be matched, paths of later rows are taken to read as much as the first.
        Otherwise, all readings until now are taken for a power of the columns that are unmatched.
        """
        reads, served = int(self.spot[SCANS]) / self.costs.nnz, int(self.spot[NEXT])
        if self.all_match:
            return reads * rows / (served + 1)
        nrows = self.row_to_col.size
        spare = max(self.price.size - nrows, 1) + (nrows if self.leaves else 0)
        return float(reads * (1 + (rows - served) / spare) ** growth)

    def excess(self, rows: np.ndarray) -> tuple[int, np.ndarray]:
        """Return how many rows have entries, and what each costs more than the cheapest one."""
        indptr, indices, weights = self.entries
        count = indptr[rows + 1] - indptr[rows]
        rows, count = rows[count > 0], count[count > 0]
        starts = np.cumsum(count) - count
        places = places_in(indptr, rows)
        reduced = weights[places] - self.price[indices[places]]
        least = np.minimum.reduceat(reduced, starts) if count.size else reduced
        return count.size, reduced - np.repeat(least, count)

    def match_tight(self, control: Control) -> bool:
        """Match rows to tight columns, as far as one step ahead shows; False if stopped."""
        for rows in self.blocks():
            self._by_shares(self._match_tight, rows)
            if control.tick(self.matched):
                return False
        return True

    def _match_tight(self, rows: tuple[int, int]) -> None:
        sparse_search.match_tight(
            *self.entries, self.price,  # IN
            self.row_to_col, self.col_to_row,  # OUT
            self.limit, self.leaves, self.far, *rows,  # IN
        )  # fmt: skip

    def match_all_tight(self, control: Control, workers: Workers) -> bool:
        """Match as many rows as tight pairs allow, by searches of matchings; False if stopped.

        Phases of searches follow each other as long as each serves rows.
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
        """Return the tight pairs, in CSR."""
        indptr, indices, _ = self.entries
        tight_indptr, tight_indices = np.zeros_like(indptr), np.empty_like(indices)

        def find(rows: tuple[int, int]) -> None:
            sparse_search.tight_pairs(
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

    def _reduce_rows(self, unmatched: np.ndarray) -> bool:
        self.row_dual = None
        return sparse_search.reduce_rows(
            *self.entries,  # IN
            self.price, self.row_to_col, self.col_to_row, unmatched, self.spot,  # OUT
            self.limit, self.leaves, self.far, self.bids * unmatched.size, self.budget,  # IN
        )  # fmt: skip

    def augment_some(self, unmatched: np.ndarray, budget: int) -> int:
        self.row_dual = None
        is_between = self.spot[HEAD] < 0
        if is_between and self.clashes <= 0 and self._threads_for(unmatched) > 1:
            return self._augment_at_once(unmatched, budget)
        return self._augment(unmatched, self.spot, self.mark, self.room, budget)

    def _augment(
        self,
        unmatched: np.ndarray,
        spot: np.ndarray,
        mark: np.ndarray,
        room: sparse_search.Room,
        budget: int,
    ) -> int:
        return sparse_search.augment(
            self.entries,  # IN
            (self.price, self.row_to_col, self.col_to_row),  # OUT
            unmatched, spot, mark, tuple(room),  # OUT
            (self.limit, self.leaves, self.low, self.far), budget,  # IN
        )  # fmt: skip

    def _threads_for(self, unmatched: np.ndarray) -> int:
        """Return how many threads are worth it for the rows that are not served yet."""
        left = unmatched.size - int(self.spot[NEXT])
        return min(self.workers.threads, left // EACH)

    def _augment_at_once(self, unmatched: np.ndarray, budget: int) -> int:
        """Augment by several threads; put the rows that are not served at the end of ``unmatched``.

        Threads do not search at once again if more searches have clashed than have ended.
        """
        threads = self._threads_for(unmatched)
        shares = np.array_split(unmatched[self.spot[NEXT] :].copy(), threads)
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
        self.spot[NEXT] = unmatched.size - left.size
        unmatched[unmatched.size - left.size :] = left
        if STUCK in outcomes:
            return STUCK
        return SPENT if left.size else FOUND

    def _lower_to_minima(
        self, lowest: np.ndarray, nearest: np.ndarray, first: int, last: int
    ) -> None:
        """Do not note the nearest rows: `_take_cheapest` finds them.

        One thread does it: more would need prices of their own, which take longer to write.
        """
        sparse_search.lower_to_minima(
            *self.entries,  # IN
            lowest,  # OUT
            first, last,  # IN
        )  # fmt: skip

    def _take_cheapest(self, nearest: np.ndarray) -> None:
        row_dual = self.row_dual_memory
        if row_dual is None:
            row_dual = np.empty(self.row_to_col.size, self.price.dtype)

        def take(rows: tuple[int, int]) -> None:
            sparse_search.take_cheapest(
                *self.entries, self.price, self.far,  # IN
                self.row_to_col, self.col_to_row, row_dual,  # OUT
                *rows,  # IN
            )  # fmt: skip

        for rows in self.blocks():
            self._by_shares(take, rows)
        self.row_dual = row_dual
        if self.keeps_first:
            self.first = self._first_pairs()

    def _first_pairs(self) -> FirstPairs:
        """Copy the pairs and prices."""
        there = self.row_to_col, self.price
        copies = [kept_empty(array.shape, array.dtype) for array in there]
        self.workers.deal(lambda part: np.copyto(copies[part], there[part]), len(there))
        return FirstPairs(*copies)

    def _find_row_duals(self, row_dual: np.ndarray) -> None:
        self._find_duals(sparse_search.row_duals, row_dual)

    def _find_fair_duals(self, row_dual: np.ndarray) -> None:
        self._find_duals(sparse_search.fair_row_duals, row_dual)

    def _find_duals(self, kernel: Any, row_dual: np.ndarray) -> None:
        def find(rows: tuple[int, int]) -> None:
            kernel(
                *self.entries, self.price, self.far,  # IN
                row_dual,  # OUT
                *rows,  # IN
            )  # fmt: skip

        for rows in self.blocks():
            self._by_shares(find, rows)

    def _by_shares(self, work: Callable[[tuple[int, int]], None], rows: tuple[int, int]) -> None:
        """Let all workers call ``work`` for ranges of these rows."""
        shares = self.shares(*rows)
        self.workers.deal(lambda share: work(shares[share]), len(shares))

    def shares(self, first: int, last: int) -> list[tuple[int, int]]:
        """Divide rows first to last into a range for each worker."""
        count = self.workers.threads
        bounds = [first + (last - first) * share // count for share in range(count + 1)]
        return [*pairwise(bounds)]


def transpose(entries: Entries, ncols: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the entries by columns, in arrays of equal types, so that kernels compile once."""
    indptr, indices, weights = entries
    offsets, rows, values = csr.transpose_values(indptr, indices, weights, ncols)
    return offsets.astype(indptr.dtype, copy=False), rows, values
