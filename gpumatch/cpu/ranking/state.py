"""What the kernels of a ranking share: the problem, room for a search, and the partition.

Encodings
---------
``taken[slot, i]``  the entry of the row's pair; NONE: the row is unmatched
``u[slot, i]``, ``v[slot, j]``  duals: u_i + v_j <= w_ij, equal on pairs; u_i <= limit_i, equal for
                    unmatched rows; v_j <= 0, and 0 for unmatched columns. They hold for the options
                    of the part: rows that are not fixed, columns that fixed rows don't have
``limit[i]``        what the row costs if it is unmatched; ``far`` if it must be matched
``zero``            0 in the type of the costs
``label[j]``        the best known distance of a column; that of the hub is ``label[m]``. -far if it
                    is final, or the column is a fixed row's: nothing is offered to it any more
``dist[j]``         the final distance, where ``done[j]`` is 1
``lead[j]``         the row that leads to it; HUB if the hub does, by giving the column up
``by[j]``           its entry that leads there; NONE for a row that becomes unmatched
``mate[j]``         the row of a column; FREE for an unmatched one; FIXED for a fixed row's
``out[e]``          1 if the entry is excluded; ``stays[i]`` 1 if the row may not become unmatched
``keys, heap``      a heap of columns
``price[j]``        the column's dual, for the search
``place_of[j]``     place of the column's row in the order; LAST: unmatched; -1: of a fixed row
``gain[0, q]``      the least slack of the row at place q; ``gain[1, q]`` that of its column
``order[slot, :]``  rows, the first ``depth[slot]`` of them fixed
``node_of[slot]``   the node of an assignment that was found, and ``total[slot]`` its cost
``parent[node]``, ``place[node]``  the slot of the parent, and the place of the row that lost its
                    option; -1 for the root
``key[node]``       what the assignments of a node cost at least; exactly, once its best is known
``gains[node, :]``  how much of that the row's dual and the column's dual may rise by
``slot_of[node]``   the slot of its best assignment; UNKNOWN, or EMPTY: the part has no assignment
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "EMPTY",
    "FIXED",
    "FREE",
    "HUB",
    "LAST",
    "NONE",
    "UNKNOWN",
    "Nodes",
    "Problem",
    "Room",
    "Slots",
    "Space",
    "doubled",
    "space_for",
]

NONE = -1
FREE, FIXED = -1, -2
HUB = -2
UNKNOWN, EMPTY = -1, -2
LAST = 2**30


class Problem(NamedTuple):
    """Costs in CSR, and what it costs to leave a row unmatched."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    limit: np.ndarray
    far: Any
    zero: Any


class Room(NamedTuple):
    """Room for a search, and for dividing a part."""

    label: np.ndarray
    dist: np.ndarray
    lead: np.ndarray
    by: np.ndarray
    mate: np.ndarray
    done: np.ndarray
    out: np.ndarray
    stays: np.ndarray
    is_fixed: np.ndarray
    keys: np.ndarray
    heap: np.ndarray
    price: np.ndarray
    place_of: np.ndarray
    gain: np.ndarray


class Slots(NamedTuple):
    """Assignments with their duals."""

    taken: np.ndarray
    u: np.ndarray
    v: np.ndarray
    order: np.ndarray
    depth: np.ndarray
    node_of: np.ndarray
    total: np.ndarray

    @classmethod
    def empty(cls, count: int, nrows: int, ncols: int, number: Any) -> Slots:
        depth, node_of = np.empty((2, count), np.int64)
        return cls(
            np.empty((count, nrows), np.int64), np.empty((count, nrows), number),
            np.empty((count, ncols), number), np.empty((count, nrows), np.int32),
            depth, node_of, np.empty(count, number),
        )  # fmt: skip


class Nodes(NamedTuple):
    """Parts of all assignments."""

    parent: np.ndarray
    place: np.ndarray
    key: np.ndarray
    gains: np.ndarray
    slot_of: np.ndarray

    @classmethod
    def empty(cls, count: int, number: Any) -> Nodes:
        parent, place, slot_of = np.empty((3, count), np.int32)
        return cls(parent, place, np.empty(count, number), np.empty((count, 2), number), slot_of)


class Space(NamedTuple):
    """A problem as kernels read it, and room for their searches."""

    problem: Problem
    room: Room


def space_for(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray], limit: np.ndarray, ncols: int
) -> Space:
    """The space of a problem.

    Parameters
    ----------
    entries : (indptr, indices, weights)
        Costs in CSR: int64, int32, and int64 or float64.
    limit : array
        What each row costs if it is unmatched; inf, or 2**62 for integers, if it must be matched.
    ncols : int
        Columns.
    """
    nrows, number, size = limit.size, entries[-1].dtype, entries[-1].size
    far = np.inf if number.kind == "f" else 2**62
    longest = 2 * size + 2 * (nrows + ncols) + 2
    label, dist = np.empty((2, ncols + 1), number)
    lead, by = np.empty((2, ncols + 1), np.int64)
    room = Room(
        label, dist, lead, by,
        mate=np.empty(ncols, np.int64),
        done=np.zeros(ncols + 1, np.int8),
        out=np.zeros(size, np.int8),
        stays=np.zeros(nrows, np.int8),
        is_fixed=np.zeros(nrows, np.int8),
        keys=np.empty(longest, number),
        heap=np.empty(longest, np.int64),
        price=np.empty(ncols, number),
        place_of=np.empty(ncols, np.int64),
        gain=np.empty((2, nrows), number),
    )  # fmt: skip
    return Space(Problem(*entries, limit, number.type(far), number.type(0)), room)


def doubled(arrays: Any, more: int = 0) -> Any:
    """A tuple of arrays twice as long, and by some more, that begin with these."""
    count = 2 * len(arrays[0]) + more
    longer = [np.empty((count, *part.shape[1:]), part.dtype) for part in arrays]
    for new, old in zip(longer, arrays):
        new[: len(old)] = old
    return arrays._make(longer) if hasattr(arrays, "_make") else tuple(longer)
