"""Small graphs with weights, and what half-approximation promises of matchings and duals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from gpumatch.running.control import Control

WEIGHTS = {
    "ties": lambda rng, m: rng.integers(-1, 4, m),
    "equal": lambda rng, m: np.ones(m, np.int64),
    "integers": lambda rng, m: rng.integers(1, 1000, m),
    "wide": lambda rng, m: rng.integers(1, 2**60, m) >> rng.integers(0, 60, m),
    "floats": lambda rng, m: rng.normal(1, 1, m),
    "tiny": lambda rng, m: rng.integers(0, 9, m) * 2.0**-1073,
    "decades": lambda rng, m: 10.0 ** rng.uniform(-30, 30, m),
}


def random_graph(rng, most=40, kind="ties"):
    """A symmetric graph in CSR, int64 and int32, without loops; some have hubs or lone vertices."""
    n = int(rng.integers(1, most))
    pairs = rng.integers(0, n, (int(rng.integers(0, 4 * n)), 2))
    if rng.random() < 0.3:
        pairs[:, 0] //= 1 + n // 3
    low, high = pairs.min(1), pairs.max(1)
    code = np.unique((low * n + high)[low < high])
    return with_both_entries(n, code // n, code % n, WEIGHTS[kind](rng, len(code)))


def path(weights):
    """A path whose edges have these weights, in order."""
    ends = np.arange(len(weights))
    return with_both_entries(len(weights) + 1, ends, ends + 1, np.asarray(weights))


def with_both_entries(n, low, high, weights):
    rows, cols = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((cols, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    weights = np.concatenate([weights, weights])[order]
    return indptr.astype(np.int64), cols[order].astype(np.int32), weights


def owners(indptr):
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def greedy(indptr, indices, weights):
    """The matching by its definition: all edges in their order, each one that still fits."""
    degree = np.diff(indptr).tolist()

    def scrambled(u, v):
        number = (u * 0x9E3779B97F4A7C15 + v * 0xC2B2AE3D27D4EB4F) % 2**64
        number = (number ^ number >> 32) * 0xD6E8FEB86659FD93 % 2**64
        return number ^ number >> 32

    mate = np.full(len(degree), -1)
    edges = zip(owners(indptr).tolist(), indices.tolist(), weights.tolist())
    order = (
        (-w, degree[u] + degree[v], -scrambled(u, v), u, v) for u, v, w in edges if u < v and w > 0
    )
    for *_, u, v in sorted(order):
        if mate[u] < 0 and mate[v] < 0:
            mate[u], mate[v] = v, u
    return mate


def check_matching(graph, mate, entry):
    indptr, indices, weights = graph
    matched = np.flatnonzero(mate >= 0)
    assert (mate[mate[matched]] == matched).all()
    assert (entry[mate < 0] == -1).all()
    ends = owners(indptr)[entry[matched]], indices[entry[matched]]
    assert (np.sort(ends, 0) == np.sort([matched, mate[matched]], 0)).all()
    assert (weights[entry[matched]] > 0).all()


def weight_of(graph, entry):
    """Exactly: each edge has two vertices with an entry."""
    return sum(map(Fraction, graph[2][entry[entry >= 0]].tolist())) / 2


def check_duals(graph, dual):
    """They cover each edge as exact numbers. Returns their sum."""
    indptr, indices, weights = graph
    exact = [*map(Fraction, dual.tolist())]
    assert min(exact, default=0) >= 0
    for u, v, w in zip(owners(indptr).tolist(), indices.tolist(), weights.tolist()):
        assert exact[u] + exact[v] >= w
    return sum(exact)


def check_solution(graph, found, bound):
    """At least half the greatest weight, which the duals prove."""
    assert found.finished
    check_matching(graph, found.mate, found.entry)
    weight, proven = weight_of(graph, found.entry), check_duals(graph, found.dual)
    assert proven <= 2 * weight * (1 + Fraction(1, 2**40)) + len(found.mate) * Fraction(1, 2**1067)
    if bound == "half":
        assert (found.mate == greedy(*graph)).all()


class Ending(Control):
    """Ends a run at a tick."""

    def __init__(self, tick):
        super().__init__()
        self.left = tick

    def tick(self, matched):
        self.left -= 1
        return self.left < 0
