"""Bipartite graphs with known matchings, and a proof by König's theorem, for the tests of cpu/.

`check` shares no code with the algorithms: a valid matching is maximum when a vertex cover has its
size, and from a maximum one such a cover follows.
"""

from __future__ import annotations

import contextlib

import numpy as np
from scipy.sparse import coo_array, csr_array

from gpumatch.bipartite import BipartiteGraph

MALFORMED = {
    "negative offset": ([0, -1, 3], [0, 1, 0]),
    "falling offsets": ([0, 3, 2], [0, 1, 0]),
    "offsets beyond the indices": ([0, 2, 4], [0, 1, 0]),
    "first offset": ([1, 2, 3], [0, 1, 0]),
    "too few offsets": ([0, 3], [0, 1, 0]),
    "negative index": ([0, 2, 3], [0, -1, 0]),
    "great index": ([0, 2, 3], [0, 2, 0]),
    "great int64": ([0, 2, 3], [0, 2**32, 0]),
    "floats": ([0, 2, 3], [0.0, 1.0, 0.0]),
}
"""Arrays that are no CSR of two rows and two columns with three entries."""


class FreeRun:
    """A control that never stops and remembers what it was told."""

    def __init__(self):
        self.phases, self.seconds = [], {}

    def tick(self, matched):
        return False

    def phase(self, *, found, matched, levels=0, **more):
        self.phases.append((found, matched))

    def part(self, name):
        return contextlib.nullcontext()


class StopAt(FreeRun):
    """Stop at the given tick, counted from 1, which must be the last."""

    def __init__(self, tick):
        super().__init__()
        self.left = tick

    def tick(self, matched):
        assert self.left > 0, "it went on although it was told to stop"
        self.left -= 1
        return self.left == 0


def graph(nrows, ncols, edges):
    """The graph with these (row, column) pairs."""
    rows, cols = np.array(list(edges), dtype=np.int64).reshape(-1, 2).T
    ones = np.ones(len(rows), np.int8)
    return BipartiteGraph(csr_array(coo_array((ones, (rows, cols)), shape=(nrows, ncols))))


def random(nrows, ncols, count, seed):
    """`count` edges drawn uniformly, duplicates merged."""
    rng = np.random.default_rng(seed)
    return graph(
        nrows, ncols, zip(rng.integers(nrows, size=count), rng.integers(ncols, size=count))
    )


def chain(n):
    """Row i meets columns i and i + 1, except the last: one perfect matching, the diagonal."""
    return graph(n, n, [(i, i) for i in range(n)] + [(i, i + 1) for i in range(n - 1)])


def chains(lengths):
    """Disjoint chains: from all the (i, i + 1), one augmenting path of each length."""
    edges, first = [], 0
    for n in lengths:
        edges += [(first + i, first + i) for i in range(n)]
        edges += [(first + i, first + i + 1) for i in range(n - 1)]
        first += n
    return graph(first, first, edges)


def ladder(levels):
    """Two rails of rows, each joined to both columns of its level and of the next.

    One row more than there are columns at the head, one column more at the end: the path that
    matches the last row passes all levels, and 2**levels alternating walks lead there.
    """
    edges = [(0, 0), (0, 1)]
    for level in range(levels):
        rows, cols = (2 * level + 1, 2 * level + 2), (2 * level, 2 * level + 1)
        edges += [(row, col) for row in rows for col in cols]
        edges += [(row, col + 2) for row in rows for col in cols]
    return graph(2 * levels + 1, 2 * levels + 2, edges)


CASES = {
    "0x0": (graph(0, 0, []), 0),
    "0x5": (graph(0, 5, []), 0),
    "5x0": (graph(5, 0, []), 0),
    "no edges": (graph(3, 4, []), 0),
    "one edge": (graph(1, 1, [(0, 0)]), 1),
    "empty rows and columns": (graph(5, 5, [(1, 3), (3, 3), (3, 1)]), 2),
    "star of a row": (graph(1, 9, [(0, j) for j in range(9)]), 1),
    "star of a column": (graph(9, 1, [(i, 0) for i in range(9)]), 1),
    "two stars": (graph(5, 5, [(0, j) for j in range(5)] + [(i, 0) for i in range(5)]), 2),
    "complete 7x7": (graph(7, 7, np.argwhere(np.ones((7, 7)))), 7),
    "complete 3x8": (graph(3, 8, np.argwhere(np.ones((3, 8)))), 3),
    "complete 8x3": (graph(8, 3, np.argwhere(np.ones((8, 3)))), 3),
    "triangular": (graph(30, 30, np.argwhere(np.tri(30))), 30),
    "cycle": (graph(40, 40, [(i, (i + d) % 40) for i in range(40) for d in (0, 1)]), 40),
    "chain": (chain(300), 300),
    "chains": (chains(range(1, 40)), sum(range(1, 40))),
    "ladder": (ladder(40), 81),
    "sparse": (random(400, 400, 800, 1), None),
    "sparser": (random(500, 500, 500, 2), None),
    "dense": (random(60, 60, 1500, 3), None),
    "wide": (random(100, 300, 500, 4), None),
    "tall": (random(300, 100, 500, 5), None),
    "large": (random(6000, 6000, 18000, 6), None),
}
"""Name -> graph and the size of its maximum matchings where theory tells it."""


def holding(whole, side):
    """The graph with the edges of its rows, of its columns, or of both."""
    if side == "both":
        assert whole.indptr.size + whole.col_indptr.size == sum(whole.shape) + 2
        return whole
    if side == "rows":
        return BipartiteGraph((whole.indptr, whole.indices, whole.shape))
    turned = BipartiteGraph((whole.col_indptr, whole.col_indices, whole.shape[::-1]))
    return turned.transpose()


def unmatched(graph):
    """The empty matching."""
    return np.full(graph.nrows, -1, np.int32), np.full(graph.ncols, -1, np.int32)


def check_valid(graph, row_to_col, col_to_row):
    """Assert that the mates name each other and are joined by edges; the size."""
    rows = np.flatnonzero(row_to_col != -1)
    cols = row_to_col[rows]
    assert np.array_equal(col_to_row[cols], rows)
    assert np.count_nonzero(col_to_row != -1) == len(rows)
    edge_rows = np.repeat(np.arange(graph.nrows), np.diff(graph.indptr))
    edges = edge_rows * graph.ncols + graph.indices
    assert np.all(np.isin(rows * graph.ncols + cols, edges))
    return len(rows)


def check_maximum(graph, row_to_col, col_to_row):
    """Assert that the matching is valid and that a cover has its size; the size."""
    size = check_valid(graph, row_to_col, col_to_row)
    row_reached, col_reached = row_to_col == -1, np.zeros(graph.ncols, bool)
    frontier = np.flatnonzero(row_reached).tolist()
    while frontier:
        row = frontier.pop()
        for col in graph.indices[graph.indptr[row] : graph.indptr[row + 1]].tolist():
            if not col_reached[col]:
                col_reached[col] = True
                mate = col_to_row[col]
                assert mate != -1, f"an augmenting path ends in column {col}"
                if not row_reached[mate]:
                    row_reached[mate] = True
                    frontier.append(mate)
    edge_rows = np.repeat(np.arange(graph.nrows), np.diff(graph.indptr))
    assert np.all(~row_reached[edge_rows] | col_reached[graph.indices])
    assert np.count_nonzero(~row_reached) + np.count_nonzero(col_reached) == size
    return size
