"""The k cheapest assignments of a problem, in their order.

All assignments are one part, whose best one is found first. The part with the cheapest assignment
gives it up and is divided (`partition`). A part begins with a bound, and its best assignment is
found only when no other part can have a cheaper one; that takes one path (`search`). Of parts of
equal numbers, one whose best assignment is known comes first.

    n(nm + (n + m) log m) at most for each assignment; in practice few children need a path.

Encodings: those of `state`, and

``waiting``       a heap of nodes whose best assignment is not known
``ready``         a heap of slots that were found, and are not taken yet
``least``         a heap of the k least totals of slots, the greatest at its top; their signs are
                  turned. No assignment that costs as much is of use, once there are k
``state``         how many there are: ROWS of the root that are matched, NODES, SLOTS, WAITING,
                  READY, TAKEN of the k, LEAST; and STUCK, one more than a row without a path

The arrays grow between two calls of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.ranking.partition import bound_children, enter, mark_exclusions
from gpumatch.cpu.ranking.search import change_duals, find_path, follow_path, total_of
from gpumatch.cpu.ranking.state import EMPTY, NONE, UNKNOWN, Nodes, Slots, Space, doubled
from gpumatch.cpu.searches.heap import drop_top, push

__all__ = ["Ranking", "begin_child", "rank"]

_BUDGET = 2**26  # entries read between two returns to Python: 0.1 to 0.2 s
_ROWS, _STUCK, _NODES, _SLOTS, _WAITING, _READY, _TAKEN, _LEAST = range(8)
_MORE, _ENDED, _NO_SLOT, _NO_NODE = range(4)


class Ranking(NamedTuple):
    """What a search has found.

    Attributes
    ----------
    chosen : int array
        The slots of the assignments, the cheapest first.
    slots : Slots
        There is room for one more than `found`.
    tree : Nodes
    found, nodes : int
        How many slots and nodes there are.
    stuck : int
        The row that has no path if there is no assignment at all, else -1.
    has_ended : bool
        True if the search was not stopped.
    """

    chosen: np.ndarray
    slots: Slots
    tree: Nodes
    found: int
    nodes: int
    stuck: int
    has_ended: bool


def rank(space: Space, k: int, stopped: Callable[[int], bool]) -> Ranking:
    """Find the k cheapest assignments, fewer if there are fewer or the run is stopped.

    `stopped` is called with the number found at least every half second; True ends the search.
    """
    problem, room = space
    nrows, ncols, number = problem.limit.size, room.mate.size, problem.weights.dtype
    state, chosen = np.zeros(8, np.int64), np.empty(k, np.int64)
    slots = Slots.empty(min(k + 8, 64), nrows, ncols, number)
    tree = Nodes.empty(nrows + 1, number)
    waiting, ready, least = (_heap(size, number) for size in (nrows + 1, len(slots.depth), k + 1))
    slots.order[0] = np.arange(nrows)
    tree.parent[0] = tree.place[0] = tree.slot_of[0] = -1
    end = _MORE
    while end != _ENDED and not stopped(int(state[_TAKEN])):
        end = _search(
            problem,  # IN
            *(room, slots, tree, waiting, ready, least, chosen, state),  # IN, OUT
            _BUDGET,  # IN
        )
        if end == _NO_SLOT:
            slots, ready = doubled(slots), doubled(ready)
        elif end == _NO_NODE:
            tree, waiting = doubled(tree, nrows), doubled(waiting, nrows)
    found = int(state[_SLOTS])
    if found == len(slots.depth):
        slots = doubled(slots)
    return Ranking(
        chosen[: state[_TAKEN]], slots, tree, found, int(state[_NODES]),
        int(state[_STUCK]) - 1, end == _ENDED,
    )  # fmt: skip


def _heap(count: int, number: Any) -> tuple[np.ndarray, ...]:
    return np.empty(count, number), np.empty(count, np.int64)


@kernel
def _search(problem, room, slots, tree, waiting, ready, least, chosen, state, budget):
    """Take assignments while the budget lasts; say why this ends."""
    nrows = len(problem.limit)
    if state[_SLOTS] == 0:
        budget -= _solve_root(problem, slots, room, state, budget)
        if state[_STUCK] > 0:
            tree.slot_of[0] = EMPTY
            state[_NODES] = 1
            return _ENDED
        if state[_ROWS] < nrows:
            return _MORE
        state[_NODES] = 1
        _add(problem, slots, tree, ready, least, chosen, state, 0)
    while budget > 0:
        if state[_TAKEN] == len(chosen):
            return _ENDED
        is_behind = state[_READY] == 0 or waiting[0][0] < ready[0][0]
        if state[_WAITING] > 0 and is_behind:
            if state[_SLOTS] == len(slots.depth):
                return _NO_SLOT
            node = waiting[1][0]
            state[_WAITING] -= 1
            drop_top(waiting[0], waiting[1], state[_WAITING])
            most = _most(problem, least, chosen, state)
            if tree.key[node] >= most:
                continue
            end, read = _solve_child(problem, slots, tree, node, most, state[_SLOTS], room)
            budget -= read
            if end != NONE:
                _add(problem, slots, tree, ready, least, chosen, state, node)
            elif most == problem.far:
                tree.slot_of[node] = EMPTY
        elif state[_READY] > 0:
            if state[_NODES] + nrows > len(tree.parent):
                return _NO_NODE
            slot = ready[1][0]
            state[_READY] -= 1
            drop_top(ready[0], ready[1], state[_READY])
            chosen[state[_TAKEN]] = slot
            state[_TAKEN] += 1
            if state[_TAKEN] < len(chosen):
                most = _most(problem, least, chosen, state)
                budget -= _divide(problem, slots, tree, slot, most, room, waiting, state)
        else:
            return _ENDED
    return _MORE


@kernel
def _solve_root(problem, slots, room, state, budget):
    """Match the next rows of the root; return the entries read. A row without a path is STUCK."""
    indptr, indices, weights = problem.indptr, problem.indices, problem.weights
    limit, far, zero = problem.limit, problem.far, problem.zero
    taken, u, v = slots.taken, slots.u, slots.v
    mate, is_fixed = room.mate, room.is_fixed
    if state[_ROWS] == 0:
        slots.depth[0] = 0
        for col in range(len(mate)):
            v[0, col] = zero
            mate[col] = -1
        for row in range(len(limit)):
            taken[0, row] = NONE
            is_fixed[row] = 1
    read = 0
    for row in range(state[_ROWS], len(limit)):
        least = limit[row]
        for entry in range(indptr[row], indptr[row + 1]):
            least = min(least, weights[entry] - v[0, indices[entry]])
        u[0, row] = least if least < far else zero
        end, steps = find_path(problem, slots, 0, row, far, zero, room)
        read += steps
        if end == NONE:
            state[_STUCK] = row + 1
            break
        change_duals(slots, 0, row, end, room.dist[end], zero, room)
        follow_path(indices, slots, 0, row, end, room)
        state[_ROWS] = row + 1
        if read > budget:
            break
    return read


@kernel
def _most(problem, least, chosen, state):
    """Return what the k-th assignment costs at most; ``far`` if no k are known."""
    return -least[0][0] if state[_LEAST] == len(chosen) else problem.far


@kernel
def _add(problem, slots, tree, ready, least, chosen, state, node):
    """Make the newest slot the best assignment of a node."""
    slot = state[_SLOTS]
    total = total_of(problem, slots.taken, slot)
    slots.node_of[slot] = node
    slots.total[slot] = total
    tree.key[node] = total
    tree.slot_of[node] = slot
    push(ready[0], ready[1], state[_READY], total, slot)
    state[_READY] += 1
    state[_SLOTS] += 1
    push(least[0], least[1], state[_LEAST], -total, slot)
    state[_LEAST] += 1
    if state[_LEAST] > len(chosen):
        state[_LEAST] -= 1
        drop_top(least[0], least[1], state[_LEAST])


@kernel
def _solve_child(problem, slots, tree, node, most, slot, room):
    """Find the best assignment of a node in a slot, if it costs less than `most`.

    Return the end of its path, NONE if there is none, and the entries read.
    """
    far = problem.far
    above, root = begin_child(slots, tree, node, slot)
    mark_exclusions(slots, tree, node, 1, room)
    enter(problem, slots, slot, room)
    reach = far if most == far else most - slots.total[above]
    last = tree.gains[node, 1]
    end, read = find_path(problem, slots, slot, root, reach, last, room)
    mark_exclusions(slots, tree, node, 0, room)
    if end != NONE:
        change_duals(slots, slot, root, end, room.dist[end], last, room)
        follow_path(problem.indices, slots, slot, root, end, room)
    return end, read


@kernel
def begin_child(slots, tree, node, slot):
    """Begin a node in a slot with what its parent has; return the parent's slot and its row."""
    taken, u, v, order, depth = slots.taken, slots.u, slots.v, slots.order, slots.depth
    above = tree.parent[node]
    for row in range(taken.shape[1]):
        taken[slot, row] = taken[above, row]
        u[slot, row] = u[above, row]
        order[slot, row] = order[above, row]
    for col in range(v.shape[1]):
        v[slot, col] = v[above, col]
    depth[slot] = tree.place[node]
    return above, order[slot, depth[slot]]


@kernel
def _divide(problem, slots, tree, slot, most, room, waiting, state):
    """Divide the part of a slot; return the entries read."""
    weights, limit, far = problem.weights, problem.limit, problem.far
    parent, place, keys, gains, slot_of = (
        tree.parent,
        tree.place,
        tree.key,
        tree.gains,
        tree.slot_of,
    )
    depth, node = slots.depth[slot], slots.node_of[slot]
    gain = room.gain
    mark_exclusions(slots, tree, node, 1, room)
    enter(problem, slots, slot, room)
    bound_children(problem, slots, slot, room)
    mark_exclusions(slots, tree, node, 0, room)
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
        keys[child] = slots.total[slot] + gain[0, at] + gain[1, at]
        slot_of[child] = UNKNOWN
        if keys[child] < most:
            push(waiting[0], waiting[1], state[_WAITING], keys[child], child)
            state[_WAITING] += 1
    return 2 * len(weights)
