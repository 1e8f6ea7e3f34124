"""Check that what an `InfeasibleError` of `transport` names shows that no flow exists."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from gpumatch.certificates.base import CertificateError, check_flag, first_pair, marks_of
from gpumatch.certificates.limits import bars_of, limits_of
from gpumatch.certificates.units import exact_bounds, spread
from gpumatch.costs import as_costs
from gpumatch.costs.capacities import PairCapacities
from gpumatch.numeric.arrays import array_of

__all__ = ["check_violator"]


def check_violator(
    C: Any,
    supply: Any,
    demand: Any,
    error: Any,
    *,
    maximize: bool = False,
    cardinality: str = "full",
    cost_limit: float | None = None,
    pair_capacity: Any = None,
) -> None:
    """Check that what an `InfeasibleError` of `transport` names shows that no flow exists.

    Parameters
    ----------
    C, supply, demand, maximize, cardinality, cost_limit, pair_capacity
        The arguments of the call.
    error : InfeasibleError
        Its `rows`, `cols` and `by_rows` are looked at.

    Raises
    ------
    CertificateError
        If a vertex that must have more reaches one that is not named, or the named ones have
        enough. Where pairs have capacities, those of the pairs that lead out count as available.
    """
    costs = as_costs(C).to_host()
    capacities = None if pair_capacity is None else PairCapacities(pair_capacity, C, costs)
    outside = Fraction(0)
    sign = -1 if maximize else 1
    sides = [exact_bounds(name, part) for name, part in (("supply", supply), ("demand", demand))]
    sides = [spread(side, length) for side, length in zip(sides, costs.shape)]
    totals = [sum(upper) for _, upper in sides]
    needs = [lower for lower, _ in sides]
    if cardinality == "full" and cost_limit is None:
        smaller = 0 if totals[0] <= totals[1] else 1
        needs[smaller] = sides[smaller][1]
    marks = [
        marks_of(np, array_of(np, part), length, side)
        for part, length, side in zip((error.rows, error.cols), costs.shape, ("row", "column"))
    ]
    this, other = (0, 1) if check_flag("by_rows", error.by_rows) else (1, 0)
    bars = bars_of(limits_of(cost_limit, costs, sign), costs.is_integer)
    for tile in costs.tiles():
        rows, cols, values = costs.tile(tile)
        values = (values if values.dtype.kind == "f" else values.astype(np.int64)) * sign
        allowed = values < math.inf
        if cardinality == "maximum" and bars is not None:
            allowed &= values <= bars[rows]
        ends = marks[0][rows], marks[1][cols]
        out = allowed & ends[this] & ~ends[other]
        pair = first_pair(np, rows, cols, out)
        if pair is not None and capacities is not None:
            across = [np.broadcast_to(part, out.shape)[out] for part in (rows, cols)]
            given = capacities.at(capacities.values, *across)
            for row, col, most in zip(*(part.tolist() for part in (*across, given))):
                room = min(sides[0][1][row], sides[1][1][col])
                outside += room if most == math.inf else min(Fraction(most), room)
        elif pair is not None:
            raise CertificateError(
                f"the pair of row {pair[0]} and column {pair[1]} leads out of the violator"
            )
    needed = sum(needs[this][k] for k in marks[this].nonzero()[0])
    available = outside + sum(sides[other][1][k] for k in marks[other].nonzero()[0])
    if needed <= available:
        raise CertificateError(
            f"the violator needs {float(needed)}, and {float(available)} are available to it"
        )
