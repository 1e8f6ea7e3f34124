"""Groups of rows, or of columns, whose costs are alike: a smaller problem for a first estimate.

Rows are compared by their costs in a few columns. They are divided at the median of that column in
which the costs of a group differ most, until a group has a few members. One member stands for its
group. In costs of points, of images or of low rank, groups so are neighbourhoods. In costs without
any structure they are arbitrary, and the estimate is of little use, but no harm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["MEMBERS", "Groups", "grouped", "singles"]

MEMBERS = 4
"""Members of a group at most."""
DEPTH = 64
"""Groups that are open at once, at most: each is half as large as the one before."""


class Groups(NamedTuple):
    """Groups of vertices.

    Attributes
    ----------
    members : int array
        The vertices, group by group.
    begins : int array
        Where each group begins among the members, and their number at the end.
    heads : int array
        The vertex that stands for each group, in ascending order of groups.
    spread : float
        By how much costs differ within groups, as a share of how much random numbers would. It is
        small if groups are neighbourhoods.
    """

    members: np.ndarray
    begins: np.ndarray
    heads: np.ndarray
    spread: float

    def sums(self, masses: np.ndarray) -> np.ndarray:
        """The sum of the masses of each group."""
        return np.add.reduceat(masses[self.members], self.begins[:-1])


def singles(count: int) -> Groups:
    """Each vertex as a group of its own."""
    every = np.arange(count)
    return Groups(every, np.arange(count + 1), every, 0.0)


def grouped(features: np.ndarray) -> Groups:
    """Groups of vertices with similar features, of which each vertex has a row."""
    count, features = len(features), _as_float32(features)
    members, begins = np.arange(count), np.zeros(count + 1, np.int64)
    groups = divide(
        features,  # IN
        members, begins, np.empty((2, DEPTH), np.int64),  # OUT
    )  # fmt: skip
    begins = begins[: groups + 1]
    whole = float(_spans(features, np.zeros(1, np.int64)).sum())
    within = float(_spans(features[members], begins[:-1]).sum(axis=1).mean())
    size = count / groups
    of_random = 0.5 ** (math.log2(groups) / features.shape[1]) * (size - 1) / (size + 1)
    spread = within / (whole * of_random) if whole else 0.0
    return Groups(members, begins, members[(begins[:-1] + begins[1:]) // 2], spread)


def _as_float32(features: np.ndarray) -> np.ndarray:
    """The features times a power of 2, so that none of them is too large or too small."""
    largest = max(abs(float(features.max())), abs(float(features.min())))
    scaled = np.ldexp(features.astype(np.float64), -math.frexp(largest)[1])
    return np.ascontiguousarray(scaled, np.float32)


def _spans(features: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """By how much each feature differs within each group."""
    return np.maximum.reduceat(features, starts) - np.minimum.reduceat(features, starts)


@kernel
def divide(features, members, begins, room):
    """Divide members into groups at medians; return how many. ``room`` is for open groups.

    All groups are divided equally often. Members of a group are in the order of a feature.
    """
    halvings = 0
    while (members.size - 1) >> halvings >= MEMBERS:
        halvings += 1
    ends, left = room
    count, first, depth = 0, 0, 1
    ends[0], left[0] = members.size, halvings
    while depth > 0:
        last = ends[depth - 1]
        keys = features[:, _widest(features, members, first, last)]
        if left[depth - 1] == 0:
            for place in range(first, last):
                _select(keys, members, place, last, place)
            count += 1
            begins[count] = first = last
            depth -= 1
            continue
        middle = first + (last - first) // 2
        _select(keys, members, first, last, middle)
        left[depth - 1] -= 1
        ends[depth], left[depth] = middle, left[depth - 1]
        depth += 1
    return count


@kernel
def _widest(features, members, first, last):
    """Return the feature that differs most in members first to last."""
    widest, most = 0, features[members[first], 0] * 0
    for one in range(features.shape[1]):
        low = high = features[members[first], one]
        for place in range(first + 1, last):
            value = features[members[place], one]
            low = value if value < low else low
            high = value if value > high else high
        if high - low > most:
            widest, most = one, high - low
    return widest


@kernel
def _select(keys, members, first, last, middle):
    """Order members first to last so that none before ``middle`` has a greater key than others."""
    last -= 1
    while first < last:
        key = keys[members[(first + last) // 2]]
        left, right = first, last
        while left <= right:
            while keys[members[left]] < key:
                left += 1
            while keys[members[right]] > key:
                right -= 1
            if left <= right:
                members[left], members[right] = members[right], members[left]
                left += 1
                right -= 1
        if middle <= right:
            last = right
        elif middle >= left:
            first = left
        else:
            return
