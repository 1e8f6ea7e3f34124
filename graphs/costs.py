"""Seeded generators of dense cost matrices for assignment: the papers' families, and hard ones.

Each takes the number of rows, and of columns if that differs, and returns a C-contiguous int64 or
float64 matrix. The same parameters and seed give the same costs on every machine. Costs are to be
minimised, except those of `geom`.

>>> from graphs import costs
>>> costs.make("machol_wien", 3).tolist()
[[1, 2, 3], [2, 4, 6], [3, 6, 9]]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = [
    "FAMILIES",
    "constant",
    "geom",
    "geom2",
    "low_rank",
    "machol_wien",
    "make",
    "two_cost",
    "uniform_float",
    "uniform_integer",
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


FAMILIES: dict[str, Callable[..., np.ndarray]] = {
    "uniform_integer": uniform_integer,
    "uniform_float": uniform_float,
    "geom": geom,
    "geom2": geom2,
    "low_rank": low_rank,
    "machol_wien": machol_wien,
    "two_cost": two_cost,
    "constant": constant,
}


def make(name: str, *args: Any, seed: int = 0, **kwargs: Any) -> np.ndarray:
    """Return costs of the named family.

    Parameters
    ----------
    name : str
        A key of `FAMILIES`.
    *args, **kwargs
        The family's parameters.
    seed : int
        The seed, for families that are random.
    """
    if name not in FAMILIES:
        raise ValueError(f"unknown family {name!r}; known: {', '.join(FAMILIES)}")
    family = FAMILIES[name]
    if "seed" in inspect.signature(family).parameters:
        kwargs["seed"] = seed
    return family(*args, **kwargs)


def _shape(nrows: int, ncols: int | None) -> tuple[int, int]:
    return nrows, nrows if ncols is None else ncols


def _distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The Euclidean distance of each point to each of the others."""
    x, y = (np.subtract.outer(points[:, axis], others[:, axis]) for axis in (0, 1))
    return np.sqrt(x * x + y * y)
