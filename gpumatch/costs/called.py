"""Costs of points by a function of the caller, which is called for each pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpumatch.contracts import Points, Rounding, Tile
from gpumatch.costs.base import Extent, extent_of
from gpumatch.costs.point_bounds import UNIT, added_by_offsets
from gpumatch.costs.points import PointCosts
from gpumatch.numeric.arrays import array_of

__all__ = ["CalledCosts"]

KEPT = 2**22
"""Pairs up to which the matrix is kept: 32 MiB."""


class CalledCosts(PointCosts, takes_functions=True):
    """The costs that a function of two points returns: `PointCosts` with a callable metric.

    A cost is the float that the function returns, with the offsets added.
    """

    _bare: Extent | None = None
    """The extent of what the function returns; None until all of it is known."""
    _values: Any = None
    """What the function returns for all pairs; None if they are too many."""
    _is_swapped = False
    """True if the function takes a column's point first."""

    @property
    def points(self) -> None:
        """None: no kernel knows the function."""
        return None

    @property
    def power(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return super().nbytes + (0 if self._values is None else int(self._values.nbytes))

    def tile(self, rows: slice) -> Tile:
        own, cols = np.arange(rows.start, rows.stop)[:, None], np.arange(self.shape[1])[None, :]
        values = self._block(rows) if self._values is None else self._values[rows]
        return own, cols, self._with_offsets(values, own, cols)

    def _at(self, rows: Any, cols: Any) -> Any:
        if self._values is not None:
            return self._with_offsets(self._values[rows, cols], rows, cols)
        shape = np.broadcast_shapes(rows.shape, cols.shape)
        own, others = (np.broadcast_to(part, shape).ravel().tolist() for part in (rows, cols))
        values = self._called(own, others).reshape(shape)
        return self._with_offsets(values, rows, cols)

    def at(self, rows: Any, cols: Any) -> Any:
        return self._at(array_of(np, rows), array_of(np, cols))

    def to_device(self) -> Any:
        return self.stored().to_device()

    def restricted(self, rows: Any, cols: Any) -> PointCosts:
        part: Any = super().restricted(rows, cols)
        if self._values is not None:
            part._values = self._values[np.ix_(array_of(np, rows), array_of(np, cols))]
        return part

    # -- inside ----------------------------------------------------------------------------------

    def _with(self, points: Points) -> PointCosts:
        costs: CalledCosts = object.__new__(type(self))
        costs.metric, costs._bare, costs._is_swapped = self.metric, self._bare, self._is_swapped
        is_same = points.rows.shape[0], points.cols.shape[0]
        costs._values = self._values if is_same == self.shape else None
        rounding = self.rounding._replace(added=added_by_offsets(points))
        costs._hold(self.metric, points, costs._extent_of(points), rounding, self._numbers)
        return costs

    def _turned(self, maximize: bool, transposed: bool) -> PointCosts:
        turned: Any = super()._turned(maximize, transposed)
        if transposed:
            turned._is_swapped = not self._is_swapped
            turned._values = None if self._values is None else self._values.T
        return turned

    def _extent_of(self, points: Points) -> Extent:
        for part in points.rows, points.cols:
            part.flags.writeable = False  # the function sees them
        if self._bare is None:
            self._points, self.metric = points, points.metric
            self._bare = self._look_at_all()
        low, high, largest = self._bare
        if points.row_offset is not None and len(points.rows) and len(points.cols):
            sides = points.row_offset, points.col_offset
            least, most = (sum(float(getattr(side, end)()) for side in sides) for end in _ENDS)
            low, high = low + least, high + most
            largest = largest + max(abs(least), abs(most))
        extent = Extent(low, high, largest)
        if math.isfinite(low) and math.isfinite(high):
            extent = Extent(low, high, max(abs(low), abs(high)))
        return extent if points.sign > 0 else extent.negated()

    def _rounding_of(self, metric: Any, points: Points, step: float) -> Rounding:
        if points.row_offset is None:
            return Rounding()
        return Rounding(2 * UNIT, 0.0, added_by_offsets(points))

    def _look_at_all(self) -> Extent:
        """The extent of what the function returns for all pairs, which are kept if they are few."""
        if self.nnz <= KEPT:
            self._values = self._block(slice(0, self.shape[0]))
            return extent_of(self._values)
        parts = [extent_of(self._block(tile)) for tile in self.tiles()]
        parts = parts or [extent_of(np.empty(0))]
        return Extent(
            min(part.low for part in parts),
            max(part.high for part in parts),
            max(part.largest for part in parts),
        )

    def _block(self, rows: slice) -> np.ndarray:
        """What the function returns for the pairs of some rows."""
        cols = range(self.shape[1])
        lines = [self._called([row] * len(cols), cols) for row in range(rows.start, rows.stop)]
        return np.array(lines).reshape(len(lines), len(cols))

    def _called(self, rows: Sequence[int], cols: Sequence[int]) -> np.ndarray:
        """What the function returns for some pairs."""
        X, Y, function = self.X, self.Y, self.metric
        if self._is_swapped:
            rows, cols, X, Y = cols, rows, Y, X
        found = [function(X[row], Y[col]) for row, col in zip(rows, cols)]
        return _checked(found, rows, cols)

    def _with_offsets(self, values: np.ndarray, rows: Any, cols: Any) -> np.ndarray:
        """The costs, as a new array."""
        p = self._points
        if p.row_offset is not None:
            values = values + (p.row_offset[rows] + p.col_offset[cols])
        return -values if p.sign < 0 else values.copy()

    def _what_is_held(self) -> str:
        name = getattr(self.metric, "__name__", type(self.metric).__name__)
        return f"{self.X.shape[1]} coordinates, {name}"


_ENDS = ("min", "max")


def _checked(found: list[Any], rows: Sequence[int], cols: Sequence[int]) -> np.ndarray:
    """What a function has returned for some pairs, as float64.

    Raises
    ------
    TypeError
        If it is no real number.
    ValueError
        If it is several numbers, or NaN.
    """
    try:
        values = np.asarray(found)
    except ValueError:  # arrays of several shapes
        values = np.empty(0, object)
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        for one, row, col in zip(found, rows, cols):
            pair, number = f"row {row} and column {col}", np.asarray(one)
            if number.ndim:
                raise ValueError(
                    f"metric must return one number; got an array of shape {number.shape} "
                    f"for {pair}"
                )
            if number.dtype.kind not in "biuf":
                raise TypeError(
                    f"metric must return real numbers; got {type(one).__name__} for {pair}"
                )
        values = np.array(list(map(float, found)))  # of types that NumPy joins to no number
    values = values.astype(np.float64, copy=False)
    stray = np.flatnonzero(values != values)
    if stray.size:
        row, col = rows[stray[0]], cols[stray[0]]
        raise ValueError(f"metric returned NaN for row {row} and column {col}")
    return values
