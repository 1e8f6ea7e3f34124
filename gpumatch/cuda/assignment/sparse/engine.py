"""The GPU's engine for sparse costs: prices by auctions, then alternating trees, all in CSR.

It has three steps, each wholly on the device:

1. A trial (`trial.py`) makes the least cost of each column its dual. If that matches nearly all
   rows, no auction is held. Otherwise auctions with falling epsilon (`auction.py`) find the duals.
   Each ends when all but a few rows are matched, because these few would take most of the time.
   Only the prices are kept. They are nearly optimal for nearly all rows.
2. Each row's dual becomes its least reduced cost, and rows are matched to tight columns. From this
   step on all is exact: integers are int64, and other costs are rounded only as float64 is.
3. Alternating trees (`trees.py`) grow from all unmatched rows. If there are more columns than rows,
   trees then grow from spare rows, which take the columns that stay unmatched.

If there are many more columns than rows, rows first bid without an epsilon, which leaves the price
0 to columns that nobody wants. If that is given up, unmatched columns bid for rows after each
auction.

If there is a limit, `full.py` gives each row a column of its own, to which it is matched if it
stays unmatched. If duals are given, no auctions are held.

Device memory in addition to the costs: at most 130 bytes a row and 180 a column. With a limit, it
is 64 bytes a row and 48 an entry more, and there is one more column for each row. Columns bid only
if there is memory for the transposed costs, of 12 bytes an entry.
"""

from __future__ import annotations

import math

import cupy as cp

from gpumatch.contracts import AssignmentTask, Control, Costs
from gpumatch.cuda import memory
from gpumatch.cuda.assignment.sparse.auction import hold_auctions
from gpumatch.cuda.assignment.sparse.full import FullProblem
from gpumatch.cuda.assignment.sparse.problem import Problem, write_fair_rows
from gpumatch.cuda.assignment.sparse.trees import Trees
from gpumatch.cuda.assignment.sparse.trial import run_trial
from gpumatch.cuda.assignment.sparse.tuning import Trial, Tuning
from gpumatch.numeric.arrays import any_true
from gpumatch.numeric.auction_schedule import close_gaps

__all__ = ["bytes_needed", "fits", "has_duals", "run", "solve_anew", "takes"]

_MOST_SUM = 2**60  # of the ranges of all rows, if costs are integers
_BYTES_A_ROW, _BYTES_A_COLUMN = 130, 180  # if trees begin from all rows


def takes(costs: Costs, limit: float | None) -> bool:
    """True if the costs are sparse, and sums of integer costs fit into 64 bits."""
    return costs.is_sparse and fits(costs, limit)


def fits(costs: Costs, limit: float | None) -> bool:
    """True unless sums of integer costs may exceed 64 bits.

    Let S be the rows times the range of the costs, and let prices fall by at most 2**58
    (`offers.SAFE`). A path has a cost and takes back one for each row, so its distance is within S
    + 2**59. Duals of columns are within that and 2**58, and so are those of rows without their
    least cost. The distance of a label has three such terms. For S below 2**60 it fits.
    """
    if not costs.is_integer:
        return True
    ends = [costs.low, costs.high] + ([] if limit is None else [limit])
    return (costs.shape[0] + 1) * (math.floor(max(ends)) - math.floor(min(ends)) + 1) < _MOST_SUM


def run(task: AssignmentTask, span: float = math.inf, tuning: Tuning | None = None) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped.

    `span` bounds the distances of paths, if the caller knows. Epsilons and bounds of trees begin
    there then.

    The order in which the device runs its threads decides which of several optimal assignments is
    found. `task.seed` and `task.threads` do not influence it.
    """
    costs = task.costs
    task.solution.has_duals = False
    if costs.shape[0] == 0:
        task.solution.col_dual[:] = 0
        task.solution.has_duals = task.solution.are_fair = True
        return True
    memory.require_memory(bytes_needed(costs, task.limit), "the engine for sparse costs")
    problem = Problem(FullProblem.of(costs, task.limit), span=span, tuning=tuning)
    try:
        return _solve(problem, task)
    finally:
        _write(problem, task)


def has_duals(task: AssignmentTask) -> bool:
    """True if a column has a dual to begin from, which a fresh task's columns have not."""
    return not task.is_fresh and any_true(task.solution.col_dual != 0)


def _solve(problem: Problem, task: AssignmentTask) -> bool:
    """Match the rows of the problem, from the task's pairs and duals; True unless stopped."""
    solution, control = task.solution, task.control
    given = solution.row_to_col
    if not has_duals(task):
        return solve_anew(problem, given, problem.tuning.trial, control)
    problem.col_dual[:] = problem.full.duals_of(solution.col_dual)
    with control.part("first pairs"):
        problem.take_tight_pairs(given)
    return _end_by_trees(problem, control)


def solve_anew(problem: Problem, given: cp.ndarray | None, trial: Trial, control: Control) -> bool:
    """Match the rows without given duals; True unless stopped.

    `given` may have pairs, as the column of each row.
    """
    has_grown = run_trial(problem, given, trial, control)
    if control.stopped:
        return False
    if has_grown:
        return _end_by_spares(problem, control)
    with control.part("auctions"):
        hold_auctions(problem, control)
    with control.part("first pairs"):
        problem.take_tight_pairs(given)
    return not control.stopped and _end_by_trees(problem, control)


def _end_by_trees(problem: Problem, control: Control) -> bool:
    """Match the unmatched rows by trees, then move the unmatched columns to the highest duals."""
    with control.part("trees"):
        has_grown = Trees.of_rows(problem).grow(control)
    return has_grown and _end_by_spares(problem, control)


def _end_by_spares(problem: Problem, control: Control) -> bool:
    """Move the unmatched columns to the highest duals, by spare rows, if all rows are matched."""
    nrows, ncols = problem.full.shape
    if nrows == ncols or problem.count_unmatched():
        return True
    with control.part("trees"):
        return Trees.of_spares(problem).grow(control)


def bytes_needed(costs: Costs, limit: float | None) -> int:
    """Return a bound of the device memory in addition to the costs."""
    nrows, ncols = costs.shape
    if limit is not None:
        ncols += nrows
    vertices = _BYTES_A_ROW * nrows + _BYTES_A_COLUMN * ncols
    return FullProblem.bytes_needed(costs, limit) + vertices


def _write(problem: Problem, task: AssignmentTask) -> None:
    """Write pairs and duals to the task's solution.

    The duals of the rows are computed from those of the columns and rounded down, so that no slack
    is negative.
    """
    costs, solution = task.costs, task.solution
    problem.write_back(solution)
    largest = max(costs.largest, 0 if task.limit is None else abs(task.limit))
    farthest = 2 * (costs.shape[0] + 1) * largest
    if costs.shape[1] and -solution.col_dual.min().item() > farthest:  # which int64 may not hold
        solution.col_dual[:] = close_gaps(solution.col_dual, 2 * largest)
    write_fair_rows(costs, solution)
    if task.limit is not None:
        solution.row_dual[cp.diff(costs.entries()[0]) == 0] = task.limit
        cp.minimum(solution.row_dual, task.limit, out=solution.row_dual, casting="unsafe")
    solution.has_duals = solution.are_fair = True
