"""The paths of a problem: dense or sparse, as its costs are."""

from __future__ import annotations

from gpumatch.contracts import AssignmentTask
from gpumatch.cpu.assignment.dense.paths import DensePaths
from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.searches.paths import Paths

__all__ = ["paths_of"]


def paths_of(task: AssignmentTask) -> Paths:
    """Return the paths of a problem, from the pairs and prices of its solution."""
    entries = task.costs.entries()
    kind = SparsePaths if isinstance(entries, tuple) else DensePaths
    return kind(entries, task.costs, *task.mates, task.solution.col_dual, task.limit)
