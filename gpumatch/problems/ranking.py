"""The k cheapest assignments of one problem: what is ranked, and the caller's result.

The rows of the problem are the payers: each must be matched, or pays a limit. They are the vertices
of the smaller side, or the caller's rows if each has a limit of its own. Costs to be maximised get
the other sign. Pairs above their row's limit are forbidden.

Proof. The nodes that were divided make up all assignments, with what was returned. In the others,
every assignment costs at least

    sum of fixed options  +  sum of u over the other payers  +  sum of v over the other vertices

because u_i + v_j <= c_ij for all pairs that the node has, u_i <= limit_i, and v_j <= 0 wherever a
vertex may stay unmatched. If that is at least what the last assignment costs, none is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpumatch.costs import CostBatch, Costs, as_costs, check_sums
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.dispatch.registry import RANKING, RANKING_PROOF, RANKING_SPACE, load
from gpumatch.numeric.arrays import array_of, has_length
from gpumatch.problems.request import Goal
from gpumatch.problems.row_limits import checked_row_limits
from gpumatch.results.ranking import PartitionTree, RankedAssignments
from gpumatch.running.control import Control

__all__ = ["Ranked", "rank", "rank_all"]


_FEW = 64  # payers up to which all assignments are counted


class Ranked(NamedTuple):
    """What is to be ranked: the arguments of `gpumatch.k_best` for one problem."""

    k: int
    maximize: bool
    cost_limit: Any
    proof: bool


def rank(given: Costs, wish: Ranked, stopped: Callable[[int], bool]) -> RankedAssignments:
    """Return the k cheapest assignments for these costs.

    `stopped` is called with the number found at least every half second; True ends the search.
    """
    form = _Form.of(given, wish)
    space = load(RANKING_SPACE)(form.entries(), form.limits(), form.problem.shape[1])
    count = min(wish.k, _most(*form.problem.shape) + 1)
    found = load(RANKING)(space, count, stopped)
    mates, totals = form.mates(found, space), found.slots.total[found.chosen]
    order = np.lexsort((*mates.T[::-1], totals))
    tree = None
    if wish.proof:
        nodes = load(RANKING_PROOF)(found, space, count)
        tree = _tree_of(nodes, found, order, form.by_columns)
    return RankedAssignments(
        array_of(given.xp, mates[order]),
        array_of(given.xp, 0 - totals[order] if wish.maximize else totals[order]),
        given.shape[1],
        proven=found.has_ended,
        is_complete=found.has_ended and len(mates) < wish.k,
        tree=tree,
        maximize=wish.maximize,
        cost_limit=form.cost_limit,
        labels=given.labels,
        stats={"algorithm": "murty", "backend": "cpu", "paths": found.found},
    )


def _most(payers: int, others: int) -> float:
    """An upper bound of the number of assignments; infinity for more than a few payers."""
    return (others + 1) ** payers if payers <= _FEW else math.inf


def rank_all(
    problems: CostBatch, wish: Ranked, control: Control, threads: int
) -> list[RankedAssignments]:
    """Return the k cheapest assignments of each problem, which the threads share out."""
    ranked: list[Any] = [None] * len(problems)
    ahead = iter(range(len(problems)))
    halted, found = False, 0

    def stopped(number: int) -> bool:
        return halted or control.tick(found + number)

    def serve(_: int) -> bool:
        nonlocal halted, found
        try:
            for number in ahead:
                ranked[number] = rank(as_costs(problems[number]), wish, stopped)
                found += len(ranked[number])
        except BaseException:
            halted = True  # the other threads end soon
            raise
        return True

    entries = wish.k * int(problems.sizes.prod(axis=1).sum())
    with Workers(threads, entries) as workers:
        try:
            workers.run(serve, len(problems))
        except BaseException:
            halted = True  # a Ctrl-C while this thread waits for the others
            raise
    control.close(found)
    return ranked


class _Form(NamedTuple):
    """A problem to be minimised, whose rows are the payers.

    Attributes
    ----------
    problem : Costs
        Without the limits.
    shape : (int, int)
        Of the caller's costs.
    by_columns : bool
        True if the caller's columns are the payers.
    cost_limit : number, array or None
        The caller's limit, checked.
    bars : array, optional
        The limit of each payer, to be minimised.
    """

    problem: Costs
    shape: tuple[int, int]
    by_columns: bool
    cost_limit: Any
    bars: np.ndarray | None

    @classmethod
    def of(cls, given: Costs, wish: Ranked) -> _Form:
        costs, limit = given.to_host(), wish.cost_limit
        sign = -1 if wish.maximize else 1
        if has_length(limit) and not isinstance(limit, str):
            limit = checked_row_limits(limit, costs, wish.maximize, "full")
            by_columns, bars = False, None if limit is None else limit * sign
        else:
            goal = Goal.of(wish.maximize, "full", limit, costs)
            by_columns, limit, bars = goal.transposed, goal.cost_limit, None
            if limit is not None:
                bars = np.full(min(costs.shape), goal.limit)
        problem = costs.problem(wish.maximize, by_columns)
        if bars is not None and bars.dtype.kind == "f":
            problem = problem.as_float()
        largest = 0 if bars is None or not bars.size else abs(bars).max().item()
        check_sums(max(problem.largest, largest), max(problem.shape))
        return cls(problem, costs.shape, by_columns, limit, bars)

    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The allowed pairs in CSR, their columns in order."""
        number = np.int64 if self.problem.is_integer else np.float64
        entries = self.problem.entries()
        if isinstance(entries, tuple):
            indptr, indices, weights = entries
            rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
            kept = None if self.bars is None else weights <= self.bars[rows]
        else:
            nrows, ncols = entries.shape
            indptr, indices = np.arange(nrows + 1) * ncols, np.tile(np.arange(ncols), nrows)
            rows, weights = np.repeat(np.arange(nrows), ncols), entries.ravel()
            kept = None if self.problem.is_complete else weights < self.problem.far
            if self.bars is not None:
                gated = entries <= self.bars[:, None]
                kept = gated.ravel() if kept is None else gated.ravel() & kept
        if kept is not None and not kept.all():
            indices, weights = indices[kept], weights[kept]
            counts = np.bincount(rows[kept], minlength=indptr.size - 1)
            indptr = np.concatenate([[0], np.cumsum(counts)])
        return (
            indptr.astype(np.int64, copy=False),
            indices.astype(np.int32, copy=False),
            np.ascontiguousarray(weights, number),
        )

    def limits(self) -> np.ndarray:
        """What each payer costs if it is unmatched, as kernels read it."""
        number = np.int64 if self.problem.is_integer else np.float64
        if self.bars is not None:
            return self.bars.astype(number, copy=False)
        return np.full(self.problem.shape[0], 2**62 if number is np.int64 else np.inf, number)

    def mates(self, found: Any, space: Any) -> np.ndarray:
        """The column of each of the caller's rows, in each assignment."""
        taken, indices = found.slots.taken[found.chosen], space.problem.indices
        options = np.full(taken.shape, -1, np.int32)
        options[taken >= 0] = indices[taken[taken >= 0]]
        if not self.by_columns:
            return options
        mates = np.full((len(options), self.shape[0]), -1, np.int32)
        numbers, cols = (options >= 0).nonzero()
        mates[numbers, options[numbers, cols]] = cols
        return mates


def _tree_of(nodes: Any, found: Any, order: np.ndarray, by_columns: bool) -> PartitionTree:
    """Return the tree, with the numbers that the assignments have in their final order."""
    place_of = np.empty(order.size + 1, np.int32)
    place_of[order], place_of[-1] = np.arange(order.size), -1
    return PartitionTree(
        by_columns,
        nodes.parent,
        nodes.place,
        place_of[nodes.opened],
        found.slots.order[found.chosen[order]],
        nodes.is_empty,
        nodes.starts,
        nodes.vertices,
        nodes.differences,
    )
