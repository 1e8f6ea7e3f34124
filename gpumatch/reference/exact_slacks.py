"""Slacks that are not rounded: costs and duals as even integers, of 64 bits or of any length.

Integers are doubled. Floats are multiplied by a power of two that makes all of them whole, and
doubled. The methods of Date and Nagi move duals by theta / 2, up or down, where theta is a slack.
So theta stays even, a zero is a zero, and only the duals that are returned are rounded.

Sizes, for n rows and C = max |c|: The sum of all theta is at most 2 n C, because the dual of a row
that waits to the end may rise by that much (see `gpumatch.cpu.assignment.hungarian.problem`).
Algorithm 1 leaves duals of 2 C at most, and each theta moves them by half. So duals and slacks are
less than 8 (n + 1) C. If this is below 2**61, int64 is enough. Otherwise the numbers are Python's,
in arrays of objects. Subtracting a million of these takes 0.1 s. So floats first tell which pairs
to look at: those whose rounded slack may be the least, or zero, within what rounding can do.

Forbidden pairs cost ``2 * far``. Their slacks are ``far`` or more, all others are less.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["Slacks"]

FAR = 2**61  # of int64
ROUNDING = 2.0**-50  # of twice a slack as a float, in units of far
TILE = 1 << 15  # so that they stay in the cache

Places = NDArray[np.intp]


class Slacks:
    """The slack of each pair of a row and a column: cost - row_dual - col_dual.

    Parameters
    ----------
    costs : (n, m) array of int64 or float64
        Costs, n <= m.
    is_allowed : (n, m) array of bool
        Which pairs are allowed; the costs of the others are anything.
    tile : int
        Slacks that are computed at a time.

    Attributes
    ----------
    row_dual, col_dual : arrays
        Whole numbers; `in_units` converts them to the costs' unit.
    far : int
        More than any slack.
    """

    def __init__(self, costs: np.ndarray, is_allowed: NDArray[np.bool], tile: int = TILE) -> None:
        nrows, ncols = self.shape = costs.shape
        self._tile = tile
        self._is_integer = costs.dtype.kind != "f"
        numbers, self._numerator, self._denominator = _whole_numbers(costs[is_allowed].tolist())
        bound = 8 * (nrows + 1) * max(map(abs, numbers), default=0)
        self._is_long = bound >= FAR
        self.far = 1 << max(bound.bit_length(), FAR.bit_length() - 1)
        self.dtype = np.dtype(object if self._is_long else np.int64)
        self._costs = np.full(costs.shape, 2 * self.far, self.dtype)
        self._costs[is_allowed] = numbers
        self.row_dual, self.col_dual = np.zeros(nrows, self.dtype), np.zeros(ncols, self.dtype)
        if self._is_long:
            self._shift = max(self.far.bit_length() - 900, 0)
            self._margin = float(self.far >> self._shift) * ROUNDING
            self._rough_costs = self._floats(self._costs)
            self._rough_costs[~is_allowed] = np.inf

    def at(self, rows: Places, cols: Places) -> np.ndarray:
        """The slack of each pair of a row and the column at the same index."""
        return self._costs[rows, cols] - self.row_dual[rows] - self.col_dual[cols]

    def all(self) -> np.ndarray:
        """All slacks as a matrix."""
        return self._costs - self.row_dual[:, None] - self.col_dual

    def least_of_columns(self, rows: Places, cols: Places) -> tuple[np.ndarray, Places]:
        """Each column's least slack to the rows, and the first row that has it.

        There must be a row.
        """
        if self._is_long:
            rough = self._rough(rows, cols)
            lines, places = (rough <= rough.min(axis=0) + self._margin).T.nonzero()
            nearest = rows[places]
            slacks = self.at(nearest, cols[lines])
            if len(lines) > len(cols):
                first = _first_least(slacks, lines)
                return slacks[first], nearest[first]
            return slacks, nearest
        slacks = _block(self._costs, rows, cols) - self.row_dual[rows, None]
        nearest = rows[slacks.argmin(axis=0)]
        return self.at(nearest, cols), nearest

    def least_of_rows(self, rows: Places, cols: Places) -> np.ndarray:
        """Each row's least slack to the columns.

        There must be a column.
        """
        tiles = np.array_split(rows, 1 + rows.size * cols.size // self._tile)
        least = self._least_of_long_rows if self._is_long else self._least_of_short_rows
        return np.concatenate([least(tile, cols) for tile in tiles])

    def _least_of_long_rows(self, rows: Places, cols: Places) -> np.ndarray:
        rough = self._rough(rows, cols)
        lines, places = (rough <= rough.min(axis=1)[:, None] + self._margin).nonzero()
        slacks = self.at(rows[lines], cols[places])
        return slacks[_first_least(slacks, lines)]

    def _least_of_short_rows(self, rows: Places, cols: Places) -> np.ndarray:
        slacks = _block(self._costs, rows, cols) - self.col_dual[cols]
        return slacks.min(axis=1) - self.row_dual[rows]

    def tight_pairs(self) -> Places:
        """The pairs of slack 0, as places in the matrix row by row."""
        nrows, ncols = self.shape
        height = max(self._tile // max(ncols, 1), 1)
        costs, row_dual, most = self._costs, self.row_dual, self.col_dual
        if self._is_long:
            costs, row_dual = self._rough_costs, self._floats(row_dual)
            most = self._floats(most) + self._margin
        places = [np.empty(0, np.intp)]
        for begin in range(0, nrows, height):
            tile = slice(begin, begin + height)
            is_near = costs[tile] - row_dual[tile, None] <= most
            places.append(np.flatnonzero(is_near) + begin * ncols)
        near = np.concatenate(places)
        return near[self.at(*np.divmod(near, ncols)) == 0]

    def in_units(self, numbers: np.ndarray) -> list[int] | list[float]:
        """The numbers as costs."""
        numerator, denominator = self._numerator, self._denominator
        if self._is_integer:
            return [number // denominator for number in numbers.tolist()]
        return [number * numerator / denominator for number in numbers.tolist()]

    def _rough(self, rows: Places, cols: Places) -> NDArray[np.float64]:
        duals = self._floats(self.row_dual[rows])[:, None], self._floats(self.col_dual[cols])
        return _block(self._rough_costs, rows, cols) - duals[0] - duals[1]

    def _floats(self, numbers: np.ndarray) -> NDArray[np.float64]:
        """Rounded, in a unit in which none is too large."""
        return (numbers >> self._shift).astype(np.float64)


def _whole_numbers(values: list[int] | list[float]) -> tuple[list[int], int, int]:
    """Even integers, and the fraction by which they are to be multiplied to get the values."""
    ratios = [value.as_integer_ratio() for value in values]
    most = max((denominator for _, denominator in ratios), default=1)
    wholes = [number * (most // denominator) for number, denominator in ratios]
    common = math.gcd(*wholes) if values and isinstance(values[0], float) else 1
    common &= -common  # the power of two in it
    common = max(common, 1)
    return [2 * (whole // common) for whole in wholes], common, 2 * most


def _block(matrix: np.ndarray, rows: Places, cols: Places) -> np.ndarray:
    """The rows and columns, in order, of the matrix."""
    nrows, ncols = matrix.shape
    part = matrix if len(rows) == nrows else matrix[rows]
    return part if len(cols) == ncols else part[:, cols]


def _first_least(numbers: np.ndarray, lines: Places) -> Places:
    """The place of the first least number of each line; the lines are in order, none is empty."""
    is_first = np.ones(len(lines), bool)
    is_first[1:] = lines[1:] != lines[:-1]
    begins = np.flatnonzero(is_first)
    if len(begins) == len(lines):
        return begins
    ranges = pairwise([*begins.tolist(), len(lines)])
    return np.array([begin + numbers[begin:end].argmin() for begin, end in ranges])
