"""Clouds of points and wishes for tests of what solves them, on the host and on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.costs import PointCosts
from gpumatch.numeric.fair_duals import differences_below

METRICS = ["sqeuclidean", "euclidean", "cityblock", "chebyshev", "cosine"]
WISHES: list[dict[str, Any]] = [
    {},
    {"maximize": True},
    {"cost_limit": 0.3},
    {"cost_limit": 0.9, "maximize": True},
    {"cardinality": "any", "maximize": True},
    {"cardinality": "maximum", "cost_limit": 0.05},
    {"cost_limit": "each"},
]
"""Arguments of `assign`; limits are quantiles of the costs (`in_quantiles`)."""
SMALL: dict[str, Any] = {
    "stored": -1,
    "nearest": 2,
    "nearest_of_many": 3,
    "priced": 2,
    "added": 2,
    "given": 2,
    "ahead": 2,
    "share": 2.0,
    "least_sampled": 16,
    "few": 4,
}
"""A tuning of the engine for points by which some 40 points take all of its steps."""
SCALES = {"tiny": 1e-140, "huge": 1e140}
"""Units of clouds whose squares are next to underflow or overflow."""
FINE = {"small": 1e-25, "least roots": 2.0**-450}
"""The magnitudes of clouds that are fine."""


def two_clouds(kind, shape, d, seed=1):
    """Points of rows and of columns, around 0.25 units."""
    rng, unit = np.random.default_rng(seed), SCALES.get(kind, 1.0)
    X, Y = (rng.normal(size=(count, d)) for count in shape)
    if kind == "shifted":
        Y = 0.5 * Y + 3
    elif kind == "lattice":
        X, Y = np.rint(1.5 * X), np.rint(1.5 * Y)
    elif kind == "copies":
        X, Y = X[rng.integers(0, 5, shape[0])], Y[rng.integers(0, 5, shape[1])]
    elif kind == "line":
        X, Y = (side[:, :1] * np.arange(1, d + 1) for side in (X, Y))
    elif kind == "far":
        X[:3] += 1e6
    elif kind == "equal":
        X[:] = 1
    return unit * (X + 0.25), unit * (Y + 0.25)


def in_quantiles(wish, values):
    """The wish with its limit as a quantile of the costs."""
    wish, limit = dict(wish), wish.get("cost_limit")
    if limit == "each":
        wish["cost_limit"] = np.quantile(values, np.linspace(0, 0.4, len(values)))
    elif limit is not None:
        wish["cost_limit"] = float(np.quantile(values, limit))
    return wish


def worth(a):
    """What competes, on the host: the objective, less the limits of the pairs."""
    if a.cost_limit is None or a.cardinality == "maximum":
        return float(a.objective)
    limits, rows = (
        part.get() if hasattr(part, "get") else part for part in (a.cost_limit, a.row_ind)
    )
    return float(a.objective) - np.broadcast_to(limits, a.row_to_col.shape)[rows].sum()


def clouds_to_search(kind, shape, d, seed=5):
    """The points of the rows, which ask, and those of the columns, which are searched."""
    rng = np.random.default_rng(seed)
    X, Y = (rng.normal(size=(count, d)) + 0.1 for count in shape)
    if kind == "lattice":
        X, Y = np.rint(2 * X) + 0.5, np.rint(2 * Y) + 0.5
    elif kind == "apart":
        Y = 0.5 * Y + 4
    elif kind == "far":
        Y = Y + 1e6
    elif kind == "equal":
        X[:], Y[:] = 1, 2
    elif kind in FINE:
        X[::2], Y[::2] = X[::2] * FINE[kind], Y[::2] * FINE[kind]
        X[1::2], Y[1::2] = X[::2][: shape[0] // 2], Y[::2][: shape[1] // 2]
    return X, Y


def costs_to_search(kind, metric, shape, d, sign, has_offsets):
    """The costs of such points, to be minimised; they are negated if the sign is -1."""
    X, Y = clouds_to_search(kind, shape, d)
    rng = np.random.default_rng(6)
    offsets = {}
    if has_offsets:
        offsets = {"row_offset": rng.normal(size=shape[0]), "col_offset": rng.normal(size=shape[1])}
    return PointCosts(X, Y, metric, **offsets).problem(sign < 0, False)


def cheapest(matrix, price, count, bound):
    """The least costs less prices of each row, rounded down, inf where they are not below."""
    reduced = differences_below(matrix, price)
    reduced[reduced >= bound[:, None]] = np.inf
    return np.sort(reduced, axis=1)[:, :count]
