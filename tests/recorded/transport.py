"""What transport finds on some problems, and what searches between bounds look at.

Totals are recorded of each way through the engine: dense, few columns, CSR. Its counts are not,
because they depend on the order of equal costs in sorts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import gpumatch as gm
from tests.recorded.record import Fields, Group, in_small_steps, work_of

SMALL_BUDGET = 2**9
"""Entries and nodes between two returns to Python, where these are to be many."""


def _problems() -> Mapping[str, tuple[Any, Any, Any, dict[str, Any]]]:
    rng = np.random.default_rng(42)
    dense, few = rng.integers(0, 1000, (90, 70)), rng.integers(0, 1000, (800, 6))
    matrix = np.where(rng.random((80, 60)) < 0.15, rng.integers(1, 500, (80, 60)), 0)
    matrix[:, 0] = 900
    sparse = csr_array(matrix)
    supply, demand = rng.integers(0, 9, 90), rng.integers(0, 14, 70)
    return {
        "dense": (dense, supply, demand, {}),
        "dense to be maximised": (dense, supply, demand, {"maximize": True}),
        "dense with a limit": (dense, supply, demand, {"cost_limit": 40}),
        "dense between bounds": (dense, (supply // 2, supply), (demand // 2, demand + 3), {}),
        "few columns": (few, 3, 430, {}),
        "few columns between bounds": (few, 1, (100, 180), {}),
        "sparse": (sparse, 7, (0, 900), {}),
        "sparse and largest": (sparse, supply[:80], demand[:60], {"cardinality": "maximum"}),
        "sparse and any": (sparse, 10**9, 10**8, {"cardinality": "any", "maximize": True}),
        "large masses": (dense, supply * 10**9, demand * 10**9, {}),
    }


CAPACITIES = {"all pairs": 2, "some pairs": np.arange(60) % 7}


def _totals() -> dict[str, Fields]:
    found = {}
    for name, (costs, supply, demand, told) in _problems().items():
        t = gm.transport(costs, supply, demand, threads=1, backend="cpu", **told)
        found[name] = {"total": t.total, "objective": t.objective, "gap": t.gap}
    return found


def _between_bounds() -> dict[str, Fields]:
    """With capacities of pairs, by searches that return to Python every few entries."""
    found = {}
    for name, (costs, supply, demand, told) in _problems().items():
        width = costs.shape[1]
        for kind, capacity in CAPACITIES.items():
            given = capacity
            if not isinstance(capacity, int):
                given = np.broadcast_to(np.resize(capacity, width), costs.shape)
            ticks: list[Any] = []
            how = {"pair_capacity": given, "threads": 1, "backend": "cpu", **told}
            with in_small_steps(["transport.bounded"], SMALL_BUDGET):
                try:
                    t = gm.transport(costs, supply, demand, callback=ticks.append, **how)
                except gm.InfeasibleError as exc:
                    fields: Fields = {"needed": exc.needed, "available": exc.available}
                else:
                    fields = {"total": t.total, "objective": t.objective, "gap": t.gap}
                    fields |= {"paths": t.stats["paths"], "scans": t.stats["scans"]}
                    fields |= work_of(t.stats)
            found[f"{name}, {kind}"] = {**fields, "ticks": len(ticks)}
    return found


def _batches() -> dict[str, Fields]:
    rng = np.random.default_rng(7)
    costs, supply = rng.integers(0, 99, (40, 6, 8)), rng.integers(0, 5, (40, 6))
    t = gm.transport(costs, supply, 4, threads=1, backend="cpu")
    return {
        "plain": {"objective": int(t.objective.sum()), "total": int(t.total.sum())},
        "capacities": {
            "objective": int(gm.transport(costs, supply, 5, pair_capacity=2).objective.sum())
        },
    }


GROUPS: dict[str, Group] = {
    "totals": _totals, "between bounds": _between_bounds, "batches": _batches
}  # fmt: skip
