"""Shortest augmenting paths that grow from both ends, for the last pairs of a sparse square matrix.

The last unmatched rows are far from the unmatched columns: each of their searches reads a good part
of the matrix. Where it grows like an area, half the radius from both ends is half of the work, and
all unmatched rows share one search. So all unmatched rows grow one forest, by Dijkstra's algorithm
in reduced costs, and all unmatched columns grow another one in the transposed matrix. They go on
until no path from an unmatched row to an unmatched column can be shorter than the shortest known
path, whose halves meet in an entry. This path is augmented, and the next search begins.

The forests grow in turns of some entries (`turn` of the tuning). Each of two threads takes the
turns of one forest, and those of the other forest if that one is behind and the other thread does
not grow it. So both forests read about as much, even if one of the threads waits for a processor.

Names are those of `searches.sparse`, and ``own_dual`` and ``other_dual`` those of `bidding`: a
forest of rows has rows of its own, and columns are the other side; for a forest of columns it is
the other way round. Both ends have duals here. A matched pair costs what its two duals add up to.

    roots        the unmatched vertices, where the forest begins
    dist, pred   of other vertices: the distance, and the own vertex from which it is reached; roots
                 of the other forest are at 0, so that no search goes on behind them
    since        of own vertices: the distance at which each has joined; ``joined`` marks these
    near, keys, heap, tree, reached   as in `searches.sparse`; ``tree`` has the settled others
    spot         NEXT (roots that have joined), HEAD, TAIL, NEAR, WAITING, REACHED and SCANS
    forest       own_dual, other_dual, mate_of_other, dist, pred, since, joined, near, keys, heap,
                 tree, reached, spot, as one argument
    front        how far each forest has grown, two numbers
    best         the length of the shortest known path
    turns        of each forest: TAKEN while a thread grows it, ENDED, and its TURNS so far
    meeting      the row and the column where its halves meet, and a lock for it and ``best``

A vertex is marked before its entries are read. So of two vertices that join at once, at least one
sees the other, and no meeting is missed. What is farther than ``best`` less the front of the other
forest is of no use, and is not kept. ``front`` and ``best`` may be read late. Then this bound seems
to be farther than it is, and a forest keeps too much.

When both forests have ended, the radii R and S add up to the length of the shortest path. R is how
far the forest of rows has grown, or that length if it is less. All that is not kept is as far at
least, because bounds only fall, and no front goes beyond its own bound. The dual of a row that
joined at a distance d < R rises by R - d, and the price of its column falls by as much; with S,
this holds for the other forest. No reduced cost becomes negative, because an entry between both
forests is part of a path of length R + S at least.

Integers that wrap around are left out, as in `searches.sparse`.

References
----------
Pohl, *Bi-directional search*, Machine Intelligence 6, 1971, for the stopping rule.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpumatch.contracts import Control, Entries, Stopped
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.cpu.numba_tools.atomics import cas, fetch_add, load, store
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.prefetch import prefetch, prefetch_range
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.searches.heap import drop_top, push, tidy
from gpumatch.cpu.searches.paths import turn
from gpumatch.cpu.searches.state import (
    HEAD,
    NEAR,
    NEXT,
    REACHED,
    SCANS,
    SPOTS,
    TAIL,
    WAITING,
)
from gpumatch.running.kept_memory import kept_empty, kept_full

__all__ = ["TwoSidedPaths"]

Roots: TypeAlias = tuple[np.ndarray, np.ndarray]
"""The unmatched rows, and the unmatched columns."""

LEAD = 4
"""Turns by which one of two threads may lead before it grows the forest of the other."""

ROW, COL, LOCK = range(3)  # of a meeting
TAKEN, ENDED, TURNS = range(0, 6, 2)  # of turns: those of the rows' forest; the columns' come after


class Forest(NamedTuple):
    """The arrays of one forest, as named above."""

    own_dual: np.ndarray
    other_dual: np.ndarray
    mate_of_other: np.ndarray
    dist: np.ndarray
    pred: np.ndarray
    since: np.ndarray
    joined: np.ndarray
    near: np.ndarray
    keys: np.ndarray
    heap: np.ndarray
    tree: np.ndarray
    reached: np.ndarray
    spot: np.ndarray

    @classmethod
    def of(
        cls,
        own_dual: np.ndarray,
        other_dual: np.ndarray,
        mate_of_other: np.ndarray,
        most: int,
        far: Any,
    ) -> Forest:
        """Make an empty forest whose heap has room for `most` entries."""
        number, size = other_dual.dtype, other_dual.size
        dist, since = kept_full(size, far, number), kept_empty(own_dual.size, number)
        pred, near, tree, reached = kept_empty((4, size), np.int32)
        joined, spot = np.zeros(own_dual.size, np.int8), np.zeros(SPOTS, np.int64)
        keys, heap = kept_empty(most, number), kept_empty(most, np.int32)
        return cls(
            own_dual, other_dual, mate_of_other, dist, pred, since, joined,
            near, keys, heap, tree, reached, spot,
        )  # fmt: skip


SINCE, JOINED = map(Forest._fields.index, ("since", "joined"))


@kernel
def _grow(entries, roots, forest, front, best, meeting, there, me, far, budget):
    """Grow a forest until no shorter path exists, or the budget is spent; True if none exists.

    ``me`` is 0 for the rows' forest, 1 for that of the columns. ``there`` has ``joined`` and
    ``since`` of the other forest.
    """
    indptr, indices, costs = entries
    (
        own_dual,
        other_dual,
        mate_of_other,
        dist,
        pred,
        since,
        joined,
        near,
        keys,
        heap,
        tree,
        reached,
        spot,
    ) = forest
    joined_there, since_there = there
    wraps = far < np.inf
    fresh, head, tail, nears = spot[NEXT], spot[HEAD], spot[TAIL], spot[NEAR]
    waiting, count = spot[WAITING], spot[REACHED]
    work, is_done = 0, False
    while work < budget:
        if fresh < roots.size:
            vertex = roots[fresh]
            fresh += 1
        else:
            waiting = tidy(keys, heap, waiting, dist, count - tail)
            if head < nears:
                other = near[head]
                head += 1
            else:
                key = keys[0] if waiting > 0 else far
                load(meeting, LOCK)  # what is read of the other forest now is not older
                bound = best[0] - front[1 - me]
                if waiting == 0 or key >= bound:
                    front[me] = greater(front[me], lesser(key, bound))
                    is_done = True
                    break
                other = heap[0]
                waiting -= 1
                drop_top(keys, heap, waiting)
                if waiting > 0:
                    soon = mate_of_other[heap[0]]
                    prefetch_range(costs, indptr[soon], indptr[soon + 1] - 1)
                    prefetch_range(indices, indptr[soon], indptr[soon + 1] - 1)
                work += 1
                if key > dist[other]:
                    continue
                front[me] = key
            tree[tail] = other
            tail += 1
            vertex = mate_of_other[other]
        offset = front[me]
        since[vertex] = offset
        cas(joined, vertex, 0, 1)
        begin, end = indptr[vertex], indptr[vertex + 1]
        for entry in range(begin, end):
            prefetch(other_dual, indices[entry])
            prefetch(joined_there, indices[entry])
            prefetch(dist, indices[entry])
        work += 1 + end - begin
        bound = best[0] - front[1 - me]
        for entry in range(begin, end):
            other = indices[entry]
            there = offset + ((costs[entry] - other_dual[other]) - own_dual[vertex])
            if there < offset:
                if wraps:
                    continue
                there = offset  # but for rounding
            if load(joined_there, other) != 0 and since_there[other] < best[0] - there:
                _meet(vertex, other, there + since_there[other], best, meeting, me)
                bound = best[0] - front[1 - me]
            if there >= bound or there >= dist[other]:
                continue
            if dist[other] == far:
                reached[count] = other
                count += 1
            dist[other] = there
            pred[other] = vertex
            mate = mate_of_other[other]
            if there <= offset:
                prefetch_range(costs, indptr[mate], indptr[mate + 1] - 1)
                prefetch_range(indices, indptr[mate], indptr[mate + 1] - 1)
                near[nears] = other
                nears += 1
            else:
                prefetch(indptr, mate)
                push(keys, heap, waiting, there, other)
                waiting += 1
    spot[NEXT], spot[HEAD], spot[TAIL], spot[NEAR] = fresh, head, tail, nears
    spot[WAITING], spot[REACHED] = waiting, count
    spot[SCANS] += work
    return is_done


@kernel
def _grow_in_turns(
    entries, roots, forests, front, best, meeting, turns, me, lead, far, budget, most
):  # fmt: skip
    """Take up to ``most`` turns of ``budget`` entries, as long as there is a forest to grow.

    They are turns of the forest ``me``, unless it is more than ``lead`` turns ahead of the other.
    """
    for _ in range(most):
        is_ahead = load(turns, TURNS + me) - load(turns, TURNS + 1 - me) > lead
        side = 1 - me if is_ahead else me
        if not _take(turns, side):
            side = 1 - side
            if not _take(turns, side):
                return
        there = forests[1 - side][JOINED], forests[1 - side][SINCE]
        has_ended = _grow(
            entries[side], roots[side], forests[side], front, best, meeting, there,
            side, far, budget,
        )  # fmt: skip
        fetch_add(turns, TURNS + side, 1)
        store(turns, ENDED + side, 1 if has_ended else 0)
        store(turns, TAKEN + side, 0)


@kernel
def _take(turns, side):
    """Take a forest that has not ended; False if it has, or another thread grows it."""
    if load(turns, ENDED + side) != 0 or not cas(turns, TAKEN + side, 0, 1):
        return False
    if load(turns, ENDED + side) != 0:  # it has ended in the meantime
        store(turns, TAKEN + side, 0)
        return False
    return True


@kernel
def _meet(vertex, other, length, best, meeting, me):
    """Keep the path through an entry if it is the shortest known one."""
    while not cas(meeting, LOCK, 0, 1):
        pass
    if length < best[0]:
        best[0] = length
        meeting[ROW] = vertex if me == 0 else other
        meeting[COL] = other if me == 0 else vertex
    store(meeting, LOCK, 0)


@kernel
def _settle(roots, forest, radius, far):
    """Change duals by what a forest has grown up to this radius, and empty the forest."""
    own_dual, other_dual, mate_of_other, dist, _, _, joined, _, _, _, tree, reached, spot = forest
    for root in roots:
        own_dual[root] += radius
        joined[root] = 0
    for k in range(spot[TAIL]):
        other = tree[k]
        mate = mate_of_other[other]
        joined[mate] = 0
        gain = radius - dist[other]
        if gain > 0:
            other_dual[other] -= gain
            own_dual[mate] += gain
    for k in range(spot[REACHED]):
        dist[reached[k]] = far
    for k in range(SPOTS):
        spot[k] = spot[k] if k == SCANS else 0


@kernel
def _turn(meeting, row_to_col, col_to_row, pred_of_col, pred_of_row, is_on_path):
    """Augment the path whose halves meet; ``is_on_path`` marks rows, and is 0 before and after.

    Because of rounding, the halves may have rows in common. Then they meet in the last of these,
    seen from the unmatched row.
    """
    row, col = meeting[ROW], meeting[COL]
    root = _mark_half(row, row_to_col, pred_of_col, is_on_path, 1)
    end, mate = col, col_to_row[col]
    while mate >= 0:
        end = pred_of_row[mate]
        if is_on_path[mate] != 0:
            row, col = mate, end
        mate = col_to_row[end]
    _mark_half(meeting[ROW], row_to_col, pred_of_col, is_on_path, 0)
    if col != end:
        mate = col_to_row[col]
        turn(end, mate, pred_of_row[mate], pred_of_row, col_to_row, row_to_col)
    turn(root, col, row, pred_of_col, row_to_col, col_to_row)


@kernel
def _mark_half(row, row_to_col, pred_of_col, is_on_path, mark):
    """Mark the rows of a path from its unmatched row to this row; return the unmatched row."""
    is_on_path[row] = mark
    while row_to_col[row] >= 0:
        row = pred_of_col[row_to_col[row]]
        is_on_path[row] = mark
    return row


class TwoSidedPaths:
    """Searches from both ends, one after the other, in the same arrays.

    Parameters
    ----------
    entries : tuple
        The costs in CSR, by rows and by columns.
    prices : tuple
        The duals of rows and of columns: no reduced cost is negative, and pairs are tight.
    mates : tuple
        The column of each row, and the row of each column.
    workers : Workers
        The threads.
    tuning : Tuning
        How long turns are.
    """

    def __init__(
        self,
        entries: tuple[Entries, Entries],
        prices: tuple[np.ndarray, np.ndarray],
        mates: tuple[np.ndarray, np.ndarray],
        far: Any,
        workers: Workers,
        tuning: Tuning,
    ) -> None:
        self.entries, self.prices, self.mates = entries, prices, mates
        self.far, self.workers, self.tuning = far, workers, tuning
        rows, cols = prices
        of_row, of_col = mates
        most = entries[0][1].size + 1
        self.forests = (
            Forest.of(rows, cols, of_col, most, far),
            Forest.of(cols, rows, of_row, most, far),
        )
        self.arrays = tuple(map(tuple, self.forests))  # as kernels take them
        self.is_on_path = np.zeros(rows.size, np.int8)
        self.front, self.best = np.zeros(2, rows.dtype), np.zeros(1, rows.dtype)
        self.meeting = np.zeros(3, np.int64)

    @property
    def scans(self) -> int:
        return sum(int(forest.spot[SCANS]) for forest in self.forests)

    def serve(self, control: Control) -> None:
        """Augment until all rows are matched, or none has a path; raises Stopped."""
        rows, cols = (np.flatnonzero(mates < 0).astype(np.int32) for mates in self.mates)
        while rows.size and self._augment((rows, cols), control):
            rows, cols = (roots[mates[roots] < 0] for roots, mates in zip((rows, cols), self.mates))

    def _augment(self, roots: Roots, control: Control) -> bool:
        """Augment a shortest path; False if none exists."""
        self.front[:] = 0
        self.best[:] = self.far
        of_rows, of_cols = self.forests
        rows, cols = self.arrays
        of_rows.dist[roots[1]] = of_cols.dist[roots[0]] = 0  # nothing is behind the other's roots
        radii = self.front.dtype.type(0), self.front.dtype.type(0)
        try:
            has_path = self._grow(roots, control)
            if has_path:
                radius = min(self.front[0], self.best[0])
                radii = radius, self.best[0] - radius
        finally:
            _settle(roots[0], rows, radii[0], self.far)
            _settle(roots[1], cols, radii[1], self.far)
            of_rows.dist[roots[1]] = of_cols.dist[roots[0]] = self.far
        if has_path:
            _turn(self.meeting, *self.mates, of_rows.pred, of_cols.pred, self.is_on_path)
        return has_path

    def _grow(self, roots: Roots, control: Control) -> bool:
        """Grow both forests, at once or in turns; True if a path is found. Raises Stopped."""
        turns = np.zeros(6, np.int64)
        lead = LEAD if self.workers.threads > 1 else 0

        def grow(worker: int) -> bool:
            _grow_in_turns(
                self.entries, roots,  # IN
                self.arrays, self.front, self.best, self.meeting, turns,  # OUT
                worker, lead, self.far, self.tuning.turn, self.tuning.turns_at_once,  # IN
            )  # fmt: skip
            return True

        while not turns[ENDED : ENDED + 2].all():
            self.workers.run(grow, 2)
            if control.tick(self.mates[0].size - roots[0].size):
                raise Stopped
        return bool(self.best[0] < self.far)
