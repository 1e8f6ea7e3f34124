"""Maximum weight matching of any graph, from the assignment of its double cover on the device.

The double cover has a row v and a column v for each vertex v, and each edge from both of its ends.
Let its duals be u and v. Then y_i = u_i + v_i are duals of the graph for doubled weights:
y_i + y_j = (u_i + v_j) + (u_j + v_i) >= 2 w_ij. Half of its assignment is a fractional matching, as
heavy as these duals allow, and its pairs form paths and cycles of tight edges. All but the odd
cycles give matchings of the same weight, so only one vertex of each of these is unmatched in spite
of its dual (`double_cover`).

The duals of floats are rounded. So they are raised where an edge lacks something
(`cover_duals.cu`). The *excess* is what they are then above the doubled weights of matched edges,
and above the level on unmatched vertices. An excess of 0 proves the matching, and so it is in all
bipartite graphs with integers. If the excess is 0, or no more than floats may leave, the graph does
not go to the host, and there are no odd sets. Else the host goes on from these duals.

``"any"`` is the level 0 of a task, and the assignment's limit. For lower levels K as many vertices
as possible are matched. If that leaves any, the assignment comes with a cover of all edges by rows
and columns. Its duals fall by K on rows outside and rise by K on columns inside, in terms of costs:
then no edge that is covered once has another slack, and unmatched vertices have the dual K.

Reference: Balinski, *Integer programming: methods, uses, computation*, Management Science 12, 1965.
"""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.contracts.general_weights import (
    DeviceHelp,
    GeneralWeightSolution,
    GeneralWeightStart,
    GeneralWeightTask,
    OddSets,
)
from gpumatch.cuda.assignment.sparse import engine
from gpumatch.cuda.general.double_cover import DoubleCover, paired
from gpumatch.cuda.kernels import BLOCK, OFFSETS, Source, blocks_for, kernels_for
from gpumatch.cuda.surveys import count_matched
from gpumatch.numeric.gaps import allowance_of
from gpumatch.numeric.halved_control import HalvedControl

__all__ = ["run"]

FEWEST = 2**17
"""Entries of a graph from which the device is faster: 49,000 took it twice as long as the host."""
_LANES = 8  # that read a row

SOURCE = Source(
    "general/cover_duals.cu",
    ("raise_duals<{Offset}>", "take_entries<{Offset}>"),
    {"Offset": OFFSETS},
    structs=("Edges<{Offset}, long long>",),
)


def run(task: GeneralWeightTask) -> GeneralWeightSolution:
    """Find a matching of maximum weight and its duals, as `gpumatch.contracts.general_weights`."""
    help, control = task.device, task.control
    assert help is not None
    if task.indices.size < FEWEST:
        return help.fallback(None)
    with control.part("double cover"):
        assigned = _assigned(task, help)
        if assigned is None:
            return help.fallback(None)
        found = paired(DoubleCover(task.indptr, task.indices), *assigned.mates)
        matched = count_matched(found.mate) // 2
        control.phase(found=0, matched=matched, step="odd cycles", odd_cycles=found.odd_cycles)
        edges = _Edges(task)
        dual = edges.raised(_duals_of(assigned, task.level))
        entries, excess = edges.entries_of(found.mate, dual)
    if excess <= _allowed(task, help, entries):
        return _whole(found.mate, dual, entries)
    with control.part("transfer"):
        start = GeneralWeightStart(found.mate.get(), dual.get())
    return help.fallback(start)


def _assigned(task: GeneralWeightTask, help: DeviceHelp) -> Solution | None:
    """The assignment of the double cover; None if the control stopped the run."""
    limit = 0 if task.level == 0 else None
    costs = help.cover_costs(np.int64)
    if not engine.takes(costs, limit):
        costs = help.cover_costs(np.float64)
    solution = Solution.empty(costs.shape, is_integer=costs.is_integer, xp=cp)
    cover_task = AssignmentTask(
        costs,
        solution,
        HalvedControl(task.control),
        limit,
        task.threads,
        task.seed,
        is_fresh=True,
    )
    return solution if help.reach(engine.run, cover_task) else None


def _duals_of(assigned: Solution, level: int) -> cp.ndarray:
    """The duals of the graph, rounded up to integers."""
    dual = -(assigned.row_dual + assigned.col_dual)
    if dual.dtype.kind == "f":
        dual = cp.ceil(dual).astype(np.int64)
    if assigned.cover is not None:
        marks = cp.full(dual.size, -1, np.int64)
        for side in assigned.cover:
            marks[side] += 1
        dual -= level * marks
    return dual


class _Edges:
    """The edges of a task, and what its kernels tell of duals."""

    def __init__(self, task: GeneralWeightTask) -> None:
        self._task = task  # the struct below has addresses only
        self._count, self._level = task.indptr.size - 1, np.int64(task.level)
        self._kernels = kernels_for(SOURCE, Offset=task.indptr.dtype)
        self._edges = self._kernels.struct("Edges")(
            count=self._count, indptr=task.indptr, indices=task.indices, weights=task.weights
        )
        self._grid = (blocks_for(_LANES * self._count),), (BLOCK,)

    def raised(self, dual: cp.ndarray) -> cp.ndarray:
        """Duals that are feasible."""
        raised = cp.empty(self._count, np.int64)
        self._kernels["raise_duals<{Offset}>"](
            *self._grid,
            (
                *(self._edges, self._level, dual),  # IN
                raised,  # OUT
            ),
        )
        return raised

    def entries_of(self, mate: cp.ndarray, dual: cp.ndarray) -> tuple[cp.ndarray, float]:
        """The places of the matched edges, one for each, and the excess of the duals."""
        entry, excess = cp.empty(self._count, np.int64), cp.empty(self._count, np.float64)
        self._kernels["take_entries<{Offset}>"](
            *self._grid,
            (
                *(self._edges, self._level, dual, mate),  # IN
                *(entry, excess),  # OUT
            ),
        )
        return entry[entry >= 0], float(excess.sum())


def _allowed(task: GeneralWeightTask, help: DeviceHelp, entries: cp.ndarray) -> float:
    """The excess that leaves the matching proven."""
    if not (help.is_rounded and entries.size):
        return 0.0
    largest = float(abs(task.weights[entries]).max())
    return allowance_of(entries.size, largest, 0.0)


def _whole(mate: cp.ndarray, dual: cp.ndarray, entries: cp.ndarray) -> GeneralWeightSolution:
    """The solution by a matching of the device that needs no odd sets."""
    none = np.empty(0, np.int64)
    sets = OddSets(np.empty(0, np.int32), none, none, none)
    return GeneralWeightSolution(
        mate.get(), dual.get(), sets, True, {"odd_cycles": 0}, entries=entries
    )
