"""The Hungarian algorithms of Date and Nagi on several ranks, as their section 5 describes them.

`Classical` divides the rows, `Tree` the columns. What the paper computes at the root, rank 0, is
computed there, and gathered and broadcast as it says. The steps have the names of its sections:

======================  ==========================================  ===============================
step                    ``hungarian-classical``                     ``hungarian-tree``
======================  ==========================================  ===============================
initial reduction       row duals gathered; least slacks of the     least costs of the rows gathered
                        columns gathered; both broadcast            and broadcast
optimality check        matched rows counted, reduced               the same
matrix compression      tight pairs of own rows, gathered           none
forward pass            at the root (Algorithm 3)                   own columns (Algorithm 4); their
                                                                    frontiers gathered, the whole
                                                                    one broadcast, at each level
reverse, augmentation   at the root; mates broadcast                predecessors gathered; the same
dual update             covers broadcast; least time of own rows    least time of own columns
                        reduced (Algorithms 7, 8)                   reduced (Algorithm 9)
======================  ==========================================  ===============================

A reduction to the root and the broadcast of its result are one ``MPI_Allreduce`` here. The duals
are kept as times, with integers as integers: see `gpumatch.cpu.assignment.hungarian.tree`, and
`gpumatch.cpu.assignment.hungarian.classical`. The paper's 16 ranks had a GPU each. A rank here
has its costs on the CPU or on a GPU of its own, and all numbers of vertices on the host: on GPUs
each question about costs (`kernels.CompressedRows`, `kernels.DenseRows`) goes there and back.

Of the classical variant the root holds the lists of all tight pairs: up to n m of them.

Reference: Date, Nagi, *GPU-accelerated Hungarian algorithms for the Linear Assignment Problem*,
Parallel Computing 57, 2016, section 5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

import numpy as np

from gpumatch.contracts import Solution
from gpumatch.distributed.blocks import Split
from gpumatch.distributed.communicator import Communicator

__all__ = ["Classical", "Tree"]

ROOT = 0


class _Variant(ABC):
    """What both variants have: mates and row duals on all ranks, the loop, and what is at the root.

    Parameters
    ----------
    values : array
        This rank's rows of the costs, or its columns of them.
    rows, cols : Split
        How both sides are divided.
    is_integer : bool
    world : Communicator
    kernels : module
        `gpumatch.cpu.distributed.date2016`; for a GPU, with other rows.
    """

    def __init__(
        self,
        values: np.ndarray,
        rows: Split,
        cols: Split,
        is_integer: bool,
        world: Communicator,
        kernels: ModuleType,
    ) -> None:
        self.rows, self.cols, self.world, self.kernels = rows, cols, world, kernels
        self.number = np.dtype(np.int64 if is_integer else np.float64)
        self.far, self.low = kernels.far_of(self.number), kernels.low_of(self.number)
        self.is_square = rows.total == cols.total
        self.is_root = world.rank == ROOT
        self.row_to_col = np.full(rows.total, -1, np.int32)
        self.col_to_row = np.full(cols.total, -1, np.int32)
        self.row_dual: Any = np.zeros(rows.total, self.number)
        self.time = np.zeros(rows.total, self.number)
        self.root = np.empty(rows.total, np.int32)
        self.pred = np.empty(cols.total, np.int32)
        self.delta = self.number.type(0)
        self.matched = 0

    @property
    def solved_by(self) -> str:
        return f"{type(self).__name__.lower()} variant"

    def solve(self) -> bool:
        """Run until every row is matched or cannot be; False when stopped."""
        world = self.world
        with world.step("initial reduction"):
            self.reduce()
        while True:
            with world.step("optimality check"):
                own = self.row_to_col[self.rows.slice]
                self.matched = world.total(int(np.count_nonzero(own >= 0)))
            world.tick(self.matched)
            if self.matched == self.rows.total:
                return True
            if world.stopped:
                return False
            before = self.matched
            levels, updates = self.search()
            if levels < 0:
                return not world.stopped
            matched = int(np.count_nonzero(self.row_to_col >= 0))
            world.control.phase(
                levels=levels, found=matched - before, matched=matched, updates=updates
            )

    @abstractmethod
    def reduce(self) -> None:
        """Make the duals feasible (Algorithm 1)."""

    @abstractmethod
    def search(self) -> tuple[int, int]:
        """Search and augment; levels and dual updates. No levels, but -1: no path, or stopped."""

    @abstractmethod
    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows, and the fewer columns that they may have, if some row cannot be matched."""

    @abstractmethod
    def solution(self) -> Solution:
        """All mates and duals, on all ranks; the duals of rows hold up to one rounding."""

    def beat(self) -> bool:
        """Report progress; whether this rank wants to stop."""
        return self.world.wants_to_stop(self.matched)

    def _free_rows(self) -> np.ndarray:
        roots = np.flatnonzero(self.row_to_col < 0).astype(np.int32)
        self.time[roots], self.root[roots] = 0, roots
        self.delta = self.number.type(0)
        return roots

    def _augment_at_root(self, ends: np.ndarray) -> None:
        """Reverse and augmentation pass at the root; the mates are broadcast."""
        if self.is_root:
            roots = np.flatnonzero(self.row_to_col < 0).astype(np.int32)
            end = np.full(self.rows.total, -1, np.int32)
            self.kernels.reverse(
                ends, self.pred, self.root,  # IN
                end,  # OUT
            )  # fmt: skip
            self.kernels.augment(
                roots, end, self.pred,  # IN
                self.row_to_col, self.col_to_row,  # OUT
            )  # fmt: skip
        self.row_to_col = self.world.broadcast(self.row_to_col, ROOT)
        self.col_to_row = self.world.broadcast(self.col_to_row, ROOT)

    def _write_duals(self, rows: np.ndarray, col_dual: np.ndarray) -> None:
        self.kernels.write_duals(
            rows.astype(np.int32), self.time, self.delta, self.row_to_col,  # IN
            self.row_dual, col_dual,  # OUT
        )  # fmt: skip


class Classical(_Variant):
    """The classical variant: rows are divided, and the root searches in the lists of all."""

    def __init__(self, values: np.ndarray, rows: Split, cols: Split, *others: Any) -> None:
        super().__init__(values, rows, cols, *others)
        self.col_dual: Any = np.zeros(cols.total, self.number)
        self.own = self.kernels.CompressedRows(values, self.far, self.beat)
        self.row_cover = np.empty(rows.total, bool)
        self.col_cover = np.empty(cols.total, bool)
        self.indptr, self.indices = np.zeros(rows.total + 1, np.int64), np.empty(0, np.int32)
        self.is_stale = True

    def reduce(self) -> None:
        world = self.world
        self.row_dual = self._least_of_rows()
        if self.is_square:
            own = np.full(self.cols.total, self.far)
            self.own.least_slacks(*self._duals(), own)
            every = world.gather(own, ROOT)
            least = np.min(every, axis=0) if every is not None and own.size else own
            self.col_dual += np.where(least < self.far, least, 0)
            self.col_dual = world.broadcast(self.col_dual, ROOT)

    def search(self) -> tuple[int, int]:
        world = self.world
        self.row_cover[:], self.col_cover[:] = self.row_to_col >= 0, False
        waiting = self._free_rows()
        levels = updates = 0
        while True:
            if self.is_stale:
                with world.step("matrix compression"):
                    self._compress()
                self.is_stale = False
            with world.step("forward pass"):
                more, ends = self._forward(waiting) if self.is_root else (0, None)
                levels += more
                found = world.total(0 if ends is None else ends.size)
            if world.stopped:
                return -1, updates
            if found:
                with world.step("dual update"):
                    self._write_duals(np.flatnonzero(~self.row_cover), self.col_dual)
                with world.step("reverse and augmentation"):
                    self._augment_at_root(ends if ends is not None else np.empty(0, np.int32))
                return int(world.broadcast(np.array([levels]), ROOT)[0]), updates
            with world.step("dual update"):
                if not self._update():
                    return -1, updates
            updates += 1
            self.is_stale = True
            waiting = np.flatnonzero(~self.row_cover).astype(np.int32)

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        return np.flatnonzero(~self.row_cover), np.flatnonzero(self.col_cover)

    def solution(self) -> Solution:
        if self.is_square and self.col_dual.size:
            self.col_dual -= self.col_dual.max()
        self.row_dual = self._least_of_rows()
        return Solution(
            self.row_to_col, self.col_to_row, self.row_dual, self.col_dual, has_duals=True
        )

    def _duals(self) -> tuple[np.ndarray, np.ndarray]:
        return self.row_dual[self.rows.slice], self.col_dual

    def _least_of_rows(self) -> np.ndarray:
        """The least costs of the rows, less the columns' duals, gathered and broadcast."""
        own = np.empty(self.rows.own, self.number)
        self.own.least(self.col_dual, own)
        every = self.world.gather(own, ROOT)
        return self.world.broadcast(self.row_dual if every is None else np.concatenate(every), ROOT)

    def _times(self) -> np.ndarray:
        """When own rows joined; a covered row would now."""
        own = self.rows.slice
        return np.where(self.row_cover[own], self.delta, self.time[own])

    def _compress(self) -> None:
        """Make the lists Z of own rows, and gather them at the root."""
        price = self.col_dual.copy()
        price[self.col_cover] -= self.delta - self.time[self.col_to_row[self.col_cover]]
        own_dual = self.row_dual[self.rows.slice]
        counts, indices = self.own.compress((own_dual, price), self._times(), self.delta)
        every_count, every_list = (self.world.gather(part, ROOT) for part in (counts, indices))
        if every_count is not None and every_list is not None:
            np.cumsum(np.concatenate(every_count), out=self.indptr[1:])
            self.indices = np.concatenate(every_list)

    def _forward(self, frontier: np.ndarray) -> tuple[int, np.ndarray]:
        """Grow the trees on the root; the levels, and the unmatched columns that are reached."""
        is_end = np.zeros(self.cols.total, bool)
        following, levels = np.empty(self.rows.total, np.int32), 0
        frontier = frontier[self.indptr[frontier + 1] > self.indptr[frontier]]
        while frontier.size:
            count = self.kernels.expand(
                frontier, self.indptr, self.indices, self.col_to_row,  # IN
                self.row_cover, self.col_cover, self.pred, self.root, is_end, following,  # OUT
            )  # fmt: skip
            frontier = following[:count].copy()
            self.time[frontier] = self.delta
            levels += 1
        return levels, np.flatnonzero(is_end).astype(np.int32)

    def _update(self) -> bool:
        """Broadcast the covers, and raise delta by theta; False if no pair leads out."""
        world = self.world
        was_covered = self.row_cover
        self.row_cover = world.broadcast(self.row_cover, ROOT)
        self.col_cover = world.broadcast(self.col_cover, ROOT)
        if not self.is_root:
            self.time[was_covered & ~self.row_cover] = self.delta
        own = self.rows.slice
        soonest = self.own.soonest(
            self._duals(), self.time[own], self.row_cover[own], self.col_cover
        )
        soonest = world.allreduce(np.array([soonest], self.number), "min")[0]
        if soonest == self.far:
            return False
        self.delta = max(self.delta, soonest)
        return True


class Tree(_Variant):
    """The alternating tree variant: columns are divided, and frontiers gathered at each level."""

    def __init__(self, values: np.ndarray, rows: Split, cols: Split, *others: Any) -> None:
        super().__init__(values, rows, cols, *others)
        self.col_dual: Any = np.zeros(cols.own, self.number)
        self.own = self.kernels.DenseRows(values, self.far, self.beat)
        self.slack = np.empty(cols.own, self.number)
        self.own_pred = np.empty(cols.own, np.int32)
        self.own_ends = np.empty(cols.own, np.int32)
        self.joined = np.empty(rows.total, np.int32)
        self.spot, self.mark = np.zeros(6, np.int64), np.zeros(1, self.number)
        self.in_tree = np.zeros(rows.total, bool)

    def reduce(self) -> None:
        self.row_dual = self._least_of_rows()
        if self.is_square:
            least = np.full(self.cols.own, self.far)
            self.own.least_slacks(self.row_dual, self.col_dual, least)
            self.col_dual += np.where(least < self.far, least, 0)

    def search(self) -> tuple[int, int]:
        world = self.world
        frontier = self._free_rows()
        self.slack[:] = self.far
        self.spot[:] = self.mark[:] = 0
        self.in_tree[:] = False
        levels = updates = 0
        while True:
            with world.step("forward pass"):
                while frontier.size and not world.stopped:
                    self.in_tree[frontier] = True
                    self._offer(frontier)
                    frontier = self._contract()
                    levels += 1
                    self.beat()
                found = world.total(int(self.spot[self.kernels.ENDS]))
            if world.stopped:
                return -1, updates
            if found:
                break
            with world.step("dual update"):
                if not self._update():
                    return -1, updates
                frontier = self._contract()
            updates += 1
        with world.step("dual update"):
            self._write_own_duals()
        with world.step("reverse and augmentation"):
            own = self.own_ends[: self.spot[self.kernels.ENDS]] + np.int32(self.cols.first)
            ends, preds = world.gather(own, ROOT), world.gather(self.own_pred, ROOT)
            if preds is not None:
                self.pred = np.concatenate(preds)
            self._augment_at_root(own if ends is None else np.concatenate(ends))
        return levels, updates

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        rows = np.flatnonzero(self.in_tree)
        mates = self.row_to_col[rows]
        return rows, np.sort(mates[mates >= 0]).astype(np.int64)

    def solution(self) -> Solution:
        col_dual = np.concatenate(self.world.allgather(self.col_dual))
        if self.is_square and col_dual.size:
            col_dual -= col_dual.max()
        self.col_dual = col_dual[self.cols.slice]
        duals = self._least_of_rows(), col_dual
        return Solution(self.row_to_col, self.col_to_row, *duals, has_duals=True)

    def _least_of_rows(self) -> np.ndarray:
        """The least costs of the rows, less the columns' duals, gathered and broadcast."""
        own = np.empty(self.rows.total, self.number)
        self.own.least(self.col_dual, own)
        every = self.world.gather(own, ROOT)
        least = np.min(every, axis=0) if every is not None and own.size else own
        return self.world.broadcast(least, ROOT)

    def _offer(self, frontier: np.ndarray) -> None:
        """Expand the frontier to own columns (Algorithm 4)."""
        self.own.offer(
            frontier, (self.row_dual, self.col_dual), self.time,  # IN
            self.slack, self.own_pred,  # OUT
        )  # fmt: skip

    def _contract(self) -> np.ndarray:
        """Let own columns join; gather the frontiers at the root, and broadcast the whole."""
        before = int(self.spot[self.kernels.TAIL])
        self.kernels.join(
            (
                self.col_to_row[self.cols.slice],  # IN
                self.slack, self.own_pred, self.time, self.root,  # OUT
                self.joined, self.own_ends, self.spot,  # OUT
                self.mark, self.low,  # IN
            )
        )  # fmt: skip
        own = self.joined[before : self.spot[self.kernels.TAIL]]
        every = self.world.gather(np.column_stack([own, self.root[own]]), ROOT)
        pairs = np.concatenate(every) if every is not None else np.empty((0, 2), np.int32)
        pairs = self.world.broadcast(pairs, ROOT)
        frontier = np.ascontiguousarray(pairs[:, 0])
        self.root[frontier], self.time[frontier] = pairs[:, 1], self.mark[0]
        return frontier

    def _update(self) -> bool:
        """Raise delta by theta; False if no pair leads out."""
        own = self.kernels.nearest_time(self.slack, self.low, self.far)
        nearest = self.world.allreduce(np.array([own], self.number), "min")[0]
        self.mark[0] = self.delta = nearest
        return bool(nearest != self.far)

    def _write_own_duals(self) -> None:
        """Write the duals of all rows in trees and of own columns."""
        whole = np.zeros(self.cols.total, self.number)
        self._write_duals(np.flatnonzero(self.in_tree), whole)
        self.col_dual += whole[self.cols.slice]
