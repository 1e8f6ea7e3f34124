"""The cardinalities ``"full"``, ``"maximum"`` and ``"any"``, all made from one problem.

What is solved
--------------
An algorithm solves a `problem` of `gpumatch.costs`, as `gpumatch.contracts` states: each of n rows
wants one of m >= n columns at least total cost, or may stay unmatched at the cost of a limit.
Each cardinality is made from that problem, and so is its proof, which `gpumatch.verify` checks.
Both are stated here for costs to be minimised, with x_ij = 1 for matched pairs:

``"full"``, n <= m
    The problem itself; the transposed one if n > m. Proof: its duals. For any full
    assignment, sum(c x) >= sum((u_i + v_j) x_ij) >= sum(u) + sum(v), which is the objective.
``"any"`` and ``cost_limit`` L (0 for ``"any"``)
    The problem with limit L, and L subtracted from the row duals: u_i + v_j <= c_ij - L with
    equality on matched pairs, u <= 0 and v <= 0, and 0 for unmatched vertices. For any assignment
    of k pairs, sum(c x) - k L >= sum(u) + sum(v), with equality for the result. With a
    ``cost_limit``, no pair of two unmatched vertices costs L or less
    (`gpumatch.problems.at_limit`).
``"maximum"``
    A maximum matching and its vertex cover of k rows and columns (König). Every assignment of k
    pairs joins each row of the cover to a column outside it and each column of the cover to a row
    outside it. So these are two separate full problems. Proof: the cover; u_i + v_j <= c_ij unless
    both are in the cover, with equality on matched pairs; outside the cover, u <= 0 and v <= 0,
    and 0 for unmatched vertices. A cost limit first forbids all pairs above it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch import contracts
from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import Costs
from gpumatch.dispatch.by_device import count_matched, cover_for, no_mates
from gpumatch.dispatch.registry import STARTS, table
from gpumatch.problems.at_limit import join_at_limit
from gpumatch.problems.initial import initial_pairs
from gpumatch.problems.request import Goal

NODES_NAMED = 5  # of each side, in an error

Run = Callable[[AssignmentTask], bool]


class InfeasibleError(ValueError):
    """No full assignment exists.

    Attributes
    ----------
    rows, cols : int arrays, or lists of nodes for a networkx graph
        A Hall violator and its neighbours. If there are no more rows than columns, `rows` may be
        assigned to `cols` only, and `cols` are fewer; otherwise the other way round.
    problem : int, optional
        The number of the problem in a batch.
    """

    def __init__(self, rows: Any, cols: Any, problem: int | None = None) -> None:
        sides = [("rows", rows), ("columns", cols)]
        (few, least), (many, most) = sorted(sides, key=lambda side: len(side[1]))
        which = f": {_names(most)} to {_names(least)}" if isinstance(rows, list) else ""
        super().__init__(
            ("" if problem is None else f"problem {problem}: ")
            + f"the costs are infeasible: {len(most)} {many} may be assigned to {len(least)} {few} "
            f"only, so no full assignment exists{which}"
        )
        self.rows, self.cols, self.problem = rows, cols, problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rows, self.cols, self.problem)


def _names(nodes: list[Any]) -> str:
    """Return the first nodes of a list."""
    shown = ", ".join(map(repr, nodes[:NODES_NAMED])) or "none"
    return shown + ", …" * (len(nodes) > NODES_NAMED)


# -- where a run begins ----------------------------------------------------------------------------


def begin_with_pairs(
    initial: Any, goal: Goal, shape: tuple[int, int], problem: Costs, mates: tuple[Any, Any]
) -> None:
    """Put the pairs of `initial` that the problem allows into its mates. None has no pairs."""
    if initial is None:
        return
    rows, cols = initial_pairs(initial, shape, problem.xp)
    if goal.transposed:
        rows, cols = cols, rows
    allowed = problem.allows(rows, cols)
    mates[0][rows[allowed]] = cols[allowed]
    mates[1][cols[allowed]] = rows[allowed]


# -- how the goal is reached -----------------------------------------------------------------------


def solve(run: Run, task: AssignmentTask, goal: Goal) -> bool:
    """Reach the goal with an algorithm for full problems; False if the run was stopped."""
    solved = _solve_maximum if goal.cardinality == "maximum" else _solve_problem
    ended = solved(run, task)
    if ended:
        join_pairs_at_limit(task, goal)
    return ended


def hall_violator(task: AssignmentTask, goal: Goal) -> tuple[Any, Any] | None:
    """Rows and columns that show that no full assignment exists; None if the run was stopped.

    The rows are those outside the cover of a maximum matching, and the columns those inside.
    """
    cover = _least_cover(task)
    return None if cover is None else violator_of(cover, goal)


def violator_of(cover: tuple[Any, Any], goal: Goal) -> tuple[Any, Any]:
    """Return the Hall violator and its neighbours; `cover` marks rows and columns of a cover."""
    rows, cols = (~cover[0]).nonzero()[0], cover[1].nonzero()[0]
    return (cols, rows) if goal.transposed else (rows, cols)


def finish(run: Run, task: AssignmentTask, goal: Goal) -> bool:
    """Let an algorithm of the host go on from the pairs and duals of an assignment.

    Returns what the algorithm returns. If there is too little memory, the assignment does not
    change, and the result is True.
    """
    solution, cover = task.solution, task.solution.cover
    if goal.cardinality != "maximum" or cover is None or len(cover[0]) == len(solution.row_to_col):
        ended = _finish_problem(run, task)
        join_pairs_at_limit(task, goal)  # the paths may have parted such pairs
        return ended
    xp = solution.xp
    marks = [xp.zeros(len(mates), bool) for mates in solution.mates]
    for mark, side in zip(marks, cover):
        mark[side] = True
    return _solve_parts(functools.partial(_finish_problem, run), task, *marks)


def _finish_problem(run: Run, task: AssignmentTask) -> bool:
    costs = task.costs
    own = dataclasses.replace(task, solution=task.solution.copy())
    own.solution.are_fair = False
    try:
        if not costs.on_device:
            ended = run(own)
        elif costs.has_matrix or costs.is_sparse:
            ended = own.run_on_host(run)
        else:
            return True
    except MemoryError:
        return True
    task.solution.assign_from(own.solution)
    return ended


def join_pairs_at_limit(task: AssignmentTask, goal: Goal) -> None:
    """Join unmatched vertices whose pairs the limit allows. ``"any"`` itself joins no pair of 0."""
    if goal.cost_limit is not None and goal.limit is not None:
        join_at_limit(task.costs, goal.limit, task.mates, task.threads)


def _solve_problem(run: Run, task: AssignmentTask) -> bool:
    """Run the algorithm. Only it can say that its duals are feasible."""
    task.solution.has_duals = task.solution.are_fair = False
    return run(task)


def _solve_maximum(run: Run, task: AssignmentTask) -> bool:
    """Solve the full problem if it is feasible, else the two that a vertex cover makes of it."""
    solution = task.solution
    nrows = task.costs.shape[0]
    if task.may_be_infeasible:
        ended = _solve_problem(run, task)
        if count_matched(solution.row_to_col) == nrows:
            solution.cover = solution.xp.arange(nrows), solution.xp.arange(0)
        if task.control.stopped or count_matched(solution.row_to_col) == nrows:
            return ended
        task = dataclasses.replace(task, may_be_infeasible=False)
        solution.has_duals = solution.are_fair = False
        solution.row_dual[:] = solution.col_dual[:] = 0
    if not task.costs.is_complete:
        cover = _least_cover(task)
        if cover is None:
            return False
        if count_matched(solution.row_to_col) < nrows:
            in_rows, in_cols = cover
            solution.clear()
            ended = _solve_parts(run, task, in_rows, in_cols)
            solution.cover = in_rows.nonzero()[0], in_cols.nonzero()[0]
            return ended
    solution.cover = solution.xp.arange(nrows), solution.xp.arange(0)
    return _solve_problem(run, task)


def _solve_parts(run: Run, task: AssignmentTask, in_rows: Any, in_cols: Any) -> bool:
    """Match the cover's rows to columns outside it, and its columns to rows outside it.

    Both parts begin from the pairs and duals that the solution has there.
    """
    whole = task.solution
    whole.has_duals = whole.are_fair = False
    sides = (
        (in_rows.nonzero()[0], (~in_cols).nonzero()[0]),
        ((~in_rows).nonzero()[0], in_cols.nonzero()[0]),
    )
    ended, have_duals, are_fair = True, True, True
    for turned, (rows, cols) in enumerate(sides):
        part = task.costs.restricted(rows, cols)
        solution = _part_of(whole, rows, cols)
        if turned:
            part, solution = part.transpose(), solution.transpose()
        ended &= _solve_problem(run, dataclasses.replace(task, costs=part, solution=solution))
        _take(whole, rows, cols, solution.transpose() if turned else solution)
        have_duals &= solution.has_duals
        are_fair &= solution.are_fair
        if task.control.stopped and not turned:
            return False
    whole.has_duals, whole.are_fair = have_duals, are_fair
    return ended


def _part_of(whole: Solution, rows: Any, cols: Any) -> Solution:
    """Copies of the pairs and duals that a solution has in these rows and columns."""
    xp = whole.xp
    own = Solution(
        xp.full(len(rows), -1, np.int32),
        xp.full(len(cols), -1, np.int32),
        whole.row_dual[rows],
        whole.col_dual[cols],
    )
    place = xp.full(len(whole.col_to_row), -1, np.int32)
    place[cols] = xp.arange(len(cols), dtype=np.int32)
    mates = whole.row_to_col[rows]
    matched = (mates >= 0).nonzero()[0]
    inside = place[mates[matched]]
    matched, inside = matched[inside >= 0], inside[inside >= 0]
    own.row_to_col[matched], own.col_to_row[inside] = inside, matched.astype(np.int32)
    return own


def empty_solution(problem: contracts.Costs) -> Solution:
    """Return a solution without pairs, with duals of 0, on the problem's device."""
    if not problem.on_device:
        return Solution.empty(problem.shape, is_integer=problem.is_integer)
    number = np.int64 if problem.is_integer else np.float64
    return Solution(*no_mates(problem), *(problem.xp.zeros(size, number) for size in problem.shape))


def _take(whole: Solution, rows: Any, cols: Any, part: Solution) -> None:
    """Write the solution of the problem restricted to these rows and columns."""
    own = (part.row_to_col >= 0).nonzero()[0]
    mates = part.row_to_col[own]
    whole.row_to_col[rows] = whole.col_to_row[cols] = -1  # the pairs from before
    whole.row_to_col[rows[own]] = cols[mates]
    whole.col_to_row[cols[mates]] = rows[own]
    whole.row_dual[rows] = part.row_dual
    whole.col_dual[cols] = part.col_dual


def _least_cover(task: AssignmentTask) -> tuple[Any, Any] | None:
    """Extend the pairs to a maximum matching, and return its vertex cover as bool arrays.

    None if the run was stopped.
    """
    graph = task.costs.pattern()
    where = "cuda" if graph.on_device else "cpu"
    matching = task.matching(graph, *task.mates)
    for home in (STARTS["cheap"][where], table("matching")["engine"].homes[where]):
        if not home.run_with({})(matching):
            return None
    return cover_for(graph)(graph, *task.mates)
