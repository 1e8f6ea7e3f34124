"""The pairs that a checker of assignments looks at, with costs that are to be minimised."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpumatch.certificates.base import CertificateError, first_pair
from gpumatch.certificates.boxes import near_pairs
from gpumatch.certificates.limits import left_out
from gpumatch.costs import Costs
from gpumatch.numeric.arrays import any_true, array_module

__all__ = ["Tile", "TurnedPairs", "check_left_out", "look_at_cover"]

MANY, MANY_ON_DEVICE = 2**22, 2**28  # pairs from which those of points are left out by boxes
IN_BOXES = 6  # coordinates up to which boxes leave out enough

Tile = tuple[Any, Any, Any, Any]
"""Rows, columns and costs of pairs, and marks of the allowed ones: None if all are allowed."""
Ends = tuple[Any, Any]
"""Marks of rows and marks of columns."""


class TurnedPairs:
    """All pairs of rows and columns.

    Parameters
    ----------
    costs : Costs
        The caller's costs.
    sign : int
        1, or -1 if they are to be maximised. The costs of pairs are multiplied by it.
    bars : array, optional
        The greatest costs of each row at which a pair is allowed, multiplied by `sign`, too.
    """

    def __init__(self, costs: Costs, sign: int, bars: Any = None) -> None:
        self.costs, self.sign, self.bars = costs, sign, bars

    def at(self, rows: Any, cols: Any) -> Any:
        """The costs of some pairs, as int64 or float64."""
        return self._turned(self.costs.at(rows, cols))

    def tiles(self) -> Iterator[Tile]:
        """Yield all pairs, a tile at a time, in arrays that broadcast."""
        for tile in self.costs.tiles():
            rows, cols, costs = self.costs.tile(tile)
            costs = self._turned(costs)
            allowed = None if self.costs.is_finite else costs < math.inf
            if self.bars is not None:
                within = costs <= self.bars[rows]
                allowed = within if allowed is None else allowed & within
            yield rows, cols, costs, allowed

    def _turned(self, costs: Any) -> Any:
        costs = costs.astype(np.int64 if self.costs.is_integer else np.float64, copy=False)
        return -costs if self.sign < 0 else costs

    # -- of points -------------------------------------------------------------------------------

    @property
    def have_boxes(self) -> bool:
        """True if the costs are distances of so many points that boxes leave out most pairs."""
        costs, points = self.costs, self.costs.points
        if points is None or costs.nnz < (MANY_ON_DEVICE if costs.on_device else MANY):
            return False
        return bool(points.rows.shape[1] <= IN_BOXES)

    def numbers_of_points(self) -> tuple[list[Any], list[Any]]:
        """The numbers that the costs of rows and columns depend on: a list of arrays for each."""
        p: Any = self.costs.points
        sides: tuple[list[Any], list[Any]] = [*p.rows.T], [*p.cols.T]
        if p.row_offset is not None:
            sides[0].append(p.row_offset)
            sides[1].append(p.col_offset)
        return sides

    def near_tiles(self, some: tuple[Any, Any], row_price: Any, col_price: Any) -> Iterator[Tile]:
        """Yield the pairs of some rows and columns that may cost no more than their prices.

        With bars, yield all pairs of these that are allowed.
        """
        if self.bars is not None:
            row_price, col_price = self.bars, self.costs.xp.zeros(self.costs.shape[1])
        of_rows, of_cols = some
        for own, others, costs in self.near(
            of_rows, of_cols, row_price[of_rows], col_price[of_cols]
        ):
            rows, cols = of_rows[own], of_cols[others]
            yield rows, cols, costs, None if self.bars is None else costs <= self.bars[rows]

    def near(
        self, rows: Any, cols: Any, row_price: Any, col_price: Any
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the pairs of some rows and columns that may cost no more than their prices.

        They come as places in ``rows``, places in ``cols``, and costs.
        """
        p: Any = self.costs.points
        sums = (None, None) if p.row_offset is None else (p.row_offset[rows], p.col_offset[cols])
        p = p._replace(rows=p.rows[rows], cols=p.cols[cols], sign=p.sign * self.sign)
        p = p._replace(row_offset=sums[0], col_offset=sums[1])
        for own, others in near_pairs(p, self.costs.rounding.pair, row_price, col_price):
            yield own, others, self.at(rows[own], cols[others])


# -- what is checked of a tile ---------------------------------------------------------------------


def look_at_cover(
    tile: Tile, inside: Ends, *, is_required: bool, first: int = 0
) -> tuple[Any, bool]:
    """Return the allowed pairs that are not inside the cover, and if all allowed pairs touch it.

    `inside` marks its rows and its columns. If it is required that they touch it, a pair that does
    not raises a CertificateError, which names its row as one from the row `first` on.
    """
    rows, cols, _, allowed = tile
    in_rows, in_cols = inside[0][rows], inside[1][cols]
    bare = ~(in_rows | in_cols)
    pair = first_pair(
        array_module(in_rows), rows, cols, bare if allowed is None else bare & allowed
    )
    if pair is not None and is_required:
        raise CertificateError(
            f"the pair of row {first + pair[0]} and column {pair[1]} is not in the cover"
        )
    counted = ~(in_rows & in_cols)
    return counted if allowed is None else allowed & counted, pair is None


def check_left_out(tile: Tile, unmatched: Ends, bars: Any, *, first: int = 0) -> None:
    """Check that no allowed pair within the limit joins an unmatched row and an unmatched column.

    `bars` are the greatest costs of each row within its limit.
    """
    rows, cols, costs, allowed = tile
    of_rows, of_cols = unmatched[0][rows], unmatched[1][cols]
    if not (any_true(of_rows) and any_true(of_cols)):
        return
    bare = of_rows & of_cols & (costs <= bars[rows])
    pair = first_pair(array_module(bare), rows, cols, bare if allowed is None else bare & allowed)
    if pair is not None:
        raise CertificateError(left_out(first + pair[0], pair[1]))
