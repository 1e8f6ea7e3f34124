"""The pairs of a dense problem on the device: what a matrix and points both tell of them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

__all__ = ["Source"]


class Source(Protocol):
    """All pairs of rows and columns, on the device.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
        int64 or float64.
    extremes : (low, high)
        Bounds of all costs.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @property
    def extremes(self) -> tuple[Any, Any]: ...
    def at(self, rows: Any, cols: Any) -> Any: ...
    def nearest(self, col_dual: Any, bound: Any, most: int) -> tuple[Any, Any]: ...
    def across(self) -> Source: ...
    def conjugate(self, rows: Any, row_dual: Any) -> Any: ...
    def least_of_rows(self, col_dual: Any) -> Any: ...
    def part(self, rows: Any, cols: Any) -> Source: ...
    def matrix(self) -> Any: ...
