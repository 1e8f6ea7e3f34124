"""Check that a flow is optimal, by code that algorithms do not share.

`gpumatch.problems.transport` states what the duals of a result are. With the signs turned for costs
to be maximised, L the limit (0 if there is none), and f the flow in units, these are checked:

1. the pairs are distinct, in order, and carry at least a unit each; masses agree with units,
2. every pair is allowed, and the objective is what the flow costs,
3. no row and no column is beyond its bounds; the flow is as large as asked for: the smaller side in
   full, or the masses of a vertex cover that every allowed pair touches, or any,
4. no flow that competes is much cheaper, by the theorem,
5. with a limit, no row and column both have units left whose pair is allowed and costs at most the
   limit.

Theorem. Let l and h be the bounds of each vertex, with h in place of l for the side that is shipped
in full, or for the vertices of the cover. Let p be any prices of the vertices. Where l = 0 < h, put
min(p, 0) in their place. Make them fair (`gpumatch.certificates.slacks`) for the costs c_ij - L of
all allowed pairs but those inside the cover, by lowering each price by some e >= 0. With b(p) =
l p if p > 0, else h p, let B be the sum of b(p) - h e for the prices p before they were lowered.
Then every flow f' that competes has sum of (c - L) f' >= B.

Proof. b is concave, with slopes of at most h, so b(p - e) >= b(p) - h e. In f', a vertex of price q
has l to h units, so it pays at least b(q). No pair of f' is inside the cover, because its units are
those of the cover: none is left for two vertices of it. So the pairs of f' cost at least what their
vertices pay. ∎

Sums of products are exact. Bound and gap are rounded outward at the end. Integers must leave no
gap. Floats may leave the allowance of `gpumatch.certificates.gaps`, with the mass shipped in
place of the number of pairs, and the smaller number of rows and columns in place of the pairs of
which duals can be sums.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from gpumatch.certificates.assignment import CARDINALITIES, AssignmentCertificate
from gpumatch.certificates.base import (
    CertificateError,
    check_cardinality,
    check_flag,
    check_numbers,
    check_pair_costs,
    count_of,
    first_pair,
    marks_of,
    python_number,
)
from gpumatch.certificates.gaps import OUTWARD, ROUNDED, ULPS, blur_of
from gpumatch.certificates.limits import bars_of, left_out, limits_of
from gpumatch.certificates.slacks import LEAST, Prices, most
from gpumatch.costs import Costs, as_costs
from gpumatch.numeric.arrays import any_true, array_of, first_true

__all__ = [
    "ClaimedTransport",
    "TransportCertificate",
    "check_violator",
    "verify_transport",
]

MOST = 2**62  # units of a side


class ClaimedTransport(Protocol):
    """What the checker of flows looks at in a result."""

    row_ind: Any
    col_ind: Any
    flow_units: Any
    row_dual: Any
    col_dual: Any
    row_bounds: Any
    col_bounds: Any
    unit: float
    objective: float
    gap: float
    maximize: bool
    cardinality: str
    cost_limit: float | None

    @property
    def flow(self) -> Any: ...
    def cover_ind(self) -> tuple[Any, Any]: ...


class TransportCertificate(AssignmentCertificate):
    """The proof of a flow, checked.

    Attributes
    ----------
    problem : str
        ``"transport"``.
    size : int
        Pairs with flow.
    bound, objective, gap, allowance : int or float
        As of an `AssignmentCertificate`.
    edges : int
        Allowed pairs that were checked.
    """

    def __str__(self) -> str:
        return super().__str__().replace("pairs of total", "pairs with flow of total", 1)


def verify_transport(
    C: Any,
    result: ClaimedTransport,
    *,
    optimal: bool = True,
    supply: Any = None,
    demand: Any = None,
) -> TransportCertificate:
    """Check a flow and the duals that bound its cost; see `gpumatch.verify`.

    `supply` and `demand` are the masses as they were given to `transport`. Without them, the bounds
    that the result names are taken for those.
    """
    costs = as_costs(C)
    claim = _Claim(costs.to_host(), result, costs.rounding)
    for name, given, bounds in (
        ("supply", supply, claim.bounds[0]),
        ("demand", demand, claim.bounds[1]),
    ):
        if given is not None:
            _check_masses(name, given, bounds, claim.unit)
    claim.check_pairs()
    claim.check_objective()
    is_complete = claim.check_size(optimal)
    is_complete &= claim.look_at_pairs(optimal)
    return claim.certificate(is_complete, optimal)


def check_violator(
    C: Any,
    supply: Any,
    demand: Any,
    error: Any,
    *,
    maximize: bool = False,
    cardinality: str = "full",
    cost_limit: float | None = None,
) -> None:
    """Check that what an `InfeasibleError` of `transport` names shows that no flow exists.

    Parameters
    ----------
    C, supply, demand, maximize, cardinality, cost_limit
        The arguments of the call.
    error : InfeasibleError
        Its `rows`, `cols` and `by_rows` are looked at.

    Raises
    ------
    CertificateError
        If a vertex that must have more reaches one that is not named, or the named ones have
        enough.
    """
    costs = as_costs(C).to_host()
    sign = -1 if maximize else 1
    sides = [_exact_bounds(name, part) for name, part in (("supply", supply), ("demand", demand))]
    sides = [_spread(side, length) for side, length in zip(sides, costs.shape)]
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
        values = values * sign if values.dtype.kind != "b" else values.astype(np.int64) * sign
        allowed = values < math.inf
        if cardinality == "maximum" and bars is not None:
            allowed &= values <= bars[rows]
        ends = marks[0][rows], marks[1][cols]
        pair = first_pair(np, rows, cols, allowed & ends[this] & ~ends[other])
        if pair is not None:
            raise CertificateError(
                f"the pair of row {pair[0]} and column {pair[1]} leads out of the violator"
            )
    needed = sum(needs[this][k] for k in marks[this].nonzero()[0])
    available = sum(sides[other][1][k] for k in marks[other].nonzero()[0])
    if needed <= available:
        raise CertificateError(
            f"the violator needs {float(needed)}, and {float(available)} are available to it"
        )


class _Claim:
    """A result and its costs, both turned so that costs are minimised."""

    def __init__(self, costs: Costs, result: ClaimedTransport, rounding: Any) -> None:
        self.costs, self.result, self.rounding = costs, result, rounding
        self.sign = -1 if check_flag("maximize", result.maximize) else 1
        if (costs.low if self.sign > 0 else -costs.high) == -math.inf:
            raise CertificateError("an infinite cost asks for a pair instead of forbidding it")
        cardinality = check_cardinality(result.cardinality, CARDINALITIES)
        has_limit = result.cost_limit is not None
        self.is_largest = cardinality == "maximum"
        self.is_free = not self.is_largest and (cardinality == "any" or has_limit)
        self.unit = _checked_unit(result.unit)
        self.bounds = [
            _checked_bounds(side, given, length)
            for side, given, length in zip(
                ("row", "column"), (result.row_bounds, result.col_bounds), costs.shape
            )
        ]
        self.duals = [
            check_numbers(f"duals of the {side}s", array_of(np, dual), length)
            for side, dual, length in zip(
                ("row", "column"), (result.row_dual, result.col_dual), costs.shape
            )
        ]
        self.limits = limits_of(result.cost_limit, costs, self.sign)
        self.bars = bars_of(self.limits, costs.is_integer)
        if self.is_free and has_limit and any_true(~(abs(self.limits) < math.inf)):
            raise CertificateError("the limit must be finite")
        self.base = None
        if self.is_free:
            self.base = self.limits if has_limit else np.zeros(costs.shape[0], np.int64)
        self.is_whole = costs.is_integer and (self.base is None or self.base.dtype.kind == "i")
        self.has_float_duals = any(dual.dtype.kind == "f" for dual in self.duals)

    # -- what is there ---------------------------------------------------------------------------

    def check_pairs(self) -> None:
        """Point 1, and the bounds of point 3."""
        result = self.result
        ends = [
            _checked_ends(side, array_of(np, given), length)
            for side, given, length in zip(
                ("row", "column"), (result.row_ind, result.col_ind), self.costs.shape
            )
        ]
        self.rows, self.cols = ends
        units = array_of(np, result.flow_units)
        size = self.rows.size
        if units.shape != (size,) or self.cols.shape != (size,) or units.dtype != np.int64:
            raise CertificateError("row_ind, col_ind and flow_units must be of one length, int64")
        stray = first_true(units <= 0)
        if stray is not None:
            raise CertificateError(f"pair {stray} carries {units[stray]} units")
        step = (np.diff(self.rows) < 0) | ((np.diff(self.rows) == 0) & (np.diff(self.cols) <= 0))
        stray = first_true(step)
        if stray is not None:
            raise CertificateError(f"pair {stray + 1} is not after pair {stray}")
        self.size, self.units = size, units
        self.sums = []
        for side, ends_of, (_, upper) in zip(("row", "column"), ends, self.bounds):
            sums = [0] * upper.size
            for end, more in zip(ends_of.tolist(), units.tolist()):
                sums[end] += more
            for vertex, (got, room) in enumerate(zip(sums, upper.tolist())):
                if got > room:
                    raise CertificateError(f"{side} {vertex} has {got} units of {room}")
            self.sums.append(np.array(sums, np.int64))
        self.total = int(self.sums[0].sum())
        self._check_masses()

    def _check_masses(self) -> None:
        """The masses that the result names beside the units."""
        result = self.result
        for name, units in (
            ("flow", self.units),
            ("row_flow", self.sums[0]),
            ("col_flow", self.sums[1]),
        ):
            if not hasattr(result, name):
                continue
            given = array_of(np, getattr(result, name))
            if given.dtype.kind not in "iuf":
                raise CertificateError(f"{name} must be numbers; got {given.dtype}")
            expected = units if isinstance(self.unit, int) else units * self.unit
            if given.shape != units.shape or any_true(given != expected.astype(given.dtype)):
                raise CertificateError(f"{name} does not agree with the units of the pairs")
        size = python_number("the size", getattr(result, "size", self.size))
        if size != self.size:
            raise CertificateError(f"there are {self.size} pairs, but the size is {size}")
        expected = self.total * self.unit
        total = python_number("the total", getattr(result, "total", expected))
        if total != expected:
            raise CertificateError(f"the pairs carry {expected}, but the total is {total}")

    def check_objective(self) -> None:
        """Point 2."""
        stray = first_true(~self.costs.allows(self.rows, self.cols))
        if stray is None:
            paid = self._wide(self.costs.at(self.rows, self.cols))
            self.paid = paid * self.sign
            if self.is_largest and self.bars is not None:
                stray = first_true(self.paid > self.bars[self.rows])
        if stray is not None:
            raise CertificateError(
                f"row {int(self.rows[stray])} ships to column {int(self.cols[stray])}, "
                "but that pair is forbidden"
            )
        if hasattr(self.result, "pair_costs"):
            check_pair_costs(array_of(np, self.result.pair_costs), self.paid * self.sign)
        self.objective = python_number("the objective", self.result.objective)
        self.cost = _products(self.paid, self.units) * Fraction(self.unit)
        is_exact = self.is_whole and isinstance(self.unit, int)
        off: Any = math.inf
        if not math.isinf(self.objective):
            off = abs(Fraction(self.objective) - self.cost * self.sign)
        room = 0 if is_exact else self._magnitude * ROUNDED / 2**52
        if off > room:
            shown = int(self.cost) if is_exact else float(self.cost)
            raise CertificateError(
                f"the flow costs {shown * self.sign}, but the objective is {self.objective}"
            )

    @property
    def _magnitude(self) -> Fraction:
        """The sum of the magnitudes of what the pairs cost."""
        return _products(abs(self.paid), self.units) * Fraction(self.unit)

    def check_size(self, optimal: bool) -> bool:
        """Point 3, except for the pairs that a cover must touch; whether it holds."""
        self.inside = [np.zeros(length, bool) for length in self.costs.shape]
        least = [lower for lower, _ in self.bounds]
        if self.is_largest:
            try:
                parts = self.result.cover_ind()
            except ValueError as exc:
                if not optimal:
                    self.least = least
                    return False
                raise CertificateError(str(exc)) from exc
            self.inside = [
                marks_of(np, array_of(np, part), length, side)
                for part, length, side in zip(parts, self.costs.shape, ("row", "column"))
            ]
            least = [
                np.where(marks, upper, lower)
                for marks, (lower, upper) in zip(self.inside, self.bounds)
            ]
        elif not self.is_free:
            totals = [sum(upper.tolist()) for _, upper in self.bounds]
            smaller = 0 if totals[0] <= totals[1] else 1
            least[smaller] = self.bounds[smaller][1]
        self.least = least
        is_met = True
        for side, got, needed in zip(("row", "column"), self.sums, least):
            short = first_true(got < needed)
            if short is not None and optimal:
                raise CertificateError(
                    f"{side} {short} has {got[short]} units, but needs {needed[short]}"
                )
            is_met &= short is None
        if self.is_largest and is_met:
            covered = sum(
                sum(upper[marks].tolist()) for marks, (_, upper) in zip(self.inside, self.bounds)
            )
            if covered != self.total:
                is_met = False
                if optimal:
                    raise CertificateError(
                        f"{self.total} units are shipped, but the cover has {covered}"
                    )
        return is_met

    # -- what it proves --------------------------------------------------------------------------

    def look_at_pairs(self, optimal: bool) -> bool:
        """Make the prices fair; whether every allowed pair touches the cover."""
        self.prices = []
        for dual, least, (_, upper) in zip(self.duals, self.least, self.bounds):
            price = dual * self.sign
            self.prices.append(np.where((least == 0) & (upper > 0), np.minimum(price, 0), price))
        of_rows = [self.prices[0]] if self.base is None else [self.prices[0], self.base]
        prices = Prices(
            of_rows, [self.prices[1]], self.costs.largest, is_integer=self.costs.is_integer
        )
        self.lowered = [np.zeros(length, prices.dtype) for length in self.costs.shape]
        self.worst: tuple[Any, int, int] | None = None
        self.edges, is_covered = 0, True
        has_left = [got < upper for got, (_, upper) in zip(self.sums, self.bounds)]
        for rows, cols, values, allowed in self._tiles():
            self.edges += values.size if allowed is None else count_of(allowed)
            every = np.ones(values.shape, bool) if allowed is None else allowed
            if self.is_largest:
                ends = self.inside[0][rows], self.inside[1][cols]
                pair = first_pair(np, rows, cols, every & ~ends[0] & ~ends[1])
                is_covered &= pair is None
                if pair is not None and optimal:
                    raise CertificateError(
                        f"the pair of row {pair[0]} and column {pair[1]} is not in the cover"
                    )
                allowed = every & ~(ends[0] & ends[1])
            if optimal and self.is_free and self.bars is not None:
                bare = every & has_left[0][rows] & has_left[1][cols] & (values <= self.bars[rows])
                pair = first_pair(np, rows, cols, bare)
                if pair is not None:
                    raise CertificateError(left_out(*pair).replace("are unmatched", "have more"))
            self._lower(~has_left[0], *prices.below(rows, cols, values, allowed))
        return is_covered

    def _lower(self, into_rows: Any, rows: Any, cols: Any, amounts: Any) -> None:
        """Move what pairs cost less than their prices into rows that ship all, or into columns."""
        if not amounts.size:
            return
        of_row = into_rows[rows]
        np.maximum.at(self.lowered[0], rows[of_row], amounts[of_row])
        np.maximum.at(self.lowered[1], cols[~of_row], amounts[~of_row])
        at = amounts.argmax()
        if self.worst is None or amounts[at] > self.worst[0]:
            self.worst = amounts[at], int(rows[at]), int(cols[at])

    def certificate(self, is_complete: bool, optimal: bool) -> TransportCertificate:
        """Point 4."""
        unit = Fraction(self.unit)
        bound, moved, blur = None, Fraction(0), 0.0
        gap: Any = math.inf
        base = Fraction(0)
        if self.base is not None and self.base.size:
            base = _products(self.base[:1], np.array([self.total])) * unit
        if is_complete and all(most(part) < math.inf for part in self.lowered):
            bound = base
            for price, lowered, dual, least, (_, upper) in zip(
                self.prices, self.lowered, self.duals, self.least, self.bounds
            ):
                bound += _products(price, np.where(price > 0, least, upper)) * unit
                bound -= _products(lowered, upper) * unit
                cut = dual * self.sign - price
                for part in (lowered, cut):
                    moved += _products(part, np.maximum(upper, 1)) * unit
            blur = self._blur(self.cost - bound)
            bound -= Fraction(blur)
            gap = _rounded_up(self.cost - bound)
            if self.is_whole:
                whole = (self.cost - bound) / unit
                gap = int(whole) * self.unit
        largest = 0.0
        if self.size:
            largest = float(max(most(self.paid), 0 if self.base is None else most(self.base)))
        dual = float(max(map(most, self.prices)))
        scale = max(largest, min(dual, 4.0 * (min(self.costs.shape) + 1) * largest))
        rounding = ULPS * 2.0**-52 * self.total * self.unit * scale
        allowance = 0 if self.is_whole else rounding + blur * OUTWARD
        room = Fraction(rounding) if self.has_float_duals else Fraction(0)
        if optimal and (gap > allowance or moved > room):
            raise CertificateError(self._reason(bound, gap))
        self._check_gap(gap, allowance, optimal)
        return TransportCertificate(
            "transport",
            self.size,
            self._shown(bound),
            self.edges,
            self.objective,
            gap,
            allowance,
        )

    def _blur(self, gap: Fraction) -> float:
        """By how much the rounding of computed costs may enlarge a gap."""
        share, pair, added = self.rounding
        if not (share or pair):
            return 0.0
        heaviest = max([1, *(most(upper) for _, upper in self.bounds)]) * self.unit
        total = min(sum(upper.tolist()) for _, upper in self.bounds) * self.unit
        limit = 0.0 if self.base is None else float(most(self.base))
        return blur_of(
            (share, pair, added * max(heaviest, 1.0)),
            total,  # mass in place of vertices
            float(self._magnitude),
            limit,
            float(gap),
        )

    def _check_gap(self, gap: Any, allowance: float, optimal: bool) -> None:
        """Check the gap that the result claims."""
        claimed = python_number("the gap", self.result.gap)
        if claimed == math.inf and (not optimal or gap == math.inf):
            return
        if claimed >= 0:
            off = abs(claimed - gap)
            if off <= allowance:
                return
            if not self.is_whole and off <= ULPS * 2.0**-52 * self._summed():
                return
        raise CertificateError(f"the gap is {claimed}, but the duals leave {gap}")

    def _summed(self) -> float:
        """The magnitudes of all numbers whose sum the gap is."""
        parts = [self._magnitude]
        for price, (_, upper) in zip(self.prices, self.bounds):
            parts.append(_products(abs(price), upper) * Fraction(self.unit))
        if self.base is not None and self.base.size:
            total = np.array([self.total])
            parts.append(_products(abs(self.base[:1]), total) * Fraction(self.unit))
        return float(sum(parts))

    def _shown(self, bound: Fraction | None) -> float:
        """The bound as the caller's costs have it, rounded outward."""
        if bound is None:
            return -math.inf * self.sign
        if self.is_whole and isinstance(self.unit, int):
            return int(bound) * self.sign
        return -_rounded_up(-bound) * self.sign + 0.0

    def _reason(self, bound: Fraction | None, gap: Any) -> str:
        """What keeps the duals from proving more."""
        for side, dual, price in zip(("row", "column"), self.duals, self.prices):
            above = first_true(dual * self.sign > price)
            if above is not None:
                return (
                    f"the dual of {side} {above} is {dual[above]}, "
                    f"but must be {'at least' if self.sign < 0 else 'at most'} 0"
                )
        if self.worst is not None:
            amount, row, col = self.worst
            return (
                f"the pair of row {row} and column {col} costs less than its duals"
                + (" and the limit" if self.base is not None else "")
                + f", by {amount}"
            )
        return (
            f"the objective is {self.objective}, but the duals prove {self._shown(bound)}: the gap "
            f"is {gap}"
        )

    # -- costs -----------------------------------------------------------------------------------

    def _wide(self, values: Any) -> Any:
        """Costs as int64, or as float64."""
        return values.astype(np.int64 if self.costs.is_integer else np.float64, copy=False)

    def _tiles(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Rows, columns and costs of all pairs, and marks of the allowed ones; None if all are."""
        for tile in self.costs.tiles():
            rows, cols, values = self.costs.tile(tile)
            values = self._wide(values)
            if self.sign < 0:
                values = -values
            allowed = None if self.costs.is_finite else values < math.inf
            if self.is_largest and self.bars is not None:
                within = values <= self.bars[rows]
                allowed = within if allowed is None else allowed & within
            yield rows, cols, values, allowed


# -- numbers ---------------------------------------------------------------------------------------


def _products(values: Any, units: Any) -> Fraction:
    """The exact sum of products of numbers and whole units."""
    if values.dtype.kind != "f":
        return Fraction(sum(map(operator.mul, values.tolist(), units.tolist())))
    mantissas, exponents = np.frexp(values.astype(np.float64, copy=False))
    sums: dict[int, int] = {}
    whole = (mantissas * 2.0**53).astype(np.int64).tolist()
    for mantissa, exponent, count in zip(whole, exponents.tolist(), units.tolist()):
        sums[exponent] = sums.get(exponent, 0) + mantissa * count
    return Fraction(sum(part << (exponent + LEAST) for exponent, part in sums.items())) / (
        1 << (LEAST + 53)
    )


def _rounded_up(number: Fraction) -> float:
    """The least float that is no less."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.nextafter(math.inf, 0.0)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < number else nearest


# -- masses ----------------------------------------------------------------------------------------


def _checked_unit(unit: Any) -> float:
    unit = python_number("the unit", unit)
    if isinstance(unit, int):
        if unit != 1:
            raise CertificateError(f"the unit of integers must be 1; got {unit}")
    elif not (0 < unit < math.inf and math.frexp(unit)[0] == 0.5):
        raise CertificateError(f"the unit must be a power of 2; got {unit}")
    return unit


def _checked_bounds(side: str, given: Any, length: int) -> tuple[Any, Any]:
    if not (isinstance(given, tuple) and len(given) == 2):
        raise CertificateError(f"the bounds of the {side}s must be a pair of arrays")
    lower, upper = (array_of(np, part) for part in given)
    for part in (lower, upper):
        if part.shape != (length,) or part.dtype != np.int64:
            raise CertificateError(
                f"the bounds of the {side}s must be {length} numbers of int64; "
                f"got {part.dtype} of shape {part.shape}"
            )
    stray = first_true((lower < 0) | (lower > upper))
    if stray is not None or sum(upper.tolist()) > MOST:
        raise CertificateError(f"the bounds of the {side}s are none: first of {stray}")
    return lower, upper


def _checked_ends(side: str, given: Any, length: int) -> Any:
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise CertificateError(
            f"the {side}s of the pairs must be integers; got {given.dtype} of shape {given.shape}"
        )
    stray = first_true((given < 0) | (given >= length))
    if stray is not None:
        raise CertificateError(f"pair {stray} names {side} {given[stray]} of {length}")
    return given.astype(np.int64, copy=False)


def _check_masses(name: str, given: Any, bounds: tuple[Any, Any], unit: float) -> None:
    """Check that bounds in units are these masses, each off by less than a unit."""
    for part, units in zip(_exact_bounds(name, given), bounds):
        exact = _spread_one(part, units.size)
        if len(exact) != units.size:
            raise CertificateError(f"{name} has {len(exact)} numbers for {units.size} vertices")
        for vertex, (mass, count) in enumerate(zip(exact, units.tolist())):
            off = abs(mass / Fraction(unit) - count)
            if off >= 1 or (off and isinstance(unit, int)):
                raise CertificateError(
                    f"{name} {vertex} is {float(mass)}, but the result has {count * unit}"
                )


def _exact_bounds(name: str, given: Any) -> list[Any]:
    """Lower and upper bounds of masses as exact numbers: one, or a list of them."""
    lower, upper = given if isinstance(given, tuple) else (0, given)
    return [_exact(name, lower), _exact(name, upper)]


def _exact(name: str, masses: Any) -> Any:
    if hasattr(masses, "detach"):
        masses = masses.detach()  # a tensor, which may ask for a gradient
    values = array_of(np, masses)
    if values.dtype.kind not in "biuf":
        raise CertificateError(f"{name} must be numbers; got {values.dtype}")
    if values.ndim == 0:
        return Fraction(values.item())
    return [Fraction(value) for value in values.astype(object).tolist()]


def _spread(sides: list[Any], length: int) -> list[Any]:
    return [_spread_one(part, length) for part in sides]


def _spread_one(part: Any, length: int) -> list[Fraction]:
    return part if isinstance(part, list) else [part] * length
