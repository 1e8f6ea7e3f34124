"""Points of the columns in boxes, and the searches of the rows in them: boxes.cu.

The order is that of the ranks of the coordinates, interleaved bit by bit. Ranks do not mind how far
outliers are, or how dense clusters are.

Device memory: some 60 bytes a point and coordinate while the boxes are made, 20 after that.
"""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Points
from gpumatch.cuda.assignment.points.distances import metric_values, offsets_of
from gpumatch.cuda.kernels import Source, blocks_for, kernels_for
from gpumatch.numeric.points.clouds import frame_of

__all__ = ["MOST", "WIDTH", "Boxes", "order_of"]

SOURCE = Source(
    "assignment/points/boxes.cu",
    ("interleave", "find_least", "find_below"),
    structs=("Boxes", "Rows"),
)
_BLOCK, _LEVELS = SOURCE.constant("kBlock"), SOURCE.constant("kLevels")
WIDTH = SOURCE.constant("kWidth")
"""The most coordinates."""
MOST = 32
"""The most columns that a search finds for a row: the lanes of a warp."""
_PARTS = 32  # of a node
_ROUNDING = 2.0**-44  # of what is added up for a rest
_RIDGE = 1e-6  # keeps a fit of points on a line from being undefined; the spread of points is 1


def order_of(points: Any) -> Any:
    """Return an order in which neighbours follow each other, as int32 numbers of the points."""
    count, width = points.shape
    bits = min(63 // width, 31)
    key = cp.zeros(count, np.int64)
    for axis in range(width if count else 0):
        in_order = cp.argsort(points[:, axis])
        kernels_for(SOURCE)["interleave"](
            (blocks_for(count),),
            (_BLOCK,),
            (
                *(in_order, np.int32(count), np.int32(axis), np.int32(width), np.int32(bits)),  # IN
                key,  # IN, OUT
            ),
        )
    return cp.argsort(key).astype(np.int32)


class Boxes:
    """The boxes of the columns, prices of these columns, and the rows that ask.

    Parameters
    ----------
    points : Points
        On the device, with at most `WIDTH` coordinates.
    row_order, col_order : int32 arrays, optional
        The orders of the rows and of the columns, if the caller has them.
    """

    def __init__(self, points: Points, row_order: Any = None, col_order: Any = None) -> None:
        self.points = points
        self.asked = order_of(points.rows) if row_order is None else row_order
        self.ids = order_of(points.cols) if col_order is None else col_order
        self.kernels = kernels_for(SOURCE)
        self.frame = frame_of(points)
        shown = points if self.frame is None else self.frame.points
        offsets = offsets_of(points)
        self._rows = _across(points.rows, self.asked)
        self._cols = _across(points.cols, self.ids)
        self._shown_rows, self._shown_cols = self._rows, self._cols
        if self.frame is not None:
            self._shown_rows = _across(shown.rows, self.asked)
            self._shown_cols = _across(shown.cols, self.ids)
        self._row_offset, self._col_offset = (
            side[order] if side.size else side
            for side, order in zip(offsets, (self.asked, self.ids))
        )
        self._first, self._nodes = _levels(self.ids.size)
        self._low = _raised(-self._shown_cols, self._nodes)
        self._high = _raised(self._shown_cols, self._nodes)
        cp.negative(self._low, out=self._low)
        self._least_added = self._most_added = self._col_offset
        if self._col_offset.size:
            self._least_added = -_raised(-self._col_offset[None], self._nodes)[0]
            self._most_added = _raised(self._col_offset[None], self._nodes)[0]
        self._shift = cp.empty(0) if self.frame is None else self.frame.of_rows[self.asked]
        self._is_sloped = False  # without prices
        self._take(cp.zeros(self.ids.size))

    def set_prices(self, price: Any) -> None:
        """Take other prices of the columns."""
        p = self.points
        is_plain = p.metric == "sqeuclidean" and not (p.is_half or self._col_offset.size)
        self._is_sloped = self.frame is not None or (is_plain and p.sign > 0)
        self._take(price)

    def _take(self, price: Any) -> None:
        self._price = self._shown_price = price[self.ids]
        self._margin = 0.0
        if self.frame is not None:
            self._shown_price = self._price - self.frame.of_cols[self.ids]
            size = self.frame.size + (float(abs(price).max()) if price.size else 0.0)
            self._margin = self.frame.error * size
        self._slope, self._top = cp.empty(0), None
        if self._is_sloped:
            self._slope, self._top = self._slopes()
        else:
            self._top = _raised(self._shown_price[None], self._nodes)[0]

    def _slopes(self) -> tuple[Any, Any]:
        """For each node a linear function that no price of its columns exceeds: slope and rest.

        Only squared distances to be minimised have them, and those of frames. Slopes are those of
        least squares, for the columns of a leaf or for the means of a node's parts. A rest is the
        most by which a part's own function exceeds the slope in its box.
        """
        mean, value = self._shown_cols, self._shown_price
        slope, half, centre, rest = cp.zeros_like(mean), cp.zeros_like(mean), mean, value
        slopes, rests, first = [slope[:, :0]], [rest[:0]], 0
        for count in self._nodes:
            here = slice(first, first + count)
            low, high = self._low[:, here], self._high[:, here]
            middle = 0.5 * (low + high)
            mean, value, fitted = _fitted(mean, value, count)
            turn = abs(_padded(slope, count) - fitted[:, :, None]) * _padded(half, count)
            rise = fitted[:, :, None] * (_padded(centre, count) - middle[:, :, None])
            own = _padded(rest[None], count)[0]
            above = own + (turn - rise).sum(axis=0)
            above += _ROUNDING * (abs(own) + (turn + abs(rise)).sum(axis=0))
            above = cp.where(_are_there(rest.size, count), above, -math.inf)
            slope, half, centre, rest = fitted, 0.5 * (high - low), middle, above.max(axis=1)
            slopes.append(slope)
            rests.append(rest)
            first += count
        return cp.ascontiguousarray(cp.concatenate(slopes, axis=1)), cp.concatenate(rests)

    def least(self, count: int, bound: Any) -> tuple[Any, Any]:
        """As of a `Search`; `count` is at most `MOST`."""
        nrows = self.asked.size
        count = min(count, self.ids.size)
        cols = cp.full((nrows, count), -1, np.int32)
        values = cp.full((nrows, count), math.inf)
        if not cols.size:
            return cols, values
        found, least = cp.empty_like(cols), cp.empty_like(values)
        self._launch("find_least", np.int32(count), bound[self.asked], found, least)
        cols[self.asked] = cp.where(found >= 0, self.ids[found], -1)
        values[self.asked] = least
        return cols, values

    def nearest(self, count: int, bound: Any) -> Any:
        """Return the columns of `least`."""
        return self.least(count, bound)[0]

    def below(self, bound: Any) -> tuple[Any, Any, Any]:
        """Rows, columns and costs less prices of the pairs below the bounds of their rows."""
        nrows = self.asked.size
        bound, start = bound[self.asked], cp.zeros(nrows + 1, np.int64)
        if nrows:
            self._launch("find_below", bound, start[1:], np.uintp(0), np.uintp(0))
        start = cp.cumsum(start)
        size = int(start[-1])
        places, costs = cp.empty(size, np.int32), cp.empty(size)
        if size:
            self._launch("find_below", bound, start, places, costs)
        rows = cp.searchsorted(start, cp.arange(size), side="right") - 1
        return self.asked[rows], self.ids[places], costs

    def _launch(self, kernel: str, *arguments: Any) -> None:
        """Launch a kernel with a warp for each row."""
        frame, p = self.frame, self.points
        metric = metric_values(p)
        boxes = self.kernels.struct("Boxes")(
            cols=self._cols,
            col_offset=self._col_offset,
            price=self._price,
            shown_cols=self._shown_cols,
            shown_price=self._shown_price,
            low=self._low,
            high=self._high,
            top=self._top,
            slope=self._slope,
            least_added=self._least_added,
            most_added=self._most_added,
            first=[*self._first, *[0] * (_LEVELS - len(self._first))],
            levels=len(self._first),
            nodes=self._low.shape[1],
            ncols=self.ids.size,
            width=p.cols.shape[1],
            is_framed=int(frame is not None),
            is_sloped=int(self._is_sloped),
            metric=metric,
            shown=metric if frame is None else metric_values(frame.points),
            margin=self._margin,
            error=0.0 if frame is None else frame.error,
        )
        rows = self.kernels.struct("Rows")(
            rows=self._rows,
            row_offset=self._row_offset,
            shown_rows=self._shown_rows,
            shift=self._shift,
            nrows=self.asked.size,
        )
        self.kernels[kernel](
            (blocks_for(_PARTS * self.asked.size),), (_BLOCK,), (boxes, rows, *arguments)
        )


def _across(points: Any, order: Any) -> Any:
    """Return the coordinates, a line for each, of the points in an order."""
    return cp.ascontiguousarray(points[order].T)


def _levels(count: int) -> tuple[list[int], list[int]]:
    """Return the first node of each level, and the nodes of each."""
    nodes: list[int] = []
    while count and (not nodes or count > _PARTS):
        count = -(-count // _PARTS)
        nodes.append(count)
    return [sum(nodes[:level]) for level in range(len(nodes))], nodes


def _are_there(size: int, count: int) -> Any:
    """True for the parts of so many nodes that exist, if there are `size`."""
    return cp.arange(count * _PARTS).reshape(count, _PARTS) < size


def _padded(values: Any, count: int) -> Any:
    """The values of the parts of so many nodes, for each line of values; 0 where there is none."""
    padded = cp.zeros((values.shape[0], count * _PARTS))
    padded[:, : values.shape[1]] = values
    return padded.reshape(values.shape[0], count, _PARTS)


def _fitted(points: Any, values: Any, count: int) -> tuple[Any, Any, Any]:
    """Means of the points and values of so many nodes, and the slopes that fit these best."""
    width, size = points.shape
    parts = _padded(points, count)
    is_there = _are_there(size, count)
    number = is_there.sum(axis=1)
    mean, value = parts.sum(axis=2) / number, _padded(values[None], count)[0].sum(axis=1) / number
    steps = (parts - mean[:, :, None]) * is_there
    spread = cp.sqrt((steps * steps).sum(axis=(0, 2)))
    spread = cp.where(spread > 0, spread, 1.0)
    turned = (steps / spread[:, None]).transpose(1, 0, 2)
    squares = turned @ turned.transpose(0, 2, 1) + _RIDGE * cp.eye(width)
    rises = (_padded(values[None], count)[0] - value[:, None]) * is_there
    found = cp.linalg.solve(squares, turned @ rises[:, :, None])[:, :, 0]
    return mean, value, cp.ascontiguousarray((found / spread[:, None]).T)


def _raised(values: Any, nodes: list[int]) -> Any:
    """Return the greatest of each node's values, for each line of values: the leaves first."""
    parts, width = [], values.shape[0]
    for count in nodes:
        padded = cp.full((width, count * _PARTS), -math.inf)
        padded[:, : values.shape[1]] = values
        values = padded.reshape(width, count, _PARTS).max(axis=2)
        parts.append(values)
    if not parts:
        return cp.empty((width, 0))
    return cp.ascontiguousarray(cp.concatenate(parts, axis=1))
