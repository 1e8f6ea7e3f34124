"""Duals for the parts that were not divided: why each costs no less than the last assignment.

Most parts are proven by the gains that they began with. For the others one more search goes from
the row, up to the distance that is needed. It also shows that a part has no assignment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.cpu.ranking.cheapest import Ranking, begin_child
from gpumatch.cpu.ranking.partition import enter, mark_exclusions
from gpumatch.cpu.ranking.search import change_duals, find_path
from gpumatch.cpu.ranking.state import NONE, Space

__all__ = ["ProvenNodes", "prove"]

Change = tuple[np.ndarray, np.ndarray]  # vertices, differences


class ProvenNodes(NamedTuple):
    """What proves each node: differences from its parent's duals.

    Attributes
    ----------
    parent, place, opened : int arrays
        Of each node: the parent's node, the place of the row, and the number of the assignment
        that was taken from it before it was divided, or -1.
    is_empty : bool array
        True for a node without assignments, whose differences mark rows and columns by 1 and -1.
    starts, vertices, differences : arrays
        The differences of node t are those from ``starts[t]`` to ``starts[t + 1]``. Columns come
        after the rows.
    """

    parent: np.ndarray
    place: np.ndarray
    opened: np.ndarray
    is_empty: np.ndarray
    starts: np.ndarray
    vertices: np.ndarray
    differences: np.ndarray


def prove(ranking: Ranking, space: Space, k: int) -> ProvenNodes:
    """Prove all nodes of a ranking; `k` is the number of assignments that were wanted."""
    chosen, (node_of, totals) = ranking.chosen, ranking.slots[5:]
    parent, place = (part[: ranking.nodes] for part in ranking.tree[:2])
    divided = chosen[: k - 1]
    opened = np.full(ranking.nodes, -1, np.int32)
    opened[node_of[divided]] = np.arange(divided.size)
    are_all = ranking.has_ended and chosen.size < k
    most = None if are_all or not chosen.size else totals[chosen[-1]]
    changes = []
    for node in range(ranking.nodes):
        if node == 0:
            changes.append(_of_root(ranking, space))
        elif opened[node] >= 0:
            changes.append(_between(ranking, parent[node], ranking.tree.slot_of[node]))
        elif most is None:
            changes.append(_blocked(ranking, space, node))
        else:
            changes.append(_bounded(ranking, space, node, most))
    starts = np.zeros(ranking.nodes + 1, np.int64)
    np.cumsum([len(vertices) for vertices, _ in changes], out=starts[1:])
    return ProvenNodes(
        np.where(parent >= 0, node_of[parent], -1).astype(np.int32),
        place,
        opened,
        (opened < 0) & (most is None),
        starts,
        np.concatenate([vertices for vertices, _ in changes]).astype(np.int32),
        np.concatenate([values for _, values in changes]).astype(totals.dtype),
    )


def _of_root(ranking: Ranking, space: Space) -> Change:
    if not ranking.found:
        return _marks(space, ranking.stuck, ranking.slots.u.shape[1])
    return _nonzero(np.concatenate([ranking.slots.u[0], ranking.slots.v[0]]))


def _between(ranking: Ranking, slot: int, other: int) -> Change:
    """The differences of the duals of two slots."""
    u, v = ranking.slots.u, ranking.slots.v
    return _nonzero(np.concatenate([u[other] - u[slot], v[other] - v[slot]]))


def _nonzero(differences: np.ndarray) -> Change:
    (vertices,) = differences.nonzero()
    return vertices, differences[vertices]


def _bounded(ranking: Ranking, space: Space, node: int, most: Any) -> Change:
    """Differences by which a node costs at least `most`: its gains, or what a search finds."""
    problem, slots, tree = space.problem, ranking.slots, ranking.tree
    above, gains = tree.parent[node], tree.gains[node]
    needed = most - slots.total[above]
    if gains.max() < problem.far and gains.sum() >= needed:
        row = slots.order[above, tree.place[node]]
        entry = slots.taken[above, row]
        vertices = [row] if entry == NONE else [row, slots.u.shape[1] + problem.indices[entry]]
        return np.array(vertices), gains[: len(vertices)]
    last = min(gains[1], needed) if gains[1] < problem.far else problem.zero
    row, target, end = _search(ranking, space, node, needed, last)
    nearest = needed if end == NONE else space.room.dist[end]
    change_duals(slots, ranking.found, row, target, nearest, last, space.room)
    return _between(ranking, above, ranking.found)


def _blocked(ranking: Ranking, space: Space, node: int) -> Change:
    """Marks of rows that have too few columns, in a node without assignments."""
    row, _, _ = _search(ranking, space, node, space.problem.far, space.problem.zero)
    return _marks(space, row, ranking.slots.u.shape[1])


def _search(
    ranking: Ranking, space: Space, node: int, most: Any, last: Any
) -> tuple[int, int, int]:
    """Search in the spare slot. Return the row, the place that it left, and the path's end."""
    (problem, room), slots, spare = space, ranking.slots, ranking.found
    _, row = begin_child(slots, ranking.tree, node, spare)
    mark_exclusions(slots, ranking.tree, node, 1, room)
    enter(problem, slots, spare, room)
    entry = slots.taken[spare, row]
    target = room.mate.size if entry == NONE else int(problem.indices[entry])
    end, _ = find_path(problem, slots, spare, row, most, last, room)
    mark_exclusions(slots, ranking.tree, node, 0, room)
    return row, target, end


def _marks(space: Space, row: int, nrows: int) -> Change:
    """Marks of the rows that a search has reached, 1, and of all columns that they may have, -1."""
    mate, done = space.room.mate, space.room.done[:-1]
    (cols,) = done.nonzero()
    rows = np.concatenate([[row], mate[cols]])
    return np.concatenate([rows, nrows + cols]), np.repeat([1, -1], [rows.size, cols.size])
