"""Transport: how each cardinality becomes flows between bounds, and the theorem of its proof.

Each row i may ship from l_i to h_i units, and each column likewise: the caller's bounds, where a
plain supply or demand s means from 0 to s. The result has prices u_i of rows and v_j of columns.
Costs c_ij are to be minimised here. With a function of a price p of a vertex with bounds l and h,

    b(p) = l p if p > 0, else h p,

every flow f between the bounds has sum(p (flow at the vertex)) >= b(p). So if u_i + v_j <= c_ij for
every pair that is allowed, sum(c f) >= B, the sum of b over all rows and columns. The cardinalities
say which bounds count:

``"full"``
    The side with the smaller total of upper bounds ships these in full: there, l = h.
``"any"`` and ``cost_limit`` L (0 for ``"any"``)
    The caller's bounds, and costs c_ij - L: for any flow f, sum(c f) - L sum(f) >= B. With a
    ``cost_limit``, no row and column both have units left if their pair costs L or less.
``"maximum"``
    A vertex cover: rows and columns that every allowed pair touches, and whose upper bounds add up
    to the total flow. A flow of that total fills the cover, and uses no pair inside it. So l = h in
    the cover, and pairs inside it may have any prices. A cost limit first forbids all pairs above.

Prices are 0 or less at a vertex whose l is 0 and not its h. They are 0 or more where the flow is
below h, and 0 or less where it is above l. This holds up to rounding for floats, where the gap,
objective - B, is rigorous as for assignments (`gpumatch.problems.flow_proofs`). With all masses 1,
these are the conditions of `gpumatch.problems.cardinality`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.costs import Costs, DenseCosts, as_costs, check_sums
from gpumatch.costs.computed import require_host_memory
from gpumatch.dispatch.backends import choose_transport
from gpumatch.interop.networkx import is_networkx
from gpumatch.numeric.arrays import any_true, array_of, exactly
from gpumatch.numeric.units import merged, order_of, units_at
from gpumatch.problems.flow_proofs import Minimised, Outcome
from gpumatch.problems.flows import Found, InfeasibleMassesError, Shipper
from gpumatch.problems.initial import flow_duals
from gpumatch.problems.masses import Masses, masses_of
from gpumatch.problems.request import Goal, Request, checked_limit
from gpumatch.results.transport import Transport
from gpumatch.running.control import InterruptsStop

__all__ = ["check_room", "costs_of", "solve"]

COST_BYTES = 8
"""What a pair of computed costs takes in the matrix that is made of them."""


def solve(C: Any, supply: Any, demand: Any, request: Request) -> Transport:
    """The flow for these costs and masses.

    Raises
    ------
    InfeasibleMassesError
        If no flow keeps to the bounds, or ships as much as the cardinality requires.
    TypeError, ValueError
        If the costs, the masses or the initial duals are wrong, or numbers are too large.
    """
    control = request.control
    with control.part("costs"):
        given = costs_of(C)
        choice = choose_transport(request.algorithm, request.backend, request.options, given)
        costs = given.to_device() if choice.backend == "cuda" else given.to_host()
        masses = masses_of(supply, demand, given.shape, costs.xp)
        limit = checked_limit(request.cost_limit, given.is_integer, request.maximize)
        goal = Goal(
            request.maximize, request.cardinality, limit, masses.rows.total > masses.cols.total
        )
        turned = _Turned.of(costs, masses, goal, choice.takes_points)
        initial = turned.duals_of(request.initial)
    control.total = turned.rows.total
    shipper = Shipper(
        choice.search(),
        control,
        request.threads,
        request.seed,
        choice.fallback(),
        choice.takes_least(),
    )
    with InterruptsStop(control) as stop:
        try:
            found, cover, outcome = turned.solved_by(shipper, initial, given)
            if shipper.has_used_far and found.has_ended and not outcome.proof.proven:
                shipper.may_use_far = False
                found, cover, outcome = turned.solved_by(shipper, initial, given)
        finally:
            if control.shows_bar:
                control.close(control.total)
        stats = {**shipper.counts, **choice.names(), **control.statistics()}
        result = turned.result(found, cover, given, outcome, stats)
    stop.bring(result)
    return result


def costs_of(C: Any) -> Costs:
    """The costs of a caller, checked."""
    if is_networkx(C):
        raise TypeError("transport takes no networkx graph: pass its costs as a sparse matrix")
    costs = as_costs(C)
    if costs.power:
        raise ValueError("the points are too far apart, or too near, for float64: scale them")
    return costs


def check_room(costs: Costs) -> None:
    """Check that the host has memory for the matrix of computed costs.

    Raises
    ------
    MemoryError
        If it has too little.
    """
    if costs.is_computed:
        nbytes = COST_BYTES * math.prod(costs.shape)
        hint = (
            "transport makes it: pass the costs of near pairs as a sparse matrix, or fewer points"
        )
        require_host_memory(nbytes, costs, hint)


class _Turned(Minimised):
    """A problem as it is solved: its costs are minimised, and its rows have the smaller total."""

    @classmethod
    def of(
        cls, given: Costs, masses: Masses, goal: Goal, takes_points: Callable[[Costs], bool]
    ) -> _Turned:
        sides = masses.rows, masses.cols
        rows, cols = sides[::-1] if goal.transposed else sides
        turned = cls(given, rows, cols, masses, goal)
        has_all_pairs = goal.cardinality != "maximum" or goal.cost_limit is None
        if given.points is not None and has_all_pairs and not turned.has_lower:
            turned.costs = goal.problem(given)
            if takes_points(turned.costs):
                return turned
        if not given.on_device:
            check_room(given)
        turned.costs = _problem_of(given, goal)
        return turned

    def duals_of(self, initial: Any) -> tuple[Any, Any] | None:
        """The caller's initial duals as the algorithm takes them."""
        shape = self.masses.rows.upper.size, self.masses.cols.upper.size
        costs = self.costs
        duals = flow_duals(initial, shape, costs.is_integer, self.goal.maximize, costs.xp)
        if duals is None:
            return None
        of_rows, of_cols = duals[::-1] if self.goal.transposed else duals
        if self.goal.limit is not None:
            of_rows = of_rows + of_rows.dtype.type(self.goal.limit)
        return of_rows, of_cols

    def solved_by(
        self, shipper: Shipper, initial: tuple[Any, Any] | None, given: Costs
    ) -> tuple[Found, Any, Outcome]:
        """The flow, marks of its cover, and what it costs and proves."""
        found, cover = self.found_by(shipper, initial)
        if found.lacking is not None:
            raise self.error_of(*found.lacking)
        return found, cover, Outcome.of(self, found, cover, given)

    # -- what is shipped ---------------------------------------------------------------------------

    def found_by(
        self, shipper: Shipper, initial: tuple[Any, Any] | None
    ) -> tuple[Found, tuple[Any, Any] | None]:
        """The flow, and for cardinality "maximum" marks of the cover."""
        limit = self.goal.limit
        if self.goal.cardinality == "maximum":
            return self._largest(shipper, initial)
        if self.has_lower:
            found = shipper.ship_within(self.costs, self.rows, self.cols, limit, initial)
        else:
            found = shipper.ship(self.costs, self.rows.upper, self.cols.upper, limit, initial)
        if self.goal.cost_limit is not None and found.lacking is None:
            found = self._joined_at_limit(found)
        return found, None

    def _largest(
        self, shipper: Shipper, initial: tuple[Any, Any] | None
    ) -> tuple[Found, tuple[Any, Any] | None]:
        """The cheapest of the largest flows: one full problem, or two on either side of a cut."""
        xp, (nrows, ncols) = self.costs.xp, self.costs.shape
        if self.cols.has_lower:
            full = shipper.ship_within(self.costs, self.rows, self.cols, initial=initial)
        else:
            full = shipper.ship(self.costs, self.rows.upper, self.cols.upper, initial=initial)
        if full.lacking is None:
            cover = xp.ones(nrows, bool), xp.zeros(ncols, bool)
            return full, cover if full.has_ended else None
        most = shipper.ship_most(self.costs, self.rows.upper, self.cols.upper)
        if not most.has_ended:
            return _without_proof(most, full), None
        in_rows, in_cols = most.row_dual < 1, most.col_dual < 0
        parts = []
        for rows, cols, is_turned in (
            ((~in_rows).nonzero()[0], in_cols.nonzero()[0], True),
            (in_rows.nonzero()[0], (~in_cols).nonzero()[0], False),
        ):
            part = self.costs.restricted(rows, cols)
            ends = self.rows.at(rows), self.cols.at(cols)
            duals = None if initial is None else (initial[0][rows], initial[1][cols])
            if is_turned:
                duals = duals and duals[::-1]
                turned = shipper.ship_within(part.transpose(), *ends[::-1], initial=duals)
                found = _transposed(turned)
            else:
                found = shipper.ship_within(part, *ends, initial=duals)
            if found.lacking is not None:
                return found._replace(lacking=_named(found.lacking, rows, cols)), None
            parts.append((rows, cols, found))
        return _joined(parts, self.costs), (in_rows, in_cols)

    def _joined_at_limit(self, found: Found) -> Found:
        """Ship what rows and columns have left on pairs that cost no more than the limit."""
        limit, xp = self.goal.limit, self.costs.xp
        left = [
            side.upper - units_at(ends, found.flow, side.upper.size)
            for side, ends in ((self.rows, found.rows), (self.cols, found.cols))
        ]
        has_left = [units > 0 for units in left]
        if not all(map(any_true, has_left)):
            return found
        if limit is not None and self.costs.is_computed:
            near = self.costs.near(limit, *(marks.nonzero()[0] for marks in has_left))
            if near is not None and not near[0].size:
                return found
        left_rows, left_cols = (array_of(np, units) for units in left)
        more: list[tuple[int, int, int]] = []
        for tile in self.costs.tiles():
            rows, cols, values = self.costs.tile(tile)
            marks = (values <= limit) & has_left[0][rows] & has_left[1][cols]
            if not any_true(marks):
                continue
            own = array_of(np, xp.broadcast_to(rows, marks.shape)[marks])
            other = array_of(np, xp.broadcast_to(cols, marks.shape)[marks])
            starts = np.flatnonzero(np.diff(own, prepend=-1))
            for row, ends in zip(own[starts].tolist(), np.split(other, starts[1:])):
                room = left_cols[ends]
                taken = np.clip(left_rows[row] - (np.cumsum(room) - room), 0, room)
                left_cols[ends] -= taken
                left_rows[row] -= taken.sum()
                used = taken.nonzero()[0]
                more += [(row, col, units) for col, units in zip(ends[used], taken[used])]
        if not more:
            return found
        rows, cols, flow = (xp.asarray(np.array(part, np.int64)) for part in zip(*more))
        joined = merged(
            xp.concatenate([found.rows, rows]),
            xp.concatenate([found.cols, cols]),
            xp.concatenate([found.flow, flow]),
        )
        return found._replace(rows=joined[0], cols=joined[1], flow=joined[2])

    def error_of(
        self, rows: Any, cols: Any, needed: int, available: int, by_rows: bool
    ) -> InfeasibleMassesError:
        """The error that names the caller's rows, columns and masses."""
        unit = self.masses.unit
        if self.goal.transposed:
            rows, cols, by_rows = cols, rows, not by_rows
        return InfeasibleMassesError(rows, cols, needed * unit, available * unit, by_rows)

    # -- what proves it ----------------------------------------------------------------------------

    def result(
        self, found: Found, cover: Any, given: Costs, outcome: Outcome, stats: dict[str, Any]
    ) -> Transport:
        """The Transport with the caller's rows, columns, signs and kind of arrays."""
        masses, goal = self.masses, self.goal
        sign = -1 if goal.maximize else 1
        ends, duals = [found.rows, found.cols], [outcome.row_dual, outcome.col_dual]
        if goal.transposed:
            ends, duals = ends[::-1], duals[::-1]
            cover = cover and cover[::-1]
        order = order_of(*ends)
        array = functools.partial(array_of, given.xp)
        return Transport(
            array(ends[0][order]),
            array(ends[1][order]),
            array(found.flow[order]),
            array(sign * duals[0]),
            array(sign * duals[1]),
            row_bounds=tuple(map(array, masses.rows)),
            col_bounds=tuple(map(array, masses.cols)),
            unit=masses.unit,
            dtype=masses.dtype,
            pair_costs=array((sign * outcome.costs)[order]),
            objective=sign * outcome.objective + 0,  # no -0.0
            gap=outcome.proof.gap,
            proven=outcome.proof.proven,
            maximize=goal.maximize,
            cardinality=goal.cardinality,
            cost_limit=goal.cost_limit,
            cover=None
            if cover is None or outcome.proof.gap == math.inf
            else tuple(array(side.nonzero()[0]) for side in cover),
            stats=stats,
        )


# -- small steps -----------------------------------------------------------------------------------


def _problem_of(given: Costs, goal: Goal) -> Costs:
    """The costs, turned: dense or sparse, as they are to be minimised."""
    costs = given.stored()
    is_plain = goal.cardinality != "maximum" or goal.cost_limit is None
    if not (isinstance(costs, DenseCosts) and costs.is_integer and is_plain):
        return goal.problem(costs)
    values = costs.values.T if goal.transposed else costs.values
    if goal.maximize:
        values = -given.xp.array(values, np.int64, order="C")
    extent = costs.extent.negated() if goal.maximize else costs.extent
    problem = DenseCosts._of(exactly(values, np.int64), extent)
    limit = goal.limit or 0
    if isinstance(limit, float):
        problem = problem.as_float()
    check_sums(max(problem.largest, abs(limit)), min(problem.shape))
    return problem


def _transposed(found: Found) -> Found:
    order = order_of(found.cols, found.rows)
    lacking = found.lacking
    return Found(
        found.cols[order],
        found.rows[order],
        found.flow[order],
        found.col_dual,
        found.row_dual,
        found.has_ended,
        lacking and (lacking[1], lacking[0], *lacking[2:4], not lacking[4]),
    )


def _named(lacking: Any, rows: Any, cols: Any) -> Any:
    """What a part lacks, with the rows and columns of the whole problem."""
    return rows[lacking[0]], cols[lacking[1]], *lacking[2:]


def _without_proof(flow: Found, duals: Found) -> Found:
    """A flow of a run that was stopped, with feasible duals."""
    return flow._replace(row_dual=duals.row_dual, col_dual=duals.col_dual, lacking=None)


def _joined(parts: list[tuple[Any, Any, Found]], costs: Costs) -> Found:
    """The flow and the duals of two parts that share no row and no column."""
    dtype = np.int64 if costs.is_integer else np.float64
    xp = costs.xp
    row_dual, col_dual = (xp.zeros(length, dtype) for length in costs.shape)
    for rows, cols, found in parts:
        row_dual[rows], col_dual[cols] = found.row_dual, found.col_dual
    flow = merged(
        xp.concatenate([rows[found.rows] for rows, _, found in parts]),
        xp.concatenate([cols[found.cols] for _, cols, found in parts]),
        xp.concatenate([found.flow for _, _, found in parts]),
    )
    return Found(*flow, row_dual, col_dual, all(found.has_ended for *_, found in parts))
