"""Our own engine for costs on the CPU: which of its three forms, or neither, a problem gets.

- Sparse costs: `sparse.engine`, an auction for the duals and exact paths for the proof.
- Costs that are computed, if there are many: `points.engine`, which needs no matrix.
- Dense costs that are many, not all equal, and exact in float64: `dense.engine`, which reads few
  lines of the matrix.
- All other dense costs: `shortest_augmenting_path`. If they are few, it takes milliseconds.

Pairs and prices to begin with are dropped if a matrix is solved sooner without (`dense.start`).

Each form is imported when a problem asks for it: all of them take a new process 0.05 s.
"""

from __future__ import annotations

from gpumatch.contracts import AssignmentTask
from gpumatch.cpu.assignment.dense import start
from gpumatch.numeric.arrays import count_matched
from gpumatch.running.interrupts import InterruptsHeld

__all__ = ["run"]


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    if task.costs.is_sparse:
        return _run_sparse(task)
    if task.costs.is_computed:
        ended = _run_points(task)
        if ended is not None:
            return ended
        task = task.with_costs(task.costs.stored())
    if start.helps(task):
        return _run_dense(task)
    return _run_afresh(task)


def _run_sparse(task: AssignmentTask) -> bool:
    with InterruptsHeld():
        from gpumatch.cpu.assignment.sparse import engine
    return engine.run(task)


def _run_points(task: AssignmentTask) -> bool | None:
    """The same for computed costs; None if the matrix is to be solved instead."""
    with InterruptsHeld():
        from gpumatch.cpu.assignment.points import engine
    if not engine.takes(task):
        return None
    ended = engine.run(task, run)
    if ended is None:
        task.solution.clear()
    return ended


def _run_dense(task: AssignmentTask) -> bool:
    with InterruptsHeld():
        from gpumatch.cpu.assignment import shortest_augmenting_path
        from gpumatch.cpu.assignment.dense import engine
    if engine.takes(task):
        return engine.run(task)
    return shortest_augmenting_path.run(task)


def _run_afresh(task: AssignmentTask) -> bool:
    """Begin from nothing; if the run is stopped with no more pairs than were there, keep these."""
    before, has_ended = task.solution.copy(), False
    task.solution.clear()
    try:
        has_ended = _run_dense(task)
    finally:
        sizes = (count_matched(part.row_to_col) for part in (before, task.solution))
        if not has_ended and next(sizes) >= next(sizes):
            task.solution.assign_from(before)
    return has_ended
