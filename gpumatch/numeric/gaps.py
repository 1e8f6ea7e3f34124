"""What the duals of a result show: its gap, and whether it is proven. It is decided here alone.

The gap is the objective less the sum of the duals (and the limits), added exactly and rounded once.
It bounds how far the objective is from the optimum, if the algorithm has said that its duals are
feasible (`Solution.has_duals`) and there are as many pairs as these duals bound. Else it is inf.

Such a gap is not negative, but for the rounding of the duals themselves: those of integers are not
rounded, and those of floats may exceed what they should be by some units in their last place. So
what is negative within that counts by its magnitude. Beyond it, the duals are not feasible, or the
pairs no matching: that is a fault of this library, and raises an error.

A result is proven if

- the costs are integers, and the gap is 0, whoever has found it, or
- they are floats, and an exact algorithm has ended by itself, or the gap is 0; and what the duals
  leave is no more than sums of such numbers are rounded: `ULPS` units in the last place of the
  largest number in use, for each of n pairs. In use are the costs of the pairs, the limit, and the
  duals, if these are at most 4 (n + 1) times as large: an assignment needs none that are larger.
  Larger ones hide small costs by their rounding. So they allow nothing, and what pairs cost less
  than such duals is found exactly, and added to the gap (`undercut`).

So a cost that no pair has allows nothing, however large it is.
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
"""Units in the last place for each pair. `verify` allows more, because it also counts what pairs
undercut their duals by."""
ROUNDINGS = 8
"""Units in the last place by which the two duals of a pair may exceed its cost: each of them is the
difference of two numbers, and then moved by the limit, or by what all duals move."""


class Magnitudes(NamedTuple):
    """The largest magnitudes of a result's pair costs (with the limit), and of its duals."""

    paid: float
    duals: float


class Proof(NamedTuple):
    """The gap of a result, and whether the result is proven."""

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
    """What the duals of an assignment show.

    Parameters
    ----------
    terms : iterable of int or float
        Numbers that add up to the objective, less the duals and the limits.
    pairs : int
        The rows or pairs that the sums have terms of.
    has_ended : bool
        Whether an exact algorithm has ended by itself.
    is_integer : bool
    magnitudes : callable
        The largest numbers of the result, of floats.
    undercut : callable
        By how much, in all, duals exceed costs. It is called where duals are beyond all need.

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
    """By how much duals must fall in all, at the rows, for no pair to cost less than its duals.

    The sign of each slack is exact, and the slack is wrong by some units in its own last place. It
    is one pass over the costs, which are floats. Pairs inside the cover, if there is one, may cost
    anything.
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
    """The rounded sum, and exactly what was rounded off (Knuth)."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)
