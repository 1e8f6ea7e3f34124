"""Seeded generators of costs and patterns that hurt: what a tuned default is likely to lose on.

Each family was found by looking for inputs on which some way of solving them, ours or another's,
reads far more than the best other way. Where a permutation is hidden, a full assignment exists.
The conventions are those of `graphs.costs`.

>>> from graphs import adversarial
>>> adversarial.make("far_clusters", 100, seed=1).shape
(100, 100)
>>> adversarial.make("line", 3).shape
(3, 3)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from graphs.csr import pattern

__all__ = [
    "DENSE",
    "PATTERNS",
    "SPARSE",
    "anti_triangular",
    "clusters",
    "decades",
    "far_clusters",
    "few_dear",
    "few_zeros",
    "line",
    "log_normal",
    "make",
    "nearest_matched",
    "outer",
    "wide_integers",
]


# -- sparse costs ----------------------------------------------------------------------------------


def nearest_matched(n: int, k: int = 24, dimension: int = 2, *, seed: int = 0) -> csr_array:
    """Return distances between random points, each with its nearest, and a hidden permutation.

    Nearly all rows agree with their nearest columns at once, and the others are far from any
    unmatched column: thousands of long augmenting paths.

    Parameters
    ----------
    n : int
        Points in each of the two sets.
    k : int
        Neighbours of each point.
    dimension : int
        Of the unit cube that the points are uniform in.
    """
    rng = np.random.default_rng(seed)
    points, others = rng.random((n, dimension)), rng.random((n, dimension))
    return _distances_to_nearest(points, others, k, rng)


def far_clusters(
    n: int, k: int = 8, share: float = 0.55, distance: float = 1000.0, *, seed: int = 0
) -> csr_array:
    """Return distances between points of two clusters that are far apart, of unequal sizes.

    One cluster has `share` of the rows, and the other has `share` of the columns, so that many rows
    must take a far column. Each point has its nearest, and there is a hidden permutation.

    Parameters
    ----------
    n : int
        Points in each of the two sets.
    k : int
        Neighbours of each point.
    share : float
        Of the rows that are in the first cluster, and of the columns in the second.
    distance : float
        Between the clusters, whose points are uniform in a unit square.
    """
    rng = np.random.default_rng(seed)
    points, others = rng.random((n, 2)), rng.random((n, 2))
    points[int(share * n) :, 0] += distance
    others[: int(share * n), 0] += distance
    return _distances_to_nearest(points, others, k, rng)


def log_normal(n: int, degree: int = 8, sigma: float = 8.0, *, seed: int = 0) -> csr_array:
    """Return exp(sigma · normal): the range of costs says nothing of the differences that matter.

    Parameters
    ----------
    n : int
        Rows, and columns.
    degree : int
        Random columns a row, besides a hidden permutation.
    sigma : float
        The standard deviation of the logarithm.
    """
    return _drawn(n, degree, seed, lambda rng, k: np.exp(sigma * rng.normal(size=k)))


def decades(n: int, degree: int = 8, exponent: float = 9.0, *, seed: int = 0) -> csr_array:
    """Return 10 to random powers from -exponent to exponent.

    Parameters
    ----------
    n : int
        Rows, and columns.
    degree : int
        Random columns a row, besides a hidden permutation.
    exponent : float
        The greatest power of 10.
    """
    return _drawn(n, degree, seed, lambda rng, k: 10 ** rng.uniform(-exponent, exponent, k))


def few_dear(
    n: int, degree: int = 8, share: float = 0.01, dear: float = 1e12, *, seed: int = 0
) -> csr_array:
    """Return uniform costs, and a few that are greater by orders of magnitude.

    Parameters
    ----------
    n : int
        Rows, and columns.
    degree : int
        Random columns a row, besides a hidden permutation.
    share : float
        Of the entries that cost `dear`; all others cost less than 1.
    dear : float
        What these cost.
    """

    def draw(rng: np.random.Generator, k: int) -> np.ndarray:
        return np.where(rng.random(k) < share, dear, rng.random(k))

    return _drawn(n, degree, seed, draw)


def wide_integers(n: int, degree: int = 8, high: int = 10**13, *, seed: int = 0) -> csr_array:
    """Return integers of a wide range, as nanoseconds or millionths of money have.

    Parameters
    ----------
    n : int
        Rows, and columns.
    degree : int
        Random columns a row, besides a hidden permutation.
    high : int
        The greatest cost.
    """
    return _drawn(n, degree, seed, lambda rng, k: rng.integers(0, high, k, endpoint=True))


# -- dense costs -----------------------------------------------------------------------------------


def few_zeros(nrows: int, ncols: int | None = None, share: float = 1e-3, *, seed: int = 0) -> Any:
    """Return floats that are 1 nearly everywhere, and 0 in a small share of the pairs.

    Parameters
    ----------
    nrows, ncols : int
        The shape; square unless `ncols` is given.
    share : float
        Of the pairs that cost 0.
    """
    rng = np.random.default_rng(seed)
    return (rng.random((nrows, nrows if ncols is None else ncols)) >= share).astype(np.float64)


def line(nrows: int, ncols: int | None = None, width: float = 0.0, *, seed: int = 0) -> np.ndarray:
    """Return distances between points of a line: most optimal assignments tie.

    Parameters
    ----------
    nrows, ncols : int
        The shape; square unless `ncols` is given.
    width : float
        0 for uniform points; else rows are normal, and columns normal and so many times as wide.
    """
    rng = np.random.default_rng(seed)
    ncols = nrows if ncols is None else ncols
    if width:
        x, y = rng.normal(size=nrows), width * rng.normal(size=ncols)
    else:
        x, y = rng.random(nrows), rng.random(ncols)
    return abs(np.subtract.outer(x, y))


def clusters(nrows: int, ncols: int | None = None, share: float = 0.6, *, seed: int = 0) -> Any:
    """Return distances between points of two clusters of unequal sizes in the plane.

    Parameters
    ----------
    nrows, ncols : int
        The shape; square unless `ncols` is given.
    share : float
        Of the rows that are in the first cluster, and of the columns in the second.
    """
    rng = np.random.default_rng(seed)
    ncols = nrows if ncols is None else ncols
    points, others = rng.normal(size=(nrows, 2)), rng.normal(size=(ncols, 2))
    points[int(share * nrows) :, 0] += 100
    others[: int(share * ncols), 0] += 100
    x, y = (np.subtract.outer(points[:, axis], others[:, axis]) for axis in (0, 1))
    return np.sqrt(x * x + y * y)


def outer(nrows: int, ncols: int | None = None, *, seed: int = 0) -> np.ndarray:
    """Return the outer product of random numbers: all rows want the same columns.

    Parameters
    ----------
    nrows, ncols : int
        The shape; square unless `ncols` is given.
    """
    rng = np.random.default_rng(seed)
    return np.outer(rng.random(nrows), rng.random(nrows if ncols is None else ncols))


# -- patterns --------------------------------------------------------------------------------------


def anti_triangular(n: int) -> csr_array:
    """Return the pattern with an entry at (i, j) where i + j >= n - 1: one perfect matching.

    A greedy start takes the wrong column for nearly every row.

    Parameters
    ----------
    n : int
        Rows, and columns.
    """
    degree = np.arange(1, n + 1)
    rows = np.repeat(np.arange(n), degree)
    cols = np.concatenate([np.arange(n - k, n) for k in degree]) if n else np.zeros(0, int)
    return pattern(rows, cols, (n, n))


# -- by name ---------------------------------------------------------------------------------------

SPARSE: dict[str, Callable[..., csr_array]] = {
    "nearest_matched": nearest_matched,
    "far_clusters": far_clusters,
    "log_normal": log_normal,
    "decades": decades,
    "few_dear": few_dear,
    "wide_integers": wide_integers,
}
DENSE: dict[str, Callable[..., np.ndarray]] = {
    "few_zeros": few_zeros,
    "line": line,
    "clusters": clusters,
    "outer": outer,
}
PATTERNS: dict[str, Callable[..., csr_array]] = {"anti_triangular": anti_triangular}


def make(name: str, *args: Any, seed: int = 0, **kwargs: Any) -> Any:
    """Return costs, or a pattern, of the named family.

    Parameters
    ----------
    name : str
        A key of `SPARSE`, `DENSE` or `PATTERNS`.
    *args, **kwargs
        The family's parameters.
    seed : int
        The seed, for families that are random.
    """
    families: dict[str, Callable[..., Any]] = {**SPARSE, **DENSE, **PATTERNS}
    if name not in families:
        raise ValueError(f"unknown family {name!r}; known: {', '.join(families)}")
    family = families[name]
    if "seed" in inspect.signature(family).parameters:
        kwargs["seed"] = seed
    return family(*args, **kwargs)


def _distances_to_nearest(
    points: np.ndarray, others: np.ndarray, k: int, rng: np.random.Generator
) -> csr_array:
    """Distances of the pairs of which one is among the `k` nearest of the other, and of some more.

    These are the pairs of a random permutation.
    """
    n = len(points)
    k = min(k, n)
    if n == 0:
        return csr_array((0, 0))
    of_points = cKDTree(others).query(points, range(1, k + 1))[1]
    of_others = cKDTree(points).query(others, range(1, k + 1))[1]
    own = np.arange(n)
    rows = np.concatenate([np.repeat(own, k), of_others.ravel(), own])
    cols = np.concatenate([of_points.ravel(), np.repeat(own, k), rng.permutation(n)])
    graph = pattern(rows, cols, (n, n))
    owners = np.repeat(own, np.diff(graph.indptr))
    apart = points[owners] - others[graph.indices]
    costs = np.sqrt(np.square(apart).sum(axis=1))
    return csr_array((costs, graph.indices, graph.indptr), shape=(n, n))


def _drawn(
    n: int, degree: int, seed: int, draw: Callable[[np.random.Generator, int], np.ndarray]
) -> csr_array:
    """Costs at random places and at those of a hidden permutation."""
    rng, own = np.random.default_rng(seed), np.arange(n)
    rows = np.concatenate([np.repeat(own, degree), own])
    cols = np.concatenate([rng.integers(0, max(n, 1), n * degree), rng.permutation(n)])
    graph = pattern(rows, cols, (n, n))
    return csr_array((draw(rng, graph.nnz), graph.indices, graph.indptr), shape=(n, n))
