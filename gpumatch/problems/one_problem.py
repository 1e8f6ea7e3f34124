"""One problem with at most one limit, solved by an algorithm of the registry."""

from __future__ import annotations

from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import Costs, as_costs, overflow_of_sums
from gpumatch.dispatch.backends import Choice, choose_assignment
from gpumatch.dispatch.by_device import count_matched
from gpumatch.dispatch.registry import FINISH, load
from gpumatch.problems import cardinality
from gpumatch.problems.cardinality import InfeasibleError, Run, begin_with_pairs, hall_violator
from gpumatch.problems.divided_costs import divided, is_divided_exactly, multiplied
from gpumatch.problems.initial import initial_duals
from gpumatch.problems.outcome import Outcome, assigned
from gpumatch.problems.request import Goal, Request
from gpumatch.results.assignment import Assignment
from gpumatch.results.pairs import in_nodes
from gpumatch.running.control import attach_result, converted_result

__all__ = ["solve"]


def solve(costs: Costs, request: Request) -> Assignment:
    """Return the assignment for these costs. If sums of floats overflow, they are divided first.

    So are distances of points so far or so near that their squares would overflow or lose digits.

    Raises
    ------
    InfeasibleError
        If no full assignment exists.
    TypeError, ValueError
        If numbers are too large, or the limit or the initial assignment does not fit the costs.
    """
    goal = request.goal(costs)
    if costs.is_integer and not isinstance(goal.cost_limit, float):
        as_costs(costs)  # which checks the sums
        power = 0
    else:
        limit = goal.cost_limit or 0
        power = overflow_of_sums(costs.extent, min(costs.shape), limit)
        if is_divided_exactly(limit, costs.power):
            power = costs.power or power
    if not power:
        return _solve(costs, request, goal)
    request = request._replace(cost_limit=goal.cost_limit)
    return converted_result(
        lambda: _solve_divided(costs, request, power),
        lambda a: multiplied(a, costs, goal.cost_limit, power),
    )


def _solve_divided(costs: Costs, request: Request, power: int) -> Assignment:
    costs, request = divided(costs, request, power)
    return _solve(costs, request, request.goal(costs))


def _solve(given: Costs, request: Request, goal: Goal) -> Assignment:
    """Return the assignment for costs whose sums do not overflow."""
    control = request.control
    choice = choose_assignment(request.algorithm, request.backend, request.options, given)
    with control.part("costs"):
        problem = goal.problem(given if choice.backend == "cuda" else given.to_host())
        if choice.backend == "cuda":
            problem = problem.to_device()
            if choice.algorithm.name != "engine":
                problem = problem.readable()
    run = choice.search()
    task = _task(problem, given.shape, request, goal, choice)
    stats = {**choice.names(), **choice.options}
    try:
        outcome = _run(run, task, goal, given, is_exact=choice.algorithm.exact)
    except KeyboardInterrupt as exc:
        outcome = Outcome.of(task, goal, False, given.rounding)
        attach_result(exc, assigned(given, goal, task, outcome, stats | control.statistics()))
        raise
    finally:
        if control.shows_bar:
            control.close(count_matched(task.solution.row_to_col))
    return assigned(given, goal, task, outcome, stats | control.statistics())


def _task(
    problem: Costs, shape: tuple[int, int], request: Request, goal: Goal, choice: Choice
) -> AssignmentTask:
    """Return what the algorithm gets. `shape` is that of the caller's costs."""
    initial, control = request.initial, request.control
    solution = cardinality.empty_solution(problem)
    if initial is not None:
        _begin_from(initial, goal, shape, problem, solution)
    control.total = problem.shape[0]
    return AssignmentTask(
        problem,
        solution,
        control,
        goal.limit,
        request.threads,
        request.seed,
        choice.fallback(),
        is_fresh=initial is None and not request.is_hard,
        may_be_infeasible=(
            goal.cardinality == "maximum"
            and choice.detects_infeasible
            and initial is None
            and problem.is_sparse
        ),
    )


def _begin_from(
    initial: object, goal: Goal, shape: tuple[int, int], problem: Costs, solution: Solution
) -> None:
    """Write the allowed pairs of `initial`, and its duals, into the solution."""
    begin_with_pairs(initial, goal, shape, problem, solution.mates)
    if isinstance(initial, Assignment):
        side = "row_dual" if goal.transposed else "col_dual"
        solution.col_dual[:] = initial_duals(
            initial, side, goal.maximize, shape, problem, goal.limit
        )


def _run(run: Run, task: AssignmentTask, goal: Goal, given: Costs, *, is_exact: bool) -> Outcome:
    """Run the algorithm. If it is exact, exact paths close a gap that is too large or coarse."""
    control = task.control
    with control.part("search"):
        has_ended = cardinality.solve(run, task, goal)
        size = count_matched(task.solution.row_to_col)
        if has_ended and goal.is_full and size < task.costs.shape[0]:
            violator = hall_violator(task, goal)
            if violator is not None:
                raise InfeasibleError(*in_nodes(violator, given.labels))
            has_ended = False
    outcome = Outcome.of(task, goal, has_ended and is_exact, given.rounding)
    if has_ended and is_exact and outcome.has_gap:
        before = task.solution.copy()
        with control.part("search"):
            has_ended = cardinality.finish(load(FINISH), task, goal)
        finished = Outcome.of(task, goal, has_ended, given.rounding)
        if outcome.is_better_than(finished):
            task.solution.assign_from(before)
        else:
            outcome = finished
    return outcome
