"""The flow that a result names: its pairs, masses, capacities and cost, each checked by itself.

`gpumatch.certificates.transport` numbers what is checked. Here are points 1 and 2, and the bounds
of point 3. Costs to be maximised are turned, so that the flow is one of least cost.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from gpumatch.certificates.assignment import CARDINALITIES
from gpumatch.certificates.base import (
    CertificateError,
    check_cardinality,
    check_flag,
    check_numbers,
    check_pair_costs,
    python_number,
)
from gpumatch.certificates.gaps import ROUNDED
from gpumatch.certificates.limits import bars_of, limits_of
from gpumatch.certificates.slacks import whole_sum
from gpumatch.certificates.units import LEAST_FLOAT, MOST, products
from gpumatch.costs import Costs
from gpumatch.costs.capacities import PairCapacities
from gpumatch.numeric.arrays import any_true, array_of, first_true

__all__ = ["ClaimedFlow", "ClaimedTransport"]


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
    pair_capacity: Any

    @property
    def flow(self) -> Any: ...
    def cover_ind(self) -> tuple[Any, Any]: ...


class ClaimedFlow:
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
        self.capacity = _checked_capacity(getattr(result, "pair_capacity", None), costs)
        self.limits = limits_of(result.cost_limit, costs, self.sign)
        self.bars = bars_of(self.limits, costs.is_integer)
        if self.is_free and has_limit and any_true(~(abs(self.limits) < math.inf)):
            raise CertificateError("the limit must be finite")
        self.base = None
        if self.is_free:
            self.base = self.limits if has_limit else np.zeros(costs.shape[0], np.int64)
        self.is_whole = costs.is_integer and (self.base is None or self.base.dtype.kind == "i")
        self.has_float_duals = any(dual.dtype.kind == "f" for dual in self.duals)

    # -- capacities of pairs ----------------------------------------------------------------------

    def check_capacity(self, given: Any) -> None:
        """Check that the result's capacities are these, in whole units."""
        if self.capacity is None or self.capacity.values.shape != given.shape:
            raise CertificateError("the result is for other capacities of pairs")
        is_fraction = given.dtype.kind == "f" and any_true(given != np.floor(given))
        if isinstance(self.unit, int) and is_fraction:
            raise CertificateError("the capacity of a pair is a fraction, but units are 1")
        if given.dtype.kind == "f" or not isinstance(self.unit, int):
            given = np.floor(np.minimum(given / self.unit, float(MOST)))
        units = np.minimum(given, MOST).astype(np.int64)
        stray = first_true((units != self.capacity.values).ravel())
        if stray is not None:
            raise CertificateError(
                f"the capacity of a pair is {units.ravel()[stray]} units, but the result has "
                f"{self.capacity.values.ravel()[stray]}"
            )

    def room_of(self, rows: Any, cols: Any) -> Any:
        """The most units that pairs carry: their capacity, or what their vertices may have."""
        assert self.capacity is not None
        room = self.capacity.at(self.capacity.values, rows, cols)
        return np.minimum(room, np.minimum(self.bounds[0][1][rows], self.bounds[1][1][cols]))

    def _check_room(self) -> None:
        """Check that no pair is beyond its capacity."""
        if self.capacity is not None:
            room = self.room_of(self.rows, self.cols)
            stray = first_true(self.units > room)
            if stray is not None:
                raise CertificateError(
                    f"pair {stray} carries {self.units[stray]} units of {room[stray]}"
                )

    def are_full(self, rows: Any, cols: Any) -> Any:
        """Which pairs carry as much as they may."""
        units = np.zeros(rows.size, np.int64)
        if self.size:
            keys = self.rows * self.costs.shape[1] + self.cols
            wanted = rows * self.costs.shape[1] + cols
            places = np.minimum(np.searchsorted(keys, wanted), self.size - 1)
            units = np.where(keys[places] == wanted, self.units[places], 0)
        return units >= self.room_of(rows, cols)

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
        self.total = whole_sum(units)
        if self.total > MOST:
            raise CertificateError(f"the pairs carry {self.total} units, more than there may be")
        self.sums = []
        for side, ends_of, (_, upper) in zip(("row", "column"), ends, self.bounds):
            sums = np.zeros(upper.size, np.int64)  # none is beyond the total, so none wraps around
            np.add.at(sums, ends_of, units)
            vertex = first_true(sums > upper)
            if vertex is not None:
                raise CertificateError(
                    f"{side} {vertex} has {sums[vertex]} units of {upper[vertex]}"
                )
            self.sums.append(sums)
        self._check_room()
        self._check_named()

    def _check_named(self) -> None:
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
            paid = self.wide(self.costs.at(self.rows, self.cols))
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
        self.cost = products(self.paid, self.units) * Fraction(self.unit)
        is_exact = self.is_whole and isinstance(self.unit, int)
        off: Any = math.inf
        if not math.isinf(self.objective):
            off = abs(Fraction(self.objective) - self.cost * self.sign)
        room = 0 if is_exact else self.magnitude * ROUNDED / 2**52 + LEAST_FLOAT
        if off > room:
            shown = int(self.cost) if is_exact else float(self.cost)
            raise CertificateError(
                f"the flow costs {shown * self.sign}, but the objective is {self.objective}"
            )

    @property
    def magnitude(self) -> Fraction:
        """The sum of the magnitudes of what the pairs cost."""
        return products(abs(self.paid), self.units) * Fraction(self.unit)

    def wide(self, values: Any) -> Any:
        """Costs as int64, or as float64."""
        return values.astype(np.int64 if self.costs.is_integer else np.float64, copy=False)


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


def _checked_capacity(given: Any, costs: Costs) -> Any:
    """The capacities that a result names, in units; None without."""
    if given is None:
        return None
    units = array_of(np, given)
    if units.dtype != np.int64:
        raise CertificateError(f"the capacities of pairs must be int64; got {units.dtype}")
    try:
        return PairCapacities(units, costs, costs)
    except ValueError as exc:
        raise CertificateError(str(exc)) from exc


def _checked_ends(side: str, given: Any, length: int) -> Any:
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise CertificateError(
            f"the {side}s of the pairs must be integers; got {given.dtype} of shape {given.shape}"
        )
    stray = first_true((given < 0) | (given >= length))
    if stray is not None:
        raise CertificateError(f"pair {stray} names {side} {given[stray]} of {length}")
    return given.astype(np.int64, copy=False)
