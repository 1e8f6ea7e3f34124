"""Where a matching is torn: neighbours whose partners are far apart, and prices on both sides.

A cluster with more rows than columns must send some of its rows to another cluster. Along the line
between those that stay and those that go, the price of a row is the lesser of two functions, one
for each branch of partners. Each is smooth, but the price is not: a quadratic that fits known
points of both sides is wrong there, and rows for many spacings around name the columns that have
come out too dear. So a torn point has a fit for each branch, and the least of them is its price.

Known points tell more than their prices here. If s has the partner t, the derivative of its price
|s - t|^2 - v is 2 (s - t). The price of a neighbour x is that of s, with this derivative along
x - s, and less a quadratic form of x - s without linear terms, which few points suffice to fit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpumatch.numeric.arrays import array_module
from gpumatch.numeric.points.quadratics import fitted_count

__all__ = ["Branches", "branches_of", "known_count", "torn"]

TORN = 5.0
"""Partners of neighbours are this many times as far apart as neighbours, or the matching is torn.

Where a map stretches points so much, it is taken for torn, too. That costs time only.
"""
BRANCHES = 3
"""The most branches of a point: three regions may meet."""
MOST = 32
"""Known points of a torn point, at most: a GPU's search finds no more."""
RIDGE = 1e-2
"""What keeps the quadratic form of a branch with few points small."""


class Branches(NamedTuple):
    """What is known of torn points.

    Attributes
    ----------
    values : float64 array
        The prices: the least of all branches.
    label : int array
        The branch of each known neighbour. That of the nearest is 0.
    """

    values: Any
    label: Any


def known_count(width: int) -> int:
    """The known points that a torn point in so many dimensions looks at."""
    return min(2 * fitted_count(width), MOST)


def torn(points: Any, known: Any, partners: Any, near: Any, at_once: int) -> Any:
    """The numbers of the points whose known neighbours have partners far apart.

    Parameters
    ----------
    partners : array
        The partner of each known point, as coordinates.
    near : int array of shape (points, count)
        The known points that are near each point, the nearest first.
    at_once : int
        Points that are looked at at a time.
    """
    xp = array_module(points)
    found = []
    for begin in range(0, points.shape[0], at_once):
        part = slice(begin, begin + at_once)
        size = _squares(known[near[part]] - points[part, None]).max(axis=1)
        at = partners[near[part]]
        apart = _squares(at - at[:, :1]).max(axis=1)
        found.append(begin + xp.flatnonzero(apart > TORN**2 * size))
    return xp.concatenate(found)


def branches_of(
    points: Any, known: Any, values: Any, partners: Any, near: Any, scale: float
) -> Branches:
    """The prices of torn points, from those of known ones.

    Parameters
    ----------
    partners, near : arrays
        As of `torn`.
    scale : float
        The cost of a pair at distance 1.
    """
    xp = array_module(points)
    steps = known[near] - points[:, None]
    at = partners[near]
    along = values[near] - 2 * scale * ((known[near] - at) * steps).sum(axis=2)
    size = xp.sqrt(_squares(steps).max(axis=1))
    steps /= xp.where(size > 0, size, 1.0)[:, None, None]
    label = _labels(at, size)
    forms = _forms(steps)
    price = _fitted(label == 0, forms, along)
    for branch in range(1, BRANCHES):
        price = xp.minimum(price, _fitted(label == branch, forms, along))
    return Branches(price, label)


def _squares(steps: Any) -> Any:
    """The squared lengths of steps."""
    return (steps * steps).sum(axis=2)


def _labels(at: Any, size: Any) -> Any:
    """The branch of each known neighbour: that of the nearest, then of the partner farthest off."""
    xp = array_module(at)
    label = xp.zeros(at.shape[:2], xp.int32)
    least = _squares(at - at[:, :1])
    for branch in range(1, BRANCHES):
        seed = at[xp.arange(at.shape[0]), least.argmax(axis=1)]
        is_apart = least.max(axis=1) > (TORN / 2 * size) ** 2
        here = _squares(at - seed[:, None])
        label = xp.where((here < least) & is_apart[:, None], branch, label)
        least = xp.minimum(least, here)
    return label


def _forms(steps: Any) -> Any:
    """1, and the products of two coordinates."""
    xp, width = array_module(steps), steps.shape[2]
    products = [steps[:, :, k] * steps[:, :, m] for k in range(width) for m in range(k, width)]
    return xp.stack([xp.ones(steps.shape[:2]), *products], axis=2)


def _fitted(is_own: Any, forms: Any, along: Any) -> Any:
    """The prices by one branch; inf where it has no point."""
    xp = array_module(forms)
    number = is_own.sum(axis=1)
    mean = (along * is_own).sum(axis=1) / xp.maximum(number, 1)
    own = forms * is_own[:, :, None]
    turned = own.transpose(0, 2, 1)
    ridge = xp.full(forms.shape[2], RIDGE)
    ridge[0] = RIDGE**4
    sides = turned @ (along - mean[:, None])[:, :, None]
    found = xp.linalg.solve(turned @ own + xp.diag(ridge), sides)[:, 0, 0] + mean
    return xp.where(number > 0, found, xp.inf)
