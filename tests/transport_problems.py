"""Random small transport problems with all options, and their optimum by HiGHS."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog


class Problem(NamedTuple):
    """A call of `gpumatch.transport`, and what HiGHS is to solve for it.

    `matrix` has 0 where `allowed` does not mark a pair. `supply` and `demand` are (lower, upper),
    and `capacity` is that of each pair, in units of `scale`.
    """

    source: Any
    matrix: np.ndarray
    allowed: np.ndarray
    supply: tuple[np.ndarray, np.ndarray]
    demand: tuple[np.ndarray, np.ndarray]
    masses: tuple[Any, Any]
    scale: float
    wish: dict[str, Any]
    capacity: np.ndarray | None = None

    @property
    def sign(self) -> int:
        return -1 if self.wish["maximize"] else 1

    @property
    def is_free(self) -> bool:
        """Whether rows and columns may keep units, for nothing or at the limit."""
        cardinality, limit = self.wish["cardinality"], self.wish["cost_limit"]
        return cardinality != "maximum" and (cardinality == "any" or limit is not None)

    def least(self) -> tuple[float, int] | None:
        """The least cost, less the limit for each unit, and the units; None if infeasible."""
        limit = self.wish["cost_limit"]
        cost, allowed = self.matrix * self.sign, self.allowed
        if limit is not None and self.wish["cardinality"] == "maximum":
            allowed = allowed & (cost <= self.sign * limit)
        rows, cols = allowed.nonzero()
        weights = cost[rows, cols].astype(float)
        if limit is not None and self.is_free:
            weights -= self.sign * limit
        n, m = allowed.shape
        most = np.broadcast_to(np.inf if self.capacity is None else self.capacity, (n, m))
        ends = np.zeros((n + m, rows.size + 1))  # one more variable, which no bound admits
        ends[rows, np.arange(rows.size)] = 1
        ends[n + cols, np.arange(rows.size)] = 1
        lower, upper = (np.concatenate([a, b]) for a, b in zip(self.supply, self.demand))
        weights = np.append(weights, 0)
        given = {
            "A_ub": np.concatenate([ends, -ends]),
            "b_ub": np.concatenate([upper, -lower]),
            "bounds": [*((0, bound) for bound in most[rows, cols]), (0, 0)],
        }
        if self.is_free:
            found = linprog(weights, **given)
            return None if found.status == 2 else (found.fun, round(found.x.sum()))
        every = np.append(np.ones(rows.size), 0)
        total = min(self.supply[1].sum(), self.demand[1].sum())
        if self.wish["cardinality"] == "maximum":
            largest = linprog(-every, **given)
            if largest.status == 2:
                return None
            total = round(-largest.fun)
        found = linprog(weights, A_eq=every[None], b_eq=[total], **given)
        return None if found.status == 2 else (found.fun, total)


def problem(seed: int, most: int = 6) -> Problem:
    """A problem of up to so many rows and columns, by its number."""
    random = np.random.default_rng(seed)
    n, m = random.integers(0 if seed % 11 == 0 else 1, most + 1, 2)
    is_integer = random.random() < 0.5
    matrix = random.integers(-5, 10, (n, m))
    if not is_integer:
        matrix = random.normal(size=(n, m)) if random.random() < 0.7 else matrix / 4
    is_dense = random.random() < 0.5
    allowed = np.ones((n, m), bool)
    if not (is_dense and is_integer) and random.random() < 0.7:
        allowed = random.random((n, m)) < random.choice([0.3, 0.6, 0.9])
    sides = []
    for length in (n, m):
        upper = random.integers(0, 6, length) * (random.random(length) < 0.9)
        lower = np.zeros_like(upper)
        if random.random() < 0.35:
            lower = (upper * random.random(length) * random.choice([0.5, 1.01])).astype(np.int64)
        sides.append((lower, upper))
    scale = random.choice([0.25, 3.0]) if random.random() < 0.3 else 1
    masses = [
        (lower * scale, upper * scale) if lower.any() else upper * scale for lower, upper in sides
    ]
    limits = [None, None, None, int(random.integers(-2, 6)), float(random.normal() * 3)]
    wish = {
        "maximize": bool(random.random() < 0.4),
        "cardinality": str(random.choice(["full", "maximum", "any"])),
        "cost_limit": limits[random.integers(len(limits))],
    }
    if is_dense:
        far = -np.inf if wish["maximize"] else np.inf
        source: Any = matrix if allowed.all() else np.where(allowed, matrix, far)
    else:
        indptr = np.append(0, allowed.sum(1).cumsum())
        source = indptr, allowed.nonzero()[1], matrix[allowed], (n, m)
    return Problem(
        source,
        np.where(allowed, matrix, 0),
        allowed,
        *sides,
        (masses[0], masses[1]),
        float(scale),
        wish,
    )
