"""Graphs with weights, for tests: many small ones as one, and their best matchings by subsets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tests.general_graphs import random_graph, side_by_side

NONE = -(2**62)


class Weighted(NamedTuple):
    """Small graphs side by side, as one graph.

    Attributes
    ----------
    graphs : list of int arrays
        The edges of each graph.
    weights : list of arrays
        The weights of each graph.
    orders : list of int
        The number of vertices of each.
    """

    graphs: list[np.ndarray]
    weights: list[np.ndarray]
    orders: list[int]

    @property
    def source(self) -> tuple[np.ndarray, np.ndarray]:
        """All edges and weights; the last vertex has an edge to itself."""
        edges, _ = side_by_side(self.graphs, self.orders)
        return edges, np.concatenate([*self.weights, self.weights[0][:0], [0]]).astype(
            np.result_type(*self.weights)
        )

    def sums_of(self, mate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The total weight and the number of edges of a matching, in each graph."""
        firsts = np.cumsum([0, *self.orders])
        totals, sizes = [], []
        for edges, weights, first in zip(self.graphs, self.weights, firsts):
            is_pair = mate[edges[:, 0] + first] == edges[:, 1] + first
            totals.append(weights[is_pair].sum())
            sizes.append(np.count_nonzero(is_pair))
        return np.array(totals), np.array(sizes)


def random_weights(count: int, rng: np.random.Generator, largest: int) -> np.ndarray:
    """Integers with ties, zeros, negative or huge ones."""
    kind = rng.integers(6)
    if kind == 0:
        return rng.integers(0, 3, count)
    if kind == 1:
        return rng.integers(-3, 4, count)
    if kind == 2:
        return rng.integers(1, 100, count)
    if kind == 3:
        return rng.integers(-largest, largest + 1, count)
    if kind == 4:
        return largest - rng.integers(0, 3, count)
    return rng.integers(0, 2, count) * largest


def random_small(count: int, rng: Any, most: int = 12, largest: int = 10**6) -> Weighted:
    """Random graphs of up to `most` vertices, of any density."""
    orders = rng.integers(1, most + 1, count).tolist()
    graphs = [random_graph(n, rng) for n in orders]
    weights = [random_weights(len(edges), rng, largest) for edges in graphs]
    return Weighted(graphs, weights, orders)


def best_by_subsets(edges: np.ndarray, weights: np.ndarray, n: int) -> list[int]:
    """The best total of the matchings with 0, 1, ... edges; `NONE` where there is none."""
    table = np.full((n, n), NONE)
    table[edges[:, 0], edges[:, 1]] = table[edges[:, 1], edges[:, 0]] = weights
    return _best(table, np.full((2**n, n // 2 + 1), NONE))[-1].tolist()


@njit(cache=True)
def _best(table, best):
    """best[s, k] is the best of k edges in s: the last vertex of s is unmatched, or has a mate."""
    best[0, 0] = 0
    for chosen in range(1, len(best)):
        v = 0
        while chosen >> (v + 1):
            v += 1
        rest = chosen ^ (1 << v)
        best[chosen] = best[rest]
        for u in range(v):
            if rest >> u & 1 and table[v, u] > NONE:
                for k in range(best.shape[1] - 1):
                    if best[rest ^ (1 << u), k] > NONE:
                        with_edge = best[rest ^ (1 << u), k] + table[v, u]
                        best[chosen, k + 1] = max(best[chosen, k + 1], with_edge)
    return best
