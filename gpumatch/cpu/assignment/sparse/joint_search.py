"""Many augmenting paths at once in a sparse square matrix, for prices within epsilon of optimal.

Where rows bid for long, because those that are unmatched are far from any unmatched column, one
search finds paths for many of them. It takes rounds:

1. *Search*: all unmatched rows grow one forest by Dijkstra's algorithm, until it has all unmatched
   columns. Lengths are slacks, in whole epsilons: a slack below epsilon is 0. If the forest ends
   before, it has reached fewer unmatched columns than it has roots, and touches no other column:
   no full assignment exists (Hall).
2. *Prices*: those of the columns at a distance below that of the farthest one fall by the
   difference. Then the slack of each pair of the forest is below epsilon.
3. *Paths*: each tree augments the path to its nearest unmatched column. If few trees have one, the
   other roots look for paths in pairs whose slack is below epsilon, depth first, disjoint from all
   others of this round.

The first rounds (`lenient` of the tuning) are as above. The others are strict: reduced costs are
rounded down to whole epsilons, and each length is one epsilon more. So pairs of the length 0 have a
rounded slack of -epsilon, and no rounded slack is less. A row that is augmented loses an epsilon of
its dual, so that none of its pairs has the length 0 any more, and no path of the length 0 remains.
Hence the dual of an unmatched row and the price of an unmatched column, added, rise by epsilon at
least in each strict round. This is the search of Gabow and Tarjan: O(sqrt(n)) strict rounds suffice
from the pairs of a coarser epsilon (docs/algorithms/complexity.md). Lenient rounds mostly find more
paths, but each lets slacks fall by epsilon.

Prices and pairs are those of `bidding`: no slack is below -epsilon at first, but for rounding.
Other names are those of `searches.sparse`. Lengths are kept as costs, not as numbers of epsilons.

    roots        the unmatched rows; their duals begin as their least reduced costs, and rise by
                 the distance of the farthest unmatched column in each round
    dist, pred   of columns: the distance, and the row from which it is reached
    tree_of      of columns: the place of the root of its tree in ``roots``
    tree         the columns in the order in which they are settled
    keys, heap   a heap of columns beyond the front; also room for the columns that a row offers
    spot         NEXT (roots that have been scanned), HEAD and NEAR (of the columns at the front),
                 TAIL, WAITING, SINK (here: how many unmatched columns have been settled),
                 KEPT (here: how many columns have a distance)
    strict       1.0 in a strict round, else 0.0

References
----------
Gabow, Tarjan, *Faster scaling algorithms for network problems*, SIAM J. Computing 18, 1989.
Goldberg, Kennedy, *Global price updates help*, SIAM J. Discrete Mathematics 10, 1997.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.prefetch import prefetch_range
from gpumatch.cpu.searches.heap import drop_top, push, tidy
from gpumatch.cpu.searches.paths import turn
from gpumatch.cpu.searches.sparse import known_reduced_cost, least_reduced_cost
from gpumatch.cpu.searches.state import (
    FOUND,
    FRONT,
    HEAD,
    KEPT,
    NEAR,
    NEXT,
    REACHED,
    SCANS,
    SINK,
    SPENT,
    STUCK,
    TAIL,
    WAITING,
)
from gpumatch.running.kept_memory import kept_empty

__all__ = ["JointSearch"]

EXACT = 2.0**53
"""Epsilons from which on a slack is a length as it is: their number would be rounded."""


@kernel
def _steps(reduced, own, inverse, strict):
    """Return the length of a pair in epsilons; ``own`` is the dual of its row."""
    if strict > 0:
        return np.floor(reduced * inverse) - np.floor(own * inverse) + strict
    return np.floor((reduced - own) * inverse)


@kernel
def _grow(entries, pairs, roots, row_dual, room, spot, mark, unit, strict, far, budget):
    """Grow the forest until it has all unmatched columns, or ends, or the budget is spent.

    In a round that is not strict, also write the duals of the roots, their least reduced costs.
    """
    indptr, indices, costs = entries
    price, _, col_to_row = pairs
    dist, pred, place, near, keys, heap, tree, tree_of = room
    front, inverse = mark[FRONT], 1 / unit
    head, tail, nears, waiting = spot[HEAD], spot[TAIL], spot[NEAR], spot[WAITING]
    begun, sinks, count = spot[NEXT], spot[SINK], spot[KEPT]
    outcome, work = SPENT, 0
    while work < budget:
        if begun < roots.size:
            row, own_tree = np.intp(roots[begun]), np.intp(begun)
            if not strict > 0:
                row_dual[row] = least_reduced_cost(indptr, indices, costs, price, row, far)
            own = row_dual[row]
            begun += 1
        elif head < nears:
            col = near[head]
            head += 1
            tree[tail] = col
            tail += 1
            row, own_tree = np.intp(col_to_row[col]), np.intp(tree_of[col])
            if row < 0:
                sinks += 1
                continue
            own = known_reduced_cost(indptr, indices, costs, price, place, row, col)
        elif sinks == roots.size or waiting == 0:
            outcome = FOUND if sinks == roots.size else STUCK
            break
        else:
            waiting = tidy(keys, heap, waiting, dist, count - tail)
            front, head, nears = keys[0], 0, 0
            while waiting > 0 and keys[0] == front:
                col = heap[0]
                waiting -= 1
                drop_top(keys, heap, waiting)
                if dist[col] == front:
                    near[nears] = col
                    nears += 1
            continue
        begin, degree = indptr[row], indptr[row + 1] - indptr[row]
        work += 1 + degree
        offset = front - own - unit * costs.dtype.type(strict)  # no length is shorter by more
        first = last = np.uintp(waiting)
        for k in range(degree):
            col = np.uintp(indices[begin + k])
            heap[last] = k
            last += np.uintp((costs[begin + k] - price[col]) + offset < dist[col])
        for slot in range(first, last):
            entry = begin + heap[slot]
            col = np.uintp(indices[entry])
            steps = _steps(costs[entry] - price[col], own, inverse, strict)
            there = front
            if steps >= EXACT:
                there += (costs[entry] - price[col]) - own
            elif steps > 0:
                there += unit * costs.dtype.type(steps)
            if there >= dist[col]:
                continue
            count += dist[col] == far
            dist[col] = there
            pred[col] = row
            tree_of[col] = own_tree
            if there == front:
                near[nears] = col
                nears += 1
                mate = col_to_row[col]
                if mate >= 0:
                    prefetch_range(costs, indptr[mate], indptr[mate + 1] - 1)
                    prefetch_range(indices, indptr[mate], indptr[mate + 1] - 1)
            else:
                push(keys, heap, waiting, there, col)
                waiting += 1
    mark[FRONT] = front
    spot[HEAD], spot[TAIL], spot[NEAR], spot[WAITING] = head, tail, nears, waiting
    spot[NEXT], spot[SINK], spot[KEPT] = begun, sinks, count
    return outcome, work


@kernel
def _augment_trees(pairs, roots, row_dual, room, tail, front, is_used, is_seen):
    """Change the duals, and augment the shortest path of each tree; return how many there are.

    Mark the columns of these paths.
    """
    price, row_to_col, col_to_row = pairs
    dist, pred, _, _, _, _, tree, tree_of = room
    found = 0
    for root in roots:
        row_dual[root] += front
    for k in range(tail):
        col = tree[k]
        price[col] += dist[col] - front
        if col_to_row[col] >= 0 or is_used[tree_of[col]]:
            continue
        is_used[tree_of[col]] = True
        found += 1
        root, there = roots[tree_of[col]], col
        while True:
            is_seen[there] = True
            row = pred[there]
            if row == root:
                break
            there = row_to_col[row]
        turn(root, col, pred[col], pred, row_to_col, col_to_row)
    return found


@kernel
def _augment_depth_first(
    entries, pairs, roots, row_dual, place, is_seen, path, spot, inverse, strict, budget
):
    """Augment disjoint paths from the unmatched roots, until the budget is spent.

    Their pairs have the length 0. Columns that are seen are left out.
    ``path`` has rows, the entry after the last one that each has tried, and what each pays; HEAD is
    the place of the last row, and REACHED counts the paths. Returns how it ended, and the work.
    """
    indptr, indices, costs = entries
    price, row_to_col, col_to_row = pairs
    rows, cursors, duals = path
    depth, work = spot[HEAD], 0
    while spot[NEXT] < roots.size:
        root = roots[spot[NEXT]]
        if depth < 0 and row_to_col[root] < 0:
            depth = 0
            rows[0], cursors[0], duals[0] = root, indptr[root], row_dual[root]
        while depth >= 0:
            if work >= budget:
                spot[HEAD] = depth
                return SPENT, work
            row, entry = rows[depth], cursors[depth]
            end, col = indptr[row + 1], -1
            while entry < end and col < 0:
                there = indices[entry]
                if not is_seen[there]:
                    reduced = costs[entry] - price[there]
                    col = there if _steps(reduced, duals[depth], inverse, strict) <= 0 else -1
                entry += 1
            work += 1 + entry - cursors[depth]
            cursors[depth] = entry
            if col < 0:
                depth -= 1
                continue
            is_seen[col] = True
            mate = col_to_row[col]
            if mate >= 0:
                depth += 1
                rows[depth], cursors[depth] = mate, indptr[mate]
                duals[depth] = known_reduced_cost(indptr, indices, costs, price, place, mate, col)
                continue
            while depth >= 0:
                row = rows[depth]
                before = row_to_col[row]
                row_to_col[row] = col
                col_to_row[col] = row
                col = before
                depth -= 1
            spot[REACHED] += 1
        spot[NEXT] += 1
    spot[HEAD] = -1
    return FOUND, work


@kernel
def _price_rows(entries, pairs, place, tree, tail, row_dual, is_slack):
    """Write what the rows of settled columns pay, and mark them: their pairs may be slack."""
    indptr, indices, costs = entries
    price, _, col_to_row = pairs
    for k in range(tail):
        row = col_to_row[tree[k]]
        if row >= 0:
            row_dual[row] = known_reduced_cost(indptr, indices, costs, price, place, row, tree[k])
            is_slack[row] = True


class JointSearch:
    """Rounds of searches, in the arrays of `paths`.

    Parameters
    ----------
    paths : SparsePaths
        Entries, prices and pairs. All rows and columns must be matched.
    row_dual : numpy.ndarray
        What rows pay for their columns, kept up to date, and the duals of unmatched rows.
    is_slack : numpy.ndarray
        True for rows whose pairs may not be tight, kept up to date.
    tuning : Tuning
        How many rounds are lenient, and when a round is a good one.
    is_exact : bool
        True if all slacks are multiples of epsilon: lenient rounds keep pairs tight then, and no
        round is strict.
    """

    def __init__(
        self,
        paths: SparsePaths,
        row_dual: np.ndarray,
        is_slack: np.ndarray,
        tuning: Tuning,
        *,
        is_exact: bool = False,
    ) -> None:
        self.paths, self.row_dual, self.is_slack = paths, row_dual, is_slack
        room = paths.room
        self.room = (
            room.dist, room.pred, room.place, room.near,
            room.keys, room.heap, room.tree, room.reached,
        )  # fmt: skip
        self.pairs = paths.price, paths.row_to_col, paths.col_to_row
        self.tuning, self.rounds, self.is_exact = tuning, 0, is_exact

    @property
    def strict(self) -> float:
        """1.0 if the next round is strict, else 0.0."""
        return float(self.rounds >= self.tuning.lenient and not self.is_exact)

    def round(self, epsilon: Any, beat: Callable[[], None]) -> int:
        """Match as many unmatched rows as one search can; return how many.

        It is 0 if no full assignment exists. `beat` is called between two calls of kernels.
        """
        paths = self.paths
        spot, scans = paths.spot, int(paths.spot[SCANS])
        roots = paths.start_with_unmatched_rows()
        spot[HEAD] = paths.mark[FRONT] = 0
        outcome = SPENT
        try:
            while outcome == SPENT:
                outcome, work = _grow(
                    paths.entries, self.pairs, roots,  # IN
                    self.row_dual, self.room, spot, paths.mark,  # OUT
                    epsilon, self.strict, paths.far, paths.budget,  # IN
                )  # fmt: skip
                scans += work
                beat()
            if outcome == STUCK:
                return 0
            is_seen = np.zeros(paths.price.size, bool)
            tail, front = int(spot[TAIL]), paths.mark[FRONT]
            found = self._augment_trees(roots, tail, front, is_seen)
            if found < self.tuning.good_round * roots.size:
                scans += self._augment_depth_first(roots, is_seen, epsilon, beat)
            _price_rows(
                paths.entries, self.pairs, paths.room.place, paths.room.tree, tail,  # IN
                self.row_dual, self.is_slack,  # OUT
            )  # fmt: skip
            found += int(spot[REACHED])
        finally:
            paths.room.dist.fill(paths.far)
            spot[HEAD], spot[SCANS] = -1, scans
        self.rounds += 1
        return found

    def _augment_trees(self, roots: np.ndarray, tail: int, front: Any, is_seen: Any) -> int:
        is_used = np.zeros(roots.size, bool)
        trees = self.pairs, roots, self.row_dual, self.room, tail, front
        return int(_augment_trees(*trees, is_used, is_seen))

    def _augment_depth_first(
        self, roots: np.ndarray, is_seen: np.ndarray, epsilon: Any, beat: Callable[[], None]
    ) -> int:
        """Augment further paths, as many as `spot[REACHED]` says; return the entries read."""
        paths, size = self.paths, self.row_dual.size + 1
        path = (
            kept_empty(size, np.int32), kept_empty(size, np.int64),
            kept_empty(size, self.row_dual.dtype),
        )  # fmt: skip
        paths.start_with_unmatched_rows()
        outcome, scans = SPENT, 0
        while outcome == SPENT:
            outcome, work = _augment_depth_first(
                paths.entries, self.pairs, roots, self.row_dual,  # IN
                paths.room.place, is_seen, path, paths.spot,  # OUT
                1 / epsilon, self.strict, paths.budget,  # IN
            )  # fmt: skip
            scans += work
            beat()
        return scans
