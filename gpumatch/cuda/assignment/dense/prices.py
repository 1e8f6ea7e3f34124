"""Duals of the columns of dense costs by an auction in which rows know a few columns.

prices.cu says how it works. Epsilon falls as for sparse costs (`offers`). An auction ends
when all but a few rows have a column.

Device memory: 408 bytes a row and 8 a column.
"""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Control, Costs, Solution
from gpumatch.cuda.assignment.sparse.offers import Units, free_rows, owners
from gpumatch.cuda.kernels import BLOCK, COSTS, Source, blocks_for, kernels_for

__all__ = ["PRICES", "DenseAuction", "bytes_needed"]

PRICES = Source(
    "assignment/dense/prices.cu",
    ("free_columns", "hold_auction<{Cost}>", "write_prices<{Cost}>"),
    {"Cost": COSTS},
    structs=("Lines<{Cost}>", "Terms", "Progress"),
)
_BLOCK, _KNOWN = PRICES.constant("kBlock"), PRICES.constant("kKnown")

_FINEST = 30  # bits: the last epsilon is the range of the costs divided by two to this
_STEPS_A_LAUNCH = 2048  # of a block: bids and looks, some hundredths of a second
_LEFT = 8, 1024  # rows that an auction leaves, at least and at most: one in 4096
_LAUNCHES = 8  # of an auction. More are a war of few rows, which goes on with the next epsilon.
_LOOKS_A_ROW = 256  # in all auctions. More are a war of prices.


def bytes_needed(nrows: int, ncols: int) -> int:
    """Device memory of an auction."""
    return (12 * _KNOWN + 24) * nrows + 8 * ncols


class DenseAuction:
    """The offers for the columns, and what the rows know.

    Parameters
    ----------
    costs : Costs
        On the device, with their matrix.
    """

    def __init__(self, costs: Costs) -> None:
        self.nrows, self.ncols = costs.shape
        self.values: Any = costs.dense()
        self.low = float(costs.low) if math.isfinite(costs.low) else 0.0
        high = costs.high if math.isfinite(costs.high) else costs.largest
        self.units = Units(self.low, high, self.nrows, finest=_FINEST, is_integer=costs.is_integer)
        self.left = min(max(self.nrows >> 12, _LEFT[0]), _LEFT[1], self.nrows // 4)
        self.looks = 0

    def improve(self, solution: Solution, control: Control) -> None:
        """Put duals of the columns into the solution, and the pairs that fit them best."""
        solution.clear()
        if self.units.of_one == 0:
            return  # all costs are equal, or so close that units would underflow
        self.kernels = kernels_for(PRICES, Cost=self.values.dtype)
        self.offers = cp.zeros(self.ncols, np.uint64)
        self.known = {
            "cols": cp.full((self.nrows, _KNOWN), -1, np.int32),
            "costs": cp.zeros((self.nrows, _KNOWN), np.float64),
            "bound": cp.full(self.nrows, -math.inf),
        }
        for epsilon in self.units.epsilons():
            if not self._hold(epsilon, control):
                break
        self._write(solution)

    def _hold(self, epsilon: int, control: Control) -> bool:
        """An auction, from the prices of the one before; False when stopped, or not worth it."""
        units = self.units
        self._by_column("free_columns", self.offers, np.int32(self.ncols), self._row_bits)
        rows, before = cp.arange(self.nrows, dtype=np.int32), self.looks
        for _ in range(_LAUNCHES):
            is_over = self._launch(rows, epsilon)
            rows = free_rows(self.offers, units.row_bits, self.nrows)
            matched = self.nrows - int(rows.size)
            if control.tick(matched) or self.looks > _LOOKS_A_ROW * self.nrows:
                return False
            if is_over:
                break
        looks = self.looks - before
        control.phase(
            found=0, matched=matched, step="auction", looks=looks, epsilon=epsilon / units.of_one
        )
        return True

    def _launch(self, rows: Any, epsilon: int) -> bool:
        """Let these rows bid; True if all but a few have a column, or go without."""
        units, goal = self.units, int(rows.size) - self.left
        if goal <= 0:
            return True
        lines = self.kernels.struct("Lines")(
            values=self.values,
            **self.known,
            rows=rows,
            nrows=self.nrows,
            ncols=self.ncols,
            size=rows.size,
        )
        terms = self.kernels.struct("Terms")(
            low=self.low,
            scale=units.of_one,
            epsilon=epsilon,
            jump=units.spread,
            most=units.most,
            row_bits=units.row_bits,
            goal=goal,
            longest=_STEPS_A_LAUNCH,
        )
        progress = cp.zeros(2, np.int32)
        self.kernels["hold_auction<{Cost}>"](
            (min(int(rows.size), blocks_for(_BLOCK * self.nrows)),),
            (_BLOCK,),
            (
                *(lines, terms),  # IN
                *(self.offers, progress),  # IN, OUT
            ),
        )
        served, looks = progress.get().tolist()
        self.looks += looks
        return bool(served >= goal)

    def _write(self, solution: Solution) -> None:
        self._by_column(
            "write_prices<{Cost}>", self.offers, np.int32(self.ncols), self._row_bits,
            np.float64(1 / self.units.of_one), solution.col_dual,
        )  # fmt: skip
        rows = owners(self.offers, self.units.row_bits)
        cols = cp.flatnonzero(rows >= 0).astype(np.int32)
        solution.col_to_row[cols] = rows[cols]
        solution.row_to_col[rows[cols]] = cols

    @property
    def _row_bits(self) -> np.int32:
        return np.int32(self.units.row_bits)

    def _by_column(self, kernel: str, *arguments: Any) -> None:
        """A kernel with a thread for each column."""
        self.kernels[kernel]((blocks_for(self.ncols),), (BLOCK,), arguments)
