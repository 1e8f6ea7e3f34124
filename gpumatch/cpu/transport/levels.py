"""Groups of rows, or of columns, whose costs are alike: a smaller problem for a first estimate.

Rows are compared by their costs in a few columns. They are divided at the median of that column in
which the costs of a group differ most, until a group has a few members. One member stands for its
group. In costs of points, of images or of low rank, groups so are neighbourhoods. In costs without
any structure they are arbitrary, and the estimate is of little use, but no harm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["MEMBERS", "Groups", "grouped", "singles"]

MEMBERS = 4
"""Members of a group at most."""


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
        By how much costs differ within groups, as a share of how much they differ in all. It is
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
    count = len(features)
    members, begins = np.arange(count), np.array([0, count])
    features = features.astype(np.float32)
    while begins[1:].max(initial=0) and np.diff(begins).max() > MEMBERS:
        starts, sizes = begins[:-1], np.diff(begins)
        there, spans = features[members], _spans(features[members], starts)
        widest, group = spans.argmax(axis=1), np.repeat(np.arange(sizes.size), sizes)
        keys = there[np.arange(count), widest[group]]
        members = members[np.lexsort((keys, group))]
        begins = np.unique(np.concatenate([begins, starts + sizes // 2]))
    whole = float(_spans(features, np.zeros(1, np.int64)).sum())
    spread = (
        float(_spans(features[members], begins[:-1]).sum(axis=1).mean()) / whole if whole else 0
    )
    return Groups(members, begins, members[(begins[:-1] + begins[1:]) // 2], spread)


def _spans(features: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """By how much each feature differs within each group."""
    return np.maximum.reduceat(features, starts) - np.minimum.reduceat(features, starts)
