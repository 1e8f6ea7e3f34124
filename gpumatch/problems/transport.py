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
import math
from typing import Any

import numpy as np

from gpumatch.costs import Costs, DenseCosts, as_costs, check_sums
from gpumatch.costs.computed import require_host_memory
from gpumatch.dispatch.backends import choose_transport
from gpumatch.dispatch.registry import FAIR_ROWS, load
from gpumatch.interop.networkx import is_networkx
from gpumatch.numeric.arrays import exactly
from gpumatch.numeric.exact_products import product_terms
from gpumatch.numeric.exact_sums import magnitude
from gpumatch.numeric.fair_duals import difference_below, make_fair
from gpumatch.numeric.gaps import Proof, proof_of, rounding_above
from gpumatch.problems.flows import Found, InfeasibleMassesError, Shipper, merged, total_of
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
        masses = masses_of(supply, demand, given.shape)
        limit = checked_limit(request.cost_limit, given.is_integer, request.maximize)
        goal = Goal(
            request.maximize, request.cardinality, limit, masses.rows.total > masses.cols.total
        )
        turned = _Turned.of(given, masses, goal)
        initial = turned.duals_of(request.initial)
    control.total = turned.rows.total
    shipper = Shipper(choice.search(), control, request.threads, request.seed)
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
        On the host, dense or sparse.
    rows, cols : Bounds
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
    def of(cls, given: Costs, masses: Masses, goal: Goal) -> _Turned:
        sides = masses.rows, masses.cols
        rows, cols = sides[::-1] if goal.transposed else sides
        return cls(_problem_of(given, goal), rows, cols, masses, goal)

    @property
    def has_lower(self) -> bool:
        """Whether a lower bound counts, beyond those of rows that ship all they have."""
        return self.cols.has_lower or (not self.goal.is_full and self.rows.has_lower)

    def duals_of(self, initial: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """The caller's initial duals as the algorithm takes them."""
        shape = self.masses.rows.upper.size, self.masses.cols.upper.size
        duals = flow_duals(initial, shape, self.costs.is_integer, self.goal.maximize)
        if duals is None:
            return None
        of_rows, of_cols = duals[::-1] if self.goal.transposed else duals
        if self.goal.limit is not None:
            of_rows = of_rows + of_rows.dtype.type(self.goal.limit)
        return of_rows, of_cols

    def solved_by(
        self, shipper: Shipper, initial: tuple[np.ndarray, np.ndarray] | None, given: Costs
    ) -> tuple[Found, Any, _Outcome]:
        """The flow, marks of its cover, and what it costs and proves."""
        found, cover = self.found_by(shipper, initial)
        if found.lacking is not None:
            raise self.error_of(*found.lacking)
        return found, cover, _Outcome.of(self, found, cover, given)

    # -- what is shipped ---------------------------------------------------------------------------

    def found_by(
        self, shipper: Shipper, initial: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[Found, tuple[np.ndarray, np.ndarray] | None]:
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
        self, shipper: Shipper, initial: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[Found, tuple[np.ndarray, np.ndarray] | None]:
        """The cheapest of the largest flows: one full problem, or two on either side of a cut."""
        nrows, ncols = self.costs.shape
        if self.cols.has_lower:
            full = shipper.ship_within(self.costs, self.rows, self.cols, initial=initial)
        else:
            full = shipper.ship(self.costs, self.rows.upper, self.cols.upper, initial=initial)
        if full.lacking is None:
            cover = np.ones(nrows, bool), np.zeros(ncols, bool)
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
        limit = self.goal.limit
        left_rows = self.rows.upper - _sums(found.rows, found.flow, self.rows.upper.size)
        left_cols = self.cols.upper - _sums(found.cols, found.flow, self.cols.upper.size)
        if not (left_rows.any() and left_cols.any()):
            return found
        more: list[tuple[int, int, int]] = []
        for tile in self.costs.tiles():
            rows, cols, values = self.costs.tile(tile)
            marks = (values <= limit) & (left_rows[rows] > 0) & (left_cols[cols] > 0)
            if not marks.any():
                continue
            own = np.broadcast_to(rows, marks.shape)[marks]
            other = np.broadcast_to(cols, marks.shape)[marks]
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
        rows, cols, flow = (np.array(part, np.int64) for part in zip(*more))
        joined = merged(
            np.concatenate([found.rows, rows]),
            np.concatenate([found.cols, cols]),
            np.concatenate([found.flow, flow]),
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
        order = np.lexsort(ends[::-1])
        array = given.xp.asarray
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

    costs: np.ndarray
    objective: float
    proof: Proof
    row_dual: np.ndarray
    col_dual: np.ndarray

    @classmethod
    def of(cls, turned: _Turned, found: Found, cover: Any, given: Costs) -> _Outcome:
        problem, goal = turned.costs, turned.goal
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
            _sums(ends, found.flow, side.upper.size)
            for ends, side in zip((found.rows, found.cols), bounds)
        ]
        is_complete = all(bool((got >= side.lower).all()) for got, side in zip(sums, bounds))
        if goal.cardinality == "maximum" and cover is None:
            is_complete = False
        row_dual, col_dual = found.row_dual.copy(), found.col_dual.copy()
        if not is_complete:
            return cls(costs, objective, Proof(math.inf, False), row_dual, col_dual)
        largest = max(magnitude(costs), abs(limit or 0) if found.flow.size else 0)
        total = total_of(found.flow)
        base = [] if not limit else product_terms(np.array([limit], costs.dtype), np.array([total]))
        base = [-part * unit for part in base]

        def proof_by(row_dual: np.ndarray, col_dual: np.ndarray) -> Proof:
            prices = _clipped(row_dual, bounds[0]), _clipped(col_dual, bounds[1])
            less = []
            for price, side in zip(prices, bounds):
                units = np.where(price > 0, side.lower, side.upper)
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
        if not proof.proven and limit is not None and is_left.any():
            others = _fair_with_rows_left(turned, row_dual, col_dual, bounds, is_left)
            other = proof_by(*others)
            if other.gap < proof.gap:
                prices, proof = others, other
        return cls(costs, objective, proof, *prices)


def _fair(
    turned: _Turned, row_dual: np.ndarray, col_dual: np.ndarray, bounds: Any, cover: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Duals of floats that no pair undercuts: for the columns', the largest of the rows."""
    problem, limit = turned.costs, turned.goal.limit
    col_dual = _clipped(col_dual, bounds[1])
    if cover is not None and cover[1].any():
        row_dual = _clipped(row_dual, bounds[0])
        every = np.zeros(row_dual.size, np.int64)
        make_fair(problem, every, row_dual, col_dual, inside=cover)
        return row_dual, col_dual
    given, row_dual = row_dual, np.empty_like(row_dual)
    entries = problem.entries() if problem.is_sparse else problem.dense()
    load(FAIR_ROWS)(entries, col_dual, row_dual, None)
    row_dual = np.where(row_dual < math.inf, row_dual, given)
    if limit:
        row_dual = difference_below(row_dual, limit)
    return _clipped(row_dual, bounds[0]), col_dual


def _retraced(
    found: Found, costs: np.ndarray, bounds: Any, sums: list[np.ndarray], limit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Duals of floats found again along the pairs with flow, whose costs may be small.

    Duals of a network were shifted, and have its largest numbers' rounding. A vertex whose flow is
    between its bounds has the dual 0, or a row the limit. From these, and from one column of each
    part of the flow that has none, the duals follow by the costs of pairs with flow.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    row_dual, col_dual = found.row_dual.copy(), found.col_dual.copy()
    nrows, ncols = row_dual.size, col_dual.size
    of_rows, of_cols = ((side.lower < got) & (got < side.upper) for side, got in zip(bounds, sums))
    row_dual[of_rows], col_dual[of_cols] = limit, 0.0
    ends = found.rows, found.cols + nrows
    graph = coo_array((np.ones(costs.size), ends), shape=(nrows + ncols, nrows + ncols))
    count, part = connected_components(graph, directed=False)
    has_one = np.zeros(count, bool)
    has_one[part[:nrows][of_rows]] = has_one[part[nrows:][of_cols]] = True
    firsts = np.unique(part[nrows:], return_index=True)
    of_cols[firsts[1][~has_one[firsts[0]]]] = True
    while True:
        row_gains = of_cols[found.cols] & ~of_rows[found.rows]
        row_dual[found.rows[row_gains]] = costs[row_gains] - col_dual[found.cols[row_gains]]
        of_rows[found.rows[row_gains]] = True
        col_gains = of_rows[found.rows] & ~of_cols[found.cols]
        col_dual[found.cols[col_gains]] = costs[col_gains] - row_dual[found.rows[col_gains]]
        of_cols[found.cols[col_gains]] = True
        if not (row_gains.any() or col_gains.any()):
            return row_dual, col_dual


def _fair_with_rows_left(
    turned: _Turned, row_dual: np.ndarray, col_dual: np.ndarray, bounds: Any, is_left: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Duals of floats where rows with units left have the limit, and columns are lowered."""
    limit = turned.goal.limit or 0
    row_dual, col_dual = row_dual.copy(), _clipped(col_dual, bounds[1])
    row_dual[is_left & (turned.rows.lower == 0)] = limit
    make_fair(turned.costs, np.where(is_left, -1, 0), row_dual, col_dual)
    if limit:
        row_dual = difference_below(row_dual, limit)
    return _clipped(row_dual, bounds[0]), col_dual


def _bounds_that_count(turned: _Turned, cover: Any) -> tuple[Bounds, Bounds]:
    """The bounds of all flows that compete, as the head of this module says."""
    rows, cols = turned.rows, turned.cols
    if turned.goal.cardinality == "maximum":
        if cover is None:
            return rows, cols
        in_rows, in_cols = cover
        return (
            Bounds(np.where(in_rows, rows.upper, rows.lower), rows.upper),
            Bounds(np.where(in_cols, cols.upper, cols.lower), cols.upper),
        )
    if turned.goal.is_full:
        return Bounds(rows.upper, rows.upper), cols
    return rows, cols


def _clipped(dual: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Duals with 0 in place of those above, where the lower bound is 0 and not the upper one."""
    is_capacity = (bounds.lower == 0) & (bounds.upper > 0)
    return np.where(is_capacity, np.minimum(dual, 0), dual)


def _rounding_of(
    given: Costs, turned: _Turned, costs: np.ndarray, flow: np.ndarray, limit: float | None
) -> Any:
    """By how much the rounding of computed costs may enlarge a gap; None if they are exact.

    A flow is an assignment of units, so each offset counts as often as its vertex has mass.
    """
    rounding, unit = given.rounding, turned.masses.unit
    if not (rounding.share or rounding.pair):
        return None
    most = max(int(side.upper.max(initial=0)) for side in (turned.rows, turned.cols)) * unit
    paid = math.fsum(product_terms(abs(costs), flow, unit))
    return rounding_above(
        rounding._replace(added=rounding.added * max(most, 1.0)),
        turned.rows.total * unit,
        paid,
        abs(float(limit or 0)),
    )


# -- small steps -----------------------------------------------------------------------------------


def _problem_of(given: Costs, goal: Goal) -> Costs:
    """The costs on the host, turned: dense or sparse, as they are to be minimised."""
    costs = given.to_host().stored()
    is_plain = goal.cardinality != "maximum" or goal.cost_limit is None
    if not (isinstance(costs, DenseCosts) and costs.is_integer and is_plain):
        return goal.problem(costs)
    values = costs.values.T if goal.transposed else costs.values
    if goal.maximize:
        values = np.negative(np.array(values, np.int64, order="C"))
    extent = costs.extent.negated() if goal.maximize else costs.extent
    problem = DenseCosts._of(exactly(values, np.int64), extent)
    limit = goal.limit or 0
    if isinstance(limit, float):
        problem = problem.as_float()
    check_sums(max(problem.largest, abs(limit)), min(problem.shape))
    return problem


def _sums(ends: np.ndarray, flow: np.ndarray, length: int) -> np.ndarray:
    """The units at each vertex of a side."""
    found = np.zeros(length, np.int64)
    np.add.at(found, ends, flow)
    return found


def _transposed(found: Found) -> Found:
    order = np.lexsort((found.rows, found.cols))
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


def _named(lacking: Any, rows: np.ndarray, cols: np.ndarray) -> Any:
    """What a part lacks, with the rows and columns of the whole problem."""
    return rows[lacking[0]], cols[lacking[1]], *lacking[2:]


def _without_proof(flow: Found, duals: Found) -> Found:
    """A flow of a run that was stopped, with feasible duals."""
    return flow._replace(row_dual=duals.row_dual, col_dual=duals.col_dual, lacking=None)


def _joined(parts: list[tuple[np.ndarray, np.ndarray, Found]], costs: Costs) -> Found:
    """The flow and the duals of two parts that share no row and no column."""
    dtype = np.int64 if costs.is_integer else np.float64
    row_dual, col_dual = (np.zeros(length, dtype) for length in costs.shape)
    for rows, cols, found in parts:
        row_dual[rows], col_dual[cols] = found.row_dual, found.col_dual
    flow = merged(
        np.concatenate([rows[found.rows] for rows, _, found in parts]),
        np.concatenate([cols[found.cols] for _, cols, found in parts]),
        np.concatenate([found.flow for _, _, found in parts]),
    )
    return Found(*flow, row_dual, col_dual, all(found.has_ended for *_, found in parts))
