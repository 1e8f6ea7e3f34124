"""The front door to assignment with costs that are divided among ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from gpumatch.assignment import assign as assign_here
from gpumatch.contracts import Rounding, Solution
from gpumatch.costs import Costs, as_costs, check_sums, is_batch
from gpumatch.dispatch.arguments import check_one_of, checked_flag
from gpumatch.distributed.blocks import Split, agree_on_columns, split_of, taken
from gpumatch.distributed.communicator import Communicator
from gpumatch.distributed.devices import BACKENDS, take_device
from gpumatch.distributed.largest import solve_largest
from gpumatch.distributed.matching import forest_kernels
from gpumatch.distributed.results import DistributedAssignment
from gpumatch.distributed.searches import ALGORITHMS
from gpumatch.numeric.arrays import array_of
from gpumatch.numeric.exact_sums import magnitude, summands, times
from gpumatch.numeric.fair_duals import difference_below, lacks, lower
from gpumatch.numeric.gaps import Proof, proof_of, rounding_above
from gpumatch.problems.at_limit import join_at_limit
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.problems.request import CARDINALITIES, Goal, checked_limit
from gpumatch.results.assignment import BatchAssignment
from gpumatch.running.control import Callback, Control, with_interrupts_result

__all__ = ["assign", "costs_of"]


@with_interrupts_result
def assign(
    block: Any,
    *,
    comm: Any = None,
    maximize: bool = False,
    cardinality: Literal["full", "maximum", "any"] = "full",
    cost_limit: float | None = None,
    algorithm: str = "auto",
    backend: Literal["cpu", "cuda"] = "cpu",
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
) -> DistributedAssignment | BatchAssignment:
    """Assign rows to columns at least total cost, each rank holding the costs of some of the rows.

    All ranks of the communicator call it together, each with its own block and otherwise the same
    arguments.

    Parameters
    ----------
    block : array, sparse matrix, tuple of CSR arrays, ``(function, shape)``, or path of a file
        The costs of this rank's rows, with all columns, as `gpumatch.assign` takes costs, on the
        host or, with ``backend="cuda"``, on a GPU. The blocks of all ranks are dense, or all are
        sparse. Otherwise as for `gpumatch.distributed.maximum_matching`. Or a batch of problems, as
        `gpumatch.assign` takes it: this rank solves its own, and no rank needs another.
    comm : mpi4py communicator, optional
        By default ``MPI.COMM_WORLD``.
    maximize, cost_limit
        As for `gpumatch.assign`.
    cardinality : {"full", "maximum", "any"}
        As for `gpumatch.assign`.
    algorithm : {"auto", "engine", "hungarian-classical", "hungarian-tree"}
        ``"auto"`` is ``"engine"``: see `gpumatch.distributed.trees`, and for GPUs
        `gpumatch.distributed.core`. The others are those of Date and Nagi (2016), section 5; they
        take no limit and ``"full"`` only, and make sparse costs dense.
    backend : {"cpu", "cuda"}
        Where a rank has the costs of its rows. ``"cuda"``: on a GPU each, that with the number of
        the rank among those of its machine. If each rank has its own, arrays go from GPU to GPU, by
        NCCL. Otherwise they go by way of the host.
    time_limit, progress, callback
        As for `gpumatch.distributed.maximum_matching`.

    Returns
    -------
    DistributedAssignment, or BatchAssignment for a batch
        This rank's share, in NumPy arrays.

    Raises
    ------
    ValueError, TypeError
        On all ranks, if any rank's block or argument is wrong; the message names the rank.
    InfeasibleError
        A ValueError, on all ranks: no full assignment exists. It has the rows and columns that
        show it.
    ImportError
        If mpi4py is missing.
    KeyboardInterrupt
        On all ranks, after a Ctrl-C on any, with its share so far as attribute ``result``.

    Notes
    -----
    A rank holds its rows' costs, and some 40 bytes for each row and each column of the whole
    problem. If there are more rows than columns, the costs are divided anew, by columns: then it
    has its share of them twice, and on GPUs a third time on the host, by way of which this goes.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> a = gm.distributed.assign(np.array([[4, 1], [2, 0]]))
    >>> a.objective, a.row_to_col.tolist()  # on one rank
    (3, [1, 0])
    """
    with Communicator(comm) as world:
        shows = checked_flag(progress, "progress") and world.rank == 0
        world.control = Control(time_limit=time_limit, progress=shows, callback=callback)
        check_one_of("cardinality", cardinality, CARDINALITIES)
        check_one_of("algorithm", algorithm, ("auto", *ALGORITHMS))
        check_one_of("backend", backend, BACKENDS)
        name = "engine" if algorithm == "auto" else algorithm
        wish: dict[str, Any] = {
            "maximize": checked_flag(maximize, "maximize"),
            "cardinality": cardinality,
            "cost_limit": cost_limit,
        }
        own = _assign_own if _agree_on_batch(block, world) else _assign_together
        if backend == "cuda":
            take_device(world)
        result = own(block, wish, (name, backend), world)
        world.settle()
        if shows:
            world.control.close(int(np.sum(result.size)))
    return world.outcome(result)


def _agree_on_batch(block: Any, world: Communicator) -> bool:
    """True if each rank has problems of its own."""
    batches = world.total(int(is_batch(block)))
    if batches not in (0, world.size):
        raise world.agreed(
            ValueError(f"block: {batches} of {world.size} ranks have a batch, the others do not")
        )
    return batches > 0


def _assign_own(block: Any, wish: dict[str, Any], how: tuple[str, str], world: Communicator) -> Any:
    """Solve this rank's problems."""
    name, backend = how
    with world.step("search"):
        how_here: dict[str, Any] = {
            "algorithm": "auto" if name == "engine" else name,
            "backend": backend,
            "threads": 1,
        }
        return assign_here(
            block,
            **wish,
            **how_here,
            callback=lambda progress: world.wants_to_stop(progress.matched),
        )


def _assign_together(
    block: Any, wish: dict[str, Any], how: tuple[str, str], world: Communicator
) -> DistributedAssignment:
    """Solve the one problem of which each rank has some rows."""
    name, backend = how
    stats: dict[str, Any] = {"algorithm": name, "backend": backend}
    with world.step("costs"):
        given = costs_of(block, world, backend)
        rows, cols = split_of(given.shape[0], world), Split.even(given.shape[1], world)
        goal = _goal(**wish, costs=given, rows=rows)
        if name != "engine" and not goal.is_full:
            raise ValueError(f"algorithm {name!r} matches the whole smaller side: no limit")
        costs = _minimised(given, rows, cols, goal)
    if goal.cardinality == "maximum":
        with world.step("search"):
            if backend == "cuda":
                costs = costs.to_device()
            solution, ended = solve_largest(
                costs, rows, cols, ALGORITHMS[name][backend], forest_kernels(backend), world
            )
        return _result((given, costs), rows, goal, solution, ended, stats, world)
    with world.step("costs"):
        search = ALGORITHMS[name][backend](costs, rows, cols, goal, world)
    world.control.total = min(rows.total, cols.total)
    with world.step("search"):
        ended = search.solve()
        solution = search.solution()
    size = int(np.count_nonzero(solution.row_to_col >= 0))
    if ended and goal.is_full and size < world.control.total:
        own, other = search.violator()
        raise world.agreed(InfeasibleError(*((other, own) if goal.transposed else (own, other))))
    if (ended or solution.has_duals) and goal.cost_limit is not None:  # it may be proven, stopped
        with world.step("search"):
            _join_at_limit(costs, rows, goal, solution, world)
    stats["solved_by"] = search.solved_by
    return _result((given, costs), rows, goal, solution, ended, stats, world)


def costs_of(block: Any, world: Communicator, backend: str = "cuda") -> Costs:
    """The costs of this rank's rows as given, of one kind on all ranks."""
    costs = as_costs(taken(block, world))
    if costs.on_device and backend == "cpu":
        raise ValueError("block: it is on a GPU: pass backend='cuda', or copy it to the host")
    agree_on_columns(costs.shape[1], world)
    is_float, is_sparse = world.allreduce(
        np.array([not costs.is_integer, costs.is_sparse], np.int64), "sum"
    ).tolist()
    if is_sparse not in (0, world.size):
        raise world.agreed(
            ValueError(
                f"block: {is_sparse} of {world.size} ranks have sparse costs, the others dense ones"
            )
        )
    return costs.as_float() if is_float and costs.is_integer else costs


# -- the problem -----------------------------------------------------------------------------------


def _goal(
    maximize: bool, cardinality: str, cost_limit: float | None, costs: Costs, rows: Split
) -> Goal:
    limit = checked_limit(cost_limit, costs.is_integer, maximize)
    is_turned = cardinality != "maximum" and rows.total > costs.shape[1]
    return Goal(maximize, cardinality, limit, is_turned)


def _minimised(given: Costs, rows: Split, cols: Split, goal: Goal) -> Costs:
    """The costs of this rank's rows, to be minimised, checked as those of the whole problem."""
    costs = given.problem(goal.maximize, False)
    if costs.on_device:
        costs = costs.readable()
    if goal.cardinality == "maximum" and goal.cost_limit is not None:
        return costs.up_to(-goal.cost_limit if goal.maximize else goal.cost_limit)
    limit = goal.limit
    if costs.is_integer and isinstance(limit, float):
        costs = costs.as_float()
    check_sums(max(costs.largest, abs(limit or 0)), min(rows.total, cols.total))
    return costs


def _join_at_limit(
    costs: Costs, rows: Split, goal: Goal, solution: Solution, world: Communicator
) -> None:
    """Join what costs the limit, as `gpumatch.problems.at_limit` says.

    Each rank does so with its own rows. Of ranks that take the same column, the first has it, and
    the others try again. So the first is done after one round, the second after two at most.
    """
    assert goal.limit is not None
    row_to_col, col_to_row = (solution.transpose() if goal.transposed else solution).mates
    xp = costs.xp
    while True:
        before = row_to_col[rows.slice]
        mates = xp.array(before), xp.array(col_to_row)
        join_at_limit(costs, goal.limit, mates)
        own = array_of(np, mates[0])
        new = np.flatnonzero(own != before)
        pairs = np.column_stack([new + rows.first, own[new]]).astype(np.int64)
        every = np.concatenate(world.allgather(pairs))
        if not every.size:
            return
        _, firsts = np.unique(every[:, 1], return_index=True)
        taken = every[firsts]
        row_to_col[taken[:, 0]], col_to_row[taken[:, 1]] = taken[:, 1], taken[:, 0]


def _result(
    both: tuple[Costs, Costs],
    rows: Split,
    goal: Goal,
    solution: Solution,
    has_ended: bool,
    stats: dict[str, Any],
    world: Communicator,
) -> DistributedAssignment:
    """This rank's share, with the caller's rows, columns and signs.

    `both` are the costs of this rank's rows as given, and to be minimised.
    """
    given, problem = both
    limit = 0 if goal.limit is None else goal.limit
    size = int(np.count_nonzero(solution.row_to_col >= 0))
    is_bounded = solution.has_duals and size >= goal.least_pairs(solution)
    number = solution.row_dual.dtype
    is_integer = number.kind == "i"
    if goal.limit is not None:
        solution.row_dual = (
            solution.row_dual - limit
            if is_integer
            else np.minimum(difference_below(solution.row_dual, number.type(limit)), 0)
        )
    seen = solution.transpose() if goal.transposed else solution
    cover = (
        None
        if seen.cover is None
        else tuple(
            np.isin(np.arange(mates.size), side) for mates, side in zip(seen.mates, seen.cover)
        )
    )
    if is_bounded and not is_integer:
        if cover is None:
            np.minimum(solution.col_dual, 0, out=solution.col_dual)
        _make_fair(problem, rows, limit, seen, cover, world)
    duals = summands(seen.row_dual) + summands(seen.col_dual)
    own = seen.row_to_col[rows.slice].copy()
    matched = np.flatnonzero(own >= 0)
    costs = array_of(np, given.at(matched, own[matched])).astype(number)
    shares = world.share((summands(costs), magnitude(costs), _rounding(given, costs)))
    paid = [part for parts, *_ in shares for part in parts]
    sign = -1 if goal.maximize else 1
    proof = Proof(math.inf, False)
    if is_bounded:
        proof = proof_of(
            [*(sign * cost for cost in paid), *times(-limit, size), *(-dual for dual in duals)],
            size,
            has_ended=has_ended,
            is_integer=is_integer,
            largest=lambda: max(abs(limit) if size else 0, *(most for _, most, _ in shares)),
            largest_dual=lambda: max(
                magnitude(dual[mates >= 0]) for dual, mates in zip(seen.duals, seen.mates)
            ),
            rounding=_rounding_of_all(
                [own for *_, own in shares], min(rows.total, given.shape[1]), abs(float(limit))
            ),
        )
    return DistributedAssignment(
        (rows.total, given.shape[1]),
        range(rows.slice.start, rows.slice.stop),
        range(given.shape[1]),
        own,
        seen.col_to_row,
        size,
        row_dual=seen.row_dual[rows.slice] * sign,
        col_dual=seen.col_dual * sign,
        pair_costs=costs,
        objective=(sum if is_integer else math.fsum)(paid),
        gap=proof.gap,
        proven=proof.proven,
        maximize=goal.maximize,
        cardinality=goal.cardinality,
        cost_limit=goal.cost_limit,
        cover=None if cover is None else (cover[0][rows.slice], cover[1]),
        stats={**stats, **world.statistics(), **world.control.statistics()},
    )


def _rounding(given: Costs, costs: Any) -> tuple[Rounding, float]:
    """How far the costs of this rank may be rounded, and the magnitudes of those of its pairs."""
    return given.rounding, float(abs(costs).sum()) if given.rounding.share else 0.0


def _rounding_of_all(
    shares: list[tuple[Rounding, float]], pairs: int, limit: float
) -> Callable[[float], float] | None:
    """By how much the rounding of all ranks' costs may enlarge a gap."""
    every = Rounding(
        max(rounding.share for rounding, _ in shares),
        max(rounding.pair for rounding, _ in shares),
        sum(rounding.added for rounding, _ in shares),
    )
    return rounding_above(every, pairs, sum(paid for _, paid in shares), limit)


def _make_fair(
    problem: Costs, rows: Split, limit: float, seen: Solution, cover: Any, world: Communicator
) -> None:
    """Lower the duals, which all ranks have, until no pair of any rank undercuts them."""
    own = rows.slice
    of_rows, of_cols = lacks(
        problem,
        seen.row_to_col[own],
        seen.row_dual[own],
        seen.col_dual,
        limits=np.full(rows.own, float(limit)) if limit else None,
        inside=cover and (cover[0][own], cover[1]),
    )
    lower(seen.row_dual, np.concatenate(world.allgather(of_rows)))
    lower(seen.col_dual, world.allreduce(of_cols, "max"))
