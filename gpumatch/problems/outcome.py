"""The outcome of a run: what its pairs cost, what its duals prove, and the caller's result."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from gpumatch.contracts import AssignmentTask
from gpumatch.costs import Costs
from gpumatch.dispatch.by_device import count_matched
from gpumatch.numeric.arrays import array_of
from gpumatch.numeric.exact_sums import magnitude, nearer, summands
from gpumatch.numeric.gaps import Magnitudes, Proof, proof_of, undercut
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
    """

    costs: Any
    terms: list[Any]
    proof: Proof

    @property
    def has_gap(self) -> bool:
        """Whether the duals leave a gap that exact paths may close."""
        return not self.proof.proven and 0 < self.proof.gap < math.inf

    @classmethod
    def of(cls, task: AssignmentTask, goal: Goal, has_ended: bool) -> Outcome:
        """The outcome of a task.

        `has_ended` is True if an exact algorithm has ended by itself. A run may have been stopped
        with a proven solution. Then pairs that cost the limit are joined first.
        """
        found = cls._now(task, goal, has_ended)
        if has_ended or not found.proof.proven:
            return found
        join_pairs_at_limit(task, goal)
        return cls._now(task, goal, has_ended)

    @classmethod
    def _now(cls, task: AssignmentTask, goal: Goal, has_ended: bool) -> Outcome:
        problem, solution = task.costs, task.solution
        size, limit = count_matched(solution.row_to_col), goal.limit
        costs = problem.of_mates(solution.row_to_col, task.threads)
        near = nearer(costs)
        terms = summands(near)
        if not (solution.has_duals and size >= goal.least_pairs(solution)):
            return cls(costs, terms, Proof(math.inf, False))
        row_dual, col_dual = solution.row_dual, nearer(solution.col_dual)
        if limit is not None:
            row_dual = row_dual - row_dual.dtype.type(limit)
        row_dual = nearer(row_dual)
        base = 0 if limit is None else limit
        duals = summands(row_dual) + summands(col_dual)
        proof = proof_of(
            [*terms, -base * size, *(-dual for dual in duals)],
            len(solution.row_to_col),
            has_ended=has_ended,
            is_integer=problem.is_integer,
            magnitudes=lambda: Magnitudes(
                max(magnitude(near), abs(base)), max(map(magnitude, (row_dual, col_dual)))
            ),
            undercut=lambda: undercut(problem, *solution.duals, solution.cover),
        )
        return cls(costs, terms, proof)


def assigned(
    given: Costs, goal: Goal, task: AssignmentTask, outcome: Outcome, stats: dict[str, Any]
) -> Assignment:
    """The Assignment with the caller's rows, columns, signs and kind of arrays."""
    problem, solution = task.costs, task.solution
    costs, terms, (gap, proven) = outcome
    if goal.limit is not None:
        solution.row_dual -= solution.row_dual.dtype.type(goal.limit)
    if gap == math.inf:
        solution.cover = None
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
        objective=sign * (sum if problem.is_integer else math.fsum)(terms),
        gap=gap,
        proven=proven,
        maximize=goal.maximize,
        cardinality=goal.cardinality,
        cost_limit=goal.cost_limit,
        cover=seen.cover and (array(seen.cover[0]), array(seen.cover[1])),
        labels=given.labels,
        stats=stats,
    )
