"""Full, maximum and any: all that can be asked for, made from one problem.

What is solved
--------------
An algorithm solves a `problem` of `gpumatch.costs`, as `gpumatch.contracts` states: each of n rows
wants one of m >= n columns at least total cost, or may go without one at the price of a limit.
Everything else is made from that, and the proofs too (`gpumatch.verify` checks them). They are
stated here for costs to be minimised, with x_ij = 1 for matched pairs:

``"full"``, n <= m
    The problem itself; the transposed one if n > m. Proof: its duals. For any full
    assignment, sum(c x) >= sum((u_i + v_j) x_ij) >= sum(u) + sum(v), which is the objective.
``"any"`` and ``cost_limit`` L (0 for ``"any"``)
    The problem with limit L, and L subtracted from the row duals: u_i + v_j <= c_ij - L with
    equality on matched pairs, u <= 0 and v <= 0, and 0 for unmatched vertices. For any assignment
    of k pairs, sum(c x) - k L >= sum(u) + sum(v), which is reached. With a ``cost_limit``, no two
    unmatched vertices are left whose pair costs L or less (`gpumatch.problems.at_limit`).
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
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from gpumatch import contracts
from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import TOO_LARGE, Costs, check_sums
from gpumatch.dispatch.arguments import check_one_of
from gpumatch.dispatch.by_device import count_matched, cover_for, no_mates
from gpumatch.dispatch.registry import STARTS, table
from gpumatch.problems.at_limit import join_at_limit
from gpumatch.problems.initial import initial_pairs

Cardinality = Literal["full", "maximum", "any"]
CARDINALITIES = get_args(Cardinality)
NODES_NAMED = 5  # of each side, in an error

Run = Callable[[AssignmentTask], bool]

# -- what is asked for -----------------------------------------------------------------------------


class Goal(NamedTuple):
    """What the caller wants, and whether rows and columns change places for it."""

    maximize: bool
    cardinality: str
    cost_limit: float | None
    transposed: bool

    @classmethod
    def of(cls, maximize: bool, cardinality: str, cost_limit: float | None, costs: Costs) -> Goal:
        check_one_of("cardinality", cardinality, CARDINALITIES)
        nrows, ncols = costs.shape
        limit = checked_limit(cost_limit, costs.is_integer, maximize)
        return cls(bool(maximize), cardinality, limit, nrows > ncols)

    @property
    def limit(self) -> float | None:
        """What it costs a row of the problem to go without, None if it must not."""
        if self.cardinality == "maximum":
            return None
        if self.cost_limit is None:
            return 0 if self.cardinality == "any" else None
        return -self.cost_limit if self.maximize else self.cost_limit

    def least_pairs(self, solution: Solution) -> float:
        """How many pairs there must be for the duals to bound what they cost."""
        if self.is_full:
            return len(solution.row_to_col)
        if self.cardinality != "maximum":
            return 0
        return math.inf if solution.cover is None else sum(map(len, solution.cover))

    @property
    def is_full(self) -> bool:
        """Whether every row of the problem must have a column."""
        return self.cardinality == "full" and self.cost_limit is None

    def problem(self, costs: Costs) -> Costs:
        problem = costs.problem(self.maximize, self.transposed)
        if self.cost_limit is None:
            return problem
        limit = -self.cost_limit if self.maximize else self.cost_limit
        if self.cardinality == "maximum":
            return problem.up_to(limit)
        if problem.is_integer and isinstance(limit, float):
            problem = problem.as_float()
        check_sums(max(problem.largest, abs(limit)), min(problem.shape))
        return problem


def checked_limit(cost_limit: Any, is_integer: bool, maximize: bool) -> float | None:
    """The limit: for integer costs an int if it is integral, else a float; None: there is none."""
    if cost_limit is None:
        return None
    if type(cost_limit) is float and not is_integer and math.isfinite(cost_limit):
        return cost_limit  # a tracker's: this is asked thousands of times a second
    if getattr(cost_limit, "ndim", None) == 0:
        cost_limit = cost_limit.item()
    if isinstance(cost_limit, bool) or not isinstance(cost_limit, Real):
        raise TypeError(
            f"cost_limit must be None, a number, or one for each row; got {cost_limit!r}"
        )
    if cost_limit == (-math.inf if maximize else math.inf):
        return None  # it leaves no pair out
    if is_integer and isinstance(cost_limit, Integral):
        return int(cost_limit)
    try:
        value = float(cost_limit)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"cost_limit must be None or finite; got {cost_limit!r}")
    if is_integer and value.is_integer() and abs(value) < TOO_LARGE:
        return int(value)
    return value


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
    """The first nodes of a list."""
    shown = ", ".join(map(repr, nodes[:NODES_NAMED])) or "none"
    return shown + ", …" * (len(nodes) > NODES_NAMED)


# -- what it begins from ---------------------------------------------------------------------------


def begin_with_pairs(
    initial: Any, goal: Goal, shape: tuple[int, int], problem: Costs, mates: tuple[Any, Any]
) -> None:
    """Put the pairs of `initial` that the problem allows into its mates; None has no pairs."""
    if initial is None:
        return
    rows, cols = initial_pairs(initial, shape, problem.xp)
    if goal.transposed:
        rows, cols = cols, rows
    allowed = problem.allows(rows, cols)
    mates[0][rows[allowed]] = cols[allowed]
    mates[1][cols[allowed]] = rows[allowed]


# -- how it is reached -----------------------------------------------------------------------------


def solve(run: Run, task: AssignmentTask, goal: Goal) -> bool:
    """Reach the goal with an algorithm for full problems; False when stopped."""
    solved = _solve_maximum if goal.cardinality == "maximum" else _solve_problem
    ended = solved(run, task)
    if ended:
        join_pairs_at_limit(task, goal)
    return ended


def hall_violator(task: AssignmentTask, goal: Goal) -> tuple[Any, Any] | None:
    """Rows and columns that show that no full assignment exists; None when stopped.

    They are what the cover of a maximum matching leaves out.
    """
    cover = _least_cover(task)
    return None if cover is None else violator_of(cover, goal)


def violator_of(cover: tuple[Any, Any], goal: Goal) -> tuple[Any, Any]:
    """The same, given which rows and columns of the problem the cover has."""
    rows, cols = (~cover[0]).nonzero()[0], cover[1].nonzero()[0]
    return (cols, rows) if goal.transposed else (rows, cols)


def finish(run: Run, task: AssignmentTask, goal: Goal) -> bool:
    """Let an algorithm of the host go on from the pairs and prices of an assignment; its answer.

    Without memory for that, all stays as it is.
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
    """Join unmatched vertices whose pairs the limit allows; "any" alone leaves those of 0 out."""
    if goal.cost_limit is not None and goal.limit is not None:
        join_at_limit(task.costs, goal.limit, task.mates, task.threads)


def _solve_problem(run: Run, task: AssignmentTask) -> bool:
    """Run the algorithm, which alone can say that its duals are feasible."""
    task.solution.has_duals = False
    return run(task)


def _solve_maximum(run: Run, task: AssignmentTask) -> bool:
    """The full problem if it is feasible, else the two that a vertex cover makes of it."""
    solution = task.solution
    nrows = task.costs.shape[0]
    if task.may_be_infeasible:
        ended = _solve_problem(run, task)
        if count_matched(solution.row_to_col) == nrows:
            solution.cover = solution.xp.arange(nrows), solution.xp.arange(0)
        if task.control.stopped or count_matched(solution.row_to_col) == nrows:
            return ended
        task = dataclasses.replace(task, may_be_infeasible=False)
        solution.has_duals = False
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
    """Match the cover's rows to columns outside it, its columns to rows outside it.

    Both parts begin from the pairs and prices that the solution has there.
    """
    whole = task.solution
    whole.has_duals = False
    sides = (
        (in_rows.nonzero()[0], (~in_cols).nonzero()[0]),
        (
            (~in_rows).nonzero()[0],
            in_cols.nonzero()[0],
        ),
    )
    ended, have_duals = True, True
    for turned, (rows, cols) in enumerate(sides):
        part = task.costs.restricted(rows, cols)
        solution = _part_of(whole, rows, cols)
        if turned:
            part, solution = part.transpose(), solution.transpose()
        ended &= _solve_problem(run, dataclasses.replace(task, costs=part, solution=solution))
        _take(whole, rows, cols, solution.transpose() if turned else solution)
        have_duals &= solution.has_duals
        if task.control.stopped and not turned:
            return False
    whole.has_duals = have_duals
    return ended


def _part_of(whole: Solution, rows: Any, cols: Any) -> Solution:
    """Copies of the pairs and prices that a solution has in these rows and columns."""
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
    """No pairs, and prices of 0, where the problem is."""
    if not problem.on_device:
        return Solution.empty(problem.shape, is_integer=problem.is_integer)
    number = np.int64 if problem.is_integer else np.float64
    return Solution(*no_mates(problem), *(problem.xp.zeros(size, number) for size in problem.shape))


def _take(whole: Solution, rows: Any, cols: Any, part: Solution) -> None:
    """Write the solution of the problem restricted to these rows and columns."""
    own = (part.row_to_col >= 0).nonzero()[0]
    mates = part.row_to_col[own]
    whole.row_to_col[rows] = whole.col_to_row[cols] = -1  # whatever was there before
    whole.row_to_col[rows[own]] = cols[mates]
    whole.col_to_row[cols[mates]] = rows[own]
    whole.row_dual[rows] = part.row_dual
    whole.col_dual[cols] = part.col_dual


def _least_cover(task: AssignmentTask) -> tuple[Any, Any] | None:
    """Extend to a maximum matching; a vertex cover as bool arrays, None when stopped."""
    graph = task.costs.pattern()
    where = "cuda" if graph.on_device else "cpu"
    matching = task.matching(graph, *task.mates)
    for home in (STARTS["cheap"][where], table("matching")["engine"].homes[where]):
        if not home.run_with({})(matching):
            return None
    return cover_for(graph)(graph, *task.mates)
