"""Exact transport with bounds of pairs, rows and columns, on the CPU: shortest augmenting paths.

At the first duals, each row ships what is best for it, and each vertex has as many units as is best
at its dual. So all conditions of the proof hold but one: columns get more than these units or less,
and rows may have pairs for less than they must ship. Each path takes units from where there are too
many to where some lack, and keeps the conditions (`bounded_search`). Work and memory do not depend
on the number of units.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.contracts import Stopped
from gpumatch.contracts.transport import BoundedSolution, BoundedTask
from gpumatch.cpu.transport import bounded_search as search
from gpumatch.cpu.transport import state
from gpumatch.running.kept_memory import kept_empty, kept_full

__all__ = ["BUDGET", "solve"]

BUDGET = 2**22
"""Entries and nodes that a search looks at between two ticks."""


def solve(task: BoundedTask) -> BoundedSolution:
    """Ship at least cost between the bounds, as `gpumatch.contracts.transport` states."""
    nrows, ncols = task.shape
    hub, nnz = nrows + ncols, task.indices.size
    number: Any = task.data.dtype.type
    far = number(np.iinfo(number).max if task.data.dtype.kind == "i" else np.inf)
    place = np.int32 if nnz < 2**31 else np.int64
    entries = task.indptr, task.indices, task.data
    owner, flow = kept_empty(nnz, np.int32), kept_full(nnz, 0, np.int64)
    flows = owner, flow, kept_full(nnz, state.ABSENT, place), np.full(ncols, state.END, place)
    dual = np.zeros(hub + 1, number)
    dual[nrows:hub] = task.col_dual
    units, excess = np.zeros(hub, np.int64), np.zeros(hub + 1, np.int64)
    bounds = task.lower, task.upper, units
    most = 2 * nnz + 3 * hub + 8
    arrays = (
        excess, np.full(hub + 1, far, number), np.empty(hub + 1, place),
        np.empty(hub + 2, np.int32), kept_empty(most, number), kept_empty(most, np.int32),
        np.empty(hub + 2, np.int32),
    )  # fmt: skip
    spot, mark = np.zeros(state.SPOTS, np.int64), np.zeros(state.MARKS, number)
    spot[state.HEAD] = -1
    search.begin(
        entries, task.capacity,  # IN
        bounds, flows, dual, arrays,  # OUT
        far,  # IN
    )  # fmt: skip
    sources = np.append(np.flatnonzero(excess[:hub] > 0), hub).astype(np.int32)
    outcome, control = state.SPENT, task.control
    try:
        while outcome == state.SPENT:
            if control.tick(int(units[:nrows].sum() - np.maximum(excess[:hub], 0).sum())):
                raise Stopped
            outcome = search.serve(
                entries, task.capacity,  # IN
                bounds, flows, dual, arrays,  # OUT
                sources,  # IN
                spot, mark,  # OUT
                far, BUDGET,  # IN
            )  # fmt: skip
    except Stopped:
        pass
    if outcome != state.SERVED:
        search.relieve(flows, excess, nrows)
    counts = {"paths": int(spot[state.PATHS]), "scans": int(spot[state.SCANS])}
    control.phase(found=counts["paths"], matched=int(flow.sum()), step="bounded paths")
    violator = None
    if outcome == state.STUCK:
        is_reached = arrays[1] < far
        by_rows = not is_reached[hub]
        in_tree = is_reached if by_rows else ~is_reached
        rows, cols = np.flatnonzero(in_tree[:nrows]), np.flatnonzero(in_tree[nrows:hub])
        violator = rows, cols, by_rows
    return BoundedSolution(
        flow, dual[:nrows] + dual[hub], dual[nrows:hub] - dual[hub],
        outcome == state.SERVED, violator, counts,
    )  # fmt: skip
