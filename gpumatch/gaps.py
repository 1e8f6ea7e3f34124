"""What the duals of a result show: its gap, and whether it is proven. It is decided here alone.

The gap is the objective less the sum of the duals (and the limits), added exactly and rounded once.
It bounds how far the objective is from the optimum, if the algorithm has said that its duals are
feasible (`Solution.has_duals`) and there are as many pairs as these duals bound. Else it is inf.

Such a gap is not negative, but for the rounding of the duals themselves: those of integers are not
rounded, and those of floats may exceed what they should be by some units in their last place. So
what is negative within that counts by its magnitude. Beyond it, the duals are not feasible, or the
pairs no matching: that is a fault of this library, and raises an error.

A result is proven if

- its gap is 0, whoever has found it, or
- an exact algorithm has ended by itself, the costs are floats, and the gap is no more than sums of
  such numbers are rounded: `ULPS` units in the last place of the largest number in use, for each of
  n pairs. In use are the costs of the pairs, the limit, and the duals. These must be at most
  4 (n + 1) times the costs in use: an assignment needs none that are greater, and they would hide
  small costs by their rounding. If that does not suffice, costs of other pairs are in use, too, but
  only if their slack is at most the gap. A pair with a greater slack is in no better assignment:
  with it, the objective exceeds the sum of the duals by that slack.

So a cost that is in no assignment near the best allows nothing, however large it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from gpumatch.contracts import Costs

__all__ = ["Magnitudes", "Proof", "largest_near", "proof_of"]

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
    near: Callable[[float], float] | None = None,
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
        The largest numbers of the result. It is called if the gap is not 0.
    near : callable, optional
        The largest cost of a pair whose slack is at most the number given.

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
    if gap == 0:
        return Proof(0.0, True)
    paid, duals = magnitudes()
    if gap < 0:
        if -gap > ROUNDINGS * UNIT * max(pairs, 1) * (paid + duals):
            raise _fault(gap)
        gap = -gap
    if not has_ended:
        return Proof(gap, False)
    is_small = _is_small(gap, pairs, paid, duals)
    if not is_small and near is not None and _is_small(gap, pairs, max(paid, duals), duals):
        is_small = _is_small(gap, pairs, max(paid, near(gap)), duals)
    return Proof(gap, is_small)


def _is_small(gap: float, pairs: int, used: float, duals: float) -> bool:
    return duals <= 4 * (pairs + 1) * used and gap <= ULPS * UNIT * pairs * max(used, duals)


def _fault(gap: Any) -> RuntimeError:
    return RuntimeError(
        f"internal error: an assignment costs {-gap} less than its duals allow; please report it"
    )


def largest_near(costs: Costs, row_dual: Any, col_dual: Any, gap: float) -> float:
    """The largest cost of an allowed pair whose slack is at most `gap`: one pass over the costs."""
    largest = 0.0
    for tile in costs.tiles():
        rows, cols, values = costs.tile(tile)
        is_near = (values - row_dual[rows]) - col_dual[cols] <= gap
        found = abs(values[is_near & (values < math.inf)])
        if found.size:
            largest = max(largest, float(found.max()))
    return largest
