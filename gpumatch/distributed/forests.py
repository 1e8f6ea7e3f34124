"""Maximum matching of a graph whose rows and columns are divided among ranks.

A rank has the edges of its rows, and the state of its rows and of an even share of the columns
(`gpumatch.cpu.distributed.forests` lists the arrays). A *start* matches rows by proposals: each
free row wants the first column that its rank believes free, and the column's rank lets the first
row have it. Then come *phases*. Trees grow breadth first from all free rows. A level is:

1. each rank offers the unseen neighbours of its frontier to the columns' ranks,
2. these let a column join by its first offer, and tell the rank of its mate,
3. all ranks hear which trees have reached a free column; one path a tree, the first, counts, and
   the tree grows no further.

Then the paths are augmented, one step of all paths at a time. Trees with a path release their
vertices. The others stay, and all their rows are the first level of the next phase. That grafts the
released vertices onto them: it reads no edge that growing them again would not read, and takes one
level where that takes many. The levels are what costs time between ranks.

A phase that finds no path ends it. Then every column next to a row of a tree is in a tree itself,
because rows of trees are read in each phase. So no alternating path leaves the trees, and they hold
no free column: there is no augmenting path (Berge). The rows outside the trees and the columns
inside are a vertex cover of the matching's size (König).

Before a phase, ranks tell each other which columns are in trees: as a list, or as a bitmap if that
is shorter. In a phase no rank offers a column twice.

References
----------
Azad, Buluç, Pothen, *Computing maximum cardinality matchings in parallel on bipartite graphs via
tree-grafting*, IEEE TPDS 28(1), 2017.
Azad, Buluç, *Distributed-memory algorithms for maximum cardinality matching in bipartite graphs*,
IPDPS 2016.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.distributed.blocks import Split
from gpumatch.distributed.communicator import Communicator
from gpumatch.numeric.arrays import array_of

__all__ = ["Forests"]

BUDGET = 2**24
"""Edges read between two returns to Python: a tenth of a second."""
ROUNDS = 64
"""Rounds of the start, at most. Few rows want in vain more than some times."""


class Forests:
    """The state of this rank, and what all ranks do with it.

    Parameters
    ----------
    graph : BipartiteGraph
        Of this rank's rows and all columns, on the host or on this rank's GPU. All arrays are
        there, too.
    rows, cols : Split
        How both sides are divided.
    world : Communicator
    kernels : module
        What a rank computes by itself: `gpumatch.cpu.distributed.forests`, or for a GPU
        `gpumatch.cuda.distributed.forests`.
    """

    def __init__(
        self, graph: Any, rows: Split, cols: Split, world: Communicator, kernels: Any
    ) -> None:
        self.graph, self.rows, self.cols = graph, rows, cols
        self.world, self.kernels, self.xp = world, kernels, graph.xp
        self.row_to_col, self.row_root = self._none(rows.own), self._none(rows.own)
        self.col_to_row, self.col_root = self._none(cols.own), self._none(cols.own)
        self.parent = self._none(cols.own)
        self.done = self._marks(rows.total)
        self.seen = self._marks(cols.total)
        self.matched = 0
        self.start_size = 0

    def start(self) -> None:
        """Match rows to columns that nobody else has, as far as `ROUNDS` go."""
        graph, world, xp = self.graph, self.world, self.xp
        waiting = xp.flatnonzero(xp.diff(graph.indptr)).astype(np.int32)
        taken = self._marks(self.cols.total)
        for _ in range(ROUNDS):
            wanted = xp.empty_like(waiting)
            self.kernels.claim_free(
                waiting, graph.indptr, graph.indices,  # IN
                taken, wanted,  # OUT
            )  # fmt: skip
            waiting, wanted = waiting[wanted >= 0], wanted[wanted >= 0]
            proposals = world.exchange(self.cols.sorted_out(wanted, waiting + self.rows.first))
            granted = world.exchange([self._grant(part) for part in proposals])
            pairs = xp.concatenate(granted)
            self.row_to_col[pairs[:, 1] - self.rows.first] = pairs[:, 0]
            waiting = waiting[self.row_to_col[waiting] < 0]
            found, left = world.allreduce(np.array([len(pairs), waiting.size]), "sum").tolist()
            self.matched += found
            world.tick(self.matched)
            if not left or world.stopped:
                break
        self.start_size = self.matched

    def _grant(self, proposals: Any) -> Any:
        """Those of one rank's proposals (column, row) that come first for a free column."""
        own = proposals[:, 0] - self.cols.first
        proposals = proposals[self.col_to_row[own] < 0]  # a rank proposes for a column once
        self.col_to_row[proposals[:, 0] - self.cols.first] = proposals[:, 1]
        return proposals

    def search(self) -> bool:
        """Augment until the matching is maximum; False when stopped."""
        free = self.xp.flatnonzero(self.row_to_col < 0).astype(np.int32)
        self.row_root[free] = free + self.rows.first
        most = min(self.rows.total, self.cols.total)
        while self.matched < most:
            if self.world.stopped:
                return False
            with self.world.step("forward pass"):
                ends, levels, read = self._grow()
            if ends is None:
                return False
            with self.world.step("augmentation"):
                self._augment(ends)
                self._release()
            self.matched += len(ends)
            self.world.control.phase(
                levels=levels, found=len(ends), matched=self.matched, edges=read
            )
            self.world.tick(self.matched)
            if not len(ends):
                break
        return True

    def mates(self) -> tuple[np.ndarray, np.ndarray]:
        """The mates of own rows and own columns, on the host."""
        return array_of(np, self.row_to_col), array_of(np, self.col_to_row)

    def cover(self) -> tuple[np.ndarray, np.ndarray]:
        """Which own rows and own columns the vertex cover of the maximum matching has, there."""
        if self.matched == self.rows.total:
            return np.ones(self.rows.own, bool), np.zeros(self.cols.own, bool)
        if self.matched == self.cols.total:
            return np.zeros(self.rows.own, bool), np.ones(self.cols.own, bool)
        return array_of(np, self.row_root < 0), array_of(np, self.col_root >= 0)

    # -- growing ---------------------------------------------------------------------------------

    def _grow(self) -> tuple[Any, int, int]:
        """Grow the trees as far as they go: the ends (root, column) of their paths, and the work.

        No ends, but None, if a rank wants to stop.
        """
        xp = self.xp
        self._see()
        frontier = xp.flatnonzero(self.row_root >= 0).astype(np.int32)
        ends, levels, read = [xp.empty((0, 2), np.int32)], 0, 0
        while True:
            offers, more = self._expand(frontier)
            taken = self.world.exchange(self.cols.sorted_out(offers[:, 0], *offers[:, 1:].T))
            followers, own_ends = self._join(xp.concatenate(taken))
            given = self.world.exchange(self.rows.sorted_out(followers[:, 0], followers[:, 1]))
            left = self.world.brought
            follow = xp.concatenate(given)
            frontier = follow[:, 0] - self.rows.first
            self.row_root[frontier] = follow[:, 1]
            reached = _first_of_each(xp, xp.concatenate(self.world.allgather(own_ends)))
            self.done[reached[:, 0]] = True
            ends.append(reached)
            levels, read = levels + 1, read + more
            self.world.tick(self.matched)
            if self.world.stopped:
                return None, levels, read
            if not left:
                return xp.concatenate(ends), levels, self.world.total(read)

    def _see(self) -> None:
        """Tell each other which columns are in trees, in the shorter way."""
        xp = self.xp
        inside = self.col_root >= 0
        own = (xp.flatnonzero(inside) + self.cols.first).astype(np.int32)
        self.seen[:] = False
        if self.world.total(own.size) * own.itemsize * 8 < self.cols.total:
            self.seen[xp.concatenate(self.world.allgather(own))] = True
        else:
            every = self.world.allgather(xp.packbits(inside))
            counts = np.diff(self.cols.starts).tolist()
            parts = [xp.unpackbits(bits)[:count] for bits, count in zip(every, counts)]
            self.seen[:] = xp.concatenate(parts)

    def _expand(self, frontier: Any) -> tuple[Any, int]:
        """What the frontier offers, and the edges that it has read."""
        graph = self.graph
        edges = int((graph.indptr[frontier + 1] - graph.indptr[frontier]).sum(dtype=np.int64))
        offers = self.xp.empty((min(edges, self.cols.total), 3), np.int32)
        at = count = read = 0
        while at < frontier.size:
            at, count, more = self.kernels.expand(
                frontier, at, BUDGET, self.rows.first, graph.indptr, graph.indices,  # IN
                self.row_root, self.done,  # IN
                self.seen, offers, count,  # OUT
            )  # fmt: skip
            read += more
            if self.world.wants_to_stop(self.matched):
                break
        return offers[:count], read

    def _join(self, offers: Any) -> tuple[Any, Any]:
        """The mates that follow and their roots, and the roots and free columns that end paths."""
        followers, ends = self.xp.empty((2, len(offers), 2), np.int32)
        count, count_ends = self.kernels.join(
            offers, self.cols.first, self.col_to_row,  # IN
            self.col_root, self.parent,  # OUT
            self.done,  # IN
            followers, ends,  # OUT
        )  # fmt: skip
        return followers[:count], ends[:count_ends]

    # -- augmenting ------------------------------------------------------------------------------

    def _augment(self, ends: Any) -> None:
        """Augment along the path to each end, all of them one step at a time."""
        xp = self.xp
        is_own = self.cols.owners(ends[:, 1]) == self.cols.rank
        cols = ends[is_own, 1] - self.cols.first
        left = len(ends)
        while left:
            rows = self.parent[cols]
            self.col_to_row[cols] = rows
            pairs = self.rows.sorted_out(rows, cols + self.cols.first)
            steps = xp.concatenate(self.world.exchange(pairs))
            own = steps[:, 0] - self.rows.first
            before = self.row_to_col[own]
            self.row_to_col[own] = steps[:, 1]
            onward = self.world.exchange(self.cols.sorted_out(before[before >= 0]))
            left = self.world.brought
            cols = xp.concatenate(onward)[:, 0] - self.cols.first

    def _release(self) -> None:
        """Let the vertices of trees that had a path go."""
        for root in (self.row_root, self.col_root):
            inside = self.xp.flatnonzero(root >= 0)
            root[inside[self.done[root[inside]]]] = -1

    # -- arrays ------------------------------------------------------------------------------------

    def _none(self, count: int) -> Any:
        return self.xp.full(count, -1, np.int32)

    def _marks(self, count: int) -> Any:
        """Marks that are not set, in whole words of four, which the kernels of a GPU set."""
        return self.xp.zeros(-(-count // 4) * 4, bool)[:count]


def _first_of_each(xp: Any, ends: Any) -> Any:
    """The first end (root, column) of each root."""
    return ends[xp.unique(ends[:, 0], return_index=True)[1]]
