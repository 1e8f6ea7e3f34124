"""Transport: how each cardinality becomes flows between bounds, and what proves its result.

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
objective - B, is rigorous as for assignments (`gpumatch.numeric.gaps`). With all masses 1, these
are the conditions of `gpumatch.problems.cardinality`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.costs import Costs, DenseCosts, as_costs, check_sums
from gpumatch.costs.computed import require_host_memory
from gpumatch.dispatch.backends import choose_transport
from gpumatch.dispatch.registry import (
    FAIR_ROWS,
    FAIR_ROWS_OF_POINTS,
    FAIR_ROWS_ON_DEVICE,
    load,
)
from gpumatch.interop.networkx import is_networkx
from gpumatch.numeric.arrays import any_true, array_module, array_of, exactly
from gpumatch.numeric.exact_products import product_terms
from gpumatch.numeric.exact_sums import magnitude
from gpumatch.numeric.fair_duals import difference_below, make_fair
from gpumatch.numeric.gaps import Proof, proof_of, rounding_above
from gpumatch.numeric.units import merged, order_of, units_at
from gpumatch.problems.flows import Found, InfeasibleMassesError, Shipper, total_of
from gpumatch.problems.initial import flow_duals
from gpumatch.problems.masses import Bounds, Masses, masses_of
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
        if choice.backend == "cpu":
            check_room(given)
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


@dataclasses.dataclass
class _Turned:
    """A problem whose costs are minimised, and whose rows have the smaller total.

    Attributes
    ----------
    costs : Costs
        Dense or sparse, where the algorithm runs. They are computed if the algorithm takes points,
        and then no matrix is made.
    rows, cols : Bounds
        There, too.
    masses : Masses
        Those of the caller, whose rows may be the columns here.
    goal : Goal
    """

    costs: Costs
    rows: Bounds
    cols: Bounds
    masses: Masses
    goal: Goal

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
        turned.costs = _problem_of(given, goal)
        return turned

    @property
    def has_lower(self) -> bool:
        """Whether a lower bound counts, beyond those of rows that ship all they have."""
        return self.cols.has_lower or (not self.goal.is_full and self.rows.has_lower)

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
    ) -> tuple[Found, Any, _Outcome]:
        """The flow, marks of its cover, and what it costs and proves."""
        found, cover = self.found_by(shipper, initial)
        if found.lacking is not None:
            raise self.error_of(*found.lacking)
        return found, cover, _Outcome.of(self, found, cover, given)

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
        self, found: Found, cover: Any, given: Costs, outcome: _Outcome, stats: dict[str, Any]
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


@dataclasses.dataclass
class _Outcome:
    """What a flow costs, and what its duals prove; duals are less the limit, if there is one."""

    costs: Any
    objective: float
    proof: Proof
    row_dual: Any
    col_dual: Any

    @classmethod
    def of(cls, turned: _Turned, found: Found, cover: Any, given: Costs) -> _Outcome:
        problem, goal = turned.costs, turned.goal
        xp = problem.xp
        is_integer = problem.is_integer
        scale = turned.masses.unit
        costs = problem.at(found.rows, found.cols)
        costs = costs.astype(np.int64 if is_integer else np.float64)
        unit = 1 if is_integer else scale  # integers are added up in units
        try:
            terms = product_terms(costs, found.flow, unit)
            objective: float = sum(terms) * scale if is_integer else math.fsum(terms)
        except OverflowError:
            raise ValueError("the total cost is beyond the range of float64") from None
        limit = goal.limit
        bounds = _bounds_that_count(turned, cover)
        sums = [
            units_at(ends, found.flow, side.upper.size)
            for ends, side in zip((found.rows, found.cols), bounds)
        ]
        is_complete = not any(any_true(got < side.lower) for got, side in zip(sums, bounds))
        if goal.cardinality == "maximum" and cover is None:
            is_complete = False
        row_dual, col_dual = found.row_dual.copy(), found.col_dual.copy()
        if not is_complete:
            return cls(costs, objective, Proof(math.inf, False), row_dual, col_dual)
        largest = max(magnitude(costs), abs(limit or 0) if found.flow.size else 0)
        total = total_of(found.flow)
        base = [] if not limit else product_terms(np.array([limit], costs.dtype), np.array([total]))
        base = [-part * unit for part in base]

        def proof_by(row_dual: Any, col_dual: Any) -> Proof:
            prices = _clipped(row_dual, bounds[0]), _clipped(col_dual, bounds[1])
            less = []
            for price, side in zip(prices, bounds):
                units = xp.where(price > 0, side.lower, side.upper)
                less += product_terms(-price, units, unit)
            proof = proof_of(
                [*terms, *base, *less],
                min(problem.shape),
                has_ended=found.has_ended,
                is_integer=is_integer,
                largest=lambda: largest,
                largest_dual=lambda: max(magnitude(row_dual), magnitude(col_dual)),
                objective=objective,
                rounding=_rounding_of(given, turned, costs, found.flow, limit),
                mass=total * scale,
            )
            return proof if not is_integer else proof._replace(gap=proof.gap * scale)

        if is_integer:
            if limit:
                row_dual -= limit
            row_dual, col_dual = _clipped(row_dual, bounds[0]), _clipped(col_dual, bounds[1])
            return cls(costs, objective, proof_by(row_dual, col_dual), row_dual, col_dual)
        is_left = sums[0] < turned.rows.upper
        prices = _fair(turned, row_dual, col_dual, bounds, cover)
        proof = proof_by(*prices)
        if not proof.proven and found.has_ended and turned.has_lower:
            row_dual, col_dual = _retraced(found, costs, bounds, sums, limit or 0)
            others = _fair(turned, row_dual, col_dual, bounds, cover)
            other = proof_by(*others)
            if other.gap < proof.gap:
                prices, proof = others, other
        if not proof.proven and limit is not None and any_true(is_left):
            others = _fair_with_rows_left(turned, row_dual, col_dual, bounds, is_left)
            other = proof_by(*others)
            if other.gap < proof.gap:
                prices, proof = others, other
        return cls(costs, objective, proof, *prices)


def _fair(
    turned: _Turned, row_dual: Any, col_dual: Any, bounds: Any, cover: Any
) -> tuple[Any, Any]:
    """Duals of floats that no pair undercuts: for the columns', the largest of the rows."""
    problem, limit = turned.costs, turned.goal.limit
    xp, col_dual = problem.xp, _clipped(col_dual, bounds[1])
    if cover is not None and any_true(cover[1]):
        row_dual = _clipped(row_dual, bounds[0])
        every = xp.zeros(row_dual.size, np.int64)
        make_fair(problem, every, row_dual, col_dual, inside=cover)
        return row_dual, col_dual
    given, row_dual = row_dual, xp.empty_like(row_dual)
    if problem.is_computed:
        row_dual = load(FAIR_ROWS_OF_POINTS)(problem.points, col_dual)
    else:
        entries = problem.entries() if problem.is_sparse else problem.dense()
        write_fair_duals = load(FAIR_ROWS_ON_DEVICE if problem.on_device else FAIR_ROWS)
        write_fair_duals(entries, col_dual, row_dual, None)
    row_dual = xp.where(row_dual < math.inf, row_dual, given)
    if limit:
        row_dual = difference_below(row_dual, limit)
    return _clipped(row_dual, bounds[0]), col_dual


def _retraced(
    found: Found, costs: Any, bounds: Any, sums: list[Any], limit: float
) -> tuple[Any, Any]:
    """Duals of floats found again along the pairs with flow, whose costs may be small.

    Duals of a network were shifted, and have its largest numbers' rounding. A vertex whose flow is
    between its bounds has the dual 0, or a row the limit. From these, and from one column of each
    part of the flow that has none, the duals follow by the costs of pairs with flow. The host finds
    them.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    xp = array_module(costs)
    rows, cols, costs = (array_of(np, part) for part in (found.rows, found.cols, costs))
    row_dual, col_dual = (array_of(np, dual).copy() for dual in (found.row_dual, found.col_dual))
    nrows, ncols = row_dual.size, col_dual.size
    of_rows, of_cols = (
        array_of(np, (side.lower < got) & (got < side.upper)) for side, got in zip(bounds, sums)
    )
    row_dual[of_rows], col_dual[of_cols] = limit, 0.0
    ends = rows, cols + nrows
    graph = coo_array((np.ones(costs.size), ends), shape=(nrows + ncols, nrows + ncols))
    count, part = connected_components(graph, directed=False)
    has_one = np.zeros(count, bool)
    has_one[part[:nrows][of_rows]] = has_one[part[nrows:][of_cols]] = True
    firsts = np.unique(part[nrows:], return_index=True)
    of_cols[firsts[1][~has_one[firsts[0]]]] = True
    while True:
        row_gains = of_cols[cols] & ~of_rows[rows]
        row_dual[rows[row_gains]] = costs[row_gains] - col_dual[cols[row_gains]]
        of_rows[rows[row_gains]] = True
        col_gains = of_rows[rows] & ~of_cols[cols]
        col_dual[cols[col_gains]] = costs[col_gains] - row_dual[rows[col_gains]]
        of_cols[cols[col_gains]] = True
        if not (row_gains.any() or col_gains.any()):
            return array_of(xp, row_dual), array_of(xp, col_dual)


def _fair_with_rows_left(
    turned: _Turned, row_dual: Any, col_dual: Any, bounds: Any, is_left: Any
) -> tuple[Any, Any]:
    """Duals of floats where rows with units left have the limit, and columns are lowered."""
    limit = turned.goal.limit or 0
    row_dual, col_dual = row_dual.copy(), _clipped(col_dual, bounds[1])
    row_dual[is_left & (turned.rows.lower == 0)] = limit
    if turned.costs.is_computed:
        row_dual, col_dual = _lowered(turned.costs, row_dual, col_dual, is_left)
    else:
        make_fair(turned.costs, turned.costs.xp.where(is_left, -1, 0), row_dual, col_dual)
    if limit:
        row_dual = difference_below(row_dual, limit)
    return _clipped(row_dual, bounds[0]), col_dual


def _lowered(problem: Costs, row_dual: Any, col_dual: Any, is_kept: Any) -> tuple[Any, Any]:
    """Duals of points that no pair undercuts: some rows keep theirs, and columns are lowered."""
    fair_rows, xp = load(FAIR_ROWS_OF_POINTS), problem.xp
    kept = is_kept.nonzero()[0]
    part = problem.restricted(kept, xp.arange(col_dual.size)).transpose()
    col_dual = xp.minimum(col_dual, fair_rows(part.points, row_dual[kept]))
    return xp.where(is_kept, row_dual, fair_rows(problem.points, col_dual)), col_dual


def _bounds_that_count(turned: _Turned, cover: Any) -> tuple[Bounds, Bounds]:
    """The bounds of all flows that compete, as the head of this module says."""
    rows, cols, where = turned.rows, turned.cols, turned.costs.xp.where
    if turned.goal.cardinality == "maximum":
        if cover is None:
            return rows, cols
        return (
            Bounds(where(cover[0], rows.upper, rows.lower), rows.upper),
            Bounds(where(cover[1], cols.upper, cols.lower), cols.upper),
        )
    if turned.goal.is_full:
        return Bounds(rows.upper, rows.upper), cols
    return rows, cols


def _clipped(dual: Any, bounds: Bounds) -> Any:
    """Duals with 0 in place of those above, where the lower bound is 0 and not the upper one."""
    xp, is_capacity = array_module(dual), (bounds.lower == 0) & (bounds.upper > 0)
    return xp.where(is_capacity, xp.minimum(dual, 0), dual)


def _rounding_of(given: Costs, turned: _Turned, costs: Any, flow: Any, limit: float | None) -> Any:
    """By how much the rounding of computed costs may enlarge a gap; None if they are exact.

    A flow is an assignment of units, so each offset counts as often as its vertex has mass.
    """
    rounding, unit = given.rounding, turned.masses.unit
    if not (rounding.share or rounding.pair):
        return None
    sides = [side.upper for side in (turned.rows, turned.cols)]
    most = max(int(upper.max()) if upper.size else 0 for upper in sides) * unit
    paid = math.fsum(product_terms(abs(costs), flow, unit))
    return rounding_above(
        rounding._replace(added=rounding.added * max(most, 1.0)),
        turned.rows.total * unit,
        paid,
        abs(float(limit or 0)),
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
