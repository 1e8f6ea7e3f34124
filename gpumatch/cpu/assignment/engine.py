"""Our own engine for costs on the CPU: which of its three forms, or neither, a problem gets.

- Sparse costs: `sparse.engine`, an auction for the duals and exact paths for the proof.
- Costs that are computed, if there are many: `points.engine`, which needs no matrix.
- Dense costs that are many, not all equal, and exact in float64: `dense.engine`, which reads few
  lines of the matrix.
- All other dense costs: `shortest_augmenting_path`. If they are few, it takes milliseconds.
"""

from __future__ import annotations

from gpumatch.contracts import AssignmentTask
from gpumatch.cpu.assignment import shortest_augmenting_path
from gpumatch.cpu.assignment.dense import engine as dense_engine
from gpumatch.cpu.assignment.points import engine as points_engine
from gpumatch.cpu.assignment.sparse import engine as sparse_engine

__all__ = ["run"]


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    if task.costs.is_sparse:
        return sparse_engine.run(task)
    if points_engine.takes(task):
        ended = points_engine.run(task, run)
        if ended is not None:
            return ended
        task.solution.clear()
    if task.costs.is_computed:
        task = task.with_costs(task.costs.stored())
    if dense_engine.takes(task):
        return dense_engine.run(task)
    return shortest_augmenting_path.run(task)
