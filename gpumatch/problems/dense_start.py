"""A start of general weighted matching on the host for nearly complete graphs.

The searches of nearly complete graphs read rows of n entries again and again. The assignment of the
double cover takes less time there, by the engine for dense costs: its duals, u + v of each vertex,
are feasible for the graph with doubled weights, and its pairs are tight edges (the header of
`gpumatch.cuda.general.weights` has the argument).

Processor time in ms of complete graphs of 1,000 vertices, without this start and with it: greatest
total length of points in the plane 490 and 40, least 33 and 30, random weights 29 and 22.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import AssignmentTask
from gpumatch.contracts.general_weights import GeneralWeightStart
from gpumatch.costs import DenseCosts
from gpumatch.dispatch.backends import choose_assignment
from gpumatch.general.graph import Graph
from gpumatch.numeric.arrays import array_of
from gpumatch.numeric.halved_control import HalvedControl
from gpumatch.problems.cardinality import empty_solution
from gpumatch.running.control import Control

__all__ = ["dense_start"]

FEWEST = 64
"""Vertices from which the start pays."""
SHARE = 0.5
"""The part of all pairs that must be edges. With 0.3, the start takes 1.4 times what it saves."""


def dense_start(
    graph: Graph, weights: np.ndarray, level: int, control: Control, threads: int, seed: int
) -> GeneralWeightStart | None:
    """Duals and mates to begin from.

    Parameters
    ----------
    graph, weights : Graph, int64 array
        The graph, and weights in its order, which are maximised.
    level : int
        As in `gpumatch.contracts.general_weights`.
    control, threads, seed
        As in `gpumatch.contracts.MatchingTask`.

    Returns
    -------
    GeneralWeightStart or None
        None if the graph has too few edges, or no full assignment.
    """
    n = graph.order
    if n < FEWEST or graph.indices.size < SHARE * n * n:
        return None
    matrix = np.full((n, n), np.inf)
    indptr, indices = array_of(np, graph.indptr), array_of(np, graph.indices)
    matrix[np.repeat(np.arange(n), np.diff(indptr)), indices] = -weights
    costs = DenseCosts(matrix)
    choice = choose_assignment("auto", "cpu", {}, costs)
    may_pass = level == 0 and weights.min() <= 0
    task = AssignmentTask(
        costs,
        empty_solution(costs),
        HalvedControl(control),
        0 if may_pass else None,
        threads,
        seed,
        choice.fallback(),
        is_fresh=True,
    )
    has_ended = choice.search()(task)
    solution = task.solution
    if not has_ended or not (may_pass or (solution.row_to_col >= 0).all()):
        return None
    return GeneralWeightStart(solution.row_to_col, -(solution.row_dual + solution.col_dual))
