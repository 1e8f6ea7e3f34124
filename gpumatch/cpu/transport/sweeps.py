"""The network simplex method by sweeps: many pivots between two readings of all duals.

A sweep refreshes all duals, finds the arcs that cost less than their ends, one of each block, and
lets in those that still do when it is their turn, the cheapest first (`simplex.sweep`). It ends
early once it has passed many nodes for arcs that were not cheap any more. Sweeps end when there is
no such arc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.cpu.transport import simplex

__all__ = ["sweep_all"]

BLOCK = 64
"""Arcs of which one may enter in a sweep."""
BUDGET = 2**22
"""Nodes that a kernel passes before it returns to Python: some tenths of a second."""
MOST = 2**7
"""Pivots for each node after which the sweeps end: in floats, rounding might let them go on."""
PATIENCE = 64
"""How many times all nodes a sweep may pass in vain."""


def sweep_all(
    arcs: tuple[np.ndarray, ...],
    count: int,
    tree: tuple[np.ndarray, ...],
    dual: np.ndarray,
    nrows: int,
    state: np.ndarray,
    tolerance: Any,
    beat: Callable[[], None],
) -> int:
    """Sweep until none of the first ``count`` arcs is too cheap; return how many sweeps there were.

    The arrays are those of `simplex`. ``beat`` is called at least every half second.
    """
    cheap, sweeps = np.empty(count // BLOCK + 1, np.int64), 0
    keys, first = np.empty(cheap.size, dual.dtype), int(state[simplex.PIVOTS])
    while True:
        before = int(state[simplex.PIVOTS])
        _refresh(arcs, tree, dual)
        found = simplex.find_cheap(
            arcs, count, dual, BLOCK, tolerance,  # IN
            cheap, keys,  # OUT
        )  # fmt: skip
        if not found:
            return sweeps
        order = np.argsort(keys[:found], kind="stable")
        _sweep(arcs, cheap[order], tree, nrows, state, tolerance, beat)
        sweeps += 1
        pivots = int(state[simplex.PIVOTS])
        if pivots == before or pivots - first > MOST * dual.size:
            _refresh(arcs, tree, dual)
            return sweeps


def _refresh(arcs: tuple[np.ndarray, ...], tree: tuple[np.ndarray, ...], dual: np.ndarray) -> None:
    simplex.refresh_duals(
        arcs,  # IN
        tree, dual,  # OUT
    )  # fmt: skip


def _sweep(
    arcs: tuple[np.ndarray, ...],
    cheap: np.ndarray,
    tree: tuple[np.ndarray, ...],
    nrows: int,
    state: np.ndarray,
    tolerance: Any,
    beat: Callable[[], None],
) -> None:
    """Let the arcs of ``cheap`` enter, each if it is too cheap when it is its turn."""
    state[simplex.NEXT] = state[simplex.VAIN] = 0
    outcome = simplex.SPENT
    while outcome == simplex.SPENT:
        outcome = simplex.sweep(
            arcs, cheap,  # IN
            tree,  # OUT
            nrows,  # IN
            state,  # OUT
            tolerance, PATIENCE * tree[0].size, BUDGET,  # IN
        )  # fmt: skip
        beat()
