"""Breadth-first searches from one free row after the other, all in one compiled call.

On a graph of some thousand edges, calls from Python take most of the time, and making the columns'
lists would take longer than the search. So there is one call, on the rows' lists alone.

A search that finds no free column has seen all that alternating paths reach from its root, and no
augmenting path ever leads there again. So these columns stay marked, and later searches skip them.
Searches that fail read each edge once in all. But searches that find a path may read many edges
again. They end when they have read too many, with a valid matching that others may extend.

    seen[v]    whether column v is in the tree, or in one that has no path
    parent[v]  row from which the search came to column v
    queue[k]   rows of the tree in the order of joining; all but the root are mates of its columns

Reference: Duff, Kaya, Uçar, *Design, implementation, and analysis of maximum transversal
algorithms*, ACM TOMS 38(2), 2011, section 2.2 (BFS-based).
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["search"]


@kernel
def search(indptr, indices, most, row_to_col, col_to_row):
    """Match free rows while no more than ``most`` edges are read.

    Returns
    -------
    found, levels, read : int
        Paths found, levels of the deepest search, edges read; the matching is maximum if these are
        no more than ``most``.
    """
    nrows, ncols = len(row_to_col), len(col_to_row)
    queue = np.empty(min(nrows, ncols + 1), np.int32)
    parent = np.empty(ncols, np.int32)
    seen = np.zeros(ncols, np.bool_)
    found = levels = read = 0
    for root in range(nrows):
        if row_to_col[root] >= 0 or indptr[root] == indptr[root + 1]:
            continue
        queue[0] = root
        at, level_end, size, level, free = 0, 1, 1, 1, -1
        while at < size and free < 0:
            if at == level_end:
                level_end = size
                level += 1
            row = queue[at]
            at += 1
            for e in range(indptr[row], indptr[row + 1]):
                read += 1
                col = indices[e]
                if seen[col]:
                    continue
                seen[col] = True
                parent[col] = row
                if col_to_row[col] < 0:
                    free = col
                    break
                queue[size] = col_to_row[col]
                size += 1
        levels = max(levels, level)
        if free >= 0:
            for k in range(1, size):
                seen[row_to_col[queue[k]]] = False
            seen[free] = False
            while free >= 0:
                row = parent[free]
                col_to_row[free] = row
                row_to_col[row], free = free, row_to_col[row]
            found += 1
        if read > most:
            break
    return found, levels, read
