"""Maximum weight matching of general graphs: greedy duals, then searches of growing patience.

The searches of the first round are given up after `FIRST` edges, those of each later round after
`FACTOR` times as many. So the work that is given up is a part of that of the last round, and each
vertex is the root of at most one search that ends. All in all, O(n m log n) for n vertices and m
edges; on most graphs, each edge is looked at 1 to 4 times.

A start by a fractional optimum of sparse graphs was measured and dropped on the CPU, because it
takes longer than all searches: the assignment engine takes 0.25 s for the double cover of a
Delaunay graph of 2**17 vertices with random weights, and 1.7 s for its perfect matching of least
length. The searches from greedy duals take 0.17 s and 0.33 s (processor time, busy machine).
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Control
from gpumatch.contracts.general_weights import (
    GeneralWeightSolution,
    GeneralWeightStart,
    GeneralWeightTask,
    OddSets,
)
from gpumatch.cpu.general.weights.blossoms import write_sets
from gpumatch.cpu.general.weights.search import CROWDED, DONE, PAUSED, close, solve
from gpumatch.cpu.general.weights.start import greedy, resume
from gpumatch.cpu.general.weights.state import (
    EXPANDED,
    GIVEN_UP,
    LEVEL,
    PATIENCE,
    ROOT,
    SCANNED,
    SEARCHES,
    SHRUNK,
    TREE,
    UNMATCHED,
    new_nodes,
    new_work,
)

__all__ = ["run"]

BUDGET = 2**21
"""Edges looked at before a kernel returns to Python: some tenths of a second."""
FIRST = 128
"""The patience of the first searches, in edges."""
FACTOR = 4
"""By how much it grows; 2 and 4 were tried on Delaunay, k-nearest and complete graphs."""
_MOST = 2**60


def run(task: GeneralWeightTask, budget: int = BUDGET) -> GeneralWeightSolution:
    """Find a matching of maximum weight and its duals, as `gpumatch.contracts.general_weights`."""
    n, control = task.indptr.size - 1, task.control
    graph = task.indptr, task.indices, 2 * task.weights
    nodes, rings = new_nodes(n)
    work = new_work(n, task.indices.size)
    state = work[-1]
    with control.part("start"):
        state[LEVEL] = task.level
        if task.start is None:
            matched = greedy(graph, nodes, task.level)
        else:
            matched = resume(graph, nodes, task.level, *_whole(task.start, task.level))
        state[UNMATCHED] = n - matched
    with control.part("searches"):
        has_ended = _search(graph, nodes, rings, work, control, budget)
    if state[TREE]:
        close(nodes, rings, work)
    with control.part("odd sets"):
        odd_sets = _odd_sets(nodes, rings, work, n)
    names = {"searches": SEARCHES, "shrunk": SHRUNK, "expanded": EXPANDED, "scanned": SCANNED}
    return GeneralWeightSolution(
        nodes["mate"][:n].copy(),
        nodes["dual"][:n].copy(),
        odd_sets,
        has_ended,
        {name: int(state[place]) for name, place in names.items()},
    )


def _whole(start: GeneralWeightStart, level: int) -> tuple[np.ndarray, np.ndarray]:
    """The duals as integers, not too large for sums, and the mates of a start."""
    duals = np.clip(start.vertex_dual, level, _MOST)
    return np.ceil(duals).astype(np.int64), start.mate


def _search(
    graph: tuple[np.ndarray, ...],
    nodes: np.ndarray,
    rings: np.ndarray,
    work: tuple[np.ndarray, ...],
    control: Control,
    budget: int,
) -> bool:
    """Search with growing patience until no search is given up; False if the control stops it."""
    n, state = graph[0].size - 1, work[-1]
    patience, edges = FIRST, (n - int(state[UNMATCHED])) // 2
    while True:
        before = edges
        state[PATIENCE], state[ROOT], state[GIVEN_UP] = patience, 0, 0
        code = PAUSED
        while code != DONE:
            if control.tick(edges):
                return False
            if code == CROWDED:
                work = (np.concatenate([work[0]] * 2), np.concatenate([work[1]] * 2), *work[2:])
            code = solve(graph, nodes, rings, work, n, budget)
            edges = (n - int(state[UNMATCHED])) // 2
        control.phase(found=edges - before, matched=edges, patience=patience)
        if not state[GIVEN_UP]:
            return True
        patience = min(FACTOR * patience, _MOST)


def _odd_sets(
    nodes: np.ndarray, rings: np.ndarray, work: tuple[np.ndarray, ...], n: int
) -> OddSets:
    order = np.empty(n, np.int32)
    begin, end, dual = (np.empty(n // 2 + 1, np.int64) for _ in range(3))
    count, length = write_sets(nodes, rings, work, order, begin, end, dual)
    return OddSets(order[:length].copy(), *(array[:count].copy() for array in (begin, end, dual)))
