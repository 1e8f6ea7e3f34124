"""The nearest vertex of each part of a blossom that a search takes apart.

An INNER blossom may be expanded, then one of its children, and so on: as often as it has vertices.
Each time the nodes that become FREE need their vertex of least ``reach + dual``. So the vertices of
the outermost of these blossoms get seats, in the order in which each child is in one piece, and a
tree of minima over the seats. As all vertices of a FREE or INNER node rise together, the order of
their sums does not change with the distance.

``seats`` has one tree behind the other. That of k vertices begins at its `floor` f and takes 2 k
places: f has k; f + k to f + 2 k - 1 have the vertices in their order; and f + i, for 1 <= i < k,
has the nearer one of the vertices at f + 2 i and f + 2 i + 1. A `seat` is a number i.
"""

from __future__ import annotations

from gpumatch.cpu.general.weights.state import NONE, SEATED
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["clear", "holds", "nearest", "raise_up", "seat"]


@kernel
def _nearer(nodes, one, other):
    """The one of two vertices with less reach and dual."""
    is_first = nodes[one].reach + nodes[one].dual <= nodes[other].reach + nodes[other].dual
    return one if is_first else other


@kernel
def seat(nodes, rings, work, blossom):
    """Give seats to the vertices of a blossom."""
    seats, state = work[7], work[8]
    floor, size = state[SEATED], rings[blossom].size
    state[SEATED] += 2 * size
    seats[floor] = size
    vertex = rings[blossom].first
    for place in range(size, 2 * size):
        seats[floor + place] = vertex
        rings[vertex].floor, nodes[vertex].seat = floor, place
        vertex = rings[vertex].after
    for place in range(size - 1, 0, -1):
        below = floor + 2 * place
        seats[floor + place] = _nearer(nodes, seats[below], seats[below + 1])


@kernel
def raise_up(nodes, rings, work, vertex):
    """Mend the minima above a vertex, whose reach has become less."""
    seats = work[7]
    floor, place = rings[vertex].floor, nodes[vertex].seat >> 1
    while place > 0:
        holder = seats[floor + place]
        if holder != vertex and _nearer(nodes, holder, vertex) == holder:
            break
        seats[floor + place] = vertex
        place >>= 1


@kernel
def nearest(nodes, rings, work, node):
    """The vertex of a node with the least reach and dual; its vertices have seats."""
    seats = work[7]
    floor = rings[rings[node].first].floor
    begin, end = nodes[rings[node].first].seat, nodes[rings[node].last].seat + 1
    best = rings[node].first
    while begin < end:
        if begin & 1:
            best = _nearer(nodes, best, seats[floor + begin])
            begin += 1
        if end & 1:
            end -= 1
            best = _nearer(nodes, best, seats[floor + end])
        begin >>= 1
        end >>= 1
    return best


@kernel
def holds(nodes, rings, node, vertex):
    """True if a vertex is one of a node's; both have seats in one tree."""
    place = nodes[vertex].seat
    return nodes[rings[node].first].seat <= place <= nodes[rings[node].last].seat


@kernel
def clear(nodes, work):
    """Take all seats away."""
    seats, state = work[7], work[8]
    floor = 0
    while floor < state[SEATED]:
        size = seats[floor]
        for place in range(floor + size, floor + 2 * size):
            nodes[seats[place]].seat = NONE
        floor += 2 * size
    state[SEATED] = 0
