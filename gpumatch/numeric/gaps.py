"""The gap of a result, and the decision whether the result is proven. No other file decides it.

The gap is the objective minus the sum of the duals (and the limits), added exactly and rounded
once. It bounds the distance from the objective to the optimum if the duals are feasible
(`Solution.has_duals`) and there are as many pairs as these duals bound. Otherwise the gap is
infinity.

With feasible duals a gap is negative only by their rounding. Duals of integers are not rounded.
Duals of floats may be too large by some units in the last place. So the magnitude of a negative gap
within this rounding counts as the gap. If a gap is more negative, the duals are not feasible or the
pairs are not a matching. That is a fault of this library, and raises an error.

A result for integer costs is proven if the gap is 0, whichever algorithm has found it. A result for
float costs is proven if both of these hold:

- An exact algorithm has ended by itself, or the gap is 0.
- The gap is within the rounding of sums of such numbers: `ULPS` units in the last place of the
  largest number in use, for each of n pairs. In use are the costs of the pairs and the limit. The
  duals are in use if they are at most 4 (n + 1) times as large, because no assignment needs larger
  ones. The rounding of larger duals hides small costs. So the amounts by which such duals exceed
  costs are found exactly and added to the gap (`undercut`), and these duals allow no rounding.

So the cost of a pair outside the assignment allows no rounding, however large it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Costs
from gpumatch.numeric.arrays import array_of

__all__ = ["Magnitudes", "Proof", "proof_of", "undercut"]

UNIT = 2.0**-52
ULPS = 8
"""The rounding of a proven gap, in units in the last place for each pair.

`verify` allows more, because its gap includes the amounts by which duals exceed costs.
"""
ROUNDINGS = 8
"""The units in the last place by which the two duals of a pair may exceed its cost.

Each dual is the difference of two numbers, and is then changed by the limit or by a shift of all
duals.
"""


class Magnitudes(NamedTuple):
    """The largest magnitude of a result's pair costs and limit, and that of its duals."""

    paid: float
    duals: float


class Proof(NamedTuple):
    """The gap of a result, and True if the result is proven."""

    gap: Any
    proven: bool


def proof_of(
    terms: Iterable[Any],
    pairs: int,
    *,
    has_ended: bool,
    is_integer: bool,
    magnitudes: Callable[[], Magnitudes],
    undercut: Callable[[], float],
) -> Proof:
    """Compute the gap of an assignment, and decide if it is proven.

    Parameters
    ----------
    terms : iterable of int or float
        The numbers whose sum is the objective minus the duals and the limits.
    pairs : int
        The number of rows or pairs that have terms in the sum.
    has_ended : bool
        True if an exact algorithm has ended by itself.
    is_integer : bool
        True if the costs are integers.
    magnitudes : callable
        It returns the `Magnitudes` of the result. It is called for floats only.
    undercut : callable
        It returns the total amount by which duals exceed costs. It is called if the duals are
        larger than an assignment needs.

    Raises
    ------
    RuntimeError
        If the gap is negative beyond rounding.
    """
    if is_integer:
        gap = sum(terms)
        if gap < 0:
            raise _fault(gap)
        return Proof(gap, gap == 0)
    try:
        gap = math.fsum(terms)
    except OverflowError:
        return Proof(math.inf, False)
    paid, duals = magnitudes()
    if gap < 0:
        if -gap > ROUNDINGS * UNIT * max(pairs, 1) * (paid + duals):
            raise _fault(gap)
        gap = -gap
    needed = 4.0 * (pairs + 1) * paid
    if duals > needed:
        gap, duals = gap + undercut(), 0.0
    is_small = gap <= ULPS * UNIT * pairs * max(paid, duals)
    return Proof(gap, is_small and (has_ended or gap == 0))


def _fault(gap: Any) -> RuntimeError:
    return RuntimeError(
        f"internal error: an assignment costs {-gap} less than its duals allow; please report it"
    )


def undercut(costs: Costs, row_dual: Any, col_dual: Any, cover: Any = None) -> float:
    """The total amount by which row duals must fall so that no slack is negative.

    It reads the costs, which are floats, once. The sign of each slack is exact, and its error is
    some units in its own last place. If there is a cover, pairs with both vertices in it may have
    any slack.
    """
    nrows, ncols = costs.shape
    lowered = np.zeros(nrows)
    row_dual, col_dual = (array_of(costs.xp, dual) for dual in (row_dual, col_dual))
    inside = None
    if cover is not None:
        inside = costs.xp.zeros(nrows, bool), costs.xp.zeros(ncols, bool)
        inside[0][array_of(costs.xp, cover[0])] = True
        inside[1][array_of(costs.xp, cover[1])] = True
    for tile in costs.tiles():
        rows, cols, values = costs.tile(tile)
        with np.errstate(invalid="ignore"):  # inf - inf, of forbidden pairs
            part, first = _two_sum(values.astype(np.float64), -row_dual[rows])
            rest, second = _two_sum(part, -col_dual[cols])
            missing = -(rest + (first + second))
        is_short = (missing > 0) & (values < math.inf)
        if inside is not None:
            is_short &= ~(inside[0][rows] & inside[1][cols])
        places = is_short.ravel().nonzero()[0]
        owners = costs.xp.broadcast_to(rows, is_short.shape).ravel()[places]
        np.maximum.at(lowered, array_of(np, owners), array_of(np, missing.ravel()[places]))
    return float(lowered.sum())


def _two_sum(one: Any, other: Any) -> tuple[Any, Any]:
    """The rounded sum, and its exact rounding error (Knuth)."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)
