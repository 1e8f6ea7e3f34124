"""The least values that a search has found so far, in order, with their columns."""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import inlined

__all__ = ["insert"]


@inlined
def insert(value, col, values, cols):
    """Put a value below the last one in its place; return the last one, which bounds the next.

    Among equals, those that were found first stay before it.
    """
    at = values.size - 1
    while at > 0 and values[at - 1] > value:
        values[at], cols[at] = values[at - 1], cols[at - 1]
        at -= 1
    values[at], cols[at] = value, col
    return values[-1]
