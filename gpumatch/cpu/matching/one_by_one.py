"""Breadth-first searches from one unmatched row after the other, all in one compiled call.

On a graph of some thousand edges, calls from Python take most of the time. On any graph, making the
columns' lists takes longer than to find a few short paths. So there is one call, on the rows' lists
alone.

A search that finds no unmatched column has seen all that alternating paths reach from its root, and
no augmenting path ever leads there again. So these columns stay marked, and later searches skip
them. Searches that fail read each edge once in all. But searches that find a path may read many
edges again. They end when they have read too many, or when the paths so far let one expect that all
would read too many, with a valid matching that others may extend.

    seen[v]    whether column v is in the tree, or in one that has no path
    parent[v]  row from which the search came to column v
    queue[k]   rows of the tree in the order of joining; all but the root are mates of its columns

Reference: Duff, Kaya, Uçar, *Design, implementation, and analysis of maximum transversal
algorithms*, ACM TOMS 38(2), 2011, section 2.2 (BFS-based).
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["match_free_rows", "search"]


_SAMPLE = 8  # part of ``most``, read for paths, from which on they tell what all would read
_SHARE = 3  # part of ``most`` that all paths may be expected to read
# Of 47 graphs, with 32 and 2 one more is given up that would have been solved (as-22july06); with 8
# and 2 those that are given up lose up to a fifth, with 8 and 3 up to a tenth.


def search(
    indptr: np.ndarray,
    indices: np.ndarray,
    most: int,
    row_to_col: np.ndarray,
    col_to_row: np.ndarray,
) -> tuple[int, int, int, int, bool]:
    """Match unmatched rows while ``most`` edges seem to be enough.

    Returns
    -------
    found, levels, read, paid, done : int, int, int, int, bool
        Paths found, levels of the deepest search, edges read, and those of them that were read for
        paths; whether the matching is maximum.
    """
    nrows, ncols = len(row_to_col), len(col_to_row)
    seen, parent = np.zeros(ncols, bool), np.empty(ncols, np.int32)
    queue = np.empty(min(nrows, ncols + 1), np.int32)
    return match_free_rows(
        indptr, indices, most,  # IN
        row_to_col, col_to_row,  # OUT
        seen, parent, queue,  # memory: Numba takes long to compile what asks for some
    )  # fmt: skip


@kernel
def match_free_rows(indptr, indices, most, row_to_col, col_to_row, seen, parent, queue):
    """Do as `search`, in memory for ``seen``, which is all False, ``parent`` and ``queue``."""
    nrows, roots = len(row_to_col), 0
    for row in range(nrows):
        if row_to_col[row] < 0 and indptr[row] < indptr[row + 1]:
            roots += 1
    found = levels = read = paid = tried = 0
    for root in range(nrows):
        if row_to_col[root] >= 0 or indptr[root] == indptr[root + 1]:
            continue
        tried += 1
        before = read
        queue[0] = root
        at, level_end, size, level, unmatched = 0, 1, 1, 1, -1
        while at < size and unmatched < 0:
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
                    unmatched = col
                    break
                queue[size] = col_to_row[col]
                size += 1
        levels = level if level > levels else levels
        if unmatched >= 0:
            for k in range(1, size):
                seen[row_to_col[queue[k]]] = False
            seen[unmatched] = False
            while unmatched >= 0:
                row = parent[unmatched]
                col_to_row[unmatched] = row
                row_to_col[row], unmatched = unmatched, row_to_col[row]
            found += 1
            paid += read - before
        too_long = paid > most // _SAMPLE and paid * roots > most // _SHARE * tried
        if tried < roots and (read > most or too_long):
            return found, levels, read, paid, False
    return found, levels, read, paid, True
