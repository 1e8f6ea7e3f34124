"""The GPU's assignment engine: a core of dense costs, else alternating trees, or the auction.

Sparse costs have an engine of their own, `sparse`. This is for all others.

A matrix of many rows has a core: a few pairs of each row, which `sparse` solves, and pricing, which
proves that no other pair matters (`core`). If its first pairs do not do, an auction finds better
ones (`dense_prices`). What ends sooner if it ends at all is tried before, for few steps: one team
of threads, as it solves each of many problems (`batched`), where the rows are few or easy to
please, and trees.

If there is no core, or it is given up, trees grow, from the duals that it has found. Else there is
the auction. It depends on the costs which of the two is fast. If most rows have a good column of
their own, trees match nine rows in ten within a few searches, and were up to 24 times as fast as
the auction. If all rows want the same few columns, or any that are far away, nearly every row needs
its own search, with n² levels in all, and the auction is up to fifty times as fast. This is not
known beforehand, but growing trees for a short time shows it (bench/results/assignment-h200.json).

The auction then begins from no prices, because its scaling depends on starting coarse. Trees from
its prices close the gap that it may leave. If the auction is stopped before it has as many pairs as
the trees had, the result has the pairs of the trees.

The engine has no kernels of its own. It uses those of the modules that it imports.
"""

from __future__ import annotations

import contextlib

from gpumatch.contracts import AssignmentTask, Costs, Solution
from gpumatch.cuda import memory
from gpumatch.cuda.assignment import auction
from gpumatch.cuda.assignment.batched import batch as device_batch
from gpumatch.cuda.assignment.dense import prices as dense_prices
from gpumatch.cuda.assignment.dense.core import BYTES_A_PAIR, Alone, Core, Share
from gpumatch.cuda.assignment.dense.prices import DenseAuction
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.cuda.assignment.hungarian import tree as hungarian_tree
from gpumatch.cuda.assignment.hungarian.search import Patience
from gpumatch.cuda.assignment.sparse import engine as sparse
from gpumatch.cuda.assignment.sparse.engine import fits
from gpumatch.cuda.surveys import count_matched

__all__ = ["run"]

_FIRST = 64  # pairs of each row that a core begins with
_LEAST_FOR_CORE = 100  # rows from which on a core pays
# Columns up to which a team is tried: of a square, if columns may stay free, and with many ties.
_MOST_FOR_TEAM = 768, 2560, 4096
_MOST_FOR_BLOCK = 512  # columns of a square up to which a team has a step in half the time
_STEPS_OF_TEAM = 1024, 2048  # beyond, and up to that
# Trees are tried first up to so many rows: until nine rows in ten have a column, and in all, steps.
_MOST_FOR_TREES, _MOST_WITH_TIES = 3000, 20_000
_TIES = 4, 32  # columns of equal cost that a row has, on average
_TRIAL = 256, 2048
_STEPS_FOR_MOST = 2048  # or one a row, if that is more
_STEPS_A_ROW = 16


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    if sparse.takes(task.costs, task.limit):
        return sparse.run(task)
    attempts = [_grow_trees]
    if _has_core(task):
        attempts.insert(0, _solve_by_core)
        if _begins_with_trees(task):
            attempts.insert(0, _solve_by_trees)
    if _has_team(task):
        attempts.insert(0, _solve_by_team)
    for attempt in attempts:
        if attempt(task):
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


def _has_core(task: AssignmentTask) -> bool:
    """Whether a few pairs of each row are little beside the matrix, and all sums of them fit."""
    costs = task.costs
    return costs.has_matrix and costs.shape[0] >= _LEAST_FOR_CORE and fits(costs, task.limit)


def _has_team(task: AssignmentTask) -> bool:
    """Whether one team, which begins anew, has a good chance to end before all others would."""
    costs = task.costs
    nrows, ncols = costs.shape
    square, easy, tied = _MOST_FOR_TEAM
    most = square if _must_match_all(task) else easy
    if costs.low == costs.high or (costs.is_integer and _ties(costs) > _TIES[1]):
        most = tied
    return task.is_fresh and costs.has_matrix and nrows > 0 and ncols <= most


def _begins_with_trees(task: AssignmentTask) -> bool:
    """Whether trees that find columns soon would end before a core does.

    They do if the rows are few, and so are searches, since costs are integers or columns may stay
    free; or if integers have ties, but not so many that levels are as wide as the matrix.
    """
    costs = task.costs
    nrows, ncols = costs.shape
    if costs.low == costs.high:
        return False
    if costs.is_integer and _TIES[0] <= _ties(costs) <= _TIES[1]:
        return nrows < _MOST_WITH_TIES
    is_easy = costs.is_integer or task.limit is not None or nrows < ncols
    return is_easy and nrows < _MOST_FOR_TREES


def _must_match_all(task: AssignmentTask) -> bool:
    """Whether no row and no column may stay free."""
    nrows, ncols = task.costs.shape
    return task.limit is None and nrows == ncols


def _ties(costs: Costs) -> float:
    """How many columns of equal cost a row has, if costs are integers, on average."""
    return costs.shape[1] / max(costs.high - costs.low, 1)


def _solve_by_team(task: AssignmentTask) -> bool:
    """Whether one team ends soon."""
    if task.control.tick(0):
        return False
    ncols = task.costs.shape[1]
    is_wide = _must_match_all(task) and ncols > _MOST_FOR_BLOCK
    return device_batch.run_one(task, _STEPS_OF_TEAM[0 if is_wide else 1])


def _solve_by_trees(task: AssignmentTask) -> bool:
    """Whether trees end soon. If not, what was given is in the solution again."""
    given = task.solution.copy()
    ended = hungarian_tree.run(task, patience=Patience(*_TRIAL))
    if not ended and not task.control.stopped:
        task.solution.assign_from(given)
    return ended


def _solve_by_core(task: AssignmentTask) -> bool:
    """Whether a sparse core and prices for it prove an assignment, and there is room for them."""
    costs, solution, control = task.costs, task.solution, task.control
    nrows, ncols = costs.shape
    must_match_all = _must_match_all(task)
    with contextlib.suppress(MemoryError):
        needed = BYTES_A_PAIR * nrows * min(_FIRST, ncols)
        if must_match_all:
            needed += dense_prices.bytes_needed(nrows, ncols)
        memory.require_memory(needed, "the engine's core")
        rows = ArrayRows(costs.dense(), costs.far, lambda: False)
        share = Share(rows, task.limit, costs.of_pairs)
        others = [lambda: DenseAuction(costs).improve(solution, control)] if must_match_all else []
        core = Core(share, solution, Alone(control), sparse.run, control, others, _FIRST)
        try:
            return core.solve()
        finally:
            core.settle()
    return False


def patience_for(nrows: int) -> Patience:
    """How long trees may grow."""
    return Patience(max(_STEPS_FOR_MOST, nrows), _STEPS_FOR_MOST + _STEPS_A_ROW * nrows)


def _grow_trees(task: AssignmentTask) -> bool:
    """Whether trees end in time, and have room for the matrix that they make of sparse costs."""
    try:
        return hungarian_tree.run(task, patience=patience_for(task.costs.shape[0]))
    except MemoryError:
        if task.costs.has_matrix:
            raise
    return False


def _pairs(solution: Solution) -> int:
    return count_matched(solution.row_to_col)
