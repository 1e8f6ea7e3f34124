"""Shortest augmenting paths in a dense cost matrix by the columns that each row knows.

A search is Dijkstra's with a heap, pruned as in `searches.sparse`. The heap holds columns, and also
rows of the tree, at the distance from which on columns that they do not know (`candidates`) may
matter. A row on top of the heap looks at its line. If the search ends before, the line is not read.
So paths are exact: no entry is left out but by a bound.

    search       (dist, pred, near, keys, heap, tree, reached), as in `searches.sparse`. In the
                 heap, j is a column, ncols + i a row that is to look again, and ncols + nrows + i
                 one whose known columns are good, but not enough: it is to find the nearest columns
                 that this search may still reach by it.
    spare        (cols, costs): what it finds, which is not good for other searches
    terms        (limit, leaves): the price of taking no column, and whether a row may

References
----------
Jonker, Volgenant, *A shortest augmenting path algorithm for dense and sparse linear assignment
problems*, Computing 38, 1987.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.assignment.dense.candidates import KNOWN, look, look_again, start_of
from gpumatch.cpu.numba_tools.compiled import inlined, vector_kernel
from gpumatch.cpu.searches.heap import drop_top, push
from gpumatch.cpu.searches.paths import turn
from gpumatch.cpu.searches.state import (
    FOUND,
    FRONT,
    HEAD,
    LEAVE,
    LEAVER,
    LEFT,
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

__all__ = ["augment"]

STALE = 1 / 4
"""The share of known columns beyond the bound from which on a row looks again."""
A_STEP = 4
"""Entries of a line that are read while a search tries one column."""

FAR = np.inf
KNOWS, LOOKS, SEEKS = range(3)  # what a row offers: what it knows, after a look, for this search


@vector_kernel
def _tidy(keys, heap, waiting, dist):
    """Drop from the heap what is out of date; return how many entries it has."""
    kept = 0
    for slot in range(waiting):
        key, code = keys[slot], heap[slot]
        if code >= dist.size or key <= dist[code]:
            push(keys, heap, kept, key, code)
            kept += 1
    return kept


@inlined
def _offset(values, price, dist, row_to_col, row):
    """Return the distance of a row in the tree less the reduced cost of its pair."""
    mate = row_to_col[row]
    return 0.0 if mate < 0 else dist[mate] - (values[row, mate] - price[mate])


@vector_kernel
def _grow(
    values, price, row_to_col, col_to_row, root, spot, mark, search, known, scratch, spare, terms,
    budget,
):  # fmt: skip
    """Grow the tree of ``root`` until no shorter path exists or the budget is spent.

    Returns what ended the search, and the work.
    """
    nrows, ncols = values.shape
    dist, pred, near, keys, heap, tree, reached = search
    limit, leaves = terms
    front, leave = mark[FRONT], mark[LEAVE]
    head, tail, nears = spot[HEAD], spot[TAIL], spot[NEAR]
    waiting, count = spot[WAITING], spot[REACHED]
    sink, leaver = spot[SINK], spot[LEAVER]
    row, offset, kind = -1, 0.0, KNOWS
    if head < 0:
        head = tail = nears = waiting = count = 0
        row, sink, leaver = root, -1, root if leaves else -1
        front, leave = -FAR, limit if leaves else FAR
    outcome, work = SPENT, 0
    while True:
        if row >= 0:
            cols, costs, rest = known[0][row], known[1][row], known[2][row]
            if kind == LOOKS:
                look_again(values, row, price, known, scratch)
                rest = known[2][row]
            elif kind == SEEKS:
                cols, costs = spare
                way = dist, offset, front
                rest = look(values[row], price, way, start_of(values, row), scratch, cols, costs)
            work += A_STEP * KNOWN + (ncols if kind != KNOWS else 0)
            if waiting + KNOWN >= keys.size:
                waiting = _tidy(keys, heap, waiting, dist)
            stale = 0
            for place in range(KNOWN):
                col = cols[place]
                reduced = costs[place] - price[col]
                stale += reduced > rest
                there = max(reduced + offset, front)  # but for rounding, it is not before
                if there >= leave or there >= dist[col]:
                    continue
                if dist[col] == FAR:
                    reached[count] = col
                    count += 1
                dist[col] = there
                pred[col] = row
                if col_to_row[col] < 0:
                    leave, sink, leaver = there, col, -1
                elif there <= front:
                    near[nears] = col
                    nears += 1
                else:
                    push(keys, heap, waiting, there, col)
                    waiting += 1
            if rest + offset < leave:
                is_good = kind != KNOWS or stale < STALE * KNOWN
                code = row + ncols + (nrows if is_good else 0)
                push(keys, heap, waiting, max(rest + offset, front), code)
                waiting += 1
        if work >= budget:
            break
        if head < nears and front < leave:
            col = near[head]
            head += 1
        else:
            if waiting == 0 or keys[0] >= leave:
                front = leave
                outcome = STUCK if leave == FAR else LEFT if leaver >= 0 else FOUND
                break
            key, col = keys[0], heap[0]
            waiting -= 1
            drop_top(keys, heap, waiting)
            row = -1
            if col < ncols and key > dist[col]:
                continue
            front = key
        kind = KNOWS if col < ncols else LOOKS if col < ncols + nrows else SEEKS
        if kind != KNOWS:
            row = (col - ncols) % nrows
            offset = _offset(values, price, dist, row_to_col, row)
            continue
        tree[tail] = col
        tail += 1
        row = col_to_row[col]
        offset = front - (values[row, col] - price[col])
        if leaves and limit + offset < leave:
            leave, leaver = limit + offset, row
    mark[FRONT], mark[LEAVE] = front, leave
    spot[HEAD], spot[TAIL], spot[NEAR] = head, tail, nears
    spot[WAITING], spot[REACHED] = waiting, count
    spot[SINK], spot[LEAVER] = sink, leaver
    return outcome, work


@vector_kernel
def augment(
    values, price, row_to_col, col_to_row, unmatched, spot, mark, search, known, scratch, spare,
    terms,
    budget,
):  # fmt: skip
    """Match the rows of ``unmatched`` by shortest augmenting paths, as far as the budget goes.

    Returns how it ended: FOUND if all rows are served, SPENT, or STUCK if a row has no path.
    """
    dist, pred, _, _, _, tree, reached = search
    while spot[NEXT] < unmatched.size:
        root = unmatched[spot[NEXT]]
        outcome, work = _grow(
            values, price, row_to_col, col_to_row, root, spot, mark, search, known, scratch, spare,
            terms, budget,
        )  # fmt: skip
        budget -= work
        spot[SCANS] += work
        if outcome == SPENT:
            return SPENT
        if outcome != STUCK:
            for col in tree[: spot[TAIL]]:
                price[col] += dist[col] - mark[FRONT]
            sink = spot[SINK] if outcome == FOUND else -1
            row = pred[sink] if outcome == FOUND else spot[LEAVER]
            turn(root, sink, row, pred, row_to_col, col_to_row)
        for col in reached[: spot[REACHED]]:
            dist[col] = FAR
        spot[HEAD] = -1
        if outcome == STUCK:
            return STUCK
        spot[NEXT] += 1
    return FOUND
