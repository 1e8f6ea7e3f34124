"""Check that a flow is optimal, by code that algorithms do not share.

`gpumatch.problems.transport` states what the duals of a result are. With the signs turned for costs
to be maximised, L the limit (0 if there is none), and f the flow in units, these are checked:

1. the pairs are distinct, in order, and carry at least a unit each; masses agree with units,
2. every pair is allowed and within its capacity, and the objective is what the flow costs,
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

With capacities of pairs, let k be the least of a pair's capacity and of the upper bounds of its two
vertices, and P any pairs that cost less than their prices. P's pairs need not be fair: B gets the
sum of k (c - L - u - v) over P instead. A pair of P with reduced cost r < 0 pays r f' >= r k, and
prices that are lowered for other pairs only raise its r. Pairs that cost hardly less than their
prices, as by rounding, may be many. Those of a vertex are all in P or all made fair, whatever takes
less from B. The cover is a cut: it
need not touch every pair, and the capacities of the pairs that it does not touch, those across,
belong to its masses. Every largest flow fills these, so B gets k (c - u - v) of each of them, of
either sign. docs/algorithms/correctness.md has more.

Sums of products are exact. Bound and gap are rounded outward at the end. Integers must leave no
gap. Floats may leave the allowance of `gpumatch.certificates.gaps`, with the mass shipped in
place of the number of pairs, and the smaller number of rows and columns in place of the pairs of
which duals can be sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from gpumatch.certificates.assignment import AssignmentCertificate
from gpumatch.certificates.base import (
    CertificateError,
    count_of,
    first_pair,
    marks_of,
    python_number,
)
from gpumatch.certificates.claimed_flow import ClaimedFlow, ClaimedTransport
from gpumatch.certificates.gaps import OUTWARD, ULPS, blur_of
from gpumatch.certificates.limits import left_out
from gpumatch.certificates.slacks import Prices, most, whole_sum
from gpumatch.certificates.units import LEAST_FLOAT, check_masses, products, rounded_up
from gpumatch.costs import as_costs
from gpumatch.costs.capacities import PairCapacities
from gpumatch.numeric.arrays import array_of, first_true

__all__ = ["TransportCertificate", "verify_transport"]

RATHER_ROUNDING = 2.0**-46
"""Up to this share of its prices, what a pair lacks is taken for rounding."""


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
    pair_capacity: Any = None,
) -> TransportCertificate:
    """Check a flow and the duals that bound its cost; see `gpumatch.verify`.

    `supply`, `demand` and `pair_capacity` are the masses and capacities as they were given to
    `transport`. Without them, those that the result names are taken for these.
    """
    costs = as_costs(C)
    proof = _Proof(costs.to_host(), result, costs.rounding)
    if pair_capacity is not None:
        proof.check_capacity(PairCapacities(pair_capacity, C, proof.costs).values)
    for name, given, bounds in (
        ("supply", supply, proof.bounds[0]),
        ("demand", demand, proof.bounds[1]),
    ):
        if given is not None:
            check_masses(name, given, bounds, proof.unit)
    proof.check_pairs()
    proof.check_objective()
    is_complete = proof.check_size(optimal)
    is_complete &= proof.look_at_pairs(optimal)
    return proof.certificate(is_complete, optimal)


class _Proof(ClaimedFlow):
    """A flow, and what its duals prove."""

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
        if self.is_largest and is_met and self.capacity is None:
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
        self.paid_by_pairs = [np.zeros(length) for length in self.costs.shape]
        self.worst: tuple[Any, int, int] | None = None
        self.edges, is_covered = 0, True
        none = np.zeros(0, np.int64)
        self.below, self.across = [(none, none)], [(none, none)]
        has_left = [got < upper for got, (_, upper) in zip(self.sums, self.bounds)]
        for rows, cols, values, allowed in self._tiles():
            self.edges += values.size if allowed is None else count_of(allowed)
            every = np.ones(values.shape, bool) if allowed is None else allowed
            if self.is_largest:
                ends = self.inside[0][rows], self.inside[1][cols]
                bare = every & ~ends[0] & ~ends[1]
                pair = first_pair(np, rows, cols, bare)
                if pair is not None and self.capacity is not None:
                    self.across.append(_marked(rows, cols, bare))
                    every, pair = every & ~bare, None
                is_covered &= pair is None
                if pair is not None and optimal:
                    raise CertificateError(
                        f"the pair of row {pair[0]} and column {pair[1]} is not in the cover"
                    )
                allowed = every & ~(ends[0] & ends[1])
            if optimal and self.is_free and self.bars is not None:
                bare = every & has_left[0][rows] & has_left[1][cols] & (values <= self.bars[rows])
                if self.capacity is not None:
                    bare[bare] = ~self.are_full(*_marked(rows, cols, bare))
                pair = first_pair(np, rows, cols, bare)
                if pair is not None:
                    raise CertificateError(left_out(*pair).replace("are unmatched", "have more"))
            below = prices.below(rows, cols, values, allowed)
            if self.capacity is not None:
                below = self._take_full(*below)
            self._lower(~has_left[0], *below)
        return is_covered and self._fills_cut(optimal)

    def _take_full(self, rows: Any, cols: Any, amounts: Any) -> tuple[Any, Any, Any]:
        """Note the pairs whose capacity pays for costs below their prices; return the others."""
        is_rounding = np.zeros(rows.size, bool)
        if amounts.dtype.kind == "f":
            sizes = abs(self.prices[0][rows]) + abs(self.prices[1][cols]) + amounts
            is_rounding = amounts <= sizes * RATHER_ROUNDING
        kept = ~is_rounding
        self.below.append((rows[kept].astype(np.int64), cols[kept].astype(np.int64)))
        return rows[is_rounding], cols[is_rounding], amounts[is_rounding]

    def _fills_cut(self, optimal: bool) -> bool:
        """True if the flow is as large as the cut of pairs with capacities allows."""
        self.below_pairs, self.across_pairs = (
            tuple(np.concatenate(part) for part in zip(*found))
            for found in (self.below, self.across)
        )
        if not self.is_largest or self.capacity is None:
            return True
        covered = whole_sum(self.room_of(*self.across_pairs)) + sum(
            whole_sum(upper[marks]) for marks, (_, upper) in zip(self.inside, self.bounds)
        )
        if covered != self.total and optimal:
            raise CertificateError(f"{self.total} units are shipped, but the cut has {covered}")
        return covered == self.total

    def _lower(self, into_rows: Any, rows: Any, cols: Any, amounts: Any) -> None:
        """Move what pairs cost less than their prices into rows that ship all, or into columns."""
        if not amounts.size:
            return
        of_row = into_rows[rows]
        if self.capacity is not None:
            paid = amounts * self.room_of(rows, cols)
            np.add.at(self.paid_by_pairs[0], rows[of_row], paid[of_row])
            np.add.at(self.paid_by_pairs[1], cols[~of_row], paid[~of_row])
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
            base = products(self.base[:1], np.array([self.total])) * unit
        if is_complete and all(most(part) < math.inf for part in self.lowered):
            bound = base
            for price, lowered, by_pairs, dual, least, (_, upper) in zip(
                self.prices, self.lowered, self.paid_by_pairs, self.duals, self.least, self.bounds
            ):
                bound += products(price, np.where(price > 0, least, upper)) * unit
                if self.capacity is not None:
                    # Each sum has as many terms as a vertex has pairs, which are rounded, too.
                    by_pairs = by_pairs * (1 + (max(self.costs.shape) + 4) * 2.0**-52)
                    are_paid = by_pairs < lowered * np.maximum(upper, 1).astype(np.float64)
                    lowered = np.where(are_paid, 0, lowered)
                    paid = products(by_pairs[are_paid], np.ones(count_of(are_paid), np.int64))
                    bound -= paid * unit
                    moved += paid * unit
                bound -= products(lowered, upper) * unit
                cut = dual * self.sign - price
                for part in (lowered, cut):
                    moved += products(part, np.maximum(upper, 1)) * unit
            for pairs in (self.below_pairs, self.across_pairs):
                bound += self._own_sum(*pairs) * unit
            blur = self._blur(self.cost - bound)
            bound -= Fraction(blur)
            gap = rounded_up(self.cost - bound)
            if self.is_whole:
                whole = (self.cost - bound) / unit
                gap = int(whole) * self.unit
        largest = 0.0
        if self.size:
            largest = float(max(most(self.paid), 0 if self.base is None else most(self.base)))
        dual = float(max(map(most, self.prices)))
        scale = max(largest, min(dual, 4.0 * (min(self.costs.shape) + 1) * largest))
        # Exact, because a product of floats may be infinite, which would allow every gap.
        rounding = Fraction(ULPS * OUTWARD / 2**52) * self.total * unit * Fraction(scale)
        rounding += LEAST_FLOAT
        allowance = Fraction(0) if self.is_whole else rounding + Fraction(blur * OUTWARD)
        room = rounding if self.has_float_duals else Fraction(0)
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
            rounded_up(allowance) if allowance else 0,
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
            float(self.magnitude),
            limit,
            float(gap),
        )

    def _check_gap(self, gap: Any, allowance: Fraction, optimal: bool) -> None:
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
        parts = [self.magnitude]
        for price, (_, upper) in zip(self.prices, self.bounds):
            parts.append(products(abs(price), upper) * Fraction(self.unit))
        if self.base is not None and self.base.size:
            total = np.array([self.total])
            parts.append(products(abs(self.base[:1]), total) * Fraction(self.unit))
        for rows, cols in (self.below_pairs, self.across_pairs):
            if rows.size:
                room, paid = self.room_of(rows, cols), self.wide(self.costs.at(rows, cols))
                for part in (paid, self.prices[0][rows], self.prices[1][cols]):
                    parts.append(products(abs(part), room) * Fraction(self.unit))
        return float(sum(parts))

    def _shown(self, bound: Fraction | None) -> float:
        """The bound as the caller's costs have it, rounded outward."""
        if bound is None:
            return -math.inf * self.sign
        if self.is_whole and isinstance(self.unit, int):
            return int(bound) * self.sign
        return -rounded_up(-bound) * self.sign + 0.0

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

    def _own_sum(self, rows: Any, cols: Any) -> Fraction:
        """What pairs would pay in units beyond their prices, were they full."""
        if not rows.size:
            return Fraction(0)
        room = self.room_of(rows, cols)
        paid = products(self.wide(self.costs.at(rows, cols)), room) * self.sign
        for side, ends in zip(self.prices, (rows, cols)):
            paid -= products(side[ends], room)
        if self.base is not None:
            paid -= products(self.base[rows], room)
        return paid

    # -- costs -----------------------------------------------------------------------------------

    def _tiles(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Rows, columns and costs of all pairs, and marks of the allowed ones; None if all are."""
        for tile in self.costs.tiles():
            rows, cols, values = self.costs.tile(tile)
            values = self.wide(values)
            if self.sign < 0:
                values = -values
            allowed = None if self.costs.is_finite else values < math.inf
            if self.is_largest and self.bars is not None:
                within = values <= self.bars[rows]
                allowed = within if allowed is None else allowed & within
            yield rows, cols, values, allowed


def _marked(rows: Any, cols: Any, marks: Any) -> tuple[Any, Any]:
    """The rows and columns of marked pairs of a tile."""
    own, other = (np.broadcast_to(part, marks.shape)[marks] for part in (rows, cols))
    return own.astype(np.int64), other.astype(np.int64)
