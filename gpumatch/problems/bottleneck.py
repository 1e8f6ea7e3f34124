"""Assignments whose most expensive pair is as cheap as possible.

Let k pairs be wanted: all of the smaller side, or as many as there can be. k pairs that cost at
most t exist if and only if a maximum matching of the pairs that cost at most t has k. So the least
such t is a cost, the bottleneck. The search tries thresholds with k pairs up to them, then with 4k,
16k, … more, until one suffices. Then it halves the costs between one that suffices and one that
does not until there is none between them. Each matching begins from that of the last threshold that
did not suffice, because its pairs are still allowed, or from the pairs of the best matching that a
lower threshold allows.

For a full assignment of sparse costs there is another method, on the CPU. It begins with the least
threshold that leaves each vertex a pair, and from then on raises it by paths whose largest cost is
least (`gpumatch.cpu.assignment.bottleneck`). These are MC64's jobs 3 and 2.

Proof: k pairs, none above the bottleneck; and, from the last threshold that did not suffice, a
vertex cover of all cheaper pairs, with fewer than k vertices (König). Cheaper pairs alone can't
make an assignment, because each of k pairs would need a vertex of its own in the cover. With
``"maximum"``, a cover of all pairs with k vertices shows that there are no more than k.

Reference: Burkard, Dell'Amico, Martello, *Assignment Problems*, SIAM 2009, section 6.2.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.contracts import Graph, MatchingTask, Mates, Stopped
from gpumatch.costs import Costs
from gpumatch.dispatch.backends import choose_matching
from gpumatch.dispatch.by_device import count_matched, cover_for, no_mates
from gpumatch.dispatch.registry import BOTTLENECK_PATHS, STARTS, load
from gpumatch.numeric.arrays import array_of
from gpumatch.problems.cardinality import InfeasibleError, begin_with_pairs, violator_of
from gpumatch.problems.request import BOTTLENECK_METHODS, Goal, Request
from gpumatch.results.bottleneck import BottleneckAssignment, Cover
from gpumatch.results.pairs import in_nodes
from gpumatch.running.control import Control, attach_result

__all__ = ["solve"]

_FIRST, _SHARE = 32, 128
"""Pairs for each row up to the first threshold, if that is no more than this share of all.

They are so few that their matching is quick, and so many that they mostly suffice: of random costs,
ln n pairs for each row do. Then a large matrix is read once or twice. From 1 instead of 32, uniform
5,000² took 1.4 times as long (processor time).
"""

_STRIDE = 4
"""Factor from one threshold to the next, in pairs, until one suffices.

It was not measured. The last threshold has at most four times the pairs that are needed, and its
matching takes longest.
"""


def solve(costs: Costs, request: Request) -> BottleneckAssignment:
    """Find an assignment whose largest cost is least; see `gpumatch.assign`."""
    control, goal = request.control, request.goal(costs)
    backend = _backend_of(costs, request, goal)
    choice, init = choose_matching(
        "auto", "auto", backend, {}, on_device=costs.on_device, nnz=costs.nnz
    )
    with control.part("costs"):
        problem = goal.problem(costs if choice.backend == "cuda" else costs.to_host())
        if choice.backend == "cuda":
            problem = problem.to_device().readable()
    start, search = STARTS[init][choice.backend].run_with({}), choice.search()

    def extend(graph: Graph, mates: Mates) -> None:
        task = MatchingTask(graph, *mates, control, request.threads, request.seed)
        if control.tick(count_matched(mates[0])) or not (start(task) and search(task)):
            raise Stopped

    thresholds = _METHODS[request.algorithm](problem, extend, control)
    begin_with_pairs(request.initial, goal, costs.shape, problem, thresholds.mates)
    control.total = problem.shape[0]
    stats = {**choice.names(), "objective": "bottleneck", "init": init}
    result = functools.partial(_result, costs, goal, problem, thresholds, stats, control)
    try:
        with control.part("search"):
            thresholds.find_most(goal)
            thresholds.find_least()
    except InfeasibleError as exc:
        raise InfeasibleError(*in_nodes((exc.rows, exc.cols), costs.labels)) from None
    except Stopped:
        return result(False)
    except KeyboardInterrupt as exc:
        attach_result(exc, result(False))
        raise
    finally:
        control.close(count_matched(thresholds.mates[0]))
    return result(True)


def _backend_of(costs: Costs, request: Request, goal: Goal) -> str:
    """Return the backend of the request, if its method runs there."""
    backend = request.backend
    if request.algorithm != "paths":
        return backend
    if not costs.is_sparse or not goal.is_full:
        raise ValueError("algorithm 'paths' finds full assignments of sparse costs only")
    if backend not in ("auto", "cpu") or (costs.on_device and backend == "auto"):
        where = "cuda" if backend == "auto" else backend
        raise ValueError(f"algorithm 'paths' runs on 'cpu', not on {where!r}")
    return "cpu"


class _Thresholds:
    """The search among thresholds, by maximum matchings.

    Attributes
    ----------
    costs : Costs
        The pairs that the best assignment may still need.
    mates : Mates
        The best matching so far.
    needed : int
        The number of pairs that a threshold must allow.
    below : (Graph, Mates), optional
        The greatest threshold that was too low: the graph of its pairs, and a maximum matching.
    cover : Cover, optional
        A vertex cover of all pairs, if the number of pairs had to be found.
    """

    def __init__(
        self, costs: Costs, extend: Callable[[Graph, Mates], None], control: Control
    ) -> None:
        self.costs, self._extend, self._control = costs, extend, control
        self.mates = no_mates(costs)
        self.needed = costs.shape[0]
        self.below: tuple[Graph, Mates] | None = None
        self.cover: Cover | None = None

    def find_most(self, goal: Goal) -> None:
        """Find as many pairs as are wanted, whatever they cost, where some are forbidden."""
        if self.costs.is_complete:
            if not goal.is_full:
                xp = self.costs.xp
                self.cover = xp.arange(self.needed), xp.arange(0)
            return
        graph = self.costs.pattern()
        mates = _copied(self.mates)
        self._extend(graph, mates)
        self.mates = mates
        size = count_matched(mates[0])
        if goal.is_full and size == self.needed:
            return
        in_rows, in_cols = cover_for(graph)(graph, *mates)
        if goal.is_full:
            raise InfeasibleError(*violator_of((in_rows, in_cols), goal))
        self.needed = size
        self.cover = in_rows.nonzero()[0], in_cols.nonzero()[0]

    def find_least(self) -> None:
        """Find the least threshold up to which there are as many pairs as are wanted."""
        entries = self.costs.entries()
        between = entries[-1] if isinstance(entries, tuple) else entries.ravel()
        step = max(self.needed, min(_FIRST * self.needed, between.size // _SHARE))
        while True:
            between = between[between < self._largest()]
            if not between.size:
                return
            at = min(step, between.size) - 1 if step else between.size // 2
            limit = self.costs.xp.partition(between, at)[at].item()
            if self._suffices(limit):
                step = 0
            else:
                between = between[between > limit]
                step *= _STRIDE

    def threshold_cover(self) -> Cover:
        """Return a cover of all pairs below the least threshold."""
        if self.below is None:
            none = self.costs.xp.arange(0)
            return none, none
        graph, mates = self.below
        in_rows, in_cols = cover_for(graph)(graph, *mates)
        return in_rows.nonzero()[0], in_cols.nonzero()[0]

    def _suffices(self, limit: float) -> bool:
        """True if the pairs up to a threshold suffice. Their matching is kept."""
        costs = self.costs.up_to(limit)
        graph, mates = costs.pattern(), self._beginning(limit)
        self._extend(graph, mates)
        suffices = count_matched(mates[0]) == self.needed
        if suffices:
            self.costs = costs
        else:
            self.below = graph, _copied(mates)
        if suffices or count_matched(self.mates[0]) < self.needed:
            self.mates = mates
        return suffices

    def _beginning(self, limit: float) -> Mates:
        """Known pairs up to a threshold: those of the best matching, or of the one below."""
        row_to_col, col_to_row = no_mates(self.costs)
        rows, cols = self._pairs()
        kept = self.costs.at(rows, cols) <= limit
        rows, cols = rows[kept], cols[kept]
        if self.below is not None and rows.size < count_matched(self.below[1][0]):
            return _copied(self.below[1])
        row_to_col[rows], col_to_row[cols] = cols, rows
        return row_to_col, col_to_row

    def _largest(self) -> float:
        """Return the largest cost of the best matching; inf if it has too few pairs."""
        rows, cols = self._pairs()
        if rows.size < self.needed:
            return math.inf
        return self.costs.at(rows, cols).max().item() if rows.size else -math.inf

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        rows = (self.mates[0] >= 0).nonzero()[0]
        return rows, self.mates[0][rows]


class _Paths(_Thresholds):
    """The search by paths, for full assignments of sparse costs on the host."""

    def find_least(self) -> None:
        """Find the least threshold up to which there are as many pairs as are wanted."""
        if not self.needed:
            return
        costs = self.costs
        (nrows, ncols), (rows, cols) = costs.shape, costs.pattern().edges()
        *pattern, weights = costs.entries()
        least = _least_of(rows, weights, nrows)
        if nrows == ncols:
            least = max(least, _least_of(cols, weights, ncols))
        if self._suffices(least) or self.below is None:
            self._prove(least)
            return
        mates = _copied(self.below[1])  # as many pairs as this threshold allows

        def stopped() -> bool:
            return self._control.tick(count_matched(mates[0]))

        raise_threshold = load(BOTTLENECK_PATHS)
        least = raise_threshold((*pattern, weights), mates, least, stopped)
        if count_matched(mates[0]) < self.needed:
            raise Stopped
        self.mates = mates
        self._prove(least)

    def _prove(self, least: float) -> None:
        """Find the cover of all pairs that cost less than the least threshold."""
        weights = self.costs.entries()[-1]
        cheaper = weights[weights < least]
        self.below = None
        if cheaper.size:
            self._suffices(cheaper.max().item())


def _least_of(vertices: np.ndarray, weights: np.ndarray, count: int) -> Any:
    """Return the greatest of all vertices' least costs: no full assignment is cheaper."""
    least = np.full(count, weights.max())
    np.minimum.at(least, vertices, weights)
    return least.max().item()


_METHODS = dict(zip(BOTTLENECK_METHODS, (_Thresholds, _Thresholds, _Paths)))


def _copied(mates: Mates) -> Mates:
    return mates[0].copy(), mates[1].copy()


def _result(
    given: Costs,
    goal: Goal,
    problem: Costs,
    thresholds: _Thresholds,
    stats: dict[str, Any],
    control: Control,
    proven: bool,
) -> BottleneckAssignment:
    """Return the BottleneckAssignment with the caller's rows, columns, signs and kind of arrays."""
    covers = [thresholds.threshold_cover(), thresholds.cover] if proven else [None, None]
    mates = thresholds.mates
    if goal.transposed:
        mates = mates[::-1]
        covers = [cover and cover[::-1] for cover in covers]
    row_to_col, col_to_row = (array_of(given.xp, part) for part in mates)
    rows = (row_to_col >= 0).nonzero()[0]
    ends = (rows, row_to_col[rows])
    costs = problem.at(*(ends[::-1] if goal.transposed else ends))
    costs = costs.astype(np.int64 if problem.is_integer else np.float64)
    threshold_cover, cover = (
        cover and (array_of(given.xp, cover[0]), array_of(given.xp, cover[1])) for cover in covers
    )
    return BottleneckAssignment(
        row_to_col,
        col_to_row,
        pair_costs=array_of(given.xp, -costs if goal.maximize else costs),
        proven=proven,
        maximize=goal.maximize,
        cardinality=goal.cardinality,
        threshold_cover=threshold_cover,
        cover=cover,
        labels=given.labels,
        stats=stats | control.statistics(),
    )
