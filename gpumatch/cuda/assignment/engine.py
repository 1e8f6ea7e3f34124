"""The GPU's assignment engine: a sparse core of dense costs, else alternating trees or an auction.

Sparse costs have an engine of their own, `sparse`, and larger integers two stages of it
(`sparse.stages`). So have costs that are computed, if there are many (`points`). This engine solves
all other costs.

Costs with many rows have a core (`dense.core`). `sparse` solves a few pairs of each row, and
pricing proves that no other pair matters. If the first pairs do not suffice, an auction finds
better ones (`dense.prices`).

Square costs that are Monge in some order are sorted first (`dense.sorting`).

Two attempts come before the core where they may end sooner. Each has a limit of steps. One is a
team of threads, as it solves each problem of a batch (`batched`), for few rows and for costs that
need few steps. The other is trees.

If there is no core, or the engine gives it up, trees grow from the duals that the core has found.
If they take too long, the auction follows. The costs decide which of the two is fast. If most rows
have a good column of their own, trees match nine rows in ten within a few searches, and were up to
24 times as fast as the auction. If all rows compete for the same few columns, or if their columns
are far away, nearly every row needs its own search, with n² levels in all. Then the auction is up
to fifty times as fast. Growing trees for a short time shows which is the case
(bench/results/assignment-h200.json).

The auction begins from prices of 0, because its scaling depends on a coarse start. Trees from its
prices close the gap that it may leave. If the run is stopped before the auction has as many pairs
as the trees had, the result has the pairs of the trees.

The engine has no kernels of its own. It uses those of the modules that it imports.
"""

from __future__ import annotations

import contextlib
import functools

from gpumatch.contracts import AssignmentTask, Costs, Solution
from gpumatch.cuda import memory
from gpumatch.cuda.assignment import auction
from gpumatch.cuda.assignment.batched import batch as device_batch
from gpumatch.cuda.assignment.dense import prices as dense_prices
from gpumatch.cuda.assignment.dense import sorting
from gpumatch.cuda.assignment.dense import tuning as tunings
from gpumatch.cuda.assignment.dense.core import BYTES_A_PAIR, Alone, Core, Share
from gpumatch.cuda.assignment.dense.prices import DenseAuction
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.cuda.assignment.dense.tuning import Tuning
from gpumatch.cuda.assignment.hungarian import tree as hungarian_tree
from gpumatch.cuda.assignment.hungarian.search import Patience
from gpumatch.cuda.assignment.points import engine as points_engine
from gpumatch.cuda.assignment.sparse import engine as sparse
from gpumatch.cuda.assignment.sparse import reduced, stages
from gpumatch.cuda.assignment.sparse.engine import fits
from gpumatch.cuda.surveys import count_matched

__all__ = ["run", "steps_of_team"]


def run(task: AssignmentTask, tuning: Tuning | None = None, *, devices: str = "one") -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped.

    With ``devices="all"``, all GPUs search for the columns of points in many dimensions.
    """
    tuning = tuning or tunings.DEFAULT
    if sparse.takes(task.costs, task.limit):
        return reduced.run(task)
    if stages.takes(task.costs, task.limit):
        return stages.run(task)
    if points_engine.takes(task):
        ended = points_engine.run(task, functools.partial(run, tuning=tuning), devices=devices)
        if ended is not None:
            return ended
        task.solution.clear()
    task = task.with_costs(task.costs.readable())
    attempts = [_grow_trees]
    if _has_core(task, tuning):
        attempts.insert(0, _solve_by_core)
        if _begins_with_trees(task, tuning):
            attempts.insert(0, _solve_by_trees)
    if _has_team(task, tuning):
        attempts.insert(0, _solve_by_team)
    if _may_be_sorted(task):
        attempts.insert(0, _sort)
    for attempt in attempts:
        if attempt(task, tuning):
            return True
        if task.control.stopped:
            return False
    trees = task.solution.copy()
    task.solution.clear()
    ended, has_room = False, False
    try:
        with contextlib.suppress(MemoryError):
            ended = auction.run(task)
            has_room = True
    finally:
        if not ended and _pairs(task.solution) < _pairs(trees):
            task.solution.assign_from(trees)
    return ended if has_room else hungarian_tree.run(task)


def _has_core(task: AssignmentTask, tuning: Tuning) -> bool:
    """True for matrices of enough rows whose sums of costs fit into 64 bits."""
    costs = task.costs
    return costs.has_matrix and costs.shape[0] >= tuning.least_for_core and fits(costs, task.limit)


def _may_be_sorted(task: AssignmentTask) -> bool:
    """True for square matrices without a given start whose pairs are all allowed.

    Sums of their costs must fit into 64 bits.
    """
    costs = task.costs
    if not (task.is_fresh and costs.has_matrix and _must_match_all(task)):
        return False
    return costs.is_complete and fits(costs, None)


def _has_team(task: AssignmentTask, tuning: Tuning) -> bool:
    """True if a team, which ignores given pairs, is likely to end before the other attempts."""
    costs = task.costs
    nrows, ncols = costs.shape
    square, easy, tied = tuning.most_for_team
    most = square if _must_match_all(task) else easy
    if costs.low == costs.high or (costs.is_integer and _ties(costs) > tuning.ties[1]):
        most = tied
    return task.is_fresh and costs.has_matrix and nrows > 0 and ncols <= most


def _begins_with_trees(task: AssignmentTask, tuning: Tuning) -> bool:
    """True if trees are likely to end before a core does.

    That is so for few rows with few searches: costs are integers, or vertices may stay unmatched.
    It is also so for integers with ties, unless so many are equal that levels are as wide as the
    matrix.
    """
    costs, (fewest, most) = task.costs, tuning.ties
    nrows, ncols = costs.shape
    if costs.low == costs.high:
        return False
    if costs.is_integer and fewest <= _ties(costs) <= most:
        return nrows < tuning.most_with_ties
    is_easy = costs.is_integer or task.limit is not None or nrows < ncols
    return is_easy and nrows < tuning.most_for_trees


def steps_of_team(ncols: int, must_match_all: bool) -> int:
    """Return the most steps of a team for a matrix of so many columns; 0 if they are too many.

    `ncols` is the larger side.
    """
    tuning = tunings.DEFAULT
    kind = 0 if must_match_all else 1
    return tuning.steps_of_team[kind] if ncols <= tuning.most_for_team[kind] else 0


def _must_match_all(task: AssignmentTask) -> bool:
    """True if no row and no column may stay unmatched."""
    nrows, ncols = task.costs.shape
    return task.limit is None and nrows == ncols


def _ties(costs: Costs) -> float:
    """Return the mean number of columns of equal cost of a row, for integer costs."""
    return costs.shape[1] / max(costs.high - costs.low, 1)


def _solve_by_team(task: AssignmentTask, tuning: Tuning) -> bool:
    """Solve by one team; True if it has ended within its steps."""
    if task.control.tick(0):
        return False
    is_small = _must_match_all(task) and task.costs.shape[1] <= tuning.most_for_team[0]
    return device_batch.run_one(task, tuning.steps_of_team[0 if is_small else 1])


def _sort(task: AssignmentTask, tuning: Tuning) -> bool:
    """Solve by sorting; False if the costs are not Monge in any order."""
    return sorting.run(task)


def _solve_by_trees(task: AssignmentTask, tuning: Tuning) -> bool:
    """Solve by trees; True if they have ended soon. Otherwise restore the given solution."""
    given = task.solution.copy()
    ended = hungarian_tree.run(task, patience=Patience(*tuning.trial))
    if not ended and not task.control.stopped:
        task.solution.assign_from(given)
    return ended


def _solve_by_core(task: AssignmentTask, tuning: Tuning) -> bool:
    """Solve by a sparse core; False if it proves no assignment or the memory is too small."""
    costs, solution, control = task.costs, task.solution, task.control
    nrows, ncols = costs.shape
    must_match_all = _must_match_all(task)
    with contextlib.suppress(MemoryError):
        needed = BYTES_A_PAIR * nrows * min(tuning.first, ncols)
        if must_match_all:
            needed += dense_prices.bytes_needed(nrows, ncols)
        memory.require_memory(needed, "the engine's core")
        rows = ArrayRows(costs.dense(), costs.far, lambda: False)
        share = Share(rows, task.limit, costs.of_pairs)
        others = []
        if must_match_all:
            others = [lambda: DenseAuction(costs, tuning).improve(solution, control)]
        core = Core(share, solution, Alone(control), sparse.run, control, others, tuning)
        try:
            return core.solve()
        finally:
            core.settle()
    return False


def patience_for(nrows: int, tuning: Tuning) -> Patience:
    """Return the numbers of steps that trees may take."""
    steps = tuning.steps_for_most
    return Patience(max(steps, nrows), steps + tuning.steps_a_row * nrows)


def _grow_trees(task: AssignmentTask, tuning: Tuning) -> bool:
    """Solve by trees; False if they take too long, or have no memory for a matrix of the costs."""
    try:
        return hungarian_tree.run(task, patience=patience_for(task.costs.shape[0], tuning))
    except MemoryError:
        if task.costs.has_matrix:
            raise
    return False


def _pairs(solution: Solution) -> int:
    return count_matched(solution.row_to_col)
