"""Two clouds of points each, to be matched by their distances."""

from __future__ import annotations

import numpy as np

__all__ = ["KINDS", "clouds"]

CLUSTERS = 20
SPACING, STEP = 8.7, 1.5  # units between cells, and how far a cell moves in each coordinate


def clouds(kind: str, n: int, dim: int, *, seed: int = 0) -> np.ndarray:
    """Return an array of shape (2, n, dim): the points of the rows, and those of the columns.

    Parameters
    ----------
    kind : {"uniform", "normal", "clustered", "shifted", "cells", "moons"}
        Both clouds uniform in a unit cube, or normal; or normal around 20 middles, which the clouds
        share in unlike parts; or uniform, the second one half as wide and one off; or cells in two
        sections: a uniform cloud, and the same after each point has moved, in another order; or
        points near two half circles, and others near an S, as in the demonstration of HiRef
        (Halmos, Gold, Liu, Raphael, ICML 2025), in the plane only.
    n : int
        The points in each cloud.
    dim : int
        Their coordinates.
    """
    rng = np.random.default_rng(seed)
    return KINDS[kind](rng, n, dim)


def _uniform(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    return rng.random((2, n, dim))


def _normal(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    return rng.normal(size=(2, n, dim))


def _clustered(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    middles = rng.random((CLUSTERS, dim))
    shares = rng.dirichlet(np.full(CLUSTERS, 4.0), 2)
    members = np.stack([rng.choice(CLUSTERS, n, p=share) for share in shares])
    return middles[members] + 0.02 * rng.normal(size=(2, n, dim))


def _shifted(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    both = rng.random((2, n, dim))
    both[1] = 0.5 * both[1] + 1
    return both


def _cells(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    first = SPACING * n ** (1 / dim) * rng.random((n, dim))
    second = first + STEP * rng.normal(size=(n, dim))
    return np.stack([first, second[rng.permutation(n)]])


def _moons(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    if dim != 2:
        raise ValueError(f"dim must be 2 for moons, and is {dim}")
    is_upper = rng.random(n) < 0.5
    along = np.pi * rng.random(n)
    rise = np.where(is_upper, 1, -1)
    moons = np.stack([np.cos(along) + 1 - is_upper, rise * np.sin(along) + 0.5 * ~is_upper], axis=1)
    turn = 3 * np.pi * (rng.random(n) - 0.5)
    letter = np.stack([np.sin(turn), np.sign(turn) * (np.cos(turn) - 1)], axis=1)
    return np.stack([moons, letter]) + 0.05 * rng.normal(size=(2, n, dim))


KINDS = {
    "uniform": _uniform,
    "normal": _normal,
    "clustered": _clustered,
    "shifted": _shifted,
    "cells": _cells,
    "moons": _moons,
}
