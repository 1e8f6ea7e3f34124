"""The tree of the network simplex method that holds a given flow.

Arcs with flow that close cycles are not in the tree at first. Flow turns along each of these cycles
until an arc of it is empty. Trees that are not connected to the root by flow hang there by arcs
without flow; `replant` finds better ones, if prices are known.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpumatch.cpu.transport import simplex
from gpumatch.cpu.transport.joining import ways_between

__all__ = ["absorb", "plant", "replant"]

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


def replant(
    arcs: Arcs,
    count: int,
    used: np.ndarray,
    units: np.ndarray,
    tree: Tree,
    dual: np.ndarray,
    price: np.ndarray,
    beat: Callable[[], None],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Connect the planted tree by arcs without flow, the first of which ``count`` are known.

    Returns the arcs of the flow with these, their units, and the places of those that it lacks.
    """
    ways = ways_between(arcs, count, tree, dual, price, beat)
    used, units = np.concatenate([used, ways]), np.concatenate([units, np.zeros_like(ways)])
    return used, units, plant(arcs, used, units, tree, dual, dual.size - 1 - price.size)


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
