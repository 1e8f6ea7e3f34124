"""Karp–Sipser matching: a vertex of degree 1 takes its only neighbour, as long as there is one.

Degrees count unmatched neighbours. Matching a vertex of degree 1 is never wrong, because some
maximum matching contains that edge. When no such vertex is left, a vertex of low degree takes its
unmatched neighbour of lowest degree. This vertex is one whose degree has fallen to 2, if there is
any. Otherwise it is the next row in the order of degrees at the start; among equal degrees, the
seed gives the first row. (Karp and Sipser choose at random there; lowest degrees leave 2 to 10
times fewer vertices unmatched on meshes and social networks.)

Each vertex is matched or dropped once and its edges are read at most three times: O(edges). No
adjacency is searched for the last unmatched neighbour of a vertex, because its word holds the
answer:

    live[v]      degree << 32 | bitwise xor of the unmatched neighbours of v. Matching w
                 subtracts 1 and xors w in one access, and at degree 1 the xor *is* the neighbour
    piles        two stacks of vertices whose degree became 1 (piles[0]) and 2 (piles[1]); a vertex
                 enters each at most once, and may be matched or fall further while it is there.
                 Row i is written as i, column j as ~j
    heights      how many are on either

Reference: Karp, Sipser, *Maximum matching in sparse random graphs*, FOCS 1981; for low degrees
Langguth, Manne, Sanders, *Heuristic initialization for bipartite matching problems*, ACM JEA 15,
2010.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching.sides import BUDGET, blocks
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = [
    "NEIGHBOURS",
    "ONE",
    "best_neighbour",
    "by_degree",
    "enter",
    "retire",
    "retire_matched",
    "run",
]

ONE = 1 << 32
NEIGHBOURS = ONE - 1
_ROW, _COLUMN = 0, -1  # xored with a vertex: its form on the piles


@kernel
def enter(first, last, indptr, indices, side, live, piles, heights):
    """Enter the vertices ``first:last`` of a side as if all their neighbours were unmatched."""
    for v in range(first, last):
        neighbours = np.int64(0)
        for e in range(indptr[v], indptr[v + 1]):
            neighbours ^= indices[e]
        degree = np.int64(indptr[v + 1] - indptr[v])
        live[v] = degree << 32 | neighbours
        if degree == 1 or degree == 2:
            piles[degree - 1, heights[degree - 1]] = v ^ side
            heights[degree - 1] += 1


@kernel
def retire(v, indptr, indices, side, live, piles, heights):
    """Take ``v``, now matched, out of its neighbours' degrees; they are on ``side``."""
    for e in range(indptr[v], indptr[v + 1]):
        w = indices[e]
        now = (live[w] - ONE) ^ v
        live[w] = now
        degree = now >> 32
        if degree == 1 or degree == 2:
            piles[degree - 1, heights[degree - 1]] = w ^ side
            heights[degree - 1] += 1
    return indptr[v + 1] - indptr[v]


@kernel
def retire_matched(first, last, mate, indptr, indices, side, live, piles, heights):
    for v in range(first, last):
        if mate[v] >= 0:
            retire(v, indptr, indices, side, live, piles, heights)


@kernel
def best_neighbour(v, indptr, indices, live, mate):
    """Return the unmatched neighbour of ``v`` of lowest degree, the first of them; one exists."""
    best, lowest = -1, np.int64(1) << 62
    for e in range(indptr[v], indptr[v + 1]):
        w = indices[e]
        if live[w] >> 32 < lowest and mate[w] < 0:
            best, lowest = w, live[w] >> 32
    return best


@kernel
def _match(
    indptr,
    indices,
    col_indptr,
    col_indices,
    order,
    budget,
    row_to_col,
    col_to_row,
    row_live,
    col_live,
    piles,
    heights,
    progress,
):
    """Match until nothing is left (True) or the budget is spent; progress: order read, matched."""
    work = 0
    while work < budget:
        work += 1
        if heights[0] > 0:
            heights[0] -= 1
            v = piles[0, heights[0]]
        elif heights[1] > 0:
            heights[1] -= 1
            v = piles[1, heights[1]]
        elif progress[0] < len(order):
            v = order[progress[0]]
            progress[0] += 1
        else:
            return True
        if v >= 0:
            row = np.int64(v)  # as columns are, so that one compilation of what follows is enough
            if row_to_col[row] >= 0 or row_live[row] < ONE:
                continue
            if row_live[row] >> 32 == 1:
                col = row_live[row] & NEIGHBOURS
            else:
                col = best_neighbour(row, indptr, indices, col_live, col_to_row)
        else:
            col = ~v
            if col_to_row[col] >= 0 or col_live[col] < ONE:
                continue
            if col_live[col] >> 32 == 1:
                row = col_live[col] & NEIGHBOURS
            else:
                row = best_neighbour(col, col_indptr, col_indices, row_live, row_to_col)
        row_to_col[row] = col
        col_to_row[col] = row
        progress[1] += 1
        work += retire(row, indptr, indices, _COLUMN, col_live, piles, heights)
        work += retire(col, col_indptr, col_indices, _ROW, row_live, piles, heights)
    return False


def by_degree(row_to_col: np.ndarray, row_live: np.ndarray, seed: int) -> np.ndarray:
    """Rows that are left, lowest degree first, ties from a row chosen by ``seed`` on."""
    rows = np.flatnonzero((row_to_col < 0) & (row_live >= ONE)).astype(np.int32)
    if len(rows):
        rows = np.roll(rows, -int(np.random.default_rng(seed).integers(len(rows))))
    degrees = np.minimum(row_live[rows] >> 32, 2**16 - 1).astype(np.uint16)  # sorted by radix
    return rows[np.argsort(degrees, kind="stable")]


def run(task: MatchingTask) -> bool:
    """Extend the matching to a maximal one; True unless ``control`` stopped it. One thread."""
    graph, row_to_col, col_to_row, control = task.graph, *task.mates, task.control
    row_live, col_live = np.empty(graph.nrows, np.int64), np.empty(graph.ncols, np.int64)
    piles = np.empty((2, graph.nrows + graph.ncols), np.int32)
    heights = np.zeros(2, np.int64)
    progress = np.array([0, np.count_nonzero(row_to_col >= 0)], np.int64)
    rows = (graph.indptr, graph.indices)
    columns = (graph.col_indptr, graph.col_indices)

    for lists, live, side in (rows, row_live, _ROW), (columns, col_live, _COLUMN):
        for first, last in blocks(lists[0]):
            if control.tick(int(progress[1])):
                return False
            enter(
                first, last, *lists, side,  # IN
                live, piles, heights,  # OUT
            )  # fmt: skip
    if progress[1]:
        for lists, mate, live, side in (
            (rows, row_to_col, col_live, _COLUMN),
            (columns, col_to_row, row_live, _ROW),
        ):
            for first, last in blocks(lists[0]):
                if control.tick(int(progress[1])):
                    return False
                retire_matched(
                    first, last, mate, *lists, side,  # IN
                    live, piles, heights,  # OUT
                )  # fmt: skip

    def match_all(order: np.ndarray) -> bool:
        """Match what is on the piles, and then in this order; False when stopped."""
        while not _match(
            *rows, *columns, order, BUDGET,  # IN
            row_to_col, col_to_row, row_live, col_live, piles, heights, progress,  # OUT
        ):  # fmt: skip
            if control.tick(int(progress[1])):
                return False
        return True

    only_piles = np.empty(0, np.int32)
    return match_all(only_piles) and match_all(by_degree(row_to_col, row_live, task.seed))
