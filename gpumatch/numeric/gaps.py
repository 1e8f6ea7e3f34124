"""The gap of a result, and the decision whether the result is proven. No other file decides it.

The gap is the objective minus a bound, the sum of the duals and the limits. The duals are fair
(`gpumatch.numeric.fair_duals`), and there are as many pairs as they bound. Otherwise the gap is
infinity. The sums are exact, and their difference is rounded up once. So no assignment that
competes is better by more than the gap, as a number. A gap below 0 means that the duals are not
fair or that the pairs are not a matching. That is a fault of this library, and raises an error.

A result for integer costs is proven if the gap is 0, whichever algorithm has found it. A result for
float costs is proven if both of these hold:

- An exact algorithm has ended by itself, or the gap is 0.
- The gap is at most the allowance that `gpumatch.verify` states,

      ULPS * UNIT * k * max(M, min(D, 4 (k + 1) M))

  for k pairs, where M is the largest magnitude of their costs and limits, and D that of the duals
  of matched vertices. No assignment needs larger duals than 4 (k + 1) M. Of a flow, each unit of
  mass is rounded as a pair is: the mass takes the place of the first k. A product with a mass may
  have bits below the least float, so that one is allowed, too.

Computed costs may be rounded (`gpumatch.contracts.Rounding`). What that may add is added to the gap
after the decision (`rounding_above`), so that the gap holds for the exact costs.

So the cost of a pair outside the assignment allows no rounding, however large it is. Duals that are
far larger than the pairs' costs allow more than those do. The gap that they leave is *coarse*:
exact paths may find smaller duals, and a better assignment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from gpumatch.contracts import Rounding

__all__ = ["Proof", "allowance_of", "check_duals", "proof_of", "rounding_above"]

UNIT = 2.0**-52
ULPS = 16
"""The allowance of a proven gap, in units in the last place for each pair."""
LEAST = 2.0**-1074
"""The least float."""
FINE = 2.0**-40
"""A gap is not coarse up to this share of the objective, or up to the allowance of duals of 0."""
SECOND_ORDER = 2.0**-20
"""What products of roundings, and those of their sum, add to the rounding of computed costs."""
ROUNDINGS = 8
"""The units in the last place by which the two duals of a pair may exceed its cost by rounding."""


class Proof(NamedTuple):
    """The gap of a result, and True if the result is proven, and if the gap is coarse."""

    gap: Any
    proven: bool
    is_coarse: bool = False


def proof_of(
    terms: Iterable[Any],
    pairs: int,
    *,
    has_ended: bool,
    is_integer: bool,
    largest: Callable[[], float],
    largest_dual: Callable[[], float],
    objective: float = math.inf,
    rounding: Callable[[float], float] | None = None,
    mass: float | None = None,
) -> Proof:
    """Compute the gap of an assignment, and decide if it is proven.

    Parameters
    ----------
    terms : iterable of int, float or Fraction
        The numbers whose sum is the objective minus the duals and the limits. The duals are fair.
    pairs : int
        The number of pairs.
    has_ended : bool
        True if an exact algorithm has ended by itself.
    is_integer : bool
        True if the costs are integers.
    largest, largest_dual : callables
        They return the largest magnitude of the pairs' costs and limits, and that of the duals of
        matched vertices. They are called for floats that leave a gap, as far as needed.
    objective : float
        The objective tells if the gap is coarse. By default it is not.
    rounding : callable, optional
        It returns by how much the rounding of computed costs may enlarge a gap.
    mass : float, optional
        What all pairs together carry. By default each pair carries 1.

    Raises
    ------
    RuntimeError
        If the gap is negative.
    """
    proof = _proof_of(
        list(terms), pairs, has_ended, is_integer, largest, largest_dual, objective, mass
    )
    if rounding is None or proof.gap == math.inf:
        return proof
    return proof._replace(gap=_sum_above([proof.gap, rounding(proof.gap)]))


def _proof_of(
    terms: list[Any],
    pairs: int,
    has_ended: bool,
    is_integer: bool,
    largest: Callable[[], float],
    largest_dual: Callable[[], float],
    objective: float,
    mass: float | None,
) -> Proof:
    """The gap of costs as they are computed, and the decision."""
    gap = sum(terms) if is_integer else _sum_above(terms)
    if gap < 0:
        raise _fault(gap)
    if is_integer or not gap:
        return Proof(gap, gap == 0)
    if not (has_ended and gap < math.inf):
        return Proof(gap, False)
    most = largest()
    if gap <= allowance_of(pairs, most, 0.0, mass):
        return Proof(gap, True)
    return Proof(
        gap,
        gap <= allowance_of(pairs, most, largest_dual(), mass),
        is_coarse=gap > FINE * abs(objective),
    )


def rounding_above(
    rounding: Rounding, pairs: float, paid: float, limit: float
) -> Callable[[float], float] | None:
    """By how much the rounding of computed costs may enlarge a gap; None if they are exact.

    docs/algorithms/correctness.md has the theorem.

    Parameters
    ----------
    rounding : Rounding
        That of the costs of all rows and columns.
    pairs : int or float
        The number of vertices of the smaller side; of a flow, the mass of that side.
    paid : float
        The sum of the magnitudes of the pairs' costs.
    limit : float
        The largest magnitude of a limit.
    """
    share, pair, added = rounding
    if not (share or pair):
        return None
    terms = (2, paid), (2 * pairs, limit), (8, added)
    fixed = sum(share * count * term for count, term in terms) + 2 * pairs * pair
    return lambda gap: (fixed + share * gap) * (1 + SECOND_ORDER)


def check_duals(terms: Iterable[float], pairs: int, largest: float) -> None:
    """Check that duals that were rounded are feasible, up to their rounding.

    Parameters
    ----------
    terms : iterable of float
        The numbers whose sum is the objective minus the duals and the limits.
    pairs : int
        The number of pairs.
    largest : float
        The sum of the largest magnitudes of the pairs' costs and of the duals.

    Raises
    ------
    RuntimeError
        If the sum is negative beyond rounding.
    """
    try:
        gap = math.fsum(terms)
    except OverflowError:
        return
    if -gap > ROUNDINGS * UNIT * max(pairs, 1) * largest:
        raise _fault(gap)


def _fault(gap: Any) -> RuntimeError:
    return RuntimeError(
        f"internal error: an assignment costs {-gap} less than its duals allow; please report it"
    )


def allowance_of(
    pairs: int, largest: float, largest_dual: float, mass: float | None = None
) -> float:
    """The gap up to which an assignment of floats, or a flow of this mass, counts as optimal."""
    scale = max(largest, min(largest_dual, 4.0 * (pairs + 1) * largest))
    if mass is None:
        return ULPS * UNIT * pairs * scale
    return ULPS * UNIT * mass * scale + LEAST


def _sum_above(terms: list[Any]) -> float:
    """The sum of floats or fractions, rounded up; infinity if it overflows."""
    try:
        if Fraction in {*map(type, terms)}:  # to ask isinstance takes longer than the sum
            exact = sum(map(Fraction, terms))
            total = float(exact)
            is_less = total < exact
        else:
            total = math.fsum(terms)
            is_less = math.fsum([*terms, -total]) > 0
    except OverflowError:
        return math.inf
    return math.nextafter(total, math.inf) if is_less else total
