"""Maximum weight matching of any graph, from the assignment of its double cover on the device.

The double cover has a row v and a column v for each vertex v, and each edge from both of its ends.
Let its duals be u and v. Then y_i = u_i + v_i are duals of the graph for doubled weights:
y_i + y_j = (u_i + v_j) + (u_j + v_i) >= 2 w_ij. Half of its assignment is a fractional matching, as
heavy as these duals allow, and its pairs form paths and cycles of tight edges. All but the odd
cycles give matchings of the same weight, so only one vertex of each of these is unmatched in spite
of its dual (`double_cover`).

If no cycle is odd, as in all bipartite graphs, the matching is optimal, and needs no odd sets. Then
the graph does not go to the host. Else the host goes on from these duals (`task.fallback`).

``"any"`` is the level 0 of a task, and the assignment's limit. For lower levels the double cover is
matched as a whole. If that cannot be, or if the integers have too long sums, the host begins anew,
or from floats.

Reference: Balinski, *Integer programming: methods, uses, computation*, Management Science 12, 1965.
"""

from __future__ import annotations

import dataclasses

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask, Costs, Solution
from gpumatch.contracts.general_weights import (
    GeneralWeightSolution,
    GeneralWeightStart,
    GeneralWeightTask,
    OddSets,
)
from gpumatch.cuda.assignment.sparse import engine
from gpumatch.cuda.general.double_cover import DoubleCover, paired
from gpumatch.cuda.surveys import count_matched
from gpumatch.numeric.arrays import array_of
from gpumatch.numeric.halved_control import HalvedControl

__all__ = ["run"]

FEWEST = 2**17
"""Entries of a graph from which the device is faster: 49,000 took it twice as long as the host."""


def run(task: GeneralWeightTask) -> GeneralWeightSolution:
    """Find a matching of maximum weight and its duals, as `gpumatch.contracts.general_weights`."""
    assert task.cover_costs is not None
    if task.indices.size < FEWEST:
        return _by_host(task, None)
    limit = 0 if task.level == 0 else None
    costs = task.cover_costs(np.int64)
    if not engine.takes(costs, limit):
        costs = task.cover_costs(np.float64)
    with task.control.part("double cover"):
        solution = _assigned(costs, limit, task)
        if solution is None:
            return _by_host(task, None)
        graph = DoubleCover(*costs.entries()[:2])
        found = paired(graph, *solution.mates)
        dual = -(solution.row_dual + solution.col_dual)
        task.control.phase(
            found=0,
            matched=count_matched(found.mate) // 2,
            step="odd cycles",
            odd_cycles=found.odd_cycles,
        )
    is_exact = dual.dtype.kind != "f" and not found.odd_cycles and dual.min().item() >= task.level
    if is_exact:
        return _whole(costs, found.mate, dual)
    with task.control.part("transfer"):
        start = GeneralWeightStart(found.mate.get(), dual.get())
    return _by_host(task, start)


def _assigned(costs: Costs, limit: int | None, task: GeneralWeightTask) -> Solution | None:
    """The assignment of the double cover; None if there is none, or the control stopped the run."""
    solution = Solution.empty(costs.shape, is_integer=costs.is_integer, xp=cp)
    cover_task = AssignmentTask(
        costs,
        solution,
        HalvedControl(task.control),
        limit,
        task.threads,
        task.seed,
        is_fresh=True,
        may_be_infeasible=limit is None,
    )
    has_ended = engine.run(cover_task)
    is_full = limit is not None or count_matched(solution.row_to_col) == costs.shape[0]
    return solution if has_ended and is_full else None


def _whole(costs: Costs, mate: cp.ndarray, dual: cp.ndarray) -> GeneralWeightSolution:
    """The solution by a matching of the device that needs no odd sets."""
    paid, on_host = -costs.of_mates(mate).get(), mate.get()
    matched = np.flatnonzero(on_host >= 0)
    none = np.empty(0, np.int64)
    return GeneralWeightSolution(
        on_host,
        dual.get(),
        OddSets(np.empty(0, np.int32), none, none, none),
        True,
        {"odd_cycles": 0},
        paid[matched < on_host[matched]],
    )


def _by_host(task: GeneralWeightTask, start: GeneralWeightStart | None) -> GeneralWeightSolution:
    """Let the host go on, or begin."""
    assert task.fallback is not None
    with task.control.part("transfer"):
        names = "indptr", "indices", "weights"
        arrays = {name: array_of(np, getattr(task, name)) for name in names}
    return task.fallback(
        dataclasses.replace(task, **arrays, start=start, cover_costs=None, fallback=None)
    )
