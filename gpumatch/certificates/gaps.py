"""How good an assignment is at least, and which gaps are accepted as optimal.

B is the bound that the theorem of `gpumatch.certificates.assignment` proves for the pairs of a
result.

Accepted as optimal. With integers and integral limits, the best sum is an integer. So B is rounded
up to one, and the gap must be 0. Otherwise the gap must not exceed an allowance,

    ULPS * 2**-52 * (pairs) * max(M, min(D, 4 (pairs + 1) M)),

where D is the largest dual of a matched vertex, and M the largest cost or limit of the pairs. The
cost of another pair does not count, even if duals make the pair tight, and neither does a dual
beyond what these costs can need. The certificate has the allowance. All duals together may be
lowered by no more than that, and for integers not at all: duals that prove something only after a
repair are not what the result says they are.

Computed costs are rounded. With `share`, `pair` and `added` of their `rounding`, a computed cost c
with offsets r and s is within share (|c| + |r| + |s|) + pair of the exact one. Then the bound is
moved outward by

    share (2 P + gap + 2 n L + 8 added) + 2 n pair,

for the sum P of the magnitudes of the pairs' costs, the largest limit L, and n vertices of the
smaller side (docs/algorithms/correctness.md, theorem 5). The allowance grows by as much. So bound
and gap hold for the exact costs.

Accepted as the gap that a result claims. The gap of floats is a rounded sum of costs, duals and
limits. So it may be off by the allowance, or by ULPS * 2**-52 times their magnitudes: a run that
was stopped may have duals, and no pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpumatch.certificates.base import CertificateError, python_number
from gpumatch.certificates.slacks import LEAST, at_least, at_most, nearest, units_of

__all__ = ["OUTWARD", "Proof", "allowance_of", "blur_of", "check_objective"]

ULPS = 16  # allowed for each pair, of the largest number in use
ROUNDED = 4  # ulps of the magnitudes of the pairs' costs, by which a float objective may be off
BLUR = 2.0**-20  # of the rounding of computed costs: what its own roundings and products may add
OUTWARD = 1 + 2.0**-50  # for the gap is rounded up where it has that, too


@dataclass(frozen=True)
class Proof:
    """How good an assignment is at least: the bound as the caller's costs have it, and the gap."""

    bound: float
    gap: float

    @classmethod
    def of(cls, cost: int, bound: int | None, sign: int, is_whole: bool) -> Proof:
        """From the cost and the bound in units, both to be minimised; None: nothing is proven."""
        if bound is None:
            return cls(-math.inf * sign, math.inf)
        if is_whole:
            whole = -(-bound >> LEAST)
            return cls(whole * sign, (cost >> LEAST) - whole)
        return cls(at_most(bound) * sign + 0.0, at_least(cost - bound))  # no -0.0

    def check_gap(
        self, claimed: Any, allowance: float, optimal: bool, summed: Callable[[], int]
    ) -> None:
        """Check the gap that a result claims, a sum of numbers with these magnitudes, in units."""
        claimed = python_number("the gap", claimed)
        if claimed == math.inf and (not optimal or self.gap == math.inf):
            return
        if claimed >= 0:
            off = abs(claimed - self.gap)
            if off <= allowance or off <= nearest(ULPS * summed() >> 52):
                return
        raise CertificateError(f"the gap is {claimed}, but the duals leave {self.gap}")


def check_objective(
    claimed: float, total: int, is_whole: bool, magnitudes: Callable[[], int]
) -> None:
    """Check that an objective is the pairs' total, which is in units, as are their magnitudes.

    Only a float may be rounded, and only if there are such numbers that it must be.
    """
    if not math.isinf(claimed):
        off = abs(units_of(claimed) - total)
        if not off:
            return
        if isinstance(claimed, float):
            whole = magnitudes()
            is_exact = is_whole and whole <= units_of(2**53)
            if not is_exact and off <= ROUNDED * whole >> 52:
                return
    shown = total >> LEAST if is_whole else nearest(total)
    raise CertificateError(f"the pairs cost {shown} in all, but the objective is {claimed}")


def allowance_of(size: int, largest: float, dual: float) -> float:
    """The gap up to which an assignment of floats is accepted as optimal."""
    scale = max(largest, min(dual, 4.0 * (size + 1) * largest))
    return ULPS * math.ulp(1.0) * size * float(scale)


def blur_of(rounding: Any, n: int, paid: float, limit: float, gap: float) -> float:
    """By how much the rounding of computed costs may enlarge a gap, rounded up."""
    share, pair, added = rounding
    if not (share or pair):
        return 0.0
    terms = (2, paid), (1, max(gap, 0.0)), (2 * n, limit), (8, added)
    total = sum(share * count * term for count, term in terms) + 2 * n * pair  # no sum overflows
    return total * (1 + BLUR)
