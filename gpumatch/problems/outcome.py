"""The outcome of a run: what its pairs cost, what its duals prove, and the caller's result."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from gpumatch.contracts import AssignmentTask, Rounding, Solution
from gpumatch.costs import Costs
from gpumatch.dispatch.by_device import count_matched
from gpumatch.numeric.arrays import any_true, array_module, array_of
from gpumatch.numeric.exact_sums import magnitude, nearer, summands, times
from gpumatch.numeric.fair_duals import difference_below, make_solution_fair
from gpumatch.numeric.gaps import Proof, check_duals, proof_of, rounding_above
from gpumatch.problems.cardinality import join_pairs_at_limit
from gpumatch.problems.request import Goal
from gpumatch.results.assignment import Assignment

__all__ = ["Outcome", "assigned"]


class Outcome(NamedTuple):
    """What the pairs of a solution cost, and what its duals prove.

    Attributes
    ----------
    costs : array
        Those of the matched rows.
    terms : list of numbers
        They have the same sum as the costs, and can be added up exactly.
    proof : Proof
    row_dual : array, optional
        The duals of the rows less the limit, if they bound the objective.
    """

    costs: Any
    terms: list[Any]
    proof: Proof
    row_dual: Any = None

    @property
    def has_gap(self) -> bool:
        """True if the duals leave a gap that exact paths may close."""
        gap, proven, is_coarse = self.proof
        return (is_coarse or not proven) and 0 < gap < math.inf

    def is_better_than(self, other: Outcome) -> bool:
        """True if it is proven, and the other is not or leaves a larger gap."""
        return self.proof.proven and not (other.proof.proven and other.proof.gap <= self.proof.gap)

    @classmethod
    def of(
        cls,
        task: AssignmentTask,
        goal: Goal,
        has_ended: bool,
        rounding: Rounding = Rounding(),  # noqa: B008  # it is immutable
    ) -> Outcome:
        """Return the outcome of a task, whose costs may be rounded so far.

        `has_ended` is True if an exact algorithm has ended by itself. A run may have been stopped
        with a proven solution. Then pairs that cost the limit are joined first.
        """
        found = cls._now(task, goal, has_ended, rounding)
        if has_ended or not found.proof.proven:
            return found
        join_pairs_at_limit(task, goal)
        return cls._now(task, goal, has_ended, rounding)

    @classmethod
    def _now(cls, task: AssignmentTask, goal: Goal, has_ended: bool, rounding: Rounding) -> Outcome:
        problem, solution = task.costs, task.solution
        size = count_matched(solution.row_to_col)
        costs = problem.of_mates(solution.row_to_col, task.threads)
        near = nearer(costs)
        terms = summands(near)
        if not (solution.has_duals and size >= goal.least_pairs(solution)):
            return cls(costs, terms, Proof(math.inf, False))
        if not (problem.is_integer or solution.are_fair):
            _check_duals(near, terms, size, task, goal)
            make_solution_fair(problem, solution, goal.limit, solution.cover)
        below, proof = _bound_by(near, terms, size, task, goal, has_ended, rounding)
        if not proof.proven and _raise_unmatched_rows(task, goal):
            make_solution_fair(problem, solution, goal.limit)
            below, proof = _bound_by(near, terms, size, task, goal, has_ended, rounding)
        return cls(costs, terms, proof, below)


def _bound_by(
    costs: Any,
    terms: list[Any],
    size: int,
    task: AssignmentTask,
    goal: Goal,
    has_ended: bool,
    rounding: Rounding,
) -> tuple[Any, Proof]:
    """Return the duals of the rows less the limit, and the proof of pairs with these costs."""
    problem, solution = task.costs, task.solution
    base = 0 if goal.limit is None else goal.limit
    below = _row_dual_below(solution, goal.limit)
    row_dual, col_dual = nearer(below), nearer(solution.col_dual)
    less = summands(-row_dual) + summands(-col_dual)

    def largest_dual() -> float:
        return max(
            magnitude(dual[array_of(array_module(dual), mates) >= 0])
            for dual, mates in zip((row_dual, col_dual), solution.mates)
        )

    proof = proof_of(
        [*terms, *times(-base, size), *less],
        size,
        has_ended=has_ended,
        is_integer=problem.is_integer,
        largest=lambda: max(magnitude(costs), abs(base) if size else 0),
        largest_dual=largest_dual,
        objective=0.0 if problem.is_integer else math.fsum(terms),
        rounding=rounding_above(
            rounding, min(problem.shape), float(abs(costs).sum()), abs(float(base))
        )
        if rounding.share
        else None,
    )
    return below, proof


def _check_duals(costs: Any, terms: list[Any], size: int, task: AssignmentTask, goal: Goal) -> None:
    """Check that the duals that an algorithm calls feasible are so, up to rounding."""
    limit, duals = goal.limit or 0, [nearer(dual) for dual in task.solution.duals]
    rows = len(task.solution.row_to_col) - size if goal.limit is not None else 0
    check_duals(
        [*terms, *times(limit, rows), *(-part for dual in duals for part in summands(dual))],
        len(task.solution.row_to_col),
        magnitude(costs) + abs(limit) + max(map(magnitude, duals)),
    )


def _row_dual_below(solution: Solution, limit: float | None) -> Any:
    """Return the duals of the rows less the limit; of floats, rounded down."""
    row_dual = solution.row_dual
    if not limit:
        return row_dual
    limit = row_dual.dtype.type(limit)
    return row_dual - limit if row_dual.dtype.kind == "i" else difference_below(row_dual, limit)


def _raise_unmatched_rows(task: AssignmentTask, goal: Goal) -> bool:
    """Raise the duals of unmatched rows to the limit if they are one float below; if any was.

    Rounding down has left them there. When they are raised, `make_solution_fair` lowers columns
    in their place: one column may serve many such rows.
    """
    solution = task.solution
    if goal.limit is None or solution.row_dual.dtype.kind == "i":
        return False
    below = math.nextafter(goal.limit, -math.inf)
    are_low = (solution.row_to_col < 0) & (solution.row_dual == below)
    if not any_true(are_low):
        return False
    solution.row_dual[are_low] = goal.limit
    solution.are_fair = False
    return True


def assigned(
    given: Costs, goal: Goal, task: AssignmentTask, outcome: Outcome, stats: dict[str, Any]
) -> Assignment:
    """Return the Assignment with the caller's rows, columns, signs and kind of arrays."""
    problem, solution = task.costs, task.solution
    costs, terms, (gap, proven, _), row_dual = outcome
    if goal.limit is not None:
        solution.row_dual = _row_dual_below(solution, goal.limit) if row_dual is None else row_dual
    if gap == math.inf:  # the duals prove nothing, and one of a row without pairs may be infinite
        solution.cover = None
        solution.row_dual[abs(solution.row_dual) == math.inf] = 0
    seen, costs = solution, costs.astype(solution.row_dual.dtype, copy=False)
    if goal.transposed:
        cols = solution.row_to_col[solution.row_to_col >= 0]
        seen, costs = solution.transpose(), costs[cols.argsort()]
    sign = -1 if goal.maximize else 1
    array = functools.partial(array_of, given.xp)

    def signed(values: Any) -> Any:
        return array(-values if goal.maximize else values)

    return Assignment(
        array(seen.row_to_col),
        array(seen.col_to_row),
        signed(seen.row_dual),
        signed(seen.col_dual),
        pair_costs=signed(costs),
        objective=sign * (sum if problem.is_integer else math.fsum)(terms) + 0,  # no -0.0
        gap=gap,
        proven=proven,
        maximize=goal.maximize,
        cardinality=goal.cardinality,
        cost_limit=goal.cost_limit,
        cover=seen.cover and (array(seen.cover[0]), array(seen.cover[1])),
        labels=given.labels,
        stats=stats,
    )
