"""Column duals of dense costs, by an auction in which each row remembers a few columns.

prices.cu describes the auction. Epsilon falls as for sparse costs (`offers`). An auction ends when
all but a few rows are matched.

Device memory: 408 bytes a row and 8 a column.
"""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Control, Costs, Solution
from gpumatch.cuda import memory
from gpumatch.cuda.assignment.dense import tuning as tunings
from gpumatch.cuda.assignment.dense.tuning import Tuning
from gpumatch.cuda.assignment.sparse.offers import Units, unmatched_rows
from gpumatch.cuda.kernels import BLOCK, COSTS, Source, blocks_for, kernels_for

__all__ = ["PRICES", "DenseAuction", "bytes_needed"]

PRICES = Source(
    "assignment/dense/prices.cu",
    (
        "free_columns",
        "take_offers",
        "take_pairs",
        "list_unmatched",
        "hold_auction<{Cost}>",
        "write_prices<{Cost}>",
    ),
    {"Cost": COSTS},
    structs=("Lines<{Cost}>", "Terms", "Progress"),
)
_BLOCK, _KNOWN = PRICES.constant("kBlock"), PRICES.constant("kKnown")


def bytes_needed(nrows: int, ncols: int) -> int:
    """Return the device memory of an auction."""
    return (12 * _KNOWN + 24) * nrows + 8 * ncols


class DenseAuction:
    """The offers for the columns, and the columns that each row remembers.

    Parameters
    ----------
    costs : Costs
        Costs with a matrix, on the device.
    tuning : Tuning, optional
        How far epsilon falls, and when an auction ends.
    """

    def __init__(self, costs: Costs, tuning: Tuning | None = None) -> None:
        self.tuning = tuning = tuning or tunings.DEFAULT
        self.nrows, self.ncols = costs.shape
        self.values: Any = costs.dense()
        self.low = float(costs.low) if math.isfinite(costs.low) else 0.0
        high = costs.high if math.isfinite(costs.high) else costs.largest
        spread = float(high) - self.low
        self.units = Units(spread, self.nrows, finest=tuning.finest, is_integer=costs.is_integer)
        fewest, most = tuning.unmatched
        self.unmatched = min(max(self.nrows >> 12, fewest), most, self.nrows // 4)
        self.looks = 0

    def improve(self, solution: Solution, control: Control) -> None:
        """Write the prices of the columns and the pairs of the auction into the solution."""
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
        """Hold an auction from the current prices; False if stopped or given up."""
        units = self.units
        self._by_column("free_columns", self.offers, np.int32(self.ncols), self._row_bits)
        rows, before = cp.arange(self.nrows, dtype=np.int32), self.looks
        by_row = (blocks_for(self.nrows),), (BLOCK,)
        for _ in range(self.tuning.launches):
            is_over = self._launch(rows, epsilon)
            rows = unmatched_rows(self.kernels["list_unmatched"], by_row, self._held())
            matched = self.nrows - int(rows.size)
            if control.tick(matched) or self.looks > self.tuning.looks_a_row * self.nrows:
                return False
            if is_over:
                break
        looks = self.looks - before
        control.phase(
            found=0, matched=matched, step="auction", looks=looks, epsilon=epsilon / units.of_one
        )
        return True

    def _launch(self, rows: Any, epsilon: int) -> bool:
        """Let these rows bid; True if all but a few are served: matched, or without a column."""
        units, goal = self.units, int(rows.size) - self.unmatched
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
            longest=self.tuning.steps_a_launch,
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
        self._by_column(
            "take_pairs", self.offers, np.int32(self.ncols), self._row_bits, solution.row_to_col,
            solution.col_to_row,
        )  # fmt: skip

    def _held(self) -> Any:
        """Return the column of each row by the offers; -1 means unmatched."""
        held = memory.unmatched(self.nrows)
        self._by_column("take_offers", self.offers, np.int32(self.ncols), self._row_bits, held)
        return held

    @property
    def _row_bits(self) -> np.int32:
        return np.int32(self.units.row_bits)

    def _by_column(self, kernel: str, *arguments: Any) -> None:
        """Launch a kernel with a thread for each column."""
        self.kernels[kernel]((blocks_for(self.ncols),), (BLOCK,), arguments)
