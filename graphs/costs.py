"""Seeded generators of costs for assignment: the papers' families, and hard ones.

A dense family takes the number of rows, and of columns if that differs, and returns a C-contiguous
int64 or float64 matrix. A sparse family returns a canonical `scipy.sparse.csr_array` with int32
indices: pairs that are not stored are forbidden, and a stored zero is a cost of 0. The same
parameters and seed give the same costs on every machine, logarithms up to their last digit. Costs
are to be minimised, except those of `geom`.

>>> from graphs import costs
>>> costs.make("machol_wien", 3).tolist()
[[1, 2, 3], [2, 4, 6], [3, 6, 9]]
>>> costs.make("spread", 1000).shape
(1000, 1000)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from graphs.csr import pattern
from graphs.kronecker import kron
from graphs.matrices import circuit_entries, kkt_entries, matrix_of
from graphs.triangulations import delaunay
from graphs.uniform_random import uniform

__all__ = [
    "FAMILIES",
    "SPARSE_FAMILIES",
    "circuit",
    "constant",
    "geom",
    "geom2",
    "goldberg_kennedy",
    "kkt",
    "linkage",
    "low_rank",
    "machol_wien",
    "make",
    "mesh",
    "nearest",
    "points",
    "power_law",
    "sparse_uniform",
    "spread",
    "two_cost",
    "uniform_float",
    "uniform_integer",
    "weighted",
]


def uniform_integer(
    nrows: int, ncols: int | None = None, factor: float = 1.0, *, seed: int = 0
) -> np.ndarray:
    """Return integers drawn uniformly from [0, factor · nrows].

    Few distinct costs (factor 0.1) make many optimal assignments; many (10) make long searches.

    Parameters
    ----------
    nrows, ncols : int
        The shape; square unless `ncols` is given.
    factor : float
        The range, in units of the rows; 0.1, 1 and 10 in the paper.

    References
    ----------
    Date, Nagi, "GPU-accelerated Hungarian algorithms for the linear assignment problem",
    Parallel Computing 57, 2016, section 5.
    """
    rng = np.random.default_rng(seed)
    return rng.integers(0, int(factor * nrows), _shape(nrows, ncols), endpoint=True)


def uniform_float(nrows: int, ncols: int | None = None, *, seed: int = 0) -> np.ndarray:
    """Return numbers drawn uniformly from [0, 1)."""
    return np.random.default_rng(seed).random(_shape(nrows, ncols))


def geom(n: int, side: float = 1000.0, *, seed: int = 0) -> np.ndarray:
    """Return the Euclidean distances among random points of a square, to be maximised.

    Parameters
    ----------
    n : int
        Points: agents and jobs alike.
    side : float
        Side of the square.

    References
    ----------
    Roverso, Naiem, El-Beltagy, El-Ansary, Haridi, "A GPU-enabled solver for time-constrained linear
    sum assignment problems", 2010, section IV; after Bus, Tvrdík, 2009.
    """
    points = side * np.random.default_rng(seed).random((n, 2))
    return _distances(points, points)


def geom2(
    nrows: int, ncols: int | None = None, side: float = 1000.0, *, seed: int = 0
) -> np.ndarray:
    """Return the Euclidean distances between two sets of random points of a square.

    Parameters
    ----------
    nrows, ncols : int
        The points in each set.
    side : float
        Side of the square.
    """
    rng = np.random.default_rng(seed)
    nrows, ncols = _shape(nrows, ncols)
    return _distances(side * rng.random((nrows, 2)), side * rng.random((ncols, 2)))


def points(nrows: int, ncols: int | None = None, dim: int = 2, *, seed: int = 0) -> np.ndarray:
    """Return the squared distances between two sets of random points of a unit cube.

    Parameters
    ----------
    nrows, ncols : int
        The points in each set.
    dim : int
        The dimension of the cube: the more, the less do distances differ.
    """
    rng = np.random.default_rng(seed)
    nrows, ncols = _shape(nrows, ncols)
    ours, others = rng.random((nrows, dim)), rng.random((ncols, dim))
    squared = np.zeros((nrows, ncols))
    for axis in range(dim):
        squared += np.square(np.subtract.outer(ours[:, axis], others[:, axis]))
    return squared


def low_rank(nrows: int, ncols: int | None = None, rank: int = 3, *, seed: int = 0) -> np.ndarray:
    """Return a product of two random matrices: rows that want the same columns.

    Parameters
    ----------
    nrows, ncols : int
        The shape.
    rank : int
        Its rank.
    """
    rng = np.random.default_rng(seed)
    nrows, ncols = _shape(nrows, ncols)
    factors = rng.random((nrows, rank)), rng.random((rank, ncols))
    return np.einsum("ik,kj->ij", *factors)  # not by BLAS, which rounds as the machine does


def machol_wien(nrows: int, ncols: int | None = None) -> np.ndarray:
    """Return i · j, counted from 1: every row prefers the columns in the same order.

    Each augmenting path passes through all rows matched before.

    References
    ----------
    Machol, Wien, "A hard assignment problem", Operations Research 24(1), 1976.
    """
    nrows, ncols = _shape(nrows, ncols)
    return np.multiply.outer(np.arange(1, nrows + 1), np.arange(1, ncols + 1))


def two_cost(nrows: int, ncols: int | None = None, p: float = 0.5, *, seed: int = 0) -> np.ndarray:
    """Return 1 with probability p, else 2: a matching problem in disguise, all ties.

    Parameters
    ----------
    nrows, ncols : int
        The shape.
    p : float
        Share of cheap pairs.
    """
    is_cheap = np.random.default_rng(seed).random(_shape(nrows, ncols)) < p
    return np.where(is_cheap, 1, 2)


def constant(nrows: int, ncols: int | None = None, cost: int = 7) -> np.ndarray:
    """Return the same cost everywhere."""
    return np.full(_shape(nrows, ncols), cost, np.int64)


# -- sparse ----------------------------------------------------------------------------------------


def spread(n: int, degree: int = 4, decades: float = 20.0, *, seed: int = 0) -> csr_array:
    """Return minus the logarithms of random values over many orders of magnitude.

    Each row has `degree` random columns and one of a hidden permutation. The best assignment is the
    transversal of greatest product.

    Parameters
    ----------
    n : int
        Rows, and columns.
    degree : int
        Random columns a row.
    decades : float
        Orders of magnitude from the least value to the greatest, which is 1.
    """
    rng = np.random.default_rng(seed)
    own = np.arange(n)
    rows = np.concatenate([np.repeat(own, degree), own])
    cols = np.concatenate([rng.integers(0, n, n * degree), rng.permutation(n)])
    return _with_costs(pattern(rows, cols, (n, n)), lambda k: decades * np.log(10) * rng.random(k))


def mesh(k: int, high: int = 1000, *, seed: int = 0) -> csr_array:
    """Return random integer costs on a Delaunay triangulation with its diagonal.

    Parameters
    ----------
    k : int
        Logarithm of the number of rows.
    high : int
        The greatest cost; the least is 1.
    """
    return weighted(delaunay(k, seed=seed), high, seed=seed)


def power_law(k: int, edge_factor: int = 8, high: int = 1000, *, seed: int = 0) -> csr_array:
    """Return random integer costs on a Kronecker graph with its diagonal.

    Parameters
    ----------
    k : int
        Logarithm of the number of rows.
    edge_factor : int
        Edges drawn a vertex.
    high : int
        The greatest cost; the least is 1.
    """
    return weighted(kron(k, edge_factor, seed=seed), high, seed=seed)


def sparse_uniform(
    nrows: int, ncols: int | None = None, degree: float = 8.0, high: int = 1000, *, seed: int = 0
) -> csr_array:
    """Return random integer costs at random places; there may be no full assignment.

    Parameters
    ----------
    nrows, ncols : int
        The shape; square unless `ncols` is given.
    degree : float
        Entries a row, on average.
    high : int
        The greatest cost; the least is 1.
    """
    graph = uniform(nrows, degree, ncols, seed=seed)
    return weighted(graph, high, diagonal=False, seed=seed)


def weighted(
    graph: csr_array, high: int = 1000, *, diagonal: bool = True, seed: int = 0
) -> csr_array:
    """Return random integer costs from 1 to `high` on the entries of a graph.

    Parameters
    ----------
    graph : csr_array
        Where costs are.
    high : int
        The greatest cost.
    diagonal : bool
        Whether each row also has the column of its own number, so that all can be matched.
    """
    rng = np.random.default_rng(seed)
    if diagonal:
        entries, own = graph.tocoo(), np.arange(min(graph.shape))
        rows, cols = np.concatenate([entries.row, own]), np.concatenate([entries.col, own])
        graph = pattern(rows, cols, graph.shape)
    return _with_costs(graph, lambda k: rng.integers(1, high, k, endpoint=True))


def nearest(
    n: int, m: int | None = None, k: int = 16, dimension: int = 2, *, seed: int = 0
) -> csr_array:
    """Return squared distances of two sets of random points, from each to its nearest.

    The points are uniform in the unit cube. A pair is stored if one of the two is among the `k`
    points that are nearest to the other. There may be no full assignment.

    Parameters
    ----------
    n, m : int
        Points in each set.
    k : int
        Neighbours of each point.
    dimension : int
        Of the space.
    """
    rng = np.random.default_rng(seed)
    n, m = _shape(n, m)
    points, others = rng.random((n, dimension)), rng.random((m, dimension))
    _, of_points = cKDTree(others).query(points, k, workers=-1)
    _, of_others = cKDTree(points).query(others, k, workers=-1)
    rows = np.concatenate([np.repeat(np.arange(n), k), np.ravel(of_others)])
    cols = np.concatenate([np.ravel(of_points), np.repeat(np.arange(m), k)])
    graph = pattern(rows, cols, (n, m))
    entries = graph.tocoo()
    apart = points[entries.row] - others[entries.col]
    return _with_costs(graph, lambda _: np.square(apart).sum(axis=1))


def circuit(n: int, sources: float = 0.05, decades: float = 20.0, *, seed: int = 0) -> csr_array:
    """Return minus the logarithms of a circuit's modified nodal analysis, scaled by columns.

    Nodes lie along a line, and are joined to near ones and, rarely, far ones by conductances of
    many orders of magnitude. A diagonal entry is the sum of its row's. A voltage source adds a row
    and a column with entries of 1 and no diagonal, so an assignment must leave the diagonal.

    Parameters
    ----------
    n : int
        Nodes and sources together.
    sources : float
        Share of sources.
    decades : float
        Orders of magnitude of the conductances.
    """
    return _log_costs(*circuit_entries(n, sources, decades, seed), n)


def kkt(n: int, constraints: float = 0.4, decades: float = 20.0, *, seed: int = 0) -> csr_array:
    """Return minus the logarithms of an interior point method's matrix, scaled by columns.

    It is [[H, Aᵀ], [A, 0]]. H is diagonal with values over many orders of magnitude, as barrier
    terms have, and each row of A has five entries near one place. So each constraint must take a
    variable off H's diagonal.

    Parameters
    ----------
    n : int
        Variables and constraints together.
    constraints : float
        Share of constraints; below one half.
    decades : float
        Orders of magnitude of H.
    """
    return _log_costs(*kkt_entries(n, constraints, decades, seed), n)


def linkage(blocks: int, most: int = 50, *, seed: int = 0) -> csr_array:
    """Return minus the scores of a record linkage: complete blocks of 1 to `most` records a side.

    Parameters
    ----------
    blocks : int
        Blocks, whose records are compared with one another only.
    most : int
        Records a side and block.
    """
    rng = np.random.default_rng(seed)
    heights, widths = rng.integers(1, most, (2, blocks), endpoint=True)
    sizes = heights * widths
    block = np.repeat(np.arange(blocks), sizes)
    place = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = (np.cumsum(heights) - heights)[block] + place // widths[block]
    cols = (np.cumsum(widths) - widths)[block] + place % widths[block]
    graph = pattern(rows, cols, (int(heights.sum()), int(widths.sum())))
    return _with_costs(graph, lambda k: -rng.beta(0.5, 0.5, k))


def goldberg_kennedy(
    n: int, degree: int = 16, kind: str = "high_cost", *, seed: int = 0
) -> csr_array:
    """Return a sparse instance of the kinds of Goldberg and Kennedy's generators.

    Each row has `degree` random columns, and the one of its own number, so that all can be matched.

    Parameters
    ----------
    n : int
        Rows, and columns.
    degree : int
        Random columns a row.
    kind : {"high_cost", "low_cost", "two_cost", "fixed_cost", "geometric"}
        Costs uniform up to 10**8, or up to 100; 100 or 10**8 with equal chances; 100 · i · j, which
        is machol_wien's; or distances of two sets of points in a square of side 10**6.

    References
    ----------
    Goldberg, Kennedy, "An efficient cost scaling algorithm for the assignment problem",
    Mathematical Programming 71, 1995, section 6.
    """
    rng = np.random.default_rng(seed)
    own = np.arange(n)
    rows = np.concatenate([np.repeat(own, degree), own])
    graph = pattern(rows, np.concatenate([rng.integers(0, n, n * degree), own]), (n, n))
    entries = graph.tocoo()
    i, j = entries.row.astype(np.int64), entries.col.astype(np.int64)
    if kind == "fixed_cost":
        return _with_costs(graph, lambda _: 100 * (i + 1) * (j + 1))
    if kind == "geometric":
        points, others = 1e6 * rng.random((2, n, 2))
        apart = points[i] - others[j]
        return _with_costs(graph, lambda _: np.sqrt(np.square(apart).sum(axis=1)).astype(np.int64))
    draws: dict[str, Callable[[int], np.ndarray]] = {
        "high_cost": lambda k: rng.integers(0, 10**8, k, endpoint=True),
        "low_cost": lambda k: rng.integers(0, 100, k, endpoint=True),
        "two_cost": lambda k: np.where(rng.random(k) < 0.5, 100, 10**8),
    }
    return _with_costs(graph, draws[kind])


def _with_costs(graph: csr_array, draw: Callable[[int], np.ndarray]) -> csr_array:
    """The graph with the costs that are drawn for so many entries."""
    return csr_array((draw(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)


def _log_costs(
    rows: list[np.ndarray], cols: list[np.ndarray], values: list[np.ndarray], n: int
) -> csr_array:
    """log(greatest of its column / value) of the entries of a square matrix, repeated ones added.

    That is what MC64 minimises for the transversal of greatest product.
    """
    matrix = matrix_of(rows, cols, values, n)
    logs = np.log(matrix.data)
    greatest = np.full(n, -np.inf)
    np.maximum.at(greatest, matrix.indices, logs)
    costs = greatest[matrix.indices] - logs
    return csr_array((costs, matrix.indices, matrix.indptr), shape=(n, n))


FAMILIES: dict[str, Callable[..., np.ndarray]] = {
    "uniform_integer": uniform_integer,
    "uniform_float": uniform_float,
    "geom": geom,
    "geom2": geom2,
    "low_rank": low_rank,
    "points": points,
    "machol_wien": machol_wien,
    "two_cost": two_cost,
    "constant": constant,
}
SPARSE_FAMILIES: dict[str, Callable[..., csr_array]] = {
    "spread": spread,
    "mesh": mesh,
    "power_law": power_law,
    "sparse_uniform": sparse_uniform,
    "nearest": nearest,
    "circuit": circuit,
    "kkt": kkt,
    "linkage": linkage,
    "goldberg_kennedy": goldberg_kennedy,
}


def make(name: str, *args: Any, seed: int = 0, **kwargs: Any) -> Any:
    """Return costs of the named family.

    Parameters
    ----------
    name : str
        A key of `FAMILIES` or `SPARSE_FAMILIES`.
    *args, **kwargs
        The family's parameters.
    seed : int
        The seed, for families that are random.
    """
    families: dict[str, Callable[..., Any]] = {**FAMILIES, **SPARSE_FAMILIES}
    if name not in families:
        raise ValueError(f"unknown family {name!r}; known: {', '.join(families)}")
    family = families[name]
    if "seed" in inspect.signature(family).parameters:
        kwargs["seed"] = seed
    return family(*args, **kwargs)


def _shape(nrows: int, ncols: int | None) -> tuple[int, int]:
    return nrows, nrows if ncols is None else ncols


def _distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The Euclidean distance of each point to each of the others."""
    x, y = (np.subtract.outer(points[:, axis], others[:, axis]) for axis in (0, 1))
    return np.sqrt(x * x + y * y)
