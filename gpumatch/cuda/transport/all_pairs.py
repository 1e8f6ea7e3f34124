"""All pairs of a problem on the device, as the host's algorithm asks for them.

The host keeps a core of the pairs, and makes its flow optimal by pivots, which are one after the
other. What reads all pairs is done here: the cheapest at given prices, those that cost less than
their duals, and the least of each column. The host holds the auction of the core, too: one on the
device ends with more rows that wait, and 100,000 points then took three times the pivots.
"""

from __future__ import annotations

import functools
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts.transport import Beat, Nearest, PairList
from gpumatch.cuda.transport.pairs import Source

__all__ = ["DevicePairs"]

ON_HOST = 2**18
"""Pairs of a part up to which its matrix is copied to the host, which is as fast then."""


class DevicePairs:
    """`gpumatch.contracts.transport.AllPairs` of pairs on the device."""

    def __init__(self, source: Source) -> None:
        self._source, self.shape, self.dtype = source, source.shape, source.dtype
        far: Any = np.iinfo(np.int64).max if self.dtype.kind == "i" else np.inf
        self._far = self.dtype.type(far)

    @functools.cached_property
    def extremes(self) -> tuple[Any, Any]:
        return self._source.extremes

    @functools.cached_property
    def _across(self) -> Source:
        return self._source.across()

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return self._source.at(cp.asarray(rows), cp.asarray(cols)).get()

    def features(self, side: int, others: np.ndarray) -> np.ndarray:
        every, some = cp.arange(self.shape[side]), cp.asarray(others)
        own, other = cp.repeat(every, some.size), cp.tile(some, every.size)
        ends = (other, own) if side else (own, other)
        return self._source.at(*ends).reshape(every.size, some.size).get()

    def part(self, rows: np.ndarray, cols: np.ndarray) -> DevicePairs | np.ndarray:
        some = self._source.part(cp.asarray(rows), cp.asarray(cols))
        matrix = some.matrix() if rows.size * cols.size <= ON_HOST else None
        return DevicePairs(some) if matrix is None else matrix.get()

    def conjugate(self, rows: np.ndarray, row_dual: np.ndarray, beat: Beat) -> np.ndarray:
        found = self._source.conjugate(cp.asarray(rows), cp.asarray(row_dual)).get()
        beat()
        return found

    def nearest(self, col_dual: np.ndarray, most: tuple[int, int], beat: Beat) -> Nearest:
        (nrows, ncols), prices = self.shape, cp.asarray(col_dual)
        rows, cols = self._source.nearest(prices, cp.full(nrows, self._far), most[0])
        row_dual = self._source.least_of_rows(prices)
        beat()
        own, partners = self._across.nearest(row_dual, cp.full(ncols, self._far), most[1])
        keys, others = rows.astype(np.int64) * ncols + cols, partners.astype(np.int64) * ncols + own
        is_new = ~cp.isin(others, keys)
        of_rows, of_cols = (rows, cols), (partners[is_new], own[is_new])
        regret = self._regret(rows, cols, prices, row_dual)
        return Nearest(row_dual.get(), regret.get(), _on_host(*of_rows), _on_host(*of_cols))

    def _regret(self, rows: Any, cols: Any, prices: Any, row_dual: Any) -> Any:
        """What the second cheapest column of each row costs more; pairs are in order of rows."""
        second = cp.searchsorted(rows, cp.arange(self.shape[0], dtype=rows.dtype)) + 1
        if not rows.size or self.shape[1] < 2:
            return cp.zeros_like(row_dual)
        second = cp.minimum(second, rows.size - 1)
        found = self._source.at(rows[second], cols[second]) - prices[cols[second]] - row_dual
        return cp.maximum(found, 0)

    def undercuts(
        self, row_dual: np.ndarray, col_dual: np.ndarray, tolerance: Any, most: int, beat: Beat
    ) -> PairList:
        bound = cp.asarray(row_dual - tolerance)
        rows, cols = self._source.nearest(cp.asarray(col_dual), bound, most)
        beat()
        return _on_host(rows, cols)

    def row_minima(self, col_dual: np.ndarray) -> np.ndarray:
        return self._source.least_of_rows(cp.asarray(col_dual)).get()

    def matrix(self) -> np.ndarray | None:
        matrix = self._source.matrix()
        return None if matrix is None else matrix.get()


def _on_host(rows: Any, cols: Any) -> PairList:
    return rows.astype(np.int32).get(), cols.astype(np.int32).get()
