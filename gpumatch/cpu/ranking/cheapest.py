"""The k cheapest assignments of a problem, in their order.

All assignments are one part, whose best one is found first. The part with the cheapest assignment
gives it up and is divided (`partition`). A part begins with a bound, and its best assignment is
found only when no other part can have a cheaper one; that takes one path (`search`). Of parts of
equal numbers, one whose best assignment is known comes first.

    n(nm + (n + m) log m) at most for each assignment; in practice few children need a path.

Encodings: those of `search` and `partition`, and

``keys[node]``    what the assignments of a node cost at least; exactly, once its best one is known
``gains[:, node]``  how much of that the row's dual and the column's dual may rise by
``slot_of[node]`` the slot of its best assignment; UNKNOWN, or EMPTY: the part has no assignment
``waiting``       a heap of nodes whose best assignment is not known
``ready``         a heap of slots that were found, and are not taken yet
``state``         how many there are: ROWS of the root that are matched, NODES, SLOTS, WAITING,
                  READY, and TAKEN of the k

The arrays grow between two calls of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpumatch.cpu.heap import drop_top, push
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.ranking.partition import bound_children, enter, mark_exclusions
from gpumatch.cpu.ranking.search import NONE, find_path, total_of

__all__ = ["EMPTY", "UNKNOWN", "Ranking", "rank"]

_BUDGET = 2**26  # entries read between two returns to Python: 0.1 to 0.2 s
_ROWS, _NODES, _SLOTS, _WAITING, _READY, _TAKEN = range(6)
_MORE, _ENDED, _NO_SLOT, _NO_NODE = range(4)
UNKNOWN, EMPTY = -1, -2


class Ranking(NamedTuple):
    """What a search has found.

    Attributes
    ----------
    slots : int array
        The slots of the assignments, the cheapest first.
    totals : array
        What the assignments of all slots cost.
    taken, u, v, order, depth, node_of
        Of each slot; see `search` and `partition`.
    parent, place, keys, gains, slot_of
        Of each node.
    has_ended : bool
        True if the search was not stopped.
    """

    slots: np.ndarray
    totals: np.ndarray
    taken: np.ndarray
    u: np.ndarray
    v: np.ndarray
    order: np.ndarray
    depth: np.ndarray
    node_of: np.ndarray
    parent: np.ndarray
    place: np.ndarray
    keys: np.ndarray
    gains: np.ndarray
    slot_of: np.ndarray
    has_ended: bool


def rank(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    limit: np.ndarray,
    ncols: int,
    k: int,
    stopped: Callable[[int], bool],
) -> Ranking:
    """Find the k cheapest assignments, fewer if there are fewer or the run is stopped.

    Parameters
    ----------
    entries : (indptr, indices, weights)
        Costs in CSR: int64, int32, and int64 or float64.
    limit : array
        What each row costs if it is unmatched; inf, or 2**62 for integers, if it must be matched.
    ncols, k : int
        Columns, and how many assignments are wanted.
    stopped : callable
        Called with the number found at least every half second; True ends the search.
    """
    indptr, indices, weights = entries
    nrows, number = limit.size, weights.dtype
    far = np.inf if number.kind == "f" else 2**62
    problem = indptr, indices, weights, limit, number.type(far), number.type(0)
    size = indices.size
    room = (
        np.empty(ncols + 1, number), *np.empty((2, ncols + 1), np.int64),  # dist, lead, by
        np.empty(ncols, np.int64), np.empty(ncols + 1, np.int8),  # mate, done
        *(np.zeros(count, np.int8) for count in (size, nrows, nrows)),  # out, stays, is_fixed
        np.empty(2 * size + 2 * (nrows + ncols) + 2, number),  # keys
        np.empty(2 * size + 2 * (nrows + ncols) + 2, np.int64),  # heap
    )  # fmt: skip
    spaces = np.empty(ncols, np.int64), np.empty((2, nrows), number)  # place_of, gain
    state, chosen = np.zeros(6, np.int64), np.empty(k, np.int64)
    slots = _slots(min(k + 8, 64), nrows, ncols, number)
    tree = _nodes(nrows + 1, number)
    heaps = _heaps(nrows + 1, number), _heaps(len(slots[0]), number)
    slots[3][0] = np.arange(nrows)
    tree[0][0] = tree[1][0] = -1
    tree[4][0] = UNKNOWN
    end = _MORE
    while end != _ENDED and not stopped(int(state[_TAKEN])):
        end = _search(problem, room, spaces, slots, tree, heaps[0], heaps[1], chosen, state, _BUDGET)
        if end == _NO_SLOT:
            slots, ready = _grown(slots, 2 * len(slots[0])), 2 * len(slots[0])
            heaps = heaps[0], _grown(heaps[1], ready)
        elif end == _NO_NODE:
            nodes = 2 * tree[0].size + nrows
            tree = _grown(tree, nodes)
            heaps = _grown(heaps[0], nodes), heaps[1]
    rows, nodes, found, _, _, taken = state.tolist()
    *of_slots, totals = (part[:found] for part in slots)
    parent, place, keys, gains, slot_of = (part[:nodes] for part in tree)
    return Ranking(
        chosen[:taken], totals, *of_slots, parent, place, keys, gains, slot_of, end == _ENDED
    )


def _slots(count, nrows, ncols, number):
    """Room for assignments: taken, u, v, order, depth, node_of, totals."""
    return (
        np.empty((count, nrows), np.int64), np.empty((count, nrows), number),
        np.empty((count, ncols), number), np.empty((count, nrows), np.int32),
        *np.empty((2, count), np.int64), np.empty(count, number),
    )  # fmt: skip


def _nodes(count, number):
    """Room for nodes: parent, place, keys, gains, slot_of."""
    parent, place, slot_of = np.empty((3, count), np.int32)
    return parent, place, np.empty(count, number), np.empty((count, 2), number), slot_of


def _heaps(count, number):
    return np.empty(count, number), np.empty(count, np.int64)


def _grown(arrays, count):
    """Longer arrays that begin with these."""
    longer = [np.empty((count, *part.shape[1:]), part.dtype) for part in arrays]
    for new, old in zip(longer, arrays):
        new[: len(old)] = old
    return tuple(longer)


@kernel
def _search(problem, room, spaces, slots, tree, waiting, ready, chosen, state, budget):
    """Take assignments while the budget lasts; say why this ends."""
    nrows = len(problem[3])
    if state[_SLOTS] == 0:
        steps = _solve_root(problem, slots, room, state, budget)
        if steps < 0:
            tree[4][0] = EMPTY
            state[_NODES] = 1
            return _ENDED
        budget -= steps
        if state[_ROWS] < nrows:
            return _MORE
        state[_NODES] = 1
        _add(problem, slots, tree, ready, state, 0)
    while budget > 0:
        if state[_TAKEN] == len(chosen):
            return _ENDED
        is_behind = state[_READY] == 0 or waiting[0][0] < ready[0][0]
        if state[_WAITING] > 0 and is_behind:
            if state[_SLOTS] == len(slots[4]):
                return _NO_SLOT
            node = waiting[1][0]
            state[_WAITING] -= 1
            drop_top(waiting[0], waiting[1], state[_WAITING])
            steps = _solve_child(problem, slots, tree, node, state[_SLOTS], room)
            if steps < 0:
                tree[4][node] = EMPTY
                budget += steps
            else:
                budget -= steps
                _add(problem, slots, tree, ready, state, node)
        elif state[_READY] > 0:
            if state[_NODES] + nrows > len(tree[0]):
                return _NO_NODE
            slot = ready[1][0]
            state[_READY] -= 1
            drop_top(ready[0], ready[1], state[_READY])
            chosen[state[_TAKEN]] = slot
            state[_TAKEN] += 1
            if state[_TAKEN] < len(chosen):
                budget -= _divide(problem, slots, tree, slot, room, spaces, waiting, state)
        else:
            return _ENDED
    return _MORE


@kernel
def _solve_root(problem, slots, room, state, budget):
    """Match the next rows of the root; return the entries read, -1 if one has no path."""
    indptr, indices, weights, limit, far, zero = problem
    taken, u, v = slots[0], slots[1], slots[2]
    mate, is_fixed = room[3], room[7]
    first = state[_ROWS]
    if first == 0:
        slots[4][0] = 0
        for col in range(len(mate)):
            v[0, col] = zero
            mate[col] = -1
        for row in range(len(limit)):
            taken[0, row] = NONE
            is_fixed[row] = 1
    read = 0
    for row in range(first, len(limit)):
        least = limit[row]
        for entry in range(indptr[row], indptr[row + 1]):
            least = min(least, weights[entry] - v[0, indices[entry]])
        if least == far:
            return -1
        u[0, row] = least
        steps = find_path(problem, slots, 0, row, room)
        if steps < 0:
            return -1
        state[_ROWS] = row + 1
        read += steps + indptr[row + 1] - indptr[row]
        if read > budget:
            break
    return read


@kernel
def _add(problem, slots, tree, ready, state, node):
    """Make the newest slot the best assignment of a node."""
    slot = state[_SLOTS]
    total = total_of(problem, slots[0], slot)
    slots[5][slot] = node
    slots[6][slot] = total
    tree[2][node] = total
    tree[4][node] = slot
    push(ready[0], ready[1], state[_READY], total, slot)
    state[_READY] += 1
    state[_SLOTS] += 1


@kernel
def _solve_child(problem, slots, tree, node, slot, room):
    """Find the best assignment of a node; return the entries read, negative if there is none."""
    taken, u, v, order, depth = slots[0], slots[1], slots[2], slots[3], slots[4]
    above = tree[0][node]
    for row in range(taken.shape[1]):
        taken[slot, row] = taken[above, row]
        u[slot, row] = u[above, row]
        order[slot, row] = order[above, row]
    for col in range(v.shape[1]):
        v[slot, col] = v[above, col]
    depth[slot] = tree[1][node]
    mark_exclusions(slots, tree, node, 1, room[5], room[6])
    enter(problem, slots, slot, room)
    steps = find_path(problem, slots, slot, order[slot, depth[slot]], room)
    mark_exclusions(slots, tree, node, 0, room[5], room[6])
    return steps


@kernel
def _divide(problem, slots, tree, slot, room, spaces, waiting, state):
    """Divide the part of a slot; return the entries read."""
    indptr, indices, weights, limit, far, zero = problem
    parent, place, keys, gains, slot_of = tree
    depth, node = slots[4][slot], slots[5][slot]
    gain = spaces[1]
    mark_exclusions(slots, tree, node, 1, room[5], room[6])
    enter(problem, slots, slot, room)
    bound_children(problem, slots, slot, room, spaces[0], gain)
    mark_exclusions(slots, tree, node, 0, room[5], room[6])
    for at in range(depth, len(limit)):
        child = state[_NODES]
        state[_NODES] += 1
        parent[child] = slot
        place[child] = at
        gains[child, 0] = gain[0, at]
        gains[child, 1] = gain[1, at]
        if gain[0, at] == far or gain[1, at] == far:
            keys[child] = far
            slot_of[child] = EMPTY
            continue
        keys[child] = slots[6][slot] + gain[0, at] + gain[1, at]
        slot_of[child] = UNKNOWN
        push(waiting[0], waiting[1], state[_WAITING], keys[child], child)
        state[_WAITING] += 1
    return 2 * len(weights)
