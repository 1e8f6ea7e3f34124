"""Exchanges of mates: what one gains, the best of a vertex, and making them one by one.

Encodings
---------
``gain[v]``     the gain of v's best exchange, 0: nothing
``choice[v]``   the other side's vertex that v takes in it, -1 none: v drops its mate
Those of a ``side`` are at `Side`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Entries
from gpumatch.cpu.assignment.dgs.entries import cost_of, entry_at, places_of
from gpumatch.cpu.assignment.either.entries import by_entries
from gpumatch.cpu.numba_tools.compiled import inlined, kernel
from gpumatch.cpu.numba_tools.vector_min import lesser

__all__ = [
    "Side",
    "difference",
    "difference_without",
    "evaluate",
    "exchange",
    "find_best",
    "switch",
]


class Side(NamedTuple):
    """What one side may take and what it has: all its vertices are rows, or all are columns.

    Attributes
    ----------
    entries : array or tuple
        Dense costs, or indptr, indices and costs of the stored ones.
    mate : int32 array
    paid : int64 or float64 array
        What each vertex's pair costs, or ``idle``.
    idle : number
        What it costs to have no mate, ``far`` if all must have one.
    far : number
        Above all costs: the cost of a forbidden pair.
    """

    entries: Entries
    mate: np.ndarray
    paid: np.ndarray
    idle: Any
    far: Any


@kernel
def difference(own, other, vertex, wanted, cost):
    """The gain if ``vertex`` takes ``wanted`` at ``cost``, and their mates take each other."""
    zero = own.paid.dtype.type(0)
    mate, loser = own.mate[vertex], other.mate[wanted]
    rest = zero
    if mate >= 0 and loser >= 0:
        rest = zero + cost_of(other.entries, mate, loser, own.far)
    elif mate >= 0:
        rest = other.idle
    elif loser >= 0:
        rest = own.idle
    if cost >= own.far or rest >= own.far:
        return zero
    return own.paid[vertex] + other.paid[wanted] - (cost + rest)


@kernel
def difference_without(own, other, vertex):
    """Return the gain if ``vertex`` drops its mate."""
    if own.mate[vertex] < 0 or own.idle >= own.far or other.idle >= own.far:
        return own.paid.dtype.type(0)
    return own.paid[vertex] - (own.idle + other.idle)


@kernel
def _best_listed(entries, own, other, vertex, best):
    """Entry by entry, because some may be missing, and the vertex may have no mate."""
    choice = -1
    first, last = places_of(entries, vertex)
    for place in range(first, last):
        wanted, cost = entry_at(entries, vertex, place)
        if wanted != own.mate[vertex]:
            gain = difference(own, other, vertex, wanted, own.paid.dtype.type(0) + cost)
            if gain > best:
                best, choice = gain, wanted
    return best, choice


@kernel
def _best_dense(entries, own, other, vertex, best):
    """In loops that compile to vector instructions: the best gain, then its place."""
    mate, paid = own.mate[vertex], own.paid[vertex]
    if mate < 0:
        return _best_listed(entries, own, other, vertex, best)
    line, crossing = entries[vertex], other.entries[mate]
    loss = -best
    for wanted in range(line.size):
        loss = lesser(loss, _loss(line, crossing, paid, other, wanted))
    if loss < -best:
        for wanted in range(line.size):
            if _loss(line, crossing, paid, other, wanted) == loss:
                return -loss, wanted
    return best, -1


_best_choice = by_entries(_best_dense, _best_listed)
"""The first exchange that gains most, if more than ``best``: its gain, and the vertex taken."""


@inlined
def _loss(line, crossing, paid, other, wanted):
    """Return the `difference` of a vertex that has a mate, with the sign turned."""
    loser = other.mate[wanted]
    rest = crossing[loser]  # read, whatever it is, so that there is no branch
    rest = rest if loser >= 0 else other.idle
    return (line[wanted] + rest) - (paid + other.paid[wanted])


@kernel
def find_best(own, other, vertex):
    """The best exchange of a vertex: the gain, 0 if there is none, and what it takes (ADE)."""
    least = max(difference_without(own, other, vertex), own.paid.dtype.type(0))
    return _best_choice(own.entries, own, other, vertex, least)


@kernel
def evaluate(own, other, gain, choice, first, last):
    """Look up the best exchanges of vertices first to last."""
    for vertex in range(first, last):
        gain[vertex], choice[vertex] = find_best(own, other, vertex)


@kernel
def exchange(own, other, vertex, wanted):
    """Give ``vertex`` what it wants if that still gains anything; return if it did."""
    zero = own.paid.dtype.type(0)
    mate = own.mate[vertex]
    if wanted == mate:
        return False
    if wanted < 0:
        gains = difference_without(own, other, vertex) > 0
        if gains:
            _leave(own, vertex)
            _leave(other, mate)
        return gains
    loser = other.mate[wanted]
    cost = zero + cost_of(own.entries, vertex, wanted, own.far)
    if difference(own, other, vertex, wanted, cost) <= 0:
        return False
    _join(own, other, vertex, wanted, cost)
    if mate >= 0 and loser >= 0:
        _join(own, other, loser, mate, zero + cost_of(other.entries, mate, loser, own.far))
    elif mate >= 0:
        _leave(other, mate)
    elif loser >= 0:
        _leave(own, loser)
    return True


@kernel
def _join(own, other, vertex, wanted, cost):
    own.mate[vertex], other.mate[wanted] = wanted, vertex
    own.paid[vertex] = other.paid[wanted] = cost


@kernel
def _leave(side, vertex):
    side.mate[vertex] = -1
    side.paid[vertex] = side.idle


@kernel
def _exchange_and_look(own, other, vertex, own_gain, own_choice, other_gain, other_choice):
    """Make the vertex's best exchange, and let all vertices that took part look again."""
    mate, wanted = own.mate[vertex], own_choice[vertex]
    loser = other.mate[wanted] if wanted >= 0 else -1
    made = exchange(own, other, vertex, wanted)
    for again in (vertex, loser):
        if again >= 0:
            own_gain[again], own_choice[again] = find_best(own, other, again)
    for again in (mate, wanted):
        if again >= 0:
            other_gain[again], other_choice[again] = find_best(other, own, again)
    return made


@kernel
def _first_greatest(gain):
    """Return the place of the first of the greatest gains."""
    least = -gain[0]
    for vertex in range(gain.size):
        least = lesser(least, -gain[vertex])
    for vertex in range(gain.size):
        if gain[vertex] == -least:
            return vertex
    return 0


@kernel
def switch(rows, cols, row_gain, row_choice, col_gain, col_choice, budget):
    """Make the best exchanges one by one; return how many, and if no more can be made."""
    made = 0
    # Each looks through both gains, and lets two rows and two columns look again.
    work = 3 * (row_gain.size + col_gain.size)
    while budget > 0:
        row, col = _first_greatest(row_gain), _first_greatest(col_gain)
        if row_gain[row] <= 0 and col_gain[col] <= 0:
            return made, True
        if row_gain[row] > col_gain[col]:
            made += _exchange_and_look(rows, cols, row, row_gain, row_choice, col_gain, col_choice)
        else:
            made += _exchange_and_look(cols, rows, col, col_gain, col_choice, row_gain, row_choice)
        budget -= work
    return made, False
