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

from gpumatch.contracts import AssignmentTask, Costs, Solution
from gpumatch.cuda import memory
from gpumatch.cuda.assignment import auction
from gpumatch.cuda.assignment.batched import batch as device_batch
from gpumatch.cuda.assignment.dense import prices as dense_prices
from gpumatch.cuda.assignment.dense import sorting
from gpumatch.cuda.assignment.dense.core import BYTES_A_PAIR, Alone, Core, Share
from gpumatch.cuda.assignment.dense.prices import DenseAuction
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.cuda.assignment.hungarian import tree as hungarian_tree
from gpumatch.cuda.assignment.hungarian.search import Patience
from gpumatch.cuda.assignment.points import engine as points_engine
from gpumatch.cuda.assignment.sparse import engine as sparse
from gpumatch.cuda.assignment.sparse import reduced, stages
from gpumatch.cuda.assignment.sparse.engine import fits
from gpumatch.cuda.surveys import count_matched

__all__ = ["run", "steps_of_team"]

_FIRST = 64  # pairs of each row at the start of a core
_LEAST_FOR_CORE = 100  # rows from which a core pays
# Columns up to which a team is tried: if all vertices must be matched, if not, and with many ties.
_MOST_FOR_TEAM = 1024, 2560, 4096
# The most steps of a team: if all vertices must be matched, in up to 1,024 columns, and otherwise.
# With 2**14, two clusters in 512 columns take 10 ms on an H200 instead of 92, and in 768 columns 16
# instead of 104; points take 6.6 instead of 15, and 11 instead of 13. In 1,000 columns, a team
# takes 6 ms for uniform costs, 18 for points and 31 for clusters, and a core 7 to 10, 25 and 121.
_STEPS_OF_TEAM = 2**14, 2048
# Trees are tried first for fewer rows than these: without ties, and for integers with ties.
_MOST_FOR_TREES, _MOST_WITH_TIES = 3000, 20_000
_TIES = 4, 32  # bounds of the mean number of columns of equal cost of a row
_TRIAL = 256, 2048  # the most steps of these trees: until nine rows in ten are matched, and in all
_STEPS_FOR_MOST = 2048  # steps until nine rows in ten are matched; one for each row if that is more
_STEPS_A_ROW = 16  # steps for each row, beyond _STEPS_FOR_MOST, in all


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    if sparse.takes(task.costs, task.limit):
        return reduced.run(task)
    if stages.takes(task.costs, task.limit):
        return stages.run(task)
    if points_engine.takes(task):
        ended = points_engine.run(task, run)
        if ended is not None:
            return ended
        task.solution.clear()
    task = task.with_costs(task.costs.readable())
    attempts = [_grow_trees]
    if _has_core(task):
        attempts.insert(0, _solve_by_core)
        if _begins_with_trees(task):
            attempts.insert(0, _solve_by_trees)
    if _has_team(task):
        attempts.insert(0, _solve_by_team)
    if _may_be_sorted(task):
        attempts.insert(0, sorting.run)
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
    """True for matrices of enough rows whose sums of costs fit into 64 bits."""
    costs = task.costs
    return costs.has_matrix and costs.shape[0] >= _LEAST_FOR_CORE and fits(costs, task.limit)


def _may_be_sorted(task: AssignmentTask) -> bool:
    """True for square matrices without a given start whose pairs are all allowed.

    Sums of their costs must fit into 64 bits.
    """
    costs = task.costs
    if not (task.is_fresh and costs.has_matrix and _must_match_all(task)):
        return False
    return costs.is_complete and fits(costs, None)


def _has_team(task: AssignmentTask) -> bool:
    """True if a team, which ignores given pairs, is likely to end before the other attempts."""
    costs = task.costs
    nrows, ncols = costs.shape
    square, easy, tied = _MOST_FOR_TEAM
    most = square if _must_match_all(task) else easy
    if costs.low == costs.high or (costs.is_integer and _ties(costs) > _TIES[1]):
        most = tied
    return task.is_fresh and costs.has_matrix and nrows > 0 and ncols <= most


def _begins_with_trees(task: AssignmentTask) -> bool:
    """True if trees are likely to end before a core does.

    That is so for few rows with few searches: costs are integers, or vertices may stay unmatched.
    It is also so for integers with ties, unless so many are equal that levels are as wide as the
    matrix.
    """
    costs = task.costs
    nrows, ncols = costs.shape
    if costs.low == costs.high:
        return False
    if costs.is_integer and _TIES[0] <= _ties(costs) <= _TIES[1]:
        return nrows < _MOST_WITH_TIES
    is_easy = costs.is_integer or task.limit is not None or nrows < ncols
    return is_easy and nrows < _MOST_FOR_TREES


def steps_of_team(ncols: int, must_match_all: bool) -> int:
    """Return the most steps of a team for a matrix of so many columns; 0 if they are too many.

    `ncols` is the larger side.
    """
    small, easy, _ = _MOST_FOR_TEAM
    most, steps = (small, _STEPS_OF_TEAM[0]) if must_match_all else (easy, _STEPS_OF_TEAM[1])
    return steps if ncols <= most else 0


def _must_match_all(task: AssignmentTask) -> bool:
    """True if no row and no column may stay unmatched."""
    nrows, ncols = task.costs.shape
    return task.limit is None and nrows == ncols


def _ties(costs: Costs) -> float:
    """Return the mean number of columns of equal cost of a row, for integer costs."""
    return costs.shape[1] / max(costs.high - costs.low, 1)


def _solve_by_team(task: AssignmentTask) -> bool:
    """Solve by one team; True if it has ended within its steps."""
    if task.control.tick(0):
        return False
    is_small = _must_match_all(task) and task.costs.shape[1] <= _MOST_FOR_TEAM[0]
    return device_batch.run_one(task, _STEPS_OF_TEAM[0 if is_small else 1])


def _solve_by_trees(task: AssignmentTask) -> bool:
    """Solve by trees; True if they have ended soon. Otherwise restore the given solution."""
    given = task.solution.copy()
    ended = hungarian_tree.run(task, patience=Patience(*_TRIAL))
    if not ended and not task.control.stopped:
        task.solution.assign_from(given)
    return ended


def _solve_by_core(task: AssignmentTask) -> bool:
    """Solve by a sparse core; False if it proves no assignment or the memory is too small."""
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
    """Return the numbers of steps that trees may take."""
    return Patience(max(_STEPS_FOR_MOST, nrows), _STEPS_FOR_MOST + _STEPS_A_ROW * nrows)


def _grow_trees(task: AssignmentTask) -> bool:
    """Solve by trees; False if they take too long, or have no memory for a matrix of the costs."""
    try:
        return hungarian_tree.run(task, patience=patience_for(task.costs.shape[0]))
    except MemoryError:
        if task.costs.has_matrix:
            raise
    return False


def _pairs(solution: Solution) -> int:
    return count_matched(solution.row_to_col)
