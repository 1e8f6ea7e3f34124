"""Deep Greedy Switching: a quick assignment, usually within a percent of the best.

From an assignment of agents to jobs (here rows and columns), the best exchange of every agent and
of every job is looked up. The best of all is made, the vertices that took part look again, and so
on until no exchange gains anything (Roverso et al. 2010, Algorithms 1 and 2). Then giving one row
another column does not make the result better, even if that column's row gets the first row's.

The two evaluations are one, on the costs and on their transpose. Let sigma be the mates. Vertex v
looks at each w on the other side, and at the change if v takes w and w's mate takes sigma(v):

    gain = c(v, sigma(v)) + c(sigma(w), w) - c(v, w) - c(sigma(w), sigma(v))

A vertex without a mate costs its ``idle`` price: 0 for a column, for a row the limit if there is
one. With a limit a row may also drop its column. A forbidden pair costs inf, and no exchange leads
to one. If all rows must be assigned and some pairs are forbidden, the start is completed to a
maximum matching first, so a full assignment is found if there is one.

Gains are kept until a vertex takes part in an exchange, and may be out of date by then. So an
exchange is made only if it still gains something. When no kept exchange remains, all vertices are
looked up again, until that finds nothing. Each exchange lowers the cost, even as
rounded sums of two, so the algorithm ends.

`entries` is what kernels read, `start` makes the first assignment, `exchanges` has the kernels,
`switching` the loop around them, and `relaxation` the duals.

O(nm) for looking up all, O(n + m) for each exchange. Memory: the costs twice, because the columns
are read as often as the rows.

References
----------
Roverso, Naiem, El-Beltagy, El-Ansary, Haridi, *A GPU-enabled solver for time-constrained linear sum
assignment problems*, INFOS 2010.
Naiem, El-Beltagy, *Deep greedy switching: a fast and simple approach for linear assignment
problems*, ICNAAM 2009.
"""

from __future__ import annotations

from gpumatch.contracts import AssignmentTask
from gpumatch.cpu.assignment.dgs.relaxation import begin_bound, bound
from gpumatch.cpu.assignment.dgs.start import start_from
from gpumatch.cpu.assignment.dgs.switching import Differences, Evaluation, switch_until_none
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["run"]


def run(task: AssignmentTask, *, start: str = "random") -> bool:
    """Assign the rows, and bound what better assignments cost; see `gpumatch.contracts`.

    Parameters
    ----------
    start : {"random", "greedy"}
        Give each row an unmatched column at random, if it may take it; or give each, in random
        order, the cheapest one. Rows that must have a column and got none are matched anyhow.

    Returns
    -------
    bool
        True if no exchange gains anything, or no full assignment exists; False if stopped.
    """
    costs, limit, control = task.costs, task.limit, task.control
    row_to_col, col_to_row = task.mates
    price = begin_bound(task)
    if not start_from(start, task):
        return False
    if row_to_col.size == 0 or (limit is None and (row_to_col < 0).any()):
        return True
    differences = Differences(costs, row_to_col, col_to_row, price.dtype.type, limit)
    with Workers(task.threads, costs.nnz) as workers:
        if not switch_until_none(differences, Evaluation(differences, workers, control), control):
            return False
    with control.part("bound"):
        return bound(task, price)
