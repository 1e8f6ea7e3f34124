"""The distances of points on the device, by the steps of `gpumatch.costs.points`: distances.cu."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Points
from gpumatch.cuda.kernels import Kernels, Source, blocks_for, kernels_for

__all__ = [
    "METRICS",
    "distances_at",
    "distances_of_rows",
    "fill_distances",
    "metric_values",
    "offsets_of",
]

SOURCE = Source(
    "assignment/points/distances.cu", ("fill_distances", "distances_at"), structs=("Metric",)
)
METRICS = {"sqeuclidean": 0, "euclidean": 1, "cityblock": 2, "chebyshev": 3}
_BLOCK = SOURCE.constant("kBlock")


def metric_values(points: Points) -> dict[str, Any]:
    """The members of the struct `Metric` of metrics.cuh."""
    return {
        "kind": METRICS[points.metric],
        "has_offsets": int(points.row_offset is not None),
        "scale": 0.5 if points.is_half else 1.0,
        "sign": float(points.sign),
    }


def _metric(points: Points, kernels: Kernels) -> Any:
    return kernels.struct("Metric")(**metric_values(points))


def offsets_of(points: Points) -> tuple[Any, Any]:
    """The offsets of the rows and the columns: empty arrays without."""
    if points.row_offset is None:
        return cp.empty(0), cp.empty(0)
    return points.row_offset, points.col_offset


def distances_of_rows(points: Points, rows: Any, across: Any = None) -> Any:
    """The costs of all pairs of these rows, a line for each.

    `across` is the transposed array of the columns' points, if the caller has it already.
    """
    ncols, width = points.cols.shape
    values = cp.empty((rows.size, ncols))
    if not values.size:
        return values
    kernels = kernels_for(SOURCE)
    kernels["fill_distances"](
        (blocks_for(-(-rows.size // SOURCE.constant("kRows")) * ncols),),
        (_BLOCK,),
        (
            *(points.rows, cp.ascontiguousarray(rows, np.int32), np.int32(rows.size)),  # IN
            cp.ascontiguousarray(points.cols.T) if across is None else across,
            *(np.int32(ncols), np.int32(width), _metric(points, kernels)),
            *offsets_of(points),
            values,  # OUT
        ),
    )
    return values


def fill_distances(points: Points, first: int, last: int) -> Any:
    """The costs of all pairs of the rows from ``first`` to ``last``."""
    return distances_of_rows(points, cp.arange(first, last, dtype=np.int32))


def distances_at(points: Points, rows: Any, cols: Any) -> Any:
    """The costs of pairs."""
    values = cp.empty(rows.size)
    if not rows.size:
        return values
    kernels = kernels_for(SOURCE)
    kernels["distances_at"](
        (blocks_for(rows.size),),
        (_BLOCK,),
        (
            *(points.rows, points.cols, np.int32(points.rows.shape[1])),  # IN
            *(cp.ascontiguousarray(side, np.int64) for side in (rows, cols)),
            *(np.int64(rows.size), _metric(points, kernels)),
            *offsets_of(points),
            values,  # OUT
        ),
    )
    return values
