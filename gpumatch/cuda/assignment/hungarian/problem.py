"""A dense problem in the units of the Hungarian kernels, with its initial reduction.

The kernels count in 64-bit integers, so that tight edges have slack 0 exactly. Integer costs stay
unchanged. Other costs become multiples of a power of two, with about 2**57 units to the largest
cost. That is finer than float64 near the largest cost. If pairs are forbidden, duals may exceed the
bound that holds without forbidden pairs. Then the search begins again, with coarser units and an
order of steps that suit all duals.
"""

from __future__ import annotations

import dataclasses
import math

import cupy as cp
import numpy as np

from gpumatch.contracts import Costs, Solution
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.cuda.assignment.hungarian.sources import NEVER, REDUCTION
from gpumatch.cuda.kernels import BLOCK, blocks_for, kernels_for
from gpumatch.cuda.memory import unmatched
from gpumatch.numeric.arrays import any_true

__all__ = ["Problem", "Units", "attempts"]

_UNIT_BITS = 57  # bits of the largest cost: more than float64 has, with room left for duals
_ROOM_BITS = 60  # bits of duals whose sums of a few surely fit into 64 bits
_MOST_BITS = 1000  # the largest exponent used: 2.0**1000 is finite
# Not measured. Duals that need more repairs are worth little.
_ADOPTIONS = 4  # the most repairs of given duals


@dataclasses.dataclass(frozen=True)
class Units:
    """The units in which the kernels count, and the bounds of their numbers.

    Attributes
    ----------
    bits : int
        Costs and duals are whole multiples of ``2**-bits``; 0 for integers.
    lift : int
        Costs so small that ``2.0**bits`` would overflow are first multiplied by ``2**lift``.
    largest : int
        The largest cost in units.
    most : int
        The bound of the duals. If a dual exceeds it, the next attempt begins, or no solution
        exists.
    most_given : int
        The bound of the given duals.
    is_patient : bool
        True if searches end at the nearest leaf, even if they could continue.
    """

    is_integer: bool
    bits: int
    lift: int
    largest: int
    most: int
    most_given: int
    is_patient: bool

    @property
    def scale(self) -> np.float64:
        return np.float64(math.ldexp(1.0, self.bits - self.lift))

    @property
    def most_distance(self) -> int:
        return self.most - self.largest

    def lifted(self, values: cp.ndarray) -> cp.ndarray:
        return cp.ldexp(values, self.lift) if self.lift else values

    def fixed(self, lifted: cp.ndarray) -> cp.ndarray:
        if self.is_integer:
            return lifted.astype(np.int64)
        return cp.rint(lifted.astype(np.float64) * self.scale).astype(np.int64)

    def given(self, fixed: cp.ndarray) -> cp.ndarray:
        return fixed if self.is_integer else cp.ldexp(fixed.astype(np.float64), -self.bits)


def attempts(costs: Costs, limit: float | None) -> list[Units]:
    """Return the units to try, the finest first. With the last, all duals are sure to fit.

    Let c be the largest cost or limit, in units, and n the number of rows. If searches end at the
    nearest leaf, an alternating path of at most n rows leads from the column of least dual to one
    of dual 0. So no column's dual is below -2nc, and no row's dual is above (2n + 1)c. Given duals
    add to both. A row with a greater dual cannot be matched. If (n + 1)c < 2**62, all duals fit
    into 64 bits, and distances fit into 64 bits without a sign. Without forbidden pairs, one row
    leads from any column to any other, and n counts as 1. While duals have room, searches that end
    farther out are tried first.
    """
    largest = max(costs.largest, 0 if limit is None else abs(limit))
    exponent = 0 if costs.is_integer else _UNIT_BITS - math.frexp(largest)[1]
    n = 1 if costs.is_complete else min(costs.shape)

    def units(bits: int, *, is_patient: bool) -> Units:
        most_cost = int(largest) if costs.is_integer else 2**_UNIT_BITS >> exponent - bits
        given, most = 2 * most_cost, 2**_ROOM_BITS
        if is_patient:
            given = min(given, 2**63 - 1 - 2 * (n + 1) * most_cost)
            most = (2 * n + 1) * most_cost + given
        lift = max(0, bits - _MOST_BITS)
        return Units(costs.is_integer, bits, lift, most_cost, most, given, is_patient)

    coarser = 0 if costs.is_integer else max(0, (n + 1).bit_length() - (62 - _UNIT_BITS))
    last = units(exponent - coarser, is_patient=True)
    first = units(exponent, is_patient=False)
    return [last] if first.largest > 2**_UNIT_BITS else [first, last]


class Problem:
    """A problem on the device, with its matching and its duals in the kernels' units."""

    def __init__(
        self, values: cp.ndarray, units: Units, limit: float | None, start: Solution
    ) -> None:
        self.given, self.values, self.units = values, units.lifted(values), units
        self.nrows, self.ncols = values.shape
        self.given_limit = limit
        self.limit = NEVER if limit is None else np.int64(_fixed_limit(limit, units))
        self.all_match = limit is None and self.nrows == self.ncols
        self.kernels = kernels_for(REDUCTION, Cost=values.dtype)
        self.row_to_col = unmatched(self.nrows)
        self.col_to_row = start.col_to_row.copy()
        self.row_dual = cp.zeros(self.nrows, np.int64)
        self.col_dual = units.fixed(units.lifted(start.col_dual))
        cp.clip(self.col_dual, -units.most_given, units.most_given, out=self.col_dual)

    def struct(self) -> np.ndarray:
        """Return the struct Problem<Cost> of dense/costs.cuh, which all sources here share."""
        return self.kernels.struct("Problem")(
            values=self.values,  # IN
            nrows=self.nrows,
            ncols=self.ncols,
            scale=self.units.scale,
            limit=self.limit,
            most=self.units.most,
            row_to_col=self.row_to_col,  # IN, OUT
            col_to_row=self.col_to_row,
            row_dual=self.row_dual,
            col_dual=self.col_dual,
        )

    def reduce(self) -> None:
        """Begin from the given duals if they fit, else by the initial reduction (Algorithm 1)."""
        is_given = any_true(self.col_to_row >= 0) or any_true(self.col_dual != 0)
        if is_given and self._adopt():
            return
        self.row_to_col.fill(-1)
        self.col_to_row.fill(-1)
        self.col_dual.fill(0)
        self._reduce_rows()
        if self.all_match:
            self._reduce_columns()

    def write(self, solution: Solution) -> None:
        """Write the matching and the duals. If all match, no column's dual is above 0."""
        solution.has_duals = False
        if self.all_match:
            most = self.col_dual.max()
            self.col_dual -= most
            self.row_dual += most
        solution.row_to_col[:] = self.row_to_col
        solution.col_to_row[:] = self.col_to_row
        solution.col_dual[:] = self.units.given(self.col_dual)
        if self.units.is_integer:
            solution.row_dual[:] = self.row_dual
        else:
            solution.row_dual[:] = self._least_of_rows(solution.col_dual)
        solution.has_duals = solution.are_fair = True

    def _least_of_rows(self, col_dual: cp.ndarray) -> cp.ndarray:
        """Return the largest feasible row duals.

        They are found from the costs, not from coarse units.
        """
        least = ArrayRows(self.given, np.inf, lambda: False).least_of_rows(col_dual)
        if self.given_limit is not None:
            least = cp.minimum(least, self.given_limit)
        return cp.where(least < np.inf, least, 0)  # no pair is allowed

    def _adopt(self) -> bool:
        """Keep the pairs that are tight at the given duals; False if the repairs do not end."""
        if not self.all_match:
            cp.minimum(self.col_dual, 0, out=self.col_dual)
        for _ in range(_ADOPTIONS):
            if not self.all_match:
                self.col_dual[self.col_to_row < 0] = 0
            self._reduce_rows()
            cols = cp.flatnonzero(self.col_to_row >= 0)
            rows = self.col_to_row[cols]
            costs = self.units.fixed(self.values[rows, cols])
            is_slack = costs - self.col_dual[cols] > self.row_dual[rows]
            if not any_true(is_slack):
                self.row_to_col[rows] = cols
                return True
            self.col_to_row[cols[is_slack]] = -1
        return False

    def _reduce_rows(self) -> None:
        self.kernels["row_minima<{Cost}>"](
            (blocks_for(32 * self.nrows),),
            (BLOCK,),
            (
                self.struct(),  # IN
                self.row_dual,  # OUT
            ),
        )
        cp.minimum(self.row_dual, self.limit, out=self.row_dual)
        self.row_dual[self.row_dual == NEVER] = 0  # no pair is allowed

    def _reduce_columns(self) -> None:
        self.col_dual.fill(NEVER)
        blocks = -(-self.ncols // BLOCK)
        shares = max(1, min(self.nrows, blocks_for(2**31) // blocks))
        self.kernels["column_minima<{Cost}>"](
            (blocks, shares),
            (BLOCK,),
            (
                self.struct(),  # IN
                self.col_dual,  # IN, OUT
            ),
        )
        self.col_dual[self.col_dual == NEVER] = 0
        cp.minimum(self.col_dual, self.units.most_given, out=self.col_dual)


def _fixed_limit(limit: float, units: Units) -> int:
    return int(limit) if units.is_integer else round(math.ldexp(float(limit), units.bits))
