"""The result of `gpumatch.general.maximum_matching`, and what all matchings of any graph have."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from gpumatch.contracts import GeneralMatchingTask
from gpumatch.dispatch.by_device import count_matched
from gpumatch.numeric.arrays import array_module
from gpumatch.results.pairs import matrix_of, side_by_side

__all__ = ["GeneralMatching", "Mates"]


class Mates:
    """A matching of an undirected graph.

    Attributes
    ----------
    mate : int32 array of length n
        The mate of each vertex, -1 if it is unmatched.
    size : int
        Number of edges.

    Notes
    -----
    If the vertices are nodes of a networkx graph, all methods and `unmatched` have nodes, and
    `mate` has the nodes' numbers.
    """

    def __init__(self, mate: np.ndarray, nodes: list[Hashable] | None = None) -> None:
        self.mate = mate
        self.size = count_matched(mate) // 2
        self._nodes = nodes

    def __len__(self) -> int:
        return self.size

    @property
    def unmatched(self) -> Any:
        """The vertices in no edge: an int64 array, or a list of nodes."""
        return self._named(self.mate < 0)

    @functools.cached_property
    def edge_ind(self) -> tuple[np.ndarray, np.ndarray]:
        """The smaller and the larger ends of the edges, by the smaller: two int64 arrays."""
        xp = array_module(self.mate)
        ends = (self.mate > xp.arange(self.mate.size)).nonzero()[0]
        return ends, self.mate[ends].astype(np.int64)

    def edges(self) -> Any:
        """The edges, by their smaller ends.

        Returns
        -------
        int64 array of shape (size, 2), or list of pairs of nodes for a networkx graph
        """
        ends, mates = self.edge_ind
        if self._nodes is None:
            return side_by_side(ends, mates)
        nodes = self._nodes
        return [(nodes[u], nodes[v]) for u, v in zip(ends.tolist(), mates.tolist())]

    def to_dict(self) -> dict[Any, Any]:
        """The mate of each matched vertex, as networkx's own functions return and take it.

        Examples
        --------
        >>> import networkx as nx, gpumatch as gm
        >>> gm.general.maximum_matching(nx.Graph(["ab", "cd"])).to_dict()
        {'a': 'b', 'b': 'a', 'c': 'd', 'd': 'c'}
        """
        ends = (self.mate >= 0).nonzero()[0]
        pairs = zip(ends.tolist(), self.mate[ends].tolist())
        if self._nodes is None:
            return dict(pairs)
        return {self._nodes[u]: self._nodes[v] for u, v in pairs}

    def to_matrix(self) -> Any:
        """The matching as a symmetric sparse matrix with a one for each end of each edge.

        Returns
        -------
        scipy.sparse.csr_array of float64
        """
        n, is_matched = self.mate.size, self.mate >= 0
        return matrix_of(is_matched, self.mate[is_matched], (n, n))

    def _named(self, marks: np.ndarray) -> Any:
        """The marked vertices as numbers, or as nodes if they have names."""
        numbers = marks.nonzero()[0]
        return numbers if self._nodes is None else [self._nodes[v] for v in numbers.tolist()]


class GeneralMatching(Mates):
    """A matching of a graph that need not be bipartite, with its proof.

    Attributes
    ----------
    mate : int32 array of length n
        The mate of each vertex, -1 if it is unmatched.
    size : int
        Number of edges.
    unmatched : int64 array, or list of nodes for a networkx graph
        The vertices in no edge.
    proven : bool
        True if the algorithm has ended by itself, so that the matching is maximum.
    stats : dict
        ``algorithm``, ``backend``, ``phases``, ``levels``, ``seconds`` by part, and ``trace``: one
        dict a phase, with its name in ``step``.
    """

    def __init__(
        self,
        mate: np.ndarray,
        part: np.ndarray | None,
        decompose: Callable[[], np.ndarray] | None = None,
        *,
        nodes: list[Hashable] | None,
        stats: dict[str, Any],
    ) -> None:
        super().__init__(mate, nodes)
        self.proven = part is not None
        self.stats = stats
        self._part, self._decompose = part, decompose

    def __repr__(self) -> str:
        proof = "maximum" if self.proven else "not proven maximum"
        return f"GeneralMatching(size {self.size}, {proof}, {self.stats.get('algorithm')})"

    def __getstate__(self) -> dict[str, Any]:
        if self.proven:
            self._marks()  # a copy has no graph
        return self.__dict__

    def gallai_edmonds(self) -> tuple[Any, Any, Any]:
        """The Gallai–Edmonds decomposition of the graph, which every maximum matching has.

        Returns
        -------
        D, A, C : int64 arrays, or lists of nodes for a networkx graph
            D has the vertices that some maximum matching leaves unmatched, A the other neighbours
            of these, and C all other vertices. A maximum matching matches C within itself, and each
            vertex of A with another component of D.

        Raises
        ------
        ValueError
            If the run was stopped before the matching was maximum.
        RuntimeError
            If a part is still to be found, and the arrays of the graph have changed.

        References
        ----------
        Edmonds, *Paths, trees, and flowers*, Canadian J. Math. 17, 1965; Gallai, *Maximale Systeme
        unabhängiger Kanten*, 1964.

        Examples
        --------
        >>> import gpumatch as gm
        >>> m = gm.general.maximum_matching(([(0, 1), (0, 2), (0, 3), (4, 5)], None))
        >>> [vertices.tolist() for vertices in m.gallai_edmonds()]
        [[1, 2, 3], [0], [4, 5]]
        """
        outer, inner, perfect = (self._named(marks) for marks in self._marks())
        return outer, inner, perfect

    def part_ind(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The vertices of `gallai_edmonds` as int64 arrays."""
        outer, inner, perfect = map(np.flatnonzero, self._marks())
        return outer, inner, perfect

    def tutte_berge_set(self) -> Any:
        """The set of vertices that proves the matching maximum: A of `gallai_edmonds`.

        Without these, the graph falls into components. In each component with an odd number of
        vertices, a matching leaves a vertex unmatched or matches one with this set. So at least as
        many vertices are unmatched as there are odd components more than vertices in the set.
        Here they are as many.

        Returns
        -------
        int64 array, or list of nodes for a networkx graph

        Raises
        ------
        ValueError
            If the run was stopped before the matching was maximum.
        RuntimeError
            If a part is still to be found, and the arrays of the graph have changed.

        Examples
        --------
        >>> import networkx as nx, gpumatch as gm
        >>> gm.general.maximum_matching(nx.Graph(["ax", "bx", "cx"])).tutte_berge_set()
        ['x']
        """
        return self._named(self._marks()[1])

    def tutte_berge_ind(self) -> np.ndarray:
        """The vertices of `tutte_berge_set` as an int64 array."""
        return np.flatnonzero(self._marks()[1])

    def _marks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The vertices of D, A and C, as bool arrays."""
        if self._part is None:
            raise ValueError("the matching is not proven maximum: there is no decomposition")
        if self._decompose is not None:
            self._part, self._decompose = self._decompose(), None
        task, part = GeneralMatchingTask, self._part
        return part == task.OUTER, part == task.INNER, part == task.PERFECT
