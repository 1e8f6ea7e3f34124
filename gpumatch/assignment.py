"""The front door to linear assignment.

`gpumatch.problems.cardinality` states what is solved, and what proves it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import CostBatch, Costs, as_costs, is_batch, overflow_of_sums
from gpumatch.dispatch.arguments import (
    check_one_of,
    checked_flag,
    checked_seed,
    checked_threads,
    refuse_unknown,
)
from gpumatch.dispatch.backends import choose_assignment
from gpumatch.dispatch.by_device import count_matched
from gpumatch.dispatch.registry import FINISH, BackendName, load
from gpumatch.numeric.arrays import array_of, device_array, has_length
from gpumatch.numeric.exact_sums import magnitude, nearer, summands
from gpumatch.numeric.gaps import Magnitudes, Proof, proof_of, undercut
from gpumatch.problems.batches import Asked, assign_batch, assign_even, assign_small
from gpumatch.problems.bottleneck import METHODS, assign_bottleneck
from gpumatch.problems.cardinality import (
    Cardinality,
    Goal,
    InfeasibleError,
    begin_with_pairs,
    empty_solution,
    finish,
    hall_violator,
    join_pairs_at_limit,
    solve,
)
from gpumatch.problems.divided_costs import assign_divided
from gpumatch.problems.initial import initial_prices
from gpumatch.problems.row_limits import assign_by_row_limits, checked_row_limits
from gpumatch.results.assignment import Assignment
from gpumatch.results.bottleneck import BottleneckAssignment
from gpumatch.results.pairs import in_nodes
from gpumatch.results.tensors import are_tensors, solve_tensors
from gpumatch.running.control import Callback, Control, attach_result, with_interrupts_result

__all__ = ["assign"]

OBJECTIVES = ("sum", "bottleneck")
SMALL = 2**16
"""Costs up to which one compiled call answers: it ends within milliseconds, and tells of no phase.
"""


@overload
def assign(
    C: Any,
    *,
    objective: Literal["bottleneck"],
    cardinality: Literal["full", "maximum"] = ...,
    backend: BackendName = ...,
    **arguments: Any,
) -> BottleneckAssignment: ...
@overload
def assign(
    C: Any,
    *,
    objective: Literal["sum"] = ...,
    cardinality: Cardinality = ...,
    backend: BackendName = ...,
    **arguments: Any,
) -> Assignment: ...
@with_interrupts_result
def assign(
    C: Any,
    *,
    objective: Literal["sum", "bottleneck"] = "sum",
    maximize: bool = False,
    cardinality: Cardinality = "full",
    cost_limit: Any = None,
    algorithm: str = "auto",
    backend: BackendName = "auto",
    initial: Any = None,
    weight: Hashable | None = "weight",
    row_nodes: Iterable[Hashable] | None = None,
    sizes: Any = None,
    on_error: str = "raise",
    seed: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
    **options: Any,
) -> Assignment | BottleneckAssignment:
    """Assign rows to columns, each to one at most, at least total cost.

    Parameters
    ----------
    C : two-dimensional array, sparse matrix, or tuple ``(indptr, indices, data, shape)``
        The costs: whatever `gpumatch.costs.DenseCosts` or `SparseCosts` is made from; boolean,
        integer or floating, any shape. ``inf`` (``-inf`` to be maximised) forbids a pair. A sparse
        matrix forbids the pairs that it does not store; a stored zero is a cost of 0. An array of
        shape (B, n, m), or a list of matrices of any shapes, is a batch of problems.
    objective : {"sum", "bottleneck"}
        What is to be least: the total cost, or the largest cost of a pair.
    maximize : bool
        Look for the greatest total instead, or for the greatest least cost of a pair.
    cardinality : {"full", "maximum", "any"}
        ``"full"``: every vertex of the smaller side. ``"maximum"``: the cheapest among the largest
        assignments. ``"any"``: the best total; a pair is taken only if it pays. Not for a
        bottleneck.
    cost_limit : float, or array of length nrows, optional
        Leave out a pair that costs more (to be maximised: that gains less). Every vertex of the
        smaller side that is left unmatched then costs as much as the limit, and ``"full"`` and
        ``"any"`` mean the same. No row and column are both left unmatched whose pair costs the
        limit or less. With ``"maximum"``, pairs above the limit are forbidden. Otherwise, a
        fractional limit makes integer costs float64; inf (-inf to be maximised) is no limit. An
        array has a limit for each row: a row that is left unmatched costs as much as its own. Not
        for a bottleneck, and a batch takes one number.
    algorithm : str
        ``"auto"`` or a name that `algorithms` lists for assignment. ``"auto"`` is ``"engine"`` on
        the CPU and on a GPU, and ``"hungarian-tree"`` on the reference. On a GPU it is
        ``"auction"`` for costs that are neither a matrix nor sparse, and do not fit as a matrix.
        With options that these do not take, it is the first exact algorithm that takes them. A
        bottleneck is found by matchings up to ``"thresholds"``, which is ``"auto"``, or by
        ``"paths"``: full assignments of sparse costs, on the CPU.
    backend : {"auto", "cpu", "cuda", "reference"}
        Where to run. ``"auto"``: data on a device stays there; a matrix on the host, or sparse
        costs for the engine, go to the GPU if there is one with room for them and they are large
        enough to repay the copy.
    initial : Assignment, Matching, or integer array of length nrows, optional
        An assignment for similar costs, to begin from: its duals and pairs, as far as they still
        fit together. Or only pairs: the column of each row, -1 for none. Whatever they are, the
        result is right; what is no matching, or no finite number, is an error.
    weight : edge attribute or function, optional
        What an edge of a networkx graph costs; 1 where the attribute is missing, and everywhere
        with None. A function is called as ``weight(row, column, attributes)``.
    row_nodes : iterable of nodes, optional
        The nodes of a networkx graph that are rows, as for `maximum_matching`.
    sizes : (rows, cols), optional
        For an array of shape (B, n, m): how many rows and columns of it each problem has, from the
        first on. Each is an integer, or an array of B of them.
    on_error : {"raise", "mark"}
        What becomes of a problem of a batch that has no full assignment, or costs that are not
        valid: raise its error, which names its number, or keep that in ``errors``.
    seed, threads, time_limit, progress, callback
        As for `maximum_matching`. ``callback(progress)`` sees the rows assigned so far.
    **options
        The algorithm's own.

    Returns
    -------
    Assignment, BottleneckAssignment for a bottleneck, or BatchAssignment for a batch
        In arrays like the caller's, or in torch tensors where the caller's tensor is. The objective
        depends only on C, up to rounding.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong, the costs hold NaN or an infinity of the wrong sign, integers are
        so large that ``(n + 1) * max|cost| >= 2**62`` (for a bottleneck, ``max|cost| >= 2**62``),
        or the total or a dual of floats is beyond the range of float64.
    InfeasibleError
        A ValueError: no full assignment exists. It has the rows and columns that show it.
    RuntimeError, MemoryError
        As for `maximum_matching`.
    KeyboardInterrupt
        On Ctrl-C, with the assignment so far as attribute ``result``; None if it came before the
        search.

    Notes
    -----
    Integer costs are solved exactly, and the objective is a Python int; other costs up to rounding,
    some units in the last place of the largest cost, n times. O(n²m) for n <= m rows and columns. A
    bottleneck is one of the costs, and exact; it takes O(log(nm)) matchings.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    >>> a = gm.assign(C)
    >>> a.objective, a.col_ind.tolist()
    (5, [1, 0, 2])
    >>> print(gm.verify(C, a))
    optimal: 3 pairs of total 5, and dual prices of total 5, checked on 9 pairs
    """
    is_plain = (
        objective == "sum" and algorithm == "auto" and backend in ("auto", "cpu")
        and initial is None and time_limit is None and not progress and callback is None
        and not options and sizes is None
        and row_nodes is None and weight == "weight"
    )  # fmt: skip
    if is_plain:
        _ = seed == 0 or checked_seed(seed), threads is None or checked_threads(threads)
        quick = None
        if type(C) is np.ndarray and C.ndim == 2 and C.size <= SMALL:
            quick = assign_small(C, maximize, cardinality, cost_limit)
        elif type(C) is device_array() and C.ndim == 3 and backend == "auto":
            quick = _assign_even(C, Asked(maximize, cardinality, cost_limit, on_error))
        if quick is not None:
            return quick
    refuse_unknown(assign, "assignment", options)
    maximize, progress = checked_flag(maximize, "maximize"), checked_flag(progress, "progress")
    control = Control(time_limit=time_limit, progress=progress, callback=callback)
    threads, seed = checked_threads(threads), checked_seed(seed)
    alone: Any = functools.partial(
        assign, maximize=maximize, cardinality=cardinality, algorithm=algorithm, backend=backend,
        initial=initial, seed=seed, threads=threads, time_limit=time_limit, progress=progress,
        callback=callback, **options,
    )  # fmt: skip
    if are_tensors(C):
        return solve_tensors(
            functools.partial(alone, objective=objective, weight=weight, row_nodes=row_nodes),
            C, cost_limit=cost_limit, initial=initial, sizes=sizes, on_error=on_error,
        )  # fmt: skip
    if has_length(cost_limit) and not isinstance(cost_limit, str) and objective == "sum":
        if sizes is not None or is_batch(C):
            raise TypeError("a batch takes one number as its cost_limit")
        given = as_costs(C, weight, row_nodes)
        limits = checked_row_limits(cost_limit, given, maximize, cardinality)
        if limits is None:
            return alone(given)
        return assign_by_row_limits(given, limits, alone, maximize, cardinality)
    if sizes is not None or is_batch(C):
        if initial is not None or objective != "sum":
            raise ValueError("a batch takes no initial, and the objective 'sum' only")
        quietly: Any = functools.partial(
            alone, cost_limit=cost_limit, time_limit=None, progress=False
        )
        return assign_batch(
            C if isinstance(C, CostBatch) else CostBatch(C, sizes),
            lambda problem, callback: quietly(problem, callback=callback),
            Asked(maximize, cardinality, cost_limit, on_error),
            backend=backend,
            is_compiled=algorithm == "auto" and not options,
            control=control,
            threads=threads,
        )
    with control.part("costs"):
        given = as_costs(C, weight, row_nodes, summed=False)
    check_one_of("objective", objective, OBJECTIVES)
    if objective == "bottleneck":
        _refuse_for_bottleneck(cardinality, cost_limit, algorithm, options)
        return assign_bottleneck(
            given,
            Goal.of(maximize, cardinality, None, given),
            backend=backend,
            initial=initial,
            seed=seed,
            threads=threads,
            control=control,
            method=algorithm,
        )
    goal = Goal.of(maximize, cardinality, cost_limit, given)
    if given.is_integer and not isinstance(goal.cost_limit, float):
        as_costs(given)
    elif power := overflow_of_sums(given.extent, min(given.shape), goal.cost_limit or 0):
        return assign_divided(given, power, alone, goal.cost_limit, initial)
    choice = choose_assignment(algorithm, backend, options, given)
    with control.part("costs"):
        problem = goal.problem(given if choice.backend == "cuda" else given.to_host())
        if choice.backend == "cuda":
            problem = problem.to_device()
    run = choice.search()
    solution = empty_solution(problem)
    _begin_from(initial, goal, given.shape, problem, solution)
    control.total = problem.shape[0]
    may_be_infeasible = (
        goal.cardinality == "maximum" and choice.detects_infeasible
        and initial is None and problem.is_sparse
    )  # fmt: skip
    task = AssignmentTask(
        problem, solution, control, goal.limit, threads, seed, choice.fallback(),
        is_fresh=initial is None, may_be_infeasible=may_be_infeasible,
    )  # fmt: skip
    stats = {**choice.names(), **choice.options}
    ended = False
    is_exact = choice.algorithm.exact
    try:
        with control.part("search"):
            ended = solve(run, task, goal)
            if ended and goal.is_full and count_matched(solution.row_to_col) < problem.shape[0]:
                violator = hall_violator(task, goal)
                if violator is not None:
                    raise InfeasibleError(*in_nodes(violator, given.labels))
                ended = False
        found = _Found.of(task, goal, ended and is_exact)
        if ended and is_exact and found.is_loose:
            with control.part("search"):
                ended = finish(load(FINISH), task, goal)
            found = _Found.of(task, goal, ended)
    except KeyboardInterrupt as exc:
        found = _Found.of(task, goal, False)
        attach_result(exc, _result(given, goal, task, found, stats | control.statistics()))
        raise
    finally:
        if progress:
            control.close(count_matched(solution.row_to_col))
    return _result(given, goal, task, found, stats | control.statistics())


def _assign_even(costs: Any, asked: Asked) -> Assignment | None:
    """The assignments of many problems of one size by one launch; None if it is not for them."""
    maximize, cardinality, cost_limit, _ = asked
    alone: Any = functools.partial(
        assign, maximize=maximize, cardinality=cardinality, cost_limit=cost_limit
    )
    return assign_even(
        costs, asked, lambda problem, callback: alone(problem, callback=callback), Control()
    )


# -- arguments -----------------------------------------------------------------------------------


_METHODS = " or ".join(map(repr, METHODS))


def _refuse_for_bottleneck(
    cardinality: str, cost_limit: float | None, algorithm: str, options: Mapping[str, Any]
) -> None:
    """Raise ValueError for what a bottleneck has no use for."""
    if cardinality == "any":
        raise ValueError("cardinality 'any' has no bottleneck: no pair at all would be best")
    if cost_limit is not None:
        raise ValueError("a bottleneck takes no cost_limit: pass a limit's pairs as forbidden")
    if algorithm not in METHODS or options:
        raise ValueError(f"a bottleneck is found by matchings: algorithm must be {_METHODS}")


def _begin_from(
    initial: Any, goal: Goal, shape: tuple[int, int], problem: Costs, solution: Solution
) -> None:
    """Put the pairs of `initial` that are allowed, and its prices, into the solution."""
    if initial is None:
        return
    begin_with_pairs(initial, goal, shape, problem, solution.mates)
    if isinstance(initial, Assignment):
        side = "row_dual" if goal.transposed else "col_dual"
        solution.col_dual[:] = initial_prices(
            initial, side, goal.maximize, shape, problem, goal.limit
        )


# -- results ---------------------------------------------------------------------------------------


class _Found(NamedTuple):
    """What the mates of a solution cost, and what its duals show.

    `costs` are those of the matched rows, `paid` are numbers with the same sum.
    """

    costs: Any
    paid: list[Any]
    proof: Proof

    @property
    def is_loose(self) -> bool:
        """Whether the duals leave a gap that exact paths may close."""
        return not self.proof.proven and 0 < self.proof.gap < math.inf

    @classmethod
    def of(cls, task: AssignmentTask, goal: Goal, has_ended: bool) -> _Found:
        """Look at the solution. If it is proven though it was stopped, it also keeps the limit."""
        found = cls._now(task, goal, has_ended)
        if has_ended or not found.proof.proven:
            return found
        join_pairs_at_limit(task, goal)
        return cls._now(task, goal, has_ended)

    @classmethod
    def _now(cls, task: AssignmentTask, goal: Goal, has_ended: bool) -> _Found:
        problem, solution = task.costs, task.solution
        size, limit = count_matched(solution.row_to_col), goal.limit
        costs = problem.of_mates(solution.row_to_col, task.threads)
        near = nearer(costs)
        paid = summands(near)
        if not (solution.has_duals and size >= goal.least_pairs(solution)):
            return cls(costs, paid, Proof(math.inf, False))
        row_dual, col_dual = solution.row_dual, nearer(solution.col_dual)
        if limit is not None:
            row_dual = row_dual - row_dual.dtype.type(limit)
        row_dual = nearer(row_dual)
        base = 0 if limit is None else limit
        duals = summands(row_dual) + summands(col_dual)
        proof = proof_of(
            [*paid, -base * size, *(-dual for dual in duals)],
            len(solution.row_to_col),
            has_ended=has_ended,
            is_integer=problem.is_integer,
            magnitudes=lambda: Magnitudes(
                max(magnitude(near), abs(base)), max(map(magnitude, (row_dual, col_dual)))
            ),
            undercut=lambda: undercut(problem, *solution.duals, solution.cover),
        )
        return cls(costs, paid, proof)


def _result(
    given: Costs, goal: Goal, task: AssignmentTask, found: _Found, stats: dict[str, Any]
) -> Assignment:
    """The Assignment with the caller's rows, columns, signs and kind of arrays."""
    problem, solution = task.costs, task.solution
    costs, paid, (gap, proven) = found
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
        objective=sign * (sum if problem.is_integer else math.fsum)(paid),
        gap=gap,
        proven=proven,
        maximize=goal.maximize,
        cardinality=goal.cardinality,
        cost_limit=goal.cost_limit,
        cover=seen.cover and (array(seen.cover[0]), array(seen.cover[1])),
        labels=given.labels,
        stats=stats,
    )
