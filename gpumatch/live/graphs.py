"""A maximum matching that is kept while edges come and go."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from gpumatch.bipartite import BipartiteGraph, as_bipartite
from gpumatch.dispatch.by_device import live_graphs_for
from gpumatch.live.one_thread import OneThread, alone
from gpumatch.matching import maximum_matching
from gpumatch.numeric.arrays import array_module, array_of, index_array
from gpumatch.results.matching import Matching

__all__ = ["GraphSession"]


class GraphSession(OneThread):
    """A bipartite graph that changes, with a maximum matching kept.

    Parameters
    ----------
    A : whatever `maximum_matching` takes
        The graph to begin with. Rows and columns stay; edges come and go. If it is on a GPU, so is
        the session, and results are CuPy arrays there.

    Attributes
    ----------
    shape : (int, int)
        Rows and columns.

    Notes
    -----
    A change of k edges takes O(k d) for vertices of d edges. `solve` then grows trees from all
    unmatched rows and from all unmatched columns until these meet. On a random graph of n rows that
    had a perfect matching, it reads the edges of about sqrt(k n) vertices. Where a graph has no
    perfect matching, it reads all edges that the unmatched vertices of one side reach, to prove
    that there is no path. It is skipped if no change can have made a path.

    A session is for one thread at a time, as `Session`, and pickles.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> s = gm.GraphSession(np.eye(3))
    >>> s.add_edges([0, 1, 2], [1, 2, 0])
    >>> s.remove_edges([0], [0])
    >>> m = s.solve()
    >>> m.size, m.to_dict()
    (3, {0: 1, 1: 2, 2: 0})
    >>> print(gm.verify(s.graph(), m))
    maximum: a matching of 3 edges and a cover of 3 vertices, checked on 5 edges
    """

    def __init__(self, A: Any) -> None:
        super().__init__()
        graph = as_bipartite(A)
        graphs = live_graphs_for(graph)
        self.shape = graph.shape
        indptr, indices = graphs.distinct_rows(graph.indptr, graph.indices, graph.shape)
        graph = BipartiteGraph.of_rows(indptr, indices, graph.shape)
        found = maximum_matching(graph, backend=graphs.LiveGraph.backend)
        self._graph = graphs.LiveGraph(graph, (found.row_to_col, found.col_to_row))
        self._is_maximum = False

    def __repr__(self) -> str:
        return f"GraphSession({self.shape[0]} rows, {self.shape[1]} columns)"

    @alone
    def graph(self) -> BipartiteGraph:
        """The graph now, as a copy."""
        indptr, indices = self._graph.csr()
        return BipartiteGraph.of_rows(indptr, indices, self.shape)

    @alone
    def add_edges(self, rows: Any, cols: Any) -> None:
        """Add the edges of these rows and columns; those that are there already stay as they are.

        Parameters
        ----------
        rows, cols : integer arrays of one length

        Raises
        ------
        TypeError, ValueError
            If they are no such arrays, or a number is out of range. Then nothing changes.
        """
        self._graph.add_edges(*self._edges(rows, cols))
        self._is_maximum = False

    @alone
    def remove_edges(self, rows: Any, cols: Any) -> None:
        """Remove the edges of these rows and columns.

        Raises
        ------
        TypeError, ValueError
            As `add_edges`, or if one of them is no edge. Then nothing changes.
        """
        pairs = self._edges(rows, cols)
        is_edge = self._graph.has_edges(*pairs)
        if not is_edge.all():
            stray = int((~is_edge).argmax())
            raise ValueError(
                f"there is no edge of row {pairs[0][stray]} and column {pairs[1][stray]} to remove"
            )
        if self._graph.remove_edges(*pairs):
            self._is_maximum = False

    @alone
    def solve(self) -> Matching:
        """Return a maximum matching of the graph as it is now.

        Returns
        -------
        Matching
            A snapshot, with its vertex cover. Later changes do not touch it.
        """
        began = time.perf_counter()
        live, stats = self._graph, {"found": 0, "phases": 0}
        if not self._is_maximum:
            stats = live.solve()
            self._is_maximum = True
            self._cover = live.cover()
        return Matching(
            None,
            live.row_to_col.copy(),
            live.col_to_row.copy(),
            proven=True,
            stats={
                "algorithm": "session",
                "backend": live.backend,
                **stats,
                "seconds": {"search": time.perf_counter() - began},
            },
            cover=self._cover,
        )

    def _edges(self, rows: Any, cols: Any) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of edges as int32 arrays where the graph is, checked."""
        found, xp = [], array_module(self._graph.row_to_col)
        for name, values, size in zip(("rows", "cols"), (rows, cols), self.shape):
            array = index_array(values, name)
            if array.ndim != 1:
                raise ValueError(f"{name} must be a list of numbers; got {array.ndim} dimensions")
            if array.size and (int(array.min()) < 0 or int(array.max()) >= size):
                raise ValueError(f"{name} must be from 0 to {size - 1}")
            found.append(xp.ascontiguousarray(array_of(xp, array), dtype=np.int32))
        if found[0].size != found[1].size:
            raise ValueError(
                f"rows and cols must be as many; got {found[0].size} and {found[1].size}"
            )
        return found[0], found[1]
