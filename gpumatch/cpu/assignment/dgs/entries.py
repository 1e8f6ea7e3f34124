"""What the kernels of Deep Greedy Switching read of a matrix, or of the entries stored in CSR.

`places_of`, `entry_at` and `cost_of` are each compiled for the entries at hand.
"""

from __future__ import annotations

from gpumatch.cpu.assignment.either.entries import by_entries
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["BUDGET", "cost_of", "entry_at", "places_of"]

BUDGET = 2**22
"""Entries looked at between two returns to Python: some hundredths of a second."""


@kernel
def _dense_places(entries, vertex):
    return 0, entries.shape[1]


@kernel
def _stored_places(entries, vertex):
    return entries[0][vertex], entries[0][vertex + 1]


places_of = by_entries(_dense_places, _stored_places)
"""The range of the vertex's entries: the first, and the one after the last."""


@kernel
def _dense_entry(entries, vertex, place):
    return place, entries[vertex, place]


@kernel
def _stored_entry(entries, vertex, place):
    return entries[1][place], entries[2][place]


entry_at = by_entries(_dense_entry, _stored_entry)
"""The other vertex, and the cost, of an entry."""


@kernel
def _dense_cost(entries, vertex, other, far):
    return entries[vertex, other]


@kernel
def _stored_cost(entries, vertex, other, far):
    first, last = entries[0][vertex], entries[0][vertex + 1]
    while first < last:
        middle = (first + last) // 2
        if entries[1][middle] < other:
            first = middle + 1
        else:
            last = middle
    if first < entries[0][vertex + 1] and entries[1][first] == other:
        return entries[2][first]
    return far


cost_of = by_entries(_dense_cost, _stored_cost)
"""The cost of a pair, ``far`` if it is not stored."""
