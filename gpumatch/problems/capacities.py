"""Transport whose pairs have capacities: the problem, and what proves its result.

The problem is that of `gpumatch.problems.transport`, but pair (i, j) carries at most k_ij units. It
never carries more than its row or its column has. So k_ij is the least of these three, and no pair
is without a bound. With that module's b(p), prices u and v, and a limit L or 0, any flow has

    sum((c - L) f) >= B = sum(b(u)) + sum(b(v)) + sum(k min(0, c - L - u - v)),

because a pair with reduced cost r pays r f >= k min(0, r). So a pair may have any reduced cost. For
cardinality ``"maximum"``, a cut takes the place of the cover: rows and columns whose upper bounds,
and the capacities of the pairs *across*, which touch neither, add up to the total flow. A largest
flow fills the rows and columns of the cut, fills the pairs across, and uses no pair inside. So
those across pay k (c - u - v), and those inside nothing.

All of it is solved on the host, and the result is where the costs are. It is solved in CSR by
`gpumatch.contracts.transport.BoundedTask`. Costs of -1 give a largest flow and the cut. The pairs
that touch the cut once give the cheapest of the largest flows.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts.transport import BoundedSolution, BoundedTask
from gpumatch.costs import Costs, DenseCosts, SparseCosts, check_sums
from gpumatch.costs.capacities import PairCapacities
from gpumatch.dispatch.backends import choose_transport
from gpumatch.dispatch.registry import BOUNDED_FLOWS, load
from gpumatch.numeric.exact_products import product_terms
from gpumatch.numeric.exact_sums import magnitude
from gpumatch.numeric.fair_duals import differences_below, sum_of
from gpumatch.numeric.gaps import Proof, proof_of, rounding_above
from gpumatch.problems.flows import InfeasibleMassesError, total_of
from gpumatch.problems.initial import flow_duals
from gpumatch.problems.masses import MOST, Bounds, Masses, masses_of
from gpumatch.problems.request import Goal, Request, checked_limit
from gpumatch.problems.transport import check_room, costs_of
from gpumatch.results.transport import Transport
from gpumatch.running.control import Control, InterruptsStop

__all__ = ["in_units", "solve"]


def solve(C: Any, supply: Any, demand: Any, pair_capacity: Any, request: Request) -> Transport:
    """The flow for these costs, masses and capacities.

    Raises
    ------
    InfeasibleMassesError
        If no flow keeps to the bounds, or ships as much as the cardinality requires.
    TypeError, ValueError
        If an argument is wrong, or numbers are too large.
    """
    control = request.control
    with control.part("costs"):
        given = costs_of(C)
        choice = choose_transport(request.algorithm, request.backend, request.options, given)
        backend = choice.backend if choice.backend in BOUNDED_FLOWS else "cpu"
        check_room(given)
        masses = masses_of(supply, demand, given.shape)
        on_host = given.to_host().stored()
        limit = checked_limit(request.cost_limit, given.is_integer, request.maximize)
        goal = Goal(request.maximize, request.cardinality, limit, False)
        capacities = PairCapacities(pair_capacity, C, on_host)
        masses, units = in_units(capacities, masses)
        problem = _Bounded.of(on_host, masses, capacities, units, goal)
        initial = flow_duals(request.initial, given.shape, problem.is_integer, goal.maximize)
    control.total = min(masses.rows.total, masses.cols.total)
    run = _Run(load(BOUNDED_FLOWS[backend]), control)
    with InterruptsStop(control) as stop:
        try:
            found = problem.solved_by(run, None if initial is None else initial[1])
        finally:
            if control.shows_bar:
                control.close(control.total)
        names = {**choice.names(), "backend": backend}
        stats = {**run.counts, **names, **control.statistics()}
        result = problem.result(found, given, stats)
    stop.bring(result)
    return result


def in_units(capacities: PairCapacities, masses: Masses) -> tuple[Masses, Any]:
    """The masses, in fractions if the capacities are, and the capacities in their whole units.

    Capacities are rounded down. One for all pairs is an int.
    """
    values = capacities.values
    if masses.unit == 1 and not _are_whole(values):
        masses = _in_fractions(masses)
    if values.dtype.kind != "f" and masses.unit == 1:
        units = np.minimum(values, MOST)
    else:
        units = np.floor(np.minimum(values / masses.unit, float(MOST)))
    units = units.astype(np.int64)
    return masses, units if units.ndim else int(units)


class _Run:
    """Solves bounded problems by an algorithm, and adds up what it counts."""

    def __init__(self, algorithm: Any, control: Control) -> None:
        self._algorithm, self._control = algorithm, control
        self.counts: dict[str, int] = {}

    def __call__(self, bounds: Bounds, pairs: _Pairs, col_dual: np.ndarray) -> BoundedSolution:
        with self._control.part("search"):
            found = self._algorithm(
                BoundedTask(
                    bounds.lower,
                    bounds.upper,
                    pairs.indptr,
                    pairs.cols.astype(np.int32),
                    pairs.costs,
                    pairs.capacity,
                    col_dual,
                    self._control,
                )
            )
        for name, value in found.stats.items():
            self.counts[name] = self.counts.get(name, 0) + value
        return found


class _Pairs(NamedTuple):
    """Pairs by row and column, their costs (less the limit) and capacities."""

    nrows: int
    rows: np.ndarray
    cols: np.ndarray
    costs: np.ndarray
    capacity: np.ndarray

    @property
    def indptr(self) -> np.ndarray:
        return np.append(0, np.cumsum(np.bincount(self.rows, minlength=self.nrows)))

    def some(self, marks: np.ndarray) -> _Pairs:
        return _Pairs(self.nrows, *(part[marks] for part in self[1:]))

    def sums(self, units: np.ndarray, length: int) -> np.ndarray:
        """The units at the rows and then the columns, `length` in all."""
        sums = np.zeros(length, np.int64)
        np.add.at(sums, self.rows, units)
        np.add.at(sums, self.nrows + self.cols, units)
        return sums


class _Found(NamedTuple):
    """Units of all pairs, duals of rows and then columns, and the cut of a largest flow."""

    flow: np.ndarray
    dual: np.ndarray
    has_ended: bool
    cut: np.ndarray | None = None


@dataclasses.dataclass
class _Bounded:
    """A problem whose costs are minimised, with the bounds of rows and then of columns."""

    pairs: _Pairs
    prices: np.ndarray
    """What a unit of each pair costs, with the limit."""
    bounds: Bounds
    masses: Masses
    goal: Goal
    units: Any
    """The caller's capacities in units."""

    @classmethod
    def of(
        cls, costs: Costs, masses: Masses, capacities: PairCapacities, units: Any, goal: Goal
    ) -> _Bounded:
        turned = goal.problem(costs)
        if isinstance(turned, DenseCosts):
            turned = turned.stored_sparse()
        assert isinstance(turned, SparseCosts)
        number = np.int64 if turned.is_integer else np.float64
        rows, cols = turned.graph.edges()
        prices = turned.weights.astype(number)
        limit = number(goal.limit or 0)
        check_sums(8 * max(turned.largest, abs(limit.item())), min(turned.shape) + 1)
        capacity = np.minimum(masses.rows.upper[rows], masses.cols.upper[cols])
        capacity = np.minimum(capacity, capacities.at(np.asarray(units), rows, cols))
        lower, upper = (
            np.concatenate([getattr(side, name) for side in (masses.rows, masses.cols)])
            for name in ("lower", "upper")
        )
        nrows = turned.shape[0]
        if goal.is_full:
            smaller = slice(0, nrows)
            if masses.rows.total > masses.cols.total:
                smaller = slice(nrows, None)
            lower[smaller] = upper[smaller]
        pairs = _Pairs(
            nrows, rows.astype(np.int64), cols.astype(np.int64), prices - limit, capacity
        )
        return cls(pairs, prices, Bounds(lower, upper), masses, goal, units)

    @property
    def is_integer(self) -> bool:
        return self.prices.dtype.kind == "i"

    @property
    def nrows(self) -> int:
        return self.pairs.nrows

    # -- what is shipped ---------------------------------------------------------------------------

    def solved_by(self, run: _Run, initial: np.ndarray | None) -> _Found:
        number = self.prices.dtype
        col_dual = np.zeros(self.bounds.upper.size - self.nrows, number)
        if initial is not None:
            most = 2 * (max(magnitude(self.pairs.costs), 1))
            col_dual = np.clip(initial, -most, most).astype(number)
        if self.goal.cardinality == "maximum":
            return self._largest(run, col_dual)
        found = run(self.bounds, self.pairs, col_dual)
        self._check(found)
        flow = found.flow
        if self.goal.cost_limit is not None:
            flow = self._joined_at_limit(flow)
        return _Found(flow, _joined(found), found.is_optimal)

    def _largest(self, run: _Run, col_dual: np.ndarray) -> _Found:
        """The cheapest of the largest flows."""
        pairs, bounds = self.pairs, self.bounds
        each = pairs._replace(costs=np.full(pairs.rows.size, -1, np.int64))
        most = run(bounds, each, np.zeros(col_dual.size, np.int64))
        self._check(most)
        if not most.is_optimal:
            return _Found(most.flow, self._first_duals(col_dual), False)
        cut = _joined(most) < 0
        touched = cut[pairs.rows].astype(np.int8) + cut[self.nrows + pairs.cols]
        flow = np.where(touched == 0, pairs.capacity, 0)
        across = pairs.sums(flow, cut.size)
        upper = bounds.upper - across
        lower = np.where(cut, upper, np.maximum(bounds.lower - across, 0))
        part = touched == 1
        found = run(Bounds(lower, upper), pairs.some(part), col_dual)
        self._check(found)
        flow[part] = found.flow
        dual = _joined(found)
        dual = np.where((lower == 0) & ~cut, np.minimum(dual, 0), dual)
        return _Found(flow, dual, found.is_optimal, cut)

    def _first_duals(self, col_dual: np.ndarray) -> np.ndarray:
        """Duals that no pair undercuts, for a run that has none yet."""
        pairs = self.pairs
        least = np.full(self.nrows, np.inf if not self.is_integer else np.iinfo(np.int64).max)
        least = least.astype(self.prices.dtype)
        np.minimum.at(least, pairs.rows, pairs.costs - col_dual[pairs.cols])
        has_pairs = np.bincount(pairs.rows, minlength=least.size) > 0
        return np.concatenate([np.where(has_pairs, least, 0), col_dual])

    def _check(self, found: BoundedSolution) -> None:
        """Raise the error of a problem that has no flow."""
        if found.violator is None:
            return
        rows, cols, by_rows = found.violator
        nrows, unit = self.nrows, self.masses.unit
        in_rows = np.zeros(nrows, bool)
        in_rows[rows] = True
        in_cols = np.zeros(self.bounds.upper.size - nrows, bool)
        in_cols[cols] = True
        of_row, of_col = in_rows[self.pairs.rows], in_cols[self.pairs.cols]
        outside = of_row & ~of_col if by_rows else of_col & ~of_row
        many, few = (rows, nrows + cols) if by_rows else (nrows + cols, rows)
        needed = total_of(self.bounds.lower[many])
        available = total_of(self.bounds.upper[few]) + total_of(self.pairs.capacity[outside])
        raise InfeasibleMassesError(rows, cols, needed * unit, available * unit, by_rows)

    def _joined_at_limit(self, flow: np.ndarray) -> np.ndarray:
        """Ship what rows and columns have left on pairs that cost no more than the limit."""
        pairs, flow = self.pairs, flow.copy()
        left = self.bounds.upper - pairs.sums(flow, self.bounds.upper.size)
        room = pairs.capacity - flow
        ends = pairs.rows, self.nrows + pairs.cols
        marks = (pairs.costs <= 0) & (room > 0) & (left[ends[0]] > 0) & (left[ends[1]] > 0)
        for entry in marks.nonzero()[0].tolist():
            row, col = (end[entry] for end in ends)
            units = min(left[row], left[col], room[entry])
            flow[entry] += units
            left[row] -= units
            left[col] -= units
        return flow

    # -- what proves it ----------------------------------------------------------------------------

    def result(self, found: _Found, given: Costs, stats: dict[str, Any]) -> Transport:
        """The Transport with the caller's signs and kind of arrays."""
        masses, goal, nrows = self.masses, self.goal, self.nrows
        sign = -1 if goal.maximize else 1
        used = found.flow.nonzero()[0]
        flow, prices = found.flow[used], self.prices[used]
        unit = 1 if self.is_integer else masses.unit
        try:
            terms = product_terms(prices, flow, unit)
            objective: float = sum(terms) * masses.unit if self.is_integer else math.fsum(terms)
        except OverflowError:
            raise ValueError("the total cost is beyond the range of float64") from None
        dual = self._clipped(found)
        if not self.is_integer and found.has_ended:
            dual = self._without_rounding(found, dual)
            dual[:nrows] = self._best_rows(found, dual)
        proof = self._proof(found, dual, terms, objective, given)
        array, cut = given.xp.asarray, found.cut
        cover = None
        if cut is not None and proof.gap < math.inf:
            cover = tuple(array(part.nonzero()[0]) for part in (cut[:nrows], cut[nrows:]))
        return Transport(
            array(self.pairs.rows[used]),
            array(self.pairs.cols[used]),
            array(flow),
            array(sign * dual[:nrows]),
            array(sign * dual[nrows:]),
            row_bounds=tuple(map(array, masses.rows)),
            col_bounds=tuple(map(array, masses.cols)),
            pair_capacity=self.units if isinstance(self.units, int) else array(self.units),
            unit=masses.unit,
            dtype=masses.dtype,
            pair_costs=array(sign * prices),
            objective=sign * objective + 0,  # no -0.0
            gap=proof.gap,
            proven=proof.proven,
            maximize=goal.maximize,
            cardinality=goal.cardinality,
            cost_limit=goal.cost_limit,
            cover=cover,
            stats=stats,
        )

    def _least(self, found: _Found) -> np.ndarray:
        """The lower bounds of all flows that compete."""
        return (
            self.bounds.lower
            if found.cut is None
            else np.where(found.cut, self.bounds.upper, self.bounds.lower)
        )

    def _clipped(self, found: _Found) -> np.ndarray:
        """Duals with 0 in place of those above, where the lower bound is 0 and not the upper."""
        is_capacity = (self._least(found) == 0) & (self.bounds.upper > 0)
        return np.where(is_capacity, np.minimum(found.dual, 0), found.dual)

    def _without_rounding(self, found: _Found, dual: np.ndarray) -> np.ndarray:
        """Duals with 0 where rounding alone gives them another sign than the flow asks for.

        A vertex with a large mass, most of which its pairs cannot carry, would enlarge the gap.
        """
        sums = self.pairs.sums(found.flow, dual.size)
        dual = np.where(sums < self.bounds.upper, np.maximum(dual, 0), dual)
        return np.where(sums > self._least(found), np.minimum(dual, 0), dual)

    def _best_rows(self, found: _Found, dual: np.ndarray) -> np.ndarray:
        """Duals of the rows of floats that prove the most beside those of the columns.

        At columns' duals, a row ships cheapest by its pairs of least reduced cost. Its best dual is
        the cost of the last of them, if it ships its bound. All of these costs are rounded down, so
        no pair undercuts it by rounding.
        """
        pairs, nrows, least = self.pairs, self.nrows, self._least(found)[: self.nrows]
        limit = float(self.goal.limit or 0)
        costs = differences_below(self.prices, limit) if limit else self.prices
        costs = differences_below(costs, dual[nrows + pairs.cols])
        upper = self.bounds.upper[:nrows]
        if found.cut is not None:
            touched = found.cut[pairs.rows].astype(np.int8) + found.cut[nrows + pairs.cols]
            across = pairs.sums(np.where(touched == 0, pairs.capacity, 0), found.cut.size)[:nrows]
            part = touched == 1
            pairs, costs = pairs.some(part), costs[part]
            least, upper = np.maximum(least - across, 0), upper - across
        order = np.lexsort((costs, pairs.rows))
        costs, indptr = costs[order], pairs.indptr
        room = pairs.capacity[order].astype(np.float64)
        sums = np.append(0.0, np.cumsum(room))
        best = []
        for wanted in (upper, least):
            reached = sums[indptr[:-1]] + wanted
            place = np.searchsorted(sums, reached * (1 - 2.0**-50), side="left") - 1
            is_short = place >= indptr[1:]
            place = np.clip(place, indptr[:-1], np.maximum(indptr[1:], 1) - 1)
            price = costs[place] if costs.size else np.zeros(nrows)
            best.append(np.where(is_short, np.inf, np.where(wanted > 0, price, -np.inf)))
        above, below = best
        chosen = np.where(above <= 0, above, np.where(below >= 0, below, 0.0))
        return np.where(np.isfinite(chosen), chosen, dual[:nrows])

    def _proof(
        self,
        found: _Found,
        dual: np.ndarray,
        terms: list[Any],
        objective: float,
        given: Costs,
    ) -> Proof:
        pairs, nrows, least = self.pairs, self.nrows, self._least(found)
        sums = pairs.sums(found.flow, least.size)
        if not bool((sums >= least).all()) or (
            self.goal.cardinality == "maximum" and found.cut is None
        ):
            return Proof(math.inf, False)
        total, scale = total_of(found.flow), self.masses.unit
        unit = 1 if self.is_integer else scale
        limit = self.prices.dtype.type(self.goal.limit or 0)
        base = product_terms(np.array([-limit]), np.array([total]), unit)
        units = np.where(dual > 0, least, self.bounds.upper)
        less = product_terms(-dual, units, unit)
        ends = pairs.rows, nrows + pairs.cols
        if found.cut is None:
            across = np.zeros(pairs.rows.size, bool)
            free = ~across
        else:
            touched = found.cut[ends[0]].astype(np.int8) + found.cut[ends[1]]
            across, free = touched == 0, touched == 1
        full = across | (free & _is_below(self.prices, limit, dual[ends[0]], dual[ends[1]]))
        full &= pairs.capacity > 0
        room = pairs.capacity[full]
        for part in (dual[ends[0]], dual[ends[1]], np.full(full.size, limit), -self.prices):
            less += product_terms(part[full], room, unit)
        used = found.flow > 0
        largest = max(magnitude(self.prices[used]), abs(limit.item()) if used.any() else 0)
        proof = proof_of(
            [*terms, *base, *less],
            min(nrows, least.size - nrows),
            has_ended=found.has_ended,
            is_integer=self.is_integer,
            largest=lambda: largest,
            largest_dual=lambda: magnitude(dual),
            objective=objective,
            rounding=self._rounding(given, found.flow, limit.item()),
            mass=total * scale,
        )
        return proof if not self.is_integer else proof._replace(gap=proof.gap * scale)

    def _rounding(self, given: Costs, flow: np.ndarray, limit: float) -> Any:
        """By how much the rounding of computed costs may enlarge a gap; None if they are exact."""
        rounding, unit = given.rounding, self.masses.unit
        if not (rounding.share or rounding.pair):
            return None
        most = max(int(self.bounds.upper.max(initial=0)) * unit, 1.0)
        paid = math.fsum(product_terms(abs(self.prices), flow, unit))
        total = min(self.masses.rows.total, self.masses.cols.total) * unit
        rounding = rounding._replace(added=rounding.added * most)
        return rounding_above(rounding, total, paid, abs(float(limit)))


# -- small steps -----------------------------------------------------------------------------------


def _are_whole(values: np.ndarray) -> bool:
    """True if all capacities are whole numbers or infinity."""
    return values.dtype.kind != "f" or bool((values == np.floor(values)).all())


def _in_fractions(masses: Masses) -> Masses:
    """Return these masses in units that are fractions, as those of floats are."""
    shift = max(62 - max(masses.rows.total, masses.cols.total, 1).bit_length(), 0)
    rows, cols = (
        Bounds(side.lower << shift, side.upper << shift) for side in (masses.rows, masses.cols)
    )
    dtype = masses.dtype if masses.dtype.kind == "f" else np.dtype(np.float64)
    return Masses(rows, cols, 2.0**-shift, dtype)


def _joined(found: BoundedSolution) -> np.ndarray:
    return np.concatenate([found.row_dual, found.col_dual])


def _is_below(
    costs: np.ndarray, limit: Any, row_dual: np.ndarray, col_dual: np.ndarray
) -> np.ndarray:
    """True if costs less the limit are below the sum of two duals, exactly."""
    if costs.dtype.kind == "i":
        return costs - limit - row_dual - col_dual < 0
    slack, _ = sum_of([costs, np.full(costs.size, -limit), -row_dual, -col_dual])
    return slack < 0
