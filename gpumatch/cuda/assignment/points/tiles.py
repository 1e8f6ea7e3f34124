"""The columns that are cheapest for each row at given prices, by computing all costs in tiles.

Device memory: two tiles.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Costs
from gpumatch.cuda.assignment.dense.rows import ArrayRows

__all__ = ["Tiles", "nearest_of", "ranks"]


class Tiles:
    """All pairs of costs, computed in tiles of rows.

    Attributes
    ----------
    is_exact : bool
        True if no pair below a bound is missed by rounding.
    """

    is_exact = False

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.price = cp.zeros(costs.shape[1], np.int64 if costs.is_integer else np.float64)

    def set_prices(self, price: Any) -> None:
        """Take other prices of the columns."""
        self.price = price.astype(self.price.dtype)

    def least(self, count: int, bound: Any) -> tuple[Any, Any]:
        """As of a `Search`. Costs less prices of floats are rounded to nearest."""
        (nrows, ncols), far = self.costs.shape, self.costs.far
        count = min(count, ncols)
        cols = cp.full((nrows, count), -1, np.int32)
        values = cp.full((nrows, count), far, self.price.dtype)
        for tile in self.costs.tiles():
            line = cp.ascontiguousarray(self.costs.tile(tile)[2], self.price.dtype)
            rows, found, costs = nearest_of(line, far, self.price, bound[tile], count)
            rank = ranks(rows)
            cols[tile][rows, rank] = found
            values[tile][rows, rank] = costs - self.price[found]
        return cols, values

    def nearest(self, count: int, bound: Any) -> Any:
        """The columns of `least`."""
        return self.least(count, bound)[0]

    def least_of_rows(self) -> Any:
        """The least cost less price of each row, rounded down."""
        least = cp.full(self.costs.shape[0], self.costs.far, self.price.dtype)
        for tile in self.costs.tiles():
            line = cp.ascontiguousarray(self.costs.tile(tile)[2], self.price.dtype)
            least[tile] = ArrayRows(line, self.costs.far, lambda: False).least_of_rows(self.price)
        return least


def nearest_of(line: Any, far: Any, price: Any, bound: Any, count: int) -> tuple[Any, Any, Any]:
    """Rows, columns and costs of the least costs less prices below the bounds, by rows."""
    return ArrayRows(line, far, lambda: False).nearest(price, cp.ascontiguousarray(bound), count)


def ranks(rows: Any) -> Any:
    """The place of each entry among those of its row; the rows are in order."""
    return cp.arange(rows.size) - cp.searchsorted(rows, rows)
