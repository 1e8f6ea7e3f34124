"""The tree of the network simplex method that holds a given flow.

Arcs with flow that close cycles are not in the tree at first. Flow turns along each of these cycles
until an arc of it is empty.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.transport import simplex

__all__ = ["absorb", "plant"]

BUDGET = 2**22
"""Nodes that a kernel passes before it returns to Python: some tenths of a second."""

Arcs = tuple[np.ndarray, np.ndarray, np.ndarray]
Tree = tuple[np.ndarray, ...]


def plant(
    arcs: Arcs, used: np.ndarray, units: np.ndarray, tree: Tree, dual: np.ndarray, nrows: int
) -> np.ndarray:
    """Make a tree of arcs with flow; return the places in ``used`` of those that it lacks.

    The arrays are those of `simplex`.
    """
    room = simplex.planting_room(used.size, dual.size)
    count = simplex.plant(
        arcs, used, units,  # IN
        tree, dual,  # OUT
        nrows,  # IN
        room,  # OUT
    )  # fmt: skip
    return room[0][:count].copy()


def absorb(
    arcs: Arcs, used: np.ndarray, units: np.ndarray, closing: np.ndarray, tree: Tree, nrows: int
) -> np.ndarray:
    """Turn flow along the cycles of some arcs that the tree lacks; return those that are left."""
    done = simplex.absorb(
        arcs, used, units, closing, 0,  # IN
        tree,  # OUT
        nrows, BUDGET,  # IN
    )  # fmt: skip
    return closing[done:]
