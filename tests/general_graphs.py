"""Graphs that need not be bipartite, for tests: random ones, families, and the size by subsets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numba import njit

Edges = np.ndarray
"""The ends of the edges: an int array of shape (m, 2)."""


# -- many small graphs as one ----------------------------------------------------------------------


def every_graph(n: int) -> list[Edges]:
    """All graphs with n vertices."""
    return graphs_of(n, np.arange(2 ** (n * (n - 1) // 2)))


def graphs_of(n: int, numbers: np.ndarray) -> list[Edges]:
    """The graphs with n vertices of these numbers, which have a bit for each pair."""
    pairs = complete(n)
    bits = numbers[:, None] >> np.arange(len(pairs)) & 1 == 1
    return [pairs[chosen] for chosen in bits]


def random_graph(n: int, rng: np.random.Generator) -> Edges:
    """A graph of any density; some are sparse enough for long paths, or near complete."""
    pairs = np.array(np.triu_indices(n, 1)).T
    share = rng.choice([0.1, 0.2, 0.35, 0.6, 0.9, 1.5 / n, 2.5 / n, 3.5 / n])
    return rng.permutation(n)[pairs[rng.random(len(pairs)) < share]]


def side_by_side(graphs: Sequence[Edges], orders: Sequence[int]) -> tuple[Edges, np.ndarray]:
    """One graph of all, and the first vertex of each; the last vertex has an edge to itself."""
    firsts = np.concatenate([[0], np.cumsum(orders)])
    edges = [edges + first for edges, first in zip(graphs, firsts)]
    last = firsts[-1] - 1
    return np.concatenate([*edges, [[last, last]]]).astype(np.int32), firsts[:-1]


def sizes_by_subsets(graphs: Sequence[Edges], orders: Sequence[int]) -> np.ndarray:
    """The size of the maximum matchings of small graphs."""
    return np.array([size_by_subsets(edges, n) for edges, n in zip(graphs, orders)])


def size_by_subsets(edges: Edges, n: int) -> int:
    neighbours = np.zeros(n, np.int64)
    for one, other in ((0, 1), (1, 0)):
        np.bitwise_or.at(neighbours, edges[:, one], 1 << edges[:, other].astype(np.int64))
    return int(_best(neighbours, np.zeros(2**n, np.int8)))


@njit(cache=True)
def _best(neighbours, best):
    """best[s] is the size for the vertices in s: its last vertex is unmatched, or it has a mate."""
    for chosen in range(1, len(best)):
        v = 0
        while chosen >> (v + 1):
            v += 1
        rest = chosen ^ (1 << v)
        best[chosen] = best[rest]
        for w in range(v):
            if neighbours[v] >> w & rest >> w & 1:
                best[chosen] = max(best[chosen], 1 + best[rest ^ (1 << w)])
    return best[-1]


# -- families whose size is known ------------------------------------------------------------------


def complete(n: int) -> Edges:
    return np.array(np.triu_indices(n, 1)).T


def petersen(n: int, k: int) -> Edges:
    """The generalised Petersen graph, which has a perfect matching (Castagna and Prins 1972)."""
    i = np.arange(n)
    rings = (i, (i + 1) % n), (i, i + n), (i + n, (i + k) % n + n)
    return np.concatenate([np.stack(ends, axis=1) for ends in rings])


def chain_of_triangles(k: int) -> Edges:
    """Each triangle joined to the next by an edge: 3k // 2 edges match."""
    first = 3 * np.arange(k)[:, None]
    triangles = (first[:, :, None] + [[0, 1], [1, 2], [0, 2]]).reshape(-1, 2)
    return np.concatenate([triangles, np.add(first, [2, 3])[:-1]])


def factor_critical(ears: int, rng: np.random.Generator, longest: int = 3) -> Edges:
    """A graph by odd ears, each of which closes a blossom around the last ones: all but one match.

    Any vertex may be the one without a mate (Lovász 1972), so D of Gallai and Edmonds is all.
    """
    edges, n = [(0, 1), (1, 2), (0, 2)], 3
    for _ in range(ears):
        inner = 2 * int(rng.integers(1, longest + 1))
        ends = rng.integers(0, n, 2)
        path = [int(ends[0]), *range(n, n + inner), int(ends[1])]
        edges += itertools.pairwise(path)
        n += inner
    return np.array(edges)


def flowers(depth: int, petals: int) -> Edges:
    """A cycle of `petals` vertices, an odd number, at each of which hangs such a flower by a stem.

    The stems have two edges.
    """
    edges: list[tuple[int, int]] = []
    count = itertools.count()

    def flower(levels: int) -> int:
        ring = [next(count) for _ in range(petals)]
        edges.extend(zip(ring, [*ring[1:], ring[0]]))
        if levels > 1:
            for vertex in ring:
                middle = next(count)
                edges.append((vertex, middle))
                edges.append((middle, flower(levels - 1)))
        return ring[0]

    flower(depth)
    return np.array(edges)


def with_parts(
    barrier: int, odd: int, even: int, rng: np.random.Generator
) -> tuple[Edges, np.ndarray]:
    """A graph whose decomposition is known, and the part of each vertex: 1 D, 2 A, 0 C.

    Each vertex of A has a neighbour in all `odd` components of D, of which there are more than
    vertices of A. C has a perfect matching.
    """
    edges, parts = [], [2] * barrier
    for _ in range(odd):
        own = factor_critical(int(rng.integers(0, 4)), rng) if rng.random() < 0.7 else None
        size = 1 if own is None else int(own.max()) + 1
        first = len(parts)
        if own is not None:
            edges.append(own + first)
        ends = rng.integers(first, first + size, barrier)
        edges.append(np.stack([np.arange(barrier), ends], axis=1))
        parts += [1] * size
    perfect = np.arange(len(parts), len(parts) + 2 * even)
    edges.append(perfect.reshape(-1, 2))
    if even:
        edges.append(rng.choice(perfect, (3 * even, 2)))
        if barrier:
            ends = rng.integers(0, barrier, even), rng.choice(perfect, even)
            edges.append(np.stack(ends, axis=1))
    parts += [0] * (2 * even)
    order = rng.permutation(len(parts))
    placed = np.empty(len(parts), np.int64)
    placed[order] = parts
    return order[np.concatenate(edges)], placed
