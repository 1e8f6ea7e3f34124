"""A caller's program, which type checkers must accept, with the types that it relies on.

Nothing here is run: `make lint` has mypy read it, and `assert_type` fails there if a type is
another one, or nothing is known of it.
"""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import gpumatch as gm
from gpumatch.results.b_matching import BMatching
from gpumatch.results.bottleneck import BottleneckAssignment


def track(boxes: np.ndarray, tracks: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of tracks and boxes."""
    costs = gm.PointCosts(tracks, boxes, metric="euclidean", row_offset=None)
    found = gm.assign(costs, cost_limit=50.0, backend="cpu", threads=2)
    assert_type(found, gm.Assignment)
    if not found.proven:
        raise RuntimeError(f"not optimal: {found.gap}")
    rows, cols = found
    return list(zip(rows.tolist(), cols.tolist()))


def choose(costs: list[list[int]]) -> dict[str, float]:
    """The same costs in several ways."""
    best = gm.assign(costs)
    worst = gm.assign(costs, objective="bottleneck", cardinality="maximum")
    assert_type(worst, BottleneckAssignment)
    auction = gm.assign(costs, algorithm="auction", scaling="none", finish="epsilon")
    tree = gm.assign(costs, algorithm="hungarian-tree", search="stack", maximize=True)
    switched = gm.assign(costs, algorithm="dgs", start="greedy", backend="cpu", seed=3)
    for each in (auction, tree, switched):
        assert_type(each, gm.Assignment)
    gm.verify(costs, best)
    return {"best": best.objective, "auction": auction.objective}


def match(graph: Any) -> int:
    """A graph's largest matching, with and without capacities."""
    plain = gm.maximum_matching(graph, algorithm="hk", init="karp-sipser")
    assert_type(plain, gm.Matching)
    wide = gm.maximum_matching(graph, row_capacity=2)
    assert_type(wide, BMatching)
    gpu = gm.maximum_matching(graph, algorithm="apfb-gpubfs", launch="mt", frontier="queue")
    return plain.size + wide.size + gpu.size


def ship(costs: np.ndarray) -> float:
    """A plan of shipping."""
    plan = gm.transport(costs, 1, 1)
    ranked = gm.k_best(costs, 5)
    return float(plan.objective) + len(ranked.objective)
