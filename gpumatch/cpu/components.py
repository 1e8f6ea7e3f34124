"""Strong components of a matched pattern, by one depth-first search.

A matched row and its column are one vertex, named by the row. An entry of row u in the column of
row w is an arc from u to w. The components are numbered so that arcs lead from a component to the
same or a later one. In this order the permuted pattern is block upper triangular.

The search is Pearce's. A vertex has one number, and vertices that wait for their component share an
array with the path of the search.

Encodings
---------
``number[row]``  0: not reached; on the path or waiting: the least number seen from the row, at
                 first its own; above these: its component's, those found later having less;
                 n + 1 for rows left out
``path[:DEPTH]``      the rows of the search's path; ``entry`` and ``own`` have the next entry to
                      look at, and the number that the row began with, of each
``path[WAITING:]``    finished rows that wait for their component's root
``state``        DEPTH and WAITING, as above; FRESH, the number of the next row reached; COMPONENT,
                 the number of the next component; ROOT: all rows from there on are reached

Reference: Pearce, *A space-efficient algorithm for finding strongly connected components*,
Information Processing Letters 116(1), 2016; Tarjan, SIAM J. Comput. 1(2), 1972.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Graph
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["strong_components"]

_BUDGET = 2**22  # entries and rows visited between two returns to Python
_DEPTH, _WAITING, _FRESH, _COMPONENT, _ROOT = range(5)


def strong_components(
    graph: Graph, col_to_row: np.ndarray, inside: np.ndarray
) -> tuple[np.ndarray, int]:
    """The component of each row inside, -1 for the others, and how many there are; O(n + nnz).

    ``col_to_row[j]`` is the row matched to column j. It may be -1 only where no row inside has an
    entry. Rows and columns of one matched pair are inside or outside together.
    """
    nrows = graph.nrows
    number = np.where(inside, 0, nrows + 1).astype(np.int32)
    entry = np.empty(nrows, graph.indptr.dtype)
    own, path = np.empty((2, nrows), np.int32)
    state = np.array([0, nrows, 1, nrows, nrows])
    while not _search(
        graph.indptr, graph.indices, col_to_row,  # IN
        number, entry, own, path, state, _BUDGET,  # OUT
    ):  # fmt: skip
        pass
    count = nrows - int(state[_COMPONENT])
    number -= np.int32(nrows - count + 1)
    number[~inside] = -1
    return number, count


@kernel
def _search(indptr, indices, col_to_row, number, entry, own, path, state, budget):
    """Search until all rows have a component (True) or the budget is used up (False).

    Roots are tried from the last row on, so that the rows of an upper triangular pattern stay in
    their order.
    """
    depth, waiting, fresh, component, root = state
    while budget > 0:
        if depth == 0:
            while root > 0 and number[root - 1] != 0 and budget > 0:
                root -= 1
                budget -= 1
            if root == 0 or budget == 0:
                break
            path[0] = root - 1
            depth = 1
        row = path[depth - 1]
        if number[row] == 0:
            number[row] = own[depth - 1] = fresh
            entry[depth - 1] = indptr[row]
            fresh += 1
        least = number[row]
        k, end = entry[depth - 1], indptr[row + 1]
        budget -= end - k + 1
        child = -1
        while k < end and child < 0:
            other = col_to_row[indices[k]]
            k += 1
            if number[other] == 0:
                child = other
            else:
                there = number[other]
                least = there if there < least else least
        number[row] = least
        if child >= 0:
            budget += end - k
            entry[depth - 1] = k
            path[depth] = child
            depth += 1
            continue
        depth -= 1
        if least < own[depth]:
            waiting -= 1
            path[waiting] = row
            above = path[depth - 1]
            if least < number[above]:
                number[above] = least
            continue
        fresh -= 1  # one for each component keeps the numbers of rows below those of components
        number[row] = component
        while waiting < len(path) and number[path[waiting]] >= least:
            number[path[waiting]] = component
            waiting += 1
        component -= 1
    # One by one: for a slice, Numba would compile the error of another length, for a second.
    state[0], state[1], state[2], state[3], state[4] = depth, waiting, fresh, component, root
    return root == 0 and depth == 0
