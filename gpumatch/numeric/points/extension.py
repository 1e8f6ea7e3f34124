"""Prices of all points of a side from those of a solved sample.

Prices of squared distances are smooth but along tears (`tears`). For other metrics, they are taken
for smooth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gpumatch.numeric.arrays import array_module
from gpumatch.numeric.points.quadratics import fitted, fitted_count
from gpumatch.numeric.points.tears import branches_of, known_count, torn

__all__ = ["NearKnown", "Prices", "extended", "extended_along_tears"]

NearKnown = Callable[[Any, Any, int], Any]
"""So many of the known points that are nearest to each point, of (points, known, count)."""
OTHERS = 3
"""Sampled points of other branches that a torn point is told of, at most."""


class Prices(NamedTuple):
    """Prices of all points of a side.

    Attributes
    ----------
    values : float64 array
    torn, known : int arrays
        Torn points, and sampled points that are near them but in another branch. They are numbers
        of points of the side.
    """

    values: Any
    torn: Any
    known: Any


def extended(points: Any, some: Any, values: Any, near_known: NearKnown, at_once: int) -> Prices:
    """The prices of points from the values of some, which are taken for smooth."""
    known = points[some]
    count = min(fitted_count(points.shape[1]), known.shape[0])
    near = near_known(points, known, count)
    return Prices(fitted(points, known, values, near, at_once), some[:0], some[:0])


def extended_along_tears(
    points: Any,
    some: Any,
    values: Any,
    partners: Any,
    scale: float,
    near_known: NearKnown,
    at_once: int,
) -> Prices:
    """The same for squared distances.

    Parameters
    ----------
    partners : array
        The partners of the sampled points, as coordinates.
    scale : float
        The cost of a pair at distance 1.
    """
    xp, known = array_module(points), points[some]
    near = near_known(points, known, min(known_count(points.shape[1]), known.shape[0]))
    nearest = xp.ascontiguousarray(near[:, : fitted_count(points.shape[1])])
    found = fitted(points, known, values, nearest, at_once)
    ids = torn(points, known, partners, nearest, at_once)
    own, others = [some[:0]], [some[:0]]
    for begin in range(0, ids.size, at_once):
        part = ids[begin : begin + at_once]
        branches = branches_of(points[part], known, values, partners, near[part], scale)
        found[part] = branches.values
        line, place = _first_of_others(branches.label)
        own.append(part[line])
        others.append(some[near[part][line, place]])
    return Prices(found, xp.concatenate(own), xp.concatenate(others))


def _first_of_others(label: Any) -> tuple[Any, Any]:
    """Lines and places of the first few labels of each line that are not 0."""
    xp = array_module(label)
    is_other = label > 0
    return tuple(xp.nonzero(is_other & (xp.cumsum(is_other, axis=1) <= OTHERS)))
