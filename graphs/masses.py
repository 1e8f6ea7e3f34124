"""Transport problems: costs of pairs, the supply of each row and the demand of each column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array

__all__ = ["KINDS", "Problem", "masses"]

PIXELS = 10**6  # units of the brightest pixel of an image


class Problem(NamedTuple):
    """Costs to be minimised, and masses with equal totals.

    `costs` is an array of shape (n, m), or a CSR array, whose entries are the pairs allowed.
    """

    costs: Any
    supply: np.ndarray
    demand: np.ndarray


def masses(kind: str, *sizes: int, seed: int = 0) -> Problem:
    """A transport problem, drawn by a seed.

    Parameters
    ----------
    kind, sizes
        - ``"plane", n``: n points on each side in a unit square, with masses 1 to 5, at squared
          distances.
        - ``"few", n, m``: n rows of one unit, m columns of alike demand, random costs.
        - ``"noise"``, ``"smooth"`` or ``"shapes"``, ``side``: from one image to another of
          side x side pixels, of masses up to 10^6, at squared distances: white noise, a smooth
          random field, or discs on black, as in DOTmark (Schrieber, Schuhmacher, Gottschlich, IEEE
          Access 2017). Black pixels are no vertices.
        - ``"network", n, degree, most``: n rows and n columns, `degree` random pairs of each row,
          integer costs below 10^4; flows on some of these pairs, up to `most`, make the masses.
    seed : int
    """
    return KINDS[kind](np.random.default_rng(seed), *sizes)


def _plane(rng: np.random.Generator, n: int) -> Problem:
    rows, cols = rng.random((2, n, 2))
    supply, demand = rng.integers(1, 6, (2, n))
    _level(supply, demand)
    return Problem(_squared(rows, cols), supply, demand)


def _few(rng: np.random.Generator, n: int, m: int) -> Problem:
    demand = np.full(m, n // m)
    demand[: n % m] += 1
    return Problem(rng.random((n, m)), np.ones(n, np.int64), demand)


def _noise(rng: np.random.Generator, side: int) -> Problem:
    return _between(*rng.random((2, side, side)))


def _smooth(rng: np.random.Generator, side: int) -> Problem:
    """Fields whose waves fall off with the third power of their frequency."""
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)) * side
    waves = np.fft.fft2(rng.normal(size=(2, side, side))) / np.maximum(frequency, 1) ** 3
    fields = np.fft.ifft2(waves).real
    return _between(*(np.exp(field / field.std()) for field in fields))


def _shapes(rng: np.random.Generator, side: int) -> Problem:
    """Three discs in each image, some brighter than others."""
    y, x = np.mgrid[:side, :side] / side
    images = np.zeros((2, side, side))
    for image in images:
        for cy, cx, radius, light in rng.random((3, 4)):
            image[np.hypot(y - cy, x - cx) < 0.1 + 0.2 * radius] += 0.2 + light
    return _between(*images)


def _network(rng: np.random.Generator, n: int, degree: int, most: int) -> Problem:
    rows, cols = np.repeat(np.arange(n), degree), rng.integers(0, n, n * degree)
    costs = rng.integers(1, 10**4, n * degree)
    matrix = coo_array((costs, (rows, cols)), shape=(n, n)).tocsr()  # sums those drawn twice
    pairs = matrix.tocoo()
    flow = rng.integers(0, most + 1, pairs.nnz) * (rng.random(pairs.nnz) < 0.5)
    supply, demand = (np.zeros(n, np.int64) for _ in range(2))
    np.add.at(supply, pairs.row, flow)
    np.add.at(demand, pairs.col, flow)
    return Problem(matrix, supply, demand)


KINDS: dict[str, Callable[..., Problem]] = {
    "plane": _plane,
    "few": _few,
    "noise": _noise,
    "smooth": _smooth,
    "shapes": _shapes,
    "network": _network,
}


def _between(first: np.ndarray, second: np.ndarray) -> Problem:
    """From the pixels of one image to those of another, at squared distances of the grid."""
    sides = []
    for image in (first, second):
        units = np.rint(PIXELS * image / image.max()).astype(np.int64)
        sides.append((np.argwhere(units > 0), units[units > 0]))
    (rows, supply), (cols, demand) = sides
    _level(supply, demand)
    return Problem(_squared(rows, cols), supply, demand)


def _level(supply: np.ndarray, demand: np.ndarray) -> None:
    """Raise the masses of the side with the smaller total until both totals are equal."""
    lack = int(supply.sum() - demand.sum())
    side = demand if lack > 0 else supply
    each, rest = divmod(abs(lack), side.size)
    side += each
    side[:rest] += 1


def _squared(rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    return np.square(rows[:, None] - cols).sum(axis=2)
