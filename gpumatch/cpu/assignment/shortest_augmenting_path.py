"""Assignment by shortest augmenting paths: Jonker and Volgenant's algorithm, dense and sparse.

The prices start from the columns' least costs if all must be matched (column reduction), else from
0. Then rows bid for columns, a limited number of times (augmenting row reduction). Each row that is
left gets a shortest augmenting path. There is no tolerance: a search ends because every column
joins its tree once, whatever the rounding is.

O(n²m) for n <= m rows and columns, dense, and O(n (e log m)) for e sparse entries; far less if
costs are spread out. It uses one thread, and the result does not depend on the seed.

References
----------
Jonker, Volgenant, *A shortest augmenting path algorithm for dense and sparse linear assignment
problems*, Computing 38, 1987.
"""

from __future__ import annotations

from gpumatch.contracts import AssignmentTask
from gpumatch.cpu.assignment.either.paths import paths_of

__all__ = ["run"]


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    control, solution = task.control, task.solution
    solution.has_duals = False
    paths = paths_of(task)
    try:
        return paths.begin(control) and paths.bid(control) and paths.augment(control)
    finally:
        paths.write_duals(*task.duals)
        solution.has_duals = solution.are_fair = True
