"""What a flow costs, and what its duals prove: the objective, the gap, and duals without violation.

`gpumatch.problems.transport` states the theorem. Integers prove it as they are. Duals of floats are
made fair first: those of the rows become the largest that no pair undercuts. If that proves too
little, lower duals of columns that take nothing, duals found again along the flow, or duals where
rows with units left have the limit, may prove more.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from gpumatch.costs import Costs
from gpumatch.dispatch.registry import (
    FAIR_ROWS,
    FAIR_ROWS_OF_POINTS,
    FAIR_ROWS_ON_DEVICE,
    load,
)
from gpumatch.numeric.arrays import any_true, array_module, array_of
from gpumatch.numeric.exact_products import product_terms
from gpumatch.numeric.exact_sums import magnitude
from gpumatch.numeric.fair_duals import difference_below, make_fair
from gpumatch.numeric.gaps import Proof, proof_of, rounding_above
from gpumatch.numeric.units import units_at
from gpumatch.problems.flows import Found, total_of
from gpumatch.problems.masses import Bounds, Masses
from gpumatch.problems.request import Goal

__all__ = ["Minimised", "Outcome"]

LOWER = 2.0**-30
"""The share of the largest cost by which columns that take nothing may be priced lower. They are
then no row's cheapest column by rounding alone."""


@dataclasses.dataclass
class Minimised:
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

    @property
    def has_lower(self) -> bool:
        """True if a lower bound counts, beyond those of rows that ship all they have."""
        return self.cols.has_lower or (not self.goal.is_full and self.rows.has_lower)


@dataclasses.dataclass
class Outcome:
    """What a flow costs, and what its duals prove; duals are less the limit, if there is one."""

    costs: Any
    objective: float
    proof: Proof
    row_dual: Any
    col_dual: Any

    @classmethod
    def of(cls, turned: Minimised, found: Found, cover: Any, given: Costs) -> Outcome:
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
        base: list[Any] = []
        if limit:
            base = product_terms(np.array([-limit], costs.dtype), np.array([total]), unit)

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
        is_idle = turned.cols.upper == 0
        lower = xp.where(is_idle, LOWER * problem.largest, 0.0)
        if not proof.proven and found.has_ended and any_true(is_idle):
            col_dual = col_dual - lower
            others = _fair(turned, row_dual, col_dual, bounds, cover)
            other = proof_by(*others)
            if other.gap < proof.gap:
                prices, proof = others, other
        if not proof.proven and found.has_ended and turned.has_lower:
            row_dual, col_dual = _retraced(found, costs, bounds, sums, limit or 0)
            col_dual = col_dual - lower
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
    turned: Minimised, row_dual: Any, col_dual: Any, bounds: Any, cover: Any
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
        row_dual = _fair_rows(problem, col_dual)
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
    part of the flow that has none, the duals follow by the costs of pairs with flow. A column with
    room has none below 0. The host finds them.
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
    has_room = array_of(np, sums[1] < bounds[1].upper)
    col_dual[has_room] = np.maximum(col_dual[has_room], 0.0)
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
    turned: Minimised, row_dual: Any, col_dual: Any, bounds: Any, is_left: Any
) -> tuple[Any, Any]:
    """Duals of floats where rows with units left have the limit, and columns are lowered.

    A row that must ship what it ships may have more than the limit, so the columns do not yield to
    it.
    """
    limit = turned.goal.limit or 0
    row_dual, col_dual = row_dual.copy(), _clipped(col_dual, bounds[1])
    is_kept = is_left & (turned.rows.lower == 0)
    row_dual[is_kept] = limit
    if turned.costs.is_computed:
        row_dual, col_dual = _lowered(turned.costs, row_dual, col_dual, is_kept)
    else:
        make_fair(turned.costs, turned.costs.xp.where(is_kept, -1, 0), row_dual, col_dual)
    return _fair(turned, row_dual, col_dual, bounds, None)


def _lowered(problem: Costs, row_dual: Any, col_dual: Any, is_kept: Any) -> tuple[Any, Any]:
    """Duals of points that no pair undercuts: some rows keep theirs, and columns are lowered."""
    kept, xp = is_kept.nonzero()[0], problem.xp
    part = problem.restricted(kept, xp.arange(col_dual.size)).transpose()
    col_dual = xp.minimum(col_dual, _fair_rows(part, row_dual[kept]))
    return xp.where(is_kept, row_dual, _fair_rows(problem, col_dual)), col_dual


def _fair_rows(points: Costs, col_dual: Any) -> Any:
    """The largest duals of the rows of points that no pair undercuts."""
    function = load(FAIR_ROWS_OF_POINTS["cuda" if points.on_device else "cpu"])
    return function(points.points, col_dual)


def _bounds_that_count(turned: Minimised, cover: Any) -> tuple[Bounds, Bounds]:
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


def _rounding_of(
    given: Costs, turned: Minimised, costs: Any, flow: Any, limit: float | None
) -> Any:
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
