"""Vertices of which nothing tells one from another: to look at one of them is to look at all.

Many points at one place have many pairs, all of one cost. Rows with one point, one price and all
else that a check asks of them lack the same in each of their pairs, and so do columns. So a pair is
looked at once for each two classes of such vertices, and what it shows holds for all of them.

Numbers are compared bit by bit. They are sorted by a number that mixes their bits, so equal
vertices follow each other. If unequal ones between them have the same number, a class is two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.numeric.arrays import array_module

__all__ = ["Alike"]

_FACTOR, _SHIFT = -7046029254386353131, 29  # an odd number of random bits, as int64


class Alike(NamedTuple):
    """Classes of vertices.

    Attributes
    ----------
    first : int64 array
        One vertex of each class.
    stand_in : int64 array
        For each vertex, the vertex of its class that is in `first`.
    sizes : int64 array
        For each vertex, the number of vertices of its class.
    """

    first: Any
    stand_in: Any
    sizes: Any

    @classmethod
    def of(cls, *lines: Any) -> Alike:
        """The classes of vertices that agree in each of these arrays."""
        lines = tuple(map(_bits, lines))
        xp, count = array_module(lines[0]), lines[0].size
        mixed = xp.zeros(count, np.int64)
        for line in lines:
            mixed = (mixed ^ line) * _FACTOR
            mixed ^= mixed >> _SHIFT
        order = xp.argsort(mixed)
        begins = xp.zeros(count, bool)
        begins[:1] = True
        for line in lines:
            sorted_line = line[order]
            begins[1:] |= sorted_line[1:] != sorted_line[:-1]
        first = order[begins]
        if first.size == count:
            each = xp.arange(count)
            return cls(each, each, xp.ones(count, np.int64))
        classes = xp.empty(count, np.int64)
        classes[order] = xp.cumsum(begins) - 1
        return cls(first, first[classes], xp.bincount(classes)[classes])


def _bits(values: Any) -> Any:
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    return array_module(values).ascontiguousarray(values, np.float64).view(np.int64)
